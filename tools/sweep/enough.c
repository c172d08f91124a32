/* enough.c - --stop-when: repeats of a point end when it is known whether it is worse than another.
 *
 * The rule is that of samples compare --regression: Student's posterior over pairs. The k-th result
 * of the other operation and the k-th of this one are a pair; or two properties of one result. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/nearest.h"
#include "core/print.h"
#include "core/statistics.h"
#include "sweep.h"
#include "sweeps/discovery/uids.h"

/* A valid result in the store, with both values. */
struct stored {
    uint8_t uid[16];
    double a, b;
};

/* A value of a point, on side 0 (the other operation) or 1. */
struct value {
    uint64_t hash;
    int protocol, side;
    double a, b;
};

static struct {
    char other[128];       /* operation or property; "": no --stop-when */
    bool operation;
    const char *property;
    double share, limit;
    struct stored *stored; /* [stored_count] sorted by uid */
    size_t stored_count;
    struct value *values;  /* [count] in the order of measurement */
    size_t count;
} enough;

/* ---- the option ---- */

static int read_option(const struct tune_operation_record *r)
{
    const char *colon = strrchr(r->stop_when, ':');
    char *end = NULL;
    enough.share = colon ? strtod(colon + 1, &end) / 100 : NAN;
    end += end && *end == '%';
    size_t length = colon ? (size_t)(colon - r->stop_when) : 0;
    if (length == 0 || length >= sizeof enough.other || end == colon + 1 || *end || !(enough.share >= 0 && enough.share < 1))
        return tune_error_usage("--stop-when %s: expected OPERATION:SHARE or PROPERTY:SHARE, such as before:5%%", r->stop_when);
    snprintf(enough.other, sizeof enough.other, "%.*s", (int)length, r->stop_when);
    if (!r->minimize == !r->maximize)
        return tune_error_usage("--stop-when needs the property that it looks at: --maximize PROPERTY or --minimize PROPERTY");
    if (r->options.repeat < TUNE_PAIRS)
        return tune_error_usage("--stop-when needs --repeat, the most repeats of a point, of at least %d", TUNE_PAIRS);
    enough.property = r->maximize ? r->maximize : r->minimize;
    enough.limit = tune_gain_limit(enough.share, r->maximize);
    return 0;
}

/* Find the other side: an operation of the store, or else a property of all experiments. */
static int find_other(void)
{
    char path[TUNE_PATH_MAX];
    int with = 0;
    for (int p = 0; p < sweep.protocol_count; p++) {
        const struct tune_experiment *e = sweep.protocols[p].experiment;
        if (tune_experiment_target(e, enough.property) < 0)
            return tune_error_usage("%s has no property %s (space experiments %s lists them)", e->name, enough.property, e->name);
        with += tune_experiment_target(e, enough.other) >= 0;
    }
    TRY(tune_path(path, "%s/operations/%s.json", my.store, enough.other));
    enough.operation = tune_file_exists(path);
    if (enough.operation || with == sweep.protocol_count)
        return 0;
    return tune_error_usage("--stop-when %s: %s has no operation of that name, and the experiment no such property", sweep.record.stop_when,
                            my.store);
}

/* ---- values ---- */

static int add_value(uint64_t hash, int protocol, int side, double a, double b)
{
    if (!tune_array_fit(&enough.values, enough.count, sizeof *enough.values))
        return sweep_no_memory();
    enough.values[enough.count++] = (struct value){hash, protocol, side, a, b};
    return 0;
}

static int by_uid(const void *a, const void *b)
{
    return memcmp(((const struct stored *)a)->uid, ((const struct stored *)b)->uid, 16);
}

static const struct stored *find_stored(const uint8_t uid[16])
{
    struct stored key;
    memcpy(key.uid, uid, sizeof key.uid);
    return enough.stored_count ? bsearch(&key, enough.stored, enough.stored_count, sizeof key, by_uid) : NULL;
}

/* Read the values of all valid rows of an experiment. */
static int read_rows(const struct tune_experiment *e)
{
    const char *names[4] = {tune_key_column(TUNE_KEY_UID)->name, tune_key_column(TUNE_KEY_STATUS)->name, enough.property,
                            enough.operation ? enough.property : enough.other};
    const struct tune_cell *cells;
    int more;
    if (!tune_store_has(sweep.store, e->name))
        return 0;
    struct tune_scan *scan = tune_scan_open(sweep.store, e->name, names, 4);
    while ((more = tune_scan_next(scan, &cells)) == 1) {
        if (strcmp(cells[1].text, "valid") || cells[2].absent || cells[3].absent)
            continue;
        if (!tune_array_fit(&enough.stored, enough.stored_count, sizeof *enough.stored)) {
            more = sweep_no_memory();
            break;
        }
        struct stored *s = &enough.stored[enough.stored_count++];
        tune_uid_read(s->uid, cells[0].text);
        s->a = cells[3].number;
        s->b = cells[2].number;
    }
    tune_scan_free(scan);
    return more;
}

static int find_protocol(const char *identifier)
{
    int p = 0;
    while (p < sweep.protocol_count && strcmp(sweep.protocols[p].full_identifier, identifier))
        p++;
    return p;
}

/* Read what the other operation, and this one if it was interrupted, have of each point. */
static int read_requests(void)
{
    const struct tune_cell *cells;
    int more;
    struct tune_scan *scan = TUNE_SCAN(sweep.store, TUNE_STORE_REQUESTS, TUNE_REQUEST_OPERATION, TUNE_REQUEST_EXPERIMENT,
                                       TUNE_REQUEST_ENTITY, TUNE_REQUEST_UID);
    while ((more = tune_scan_next(scan, &cells)) == 1) {
        int side = !strcmp(cells[0].text, sweep.record.id) ? 1 : enough.operation && !strcmp(cells[0].text, enough.other) ? 0 : -1;
        int protocol = side >= 0 ? find_protocol(cells[1].text) : sweep.protocol_count;
        uint8_t uid[16];
        if (protocol == sweep.protocol_count)
            continue;
        tune_uid_read(uid, cells[3].text);
        const struct stored *s = find_stored(uid);
        if (s && add_value(tune_entity_hash(cells[2].text, strlen(cells[2].text)), protocol, side, s->a, s->b) < 0) {
            more = -1;
            break;
        }
    }
    tune_scan_free(scan);
    return more;
}

int sweep_enough_begin(void)
{
    if (!sweep.record.stop_when)
        return 0;
    TRY(read_option(&sweep.record));
    TRY(find_other());
    if (!sweep.store)
        return 0;
    for (int p = 0; p < sweep.protocol_count; p++)
        if (tune_protocol_is_first(sweep.protocols, p))
            TRY(read_rows(sweep.protocols[p].experiment));
    if (enough.stored_count > 0)
        qsort(enough.stored, enough.stored_count, sizeof *enough.stored, by_uid);
    return read_requests();
}

int sweep_enough_measured(const struct tune_job *job, const double *targets)
{
    const struct tune_experiment *e = sweep.protocols[job->protocol].experiment;
    if (!*enough.other || !targets)
        return 0;
    double b = targets[tune_experiment_target(e, enough.property)];
    double a = enough.operation ? b : targets[tune_experiment_target(e, enough.other)];
    return isnan(a) || isnan(b) ? 0 : add_value(job->hash, job->protocol, 1, a, b);
}

int sweep_enough_known(const struct tune_job *job)
{
    for (int i = 0; *enough.other && i < job->row_count; i++) {
        const struct stored *s = find_stored(job->rows[i].uid);
        if (s)
            TRY(add_value(job->hash, job->protocol, 1, s->a, s->b));
    }
    return 0;
}

/* ---- the rule ---- */

/* The gains of the point's pairs, into gains[enough.count]. ours: its results on this side. Returns
 * the number of pairs. */
static int pair_up(uint64_t hash, int protocol, double *gains, int *ours, int *theirs)
{
    int pairs = 0;
    *ours = *theirs = 0;
    for (size_t i = 0; i < enough.count; i++) { /* theirs, which gains[] holds for now */
        const struct value *v = &enough.values[i];
        if (v->hash == hash && v->protocol == protocol && v->side == 0)
            gains[(*theirs)++] = v->b;
    }
    for (size_t i = 0; i < enough.count; i++) {
        const struct value *v = &enough.values[i];
        if (v->hash != hash || v->protocol != protocol || v->side == 0)
            continue;
        int k = (*ours)++;
        if (enough.operation && k >= *theirs)
            continue;
        double gain = tune_gain(enough.operation ? gains[k] : v->a, v->b, sweep.record.maximize);
        if (!isnan(gain))
            gains[pairs++] = gain;
    }
    return pairs;
}

static void tell(const struct tune_value *entity, const char *answer, int pairs, int repeats)
{
    sweep_clear_status();
    printf("# enough              ");
    sweep_print_entity(entity);
    printf(": %s, after %d repeat%s (%d pair%s)\n", answer, repeats, repeats == 1 ? "" : "s", pairs, pairs == 1 ? "" : "s");
}

int sweep_enough(void *context, int protocol, const struct tune_value *entity, uint64_t hash)
{
    int ours, theirs;
    (void)context;
    double *gains = malloc((enough.count + 1) * sizeof *gains);
    if (!gains)
        return sweep_no_memory();
    int pairs = pair_up(hash, protocol, gains, &ours, &theirs);
    struct tune_spread spread = tune_spread_of(gains, pairs);
    int told = tune_told(&spread, enough.limit);
    char answer[64];
    free(gains);
    if (told < 0 && (!enough.operation || ours < theirs))
        return 0;
    if (told >= 0)
        snprintf(answer, sizeof answer, "%s by more than %g %%", told ? "worse" : "not worse", 100 * enough.share);
    else
        snprintf(answer, sizeof answer, theirs ? "the other side has no more repeats" : "the other side has no result");
    tell(entity, answer, pairs, ours);
    return 1;
}

void sweep_enough_free(void)
{
    free(enough.stored);
    free(enough.values);
}
