/* writers.c - metrics.csv, and TensorBoard's file, line by line. */
#include "loggers/writers.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/error.h"
#include "core/file.h"
#include "core/try.h"
#include "loggers/logger.h"
#include "loggers/tensorboard.h"
#include "runs/metrics.h"

static const char *const columns[] = {"step", "epoch", "loss", "grad_norm", "lr", "step_s", "elapsed_s", "rows", "tokens", "padded_tokens",
                                      "labels", "tokens_per_s", "eval_loss", "eval_perplexity"};
enum { COLUMNS = sizeof columns / sizeof *columns };

struct tune_writers {
    char folder[TUNE_PATH_MAX];
    FILE *csv;                       /* NULL: none */
    struct tune_tensorboard *board;  /* NULL: none */
    bool replay;                     /* board gets the lines that are there */
};

static int flush_csv(struct tune_writers *w)
{
    if (fflush(w->csv) == 0 && !ferror(w->csv))
        return 0;
    tune_error_set("cannot write %s/metrics.csv: %s", w->folder, errno ? strerror(errno) : "write error");
    return -1;
}

/* Numbers as metrics.jsonl spells them; a column the line lacks stays empty. */
static int write_row(struct tune_writers *w, const struct tune_metric *metrics, int count)
{
    errno = 0;
    for (int c = 0; c < COLUMNS; c++) {
        if (c > 0)
            fputc(',', w->csv);
        for (int i = 0; i < count; i++)
            if (!strcmp(metrics[i].name, columns[c]))
                fprintf(w->csv, "%.*s", (int)metrics[i].text.size, metrics[i].text.data);
    }
    fputc('\n', w->csv);
    return flush_csv(w);
}

static int write_line(struct tune_writers *w, const char *text, size_t size, int64_t number, bool board)
{
    struct tune_metric metrics[TUNE_METRICS_MOST];
    struct timespec now;
    int64_t step;
    int n = tune_metrics_line(metrics, &step, text, size, "metrics.jsonl", number);
    TRY(n);
    if (w->csv)
        TRY(write_row(w, metrics, n));
    if (!board)
        return 0;
    clock_gettime(CLOCK_REALTIME, &now);
    return tune_tensorboard_step(w->board, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec, step, metrics, n);
}

static int replay(void *writers, const char *text, size_t size, int64_t number)
{
    struct tune_writers *w = writers;
    return write_line(w, text, size, number, w->replay);
}

/* An earlier one, which this process would leave behind untrue, is removed. */
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
    errno = 0;
    for (int c = 0; c < COLUMNS; c++)
        fprintf(w->csv, "%s%c", columns[c], c + 1 < COLUMNS ? ',' : '\n');
    return flush_csv(w);
}

static int open_all(struct tune_writers *w, const char *folder, unsigned what, int64_t last_step)
{
    bool others = false;
    TRY(tune_path(w->folder, "%s", folder));
    TRY(open_csv(w, what & TUNE_WRITE_CSV));
    if ((what & TUNE_WRITE_TENSORBOARD) && !(w->board = tune_tensorboard_open(folder, last_step > 0 ? last_step + 1 : 0, &others)))
        return -1;
    w->replay = w->board && !others; /* a run that goes on and had no such file before */
    return (w->csv || w->replay) && last_step > 0 ? tune_metrics_each(folder, replay, w, NULL) : 0;
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
    struct tune_error before; /* every line was flushed: closing has nothing to say */
    if (!w)
        return;
    tune_error_save(&before);
    if (w->csv)
        fclose(w->csv);
    tune_tensorboard_close(w->board);
    tune_error_restore(&before);
    free(w);
}

int tune_writers_line(struct tune_writers *w, const char *text, size_t size)
{
    return w && (w->csv || w->board) ? write_line(w, text, size, 1, w->board != NULL) : 0;
}
