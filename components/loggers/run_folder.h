/* run_folder.h - make the folder of one run; nothing that was there is ever mixed with it. */
#ifndef TUNE_LOGGERS_RUN_FOLDER_H
#define TUNE_LOGGERS_RUN_FOLDER_H

#include <stdbool.h>
#include <stdio.h>

#include "files/file.h"

/* tune_run_folder_make - the new folder into path, with an empty metrics.jsonl that is held as by tune_run_folder_hold. folder NULL: runs/<program>-YYYYmmdd-HHMMSS (local time), with
 * -2, -3, ... behind it where another run was quicker. -1: folder is there and overwrite is false, or it is there, not
 * empty and has no run.json (then it is no run folder, and is left alone; but one that holds nothing except what a run
 * killed at its very begin leaves is one), or a run still writes there. Of several processes that want one folder at the same
 * moment one gets it. The others fail (kind USAGE), and take nothing from it. */
int tune_run_folder_make(char path[TUNE_PATH_MAX], FILE **metrics, const char *folder, const char *program, bool overwrite);

/* tune_run_folder_hold - as long as metrics, the folder's metrics.jsonl, stays open, no other process may overwrite the folder or
 * go on with its run. -1: another one holds it, or has just removed it. Where a file system has no locks, nothing is guarded. */
int tune_run_folder_hold(FILE *metrics, const char *folder);

/* tune_run_folder_held - 0, or -1: folder is not the one any more that metrics was opened in: it was moved, removed, or another
 * one stands there now. */
int tune_run_folder_held(FILE *metrics, const char *folder);

/* tune_run_folder_holds - path (a file or a folder) is folder or lies in it, links followed. */
bool tune_run_folder_holds(const char *folder, const char *path);

#endif
