/* run_folder.h - the folder of one run: its files, and how one process holds it.
 *
 *     runs/<program>-<date>-<time>/
 *       run.json         the description: options and where each came from, host, weights, data,
 *                        status, and one session for each process that worked on the run
 *       metrics.jsonl    the metrics: a JSON object a line for each step and each evaluation;
 *                        units in the names
 *       report.json      the report: measured properties, once the run has ended; beside them
 *                        status, weights, weights_hash, data_hash, eval_data_hash as run.json has
 *                        them, and
 *                        "nonce": the text of $TUNE_NONCE where it is set (run.json has it too)
 *       samples.jsonl    what the model said to some prompts while it trained: an object a line
 * with
 *                        step, row, prompt, answer and end (generators/answers.h); absent if nobody
 *                        asked
 *       recipe.c         the program's own source as it was compiled
 *       recipe-from-<step>.c   the source of a program that went on with the run, if it differs
 *       metrics.csv, events.out.tfevents...   the metrics for other programs (loggers/writers.h)
 *       profile.*        a profile (profilers/profiler.h)
 *       checkpoint-<step>/, checkpoint-best, checkpoint-final   (checkpoints/checkpoint.h)
 *       weights-<step>/  the model of a save that had no room for the rest
 *
 * run_writer.h writes the first six; run.h reads them. The process that runs holds a lock on
 * metrics.jsonl; the lock ends with the process. After kill -9:
 * - run.json and report.json are whole: they are replaced by a rename. run.json still says
 *   "running". No process holds the lock then, which shows that the run is dead.
 * - metrics.jsonl has every line that was written; the last one may lack its end.
 * - "<name>.tmp-<pid>" may lie there; the next process to go on with the run removes it.
 * A run that goes on cuts metrics.jsonl back to its checkpoint's step, in place, and then appends.
 * It replaces samples.jsonl by its lines up to that step.
 * Nothing else is ever written over: the folder is new, or removed first where that was asked. */
#ifndef TUNE_RUNS_RUN_FOLDER_H
#define TUNE_RUNS_RUN_FOLDER_H

#include <stdbool.h>
#include <stdio.h>

#include "files/file.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TUNE_RUN_JSON "run.json"
#define TUNE_RUN_COLLECTIVES "collectives.json" /* of another rank, if rank 0 is silent */
#define TUNE_RUN_METRICS "metrics.jsonl"
#define TUNE_RUN_REPORT "report.json"
#define TUNE_RUN_PREVIEWS "samples.jsonl"
/* An evaluation's files: a line for each row that was judged, the same as CSV, metrics drawn. The
 * last two say how often a label was answered as which. */
#define TUNE_RUN_ROWS "rows.jsonl"
#define TUNE_RUN_ROWS_CSV "rows.csv"
#define TUNE_RUN_FIGURE "metrics.svg"
#define TUNE_RUN_CONFUSION "confusion.svg"
#define TUNE_RUN_CONFUSION_CSV "confusion.csv"

enum { TUNE_RUN_JSON_MOST = 16 << 20 }; /* bytes of a run.json or report.json that is read */

/* tune_run_folder_make - make the folder and an empty metrics.jsonl, held as by
 * tune_run_folder_hold. Its path goes to path. folder NULL: runs/<program>-YYYYmmdd-HHMMSS (local
 * time), with -2, -3, ... if that name is taken. overwrite: first remove a run folder, an empty
 * folder, or what a run left that was killed before it had a run.json. -1 (kind USAGE): the folder
 * exists and may not be removed, or a run still writes there. If several processes ask for the same
 * folder at once, one gets it, and the others change nothing. */
int tune_run_folder_make(char path[TUNE_PATH_MAX], FILE **metrics, const char *folder,
                         const char *program, bool overwrite);

/* tune_run_folder_hold - lock the folder. metrics is the folder's open metrics.jsonl. While it
 * stays open, no other process can overwrite the folder or resume its run. -1: another process has
 * the lock, or has just removed the folder. Without file locks there is no protection. */
int tune_run_folder_hold(FILE *metrics, const char *folder);

/* tune_run_folder_held - 0, or -1 with an error: the folder was moved, removed or replaced since
 * metrics was opened. */
int tune_run_folder_held(FILE *metrics, const char *folder);

/* tune_run_folder_has - whether the folder has an entry of that name. */
bool tune_run_folder_has(const char *folder, const char *name);

/* tune_run_folder_holds - whether path (a file or folder) is folder itself or inside it; links are
 * followed. */
bool tune_run_folder_holds(const char *folder, const char *path);

/* tune_run_folder_forget - remove an evaluation's report, CSV and figure, for its rows become
 * others. 0, or -1 with an error. */
int tune_run_folder_forget(const char *folder);

#ifdef __cplusplus
}
#endif
#endif
