/* domain.h - which values a property can take: the domains of ado's entity spaces, by index.
 *
 * A finite domain is never written out where it is a range: value i of it is computed, and the
 * index of a value too. Ranges are half-open: lo is in, hi is not. A type that is not given is
 * inferred: values that are all numbers (booleans too) make it discrete, any other values
 * categorical, a range alone continuous, an interval discrete, nothing unknown. */
#ifndef TUNE_SPACES_DOMAIN_H
#define TUNE_SPACES_DOMAIN_H

#include "sweeps/spaces/document.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An index into a space, and its size: 10 dimensions of 10,000 values do not fit 64 bits. */
__extension__ typedef unsigned __int128 tune_index;

enum tune_variable {
    TUNE_UNKNOWN,
    TUNE_CONTINUOUS,
    TUNE_DISCRETE,
    TUNE_CATEGORICAL,
    TUNE_BINARY,
    TUNE_OPEN_CATEGORICAL, /* also IDENTIFIER_VARIABLE_TYPE, its older name */
};

enum tune_probability { TUNE_UNIFORM, TUNE_NORMAL };

struct tune_domain {
    enum tune_variable type;
    bool given;                     /* the type was written, not inferred */
    bool identifier;                /* written as IDENTIFIER_VARIABLE_TYPE */
    const struct tune_value *values; /* [count]; 0: none given */
    int count;
    bool has_range, has_interval;
    /* ints or floats, as written; low and high also of a range that values made needless */
    struct tune_value low, high, interval;
    enum tune_probability probability;
    double mean, deviation;         /* of TUNE_NORMAL */
    /* [summed] of a normal grid: the weights of value first, the next one, ..., added up; NULL: no
     * such grid, or of values too many for that */
    const double *sums;
    tune_index first;
    int summed;
};

/* tune_domain_read - from a propertyDomain (NULL: unknown). what: "entitySpace[2] (batch_size)",
 * for messages. Everything is checked here: unknown keys, interval with values, a range that does
 * not end above its start, values outside the range (in it, the range goes), duplicate values,
 * types that lack what they need or have what they must not, an interval not above 0. */
int tune_domain_read(struct tune_domain *domain, struct tune_document *document,
                     const struct tune_node *node, const char *what);

/* tune_domain_size - number of values; 0: it cannot be counted (continuous, unknown, open, an
 * interval without range). More than 2^128-1 is TUNE_INDEX_MAX, which says "at least".
 * tune_domain_value - value number i (< size, in order) into *value.
 * tune_domain_find - 1 and *i for a value that is in a finite domain (Python's ==), else 0.
 * tune_domain_has - the value is in it, finite or not; all values are in one that is unknown or
 * open. */
#define TUNE_INDEX_MAX (~(tune_index)0)
tune_index tune_domain_size(const struct tune_domain *domain);
void tune_domain_value(const struct tune_domain *domain, tune_index i, struct tune_value *value);
int tune_domain_find(const struct tune_domain *domain, const struct tune_value *value,
                     tune_index *i);
bool tune_domain_has(const struct tune_domain *domain, const struct tune_value *value);

/* tune_domain_draw - the value of a continuous or finite domain that the fraction u of (0,1) of its
 * probability lies below: uniform over the range or the values; normal: the mean and deviation cut
 * to the range (a grid: weights by the density at each value). -1: it has no two ends, or is open
 * or unknown; or the normal distribution has nothing in it. */
int tune_domain_draw(const struct tune_domain *domain, double u, struct tune_value *value);

/* tune_domain_weigh - what tune_domain_draw looks up of a normal grid; tune_domain_read does it. */
int tune_domain_weigh(struct tune_domain *domain, struct tune_document *document);

/* tune_domain_within - child's values are all parent's, by ado's table: 1, or 0 and why in
 * why[size]. */
int tune_domain_within(const struct tune_domain *child, const struct tune_domain *parent,
                       char *why, size_t size);

/* tune_variable_name - "DISCRETE_VARIABLE_TYPE". */
const char *tune_variable_name(const struct tune_domain *domain);

/* tune_index_text - in decimal, into text, which is returned. */
const char *tune_index_text(tune_index i, char text[48]);

#ifdef __cplusplus
}
#endif
#endif
