/* expression.c - expressions over names of every type: the first byte picks their values. */
#include "fuzz.h"
#include "core/expression.h"

static const char *const names[] = {"a", "b", "x", "t", "l", "none", "an odd name"};
enum { NAMES = sizeof names / sizeof *names };
static const struct tune_value items[] = {{.type = TUNE_VALUE_INT, {.integer = 1}}, {.type = TUNE_VALUE_TEXT, {.text = "a"}}};

/* A number's spelling is an expression of the same value. */
static void check_spelling(const struct tune_value *v)
{
    char text[64];
    bool literal = v->type == TUNE_VALUE_BOOL || (v->type == TUNE_VALUE_INT && v->integer != INT64_MIN) ||
                   (v->type == TUNE_VALUE_FLOAT && v->number - v->number == 0);
    tune_value_repr(v, text, sizeof text);
    if (!literal)
        return;
    struct tune_value again;
    struct tune_expression *e = tune_expression_new(text, NULL, 0, "");
    HOLDS(e && tune_expression_value(e, NULL, &again) == 0);
    HOLDS(again.type == v->type && tune_value_equal(&again, v));
    tune_expression_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || memchr(data, 0, size))
        return 0;
    static const int64_t whole[] = {0, 1, -1, 4, INT64_MAX, INT64_MIN, 1 << 20, -7};
    const struct tune_value values[NAMES] = {
        tune_value_int(whole[data[0] & 7]), tune_value_int(whole[data[0] >> 3 & 7]), tune_value_float(data[0] & 64 ? 2.5 : -1e300),
        tune_value_text(data[0] & 128 ? "" : "h\u00e9"), {.type = TUNE_VALUE_LIST, .list = {items, 2}}, tune_value_none(), tune_value_bool(true),
    };
    char *text = strndup((const char *)data + 1, size - 1);
    HOLDS(text);
    struct tune_expression *e = tune_expression_new(text, names, NAMES, "w");
    if (!e) {
        HOLDS(tune_error_kind() == TUNE_ERROR_USAGE && strncmp(tune_error_message(), "w: ", 3) == 0);
        fuzz_refused();
        free(text);
        return 0;
    }
    HOLDS(strcmp(tune_expression_text(e), text) == 0);
    free(text);
    struct tune_value v;
    int status = tune_expression_value(e, values, &v), truth = tune_expression_true(e, values);
    HOLDS(truth >= -1 && truth <= 1 && (status == 0 || tune_error_message()[0]));
    if (status == 0) {
        HOLDS(truth >= 0); /* only the value may be refused, for being a list that is gone */
        check_spelling(&v);
    } else {
        fuzz_refused();
    }
    tune_expression_free(e);
    return 0;
}
