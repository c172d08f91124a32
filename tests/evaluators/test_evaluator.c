/* test_evaluator.c - the held-out loss: weighted by tokens whatever the batches are, when it runs, what it remembers. */
#include "values.h"
#include "far/far.h"

#include "datasets/dataset.h"
#include "evaluators/evaluator.h"

enum { ROWS = 7, LENGTH = 12, VOCABULARY = 61 };

/* Row i has 2 + i tokens, of which every token but the first two is trained: rows differ in labels, the first has none. */
static int get(void *context, int64_t row, struct tune_example *x)
{
    (void)context;
    int64_t n = 2 + row;
    if (tune_example_reserve(x, n) < 0)
        return -1;
    for (int64_t i = 0; i < n; i++) {
        x->ids[i] = (int32_t)((row * 17 + i * 5) % VOCABULARY);
        x->trained[i] = i >= 2;
    }
    x->count = n;
    return 0;
}

struct bench {
    struct tune_device *dev;
    struct tune_model *m;
    struct tune_loss *loss;
    struct tune_dataset *data;
    const struct tune_ops *ops; /* the device's own */
    struct tune_ops broken;
};

static void setup(struct bench *b)
{
    b->dev = test_device(2);
    assert_got(b->dev);
    b->m = tune_model_load("tests/reference/llama-tied", b->dev, TUNE_F32);
    assert_got(b->m);
    assert_ok(tune_model_reserve(b->m, 4, LENGTH, 0));
    b->loss = tune_loss_new(b->m, false);
    assert_got(b->loss);
    b->data = tune_dataset_from(ROWS, get, NULL, LENGTH);
    assert_got(b->data);
}

static void teardown(struct bench *b)
{
    tune_dataset_free(b->data);
    tune_loss_free(b->loss);
    tune_model_free(b->m);
    tune_device_close(b->dev);
}

static struct tune_evaluator *evaluator(struct bench *b, int batch_size, const struct tune_evaluator_options *options)
{
    struct tune_loader *load = tune_loader_new(b->data, &(struct tune_loader_options){
        .part = TUNE_ALL, .batch_size = batch_size, .accumulate = 1, .max_length = LENGTH, .epochs = 1, .max_steps = -1,
        .stop_after_seconds = -1});
    assert_got(load);
    struct tune_evaluator *e = tune_evaluator_new(b->m, b->loss, load, options);
    assert_got(e);
    return e;
}

static void weighted(void **state)
{
    (void)state;
    struct bench b;
    double sum = 0, loss;
    int64_t labels = 0;
    setup(&b);
    for (int64_t row = 1; row < ROWS; row++) { /* one row at a time, added by hand */
        struct tune_example x = {0};
        struct tune_tensor *hidden;
        int32_t want[LENGTH], length = (int32_t)(2 + row);
        assert_ok(tune_dataset_get(b.data, row, &x));
        for (int t = 0; t < length; t++)
            want[t] = t + 1 < length && x.trained[t + 1] ? x.ids[t + 1] : TUNE_NO_LABEL;
        struct tune_batch batch = {.B = 1, .T = length, .ids = x.ids, .labels = want, .lengths = &length, .row_of = &row,
                                   .tokens = length, .label_count = row};
        assert_ok(tune_model_forward(b.m, &batch, &hidden));
        assert_ok(tune_loss_forward(b.loss, hidden, &batch, &sum));
        labels += row;
        tune_example_free(&x);
    }
    for (int size = 1; size <= 4; size++) {
        struct tune_evaluator *e = evaluator(&b, size, NULL);
        for (int again = 0; again < 2; again++) { /* observed 0: the same bits, padded or not */
            assert_ok(tune_evaluator_loss(e, &loss));
            assert_true(fabs(loss - sum / (double)labels) < 1e-6 * loss);
        }
        tune_evaluator_free(e);
    }
    teardown(&b);
}

static void when(void **state)
{
    (void)state;
    struct bench b;
    setup(&b);
    struct tune_evaluator *e = evaluator(&b, 4, NULL), *none = tune_evaluator_new(b.m, b.loss, NULL, NULL);
    struct tune_progress at = {0};
    assert_ok(tune_evaluator_run(none, NULL, &at)); /* no rows held out */
    assert_false(at.evaluated);
    assert_ok(tune_evaluator_step(e, NULL, &at)); /* not due */
    assert_false(at.evaluated);
    assert_ok(tune_evaluator_run(e, NULL, &at)); /* before the first step */
    assert_true(at.evaluated && at.eval_step == 0 && at.best && at.eval_loss > 0);
    at.eval_loss = 0;
    assert_ok(tune_evaluator_run(e, NULL, &at)); /* not twice */
    assert_true(at.eval_loss == 0);
    at = (struct tune_progress){.step = 3};
    assert_ok(tune_evaluator_run(e, NULL, &at));
    assert_true(at.eval_step == 3 && at.best && at.best_loss == at.eval_loss && at.eval_loss > 0);
    double loss = at.eval_loss;
    at.eval_loss = 0;
    assert_ok(tune_evaluator_run(e, NULL, &at)); /* not twice at one step */
    assert_true(at.eval_loss == 0);
    at.step = 4;
    at.signal = 15;
    assert_ok(tune_evaluator_run(e, NULL, &at)); /* not after a signal */
    assert_true(at.eval_step == 3);
    at.signal = 0;
    at.best_loss = at.best_value = loss / 2;
    assert_ok(tune_evaluator_run(e, NULL, &at));
    assert_true(at.eval_step == 4 && !at.best && at.eval_loss == loss && at.best_loss == loss / 2);
    volatile int caught = 15; /* it cuts an evaluation off, which then is none */
    struct tune_loader *load = tune_loader_new(b.data, &(struct tune_loader_options){
        .part = TUNE_ALL, .batch_size = 1, .accumulate = 1, .max_length = LENGTH, .epochs = 1, .max_steps = -1,
        .stop_after_seconds = -1, .stop_signal = &caught});
    struct tune_evaluator *cut = tune_evaluator_new(b.m, b.loss, load, NULL);
    struct tune_progress before = at;
    at.step = before.step = 5;
    assert_ok(tune_evaluator_run(cut, NULL, &at));
    assert_int_equal(at.signal, 15);
    assert_string_equal(at.stopped, "SIGTERM");
    at.signal = 0, at.stopped = NULL;
    assert_memory_equal(&at, &before, sizeof at);
    caught = 0;
    assert_ok(tune_evaluator_run(cut, NULL, &at));
    assert_true(at.eval_step == 5 && fabs(at.eval_loss - loss) < 1e-6 * loss);
    tune_evaluator_free(cut);
    float nan = NAN;
    assert_ok(tune_model_write(b.m, &tune_model_parameters(b.m)->at[1], TUNE_WEIGHT, 0, 1, &nan));
    at.step = 6;
    assert_int_equal(tune_evaluator_run(e, NULL, &at), -1);
    assert_error_has("not finite");
    tune_evaluator_free(none);
    tune_evaluator_free(e);
    teardown(&b);
}

/* One more evaluation at the next step; the model stands still, so the loss is the same each time. */
static void again(struct tune_evaluator *e, struct tune_progress *at)
{
    at->step++;
    assert_ok(tune_evaluator_run(e, NULL, at));
}

static void patience(void **state)
{
    (void)state;
    struct bench b;
    struct tune_progress at = {0};
    setup(&b);
    struct tune_evaluator *e = evaluator(&b, 4, &(struct tune_evaluator_options){.patience = 2, .min_delta = 0.1});
    again(e, &at);
    double loss = at.eval_loss;
    assert_true(at.best && at.best_step == 1 && at.stale == 0 && at.patience_loss == loss && !at.early_stop);
    again(e, &at);
    assert_true(!at.best && at.best_step == 1 && at.stale == 1 && !at.early_stop);
    at.best_loss = at.best_value = at.patience_loss = loss + 0.05; /* lower, but by less than 0.1: the best, and no improvement */
    again(e, &at);
    assert_true(at.best && at.best_loss == loss && at.best_step == 3);
    assert_true(at.stale == 2 && at.patience_loss == loss + 0.05 && at.early_stop);
    at.patience_loss = loss + 0.2;
    again(e, &at);
    assert_true(at.stale == 0 && at.patience_loss == loss && !at.early_stop);
    at.stale = 7, at.finished = true; /* the last evaluation, after the loop: there is nothing left to stop */
    again(e, &at);
    assert_true(at.stale == 8 && !at.early_stop);
    tune_evaluator_free(e);
    e = evaluator(&b, 4, NULL); /* without patience it is counted all the same: a resumed run may be given some */
    at = (struct tune_progress){0};
    for (int i = 0; i < 5; i++)
        again(e, &at);
    assert_true(at.stale == 4 && !at.early_stop);
    tune_evaluator_free(e);
    teardown(&b);
}

/* An evaluation whose loss falls by 1 each time, and whose share of right answers is *context. */
static int right_share(void *context, const struct tune_batch *batch, struct tune_evaluation *sums)
{
    const double *share = context;
    sums->loss += share[1];
    sums->count++;
    return *share < 0 ? 0 : tune_evaluation_add(sums, "right", *share * batch->B, batch->B);
}

/* The best and the patience go by a number of which higher values are better, whatever the loss does. */
static void another_best(void **state)
{
    (void)state;
    struct bench b;
    struct tune_progress at = {0};
    double share[2] = {0.5, 9};
    setup(&b);
    struct tune_evaluator *e = evaluator(&b, 4, &(struct tune_evaluator_options){.patience = 3, .min_delta = 0.1});
    tune_evaluator_by(e, right_share, share);
    assert_int_equal(tune_evaluator_best_by(e, "", 1), -1);
    assert_ok(tune_evaluator_best_by(e, "right", 1));
    again(e, &at);
    assert_true(at.best && at.best_step == 1 && at.best_value == 0.5 && at.best_loss == 9);
    assert_string_equal(at.best_by, "right");
    share[0] = 0.5, share[1] = 8; /* a lower loss, and no more right */
    again(e, &at);
    assert_true(!at.best && at.best_step == 1 && at.stale == 1 && at.best_loss == 8);
    share[0] = 0.5625, share[1] = 10; /* the best, and no improvement */
    again(e, &at);
    assert_true(at.best && at.best_step == 3 && at.best_value == 0.5625 && at.stale == 2 && at.best_loss == 8 && !at.early_stop);
    share[0] = 0.375;
    again(e, &at);
    assert_true(!at.best && at.best_value == 0.5625 && at.best_step == 3 && at.stale == 3 && at.early_stop);
    share[0] = 0.75;
    again(e, &at);
    assert_true(at.best && at.stale == 0 && at.patience_loss == 0.75 && !at.early_stop);
    share[0] = INFINITY; /* the worst */
    again(e, &at);
    assert_true(!at.best && at.best_value == 0.75 && at.best_step == 5 && at.stale == 1 && at.eval_step == 6);
    struct tune_progress first = {0};
    again(e, &first);
    share[0] = 0.25;
    again(e, &first);
    assert_true(first.best && first.best_step == 2 && first.stale == 0);
    share[0] = NAN;
    first.step++;
    assert_int_equal(tune_evaluator_run(e, NULL, &first), -1);
    share[0] = -1; /* it is not there */
    at.step++;
    assert_int_equal(tune_evaluator_run(e, NULL, &at), -1);
    assert_error_has("gave no number eval_right");
    assert_true(at.eval_step == 6 && at.best_step == 5);
    share[0] = 0.125;
    assert_ok(tune_evaluator_best_by(e, "right", -1)); /* the same name, now lower is better */
    assert_ok(tune_evaluator_run(e, NULL, &at));
    assert_true(at.best && at.best_value == 0.125);
    at.stale = 3;
    assert_ok(tune_evaluator_resume(e, NULL, &at));
    assert_true(at.stale == 3 && at.early_stop);
    assert_ok(tune_evaluator_best_by(e, "loss", -1)); /* by another number both begin anew */
    assert_ok(tune_evaluator_resume(e, NULL, &at));
    assert_true(at.stale == 0 && !at.early_stop);
    share[1] = 50;
    again(e, &at);
    assert_true(at.best && at.best_value == 50 && at.best_loss == 50 && at.stale == 0); /* the loss of the step that is the best */
    assert_string_equal(at.best_by, "loss");
    tune_evaluator_free(e);
    teardown(&b);
}

static int count_rows(void *context, const struct tune_batch *batch)
{
    *(int64_t *)context += batch->B;
    return 0;
}

/* General rows have a loss of their own, and no part in the loss of all. */
static void general_rows(void **state)
{
    (void)state;
    struct bench b;
    struct tune_progress at = {0}, alone = {0};
    setup(&b);
    struct tune_evaluator *e = evaluator(&b, 4, NULL);
    again(e, &alone);
    struct tune_dataset *long_rows = tune_dataset_from(2, get, NULL, LENGTH);
    struct tune_loader *load = tune_loader_new(long_rows, &(struct tune_loader_options){
        .part = TUNE_ALL, .batch_size = 1, .accumulate = 1, .max_length = LENGTH, .epochs = 1, .max_steps = -1, .stop_after_seconds = -1});
    assert_got(load);
    assert_ok(tune_evaluator_add_general(e, load, "general"));
    assert_ok(tune_evaluator_best_by(e, "general_loss", -1));
    again(e, &at);
    assert_true(at.eval_loss == alone.eval_loss && at.best_value > 0 && at.best_value != at.eval_loss);
    int64_t rows = 0;
    assert_ok(tune_evaluator_each_of(e, true, count_rows, &rows));
    assert_int_equal(rows, 1); /* the first has no label */
    assert_ok(tune_evaluator_each_of(e, false, count_rows, &rows));
    assert_int_equal(rows, 1 + ROWS - 1);
    tune_evaluator_free(e);
    tune_dataset_free(long_rows);
    teardown(&b);
}

static int no_exchange(struct tune_device *dev, struct tune_tensor *x, struct tune_tensor *y)
{
    (void)dev, (void)x, (void)y;
    return tune_error_set("an exchange fails");
}

/* An evaluation behind which the device exchanges nothing any more. context: a struct bench. */
static int breaks(void *context, const struct tune_batch *batch, struct tune_evaluation *sums)
{
    struct bench *b = context;
    (void)batch;
    b->broken = *b->ops;
    b->broken.exchange = no_exchange;
    b->dev->ops = &b->broken;
    sums->loss++, sums->count++;
    return 0;
}

/* The averages are evaluated. If the weights do not come back, there is no loss, and it is an error. */
static void weights_that_stay_away(void **state)
{
    (void)state;
    struct bench b;
    double loss = 7;
    setup(&b);
    b.ops = b.dev->ops;
    assert_ok(tune_model_averages(b.m));
    assert_ok(tune_model_begin_averages(b.m));
    struct tune_evaluator *e = evaluator(&b, 4, NULL);
    assert_ok(tune_evaluator_loss(e, &loss));
    assert_true(loss != 7);
    tune_evaluator_by(e, breaks, &b);
    struct tune_progress at = {.step = 1};
    assert_int_equal(tune_evaluator_run(e, NULL, &at), -1);
    assert_error_has("an exchange fails");
    assert_false(at.evaluated);
    b.dev->ops = b.ops;
    assert_int_equal(tune_evaluator_loss(e, &loss), -1);
    assert_error_has("failed earlier");
    tune_evaluator_free(e);
    teardown(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weighted),
        cmocka_unit_test(when),
        cmocka_unit_test(patience),
        cmocka_unit_test(another_best),
        cmocka_unit_test(general_rows),
        cmocka_unit_test(weights_that_stay_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
