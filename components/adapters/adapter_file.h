/* adapter_file.h - a PEFT adapter folder on disk: read it, check it against a base, merge it.
 *
 *     <folder>/adapter_config.json           see adapter_config.h
 *     <folder>/adapter_model.safetensors     for each module, F32, F16 or BF16:
 *         base_model.model.<module>.lora_A.weight           [r,in]
 *         base_model.model.<module>.lora_B.weight           [out,r]
 *         base_model.model.<module>.lora_magnitude_vector   [out], DoRA only
 *
 * Files of this project also store the dtype of the base in __metadata__: "tune.base_dtype".
 *
 * It needs no device and no model. Weights are merged while they are read. */
#ifndef TUNE_ADAPTER_FILE_H
#define TUNE_ADAPTER_FILE_H

#include "adapters/adapter_config.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_adapter_file;

#define TUNE_ADAPTER_PREFIX "base_model.model."
#define TUNE_ADAPTER_BASE_DTYPE "tune.base_dtype"

/* tune_adapter_file_open - read adapter_config.json and map the tensors. NULL with an error that
 * names file, key or tensor. */
struct tune_adapter_file *tune_adapter_file_open(const char *folder);
void tune_adapter_file_close(struct tune_adapter_file *f);
const struct tune_adapter_config *tune_adapter_file_config(const struct tune_adapter_file *f);

/* tune_adapter_file_base_dtype - dtype of the base's linear layers during training: "float32",
 * "bfloat16", "nf4", or another string from the file. NULL: the file does not say. */
const char *tune_adapter_file_base_dtype(const struct tune_adapter_file *f);

/* tune_adapter_file_check - check that the file holds exactly the tensors its config asks for, on a
 * base with this table. *modules (may be NULL): number of modules with an adapter.
 *
 * -1 lists tensors that are missing, extra, or of another shape or dtype, and targets that match no
 * module. */
int tune_adapter_file_check(const struct tune_adapter_file *f, const struct tune_parameters *base,
                            int *modules);

/* tune_adapter_file_find - tensor of a module by the name's end (".lora_A.weight"); NULL: none. */
const struct tune_array *tune_adapter_file_find(const struct tune_adapter_file *f,
                                                const char *module, const char *end);

/* Merging gives W + s B A. DoRA gives magnitude (W + s B A) / |W + s B A|, with the norm of each
 * row. It is computed in float32. Call tune_adapter_file_check first.
 *
 * tune_adapter_file_merge - compute elements [at, at + count) of row p of the base's table into
 * out, reading the base from base. A row without an adapter is copied. Pieces may have any size;
 * going through rows in order is fastest. 0, or -1 with an error. */
struct tune_weights_source;
int tune_adapter_file_merge(struct tune_adapter_file *f, const struct tune_weights_source *base,
                            const struct tune_parameter *p, int64_t at, int64_t count, float *out);

#ifdef __cplusplus
}
#endif
#endif
