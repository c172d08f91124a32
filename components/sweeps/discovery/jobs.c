/* jobs.c - iterate over entities, experiments and repeats, and decide what to do with each job. */
#include "sweeps/discovery/jobs.h"

#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "core/try.h"
#include "sweeps/discovery/matching.h"

#define STREAM_GROUPS ((uint64_t)4 << 48) /* a stream of random numbers; order.c has three others */

/* The position of a stored entity in the order. */
struct turn {
    bool later;                          /* true if this operation has not requested it yet */
    uint64_t rank, group;                /* group: its group; rank: that of the group */
    int entity;                          /* index of the entity, in first-seen order */
};

struct tune_jobs {
    struct tune_jobs_options o;
    struct tune_order *order;            /* order of entities from the grid */
    struct tune_matching matching;       /* entities from the store (selector) */
    struct turn *turns;                  /* [matching.count] turns, sorted */
    int at;                              /* the next turn, or given entity */
    struct tune_value *values;           /* scratch for values */
    struct tune_value *entity, *inputs;  /* current entity; inputs: scratch for the experiment with the most inputs */
    char *text;                          /* scratch for identifiers */
    size_t text_size;
    bool has_entity;
    int64_t index;                       /* current experiment of the entity; -1: none yet */
    uint64_t hash;                       /* hash of its identifier */
    int binding, repeat;
};

static int no_memory(void)
{
    return tune_error_cannot("out of memory in the list of measurements");
}

static struct tune_value *copy(const struct tune_value *values, int count)
{
    return tune_values_copy(malloc(tune_values_size(values, count) + 1), values, count);
}

/* ---- entities ---- */

/* Hash the identifier over some of the space's dimensions. which NULL: all. */
static int hash_values(struct tune_jobs *j, const struct tune_value *values, const bool *which, uint64_t *hash)
{
    const char *names[TUNE_SPACE_DIMENSIONS];
    struct tune_value some[TUNE_SPACE_DIMENSIONS];
    int count = 0;
    for (int d = 0; d < j->o.space->count; d++)
        if (!which || which[d]) {
            names[count] = j->o.space->names[d];
            some[count++] = values[d];
        }
    int length = tune_entity_to_string(names, some, count, &j->text, &j->text_size);
    TRY(length);
    *hash = tune_entity_hash(j->text, (size_t)length);
    return 0;
}

/* Take the next entity from the list, the order or the store. 1; 0: the end; -1 with an error. */
static int next_values(struct tune_jobs *j, const struct tune_value **values)
{
    if (j->o.given) {
        *values = j->at < j->o.given_count ? j->o.given[j->at] : NULL;
        return j->at++ < j->o.given_count;
    }
    if (j->o.choose)
        return j->o.choose(j->o.context, values);
    if (j->order)
        return tune_order_next(j->order, values);
    if (j->at == j->matching.count)
        return 0;
    tune_matching_values(&j->matching, j->turns[j->at++].entity, j->values);
    *values = j->values;
    return 1;
}

/* True if entities are filtered, so that the order's limit does not apply. */
static bool is_narrowed(const struct tune_jobs *j)
{
    return j->o.filter != TUNE_FILTER_NONE || j->o.where || j->o.only_count > 0;
}

/* The accepted differences of provenance. An experiment without a program here has no build, so rows of
 * any provenance are accepted. */
static int accepted(const struct tune_jobs *j, const struct tune_binding *p)
{
    return p->supported ? j->o.accept : TUNE_ACCEPT_HOST | TUNE_ACCEPT_BUILD | TUNE_ACCEPT_WEIGHTS | TUNE_ACCEPT_DATA;
}

/* Count the experiments with a result of this entity. */
static int measured(struct tune_jobs *j, const struct tune_value *values)
{
    int count = 0;
    for (int p = j->o.first; p < j->o.first + j->o.count; p++) {
        const struct tune_cached_row *rows;
        struct tune_provenance provenance;
        tune_binding_inputs(&j->o.bindings[p], values, j->inputs);
        TRY(j->o.provenance(j->o.context, &j->o.bindings[p], j->inputs, &provenance));
        int accept = accepted(j, &j->o.bindings[p]), good = 0;
        int found = tune_result_cache_find(j->o.cache, p, j->inputs, &provenance, accept, &rows);
        TRY(found);
        for (int i = 0; i < found; i++)
            good += rows[i].status != TUNE_FAILED;
        count += good > 0;
    }
    return count;
}

/* True if the entity is among o.only, and meets `where` under an experiment. */
static int is_chosen(const struct tune_jobs *j, const struct tune_value *values)
{
    int i = 0, meets = 0;
    while (i < j->o.only_count && j->o.only[i] != j->hash)
        i++;
    if (j->o.only_count > 0 && i == j->o.only_count)
        return 0;
    for (int p = j->o.first; p < j->o.first + j->o.count && !meets; p++)
        TRY(meets = tune_where_meets(j->o.where, p, values));
    return meets;
}

static int passes(struct tune_jobs *j, const struct tune_value *values)
{
    TRY(hash_values(j, values, NULL, &j->hash));
    int chosen = is_chosen(j, values);
    if (chosen <= 0)
        return chosen;
    if (j->o.filter == TUNE_FILTER_NONE || tune_result_cache_asked(j->o.cache, j->hash))
        return 1;
    int count = measured(j, values);
    TRY(count);
    return j->o.filter == TUNE_FILTER_MEASURED     ? count == j->o.count
           : j->o.filter == TUNE_FILTER_UNMEASURED ? count == 0
                                                   : count > 0 && count < j->o.count;
}

static int next_entity(struct tune_jobs *j)
{
    const struct tune_value *values;
    int more, pass = 0;
    if (j->o.order.limit >= 0 && j->index + 1 >= j->o.order.limit)
        return 0;
    while ((more = next_values(j, &values)) == 1 && (pass = passes(j, values)) == 0)
        ;
    if (more <= 0 || pass < 0)
        return more <= 0 ? more : -1;
    int enough = j->o.enough && !tune_result_cache_asked(j->o.cache, j->hash) ? j->o.enough(j->o.context) : 0;
    if (enough)
        return enough < 0 ? -1 : 0;
    free(j->entity);
    if (!(j->entity = copy(values, j->o.space->count)))
        return no_memory();
    j->index++;
    return 1;
}

/* ---- jobs ---- */

int tune_jobs_decide(struct tune_jobs *j, struct tune_job *job)
{
    const struct tune_binding *p = &j->o.bindings[job->binding];
    const struct tune_cached_row *rows;
    int count = 0, at = job->repeat - job->running, answered, refused, absent;
    free(job->rows);
    job->rows = NULL;
    job->row_count = 0;
    job->kind = TUNE_JOB_ANSWERED;
    TRY(answered = tune_result_cache_answered(j->o.cache, job->binding, job->inputs, job->hash, job->repeat));
    if (answered)
        return 0;
    job->kind = TUNE_JOB_RUN;
    TRY(j->o.provenance(j->o.context, p, job->inputs, &job->provenance));
    bool looks = j->o.memoize || !p->supported;
    int found = looks ? tune_result_cache_find(j->o.cache, job->binding, job->inputs, &job->provenance, accepted(j, p), &rows) : 0;
    TRY(found);
    if (found > 0 && !(job->rows = malloc((size_t)found * sizeof *job->rows)))
        return no_memory();
    for (int i = 0; i < found; i++)
        if (rows[i].entity == job->hash) /* its other repeats were measured, so they used no results */
            at -= rows[i].repeat < job->repeat && at > 0;
        else if (rows[i].status != TUNE_FAILED)
            job->rows[count++] = rows[i];
    if (job->waiting > 0 && count > at - job->waiting) {
        job->kind = TUNE_JOB_LATER;
        return 0;
    }
    if (count > at) {
        /* each result is used once; the last repeat uses all that remain */
        job->kind = TUNE_JOB_REPLAY;
        job->row_count = job->repeat + 1 < j->o.repeat ? 1 : count - at;
        memmove(job->rows, job->rows + at, (size_t)job->row_count * sizeof *job->rows);
        return 0;
    }
    if (!p->supported) {
        job->kind = TUNE_JOB_UNMEASURABLE;
        snprintf(job->why, sizeof job->why, "its experiment has no program on this machine");
        return 0;
    }
    TRY(absent = j->o.lacks ? j->o.lacks(j->o.context, p, job->inputs, job->why, sizeof job->why) : 0);
    TRY(refused = absent ? 0 : tune_experiment_refuses(p->experiment, job->inputs, job->why, sizeof job->why));
    if (!absent && !refused)
        TRY(absent = tune_experiment_not_here(p->experiment, job->inputs, job->why, sizeof job->why));
    if (absent || refused)
        job->kind = absent ? TUNE_JOB_UNMEASURABLE : TUNE_JOB_REFUSED;
    return 0;
}

/* Go to the next repeat, experiment or entity. 1; 0: the end; -1 with an error. */
static int advance(struct tune_jobs *j)
{
    if (j->has_entity && ++j->repeat < j->o.repeat) {
        int stop = j->o.stop_rule ? j->o.stop_rule(j->o.context, j->binding, j->entity, j->hash) : 0;
        if (stop <= 0)
            return stop < 0 ? -1 : 1;
    }
    j->repeat = 0;
    j->binding += j->has_entity;
    for (int meets;; j->binding++) {
        if (!j->has_entity || j->binding == j->o.first + j->o.count) {
            int more = next_entity(j);
            j->has_entity = more > 0;
            if (more <= 0)
                return more;
            j->binding = j->o.first;
        }
        if ((meets = tune_where_meets(j->o.where, j->binding, j->entity)) != 0)
            return meets;
    }
}

int tune_jobs_next(struct tune_jobs *j, struct tune_job *job)
{
    int more = advance(j);
    if (more <= 0)
        return more;
    const struct tune_binding *p = &j->o.bindings[j->binding];
    *job = (struct tune_job){.index = j->o.before + j->index, .hash = j->hash, .binding = j->binding, .repeat = j->repeat};
    tune_binding_inputs(p, j->entity, j->inputs);
    job->entity = copy(j->entity, j->o.space->count);
    job->inputs = copy(j->inputs, p->experiment->input_count);
    if (!job->entity || !job->inputs) {
        tune_job_free(job);
        return no_memory();
    }
    if (tune_jobs_decide(j, job) == 0)
        return 1;
    tune_job_free(job);
    return -1;
}

/* ---- begin and end ---- */

static int earlier(const void *a, const void *b)
{
    const struct turn *x = a, *y = b;
    if (x->later != y->later)
        return x->later ? 1 : -1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->entity > y->entity) - (x->entity < y->entity);
}

/* Decide the order in which the store's entities are measured. For a sequential order, all are one
 * group. For a random order, each is its own group, and groups are shuffled. Entities that this
 * operation has requested come first. So they count towards the limit, even if other operations
 * have added entities since. */
static int order_matching(struct tune_jobs *j)
{
    const struct tune_order_options *o = &j->o.order;
    bool grouped[TUNE_SPACE_DIMENSIONS] = {false}, random = o->mode == TUNE_ORDER_RANDOM || o->mode == TUNE_ORDER_RANDOM_GROUPED;
    int count = j->matching.count;
    TRY(tune_order_groups(j->o.space, o, grouped));
    if (!(j->turns = calloc((size_t)count + 1, sizeof *j->turns)))
        return no_memory();
    for (int i = 0; i < count; i++) {
        struct turn *t = &j->turns[i];
        uint64_t hash;
        tune_matching_values(&j->matching, i, j->values);
        TRY(hash_values(j, j->values, NULL, &hash));
        t->entity = i;
        t->group = hash;
        t->later = !tune_result_cache_asked(j->o.cache, hash);
        if (o->mode != TUNE_ORDER_RANDOM)
            TRY(hash_values(j, j->values, grouped, &t->group)); /* sequential: without dimensions, all have the same hash */
        t->rank = random ? tune_random_u64(o->seed, STREAM_GROUPS, t->group) : 0;
    }
    qsort(j->turns, (size_t)count, sizeof *j->turns, earlier);
    if (random)
        return 0;
    for (int i = 0; i < count; i++) /* groups are sorted now, so the first of a group is at its start */
        if (i > 0 && j->turns[i].group == j->turns[i - 1].group && j->turns[i].later == j->turns[i - 1].later)
            j->turns[i].rank = j->turns[i - 1].rank;
        else
            j->turns[i].rank = (uint64_t)j->turns[i].entity;
    qsort(j->turns, (size_t)count, sizeof *j->turns, earlier);
    return 0;
}

static int make_selector(struct tune_jobs *j)
{
    enum tune_order_mode mode = j->o.order.mode;
    struct tune_store *store = tune_result_cache_store(j->o.cache);
    if (!store)
        return tune_error_usage("the sampler selector takes entities from a store, but there is no "
                                "store yet");
    if (mode > TUNE_ORDER_RANDOM_GROUPED)
        return tune_error_usage("with the sampler selector, the order must be sequential (as "
                                "entities were first measured), random, sequential-grouped or "
                                "random-grouped, not %s",
                                tune_order_name(mode));
    TRY(tune_matching_read(&j->matching, store, j->o.space, j->o.bindings, j->o.count));
    return order_matching(j);
}

static int make_generator(struct tune_jobs *j)
{
    struct tune_order_options order = j->o.order;
    tune_index size = j->o.space->size;
    if (order.limit < 0 && size > TUNE_JOBS_ALL && j->o.space->constraint_count == 0) {
        char text[48];
        return tune_document_fail(j->o.space->document, j->o.space->dimensions[0].at,
                                  "the space has %s%s entities, too many to measure all; give the "
                                  "number of entities",
                                  size == TUNE_INDEX_MAX ? "at least " : "", tune_index_text(size, text));
    }
    if (is_narrowed(j) && size > 0)
        order.limit = -1; /* the limit counts entities that pass the filter */
    return (j->order = tune_order_new(j->o.space, &order)) ? 0 : -1;
}

int64_t tune_jobs_count(const struct tune_jobs *j)
{
    const struct tune_space *s = j->o.space;
    int64_t each = (int64_t)j->o.count * j->o.repeat, entities = j->o.order.limit;
    double allowed = 0, error = 1;
    if (is_narrowed(j) || j->o.stop_rule)
        return 0;
    /* counting 10^7 would take too long for a progress line */
    if ((j->order || j->o.choose) && s->size > 0 && (s->constraint_count == 0 || s->size <= 1000000) &&
        tune_space_count_allowed(s, &allowed, &error) < 0)
        tune_error_clear();
    int64_t most = j->o.given ? j->o.given_count : !j->order && !j->o.choose ? j->matching.count : error == 0 && allowed < 0x1p53 ? (int64_t)allowed : -1;
    if (most >= 0 && (entities < 0 || entities > most))
        entities = most;
    return entities < 0 || entities > INT64_MAX / each ? 0 : entities * each;
}

struct tune_jobs *tune_jobs_new(const struct tune_jobs_options *options)
{
    struct tune_jobs *j = calloc(1, sizeof *j);
    int most = 1;
    for (int p = options->first; p < options->first + options->count; p++)
        if (options->bindings[p].experiment->input_count > most)
            most = options->bindings[p].experiment->input_count;
    if (!j || !(j->inputs = calloc((size_t)most, sizeof *j->inputs)) ||
        !(j->values = calloc((size_t)options->space->count + 1, sizeof *j->values))) {
        tune_jobs_free(j);
        no_memory();
        return NULL;
    }
    j->o = *options;
    if (j->o.only_count > 0 && (j->o.order.limit < 0 || j->o.order.limit > j->o.only_count))
        j->o.order.limit = j->o.only_count; /* stop when all have been found */
    j->index = -1;
    if (options->given || options->choose || (options->selector ? make_selector(j) : make_generator(j)) == 0)
        return j;
    tune_jobs_free(j);
    return NULL;
}

void tune_jobs_free(struct tune_jobs *j)
{
    if (!j)
        return;
    tune_order_free(j->order);
    tune_matching_free(&j->matching);
    free(j->turns);
    free(j->text);
    free(j->entity);
    free(j->inputs);
    free(j->values);
    free(j);
}

void tune_job_free(struct tune_job *job)
{
    free(job->entity);
    free(job->inputs);
    free(job->rows);
    *job = (struct tune_job){0};
}
