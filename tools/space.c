/* space.c - describe and check a space file, and list its entities in any order.
 *
 *     build/space describe space.yaml                                     dimensions in tables, how many entities
 *     build/space list space.yaml                                         their identifiers, one a line
 *     build/space list space.yaml --mode random --seed 7 --limit 1000     some of them, drawn without replacement
 *     build/space list space.yaml --mode sequential-grouped --grouping model_name --format csv
 *     build/space check space.yaml                                        one line, or what is wrong and where
 *     build/space experiments                                             what there is to measure with
 *     build/space experiments finetune_full_benchmark-v1.0.0              its inputs, defaults and outputs
 *     build/space template finetune_full_benchmark-v1.0.0 > space.yaml    a space file for it, to be edited
 *
 * Only printed entities are computed, so a space may have 10^12 entities. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "files/cjson.h"
#include "files/csv.h"
#include "core/nearest.h"
#include "core/print.h"
#include "flags/program.h"
#include "sweeps/spaces/experiment.h"
#include "sweeps/spaces/order.h"
#include "project.h"

static struct {
    struct tune_flags tune;
    const char *command, *file, *mode, *grouping, *format, *experiments, *store;
    int64_t seed, limit;
} my;

static const struct tune_option my_options[] = {
    {"<command>", TUNE_CHOICE, &my.command, NULL, "describe|list|check|experiments|template", "",
     "what to do"},
    {"<file>", TUNE_STRING, &my.file, "", "", "",
     "space file: ado's YAML, or the same keys as JSON. For experiments and template: the name "
     "of one"},
    {"experiments", TUNE_STRING, &my.experiments, NULL, "", "",
     "further folders and files of experiments, with commas"},
    {"store", TUNE_STRING, &my.store, NULL, "", "",
     "sample store. describe shows its id; the imported experiments in it can be used"},
    TUNE_OPTION_GROUP("list"),
    {"mode", TUNE_STRING, &my.mode, "sequential", "", "",
     "order: sequential, random, sequential-grouped, random-grouped or sobol"},
    {"seed", TUNE_INT64, &my.seed, "0", "[0,inf)", "",
     "seed of all orders except sequential"},
    {"limit", TUNE_INT64, &my.limit, "-1", "[-1,inf)", "entities",
     "most entities to list; -1: all"},
    {"grouping", TUNE_STRING, &my.grouping, "", "", "", "dimensions to group by, with commas"},
    {"format", TUNE_CHOICE, &my.format, "ids", "ids|csv|json", "",
     "only identifiers, or a table with the values"},
    TUNE_OPTION_GROUP(""),
    {0},
};
static const struct tune_property my_properties[] = {{0}};

/* ---- describe, check ---- */

static const char *plural(int count)
{
    return count == 1 ? "" : "s";
}

/* Read the experiments of this distribution, of --store and of --experiments. */
static struct tune_catalog read_catalog(void)
{
    struct tune_catalog c;
    MUST(tune_catalog_gather(&c, my.store, my.experiments));
    return c;
}

static void experiments(void)
{
    struct tune_catalog c = read_catalog();
    if (*my.file)
        MUST(tune_experiment_describe(GET(tune_catalog_find(&c, NULL, my.file)), stdout));
    else
        MUST(tune_catalog_list(&c, stdout));
    tune_catalog_free(&c);
}

static void template(void)
{
    struct tune_catalog c = read_catalog();
    MUST(tune_experiment_template(GET(tune_catalog_find(&c, NULL, my.file)), stdout));
    tune_catalog_free(&c);
}

/* Find the store's id: that of --store, else the one in the space, else ado's name for no store.
 * The id is read without HDF5, which this program does not use. */
static const char *store_id(const struct tune_space *s)
{
    static char id[64], path[TUNE_PATH_MAX];
    if (!my.store)
        return s->store ? s->store : "default";
    MUST(tune_path(path, "%s/store.json", my.store));
    cJSON *json = GET(tune_cjson_read(path, 1 << 16));
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, "id");
    if (!cJSON_IsString(item)) {
        tune_error_set("%s: \"id\" is missing or not a text; is %s a sample store?", path,
                       my.store);
        tune_program_fail();
    }
    snprintf(id, sizeof id, "%s", item->valuestring);
    cJSON_Delete(json);
    return id;
}

static void describe(const struct tune_space *s)
{
    struct tune_catalog c = read_catalog();
    struct tune_binding *bindings;
    MUST(tune_space_bind(s, &c, &bindings));
    MUST(tune_space_describe(s, bindings, store_id(s), stdout));
    tune_bindings_free(bindings, s->reference_count);
    tune_catalog_free(&c);
}

/* Report that the constraints leave no entity. For each constraint, print how many of the remaining
 * entities it excludes. */
static void fail_empty(const struct tune_space *s)
{
    struct tune_space some = *s;
    double left = (double)s->size, allowed, error;
    char *text = NULL;
    size_t size;
    FILE *out = GET(open_memstream(&text, &size));
    for (int c = 0; c < s->constraint_count; c++, left = allowed) {
        some.constraint_count = c + 1;
        MUST(tune_space_count_allowed(&some, &allowed, &error));
        fprintf(out, "%s\"%s\" excludes ", c ? ", " : "", tune_expression_text(s->constraints[c]));
        if (isnan(allowed) || isnan(left))
            fputs("an unknown number", out);
        else
            fprintf(out, "%s%.0f of %.0f", error > 0 ? "about " : "", left - allowed, left);
    }
    fclose(out);
    tune_error_set("%s: no entity meets the constraints: %s; loosen a constraint, or add values",
                   my.file, GET(text));
    tune_program_fail();
}

static void check_space(const struct tune_space *s)
{
    double allowed, error;
    char size[48], words[160];
    struct tune_catalog c = read_catalog();
    struct tune_binding *bindings;
    MUST(tune_space_bind(s, &c, &bindings));
    tune_bindings_free(bindings, s->reference_count);
    tune_catalog_free(&c);
    MUST(tune_space_count_allowed(s, &allowed, &error)); /* reports a constraint that cannot be evaluated */
    if (s->size && allowed == 0 && error == 0)
        fail_empty(s);
    tune_print_line_of(stdout, my.file);
    printf(": fine: %d dimension%s, ", s->count, plural(s->count));
    int constraints = s->constraint_count - (s->points_path != NULL);
    if (s->points_path) {
        printf("%lld points of ", (long long)s->listed);
        tune_print_line_of(stdout, s->points_path);
        if (s->points_repeated)
            printf(" (left out: %lld repeated points, the first in line %lld)",
                   (long long)s->points_repeated,
                   (long long)s->points_repeated_line);
        fputs(", ", stdout);
    } else if (s->size) {
        printf("%s%s entit%s, ", s->size == TUNE_INDEX_MAX ? "at least " : "", tune_index_text(s->size, size),
               s->size == 1 ? "y" : "ies");
    } else {
        printf("entities that cannot be counted, ");
    }
    if (constraints)
        printf("%d constraint%s that allow%s %s, ", constraints, plural(constraints), constraints == 1 ? "s" : "",
               s->size ? tune_space_allowed_text(allowed, error, words) : "some");
    printf("%d experiment%s\n", s->reference_count, plural(s->reference_count));
}

/* ---- list ---- */

/* Write a value with a function of value.h, at any length. Valid until the next call. */
static const char *value_to_string(int (*to_string)(const struct tune_value *v, char *text, size_t size), const struct tune_value *v)
{
    static char *text;
    static size_t capacity;
    size_t size = (size_t)to_string(v, text, capacity) + 1;
    if (size > capacity) {
        capacity = size * 2;
        text = GET(realloc(text, capacity));
        to_string(v, text, capacity);
    }
    return text;
}

static const char *identifier(const struct tune_space *s, const struct tune_value *values)
{
    static char *text;
    static size_t capacity;
    MUST(tune_entity_to_string(s->names, values, s->count, &text, &capacity));
    return text;
}

static void put_csv_row(const struct tune_space *s, const struct tune_value *values)
{
    tune_csv_put(stdout, values ? identifier(s, values) : "identifier");
    for (int i = 0; i < s->count; i++) {
        putchar(',');
        tune_csv_put(stdout, values ? value_to_string(tune_value_id, &values[i]) : s->names[i]);
    }
    fputs("\r\n", stdout);
}

static void put_json_text(const char *text)
{
    const struct tune_value v = tune_value_text(text);
    fputs(value_to_string(tune_value_json, &v), stdout);
}

static void put_json_row(const struct tune_space *s, const struct tune_value *values, bool first)
{
    fputs(first ? "[\n\t{\"identifier\": " : ",\n\t{\"identifier\": ", stdout);
    put_json_text(identifier(s, values));
    for (int i = 0; i < s->count; i++) {
        fputs(", ", stdout);
        put_json_text(s->names[i]);
        printf(": %s", value_to_string(tune_value_json, &values[i]));
    }
    putchar('}');
}

static struct tune_order *make_order(const struct tune_space *s)
{
    char *grouping = GET(strdup(my.grouping));
    const char *names[TUNE_SPACE_DIMENSIONS];
    struct tune_order_options o = {.seed = (uint64_t)my.seed, .limit = my.limit, .grouping = names,
                                   .group_count = MUST(tune_name_split(grouping, names, TUNE_SPACE_DIMENSIONS))};
    MUST(tune_order_mode(my.mode, &o.mode));
    if (s->size && o.limit >= 0 && (tune_index)o.limit > s->size)
        o.limit = (int64_t)s->size; /* maximum number of names */
    struct tune_order *order = GET(tune_order_new(s, &o));
    free(grouping);
    return order;
}

static void list_entities(const struct tune_space *s)
{
    struct tune_order *order = make_order(s);
    const struct tune_value *values;
    bool csv = !strcmp(my.format, "csv"), json = !strcmp(my.format, "json"), first = true;
    if (csv)
        put_csv_row(s, NULL);
    for (; !ferror(stdout) && MUST(tune_order_next(order, &values)); first = false) {
        if (csv) {
            put_csv_row(s, values);
        } else if (json) {
            put_json_row(s, values, first);
        } else {
            tune_print_line_of(stdout, identifier(s, values));
            putchar('\n');
        }
    }
    if (json)
        puts(first ? "[]" : "\n]");
    tune_order_free(order);
}

static int finish(void)
{
    tune_flags_free(&my.tune);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        tune_error_set("cannot write to standard output: %s", strerror(errno));
        tune_program_fail();
    }
    return 0;
}

int main(int argc, char **argv)
{
    tune_program_start(argc, argv, &my.tune, my_options, my_properties, "describe, list and check spaces of configurations");
    MUST(project_read(&my.tune, &my.store, &my.experiments, NULL));
    if (my.store && !tune_flags_given(&my.tune, "store") && !tune_file_is_folder(my.store))
        my.store = NULL; /* there are no results yet */
    if (!strcmp(my.command, "experiments")) {
        experiments();
        return finish();
    }
    if (!*my.file) {
        bool space = strcmp(my.command, "template") != 0;
        tune_error_usage("%s needs one %s: give its %s", my.command, space ? "space" : "experiment",
                         space ? "file" : "name");
        tune_program_fail();
    }
    if (!strcmp(my.command, "template")) {
        template();
        return finish();
    }
    struct tune_space *s = GET(tune_space_read(my.file));
    if (!strcmp(my.command, "list"))
        list_entities(s);
    else if (!strcmp(my.command, "check"))
        check_space(s);
    else
        describe(s);
    tune_space_free(s);
    return finish();
}
