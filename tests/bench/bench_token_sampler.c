/* bench_token_sampler.c - what it costs to choose a token, by vocabulary and options: microseconds a token.
 *
 * Logits are normal numbers times 3: the mass of top_p 0.9 then lies in thousands of tokens, many more than a model's. */
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/random.h"
#include "generators/token_sampler.h"

static double microseconds(const struct tune_sampling_options *o, int V, const float *logits, double *log_prob)
{
    enum { TOKENS = 400, TURNS = 5 };
    double best = 1e9;
    struct tune_token_sampler *s = tune_token_sampler_new(o, 1, V, 1);
    for (int turn = 0; s && turn < TURNS; turn++) {
        struct tune_moment begin = tune_moment_now();
        for (int i = 0; i < TOKENS; i++) {
            int32_t id;
            if (tune_token_sampler_next(s, 0, i, logits, &id, log_prob) < 0)
                exit(1);
        }
        double spent = 1e6 * (tune_moment_now().cpu_s - begin.cpu_s) / TOKENS;
        best = spent < best ? spent : best;
    }
    tune_token_sampler_free(s);
    return best;
}

int main(void)
{
    static const struct {
        const char *name;
        struct tune_sampling_options o;
    } cases[] = {
        {"greedy", {0, 0, 1, 0, 1}},
        {"greedy, penalty 1.1", {0, 0, 1, 0, 1.1}},
        {"temperature 0.8", {0.8, 0, 1, 0, 1}},
        {"top_k 50", {1, 50, 1, 0, 1}},
        {"top_k 50, top_p 0.9", {1, 50, 0.9, 0, 1}},
        {"top_k 50, top_p 0.9, penalty 1.1", {1, 50, 0.9, 0, 1.1}},
        {"top_k 2000", {1, 2000, 1, 0, 1}},
        {"top_p 0.9", {1, 0, 0.9, 0, 1}},
        {"min_p 0.05", {1, 0, 1, 0.05, 1}},
    };
    static const int sizes[] = {49152, 128256, 152064};
    float *logits = malloc(152064 * sizeof *logits);
    if (!logits)
        return 1;
    for (int i = 0; i < 152064; i++)
        logits[i] = 3 * (float)tune_random_normal(1, 0, (uint64_t)i);
    printf("%-34s", "microseconds a token, V =");
    for (int k = 0; k < 3; k++)
        printf("%8d  + log_prob", sizes[k]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        printf("\n%-34s", cases[i].name);
        for (int k = 0; k < 3; k++) {
            double log_prob;
            printf("%8.1f", microseconds(&cases[i].o, sizes[k], logits, NULL));
            printf("%12.1f", microseconds(&cases[i].o, sizes[k], logits, &log_prob));
        }
    }
    printf("\n");
    free(logits);
    return 0;
}
