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
    tune_layer_add_norm(l, "input_layernorm", TUNE_INPUT_NORM, C);
    tune_layer_add_linear(l, "self_attn.q_proj", TUNE_QUERY, TUNE_LINEAR_QKV, q, C, c->qkv_bias);
    tune_layer_add_linear(l, "self_attn.k_proj", TUNE_KEY, TUNE_LINEAR_QKV, k, C, c->qkv_bias);
    tune_layer_add_linear(l, "self_attn.v_proj", TUNE_VALUE, TUNE_LINEAR_QKV, k, C, c->qkv_bias);
    if (c->qk_norm) {
        tune_layer_add_norm(l, "self_attn.q_norm", TUNE_QUERY_NORM, c->head_dim);
        tune_layer_add_norm(l, "self_attn.k_norm", TUNE_KEY_NORM, c->head_dim);
    }
    tune_layer_add_linear(l, "self_attn.o_proj", TUNE_ATTENTION_OUT, TUNE_LINEAR_O, C, q, c->out_bias);
    tune_layer_add_norm(l, "post_attention_layernorm", TUNE_MLP_NORM, C);
    tune_layer_add_linear(l, "mlp.gate_proj", TUNE_GATE, TUNE_LINEAR_GATE_UP, F, C, c->mlp_bias);
    tune_layer_add_linear(l, "mlp.up_proj", TUNE_UP, TUNE_LINEAR_GATE_UP, F, C, c->mlp_bias);
    tune_layer_add_linear(l, "mlp.down_proj", TUNE_DOWN, TUNE_LINEAR_DOWN, C, F, c->mlp_bias);
}

const struct tune_family tune_family_llama = {
    .type = "llama", .class = "LlamaForCausalLM", .max_positions = 2048, .read = read, .layer = tune_llama_layer};
