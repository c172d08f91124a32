/* points.c - --points FILE: a list of points of the space, measured in the order of the file.
 *
 * The file is CSV. Its heading names the dimensions, in any order, and each row is a point. The
 * record has the list as text in place of --entity: "points: " and identifiers, separated by
 * commas. So --resume and --join measure the same points. */
#include "core/map.h"
#include "core/nearest.h"
#include "files/csv.h"
#include "sweep.h"

enum { MOST_BYTES = 400000 }; /* a record is read up to 1 MiB */

static const char prefix[] = "points: ";

static int fail_at(const char *path, const struct tune_csv *csv, const char *format, ...) TUNE_PRINTF(3, 4);
static int fail_at(const char *path, const struct tune_csv *csv, const char *format, ...)
{
    char text[1024];
    FORMAT(text, format);
    return tune_error_usage("%s:%lld: %s", path, (long long)tune_csv_line(csv), text);
}

/* ---- the file ---- */

static int read_heading(const struct plan *plan, struct tune_csv *csv,
                        int columns[TUNE_SPACE_DIMENSIONS])
{
    const struct tune_space *space = plan->space;
    const char *path = plan->flags->points, *const *fields;
    int count, more = tune_csv_row(csv, &fields, &count);
    TRY(more);
    if (more == 0)
        return tune_error_usage("%s: the heading is missing; expected the names of the dimensions, "
                                "with commas", path);
    for (int d = 0; d < space->count; d++) {
        columns[d] = tune_name_find(fields, count, space->names[d]);
        if (columns[d] < 0)
            return fail_at(path, csv, "there is no column %s; each dimension of %s needs one",
                           space->names[d], plan->space_file);
    }
    for (int i = 0; i < count; i++) {
        char hint[TUNE_HINT];
        int d = tune_name_find(space->names, space->count, fields[i]);
        if (d < 0)
            return fail_at(path, csv, "%s is not a dimension of %s%s; remove the column", fields[i],
                           plan->space_file,
                           tune_nearest_hint(fields[i], space->names, space->count, hint));
        if (columns[d] != i)
            return fail_at(path, csv, "two columns have the name %s", fields[i]);
    }
    return 0;
}

static int read_point(const struct plan *plan, struct tune_csv *csv, const char *const *fields,
                      const int *columns, struct tune_value *values)
{
    const struct tune_space *space = plan->space;
    const char *path = plan->flags->points;
    for (int d = 0; d < space->count; d++)
        if (!select_value(&space->dimensions[d].domain, fields[columns[d]], &values[d]))
            return fail_at(path, csv, "%s has no value \"%s\" in %s (space describe %s shows its values)", space->names[d],
                           fields[columns[d]], plan->space_file, plan->space_file);
    if (!tune_space_has(space, values))
        return fail_at(path, csv, "the constraints of %s exclude this point; remove the row", plan->space_file);
    return 0;
}

/* Append a point's identifier to the list, unless an earlier line has it. */
static int add_point(const struct plan *plan, struct tune_csv *csv, const struct tune_value *values,
                     struct tune_map *lines, FILE *list)
{
    const char *path = plan->flags->points;
    char *text = NULL;
    int length = tune_entity_to_string(plan->space->names, values, plan->space->count, &text, &(size_t){0});
    TRY(length);
    int64_t *line = tune_map_add(lines, (const uint64_t[]){tune_entity_hash(text, (size_t)length), 0});
    int64_t before = line ? *line : 0;
    if (line)
        *line = tune_csv_line(csv);
    fprintf(list, "%s%s", lines->count > 1 ? "," : prefix, text);
    free(text);
    if (!line)
        return no_memory();
    if (before > 0)
        return fail_at(path, csv, "line %lld has the same point; remove one of them (to measure "
                                  "points more than once, give --repeat)", (long long)before);
    return ftell(list) > MOST_BYTES ? fail_at(path, csv, "the identifiers of the points have more "
                                                         "than %d bytes, too many for one "
                                                         "operation; split the list",
                                              MOST_BYTES) : 0;
}

static int read_list(const struct plan *plan, struct tune_csv *csv, struct tune_map *lines,
                     FILE *list)
{
    struct tune_value values[TUNE_SPACE_DIMENSIONS];
    int columns[TUNE_SPACE_DIMENSIONS], count, more;
    const char *const *fields, *path = plan->flags->points;
    TRY(read_heading(plan, csv, columns));
    while ((more = tune_csv_row(csv, &fields, &count)) == 1) {
        if (count != plan->space->count)
            return fail_at(path, csv, "this row has %d value%s, but the heading has %d", count,
                           count == 1 ? "" : "s", plan->space->count);
        TRY(read_point(plan, csv, fields, columns, values));
        TRY(add_point(plan, csv, values, lines, list));
    }
    return more == 0 && lines->count == 0 ? tune_error_usage("%s: there are no points below the "
                                                             "heading", path) : more;
}

/* Take this list, which plan owns from then on. */
static int replace_list(struct plan *plan, char *list)
{
    if (!list)
        return no_memory();
    free(plan->point_list);
    plan->record.entity = plan->point_list = list;
    return 0;
}

int points_add(struct plan *plan, const struct tune_value *values)
{
    char *text = NULL, *longer;
    int length = tune_entity_to_string(plan->space->names, values, plan->space->count, &text, &(size_t){0});
    TRY(length);
    const char *before = points_recorded(&plan->record) ? plan->record.entity : prefix;
    size_t size = strlen(before) + (size_t)length + 2;
    if (size > MOST_BYTES) {
        free(text);
        return tune_error_set("operation %s: the identifiers of its points have more than %d bytes, too many for one operation; begin another "
                              "one, which takes over the results", plan->record.id, MOST_BYTES);
    }
    if ((longer = malloc(size)))
        snprintf(longer, size, "%s%s%s", before, before == prefix ? "" : ",", text);
    free(text);
    return replace_list(plan, longer);
}

/* Refuse flags that would also select points or their order. */
static int check_flags(const struct sweep_flags *flags)
{
    static const char *const others[] = {"entity", "entities", "grouping"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (tune_flags_given(&flags->tune, others[i]))
            return tune_error_usage("--points gives the points and their order: leave out --%s", others[i]);
    if (flags->order && strcmp(flags->order, "halving") && strcmp(flags->order, "sequential"))
        return tune_error_usage("--points gives the order: leave out --order %s", flags->order);
    if (flags->operation)
        fprintf(stderr, "sweep: --points %s replaces the sampler, the order and the number of "
                        "entities in %s\n", flags->points, flags->operation);
    return 0;
}

int points_read(struct plan *plan)
{
    struct tune_map lines = {0};
    size_t size;
    if (!plan->flags->points)
        return 0;
    TRY(check_flags(plan->flags));
    struct tune_csv *csv = tune_csv_open(plan->flags->points);
    FILE *list = csv ? open_memstream(&plan->point_list, &size) : NULL;
    int code = list ? read_list(plan, csv, &lines, list) : csv ? no_memory() : -1;
    if (list && fclose(list) != 0 && code == 0)
        code = no_memory();
    tune_map_free(&lines);
    tune_csv_free(csv);
    return code;
}

/* ---- the record ---- */

bool points_recorded(const struct tune_operation_record *r)
{
    return r->entity && !strncmp(r->entity, prefix, strlen(prefix));
}

int points_check(const struct plan *plan)
{
    const struct sweep_flags *flags = plan->flags;
    const struct tune_operation_record *r = &plan->record;
    bool recorded = points_recorded(r);
    if (flags->points && (!recorded || strcmp(r->entity, plan->point_list)))
        return tune_error_usage("operation %s was begun with%s points than those of %s; leave out "
                                "--points, or give another --name", r->id,
                                recorded ? " other" : "out --points, so with other", flags->points);
    if (flags->entity && recorded)
        return tune_error_usage("operation %s was begun with --points; leave out --entity, or give "
                                "another --name", r->id);
    return 0;
}

static int add_value(struct plan *plan, const struct tune_value *values)
{
    int n = plan->space->count;
    if (!tune_array_fit(&plan->points, (size_t)plan->point_count, sizeof *plan->points))
        return no_memory();
    struct tune_value *point = tune_values_copy(
        tune_pool_take(&plan->memory, tune_values_size(values, n) + 1), values, n);
    plan->points[plan->point_count] = point;
    plan->point_count += point != NULL;
    return point ? 0 : no_memory();
}

int points_take(struct plan *plan)
{
    struct tune_value values[TUNE_SPACE_DIMENSIONS];
    for (const char *at = plan->record.entity + strlen(prefix), *end; *at; at = end + (*end == ',')) {
        if (!(end = select_entity(plan->space, at, values)))
            return tune_error_set("operation %s records a point that %s does not have: %.200s", plan->record.id, plan->space_file, at);
        TRY(add_value(plan, values));
    }
    return 0;
}

int points_reread(struct plan *plan)
{
    struct tune_operation_record r = {0};
    TRY(tune_operation_record_read(plan->store, plan->record.id, &r));
    int code = points_recorded(&r) ? replace_list(plan, strdup(r.entity)) : 0;
    bool more = points_recorded(&r);
    tune_operation_record_free(&r);
    plan->point_count = 0;
    return code < 0 || !more ? code : points_take(plan);
}
