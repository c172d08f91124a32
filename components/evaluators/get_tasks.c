/* get_tasks.c - the questions of task files, as the flags say. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/adapter.h"
#include "core/array.h"
#include "evaluators/tasks/parts.h"
#include "files/cjson.h"
#include "files/folder.h"
#include "flags/find.h"
#include "flags/flags.h"
#include "generators/generation_config.h"
#include "models/model.h"
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

static int find_ends(struct tune_tasks *all, const struct tune_flags *flags, struct tune_tokenizer *tok)
{
    struct tune_generation_config c = {0};
    int status = tune_get_generation_config(flags, tok, &c, NULL);
    for (int i = 0; i < c.end_count && i < (int)(sizeof all->ends / sizeof *all->ends) && status == 0; i++)
        all->ends[all->end_count++] = c.ends[i];
    tune_generation_config_free(&c);
    return status;
}

static int prepare(struct tune_tasks *all, const struct tune_flags *flags, struct tune_tokenizer *tok)
{
    char folder[TUNE_PATH_MAX], *end = NULL;
    struct tune_model_config config;
    if (flags->generate.input)
        return tune_error_usage("--dataset and --tasks exclude each other; give one of them");
    if (flags->generate.compare_base || flags->generate.compare_model)
        return tune_error_usage("--tasks judges one model at a time; run it once for each");
    TRY(tune_get_model_config(flags, folder, &config));
    if (flags->generate.context > config.max_positions)
        return tune_error_usage("--context %d is above the model's of %d", flags->generate.context, config.max_positions);
    all->writer.tok = tok;
    all->writer.context = flags->generate.context ? flags->generate.context : config.max_positions;
    TRY(find_bos(all, folder));
    TRY(find_ends(all, flags, tok));
    if (!flags->scorecard.chat)
        return 0;
    TRY(tune_tokenizer_end(tok, folder, &end));
    all->writer.chat = tune_chat_template_open(folder, flags->data.chat_template, end);
    free(end);
    return all->writer.chat ? 0 : tune_error_prefix("--apply-chat-template: ");
}

/* ---- sizes ---- */
static void measure(struct tune_tasks *all)
{
    for (int i = 0; i < all->count; i++)
        for (int64_t k = 0; k < all->tasks[i].count; k++) {
            const struct task_question *q = &all->tasks[i].questions[k];
            int longest = 1;
            for (int c = 0; c < q->choice_count; c++)
                longest = q->choices[c].count > longest ? q->choices[c].count : longest;
            int behind = all->tasks[i].kind == TASK_GENERATE ? all->tasks[i].max_tokens : longest > 1 ? longest - 1 : 0;
            all->longest = q->context_count + behind > all->longest ? q->context_count + behind : all->longest;
            all->most_tokens = longest > all->most_tokens ? longest : all->most_tokens;
            all->most_choices = q->choice_count > all->most_choices ? q->choice_count : all->most_choices;
        }
}

static int make_room(struct tune_tasks *all)
{
    all->pads = tune_zeroed((size_t)all->batch_size, sizeof *all->pads, "questions");
    all->numbers = tune_zeroed((size_t)all->batch_size, sizeof *all->numbers, "questions");
    all->zeros = tune_zeroed((size_t)all->batch_size, sizeof *all->zeros, "questions");
    return all->pads && all->numbers && all->zeros ? 0 : -1;
}

/* ---- what is said, and where lines go ---- */
static void tell(const struct tune_tasks *all, FILE *notes)
{
    for (int i = 0; i < all->count; i++) {
        const struct task *t = &all->tasks[i];
        fprintf(notes, "# task         %s: %" PRId64 " of %" PRId64 " rows of %s", t->name, t->count, t->in_file, t->rows_path);
        if (t->shots > 0)
            fprintf(notes, "; %" PRId64 " examples, %s of %s", t->shots, t->first_n ? "the first" : "drawn", t->examples_path);
        fprintf(notes, "%s\n", t->fixed_shots ? "; num_fewshot is 0 in the file, so --num-fewshot does not hold" : "");
    }
    fprintf(notes, "# prompts      %s; answers are greedy\n", all->chat ? "by the model's chat template (--no-apply-chat-template)"
                                                                       : "without a chat template (--apply-chat-template)");
}

static int open_rows(struct tune_tasks *all, bool overwrite)
{
    char path[TUNE_PATH_MAX];
    if (!all->folder)
        return 0;
    TRY(tune_file_make_folder(all->folder));
    TRY(tune_path(path, "%s/" TUNE_RUN_ROWS, all->folder));
    if (!overwrite && tune_file_exists(path))
        return tune_error_usage("%s is there already; task files begin anew: give --overwrite, or another --output", path);
    all->rows_file = fopen(path, "w");
    return all->rows_file ? 0 : tune_error_set("%s: %s", path, strerror(errno));
}

static int fill(struct tune_tasks *all, const struct tune_flags *flags, struct tune_tokenizer *tok, FILE *notes)
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
    }
    measure(all);
    TRY(make_room(all));
    TRY(open_rows(all, flags->generate.overwrite));
    tell(all, notes);
    return 0;
}

struct tune_tasks *tune_get_tasks(const struct tune_flags *flags, struct tune_tokenizer *tok, FILE *notes)
{
    struct tune_tasks *all = tune_zeroed(1, sizeof *all, "tasks");
    if (!all)
        return NULL;
    *all = (struct tune_tasks){.batch_size = flags->generate.batch_size, .most_choices = 1, .folder = flags->generate.folder, .model = flags->model,
                               .chat = flags->scorecard.chat, .stop_signal = flags->stop_signal};
    if (fill(all, flags, tok, notes) == 0)
        return all;
    tune_tasks_free(all);
    return NULL;
}

struct tune_model *tune_get_tasks_model(const struct tune_flags *flags, struct tune_device *dev, const struct tune_tasks *all)
{
    enum { AT_ONCE = 1024 };
    int rows = tune_tasks_cache_rows(all), piece = all->longest * all->batch_size;
    piece = piece < AT_ONCE ? piece : AT_ONCE;
    piece = (piece + rows - 1) / rows;
    return tune_get_frozen(flags, dev, rows, piece > all->most_tokens ? piece : all->most_tokens);
}
