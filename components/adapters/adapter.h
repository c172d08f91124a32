/* adapter.h - the adapters of a model (models/lora.h) as a PEFT folder, both ways.
 *
 *     <folder>/adapter_config.json           adapter_config.h
 *     <folder>/adapter_model.safetensors     adapter_file.h
 *
 * Real PEFT loads what is written, and what PEFT wrote is read:
 *
 *     tune_adapter_config_read(&config, "theirs");
 *     tune_lora_add(m, &config.lora, seed);
 *     tune_adapter_read(m, "theirs"); */
#ifndef TUNE_ADAPTER_H
#define TUNE_ADAPTER_H

#include "core/batch.h"
#include "adapters/adapter_file.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tune_adapter_write - the model's adapters to folder, which is there; files in it are replaced. base: what
 * base_model_name_or_path shall say, NULL: null. save_dtype: F32, BF16 or F16. -1 also where a number does not fit it. */
int tune_adapter_write(struct tune_model *m, const char *folder, const char *base, enum tune_dtype save_dtype);

/* tune_adapter_read - the folder's numbers into the rows that tune_lora_add made. -1, with none of them changed, where folder
 * asks for another adapter than the model has, or holds what tune_adapter_file_check refuses. */
int tune_adapter_read(struct tune_model *m, const char *folder);

/* tune_adapter_prove - that folder holds what the model has: its numbers, read again from the disk, are the model's rounded to
 * their dtype, bit for bit; what it says of the base is so; and the base with them merged (tile by tile: no second copy of the
 * weights) computes on batch what base and adapter do: *difference is the distance of the final norm's outputs, relative to
 * their norm. -1 with an error where a number is another; how large a difference is too large, the caller knows. */
int tune_adapter_prove(struct tune_model *m, const char *folder, const struct tune_batch *batch, double *difference);

/* tune_get_lora - the model that --model names, frozen in --base-dtype, with adapters by --lora-*, or as --adapter's are (their
 * numbers are read by tune_checkpoint_resume); otherwise as tune_get_model.
 * tune_get_lora_options - what it is made by; the caller frees config. */
struct tune_model *tune_get_lora(const struct tune_flags *flags, struct tune_device *dev, const struct tune_tokenizer *tok);
int tune_get_lora_options(const struct tune_flags *flags, struct tune_adapter_config *config);

#ifdef __cplusplus
}
#endif
#endif
