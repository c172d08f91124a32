/* scorecard_files.c - what stands beside the report: the rows as CSV, and a figure. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/print.h"
#include "core/try.h"
#include "evaluators/scorecard_parts.h"
#include "files/csv.h"
#include "runs/run_folder.h"
#include "views/plot.h"

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

/* Replace a file of the folder by what `make` writes of rows.jsonl. */
static int make_file(const struct tune_scorecard *card, const char *name,
                     int (*make)(const struct tune_scorecard *card, FILE *from, FILE *to, const char *path))
{
    char from[TUNE_PATH_MAX], to[TUNE_PATH_MAX];
    struct tune_file_writer w;
    TRY(tune_path(from, "%s/" TUNE_RUN_ROWS, card->folder));
    TRY(tune_path(to, "%s/%s", card->folder, name));
    FILE *rows = fopen(from, "r");
    if (!rows)
        return tune_error_set("cannot read %s: %s", from, strerror(errno));
    int status = tune_file_begin(&w, to);
    if (status == 0) {
        status = make(card, rows, w.file, from);
        status = status == 0 ? tune_file_commit(&w) : -1;
        if (status < 0)
            tune_file_cancel(&w);
    }
    fclose(rows);
    return status;
}

int tune_scorecard_add_own(const struct tune_scorecard *card)
{
    return make_file(card, TUNE_RUN_ROWS, add_own);
}

/* ---- rows.csv ---- */
/* A value as text; null is empty. number: room for it. */
static const char *text_of(const cJSON *value, char number[TUNE_DECIMAL_SIZE])
{
    if (cJSON_IsString(value))
        return value->valuestring;
    if (cJSON_IsBool(value))
        return cJSON_IsTrue(value) ? "true" : "false";
    return cJSON_IsNumber(value) ? tune_number_text(number, value->valuedouble) : "";
}

/* Write the members of a line, or their names, as a record. A list is one field, as JSON. */
static bool write_record(FILE *out, const cJSON *line, bool names)
{
    const char *separator = "";
    const cJSON *member;
    bool good = true;
    cJSON_ArrayForEach(member, line)
    {
        if (!strcmp(member->string, "metric_program"))
            continue; /* the names of members that follow */
        char number[TUNE_DECIMAL_SIZE], *list = !names && cJSON_IsArray(member) ? cJSON_PrintUnformatted(member) : NULL;
        good = good && (names || !cJSON_IsArray(member) || list);
        fputs(separator, out);
        tune_csv_put(out, names ? member->string : list ? list : text_of(member, number));
        cJSON_free(list);
        separator = ",";
    }
    fputs("\r\n", out);
    return good && !ferror(out);
}

static int copy_rows(const struct tune_scorecard *card, FILE *from, FILE *to, const char *path)
{
    (void)card;
    char *line = NULL;
    size_t room = 0;
    int status = 0;
    for (int64_t i = 0; status == 0 && getline(&line, &room, from) > 0; i++) {
        cJSON *json = cJSON_Parse(line);
        if (!json)
            status = tune_error_set("%s:%lld: no line of JSON any more; it was changed while the rows were judged", path, (long long)i + 1);
        else if ((i == 0 && !write_record(to, json, true)) || !write_record(to, json, false))
            status = tune_error_set("cannot write the rows as CSV: %s", strerror(errno));
        cJSON_Delete(json);
    }
    free(line);
    return status;
}

int tune_scorecard_csv(const struct tune_scorecard *card)
{
    return make_file(card, TUNE_RUN_ROWS_CSV, copy_rows);
}

/* ---- the figure ---- */
/* The values of one unit: a curve for each side. */
struct figure {
    const char *names[TUNE_CARD_METRICS];
    double x[TUNE_CARD_METRICS], y[TUNE_CARD_SIDES][TUNE_CARD_METRICS];
    double low[TUNE_CARD_SIDES][TUNE_CARD_METRICS], high[TUNE_CARD_SIDES][TUNE_CARD_METRICS];
    struct tune_curve curves[TUNE_CARD_SIDES];
    int count;
};

static void draw(const struct tune_scorecard *card, const struct tune_verdict *v, const char *unit, struct figure *f, struct tune_plot *plot)
{
    for (int m = 0; m < card->metrics; m++) {
        if (strcmp(v[m].metric->unit, unit) != 0)
            continue;
        f->names[f->count] = v[m].metric->name;
        f->x[f->count] = f->count;
        for (int s = 0; s < card->sides; s++) {
            f->y[s][f->count] = v[m].side[s].value;
            f->low[s][f->count] = v[m].side[s].low;
            f->high[s][f->count] = v[m].side[s].high;
        }
        f->count++;
    }
    for (int s = 0; s < card->sides; s++)
        f->curves[s] = (struct tune_curve){.label = card->sides > 1 ? card->names[s] : "", .x = f->x, .y = f->y[s], .low = f->low[s],
                                           .high = f->high[s], .count = f->count, .color = s, .marked = true};
    *plot = (struct tune_plot){.title = card->path, .x_title = "metric", .y_title = unit, .curves = f->curves, .count = card->sides,
                               .x_names = f->names, .x_count = f->count, .note = "bars: intervals of 95 %"};
}

int tune_scorecard_svg(const struct tune_scorecard *card, const struct tune_verdict *v)
{
    char path[TUNE_PATH_MAX];
    struct tune_plot plots[TUNE_CARD_METRICS];
    struct tune_file_writer w;
    int count = 0;
    struct figure *figures = tune_zeroed((size_t)card->metrics, sizeof *figures, "a figure");
    if (!figures)
        return -1;
    for (int m = 0; m < card->metrics; m++) {
        bool first = isfinite(v[m].side[0].value);
        for (int k = 0; k < m && first; k++)
            first = strcmp(v[k].metric->unit, v[m].metric->unit) != 0;
        if (first) {
            draw(card, v, v[m].metric->unit, &figures[count], &plots[count]);
            count++;
        }
    }
    int status = tune_path(path, "%s/" TUNE_RUN_FIGURE, card->folder);
    status = status == 0 ? tune_file_begin(&w, path) : -1;
    if (status == 0) {
        status = tune_plot_svg(plots, count, w.file) < 0 || tune_file_commit(&w) < 0 ? -1 : 0;
        if (status < 0)
            tune_file_cancel(&w);
    }
    free(figures);
    return status;
}
