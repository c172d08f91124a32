/* generate_peer.c - greedy continuations for generate_peer.py.
 *
 *     generate_peer FOLDER TOKENS [ADAPTER] <prompts      a prompt a line: ids with spaces between
 *
 * Prints a line of ids for each prompt: first each prompt alone, then all of them in one batch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tune.h"

enum { PROMPTS = 16, MOST = 4096 };

static int give_up(void)
{
    fprintf(stderr, "generate_peer: %s\n", tune_error_message());
    return 1;
}

static int32_t ids[PROMPTS][MOST];
static int length[PROMPTS];

/* Continue rows prompts by so many tokens, and print them. */
static int go_on(struct tune_model *m, struct tune_cache *cache, const int *which, int rows, int tokens)
{
    static int32_t batch[PROMPTS * MOST], out[PROMPTS][MOST];
    int32_t pads[PROMPTS], next[PROMPTS];
    int T = 0;
    float *logits;
    struct tune_sampling_options greedy = {.top_p = 1, .repetition_penalty = 1};
    struct tune_token_sampler *sampler = tune_token_sampler_new(&greedy, 0, (int)tune_model_vocabulary(m), rows);
    for (int i = 0; i < rows; i++)
        T = length[which[i]] > T ? length[which[i]] : T;
    for (int i = 0; i < rows; i++) {
        pads[i] = T - length[which[i]];
        memset(batch + i * T, 0, (size_t)T * sizeof *batch);
        memcpy(batch + i * T + pads[i], ids[which[i]], (size_t)length[which[i]] * sizeof *batch);
    }
    if (!sampler || tune_cache_begin(cache, rows, pads) < 0 || tune_cache_forward(cache, batch, T) < 0)
        return -1;
    for (int t = 0; t < tokens; t++) {
        if (tune_cache_logits(cache, &logits) < 0)
            return -1;
        for (int i = 0; i < rows; i++) {
            if (tune_token_sampler_next(sampler, i, t, logits + i * tune_model_vocabulary(m), &next[i], NULL) < 0)
                return -1;
            out[i][t] = next[i];
        }
        if (t + 1 < tokens && tune_cache_forward(cache, next, 1) < 0)
            return -1;
    }
    for (int i = 0; i < rows; i++)
        for (int t = 0; t < tokens; t++)
            printf("%d%c", (int)out[i][t], t + 1 < tokens ? ' ' : '\n');
    tune_token_sampler_free(sampler);
    return 0;
}

int main(int argc, char **argv)
{
    static char line[1 << 16];
    int count = 0, longest = 0, all[PROMPTS];
    int tokens = argc > 2 ? atoi(argv[2]) : 0;
    while (count < PROMPTS && fgets(line, sizeof line, stdin)) {
        for (char *at = line, *end; length[count] < MOST; at = end, length[count]++) {
            long id = strtol(at, &end, 10);
            if (end == at)
                break;
            ids[count][length[count]] = (int32_t)id;
        }
        longest = length[count] > longest ? length[count] : longest;
        all[count] = count;
        count++;
    }
    struct tune_device *dev = tune_device_open("cpu", 2);
    struct tune_model *m = dev ? tune_model_load_frozen(argv[1], dev, TUNE_F32, TUNE_F32) : NULL;
    struct tune_adapter_config adapter = {0};
    if (!m || (argc > 3 && (tune_adapter_config_read(&adapter, argv[3]) < 0 || tune_lora_add(m, &adapter.lora, 0) < 0 ||
                            tune_adapter_read(m, argv[3]) < 0)) ||
        tune_model_reserve(m, count, longest, 0) < 0)
        return give_up();
    struct tune_cache *cache = tune_cache_new(m, count, longest + tokens);
    if (!cache)
        return give_up();
    for (int i = 0; i < count; i++)
        if (go_on(m, cache, &all[i], 1, tokens) < 0)
            return give_up();
    if (go_on(m, cache, all, count, tokens) < 0)
        return give_up();
    tune_cache_free(cache);
    tune_adapter_config_free(&adapter);
    tune_model_free(m);
    tune_device_close(dev);
    return 0;
}
