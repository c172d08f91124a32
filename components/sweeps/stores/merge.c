/* merge.c - merge one store into another, and check a whole store. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/json.h"
#include "core/map.h"
#include "core/try.h"
#include "sweeps/stores/store_parts.h"

/* ---- a set of texts, each as 128 bits of hash: 10^6 uids in 48 MB ---- */

struct mark {
    uint64_t key[2];
};

static struct mark mark_of(const char *text)
{
    size_t size = strlen(text);
    return (struct mark){{tune_hash64(text, size, 1), tune_hash64(text, size, 2)}};
}

/* Add a text. 1: it is new; 0: it was there; -1: no memory. */
static int add_mark(struct tune_map *marks, struct mark m)
{
    int64_t *there = tune_map_add(marks, m.key);
    return there ? (*there)++ == 0 : tune_store_no_memory("the uids of a store");
}

/* Hash a whole request, because it has no id. */
static struct mark mark_of_cells(const struct tune_cell *cells, int count)
{
    struct mark m = {{1, 2}};
    for (int i = 0; i < 2 * count; i++) {
        const struct tune_cell *c = &cells[i / 2];
        double number = c->absent ? 0 : c->number;
        m.key[i % 2] = tune_hash64(c->text ? c->text : "", c->text ? strlen(c->text) + 1 : 1, m.key[i % 2]);
        m.key[i % 2] = tune_hash64(&number, sizeof number, m.key[i % 2]);
    }
    return m;
}

/* ---- passes ---- */

/* Begin a pass over all columns of a table, *count of them. */
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
    return scan;
}

/* Begin a pass over the key columns, in their order. */
static struct tune_scan *scan_keys(struct tune_store *s, const char *experiment)
{
    int keys[TUNE_KEYS];
    for (int i = 0; i < TUNE_KEYS; i++)
        keys[i] = i;
    return tune_scan_keys(s, experiment, keys, strcmp(experiment, TUNE_STORE_REQUESTS) ? TUNE_KEYS : TUNE_REQUEST_KEYS);
}

/* ---- merge ---- */

/* Collect what the store has: uids of rows, and hashes of requests. */
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

/* The progress callback of a merge. */
struct told {
    const struct tune_merge *how;
    int64_t done, all;
};

static void tell_progress(struct told *t)
{
    if (t->how->progress)
        t->how->progress(t->how->context, ++t->done, t->all);
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

/* Copy the rows of one table that are missing. Returns their number. */
static int64_t merge_table(struct tune_store *into, struct tune_store *from, const char *experiment, struct tune_map *uids,
                           struct told *told)
{
    int all, keys = 0, more;
    const struct tune_cell *cells;
    const struct tune_column *columns = tune_store_columns(from, experiment, &all);
    TRY(columns ? 0 : -1);
    while (keys < all && columns[keys].role == TUNE_COLUMN_KEY)
        keys++; /* the first TUNE_KEYS columns are the keys */
    TRY(tune_store_table(into, experiment, columns + keys, all - keys));
    struct tune_cell *row = calloc((size_t)(TUNE_KEYS + all), sizeof *row);
    struct tune_scan *scan = row ? scan_all(from, experiment, &all) : NULL;
    int64_t came = 0;
    more = scan ? 0 : row ? -1 : tune_store_no_memory("merging");
    while (scan && (more = tune_scan_next(scan, &cells)) == 1) {
        int fresh = add_mark(uids, mark_of(cells[TUNE_KEY_UID].text));
        memcpy(row, cells, TUNE_KEYS * sizeof *row);
        memcpy(row + TUNE_KEYS, cells + keys, (size_t)(all - keys) * sizeof *row);
        if (fresh < 0 || (fresh && tune_store_append(into, experiment, row, NULL) < 0)) {
            more = -1;
            break;
        }
        came += fresh;
        tell_progress(told);
    }
    tune_scan_free(scan);
    free(row);
    return more < 0 ? -1 : came;
}

static int merge_requests(struct tune_store *into, struct tune_store *from, struct tune_map *requests, struct told *told)
{
    const struct tune_cell *cells;
    struct tune_scan *scan = scan_keys(from, TUNE_STORE_REQUESTS);
    int more;
    while ((more = tune_scan_next(scan, &cells)) == 1) {
        int fresh = add_mark(requests, mark_of_cells(cells, TUNE_REQUEST_KEYS));
        if (fresh < 0 || (fresh && tune_store_request(into, cells) < 0)) {
            more = -1;
            break;
        }
        tell_progress(told);
    }
    tune_scan_free(scan);
    return more;
}

/* Copied rows are kept, even if others failed. The next merge adds the rest. */
static int finish_rows(struct tune_store *into, int status)
{
    struct tune_error why;
    tune_error_save(&why);
    int kept = tune_store_commit(into);
    if (status < 0)
        tune_error_restore(&why);
    return status < 0 ? -1 : kept;
}

int64_t tune_store_merge(struct tune_store *into, struct tune_store *from, const struct tune_merge *how)
{
    struct tune_map uids = {0}, requests = {0};
    how = how ? how : &(const struct tune_merge){0};
    struct told told = {how, 0, how->progress ? count_rows(from) : 0};
    int count;
    int64_t came = 0;
    TRY(told.all < 0 ? -1 : 0);
    const char *const *tables = tune_store_tables(from, &count);
    int status = tables ? collect(into, &uids, &requests) : -1;
    tune_store_begin(into);
    for (int i = 0; i < count && status == 0; i++) {
        int64_t more = merge_table(into, from, tables[i], &uids, &told);
        status = more < 0 ? -1 : 0;
        came += more;
    }
    if (status == 0)
        status = merge_requests(into, from, &requests, &told);
    status = finish_rows(into, status);
    if (status == 0)
        status = tune_store_merge_records(into, from, how);
    tune_map_free(&uids);
    tune_map_free(&requests);
    return status < 0 ? -1 : came;
}

/* ---- check ---- */

struct check {
    struct tune_store *store;
    tune_store_problem *problem;
    void *context;
    int64_t problems;
    struct tune_map uids;
};

static void told(struct check *c, const char *file, const char *what)
{
    size_t n = strlen(file);
    if (!strncmp(what, file, n) && (what[n] == ':' || what[n] == ' ')) /* the message begins with the file's name */
        what += n + strspn(what + n, ": ");
    c->problems++;
    c->problem(c->context, file, what);
}

static void tell_file(void *check, const char *file, const char *what)
{
    told(check, file, what);
}

static void tell_row(struct check *c, const struct tune_scan *scan, const char *table, const char *format, ...) TUNE_PRINTF(4, 5);
static void tell_row(struct check *c, const struct tune_scan *scan, const char *table, const char *format, ...)
{
    char path[TUNE_PATH_MAX], what[512], text[640];
    struct tune_place place = tune_scan_place(scan);
    FORMAT(what, format);
    snprintf(text, sizeof text, "%s, row %d: %s", table, place.row, what);
    if (tune_store_path(c->store, path, c->store->files[place.file].name) == 0)
        told(c, path, text);
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
        tell_row(c, scan, table, "it has no uid");
    if (!fresh)
        tell_row(c, scan, table, "the uid %.64s stands in this store twice", uid);
    if (!is_one_of(row[TUNE_KEY_STATUS].text, STATUSES))
        tell_row(c, scan, table, "its status is \"%.32s\", expected one of " STATUSES, row[TUNE_KEY_STATUS].text);
    if (row[TUNE_KEY_EXPERIMENT].absent || row[TUNE_KEY_ENTITY].absent)
        tell_row(c, scan, table, "it does not say of which %s it is", row[TUNE_KEY_EXPERIMENT].absent ? "experiment" : "entity");
    return 0;
}

static int check_request(struct check *c, const struct tune_scan *scan, const char *table, const struct tune_cell *row)
{
    const char *uid = row[TUNE_REQUEST_UID].text;
    if (!is_one_of(row[TUNE_REQUEST_TYPE].text, "measured replayed"))
        tell_row(c, scan, table, "its type is \"%.32s\", expected measured or replayed", row[TUNE_REQUEST_TYPE].text);
    if (!is_one_of(row[TUNE_REQUEST_STATUS].text, STATUSES))
        tell_row(c, scan, table, "its status is \"%.32s\", expected one of " STATUSES, row[TUNE_REQUEST_STATUS].text);
    if (!tune_map_get(&c->uids, mark_of(uid).key))
        tell_row(c, scan, table, "its result \"%.64s\" is not in this store", uid);
    return 0;
}

static void check_texts(struct check *c, const struct tune_scan *scan, const char *table, const struct tune_column *columns,
                        const struct tune_cell *row, int count)
{
    for (int i = 0; i < count; i++)
        if (columns[i].type == TUNE_CELL_TEXT && !tune_utf8_valid(row[i].text, strlen(row[i].text), NULL))
            tell_row(c, scan, table, "its \"%.100s\" is no UTF-8", columns[i].name);
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
            TRY(tune_store_path(c->store, path, c->store->files[tune_scan_place(scan).file].name));
            told(c, path, tune_error_message());
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
static int tell_files(struct tune_store *s, void (*file)(void *context, const char *file, int64_t rows, bool checked), void *context)
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
    int status = tune_store_catalogue(s, tell_file, &c);
    if (status == 0 && file)
        status = tell_files(s, file, context);
    const char *const *tables = status < 0 ? NULL : tune_store_tables(s, &count);
    for (int i = 0; i < count && status == 0; i++)
        status = check_table(&c, tables[i], check_measurement);
    if (status == 0)
        status = check_table(&c, TUNE_STORE_REQUESTS, check_request);
    tune_store_forget_catalogue(s); /* and forget which files were left out */
    tune_map_free(&c.uids);
    return status < 0 ? -1 : c.problems;
}
