/* test_views.c - ticks, smoothing, plots in characters and as SVG, tables in three formats. */
#include <cjson/cJSON.h>

#include "test.h"

#include "files/json.h"
#include "sweeps/charts/heat.h"
#include "sweeps/charts/parallel.h"
#include "views/matrix.h"
#include "views/plot.h"
#include "views/scale.h"
#include "views/shades.h"
#include "views/sheet.h"
#include "views/table.h"
#include "views/text.h"

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
        assert_true(tune_scale_position(&s, s.tick[i]) >= -1e-9 && tune_scale_position(&s, s.tick[i]) <= 1 + 1e-9);
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
    assert_string_equal(labels(2.5e9, 2.6e9, false, 3), "2.50G 2.55G 2.60G");
    assert_string_equal(labels(0, 8.2e6, false, 5), "0 2M 4M 6M 8M");
    assert_string_equal(labels(0, 8.2e12, false, 5), "0 2T 4T 6T 8T");
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
    for (int i = 0; i < 2; i++)
        for (at = text; (at = strstr(at, i ? "inf" : "nan")); at++)
            if (!strchr(">-", at[-1]) || (at[-1] == '-' && at[-2] != '>')) /* a curve's last value may be one */
                fail_msg("no coordinate: \"%.*s\"", 200, at - (at - text < 100 ? at - text : 100));
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
    struct tune_curve c[] = {{.label = "a <b> & \"c\" \xff\x01\xef\xbf\xbe", .x = xs, .y = noisy, .count = N},
                             {.label = "eval", .x = xs, .y = few, .count = 3, .dotted = true},
                             {.label = "many", .x = x, .y = y, .count = MANY, .color = 11}};
    struct tune_plot p[] = {{.title = "loss & more", .x_title = "step", .y_title = "nats<token>", .curves = c, .count = 2,
                             .smooth = -1},
                            {.title = "many", .x_title = "step", .y_title = "", .curves = c + 2, .count = 1}};
    FILE *f = sink();
    assert_ok(tune_plot_svg(p, 2, f));
    char *text = text_of(f);
    assert_true(tune_utf8_valid(text, written_size, NULL));
    well_formed(text);
    assert_non_null(strstr(text, "a &#60;b&#62; &#38; &#34;c&#34; ???"));
    assert_non_null(strstr(text, "class=\"curve raw c0\""));
    assert_non_null(strstr(text, "class=\"curve dotted c0\""));
    assert_non_null(strstr(text, "prefers-color-scheme:dark"));
    assert_true(written_size < 200000); /* not a coordinate for each of the points */
    assert_non_null(strstr(text, "class=\"curve c3\""));
    free(text);
    free(x);
    free(y);
}

static int times_in(const char *text, const char *what)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        count++;
    return count;
}

static void matrix(void **state)
{
    (void)state;
    static const char *const names[] = {"a <b> & \"c\" \xff", "dog", "(other)"};
    static const double counts[] = {8, 1, 1, 0, 0, 0};
    enum { MANY = 100 };
    static const char *many[MANY];
    static double zeros[MANY * MANY];
    for (int i = 0; i < MANY; i++)
        many[i] = i % 2 ? "odd label" : "even label";
    struct tune_matrix m[] = {{.title = "confusion & more", .note = "x.jsonl", .row_title = "label", .column_title = "answer", .row_names = names,
                               .column_names = names, .rows = 2, .columns = 3, .counts = counts},
                              {.title = "many", .row_title = "label", .column_title = "answer", .row_names = many, .column_names = many,
                               .rows = MANY, .columns = MANY, .counts = zeros}};
    FILE *f = sink();
    tune_matrix_svg(m, 2, f);
    char *text = text_of(f);
    assert_true(tune_utf8_valid(text, written_size, NULL));
    well_formed(text);
    assert_int_equal(times_in(text, "<rect class=\"q"), 6 + MANY * MANY);
    assert_non_null(strstr(text, "<title>8 a &#60;b&#62; &#38; &#34;c&#34; ? as a &#60;b&#62; &#38; &#34;c&#34; ?, 80.0 %</title>"));
    assert_non_null(strstr(text, "<title>0 dog as (other), 0.0 %</title>")); /* a label that no row has */
    assert_non_null(strstr(text, "pointer-events=\"none\">8</text>"));
    assert_int_equal(times_in(text, "pointer-events=\"none\">"), 6); /* no room for numbers in the large one */
    assert_int_equal(times_in(text, "text-anchor=\"end\">even label"), MANY / 2); /* every second row is named */
    free(text);
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
    text = table("table", 24); /* the text is shortened in the middle, the numbers are whole */
    assert_string_equal(text, "name        loss  n, \"m\"\n"
                              "caf\xc3\xa9        1.84    1:30\n"
                              "a,\"b\u20261b[2J\n");
    free(text);
    text = table("table", 15); /* two blocks */
    assert_string_equal(text, "name      loss\n"
                              "caf\xc3\xa9      1.84\n"
                              "a,\"\u2026b[2J\n"
                              "\n"
                              "name      n, \"m\"\n"
                              "caf\xc3\xa9        1:30\n"
                              "a,\"\u2026b[2J\n");
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
    assert_true(cJSON_GetObjectItem(first, "loss")->valuedouble == 1.84321);
    assert_true(cJSON_GetObjectItem(first, "n, \"m\"")->valuedouble == 90);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(second, "loss")) && cJSON_IsNull(cJSON_GetObjectItem(second, "n, \"m\"")));
    cJSON_Delete(json);
    free(text);
}

/* A table of two key columns, three numbers and two texts that may stand below their rows. */
static char *wide_table(int width)
{
    static const char *const names[] = {"name of the row", "unit", "x", "y", "text", "options"};
    struct tune_table *t = tune_table_new(names, 6);
    assert_got(t);
    tune_table_keys(t, 2);
    tune_table_below(t, 4);
    tune_table_below(t, 5);
    for (int row = 0; row < 2; row++) {
        tune_table_text(t, row ? "second" : "the first row");
        tune_table_text(t, "s");
        tune_table_number(t, row ? 1234567.5 : -1, "%.1f");
        tune_table_number(t, 0.125, "%.3f");
        tune_table_text(t, row ? NULL : "plain");
        tune_table_text(t, "lr=1e-4 path=/a/long/path/of/somebody/to/rows.jsonl");
    }
    FILE *f = sink();
    assert_ok(tune_table_print(t, "table", width, "\u2026", f));
    tune_table_free(t);
    return text_of(f);
}

static void wide_tables(void **state)
{
    (void)state;
    char *text = wide_table(110);
    assert_string_equal(text, "name of the row  unit          x      y  text   options\n"
                              "the first row    s          -1.0  0.125  plain  lr=1e-4 path=/a/long/path/of/somebody/to/rows.jsonl\n"
                              "second           s     1234567.5  0.125         lr=1e-4 path=/a/long/path/of/somebody/to/rows.jsonl\n");
    free(text);
    text = wide_table(60);
    assert_string_equal(text, "name of the row  unit          x      y  text\n"
                              "the first row    s          -1.0  0.125  plain\n"
                              "    lr=1e-4 path=/a/long/path/of/somebody/to/rows.jsonl\n"
                              "second           s     1234567.5  0.125\n"
                              "    lr=1e-4 path=/a/long/path/of/somebody/to/rows.jsonl\n");
    free(text);
    text = wide_table(32);
    assert_string_equal(text, "name of the row  unit          x\n"
                              "the first row    s          -1.0\n"
                              "second           s     1234567.5\n"
                              "\n"
                              "name of the row  unit      y\n"
                              "the first row    s     0.125\n"
                              "    plain  lr=1e-4\n"
                              "    path=/a/long/\u2026/to/rows.jsonl\n"
                              "second           s     0.125\n"
                              "    lr=1e-4\n"
                              "    path=/a/long/\u2026/to/rows.jsonl\n");
    free(text);
    for (int width = 1; width < 120; width++) { /* whatever the width: no number is cut */
        text = wide_table(width);
        assert_non_null(strstr(text, " 1234567.5"));
        assert_non_null(strstr(text, " 0.125"));
        free(text);
    }
}

/* ---- what every drawing shares ---- */

static int base_of(const double *values, int count)
{
    struct tune_scale s;
    assert_true(tune_scale_over(&s, values, count, -1, 0));
    return s.base;
}
#define BASE_OF(...) base_of((double[]){__VA_ARGS__}, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)))

static void axes(void **state)
{
    (void)state;
    char spelled[32];
    struct tune_scale far = {.low = 25, .high = 54500};
    tune_scale_to_string(&far, 272);
    assert_string_equal(tune_scale_text(&far, 54500, spelled), "54.5k");
    assert_string_equal(tune_scale_text(&far, 25, spelled), "25"); /* not 0.0k */
    assert_string_equal(tune_scale_text(&far, 0, spelled), "0");
    assert_int_equal(BASE_OF(1, 2, 4, 8), 2);
    assert_int_equal(BASE_OF(8192, 512, 512, 1024, NAN, 4096), 2);
    assert_int_equal(BASE_OF(1e-5, 1e-4, 1e-3, 1e-2), 10);
    assert_int_equal(BASE_OF(3e-5, 3e-4, 3e-3), 10);
    assert_int_equal(BASE_OF(1, 2, 4, 8, 16, 24, 32, 64, 128), 2);
    assert_int_equal(BASE_OF(1, 3, 10, 30, 100, 3000), 10);
    assert_int_equal(BASE_OF(1, 2, 3, 4), 0);
    assert_int_equal(BASE_OF(512, 1024), 0);
    assert_int_equal(BASE_OF(0, 1, 2, 4, 8), 0);
    assert_int_equal(BASE_OF(-4, -2, -1), 0);
    assert_int_equal(BASE_OF(7), 0);
    double many[200];
    for (int i = 0; i < 200; i++)
        many[i] = pow(10, -5 + i / 50.0);
    assert_int_equal(base_of(many, 200), 10);
    for (int i = 0; i < 200; i++)
        many[i] = 1 + i;
    assert_int_equal(base_of(many, 200), 0);
    struct tune_scale s;
    assert_false(tune_scale_over(&s, (double[]){NAN, INFINITY, -1e308}, 3, -1, 0));
    assert_false(tune_scale_over(&s, (double[]){0, -3}, 2, 10, 0)); /* nothing above 0 */

    struct tune_scale two = {.low = 400, .high = 9000, .logarithmic = true, .base = 2};
    char text[32];
    tune_scale_ticks(&two, 8);
    assert_int_equal(two.ticks, 5);
    assert_string_equal(tune_scale_label(&two, 0, text), "512");
    assert_string_equal(tune_scale_label(&two, 4, text), "8192");
    assert_true(tune_scale_at_levels(&two, (double[]){512, 768, 4096}, 3, 8));
    assert_string_equal(tune_scale_label(&two, 1, text), "768");
    assert_false(tune_scale_at_levels(&two, (double[]){512, 513, 4096}, 3, 8)); /* too close */
    assert_false(tune_scale_at_levels(&two, (double[]){100, 4096}, 2, 8));     /* not on it */
    assert_string_equal(tune_level_text(-0.0, text), "0");
    assert_string_equal(tune_level_text(0.0003, text), "0.0003");
    assert_string_equal(tune_level_text(1048576, text), "1048576");
}

static void to_oklab(struct tune_shade c, double lab[3])
{
    double rgb[3] = {c.red / 255.0, c.green / 255.0, c.blue / 255.0};
    for (int i = 0; i < 3; i++)
        rgb[i] = rgb[i] <= 0.04045 ? rgb[i] / 12.92 : pow((rgb[i] + 0.055) / 1.055, 2.4);
    double l = cbrt(0.4122214708 * rgb[0] + 0.5363325363 * rgb[1] + 0.0514459929 * rgb[2]);
    double m = cbrt(0.2119034982 * rgb[0] + 0.6806995451 * rgb[1] + 0.1073969566 * rgb[2]);
    double s = cbrt(0.0883024619 * rgb[0] + 0.2817188376 * rgb[1] + 0.6299787005 * rgb[2]);
    lab[0] = 0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s;
    lab[1] = 1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s;
    lab[2] = 0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s;
}

/* Equal steps to the eye, each darker than the one before; what is written on them can be read. */
static void shades(void **state)
{
    (void)state;
    double before[3], now[3];
    for (int i = 0; i < TUNE_SHADES; i++) {
        to_oklab(tune_shade(i), now);
        if (i > 0) {
            double step = sqrt(pow(now[0] - before[0], 2) + pow(now[1] - before[1], 2) + pow(now[2] - before[2], 2));
            assert_true(now[0] < before[0]);
            assert_true(step > 0.021 && step < 0.0275); /* observed: 0.0217 to 0.0269, for colours are rounded to bytes */
        }
        memcpy(before, now, sizeof now);
    }
    assert_true(tune_shade_takes_black(0) && !tune_shade_takes_black(TUNE_SHADES - 1));
    assert_int_equal(tune_shade_at(NAN), 0);
    assert_int_equal(tune_shade_at(-1), 0);
    assert_int_equal(tune_shade_at(0.5), TUNE_SHADES / 2);
    assert_int_equal(tune_shade_at(1e9), TUNE_SHADES - 1);
}

static char *put_in(const char *text, int width, char side, bool unicode)
{
    FILE *f = sink();
    tune_put_in(f, text, width, side, unicode);
    return text_of(f);
}

static void texts(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shown;
        int width;
        char side;
        bool unicode;
    } cases[] = {{"ab", "ab   ", 5, '<', true},       {"ab", "   ab", 5, '>', true},      {"ab", " ab  ", 5, '^', true},
                 {"abcdef", "abc\u2026", 4, '<', true}, {"abcdef", "abc~", 4, '>', false},  {"abcd", "abcd", 4, '<', true},
                 {"\u00e9\u00e9\u00e9", "\u00e9\u2026", 2, '<', true}, {"a\033[2J", "a\\x1b[2J", 8, '<', true},
                 {"a\xff", "a? ", 3, '<', true},      {"abc", "", 0, '<', true},           {"", "  ", 2, '^', true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = put_in(cases[i].text, cases[i].width, cases[i].side, cases[i].unicode);
        assert_string_equal(text, cases[i].shown);
        free(text);
    }
    const char *const names[] = {"first", "the second", "third"};
    FILE *f = sink();
    tune_put_key(f, names, 3, 2, 24, true);
    char *text = text_of(f);
    assert_string_equal(text, "  a first   b the second\n  c third\n");
    free(text);
}

static int count_of(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        n++;
    return n;
}

/* Drawn by one of the three, as SVG (kind -1) or in a terminal: ASCII, unicode, 256 colours, all of them. The caller frees it. */
struct picture {
    const struct tune_plot *plot;
    const struct tune_heat *heat;
    const struct tune_parallel *parallel;
};
static int draw(struct picture p, int kind, int width, FILE *f)
{
    struct tune_terminal how = {.width = width, .height = 10, .unicode = kind > 0, .color = kind > 1, .truecolor = kind > 2};
    if (p.plot)
        return kind < 0 ? tune_plot_svg(p.plot, 1, f) : tune_plot_terminal(p.plot, &how, f);
    if (p.heat)
        return kind < 0 ? tune_heat_svg(p.heat, 1, f) : tune_heat_terminal(p.heat, &how, f);
    return tune_parallel_svg(p.parallel, 1, f);
}
static char *drawn(struct picture p, int kind, int width)
{
    FILE *f = sink();
    assert_ok(draw(p, kind, width, f));
    return text_of(f);
}

/* What must hold of every drawing: well-formed, or no line too wide and nothing that moves a cursor. */
static void check_all(struct picture p)
{
    static const int widths[] = {40, 41, 57, 80, 133};
    char *text = drawn(p, -1, 0);
    assert_true(tune_utf8_valid(text, written_size, NULL));
    well_formed(text);
    free(text);
    for (int kind = 0; kind < 4 && !p.parallel; kind++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            text = drawn(p, kind, widths[w]);
            assert_true(tune_utf8_valid(text, written_size, NULL));
            assert_null(strstr(text, "\033[2J"));
            for (char *line = text, *next; kind < 2 && (next = strchr(line, '\n')); line = next + 1)
                if (columns(line, (size_t)(next - line)) > widths[w] - 1)
                    fail_msg("%d columns: \"%.*s\"", widths[w], (int)(next - line), line);
            free(text);
        }
    free(drawn(p, 1, 0)); /* no room at all */
    free(drawn(p, 3, 1));
}

/* ---- curves with a spread, over categories ---- */

static void spreads(void **state)
{
    (void)state;
    double x[] = {1, 2, 4, 8}, y[] = {10, 20, 25, 26}, low[] = {8, NAN, -5, 24}, high[] = {11, 22, 40, 25};
    struct tune_curve c = {.label = "512", .x = x, .y = y, .low = low, .high = high, .count = 4, .marked = true};
    struct tune_plot p = {.title = "t", .x_title = "batch_size", .y_title = "tokens/s", .curves = &c, .count = 1, .x_base = -1,
                          .note = "bars: 3 <runs>\033[2J"};
    struct picture picture = {.plot = &p};
    check_all(picture);
    char *text = drawn(picture, -1, 0);
    assert_int_equal(count_of(text, "class=\"bar c0\""), 3);
    assert_int_equal(count_of(text, "<circle"), 4 + 1); /* one in the legend */
    assert_non_null(strstr(text, ">bars: 3 &#60;runs&#62;?[2J<"));
    assert_non_null(strstr(text, "10 at 1, 8 to 11</title>"));
    assert_non_null(strstr(text, "26 at 8, 24 to 26</title>")); /* the point lies within its spread */
    for (int i = 0; i < 4; i++) /* ticks at what was measured */
        assert_non_null(strstr(text, (const char *[]){">1<", ">2<", ">4<", ">8<"}[i]));
    free(text);
    text = drawn(picture, 0, 60);
    assert_non_null(strstr(text, "40 +"));
    assert_true(count_of(text, "|") > 12);
    assert_null(strstr(text, " 26\n")); /* its last value is no more than the others */
    assert_non_null(strstr(text, "bars: 3 <runs>\\x1b[2J"));
    free(text);
    p.note = "the words of a long note stand below each other, in as many lines as they need, and none of them is cut off; "
             "not even awordthatislongerthanalinecanbeawordthatislongerthanalinecanbeawordthatislongerthanalinecanbeawordthatisl"
             "ongerthanalinecanbe";
    text = drawn(picture, -1, 0);
    well_formed(text);
    assert_non_null(strstr(text, ">the words of a long note stand below each other, in as many lines as they need, and none of them is cut off;<"));
    assert_non_null(strstr(text, ">not even<"));
    assert_non_null(strstr(text, ">awordthat"));
    assert_non_null(strstr(text, "canbe<"));
    assert_null(strstr(text, "\u2026"));
    free(text);
    text = drawn(picture, 0, 60);
    assert_non_null(strstr(text, "   the words of a long note stand below each other, in as\n"));
    free(text);
    p.note = NULL;
    struct tune_scale xs, ys;
    assert_ok(tune_plot_scales(&p, &xs, &ys));
    assert_true(ys.low < -5 && ys.high > 40 && xs.logarithmic && xs.base == 2);
    p.logarithmic = true; /* -5 is not on that axis */
    assert_ok(tune_plot_scales(&p, &xs, &ys));
    assert_true(ys.low > 5 && ys.high > 40);
    check_all(picture);
    enum { MANY = 5000 };
    static double xm[MANY], ym[MANY], lm[MANY], hm[MANY];
    for (int i = 0; i < MANY; i++)
        xm[i] = i, ym[i] = i % 7, lm[i] = i % 7 - 1, hm[i] = i / 1000 == 2 ? NAN : i == 3333 ? 99 : i % 7 + 1;
    struct tune_curve crowd = {.label = "", .x = xm, .y = ym, .count = TUNE_PLOT_MARKS, .marked = true};
    p = (struct tune_plot){.title = "t", .x_title = "size", .y_title = "", .curves = &crowd, .count = 1, .smooth = -1};
    check_all(picture);
    text = drawn(picture, -1, 0);
    assert_int_equal(count_of(text, "<circle"), TUNE_PLOT_MARKS); /* one alone without a name: no legend */
    free(text);
    crowd.count++; /* too many to stand one by one */
    check_all(picture);
    text = drawn(picture, -1, 0);
    assert_int_equal(count_of(text, "<circle"), 0);
    assert_int_equal(count_of(text, "class=\"curve raw"), 1);
    assert_int_equal(count_of(text, "class=\"curve c0"), 1);
    free(text);
    text = drawn(picture, 0, 60);
    assert_non_null(strstr(text, "size\n"));
    assert_null(strstr(strstr(text, "size\n"), "*")); /* nothing below the axis' title */
    free(text);
    struct tune_curve band = {.label = "b", .x = xm, .y = ym, .low = lm, .high = hm, .count = MANY};
    p = (struct tune_plot){.title = "t", .x_title = "step", .y_title = "", .curves = &band, .count = 1};
    check_all(picture);
    text = drawn(picture, -1, 0);
    assert_int_equal(count_of(text, "class=\"band f0\""), 2); /* with a hole between */
    assert_null(strstr(text, "class=\"bar"));
    assert_true(written_size < 150000);
    free(text);
}

static void categories(void **state)
{
    (void)state;
    const char *const names[] = {"smollm2", "granite & <co>", "llama"};
    double at[] = {0, 1, 2, 3, -1, NAN}, y[] = {5, 4, 3, 2, 1, 0}, low[] = {4, 3, 2, 1, 0, 0};
    struct tune_curve c[2] = {{.label = "a", .x = at, .y = y, .low = low, .high = y, .count = 6, .marked = true},
                              {.label = "b", .x = at, .y = low, .count = 6, .color = 1, .marked = true}};
    struct tune_plot p = {.title = "t", .x_title = "model", .y_title = "s", .curves = c, .count = 2, .x_names = names,
                          .x_count = 3};
    struct picture picture = {.plot = &p};
    check_all(picture);
    char *text = drawn(picture, -1, 0);
    assert_int_equal(count_of(text, "class=\"bar c0\""), 3); /* what is none of the names is left out */
    assert_int_equal(count_of(text, "<path class=\"curve"), 0);
    assert_non_null(strstr(text, ">granite &#38; &#60;co&#62;</text>"));
    assert_null(strstr(text, "rotate("));
    free(text);
    text = drawn(picture, 0, 80);
    assert_non_null(strstr(text, "granite & <co>"));
    assert_null(strstr(text, "a smollm2"));
    free(text);
    text = drawn(picture, 0, 41); /* no room beneath the columns */
    assert_non_null(strstr(text, "a smollm2   b granite & <co>\n"));
    free(text);
    const char *many[100];
    for (int i = 0; i < 100; i++)
        many[i] = i % 2 ? "a name that is too long to stand there" : "x\033[2J";
    p.x_names = many, p.x_count = 100;
    check_all(picture);
    text = drawn(picture, -1, 0);
    assert_int_equal(count_of(text, "rotate(-40"), 50);
    free(text);
    p.x_count = 1;
    check_all(picture);
}

/* ---- the Pareto front ---- */

static const char *front_of(const double *x, const double *y, int count, int x_best, int y_best)
{
    static char text[32];
    bool front[32];
    assert_ok(tune_plot_front(x, y, count, x_best, y_best, front));
    for (int i = 0; i < count; i++)
        text[i] = front[i] ? '#' : '.';
    text[count] = 0;
    return text;
}

static void fronts(void **state)
{
    (void)state;
    const double memory[] = {1, 2, 3, 2, 4, 2, NAN, 9, 1}, speed[] = {5, 9, 9, 4, 10, 9, 99, INFINITY, 5};
    assert_string_equal(front_of(memory, speed, 9, -1, 1), "##..##..#"); /* equal ones are both on it */
    assert_string_equal(front_of(memory, speed, 9, 1, 1), "....#....");
    assert_string_equal(front_of(memory, speed, 9, 1, -1), "..###....");
    assert_string_equal(front_of(memory, speed, 0, 1, 1), "");
    unsigned random = 5;
    double x[31], y[31];
    for (int round = 0; round < 200; round++) { /* as by the definition */
        char expected[32] = "";
        for (int i = 0; i < 31; i++) {
            random = random * 1664525 + 1013904223;
            x[i] = (random >> 8) % 7, y[i] = (random >> 16) % 5;
        }
        for (int i = 0; i < 31; i++) {
            bool beaten = false;
            for (int k = 0; k < 31; k++)
                beaten |= x[k] <= x[i] && y[k] >= y[i] && (x[k] < x[i] || y[k] > y[i]);
            expected[i] = beaten ? '.' : '#';
        }
        assert_string_equal(front_of(x, y, 31, -1, 1), expected);
    }
}

static void rings(void **state)
{
    (void)state;
    double x[] = {1, 2, 3, NAN}, y[] = {5, 9, 4, 7};
    const bool front[] = {true, true, false, true};
    struct tune_curve c[2] = {{.label = "", .x = x, .y = y, .count = 4, .marked = true, .apart = true, .front = front}};
    struct tune_plot p = {.title = "speed", .x_title = "memory, bytes", .y_title = "1/s", .curves = c, .count = 1,
                          .front = "Pareto <front>"};
    struct picture picture = {.plot = &p};
    check_all(picture);
    char *text = drawn(picture, -1, 0);
    assert_int_equal(count_of(text, "<circle class=\"mark\""), 2 + 1); /* one in the legend; the last point cannot be drawn */
    assert_int_equal(count_of(text, ", Pareto &#60;front&#62;</title>"), 2);
    assert_int_equal(count_of(text, ">Pareto &#60;front&#62;</text>"), 1);
    free(text);
    text = drawn(picture, 0, 60);
    assert_int_equal(count_of(text, "P "), 1); /* in the legend */
    assert_int_equal(count_of(text, "P"), 2 + 2);
    free(text);
    text = drawn(picture, 1, 60);
    assert_int_equal(count_of(text, "\u25c9"), 2 + 1);
    assert_int_equal(count_of(text, "\u25cf"), 1);
    free(text);
    p.front = NULL;
    text = drawn(picture, -1, 0);
    assert_int_equal(count_of(text, "<circle"), 3);
    free(text);
}

/* A line over many points of its own colour is above them, with a rim. */
static void band_above(void **state)
{
    (void)state;
    enum { MANY = TUNE_PLOT_MARKS + 1 };
    double x[] = {0, 1}, y[] = {5, 5}, low[] = {4, 4}, high[] = {6, 6}, at[MANY], measured[MANY];
    int64_t rows[MANY];
    for (int i = 0; i < MANY; i++) {
        at[i] = i / (MANY - 1.0);
        measured[i] = i % 2 ? 5 : i % 11;
        rows[i] = i;
    }
    struct tune_curve c[] = {{.label = "model", .x = x, .y = y, .low = low, .high = high, .count = 2, .band = true},
                             {.label = "measured", .x = at, .y = measured, .count = MANY, .marked = true, .apart = true, .rows = rows}};
    struct tune_plot p = {.title = "speed", .x_title = "a", .y_title = "1/s", .curves = c, .count = 2, .smooth = -1, .x_base = -1};
    struct picture picture = {.plot = &p};
    check_all(picture);
    char *text = drawn(picture, -1, 0), *rim = strstr(text, "<path class=\"curve halo\"");
    assert_int_equal(count_of(text, "fill-opacity=\"0.4\""), MANY);
    assert_non_null(rim);
    assert_null(strstr(rim, "data-row="));
    assert_int_equal(count_of(text, "<path class=\"curve c0\""), 1);
    assert_non_null(strstr(rim, "<path class=\"curve c0\""));
    free(text);
    text = drawn(picture, 0, 60);
    assert_true(count_of(text, "*") > 40);
    free(text);
    c[1].count = MANY - 1;
    text = drawn(picture, -1, 0);
    assert_null(strstr(text, "curve halo"));
    free(text);
}

static void bands(void **state)
{
    (void)state;
    double x[] = {0, 1, 2}, y[] = {5, 6, 4}, low[] = {4, 5, 3}, high[] = {6, 7, 5}, at[] = {0, 1, 2}, measured[] = {5.5, 6, 3};
    static const char *const names[] = {"one", "two", "three"};
    const int64_t rows[] = {0, 1, 2};
    struct tune_curve c[] = {{.label = "model", .x = x, .y = y, .low = low, .high = high, .count = 3, .band = true},
                             {.label = "measured", .x = at, .y = measured, .count = 3, .marked = true, .apart = true, .rows = rows}};
    struct tune_plot p = {.title = "speed", .x_title = "a", .y_title = "1/s", .curves = c, .count = 2, .smooth = -1, .x_base = -1};
    struct picture picture = {.plot = &p};
    check_all(picture);
    char *text = drawn(picture, -1, 0);
    assert_int_equal(count_of(text, "<path class=\"band f0\""), 1); /* three points, and still a band */
    assert_int_equal(count_of(text, "<path class=\"bar"), 0);
    assert_int_equal(count_of(text, "data-row="), 3);
    assert_true(strstr(text, "class=\"band") < strstr(text, "data-row="));
    assert_int_equal(count_of(text, ">model</text>"), 1); /* without its last value */
    free(text);
    text = drawn(picture, 0, 60);
    assert_true(count_of(text, ".") > 20);
    assert_int_equal(count_of(text, "o"), 3 + 2); /* points, and "o model" */
    free(text);
    p.x_names = names;
    p.x_count = 3;
    check_all(picture);
    text = drawn(picture, -1, 0);
    assert_int_equal(count_of(text, "<path class=\"band"), 0);
    assert_int_equal(count_of(text, "<path class=\"bar"), 3);
    assert_int_equal(count_of(text, "l7 -7 7 7-7 7z"), 3 + 1);
    assert_int_equal(count_of(text, "<circle"), 3 + 1);
    free(text);
}

/* ---- heat maps ---- */

static const char *const sizes[] = {"1", "2", "4"}, *const lengths[] = {"512", "1024"};

static void heat(void **state)
{
    (void)state;
    double v[] = {2624.05, 4355.27, 5100.6, 3912.07, 4353.09, NAN};
    const char *const hints[] = {"2600 to <2650>", NULL, NULL, NULL, NULL, "out of memory"};
    struct tune_heat h = {.title = "speed", .unit = "tokens/s", .x_title = "batch_size", .y_title = "length", .x_names = sizes,
                          .y_names = lengths, .columns = 3, .rows = 2, .values = v, .hints = hints, .best = 1};
    struct picture picture = {.heat = &h};
    check_all(picture);
    char *text = drawn(picture, 0, 80);
    assert_string_equal(text, "        speed, tokens/s\n"
                              "             batch_size      \n"
                              "length     1      2      4   \n"
                              "   512   2624   4355   5101* \n"
                              "  1024   3912   4353     -   \n"
                              "        *: the highest   -: missing\n");
    free(text);
    text = drawn(picture, -1, 0);
    assert_int_equal(count_of(text, "url(#missing)"), 2); /* and in the key */
    assert_non_null(strstr(text, "<title>length 512, batch_size 1: 2624.05 tokens/s, 2600 to &#60;2650&#62;</title>"));
    assert_non_null(strstr(text, "<title>length 1024, batch_size 4: missing: out of memory</title>"));
    assert_non_null(strstr(text, "class=\"q31\"><title>length 512, batch_size 4: 5100.6 "));
    assert_non_null(strstr(text, "class=\"q0\"><title>length 512, batch_size 1: "));
    assert_non_null(strstr(text, ">2624</text>"));
    assert_int_equal(count_of(text, "class=\"mark"), 2);
    free(text);
    text = drawn(picture, 3, 80); /* in a dark terminal the palest is the strongest */
    assert_non_null(strstr(text, "\033[38;5;16;48;2;244;245;186m 5101* \033[0m"));
    free(text);
    h.best = -1; /* the lowest gets the strongest colour */
    text = drawn(picture, -1, 0);
    assert_non_null(strstr(text, "class=\"q31\"><title>length 512, batch_size 1: "));
    free(text);
    text = drawn(picture, 3, 80);
    assert_non_null(strstr(text, "\033[38;5;16;48;2;244;245;186m 2624* \033[0m"));
    free(text);
    text = drawn(picture, 2, 80);
    assert_non_null(strstr(text, "\033[38;5;16;48;5;229m 2624* \033[0m"));
    free(text);
    struct tune_heat two[2] = {h, h};
    FILE *f = sink();
    assert_ok(tune_heat_svg(two, 2, f));
    text = text_of(f);
    well_formed(text);
    assert_int_equal(count_of(text, "class=\"mark halo\""), 2);
    free(text);
    const char *const models[] = {"granite-3.1-8b-instruct", "smollm2"};
    h.y_names = models;
    text = drawn(picture, 0, 32); /* rather cut the names than leave the numbers out */
    assert_non_null(strstr(text, "granite-3~  2624*  4355  5101 \n"));
    free(text);
    const double sure[] = {0, 3.4, 0.44, 12, NAN, 7};
    h.spreads = sure, h.best = 1, h.y_names = lengths;
    check_all(picture);
    text = drawn(picture, 0, 80);
    assert_non_null(strstr(text, "   512    2624 +-0%     4355 +-3%    5101* +-0.4% \n"
                                 "  1024    3912 +-12%       4353           -       \n"));
    free(text);
    text = drawn(picture, 0, 40); /* no room for them */
    assert_non_null(strstr(text, "   512   2624   4355   5101* \n"));
    free(text);
    text = drawn(picture, -1, 0);
    assert_non_null(strstr(text, ">\u00b112%</text>"));
    assert_int_equal(count_of(text, "\u00b1"), 4);
    free(text);
    h.columns = 1, h.rows = 1;
    check_all(picture);
}

/* ---- facets ---- */

static void facets(void **state)
{
    (void)state;
    double x[] = {1, 2}, y[] = {3, 4}, low[] = {1, 2, 3, NAN, 4, 5}, high[] = {10, 20, 30, 40, 50, 60};
    struct tune_curve c[2] = {{.label = "a", .x = x, .y = y, .count = 2, .marked = true},
                              {.label = "b", .x = x, .y = y, .count = 2, .color = 1, .marked = true}};
    struct tune_plot p[4] = {{.title = "t", .x_title = "x", .y_title = "s", .note = "once", .curves = c, .count = 1, .facet = "k <1>"}};
    for (int i = 1; i < 4; i++)
        p[i] = p[0];
    p[1].count = 2; /* its second curve has its place in the legend */
    p[3].title = "another";
    FILE *f = sink();
    assert_ok(tune_plot_svg(p, 4, f));
    char *text = text_of(f);
    well_formed(text);
    assert_int_equal(count_of(text, "class=\"ink title\""), 2);
    assert_int_equal(count_of(text, ">once<"), 2);
    assert_int_equal(count_of(text, ">a</text>"), 2);
    assert_int_equal(count_of(text, ">b</text>"), 1);
    assert_int_equal(count_of(text, ">k &#60;1&#62;</text>"), 4);
    assert_int_equal(count_of(text, "<line class=\"grid\" x1=\"396\""), count_of(text, "<line class=\"grid\" x1=\"716\"")); /* three in a row */
    assert_true(count_of(text, "<line class=\"grid\" x1=\"716\"") > 2);
    free(text);
    text = drawn((struct picture){.plot = p}, 0, 60);
    assert_non_null(strstr(text, "t, s, k <1>\n"));
    free(text);
    struct tune_heat h[3] = {{.title = "t", .unit = "s", .x_title = "x", .y_title = "y", .x_names = sizes, .y_names = lengths,
                              .columns = 3, .rows = 2, .values = low, .best = 1, .facet = "k 1"}};
    h[1] = h[2] = h[0];
    h[1].values = high, h[1].facet = "k 2";
    h[2].title = "another";
    f = sink();
    assert_ok(tune_heat_svg(h, 3, f));
    text = text_of(f);
    well_formed(text);
    assert_int_equal(count_of(text, "class=\"ink title\""), 2);
    assert_int_equal(count_of(text, ">missing</text>"), 2); /* a key for each figure */
    assert_non_null(strstr(text, "class=\"q0\"><title>y 512, x 1: 1 s"));  /* one scale of colours for both facets: */
    assert_non_null(strstr(text, "class=\"q31\"><title>y 1024, x 4: 60 s"));
    assert_non_null(strstr(text, "class=\"q2\"><title>y 1024, x 4: 5 s")); /* the highest of its own is pale */
    assert_non_null(strstr(text, "class=\"q31\"><title>y 1024, x 4: 5 s")); /* and strong in a figure of its own */
    free(text);
    text = drawn((struct picture){.heat = h + 1}, 0, 60);
    assert_non_null(strstr(text, "t, s, k 2\n"));
    free(text);
}

static void large_heat(void **state)
{
    (void)state;
    enum { ROWS = 300, COLUMNS = 250 };
    static double v[ROWS * COLUMNS];
    static char texts[ROWS][16];
    const char *names[ROWS];
    for (int i = 0; i < ROWS; i++) {
        snprintf(texts[i], sizeof texts[i], "row %d", i);
        names[i] = texts[i];
    }
    for (int i = 0; i < ROWS * COLUMNS; i++)
        v[i] = i == 1 ? NAN : i / COLUMNS + i % COLUMNS;
    struct tune_heat h = {.title = "t", .unit = "s", .x_title = "x", .y_title = "y", .x_names = names, .y_names = names,
                          .columns = COLUMNS, .rows = ROWS, .values = v, .best = 1};
    struct picture picture = {.heat = &h};
    check_all(picture);
    char *text = drawn(picture, -1, 0);
    assert_non_null(strstr(text, ">each cell is the mean of up to 3 x 3 values, because 300 rows and 250 columns do not fit here<"));
    assert_int_equal(count_of(text, "<title>y row"), 100 * 84);
    assert_non_null(strstr(text, "<title>y row 0, x row 0: 2.125 s<")); /* 17 / 8: one is missing */
    assert_non_null(strstr(text, "<title>y row 297, x row 249: 547 s<"));
    free(text);
    text = drawn(picture, 0, 60);
    assert_non_null(strstr(text, "0 is "));
    assert_non_null(strstr(text, "y  row 0 "));
    assert_non_null(strstr(text, " row 249\n"));
    assert_true(count_of(text, "\n") < 60);
    free(text);
    h.columns = 20, h.rows = 25; /* numbers of two digits and letters for names fit */
    for (int i = 0; i < 500; i++)
        v[i] = i % 100;
    text = drawn(picture, 0, 133);
    assert_non_null(strstr(text, "  a    b    c"));
    assert_non_null(strstr(text, "   t row 19"));
    free(text);
    check_all(picture);
}

/* ---- parallel coordinates ---- */

static void parallel(void **state)
{
    (void)state;
    const char *const types[] = {"float32", "bf<16>"}, *const names[] = {"one & two", NULL, NULL, NULL};
    double size[] = {1, 2, 1, 2}, type[] = {0, 0, 1, NAN}, speed[] = {100, 200, 300, NAN};
    struct tune_axis a[] = {{.title = "batch_size", .values = size},
                            {.title = "type", .values = type, .names = types, .name_count = 2},
                            {.title = "speed", .unit = "tokens/s", .values = speed}};
    struct tune_parallel p = {.title = "t", .axes = a, .count = 3, .rows = 4, .names = names, .best = 1};
    struct picture picture = {.parallel = &p};
    check_all(picture);
    char *text;
    text = drawn(picture, -1, 0);
    assert_int_equal(count_of(text, "<path class=\"row"), 4);
    assert_int_equal(count_of(text, "<path class=\"row best s30\""), 1);
    assert_int_equal(count_of(text, "<path class=\"row grid\""), 1); /* without a target */
    assert_non_null(strstr(text, "<title>one &#38; two\nbatch_size: 1\ntype: float32\nspeed: 100 tokens/s</title>"));
    assert_non_null(strstr(text, "type: missing\nspeed: missing tokens/s"));
    assert_non_null(strstr(text, ">bf&#60;16&#62;</text>"));
    assert_null(strstr(text, "paint-order")); /* some renderers paint the halo over such a text */
    const char *halo = strstr(text, "class=\"paper halo\""), *label = strstr(text, ">bf&#60;16&#62;</text>");
    assert_true(halo && label && halo < label);
    assert_non_null(strstr(label + 1, "class=\"note\""));
    assert_int_equal(count_of(text, ">bf&#60;16&#62;</text>"), 2);
    free(text);
    p.best = -1;
    text = drawn(picture, -1, 0);
    assert_non_null(strstr(strstr(text, "class=\"row best s30\""), "speed: 100 "));
    free(text);
    assert_int_equal(count_of(text = drawn(picture, -1, 0), "h0M"), 0);
    free(text);
    type[1] = NAN; /* in the middle of a line, which is broken there */
    assert_int_equal(count_of(text = drawn(picture, -1, 0), "h0M"), 1);
    free(text);
    p.best = 0;
    text = drawn(picture, -1, 0);
    assert_null(strstr(text, "the best"));
    free(text);
    p.rows = 1;
    check_all(picture);
    FILE *f = sink();
    p.count = 1;
    assert_int_equal(draw(picture, -1, 0, f), -1);
    assert_error_has("1 axes; expected at least a dimension and a target");
    p.count = 3, p.rows = 0;
    assert_int_equal(draw(picture, -1, 0, f), -1);
    assert_error_has("no row has a speed to draw");
    p.rows = 4, speed[0] = speed[1] = speed[2] = INFINITY;
    assert_int_equal(draw(picture, -1, 0, f), -1);
    assert_int_equal((int)ftell(f), 0); /* nothing is written then */
    free(text_of(f));
}

static void many_rows(void **state)
{
    (void)state;
    enum { MANY = 30000 };
    double *x = malloc(MANY * sizeof *x), *y = malloc(MANY * sizeof *y);
    for (int i = 0; i < MANY; i++)
        x[i] = pow(10, -6 + i % 1000 / 250.0), y[i] = i == 12345 ? 1e6 : i;
    struct tune_axis a[] = {{.title = "learning_rate", .values = x, .base = -1}, {.title = "speed", .values = y}};
    struct tune_parallel p = {.title = "t", .axes = a, .count = 2, .rows = MANY, .best = 1};
    struct picture picture = {.parallel = &p};
    check_all(picture);
    char *text = drawn(picture, -1, 0);
    assert_int_equal(count_of(text, "<path class=\"row"), 10000);
    assert_int_equal(count_of(text, "class=\"row best "), 5);
    assert_non_null(strstr(text, "speed: 1e+06<"));
    assert_non_null(strstr(text, ">only 10000 of 30000 rows are drawn, chosen evenly along the last axis; thick: the best 5<"));
    assert_non_null(strstr(text, ">1e-05<")); /* ticks of a logarithmic axis */
    int upper = 0;
    for (const char *at = text; (at = strstr(at, "speed: ")); at++)
        upper += atof(at + 7) >= MANY / 2;
    assert_true(upper > 4950 && upper < 5050);
    assert_true(written_size < 2000000);
    free(text);
    const char *names[100];
    for (int i = 0; i < 100; i++)
        names[i] = i == 16 ? "c" : i == 99 ? "z" : "of many";
    a[0].names = names, a[0].name_count = 100;
    for (int i = 0; i < MANY; i++)
        x[i] = i % 100;
    check_all(picture);
    free(x);
    free(y);
}

/* ---- whatever the values ---- */

enum { MOST = 60 };
static const double odd[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 1e300, -1e300, 9.99e299, -9.99e299, 5e-324, 1e-300,
                             1, 1 + 1e-15, -1, 512};
static const char *const words[] = {"", "a", "\xff\xfe", "\033[2J", "<&\">", "\xef\xbf\xbf", "\u00e9\u20ac\U0001f600", "x\ny", "8",
                                    "9", "10", "a name longer than all of the others are"};
enum { ODD = sizeof odd / sizeof *odd, WORDS = sizeof words / sizeof *words };

static unsigned draw_number(unsigned *random, unsigned n)
{
    *random = *random * 1664525 + 1013904223;
    return (*random >> 8) % n;
}

/* Numbers that are odd, or few, or all the same, or a small range. */
static void draw_values(unsigned *random, double v[MOST])
{
    unsigned kind = draw_number(random, 4);
    for (int i = 0; i < MOST; i++)
        v[i] = kind == 0 ? odd[draw_number(random, ODD)] : kind == 1 ? odd[ODD - 5 + draw_number(random, 5)]
               : kind == 2 ? 7 : draw_number(random, 5);
}

static void check_if_drawn(struct picture p, int *count)
{
    FILE *f = sink();
    bool can = draw(p, -1, 0, f) == 0;
    assert_true(can || strstr(tune_error_message(), " to draw"));
    assert_true(can == (draw(p, 0, 80, f) == 0));
    free(text_of(f));
    if (can)
        check_all(p);
    *count += can;
}

static void anything(void **state)
{
    (void)state;
    unsigned random = 3;
    int count = 0;
    for (int round = 0; round < 400; round++) {
        double v[5][MOST];
        const char *label[6];
        int columns = 1 + (int)draw_number(&random, WORDS), rows = 1 + (int)draw_number(&random, MOST / WORDS);
        int base = (const int[]){-1, 0, 2, 10}[draw_number(&random, 4)], best = (int)draw_number(&random, 3) - 1;
        bool flag = draw_number(&random, 2), other = draw_number(&random, 2), named = draw_number(&random, 2);
        for (int i = 0; i < 5; i++)
            draw_values(&random, v[i]);
        for (int i = 0; i < 6; i++) /* titles are not cut: short ones */
            label[i] = words[draw_number(&random, i < 3 ? 5 : WORDS)];
        struct tune_curve c[2] = {{.label = label[4], .x = v[0], .y = v[1], .low = v[2], .high = v[3], .count = rows,
                                   .marked = flag},
                                  {.label = label[5], .x = v[3], .y = v[4], .count = columns, .dotted = other}};
        struct tune_plot p = {.title = label[0], .x_title = label[1], .y_title = "", .curves = c, .count = 1 + flag, .smooth = -1,
                              .logarithmic = other, .x_base = base, .x_names = named ? words : NULL, .x_count = columns};
        struct tune_heat h = {.title = label[0], .unit = label[1], .x_title = label[4], .y_title = label[5], .x_names = words,
                              .y_names = words, .columns = columns, .rows = rows, .values = v[0], .logarithmic = flag,
                              .best = best};
        struct tune_axis a[] = {{.title = label[4], .values = v[0], .base = base},
                                {.title = label[5], .values = v[1], .names = words, .name_count = columns},
                                {.title = label[3], .unit = label[1], .values = v[2], .base = base}};
        struct tune_parallel q = {.title = label[0], .axes = a, .count = 3, .rows = columns * rows, .best = best};
        check_if_drawn((struct picture){.plot = &p}, &count);
        check_if_drawn((struct picture){.heat = &h}, &count);
        check_if_drawn((struct picture){.parallel = &q}, &count);
    }
    assert_true(count > 600);
    struct tune_heat none = {.title = "none", .unit = "", .x_title = "", .y_title = "", .x_names = words, .y_names = words,
                             .values = odd};
    FILE *f = sink();
    for (int kind = -1; kind < 3; kind++) {
        assert_int_equal(draw((struct picture){.heat = &none}, kind, 80, f), -1);
        assert_error_has("there is no value to draw");
    }
    free(text_of(f));
}

/* ---- sheets ---- */

static const struct tune_sheet_column sheet_columns[] = {
    {"model_name", false, false}, {"batch_size", true, false}, {"a.1-tokens_per_second", true, false},
    {"a.2-tokens_per_second", true, false}, {"note", false, false}, {"gpu", true, false}};
static const char *const sheet_cells[] = {
    "caf\xc3\xa9", "1", "1.5", "20", "short", NULL, "caf\xc3\xa9", "2", NULL, "3", "a long note\n of an accident", ""};

static void assert_sheet(const struct tune_sheet *s, const char *expected)
{
    FILE *f = sink();
    assert_ok(tune_sheet_print(s, f));
    char *text = text_of(f);
    assert_string_equal(text, expected);
    free(text);
}

static void sheets(void **state)
{
    (void)state;
    struct tune_sheet s = {sheet_columns, 6, sheet_cells, 2, 0, true, "take fewer"};
    assert_sheet(&s, "# in all 2 rows: model_name caf\xc3\xa9\n# empty, left out: gpu\n"
                     "batch_size  a.1-tokens_per_second  a.2-tokens_per_second  note\n"
                     "         1                    1.5                     20  short\n"
                     "         2                                             3  a long note\\n of an accident\n");
    s.width = 52; /* headings are broken */
    assert_sheet(&s, "# in all 2 rows: model_name caf\xc3\xa9\n# empty, left out: gpu\n"
                     "           a.1-     a.2-\n"
                     "        tokens_  tokens_\n"
                     "batch_     per_     per_\n"
                     "  size   second   second  note\n"
                     "     1      1.5       20  short\n"
                     "     2                 3  a long note\\n of an accid\xe2\x80\xa6\n");
    s.width = 30; /* texts cannot be cut more: the last columns are left out */
    s.unicode = false;
    assert_sheet(&s, "# in all 2 rows:\n#   model_name caf\xc3\xa9\n# empty, left out: gpu\n"
                     "           a.1-     a.2-\n"
                     "        tokens_  tokens_\n"
                     "batch_     per_     per_\n"
                     "  size   second   second\n"
                     "     1      1.5       20\n"
                     "     2                 3\n"
                     "# too wide, left out (take\n#   fewer): note\n");
    s.width = 0;
    s.rows = 1;
    s.column_count = 3;
    assert_sheet(&s, "model_name             caf\xc3\xa9\nbatch_size             1\na.1-tokens_per_second  1.5\n");
    struct tune_sheet_column stays[] = {{"a", false, true}, {"b", true, true}, {"c", true, false}};
    s = (struct tune_sheet){stays, 3, (const char *const[]){"x", NULL, "1", "x", NULL, "1"}, 2, 0, true, ""};
    assert_sheet(&s, "# in all 2 rows: c 1\na  b\nx\nx\n");
    static const struct tune_sheet_column devices[] = {{"cpu_a", true, false}, {"gpu_a", true, false}, {"gpu_b", true, false},
        {"x_1", true, false}, {"x_2", true, false}, {"gpu_c", true, false}, {"cpu_b", true, false}, {"cpu_c", true, false}};
    s = (struct tune_sheet){devices, 8, (const char *const[8]){[7] = "1"}, 1, 0, true, ""};
    assert_sheet(&s, "cpu_c  1\n# empty, left out: cpu_a, gpu_* (3), x_1, x_2, cpu_b\n");
}

int main(void)
{
    curves();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks),     cmocka_unit_test(smoothing), cmocka_unit_test(terminal), cmocka_unit_test(empty),
        cmocka_unit_test(extremes),  cmocka_unit_test(svg), cmocka_unit_test(matrix),       cmocka_unit_test(tables), cmocka_unit_test(wide_tables),   cmocka_unit_test(axes),
        cmocka_unit_test(shades),    cmocka_unit_test(texts),     cmocka_unit_test(spreads),  cmocka_unit_test(categories),
        cmocka_unit_test(fronts),    cmocka_unit_test(rings), cmocka_unit_test(bands), cmocka_unit_test(band_above),
        cmocka_unit_test(heat),      cmocka_unit_test(large_heat), cmocka_unit_test(facets), cmocka_unit_test(parallel), cmocka_unit_test(many_rows),
        cmocka_unit_test(anything),  cmocka_unit_test(sheets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
