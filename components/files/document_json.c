/* document_json.c - read strict JSON into a document's tree. */
#include <string.h>

#include "files/json.h"
#include "core/try.h"
#include "files/document_tree.h"

struct reader {
    struct tune_tree *tree;
    struct tune_json json;
    const char *counted, *begin; /* lines are counted up to here; start of the last line */
    int line;
};

/* Make a node for the value at `at`, which is after all earlier nodes. */
static struct tune_node *node_at(struct reader *r, const char *at, enum tune_node_type type)
{
    for (; r->counted < at; r->counted++)
        if (*r->counted == '\n') {
            r->line++;
            r->begin = r->counted + 1;
        }
    return tune_tree_node(r->tree, type, r->line, (int)(at - r->begin) + 1);
}

static int number(struct reader *r, struct tune_node *node)
{
    const char *begin = r->json.at;
    double value;
    TRY(tune_json_double(&r->json, &value));
    int size = (int)(r->json.at - begin), negative = *begin == '-';
    char written[64];
    node->value = tune_value_float(value);
    if (memchr(begin, '.', (size_t)size) || memchr(begin, 'e', (size_t)size) || memchr(begin, 'E', (size_t)size))
        return 0;
    snprintf(written, sizeof written, "%.*s", size, begin);
    return tune_tree_whole(r->tree, begin + negative, (size_t)(size - negative), 10, negative, node, written);
}

static int scalar(struct reader *r, enum tune_json_type type, struct tune_node *node)
{
    struct tune_text text;
    bool yes;
    switch (type) {
    case TUNE_JSON_NULL: return tune_json_null(&r->json);
    case TUNE_JSON_BOOL:
        TRY(tune_json_bool(&r->json, &yes));
        node->value = tune_value_bool(yes);
        return 0;
    case TUNE_JSON_NUMBER: return number(r, node);
    default:
        TRY(tune_json_string(&r->json, &text));
        return tune_tree_text(r->tree, text.data, text.size, node->line, node->column, &node->value);
    }
}

static int value(struct reader *r, int depth, const struct tune_node **made);

/* Push the members of the list or map just entered onto the tree's stack. */
static int members(struct reader *r, bool map, int depth)
{
    struct tune_text key;
    const struct tune_node *item;
    for (;;) {
        const char *at = r->json.at + strspn(r->json.at, " \t\r\n,"); /* start of the next key, if
                                                                       * there is one */
        int more = map ? tune_json_key(&r->json, &key) : tune_json_item(&r->json);
        if (more <= 0)
            return more;
        if (map) {
            struct tune_node *node = node_at(r, at, TUNE_NODE_SCALAR);
            if (!node)
                return -1;
            TRY(tune_tree_text(r->tree, key.data, key.size, node->line, node->column, &node->value));
            TRY(tune_tree_push(r->tree, node));
        }
        TRY(value(r, depth, &item));
        TRY(tune_tree_push(r->tree, item));
    }
}

/* Read the next value. depth: number of lists and maps around it. */
static int value(struct reader *r, int depth, const struct tune_node **made)
{
    enum tune_json_type type = tune_json_peek(&r->json);
    bool map = type == TUNE_JSON_OBJECT, list = type == TUNE_JSON_ARRAY;
    if (type == TUNE_JSON_ERROR)
        return -1;
    struct tune_node *node = node_at(r, r->json.at, map ? TUNE_NODE_MAP : list ? TUNE_NODE_LIST : TUNE_NODE_SCALAR);
    if (!node)
        return -1;
    *made = node;
    if (!map && !list)
        return scalar(r, type, node);
    if (depth == TUNE_DOCUMENT_DEPTH)
        return tune_tree_fail(r->tree, node->line, node->column, "nested deeper than %d", TUNE_DOCUMENT_DEPTH);
    size_t from = r->tree->used;
    TRY(map ? tune_json_object(&r->json) : tune_json_array(&r->json));
    TRY(members(r, map, depth + 1));
    return map ? tune_tree_map(r->tree, node, from, (r->tree->used - from) / 2) : tune_tree_list(r->tree, node, from);
}

int tune_tree_json(struct tune_tree *t, const char *text, size_t size, const struct tune_node **root)
{
    struct reader r = {.tree = t, .counted = text, .begin = text, .line = 1};
    tune_json_start(&r.json, t->document->path, text, size, 1);
    int status = value(&r, 0, root);
    if (status == 0)
        status = tune_json_end(&r.json);
    tune_json_free(&r.json);
    if (status < 0 && tune_error_kind() == TUNE_ERROR_FAILED) /* an error of the reader, which is a
                                                               * usage error here */
        tune_error_usage("%s", tune_error_message());
    return status;
}
