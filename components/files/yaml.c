/* yaml.c - read libyaml's events into a document's tree.
 *
 * libyaml finds maps, lists and scalars, and their positions. yaml_scalar.c finds the meaning of
 * scalars. This file does anchors, aliases, merge keys and all limits. The function that fetches an
 * event deletes it.
 *
 * libyaml is opened for each text and closed after it. Only its header is needed to build, for the
 * layout of parser and events. TUNE_WITHOUT_YAML: this build was made without the header. */
#include "files/document_tree.h"

#ifdef TUNE_WITHOUT_YAML

int tune_tree_yaml(struct tune_tree *t, const char *text, size_t size, const struct tune_node **root)
{
    (void)text, (void)size, (void)root;
    return tune_error_cannot("%s: this is YAML, and this build is without the header of libyaml, yaml.h, so it reads no YAML. "
                             "Install it and build again: make setup (Debian: libyaml-dev), then make", t->document->path);
}

#else

#include <search.h>
#include <string.h>
#include <yaml.h>

#include "core/try.h"
#include "files/library.h"

/* The functions of libyaml that are called here, without their prefix yaml_. */
struct libyaml {
    struct tune_library library;
    int (*parser_initialize)(yaml_parser_t *parser);
    void (*parser_set_input_string)(yaml_parser_t *parser, const yaml_char_t *text, size_t size);
    int (*parser_parse)(yaml_parser_t *parser, yaml_event_t *event);
    void (*parser_delete)(yaml_parser_t *parser);
    void (*event_delete)(yaml_event_t *event);
};

static int open_libyaml(struct libyaml *y, const char *path)
{
    TRY(tune_library_open(&y->library, "libyaml-0.so.2", "libyaml-0-2", "%s: this is YAML", path));
    TRY(tune_library_find(&y->library, "yaml_parser_initialize", &y->parser_initialize));
    TRY(tune_library_find(&y->library, "yaml_parser_set_input_string", &y->parser_set_input_string));
    TRY(tune_library_find(&y->library, "yaml_parser_parse", &y->parser_parse));
    TRY(tune_library_find(&y->library, "yaml_parser_delete", &y->parser_delete));
    return tune_library_find(&y->library, "yaml_event_delete", &y->event_delete);
}

/* An anchor: its node, and what an alias of it adds. */
struct anchor {
    const char *name;
    const struct tune_node *node;
    int64_t nodes;
    int height; /* depth of nested lists and maps */
    bool open;  /* its node is not complete yet */
    int line;
};

struct reader {
    struct tune_tree *tree;
    const char *text;
    size_t size;
    struct libyaml yaml;
    yaml_parser_t parser;
    void *anchors; /* a tree of struct anchor, for tsearch */
};

/* The node made from an event and its nested events. */
struct made {
    const struct tune_node *node;
    int height;
};

static int fail_at(const struct reader *r, yaml_mark_t at, const char *format, ...) TUNE_PRINTF(3, 4);
static int fail_at(const struct reader *r, yaml_mark_t at, const char *format, ...)
{
    char text[512];
    FORMAT(text, format);
    return tune_tree_fail(r->tree, (int)at.line + 1, (int)at.column + 1, "%s", text);
}

static int no_memory(const struct reader *r)
{
    return tune_error_cannot("%s: no memory to read it", r->tree->document->path);
}

/* Report libyaml's error. */
static int syntax(const struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    yaml_mark_t at = p->problem_mark;
    const char *problem = p->problem ? p->problem : "no YAML", *context = p->context, *hint = "";
    if (p->error == YAML_MEMORY_ERROR)
        return no_memory(r);
    if (p->error == YAML_READER_ERROR) { /* libyaml gives a byte offset here, not a line and
                                          * column */
        at.line = at.column = 0;
        for (size_t i = 0; i < p->problem_offset && i < r->size; i++) {
            at.line += r->text[i] == '\n';
            at.column = r->text[i] == '\n' ? 0 : at.column + 1;
        }
        return fail_at(r, at, "%s (0x%02x)", problem, (unsigned)p->problem_value);
    }
    if (strstr(problem, "cannot start any token"))
        hint = "; indent with spaces, not tabs, and put a text that begins with one of % @ ` in quotes";
    if (context)
        return fail_at(r, at, "%s, %s that begins on line %d%s", problem, context, (int)p->context_mark.line + 1, hint);
    return fail_at(r, at, "%s%s", problem, hint);
}

static int next_event(struct reader *r, yaml_event_t *event)
{
    return r->yaml.parser_parse(&r->parser, event) ? 0 : syntax(r);
}

/* ---- anchors ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct anchor *)a)->name, ((const struct anchor *)b)->name);
}

static void free_nothing(void *anchor)
{
    (void)anchor; /* text of the document */
}

/* Record the anchor of a node that is not complete yet. *anchor NULL: the event has no anchor. */
static int name_node(struct reader *r, const yaml_event_t *event, const yaml_char_t *name, const struct tune_node *node,
                     struct anchor **anchor)
{
    *anchor = NULL;
    if (!name)
        return 0;
    size_t size = strlen((const char *)name) + 1;
    struct anchor *a = tune_document_take(r->tree->document, sizeof *a);
    char *copy = tune_document_take(r->tree->document, size);
    if (!a || !copy)
        return -1;
    memcpy(copy, name, size);
    *a = (struct anchor){.name = copy, .node = node, .nodes = r->tree->nodes - 1, .open = true, .line = node->line};
    struct anchor *const *found = tsearch(a, &r->anchors, by_name);
    if (!found)
        return no_memory(r);
    if (*found != a)
        return fail_at(r, event->start_mark, "the anchor &%.60s is there already, on line %d", a->name, (*found)->line);
    *anchor = a;
    return 0;
}

static void end_anchor(const struct reader *r, struct anchor *a, int height)
{
    if (!a)
        return;
    a->nodes = r->tree->nodes - a->nodes;
    a->height = height;
    a->open = false;
}

static int alias(struct reader *r, const yaml_event_t *event, int depth, struct made *made)
{
    const struct anchor wanted = {.name = (const char *)event->data.alias.anchor};
    struct anchor *const *found = tfind(&wanted, &r->anchors, by_name);
    if (!found)
        return fail_at(r, event->start_mark, "the alias *%.60s has no anchor &%.60s before it", wanted.name, wanted.name);
    const struct anchor *a = *found;
    if (a->open)
        return fail_at(r, event->start_mark, "the alias *%.60s stands within its own anchor, on line %d", a->name, a->line);
    if (depth + a->height > TUNE_DOCUMENT_DEPTH)
        return fail_at(r, event->start_mark, "nested deeper than %d, with the alias *%.60s written out", TUNE_DOCUMENT_DEPTH,
                       a->name);
    *made = (struct made){a->node, a->height};
    return tune_tree_count(r->tree, a->nodes, (int)event->start_mark.line + 1, (int)event->start_mark.column + 1);
}

/* ---- nodes ---- */

static struct tune_node *new_node(struct reader *r, enum tune_node_type type, const yaml_event_t *event)
{
    return tune_tree_node(r->tree, type, (int)event->start_mark.line + 1, (int)event->start_mark.column + 1);
}

static const char *const tags[] = {"str", "int", "float", "bool", "null", "seq", "map"};
enum { SCALAR_TAGS = 5, SEQ_TAG = 5, MAP_TAG, TAGS };

/* Write the tag to *name: "int" for "!!int", NULL for none. Only tags from first up to end are
 * allowed here. */
static int tag_of(struct reader *r, const yaml_event_t *event, const yaml_char_t *tag, int first, int end, const char **name)
{
    static const char prefix[] = "tag:yaml.org,2002:";
    const char *text = (const char *)tag;
    *name = NULL;
    if (!text || strcmp(text, "!") == 0)
        return 0;
    bool standard = strncmp(text, prefix, sizeof prefix - 1) == 0;
    text += standard ? sizeof prefix - 1 : 0;
    for (int i = 0; standard && i < TAGS; i++)
        if (strcmp(text, tags[i]) == 0) {
            *name = tags[i];
            return i >= first && i < end ? 0 : fail_at(r, event->start_mark, "the tag !!%s does not fit what follows it", text);
        }
    return fail_at(r, event->start_mark,
                   "the tag %s%.60s is not known here; known are !!str !!int !!float !!bool !!null !!seq !!map",
                   standard ? "!!" : "", text);
}

/* Keep how a plain scalar is written. */
static int keep_written(struct reader *r, const yaml_event_t *event, struct tune_node *node)
{
    size_t size = event->data.scalar.length;
    char *copy = tune_document_take(r->tree->document, size + 1);
    if (!copy)
        return -1;
    node->written = memcpy(copy, event->data.scalar.value, size);
    return 0;
}

static int scalar(struct reader *r, const yaml_event_t *event, struct made *made)
{
    struct tune_node *node = new_node(r, TUNE_NODE_SCALAR, event);
    struct anchor *anchor;
    const char *tag;
    if (!node)
        return -1;
    TRY(name_node(r, event, event->data.scalar.anchor, node, &anchor));
    node->function = r->tree->functions && event->data.scalar.tag && !strcmp((const char *)event->data.scalar.tag, "!function");
    if (node->function)
        tag = "str";
    else
        TRY(tag_of(r, event, event->data.scalar.tag, 0, SCALAR_TAGS, &tag));
    TRY(tune_yaml_scalar(r->tree, node, (const char *)event->data.scalar.value, event->data.scalar.length, tag,
                         event->data.scalar.plain_implicit));
    bool plain = !tag && event->data.scalar.plain_implicit;
    if (plain && node->value.type == TUNE_VALUE_TEXT)
        node->written = node->value.text;
    else if (plain && node->value.type != TUNE_VALUE_NONE)
        TRY(keep_written(r, event, node));
    end_anchor(r, anchor, 0);
    *made = (struct made){node, 0};
    return 0;
}

/* Push the pairs of the maps that a << names onto the tree's stack; of a list, the last map comes
 * first. */
static int push_merged(struct reader *r, const struct tune_node *from)
{
    const struct tune_node *const *maps = from->type == TUNE_NODE_LIST ? from->items : &from;
    for (int m = (from->type == TUNE_NODE_LIST ? from->count : 1) - 1; m >= 0; m--) {
        if (maps[m]->type != TUNE_NODE_MAP)
            return tune_document_fail(r->tree->document, maps[m], "<< takes a map or a list of maps");
        for (int i = 0; i < maps[m]->count; i++) {
            TRY(tune_tree_push(r->tree, maps[m]->keys[i]));
            TRY(tune_tree_push(r->tree, maps[m]->items[i]));
        }
    }
    return 0;
}

/* Check that a key is a text. 1: it is a << that merges. */
static int check_key(const struct reader *r, const yaml_event_t *event, const struct tune_node *key)
{
    bool written = event->type == YAML_SCALAR_EVENT;
    if (key->type != TUNE_NODE_SCALAR)
        return fail_at(r, event->start_mark, "a key must be a text, found a %s", key->type == TUNE_NODE_LIST ? "list" : "map");
    if (key->value.type != TUNE_VALUE_TEXT)
        return fail_at(r, event->start_mark, "the key %s%.60s is no text to YAML; put it in quotes", written ? "" : "*",
                       (const char *)(written ? event->data.scalar.value : event->data.alias.anchor));
    return written && event->data.scalar.plain_implicit && strcmp(key->value.text, "<<") == 0;
}

static int compose(struct reader *r, const yaml_event_t *event, int depth, struct made *made);

/* A list or map whose members are being read. */
struct open {
    bool map, key, merging;         /* key: a key comes next; merging: the next value is merged */
    const struct tune_node *merged; /* NULL: nothing */
    int height;
};

static int member(struct reader *r, const yaml_event_t *event, int depth, struct open *o)
{
    struct made made;
    TRY(compose(r, event, depth, &made));
    o->height = made.height > o->height ? made.height : o->height;
    bool merged = o->merging, key = o->key;
    o->key = o->map && !key;
    o->merging = false;
    if (merged) {
        o->merged = made.node;
        return 0;
    }
    if (key) {
        int merging = check_key(r, event, made.node);
        TRY(merging);
        if (merging && o->merged)
            return fail_at(r, event->start_mark, "<< stands twice in this map; it takes a list of maps too");
        o->merging = merging;
        if (merging)
            return 0;
    }
    return tune_tree_push(r->tree, made.node);
}

static int collection(struct reader *r, const yaml_event_t *event, int depth, struct made *made)
{
    struct open o = {.map = event->type == YAML_MAPPING_START_EVENT};
    struct tune_node *node = new_node(r, o.map ? TUNE_NODE_MAP : TUNE_NODE_LIST, event);
    struct anchor *anchor;
    const char *tag;
    size_t from = r->tree->used;
    int status = 0;
    if (!node)
        return -1;
    if (depth == TUNE_DOCUMENT_DEPTH)
        return fail_at(r, event->start_mark, "nested deeper than %d", TUNE_DOCUMENT_DEPTH);
    TRY(name_node(r, event, o.map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor, node, &anchor));
    TRY(o.map ? tag_of(r, event, event->data.mapping_start.tag, MAP_TAG, TAGS, &tag)
              : tag_of(r, event, event->data.sequence_start.tag, SEQ_TAG, MAP_TAG, &tag));
    o.key = o.map;
    for (bool more = true; more && status == 0;) {
        yaml_event_t inner;
        TRY(next_event(r, &inner));
        more = inner.type != YAML_SEQUENCE_END_EVENT && inner.type != YAML_MAPPING_END_EVENT;
        if (more)
            status = member(r, &inner, depth + 1, &o);
        r->yaml.event_delete(&inner);
    }
    TRY(status);
    size_t own = (r->tree->used - from) / 2;
    if (o.merged)
        TRY(push_merged(r, o.merged));
    TRY(o.map ? tune_tree_map(r->tree, node, from, own) : tune_tree_list(r->tree, node, from));
    end_anchor(r, anchor, o.height + 1);
    *made = (struct made){node, o.height + 1};
    return 0;
}

/* Read the value that begins with this event. depth: number of lists and maps around it. */
static int compose(struct reader *r, const yaml_event_t *event, int depth, struct made *made)
{
    switch (event->type) {
    case YAML_ALIAS_EVENT: return alias(r, event, depth, made);
    case YAML_SCALAR_EVENT: return scalar(r, event, made);
    default: return collection(r, event, depth, made);
    }
}

/* Read the events before and after the only document. */
static int document(struct reader *r, const struct tune_node **root)
{
    struct made made = {NULL, 0};
    for (bool more = true; more;) {
        yaml_event_t event;
        int status = 0;
        TRY(next_event(r, &event));
        switch (event.type) {
        case YAML_STREAM_END_EVENT: more = false; break;
        case YAML_STREAM_START_EVENT: case YAML_DOCUMENT_END_EVENT: break;
        case YAML_DOCUMENT_START_EVENT:
            if (made.node)
                status = fail_at(r, event.start_mark, "a second document begins here; one file holds one");
            break;
        default: status = compose(r, &event, 0, &made);
        }
        r->yaml.event_delete(&event);
        TRY(status);
    }
    *root = made.node ? made.node : tune_tree_node(r->tree, TUNE_NODE_SCALAR, 1, 1);
    return *root ? 0 : -1;
}

/* Read the text with the library, which is open. */
static int read_text(struct reader *r, const struct tune_node **root)
{
    if (!r->yaml.parser_initialize(&r->parser))
        return no_memory(r);
    r->yaml.parser_set_input_string(&r->parser, (const yaml_char_t *)r->text, r->size);
    int status = document(r, root);
    tdestroy(r->anchors, free_nothing);
    r->yaml.parser_delete(&r->parser);
    return status;
}

int tune_tree_yaml(struct tune_tree *t, const char *text, size_t size, const struct tune_node **root)
{
    struct reader r = {.tree = t, .text = text, .size = size};
    int status = open_libyaml(&r.yaml, t->document->path);
    if (status == 0)
        status = read_text(&r, root);
    tune_library_close(&r.yaml.library);
    return status;
}

#endif
