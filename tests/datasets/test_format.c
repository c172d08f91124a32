/* test_format.c - prompt templates, formats of rows, what of them is trained. */
#include "files/json.h"
#include "core/random.h"
#include "datasets/conversation.h"
#include "templates/prompt_template.h"
#include "datasets/rows.h"
#include "flags/flags.h"
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

static struct tune_dataset *open_with(const char *name, const char *text, struct tune_dataset_options o)
{
    test_write(".", name, text, strlen(text));
    o.max_length = o.max_length ? o.max_length : 4096;
    o.end_token = o.end_token ? o.end_token : "<|end|>";
    return tune_dataset_open(name, &o, bytes);
}

/* The end token is '$', the special token in the text as well. */
static const char *row_of(struct tune_dataset *d, int64_t row)
{
    return marked_row(d, row, "$");
}

static void assert_row(struct tune_dataset *d, int64_t row, const char *expected)
{
    assert_string_equal(row_of(d, row), expected);
}

static void assert_bad(struct tune_dataset *d, int64_t row, const char *error)
{
    struct tune_example x = {0};
    assert_got(d);
    assert_int_equal(tune_dataset_get(d, row, &x), -1);
    assert_error_has(error);
    tune_example_free(&x);
}

static void assert_about(struct tune_dataset *d, const char *expected)
{
    assert_got(d);
    assert_string_equal(tune_dataset_about(d), expected);
    tune_dataset_free(d);
}

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
        snprintf(many + strlen(many), 16, "{%d}", i);
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


/* ---- formats ---- */

static void alpaca_rows(void **state)
{
    (void)state;
    struct tune_dataset *d = OPEN("a.json", "[{\"instruction\": \"Add.\", \"input\": \"1\", \"output\": \"2\"},\n{\"instruction\": "
                                  "\"Hi\", "
                                            "\"input\": \"\", \"output\": \"Yo\"}, {\"output\": \"\", \"instruction\": \"Hi\", "
                                            "\"input\": null},\n{\"output\": \"x\"}]");
    assert_row(d, 0, "Below is an instruction that describes a task, paired with an input that provides further context. Write a "
               "response "
                     "that appropriately completes the request.\n\n### Instruction:\nAdd.\n\n### Input:\n1\n\n### Response:\n[2$]");
    assert_row(d, 1, "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"
                     "### Instruction:\nHi\n\n### Response:\n[Yo$]");
    assert_non_null(strstr(row_of(d, 2), "\n[$]")); /* an empty answer is one that ends */
    assert_bad(d, 3, "a.json:3: the column \"instruction\" is not in this row");
    assert_about(d, "alpaca (recognised), columns instruction, output, input; trained on completion; ended by <|end|>");
    d = OPEN("a.jsonl", "{\"instruction\": \"i\", \"output\": \"o\"}", .append_token = "none", .train_on = "all");
    assert_int_equal(strncmp(row_of(d, 0), "B[elow", 6), 0); /* nothing predicts the first token */
    assert_about(d, "alpaca (recognised), columns instruction, output; trained on all");
}

static void pairs(void **state)
{
    (void)state;
    struct tune_dataset *d = OPEN("p.jsonl", "{\"prompt\": \"Q \", \"completion\": \"A\"}\n{\"prompt\": \"\", \"completion\": "
                                  "\"B\"}\n"
                                             "{\"prompt\": 1, \"completion\": true}\n{\"prompt\": \"q\", \"completion\": null}\n"
                                             "{\"prompt\": [], \"completion\": \"\"}\n"
                                  "{\"prompt\": \"<|end|>\", \"completion\": \"<|end|>\"}");
    assert_row(d, 0, "Q [A$]");
    assert_row(d, 1, "B[$]");
    assert_row(d, 2, "1[true$]");
    assert_bad(d, 3, "p.jsonl:4: the column \"completion\" is null in this row");
    assert_bad(d, 4, "p.jsonl:5: the column \"prompt\" is a list or an object in this row");
    assert_row(d, 5, "<|end|>[<|end|>$]"); /* text, whatever it spells */
    tune_dataset_free(d);
    d = OPEN("p.jsonl", "{\"q\": \"Q\", \"a\": \"A\"}", .columns = "completion=a,prompt=q", .append_token = "a");
    assert_row(d, 0, "Q[Aa]");
    assert_about(d, "prompt-completion (recognised), columns prompt=q, completion=a; trained on completion; ended by a");
    assert_null(open_with("p.jsonl", "{\"prompt\": \"Q\", \"completion\": \"A\"}",
                          (struct tune_dataset_options){.row_format = "auto", .end_token = "<|no|>"}));
    assert_error_has("no token \"<|no|>\"");
    test_write(".", "p.jsonl", "{\"prompt\": \"Q\", \"completion\": \"A\"}", 34);
    assert_null(tune_dataset_open("p.jsonl", &(struct tune_dataset_options){.row_format = "auto", .max_length = 9}, bytes));
    assert_error_has("`append_token` none");
}

static void recognised(void **state)
{
    (void)state;
    static const struct {
        const char *row, *about;
    } rows[] = {
        {"{\"text\": \"t\", \"instruction\": \"i\", \"output\": \"o\"}", "alpaca (recognised)"},
        {"{\"output\": \"o\", \"id\": 3}", "text; ended by <|end|>"},
        {"{\"instruction\": \"i\", \"output\": \"o\", \"id\": 3}", "alpaca"},
        {"{\"completion\": \"i\", \"prompt\": \"o\", \"instruction\": \"i\", \"output\": \"o\"}", "prompt-completion"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tune_dataset *d = OPEN("r.jsonl", rows[i].row, NULL);
        assert_got(d);
        assert_int_equal(strncmp(tune_dataset_about(d), rows[i].about, strlen(rows[i].about)), 0);
        tune_dataset_free(d);
    }
    struct tune_dataset *d = OPEN("r.jsonl", "{\"instruction\": \"i\"}\n{\"instruction\": \"i\", \"output\": \"o\"}",
                                  .skip_bad_rows = true);
    assert_non_null(strstr(row_of(d, 1), "### Instruction:\ni\n\n### Response:\n[o$]")); /* the first rows together */
    assert_about(d, "alpaca (recognised), columns instruction, output; trained on completion; ended by <|end|>");
    REFUSED("r.jsonl", "{\"prompt\": 1, \"completion\": []}\n{\"prompt\": {}, \"completion\": 1}",
            "r.jsonl: not one of its 2 rows can be read: ", .skip_bad_rows = true);
    assert_error_has("r.jsonl:1: the column \"completion\" is a list or an object in this row, expected text; ");
    assert_error_has("r.jsonl:2: the column \"prompt\"");
    d = OPEN("r.jsonl", "{\"instruction\": \"i\", \"output\": \"o\"}", .text_field = "output"); /* as it ever was */
    assert_row(d, 0, "o[$]");
    tune_dataset_free(d);
    d = OPEN("r.jsonl", "{\"text\": \"t\", \"instruction\": \"i\", \"output\": \"o\"}", NULL);
    assert_about(d, "alpaca (recognised), columns instruction, output; trained on completion; the column text is not read "
                 "(`format` text trains on it); ended by <|end|>");
    d = open_with("r.jsonl", "{\"text\": \"abc\", \"instruction\": \"i\", \"output\": \"o\"}",
                  (struct tune_dataset_options){.row_format = "text", .text_field = "text", .max_length = 512});
    assert_row(d, 0, "a[bc$]");
    tune_dataset_free(d);
    static const char nested[] = "{\"prompt\": \"Q\", \"instances\": [{\"output\": \"x\"}, {\"output\": \"A\"}], \"o\": {\"p\": 7}}\n"
                                 "{\"prompt\": \"Q\", \"instances\": [], \"o\": 1}";
    d = OPEN("r.jsonl", nested, .columns = "completion=instances.1.output");
    assert_row(d, 0, "Q[A$]");
    assert_bad(d, 1, "r.jsonl:2: the column \"instances.1.output\" is not in this row");
    tune_dataset_free(d);
    d = OPEN("r.jsonl", nested, .columns = "completion=o.p");
    assert_row(d, 0, "Q[7$]");
    assert_bad(d, 1, "\"o.p\"");
    tune_dataset_free(d);
    REFUSED("r.jsonl", "{\"question\": \"a\", \"answer\": \"b\"}",
            "give `format` prompt-completion `columns` prompt=question,completion=answer", NULL);
    REFUSED("r.jsonl", "{\"ask\": \"Q\", \"n\": 1, \"instances\": [{\"input\": \"\", \"output\": \"A\"}]}",
            "cannot tell which field to train on; this row has: ask, n, instances; give `text_field` ask, or "
            "`format` prompt-completion `columns` prompt=ask,completion=instances.0.output", NULL);
    static const char *const told[][2] = {
        {"{\"instruction\": \"a\", \"outptu\": \"b\"}", "has: instruction, outptu; the column \"output\" of the format alpaca is missing; "
                                                         "give `format` alpaca `columns` output=outptu"},
        {"{\"instruction\": \"a\", \"context\": \"c\", \"response\": \"b\", \"category\": \"d\"}", "`columns` input=context,output=response"},
        {"{\"instruction\": \"a\", \"input\": \"b\"}", "the column \"output\" of the format alpaca is missing, and \"input\" is not the "
                                                        "name of an answer; give `format` alpaca `columns` output=NAME, or `text_field` NAME"},
        {"{\"prompt\": \"a\", \"response\": \"b\"}", "the column \"completion\" of the format prompt-completion is missing; give `format` "
                                                     "prompt-completion `columns` completion=response"},
        {"{\"id\": 1, \"prompt\": \"a\", \"said\": \"b\"}", "`columns` completion=said"},
        {"{\"id\": 1, \"n\": 2}", "has: id, n; give `text_field` NAME"},
        {"{\"id\": \"s1\", \"name\": \"n\", \"instruction\": \"a\", \"instances\": [{\"input\": \"i\", \"output\": \"o\"}], \"is_classification\": false}",
         "the column \"output\" of the format alpaca is missing; give `format` alpaca `columns` output=instances.0.output"},
        {"{\"id\": \"s1\", \"conversation\": {\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}}", "the messages of a conversation are in "
         "\"conversation.messages\"; give `format` messages `columns` messages=conversation.messages"},
        {"{\"conversation\": [{\"role\": \"user\", \"content\": \"a\"}]}", "give `format` messages `columns` messages=conversation"},
        {"{\"id\": 1, \"talk\": [{\"from\": \"human\", \"value\": \"a\"}]}", "give `format` sharegpt `columns` conversations=talk"},
        {"{\"version\": \"1\", \"questions\": [{\"q\": \"a\", \"b\": \"b\"}], \"n\": [1]}",
         "this row has: version, questions, n; give `text_field` NAME; if its list \"questions\" holds the rows"},
        {"{\"user_id\": \"7\", \"title\": \"a\", \"date\": \"d\", \"body\": \"b\"}", "`columns` prompt=title,completion=body"},
        {"{\"id\": 1, \"title\": \"a\", \"body\": \"b\"}", "give `text_field` title, or `format` prompt-completion `columns` prompt=title,"
                                                          "completion=body"},
        {"{\"my title\": \"a\", \"b\": \"b\"}", "give `text_field` 'my title', or `format` prompt-completion `columns` 'prompt=my title,"
                                                 "completion=b'"},
        {"{\"a=b\": \"a\", \"b\": \"b\"}", "give `text_field` a=b, or other names to columns with one of , = ; ' in theirs"},
    };
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        REFUSED("r.jsonl", told[i][0], told[i][1], NULL);
    REFUSED("r.csv", "instruction,reply\na,b\n", "the column \"output\" of the format alpaca is missing; give `format` alpaca "
            "`columns` output=reply", NULL);
    d = OPEN("r.jsonl", "{\"body\": \"abc\", \"id\": \"7\"}", .columns = "text=body");
    assert_row(d, 0, "a[bc$]");
    tune_dataset_free(d);
    REFUSED("r.jsonl", "{\"input\": \"i\", \"output\": \"o\"}",
            "need a chat template: the model has no chat template of its own; give `chat_template` NAME", NULL);
    REFUSED("r.jsonl", "{\"messages\": []}", "r.jsonl: its rows are conversations (the format messages)", NULL);
}

static void put_template(const char *text)
{
    test_write(".", "t.txt", text, strlen(text));
}

static void by_template(void **state)
{
    (void)state;
    static const char rows[] = "{\"q\": \"{a}\", \"a\": \"AB\", \"n\": 2}";
    put_template("[prompt]\nQ: {q}{{}}\n[completion]\n{a}");
    struct tune_dataset *d = OPEN("t.jsonl", rows, .prompt_template = "t.txt");
    uint64_t hash = tune_dataset_prompt_hash(d);
    assert_row(d, 0, "Q: {a}{}[AB$]"); /* a slot in a row's text is text */
    assert_true(hash != 0);
    assert_about(d, "prompt-template, columns q, a; trained on completion; ended by <|end|>; not read: n");
    put_template("[completion]\n{a}\n[prompt]\n,{x}");
    d = OPEN("t.jsonl", rows, .prompt_template = "t.txt", .columns = "x=n");
    assert_row(d, 0, "A[B],2"); /* nothing ends a prompt */
    tune_dataset_free(d);
    put_template("[prompt]\n<|end|>{q}<|{q}\n[completion]\n{a}<|end|>"); /* the file's own is one, a row's is text */
    d = OPEN("t.jsonl", "{\"q\": \"end|>\", \"a\": \"<|end|>\"}", .prompt_template = "t.txt", .append_token = "none");
    assert_row(d, 0, "$end|><|end|>[<|end|>$]");
    tune_dataset_free(d);
}

static void templates_refused(void **state)
{
    (void)state;
    static const char rows[] = "{\"question\": \"x\", \"answer\": \"y\"}";
    put_template("[prompt]\n{qestion}\n[completion]\n{answer}");
    REFUSED("t.jsonl", rows, "no column \"qestion\" for prompt-template's slot {qestion}; it has: question, answer; the nearest is "
                             "\"question\" (`columns` qestion=COLUMN", .prompt_template = "t.txt");
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    REFUSED("t.jsonl", rows, "no column \"z\"", .prompt_template = "t.txt", .columns = "qestion=z");
    REFUSED("t.jsonl", rows, "\"question\" is a column of the file, and stands behind the '='; before it one of: qestion, answer",
            .prompt_template = "t.txt", .columns = "question=qestion");
    REFUSED("t.jsonl", rows, "\"x\" is nothing that the format prompt-template reads; expected one of: qestion, answer",
            .prompt_template = "t.txt", .columns = "x=question");
    REFUSED("t.jsonl", rows, "expected NAME=COLUMN", .prompt_template = "t.txt", .columns = "qestion=");
    REFUSED("t.jsonl", rows, "expected NAME=COLUMN", .prompt_template = "t.txt", .columns = "qestion=b,,a=c");
    REFUSED("t.jsonl", rows, "\"qestion\" stands before a '=' twice", .prompt_template = "t.txt",
            .columns = "qestion=question,qestion=answer");
    REFUSED("t.jsonl", "{\"instruction\": \"i\", \"output\": \"o\", \"context\": \"c\"}",
            "no column \"contxt\" for alpaca's \"input\"; it has: instruction, output, context; the nearest is \"context\"",
            .columns = "input=contxt"); /* one that may be absent, but not when it is named */
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    REFUSED("t.jsonl", "{\"a\": \"x\", \"b\": \"y\"}", "both say which column is the text", .columns = "text=a", .text_field = "b");
    assert_null(open_with("t.jsonl", rows, (struct tune_dataset_options){.row_format = "alpaca", .prompt_template = "t.txt"}));
    assert_error_has("leave one of them out");
    REFUSED("t.txt", "paragraph", "has no columns", .prompt_template = "sql");
    REFUSED("t.txt", "paragraph", "has no columns", .columns = "text=a");
}

static void trained(void **state)
{
    (void)state;
    static const char alpaca[] = "{\"instruction\": \"i\", \"output\": \"o\"}";
    REFUSED("w.jsonl", alpaca, "`train_on` last has no meaning for rows of the format alpaca; expected one of: completion, all",
            .train_on = "last");
    REFUSED("w.jsonl", "{\"text\": \"t\"}", "give `response_template`", .train_on = "completion");
    REFUSED("w.jsonl", "{\"text\": \"t\"}", "contradict", .train_on = "all", .response_template = "t");
    REFUSED("w.jsonl", "{\"text\": \"t\"}", "expected one of: completion, all", .train_on = "assistant");
    REFUSED("w.jsonl", alpaca, "not one of the first 1 rows has a token to train on", .max_length = 50);
    assert_null(open_with("w.jsonl", alpaca, (struct tune_dataset_options){.row_format = "alpacca"}));
    assert_error_has("no format of rows");
    struct tune_dataset *d = OPEN("w.jsonl", "{\"text\": \"t\"}", .train_on = "all");
    assert_got(d);
    tune_dataset_free(d);
}
/* ---- CSV and TSV ---- */

static void csv_rows(void **state)
{
    (void)state;
    struct tune_dataset *d = OPEN("c.csv", "\xef\xbb\xbf\r\nid,prompt,completion\r\n\r\n1,\"a\n\nb, \"\"c\"\"\",\"A\r\n\"\n2,5\" "
                                  "wide,\n3,\"\",x");
    char source[TUNE_DATASET_SOURCE_SIZE];
    assert_got(d);
    assert_int_equal(tune_dataset_rows(d), 3);
    assert_row(d, 0, "a\n\nb, \"c\"[A\r\n$]");
    assert_row(d, 1, "5\" wide[$]");
    assert_row(d, 2, "x[$]");
    assert_string_equal(tune_dataset_source(d, 0, source, sizeof source), "c.csv:4");
    assert_string_equal(tune_dataset_source(d, 1, source, sizeof source), "c.csv:8");
    assert_string_equal(tune_dataset_source(d, 2, source, sizeof source), "c.csv:9");
    tune_dataset_free(d);
    d = OPEN("c.tsv", "instruction\toutput\tinput\nSay, it\t\"a\tb\"\t\n", .train_on = "completion");
    assert_non_null(strstr(row_of(d, 0), "Say, it\n\n### Response:\n[a\tb$]"));
    tune_dataset_free(d);
    d = OPEN("c.csv", "text,id\nab,1\nc,2\n"); /* one column as text */
    assert_row(d, 0, "a[b$]");
    assert_string_equal(tune_dataset_text_field(d), "text");
    tune_dataset_free(d);
    d = OPEN("c.csv", "a,b\nab,1\n", .text_field = "b");
    assert_row(d, 0, "1[$]");
    tune_dataset_free(d);
}

/* Files of spreadsheets: fields parted by something else than a comma, which the format names. */
#define TURN(q) "### Instruction:\n" q "\n\n### Response:\n"

/* The columns of LLaMA-Factory's sets beside Alpaca's. All its answers are trained. */
static void system_and_history(void **state)
{
    (void)state;
    static const char below[] = "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n";
    static const char rows[] =
        "{\"instruction\": \"q\", \"input\": \"i\", \"output\": \"o\", \"system\": \"Be <|end|>.\", \"history\": [[\"a\", \"b\"], [\"c\", \"d\"]]}\n"
        "{\"instruction\": \"q\", \"output\": \"o\", \"system\": \"\", \"history\": []}\n"
        "{\"instruction\": \"q\", \"output\": \"o\", \"system\": null, \"history\": [[\"a\", \"b\"]]}\n"
        "{\"instruction\": \"q\", \"output\": \"o\"}\n"
        "{\"instruction\": \"q\", \"output\": \"o\", \"history\": [[\"a\"]]}\n"
        "{\"instruction\": \"q\", \"output\": \"o\", \"history\": [\"a\", \"b\"]}\n";
    char plain[512];
    snprintf(plain, sizeof plain, "%s" TURN("q") "[o$]", below);
    struct tune_dataset *d = OPEN("s.jsonl", rows, NULL);
    assert_string_equal(tune_dataset_about(d), "alpaca (recognised), columns instruction, output, input, system, history; trained on "
                                               "completion; ended by <|end|>");
    assert_row(d, 0, "Be <|end|>.\n\n" TURN("a") "[b$]\n\n" TURN("c") "[d$]\n\n### Instruction:\nq\n\n### Input:\ni\n\n### Response:\n[o$]");
    assert_row(d, 1, plain);
    assert_row(d, 3, plain);
    snprintf(plain, sizeof plain, "%s" TURN("a") "[b$]\n\n" TURN("q") "[o$]", below);
    assert_row(d, 2, plain);
    assert_bad(d, 4, "s.jsonl:5: the column \"history\" is no list of [question, answer] in this row");
    assert_bad(d, 5, "s.jsonl:6: the column \"history\" is no list of [question, answer] in this row");
    tune_dataset_free(d);
    d = OPEN("s.jsonl", "{\"instruction\": \"q\", \"output\": \"o\", \"system\": null}\n"
                        "{\"instruction\": \"q\", \"output\": \"o\", \"system\": \"Be.\"}\n"
                        "{\"instruction\": \"q\", \"output\": \"o\", \"system\": [\"x\"]}\n", NULL);
    assert_row(d, 1, "Be.\n\n" TURN("q") "[o$]"); /* the first row has none, and does not decide */
    assert_bad(d, 2, "s.jsonl:3: the column \"system\" is a list or an object in this row, expected text");
    tune_dataset_free(d);
    REFUSED("s.jsonl", "{\"instruction\": \"q\", \"output\": \"o\", \"meta\": {\"system\": \"S\"}}",
            "none of the first rows has a value at \"meta.sytem\" (`columns` system=meta.sytem); its columns are: instruction, output, meta",
            .columns = "system=meta.sytem");
    d = OPEN("s.jsonl", rows, .append_token = "none"); /* the turns before end in none, either */
    assert_row(d, 0, "Be <|end|>.\n\n" TURN("a") "[b]\n\n" TURN("c") "[d]\n\n### Instruction:\nq\n\n### Input:\ni\n\n### Response:\n[o]");
    tune_dataset_free(d);
    d = OPEN("s.jsonl", rows, .prompts = true);
    snprintf(plain, sizeof plain, "%s" TURN("a") "b$\n\n" TURN("q"), below);
    assert_row(d, 2, plain);
    tune_dataset_free(d);
    /* columns of these names that are something else */
    assert_about(OPEN("s.jsonl", "{\"instruction\": \"q\", \"output\": \"o\", \"system\": 7, \"history\": \"long\", \"id\": 1, \"b\": \"x\"}", NULL),
                 "alpaca (recognised), columns instruction, output; trained on completion; ended by <|end|>; not read: system, history, id, b");
    assert_about(OPEN("s.csv", "prompt,completion,a,b,c,d,e,f,g,h,i,j\n1,2,3,4,5,6,7,8,9,0,1,2\n", NULL),
                 "prompt-completion (recognised), columns prompt, completion; trained on completion; ended by <|end|>; not read: a, b, c, d, "
                 "e, f, g, h and 2 more");
    assert_about(OPEN("s.jsonl", "{\"text\": \"a\", \"url\": \"b\"}", NULL), "text; ended by <|end|>; not read: url");
    assert_about(OPEN("s.jsonl", "{\"text\": \"a\", \"url\": \"b\"}", .text_field = "url"), "text; ended by <|end|>");
}

static void csv_separators(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *said, *row;
    } all[] = {
        {"c.csv", "\xef\xbb\xbfprompt;completion\r\nq, 1;\"a;\"\"\r\nb\"\r\n", "; fields parted by a semicolon", "q, 1[a;\"\r\nb$]"},
        {"c.csv", "prompt\tcompletion\nq, 1;\ta\n", "; fields parted by a tab", "q, 1;[a$]"},
        {"c.csv", "prompt|completion\nq;1|a\n", "; fields parted by a bar (|)", "q;1[a$]"},
        {"c.csv", "prompt;completion;one, two\nq;a;b\n", "; fields parted by a semicolon", "q[a$]"},
        {"c.csv", "sep=;\r\nprompt;completion\r\nq,1;a\r\n", "; fields parted by a semicolon", "q,1[a$]"},
        {"c.csv", "sep=,\nprompt,completion\nq;1,a\n", "", "q;1[a$]"},
        {"c.tsv", "prompt,completion\nq\t1,a\n", "; fields parted by a comma", "q\t1[a$]"},
        {"c.tsv", "prompt\tcompletion\nq,1\ta,b\n", "", "q,1[a,b$]"},
        {"c.csv", "prompt,completion\nq;1,a;b\n", "", "q;1[a;b$]"},      /* as ever: the heading parts by commas */
        {"c.csv", "prompt,completion,a;b\nq;1,a,c\n", "", "q;1[a$]"},
        {"c.csv", "prompt;completion\nq;a\nb\n", "; fields parted by a semicolon", "q[a$]"}, /* a bad row does not change it */
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct tune_dataset *d = OPEN(all[i].name, all[i].text, NULL);
        assert_row(d, 0, all[i].row);
        assert_non_null(strstr(tune_dataset_about(d), all[i].said));
        assert_true(*all[i].said || !strstr(tune_dataset_about(d), "parted"));
        tune_dataset_free(d);
    }
    struct tune_dataset *d = OPEN("c.csv", "Frage;Antwort\na;b\nc\n", .columns = "prompt=Frage,completion=Antwort");
    assert_bad(d, 1, "c.csv:3: a record of 1 fields, the first line names 2 columns (a semicolon too many or too few, or a quote?)");
    tune_dataset_free(d);
    REFUSED("c.csv", "Frage;Antwort\na;b\n", "it has: Frage, Antwort; give", NULL);
    REFUSED("c.csv", "a;b\nx y z\n", "c.csv: its first line names one column, \"a;b\", with a semicolon in it", NULL);
    REFUSED("c.csv", "\"a,b\"\n\"c,d\"\n", "one column, \"a,b\", with a comma in it", NULL);
    REFUSED("j.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"b\"}], "
                       "\"data\": [{\"text\": \"x\"}]}", "its rows are conversations", NULL); /* a row, not a list of rows */
    REFUSED("c.tsv", "a|b\nx y z\n", "one column, \"a|b\", with a bar (|) in it", .format = TUNE_DATASET_TSV);
    d = OPEN("c.csv", "a;b\nx y z\n", .text_field = "a;b");
    assert_row(d, 0, "x[ y z$]");
    tune_dataset_free(d);
}

static void csv_refused(void **state)
{
    (void)state;
    struct tune_dataset *d = OPEN("c.csv", "prompt,completion\na,b\nq\n\"x\"y,1\nq,\xff\n\"1\n2\",3,4\n");
    assert_bad(d, 1, "c.csv:3: a record of 1 fields, the first line names 2 columns");
    assert_bad(d, 2, "c.csv:4: something behind a closing quote");
    assert_bad(d, 3, "c.csv:5: no UTF-8");
    assert_bad(d, 4, "c.csv:6: a record of 3 fields");
    tune_dataset_free(d);
    d = OPEN("c.csv", "prompt,completion\na,b\na,caf\xe9 cr\xe8me\n", NULL);
    assert_bad(d, 1, "c.csv:3: no UTF-8; it looks like Latin-1: save it as UTF-8 (iconv -f WINDOWS-1252 -t UTF-8)");
    tune_dataset_free(d);
    d = OPEN("c.csv", "prompt,completion\na,b\na,\xcf\xf0\xe8\xe2\xe5\xf2 abc\n", NULL); /* Windows-1251 */
    assert_bad(d, 1, "c.csv:3: no UTF-8; it is of another encoding: save it as UTF-8 (iconv -f ENCODING");
    tune_dataset_free(d);
    d = OPEN("c.csv", "prompt,completion\na,b\na,caf\xc3\xa9 \xe9!\n", NULL);
    assert_bad(d, 1, "c.csv:3: no UTF-8"); /* UTF-8 with a damaged byte */
    assert_null(strstr(tune_error_message(), "Latin"));
    tune_dataset_free(d);
    REFUSED("c.csv", "prompt,completion\na,\"b\n", "c.csv:2: a quote that is not closed", NULL);
    REFUSED("c.csv", "prompt,completion\n\n", "has no rows", NULL);
    REFUSED("c.csv", "\n\r\n", "has no rows", NULL);
    REFUSED("c.csv", "a,b,a\n1,2,3\n", "the column \"a\" stands twice", NULL);
    REFUSED("c.csv", "a,b\n1,2\n", "it has: a, b; give `text_field` a, or `format` prompt-completion `columns` prompt=a,completion=b", NULL);
    REFUSED("c.csv", "a,b\n1,2\n", "no column \"c\"; it has: a, b", .text_field = "c");
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
}

/* Random fields, written by the rules: every record is found where it lies, and says what was written. */
static void csv_many(void **state)
{
    (void)state;
    enum { ROWS = 500 };
    static const char *const pieces[] = {"a", "\"", ",", "\n", "\r\n", "", "b c", "\t"};
    static char text[ROWS * 200], plain[ROWS][128];
    size_t used = (size_t)sprintf(text, "id,text\n");
    for (int row = 0; row < ROWS; row++) {
        char quoted[256] = "";
        plain[row][0] = 0;
        for (uint64_t i = 0; i < 12; i++) {
            const char *piece = pieces[(int)(tune_random_uniform(7, (uint64_t)row, i) * 8)];
            strcat(plain[row], piece);
            strcat(quoted, *piece == '"' ? "\"\"" : piece);
        }
        used += (size_t)sprintf(text + used, row % 3 ? "%d,\"%s\"\n" : "%d,\"%s\"\r\n\n", row, quoted);
    }
    struct tune_dataset *d = OPEN("many.csv", text, .append_token = "none");
    assert_got(d);
    assert_int_equal(tune_dataset_rows(d), ROWS);
    for (int row = ROWS - 1; row >= 0; row--) {
        char got[256];
        snprintf(got, sizeof got, "%s", row_of(d, row));
        size_t n = strcspn(got, "[");
        /* its brackets: all but the first byte is trained */
        memmove(got + n, got + n + (got[n] != 0), strlen(got + n) + (got[n] == 0));
        if (*got)
            got[strlen(got) - (strlen(got) > 1)] = 0;
        assert_string_equal(got, plain[row]);
    }
    tune_dataset_free(d);
}

/* ---- conversations ---- */

/* Plain text: "user:Hi.\n", "assistant:Hello.\n", where the assistant wrote "Hello.". */
static const char *plain(void)
{
    static const char text[] = "{% for m in messages %}{{ m.role + ':' + m.content + '.\\n' }}{% endfor %}"
                               "{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}";
    test_write(".", "plain.jinja", text, sizeof text - 1);
    return "plain.jinja";
}

#define USER(text) "{\"role\": \"user\", \"content\": \"" text "\"}"
#define ASSISTANT(text) "{\"role\": \"assistant\", \"content\": \"" text "\"}"

static void conversations(void **state)
{
    (void)state;
    static const char two[] = "{\"messages\": [" USER("a") ", " ASSISTANT("b") ", " USER("c") ", " ASSISTANT("d") "]}";
    struct tune_dataset *d = OPEN("m.jsonl", two, .chat_template = plain());
    assert_row(d, 0, "user:a.\nassistant:[b.]\nuser:c.\nassistant:[d.]\n");
    assert_about(d, "messages (recognised), columns messages; trained on assistant; chat template plain.jinja");
    d = OPEN("m.jsonl", two, .chat_template = plain(), .train_on = "last");
    assert_row(d, 0, "user:a.\nassistant:b.\nuser:c.\nassistant:[d.]\n");
    tune_dataset_free(d);
    d = OPEN("m.jsonl", two, .chat_template = plain(), .train_on = "all");
    assert_row(d, 0, "u[ser:a.\nassistant:b.\nuser:c.\nassistant:d.\n]");
    tune_dataset_free(d);
    REFUSED("m.jsonl", two, "expected one of: assistant, last, all", .chat_template = plain(), .train_on = "completion");
    d = OPEN("s.jsonl", "{\"conversations\": [{\"from\": \"system\", \"value\": \"s\"}, {\"value\": \"\\u0078\", \"from\": "
             "\"human\"}, "
                        "{\"from\": \"gpt\", \"value\": \"\"}]}", .chat_template = plain());
    assert_row(d, 0, "system:s.\nuser:x.\nassistant:[.]\n");
    tune_dataset_free(d);
    d = OPEN("i.csv", "input,output\na,b\n", .chat_template = plain());
    assert_row(d, 0, "user:a.\nassistant:[b.]\n");
    tune_dataset_free(d);
    d = OPEN("p.jsonl", "{\"prompt\": [" USER("a") ", " ASSISTANT("b") ", " USER("c") "], \"completion\": [" ASSISTANT("d") "]}",
             .chat_template = plain());
    assert_row(d, 0, "user:a.\nassistant:b.\nuser:c.\nassistant:[d.]\n");
    tune_dataset_free(d);
}

static void bad_conversations(void **state)
{
    (void)state;
    static const struct {
        const char *messages, *error;
    } bad[] = {
        {USER("a"), "bad.jsonl:2: a conversation of 1 message, expected at least 2"},
        {"", "a conversation of 0 messages"},
        {USER("a") "," USER("b") "," ASSISTANT("c"), "message 2 (user): two user messages in a row"},
        {ASSISTANT("a") "," USER("b"), "message 1 (assistant): an assistant's message follows"},
        {USER("a") "," ASSISTANT("b") "," ASSISTANT("c"), "message 3 (assistant)"},
        {USER("a") ",{\"role\": \"system\", \"content\": \"x\"}", "message 2 (system): a system message stands only at the begin"},
        {"{\"role\": \"system\", \"content\": \"x\"}," USER("a"), "no message of the assistant"},
        {USER("a") ",{\"role\": \"bot\", \"content\": \"x\"}", "bad.jsonl:2:56: the role \"bot\", expected system, user"},
        {USER("a") ",{\"content\": \"x\"}", "a message without \"role\""},
        {USER("a") ",{\"role\": \"assistant\"}", "a message without \"content\""},
        {USER("a") ",{\"role\": \"assistant\", \"content\": 3}", "neither a string nor a list of parts"},
        {USER("a") ",{\"role\": \"user\", \"role\": \"user\"}", "\"role\" stands here a second time"},
        {"{\"role\": \"user\", \"content\": [{\"type\": \"image_url\"}]}", "a part of content that is no text"},
        {"{\"role\": \"user\", \"content\": [{\"type\": \"text\"}]}", "a part of content without \"text\""},
        {"3", "expected"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[1024];
        snprintf(text, sizeof text, "{\"messages\": [%s, %s]}\n{\"messages\": [%s]}\n{\"messages\": \"x\"}", USER("a"),
                 ASSISTANT("b"), bad[i].messages);
        struct tune_dataset *d = OPEN("bad.jsonl", text, .chat_template = plain(), .strict = true);
        assert_bad(d, 1, bad[i].error);
        assert_bad(d, 2, "bad.jsonl:3: the column \"messages\" is no list of messages");
        tune_dataset_free(d);
    }
    struct tune_dataset *d = OPEN("s.jsonl", "{\"conversations\": [{\"from\": \"human\", \"value\": \"a\"}, {\"from\": \"gpt\", "
                                  "\"value\": \"b\"}]}\n"
                                  "{\"conversations\": [{\"from\": \"alien\", \"value\": \"a\"}]}\n"
                                  "{\"conversations\": [{\"from\": \"gpt\"}]}",
                                  .chat_template = plain());
    assert_bad(d, 1, "s.jsonl:2:29: the sender \"alien\"");
    assert_bad(d, 2, "a message without \"value\"");
    tune_dataset_free(d);
}

/* Prompts are what comes before the answer; columns of answers need not be there. */
static void prompts(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *prompt;
        struct tune_dataset_options more;
    } rows[] = {
        {"p.jsonl", "{\"prompt\": \"a\"}", "a", {0}},
        {"p.jsonl", "{\"prompt\": \"a\", \"completion\": \"b\"}", "a", {0}},
        {"p.jsonl", "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}", "a", {0}},
        {"t.jsonl", "{\"text\": \"a b\"}", "a b", {0}},
        {"t.txt", "one\n\ntwo\n", "one", {0}},
        {"r.jsonl", "{\"text\": \"Q: a A: b\"}", "Q: a A:", {.response_template = "A:"}},
        {"c.csv", "question,n\nwhy,3\n", "why", {.columns = "prompt=question"}},
        {"m.jsonl", "{\"messages\": [" USER("a") "]}", "user:a.\nassistant:", {0}},
        {"m.jsonl", "{\"messages\": [" USER("a") "," ASSISTANT("b") "," USER("c") "]}",
         "user:a.\nassistant:b.\nuser:c.\nassistant:", {0}},
        {"m.jsonl", "{\"messages\": [" USER("a") "," ASSISTANT("b") "]}", "user:a.\nassistant:", {0}},
        {"s.jsonl", "{\"conversations\": [{\"from\": \"human\", \"value\": \"a\"}]}", "user:a.\nassistant:", {0}},
        {"i.jsonl", "{\"input\": \"a\", \"output\": \"b\"}", "user:a.\nassistant:", {0}},
        {"l.jsonl", "{\"prompt\": [" USER("a") "]}", "user:a.\nassistant:", {0}},
        {"f.jsonl", "{\"q\": \"a\"}", "Q: a\n", {.prompt_template = "t.txt.template"}},
    };
    put_template("[prompt]\nQ: {q}\n\n[completion]\n{a}\n");
    assert_int_equal(rename("t.txt", "t.txt.template"), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tune_dataset_options o = rows[i].more;
        o.prompts = true;
        o.row_format = "auto";
        o.chat_template = strstr(rows[i].prompt, "assistant:") ? plain() : NULL;
        struct tune_dataset *d = open_with(rows[i].name, rows[i].text, o);
        if (!d)
            fail_msg("%s: %s", rows[i].text, tune_error_message());
        assert_row(d, 0, rows[i].prompt);
        tune_dataset_free(d);
    }
    struct tune_dataset *d = OPEN("a.jsonl", "{\"instruction\": \"Do.\"}", .prompts = true);
    assert_non_null(strstr(row_of(d, 0), "### Instruction:\nDo.\n\n### Response:\n"));
    assert_about(d, "alpaca (recognised), columns instruction");
    REFUSED("m.jsonl", "{\"messages\": []}", "without a message to answer", .prompts = true, .chat_template = plain());
    REFUSED("m.jsonl", "{\"messages\": [{\"role\": \"system\", \"content\": \"x\"}]}", "without a message to answer",
            .prompts = true, .chat_template = plain());
    d = tune_dataset_open_text("--prompt", "{\"prompt\": \"a\"}", 15,
                               &(struct tune_dataset_options){.row_format = "auto", .prompts = true, .max_length = 9}, bytes);
    assert_row(d, 0, "a");
    tune_dataset_free(d);
    assert_null(tune_dataset_open_text("--prompt", "{", 1, &(struct tune_dataset_options){.row_format = "auto", .prompts = true,
                                                                                         .max_length = 9}, bytes));
    assert_error_has("--prompt:1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(prompts), cmocka_unit_test(templates), cmocka_unit_test(bad_templates), cmocka_unit_test(shipped),
                                       cmocka_unit_test(alpaca_rows), cmocka_unit_test(pairs), cmocka_unit_test(recognised),
                                       cmocka_unit_test(by_template), cmocka_unit_test(templates_refused),
                                       cmocka_unit_test(trained), cmocka_unit_test(csv_rows), cmocka_unit_test(system_and_history), cmocka_unit_test(csv_separators), cmocka_unit_test(csv_refused),
                                       cmocka_unit_test(csv_many), cmocka_unit_test(conversations),
                                       cmocka_unit_test(bad_conversations)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
