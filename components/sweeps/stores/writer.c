/* writer.c - the file that this process writes. Its rows are kept in memory, and every append
 * writes the whole file again.
 *
 * A file has at most two megabytes, so this costs milliseconds, less than the fsync. So the file on
 * the disk is always complete. If a write fails, only the new row is removed. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/array.h"
#include "files/json.h"
#include "core/try.h"
#include "sweeps/stores/shared.h"
#include "sweeps/stores/store_parts.h"

/* A file above this size is finished before it has TUNE_STORE_FILE_ROWS. */
#define FILE_BYTES (6 << 20)
/* Age of leftover temporary files. Writing one takes milliseconds, so an older one was left by a
 * killed process. */
#define LEFTOVER_S 60

struct table {
    char *name;                  /* name of the experiment; NULL: the requests */
    struct tune_column *columns; /* [count] columns, keys first; NULL: static ones */
    const struct tune_column *shown;
    int count;
    struct tune_cell **rows;     /* rows of the current file */
    int row_count, written;      /* written: number of rows on the disk */
};

struct tune_store_writer {
    struct table *tables; /* tables, the requests first */
    int table_count;
    char name[192];       /* name of the current file; "": not named yet */
    size_t bytes;         /* bytes of its rows on the disk */
    bool batch;
};

static void free_columns(struct table *t)
{
    tune_store_columns_free(t->columns, TUNE_KEYS, t->count);
    t->columns = NULL;
    t->count = 0;
}

static void remove_rows(struct table *t, int from)
{
    for (int i = from; i < t->row_count; i++)
        free(t->rows[i]);
    t->row_count = from;
}

void tune_store_writer_free(struct tune_store_writer *w)
{
    if (!w)
        return;
    for (int i = 0; i < w->table_count; i++) {
        remove_rows(&w->tables[i], 0);
        free_columns(&w->tables[i]);
        free(w->tables[i].rows);
        free(w->tables[i].name);
    }
    free(w->tables);
    free(w);
}

const char *tune_store_own_file(const struct tune_store *s)
{
    return s->writer ? s->writer->name : "";
}

static struct tune_store_writer *writer_of(struct tune_store *s)
{
    if (s->writer)
        return s->writer;
    struct tune_store_writer *w = calloc(1, sizeof *w);
    struct table *requests = NULL;
    if (!w || !tune_array_fit(&requests, 0, sizeof *requests)) {
        free(w);
        tune_store_no_memory("writing to a store");
        return NULL;
    }
    *requests = (struct table){.shown = tune_request_column(0), .count = TUNE_REQUEST_KEYS};
    w->tables = requests;
    w->table_count = 1;
    return s->writer = w;
}

/* ---- the file ---- */

/* The minimum age in seconds of a leftover temporary file; -1: its process is alive. It is a day
 * for rows of another host, where the process may be suspended. It is an hour for records, whose
 * names do not include the process. */
static int least_age(const char *name, const char *host)
{
    char tail[128];
    const char *digits = strrchr(name, '-');
    long pid = digits ? strtol(digits + 1, NULL, 10) : 0;
    snprintf(tail, sizeof tail, "-%s-%ld.h5.tmp-%ld", host, pid, pid);
    size_t n = strlen(name), m = strlen(tail);
    if (!strstr(name, ".h5.tmp-"))
        return 3600;
    if (pid <= 0 || n <= m || strcmp(name + n - m, tail))
        return 24 * 3600;
    return pid == getpid() || (kill((pid_t)pid, 0) < 0 && errno == ESRCH) ? LEFTOVER_S : -1;
}

/* Remove old temporary files in the store and in its folders. */
static void remove_left_behind(const struct tune_store *s, const char *folder, const char *host)
{
    char path[TUNE_PATH_MAX];
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (*e->d_name == '.' || tune_path(path, "%s/%s", folder, e->d_name) < 0)
            continue;
        int age = tune_file_is_leftover(e->d_name) ? least_age(e->d_name, host) : -1;
        if (folder == s->folder && e->d_type == DT_DIR)
            remove_left_behind(s, path, host);
        else if (age >= 0 && tune_shared_older(path, age))
            unlink(path);
    }
    if (d)
        closedir(d);
}

/* Name the current file. Names sort by the time at which files were begun. */
static int name_file(struct tune_store *s, struct tune_store_writer *w)
{
    char host[65], path[TUNE_PATH_MAX], stamp[32];
    struct timespec now;
    struct tm utc;
    tune_store_host(host);
    remove_left_behind(s, s->folder, host);
    do {
        clock_gettime(CLOCK_REALTIME, &now);
        strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%S", gmtime_r(&now.tv_sec, &utc));
        snprintf(w->name, sizeof w->name, "%s.%06ldZ-%s-%ld.h5", stamp, now.tv_nsec / 1000, host, (long)getpid());
        TRY(tune_store_path(s, path, w->name));
    } while (tune_file_exists(path));
    return 0;
}

static void next_file(struct tune_store_writer *w)
{
    for (int i = 0; i < w->table_count; i++) {
        remove_rows(&w->tables[i], 0);
        w->tables[i].written = 0;
    }
    w->name[0] = 0;
    w->bytes = 0;
}

static int write_file(struct tune_store *s, struct tune_store_writer *w)
{
    struct tune_sample_rows *tables = calloc((size_t)w->table_count, sizeof *tables);
    char path[TUNE_PATH_MAX], *image = NULL;
    int n = 0;
    if (!tables)
        return tune_store_no_memory("a sample file");
    for (int i = 0; i < w->table_count; i++) {
        const struct table *t = &w->tables[i];
        if (t->row_count > 0)
            tables[n++] = (struct tune_sample_rows){t->name, t->shown, t->count, t->rows, t->row_count};
    }
    bool fresh = !w->name[0];
    size_t size;
    int status = fresh ? name_file(s, w) : 0;
    if (status == 0)
        status = tune_store_path(s, path, w->name);
    if (status == 0)
        status = tune_sample_image(tables, n, &image, &size);
    if (status == 0)
        status = tune_file_write(path, image, size);
    if (status == 0)
        w->bytes = size;
    else if (fresh)
        w->name[0] = 0;
    free(image);
    free(tables);
    return status < 0 ? -1 : fresh ? tune_store_add_file(s, w->name) : 0;
}

/* Write all rows to the disk, or remove those that are not there yet. */
static int flush(struct tune_store *s, struct tune_store_writer *w)
{
    int status = write_file(s, w);
    for (int i = 0; i < w->table_count; i++) {
        struct table *t = &w->tables[i];
        if (status < 0)
            remove_rows(t, t->written);
        t->written = t->row_count;
    }
    w->batch = w->batch && status == 0;
    return status;
}

static bool is_dirty(const struct tune_store_writer *w)
{
    for (int i = 0; i < w->table_count; i++)
        if (w->tables[i].row_count > w->tables[i].written)
            return true;
    return false;
}

/* Begin the next file if the current one is full. */
static int begin_file_if_full(struct tune_store *s, struct tune_store_writer *w)
{
    int measured = 0;
    for (int i = 1; i < w->table_count; i++)
        measured += w->tables[i].row_count;
    if (measured < TUNE_STORE_FILE_ROWS && w->tables[0].row_count < TUNE_STORE_FILE_ROWS && w->bytes < FILE_BYTES)
        return 0;
    if (is_dirty(w))
        TRY(flush(s, w));
    next_file(w);
    return 0;
}

/* ---- rows ---- */

static int check_cell(const struct table *t, int i, const struct tune_cell *cell)
{
    const struct tune_column *c = &t->shown[i];
    const char *table = tune_sample_title(t->name);
    size_t bad;
    if (c->type == TUNE_CELL_WHOLE && cell->absent)
        return tune_error_set("%s: the column \"%s\" of whole numbers has no value in this row, "
                              "but every row needs one",
                              table, c->name);
    if (c->type != TUNE_CELL_TEXT || cell->absent)
        return 0;
    size_t n = strlen(cell->text);
    if (n > TUNE_STORE_TEXT_MAX)
        return tune_error_usage("%s: the text of \"%s\" has %zu bytes, but a store takes at most "
                                "%d: %.40s...", table, c->name, n, TUNE_STORE_TEXT_MAX,
                                cell->text);
    if (!tune_utf8_valid(cell->text, n, &bad))
        return tune_error_usage("%s: the text of \"%s\" is not UTF-8 from byte %zu on", table,
                                c->name, bad);
    return 0;
}

/* Copy the cells, with their texts after them. */
static struct tune_cell *copy_row(const struct table *t, const struct tune_cell *cells)
{
    size_t size = (size_t)t->count * sizeof *cells;
    for (int i = 0; i < t->count; i++) {
        if (check_cell(t, i, &cells[i]) < 0)
            return NULL;
        if (t->shown[i].type == TUNE_CELL_TEXT && !cells[i].absent)
            size += strlen(cells[i].text) + 1;
    }
    struct tune_cell *row = malloc(size);
    if (!row) {
        tune_store_no_memory("a row of a store");
        return NULL;
    }
    memcpy(row, cells, (size_t)t->count * sizeof *cells);
    char *texts = (char *)(row + t->count);
    for (int i = 0; i < t->count; i++)
        if (t->shown[i].type == TUNE_CELL_TEXT && !cells[i].absent) {
            row[i].text = strcpy(texts, cells[i].text);
            texts += strlen(texts) + 1;
        }
    return row;
}

static int add_row(struct table *t, const struct tune_cell *cells)
{
    if (!t->rows && !(t->rows = calloc(TUNE_STORE_FILE_ROWS, sizeof *t->rows)))
        return tune_store_no_memory("rows of a store");
    struct tune_cell *row = copy_row(t, cells);
    if (!row)
        return -1;
    t->rows[t->row_count++] = row;
    return 0;
}

/* Append the row and the request at once. Either may be NULL. */
static int append_row(struct tune_store *s, struct table *t, const struct tune_cell *cells, const struct tune_cell *request)
{
    struct tune_store_writer *w = s->writer;
    TRY(begin_file_if_full(s, w));
    if (cells && add_row(t, cells) < 0)
        return -1;
    if (request && add_row(&w->tables[0], request) < 0) {
        if (cells)
            remove_rows(t, t->row_count - 1);
        return -1;
    }
    return w->batch ? 0 : flush(s, w);
}

/* ---- tables ---- */

static struct table *find_table(struct tune_store_writer *w, const char *name)
{
    for (int i = 1; i < w->table_count; i++)
        if (!strcmp(w->tables[i].name, name))
            return &w->tables[i];
    return NULL;
}

static int check_columns(const char *experiment, const struct tune_column *columns, int count)
{
    TRY(tune_store_check_name("an experiment", experiment));
    if (!strcmp(experiment, TUNE_STORE_REQUESTS))
        return tune_error_set("an experiment cannot have the name \"%s\", because each store has "
                              "another table of that name", experiment);
    for (int i = 0; i < count; i++) {
        const struct tune_column *c = &columns[i];
        bool twice = false;
        for (int k = 0; k < TUNE_KEYS + i && !twice; k++)
            twice = !strcmp(c->name, k < TUNE_KEYS ? tune_key_column((enum tune_key)k)->name : columns[k - TUNE_KEYS].name);
        if (twice || c->role == TUNE_COLUMN_KEY)
            return tune_error_usage("%s: the table of this experiment has another column \"%s\"; "
                                    "give this one another name", experiment, c->name);
        if (!*c->name || strlen(c->name) > TUNE_STORE_NAME_MAX || strlen(c->unit) > TUNE_STORE_NAME_MAX ||
            !tune_utf8_valid(c->name, strlen(c->name), NULL) || !tune_utf8_valid(c->unit, strlen(c->unit), NULL)) {
            return tune_error_usage("%s: the column \"%.100s\" with the unit \"%.100s\": expected "
                                    "a name that is not empty, and at most %d bytes of UTF-8 for "
                                    "each", experiment,
                                    c->name, c->unit, TUNE_STORE_NAME_MAX);
        }
    }
    return 0;
}

static int copy_columns(struct table *t, const struct tune_column *columns, int count)
{
    if (!(t->columns = calloc((size_t)(TUNE_KEYS + count), sizeof *t->columns)))
        return tune_store_no_memory("a table of a store");
    for (int i = 0; i < TUNE_KEYS; i++)
        t->columns[i] = *tune_key_column((enum tune_key)i);
    t->shown = t->columns;
    t->count = TUNE_KEYS;
    for (int i = 0; i < count; i++) {
        struct tune_column *c = &t->columns[t->count++];
        *c = columns[i];
        c->name = strdup(columns[i].name);
        c->unit = strdup(columns[i].unit);
        if (!c->name || !c->unit)
            return tune_store_no_memory("a table of a store");
    }
    return 0;
}

static bool same_columns(const struct table *t, const struct tune_column *columns, int count)
{
    bool same = t->count == TUNE_KEYS + count;
    for (int i = 0; i < count && same; i++) {
        const struct tune_column *a = &t->columns[TUNE_KEYS + i], *b = &columns[i];
        same = !strcmp(a->name, b->name) && !strcmp(a->unit, b->unit) && a->type == b->type && a->role == b->role &&
               a->whole == b->whole;
    }
    return same;
}

/* Check that HDF5 can store the table, by making a file without rows. */
static int try_table(const struct table *t)
{
    char *image = NULL;
    size_t size;
    struct tune_sample_rows rows = {.name = t->name, .columns = t->shown, .column_count = t->count};
    int status = tune_sample_image(&rows, 1, &image, &size);
    free(image);
    if (status < 0)
        tune_error_prefix("%s with its %d columns: ", t->name, t->count);
    return status;
}

/* Find or add a table with this name. */
static struct table *place_table(struct tune_store_writer *w, const char *name)
{
    struct table *t = find_table(w, name);
    if (t)
        return t;
    if (!tune_array_fit(&w->tables, (size_t)w->table_count, sizeof *w->tables))
        return NULL;
    t = &w->tables[w->table_count];
    *t = (struct table){.name = strdup(name)};
    if (!t->name)
        return NULL;
    w->table_count++;
    return t;
}

int tune_store_table(struct tune_store *s, const char *experiment, const struct tune_column *columns, int count)
{
    struct tune_store_writer *w = writer_of(s);
    TRY(w ? 0 : -1);
    struct table *t = find_table(w, experiment), fresh = {.name = (char *)(uintptr_t)experiment};
    if (t && same_columns(t, columns, count))
        return 0;
    TRY(check_columns(experiment, columns, count));
    TRY(tune_store_agrees(s, experiment, columns, count));
    if (copy_columns(&fresh, columns, count) < 0 || try_table(&fresh) < 0 || (is_dirty(w) && flush(s, w) < 0)) {
        free_columns(&fresh);
        return -1;
    }
    if (t) /* the columns changed, but the current file's rows have the old ones */
        next_file(w);
    if (!(t = place_table(w, experiment))) {
        free_columns(&fresh);
        return tune_store_no_memory("a table of a store");
    }
    free_columns(t);
    t->columns = fresh.columns;
    t->shown = fresh.shown;
    t->count = fresh.count;
    return 0;
}

static struct table *announced(const struct tune_store *s, const char *experiment)
{
    struct table *t = s->writer ? find_table(s->writer, experiment) : NULL;
    if (!t)
        tune_error_set("no table \"%s\" was announced before its rows", experiment);
    return t;
}

int tune_store_fits(const struct tune_store *s, const char *experiment, const struct tune_cell *cells)
{
    const struct table *t = announced(s, experiment);
    TRY(t ? 0 : -1);
    for (int i = 0; i < t->count; i++)
        TRY(check_cell(t, i, &cells[i]));
    return 0;
}

int tune_store_append(struct tune_store *s, const char *experiment, const struct tune_cell *cells, const struct tune_cell *request)
{
    struct table *t = announced(s, experiment);
    return t ? append_row(s, t, cells, request) : -1;
}

int tune_store_request(struct tune_store *s, const struct tune_cell *request)
{
    return writer_of(s) ? append_row(s, NULL, NULL, request) : -1;
}

void tune_store_begin(struct tune_store *s)
{
    struct tune_store_writer *w = writer_of(s);
    if (w)
        w->batch = true;
}

int tune_store_commit(struct tune_store *s)
{
    struct tune_store_writer *w = s->writer;
    if (!w)
        return 0;
    int status = is_dirty(w) ? flush(s, w) : 0;
    w->batch = false;
    return status;
}
