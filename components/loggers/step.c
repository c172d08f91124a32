/* step.c - from what device, model and data know of themselves to what the logger keeps. */
#include <inttypes.h>
#include <stdio.h>

#include "core/file.h"
#include "core/try.h"
#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "devices/sums.h"
#include "flags/find.h"
#include "flags/flags.h"
#include "loggers/logger.h"
#include "models/model.h"

static int note_model(struct tune_logger *log, struct tune_model *model)
{
    char text[256];
    const struct tune_model_config *c = tune_model_config(model);
    const struct tune_parameters *p = tune_model_parameters(model);
    snprintf(text, sizeof text, "%s, %d layers of %d, %d/%d heads of %d, vocabulary %d, %.1fM parameters, %.1fM trained",
             c->family, c->layers, c->hidden, c->heads, c->kv_heads, c->head_dim, c->vocabulary,
             (double)tune_parameters_total(p) / 1e6, (double)tune_parameters_trainable(p) / 1e6);
    double flat = tune_model_config_flops(c, 0);
    tune_logger_flops(log, flat, tune_model_config_flops(c, 1) - flat);
    TRY(tune_logger_note(log, "model", text));
    return tune_logger_property(log, "model_load_time", tune_model_load_seconds(model));
}

int tune_logger_run(struct tune_logger *log, const struct tune_flags *flags, struct tune_model *model,
                    const struct tune_dataset *data, const struct tune_loader *load)
{
    char folder[TUNE_PATH_MAX], text[256];
    struct tune_model_identity identity;
    const struct tune_device *dev = tune_model_device(model);
    const char *field = tune_dataset_text_field(data);
    TRY(tune_model_find(flags->model, folder));
    TRY(tune_model_identity(folder, &identity));
    TRY(tune_logger_note(log, "device", dev->description));
    if (dev->warning[0])
        TRY(tune_logger_note(log, "warning", dev->warning));
    TRY(note_model(log, model));
    TRY(tune_logger_weights(log, folder, &identity));
    TRY(tune_logger_data(log, flags->dataset, tune_dataset_rows(data), tune_dataset_fingerprint(data)));
    snprintf(text, sizeof text, "%s%s%s, %" PRId64 " to train on, %" PRId64 " held out", field ? "field \"" : "paragraphs",
             field ? field : "", field ? "\"" : "", tune_loader_rows(load), tune_dataset_rows(data) - tune_loader_rows(load));
    TRY(tune_logger_note(log, "rows", text));
    snprintf(text, sizeof text, "%" PRId64 " steps of %d x %d rows, at most %d tokens each", tune_loader_planned_steps(load),
             flags->accumulate, flags->batch_size, flags->max_length);
    TRY(tune_logger_note(log, "plan", text));
    snprintf(text, sizeof text, "%.1f MiB", (double)dev->bytes / (1 << 20));
    return tune_logger_note(log, "tensor memory", text);
}

int tune_logger_step(struct tune_logger *log, const struct tune_progress *at, struct tune_sums *sums)
{
    const struct tune_step_sums *steps;
    int n = tune_sums_read(sums, &steps);
    TRY(n);
    int64_t rows = at->rows; /* consumed after the i-th of them: from behind */
    for (int i = 0; i < n; i++)
        rows -= steps[i].rows;
    for (int i = 0; i < n; i++) {
        const struct tune_step_sums *s = &steps[i];
        rows += s->rows;
        struct tune_step_record r = {
            .step = at->step - n + 1 + i,
            .rows = s->rows,
            .tokens = s->tokens,
            .padded_tokens = s->padded_tokens,
            .labels = s->scalars.labels,
            .epoch = at->rows > 0 ? at->epoch * (double)rows / (double)at->rows : 0,
            .loss_sum = s->scalars.loss_sum,
            .grad_norm = s->scalars.grad_norm,
            .lr = s->lr,
            .not_finite = s->scalars.not_finite != 0,
            .begin = s->begin,
            .end = s->end,
        };
        TRY(tune_logger_record(log, at, &r));
    }
    return 0;
}
