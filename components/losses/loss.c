/* loss.c - the chunks: gather, project, softmax, and back. */
#include "losses/loss.h"

#include <stdlib.h>

#include "core/arena.h"
#include "core/try.h"
#include "devices/ops.h"

enum { CHUNK_BYTES = 48 << 20 }; /* of logits: enough rows for a good matrix product, small beside the activations */

struct tune_loss {
    struct tune_model *m;
    struct tune_device *dev;
    enum tune_dtype dtype; /* of activations */
    int64_t C, V;
    float scale;           /* on the logits */
    int64_t N, chunk;     /* largest batch; labelled rows at a time */
    tune_address memory;
    int64_t memory_bytes;
    tune_address logits;    /* [chunk,V] F32 */
    tune_address h, dh;     /* [chunk,C] gathered hidden states and their gradient */
    tune_address dhidden;   /* [N,C] */
    tune_address log_probs; /* [N] F32 */
    tune_address scalars;   /* evaluation's own struct tune_scalars */
    bool training;
    struct tune_tensor dhidden_tensor;
};

/* Every buffer's place. */
static void place(struct tune_loss *l, struct tune_arena *a, bool training)
{
    l->training = training;
    int64_t e = tune_dtype_bits(l->dtype) / 8;
    l->logits = tune_arena_take(a, l->chunk, l->V * 4);
    l->h = tune_arena_take(a, l->chunk, l->C * e);
    l->log_probs = tune_arena_take(a, l->N, 4);
    l->scalars = tune_arena_take(a, 1, sizeof(struct tune_scalars));
    if (training) {
        l->dh = tune_arena_take(a, l->chunk, l->C * e);
        l->dhidden = tune_arena_take(a, l->N, l->C * e);
    }
}

static void set_sizes(struct tune_loss *l, const struct tune_model_config *config, enum tune_dtype activations, int64_t N)
{
    l->dtype = activations;
    l->C = config->hidden;
    l->V = config->vocabulary;
    l->scale = 1 / config->logits_scaling;
    l->N = N;
    l->chunk = CHUNK_BYTES / (4 * l->V);
    l->chunk = l->chunk < 16 ? 16 : l->chunk;
    l->chunk = l->chunk > l->N ? l->N : l->chunk;
}

int64_t tune_loss_bytes(const struct tune_model_config *config, enum tune_dtype activations, int64_t N, bool training)
{
    struct tune_loss l = {0};
    struct tune_arena count = {0};
    set_sizes(&l, config, activations, N);
    place(&l, &count, training);
    return count.used;
}

struct tune_loss *tune_loss_new(struct tune_model *m, bool training)
{
    struct tune_loss *l = calloc(1, sizeof *l);
    if (!l) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory for the loss");
        return NULL;
    }
    l->m = m;
    l->dev = tune_model_device(m);
    set_sizes(l, tune_model_config(m), tune_model_dtype(m), tune_model_max_tokens(m));
    struct tune_arena count = {0};
    place(l, &count, training);
    l->memory_bytes = count.used;
    l->memory = tune_device_alloc(l->dev, l->memory_bytes, "the loss");
    if (!l->memory.at) {
        tune_loss_free(l);
        return NULL;
    }
    place(l, &(struct tune_arena){l->memory, 0}, training);
    return l;
}

void tune_loss_free(struct tune_loss *l)
{
    if (!l)
        return;
    tune_device_free(l->dev, l->memory, l->memory_bytes);
    free(l);
}

/* The batch's labelled rows and their labels, which the model has on the device. Their number, or -1. */
static int64_t select_rows(struct tune_loss *l, const struct tune_tensor *hidden, const struct tune_batch *b,
                           struct tune_model_labels *labels)
{
    int64_t N = (int64_t)b->B * b->T;
    if (N > l->N || hidden->ndim != 2 || hidden->shape[0] != N || hidden->shape[1] != l->C || hidden->dtype != l->dtype) {
        char text[64];
        tune_error_set("loss: hidden is %s%s for a batch of %d rows of %d; expected %s [%lld, %lld], at most %lld positions",
                       tune_dtype_name(hidden->dtype), tune_shape_text(hidden->ndim, hidden->shape, text, sizeof text), b->B, b->T,
                       tune_dtype_name(l->dtype), (long long)N, (long long)l->C, (long long)l->N);
        return -1;
    }
    TRY(tune_model_labels(l->m, b, labels));
    return labels->rows.shape[0];
}

static int64_t chunks_of(const struct tune_loss *l, int64_t labels)
{
    return (labels + l->chunk - 1) / l->chunk;
}

/* All chunks. log_probs: whether to set them; dhidden NULL: no backward. */
static int run(struct tune_loss *l, const struct tune_tensor *hidden, const struct tune_model_labels *all, tune_address step,
               bool log_probs, struct tune_tensor *dhidden)
{
    int64_t labels = all->rows.shape[0], chunks = chunks_of(l, labels);
    struct tune_device *dev = l->dev;
    struct tune_tensor w, dw;
    int64_t C = l->C, V = l->V;
    tune_model_output_weight(l->m, &w, &dw);
    for (int64_t i = 0; i < chunks; i++) { /* of about one size: each goes over all of the output weights */
        int64_t at = labels * i / chunks, n = labels * (i + 1) / chunks - at;
        struct tune_tensor rows = tune_tensor_part(&all->rows, at, n), label = tune_tensor_part(&all->labels, at, n);
        struct tune_tensor probs = tune_tensor_1d(tune_address_plus(l->log_probs, at * 4), TUNE_F32, n);
        struct tune_tensor h = tune_tensor_2d(l->h, l->dtype, n, C), dh = tune_tensor_2d(l->dh, l->dtype, n, C);
        struct tune_tensor logits = tune_tensor_2d(l->logits, TUNE_F32, n, V);
        TRY(tune_gather(dev, &h, hidden, &rows));
        dev->doing.what = "lm_head";
        TRY(tune_gemm(dev, &logits, &h, false, &w, true, 1, 0));
        dev->doing.what = "";
        TRY(tune_cross_entropy(dev, &logits, step, log_probs ? &probs : NULL, &label, l->scale, dhidden != NULL));
        if (!dhidden)
            continue;
        dev->doing.what = "lm_head";
        TRY(tune_linear_backward(dev, &dh, dw.data.at ? &dw : NULL, NULL, &logits, &h, &w, 1, 0));
        dev->doing.what = "";
        TRY(tune_scatter(dev, dhidden, &dh, &rows));
    }
    return 0;
}

int tune_loss_forward_backward(struct tune_loss *l, const struct tune_tensor *hidden, const struct tune_batch *batch,
                               struct tune_record *record, struct tune_tensor **dhidden)
{
    if (!l->training) {
        tune_error_set("this loss was made for evaluation; tune_loss_new(model, true) makes one that trains");
        return -1;
    }
    tune_device_does(l->dev, TUNE_LOSS, -1, "");
    struct tune_model_labels labels;
    int64_t n = select_rows(l, hidden, batch, &labels);
    TRY(n);
    if (record)
        TRY(tune_record_count(record, batch));
    tune_address step = record ? tune_record_step(record) : l->scalars;
    l->dhidden_tensor = tune_tensor_2d(l->dhidden, l->dtype, hidden->shape[0], hidden->shape[1]);
    TRY(tune_zero(l->dev, &l->dhidden_tensor));
    TRY(run(l, hidden, &labels, step, false, &l->dhidden_tensor));
    *dhidden = &l->dhidden_tensor;
    return tune_add_labels(l->dev, step, (double)n, (double)chunks_of(l, n));
}

/* The evaluation's own scalars, all 0. */
static int clear(struct tune_loss *l)
{
    struct tune_tensor scalars = tune_tensor_1d(l->scalars, TUNE_U8, sizeof(struct tune_scalars));
    return tune_zero(l->dev, &scalars);
}

int tune_loss_forward(struct tune_loss *l, const struct tune_tensor *hidden, const struct tune_batch *batch,
                      double *loss_sum)
{
    double sum;
    tune_device_does(l->dev, TUNE_EVALUATION, -1, "");
    struct tune_model_labels labels;
    int64_t n = select_rows(l, hidden, batch, &labels);
    TRY(n);
    TRY(clear(l));
    TRY(run(l, hidden, &labels, l->scalars, false, NULL));
    TRY(tune_device_download(l->dev, &sum, TUNE_SCALAR(l->scalars, loss_sum).data, sizeof sum));
    TRY(tune_device_sync(l->dev));
    *loss_sum += sum;
    return 0;
}

int tune_loss_log_probs(struct tune_loss *l, const struct tune_tensor *hidden, const struct tune_batch *batch,
                        float *log_probs)
{
    tune_device_does(l->dev, TUNE_EVALUATION, -1, "");
    struct tune_model_labels labels;
    int64_t n = select_rows(l, hidden, batch, &labels);
    TRY(n);
    TRY(clear(l));
    TRY(run(l, hidden, &labels, l->scalars, true, NULL));
    TRY(tune_device_download(l->dev, log_probs, l->log_probs, n * 4));
    return tune_device_sync(l->dev);
}

struct tune_loss *tune_get_loss(const struct tune_flags *flags, struct tune_model *m)
{
    (void)flags; /* one loss today; the getter keeps its place for those that take options */
    return tune_loss_new(m, true);
}
