/* import.h - rows of CSV into a store: ado's, as `show` writes them, and our own exports.
 *
 *     ,identifier,generatorid,experiment_id,<dimensions>,<targets>         target format: a row for each entity and experiment
 *     ,identifier,generatorid,<dimensions>,<experiment>-<target>,...       observed format: a row for each entity
 *     uid,operation,space,...                                              every column of a store's table: samples export
 *
 *     <inputs>,<targets>                                                   any other, where it is said which columns are inputs
 *
 * Which columns are dimensions the identifier says, where it is made of them,
 * "name.value-name.value", in whatever order; of one that says nothing (a hash) the known
 * experiment: those it has inputs for. Parameters stand in the experiment's identifier; other
 * inputs have their defaults. A cell "[a, b]" holds the figures of several results. Everything is
 * read and checked before anything is written.
 *
 * An experiment that nobody knows is made up from the file, of actuator replay, which nothing
 * measures: its dimensions as required inputs, its parameters as optional ones. */
#ifndef TUNE_DISCOVERY_IMPORT_H
#define TUNE_DISCOVERY_IMPORT_H

#include "sweeps/discovery/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_import {
    struct tune_store *store;
    const struct tune_catalog *catalog;
    const char *path;
    const char *experiment;      /* "name" or "actuator.name" */
    const char *actuator;        /* NULL: of the known experiment, else replay */
    const char *const *inputs;   /* [input_count] the columns that are dimensions; 0: see above */
    int input_count;
    const char *const *targets;  /* [target_count] of the other columns only these; 0: all */
    int target_count;
    /* is told each bad row; NULL: nobody */
    void (*problem)(void *context, const char *path, int64_t line, const char *what);
    void *context;
    /* what came of it */
    int64_t rows;                /* lines of the file that are of the experiment */
    int64_t others;              /* lines, or in observed format columns, of other experiments */
    int64_t results;             /* in them, */
    /* of which the file has some twice: rows that several entities share */
    int64_t again;
    int64_t added;               /* those that the store did not have */
    int64_t bad;
    bool made;                   /* an experiment file was written into the store's experiments/ */
    /* columns that the known experiment has no target for, separated by ", " */
    char left_out[1024];
};

/* tune_import_csv - -1 with an error: the file cannot be read, its columns make no sense
 * (file:line), the experiment's inputs are not among them, a bad row (each was told); nothing was
 * written then. Rows of our own keep their uid; others get one from their inputs and figures:
 * imported twice, also with identifiers spelled otherwise, they are there once. */
int tune_import_csv(struct tune_import *import);

#ifdef __cplusplus
}
#endif
#endif
