/* adapter_file.h - a PEFT adapter folder as it lies on the disk: read, compared with a base, merged into its weights.
 *
 *     <folder>/adapter_config.json           see adapter_config.h
 *     <folder>/adapter_model.safetensors     "base_model.model." + module + ".lora_A.weight" [r,in], ".lora_B.weight" [out,r],
 *                                            of DoRA ".lora_magnitude_vector" [out]; F32, F16 or BF16. Those of this project
 *                                            say in __metadata__ what the base was kept in: "tune.base_dtype"
 *
 * No device and no model are needed: weights are merged as they are read. */
#ifndef TUNE_ADAPTER_FILE_H
#define TUNE_ADAPTER_FILE_H

#include "adapters/adapter_config.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_adapter_file;

#define TUNE_ADAPTER_PREFIX "base_model.model."
#define TUNE_ADAPTER_BASE_DTYPE "tune.base_dtype"

/* tune_adapter_file_open - read adapter_config.json, map the tensors. NULL with an error that names file, key or tensor. */
struct tune_adapter_file *tune_adapter_file_open(const char *folder);
void tune_adapter_file_close(struct tune_adapter_file *f);
const struct tune_adapter_config *tune_adapter_file_config(const struct tune_adapter_file *f);

/* tune_adapter_file_base_dtype - what the base's linear layers were kept in when the adapter was trained: "float32", "bfloat16",
 * "nf4", or whatever the file says; NULL: it does not. */
const char *tune_adapter_file_base_dtype(const struct tune_adapter_file *f);

/* tune_adapter_file_check - the file holds exactly what its config asks for on a base with this table, in its shapes. -1 lists the
 * tensors that are missing, that nothing asks for, whose shape or dtype is another, or that a target fits no module of the base.
 * *modules, where not NULL: how many have an adapter. */
int tune_adapter_file_check(const struct tune_adapter_file *f, const struct tune_parameters *base, int *modules);

/* tune_adapter_file_find - the tensor of a module's name and an end (".lora_A.weight"); NULL: none. */
const struct tune_array *tune_adapter_file_find(const struct tune_adapter_file *f, const char *module, const char *end);

/* Merging, after check: W + s B A, of DoRA magnitude (W + s B A) / |W + s B A| by rows, in float32 whatever the files hold.
 * tune_adapter_file_merge - elements [at, at + count) of row p of the base's table, which base.read gives, into out; of a row
 * without an adapter as they are. Pieces of a row may come in any sizes; rows one after the other cost least. */
struct tune_weights_source;
int tune_adapter_file_merge(struct tune_adapter_file *f, const struct tune_weights_source *base, const struct tune_parameter *p,
                            int64_t at, int64_t count, float *out);

#ifdef __cplusplus
}
#endif
#endif
