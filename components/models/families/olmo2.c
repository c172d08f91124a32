/* olmo2.c - OLMo 2: the norms are behind attention and MLP. One more norm covers all queries of a
 * position, and one all its keys. */
#include "core/try.h"
#include "models/families/family.h"

static int read(struct tune_model_config *c, const struct tune_config_reader *r)
{
    TRY(tune_config_flag(r, "attention_bias", false, &c->qkv_bias));
    c->out_bias = c->qkv_bias;
    return 0;
}

static void layer(struct tune_layer *l, const struct tune_model_config *c, int i)
{
    struct tune_layer plain = {0};
    int64_t q = (int64_t)c->heads * c->head_dim, k = (int64_t)c->kv_heads * c->head_dim;
    tune_llama_layer(&plain, c, i);
    l->window = plain.window;
    l->rotary = plain.rotary;
    for (int n = 0; n < plain.count; n++) {
        const struct tune_module *module = &plain.module[n];
        if (module->role == TUNE_ATTENTION_OUT) {
            tune_layer_add_norm(l, "self_attn.q_norm", TUNE_QUERY_NORM, q);
            tune_layer_add_norm(l, "self_attn.k_norm", TUNE_KEY_NORM, k);
        }
        if (module->kind == TUNE_MODULE_LINEAR)
            tune_layer_add(l, *module);
    }
    tune_layer_add_norm(l, "post_attention_layernorm", TUNE_POST_ATTENTION_NORM, c->hidden);
    tune_layer_add_norm(l, "post_feedforward_layernorm", TUNE_POST_MLP_NORM, c->hidden);
}

const struct tune_family tune_family_olmo2 = {
    .type = "olmo2", .class = "Olmo2ForCausalLM", .max_positions = 2048, .norm_eps = 1e-5, .read = read, .layer = layer};
