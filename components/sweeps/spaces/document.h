/* document.h - a file of settings as a tree that remembers its lines: YAML as PyYAML's safe loader
 * reads it, or JSON.
 *
 * ado's files are YAML 1.1 with PyYAML's rules for plain scalars: yes, no, on and off are booleans,
 * 1e5 is a text, 310e50 too, 1_000 is 1000, 010 is 8, 1:30 is 90, ~ is None, a date is a text. A
 * file whose name ends in .json holds the same keys in strict JSON, where 1e5 is a number. Anchors,
 * aliases and << work; an alias within itself, or a tree of more than TUNE_DOCUMENT_NODES nodes
 * when aliases are written out, is an error, and so are duplicate keys. Everything lives until
 * tune_document_free. Example:
 *
 *     struct tune_document *d = tune_document_read("space.yaml");
 *     const struct tune_node *spaces = tune_node_get(d->root, "entitySpace");
 *     if (spaces->type != TUNE_NODE_LIST)
 *         return tune_document_fail(d, spaces, "entitySpace must be a list of properties");
 *                                                 "space.yaml:12:3: entitySpace must be a list of properties" */
#ifndef TUNE_SPACES_DOCUMENT_H
#define TUNE_SPACES_DOCUMENT_H

#include <stdarg.h>

#include "core/error.h"
#include "sweeps/spaces/value.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TUNE_DOCUMENT_NODES 2000000
#define TUNE_DOCUMENT_DEPTH 100
#define TUNE_DOCUMENT_BYTES (64 << 20)

enum tune_node_type { TUNE_NODE_SCALAR, TUNE_NODE_LIST, TUNE_NODE_MAP };

struct tune_node {
    enum tune_node_type type;
    int line, column;                     /* from 1 */
    struct tune_value value;              /* scalar: never a list */
    int count;                            /* items, or pairs */
    const struct tune_node *const *keys;  /* map: scalars that are texts */
    const struct tune_node *const *items; /* list, map */
};

struct tune_document {
    const char *path;              /* for messages */
    const struct tune_node *root;  /* an empty file: a scalar None */
    struct tune_document_memory *memory;
};

/* tune_document_read - the file, of at most TUNE_DOCUMENT_BYTES. tune_document_parse - the same
 * from memory; path is copied. NULL with an error of kind USAGE with path:line:column: bad syntax,
 * bad UTF-8, two documents in one file, a tag that is not a plain one of YAML's, a key that is no
 * text, a whole number beyond 64 bits, a date with a time (it wants quotes). Kind FAILED:
 * unreadable; kind CANNOT: no memory. */
struct tune_document *tune_document_read(const char *path);
struct tune_document *tune_document_parse(const char *path, const char *text, size_t size,
                                          bool json);
void tune_document_free(struct tune_document *d);

/* tune_document_take - size bytes that live as long as the document, zeroed; NULL with an error: no
 * memory.
 * tune_document_spell - str() of a value, in the document's memory; NULL with an error: no memory.
 * tune_document_value - a scalar, or a list of them (nested too), as one value into *value, in the
 * document's memory. -1: a map in it. */
void *tune_document_take(struct tune_document *d, size_t size);
const char *tune_document_spell(struct tune_document *d, const struct tune_value *value);
int tune_document_value(struct tune_document *d, const struct tune_node *node,
                        struct tune_value *value);

/* tune_document_fail - set the error "path:line:column: <text>", kind USAGE; returns -1. at NULL:
 * without a line. */
int tune_document_fail(const struct tune_document *d, const struct tune_node *at,
                       const char *format, ...) TUNE_PRINTF(3, 4);

/* tune_node_get - the map's member, or NULL (also where node is NULL or no map).
 * tune_node_none - there is none, or it is None.
 * tune_document_map - node must be a map with no key but those of known
 * ("identifier|metadata|..."): names the key, where it stands, the nearest known one. what: "a
 * property of entitySpace". */
const struct tune_node *tune_node_get(const struct tune_node *node, const char *key);
bool tune_node_none(const struct tune_node *node);
int tune_document_map(const struct tune_document *d, const struct tune_node *node,
                      const char *what, const char *known);

/* The map's member of that type into *to, which stays as it is where there is no such member
 * (required: an error); None counts as absent. A number where a text is wanted is an error that
 * says to put it in quotes, unless loose: then it is spelled (str()). */
int tune_document_text(struct tune_document *d, const struct tune_node *map, const char *key,
                       bool required, const char **to);
int tune_document_loose_text(struct tune_document *d, const struct tune_node *map, const char *key,
                             bool required, const char **to);
int tune_document_whole(struct tune_document *d, const struct tune_node *map, const char *key,
                        bool required, int64_t *to);
int tune_document_number(struct tune_document *d, const struct tune_node *map, const char *key,
                         bool required, double *to);
int tune_document_bool(struct tune_document *d, const struct tune_node *map, const char *key,
                       bool required, bool *to);

#ifdef __cplusplus
}
#endif
#endif
