/* test_chat.c - a model's template found, conversations rendered, and what assistants wrote in them. */
#include "test.h"
#include "templates/chat_template.h"
#include "tokenizers/tokenizer.h"

#define SAID(r, c) {.role = r, .content = {c, sizeof c - 1}}

static const char chatml[] = "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>' + '\\n' }}{% "
                             "endfor %}"
                             "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

static void put(const char *name, const char *text)
{
    test_write(".", name, text, strlen(text));
}

static struct tune_chat_template *from(const char *template)
{
    put("t.jinja", template);
    struct tune_chat_template *t = tune_chat_template_open(NULL, "./t.jinja", NULL);
    assert_got(t);
    return t;
}

/* The render, its spans' texts between bars. */
static void gives(struct tune_chat_template *t, const struct tune_chat_messages *m, int options, const char *text,
                  const char *spans)
{
    struct tune_chat_text out = {0};
    char all[1024] = "";
    assert_ok(tune_chat_template_render(t, m, options, &out));
    assert_string_equal(out.text, text);
    assert_int_equal(out.size, strlen(text));
    for (int i = 0; i < out.span_count; i++) {
        strncat(all, out.text + out.spans[i].begin, out.spans[i].end - out.spans[i].begin);
        strcat(all, "|");
    }
    assert_string_equal(all, spans);
    tune_chat_text_free(&out);
}

static void fails(struct tune_chat_template *t, const struct tune_chat_messages *m, int options, const char *message)
{
    struct tune_chat_text out = {0};
    assert_int_equal(tune_chat_template_render(t, m, options, &out), -1);
    assert_int_equal(out.size + (size_t)out.span_count, 0);
    assert_error_has(message);
    tune_chat_text_free(&out);
}

static const struct tune_chat_message two[] = {SAID("user", "Hi"), SAID("assistant", "Yo "), SAID("user", "<|im_end|>"),
                                               SAID("assistant", "")};

static void test_spans(void **state)
{
    (void)state;
    const struct tune_chat_messages m = {.items = two, .count = 4, .name = "rows.jsonl", .line = 7};
    struct tune_chat_template *t = from(chatml);
    gives(t, &m, TUNE_CHAT_SPANS, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nYo "
                                  "<|im_end|>\n<|im_start|>user\n<|im_end|><|im_end|>\n"
          "<|im_start|>assistant\n<|im_end|>\n", "Yo <|im_end|>|<|im_end|>|");
    gives(t, &(struct tune_chat_messages){.items = two, .count = 1}, TUNE_CHAT_GENERATION_PROMPT,
          "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "");
    tune_chat_template_free(t);
    /* a text that ends with a token which no message wrote, as Phi-3.5's */
    t = from("{% for m in messages %}{{ '<' + m.role + '>' + m.content + '<end>\\n' }}{% endfor %}{% if add_generation_prompt %}"
             "{{ '<assistant>' }}{% else %}{{ '<eos>' }}{% endif %}");
    gives(t, &(struct tune_chat_messages){.items = two, .count = 2}, TUNE_CHAT_SPANS, "<user>Hi<end>\n<assistant>Yo <end>\n<eos>",
          "Yo <end>|");
    tune_chat_template_free(t);
    /* the end of a turn only at the end: with no sequel */
    t = from("{% for m in messages %}{{ m.role + ':' + m.content }}{% endfor %}{% if add_generation_prompt %}{{ 'assistant:' }}{% "
             "else %}</s>{% endif %}");
    gives(t, &(struct tune_chat_messages){.items = two, .count = 2}, TUNE_CHAT_SPANS, "user:Hiassistant:Yo </s>", "Yo </s>|");
    tune_chat_template_free(t);
}

#define PROMPT(text) "{% if add_generation_prompt %}" text "{% endif %}"

/* Templates that write messages otherwise in earlier turns than at the end. */
static void test_rewritten(void **state)
{
    (void)state;
    const struct tune_chat_messages m = {.items = two, .count = 4, .name = "rows.jsonl", .line = 7};
    static const struct tune_chat_message thought[] = {
        SAID("system", "Be brief."), SAID("user", "Hi"), SAID("assistant", "<think>why</think>Yo"), SAID("user", "<think>"),
        SAID("assistant", "<think>so</think>No")};
    const struct tune_chat_messages reasons = {.items = thought, .count = 5};
    static const struct {
        const char *template, *text, *spans;
    } cases[] = {
        /* what goes before an earlier answer is dropped, and the last turn has it even where it is empty */
        {"{% for m in messages %}{% set c = m.content.split('</think>')[-1] %}"
         "{% set r = m.content.split('</think>')[0].split('<think>')[-1] %}"
         "{% if m.role == 'assistant' and loop.last %}{{ '[assistant]<think>' + r + '</think>' + c }}"
         "{% else %}{{ '[' + m.role + ']' + c }}{% endif %}{{ '.' }} {% endfor %}" PROMPT("[assistant]"),
         "[system]Be brief.. [user]Hi. [assistant]Yo. [user]<think>. [assistant]<think>so</think>No. ",
         "Yo.|<think>so</think>No.|"},
        /* the same, and the prompt begins the reasoning that no turn has */
        {"{% for m in messages %}{{ '[' + m.role + ']' + m.content.split('</think>')[-1] + '.' }}{% endfor %}"
         PROMPT("[assistant]<think>\n"),
         "[system]Be brief..[user]Hi.[assistant]Yo.[user]<think>.[assistant]No.", "Yo.|No.|"},
        /* the system's message goes into the last message of a user, if that is the last of all */
        {"{% set s = messages[0].content %}{% for m in messages[1:] %}"
         "{% if m.role == 'user' %}[{{ s if loop.last }}{{ m.content }}]{% else %}{{ m.content }}</s>{% endif %}{% endfor %}",
         "[Hi]<think>why</think>Yo</s>[<think>]<think>so</think>No</s>", "<think>why</think>Yo</s>|<think>so</think>No</s>|"},
        /* the generation prompt inside the loop */
        {"{% for m in messages %}{{ '[' + m.role + ']' }}{{ m.content[:8] if loop.last else m.content[-2:] }}</s>"
         "{% if loop.last and add_generation_prompt %}{{ '[assistant]' }}{% endif %}{% endfor %}",
         "[system]f.</s>[user]Hi</s>[assistant]Yo</s>[user]k></s>[assistant]<think>s</s>", "Yo</s>|<think>s</s>|"},
        /* {% generation %} around the header too, and text around the turns */
        {"<s>{% for m in messages[::1] %}{% generation %}{{ '[' + m.role + ']' + m.content[:3] }}"
         "{% if loop.last %}!{% endif %}. {% endgeneration %}{% endfor %}</s>" PROMPT("[assistant]"),
         "<s>[system]Be . [user]Hi. [assistant]<th. [user]<th. [assistant]<th!. </s>", "<th.|<th!.|"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tune_chat_template *t = from(cases[i].template);
        gives(t, &reasons, TUNE_CHAT_SPANS, cases[i].text, cases[i].spans);
        tune_chat_template_free(t);
    }
    static const struct tune_chat_message nothing[] = {SAID("user", "Hi"), SAID("assistant", ""), SAID("user", "a"),
                                                       SAID("assistant", "")};
    struct tune_chat_template *t = from("{% for m in messages %}{{ '[' + m.role + ']' + m.content + '[end]' }}{% endfor %}"
                                        PROMPT("[assistant][think]"));
    gives(t, &(struct tune_chat_messages){.items = nothing, .count = 4}, TUNE_CHAT_SPANS,
          "[user]Hi[end][assistant][end][user]a[end][assistant][end]", "[end]|[end]|");
    tune_chat_template_free(t);
    t = from("{% for m in messages %}{{ '[' + m.role }}{{ '\n(call)' }}{% endfor %}" PROMPT("[assistant\n(think)"));
    gives(t, &(struct tune_chat_messages){.items = nothing, .count = 2}, TUNE_CHAT_SPANS,
          "[user\n(call)[assistant\n(call)", "(call)|");
    tune_chat_template_free(t);
    t = from("{% for m in messages %}{{ '[' + m.role + ']' + m.content + '\xC3\xA0' }}{% endfor %}" PROMPT("[assistant]"));
    gives(t, &(struct tune_chat_messages){.items = nothing, .count = 2}, TUNE_CHAT_SPANS,
          "[user]Hi\xC3\xA0[assistant]\xC3\xA0", "\xC3\xA0|");
    tune_chat_template_free(t);
    t = from("{% for i in range(messages|length) %}{{ '[' + messages[i].role + ']' + messages[i].content + '[end] ' }}{% endfor %}"
             PROMPT("[assistant]"));
    gives(t, &(struct tune_chat_messages){.items = nothing, .count = 4}, TUNE_CHAT_SPANS,
          "[user]Hi[end] [assistant][end] [user]a[end] [assistant][end] ", "[end]|[end]|");
    tune_chat_template_free(t);
    /* a turn's end that begins the next turn elsewhere; a header that loses white space where nothing is said */
    t = from("{% for m in messages %}{{ '<|' + m.role + '|>' + m.content }}{% if m.role == 'assistant' %}<|user|>{% endif %}"
             "{% endfor %}" PROMPT("<|assistant|>"));
    gives(t, &m, TUNE_CHAT_SPANS, "<|user|>Hi<|assistant|>Yo <|user|><|user|><|im_end|><|assistant|><|user|>",
          "Yo <|user|>|<|user|>|");
    tune_chat_template_free(t);
    t = from("{% for m in messages %}{{ ('[' + m.role + ']\n' + m.content)|trim }}{% endfor %}" PROMPT("{{ '[assistant]\n' }}"));
    gives(t, &m, TUNE_CHAT_SPANS, "[user]\nHi[assistant]\nYo[user]\n<|im_end|>[assistant]", "Yo||");
    tune_chat_template_free(t);
    /* another turn may repeat what the message says */
    t = from("{% for m in messages %}{{ m.role + ':' + m.content }}"
             "{% if loop.last %}({{ messages[1:2]|map(attribute='content')|join }}){% endif %};"
             "{% endfor %}" PROMPT("assistant:"));
    gives(t, &(struct tune_chat_messages){.items = two, .count = 3}, TUNE_CHAT_SPANS,
          "user:Hi;assistant:Yo ;user:<|im_end|>(Yo );", "Yo ;|");
    tune_chat_template_free(t);
    t = from("{% for m in messages %}{{ m.role + ':' }}{% if loop.last or m.role == 'user' %}{{ m.content }}{% endif %};"
             "{% endfor %}" PROMPT("assistant:"));
    gives(t, &m, TUNE_CHAT_SPANS, "user:Hi;assistant:;user:<|im_end|>;assistant:;", ";|;|");
    tune_chat_template_free(t);
}

/* Where no place is known, the message is named. */
static void test_unplaced(void **state)
{
    (void)state;
    const struct tune_chat_messages m = {.items = two, .count = 4, .name = "rows.jsonl", .line = 7};
    static const struct {
        const char *template, *message;
    } cases[] = {
        {"{{ messages[0].content }}", "rows.jsonl:7: message 2: what the assistant wrote cannot be told from"},
        {"{% for m in messages %}{{ m.content }}{% endfor %}{% for m in messages %}{{ m.content }}.{% endfor %}",
         "more than one loop"},
        {"{% set x %}{% for m in messages %}{{ m.content if loop.last }}.{% endfor %}{% endset %}{{ x }}",
         "no loop over the messages"},
        {"{% for m in messages %}{{ m.content }}{{ messages[0].content }};{% endfor %}", "something that it does not say"},
        {"{% for m in messages %}{{ '=' + m.role + m.content + (';' if loop.last else ',') }}{% endfor %}" PROMPT("assistant:"),
         "message 2: .*as the generation prompt says"},
        {"{% for m in messages[::-1] %}{{ m.content }}.{% endfor %}", "message 4: .*before the one before it ends"},
        /* a header that the prompt spells otherwise; one that no prompt has; the next one's in this turn */
        {"{% for m in messages %}{{ '[' }}{{ m.role }}{{ ']' + m.content + ';' }}{% endfor %}" PROMPT("[bot]<think>"),
         "message 2: .*as the generation prompt says"},
        {"{% for m in messages %}{{ '[' }}{{ 'helper]' + m.content + ';' }}{% endfor %}" PROMPT("{{ '[<think>' }}"),
         "message 2: .*as the generation prompt says"},
        {"{% for m in messages %}{{ '[' }}{{ '<helper>' + m.content + ';' }}{% endfor %}" PROMPT("{{ '[<ki>\n<think>' }}"),
         "message 2: .*as the generation prompt says"},
        {"{% for m in messages %}{{ '<|' + m.role + '|>' + m.content + ';' }}{% endfor %}",
         "message 2: .*begins with what looks like a header"},
        {"{% for m in messages %}{{ m.content + ('</s>### User:' if m.role == 'assistant' else ' ### Bot:') }}{% endfor %}",
         "message 2: .*the next message's header"},
        /* what it says is written in the turn behind it, or behind the loop */
        {"{% set ns = namespace(s='') %}{% for m in messages %}{{ ns.s }}{% set ns.s = '' %}.{% if m.role == 'user' %}"
         "{{ m.content }}{% else %}{% set ns.s = m.content %}{% endif %}{% endfor %}", "message 2: .*stands elsewhere in the text"},
        {"{% for m in messages %}{{ m.content[:1] }};{% endfor %}{{ messages[1:2]|map(attribute='content')|join }}",
         "message 2: .*stands elsewhere"},
        /* what another message says is in its turn, before its own words; the prompt says it, too */
        {"{% for m in messages %}{% if m.role == 'assistant' %}[{{ messages[loop.index0 - 1].content }}]{% endif %}{{ m.content }};"
         "{% endfor %}{% if add_generation_prompt %}[{{ messages[-1].content }}]{% endif %}",
         "message 2: .*something that it does not say"},
        /* and what it does not say is in the text that no loop writes */
        {"{% for i in range(messages|length) %}{{ messages[i].content + messages[0].content }};{% endfor %}",
         "message 2: .*something that it does not say"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tune_chat_template *t = from(cases[i].template);
        const char *star = strstr(cases[i].message, ".*");
        char first[200];
        snprintf(first, sizeof first, "%.*s", star ? (int)(star - cases[i].message) : 199, cases[i].message);
        fails(t, &m, TUNE_CHAT_SPANS, first);
        if (star)
            assert_error_has(star + 2);
        tune_chat_template_free(t);
    }
    /* what the system said stands behind an end that has no token of its own */
    struct tune_chat_template *t = from("{% for m in messages %}{{ m.content }}{% endfor %}{{ messages[0].content }}");
    fails(t, &(struct tune_chat_messages){.items = two, .count = 2}, TUNE_CHAT_SPANS, "message 2: ");
    assert_error_has("something that it does not say");
    tune_chat_template_free(t);
    t = from("{{ messages[1].content }}");
    gives(t, &m, 0, "Yo ", "");
    tune_chat_template_free(t);
}

static void test_found(void **state)
{
    (void)state;
    const struct tune_chat_messages m = {.items = two, .count = 1};
    const struct tune_chat_messages with = {.items = two, .count = 1, .tools = {"[{\"a\": 1}]", 10}};
    struct tune_chat_template *t;
    assert_ok(tune_file_make_folder("model"));
    assert_null(tune_chat_template_open("model", NULL, NULL));
    assert_error_has("no chat template");
    put("model/tokenizer_config.json", "{\"bos_token\": {\"content\": \"<s>\"}, \"eos_token\": \"</s>\", \"pad_token\": null, "
                                       "\"chat_template\": "
        "[{\"name\": \"default\", \"template\": \"{{ bos_token + messages[0].content + eos_token }}\"},"
        " {\"name\": \"tool_use\", \"template\": \"{{ tools|tojson }}\"}, {\"name\": \"rag\", \"template\": \"rag\"}]}");
    assert_got(t = tune_chat_template_open("model", NULL, NULL));
    gives(t, &m, 0, "<s>Hi</s>", "");
    gives(t, &with, 0, "[{\"a\": 1}]", "");
    tune_chat_template_free(t);
    assert_got(t = tune_chat_template_open("model", "rag", NULL));
    gives(t, &m, 0, "rag", "");
    tune_chat_template_free(t);
    put("model/chat_template.jinja", "J{{ bos_token }}");
    assert_got(t = tune_chat_template_open("model", NULL, NULL));
    gives(t, &m, 0, "J<s>", "");
    assert_non_null(strstr(tune_chat_template_name(t), "model/chat_template.jinja"));
    tune_chat_template_free(t);
    assert_ok(tune_file_make_folder("model/additional_chat_templates"));
    put("model/additional_chat_templates/extra.jinja", "E");
    assert_got(t = tune_chat_template_open("model", "extra", NULL));
    gives(t, &m, 0, "E", "");
    tune_chat_template_free(t);
    assert_null(tune_chat_template_open("model", "chatmll", NULL));
    assert_error_has("there is no template chatmll; did you mean chatml?");
    assert_got(t = tune_chat_template_open("model", "llama3", NULL));
    gives(t, &(struct tune_chat_messages){.items = two, .count = 2}, TUNE_CHAT_SPANS,
          "<s><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
          "<|start_header_id|>assistant<|end_header_id|>\n\nYo<|eot_id|>", "Yo<|eot_id|>|");
    tune_chat_template_free(t);
    assert_null(tune_chat_template_open("model", "./none.jinja", NULL));
    /* the end token of config.json: for folders that name none themselves */
    assert_got(t = tune_chat_template_open("model", "plain", "<end>"));
    gives(t, &m, 0, "User: Hi</s>\n", "");
    assert_null(tune_chat_template_end(t));
    uint64_t hash = tune_chat_template_hash(t);
    tune_chat_template_free(t);
    assert_got(t = tune_chat_template_open(NULL, "plain", "<end>"));
    gives(t, &m, 0, "User: Hi<end>\n", "");
    assert_true(tune_chat_template_hash(t) != hash);
    assert_string_equal(tune_chat_template_end(t), "<end>");
    tune_chat_template_free(t);
    assert_got(t = tune_chat_template_open(NULL, "chatml", "<end>"));
    assert_null(tune_chat_template_end(t)); /* it does not use it */
    tune_chat_template_free(t);
}

/* Content as a list of texts: as it is for a template that takes it, else joined. */
static void test_parts(void **state)
{
    (void)state;
    static const char json[] = "{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"Hi <s>\"}, "
                               "{\"type\": \"text\", \"text\": \" you\"}]}";
    static const char image[] = "{\"role\": \"user\", \"content\": [{\"type\": \"image\"}]}";
    struct tune_chat_message said[] = {{.json = {json, sizeof json - 1}}, {.role = "assistant", .content = {"Yo", 2}}};
    const struct tune_chat_messages m = {.items = said, .count = 2};
    static const char *const cases[][2] = {
        {"{% for m in messages %}{{ m.role + ':' + m.content + ';' }}{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}",
         "user:Hi <s> you;assistant:Yo;"},
        {"{% for m in messages %}{{ m.role }}:{{ m.content | trim }};{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}",
         "user:Hi <s> you;assistant:Yo;"}, /* Python's spelling of a list is not what was meant */
        {"{% for m in messages %}{{ m.role }}:{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}"
         "[{{ p.text }}]{% endfor %}{% endif %};{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}",
         "user:[Hi <s>][ you];assistant:Yo;"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tune_chat_template *t = from(cases[i][0]);
        gives(t, &m, TUNE_CHAT_SPANS, cases[i][1], "Yo;|");
        tune_chat_template_free(t);
    }
    struct tune_chat_text out = {0};
    struct tune_chat_template *t = from(cases[0][0]);
    assert_ok(tune_chat_template_render(t, &m, 0, &out));
    assert_true(out.data[strstr(out.text, "<s>") - out.text] && !out.data[0]); /* joined text is data */
    tune_chat_text_free(&out);
    said[0].json = (struct tune_text){image, sizeof image - 1};
    fails(t, &m, 0, "a list is not possible");
    tune_chat_template_free(t);
}

/* The templates that --chat-template knows by name. */
static void test_ours(void **state)
{
    (void)state;
    const struct tune_chat_messages m = {.items = two, .count = 4};
    static const char *const cases[][3] = {
        {"chatml", "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nYo <|im_end|>\n<|im_start|>user\n<|im_end|><|im_end|>\n"
                   "<|im_start|>assistant\n<|im_end|>\n", "Yo <|im_end|>|<|im_end|>|"},
        {"llama3", "<s><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nYo"
                   "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n<|im_end|><|eot_id|><|start_header_id|>assistant"
                   "<|end_header_id|>\n\n<|eot_id|>", "Yo<|eot_id|>|<|eot_id|>|"},
        {"phi3", "<|user|>\nHi<|end|>\n<|assistant|>\nYo <|end|>\n<|user|>\n<|im_end|><|end|>\n<|assistant|>\n<|end|>\n",
                 "Yo <|end|>|<|end|>|"},
        {"plain", "User: Hi</s>\nAssistant: Yo</s>\nUser: <|im_end|></s>\nAssistant: </s>\n", " Yo</s>| </s>|"},
    };
    assert_ok(tune_file_make_folder("base"));
    put("base/tokenizer_config.json", "{\"bos_token\": \"<s>\", \"eos_token\": \"</s>\"}");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tune_chat_template *t = tune_chat_template_open("base", cases[i][0], NULL);
        assert_got(t);
        gives(t, &m, TUNE_CHAT_SPANS, cases[i][1], cases[i][2]);
        tune_chat_template_free(t);
    }
}

/* More messages than the marks have numbers for. */
static void test_long(void **state)
{
    (void)state;
    struct tune_chat_message items[130];
    struct tune_chat_text out = {0};
    struct tune_chat_template *t = from(chatml);
    for (int i = 0; i < 130; i++)
        items[i] = (struct tune_chat_message){.role = i % 2 ? "assistant" : "user", .content = {i % 2 ? "a" : "u", 1}};
    assert_ok(tune_chat_template_render(t, &(struct tune_chat_messages){.items = items, .count = 130}, TUNE_CHAT_SPANS, &out));
    assert_int_equal(out.span_count, 65);
    for (int i = 0; i < 65; i++) {
        assert_int_equal(out.spans[i].message, i * 2 + 1);
        assert_int_equal(out.spans[i].end - out.spans[i].begin, 11);
        assert_memory_equal(out.text + out.spans[i].begin, "a<|im_end|>", 11);
    }
    tune_chat_text_free(&out);
    tune_chat_template_free(t);
}

/* What an assistant says is repeated behind its turn, a character at a time: looking for each in it ends, however long it is. */
static void test_repeated(void **state)
{
    (void)state;
    enum { LONG = 64 << 10 };
    char *said = malloc(LONG);
    assert_non_null(said);
    memset(said, 'a', LONG);
    struct tune_chat_message items[] = {SAID("user", "Hi"), {.role = "assistant", .content = {said, 1024}}};
    const struct tune_chat_messages m = {.items = items, .count = 2};
    struct tune_chat_text out = {0};
    struct tune_chat_template *t = from("{% for m in messages %}{{ m.content }};{% endfor %}"
                                        "{% for c in messages[1:2]|map(attribute='content')|join %}{{ c }}-{% endfor %}");
    assert_ok(tune_chat_template_render(t, &m, TUNE_CHAT_SPANS, &out));
    assert_int_equal(out.span_count, 1);
    assert_int_equal(out.spans[0].end - out.spans[0].begin, 1025);
    items[1].content.size = LONG;
    fails(t, &m, TUNE_CHAT_SPANS, "message 2: ");
    assert_error_has("stands elsewhere");
    tune_chat_text_free(&out);
    tune_chat_template_free(t);
    free(said);
}

static void test_messages(void **state)
{
    (void)state;
    struct tune_chat_template *t = from("{% for m in messages %}{{ m.role }}{{ m.content is defined }}{{ m.thinking }}{{ "
                                        "m.reasoning_content }};{% endfor %}");
    static const char one[] = "{\"role\": \"assistant\", \"content\": null, \"reasoning\": \"why\"}";
    static const char bad[] = "{\"content\": \"x\"}", list[] = "[1]";
    struct tune_chat_message said = {.json = {one, sizeof one - 1}};
    const struct tune_chat_messages m = {.items = &said, .count = 1, .name = "f", .line = 3};
    gives(t, &m, 0, "assistantFalsewhywhy;", "");
    said.json = (struct tune_text){bad, sizeof bad - 1};
    fails(t, &m, 0, "f:3: message 1 is no object with a role");
    said.json = (struct tune_text){list, sizeof list - 1};
    fails(t, &m, 0, "message 1 is no object with a role");
    tune_chat_template_free(t);
}

/* Special tokens of the template are tokens, the same spelling in a message is text, and merges go over the border. */
static void test_marked_ids(void **state)
{
    (void)state;
    static const char *const special[] = {"<|im_start|>", "<|im_end|>"};
    struct tune_chat_text out = {0};
    struct tune_encoding a = {0}, b = {0};
    assert_ok(tune_tokenizer_train("tokenizer.json", "user assistant user assistant", 29, 2 + 256 + 8, special, 2));
    struct tune_tokenizer *k = tune_tokenizer_open("tokenizer.json");
    struct tune_chat_template *t = from(chatml);
    assert_got(k);
    /* a role that is a word is the template's, another one is data */
    const struct tune_chat_message odd[] = {SAID("user", "a"), SAID("<|x|>", "b")};
    assert_ok(tune_chat_template_render(t, &(struct tune_chat_messages){.items = odd, .count = 2}, 0, &out));
    assert_true(!out.data[strstr(out.text, "user") - out.text] && out.data[strstr(out.text, "<|x|>") - out.text]);
    assert_ok(tune_chat_template_render(t, &(struct tune_chat_messages){.items = two, .count = 4}, 0, &out));
    assert_ok(tune_tokenizer_encode_text(k, out.text, out.size, NULL, 0, &a));
    assert_ok(tune_tokenizer_encode_text(k, out.text, out.size, out.data, 0, &b));
    int ends[2] = {0, 0};
    for (int64_t i = 0; i < a.count; i++)
        ends[0] += a.ids[i] == tune_tokenizer_id(k, "<|im_end|>");
    for (int64_t i = 0; i < b.count; i++)
        ends[1] += b.ids[i] == tune_tokenizer_id(k, "<|im_end|>");
    assert_int_equal(ends[0], 5);
    assert_int_equal(ends[1], 4);
    assert_ok(tune_tokenizer_encode(k, out.text, out.size, 0, &b));
    assert_int_equal(a.count, b.count);
    assert_memory_equal(a.ids, b.ids, (size_t)a.count * sizeof *a.ids);
    tune_encoding_free(&a);
    tune_encoding_free(&b);
    tune_chat_text_free(&out);
    tune_chat_template_free(t);
    tune_tokenizer_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spans), cmocka_unit_test(test_rewritten), cmocka_unit_test(test_unplaced),
        cmocka_unit_test(test_found), cmocka_unit_test(test_parts),
        cmocka_unit_test(test_repeated), cmocka_unit_test(test_messages), cmocka_unit_test(test_ours), cmocka_unit_test(test_long),
        cmocka_unit_test(test_marked_ids),
    };
    return cmocka_run_group_tests(tests, test_home_begin, test_home_end);
}
