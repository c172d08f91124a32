/* space.c - read a space from its file, and convert between entities and indexes. */
#include "sweeps/spaces/space.h"

#include <stdlib.h>
#include <string.h>

#include "files/file.h"
#include "sweeps/spaces/points.h"
#include "core/try.h"

/* ---- reading ---- */

static int read_dimension(struct tune_space *s, const struct tune_node *node, int index)
{
    struct tune_document *d = s->document;
    struct tune_dimension *dimension = &s->dimensions[index];
    const struct tune_node *metadata = tune_node_get(node, "metadata"), *text;
    const char *kind = "CONSTITUTIVE_PROPERTY_TYPE";
    char what[160];
    snprintf(what, sizeof what, "entitySpace[%d]", index);
    TRY(tune_document_map(d, node, what, "identifier|metadata|propertyType|propertyDomain"));
    TRY(tune_document_text(d, node, "identifier", true, &dimension->name));
    TRY(tune_document_text(d, node, "propertyType", false, &kind));
    if (!*dimension->name)
        return tune_document_fail(d, node, "%s: the identifier is empty", what);
    snprintf(what, sizeof what, "entitySpace[%d] (%s)", index, dimension->name);
    if (strcmp(kind, "CONSTITUTIVE_PROPERTY_TYPE"))
        return tune_document_fail(d, tune_node_get(node, "propertyType"),
                                  "%s: propertyType must be CONSTITUTIVE_PROPERTY_TYPE, not %s", what, kind);
    if (!tune_node_none(metadata) && metadata->type != TUNE_NODE_MAP)
        return tune_document_fail(d, metadata, "%s: metadata must be a map of keys and values", what);
    text = tune_node_get(metadata, "description");
    if (!tune_node_none(text) && text->type == TUNE_NODE_SCALAR && text->value.type == TUNE_VALUE_TEXT)
        dimension->description = text->value.text;
    for (int i = 0; i < index; i++)
        if (!strcmp(s->dimensions[i].name, dimension->name))
            return tune_document_fail(d, node, "%s: a dimension of this name is already in line "
                                               "%d; keep one of them", what,
                                      s->dimensions[i].at->line);
    TRY(tune_domain_read(&dimension->domain, d, tune_node_get(node, "propertyDomain"), what));
    if (dimension->domain.type == TUNE_OPEN_CATEGORICAL && dimension->domain.count) /* a space lists its own values */
        dimension->domain.type = TUNE_CATEGORICAL, dimension->domain.identifier = false;
    dimension->at = node;
    s->names[index] = dimension->name;
    return 0;
}

static int read_dimensions(struct tune_space *s)
{
    struct tune_document *d = s->document;
    const struct tune_node *list;
    int count = tune_document_list(d, d->root, "entitySpace", &list);
    TRY(count);
    if (count == 0)
        return tune_document_fail(d, list ? list : d->root, "a space needs entitySpace, a list of "
                                                            "at least one dimension");
    if (count > TUNE_SPACE_DIMENSIONS)
        return tune_document_fail(d, list, "entitySpace has %d dimensions; at most %d are supported", count, TUNE_SPACE_DIMENSIONS);
    s->dimensions = tune_document_take(d, (size_t)count * sizeof *s->dimensions);
    s->names = tune_document_take(d, (size_t)count * sizeof *s->names);
    if (!s->dimensions || !s->names)
        return -1;
    for (; s->count < count; s->count++)
        TRY(read_dimension(s, list->items[s->count], s->count));
    return 0;
}

static int read_parameter(struct tune_document *d, struct tune_experiment_reference *r, const struct tune_node *node)
{
    struct tune_space_parameter *p = &r->parameters[r->count];
    const struct tune_node *property = tune_node_get(node, "property"), *value = tune_node_get(node, "value");
    TRY(tune_document_map(d, node, "an item of parameterization", "property|value|valueType|uncertainty"));
    if (!property)
        return tune_document_fail(d, node, "an item of parameterization needs property: "
                                           "{identifier: ...}");
    TRY(tune_document_map(d, property, "the property of a parameter", "identifier|metadata|propertyType|propertyDomain"));
    TRY(tune_document_text(d, property, "identifier", true, &p->name));
    if (!value)
        return tune_document_fail(d, node, "the parameter %s needs a value", p->name);
    if (tune_document_value(d, value, &p->value) < 0)
        return tune_document_fail(d, value, "the value of the parameter %s must be a number, a text, a boolean, or a list of them",
                                  p->name);
    for (int i = 0; i < r->count; i++)
        if (!strcmp(r->parameters[i].name, p->name))
            return tune_document_fail(d, node, "the parameter %s is already in line %d; keep one "
                                               "of them", p->name, r->parameters[i].at->line);
    p->at = node;
    r->count++;
    return 0;
}

static int read_reference(struct tune_space *s, const struct tune_node *node)
{
    struct tune_document *d = s->document;
    struct tune_experiment_reference *r = &s->references[s->reference_count];
    const struct tune_node *list;
    TRY(tune_document_map(d, node, "an item of experiments",
                          "actuatorIdentifier|experimentIdentifier|experimentVersion|parameterization"));
    r->actuator = "custom_experiments";
    TRY(tune_document_text(d, node, "actuatorIdentifier", false, &r->actuator));
    TRY(tune_document_text(d, node, "experimentIdentifier", true, &r->experiment));
    TRY(tune_document_text(d, node, "experimentVersion", false, &r->version));
    int count = tune_document_list(d, node, "parameterization", &list);
    TRY(count);
    if (count == 0 && !tune_node_none(list))
        return tune_document_fail(d, list, "parameterization is empty; to keep all defaults, leave "
                                           "the key out");
    if (!(r->parameters = tune_document_take(d, ((size_t)count + 1) * sizeof *r->parameters)))
        return -1;
    for (int i = 0; i < count; i++)
        TRY(read_parameter(d, r, list->items[i]));
    r->at = node;
    s->reference_count++;
    return 0;
}

static int read_references(struct tune_space *s)
{
    const struct tune_node *list;
    int count = tune_document_list(s->document, s->document->root, "experiments", &list);
    TRY(count);
    if (!(s->references = tune_document_take(s->document, ((size_t)count + 1) * sizeof *s->references)))
        return -1;
    for (int i = 0; i < count; i++)
        TRY(read_reference(s, list->items[i]));
    return 0;
}

static int read_constraints(struct tune_space *s)
{
    struct tune_document *d = s->document;
    const struct tune_node *list;
    char where[TUNE_PATH_MAX + 32];
    int count = tune_document_list(d, d->root, "constraints", &list);
    TRY(count);
    if (count > TUNE_SPACE_CONSTRAINTS)
        return tune_document_fail(d, list, "there are %d constraints, but at most %d are "
                                           "supported; one constraint can join several: \"a and "
                                           "b\"",
                                  count,
                                  TUNE_SPACE_CONSTRAINTS);
    if (!(s->constraints = tune_document_take(d, ((size_t)count + 1) * sizeof *s->constraints)))
        return -1;
    for (int i = 0; i < count; i++) {
        const struct tune_node *node = list->items[i];
        if (node->type != TUNE_NODE_SCALAR || node->value.type != TUNE_VALUE_TEXT)
            return tune_document_fail(d, node, "a constraint must be a text, such as \"batch_size %% number_gpus == 0\"");
        snprintf(where, sizeof where, "%s:%d:%d", d->path, node->line, node->column);
        if (!(s->constraints[i] = tune_expression_new(node->value.text, s->names, s->count, where)))
            return -1;
        s->constraint_count++;
    }
    return 0;
}

static int read_labels(struct tune_space *s, const struct tune_node *labels)
{
    struct tune_document *d = s->document;
    if (tune_node_none(labels))
        return 0;
    if (labels->type != TUNE_NODE_MAP)
        return tune_document_fail(d, labels, "labels must be a map of keys and values");
    if (!(s->labels = tune_document_take(d, ((size_t)labels->count + 1) * sizeof *s->labels)))
        return -1;
    for (int i = 0; i < labels->count; i++) {
        const char *key = labels->keys[i]->value.text, *value = "";
        TRY(tune_document_loose_text(d, labels, key, false, &value));
        size_t size = strlen(key) + strlen(value) + 2;
        char *text = tune_document_take(d, size);
        TRY(text ? 0 : -1);
        snprintf(text, size, "%s=%s", key, value);
        s->labels[s->label_count++] = text;
    }
    return 0;
}

static int read_metadata(struct tune_space *s)
{
    struct tune_document *d = s->document;
    const struct tune_node *metadata = tune_node_get(d->root, "metadata");
    TRY(tune_document_loose_text(d, d->root, "sampleStoreIdentifier", false, &s->store));
    if (s->store && !strcmp(s->store, "<will be set by ado>"))
        s->store = NULL;
    if (tune_node_none(metadata))
        return 0;
    if (metadata->type != TUNE_NODE_MAP)
        return tune_document_fail(d, metadata, "metadata must be a map of keys and values");
    TRY(tune_document_loose_text(d, metadata, "name", false, &s->name));
    TRY(tune_document_loose_text(d, metadata, "description", false, &s->description));
    return read_labels(s, tune_node_get(metadata, "labels"));
}

static int read_points(struct tune_space *s)
{
    const struct tune_document *d = s->document;
    const struct tune_node *node = tune_node_get(d->root, "points");
    const char *name = NULL, *base = strrchr(d->path, '/');
    char folder[TUNE_PATH_MAX], path[TUNE_PATH_MAX], stored[TUNE_PATH_MAX];
    TRY(tune_document_text(s->document, d->root, "points", false, &name));
    if (!name)
        return 0;
    TRY(tune_file_parent(folder, d->path));
    TRY(*name == '/' ? tune_path(path, "%s", name) : tune_path(path, "%s/%s", folder, name));
    TRY(tune_path(stored, "%s/../data/%s.points.csv", folder, base ? base + 1 : d->path));
    bool copy = !tune_file_exists(path) && tune_file_exists(stored);
    if (tune_points_restrict(s, copy ? stored : !strncmp(path, "./", 2) ? path + 2 : path) == 0)
        return 0;
    return tune_document_fail(d, node, "%s", tune_error_message());
}

static int read_all(struct tune_space *s)
{
    TRY(tune_document_map(s->document, s->document->root, "a space",
                          "sampleStoreIdentifier|entitySpace|experiments|metadata|constraints|points"));
    TRY(read_dimensions(s));
    TRY(read_references(s));
    TRY(read_constraints(s));
    TRY(read_points(s));
    return read_metadata(s);
}

/* ---- the hash of a space ---- */

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return tune_hash64(text, strlen(text) + 1, hash);
}

static uint64_t hash_number(uint64_t hash, int64_t n)
{
    return tune_hash64(&n, sizeof n, hash);
}

static uint64_t hash_value(uint64_t hash, const struct tune_value *v)
{
    hash = hash_number(hash, (int64_t)v->type);
    switch (v->type) {
    case TUNE_VALUE_NONE:
        return hash;
    case TUNE_VALUE_BOOL:
        return hash_number(hash, v->boolean);
    case TUNE_VALUE_INT:
        return hash_number(hash, v->integer);
    case TUNE_VALUE_FLOAT:
        return tune_hash64(&v->number, sizeof v->number, hash);
    case TUNE_VALUE_TEXT:
        return hash_text(hash, v->text);
    case TUNE_VALUE_LIST:
        hash = hash_number(hash, v->list.count);
        for (int i = 0; i < v->list.count; i++)
            hash = hash_value(hash, &v->list.items[i]);
    }
    return hash;
}

static uint64_t hash_domain(uint64_t hash, const struct tune_domain *d)
{
    hash = hash_number(hash_number(hash, (int64_t)d->type), d->count);
    for (int i = 0; i < d->count; i++)
        hash = hash_value(hash, &d->values[i]);
    if (d->has_range)
        hash = hash_value(hash_value(hash, &d->low), &d->high);
    if (d->has_interval)
        hash = hash_value(hash, &d->interval);
    if (d->probability == TUNE_NORMAL)
        hash = tune_hash64(&d->deviation, sizeof d->deviation, tune_hash64(&d->mean, sizeof d->mean, hash));
    return hash;
}

/* Hash a reference. Hashes of parameters are added, because their order does not matter. */
static uint64_t hash_reference(uint64_t hash, const struct tune_experiment_reference *r)
{
    uint64_t sum = 0;
    for (int i = 0; i < r->count; i++)
        sum += hash_value(hash_text(0, r->parameters[i].name), &r->parameters[i].value);
    hash = hash_text(hash_text(hash, r->actuator), r->experiment);
    return hash_number(hash_text(hash, r->version ? r->version : ""), (int64_t)sum);
}

/* True if the id looks like a number. Some YAML readers take 123456, 310e50 or 0b1010 for
 * numbers. */
static bool reads_as_number(const char *id)
{
    size_t digits = strspn(id, "0123456789"), more = id[digits] == 'e' ? strspn(id + digits + 1, "0123456789") + 1 : 0;
    return digits + more == 6 || !strncmp(id, "0b", 2);
}

static void make_id(struct tune_space *s)
{
    uint64_t hash = 1; /* version of this hash */
    for (int i = 0; i < s->count; i++)
        hash = hash_domain(hash_text(hash, s->names[i]), &s->dimensions[i].domain);
    for (int i = 0; i < s->reference_count; i++)
        hash = hash_reference(hash, &s->references[i]);
    for (int i = 0; i < s->constraint_count - (s->points_path != NULL); i++)
        hash = hash_text(hash, tune_expression_text(s->constraints[i]));
    for (int64_t i = 0; i < s->listed; i++)
        hash = tune_hash64(&s->points[i], sizeof s->points[i], hash);
    do
        snprintf(s->id, sizeof s->id, "%06x", (unsigned)(hash & 0xffffff));
    while (reads_as_number(s->id) && (hash = hash_number(hash, 0), true));
}

void tune_space_measure(struct tune_space *s)
{
    s->size = 1;
    for (int i = 0; i < s->count; i++) {
        tune_index size = tune_domain_size(&s->dimensions[i].domain);
        s->size = size && s->size > TUNE_INDEX_MAX / size ? TUNE_INDEX_MAX : s->size * size;
    }
}

struct tune_space *tune_space_parse(struct tune_document *document)
{
    struct tune_space *s = calloc(1, sizeof *s);
    if (!s) {
        tune_error_cannot("out of memory for a space");
        tune_document_free(document);
        return NULL;
    }
    s->document = document;
    if (read_all(s) < 0) {
        tune_space_free(s);
        return NULL;
    }
    tune_space_measure(s);
    make_id(s);
    return s;
}

struct tune_space *tune_space_read(const char *path)
{
    struct tune_document *document = tune_document_read(path);
    return document ? tune_space_parse(document) : NULL;
}

void tune_space_free(struct tune_space *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->constraint_count; i++)
        tune_expression_free(s->constraints[i]);
    tune_document_free(s->document);
    free(s);
}

/* ---- entities ---- */

void tune_space_entity(const struct tune_space *s, tune_index i, struct tune_value *values)
{
    for (int k = s->count - 1; k >= 0; k--) {
        const struct tune_domain *domain = &s->dimensions[k].domain;
        tune_index size = tune_domain_size(domain), at;
        if (i <= UINT64_MAX && size <= UINT64_MAX) { /* 64-bit division is several times faster than 128-bit division */
            at = (uint64_t)i % (uint64_t)size;
            i = (uint64_t)i / (uint64_t)size;
        } else {
            at = i % size;
            i /= size;
        }
        tune_domain_value(domain, at, &values[k]);
    }
}

int tune_space_find(const struct tune_space *s, const struct tune_value *values, tune_index *i)
{
    tune_index at;
    *i = 0;
    for (int k = 0; k < s->count; k++) {
        if (!tune_domain_find(&s->dimensions[k].domain, &values[k], &at))
            return 0;
        *i = *i * tune_domain_size(&s->dimensions[k].domain) + at;
    }
    return 1;
}

/* True if there is no list of points, or the values are in it. */
static bool is_listed(const struct tune_space *s, const struct tune_value *values)
{
    tune_index at;
    int64_t low = 0, high = s->listed;
    if (!s->points_path)
        return true;
    if (!tune_space_find(s, values, &at))
        return false;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (s->sorted_points[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->listed && s->sorted_points[low] == at;
}

int tune_space_allowed(const struct tune_space *s, const struct tune_value *values)
{
    if (!is_listed(s, values))
        return 0;
    for (int c = 0; c < s->constraint_count; c++) {
        int holds = tune_expression_true(s->constraints[c], values);
        if (holds <= 0)
            return holds;
    }
    return 1;
}

bool tune_space_has(const struct tune_space *s, const struct tune_value *values)
{
    for (int k = 0; k < s->count; k++)
        if (!tune_domain_has(&s->dimensions[k].domain, &values[k]))
            return false;
    return tune_space_allowed(s, values) == 1;
}

int tune_entity_identifier(const char *const *names, const struct tune_value *values, int count, char *text, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        char *at = used < size ? text + used : NULL;
        used += (size_t)snprintf(at, at ? size - used : 0, "%s%s.", i ? "-" : "", names[i]);
        at = used < size ? text + used : NULL;
        used += (size_t)tune_value_id(&values[i], at, at ? size - used : 0);
    }
    return (int)used;
}

int tune_entity_to_string(const char *const *names, const struct tune_value *values, int count,
                          char **text, size_t *size)
{
    int length = tune_entity_identifier(names, values, count, *text, *size);
    if ((size_t)length < *size)
        return length;
    char *grown = realloc(*text, (size_t)length * 2 + 1);
    if (!grown)
        return tune_error_cannot("out of memory for an identifier");
    *text = grown;
    *size = (size_t)length * 2 + 1;
    return tune_entity_identifier(names, values, count, *text, *size);
}
