/* adapter_config.h - PEFT's adapter_config.json, and what it means in our terms.
 *
 * Reads what PEFT up to 0.21 writes for LoRA. What changes the numbers and is not computed here is refused by key and value.
 * A list of target modules is PEFT's own: a module whose whole name, or whose end after a dot, is in it. Of regular
 * expressions only those are read that say no more than a list does:
 *
 *     ".*\.(q_proj|v_proj)"      ".*\.self_attn\.(?:q_proj|k_proj)"      "model\.layers\.0\.mlp\.up_proj"
 *
 * exclude_modules takes its names out of the targets. Written are the keys that every PEFT since 0.9 knows (before 0.14 it does
 * not load a file with a key it does not know), sorted, each with the value PEFT would write. */
#ifndef TUNE_ADAPTER_CONFIG_H
#define TUNE_ADAPTER_CONFIG_H

#include "models/lora.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every linear layer of the models there are: what "all-linear" is; like PEFT, without the output projection. */
#define TUNE_ADAPTER_LINEAR "down_proj,gate_proj,k_proj,o_proj,q_proj,up_proj,v_proj"

struct tune_adapter_config {
    struct tune_lora_options lora; /* its texts are this struct's */
    char *base;                    /* base_model_name_or_path; NULL: none given */
    char *unknown;                 /* keys that nobody knows, "a, b", for the caller to tell; NULL: none */
    char *text[4];                 /* what lora points into */
};

/* tune_adapter_config_read - <folder>/adapter_config.json. 0, or -1 naming file, key and value, and what to do; then there is
 * nothing to free. */
int tune_adapter_config_read(struct tune_adapter_config *c, const char *folder);
void tune_adapter_config_free(struct tune_adapter_config *c);

/* tune_adapter_config_write - <folder>/adapter_config.json, replaced; base NULL: null. */
int tune_adapter_config_write(const char *folder, const struct tune_lora_options *o, const char *base);

#ifdef __cplusplus
}
#endif
#endif
