/* get_answering.c - draw the rows that a model answers while it trains, and choose their metrics. */
#include "evaluators/get_answering.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/random.h"
#include "core/try.h"
#include "flags/find.h"
#include "flags/flags.h"
#include "generators/prompts.h"
#include "models/model.h"

enum { STREAM = 0x616e73 }; /* of the draws of rows */

/* ---- metrics ---- */
/* Loss and perplexity of all rows are logged anyway. */
static int choose_metrics(struct tune_answering *a, const struct tune_flags *flags)
{
    const struct tune_score *found[TUNE_ANSWERING_METRICS];
    int count = tune_score_list(flags->eval.metrics, found, TUNE_ANSWERING_METRICS);
    TRY(count);
    for (int i = 0; i < count; i++) {
        if (found[i]->needs & TUNE_NEEDS_PAIR)
            return tune_error_usage("%s is of preference pairs, and these rows have one answer each", found[i]->name);
        if (!(found[i]->needs & TUNE_NEEDS_LOSS))
            a->metric[a->metrics++] = found[i];
        a->without_bytes = a->without_bytes || !strcmp(found[i]->name, "bits_per_byte");
    }
    return a->metrics > 0 ? 0 : tune_error_usage("\"%s\" names no metric of answers. loss and perplexity are measured anyway, "
                                                 "and bits_per_byte by evaluate", flags->eval.metrics);
}

static bool needs_labels(const struct tune_answering *a)
{
    bool needs = false;
    for (int m = 0; m < a->metrics; m++)
        needs = needs || (a->metric[m]->needs & TUNE_NEEDS_LABELS);
    return needs;
}

/* The different answers of the rows, in their order. */
static int find_labels(struct tune_answering *a)
{
    if (!needs_labels(a))
        return 0;
    a->labels = tune_score_labels_new();
    for (int64_t i = 0; a->labels && i < tune_prompts_rows(a->greedy.prompts); i++) {
        struct tune_asked asked;
        TRY(tune_prompts_asked(a->greedy.prompts, tune_prompts_row(a->greedy.prompts, i), &asked));
        int added = tune_score_labels_add(a->labels, asked.expected);
        tune_asked_free(&asked);
        if (added < 0)
            return tune_error_prefix("labels are the different answers of the rows: ");
    }
    return a->labels ? 0 : -1;
}

/* ---- rows ---- */
static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int has_answer(const struct tune_dataset *data, int64_t row)
{
    struct tune_asked asked;
    TRY(tune_dataset_asked(data, row, &asked));
    int has = asked.expected.data && tune_text_trim(asked.expected).size > 0;
    tune_asked_free(&asked);
    return has;
}

/* Draw rows of one file, each once, until there are enough with an answer. */
static int draw(struct tune_answered *s, const struct tune_flags *flags, struct tune_dataset *data, const int64_t *rows, int64_t count,
                int64_t *drawn)
{
    int64_t most = flags->eval.answers > 0 && flags->eval.answers < count ? flags->eval.answers : count;
    s->evaluated = count;
    for (int64_t i = 0; i < count && s->rows < most; i++) {
        int64_t row = rows[tune_random_permute_wide((uint64_t)flags->seed, STREAM, (tune_wide)count, (tune_wide)i)];
        int has = has_answer(data, row);
        TRY(has);
        if (has)
            drawn[s->rows++] = row;
        s->unanswered += !has;
    }
    qsort(drawn, (size_t)s->rows, sizeof *drawn, by_number);
    return 0;
}

/* Draw rows of each file. drawn has room for all. */
static int draw_all(struct tune_answering *a, const struct tune_flags *flags, struct tune_dataset *data, const struct tune_evaluated *of,
                    int64_t *drawn)
{
    struct tune_answered *all = &a->sets[0];
    int64_t first = 0, own, rows = 0;
    for (int k = 0; first < of->count; k++) {
        int64_t next = first;
        int file = tune_dataset_set_of(of->data, of->rows[first], &own);
        struct tune_answered *s = a->set_count > 1 ? &a->sets[1 + file] : all;
        while (next < of->count && tune_dataset_set_of(of->data, of->rows[next], &own) == file)
            next++;
        TRY(draw(s, flags, data, of->rows + first, next - first, drawn + rows));
        rows += s->rows;
        if (s != all && s->rows > 0) { /* of a file that is not answered, a line of its own tells */
            all->evaluated += s->evaluated;
            all->unanswered += s->unanswered;
        }
        first = next;
    }
    all->rows = rows;
    return 0;
}

/* ---- all of it ---- */
static int make_sets(struct tune_answering *a, const struct tune_evaluated *of)
{
    int files = tune_dataset_sets(of->data), count = files > 1 ? files + 1 : 1;
    a->sets = tune_zeroed((size_t)count, sizeof *a->sets, "answers");
    a->set_count = a->sets ? count : 0;
    for (int k = 0; k < a->set_count; k++) {
        snprintf(a->sets[k].name, sizeof a->sets[k].name, "%s", k > 0 ? of->names[k - 1] : of->name);
        a->sets[k].sums = tune_zeroed((size_t)a->metrics * TUNE_SCORE_SUMS, sizeof(double), "metrics of answers");
        if (!a->sets[k].sums)
            return -1;
    }
    return a->sets ? 0 : -1;
}

/* The rows must be those of a file, as it can be read again for its prompts. *pieces: they are parts of long texts. */
static struct tune_dataset *open_prompts(const struct tune_flags *flags, struct tune_tokenizer *tok, const struct tune_evaluated *of, int context,
                                         bool *pieces)
{
    bool named = tune_dataset_stamp(of->data) && (of->which != TUNE_ROWS_TRAINING || flags->dataset);
    struct tune_dataset *data = named ? tune_get_asked_dataset(flags, of->which, context, tok) : NULL;
    *pieces = false;
    if (!named || (data && tune_dataset_fingerprint(data) != tune_dataset_fingerprint(of->data))) {
        tune_dataset_free(data);
        tune_error_usage("the rows are not those of --dataset but the program's own, and prompts are read from a file; leave it out");
        return NULL;
    }
    if (!data || tune_dataset_rows(data) == tune_dataset_rows(of->data))
        return data;
    tune_dataset_free(data);
    *pieces = true;
    tune_error_usage("the rows are pieces of long texts, without an answer to compare with; leave it out, or give rows of prompts and answers");
    return NULL;
}

static int fill(struct tune_answering *a, const struct tune_flags *flags, struct tune_model *m, struct tune_dataset *train,
                struct tune_tokenizer *tok, const struct tune_evaluated *of)
{
    int context = tune_model_config(m)->max_positions;
    TRY(choose_metrics(a, flags));
    TRY(make_sets(a, of));
    bool pieces, general = of->which == TUNE_ROWS_GENERAL; /* which need not have answers */
    struct tune_dataset *data = open_prompts(flags, tok, of, context, &pieces);
    if (pieces && general) {
        tune_error_clear();
        return 0;
    }
    int64_t *drawn = data ? tune_zeroed((size_t)of->count, sizeof *drawn, "rows to answer") : NULL;
    int status = drawn ? draw_all(a, flags, data, of, drawn) : -1;
    struct tune_prompts *prompts = NULL;
    if (status == 0 && a->sets[0].rows > 0)
        prompts = tune_prompts_open_some(data, drawn, a->sets[0].rows, TUNE_EVAL_AT_ONCE, context, flags->eval.answer_tokens);
    else
        tune_dataset_free(data);
    free(drawn);
    TRY(status);
    if (a->sets[0].rows == 0)
        return general ? 0 : tune_error_usage("the rows have no answer to compare with; give rows with a prompt and an answer "
                                                "(docs/data-formats.md), or leave it out");
    TRY(prompts ? 0 : -1);
    a->data = data;
    TRY(tune_get_greedy(&a->greedy, flags, m, train, tok, prompts, flags->eval.answer_tokens, "eval"));
    return find_labels(a);
}

struct tune_answering *tune_get_answering(const struct tune_flags *flags, struct tune_model *m, struct tune_dataset *train,
                                          struct tune_tokenizer *tok, const struct tune_evaluated *of)
{
    struct tune_answering *a = tune_zeroed(1, sizeof *a, "answers");
    if (a && fill(a, flags, m, train, tok, of) == 0)
        return a;
    tune_answering_free(a);
    tune_error_prefix("--eval-metrics: ");
    return NULL;
}
