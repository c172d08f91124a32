/* test_pairs.c - rows of preferences, in pairs or as single answers with a label: which formats there are, what of them is trained, and
 * how pairs are parted. */
#include "marked_rows.h"

#include "datasets/loader.h"
#include "datasets/survey.h"

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
    assert_true(x.sequences == 2 && x.labels[0] == 1 && x.labels[1] == 0);
    for (const char *c = marked_row(d, row, "$"); *c; c++) {
        if (n == x.ends[0] && *c != ']')
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
        struct tune_dataset *d = OPEN("p.jsonl", rows[i].row, .sequences = 2, .chat_template = rows[i].chat ? "chat.jinja" : NULL);
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
        struct tune_dataset *d = OPEN("p.jsonl", rows[i].row, .sequences = 2, .chat_template = rows[i].chat);
        assert_string_equal(pair_of(d, 0), rows[i].expected);
        assert_int_equal(strncmp(tune_dataset_about(d), rows[i].about, strlen(rows[i].about)), 0);
        tune_dataset_free(d);
    }
    assert_ok(tune_file_make_folder("model"));
    static const char config[] = "{\"chat_template\": \"{% for m in messages %}{{ m.role[0] + m.content }}{% endfor %}\"}";
    test_write("model", "tokenizer_config.json", config, strlen(config));
    struct tune_dataset *d = OPEN("p.jsonl", orca, .sequences = 2, .model_folder = "model");
    assert_non_null(strstr(tune_dataset_about(d), "instruct-preference (recognised)"));
    assert_string_equal(pair_of(d, 0), "sSuQ[aA]/sSuQ[aB]");
    tune_dataset_free(d);
    d = open_with("p.jsonl", orca, (struct tune_dataset_options){.sequences = 2, .row_format = "preference"});
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
            "of text are not read: asked; give `columns` prompt=NAME, or `format` preference to train without a prompt", .sequences = 2);
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    struct tune_dataset *d = open_with("p.jsonl", rows, (struct tune_dataset_options){.sequences = 2, .row_format = "preference"});
    assert_string_equal(pair_of(d, 0), "A[$]/B[$]");
    assert_ok(tune_dataset_get(d, 0, &x));
    assert_true(x.no_prompt);
    assert_ok(tune_dataset_get(d, 1, &x));
    assert_false(x.no_prompt);
    tune_dataset_free(d);
    d = OPEN("p.jsonl", rows, .sequences = 2, .columns = "prompt=asked");
    assert_string_equal(pair_of(d, 0), "Q[A$]/Q[B$]");
    tune_dataset_free(d);
    d = OPEN("p.jsonl", "{\"n\":1,\"chosen\":\"A\",\"rejected\":\"B\"}\n", .sequences = 2); /* no text that it could be */
    assert_string_equal(pair_of(d, 0), "A[$]/B[$]");
    tune_dataset_free(d);
    tune_example_free(&x);
}

static void named(void **state)
{
    (void)state;
    struct tune_dataset *d = open_with("p.jsonl", "{\"p\":\"Q\",\"good\":\"A\",\"bad\":\"B\"}\n", (struct tune_dataset_options){
        .sequences = 2, .row_format = "preference", .columns = "prompt=p,chosen=good,rejected=bad"});
    assert_string_equal(pair_of(d, 0), "Q[A$]/Q[B$]");
    tune_dataset_free(d);
    d = OPEN("p.csv", "prompt,chosen,rejected\nQ,A,B\n", .sequences = 2);
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
                                  "{\"chosen\":\"QRSTUV\",\"rejected\":\"QR\"}\n", .sequences = 2, .max_length = 4);
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
    REFUSED("p.jsonl", "{\"prompt\":\"Q\",\"completion\":\"A\",\"label\":true}\n", "these rows are unpaired preferences (prompt, completion, "
            "label): finetune_dpo trains on them, with its loss kto. `format` prompt-completion trains on every completion");
    REFUSED("p.jsonl", "{\"prompt\":\"Q\",\"completion\":\"A\",\"label\":true}\n", "label): `loss` kto trains on them; other losses "
            "compare the columns chosen and rejected", .sequences = 2);
    assert_null(open_with("p.jsonl", "{\"prompt\":\"Q\",\"completion\":\"A\",\"label\":\"1\"}\n", (struct tune_dataset_options){
        .sequences = 2, .row_format = "unpaired"}));
    assert_error_has("`loss` kto trains on them; other losses");
    REFUSED("p.jsonl", "{\"prompt\":\"Q\",\"completion\":\"A\"}\n", "expected preferences, pairs of answers", .sequences = 2);
    REFUSED("p.txt", "Some text.\n", "pairs", .sequences = 2);
    REFUSED("p.jsonl", "{\"instruction\":\"Q\",\"output\":\"A\"}\n", "\"output\" is no list of two texts", .sequences = 2);
    REFUSED("p.jsonl", "{\"instruction\":\"Q\",\"output\":[\"A\",\"B\",\"C\"]}\n", "\"output\" is no list of two texts", .sequences = 2);
    REFUSED("p.jsonl", "{\"prompt\":\"Q\",\"chosen\":\"A\",\"rejected\":null}\n", "\"rejected\" is null", .sequences = 2);
    REFUSED("p.jsonl", LISTS("", SAYS("user", "Hi") "," SAYS("assistant", "Yes"), SAYS("user", "Ho") "," SAYS("assistant", "No")),
            "begin with different messages", .sequences = 2, .chat_template = "chat.jinja");
    REFUSED("p.jsonl", LISTS("\"prompt\":[" SAYS("user", "Hi") "],", SAYS("assistant", "A"), ""),
            "has no message of the assistant behind the prompt", .sequences = 2, .chat_template = "chat.jinja");
    REFUSED("p.jsonl", LISTS("", SAYS("user", "Hi") "," SAYS("assistant", "Yes"), SAYS("user", "Hi")),
            "has no message of the assistant", .sequences = 2, .chat_template = "chat.jinja");
    struct tune_dataset *d = open_with("p.jsonl", PAIR, (struct tune_dataset_options){
        .row_format = "prompt-completion", .columns = "completion=chosen"});
    assert_string_equal(marked_row(d, 0, "$"), "Q[A$]");
    tune_dataset_free(d);
}

/* A row of one answer, with its label behind it. */
static const char *answer_of(struct tune_dataset *d, int64_t row)
{
    static char out[4096];
    struct tune_example x = {0};
    assert_got(d);
    assert_ok(tune_dataset_get(d, row, &x));
    assert_true(x.sequences == 1 && x.ends[0] == x.count);
    snprintf(out, sizeof out, "%s %g", marked_row(d, row, "$"), x.labels[0]);
    tune_example_free(&x);
    return out;
}

#define UNPAIRED(prompt, completion, label) "{\"prompt\":" prompt ",\"completion\":" completion ",\"label\":" label "}\n"

/* Single answers, as TRL's trainer of KTO reads them. */
static void unpaired(void **state)
{
    (void)state;
    static const struct {
        const char *row, *expected, *chat;
    } rows[] = {
        {UNPAIRED("\"Q\"", "\" A\"", "true"), "Q[ A$] 1", NULL},
        {UNPAIRED("\"Q\"", "\" A\"", "false"), "Q[ A$] 0", NULL},
        {UNPAIRED("\"Q\"", "\" A\"", "1"), "Q[ A$] 1", NULL},
        {UNPAIRED("\"Q\"", "\" A\"", "\"False\""), "Q[ A$] 0", NULL},
        {"{\"system\":\"S\",\"prompt\":\"Q\",\"completion\":\"A\",\"label\":true}\n", "S\n\nQ[A$] 1", NULL},
        {UNPAIRED("\"Q\"", "\"A\"", "true"), "u:Q\na:[A$\n] 1", "chat.jinja"},
        {UNPAIRED("[" SAYS("user", "Hi") "]", "[" SAYS("assistant", "Yes") "]", "false"), "u:Hi\na:[Yes$\n] 0", "chat.jinja"},
        {UNPAIRED("[" SAYS("user", "1") "," SAYS("assistant", "2") "," SAYS("user", "3") "]", "[" SAYS("assistant", "4") "]", "true"),
         "u:1\na:2$\nu:3\na:[4$\n] 1", "chat.jinja"},
        {UNPAIRED("\"Hi\"", "[" SAYS("assistant", "Yes") "]", "true"), "u:Hi\na:[Yes$\n] 1", "chat.jinja"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tune_dataset *d = OPEN("p.jsonl", rows[i].row, .sequences = 1, .chat_template = rows[i].chat);
        assert_string_equal(answer_of(d, 0), rows[i].expected);
        static const char about[] = "unpaired (recognised), columns completion, label, prompt";
        assert_int_equal(strncmp(tune_dataset_about(d), about, strlen(about)), 0);
        tune_dataset_free(d);
    }
    struct tune_dataset *d = OPEN("p.csv", "prompt,completion,label\nQ,A,TRUE\nR,B,0\n", .sequences = 1);
    assert_string_equal(answer_of(d, 0), "Q[A$] 1");
    assert_string_equal(answer_of(d, 1), "R[B$] 0");
    tune_dataset_free(d);
    d = open_with("p.jsonl", "{\"ask\":\"Q\",\"say\":\"A\",\"good\":false}\n", (struct tune_dataset_options){
        .sequences = 1, .row_format = "unpaired", .columns = "prompt=ask,completion=say,label=good"});
    assert_string_equal(answer_of(d, 0), "Q[A$] 0");
    tune_dataset_free(d);
    d = OPEN("p.csv", "prompt,completion,label\nQ,A,1.0\nR,B,0.0\nS,C,\n", .sequences = 1); /* as pandas writes a column with a gap */
    assert_string_equal(answer_of(d, 0), "Q[A$] 1");
    assert_string_equal(answer_of(d, 1), "R[B$] 0");
    tune_dataset_free(d);
    d = OPEN("p.jsonl", UNPAIRED("\"Q\"", "\"A\"", "1.0") UNPAIRED("\"Q\"", "\"A\"", "0.0") UNPAIRED("\"Q\"", "\"A\"", "1e0"), .sequences = 1);
    for (int i = 0; i < 3; i++)
        assert_string_equal(answer_of(d, i), i == 1 ? "Q[A$] 0" : "Q[A$] 1");
    tune_dataset_free(d);
    static const char labelled[] = "{\"instruction\":\"I\",\"input\":\"\",\"output\":\"A\",\"label\":true}\n"; /* no pair: one text */
    REFUSED("p.jsonl", labelled, "expected answers with a label, the columns prompt, completion and label (true or false); or pairs of answers, "
            "the columns chosen and rejected. It has: instruction, input, output, label (`columns` prompt=COLUMN,completion=COLUMN,label=COLUMN "
            "says", .sequences = 1);
    d = OPEN("p.jsonl", labelled, .sequences = 1, .columns = "prompt=instruction,completion=output");
    assert_string_equal(answer_of(d, 0), "I[A$] 1");
    tune_dataset_free(d);
    REFUSED("p.jsonl", UNPAIRED("\"Q\"", "\"A\"", "0.5"), "p.jsonl:1: the column \"label\" is neither true nor false", .sequences = 1);
    REFUSED("p.jsonl", UNPAIRED("\"Q\"", "\"A\"", "null"), "p.jsonl:1: the column \"label\" is neither true nor false", .sequences = 1);
    REFUSED("p.jsonl", UNPAIRED("\"Q\"", "\"A\"", "[true]"), "p.jsonl:1: the column \"label\" is neither true nor false", .sequences = 1);
    REFUSED("p.jsonl", "{\"prompt\":\"Q\",\"completion\":\"A\"}\n", "expected answers with a label, the columns prompt, completion and label "
            "(true or false); or pairs of answers, the columns chosen and rejected. It has: prompt, completion", .sequences = 1);
    REFUSED("p.jsonl", "{\"completion\":\"A\",\"label\":true}\n", "no column \"prompt\" for unpaired's", .sequences = 1);
    REFUSED("p.jsonl", UNPAIRED("[" SAYS("user", "Hi") "]", "[]", "true"), "has no message of the assistant behind the prompt", .sequences = 1,
            .chat_template = "chat.jinja");
    d = OPEN("p.jsonl", UNPAIRED("\"Q\"", "\"A\"", "true") "{\"prompt\":\"Q\",\"completion\":\"A\"}\n", .sequences = 1);
    struct tune_example x = {0};
    assert_got(d);
    assert_int_equal(tune_dataset_get(d, 1, &x), -1);
    assert_error_has("p.jsonl:2: the column \"label\" is not in this row; expected true for an answer that people want");
    assert_true(x.sequences == 0 && x.count == 0);
    tune_example_free(&x);
    tune_dataset_free(d);
}

/* Pairs for a loss of single answers: of each thousand rows first all chosen answers, then all rejected ones. */
static void parted(void **state)
{
    (void)state;
    enum { ROWS = 1003 };
    static char text[ROWS * 64];
    char expected[64], source[TUNE_DATASET_SOURCE_SIZE], want[64];
    size_t used = 0;
    for (int i = 0; i < ROWS; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "{\"prompt\":\"%d\",\"chosen\":\"A\",\"rejected\":\"B\",\"w\":%d}\n", i, i);
    struct tune_dataset *d = OPEN("p.jsonl", text, .sequences = 1);
    assert_got(d);
    assert_int_equal(tune_dataset_rows(d), 2 * ROWS);
    assert_non_null(strstr(tune_dataset_about(d), "; 1003 pairs are parted into 2006 rows, chosen answers with the label true and rejected "
                           "ones with false (`loss` kto)"));
    static uint64_t hash[2 * ROWS];
    assert_ok(tune_dataset_row_hashes(d, 0, 2 * ROWS, hash));
    for (int64_t i = 0; i < 2 * ROWS; i++) {
        int64_t at = i % 2000, size = i < 2000 ? 1000 : 3, row = i / 2000 * 1000 + at % size;
        bool chosen = at < size;
        double w;
        snprintf(expected, sizeof expected, "%lld[%s$] %d", (long long)row, chosen ? "A" : "B", chosen);
        assert_string_equal(answer_of(d, i), expected);
        snprintf(want, sizeof want, "p.jsonl:%lld", (long long)row + 1);
        assert_string_equal(tune_dataset_source(d, i, source, sizeof source), want);
        assert_true(tune_dataset_number(d, i, "w", &w) == 1 && w == (double)row);
        assert_true(hash[i] == tune_dataset_row_hash(d, i));
    }
    assert_true(hash[0] != hash[1000] && hash[1000] != hash[1001]); /* two answers are no copies */
    for (int by = TUNE_SPLIT_BY_CONTENT; by <= TUNE_SPLIT_BY_NUMBER; by++) { /* whole pairs are held out */
        struct tune_loader *load = tune_loader_new(d, &(struct tune_loader_options){
            .part = TUNE_HELD_OUT, .train_split = 0.7, .split_by = by, .sequences = 1, .batch_size = 1, .accumulate = 1, .max_length = 4096,
            .epochs = 1, .max_steps = -1, .stop_after_seconds = -1});
        int64_t held = 0;
        assert_got(load);
        for (int64_t i = 0; i < 2 * ROWS; i++) {
            int64_t at = i % 2000, size = i < 2000 ? 1000 : 3, first = i < 2000 ? at % size : 2000 + at % size;
            assert_int_equal(tune_dataset_first_part(d, i), first);
            assert_true(tune_loader_has(load, i) == tune_loader_has(load, first));
            held += tune_loader_has(load, i);
        }
        assert_true(held > 2 * ROWS / 5 && held < 2 * ROWS / 5 * 2 && held == tune_loader_rows(load));
        tune_loader_free(load);
    }
    tune_dataset_free(d);
    d = OPEN("p.jsonl", text, .sequences = 1, .limit = 2);
    assert_string_equal(answer_of(d, 1), "1[A$] 1");
    assert_string_equal(answer_of(d, 2), "0[B$] 0");
    assert_int_equal(tune_dataset_rows(d), 4);
    tune_dataset_free(d);
    d = OPEN("p.jsonl", LISTS("", SAYS("user", "Hi") "," SAYS("assistant", "Yes"), SAYS("user", "Hi") "," SAYS("assistant", "No")),
             .sequences = 1, .chat_template = "chat.jinja");
    assert_string_equal(answer_of(d, 0), "u:Hi\na:[Yes$\n] 1");
    assert_string_equal(answer_of(d, 1), "u:Hi\na:[No$\n] 0");
    tune_dataset_free(d);
    d = OPEN("p.jsonl", "{\"instruction\":\"I\",\"output\":[\"A\",\"B\"]}\n", .sequences = 1);
    assert_string_equal(answer_of(d, 1), BELOW "[B$] 0");
    tune_dataset_free(d);
}

/* Hashes of a file that was cut are refused, be its pairs parted or not. */
static void cut_file(void **state)
{
    (void)state;
    static const char text[] = "{\"prompt\":\"Q\",\"chosen\":\"A\",\"rejected\":\"B\"}\n{\"prompt\":\"R\",\"chosen\":\"A\",\"rejected\":\"B\"}\n";
    uint64_t hash[4];
    for (int sequences = 1; sequences <= 2; sequences++) {
        struct tune_dataset *d = OPEN("p.jsonl", text, .sequences = sequences);
        assert_got(d);
        assert_ok(tune_dataset_row_hashes(d, 0, tune_dataset_rows(d), hash));
        assert_int_equal(truncate("p.jsonl", 50), 0);
        assert_int_equal(tune_dataset_row_hashes(d, 0, tune_dataset_rows(d), hash), -1);
        assert_error_has("p.jsonl was cut from");
        tune_dataset_free(d);
    }
}

/* A batch says where the answer begins, also if that is the first token. */
static void begins(void **state)
{
    (void)state;
    struct tune_batch batch;
    struct tune_progress at = {0};
    struct tune_dataset *d = open_with("p.jsonl", "{\"prompt\":\"\",\"completion\":\"Ab\",\"label\":true}\n{\"prompt\":\"Qed\",\"completion\":\"C\",\"label\":false}\n"
                                  "{\"prompt\":\"Q\",\"completion\":\"D\",\"label\":false}\n", (struct tune_dataset_options){.sequences = 1, .row_format = "unpaired"});
    assert_got(d);
    struct tune_loader *load = tune_loader_new(d, &(struct tune_loader_options){.part = TUNE_ALL, .sequences = 1, .batch_size = 3,
        .accumulate = 1, .max_length = 4096, .epochs = 1, .max_steps = -1, .stop_after_seconds = -1});
    assert_got(load);
    assert_int_equal(tune_loader_more(load, &at), 1);
    assert_ok(tune_loader_next(load, &batch));
    for (int b = 0; b < 3; b++)
        assert_int_equal(batch.prompts[b], batch.row_of[b] == 0 ? 0 : batch.row_of[b] == 1 ? 3 : 1);
    tune_loader_free(load);
    tune_dataset_free(d);
}

/* A look at some of many rows meets both labels, though they alternate. */
static void surveyed(void **state)
{
    (void)state;
    enum { ROWS = 24000, SIZE = 48 }; /* one of 24 rows is looked at */
    char *text = malloc(ROWS * SIZE);
    size_t used = 0;
    struct tune_survey s, again;
    assert_non_null(text);
    for (int i = 0; i < ROWS; i++)
        used += (size_t)snprintf(text + used, SIZE, "{\"prompt\":\"\",\"completion\":\"%d\",\"label\":%d}\n", i, i % 2);
    struct tune_dataset *d = OPEN("p.jsonl", text, .sequences = 1);
    assert_got(d);
    assert_ok(tune_survey(&s, d, NULL));
    assert_ok(tune_survey(&again, d, NULL));
    print_message("# %lld and %lld of %lld\n", (long long)s.labelled[0], (long long)s.labelled[1], (long long)s.rows);
    assert_true(s.rows < ROWS / 2 && s.labelled[0] + s.labelled[1] == s.rows);
    assert_true(s.labelled[0] > 0.4 * (double)s.rows && s.labelled[1] > 0.4 * (double)s.rows);
    assert_int_equal(again.labelled[0], s.labelled[0]); /* the same rows each time */
    tune_survey_free(&s);
    tune_survey_free(&again);
    tune_dataset_free(d);
    free(text);
}

/* What rows are before they are opened, for programs that read several kinds. */
static void kinds(void **state)
{
    (void)state;
    static const struct { const char *row, *format, *columns; enum tune_dataset_kind kind; } rows[] = {
        {"{\"prompt\":\"Q\",\"chosen\":\"A\",\"rejected\":\"B\"}\n", "auto", NULL, TUNE_ROWS_PAIRS},
        {"{\"chosen\":\"A\",\"rejected\":\"B\"}\n", "auto", NULL, TUNE_ROWS_PAIRS},
        {"{\"q\":\"Q\",\"good\":\"A\",\"bad\":\"B\"}\n", "auto", "prompt=q,chosen=good,rejected=bad", TUNE_ROWS_PAIRS},
        {"{\"q\":\"Q\",\"good\":\"A\",\"bad\":\"B\"}\n", "preference", NULL, TUNE_ROWS_PAIRS},
        {"{\"prompt\":\"Q\",\"chosen\":\"A\",\"rejected\":\"B\"}\n", "prompt-completion", NULL, TUNE_ROWS_ANSWERS},
        {"{\"prompt\":\"Q\",\"chosen\":\"A\"}\n", "auto", NULL, TUNE_ROWS_ANSWERS},
        {"{\"instruction\":\"I\",\"output\":\"O\"}\n", "auto", NULL, TUNE_ROWS_ANSWERS},
        {"{\"instruction\":\"I\",\"output\":[\"A\",\"B\"]}\n", "auto", NULL, TUNE_ROWS_PAIRS},
        {"{\"prompt\":\"Q\",\"completion\":\"A\",\"label\":true}\n", "auto", NULL, TUNE_ROWS_ANSWERS},
        {"{\"messages\":[]}\n", "auto", NULL, TUNE_ROWS_ANSWERS},
        {"{\"question\":\"Q\",\"choices\":[\"A\",\"B\"],\"answer\":1}\n", "auto", NULL, TUNE_ROWS_CHOICES},
        {"{\"question\":\"Q\",\"choices\":{\"text\":[\"A\"],\"label\":[\"A\"]},\"answerKey\":\"A\"}\n", "auto", NULL, TUNE_ROWS_CHOICES},
        {"{\"prompt\":\"Q\",\"options\":[\"A\",\"B\"]}\n", "auto", NULL, TUNE_ROWS_CHOICES},
        {"{\"prompt\":\"Q\",\"options\":[\"A\",\"B\"],\"completion\":\"A\"}\n", "auto", NULL, TUNE_ROWS_ANSWERS},
        {"{\"q\":\"Q\",\"choices\":[\"A\",\"B\"],\"a\":\"A\"}\n", "auto", "prompt=q,completion=a", TUNE_ROWS_ANSWERS},
        {"{\"question\":\"Q\",\"choices\":\"A or B\"}\n", "auto", NULL, TUNE_ROWS_TEXTS},
        {"{\"text\":\"T\"}\n", "auto", NULL, TUNE_ROWS_TEXTS},
        {"{\"prompt\":\"Q\",\"text\":\"T\"}\n", "text", NULL, TUNE_ROWS_TEXTS},
    };
    enum tune_dataset_kind kind;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tune_dataset_options o = {.row_format = rows[i].format, .columns = rows[i].columns};
        test_write(".", "kind.jsonl", rows[i].row, strlen(rows[i].row));
        assert_ok(tune_dataset_kind("kind.jsonl", &o, &kind));
        assert_int_equal(kind, rows[i].kind);
    }
    test_write(".", "kind.txt", "A text.\n", 8);
    assert_ok(tune_dataset_kind("kind.txt", &(struct tune_dataset_options){.row_format = "auto"}, &kind));
    assert_int_equal(kind, TUNE_ROWS_TEXTS);
    assert_int_equal(tune_dataset_kind("none.jsonl", &(struct tune_dataset_options){0}, &kind), -1);
}

static bool is(struct tune_text text, const char *want)
{
    return text.size == strlen(want) && memcmp(text.data, want, text.size) == 0;
}

/* The texts of a pair, and several answers that are equally good. */
static void asked(void **state)
{
    (void)state;
    static const char row[] = "{\"chosen\":\"Q: A\",\"rejected\":\"Q: no\"}\n";
    static const char several[] = "{\"prompt\":\"Q\",\"completion\":[\"A\",\"B\\n\",\"\"]}\n{\"prompt\":\"Q\",\"completion\":[]}\n"
                                  "{\"prompt\":\"Q\",\"completion\":\"\"}\n{\"prompt\":\"Q\",\"completion\":[1]}\n{\"prompt\":\"Q\"}\n";
    struct tune_asked a;
    struct tune_dataset *d = open_with("pair.jsonl", row, (struct tune_dataset_options){.row_format = "auto", .sequences = 2});
    assert_got(d);
    assert_ok(tune_dataset_asked(d, 0, &a));
    assert_true(is(a.prompt, "Q:") && is(a.expected, " A") && is(a.rejected, " no") && a.more_count == 0);
    tune_asked_free(&a);
    tune_dataset_free(d);
    for (int references = 0; references < 2; references++) {
        d = open_with("several.jsonl", several, (struct tune_dataset_options){.row_format = "auto", .prompts = true, .references = references});
        assert_got(d);
        for (int i = 0; i < 5; i++) {
            assert_ok(tune_dataset_asked(d, i, &a));
            assert_true(is(a.prompt, "Q") && !a.rejected.data);
            assert_true(!a.expected.data == !(references && i < 3));
            assert_int_equal(a.more_count, references && i == 0 ? 2 : 0);
            if (a.more_count)
                assert_true(is(a.expected, "A") && is(a.more[0], "B\n") && is(a.more[1], ""));
            else if (a.expected.data)
                assert_true(is(a.expected, ""));
            tune_asked_free(&a);
        }
        tune_dataset_free(d);
    }
    d = open_with("several.jsonl", several, (struct tune_dataset_options){.row_format = "auto", .references = true});
    assert_got(d);
    assert_string_equal(marked_row(d, 0, "$"), "Q[A$]");
    assert_string_equal(marked_row(d, 1, "$"), "Q[$]");
    struct tune_example x = {0};
    assert_int_equal(tune_dataset_get(d, 3, &x), -1);
    assert_error_has("is a list of something else than texts");
    tune_example_free(&x);
    tune_dataset_free(d);
    d = open_with("several.jsonl", several, (struct tune_dataset_options){.row_format = "auto"}); /* lists are no text to train on */
    assert_null(d);
    assert_error_has("is a list or an object in this row, expected text");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(formats), cmocka_unit_test(other_prompts),
                                       cmocka_unit_test(no_prompt), cmocka_unit_test(named), cmocka_unit_test(cut), cmocka_unit_test(refused),
                                       cmocka_unit_test(unpaired), cmocka_unit_test(parted), cmocka_unit_test(begins), cmocka_unit_test(surveyed),
                                       cmocka_unit_test(cut_file), cmocka_unit_test(kinds), cmocka_unit_test(asked)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
