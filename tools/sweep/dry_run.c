/* dry_run.c - print what would be measured, what is known, what is expected, and the estimated
 * time. */
#include <math.h>

#include "sweep.h"

/* Jobs with the same verdict, under the same experiment. */
struct verdict {
    int kind, binding;
    char *reason;
    int64_t jobs;
    double seconds; /* estimate for jobs without a line */
};

/* Numbers of jobs by verdict, and the estimated time. */
struct tally {
    int64_t runs, known, refused, away, todo, unknown, unfit;
    double seconds, unknown_weight;       /* of runs: seconds with an estimate; weight without one */
    double estimated_seconds, estimated_weight;   /* all jobs with an estimate */
    int64_t modelled;                     /* of runs: the time is that of a model */
    struct verdict *verdicts;             /* [verdict_count] */
    int verdict_count;
    struct expected *expected;
};

static const char *const kinds[] = {"run", "known", "invalid", "done", "known", "unknown"};

static struct verdict *find_verdict(struct tally *t, const struct tune_job *job, const char *reason)
{
    for (int i = 0; i < t->verdict_count; i++) {
        struct verdict *v = &t->verdicts[i];
        if (v->kind == (int)job->kind && v->binding == job->binding && !strcmp(v->reason, reason))
            return v;
    }
    char *copy = strdup(reason);
    if (!copy || !tune_array_fit(&t->verdicts, (size_t)t->verdict_count, sizeof *t->verdicts)) {
        free(copy);
        no_memory();
        return NULL;
    }
    t->verdicts[t->verdict_count] = (struct verdict){(int)job->kind, job->binding, copy, 0, 0};
    return &t->verdicts[t->verdict_count++];
}

/* Lines for jobs with the same verdict. */
static int64_t most_shown(const struct plan *plan)
{
    return plan->flags->lines > 0 ? plan->flags->lines : INT64_MAX;
}

/* Print one line per verdict for jobs without a line of their own. */
static void print_rest(const struct plan *plan, const struct tally *t)
{
    for (int i = 0; i < t->verdict_count; i++) {
        const struct verdict *v = &t->verdicts[i];
        char estimate[32] = "";
        if (v->jobs <= most_shown(plan))
            continue;
        if (v->seconds > 0)
            snprintf(estimate, sizeof estimate, "%.0f s", v->seconds);
        printf("%-7s %8s  and %lld more", kinds[v->kind], estimate, (long long)(v->jobs - most_shown(plan)));
        print_text("", v->reason);
        print_text("  ", plan->bindings[v->binding].full_identifier);
        puts("  (--lines 0 shows all)");
    }
}

static void count_job(struct tally *t, const struct tune_job *job, double seconds, double weight)
{
    bool run = job->kind == TUNE_JOB_RUN;
    t->runs += run;
    t->todo += job->kind != TUNE_JOB_ANSWERED;
    t->known += job->kind == TUNE_JOB_REPLAY || job->kind == TUNE_JOB_ANSWERED;
    t->refused += job->kind == TUNE_JOB_REFUSED || job->kind == TUNE_JOB_UNMEASURABLE;
    if (isnan(seconds) && run) {
        t->unknown++;
        t->unknown_weight += weight;
    } else if (!isnan(seconds)) {
        t->seconds += run ? seconds : 0;
        t->estimated_seconds += seconds;
        t->estimated_weight += weight;
    }
}

/* Write the reason for the verdict, after two spaces; "" if it is obvious. */
static int find_reason(const struct plan *plan, struct tally *t, const struct tune_job *job, char *reason, size_t size)
{
    const struct tune_binding *p = binding_of(plan, job);
    bool run = job->kind == TUNE_JOB_RUN, absent = run && !strcmp(job->provenance.weights, WEIGHTS_ABSENT);
    bool away = job->kind == TUNE_JOB_UNMEASURABLE && gpus_of(p, job->inputs) == 1; /* a GPU that is not here */
    char why[512] = "";
    int unfit = (run || away) && job->repeat == 0 ? memory_lacks(plan, job, why, sizeof why) : 0;
    TRY(unfit);
    t->away += absent;
    t->unfit += unfit;
    *reason = 0;
    if (job->kind == TUNE_JOB_REFUSED)
        tune_append(reason, size, "  %s", job->why);
    if (unfit)
        tune_append(reason, size, "  will not fit: %s", why);
    if (job->kind == TUNE_JOB_UNMEASURABLE)
        tune_append(reason, size, "  cannot run here: %s", job->why);
    if (absent)
        tune_append(reason, size, "  its model is not on this machine");
    return 0;
}

/* Find the expected time of a job: of its own rows, by a model, or else that of similar rows. */
static int find_seconds(const struct plan *plan, struct tally *t, const struct tune_job *job, double *seconds)
{
    double modelled = NAN;
    bool own = tune_result_cache_has(plan->cache, job->binding, job->inputs);
    *seconds = tune_result_cache_seconds(plan->cache, job->binding, job->inputs);
    if (own || job->kind != TUNE_JOB_RUN)
        return 0;
    TRY(expected_seconds(t->expected, job, &modelled));
    t->modelled += !isnan(modelled);
    *seconds = isnan(modelled) ? *seconds : modelled;
    return 0;
}

static int print_job(const struct plan *plan, struct tally *t, const struct tune_job *job)
{
    const struct tune_binding *p = binding_of(plan, job);
    double seconds;
    bool run = job->kind == TUNE_JOB_RUN;
    char *entity = NULL, estimate[32] = "", reason[1200];
    TRY(find_seconds(plan, t, job, &seconds));
    count_job(t, job, seconds, weight_of(plan, job));
    TRY(find_reason(plan, t, job, reason, sizeof reason));
    struct verdict *v = find_verdict(t, job, reason);
    TRY(v ? 0 : -1);
    if (v->jobs++ >= most_shown(plan)) {
        v->seconds += run && !isnan(seconds) ? seconds : 0;
        return 0;
    }
    TRY(tune_entity_to_string(plan->space->names, job->entity, plan->space->count, &entity, &(size_t){0}));
    if (run && !isnan(seconds))
        snprintf(estimate, sizeof estimate, "%.0f s", seconds);
    printf("%-7s %8s  ", kinds[job->kind], estimate);
    print_text("", entity);
    print_text("", reason);
    free(entity);
    TRY(run || job->kind == TUNE_JOB_UNMEASURABLE ? expected_print(t->expected, job) : 0);
    print_text("  ", p->full_identifier);
    puts("");
    return ferror(stdout) ? tune_error_set("cannot write to standard output") : 0;
}

static int print_jobs(struct queue *q, struct tally *t)
{
    const struct plan *plan = q->plan;
    struct tune_job job;
    int more;
    while ((more = tune_jobs_next(q->jobs, &job)) == 1 && !is_stopped(plan)) {
        int code = queue_add_point(q, &job) < 0 || unused_count(plan, q->progress, &job) < 0 ? -1 : print_job(plan, t, &job);
        code = code < 0 ? code : model_dry_job(plan, &q->model, &job);
        tune_job_free(&job);
        TRY(code);
    }
    return more;
}

/* Print the estimated time. later: weight of rungs that are not listed. */
static void print_time(const struct tally *t, double later, int at_a_time)
{
    char text[32];
    double rest = later + t->unknown_weight;
    if (t->estimated_weight > 0 && (t->seconds > 0 || rest > 0))
        printf("# estimated time      %s with %d at a time%s%s\n",
               clock_text((t->seconds + rest * t->estimated_seconds / t->estimated_weight) / at_a_time, text), at_a_time,
               t->modelled ? " (by a model of the results for entities that were never measured)" : "",
               t->unknown ? " (for entities that were never measured, with the mean of the "
                            "others)" : "");
    else if (t->runs > 0)
        printf("# estimated time      unknown: the store has no row of these experiments\n");
}

/* Print the jobs of all finished rungs of halving, and of the next one. Returns their number, or
 * -1. */
static int64_t print_rungs(struct queue *q, struct tally *t)
{
    int64_t planned = tune_jobs_count(q->jobs);
    int more;
    do {
        TRY(print_jobs(q, t));
        TRY(more = t->todo == 0 ? queue_next_rung(q) : 0);
        planned += more ? tune_jobs_count(q->jobs) : 0;
    } while (more);
    print_rest(q->plan, t);
    return planned;
}

int dry_run(struct queue *q, const struct slots *slots)
{
    const struct plan *plan = q->plan;
    struct tally t = {.expected = expected_new(plan)};
    int64_t planned = t.expected ? print_rungs(q, &t) : -1;
    if (planned >= 0 && t.runs > 0)
        expected_print_models(t.expected);
    expected_free(t.expected);
    for (int i = 0; i < t.verdict_count; i++)
        free(t.verdicts[i].reason);
    free(t.verdicts);
    TRY(planned);
    printf("# %lld of %lld would be measured, %lld are known, %lld cannot be measured\n", (long long)t.runs,
           (long long)(planned && !q->enough.over ? planned : t.runs + t.known + t.refused), (long long)t.known, (long long)t.refused);
    if (q->model.search && t.runs > 1)
        puts("# model               each result changes which entities come next, so the later ones of this list are a guess");
    if (t.unfit > 0)
        printf("# memory              %lld of these will not fit, by the plan of the program\n",
               (long long)t.unfit);
    if (t.away > 0)
        printf("# models              %lld of these need a model that is not on this machine\n", (long long)t.away);
    for (char *rest = NULL, *line = strtok_r(plan->provenance->absent, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        progress_log(q->progress, "%s", line);
    TRY(unused_print(plan, q->progress, t.runs));
    print_time(&t, t.todo > 0 ? halving_print_rest(&q->rungs, plan->record.options.repeat) : 0, slots_at_a_time(slots));
    return 0;
}
