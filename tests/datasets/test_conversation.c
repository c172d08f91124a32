/* test_conversation.c - conversations as training rows: by real chat templates and our own, what of them is trained, what is
 * refused. */
#include <limits.h>

#include <cjson/cJSON.h>

#include "files/cjson.h"
#include "datasets/conversation.h"
#include "marked_rows.h"
#include "tokenizers/auxiliary_files.h"

static char shared[PATH_MAX]; /* folder of real templates; "": none */

static void put(const char *name, const char *text)
{
    test_write(".", name, text, strlen(text));
}

/* The tokenizer has the special tokens that the templates write. It puts <s> before texts that are encoded with special tokens:
 * conversations are not. */
static int setup(void **state)
{
    static const char *const special[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|user|>", "<|assistant|>", "<|system|>",
                                          "<|end|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<s>"};
    enum { SPECIAL = sizeof special / sizeof *special };
    if (test_shared() && !realpath(test_shared(), shared)) /* tests go to a folder of their own */
        *shared = 0;
    if (test_home_begin(state) < 0)
        return -1;
    assert_ok(tune_tokenizer_train("tokenizer.json", "ab", 2, 256 + SPECIAL, special, SPECIAL));
    char *text, *with;
    size_t size;
    static const char none[] = "\"post_processor\":";
    assert_ok(tune_file_read("tokenizer.json", 1 << 20, &text, &size));
    char *at = strstr(text, none);
    assert_non_null(at);
    size_t end = (size_t)(at - text) + sizeof none - 1;
    at += sizeof none - 1;
    at += *at == ' ';
    at = *at == '{' ? strstr(at, "},") + 1 : at + 4; /* ByteLevel, or null */
    assert_true(asprintf(&with, "%.*s{\"type\":\"TemplateProcessing\",\"single\":["
                         "{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],"
                         "\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[10],"
                         "\"tokens\":[\"<s>\"]}}}%s", (int)end, text, at) > 0);
    put("tokenizer.json", with);
    free(text);
    free(with);
    bytes = tune_tokenizer_open("tokenizer.json");
    assert_got(bytes);
    assert_ok(tune_file_make_folder("model"));
    put("model/tokenizer_config.json", "{\"bos_token\": \"<s>\", \"eos_token\": \"<|endoftext|>\", \"chat_template\": "
                                       "\"{% for m in messages %}{{ '<' + m.role + '>' + m.content + eos_token }}{% endfor %}"
                                       "{% if add_generation_prompt %}<assistant>{% endif %}\"}");
    return 0;
}

static int teardown(void **state)
{
    tune_tokenizer_free(bytes);
    return test_home_end(state);
}

static struct tune_dataset *open_with(const char *name, const char *text, struct tune_dataset_options o)
{
    put(name, text);
    o.max_length = o.max_length ? o.max_length : 4096;
    o.end_token = "<|endoftext|>";
    o.model_folder = "model";
    return tune_dataset_open(name, &o, bytes);
}

static void assert_row(struct tune_dataset *d, const char *expected)
{
    assert_string_equal(marked_row(d, 0, NULL), expected);
    tune_dataset_free(d);
}

static void assert_bad(struct tune_dataset *d, int64_t row, const char *error)
{
    struct tune_example x = {0};
    assert_got(d);
    assert_int_equal(tune_dataset_get(d, row, &x), -1);
    assert_error_has(error);
    tune_example_free(&x);
}

#define USER(text) "{\"role\": \"user\", \"content\": \"" text "\"}"
#define ASSISTANT(text) "{\"role\": \"assistant\", \"content\": \"" text "\"}"
#define SYSTEM(text) "{\"role\": \"system\", \"content\": \"" text "\"}"
#define MESSAGES(...) "{\"messages\": [" __VA_ARGS__ "]}\n"
#define PAIR MESSAGES(USER("a") "," ASSISTANT("b"))
#define TURNS MESSAGES(SYSTEM("s") "," USER("a") "," ASSISTANT("b") "," USER("<|im_end|>") "," ASSISTANT("d\\n"))

#define SHAREGPT(turns) "{\"conversations\": " turns "}\n"

/* ---- templates of our own ---- */

static void own(void **state)
{
    (void)state;
    assert_row(OPEN("m.jsonl", TURNS, .chat_template = "chatml"),
               "~<|im_start|>system\ns~<|im_end|>\n~<|im_start|>user\na~<|im_end|>\n~<|im_start|>assistant\n[b~<|im_end|>]\n"
               "~<|im_start|>user\n<|im_end|>~<|im_end|>\n~<|im_start|>assistant\n[d\n~<|im_end|>]\n");
    assert_row(OPEN("m.jsonl", TURNS, .chat_template = "chatml", .train_on = "last"),
               "~<|im_start|>system\ns~<|im_end|>\n~<|im_start|>user\na~<|im_end|>\n~<|im_start|>assistant\nb~<|im_end|>\n"
               "~<|im_start|>user\n<|im_end|>~<|im_end|>\n~<|im_start|>assistant\n[d\n~<|im_end|>]\n");
    assert_row(OPEN("m.jsonl", TURNS, .chat_template = "llama3"), /* its own beginning, and no second one */
               "~<s>~<|start_header_id|>system~<|end_header_id|>\n\ns~<|eot_id|>~<|start_header_id|>user~<|end_header_id|>\n\na"
               "~<|eot_id|>~<|start_header_id|>assistant~<|end_header_id|>\n\n[b~<|eot_id|>]~<|start_header_id|>user"
               "~<|end_header_id|>\n\n<|im_end|>~<|eot_id|>~<|start_header_id|>assistant~<|end_header_id|>\n\n[d~<|eot_id|>]");
    assert_row(OPEN("m.jsonl", PAIR, .chat_template = "phi3"),
               "~<|user|>\na~<|end|>\n~<|assistant|>\n[b~<|end|>]\n");
    assert_row(OPEN("m.jsonl", PAIR, .chat_template = "plain"),
               "User: a~<|endoftext|>\nAssistant:[ b~<|endoftext|>]\n");
    assert_row(OPEN("m.jsonl", PAIR, .chat_template = "plain", .train_on = "all"),
               "U[ser: a~<|endoftext|>\nAssistant: b~<|endoftext|>\n]");
}

/* The folder's own, where none is chosen; what the other formats make of it. */
static void formats(void **state)
{
    (void)state;
    assert_row(OPEN("t.jsonl", "{\"text\": \"a\"}", NULL), "~<s>[a~<|endoftext|>]"); /* what conversations do not get */
    assert_row(OPEN("m.jsonl", PAIR, NULL), "<user>a~<|endoftext|><assistant>[b~<|endoftext|>]");
    assert_row(OPEN("s.json", "[{\"conversations\": [{\"from\": \"human\", \"value\": \"<\\u007cend|>\"}, "
                              "{\"from\": \"gpt\", \"value\": \"b\"}]}]", NULL),
               "<user><|end|>~<|endoftext|><assistant>[b~<|endoftext|>]");
    assert_row(OPEN("i.csv", "input,output\na,b\n", NULL), "<user>a~<|endoftext|><assistant>[b~<|endoftext|>]");
    static const char lists[] = "{\"prompt\": [" USER("a") "," ASSISTANT("b") "," USER("c") "], "
                                "\"completion\": [" ASSISTANT("d") "]}\n{\"prompt\": \"q\", \"completion\": \"a\"}\n"
                                "{\"prompt\": [], \"completion\": \"a\"}\n";
    static const char turns[] = "<user>a~<|endoftext|><assistant>b~<|endoftext|><user>c~<|endoftext|><assistant>[d~<|endoftext|>]";
    struct tune_dataset *d = OPEN("p.jsonl", lists, NULL);
    assert_string_equal(tune_dataset_about(d), "prompt-completion (recognised), columns prompt, completion; trained on completion; "
                                               "chat template model/tokenizer_config.json");
    assert_bad(d, 1, "p.jsonl:2: the column \"prompt\" is no list of messages in this row, as prompts are in the first one");
    assert_bad(d, 2, "p.jsonl:3: the column \"completion\" is no list of messages in this row");
    assert_row(d, turns);
    assert_row(OPEN("p.jsonl", lists, .train_on = "last"), turns);
    assert_row(OPEN("p.jsonl", lists, .train_on = "assistant"),
               "<user>a~<|endoftext|><assistant>[b~<|endoftext|>]<user>c~<|endoftext|><assistant>[d~<|endoftext|>]");
    assert_row(OPEN("c.jsonl", "{\"q\": [" USER("a") "], \"a\": [" ASSISTANT("d") "]}\n", .columns = "prompt=q,completion=a"),
               "<user>a~<|endoftext|><assistant>[d~<|endoftext|>]");
    REFUSED("p.jsonl", "{\"prompt\": \"q\", \"completion\": \"a\"}", "`train_on` last has no meaning for rows of the format "
            "prompt-completion; expected one of: completion, all", .train_on = "last");
    REFUSED("p.jsonl", "{\"prompt\": \"q\", \"completion\": \"a\"}", "`chat_template` writes conversations, and these rows",
            .chat_template = "chatml");
}

/* A column `system` is the system message of conversations that begin with none. */
static void system_column(void **state)
{
    (void)state;
    assert_row(OPEN("m.jsonl", "{\"system\": \"S\", \"messages\": [" USER("a") "," ASSISTANT("b") "]}\n", NULL),
               "<system>S~<|endoftext|><user>a~<|endoftext|><assistant>[b~<|endoftext|>]");
    assert_row(OPEN("m.jsonl", "{\"system\": \"S\", \"messages\": [" SYSTEM("own") "," USER("a") "," ASSISTANT("b") "]}\n", NULL),
               "<system>own~<|endoftext|><user>a~<|endoftext|><assistant>[b~<|endoftext|>]");
    assert_row(OPEN("s.jsonl", "{\"system\": \"<|im_end|>\", \"conversations\": [{\"from\": \"human\", \"value\": \"a\"}, {\"from\": \"gpt\", \"value\": \"b\"}]}\n",
                    NULL),
               "<system><|im_end|>~<|endoftext|><user>a~<|endoftext|><assistant>[b~<|endoftext|>]");
    assert_row(OPEN("s.jsonl", "{\"system\": \"\", \"conversations\": [{\"from\": \"human\", \"value\": \"a\"}, {\"from\": \"gpt\", \"value\": \"b\"}]}\n", NULL),
               "<user>a~<|endoftext|><assistant>[b~<|endoftext|>]");
    assert_row(OPEN("p.jsonl", "{\"system\": \"S\", \"prompt\": [" USER("a") "," ASSISTANT("b") "," USER("c") "], \"completion\": [" ASSISTANT("d") "]}\n", NULL),
               "<system>S~<|endoftext|><user>a~<|endoftext|><assistant>b~<|endoftext|><user>c~<|endoftext|><assistant>[d~<|endoftext|>]");
    assert_row(OPEN("i.jsonl", "{\"system\": \"S\", \"history\": [[\"q\", \"r\"]], \"input\": \"a\", \"output\": \"b\"}\n", NULL),
               "<system>S~<|endoftext|><user>q~<|endoftext|><assistant>[r~<|endoftext|>]<user>a~<|endoftext|><assistant>[b~<|endoftext|>]");
}

/* The columns of alpaca as a conversation: the input is on the line after the instruction. */
static void alpaca_chat(void **state)
{
    (void)state;
    static const char rows[] = "{\"instruction\": \"Add\", \"input\": \"1 2\", \"output\": \"3\"}\n"
                               "{\"instruction\": \"Say\", \"input\": \"\", \"output\": \"y\", \"system\": \"S\", \"history\": [[\"q\", \"r\"]]}\n"
                               "{\"instruction\": \"Say\"}\n";
    struct tune_dataset *d = open_with("a.jsonl", rows, (struct tune_dataset_options){.row_format = "alpaca-chat", .train_on = "default"});
    assert_string_equal(marked_row(d, 0, NULL), "<user>Add\n1 2~<|endoftext|><assistant>[3~<|endoftext|>]");
    assert_string_equal(marked_row(d, 1, NULL), "<system>S~<|endoftext|><user>q~<|endoftext|><assistant>[r~<|endoftext|>]<user>Say~<|endoftext|>"
                                                "<assistant>[y~<|endoftext|>]");
    assert_bad(d, 2, "\"output\"");
    tune_dataset_free(d);
    assert_row(open_with("a.jsonl", "{\"instruction\": \"Add\", \"input\": \"1\", \"output\": \"2\"}\n",
                         (struct tune_dataset_options){.row_format = "alpaca-chat", .train_on = "all"}),
               "<[user>Add\n1~<|endoftext|><assistant>2~<|endoftext|>]");
    assert_null(OPEN("a.jsonl", "{\"instruction\": \"Add\", \"output\": \"2\"}\n", .chat_template = "chatml"));
    assert_error_has("such as alpaca-chat");
}

/* ---- borders ---- */

/* A tokenizer that joins a space with the word behind it. */
static struct tune_tokenizer *words(void)
{
    static const char text[] = "yes yes yes yes yes yes yes yes yes yes", *const special[] = {"<|endoftext|>"};
    assert_ok(tune_tokenizer_train("words.json", text, sizeof text - 1, 260, special, 1));
    struct tune_tokenizer *tok = tune_tokenizer_open("words.json");
    assert_got(tok);
    struct tune_encoding e = {0};
    assert_ok(tune_tokenizer_encode(tok, ": yes", 5, 0, &e));
    assert_int_equal(e.count, 2); /* ":", " yes" */
    tune_encoding_free(&e);
    return tok;
}

/* A prompt ends in a space, which the tokenizer joins with the answer's first word. In conversations that token is trained, as in
 * transformers' mask of the assistant (5.0: " yes" 1, "!" 1, the end 1). After a prompt it is masked, as in TRL. */
static void borders(void **state)
{
    (void)state;
    static const char chat[] = "{% for m in messages %}{{ m.role[0] + ': ' + m.content }}{% if m.role == 'assistant' %}{{ eos_token }}{% endif %}"
                               "{% endfor %}{% if add_generation_prompt %}a: {% endif %}";
    struct tune_tokenizer *single = bytes;
    struct tune_example x = {0};
    put("space.jinja", chat);
    bytes = words();
    struct tune_dataset *d = OPEN("m.jsonl", MESSAGES(USER("q") "," ASSISTANT("yes!")) MESSAGES(USER("q") "," ASSISTANT("no")),
                                  .chat_template = "./space.jinja");
    assert_string_equal(marked_row(d, 0, NULL), "u: qa:[~ yes!~<|endoftext|>]");
    assert_ok(tune_dataset_get(d, 0, &x));
    assert_int_equal(x.joined, TUNE_JOINED_HEADER);
    assert_string_equal(x.joined_token, " yes");
    assert_ok(tune_dataset_get(d, 1, &x));
    assert_int_equal(x.joined, TUNE_JOINED_NOT);
    tune_dataset_free(d);
    d = OPEN("p.jsonl", "{\"prompt\": \"q: \", \"completion\": \"yes\"}\n{\"prompt\": \"q:\", \"completion\": \" yes\"}\n", NULL);
    assert_string_equal(marked_row(d, 0, NULL), "q:~ yes[~<|endoftext|>]");
    assert_ok(tune_dataset_get(d, 0, &x));
    assert_int_equal(x.joined, TUNE_JOINED_PROMPT);
    assert_false(x.empty_answer);
    assert_string_equal(marked_row(d, 1, NULL), "q:[~ yes~<|endoftext|>]");
    assert_ok(tune_dataset_get(d, 1, &x));
    assert_int_equal(x.joined, TUNE_JOINED_NOT);
    tune_dataset_free(d);
    tune_example_free(&x);
    tune_tokenizer_free(bytes);
    bytes = single;
}

/* The survey counts the bytes of the assistant's text that a template leaves out, without white space. */
static void left_out(void **state)
{
    (void)state;
    static const char after[] = "{% for m in messages %}{{ m.role[0] }}:{{ m.content.split('</think>')[-1].lstrip() }};{% endfor %}";
    static const struct {
        const char *row, *template;
        size_t said, lost;
    } rows[] = {
        {PAIR, "chatml", 1, 0},
        {MESSAGES(USER("a") ",{\"role\": \"assistant\", \"reasoning_content\": \"add\", \"content\": \"2 \"}"), "chatml", 4, 3},
        {MESSAGES(USER("a") ",{\"role\": \"assistant\", \"thinking\": \"add\", \"content\": \"2\"}"), "chatml", 4, 3},
        {MESSAGES(USER("a") "," ASSISTANT("<think>one more</think>\\n\\n2")), "./after.jinja", 23, 22},
        {MESSAGES(USER("a") "," ASSISTANT("<think>one more</think>\\n\\n2")), "chatml", 23, 0},
        {MESSAGES(USER("a") "," ASSISTANT("  2  ")), "./after.jinja", 1, 0},
        {MESSAGES(USER("x</think>a") "," ASSISTANT("2")), "./after.jinja", 1, 0}, /* not the assistant's */
        {MESSAGES(USER("a") ",{\"role\": \"assistant\", \"content\": \"b\", \"tool_calls\": [{\"name\": \"look\", \"arguments\": {}}]}"), "./after.jinja", 5, 4},
        {MESSAGES(USER("a") "," ASSISTANT("<think>u</think>v") "," USER("b") "," ASSISTANT("<think>w</think>x")), "./after.jinja", 34, 32},
    };
    put("after.jinja", after);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tune_example x = {0};
        struct tune_dataset *d = OPEN("m.jsonl", rows[i].row, .chat_template = rows[i].template, .train_on = i % 2 ? "all" : NULL);
        assert_got(d);
        assert_ok(tune_dataset_get(d, 0, &x));
        assert_int_equal(x.said, rows[i].said);
        assert_int_equal(x.left_out, rows[i].lost);
        tune_example_free(&x);
        tune_dataset_free(d);
    }
}

/* The arguments of a call as text and as an object: each template gets what it writes well. */
static void arguments(void **state)
{
    (void)state;
    static const char plain[] = "{% for m in messages %}{{ m.role[0] }}:{% for c in m.tool_calls %}{% set f = c.function or c %}{{ f.name }}", end[] = "{% endfor %}{{ m.content }};{% endfor %}";
    static const char *const writes[][2] = {
        {"{{ f.arguments | tojson }}", "{\"k\": [1, \"v\"]}"},
        {"{% for k, v in f.arguments.items() %}{{ k }}={{ v }}{% endfor %}", "k=[1, 'v']"},
        {"{{ '`' + f.arguments + '`' }}", "`{\"k\": [1, \"v\"]}`"},
        {"{% if f.arguments is string %}{{ f.arguments }}{% else %}{{ f.arguments | tojson }}{% endif %}", "{\"k\": [1, \"v\"]}"},
    };
    static const char *const given[] = {"\"{\\\"k\\\": [1, \\\"v\\\"]}\"", "{\"k\": [1, \"v\"]}"};
    for (size_t w = 0; w < sizeof writes / sizeof *writes; w++)
        for (int g = 0; g < 4; g++) {
            char text[1024], row[1024], expected[256];
            snprintf(text, sizeof text, "%s%s%s", plain, writes[w][0], end);
            put("calls.jinja", text);
            snprintf(row, sizeof row, "{\"messages\": [" USER("a") ",{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [%s\"name\": \"f\", \"arguments\": %s%s]}]}",
                     g < 2 ? "{" : "{\"type\": \"function\", \"function\": {", given[g % 2], g < 2 ? "}" : "}}");
            snprintf(expected, sizeof expected, "u[:a;a:f%s;]", writes[w][1]);
            assert_row(OPEN("m.jsonl", row, .chat_template = "./calls.jinja", .train_on = "all"), expected);
        }
    put("calls.jinja", "{% for m in messages %}{{ m.role[0] }}:{% for c in m.tool_calls %}{{ c.arguments | tojson }}{% endfor %}{{ m.content }};{% endfor %}");
    assert_row(OPEN("m.jsonl", MESSAGES(USER("a") ",{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{\"name\": \"f\", \"arguments\": \"{Rome\"}]}"),
                    .chat_template = "./calls.jinja", .train_on = "all"), "u[:a;a:\"{Rome\";]"); /* no JSON: as it is */
}

/* ---- as people have them ---- */

#define FROM(who, text) "{\"from\": \"" who "\", \"value\": \"" text "\"}"
#define DEVELOPER(text) "{\"role\": \"developer\", \"content\": \"" text "\"}"
#define DID(what) (1u << TUNE_ADAPTED_##what)

/* Templates: one that writes all, one that refuses turns that do not alternate, one that writes only what it knows, one that refuses
 * systems. */
static void put_templates(void)
{
    put("all.jinja", "{% for m in messages %}{{ m.role[0] + ':' + m.content + ';' }}{% endfor %}{% if add_generation_prompt %}a:{% endif %}");
    put("alternate.jinja", "{% set s = '' %}{% if messages and messages[0].role == 'system' %}{% set s = messages[0].content + '|' %}{% endif %}"
                           "{% set n = namespace(i=0) %}{% for m in messages %}{% if not (loop.first and m.role == 'system') %}"
                           "{% if m.role not in ['user', 'assistant'] or (m.role == 'user') != (n.i % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}"
                           "{{ m.role[0] + ':' + (s if n.i == 0 else '') + m.content + ';' }}{% set n.i = n.i + 1 %}{% endif %}{% endfor %}"
                           "{% if add_generation_prompt %}a:{% endif %}");
    put("known.jinja", "{% for m in messages %}{% if m.role in ['user', 'assistant'] or (m.role == 'system' and loop.first) %}"
                       "{{ m.role[0] + ':' + m.content + ';' }}{% endif %}{% endfor %}{% if add_generation_prompt %}a:{% endif %}");
    put("leads.jinja", "{% if messages[0]['role'] != 'system' %}{{ 's:general;' }}{% endif %}{% for m in messages %}{{ m.role[0] + ':' + m.content + ';' }}"
                       "{% endfor %}{% if add_generation_prompt %}a:{% endif %}");
    put("within.jinja", "{% for m in messages %}{% if loop.first and m.role != 'system' %}{{ 's:general;' }}{% endif %}{{ m.role[0] + ':' + m.content + ';' }}"
                        "{% endfor %}{% if add_generation_prompt %}a:{% endif %}");
    put("nosystem.jinja", "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
                          "{{ m.role[0] + ':' + m.content + ';' }}{% endfor %}{% if add_generation_prompt %}a:{% endif %}");
}

/* A conversation changes only where its template would refuse it or leave a part out, and each change is noted. */
static void as_people_have_them(void **state)
{
    (void)state;
    static const struct {
        const char *row, *template, *expected;
        unsigned adapted;
    } rows[] = {
        {PAIR, "alternate", "u:a;a:[b;]", 0},
        {MESSAGES(SYSTEM("s") "," USER("a") "," ASSISTANT("b")), "alternate", "u:s|a;a:[b;]", 0},
        /* turns of one speaker */
        {MESSAGES(USER("a") "," USER("b") "," ASSISTANT("c") "," ASSISTANT("d")), "all", "u:a;u:b;a:[c;]a:[d;]", DID(ORDER)},
        {MESSAGES(USER("a") "," USER("b") "," USER("") "," ASSISTANT("c") "," ASSISTANT("d")), "alternate", "u:a\n\nb\n\n;a:[c\n\nd;]", DID(TURNS)},
        {MESSAGES(USER("a") ",{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"<|im_end|>\"}, {\"type\": \"text\", \"text\": \"c\"}]}," ASSISTANT("d")),
         "alternate", "u:a\n\n<|im_end|>c;a:[d;]", DID(TURNS)},
        {SHAREGPT("[" FROM("human", "a") "," FROM("human", "b") "," FROM("gpt", "c") "]"), "alternate", "u:a\n\nb;a:[c;]", DID(TURNS)},
        /* a greeting */
        {MESSAGES(ASSISTANT("hi") "," USER("a") "," ASSISTANT("b")), "all", "a:[hi;]u:a;a:[b;]", DID(ORDER)},
        {MESSAGES(ASSISTANT("hi") "," USER("a") "," ASSISTANT("b")), "leads", "s:general;a:[hi;]u:a;a:[b;]", DID(ORDER)},
        {MESSAGES(ASSISTANT("hi") "," USER("a") "," ASSISTANT("b")), "within", "s:general;a:[hi;]u:a;a:[b;]", DID(ORDER)},
        {MESSAGES(ASSISTANT("hi") "," ASSISTANT("you") "," USER("a") "," ASSISTANT("b")), "alternate", "u:a;a:[b;]", DID(GREETING)},
        {MESSAGES(SYSTEM("s") "," ASSISTANT("hi") "," USER("a") "," ASSISTANT("b")), "alternate", "u:s|a;a:[b;]", DID(GREETING)},
        /* systems */
        {MESSAGES(USER("a") "," ASSISTANT("b") "," SYSTEM("s") "," USER("c") "," ASSISTANT("d")), "all", "u:a;a:[b;]s:s;u:c;a:[d;]", DID(ORDER)},
        {MESSAGES(USER("a") "," ASSISTANT("b") "," SYSTEM("s") "," USER("c") "," ASSISTANT("d")), "alternate", "u:a;a:[b;]u:s\n\nc;a:[d;]", DID(SYSTEM)},
        {MESSAGES(USER("a") "," ASSISTANT("b") "," SYSTEM("s") "," USER("c") "," ASSISTANT("d")), "known", "u:a;a:[b;]u:s\n\nc;a:[d;]", DID(SYSTEM)},
        {MESSAGES(USER("a") "," SYSTEM("s") "," ASSISTANT("b")), "known", "u:a\n\ns;a:[b;]", DID(SYSTEM)},
        {MESSAGES(SYSTEM("s") "," USER("a") "," ASSISTANT("b")), "known", "s:s;u:a;a:[b;]", 0},
        {MESSAGES(SYSTEM("s") "," USER("a") "," ASSISTANT("b")), "nosystem", "u:s\n\na;a:[b;]", DID(SYSTEM)},
        /* a developer */
        {MESSAGES(DEVELOPER("s") "," USER("a") "," ASSISTANT("b")), "all", "d:s;u:a;a:[b;]", DID(WRITTEN)},
        {MESSAGES(DEVELOPER("s") "," USER("a") "," ASSISTANT("b")), "known", "s:s;u:a;a:[b;]", DID(DEVELOPER)},
        {MESSAGES(DEVELOPER("s") "," USER("a") "," ASSISTANT("b")), "nosystem", "d:s;u:a;a:[b;]", DID(WRITTEN)},
        /* keys and names of roles */
        {MESSAGES(FROM("human", "a") "," FROM("gpt", "b")), "all", "u:a;a:[b;]", DID(KEYS)},
        {SHAREGPT("[" USER("a") "," ASSISTANT("b") "]"), "all", "u:a;a:[b;]", DID(KEYS)},
        {SHAREGPT("[" FROM("human", "a") ",{\"from\": \"gpt\", \"content\": \"b\"}," USER("c") ",{\"role\": \"model\", \"value\": \"d\"}]"), "all",
         "u:a;a:[b;]u:c;a:[d;]", DID(KEYS)},
        {MESSAGES("{\"role\": \"human\", \"content\": \"a\"}, {\"role\": \"bot\", \"content\": \"b\"}"), "all", "u:a;a:[b;]", DID(KEYS)},
        {MESSAGES("{\"role\": \"user\", \"content\": \"a\", \"from\": \"x\"}," ASSISTANT("b")), "all", "u:a;a:[b;]", 0},
        /* all at once */
        {SHAREGPT("[" FROM("gpt", "hi") "," FROM("human", "a") "," FROM("system", "s") "," USER("b") "," FROM("gpt", "c") "]"), "alternate",
         "u:a\n\ns\n\nb;a:[c;]", DID(GREETING) | DID(SYSTEM) | DID(TURNS) | DID(KEYS)},
    };
    put_templates();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[64];
        struct tune_example x = {0};
        snprintf(name, sizeof name, "./%s.jinja", rows[i].template);
        struct tune_dataset *d = OPEN("c.jsonl", rows[i].row, .chat_template = name);
        assert_string_equal(marked_row(d, 0, NULL), rows[i].expected);
        assert_ok(tune_dataset_get(d, 0, &x));
        assert_int_equal(x.adapted, rows[i].adapted);
        tune_example_free(&x);
        tune_dataset_free(d);
        if (rows[i].adapted & ~DID(SYSTEM))
            REFUSED("c.jsonl", rows[i].row, "c.jsonl:1:", .chat_template = name, .strict = true);
    }
}

/* What cannot be mended is a bad row; prompts and their answers stay apart. */
static void not_mended(void **state)
{
    (void)state;
    put_templates();
    static const char call[] = "{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{\"name\": \"f\"}]}";
    char row[512];
    snprintf(row, sizeof row, MESSAGES(USER("a") ",%s," ASSISTANT("b")), call);
    REFUSED("c.jsonl", row, "roles must alternate", .chat_template = "./alternate.jinja"); /* joined, the call would be lost */
    REFUSED("c.jsonl", MESSAGES(ASSISTANT("b") "," USER("a")), "c.jsonl:1: a conversation of 1 message, expected at least 2 (the greeting before the user's first is left out)",
            .chat_template = "./alternate.jinja");
    REFUSED("c.jsonl", MESSAGES("{\"role\": \"alien\", \"content\": \"a\"}"), "the role \"alien\"", NULL);
    REFUSED("c.jsonl", MESSAGES(USER("a") ",{\"role\": \"function_call\", \"content\": \"a\"}"), "the role \"function_call\"", NULL);
    REFUSED("c.jsonl", MESSAGES(FROM("human", "a") ",{\"from\": \"gpt\"}"), "a message without \"value\"", NULL);
    assert_row(OPEN("p.jsonl", "{\"prompt\": [" USER("a") "," ASSISTANT("b") "], \"completion\": [" ASSISTANT("c") "]}\n", .chat_template = "./all.jinja"),
               "u:a;a:b;a:[c;]");
    REFUSED("p.jsonl", "{\"prompt\": [" USER("a") "," ASSISTANT("b") "], \"completion\": [" ASSISTANT("c") "]}\n", "roles must alternate",
            .chat_template = "./alternate.jinja");
    assert_row(OPEN("p.jsonl", "{\"prompt\": [" ASSISTANT("hi") "," USER("a") "," USER("b") "], \"completion\": [" ASSISTANT("c") "," ASSISTANT("d") "]}\n",
                    .chat_template = "./alternate.jinja"), "u:a\n\nb;a:[c\n\nd;]");
    assert_row(OPEN("g.jsonl", MESSAGES(ASSISTANT("hi") "," USER("a") "," USER("b")), .chat_template = "./alternate.jinja", .prompts = true),
               "u:a\n\nb;a:");
}

/* ---- shown ---- */

static void shown(void **state)
{
    (void)state;
    char *text;
    size_t size;
    struct tune_dataset *d = OPEN("m.jsonl", MESSAGES(USER("<s>\\n") "," ASSISTANT("b")), .max_length = 23);
    FILE *f = open_memstream(&text, &size);
    assert_got(d);
    assert_ok(tune_dataset_show(d, bytes, 1, f));
    fclose(f);
    assert_non_null(strstr(text, "row 0, m.jsonl:1: 23 tokens, 1 trained, cut from 24\n"
                                 "    loss  by        piece\n"
                                 "  masked  template  \"<user>\"\n"
                                 "  masked  row       \"<s>\\n\"\n"
                                 "  masked  template  \"<|endoftext|><assistant>\"\n"
                                 " trained  row       \"b\"\n"
                                 " trained  template  \"<|endoftext|>\"\n"
                                 "position       id  loss     token\n"));
    assert_non_null(strstr(text, "cut here: the model does not see the row's other 1 tokens"));
    assert_int_equal(tune_dataset_counts(d).rows, 1); /* read once more for its pieces, and not counted for it */
    free(text);
    tune_dataset_free(d);
}

/* ---- refused ---- */

static void refused(void **state)
{
    (void)state;
    static const char two[] = PAIR MESSAGES(USER("bad") "," ASSISTANT("b"))
        MESSAGES(USER("c") "," ASSISTANT("d"));
    put("raise.jinja", "{% for m in messages %}{% if m.content == 'bad' %}{{ raise_exception('no bad words') }}{% endif %}"
                       "{{ m.role + ':' + m.content + ';' }}{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}");
    struct tune_dataset *d = OPEN("r.jsonl", two, .chat_template = "raise.jinja");
    assert_bad(d, 1, "r.jsonl:2: ");
    assert_bad(d, 1, "no bad words");
    assert_row(d, "user:a;assistant:[b;]");
    d = OPEN("r.jsonl", two, .chat_template = "raise.jinja", .skip_bad_rows = true);
    struct tune_example x = {0};
    assert_got(d);
    assert_ok(tune_dataset_get(d, 1, &x));
    assert_true(x.bad && x.count == 0);
    assert_ok(tune_dataset_get(d, 2, &x));
    assert_true(!x.bad && x.count > 0);
    assert_int_equal(tune_dataset_counts(d).bad, 1);
    tune_example_free(&x);
    tune_dataset_free(d);
    put("turned.jinja", "{{ messages[-1].content + ' to ' + messages[0].content }}");
    REFUSED("r.jsonl", two, "r.jsonl:1: message 2: what the assistant wrote cannot be told", .chat_template = "turned.jinja");
    assert_row(OPEN("r.jsonl", two, .chat_template = "turned.jinja", .train_on = "all"), "b[ to a]");
    put("broken.jinja", "{% for m in messages %}");
    REFUSED("r.jsonl", two, "broken.jinja", .chat_template = "broken.jinja");
    REFUSED("r.jsonl", two, "did you mean chatml?", .chat_template = "chatm");
    REFUSED("r.jsonl", "{\"text\": \"x\"}", "`chat_template` writes conversations", .chat_template = "chatml");
    REFUSED("r.jsonl", PAIR, "not one of the first 1 rows has a token to train on", .max_length = 4);
    REFUSED("r.jsonl", "{\"messages\": [" USER("a") "," ASSISTANT("b") "], \"tools\": \"[} \"}",
            "the column \"tools\" is no list of tools", NULL);
    REFUSED("s.jsonl", SHAREGPT("[{\"from\": \"human\", \"value\": \"a\"}, {\"from\": \"function_call\", \"value\": \"f(1)\"}]"),
            "the value of a function_call is JSON: ", .chat_template = "chatml");
    REFUSED("s.jsonl", SHAREGPT("[{\"from\": \"human\", \"value\": \"a\"}, {\"from\": \"function_call\", \"value\": \"{}\"}]"),
            "a function call without \"name\"", .chat_template = "chatml");
#define CALLS(member) MESSAGES(USER("a") ",{\"role\": \"assistant\", \"content\": \"b\", " member "}")
    REFUSED("c.jsonl", CALLS("\"tool_calls\": \"[]\""), "\"tool_calls\" that is no list", .chat_template = "chatml");
    REFUSED("c.jsonl", CALLS("\"tool_calls\": [{\"id\": \"1\"}]"), "a function call without \"name\"", .chat_template = "chatml");
    REFUSED("c.jsonl", CALLS("\"function_call\": {\"name\": \"f\"}"), "expected a list \"tool_calls\"", .chat_template = "chatml");
    REFUSED("c.jsonl", MESSAGES(USER("a") ",{\"role\": \"assistant\", \"content\": null, \"tool_calls\": []}"),
            "a message without \"content\"", .chat_template = "chatml");
    d = OPEN("c.jsonl", CALLS("\"tool_calls\": null, \"function_call\": null"), .chat_template = "chatml");
    assert_got(d);
    tune_dataset_free(d);
}

/* A template that does not fit the tokenizer, or that ends no turn, is said when the set is opened, and where it is shown. */
static void warned(void **state)
{
    (void)state;
    static const char spelt[] = "{% for m in messages %}"
                                "{{ '<|turn|>' + m.role + '</s>' + m.content + '<|im_end|><|turn|><|a b|>' }}{% endfor %}"
                                "{% if add_generation_prompt %}<|turn|>assistant</s>{% endif %}";
    char *text;
    size_t size;
    put("spelt.jinja", spelt);
    struct tune_dataset *d = OPEN("w.jsonl", MESSAGES(USER("a") "," ASSISTANT("b")) MESSAGES(USER("<|mine|>") "," ASSISTANT("b")),
                                  .chat_template = "spelt.jinja");
    assert_got(d);
    assert_string_equal(tune_dataset_warning(d), "<|turn|>, </s>: special tokens to the template, but none to this tokenizer, "
                                                 "which cuts them into pieces; take a template that the model was trained with");
    FILE *f = open_memstream(&text, &size);
    assert_ok(tune_dataset_show(d, bytes, 1, f));
    fclose(f);
    assert_non_null(strstr(text, "\nwarning: <|turn|>, </s>: special tokens to the template"));
    free(text);
    tune_dataset_free(d);
    put("cursor.jinja", "{% for m in messages %}<|\x1b[2J|>{{ m.role + ':' + m.content + '.' }}{% endfor %}"
                        "{% if add_generation_prompt %}<|\x1b[2J|>assistant:{% endif %}");
    d = OPEN("w.jsonl", PAIR, .chat_template = "cursor.jinja");
    assert_got(d);
    f = open_memstream(&text, &size);
    assert_ok(tune_dataset_show(d, bytes, 1, f));
    fclose(f);
    assert_non_null(strstr(text, "\nwarning: <|\\x1b[2J|>: special tokens"));
    assert_null(strchr(text, '\x1b'));
    free(text);
    tune_dataset_free(d);
    put("endless.jinja", "{% for m in messages %}{{ m.role + ':' + m.content }}{% endfor %}"
                         "{% if add_generation_prompt %}assistant:{% endif %}");
    d = OPEN("w.jsonl", PAIR, .chat_template = "endless.jinja");
    assert_got(d);
    assert_non_null(strstr(tune_dataset_warning(d), "cannot learn to stop; `append_token` TOKEN"));
    tune_dataset_free(d);
    d = OPEN("w.jsonl", PAIR, .chat_template = "endless.jinja", .append_token = "<|end|>");
    assert_got(d);
    assert_null(tune_dataset_warning(d));
    assert_row(d, "user:aassistant:[b~<|end|>]");
    static const char *const ours[] = {"chatml", "llama3", "phi3", "plain"};
    for (int i = 0; i < 4; i++) {
        d = OPEN("w.jsonl", PAIR, .chat_template = ours[i]);
        assert_got(d);
        assert_null(tune_dataset_warning(d));
        tune_dataset_free(d);
    }
    d = OPEN("w.jsonl", "{\"prompt\": \"<|mine|>\", \"completion\": \"b\"}", NULL);
    assert_got(d);
    assert_null(tune_dataset_warning(d));
    tune_dataset_free(d);
}

/* What reading the longest row takes is told, where it is much. */
static void long_rows(void **state)
{
    (void)state;
    static char row[100200];
    size_t head = (size_t)snprintf(row, sizeof row, "{\"prompt\": \"q\", \"completion\": \"");
    memset(row + head, 'a', 100000);
    snprintf(row + head + 100000, sizeof row - head - 100000, "\"}\n{\"prompt\": \"q\", \"completion\": \"a\"}\n");
    struct tune_dataset *d = OPEN("l.jsonl", row, NULL);
    assert_got(d);
    int64_t bytes = tune_dataset_row_bytes(d);
    assert_true(bytes == 16 * (int64_t)(strchr(row, '\n') - row));
    tune_dataset_free(d);
    d = OPEN("l.jsonl", PAIR, NULL);
    assert_got(d);
    assert_true(tune_dataset_row_bytes(d) == 0);
    tune_dataset_free(d);
}

/* The rules of conversations, each broken once in a row by itself. */
static void rules(void **state)
{
    (void)state;
    static const struct {
        const char *row, *error;
    } broken[] = {
        {MESSAGES(USER("a") "," SYSTEM("s") "," ASSISTANT("b")), "c.jsonl:2: message 2 (system): a system message stands only at"},
        {MESSAGES(USER("a") "," USER("b") "," ASSISTANT("c")), "c.jsonl:2: message 2 (user): two user messages in a row"},
        {MESSAGES(ASSISTANT("a") "," USER("b")), "c.jsonl:2: message 1 (assistant): an assistant's message follows"},
        {MESSAGES(USER("a") "," ASSISTANT("b") "," ASSISTANT("c")), "c.jsonl:2: message 3 (assistant): an assistant's message"},
        {MESSAGES(USER("a")), "c.jsonl:2: a conversation of 1 message, expected at least 2"},
        {MESSAGES(""), "c.jsonl:2: a conversation of 0 messages"},
        {MESSAGES(SYSTEM("s") "," USER("a")), "c.jsonl:2: no message of the assistant"},
        {MESSAGES(USER("a") ",{\"role\": \"bot\", \"content\": \"b\"}"), "c.jsonl:2:"},
        {MESSAGES(USER("a") ",{\"role\": \"assistant\"}"), "a message without \"content\""},
        {MESSAGES(USER("a") ",{\"content\": \"b\"}"), "a message without \"role\""},
    };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        char text[1024];
        snprintf(text, sizeof text, "%s%s", PAIR, broken[i].row);
        struct tune_dataset *d = OPEN("c.jsonl", text, .strict = true);
        assert_bad(d, 1, broken[i].error);
        tune_dataset_free(d);
        REFUSED("c.jsonl", strchr(text, '\n') + 1, "c.jsonl:1:", .strict = true); /* as the first row: before anything starts */
    }
}

/* Templates of the same words are the same; one word, or a token that one names, and they are not. */
static uint64_t hash_of(const char *template)
{
    struct tune_dataset *d = OPEN("h.jsonl", PAIR, .chat_template = template);
    assert_got(d);
    uint64_t hash = tune_dataset_chat_hash(d);
    assert_true(hash != 0 && tune_dataset_prompt_hash(d) == 0);
    assert_true(tune_dataset_hash(d) != tune_dataset_fingerprint(d));
    tune_dataset_free(d);
    return hash;
}

static void hashes(void **state)
{
    (void)state;
    static const char text[] = "{% for m in messages %}{{ m.role + m.content + eos_token }}{% endfor %}"
                               "{% if add_generation_prompt %}assistant{% endif %}";
    put("one.jinja", text);
    put("two.jinja", text);
    uint64_t chatml = hash_of("chatml"), one = hash_of("one.jinja");
    assert_true(one == hash_of("two.jinja") && one != chatml);
    char *config;
    size_t size;
    assert_ok(tune_file_read("model/tokenizer_config.json", 1 << 20, &config, &size));
    put("model/tokenizer_config.json", "{\"bos_token\": \"<s>\", \"eos_token\": \"<|end|>\"}");
    assert_true(one != hash_of("two.jinja")); /* names eos_token */
    assert_true(chatml == hash_of("chatml"));
    test_write("model", "tokenizer_config.json", config, size);
    free(config);
    struct tune_dataset *d = OPEN("h.jsonl", "{\"text\": \"t\"}", NULL);
    assert_got(d);
    assert_true(tune_dataset_chat_hash(d) == 0 && tune_dataset_hash(d) == tune_dataset_fingerprint(d));
    tune_dataset_free(d);
    put("day.jinja", "{% for m in messages %}{{ m.role + m.content }}{% endfor %}{{ strftime_now('%d %b %Y') }}");
    assert_row(OPEN("h.jsonl", PAIR, .chat_template = "day.jinja", .train_on = "all"),
               "u[seraassistantb26 Jul 2024]");
}

/* ---- real templates ---- */

static const char *real(const char *name)
{
    static char path[PATH_MAX + 256];
    snprintf(path, sizeof path, "%s/chat-templates/%s.jinja", shared, name);
    if (!tune_file_exists(path))
        skip();
    return path;
}

static void real_templates(void **state)
{
    (void)state;
    if (!*shared)
        skip();
    static const char chatml[] = "~<|im_start|>system\ns~<|im_end|>\n~<|im_start|>user\na~<|im_end|>\n"
                                 "~<|im_start|>assistant\n[b~<|im_end|>]\n~<|im_start|>user\n<|im_end|>~<|im_end|>\n"
                                 "~<|im_start|>assistant\n[d\n~<|im_end|>]\n";
    assert_row(OPEN("m.jsonl", TURNS, .chat_template = real("chatml")), chatml);
    assert_row(OPEN("m.jsonl", TURNS, .chat_template = real("SmolLM2-Instruct")), chatml);
    assert_row(OPEN("m.jsonl", TURNS, .chat_template = real("Qwen-Qwen2.5-7B-Instruct")), chatml);
    assert_row(OPEN("m.jsonl", PAIR, .chat_template = real("SmolLM2-Instruct")),
               "~<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face~<|im_end|>\n"
               "~<|im_start|>user\na~<|im_end|>\n~<|im_start|>assistant\n[b~<|im_end|>]\n");
    assert_row(OPEN("m.jsonl", TURNS, .chat_template = real("microsoft-Phi-3.5-mini-instruct")),
               "~<|system|>\ns~<|end|>\n~<|user|>\na~<|end|>\n~<|assistant|>\n[b~<|end|>]\n~<|user|>\n<|im_end|>~<|end|>\n"
               "~<|assistant|>\n[d\n~<|end|>]\n~<|endoftext|>"); /* no message wrote the last one */
}

/* Calls of tools are what the assistant wrote, what tools answer is not. */
static void tools(void **state)
{
    (void)state;
    if (!*shared)
        skip();
    static const char row[] =
        "{\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\"}}], \"messages\": [" USER("a") ",{\"role\": "
        "\"assistant\", \"content\": null, "
        "\"tool_calls\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", "
        "\"arguments\": {\"x\": 1}}}]}, {\"role\": \"tool\", \"content\": \"2\"}," ASSISTANT("b") "]}\n";
    struct tune_dataset *d = OPEN("t.jsonl", row, .chat_template = real("Qwen-Qwen2.5-7B-Instruct"));
    const char *text = marked_row(d, 0, NULL), *user = strstr(text, "~<|im_start|>user\n");
    assert_non_null(strstr(text, "\n<tools>\n{\"type\": \"function\", \"function\": {\"name\": \"f\"}}\n</tools>"));
    assert_non_null(user);
    assert_string_equal(user, "~<|im_start|>user\na~<|im_end|>\n~<|im_start|>assistant\n[<tool_call>\n"
                        "{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>~<|im_end|>]\n"
                        "~<|im_start|>user\n<tool_response>\n2\n</tool_response>~<|im_end|>\n"
                        "~<|im_start|>assistant\n[b~<|im_end|>]\n");
    tune_dataset_free(d);
}

/* What a checkpoint needs to know: the chosen template, and the token that ends answers. */
static void ends(void **state)
{
    (void)state;
    static const struct {
        const char *chosen, *append, *end;
    } cases[] = {{"chatml", NULL, "<|im_end|>"}, {"phi3", NULL, "<|end|>"}, {"llama3", NULL, "<|eot_id|>"}, {NULL, NULL, "<|endoftext|>"},
                 {"plain.jinja", NULL, NULL}, {"plain.jinja", "<|end|>", "<|end|>"}};
    put("plain.jinja", "{% for m in messages %}{{ m.role + ':' + m.content + ';' }}{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tune_dataset *d = OPEN("e.jsonl", PAIR, .chat_template = cases[i].chosen, .append_token = cases[i].append);
        assert_got(d);
        assert_int_equal(tune_dataset_end_id(d), cases[i].end ? tune_tokenizer_id(bytes, cases[i].end) : -1);
        assert_int_equal(tune_dataset_chat_template(d) != NULL, cases[i].chosen != NULL);
        assert_int_equal(tune_dataset_counts(d).rows, 0);
        tune_dataset_free(d);
    }
    struct tune_dataset *d = OPEN("e.jsonl", MESSAGES(USER("a") "," ASSISTANT("cut")) PAIR, .chat_template = "chatml", .train_on = "all");
    assert_int_equal(tune_dataset_end_id(d), tune_tokenizer_id(bytes, "<|im_end|>")); /* a line end follows it */
    tune_dataset_free(d);
    d = OPEN("e.jsonl", "{\"text\": \"a\"}", NULL);
    assert_int_equal(tune_dataset_end_id(d), tune_tokenizer_id(bytes, "<|endoftext|>"));
    assert_null(tune_dataset_chat_template(d));
    tune_dataset_free(d);
}

/* generation_config.json and the template, as a checkpoint writes them. */
static void saved(void **state)
{
    (void)state;
    static const struct {
        const char *config, *generation, *ids;
    } cases[] = {{"{\"eos_token_id\": 0, \"bos_token_id\": 1}", NULL, "[7,0]"},
                 {"{}", NULL, "[7]"},
                 {"{}", "{\"eos_token_id\": 3, \"temperature\": 0.5}", "[7,3]"},
                 {"{}", "{\"eos_token_id\": [3, 4]}", "[7,3,4]"},
                 {"{}", "{\"eos_token_id\": null}", "[7]"}};
    assert_ok(tune_file_make_folder("from"));
    assert_ok(tune_file_make_folder("to"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put("from/config.json", cases[i].config);
        cases[i].generation ? put("from/generation_config.json", cases[i].generation) : (void)0;
        struct tune_auxiliary *c = tune_auxiliary_read("from");
        assert_got(c);
        assert_ok(tune_auxiliary_chat(c, "{{ 1 }}", 7));
        assert_ok(tune_auxiliary_chat(c, NULL, 7)); /* it is there already */
        put("from/tokenizer_config.json", i < 2 ? "{\"eos_token\": {\"content\": \"<e>\"}}" : "{\"eos_token\": null, \"a\": 1}");
        if (i == 3)
            assert_ok(remove("from/tokenizer_config.json"));
        tune_auxiliary_free(c);
        assert_got(c = tune_auxiliary_read("from"));
        assert_ok(tune_auxiliary_chat(c, "{{ 1 }}", 7));
        assert_ok(tune_auxiliary_eos_token(c, NULL));
        assert_ok(tune_auxiliary_eos_token(c, "<end>"));
        assert_ok(tune_auxiliary_write_tokenizer(c, "to"));
        tune_auxiliary_free(c);
        cJSON *json = tune_cjson_read_in("to", "tokenizer_config.json", 1000);
        char *tokens = cJSON_PrintUnformatted(json);
        assert_string_equal(tokens, i < 2    ? "{\"eos_token\":{\"content\":\"<e>\"}}"
                                    : i == 3 ? "{\"eos_token\":\"<end>\"}"
                                             : "{\"a\":1,\"eos_token\":\"<end>\"}");
        free(tokens);
        cJSON_Delete(json);
        json = tune_cjson_read_in("to", "generation_config.json", 1000);
        assert_got(json);
        char *ids = cJSON_PrintUnformatted(cJSON_GetObjectItemCaseSensitive(json, "eos_token_id"));
        assert_string_equal(ids, cases[i].ids);
        assert_true(i != 0 || cJSON_GetObjectItemCaseSensitive(json, "bos_token_id")->valuedouble == 1);
        assert_true(i != 2 || cJSON_GetObjectItemCaseSensitive(json, "temperature")->valuedouble == .5);
        free(ids);
        cJSON_Delete(json);
    }
    put("from/generation_config.json", "{ \"eos_token_id\": [7] }");
    struct tune_auxiliary *same = tune_auxiliary_read("from");
    assert_ok(tune_auxiliary_chat(same, NULL, 7));
    assert_ok(remove("to/generation_config.json"));
    assert_ok(tune_auxiliary_write_tokenizer(same, "to")); /* nothing to change: an adapter's folder has none */
    assert_true(!tune_file_exists("to/generation_config.json"));
    tune_auxiliary_free(same);
    put("from/generation_config.json", "[]");
    struct tune_auxiliary *c = tune_auxiliary_read("from");
    assert_int_equal(tune_auxiliary_chat(c, NULL, 7), -1);
    assert_error_has("from/generation_config.json: expected an object");
    assert_ok(tune_auxiliary_take_chat(c, "to"));
    assert_ok(tune_auxiliary_write(c, "to", TUNE_AS_READ));
    tune_auxiliary_free(c);
    char *text;
    size_t size;
    assert_ok(tune_file_read("to/chat_template.jinja", 100, &text, &size));
    assert_string_equal(text, "{{ 1 }}");
    free(text);
}

/* The forms in which public sets have calls of tools. */
static void forms_of_tools(void **state)
{
    (void)state;
    static const char call[] = "{\\\"name\\\": \\\"f\\\", \\\"arguments\\\": {\\\"x\\\": 1}}";
    char row[1024], expected[1024];
    static const char system[] = "~<|im_start|>system\nFunctions, one a line. Call one as <tool_call>{\"name\": ..., \"arguments\": ...}"
                                 "</tool_call>.\n{\"name\": \"f\"}~<|im_end|>\n~<|im_start|>user\na~<|im_end|>\n";
    static const char called[] = "<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": 1}}</tool_call>";
    for (int two = 0; two < 2; two++) {
        snprintf(row, sizeof row, SHAREGPT("[{\"from\": \"human\", \"value\": \"a\"}, {\"from\": \"function_call\", \"value\": \"%s%s%s%s%s\"},"
                                           "{\"from\": \"observation\", \"value\": \"2\"}, {\"from\": \"gpt\", \"value\": \"b\"}], "
                                           "\"tools\": \"[{\\\"name\\\": \\\"f\\\"}]\""),
                 two ? "[" : "", call, two ? ", " : "", two ? call : "", two ? "]" : "");
        snprintf(expected, sizeof expected, "%s~<|im_start|>assistant\n[%s%s%s~<|im_end|>]\n~<|im_start|>tool\n2~<|im_end|>\n"
                 "~<|im_start|>assistant\n[b~<|im_end|>]\n", system, called, two ? "\n" : "", two ? called : "");
        assert_row(OPEN("f.jsonl", row, .chat_template = "chatml"), expected);
    }
    /* OpenAI: content null beside tool_calls, arguments as a string, content as a list, weight 0 */
    assert_row(OPEN("o.jsonl", MESSAGES(USER("a") ",{\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"id\": \"1\", \"type\": "
                                        "\"function\", \"function\": {\"name\": \"f\", \"arguments\": \"{}\"}}]},"
                                        "{\"role\": \"tool\", \"tool_call_id\": \"1\", \"content\": \"2\"},"
                                        "{\"role\": \"assistant\", \"content\": [{\"type\": \"text\", \"text\": \"b\"}]}"),
                    .chat_template = "chatml"),
               "~<|im_start|>user\na~<|im_end|>\n~<|im_start|>assistant\n[<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>"
               "~<|im_end|>]\n~<|im_start|>tool\n2~<|im_end|>\n~<|im_start|>assistant\n[b~<|im_end|>]\n");
    static const char listed[] = MESSAGES(USER("a") ",{\"role\": \"assistant\", \"content\": [{\"type\": \"text\", \"text\": \"b\"}]}");
    assert_row(OPEN("l.jsonl", listed, .chat_template = "llama3"),
               "~<s>~<|start_header_id|>user~<|end_header_id|>\n\na~<|eot_id|>~<|start_header_id|>assistant~<|end_header_id|>\n\n[b~<|eot_id|>]");
    assert_row(OPEN("l.jsonl", listed, .chat_template = "phi3"), "~<|user|>\na~<|end|>\n~<|assistant|>\n[b~<|end|>]\n");
    assert_row(OPEN("l.jsonl", listed, .chat_template = "plain"), "User: a~<|endoftext|>\nAssistant:[ b~<|endoftext|>]\n");
    static const char called_by[] = "{\"tools\": [{\"name\": \"f\"}], \"messages\": [" USER("a") ",{\"role\": \"assistant\", \"content\": null, "
                                    "\"tool_calls\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": {}}}]}]}";
    assert_row(OPEN("t.jsonl", called_by, .chat_template = "plain"),
               "Functions:\n{\"name\": \"f\"}~<|endoftext|>\nUser: a~<|endoftext|>\nAssistant:[ Call: {\"name\": \"f\", \"arguments\": {}}"
               "~<|endoftext|>]\n");
    REFUSED("t.jsonl", called_by, "the template llama3 writes no tool calls; chatml and plain do", .chat_template = "llama3");
    REFUSED("t.jsonl", called_by, "the template phi3 writes no tool calls; chatml and plain do", .chat_template = "phi3");
    static const char weights[] = MESSAGES(USER("a") ",{\"role\": \"assistant\", \"content\": \"no\", \"weight\": 0}," USER("c") ","
                                           "{\"role\": \"assistant\", \"content\": \"b\", \"weight\": 1}");
    assert_row(OPEN("w.jsonl", weights, .chat_template = "chatml"),
               "~<|im_start|>user\na~<|im_end|>\n~<|im_start|>assistant\nno~<|im_end|>\n~<|im_start|>user\nc~<|im_end|>\n"
               "~<|im_start|>assistant\n[b~<|im_end|>]\n");
}

/* More texts than the row has bytes, as where a column is read twice. */
static void kept_twice(void **state)
{
    (void)state;
    struct tune_conversation c = {0};
    assert_ok(tune_conversation_begin(&c, 8));
    for (int i = 0; i < 40; i++) {
        char text[16];
        snprintf(text, sizeof text, "text %d", i);
        assert_ok(tune_conversation_add_copy(&c, "user", (struct tune_text){text, strlen(text)}));
    }
    for (int i = 0; i < 40; i++) {
        char text[16];
        snprintf(text, sizeof text, "text %d", i);
        assert_string_equal(c.items[i].content.data, text);
    }
    tune_conversation_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(own), cmocka_unit_test(kept_twice),    cmocka_unit_test(formats), cmocka_unit_test(system_column), cmocka_unit_test(alpaca_chat),
                                       cmocka_unit_test(borders), cmocka_unit_test(left_out), cmocka_unit_test(arguments),
                                       cmocka_unit_test(as_people_have_them), cmocka_unit_test(not_mended),   cmocka_unit_test(shown),
                                       cmocka_unit_test(refused), cmocka_unit_test(hashes),    cmocka_unit_test(warned),
                                       cmocka_unit_test(rules),   cmocka_unit_test(long_rows), cmocka_unit_test(real_templates),
                                       cmocka_unit_test(tools),  cmocka_unit_test(forms_of_tools),
                                       cmocka_unit_test(ends), cmocka_unit_test(saved)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
