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
    const struct CMUnitTest tests[] = {cmocka_unit_test(formats), cmocka_unit_test(named), cmocka_unit_test(cut), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
