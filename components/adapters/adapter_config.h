/* adapter_config.h - read and write PEFT's adapter_config.json.
 *
 * It reads files that PEFT up to 0.21 writes for LoRA. A setting that would change the numbers and
 * is not supported is an error with key and value.
 *
 * A list of target modules works as in PEFT: it selects modules whose name, or whose end after a
 * dot, is in the list. A regular expression must be equivalent to such a list:
 *
 *     ".*\.(q_proj|v_proj)"   ".*\.self_attn\.(?:q_proj|k_proj)"   "model\.layers\.0\.mlp\.up_proj"
 *
 * exclude_modules removes its names from the targets.
 *
 * It writes the keys that every PEFT since 0.9 knows, sorted, with the values PEFT would write.
 * PEFT before 0.14 refuses a file with an unknown key. */
#ifndef TUNE_ADAPTER_CONFIG_H
#define TUNE_ADAPTER_CONFIG_H

#include "models/lora.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The modules of "all-linear": like in PEFT, all linear layers without the output projection. */
#define TUNE_ADAPTER_LINEAR "down_proj,gate_proj,k_proj,o_proj,q_proj,up_proj,v_proj"

struct tune_adapter_config {
    struct tune_lora_options lora; /* its strings belong to this struct */
    char *base;                    /* base_model_name_or_path; NULL: none */
    char *unknown;                 /* unknown keys, "a, b", to report; NULL: none */
    char *text[4];                 /* storage of lora's strings */
};

/* tune_adapter_config_read - read <folder>/adapter_config.json. 0, or -1 with an error that names
 * file, key, value and what to do; then there is nothing to free. */
int tune_adapter_config_read(struct tune_adapter_config *c, const char *folder);
void tune_adapter_config_free(struct tune_adapter_config *c);

/* tune_adapter_config_write - replace <folder>/adapter_config.json. base NULL: null. 0, or -1 with
 * an error. */
int tune_adapter_config_write(const char *folder, const struct tune_lora_options *o,
                              const char *base);

#ifdef __cplusplus
}
#endif
#endif
