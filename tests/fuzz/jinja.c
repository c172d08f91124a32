/* jinja.c - the first line: messages as JSON; the rest: a template. It renders or says why, twice the same, within limits; the
 * spans of what assistants wrote lie in the text, in order. */
#include "fuzz.h"
#include "templates/chat_template.h"
#include "templates/jinja.h"

/* Renders by themselves, twice. */
static void check_render(const struct tune_jinja *t, const char *json, size_t size)
{
    char *first = NULL;
    for (int time = 0; time < 2; time++) {
        struct tune_jinja_run *run = tune_jinja_begin(t, 1700000000);
        struct tune_jinja_output out;
        HOLDS(run);
        int failed = tune_jinja_set_json(run, "messages", json, size, "json", 1) < 0 ||
            tune_jinja_set_text(run, "bos_token", "<s>", 3) < 0 ||
                     tune_jinja_set_bool(run, "add_generation_prompt", true) < 0 || tune_jinja_render(run, &out) < 0;
        if (failed) {
            HOLDS(time == 0 || !first);
            fuzz_refused();
        } else {
            HOLDS(out.size <= TUNE_JINJA_OUTPUT && out.text[out.size] == 0 && strlen(out.text) <= out.size);
            for (size_t i = 0; i < out.size; i++)
                HOLDS(out.marks[i] < 4);
            HOLDS(time == 0 || (first && strcmp(first, out.text) == 0));
            if (time == 0)
                HOLDS(first = strdup(out.text));
        }
        tune_jinja_end(run);
    }
    free(first);
}

/* Three messages of a conversation, one of them the input's. */
static void check_chat(const char *path, const char *json, size_t size)
{
    const struct tune_chat_message said[] = {{.role = "user", .content = {"<s>", 3}}, {.json = {json, size}},
                                             {.role = "assistant", .content = {"b", 1}}};
    struct tune_chat_template *t = tune_chat_template_open(NULL, path, NULL);
    struct tune_chat_text text = {0};
    HOLDS(t);
    tune_chat_template_date(t, 1700000000);
    if (tune_chat_template_render(t, &(struct tune_chat_messages){.items = said, .count = 3}, TUNE_CHAT_SPANS, &text) < 0)
        fuzz_refused();
    for (int i = 0; i < text.span_count; i++) {
        HOLDS(text.spans[i].begin <= text.spans[i].end && text.spans[i].end <= text.size);
        HOLDS(i == 0 || (text.spans[i - 1].end <= text.spans[i].begin && text.spans[i - 1].message < text.spans[i].message));
    }
    tune_chat_text_free(&text);
    tune_chat_template_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *all = (const char *)data, *line = size ? memchr(data, '\n', size) : NULL;
    if (!line)
        return 0;
    size_t json = (size_t)(line - all), rest = size - json - 1;
    struct tune_jinja *t = tune_jinja_open("fuzz", line + 1, rest);
    if (!t) {
        HOLDS(strncmp(tune_error_message(), "fuzz:", 5) == 0);
        fuzz_refused();
        return 0;
    }
    check_render(t, all, json);
    tune_jinja_free(t);
    struct fuzz_file f = fuzz_file();
    fuzz_set(&f, line + 1, rest);
    check_chat(f.path, all, json);
    close(f.fd);
    return 0;
}
