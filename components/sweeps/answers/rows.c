/* rows.c - list the rows of an experiment or of the whole store, and make a space from an
 * experiment's rows. */
#include "sweeps/answers/pass.h"

#include <stdlib.h>
#include <string.h>

#include "core/print.h"

/* ---- rows ---- */

static void add_columns(struct tune_answer_table *a, const struct tune_pass *t)
{
    for (int i = 0; i < t->count; i++) {
        struct tune_answer_column *c = tune_answer_column(a, t->columns[i].name);
        c->unit = t->columns[i].unit;
        c->measured = t->columns[i].role == TUNE_COLUMN_TARGET;
        c->dimension = t->columns[i].role == TUNE_COLUMN_INPUT;
        c->hidden = (i == TUNE_KEY_UID || i == TUNE_KEY_ENTITY) && strcmp(t->name, TUNE_STORE_REQUESTS);
    }
}

int tune_show_rows(struct tune_subject *s)
{
    struct tune_pass t;
    const struct tune_cell *cells;
    bool sorts = s->q->arrange.sort || s->q->arrange.group_by;
    int more = tune_pass_open(&t, s, s->q->store, s->name, true);
    if (more == 0)
        add_columns(s->a, &t);
    while (more >= 0 && !tune_answer_full(s->a, sorts ? 0 : s->q->arrange.limit) && (more = tune_pass_next(&t, &cells)) == 1) {
        for (int i = 0; i < t.count; i++)
            tune_pass_cell(s->a, &t.columns[i], &cells[i], s->q->brief);
        more = tune_answer_end_row(s->a) < 0 ? -1 : 1;
    }
    tune_pass_free(&t);
    return more < 0 ? -1 : 0;
}

/* ---- the whole store ---- */

/* Add the table's columns to the answer. indexes: their indexes in the answer. */
static int merge_columns(struct tune_subject *s, const char *table, int **indexes)
{
    int count;
    const struct tune_column *columns = tune_store_columns(s->q->store, table, &count);
    TRY(columns ? 0 : -1);
    TAKE(*indexes, s->a, count + 1);
    for (int i = 0; i < count; i++) {
        int at = tune_answer_find(s->a, columns[i].name);
        if (at < 0) {
            struct tune_answer_column *c = tune_answer_column(s->a, columns[i].name);
            c->unit = tune_answer_copy(s->a, columns[i].unit);
            c->measured = columns[i].role == TUNE_COLUMN_TARGET;
            c->dimension = columns[i].role == TUNE_COLUMN_INPUT;
            at = s->a->count - 1;
        }
        (*indexes)[i] = at;
    }
    return 0;
}

static int export_table(struct tune_subject *s, const char *table, const int *indexes)
{
    const struct tune_cell *cells, none = {.absent = true};
    const struct tune_column plain = {.unit = "", .name = ""};
    struct tune_pass t;
    int more = tune_pass_open(&t, s, s->q->store, table, true), *from = tune_answer_take(s->a, s->a->count + 1, sizeof *from);
    for (int i = 0; from && i < t.stored; i++)
        from[indexes[i]] = i + 1;
    for (int d = 0; from && d < s->derived_count; d++) /* new columns come last */
        from[s->a->count - s->derived_count + d] = t.stored + d + 1;
    while (from && more >= 0 && (more = tune_pass_next(&t, &cells)) == 1) {
        for (int c = 0; c < s->a->count; c++)
            tune_pass_cell(s->a, from[c] ? &t.columns[from[c] - 1] : &plain, from[c] ? &cells[from[c] - 1] : &none, false);
        more = tune_answer_end_row(s->a) < 0 ? -1 : 1;
    }
    tune_pass_free(&t);
    return more < 0 || !from ? -1 : 0;
}

/* True if `where` can be evaluated on the table's rows. */
static bool is_askable(struct tune_subject *s, const char *table)
{
    struct tune_pass t;
    bool good = tune_pass_open(&t, s, s->q->store, table, true) == 0;
    tune_pass_free(&t);
    return good;
}

static int export(struct tune_subject *s)
{
    int count, **indexes, asked = 0;
    const char *const *tables = tune_store_tables(s->q->store, &count);
    TRY(tables ? 0 : -1);
    if (s->q->aggregate && !s->q->arrange.group_by)
        return tune_error_usage("export takes `aggregate` with `group_by` only");
    TAKE(indexes, s->a, count);
    for (int i = 0; i < count; i++)
        TRY(merge_columns(s, tables[i], &indexes[i]));
    for (int d = 0; d < s->derived_count; d++)
        tune_answer_column(s->a, s->derived[d].name)->measured = true;
    for (int i = 0; i < count; i++)
        if (is_askable(s, tables[i])) {
            tune_error_clear();
            TRY(export_table(s, tables[i], indexes[i]));
            asked++;
        } else if (tune_error_kind() != TUNE_ERROR_USAGE)
            return -1;
    if (asked == 0 && count > 0)
        return -1; /* keep the error of the last table */
    if (asked < count)
        tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "%d of %d experiments have no column of a name "
                                                      "used in `where` or `derive`, so their rows are "
                                                      "left out", count - asked, count);
    tune_error_clear();
    return 0;
}

struct tune_answer_table *tune_ask_export(const struct tune_question *q)
{
    return tune_subject_answer(q, "export", export);
}

/* ---- the space of an experiment ---- */

/* The values of an input. They are distinct after unite. */
struct levels {
    int column;
    struct tune_value *values; /* [count] copies */
    int count, full;           /* full: the count at which duplicates are removed next */
};

static int by_value(const void *a, const void *b)
{
    return tune_value_compare(a, b);
}

/* Sort the values and remove duplicates. */
static void unite(struct levels *l)
{
    int n = 0;
    if (l->count > 0)
        qsort(l->values, (size_t)l->count, sizeof *l->values, by_value);
    for (int i = 0; i < l->count; i++)
        if (n == 0 || !tune_value_equal(&l->values[n - 1], &l->values[i]))
            l->values[n++] = l->values[i];
    l->count = n;
}

static int add_level(struct tune_subject *s, struct levels *l, const struct tune_value *value)
{
    enum { LAST = 64 }; /* most inputs have few values: then this search finds all duplicates */
    for (int i = l->count - 1; i >= 0 && i >= l->count - LAST; i--)
        if (tune_value_equal(&l->values[i], value))
            return 0;
    if (l->count >= l->full && l->count > LAST) {
        unite(l);
        l->full = 2 * l->count + LAST;
    }
    FIT(l->values, l->count);
    l->values[l->count] = *value;
    if (value->type == TUNE_VALUE_TEXT)
        TRY((l->values[l->count].text = tune_answer_copy(s->a, value->text)) ? 0 : -1);
    l->count++;
    return 0;
}

static void write_json(FILE *out, const struct tune_value *v)
{
    char text[2 * TUNE_STORE_TEXT_MAX];
    tune_value_json(v, text, sizeof text);
    fputs(text, out);
}

static void write_text(FILE *out, const char *text)
{
    const struct tune_value v = tune_value_text(text);
    write_json(out, &v);
}

/* True if the input becomes a dimension, because it is required or varies. If there is no such
 * input, the first one becomes a dimension. */
static bool is_dimension(const struct tune_pass *t, const struct levels *all, int count, int i)
{
    bool any = false;
    for (int k = 0; k < count; k++) {
        int input = tune_experiment_input(t->experiment, t->names[all[k].column]);
        bool dimension = input >= 0 && all[k].count > 0 && (t->experiment->inputs[input].required || all[k].count > 1);
        if (k == i && dimension)
            return true;
        any = any || dimension;
    }
    return !any && i == 0;
}

/* Write a space file with these levels, as JSON. */
static void write_space(const struct tune_pass *t, struct levels *all, int count, FILE *out)
{
    const struct tune_experiment *e = t->experiment;
    int written = 0, parameters = 0;
    fputs("{\"entitySpace\": [", out);
    for (int i = 0; i < count; i++) {
        struct levels *l = &all[i];
        if (!is_dimension(t, all, count, i))
            continue;
        fputs(written++ ? ", {\"identifier\": " : "{\"identifier\": ", out);
        write_text(out, t->names[l->column]);
        fputs(", \"propertyDomain\": {\"values\": [", out);
        for (int k = 0; k < l->count; k++) {
            fputs(k > 0 ? ", " : "", out);
            write_json(out, &l->values[k]);
        }
        fputs("]}}", out);
    }
    fputs("], \"experiments\": [{\"actuatorIdentifier\": ", out);
    write_text(out, e->actuator);
    fputs(", \"experimentIdentifier\": ", out);
    write_text(out, e->name);
    for (int i = 0; i < count; i++) {
        const struct levels *l = &all[i];
        int input = tune_experiment_input(e, t->names[l->column]);
        if (input < 0 || is_dimension(t, all, count, i) || l->count != 1 || tune_value_equal(&l->values[0], &e->inputs[input].standard))
            continue;
        fputs(parameters++ ? ", {" : ", \"parameterization\": [{", out);
        fputs("\"property\": {\"identifier\": ", out);
        write_text(out, t->names[l->column]);
        fputs("}, \"value\": ", out);
        write_json(out, &l->values[0]);
        fputc('}', out);
    }
    fputs(parameters > 0 ? "]}]}\n" : "}]}\n", out);
}

static int read_levels(struct tune_subject *s, struct tune_pass *t, struct levels *all, int count)
{
    const struct tune_cell *cells;
    int more;
    while ((more = tune_pass_next(t, &cells)) == 1)
        for (int i = 0; i < count && tune_rows_of(&cells[TUNE_KEY_EXPERIMENT], t->experiment); i++) {
            struct tune_value value = tune_pass_value(t, all[i].column, &cells[all[i].column]);
            TRY(add_level(s, &all[i], &value));
        }
    for (int i = 0; i < count; i++)
        unite(&all[i]);
    return more;
}

static struct tune_space *make_space(struct tune_pass *t, struct levels *all, int count)
{
    char *text = NULL;
    size_t size;
    struct tune_space *space = NULL;
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        tune_answer_no_memory();
        return NULL;
    }
    write_space(t, all, count, out);
    if (fclose(out) == 0) {
        struct tune_document *d = tune_document_parse(t->name, text, size, true);
        space = d ? tune_space_parse(d) : NULL;
    }
    free(text);
    return space;
}

struct tune_space *tune_experiment_space(struct tune_subject *s, const char *name)
{
    struct tune_pass t;
    struct tune_space *space = NULL;
    int code = tune_pass_open(&t, s, s->q->store, name, false), count = 0;
    struct levels *all = code == 0 ? tune_answer_take(s->a, t.stored, sizeof *all) : NULL;
    if (all && !t.experiment) {
        tune_error_usage("experiment %s is unknown here: give its file with `experiments`, or ask "
                         "%s about a space", name,
                         s->question);
        all = NULL;
    }
    for (int i = 0; all && i < t.stored; i++)
        if (t.columns[i].role == TUNE_COLUMN_INPUT)
            all[count++].column = i;
    bool read = all && read_levels(s, &t, all, count) == 0;
    if (read && count > 0 && all[0].count == 0)
        tune_error_set("%s: no row of experiment %s can be used: there are none, or they are "
                       "forgotten; samples check `store` %s lists forgotten rows",
                       tune_store_folder(s->q->store),
                       name, tune_subject_word(s, tune_store_folder(s->q->store)));
    else if (read)
        space = make_space(&t, all, count);
    for (int i = 0; all && i < count; i++)
        free(all[i].values);
    tune_pass_free(&t);
    return space;
}
