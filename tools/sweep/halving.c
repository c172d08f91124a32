/* halving.c - --order halving: each rung has fewer points, and a larger budget.
 *
 * Each rung has a binding: the space's experiment with the rung's budget. Only rows of this
 * operation decide which points continue. So a resumed operation has the same rungs. */
#include <math.h>

#include "core/decimal.h"
#include "core/map.h"
#include "core/nearest.h"
#include "sweep.h"
#include "sweeps/discovery/view.h"

/* ---- begin ---- */

static int check_record(const struct plan *plan)
{
    const struct tune_operation_record *r = &plan->record;
    bool named = !r->stop_when && !plan->flags->dry_run && (r->minimize || r->maximize), model = r->options.order.mode == TUNE_ORDER_MODEL;
    if (r->options.order.mode != TUNE_ORDER_HALVING)
        return r->budget || (named && !model) ? tune_error_usage("--minimize, --maximize and --budget are only for --order "
                                                                 "halving (the first two also for --order model, "
                                                                 "--stop-when and --dry-run)") : 0;
    if (r->factor != 2)
        return tune_error_usage("operation %s keeps one of %g points in each rung, and this version keeps the better half; begin an "
                                "operation of another name, which takes over its results", r->id, r->factor);
    if (r->stop_when)
        return tune_error_usage("--stop-when is not for --order halving, which itself decides when "
                                "an entity ends");
    if (!r->minimize == !r->maximize)
        return tune_error_usage("--order halving needs a property: --minimize PROPERTY or --maximize PROPERTY");
    if (!r->budget)
        return tune_error_usage("--order halving needs an input that makes measurements longer: --budget max_steps=1..16");
    if (r->options.selector || r->options.filter != TUNE_FILTER_NONE)
        return tune_error_usage("--order halving takes the points of the grid: leave samplerType and filter out of %s; "
                                "--where and --entities choose among them", plan->flags->operation);
    if (plan->space->reference_count != 1)
        return tune_error_usage("--order halving works with one experiment, but %s has %d",
                                plan->space_file,
                                plan->space->reference_count);
    return 0;
}

/* Check that the experiment has the property and the budget. Returns the budget's index among the
 * inputs. */
static int find_budget(const struct plan *plan, const struct rungs *rungs)
{
    const struct tune_experiment *e = plan->bindings->experiment;
    const char *name = rungs->halving.input;
    int input = tune_experiment_input(e, name);
    char hint[TUNE_HINT];
    TRY(check_property(e, rungs->property));
    if (input < 0)
        return tune_error_usage("--budget: experiment %s has no input %s%s", e->name, name,
                                tune_nearest_hint(name, e->names, e->input_count, hint));
    if (e->inputs[input].inert)
        return tune_error_usage("--budget: input %s has no effect in experiment %s", name, e->name);
    if (plan->bindings->dimension[input] >= 0)
        return tune_error_usage("--budget: %s is a dimension of %s; leave it out there", name, plan->space_file);
    return input;
}

int halving_bind(struct plan *plan, struct rungs *rungs)
{
    const struct tune_operation_record *r = &plan->record;
    int input;
    TRY(check_record(plan));
    if (r->options.order.mode != TUNE_ORDER_HALVING)
        return 0;
    rungs->property = r->minimize ? r->minimize : r->maximize;
    rungs->halving = (struct tune_halving){.maximize = r->maximize};
    TRY(tune_halving_read(&rungs->halving, r->budget));
    TRY(rungs->count = tune_halving_rungs(&rungs->halving, rungs->budgets));
    TRY(input = find_budget(plan, rungs));
    struct tune_binding *all = calloc((size_t)rungs->count, sizeof *all), *one;
    if (!all)
        return no_memory();
    tune_bindings_free(plan->bindings, plan->binding_count);
    plan->bindings = all;
    for (plan->binding_count = 0; plan->binding_count < rungs->count; plan->binding_count++) {
        char text[TUNE_DECIMAL_SIZE];
        tune_decimal_json(text, rungs->budgets[plan->binding_count]);
        TRY(tune_space_set(plan->space, &plan->catalog, rungs->halving.input, text));
        TRY(tune_space_bind(plan->space, &plan->catalog, &one));
        all[plan->binding_count] = *one;
        all[plan->binding_count].budget = input;
        free(one);
    }
    return 0;
}

/* ---- jobs ---- */

static void count_planned(struct queue *q, int repeat)
{
    const struct rungs *rungs = &q->rungs;
    int64_t count = tune_jobs_count(q->jobs), counts[TUNE_HALVING_RUNGS];
    double weight = (double)count;
    if (rungs->count > 0) {
        weight = repeat * tune_halving_plan(rungs->budgets, rungs->count, rungs->now, count / repeat, counts);
        for (int k = rungs->now + 1; k < rungs->count; k++)
            count += counts[k] * repeat;
    }
    q->progress->planned = count > 0 ? q->progress->done + count : 0;
    q->progress->planned_weight = q->progress->done_weight + weight;
}

int queue_open(struct queue *q)
{
    static const struct tune_value *const none[1] = {NULL};
    const struct plan *plan = q->plan;
    struct tune_jobs_options o = plan->record.options;
    o.space = plan->space;
    o.bindings = plan->bindings;
    o.first = q->rungs.now;
    o.count = plan->space->reference_count;
    o.cache = plan->cache;
    o.provenance = provenance_asked;
    o.lacks = gpus_lack;
    bool rules = q->enough.count > 0, repeats = plan->record.stop_when && !enough_is_rule(plan->record.stop_when);
    o.stop_rule = repeats && !plan->flags->dry_run ? stop_rule_holds : NULL;
    o.enough = rules && o.order.mode != TUNE_ORDER_MODEL ? enough_holds : NULL; /* model_choose asks itself */
    o.context = q;
    o.before = q->rungs.before;
    if (o.order.mode == TUNE_ORDER_HALVING)
        o.order.mode = TUNE_ORDER_RANDOM;
    if (q->rungs.now > 0) { /* the points of this rung replace the order */
        o.given = (const struct tune_value *const *)q->rungs.points;
        o.given_count = q->rungs.point_count;
        o.order.limit = -1;
        o.where = NULL; /* --where and --entity only select points of the first rung */
        o.only_count = 0;
    } else if (model_chooses(plan)) {
        o.choose = model_choose;
    } else if (o.order.mode == TUNE_ORDER_MODEL) { /* another process chose, and wrote into the record */
        o.order.mode = TUNE_ORDER_SEQUENTIAL;
        o.given = plan->points ? (const struct tune_value *const *)plan->points : none;
        o.given_count = plan->point_count;
    } else if (plan->point_count > 0) {
        o.given = (const struct tune_value *const *)plan->points;
        o.given_count = plan->point_count;
    }
    tune_jobs_free(q->jobs);
    if (!(q->jobs = tune_jobs_new(&o)))
        return -1;
    q->more = true;
    count_planned(q, o.repeat);
    return 0;
}

int queue_add_point(struct queue *q, const struct tune_job *job)
{
    struct rungs *rungs = &q->rungs;
    int dimensions = q->plan->space->count;
    if (rungs->count == 0 || rungs->now > 0 || job->repeat > 0)
        return 0;
    if (!tune_array_fit(&rungs->points, (size_t)rungs->point_count, sizeof *rungs->points) ||
        !tune_array_fit(&rungs->hashes, (size_t)rungs->point_count, sizeof *rungs->hashes))
        return no_memory();
    struct tune_value *entity = tune_values_copy(malloc(tune_values_size(job->entity, dimensions) + 1), job->entity, dimensions);
    if (!entity)
        return no_memory();
    rungs->hashes[rungs->point_count] = job->hash;
    rungs->points[rungs->point_count++] = entity;
    return 0;
}

/* ---- rungs ---- */

/* Set the value of the group's point to the mean of its results. indexes: from a point's hash to
 * its index + 1. */
static int add_group(const struct tune_space *space, struct tune_view *v,
                     const struct tune_view_group *group, const struct tune_map *indexes,
                     double *values)
{
    char *text = NULL;
    int length = tune_entity_to_string(space->names, group->entity, space->count, &text, &(size_t){0}), count = 0;
    double sum = 0;
    TRY(length);
    int64_t index = tune_map_get(indexes, (const uint64_t[]){tune_entity_hash(text, (size_t)length), 0});
    free(text);
    for (int k = 0; k < group->results && index > 0; k++) {
        const struct tune_cell *cells = tune_view_cells(v, k);
        TRY(cells ? 0 : -1);
        count += !cells[0].absent;
        sum += cells[0].absent ? 0 : cells[0].number;
    }
    if (count > 0)
        values[index - 1] = sum / count;
    return 0;
}

/* Read the mean of each point's valid results in this operation. NAN: it has none. */
static int read_values(const struct plan *plan, const struct rungs *rungs, double *values)
{
    const char *const columns[] = {rungs->property};
    const struct tune_view_options o = {.include = TUNE_VIEW_MEASURED, .operation = plan->record.id, .valid = true,
                                        .columns = columns, .column_count = 1};
    struct tune_map indexes = {0};
    struct tune_view_group group;
    int64_t *index = NULL;
    int more = -1;
    TRY(tune_result_cache_refresh(plan->cache)); /* other processes may have added rows */
    for (int i = 0; i < rungs->point_count; i++) {
        values[i] = NAN;
        if (!(index = tune_map_add(&indexes, (const uint64_t[]){rungs->hashes[i], 0})))
            break;
        *index = i + 1;
    }
    struct tune_view *v = index ? tune_view_open(plan->store, plan->space, &plan->bindings[rungs->now], &o) : NULL;
    if (!index)
        no_memory();
    while (v && (more = tune_view_next(v, &group)) == 1)
        if ((more = add_group(plan->space, v, &group, &indexes, values)) < 0)
            break;
    tune_view_free(v);
    tune_map_free(&indexes);
    return more;
}

static void print_rung(const struct queue *q, const double *values, int left)
{
    const struct rungs *rungs = &q->rungs;
    char entity[ENTITY_TEXT], on[48] = "", best_text[ENTITY_TEXT + 256] = ", none of them valid";
    int best = -1;
    for (int i = 0; i < rungs->point_count; i++)
        if (!isnan(values[i]) && (best < 0 || (rungs->halving.maximize ? values[i] > values[best] : values[i] < values[best])))
            best = i;
    if (best >= 0) {
        snprintf(best_text, sizeof best_text, "; best %s %.5g at %s", rungs->property, values[best],
                 entity_text(q->plan->space, rungs->points[best], entity));
        if (rungs->now < rungs->count - 1)
            snprintf(on, sizeof on, ", %d %s on", left, left == 1 ? "goes" : "go");
    }
    progress_log(q->progress, "rung %d of %d         %s %g: %d point%s%s%s", rungs->now + 1, rungs->count, rungs->halving.input,
                 rungs->budgets[rungs->now], rungs->point_count, rungs->point_count == 1 ? "" : "s", on, best_text);
}

/* Say so if the shorter measurements ordered the points hardly better than chance, which keeps 50 %
 * of the pairs. */
static void print_agreement(const struct queue *q, const double *values)
{
    enum { FEW_POINTS = 8, FEW_PERCENT = 60 };
    const struct rungs *rungs = &q->rungs;
    int64_t pairs = 0, kept = 0;
    for (int i = 0; rungs->previous && i < rungs->point_count; i++)
        for (int j = 0; j < i; j++) {
            double product = (rungs->previous[i] - rungs->previous[j]) * (values[i] - values[j]);
            pairs += product != 0 && !isnan(product);
            kept += product > 0;
        }
    if (pairs >= FEW_POINTS * (FEW_POINTS - 1) / 2 && 100 * kept < FEW_PERCENT * pairs)
        progress_log(q->progress, "advice              %.0f %% of the pairs kept their order since the rung before; 50 %% is chance. "
                                  "Short measurements say little here: --order model measures each point whole",
                     100.0 * (double)kept / (double)pairs);
}

/* Select the points that continue. Returns their number. */
static int select_points(struct queue *q)
{
    struct rungs *rungs = &q->rungs;
    int count = rungs->point_count, left = -1;
    double *values = malloc(((size_t)count + 1) * sizeof *values);
    int *selected = malloc(((size_t)count + 1) * sizeof *selected);
    if (!values || !selected)
        no_memory();
    else if (read_values(q->plan, rungs, values) == 0 &&
             (left = tune_halving_select(&rungs->halving, values, count, selected)) >= 0) {
        print_rung(q, values, left);
        print_agreement(q, values);
    }
    for (int i = 0, k = 0; i < count && left >= 0; i++)
        if (k < left && selected[k] == i) {
            rungs->hashes[k] = rungs->hashes[i];
            values[k] = values[i];
            rungs->points[k++] = rungs->points[i];
        } else {
            free(rungs->points[i]);
        }
    free(rungs->previous);
    rungs->previous = values;
    free(selected);
    return left;
}

int queue_next_rung(struct queue *q)
{
    struct rungs *rungs = &q->rungs;
    if (rungs->count == 0 || rungs->point_count == 0)
        return 0;
    int before = rungs->point_count, left = select_points(q);
    TRY(left);
    rungs->point_count = left;
    rungs->before += before;
    int next = tune_halving_next(rungs->now, rungs->count, left);
    if (next == rungs->count)
        return 0;
    rungs->now = next;
    return queue_open(q) < 0 ? -1 : 1;
}

void queue_free(struct queue *q)
{
    tune_job_free(&q->pending);
    for (int i = 0; i < q->waiting_count; i++)
        tune_job_free(&q->waiting[i]);
    free(q->waiting);
    tune_jobs_free(q->jobs);
    for (int i = 0; i < q->rungs.point_count; i++)
        free(q->rungs.points[i]);
    free(q->rungs.points);
    free(q->rungs.hashes);
    free(q->rungs.previous);
    model_free(&q->model);
    stop_rule_free(&q->stop_rule);
}

/* ---- output ---- */

/* Measurements by --order model until one is within 1 % of the best entity. It is the median of 40
 * searches, in the test space that needs most (tests/bench/bench_search.sh). */
enum { MODEL_NEEDS = 119 };

static void print_advice(const struct tune_halving *h, double cost)
{
    double whole = cost / h->most;
    if (whole > MODEL_NEEDS)
        printf("# advice              the rungs cost as much as %.0f measurements with %s %g; --order model came "
               "within 1 %% of the best in our test spaces after %d or fewer\n",
               whole, h->input, h->most, MODEL_NEEDS);
}

void halving_print(const struct rungs *rungs, double cost)
{
    const struct tune_halving *h = &rungs->halving;
    if (rungs->count == 0)
        return;
    printf("# halving             %s %s, %s", h->maximize ? "maximize" : "minimize", rungs->property, h->input);
    for (int k = 0; k < rungs->count; k++)
        printf("%s %g", k ? "," : "", rungs->budgets[k]);
    putchar('\n');
    if (rungs->now == 0)
        print_advice(h, cost);
}

double halving_print_rest(const struct rungs *rungs, int repeat)
{
    const struct tune_halving *h = &rungs->halving;
    int64_t counts[TUNE_HALVING_RUNGS];
    int first = rungs->now, count = rungs->point_count;
    if (rungs->count == 0)
        return 0;
    double cost = tune_halving_plan(rungs->budgets, rungs->count, first, count, counts);
    for (int k = first; k < rungs->count; k++)
        if (counts[k] > 0)
            printf("# rung %d of %d         %s %g: %lld point%s\n", k + 1, rungs->count, h->input,
                   rungs->budgets[k], (long long)counts[k], counts[k] == 1 ? "" : "s");
    double full = count * h->most;
    if (first == 0) {
        printf("# cost                %g %s, %.1f %% of the %g that all %d points need with %s %g\n", repeat * cost, h->input,
               100 * cost / full, repeat * full, count, h->input, h->most);
        print_advice(h, repeat * cost);
    }
    return repeat * (cost - count * rungs->budgets[first]);
}
