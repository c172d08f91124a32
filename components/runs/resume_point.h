/* resume_point.h - a run folder and the checkpoint in it to go on from, found by what --resume
 * says.
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
    char folder[TUNE_PATH_MAX];     /* of the run */
    char checkpoint[TUNE_PATH_MAX]; /* <folder>/checkpoint-<step> */
    int64_t step, newest;           /* that step, the highest one there is */
};

/* tune_resume_find - name is a run folder, or a checkpoint (or a link to one) in a run folder.
 * -1: neither, no checkpoint yet.
 * tune_resume_text - the run's run.json, unparsed, and its path for messages; the caller frees
 * *text. */
int tune_resume_find(const char *name, struct tune_resume_point *at);
int tune_resume_text(const struct tune_resume_point *at, char path[TUNE_PATH_MAX], char **text,
                     size_t *size);

#ifdef __cplusplus
}
#endif
#endif
