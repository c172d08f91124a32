/* yaml_peer.c - our reader of documents for yaml_peer.py, which has PyYAML. Names of files on standard input, one a line;
 * for each a line: "tree <the tree as JSON>" or "refused <message>". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "files/document.h"

static void print_scalar(const struct tune_value *v)
{
    int length = tune_value_json(v, NULL, 0);
    char *text = malloc((size_t)length + 1);
    if (!text)
        abort();
    tune_value_json(v, text, (size_t)length + 1);
    fputs(text, stdout);
    free(text);
}

static void print(const struct tune_node *n)
{
    if (n->type == TUNE_NODE_SCALAR) {
        print_scalar(&n->value);
        return;
    }
    putchar(n->type == TUNE_NODE_MAP ? '{' : '[');
    for (int i = 0; i < n->count; i++) {
        if (i > 0)
            putchar(',');
        if (n->type == TUNE_NODE_MAP) {
            print_scalar(&n->keys[i]->value);
            putchar(':');
        }
        print(n->items[i]);
    }
    putchar(n->type == TUNE_NODE_MAP ? '}' : ']');
}

int main(void)
{
    char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        struct tune_document *d = tune_document_read(line);
        fputs(d ? "tree " : "refused ", stdout);
        if (d)
            print(d->root);
        else
            for (const char *c = tune_error_message(); *c; c++)
                putchar(*c == '\n' ? ' ' : *c);
        putchar('\n');
        tune_document_free(d);
    }
    return 0;
}
