/* preview.h - whether a program has the memory that it will need, asked before it starts. */
#ifndef TUNE_STUDIO_PREVIEW_H
#define TUNE_STUDIO_PREVIEW_H

struct cJSON;

/* studio_memory_warning - run the command line with its --plan-memory, which takes little memory
 * itself, and compare the plan with the memory that is free now. NULL: it fits, or nobody knows:
 * the program has no such option, or says something else. Otherwise one sentence about what is
 * missing; the caller frees it. It sets no error. */
char *studio_memory_warning(const struct cJSON *program, const struct cJSON *argv);

#endif
