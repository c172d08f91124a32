/* measured.c - --store: what rows of a sample store say of the run on known GPUs.
 *
 * A row measured the run if its model, method, length, batch, checkpointing and dtype are those of
 * the run, on one GPU. Its other inputs, such as the rank of adapters and the data, may differ. The
 * GPU is that of the row's host class; without one, it is the input gpu_model.
 *
 * If no row of a GPU did, a model of its rows with other lengths, batches and checkpointing predicts
 * tokens/s. It needs LEAST_POINTS rows, around the run: none of its numbers is beyond theirs.
 * TUNE_WITHOUT_SWEEPS: this build was made without HDF5, so no store can be read. */
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
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/array.h"
#include "core/try.h"
#include "flags/known.h"
#include "sweeps/answers/question.h"
#include "sweeps/surrogate/surrogate.h"

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

static double number_of(const struct stored_rows *s, enum stored_column c)
{
    return tune_answer_number(tune_answer_at(s->a, s->row, s->at[c]));
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

/* ---- the model ---- */

enum { LEAST_POINTS = 8, AXES = 3 };

/* A row of a GPU: logarithms of batch and length from 0 to 1, checkpointing 0 or 1; tokens/s. */
struct speed_point {
    int gpu;
    double x[AXES], speed;
};

struct speed_points {
    struct speed_point *at; /* [count] */
    int count;
};

static void set_axes(double x[AXES], double batch, double length, bool checkpointing)
{
    x[0] = log2(batch) / 12; /* 4096 rows */
    x[1] = log2(length) / 20;
    x[2] = checkpointing;
}

static int add_point(struct speed_points *points, int gpu, const double x[AXES], double speed)
{
    if (!tune_array_fit(&points->at, (size_t)points->count, sizeof *points->at))
        return tune_error_no_memory("rows of a store");
    struct speed_point *p = &points->at[points->count++];
    *p = (struct speed_point){.gpu = gpu, .speed = speed};
    memcpy(p->x, x, sizeof p->x);
    return 0;
}

/* True if the points of a GPU are enough, and lie around the run. */
static bool are_around(const struct speed_points *points, int gpu, const double run[AXES], int *count)
{
    bool below[AXES] = {false}, above[AXES] = {false}, around = true;
    *count = 0;
    for (int i = 0; i < points->count; i++)
        for (int k = 0; points->at[i].gpu == gpu && k < AXES; k++) {
            *count += k == 0;
            below[k] = below[k] || points->at[i].x[k] <= run[k];
            above[k] = above[k] || points->at[i].x[k] >= run[k];
        }
    for (int k = 0; k < AXES; k++)
        around = around && below[k] && above[k];
    return around && *count >= LEAST_POINTS;
}

/* Predict the run on a GPU from x[count][AXES] and y[count]. */
static int predict_run(struct fit_speed *speed, const double *x, const double *y, int count, const double run[AXES])
{
    struct tune_surrogate_options o = {.dimensions = AXES, .categories = (const int[AXES]){0, 0, 2}, .logarithm = true,
                                       .priors = true, .starts = 4, .fit_rows = 100};
    struct tune_prediction p;
    struct tune_surrogate *s = tune_surrogate_fit(&o, x, y, count);
    int code = s ? tune_surrogate_predict(s, run, 1, &p) : -1;
    tune_surrogate_free(s);
    if (code == 0)
        *speed = (struct fit_speed){exp(p.mean), p.low, p.high, count, true};
    return code;
}

static int add_prediction(struct fit_measured *m, const struct speed_points *points, int gpu, const double run[AXES])
{
    int count, n = 0;
    if (m->at[gpu].rows > 0 || !are_around(points, gpu, run, &count))
        return 0;
    double *x = calloc((size_t)count, AXES * sizeof *x), *y = calloc((size_t)count, sizeof *y);
    for (int i = 0; x && y && i < points->count; i++)
        if (points->at[i].gpu == gpu) {
            memcpy(&x[n * AXES], points->at[i].x, sizeof points->at[i].x);
            y[n++] = points->at[i].speed;
        }
    int code = x && y ? predict_run(&m->at[gpu], x, y, count, run) : tune_error_no_memory("rows of a store");
    m->modelled += code == 0;
    free(x);
    free(y);
    return code;
}

/* ---- the rows ---- */

static int add_stored(struct fit_measured *m, struct speed_points *points, const struct stored_rows *s, const struct fit_run *r)
{
    int count, batch = r->my->tune.loader.batch_size;
    char model[256], status[32];
    bool checkpointing = r->my->tune.activation_checkpointing != 0;
    double x[AXES], speed = number_of(s, SPEED);
    m->all++;
    if (!has_method(s, r) || number_of(s, GPUS) != 1 || strcmp(text_of(s, STATUS, status, sizeof status), "valid") ||
        !(speed > 0) || !isfinite(speed) || !(number_of(s, LENGTH) >= 1) || !(number_of(s, BATCH) >= 1))
        return 0;
    int same = same_model(text_of(s, MODEL, model, sizeof model), r->model);
    const struct tune_known_gpu *gpu = same > 0 ? gpu_of_row(s) : NULL;
    TRY(same);
    if (!gpu)
        return 0;
    int i = (int)(gpu - tune_known_gpus(&count));
    set_axes(x, number_of(s, BATCH), number_of(s, LENGTH), has_flag(s, CHECKPOINTING, true));
    TRY(add_point(points, i, x, speed));
    if (number_of(s, LENGTH) != r->length || number_of(s, BATCH) != batch || !has_flag(s, CHECKPOINTING, checkpointing))
        return 0;
    m->at[i].mean += (speed - m->at[i].mean) / ++m->at[i].rows;
    m->used++;
    return 0;
}

int fit_measured_read(struct fit_measured *m, const struct fit_run *r)
{
    *m = (struct fit_measured){0};
    struct tune_store *store = tune_store_open(r->my->store, false);
    struct tune_question q = {.store = store, .confined = true};
    struct stored_rows s = {.a = store ? tune_ask_export(&q) : NULL};
    struct speed_points points = {0};
    int code = s.a ? 0 : -1, gpus;
    double run[AXES];
    for (int c = 0; c < COLUMNS && s.a; c++)
        s.at[c] = tune_answer_find(s.a, names[c]);
    for (s.row = 0; code == 0 && s.row < s.a->rows; s.row++)
        code = add_stored(m, &points, &s, r);
    set_axes(run, r->my->tune.loader.batch_size, r->length, r->my->tune.activation_checkpointing != 0);
    tune_known_gpus(&gpus);
    for (int gpu = 0; gpu < gpus && code == 0; gpu++)
        code = add_prediction(m, &points, gpu, run);
    free(points.at);
    tune_answer_free(s.a);
    tune_store_free(store);
    return code;
}

#endif
