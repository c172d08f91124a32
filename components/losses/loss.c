/* loss.c - a chunk of labels: gather, project, softmax, and back. */
#include "losses/loss.h"

#include <stdlib.h>

#include "core/arena.h"
#include "core/array.h"
#include "core/try.h"
#include "devices/ops.h"

struct tune_loss {
    struct tune_model *m;
    struct tune_device *dev;
    enum tune_dtype dtype; /* dtype of activations */
    int64_t C, V;
    float scale;           /* factor on the logits */
    double smoothing;      /* label smoothing of tune_cross_entropy */
    int64_t N, chunk;     /* largest batch; labelled rows in a chunk */
    tune_address memory;
    int64_t memory_bytes;
    tune_address logits;    /* [chunk,V] F32 */
    tune_address h, dh;     /* [chunk,C] gathered hidden states and their gradient */
    tune_address dhidden;   /* [N,C] */
    tune_address log_probs; /* [N] F32, then a chunk's */
    tune_address scalars;   /* struct tune_scalars for evaluation */
    bool training;
    struct tune_tensor dhidden_tensor;
    struct tune_model_labels labels; /* labels of the current batch */
    int64_t chunks, next; /* number of chunks; the next chunk; next 0: no batch in progress */
    /* [chunk,V] host copy for tune_chunk_host, if the host cannot reach device memory */
    float *host_logits;
    void *numbers;                   /* [N] floats or doubles on the host; NULL until needed */
};

/* Give every buffer its address. */
static void set_addresses(struct tune_loss *l, struct tune_arena *a, bool training)
{
    l->training = training;
    int64_t e = tune_dtype_bits(l->dtype) / 8;
    l->logits = tune_arena_take(a, l->chunk, l->V * 4);
    l->h = tune_arena_take(a, l->chunk, l->C * e);
    l->log_probs = tune_arena_take(a, l->N + l->chunk, 4);
    l->scalars = tune_arena_take(a, 1, sizeof(struct tune_scalars));
    if (training) {
        l->dh = tune_arena_take(a, l->chunk, l->C * e);
        l->dhidden = tune_arena_take(a, l->N, l->C * e);
    }
}

static void set_sizes(struct tune_loss *l, const struct tune_model_config *config, const struct tune_device *dev,
                      enum tune_dtype activations, int64_t N)
{
    l->dtype = activations;
    l->C = config->hidden;
    l->V = config->vocabulary;
    l->scale = 1 / config->logits_scaling;
    l->N = N;
    l->chunk = tune_model_logit_rows(dev, config, N);
}

int64_t tune_loss_bytes(const struct tune_model_config *config, const struct tune_device *dev, enum tune_dtype activations,
                        int64_t N, bool training)
{
    struct tune_loss l = {0};
    struct tune_arena count = {0};
    set_sizes(&l, config, dev, activations, N);
    set_addresses(&l, &count, training);
    return count.used;
}

struct tune_loss *tune_loss_new(struct tune_model *m, bool training)
{
    struct tune_loss *l = tune_zeroed(1, sizeof *l, "the loss");
    if (!l)
        return NULL;
    l->m = m;
    l->dev = tune_model_device(m);
    set_sizes(l, tune_model_config(m), l->dev, tune_model_dtype(m), tune_model_max_tokens(m));
    struct tune_arena count = {0};
    set_addresses(l, &count, training);
    l->memory_bytes = count.used;
    l->memory = tune_device_alloc(l->dev, l->memory_bytes, "the loss");
    if (!l->memory.at) {
        tune_loss_free(l);
        return NULL;
    }
    set_addresses(l, &(struct tune_arena){l->memory, 0}, training);
    return l;
}

void tune_loss_free(struct tune_loss *l)
{
    if (!l)
        return;
    tune_device_free(l->dev, l->memory, l->memory_bytes);
    free(l->host_logits);
    free(l->numbers);
    free(l);
}

void tune_loss_smooth(struct tune_loss *l, double smoothing)
{
    l->smoothing = smoothing;
}

/* ---- chunks ---- */

/* Check that hidden belongs to this batch, and that the model has this batch on the device. */
static int check(const struct tune_loss *l, const struct tune_tensor *hidden, const struct tune_batch *b,
                 struct tune_model_labels *labels)
{
    int64_t N = (int64_t)b->B * b->T;
    if (N <= l->N && hidden->ndim == 2 && hidden->shape[0] == N && hidden->shape[1] == l->C && hidden->dtype == l->dtype)
        return tune_model_labels(l->m, b, labels);
    char text[64];
    return tune_error_set(
        "loss: hidden is %s%s for a batch of %d rows of %d; expected %s [%lld, %lld], at most %lld positions",
        tune_dtype_name(hidden->dtype), tune_shape_text(hidden->ndim, hidden->shape, text, sizeof text), b->B, b->T,
        tune_dtype_name(l->dtype), (long long)N, (long long)l->C, (long long)l->N);
}

static int begin(struct tune_loss *l, const struct tune_model_labels *labels, const struct tune_batch *batch,
                 struct tune_record *record)
{
    int64_t n = labels->rows.shape[0], N = (int64_t)batch->B * batch->T;
    l->labels = *labels;
    l->next = 0;
    l->chunks = (n + l->chunk - 1) / l->chunk;
    if (l->training) {
        l->dhidden_tensor = tune_tensor_2d(l->dhidden, l->dtype, N, l->C);
        TRY(tune_zero(l->dev, &l->dhidden_tensor));
    }
    if (!record)
        return 0;
    TRY(tune_record_count(record, batch));
    return tune_add_labels(l->dev, tune_record_step(record), (double)n, (double)l->chunks);
}

/* The number of labels in chunk i; *at: the first one. All chunks but the last have one size, for
 * any number of labels: a GPU chooses an algorithm for each shape of a product. */
static int64_t part_of(const struct tune_loss *l, int64_t i, int64_t *at)
{
    int64_t labels = l->labels.rows.shape[0];
    *at = l->chunk * i;
    return labels - *at < l->chunk ? labels - *at : l->chunk;
}

/* Gather and project labels [at, at + n) of the batch. */
static int project(struct tune_loss *l, const struct tune_tensor *hidden, int64_t at, int64_t n, struct tune_chunk *chunk)
{
    struct tune_tensor w, dw, h = tune_tensor_2d(l->h, l->dtype, n, l->C);
    chunk->rows = tune_tensor_part(&l->labels.rows, at, n);
    chunk->labels = tune_tensor_part(&l->labels.labels, at, n);
    chunk->host_rows = l->labels.host_rows + at;
    chunk->host_labels = l->labels.host_labels + at;
    chunk->logits = tune_tensor_2d(l->logits, TUNE_F32, n, l->V);
    chunk->loss = l;
    chunk->host = NULL;
    int unit = tune_model_output_unit(l->m);
    TRY(tune_gather(l->dev, &h, hidden, &chunk->rows));
    TRY(tune_unit_take(l->m, unit));
    tune_model_output_weight(l->m, &w, &dw);
    l->dev->doing.what = "lm_head";
    TRY(tune_unit_done(l->m, unit, tune_gemm(l->dev, &chunk->logits, &h, false, &w, true, l->scale, 0, l->dtype)));
    l->dev->doing.what = "";
    return 0;
}

int tune_loss_chunk(struct tune_loss *l, const struct tune_tensor *hidden, const struct tune_batch *batch, struct tune_record *record,
                    struct tune_chunk *chunk)
{
    tune_device_does(l->dev, l->training ? TUNE_LOSS : TUNE_EVALUATION, -1, "");
    struct tune_model_labels now;
    TRY(check(l, hidden, batch, &now));
    if (l->next == 0 || now.forward != l->labels.forward) /* the previous batch was not finished */
        TRY(begin(l, &now, batch, record));
    if (l->next == l->chunks) {
        l->next = 0;
        return 0;
    }
    int64_t at, n = part_of(l, l->next++, &at);
    chunk->step = record ? tune_record_step(record) : l->scalars;
    TRY(project(l, hidden, at, n, chunk));
    return 1;
}

int tune_cross_entropy(struct tune_chunk *chunk, const struct tune_tensor *weights)
{
    return tune_cross_entropy_rows(chunk->loss->dev, &chunk->logits, chunk->step, NULL, &chunk->labels, weights, &chunk->rows,
                                   chunk->loss->smoothing, true);
}

int tune_cross_entropy_gradient(struct tune_chunk *chunk, const struct tune_tensor *weights)
{
    struct tune_loss *l = chunk->loss; /* the sum goes to its own scalars, which nobody reads */
    return tune_cross_entropy_rows(l->dev, &chunk->logits, l->scalars, NULL, &chunk->labels, weights, &chunk->rows, 0, true);
}

int tune_chunk_done(struct tune_chunk *chunk)
{
    struct tune_loss *l = chunk->loss;
    struct tune_tensor w, dw, h = tune_tensor_2d(l->h, l->dtype, chunk->rows.shape[0], l->C);
    struct tune_tensor dh = tune_tensor_2d(l->dh, l->dtype, chunk->rows.shape[0], l->C);
    if (!l->training)
        return tune_error_set("this loss was made for evaluation; tune_loss_new(model, true) makes one that trains");
    if (chunk->host && chunk->host == l->host_logits)
        TRY(tune_device_upload(l->dev, l->logits, chunk->host, tune_tensor_bytes(&chunk->logits)));
    chunk->host = NULL;
    int unit = tune_model_output_unit(l->m);
    TRY(tune_unit_take(l->m, unit));
    tune_model_output_weight(l->m, &w, &dw);
    l->dev->doing.what = "lm_head";
    TRY(tune_unit_done(l->m, unit, tune_linear_backward(l->dev, &dh, dw.data.at ? &dw : NULL, NULL, &chunk->logits, &h, &w, l->scale,
                                                        0, l->dtype)));
    l->dev->doing.what = "";
    return tune_scatter(l->dev, &l->dhidden_tensor, &dh, &chunk->rows);
}

struct tune_tensor *tune_loss_dhidden(struct tune_loss *l)
{
    return &l->dhidden_tensor;
}

float *tune_chunk_host(struct tune_chunk *chunk)
{
    struct tune_loss *l = chunk->loss;
    void *there;
    if (chunk->host)
        return chunk->host;
    if (tune_device_in_place(l->dev, l->logits, &there) < 0)
        return NULL;
    if (there)
        return chunk->host = there;
    if (!l->host_logits && !(l->host_logits = tune_zeroed((size_t)(l->chunk * l->V), sizeof *l->host_logits, "a copy of the logits")))
        return NULL;
    if (tune_device_download(l->dev, l->host_logits, l->logits, tune_tensor_bytes(&chunk->logits)) < 0 || tune_device_sync(l->dev) < 0)
        return NULL;
    return chunk->host = l->host_logits;
}

int tune_chunk_add_loss(struct tune_chunk *chunk, double loss)
{
    return tune_add_loss(chunk->loss->dev, chunk->step, loss);
}

/* A buffer of N doubles; NULL with an error. */
static void *numbers(struct tune_loss *l)
{
    if (!l->numbers)
        l->numbers = tune_zeroed((size_t)l->N, sizeof(double), "the numbers of %lld positions", (long long)l->N);
    return l->numbers;
}

int tune_chunk_each(struct tune_chunk *chunk, struct tune_chunk *other, tune_row_loss *loss, void *context)
{
    struct tune_loss *l = chunk->loss;
    int64_t V = l->V, n = chunk->rows.shape[0];
    if (other && other->loss->V != V)
        return tune_error_set("the second model has a vocabulary of %lld, this one of %lld; they do not go together",
                              (long long)other->loss->V, (long long)V);
    float *x = tune_chunk_host(chunk), *y = other && x ? tune_chunk_host(other) : NULL;
    double *losses = numbers(l), sum = 0;
    if (!x || (other && !y) || !losses)
        return -1;
#pragma omp parallel for schedule(static) num_threads(l->dev->threads)
    for (int64_t i = 0; i < n; i++)
        losses[i] = loss(&(struct tune_row){x + i * V, y ? y + i * V : NULL, V, chunk->host_labels[i], chunk->host_rows[i], context});
    /* in order, so the number of threads does not change the bits */
    for (int64_t i = 0; i < n; i++)
        sum += losses[i];
    return tune_chunk_add_loss(chunk, sum);
}

int tune_loss_project(struct tune_loss *other, const struct tune_tensor *hidden2, const struct tune_chunk *chunk,
                      struct tune_chunk *chunk2)
{
    struct tune_loss *l = chunk->loss;
    int64_t at = chunk->host_rows - l->labels.host_rows, n = chunk->rows.shape[0];
    struct tune_model_labels now;
    TRY(tune_model_same_labels(other->m, l->m, &now));
    if (now.forward != other->labels.forward)
        other->next = 0; /* it was in the middle of another batch */
    other->labels = now;
    chunk2->step = chunk->step;
    if (n <= other->chunk)
        return project(other, hidden2, at, n, chunk2);
    return tune_error_set("a chunk of %lld labels, the other model's loss has room for %lld", (long long)n,
                          (long long)other->chunk);
}

/* ---- whole batches ---- */

int tune_loss_forward_backward(struct tune_loss *l, const struct tune_tensor *hidden, const struct tune_batch *batch,
                               struct tune_record *record, struct tune_tensor **dhidden)
{
    struct tune_chunk chunk;
    int more;
    while ((more = tune_loss_chunk(l, hidden, batch, record, &chunk)) > 0) {
        TRY(tune_cross_entropy(&chunk, NULL));
        TRY(tune_chunk_done(&chunk));
    }
    *dhidden = tune_loss_dhidden(l);
    return more;
}

/* Compute the log-probabilities of all labels. Their sum goes to the loss's own scalars, and each
 * to its position in log_probs (may be NULL). */
static int evaluate(struct tune_loss *l, const struct tune_tensor *hidden, const struct tune_batch *batch, struct tune_tensor *log_probs)
{
    struct tune_tensor scalars = tune_tensor_1d(l->scalars, TUNE_U8, sizeof(struct tune_scalars));
    tune_device_does(l->dev, TUNE_EVALUATION, -1, "");
    TRY(check(l, hidden, batch, &l->labels));
    l->next = 0;
    l->chunks = (l->labels.rows.shape[0] + l->chunk - 1) / l->chunk;
    TRY(tune_zero(l->dev, &scalars));
    if (log_probs)
        TRY(tune_zero(l->dev, log_probs));
    for (int64_t i = 0; i < l->chunks; i++) {
        struct tune_chunk chunk;
        int64_t at, n = part_of(l, i, &at);
        TRY(project(l, hidden, at, n, &chunk));
        struct tune_tensor probs = tune_tensor_1d(tune_address_plus(l->log_probs, l->N * 4), TUNE_F32, n);
        TRY(tune_cross_entropy_rows(l->dev, &chunk.logits, l->scalars, &probs, &chunk.labels, NULL, NULL, 0, false));
        if (!log_probs)
            continue;
        struct tune_tensor to = tune_tensor_2d(log_probs->data, TUNE_F32, log_probs->shape[0], 1);
        struct tune_tensor from = tune_tensor_2d(probs.data, TUNE_F32, n, 1);
        TRY(tune_scatter(l->dev, &to, &from, &chunk.rows));
    }
    return 0;
}

int tune_loss_forward(struct tune_loss *l, const struct tune_tensor *hidden, const struct tune_batch *batch,
                      double *loss_sum)
{
    double sum;
    TRY(evaluate(l, hidden, batch, NULL));
    TRY(tune_device_download(l->dev, &sum, TUNE_SCALAR(l->scalars, loss_sum).data, sizeof sum));
    TRY(tune_device_sync(l->dev));
    *loss_sum += sum;
    return 0;
}

int tune_loss_log_probs(struct tune_loss *l, const struct tune_tensor *hidden, const struct tune_batch *batch,
                        struct tune_tensor *log_probs)
{
    *log_probs = tune_tensor_1d(l->log_probs, TUNE_F32, hidden->shape[0]);
    return evaluate(l, hidden, batch, log_probs);
}

int tune_loss_weights(struct tune_loss *l, const struct tune_batch *batch, const float *factors, struct tune_tensor *weights)
{
    int64_t N = (int64_t)batch->B * batch->T;
    if (N > l->N)
        return tune_error_set("%lld positions, the loss has room for %lld", (long long)N, (long long)l->N);
    *weights = tune_tensor_1d(l->log_probs, TUNE_F32, N);
    return tune_device_upload(l->dev, l->log_probs, factors, tune_tensor_bytes(weights));
}

/* ---- whole rows ---- */

static int one_text_a_row(const struct tune_batch *batch)
{
    if (!batch->starts)
        return 0;
    return tune_error_usage("a loss of whole rows cannot use a packed batch, whose rows hold several texts; "
                               "train without packing");
}

const float *tune_loss_log_probs_host(struct tune_loss *l, const struct tune_tensor *hidden, const struct tune_batch *batch)
{
    struct tune_tensor on_device;
    float *p = numbers(l);
    bool good = p && tune_loss_log_probs(l, hidden, batch, &on_device) == 0 && tune_to_host(l->dev, &on_device, p) == 0;
    return good ? p : NULL;
}

int tune_loss_row_log_probs(struct tune_loss *l, const struct tune_tensor *hidden, const struct tune_batch *batch, double *sums)
{
    TRY(one_text_a_row(batch));
    const float *p = tune_loss_log_probs_host(l, hidden, batch);
    if (!p)
        return -1;
    for (int b = 0; b < batch->B; b++) {
        sums[b] = 0;
        for (int t = 0; t < batch->T; t++)
            sums[b] += *p++;
    }
    return 0;
}

int tune_loss_row_weights(struct tune_loss *l, const struct tune_batch *batch, const double *factors, struct tune_tensor *weights)
{
    int64_t N = (int64_t)batch->B * batch->T;
    float *f = numbers(l);
    TRY(one_text_a_row(batch));
    for (int64_t i = 0; f && i < N && i < l->N; i++)
        f[i] = (float)factors[i / batch->T];
    return f ? tune_loss_weights(l, batch, f, weights) : -1;
}
