/* get_layout.c - how a prompt is written: by options, by the run that made the model, or by the
 * model's chat template. */
#include "generators/prompt_layout.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/array.h"
#include "core/error.h"
#include "core/try.h"
#include "files/cjson.h"
#include "files/file.h"
#include "files/folder.h"
#include "flags/find.h"
#include "flags/flags.h"
#include "generators/prompts.h"
#include "runs/run.h"
#include "templates/chat_template.h"
#include "templates/prompt_template.h"
#include "tokenizers/tokenizer.h"

enum { PROMPT_LIMIT = 16 << 20 };

/* The folder with the tokenizer and the chat template: the adapter's, if it has a tokenizer, else
 * the model's. */
static int find_folder(const struct tune_flags *flags, char folder[TUNE_PATH_MAX])
{
    if (flags->adapter && tune_folder_has(flags->adapter, "tokenizer.json"))
        return tune_path(folder, "%s", flags->adapter);
    if (!flags->model)
        return tune_error_usage("--model is missing: give a model folder, a known name or a Hub id");
    return tune_model_find(flags->model, folder);
}

struct tune_tokenizer *tune_get_prompts_tokenizer(const struct tune_flags *flags)
{
    char folder[TUNE_PATH_MAX];
    struct tune_tokenizer *tok = find_folder(flags, folder) < 0 ? NULL : tune_tokenizer_open(folder);
    if (!tok || tune_tokenizer_limit_by(tok, folder) == 0)
        return tok;
    tune_tokenizer_free(tok);
    return NULL;
}

/* True if the folder has a chat template of its own. */
bool tune_prompt_layout_has_chat(const struct tune_prompt_layout *l)
{
    struct tune_chat_template *t = tune_chat_template_open(l->folder, NULL, l->end_token);
    tune_chat_template_free(t);
    if (!t)
        tune_error_clear();
    return t != NULL;
}

/* A file that the run's command named, as seen from here. */
static int file_of_run(const cJSON *run, const char *option, char path[TUNE_PATH_MAX])
{
    const cJSON *options = cJSON_GetObjectItemCaseSensitive(run, "options");
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(options, option);
    const cJSON *folder = cJSON_GetObjectItemCaseSensitive(run, "working_folder");
    *path = 0;
    if (!cJSON_IsString(value))
        return 0;
    if (value->valuestring[0] == '/' || tune_file_exists(value->valuestring) || !cJSON_IsString(folder))
        return tune_path(path, "%s", value->valuestring);
    TRY(tune_path(path, "%s/%s", folder->valuestring, value->valuestring));
    return tune_file_exists(path) ? 0 : tune_path(path, "%s", value->valuestring); /* a name in defaults */
}

/* Read how the rows were written from which the model or the adapter was trained, if its folder lies
 * in that run's folder. */
static int read_run(const struct tune_flags *flags, struct tune_prompt_layout *l)
{
    char folder[TUNE_PATH_MAX];
    const char *made = flags->adapter ? flags->adapter : flags->model;
    if (!made || !tune_file_is_folder(made))
        return 0;
    TRY(tune_path(folder, "%s/..", made));
    if (!tune_run_is(folder))
        return 0;
    struct tune_run *r = tune_run_open(folder);
    if (!r)
        return -1;
    const cJSON *data = cJSON_GetObjectItemCaseSensitive(r->run, "data");
    const cJSON *format = cJSON_GetObjectItemCaseSensitive(data, "format");
    const cJSON *chat = cJSON_GetObjectItemCaseSensitive(data, "chat_template");
    int status = 0;
    if (cJSON_IsString(format)) {
        snprintf(l->format, sizeof l->format, "%s", format->valuestring);
        l->conversations = cJSON_IsString(chat) && strcmp(chat->valuestring, "none") != 0;
        status = file_of_run(r->run, "prompt_template", l->prompt);
        if (status == 0)
            status = file_of_run(r->run, "chat_template", l->chat);
    }
    tune_run_free(r);
    return status;
}

void tune_prompt_layout_free(struct tune_prompt_layout *l)
{
    if (l)
        free(l->end_token);
    free(l);
}

/* The model's own end token. */
static int end_token(const struct tune_flags *flags, const struct tune_tokenizer *tok, char **token)
{
    char folder[TUNE_PATH_MAX];
    TRY(tune_model_find(flags->model, folder));
    return tune_tokenizer_end(tok, folder, token);
}

/* Settle everything but the format of a single prompt. */
int tune_prompt_layout_settle(const struct tune_flags *flags, const struct tune_tokenizer *tok, struct tune_prompt_layout *l, int context)
{
    bool chosen = tune_flags_given(flags, "format") || flags->data.prompt_template || flags->data.chat_template;
    *l = (struct tune_prompt_layout){.options = flags->data};
    TRY(find_folder(flags, l->folder));
    if (!chosen)
        TRY(read_run(flags, l));
    TRY(end_token(flags, tok, &l->end_token));
    l->options.model_folder = l->folder;
    l->options.end_token = l->end_token;
    l->options.prompts = true;
    l->options.references = flags->scorecard.metrics;
    l->options.chunk = TUNE_CHUNK_OFF;
    l->options.max_length = context;
    if (*l->prompt && !strcmp(l->format, "prompt-template"))
        l->options.prompt_template = l->prompt;
    if (*l->chat)
        l->options.chat_template = l->chat;
    return 0;
}

/* The format of a single prompt. */
const char *tune_prompt_layout_format(const struct tune_prompt_layout *l)
{
    const char *given = l->options.row_format, *run = l->format;
    if (l->options.prompt_template)
        return "prompt-template";
    if (given && strcmp(given, "auto") != 0)
        return !strcmp(given, "instruct") || !strcmp(given, "alpaca-chat") || !strcmp(given, "sharegpt") ? "messages" : given;
    if (l->options.chat_template || l->conversations)
        return "messages";
    if (!strcmp(run, "alpaca") || !strcmp(run, "alpaca-preference"))
        return "alpaca";
    return !*run && tune_prompt_layout_has_chat(l) ? "messages" : "text";
}

/* The one column that the template's prompt has. */
static const char *only_slot(const char *path, char name[128])
{
    struct tune_prompt_template t;
    const char *only = NULL;
    if (tune_prompt_template_open(&t, path) < 0)
        return NULL;
    for (int i = 0; i < t.count && !t.parts[i].trained; i++) {
        if (t.parts[i].slot < 0 || (only && !strcmp(only, t.parts[i].text)))
            continue;
        if (only) {
            tune_error_usage("the prompt template has the columns \"%s\" and \"%s\", and --prompt is one text; give --input "
                             "with a file of rows", only, t.parts[i].text);
            tune_prompt_template_free(&t);
            return NULL;
        }
        only = t.parts[i].text;
    }
    if (only)
        snprintf(name, 128, "%s", only);
    else
        tune_error_usage("the prompt of the prompt template has no column that --prompt could be");
    tune_prompt_template_free(&t);
    return only ? name : NULL;
}

static bool add_message(cJSON *list, const char *role, const char *text)
{
    cJSON *one = cJSON_CreateObject();
    bool good = tune_cjson_put_text(one, "role", role) && tune_cjson_put_text(one, "content", text);
    return cJSON_AddItemToArray(list, one) && good;
}

/* The prompt as a row of its format, as JSON; the caller frees it. NULL with an error. */
static char *row_of(const char *prompt, const char *system, const char *format, const char *template)
{
    char slot[128];
    cJSON *row = cJSON_CreateObject();
    bool good = row != NULL;
    const char *column = !strcmp(format, "alpaca") ? "instruction" : !strcmp(format, "text") ? "text" : "prompt";
    if (good && !strcmp(format, "messages")) {
        cJSON *list = cJSON_AddArrayToObject(row, "messages");
        good = list && (!system || add_message(list, "system", system)) && add_message(list, "user", prompt);
    } else if (good) {
        if (!strcmp(format, "prompt-template") && !(column = only_slot(template, slot))) {
            cJSON_Delete(row);
            return NULL;
        }
        good = tune_cjson_put_text(row, column, prompt);
    }
    char *text = good ? cJSON_PrintUnformatted(row) : NULL;
    cJSON_Delete(row);
    if (!text)
        tune_error_no_memory("the prompt");
    return text;
}

/* Read the standard input as a whole. */
static char *read_input(void)
{
    char *text = NULL;
    size_t room = 0, used = 0;
    ssize_t n = 1;
    while (n > 0) {
        if (tune_array_reserve(&text, &room, used + 65536, 1, "the prompt") < 0)
            break;
        n = read(STDIN_FILENO, text + used, 65535);
        used += n > 0 ? (size_t)n : 0;
        if (used > PROMPT_LIMIT) {
            tune_error_usage("the prompt on the standard input is longer than %d bytes", PROMPT_LIMIT);
            break;
        }
    }
    if (n == 0) {
        text[used] = 0;
        return text;
    }
    if (n < 0)
        tune_error_set("cannot read the standard input: %s", strerror(errno));
    free(text);
    return NULL;
}

struct tune_dataset *tune_prompt_layout_open(const struct tune_flags *flags, struct tune_prompt_layout *l, struct tune_tokenizer *tok)
{
    const char *format = tune_prompt_layout_format(l), *system = flags->generate.system;
    bool whole = !strcmp(flags->generate.prompt, "-");
    char *read = whole ? read_input() : NULL, *row = NULL;
    struct tune_dataset *d = NULL;
    if (whole && !read)
        return NULL;
    if (system && strcmp(format, "messages") != 0)
        tune_error_usage("--system is for conversations, and this prompt is written as %s; leave it out, or give "
                         "--chat-template", format);
    else
        row = row_of(whole ? read : flags->generate.prompt, system, format, l->options.prompt_template);
    if (row) {
        l->options.row_format = !strcmp(format, "prompt-template") ? "auto" : format;
        l->options.columns = NULL;
        d = tune_dataset_open_text("--prompt", row, strlen(row), &l->options, tok);
    }
    free(row);
    free(read);
    return d;
}

struct tune_dataset *tune_prompt_layout_rows(const struct tune_flags *flags, struct tune_prompt_layout *l, struct tune_tokenizer *tok)
{
    char path[TUNE_PATH_MAX];
    if (flags->generate.system) {
        tune_error_usage("--system is for --prompt and --chat; rows of --input have system messages of their own");
        return NULL;
    }
    return tune_dataset_find(flags->generate.input, path) < 0 ? NULL : tune_dataset_open(path, &l->options, tok);
}
