/* samples.c - answer questions from a sample store: rows of a space, the best ones, differences,
 * origins.
 *
 *     build/samples show space.yaml --store samples/ --property-format target --output-format csv    ado's CSV
 *     build/samples best space.yaml --store samples/ --maximize dataset_tokens_per_second --where 'batch_size<=2'
 *     build/samples plot space.yaml --store samples/ --property train_runtime --svg runtime.svg
 *     build/samples compare host=EPYC host=Xeon --store samples/
 *     build/samples stats --store samples/                operations, spaces, how many rows
 *     build/samples import csv theirs.csv --experiment finetune_full_benchmark-v1.0.0 --store samples/
 *
 * Nothing is measured here, and only merge and import write. */
#include "samples/samples.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/decimal.h"
#include "core/nearest.h"
#include "sweeps/discovery/confused.h"
#include "sweeps/discovery/halving.h"
#include "project.h"

struct samples_flags my;
struct samples samples;

enum { ID = 12 }; /* length of "space-1a2b3c" */

#define COMMANDS "show|rows|stats|trace|entity|best|effect|missing|compare|plot|import|merge|check"

static const struct tune_option my_options[] = {
    {"<command>", TUNE_CHOICE, &my.command, NULL, COMMANDS, "", "what to do"},
    {"<word...>", TUNE_STRING, &my.words, "", "", "",
     "what the command works on. show, best, effect, missing, plot: SPACE. stats: "
     "[SPACE|OPERATION]; it counts what there is. rows: [EXPERIMENT]. trace: OPERATION. entity: "
     "ID. compare: A B, each a store's folder, an operation, host=TEXT or build=TEXT. merge: "
     "FROM, another store to copy rows from. import: csv FILE. check: nothing; it reads all files and says what is wrong. A SPACE is a file, or space-... as the "
     "store recorded it"},
    {"store", TUNE_STRING, &my.store, "samples", "", "", "folder of sample files"},
    {"experiments", TUNE_STRING, &my.experiments, NULL, "", "",
     "more folders and files of experiments, with commas"},
    {"output-format", TUNE_CHOICE, &my.output_format, "console", "console|table|csv|json", "",
     "format of the output"},
    {"output-file", TUNE_STRING, &my.output_file, NULL, "", "",
     "file to write, in place of standard output"},
    TUNE_OPTION_GROUP("which rows"),
    {"include", TUNE_CHOICE, &my.include, "measured",
     "measured|matching|missing|unmeasured|sampled|unsampled", "",
     "which entities. measured: by operations on this space. matching: by any operation. missing: "
     "by none. unmeasured: by none on this space"},
    {"operation", TUNE_STRING, &my.operation, NULL, "", "", "operation that measured them. Of halving it shows the last rung"},
    {"until-stable", TUNE_DOUBLE, &my.until_stable, "0", "[0,100]", "%",
     "rows that sweep measured with this --until-stable. Default: as --operation did, else "
     "without"},
    {"where", TUNE_STRING, &my.where, NULL, "", "",
     "expression over inputs, properties and new columns: 'batch_size <= 2 and train_runtime < 9'"},
    {"label", TUNE_JOINED(TUNE_STRING), &my.labels, NULL, "", "",
     "spaces that stats lists: key=value of their metadata, with commas or --label again"},
    {"limit", TUNE_INT64, &my.limit, "0", "[0,inf)", "rows", "most rows to print; 0: all"},
    {"sort", TUNE_STRING, &my.sort, NULL, "", "",
     "columns to sort by, with commas; -COLUMN: the highest first"},
    {"group-by", TUNE_STRING, &my.group_by, NULL, "", "",
     "columns, with commas: rows equal in them become one, with their count and the mean of each "
     "property, or what --aggregate says"},
    TUNE_OPTION_GROUP("which columns"),
    {"columns", TUNE_STRING, &my.columns, NULL, "", "", "columns to print, with commas"},
    {"derive", TUNE_STRING, &my.derive, NULL, "", "",
     "new columns, with semicolons: 'usd = 3.2 / 3600 * train_runtime; cheap = usd < 1'"},
    {"property-format", TUNE_CHOICE, &my.property_format, NULL, "observed|target", "",
     "what a row is. observed: an entity, with columns <experiment>-<target>. target: an entity "
     "and an experiment. Default: observed in CSV and JSON, else target"},
    {"property", TUNE_STRING, &my.properties, NULL, "", "",
     "targets that show, compare, plot and import take, with commas"},
    {"all-properties", TUNE_BOOL, &my.all_properties, "false", "", "",
     "show also what is measured besides the experiment's targets"},
    {"aggregate", TUNE_CHOICE, &my.aggregate, NULL, "mean|median|variance|std|min|max", "",
     "how to join several results of an entity. Default: a list"},
    TUNE_OPTION_GROUP("best, compare"),
    {"maximize", TUNE_STRING, &my.maximize, NULL, "", "",
     "property to maximize. Two or three, with commas or with --minimize: the Pareto front"},
    {"minimize", TUNE_STRING, &my.minimize, NULL, "", "", "property to minimize"},
    {"regression", TUNE_STRING, &my.regression, NULL, "", "%",
     "compare A B: is B worse than A by more than this share? Exit code 1: yes; 4: cannot tell yet"},
    {"per", TUNE_STRING, &my.per, NULL, "", "",
     "dimensions, with commas: the best for each of their values"},
    {"count", TUNE_INT, &my.count, "5", "[1,inf)", "entities",
     "how many of the best to print. Default: with --per the best one, of the Pareto front all"},
    {"print-command", TUNE_BOOL, &my.print_command, "false", "", "",
     "print the command of the best one, in place of the table"},
    TUNE_OPTION_GROUP("plot"),
    {"x", TUNE_STRING, &my.x, NULL, "", "",
     "dimension or property of the x axis; dimension of effect"},
    {"series", TUNE_STRING, &my.series, NULL, "", "", "dimension with a curve for each value"},
    {"facet", TUNE_STRING, &my.facet, NULL, "", "", "dimension with a plot for each value"},
    {"svg", TUNE_STRING, &my.svg, NULL, "", "",
     "SVG file to write as well. /dev/stdout: print the SVG in place of the drawing"},
    {"log", TUNE_BOOL, &my.logarithmic, "false", "", "", "logarithmic values"},
    {"ascii", TUNE_BOOL, &my.ascii, "false", "", "", "draw with ASCII characters only"},
    {"color", TUNE_CHOICE, &my.color, "auto", "auto|always|never", "",
     "when to use colours. auto: in a terminal, unless NO_COLOR is set"},
    {"width", TUNE_INT, &my.width, "0", "[0,4096]", "columns",
     "width of the output; 0: the terminal's"},
    {"height", TUNE_INT, &my.height, "16", "[3,400]", "rows", "height of a plot"},
    TUNE_OPTION_GROUP("import"),
    {"experiment", TUNE_STRING, &my.experiment, NULL, "", "",
     "experiment that the rows belong to: its name, or actuator.name"},
    {"actuator", TUNE_STRING, &my.actuator, NULL, "", "",
     "its actuator. Default: the known experiment's, else the file's, else replay"},
    {"inputs", TUNE_STRING, &my.inputs, NULL, "", "",
     "columns that are inputs, if neither identifiers nor the experiment say so"},
    TUNE_OPTION_GROUP("merge"),
    {"with-programs", TUNE_BOOL, &my.with_programs, "false", "", "",
     "copy the programs of experiments, too: for stores of people you trust"},
    TUNE_OPTION_GROUP(""),
    {0},
};
static const struct tune_property my_properties[] = {{0}};

/* ---- memory ---- */

static void *must(void *memory)
{
    if (memory)
        return memory;
    tune_file_cancel(&samples.output);
    tune_error_cannot("out of memory");
    tune_program_fail();
}

void *samples_take(int64_t count, size_t size)
{
    return must(tune_pool_take(&samples.memory, (size_t)count * size));
}

char *samples_copy(const char *text)
{
    return must(tune_pool_text(&samples.memory, text, strlen(text)));
}

void samples_fit(void *array, int64_t count, size_t size)
{
    must(tune_array_fit(array, (size_t)count, size) ? array : NULL);
}

int samples_read_figures(struct samples_figures *f, struct tune_view *v, int results, bool finite)
{
    if (results > f->room) {
        f->room = 2 * results;
        f->count = samples_take(f->columns, sizeof *f->count);
        f->values = samples_take((int64_t)f->columns * f->room, sizeof *f->values);
    }
    memset(f->count, 0, (size_t)f->columns * sizeof *f->count);
    for (int k = 0; k < results; k++) {
        const struct tune_cell *cells = tune_view_cells(v, k);
        TRY(cells ? 0 : -1);
        for (int c = 0; c < f->columns; c++)
            if (!cells[c].absent && !cells[c].text && (!finite || isfinite(cells[c].number)))
                samples_figures_of(f, c)[f->count[c]++] = cells[c].number;
    }
    return 0;
}

double *samples_figures_of(const struct samples_figures *f, int column)
{
    return f->values + (size_t)column * (size_t)f->room;
}

/* ---- names and words ---- */

int samples_no_such(const char *what, const char *name, const char *const *names, int count)
{
    char others[1024] = "", hint[TUNE_HINT];
    for (int i = 0; i < count; i++) {
        size_t n = strlen(others);
        if (tune_name_find(names, i, names[i]) >= 0)
            continue;
        if (n + strlen(names[i]) + 8 >= sizeof others) {
            strcpy(others + n, n ? ", ..." : "...");
            break;
        }
        snprintf(others + n, sizeof others - n, "%s%s", n ? ", " : "", names[i]);
    }
    return tune_error_usage("there is no %s %s%s; there are: %s", what, name, tune_nearest_hint(name, names, count, hint),
                            *others ? others : "none");
}

int samples_check_properties(const char *const *properties, int count)
{
    int all = samples.derived_count;
    for (int p = 0; p < samples.space->reference_count; p++)
        all += samples.protocols[p].experiment->target_count;
    const char **names = samples_take(all, sizeof *names);
    for (all = 0; all < samples.derived_count; all++)
        names[all] = samples.derived[all].name;
    for (int p = 0; p < samples.space->reference_count; p++)
        for (int i = 0; i < samples.protocols[p].experiment->target_count; i++)
            names[all++] = samples.protocols[p].experiment->targets[i].name;
    for (int i = 0; i < count; i++)
        if (tune_name_find(names, all, properties[i]) < 0)
            return samples_no_such("property", properties[i], names, all);
    return 0;
}

const struct tune_target *samples_target(int protocol, const char *name)
{
    int count = samples.space->reference_count;
    for (int p = protocol < 0 ? 0 : protocol; p < (protocol < 0 ? count : protocol + 1); p++) {
        int i = tune_experiment_target(samples.protocols[p].experiment, name);
        if (i >= 0)
            return &samples.protocols[p].experiment->targets[i];
    }
    return samples_derived(name);
}

const struct tune_target *samples_derived(const char *name)
{
    static struct tune_target target = {.unit = "", .description = ""};
    for (int d = 0; d < samples.derived_count; d++)
        if (!strcmp(samples.derived[d].name, name)) {
            target.name = samples.derived[d].name;
            return &target;
        }
    return NULL;
}

bool samples_mentions(const char *name)
{
    const char *const lists[] = {my.columns, my.sort, my.group_by};
    size_t n = strlen(name);
    for (int i = 0; i < 3; i++)
        for (const char *at = lists[i]; at && (at = strstr(at, name)); at++)
            if ((at == lists[i] || strchr(",-", at[-1])) && (!at[n] || strchr(",-", at[n])))
                return true;
    return false;
}

bool samples_median(void)
{
    return my.aggregate && !strcmp(my.aggregate, "median");
}

int samples_check_aggregate(void)
{
    if (!my.aggregate || !strcmp(my.aggregate, "mean") || samples_median())
        return 0;
    return tune_error_usage("%s takes the mean or the median of several results, not --aggregate %s", my.command, my.aggregate);
}

double samples_middle(const struct tune_spread *spread)
{
    return samples_median() ? spread->median : spread->mean;
}

int samples_words(void)
{
    int count;
    tune_flags_words(&my.tune, &count);
    return count;
}

const char *samples_word(int i)
{
    int count;
    const char *const *words = tune_flags_words(&my.tune, &count);
    return i < count ? words[i] : NULL;
}

int samples_split(const char *text, const char **parts, int most)
{
    return tune_name_split(text ? samples_copy(text) : NULL, parts, most);
}

/* ---- the space ---- */

int samples_read_catalog(void)
{
    if (samples.catalog_read)
        return 0;
    TRY(tune_catalog_gather(&samples.catalog, my.store, my.experiments));
    samples.catalog_read = true;
    return 0;
}

/* Find the store's record of "space-1a2b3c", perhaps followed by a store's id: this store's, or one
 * whose rows were merged. */
static int find_recorded(const char *name, char path[TUNE_PATH_MAX])
{
    size_t length = strlen(name);
    for (int json = 0; json < 2 && (length <= ID || name[ID] == '-'); json++) {
        TRY(tune_path(path, "%s/spaces/%.*s%s", my.store, ID, name, json ? ".json" : ".yaml"));
        if (!tune_file_exists(path))
            continue;
        const char *store = tune_store_id(samples.store), *other = length > ID ? name + ID + 1 : store;
        if (strcmp(other, store) && strcmp(other, "default")) /* the id of no store, as in space
                                                               * describe */
            fprintf(stderr, "samples: %s is of another store; this one, %s, has the same space\n", name, store);
        return 0;
    }
    int count;
    char **names = tune_store_records(samples.store, "spaces", &count);
    TRY(names ? 0 : -1);
    for (int i = 0; i < count; i++)
        names[i][strcspn(names[i], ".")] = 0;
    samples_no_such("space", name, (const char *const *)names, count);
    tune_store_records_free(names, count);
    return -1;
}

/* The most of a budget that sweep --order halving measured with. */
static int set_budget(const char *budget)
{
    struct tune_halving h;
    char text[TUNE_DECIMAL_SIZE];
    TRY(tune_halving_read(&h, budget));
    tune_decimal_json(text, h.most);
    return tune_space_set(samples.space, &samples.catalog, h.input, text);
}

/* Bind the space as the operation of --operation did. sweep --until-stable makes this input a
 * parameter of the experiments that have it. */
static int bind_space(void)
{
    struct tune_operation_record record = {0};
    double percent = my.until_stable;
    if (my.operation && samples.store)
        TRY(tune_operation_record_read(samples.store, my.operation, &record));
    if (my.operation && !tune_flags_given(&my.tune, "until-stable"))
        percent = record.until_stable;
    int code = record.budget ? set_budget(record.budget) : 0;
    tune_operation_record_free(&record);
    TRY(code);
    TRY(tune_space_bind(samples.space, &samples.catalog, &samples.protocols));
    const struct tune_value value = tune_value_float(percent);
    return percent > 0 ? tune_protocols_set(samples.protocols, samples.space->reference_count, "until_stable", &value) : 0;
}

int samples_open_space(const char *name)
{
    char path[TUNE_PATH_MAX];
    if (!name)
        return tune_error_usage("which space? %s takes a space file, or space-... as the store recorded it",
                            my.command);
    TRY(tune_path(path, "%s", name));
    if (!strncmp(name, "space-", 6) && !tune_file_exists(name))
        TRY(find_recorded(name, path));
    TRY(samples_read_catalog());
    if (!(samples.space = tune_space_read(path)))
        return -1;
    if (samples.space->reference_count == 0)
        return tune_error_usage("%s: an entity space without experiments has no measurements", path);
    return bind_space();
}

static void tell_confused(const char *sentence)
{
    fprintf(stderr, "samples: %s\n", sentence);
}

struct tune_view *samples_open_view(const char *const *columns, int count, enum samples_which which)
{
    static const char *const names[] = {"measured", "matching", "missing", "unmeasured", "sampled", "", "", "unsampled"};
    struct tune_view_options o = {.where = my.where, .operation = my.operation, .valid = which == SAMPLES_VALID,
                                  .failed = which == SAMPLES_ALL, .columns = columns,
                                  .column_count = count, .derived = samples.derived, .derived_count = samples.derived_count};
    struct tune_operation_record record;
    for (int i = 0; i < 8; i++)
        if (!strcmp(my.include, names[i]))
            o.include = (enum tune_view_include)(i % 4);
    if (my.operation) {
        if (tune_operation_record_read(samples.store, my.operation, &record) < 0)
            return NULL;
        bool own = !strncmp(record.space, "space-", 6) && !strcmp(record.space + 6, samples.space->id);
        tune_operation_record_free(&record);
        if (!own) {
            tune_error_usage("operation %s is not of this space (space-%s)", my.operation, samples.space->id);
            return NULL;
        }
    }
    if (tune_confused_find(samples.store, samples.space, samples.protocols, &samples.catalog, tell_confused) < 0)
        return NULL;
    struct tune_view *v = tune_view_open(samples.store, samples.space, samples.protocols, &o);
    if (v && tune_view_strays(v) > 0)
        fprintf(stderr, "samples: %lld row%s of the store left out: they name no experiment, or have no uid; samples check --store %s "
                "says which\n", (long long)tune_view_strays(v), tune_view_strays(v) == 1 ? " is" : "s are", my.store);
    return v;
}

int samples_say_mixed(const struct tune_view *v)
{
    struct tune_view_origins o;
    TRY(tune_view_mixed(v, &o));
    if (o.host_classes > 1 || o.builds > 1)
        fprintf(stderr, "samples: these figures come from %d host class%s and %d build%s; compare them with that in mind\n",
                o.host_classes, o.host_classes == 1 ? "" : "es", o.builds, o.builds == 1 ? "" : "s");
    if (o.weights || o.data)
        fprintf(stderr, "samples: results of one and the same entity are of different %s%s%s\n", o.weights ? "weights" : "",
                o.weights && o.data ? " and " : "", o.data ? "data" : "");
    return 0;
}

/* Say how to see the rows of an operation that measured another value of some input. */
static bool say_other_value(void)
{
    struct tune_operation_record record;
    int count;
    bool said = false;
    char **names = tune_view_operations(samples.store, samples.space, &count);
    for (int i = 0; names && i < count && !said; i++)
        if (tune_operation_record_read(samples.store, names[i], &record) == 0) {
            if ((said = record.budget))
                fprintf(stderr, "samples: operation %s measured with %s by halving: --operation %s shows the last rung\n", names[i],
                        record.budget, names[i]);
            else if ((said = record.until_stable > 0 && my.until_stable == 0))
                fprintf(stderr, "samples: what operations on this space measured with --until-stable %g is another experiment: give "
                                "it here, too\n", record.until_stable);
            tune_operation_record_free(&record);
        }
    tune_store_records_free(names, names ? count : 0);
    tune_error_clear();
    return said;
}

int samples_say_matching(struct tune_view *v)
{
    struct tune_view_counts c;
    if (samples_rows() > 0 || (strcmp(my.include, "measured") && strcmp(my.include, "sampled")) || my.operation)
        return 0;
    TRY(tune_view_counted(v, &c));
    if (c.measured == 0 && c.matching_results > 0)
        fprintf(stderr, "samples: no operation on this space is recorded here; others measured %lld of its entities: --include "
                        "matching\n",
                (long long)c.matching_results);
    else if (c.measured == 0 && !say_other_value())
        return samples_say_other_inputs();
    return 0;
}

/* ---- main ---- */

static const struct command {
    const char *name;
    int (*run)(void);
    bool derives;                        /* it takes --derive */
    enum { READS, WRITES, OPENS } store; /* OPENS: the command opens the store itself and reports
                                          * what is missing */
    int words;                           /* words that the command takes */
} commands[] = {
    {"show", samples_show, true, READS, 1},      {"rows", samples_list, true, READS, 1},
    {"stats", samples_stats, false, READS, 1},   {"trace", samples_trace, false, READS, 1},
    {"entity", samples_entity, false, READS, 1}, {"best", samples_best, true, READS, 1},
    {"effect", samples_effect, true, READS, 1},  {"missing", samples_missing, false, READS, 1},
    {"compare", samples_compare, false, OPENS, 2}, {"plot", samples_plot, true, READS, 1},
    {"import", samples_import, false, WRITES, 2},
    {"merge", samples_merge, false, WRITES, 1},  {"check", samples_check, false, READS, 0},
};

static int run(const struct command *c)
{
    if (samples_words() > c->words)
        return tune_error_usage("unexpected argument \"%s\": %s takes %d word%s, see --help", samples_word(c->words),
                            c->name, c->words, c->words == 1 ? "" : "s");
    if (my.derive && !c->derives)
        return tune_error_usage("%s takes no --derive; show, rows, best, effect and plot do", c->name);
    if (c->store != OPENS && !(samples.store = tune_store_open(my.store, c->store == WRITES)))
        return -1;
    return c->run();
}

/* Run the command with its output in a file, which appears complete or not at all. */
static int run_into(const struct command *c, const char *path)
{
    TRY(tune_file_begin_output(&samples.output, path));
    samples.out = samples.output.file;
    int code = run(c);
    if (code >= 0 && tune_file_commit(&samples.output) == 0)
        return code;
    tune_file_cancel(&samples.output);
    return -1;
}

int main(int argc, char **argv)
{
    const struct command *c = commands;
    setlocale(LC_CTYPE, ""); /* so that we know whether the terminal shows UTF-8 */
    tune_program_start(argc, argv, &my.tune, my_options, my_properties, "What a sample store holds.");
    while (strcmp(c->name, my.command))
        c++;
    samples.out = stdout;
    MUST(project_read(&my.tune, &my.store, &my.experiments, NULL));
    MUST(tune_derived_read(my.derive, &samples.derived, &samples.derived_count));
    int problems = MUST(my.output_file ? run_into(c, my.output_file) : run(c));
    if (samples.space)
        tune_protocols_free(samples.protocols, samples.space->reference_count);
    tune_space_free(samples.space);
    tune_catalog_free(&samples.catalog);
    tune_derived_free(samples.derived, samples.derived_count);
    tune_pool_free(samples.memory);
    tune_store_free(samples.store);
    struct tune_progress none = {0};
    int code = tune_program_exit(&none);
    return code ? code : problems;
}
