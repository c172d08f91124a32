/* get_tasks.c - the questions of task files, as the flags say. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/adapter.h"
#include "core/array.h"
#include "core/clock.h"
#include "evaluators/result_files.h"
#include "evaluators/tasks/parts.h"
#include "evaluators/trained.h"
#include "files/cjson.h"
#include "files/folder.h"
#include "flags/find.h"
#include "flags/flags.h"
#include "generators/generation.h"
#include "losses/loss.h"
#include "models/cache.h"
#include "runs/run_folder.h"
#include "templates/chat_template.h"
#include "tokenizers/tokenizer.h"

/* The token that stands for an empty context: bos_token of tokenizer_config.json, else the end token. */
static int find_bos(struct tune_tasks *all, const char *folder)
{
    cJSON *json = tune_folder_has(folder, "tokenizer_config.json") ? tune_cjson_read_in(folder, "tokenizer_config.json", 64 << 20) : NULL;
    const cJSON *bos = cJSON_GetObjectItemCaseSensitive(json, "bos_token");
    bos = cJSON_IsObject(bos) ? cJSON_GetObjectItemCaseSensitive(bos, "content") : bos;
    int status = 0;
    if (cJSON_IsString(bos))
        all->bos_text = strdup(bos->valuestring);
    else
        status = tune_tokenizer_end(all->writer.tok, folder, &all->bos_text);
    cJSON_Delete(json);
    TRY(status);
    all->writer.bos_text = all->bos_text;
    all->writer.bos = all->bos_text ? tune_tokenizer_id(all->writer.tok, all->bos_text) : -1;
    if (all->writer.bos < 0)
        return tune_error_usage("%s: the tokenizer has neither a bos_token nor an eos_token (tokenizer_config.json); one of them stands for an "
                                "empty context in task files", folder);
    return 0;
}

/* Read generation_config.json. transformers obeys it where lm-eval answers greedily, but lengths are the task's. */
static int read_config(struct tune_tasks *all, const struct tune_flags *flags, struct tune_tokenizer *tok)
{
    TRY(tune_get_generation_config(flags, tok, &all->config, NULL));
    all->config.rules.max_length = all->config.rules.max_new_tokens = 0;
    return tune_get_answer_settings(flags, &all->config, &all->settings);
}

/* Options of rows that task files know otherwise. */
static int check_options(const struct tune_flags *flags)
{
    static const char *const others[] = {"metrics", "labels", "stop", "max-new-tokens", "max-length", "no-greedy", "format", "columns",
                                         "prompt-template", "keep-trained-rows"};
    if (flags->generate.input)
        return tune_error_usage("--dataset and --tasks exclude each other; give one of them");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (tune_flags_given(flags, strcmp(others[i], "no-greedy") ? others[i] : "greedy"))
            return tune_error_usage("--%s is for the rows of --dataset; with --tasks the task files say how to judge", others[i]);
    if (flags->generate.compare_base && flags->generate.compare_model)
        return tune_error_usage("--compare-base and --compare-model exclude each other; give one of them");
    if (flags->generate.compare_base && !flags->adapter)
        return tune_error_usage("--compare-base compares a model with and without an adapter; give --adapter");
    return 0;
}

static int prepare(struct tune_tasks *all, const struct tune_flags *flags, struct tune_tokenizer *tok)
{
    char folder[TUNE_PATH_MAX], *end = NULL;
    struct tune_model_config config;
    TRY(check_options(flags));
    if (all->folder)
        TRY(tune_result_check_folder(all->folder, TUNE_RESULT_TASKS, NULL));
    TRY(tune_get_model_config(flags, folder, &config));
    if (flags->generate.context > config.max_positions)
        return tune_error_usage("--context %d is above the model's of %d", flags->generate.context, config.max_positions);
    all->writer.tok = tok;
    all->writer.context = flags->generate.context ? flags->generate.context : config.max_positions;
    TRY(find_bos(all, folder));
    TRY(read_config(all, flags, tok));
    if (!flags->scorecard.chat)
        return 0;
    TRY(tune_tokenizer_end(tok, folder, &end));
    all->writer.chat = tune_chat_template_open(folder, flags->data.chat_template, end);
    free(end);
    return all->writer.chat ? 0 : tune_error_prefix("--apply-chat-template: ");
}

/* ---- sizes ---- */
static void measure_question(struct tune_tasks *all, const struct task *t, const struct task_question *q)
{
    int longest = 1;
    for (int c = 0; c < q->choice_count; c++)
        longest = q->choices[c].count > longest ? q->choices[c].count : longest;
    if (t->kind == TASK_ROLLING) {
        all->window = longest - 1 > all->window ? longest - 1 : all->window;
        return;
    }
    int behind = t->kind == TASK_GENERATE ? t->max_tokens : longest > 1 ? longest - 1 : 0;
    all->longest = q->context_count + behind > all->longest ? q->context_count + behind : all->longest;
    all->most_tokens = longest > all->most_tokens ? longest : all->most_tokens;
    all->most_choices = q->choice_count > all->most_choices ? q->choice_count : all->most_choices;
}

static int make_room(struct tune_tasks *all)
{
    all->pads = tune_zeroed((size_t)all->batch_size, sizeof *all->pads, "questions");
    all->numbers = tune_zeroed((size_t)all->batch_size, sizeof *all->numbers, "questions");
    all->zeros = tune_zeroed((size_t)all->batch_size, sizeof *all->zeros, "questions");
    all->questions = tune_zeroed((size_t)all->batch_size, sizeof(struct task_question *), "questions");
    return all->pads && all->numbers && all->zeros && all->questions ? 0 : -1;
}

/* ---- what is said ---- */
/* Rows of tasks are judged whether or not a run was trained on them. */
static void tell_trained(const struct tune_flags *flags, FILE *notes)
{
    const char *const made[] = {flags->adapter, flags->model, flags->generate.compare_model};
    char run[TUNE_PATH_MAX];
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        if (made[i] && tune_get_run_of(made[i], run) > 0)
            fprintf(notes, "# trained on   not looked for: rows of tasks that %s trained on are judged, too\n", run);
}

static void tell(const struct tune_tasks *all, const struct tune_flags *flags)
{
    FILE *notes = all->notes;
    char rules[TUNE_CONFIG_TOLD];
    bool answers = false;
    for (int i = 0; i < all->count; i++) {
        const struct task *t = &all->tasks[i];
        fprintf(notes, "# task         %s: %" PRId64 " of %" PRId64 " rows of %s", t->name, t->count, t->in_file, t->rows_path);
        if (t->shots > 0)
            fprintf(notes, "; %" PRId64 " examples, %s of %s", t->shots, t->first_n ? "the first" : "drawn", t->examples_path);
        if (t->repeats > 1)
            fprintf(notes, "; repeats is %" PRId64 ", and answers are greedy, so each question is asked once", t->repeats);
        fprintf(notes, "%s\n", t->fixed_shots ? "; num_fewshot is 0 in the file, so --num-fewshot does not hold" : "");
        answers = answers || t->kind == TASK_GENERATE;
    }
    fprintf(notes, "# prompts      %s; answers are greedy\n", all->chat ? "by the model's chat template (--no-apply-chat-template)"
                                                                       : "without a chat template (--apply-chat-template)");
    if (all->sides > 1)
        fprintf(notes, "# compared     with %s\n", all->other ? all->other : "the model without its adapter");
    tune_generation_config_told(&all->config, rules, sizeof rules);
    if (answers && all->config.sampling.repetition_penalty != 1)
        fprintf(notes, "# answers      with repetition penalty %g%s\n", all->config.sampling.repetition_penalty,
                all->config.said ? " (generation_config.json)" : "");
    if (answers && *rules)
        fprintf(notes, "# generation_config.json sets %s\n", rules);
    if (answers && *all->config.left_out)
        fprintf(notes, "# warning: generation_config.json: left out, as not supported here: %s\n", all->config.left_out);
    tell_trained(flags, notes);
}

/* Refuse a folder in which a file of rows would be lost. */
static int check_data(const struct tune_tasks *all)
{
    static const char *const written[] = {TUNE_RUN_ROWS, TUNE_RUN_ROWS_CSV, TUNE_RUN_FIGURE, TUNE_RUN_REPORT};
    char path[TUNE_PATH_MAX];
    for (size_t k = 0; k < sizeof written / sizeof *written && all->folder; k++) {
        TRY(tune_path(path, "%s/%s", all->folder, written[k]));
        for (int i = 0; i < all->count; i++)
            if (tune_file_is_same(path, all->tasks[i].rows_path) ||
                (all->tasks[i].shots > 0 && tune_file_is_same(path, all->tasks[i].examples_path)))
                return tune_error_usage("--output: %s is a file of the task's rows, and would be replaced; give another folder", path);
    }
    return 0;
}

static int fill(struct tune_tasks *all, const struct tune_flags *flags, struct tune_tokenizer *tok)
{
    if (flags->scorecard.program)
        return tune_error_usage("--metric-program judges answers to the rows of --dataset, and task files have metrics of their own; leave "
                                "one of them out");
    TRY(prepare(all, flags, tok));
    if (tune_tasks_load(all, flags->scorecard.tasks, flags->scorecard.shots) < 0)
        return -1;
    for (int i = 0; i < all->count; i++) {
        TRY(tune_task_data_open(&all->tasks[i], flags->scorecard.tasks_data));
        TRY(tune_task_questions(&all->tasks[i], &all->writer, flags->data.limit));
        for (int64_t k = 0; k < all->tasks[i].count; k++)
            measure_question(all, &all->tasks[i], &all->tasks[i].questions[k]);
    }
    TRY(make_room(all));
    TRY(check_data(all));
    tell(all, flags);
    return tune_tasks_open_lines(all, flags->generate.overwrite);
}

struct tune_tasks *tune_get_tasks(const struct tune_flags *flags, struct tune_tokenizer *tok, FILE *notes)
{
    const struct tune_generation_options *g = &flags->generate;
    struct tune_tasks *all = tune_zeroed(1, sizeof *all, "tasks");
    if (!all)
        return NULL;
    *all = (struct tune_tasks){.batch_size = g->batch_size, .most_choices = 1, .folder = g->folder, .model = flags->model,
                               .other = g->compare_model, .sides = g->compare_base || g->compare_model ? 2 : 1,
                               .names = {g->compare_base ? "tuned" : "model", g->compare_base ? "base" : "compared"},
                               .chat = flags->scorecard.chat, .seed = (uint64_t)flags->seed, .notes = notes,
                               .stop_signal = flags->stop_signal};
    if (fill(all, flags, tok) == 0)
        return all;
    tune_tasks_free(all);
    return NULL;
}

/* ---- models ---- */
/* A model with room for the questions and texts, and its cache. */
static int open_model(const struct tune_tasks *all, const struct tune_flags *flags, struct tune_device *dev, struct task_model *m)
{
    enum { AT_ONCE = 1024 };
    int texts = all->window ? tune_tasks_windows(all) : 1, rows = tune_tasks_cache_rows(all);
    int64_t tokens = (int64_t)all->longest * all->batch_size;
    tokens = tokens < AT_ONCE ? tokens : AT_ONCE; /* of prompts at a time */
    tokens = tokens > (int64_t)rows * all->most_tokens ? tokens : (int64_t)rows * all->most_tokens;
    int64_t each = (tokens + texts - 1) / texts > all->window ? (tokens + texts - 1) / texts : all->window;
    each = each < all->writer.context ? each : all->writer.context;
    int64_t wanted = (tokens + each - 1) / each; /* rows of them */
    m->model = tune_get_frozen(flags, dev, wanted > texts ? (int)wanted : texts, (int)each);
    if (m->model && all->longest)
        m->cache = tune_cache_new(m->model, rows, all->longest);
    if (m->model && all->window)
        m->loss = tune_loss_new(m->model, false);
    return m->model && (m->cache || !all->longest) && (m->loss || !all->window) ? 0 : -1;
}

int tune_get_tasks_models(const struct tune_flags *flags, struct tune_device *dev, struct tune_tokenizer *tok, struct tune_tasks *all)
{
    struct tune_flags other;
    int needed = all->longest > all->window ? all->longest : all->window;
    all->began_s = all->told_s = tune_clock_s();
    if (!all->other)
        return open_model(all, flags, dev, &all->models[0]);
    TRY(tune_get_compared_flags(flags, tok, needed, &other));
    TRY(open_model(all, flags, dev, &all->models[0]));
    return open_model(all, &other, dev, &all->models[1]) == 0 ? 0 : tune_error_prefix("--compare-model: ");
}
