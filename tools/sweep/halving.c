/* halving.c - --order halving: rungs with fewer and fewer points, and more and more of the budget.
 *
 * The protocols are those of the rungs: the space's experiment with each value of the budget. Rows
 * of the operation alone decide which points go on. So a resumed operation takes the same rungs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/decimal.h"
#include "core/map.h"
#include "core/nearest.h"
#include "core/print.h"
#include "sweep.h"
#include "sweeps/discovery/halving.h"
#include "sweeps/discovery/view.h"

struct point {
    struct tune_value *entity;
    uint64_t hash;
};

static struct {
    struct tune_halving h;
    const char *property;
    double budgets[TUNE_HALVING_RUNGS];
    int rungs, rung;
    struct point *points; /* [count] of this rung, in the order of the first */
    int count;
    int64_t before; /* points of the earlier rungs */
} halving;

/* ---- begin ---- */

static int check_record(const struct tune_operation_record *r)
{
    bool given = (!r->stop_when && (r->minimize || r->maximize)) || r->budget || (my.factor != 2 && tune_flags_given(&my.tune, "factor"));
    if (r->options.order.mode != TUNE_ORDER_HALVING)
        return given ? tune_error_usage("--minimize, --maximize, --budget and --factor are for --order halving (the first two "
                                        "also for --stop-when)") : 0;
    if (r->stop_when)
        return tune_error_usage("--stop-when is not for --order halving, which ends points by itself");
    if (!r->minimize == !r->maximize)
        return tune_error_usage("--order halving needs a property: --minimize PROPERTY or --maximize PROPERTY");
    if (!r->budget)
        return tune_error_usage("--order halving needs an input that makes measurements longer: --budget max_steps=1..16");
    if (r->options.selector || r->options.filter != TUNE_FILTER_NONE)
        return tune_error_usage("--order halving takes the points of the grid: leave out --sampler and --filter; "
                                "--where and --entities choose among them");
    if (sweep.space->reference_count != 1)
        return tune_error_usage("--order halving compares the points of one experiment, and %s has %d", my.space,
                                sweep.space->reference_count);
    return 0;
}

/* Check property and budget against the experiment. Returns the place of the budget among its
 * inputs. */
static int find_budget(const struct tune_protocol *p)
{
    const struct tune_experiment *e = p->experiment;
    int input = tune_experiment_input(e, halving.h.input);
    char hint[TUNE_HINT];
    if (tune_experiment_target(e, halving.property) < 0)
        return tune_error_usage("%s has no property %s (space experiments %s lists them)", e->name, halving.property, e->name);
    if (input < 0)
        return tune_error_usage("--budget: %s has no input %s%s", e->name, halving.h.input,
                                tune_nearest_hint(halving.h.input, e->names, e->input_count, hint));
    if (e->inputs[input].inert)
        return tune_error_usage("--budget: %s changes nothing in %s", halving.h.input, e->name);
    if (p->dimension[input] >= 0)
        return tune_error_usage("--budget: %s is a dimension of %s; leave it out there", halving.h.input, my.space);
    return input;
}

int sweep_halving_bind(const struct tune_operation_record *r)
{
    int input;
    TRY(check_record(r));
    if (r->options.order.mode != TUNE_ORDER_HALVING)
        return 0;
    halving.property = r->minimize ? r->minimize : r->maximize;
    halving.h = (struct tune_halving){.factor = r->factor, .maximize = r->maximize};
    TRY(tune_halving_read(&halving.h, r->budget));
    TRY(halving.rungs = tune_halving_rungs(&halving.h, halving.budgets));
    TRY(input = find_budget(sweep.protocols));
    struct tune_protocol *all = calloc((size_t)halving.rungs, sizeof *all), *one;
    if (!all)
        return sweep_no_memory();
    tune_protocols_free(sweep.protocols, sweep.protocol_count);
    sweep.protocols = all;
    for (sweep.protocol_count = 0; sweep.protocol_count < halving.rungs; sweep.protocol_count++) {
        char text[TUNE_DECIMAL_SIZE];
        tune_decimal_json(text, halving.budgets[sweep.protocol_count]);
        TRY(tune_space_set(sweep.space, &sweep.catalog, halving.h.input, text));
        TRY(tune_space_bind(sweep.space, &sweep.catalog, &one));
        all[sweep.protocol_count] = *one;
        all[sweep.protocol_count].budget = input;
        free(one);
    }
    return 0;
}

/* ---- rungs ---- */

int sweep_make_jobs(void)
{
    struct tune_jobs_options o = sweep.record.options;
    const struct tune_value **given = NULL;
    o.space = sweep.space;
    o.protocols = sweep.protocols;
    o.first = halving.rung;
    o.count = sweep.space->reference_count;
    o.known = sweep.known;
    o.origin = sweep_origin;
    o.enough = sweep.record.stop_when && !my.dry_run ? sweep_enough : NULL;
    o.before = halving.before;
    if (o.order.mode == TUNE_ORDER_HALVING)
        o.order.mode = TUNE_ORDER_RANDOM;
    if (halving.rung > 0) {
        if (!(given = calloc((size_t)halving.count, sizeof *given)))
            return sweep_no_memory();
        for (int i = 0; i < halving.count; i++)
            given[i] = halving.points[i].entity;
        o.given = given;
        o.given_count = halving.count;
        o.order.limit = -1;
        o.where = NULL; /* it chose the points of the first rung, and so did --entity */
        o.only_count = 0;
    }
    tune_jobs_free(sweep.jobs);
    free(sweep.given);
    sweep.given = given;
    if (!(sweep.jobs = tune_jobs_new(&o)))
        return -1;
    int64_t count = tune_jobs_count(sweep.jobs), counts[TUNE_HALVING_RUNGS];
    double weight = (double)count;
    if (halving.rungs > 0) {
        weight = o.repeat * tune_halving_plan(&halving.h, halving.budgets, halving.rungs, halving.rung, count / o.repeat, counts);
        for (int k = halving.rung + 1; k < halving.rungs; k++)
            count += counts[k] * o.repeat;
    }
    sweep.record.planned = count > 0 ? sweep.done + count : 0;
    sweep.planned_weight = sweep.done_weight + weight;
    return 0;
}

int sweep_note_point(const struct tune_job *job)
{
    if (halving.rungs == 0 || halving.rung > 0 || job->repeat > 0)
        return 0;
    if (!tune_array_fit(&halving.points, (size_t)halving.count, sizeof *halving.points))
        return sweep_no_memory();
    struct point *point = &halving.points[halving.count];
    point->hash = job->hash;
    point->entity = tune_values_copy(malloc(tune_values_size(job->entity, sweep.space->count) + 1), job->entity, sweep.space->count);
    halving.count += point->entity != NULL;
    return point->entity ? 0 : sweep_no_memory();
}

/* Add the result of a group to the mean of its point. */
static int add_group(struct tune_view *v, const struct tune_view_group *group, const struct tune_map *places, double *values)
{
    char *text = NULL;
    int length = tune_entity_spell(sweep.space->names, group->entity, sweep.space->count, &text, &(size_t){0}), count = 0;
    double sum = 0;
    TRY(length);
    int64_t place = tune_map_get(places, (const uint64_t[]){tune_entity_hash(text, (size_t)length), 0});
    free(text);
    for (int k = 0; k < group->results && place > 0; k++) {
        const struct tune_cell *cells = tune_view_cells(v, k);
        TRY(cells ? 0 : -1);
        count += !cells[0].absent;
        sum += cells[0].absent ? 0 : cells[0].number;
    }
    if (count > 0)
        values[place - 1] = sum / count;
    return 0;
}

/* The points' means of the property over their valid results in this operation; NAN: none. */
static int read_values(double *values)
{
    const char *const columns[] = {halving.property};
    const struct tune_view_options o = {.include = TUNE_VIEW_MEASURED, .operation = sweep.record.id, .valid = true,
                                        .columns = columns, .column_count = 1};
    struct tune_map places = {0};
    struct tune_view_group group;
    int64_t *place = NULL;
    int more = -1;
    TRY(tune_known_refresh(sweep.known)); /* other processes may have measured, too */
    for (int i = 0; i < halving.count; i++) {
        values[i] = NAN;
        if (!(place = tune_map_add(&places, (const uint64_t[]){halving.points[i].hash, 0})))
            break;
        *place = i + 1;
    }
    struct tune_view *v = place ? tune_view_open(sweep.store, sweep.space, &sweep.protocols[halving.rung], &o) : NULL;
    if (!place)
        sweep_no_memory();
    while (v && (more = tune_view_next(v, &group)) == 1)
        if ((more = add_group(v, &group, &places, values)) < 0)
            break;
    tune_view_free(v);
    tune_map_free(&places);
    return more;
}

static void tell_rung(const double *values, int left)
{
    int best = -1;
    for (int i = 0; i < halving.count; i++)
        if (!isnan(values[i]) && (best < 0 || (halving.h.maximize ? values[i] > values[best] : values[i] < values[best])))
            best = i;
    sweep_clear_status();
    printf("# rung %d of %d         %s %g: %d point%s", halving.rung + 1, halving.rungs, halving.h.input,
           halving.budgets[halving.rung], halving.count, halving.count == 1 ? "" : "s");
    if (best < 0)
        printf(", none of them valid");
    else {
        if (halving.rung < halving.rungs - 1)
            printf(", %d %s on", left, left == 1 ? "goes" : "go");
        printf("; best %s %.5g at ", halving.property, values[best]);
        sweep_print_entity(halving.points[best].entity);
    }
    putchar('\n');
    fflush(stdout);
}

/* Keep the points that go on. Returns their number. */
static int keep(void)
{
    double *values = malloc(((size_t)halving.count + 1) * sizeof *values);
    int *kept = malloc(((size_t)halving.count + 1) * sizeof *kept), left = -1;
    if (!values || !kept)
        sweep_no_memory();
    else if (read_values(values) == 0 && (left = tune_halving_keep(&halving.h, values, halving.count, kept)) >= 0)
        tell_rung(values, left);
    for (int i = 0, k = 0; i < halving.count && left >= 0; i++)
        if (k < left && kept[k] == i)
            halving.points[k++] = halving.points[i];
        else
            free(halving.points[i].entity);
    free(values);
    free(kept);
    return left;
}

int sweep_next_rung(void)
{
    if (halving.rungs == 0 || halving.count == 0)
        return 0;
    int before = halving.count, left = keep();
    TRY(left);
    halving.count = left;
    halving.before += before;
    int next = tune_halving_next(halving.rung, halving.rungs, left);
    if (next == halving.rungs)
        return 0;
    halving.rung = next;
    TRY(sweep_make_jobs());
    sweep.more = true;
    return 1;
}

/* ---- what is printed ---- */

double sweep_weight(const struct tune_job *job)
{
    return tune_known_weight(&sweep.protocols[job->protocol], job->inputs);
}

void sweep_say_rung(const struct tune_job *job)
{
    if (halving.rungs > 0)
        printf("  %s %g", halving.h.input, sweep_weight(job));
}

void sweep_say_halving(void)
{
    if (halving.rungs == 0)
        return;
    printf("# halving             %s %s, %s", halving.h.maximize ? "maximize" : "minimize", halving.property, halving.h.input);
    for (int k = 0; k < halving.rungs; k++)
        printf("%s %g", k ? "," : "", halving.budgets[k]);
    putchar('\n');
}

double sweep_say_rungs(void)
{
    int64_t counts[TUNE_HALVING_RUNGS];
    int repeat = sweep.record.options.repeat, first = halving.rung;
    double cost = tune_halving_plan(&halving.h, halving.budgets, halving.rungs, first, halving.count, counts);
    if (halving.rungs == 0)
        return 0;
    for (int k = first; k < halving.rungs; k++)
        if (counts[k] > 0)
            printf("# rung %d of %d         %s %g: %lld point%s\n", k + 1, halving.rungs, halving.h.input, halving.budgets[k],
                   (long long)counts[k], counts[k] == 1 ? "" : "s");
    double full = (double)(first == 0 ? halving.count : halving.before) * halving.h.most;
    if (first == 0)
        printf("# cost                %g %s, %.1f %% of the %g that all %d points take with %s %g\n", repeat * cost, halving.h.input,
               100 * cost / full, repeat * full, halving.count, halving.h.input, halving.h.most);
    return repeat * (cost - (double)halving.count * halving.budgets[first]);
}

void sweep_halving_free(void)
{
    for (int i = 0; i < halving.count; i++)
        free(halving.points[i].entity);
    free(halving.points);
    free(sweep.given);
}
