/* domain_read.c - read a propertyDomain from a file, and report mistakes in it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/try.h"
#include "sweeps/spaces/domain.h"

#define KEYS "values|domainRange|interval|variableType|probabilityFunction"

/* The state of reading a domain. */
struct reader {
    struct tune_document *document;
    const struct tune_node *node; /* the propertyDomain */
    const char *what;             /* "entitySpace[2] (batch_size)" */
};

static const char *const variables[] = {
    [TUNE_UNKNOWN] = "UNKNOWN_VARIABLE_TYPE",
    [TUNE_CONTINUOUS] = "CONTINUOUS_VARIABLE_TYPE",
    [TUNE_DISCRETE] = "DISCRETE_VARIABLE_TYPE",
    [TUNE_CATEGORICAL] = "CATEGORICAL_VARIABLE_TYPE",
    [TUNE_BINARY] = "BINARY_VARIABLE_TYPE",
    [TUNE_OPEN_CATEGORICAL] = "OPEN_CATEGORICAL_VARIABLE_TYPE",
};
#define IDENTIFIER "IDENTIFIER_VARIABLE_TYPE"

const char *tune_variable_name(const struct tune_domain *domain)
{
    return domain->identifier ? IDENTIFIER : variables[domain->type];
}

/* Get a member; NULL if it is absent or None. */
static const struct tune_node *get(const struct reader *r, const char *key)
{
    const struct tune_node *node = tune_node_get(r->node, key);
    return tune_node_none(node) ? NULL : node;
}

/* Report an error at a node; the text begins with the domain's name. */
static int refuse(const struct reader *r, const struct tune_node *at, const char *format, ...) TUNE_PRINTF(3, 4);
static int refuse(const struct reader *r, const struct tune_node *at, const char *format, ...)
{
    char text[1024];
    FORMAT(text, format);
    return tune_document_fail(r->document, at, "%s: %s", r->what, text);
}

const char *tune_domain_number_hint(const struct tune_node *node, char hint[256])
{
    struct tune_value number;
    const char *text = node ? node->written : NULL, *e = text ? strpbrk(text, "eE") : NULL;
    *hint = 0;
    for (int i = 0; node && node->type == TUNE_NODE_LIST && i < node->count && !*hint; i++)
        tune_domain_number_hint(node->items[i], hint);
    if (!e || e == text || node->value.type != TUNE_VALUE_TEXT || !tune_value_read_as(text, &number) || strlen(text) > 60 ||
        number.type != TUNE_VALUE_FLOAT)
        return hint;
    char whole[64] = "";
    if (fabs(number.number) < 1e15 && number.number == floor(number.number))
        snprintf(whole, sizeof whole, "%.0f or ", number.number);
    snprintf(hint, 256, "; YAML 1.1 reads %s as a text: write %s%.*s%se%s%s", text, whole, (int)(e - text), text,
             memchr(text, '.', (size_t)(e - text)) ? "" : ".0", e[1] == '-' || e[1] == '+' ? "" : "+", e + 1);
    return hint;
}

/* ---- values ---- */

/* A value and its item in the file. */
struct item {
    const struct tune_value *value;
    int index;
};

static int by_value(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int order = tune_value_compare(x->value, y->value);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static int like_value(const void *a, const void *b)
{
    return tune_value_compare(((const struct item *)a)->value, ((const struct item *)b)->value);
}

/* Refuse a text that a program cannot distinguish from another item. */
static int refuse_type_conflict(const struct reader *r, const struct tune_domain *domain, const struct tune_node *list,
                                const struct item *items, int index)
{
    const struct tune_value *text = &domain->values[index];
    struct tune_value as;
    char spelled[64], other[64];
    if (text->type != TUNE_VALUE_TEXT || !tune_value_read_as(text->text, &as))
        return 0;
    const struct item key = {&as, 0}, *found = bsearch(&key, items, (size_t)domain->count, sizeof *items, like_value);
    if (!found || !tune_value_conflicts(text, found->value))
        return 0;
    tune_value_repr(text, spelled, sizeof spelled);
    tune_value_repr(found->value, other, sizeof other);
    return refuse(r, list->items[index],
                  "the text %s and the value %s are the same for a program; keep one of them",
                  spelled, other);
}

/* Refuse duplicates. Sets ascending. */
static int refuse_twice(const struct reader *r, struct tune_domain *domain, const struct tune_node *list)
{
    struct item *items = malloc((size_t)domain->count * sizeof *items);
    char text[64];
    int status = 0;
    if (!items)
        return tune_error_cannot("out of memory for the values of %s", r->what);
    for (int i = 0; i < domain->count; i++)
        items[i] = (struct item){&domain->values[i], i};
    qsort(items, (size_t)domain->count, sizeof *items, by_value);
    domain->ascending = true;
    for (int i = 0; i < domain->count; i++)
        domain->ascending = domain->ascending && items[i].index == i;
    for (int i = 1; i < domain->count && status == 0; i++)
        if (tune_value_equal(items[i - 1].value, items[i].value)) {
            tune_value_repr(items[i].value, text, sizeof text);
            status = refuse(r, list->items[items[i].index],
                            "%s is in values twice; name each value once (True is 1, and 1 is 1.0)",
                            text);
        }
    for (int i = 0; i < domain->count && status == 0; i++)
        status = refuse_type_conflict(r, domain, list, items, i);
    free(items);
    return status;
}

/* True if the value contains NaN. NaN equals nothing, so no entity with it could be found again. */
static bool holds_nan(const struct tune_value *v)
{
    for (int i = 0; v->type == TUNE_VALUE_LIST && i < v->list.count; i++)
        if (holds_nan(&v->list.items[i]))
            return true;
    return v->type == TUNE_VALUE_FLOAT && isnan(v->number);
}

static int read_values(const struct reader *r, struct tune_domain *domain)
{
    const struct tune_node *list = get(r, "values");
    struct tune_value all;
    if (!list)
        return 0;
    if (list->type != TUNE_NODE_LIST || list->count == 0)
        return refuse(r, list, "values must be a list of at least one value");
    TRY(tune_document_value(r->document, list, &all));
    domain->values = all.list.items;
    domain->count = all.list.count;
    for (int i = 0; i < domain->count; i++)
        if (holds_nan(&domain->values[i]))
            return refuse(r, list->items[i], "NaN cannot be a value, because it equals nothing, "
                                             "not even itself");
    return refuse_twice(r, domain, list);
}

/* ---- range and interval ---- */

static bool is_number(const struct tune_value *v)
{
    return v->type == TUNE_VALUE_INT || (v->type == TUNE_VALUE_FLOAT && !isnan(v->number));
}

static int read_range(const struct reader *r, struct tune_domain *domain)
{
    const struct tune_node *list = get(r, "domainRange"), *step = get(r, "interval");
    const struct tune_value zero = tune_value_int(0);
    struct tune_value ends;
    char hint[256];
    if (list) {
        if (list->type != TUNE_NODE_LIST || list->count != 2 || tune_document_value(r->document, list, &ends) < 0 ||
            !is_number(&ends.list.items[0]) || !is_number(&ends.list.items[1]))
            return refuse(r, list, "domainRange must be two numbers, [start, end], and the end "
                                   "itself is not in the range%s",
                          tune_domain_number_hint(list, hint));
        domain->has_range = true;
        domain->low = ends.list.items[0];
        domain->high = ends.list.items[1];
        if (tune_value_compare(&domain->low, &domain->high) >= 0)
            return refuse(r, list,
                          "the end of domainRange must be above its start, because the end itself "
                          "is not in the range");
    }
    if (step) {
        if (step->type != TUNE_NODE_SCALAR || !is_number(&step->value) || tune_value_compare(&step->value, &zero) <= 0 ||
            (step->value.type == TUNE_VALUE_FLOAT && isinf(step->value.number)))
            return refuse(r, step, "interval must be a number above 0%s", tune_domain_number_hint(step, hint));
        domain->has_interval = true;
        domain->interval = step->value;
    }
    return 0;
}

/* True if all values low + i*step differ after rounding to 10 decimals, with errors of at most
 * `noise`. This holds for steps above 1e-10. For a step of exactly 1e-10, low must have at most 10
 * decimals. */
static bool apart(double low, double step, double noise)
{
    double shift = low * 1e10 - rint(low * 1e10);
    return step > 1e-10 + noise || (step == 1e-10 && fabs(shift) + noise * 1e10 < 0.25);
}

/* Check a range of floats. Its values must differ after rounding to 10 decimals, and their number
 * must fit 53 bits. */
static int check_steps(const struct reader *r, const struct tune_domain *domain)
{
    double low, high, step;
    if (!tune_value_number(&domain->low, &low) || !tune_value_number(&domain->high, &high) ||
        !tune_value_number(&domain->interval, &step))
        return 0;
    if (domain->low.type == TUNE_VALUE_INT && domain->high.type == TUNE_VALUE_INT && domain->interval.type == TUNE_VALUE_INT)
        return 0;
    if (isinf(low) || isinf(high))
        return refuse(r, get(r, "domainRange"),
                      "with an interval, both ends of domainRange must be finite, or domainRange "
                      "must be left out");
    double largest = fmax(fabs(low), fabs(high)), ulp = nextafter(largest, INFINITY) - largest;
    if (!isfinite(largest * 1e10) || !apart(low, step, 4 * ulp) || step < 8 * ulp || (high - low) / step >= 0x1p53)
        return refuse(r, get(r, "interval"),
                      "steps of %g between %g and %g are too small, because values are rounded to "
                      "10 decimals", step, low, high);
    return 0;
}

/* ---- probability ---- */

static int read_probability(const struct reader *r, struct tune_domain *domain)
{
    const struct tune_node *node = get(r, "probabilityFunction"), *parameters;
    const char *name = "uniform";
    if (!node)
        return 0;
    TRY(tune_document_map(r->document, node, "probabilityFunction", "identifier|parameters"));
    TRY(tune_document_text(r->document, node, "identifier", false, &name));
    parameters = tune_node_get(node, "parameters");
    if (!tune_node_none(parameters))
        TRY(tune_document_map(r->document, parameters, "parameters of a probabilityFunction", "mean|std"));
    if (!strcmp(name, "uniform"))
        return 0;
    if (strcmp(name, "normal"))
        return refuse(r, tune_node_get(node, "identifier"),
                      "there is no probabilityFunction \"%s\"; expected uniform or normal", name);
    if (tune_node_none(parameters))
        return refuse(r, node, "a normal probabilityFunction needs parameters: {mean: ..., std: "
                               "...}");
    domain->probability = TUNE_NORMAL;
    TRY(tune_document_number(r->document, parameters, "mean", true, &domain->mean));
    TRY(tune_document_number(r->document, parameters, "std", true, &domain->deviation));
    if (!isfinite(domain->mean) || !isfinite(domain->deviation) || domain->deviation <= 0)
        return refuse(r, parameters, "mean must be a number, and std a number above 0");
    return 0;
}

/* ---- types and their keys ---- */

static int read_type(const struct reader *r, struct tune_domain *domain)
{
    const char *name = variables[TUNE_UNKNOWN];
    TRY(tune_document_text(r->document, r->node, "variableType", false, &name));
    for (int i = 0; i < (int)(sizeof variables / sizeof *variables); i++)
        if (!strcmp(name, variables[i])) {
            domain->type = (enum tune_variable)i;
            domain->given = domain->type != TUNE_UNKNOWN;
            return 0;
        }
    if (!strcmp(name, IDENTIFIER)) {
        domain->type = TUNE_OPEN_CATEGORICAL;
        domain->given = domain->identifier = true;
        return 0;
    }
    return refuse(r, get(r, "variableType"),
                  "there is no variableType \"%s\"; expected CONTINUOUS, DISCRETE, CATEGORICAL, "
                  "BINARY, OPEN_CATEGORICAL (or IDENTIFIER) or UNKNOWN, each followed by "
                  "_VARIABLE_TYPE", name);
}

static bool all_numbers(const struct tune_domain *domain)
{
    double number;
    for (int i = 0; i < domain->count; i++)
        if (!tune_value_number(&domain->values[i], &number))
            return false;
    return true;
}

static void infer(struct tune_domain *domain)
{
    if (domain->type != TUNE_UNKNOWN)
        return;
    if (domain->count)
        domain->type = all_numbers(domain) ? TUNE_DISCRETE : TUNE_CATEGORICAL;
    else if (domain->has_interval)
        domain->type = TUNE_DISCRETE;
    else if (domain->has_range)
        domain->type = TUNE_CONTINUOUS;
}

/* Fields that each type excludes. */
static const struct {
    bool values, interval, range;
} refused[] = {
    [TUNE_CONTINUOUS] = {.values = true, .interval = true},
    [TUNE_CATEGORICAL] = {.interval = true},
    [TUNE_BINARY] = {.interval = true, .range = true},
    [TUNE_OPEN_CATEGORICAL] = {.interval = true, .range = true},
};

static int check_type(const struct reader *r, const struct tune_domain *domain)
{
    const char *name = tune_variable_name(domain), *key = NULL;
    if (domain->has_interval && domain->count)
        return refuse(r, get(r, "interval"), "interval and values exclude each other; keep one of "
                                             "them");
    if (domain->has_range && refused[domain->type].range)
        key = "domainRange";
    if (domain->has_interval && refused[domain->type].interval)
        key = "interval";
    if (domain->count && refused[domain->type].values)
        key = "values";
    if (key)
        return refuse(r, get(r, key), "%s and %s exclude each other", key, name);
    if (domain->type == TUNE_DISCRETE && !domain->count && !domain->has_interval)
        return refuse(r, r->node, "%s needs values or an interval; to be countable, also a "
                                  "domainRange", name);
    if (domain->type == TUNE_CATEGORICAL && !domain->count)
        return refuse(r, r->node, "%s needs values", name);
    return 0;
}

/* Values of a binary domain may only be booleans. */
static int check_binary(const struct reader *r, struct tune_domain *domain)
{
    bool both = domain->count == 2 && tune_domain_has(domain, &domain->values[0]) && tune_domain_has(domain, &domain->values[1]);
    if (domain->count && !both)
        return refuse(r, get(r, "values"),
                      "%s always has both False and True; for other values leave variableType out", tune_variable_name(domain));
    domain->values = NULL;
    domain->count = 0;
    return 0;
}

/* Check a range that is given together with values. It must contain exactly these values. It is
 * kept in low and high for output. */
static int check_range(const struct reader *r, struct tune_domain *domain)
{
    const struct tune_node *list = get(r, "values");
    char text[64];
    if (!all_numbers(domain))
        return refuse(r, get(r, "domainRange"), "domainRange is only for values that are numbers");
    for (int i = 0; i < domain->count; i++)
        if (tune_value_compare(&domain->values[i], &domain->low) < 0 ||
            tune_value_compare(&domain->values[i], &domain->high) >= 0) {
            tune_value_repr(&domain->values[i], text, sizeof text);
            return refuse(r, list->items[i], "%s is not in domainRange; the end of a domainRange "
                                             "is not in it", text);
        }
    domain->has_range = false;
    return 0;
}

static int check_probability(const struct reader *r, const struct tune_domain *domain)
{
    bool numbers = domain->type == TUNE_CONTINUOUS || (domain->type == TUNE_DISCRETE && all_numbers(domain));
    if (domain->probability == TUNE_NORMAL && !numbers)
        return refuse(r, get(r, "probabilityFunction"), "a normal probabilityFunction is only for "
                                                        "numbers, not for %s",
                      tune_variable_name(domain));
    return 0;
}

int tune_domain_read(struct tune_domain *domain, struct tune_document *document, const struct tune_node *node, const char *what)
{
    const struct reader r = {document, node, what};
    char whole[300];
    *domain = (struct tune_domain){0};
    if (tune_node_none(node))
        return 0;
    snprintf(whole, sizeof whole, "the domain of %.200s", what);
    TRY(tune_document_map(document, node, whole, KEYS));
    TRY(read_type(&r, domain));
    TRY(read_values(&r, domain));
    TRY(read_range(&r, domain));
    TRY(read_probability(&r, domain));
    infer(domain);
    TRY(check_type(&r, domain));
    if (domain->type == TUNE_BINARY)
        TRY(check_binary(&r, domain));
    if (domain->has_range && domain->count)
        TRY(check_range(&r, domain));
    if (domain->has_range && domain->has_interval)
        TRY(check_steps(&r, domain));
    return check_probability(&r, domain);
}
