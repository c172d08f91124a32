/* chat_peer.c - renders for chat_peer.py. `chat_peer jinja`: lines of JSON objects on stdin, each with "template" and the
 * variables; `chat_peer chat FOLDER [TEMPLATE]`: {"messages", "tools", "prompt", "spans"} by the folder's template, or the one
 * chosen. One line of JSON for each: {"text", "marks" or "spans" and "ids"} or {"error"}. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/cjson.h"
#include "core/error.h"
#include "templates/chat_template.h"
#include "templates/jinja.h"
#include "tokenizers/tokenizer.h"

static void say(cJSON *answer)
{
    char *text = cJSON_PrintUnformatted(answer);
    puts(text);
    free(text);
    cJSON_Delete(answer);
}

static cJSON *refused(void)
{
    cJSON *answer = cJSON_CreateObject();
    cJSON_AddStringToObject(answer, "error", tune_error_message());
    return answer;
}

static void render(const cJSON *line)
{
    const char *source = cJSON_GetObjectItem(line, "template")->valuestring;
    const cJSON *v;
    struct tune_jinja_output out;
    struct tune_jinja *t = tune_jinja_open("template", source, strlen(source));
    if (!t) {
        cJSON *answer = refused();
        cJSON_AddBoolToObject(answer, "open", 0);
        say(answer);
        return;
    }
    struct tune_jinja_run *run = tune_jinja_begin(t, 1700000000);
    int failed = 0;
    cJSON_ArrayForEach(v, cJSON_GetObjectItem(line, "variables")) {
        failed |= tune_jinja_set_json(run, v->string, v->valuestring, strlen(v->valuestring), "variable", 1);
    }
    if (failed || tune_jinja_render(run, &out) < 0) {
        say(refused());
    } else {
        cJSON *answer = cJSON_CreateObject();
        cJSON_AddStringToObject(answer, "text", out.text);
        say(answer);
    }
    tune_jinja_end(run);
    tune_jinja_free(t);
}

static void chat(struct tune_chat_template *t, struct tune_tokenizer *k, const cJSON *line)
{
    struct tune_chat_message items[64];
    struct tune_chat_messages m = {.items = items, .name = "rows", .line = 1};
    struct tune_chat_text text = {0};
    struct tune_encoding e = {0};
    const cJSON *v, *tools = cJSON_GetObjectItem(line, "tools");
    cJSON_ArrayForEach(v, cJSON_GetObjectItem(line, "messages")) {
        items[m.count] = (struct tune_chat_message){.json = {v->valuestring, strlen(v->valuestring)}};
        m.count++;
    }
    if (cJSON_IsString(tools))
        m.tools = (struct tune_text){tools->valuestring, strlen(tools->valuestring)};
    int options = (cJSON_IsTrue(cJSON_GetObjectItem(line, "prompt")) ? TUNE_CHAT_GENERATION_PROMPT : 0) |
                  (cJSON_IsTrue(cJSON_GetObjectItem(line, "spans")) ? TUNE_CHAT_SPANS : 0);
    if (tune_chat_template_render(t, &m, options, &text) < 0) {
        say(refused());
    } else {
        cJSON *answer = cJSON_CreateObject(), *spans = cJSON_AddArrayToObject(answer, "spans");
        cJSON_AddStringToObject(answer, "text", text.text);
        for (int i = 0; i < text.span_count; i++) {
            cJSON *span = cJSON_CreateArray();
            cJSON_AddItemToArray(span, cJSON_CreateNumber((double)text.spans[i].begin));
            cJSON_AddItemToArray(span, cJSON_CreateNumber((double)text.spans[i].end));
            cJSON_AddItemToArray(spans, span);
        }
        if (k && tune_tokenizer_encode_text(k, text.text, text.size, NULL, 0, &e) == 0)
            cJSON_AddItemToObject(answer, "ids", cJSON_CreateIntArray(e.ids, (int)e.count));
        say(answer);
    }
    tune_encoding_free(&e);
    tune_chat_text_free(&text);
}

int main(int argc, char **argv)
{
    char *text = NULL;
    size_t room = 0;
    struct tune_chat_template *t = NULL;
    struct tune_tokenizer *k = NULL;
    bool jinja = argc > 1 && strcmp(argv[1], "jinja") == 0;
    if (!jinja) {
        if (argc < 3 || !(t = tune_chat_template_open(argv[2], argc > 3 ? argv[3] : NULL, NULL))) {
            fprintf(stderr, "%s\n", argc < 3 ? "chat_peer jinja | chat FOLDER [TEMPLATE]" : tune_error_message());
            return 1;
        }
        k = tune_tokenizer_open(argv[2]);
    }
    while (getline(&text, &room, stdin) > 0) {
        cJSON *line = cJSON_Parse(text);
        if (!line)
            return 1;
        if (jinja)
            render(line);
        else
            chat(t, k, line);
        cJSON_Delete(line);
    }
    free(text);
    tune_chat_template_free(t);
    tune_tokenizer_free(k);
    return 0;
}
