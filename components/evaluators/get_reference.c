/* get_reference.c - the reference that the flags ask for, with the numbers that a run will need. */
#include <inttypes.h>
#include <stdio.h>

#include "adapters/adapter.h"
#include "comm/comm.h"
#include "core/clock.h"
#include "core/print.h"
#include "core/try.h"
#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "evaluators/evaluator.h"
#include "evaluators/reference.h"
#include "files/file.h"
#include "flags/find.h"
#include "flags/flags.h"
#include "loggers/logger.h"
#include "losses/preference.h"
#include "models/lora.h"
#include "models/model.h"

enum { SAY_S = 10, SAVE_S = 60 }; /* seconds between two lines, between two saves */

/* The progress of a pass over the rows. */
struct pass {
    struct tune_model *m;
    const char *adapter; /* folder to read before anything is computed; NULL: none, or it was read */
    struct tune_reference *reference;
    struct tune_logger *log;
    struct tune_loader *run; /* the run's own, for its time limit */
    struct tune_comm *comm;  /* NULL: one rank */
    bool over;               /* the time limit came before the end */
    int64_t rows, computed;  /* rows seen; computed now */
    int64_t planned;        /* training rows */
    double began_s, said_s, saved_s;
};

/* All ranks end this at the same micro-batch. *lacks: where they gather the model, so that all compute if one does, of all ranks. */
static int agree_over(struct pass *p, int *lacks)
{
    double sums[2] = {p->over, *lacks};
    TRY(p->comm ? tune_comm_sum(p->comm, "whether the time is over", sums, 2) : 0);
    p->over = sums[0] > 0;
    *lacks = tune_model_gathers(p->m) ? (int)sums[1] : *lacks;
    return 0;
}

static int look(void *context, const struct tune_batch *batch)
{
    struct pass *p = context;
    int lacks = p->over ? 0 : tune_reference_lacks(p->reference, batch);
    TRY(lacks);
    p->over = p->over || (lacks > 0 && p->computed > 0 && tune_loader_time_is_up(p->run));
    TRY(agree_over(p, &lacks));
    if (p->over)
        return 0;
    if (lacks > 0 && p->adapter) {
        TRY(tune_adapter_read(p->m, p->adapter));
        p->adapter = NULL;
    }
    int more = tune_reference_compute(p->reference, batch);
    TRY(more);
    p->rows += batch->row_count;
    p->computed += more;
    double now = tune_clock_s(), done = (double)p->rows / (double)p->planned;
    if (p->computed > 0 && now - p->said_s > SAY_S && done < 1) {
        p->said_s = now;
        TRY(tune_logger_say(p->log, "# reference    %" PRId64 " of %" PRId64 " rows, %.0f s left", p->rows, p->planned,
                            (now - p->began_s) * (1 / done - 1)));
    }
    if (now - p->saved_s < SAVE_S)
        return 0;
    p->saved_s = now;
    return tune_reference_save(p->reference);
}

/* The training rows of the first epoch, as far as the run plans to read them. With --mix each epoch has other rows, and with
 * --loss kto other mismatched answers: then those of all epochs. */
static int training_rows(struct pass *p, const struct tune_flags *flags)
{
    struct tune_loader_options options = tune_get_loader_options(flags);
    struct tune_progress at = {0};
    struct tune_batch batch;
    int left = 0, status = 0;
    options.stop_at_step = 0;
    options.stop_after_seconds = -1;
    options.stable = NULL;
    struct tune_loader *load = tune_loader_new(tune_loader_dataset(p->run), &options);
    if (!load)
        return -1;
    bool every = options.mix || tune_preference_needs_kl(&flags->preference);
    int64_t rows = every ? INT64_MAX : tune_loader_rows(load), step = options.batch_size * tune_loader_micro_batches(&options);
    p->planned = options.max_steps >= 0 && options.max_steps < rows / step ? options.max_steps * step : tune_loader_planned_rows(load);
    p->planned = p->planned < rows ? p->planned : rows;
    while (status == 0 && !p->over && at.rows < rows && (left = tune_loader_more(load, &at)) > 0) {
        for (; status == 0 && left > 0; left--)
            status = tune_loader_next(load, &batch) < 0 ? -1 : look(p, &batch);
        tune_progress_step(&at, load);
    }
    tune_loader_free(load);
    return status < 0 || left < 0 ? -1 : 0;
}

/* Describe the weights that the reference is computed by: their contents and how they are stored. Then what else its numbers hang on. */
static int describe(const struct tune_flags *flags, struct tune_model *m, char *text, size_t size)
{
    char folder[TUNE_PATH_MAX];
    struct tune_model_identity model;
    enum tune_dtype storage;
    TRY(tune_model_find(flags->model, folder));
    TRY(tune_model_identity(folder, &model));
    TRY(tune_model_hash_settings(folder, &model.fingerprint));
    TRY(tune_get_frozen_storage(flags, folder, &storage));
    snprintf(text, size, "weights %016" PRIx64 " (%s", model.fingerprint, tune_dtype_name(tune_model_dtype(m)));
    if (tune_model_lora(m))
        tune_append(text, size, ", base %s", tune_dtype_name(storage));
    if (flags->adapter) {
        struct tune_model_identity adapter;
        TRY(tune_model_identity(flags->adapter, &adapter));
        TRY(tune_model_hash_settings(flags->adapter, &adapter.fingerprint));
        tune_append(text, size, ", adapter %016" PRIx64, adapter.fingerprint);
    }
    if (flags->add_tokens)
        tune_append(text, size, ", tokens %.100s", flags->add_tokens);
    /* A resumed run stands between two micro-batches: with others, it would want other mismatched answers. */
    if (tune_preference_needs_kl(&flags->preference))
        tune_append(text, size, ", micro-batches of %d", flags->loader.batch_size);
    tune_append(text, size, ")");
    return 0;
}

/* Compute what the file lacks, by the weights of --model, or by --adapter on them. */
static int fill(struct tune_reference *r, const struct tune_flags *flags, struct tune_model *m, struct tune_loader *run,
                struct tune_evaluator *eval, struct tune_logger *log)
{
    char path[TUNE_PATH_MAX], made[256];
    double now = tune_clock_s();
    struct pass p = {.m = m, .adapter = flags->adapter, .reference = r, .log = log, .run = run, .comm = flags->comm, .began_s = now, .said_s = now, .saved_s = now};
    if (flags->reference)
        TRY(tune_path(path, "%s", flags->reference));
    else
        TRY(tune_path(path, "%s/reference.safetensors", tune_logger_folder(log)));
    /* A resumed run goes on when its adapter's folder is gone: it reads the numbers of its own file. */
    bool gone = flags->resume && flags->adapter && !flags->reference && tune_file_exists(path) && !tune_file_is_folder(flags->adapter);
    if (!gone)
        TRY(describe(flags, m, made, sizeof made));
    int old = tune_reference_open(r, path, gone ? NULL : made);
    TRY(old);
    if (old)
        TRY(tune_logger_say(log, "# reference    %s is of an older version without a checksum; it is computed again", path));
    tune_loader_begin(run);
    TRY(training_rows(&p, flags));
    TRY(p.over ? 0 : tune_evaluator_each(eval, look, &p));
    TRY(tune_reference_share(r));
    TRY(tune_reference_save(r));
    if (p.over)
        return tune_logger_say(log, "# reference    `stop_after_seconds` is over: %" PRId64 " rows are computed, kept in %s. Another run with "
                               "`reference` %s goes on there", p.rows, path, path);
    if (p.computed == 0)
        return 0;
    return tune_logger_say(log, "# reference    %" PRId64 " answers in %.1f s, kept in %s", p.computed,
                           tune_clock_s() - p.began_s, path);
}

struct tune_reference *tune_get_reference(const struct tune_flags *flags, struct tune_model *m, struct tune_loss *loss,
                                          struct tune_loader *load, struct tune_evaluator *eval, struct tune_logger *log)
{
    bool fresh = tune_model_lora(m) && !flags->adapter;
    enum tune_reference_kind kind = !tune_preference_needs_reference(&flags->preference) ? TUNE_REFERENCE_NONE
                                    : fresh ? TUNE_REFERENCE_BASE : TUNE_REFERENCE_FILE;
    struct tune_reference *r = tune_reference_new(m, loss, kind);
    if (r)
        tune_reference_ranks(r, flags->comm);
    if (r && tune_preference_needs_kl(&flags->preference))
        tune_reference_mismatch(r, tune_get_loader_options(flags).pad_to_multiple_of);
    if (!r || kind != TUNE_REFERENCE_FILE || fill(r, flags, m, load, eval, log) == 0)
        return r;
    tune_reference_free(r);
    return NULL;
}
