/* query.h - what runs have by name: figures, options, metrics, numbers of the reports; which runs a
 * query chooses, and their order.
 *
 *     struct tune_run_query q = {.where = "lr < 1e-4 and eval_loss < 2", .since = "3d"};
 *     int chosen = tune_runs_select(runs, count, &q);      those stand in front now
 *     tune_runs_sort(runs, chosen, "loss", false, unit, units); */
#ifndef TUNE_RUNS_QUERY_H
#define TUNE_RUNS_QUERY_H

#include "core/value.h"
#include "runs/run.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Figures that any run has, computed from its metrics.
 * tune_run_figure - figure i of the run; NAN: none. */
enum { TUNE_RUN_FIGURES = 8 };
extern const char *const tune_run_figures[TUNE_RUN_FIGURES];
double tune_run_figure(const struct tune_run *r, int i);

/* tune_run_member - the text of a member of the description, such as "host.class"; "": none.
 * tune_run_has - whether the run had the device that the property is about: GPU properties mean
 * nothing in a run without GPU.
 * tune_run_value - the run's figure, option, report number or last metric of that name; None: it
 * has none. Also name, folder, program, state, reason and started. The value may borrow text.
 * tune_runs_names - all names that tune_run_value knows of these runs. The caller frees *names, but
 * not the texts, which belong to the runs. Returns their number, or -1 with an error. */
const char *tune_run_member(const struct tune_run *r, const char *path);
bool tune_run_has(const struct tune_run *r, const char *property);
struct tune_value tune_run_value(const struct tune_run *r, const char *name, char text[32]);
int tune_runs_names(struct tune_run *const *runs, int count, const char ***names);

/* Each may be NULL. where: an expression over the names above. program, state: names with commas.
 * since: 30m, 12h, 3d, 2w, today, yesterday, 2026-11-26 or "2026-11-26 14:30". */
struct tune_run_query {
    const char *where, *program, *state, *since;
};

/* tune_runs_select - move the runs that the query chooses to the front, in their order. Returns
 * their number, or -1 with an error of kind USAGE.
 * tune_runs_sort - sort by the value of that name, lowest first. Numbers of several units are
 * sorted apart; unit gives them. Runs without the value come last. units[256]: the units, if there
 * are several, else "". -1 with an error: no run has the name, or no memory. */
int tune_runs_select(struct tune_run **runs, int count, const struct tune_run_query *q);
int tune_runs_sort(struct tune_run **runs, int count, const char *name, bool reverse,
                   const char *(*unit)(const struct tune_run *r, const char *name),
                   char units[256]);

#ifdef __cplusplus
}
#endif
#endif
