/* test_views.c - ticks, smoothing, plots in characters and as SVG, tables in three formats. */
#include <cjson/cJSON.h>

#include "test.h"

#include "core/json.h"
#include "views/plot.h"
#include "views/scale.h"
#include "views/table.h"

/* What a call writes to a stream. */
static char *written;
static size_t written_size;
static FILE *sink(void)
{
    FILE *f = open_memstream(&written, &written_size);
    assert_non_null(f);
    return f;
}
static char *text_of(FILE *f)
{
    assert_int_equal(fclose(f), 0);
    return written;
}

/* The labels of an axis, joined. */
static const char *labels(double low, double high, bool logarithmic, int most)
{
    static char text[512];
    struct tune_scale s = {.low = low, .high = high, .logarithmic = logarithmic};
    char one[32];
    tune_scale_ticks(&s, most);
    assert_true(s.ticks <= most);
    *text = 0;
    for (int i = 0; i < s.ticks; i++) {
        assert_true(tune_scale_place(&s, s.tick[i]) >= -1e-9 && tune_scale_place(&s, s.tick[i]) <= 1 + 1e-9);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "", tune_scale_label(&s, i, one));
    }
    return text;
}

static void ticks(void **state)
{
    (void)state;
    assert_string_equal(labels(0, 10, false, 6), "0 2 4 6 8 10");
    assert_string_equal(labels(1.03, 5.74, false, 6), "2 3 4 5");
    assert_string_equal(labels(-0.5, 0.5, false, 6), "-0.4 -0.2 0 0.2 0.4");
    assert_string_equal(labels(1, 1000, false, 6), "200 400 600 800 1000");
    assert_string_equal(labels(0, 60000, false, 7), "0 10k 20k 30k 40k 50k 60k");
    assert_string_equal(labels(0, 2e-5, false, 5), "0 0.5e-5 1.0e-5 1.5e-5 2.0e-5");
    assert_string_equal(labels(2.5e9, 2.6e9, false, 3), "2500M 2550M 2600M");
    assert_string_equal(labels(0.95, 2200, true, 7), "1 10 100 1000");
    assert_string_equal(labels(0.9, 25, true, 8), "1 2 5 10 20");
    assert_string_equal(labels(1.1, 1.9, true, 6), "1.2 1.4 1.6 1.8"); /* no decade in it */
    for (double span = 1e-12; span < 1e15; span *= 1.7)  /* whatever the range: some, and not too many */
        for (int most = 3; most <= 10; most++) {
            const char *text = labels(span / 3, span * 4 / 3, false, most);
            if (!strchr(text, ' ') && most > 3)
                fail_msg("%g, at most %d: %s", span, most, text);
        }
}

enum { N = 400 };
static double xs[N], noisy[N], falling[N], few[3] = {3, 2, 1};

static void curves(void)
{
    unsigned random = 7;
    for (int i = 0; i < N; i++) {
        random = random * 1664525 + 1013904223;
        xs[i] = i + 1;
        falling[i] = 5 * exp(-i / 100.0) + 1;
        noisy[i] = falling[i] + ((double)(random >> 8) / (1 << 24) - 0.5);
    }
}

static void smoothing(void **state)
{
    (void)state;
    struct tune_plot p = {.title = "t", .x_title = "x", .y_title = "", .smooth = -1};
    struct tune_curve c = {.label = "c", .x = xs, .y = falling, .count = N};
    double *s;
    assert_ok(tune_plot_smooth(&p, &c, &s));
    assert_null(s); /* a smooth curve is drawn as it is */
    c.y = noisy;
    assert_ok(tune_plot_smooth(&p, &c, &s));
    assert_non_null(s);
    double before = 0, after = 0;
    for (int i = 0; i < N; i++) {
        before += (noisy[i] - falling[i]) * (noisy[i] - falling[i]);
        after += (s[i] - falling[i]) * (s[i] - falling[i]);
    }
    assert_true(after < before / 8); /* observed: a fourteenth */
    free(s);
    p.smooth = 0;
    assert_ok(tune_plot_smooth(&p, &c, &s));
    assert_null(s);
    p.smooth = 1; /* (mean of 3, twice) by hand, in the middle and at the end */
    assert_ok(tune_plot_smooth(&p, &c, &s));
    double five = (noisy[98] + 2 * noisy[99] + 3 * noisy[100] + 2 * noisy[101] + noisy[102]) / 9;
    assert_true(fabs(s[100] - five) < 1e-12 && s[0] == noisy[0] && fabs(s[N - 1] - noisy[N - 1]) < 1e-12);
    free(s);
    p.smooth = 1e300;
    assert_ok(tune_plot_smooth(&p, &c, &s));
    free(s);
    c.dotted = true;
    assert_ok(tune_plot_smooth(&p, &c, &s));
    assert_null(s);
    noisy[5] = NAN;
    c.dotted = false;
    assert_ok(tune_plot_smooth(&p, &c, &s));
    assert_null(s); /* with a hole */
    curves();
}

static int columns(const char *line, size_t size)
{
    int n = 0;
    for (size_t i = 0; i < size; i++)
        n += ((unsigned char)line[i] & 0xC0) != 0x80;
    return n;
}

static void terminal(void **state)
{
    (void)state;
    struct tune_curve one[3] = {{.label = "first", .x = xs, .y = falling, .count = N},
                                {.label = "bad\n\033[2J", .x = xs, .y = noisy, .count = N, .color = 1},
                                {.label = "eval", .x = xs, .y = few, .count = 3, .dotted = true}};
    struct tune_plot p = {.title = "loss", .x_title = "step", .y_title = "nats/token", .curves = one, .count = 3, .smooth = -1};
    for (int width = 0; width <= 200; width += width < 40 ? 1 : 23)
        for (int kind = 0; kind < 3; kind++) {
            FILE *f = sink();
            assert_ok(tune_plot_terminal(&p, &(struct tune_terminal){width, 10, kind > 0, kind == 2, false}, f));
            char *text = text_of(f);
            assert_true(tune_utf8_valid(text, written_size, NULL));
            assert_null(strstr(text, "\033[2J"));
            assert_non_null(strstr(text, "nats/token"));
            for (char *line = text, *next; kind < 2 && width >= 60 && (next = strchr(line, '\n')); line = next + 1)
                if (columns(line, (size_t)(next - line)) > width - 1)
                    fail_msg("%d columns: \"%.*s\"", width, (int)(next - line), line);
            if (kind == 0 && !tune_utf8_valid(text, written_size, NULL))
                fail_msg("not ASCII");
            for (size_t i = 0; kind == 0 && i < written_size; i++)
                assert_true((unsigned char)text[i] < 128);
            free(text);
        }
    /* a line from corner to corner: its ends stand in the first and the last column */
    double ends[2] = {0, 1};
    struct tune_curve line = {.label = "up", .x = ends, .y = ends, .count = 2};
    p.curves = &line, p.count = 1;
    FILE *f = sink();
    assert_ok(tune_plot_terminal(&p, &(struct tune_terminal){27, 5, false, false, false}, f));
    char *text = text_of(f);
    assert_string_equal(text, "   loss, nats/token\n"
                              "1 +                    ***\n"
                              "  |              ******\n"
                              "  |         *****\n"
                              "  |   ******\n"
                              "0 +***\n"
                              "  ++---------------------+\n"
                              "   0                  step\n"
                              "   * up 1\n");
    free(text);
}

static void empty(void **state)
{
    (void)state;
    double nothing[2] = {NAN, -1};
    struct tune_curve c = {.label = "c", .x = xs, .y = nothing, .count = 2};
    struct tune_plot p = {.title = "lr", .x_title = "x", .y_title = "", .curves = &c, .count = 1, .logarithmic = true};
    FILE *f = sink();
    assert_int_equal(tune_plot_terminal(&p, &(struct tune_terminal){80, 10, true, true, false}, f), -1);
    assert_error_has("not one point to draw");
    assert_int_equal(tune_plot_svg(&p, 1, f), -1);
    nothing[1] = 4; /* one point is enough */
    assert_ok(tune_plot_terminal(&p, &(struct tune_terminal){80, 10, true, true, false}, f));
    assert_ok(tune_plot_svg(&p, 1, f));
    free(text_of(f));
}

/* Tags of a well-formed document close in the order they open; no attribute is anything but finite. */
static void well_formed(const char *text)
{
    const char *open[16], *at = text;
    int depth = 0;
    while ((at = strchr(at, '<'))) {
        const char *close = strchr(at, '>');
        assert_non_null(close);
        if (at[1] == '/') {
            size_t n = (size_t)(close - at) - 2;
            assert_true(depth > 0 && !strncmp(open[depth - 1] + 1, at + 2, n) && strchr(" >", open[depth - 1][1 + n]));
            depth--;
        } else if (close[-1] != '/') {
            assert_true(depth < 16);
            open[depth++] = at;
        }
        at = close;
    }
    assert_int_equal(depth, 0);
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
}

static void extremes(void **state)
{
    (void)state;
    double far[4] = {-1.7e308, 1.7e308, 9e299, -9e299};
    struct tune_curve wide = {.label = "w", .x = xs, .y = far, .count = 4};
    struct tune_plot q = {.title = "w", .x_title = "x", .y_title = "", .curves = &wide, .count = 1, .smooth = 1};
    FILE *f = sink();
    assert_ok(tune_plot_svg(&q, 1, f));
    char *drawn = text_of(f);
    assert_null(strstr(drawn, "nan"));
    assert_null(strstr(drawn, "inf"));
    free(drawn);
}

static void svg(void **state)
{
    (void)state;
    enum { MANY = 200000 };
    double *x = malloc(MANY * sizeof *x), *y = malloc(MANY * sizeof *y);
    for (int i = 0; i < MANY; i++)
        x[i] = i, y[i] = i == 77777 ? 9 : i % 7;
    struct tune_curve c[] = {{.label = "a <b> & \"c\" \xff\x01", .x = xs, .y = noisy, .count = N},
                             {.label = "eval", .x = xs, .y = few, .count = 3, .dotted = true},
                             {.label = "many", .x = x, .y = y, .count = MANY, .color = 11}};
    struct tune_plot p[] = {{.title = "loss & more", .x_title = "step", .y_title = "nats<token>", .curves = c, .count = 2, .smooth = -1},
                            {.title = "many", .x_title = "step", .y_title = "", .curves = c + 2, .count = 1}};
    FILE *f = sink();
    assert_ok(tune_plot_svg(p, 2, f));
    char *text = text_of(f);
    assert_true(tune_utf8_valid(text, written_size, NULL));
    well_formed(text);
    assert_non_null(strstr(text, "a &#60;b&#62; &#38; &#34;c&#34; ??"));
    assert_non_null(strstr(text, "class=\"curve raw c0\""));
    assert_non_null(strstr(text, "class=\"curve dotted c0\""));
    assert_non_null(strstr(text, "prefers-color-scheme:dark"));
    assert_true(written_size < 200000); /* not a coordinate for each of the points */
    assert_non_null(strstr(text, "class=\"curve c3\""));
    free(text);
    free(x);
    free(y);
}

static char *table(const char *format, int width)
{
    static const char *const names[] = {"name", "loss", "n, \"m\""};
    struct tune_table *t = tune_table_new(names, 3);
    assert_got(t);
    tune_table_text(t, "caf\xc3\xa9");
    tune_table_number(t, 1.84321, "%.2f");
    tune_table_shown(t, 90, "1:30");
    tune_table_text(t, "a,\"b\"\n\033[2J");
    tune_table_number(t, NAN, "%.2f");
    tune_table_text(t, NULL);
    assert_int_equal(tune_table_rows(t), 2);
    assert_string_equal(tune_table_cell(t, 0, 2), "1:30");
    FILE *f = sink();
    assert_ok(tune_table_print(t, format, width, "\u2026", f));
    tune_table_free(t);
    return text_of(f);
}

static void tables(void **state)
{
    (void)state;
    char *text = table("table", 0);
    assert_string_equal(text, "name            loss  n, \"m\"\n"
                              "caf\xc3\xa9            1.84    1:30\n"
                              "a,\"b\"\\n\\x1b[2J\n");
    free(text);
    text = table("table", 20);
    assert_string_equal(text, "name            los\u2026\n"
                              "caf\xc3\xa9            1.8\u2026\n"
                              "a,\"b\"\\n\\x1b[2J\n");
    free(text);
    text = table("csv", 20);
    assert_string_equal(text, "name,loss,\"n, \"\"m\"\"\"\r\n"
                              "caf\xc3\xa9,1.84321,90\r\n"
                              "\"a,\"\"b\"\"\n\033[2J\",,\r\n");
    free(text);
    text = table("json", 20);
    cJSON *json = cJSON_Parse(text);
    const cJSON *first = cJSON_GetArrayItem(json, 0), *second = cJSON_GetArrayItem(json, 1);
    assert_int_equal(cJSON_GetArraySize(json), 2);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(first, "name")), "caf\xc3\xa9");
    assert_true(cJSON_GetObjectItem(first, "loss")->valuedouble == 1.84321 && cJSON_GetObjectItem(first, "n, \"m\"")->valuedouble == 90);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(second, "loss")) && cJSON_IsNull(cJSON_GetObjectItem(second, "n, \"m\"")));
    cJSON_Delete(json);
    free(text);
}

int main(void)
{
    curves();
    const struct CMUnitTest tests[] = {cmocka_unit_test(ticks), cmocka_unit_test(smoothing), cmocka_unit_test(terminal),
                                       cmocka_unit_test(empty), cmocka_unit_test(extremes), cmocka_unit_test(svg),       cmocka_unit_test(tables)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
