/* test_picture.c - pictures of a plot's points, from tables made by hand: the kind of drawing, the row of each mark, errors. Also
 * the whole answer as one JSON object, and options of questions by name. */
#include <cjson/cJSON.h>

#include "test.h"

#include "sweeps/answers/answer_parts.h"
#include "sweeps/answers/print.h"
#include "sweeps/charts/picture.h"

/* A table of points over the dimensions a, b, c with these numbers of values; each point once, but those that leave_out names. */
static struct tune_answer_table *make_points(int na, int nb, int nc, int leave_out)
{
    struct tune_answer_table *a = tune_answer_new();
    const int counts[] = {na, nb, nc};
    static const char *const dimensions[] = {"a", "b", "<c>"}, *const figures[] = {"value", "lowest", "highest", "results"};
    struct tune_value values[64];
    assert_got(a);
    tune_answer_column(a, "property");
    tune_answer_column(a, "unit");
    tune_answer_column(a, "experiment");
    for (int d = 0; d < 3; d++) {
        struct tune_answer_column *c = tune_answer_column(a, dimensions[d]);
        c->dimension = true;
        for (int i = 0; i < counts[d]; i++)
            values[i] = d < 2 ? tune_value_int(i + 1) : tune_value_text(i ? "<b>" : "&\"'");
        assert_ok(tune_answer_levels(a, c, values, counts[d]));
    }
    tune_answer_columns(a, figures, 4);
    for (int i = 0; i < na * nb * nc; i++) {
        int at[] = {i / nc / nb, i / nc % nb, i % nc};
        if (leave_out && i % leave_out == 0)
            continue;
        tune_answer_text(a, "speed");
        tune_answer_text(a, "1/s");
        tune_answer_text(a, "work");
        for (int d = 0; d < 3; d++)
            tune_answer_cell(a, &a->columns[3 + d].levels[at[d]]);
        tune_answer_figure(a, 10 + i, false);
        tune_answer_figure(a, 9 + i, false);
        tune_answer_figure(a, 12 + i, false);
        tune_answer_whole(a, i % 2 + 1);
        assert_ok(tune_answer_end_row(a));
    }
    assert_got(a = tune_answer_finish(a));
    return a;
}

/* Points over a and b that were sampled, and a line over a through other numbers. */
static struct tune_answer_table *make_line(void)
{
    struct tune_answer_table *a = tune_answer_new();
    static const char *const dimensions[] = {"a", "b"}, *const figures[] = {"value", "lowest", "highest", "results", "line_over", "line_by"};
    const struct tune_value values[] = {tune_value_int(1), tune_value_int(2), tune_value_int(5), tune_value_int(6), tune_value_int(9)};
    assert_got(a);
    tune_answer_column(a, "property");
    tune_answer_column(a, "unit");
    tune_answer_column(a, "experiment");
    for (int d = 0; d < 2; d++) {
        struct tune_answer_column *c = tune_answer_column(a, dimensions[d]);
        c->dimension = true;
        assert_ok(tune_answer_levels(a, c, values, 5));
    }
    tune_answer_columns(a, figures, 6);
    for (int i = 0; i < 5 + 3; i++) {
        bool line = i >= 5;
        const double numbers[] = {10 + i, 9 + i, 12 + i};
        tune_answer_text(a, "speed");
        tune_answer_text(a, "1/s");
        tune_answer_text(a, "work");
        if (line)
            tune_answer_figure(a, 1.5 * (i - 4), false);
        else
            tune_answer_space_value(a, &values[i]);
        if (line)
            tune_answer_text(a, NULL);
        else
            tune_answer_space_value(a, &values[4 - i]);
        for (int k = 0; k < 3; k++)
            tune_answer_figure(a, numbers[k], false);
        tune_answer_whole(a, line ? 5 : 1);
        tune_answer_text(a, line ? "a" : NULL);
        tune_answer_text(a, line ? "mean of <b>" : NULL);
        assert_ok(tune_answer_end_row(a));
    }
    assert_got(a = tune_answer_finish(a));
    return a;
}

/* The picture as SVG, which the caller frees. */
static char *draw(const struct tune_answer_table *a, const struct tune_question *q, bool fits)
{
    char *text = NULL;
    size_t size;
    struct tune_picture *p = tune_picture_new(a, q, false);
    assert_got(p);
    assert_int_equal(tune_picture_fits_terminal(p), fits);
    FILE *out = open_memstream(&text, &size);
    assert_ok(tune_picture_svg(p, out));
    fclose(out);
    tune_picture_free(p);
    return text;
}

/* Each row of the table has just one mark. */
static void check_rows(const struct tune_answer_table *a, const char *svg)
{
    for (int64_t row = 0; row <= a->rows; row++) {
        char mark[32];
        snprintf(mark, sizeof mark, "data-row=\"%lld\"", (long long)row);
        const char *at = strstr(svg, mark);
        assert_int_equal(at != NULL, row < a->rows);
        assert_null(at ? strstr(at + 1, mark) : NULL);
    }
    assert_null(strstr(svg, "<b>"));
}

static void test_curves(void **state)
{
    (void)state;
    struct tune_answer_table *a = make_points(4, 1, 2, 0);
    const struct tune_question one = {.x = "a"}, series = {.x = "a", .series = "<c>", .facet = NULL};
    char *svg = draw(a, &one, true);
    check_rows(a, svg);
    assert_non_null(strstr(svg, "class=\"curve"));
    free(svg);
    svg = draw(a, &series, true);
    check_rows(a, svg);
    free(svg);
    tune_answer_free(a);
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

/* The line stands in the drawing over a alone, and has no mark of its own. */
static void test_line(void **state)
{
    (void)state;
    struct tune_answer_table *a = make_line();
    const struct tune_question over_a = {.x = "a"}, over_b = {.x = "b"}, both = {0};
    char *svg = draw(a, &over_a, true);
    assert_int_equal(count_of(svg, "data-row="), 5);
    assert_int_equal(count_of(svg, "class=\"band"), 1);
    assert_int_equal(count_of(svg, "class=\"bar"), 0);
    assert_int_equal(count_of(svg, "line: mean of &#60;b&#62;; band: its 95 % interval"), 1);
    free(svg);
    svg = draw(a, &over_b, true);
    assert_int_equal(count_of(svg, "data-row="), 5);
    assert_int_equal(count_of(svg, "class=\"band"), 0);
    free(svg);
    svg = draw(a, &both, true);
    assert_int_equal(count_of(svg, "data-row="), 10);
    assert_int_equal(count_of(svg, "class=\"band"), 1);
    free(svg);
    tune_answer_free(a);
}

static void test_heat(void **state)
{
    (void)state;
    struct tune_answer_table *a = make_points(3, 4, 1, 5), *facets = make_points(3, 2, 2, 0);
    const struct tune_question q = {.maximize = "speed"}, facet = {.facet = "<c>"};
    char *svg = draw(a, &q, true), *side = draw(facets, &facet, true);
    check_rows(a, svg);
    assert_non_null(strstr(svg, "data-columns=\"4\" data-rows=\"3\" data-x-title=\"b\" data-y-title=\"a\""));
    assert_non_null(strstr(svg, "url(#missing)"));
    check_rows(facets, side);
    free(svg);
    free(side);
    tune_answer_free(a);
    tune_answer_free(facets);
}

static void test_parallel(void **state)
{
    (void)state;
    struct tune_answer_table *a = make_points(3, 2, 2, 0);
    const struct tune_question q = {.minimize = "speed"};
    const struct tune_terminal how = {.width = 80, .height = 16};
    char *svg = draw(a, &q, false), *text = NULL;
    size_t size;
    check_rows(a, svg);
    assert_non_null(strstr(svg, "class=\"row"));
    struct tune_picture *p = tune_picture_new(a, &q, false);
    FILE *out = open_memstream(&text, &size);
    assert_ok(tune_picture_terminal(p, &how, out));
    fclose(out);
    assert_int_equal(size, 0);
    free(text);
    free(svg);
    tune_picture_free(p);
    tune_answer_free(a);
}

static void test_refused(void **state)
{
    (void)state;
    struct tune_answer_table *a = make_points(2, 2, 2, 0);
    const struct tune_question none = {.x = "d"}, same = {.x = "a", .series = "a"}, facet = {.x = "a", .facet = "a"}, third = {.x = "a", .series = "b"};
    const struct { const struct tune_question *q; const char *text; } cases[] = {
        {&none, "there is no dimension d"}, {&same, "same dimension"}, {&facet, "`facet` and `x` are the same dimension"},
        {&third, "dimension <c> also varies"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_null(tune_picture_new(a, cases[i].q, false));
        assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
        assert_error_has(cases[i].text);
    }
    tune_picture_free(NULL);
    tune_answer_free(a);
}

static void test_object(void **state)
{
    (void)state;
    struct tune_answer_table *a = make_points(2, 1, 1, 0);
    char *text = NULL;
    size_t size;
    a->none = (char *)"nothing";
    tune_answer_add_note(a, TUNE_NOTE_WARNING, "a \"note\" about `where`");
    FILE *out = open_memstream(&text, &size);
    assert_ok(tune_answer_object(a, "samples plot", out));
    fclose(out);
    cJSON *json = cJSON_Parse(text);
    assert_non_null(json);
    const cJSON *columns = cJSON_GetObjectItem(json, "columns"), *rows = cJSON_GetObjectItem(json, "rows");
    assert_int_equal(cJSON_GetArraySize(columns), a->count);
    assert_int_equal(cJSON_GetArraySize(rows), 2);
    const cJSON *dimension = cJSON_GetArrayItem(columns, 3);
    assert_string_equal(cJSON_GetObjectItem(dimension, "type")->valuestring, "whole");
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(dimension, "dimension")));
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(dimension, "levels")), 2);
    assert_true(cJSON_GetArrayItem(cJSON_GetArrayItem(rows, 1), 6)->valuedouble == 11);
    assert_string_equal(cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(json, "notes"), 0), "text")->valuestring, "a \"note\" about `where`");
    assert_string_equal(cJSON_GetObjectItem(json, "command")->valuestring, "samples plot");
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(json, "none")));
    cJSON_Delete(json);
    free(text);
    tune_answer_free(a);
}

static void test_options(void **state)
{
    (void)state;
    struct tune_question q = {0};
    const struct tune_question_kind *best = tune_question_find("best"), *show = tune_question_find("show");
    assert_null(tune_question_find("worst"));
    assert_true(tune_question_takes(show, "group-by") && tune_question_takes(show, "group_by") && !tune_question_takes(best, "x"));
    assert_ok(tune_question_set(&q, best, "maximize", "speed"));
    assert_ok(tune_question_set(&q, best, "count", "7"));
    assert_ok(tune_question_set(&q, best, "limit", "9000000000"));
    assert_ok(tune_question_set(&q, best, "include", "matching"));
    assert_ok(tune_question_set(&q, show, "all_properties", "true"));
    assert_string_equal(q.maximize, "speed");
    assert_true(q.most == 7 && q.arrange.limit == 9000000000 && q.matching && q.all_properties);
    const char *const bad[][2] = {{"count", "-1"}, {"count", "x"}, {"limit", "1e3"}, {"include", "all"}, {"x", "a"}, {"nosuch", "a"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(tune_question_set(&q, best, bad[i][0], bad[i][1]), -1);
        assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
        assert_error_has(bad[i][0]);
    }
    tune_question_set(&q, best, "x", "a");
    assert_error_has("best takes no `x`; effect, plot do");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_curves), cmocka_unit_test(test_line),  cmocka_unit_test(test_heat),   cmocka_unit_test(test_parallel),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_object), cmocka_unit_test(test_options)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
