/* subject.c - find the subject of a question, and open it. */
#include "sweeps/answers/subject.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/decimal.h"
#include "core/nearest.h"
#include "core/print.h"
#include "core/statistics.h"
#include "sweeps/answers/pass.h"
#include "sweeps/discovery/type_conflicts.h"
#include "sweeps/discovery/halving.h"

enum { ID = 12 }; /* length of "space-1a2b3c" */

/* ---- names and lists ---- */

const char *tune_subject_word(struct tune_subject *s, const char *word)
{
    char *text = NULL;
    const char *copy = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out) {
        tune_print_word(out, word);
        copy = fclose(out) == 0 ? tune_answer_copy(s->a, text) : NULL;
    }
    free(text);
    return copy ? copy : "";
}

int tune_subject_list(struct tune_subject *s, const char *text, const char **names, int most)
{
    char *copy = text ? tune_answer_copy(s->a, text) : NULL;
    return text && !copy ? -1 : tune_name_split(copy, names, most);
}

int tune_subject_properties(struct tune_subject *s, const char *text, const char **names, int most)
{
    int all = s->derived_count, count = tune_subject_list(s, text, names, most);
    const char **known;
    TRY(count);
    for (int p = 0; p < s->space->reference_count; p++)
        all += s->bindings[p].experiment->target_count;
    TAKE(known, s->a, all);
    for (all = 0; all < s->derived_count; all++)
        known[all] = s->derived[all].name;
    for (int p = 0; p < s->space->reference_count; p++)
        for (int i = 0; i < s->bindings[p].experiment->target_count; i++)
            known[all++] = s->bindings[p].experiment->targets[i].name;
    for (int i = 0; i < count; i++)
        if (tune_name_find(known, all, names[i]) < 0)
            return tune_answer_no_such("property", names[i], known, all);
    return count;
}

int tune_subject_numbers(struct tune_subject *s, const char *text, const char **names, int most)
{
    int count = tune_subject_properties(s, text, names, most);
    for (int i = 0; i < count; i++)
        if (tune_subject_target(s, -1, names[i])->text)
            return tune_error_usage("%s is a text; %s works on numbers; use show to print texts",
                                    names[i], s->question);
    return count;
}

const struct tune_target *tune_subject_target(struct tune_subject *s, int binding, const char *name)
{
    int count = s->space->reference_count;
    for (int p = binding < 0 ? 0 : binding; p < (binding < 0 ? count : binding + 1); p++) {
        int i = tune_experiment_target(s->bindings[p].experiment, name);
        if (i >= 0)
            return &s->bindings[p].experiment->targets[i];
    }
    for (int d = 0; d < s->derived_count; d++)
        if (!strcmp(s->derived[d].name, name)) {
            struct tune_target *target = tune_answer_take(s->a, 1, sizeof *target);
            if (target)
                *target = (struct tune_target){.name = s->derived[d].name, .unit = "", .description = ""};
            return target;
        }
    return NULL;
}

int tune_subject_dimension(const struct tune_subject *s, const char *name)
{
    int d = tune_name_find(s->space->names, s->space->count, name);
    return d >= 0 ? d : tune_answer_no_such("dimension", name, s->space->names, s->space->count);
}

int tune_subject_median(const struct tune_subject *s)
{
    const char *how = s->q->aggregate;
    if (!how || !strcmp(how, "mean") || !strcmp(how, "median"))
        return how && !strcmp(how, "median");
    return tune_error_usage("%s joins several results by their mean or median, so `aggregate` must "
                            "be one of these, not %s", s->question, how);
}

int tune_subject_catalog(struct tune_subject *s)
{
    if (!s->catalog_read)
        TRY(tune_catalog_gather(&s->catalog, s->q->store ? tune_store_folder(s->q->store) : NULL, s->q->experiments));
    s->catalog_read = true;
    return 0;
}

/* ---- subjects ---- */

/* List the names of records of a kind, without their endings. NULL with an error. */
static char **list_records(struct tune_store *store, const char *kind, int *count)
{
    char **names = tune_store_records(store, kind, count);
    for (int i = 0; names && i < *count; i++)
        if (strrchr(names[i], '.'))
            *strrchr(names[i], '.') = 0;
    return names;
}

/* 1 if there is such a record, else 0; -1 with an error. */
static int has_record(struct tune_store *store, const char *kind, const char *name)
{
    int count;
    char **names = list_records(store, kind, &count);
    TRY(names ? 0 : -1);
    int found = tune_name_find((const char *const *)names, count, name) >= 0;
    tune_store_records_free(names, count);
    return found;
}

/* Set an error that lists the possible subjects. word: the subject that was asked for; NULL:
 * none. */
static int list_subjects(struct tune_subject *s, const char *word)
{
    const char *store = tune_subject_word(s, tune_store_folder(s->q->store));
    char known[2048] = "", hint[TUNE_HINT] = "";
    static const char *const kinds[] = {"spaces", "experiments", "operations"};
    const char *nearest = NULL;
    int best = 1 << 20;
    for (int k = 0; k < 3; k++) {
        int count, distance;
        char **names = k == 1 ? NULL : list_records(s->q->store, kinds[k], &count);
        const char *const *list = k == 1 ? tune_store_tables(s->q->store, &count) : (const char *const *)names;
        TRY(list ? 0 : -1);
        if (count > 0)
            tune_append(known, sizeof known, "%s%s ", *known ? "; " : "", kinds[k]);
        for (int i = 0; i < count && i < 8; i++)
            tune_append(known, sizeof known, "%s%s", i > 0 ? ", " : "", list[i]);
        if (count > 8)
            tune_append(known, sizeof known, ", and %d more", count - 8);
        const char *near = word ? tune_nearest(word, list, count, &distance) : NULL;
        if (near && distance < best && distance <= tune_nearest_limit(word)) {
            best = distance;
            nearest = near;
            snprintf(hint, sizeof hint, " (the nearest is %.200s)", nearest);
        }
        tune_store_records_free(names, names ? count : 0);
    }
    char entity[TUNE_STORE_TEXT_MAX + 1];
    if (!*known)
        return tune_error_set("%s has no rows yet", tune_store_folder(s->q->store));
    if (word && strchr(word, '.') && !nearest && tune_entity_nearest(s, word, entity))
        snprintf(hint, sizeof hint, " (the nearest is %.200s)", entity);
    if (word)
        return tune_error_usage("%s is not a file, and the store %s has no space, experiment, "
                                "operation or entity of that name%s; it has: %s; for details: "
                                "samples status `store` %s", word,
                                tune_store_folder(s->q->store), hint, known, store);
    return tune_error_usage("%s needs the name of one of these, or the file of a space: %s; for "
                            "details: samples status `store` %s", s->question,
                            known, store);
}

/* Without a name, take the only space, or else the only experiment. */
static int take_only(struct tune_subject *s)
{
    int count, tables;
    char **names = list_records(s->q->store, "spaces", &count);
    const char *const *list = tune_store_tables(s->q->store, &tables);
    if (count == 1 && names) {
        s->kind = TUNE_ABOUT_SPACE;
        s->name = tune_answer_copy(s->a, names[0]);
    } else if (count == 0 && list && tables == 1) {
        s->kind = TUNE_ABOUT_EXPERIMENT;
        s->name = tune_answer_copy(s->a, list[0]);
    }
    tune_store_records_free(names, names ? count : 0);
    TRY(names && list ? 0 : -1);
    return s->name ? 0 : list_subjects(s, NULL);
}

/* Find the experiment by its name or "actuator.name". NULL: there is none. */
static const char *find_table(struct tune_store *store, const char *word)
{
    int count;
    const char *const *names = tune_store_tables(store, &count);
    const char *dot = strchr(word, '.');
    for (int i = 0; names && i < count; i++)
        if (!strcmp(names[i], word) || (dot && !strcmp(names[i], dot + 1)))
            return names[i];
    return strcmp(word, TUNE_STORE_REQUESTS) ? NULL : TUNE_STORE_REQUESTS;
}

static int resolve(struct tune_subject *s)
{
    const char *word = s->q->about;
    struct tune_store *store = s->q->store;
    bool recorded = word && !strncmp(word, "space-", 6);
    int found = 0;
    s->name = word;
    s->operation = s->q->operation;
    if (!word)
        return take_only(s);
    if (recorded || (tune_file_exists(word) && !tune_file_is_folder(word)))
        s->kind = TUNE_ABOUT_SPACE;
    else if ((s->name = find_table(store, word)))
        s->kind = TUNE_ABOUT_EXPERIMENT;
    else if ((found = has_record(store, "operations", word)) > 0)
        s->kind = TUNE_ABOUT_OPERATION;
    else if (found == 0 && (found = tune_entity_known(s, word)) > 0)
        s->kind = TUNE_ABOUT_ENTITY;
    TRY(found);
    s->name = s->name ? s->name : word;
    if (s->kind == TUNE_ABOUT_OPERATION) {
        if (s->q->operation && strcmp(s->q->operation, word))
            return tune_error_usage("the command names operation %s, but `operation` is %s; leave "
                                    "one of them out", word, s->q->operation);
        s->operation = word;
    }
    return s->kind == TUNE_ABOUT_NOTHING ? list_subjects(s, word) : 0;
}

/* ---- spaces ---- */

/* Find the record of "space-1a2b3c". The name may end with the id of this store, or of a store
 * whose rows were merged. */
static int find_recorded(struct tune_subject *s, const char *name, char path[TUNE_PATH_MAX])
{
    size_t length = strlen(name);
    for (int json = 0; json < 2 && (length <= ID || name[ID] == '-') && !strchr(name, '/'); json++) {
        TRY(tune_path(path, "%s/spaces/%.*s%s", tune_store_folder(s->q->store), ID, name, json ? ".json" : ".yaml"));
        if (!tune_file_exists(path))
            continue;
        const char *store = tune_store_id(s->q->store), *other = length > ID ? name + ID + 1 : store;
        if (strcmp(other, store) && strcmp(other, "default")) /* "default" is not a store's id; space describe prints it */
            tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "%s is the id of this space in another "
                                                          "store; the store read here, %s, has the "
                                                          "same space", name, store);
        return 0;
    }
    int count;
    char **names = list_records(s->q->store, "spaces", &count);
    TRY(names ? 0 : -1);
    tune_answer_no_such("space", name, (const char *const *)names, count);
    tune_store_records_free(names, count);
    return -1;
}

/* Set the budget to the maximum of sweep --order halving. */
static int set_budget(struct tune_subject *s, const char *budget)
{
    struct tune_halving h;
    char text[TUNE_DECIMAL_SIZE];
    TRY(tune_halving_read(&h, budget));
    tune_decimal_json(text, h.most);
    return tune_space_set(s->space, &s->catalog, h.input, text);
}

/* Bind the space as the operation did. sweep --until-stable adds a parameter to experiments with
 * that input. */
static int bind_space(struct tune_subject *s)
{
    struct tune_operation_record record = {0};
    if (s->operation)
        TRY(tune_operation_record_read(s->q->store, s->operation, &record));
    double percent = record.until_stable;
    int code = record.budget ? set_budget(s, record.budget) : 0;
    bool own = !s->operation || (!strncmp(record.space, "space-", 6) && !strcmp(record.space + 6, s->space->id));
    tune_operation_record_free(&record);
    TRY(code);
    if (!own && s->kind != TUNE_ABOUT_EXPERIMENT)
        return tune_error_usage("operation %s did not measure this space (space-%s)", s->operation,
                                s->space->id);
    TRY(tune_space_bind(s->space, &s->catalog, &s->bindings));
    const struct tune_value value = tune_value_float(percent);
    return percent > 0 ? tune_bindings_set(s->bindings, s->space->reference_count, "until_stable", &value) : 0;
}

int tune_subject_space(struct tune_subject *s)
{
    char path[TUNE_PATH_MAX];
    struct tune_operation_record record;
    TRY(tune_subject_catalog(s));
    switch (s->kind) {
    case TUNE_ABOUT_SPACE:
        TRY(tune_path(path, "%s", s->name));
        if (!tune_file_exists(path))
            TRY(find_recorded(s, s->name, path));
        break;
    case TUNE_ABOUT_OPERATION:
        TRY(tune_operation_record_read(s->q->store, s->name, &record));
        int code = find_recorded(s, record.space, path);
        tune_operation_record_free(&record);
        TRY(code);
        break;
    case TUNE_ABOUT_EXPERIMENT:
        return (s->space = tune_experiment_space(s, s->name)) ? bind_space(s) : -1;
    default:
        return tune_error_usage("%s is one entity; %s takes a space, an experiment or an operation "
                                "(only show takes an entity)", s->name,
                                s->question);
    }
    if (!(s->space = tune_space_read(path)))
        return -1;
    if (s->space->reference_count == 0)
        return tune_error_usage("%s: this space names no experiment, so it has no measurements",
                                path);
    return bind_space(s);
}

/* ---- views ---- */

/* True if `where` refers to failed results. */
static bool wants_failed(const char *where)
{
    return where && (strstr(where, "status") || strstr(where, "reason"));
}

static void report_conflict(void *context, const char *sentence)
{
    struct tune_subject *s = context;
    tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "%s", sentence);
}

struct tune_view *tune_subject_view(struct tune_subject *s, const char *const *columns, int count, enum tune_subject_which which)
{
    const struct tune_question *q = s->q;
    bool experiment = s->kind == TUNE_ABOUT_EXPERIMENT;
    struct tune_view_options o = {.include = q->matching || (experiment && !s->operation) ? TUNE_VIEW_MATCHING : TUNE_VIEW_MEASURED,
                                  .where = q->where, .table = q->table, .operation = s->operation, .build = q->build ? q->build : "last",
                                  .valid = which == TUNE_VALID_RESULTS, .failed = which == TUNE_ALL_RESULTS || (which == TUNE_RESULTS && wants_failed(q->where)),
                                  .columns = columns, .column_count = count, .derived = s->derived, .derived_count = s->derived_count};
    if (which == TUNE_ALL_RESULTS)
        o.build = q->build ? q->build : "all";
    if (!experiment && tune_type_conflicts_find(q->store, s->space, s->bindings, &s->catalog, report_conflict, s) < 0)
        return NULL;
    struct tune_view *v = tune_view_open(q->store, s->space, s->bindings, &o);
    int64_t strays = v ? tune_view_strays(v) : 0;
    if (strays > 0)
        tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "%lld row%s of the store left out, because they "
                                                      "lack an experiment or a uid; samples check "
                                                      "`store` %s lists them", (long long)strays,
                             strays == 1 ? " is" : "s are", tune_store_folder(q->store));
    return v;
}

/* Add a note about the shown build, if other builds have results, too. */
static void report_build(struct tune_subject *s, const struct tune_view *v)
{
    for (int p = 0; p < s->space->reference_count; p++) {
        const struct tune_view_build *b = tune_view_build_of(v, p);
        char started[TUNE_FACT_TIME], under[1100] = "", which[TUNE_BUILD_ID_SIZE + 64];
        if (b->left_out == 0 || !tune_binding_is_first(s->bindings, p))
            continue;
        if (s->space->reference_count > 1)
            snprintf(under, sizeof under, " under %s", s->bindings[p].experiment->name);
        if (b->chosen > 1)
            snprintf(which, sizeof which, "the %d whose id begins with %.64s are shown", b->chosen,
                     s->q->build);
        else
            snprintf(which, sizeof which, "%s%s is shown", *b->id ? "build " : "a build without an "
                                                                               "id",
                     b->id);
        tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "of %d builds%s, %s, with %lld result%s, the "
                                                      "last of %.10s; %lld results of other builds are "
                                                      "left out: to see them, give `build` all, "
                                                      "previous or ID", b->builds, under, which,
                             (long long)b->results, b->results == 1 ? "" : "s",
                             b->started_s > 0 ? tune_time_text(b->started_s, started) : "unknown date", (long long)b->left_out);
    }
}

/* Add a note about results of an operation that used another value of an input. 1: it was added. */
static int report_other_value(struct tune_subject *s)
{
    struct tune_operation_record record;
    int count, reported = 0;
    char **names = tune_view_operations(s->q->store, s->space, &count);
    for (int i = 0; names && i < count && !reported; i++)
        if (tune_operation_record_read(s->q->store, names[i], &record) == 0) {
            if ((reported = record.budget != NULL))
                tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "operation %s measured with %s in rungs "
                                                              "of halving; to see the last rung, give "
                                                              "`operation` %s", names[i],
                                     record.budget, names[i]);
            else if ((reported = record.until_stable > 0))
                tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "operation %s measured with until_stable %g, which is another experiment; "
                                                              "to see its results, give `operation` %s", names[i], record.until_stable, names[i]);
            tune_operation_record_free(&record);
        }
    tune_store_records_free(names, names ? count : 0);
    tune_error_clear();
    return reported;
}

int tune_subject_add_notes(struct tune_subject *s, struct tune_view *v)
{
    struct tune_view_provenances o;
    struct tune_view_counts c;
    char missed[1024];
    TRY(tune_view_mixed(v, &o));
    if (*tune_view_missed(v, missed, sizeof missed))
        tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "%s", missed);
    report_build(s, v);
    if (o.host_classes > 1 || o.builds > 1)
        tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "these figures come from %d host class%s and %d "
                                                      "build%s, so a difference can come from those",
                             o.host_classes, o.host_classes == 1 ? "" : "es", o.builds, o.builds == 1 ? "" : "s");
    if (o.weights || o.data)
        tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "some entities have results from different "
                                                      "%s%s%s",
                             o.weights ? "weights" : "",
                             o.weights && o.data ? " and " : "", o.data ? "data" : "");
    if (s->a->rows > 0 || s->q->matching || s->operation || s->kind == TUNE_ABOUT_EXPERIMENT)
        return 0;
    TRY(tune_view_counted(v, &c));
    if (c.measured == 0 && c.matching_results > 0)
        tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "no operation on this space is in the store, but "
                                                      "operations on other spaces measured %lld of its "
                                                      "entities; to see these, give `include` matching",
                             (long long)c.matching_results);
    else if (c.measured == 0 && !report_other_value(s))
        return tune_unused_other_inputs(s);
    return 0;
}

/* ---- figures ---- */

int tune_figures_read(struct tune_subject *s, struct tune_figures *f, struct tune_view *v, int results, bool finite)
{
    if (results > f->capacity || !f->count) {
        f->capacity = 2 * results;
        TAKE(f->count, s->a, f->columns);
        TAKE(f->values, s->a, (int64_t)f->columns * f->capacity);
    }
    memset(f->count, 0, (size_t)f->columns * sizeof *f->count);
    for (int k = 0; k < results; k++) {
        const struct tune_cell *cells = tune_view_cells(v, k);
        TRY(cells ? 0 : -1);
        for (int c = 0; c < f->columns; c++)
            if (!cells[c].absent && !cells[c].text && finite && isinf(cells[c].number))
                f->infinite++;
            else if (!cells[c].absent && !cells[c].text && !isnan(cells[c].number))
                tune_figures_of(f, c)[f->count[c]++] = cells[c].number;
    }
    return 0;
}

double *tune_figures_of(const struct tune_figures *f, int column)
{
    return f->values + (size_t)column * (size_t)f->capacity;
}

/* ---- the entry point ---- */

static void close_subject(struct tune_subject *s)
{
    tune_unused_free(s);
    if (s->space)
        tune_bindings_free(s->bindings, s->space->reference_count);
    tune_space_free(s->space);
    tune_catalog_free(&s->catalog);
    tune_derived_free(s->derived, s->derived_count);
}

/* Add a note with the number of forgotten rows. */
static int report_forgotten(struct tune_subject *s)
{
    bool one = s->kind == TUNE_ABOUT_EXPERIMENT && strcmp(s->name, TUNE_STORE_REQUESTS);
    int64_t rows = s->q->store ? tune_store_forgotten_rows(s->q->store, one ? s->name : NULL) : 0;
    TRY(rows);
    if (rows > 0)
        tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "%lld row%s of the store %s forgotten and left "
                                                      "out of all answers; samples check `store` %s "
                                                      "lists them", (long long)rows,
                             rows == 1 ? "" : "s", rows == 1 ? "is" : "are", tune_subject_word(s, tune_store_folder(s->q->store)));
    return 0;
}

struct tune_answer_table *tune_subject_answer(const struct tune_question *q, const char *question, int (*make)(struct tune_subject *s))
{
    struct tune_subject s = {.q = q, .question = question, .a = tune_answer_new()};
    if (!s.a)
        return NULL;
    char none[TUNE_PATH_MAX + 200];
    const char *store = q->store ? tune_subject_word(&s, tune_store_folder(q->store)) : "";
    snprintf(none, sizeof none, "no rows: the store has none that fit this command and its "
                                "options; to see what it has: samples status `store` %s", store);
    s.a->none = tune_answer_copy(s.a, none);
    s.a->advice = tune_answer_copy(s.a, "`columns` chooses");
    int code = s.a->none ? tune_derived_read(q->derive, &s.derived, &s.derived_count) : -1;
    if (code == 0 && (strcmp(question, "status") || q->about) && strcmp(question, "export") && strcmp(question, "compare") &&
        (strcmp(question, "show") || !q->point))
        code = resolve(&s);
    if (code == 0)
        code = make(&s);
    if (code == 0)
        code = report_forgotten(&s);
    if (code == 0)
        code = tune_answer_arrange(s.a, &q->arrange);
    for (int i = 0; code == 0 && i < s.a->count; i++) /* those of experiments, which are freed here */
        code = (s.a->columns[i].unit = tune_answer_copy(s.a, s.a->columns[i].unit)) ? 0 : -1;
    close_subject(&s);
    if (code == 0)
        return tune_answer_finish(s.a);
    tune_answer_free(s.a);
    return NULL;
}
