/* resume.h - a run folder and the checkpoint in it to go on from, found by what --resume says.
 *
 *     struct tune_resume_point at;
 *     if (tune_resume_find("runs/first", &at) < 0) ...      its newest checkpoint
 *     if (tune_resume_find("runs/first/checkpoint-best", &at) < 0) ... */
#ifndef TUNE_FLAGS_RESUME_H
#define TUNE_FLAGS_RESUME_H

#include "files/file.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_resume_point {
    char folder[TUNE_PATH_MAX];     /* of the run: with the run.json */
    char checkpoint[TUNE_PATH_MAX]; /* <folder>/checkpoint-<step> */
    int64_t step, newest;           /* that step, the highest one there is */
};

/* tune_resume_find - name is a run folder, or a checkpoint (or a link to one) in a run folder. -1: neither, no checkpoint yet. */
int tune_resume_find(const char *name, struct tune_resume_point *at);

#ifdef __cplusplus
}
#endif
#endif
