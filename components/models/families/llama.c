/* llama.c - Llama 1 to 3, SmolLM and other models of that class; biases as config.json says. Other
 * families begin with its layer. */
#include "core/try.h"
#include "models/families/family.h"

static int read(struct tune_model_config *c, const struct tune_config_reader *r)
{
    TRY(tune_config_flag(r, "attention_bias", false, &c->qkv_bias));
    TRY(tune_config_flag(r, "mlp_bias", false, &c->mlp_bias));
    c->out_bias = c->qkv_bias;
    return 0;
}

void tune_llama_layer(struct tune_layer *l, const struct tune_model_config *c, int i)
{
    int64_t C = c->hidden, F = c->ffn, q = (int64_t)c->heads * c->head_dim, k = (int64_t)c->kv_heads * c->head_dim;
    l->window = c->sliding[i] ? c->window : 0;
    l->rotary = c->unrotated[i] ? -1 : 0;
    tune_layer_add(l, (struct tune_module){"input_layernorm", TUNE_INPUT_NORM, TUNE_MODULE_NORM, .in = C});
    tune_layer_add(l, (struct tune_module){"self_attn.q_proj", TUNE_QUERY, TUNE_MODULE_LINEAR, TUNE_LINEAR_QKV, q, C, c->qkv_bias, false});
    tune_layer_add(l, (struct tune_module){"self_attn.k_proj", TUNE_KEY, TUNE_MODULE_LINEAR, TUNE_LINEAR_QKV, k, C, c->qkv_bias, true});
    tune_layer_add(l, (struct tune_module){"self_attn.v_proj", TUNE_VALUE, TUNE_MODULE_LINEAR, TUNE_LINEAR_QKV, k, C, c->qkv_bias, true});
    if (c->qk_norm) {
        tune_layer_add(l, (struct tune_module){"self_attn.q_norm", TUNE_QUERY_NORM, TUNE_MODULE_NORM, .in = c->head_dim});
        tune_layer_add(l, (struct tune_module){"self_attn.k_norm", TUNE_KEY_NORM, TUNE_MODULE_NORM, .in = c->head_dim});
    }
    tune_layer_add(l, (struct tune_module){"self_attn.o_proj", TUNE_ATTENTION_OUT, TUNE_MODULE_LINEAR, TUNE_LINEAR_O, C, q, c->out_bias, false});
    tune_layer_add(l, (struct tune_module){"post_attention_layernorm", TUNE_MLP_NORM, TUNE_MODULE_NORM, .in = C});
    tune_layer_add(l, (struct tune_module){"mlp.gate_proj", TUNE_GATE, TUNE_MODULE_LINEAR, TUNE_LINEAR_GATE_UP, F, C, c->mlp_bias, false});
    tune_layer_add(l, (struct tune_module){"mlp.up_proj", TUNE_UP, TUNE_MODULE_LINEAR, TUNE_LINEAR_GATE_UP, F, C, c->mlp_bias, true});
    tune_layer_add(l, (struct tune_module){"mlp.down_proj", TUNE_DOWN, TUNE_MODULE_LINEAR, TUNE_LINEAR_DOWN, C, F, c->mlp_bias, false});
}

const struct tune_family tune_family_llama = {
    .type = "llama", .class = "LlamaForCausalLM", .max_positions = 2048, .read = read, .layer = tune_llama_layer};
