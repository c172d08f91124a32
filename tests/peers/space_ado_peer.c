/* space_ado_peer.c - what this library says about domains, for space_ado_peer.py to compare with ado's own answers.
 *
 *     build/tests/peers/space_ado_peer FILE
 *
 * FILE holds {"domains": [propertyDomain...], "values": [any...]}. Printed for each domain on a line: its type, its size (0:
 * cannot be counted), a digit for each value whether it is in it, a digit for each domain whether the line's is within that
 * one; or "refused" and why. */
#include <stdio.h>
#include <stdlib.h>

#include "sweeps/spaces/domain.h"

enum { MOST = 1000 };

static int fail(void)
{
    fprintf(stderr, "%s\n", tune_error_message());
    return 1;
}

int main(int argc, char **argv)
{
    static struct tune_domain domains[MOST];
    static char refused[MOST][2048];
    struct tune_document *d = argc == 2 ? tune_document_read(argv[1]) : NULL;
    if (!d)
        return fail();
    const struct tune_node *list = tune_node_get(d->root, "domains"), *values = tune_node_get(d->root, "values");
    if (!list || !values || list->count > MOST)
        return fail();
    for (int i = 0; i < list->count; i++)
        if (tune_domain_read(&domains[i], d, list->items[i], "the domain") < 0)
            snprintf(refused[i], sizeof refused[i], "refused %s", tune_error_message());
    for (int i = 0; i < list->count; i++) {
        char size[48], why[256];
        if (refused[i][0]) {
            puts(refused[i]);
            continue;
        }
        printf("%s %s ", tune_variable_name(&domains[i]), tune_index_text(tune_domain_size(&domains[i]), size));
        for (int k = 0; k < values->count; k++) {
            struct tune_value v;
            if (tune_document_value(d, values->items[k], &v) < 0)
                return fail();
            putchar('0' + tune_domain_has(&domains[i], &v));
        }
        putchar(' ');
        for (int k = 0; k < list->count; k++)
            putchar(refused[k][0] ? '-' : '0' + tune_domain_within(&domains[i], &domains[k], why, sizeof why));
        putchar('\n');
    }
    tune_document_free(d);
    return 0;
}
