/* document.c - the memory of a document, reading it, and looking up nodes in its tree. */
#include "files/document.h"

#include <stdlib.h>
#include <string.h>

#include "files/file.h"
#include "files/json.h"
#include "core/nearest.h"
#include "core/pool.h"
#include "core/try.h"
#include "files/document_tree.h"

/* ---- memory ---- */

static int no_memory(const char *path)
{
    return tune_error_cannot("%s: no memory to read it", path);
}

void *tune_document_take(struct tune_document *d, size_t size)
{
    void *piece = tune_pool_take(&d->memory, size);
    if (!piece)
        no_memory(d->path);
    return piece;
}

void tune_document_free(struct tune_document *d)
{
    if (!d)
        return;
    tune_pool_free(d->memory);
    free(d);
}

/* ---- reading ---- */

static struct tune_document *new_document(const char *path)
{
    struct tune_document *d = calloc(1, sizeof *d);
    char *copy = d ? tune_pool_take(&d->memory, strlen(path) + 1) : NULL;
    if (copy) {
        d->path = strcpy(copy, path);
        return d;
    }
    free(d);
    no_memory(path);
    return NULL;
}

/* Both JSON and YAML require UTF-8. */
static int check_encoding(const struct tune_tree *t, const char *text, size_t size)
{
    size_t bad;
    int line = 1, column = 1;
    if (tune_utf8_valid(text, size, &bad))
        return 0;
    for (size_t i = 0; i < bad; i++) {
        column = text[i] == '\n' ? 1 : column + (((unsigned char)text[i] & 0xC0) != 0x80);
        line += text[i] == '\n';
    }
    return tune_tree_fail(t, line, column, "byte 0x%02x is no UTF-8; save the file as UTF-8", (unsigned char)text[bad]);
}

/* A NUL follows text. */
static struct tune_document *parse(const char *path, const char *text, size_t size, bool json, bool functions)
{
    struct tune_tree t = {.document = new_document(path), .functions = functions};
    if (!t.document)
        return NULL;
    int status = check_encoding(&t, text, size);
    if (json && strncmp(text, "\xEF\xBB\xBF", 3) == 0) { /* a byte order mark, which libyaml skips
                                                          * by itself */
        text += 3;
        size -= 3;
    }
    if (status == 0)
        status = json ? tune_tree_json(&t, text, size, &t.document->root) : tune_tree_yaml(&t, text, size, &t.document->root);
    free(t.stack);
    if (status == 0)
        return t.document;
    tune_document_free(t.document);
    return NULL;
}

struct tune_document *tune_document_parse(const char *path, const char *text, size_t size, bool json)
{
    if (size > TUNE_DOCUMENT_BYTES) {
        tune_error_usage("%s: %zu bytes, more than the %d that such a text may have", path, size,
                         TUNE_DOCUMENT_BYTES);
        return NULL;
    }
    char *copy = malloc(size + 1);
    if (!copy) {
        no_memory(path);
        return NULL;
    }
    memcpy(copy, text, size);
    copy[size] = 0;
    struct tune_document *d = parse(path, copy, size, json, false);
    free(copy);
    return d;
}

struct tune_document *tune_document_read(const char *path)
{
    char *text;
    size_t size, length = strlen(path);
    if (tune_file_read(path, TUNE_DOCUMENT_BYTES, &text, &size) < 0)
        return NULL;
    struct tune_document *d = parse(path, text, size, length > 5 && strcmp(path + length - 5, ".json") == 0, false);
    free(text);
    return d;
}

struct tune_document *tune_document_read_functions(const char *path)
{
    char *text;
    size_t size;
    if (tune_file_read(path, TUNE_DOCUMENT_BYTES, &text, &size) < 0)
        return NULL;
    struct tune_document *d = parse(path, text, size, false, true);
    free(text);
    return d;
}

/* ---- looking up ---- */

int tune_document_fail(const struct tune_document *d, const struct tune_node *at, const char *format, ...)
{
    char text[sizeof((struct tune_error *)0)->text];
    FORMAT(text, format);
    if (at)
        tune_error_usage("%s:%d:%d: %s", d->path, at->line, at->column, text);
    else
        tune_error_usage("%s: %s", d->path, text);
    return -1;
}

const struct tune_node *tune_node_get(const struct tune_node *node, const char *key)
{
    for (int i = 0; node && node->type == TUNE_NODE_MAP && i < node->count; i++)
        if (strcmp(node->keys[i]->value.text, key) == 0)
            return node->items[i];
    return NULL;
}

bool tune_node_none(const struct tune_node *node)
{
    return !node || (node->type == TUNE_NODE_SCALAR && node->value.type == TUNE_VALUE_NONE);
}

/* The kind of a node in words, for messages. */
static const char *kind(const struct tune_node *node)
{
    static const char *const scalars[] = {
        [TUNE_VALUE_NONE] = "nothing (null)", [TUNE_VALUE_BOOL] = "a boolean", [TUNE_VALUE_INT] = "a whole number",
        [TUNE_VALUE_FLOAT] = "a number",      [TUNE_VALUE_TEXT] = "a text",
    };
    return !node                            ? "nothing"
           : node->type == TUNE_NODE_LIST ? "a list"
           : node->type == TUNE_NODE_MAP  ? "a map"
                                            : scalars[node->value.type];
}

int tune_document_map(const struct tune_document *d, const struct tune_node *node, const char *what, const char *known)
{
    enum { MOST = 64 };
    char text[1024];
    const char *names[MOST];
    int count = 0;
    if (!node || node->type != TUNE_NODE_MAP)
        return tune_document_fail(d, node, "%s must be a map of keys to values, found %s", what, kind(node));
    snprintf(text, sizeof text, "%s", known);
    for (char *at = text; at && count < MOST;) {
        names[count++] = at;
        at = strchr(at, '|');
        if (at)
            *at++ = 0;
    }
    for (int i = 0; i < node->count; i++) {
        const char *key = node->keys[i]->value.text;
        if (tune_name_find(names, count, key) >= 0)
            continue;
        const char *nearest = tune_nearest(key, names, count, NULL);
        return tune_document_fail(d, node->keys[i], "unknown key \"%s\" in %s; %s%s%s", key, what,
                                  nearest ? "the nearest is \"" : "expected one of: ", nearest ? nearest : known,
                                  nearest ? "\"" : "");
    }
    return 0;
}

int tune_document_list(const struct tune_document *d, const struct tune_node *map, const char *key, const struct tune_node **list)
{
    *list = tune_node_get(map, key);
    if (tune_node_none(*list))
        return 0;
    return (*list)->type == TUNE_NODE_LIST ? (*list)->count : tune_document_fail(d, *list, "%s must be a list", key);
}

int tune_document_value(struct tune_document *d, const struct tune_node *node, struct tune_value *value)
{
    *value = node->value;
    if (node->type == TUNE_NODE_SCALAR)
        return 0;
    if (node->type == TUNE_NODE_MAP)
        return tune_document_fail(d, node, "a value must be a scalar or a list of such, found a map");
    struct tune_value *items = tune_document_take(d, (size_t)node->count * sizeof *items);
    if (!items)
        return -1;
    for (int i = 0; i < node->count; i++)
        TRY(tune_document_value(d, node->items[i], items + i));
    *value = (struct tune_value){.type = TUNE_VALUE_LIST, .list = {items, node->count}};
    return 0;
}

const char *tune_document_to_string(struct tune_document *d, const struct tune_value *value)
{
    size_t size = (size_t)tune_value_str(value, NULL, 0) + 1;
    char *text = tune_document_take(d, size);
    if (text)
        tune_value_str(value, text, size);
    return text;
}

int tune_document_texts(struct tune_document *d, const struct tune_node *map, const char *key, bool loose, const char ***to,
                        int *count)
{
    const struct tune_node *list;
    int items = tune_document_list(d, map, key, &list);
    *count = 0;
    if (items < 0 || !(*to = tune_document_take(d, (size_t)(items + 1) * sizeof **to)))
        return -1;
    for (; *count < items; ++*count) {
        const struct tune_node *item = list->items[*count];
        if (tune_node_none(item) || item->type != TUNE_NODE_SCALAR || (item->value.type != TUNE_VALUE_TEXT && !loose))
            return tune_document_fail(d, item, "%s: item %d must be a text", key, *count);
        if (!((*to)[*count] = tune_document_to_string(d, &item->value)))
            return -1;
    }
    return 0;
}

/* ---- members ---- */

static const struct tune_node *member(const struct tune_node *map, const char *key)
{
    const struct tune_node *node = tune_node_get(map, key);
    return tune_node_none(node) ? NULL : node;
}

static int absent(const struct tune_document *d, const struct tune_node *map, const char *key, bool required)
{
    return required ? tune_document_fail(d, map, "the key \"%s\" is missing", key) : 0;
}

/* Report a node of the wrong type. */
static int not_a(const struct tune_document *d, const struct tune_node *node, const char *key, const char *wanted)
{
    char text[64];
    const char *hint = "";
    bool scalar = node->type == TUNE_NODE_SCALAR;
    if (!scalar)
        return tune_document_fail(d, node, "\"%s\" must be %s, found %s", key, wanted, kind(node));
    tune_value_str(&node->value, text, sizeof text);
    if (node->value.type == TUNE_VALUE_TEXT) {
        char *end;
        strtod(text, &end);
        if (end > text && !*end)
            hint = "; a number stands without quotes, in YAML also with a point and a signed exponent (1.0e-5)";
        else if (strcmp(wanted, "true or false") == 0)
            hint = "; without quotes";
    } else if (strcmp(wanted, "a text") == 0) {
        hint = "; put it in quotes";
    }
    return tune_document_fail(d, node, "\"%s\" must be %s, found %s: %s%s", key, wanted, kind(node), text, hint);
}

static int text_of(struct tune_document *d, const struct tune_node *map, const char *key, bool required, bool loose,
                   const char **to)
{
    const struct tune_node *node = member(map, key);
    if (!node)
        return absent(d, map, key, required);
    if (node->type != TUNE_NODE_SCALAR || (node->value.type != TUNE_VALUE_TEXT && !loose))
        return not_a(d, node, key, "a text");
    if (node->value.type == TUNE_VALUE_TEXT) {
        *to = node->value.text;
        return 0;
    }
    const char *spelled = tune_document_to_string(d, &node->value);
    if (!spelled)
        return -1;
    *to = spelled;
    return 0;
}

int tune_document_text(struct tune_document *d, const struct tune_node *map, const char *key, bool required, const char **to)
{
    return text_of(d, map, key, required, false, to);
}

int tune_document_loose_text(struct tune_document *d, const struct tune_node *map, const char *key, bool required, const char **to)
{
    return text_of(d, map, key, required, true, to);
}

int tune_document_whole(struct tune_document *d, const struct tune_node *map, const char *key, bool required, int64_t *to)
{
    const struct tune_node *node = member(map, key);
    if (!node)
        return absent(d, map, key, required);
    if (node->type != TUNE_NODE_SCALAR || node->value.type != TUNE_VALUE_INT)
        return not_a(d, node, key, "a whole number");
    *to = node->value.integer;
    return 0;
}

int tune_document_number(struct tune_document *d, const struct tune_node *map, const char *key, bool required, double *to)
{
    const struct tune_node *node = member(map, key);
    if (!node)
        return absent(d, map, key, required);
    if (node->type != TUNE_NODE_SCALAR || node->value.type == TUNE_VALUE_BOOL || !tune_value_number(&node->value, to))
        return not_a(d, node, key, "a number");
    return 0;
}

int tune_document_bool(struct tune_document *d, const struct tune_node *map, const char *key, bool required, bool *to)
{
    const struct tune_node *node = member(map, key);
    if (!node)
        return absent(d, map, key, required);
    if (node->type != TUNE_NODE_SCALAR || node->value.type != TUNE_VALUE_BOOL)
        return not_a(d, node, key, "true or false");
    *to = node->value.boolean;
    return 0;
}
