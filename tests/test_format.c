/* test_format.c - prompt templates, formats of rows, what of them is trained. */
#include "core/json.h"
#include "datasets/prompt_template.h"
#include "test.h"

/* The parts as one text: [trained], <slot>. */
static const char *parts_of(const char *text)
{
    static char out[1024];
    struct tune_prompt_template t;
    size_t used = 0;
    assert_ok(tune_prompt_template_parse(&t, "t.txt", text, strlen(text)));
    for (int i = 0; i < t.count; i++) {
        const struct tune_prompt_part *p = &t.parts[i];
        used += (size_t)snprintf(out + used, sizeof out - used, p->slot < 0 ? "%s%.*s%s" : "%s<%.*s>%s", p->trained ? "[" : "",
                                 (int)p->size, p->text, p->trained ? "]" : "");
    }
    tune_prompt_template_free(&t);
    return out;
}

static void templates(void **state)
{
    (void)state;
    assert_string_equal(parts_of("# remark {\n\n[prompt]\nQ: {q}\nA:\n\n[completion]\n {a}\n"), "Q: <q>\nA:\n[ ][<a>]");
    assert_string_equal(parts_of("[prompt]\r\nQ: {q}\r\n\r\n[completion]\r\n{a}"), "Q: <q>\n[<a>]");
    assert_string_equal(parts_of("\xef\xbb\xbf[prompt]\n{{q}} {{{q}}}\n[completion]\n{a b}"), "{q} {<q>}[<a b>]");
    assert_string_equal(parts_of("[completion]\n{a}\n[prompt]\n[completion]\n{a}."), "[<a>][<a>][.]"); /* several, an empty one */
    assert_string_equal(parts_of("[prompt]\n [prompt]\n[INST]\n[completion]\n{a}\n\n"), " [prompt]\n[INST][<a>][\n]");
}

static void bad_templates(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } bad[] = {
        {"", "no section [prompt]"},
        {"[prompt]\n{a}", "no section [completion]"},
        {"[completion]\n{a}", "no section [prompt]"},
        {"[prompt]\n{a}\n[completion]\nyes", "no {column} in a [completion]"},
        {"Hello\n[prompt]\n", "t.txt:1:1: text before the first heading"},
        {"[prompt]\nab{c\n[completion]\n{a}", "t.txt:2:3: a slot that does not end"},
        {"[prompt]\nab}\n[completion]\n{a}", "t.txt:2:3: a '}' that closes nothing"},
        {"[prompt]\n{}\n[completion]\n{a}", "t.txt:2:1: a slot without a name"},
        {"[prompt]\n{a{b}\n[completion]\n{a}", "t.txt:2:1: a slot that does not end"},
        {"[prompt]\n\xff\n[completion]\n{a}", "t.txt:2:1: invalid UTF-8"},
    };
    struct tune_prompt_template t;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(tune_prompt_template_parse(&t, "t.txt", bad[i].text, strlen(bad[i].text)), -1);
        assert_error_has(bad[i].error);
        assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    }
    char many[1024] = "[prompt]\n[completion]\n";
    for (int i = 0; i <= TUNE_PROMPT_SLOTS; i++)
        snprintf(many + strlen(many), 8, "{%d}", i);
    assert_int_equal(tune_prompt_template_parse(&t, "t.txt", many, strlen(many)), -1);
    assert_error_has("too many different columns");
}

static void shipped(void **state)
{
    (void)state;
    static const struct {
        const char *name, *slots[3];
    } all[] = {{"instruction", {"instruction", "output", NULL}}, {"sql", {"schema", "question", "query"}},
               {"tone", {"tone", "text", "rewritten"}}};
    struct tune_prompt_template t;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_ok(tune_prompt_template_open(&t, all[i].name));
        assert_int_equal(t.slot_count, all[i].slots[2] ? 3 : 2);
        for (int k = 0; k < t.slot_count; k++)
            assert_string_equal(t.slots[k], all[i].slots[k]);
        assert_int_equal(t.parts[t.count - 1].trained, 1);
        tune_prompt_template_free(&t);
    }
    assert_int_equal(tune_prompt_template_open(&t, "sq"), -1);
    assert_error_has("instruction, sql, tone");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(templates), cmocka_unit_test(bad_templates), cmocka_unit_test(shipped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
