/* scorecard_report.c - the table of a scorecard, its confusion matrix, and the report. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/print.h"
#include "core/try.h"
#include "core/version.h"
#include "evaluators/result_files.h"
#include "evaluators/scorecard_parts.h"
#include "files/cjson.h"
#include "generators/answers.h"
#include "generators/prompts.h"
#include "metrics/estimates.h"
#include "runs/run_folder.h"
#include "views/table.h"

enum { SHOWN_ROWS = 10 };

static int judge(const struct tune_scorecard *card, int m, struct tune_verdict *v)
{
    v->metric = card->metric[m];
    for (int s = 0; s < card->sides; s++)
        TRY(tune_score_estimate(v->metric, card->sums[s][m], card->rows, card->label_count, card->seed, &v->side[s]));
    return card->sides == 1 ? 0 : tune_score_compare(v->metric, card->sums[1][m], card->sums[0][m], card->rows, card->label_count,
                                                     card->seed, &v->compared);
}

/* ---- the table ---- */
static void add_interval(struct tune_table *t, double low, double high)
{
    char text[64] = "";
    if (isfinite(low) && isfinite(high))
        snprintf(text, sizeof text, "%.4g to %.4g", low, high);
    tune_table_text(t, text);
}

static void add_row(struct tune_table *t, const struct tune_scorecard *card, const struct tune_verdict *v)
{
    char text[96];
    tune_table_text(t, v->metric->name);
    tune_table_number(t, v->side[0].value, "%.4g");
    add_interval(t, v->side[0].low, v->side[0].high);
    if (card->sides > 1) {
        tune_table_number(t, v->side[1].value, "%.4g");
        tune_table_number(t, v->compared.difference.value, "%+.4g");
        add_interval(t, v->compared.difference.low, v->compared.difference.high);
        snprintf(text, sizeof text, "%" PRId64 "/%" PRId64 "/%" PRId64, v->compared.wins, v->compared.losses, v->compared.ties);
        tune_table_text(t, v->metric->better ? text : "");
        snprintf(text, sizeof text, v->compared.p < 0.001 ? "%.1e" : "%.3f", v->compared.p);
        tune_table_text(t, isnan(v->compared.p) ? "" : text);
    }
    tune_table_text(t, v->metric->unit);
}

static int print_table(const struct tune_scorecard *card, const struct tune_verdict *v, FILE *out)
{
    static const char *const alone[] = {"metric", "value", "95 % interval", "unit"};
    const char *both[] = {"metric", card->names[0], "95 % interval", card->names[1], "difference", "its 95 % interval",
                          "better/worse/same", "p", "unit"};
    struct tune_table *t = card->sides > 1 ? tune_table_new(both, 9) : tune_table_new(alone, 4);
    if (!t)
        return -1;
    for (int m = 0; m < card->metrics; m++)
        add_row(t, card, &v[m]);
    int status = tune_table_print(t, "table", 0, "", out);
    tune_table_free(t);
    return status;
}

/* Say which rules bleu and chrf follow, and how intervals and p were computed. */
static void explain(const struct tune_scorecard *card, const struct tune_verdict *v, FILE *out)
{
    bool drawn = false, mcnemar = false, other = false;
    for (int m = 0; m < card->metrics; m++) {
        char signature[200];
        if (*tune_score_signature(v[m].metric, card->references, signature, sizeof signature))
            fprintf(out, "# %s|%s\n", v[m].metric->name, signature);
        drawn = drawn || v[m].side[0].bootstrapped;
        mcnemar = mcnemar || v[m].compared.mcnemar;
        other = other || !v[m].compared.mcnemar;
    }
    if (drawn || card->sides > 1)
        fprintf(out, "# intervals of %s are percentiles of %d bootstrap draws of the rows, seed %" PRIu64 "\n",
                card->sides > 1 ? "differences and corpus metrics" : "corpus metrics", TUNE_DRAWS, card->seed);
    if (card->sides > 1)
        fprintf(out, "# p: how likely such a difference is between equal models%s%s\n", mcnemar ? "; McNemar's test where a row is right or wrong" : "",
                other ? mcnemar ? ", else by the draws" : ", by the draws" : "");
}

/* Print the numbers of the rows on which only one model is right, by metric m. better: the model that
 * is judged; else the other one. */
static void print_rows(const struct tune_scorecard *card, int m, bool better, FILE *out)
{
    int64_t count = 0;
    for (int64_t i = 0; i < card->rows; i++) {
        bool right = card->sums[0][m][2 * i] > 0, other = card->sums[1][m][2 * i] > 0;
        if (right == other || right != better)
            continue;
        if (count < SHOWN_ROWS)
            fprintf(out, "%s%" PRId64, count ? ", " : "", tune_prompts_row(card->prompts, i));
        count++;
    }
    if (count == 0)
        fprintf(out, "none");
    else if (count > SHOWN_ROWS)
        fprintf(out, ", ... (%" PRId64 ")", count);
}

static void print_different_rows(const struct tune_scorecard *card, FILE *out)
{
    for (int m = 0; m < card->metrics; m++)
        if (card->metric[m]->right_or_wrong && (card->metric[m]->needs & (TUNE_NEEDS_REFERENCE | TUNE_NEEDS_PAIR) || !card->metric[m]->row)) {
            fprintf(out, "# %s: rows right only with %s: ", card->metric[m]->name, card->names[0]);
            print_rows(card, m, true, out);
            fprintf(out, "; only with %s: ", card->names[1]);
            print_rows(card, m, false, out);
            fprintf(out, "\n");
        }
}

int64_t *tune_scorecard_confusion(const struct tune_scorecard *card, int side)
{
    int n = card->label_count;
    int64_t *counts = tune_zeroed((size_t)n * (size_t)(n + 1), sizeof *counts, "a confusion matrix");
    if (counts)
        tune_score_confusion(card->truth[side], card->answered[side], card->rows, n, counts);
    return counts;
}

static int print_confusion(const struct tune_scorecard *card, int side, FILE *out)
{
    int n = card->label_count;
    const char *columns[TUNE_SCORE_LABELS + 2] = {"label \\ answer"};
    int64_t *counts = tune_scorecard_confusion(card, side);
    for (int i = 0; i < n; i++)
        columns[i + 1] = tune_score_label(card->labels, i);
    columns[n + 1] = "(other)";
    struct tune_table *t = counts ? tune_table_new(columns, n + 2) : NULL;
    int status = t ? 0 : -1;
    for (int i = 0; i < n && t; i++) {
        tune_table_text(t, columns[i + 1]);
        for (int k = 0; k <= n; k++)
            tune_table_number(t, (double)counts[i * (n + 1) + k], "%.0f");
    }
    if (t) {
        fprintf(out, "\nconfusion matrix%s%s\n", card->sides > 1 ? " of " : "", card->sides > 1 ? card->names[side] : "");
        status = tune_table_print(t, "table", 0, "", out);
    }
    tune_table_free(t);
    free(counts);
    return status;
}

/* ---- the report ---- */
static bool put_estimate(cJSON *to, const char *before, const char *name, const struct tune_estimate *e)
{
    return tune_result_put(to, before, name, "", e->value) && tune_result_put(to, before, name, "_low", e->low) &&
           tune_result_put(to, before, name, "_high", e->high) && tune_result_put(to, before, name, "_error", e->error);
}

static bool put_rows(cJSON *to, const struct tune_scorecard *card, int m, bool better)
{
    cJSON *list = cJSON_AddArrayToObject(to, card->metric[m]->name);
    for (int64_t i = 0; i < card->rows && list; i++) {
        bool right = card->sums[0][m][2 * i] > 0, other = card->sums[1][m][2 * i] > 0;
        if (right != other && right == better && !cJSON_AddItemToArray(list, cJSON_CreateNumber((double)tune_prompts_row(card->prompts, i))))
            return false;
    }
    return list;
}

static bool put_comparison(cJSON *to, const struct tune_scorecard *card, const struct tune_verdict *v)
{
    cJSON *better = cJSON_AddObjectToObject(to, "better_rows"), *worse = cJSON_AddObjectToObject(to, "worse_rows");
    bool good = better && worse;
    for (int m = 0; m < card->metrics && good; m++) {
        const char *name = v[m].metric->name;
        const struct tune_comparison *c = &v[m].compared;
        good = put_estimate(to, "base_", name, &v[m].side[1]) && put_estimate(to, "difference_", name, &c->difference) &&
               tune_result_put(to, "wins_", name, "", (double)c->wins) && tune_result_put(to, "losses_", name, "", (double)c->losses) &&
               tune_result_put(to, "ties_", name, "", (double)c->ties) && tune_result_put(to, "p_", name, "", c->p);
        if (good && v[m].metric->right_or_wrong)
            good = put_rows(better, card, m, true) && put_rows(worse, card, m, false);
    }
    return good;
}

static bool put_confusion(cJSON *to, const struct tune_scorecard *card)
{
    int n = card->label_count;
    cJSON *labels = cJSON_AddArrayToObject(to, "labels");
    for (int i = 0; i < n; i++)
        cJSON_AddItemToArray(labels, cJSON_CreateString(tune_score_label(card->labels, i)));
    for (int s = 0; s < card->sides; s++) {
        cJSON *rows = cJSON_AddArrayToObject(to, s ? "base_confusion" : "confusion");
        int64_t *counts = tune_scorecard_confusion(card, s);
        for (int i = 0; i < n && counts; i++) {
            cJSON *row = cJSON_CreateArray();
            for (int k = 0; k <= n; k++)
                cJSON_AddItemToArray(row, cJSON_CreateNumber((double)counts[i * (n + 1) + k]));
            cJSON_AddItemToArray(rows, row);
        }
        free(counts);
        if (cJSON_GetArraySize(rows) != n)
            return false;
    }
    return cJSON_GetArraySize(labels) == n;
}

static int write_report(const struct tune_scorecard *card, const struct tune_verdict *v, double speed)
{
    const char *nonce = getenv("TUNE_NONCE");
    char signature[200];
    cJSON *json = cJSON_CreateObject();
    bool good = tune_cjson_put_text(json, "version", TUNE_VERSION) && tune_cjson_put_text(json, "status", "finished") &&
                (!nonce || tune_cjson_put_text(json, "nonce", nonce)) && tune_cjson_put_text(json, "dataset", card->path) &&
                tune_cjson_put_text(json, "model", card->model) &&
                tune_cjson_put_whole(json, "rows", card->rows) &&
                tune_cjson_put_whole(json, "rows_cut", card->cut) &&
                (card->several == 0 || tune_cjson_put_whole(json, "rows_with_several_references", card->several)) &&
                (card->empty == 0 || tune_cjson_put_whole(json, "rows_with_empty_reference", card->empty)) &&
                (card->trained < 0 || tune_cjson_put_whole(json, "rows_trained_on", card->trained)) &&
                tune_result_put(json, "", "answer_tokens_per_second", "", speed);
    for (const cJSON *what = card->about->child; what && good; what = what->next)
        good = tune_cjson_put(json, what->string, cJSON_Duplicate(what, true));
    for (int m = 0; m < card->metrics && good; m++) {
        good = put_estimate(json, "", v[m].metric->name, &v[m].side[0]);
        if (good && *tune_score_signature(v[m].metric, card->references, signature, sizeof signature)) {
            char key[64];
            snprintf(key, sizeof key, "%s_signature", v[m].metric->name);
            good = tune_cjson_put_text(json, key, signature);
        }
    }
    if (good && card->sides > 1)
        good = tune_cjson_put_text(json, "compared_with", card->other ? card->other : card->names[1]) && put_comparison(json, card, v);
    if (good && card->labels)
        good = put_confusion(json, card);
    int status = tune_cjson_write(card->folder, TUNE_RUN_REPORT, json, good);
    cJSON_Delete(json);
    return status;
}

/* Have the program judge all answers. 1; 0: a signal came; -1 with an error: no answer is lost. */
static int run_program(struct tune_scorecard *card)
{
    int status = tune_metric_program_run(card->program, card->stop_signal, &card->own);
    if (status < 0) {
        struct tune_error e;
        tune_error_save(&e);
        tune_error_set_kind(e.kind, "%s (%s)", e.text, card->folder ? "no answer is lost: the same command goes on with them"
                                                       : "with `output`, answers are kept, and the same command would go on with them");
    }
    for (int k = 0; k < card->own.count; k++) {
        card->metric[card->metrics] = &card->own.score[k];
        for (int s = 0; s < card->sides; s++)
            card->sums[s][card->metrics] = card->own.sums[s][k];
        card->metrics++;
    }
    return status;
}

int tune_scorecard_finish(struct tune_scorecard *card, const struct tune_answers *answers, FILE *out)
{
    struct tune_verdict v[TUNE_CARD_METRICS] = {{0}};
    double speed = tune_answers_speed(answers);
    if (card->done < card->rows) {
        fprintf(out, "# stopped after %" PRId64 " of %" PRId64 " rows, so there is no result yet%s\n", card->done, card->rows,
                card->folder ? "; the same command answers the others" : "");
        return 0;
    }
    int ran = card->program ? run_program(card) : 1;
    TRY(ran);
    if (ran == 0) {
        fprintf(out, "# stopped while the metric program ran, so there is no result yet\n");
        return 0;
    }
    for (int m = 0; m < card->metrics; m++)
        TRY(judge(card, m, &v[m]));
    fprintf(out, "%" PRId64 " rows of %s%s%s\n\n", card->rows, card->path, card->other ? "; compared: " : "",
            card->other ? card->other : "");
    TRY(print_table(card, v, out));
    for (int s = 0; s < card->sides && card->labels; s++)
        TRY(print_confusion(card, s, out));
    fprintf(out, "\n");
    explain(card, v, out);
    if (card->sides > 1)
        print_different_rows(card, out);
    if (card->cut > 0)
        fprintf(out, "# warning: %" PRId64 " of %" PRId64 " rows are longer than the context, so their references were cut\n", card->cut,
                card->rows);
    if (card->several > 0)
        fprintf(out, "# %" PRId64 " of %" PRId64 " rows have several references: the best counts, and losses are those of the first\n",
                card->several, card->rows);
    if (card->empty > 0)
        fprintf(out, "# warning: %" PRId64 " of %" PRId64 " rows have an empty reference, which only an empty answer matches\n", card->empty,
                card->rows);
    if (card->unlabelled > 0)
        fprintf(out, "# warning: %" PRId64 " of %" PRId64 " rows have no token with a loss: the text is empty, or one token\n",
                card->unlabelled, card->rows);
    if (fflush(out) != 0 || ferror(out))
        return tune_error_set("cannot write the table: the output is closed or full");
    if (!card->folder)
        return 0;
    if (card->program)
        TRY(tune_scorecard_add_own(card));
    TRY(tune_result_csv(card->folder));
    TRY(tune_scorecard_svg(card, v));
    if (card->labels)
        TRY(tune_scorecard_confusions(card));
    return write_report(card, v, speed);
}
