/* brake.c - stop an operation whose measurements all fail in the same way. */
#include "core/print.h"
#include "sweep.h"

void sweep_brake(const struct tune_result *result)
{
    static char how_failed[TUNE_HOW_SIZE]; /* how the last of them failed */
    if (result->status == TUNE_VALID)
        sweep.same_failures = 0;
    if (result->status != TUNE_FAILED)
        return;
    sweep.same_failures = strcmp(result->how, how_failed) ? 1 : sweep.same_failures + 1;
    memcpy(how_failed, result->how, sizeof how_failed);
    if (sweep.same_failures != my.max_failures || sweep.braked)
        return;
    sweep.braked = true;
    sweep_clear_status();
    printf("# %d failed in a row   ", my.max_failures);
    sweep_print("", how_failed);
    puts("\n# no more are started; remove the cause, and go on with --resume (--max-failures 0: no such limit)");
    fflush(stdout);
}
