/* checkpoint.c - write a folder under a temporary name and rename it; remove old ones; resume from
 * one. */
#include "checkpoints/checkpoint.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/adapter.h"
#include "checkpoints/card.h"
#include "checkpoints/disk.h"
#include "checkpoints/state.h"
#include "runs/checkpoint_names.h"
#include "comm/comm.h"
#include "core/array.h"
#include "core/failure.h"
#include "datasets/dataset.h"
#include "files/file.h"
#include "core/random.h"
#include "core/try.h"
#include "evaluators/evaluator.h"
#include "loggers/logger.h"
#include "tokenizers/auxiliary_files.h"
#include "models/lora.h"
#include "models/weights.h"

/* The objects given to tune_checkpoint_resume, which a rescue saves. */
struct work {
    struct tune_model *model;
    struct tune_optimizer *optimizer;
    struct tune_loader *load;
    const struct tune_progress *at; /* NULL: tune_checkpoint_resume was not called */
};

struct tune_checkpoint {
    struct tune_checkpoint_options options; /* its strings point to those below */
    char run[TUNE_PATH_MAX], source[TUNE_PATH_MAX], resume[TUNE_PATH_MAX], adapter[TUNE_PATH_MAX];
    char *add_tokens;
    struct tune_auxiliary *auxiliary;
    const char *chat_template; /* the data set's, borrowed; NULL: none */
    const char *eos_token;     /* that the template uses and the model's folder does not name */
    int32_t end_id;            /* of the data set's answers; -1: none */
    struct tune_card *card;    /* NULL: none */
    int64_t saved_step; /* -1: none yet */
    bool failed;        /* the last save failed */
    bool told;          /* note_good was called */
    bool weights;       /* the save at hand has written all weights */
    struct work work;
};

static int put_chat(const struct tune_checkpoint *c, struct tune_auxiliary *files)
{
    TRY(tune_auxiliary_chat(files, c->chat_template, c->end_id));
    return tune_auxiliary_eos_token(files, c->eos_token);
}

/* Read the files beside the weights. A config.json that ties two matrices that differ is copied as what it is read as. */
static struct tune_auxiliary *read_auxiliary(const char *source)
{
    struct tune_auxiliary *files = tune_auxiliary_read(source);
    if (!files || !tune_weights_own_head(source) || tune_auxiliary_untie(files) == 0)
        return files;
    tune_auxiliary_free(files);
    return NULL;
}

static int read_source(struct tune_checkpoint *c)
{
    if (c->auxiliary)
        return 0;
    struct tune_auxiliary *files = read_auxiliary(c->source);
    int status = files && c->add_tokens ? tune_auxiliary_add_tokens(files, c->add_tokens) : 0;
    if (files && status == 0)
        status = put_chat(c, files);
    if (files && status == 0)
        c->auxiliary = files;
    else
        tune_auxiliary_free(files);
    return c->auxiliary ? 0 : -1;
}

/* Find problems that would prevent a save before the run starts: an unreadable file, a path that is
 * too long. */
static int make_ready(struct tune_checkpoint *c, const struct tune_checkpoint_options *o)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_path(c->run, "%s", o->run_folder));
    TRY(tune_path(c->source, "%s", o->source));
    TRY(tune_path(c->resume, "%s", o->resume ? o->resume : ""));
    TRY(tune_path(c->adapter, "%s", o->adapter ? o->adapter : ""));
    if (o->add_tokens && !(c->add_tokens = strdup(o->add_tokens)))
        return tune_error_no_memory("checkpoints");
    if (!o->late)
        TRY(read_source(c));
    return tune_path(path, "%s/checkpoint-%" PRId64 ".tmp-%d/state/optimizer.safetensors.tmp-%d", c->run, INT64_MAX, INT32_MAX,
                     INT32_MAX);
}

struct tune_checkpoint *tune_checkpoint_new(const struct tune_checkpoint_options *options)
{
    struct tune_checkpoint *c = tune_zeroed(1, sizeof *c, "checkpoints");
    if (!c)
        return NULL;
    c->options = *options;
    c->saved_step = -1;
    c->end_id = -1;
    if (make_ready(c, options) == 0)
        return c;
    tune_checkpoint_free(c);
    return NULL;
}

void tune_checkpoint_free(struct tune_checkpoint *c)
{
    if (!c)
        return;
    if (c->options.failure)
        c->options.failure->save = NULL;
    tune_auxiliary_free(c->auxiliary);
    tune_card_free(c->card);
    free(c->add_tokens);
    free(c);
}

void tune_checkpoint_set_card(struct tune_checkpoint *c, struct tune_card *card)
{
    c->card = card;
}

/* ---- the model ---- */

/* Read a folder's weights again, and compare each number with the model's. */
static int compare_weights(struct tune_model *m, const char *folder)
{
    const struct tune_parameters *p = tune_model_parameters(m);
    struct tune_weights *w = tune_weights_open(folder);
    int status = w ? 0 : -1;
    for (int i = 0; i < p->base && status == 0; i++) {
        const struct tune_array *t = tune_weights_find(w, p->at[i].name);
        if (!t || tune_array_elements(t) != p->at[i].count) {
            status = tune_error_set("%s, read again, is missing or has another size", p->at[i].name);
        } else {
            status = tune_model_compare(m, &p->at[i], t);
            tune_file_release(t->data, (const char *)t->data + tune_array_bytes(t)); /* or the whole file would stay in memory */
        }
    }
    tune_weights_close(w);
    return status < 0 ? tune_error_prefix("%s: ", folder) : 0;
}

/* Write the model. source: the model folder, which an adapter's config names as its base. The weights are read again and
 * compared. */
static int write_model(struct tune_model *m, const char *folder, const char *source, const struct tune_auxiliary *auxiliary,
                       enum tune_dtype save_dtype)
{
    struct tune_weights_source weights = tune_model_source(m);
    if (tune_model_lora(m)) {
        TRY(tune_auxiliary_write_tokenizer(auxiliary, folder));
        TRY(tune_adapter_write(m, folder, source, save_dtype == TUNE_AS_READ ? TUNE_F32 : save_dtype));
        return tune_adapter_compare(m, folder);
    }
    TRY(tune_auxiliary_write(auxiliary, folder, save_dtype));
    TRY(tune_weights_write(folder, tune_model_parameters(m), save_dtype, 0, &weights));
    return compare_weights(m, folder);
}

int tune_checkpoint_write_model(struct tune_model *m, const char *folder, const char *source, enum tune_dtype save_dtype)
{
    struct tune_auxiliary *auxiliary = read_auxiliary(source);
    int status = auxiliary ? tune_file_make_folder(folder) : -1;
    if (status == 0)
        status = write_model(m, folder, source, auxiliary, save_dtype);
    tune_auxiliary_free(auxiliary);
    return status;
}

/* ---- names ---- */

static int name_of(struct tune_checkpoint *c, int64_t step, char path[TUNE_PATH_MAX])
{
    return tune_path(path, "%s/checkpoint-%" PRId64, c->run, step);
}

/* The step that the link points to; 0: no such link. */
static int64_t linked(struct tune_checkpoint *c, const char *link)
{
    char path[TUNE_PATH_MAX], target[256];
    ssize_t n = tune_path(path, "%s/%s", c->run, link) < 0 ? -1 : readlink(path, target, sizeof target - 1);
    if (n < 0)
        return 0;
    target[n] = 0;
    return tune_checkpoint_named(target);
}

/* Point the link to that step's checkpoint; 0: remove the link. */
static int set_link(struct tune_checkpoint *c, const char *link, int64_t step)
{
    char path[TUNE_PATH_MAX], target[64];
    TRY(tune_path(path, "%s/%s", c->run, link));
    snprintf(target, sizeof target, "checkpoint-%" PRId64, step);
    if (step == linked(c, link))
        return 0;
    return step > 0 ? tune_file_link(path, target) : tune_file_remove_folder(path);
}

static int remove_one(struct tune_checkpoint *c, int64_t step)
{
    char path[TUNE_PATH_MAX];
    TRY(name_of(c, step, path));
    return tune_file_is_folder(path) ? tune_file_discard_folder(path) : 0;
}

/* The newest of these checkpoints from before the loss began to rise; 0: none, or no option asks. */
static int64_t good_of(const struct tune_checkpoint *c, const int64_t *steps, int count)
{
    int64_t good = c->options.diverged && c->options.log ? tune_logger_good_step(c->options.log) : 0, step = 0;
    for (int i = 0; i < count && steps[i] <= good; i++)
        step = steps[i];
    return step;
}

/* Remove all but the newest checkpoints, those with a link, and the one from before a rise. */
static int prune(struct tune_checkpoint *c)
{
    int64_t *steps, best = linked(c, "checkpoint-best"), final = linked(c, "checkpoint-final");
    int count = c->options.keep_last > 0 ? tune_checkpoint_steps(c->run, &steps) : 0, status = 0;
    if (count <= 0)
        return count;
    int64_t good = good_of(c, steps, count);
    for (int i = 0; i + c->options.keep_last < count && status == 0; i++)
        if (steps[i] != best && steps[i] != final && steps[i] != c->saved_step && steps[i] != good)
            status = remove_one(c, steps[i]);
    free(steps);
    return status;
}

/* True if that step's checkpoint was due, and so is not there only because it was the best. */
static bool was_due(const struct tune_checkpoint *c, int64_t step)
{
    char folder[TUNE_PATH_MAX];
    struct tune_progress then = {.step = step};
    double every = c->options.save_every;
    bool finished;
    if (every != TUNE_EACH_EPOCH && !(every > 0 && every < 1))
        return tune_due(&then, every);
    if (tune_path(folder, "%s/checkpoint-%" PRId64, c->run, step) == 0 && tune_state_read_progress(folder, &then, &finished) == 0)
        return tune_due(&then, every);
    tune_error_clear();
    return true; /* what is not known stays */
}

/* Point checkpoint-best to that step's checkpoint, which is complete. Remove the previous best if
 * it was kept only because it was the best. */
static int set_best(struct tune_checkpoint *c, int64_t step)
{
    int64_t before = linked(c, "checkpoint-best");
    TRY(set_link(c, "checkpoint-best", step));
    bool wanted = c->options.keep_last > 0 || before == c->saved_step || before == linked(c, "checkpoint-final");
    return step == 0 || before == 0 || before == step || wanted || was_due(c, before) ? 0 : remove_one(c, before);
}

/* ---- saving ---- */

/* True if a weight is saved with less precision than in training, or not at all, or its average is
 * saved. */
static bool narrower(struct tune_model *m, enum tune_dtype save_dtype)
{
    const struct tune_parameters *p = tune_model_parameters(m);
    if (tune_model_averages_kind(m))
        return true;
    if (tune_model_lora(m))
        return save_dtype != TUNE_AS_READ && save_dtype != TUNE_F32;
    for (int i = 0; i < p->count; i++)
        if ((save_dtype == TUNE_AS_READ ? p->at[i].read_dtype : save_dtype) != TUNE_F32)
            return true;
    return false;
}

/* A folder with an adapter has no config.json. Save it in state/ for comparisons when resuming. */
static int write_base_config(struct tune_checkpoint *c, const char *folder)
{
    char state[TUNE_PATH_MAX];
    TRY(tune_path(state, "%s/state", folder));
    return tune_auxiliary_write_config(c->auxiliary, state);
}

static int write_all(struct tune_checkpoint *c, const char *folder, struct tune_model *m, struct tune_optimizer *opt,
                     const struct tune_progress *at)
{
    TRY(c->card ? tune_card_write(c->card, folder, m, c->options.log, at) : 0);
    TRY(tune_model_exchange(m)); /* the averages are saved, the weights go to state/ */
    int status = write_model(m, folder, c->source, c->auxiliary, c->options.save_dtype);
    TRY(tune_model_exchange(m));
    TRY(status);
    c->weights = true;
    TRY(tune_state_write(folder, m, opt, at, narrower(m, c->options.save_dtype)));
    TRY(tune_model_lora(m) ? write_base_config(c, folder) : 0);
    /* the lines of earlier steps must be on disk before the rename */
    return c->options.log ? tune_logger_sync(c->options.log) : 0;
}

/* The run ends because its loss rose: say which checkpoint is from before. */
static int note_good(struct tune_checkpoint *c)
{
    char text[TUNE_PATH_MAX + 200];
    int64_t *steps = NULL;
    int count = tune_checkpoint_steps(c->run, &steps);
    TRY(count);
    int64_t good = good_of(c, steps, count);
    free(steps);
    if (good > 0)
        snprintf(text, sizeof text, "%s/checkpoint-%" PRId64 " is from before the loss rose; nothing was saved after. To go on from it: "
                 "`resume` with it, `overwrite`, `allow_changed` and a lower `lr`", c->run, good);
    else
        snprintf(text, sizeof text, "there is none from before the loss rose, and nothing was saved after; `save_every` saves on the way");
    return tune_logger_note(c->options.log, "checkpoint", text);
}

/* The save failed behind its weights: keep these as weights-<step>, which is no checkpoint, since it
 * has no state to resume from. The error says so. */
static void keep_weights(struct tune_checkpoint *c, struct tune_folder_writer *w, int64_t step)
{
    struct tune_error why;
    char state[TUNE_PATH_MAX];
    tune_error_save(&why);
    if (tune_path(state, "%s/state", w->temporary) == 0 && tune_file_remove_folder(state) == 0 &&
        tune_path(w->path, "%s/weights-%" PRId64, c->run, step) == 0 && tune_file_discard_folder(w->path) == 0 &&
        tune_file_commit_folder(w) == 0)
        tune_error_set_kind(why.kind, "%s; the weights of step %" PRId64 " are whole and kept in %s, without the state to go on from",
                            why.text, step, w->path);
    else
        tune_error_restore(&why);
}

/* Write the checkpoint of this step. -1 with an error: nothing appeared under its name, or it did
 * and could not be synced. */
static int try_save(struct tune_checkpoint *c, struct tune_model *m, struct tune_optimizer *opt, const struct tune_progress *at,
                    const char *path)
{
    struct tune_folder_writer w;
    c->weights = false;
    if (tune_file_begin_folder(&w, path) == 0 && write_all(c, w.temporary, m, opt, at) == 0 && tune_file_commit_folder(&w) == 0)
        return 0;
    bool held = !c->options.log || tune_logger_held(c->options.log) == 0;
    if (c->weights && held && w.temporary[0])
        keep_weights(c, &w, at->step);
    tune_file_cancel_folder(&w);
    return -1;
}

/* Save. While the disk has no room for the weights, try again for as long as the options say. */
static int save_patiently(struct tune_checkpoint *c, struct tune_model *m, struct tune_optimizer *opt, const struct tune_progress *at,
                          const char *path)
{
    const struct tune_checkpoint_options *o = &c->options;
    struct tune_disk_wait wait = {.folder = c->run, .seconds = o->wait_for_disk, .stop_signal = o->stop_signal, .log = o->log};
    int status = try_save(c, m, opt, at, path), again = 1;
    while (status < 0 && !c->weights && tune_disk_is_full()) {
        wait.bytes = tune_disk_checkpoint_bytes(m, opt, o->save_dtype, narrower(m, o->save_dtype), c->source);
        again = tune_disk_wait(&wait);
        if (again != 1)
            return -1;
        status = try_save(c, m, opt, at, path);
    }
    return status;
}

/* Remove weights-<step> of an earlier try: the checkpoint of that step has the same weights. */
static int remove_kept(struct tune_checkpoint *c, int64_t step)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_path(path, "%s/weights-%" PRId64, c->run, step));
    return tune_file_is_folder(path) ? tune_file_discard_folder(path) : 0;
}

static int save(struct tune_checkpoint *c, struct tune_model *m, struct tune_optimizer *opt, const struct tune_progress *at)
{
    char path[TUNE_PATH_MAX];
    bool ends = at->finished || at->stopped;
    if (c->options.diverged && *c->options.diverged) {
        bool told = c->told || !ends || !c->options.log;
        c->told = !told || c->told;
        return told ? 0 : note_good(c);
    }
    if (at->step == 0 || (ends && c->options.unsaved && at->step != c->saved_step))
        return 0;
    TRY(read_source(c));
    TRY(c->options.log ? tune_logger_held(c->options.log) : 0);
    TRY(name_of(c, at->step, path));
    if (at->step == c->saved_step) {
        TRY(c->options.log ? tune_logger_sync(c->options.log) : 0);
        /* the card first: if a kill comes between, the evaluation is repeated, and so is the card */
        TRY(c->card ? tune_card_renew(c->card, path, m, c->options.log, at) : 0);
        TRY(tune_state_write_progress(path, at));
    } else if (save_patiently(c, m, opt, at, path) < 0) {
        /* the folder was moved meanwhile: report that instead */
        TRY(c->options.log ? tune_logger_held(c->options.log) : 0);
        return -1;
    } else {
        TRY(remove_kept(c, at->step));
    }
    c->saved_step = at->step;
    if (at->best)
        TRY(set_best(c, at->step));
    if (at->finished)
        TRY(set_link(c, "checkpoint-final", at->step));
    return prune(c);
}

int tune_checkpoint_save(struct tune_checkpoint *c, struct tune_model *m, struct tune_optimizer *opt,
                         const struct tune_progress *at)
{
    /* a step's metrics come before its checkpoint */
    int status = c->options.log ? tune_logger_catch_up(c->options.log, at) : 0;
    if (status == 0 && !tune_comm_follows(c->options.comm)) {
        tune_model_alone(m);
        status = save(c, m, opt, at);
        c->failed = status < 0;
    }
    if (c->options.log)
        tune_logger_settle(c->options.log);
    return status == 0 ? tune_model_together(m, c->options.comm, "the checkpoint of rank 0") : status;
}

int tune_checkpoint_step(struct tune_checkpoint *c, struct tune_model *m, struct tune_optimizer *opt,
                         const struct tune_progress *at)
{
    return at->best || tune_due(at, c->options.save_every) ? tune_checkpoint_save(c, m, opt, at) : 0;
}

int tune_checkpoint_finish(struct tune_checkpoint *c, struct tune_model *m, struct tune_optimizer *opt,
                           struct tune_evaluator *eval, struct tune_progress *at)
{
    TRY(tune_checkpoint_save(c, m, opt, at));
    if (!eval)
        return 0;
    TRY(tune_evaluator_run(eval, c->options.log, at));
    return tune_checkpoint_save(c, m, opt, at);
}

int tune_checkpoint_rescue(struct tune_checkpoint *c, char *text, size_t size)
{
    const struct work *r = &c->work;
    struct tune_progress at = {0};
    *text = 0;
    if (r->at)
        at = *r->at;
    if (at.step == 0)
        return 0;
    bool bad_row = tune_loader_bad_row(r->load); /* ask before another error replaces it */
    int status = c->options.log ? tune_logger_catch_up(c->options.log, &at) : 0;
    if (!at.finished) {
        at.stopped = "an error";
        /* the plan without the current step, as a resumed run computes it */
        TRY(tune_loader_seek(r->load, &at));
        at.planned_steps = tune_loader_planned_steps(r->load);
    }
    bool logged = !c->options.log || tune_logger_last_step(c->options.log) == at.step;
    if (c->options.comm)
        tune_comm_alone(c->options.comm, true); /* the others wait for the save */
    /* with shards a save needs the other ranks, which may be anywhere now */
    if (status == 0 && !c->failed && logged && !tune_model_is_sharded(r->model))
        status = save(c, r->model, r->optimizer, &at);
    if (c->saved_step > 0)
        snprintf(text, size, "%s %s/checkpoint-%" PRId64 "; to go on: `resume` %s%s",
                 c->saved_step == at.step ? "saved" : "the newest checkpoint is", c->run, c->saved_step, c->run,
                 bad_row ? " with `skip_bad_rows`, or after mending the row in its place" : "");
    return status;
}

/* ---- resuming ---- */

/* Report that the checkpoint is not complete. The error gives the details. */
static int broken(const struct tune_checkpoint *c)
{
    bool memory = tune_error_kind() == TUNE_ERROR_CANNOT; /* that an older one would need as well */
    return tune_error_prefix("cannot go on from %s%s: ", c->resume,
                             memory ? "" : " (an older checkpoint may do, give it to `resume`)");
}

/* Check that config.json and the tokenizer are unchanged since the checkpoint. */
static int same_source(struct tune_checkpoint *c, const struct tune_model *m)
{
    char what[64], state[TUNE_PATH_MAX];
    const char *differs;
    TRY(tune_path(state, "%s/state", c->resume));
    if (tune_auxiliary_compare(c->auxiliary, c->resume, tune_model_lora(m) ? state : c->resume, &differs) < 0)
        return broken(c);
    if (!differs)
        return 0;
    snprintf(what, sizeof what, "%s of `model`", differs);
    if (c->options.log)
        return tune_logger_changed(c->options.log, what, c->resume, c->source);
    return tune_error_set("%s/%s is not what it was when %s was saved", c->source, differs, c->resume);
}

/* Remove checkpoints of later steps, which would look like this run's. */
static int remove_newer(struct tune_checkpoint *c, int64_t step, bool really)
{
    int64_t *steps;
    int count = tune_checkpoint_steps(c->run, &steps), status = count < 0 ? -1 : 0;
    if (count > 0 && steps[count - 1] > step && !c->options.overwrite)
        status = tune_error_usage("`resume`: %s has a newer checkpoint, checkpoint-%" PRId64 "; going back to step %" PRId64
                                  " removes what came after it: give `overwrite` to do that, or resume a copy of the folder",
                                  c->run, steps[count - 1], step);
    for (int i = 0; i < count && status == 0 && really; i++)
        if (steps[i] > step)
            status = remove_one(c, steps[i]);
    free(steps);
    return status;
}

/* Restore the links as they were when this checkpoint was saved. */
static int set_links(struct tune_checkpoint *c, const struct tune_progress *at, bool finished)
{
    char path[TUNE_PATH_MAX];
    TRY(name_of(c, at->best_step, path));
    TRY(set_best(c, at->best_step > 0 && tune_file_is_folder(path) ? at->best_step : 0));
    return set_link(c, "checkpoint-final", finished ? at->step : 0);
}

/* Check that the folder's name has the step of its files. */
static int named_by_step(const char *checkpoint, const struct tune_progress *then)
{
    const char *slash = strrchr(checkpoint, '/'), *name = slash ? slash + 1 : checkpoint;
    if (tune_checkpoint_named(name) == then->step)
        return 0;
    return tune_error_set("\"step\" in its state/progress.json is %" PRId64 ", which is not what the folder's name says",
                          then->step);
}

/* Check that the remaining rows still give the planned number of steps. */
static int same_plan(struct tune_checkpoint *c, const struct tune_loader *load, const struct tune_progress *then)
{
    char was[32], now[32];
    snprintf(was, sizeof was, "%" PRId64, then->planned_steps);
    snprintf(now, sizeof now, "%" PRId64, tune_loader_planned_steps(load));
    return c->options.log && strcmp(was, now) ? tune_logger_changed(c->options.log, "the number of steps planned", was, now) : 0;
}

/* Check that no changed row fell to the other side of the split, which goes by the rows' content. */
static int same_part(struct tune_checkpoint *c, const struct tune_loader *load, const struct tune_progress *then)
{
    char was[32], now[32];
    snprintf(was, sizeof was, "%.0f", then->epoch > 0 ? (double)then->rows / then->epoch : 0);
    snprintf(now, sizeof now, "%" PRId64, tune_loader_rows(load));
    if (!strcmp(was, now) || then->epoch <= 0)
        return 0;
    return tune_logger_changed(c->options.log, "the number of rows to train on, since a changed row fell to the other side of "
                               "`train_split` (put the row back; `skip_bad_rows` leaves a bad one out)", was, now);
}

/* If the data file changed, check that the rows the run has trained on are still the same. If it did
 * not, and the run did not keep the hash of these rows yet, find it. */
static int same_rows(struct tune_checkpoint *c, struct tune_loader *load, struct tune_progress *then)
{
    uint64_t now = 0;
    if (!c->options.log)
        return 0;
    if (!tune_logger_data_differs(c->options.log)) {
        bool file = tune_dataset_stamp(tune_loader_dataset(load)) != NULL;
        if (file && then->rows_hash && tune_loader_ordered(load))
            TRY(tune_loader_rows_hash(load, then->rows, &now));
        if (now != 0 && now != then->rows_hash)
            return tune_logger_changed(c->options.log, "the program's order of rows (tune_loader_order): the rows that were trained on",
                                       "others", "these");
        return file && !then->rows_hash ? tune_loader_rows_hash(load, then->rows, &then->rows_hash) : 0;
    }
    TRY(same_part(c, load, then));
    if (then->rows_hash)
        TRY(tune_loader_rows_hash(load, then->rows, &now));
    return tune_logger_data_agrees(c->options.log, then->rows, !then->rows_hash ? -1 : now == then->rows_hash);
}

/* Load the adapter that training starts from. */
static int begin(struct tune_checkpoint *c, struct tune_model *m)
{
    char text[512];
    struct tune_adapter_config config;
    TRY(tune_adapter_read(m, c->adapter));
    if (!c->options.log)
        return 0;
    TRY(tune_adapter_config_read(&config, c->adapter));
    snprintf(text, sizeof text, "begins from %.400s", c->adapter);
    int status = tune_logger_note(c->options.log, "adapter", text);
    snprintf(text, sizeof text, "its adapter_config.json has keys that are not known here: %.400s",
             config.unknown ? config.unknown : "");
    if (status == 0 && config.unknown)
        status = tune_logger_note(c->options.log, "warning: adapter", text);
    if (status == 0 && config.remark)
        status = tune_logger_note(c->options.log, "warning: adapter", config.remark);
    tune_adapter_config_free(&config);
    return status;
}

/* Steps between two times that something is due. With packing, epochs may be shorter. */
static double steps_between(double every, const struct tune_loader *load)
{
    if (every == TUNE_EACH_EPOCH)
        return (double)tune_loader_epoch_steps(load);
    return every >= 1 ? every : every * (double)tune_loader_planned_steps(load);
}

/* Report the disk space that later checkpoints need. Too little is a warning or an error. */
static int forecast(struct tune_checkpoint *c, struct tune_model *m, struct tune_optimizer *opt, const struct tune_loader *load,
                    int64_t step)
{
    const struct tune_checkpoint_options *o = &c->options;
    struct tune_disk_plan plan = {
        .steps = tune_loader_planned_steps(load),
        .from = step,
        .save_every = steps_between(o->save_every, load),
        .keep_last = o->keep_last + (o->keep_last > 0 && o->diverged), /* see prune */
        .eval_every = steps_between(o->eval_every, load),
        .at_end = !o->unsaved,
    };
    if (!o->log || tune_disk_plan_count(&plan) == 0)
        return 0;
    plan.bytes = tune_disk_checkpoint_bytes(m, opt, o->save_dtype, narrower(m, o->save_dtype), c->source);
    plan.free = tune_file_free_space(c->run);
    return tune_disk_plan_tell(&plan, c->run, o->log);
}

/* The same for a rank whose folder rank 0 keeps: it only reads. */
static int follow(struct tune_checkpoint *c, struct tune_model *m, struct tune_optimizer *opt, struct tune_loader *load,
                  struct tune_progress *at)
{
    struct tune_progress then;
    bool finished;
    if (!*c->resume)
        return *c->adapter ? tune_adapter_read(m, c->adapter) : 0;
    if (tune_state_read_progress(c->resume, &then, &finished) < 0 || named_by_step(c->resume, &then) < 0 ||
        tune_state_read(c->resume, m, opt) < 0)
        return broken(c);
    TRY(tune_loader_seek(load, &then));
    TRY(c->options.log ? tune_logger_resume(c->options.log, &then) : 0);
    c->saved_step = then.step;
    tune_model_set_step(m, then.step);
    *at = then;
    return 0;
}

static int resume(struct tune_checkpoint *c, struct tune_model *m, struct tune_optimizer *opt, struct tune_loader *load,
                  struct tune_progress *at)
{
    char state[TUNE_PATH_MAX];
    struct tune_progress then;
    bool finished;
    if (!*c->resume) {
        TRY(forecast(c, m, opt, load, 0));
        return *c->adapter ? begin(c, m) : 0;
    }
    TRY(tune_path(state, "%s/state", c->resume));
    TRY(read_source(c));
    TRY(same_source(c, m));
    if (tune_state_read_progress(c->resume, &then, &finished) < 0 || named_by_step(c->resume, &then) < 0 ||
        tune_state_read(c->resume, m, opt) < 0)
        return broken(c);
    TRY(remove_newer(c, then.step, false));
    TRY(same_rows(c, load, &then));
    TRY(tune_loader_seek(load, &then));
    TRY(same_plan(c, load, &then));
    TRY(forecast(c, m, opt, load, then.step));
    if (c->options.log)
        TRY(tune_logger_resume(c->options.log, &then)); /* up to here nothing was changed */
    TRY(tune_file_remove_leftovers(state));
    TRY(remove_newer(c, then.step, true));
    c->saved_step = then.step;
    TRY(set_links(c, &then, finished));
    tune_model_set_step(m, then.step);
    *at = then;
    return 0;
}

static int rescue(void *checkpoint, char *text, size_t size)
{
    return tune_checkpoint_rescue(checkpoint, text, size);
}

int tune_checkpoint_resume(struct tune_checkpoint *c, struct tune_model *m, struct tune_optimizer *opt,
                           struct tune_loader *load, struct tune_evaluator *eval, struct tune_progress *at)
{
    struct tune_comm *comm = c->options.comm;
    if (comm)
        tune_comm_alone(comm, true); /* some ranks may read faster than others */
    int status = (tune_comm_follows(comm) ? follow : resume)(c, m, opt, load, at);
    if (comm)
        tune_comm_alone(comm, false);
    TRY(status);
    /* rank 0 changes the folder only when all have read it */
    TRY(comm ? tune_comm_barrier(comm, "the checkpoint to go on from") : 0);
    c->chat_template = tune_dataset_chat_template(tune_loader_dataset(load));
    c->eos_token = tune_dataset_eos_token(tune_loader_dataset(load));
    c->end_id = tune_dataset_end_id(tune_loader_dataset(load));
    if (c->auxiliary)
        TRY(put_chat(c, c->auxiliary));
    c->work = (struct work){m, opt, load, at};
    if (c->options.failure) {
        c->options.failure->save = rescue;
        c->options.failure->work = c;
    }
    if (!eval)
        return 0;
    TRY(tune_evaluator_resume(eval, c->options.log, at));
    return at->best ? tune_checkpoint_save(c, m, opt, at) : 0;
}
