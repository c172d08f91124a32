/* adapter_config.h - PEFT's adapter_config.json as options of this library.
 *
 * It reads what PEFT up to 0.21 writes for LoRA. A key that changes the numbers and is not
 * supported is refused with its value. A list of target modules works as in PEFT. A module is a
 * target if its name, or the end of its name after a dot, is in the list. A regular expression is
 * read if it says no more than a list:
 *
 *     ".*\.(q_proj|v_proj)"   ".*\.self_attn\.(?:q_proj|k_proj)"   "model\.layers\.0\.mlp\.up_proj"
 *
 * exclude_modules removes names from the targets. It writes the keys that every PEFT since 0.9
 * knows, sorted, with the values that PEFT would write. PEFT before 0.14 refuses a file with an
 * unknown key. */
#ifndef TUNE_ADAPTER_CONFIG_H
#define TUNE_ADAPTER_CONFIG_H

#include "models/lora.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "all-linear" as a list: every linear layer of the supported models but the output projection, as
 * in PEFT. */
#define TUNE_ADAPTER_LINEAR "down_proj,gate_proj,k_proj,o_proj,q_proj,up_proj,v_proj"

struct tune_adapter_config {
    struct tune_lora_options lora; /* its strings belong to this struct */
    char *base;                    /* base_model_name_or_path; NULL: none */
    char *unknown;                 /* unknown keys, "a, b", for the caller to show; NULL: none */
    char *text[5];                 /* strings that lora points to */
};

/* tune_adapter_config_read - read <folder>/adapter_config.json. -1 with an error that names file,
 * key and value, and what to do; then there is nothing to free.
 * tune_adapter_config_free - free its strings. */
int tune_adapter_config_read(struct tune_adapter_config *c, const char *folder);
void tune_adapter_config_free(struct tune_adapter_config *c);

/* tune_adapter_config_write - write <folder>/adapter_config.json, replacing it. base NULL: null. -1
 * with an error. */
int tune_adapter_config_write(const char *folder, const struct tune_lora_options *o,
                              const char *base);

#ifdef __cplusplus
}
#endif
#endif
