/* merge.c - merge one store into another, and check a whole store. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/json.h"
#include "core/map.h"
#include "core/try.h"
#include "sweeps/stores/store_parts.h"

/* ---- a set of texts, by their marks ---- */

static struct tune_store_mark mark_of(const char *text)
{
    return tune_store_mark(text, strlen(text));
}

/* Add a mark. 1: it is new; 0: it exists; -1: no memory. */
static int add_mark(struct tune_map *marks, struct tune_store_mark m)
{
    int64_t *there = tune_map_add(marks, m.key);
    return there ? (*there)++ == 0 : tune_store_no_memory("the uids of a store");
}

/* Hash a whole request, because it has no id. */
static struct tune_store_mark mark_of_cells(const struct tune_cell *cells, int count)
{
    struct tune_store_mark m = {{1, 2}};
    for (int i = 0; i < 2 * count; i++) {
        const struct tune_cell *c = &cells[i / 2];
        double number = c->absent ? 0 : c->number;
        m.key[i % 2] = tune_hash64(c->text ? c->text : "", c->text ? strlen(c->text) + 1 : 1, m.key[i % 2]);
        m.key[i % 2] = tune_hash64(&number, sizeof number, m.key[i % 2]);
    }
    return m;
}

/* ---- passes ---- */

/* Begin a pass over all columns and rows of a table, *count columns. */
static struct tune_scan *scan_all(struct tune_store *s, const char *experiment, int *count)
{
    const struct tune_column *columns = tune_store_columns(s, experiment, count);
    const char **names = columns ? calloc((size_t)*count + 1, sizeof *names) : NULL;
    if (columns && !names)
        tune_store_no_memory("a pass over a store");
    for (int i = 0; names && i < *count; i++)
        names[i] = columns[i].name;
    struct tune_scan *scan = names ? tune_scan_open(s, experiment, names, *count) : NULL;
    free(names);
    tune_scan_everything(scan);
    return scan;
}

/* Begin a pass over the key columns of all rows. */
static struct tune_scan *scan_keys(struct tune_store *s, const char *experiment)
{
    int keys[TUNE_KEYS];
    for (int i = 0; i < TUNE_KEYS; i++)
        keys[i] = i;
    struct tune_scan *scan =
        tune_scan_keys(s, experiment, keys, strcmp(experiment, TUNE_STORE_REQUESTS) ? TUNE_KEYS : TUNE_REQUEST_KEYS);
    tune_scan_everything(scan);
    return scan;
}

/* ---- merge ---- */

/* Collect the uids of a store's rows, and the hashes of its requests. */
static int collect(struct tune_store *s, struct tune_map *uids, struct tune_map *requests)
{
    int count, more = 0;
    const char *const *tables = tune_store_tables(s, &count);
    TRY(tables ? 0 : -1);
    for (int i = -1; i < count && more == 0; i++) {
        const struct tune_cell *cells;
        struct tune_scan *scan = scan_keys(s, i < 0 ? TUNE_STORE_REQUESTS : tables[i]);
        while ((more = tune_scan_next(scan, &cells)) == 1)
            if ((more = i < 0 ? add_mark(requests, mark_of_cells(cells, TUNE_REQUEST_KEYS))
                              : add_mark(uids, mark_of(cells[TUNE_KEY_UID].text))) < 0)
                break;
        tune_scan_free(scan);
    }
    return more;
}

struct merge {
    struct tune_store *into, *from;
    const struct tune_merge *how;
    int64_t done, all;              /* numbers of rows, for the progress */
    struct tune_map uids, requests; /* contents of `into` */
    struct tune_map chosen;         /* uids of wanted rows; empty if all are wanted */
    struct tune_map belong;         /* "kind/name" of the records that belong to wanted rows */
    struct tune_merged merged;
};

static void report_progress(struct merge *m)
{
    if (m->how->progress)
        m->how->progress(m->how->context, ++m->done, m->all);
}

/* Count the rows of all tables and the requests; -1 with an error. */
static int64_t count_rows(struct tune_store *s)
{
    int64_t rows = 0;
    for (int i = 0; i < s->file_count; i++) {
        struct tune_sample_file *content = NULL;
        int fd = s->files[i].gone ? -1 : tune_store_open_file(s, i, &content);
        if (s->files[i].gone)
            continue;
        TRY(fd);
        for (int t = 0; t < content->table_count; t++)
            rows += content->tables[t].at.rows;
        tune_sample_free(content);
        close(fd);
    }
    return rows;
}

static int add_belonging(struct merge *m, const char *kind, const char *name)
{
    char text[2 * TUNE_STORE_NAME_MAX + 64];
    if (!*name)
        return 0;
    snprintf(text, sizeof text, "%s/%s", kind, name);
    return add_mark(&m->belong, mark_of(text));
}

/* Note a wanted row, and the records that belong to it. */
static int choose_row(struct merge *m, const char *experiment, const struct tune_cell *cells)
{
    char name[2 * TUNE_STORE_NAME_MAX + 32];
    const char *full = cells[TUNE_KEY_EXPERIMENT].text;
    /* the name of an experiment's record (discovery/store_copies.c) */
    snprintf(name, sizeof name, "%.*s.%.200s", (int)strcspn(full, ".") > 200 ? 200 : (int)strcspn(full, "."), full, experiment);
    TRY(add_mark(&m->chosen, mark_of(cells[TUNE_KEY_UID].text)));
    TRY(add_belonging(m, "experiments", name));
    TRY(add_belonging(m, "operations", cells[TUNE_KEY_OPERATION].text));
    TRY(add_belonging(m, "spaces", cells[TUNE_KEY_SPACE].text));
    return add_belonging(m, "data", cells[TUNE_KEY_DATA].text);
}

/* A table of `from` that is being copied. */
struct merge_table {
    const char *name;
    const struct tune_column *columns; /* [count], the first `keys` are keys */
    int count, keys;
    struct tune_cell *row;
};

/* Copy a row, unless it is unwanted, forgotten in `into`, or already there. */
static int merge_row(struct merge *m, const struct merge_table *t, const struct tune_cell *cells)
{
    const char *uid = cells[TUNE_KEY_UID].text;
    int wanted = m->how->wanted ? m->how->wanted(m->how->context, t->name, t->columns, t->count, cells) : 1;
    TRY(wanted);
    m->merged.unwanted += !wanted;
    if (!wanted)
        return 0;
    bool forgotten = tune_tombstones_has(m->into, uid, strlen(uid));
    m->merged.forgotten += forgotten;
    if (forgotten)
        return 0;
    TRY(m->how->wanted ? choose_row(m, t->name, cells) : 0);
    int fresh = add_mark(&m->uids, mark_of(uid));
    TRY(fresh);
    m->merged.there += !fresh;
    if (!fresh)
        return 0;
    memcpy(t->row, cells, TUNE_KEYS * sizeof *t->row); /* the first TUNE_KEYS columns are ours */
    memcpy(t->row + TUNE_KEYS, cells + t->keys, (size_t)(t->count - t->keys) * sizeof *t->row);
    TRY(tune_store_table(m->into, t->name, t->columns + t->keys, t->count - t->keys));
    TRY(tune_store_append(m->into, t->name, t->row, NULL));
    m->merged.came++;
    return 0;
}

static int merge_table(struct merge *m, const char *experiment)
{
    struct merge_table t = {.name = experiment};
    const struct tune_cell *cells;
    t.columns = tune_store_columns(m->from, experiment, &t.count);
    TRY(t.columns ? 0 : -1);
    while (t.keys < t.count && t.columns[t.keys].role == TUNE_COLUMN_KEY)
        t.keys++;
    t.row = calloc((size_t)(TUNE_KEYS + t.count), sizeof *t.row);
    struct tune_scan *scan = t.row ? scan_all(m->from, experiment, &t.count) : NULL;
    int more = scan ? 0 : t.row ? -1 : tune_store_no_memory("merging");
    while (scan && (more = tune_scan_next(scan, &cells)) == 1 && (more = merge_row(m, &t, cells)) == 0)
        report_progress(m);
    tune_scan_free(scan);
    free(t.row);
    return more;
}

/* Copy a request, unless it is already there, or its row is forgotten or unwanted. */
static int merge_request(struct merge *m, const struct tune_cell *cells)
{
    const char *uid = cells[TUNE_REQUEST_UID].text;
    if (tune_tombstones_has(m->into, uid, strlen(uid)) || (m->how->wanted && !tune_map_get(&m->chosen, mark_of(uid).key)))
        return 0;
    TRY(m->how->wanted ? add_belonging(m, "operations", cells[TUNE_REQUEST_OPERATION].text) : 0);
    int fresh = add_mark(&m->requests, mark_of_cells(cells, TUNE_REQUEST_KEYS));
    TRY(fresh);
    return fresh ? tune_store_request(m->into, cells) : 0;
}

static int merge_requests(struct merge *m)
{
    const struct tune_cell *cells;
    struct tune_scan *scan = scan_keys(m->from, TUNE_STORE_REQUESTS);
    int more;
    while ((more = tune_scan_next(scan, &cells)) == 1 && (more = merge_request(m, cells)) == 0)
        report_progress(m);
    tune_scan_free(scan);
    return more;
}

/* Copied rows are committed, even if others failed. The next merge adds the rest. */
static int finish_rows(struct tune_store *into, int status)
{
    struct tune_error why;
    tune_error_save(&why);
    int committed = tune_store_commit(into);
    if (status < 0)
        tune_error_restore(&why);
    return status < 0 ? -1 : committed;
}

static int merge_rows(struct merge *m)
{
    int count;
    const char *const *tables = tune_store_tables(m->from, &count);
    int status = tables ? collect(m->into, &m->uids, &m->requests) : -1;
    tune_store_begin(m->into);
    for (int i = 0; i < count && status == 0; i++)
        status = merge_table(m, tables[i]);
    if (status == 0)
        status = merge_requests(m);
    return finish_rows(m->into, status);
}

int64_t tune_store_merge(struct tune_store *into, struct tune_store *from, const struct tune_merge *how)
{
    struct merge m = {.into = into, .from = from, .how = how ? how : &(const struct tune_merge){0}};
    m.all = m.how->progress ? count_rows(from) : 0;
    TRY(m.all < 0 ? -1 : 0);
    TRY(tune_store_refresh(into)); /* otherwise, an unseen row would be copied twice */
    m.merged.tombstones = tune_tombstones_merge(into, from);
    TRY(m.merged.tombstones < 0 ? -1 : 0);
    TRY(tune_tombstones_read(into, NULL, NULL));
    int status = merge_rows(&m);
    if (status == 0)
        status = tune_store_merge_records(into, from, m.how, m.how->wanted ? &m.belong : NULL);
    if (m.how->merged)
        *m.how->merged = m.merged;
    tune_map_free(&m.uids);
    tune_map_free(&m.requests);
    tune_map_free(&m.chosen);
    tune_map_free(&m.belong);
    return status < 0 ? -1 : m.merged.came;
}

/* ---- check ---- */

struct check {
    struct tune_store *store;
    tune_store_problem *problem;
    void *context;
    int64_t problems;
    struct tune_map uids;
};

static void report_problem(struct check *c, const char *file, const char *what)
{
    size_t n = strlen(file);
    if (!strncmp(what, file, n) && (what[n] == ':' || what[n] == ' ')) /* the message already begins with the file's name */
        what += n + strspn(what + n, ": ");
    c->problems++;
    c->problem(c->context, file, what);
}

static void report_file(void *check, const char *file, const char *what)
{
    report_problem(check, file, what);
}

static void report_row(struct check *c, const struct tune_scan *scan, const char *table, const char *format, ...) TUNE_PRINTF(4, 5);
static void report_row(struct check *c, const struct tune_scan *scan, const char *table, const char *format, ...)
{
    char path[TUNE_PATH_MAX], what[512], text[640];
    struct tune_row_position position = tune_scan_position(scan);
    FORMAT(what, format);
    snprintf(text, sizeof text, "%s, row %d: %s", table, position.row, what);
    if (tune_store_path(c->store, path, c->store->files[position.file].name) == 0)
        report_problem(c, path, text);
}

static bool is_one_of(const char *text, const char *words)
{
    size_t n = strlen(text);
    for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ')
        if (n > 0 && strcspn(at, " ") == n && !strncmp(at, text, n))
            return true;
    return false;
}

#define STATUSES "valid invalid failed"

static int check_measurement(struct check *c, const struct tune_scan *scan, const char *table, const struct tune_cell *row)
{
    const char *uid = row[TUNE_KEY_UID].text;
    int fresh = *uid ? add_mark(&c->uids, mark_of(uid)) : 1;
    TRY(fresh);
    if (!*uid)
        report_row(c, scan, table, "the row has no uid");
    if (!fresh)
        report_row(c, scan, table, "the uid %.64s is in this store twice", uid);
    if (!is_one_of(row[TUNE_KEY_STATUS].text, STATUSES))
        report_row(c, scan, table, "the status is \"%.32s\", expected one "
                                   "of " STATUSES, row[TUNE_KEY_STATUS].text);
    if (row[TUNE_KEY_EXPERIMENT].absent || row[TUNE_KEY_ENTITY].absent)
        report_row(c, scan, table, "the row has no %s",
                   row[TUNE_KEY_EXPERIMENT].absent ? "experiment" : "entity");
    return 0;
}

static int check_request(struct check *c, const struct tune_scan *scan, const char *table, const struct tune_cell *row)
{
    const char *uid = row[TUNE_REQUEST_UID].text;
    if (!is_one_of(row[TUNE_REQUEST_TYPE].text, "measured replayed"))
        report_row(c, scan, table, "the type is \"%.32s\", expected measured or replayed",
                   row[TUNE_REQUEST_TYPE].text);
    if (!is_one_of(row[TUNE_REQUEST_STATUS].text, STATUSES))
        report_row(c, scan, table, "the status is \"%.32s\", expected one "
                                   "of " STATUSES, row[TUNE_REQUEST_STATUS].text);
    if (!tune_map_get(&c->uids, mark_of(uid).key))
        report_row(c, scan, table, "the result \"%.64s\" of this request is not in this store", uid);
    return 0;
}

static void check_texts(struct check *c, const struct tune_scan *scan, const char *table, const struct tune_column *columns,
                        const struct tune_cell *row, int count)
{
    for (int i = 0; i < count; i++)
        if (columns[i].type == TUNE_CELL_TEXT && !tune_utf8_valid(row[i].text, strlen(row[i].text), NULL))
            report_row(c, scan, table, "the text of \"%.100s\" is not UTF-8", columns[i].name);
}

typedef int row_check(struct check *c, const struct tune_scan *scan, const char *table, const struct tune_cell *row);

static int check_table(struct check *c, const char *table, row_check *check_row)
{
    int count, more;
    const struct tune_cell *cells;
    const struct tune_column *columns = tune_store_columns(c->store, table, &count);
    struct tune_scan *scan = columns ? scan_all(c->store, table, &count) : NULL;
    while ((more = tune_scan_next(scan, &cells)) != 0) {
        if (!scan || (more < 0 && tune_error_kind() == TUNE_ERROR_CANNOT))
            break;
        if (more < 0) { /* a broken file; the next call reads the next file */
            char path[TUNE_PATH_MAX];
            TRY(tune_store_path(c->store, path, c->store->files[tune_scan_position(scan).file].name));
            report_problem(c, path, tune_error_message());
            continue;
        }
        check_texts(c, scan, table, columns, cells, count);
        if ((more = check_row(c, scan, table, cells)) < 0)
            break;
    }
    tune_scan_free(scan);
    return more;
}

/* Check the contents of each file that could be opened. */
static int list_files(struct tune_store *s, void (*file)(void *context, const char *file, int64_t rows, bool checked), void *context)
{
    for (int i = 0; i < s->file_count; i++) {
        char path[TUNE_PATH_MAX];
        int64_t rows = 0;
        struct tune_sample_file *content = NULL;
        if (s->files[i].gone || s->files[i].broken)
            continue;
        int fd = tune_store_open_file(s, i, &content);
        TRY(fd);
        for (int t = 0; t < content->table_count; t++)
            rows += content->tables[t].name ? content->tables[t].at.rows : 0;
        if (tune_store_path(s, path, s->files[i].name) == 0)
            file(context, path, rows, tune_sample_checked(content));
        tune_sample_free(content);
        close(fd);
    }
    return 0;
}

int64_t tune_store_check(struct tune_store *s, void (*file)(void *context, const char *file, int64_t rows, bool checked),
                         void (*problem)(void *context, const char *file, const char *what), void *context)
{
    struct check c = {.store = s, .problem = problem, .context = context};
    int count = 0;
    TRY(tune_store_refresh(s)); /* it also empties the catalogue, which lists no broken files yet */
    int status = tune_store_catalogue(s, report_file, &c);
    tune_tombstones_unread(s);
    if (status == 0)
        status = tune_tombstones_read(s, report_file, &c);
    if (status == 0 && file)
        status = list_files(s, file, context);
    const char *const *tables = status < 0 ? NULL : tune_store_tables(s, &count);
    for (int i = 0; i < count && status == 0; i++)
        status = check_table(&c, tables[i], check_measurement);
    if (status == 0)
        status = check_table(&c, TUNE_STORE_REQUESTS, check_request);
    tune_store_forget_catalogue(s); /* and forget which files were left out */
    tune_tombstones_unread(s);
    tune_map_free(&c.uids);
    return status < 0 ? -1 : c.problems;
}
