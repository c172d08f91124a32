/* test_shard.c - ranks that share out what is trained, as threads of this process: the bits of ranks that do not, the memory of
 * each, and work of rank 0 that needs what others own. */
#include "comm/crew.h"
#include "far/far.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "core/try.h"
#include "losses/loss.h"
#include "models/init.h"
#include "models/lora.h"
#include "optimizers/optimizer.h"

enum { B = 2, T = 7, V = 53, STEPS = 3, RANKS = 5 };

/* Sizes that no number of ranks divides; norms have 6 numbers. */
static int make_model(const char *folder, bool tied)
{
    static const char text[] =
        "{\"model_type\": \"llama\", \"vocab_size\": 53, \"hidden_size\": 6, \"intermediate_size\": 11, \"num_hidden_layers\": 3, "
        "\"num_attention_heads\": 3, \"num_key_value_heads\": 1, \"head_dim\": 2, \"attention_bias\": true, \"initializer_range\": 0.3}";
    cJSON *config = cJSON_Parse(text);
    cJSON_AddBoolToObject(config, "tie_word_embeddings", tied);
    int status = tune_model_init(folder, config, "test", 11, TUNE_F32, NULL, NULL);
    cJSON_Delete(config);
    return status;
}

static int begin(void **state)
{
    TRY(test_home_begin(state));
    TRY(make_model("model", true));
    return make_model("untied", false);
}

/* A way to train. The results: all numbers of rank 0, and the bytes of each rank's device. */
struct way {
    enum tune_shard shard;
    bool lora, sgd, checkpointing, far; /* far: on a device whose memory the host cannot read */
    enum tune_dtype storage; /* of the base under adapters */
    double ema, clip;
    float *numbers;
    int64_t count, moments[MOST], planned[MOST], bytes[MOST], planned_bytes[MOST];
    bool one;           /* micro-batch a step */
    const char *folder; /* NULL: "model", whose embedding is tied */
};

struct rank {
    struct tune_device *dev;
    struct tune_model *m;
    struct tune_loss *loss;
    struct tune_record *sums;
    struct tune_optimizer *opt;
};

static int open_rank(struct rank *r, struct tune_comm *c, const struct way *w)
{
    static const struct tune_lora_options lora = {.r = 3, .alpha = 6, .targets = "all-linear", .modules_to_save = "embed_tokens"};
    const struct tune_optimizer_options o = {.kind = w->sgd ? TUNE_SGD : TUNE_ADAMW, .beta1 = .9, .beta2 = .99, .eps = 1e-8,
                                             .weight_decay = .1, .momentum = .9, .ema = w->ema};
    *r = (struct rank){.dev = w->far ? tune_far_open(1) : tune_device_open("cpu", 1)};
    TRY(r->dev ? 0 : -1);
    r->m = tune_model_load_shared(w->folder ? w->folder : "model", r->dev, TUNE_F32, w->lora ? w->storage : TUNE_TRAINED, 0, c, w->shard);
    TRY(r->m ? 0 : -1);
    TRY(w->lora ? tune_lora_add(r->m, &lora, 5) : 0);
    TRY(tune_model_reserve(r->m, B, T, TUNE_FOR_TRAINING | (w->checkpointing ? TUNE_CHECKPOINTING : 0)));
    r->loss = tune_loss_new(r->m, true);
    r->sums = tune_record_new(r->dev, 1);
    TRY(r->loss && r->sums ? 0 : -1);
    r->opt = tune_optimizer_new(r->m, &o);
    return r->opt ? 0 : -1;
}

static void close_rank(struct rank *r)
{
    tune_optimizer_free(r->opt);
    tune_record_free(r->sums);
    tune_loss_free(r->loss);
    tune_model_free(r->m);
    tune_device_close(r->dev);
}

/* A step of two micro-batches, other ones on each rank. Rank 1 has no label in the first. */
static int step(struct rank *r, int rank, int64_t number, const struct way *w)
{
    int micros = w->one ? 1 : 2;
    TRY(tune_model_zero_grad(r->m, r->sums));
    for (int k = 0; k < micros; k++) {
        int32_t ids[B * T], labels[B * T], lengths[B] = {T, T};
        struct tune_batch batch = {.B = B, .T = T, .ids = ids, .labels = labels, .lengths = lengths, .tokens = B * T, .last = k == micros - 1};
        struct tune_tensor *hidden, *dhidden;
        for (int i = 0; i < B * T; i++) {
            uint64_t at = (uint64_t)(((number * 2 + k) * RANKS + rank) * B * T + i);
            ids[i] = (int32_t)(tune_random_u64(11, 1, at) % V);
            labels[i] = (rank == 1 && k == 0) || tune_random_uniform(11, 2, at) < .3 ? TUNE_NO_LABEL : (int32_t)(tune_random_u64(11, 3, at) % V);
            batch.label_count += labels[i] != TUNE_NO_LABEL;
        }
        TRY(tune_model_forward(r->m, &batch, &hidden));
        TRY(tune_loss_forward_backward(r->loss, hidden, &batch, r->sums, &dhidden));
        TRY(tune_model_backward(r->m, &batch, dhidden));
    }
    const struct tune_done_step *done;
    TRY(tune_model_reduce(r->m, r->sums));
    TRY(tune_optimizer_scale(r->opt, w->clip, r->sums));
    TRY(tune_optimizer_step(r->opt, 1e-2, r->sums));
    return tune_record_read(r->sums, &done) == 1 ? 0 : -1;
}

static const int kinds[] = {TUNE_WEIGHT, TUNE_MOMENT_1, TUNE_MOMENT_2, TUNE_EXTRA};

/* All numbers of these kinds, one parameter behind the other. */
static int read_all(struct tune_model *m, float **numbers, int64_t *count)
{
    const struct tune_parameters *p = tune_model_parameters(m);
    int64_t total = 4 * tune_parameters_total(p);
    float *to = *numbers = calloc((size_t)total, sizeof *to);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int i = 0; i < p->count; i++)
            if (tune_model_has(m, &p->at[i], kinds[k])) {
                TRY(tune_model_read(m, &p->at[i], kinds[k], 0, p->at[i].count, to));
                to += p->at[i].count;
            }
    *count = to - *numbers;
    return 0;
}

/* A pass of rank 0 alone: its hidden states go behind the numbers. */
static int infer_alone(struct rank *r, struct way *w)
{
    int32_t ids[B * T] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7}, lengths[B] = {T, T};
    struct tune_batch batch = {.B = B, .T = T, .ids = ids, .lengths = lengths, .tokens = B * T};
    struct tune_tensor *hidden;
    float *more = realloc(w->numbers, (size_t)(w->count + B * T * 6) * sizeof *more);
    TRY(more ? 0 : -1);
    w->numbers = more;
    TRY(tune_model_infer(r->m, &batch, &hidden));
    w->count += B * T * 6;
    return tune_to_host(r->dev, hidden, w->numbers + w->count - B * T * 6);
}

/* What rank 0 does alone: reads, and has the averages as weights meanwhile. */
static int read_alone(struct rank *r, struct tune_comm *c, int rank, struct way *w)
{
    float *again = NULL;
    int64_t count = 0;
    int status = 0;
    if (rank == 0) {
        tune_model_alone(r->m);
        status = read_all(r->m, &w->numbers, &w->count);
        for (int k = 0; k < 2 && status == 0; k++) { /* and back */
            status = tune_model_exchange(r->m);
            free(again);
            again = NULL;
            if (status == 0)
                status = read_all(r->m, &again, &count);
        }
        if (status == 0 && (count != w->count || memcmp(again, w->numbers, (size_t)count * sizeof *again)))
            status = tune_error_set("two exchanges changed the numbers");
        if (status == 0)
            status = infer_alone(r, w);
        free(again);
    }
    return status < 0 ? -1 : tune_model_together(r->m, c, "a test");
}

static int train(struct tune_comm *c, int rank, void *context)
{
    struct way *w = context;
    struct rank r;
    int status = open_rank(&r, c, w);
    if (status == 0) {
        int64_t all = tune_model_parameters(r.m)->gradients * 4, before = r.dev->bytes;
        struct tune_model_adapted adapted = {tune_model_lora(r.m), w->storage};
        struct tune_model_shares shares;
        status = tune_model_shares(&shares, tune_model_config(r.m), w->lora ? &adapted : NULL, w->shard, rank, tune_comm_size(c));
        w->planned[rank] = shares.owned;
        w->bytes[rank] = before;
        w->planned_bytes[rank] = shares.weights + shares.gradients + shares.gathered + (w->sgd ? 1 : 2) * shares.owned + (w->ema > 0 ? shares.owned : 0);
        tune_model_release_state(r.m, TUNE_MOMENT_1);
        w->moments[rank] = before - r.dev->bytes;
        status = status < 0 || w->planned[rank] > all ? -1 : tune_model_allocate_state(r.m, TUNE_MOMENT_1, "moments");
    }
    for (int64_t k = 0; k < STEPS && status == 0; k++)
        status = step(&r, rank, k, w);
    if (status == 0)
        status = read_alone(&r, c, rank, w);
    close_rank(&r);
    return status;
}

static void trained(struct way *w, int size)
{
    struct crew crew = run(size, NULL, 60, train, w);
    tune_threads_free(crew.world);
    for (int r = 0; r < size; r++)
        if (crew.status[r] < 0)
            fail_msg("rank %d of %d: %s", r, size, crew.error[r]);
}

/* Without clipping each number is a sum over the ranks in their order: equal bits. With it, the norm is added in another order. */
static void same_numbers(const struct way *a, const struct way *b, bool bits)
{
    assert_true(a->count > 1000);
    assert_int_equal(a->count, b->count);
    if (bits)
        assert_memory_equal(a->numbers, b->numbers, (size_t)a->count * sizeof *a->numbers);
    for (int64_t i = 0; i < a->count; i++)
        if (!(fabsf(a->numbers[i] - b->numbers[i]) <= 1e-5f * (1 + fabsf(a->numbers[i]))))
            fail_msg("number %lld: %g and %g", (long long)i, (double)a->numbers[i], (double)b->numbers[i]);
}

static void as_without_shards(void **state)
{
    (void)state;
    static const struct way ways[] = {{.ema = .8}, {.lora = true, .ema = .8}, {.clip = .05}, {.sgd = true, .clip = 1e9},
                                      {.far = true, .ema = .8}, {.far = true, .lora = true}};
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++)
        for (int size = 1; size <= RANKS; size++) {
            struct way whole = ways[k], parts = ways[k];
            parts.shard = TUNE_SHARD_OPTIMIZER;
            trained(&whole, size);
            trained(&parts, size);
            same_numbers(&whole, &parts, ways[k].clip == 0);
            int64_t sum = 0, all = whole.moments[0];
            for (int r = 0; r < size; r++) {
                assert_int_equal(parts.moments[r], parts.planned[r]);
                assert_int_equal(whole.moments[r], whole.planned[r]);
                sum += parts.moments[r];
                /* a share of each unit's numbers, and at most 64 bytes more for each span */
                assert_true(parts.moments[r] <= all / size + 8 * 68);
            }
            assert_true(sum >= all);
            free(whole.numbers), free(parts.numbers);
        }
}

/* With weights and gradients shared out, too. The sums of one micro-batch have the bits of the whole; with more, each is added up over
 * the ranks before the next comes. */
static void all_of_it(void **state)
{
    (void)state;
    static const struct way ways[] = {
        {.one = true, .ema = .8}, {.one = true, .folder = "untied", .checkpointing = true}, {.ema = .8}, {.one = true, .clip = .05, .folder = "untied"},
        {.one = true, .lora = true, .storage = TUNE_F32, .ema = .8}, {.one = true, .lora = true, .storage = TUNE_NF4, .folder = "untied"},
        {.one = true, .lora = true, .storage = TUNE_BF16, .checkpointing = true}, {.sgd = true, .clip = 1e9},
        {.far = true, .one = true, .ema = .8, .folder = "untied"}, {.far = true, .one = true, .lora = true, .storage = TUNE_NF4},
    };
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++)
        for (int size = 1; size <= RANKS; size++) {
            struct way whole = ways[k], parts = ways[k];
            parts.shard = TUNE_FSDP;
            trained(&whole, size);
            trained(&parts, size);
            same_numbers(&whole, &parts, ways[k].clip == 0 && ways[k].one);
            for (int r = 0; r < size; r++) {
                assert_int_equal(parts.moments[r], parts.planned[r]);
                assert_int_equal(whole.bytes[r] - parts.bytes[r], whole.planned_bytes[r] - parts.planned_bytes[r]);
            }
            free(whole.numbers), free(parts.numbers);
        }
}

/* One step of the untied model. What it gathers (w) and adds up (g), unit by unit, in order. */
static int note_order(struct tune_comm *c, int rank, void *context)
{
    const struct way w = {.shard = TUNE_FSDP, .one = true, .folder = "untied"};
    struct tune_collective_record records[64];
    struct rank r;
    char *text = context;
    int status = open_rank(&r, c, &w);
    if (status == 0)
        status = step(&r, rank, 0, &w);
    int count = status == 0 && rank == 0 ? tune_comm_history(c, records, 64) : 0;
    for (int i = 0, unit; i < count; i++) {
        if (sscanf(records[i].what, "weights of unit %d", &unit) == 1)
            sprintf(text + strlen(text), "w%d ", unit);
        if (sscanf(records[i].what, "gradients of unit %d", &unit) == 1)
            sprintf(text + strlen(text), "g%d ", unit);
    }
    close_rank(&r);
    return status;
}

/* Layers 2 and 3 are still whole when backward comes to them. Layer 1 is gathered while backward is in layer 2. */
static void one_unit_ahead(void **state)
{
    (void)state;
    char text[512] = "";
    struct crew crew = run(2, NULL, 60, note_order, text);
    tune_threads_free(crew.world);
    assert_int_equal(crew.status[0], 0);
    assert_int_equal(crew.status[1], 0);
    assert_string_equal(text, "w0 w1 w2 w3 w4 g4 g3 w1 g2 g1 g0 ");
}

/* Numbers that are written are read again, whoever owns them, in stretches that cross owners. */
static int write_parts(struct tune_comm *c, int rank, void *context)
{
    struct rank r;
    (void)rank;
    const struct way *w = context;
    int status = open_rank(&r, c, w), kind = w->shard == TUNE_FSDP ? TUNE_WEIGHT : TUNE_MOMENT_2;
    for (int i = 0; status == 0 && i < tune_model_parameters(r.m)->count; i++) {
        const struct tune_parameter *p = &tune_model_parameters(r.m)->at[i];
        float x[512], got[512];
        int64_t n = p->count < 512 ? p->count : 512, half = n / 2 + 1;
        for (int64_t k = 0; k < n; k++)
            x[k] = (float)(k + 1000 * i);
        status = tune_model_write(r.m, p, kind, 0, n, x) || tune_model_read(r.m, p, kind, 0, n, got) ||
                 memcmp(x, got, (size_t)n * 4) || tune_model_write(r.m, p, kind, half, n - half, x) ||
                 tune_model_read(r.m, p, kind, half - 1, n - half + 1, got) || got[0] != (float)(half - 1 + 1000 * i) ||
                 memcmp(x, got + 1, (size_t)(n - half) * 4) ? -1 : 0;
        if (status == 0 && tune_model_tensor(r.m, p, TUNE_MOMENT_2).data.at)
            status = tune_error_set("a moment that lies on several ranks has an address");
        if (status == 0 && tune_model_read(r.m, p, kind, 0, p->count + 1, got) == 0)
            status = tune_error_set("a read beyond the end");
    }
    close_rank(&r);
    return status;
}

static void read_and_written(void **state)
{
    (void)state;
    for (int shard = TUNE_SHARD_OPTIMIZER; shard <= TUNE_FSDP; shard++) {
        struct crew crew = run(3, NULL, 60, write_parts, &(struct way){.shard = (enum tune_shard)shard});
        tune_threads_free(crew.world);
        for (int r = 0; r < 3; r++)
            if (crew.status[r] < 0)
                fail_msg("rank %d: %s", r, crew.error[r]);
    }
}

/* Rank 1 does not come to serve rank 0: an error, no endless wait. */
static int desert(struct tune_comm *c, int rank, void *context)
{
    struct way w = {.shard = *(enum tune_shard *)context};
    struct rank r;
    int status = open_rank(&r, c, &w);
    if (status == 0)
        status = rank == 1 ? tune_error_set("it ended") : read_alone(&r, c, rank, &w);
    free(w.numbers);
    close_rank(&r);
    return status;
}

static void a_rank_ends(void **state)
{
    (void)state;
    for (enum tune_shard shard = TUNE_SHARD_OPTIMIZER; shard <= TUNE_FSDP; shard++) {
        struct crew crew = run(3, NULL, 60, desert, &shard);
        tune_threads_free(crew.world);
        for (int r = 0; r < 3; r++)
            assert_int_equal(crew.status[r], -1);
        assert_non_null(strstr(crew.error[0], "rank 1 of 3"));
        assert_non_null(strstr(crew.error[2], "rank 1 of 3"));
    }
}

/* ---- what is refused ---- */

/* Two units that have one memory are not there at a time. */
static int two_units(struct tune_device *dev, struct tune_comm *c)
{
    struct tune_model *m = tune_model_load_shared("model", dev, TUNE_F32, TUNE_TRAINED, 0, c, TUNE_FSDP);
    bool good = m && tune_unit_take(m, 1) == 0 && tune_unit_take(m, 2) == 0 && tune_unit_take(m, 3) < 0 &&
                strstr(tune_error_message(), "units 1 and 3 are wanted at a time") && tune_unit_release(m, 1) == 0 && tune_unit_take(m, 3) == 0 &&
                tune_unit_release(m, 3) == 0 && tune_unit_release(m, 2) == 0;
    tune_model_free(m);
    return good ? 0 : -1;
}

static int refuse(struct tune_comm *c, int rank, void *context)
{
    const struct tune_optimizer_options muon = {.kind = TUNE_MUON, .beta1 = .9, .beta2 = .99, .eps = 1e-8, .muon_momentum = .9};
    struct tune_device *dev = tune_device_open("cpu", 1);
    struct tune_model *m = dev ? tune_model_load("model", dev, TUNE_F32) : NULL;
    int status = m ? 0 : -1;
    (void)rank, (void)context;
    if (status == 0) {
        tune_model_ranks(m, c);
        bool good = tune_model_shard(m, TUNE_FSDP) < 0 && strstr(tune_error_message(), "shared out as they are read") &&
                    two_units(dev, c) == 0 &&
                    tune_model_shard(m, TUNE_SHARD_OPTIMIZER) == 0 && tune_model_is_sharded(m) && !tune_optimizer_new(m, &muon) &&
                    strstr(tune_error_message(), "updates whole matrices") && tune_model_extra(m, "ema") > 0 &&
                    tune_model_averages(m) < 0 && strstr(tune_error_message(), "are there already") &&
                    tune_model_shard(m, TUNE_SHARD_OPTIMIZER) < 0 && strstr(tune_error_message(), "before there are gradients");
        if (!good)
            status = tune_error_prefix("not refused as it should be: ");
    }
    tune_model_free(m);
    tune_device_close(dev);
    return status;
}

static void refused(void **state)
{
    (void)state;
    struct crew crew = run(2, NULL, 60, refuse, NULL);
    tune_threads_free(crew.world);
    for (int r = 0; r < 2; r++)
        if (crew.status[r] < 0)
            fail_msg("rank %d: %s", r, crew.error[r]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_without_shards), cmocka_unit_test(all_of_it), cmocka_unit_test(one_unit_ahead), cmocka_unit_test(read_and_written), cmocka_unit_test(a_rank_ends), cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, begin, test_home_end);
}
