/* llama.c - Llama 1 to 3, SmolLM and other models of that class; biases as config.json says. */
#include "core/try.h"
#include "models/families/family.h"

static int read(struct tune_model_config *c, const struct tune_config_reader *r)
{
    TRY(tune_config_flag(r, "attention_bias", false, &c->qkv_bias));
    TRY(tune_config_flag(r, "mlp_bias", false, &c->mlp_bias));
    c->out_bias = c->qkv_bias;
    return 0;
}

const struct tune_family tune_family_llama = {"llama", "LlamaForCausalLM", 0, 0, 2048, read};
