/* import.h - import rows of CSV into a store: files of ado's `show`, and our own exports.
 *
 *     ,identifier,generatorid,experiment_id,<dimensions>,<targets>
 *                  target format: a row for each entity and experiment
 *     ,identifier,generatorid,<dimensions>,<experiment>-<target>,...
 *                  observed format: a row for each entity
 *     uid,operation,space,...
 *                  every column of a store's table: samples rows --output-format csv
 *     <inputs>,<targets>
 *                  any other file: columns named as inputs and targets of the known experiment, or
 *                  inputs that the caller names
 *
 * Columns go by their names, so their order does not matter. ado's index, generatorid,
 * request_index, result_index and valid may be missing.
 *
 * An identifier "name.value-name.value", in any order, says which columns are dimensions. If it
 * says nothing (a hash), they are the columns that the known experiment has inputs for. Parameters
 * stand in the experiment's identifier; other inputs have their defaults. A cell "[a, b]" holds the
 * figures of several results. Everything is read and checked before anything is written.
 *
 * An experiment that nobody knows is made up from the file. Its actuator is the caller's, or that
 * in the file's experiment_id, or replay. It has no program, so nothing measures it. Dimensions
 * become required inputs, parameters optional ones.
 *
 * A cell without a number may be empty, or a word that pandas reads so: NA, NaN, null, None ... A
 * column of numbers with such cells stays one: its input may be left out, and is None there. */
#ifndef TUNE_DISCOVERY_IMPORT_H
#define TUNE_DISCOVERY_IMPORT_H

#include "sweeps/discovery/rows.h"

struct tune_import {
    struct tune_store *store;
    const struct tune_catalog *catalog;
    const char *path;
    const char *experiment;      /* "name" or "actuator.name" */
    /* NULL: that of the known experiment, else the file's, else replay */
    const char *actuator;
    const char *const *inputs;   /* [input_count] columns that are dimensions; 0: as above */
    int input_count;
    const char *const *targets;  /* [target_count] columns that are targets; 0: all others */
    int target_count;
    /* called for each bad row; NULL: not */
    void (*problem)(void *context, const char *path, int64_t line, const char *what);
    void *context;
    /* the result of an import */
    int64_t rows;                /* lines of this experiment */
    int64_t others;              /* lines of other experiments; in observed format, columns */
    int64_t results;             /* results in these lines */
    /* of these, repeated ones: rows that several entities share */
    int64_t again;
    int64_t added;               /* results that the store did not have */
    int64_t bad;
    /* cells read as None: of inputs, and of targets with a word such as NA in them */
    int64_t missing;
    bool made;                   /* true: an experiment file was written to the store's
                                  * experiments/ */
    /* columns without a target in the known experiment, separated by ", " */
    char left_out[1024];
};

/* tune_import_csv - import the file. Rows of our own keep their uid. Others get one from their
 * inputs and figures, so that importing them twice, even with other identifiers, adds them once.
 * -1 with an error, and nothing is written: the file cannot be read, or its columns make no sense
 * (file:line). Or inputs of the experiment are missing, or a row is bad (each was told). */
int tune_import_csv(struct tune_import *import);

#endif
