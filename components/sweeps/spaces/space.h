/* space.h - a discovery space: the entities worth measuring (a grid of named values) and the
 * experiments that measure them.
 *
 *     experiments:                                        entitySpace:
 *       - actuatorIdentifier: SFTTrainer                    - identifier: batch_size
 *         experimentIdentifier: finetune_full...              propertyDomain:
 *         parameterization: [...]                               values: [1, 2]
 *
 * An entity is an index in mixed radix: the last dimension is the fastest. Nothing is written out:
 * 10^12 entities cost what four do. Read from YAML as ado has it, or the same keys as JSON;
 * constraints: a list of expressions over the dimensions, ours. Example:
 *
 *     struct tune_space *s = tune_space_read("space.yaml");
 *     struct tune_value *v = ...[s->count];
 *     tune_space_entity(s, 3, v);
 *     tune_entity_identifier(s->names, v, s->count, text, sizeof text);    model_name.smollm2-135m-number_gpus.0-... */
#ifndef TUNE_SPACES_SPACE_H
#define TUNE_SPACES_SPACE_H

#include <stdio.h>

#include "sweeps/spaces/domain.h"
#include "sweeps/spaces/expression.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TUNE_SPACE_DIMENSIONS 256
#define TUNE_SPACE_CONSTRAINTS 256

struct tune_dimension {
    const char *name, *description; /* description NULL: none */
    struct tune_domain domain;
    const struct tune_node *at;     /* where it stands in the file */
};

struct tune_parameter {
    const char *name;
    struct tune_value value;
    const struct tune_node *at;
};

struct tune_reference { /* one experiment the space names */
    const char *actuator, *experiment, *version; /* version NULL: none asked for */
    struct tune_parameter *parameters; /* in the user's order */
    int count;
    const struct tune_node *at;
};

struct tune_space {
    struct tune_document *document;
    struct tune_dimension *dimensions; /* [count], as listed */
    int count;
    const char **names;                /* [count] of the dimensions: what expressions go by */
    struct tune_reference *references; /* [reference_count]; 0: an entity space only */
    int reference_count;
    struct tune_expression **constraints; /* [constraint_count] */
    int constraint_count;
    const char *store;                 /* sampleStoreIdentifier; NULL: none named */
    const char *name, *description;    /* of metadata; NULL: none */
    /* entities of the grid, constraints aside; 0: cannot be counted; TUNE_INDEX_MAX: at least */
    tune_index size;
    /* 6 hexadecimal digits, of what the space means: dimensions with their domains in order,
     * experiments with their parameters, constraints; not of comments, metadata, or how values are
     * spelled. Never one that reads as a number. */
    char id[7];
};

/* tune_space_read - from a file. NULL with an error (file:line:column): what tune_domain_read
 * refuses, no dimension, two of one name, more than TUNE_SPACE_DIMENSIONS or
 * TUNE_SPACE_CONSTRAINTS, unknown keys, a parameter given twice, a constraint that does not
 * compile. "<will be set by ado>" counts as not given. That experiments exist and fit is
 * tune_space_bind's (experiment.h).
 * tune_space_parse - from a document, which becomes the space's, also where it fails. */
struct tune_space *tune_space_read(const char *path);
struct tune_space *tune_space_parse(struct tune_document *document);
void tune_space_free(struct tune_space *s);

/* tune_space_entity - the values of entity i (< size), in the space's order, into values[count].
 * tune_space_find - 1 and *i where values are an entity of a finite space, constraints aside, else
 * 0.
 * tune_space_has - values are in it: any space, constraints too (one that cannot be evaluated
 * counts as not met).
 * tune_space_allowed - the constraints hold: 1, 0, or -1: one cannot be evaluated. */
void tune_space_entity(const struct tune_space *s, tune_index i, struct tune_value *values);
int tune_space_find(const struct tune_space *s, const struct tune_value *values, tune_index *i);
bool tune_space_has(const struct tune_space *s, const struct tune_value *values);
int tune_space_allowed(const struct tune_space *s, const struct tune_value *values);

/* tune_space_count_allowed - entities that meet the constraints: counted where the dimensions that
 * they use have at most 10^7 combinations (as any grid of 10^7 does), else estimated from 10^5
 * drawn by seed 0, with *error, the half width of its 95 % interval (Wilson; 0: counted);
 * infinities where a double holds no such number. -1: a constraint cannot be evaluated. */
int tune_space_count_allowed(const struct tune_space *s, double *allowed, double *error);

/* tune_entity_identifier - "<name>.<value>-<name>.<value>..." into text[size], cut there; returns
 * the whole length. A boolean is 1 or 0, any other value Python's str(). */
int tune_entity_identifier(const char *const *names, const struct tune_value *values, int count,
                           char *text, size_t size);

/* tune_entity_spell - the same in *text, of *size bytes, which grows if needed. *text is freed by
 * the caller. The length; -1: no memory, with the error. */
int tune_entity_spell(const char *const *names, const struct tune_value *values, int count,
                      char **text, size_t *size);

/* tune_space_describe_entities - "Number entities: ..." and the tables, as ado prints them, by
 * indent columns to the right. -1: a constraint cannot be evaluated. */
int tune_space_describe_entities(const struct tune_space *s, int indent, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
