/* test_mix.c - several data sets as one: which rows an epoch takes, in which order, and what is known of them. */
#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "datasets/mix.h"
#include "test.h"
#include "tokenizers/tokenizer.h"

enum { MOST = 4096 };

/* Rows of two tokens, of which the second has a label. */
static int get(void *context, int64_t row, struct tune_example *x)
{
    if (tune_example_reserve(x, 2) < 0)
        return -1;
    x->ids[0] = *(const int *)context;
    x->ids[1] = (int32_t)row;
    x->trained[0] = x->trained[1] = 1;
    x->count = 2;
    return 0;
}

static struct tune_dataset *joined(int sets, const int *rows)
{
    static int numbers[8];
    struct tune_dataset *list[8];
    for (int k = 0; k < sets; k++) {
        numbers[k] = k;
        list[k] = tune_dataset_from(rows[k], get, &numbers[k], 4);
        assert_got(list[k]);
    }
    struct tune_dataset *d = tune_dataset_join(list, sets);
    assert_got(d);
    return d;
}

static struct tune_loader *loader(struct tune_dataset *d, struct tune_loader_options o)
{
    o.batch_size = o.batch_size ? o.batch_size : 1;
    o.accumulate = 1;
    o.max_length = 4;
    o.max_steps = o.max_steps ? o.max_steps : -1;
    o.epochs = o.epochs > 0 ? o.epochs : 1;
    o.train_split = o.train_split > 0 ? o.train_split : 1;
    o.stop_after_seconds = -1;
    struct tune_loader *load = tune_loader_new(d, &o);
    assert_got(load);
    return load;
}

/* The rows of a run, in order: 1000000 times the set and the row in it. */
static int64_t rows_of(struct tune_loader *load, struct tune_progress *at, int64_t *rows)
{
    int64_t n = 0;
    int micros;
    while ((micros = tune_loader_more(load, at)) > 0) {
        while (micros-- > 0) {
            struct tune_batch b;
            assert_ok(tune_loader_next(load, &b));
            for (int i = 0; i < b.B; i++)
                rows[n++] = 1000000 * (int64_t)b.ids[i * b.T] + b.ids[i * b.T + 1];
        }
        tune_progress_step(at, load);
        assert_true(n < MOST);
    }
    assert_int_equal(micros, 0);
    return n;
}

static int64_t all_rows(struct tune_dataset *d, struct tune_loader_options o, int64_t *rows)
{
    struct tune_progress at = {0};
    struct tune_loader *load = loader(d, o);
    int64_t n = rows_of(load, &at, rows);
    tune_loader_free(load);
    return n;
}

static void plans(void **state)
{
    (void)state;
    static const struct {
        const char *shares;
        int count;
        int64_t rows[3], each[3];
    } cases[] = {{"0.7,0.3", 2, {700, 5000}, {700, 300}},      {"7,3", 2, {700, 5000}, {700, 300}},
                 {"0.5,0.5", 2, {10, 1000000}, {10, 10}},      {"1,1,1", 3, {10, 3, 7}, {3, 3, 3}},
                 {"1,2", 2, {5, 100}, {5, 10}},                {"0.9,0.1", 2, {1000, 11}, {99, 11}},
                 {"1,1e-4", 2, {999, 9}, {999, 0}},            {"1,3", 2, {100, 7}, {2, 7}},
                 {"0.1,0.2,0.7", 3, {100, 200, 700}, {100, 200, 700}},
                 {"3,3,4", 3, {100, 5, 100}, {5, 5, 6}}, {"7,5", 2, {35, 1000}, {35, 25}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tune_mix mix;
        int64_t sum = 0, given = 0;
        int status = tune_mix_plan(&mix, cases[i].shares, cases[i].rows, cases[i].count);
        for (int k = 0; k < cases[i].count; k++)
            sum += cases[i].each[k];
        if (cases[i].each[cases[i].count - 1] == 0) {
            assert_int_equal(status, -1);
            assert_error_has("the share of data set 2 is less than a row");
            continue;
        }
        assert_ok(status);
        for (int k = 0; k < cases[i].count; k++) {
            assert_int_equal(mix.set[k].each, cases[i].each[k]);
            assert_int_equal(mix.set[k].first, given);
            given += cases[i].rows[k];
        }
        assert_int_equal(mix.rows, sum);
    }
    static const char *const bad[] = {"", "0.7", "0.7,0.3,0.1", "1,0", "1,-1", "a,b", "1;1", "1,nan", "1,inf", "1,1,"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct tune_mix mix;
        assert_int_equal(tune_mix_plan(&mix, bad[i], (const int64_t[]){5, 5}, 2), -1);
        assert_error_has("expected 2 numbers above 0");
    }
    struct tune_mix mix;
    assert_int_equal(tune_mix_plan(&mix, "1", (const int64_t[]){5}, 1), -1);
    assert_error_has("there is one data set");
}

/* Without shuffle: each set in its own order, and after any number of rows each has its share, within a row. */
static void turns(void **state)
{
    (void)state;
    static const int64_t rows[3] = {500, 61, 200};
    struct tune_mix mix;
    assert_ok(tune_mix_plan(&mix, "5,1,2", rows, 3));
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        int64_t seen[3] = {0};
        for (int64_t place = 0; place < mix.rows; place++) {
            int64_t row = tune_mix_row(&mix, 1, false, epoch, place);
            int k = row < 500 ? 0 : row < 561 ? 1 : 2;
            assert_int_equal(row - mix.set[k].first, (epoch * mix.set[k].each + seen[k]) % rows[k]);
            seen[k]++;
            for (int l = 0; l < 3; l++) {
                double due = (double)(place + 1) * (double)mix.set[l].each / (double)mix.rows;
                assert_true((double)seen[l] > due - 1.5 && (double)seen[l] < due + 1.5);
            }
        }
    }
}

/* Shuffled: shares hold in each epoch; no row comes twice until its set was read to the end. */
static void epochs(void **state)
{
    (void)state;
    static int64_t rows[MOST], again[MOST], other[MOST];
    const int sizes[] = {30, 100};
    struct tune_dataset *d = joined(2, sizes);
    struct tune_loader_options o = {.part = TUNE_TRAIN, .mix = "0.5,0.5", .shuffle = true, .seed = 7, .epochs = 10};
    int64_t n = all_rows(d, o, rows);
    assert_int_equal(n, 600);
    for (int64_t e = 0; e < 10; e++) {
        int of[2] = {0};
        for (int64_t i = 0; i < 60; i++)
            of[rows[e * 60 + i] / 1000000]++;
        assert_true(of[0] == 30 && of[1] == 30);
    }
    for (int k = 0; k < 2; k++) { /* each set's stream: whole passes, each in another order */
        int64_t stream[600], count = 0;
        for (int64_t i = 0; i < n; i++)
            if (rows[i] / 1000000 == k)
                stream[count++] = rows[i] % 1000000;
        /* a pass over the larger set ends within an epoch, whose rows are in another order */
        for (int64_t pass = 0; k == 0 && pass + 1 < 300 / sizes[k]; pass++) {
            bool seen[100] = {false};
            int64_t same = 0;
            for (int64_t i = 0; i < sizes[k]; i++) {
                int64_t row = stream[pass * sizes[k] + i];
                assert_false(seen[row]);
                seen[row] = true;
                same += stream[(pass + 1) * sizes[k] + i] == row;
            }
            assert_true(same < sizes[k] / 2);
        }
        int times[100] = {0};
        for (int64_t i = 0; i < 300; i++)
            times[stream[i]]++;
        for (int i = 0; i < sizes[k]; i++)
            assert_int_equal(times[i], 300 / sizes[k]);
    }
    const int thrice[] = {30, 90};
    struct tune_dataset *whole = joined(2, thrice); /* each third epoch begins a pass over the larger set */
    assert_int_equal(all_rows(whole, o, other), 600);
    int common = 0;
    for (int i = 0; i < 60; i++)
        for (int j = 180; j < 240; j++)
            common += other[i] >= 1000000 && other[i] == other[j];
    assert_true(common < 25);
    tune_dataset_free(whole);
    assert_int_equal(all_rows(d, o, again), n);
    assert_memory_equal(rows, again, (size_t)n * sizeof *rows);
    o.seed = 8;
    assert_int_equal(all_rows(d, o, other), n);
    assert_true(memcmp(rows, other, (size_t)n * sizeof *rows) != 0);
    tune_dataset_free(d);
}

/* Stopped after any step and gone on: the same rows. Batches of 7 do not divide an epoch. */
static void resumed(void **state)
{
    (void)state;
    static int64_t whole[MOST], rows[MOST];
    const int sizes[] = {30, 100, 17};
    struct tune_dataset *d = joined(3, sizes);
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        struct tune_loader_options o = {.part = TUNE_TRAIN, .mix = "3,2,1", .shuffle = shuffle, .seed = 7, .epochs = 3, .batch_size = 7,
                                        .train_split = 0.8};
        int64_t n = all_rows(d, o, whole);
        for (int64_t stop = 1; stop < 20; stop += 6) {
            struct tune_progress at = {0};
            o.stop_at_step = stop;
            struct tune_loader *load = loader(d, o);
            int64_t first = rows_of(load, &at, rows);
            tune_loader_free(load);
            o.stop_at_step = 0;
            load = loader(d, o);
            at.stopped = NULL;
            assert_ok(tune_loader_seek(load, &at));
            assert_int_equal(first + rows_of(load, &at, rows + first), n);
            assert_memory_equal(rows, whole, (size_t)n * sizeof *rows);
            tune_loader_free(load);
        }
    }
    tune_dataset_free(d);
}

/* Rows held out are those of each set alone, whatever the other sets have; only_set reads one set. */
static void parts(void **state)
{
    (void)state;
    static int64_t out[MOST], one[MOST], train[MOST];
    const int sizes[] = {300, 500}, more[] = {400, 500};
    struct tune_dataset *d = joined(2, sizes), *longer = joined(2, more);
    struct tune_loader_options o = {.part = TUNE_HELD_OUT, .train_split = 0.8, .seed = 3, .only_set = 2};
    int64_t n = all_rows(d, o, out);
    assert_true(n > 60 && n < 140);
    assert_int_equal(all_rows(longer, o, one), n);
    assert_memory_equal(out, one, (size_t)n * sizeof *out);
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(out[i] / 1000000, 1);
    o.part = TUNE_ALL;
    assert_int_equal(all_rows(d, o, one), 500);
    o = (struct tune_loader_options){.part = TUNE_TRAIN, .train_split = 0.8, .seed = 3, .mix = "1,1"};
    int64_t taken = all_rows(d, o, train), second = 0;
    for (int64_t i = 0; i < taken; i++) {
        second += train[i] / 1000000;
        for (int64_t k = 0; k < n; k++)
            assert_int_not_equal(train[i], out[k]);
    }
    assert_int_equal(2 * second, taken);
    struct tune_loader *load = loader(d, o);
    int64_t epoch;
    assert_int_equal(tune_loader_set_rows(load, 1, &epoch), 500 - n);
    assert_int_equal(epoch, second);
    assert_int_equal(tune_loader_rows(load), taken);
    tune_loader_free(load);
    o.only_set = 3;
    o.mix = NULL;
    o.batch_size = o.accumulate = o.max_length = 4;
    o.epochs = 1;
    o.max_steps = -1;
    o.stop_after_seconds = -1;
    assert_null(tune_loader_new(d, &o));
    assert_error_has("only_set is 3");
    tune_dataset_free(d);
    tune_dataset_free(longer);
}

static void facts(void **state)
{
    (void)state;
    static const char *const texts[] = {"{\"text\": \"ab\"}\n{\"text\": \"b\"}\n", "ba\n\naaa\n\nb"};
    test_write(".", "a.jsonl", texts[0], strlen(texts[0]));
    test_write(".", "b.txt", texts[1], strlen(texts[1]));
    test_write(".", "a,b", texts[1], strlen(texts[1]));
    assert_ok(tune_tokenizer_train("t.json", "ab", 2, 257, (const char *const[]){"</s>"}, 1));
    struct tune_tokenizer *tok = tune_tokenizer_open("t.json");
    assert_got(tok);
    struct tune_dataset_options o = {.max_length = 16, .row_format = "auto", .end_token = "</s>"};
    struct tune_dataset *d = tune_dataset_open_several("a.jsonl,b.txt", &o, tok);
    assert_got(d);
    assert_int_equal(tune_dataset_rows(d), 5);
    assert_int_equal(tune_dataset_sets(d), 2);
    assert_string_equal(tune_dataset_path(tune_dataset_set(d, 1)), "b.txt");
    assert_null(tune_dataset_path(d));
    assert_int_equal(tune_dataset_stamp(d)->size, (int64_t)(strlen(texts[0]) + strlen(texts[1])));
    char where[TUNE_DATASET_SOURCE_SIZE];
    assert_string_equal(tune_dataset_source(d, 1, where, sizeof where), "a.jsonl:2");
    assert_string_equal(tune_dataset_source(d, 3, where, sizeof where), "b.txt:3");
    struct tune_example x = {0}, own = {0};
    for (int64_t row = 0; row < 5; row++) {
        int64_t in_set;
        int k = tune_dataset_set_of(d, row, &in_set);
        assert_int_equal(k, row >= 2);
        assert_ok(tune_dataset_get(d, row, &x));
        assert_ok(tune_dataset_get(tune_dataset_set(d, k), in_set, &own));
        assert_int_equal(x.count, own.count);
        assert_memory_equal(x.ids, own.ids, (size_t)x.count * sizeof *x.ids);
        assert_true(x.hash == tune_dataset_row_hash(d, row) && x.hash != 0);
    }
    assert_int_equal(tune_dataset_counts(d).rows, 5);
    assert_int_equal(tune_dataset_end_id(d), tune_tokenizer_id(tok, "</s>"));
    o.max_length = 1; /* every label is behind the cut */
    struct tune_dataset *cut = tune_dataset_open_several("a.jsonl,b.txt", &o, tok);
    assert_got(cut);
    assert_ok(tune_dataset_get(cut, 0, &x));
    assert_true(x.cut_away);
    assert_int_equal(tune_dataset_counts(cut).truncated_away, 1);
    tune_dataset_free(cut);
    o.max_length = 16;
    struct tune_dataset *turned = tune_dataset_open_several("b.txt,a.jsonl", &o, tok);
    assert_got(turned);
    assert_true(tune_dataset_fingerprint(turned) != tune_dataset_fingerprint(d));
    assert_true(tune_dataset_hash(d) != 0 && tune_dataset_hash(d) == tune_dataset_fingerprint(d));
    tune_dataset_free(turned);
    assert_ok(tune_dataset_unchanged(d));
    test_write(".", "b.txt", "other", 5);
    assert_int_equal(tune_dataset_unchanged(d), -1);
    assert_error_has("b.txt was changed");
    assert_int_equal(tune_dataset_whole(d), -1);
    tune_dataset_free(d);
    d = tune_dataset_open_several("a,b", &o, tok); /* a file of that name */
    assert_got(d);
    assert_int_equal(tune_dataset_sets(d), 1);
    assert_int_equal(tune_dataset_rows(d), 3);
    tune_dataset_free(d);
    o.row_format = "text,auto,text";
    assert_null(tune_dataset_open_several("a.jsonl,b.txt", &o, tok));
    assert_error_has("`format` text,auto,text has 3 values for 2 data sets; give one for all, or one for each");
    o.row_format = "text,auto";
    o.text_field = "nope,";
    assert_null(tune_dataset_open_several("a.jsonl,b.txt", &o, tok));
    assert_error_has("a.jsonl: no field \"nope\"");
    o.text_field = NULL;
    d = tune_dataset_open_several("a.jsonl,a.jsonl", &o, tok);
    assert_got(d);
    assert_true(tune_dataset_row_hash(d, 0) == tune_dataset_row_hash(d, 2)); /* the same row of another set */
    tune_dataset_free(d);
    struct tune_dataset *none[1] = {NULL};
    assert_null(tune_dataset_join(none, 0));
    assert_error_has("expected from 1 to 64");
    tune_example_free(&x);
    tune_example_free(&own);
    tune_tokenizer_free(tok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(plans),   cmocka_unit_test(turns), cmocka_unit_test(epochs),
                                       cmocka_unit_test(resumed), cmocka_unit_test(parts), cmocka_unit_test(facts)};
    return cmocka_run_group_tests(tests, test_home_begin, test_home_end);
}
