/* document.h - a settings file as a tree that knows its lines: YAML as PyYAML's safe loader reads
 * it, or JSON.
 *
 * YAML is read by libyaml, which is opened for each file (library.h). Without it, or in a build
 * without its header, reading YAML is an error of kind CANNOT that says what to install.
 *
 * ado's files are YAML 1.1 with PyYAML's rules for plain scalars. yes, no, on and off are booleans.
 * 1e5 and 310e50 are texts. 1_000 is 1000, 010 is 8, 1:30 is 90, ~ is None, and a date is a text. A
 * file ending in .json holds the same keys in strict JSON, where 1e5 is a number.
 *
 * Anchors, aliases and << work. These are errors: an alias within itself, more than
 * TUNE_DOCUMENT_NODES nodes with aliases written out, and duplicate keys. Everything lives until
 * tune_document_free. Example:
 *
 *     struct tune_document *d = tune_document_read("space.yaml");
 *     const struct tune_node *spaces = tune_node_get(d->root, "entitySpace");
 *     if (spaces->type != TUNE_NODE_LIST)
 *         return tune_document_fail(d, spaces, "entitySpace must be a list of properties");
 *                             "space.yaml:12:3: entitySpace must be a list of properties" */
#ifndef TUNE_FILES_DOCUMENT_H
#define TUNE_FILES_DOCUMENT_H

#include <stdarg.h>
#include <stdbool.h>

#include "core/error.h"
#include "core/value.h"

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
    struct tune_value value;              /* scalar; never a list */
    bool function;                        /* a text with the tag !function */
    const char *written;                  /* YAML: a scalar without quotes and tag, as it is
                                           * written; NULL: another node, or None */
    int count;                            /* number of items or pairs */
    const struct tune_node *const *keys;  /* map: keys, which are texts */
    const struct tune_node *const *items; /* list, map: the values */
};

struct tune_document {
    const char *path;              /* for messages */
    const struct tune_node *root;  /* the root node; for an empty file the scalar None */
    struct tune_pool *memory;
};

/* tune_document_read - read a file of at most TUNE_DOCUMENT_BYTES. NULL with path:line:column, kind
 * USAGE: bad syntax or UTF-8, two documents, an unknown tag, or a key that is no text. Also a whole
 * number beyond 64 bits, or a date with a time (it wants quotes). Kind FAILED: unreadable. Kind
 * CANNOT: no memory, or no libyaml.
 * tune_document_read_functions - the same for YAML, whatever the file's name. Texts may have the
 * tag !function, by which lm-evaluation-harness names Python code.
 * tune_document_parse - the same from memory; path is copied.
 * tune_document_free - free the document with all its nodes; NULL is fine. */
struct tune_document *tune_document_read(const char *path);
struct tune_document *tune_document_read_functions(const char *path);
struct tune_document *tune_document_parse(const char *path, const char *text, size_t size,
                                          bool json);
void tune_document_free(struct tune_document *d);

/* tune_document_take - size zeroed bytes that live as long as the document; NULL with an error: no
 * memory.
 * tune_document_to_string - str() of a value, in the document's memory; NULL with an error: no
 * memory.
 * tune_document_value - a scalar, or a nested list of scalars, as one value, in the document's
 * memory. -1: it holds a map. */
void *tune_document_take(struct tune_document *d, size_t size);
const char *tune_document_to_string(struct tune_document *d, const struct tune_value *value);
int tune_document_value(struct tune_document *d, const struct tune_node *node,
                        struct tune_value *value);

/* tune_document_fail - set the error "path:line:column: <text>", kind USAGE; returns -1. at NULL:
 * without a line. */
int tune_document_fail(const struct tune_document *d, const struct tune_node *at,
                       const char *format, ...) TUNE_PRINTF(3, 4);

/* tune_node_get - the map's member; NULL if there is none, or node is no map.
 * tune_node_none - whether there is no node, or it is None.
 * tune_document_map - check that node is a map with no key but those of known
 * ("identifier|metadata|..."). The error names the key, its place, and the nearest known one. what:
 * "a property of entitySpace". */
const struct tune_node *tune_node_get(const struct tune_node *node, const char *key);
bool tune_node_none(const struct tune_node *node);
int tune_document_map(const struct tune_document *d, const struct tune_node *node,
                      const char *what, const char *known);

/* tune_document_list - the number of items of the list under a key of a map, and the list in *list.
 * 0 if the key is absent or None. -1 with an error: it is no list. */
int tune_document_list(const struct tune_document *d, const struct tune_node *map, const char *key,
                       const struct tune_node **list);

/* tune_document_texts - the same for a list of texts, which is copied to *to, *count of them.
 * loose: other scalars but None are spelled as texts. */
int tune_document_texts(struct tune_document *d, const struct tune_node *map, const char *key,
                        bool loose, const char ***to, int *count);

/* Copy a member of a map to *to. If the member is missing or None, *to stays unchanged; with
 * `required` that is an error. -1 with an error: a wrong type.
 * tune_document_text - a text. A number is an error that says to put it in quotes.
 * tune_document_loose_text - a text; any other scalar is spelled with str().
 * tune_document_whole - a whole number.
 * tune_document_number - a number.
 * tune_document_bool - a boolean. */
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
