/* qwen3.c - Qwen 3: a norm on each head of q and k; attention biases as config.json says. */
#include "core/try.h"
#include "models/families/family.h"

static int read(struct tune_model_config *c, const struct tune_config_reader *r)
{
    TRY(tune_config_flag(r, "attention_bias", false, &c->qkv_bias));
    c->out_bias = c->qkv_bias;
    c->qk_norm = true;
    return tune_qwen_window(c, r);
}

const struct tune_family tune_family_qwen3 = {
    .type = "qwen3", .class = "Qwen3ForCausalLM", .kv_heads = 32, .head_dim = 128, .max_positions = 32768, .read = read, .layer = tune_llama_layer};
