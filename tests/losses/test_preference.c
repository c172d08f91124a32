/* test_preference.c - losses of pairs and of single answers against their formulas and central differences; the reference's table and
 * file, and the kl of mismatched answers. */
#include <inttypes.h>

#include "values.h"
#include "far/far.h"

#include "core/random.h"
#include "evaluators/reference.h"
#include "files/safetensors.h"
#include "losses/loss.h"
#include "losses/preference.h"
#include "models/lora.h"
#include "optimizers/optimizer.h"

static double log_sigmoid(double x)
{
    return -log(1 + exp(-x));
}

/* The formulas as the papers have them. */
static double naive(const struct tune_preference_options *o, const struct tune_pair *p)
{
    double c = p->chosen - p->reference_chosen, r = p->rejected - p->reference_rejected;
    double a = p->chosen / (double)p->chosen_tokens, b = p->rejected / (double)p->rejected_tokens, e = o->label_smoothing, x;
    if (o->length_normalize || o->kind == TUNE_PREFERENCE_IPO) {
        c /= (double)p->chosen_tokens;
        r /= (double)p->rejected_tokens;
    }
    switch (o->kind) {
    case TUNE_PREFERENCE_HINGE: return 1 - o->beta * (c - r) > 0 ? 1 - o->beta * (c - r) : 0;
    case TUNE_PREFERENCE_IPO: return pow(c - r - 1 / (2 * o->beta), 2);
    case TUNE_PREFERENCE_ORPO: return -a - o->beta * log_sigmoid(log(exp(a) / (1 - exp(a))) - log(exp(b) / (1 - exp(b))));
    case TUNE_PREFERENCE_SIMPO: x = o->beta * (a - b) - o->gamma; break;
    default: x = o->beta * (c - r);
    }
    return -(1 - e) * log_sigmoid(x) - e * log_sigmoid(-x);
}

static double draw(uint64_t i, double low, double high)
{
    return low + (high - low) * tune_random_uniform(5, 1, i);
}

static const struct tune_preference_options all[] = {
    {TUNE_PREFERENCE_SIGMOID, 0.1, 0, 0.5, false, 1, 1}, {TUNE_PREFERENCE_SIGMOID, 0.3, 0.2, 0.5, false, 1, 1},
    {TUNE_PREFERENCE_SIGMOID, 2, 0.1, 0.5, true, 1, 1},  {TUNE_PREFERENCE_HINGE, 0.1, 0, 0.5, false, 1, 1},
    {TUNE_PREFERENCE_HINGE, 1, 0, 0.5, true, 1, 1},      {TUNE_PREFERENCE_IPO, 0.2, 0, 0.5, false, 1, 1},
    {TUNE_PREFERENCE_SIMPO, 2, 0, 0.7, false, 1, 1},     {TUNE_PREFERENCE_SIMPO, 2, 0.3, 0.7, false, 1, 1},
    {TUNE_PREFERENCE_ORPO, 0.5, 0, 0.5, false, 1, 1},
};
enum { ALL = sizeof all / sizeof *all };

static void formulas(void **state)
{
    (void)state;
    for (int k = 0; k < ALL; k++)
        for (uint64_t i = 0; i < 50; i++) {
            struct tune_pair p = {draw(8 * i, -60, -1), draw(8 * i + 1, -60, -1), draw(8 * i + 2, -60, -1), draw(8 * i + 3, -60, -1),
                                  1 + (int64_t)draw(8 * i + 4, 0, 30), 1 + (int64_t)draw(8 * i + 5, 0, 30)};
            double d[2], rewards[2], loss = tune_preference_pair(&all[k], &p, d, rewards), want = naive(&all[k], &p), h = 1e-5;
            assert_true(fabs(loss - want) <= 1e-9 * (1 + fabs(want)));
            for (int side = 0; side < 2; side++) {
                struct tune_pair up = p, down = p;
                *(side ? &up.rejected : &up.chosen) += h;
                *(side ? &down.rejected : &down.chosen) -= h;
                double central = (naive(&all[k], &up) - naive(&all[k], &down)) / (2 * h);
                assert_true(fabs(d[side] - central) <= 1e-6 * (1 + fabs(central)));
            }
            bool per_token = !tune_preference_needs_reference(&all[k]);
            double c = per_token ? p.chosen / (double)p.chosen_tokens : p.chosen - p.reference_chosen;
            assert_true(fabs(rewards[0] - all[k].beta * c) <= 1e-12 * fabs(rewards[0]));
            assert_true(tune_preference_pair(&all[k], &p, d, NULL) == loss);
        }
}

/* Passes besides training: in each step, or once for all epochs. */
static void passes(void **state)
{
    (void)state;
    const struct tune_preference_options kto = {.kind = TUNE_PREFERENCE_KTO}, sigmoid = {.kind = TUNE_PREFERENCE_SIGMOID},
                                         orpo = {.kind = TUNE_PREFERENCE_ORPO};
    assert_true(tune_preference_passes(&kto, true, 4) == 3 && tune_preference_passes(&kto, false, 4) == 2.25);
    assert_true(tune_preference_passes(&sigmoid, true, 4) == 1 && tune_preference_passes(&sigmoid, false, 4) == 0.25);
    assert_true(tune_preference_passes(&sigmoid, false, 0.5) == 1 && tune_preference_passes(&orpo, true, 4) == 0);
}

/* Where exp would overflow, and where an answer is certain. */
static void extremes(void **state)
{
    (void)state;
    for (int k = 0; k < ALL; k++)
        for (int sign = -1; sign <= 1; sign += 2) {
            struct tune_pair far = {-3000 - sign * 2900.0, -3000 + sign * 2900.0, -3000, -3000, 1, 1};
            double d[2], loss = tune_preference_pair(&all[k], &far, d, NULL);
            assert_true(isfinite(loss) && isfinite(d[0]) && isfinite(d[1]) && loss >= 0);
        }
    struct tune_pair certain = {0, -5, 0, 0, 4, 4};
    double d[2], loss = tune_preference_pair(&all[ALL - 1], &certain, d, NULL);
    assert_true(isfinite(loss) && isfinite(d[0]) && isfinite(d[1]));
}

static void refused(void **state)
{
    (void)state;
    struct tune_preference_options o = {.kind = TUNE_PREFERENCE_HINGE, .beta = 0.1, .label_smoothing = 0.1};
    assert_int_equal(tune_preference_check(&o, 2), -1);
    assert_error_has("`label_smoothing` is for the losses sigmoid and simpo, not for hinge");
    o = (struct tune_preference_options){.kind = TUNE_PREFERENCE_ORPO, .beta = 0.1, .length_normalize = true, .desirable_weight = 1,
                                         .undesirable_weight = 1};
    assert_int_equal(tune_preference_check(&o, 2), -1);
    assert_error_has("orpo always counts per token");
    for (int k = 0; k < ALL; k++)
        assert_ok(tune_preference_check(&all[k], 1));
    o = (struct tune_preference_options){.kind = TUNE_PREFERENCE_KTO, .beta = 0.1, .desirable_weight = 2, .undesirable_weight = 0.5};
    assert_ok(tune_preference_check(&o, 2));
    assert_int_equal(tune_preference_check(&o, 1), -1);
    assert_error_has("other rows of a micro-batch, so `batch_size` is at least 2, not 1");
    o.length_normalize = true;
    assert_int_equal(tune_preference_check(&o, 2), -1);
    assert_error_has("kto counts whole answers");
    o.length_normalize = false, o.kind = TUNE_PREFERENCE_SIGMOID;
    assert_int_equal(tune_preference_check(&o, 2), -1);
    assert_error_has("`desirable_weight` and `undesirable_weight` are for the loss kto, not for sigmoid");
}

/* KTO: the paper's equations 7 and 8, and their slope. kl is a constant of the batch. */
static void answers(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 400; i++) {
        struct tune_preference_options o = {.kind = TUNE_PREFERENCE_KTO, .beta = draw(5 * i, 0.01, 2), .desirable_weight = draw(5 * i + 1, 0, 3),
                                            .undesirable_weight = draw(5 * i + 2, 0, 3)};
        double score = draw(5 * i + 3, -20, 20), kl = i % 3 ? draw(5 * i + 4, 0, 9) : 0, h = 1e-5, value[3], d;
        bool desirable = i & 1;
        for (int k = -1; k <= 1; k++) {
            double away = score + k * h - kl;
            value[k + 1] = desirable ? o.desirable_weight * (1 - 1 / (1 + exp(-o.beta * away)))
                                     : o.undesirable_weight * (1 - 1 / (1 + exp(o.beta * away)));
        }
        double loss = tune_preference_answer(&o, desirable, score, kl, &d), central = (value[2] - value[0]) / (2 * h);
        assert_true(fabs(loss - value[1]) <= 1e-12 * (1 + loss));
        assert_true(fabs(d - central) <= 1e-8 * (1 + fabs(central)));
        assert_true(desirable ? d <= 0 : d >= 0);
        for (int sign = -1; sign <= 1; sign += 2) { /* where exp would overflow */
            loss = tune_preference_answer(&o, desirable, sign * 1e6, kl, &d);
            assert_true(isfinite(loss) && isfinite(d) && loss >= 0 && d == 0);
        }
    }
}

/* ---- batches ---- */

enum { B = 4, T = 6 };
static int32_t ids[B * T], labels[B * T], lengths[B] = {6, 5, 6, 4};
static const double chosen_first[B] = {1, 0, 1, 0}, chosen_last[B] = {0, 1, 0, 1};

static struct tune_batch pairs(void)
{
    for (int i = 0; i < B * T; i++) {
        int b = i / T, t = i % T;
        ids[i] = t < lengths[b] ? (7 * i + 3) % 61 : 0;
        labels[i] = t >= 2 && t + 1 < lengths[b] ? (7 * (i + 1) + 3) % 61 : TUNE_NO_LABEL;
    }
    return (struct tune_batch){.B = B, .T = T, .ids = ids, .labels = labels, .lengths = lengths, .sequences = 2, .label_of = chosen_first,
                               .tokens = 21, .label_count = 9, .row_count = 2};
}

static void batches(void **state)
{
    (void)state;
    static const double ours[B] = {-9, -12, -7, -4}, theirs[B] = {-10, -11, -6, -6};
    struct tune_batch batch = pairs();
    struct tune_preference_sums sums = {0};
    double factors[B], d[2], want = 0, rewards[2];
    const struct tune_preference_options *o = &all[2];
    assert_ok(tune_preference_batch(o, &batch, ours, theirs, 0, factors, NULL, &sums));
    for (int b = 0; b < B; b += 2) { /* 3 and 2 labels, 3 and 1 */
        struct tune_pair p = {ours[b], ours[b + 1], theirs[b], theirs[b + 1], 3, b ? 1 : 2};
        want += tune_preference_pair(o, &p, d, rewards);
        assert_true(factors[b] == -d[0] && factors[b + 1] == -d[1]);
    }
    assert_true(sums.loss == want && sums.count == 2 && sums.accurate.sum == 1 && sums.accurate.count == 2 && sums.kl.count == 0);
    assert_true(sums.chosen_log_prob.sum == -16 && sums.rejected_log_prob.sum == -16 && sums.margin.count == 2);
    assert_true(fabs(sums.chosen_reward.sum - 2 * (1 - 1)) < 1e-12 && fabs(sums.rejected_reward.sum - 2 * (-1 + 2)) < 1e-12);
    assert_true(fabs(sums.margin.sum + 2) < 1e-12);
    double turned[B], ours_turned[B] = {-12, -9, -4, -7}, theirs_turned[B] = {-11, -10, -6, -6};
    struct tune_preference_sums again = {0};
    o = &all[0]; /* which one is chosen is up to the labels */
    sums = again;
    assert_ok(tune_preference_batch(o, &batch, ours, theirs, 0, factors, NULL, &sums));
    batch.label_of = chosen_last;
    assert_ok(tune_preference_batch(o, &batch, ours_turned, theirs_turned, 0, turned, NULL, &again));
    for (int b = 0; b < B; b++)
        assert_true(turned[b] == factors[b ^ 1]);
    assert_memory_equal(&sums, &again, sizeof sums);
    static const double alike[B] = {1, 0, 1, 1};
    batch.label_of = alike;
    assert_int_equal(tune_preference_batch(o, &batch, ours, theirs, 0, factors, NULL, &sums), -1);
    assert_error_has("both answers in row 2 have the label 1");
    batch.label_of = NULL;
    assert_int_equal(tune_preference_batch(o, &batch, ours, theirs, 0, factors, NULL, &sums), -1);
    assert_error_has("needs two labelled sequences of each row");
    batch.label_of = chosen_first;
    static const double broken[B] = {-9, -12, NAN, -4};
    assert_int_equal(tune_preference_batch(o, &batch, broken, theirs, 0, factors, NULL, &sums), -1);
    assert_error_has("not finite");
}

static bool is(struct tune_preference_mean m, double sum, double count)
{
    return fabs(m.sum - sum) < 1e-12 && m.count == count;
}

/* Batches of single answers: of both labels, and of one alone. Each adds the means of its own answers. */
static void batches_of_answers(void **state)
{
    (void)state;
    static const double ours[B] = {-9, -12, -7, -4}, theirs[B] = {-10, -11, -6, -6}, label[B] = {1, 0, 1, 1}, zeros[B];
    static const double score[B] = {1, -1, -1, 2};
    struct tune_preference_options o = {.kind = TUNE_PREFERENCE_KTO, .beta = 0.5, .desirable_weight = 2, .undesirable_weight = 3};
    struct tune_batch batch = pairs();
    struct tune_preference_sums sums = {0};
    double factors[B], want = 0, d, kl = 0.75;
    batch.sequences = 1, batch.label_of = label, batch.row_count = B;
    assert_ok(tune_preference_batch(&o, &batch, ours, theirs, kl, factors, NULL, &sums));
    for (int b = 0; b < B; b++) {
        want += tune_preference_answer(&o, label[b] > 0, score[b], kl, &d);
        assert_true(factors[b] == -d && (label[b] > 0 ? factors[b] > 0 : factors[b] < 0));
    }
    assert_true(sums.loss == want && sums.count == B && sums.accurate.count == 0 && is(sums.kl, kl, 1));
    assert_true(is(sums.chosen_reward, 0.5 * 2 / 3, 1) && is(sums.rejected_reward, -0.5, 1) && is(sums.margin, 1. / 3 + 0.5, 1));
    assert_true(is(sums.chosen_log_prob, -20. / 3, 1) && is(sums.rejected_log_prob, -12, 1));
    batch.label_of = zeros;
    assert_ok(tune_preference_batch(&o, &batch, ours, theirs, 0, NULL, NULL, &sums));
    assert_true(sums.count == 2 * B && is(sums.kl, kl, 2) && is(sums.margin, 1. / 3 + 0.5, 1) && is(sums.chosen_reward, 1. / 3, 1));
    assert_true(is(sums.rejected_reward, -0.5 + 0.125, 2) && is(sums.rejected_log_prob, -12 - 8, 2));
    for (int k = 0; k < 2; k++) {
        batch.sequences = k ? 2 : 1, batch.label_of = k ? label : NULL;
        assert_int_equal(tune_preference_batch(&o, &batch, ours, theirs, kl, factors, NULL, &sums), -1);
        assert_error_has("the loss kto needs one labelled sequence of each row");
    }
    batch.sequences = 1, batch.label_of = label;
    static const double broken[B] = {-9, -INFINITY, -7, -4};
    for (int k = 0; k < 2; k++) {
        assert_int_equal(tune_preference_batch(&o, &batch, k ? ours : broken, theirs, k ? NAN : 0, factors, NULL, &sums), -1);
        assert_error_has("is not finite");
    }
}

/* ---- the reference ---- */

struct bench {
    struct tune_device *dev;
    struct tune_model *m;
    struct tune_loss *loss;
};

static struct bench bench_with(bool adapters, const char *modules_to_save)
{
    struct bench x = {.dev = test_device(2)};
    assert_got(x.dev);
    x.m = adapters ? tune_model_load_frozen("tests/reference/llama-tied", x.dev, TUNE_F32, TUNE_F32)
                   : tune_model_load("tests/reference/llama-tied", x.dev, TUNE_F32);
    assert_got(x.m);
    if (adapters)
        assert_ok(tune_lora_add(x.m, &(struct tune_lora_options){.r = 4, .alpha = 8, .targets = "all-linear",
                                                                .modules_to_save = modules_to_save}, 3));
    assert_ok(tune_model_reserve(x.m, B, T, TUNE_FOR_TRAINING));
    assert_got(x.loss = tune_loss_new(x.m, true));
    return x;
}

static struct bench bench(bool adapters)
{
    return bench_with(adapters, NULL);
}

static void end(struct bench *x)
{
    tune_loss_free(x->loss);
    tune_model_free(x->m);
    tune_device_close(x->dev);
}

static void by_model(struct bench *x, const struct tune_batch *batch, double *sums)
{
    struct tune_tensor *hidden;
    assert_ok(tune_model_infer(x->m, batch, &hidden));
    assert_ok(tune_loss_row_log_probs(x->loss, hidden, batch, sums));
}

/* Steps of SGD on the answers, so that the model is another one than the reference. lr below 0: away from them. */
static void step_by(struct bench *x, const struct tune_batch *batch, double lr)
{
    struct tune_tensor *hidden, *dhidden;
    struct tune_record *record = tune_record_new(x->dev, 1);
    struct tune_optimizer *opt = tune_optimizer_new(x->m, &(struct tune_optimizer_options){.kind = TUNE_SGD});
    assert_got(record);
    assert_got(opt);
    for (int i = 0; i < 2; i++) { /* the first one moves B alone: A's gradient is 0 where B is */
        const struct tune_done_step *steps;
        assert_ok(tune_model_zero_grad(x->m, record));
        assert_ok(tune_model_forward(x->m, batch, &hidden));
        assert_ok(tune_loss_forward_backward(x->loss, hidden, batch, record, &dhidden));
        assert_ok(tune_model_backward(x->m, batch, dhidden));
        assert_ok(tune_optimizer_scale(opt, 1, record));
        assert_ok(tune_optimizer_step(opt, lr, record));
        assert_int_equal(tune_record_read(record, &steps), 1);
    }
    tune_optimizer_free(opt);
    tune_record_free(record);
}

static void step(struct bench *x, const struct tune_batch *batch)
{
    step_by(x, batch, 0.5);
}

static void is_the_base(const char *modules_to_save)
{
    struct tune_batch batch = pairs();
    struct bench x = bench_with(true, modules_to_save);
    struct tune_reference *r = tune_reference_new(x.m, x.loss, TUNE_REFERENCE_BASE);
    double first[B], later[B], model[B];
    assert_got(r);
    assert_ok(tune_reference_log_probs(r, &batch, first));
    by_model(&x, &batch, model);
    for (int b = 0; b < B; b++)
        assert_true(fabs(first[b] - model[b]) < 1e-5); /* B is 0: adapters that add nothing */
    assert_ok(tune_reference_log_probs(r, &batch, later)); /* the step after it is one of the adapters */
    step(&x, &batch);
    assert_ok(tune_reference_log_probs(r, &batch, later));
    by_model(&x, &batch, model);
    for (int b = 0; b < B; b++)
        assert_true(later[b] == first[b] && fabs(model[b] - first[b]) > 1e-3);
    tune_reference_free(r);
    end(&x);
}

static void base(void **state)
{
    static const char *const saved[] = {NULL, "embed_tokens", "lm_head", "embed_tokens,lm_head"};
    (void)state;
    for (int i = 0; i < 4; i++)
        is_the_base(saved[i]);
}

/* One bit of the last number turns; it is a log-probability still. */
static void damage(const char *path)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, -3, SEEK_END), 0);
    int c = fgetc(f);
    assert_int_equal(fseek(f, -3, SEEK_END), 0);
    assert_int_equal(fputc(c ^ 1, f), c ^ 1);
    assert_int_equal(fclose(f), 0);
}

/* A file as an earlier run of "this model" wrote it, with so many rows and numbers. */
static void write_file(const char *path, int64_t rows, int64_t count, const double *log_probs)
{
    static const uint64_t row[] = {11, 12};
    char sum[20];
    struct tune_safetensors_writer *w = tune_safetensors_writer_new(path);
    assert_got(w);
    snprintf(sum, sizeof sum, "%016" PRIx64, tune_hash64(log_probs, (size_t)rows * 8, tune_hash64(row, (size_t)rows * 8, 0)));
    assert_ok(tune_safetensors_writer_metadata(w, "made_by", "this model"));
    assert_ok(tune_safetensors_writer_metadata(w, "checksum", sum));
    assert_ok(tune_safetensors_writer_declare(w, "rows", TUNE_U64, 1, &rows));
    assert_ok(tune_safetensors_writer_declare(w, "log_probs", TUNE_F64, 1, &count));
    assert_ok(tune_safetensors_writer_write(w, row, rows * 8));
    assert_ok(tune_safetensors_writer_write(w, log_probs, count * 8));
    assert_ok(tune_safetensors_writer_finish(w));
    tune_safetensors_writer_free(w);
}

/* Files whose checksum is right, and their numbers are not. */
static void wrong_files(void **state)
{
    (void)state;
    static const struct {
        int64_t rows, count;
        double log_probs[3];
        const char *error; /* NULL: none */
    } files[] = {
        {2, 2, {-1, -2}, NULL},
        {1, 2, {-1, -2}, "it has other tensors"},
        {2, 3, {-1, -2, -3}, "it has other tensors"},
        {2, 2, {-1, NAN}, "a number in it is no log-probability"},
        {2, 2, {-INFINITY, -2}, "a number in it is no log-probability"},
    };
    struct bench x = bench(false);
    char folder[64], path[128];
    snprintf(folder, sizeof folder, "%s", test_folder());
    snprintf(path, sizeof path, "%s/reference.safetensors", folder);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        write_file(path, files[i].rows, files[i].count, files[i].log_probs);
        struct tune_reference *r = tune_reference_new(x.m, x.loss, TUNE_REFERENCE_FILE);
        assert_got(r);
        assert_int_equal(tune_reference_open(r, path, "this model"), files[i].error ? -1 : 0);
        if (files[i].error)
            assert_error_has(files[i].error);
        tune_reference_free(r);
    }
    assert_ok(tune_file_remove_folder(folder));
    end(&x);
}

static void file(void **state)
{
    (void)state;
    struct tune_batch batch = pairs();
    struct bench x = bench(false);
    double first[B], later[B];
    char folder[64], path[128];
    snprintf(folder, sizeof folder, "%s", test_folder());
    snprintf(path, sizeof path, "%s/reference.safetensors", folder);
    by_model(&x, &batch, first);
    struct tune_reference *r = tune_reference_new(x.m, x.loss, TUNE_REFERENCE_FILE);
    assert_got(r);
    assert_ok(tune_reference_open(r, path, "this model"));
    assert_int_equal(tune_reference_log_probs(r, &batch, later), -1);
    assert_error_has("has no log-probability for row 0");
    assert_int_equal(tune_reference_compute(r, &batch), B);
    assert_int_equal(tune_reference_compute(r, &batch), 0);
    assert_ok(tune_reference_save(r));
    tune_reference_free(r);
    step(&x, &batch);
    assert_got(r = tune_reference_new(x.m, x.loss, TUNE_REFERENCE_FILE));
    assert_ok(tune_reference_open(r, path, "this model"));
    assert_int_equal(tune_reference_compute(r, &batch), 0);
    assert_ok(tune_reference_log_probs(r, &batch, later));
    assert_memory_equal(first, later, sizeof first);
    labels[3] = TUNE_NO_LABEL; /* another mask is another row */
    assert_int_equal(tune_reference_compute(r, &batch), 1);
    tune_reference_free(r);
    assert_got(r = tune_reference_new(x.m, x.loss, TUNE_REFERENCE_FILE));
    assert_int_equal(tune_reference_open(r, path, "another model"), -1);
    assert_error_has("by this model, and this run's reference is another model");
    tune_reference_free(r);
    assert_got(r = tune_reference_new(x.m, x.loss, TUNE_REFERENCE_FILE));
    assert_ok(tune_reference_open(r, path, NULL)); /* whoever made it */
    assert_ok(tune_reference_log_probs(r, &batch, later) == -1 ? 0 : -1); /* row 0 has another mask now */
    tune_reference_free(r);
    damage(path);
    assert_got(r = tune_reference_new(x.m, x.loss, TUNE_REFERENCE_FILE));
    assert_int_equal(tune_reference_open(r, path, "this model"), -1);
    assert_error_has("its checksum is not that of its numbers");
    tune_reference_free(r);
    test_write(folder, "reference.safetensors", "nonsense", 8);
    assert_got(r = tune_reference_new(x.m, x.loss, TUNE_REFERENCE_FILE));
    assert_int_equal(tune_reference_open(r, path, "this model"), -1);
    tune_reference_free(r);
    assert_ok(tune_file_remove_folder(folder));
    end(&x);
}

/* kl against the mean over the mismatched answers, written out; with adapters, and by a file. */
static void kl_of_mismatched(void **state)
{
    (void)state;
    struct tune_batch batch = pairs();
    char folder[64], path[128];
    snprintf(folder, sizeof folder, "%s", test_folder());
    snprintf(path, sizeof path, "%s/reference.safetensors", folder);
    for (int k = 0; k < 4; k++) {
        bool adapters = k / 2, away = k % 2;
        struct bench x = bench(adapters);
        struct tune_batch *wrong = tune_batch_mismatched(&batch, T, 0);
        struct tune_reference *r = tune_reference_new(x.m, x.loss, adapters ? TUNE_REFERENCE_BASE : TUNE_REFERENCE_FILE);
        double first[B], later[B], kl, mean = 0;
        assert_got(wrong);
        assert_got(r);
        assert_ok(tune_reference_kl(r, &batch, &kl));
        assert_true(kl == 0); /* not asked for */
        if (!adapters)
            assert_ok(tune_reference_open(r, path, "this model"));
        tune_reference_mismatch(r, 4);
        assert_int_equal(tune_reference_lacks(r, &batch), !adapters && away ? 0 : 2 * B);
        if (!adapters && !away) { /* nothing was computed */
            assert_int_equal(tune_reference_kl(r, &batch, &kl), -1);
            assert_error_has("lacks mismatched answers");
        }
        if (!adapters)
            assert_int_equal(tune_reference_compute(r, &batch), away ? 0 : 2 * B); /* the file has them then */
        by_model(&x, wrong, first);
        assert_ok(tune_reference_kl(r, &batch, &kl));
        assert_true(kl < 1e-5); /* the model is its own reference */
        step_by(&x, wrong, away ? -0.5 : 0.5);
        by_model(&x, wrong, later);
        for (int b = 0; b < B; b++)
            mean += (later[b] - first[b]) / B;
        assert_ok(tune_reference_kl(r, &batch, &kl));
        assert_true(away ? mean < -0.1 && kl == 0 : kl > 0.1 && fabs(kl - mean) < 1e-4 * (1 + mean));
        if (!adapters)
            assert_ok(tune_reference_save(r));
        tune_batch_free(wrong);
        tune_reference_free(r);
        end(&x);
    }
    assert_ok(tune_file_remove_folder(folder));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas), cmocka_unit_test(extremes), cmocka_unit_test(passes), cmocka_unit_test(refused),
        cmocka_unit_test(batches),  cmocka_unit_test(base),     cmocka_unit_test(file),
        cmocka_unit_test(wrong_files), cmocka_unit_test(answers), cmocka_unit_test(batches_of_answers),
        cmocka_unit_test(kl_of_mismatched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
