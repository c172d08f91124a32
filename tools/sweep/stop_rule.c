/* stop_rule.c - --stop-when: end the repeats of a point as soon as the comparison is decided.
 *
 * The rule is the same as in samples compare --regression: Student's posterior over pairs. A pair
 * is the k-th result of the other operation and the k-th result of this one. If the other side is a
 * property, a pair is two properties of one result. */
#include <math.h>

#include "core/statistics.h"
#include "sweep.h"

/* A valid result in the store. */
struct stored_pair { double a, b; };

/* A value of a point, on side 0 (the other operation) or 1. */
struct side_value {
    uint64_t hash;
    int binding, side;
    double a, b;
};

/* ---- the option ---- */

static int read_option(struct stop_rule *rule, const struct tune_operation_record *r)
{
    const char *colon = strrchr(r->stop_when, ':');
    char *end = NULL;
    rule->share = colon ? strtod(colon + 1, &end) / 100 : NAN;
    end += end && *end == '%';
    size_t length = colon ? (size_t)(colon - r->stop_when) : 0;
    if (length == 0 || length >= sizeof rule->other || end == colon + 1 || *end || !(rule->share >= 0 && rule->share < 1))
        return tune_error_usage("--stop-when %s: expected OPERATION:SHARE or PROPERTY:SHARE, such as before:5%%, to end the repeats "
                                "of an entity; or \"no gain of 1 %% in 20\" or \"chance of 1 %% below 5 %%\", to end a search", r->stop_when);
    snprintf(rule->other, sizeof rule->other, "%.*s", (int)length, r->stop_when);
    if (!r->minimize == !r->maximize)
        return tune_error_usage("--stop-when needs a property to compare: --maximize PROPERTY or "
                                "--minimize PROPERTY");
    if (r->options.repeat < TUNE_PAIRS)
        return tune_error_usage("--stop-when needs --repeat, the highest number of repeats of an "
                                "entity; it must be at least %d", TUNE_PAIRS);
    rule->property = r->maximize ? r->maximize : r->minimize;
    rule->limit = tune_gain_limit(rule->share, r->maximize);
    return 0;
}

/* Find the other side: an operation of the store, or else a property of all experiments. */
static int find_other(const struct plan *plan, struct stop_rule *rule)
{
    char path[TUNE_PATH_MAX];
    int with = 0;
    for (int p = 0; p < plan->binding_count; p++) {
        const struct tune_experiment *e = plan->bindings[p].experiment;
        TRY(check_property(e, rule->property));
        with += tune_experiment_target(e, rule->other) >= 0;
    }
    TRY(tune_path(path, "%s/operations/%s.json", plan->flags->store, rule->other));
    rule->operation = tune_file_exists(path);
    if (rule->operation || with == plan->binding_count)
        return 0;
    return tune_error_usage("--stop-when %s: the store %s has no operation of that name, and the "
                            "experiment has no property of that name",
                            plan->record.stop_when, plan->flags->store);
}

/* ---- values ---- */

static int add_value(struct stop_rule *rule, uint64_t hash, int binding, int side, double a,
                     double b)
{
    if (!tune_array_fit(&rule->values, rule->count, sizeof *rule->values))
        return no_memory();
    rule->values[rule->count++] = (struct side_value){hash, binding, side, a, b};
    return 0;
}

/* Add a stored result to the values of a point, on this side. */
static int add_stored(struct stop_rule *rule, const uint8_t uid[16], uint64_t hash, int binding,
                      int side)
{
    uint64_t i;
    if (!tune_uids_first(&rule->uids, uid, &i))
        return 0;
    return add_value(rule, hash, binding, side, rule->stored[i].a, rule->stored[i].b);
}

/* Read the values of all valid rows of an experiment. */
static int read_rows(const struct plan *plan, struct stop_rule *rule,
                     const struct tune_experiment *e)
{
    const char *names[4] = {tune_key_column(TUNE_KEY_UID)->name, tune_key_column(TUNE_KEY_STATUS)->name, rule->property,
                            rule->operation ? rule->property : rule->other};
    const struct tune_cell *cells;
    int more;
    if (!tune_store_has(plan->store, e->name))
        return 0;
    struct tune_scan *scan = tune_scan_open(plan->store, e->name, names, 4);
    while ((more = tune_scan_next(scan, &cells)) == 1) {
        uint8_t uid[16];
        size_t n = rule->uids.count;
        if (strcmp(cells[1].text, "valid") || cells[2].absent || cells[3].absent)
            continue;
        tune_uid_read(uid, cells[0].text);
        if (!tune_array_fit(&rule->stored, n, sizeof *rule->stored) || tune_uids_add(&rule->uids, uid, n) < 0) {
            more = no_memory();
            break;
        }
        rule->stored[n] = (struct stored_pair){cells[3].number, cells[2].number};
    }
    tune_scan_free(scan);
    return more;
}

static int find_binding(const struct plan *plan, const char *identifier)
{
    int p = 0;
    while (p < plan->binding_count && strcmp(plan->bindings[p].full_identifier, identifier))
        p++;
    return p;
}

/* Read the stored results of both sides: of the other operation, and of this one if it was
 * interrupted. */
static int read_requests(const struct plan *plan, struct stop_rule *rule)
{
    const struct tune_cell *cells;
    int more;
    struct tune_scan *scan = TUNE_SCAN(plan->store, TUNE_STORE_REQUESTS, TUNE_REQUEST_OPERATION, TUNE_REQUEST_EXPERIMENT,
                                       TUNE_REQUEST_ENTITY, TUNE_REQUEST_UID);
    while ((more = tune_scan_next(scan, &cells)) == 1) {
        int side = !strcmp(cells[0].text, plan->record.id) ? 1 : rule->operation && !strcmp(cells[0].text, rule->other) ? 0 : -1;
        int binding = side >= 0 ? find_binding(plan, cells[1].text) : plan->binding_count;
        uint8_t uid[16];
        if (binding == plan->binding_count)
            continue;
        tune_uid_read(uid, cells[3].text);
        if (add_stored(rule, uid, tune_entity_hash(cells[2].text, strlen(cells[2].text)), binding, side) < 0) {
            more = -1;
            break;
        }
    }
    tune_scan_free(scan);
    return more;
}

int stop_rule_open(const struct plan *plan, struct stop_rule *rule)
{
    if (!plan->record.stop_when || enough_is_rule(plan->record.stop_when))
        return 0;
    TRY(read_option(rule, &plan->record));
    TRY(find_other(plan, rule));
    if (!plan->store)
        return 0;
    for (int p = 0; p < plan->binding_count; p++)
        if (tune_binding_is_first(plan->bindings, p))
            TRY(read_rows(plan, rule, plan->bindings[p].experiment));
    tune_uids_sort(&rule->uids);
    return read_requests(plan, rule);
}

int stop_rule_measured(const struct plan *plan, struct stop_rule *rule, const struct tune_job *job,
                       const double *targets)
{
    const struct tune_experiment *e = binding_of(plan, job)->experiment;
    if (!*rule->other || !targets)
        return 0;
    double b = targets[tune_experiment_target(e, rule->property)];
    double a = rule->operation ? b : targets[tune_experiment_target(e, rule->other)];
    return isnan(a) || isnan(b) ? 0 : add_value(rule, job->hash, job->binding, 1, a, b);
}

int stop_rule_replayed(struct stop_rule *rule, const struct tune_job *job)
{
    for (int i = 0; *rule->other && i < job->row_count; i++)
        TRY(add_stored(rule, job->rows[i].uid, job->hash, job->binding, 1));
    return 0;
}

/* ---- the rule ---- */

/* Compute the gains of the point's pairs, into gains[rule->count]. Returns the number of pairs.
 * *ours, *theirs: numbers of results of each side. */
static int pair_up(const struct stop_rule *rule, uint64_t hash, int binding, bool maximize,
                   double *gains, int *ours, int *theirs)
{
    int pairs = 0;
    *ours = *theirs = 0;
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < rule->count; i++) {
            const struct side_value *v = &rule->values[i];
            if (v->hash != hash || v->binding != binding || v->side != side)
                continue;
            if (side == 0) { /* gains[] holds the other side's values until they are paired */
                gains[(*theirs)++] = v->b;
                continue;
            }
            int k = (*ours)++;
            if (rule->operation && k >= *theirs)
                continue;
            double gain = tune_gain(rule->operation ? gains[k] : v->a, v->b, maximize);
            if (!isnan(gain))
                gains[pairs++] = gain;
        }
    return pairs;
}

int stop_rule_holds(void *queue, int binding, const struct tune_value *entity, uint64_t hash)
{
    struct queue *q = queue;
    const struct stop_rule *rule = &q->stop_rule;
    int ours, theirs;
    char answer[64], text[ENTITY_TEXT];
    double *gains = malloc((rule->count + 1) * sizeof *gains);
    if (!gains)
        return no_memory();
    int pairs = pair_up(rule, hash, binding, q->plan->record.maximize, gains, &ours, &theirs);
    struct tune_spread spread = tune_spread_of(gains, pairs);
    int worse = tune_told(&spread, rule->limit);
    free(gains);
    if (worse < 0 && (!rule->operation || ours < theirs))
        return 0;
    if (worse >= 0)
        snprintf(answer, sizeof answer, "%s by more than %g %%", worse ? "worse" : "not worse", 100 * rule->share);
    else
        snprintf(answer, sizeof answer, theirs ? "the other side has no more repeats" : "the other side has no result");
    progress_log(q->progress, "stop rule           %s: %s, after %d repeat%s (%d pair%s)", entity_text(q->plan->space, entity, text),
                 answer, ours, ours == 1 ? "" : "s", pairs, pairs == 1 ? "" : "s");
    return 1;
}

void stop_rule_free(struct stop_rule *rule)
{
    tune_uids_free(&rule->uids);
    free(rule->stored);
    free(rule->values);
}
