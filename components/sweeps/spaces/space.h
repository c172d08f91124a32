/* space.h - a discovery space: the entities worth measuring (a grid of named values), and the
 * experiments that measure them.
 *
 *     experiments:                                        entitySpace:
 *       - actuatorIdentifier: SFTTrainer                    - identifier: batch_size
 *         experimentIdentifier: finetune_full...              propertyDomain:
 *         parameterization: [...]                               values: [1, 2]
 *
 * An entity is an index in mixed radix; the last dimension is the fastest. Nothing is written out,
 * so 10^12 entities cost as much as four. Files are ado's YAML, or the same keys as JSON.
 * constraints, a list of expressions over the dimensions, are ours. Example:
 *
 *     struct tune_space *s = tune_space_read("space.yaml");
 *     struct tune_value *v = ...[s->count];
 *     tune_space_entity(s, 3, v);
 *     tune_entity_identifier(s->names, v, s->count, text, sizeof text);
 *                                                     "model_name.smollm2-135m-..." */
#ifndef TUNE_SPACES_SPACE_H
#define TUNE_SPACES_SPACE_H

#include <stdio.h>

#include "sweeps/spaces/domain.h"
#include "core/expression.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TUNE_SPACE_DIMENSIONS 256
#define TUNE_SPACE_CONSTRAINTS 256

struct tune_dimension {
    const char *name, *description; /* description: NULL if there is none */
    struct tune_domain domain;
    const struct tune_node *at;     /* its node in the file */
};

struct tune_parameter {
    const char *name;
    struct tune_value value;
    const struct tune_node *at;
};

struct tune_reference { /* an experiment that the space names */
    const char *actuator, *experiment, *version; /* version: NULL if none is asked for */
    struct tune_parameter *parameters; /* in the user's order */
    int count;
    const struct tune_node *at;
};

struct tune_space {
    struct tune_document *document;
    struct tune_dimension *dimensions; /* [count] in file order */
    int count;
    const char **names;                /* [count] names of the dimensions, for expressions */
    struct tune_reference *references; /* [reference_count]; 0: an entity space only */
    int reference_count;
    struct tune_expression **constraints; /* [constraint_count] */
    int constraint_count;
    const char *store;                 /* sampleStoreIdentifier; NULL: none named */
    const char *name, *description;    /* from metadata; NULL: none */
    const char **labels;               /* [label_count] "key=value", from metadata */
    int label_count;
    /* Entities of the grid without constraints. 0: it cannot be counted. TUNE_INDEX_MAX: at least
     * that many. */
    tune_index size;
    /* 6 hexadecimal digits: a hash of dimensions and domains in order, experiments with parameters,
     * and constraints. Comments, metadata and spelling do not count. It never reads as a number. */
    char id[7];
};

/* tune_space_read - read a space file. NULL with an error (file:line:column): a bad domain, no
 * dimension, two of one name, or too many dimensions or constraints. Also unknown keys, a parameter
 * given twice, or a constraint that does not compile. "<will be set by ado>" counts as not given.
 * tune_space_bind (experiment.h) checks the experiments.
 * tune_space_parse - the same from a document, which the space owns from then on, also on error.
 * tune_space_measure - compute size again, after a domain changed.
 * tune_space_free - free it; NULL is fine. */
struct tune_space *tune_space_read(const char *path);
struct tune_space *tune_space_parse(struct tune_document *document);
void tune_space_measure(struct tune_space *s);
void tune_space_free(struct tune_space *s);

/* tune_space_entity - the values of entity i (< size) into values[count].
 * tune_space_find - 1 and *i if values are an entity of a finite space, constraints aside; else 0.
 * tune_space_has - whether values are in the space and meet its constraints. A constraint that
 * cannot be evaluated is not met.
 * tune_space_allowed - whether the constraints hold: 1, 0, or -1 with an error: one cannot be
 * evaluated. */
void tune_space_entity(const struct tune_space *s, tune_index i, struct tune_value *values);
int tune_space_find(const struct tune_space *s, const struct tune_value *values, tune_index *i);
bool tune_space_has(const struct tune_space *s, const struct tune_value *values);
int tune_space_allowed(const struct tune_space *s, const struct tune_value *values);

/* tune_space_count_allowed - the number of entities that meet the constraints. It is counted if the
 * dimensions in the constraints have at most 10^7 combinations. Otherwise it is estimated from 10^5
 * draws with seed 0. *error is then half the width of its 95 % interval (Wilson); counted: 0. Both
 * are infinite if a double cannot hold them. -1 with an error: a constraint cannot be evaluated. */
int tune_space_count_allowed(const struct tune_space *s, double *allowed, double *error);

/* tune_entity_identifier - "<name>.<value>-<name>.<value>..." into text[size], cut to size; returns
 * the whole length. A boolean is 1 or 0, any other value Python's str(). */
int tune_entity_identifier(const char *const *names, const struct tune_value *values, int count,
                           char *text, size_t size);

/* tune_entity_spell - the same in *text, of *size bytes, which grows if needed; the caller frees
 * *text. Returns the length, or -1 with an error: no memory. */
int tune_entity_spell(const char *const *names, const struct tune_value *values, int count,
                      char **text, size_t *size);

/* tune_space_describe_entities - print "Number entities: ..." and the tables as ado does, indented.
 * -1 with an error: a constraint cannot be evaluated. */
int tune_space_describe_entities(const struct tune_space *s, int indent, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
