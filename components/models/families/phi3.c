/* phi3.c - Phi-3, Phi-3.5 and Phi-4: q, k and v are one matrix, and so are gate and up. Of a head,
 * some numbers may be rotated; longrope. */
#include "core/try.h"
#include "models/families/family.h"

static int read(struct tune_model_config *c, const struct tune_config_reader *r)
{
    float dropped;
    TRY(tune_config_scalar(r, "resid_pdrop", 0, &dropped));
    if (dropped != 0)
        tune_model_config_remark(c, "config.json has a resid_pdrop: training here has no such dropout; transformers has it");
    return tune_config_get(r->json, "sliding_window") ? tune_config_window_read(c, r, 0, false) : 0;
}

static void layer(struct tune_layer *l, const struct tune_model_config *c, int i)
{
    int64_t C = c->hidden, F = c->ffn, q = (int64_t)c->heads * c->head_dim, k = (int64_t)c->kv_heads * c->head_dim;
    l->window = c->sliding[i] ? c->window : 0;
    tune_layer_add_norm(l, "input_layernorm", TUNE_INPUT_NORM, C);
    tune_layer_add_linear(l, "self_attn.qkv_proj", TUNE_QUERY_KEY_VALUE, TUNE_LINEAR_QKV, q + 2 * k, C, false);
    tune_layer_add_linear(l, "self_attn.o_proj", TUNE_ATTENTION_OUT, TUNE_LINEAR_O, C, q, false);
    tune_layer_add_norm(l, "post_attention_layernorm", TUNE_MLP_NORM, C);
    tune_layer_add_linear(l, "mlp.gate_up_proj", TUNE_GATE_UP, TUNE_LINEAR_GATE_UP, 2 * F, C, false);
    tune_layer_add_linear(l, "mlp.down_proj", TUNE_DOWN, TUNE_LINEAR_DOWN, C, F, false);
}

const struct tune_family tune_family_phi3 = {
    .type = "phi3", .class = "Phi3ForCausalLM", .max_positions = 4096, .norm_eps = 1e-5, .partial_rotary = true, .original_positions = 4096,
    .read = read, .layer = layer};
