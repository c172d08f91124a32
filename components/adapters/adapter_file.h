/* adapter_file.h - a PEFT adapter folder on disk: open it, check it against a base, merge it into
 * the base's weights. It needs no device and no model.
 *
 *     <folder>/adapter_config.json           see adapter_config.h
 *     <folder>/adapter_model.safetensors     F32, F16 or BF16 tensors:
 *         "base_model.model." + module + ".lora_A.weight" [r,in], ".lora_B.weight" [out,r],
 *         for DoRA also ".lora_magnitude_vector" [out]
 *         of "model.embed_tokens": ".lora_embedding_A" [r,rows], ".lora_embedding_B" [width,r]
 *
 * Files of this project name the base's dtype in __metadata__: "tune.base_dtype". */
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
 * names file, key or tensor.
 * tune_adapter_file_close - close it; NULL is fine.
 * tune_adapter_file_config - its config; valid until close. */
struct tune_adapter_file *tune_adapter_file_open(const char *folder);
void tune_adapter_file_close(struct tune_adapter_file *f);
const struct tune_adapter_config *tune_adapter_file_config(const struct tune_adapter_file *f);

/* tune_adapter_file_base_dtype - dtype of the base's linear layers when the adapter was trained:
 * "float32", "bfloat16", "nf4", or any text of the file. NULL: the file does not say. */
const char *tune_adapter_file_base_dtype(const struct tune_adapter_file *f);

/* tune_adapter_file_vocabulary - rows of the vocabulary in the modules that the adapter trains
 * whole; 0: there are none. They are more than the base's if tokens were added. */
int64_t tune_adapter_file_vocabulary(const struct tune_adapter_file *f);

/* tune_adapter_file_tie - say whether the base's embedding and output projection are one matrix. An
 * adapter of one of them unties them. */
void tune_adapter_file_tie(struct tune_adapter_file *f, bool tied);

/* tune_adapter_file_whole - modules_to_save for a model that has the adapter and is not trained.
 * The embedding and the output projection are among them, if they have low-rank adapters or the
 * file has other numbers for them. They become whole copies with the adapter merged into them. A
 * constant text, or NULL. Call tie first. */
const char *tune_adapter_file_whole(const struct tune_adapter_file *f);

/* tune_adapter_file_check - check that the file holds exactly the tensors that its config asks for,
 * in the shapes of this base. -1 with an error that lists the tensors: missing, unknown, or of
 * another shape or dtype; or a target that fits no module. *modules, unless NULL: modules with an
 * adapter. */
int tune_adapter_file_check(const struct tune_adapter_file *f, const struct tune_parameters *base,
                            int *modules);

/* tune_adapter_file_find - the tensor of a module with an ending such as ".lora_A.weight"; NULL:
 * none. */
const struct tune_array *tune_adapter_file_find(const struct tune_adapter_file *f,
                                                const char *module, const char *end);

/* tune_adapter_file_merge - merged elements [at, at + count) of row p of the base's table, into
 * out; base.read gives the base's numbers. LoRA: W + s B A. DoRA: magnitude (W + s B A) / |W + s B
 * A| by rows. It computes in float32. A row without an adapter is copied. Call check first. Pieces
 * may have any size; ascending order costs least. */
struct tune_weights_source;
int tune_adapter_file_merge(struct tune_adapter_file *f, const struct tune_weights_source *base,
                            const struct tune_parameter *p,
                            int64_t at, int64_t count, float *out);

#ifdef __cplusplus
}
#endif
#endif
