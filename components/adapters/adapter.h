/* adapter.h - read and write a model's adapters (models/lora.h) as a PEFT folder.
 *
 *     <folder>/adapter_config.json           see adapter_config.h
 *     <folder>/adapter_model.safetensors     see adapter_file.h
 *
 * PEFT loads folders written here. To load a folder of PEFT:
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

/* tune_adapter_write - write the model's adapters to an existing folder; its files are replaced.
 * base: value of base_model_name_or_path, NULL: null. save_dtype: F32, BF16 or F16. 0, or -1 with
 * an error, also if a value does not fit save_dtype. */
int tune_adapter_write(struct tune_model *m, const char *folder, const char *base,
                       enum tune_dtype save_dtype);

/* tune_adapter_read - load the folder's weights into the adapters that tune_lora_add made. 0, or -1
 * with nothing changed. Errors: the folder has other adapters than the model, or
 * tune_adapter_file_check refuses it. */
int tune_adapter_read(struct tune_model *m, const char *folder);

/* tune_adapter_prove - verify a saved folder. Its weights, read again from disk, must equal the
 * model's weights rounded to the saved dtype, bit for bit. Its description of the base must be
 * right.
 *
 * Then it runs batch twice: with the adapters, and with weights merged from the file, tile by tile.
 * *difference: distance of the final norm's outputs, relative to their norm. The caller decides how
 * much is too much. -1 with an error: a weight differs. */
int tune_adapter_prove(struct tune_model *m, const char *folder, const struct tune_batch *batch,
                       double *difference);

/* tune_get_lora - load the model of --model, frozen in --base-dtype, with adapters from --lora-* or
 * like those of --adapter. tune_checkpoint_resume reads their weights. Otherwise like
 * tune_get_model.
 *
 * tune_get_lora_options - the options of the adapters. The caller frees config.
 *
 * tune_get_base_dtype - the dtype of the frozen matrices. */
struct tune_model *tune_get_lora(const struct tune_flags *flags, struct tune_device *dev,
                                 const struct tune_tokenizer *tok);
int tune_get_lora_options(const struct tune_flags *flags, struct tune_adapter_config *config);
enum tune_dtype tune_get_base_dtype(const struct tune_flags *flags);

#ifdef __cplusplus
}
#endif
#endif
