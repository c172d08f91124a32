/* resume_point.h - find the run folder and the checkpoint that --resume names.
 *
 *     struct tune_resume_point at;
 *     if (tune_resume_find("runs/first", &at) < 0) ...      its newest checkpoint
 *     if (tune_resume_find("runs/first/checkpoint-best", &at) < 0) ... */
#ifndef TUNE_RUNS_RESUME_POINT_H
#define TUNE_RUNS_RESUME_POINT_H

#include "files/file.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_resume_point {
    char folder[TUNE_PATH_MAX];     /* the run folder */
    char checkpoint[TUNE_PATH_MAX]; /* <folder>/checkpoint-<step> */
    int64_t step, newest;           /* its step; the highest step of the folder's checkpoints */
};

/* tune_resume_find - find the run folder and checkpoint for name: a run folder, or a checkpoint in
 * one, or a link to that. -1 with an error: name is none of these, or there is no checkpoint yet.
 * tune_resume_look - the same for a folder that may hold a run or not. 1: it does; step and newest
 * are 0 if the run has no checkpoint. 0: it holds none. -1 with an error: a process works on it.
 * tune_resume_text - read the run's run.json, unparsed, and set its path for messages. The caller
 * frees *text. */
int tune_resume_find(const char *name, struct tune_resume_point *at);
int tune_resume_look(const char *folder, struct tune_resume_point *at);
int tune_resume_text(const struct tune_resume_point *at, char path[TUNE_PATH_MAX], char **text,
                     size_t *size);

#ifdef __cplusplus
}
#endif
#endif
