/* names.c - what families and tensors are called in GGUF. Source: llama-arch.cpp and models/ of
 * llama.cpp. */
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/print.h"
#include "export.h"

static const struct export_family families[] = {
    {"llama", "llama",
     EXPORT_PAIRS | EXPORT_OUT_BIAS | EXPORT_MLP_BIAS | EXPORT_ANY_HEAD | EXPORT_FREQS |
         EXPORT_LONG},
    {"mistral", "llama",
     EXPORT_PAIRS | EXPORT_OUT_BIAS | EXPORT_MLP_BIAS | EXPORT_ANY_HEAD | EXPORT_FREQS |
         EXPORT_LONG},
    {"granite", "granite",
     EXPORT_PAIRS | EXPORT_OUT_BIAS | EXPORT_MLP_BIAS | EXPORT_ANY_HEAD | EXPORT_FREQS |
         EXPORT_LONG},
    {"smollm3", "smollm3", EXPORT_PAIRS | EXPORT_ANY_HEAD},
    {"qwen2", "qwen2", 0},
    {"qwen3", "qwen3", EXPORT_ANY_HEAD},
    {"phi3", "phi3", EXPORT_LONG},
    {"olmo2", "olmo2", EXPORT_OUTPUT},
    {"gemma3_text", "gemma3", EXPORT_ANY_HEAD | EXPORT_WINDOW},
};
enum { FAMILIES = sizeof families / sizeof *families };

/* Names by role. Those of layers stand behind "blk.<layer>.". */
static const char *const names[TUNE_ROLES] = {
    [TUNE_EMBEDDING] = "token_embd",
    [TUNE_FINAL_NORM] = "output_norm",
    [TUNE_OUTPUT] = "output",
    [TUNE_INPUT_NORM] = "attn_norm",
    [TUNE_QUERY] = "attn_q",
    [TUNE_KEY] = "attn_k",
    [TUNE_VALUE] = "attn_v",
    [TUNE_QUERY_KEY_VALUE] = "attn_qkv",
    [TUNE_QUERY_NORM] = "attn_q_norm",
    [TUNE_KEY_NORM] = "attn_k_norm",
    [TUNE_ATTENTION_OUT] = "attn_output",
    [TUNE_POST_ATTENTION_NORM] = "post_attention_norm",
    [TUNE_MLP_NORM] = "ffn_norm",
    [TUNE_GATE] = "ffn_gate",
    [TUNE_UP] = "ffn_up",
    [TUNE_GATE_UP] = "ffn_up",
    [TUNE_DOWN] = "ffn_down",
    [TUNE_POST_MLP_NORM] = "post_ffw_norm",
};

const struct export_family *export_family(const struct tune_model_config *c)
{
    char known[256] = "";
    for (int i = 0; i < FAMILIES; i++) {
        if (strcmp(c->family, families[i].type) == 0)
            return &families[i];
        tune_append_item(known, sizeof known, "%s", families[i].type);
    }
    tune_error_set("model_type \"%s\" has no GGUF export; it exists for %s", c->family, known);
    return NULL;
}

int export_name(const struct tune_parameter *p, char name[TUNE_GGUF_NAME])
{
    const char *end = p->bias ? "bias" : "weight", *stem = names[p->role];
    if (!stem)
        return tune_error_set("tensor \"%s\" has no name in GGUF", p->name);
    bool of_layer =
        p->role != TUNE_EMBEDDING && p->role != TUNE_FINAL_NORM && p->role != TUNE_OUTPUT;
    int n = of_layer ? snprintf(name, TUNE_GGUF_NAME, "blk.%d.%s.%s", p->unit - 1, stem, end)
                     : snprintf(name, TUNE_GGUF_NAME, "%s.%s", stem, end);
    return n < TUNE_GGUF_NAME ? 0
                              : tune_error_set("the name of \"%s\" in GGUF is too long", p->name);
}

const char *export_key(const struct export *e, const char *name, char text[EXPORT_KEY])
{
    snprintf(text, EXPORT_KEY, "%s.%s", e->family->arch, name);
    return text;
}
