/* document_tree.c - build a document's tree for its readers. */
#include "core/array.h"
#include "core/try.h"
#include "files/document_tree.h"

#include <stdlib.h>
#include <string.h>


int tune_tree_fail(const struct tune_tree *t, int line, int column, const char *format, ...)
{
    char text[1024];
    FORMAT(text, format);
    struct tune_node at = {.line = line, .column = column};
    return tune_document_fail(t->document, &at, "%s", text);
}

int tune_tree_count(struct tune_tree *t, int64_t n, int line, int column)
{
    t->nodes += n;
    if (t->nodes <= TUNE_DOCUMENT_NODES)
        return 0;
    return tune_tree_fail(t, line, column, "more than %d values, aliases written out", TUNE_DOCUMENT_NODES);
}

struct tune_node *tune_tree_node(struct tune_tree *t, enum tune_node_type type, int line, int column)
{
    if (tune_tree_count(t, 1, line, column) < 0)
        return NULL;
    struct tune_node *node = tune_document_take(t->document, sizeof *node);
    if (node) {
        node->type = type;
        node->line = line;
        node->column = column;
    }
    return node;
}

static int no_memory(const struct tune_tree *t)
{
    return tune_error_cannot("%s: no memory to read it", t->document->path);
}

int tune_tree_push(struct tune_tree *t, const struct tune_node *node)
{
    if (!tune_array_fit(&t->stack, t->used, sizeof *t->stack))
        return no_memory(t);
    t->stack[t->used++] = node;
    return 0;
}

int tune_tree_list(struct tune_tree *t, struct tune_node *node, size_t from)
{
    size_t count = t->used - from;
    const struct tune_node **items = tune_document_take(t->document, count * sizeof *items);
    if (!items)
        return -1;
    if (count > 0)
        memcpy(items, t->stack + from, count * sizeof *items);
    node->items = items;
    node->count = (int)count;
    t->used = from;
    return 0;
}

struct pair {
    const struct tune_node *key, *item;
    size_t index; /* its number in the map; merged pairs come first */
};

static int by_key(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    int order = strcmp(x->key->value.text, y->key->value.text);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static int twice(const struct tune_tree *t, const struct pair *first, const struct pair *second)
{
    return tune_tree_fail(t, second->key->line, second->key->column,
                          "the key \"%.100s\" stands twice in this map; first on line %d", second->key->value.text,
                          first->key->line);
}

int tune_tree_map(struct tune_tree *t, struct tune_node *node, size_t from, size_t own)
{
    size_t count = (t->used - from) / 2, merged = count - own;
    struct pair *pairs = malloc((count + 1) * sizeof *pairs);
    const struct tune_node **keys = tune_document_take(t->document, 2 * count * sizeof *keys);
    if (!pairs || !keys) {
        free(pairs);
        return no_memory(t);
    }
    const struct tune_node **items = keys + count;
    for (size_t i = 0; i < count; i++)
        pairs[i] = (struct pair){t->stack[from + 2 * i], t->stack[from + 2 * i + 1], i < own ? merged + i : i - own};
    qsort(pairs, count, sizeof *pairs, by_key);
    /* if a key occurs twice, the last value replaces the first one, at the first one's place */
    for (size_t i = 0, first = 0; i < count; i++) {
        if (i > 0 && strcmp(pairs[i].key->value.text, pairs[i - 1].key->value.text) != 0)
            first = i;
        if (i > first && pairs[i - 1].index >= merged) {
            int status = twice(t, pairs + i - 1, pairs + i);
            free(pairs);
            return status;
        }
        keys[pairs[first].index] = pairs[i].key;
        items[pairs[first].index] = pairs[i].item;
    }
    for (size_t i = 0; i < count; i++)
        if (keys[i]) {
            keys[node->count] = keys[i];
            items[node->count++] = items[i];
        }
    free(pairs);
    node->keys = keys;
    node->items = items;
    t->used = from;
    return 0;
}

int tune_tree_text(struct tune_tree *t, const char *bytes, size_t size, int line, int column, struct tune_value *value)
{
    if (memchr(bytes, 0, size))
        return tune_tree_fail(t, line, column, "a text with a NUL character in it");
    char *copy = tune_document_take(t->document, size + 1);
    if (!copy)
        return -1;
    memcpy(copy, bytes, size);
    *value = tune_value_text(copy);
    return 0;
}

int tune_tree_whole(struct tune_tree *t, const char *digits, size_t size, int base, bool negative, struct tune_node *node,
                    const char *written)
{
    uint64_t magnitude = 0, most = negative ? (uint64_t)1 << 63 : INT64_MAX;
    for (size_t i = 0; i < size; i++) {
        char c = digits[i];
        if (c == '_')
            continue;
        uint64_t digit = (uint64_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
        if (magnitude > (most - digit) / (uint64_t)base)
            return tune_tree_fail(t, node->line, node->column,
                                  "%.60s is a whole number beyond 64 bits; if it is a text, put it in quotes", written);
        magnitude = magnitude * (uint64_t)base + digit;
    }
    node->value = tune_value_int(negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude);
    return 0;
}
