/* qwen2.c - Qwen 2 and 2.5: biases on q, k and v; sliding windows from some layer on. */
#include <limits.h>

#include "core/try.h"
#include "models/families/family.h"

int tune_qwen_window(struct tune_model_config *c, const struct tune_config_reader *r)
{
    bool uses;
    int from;
    TRY(tune_config_flag(r, "use_sliding_window", false, &uses));
    TRY(tune_config_whole(r, "max_window_layers", 0, INT_MAX, 28, &from));
    return uses ? tune_config_window_read(c, r, from, true) : 0;
}

static int read(struct tune_model_config *c, const struct tune_config_reader *r)
{
    c->qkv_bias = true;
    return tune_qwen_window(c, r);
}

const struct tune_family tune_family_qwen2 = {
    .type = "qwen2", .class = "Qwen2ForCausalLM", .kv_heads = 32, .max_positions = 32768, .read = read, .layer = tune_llama_layer};
