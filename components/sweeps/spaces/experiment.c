/* experiment.c - read experiment files: check every key, compile expressions, and check defaults
 * against their domains. */
#include "sweeps/spaces/experiment.h"

#include <stdlib.h>
#include <string.h>

#include "core/nearest.h"
#include "core/try.h"
#include "runs/run_folder.h"

struct reading {
    struct tune_document *document;
    struct tune_experiment *e;
};

#define FAIL(r, ...) tune_document_fail((r)->document, __VA_ARGS__)

/* Allocate count elements in the document's memory; never NULL for count 0. */
static void *allocate(struct reading *r, int count, size_t size)
{
    return tune_document_take(r->document, (size_t)(count > 0 ? count : 1) * size);
}

/* Compile the expression under key, over the inputs' names. *to stays NULL if there is none. */
static int expression(struct reading *r, const struct tune_node *map, const char *key, struct tune_expression **to)
{
    const char *text = NULL;
    char where[TUNE_PATH_MAX + 64];
    const struct tune_node *node = tune_node_get(map, key);
    TRY(tune_document_loose_text(r->document, map, key, false, &text));
    if (!text)
        return 0;
    snprintf(where, sizeof where, "%s:%d:%d", r->document->path, node->line, node->column);
    *to = tune_expression_new(text, r->e->names, r->e->input_count, where);
    return *to ? 0 : -1;
}

static int translation(struct reading *r, const struct tune_node *map, int i, struct tune_translation *t)
{
    const struct tune_node *node = map->items[i];
    t->key = map->keys[i]->value.text;
    if (node->type == TUNE_NODE_LIST) {
        t->whole = true;
        return tune_document_texts(r->document, map, t->key, true, &t->arguments, &t->count);
    }
    if (node->type != TUNE_NODE_SCALAR)
        return FAIL(r, node, "a value in map must be a text, null (no flag) or a list of "
                             "arguments");
    if (node->value.type == TUNE_VALUE_NONE)
        return 0;
    if (!(t->arguments = allocate(r, 1, sizeof *t->arguments)) || !(t->arguments[0] = tune_document_to_string(r->document, &node->value)))
        return -1;
    t->count = 1;
    return 0;
}

static int translations(struct reading *r, const struct tune_node *map, struct tune_input *in)
{
    const struct tune_node *node = tune_node_get(map, "map");
    if (!node)
        return 0;
    if (node->type != TUNE_NODE_MAP)
        return FAIL(r, node, "map must consist of entries \"<value>\": \"<text of the flag>\"");
    if (!(in->map = allocate(r, node->count, sizeof *in->map)))
        return -1;
    for (int i = 0; i < node->count; i++)
        TRY(translation(r, node, i, &in->map[i]));
    in->map_count = node->count;
    return 0;
}

/* Read a map of texts to texts into names and values. */
static int pairs(struct reading *r, const struct tune_node *map, const char *key, const char *what, const char ***names,
                 const char ***values, int *count)
{
    const struct tune_node *node = tune_node_get(map, key);
    if (!node)
        return 0;
    if (node->type != TUNE_NODE_MAP)
        return FAIL(r, node, "%s must consist of entries %s", key, what);
    if (!(*names = allocate(r, node->count, sizeof **names)) || !(*values = allocate(r, node->count, sizeof **values)))
        return -1;
    for (; *count < node->count; ++*count) {
        (*names)[*count] = node->keys[*count]->value.text;
        TRY(tune_document_text(r->document, node, (*names)[*count], true, &(*values)[*count]));
    }
    return 0;
}

static int role(struct reading *r, const struct tune_node *map, enum tune_input_role *to)
{
    const char *text = NULL;
    TRY(tune_document_text(r->document, map, "role", false, &text));
    if (!text)
        *to = TUNE_ROLE_PLAIN;
    else if (!strcmp(text, "weights"))
        *to = TUNE_ROLE_WEIGHTS;
    else if (!strcmp(text, "data"))
        *to = TUNE_ROLE_DATA;
    else
        return FAIL(r, tune_node_get(map, "role"), "role must be weights or data, not %s", text);
    return 0;
}

/* Check that an input is required, or has a default in its domain or None. */
static int standard(struct reading *r, const struct tune_node *map, struct tune_input *in)
{
    const struct tune_node *node = tune_node_get(map, "default");
    char text[256];
    TRY(tune_document_bool(r->document, map, "required", false, &in->required));
    if (in->required == (node != NULL))
        return FAIL(r, map, "input %s needs either \"required\": true or a default", in->name);
    if (!node)
        return 0;
    TRY(tune_document_value(r->document, node, &in->standard));
    if (in->standard.type == TUNE_VALUE_NONE || tune_domain_has(&in->domain, &in->standard))
        return 0;
    tune_value_repr(&in->standard, text, sizeof text);
    return FAIL(r, node, "input %s: the default %s is not in the domain of this input", in->name,
                text);
}

#define INPUT_KEYS \
    "identifier|description|required|default|domain|propertyDomain|flag|format|inert|value|map|unsupported|role|make"

static int read_input(struct reading *r, const struct tune_node *node, struct tune_input *in)
{
    struct tune_document *d = r->document;
    char what[300];
    in->at = node;
    TRY(tune_document_text(d, node, "description", false, &in->description));
    TRY(tune_document_text(d, node, "flag", false, &in->flag));
    if (in->flag && !*in->flag)
        return tune_document_fail(d, tune_node_get(node, "flag"), "input %s: the flag is empty; "
                                                                  "for no flag, leave the key out",
                                  in->name);
    TRY(tune_document_text(d, node, "format", false, &in->format));
    TRY(tune_document_text(d, node, "inert", false, &in->inert));
    snprintf(what, sizeof what, "input %.200s", in->name);
    TRY(tune_domain_read(&in->domain, d, tune_node_get(node, tune_node_get(node, "domain") ? "domain" : "propertyDomain"), what));
    TRY(standard(r, node, in));
    TRY(translations(r, node, in));
    TRY(pairs(r, node, "unsupported", "\"<value>\": \"<why it cannot be measured>\"", &in->unsupported, &in->unsupported_reasons,
              &in->unsupported_count));
    TRY(role(r, node, &in->role));
    TRY(tune_document_texts(r->document, node, "make", true, &in->make, &in->make_count));
    for (int i = 0; i < in->map_count && in->role != TUNE_ROLE_PLAIN; i++)
        if (in->map[i].whole)
            return tune_document_fail(d, node, "input %s has a role, so the values in its map must "
                                               "be texts, not lists of arguments", in->name);
    if (in->inert && (in->flag || in->format || in->map || tune_node_get(node, "value")))
        return tune_document_fail(d, node, "input %s is inert, so it must not have a flag, format, "
                                           "map or value", in->name);
    return expression(r, node, "value", &in->expression);
}

/* Read the identifier of an input or target. */
static int identifier(struct reading *r, const struct tune_node *node, const char **to)
{
    TRY(tune_document_text(r->document, node, "identifier", true, to));
    return **to ? 0 : FAIL(r, tune_node_get(node, "identifier"), "the identifier is empty");
}

/* True if two identifiers have the same environment variable. */
static bool same_variable(const char *a, const char *b)
{
    while (*a && *b && tune_input_variable(*a) == tune_input_variable(*b)) {
        a++;
        b++;
    }
    return !*a && !*b;
}

/* Read names first, because expressions need them. */
static int read_inputs(struct reading *r, const struct tune_node *root)
{
    struct tune_experiment *e = r->e;
    const struct tune_node *node;
    int count = tune_document_list(r->document, root, "inputs", &node);
    if (count < 0 || !(e->inputs = allocate(r, count, sizeof *e->inputs)) || !(e->names = allocate(r, count, sizeof *e->names)))
        return -1;
    for (int i = 0; i < count; i++) {
        TRY(tune_document_map(r->document, node->items[i], "an input", INPUT_KEYS));
        TRY(identifier(r, node->items[i], &e->inputs[i].name));
        e->names[i] = e->inputs[i].name;
        for (int k = 0; k < i; k++)
            if (!strcmp(e->names[k], e->names[i]))
                return FAIL(r, node->items[i], "there are two inputs %s", e->names[i]);
            else if (same_variable(e->names[k], e->names[i]))
                return FAIL(r, node->items[i], "inputs %s and %s have the same environment "
                                               "variable; give one of them another name",
                            e->names[k], e->names[i]);
    }
    e->input_count = count;
    for (int i = 0; i < count; i++)
        TRY(read_input(r, node->items[i], &e->inputs[i]));
    return 0;
}

static const char *const reductions[] = {"mean", "median", "min", "max", "sum", "std", "first", "last", "count oom", "count error",
                                         "count ok"};

static int read_target(struct reading *r, const struct tune_node *node, struct tune_target *t)
{
    struct tune_document *d = r->document;
    const char *reduce = NULL, *type = "number";
    t->unit = t->description = "";
    TRY(tune_document_map(d, node, "a target", "identifier|unit|description|type|reduce|optional|whole|shown"));
    TRY(identifier(r, node, &t->name));
    TRY(tune_document_text(d, node, "unit", false, &t->unit));
    TRY(tune_document_text(d, node, "description", false, &t->description));
    TRY(tune_document_text(d, node, "reduce", false, &reduce));
    TRY(tune_document_bool(d, node, "optional", false, &t->optional));
    TRY(tune_document_bool(d, node, "whole", false, &t->whole));
    TRY(tune_document_text(d, node, "type", false, &type));
    if (strcmp(type, "number") && strcmp(type, "text"))
        return tune_document_fail(d, tune_node_get(node, "type"), "the type of target %s must be "
                                                                  "number or text, not %s", t->name,
                                  type);
    t->text = !strcmp(type, "text");
    reduce = reduce ? reduce : t->text ? "first" : "mean";
    if (t->text && (t->whole || *t->unit || (strcmp(reduce, "first") && strcmp(reduce, "last"))))
        return tune_document_fail(d, node, "target %s is a text, so it must have no unit, must not "
                                           "be whole, and its reduce must be first or last",
                                  t->name);
    int i = tune_name_find(reductions, sizeof reductions / sizeof *reductions, reduce);
    if (i < 0)
        return tune_document_fail(d, tune_node_get(node, "reduce"),
                                  "reduce must be mean, median, min, max, sum, std, first, last, "
                                  "count oom, count error or count ok, not %s", reduce);
    t->reduce = (enum tune_reduce)i;
    return expression(r, node, "shown", &t->shown);
}

static int read_targets(struct reading *r, const struct tune_node *root)
{
    struct tune_experiment *e = r->e;
    const struct tune_node *node;
    int count = tune_document_list(r->document, root, "targets", &node);
    if (count < 0 || !(e->targets = allocate(r, count, sizeof *e->targets)))
        return -1;
    if (count == 0)
        return FAIL(r, root, "an experiment needs \"targets\": what it measures");
    for (; e->target_count < count; e->target_count++) {
        struct tune_target *t = &e->targets[e->target_count];
        TRY(read_target(r, node->items[e->target_count], t));
        if (tune_experiment_input(e, t->name) >= 0)
            return FAIL(r, node->items[e->target_count], "%s is both an input and a target; give "
                                                         "one of them another name", t->name);
        if (tune_experiment_target(e, t->name) >= 0)
            return FAIL(r, node->items[e->target_count], "there are two targets %s", t->name);
    }
    return 0;
}

static int read_rules(struct reading *r, const struct tune_node *root)
{
    struct tune_experiment *e = r->e;
    const struct tune_node *node;
    int count = tune_document_list(r->document, root, "rules", &node);
    if (count < 0 || !(e->rules = allocate(r, count, sizeof *e->rules)))
        return -1;
    for (; e->rule_count < count; e->rule_count++) {
        struct tune_rule *rule = &e->rules[e->rule_count];
        TRY(tune_document_map(r->document, node->items[e->rule_count], "a rule", "require|reason|here"));
        TRY(tune_document_text(r->document, node->items[e->rule_count], "reason", true, &rule->reason));
        TRY(expression(r, node->items[e->rule_count], "require", &rule->require));
        TRY(tune_document_bool(r->document, node->items[e->rule_count], "here", false, &rule->here));
        if (!rule->require)
            return FAIL(r, node->items[e->rule_count], "a rule needs \"require\": an expression over the inputs");
    }
    return 0;
}

static int read_all(struct reading *r)
{
    struct tune_document *d = r->document;
    struct tune_experiment *e = r->e;
    const struct tune_node *root = d->root;
    int64_t runs = 1;
    TRY(tune_document_map(d, root, "an experiment", "identifier|actuator|actuatorIdentifier|description|program|arguments|output|plan|"
                          "report|folders|inputs|rules|runs|targets"));
    TRY(tune_document_text(d, root, "identifier", true, &e->name));
    TRY(tune_document_text(d, root, "description", false, &e->description));
    e->actuator = "custom_experiments";
    TRY(tune_document_text(d, root, tune_node_get(root, "actuator") ? "actuator" : "actuatorIdentifier", false, &e->actuator));
    bool none = !strcmp(e->actuator, "replay") || (tune_node_get(root, "program") && tune_node_none(tune_node_get(root, "program")));
    TRY(tune_document_text(d, root, "program", !none, &e->program));
    if (e->program && !*e->program)
        return FAIL(r, tune_node_get(root, "program"), "program must be the name of a program, or "
                                                       "a path with a '/'");
    TRY(tune_document_text(d, root, "output", false, &e->output));
    TRY(tune_document_text(d, root, "report", false, &e->report));
    TRY(tune_document_texts(r->document, root, "arguments", true, &e->arguments, &e->argument_count));
    TRY(tune_document_texts(r->document, root, "plan", true, &e->plan, &e->plan_count));
    if (strchr(e->name, '/') || strchr(e->actuator, '/') || strchr(e->actuator, '.') || !e->name[0] || !e->actuator[0])
        return FAIL(r, root,
                    "identifier and actuator must not contain '/' (nor the actuator '.'), because "
                    "tables and ids are named after them");
    TRY(tune_document_whole(d, root, "runs", false, &runs));
    if (runs < 1 || runs > 1000)
        return FAIL(r, tune_node_get(root, "runs"), "runs must be from 1 to 1000");
    e->runs = (int)runs;
    TRY(pairs(r, root, "folders", "\"<word>\": \"<folder>\"", &e->folder_names, &e->folders, &e->folder_count));
    TRY(read_inputs(r, root));
    TRY(read_rules(r, root));
    return read_targets(r, root);
}

/* Find the experiment's folder: that of the file, or the one in FILE.folder. */
static int read_folder(struct reading *r)
{
    char path[TUNE_PATH_MAX], folder[TUNE_PATH_MAX], *text = NULL;
    size_t size;
    TRY(tune_path(path, "%s.folder", r->document->path));
    TRY(tune_file_parent(folder, r->document->path));
    if (tune_file_exists(path)) {
        TRY(tune_file_read(path, sizeof folder, &text, &size));
        snprintf(folder, sizeof folder, "%.*s", (int)strcspn(text, "\n"), text);
        free(text);
    }
    char *copy = allocate(r, (int)strlen(folder) + 1, 1);
    r->e->folder = copy;
    return copy ? (strcpy(copy, folder), 0) : -1;
}

struct tune_experiment *tune_experiment_read(const char *path)
{
    struct tune_document *d = tune_document_read(path);
    if (!d)
        return NULL;
    struct reading r = {d, tune_document_take(d, sizeof *r.e)};
    if (!r.e) {
        tune_document_free(d);
        return NULL;
    }
    r.e->document = d;
    r.e->report = TUNE_RUN_REPORT;
    r.e->description = "";
    if (read_folder(&r) == 0 && read_all(&r) == 0)
        return r.e;
    tune_experiment_free(r.e);
    return NULL;
}

int tune_experiment_input(const struct tune_experiment *e, const char *name)
{
    return tune_name_find(e->names, e->input_count, name);
}

int tune_experiment_target(const struct tune_experiment *e, const char *name)
{
    int i = e->target_count - 1;
    while (i >= 0 && strcmp(e->targets[i].name, name))
        i--;
    return i;
}

void tune_experiment_free(struct tune_experiment *e)
{
    if (!e)
        return;
    for (int i = 0; i < e->input_count; i++)
        tune_expression_free(e->inputs[i].expression);
    for (int i = 0; i < e->target_count; i++)
        tune_expression_free(e->targets[i].shown);
    for (int i = 0; i < e->rule_count; i++)
        tune_expression_free(e->rules[i].require);
    tune_document_free(e->document);
}
