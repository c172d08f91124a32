/* metrics_peer.c - our metrics for metrics_peer.py, which has those of others.
 *
 *     metrics_peer NAME... < rows
 *
 * A row is a number of texts and the texts: the answer, then references. A text is its size in bytes, a newline and the bytes. A line of
 * values is printed for each row, then one for all rows together. */
#include <stdio.h>
#include <stdlib.h>

#include "metrics/scores.h"

enum { TEXTS = 16, METRICS = 32 };

static int read_number(void)
{
    int n;
    return scanf("%d", &n) == 1 && getchar() == '\n' ? n : -1;
}

static struct tune_text read_text(void)
{
    int size = read_number();
    char *data = size < 0 ? NULL : malloc((size_t)size + 1);
    if (!data || fread(data, 1, (size_t)size, stdin) != (size_t)size)
        exit(2);
    data[size] = 0;
    return (struct tune_text){data, (size_t)size};
}

int main(int argc, char **argv)
{
    static double total[METRICS][TUNE_SCORE_SUMS];
    const struct tune_score *m[METRICS];
    int metrics = argc - 1;
    for (int i = 0; i < metrics; i++)
        if (i == METRICS || !(m[i] = tune_score_find(argv[i + 1])))
            return 2;
    for (int count; (count = read_number()) > 0 && count <= TEXTS;) {
        struct tune_text text[TEXTS];
        for (int i = 0; i < count; i++)
            text[i] = read_text();
        struct tune_score_row row = {.answer = text[0], .references = text + 1, .reference_count = count - 1};
        for (int i = 0; i < metrics; i++) {
            double sums[TUNE_SCORE_SUMS];
            if (tune_score_of(m[i], &row, sums) < 0)
                return 1;
            for (int k = 0; k < tune_score_width(m[i], 0); k++)
                total[i][k] += sums[k];
            printf("%.17g ", tune_score_value(m[i], sums, 0));
        }
        printf("\n");
        for (int i = 0; i < count; i++)
            free((char *)text[i].data);
    }
    for (int i = 0; i < metrics; i++)
        printf("%.17g ", tune_score_value(m[i], total[i], 0));
    printf("\n");
    return 0;
}
