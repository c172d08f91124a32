/* import_parts.h - shared by the files of an import. Private to import*.c. */
#ifndef TUNE_DISCOVERY_IMPORT_PARTS_H
#define TUNE_DISCOVERY_IMPORT_PARTS_H

#include "files/csv.h"
#include "core/error.h"
#include "core/pool.h"
#include "core/try.h"
#include "sweeps/discovery/import.h"

enum import_format {
    IMPORT_OWN,      /* an export */
    IMPORT_OBSERVED,
    IMPORT_TARGETS,
    IMPORT_PLAIN,    /* targets without the name of an experiment: they belong to the chosen one */
};
enum import_role {
    IMPORT_IGNORED, IMPORT_IDENTIFIER, IMPORT_GENERATOR, IMPORT_EXPERIMENT, IMPORT_INPUT,
    IMPORT_TARGET, IMPORT_KEY,
    IMPORT_FREE, /* not decided yet */
};

struct import_field {
    enum import_role role;
    const char *name;       /* name of the input or target */
    /* index of the input or target once the experiment is known, or of the key; -1: left out */
    int which;
    int variant;            /* observed format: its variant (parameters) */
};

/* The roles of the file's columns. */
struct import_layout {
    enum import_format format;
    struct import_field *fields; /* [count] */
    char **headings;
    int count;
    int input[TUNE_SPACE_DIMENSIONS], inputs; /* indexes of the fields that are dimensions */
    /* true: identifiers are made of dimensions; false: they are other names (hashes, "CCO") */
    bool spelled;
    char **variants;        /* [variant_count] observed format: "-stop_after_seconds.30" */
    int variant_count;
    int others;             /* number of columns of other experiments */
};

/* One "name.value" of an identifier. */
struct import_part {
    const char *name, *value;
    int name_length, value_length;
};

struct importing {
    struct tune_import *i;
    struct tune_csv *csv;
    struct import_layout layout;
    char *name, *actuator;               /* name of the experiment */
    const struct tune_experiment *e;     /* NULL: not made yet */
    struct tune_experiment *made;        /* the experiment that was made */
    struct tune_column *columns;         /* [inputs + targets] columns of e */
    struct tune_pool *memory;            /* of names, of the layout */
};

/* import_layout.c: tune_import_layout_read - from the heading and the first row; the csv is
 * rewound.
 * tune_import_layout_bind - to e: which inputs and targets the fields are. tune_import_layout_free.
 * tune_import_field - the row's field of that role (an identifier, a generator, an experiment); "":
 * it has none.
 * tune_import_identifier - what the row's dimensions are, parts[layout.inputs]: as its identifier
 * spells them, or as their columns do where identifiers say nothing. false: it is made of others
 * than those in their columns.
 * tune_import_parameters - "-name.value-name.value" taken apart, names being inputs of e (NULL: any
 * names): how many, or -1: it is none.
 * tune_import_own_experiment - what stands behind the actuator and the name in an experiment's
 * identifier ("", "-name.value"), or NULL: it is another experiment. */
int tune_import_layout_read(struct importing *m);
int tune_import_layout_bind(struct importing *m);
const char *tune_import_field(const struct import_layout *l, const char *const *fields,
                              enum import_role role);
bool tune_import_identifier(const struct import_layout *l, const char *const *fields,
                            struct import_part *parts);
int tune_import_parameters(const char *text, const struct tune_experiment *e,
                           struct import_part *parts, int most);
const char *tune_import_own_experiment(const struct importing *m, const char *identifier);

/* import_experiment.c: tune_import_experiment_make - an experiment of actuator replay from what the
 * file holds, written into the store and read as m->made.
 * tune_import_experiment_forget - remove the file again. */
int tune_import_experiment_make(struct importing *m);
void tune_import_experiment_forget(struct importing *m);

/* import_value.c: tune_import_values - the numbers of a cell, "1.5" or "[1, 2]", into values[most]:
 * how many. 0: a missing cell; -1: no number. A missing one in a list is NaN.
 * tune_import_number - one number; false: it is none.
 * tune_import_is_none - an empty cell, or Python's None.
 * tune_import_is_missing - a cell without a number: empty, or a word such as NA, NaN or null. The
 * list is that of pandas.read_csv.
 * tune_import_input - what the text is as the input, as its column holds it, into *cell, whose text
 * goes to text[size]. false: not in its domain. */
int tune_import_values(const char *text, double *values, int most);
bool tune_import_number(const char *text, double *number);
bool tune_import_is_none(const char *text);
bool tune_import_is_missing(const char *text);
bool tune_import_input(const struct tune_input *in, const struct tune_column *column,
                       const char *spelled, struct tune_cell *cell,
                       char *text, size_t size);

/* tune_import_bad - tell a bad row of the present line; returns 0: reading goes on. */
int tune_import_bad(struct importing *m, const char *format, ...) TUNE_PRINTF(2, 3);

#endif
