/* state.c - write and read progress.json and the F32 files beside it. */
#include "checkpoints/state.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/adapter.h"
#include "files/cjson.h"
#include "files/file.h"
#include "files/folder.h"
#include "files/safetensors.h"
#include "core/array.h"
#include "core/try.h"
#include "flags/find.h"
#include "models/lora.h"
#include "models/weights.h"

enum { PROGRESS_MAX = 1 << 20 };

/* ---- progress.json ---- */

enum kind { WHOLE, INT, REAL, YES };

/* The saved members of struct tune_progress. evaluation: only after the first evaluation. */
static const struct field {
    const char *name;
    size_t at;
    enum kind kind;
    bool evaluation;
} fields[] = {
#define FIELD(name, kind, evaluation) {#name, offsetof(struct tune_progress, name), kind, evaluation}
    FIELD(step, WHOLE, false),          FIELD(planned_steps, WHOLE, false), FIELD(rows, WHOLE, false),
    FIELD(tokens, WHOLE, false),        FIELD(labels, WHOLE, false),        FIELD(padded_tokens, WHOLE, false),
    FIELD(epoch, REAL, false),          FIELD(finished, YES, false),        FIELD(eval_step, WHOLE, true),
    FIELD(eval_loss, REAL, true),       FIELD(best_loss, REAL, true),       FIELD(best_step, WHOLE, true),
    /* early_stop is computed again with the present patience */
    FIELD(stale, INT, true),            FIELD(patience_loss, REAL, true),
#undef FIELD
};
enum { FIELDS = sizeof fields / sizeof *fields };

/* Members that checkpoints of earlier versions lack. */
static const struct field later[] = {
#define FIELD(name) {#name, offsetof(struct tune_progress, name), REAL, false}
    FIELD(fraction), FIELD(epoch_before), FIELD(fraction_before), FIELD(best_value),
#undef FIELD
};
enum { LATER = sizeof later / sizeof *later };

static bool put(cJSON *json, const struct field *f, const struct tune_progress *at)
{
    const char *place = (const char *)at + f->at;
    switch (f->kind) {
    case WHOLE: return tune_cjson_put_whole(json, f->name, *(const int64_t *)(const void *)place);
    case INT: return tune_cjson_put_whole(json, f->name, *(const int *)(const void *)place);
    case REAL: return tune_cjson_put_number(json, f->name, *(const double *)(const void *)place);
    default: return tune_cjson_put(json, f->name, cJSON_CreateBool(*(const bool *)place));
    }
}

/* Hashes of the files saved with progress.json, to detect files of another step or run. The files:
 * F32 weights (model.safetensors or state/weights.safetensors), moments, extra tensors of the
 * recipe. "": none. */
enum { WEIGHTS, MOMENTS, EXTRAS, FILES };
static const char *const hash_names[FILES] = {"weights_hash", "optimizer_hash", "extra_hash"};
static const char *const file_names[FILES] = {"state/weights.safetensors", "state/optimizer.safetensors",
                                              "state/extra.safetensors"};
static const char progress_name[] = "state/progress.json";

static int hash_files(const char *checkpoint, char text[FILES][32], char paths[FILES][TUNE_PATH_MAX])
{
    static const char adapter[] = "adapter_model.safetensors";
    struct tune_model_identity saved = {0};
    for (int i = 0; i < FILES; i++) {
        bool there = tune_folder_has(checkpoint, file_names[i]), narrow = i == WEIGHTS && !there;
        const char *name = tune_folder_has(checkpoint, adapter) ? adapter : "model.safetensors";
        uint64_t hash = 0;
        TRY(tune_path(paths[i], "%s/%s", checkpoint, narrow ? name : file_names[i]));
        TRY(there ? tune_folder_fingerprint(checkpoint, file_names[i], &hash) : 0);
        TRY(narrow ? tune_model_identity(checkpoint, &saved) : 0);
        snprintf(text[i], sizeof text[i], "%.*" PRIx64, there || narrow ? 16 : 0, narrow ? saved.fingerprint : hash);
    }
    return 0;
}

int tune_state_write_progress(const char *checkpoint, const struct tune_progress *at)
{
    char state[TUNE_PATH_MAX], text[FILES][32], paths[FILES][TUNE_PATH_MAX];
    TRY(tune_path(state, "%s/state", checkpoint));
    TRY(hash_files(checkpoint, text, paths));
    cJSON *json = cJSON_CreateObject();
    bool good = json != NULL;
    for (int i = 0; i < FILES; i++)
        if (i != EXTRAS || *text[i])
            good = good && tune_cjson_put_text(json, hash_names[i], text[i]);
    for (int i = 0; i < FIELDS; i++)
        if (at->evaluated || !fields[i].evaluation)
            good = good && put(json, &fields[i], at);
    for (int i = 0; i < LATER; i++)
        good = good && put(json, &later[i], at);
    if (at->evaluated && *at->best_by)
        good = good && tune_cjson_put_text(json, "best_by", at->best_by);
    snprintf(text[0], sizeof text[0], "%016" PRIx64, at->rows_hash);
    good = good && tune_cjson_put_text(json, "content_hash", at->rows_hash ? text[0] : "");
    int status = tune_cjson_write(state, "progress.json", json, good);
    cJSON_Delete(json);
    return status;
}

static bool get(const cJSON *value, const struct field *f, struct tune_progress *at)
{
    char *place = (char *)at + f->at;
    if (f->kind == YES) {
        *(bool *)place = cJSON_IsTrue(value);
        return cJSON_IsBool(value);
    }
    double number = cJSON_IsNumber(value) ? value->valuedouble : NAN;
    bool whole = number >= 0 && number < (f->kind == INT ? 0x1p31 : 0x1p53) && number == floor(number);
    if (f->kind == REAL)
        *(double *)(void *)place = number;
    else if (whole && f->kind == INT)
        *(int *)(void *)place = (int)number;
    else if (whole)
        *(int64_t *)(void *)place = (int64_t)number;
    return f->kind == REAL ? isfinite(number) : whole;
}

/* True if the number of rows in the set is an integer. */
static bool rows_make_sense(const struct tune_progress *at)
{
    double set = at->epoch > 0 ? (double)at->rows / at->epoch : NAN;
    return at->rows >= at->step && fabs(set - nearbyint(set)) < 1e-9 * set;
}

int tune_state_read_progress(const char *checkpoint, struct tune_progress *at, bool *finished)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_path(path, "%s/%s", checkpoint, progress_name));
    cJSON *json = tune_cjson_read_in(checkpoint, progress_name, PROGRESS_MAX);
    if (!json)
        return -1;
    bool evaluated = cJSON_GetObjectItemCaseSensitive(json, "eval_step") != NULL;
    const char *wrong = NULL;
    *at = (struct tune_progress){0};
    for (int i = 0; i < FIELDS && !wrong; i++)
        if ((evaluated || !fields[i].evaluation) &&
            !get(cJSON_GetObjectItemCaseSensitive(json, fields[i].name), &fields[i], at))
            wrong = fields[i].name;
    at->fraction = at->step < at->planned_steps ? (double)at->step / (double)at->planned_steps : 1;
    at->fraction_before = at->fraction; /* nothing is due behind a step whose beginning is not known */
    at->epoch_before = at->epoch;
    at->best_value = at->best_loss;
    for (int i = 0; i < LATER && !wrong; i++) {
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(json, later[i].name);
        wrong = value && !get(value, &later[i], at) ? later[i].name : NULL;
    }
    const cJSON *by = cJSON_GetObjectItemCaseSensitive(json, "best_by");
    snprintf(at->best_by, sizeof at->best_by, "%s", cJSON_IsString(by) ? by->valuestring : "");
    /* older files have none, or "rows_hash" by another rule */
    const cJSON *hash = cJSON_GetObjectItemCaseSensitive(json, "content_hash");
    at->rows_hash = cJSON_IsString(hash) ? strtoull(hash->valuestring, NULL, 16) : 0;
    cJSON_Delete(json);
    if (!wrong && (at->step < 1 || at->eval_step > at->step || at->best_step > at->eval_step))
        wrong = "step";
    if (!wrong && !rows_make_sense(at))
        wrong = "rows";
    if (wrong)
        return tune_error_set("%s: \"%s\" is missing or makes no sense", path, wrong);
    *finished = at->finished;
    at->finished = false;
    at->evaluated = evaluated;
    at->best = evaluated && at->eval_step == at->step && at->best_step == at->step;
    return 0;
}

/* ---- tensors ---- */

/* The tensors of one kind in an F32 file, with a prefix for their names. */
struct tensor_list {
    struct tune_model *m;
    const char *prefix;
    enum tune_tensor_kind kind; /* with adapters only trainable weights */
};

/* True if the i-th parameter is in this list. */
static bool listed(const struct tensor_list *l, int i)
{
    const struct tune_parameter *p = &tune_model_parameters(l->m)->at[i];
    return tune_model_has(l->m, p, l->kind) && (p->trainable || p->gradient >= 0 || !tune_model_lora(l->m));
}

static const char *name_of(const struct tensor_list *l, int i, char text[144])
{
    snprintf(text, 144, "%s%s", l->prefix, tune_model_parameters(l->m)->at[i].name);
    return text;
}

static int declare(struct tune_safetensors_writer *f, const struct tensor_list *l)
{
    const struct tune_parameters *p = tune_model_parameters(l->m);
    char name[144];
    for (int i = 0; i < p->count; i++)
        if (listed(l, i))
            TRY(tune_safetensors_writer_declare(f, name_of(l, i, name), TUNE_F32, p->at[i].ndim, p->at[i].shape));
    return 0;
}

static int read_kind(void *list, const struct tune_parameter *p, int64_t at, int64_t n, float *out)
{
    const struct tensor_list *l = list;
    return tune_model_read(l->m, p, l->kind, at, n, out);
}

static int put_piece(void *file, const struct tune_parameter *p, int64_t at, int64_t n, const float *x)
{
    (void)p;
    (void)at;
    return tune_safetensors_writer_write(file, x, n * 4);
}

static int write_values(struct tune_safetensors_writer *f, const struct tensor_list *l, float *room)
{
    const struct tune_parameters *p = tune_model_parameters(l->m);
    struct tune_weights_source source = {read_kind, (void *)(uintptr_t)l};
    for (int i = 0; i < p->count; i++)
        if (listed(l, i))
            TRY(tune_weights_each(&source, &p->at[i], room, put_piece, f));
    return 0;
}

static int write_f32(const char *path, const struct tensor_list *lists, int count, int64_t steps)
{
    char text[32];
    float *room = tune_zeroed(TUNE_PIECE, sizeof *room, "writing %s", path);
    struct tune_safetensors_writer *f = tune_safetensors_writer_new(path);
    int status = room && f ? 0 : -1;
    snprintf(text, sizeof text, "%" PRId64, steps);
    if (status == 0)
        status = tune_safetensors_writer_metadata(f, "steps", text);
    for (int i = 0; i < count && status == 0; i++)
        status = declare(f, &lists[i]);
    for (int i = 0; i < count && status == 0; i++)
        status = write_values(f, &lists[i], room);
    if (status == 0)
        status = tune_safetensors_writer_finish(f);
    tune_safetensors_writer_free(f);
    free(room);
    return status;
}

/* Make lists of the moments that exist. Returns their number. */
static int moments_of(struct tensor_list lists[2], struct tune_model *m)
{
    static const char *const prefixes[] = {"m.", "v."};
    int n = 0;
    for (int i = 0; i < 2; i++)
        if (tune_model_state(m, TUNE_MOMENT_1 + i).shape[0] > 0)
            lists[n++] = (struct tensor_list){m, prefixes[i], TUNE_MOMENT_1 + i};
    return n;
}

/* Make lists of the recipe's extra tensors. Returns the number of kinds. prefixes: room for their
 * names. */
static int extras_of(struct tensor_list lists[TUNE_EXTRAS], char prefixes[TUNE_EXTRAS][40], struct tune_model *m)
{
    int n = 0;
    const char *name;
    while (n < TUNE_EXTRAS && (name = tune_model_extra_name(m, TUNE_EXTRA + n))) {
        snprintf(prefixes[n], sizeof prefixes[n], "%s.", name);
        lists[n] = (struct tensor_list){m, prefixes[n], TUNE_EXTRA + n};
        n++;
    }
    return n;
}

int tune_state_write(const char *checkpoint, struct tune_model *m, struct tune_optimizer *opt, const struct tune_progress *at,
                     bool weights)
{
    char path[TUNE_PATH_MAX], prefixes[TUNE_EXTRAS][40];
    struct tensor_list moments[2], extras[TUNE_EXTRAS];
    int extra = extras_of(extras, prefixes, m);
    TRY(tune_path(path, "%s/state", checkpoint));
    TRY(tune_file_new_folder(path));
    if (opt) {
        int64_t steps = tune_optimizer_steps(opt);
        TRY(steps < 0 ? -1 : 0);
        TRY(tune_path(path, "%s/%s", checkpoint, file_names[MOMENTS]));
        TRY(write_f32(path, moments, moments_of(moments, m), steps));
    }
    TRY(tune_path(path, "%s/%s", checkpoint, file_names[EXTRAS]));
    TRY(extra > 0 ? write_f32(path, extras, extra, at->step) : 0);
    TRY(tune_path(path, "%s/%s", checkpoint, file_names[WEIGHTS]));
    TRY(weights ? write_f32(path, &(struct tensor_list){m, "", TUNE_WEIGHT}, 1, at->step) : 0);
    /* last, because it holds hashes of the others */
    return tune_state_write_progress(checkpoint, at);
}

/* ---- reading ---- */

static bool same_shape(const struct tune_array *t, const struct tune_parameter *p)
{
    bool same = t->ndim == p->ndim;
    for (int d = 0; same && d < p->ndim; d++)
        same = t->shape[d] == p->shape[d];
    return same;
}

/* Copy t's values to the parameter. */
static int put_values(const char *path, const char *name, const struct tune_array *t, const struct tensor_list *l, int i)
{
    const struct tune_parameter *p = &tune_model_parameters(l->m)->at[i];
    if (!t || t->dtype != TUNE_F32 || !same_shape(t, p))
        return tune_error_set("%s: tensor %s is %s; it is not the state of this model", path, name,
                              !t ? "missing" : t->dtype != TUNE_F32 ? "not F32" : "of another shape than the model's");
    return tune_model_write(l->m, p, l->kind, 0, p->count, t->data);
}

/* Read a whole F32 file of the checkpoint, which must hold exactly these tensors. */
static int read_f32(const char *checkpoint, const char *file, const struct tensor_list *lists, int count, int64_t *steps)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_path(path, "%s/%s", checkpoint, file));
    struct tune_safetensors *f = tune_safetensors_open_in(checkpoint, file);
    const char *text = f ? tune_safetensors_metadata(f, "steps") : NULL;
    int64_t found = 0;
    char name[144], *end = NULL;
    int status = f ? 0 : -1;
    for (int l = 0; l < count; l++)
        for (int i = 0; i < tune_model_parameters(lists[l].m)->count && status == 0; i++)
            if (listed(&lists[l], i)) {
                name_of(&lists[l], i, name);
                status = put_values(path, name, tune_safetensors_find(f, name), &lists[l], i);
                found++;
            }
    *steps = text ? strtoll(text, &end, 10) : -1;
    if (status == 0 && (!text || !*text || *end || *steps < 0 || found != tune_safetensors_count(f)))
        status = tune_error_set("%s: %s; it is not the state of this run", path,
                                found != tune_safetensors_count(f)
                                    ? "it has tensors that this model, its optimizer or the recipe does not keep"
                                    : "its metadata has no number of \"steps\"");
    tune_safetensors_close(f);
    return status;
}

/* Read the weights of the checkpoint's own folder, which are F32. */
static int read_saved(const char *checkpoint, const struct tensor_list *l)
{
    if (tune_model_lora(l->m))
        return tune_adapter_read(l->m, checkpoint);
    struct tune_weights *w = tune_weights_open(checkpoint);
    int status = w ? 0 : -1;
    for (int i = 0; i < tune_model_parameters(l->m)->count && status == 0; i++) {
        const char *name = tune_model_parameters(l->m)->at[i].name;
        status = put_values(checkpoint, name, tune_weights_find(w, name), l, i);
    }
    tune_weights_close(w);
    return status;
}

/* Check that the files were saved together with progress.json. */
static int saved_together(const char *checkpoint)
{
    char path[TUNE_PATH_MAX], text[FILES][32], paths[FILES][TUNE_PATH_MAX];
    TRY(hash_files(checkpoint, text, paths));
    TRY(tune_path(path, "%s/%s", checkpoint, progress_name));
    cJSON *json = tune_cjson_read_in(checkpoint, progress_name, PROGRESS_MAX);
    int status = json ? 0 : -1;
    for (int i = 0; i < FILES && status == 0; i++) {
        const cJSON *was = cJSON_GetObjectItemCaseSensitive(json, hash_names[i]);
        if (cJSON_IsString(was) ? !strcmp(was->valuestring, text[i]) : i == EXTRAS && !was && !*text[i])
            continue;
        status = tune_error_set(
            "%s is not the file that was saved with %s (\"%s\" is %s there, %s now): of another step or run, or damaged",
            paths[i], path, hash_names[i], cJSON_IsString(was) ? was->valuestring : "missing", text[i]);
    }
    cJSON_Delete(json);
    return status;
}

int tune_state_read(const char *checkpoint, struct tune_model *m, struct tune_optimizer *opt)
{
    int64_t steps;
    char prefixes[TUNE_EXTRAS][40];
    struct tensor_list weights = {m, "", TUNE_WEIGHT}, moments[2], extras[TUNE_EXTRAS];
    int extra = extras_of(extras, prefixes, m);
    TRY(tune_folder_has(checkpoint, file_names[WEIGHTS]) ? read_f32(checkpoint, file_names[WEIGHTS], &weights, 1, &steps)
                                                  : read_saved(checkpoint, &weights));
    if (opt) {
        TRY(read_f32(checkpoint, file_names[MOMENTS], moments, moments_of(moments, m), &steps));
        TRY(tune_optimizer_set_steps(opt, steps));
    }
    if (extra > 0 || tune_folder_has(checkpoint, file_names[EXTRAS]))
        TRY(read_f32(checkpoint, file_names[EXTRAS], extras, extra, &steps));
    return saved_together(checkpoint); /* last, because reading reports a truncated file better */
}
