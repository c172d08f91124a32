/* adapter_config.h - PEFT's adapter_config.json as options of this library.
 *
 * It reads what PEFT up to 0.21 writes for LoRA. A key that changes the numbers and is not
 * supported is refused with its value. Modules are matched as in PEFT. A list names modules, or the
 * ends of their names after a dot. A text is a regular expression for whole names (core/regular.h).
 * Keys of rank_pattern and alpha_pattern are expressions for whole names, or for what follows a
 * dot. Where an expression is not understood, the file of tensors says which modules and ranks it
 * means.
 *
 * exclude_modules becomes a part of the targets, which are then an expression. It writes the keys
 * that every PEFT since 0.9 knows, sorted, with the values that PEFT would write. PEFT before 0.14
 * refuses a file with an unknown key. */
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
    char *remark;                  /* what was not understood, and answered by the tensors; NULL:
                                      nothing */
    bool implied;                  /* modules_to_save has a module that the file has whole, and
                                      the config does not name: PEFT reads it into the base */
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
