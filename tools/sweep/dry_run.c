/* dry_run.c - what would be measured, what is known, and how long it would take. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/print.h"
#include "sweep.h"

/* Numbers of jobs by what would be done, and the estimate. */
struct tally {
    int64_t runs, known, refused, away, todo, unknown, unfit;
    double seconds, unknown_weight;       /* of the runs: with an estimate; without one */
    double known_seconds, known_weight;   /* of all jobs with an estimate */
};

static int tell_job(struct tally *t, const struct tune_job *job)
{
    static const char *const what[] = {"run", "known", "invalid", "done", "known", "unknown"};
    bool run = job->kind == TUNE_JOB_RUN, absent = run && !strcmp(job->origin.weights, SWEEP_ABSENT);
    double seconds = tune_known_seconds(sweep.known, job->protocol, job->inputs), weight = sweep_weight(job);
    char *entity = NULL, estimate[32] = "", why[512] = "";
    int unfit = run && job->repeat == 0 ? sweep_plan(job, why, sizeof why) : 0;
    TRY(unfit);
    TRY(tune_entity_spell(sweep.space->names, job->entity, sweep.space->count, &entity, &(size_t){0}));
    t->runs += run;
    t->todo += job->kind != TUNE_JOB_ANSWERED;
    t->known += job->kind == TUNE_JOB_REPLAY || job->kind == TUNE_JOB_ANSWERED;
    t->refused += job->kind == TUNE_JOB_REFUSED || job->kind == TUNE_JOB_HOPELESS;
    t->away += absent;
    t->unfit += unfit;
    if (isnan(seconds) && run) {
        t->unknown++;
        t->unknown_weight += weight;
    } else if (!isnan(seconds)) {
        t->seconds += run ? seconds : 0;
        t->known_seconds += seconds;
        t->known_weight += weight;
    }
    if (run && !isnan(seconds))
        snprintf(estimate, sizeof estimate, "%.0f s", seconds);
    printf("%-7s %8s  ", what[job->kind], estimate);
    tune_print_line_of(stdout, entity);
    sweep_print("  ", sweep.protocols[job->protocol].full_identifier);
    if (job->kind == TUNE_JOB_REFUSED)
        sweep_print("  ", job->why);
    if (unfit)
        sweep_print("  will not fit: ", why);
    if (run && sweep_gpus_of(&sweep.protocols[job->protocol], job->inputs) > sweep.gpu_count)
        printf("  it needs more GPUs than are here");
    puts(absent ? "  its model is not on this machine" : "");
    free(entity);
    return ferror(stdout) ? tune_error_set("cannot write to standard output") : 0;
}

static int tell_jobs(struct tally *t)
{
    struct tune_job job;
    int more;
    while ((more = tune_jobs_next(sweep.jobs, &job)) == 1 && !*my.tune.stop_signal) {
        int code = sweep_note_point(&job) < 0 || sweep_note_unused(&job) < 0 ? -1 : tell_job(t, &job);
        tune_job_free(&job);
        TRY(code);
    }
    return more;
}

/* later: the weight of rungs that are not listed. */
static void tell_time(const struct tally *t, double later)
{
    char text[32];
    double rest = later + t->unknown_weight;
    if (t->known_weight > 0 && (t->seconds > 0 || rest > 0))
        printf("# estimated time      %s with %d at a time%s\n",
               sweep_clock_text((t->seconds + rest * t->known_seconds / t->known_weight) / sweep_at_a_time(), text), sweep_at_a_time(),
               t->unknown ? " (some of these entities were never measured: the mean of the others counts for them)" : "");
    else if (t->runs > 0)
        printf("# estimated time      unknown: the store has no row of these experiments\n");
}

int sweep_dry_run(void)
{
    struct tally t = {0};
    int64_t planned = tune_jobs_count(sweep.jobs);
    int more;
    do { /* rungs of halving that are done, and the next one */
        TRY(tell_jobs(&t));
        TRY(more = t.todo == 0 ? sweep_next_rung() : 0);
        planned += more ? tune_jobs_count(sweep.jobs) : 0;
    } while (more);
    printf("# %lld of %lld would be measured, %lld are known, %lld cannot be measured\n", (long long)t.runs,
           (long long)(planned ? planned : t.runs + t.known + t.refused), (long long)t.known, (long long)t.refused);
    if (t.unfit > 0)
        printf("# memory              %lld of these will not fit, as the program plans it\n", (long long)t.unfit);
    if (t.away > 0)
        printf("# models              %lld of these need a model that is not on this machine\n", (long long)t.away);
    for (char *rest = NULL, *line = strtok_r(sweep.absent, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        sweep_print("# ", line);
        putchar('\n');
    }
    TRY(sweep_say_unused(t.runs));
    double later = t.todo > 0 ? sweep_say_rungs() : 0;
    tell_time(&t, later);
    return 0;
}
