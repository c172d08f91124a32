/* catalogue.c - collect the tables and columns of all files of a store. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/array.h"
#include "core/print.h"
#include "core/try.h"
#include "sweeps/stores/store_parts.h"

const struct tune_store_union *tune_store_find_union(const struct tune_store *s, const char *name)
{
    for (int i = 0; i < s->union_count; i++)
        if (name ? s->unions[i].name && !strcmp(s->unions[i].name, name) : !s->unions[i].name)
            return &s->unions[i];
    return NULL;
}

void tune_store_columns_free(struct tune_column *columns, int keys, int count)
{
    for (int i = keys; columns && i < count; i++) {
        free((char *)(uintptr_t)columns[i].name);
        free((char *)(uintptr_t)columns[i].unit);
    }
    free(columns);
}

/* Add a column; texts are copied. */
static int add_column(struct tune_store_union *u, const struct tune_column *column, int file)
{
    if (!tune_array_fit(&u->columns, (size_t)u->count, sizeof *u->columns) ||
        !tune_array_fit(&u->files, (size_t)u->count, sizeof *u->files))
        return tune_store_no_memory("the columns of a store");
    struct tune_column copy = *column;
    copy.name = strdup(column->name);
    copy.unit = strdup(column->unit);
    u->files[u->count] = file;
    u->columns[u->count++] = copy;
    return copy.name && copy.unit ? 0 : tune_store_no_memory("the columns of a store");
}

/* Add a union. It begins with the columns that every table has. */
static struct tune_store_union *add_union(struct tune_store *s, const char *name)
{
    if (!tune_array_fit(&s->unions, (size_t)s->union_count, sizeof *s->unions)) {
        tune_store_no_memory("the tables of a store");
        return NULL;
    }
    struct tune_store_union *u = &s->unions[s->union_count++];
    *u = (struct tune_store_union){.name = name ? strdup(name) : NULL};
    int status = name && !u->name ? tune_store_no_memory("the tables of a store") : 0;
    for (int i = 0; i < (name ? TUNE_KEYS : TUNE_REQUEST_KEYS) && status == 0; i++)
        status = add_column(u, name ? tune_key_column((enum tune_key)i) : tune_request_column((enum tune_request_key)i), -1);
    return status < 0 ? NULL : u;
}

/* Find the index of a column in u. hint is tried first, because files usually have the same columns
 * in the same order. */
static int find_column(const struct tune_store_union *u, const char *name, int hint)
{
    if (hint < u->count && !strcmp(u->columns[hint].name, name))
        return hint;
    for (int i = 0; i < u->count; i++)
        if (!strcmp(u->columns[i].name, name))
            return i;
    return -1;
}

/* Report a column that is a text in one file and a number in another. */
static int check_types(const struct tune_store *s, const struct tune_store_union *u, int i, const struct tune_column *c,
                       const char *where)
{
    const struct tune_column *have = &u->columns[i];
    if ((have->type == TUNE_CELL_TEXT) == (c->type == TUNE_CELL_TEXT))
        return 0;
    return tune_error_set("%s: the column \"%s\" of experiment %s is a %s in %s but a %s in %s, so "
                          "two experiments have the same name; give one of them another name, or "
                          "use another store for it", s->folder, c->name,
                          tune_sample_title(u->name),
                          have->type == TUNE_CELL_TEXT ? "text" : "number",
                          u->files[i] < 0 ? "every table" : s->files[u->files[i]].name,
                          c->type == TUNE_CELL_TEXT ? "text" : "number", where);
}

static bool is_count(const struct tune_column *c)
{
    return c->whole || c->type == TUNE_CELL_WHOLE;
}

/* Add a column to the union. If it is WHOLE in one file and NUMBER in another, it becomes
 * NUMBER. */
static int unite_column(struct tune_store *s, struct tune_store_union *u, const struct tune_column *c, int file, int hint)
{
    int i = find_column(u, c->name, hint);
    if (i < 0)
        return add_column(u, c, file);
    TRY(check_types(s, u, i, c, s->files[file].name));
    struct tune_column *have = &u->columns[i];
    if (have->type == c->type) {
        have->whole = have->whole && c->whole;
    } else {
        have->whole = is_count(have) && is_count(c);
        have->type = TUNE_CELL_NUMBER;
    }
    return 0;
}

static int unite_file(struct tune_store *s, int file, const struct tune_sample_file *content)
{
    for (int i = 0; i < content->table_count; i++) {
        const struct tune_sample_table *t = &content->tables[i];
        struct tune_store_union *u = (struct tune_store_union *)(uintptr_t)tune_store_find_union(s, t->name);
        if (!u && !(u = add_union(s, t->name)))
            return -1;
        for (int c = 0; c < t->column_count; c++)
            TRY(unite_column(s, u, &t->columns[c].column, file, c));
    }
    return 0;
}

/* Sort columns: keys, inputs, targets, each in first-seen order. */
static int sort_by_role(struct tune_store_union *u)
{
    struct tune_column *columns = calloc((size_t)u->count, sizeof *columns);
    int *files = calloc((size_t)u->count, sizeof *files), n = 0;
    for (int role = 0; role < 3 && columns && files; role++)
        for (int i = 0; i < u->count; i++)
            if ((int)u->columns[i].role == role) {
                columns[n] = u->columns[i];
                files[n++] = u->files[i];
            }
    if (!columns || !files) {
        free(columns);
        free(files);
        return tune_store_no_memory("the columns of a store");
    }
    free(u->columns);
    free(u->files);
    u->columns = columns;
    u->files = files;
    return 0;
}

static int by_union_name(const void *a, const void *b)
{
    const char *x = ((const struct tune_store_union *)a)->name, *y = ((const struct tune_store_union *)b)->name;
    return !x || !y ? !y - !x : strcmp(x, y);
}

static int add_files(struct tune_store *s, tune_store_problem *problem, void *context)
{
    for (int i = 0; i < s->file_count; i++) {
        char path[TUNE_PATH_MAX];
        struct tune_sample_file *content = NULL;
        if (s->files[i].gone)
            continue;
        int fd = tune_store_open_file(s, i, &content);
        int status = fd < 0 ? -1 : unite_file(s, i, content);
        tune_sample_free(content);
        if (fd >= 0)
            close(fd);
        if (status == 0)
            continue;
        if (!problem || tune_error_kind() == TUNE_ERROR_CANNOT)
            return -1;
        TRY(tune_store_path(s, path, s->files[i].name));
        problem(context, path, tune_error_message());
        s->files[i].broken = true;
    }
    return 0;
}

int tune_store_catalogue(struct tune_store *s, tune_store_problem *problem, void *context)
{
    if (s->unions)
        return 0;
    int status = add_union(s, NULL) ? add_files(s, problem, context) : -1;
    for (int i = 0; i < s->union_count && status == 0; i++)
        status = sort_by_role(&s->unions[i]);
    if (status == 0 && !(s->names = calloc((size_t)s->union_count, sizeof *s->names)))
        status = tune_store_no_memory("the tables of a store");
    if (status < 0) {
        tune_store_forget_catalogue(s);
        return -1;
    }
    qsort(s->unions, (size_t)s->union_count, sizeof *s->unions, by_union_name);
    for (int i = 1; i < s->union_count; i++)
        s->names[i - 1] = s->unions[i].name;
    return 0;
}

void tune_store_forget_catalogue(struct tune_store *s)
{
    for (int i = 0; i < s->union_count; i++) {
        struct tune_store_union *u = &s->unions[i];
        tune_store_columns_free(u->columns, 0, u->count);
        free(u->files);
        free(u->name);
    }
    free(s->unions);
    free(s->names);
    s->unions = NULL;
    s->names = NULL;
    s->union_count = 0;
    for (int i = 0; i < s->file_count; i++)
        s->files[i].broken = false;
}

const char *const *tune_store_tables(struct tune_store *s, int *count)
{
    if (tune_store_catalogue(s, NULL, NULL) < 0)
        return NULL;
    *count = s->union_count - 1;
    return s->names;
}

bool tune_store_has(struct tune_store *s, const char *experiment)
{
    return tune_store_catalogue(s, NULL, NULL) == 0 && tune_store_find_union(s, experiment);
}

int tune_store_agrees(struct tune_store *s, const char *experiment, const struct tune_column *columns, int count)
{
    TRY(tune_store_catalogue(s, NULL, NULL));
    const struct tune_store_union *u = tune_store_find_union(s, experiment);
    for (int i = 0; i < count && u; i++) {
        int at = find_column(u, columns[i].name, TUNE_KEYS + i);
        if (at >= 0)
            TRY(check_types(s, u, at, &columns[i], "this program"));
    }
    return 0;
}

const struct tune_column *tune_store_columns(struct tune_store *s, const char *experiment, int *count)
{
    if (tune_store_catalogue(s, NULL, NULL) < 0)
        return NULL;
    const struct tune_store_union *u = tune_store_find_union(s, strcmp(experiment, TUNE_STORE_REQUESTS) ? experiment : NULL);
    if (!u) {
        char names[512] = "";
        for (int i = 1; i < s->union_count; i++)
            tune_append_item(names, sizeof names, "%s", s->names[i - 1]);
        tune_error_set("%s has no measurements of experiment \"%s\"; it has measurements of: %s",
                       s->folder, experiment,
                       *names ? names : "nothing yet");
        return NULL;
    }
    *count = u->count;
    return u->columns;
}
