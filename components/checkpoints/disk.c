/* disk.c - estimate the disk space of checkpoints, from the parameter table and the plan; wait for
 * it. */
#include "checkpoints/disk.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/print.h"
#include "core/try.h"
#include "files/file.h"
#include "loggers/logger.h"
#include "tokenizers/auxiliary_files.h"
#include "models/lora.h"

/* bytes: a tensor's entry in a header; the small files of a checkpoint */
enum { ENTRY = 128, FILES = 4096 };
#define MANY ((int64_t)1 << 40) /* checkpoints; no disk holds more */

/* How often something is due that comes after every n steps. */
static int64_t times(const struct tune_disk_plan *p, double n)
{
    const double slack = 1e-9; /* a share of the steps, such as 0.1, is not exact */
    double count = n > 0 ? floor((double)p->steps / n + slack) - floor((double)p->from / n + slack) : 0;
    return count < (double)MANY ? (int64_t)count : MANY;
}

/* True if the last step is one of them. */
static bool ends_with(const struct tune_disk_plan *p, double n)
{
    double count = n > 0 ? (double)p->steps / n : 0.5;
    return fabs(count - nearbyint(count)) < 1e-9 * count;
}

int64_t tune_disk_plan_count(const struct tune_disk_plan *p)
{
    int64_t evaluations = times(p, p->eval_every), every = times(p, p->save_every);
    bool last = p->at_end && p->steps > p->from && !ends_with(p, p->save_every);
    /* most at one time: keep_last, one that is being written, and the best */
    if (p->keep_last > 0) {
        int64_t saved = every + last + evaluations, most = (int64_t)p->keep_last + 1 + (evaluations > 0);
        return saved < most ? saved : most;
    }
    int64_t best = last ? 1 : 2; /* the best so far, and a new best before that is removed */
    return every + last + (evaluations < best ? evaluations : best);
}

int64_t tune_disk_checkpoint_bytes(struct tune_model *m, struct tune_optimizer *opt, enum tune_dtype save_dtype, bool wide,
                                   const char *source)
{
    const struct tune_parameters *p = tune_model_parameters(m);
    int64_t bytes = FILES + tune_auxiliary_bytes(source);
    bool adapters = tune_model_lora(m) != NULL;
    for (int i = 0; i < p->count; i++) {
        const struct tune_parameter *at = &p->at[i];
        if (adapters && !at->trainable)
            continue;
        enum tune_dtype as = save_dtype != TUNE_AS_READ ? save_dtype : adapters ? TUNE_F32 : at->read_dtype;
        bytes += at->count * tune_dtype_bits(as) / 8 + ENTRY;
        if (wide)
            bytes += at->count * 4 + ENTRY;
        for (int k = TUNE_MOMENT_1; k < TUNE_TENSOR_KINDS; k++)
            if (tune_model_has(m, at, k) && (opt || k >= TUNE_EXTRA))
                bytes += at->count * 4 + ENTRY;
    }
    return bytes;
}

static const char *size_text(double bytes, char text[32])
{
    static const char *const units[] = {"kB", "MB", "GB", "TB"};
    double value = bytes / 1000;
    int unit = 0;
    for (; value >= 1000 && unit < 3; unit++)
        value /= 1000;
    snprintf(text, 32, "%.1f %s", value, units[unit]);
    return text;
}

int tune_disk_plan_tell(const struct tune_disk_plan *p, const char *folder, struct tune_logger *log)
{
    char text[256], one[32], all[32], left[32];
    int64_t count = tune_disk_plan_count(p);
    size_text((double)p->bytes, one);
    size_text((double)count * (double)p->bytes, all);
    size_text((double)p->free, left);
    if (p->bytes > p->free)
        return tune_error_cannot("not enough disk: a checkpoint takes about %s, and where %s lies %s are free; free "
                                 "some, %s",
                                 one, folder, left,
                                 p->from > 0 ? "or copy that folder to a larger disk and resume the copy"
                                             : "give an `output` elsewhere, or `save_dtype` bfloat16");
    snprintf(text, sizeof text, "at most %" PRId64 " checkpoint%s of %s, %s in all", count, count == 1 ? "" : "s", one, all);
    if (p->free < INT64_MAX)
        tune_append(text, sizeof text, "; %s are free", left);
    TRY(tune_logger_note(log, "disk", text));
    if (count <= p->free / p->bytes)
        return 0;
    snprintf(text, sizeof text, "the disk has %s, all checkpoints take up to %s: it may be full before the run ends%s", left, all,
             p->save_every > 0 ? "; `keep_last` N or a larger `save_every` needs less" : "");
    return tune_logger_note(log, "warning: disk", text);
}

bool tune_disk_is_full(void)
{
    return strstr(tune_error_message(), strerror(ENOSPC)) || strstr(tune_error_message(), strerror(EDQUOT));
}

/* Say why nothing goes on. */
static int tell_wait(const struct tune_disk_wait *w)
{
    char text[256], need[32], left[32];
    if (!w->log)
        return 0;
    snprintf(text, sizeof text, "it is full: a checkpoint takes about %s, and %s are free; trying again for %.0f s (`wait_for_disk`). "
             "Free some; a signal ends the run", size_text((double)w->bytes, need),
             size_text((double)tune_file_free_space(w->folder), left), w->seconds);
    return tune_logger_note(w->log, "warning: disk", text);
}

int tune_disk_wait(struct tune_disk_wait *w)
{
    const double look_s = .5, most_s = 30; /* between two looks; until a try that nothing speaks for */
    struct tune_error why;
    int before = w->stop_signal ? *w->stop_signal : 0;
    double now = tune_clock_s(), begin = now;
    if (w->seconds <= 0)
        return 0;
    tune_error_save(&why);
    if (w->began_s <= 0) {
        w->began_s = now;
        TRY(tell_wait(w));
    }
    for (; now < w->began_s + w->seconds && now < begin + most_s; now = tune_clock_s()) {
        if (w->stop_signal && *w->stop_signal != before)
            break;
        nanosleep(&(struct timespec){.tv_nsec = (long)(look_s * 1e9)}, NULL);
        if (tune_file_free_space(w->folder) >= w->bytes)
            return 1;
    }
    tune_error_restore(&why);
    return now < w->began_s + w->seconds && !(w->stop_signal && *w->stop_signal != before);
}
