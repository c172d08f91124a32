/* measured.c - --store: rows of a sample store that measured the run on a known GPU.
 *
 * A row counts if its model, method, length, batch, checkpointing and dtype are those of the run,
 * on one GPU. Its other inputs, such as the rank of adapters and the data, may differ. The GPU is
 * that of the row's host class; without one, it is the input gpu_model. TUNE_WITHOUT_SWEEPS: this
 * build was made without HDF5, so no store can be read. */
#include "fit.h"

#include "core/error.h"

#ifdef TUNE_WITHOUT_SWEEPS

int fit_measured_read(struct fit_measured *m, const struct fit_run *r)
{
    (void)m;
    return tune_error_cannot("--store %s: this build has no HDF5, so it reads no stores; leave it out", r->my->store);
}

#else

#include <math.h>
#include <string.h>
#include <strings.h>

#include "core/try.h"
#include "flags/known.h"
#include "sweeps/answers/question.h"

enum stored_column { MODEL, GPUS, LENGTH, BATCH, CHECKPOINTING, DTYPE, MODEL_OF_GPU, HOST_CLASS, EXPERIMENT, STATUS, SPEED, COLUMNS };
static const char *const names[COLUMNS] = {"model_name", "number_gpus", "model_max_length", "batch_size", "gradient_checkpointing", "torch_dtype",
                                           "gpu_model", "host_class", "experiment", "status", "train_tokens_per_second"};

/* The rows of a store, and where the columns are. */
struct stored_rows {
    struct tune_answer_table *a;
    int at[COLUMNS];
    int64_t row;
};

static const char *text_of(const struct stored_rows *s, enum stored_column c, char *text, size_t size)
{
    *text = 0;
    tune_answer_to_string(tune_answer_at(s->a, s->row, s->at[c]), text, size);
    return text;
}

static bool has_number(const struct stored_rows *s, enum stored_column c, double wanted)
{
    return tune_answer_number(tune_answer_at(s->a, s->row, s->at[c])) == wanted;
}

static bool has_flag(const struct stored_rows *s, enum stored_column c, bool wanted)
{
    char text[16];
    text_of(s, c, text, sizeof text);
    return (!strcasecmp(text, "true") || !strcmp(text, "1")) == wanted;
}

/* 1 if both names mean one model; -1. */
static int same_model(const char *a, const char *b)
{
    struct tune_known_model x, y;
    int found = tune_known_model(a, &x), other = found > 0 ? tune_known_model(b, &y) : 0;
    if (found < 0 || other < 0)
        return -1;
    return found > 0 && other > 0 ? !strcmp(x.name, y.name) : !strcmp(a, b);
}

/* The GPU in "x86_64 <cpu> x16, 128 GiB, NVIDIA L40S x1, driver 570.1". NULL: none is known. */
static const struct tune_known_gpu *gpu_in_class(char *class)
{
    const struct tune_known_gpu *gpu = NULL;
    for (char *rest = NULL, *part = strtok_r(class, ",", &rest); part && !gpu; part = strtok_r(NULL, ",", &rest)) {
        char *count = strrchr(part, ' ');
        if (!count || count[1] != 'x' || !count[2] || count[2 + strspn(count + 2, "0123456789")])
            continue;
        *count = 0;
        gpu = tune_known_gpu(part);
    }
    return gpu;
}

static const struct tune_known_gpu *gpu_of_row(const struct stored_rows *s)
{
    char text[512];
    const struct tune_known_gpu *gpu = gpu_in_class((char *)text_of(s, HOST_CLASS, text, sizeof text));
    return gpu ? gpu : tune_known_gpu(text_of(s, MODEL_OF_GPU, text, sizeof text));
}

/* True if the row's experiment and dtypes are those of the method. No experiment has a base of 4
 * bits. */
static bool has_method(const struct stored_rows *s, const struct fit_run *r)
{
    static const char *const experiments[METHODS] = {"finetune_full_benchmark", "finetune_lora_benchmark", NULL};
    char experiment[256], dtype[32];
    text_of(s, EXPERIMENT, experiment, sizeof experiment);
    text_of(s, DTYPE, dtype, sizeof dtype);
    return experiments[r->method] && strstr(experiment, experiments[r->method]) && !strcmp(dtype, fit_dtype(r->my->dtype)) &&
           (r->method == FULL || r->my->dtype == r->my->base_dtype);
}

static int add_stored(struct fit_measured *m, const struct stored_rows *s, const struct fit_run *r)
{
    int count;
    char model[256], status[32];
    double speed = tune_answer_number(tune_answer_at(s->a, s->row, s->at[SPEED]));
    m->all++;
    if (!has_method(s, r) || !has_number(s, GPUS, 1) || !has_number(s, LENGTH, r->length) ||
        !has_number(s, BATCH, r->my->tune.loader.batch_size) || !has_flag(s, CHECKPOINTING, r->my->tune.activation_checkpointing != 0) ||
        strcmp(text_of(s, STATUS, status, sizeof status), "valid") || !(speed > 0) || !isfinite(speed))
        return 0;
    int same = same_model(text_of(s, MODEL, model, sizeof model), r->model);
    const struct tune_known_gpu *gpu = same > 0 ? gpu_of_row(s) : NULL;
    TRY(same);
    if (!gpu)
        return 0;
    int i = (int)(gpu - tune_known_gpus(&count));
    m->sum[i] += speed;
    m->rows[i]++;
    m->used++;
    return 0;
}

int fit_measured_read(struct fit_measured *m, const struct fit_run *r)
{
    *m = (struct fit_measured){0};
    struct tune_store *store = tune_store_open(r->my->store, false);
    struct tune_question q = {.store = store, .confined = true};
    struct stored_rows s = {.a = store ? tune_ask_export(&q) : NULL};
    int code = s.a ? 0 : -1;
    for (int c = 0; c < COLUMNS && s.a; c++)
        s.at[c] = tune_answer_find(s.a, names[c]);
    for (s.row = 0; code == 0 && s.row < s.a->rows; s.row++)
        code = add_stored(m, &s, r);
    tune_answer_free(s.a);
    tune_store_free(store);
    return code;
}

#endif

double fit_measured_speed(const struct fit_measured *m, const struct tune_known_gpu *gpu, int *rows)
{
    int count, i = (int)(gpu - tune_known_gpus(&count));
    *rows = m->rows[i];
    return *rows > 0 ? m->sum[i] / *rows : 0;
}
