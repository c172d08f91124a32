/* samples.c - answer questions from a sample store.
 *
 *     build/samples show space.yaml --store samples/ --output-format csv       ado's CSV
 *     build/samples best space.yaml --maximize dataset_tokens_per_second --where 'batch_size<=2'
 *     build/samples plot space.yaml --property train_runtime --svg runtime.svg
 *     build/samples compare batch_size=2 batch_size=4 --property train_runtime
 *     build/samples status                               operations, spaces, how many rows
 *     build/samples import csv theirs.csv --experiment finetune_full_benchmark-v1.0.0
 *
 * The answers are functions of components/sweeps/answers. This program measures nothing. Only
 * import, merge and forget write to a store. */
#include "samples/samples.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/nearest.h"
#include "core/print.h"
#include "drawing.h"
#include "project.h"
#include "sweeps/answers/print.h"

static struct samples_flags my;

#define COMMANDS "show, best, effect, predict, compare, plot, missing, points, results, status, import, export, merge, forget, check"

static const struct tune_option my_options[] = {
    {"<command>", TUNE_STRING, &my.command, NULL, "", "", "what to do: " COMMANDS},
    {"<word...>", TUNE_STRING, &my.word, "", "", "",
     "subject of the command: a SPACE (file, or space-...), EXPERIMENT, OPERATION, or for show the "
     "ID of an entity. Default: the only one of the store; for status and export the whole store. "
     "compare: A B, each NAME=VALUE, build=ID, host=TEXT, an operation or a store. import: csv "
     "FILE. merge: FROM, a store. forget: [UID...]. check: nothing, it reads all files"},
    {"store", TUNE_STRING, &my.store, "samples", "", "", "folder of sample files"},
    {"experiments", TUNE_STRING, &my.experiments, NULL, "", "",
     "further folders and files of experiments, with commas"},
    {"output-format", TUNE_CHOICE, &my.output_format, "console", "console|csv|json|jsonl|parquet", "",
     "format of the output. Default: by the ending of --output-file"},
    {"output-file", TUNE_STRING, &my.output_file, NULL, "", "",
     "file to write, in place of standard output"},
    {"width", TUNE_INT, &my.width, "0", "[0,4096]", "columns",
     "width of the output in characters; 0: the width of the terminal"},
    TUNE_OPTION_GROUP("which rows"),
    {"build", TUNE_STRING, &my.build, NULL, "", "",
     "builds of the program whose results are used: last (the default), previous, all, or the "
     "beginning of a build's id"},
    {"include", TUNE_CHOICE, &my.include, "measured", "measured|matching", "",
     "measured: only results of operations on this space. matching: results of any operation"},
    {"operation", TUNE_STRING, &my.operation, NULL, "", "",
     "only results of this operation. For --order halving: results of the last rung"},
    {"where", TUNE_STRING, &my.where, NULL, "", "",
     "expression over inputs, properties, new columns, build, host, status, started ...: 'batch_size <= 2'"},
    {"point", TUNE_STRING, &my.point, NULL, "", "",
     "show who measured this point: 'batch_size=4,lr=0.1'. predict: only this point"},
    {"entity", TUNE_STRING, &my.entity, NULL, "", "",
     "results, points: only this entity, by its identifier"},
    {"label", TUNE_JOINED(TUNE_STRING), &my.labels, NULL, "", "",
     "status: only spaces with this key=value in their metadata. Several with commas or --label "
     "again"},
    {"limit", TUNE_INT64, &my.limit, "0", "[0,inf)", "rows", "most rows to print; 0: all"},
    {"sort", TUNE_STRING, &my.sort, NULL, "", "",
     "columns to sort by, with commas; -COLUMN: highest first"},
    {"group-by", TUNE_STRING, &my.group_by, NULL, "", "",
     "columns, with commas: rows that are equal in them become one row. It has their count and, "
     "for each property, the mean or the --aggregate"},
    TUNE_OPTION_GROUP("which columns"),
    {"columns", TUNE_STRING, &my.columns, NULL, "", "", "columns to print, with commas"},
    {"derive", TUNE_STRING, &my.derive, NULL, "", "",
     "new columns, with semicolons: 'usd = 3.2 / 3600 * train_runtime; cheap = usd < 1'"},
    {"table", TUNE_STRING, &my.table, NULL, "", "",
     "CSV file with more columns for values of inputs. For example, the price of each GPU model"},
    {"property", TUNE_STRING, &my.properties, NULL, "", "",
     "targets for show, effect, predict, compare, plot, import, with commas"},
    {"all-properties", TUNE_BOOL, &my.all_properties, "false", "", "",
     "show also properties that are not targets"},
    {"aggregate", TUNE_CHOICE, &my.aggregate, NULL, "mean|median|variance|std|min|max", "",
     "how to combine several results of an entity. Default: a list"},
    TUNE_OPTION_GROUP("best, compare"),
    {"maximize", TUNE_STRING, &my.maximize, NULL, "", "",
     "property to maximize. With two or three properties (with commas, or also --minimize): the "
     "Pareto front"},
    {"minimize", TUNE_STRING, &my.minimize, NULL, "", "", "property to minimize"},
    {"regression", TUNE_STRING, &my.regression, NULL, "", "%",
     "compare A B: is B worse than A by more than this share? Exit code 0: no; 1: yes; 4: cannot "
     "tell yet"},
    {"per", TUNE_STRING, &my.per, NULL, "", "",
     "dimensions, with commas: the best for each of their values"},
    {"count", TUNE_INT, &my.count, "5", "[1,inf)", "entities",
     "number of the best to print. Default: with --per one for each value, for a Pareto front all"},
    {"predicted", TUNE_BOOL, &my.predicted, "false", "", "",
     "best: entities worth measuring next, by a model of the results"},
    {"print-command", TUNE_BOOL, &my.print_command, "false", "", "",
     "print the command of the best one, not the table"},
    TUNE_OPTION_GROUP("predict, best --predicted"),
    {"points", TUNE_STRING, &my.points, NULL, "", "",
     "CSV file of points, with a column for each dimension. Default: the entities of the space"},
    {"entities", TUNE_INT, &my.entities, "1000", "[1,1000000]", "",
     "most entities of the space. Of a larger space they are chosen evenly. best: 20000"},
    TUNE_OPTION_GROUP("effect, plot"),
    {"x", TUNE_STRING, &my.x, NULL, "", "",
     "plot: dimension or property of the x axis. effect: dimension to look at"},
    {"series", TUNE_STRING, &my.series, NULL, "", "", "dimension; each of its values has a curve"},
    {"facet", TUNE_STRING, &my.facet, NULL, "", "", "dimension; each of its values has a plot"},
    {"svg", TUNE_STRING, &my.svg, NULL, "", "",
     "also write the plot to this SVG file. /dev/stdout: print the SVG instead of the drawing"},
    {"log", TUNE_BOOL, &my.logarithmic, "false", "", "", "logarithmic values"},
    {"color", TUNE_CHOICE, &my.color, "auto", "auto|always|never", "",
     "when to use colours. auto: in a terminal, unless NO_COLOR is set"},
    TUNE_OPTION_GROUP("import"),
    {"experiment", TUNE_STRING, &my.experiment, NULL, "", "",
     "experiment of the rows: its name, or actuator.name"},
    {"actuator", TUNE_STRING, &my.actuator, NULL, "", "",
     "actuator of the experiment. Default: that of the known experiment, else that in the file, "
     "else replay"},
    {"inputs", TUNE_STRING, &my.inputs, NULL, "", "",
     "columns that are inputs. Needed if neither the identifiers nor the experiment name them"},
    {"units", TUNE_STRING, &my.units, NULL, "", "",
     "units of targets, with commas: 'speed=tokens/s'. A heading 'speed [tokens/s]' also gives the "
     "unit"},
    TUNE_OPTION_GROUP("merge"),
    {"with-programs", TUNE_BOOL, &my.with_programs, "false", "", "",
     "also copy the programs of experiments; only for stores of people you trust"},
    TUNE_OPTION_GROUP("forget"),
    {"yes", TUNE_BOOL, &my.yes, "false", "", "",
     "leave the rows out of all answers. Without --yes, forget only lists the rows"},
    {"note", TUNE_STRING, &my.note, NULL, "", "", "reason why the rows are forgotten"},
    {"undo", TUNE_STRING, &my.undo, NULL, "", "",
     "bring forgotten rows back: the id that forget printed, last or all"},
    TUNE_OPTION_GROUP(""),
    {0},
};
static const struct tune_property my_properties[] = {{0}};

/* ---- options of commands ---- */

#define PRINTED " output-format output-file width "

static const struct command {
    const char *name;
    int (*run)(const struct samples_flags *my, struct tune_store *store, FILE *out); /* NULL: it is a question */
    enum { READS, WRITES, OPTIONAL } store; /* OPTIONAL: --store is not needed for two folders */
    int words;                              /* maximum number of words after the command */
    const char *options;                    /* options, in addition to --store and those of the question */
} commands[] = {
    {"show", NULL, READS, 1, PRINTED},
    {"best", NULL, READS, 1, PRINTED "print-command "},
    {"effect", NULL, READS, 1, PRINTED},
    {"predict", NULL, READS, 1, PRINTED},
    {"compare", NULL, OPTIONAL, 2, PRINTED},
    {"plot", NULL, READS, 1, PRINTED "svg log color "},
    {"missing", NULL, READS, 1, PRINTED},
    {"points", NULL, READS, 1, PRINTED},
    {"results", NULL, READS, 1, PRINTED "print-command "},
    {"status", NULL, READS, 1, PRINTED},
    {"import", samples_import, WRITES, 2, " experiments experiment actuator inputs property units "},
    {"export", NULL, READS, 0, PRINTED},
    {"merge", samples_merge, WRITES, 1, " experiments where operation with-programs "},
    {"forget", samples_forget, READS, 1 << 20, " experiments where operation yes note undo "},
    {"check", samples_check, READS, 0, ""},
};
enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

/* Old names of commands, and their replacements. */
static const char *const renamed[][2] = {{"rows", "show"}, {"trace", "show"}, {"entity", "show"}, {"stats", "status"}};

const char *samples_word(const struct samples_flags *flags, int i)
{
    int count;
    const char *const *words = tune_flags_words(&flags->tune, &count);
    return i < count ? words[i] : NULL;
}

/* Print the new command line for an old name. */
static int print_renamed(const char *now, int argc, char **argv)
{
    char line[4096] = "";
    FILE *out = fmemopen(line, sizeof line - 1, "w");
    for (int i = 1; i < argc && out; i++) {
        fputc(' ', out);
        tune_print_word(out, strcmp(argv[i], my.command) ? argv[i] : now);
    }
    if (out)
        fclose(out);
    return tune_error_usage("%s is now %s: samples%s", my.command, now, line);
}

static const struct command *find_command(int argc, char **argv)
{
    const char *names[COMMAND_COUNT];
    char hint[TUNE_HINT];
    for (int i = 0; i < COMMAND_COUNT; i++) {
        names[i] = commands[i].name;
        if (!strcmp(my.command, commands[i].name))
            return &commands[i];
    }
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (!strcmp(my.command, renamed[i][0])) {
            print_renamed(renamed[i][1], argc, argv);
            return NULL;
        }
    tune_error_usage("there is no command %s%s; commands: " COMMANDS, my.command, tune_nearest_hint(my.command, names, COMMAND_COUNT, hint));
    return NULL;
}

static bool takes(const struct command *c, const char *option)
{
    char word[64];
    snprintf(word, sizeof word, " %s ", option);
    return !strcmp(option, "store") || strstr(c->options, word) || (!c->run && tune_question_takes(tune_question_find(c->name), option));
}

/* Check the words and options of the command line. Refuse those without effect. */
static int check_options(const struct command *c)
{
    char others[256] = "";
    if (samples_word(&my, c->words))
        return tune_error_usage("unexpected argument \"%s\": %s takes %d word%s, see --help", samples_word(&my, c->words), c->name, c->words,
                                c->words == 1 ? "" : "s");
    for (const struct tune_option *o = my_options; o->name; o++) {
        if (!*o->name || *o->name == '<' || !tune_flags_given(&my.tune, o->name) || takes(c, o->name))
            continue;
        for (int i = 0; i < COMMAND_COUNT; i++)
            if (takes(&commands[i], o->name))
                tune_append_item(others, sizeof others, "%s", commands[i].name);
        return tune_error_usage("%s takes no `%s`; %s do%s", c->name, o->name, others, strchr(others, ',') ? "" : "es");
    }
    return 0;
}

/* ---- questions ---- */

static struct tune_question make_question(const struct command *c, struct tune_store *store)
{
    bool people = !strcmp(my.output_format, "console");
    bool compare = c->words == 2;
    return (struct tune_question){
        .store = store, .experiments = my.experiments, .about = compare ? NULL : samples_word(&my, 0), .brief = people,
        .matching = !strcmp(my.include, "matching"), .operation = my.operation, .build = my.build,
        .where = my.where, .table = my.table, .derive = my.derive, .point = my.point, .points = my.points, .entities = tune_flags_given(&my.tune, "entities") ? my.entities : 0, .entity = my.entity, .properties = my.properties, .all_properties = my.all_properties,
        .aggregate = my.aggregate, .maximize = my.maximize, .minimize = my.minimize,
        .predicted = my.predicted, .per = my.per, .most = tune_flags_given(&my.tune, "count") ? my.count : 0, .x = my.x, .series = my.series, .facet = my.facet,
        .sides = {compare ? samples_word(&my, 0) : NULL, compare ? samples_word(&my, 1) : NULL}, .regression = my.regression, .labels = my.labels,
        .arrange = {.group_by = my.group_by, .aggregate = my.aggregate, .sort = my.sort, .columns = my.columns, .limit = my.limit}};
}

static int print_answer(const struct tune_answer_table *a, FILE *out)
{
    int width = out != stdout || (my.width == 0 && !isatty(STDOUT_FILENO)) ? my.width : drawing_columns(my.width, 0);
    return !strcmp(my.output_format, "csv") ? tune_answer_csv(a, out)
           : !strncmp(my.output_format, "json", 4) ? tune_answer_json(a, my.output_format[4], out)
           : !strcmp(my.output_format, "parquet")  ? tune_answer_parquet(a, out)
                                                   : tune_answer_print(a, width, drawing_unicode(false), out);
}

/* Print lines for a shell. */
static int print_commands(const struct tune_answer_table *a, FILE *out)
{
    for (int64_t row = 0; row < a->rows; row++)
        fprintf(out, "%s\n", tune_answer_at(a, row, 0)->text);
    return 0;
}

/* The answer with its options spelled as flags. */
struct tune_answer_table *samples_write_flags(const struct samples_flags *flags, struct tune_answer_table *a)
{
    for (int i = 0; a && i < a->note_count; i++)
        tune_flags_name_options(&flags->tune, a->notes[i].text);
    if (a && a->none)
        tune_flags_name_options(&flags->tune, a->none);
    if (a && a->advice)
        tune_flags_name_options(&flags->tune, a->advice);
    return a;
}

static void print_warnings(const struct tune_answer_table *a)
{
    for (int i = 0; i < a->note_count; i++)
        if (a->notes[i].position == TUNE_NOTE_WARNING)
            fprintf(stderr, "samples: %s\n", a->notes[i].text);
}

/* Refuse options of tables for a drawing, and options of drawings for a table. */
static int check_plot(bool drawn)
{
    static const char *const of_tables[] = {"columns", "sort", "limit"}, *const of_drawings[] = {"svg", "log", "color", "series", "facet"};
    for (int i = 0; i < (drawn ? 3 : 5); i++) {
        const char *name = drawn ? of_tables[i] : of_drawings[i];
        if (tune_flags_given(&my.tune, name))
            return tune_error_usage(drawn ? "a drawing takes no `%s`; a table does: `output-format` csv" : "a table takes no `%s`, which is for a drawing",
                                    name);
    }
    return 0;
}

static int answer(const struct command *c, struct tune_store *store, FILE *out)
{
    const struct tune_question q = make_question(c, store);
    if (!strcmp(my.output_format, "parquet") && !my.print_command && isatty(fileno(out)))
        return tune_error_usage("a terminal cannot show parquet; write a file: --output-file %s.parquet", c->name);
    const struct tune_question_kind *kind = tune_question_find(c->name);
    if (kind->ask == tune_ask_plot)
        TRY(check_plot(q.brief));
    if (kind->ask == tune_ask_plot && q.brief)
        return samples_draw(&my, &q, out);
    struct tune_answer_table *a = samples_write_flags(&my, my.print_command ? tune_ask_command(&q) : kind->ask(&q));
    if (!a)
        return -1;
    int code = my.print_command ? print_commands(a, out) : print_answer(a, out);
    print_warnings(a);
    code = code < 0 ? -1 : a->verdict;
    tune_answer_free(a);
    return code;
}

/* ---- main ---- */

static int run(const struct command *c, FILE *out)
{
    const char *a = samples_word(&my, 0), *b = samples_word(&my, 1);
    bool there = c->store != OPTIONAL || !a || !b || !tune_file_is_folder(a) || !tune_file_is_folder(b);
    struct tune_store *store = there ? tune_store_open(my.store, c->store == WRITES) : NULL;
    if (there && !store)
        return -1;
    int code = c->run ? c->run(&my, store, out) : answer(c, store, out);
    tune_store_free(store);
    return code;
}

/* Run the command with its output in a file, which is written atomically. */
static int run_into(const struct command *c, const char *path)
{
    struct tune_file_writer output;
    TRY(tune_file_begin_output(&output, path));
    int code = run(c, output.file);
    if (code >= 0 && tune_file_commit(&output) == 0)
        return code;
    tune_file_cancel(&output);
    return -1;
}

/* Choose the format by the ending of the output file, if none is given. */
static void choose_format(const struct command *c)
{
    static const char *const formats[] = {"csv", "json", "jsonl", "parquet"};
    const char *ending = my.output_file ? strrchr(my.output_file, '.') : NULL;
    if (tune_flags_given(&my.tune, "output-format"))
        return;
    if (!strcmp(c->name, "export"))
        my.output_format = "csv";
    for (int i = 0; i < 4 && ending; i++)
        if (!strcmp(ending + 1, formats[i]))
            my.output_format = formats[i];
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, ""); /* to find out if the terminal shows UTF-8 */
    tune_program_start(argc, argv, &my.tune, my_options, my_properties, "What a sample store holds.");
    const struct command *c = find_command(argc, argv);
    MUST(c ? check_options(c) : -1);
    MUST(project_read(&my.tune, &my.store, &my.experiments, NULL));
    choose_format(c);
    int problems = MUST(my.output_file ? run_into(c, my.output_file) : run(c, stdout));
    struct tune_progress none = {0};
    int code = tune_program_exit(&none);
    return code ? code : problems;
}
