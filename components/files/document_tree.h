/* document_tree.h - build a document's tree. Used by its two readers, yaml.c and document_json.c.
 *
 * Items of unfinished lists and maps are on one stack. To build a list, remember `used`, push the
 * items, and close the list with that number. */
#ifndef TUNE_FILES_DOCUMENT_TREE_H
#define TUNE_FILES_DOCUMENT_TREE_H

#include "files/document.h"

struct tune_tree {
    struct tune_document *document;
    const struct tune_node **stack; /* [used] items on the stack */
    size_t used;
    int64_t nodes; /* number of nodes, with aliases expanded */
    bool functions; /* texts may have the tag !function */
};

/* tune_tree_node - make a node for line and column; NULL with an error: no memory, too many nodes.
 * tune_tree_count - count n more nodes, for an alias. */
struct tune_node *tune_tree_node(struct tune_tree *t, enum tune_node_type type, int line,
                                 int column);
int tune_tree_count(struct tune_tree *t, int64_t n, int line, int column);

int tune_tree_push(struct tune_tree *t, const struct tune_node *node);

/* tune_tree_list - the items pushed since `from` become the node's items.
 * tune_tree_map - the same for alternating keys and items. The first `own` pairs are the map's own,
 * without duplicates. The others are merged as with YAML's <<: they come before the own pairs, and
 * a later pair replaces an earlier one with the same key. */
int tune_tree_list(struct tune_tree *t, struct tune_node *node, size_t from);
int tune_tree_map(struct tune_tree *t, struct tune_node *node, size_t from, size_t own);

/* tune_tree_text - copy size bytes as a text that lives as long as the document. A NUL among them
 * is an error. */
int tune_tree_text(struct tune_tree *t, const char *bytes, size_t size, int line, int column,
                   struct tune_value *value);

/* tune_tree_whole - set node to the integer of these digits in base 2, 8, 10 or 16; '_' is skipped.
 * More than 64 bits is an error that shows `written`. */
int tune_tree_whole(struct tune_tree *t, const char *digits, size_t size, int base, bool negative,
                    struct tune_node *node,
                    const char *written);

int tune_tree_fail(const struct tune_tree *t, int line, int column, const char *format,
                   ...) TUNE_PRINTF(4, 5);

/* The readers: parse size bytes of text, followed by a NUL, into the root. */
int tune_tree_yaml(struct tune_tree *t, const char *text, size_t size,
                   const struct tune_node **root);
int tune_tree_json(struct tune_tree *t, const char *text, size_t size,
                   const struct tune_node **root);

/* tune_yaml_scalar - set node's value from a scalar of size bytes, followed by a NUL. tag: "str",
 * "int", "float", "bool" or "null". NULL: a plain scalar's form decides; other scalars are
 * texts. */
int tune_yaml_scalar(struct tune_tree *t, struct tune_node *node, const char *text, size_t size,
                     const char *tag, bool plain);

#endif
