/* yaml.c - documents: the first byte says YAML or JSON, the rest is the file. What is read has places, texts and limits as
 * promised, and, written as JSON, is read as the same tree again. */
#include "files/json.h"
#include "fuzz.h"
#include "files/document.h"

/* The tree as JSON; false: it is too long to look at, or holds what JSON has no number for. */
static char text[1 << 16];
static size_t used;
static bool lossless;

static void put(const char *bytes)
{
    size_t n = strlen(bytes);
    if (used + n >= sizeof text) {
        lossless = false;
        return;
    }
    memcpy(text + used, bytes, n + 1);
    used += n;
}

static void put_scalar(const struct tune_node *n)
{
    static char one[sizeof text];
    HOLDS(n->value.type != TUNE_VALUE_LIST && n->count == 0);
    if (n->value.type == TUNE_VALUE_TEXT)
        HOLDS(tune_utf8_valid(n->value.text, strlen(n->value.text), NULL));
    if (n->value.type == TUNE_VALUE_FLOAT && !(n->value.number - n->value.number == 0))
        lossless = false;
    HOLDS(tune_value_repr(&n->value, NULL, 0) > 0 || n->value.type == TUNE_VALUE_TEXT);
    if (tune_value_json(&n->value, one, sizeof one) >= (int)sizeof one)
        lossless = false;
    else
        put(one);
}

static void walk(const struct tune_node *n, int depth)
{
    HOLDS(n->line >= 1 && n->column >= 1 && depth <= TUNE_DOCUMENT_DEPTH + 1);
    if (n->type == TUNE_NODE_SCALAR) {
        put_scalar(n);
        return;
    }
    put(n->type == TUNE_NODE_MAP ? "{" : "[");
    for (int i = 0; i < n->count && lossless; i++) {
        put(i > 0 ? "," : "");
        if (n->type == TUNE_NODE_MAP) {
            HOLDS(n->keys[i]->type == TUNE_NODE_SCALAR && n->keys[i]->value.type == TUNE_VALUE_TEXT);
            HOLDS(tune_node_get(n, n->keys[i]->value.text) == n->items[i]);
            put_scalar(n->keys[i]);
            put(":");
        }
        walk(n->items[i], depth + 1);
    }
    put(n->type == TUNE_NODE_MAP ? "}" : "]");
}

static void say(int status)
{
    if (status < 0)
        fuzz_failed();
}

static void ask(struct tune_document *d, const struct tune_node *map)
{
    static const char *const keys[] = {"a", "b"};
    const char *t;
    int64_t w;
    double f;
    bool b;
    for (int i = 0; i < 2; i++) {
        say(tune_document_text(d, map, keys[i], true, &t));
        say(tune_document_loose_text(d, map, keys[i], true, &t));
        say(tune_document_whole(d, map, keys[i], true, &w));
        say(tune_document_number(d, map, keys[i], true, &f));
        say(tune_document_bool(d, map, keys[i], true, &b));
    }
    say(tune_document_map(d, map, "this", "a|b|c"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    fuzz_hold_libyaml();
    struct tune_document *d = tune_document_parse("f", (const char *)data + 1, size - 1, data[0] & 1);
    if (!d) {
        HOLDS(tune_error_kind() == TUNE_ERROR_USAGE && strncmp(tune_error_message(), "f:", 2) == 0);
        fuzz_refused();
        return 0;
    }
    struct tune_value v;
    used = 0;
    lossless = true;
    walk(d->root, 1);
    ask(d, d->root);
    if (lossless && tune_document_value(d, d->root, &v) < 0)
        fuzz_refused();
    if (lossless) {
        static char first[sizeof text];
        memcpy(first, text, used + 1);
        struct tune_document *again = tune_document_parse("f", first, used, true);
        HOLDS(again);
        used = 0;
        walk(again->root, 1);
        HOLDS(lossless && strcmp(first, text) == 0);
        tune_document_free(again);
    }
    tune_document_free(d);
    return 0;
}
