/* import.h - import rows of CSV into a store: files of ado's `show`, our own exports, and other
 * files.
 *
 *     ,identifier,generatorid,experiment_id,<dimensions>,<targets>
 *                  target format: a row for each entity and experiment
 *     ,identifier,generatorid,<dimensions>,<experiment>-<target>,...
 *                  observed format: a row for each entity
 *     uid,operation,space,...
 *                  every column of a store's table: samples show --output-format csv
 *     <inputs>,<targets>
 *                  any other file: columns named as inputs and targets of the known experiment, or
 *                  inputs that the caller names
 *
 * Columns are identified by name, so their order does not matter. ado's index, generatorid,
 * request_index, result_index and valid are optional. A heading "name [unit]" gives a unit.
 *
 * The caller may name the input columns. Else they are the known experiment's inputs, and the names
 * in the first identifier ("name.value-name.value"). Parameters are in the experiment's identifier;
 * other inputs have their defaults. A cell "[a, b]" has the figures of several results. The whole
 * file is read and checked before anything is written.
 *
 * An unknown experiment is created from the file. Its actuator is the caller's, or that in the
 * file's experiment_id, or replay. It has no program, so it cannot be measured. Dimensions become
 * required inputs, parameters optional ones.
 *
 * A missing number is an empty cell, or a word that pandas reads as missing: NA, NaN, null, None
 * ... A column with such cells is still a column of numbers. Its input is optional, and None in
 * these rows. */
#ifndef TUNE_DISCOVERY_IMPORT_H
#define TUNE_DISCOVERY_IMPORT_H

#include "sweeps/discovery/rows.h"

struct tune_import {
    struct tune_store *store;
    const struct tune_catalog *catalog;
    const char *path;
    const char *experiment;      /* "name" or "actuator.name" */
    /* NULL: that of the known experiment, else that in the file, else replay */
    const char *actuator;
    const char *const *inputs;   /* [input_count] columns that are dimensions; 0: as above */
    int input_count;
    const char *const *targets;  /* [target_count] columns that are targets; 0: all others */
    int target_count;
    const char *const *units;    /* [unit_count] "target=unit", which override units in headings */
    int unit_count;
    /* called for each bad row; may be NULL */
    void (*problem)(void *context, const char *path, int64_t line, const char *what);
    void *context;
    /* The results of an import */
    int64_t rows;                /* lines of this experiment */
    int64_t others;              /* lines of other experiments (in observed format: columns) */
    int64_t results;             /* results in these lines */
    /* number of repeated results, because several entities share a row */
    int64_t again;
    int64_t added;               /* results that the store did not have */
    int64_t bad;
    /* number of cells read as None: of inputs, and of targets with a word such as NA */
    int64_t missing;
    bool made;                   /* true: an experiment file was written to the store's
                                  * experiments/ */
    /* columns without a target in the known experiment, separated by ", " */
    char left_out[1024];
};

/* tune_import_csv - import the file. Rows of our own exports keep their uid. Others get one from
 * their inputs and figures. So importing them twice, even with other identifiers, adds them once.
 * -1 with an error, and nothing is written: the file cannot be read, its columns are invalid
 * (file:line), or inputs are missing. Also if a row is bad: problem was called for each bad one. */
int tune_import_csv(struct tune_import *import);

#endif
