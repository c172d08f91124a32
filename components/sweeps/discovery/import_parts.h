/* import_parts.h - types and functions shared by import*.c. Private to them. */
#ifndef TUNE_DISCOVERY_IMPORT_PARTS_H
#define TUNE_DISCOVERY_IMPORT_PARTS_H

#include "files/csv.h"
#include "core/error.h"
#include "core/pool.h"
#include "core/try.h"
#include "sweeps/discovery/import.h"

enum import_role {
    IMPORT_IGNORED, IMPORT_IDENTIFIER, IMPORT_GENERATOR, IMPORT_EXPERIMENT, IMPORT_INPUT,
    IMPORT_TARGET, IMPORT_KEY,
};

struct import_field {
    enum import_role role;
    const char *heading;    /* without its unit */
    const char *name;       /* name of the input or target */
    const char *unit;       /* NULL: none is given */
    int which;              /* index of the input or target of the experiment, or of the key; -1:
                             * the experiment has no such target */
    int variant;            /* observed format: index of the variant */
};

/* One "name.value" of the parameters in an experiment's identifier. */
struct import_part {
    const char *name, *value;
    int name_length, value_length;
};

struct importing {
    struct tune_import *i;
    struct tune_csv *csv;
    struct import_field *fields;         /* [count] the columns */
    int count;
    bool own;                            /* true for our own export */
    const char **variants;               /* [variant_count] parameters, "-stop_after_seconds.30" */
    int variant_count;
    int others;                          /* number of columns of other experiments */
    char *name, *actuator;               /* name of the experiment */
    const struct tune_experiment *e;     /* NULL: not made yet */
    struct tune_experiment *made;        /* the experiment that was made */
    struct tune_column *columns;         /* [inputs + targets] columns of e */
    struct tune_pool *memory;
};

/* import_layout.c: tune_import_layout - find the roles of the columns from the heading and the
 * first row.
 * tune_import_bind - find the inputs and targets of the columns in e.
 * tune_import_add - find a text in texts[count], or append it. Returns its index, or -1 with an
 * error. The caller frees the list, not the texts.
 * tune_import_field - the row's field with this role; "": there is none.
 * tune_import_parameters - parse "-name.value-name.value". Names are inputs of e, or any names if e
 * is NULL. Returns their number; -1: the text does not have this form.
 * tune_import_suffix - the part after actuator and name in an experiment's identifier: "" or
 * "-name.value". NULL: it is another experiment. */
int tune_import_layout(struct importing *m);
int tune_import_bind(struct importing *m);
int tune_import_add(struct importing *m, const char ***texts, int *count, const char *text,
                    size_t length);
const char *tune_import_field(const struct importing *m, const char *const *fields,
                              enum import_role role);
int tune_import_parameters(const char *text, const struct tune_experiment *e,
                           struct import_part parts[TUNE_SPACE_DIMENSIONS]);
const char *tune_import_suffix(const struct importing *m, const char *identifier);

/* import_experiment.c: tune_import_make - make an experiment from the file, write it into the
 * store, and read it as m->made.
 * tune_import_forget - remove the experiment file again. */
int tune_import_make(struct importing *m);
void tune_import_forget(struct importing *m);

/* import_value.c: tune_import_number - read one number. false: the text is not a number.
 * tune_import_values - read the numbers of a cell, "1.5" or "[1, 2]", into values[most]. Returns
 * their number; 0: the cell is missing; -1: it is not a number. A missing number in a list is NaN.
 * tune_import_is_missing - true for a cell without a number: empty, or a word such as NA, NaN or
 * null. The list is that of pandas.read_csv. */
bool tune_import_number(const char *text, double *number);
int tune_import_values(const char *text, double *values, int most);
bool tune_import_is_missing(const char *text);

#endif
