/* test_side_by_side.c - two texts in two columns: marks, widths, and that no word is lost. */
#include "test.h"
#include "views/side_by_side.h"
#include "views/text.h"

static char *shown(const char *a, const char *b, int width)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct tune_side_text left = {"base", a, strlen(a)}, right = {"tuned", b, strlen(b)};
    assert_ok(tune_side_by_side(out, &left, &right, width));
    fclose(out);
    return text;
}

/* The widest line, without the escapes that make words bold. */
static int widest(const char *text)
{
    int most = 0;
    char *copy = strdup(text), *rest = copy;
    for (char *line; (line = strsep(&rest, "\n"));) {
        char plain[4096], *to = plain;
        for (const char *c = line; *c; c++)
            if (*c == '\033')
                c = strchr(c, 'm');
            else
                *to++ = *c;
        *to = 0;
        most = tune_width(plain) > most ? tune_width(plain) : most;
    }
    free(copy);
    return most;
}

static void marks(void **state)
{
    (void)state;
    char *text = shown("The sky is blue.", "The sea is very blue.", 0);
    assert_non_null(strstr(text, "base "));
    assert_non_null(strstr(text, "The *sky* is blue."));
    assert_non_null(strstr(text, "The *sea* is *very* blue."));
    free(text);
    text = shown("same words", "same words", 0);
    assert_null(strchr(text, '*'));
    free(text);
    text = shown("a same", "b same", 80);
    assert_non_null(strstr(text, "\033[1ma\033[0m same"));
    free(text);
    text = shown("", "word", 0); /* nearly all differs: no marks */
    assert_null(strchr(text, '*'));
    free(text);
    text = shown("one two three four five", "six seven eight one nine", 0); /* one of five is common */
    assert_null(strchr(text, '*'));
    free(text);
    text = shown("one two three four five", "one two eight six nine", 0); /* two of five */
    assert_non_null(strstr(text, "*three* *four*"));
    free(text);
    text = shown("one\ntwo", "one\n\ntwo", 0); /* an empty line stays one */
    assert_non_null(strstr(text, "one"));
    free(text);
}

/* Every word is there once on its side, in order, and no line is wider than the terminal. */
static void widths(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "plain words that go on for some time, and a_word_that_is_much_longer_than_any_column_could_ever_be_in_here",
        "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd right to left",
        "e\u0301te\u0301 combining a\u0308\u0323 marks",
        "\u4f60\u597d\u4e16\u754c wide \u65e5\u672c\u8a9e\u306e\u6587\u7ae0\u306f\u9577\u3044 characters",
        "\U0001F469\u200D\U0001F680 emoji \U0001F600\U0001F600 joined",
        "a tab\tand\x01 a control character\r",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (int width = 1; width <= 120; width += width < 10 ? 1 : 5) {
            char *text = shown(texts[i], texts[(i + 1) % 6], width);
            if (width >= 10 && widest(text) > width)
                fail_msg("%d columns in a terminal of %d: %s", widest(text), width, text);
            free(text);
        }
    char *text = shown("one two three four five six seven", "eight", 20);
    assert_string_equal(text, "base:\none two three four\nfive six seven\ntuned:\neight\n");
    free(text);
}

static void characters(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int width;
    } cases[] = {{"", 0}, {"abc", 3}, {"\u00e4", 1}, {"e\u0301", 1}, {"\u4f60", 2}, {"\U0001F600", 2}, {"\u05e9", 1}, {"\u200b", 0},
                 {"\uac00x", 3}, {"\u0e01\u0e34", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(tune_width(cases[i].text), cases[i].width);
    assert_int_equal(tune_bytes_of("e\u0301x", 1), 3); /* a mark stays with its letter */
    assert_int_equal(tune_bytes_of("\u4f60\u597d", 3), 3);
    assert_int_equal(tune_bytes_of("abc", 0), 0);
    assert_int_equal(tune_bytes_of("abc", 9), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(marks), cmocka_unit_test(widths), cmocka_unit_test(characters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
