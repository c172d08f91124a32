/* studio.h - what the files of the studio share. */
#ifndef TUNE_STUDIO_STUDIO_H
#define TUNE_STUDIO_STUDIO_H

#include "files/file.h"
#include "flags/program.h"
#include "route.h"

/* The options. root: an absolute path, links resolved; every path of an answer lies in it, and it is
 * the current folder. */
struct studio {
    const char *root, *ui, *programs;
    char build[TUNE_PATH_MAX];      /* folder of this program, where the others lie */
};

#endif
