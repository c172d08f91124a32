/* expected.c - what models of the stored results say of points that a dry run lists: properties, and
 * the time of a measurement. */
#include <math.h>

#include "core/nearest.h"
#include "sweep.h"
#include "sweeps/discovery/view.h"
#include "sweeps/surrogate/predictor.h"

enum { MOST_PROPERTIES = 4, SHOWN_PROPERTIES = 2, MOST_TIMES = 2000 };

/* A column of the rows, and its model under each experiment. */
struct expected_column {
    const char *name;
    bool own;                       /* named by --maximize or --minimize */
    struct tune_predictor **models; /* [reference_count] NULL: none */
    char (*why)[TUNE_PREDICTOR_WHY]; /* [reference_count] why there is none; "": it has no such property */
};

struct expected {
    const struct plan *plan;
    struct expected_column columns[1 + MOST_PROPERTIES]; /* the first is the time */
    int count;
    int times;                      /* times that were asked for */
    double *values;                 /* of one entity */
    char *lists[2];                 /* --maximize, --minimize */
};

/* ---- properties ---- */

static int find_column(const struct expected *x, const char *name)
{
    int i = 1;
    while (i < x->count && strcmp(x->columns[i].name, name))
        i++;
    return i < x->count ? i : -1;
}

static int add_column(struct expected *x, const char *name, bool own)
{
    size_t n = (size_t)x->plan->space->reference_count + 1;
    struct expected_column *c = &x->columns[x->count++];
    *c = (struct expected_column){name, own, calloc(n, sizeof *c->models), calloc(n, sizeof *c->why)};
    return c->models && c->why ? 0 : no_memory();
}

/* Add the properties in a list with commas. One experiment at least must have each. */
static int add_named(struct expected *x, const char *list, char **text)
{
    const char *names[MOST_PROPERTIES + 1];
    if (!list)
        return 0;
    if (!(*text = strdup(list)))
        return no_memory();
    int count = tune_name_split(*text, names, MOST_PROPERTIES + 1);
    for (int i = 0; i < count; i++) {
        int p = 0, n = x->plan->space->reference_count;
        while (p < n && check_property(x->plan->bindings[p].experiment, names[i]) < 0)
            p++;
        if (p == n)
            return -1;
        tune_error_clear();
        if (find_column(x, names[i]) >= 0)
            continue;
        if (x->count > MOST_PROPERTIES)
            return tune_error_usage("--dry-run shows at most %d properties: name fewer by --maximize and --minimize", MOST_PROPERTIES);
        TRY(add_column(x, names[i], true));
    }
    return 0;
}

/* Add the first numbers that each experiment measures. */
static int add_first(struct expected *x)
{
    for (int p = 0; p < x->plan->space->reference_count; p++) {
        const struct tune_experiment *e = x->plan->bindings[p].experiment;
        int found = 0;
        for (int i = 0; i < e->target_count && found < SHOWN_PROPERTIES && x->count <= MOST_PROPERTIES; i++) {
            if (e->targets[i].text)
                continue;
            found++;
            TRY(find_column(x, e->targets[i].name) < 0 ? add_column(x, e->targets[i].name, false) : 0);
        }
    }
    return 0;
}

/* ---- models ---- */

/* Add an entity's values of a column to the model of its experiment. */
static int add_values(struct expected *x, int column, struct tune_view *v, const struct tune_view_group *g)
{
    struct expected_column *c = &x->columns[column];
    int count = 0, tried = 0;
    for (int k = 0; k < g->results; k++) {
        const struct tune_cell *cells = tune_view_cells(v, k);
        TRY(cells ? 0 : -1);
        const struct tune_cell *cell = &cells[1 + column];
        tried++;
        if (strcmp(cells[0].text, "valid") || cell->absent || cell->text || !isfinite(cell->number))
            continue;
        x->values[count++] = cell->number;
    }
    if (tried == 0 || *c->why[g->binding])
        return 0;
    if (!c->models[g->binding] && !(c->models[g->binding] = tune_predictor_new(x->plan->space))) {
        if (tune_error_kind() == TUNE_ERROR_CANNOT)
            return -1;
        snprintf(c->why[g->binding], TUNE_PREDICTOR_WHY, "%s", tune_error_message());
        tune_error_clear();
        return 0;
    }
    return tune_predictor_add(c->models[g->binding], g->entity, x->values, count) < 0 ? -1 : 0;
}

static int add_group(struct expected *x, struct tune_view *v, const struct tune_view_group *g)
{
    free(x->values);
    if (!(x->values = malloc(((size_t)g->results + 1) * sizeof *x->values)))
        return no_memory();
    for (int i = 0; i < x->count; i++)
        if (i == 0 ? x->plan->bindings[g->binding].budget < 0 : tune_experiment_target(x->plan->bindings[g->binding].experiment, x->columns[i].name) >= 0)
            TRY(add_values(x, i, v, g));
    return 0;
}

static int read_rows(struct expected *x)
{
    const char *names[2 + MOST_PROPERTIES] = {tune_key_column(TUNE_KEY_STATUS)->name};
    for (int i = 0; i < x->count; i++)
        names[1 + i] = x->columns[i].name;
    const struct tune_view_options o = {.include = TUNE_VIEW_MATCHING, .build = "last", .columns = names, .column_count = 1 + x->count};
    struct tune_view *v = tune_view_open(x->plan->store, x->plan->space, x->plan->bindings, &o);
    struct tune_view_group g;
    int more = v ? 0 : -1;
    while (v && (more = tune_view_next(v, &g)) == 1)
        if ((more = add_group(x, v, &g)) < 0)
            break;
    tune_view_free(v);
    return more;
}

static int fit(struct expected *x)
{
    for (int i = 0; i < x->count; i++)
        for (int p = 0; p < x->plan->space->reference_count; p++) {
            struct expected_column *c = &x->columns[i];
            if (!c->models[p] || tune_predictor_fit(c->models[p], c->name) == 0)
                continue;
            if (tune_error_kind() == TUNE_ERROR_CANNOT)
                return -1;
            snprintf(c->why[p], TUNE_PREDICTOR_WHY, "%s", tune_error_message());
            tune_error_clear();
            tune_predictor_free(c->models[p]);
            c->models[p] = NULL;
        }
    return 0;
}

struct expected *expected_new(const struct plan *plan)
{
    struct expected *x = calloc(1, sizeof *x);
    if (!x) {
        no_memory();
        return NULL;
    }
    x->plan = plan;
    const struct tune_operation_record *r = &plan->record;
    int code = add_column(x, tune_key_column(TUNE_KEY_SECONDS)->name, true);
    if (code == 0 && (r->maximize || r->minimize))
        code = add_named(x, r->maximize, &x->lists[0]) < 0 ? -1 : add_named(x, r->minimize, &x->lists[1]);
    else if (code == 0)
        code = add_first(x);
    if (code == 0 && plan->store)
        code = read_rows(x) < 0 ? -1 : fit(x);
    if (code == 0)
        return x;
    expected_free(x);
    return NULL;
}

void expected_free(struct expected *x)
{
    for (int i = 0; x && i < x->count; i++) {
        for (int p = 0; x->columns[i].models && p < x->plan->space->reference_count; p++)
            tune_predictor_free(x->columns[i].models[p]);
        free(x->columns[i].models);
        free(x->columns[i].why);
    }
    if (x) {
        free(x->values);
        free(x->lists[0]);
        free(x->lists[1]);
    }
    free(x);
}

/* ---- answers ---- */

/* The model of a column for a job; NULL: none. */
static const struct tune_predictor *model_of(const struct expected *x, int column, const struct tune_job *job)
{
    return job->binding < x->plan->space->reference_count ? x->columns[column].models[job->binding] : NULL;
}

int expected_seconds(struct expected *x, const struct tune_job *job, double *seconds)
{
    const struct tune_predictor *model = model_of(x, 0, job);
    const struct tune_value *entity = job->entity;
    struct tune_predicted at;
    *seconds = NAN;
    if (!model || x->times++ >= MOST_TIMES)
        return 0;
    TRY(tune_predictor_at(model, &entity, 1, &at));
    if (!*at.why && at.mean > 0)
        *seconds = at.mean;
    return 0;
}

int expected_print(const struct expected *x, const struct tune_job *job)
{
    char why[TUNE_PREDICTOR_WHY] = ""; /* of the unknown ones before, which share it */
    for (int i = 1; i < x->count; i++) {
        const struct tune_predictor *model = model_of(x, i, job);
        const struct tune_value *entity = job->entity;
        struct tune_predicted at;
        if (!model)
            continue;
        TRY(tune_predictor_at(model, &entity, 1, &at));
        bool shared = *why && !strcmp(why, at.why);
        if (*why && !shared)
            print_text(" unknown: ", why);
        print_text(shared ? ", " : "  ", x->columns[i].name);
        memcpy(why, at.why, sizeof why);
        if (!*why)
            printf(" %.4g (%.4g to %.4g)", at.mean, at.low, at.high);
    }
    if (*why)
        print_text(" unknown: ", why);
    return 0;
}

/* Print how many results a model is from, under each experiment, or why there is none. */
static bool print_model(const struct expected *x, int column, int binding)
{
    const struct expected_column *c = &x->columns[column];
    const struct tune_predictor *model = c->models[binding];
    bool several = x->plan->space->reference_count > 1;
    const struct tune_experiment *e = x->plan->bindings[binding].experiment;
    int target = tune_experiment_target(e, c->name);
    const char *unit = target >= 0 ? e->targets[target].unit : "";
    if (!model && !*c->why[binding])
        return false;
    print_text("# expected values     ", c->name);
    print_text(*unit ? ", " : "", unit);
    print_text(several ? " under " : "", several ? x->plan->bindings[binding].full_identifier : "");
    if (model)
        printf(": by a model of %d results of %d entities, with the 95 %% interval of a measurement\n",
               tune_surrogate_rows(tune_predictor_model(model)), tune_predictor_count(model));
    else {
        print_text(": unknown: ", c->why[binding]);
        puts("");
    }
    return true;
}

void expected_print_models(const struct expected *x)
{
    bool known = false, own = false;
    for (int i = 1; i < x->count; i++)
        for (int p = 0; p < x->plan->space->reference_count; p++) {
            bool printed = print_model(x, i, p);
            known = known || printed;
            own = own || x->columns[i].own;
        }
    if (!known)
        puts("# expected values     unknown: the store has no result of these entities");
    else if (!own)
        puts("# expected values     of other properties: name them by --maximize or --minimize");
}
