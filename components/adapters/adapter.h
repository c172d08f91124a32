/* adapter.h - a model's adapters (models/lora.h) as a PEFT folder: written and read.
 *
 *     <folder>/adapter_config.json           see adapter_config.h
 *     <folder>/adapter_model.safetensors     see adapter_file.h
 *
 * PEFT loads what this writes, and this reads what PEFT writes:
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

/* tune_adapter_write - write the model's adapters into an existing folder, replacing files. base:
 * the value of base_model_name_or_path; NULL: null. save_dtype: F32, BF16 or F16. -1 with an error
 * also if a number does not fit it. */
int tune_adapter_write(struct tune_model *m, const char *folder, const char *base,
                       enum tune_dtype save_dtype);

/* tune_adapter_read - read the folder's numbers into the rows that tune_lora_add made. -1 with an
 * error, and nothing changed: the folder has another adapter than the model, or
 * tune_adapter_file_check refuses it. */
int tune_adapter_read(struct tune_model *m, const char *folder);

/* tune_adapter_compare - read the folder again and compare it with the model's adapters. The config
 * must ask for the same modules, ranks and scales. Each number must be the model's, rounded to the
 * file's dtype, bit for bit. -1 with an error that names the file and what differs. */
int tune_adapter_compare(struct tune_model *m, const char *folder);

/* tune_get_lora - the model that the options name, frozen, with new adapters or those of a PEFT
 * folder. tune_checkpoint_resume reads that folder's numbers.
 * tune_get_lora_options - the options of the adapters; the caller frees config.
 * tune_get_frozen - the model that the options name, frozen, to generate with. It has the numbers
 * of the adapter, if one is named. It is reserved for `tokens` tokens of `rows` rows at a time.
 * base_dtype TUNE_UNKNOWN_DTYPE: as the adapter was trained; else as the files are
 * (tune_weights_kept).
 * tune_get_frozen_storage - the dtype that tune_get_frozen keeps the matrices in. */
struct tune_model *tune_get_lora(const struct tune_flags *flags, struct tune_device *dev,
                                 const struct tune_tokenizer *tok);
int tune_get_lora_options(const struct tune_flags *flags, struct tune_adapter_config *config);

struct tune_model *tune_get_frozen(const struct tune_flags *flags, struct tune_device *dev,
                                   int rows, int tokens);
int tune_get_frozen_storage(const struct tune_flags *flags, const char *folder,
                            enum tune_dtype *storage);

#ifdef __cplusplus
}
#endif
#endif
