/* get_generation.c - prompts, sampler, cache and answers as the flags say. */
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
#include "files/file.h"
#include "files/folder.h"
#include "flags/find.h"
#include "flags/flags.h"
#include "generators/answers.h"
#include "generators/generation.h"
#include "generators/generation_config.h"
#include "generators/prompt_layout.h"
#include "generators/prompts.h"
#include "generators/prompts_parts.h"
#include "generators/detokenizer.h"
#include "generators/token_sampler.h"
#include "models/cache.h"
#include "models/weights.h"
#include "runs/run_folder.h"
#include "templates/chat_template.h"
#include "tokenizers/tokenizer.h"

enum { CHAT_CONTEXT = 4096, SAMPLED_AT_ONCE = 8, AT_ONCE = 1024 };

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
    if (!sources && flags->scorecard.metrics)
        return tune_error_usage("nothing to judge a model by: give --dataset FILE of rows with prompts and answers");
    if (sources != 1)
        return tune_error_usage(sources ? "--prompt, --input and --chat exclude each other; give one of them"
                                        : "nothing to answer: give --prompt TEXT, --input FILE of rows, or --chat");
    if (g->output && !g->input)
        return tune_error_usage("--output is for the answers to the rows of --input");
    if (g->compare_base && g->compare_model)
        return tune_error_usage("--compare-base and --compare-model exclude each other; give one of them");
    if ((g->compare_base || g->compare_model) && g->chat)
        return tune_error_usage("a chat compares no models; compare them with --prompt or --input");
    if (g->compare_base && !flags->adapter)
        return tune_error_usage("--compare-base compares a model with and without an adapter; give --adapter");
    if (g->answers > 1 && g->chat)
        return tune_error_usage("--answers %d is for --prompt and --input; a chat has one answer to a turn", g->answers);
    return tune_sampling_check(&g->sampling);
}

/* Greedy answers to one prompt are all the same. */
static int check_several(const struct tune_flags *flags, struct tune_tokenizer *tok)
{
    struct tune_generation_config c;
    if (flags->generate.answers <= 1)
        return 0;
    int status = tune_get_generation_config(flags, tok, &c, NULL);
    if (status == 0 && c.sampling.temperature == 0)
        status = tune_error_usage("--answers %d: without sampling they are all the same; give --temperature above 0, such as 0.8",
                                  flags->generate.answers);
    tune_generation_config_free(&c);
    return status;
}

static struct tune_prompts *open_chat(const struct tune_flags *flags, const struct tune_prompt_layout *l, struct tune_tokenizer *tok,
                                      int context, FILE *notes)
{
    struct tune_chat_template *t = tune_chat_template_open(l->folder, l->options.chat_template, l->end_token);
    if (t)
        return tune_prompts_open_chat(t, tok, flags->generate.system, context, STDIN_FILENO, notes, flags->stop_signal);
    tune_error_prefix("--chat: ");
    return NULL;
}

/* Open rows that are judged without an answer, pairs and plain texts, as *p. 1; 0: they are no such
 * rows; -1 with an error. */
static int open_unanswered(const struct tune_flags *flags, const struct tune_prompt_layout *l, struct tune_tokenizer *tok,
                           struct tune_prompts **p)
{
    char path[TUNE_PATH_MAX];
    enum tune_dataset_kind kind;
    struct tune_dataset_options o = l->options;
    int rows = flags->generate.batch_size;
    if (!flags->scorecard.metrics)
        return 0;
    TRY(tune_dataset_find(flags->generate.input, path));
    TRY(tune_dataset_kind(path, &o, &kind));
    if (kind == TUNE_ROWS_ANSWERS)
        return 0;
    if (kind == TUNE_ROWS_CHOICES)
        return tune_error_usage("%s: these rows are questions with choices, which a task file weighs: give --tasks FILE --tasks-data FOLDER "
                                "in place of --dataset, with a file as in docs/evaluate.md (Multiple choice)", path);
    o.prompts = false;
    o.chunk = TUNE_CHUNK_AUTO;
    o.sequences = kind == TUNE_ROWS_PAIRS ? 2 : 0;
    struct tune_dataset *d = tune_dataset_open(path, &o, tok);
    *p = d ? tune_prompts_open_texts(d, o.sequences && rows > 1 ? rows / 2 : rows) : NULL;
    return *p ? 1 : -1;
}

struct tune_prompts *tune_get_prompts(const struct tune_flags *flags, struct tune_tokenizer *tok, FILE *notes)
{
    struct tune_prompt_layout *l = tune_zeroed(1, sizeof *l, "prompts");
    struct tune_prompts *p = NULL;
    struct tune_dataset *d = NULL;
    int context = 0, most = 0, answer = 0, rows = 0;
    if (l && check_options(flags) == 0 && check_several(flags, tok) == 0 && context_of(flags, &context) == 0 && tune_get_answer_limits(flags, tok, &answer, &most) == 0 &&
        tune_prompt_layout_settle(flags, tok, l, context) == 0 && (rows = open_unanswered(flags, l, tok, &p)) == 0) {
        if (flags->generate.chat)
            p = open_chat(flags, l, tok, most && most < context ? most : context, notes);
        else
            d = flags->generate.prompt ? tune_prompt_layout_open(flags, l, tok) : tune_prompt_layout_rows(flags, l, tok);
    }
    tune_prompt_layout_free(l);
    p = d ? tune_prompts_open_rows(d, 0, flags->generate.batch_size, context, answer) : p;
    if (d && p) /* the answers to one prompt are shown as they come */
        tune_prompts_repeat(p, flags->generate.answers > 0 ? flags->generate.answers : 1, flags->generate.prompt ? 1 : flags->generate.batch_size);
    if (!p || rows || !most || tune_prompts_longest(p) < most)
        return p;
    tune_error_usage("the longest prompt has %d tokens; with an answer it must be at most max_length, which is %d (--max-length, or "
                     "the model's generation_config.json). Give --max-new-tokens", tune_prompts_longest(p), most);
    tune_prompts_free(p);
    return NULL;
}

struct tune_prompts *tune_get_preview_prompts(const struct tune_flags *flags, struct tune_tokenizer *tok)
{
    char folder[TUNE_PATH_MAX], path[TUNE_PATH_MAX];
    struct tune_model_config config;
    struct tune_dataset_options options = flags->data;
    if (!flags->preview.prompts) {
        tune_error_usage("--preview-every: which prompts to answer? give --preview-prompts FILE: rows as in --dataset, or a .txt "
                         "file with a prompt in each paragraph");
        return NULL;
    }
    if (tune_get_model_config(flags, folder, &config) < 0 || tune_dataset_find(flags->preview.prompts, path) < 0)
        return NULL;
    char *end;
    if (tune_tokenizer_end(tok, folder, &end) < 0)
        return NULL;
    options.model_folder = folder;
    options.end_token = end;
    options.prompts = true;
    options.sequences = 0;
    options.limit = 0;
    options.chunk = TUNE_CHUNK_OFF;
    options.max_length = config.max_positions;
    struct tune_dataset *d = tune_dataset_open(path, &options, tok);
    free(end);
    struct tune_prompts *p = d ? tune_prompts_open_rows(d, flags->preview.rows, SAMPLED_AT_ONCE, config.max_positions,
                                                         flags->preview.tokens) : NULL;
    if (!p)
        tune_error_prefix("--preview-prompts: ");
    return p;
}

struct tune_token_sampler *tune_get_token_sampler(const struct tune_flags *flags, struct tune_tokenizer *tok,
                                                  const struct tune_model *m, const struct tune_prompts *prompts)
{
    struct tune_generation_config c;
    struct tune_token_sampler *s = NULL;
    if (tune_get_generation_config(flags, tok, &c, NULL) == 0)
        s = tune_token_sampler_new(&c.sampling, flags->seed, (int)tune_model_vocabulary(m), tune_prompts_batch(prompts));
    if (s && tune_token_sampler_obey(s, &c.rules) < 0) {
        tune_token_sampler_free(s);
        s = NULL;
    }
    tune_generation_config_free(&c);
    return s;
}

/* Positions of prompt and answer that the prompts need. */
static int capacity_of(const struct tune_flags *flags, const struct tune_prompts *prompts, int *capacity)
{
    int context = 0, longest = tune_prompts_longest(prompts);
    TRY(context_of(flags, &context));
    int64_t wanted = (int64_t)longest + tune_prompts_answer(prompts);
    *capacity = longest && wanted < context ? (int)wanted : context;
    return 0;
}

struct tune_model *tune_get_generation_model(const struct tune_flags *flags, struct tune_device *dev,
                                             const struct tune_prompts *prompts)
{
    int rows = tune_prompts_batch(prompts), longest = tune_prompts_longest(prompts), capacity;
    if (capacity_of(flags, prompts, &capacity) < 0)
        return NULL;
    int piece = AT_ONCE / rows > 0 ? AT_ONCE / rows : 1;
    longest = longest ? longest : capacity;
    longest = longest < piece ? longest : piece;
    rows = prompts->each_text > 1 ? rows * prompts->each_text : rows;
    return tune_get_frozen(flags, dev, rows, longest > prompts->texts ? longest : prompts->texts);
}

/* The other model must read the same tokens, and have as many logits and room for the answers. */
static int check_compared(const struct tune_flags *flags, const struct tune_tokenizer *tok, const char *folder, int capacity)
{
    char mine[TUNE_PATH_MAX];
    struct tune_model_config a, b;
    TRY(tune_get_model_config(flags, mine, &a));
    TRY(tune_model_config_read(&b, folder));
    if (a.vocabulary != b.vocabulary)
        return tune_error_usage("%s has a vocabulary of %d, and --model's is %d; only models of one vocabulary are compared", folder,
                                b.vocabulary, a.vocabulary);
    if (capacity > b.max_positions)
        return tune_error_usage("%s has a context of %d; prompt and answer take %d: give fewer --max-new-tokens, or --context", folder,
                                b.max_positions, capacity);
    struct tune_tokenizer *other = tune_tokenizer_open(folder);
    int status = other ? 0 : -1;
    for (int32_t i = 0; i < tune_tokenizer_size(tok) && status == 0; i++) {
        const char *x = tune_tokenizer_token(tok, i), *y = tune_tokenizer_token(other, i);
        if (!x != !y || (x && strcmp(x, y) != 0))
            status = tune_error_usage("%s has another tokenizer: token %d differs", folder, (int)i);
    }
    tune_tokenizer_free(other);
    return status;
}

int tune_get_compared_flags(const struct tune_flags *flags, const struct tune_tokenizer *tok, int capacity, struct tune_flags *other)
{
    char folder[TUNE_PATH_MAX];
    *other = *flags;
    other->model = flags->generate.compare_model;
    other->adapter = NULL;
    if (tune_get_model_folder(other, tok, folder) == 0 && check_compared(flags, tok, folder, capacity) == 0)
        return 0;
    return tune_error_prefix("--compare-model: ");
}

struct tune_model *tune_get_compared_model(const struct tune_flags *flags, struct tune_device *dev, const struct tune_tokenizer *tok,
                                           const struct tune_prompts *prompts)
{
    struct tune_flags other;
    int capacity;
    if (capacity_of(flags, prompts, &capacity) < 0 ||
        tune_get_compared_flags(flags, tok, capacity > prompts->texts ? capacity : prompts->texts, &other) < 0)
        return NULL;
    struct tune_model *m = tune_get_generation_model(&other, dev, prompts);
    if (!m)
        tune_error_prefix("--compare-model: ");
    return m;
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

int tune_get_answer_settings(const struct tune_flags *flags, const struct tune_generation_config *c, uint64_t *hash)
{
    char folder[TUNE_PATH_MAX], text[512];
    struct tune_model_identity model, adapter = {0}, other = {0};
    enum tune_dtype storage;
    const struct tune_generation_options *g = &flags->generate;
    TRY(tune_model_find(flags->model, folder));
    TRY(tune_model_identity(folder, &model));
    TRY(tune_get_frozen_storage(flags, folder, &storage));
    if (flags->adapter)
        TRY(tune_model_identity(flags->adapter, &adapter));
    if (g->compare_model) {
        TRY(tune_model_find(g->compare_model, folder));
        TRY(tune_model_identity(folder, &other));
        TRY(tune_model_find(flags->model, folder));
    }
    snprintf(text, sizeof text, "%llx %llx %llx %d %d %d %lld %d %d %.17g %d %.17g %.17g %.17g", (unsigned long long)model.fingerprint,
             (unsigned long long)adapter.fingerprint, (unsigned long long)other.fingerprint, (int)storage, (int)flags->dtype, c->rules.max_new_tokens,
             c->sampling.temperature > 0 ? (long long)flags->seed : 0,
             g->context, g->compare_base, c->sampling.temperature, c->sampling.top_k, c->sampling.top_p, c->sampling.min_p,
             c->sampling.repetition_penalty);
    *hash = tune_hash64(text, strlen(text), 0);
    TRY(tune_model_hash_settings(folder, hash));
    TRY(flags->adapter ? tune_model_hash_settings(flags->adapter, hash) : 0);
    *hash = g->stop ? tune_hash64(g->stop, strlen(g->stop), *hash) : *hash;
    *hash = tune_hash64(c->ends, (size_t)c->end_count * sizeof *c->ends, *hash);
    for (int i = 0; i < c->stop_count; i++)
        *hash = tune_hash64(c->stops[i], strlen(c->stops[i]) + 1, *hash);
    if (c->rules.max_length > 0)
        *hash = tune_hash64(&c->rules.max_length, sizeof c->rules.max_length, *hash);
    if (tune_token_rules_any(&c->rules))
        tune_token_rules_hash(&c->rules, hash);
    return 0;
}

/* Tell what of the model and the adapter was read otherwise than their configs say. */
static int tell_remarks(const struct tune_flags *flags, FILE *notes)
{
    char folder[TUNE_PATH_MAX];
    struct tune_model_config config;
    TRY(tune_model_find(flags->model, folder));
    TRY(tune_weights_remarks(folder, &config));
    for (const char *line = config.remarks; *line; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL))
        fprintf(notes, "# warning: model: %.*s\n", (int)strcspn(line, "\n"), line);
    if (!flags->adapter)
        return 0;
    struct tune_adapter_config adapter;
    TRY(tune_adapter_config_read(&adapter, flags->adapter));
    if (adapter.remark)
        fprintf(notes, "# warning: adapter: %s\n", adapter.remark);
    tune_adapter_config_free(&adapter);
    return 0;
}

/* Tell how prompts are written and tokens are chosen. */
static int tell(const struct tune_flags *flags, const struct tune_tokenizer *tok, const struct tune_generation_config *c,
                const char *told, const struct tune_prompts *prompts, FILE *notes)
{
    const struct tune_sampling_options *s = &c->sampling;
    char ends[512] = "", how[256] = "greedy", limit[64];
    for (int i = 0; i < c->end_count; i++)
        tune_append_item(ends, sizeof ends, "%.60s", tune_tokenizer_token(tok, c->ends[i]));
    if (s->temperature > 0)
        snprintf(how, sizeof how, "temperature %g, top-k %d, top-p %g, min-p %g, seed %lld", s->temperature, s->top_k, s->top_p,
                 s->min_p, (long long)flags->seed);
    if (s->repetition_penalty != 1)
        tune_append(how, sizeof how, ", repetition penalty %g", s->repetition_penalty);
    tune_blank_controls(ends);
    snprintf(limit, sizeof limit, c->rules.max_length ? "at %d tokens with the prompt" : "after %d tokens",
             c->rules.max_length ? c->rules.max_length : c->rules.max_new_tokens);
    if (tune_prompts_unanswered(prompts)) {
        fprintf(notes, "# rows         %s; they get no answer\n", tune_prompts_about(prompts));
        return tell_remarks(flags, notes);
    }
    fprintf(notes, "# prompts      %s\n# sampling     %s%s\n# ends with    %s, or %s\n", tune_prompts_about(prompts), how,
            c->said ? " (generation_config.json)" : "", *ends ? ends : "no token of the model", limit);
    if (*told)
        fprintf(notes, "# generation_config.json sets %s\n", told);
    if (*c->left_out)
        fprintf(notes, "# warning: generation_config.json: left out, as not supported here: %s\n", c->left_out);
    if (flags->generate.chat)
        fprintf(notes, "# commands     /undo, /system TEXT, /save FILE, /quit; /help has all\n");
    return tell_remarks(flags, notes);
}

static int columns_of(FILE *out)
{
    struct winsize w = {0};
    if (!out || !isatty(fileno(out)))
        return 0;
    return ioctl(fileno(out), TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

struct tune_answers *tune_get_answers(const struct tune_flags *flags, struct tune_tokenizer *tok, struct tune_prompts *prompts,
                                      FILE *text, FILE *notes)
{
    const struct tune_generation_options *g = &flags->generate;
    const char *stops[TUNE_STOPS];
    struct tune_generation_config c = {0};
    int count = 0, context = 0;
    char told[TUNE_CONFIG_TOLD], file[TUNE_PATH_MAX], *room = tune_zeroed(g->stop ? strlen(g->stop) + 2 : 1, 1, "--stop");
    int status = room && context_of(flags, &context) == 0 && tune_get_generation_config(flags, tok, &c, told) == 0 ? 0 : -1;
    for (; count < c.stop_count; count++)
        stops[count] = c.stops[count];
    if (status == 0 && g->stop)
        status = read_stops(g->stop, room, stops, &count);
    if (status == 0 && g->output && tune_file_is_same(g->output, g->input))
        status = tune_error_usage("--output is the file of --input; give another one");
    if (status == 0 && g->folder)
        status = tune_file_make_folder(g->folder) < 0 ? -1 : tune_path(file, "%s/" TUNE_RUN_ROWS, g->folder);
    int sides = g->compare_base || g->compare_model ? 2 : 1;
    bool lines = g->input && (sides == 1 || prompts->lines.write);
    struct tune_answers_options o = {.stops = stops, .stop_count = count, .ends = c.ends, .end_count = c.end_count,
                                     .max_new_tokens = c.rules.max_new_tokens, .max_length = c.rules.max_length,
                                     .context = context, .file = g->folder ? file : g->output,
                                     .lines = lines, .overwrite = g->overwrite, .sides = sides,
                                     .names = {g->compare_model ? g->compare_model : "base", g->compare_model ? flags->model : "tuned"},
                                     .text = text, .notes = notes, .width = columns_of(text), .stop_signal = flags->stop_signal};
    if (status == 0 && (o.file || o.lines))
        status = tune_get_answer_settings(flags, &c, &o.settings);
    if (status == 0)
        status = tell(flags, tok, &c, told, prompts, notes);
    struct tune_answers *a = status == 0 ? tune_answers_new(tok, prompts, &o) : NULL;
    if (a && g->folder && tune_run_folder_forget(g->folder) < 0) {
        tune_answers_free(a);
        a = NULL;
    }
    tune_generation_config_free(&c);
    free(room);
    return a;
}
