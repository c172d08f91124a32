/* test_pairs.c - rows of a chosen and a rejected answer: which formats there are, and what of them is trained. */
#include "marked_rows.h"

static int setup(void **state)
{
    static const char *const special[] = {"<|end|>"};
    if (test_home_begin(state) < 0)
        return -1;
    assert_ok(tune_tokenizer_train("tokenizer.json", "ab", 2, 257, special, 1));
    bytes = tune_tokenizer_open("tokenizer.json");
    assert_got(bytes);
    return 0;
}

static int teardown(void **state)
{
    tune_tokenizer_free(bytes);
    return test_home_end(state);
}

/* The template writes "u:Hi\na:Yes$\n". */
static struct tune_dataset *open_with(const char *name, const char *text, struct tune_dataset_options o)
{
    static const char chat[] = "{% for m in messages %}{{ m['role'][0] + ':' + m['content'] + ('<|end|>' if m['role'] == 'assistant' else '') "
                               "+ '\n' }}{% endfor %}{% if add_generation_prompt %}a:{% endif %}";
    test_write(".", name, text, strlen(text));
    test_write(".", "chat.jinja", chat, strlen(chat));
    o.max_length = o.max_length ? o.max_length : 4096;
    o.end_token = "<|end|>";
    return tune_dataset_open(name, &o, bytes);
}

/* The two sequences of a row with '/' between them. In a row of bytes each character is a token. */
static const char *pair_of(struct tune_dataset *d, int64_t row)
{
    static char out[4096];
    struct tune_example x = {0};
    int64_t n = 0;
    size_t used = 0;
    assert_got(d);
    assert_ok(tune_dataset_get(d, row, &x));
    assert_true(x.second > 0);
    for (const char *c = marked_row(d, row, "$"); *c; c++) {
        if (n == x.second && *c != ']')
            out[used++] = '/', n = -1;
        out[used++] = *c;
        n += n >= 0 && *c != '[' && *c != ']';
    }
    out[used] = 0;
    tune_example_free(&x);
    return out;
}

#define SAYS(role, text) "{\"role\":\"" role "\",\"content\":\"" text "\"}"
#define LISTS(prompt, chosen, rejected) "{" prompt "\"chosen\":[" chosen "],\"rejected\":[" rejected "]}\n"
#define BELOW "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n" \
    "### Instruction:\nI\n\n### Response:\n"

static void formats(void **state)
{
    (void)state;
    static const struct {
        const char *row, *format, *expected;
        bool chat;
    } rows[] = {
        {"{\"prompt\":\"Q\",\"chosen\":\" A\",\"rejected\":\" no\"}\n", "preference", "Q[ A$]/Q[ no$]", false},
        {"{\"chosen\":\"Q: why? Because.\",\"rejected\":\"Q: why? No.\"}\n", "preference", "Q: why?[ Because.$]/Q: why?[ No.$]", false},
        {"{\"chosen\":\"Q: \xc3\xa4\",\"rejected\":\"Q: \xc3\xb6\"}\n", "preference", "Q:[ $$$]/Q:[ $$$]", false},
        {"{\"instruction\":\"I\",\"input\":\"\",\"output\":[\"A\",\"B\"]}\n", "alpaca-preference", BELOW "[A$]/" BELOW "[B$]", false},
        {"{\"instruction\":\"I\",\"chosen\":\"A\",\"rejected\":\"B\"}\n", "alpaca-preference", BELOW "[A$]/" BELOW "[B$]", false},
        {LISTS("\"prompt\":[" SAYS("user", "Hi") "],", SAYS("assistant", "Yes"), SAYS("assistant", "No")), "preference",
         "u:Hi\na:[Yes$\n]/u:Hi\na:[No$\n]", true},
        {LISTS("", SAYS("user", "Hi") "," SAYS("assistant", "Yes"), SAYS("user", "Hi") "," SAYS("assistant", "No")), "preference",
         "u:Hi\na:[Yes$\n]/u:Hi\na:[No$\n]", true},
        {LISTS("\"prompt\":\"Hi\",", SAYS("user", "Hi") "," SAYS("assistant", "Yes"), SAYS("user", "Hi") "," SAYS("assistant", "No")),
         "preference", "u:Hi\na:[Yes$\n]/u:Hi\na:[No$\n]", true},
        {LISTS("\"prompt\":\"Hi\",", SAYS("assistant", "Yes"), SAYS("assistant", "No")), "preference",
         "u:Hi\na:[Yes$\n]/u:Hi\na:[No$\n]", true},
        {LISTS("\"prompt\":[" SAYS("user", "1") "," SAYS("assistant", "2") "," SAYS("user", "3") "],",
               SAYS("assistant", "4") "," SAYS("user", "5") "," SAYS("assistant", "6"), SAYS("assistant", "7")), "preference",
         "u:1\na:2$\nu:3\na:[4$\nu:5\na:6$\n]/u:1\na:2$\nu:3\na:[7$\n]", true},
        {LISTS("", SAYS("user", "1") "," SAYS("assistant", "2") "," SAYS("user", "3") "," SAYS("assistant", "4"),
               SAYS("user", "1") "," SAYS("assistant", "2") "," SAYS("user", "3") "," SAYS("assistant", "5")), "preference",
         "u:1\na:2$\nu:3\na:[4$\n]/u:1\na:2$\nu:3\na:[5$\n]", true},
        {"{\"conversations\":[{\"from\":\"human\",\"value\":\"Hi\"}],\"chosen\":{\"from\":\"gpt\",\"value\":\"Yes\"},"
         "\"rejected\":{\"from\":\"gpt\",\"value\":\"No\"}}\n", "sharegpt-preference", "u:Hi\na:[Yes$\n]/u:Hi\na:[No$\n]", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tune_dataset *d = OPEN("p.jsonl", rows[i].row, .pairs = true, .chat_template = rows[i].chat ? "chat.jinja" : NULL);
        assert_string_equal(pair_of(d, 0), rows[i].expected);
        size_t n = strlen(rows[i].format);
        assert_true(!strncmp(tune_dataset_about(d), rows[i].format, n) && tune_dataset_about(d)[n] == ' ');
        tune_dataset_free(d);
    }
}

#define ASKED(before, q) before "### Instruction:\n" q "\n\n### Response:\n"
#define GENERAL "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"

/* Prompts under other names, as public sets have them. A model with a chat template gets conversations. */
static void other_prompts(void **state)
{
    (void)state;
    static const char orca[] = "{\"system\":\"S\",\"question\":\"Q\",\"chosen\":\"A\",\"rejected\":\"B\"}\n"
                               "{\"system\":\"\",\"question\":\"Q\",\"chosen\":\"A\",\"rejected\":\"B\"}\n";
    static const struct {
        const char *row, *about, *expected, *chat;
    } rows[] = {
        {orca, "alpaca-preference (recognised), columns instruction=question, chosen, rejected, system;",
         ASKED("S\n\n", "Q") "[A$]/" ASKED("S\n\n", "Q") "[B$]", NULL},
        {orca, "instruct-preference (recognised), columns chosen, rejected, prompt=question, system;",
         "s:S\nu:Q\na:[A$\n]/s:S\nu:Q\na:[B$\n]", "chat.jinja"},
        {"{\"input\":\"Q\",\"chosen\":\"A\",\"rejected\":\"B\",\"id\":1}\n",
         "alpaca-preference (recognised), columns instruction=input, chosen, rejected; trained on completion; ended by <|end|>; not read: id",
         ASKED(GENERAL, "Q") "[A$]/" ASKED(GENERAL, "Q") "[B$]", NULL},
        {"{\"instruction\":\"I\",\"system\":\"S\",\"history\":[[\"q\",\"a\"]],\"chosen\":\"A\",\"rejected\":\"B\"}\n", "alpaca-preference",
         ASKED("S\n\n", "q") "a$\n\n" ASKED("", "I") "[A$]/" ASKED("S\n\n", "q") "a$\n\n" ASKED("", "I") "[B$]", NULL},
        {"{\"system\":\"S\",\"prompt\":\"Q\",\"chosen\":\"A\",\"rejected\":\"B\"}\n", "preference (recognised), columns chosen, rejected, prompt, system;",
         "S\n\nQ[A$]/S\n\nQ[B$]", NULL},
        {"{\"prompt\":\"Q\",\"chosen\":\"A\",\"rejected\":\"B\"}\n", "instruct-preference", "u:Q\na:[A$\n]/u:Q\na:[B$\n]", "chat.jinja"},
        {LISTS("\"system\":\"S\",\"question\":\"Hi\",", SAYS("assistant", "Yes"), SAYS("assistant", "No")),
         "preference (recognised), columns chosen, rejected, prompt=question, system;", "s:S\nu:Hi\na:[Yes$\n]/s:S\nu:Hi\na:[No$\n]", "chat.jinja"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tune_dataset *d = OPEN("p.jsonl", rows[i].row, .pairs = true, .chat_template = rows[i].chat);
        assert_string_equal(pair_of(d, 0), rows[i].expected);
        assert_int_equal(strncmp(tune_dataset_about(d), rows[i].about, strlen(rows[i].about)), 0);
        tune_dataset_free(d);
    }
    assert_ok(tune_file_make_folder("model"));
    static const char config[] = "{\"chat_template\": \"{% for m in messages %}{{ m.role[0] + m.content }}{% endfor %}\"}";
    test_write("model", "tokenizer_config.json", config, strlen(config));
    struct tune_dataset *d = OPEN("p.jsonl", orca, .pairs = true, .model_folder = "model");
    assert_non_null(strstr(tune_dataset_about(d), "instruct-preference (recognised)"));
    assert_string_equal(pair_of(d, 0), "sSuQ[aA]/sSuQ[aB]");
    tune_dataset_free(d);
    d = open_with("p.jsonl", orca, (struct tune_dataset_options){.pairs = true, .row_format = "preference"});
    assert_string_equal(pair_of(d, 1), "Q[A$]/Q[B$]");
    tune_dataset_free(d);
}

/* Answers that begin differently, and no column that is known to be the prompt. */
static void no_prompt(void **state)
{
    (void)state;
    static const char rows[] = "{\"asked\":\"Q\",\"n\":1,\"chosen\":\"A\",\"rejected\":\"B\"}\n{\"asked\":\"Q\",\"chosen\":\"The a\",\"rejected\":\"The b\"}\n";
    struct tune_example x = {0};
    REFUSED("p.jsonl", rows, "p.jsonl: the prompt is not known: the two answers begin differently in 1 of the first 2 rows, and these columns "
            "of text are not read: asked; give `columns` prompt=NAME, or `format` preference to train without a prompt", .pairs = true);
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    struct tune_dataset *d = open_with("p.jsonl", rows, (struct tune_dataset_options){.pairs = true, .row_format = "preference"});
    assert_string_equal(pair_of(d, 0), "A[$]/B[$]");
    assert_ok(tune_dataset_get(d, 0, &x));
    assert_true(x.no_prompt);
    assert_ok(tune_dataset_get(d, 1, &x));
    assert_false(x.no_prompt);
    tune_dataset_free(d);
    d = OPEN("p.jsonl", rows, .pairs = true, .columns = "prompt=asked");
    assert_string_equal(pair_of(d, 0), "Q[A$]/Q[B$]");
    tune_dataset_free(d);
    d = OPEN("p.jsonl", "{\"n\":1,\"chosen\":\"A\",\"rejected\":\"B\"}\n", .pairs = true); /* no text that it could be */
    assert_string_equal(pair_of(d, 0), "A[$]/B[$]");
    tune_dataset_free(d);
    tune_example_free(&x);
}

static void named(void **state)
{
    (void)state;
    struct tune_dataset *d = open_with("p.jsonl", "{\"p\":\"Q\",\"good\":\"A\",\"bad\":\"B\"}\n", (struct tune_dataset_options){
        .pairs = true, .row_format = "preference", .columns = "prompt=p,chosen=good,rejected=bad"});
    assert_string_equal(pair_of(d, 0), "Q[A$]/Q[B$]");
    tune_dataset_free(d);
    d = OPEN("p.csv", "prompt,chosen,rejected\nQ,A,B\n", .pairs = true);
    assert_string_equal(pair_of(d, 0), "Q[A$]/Q[B$]");
    tune_dataset_free(d);
}

/* Each sequence is cut by itself. A pair of which one answer is lost cannot be trained on. */
static void cut(void **state)
{
    (void)state;
    struct tune_example x = {0};
    struct tune_dataset *d = OPEN("p.jsonl", "{\"prompt\":\"Q\",\"chosen\":\"ABCDEFGH\",\"rejected\":\"B\"}\n"
                                  "{\"prompt\":\"QRST\",\"chosen\":\"A\",\"rejected\":\"B\"}\n"
                                  "{\"chosen\":\"QRSTUV\",\"rejected\":\"QR\"}\n", .pairs = true, .max_length = 4);
    assert_string_equal(pair_of(d, 0), "Q[ABC]/Q[B$]");
    assert_ok(tune_dataset_get(d, 1, &x));
    assert_true(x.cut_away && !tune_example_has_label(&x));
    assert_string_equal(pair_of(d, 2), "QR[ST]/QR[$]");
    tune_example_free(&x);
    tune_dataset_free(d);
}

static void refused(void **state)
{
    (void)state;
#define PAIR "{\"prompt\":\"Q\",\"chosen\":\"A\",\"rejected\":\"B\"}\n"
    REFUSED("p.jsonl", PAIR, "these rows are preferences, pairs of a chosen and a rejected answer: finetune_dpo trains on them. To "
            "train on the chosen answers alone: `format` prompt-completion `columns` completion=chosen");
    REFUSED("p.jsonl", LISTS("", SAYS("user", "Hi") "," SAYS("assistant", "Yes"), SAYS("user", "Hi") "," SAYS("assistant", "No")),
            "To train on the chosen conversations alone: `format` messages `columns` messages=chosen");
    REFUSED("p.jsonl", "{\"instruction\":\"Q\",\"output\":[\"A\",\"B\"]}\n",
            "these rows are preferences, an instruction and a list of two outputs: finetune_dpo trains on them");
    REFUSED("p.jsonl", "{\"prompt\":\"Q\",\"completion\":\"A\",\"label\":true}\n", "unpaired preferences");
    REFUSED("p.jsonl", "{\"prompt\":\"Q\",\"completion\":\"A\"}\n", "expected preferences, pairs of answers", .pairs = true);
    REFUSED("p.txt", "Some text.\n", "pairs", .pairs = true);
    REFUSED("p.jsonl", "{\"instruction\":\"Q\",\"output\":\"A\"}\n", "\"output\" is no list of two texts", .pairs = true);
    REFUSED("p.jsonl", "{\"instruction\":\"Q\",\"output\":[\"A\",\"B\",\"C\"]}\n", "\"output\" is no list of two texts", .pairs = true);
    REFUSED("p.jsonl", "{\"prompt\":\"Q\",\"chosen\":\"A\",\"rejected\":null}\n", "\"rejected\" is null", .pairs = true);
    REFUSED("p.jsonl", LISTS("", SAYS("user", "Hi") "," SAYS("assistant", "Yes"), SAYS("user", "Ho") "," SAYS("assistant", "No")),
            "begin with different messages", .pairs = true, .chat_template = "chat.jinja");
    REFUSED("p.jsonl", LISTS("\"prompt\":[" SAYS("user", "Hi") "],", SAYS("assistant", "A"), ""),
            "has no message of the assistant behind the prompt", .pairs = true, .chat_template = "chat.jinja");
    REFUSED("p.jsonl", LISTS("", SAYS("user", "Hi") "," SAYS("assistant", "Yes"), SAYS("user", "Hi")),
            "has no message of the assistant", .pairs = true, .chat_template = "chat.jinja");
    struct tune_dataset *d = open_with("p.jsonl", PAIR, (struct tune_dataset_options){
        .row_format = "prompt-completion", .columns = "completion=chosen"});
    assert_string_equal(marked_row(d, 0, "$"), "Q[A$]");
    tune_dataset_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(formats), cmocka_unit_test(other_prompts),
                                       cmocka_unit_test(no_prompt), cmocka_unit_test(named), cmocka_unit_test(cut), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
