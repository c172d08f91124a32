/* unused.c - say which stored results do not count here, why, and what makes them count. */
#include "core/print.h"
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

/* "2 results of these entities: --set steps=10 would take them", or of several values which most
 * have. */
static void tell_other(const struct tune_other *o)
{
    printf("# other inputs        %lld result%s of these entities", (long long)o->rows, o->rows == 1 ? "" : "s");
    if (o->values > 1)
        printf(" with %d %sother values of %s", o->values, o->values == TUNE_OTHER_VALUES ? "or more " : "", o->names);
    if (!o->settable) {
        sweep_print(" with ", o->inputs);
        puts(", which --set cannot give: they do not count here");
        return;
    }
    fputs(": --set ", stdout);
    tune_print_word(stdout, o->inputs);
    if (o->most == o->rows)
        puts(o->rows == 1 ? " would take it" : " would take them");
    else
        printf(" would take %lld of them\n", (long long)o->most);
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
