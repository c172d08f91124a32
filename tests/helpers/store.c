/* store.c - a user of sample stores for the shell tests: writes rows that can be told from their uid, reads them back, merges,
 * checks, leases.
 *
 *     store write FOLDER WRITER FROM TO     rows FROM .. TO - 1 of that writer; the number of each on a line once it is there
 *     store fill FOLDER WRITER FROM TO      the same at once
 *     store list FOLDER                     "<writer> <number>" of each row, every cell checked
 *     store dump FOLDER                     every cell of every table, tab-separated, for whoever compares
 *     store check FOLDER                    a line for each problem
 *     store merge INTO FROM                 how many rows came, were there, were forgotten, and how many tombstones came
 *     store forget FOLDER WRITER FROM TO    forgets these rows in tombstones of one row; the number of each on a line once it is there
 *     store forget-all FOLDER WRITER FROM TO    forgets them in one tombstone; its id
 *     store remember FOLDER ID              how many rows are back
 *     store forgotten FOLDER                how many rows are left out, then "<id> <rows> <note>" of each tombstone
 *     store id FOLDER                       its id; the store is made if it is not there
 *     store lease FOLDER COUNT              takes what it can get of COUNT leases, in an order of its own; the number of each
 *     store hold FOLDER NAME                takes one and holds it until it is killed */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/random.h"
#include "sweeps/stores/lease.h"
#include "sweeps/stores/store.h"

static const char table[] = "test-experiment-v1.0.0";
static const struct tune_column columns[] = {
    {"model_name", "", TUNE_CELL_TEXT, TUNE_COLUMN_INPUT, false},
    {"batch_size", "", TUNE_CELL_WHOLE, TUNE_COLUMN_INPUT, false},
    {"learning_rate", "1/step", TUNE_CELL_NUMBER, TUNE_COLUMN_INPUT, false},
    {"train_runtime", "s", TUNE_CELL_NUMBER, TUNE_COLUMN_TARGET, false},
    {"is_valid", "", TUNE_CELL_NUMBER, TUNE_COLUMN_TARGET, true},
    {"größe", "m²", TUNE_CELL_TEXT, TUNE_COLUMN_TARGET, false},
};
enum { MORE = sizeof columns / sizeof *columns, ALL = TUNE_KEYS + MORE };

/* What row `number` of a writer holds. */
struct row {
    char uid[40], entity[96], model[400], reason[64], wide[64];
    struct tune_cell cells[ALL], request[TUNE_REQUEST_KEYS];
};

static struct tune_cell text(const char *t)
{
    return (struct tune_cell){.absent = !*t, .text = t};
}

static struct tune_cell whole(int64_t n)
{
    return (struct tune_cell){.whole = n};
}

static struct tune_cell number(double v, bool absent)
{
    return (struct tune_cell){.absent = absent, .number = v};
}

static void make(struct row *r, int writer, int n)
{
    static const char *const statuses[] = {"valid", "valid", "invalid", "failed"};
    const char *status = statuses[n % 4];
    snprintf(r->uid, sizeof r->uid, "%08x%024x", (unsigned)writer, (unsigned)n);
    snprintf(r->entity, sizeof r->entity, "model_name.m%d-batch_size.%d", n % 5, n);
    int filled = snprintf(r->model, sizeof r->model, "a \"quote\", a tab\t and a line\nbreak");
    memset(r->model + filled, 'x', sizeof r->model - (size_t)filled);
    r->model[n % 300] = 0; /* so that texts are of any length */
    snprintf(r->reason, sizeof r->reason, "out of memory, kind %d", n % 7);
    if (n % 4 < 2)
        r->reason[0] = 0;
    snprintf(r->wide, sizeof r->wide, "%s", n % 2 ? "zwölf €" : "七");
    const struct tune_cell cells[ALL] = {
        [TUNE_KEY_UID] = text(r->uid),
        [TUNE_KEY_OPERATION] = text("operation-1"),
        [TUNE_KEY_SPACE] = text("space-0a1b2c"),
        [TUNE_KEY_REQUEST] = whole(n),
        [TUNE_KEY_REPEAT] = whole(n % 3),
        [TUNE_KEY_EXPERIMENT] = text("mock.test-experiment-v1.0.0-x.1"),
        [TUNE_KEY_ENTITY] = text(r->entity),
        [TUNE_KEY_GENERATOR] = text("explicit_grid_sample_generator"),
        [TUNE_KEY_STARTED] = number(1.7e9 + n / 8.0, false),
        [TUNE_KEY_SECONDS] = number(n / 3.0, false),
        [TUNE_KEY_STATUS] = text(status),
        [TUNE_KEY_REASON] = text(r->reason),
        [TUNE_KEY_HOST] = text("host"),
        [TUNE_KEY_HOST_CLASS] = text("a CPU of 2 cores"),
        [TUNE_KEY_BUILD] = text("c0ffee"),
        [TUNE_KEY_WEIGHTS] = text(""),
        [TUNE_KEY_DATA] = text("d1"),
        [TUNE_KEYS] = text(r->model),
        whole(((int64_t)n << 33) - n),
        number(1.0 / (n + 1), false),
        number(-n * 1e100, n % 5 == 0),
        number(n % 4 < 2, false),
        text(r->wide),
    };
    const struct tune_cell request[TUNE_REQUEST_KEYS] = {
        cells[TUNE_KEY_OPERATION], whole(n),     cells[TUNE_KEY_EXPERIMENT], text(r->entity), text("measured"),
        text(r->uid),              text(status), cells[TUNE_KEY_STARTED]};
    memcpy(r->cells, cells, sizeof cells);
    memcpy(r->request, request, sizeof request);
}

/* The column at that place of a row. */
static const struct tune_column *column(int i)
{
    return i < TUNE_KEYS ? tune_key_column((enum tune_key)i) : &columns[i - TUNE_KEYS];
}

static bool same(const struct tune_cell *a, const struct tune_cell *b, enum tune_cell_type type)
{
    if (a->absent || b->absent)
        return a->absent == b->absent;
    if (type == TUNE_CELL_TEXT)
        return !strcmp(a->text, b->text);
    return type == TUNE_CELL_WHOLE ? a->whole == b->whole : a->number == b->number;
}

static int complain(void)
{
    fprintf(stderr, "store: %s\n", tune_error_message());
    return (int)tune_error_kind();
}

static int write_rows(struct tune_store *s, int writer, int from, int to, bool at_once)
{
    struct row r;
    char line[32];
    if (tune_store_table(s, table, columns, MORE) < 0)
        return complain();
    if (at_once)
        tune_store_begin(s);
    for (int n = from; n < to; n++) {
        make(&r, writer, n);
        if (tune_store_append(s, table, r.cells, r.request) < 0)
            return complain();
        int size = snprintf(line, sizeof line, "%d\n", n);
        if (!at_once && write(STDOUT_FILENO, line, (size_t)size) != size) /* at once: we may be killed any moment */
            return 1;
    }
    return at_once && tune_store_commit(s) < 0 ? complain() : 0;
}

static int list(struct tune_store *s)
{
    const char *names[ALL];
    const struct tune_cell *cells;
    struct row r;
    int more, bad = 0;
    for (int i = 0; i < ALL; i++)
        names[i] = column(i)->name;
    struct tune_scan *scan = tune_scan_open(s, table, names, ALL);
    if (!scan)
        return complain();
    while ((more = tune_scan_next(scan, &cells)) == 1) {
        unsigned writer = 0, n = 0;
        sscanf(cells[TUNE_KEY_UID].text, "%8x%24x", &writer, &n);
        make(&r, (int)writer, (int)n);
        for (int i = 0; i < ALL; i++)
            if (!same(&cells[i], &r.cells[i], column(i)->type)) {
                fprintf(stderr, "store: row %u of writer %u: %s is wrong\n", n, writer, names[i]);
                bad = 1;
            }
        printf("%u %u\n", writer, n);
    }
    tune_scan_free(scan);
    return more < 0 ? complain() : bad;
}

static int forget(struct tune_store *s, unsigned writer, int from, int to, bool at_once)
{
    char id[TUNE_TOMBSTONE_ID], line[32];
    int count = to - from;
    char (*texts)[40] = calloc((size_t)count + 1, sizeof *texts);
    const char **uids = calloc((size_t)count + 1, sizeof *uids);
    int status = texts && uids ? 0 : 1;
    for (int i = 0; i < count && status == 0; i++) {
        snprintf(texts[i], sizeof *texts, "%08x%024x", writer, (unsigned)(from + i));
        uids[i] = texts[i];
        if (at_once)
            continue;
        int size = snprintf(line, sizeof line, "%d\n", from + i);
        if (tune_store_forget(s, &uids[i], 1, "one by one", id) < 0)
            status = complain();
        else if (write(STDOUT_FILENO, line, (size_t)size) != size) /* at once: we may be killed any moment */
            status = 1;
    }
    if (at_once && status == 0)
        status = tune_store_forget(s, uids, count, "at once", id) < 0 ? complain() : puts(id) < 0;
    free(texts);
    free(uids);
    return status;
}

static int remember(struct tune_store *s, const char *id)
{
    int64_t rows = tune_store_remember(s, id);
    if (rows < 0)
        return complain();
    printf("%" PRId64 "\n", rows);
    return 0;
}

static int forgotten(struct tune_store *s)
{
    int count;
    const struct tune_tombstone *t = tune_store_forgotten(s, &count);
    int64_t rows = t ? tune_store_forgotten_rows(s, NULL) : -1;
    if (rows < 0)
        return complain();
    printf("%" PRId64 "\n", rows);
    for (int i = 0; i < count; i++)
        printf("%s %" PRId64 " %s\n", t[i].id, t[i].rows, t[i].note);
    return 0;
}

static void put_cell(const struct tune_cell *c, enum tune_cell_type type)
{
    if (c->absent)
        printf("\\N");
    else if (type == TUNE_CELL_WHOLE)
        printf("%" PRId64, c->whole);
    else if (type == TUNE_CELL_NUMBER)
        printf("%.17g", c->number);
    for (const char *t = type == TUNE_CELL_TEXT && !c->absent ? c->text : ""; *t; t++)
        printf(strchr("\\\t\n", *t) ? "\\x%02x" : "%c", *t);
}

static int dump_table(struct tune_store *s, const char *name)
{
    const struct tune_cell *cells;
    int count, more;
    const struct tune_column *c = tune_store_columns(s, name, &count);
    const char **names = c ? calloc((size_t)count, sizeof *names) : NULL;
    for (int i = 0; i < count && names; i++)
        names[i] = c[i].name;
    struct tune_scan *scan = names ? tune_scan_open(s, name, names, count) : NULL;
    if (!scan)
        return complain();
    printf("table\t%s\n", name);
    for (int i = 0; i < count; i++)
        printf("column\t%s\t%s\t%d\t%d\t%d\n", c[i].name, c[i].unit, c[i].type, c[i].role, c[i].whole);
    while ((more = tune_scan_next(scan, &cells)) == 1)
        for (int i = 0; i < count; i++) {
            put_cell(&cells[i], c[i].type);
            putchar(i + 1 < count ? '\t' : '\n');
        }
    tune_scan_free(scan);
    free(names);
    return more < 0 ? complain() : 0;
}

static int dump(struct tune_store *s)
{
    int count, status = 0;
    const char *const *tables = tune_store_tables(s, &count);
    if (!tables)
        return complain();
    for (int i = 0; i < count && status == 0; i++)
        status = dump_table(s, tables[i]);
    return status ? status : dump_table(s, TUNE_STORE_REQUESTS);
}

static void put_problem(void *context, const char *file, const char *what)
{
    (void)context;
    const char *name = strrchr(file, '/');
    printf("%s: %s\n", name ? name + 1 : file, what);
}

static int merge(struct tune_store *into, const char *folder)
{
    struct tune_store *from = tune_store_open(folder, false);
    struct tune_merged m;
    int64_t came = from ? tune_store_merge(into, from, &(const struct tune_merge){.merged = &m}) : -1;
    tune_store_free(from);
    if (came < 0)
        return complain();
    printf("%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", came, m.there, m.forgotten, m.tombstones);
    return 0;
}

static int take_leases(const char *folder, int count)
{
    for (int i = 0; i < count; i++) {
        struct tune_lease c;
        char name[32], who[128];
        int n = (int)tune_random_permute((uint64_t)getpid(), 0, (uint64_t)count, (uint64_t)i);
        snprintf(name, sizeof name, "entity-%d", n);
        int mine = tune_lease_take(&c, folder, name, NULL, who, sizeof who);
        if (mine < 0 || (mine && n % 2 == 0 && tune_lease_done(&c) < 0))
            return complain();
        if (mine)
            printf("%d\n", n);
    }
    fflush(stdout);
    pause(); /* whose leases are not done holds them */
    return 0;
}

static int hold(const char *folder, const char *name)
{
    struct tune_lease c;
    char who[128];
    int mine = tune_lease_take(&c, folder, name, NULL, who, sizeof who);
    if (mine < 0)
        return complain();
    puts(mine ? "mine" : who);
    fflush(stdout);
    if (mine)
        pause();
    return 0;
}

static int work(const char *what, int count, char **arguments, struct tune_store *s)
{
    int64_t problems;
    if (count == 5 && (!strcmp(what, "write") || !strcmp(what, "fill")))
        return write_rows(s, atoi(arguments[1]), atoi(arguments[2]), atoi(arguments[3]), *what == 'f');
    if (count == 5 && !strncmp(what, "forget", 6))
        return forget(s, (unsigned)atoi(arguments[1]), atoi(arguments[2]), atoi(arguments[3]), what[6] != 0);
    if (!strcmp(what, "remember") && count == 3)
        return remember(s, arguments[1]);
    if (!strcmp(what, "forgotten"))
        return forgotten(s);
    if (!strcmp(what, "list"))
        return list(s);
    if (!strcmp(what, "dump"))
        return dump(s);
    if (!strcmp(what, "merge") && count == 3)
        return merge(s, arguments[1]);
    if (!strcmp(what, "check")) {
        problems = tune_store_check(s, NULL, put_problem, NULL);
        return problems < 0 ? complain() : 0;
    }
    if (!strcmp(what, "id"))
        return puts(tune_store_id(s)) < 0;
    return 64;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 64;
    signal(SIGXFSZ, SIG_IGN); /* as programs of this tree do: a limit is an error, not the end */
    if (!strcmp(argv[1], "lease") && argc == 4)
        return take_leases(argv[2], atoi(argv[3]));
    if (!strcmp(argv[1], "hold") && argc == 4)
        return hold(argv[2], argv[3]);
    bool writes = strchr("wfmi", argv[1][0]) && strncmp(argv[1], "forg", 4);
    struct tune_store *s = tune_store_open(argv[2], writes);
    int status = s ? work(argv[1], argc - 1, argv + 2, s) : complain();
    tune_store_free(s);
    return status;
}
