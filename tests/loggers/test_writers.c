/* test_writers.c - lines of metrics.jsonl, and metrics.csv and TensorBoard's files made from them. tests/peers has the real
 * TensorBoard read them. */
#include <dirent.h>
#include <unistd.h>

#include "test.h"

#include "loggers/logger.h"
#include "loggers/writers.h"
#include "runs/metrics.h"

static int read_line(const char *text, struct tune_metric *m, int64_t *step)
{
    struct tune_metrics_row row = {.path = "metrics.jsonl", .line = 7, .text = text, .size = strlen(text)};
    if (tune_metrics_line(&row) < 0)
        return -1;
    memcpy(m, row.metrics, sizeof row.metrics);
    *step = row.step;
    return row.count;
}

static void lines(void **state)
{
    (void)state;
    struct tune_metric m[TUNE_METRICS_MOST];
    int64_t step = 0;
    assert_int_equal(read_line("{\"note\":\"x\", \"step\":12,\"loss\": -1.50e-3 ,\"ok\":true,\"more\":[1,{\"step\":3}]}", m, &step), 2);
    assert_true(step == 12 && m[1].value == -0.0015 && !strcmp(m[1].name, "loss"));
    assert_true(m[1].text.size == 8 && !memcmp(m[1].text.data, "-1.50e-3", 8));
    static const struct {
        const char *line, *error;
    } bad[] = {
        {"{\"step\":1,\"loss\":2", "metrics.jsonl:7:19: the JSON ends here"},
        {"", "metrics.jsonl:7:1: the JSON ends here"},
        {"[1]", "expected an object"},
        {"{\"loss\":2}", "no \"step\""},
        {"{\"step\":1.5}", "no whole number"},
        {"{\"step\":-1}", "no whole number"},
        {"{\"step\":1,\"a\":1,\"a\":2}", "\"a\" stands there twice"},
        {"{\"step\":1,\"a\":1e999}", "no finite number"},
        {"{\"step\":1} {", "expected nothing more"},
        {"{\"step\":1,\"a\\u0000b\":2}", "with a NUL"},
        {"{\"step\":1,\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\":2}", "more than 47 bytes"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(read_line(bad[i].line, m, &step), -1);
        assert_error_has(bad[i].error);
    }
    char many[2048] = "{\"step\":1";
    for (int i = 0; i < TUNE_METRICS_MOST - 1; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), ",\"m%d\":%d", i, i);
    snprintf(many + strlen(many), sizeof many - strlen(many), "}");
    assert_int_equal(read_line(many, m, &step), TUNE_METRICS_MOST);
    snprintf(strchr(many, '}'), 32, ",\"one\":1}");
    assert_int_equal(read_line(many, m, &step), -1);
    assert_error_has("more than 128 numbers");
}

static const char jsonl[] = "{\"step\":1,\"loss\":2.5,\"grad_norm\":1,\"lr\":1e-05,\"step_s\":0.5,\"tokens\":10,\"labels\":9,"
                            "\"tokens_per_s\":20,\"epoch\":0.25,\"rows\":2,\"elapsed_s\":0.75,\"padded_tokens\":12}\n"
                            "{\"step\":1,\"eval_loss\":2.25,\"eval_perplexity\":9.4877358363585262}\n"
                            "{\"step\":2,\"loss\":2.125}\n";
static const char csv[] = "step,epoch,loss,grad_norm,lr,step_s,elapsed_s,rows,tokens,padded_tokens,labels,tokens_per_s,eval_loss,"
                          "eval_perplexity\n"
                          "1,0.25,2.5,1,1e-05,0.5,0.75,2,10,12,9,20,,\n"
                          "1,,,,,,,,,,,,2.25,9.4877358363585262\n"
                          "2,,2.125,,,,,,,,,,,\n";

static void put_all(struct tune_writers *w)
{
    for (const char *at = jsonl, *newline; (newline = strchr(at, '\n')); at = newline + 1)
        assert_ok(tune_writers_line(w, at, (size_t)(newline - at)));
}

static char *content(const char *path, size_t *size)
{
    char *text;
    assert_ok(tune_file_read(path, 1 << 20, &text, size));
    return text;
}

static void assert_csv(const char *path, const char *expected)
{
    size_t size;
    char *text = content(path, &size);
    assert_string_equal(text, expected);
    free(text);
}

/* The lines of a run that has metrics of its own from its second step on, and one more from its third. */
static const char own_jsonl[] = "{\"step\":1,\"loss\":3}\n"
                                "{\"step\":2,\"loss\":2,\"reward\":0.5}\n"
                                "{\"step\":2,\"eval_loss\":2}\n"
                                "{\"step\":3,\"loss\":1,\"norms/q.k\":7,\"reward\":1e-3}\n";
static const char own_csv[] = "step,epoch,loss,grad_norm,lr,step_s,elapsed_s,rows,tokens,padded_tokens,labels,tokens_per_s,eval_loss,"
                              "eval_perplexity,reward,norms/q.k\n"
                              "1,,3,,,,,,,,,,,,,\n"
                              "2,,2,,,,,,,,,,,,0.5,\n"
                              "2,,,,,,,,,,,,2,,,\n"
                              "3,,1,,,,,,,,,,,,1e-3,7\n";

static void own_columns(void **state)
{
    (void)state;
    assert_ok(tune_file_make_folder("own"));
    struct tune_writers *w = tune_writers_open("own", TUNE_WRITE_CSV, 0);
    assert_got(w);
    for (const char *at = own_jsonl, *newline; (newline = strchr(at, '\n')); at = newline + 1) {
        test_write("own", "metrics.jsonl", own_jsonl, (size_t)(newline + 1 - own_jsonl)); /* as the logger does, first */
        assert_ok(tune_writers_line(w, at, (size_t)(newline - at)));
    }
    tune_writers_free(w);
    assert_csv("own/metrics.csv", own_csv);
    w = tune_writers_open("own", TUNE_WRITE_CSV, 3); /* of a run that goes on */
    assert_got(w);
    tune_writers_free(w);
    assert_csv("own/metrics.csv", own_csv);
}

static void rows(void **state)
{
    (void)state;
    assert_ok(tune_file_make_folder("a"));
    struct tune_writers *w = tune_writers_open("a", TUNE_WRITE_CSV, 0);
    assert_got(w);
    put_all(w);
    assert_csv("a/metrics.csv", csv); /* each line at once, before anything is closed */
    assert_int_equal(tune_writers_line(w, "{\"step\":3,", 10), -1);
    tune_writers_free(w);
    /* a run that goes on from step 1: metrics.jsonl has been cut, the table is made again from it */
    test_write("a", "metrics.jsonl", jsonl, (size_t)(strstr(jsonl, "{\"step\":2") - jsonl));
    test_write("a", "metrics.csv", "step,epo", 8);
    w = tune_writers_open("a", TUNE_WRITE_CSV, 1);
    assert_got(w);
    assert_ok(tune_writers_line(w, "{\"step\":2,\"loss\":2.125}", 23));
    tune_writers_free(w);
    assert_csv("a/metrics.csv", csv);
    w = tune_writers_open("a", 0, 1); /* one that nobody goes on with would say what is no more true */
    assert_got(w);
    tune_writers_free(w);
    assert_true(!tune_file_exists("a/metrics.csv"));
    test_write("a", "metrics.jsonl", "{\"step\":1}\n{\"step\":oops}\n", 25);
    assert_null(tune_writers_open("a", TUNE_WRITE_CSV, 2));
    assert_error_has("metrics.jsonl:2:");
    assert_ok(tune_file_make_folder("full"));
    assert_int_equal(symlink("/dev/full", "full/metrics.csv"), 0);
    assert_null(tune_writers_open("full", TUNE_WRITE_CSV, 0));
    assert_error_has("cannot write full/metrics.csv: No space left");
    assert_null(tune_writers_open("gone", TUNE_WRITE_TENSORBOARD, 0));
    assert_error_has("cannot write gone/events.out.tfevents.");
    w = tune_writers_open("gone", 0, 0); /* nothing asked for: nothing written */
    assert_got(w);
    put_all(w);
    tune_writers_free(w);
}

/* The event files of a folder, in the order of their names; the count. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}
static int is_events(const struct dirent *e)
{
    return !strncmp(e->d_name, "events.out.tfevents.", 20);
}
static int event_files(const char *folder, char paths[4][TUNE_PATH_MAX])
{
    struct dirent **files;
    int n = scandir(folder, &files, is_events, by_name);
    for (int i = 0; i < n; i++) {
        if (i < 4)
            snprintf(paths[i], TUNE_PATH_MAX, "%s/%s", folder, files[i]->d_name);
        free(files[i]);
    }
    free(files);
    return n;
}

static uint64_t little(const unsigned char *p, int n)
{
    uint64_t v = 0;
    for (int i = n; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

/* The same checksum by another way: the remainder of a polynomial division, most significant bit first. */
static uint32_t checksum(const unsigned char *p, size_t n)
{
    uint64_t rest = 0;
    for (size_t i = 0; i < n + 4; i++)
        for (int bit = 0; bit < 8; bit++) {
            unsigned in = i < n ? p[i] >> bit & 1 : 0;
            if (i < 4)
                in ^= 1; /* the initial value */
            rest = rest << 1 | in;
            if (rest >> 32 & 1)
                rest ^= 0x11EDC6F41;
        }
    uint32_t crc = 0;
    for (int bit = 0; bit < 32; bit++)
        crc |= (uint32_t)(rest >> bit & 1) << (31 - bit);
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

/* Records of a file, each checked; how often `part` occurs in their data. */
static int records(const char *path, const char *part, size_t part_size, int *found)
{
    size_t size, at = 0;
    unsigned char *p = (unsigned char *)content(path, &size);
    int n = 0;
    for (*found = 0; at < size; n++) {
        assert_true(size - at >= 16);
        size_t length = little(p + at, 8);
        assert_true(length <= size - at - 16);
        assert_int_equal(little(p + at + 8, 4), checksum(p + at, 8));
        assert_int_equal(little(p + at + 12 + length, 4), checksum(p + at + 12, length));
        *found += memmem(p + at + 12, length, part, part_size) != NULL;
        at += 16 + length;
    }
    free(p);
    return n;
}

static void events(void **state)
{
    (void)state;
    char paths[4][TUNE_PATH_MAX];
    int found;
    assert_int_equal(checksum((const unsigned char *)"123456789", 9), (0xE3069283u >> 15 | 0xE3069283u << 17) + 0xA282EAD8u);
    assert_ok(tune_file_make_folder("b"));
    struct tune_writers *w = tune_writers_open("b", TUNE_WRITE_TENSORBOARD, 0);
    assert_got(w);
    put_all(w);
    assert_int_equal(event_files("b", paths), 1);
    assert_int_equal(records(paths[0], "train/loss\x15", 11, &found), 4); /* flushed while it is open: version, three lines */
    assert_int_equal(found, 2);
    records(paths[0], "\x0a\x09" "eval/loss\x15\x00\x00\x10\x40", 16, &found); /* 2.25 as float32 */
    assert_int_equal(found, 1);
    records(paths[0], "brain.Event:2", 13, &found);
    assert_int_equal(found, 1);
    tune_writers_free(w);
    /* on from step 1, at once: a file behind the first that says that step 2 comes again */
    test_write("b", "metrics.jsonl", jsonl, (size_t)(strstr(jsonl, "{\"step\":2") - jsonl));
    w = tune_writers_open("b", TUNE_WRITE_TENSORBOARD, 1);
    assert_got(w);
    assert_ok(tune_writers_line(w, "{\"step\":2,\"loss\":2.125}", 23));
    tune_writers_free(w);
    assert_int_equal(event_files("b", paths), 2);
    assert_int_equal(records(paths[1], "\x10\x02\x3a\x02\x08\x01", 6, &found), 3);
    assert_int_equal(found, 1);
    /* on from step 1, and there was none before: it gets the steps that are there */
    assert_ok(tune_file_make_folder("c"));
    test_write("c", "metrics.jsonl", jsonl, (size_t)(strstr(jsonl, "{\"step\":2") - jsonl));
    w = tune_writers_open("c", TUNE_WRITE_TENSORBOARD, 1);
    assert_got(w);
    tune_writers_free(w);
    assert_int_equal(event_files("c", paths), 1);
    assert_int_equal(records(paths[0], "train/loss", 10, &found), 4);
    assert_int_equal(found, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines), cmocka_unit_test(rows), cmocka_unit_test(own_columns), cmocka_unit_test(events)};
    return cmocka_run_group_tests(tests, test_home_begin, test_home_end);
}
