/* test_metrics.c - a line of metrics.jsonl is the same, or the same error, whatever line was read before it. */
#include "test.h"

#include <inttypes.h>

#include "../both_readers.h"
#include "core/print.h"
#include "core/random.h"

static uint64_t drawn;
static uint64_t draw(uint64_t most)
{
    return tune_random_u64(7, 3, drawn++) % most;
}

/* The row of another line. */
static struct tune_metrics_row row_after(const char *line)
{
    struct tune_metrics_row row = {.path = "metrics.jsonl", .line = 1, .text = line, .size = strlen(line)};
    assert_ok(tune_metrics_line(&row));
    return row;
}

static bool same(struct tune_metrics_row *row, const char *line)
{
    bool good;
    size_t size = strlen(line);
    char *exact = malloc(size + !size); /* so that sanitizers see a byte too far */
    assert_non_null(exact);
    memcpy(exact, line, size);
    const char *what = both_readers(row, exact, size, &good);
    free(exact);
    if (what)
        fail_msg("%s differs: %s", what, line);
    return good;
}

static void by_hand(void **state)
{
    (void)state;
    static const char before[] = "{\"step\":1,\"loss\":2.5,\"tokens\":7}";
    static const struct {
        const char *line;
        bool good;
    } lines[] = {
        {"{\"step\":2,\"loss\":-0.0,\"tokens\":7}", true},
        {"{\"step\":2,\"loss\":7.3789571405082599,\"tokens\":68719476735}", true},
        {"{\"step\":2,\"loss\":9007199254740993,\"tokens\":7}", true},               /* half way between two doubles */
        {"{\"step\":2,\"loss\":9007199254740993.00000000000000000001,\"tokens\":7}", true},
        {"{\"step\":2,\"loss\":4.9e-324,\"tokens\":7}", true},
        {"{\"step\":2,\"loss\":0e999,\"tokens\":7}", true},
        {"{ \"step\" : 2 , \"loss\" : 3 , \"tokens\" : 7 } ", true},
        {"{\"loss\":3,\"step\":2,\"tokens\":7}", true},
        {"{\"step\":2,\"loss\":3}", true},
        {"{\"step\":2,\"loss\":3,\"tokens\":7,\"epoch\":1}", true},
        {"{\"step\":2,\"loss\":null,\"tokens\":7}", true},
        {"{\"step\":2,\"loss\":\"NaN\",\"tokens\":7}", true},
        {"{\"step\":2,\"l\\u006fss\":3,\"tokens\":7}", true},
        {"{\"step\":2,\"loss\":3,\"loss\":3,\"tokens\":7}", false},
        {"{\"step\":2,\"loss\":3,\"tokens\":7}}", false},
        {"{\"step\":2,\"loss\":3,\"tokens\":7", false},
        {"{\"step\":2,\"loss\":3,\"tokens\":", false},
        {"{\"step\":2,\"loss\":3,\"tokens\":68719476736}", false},
        {"{\"step\":2,\"loss\":3,\"tokens\":-1}", false},
        {"{\"step\":2.5,\"loss\":3,\"tokens\":7}", false},
        {"{\"step\":-2,\"loss\":3,\"tokens\":7}", false},
        {"{\"step\":9007199254740992,\"loss\":3,\"tokens\":7}", false},
        {"{\"step\":2,\"loss\":1e999,\"tokens\":7}", false},
        {"{\"step\":2,\"loss\":NaN,\"tokens\":7}", false},
        {"{\"step\":2,\"loss\":03,\"tokens\":7}", false},
        {"{\"step\":2,\"loss\":3.,\"tokens\":7}", false},
        {"{\"step\":2,\"loss\":.5,\"tokens\":7}", false},
        {"{\"step\":2,\"loss\":3e,\"tokens\":7}", false},
        {"{\"step\":2,\"loss\":+3,\"tokens\":7}", false},
        {"{\"step\":2,\"loss\":-,\"tokens\":7}", false},
        {"{\"step\":2,\"loss\":0x3,\"tokens\":7}", false},
        {"{\"step\":2,\"loss:3,\"tokens\":7}", false},
        {"{\"step\":2:\"loss\":3,\"tokens\":7}", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct tune_metrics_row row = row_after(before);
        if (same(&row, lines[i].line) != lines[i].good)
            fail_msg("expected %s: %s", lines[i].good ? "a good line" : "an error", lines[i].line);
        if (lines[i].good)
            assert_true(same(&row, before));
        else
            assert_true(same(&(struct tune_metrics_row){.path = "p", .line = 1}, before));
    }
    /* a name with an escape: the name itself, without it, is no JSON */
    struct tune_metrics_row row = row_after("{\"step\":1,\"a\\\"b\":1}");
    assert_false(same(&row, "{\"step\":1,\"a\"b\":1}"));
    row = row_after("{\"step\":1,\"a\\tb\":1}");
    assert_false(same(&row, "{\"step\":1,\"a\tb\":1}"));
    /* ... and members that are no numbers are counted again */
    row = row_after("{\"step\":1,\"loss\":2,\"note\":\"x\"}");
    assert_true(same(&row, "{\"step\":1,\"loss\":2}"));
    assert_int_equal(row.others, 0);
}

/* A number as some program may write it. */
static void put_number(char *to, size_t size)
{
    static const char *const odd[] = {"null", "\"x\"", "NaN", "1e999", "1e-999", "00", "5.", ".5", "1e+", "-0", "-", "true", "[1]", "9007199254740993",
                                      "1.00000000000000011102230246251565404", "68719476736", "1E5", "1e0000000005", "0.000000000000000000000001"};
    uint64_t r = tune_random_u64(7, 4, drawn);
    double value = (double)(r >> 11) * 0x1p-53;
    switch (draw(40)) {
    case 0: snprintf(to, size, "%s", odd[draw(sizeof odd / sizeof *odd)]); break;
    case 1: case 2: case 3: case 4: snprintf(to, size, "%" PRIu64, r >> draw(64)); break;
    case 5: memcpy(&value, &r, sizeof value), snprintf(to, size, "%.17g", isfinite(value) ? value : 1.5); break;
    case 6: case 7: snprintf(to, size, "%.*f", (int)draw(25), value * 1000); break;
    case 8: snprintf(to, size, "%" PRIu64 ".%" PRIu64 "e%d", r % 100, r >> draw(64), (int)draw(600) - 300); break;
    case 9: case 10: case 11: snprintf(to, size, "%.*g", 1 + (int)draw(19), value * pow(10, (double)draw(40) - 20)); break;
    default: tune_number_text(to, value * 10);
    }
}

static void change(char *line)
{
    static const char bytes[] = "{}[]\",:.0123456789eE+-\\u \t\nnNa\x01\x80\xff";
    size_t n = strlen(line), at = draw(n + 1);
    char byte = bytes[draw(sizeof bytes - 1)];
    switch (draw(5)) {
    case 0: line[at] = 0; break;
    case 1: memmove(line + at, line + at + (at < n), n + 1 - at - (at < n)); break;
    case 2: memmove(line + at + 1, line + at, n + 1 - at), line[at] = byte; break;
    default: line[at < n ? at : 0] = byte;
    }
}

static void drawn_lines(void **state)
{
    (void)state;
    static const char *const names[] = {"step", "loss", "tokens", "elapsed_s", "epoch", "rows", "\\u0073tep", "a b", "", "lo\\\"ss"};
    struct tune_metrics_row row = {.path = "metrics.jsonl", .line = 1};
    int64_t good = 0, plain = 0;
    char line[2048], number[64];
    int members = 4, first = 0;
    for (int i = 0; i < 60000; i++) {
        if (draw(20) == 0) { /* often the names of the line before, as in a run */
            members = 1 + (int)draw(8);
            first = (int)draw(3);
        }
        size_t n = 0;
        for (int k = 0; k < members; k++) {
            put_number(number, sizeof number);
            const char *name = names[(first + k) % 10];
            bool counts = !strcmp(name, "step") || !strcmp(name, "tokens") || !strcmp(name, "rows");
            if (counts && draw(30))
                snprintf(number, sizeof number, "%d", i);
            n += (size_t)snprintf(line + n, sizeof line - n, "%c\"%s\":%s", k ? ',' : '{', name, number);
        }
        snprintf(line + n, sizeof line - n, "}");
        for (uint64_t changes = draw(3) ? 0 : 1 + draw(3); changes > 0; changes--)
            change(line);
        bool is_good = same(&row, line);
        good += is_good;
        plain += is_good && row.plain;
    }
    if (good < 10000 || good > 50000 || plain < 5000)
        fail_msg("%" PRId64 " good lines, %" PRId64 " plain ones: too few to compare much", good, plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_hand), cmocka_unit_test(drawn_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
