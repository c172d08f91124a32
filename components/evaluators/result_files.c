/* result_files.c - an evaluation's rows as CSV, and its figure. */
#include "evaluators/result_files.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/array.h"
#include "core/print.h"
#include "core/try.h"
#include "files/cjson.h"
#include "files/csv.h"
#include "runs/run.h"
#include "runs/run_folder.h"
#include "views/plot.h"

/* ---- the folder ---- */
/* The files that an evaluation writes, by kind: what they begin with, what else the first line has, and what they end with. Those with
 * an end are never there in part. */
static const struct written { const char *name, *begin[2], *first_line[2][2], *end; } written[] = {
    {TUNE_RUN_ROWS, {"{\"row\":", "{\"task\":"}, {{",\"loss_sum\":", ",\"of\":\""}, {",\"row\":", ",\"of\":\""}}, ""},
    {TUNE_RUN_ROWS_CSV, {"row,", "task,row,prompt,"}, {{",loss_sum,", ""}, {"", ""}}, "\r\n"},
    {TUNE_RUN_FIGURE, {"<svg ", "<svg "}, {{"", ""}, {"", ""}}, TUNE_RESULT_MARK},
    {TUNE_RUN_CONFUSION, {"<svg ", "<svg "}, {{"", ""}, {"", ""}}, TUNE_RESULT_MARK},
    {TUNE_RUN_CONFUSION_CSV, {"model,label,", "model,label,"}, {{",(other)\r\n", ""}, {",(other)\r\n", ""}}, "\r\n"},
    {TUNE_RUN_REPORT, {"", ""}, {{"", ""}, {"", ""}}, ""}, /* check_report reads it */
};

/* Whether the first line has what such a file's has. A line that is cut short need not. */
static bool has_all(FILE *file, const struct written *w, enum tune_result_kind kind)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n = getline(&line, &room, file);
    bool cut = n <= 0 || line[n - 1] != '\n';
    bool all = cut || (strstr(line, w->first_line[kind][0]) && strstr(line, w->first_line[kind][1]));
    free(line);
    return all;
}

/* Look whether a file is such a one: 1; 0: it is not; -1 with an error. An empty one is. */
static int is_own(const char *path, const struct written *w, enum tune_result_kind kind)
{
    char text[64], end[64];
    size_t size, begin = strlen(w->begin[kind]), last = strlen(w->end);
    int fd = tune_file_open(path, &size);
    if (fd < 0)
        return tune_error_prefix("`output`: ");
    size_t n = size < begin ? size : begin;
    int status = tune_file_read_at(fd, path, 0, text, n);
    bool own = status == 0 && !memcmp(text, w->begin[kind], n);
    if (status == 0 && own && size > 0 && last > 0) {
        own = size >= last;
        status = own ? tune_file_read_at(fd, path, size - last, end, last) : 0;
        own = own && status == 0 && !memcmp(end, w->end, last);
    }
    FILE *file = status == 0 && own ? fdopen(fd, "r") : NULL;
    if (status == 0 && own && !file)
        status = tune_error_set("cannot read %s: %s", path, strerror(errno));
    own = file && has_all(file, w, kind);
    file ? fclose(file) : close(fd);
    return status < 0 ? -1 : own;
}

/* Refuse a report of another program, or of the other kind: this one's would take its place. */
static int check_report(const char *folder, enum tune_result_kind kind)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_path(path, "%s/" TUNE_RUN_REPORT, folder));
    if (!tune_file_exists(path))
        return 0;
    cJSON *json = tune_cjson_read_report(path, TUNE_RUN_JSON_MOST);
    bool own = cJSON_GetObjectItemCaseSensitive(json, kind == TUNE_RESULT_ROWS ? "rows_cut" : "tasks");
    cJSON_Delete(json);
    return own ? 0 : tune_error_usage("`output`: %s is no evaluation's report of this kind, and would be replaced; give another folder", path);
}

int tune_result_check_folder(const char *folder, enum tune_result_kind kind, const char *dataset)
{
    char path[TUNE_PATH_MAX];
    if (tune_run_is(folder))
        return tune_error_usage("`output`: %s is the folder of a training run, whose report would be replaced; give another folder", folder);
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        TRY(tune_path(path, "%s/%s", folder, written[i].name));
        if (dataset && tune_file_is_same(path, dataset))
            return tune_error_usage("`output`: %s is the data set itself, and would be replaced; give another folder", path);
        int own = tune_file_exists(path) ? is_own(path, &written[i], kind) : 1;
        TRY(own);
        if (!own)
            return tune_error_usage("`output`: %s is no evaluation's file, and would be replaced; give another folder", path);
    }
    return check_report(folder, kind);
}

/* ---- rows.csv ---- */
struct columns {
    char **names;
    size_t count, room;
};

static int add_columns(struct columns *c, const cJSON *line)
{
    const cJSON *member;
    cJSON_ArrayForEach(member, line)
    {
        size_t at = 0;
        if (!strcmp(member->string, "metric_program"))
            continue; /* the names of members that follow */
        while (at < c->count && strcmp(c->names[at], member->string) != 0)
            at++;
        if (at < c->count)
            continue;
        TRY(tune_array_reserve(&c->names, &c->room, c->count + 1, sizeof *c->names, "columns"));
        c->names[c->count] = strdup(member->string);
        if (!c->names[c->count])
            return tune_error_no_memory("columns");
        c->count++;
    }
    return 0;
}

/* Write a value as a field: a text or number as it is, a list as JSON; null is empty. */
static int put_field(FILE *out, const cJSON *value)
{
    char number[TUNE_DECIMAL_SIZE];
    if (cJSON_IsArray(value) || cJSON_IsObject(value)) {
        char *text = cJSON_PrintUnformatted(value);
        if (!text)
            return tune_error_no_memory("a field");
        tune_csv_put(out, text);
        free(text);
    } else if (cJSON_IsString(value))
        tune_csv_put(out, value->valuestring);
    else if (cJSON_IsBool(value))
        tune_csv_put(out, cJSON_IsTrue(value) ? "true" : "false");
    else
        tune_csv_put(out, cJSON_IsNumber(value) ? tune_number_text(number, value->valuedouble) : "");
    return 0;
}

static int put_names(FILE *out, const struct columns *c)
{
    for (size_t i = 0; i < c->count; i++) {
        fputs(i ? "," : "", out);
        tune_csv_put(out, c->names[i]);
    }
    fputs("\r\n", out);
    return 0;
}

static int put_record(FILE *out, const struct columns *c, const cJSON *line)
{
    for (size_t i = 0; i < c->count; i++) {
        fputs(i ? "," : "", out);
        TRY(put_field(out, cJSON_GetObjectItemCaseSensitive(line, c->names[i])));
    }
    fputs("\r\n", out);
    return 0;
}

/* Read the lines of the file. to NULL: for their columns; else write them. */
static int read_rows(FILE *from, FILE *to, const char *path, struct columns *c)
{
    char *line = NULL;
    size_t room = 0;
    int status = 0;
    rewind(from);
    for (long long i = 1; status == 0 && getline(&line, &room, from) > 0; i++) {
        cJSON *json = cJSON_Parse(line);
        if (!json)
            status = tune_error_set("%s:%lld: no line of JSON any more; it was changed while the rows were judged", path, i);
        else
            status = to ? put_record(to, c, json) : add_columns(c, json);
        cJSON_Delete(json);
    }
    free(line);
    return status;
}

static int copy_rows(FILE *from, FILE *to, const char *path)
{
    struct columns c = {0};
    int status = read_rows(from, NULL, path, &c);
    status = status == 0 ? put_names(to, &c) : -1;
    status = status == 0 ? read_rows(from, to, path, &c) : -1;
    for (size_t i = 0; i < c.count; i++)
        free(c.names[i]);
    free(c.names);
    return status == 0 && ferror(to) ? tune_error_set("cannot write the rows as CSV: %s", strerror(errno)) : status;
}

int tune_result_csv(const char *folder)
{
    char from[TUNE_PATH_MAX], to[TUNE_PATH_MAX];
    struct tune_file_writer w;
    TRY(tune_path(from, "%s/" TUNE_RUN_ROWS, folder));
    TRY(tune_path(to, "%s/" TUNE_RUN_ROWS_CSV, folder));
    FILE *rows = fopen(from, "r");
    if (!rows)
        return tune_error_set("cannot read %s: %s", from, strerror(errno));
    int status = tune_file_begin(&w, to);
    if (status == 0) {
        status = copy_rows(rows, w.file, from);
        status = status == 0 ? tune_file_commit(&w) : -1;
        if (status < 0)
            tune_file_cancel(&w);
    }
    fclose(rows);
    return status;
}

/* ---- the figure ---- */
/* Values of one unit: a curve for each side. */
struct figure {
    const char **names;
    double *x, *y[2], *low[2], *high[2];
    struct tune_curve curves[2];
    int count;
};

static int make_figure(struct figure *f, int count)
{
    double *numbers = tune_zeroed((size_t)count * 7, sizeof *numbers, "a figure");
    f->x = numbers;
    f->names = tune_zeroed((size_t)count, sizeof *f->names, "a figure");
    for (int s = 0; s < 2 && numbers; s++) {
        f->y[s] = numbers + (1 + s) * count;
        f->low[s] = numbers + (3 + s) * count;
        f->high[s] = numbers + (5 + s) * count;
    }
    return numbers && f->names ? 0 : -1;
}

static void draw(const char *title, const struct tune_figure_value *results, int count, const char *unit, const char *const names[2],
                 struct figure *f, struct tune_plot *plot)
{
    int sides = results[0].side[1] ? 2 : 1;
    for (int i = 0; i < count; i++) {
        if (strcmp(results[i].unit, unit) != 0)
            continue;
        f->names[f->count] = results[i].name;
        f->x[f->count] = f->count;
        for (int s = 0; s < sides; s++) {
            f->y[s][f->count] = results[i].side[s]->value;
            f->low[s][f->count] = results[i].side[s]->low;
            f->high[s][f->count] = results[i].side[s]->high;
        }
        f->count++;
    }
    for (int s = 0; s < sides; s++)
        f->curves[s] = (struct tune_curve){.label = sides > 1 ? names[s] : "", .x = f->x, .y = f->y[s], .low = f->low[s],
                                           .high = f->high[s], .count = f->count, .color = s, .marked = true};
    *plot = (struct tune_plot){.title = title, .x_title = "metric", .y_title = unit, .curves = f->curves, .count = sides,
                               .x_names = f->names, .x_count = f->count, .note = "bars: intervals of 95 %"};
}

int tune_result_svg(const char *folder, const char *title, const struct tune_figure_value *results, int all, const char *const names[2])
{
    char path[TUNE_PATH_MAX];
    struct tune_file_writer w;
    int count = 0, status = 0;
    struct figure *figures = tune_zeroed((size_t)all, sizeof *figures, "a figure");
    struct tune_plot *plots = tune_zeroed((size_t)all, sizeof *plots, "a figure");
    if (!figures || !plots)
        status = -1;
    for (int i = 0; i < all && status == 0; i++) {
        bool first = isfinite(results[i].side[0]->value);
        for (int k = 0; k < i && first; k++)
            first = strcmp(results[k].unit, results[i].unit) != 0;
        status = first ? make_figure(&figures[count], all) : 0;
        if (first && status == 0)
            draw(title, results, all, results[i].unit, names, &figures[count], &plots[count]);
        count += first;
    }
    if (status == 0 && (status = tune_path(path, "%s/" TUNE_RUN_FIGURE, folder)) == 0 && (status = tune_file_begin(&w, path)) == 0) {
        status = tune_plot_svg(plots, count, w.file);
        fputs(TUNE_RESULT_MARK, w.file);
        status = status < 0 || tune_file_commit(&w) < 0 ? -1 : 0;
        if (status < 0)
            tune_file_cancel(&w);
    }
    for (int i = 0; i < count; i++) {
        free(figures[i].x);
        free(figures[i].names);
    }
    free(figures);
    free(plots);
    return status;
}

/* ---- the report ---- */
bool tune_result_put(cJSON *to, const char *before, const char *name, const char *behind, double value)
{
    char key[400];
    snprintf(key, sizeof key, "%s%s%s", before, name, behind);
    return !isfinite(value) || tune_cjson_put_number(to, key, value);
}
