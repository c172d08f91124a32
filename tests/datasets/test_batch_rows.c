/* test_batch_rows.c - what a recipe knows of a batch's rows: their numbers, other columns of the file, and their order. */
#include "byte_tokenizer.h"

#include "core/batch.h"
#include "datasets/dataset.h"
#include "datasets/loader.h"

static struct tune_dataset *open_as(const char *name, const char *text, struct tune_dataset_options o)
{
    char path[TUNE_PATH_MAX];
    test_write(folder, name, text, strlen(text));
    snprintf(path, sizeof path, "%s/%s", folder, name);
    o.max_length = o.max_length ? o.max_length : 64;
    struct tune_dataset *d = tune_dataset_open(path, &o, bytes);
    assert_got(d);
    return d;
}

static const char jsonl[] = "{\"text\": \"one\", \"w\": 0.5, \"who\": \"ann\", \"meta\": {\"id\": [7, 8]}}\n"
                            "{\"text\": \"second\", \"w\": \"2e-1\", \"who\": null, \"meta\": {\"id\": [9]}}\n"
                            "{\"text\": \"the third one\", \"w\": true, \"who\": [1, \"x\"]}\n"
                            "{\"text\": \"4\", \"w\": \"much\", \"who\": \"d\\u00e9\\n\"}\n";

static double number(const struct tune_dataset *d, int64_t row, const char *column)
{
    double value = -1;
    int status = tune_dataset_number(d, row, column, &value);
    assert_true(status == 0 || status == 1);
    assert_true(status == 1 || value == -1);
    return value;
}

static void assert_text(const struct tune_dataset *d, int64_t row, const char *column, const char *expected)
{
    char *text;
    assert_int_equal(tune_dataset_text(d, row, column, &text), expected != NULL);
    if (expected)
        assert_string_equal(text, expected);
    else
        assert_null(text);
    free(text);
}

static void numbers_and_texts(void **state)
{
    (void)state;
    double value;
    char *text;
    struct tune_dataset *d = open_as("a.jsonl", jsonl, (struct tune_dataset_options){0});
    assert_true(number(d, 0, "w") == .5 && number(d, 1, "w") == .2 && number(d, 2, "w") == 1);
    assert_true(number(d, 0, "meta.id.1") == 8 && number(d, 1, "meta.id.1") == -1 && number(d, 2, "meta.id.1") == -1);
    assert_int_equal(tune_dataset_number(d, 3, "w", &value), -1);
    assert_error_has("a.jsonl:4: column \"w\" is much, expected a number");
    assert_int_equal(tune_dataset_number(d, 0, "weight", &value), -1);
    assert_error_has("its first rows have no column \"weight\"; they have: text, w, who, meta");
    assert_int_equal(tune_dataset_text(d, 4, "who", &text), -1);
    assert_error_has("row 4: the set has 4 rows");
    assert_int_equal(tune_dataset_number(d, -1, "w", &value), -1);
    assert_text(d, 0, "who", "ann");
    assert_text(d, 1, "who", NULL);
    assert_text(d, 2, "who", "[1, \"x\"]");
    assert_text(d, 3, "who", "d\xc3\xa9\n");
    assert_text(d, 0, "w", "0.5");
    tune_dataset_free(d);
}

static void kinds_of_files(void **state)
{
    (void)state;
    double value;
    struct tune_dataset *d = open_as("b.csv", "text,w,note\nab,0.25,\"x, y\"\ncd,,z\n", (struct tune_dataset_options){.text_field = "text"});
    assert_true(number(d, 0, "w") == .25 && number(d, 1, "w") == -1);
    assert_text(d, 0, "note", "x, y");
    assert_int_equal(tune_dataset_number(d, 0, "no", &value), -1);
    struct tune_dataset *both[2] = {d, open_as("a.jsonl", jsonl, (struct tune_dataset_options){0})};
    struct tune_dataset *joined = tune_dataset_join(both, 2);
    assert_got(joined);
    assert_true(number(joined, 0, "w") == .25 && number(joined, 2, "w") == .5);
    int32_t lengths[6];
    assert_ok(tune_dataset_lengths(joined, lengths));
    assert_true(lengths[0] == 2 && lengths[2] == 3 && lengths[4] == 13);
    assert_int_equal(tune_dataset_counts(joined).rows, 0);
    tune_dataset_free(joined);
    d = open_as("c.jsonl", "{\"text\": \"xxxxxxx\", \"w\": 3}\n{\"text\": \"yy\", \"w\": 4}\n",
                (struct tune_dataset_options){.max_length = 4, .chunk = TUNE_CHUNK_ON});
    assert_int_equal(tune_dataset_rows(d), 3); /* two pieces and one */
    assert_true(number(d, 0, "w") == 3 && number(d, 1, "w") == 3 && number(d, 2, "w") == 4);
    tune_dataset_free(d);
    d = open_as("d.txt", "one\n\ntwo\n", (struct tune_dataset_options){0});
    assert_int_equal(tune_dataset_number(d, 0, "w", &value), -1);
    assert_error_has("plain text has no columns");
    tune_dataset_free(d);
}

static struct tune_loader_options options(bool packing)
{
    return (struct tune_loader_options){.part = TUNE_ALL, .batch_size = 2, .accumulate = 1, .max_length = 64, .epochs = 1, .packing = packing,
                                        .shuffle = true, .max_steps = -1, .stop_after_seconds = -1, .prefetch = true};
}

/* Each label of each batch has the weight of its row, packed or not. */
static void weights_of_labels(void **state)
{
    (void)state;
    for (int packing = 0; packing < 2; packing++) {
        struct tune_dataset *d = open_as("a.jsonl", jsonl, (struct tune_dataset_options){0});
        struct tune_loader_options o = options(packing);
        struct tune_loader *load = tune_loader_new(d, &o);
        struct tune_progress at = {0};
        struct tune_batch batch;
        double sum = 0;
        int micros, padding = 0;
        assert_got(load);
        while ((micros = tune_loader_more(load, &at)) > 0) {
            while (micros-- > 0) {
                assert_ok(tune_loader_next(load, &batch));
                for (int b = 0; b < batch.B; b++)
                    for (int t = 0; t < batch.T; t++) {
                        int64_t row = tune_batch_row(&batch, b, t);
                        padding += row < 0;
                        assert_int_equal(row < 0, t >= batch.lengths[b]);
                        if (batch.labels[b * batch.T + t] != TUNE_NO_LABEL)
                            sum += number(d, row, "w");
                        if (row >= 0 && tune_batch_position(&batch, b, t) == 0)
                            assert_int_equal(tune_batch_start(&batch, b, t), t);
                    }
            }
            tune_progress_step(&at, load);
        }
        assert_int_equal(micros, 0);
        assert_true(sum == 2 * .5 + 5 * .2 + 12 * 1); /* the last row has one token, so no label */
        assert_true(packing || padding > 0);
        tune_loader_free(load);
        tune_dataset_free(d);
    }
}

/* The rows that a run takes, in turn; ends with -1. */
static void assert_rows(struct tune_loader *load, struct tune_progress *at, const int64_t *expected)
{
    struct tune_batch batch;
    int micros;
    while ((micros = tune_loader_more(load, at)) > 0) {
        while (micros-- > 0) {
            assert_ok(tune_loader_next(load, &batch));
            for (int b = 0; b < batch.B; b++)
                for (int t = 0; t < batch.lengths[b]; t++)
                    if (tune_batch_position(&batch, b, t) == 0)
                        assert_int_equal(tune_batch_row(&batch, b, t), *expected++);
        }
        tune_progress_step(at, load);
    }
    assert_int_equal(micros, 0);
    assert_int_equal(*expected, -1);
}

static void own_orders(void **state)
{
    (void)state;
    static const int64_t order[] = {5, 0, 3, 3, 1}, twice[] = {5, 0, 3, 3, 1, 5, 0, 3, 3, 1, -1};
    for (int packing = 0; packing < 2; packing++) {
        struct tune_dataset *d = open_as("o.jsonl", "{\"text\": \"aaaa\"}\n{\"text\": \"bbbb\"}\n{\"text\": \"cccc\"}\n{\"text\": \"dddd\"}\n"
                                                    "{\"text\": \"eeee\"}\n{\"text\": \"ffff\"}\n", (struct tune_dataset_options){0});
        struct tune_loader_options o = options(packing);
        o.epochs = 2;
        o.batch_size = packing ? 1 : 2;
        struct tune_loader *load = tune_loader_new(d, &o);
        struct tune_progress at = {0}, then;
        uint64_t hash;
        int64_t held = 0;
        assert_got(load);
        assert_ok(tune_loader_order(load, order, 5));
        assert_true(tune_loader_ordered(load) && tune_loader_rows(load) == 5 && tune_loader_planned_rows(load) == 10);
        assert_rows(load, &at, twice);
        assert_true(at.finished && at.rows == 10 && at.epoch == 2 && at.planned_steps == at.step);
        assert_ok(tune_loader_rows_hash(load, 10, &hash));
        assert_true(hash == at.rows_hash);
        assert_int_equal(tune_loader_order(load, order, 5), -1);
        assert_error_has("before the first step");
        tune_loader_free(load);
        load = tune_loader_new(d, &o); /* gone on in the middle of the first epoch, or behind it */
        then = (struct tune_progress){.step = 1, .rows = packing ? 5 : 2};
        assert_ok(tune_loader_order(load, order, 5));
        assert_ok(tune_loader_seek(load, &then));
        assert_rows(load, &then, twice + (packing ? 5 : 2));
        tune_loader_free(load);
        o.part = TUNE_TRAIN, o.train_split = .5;
        load = tune_loader_new(d, &o);
        while (tune_loader_has(load, held))
            held++;
        assert_int_equal(tune_loader_order(load, &held, 1), -1);
        assert_error_has("held out, not in this part");
        held = 6;
        assert_int_equal(tune_loader_order(load, &held, 1), -1);
        assert_error_has("row 6, which is not in the set");
        tune_loader_free(load);
        tune_dataset_free(d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_texts),
        cmocka_unit_test(kinds_of_files),
        cmocka_unit_test(weights_of_labels),
        cmocka_unit_test(own_orders),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
