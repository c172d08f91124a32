/* step.c - the finished steps from the device's records to the logger's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/try.h"
#include "datasets/dataset.h"
#include "devices/record.h"
#include "loggers/state.h"
#include "profilers/profiler.h"

int tune_logger_step(struct tune_logger *log, const struct tune_progress *at, struct tune_record *record)
{
    log->record = record;
    tune_logger_stamp_metrics(log, at->step);
    TRY(tune_logger_profile(log, at));
    TRY(tune_every(at->step, log->options.log_every) ? tune_logger_catch_up(log, at) : 0);
    tune_logger_settle(log);
    return 0;
}

void tune_logger_settle(struct tune_logger *log)
{
    if (log->profiler)
        tune_profiler_settle(log->profiler);
}

/* Say what the device met while it computed: the first time, and at the end with the last count. */
static int note_device(struct tune_logger *log, bool end)
{
    if (!log->device || strcmp(log->device->met, log->device_met) == 0 || (*log->device_met && !end))
        return 0;
    snprintf(log->device_met, sizeof log->device_met, "%s", log->device->met);
    return tune_logger_note(log, "warning: device", log->device_met);
}

int tune_logger_catch_up(struct tune_logger *log, const struct tune_progress *at)
{
    const struct tune_done_step *steps;
    if (at->finished || at->stopped)
        TRY(tune_logger_profile(log, NULL));
    int n = log->record ? tune_record_read(log->record, &steps) : 0;
    TRY(n);
    TRY(note_device(log, at->finished || at->stopped));
    if (n > 0 && at->step - n < log->written_step) {
        tune_error_set("%d steps are finished behind step %" PRId64 ", and tune_progress_step counted %" PRId64 " of them: call it "
                       "right behind tune_optimizer_step", n, log->written_step, at->step - log->written_step);
        return -1;
    }
    for (int i = 0; i < n; i++) {
        const struct tune_done_step *s = &steps[i];
        struct tune_step_record r = {
            .step = at->step - n + 1 + i,
            .rows = s->rows,
            .tokens = s->tokens,
            .padded_tokens = s->padded_tokens,
            .labels = s->scalars.labels,
            .epoch = s->epoch,
            .loss_sum = s->scalars.loss_sum,
            .divisor = s->scalars.divisor,
            .grad_norm = s->scalars.grad_norm,
            .lr = s->scalars.lr,
            .not_finite = s->scalars.not_finite != 0,
            .begin = s->begin,
            .end = s->end,
        };
        TRY(tune_logger_record(log, at, &r));
    }
    return 0;
}

int tune_logger_counts(struct tune_logger *log)
{
    char text[256];
    if (!log->data)
        return 0;
    TRY(tune_dataset_unchanged(log->data));
    struct tune_dataset_counts c = tune_dataset_counts(log->data);
    int n = snprintf(text, sizeof text, "%" PRId64 " read by this process, %" PRId64 " cut to the length", c.rows, c.truncated);
    const struct {
        int64_t count;
        const char *what;
    } out[] = {{c.unlabelled, "without a token to train on"}, {c.truncated_away, "cut before the first token to train on"},
               {c.bad, "bad"}};
    const char *before = "; left out: ";
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        if (out[i].count > 0) {
            n += snprintf(text + n, sizeof text - (size_t)n, "%s%" PRId64 " %s", before, out[i].count, out[i].what);
            before = ", ";
        }
    return tune_logger_note(log, "rows met", text);
}
