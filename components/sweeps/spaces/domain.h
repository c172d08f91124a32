/* domain.h - the values that a property can take: the domains of ado's entity spaces, by index.
 *
 * A range is never written out: value i is computed, and so is the index of a value. Ranges are
 * half-open: lo is in, hi is not. A type that is not given is inferred. Values that are all numbers
 * or booleans make it discrete, any other values categorical. A range alone makes it continuous, an
 * interval discrete, nothing unknown. */
#ifndef TUNE_SPACES_DOMAIN_H
#define TUNE_SPACES_DOMAIN_H

#include "files/document.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An index into a space, and its size. 10 dimensions of 10,000 values do not fit 64 bits. */
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
    bool given;                     /* the file gives the type; it is not inferred */
    bool identifier;                /* the file says IDENTIFIER_VARIABLE_TYPE */
    const struct tune_value *values; /* [count]; 0: none given */
    int count;
    bool has_range, has_interval;
    /* ints or floats, as written; low and high may also be a range beside values */
    struct tune_value low, high, interval;
    enum tune_probability probability;
    double mean, deviation;         /* for TUNE_NORMAL */
    /* [summed] for a normal grid: cumulative weights of the values first, first + 1, ...; NULL: no
     * such grid, or too many values */
    const double *sums;
    tune_index first;
    int summed;
};

/* tune_domain_read - read a propertyDomain (NULL: unknown). what: "entitySpace[2] (batch_size)",
 * for messages. -1 with an error: unknown keys, an empty range, an interval not above 0, or one
 * with values. Also values outside the range, duplicate values, or a type with missing or wrong
 * keys. */
int tune_domain_read(struct tune_domain *domain, struct tune_document *document,
                     const struct tune_node *node, const char *what);

/* tune_domain_size - number of values. 0: it cannot be counted (continuous, unknown, open, an
 * interval without range). TUNE_INDEX_MAX means that many or more.
 * tune_domain_value - value number i (< size, in order) into *value.
 * tune_domain_find - 1 and *i for a value of a finite domain (Python's ==), else 0.
 * tune_domain_has - whether the value is in the domain, finite or not. An unknown or open domain
 * has all values. */
#define TUNE_INDEX_MAX (~(tune_index)0)
tune_index tune_domain_size(const struct tune_domain *domain);
void tune_domain_value(const struct tune_domain *domain, tune_index i, struct tune_value *value);
int tune_domain_find(const struct tune_domain *domain, const struct tune_value *value,
                     tune_index *i);
bool tune_domain_has(const struct tune_domain *domain, const struct tune_value *value);

/* tune_domain_draw - the value at quantile u, in (0,1), of a continuous or finite domain. Uniform:
 * over the range or the values. Normal: mean and deviation, cut to the range; a grid has weights by
 * the density at each value. -1 with an error: it lacks two ends, is open or unknown, or the normal
 * distribution is empty in it. */
int tune_domain_draw(const struct tune_domain *domain, double u, struct tune_value *value);

/* tune_domain_weigh - compute the sums that tune_domain_draw uses for a normal grid.
 * tune_domain_read calls it. */
int tune_domain_weigh(struct tune_domain *domain, struct tune_document *document);

/* tune_domain_within - whether all values of child are values of parent, by ado's table: 1, or 0
 * with the reason in why[size]. */
int tune_domain_within(const struct tune_domain *child, const struct tune_domain *parent,
                       char *why, size_t size);

/* tune_variable_name - the name of its type: "DISCRETE_VARIABLE_TYPE". */
const char *tune_variable_name(const struct tune_domain *domain);

/* tune_index_text - write i in decimal into text; returns text. */
const char *tune_index_text(tune_index i, char text[48]);

#ifdef __cplusplus
}
#endif
#endif
