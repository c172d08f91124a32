/* operation.c - read ado's operation files and actuator configurations. */
#include "sweeps/spaces/operation.h"

#include <stdlib.h>
#include <string.h>

#include "core/try.h"

void tune_operation_default(struct tune_operation *o)
{
    *o = (struct tune_operation){.mode = TUNE_ORDER_RANDOM, .selector = true, .entities = 1, .in_flight = 1, .memoize = true};
}

/* Check that the operator is the supported one. The error names any other. */
static int read_module(struct tune_document *d, const struct tune_node *operation, const struct tune_other_operators *others)
{
    const struct tune_node *module = tune_node_get(operation, "module");
    const char *operator = NULL, *type = NULL, *class = NULL;
    TRY(tune_document_map(d, module, "module", "operatorName|operationType|moduleClass|moduleName|operatorVersion|moduleType"));
    TRY(tune_document_text(d, module, "operatorName", false, &operator));
    TRY(tune_document_text(d, module, "operationType", false, &type));
    TRY(tune_document_text(d, module, "moduleClass", false, &class));
    if (class && !operator && others && others->refuse(others->context, d, operation, class) < 0)
        return -1;
    if (class && !operator)
        return tune_document_fail(d, tune_node_get(module, "moduleClass"),
                                  "operators of Python modules (%s) cannot be run here; use "
                                  "operatorName: random_walk", class);
    if (!operator)
        return tune_document_fail(d, module, "module needs operatorName: random_walk");
    if (others && others->refuse(others->context, d, operation, operator) < 0)
        return -1;
    if (strcmp(operator, "random_walk") && strcmp(operator, "randomwalk"))
        return tune_document_fail(d, tune_node_get(module, "operatorName"),
                                  "there is no operator %s; use random_walk (with `order` sobol it fills a space evenly)",
                                  operator);
    if (type && strcmp(type, "search") && strcmp(type, "explore"))
        return tune_document_fail(d, tune_node_get(module, "operationType"),
                                  "the operationType of random_walk must be search or explore, not "
                                  "%s", type);
    return 0;
}

/* Read samplerConfig. In older files, its keys are one level higher. */
static int read_sampler(struct tune_operation *o, const struct tune_node *sampler)
{
    struct tune_document *d = o->document;
    const char *mode = NULL, *type = NULL;
    TRY(tune_document_text(d, sampler, "mode", false, &mode));
    TRY(tune_document_text(d, sampler, "samplerType", false, &type));
    if (mode && tune_order_mode(mode, &o->mode) < 0)
        return tune_document_fail(d, tune_node_get(sampler, "mode"), "%s", tune_error_message());
    if (type && strcmp(type, "generator") && strcmp(type, "selector"))
        return tune_document_fail(d, tune_node_get(sampler, "samplerType"),
                                  "samplerType must be generator (entities of the grid) or "
                                  "selector (entities in the store), not %s", type);
    if (type)
        o->selector = !strcmp(type, "selector");
    if (tune_node_get(sampler, "module"))
        return tune_document_fail(d, tune_node_get(sampler, "module"), "samplers of Python modules cannot be run here");
    return tune_document_texts(d, sampler, "grouping", false, &o->grouping, &o->group_count);
}

const char *const tune_filter_names[4] = {"noFilter", "measured", "unmeasured", "partial"};

int tune_filter_find(const char *name)
{
    for (int i = 0; i < 4; i++)
        if (!strcasecmp(name, tune_filter_names[i]))
            return i;
    return -1;
}

static int read_filter(struct tune_operation *o, const struct tune_node *filter)
{
    const char *mode = NULL;
    if (!filter)
        return 0;
    TRY(tune_document_map(o->document, filter, "filter", "filterMode"));
    TRY(tune_document_text(o->document, filter, "filterMode", false, &mode));
    int found = mode ? tune_filter_find(mode) : 0;
    o->filter = (enum tune_filter)(found < 0 ? 0 : found);
    return found >= 0 ? 0 : tune_document_fail(o->document, tune_node_get(filter, "filterMode"),
                                               "filterMode must be noFilter, measured, unmeasured "
                                               "or partial, not %s", mode);
}

static int whole(struct tune_document *d, const struct tune_node *map, const char *key, int64_t low, int64_t high, int64_t *to)
{
    TRY(tune_document_whole(d, map, key, false, to));
    if (*to < low || *to > high)
        return tune_document_fail(d, tune_node_get(map, key), "%s must be from %lld to %lld", key,
                                  (long long)low, (long long)high);
    return 0;
}

static int read_entities(struct tune_document *d, const struct tune_node *node, int64_t *entities)
{
    const struct tune_value all = tune_value_text("all");
    if (!node)
        return 0;
    bool scalar = node->type == TUNE_NODE_SCALAR;
    if (scalar && tune_value_equal(&node->value, &all))
        *entities = -1;
    else if (scalar && node->value.type == TUNE_VALUE_INT && node->value.integer >= 1)
        *entities = node->value.integer;
    else
        return tune_document_fail(d, node, "numberEntities must be all or a whole number of at "
                                           "least 1");
    return 0;
}

static int read_parameters(struct tune_operation *o, const struct tune_node *p)
{
    struct tune_document *d = o->document;
    const struct tune_node *entities = tune_node_get(p, "numberEntities"), *sampler = tune_node_get(p, "samplerConfig");
    int64_t in_flight = 1, retries = 0;
    if (!p)
        return 0;
    TRY(tune_document_map(d, p, "parameters", "numberEntities|batchSize|singleMeasurement|maxRetries|samplerConfig|filter|mode|"
                          "samplerType|grouping"));
    TRY(read_entities(d, entities, &o->entities));
    TRY(whole(d, p, "batchSize", 1, 1024, &in_flight));
    TRY(whole(d, p, "maxRetries", 0, 1000, &retries));
    TRY(tune_document_bool(d, p, "singleMeasurement", false, &o->memoize));
    if (o->entities > 0 && in_flight > o->entities)
        return tune_document_fail(d, tune_node_get(p, "batchSize"), "batchSize %lld must not be "
                                                                    "more than numberEntities %lld",
                                  (long long)in_flight, (long long)o->entities);
    o->in_flight = (int)in_flight;
    o->retries = (int)retries;
    if (sampler) {
        TRY(tune_document_map(d, sampler, "samplerConfig", "mode|samplerType|grouping|module|parameters"));
        for (int i = 0; i < p->count; i++) /* older files have it here; it may not be in both places */
            if (tune_node_get(sampler, p->keys[i]->value.text))
                return tune_document_fail(d, p->keys[i], "%s is also in samplerConfig; leave one "
                                                         "of them out",
                                          p->keys[i]->value.text);
    }
    TRY(read_sampler(o, sampler ? sampler : p));
    return read_filter(o, tune_node_get(p, "filter"));
}

/* Read the name in the metadata, and ignore other keys. */
static int read_metadata(struct tune_document *d, const char **name)
{
    const struct tune_node *metadata = tune_node_get(d->root, "metadata");
    if (tune_node_none(metadata))
        return 0;
    if (metadata->type != TUNE_NODE_MAP)
        return tune_document_fail(d, metadata, "metadata must be a map of keys and values");
    return tune_document_loose_text(d, metadata, "name", false, name);
}

static const char *first_id(const char *const *ids, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(ids[i], "<will be set by ado>"))
            return ids[i];
    return NULL;
}

static int read_operation(struct tune_operation *o, const struct tune_other_operators *others)
{
    struct tune_document *d = o->document;
    const struct tune_node *root = d->root, *operation;
    const char **spaces = NULL, **configurations = NULL;
    int count;
    TRY(tune_document_map(d, root, "an operation", "metadata|spaces|actuatorConfigurationIdentifiers|operation"));
    TRY(tune_document_texts(d, root, "actuatorConfigurationIdentifiers", false, &configurations, &count));
    o->configuration = first_id(configurations, count);
    TRY(tune_document_texts(d, root, "spaces", false, &spaces, &count));
    o->space = first_id(spaces, count);
    if (count > 1)
        return tune_document_fail(d, tune_node_get(root, "spaces"), "an operation works on one "
                                                                    "space, but %d are named",
                                  count);
    TRY(read_metadata(d, &o->name));
    if (!(operation = tune_node_get(root, "operation")))
        return tune_document_fail(d, root,
                                  "the key operation is missing; expected operation: {module: "
                                  "{operatorName: random_walk}}");
    TRY(tune_document_map(d, operation, "operation", "module|parameters"));
    if (!tune_node_get(operation, "module"))
        return tune_document_fail(d, operation, "operation needs module: {operatorName: random_walk}");
    TRY(read_module(d, operation, others));
    return read_parameters(o, tune_node_get(operation, "parameters"));
}

int tune_operation_read(struct tune_operation *o, const char *path, const struct tune_other_operators *others)
{
    tune_operation_default(o);
    if (!(o->document = tune_document_read(path)))
        return -1;
    if (read_operation(o, others) == 0)
        return 0;
    tune_operation_free(o);
    return -1;
}

void tune_operation_free(struct tune_operation *o)
{
    tune_document_free(o->document);
    o->document = NULL;
}

/* ---- actuator configurations ---- */

#define INERT "match_exact_dependencies|output_dir|model_map|num_tokens_cache_directory|aim_db|aim_dashboard_url|cache"

/* Replace a leading ~ by the home folder. */
static int read_folder(struct tune_actuator_configuration *a, const struct tune_node *p, const char *key, const char **to)
{
    const char *home = getenv("HOME");
    TRY(tune_document_text(a->document, p, key, false, to));
    if (!*to || (*to)[0] != '~' || ((*to)[1] && (*to)[1] != '/') || !home)
        return 0;
    size_t size = strlen(home) + strlen(*to) + 1;
    char *text = tune_document_take(a->document, size);
    if (!text)
        return -1;
    snprintf(text, size, "%s%s", home, *to + 1);
    *to = text;
    return 0;
}

static int read_configuration(struct tune_actuator_configuration *a)
{
    struct tune_document *d = a->document;
    const struct tune_node *p = tune_node_get(d->root, "parameters");
    const char *name;
    TRY(tune_document_map(d, d->root, "an actuator configuration", "actuatorIdentifier|parameters|metadata"));
    TRY(read_metadata(d, &name));
    TRY(tune_document_text(d, d->root, "actuatorIdentifier", true, &a->actuator));
    if (!p)
        return 0;
    TRY(tune_document_map(d, p, "parameters", "data_directory|hf_home|" INERT));
    TRY(read_folder(a, p, "data_directory", &a->data_directory));
    TRY(read_folder(a, p, "hf_home", &a->hf_home));
    if (!(a->inert = tune_document_take(d, (size_t)(p->count + 1) * sizeof *a->inert)))
        return -1;
    for (int i = 0; i < p->count; i++)
        if (strcmp(p->keys[i]->value.text, "data_directory") && strcmp(p->keys[i]->value.text, "hf_home"))
            a->inert[a->inert_count++] = p->keys[i]->value.text;
    return 0;
}

int tune_actuator_configuration_read(struct tune_actuator_configuration *a, const char *path)
{
    *a = (struct tune_actuator_configuration){0};
    if (!(a->document = tune_document_read(path)))
        return -1;
    if (read_configuration(a) == 0)
        return 0;
    tune_actuator_configuration_free(a);
    return -1;
}

void tune_actuator_configuration_free(struct tune_actuator_configuration *a)
{
    tune_document_free(a->document);
    a->document = NULL;
}
