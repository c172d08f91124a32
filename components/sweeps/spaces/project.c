/* project.c - read tune.json. */
#include "sweeps/spaces/project.h"

#include <string.h>

#include "core/try.h"
#include "files/file.h"
#include "files/document.h"

/* Join the texts of the list with commas. */
static int read_list(struct tune_project *p, const struct tune_node *list)
{
    size_t size = 1;
    for (int i = 0; i < list->count; i++) {
        const struct tune_value *v = &list->items[i]->value;
        bool text = list->items[i]->type == TUNE_NODE_SCALAR && v->type == TUNE_VALUE_TEXT;
        if (!text || !*v->text || strchr(v->text, ','))
            return tune_document_fail(p->document, list->items[i],
                                      "each of experiments must be the path of a file or folder, a "
                                      "text without commas");
        size += strlen(v->text) + 1;
    }
    char *all = tune_document_take(p->document, size), *at = all;
    if (!all)
        return -1;
    for (int i = 0; i < list->count; i++)
        at += sprintf(at, "%s%s", i ? "," : "", list->items[i]->value.text);
    p->experiments = list->count > 0 ? all : NULL;
    return 0;
}

static int read_keys(struct tune_project *p)
{
    struct tune_document *d = p->document;
    const struct tune_node *experiments = tune_node_get(d->root, "experiments");
    TRY(tune_document_map(d, d->root, TUNE_PROJECT_FILE, "store|experiments|actuator_configuration"));
    TRY(tune_document_text(d, d->root, "store", false, &p->store));
    TRY(tune_document_text(d, d->root, "actuator_configuration", false, &p->configuration));
    if (experiments && experiments->type == TUNE_NODE_LIST)
        return read_list(p, experiments);
    return tune_document_text(d, d->root, "experiments", false, &p->experiments);
}

int tune_project_read(struct tune_project *p)
{
    *p = (struct tune_project){0};
    if (!tune_file_exists(TUNE_PROJECT_FILE))
        return 0;
    if (!(p->document = tune_document_read(TUNE_PROJECT_FILE)))
        return -1;
    if (read_keys(p) == 0)
        return 0;
    tune_project_free(p);
    return -1;
}

void tune_project_free(struct tune_project *p)
{
    tune_document_free(p->document);
    *p = (struct tune_project){0};
}
