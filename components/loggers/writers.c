/* writers.c - write metrics.csv and TensorBoard's file, line by line. */
#include "loggers/writers.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"
#include "files/file.h"
#include "core/try.h"
#include "loggers/logger.h"
#include "loggers/tensorboard.h"
#include "runs/metrics.h"
#include "runs/run_folder.h"

static const char *const columns[] = {"step", "epoch", "loss", "grad_norm", "lr", "step_s", "elapsed_s", "rows", "tokens", "padded_tokens",
                                      "labels", "tokens_per_s", "eval_loss", "eval_perplexity"};
enum { COLUMNS = sizeof columns / sizeof *columns };

struct tune_writers {
    char folder[TUNE_PATH_MAX];
    FILE *csv;                       /* NULL: none */
    char (*own)[48];                 /* names of the recipe's columns, behind the logger's */
    int own_count;
    bool grown;                      /* a column was added that earlier rows do not have */
    struct tune_tensorboard *board;  /* NULL: none */
};

static int flush_csv(struct tune_writers *w)
{
    if (fflush(w->csv) == 0 && !ferror(w->csv))
        return 0;
    tune_error_set("cannot write %s/metrics.csv: %s", w->folder, errno ? strerror(errno) : "write error");
    return -1;
}

static const char *column(const struct tune_writers *w, int c)
{
    return c < COLUMNS ? columns[c] : w->own[c - COLUMNS];
}

bool tune_writers_column(const char *name)
{
    for (int c = 0; c < COLUMNS; c++)
        if (!strcmp(columns[c], name))
            return true;
    return false;
}

/* Add columns for names that no earlier line had. */
static int add_columns(struct tune_writers *w, const struct tune_metrics_row *row)
{
    for (int i = 0; i < row->count; i++) {
        int c = 0;
        while (c < COLUMNS + w->own_count && strcmp(column(w, c), row->metrics[i].name))
            c++;
        if (c < COLUMNS + w->own_count)
            continue;
        char(*more)[48] = realloc(w->own, ((size_t)w->own_count + 1) * sizeof *more);
        if (!more) {
            tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory for a column of metrics.csv");
            return -1;
        }
        w->own = more;
        memcpy(w->own[w->own_count++], row->metrics[i].name, sizeof *more);
        w->grown = true;
    }
    return 0;
}

/* Write the numbers as the line spells them. A column without a number stays empty. */
static int write_row(struct tune_writers *w, const struct tune_metrics_row *row)
{
    errno = 0;
    for (int c = 0; c < COLUMNS + w->own_count; c++) {
        if (c > 0)
            fputc(',', w->csv);
        for (int i = 0; i < row->count; i++)
            if (!strcmp(row->metrics[i].name, column(w, c)))
                fprintf(w->csv, "%.*s", (int)row->metrics[i].text.size, row->metrics[i].text.data);
    }
    fputc('\n', w->csv);
    return flush_csv(w);
}

/* Write the first line of the empty file. */
static int begin_csv(struct tune_writers *w)
{
    errno = 0;
    w->grown = false;
    for (int c = 0; c < COLUMNS + w->own_count; c++)
        fprintf(w->csv, "%s%s", c > 0 ? "," : "", column(w, c));
    fputc('\n', w->csv);
    return flush_csv(w);
}

static int copy_row(void *writers, const struct tune_metrics_row *row)
{
    TRY(add_columns(writers, row));
    return write_row(writers, row);
}

static int read_all(struct tune_writers *w,
                    int (*take)(void *writers, const struct tune_metrics_row *row))
{
    struct tune_metrics_position at = {0};
    return tune_metrics_read(&at, w->folder, take, w);
}

/* Write the whole file again. If new columns appear, write it once more with them. */
static int make_csv(struct tune_writers *w)
{
    do {
        rewind(w->csv);
        if (ftruncate(fileno(w->csv), 0) < 0) {
            tune_error_set("cannot write %s/metrics.csv: %s", w->folder, strerror(errno));
            return -1;
        }
        TRY(begin_csv(w));
        TRY(read_all(w, copy_row));
    } while (w->grown);
    return 0;
}

/* The row is already in the metrics. */
static int add_row(struct tune_writers *w, const struct tune_metrics_row *row)
{
    TRY(add_columns(w, row));
    return w->grown ? make_csv(w) : write_row(w, row);
}

static int write_board(void *writers, const struct tune_metrics_row *row)
{
    struct tune_writers *w = writers;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    double now_s = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    return tune_tensorboard_step(w->board, now_s, row->step, row->metrics, row->count);
}

/* Remove an earlier file, which would be out of date. */
static int open_csv(struct tune_writers *w, bool wanted)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_path(path, "%s/metrics.csv", w->folder));
    if (!wanted)
        return tune_file_remove_folder(path);
    w->csv = fopen(path, "we");
    if (!w->csv) {
        tune_error_set("cannot write %s: %s", path, strerror(errno));
        return -1;
    }
    return begin_csv(w);
}

static int open_all(struct tune_writers *w, const char *folder, unsigned what, int64_t last_step)
{
    bool others = false;
    TRY(tune_path(w->folder, "%s", folder));
    TRY(open_csv(w, what & TUNE_WRITE_CSV));
    if ((what & TUNE_WRITE_TENSORBOARD) && !(w->board = tune_tensorboard_open(folder, last_step > 0 ? last_step + 1 : 0, &others)))
        return -1;
    if (w->csv && last_step > 0)
        TRY(make_csv(w));
    bool bare = w->board && !others && last_step > 0; /* a resumed run that had no such file
                                                       * before */
    return bare ? read_all(w, write_board) : 0;
}

struct tune_writers *tune_writers_open(const char *folder, unsigned what, int64_t last_step)
{
    struct tune_writers *w = calloc(1, sizeof *w);
    if (!w) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory in the logger");
        return NULL;
    }
    if (open_all(w, folder, what, last_step) == 0)
        return w;
    tune_writers_free(w);
    return NULL;
}

void tune_writers_free(struct tune_writers *w)
{
    struct tune_error before; /* every line was flushed, so closing cannot fail */
    if (!w)
        return;
    tune_error_save(&before);
    if (w->csv)
        fclose(w->csv);
    tune_tensorboard_close(w->board);
    free(w->own);
    tune_error_restore(&before);
    free(w);
}

int tune_writers_line(struct tune_writers *w, const char *text, size_t size)
{
    struct tune_metrics_row row = {.path = TUNE_RUN_METRICS, .line = 1, .text = text, .size = size};
    if (!w || (!w->csv && !w->board))
        return 0;
    TRY(tune_metrics_line(&row));
    TRY(w->csv ? add_row(w, &row) : 0);
    return w->board ? write_board(w, &row) : 0;
}
