/* unused.c - say which stored results do not count here, why, and what makes them count. */
#include "sweep.h"
#include "sweeps/discovery/other_inputs.h"

/* Numbers of measurements by what keeps a result from counting. */
static int64_t unused[TUNE_ACCEPT_DATA * 2];

int sweep_note_unused(const struct tune_job *job)
{
    char things[64], words[64];
    const struct tune_known_point p = {job->protocol, job->repeat, job->inputs, &job->origin, job->hash};
    if (job->kind != TUNE_JOB_RUN || !sweep.record.options.memoize)
        return 0;
    int bits = tune_known_differs(sweep.known, &p, sweep.record.options.accept);
    TRY(bits);
    if (bits && unused[bits]++ == 0 && !my.dry_run) {
        sweep_clear_status();
        printf("# measured again      a stored result matches but for %s; --accept %s would take it\n",
               tune_accept_things(bits, things), tune_accept_words(bits | sweep.record.options.accept, words));
    }
    return 0;
}

static void tell_other(const struct tune_experiment *e, int64_t rows, const char *inputs)
{
    (void)e;
    printf("# other inputs        %lld result%s of these entities: ", (long long)rows, rows == 1 ? "" : "s");
    sweep_print("--set ", inputs);
    puts(rows == 1 ? " would take it" : " would take them");
}

int sweep_say_unused(int64_t measured)
{
    char things[64], words[64];
    for (int bits = 1; bits < TUNE_ACCEPT_DATA * 2; bits++)
        if (unused[bits] > 0)
            printf("# not known           %lld, though results match but for %s: --accept %s takes them\n",
                   (long long)unused[bits], tune_accept_things(bits, things),
                   tune_accept_words(bits | sweep.record.options.accept, words));
    if (measured == 0 || !sweep.store || sweep.record.budget)
        return 0;
    return tune_other_inputs(sweep.store, sweep.space, sweep.protocols, tell_other);
}
