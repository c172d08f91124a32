/* runs.h - shared by the files of this tool: its flags, and the names and figures of runs. */
#ifndef TUNE_TOOLS_RUNS_H
#define TUNE_TOOLS_RUNS_H

#include "core/value.h"
#include "flags/program.h"
#include "runs/query.h"
#include "runs/run.h"
#include "views/table.h"

struct runs_flags {
    struct tune_flags tune;
    const char *command, *run, *format, *metric, *x, *svg, *color;
    const char *where, *program, *state, *since, *sort, *export_format, *output;
    bool reverse, logarithmic, ascii, once, overwrite;
    double smooth, interval;
    int width, height;
};
extern struct runs_flags my;

/* runs_for_people - whether the output is a table for people, not CSV or JSON.
 * runs_print - print the table in the chosen format, and free it.
 * runs_add_number - add a cell: integers in full, other numbers with 6 digits. */
bool runs_for_people(void);
/* The format of a loss: four decimals, or four digits where it is large. */
static inline const char *runs_loss_format(double value)
{
    return value > -1e9 && value < 1e9 ? "%.4f" : "%.4g";
}
void runs_print(struct tune_table *t);
void runs_add_number(struct tune_table *t, double value);

/* runs_label - the last part of run i's folder, or the whole path if another run has the same.
 * runs_put_reason - print a line with the reason for run i's state. */
const char *runs_label(struct tune_run *const *runs, int count, int i);
void runs_put_reason(FILE *out, struct tune_run *const *runs, int count, int i);

/* runs_unit - the unit of a figure, metric or property of that run; "": unknown. */
const char *runs_unit(const struct tune_run *r, const char *name);

/* The commands. runs_watch returns the program's exit code. */
/* runs_list - all: how many there are, of which count were chosen. */
void runs_list(struct tune_run **runs, int count, int all);
void runs_show(struct tune_run *const *runs, int count);
void runs_compare(struct tune_run *const *runs, int count);
void runs_plot(struct tune_run **runs, int count);
void runs_export(struct tune_run **runs, int count);
int runs_watch(const char *const *words, int count);

#endif
