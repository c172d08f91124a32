/* space.h - a discovery space: a grid of entities, and the experiments that measure them.
 *
 *     experiments:                                        entitySpace:
 *       - actuatorIdentifier: SFTTrainer                    - identifier: batch_size
 *         experimentIdentifier: finetune_full...              propertyDomain:
 *         parameterization: [...]                               values: [1, 2]
 *
 * An entity is an index in mixed radix; the last dimension is the fastest. Entities are not stored,
 * so 10^12 of them cost as much as four. Files are ado's YAML, or JSON with the same keys. Two keys
 * are not ado's. `constraints` is a list of expressions over the dimensions. `points` is a CSV file
 * (points.h), relative to the space file; then only its points are entities. A copy in a store,
 * spaces/NAME, reads it from data/NAME.points.csv. Example:
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

struct tune_space_parameter {
    const char *name;
    struct tune_value value;
    const struct tune_node *at;
};

struct tune_experiment_reference { /* an experiment that the space names */
    const char *actuator, *experiment, *version; /* version: NULL: any */
    struct tune_space_parameter *parameters; /* in the user's order */
    int count;
    const struct tune_node *at;
};

struct tune_space {
    struct tune_document *document;
    struct tune_dimension *dimensions; /* [count] in file order */
    int count;
    const char **names;                /* [count] names of the dimensions, for expressions */
    struct tune_experiment_reference *references; /* [reference_count]; 0: an entity space only */
    int reference_count;
    struct tune_expression **constraints; /* [constraint_count] */
    int constraint_count;
    /* The list of points, if the space has one. It also has a constraint that is always true, so
     * that constraint_count is not 0. tune_space_allowed checks the list. */
    const char *points_path;           /* the CSV file; NULL: there is no list */
    struct tune_value *point_values;   /* [point_count][count] */
    tune_index *points, *sorted_points; /* [listed] indexes: in file order; sorted */
    int64_t point_count, listed;
    int64_t points_repeated, points_repeated_line; /* duplicate lines left out, and the first one */
    const char *store;                 /* sampleStoreIdentifier; NULL: none named */
    const char *name, *description;    /* from metadata; NULL: none */
    const char **labels;               /* [label_count] "key=value", from metadata */
    int label_count;
    /* Number of entities of the grid, without constraints. 0: it cannot be counted. TUNE_INDEX_MAX:
     * at least that many. */
    tune_index size;
    /* 6 hexadecimal digits: a hash of the dimensions with their domains, in order, the experiments
     * with their parameters, and the constraints. Comments, metadata and spelling are not part of
     * it. It is never a valid number. */
    char id[7];
};

/* tune_space_read - read a space file. NULL with an error (file:line:column): a bad domain, no
 * dimension, two of one name, or too many dimensions or constraints. Also unknown keys, a parameter
 * given twice, or a constraint that does not compile. "<will be set by ado>" is ignored.
 * tune_space_bind (experiment.h) checks the experiments.
 * tune_space_parse - the same from a document. It takes ownership of the document, even on error.
 * tune_space_measure - compute size again, after a domain changed.
 * tune_space_free - free it; NULL is fine. */
struct tune_space *tune_space_read(const char *path);
struct tune_space *tune_space_parse(struct tune_document *document);
void tune_space_measure(struct tune_space *s);
void tune_space_free(struct tune_space *s);

/* tune_space_entity - write the values of entity i (< size) into values[count].
 * tune_space_find - find the index *i of an entity in a finite space, regardless of constraints.
 * Returns 1, or 0 if there is none.
 * tune_space_has - true if the values are in the space and meet its constraints. A constraint that
 * cannot be evaluated is not met.
 * tune_space_allowed - 1 if the constraints hold, else 0. -1 with an error: one cannot be
 * evaluated. */
void tune_space_entity(const struct tune_space *s, tune_index i, struct tune_value *values);
int tune_space_find(const struct tune_space *s, const struct tune_value *values, tune_index *i);
bool tune_space_has(const struct tune_space *s, const struct tune_value *values);
int tune_space_allowed(const struct tune_space *s, const struct tune_value *values);

/* tune_space_count_allowed - count the entities that meet the constraints. Linear equations over
 * whole numbers are solved first. If at most 10^7 combinations remain, they are counted, and *error
 * is 0. Otherwise the number is estimated from TUNE_SPACE_SAMPLED draws with seed 0. *error is then
 * half the width of its 95 % interval (Wilson). If no draw meets the constraints, the number is
 * unknown and *allowed is NaN. Both are infinite if a double cannot hold them. -1 with an error: a
 * constraint cannot be evaluated.
 * tune_space_allowed_text - print both numbers as text: "778", "about 4e+05, give or take 2e+03",
 * "between 2e+06 and 6e+07 (95 %)", "unknown: none of ...". Returns text. */
enum { TUNE_SPACE_SAMPLED = 100000 };
int tune_space_count_allowed(const struct tune_space *s, double *allowed, double *error);
const char *tune_space_allowed_text(double allowed, double error, char text[160]);

/* tune_entity_identifier - write "<name>.<value>-<name>.<value>..." into text[size], cut to size.
 * Returns the full length. A boolean is written as 1 or 0, other values as by Python's str(). */
int tune_entity_identifier(const char *const *names, const struct tune_value *values, int count,
                           char *text, size_t size);

/* tune_entity_to_string - the same into *text, which has *size bytes and grows if needed. The
 * caller frees *text. Returns the length, or -1 with an error: no memory. */
int tune_entity_to_string(const char *const *names, const struct tune_value *values, int count,
                          char **text, size_t *size);

/* tune_space_describe_entities - print "Number entities: ..." and a table of the dimensions,
 * indented. -1 with an error: a constraint cannot be evaluated. */
int tune_space_describe_entities(const struct tune_space *s, int indent, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
