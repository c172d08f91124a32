/* export.c - `runs export`: the metrics of runs in the formats of other programs.
 *
 * csv: <output>/<run>.csv has a row for each line of the metrics, with the numbers as they are
 * there. tensorboard: <output>/<run>/ has an event file. trackio: <output>/<run>.csv has a column
 * of times, too, and names that trackio.import_csv keeps.
 *
 * Lines have no time of their own. It is the start of the session plus the seconds of its steps. */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/array.h"
#include "core/print.h"
#include "core/try.h"
#include "files/csv.h"
#include "loggers/tensorboard.h"
#include "runs.h"
#include "runs/metrics.h"
#include "runs/run_folder.h"

/* A run, where its metrics go, and what is in them. */
struct exported {
    struct tune_run *run;
    const char *label;
    char path[TUNE_PATH_MAX];
    char (*columns)[48]; /* names of its metrics, "step" first */
    char (*written)[48]; /* the same names, as the file has them */
    size_t count, room;
    int64_t lines, others; /* whole lines, and members in them that are not numbers */
    bool torn;             /* half a line follows */
    /* while it is written */
    int64_t line;
    FILE *csv;
    struct tune_tensorboard *board;
    const cJSON *session;
    double start_s, before_s, elapsed_s; /* start of the session, elapsed_s there and now */
};

static bool to_trackio(void)
{
    return !strcmp(my.export_format, "trackio");
}

static bool to_board(void)
{
    return !strcmp(my.export_format, "tensorboard");
}

/* ---- what is there ---- */

static int find_name(char (*names)[48], size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return (int)i;
    return -1;
}

static int look_at_row(void *exported, const struct tune_metrics_row *row)
{
    struct exported *e = exported;
    e->lines++;
    e->others += row->others;
    for (int i = 0; i < row->count; i++) {
        if (find_name(e->columns, e->count, row->metrics[i].name) >= 0)
            continue;
        TRY(tune_array_reserve(&e->columns, &e->room, e->count + 1, sizeof *e->columns, "the names of metrics"));
        memcpy(e->columns[e->count++], row->metrics[i].name, sizeof *e->columns);
    }
    return TUNE_METRICS_ON;
}

/* Read all whole lines, or again those that look_at_row counted. */
static int read_lines(struct exported *e, int (*take)(void *exported, const struct tune_metrics_row *row))
{
    struct tune_metrics_position at = {0};
    char path[TUNE_PATH_MAX];
    TRY(tune_path(path, "%s/" TUNE_RUN_METRICS, e->run->folder));
    if (!tune_file_exists(path))
        return 0;
    int status = tune_metrics_read(&at, e->run->folder, take, e);
    e->torn = at.torn > 0;
    return status == 1 ? tune_error_set("%s: the run went back to an earlier step while its metrics were read; export it again", e->run->folder)
                       : status;
}

/* The name as trackio keeps it: its letters, digits and slashes, the first ten of them. Names that
 * would be equal get a number in the place of their end. */
static void name_for_trackio(struct exported *e, size_t column)
{
    enum { KEPT = 10 };
    char *name = e->written[column], base[KEPT + 1] = "";
    size_t n = 0;
    for (const char *c = e->columns[column]; *c && n < KEPT; c++)
        if (isalnum((unsigned char)*c) || *c == '/')
            base[n++] = *c;
    base[n] = 0;
    snprintf(name, sizeof *e->written, "%s", n > 0 ? base : "col");
    for (int number = 2; find_name(e->written, column, name) >= 0 || !strcmp(name, "timestamp"); number++) {
        char digits[16];
        int size = snprintf(digits, sizeof digits, "%d", number);
        snprintf(name, sizeof *e->written, "%.*s%s", KEPT - size, n > 0 ? base : "col", digits);
    }
}

static int name_columns(struct exported *e)
{
    int step = find_name(e->columns, e->count, "step");
    e->written = tune_zeroed(e->count, sizeof *e->written, "the names of metrics");
    TRY(e->written ? 0 : -1);
    if (step > 0) {
        memmove(e->columns[1], e->columns[0], (size_t)step * sizeof *e->columns);
        memcpy(e->columns[0], "step", sizeof "step");
    }
    for (size_t i = 0; i < e->count; i++)
        if (to_trackio())
            name_for_trackio(e, i);
        else
            memcpy(e->written[i], e->columns[i], sizeof *e->written);
    return 0;
}

/* ---- where it goes ---- */

/* The label as a name of a file: a path becomes one word. */
static int name_output(struct exported *e)
{
    char name[TUNE_PATH_MAX];
    TRY(tune_path(name, "%s", e->label));
    for (char *c = name; *c; c++)
        *c = *c == '/' || (unsigned char)*c < ' ' || (*c == '.' && c == name) ? '-' : *c;
    return tune_path(e->path, "%s/%s%s", my.output, name, to_board() ? "" : ".csv");
}

/* True if a folder holds event files only. With take, they are removed. */
static bool only_events(const char *folder, bool take)
{
    DIR *dir = opendir(folder);
    bool only = dir != NULL;
    for (struct dirent *d; only && (d = readdir(dir));) {
        bool event = !strncmp(d->d_name, "events.out.tfevents.", 20);
        only = event ? !take || unlinkat(dirfd(dir), d->d_name, 0) == 0 : !strcmp(d->d_name, ".") || !strcmp(d->d_name, "..");
    }
    if (dir)
        closedir(dir);
    return only;
}

static int check_output(const struct exported *all, int i)
{
    const struct exported *e = &all[i];
    for (int k = 0; k < i; k++)
        if (!strcmp(all[k].path, e->path))
            return tune_error_usage("%s and %s would both be %s; export one of them to another --output", all[k].run->folder, e->run->folder, e->path);
    if (!tune_file_exists(e->path))
        return 0;
    if (!my.overwrite)
        return tune_error_usage("%s is there already; give another --output, or --overwrite", e->path);
    bool folder = tune_file_is_folder(e->path);
    if (to_board() ? !folder || !only_events(e->path, false) : folder)
        return tune_error_usage("%s is not what an export writes, so --overwrite does not replace it; give another --output", e->path);
    return 0;
}

/* ---- writing ---- */

/* The session that made the row: the last that began before its step. */
static void find_time(struct exported *e, const struct tune_metrics_row *row)
{
    const struct tune_metric *elapsed = tune_metrics_find(row, "elapsed_s");
    const cJSON *sessions = cJSON_GetObjectItemCaseSensitive(e->run->run, "sessions"), *s, *last = NULL;
    cJSON_ArrayForEach(s, sessions) {
        const cJSON *from = cJSON_GetObjectItemCaseSensitive(s, "from_step");
        if (!last || !cJSON_IsNumber(from) || from->valuedouble < (double)row->step)
            last = s;
    }
    if (e->line == 1 || last != e->session) {
        double start_s = last ? tune_run_time(last, "started") : 0;
        e->start_s = start_s > 0 ? start_s : e->run->started_s;
        e->before_s = e->elapsed_s;
        e->session = last;
    }
    e->elapsed_s = elapsed ? elapsed->value : e->elapsed_s;
}

static void put_time(FILE *out, double seconds)
{
    char text[64];
    time_t whole = (time_t)seconds;
    struct tm utc;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", gmtime_r(&whole, &utc));
    fprintf(out, ",%s.%06d+00:00", text, (int)(1e6 * (seconds - (double)whole)));
}

static void write_row(struct exported *e, const struct tune_metrics_row *row, double time_s)
{
    for (size_t c = 0; c < e->count; c++) {
        const struct tune_metric *m = tune_metrics_find(row, e->columns[c]);
        fprintf(e->csv, "%s%.*s", c > 0 ? "," : "", m ? (int)m->text.size : 0, m ? m->text.data : "");
        if (c == 0 && to_trackio() && e->start_s > 0)
            put_time(e->csv, time_s);
        else if (c == 0 && to_trackio())
            fputc(',', e->csv);
    }
    fputc('\n', e->csv);
}

static int take_row(void *exported, const struct tune_metrics_row *row)
{
    struct exported *e = exported;
    if (e->line == e->lines) /* a line that a live run has added since */
        return TUNE_METRICS_BEFORE;
    e->line++;
    find_time(e, row);
    double time_s = e->start_s + e->elapsed_s - e->before_s;
    if (e->board)
        TRY(tune_tensorboard_step(e->board, time_s, row->step, row->metrics, row->count));
    else
        write_row(e, row, time_s);
    return TUNE_METRICS_ON;
}

static int write_csv(struct exported *e)
{
    struct tune_file_writer w;
    int status = tune_file_begin(&w, e->path);
    TRY(status);
    e->csv = w.file;
    for (size_t c = 0; c < e->count; c++) {
        fputs(c > 0 ? "," : "", e->csv);
        tune_csv_put(e->csv, e->written[c]);
        fputs(c == 0 && to_trackio() ? ",timestamp" : "", e->csv);
    }
    fputc('\n', e->csv);
    status = read_lines(e, take_row);
    if (status == 0)
        status = tune_file_commit(&w);
    if (status < 0)
        tune_file_cancel(&w);
    return status;
}

static int write_events(struct exported *e)
{
    struct tune_folder_writer w;
    bool others;
    int status = tune_file_begin_folder(&w, e->path);
    TRY(status);
    e->board = tune_tensorboard_open(w.temporary, 0, &others);
    status = e->board ? read_lines(e, take_row) : -1;
    if (e->board && tune_tensorboard_close(e->board) < 0)
        status = -1;
    e->board = NULL;
    if (status == 0) {
        only_events(e->path, true); /* of an earlier export: a folder is renamed over an empty one */
        status = tune_file_commit_folder(&w);
    }
    if (status < 0)
        tune_file_cancel_folder(&w);
    return status;
}

/* ---- what is said ---- */

static void put_label(const char *before, const struct exported *e)
{
    fputs(before, stdout);
    tune_print_line_of(stdout, e->label);
    fputs(": ", stdout);
}

static void tell(const struct exported *e)
{
    put_label("", e);
    if (e->lines == 0)
        printf("no line of metrics yet; nothing was written\n");
    else
        printf("%" PRId64 " lines of %zu metrics: %s\n", e->lines, e->count - 1, e->path);
    if (e->others > 0) {
        put_label("# ", e);
        printf("%" PRId64 " member%s of its lines are no numbers, and were left out\n", e->others, e->others == 1 ? "" : "s");
    }
    if (!tune_run_ended(e->run)) {
        put_label("# ", e);
        printf("the run goes on; later lines are not in it\n");
    } else if (e->torn) {
        put_label("# ", e);
        printf("the last line of its metrics is half a line, and was left out\n");
    }
    if (e->lines > 0 && e->start_s <= 0 && (to_board() || to_trackio())) {
        put_label("# ", e);
        printf("its folder does not tell when it began, so %s\n", to_board() ? "its times begin in 1970" : "it has no times");
    }
}

/* Each changed name once. */
static void tell_names(const struct exported *all, int count)
{
    bool any = false;
    for (int i = 0; i < count; i++)
        for (size_t c = 0; c < all[i].count; c++) {
            bool told = !strcmp(all[i].columns[c], all[i].written[c]);
            for (int k = 0; k < i && !told; k++) {
                int same = find_name(all[k].columns, all[k].count, all[i].columns[c]);
                told = same >= 0 && !strcmp(all[k].written[same], all[i].written[c]);
            }
            if (told)
                continue;
            fputs(any ? ", " : "# trackio keeps ten letters and digits of a name: ", stdout);
            tune_print_line_of(stdout, all[i].columns[c]);
            printf(" is %s", all[i].written[c]);
            any = true;
        }
    fputs(any ? "\n" : "", stdout);
}

void runs_export(struct tune_run **runs, int count)
{
    struct exported *all = GET(tune_zeroed((size_t)count + 1, sizeof *all, "the runs"));
    int64_t lines = 0;
    if (!my.output || !*my.output) {
        tune_error_usage("export: where to? Give a folder with --output");
        tune_program_fail();
    }
    for (int i = 0; i < count; i++) { /* find every mistake before a file is written */
        all[i] = (struct exported){.run = runs[i], .label = runs_label(runs, count, i)};
        MUST(read_lines(&all[i], look_at_row));
        lines += all[i].lines;
        MUST(all[i].lines > 0 ? name_columns(&all[i]) : 0);
        MUST(name_output(&all[i]));
        MUST(check_output(all, i));
    }
    if (lines > 0)
        MUST(tune_file_make_folder(my.output));
    for (int i = 0; i < count; i++) {
        if (all[i].lines > 0)
            MUST(to_board() ? write_events(&all[i]) : write_csv(&all[i]));
        tell(&all[i]);
    }
    tell_names(all, count);
    if (lines == 0) {
        tune_error_set("there is nothing to export: no run has a line of metrics");
        tune_program_fail();
    }
    for (int i = 0; i < count; i++) {
        free(all[i].columns);
        free(all[i].written);
    }
    free(all);
}
