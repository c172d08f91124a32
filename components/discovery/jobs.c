/* jobs.c - entities x experiments x repeats, and what is to be done with each. */
#include "discovery/jobs.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/random.h"
#include "core/try.h"
#include "discovery/matching.h"

struct tune_jobs {
    struct tune_jobs_options o;
    struct tune_order *order;            /* of a generator */
    struct tune_matching matching;       /* of a selector */
    int at;
    struct tune_value *values, *items;   /* scratch of it */
    struct tune_value *entity, *inputs;  /* the present one; inputs: scratch, of the experiment with the most */
    bool has_entity;
    int64_t index;                       /* of the present entity; -1: none yet */
    int protocol, repeat;
};

static int no_memory(void)
{
    tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory in the list of measurements");
    return -1;
}

/* count values with the items of lists behind them, in one block. */
static struct tune_value *copy(const struct tune_value *values, int count)
{
    size_t room = (size_t)count + 1;
    for (int i = 0; i < count; i++)
        room += values[i].type == TUNE_VALUE_LIST ? (size_t)values[i].list.count : 0;
    struct tune_value *all = malloc(room * sizeof *all), *items = all + count;
    if (!all)
        return NULL;
    memcpy(all, values, (size_t)count * sizeof *all);
    for (int i = 0; i < count; i++)
        if (values[i].type == TUNE_VALUE_LIST) {
            memcpy(items, values[i].list.items, (size_t)values[i].list.count * sizeof *items);
            all[i].list.items = items;
            items += values[i].list.count;
        }
    return all;
}

/* ---- entities ---- */

/* The next one of the order or of the store: 1, 0, -1. */
static int next_values(struct tune_jobs *j, const struct tune_value **values)
{
    if (j->order)
        return tune_order_next(j->order, values);
    if (j->at == j->matching.count)
        return 0;
    uint64_t i = (uint64_t)j->at++;
    if (j->o.order.mode == TUNE_ORDER_RANDOM)
        i = tune_random_permute(j->o.order.seed, 0, (uint64_t)j->matching.count, i);
    tune_matching_values(&j->matching, (int)i, j->values, j->items);
    *values = j->values;
    return 1;
}

/* How many of the experiments have a result of this entity. */
static int measured(struct tune_jobs *j, const struct tune_value *values)
{
    int count = 0;
    for (int p = 0; p < j->o.count; p++) {
        const struct tune_known_row *rows;
        struct tune_origin origin;
        tune_protocol_inputs(&j->o.protocols[p], values, j->inputs);
        TRY(j->o.origin(j->o.context, &j->o.protocols[p], j->inputs, &origin));
        int found = tune_known_find(j->o.known, p, j->inputs, &origin, j->o.accept, &rows), good = 0;
        TRY(found);
        for (int i = 0; i < found; i++)
            good += rows[i].status != TUNE_FAILED;
        count += good > 0;
    }
    return count;
}

static int passes(struct tune_jobs *j, const struct tune_value *values)
{
    if (j->o.filter == TUNE_FILTER_NONE)
        return 1;
    int count = measured(j, values);
    TRY(count);
    return j->o.filter == TUNE_FILTER_MEASURED ? count == j->o.count
                                               : j->o.filter == TUNE_FILTER_UNMEASURED ? count == 0 : count > 0 && count < j->o.count;
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
    free(j->entity);
    if (!(j->entity = copy(values, j->o.space->count)))
        return no_memory();
    j->index++;
    return 1;
}

/* ---- jobs ---- */

int tune_jobs_decide(struct tune_jobs *j, struct tune_job *job)
{
    const struct tune_protocol *p = &j->o.protocols[job->protocol];
    const struct tune_known_row *rows;
    int count = 0, refused;
    free(job->rows);
    job->rows = NULL;
    job->row_count = 0;
    job->kind = TUNE_JOB_RUN;
    if (tune_known_answered(j->o.known, job->index, p->full_identifier) > job->repeat) {
        job->kind = TUNE_JOB_ANSWERED;
        return 0;
    }
    TRY(j->o.origin(j->o.context, p, job->inputs, &job->origin));
    int found = j->o.memoize ? tune_known_find(j->o.known, job->protocol, job->inputs, &job->origin, j->o.accept, &rows) : 0;
    TRY(found);
    if (found > 0 && !(job->rows = malloc((size_t)found * sizeof *job->rows)))
        return no_memory();
    for (int i = 0; i < found; i++)
        if (rows[i].status != TUNE_FAILED)
            job->rows[count++] = rows[i];
    if (count > job->repeat) {
        /* each result once: the last repeat takes all that are left */
        job->kind = TUNE_JOB_REPLAY;
        job->row_count = job->repeat + 1 < j->o.repeat ? 1 : count - job->repeat;
        memmove(job->rows, job->rows + job->repeat, (size_t)job->row_count * sizeof *job->rows);
        return 0;
    }
    TRY(refused = tune_experiment_refuses(p->experiment, job->inputs, job->why, sizeof job->why));
    if (refused)
        job->kind = TUNE_JOB_REFUSED;
    return 0;
}

int tune_jobs_next(struct tune_jobs *j, struct tune_job *job)
{
    if (j->has_entity && ++j->repeat == j->o.repeat) {
        j->repeat = 0;
        j->protocol++;
    }
    if (!j->has_entity || j->protocol == j->o.count) {
        int more = next_entity(j);
        if (more <= 0)
            return more;
        j->has_entity = true;
        j->protocol = j->repeat = 0;
    }
    const struct tune_protocol *p = &j->o.protocols[j->protocol];
    *job = (struct tune_job){.index = j->index, .protocol = j->protocol, .repeat = j->repeat};
    tune_protocol_inputs(p, j->entity, j->inputs);
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

int64_t tune_jobs_count(const struct tune_jobs *j)
{
    const struct tune_space *s = j->o.space;
    int64_t each = (int64_t)j->o.count * j->o.repeat, entities = j->o.order.limit;
    if (j->o.filter != TUNE_FILTER_NONE)
        return 0;
    if (!j->order && (entities < 0 || entities > j->matching.count))
        entities = j->matching.count;
    else if (j->order && entities < 0)
        entities = s->constraint_count == 0 && s->size > 0 && s->size < INT64_MAX ? (int64_t)s->size : 0;
    return entities > INT64_MAX / each ? 0 : entities * each;
}

struct tune_jobs *tune_jobs_new(const struct tune_jobs_options *options)
{
    struct tune_jobs *j = calloc(1, sizeof *j);
    int most = 1;
    for (int p = 0; p < options->count; p++)
        if (options->protocols[p].experiment->input_count > most)
            most = options->protocols[p].experiment->input_count;
    if (!j || !(j->inputs = calloc((size_t)most, sizeof *j->inputs)) ||
        !(j->values = calloc((size_t)options->space->count + 1, sizeof *j->values)) ||
        !(j->items = calloc((size_t)options->space->items + 1, sizeof *j->items))) {
        tune_jobs_free(j);
        no_memory();
        return NULL;
    }
    j->o = *options;
    j->index = -1;
    struct tune_order_options order = options->order;
    if (options->filter != TUNE_FILTER_NONE && order.mode != TUNE_ORDER_LHS)
        order.limit = -1; /* the limit counts what passes */
    if (options->selector && !tune_known_store(options->known)) {
        tune_jobs_free(j);
        tune_error_set_kind(TUNE_ERROR_USAGE, "a selector takes entities from the store, and there is none");
        return NULL;
    }
    if (options->selector && order.mode != TUNE_ORDER_SEQUENTIAL && order.mode != TUNE_ORDER_RANDOM) {
        tune_jobs_free(j);
        tune_error_set_kind(TUNE_ERROR_USAGE, "a selector's order is sequential (as they were first measured) or random, not %s",
                            tune_order_name(order.mode));
        return NULL;
    }
    if (options->selector ? tune_matching_read(&j->matching, tune_known_store(options->known), options->space, options->protocols, options->count, NULL, 0) == 0
                          : (j->order = tune_order_new(options->space, &order)) != NULL)
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
    free(j->entity);
    free(j->inputs);
    free(j->values);
    free(j->items);
    free(j);
}

void tune_job_free(struct tune_job *job)
{
    free(job->entity);
    free(job->inputs);
    free(job->rows);
    *job = (struct tune_job){0};
}
