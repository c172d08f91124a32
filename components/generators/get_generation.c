/* get_generation.c - prompts, sampler, cache and answers as the flags say. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "adapters/adapter.h"
#include "core/array.h"
#include "core/error.h"
#include "core/print.h"
#include "core/try.h"
#include "datasets/dataset.h"
#include "files/cjson.h"
#include "files/file.h"
#include "files/folder.h"
#include "flags/find.h"
#include "flags/flags.h"
#include "generators/answers.h"
#include "generators/generation.h"
#include "generators/generation_config.h"
#include "generators/prompts.h"
#include "generators/text_stream.h"
#include "generators/token_sampler.h"
#include "models/cache.h"
#include "runs/run.h"
#include "templates/chat_template.h"
#include "templates/prompt_template.h"
#include "tokenizers/tokenizer.h"

enum { CHAT_CONTEXT = 4096, SAMPLED_AT_ONCE = 8, AT_ONCE = 1024, PROMPT_LIMIT = 16 << 20 };

/* ---- how a prompt is written ---- */

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
    return find_folder(flags, folder) < 0 ? NULL : tune_tokenizer_open(folder);
}

/* Whether a folder has a chat template of its own. */
static bool has_chat(const char *folder)
{
    struct tune_chat_template *t = tune_chat_template_open(folder, NULL);
    tune_chat_template_free(t);
    if (!t)
        tune_error_clear();
    return t != NULL;
}

/* Where prompts get their layout from. */
struct layout {
    struct tune_dataset_options options;
    char folder[TUNE_PATH_MAX];        /* of the chat template */
    char prompt[TUNE_PATH_MAX], chat[TUNE_PATH_MAX]; /* files of the run's templates */
    char format[32];                   /* of the run's rows; "": there is no run */
    bool conversations;                /* the run's rows were written by a chat template */
};

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
static int read_run(const struct tune_flags *flags, struct layout *l)
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

/* Settle everything but the format of a single prompt. */
static int settle_layout(const struct tune_flags *flags, struct layout *l, int context)
{
    bool chosen = tune_flags_given(flags, "format") || flags->data.prompt_template || flags->data.chat_template;
    *l = (struct layout){.options = flags->data};
    TRY(find_folder(flags, l->folder));
    if (!chosen)
        TRY(read_run(flags, l));
    l->options.model_folder = l->folder;
    l->options.prompts = true;
    l->options.chunk = TUNE_CHUNK_OFF;
    l->options.max_length = context;
    if (*l->prompt && !strcmp(l->format, "prompt-template"))
        l->options.prompt_template = l->prompt;
    if (*l->chat)
        l->options.chat_template = l->chat;
    return 0;
}

/* The format of a single prompt. */
static const char *format_of(const struct layout *l)
{
    const char *given = l->options.row_format, *run = l->format;
    if (l->options.prompt_template)
        return "prompt-template";
    if (given && strcmp(given, "auto") != 0)
        return !strcmp(given, "instruct") || !strcmp(given, "sharegpt") ? "messages" : given;
    if (l->options.chat_template || l->conversations)
        return "messages";
    if (!strcmp(run, "alpaca") || !strcmp(run, "alpaca-preference"))
        return "alpaca";
    return !*run && has_chat(l->folder) ? "messages" : "text";
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

static struct tune_dataset *open_prompt(const struct tune_flags *flags, struct layout *l, struct tune_tokenizer *tok)
{
    const char *format = format_of(l), *system = flags->generate.system;
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

static struct tune_dataset *open_input(const struct tune_flags *flags, struct layout *l, struct tune_tokenizer *tok)
{
    char path[TUNE_PATH_MAX];
    if (flags->generate.system) {
        tune_error_usage("--system is for --prompt and --chat; rows of --input have system messages of their own");
        return NULL;
    }
    return tune_dataset_find(flags->generate.input, path) < 0 ? NULL : tune_dataset_open(path, &l->options, tok);
}

/* ---- the getters ---- */

/* Most tokens of prompt and answer. */
static int context_of(const struct tune_flags *flags, int *context)
{
    char folder[TUNE_PATH_MAX];
    struct tune_model_config config;
    int wanted = flags->generate.context;
    TRY(tune_get_model_config(flags, folder, &config));
    if (wanted > config.max_positions)
        return tune_error_usage("--context %d is above the model's of %d (max_position_embeddings in %s/config.json)",
                                wanted, config.max_positions, folder);
    *context = wanted ? wanted : config.max_positions;
    if (!wanted && flags->generate.chat && *context > CHAT_CONTEXT)
        *context = CHAT_CONTEXT;
    return 0;
}

static int check_options(const struct tune_flags *flags)
{
    const struct tune_generation_options *g = &flags->generate;
    int sources = (g->prompt != NULL) + (g->input != NULL) + g->chat;
    if (sources != 1)
        return tune_error_usage(sources ? "--prompt, --input and --chat exclude each other; give one of them"
                                        : "nothing to answer: give --prompt TEXT, --input FILE of rows, or --chat");
    if (g->output && !g->input)
        return tune_error_usage("--output is for the answers to the rows of --input");
    if (g->compare_base && g->chat)
        return tune_error_usage("--compare-base and --chat exclude each other; compare with --prompt or --input");
    if (g->compare_base && !flags->adapter)
        return tune_error_usage("--compare-base compares a model with and without an adapter; give --adapter");
    return tune_sampling_check(&g->sampling);
}

static struct tune_prompts *open_chat(const struct tune_flags *flags, const struct layout *l, struct tune_tokenizer *tok,
                                      int context, FILE *notes)
{
    struct tune_chat_template *t = tune_chat_template_open(l->folder, l->options.chat_template);
    if (t)
        return tune_prompts_open_chat(t, tok, flags->generate.system, context, STDIN_FILENO, notes, flags->stop_signal);
    tune_error_prefix("--chat: ");
    return NULL;
}

struct tune_prompts *tune_get_prompts(const struct tune_flags *flags, struct tune_tokenizer *tok, FILE *notes)
{
    struct layout *l = tune_zeroed(1, sizeof *l, "prompts");
    struct tune_prompts *p = NULL;
    struct tune_dataset *d = NULL;
    int context;
    if (l && check_options(flags) == 0 && context_of(flags, &context) == 0 &&
        settle_layout(flags, l, context) == 0) {
        if (flags->generate.chat)
            p = open_chat(flags, l, tok, context, notes);
        else
            d = flags->generate.prompt ? open_prompt(flags, l, tok) : open_input(flags, l, tok);
    }
    free(l);
    return d ? tune_prompts_open_rows(d, flags->generate.batch_size, context) : p;
}

struct tune_prompts *tune_get_sample_prompts(const struct tune_flags *flags, struct tune_tokenizer *tok)
{
    char folder[TUNE_PATH_MAX], path[TUNE_PATH_MAX];
    struct tune_model_config config;
    struct tune_dataset_options options = flags->data;
    if (!flags->sample.prompts) {
        tune_error_usage("--sample-every: which prompts to answer? give --sample-prompts FILE: rows as in --dataset, or a .txt "
                         "file with a prompt in each paragraph");
        return NULL;
    }
    if (tune_get_model_config(flags, folder, &config) < 0 || tune_dataset_find(flags->sample.prompts, path) < 0)
        return NULL;
    options.model_folder = folder;
    options.prompts = true;
    options.pairs = false;
    options.chunk = TUNE_CHUNK_OFF;
    options.max_length = config.max_positions;
    struct tune_dataset *d = tune_dataset_open(path, &options, tok);
    struct tune_prompts *p = d ? tune_prompts_open_rows(d, SAMPLED_AT_ONCE, config.max_positions) : NULL;
    if (!p)
        tune_error_prefix("--sample-prompts: ");
    return p;
}

/* What the folders say of generation, and the options over it. */
static int read_config(const struct tune_flags *flags, const struct tune_tokenizer *tok, struct tune_generation_config *c)
{
    char folder[TUNE_PATH_MAX];
    struct tune_generation_config adapter = {0};
    struct tune_sampling_options *s = &c->sampling;
    const struct tune_sampling_options *o = &flags->generate.sampling;
    TRY(tune_model_find(flags->model, folder));
    TRY(tune_generation_config_read(c, folder, tok));
    if (flags->adapter)
        TRY(tune_generation_config_read(&adapter, flags->adapter, tok));
    for (int i = 0; i < adapter.end_count; i++)
        TRY(tune_generation_config_end(c, adapter.ends[i]));
    if (adapter.said) {
        c->sampling = adapter.sampling;
        c->said = true;
    }
    const struct { const char *name; bool given; } given[] = {
        {"temperature", tune_flags_given(flags, "temperature")}, {"top-k", tune_flags_given(flags, "top-k")},
        {"top-p", tune_flags_given(flags, "top-p")}, {"min-p", tune_flags_given(flags, "min-p")},
        {"repetition-penalty", tune_flags_given(flags, "repetition-penalty")}};
    s->temperature = given[0].given ? o->temperature : s->temperature;
    s->top_k = given[1].given ? o->top_k : s->top_k;
    s->top_p = given[2].given ? o->top_p : s->top_p;
    s->min_p = given[3].given ? o->min_p : s->min_p;
    s->repetition_penalty = given[4].given ? o->repetition_penalty : s->repetition_penalty;
    for (int i = 0; i < 5; i++)
        c->said = c->said && !given[i].given;
    return 0;
}

struct tune_token_sampler *tune_get_token_sampler(const struct tune_flags *flags, const struct tune_tokenizer *tok,
                                                  const struct tune_model *m, const struct tune_prompts *prompts)
{
    struct tune_generation_config c;
    if (read_config(flags, tok, &c) < 0)
        return NULL;
    return tune_token_sampler_new(&c.sampling, flags->seed, (int)tune_model_vocabulary(m), tune_prompts_batch(prompts));
}

/* Positions of prompt and answer that the prompts need. */
static int capacity_of(const struct tune_flags *flags, const struct tune_prompts *prompts, int *capacity)
{
    int context, longest = tune_prompts_longest(prompts);
    TRY(context_of(flags, &context));
    int64_t wanted = (int64_t)longest + flags->generate.max_new_tokens;
    *capacity = longest && wanted < context ? (int)wanted : context;
    return 0;
}

struct tune_model *tune_get_generation_model(const struct tune_flags *flags, struct tune_device *dev,
                                             const struct tune_tokenizer *tok, const struct tune_prompts *prompts)
{
    int rows = tune_prompts_batch(prompts), longest = tune_prompts_longest(prompts), capacity;
    if (capacity_of(flags, prompts, &capacity) < 0)
        return NULL;
    int piece = AT_ONCE / rows > 0 ? AT_ONCE / rows : 1;
    longest = longest ? longest : capacity;
    return tune_get_frozen(flags, dev, tok, rows, longest < piece ? longest : piece);
}

struct tune_cache *tune_get_cache(const struct tune_flags *flags, struct tune_model *m, const struct tune_prompts *prompts)
{
    int capacity;
    return capacity_of(flags, prompts, &capacity) < 0 ? NULL : tune_cache_new(m, tune_prompts_batch(prompts), capacity);
}

/* ---- answers ---- */

/* The texts of --stop: commas part them; \n, \t, \, and \\ are a line end, a tab, a comma and a
 * backslash. */
static int read_stops(const char *text, char *room, const char **stops, int *count)
{
    *count = 0;
    for (const char *at = text; at; at = *at ? at + 1 : NULL) {
        if (*count == TUNE_STOPS)
            return tune_error_usage("--stop: more than %d texts", TUNE_STOPS);
        stops[(*count)++] = room;
        for (; *at && *at != ','; at++) {
            bool escape = *at == '\\' && at[1] && strchr("nt,\\", at[1]);
            at += escape;
            *room++ = !escape ? *at : *at == 'n' ? '\n' : *at == 't' ? '\t' : *at;
        }
        *room++ = 0;
        if (!*stops[*count - 1])
            return tune_error_usage("--stop: a text is empty");
    }
    return 0;
}

/* The token that ends the assistant's turn, by the chat template. */
static int add_turn_end(const struct tune_flags *flags, struct tune_tokenizer *tok, struct tune_generation_config *c)
{
    static const char row[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
                              "\"content\": \"b\"}]}";
    struct layout *l = tune_zeroed(1, sizeof *l, "prompts");
    int status = l ? settle_layout(flags, l, 1 << 20) : -1;
    if (status == 0 && (flags->generate.chat || (!strcmp(format_of(l), "messages") && !flags->generate.input) ||
                        has_chat(l->folder) || l->options.chat_template)) {
        l->options.prompts = false;
        l->options.row_format = "messages";
        l->options.prompt_template = l->options.columns = NULL;
        struct tune_dataset *d = tune_dataset_open_text("the chat template", row, sizeof row - 1, &l->options, tok);
        int32_t id = d ? tune_dataset_end_id(d) : -1;
        tune_dataset_free(d);
        tune_error_clear(); /* a template that refuses this row ends turns by the model's own tokens */
        status = id < 0 ? 0 : tune_generation_config_end(c, id);
    }
    free(l);
    return status;
}

/* Hash all that the answers depend on but the prompts. */
static int hash_settings(const struct tune_flags *flags, const struct tune_generation_config *c, uint64_t *hash)
{
    char folder[TUNE_PATH_MAX], text[512];
    struct tune_model_identity model, adapter = {0};
    enum tune_dtype storage;
    const struct tune_generation_options *g = &flags->generate;
    TRY(tune_model_find(flags->model, folder));
    TRY(tune_model_identity(folder, &model));
    TRY(tune_get_frozen_storage(flags, folder, &storage));
    if (flags->adapter)
        TRY(tune_model_identity(flags->adapter, &adapter));
    snprintf(text, sizeof text, "%llx %llx %d %d %d %lld %d %d %.17g %d %.17g %.17g %.17g", (unsigned long long)model.fingerprint,
             (unsigned long long)adapter.fingerprint, (int)storage, (int)flags->dtype, g->max_new_tokens, (long long)flags->seed,
             g->context, g->compare_base, c->sampling.temperature, c->sampling.top_k, c->sampling.top_p, c->sampling.min_p,
             c->sampling.repetition_penalty);
    *hash = tune_hash64(text, strlen(text), 0);
    *hash = g->stop ? tune_hash64(g->stop, strlen(g->stop), *hash) : *hash;
    *hash = tune_hash64(c->ends, (size_t)c->end_count * sizeof *c->ends, *hash);
    return 0;
}

/* Tell how prompts are written and tokens are chosen. */
static int tell(const struct tune_flags *flags, const struct tune_tokenizer *tok, const struct tune_generation_config *c,
                const struct tune_prompts *prompts, FILE *notes)
{
    const struct tune_sampling_options *s = &c->sampling;
    char ends[512] = "", how[256] = "greedy";
    for (int i = 0; i < c->end_count; i++)
        tune_append_item(ends, sizeof ends, "%.60s", tune_tokenizer_token(tok, c->ends[i]));
    if (s->temperature > 0)
        snprintf(how, sizeof how, "temperature %g, top-k %d, top-p %g, min-p %g, seed %lld", s->temperature, s->top_k, s->top_p,
                 s->min_p, (long long)flags->seed);
    if (s->repetition_penalty != 1)
        tune_append(how, sizeof how, ", repetition penalty %g", s->repetition_penalty);
    tune_blank_controls(ends);
    fprintf(notes, "# prompts      %s\n# sampling     %s%s\n# ends with    %s, or after %d tokens\n", tune_prompts_about(prompts), how,
            c->said ? " (generation_config.json)" : "", *ends ? ends : "no token of the model", flags->generate.max_new_tokens);
    if (flags->generate.chat)
        fprintf(notes, "# commands     /undo, /system TEXT, /save FILE, /quit; /help has all\n");
    return 0;
}

static int columns_of(FILE *out)
{
    struct winsize w = {0};
    if (!isatty(fileno(out)))
        return 0;
    return ioctl(fileno(out), TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

struct tune_answers *tune_get_answers(const struct tune_flags *flags, struct tune_tokenizer *tok, struct tune_prompts *prompts,
                                      FILE *text, FILE *notes)
{
    const struct tune_generation_options *g = &flags->generate;
    const char *stops[TUNE_STOPS];
    struct tune_generation_config c;
    int count = 0, context;
    char *room = tune_zeroed(g->stop ? strlen(g->stop) + 2 : 1, 1, "--stop");
    int status = room && context_of(flags, &context) == 0 && read_config(flags, tok, &c) == 0 && add_turn_end(flags, tok, &c) == 0
                     ? 0 : -1;
    if (status == 0 && g->stop)
        status = read_stops(g->stop, room, stops, &count);
    struct tune_answers_options o = {.stops = stops, .stop_count = count, .ends = c.ends, .end_count = c.end_count,
                                     .max_new_tokens = g->max_new_tokens, .context = context, .file = g->output,
                                     .lines = g->input && !g->compare_base, .overwrite = g->overwrite, .sides = g->compare_base ? 2 : 1,
                                     .text = text, .notes = notes, .width = columns_of(text), .stop_signal = flags->stop_signal};
    if (status == 0 && (g->output || o.lines))
        status = hash_settings(flags, &c, &o.settings);
    if (status == 0)
        status = tell(flags, tok, &c, prompts, notes);
    struct tune_answers *a = status == 0 ? tune_answers_new(tok, prompts, &o) : NULL;
    free(room);
    return a;
}
