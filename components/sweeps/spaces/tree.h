/* tree.h - how a document's tree is put together; for its two readers (yaml.c, document_json.c),
 * not for those who read the tree.
 *
 * Members of open lists and maps wait on one stack. Whoever begins a list remembers `used`, pushes
 * its items, and closes it with that number. */
#ifndef TUNE_SPACES_TREE_H
#define TUNE_SPACES_TREE_H

#include "sweeps/spaces/document.h"

struct tune_tree {
    struct tune_document *document;
    const struct tune_node **stack; /* [used], room for more */
    size_t used;
    int64_t nodes; /* with aliases written out */
};

/* tune_tree_node - a node for line and column; NULL with an error: no memory, too many nodes.
 * tune_tree_count - n more nodes, through an alias. */
struct tune_node *tune_tree_node(struct tune_tree *t, enum tune_node_type type, int line,
                                 int column);
int tune_tree_count(struct tune_tree *t, int64_t n, int line, int column);

int tune_tree_push(struct tune_tree *t, const struct tune_node *node);

/* tune_tree_list - what was pushed since from becomes the node's items.
 * tune_tree_map - keys and items in turn become the node's. The first `own` pairs are written
 * there, none of them twice. Those after are merged in, as YAML's << has it: they stand before the
 * own ones. A later one of the same key takes the place of an earlier one. */
int tune_tree_list(struct tune_tree *t, struct tune_node *node, size_t from);
int tune_tree_map(struct tune_tree *t, struct tune_node *node, size_t from, size_t own);

/* tune_tree_text - size bytes as a text that lives as long as the document; a NUL among them is an
 * error. */
int tune_tree_text(struct tune_tree *t, const char *bytes, size_t size, int line, int column,
                   struct tune_value *value);

/* tune_tree_whole - digits of base (2, 8, 10, 16; '_' between them is skipped) as an int; beyond 64
 * bits is an error that shows `written`. */
int tune_tree_whole(struct tune_tree *t, const char *digits, size_t size, int base, bool negative,
                    struct tune_node *node,
                    const char *written);

int tune_tree_fail(const struct tune_tree *t, int line, int column, const char *format,
                   ...) TUNE_PRINTF(4, 5);

/* The readers: size bytes of text, which a NUL follows, as the root. */
int tune_tree_yaml(struct tune_tree *t, const char *text, size_t size,
                   const struct tune_node **root);
int tune_tree_json(struct tune_tree *t, const char *text, size_t size,
                   const struct tune_node **root);

/* tune_yaml_scalar - what a scalar means: node's value from size bytes of text, which a NUL
 * follows. tag: "str", "int", "float", "bool", "null", or NULL: by its form if plain, else a
 * text. */
int tune_yaml_scalar(struct tune_tree *t, struct tune_node *node, const char *text, size_t size,
                     const char *tag, bool plain);

#endif
