/* mistral.c - Mistral: no biases, the same sliding window in every layer. */
#include "models/families/family.h"

static int read(struct tune_model_config *c, const struct tune_config_reader *r)
{
    return tune_config_window_read(c, r, 0, false);
}

const struct tune_family tune_family_mistral = {
    .type = "mistral", .class = "MistralForCausalLM", .kv_heads = 8, .max_positions = 131072, .read = read, .layer = tune_llama_layer};
