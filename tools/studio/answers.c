/* answers.c - the questions of sweeps/answers over HTTP: what `samples` prints, as tables with
 * types, and as files. */
#include <stdlib.h>
#include <string.h>

#include "core/print.h"
#include "core/try.h"
#include "routes.h"
#include "spaces.h"
#include "sweeps/answers/print.h"
#include "sweeps/charts/picture.h"

/* Most rows of an answer without `limit`. */
enum { ROWS_MOST = 100000 };

/* ---- the question ---- */

static int confine_list(const struct studio *s, struct studio_reply *r, const char *what, const char *paths, uint64_t *hash)
{
    char path[TUNE_PATH_MAX];
    int more = 1;
    for (int k = 0; paths && (more = tune_path_listed(paths, k, path)) == 1; k++) {
        TRY(spaces_confine(s, r, what, path));
        TRY(spaces_stamp(s, r, path, hash));
    }
    return more < 0 ? -1 : 0;
}

static int refuse_slash(struct studio_reply *r, const char *what, const char *name)
{
    return name && strchr(name, '/') ? studio_fail(r, 400, "%s: \"%s\" is no name; it has a /", what, name) : 0;
}

/* Check a subject or side: a file or folder in the root, or a name. */
static int confine_subject(const struct studio *s, struct studio_reply *r, const char *what, const char *word, uint64_t *hash)
{
    if (!word || (!strchr(word, '/') && !tune_file_exists(word)))
        return 0;
    TRY(spaces_confine(s, r, what, word));
    if (!tune_file_is_folder(word))
        TRY(spaces_check_file(s, r, word));
    return spaces_stamp(s, r, word, hash);
}

static int read_options(const struct studio_request *q, struct spaces_question *a)
{
    static const char *const others[] = {"store", "about", "left", "right", "format", "brief", "log", "entities", "name", "key"};
    for (int i = 0; i < STUDIO_PARAMETERS && q->route->parameters[i].name; i++) {
        const char *name = q->route->parameters[i].name;
        bool other = !q->values[i];
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            other = other || !strcmp(name, others[k]);
        if (!other)
            TRY(tune_question_set(&a->q, a->kind, name, q->values[i]));
    }
    return 0;
}

int spaces_read_question(const struct studio *s, const struct studio_request *q, struct studio_reply *r, const char *name, struct spaces_question *a)
{
    char path[TUNE_PATH_MAX];
    *a = (struct spaces_question){.kind = tune_question_find(name), .new_store = a->new_store};
    uint64_t hash = spaces_hash(q->target, strlen(q->target), 0);
    TRY(spaces_stamp(s, r, "/proc/self/exe", &hash));
    TRY(spaces_stamp(s, r, TUNE_PROJECT_FILE, &hash));
    if (tune_defaults_path(path, "experiments") == 0)
        TRY(spaces_stamp(s, r, path, &hash));
    tune_error_clear();
    TRY(tune_project_read(&a->project));
    const char *store = studio_value(q, "store");
    a->store = store ? store : a->project.store ? a->project.store : "samples";
    a->q.experiments = a->project.experiments;
    a->q.about = studio_value(q, "about");
    a->q.sides[0] = studio_value(q, "left");
    a->q.sides[1] = studio_value(q, "right");
    a->q.brief = studio_bool(q, "brief", false);
    a->q.confined = true;
    TRY(read_options(q, a));
    bool plain = !strcmp(name, "compare") && a->q.sides[0] && a->q.sides[1] && tune_file_is_folder(a->q.sides[0]) && tune_file_is_folder(a->q.sides[1]);
    if (a->new_store && !tune_file_exists(a->store)) {
        TRY(tune_file_parent(path, a->store));
        TRY(spaces_confine(s, r, "store", path));
    } else if (!plain) {
        a->new_store = false;
        TRY(spaces_confine(s, r, "store", a->store));
        TRY(spaces_stamp(s, r, a->store, &hash));
    } else {
        a->store = NULL; /* two stores are compared */
    }
    TRY(confine_list(s, r, "experiments", a->q.experiments, &hash));
    TRY(confine_list(s, r, "table", a->q.table, &hash));
    TRY(confine_subject(s, r, "about", a->q.about, &hash));
    for (int i = 0; i < 2; i++)
        TRY(confine_subject(s, r, i ? "right" : "left", a->q.sides[i], &hash));
    TRY(refuse_slash(r, "operation", a->q.operation));
    TRY(refuse_slash(r, "build", a->q.build));
    if (strcmp(name, "command")) /* a command also depends on programs */
        studio_tag(r, &hash, sizeof hash);
    return *r->etag && q->if_none_match && !strcmp(q->if_none_match, r->etag);
}

void spaces_free_question(struct spaces_question *a)
{
    tune_project_free(&a->project);
}

struct tune_answer_table *spaces_ask(struct spaces_question *a)
{
    struct tune_answer_table *table = NULL;
    bool cut = !a->q.arrange.limit && tune_question_takes(a->kind, "limit");
    if (cut)
        a->q.arrange.limit = ROWS_MOST + 1;
    spaces_lock();
    a->q.store = a->store ? tune_store_open(a->store, false) : NULL;
    if (a->q.store || !a->store)
        table = a->kind->ask(&a->q);
    tune_store_free(a->q.store);
    a->q.store = NULL;
    spaces_unlock();
    if (cut)
        a->q.arrange.limit = 0;
    if (!table || !cut || table->rows <= ROWS_MOST)
        return table;
    tune_answer_free(table);
    tune_error_usage("the answer has more than %d rows; give `limit`, or fewer by `where`", ROWS_MOST);
    return NULL;
}

/* ---- the command ---- */

static void put_option(FILE *out, const char *name, const char *value)
{
    fputs(" --", out);
    for (; *name; name++)
        fputc(*name == '_' ? '-' : *name, out);
    if (strcmp(value, "true")) {
        fputc(' ', out);
        tune_print_word(out, value);
    }
}

void spaces_put_command(const struct studio_request *q, const struct spaces_question *a, FILE *out)
{
    bool command = !strcmp(a->kind->name, "command");
    fprintf(out, "samples %s", !command ? a->kind->name : a->q.entity ? "results" : "best");
    const char *const words[] = {a->q.about, a->q.sides[0], a->q.sides[1]};
    for (int i = 0; i < 3; i++)
        if (words[i]) {
            fputc(' ', out);
            tune_print_word(out, words[i]);
        }
    if (a->store && strcmp(a->store, a->project.store ? a->project.store : "samples"))
        put_option(out, "store", a->store);
    for (int i = 0; i < STUDIO_PARAMETERS && q->route->parameters[i].name; i++)
        if (q->values[i] && tune_question_takes(a->kind, q->route->parameters[i].name) && strcmp(q->values[i], "false"))
            put_option(out, q->route->parameters[i].name, q->values[i]);
    fputs(command ? " --print-command" : "", out);
}

/* ---- the answer ---- */

/* The answer as one object, with its command. */
static int put_object(const struct studio_request *q, const struct spaces_question *a, const struct tune_answer_table *table, FILE *out)
{
    char *line = NULL;
    size_t size;
    FILE *text = open_memstream(&line, &size);
    if (!text)
        return tune_error_cannot("out of memory for an answer");
    spaces_put_command(q, a, text);
    fclose(text);
    int code = tune_answer_object(table, line, out);
    free(line);
    return code;
}

static int put_answer(const struct studio_request *q, struct studio_reply *r, const struct spaces_question *a, const struct tune_answer_table *table)
{
    const char *format = studio_value(q, "format");
    if (!format)
        return put_object(q, a, table, r->out);
    snprintf(r->name, sizeof r->name, "%s.%s", a->kind->name, format);
    if (!strcmp(format, "csv"))
        return r->type = "text/csv; charset=utf-8", tune_answer_csv(table, r->out);
    if (!strcmp(format, "parquet"))
        return r->type = "application/vnd.apache.parquet", tune_answer_parquet(table, r->out);
    r->type = strcmp(format, "json") ? "application/x-ndjson" : "application/json";
    return tune_answer_json(table, format[4], r->out);
}

static int answer(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    struct spaces_question a = {0};
    int code = spaces_read_question(s, q, r, strrchr(q->route->path, '/') + 1, &a);
    if (code == 0) {
        struct tune_answer_table *table = spaces_ask(&a);
        code = table ? put_answer(q, r, &a, table) : -1;
        tune_answer_free(table);
    }
    spaces_free_question(&a);
    return code < 0 ? -1 : 0;
}

/* ---- the picture ---- */

/* Spell the options in a text as flags, as samples does for its pictures. The text becomes no longer. */
static void name_flags(char *text)
{
    static const char *const kinds[] = {"show", "best", "effect", "compare", "plot", "missing", "status"};
    char word[64];
    for (char *end; (text = strchr(text, '`')) && (end = strchr(text + 1, '`')); text = end) {
        int n = (int)(end - text - 1);
        bool flag = n > 0 && n < (int)sizeof word;
        snprintf(word, sizeof word, "%.*s", flag ? n : 0, text + 1);
        flag = flag && !strcmp(word, "store");
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds && *word && !flag; i++)
            flag = tune_question_takes(tune_question_find(kinds[i]), word);
        if (!flag)
            continue;
        memcpy(text, "--", 2);
        for (int i = 0; i < n; i++)
            text[2 + i] = word[i] == '_' ? '-' : word[i];
    }
}

static int put_picture(const struct studio_request *q, struct studio_reply *r, const struct spaces_question *a, const struct tune_answer_table *table)
{
    for (int i = 0; i < table->note_count; i++)
        name_flags(table->notes[i].text);
    struct tune_picture *p = tune_picture_new(table, &a->q, studio_bool(q, "log", false));
    int code = p ? tune_picture_svg(p, r->out) : -1;
    tune_picture_free(p);
    return code;
}

static int draw(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    struct spaces_question a = {0};
    int code = spaces_read_question(s, q, r, "plot", &a);
    if (code == 0) {
        struct tune_answer_table *table = spaces_ask(&a);
        code = table ? put_picture(q, r, &a, table) : -1;
        tune_answer_free(table);
    }
    spaces_free_question(&a);
    return code < 0 ? -1 : 0;
}

/* ---- routes ---- */

#define TEXT(name, text) {name, STUDIO_IN_QUERY, .help = text}
#define ANSWER SPACES_STORE, SPACES_EXPERIMENTS, \
    TEXT("columns", "columns to keep, with commas"), TEXT("sort", "columns to sort by, with commas; -COLUMN: highest first"), \
    {"limit", STUDIO_IN_QUERY, STUDIO_WHOLE, .most = 1e6, .help = "most rows; 0: all, at most 100000"}, \
    {"format", STUDIO_IN_QUERY, .choices = "csv|json|jsonl|parquet", .help = "a file to download, as samples writes it, in place of columns and rows"}
#define FIGURES TEXT("build", "builds whose results are used: last (the default), previous, all, or the beginning of a build's id"), DERIVED
#define DERIVED TEXT("table", "CSV file with additional columns for values of inputs"), \
    TEXT("derive", "new columns, with semicolons: usd = 3.2 / 3600 * train_runtime"), AGGREGATE
#define AGGREGATE {"aggregate", STUDIO_IN_QUERY, .choices = "mean|median|variance|std|min|max", .help = "how to combine several results of an entity"}
#define ALL_PROPERTIES {"all_properties", STUDIO_IN_QUERY, STUDIO_BOOL, .help = "also properties that are not targets"}
#define WHERE TEXT("where", "expression over inputs, properties, new columns and facts: batch_size <= 2")
#define OPERATION TEXT("operation", "only results of this operation")
#define GROUP_BY TEXT("group_by", "columns, with commas, whose equal rows become one")
#define RESULTS FIGURES, WHERE, OPERATION, \
    {"include", STUDIO_IN_QUERY, .choices = "measured|matching", .help = "measured: results of operations on this space; matching: of any"}
#define PROPERTY TEXT("property", "targets, with commas")
#define AIMS TEXT("maximize", "properties whose high values are better, with commas"), TEXT("minimize", "properties whose low values are better, with commas")
#define ENTITY {"entity", STUDIO_IN_QUERY, .required = true, .help = "identifier of an entity: batch_size.4-lr.0.1"}
#define BEST TEXT("per", "dimensions, with commas: the best for each of their values"), \
    {"count", STUDIO_IN_QUERY, STUDIO_WHOLE, .least = 1, .most = 1e6, .help = "number of the best; default 5, a Pareto front: all"}
#define X TEXT("x", "dimension to look at; plot: dimension or property of the x axis")
#define SERIES TEXT("series", "dimension; each of its values has a curve"), TEXT("facet", "dimension; each of its values has a plot")
#define ROUTE(question, operation, verb, summary, ...) \
    {"GET", "/api/answers/" question, operation, verb, summary, "application/json", answer, {__VA_ARGS__, {0}}}

const struct studio_route studio_answers_routes[] = {
    ROUTE("show", "answerShow", "space show", "What was measured.", ANSWER, SPACES_ABOUT, RESULTS, GROUP_BY, PROPERTY,
          ALL_PROPERTIES, TEXT("point", "who measured this point: batch_size=4,lr=0.1")),
    ROUTE("best", "answerBest", "space best", "The entities with the best figures, or the Pareto front.", ANSWER, SPACES_ABOUT, RESULTS, AIMS, BEST,
          {"predicted", STUDIO_IN_QUERY, STUDIO_BOOL, .help = "those that are worth measuring next, by a model of the results"},
          {"entities", STUDIO_IN_QUERY, STUDIO_WHOLE, .least = 1, .most = 1e6, .help = "with predicted: most entities that are looked at"}),
    ROUTE("effect", "answerEffect", "space effect", "The effect of dimensions, all else equal.", ANSWER, SPACES_ABOUT, RESULTS, PROPERTY, AIMS, X),
    ROUTE("compare", "answerCompare", "space compare", "Two sides, entity by entity.", ANSWER, FIGURES, WHERE, GROUP_BY, PROPERTY, AIMS,
          TEXT("left", "a side: NAME=VALUE, build=ID, host=TEXT, an operation or a store"), TEXT("right", "the other side"),
          TEXT("regression", "is the right side worse by more than this share: 5%")),
    ROUTE("plot", "answerPlot", NULL, "The points of a plot.", ANSWER, SPACES_ABOUT, RESULTS, PROPERTY, AIMS, X, SERIES),
    {"GET", "/api/answers/plot.svg", "drawAnswer", NULL, "The picture of a plot, as samples plot --svg draws it.", "image/svg+xml; charset=utf-8", draw,
     {SPACES_STORE, SPACES_EXPERIMENTS, SPACES_ABOUT, RESULTS, PROPERTY, AIMS, X, SERIES,
      {"log", STUDIO_IN_QUERY, STUDIO_BOOL, .help = "logarithmic values"}, {0}}},
    ROUTE("missing", "answerMissing", "space missing", "The entities without a valid result, and why.", ANSWER, SPACES_ABOUT, WHERE, OPERATION, GROUP_BY,
          {"brief", STUDIO_IN_QUERY, STUDIO_BOOL, .help = "group them by reason"}),
    ROUTE("points", "answerPoints", "space points", "The points of a space, with their states and figures.", ANSWER, SPACES_ABOUT, WHERE, OPERATION, TEXT("entity", "only this entity, by its identifier"),
          TEXT("build", "builds whose results are shown: all (the default), last, previous, or the beginning of a build's id"),
          TEXT("derive", "new columns, with semicolons"), AGGREGATE, GROUP_BY, PROPERTY, ALL_PROPERTIES),
    ROUTE("status", "answerStatus", "space status", "Counts of a store, a space or an operation.", ANSWER, SPACES_ABOUT,
          TEXT("label", "only spaces with this key=value in their metadata")),
    ROUTE("results", "answerResults", "space results", "The results of one entity, each with who measured it.", ANSWER, SPACES_ABOUT, ENTITY, OPERATION,
          TEXT("build", "builds whose results are listed: all (the default), last, previous, or the beginning of a build's id")),
    ROUTE("export", "answerExport", NULL, "All rows of the store.", ANSWER, DERIVED, WHERE, GROUP_BY),
    {"GET", "/api/answers/command", "answerCommand", "space command", "The command that measures the best entity.", "application/json", answer,
     {SPACES_STORE, SPACES_EXPERIMENTS, SPACES_ABOUT, RESULTS, AIMS, BEST, TEXT("entity", "of this entity in place of the best"), {0}}},
    {0},
};
