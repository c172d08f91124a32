/* get_scorecard.c - rows, metrics and labels to judge answers by, as the flags say. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/nearest.h"
#include "core/try.h"
#include "evaluators/result_files.h"
#include "evaluators/scorecard.h"
#include "evaluators/scorecard_parts.h"
#include "evaluators/trained.h"
#include "files/cjson.h"
#include "flags/find.h"
#include "flags/flags.h"
#include "generators/generation_config.h"
#include "generators/prompt_layout.h"
#include "generators/prompts.h"
#include "models/model.h"
#include "tokenizers/tokenizer.h"

/* ---- the folder for the results ---- */
static int check_folder(const struct tune_flags *flags)
{
    char dataset[TUNE_PATH_MAX];
    if (!flags->generate.folder)
        return 0;
    TRY(tune_dataset_find(flags->generate.input, dataset));
    return tune_result_check_folder(flags->generate.folder, TUNE_RESULT_ROWS, dataset);
}

/* ---- the rows ---- */
/* The rows with their answers, written as the prompts are. In a conversation only its last answer
 * is labelled, the expected one; formats without several answers refuse that. */
static struct tune_dataset *open_rows(const struct tune_flags *flags, struct tune_tokenizer *tok)
{
    char path[TUNE_PATH_MAX], folder[TUNE_PATH_MAX];
    struct tune_model_config config;
    struct tune_prompt_layout *l = tune_zeroed(1, sizeof *l, "rows");
    struct tune_dataset *d = NULL;
    if (l && tune_get_model_config(flags, folder, &config) == 0 &&
        tune_prompt_layout_settle(flags, tok, l, flags->generate.context ? flags->generate.context : config.max_positions) == 0 &&
        tune_dataset_find(flags->generate.input, path) == 0) {
        l->options.prompts = false;
        l->options.train_on = "last";
        d = tune_dataset_open(path, &l->options, tok);
        if (!d) {
            tune_error_clear();
            l->options.train_on = NULL;
            d = tune_dataset_open(path, &l->options, tok);
        }
    }
    tune_prompt_layout_free(l);
    return d;
}

static int check_count(const struct tune_scorecard *card)
{
    return tune_dataset_rows(card->data) == card->rows
               ? 0 : tune_error_set("%s: %" PRId64 " rows with answers, and %" PRId64 " prompts", card->path,
                                    tune_dataset_rows(card->data), card->rows);
}

/* Check that every row has an answer to compare with. */
static int check_answers(const struct tune_scorecard *card)
{
    char where[TUNE_DATASET_SOURCE_SIZE];
    const struct tune_dataset *d = tune_prompts_data(card->prompts);
    int64_t without = 0, first = 0;
    for (int64_t i = 0; i < card->rows && !card->unanswered; i++) {
        struct tune_asked asked;
        TRY(tune_prompts_asked(card->prompts, i, &asked));
        if (!asked.expected.data && without++ == 0)
            first = i;
        tune_asked_free(&asked);
    }
    return without == 0 ? 0 : tune_error_usage("%s: the row has no answer to compare with. Rows have a prompt and an answer (a "
                                               "text, or a list of equally good ones: docs/data-formats.md); %" PRId64 " of these %" PRId64 " rows of format %s have none",
                                               tune_dataset_source(d, first, where, sizeof where), without, card->rows,
                                               tune_dataset_format(d));
}

/* Find the longest text, and count rows that are special. */
static int look_at_rows(struct tune_scorecard *card, int *longest)
{
    for (int64_t i = 0; i < card->rows; i++) {
        struct tune_asked asked;
        int64_t row = tune_prompts_row(card->prompts, i);
        TRY(tune_dataset_get(card->data, row, &card->row));
        TRY(tune_prompts_asked(card->prompts, row, &asked));
        int references = 1 + asked.more_count;
        card->empty += !card->unanswered && tune_text_trim(asked.expected).size == 0;
        card->several += references > 1;
        card->references = i == 0 || card->references == references ? references : 0;
        tune_asked_free(&asked);
        for (int k = 0; k < tune_example_parts(&card->row); k++) {
            int64_t count;
            tune_example_part(&card->row, k, &count);
            *longest = count > *longest ? (int)count : *longest;
        }
        card->parts = tune_example_parts(&card->row);
        card->cut += card->row.full_count > card->row.count;
        card->unlabelled += !tune_example_has_label(&card->row);
    }
    return 0;
}

/* ---- rows that were trained on ---- */
/* Take the rows out of kept that the model `made` was trained on. */
static int leave_out(struct tune_scorecard *card, const struct tune_flags *flags, const char *made, int64_t *kept, int64_t *count, FILE *notes)
{
    struct tune_trained t;
    int64_t left = 0, before = *count;
    int status = tune_get_trained(flags, card->tok, made, &t);
    if (status == 0 && (!*t.run || *t.unknown)) {
        fprintf(notes, *t.run ? "# warning: which rows %s trained on is not known: %s\n" : "# trained on   not known: no run made %s\n",
                *t.run ? t.run : made, t.unknown);
    } else if (status == 0) {
        for (int64_t i = 0; i < before; i++)
            if (!tune_trained_has(&t, card->data, kept[i]))
                kept[left++] = kept[i];
        *count = left;
        card->trained = (card->trained > 0 ? card->trained : 0) + before - left;
        if (left < before)
            fprintf(notes, "# left out     %" PRId64 " of %" PRId64 " rows, which %s trained on; --keep-trained-rows takes them\n", before - left, before, t.run);
        if (left == 0)
            status = tune_error_usage("%s: no row is left; the model was trained on all of them (%s). Give other rows, or "
                                      "--keep-trained-rows", card->path, t.run);
    }
    if (status == 0 && *t.before)
        fprintf(notes, "# trained on   %s began with a model of %s; what that run was trained on is not looked for\n", t.run, t.before);
    tune_trained_free(&t);
    return status;
}

static int leave_out_trained(struct tune_scorecard *card, const struct tune_flags *flags, FILE *notes)
{
    int64_t count = card->rows;
    card->trained = -1;
    if (flags->scorecard.keep_trained)
        return 0;
    int64_t *kept = tune_zeroed((size_t)count, sizeof *kept, "%" PRId64 " rows", count);
    if (!kept)
        return -1;
    for (int64_t i = 0; i < count; i++)
        kept[i] = i;
    const char *const made[] = {flags->adapter, flags->model, flags->generate.compare_model};
    int status = 0;
    for (size_t i = 0; i < sizeof made / sizeof *made && status == 0; i++)
        if (made[i])
            status = leave_out(card, flags, made[i], kept, &count, notes);
    if (status == 0 && count < card->rows)
        status = tune_prompts_keep(card->prompts, kept, count);
    card->rows = tune_prompts_rows(card->prompts);
    free(kept);
    return status;
}

/* ---- labels ---- */
static int labels_of_text(struct tune_scorecard *card, const char *names)
{
    const char *name[TUNE_SCORE_LABELS];
    char *copy = strdup(names);
    int count = copy ? tune_name_split(copy, name, TUNE_SCORE_LABELS) : tune_error_no_memory("labels"), status = count < 0 ? -1 : 0;
    for (int i = 0; i < count && status == 0; i++) {
        status = tune_score_labels_add(card->labels, (struct tune_text){name[i], strlen(name[i])}) < 0 ? -1 : 0;
        if (status == 0 && tune_score_labels_count(card->labels) != i + 1)
            status = tune_error_usage("\"%.100s\" is there twice, but for case and punctuation", name[i]);
    }
    free(copy);
    return status == 0 ? 0 : tune_error_prefix("--labels: ");
}

/* The different answers of the rows, in their order. */
static int labels_of_rows(struct tune_scorecard *card)
{
    for (int64_t i = 0; i < card->rows; i++) {
        struct tune_asked asked;
        TRY(tune_prompts_asked(card->prompts, tune_prompts_row(card->prompts, i), &asked));
        int added = tune_score_labels_add(card->labels, tune_text_trim(asked.expected));
        for (int k = 0; k < asked.more_count && added >= 0; k++)
            added = tune_score_labels_add(card->labels, tune_text_trim(asked.more[k]));
        tune_asked_free(&asked);
        if (added < 0)
            return tune_error_prefix("labels are the different answers of the rows: ");
    }
    return 0;
}

/* Check that every reference is one of --labels, before a model answers. */
static int check_references(const struct tune_scorecard *card)
{
    for (int64_t i = 0; i < card->rows; i++) {
        struct tune_asked asked;
        int64_t row = tune_prompts_row(card->prompts, i);
        int at = 0;
        TRY(tune_prompts_asked(card->prompts, row, &asked));
        for (int k = 0; k <= asked.more_count && at >= 0; k++) {
            struct tune_text expected = tune_text_trim(k ? asked.more[k - 1] : asked.expected);
            at = tune_score_label_of(card->labels, expected);
            if (at == -1)
                tune_error_usage("--labels: row %" PRId64 ": the reference \"%.*s\" is none of the labels", row,
                                 expected.size < 100 ? (int)expected.size : 100, expected.data);
        }
        tune_asked_free(&asked);
        if (at < 0)
            return -1;
    }
    return 0;
}

/* Check that these rows have what a metric needs. */
static int check_metric(const struct tune_scorecard *card, const struct tune_score *m)
{
    if ((m->needs & TUNE_NEEDS_PAIR) && card->parts == 1)
        return tune_error_usage("--metrics: %s is of preference pairs, and these rows %s", m->name,
                                card->unanswered ? "are plain texts" : "have one answer each");
    if (!(m->needs & TUNE_NEEDS_ANSWER) || !card->unanswered)
        return 0;
    return tune_error_usage(card->parts > 1 ? "--metrics: %s judges an answer, and pairs get none. Give --metrics pairs,losses; or "
                                              "--format prompt-completion --columns completion=chosen, to have the prompts answered"
                                            : "--metrics: %s judges an answer, and plain texts get none. Give --metrics losses; or rows with a "
                                              "prompt and an answer (docs/data-formats.md)", m->name);
}

static int start_program(struct tune_scorecard *card, const struct tune_flags *flags)
{
    const char *command = flags->scorecard.program;
    if (!command)
        return 0;
    if (card->unanswered)
        return tune_error_usage("--metric-program judges answers, and %s get none; leave it out", card->parts > 1 ? "pairs" : "plain texts");
    if (!command[strspn(command, " \t")])
        return tune_error_usage("--metric-program is empty; give a command, such as ./score, or leave it out");
    card->program = tune_metric_program_new(command, flags->scorecard.program_s, card->sides);
    return card->program ? 0 : -1;
}

static int choose_metrics(struct tune_scorecard *card, const struct tune_flags *flags)
{
    bool labels = false;
    const char *names = flags->scorecard.metrics;
    if (card->unanswered && !strcmp(names, "usual"))
        names = card->parts > 1 ? "pairs,losses" : "losses";
    card->metrics = tune_score_list(names, card->metric, TUNE_CARD_METRICS - TUNE_PROGRAM_METRICS);
    if (card->metrics < 0)
        return tune_error_prefix("--metrics: ");
    for (int m = 0; m < card->metrics; m++) {
        labels = labels || (card->metric[m]->needs & TUNE_NEEDS_LABELS);
        TRY(check_metric(card, card->metric[m]));
    }
    if (flags->scorecard.labels && !labels)
        return tune_error_usage("--labels is for accuracy and macro_f1, and --metrics has neither");
    card->labels = labels ? tune_score_labels_new() : NULL;
    if (labels && !card->labels)
        return -1;
    if (labels)
        TRY(flags->scorecard.labels ? labels_of_text(card, flags->scorecard.labels) : labels_of_rows(card));
    if (flags->scorecard.labels)
        TRY(check_references(card));
    card->label_count = tune_score_labels_count(card->labels);
    return 0;
}

/* ---- what is judged, and how ---- */
static bool put_rules(cJSON *to, const struct tune_generation_config *c)
{
    const struct tune_sampling_options *s = &c->sampling;
    return tune_cjson_put_number(to, "temperature", s->temperature) && tune_cjson_put_whole(to, "top_k", s->top_k) &&
           tune_cjson_put_number(to, "top_p", s->top_p) && tune_cjson_put_number(to, "min_p", s->min_p) &&
           tune_cjson_put_number(to, "repetition_penalty", s->repetition_penalty) &&
           tune_cjson_put_whole(to, "max_new_tokens", c->rules.max_new_tokens) && tune_cjson_put_whole(to, "max_length", c->rules.max_length);
}

/* Options, the hash of the rows, and how answers are made by options and generation_config.json. */
static int describe(struct tune_scorecard *card, const struct tune_flags *flags)
{
    struct tune_generation_config c = {0};
    char hash[17];
    TRY(tune_get_generation_config(flags, card->tok, &c, NULL));
    snprintf(hash, sizeof hash, "%016" PRIx64, tune_dataset_hash(card->data));
    card->about = cJSON_CreateObject();
    cJSON *options = tune_flags_json(flags);
    cJSON_DeleteItemFromObject(options, "output"); /* the same answers are the same anywhere */
    cJSON_DeleteItemFromObject(options, "overwrite");
    bool good = tune_cjson_put(card->about, "options", options) && tune_cjson_put_text(card->about, "data_hash", hash) &&
                (!flags->adapter || tune_cjson_put_text(card->about, "adapter", flags->adapter)) &&
                put_rules(cJSON_AddObjectToObject(card->about, "generation"), &c);
    tune_generation_config_free(&c);
    return good ? 0 : tune_error_no_memory("a report");
}

struct tune_scorecard *tune_get_scorecard(const struct tune_flags *flags, struct tune_tokenizer *tok, struct tune_prompts *prompts,
                                          FILE *notes)
{
    const struct tune_generation_options *g = &flags->generate;
    struct tune_scorecard *card = tune_zeroed(1, sizeof *card, "a scorecard");
    int longest = 0;
    if (!card)
        return NULL;
    *card = (struct tune_scorecard){.prompts = prompts, .tok = tok, .sides = g->compare_base || g->compare_model ? 2 : 1,
                                    .names = {g->compare_base ? "tuned" : "model", g->compare_base ? "base" : "compared"},
                                    .model = flags->model, .other = g->compare_model,
                                    .folder = g->folder, .path = g->input, .seed = (uint64_t)flags->seed,
                                    .rows = tune_prompts_rows(prompts), .stop_signal = flags->stop_signal};
    card->unanswered = tune_prompts_unanswered(prompts);
    if (check_folder(flags) == 0 && check_answers(card) == 0)
        card->data = card->unanswered ? tune_prompts_data(prompts) : open_rows(flags, tok);
    if (card->data && check_count(card) == 0 && leave_out_trained(card, flags, notes) == 0 && look_at_rows(card, &longest) == 0 && choose_metrics(card, flags) == 0 &&
        start_program(card, flags) == 0 && describe(card, flags) == 0 &&
        tune_scorecard_new(card, tune_prompts_batch(prompts)) == 0) {
        tune_prompts_texts(prompts, longest, card->parts);
        tune_prompts_lines(prompts, &(struct tune_answer_lines){card, tune_scorecard_write, tune_scorecard_read});
        return card;
    }
    tune_scorecard_free(card);
    return NULL;
}
