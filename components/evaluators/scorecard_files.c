/* scorecard_files.c - the program's metrics in the lines of rows, and figures. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/print.h"
#include "core/try.h"
#include "evaluators/result_files.h"
#include "evaluators/scorecard_parts.h"
#include "files/csv.h"
#include "runs/run_folder.h"
#include "views/matrix.h"

/* ---- rows.jsonl ---- */
/* Lines end with the program's metrics, behind a list of their names. */
static const char own_mark[] = ",\"metric_program\":[";

static void put_own(FILE *to, const struct tune_scorecard *card, int64_t turn)
{
    const struct tune_program_metrics *own = &card->own;
    fputs(own_mark, to);
    for (int s = 0; s < card->sides; s++)
        for (int k = 0; k < own->count; k++)
            fprintf(to, "%s\"%s%s\"", s + k > 0 ? "," : "", s ? "base_" : "", own->name[k]);
    fputc(']', to);
    for (int s = 0; s < card->sides; s++)
        for (int k = 0; k < own->count; k++) {
            char number[TUNE_DECIMAL_SIZE];
            fprintf(to, ",\"%s%s\":%s", s ? "base_" : "", own->name[k], tune_number_text(number, own->sums[s][k][2 * turn]));
        }
    fputs("}\n", to);
}

static int add_own(const struct tune_scorecard *card, FILE *from, FILE *to, const char *path)
{
    char *line = NULL;
    size_t room = 0;
    int64_t i = 0;
    for (; getline(&line, &room, from) > 0 && i < card->rows; i++) {
        const char *end = strstr(line, own_mark);
        if (!end)
            end = strrchr(line, '}');
        fwrite(line, 1, end ? (size_t)(end - line) : 0, to);
        put_own(to, card, i);
    }
    free(line);
    if (i != card->rows)
        return tune_error_set("%s has %" PRId64 " lines for %" PRId64 " rows; it was changed while the rows were judged", path, i, card->rows);
    return ferror(to) ? tune_error_set("cannot write %s: %s", path, strerror(errno)) : 0;
}

/* Begin to replace a file of the folder. */
static int begin_file(const struct tune_scorecard *card, const char *name, struct tune_file_writer *w)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_path(path, "%s/%s", card->folder, name));
    return tune_file_begin(w, path);
}

/* Replace it, unless it failed. */
static int end_file(struct tune_file_writer *w, int status)
{
    if (status == 0 && tune_file_commit(w) == 0)
        return 0;
    tune_file_cancel(w);
    return -1;
}

int tune_scorecard_add_own(const struct tune_scorecard *card)
{
    char path[TUNE_PATH_MAX];
    struct tune_file_writer w;
    TRY(tune_path(path, "%s/" TUNE_RUN_ROWS, card->folder));
    FILE *rows = fopen(path, "r");
    if (!rows)
        return tune_error_set("cannot read %s: %s", path, strerror(errno));
    int status = begin_file(card, TUNE_RUN_ROWS, &w);
    if (status == 0)
        status = end_file(&w, add_own(card, rows, w.file, path));
    fclose(rows);
    return status;
}

/* ---- figures ---- */
int tune_scorecard_svg(const struct tune_scorecard *card, const struct tune_verdict *v)
{
    struct tune_figure_value results[TUNE_CARD_METRICS];
    for (int m = 0; m < card->metrics; m++)
        results[m] = (struct tune_figure_value){v[m].metric->name, v[m].metric->unit, {&v[m].side[0], card->sides > 1 ? &v[m].side[1] : NULL}};
    return tune_result_svg(card->folder, card->path, results, card->metrics, card->names);
}

/* ---- the confusion matrix ---- */
/* A side's matrix, in numbers that the figure reads. */
struct confusion {
    const char *names[TUNE_SCORE_LABELS + 1];
    char title[64];
    double *counts;
};

static int read_confusion(const struct tune_scorecard *card, int side, struct confusion *c, struct tune_matrix *m)
{
    int n = card->label_count;
    int64_t *counts = tune_scorecard_confusion(card, side);
    c->counts = counts ? tune_zeroed((size_t)n * (size_t)(n + 1), sizeof *c->counts, "a confusion matrix") : NULL;
    for (int i = 0; i < n * (n + 1) && c->counts; i++)
        c->counts[i] = (double)counts[i];
    free(counts);
    for (int i = 0; i < n; i++)
        c->names[i] = tune_score_label(card->labels, i);
    c->names[n] = "(other)";
    snprintf(c->title, sizeof c->title, "confusion matrix%s%s", card->sides > 1 ? " of " : "", card->sides > 1 ? card->names[side] : "");
    *m = (struct tune_matrix){.title = c->title, .note = side == 0 ? card->path : NULL, .row_title = "label", .column_title = "answered as",
                              .row_names = c->names, .column_names = c->names, .rows = n, .columns = n + 1, .counts = c->counts};
    return c->counts ? 0 : -1;
}

/* A record for each model and label. */
static void write_confusion(const struct tune_scorecard *card, const struct tune_matrix *m, FILE *out)
{
    fputs("model,label", out);
    for (int k = 0; k < m->columns; k++) {
        fputc(',', out);
        tune_csv_put(out, m->column_names[k]);
    }
    for (int i = 0; i < card->sides * m->rows; i++) {
        fprintf(out, "\r\n%s,", card->names[i / m->rows]);
        tune_csv_put(out, m->row_names[i % m->rows]);
        for (int k = 0; k < m->columns; k++)
            fprintf(out, ",%.0f", m[i / m->rows].counts[i % m->rows * m->columns + k]);
    }
    fputs("\r\n", out);
}

int tune_scorecard_confusions(const struct tune_scorecard *card)
{
    struct confusion *c = tune_zeroed(TUNE_CARD_SIDES, sizeof *c, "confusion matrices");
    struct tune_matrix m[TUNE_CARD_SIDES];
    struct tune_file_writer w;
    int status = c ? 0 : -1;
    for (int s = 0; s < card->sides && status == 0; s++)
        status = read_confusion(card, s, &c[s], &m[s]);
    if (status == 0 && (status = begin_file(card, TUNE_RUN_CONFUSION, &w)) == 0) {
        tune_matrix_svg(m, card->sides, w.file);
        fputs(TUNE_RESULT_MARK, w.file);
        status = end_file(&w, 0);
    }
    if (status == 0 && (status = begin_file(card, TUNE_RUN_CONFUSION_CSV, &w)) == 0) {
        write_confusion(card, m, w.file);
        status = end_file(&w, 0);
    }
    for (int s = 0; s < card->sides && c; s++)
        free(c[s].counts);
    free(c);
    return status;
}
