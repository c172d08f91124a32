/* project.h - tune.json: options for all commands in a folder.
 *
 *     {"store": "samples",
 *      "experiments": ["experiments", "mine.json"],
 *      "actuator_configuration": "machine.yaml"}
 *
 * All keys are optional. Paths are relative to the file. A flag overrides its key. */
#ifndef TUNE_SPACES_PROJECT_H
#define TUNE_SPACES_PROJECT_H

#ifdef __cplusplus
extern "C" {
#endif

#define TUNE_PROJECT_FILE "tune.json"

struct tune_project {
    struct tune_document *document; /* owns the texts; NULL: the folder has no such file */
    /* NULL: not given; experiments: paths separated by commas */
    const char *store, *experiments, *configuration;
};

/* tune_project_read - read tune.json of the current folder. 0 also if there is none; -1 with an
 * error: file:line:column.
 * tune_project_free - free the project. */
int tune_project_read(struct tune_project *p);
void tune_project_free(struct tune_project *p);

#ifdef __cplusplus
}
#endif
#endif
