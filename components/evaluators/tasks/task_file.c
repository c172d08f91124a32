/* task_file.c - the keys of a YAML file and of the files that it includes. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "evaluators/tasks/parts.h"

int tune_task_entry_fail(const struct task_entry *e, const char *format, ...)
{
    char text[sizeof((struct tune_error *)0)->text];
    FORMAT(text, format);
    return tune_document_fail(e->document, e->node, "%s", text);
}

static int put(struct task_config *c, const char *key, const struct tune_node *node, const struct tune_document *document)
{
    for (int i = 0; i < c->count; i++)
        if (!strcmp(c->entries[i].key, key)) {
            c->entries[i] = (struct task_entry){key, node, document};
            return 0;
        }
    if (!tune_array_fit(&c->entries, (size_t)c->count, sizeof *c->entries))
        return tune_error_no_memory("a task file");
    c->entries[c->count++] = (struct task_entry){key, node, document};
    return 0;
}

/* A file that a file names, beside it. */
static int beside(const char *path, const char *name, char *to)
{
    char folder[TUNE_PATH_MAX];
    TRY(tune_file_parent(folder, path));
    return *name == '/' ? tune_path(to, "%s", name) : tune_path(to, "%s/%s", folder, name);
}

static int read_file(struct task_config *c, const char *path, int depth);

static int include(struct task_config *c, const struct tune_document *d, const struct tune_node *node, int depth)
{
    char path[TUNE_PATH_MAX];
    const struct tune_node *const *items = node->type == TUNE_NODE_LIST ? node->items : &node;
    for (int i = 0; i < (node->type == TUNE_NODE_LIST ? node->count : 1); i++) {
        if (items[i]->type != TUNE_NODE_SCALAR || items[i]->value.type != TUNE_VALUE_TEXT)
            return tune_document_fail(d, items[i], "include: expected the name of a file");
        if (depth == TASK_DEEP)
            return tune_document_fail(d, items[i], "includes are nested more than %d deep; perhaps a file includes itself", TASK_DEEP);
        TRY(beside(d->path, items[i]->value.text, path));
        if (read_file(c, path, depth + 1) < 0)
            return tune_error_prefix("%s:%d: include: ", d->path, items[i]->line);
    }
    return 0;
}

static int read_file(struct task_config *c, const char *path, int depth)
{
    if (!tune_array_fit(&c->documents, (size_t)c->document_count, sizeof *c->documents))
        return tune_error_no_memory("a task file");
    struct tune_document *d = tune_document_read_functions(path);
    TRY(d ? 0 : -1);
    c->documents[c->document_count++] = d;
    if (d->root->type != TUNE_NODE_MAP)
        return tune_document_fail(d, d->root, "this is no task file: expected keys such as task, dataset_path, doc_to_text");
    const struct tune_node *included = tune_node_get(d->root, "include");
    if (included)
        TRY(include(c, d, included, depth));
    for (int i = 0; i < d->root->count; i++)
        if (strcmp(d->root->keys[i]->value.text, "include") != 0)
            TRY(put(c, d->root->keys[i]->value.text, d->root->items[i], d));
    return 0;
}

int tune_task_config_read(struct task_config *c, const char *path)
{
    *c = (struct task_config){0};
    return read_file(c, path, 0);
}

void tune_task_config_free(struct task_config *c)
{
    for (int i = 0; i < c->document_count; i++)
        tune_document_free(c->documents[i]);
    free(c->documents);
    free(c->entries);
    *c = (struct task_config){0};
}

const struct task_entry *tune_task_config_get(const struct task_config *c, const char *key)
{
    for (int i = 0; i < c->count; i++)
        if (!strcmp(c->entries[i].key, key))
            return tune_node_none(c->entries[i].node) ? NULL : &c->entries[i];
    return NULL;
}
