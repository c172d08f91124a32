/* enough.c - --stop-when of a search: end it when more measurements promise no gain.
 *
 * There are two rules:
 *
 *     no gain of 1 % in 20      the last 20 entities made the best value better by less than 1 %
 *     chance of 1 % below 5 %   by the model, the chance that an entity without a result is better
 *                               than the best one by more than 1 % is below 5 %
 *
 * Only rows of this operation decide, in the order in which entities were first measured. So a
 * resumed operation decides the same. */
#include <math.h>

#include "sweep.h"

bool enough_is_rule(const char *stop_when)
{
    return stop_when && (!strncmp(stop_when, "no gain ", 8) || !strncmp(stop_when, "chance ", 7) || !strcmp(stop_when, ENOUGH_NEVER));
}

/* ---- the option ---- */

static int read_rule(struct enough *e, const char *text, size_t length)
{
    struct enough_rule *rule = &e->rules[e->count];
    char more;
    if (e->count == ENOUGH_RULES || length >= sizeof rule->text)
        return tune_error_usage("--stop-when: there may be %d rules, each of less than %zu bytes", ENOUGH_RULES, sizeof rule->text);
    snprintf(rule->text, sizeof rule->text, "%.*s", (int)length, text);
    rule->chance = sscanf(rule->text, "chance of %lf %% below %lf %% %c", &rule->share, &rule->limit, &more) == 2 &&
                   rule->text[length - 1] == '%';
    bool gain = !rule->chance && sscanf(rule->text, "no gain of %lf %% in %d %c", &rule->share, &rule->entities, &more) == 2;
    if (!rule->chance && !gain)
        return tune_error_usage("--stop-when %s: expected \"no gain of 1 %% in 20\" or \"chance of 1 %% below 5 %%\"; several are "
                                "parted by commas", rule->text);
    if (!(rule->share >= 0 && rule->share < 100))
        return tune_error_usage("--stop-when %s: the gain must be at least 0 %% and less than 100 %%", rule->text);
    if (gain && (rule->entities < 1 || rule->entities > 1000000))
        return tune_error_usage("--stop-when %s: the number of entities must be from 1 to 1000000", rule->text);
    if (rule->chance && !(rule->limit > 0 && rule->limit < 100))
        return tune_error_usage("--stop-when %s: the chance must be more than 0 %% and less than 100 %%", rule->text);
    e->count++;
    return 0;
}

static int check_options(const struct plan *plan, const struct enough *e)
{
    const struct tune_operation_record *r = &plan->record;
    bool model = r->options.order.mode == TUNE_ORDER_MODEL;
    for (int i = 0; i < e->count; i++)
        if (e->rules[i].chance && !model)
            return tune_error_usage("--stop-when \"%s\" needs --order model, because a model tells the chance; \"no gain of 1 %% in "
                                    "20\" works with every order except halving", e->rules[i].text);
    if (!r->minimize == !r->maximize || strchr(r->minimize ? r->minimize : r->maximize, ','))
        return tune_error_usage("--stop-when \"%s\" needs one property: --maximize PROPERTY or --minimize PROPERTY%s", e->rules[0].text,
                                r->minimize || r->maximize ? "; --entities ends a search of two" : "");
    if (!model && (r->launcher || plan->flags->launcher))
        return tune_error_usage("--stop-when with --launcher needs --order model, because other orders start all jobs before the results that "
                                "decide are there; or start a sweep with the same --join NAME on each machine");
    if (plan->space->reference_count != 1)
        return tune_error_usage("--stop-when \"%s\" works with one experiment, but %s has %d", e->rules[0].text, plan->space_file,
                                plan->space->reference_count);
    return 0;
}

int enough_open(const struct plan *plan, struct enough *e)
{
    const char *text = plan->record.stop_when;
    *e = (struct enough){.looked = -1};
    if (!enough_is_rule(text) || !strcmp(text, ENOUGH_NEVER))
        return 0;
    for (const char *end; *text; text = end + strspn(end, ", ")) {
        end = text + strcspn(text, ",");
        size_t length = (size_t)(end - text);
        while (length > 0 && text[length - 1] == ' ')
            length--;
        TRY(read_rule(e, text, length));
    }
    return check_options(plan, e);
}

bool enough_may_change(const struct plan *plan)
{
    const char *asked = plan->flags->stop_when, *recorded = plan->record.stop_when;
    return plan->flags->resume && asked && enough_is_rule(asked) && (!recorded || enough_is_rule(recorded));
}

/* ---- the rules ---- */

static double mean_of(const struct model_entity *e)
{
    return e->valid > 0 ? e->sum / e->valid : NAN;
}

static bool is_better(const struct model_order *m, double a, double b)
{
    return !isnan(a) && (isnan(b) || (m->maximize[0] ? a > b : a < b));
}

/* The index of the best entity; -1: none is valid. */
static int find_best(const struct model_order *m)
{
    int best = -1;
    for (int i = 0; i < m->entity_count; i++)
        if (is_better(m, mean_of(&m->entities[i]), best < 0 ? NAN : mean_of(&m->entities[best])))
            best = i;
    return best;
}

/* True if there was a time after which the rule's number of entities brought less than its gain. bests:
 * the best value of the first i + 1 entities. */
static bool is_without_gain(const struct enough_rule *rule, const double *bests, int count)
{
    for (int i = rule->entities; i < count; i++) {
        double before = bests[i - rule->entities], gain = fabs(bests[i] - before);
        if (!isnan(before) && (gain == 0 || gain < rule->share / 100 * fabs(before)))
            return true;
    }
    return false;
}

static int gain_holds(const struct model_order *m, const struct enough_rule *rule)
{
    double *bests = malloc(((size_t)m->entity_count + 1) * sizeof *bests), best = NAN;
    if (!bests)
        return no_memory();
    for (int i = 0; i < m->entity_count; i++) {
        double mean = mean_of(&m->entities[i]);
        bests[i] = best = is_better(m, mean, best) ? mean : best;
    }
    bool holds = is_without_gain(rule, bests, m->entity_count);
    free(bests);
    return holds;
}

/* 1: the rule holds, and why says more; 0; -1. */
static int rule_holds(struct model_order *m, const struct enough_rule *rule, char *why, size_t size)
{
    double chance;
    *why = 0;
    if (!rule->chance)
        return gain_holds(m, rule);
    TRY(tune_search_chance(m->search, rule->share / 100, &chance));
    snprintf(why, size, "%.1f %% that an entity without a result is better by more than %g %%; ", 100 * chance, rule->share);
    return 100 * chance < rule->limit;
}

/* Name the best entity, in of[ENTITY_TEXT + 256]. Returns of. */
static const char *best_text(const struct queue *q, char *of)
{
    const struct model_order *m = &q->model;
    int best = find_best(m);
    char entity[ENTITY_TEXT];
    snprintf(of, ENTITY_TEXT + 256, "no entity is valid%s", m->within ? " within --where-target" : "");
    if (best >= 0)
        snprintf(of, ENTITY_TEXT + 256, "the best %s%s, %.5g, is entity %d of %d: %s", m->columns[1], m->within ? " within --where-target" : "",
                 mean_of(&m->entities[best]), best + 1, m->entity_count, entity_text(q->plan->space, m->entities[best].entity, entity));
    return of;
}

int enough_log_best(struct queue *q)
{
    char of[ENTITY_TEXT + 256];
    struct model_order *m = &q->model;
    if (!m->search || m->targets != 1 || q->enough.over)
        return 0;
    TRY(model_read_rows(q->plan, m));
    if (m->row_count > 0)
        progress_log(q->progress, "found               %s", best_text(q, of));
    return 0;
}

static void log_end(const struct queue *q, const struct enough_rule *rule, const char *why)
{
    char of[ENTITY_TEXT + 256];
    best_text(q, of);
    progress_log(q->progress, "stop rule           %s: %s%s", rule->text, why, of);
    if (!q->plan->flags->dry_run)
        progress_log(q->progress, "to measure more     --resume %s --stop-when " ENOUGH_NEVER ", or with another rule", q->plan->record.id);
}

int enough_holds(void *queue)
{
    struct queue *q = queue;
    struct enough *e = &q->enough;
    struct model_order *m = &q->model;
    char why[160];
    if (e->count == 0 || e->over)
        return e->over;
    TRY(model_read_rows(q->plan, m));
    if (e->looked == m->row_count)
        return 0;
    e->looked = m->row_count;
    for (int i = 0; i < e->count && !e->over; i++) {
        int holds = rule_holds(m, &e->rules[i], why, sizeof why);
        TRY(holds);
        if (holds)
            log_end(q, &e->rules[i], why);
        e->over = holds;
    }
    return e->over;
}
