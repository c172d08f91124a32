/* points.c - read lists of points. */
#include "sweeps/spaces/points.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/map.h"
#include "core/nearest.h"
#include "core/pool.h"
#include "core/try.h"
#include "files/csv.h"
#include "files/file.h"

struct row {
    const char **cells;                   /* [dimensions] NULL: the dimension has no column */
    int64_t line;
};

/* The contents of a file of points. */
struct sheet {
    const struct tune_space *s;
    const char *path;
    int column[TUNE_SPACE_DIMENSIONS];    /* column of each dimension; -1: none */
    struct row *rows;                     /* [count] */
    int64_t count;
    struct tune_pool *memory;
};

static int fail_at_line(const struct sheet *t, int64_t line, const char *format, ...) TUNE_PRINTF(3, 4);
static int fail_at_line(const struct sheet *t, int64_t line, const char *format, ...)
{
    char text[1024];
    FORMAT(text, format);
    return tune_error_usage("%s:%lld: %s", t->path, (long long)line, text);
}

static int read_heading(struct sheet *t, const char *const *fields, int width)
{
    const struct tune_space *s = t->s;
    char hint[TUNE_HINT];
    for (int k = 0; k < s->count; k++)
        t->column[k] = -1;
    for (int i = 0; i < width; i++) {
        int k = tune_name_find(s->names, s->count, fields[i]);
        if (k < 0 && strcmp(fields[i], "identifier"))
            return fail_at_line(t, 1, "\"%s\" is not a dimension of the space%s", fields[i],
                                tune_nearest_hint(fields[i], s->names, s->count, hint));
        if (k >= 0 && t->column[k] >= 0)
            return fail_at_line(t, 1, "two columns have the name %s", fields[i]);
        if (k >= 0)
            t->column[k] = i;
    }
    for (int k = 0; k < s->count; k++)
        if (t->column[k] < 0 && tune_domain_size(&s->dimensions[k].domain) != 1)
            return fail_at_line(t, 1, "the dimension %s of the space has no column", s->names[k]);
    return 0;
}

static int read_rows(struct sheet *t, struct tune_csv *csv)
{
    const char *const *fields;
    int width, count, more = tune_csv_row(csv, &fields, &width);
    TRY(more);
    if (more == 0)
        return tune_error_usage("%s: the file is empty; expected a heading with the names of the "
                                "dimensions, and points", t->path);
    TRY(read_heading(t, fields, width));
    for (; (more = tune_csv_row(csv, &fields, &count)) == 1; t->count++) {
        const char **cells = tune_pool_take(&t->memory, (size_t)t->s->count * sizeof *cells);
        if (count != width)
            return fail_at_line(t, tune_csv_line(csv), "the row has %d fields, but the heading has %d",
                                count, width);
        if (!cells || !tune_array_fit(&t->rows, (size_t)t->count, sizeof *t->rows))
            return tune_error_no_memory("%s", t->path);
        for (int k = 0; k < t->s->count; k++) {
            const char *cell = t->column[k] < 0 ? NULL : fields[t->column[k]];
            if (cell && !(cells[k] = tune_pool_text(&t->memory, cell, strlen(cell))))
                return tune_error_no_memory("%s", t->path);
        }
        t->rows[t->count] = (struct row){cells, tune_csv_line(csv)};
    }
    if (more == 0 && t->count == 0)
        return tune_error_usage("%s: the file has a heading but no points", t->path);
    return more;
}

static int open_sheet(struct sheet *t, const struct tune_space *s, const char *path)
{
    *t = (struct sheet){.s = s, .path = path};
    struct tune_csv *csv = tune_csv_open(path);
    int code = csv ? read_rows(t, csv) : -1;
    tune_csv_free(csv);
    return code;
}

static void close_sheet(struct sheet *t)
{
    tune_pool_free(t->memory);
    free(t->rows);
}

/* Copy the value's text into the space's memory. */
static int copy_text(const struct tune_space *s, struct tune_value *v)
{
    if (v->type != TUNE_VALUE_TEXT)
        return 0;
    return (v->text = tune_document_to_string(s->document, v)) ? 0 : -1;
}

/* 1: the text is in the map; 0: it was added; -1: no memory. */
static int is_known(struct tune_map *seen, const char *text)
{
    size_t length = strlen(text);
    uint64_t key[2] = {tune_hash64(text, length, 1), tune_hash64(text, length, 2)};
    int64_t *times = tune_map_add(seen, key);
    return times ? (*times)++ > 0 : tune_error_no_memory("a list of points");
}

static int read_point(const struct sheet *t, const struct row *row, struct tune_value *point)
{
    const struct tune_space *s = t->s;
    for (int k = 0; k < s->count; k++) {
        const struct tune_domain *d = &s->dimensions[k].domain;
        if (!row->cells[k])
            tune_domain_value(d, 0, &point[k]);
        else if (!tune_domain_parse(d, row->cells[k], &point[k]))
            return fail_at_line(t, row->line, "%s cannot be \"%.100s\" in this space", s->names[k], row->cells[k]);
        TRY(copy_text(s, &point[k]));
    }
    int allowed = tune_space_allowed(s, point);
    TRY(allowed);
    return allowed ? 0 : fail_at_line(t, row->line, "the constraints of the space exclude this point");
}

static int read_points(const struct sheet *t, struct tune_points *points)
{
    const struct tune_space *s = t->s;
    struct tune_value *values = tune_document_take(s->document, (size_t)t->count * (size_t)s->count * sizeof *values);
    struct tune_map seen = {0};
    size_t size = 0;
    char *text = NULL;
    int known = values ? 0 : -1;
    *points = (struct tune_points){.values = values};
    for (int64_t i = 0; i < t->count && known >= 0; i++) {
        struct tune_value *point = values + points->count * s->count;
        if ((known = read_point(t, &t->rows[i], point)) < 0 || (known = tune_entity_to_string(s->names, point, s->count, &text, &size)) < 0 ||
            (known = is_known(&seen, text)) < 0)
            break;
        points->count += !known;
        if (known && points->repeated++ == 0)
            points->line = t->rows[i].line;
    }
    free(text);
    tune_map_free(&seen);
    return known < 0 ? -1 : 0;
}

int tune_points_read(const struct tune_space *s, const char *path, struct tune_points *points)
{
    struct sheet t;
    int code = open_sheet(&t, s, path);
    if (code == 0)
        code = read_points(&t, points);
    close_sheet(&t);
    return code;
}

/* ---- a space of points ---- */

/* Give dimension k the distinct values of its column. */
static int set_domain(const struct sheet *t, int k, struct tune_map *seen)
{
    struct tune_domain *given = &t->s->dimensions[k].domain;
    bool any = given->type == TUNE_UNKNOWN || given->type == TUNE_OPEN_CATEGORICAL, texts = false, numbers = true, ascending = true;
    struct tune_value *all = tune_document_take(t->s->document, (size_t)t->count * sizeof *all);
    char spelled[1024];
    double number;
    int count = 0, known = all ? 0 : -1;
    for (int64_t i = 0; i < t->count && any && !texts; i++)
        texts = *t->rows[i].cells[k] && !tune_value_read_as(t->rows[i].cells[k], &(struct tune_value){0});
    for (int64_t i = 0; i < t->count && known >= 0; i++) {
        struct tune_value *v = &all[count];
        const char *cell = t->rows[i].cells[k];
        if (!tune_domain_parse(given, cell, v))
            return fail_at_line(t, t->rows[i].line, "%s cannot be \"%.100s\": this value is not in its "
                                                    "domain in the file of the space", t->s->names[k],
                                cell);
        if (any && !texts && *cell)
            tune_value_read_as(cell, v);
        TRY(copy_text(t->s, v));
        tune_value_repr(v, spelled, sizeof spelled);
        known = is_known(seen, spelled);
        numbers = numbers && tune_value_number(v, &number);
        ascending = ascending && (known != 0 || count == 0 || tune_value_compare(v - 1, v) < 0);
        count += known == 0;
    }
    *given = (struct tune_domain){.type = numbers ? TUNE_DISCRETE : TUNE_CATEGORICAL, .values = all, .count = count, .ascending = ascending};
    return known < 0 ? -1 : 0;
}

int tune_points_index(struct tune_space *s)
{
    struct tune_map seen = {0};
    int64_t count = 0;
    size_t size = ((size_t)s->point_count + 1) * sizeof *s->points;
    tune_index *points = tune_document_take(s->document, size), *sorted = tune_document_take(s->document, size), at;
    if (!points || !sorted)
        return -1;
    tune_space_measure(s);
    if (s->size == TUNE_INDEX_MAX)
        return tune_error_usage("%s: the values of these points have more than 2^128 combinations", s->points_path);
    for (int64_t i = 0; i < s->point_count; i++) {
        if (!tune_space_find(s, s->point_values + i * s->count, &at)) {
            tune_map_free(&seen);
            return tune_error_set("%s: point %lld is not in the space: a value of it is outside its domain", s->points_path, (long long)i + 1);
        }
        int64_t *times = tune_map_add(&seen, (const uint64_t[]){(uint64_t)at, (uint64_t)(at >> 64)});
        if (!times) {
            tune_map_free(&seen);
            return tune_error_no_memory("a list of points");
        }
        if ((*times)++ == 0)
            points[count++] = at;
    }
    tune_map_free(&seen);
    qsort(memcpy(sorted, points, size), (size_t)count, sizeof *sorted, tune_index_compare);
    s->points = points;
    s->sorted_points = sorted;
    s->listed = count;
    return 0;
}

/* Add the constraint for the list: a text, which is always true. */
static int add_constraint(struct tune_space *s)
{
    char text[TUNE_PATH_MAX + 64];
    snprintf(text, sizeof text, "\"one of the points in %s\"", strpbrk(s->points_path, "\"\\") ? "the list" : s->points_path);
    struct tune_expression **all = tune_document_take(s->document, ((size_t)s->constraint_count + 2) * sizeof *all);
    if (!all)
        return -1;
    memcpy(all, s->constraints, (size_t)s->constraint_count * sizeof *all);
    s->constraints = all;
    if (!(all[s->constraint_count] = tune_expression_new(text, NULL, 0, "")))
        return -1;
    s->constraint_count++;
    return 0;
}

int tune_points_restrict(struct tune_space *s, const char *path)
{
    struct tune_points points;
    struct tune_value name = tune_value_text(path);
    struct sheet t;
    int code = open_sheet(&t, s, path);
    for (int k = 0; k < s->count && code == 0; k++) {
        struct tune_map seen = {0};
        if (t.column[k] >= 0)
            code = set_domain(&t, k, &seen);
        tune_map_free(&seen);
    }
    if (code == 0)
        code = read_points(&t, &points);
    close_sheet(&t);
    if (code < 0 || !(s->points_path = tune_document_to_string(s->document, &name)))
        return -1;
    s->point_values = points.values;
    s->point_count = points.count;
    s->points_repeated = points.repeated;
    s->points_repeated_line = points.line;
    TRY(tune_points_index(s));
    return add_constraint(s);
}
