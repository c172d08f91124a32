/* brake.c - stop an operation whose measurements all fail in the same way. */
#include "core/print.h"
#include "sweep.h"

static char how_failed[TUNE_REASON_SIZE]; /* how the last of them failed */

/* Shorten a reason to the kind of end and the last line of output. Leave out the folder of the
 * run, which differs. */
static void shorten(char *text, const char *folder)
{
    size_t length = strlen(folder);
    for (char *at; (at = strstr(text, folder));)
        memmove(at, at + length, strlen(at + length) + 1);
    char *words = strstr(text, ": "), *last = words ? strrchr(words, '|') : NULL;
    if (last)
        memmove(words + 2, last + 1, strlen(last));
}

void sweep_brake(const struct slot *slot, const struct tune_result *result)
{
    char how[TUNE_REASON_SIZE];
    if (result->status == TUNE_VALID)
        sweep.same_failures = 0;
    if (result->status != TUNE_FAILED)
        return;
    memcpy(how, result->reason, sizeof how);
    shorten(how, slot->folder);
    sweep.same_failures = strcmp(how, how_failed) ? 1 : sweep.same_failures + 1;
    memcpy(how_failed, how, sizeof how);
    if (sweep.same_failures != my.max_failures || sweep.braked)
        return;
    sweep.braked = true;
    sweep_clear_status();
    printf("# %d failed in a row   ", my.max_failures);
    sweep_print("", how);
    puts("\n# no more are started; remove the cause, and go on with --resume (--max-failures 0: no such limit)");
    fflush(stdout);
}
