/* expression_peer.c - our expressions and spelling of values for expression_peer.py, which has Python's own.
 *
 *     expression_peer FILE     a document {"names": {name: value...}, "expressions": [text...]}; for each expression a line:
 *                              "value <repr>" or "refused <message>"
 *     expression_peer --repr FILE     a document with a list: repr() of each of its items, one a line */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "files/document.h"
#include "core/expression.h"

static void fail(void)
{
    fprintf(stderr, "expression_peer: %s\n", tune_error_message());
    exit(1);
}

static void print(const char *before, const struct tune_value *v)
{
    int length = tune_value_repr(v, NULL, 0);
    char *text = malloc((size_t)length + 1);
    if (!text)
        abort();
    tune_value_repr(v, text, (size_t)length + 1);
    printf("%s%s\n", before, text);
    free(text);
}

static void print_expression(const char *text, const char *const *names, const struct tune_value *values, int count)
{
    struct tune_value v;
    struct tune_expression *e = tune_expression_new(text, names, count, "");
    if (e && tune_expression_value(e, values, &v) == 0) {
        print("value ", &v);
    } else {
        printf("refused ");
        for (const char *c = tune_error_message(); *c; c++)
            putchar(*c == '\n' ? ' ' : *c);
        putchar('\n');
    }
    tune_expression_free(e);
}

int main(int argc, char **argv)
{
    bool reprs = argc == 3 && strcmp(argv[1], "--repr") == 0;
    struct tune_document *d = argc == 2 || reprs ? tune_document_read(argv[argc - 1]) : NULL;
    if (!d)
        fail();
    for (int i = 0; reprs && i < d->root->count; i++)
        print("", &d->root->items[i]->value);
    if (!reprs) {
        const struct tune_node *named = tune_node_get(d->root, "names"), *texts = tune_node_get(d->root, "expressions");
        const char **names = calloc((size_t)named->count + 1, sizeof *names);
        struct tune_value *values = calloc((size_t)named->count + 1, sizeof *values);
        if (!names || !values)
            abort();
        for (int i = 0; i < named->count; i++) {
            names[i] = named->keys[i]->value.text;
            if (tune_document_value(d, named->items[i], values + i) < 0)
                fail();
        }
        for (int i = 0; i < texts->count; i++)
            print_expression(texts->items[i]->value.text, names, values, named->count);
        free(names);
        free(values);
    }
    tune_document_free(d);
    return 0;
}
