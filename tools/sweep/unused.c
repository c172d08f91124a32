/* unused.c - print which stored results are not used here, why, and which option would use them. */
#include "sweep.h"
#include "sweeps/discovery/other_inputs.h"

int unused_count(const struct plan *plan, struct progress *progress, const struct tune_job *job)
{
    char things[64], words[64];
    const struct tune_jobs_options *o = &plan->record.options;
    const struct tune_cache_query p = {job->binding, job->repeat, job->inputs, &job->provenance, job->hash};
    if (job->kind != TUNE_JOB_RUN || !o->memoize)
        return 0;
    int bits = tune_result_cache_differs(plan->cache, &p, o->accept);
    TRY(bits);
    if (bits && progress->unused[bits]++ == 0 && !plan->flags->dry_run)
        progress_log(progress, "measured again      a stored result differs only in %s; --accept "
                               "%s would use it",
                     tune_accept_things(bits, things), tune_accept_words(bits | o->accept, words));
    return 0;
}

/* Print "2 results of these entities: --set steps=10 would take them". For several values, suggest
 * the most frequent one. */
static void print_other(void *context, const struct tune_other *o)
{
    (void)context;
    printf("# other inputs        %lld result%s of these entities", (long long)o->rows, o->rows == 1 ? "" : "s");
    if (o->values > 1)
        printf(" with %d %sother values of %s", o->values, o->values == TUNE_OTHER_VALUES ? "or more " : "", o->names);
    if (!o->settable) {
        print_text(" with ", o->inputs);
        puts(", which --set cannot give: they are not used here");
        return;
    }
    fputs(": --set ", stdout);
    tune_print_word(stdout, o->inputs);
    if (o->most == o->rows)
        puts(o->rows == 1 ? " would use it" : " would use them");
    else
        printf(" would use %lld of them\n", (long long)o->most);
}

int unused_print(const struct plan *plan, const struct progress *progress, int64_t measured)
{
    char things[64], words[64];
    for (int bits = 1; bits < TUNE_ACCEPT_DATA * 2; bits++)
        if (progress->unused[bits] > 0)
            printf("# not known           %lld, although stored results differ only in %s: "
                   "--accept %s uses them\n",
                   (long long)progress->unused[bits], tune_accept_things(bits, things),
                   tune_accept_words(bits | plan->record.options.accept, words));
    if (measured == 0 || !plan->store || plan->record.budget)
        return 0;
    return tune_other_inputs(plan->store, plan->space, plan->bindings, print_other, NULL);
}
