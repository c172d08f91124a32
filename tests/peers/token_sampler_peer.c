/* token_sampler_peer.c - our probabilities for token_sampler_peer.py, which has transformers'.
 *
 *     token_sampler_peer TEMPERATURE TOP_K TOP_P MIN_P PENALTY V SEEN < rows > probabilities
 *
 * A row is SEEN int32 ids and V float32 logits. For each row, V float32 probabilities follow. */
#include <stdio.h>
#include <stdlib.h>

#include "core/error.h"
#include "generators/token_sampler.h"

int main(int argc, char **argv)
{
    if (argc != 8)
        return 2;
    struct tune_sampling_options o = {atof(argv[1]), atoi(argv[2]), atof(argv[3]), atof(argv[4]), atof(argv[5])};
    int V = atoi(argv[6]);
    size_t seen = (size_t)atoi(argv[7]);
    struct tune_token_sampler *s = tune_token_sampler_new(&o, 1, V, 1);
    float *x = malloc((size_t)V * sizeof *x), *p = malloc((size_t)V * sizeof *p);
    int32_t *ids = malloc((seen + 1) * sizeof *ids);
    if (!x || !p || !ids)
        return 2;
    for (int row = 0; s && fread(ids, sizeof *ids, seen, stdin) == seen && fread(x, sizeof *x, (size_t)V, stdin) == (size_t)V; row++) {
        if (tune_token_sampler_start(s, 0, row) < 0 || tune_token_sampler_accept(s, 0, ids, (int64_t)seen) < 0 ||
            tune_token_sampler_distribution(s, 0, x, p) < 0) {
            fprintf(stderr, "%s\n", tune_error_message());
            return 1;
        }
        fwrite(p, sizeof *p, (size_t)V, stdout);
    }
    tune_token_sampler_free(s);
    free(x);
    free(p);
    free(ids);
    return s ? 0 : 1;
}
