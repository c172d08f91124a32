/* both_readers.h - a line of metrics.jsonl by both ways of tune_metrics_line: after another line, and alone. Of test_metrics.c and
 * of the fuzz target run.c. */
#ifndef TUNE_BOTH_READERS_H
#define TUNE_BOTH_READERS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "runs/metrics.h"

/* Read a line into `row`, which holds the line before, and into a new row. Returns the name of what is not the same in both, or of a
 * number that is not strtod's; NULL: all is the same. *good: the line is good. */
static inline const char *both_readers(struct tune_metrics_row *row, const char *text, size_t size, bool *good)
{
    static struct tune_metrics_row alone;
    static char why[512], spelled[512];
    alone = (struct tune_metrics_row){.path = row->path, .line = row->line, .text = text, .size = size};
    row->text = text;
    row->size = size;
    tune_error_clear();
    int status = tune_metrics_line(&alone);
    snprintf(why, sizeof why, "%s", tune_error_message());
    tune_error_clear();
    *good = status == 0;
    if (tune_metrics_line(row) != status)
        return "the status";
    if (strcmp(tune_error_message(), why) != 0)
        return "the message";
    if (status < 0)
        return NULL;
    if (row->count != alone.count || row->others != alone.others || row->step != alone.step)
        return "a count or the step";
    for (int i = 0; i < row->count; i++) {
        const struct tune_metric *a = &row->metrics[i], *b = &alone.metrics[i];
        if (strcmp(a->name, b->name) != 0)
            return "a name";
        if (a->text.data != b->text.data || a->text.size != b->text.size)
            return "the spelling of a number";
        snprintf(spelled, sizeof spelled, "%.*s", (int)b->text.size, b->text.data);
        double value = strtod(spelled, NULL);
        if (memcmp(&a->value, &b->value, sizeof value) != 0 || memcmp(&a->value, &value, sizeof value) != 0)
            return "the bits of a number";
    }
    return NULL;
}

#endif
