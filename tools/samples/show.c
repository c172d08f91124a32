/* show.c - the rows of a space as ado shows them: CSV with pandas' blank first heading and row index, JSON records, or a table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/decimal.h"
#include "samples.h"
#include "spaces/frame.h"

/* A column behind the constitutive ones: a target of one protocol, or in target format of any. */
struct shown {
    char *heading;
    int column;   /* of the view */
    int protocol; /* -1: of whichever the row is */
    bool whole;
};

static struct {
    struct tune_view *view;
    const char **columns;        /* of the view: the generator, then targets */
    int column_count;
    struct shown *shown;
    int shown_count;
    bool target_format;
    int64_t rows;
    char *text;                  /* of the present cell */
    size_t size;
} show;

static int no_memory(void)
{
    return samples_fail(TUNE_ERROR_CANNOT, "out of memory while rows are shown");
}

/* ---- columns ---- */

static bool asked_for(const char *name)
{
    static const char *parts[256];
    static int count = -1;
    if (count < 0)
        count = samples_split(my.properties, parts, 256);
    for (int i = 0; i < count; i++)
        if (!strcmp(parts[i], name))
            return true;
    return count == 0;
}

/* Shown by default: what the experiment declares for these parameters; --property and --all-properties ask for others. */
static bool is_shown(int protocol, const struct tune_target *t)
{
    return asked_for(t->name) && (my.properties || my.all_properties || tune_protocol_shows(&samples.protocols[protocol], t));
}

static int view_column(const char *name)
{
    for (int i = 0; i < show.column_count; i++)
        if (!strcmp(show.columns[i], name))
            return i;
    show.columns[show.column_count] = name;
    return show.column_count++;
}

static int add_shown(int protocol, const struct tune_target *t)
{
    struct shown *s = &show.shown[show.shown_count];
    s->column = view_column(t->name);
    s->whole = t->whole;
    s->protocol = show.target_format ? -1 : protocol;
    for (int i = 0; show.target_format && i < show.shown_count; i++)
        if (show.shown[i].column == s->column)
            return 0;
    if ((show.target_format ? asprintf(&s->heading, "%s", t->name)
                            : asprintf(&s->heading, "%s-%s", samples.protocols[protocol].identifier, t->name)) < 0)
        return no_memory();
    show.shown_count++;
    return 0;
}

static int choose_columns(void)
{
    int most = 1;
    for (int p = 0; p < samples.space->reference_count; p++)
        most += samples.protocols[p].experiment->target_count;
    if (!(show.columns = calloc((size_t)most, sizeof *show.columns)) || !(show.shown = calloc((size_t)most, sizeof *show.shown)))
        return no_memory();
    view_column(tune_key_column(TUNE_KEY_GENERATOR)->name);
    for (int p = 0; p < samples.space->reference_count; p++)
        for (int i = 0; i < samples.protocols[p].experiment->target_count; i++) {
            const struct tune_target *t = &samples.protocols[p].experiment->targets[i];
            if (is_shown(p, t))
                TRY(add_shown(p, t));
        }
    if (my.properties && show.shown_count == 0)
        return samples_fail(TUNE_ERROR_USAGE, "--property: no experiment of this space has such a target");
    return 0;
}

/* Only columns that some row has a value in. */
static int drop_empty_columns(void)
{
    int kept = 0;
    for (int i = 0; i < show.shown_count; i++) {
        int present = tune_view_present(show.view, show.shown[i].protocol, show.shown[i].column);
        TRY(present);
        if (present)
            show.shown[kept++] = show.shown[i];
        else
            free(show.shown[i].heading);
    }
    show.shown_count = kept;
    return 0;
}

/* ---- cells ---- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double aggregate(double *v, int n)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++)
        sum += v[i];
    for (int i = 0; i < n; i++)
        squares += (v[i] - sum / n) * (v[i] - sum / n);
    qsort(v, (size_t)n, sizeof *v, ascending);
    switch (my.aggregate[0]) {
    case 'v':
        return squares / n;
    case 's':
        return sqrt(squares / n);
    case 'm':
        if (!strcmp(my.aggregate, "median"))
            return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
        return !strcmp(my.aggregate, "mean") ? sum / n : !strcmp(my.aggregate, "min") ? v[0] : v[n - 1];
    default:
        return NAN;
    }
}

static int room(size_t size)
{
    if (size <= show.size)
        return 0;
    char *grown = realloc(show.text, size);
    if (!grown)
        return no_memory();
    show.text = grown;
    show.size = size;
    return 0;
}

static int spell(char *text, double v, bool whole)
{
    return whole && v == floor(v) && fabs(v) < 1e18 ? sprintf(text, "%lld", (long long)v) : tune_decimal_python(text, v);
}

/* The cell of a group into show.text: "" where it has no value, a number, or "[a, b]" of several results. */
static int fill_cell(const struct tune_view_group *g, const struct shown *s)
{
    double few[64], *v = g->results > 64 ? malloc((size_t)g->results * sizeof *v) : few;
    int n = 0;
    if (!v)
        return no_memory();
    for (int k = 0; k < g->results; k++) {
        const struct tune_cell *cell = tune_view_cell(show.view, k, s->column);
        if (!cell) {
            free(v == few ? NULL : v);
            return -1;
        }
        if (!cell->absent && !cell->text)
            v[n++] = cell->number;
    }
    int code = room((size_t)n * TUNE_DECIMAL_SIZE + 8);
    if (code == 0) {
        char *at = show.text;
        *at = 0;
        if (n == 1 || (n > 1 && my.aggregate)) {
            spell(at, n == 1 ? v[0] : aggregate(v, n), s->whole);
        } else if (n > 1) {
            *at++ = '[';
            for (int i = 0; i < n; i++) {
                at += sprintf(at, "%s", i ? ", " : "");
                at += spell(at, v[i], s->whole);
            }
            strcpy(at, "]");
        }
    }
    free(v == few ? NULL : v);
    return code;
}

static int fill_value(const struct tune_value *v)
{
    int length = tune_value_id(v, NULL, 0);
    TRY(room((size_t)length + 1));
    tune_value_id(v, show.text, (size_t)length + 1);
    return 0;
}

static int fill_identifier(const struct tune_view_group *g)
{
    int length = tune_entity_identifier(samples.space->names, g->entity, samples.space->count, NULL, 0);
    TRY(room((size_t)length + 1));
    tune_entity_identifier(samples.space->names, g->entity, samples.space->count, show.text, (size_t)length + 1);
    return 0;
}

/* ---- the three formats, cell by cell ---- */

static struct tune_frame *frame;

static void put(const char *heading, bool number, bool first)
{
    FILE *out = samples.out;
    const char *text = show.text;
    if (frame) {
        tune_frame_cell(frame, *text ? text : number ? "NaN" : "None");
        return;
    }
    if (!strcmp(my.output_format, "json")) {
        struct tune_value name = tune_value_text(heading), value = tune_value_text(text);
        char quoted[2 * TUNE_STORE_TEXT_MAX];
        tune_value_json(&name, quoted, sizeof quoted);
        fprintf(out, "%s%s: ", first ? "" : ", ", quoted);
        if (number || !*text) {
            fputs(*text ? text : "null", out);
            return;
        }
        tune_value_json(&value, quoted, sizeof quoted);
        fputs(quoted, out);
        return;
    }
    fputc(',', out);
    if (!strpbrk(text, ",\"\n\r")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void begin_row(void)
{
    if (frame)
        return;
    if (!strcmp(my.output_format, "json"))
        fputs(show.rows ? ",\n  {" : "[\n  {", samples.out);
    else
        fprintf(samples.out, "%lld", (long long)show.rows);
}

static void end_row(void)
{
    show.rows++;
    if (!frame)
        fputs(!strcmp(my.output_format, "json") ? "}" : "\n", samples.out);
}

static bool is_number(const struct tune_value *v)
{
    double number;
    return tune_value_number(v, &number);
}

static int put_entity(const struct tune_view_group *g, bool results)
{
    TRY(fill_identifier(g));
    put("identifier", false, true);
    if (results) {
        const struct tune_cell *generator = tune_view_cell(show.view, 0, 0);
        if (!generator)
            return -1;
        TRY(room(strlen(generator->text) + 1));
        strcpy(show.text, generator->text);
        put("generatorid", false, false);
    }
    if (results && show.target_format) {
        TRY(room(strlen(samples.protocols[g->protocol].full_identifier) + 1));
        strcpy(show.text, samples.protocols[g->protocol].full_identifier);
        put("experiment_id", false, false);
    }
    for (int d = 0; d < samples.space->count; d++) {
        TRY(fill_value(&g->entity[d]));
        put(samples.space->names[d], is_number(&g->entity[d]), false);
    }
    return 0;
}

static int put_targets(const struct tune_view_group *g, int from, int to)
{
    for (int i = from; i < to; i++) {
        TRY(fill_cell(g, &show.shown[i]));
        put(show.shown[i].heading, true, false);
    }
    return 0;
}

static void put_blank(int from, int to)
{
    show.text[0] = 0;
    for (int i = from; i < to; i++)
        put(show.shown[i].heading, true, false);
}

/* In observed format one row has all experiments of an entity: their groups follow each other. */
static int put_observed(const struct tune_view_group *g, int *filled)
{
    int from = *filled;
    while (from < show.shown_count && show.shown[from].protocol < g->protocol)
        from++;
    int to = from;
    while (to < show.shown_count && show.shown[to].protocol == g->protocol)
        to++;
    put_blank(*filled, from);
    *filled = to;
    return put_targets(g, from, to);
}

static int put_rows(bool results)
{
    struct tune_view_group g;
    struct tune_value *entity = calloc((size_t)samples.space->count + 1, sizeof *entity);
    int more, filled = 0, code = 0;
    bool open = false;
    if (!entity)
        return no_memory();
    while (code == 0 && (more = tune_view_next(show.view, &g)) == 1) {
        bool same = open && results && !show.target_format;
        for (int d = 0; same && d < samples.space->count; d++)
            same = tune_value_equal(&entity[d], &g.entity[d]);
        if (open && !same) {
            if (results && !show.target_format)
                put_blank(filled, show.shown_count);
            end_row();
            open = false;
        }
        if (my.limit > 0 && show.rows >= my.limit)
            break;
        if (!open) {
            begin_row();
            code = put_entity(&g, results);
            memcpy(entity, g.entity, (size_t)samples.space->count * sizeof *entity);
            open = true;
            filled = 0;
        }
        if (code == 0 && results)
            code = show.target_format ? put_targets(&g, 0, show.shown_count) : put_observed(&g, &filled);
        if (ferror(samples.out))
            code = samples_fail(TUNE_ERROR_FAILED, "the rows cannot be written: disk full, or a closed pipe");
    }
    if (code == 0 && more < 0)
        code = -1;
    if (code == 0 && open) {
        if (results && !show.target_format)
            put_blank(filled, show.shown_count);
        end_row();
    }
    free(entity);
    return code;
}

/* ---- the whole ---- */

static const char **headings(bool results, int *count)
{
    const char **all = calloc((size_t)(3 + samples.space->count + show.shown_count), sizeof *all);
    int n = 0;
    if (!all) {
        no_memory();
        return NULL;
    }
    all[n++] = "identifier";
    if (results)
        all[n++] = "generatorid";
    if (results && show.target_format)
        all[n++] = "experiment_id";
    for (int d = 0; d < samples.space->count; d++)
        all[n++] = samples.space->names[d];
    for (int i = 0; results && i < show.shown_count; i++)
        all[n++] = show.shown[i].heading;
    *count = n;
    return all;
}

static int put_all(bool results)
{
    int count;
    const char **names = headings(results, &count);
    if (!names)
        return -1;
    TRY(room(1024));
    bool people = !strcmp(my.output_format, "console") || !strcmp(my.output_format, "table");
    if (people && !(frame = tune_frame_new(names, count)))
        return -1;
    for (int i = 0; !people && strcmp(my.output_format, "json") && i < count; i++) {
        snprintf(show.text, show.size, "%s", names[i]);
        put("", false, i == 0);
    }
    if (!people && strcmp(my.output_format, "json"))
        fputc('\n', samples.out);
    int code = put_rows(results);
    if (code == 0 && !strcmp(my.output_format, "json"))
        fputs(show.rows ? "\n]\n" : "[]\n", samples.out);
    if (code == 0 && frame && show.rows == 0)
        fputs("Nothing\n", samples.out);
    else if (code == 0 && frame)
        code = tune_frame_print(frame, 0, samples.out);
    tune_frame_free(frame);
    frame = NULL;
    if (code == 0 && people && (show.rows > 50 || count > 20))
        fprintf(stderr, "samples: %lld rows of %d columns; --output-format csv is easier to look at\n", (long long)show.rows, count);
    free(names);
    return code;
}

int samples_show(void)
{
    struct tune_view_options o = {.where = my.where, .operation = my.operation};
    static const char *const views[] = {"measured", "matching", "missing", "unmeasured", "sampled", "", "", "unsampled"};
    TRY(samples_open_space(samples_word(0)));
    for (int i = 0; i < 8; i++)
        if (!strcmp(my.include, views[i]))
            o.include = (enum tune_view_include)(i % 4);
    show.target_format = !strcmp(my.property_format, "target");
    TRY(choose_columns());
    o.columns = show.columns;
    o.column_count = show.column_count;
    if (!(show.view = tune_view_open(samples.store, samples.space, samples.protocols, &o)))
        return -1;
    bool results = o.include == TUNE_VIEW_MEASURED || o.include == TUNE_VIEW_MATCHING;
    int code = results ? drop_empty_columns() : 0;
    if (code == 0)
        code = put_all(results);
    if (code == 0 && results)
        code = samples_say_mixed(show.view);
    for (int i = 0; i < show.shown_count; i++)
        free(show.shown[i].heading);
    free(show.shown);
    free(show.columns);
    free(show.text);
    tune_view_free(show.view);
    return code;
}
