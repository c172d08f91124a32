/* domain.h - the values that a property can take: the domains of ado's entity spaces, by index.
 *
 * Values of a range are not stored: value i is computed, and so is the index of a value. Ranges are
 * half-open, with lo included and hi excluded. A missing type is inferred. It is discrete if all
 * values are numbers or booleans, categorical for other values. It is continuous for a range,
 * discrete for an interval, and else unknown. */
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
    TUNE_OPEN_CATEGORICAL, /* older name: IDENTIFIER_VARIABLE_TYPE */
};

enum tune_probability { TUNE_UNIFORM, TUNE_NORMAL };

struct tune_domain {
    enum tune_variable type;
    bool given;                     /* the type is given in the file, not inferred */
    bool identifier;                /* the file says IDENTIFIER_VARIABLE_TYPE */
    const struct tune_value *values; /* [count]; 0: none given */
    int count;
    bool ascending;                 /* values ascend, by tune_value_compare: for a faster search */
    bool has_range, has_interval;
    /* integers or floats, as in the file; low and high may be set together with values */
    struct tune_value low, high, interval;
    enum tune_probability probability; /* used by continuous domains alone */
    double mean, deviation;         /* for TUNE_NORMAL */
};

/* tune_domain_read - read a propertyDomain (NULL: unknown). what: "entitySpace[2] (batch_size)",
 * for messages. -1 with an error: unknown keys, an empty range, an interval not above 0, or one
 * with values. Also values outside the range, duplicate values, or a type with missing or wrong
 * keys. */
int tune_domain_read(struct tune_domain *domain, struct tune_document *document,
                     const struct tune_node *node, const char *what);

/* tune_domain_size - number of values. 0: it cannot be counted (continuous, unknown, open, an
 * interval without range). TUNE_INDEX_MAX means that many or more.
 * tune_domain_value - set *value to value i (< size) in order.
 * tune_domain_find - find the index *i of a value in a finite domain, by Python's ==. 1, or 0 if it
 * is not there.
 * tune_domain_has - true if the value is in the domain, finite or not. Unknown and open domains
 * contain all values. */
#define TUNE_INDEX_MAX (~(tune_index)0)
tune_index tune_domain_size(const struct tune_domain *domain);
void tune_domain_value(const struct tune_domain *domain, tune_index i, struct tune_value *value);
int tune_domain_find(const struct tune_domain *domain, const struct tune_value *value,
                     tune_index *i);
bool tune_domain_has(const struct tune_domain *domain, const struct tune_value *value);

/* tune_domain_parse - find the value of a domain for a cell of a table. The cell is written as by
 * str(), as in identifiers, or as an equal number. In an open or unknown domain the value is the
 * text itself. An empty cell is "" if the domain has it, else None. false: the value is not in the
 * domain; *value is then the cell as a number, boolean, None or text. The text is borrowed. */
bool tune_domain_parse(const struct tune_domain *domain, const char *text,
                       struct tune_value *value);

/* tune_domain_draw - the value at quantile u, in (0,1), of a continuous or finite domain. Values of
 * a finite domain are equally likely, whatever its probability says. A normal distribution is
 * truncated to the range. -1 with an error: the domain lacks an end, is open or unknown, or the
 * normal distribution is empty in it. */
int tune_domain_draw(const struct tune_domain *domain, double u, struct tune_value *value);

/* tune_domain_within - 1 if all values of child are values of parent, by ado's table. Else 0, with
 * the reason in why[size]. */
int tune_domain_within(const struct tune_domain *child, const struct tune_domain *parent,
                       char *why, size_t size);

/* tune_value_means - true if a text means the value: as by str(), as in identifiers or, unless the
 * value is a text, as JSON. */
bool tune_value_means(const struct tune_value *v, const char *text);

/* tune_domain_number_hint - write a hint about a number that YAML reads as a text, at the node or
 * in its list. "": there is none. Returns hint. Example: "; YAML 1.1 reads 1e3 as a text: write
 * 1000 or 1.0e+3". */
const char *tune_domain_number_hint(const struct tune_node *node, char hint[256]);

/* tune_variable_name - the name of the domain's type: "DISCRETE_VARIABLE_TYPE". */
const char *tune_variable_name(const struct tune_domain *domain);

/* tune_index_text - write i in decimal into text; returns text.
 * tune_index_compare - compare two tune_index, for qsort. */
const char *tune_index_text(tune_index i, char text[48]);
int tune_index_compare(const void *a, const void *b);

#ifdef __cplusplus
}
#endif
#endif
