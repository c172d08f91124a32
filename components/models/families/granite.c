/* granite.c - Granite: Llama with four multipliers. */
#include "core/error.h"
#include "core/try.h"
#include "models/families/family.h"

static int read(struct tune_model_config *c, const struct tune_config_reader *r)
{
    TRY(tune_family_llama.read(c, r));
    TRY(tune_config_scalar(r, "embedding_multiplier", 1, &c->embedding_multiplier));
    TRY(tune_config_scalar(r, "attention_multiplier", 1, &c->attention_scale));
    TRY(tune_config_scalar(r, "residual_multiplier", 1, &c->residual_multiplier));
    TRY(tune_config_scalar(r, "logits_scaling", 1, &c->logits_scaling));
    if (c->logits_scaling != 0)
        return 0;
    return tune_error_set("%s: \"logits_scaling\" is 0; logits are divided by it", r->name);
}

const struct tune_family tune_family_granite = {
    .type = "granite", .class = "GraniteForCausalLM", .max_positions = 2048, .read = read, .layer = tune_llama_layer};
