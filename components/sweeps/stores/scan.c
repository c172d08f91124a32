/* scan.c - read the rows of a table from all files, block by block. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/try.h"
#include "sweeps/stores/store_parts.h"

/* Bytes per read: a megabyte for a pass in order, a few rows for single rows. */
enum { BLOCK_ON = 1 << 20, BLOCK_AT = 32 << 10 };
/* Maximum number of files kept open for tune_scan_at. The results of an entity are in one file for
 * each of its operations. Those of the next entity are near them. */
enum { WINDOWS = 16 };

/* A block of rows of one file. */
struct window {
    int file; /* number of the file; -1: none is open */
    int fd;
    struct tune_sample_file *content;
    const struct tune_sample_table *table; /* NULL: the file has no such table */
    int *map;                              /* [scan->count] index of the file's column; -1: none */
    int uid;                               /* index of the column uid; -1: none */
    struct tune_sample_block block, reasons;
    int64_t used;                          /* time of the last read */
};

struct tune_scan {
    struct tune_store *store;
    char *table; /* NULL: the requests */
    int count, files;
    char **names;
    struct tune_column *columns; /* [count] columns of the store; only their types are used */
    struct tune_cell *cells;
    struct tune_cell *defaults;  /* [count] for files that lack a column; text: our copy. NULL: absent */
    char *texts;                 /* [count][TUNE_STORE_TEXT_MAX + 16] copies of texts without a NUL
                                  * in the block */
    struct window on, at[WINDOWS];
    int64_t reads;               /* number of calls of tune_scan_at */
    int file;                    /* file of tune_scan_next */
    int64_t next;                /* next row of tune_scan_next in the file */
    struct tune_row_position position;
    bool everything;             /* read forgotten rows, too */
    int64_t forgotten;           /* number of rows that tune_scan_next left out */
};

static void close_window(struct window *w)
{
    if (w->file < 0)
        return;
    tune_sample_free(w->content);
    close(w->fd);
    w->file = -1;
    w->block.rows = w->reasons.rows = 0;
}

static void free_window(struct window *w)
{
    close_window(w);
    free(w->map);
    free(w->block.data);
    free(w->reasons.data);
}

static int find_column(const struct tune_sample_table *t, const char *name)
{
    for (int i = 0; i < t->column_count; i++)
        if (!strcmp(t->columns[i].column.name, name))
            return i;
    return -1;
}

static int open_window(struct tune_scan *s, struct window *w, int file)
{
    struct tune_store *store = s->store;
    if (w->file == file)
        return 0;
    close_window(w);
    w->fd = tune_store_open_file(store, file, &w->content);
    TRY(w->fd);
    w->file = file;
    w->table = tune_sample_table(w->content, s->table);
    w->uid = w->table ? find_column(w->table, "uid") : -1; /* the name in rows and requests */
    for (int i = 0; i < s->count && w->table; i++) {
        w->map[i] = find_column(w->table, s->names[i]);
        bool text = w->map[i] >= 0 && w->table->columns[w->map[i]].column.type == TUNE_CELL_TEXT;
        /* the file was replaced since the catalogue was made */
        if (w->map[i] >= 0 && text != (s->columns[i].type == TUNE_CELL_TEXT)) {
            tune_error_set("%s/%s: the column \"%s\" is a %s, but not in the other files",
                           store->folder, store->files[file].name,
                           s->names[i], text ? "text" : "number");
            close_window(w);
            return -1;
        }
    }
    return 0;
}

static int load_block(struct tune_scan *s, struct window *w, int64_t row, int64_t bytes)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_store_path(s->store, path, s->store->files[w->file].name));
    return tune_sample_load(w->fd, path, tune_sample_title(s->table), &w->table->at, row, bytes, &w->block);
}

/* Copy the text of a reason's number to `to`. */
static int read_reason(struct tune_scan *s, struct window *w, int64_t number, char *to)
{
    const struct tune_sample_extent *at = &w->content->reasons;
    char path[TUNE_PATH_MAX];
    to[0] = 0;
    if (number == 0)
        return 0;
    TRY(tune_store_path(s->store, path, s->store->files[w->file].name));
    if (number < 0 || number >= at->rows)
        return tune_error_set("%s: table %s: row %d has the reason number %lld, but there are only "
                              "%lld reasons",
                              path, tune_sample_title(s->table), s->position.row, (long long)number,
                              (long long)at->rows);
    TRY(tune_sample_load(w->fd, path, "reasons", at, number, BLOCK_AT, &w->reasons));
    memcpy(to, w->reasons.data + (number - w->reasons.first) * at->row_bytes, (size_t)at->row_bytes);
    to[at->row_bytes] = 0;
    return 0;
}

static int take_cell(struct tune_scan *s, struct window *w, int i, const char *row)
{
    struct tune_cell *cell = &s->cells[i];
    char *text = s->texts + (size_t)i * (TUNE_STORE_TEXT_MAX + 16);
    const struct tune_sample_column *c = w->map[i] < 0 ? NULL : &w->table->columns[w->map[i]];
    *cell = (struct tune_cell){.absent = true, .text = s->columns[i].type == TUNE_CELL_TEXT ? "" : NULL, .number = NAN};
    if (!c) {
        *cell = s->defaults && !s->defaults[i].absent ? s->defaults[i] : *cell;
        return 0;
    }
    const char *data = row + c->offset;
    if (c->column.type == TUNE_CELL_NUMBER) {
        memcpy(&cell->number, data, sizeof cell->number);
        cell->absent = isnan(cell->number);
        return 0;
    }
    if (c->column.type == TUNE_CELL_WHOLE || c->reason)
        memcpy(&cell->whole, data, sizeof cell->whole);
    if (c->column.type == TUNE_CELL_WHOLE) {
        cell->number = (double)cell->whole;
        cell->absent = false;
        return 0;
    }
    if (c->reason) {
        TRY(read_reason(s, w, cell->whole, text));
        cell->text = text;
    } else if (data[c->size - 1] == 0) {
        cell->text = data;
    } else {
        memcpy(text, data, (size_t)c->size);
        text[c->size] = 0;
        cell->text = text;
    }
    cell->absent = !*cell->text;
    return 0;
}

static int read_cells(struct tune_scan *s, struct window *w, int64_t row, const struct tune_cell **cells)
{
    const char *data = w->block.data + (row - w->block.first) * w->table->at.row_bytes;
    s->position = (struct tune_row_position){w->file, (int)row};
    for (int i = 0; i < s->count; i++)
        TRY(take_cell(s, w, i, data));
    *cells = s->cells;
    return 0;
}

/* True if the loaded row is forgotten. */
static bool is_forgotten(const struct tune_scan *s, const struct window *w, int64_t row)
{
    if (s->everything || w->uid < 0 || s->store->tombstones.rows.count == 0)
        return false;
    const struct tune_sample_column *c = &w->table->columns[w->uid];
    const char *uid = w->block.data + (row - w->block.first) * w->table->at.row_bytes + c->offset;
    return tune_tombstones_has(s->store, uid, strnlen(uid, (size_t)c->size));
}

/* ---- public functions ---- */

static int prepare(struct tune_scan *scan, const struct tune_store_union *u, const char *const *names, int count)
{
    size_t n = (size_t)count + 1;
    scan->names = calloc(n, sizeof *scan->names);
    scan->columns = calloc(n, sizeof *scan->columns);
    scan->cells = calloc(n, sizeof *scan->cells);
    scan->texts = malloc(n * (TUNE_STORE_TEXT_MAX + 16));
    scan->on.map = calloc(n, sizeof *scan->on.map);
    bool good = scan->names && scan->columns && scan->cells && scan->texts && scan->on.map;
    for (int i = 0; i < WINDOWS && good; i++)
        good = (scan->at[i].map = calloc(n, sizeof *scan->at[i].map)) != NULL;
    if (good && u->name)
        good = (scan->table = strdup(u->name)) != NULL;
    for (scan->count = 0; good && scan->count < count; scan->count++) {
        int i = 0;
        while (i < u->count && strcmp(u->columns[i].name, names[scan->count]))
            i++;
        scan->columns[scan->count] = i < u->count ? u->columns[i] : (struct tune_column){.type = TUNE_CELL_NUMBER};
        good = (scan->names[scan->count] = strdup(names[scan->count])) != NULL;
    }
    return good ? 0 : tune_store_no_memory("a pass over a store");
}

struct tune_scan *tune_scan_open(struct tune_store *s, const char *experiment, const char *const *names, int count)
{
    int all;
    if (!tune_store_columns(s, experiment, &all) || tune_tombstones_read(s, NULL, NULL) < 0)
        return NULL;
    struct tune_scan *scan = calloc(1, sizeof *scan);
    if (!scan) {
        tune_store_no_memory("a pass over a store");
        return NULL;
    }
    scan->store = s;
    scan->on.file = -1;
    for (int i = 0; i < WINDOWS; i++)
        scan->at[i].file = -1;
    scan->files = s->file_count;
    scan->position = (struct tune_row_position){-1, -1};
    if (prepare(scan, tune_store_find_union(s, strcmp(experiment, TUNE_STORE_REQUESTS) ? experiment : NULL), names, count) == 0)
        return scan;
    tune_scan_free(scan);
    return NULL;
}

struct tune_scan *tune_scan_keys(struct tune_store *s, const char *experiment, const int *keys, int count)
{
    const char *names[TUNE_KEYS];
    bool requests = !strcmp(experiment, TUNE_STORE_REQUESTS);
    for (int i = 0; i < count; i++)
        names[i] = (requests ? tune_request_column((enum tune_request_key)keys[i]) : tune_key_column((enum tune_key)keys[i]))->name;
    return tune_scan_open(s, experiment, names, count);
}

int tune_scan_default(struct tune_scan *scan, int i, const struct tune_cell *cell)
{
    char *text = cell->text ? strdup(cell->text) : NULL;
    if (!scan->defaults && (scan->defaults = calloc((size_t)scan->count, sizeof *scan->defaults)))
        for (int k = 0; k < scan->count; k++)
            scan->defaults[k].absent = true;
    if (!scan->defaults || (cell->text && !text)) {
        free(text);
        return tune_store_no_memory("a pass over a store");
    }
    scan->defaults[i] = *cell;
    scan->defaults[i].text = text;
    return 0;
}

void tune_scan_free(struct tune_scan *scan)
{
    if (!scan)
        return;
    for (int i = 0; i < scan->count && scan->defaults; i++)
        free((char *)scan->defaults[i].text);
    free(scan->defaults);
    free_window(&scan->on);
    for (int i = 0; i < WINDOWS; i++)
        free_window(&scan->at[i]);
    for (int i = 0; i < scan->count && scan->names; i++)
        free(scan->names[i]);
    free(scan->names);
    free(scan->columns);
    free(scan->cells);
    free(scan->texts);
    free(scan->table);
    free(scan);
}

int tune_scan_next(struct tune_scan *scan, const struct tune_cell **cells)
{
    if (scan && !scan->everything) /* a refresh may have found other tombstones */
        TRY(tune_tombstones_read(scan->store, NULL, NULL));
    while (scan && scan->file < scan->files) {
        struct window *w = &scan->on;
        const struct tune_store_file *f = &scan->store->files[scan->file];
        bool skip = f->gone || f->broken;
        int status = skip ? 0 : open_window(scan, w, scan->file);
        if (status == 0 && !skip && w->table && scan->next < w->table->at.rows) {
            status = load_block(scan, w, scan->next, BLOCK_ON);
            if (status == 0 && is_forgotten(scan, w, scan->next)) {
                scan->forgotten++;
                scan->next++;
                continue;
            }
            if (status == 0 && read_cells(scan, w, scan->next, cells) == 0) {
                scan->next++;
                return 1;
            }
            status = -1;
        }
        if (status < 0)
            scan->position = (struct tune_row_position){scan->file, (int)scan->next};
        close_window(w);
        scan->file++; /* also for a broken file, so that the next call reads the next file */
        scan->next = 0;
        TRY(status);
    }
    return scan ? 0 : -1;
}

void tune_scan_everything(struct tune_scan *scan)
{
    if (scan)
        scan->everything = true;
}

int64_t tune_scan_forgotten(const struct tune_scan *scan)
{
    return scan->forgotten;
}

struct tune_row_position tune_scan_position(const struct tune_scan *scan)
{
    return scan->position;
}

/* Find the window of the file, or reuse the least recently used one. */
static struct window *window_of(struct tune_scan *scan, int file)
{
    struct window *oldest = &scan->at[0];
    for (int i = 0; i < WINDOWS; i++) {
        if (scan->at[i].file == file)
            return &scan->at[i];
        oldest = scan->at[i].used < oldest->used ? &scan->at[i] : oldest;
    }
    return oldest;
}

int tune_scan_at(struct tune_scan *scan, struct tune_row_position position, const struct tune_cell **cells)
{
    struct window *w = window_of(scan, position.file);
    w->used = ++scan->reads;
    if (position.file < 0 || position.file >= scan->files)
        return tune_error_set("%s has no file with the number %d", scan->store->folder, position.file);
    TRY(open_window(scan, w, position.file));
    if (!w->table || position.row < 0 || position.row >= w->table->at.rows)
        return tune_error_set("%s/%s has no row %d any more", scan->store->folder,
                              scan->store->files[position.file].name, position.row);
    TRY(load_block(scan, w, position.row, BLOCK_AT));
    return read_cells(scan, w, position.row, cells);
}
