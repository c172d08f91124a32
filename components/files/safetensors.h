/* safetensors.h - read and write one .safetensors file. A header that lies is refused before
 * anything is used.
 *
 *     N (8 bytes, little-endian) | header: N bytes of JSON | tensor data, no holes, no overlap
 *
 * The header is read and the data mapped. Tensors are views of the mapping, valid until close. They
 * may be unaligned: copy, never cast. Nobody may cut the file short meanwhile (file.h). Example:
 *
 *     struct tune_safetensors *f = tune_safetensors_open("model.safetensors");
 *     const struct tune_array *w = tune_safetensors_find(f, "model.norm.weight");
 *
 * Source: the format's description and its reference reader; where they differ, the stricter
 * one. */
#ifndef TUNE_CORE_SAFETENSORS_H
#define TUNE_CORE_SAFETENSORS_H

#include "core/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_safetensors;

#define TUNE_SAFETENSORS_HEADER 100000000 /* largest header, bytes; the reference reader's limit */

/* tune_safetensors_open - map the file and check its header: sizes, ranges, dtypes, names, no
 * duplicates. Each byte of data belongs to exactly one tensor. It takes under 200 bytes of memory
 * and the name for each tensor. NULL with an error that names file and tensor.
 * tune_safetensors_open_in - open <folder>/<name>, in a folder that may be a stranger's (folder.h).
 * tune_safetensors_close - close it; NULL is fine. */
struct tune_safetensors *tune_safetensors_open(const char *path);
struct tune_safetensors *tune_safetensors_open_in(const char *folder, const char *name);
void tune_safetensors_close(struct tune_safetensors *f);

/* tune_safetensors_header_size - bytes of the header: about the memory that the open file takes. */
int64_t tune_safetensors_header_size(const struct tune_safetensors *f);

/* tune_safetensors_count - number of tensors.
 * tune_safetensors_at - the i-th tensor by position in the file; valid until close.
 * tune_safetensors_name - its name.
 * tune_safetensors_find - the tensor with that name; NULL, without an error text, if there is
 * none. */
int64_t tune_safetensors_count(const struct tune_safetensors *f);
const struct tune_array *tune_safetensors_at(const struct tune_safetensors *f, int64_t i);
const char *tune_safetensors_name(const struct tune_safetensors *f, int64_t i);
const struct tune_array *tune_safetensors_find(const struct tune_safetensors *f, const char *name);

/* tune_safetensors_metadata - the value of a key in __metadata__, or NULL. */
const char *tune_safetensors_metadata(const struct tune_safetensors *f, const char *key);

/* Writing. Declare all tensors in file order, then write their bytes in that order, in pieces of
 * any size. The file appears under its name at finish. The header has __metadata__ {"format":
 * "pt"}. All return 0, or NULL or -1 with an error.
 * tune_safetensors_writer_new - begin a file.
 * tune_safetensors_writer_metadata - add a key to __metadata__.
 * tune_safetensors_writer_declare - declare the next tensor.
 * tune_safetensors_writer_write - write the next bytes.
 * tune_safetensors_writer_finish - sync the file and give it its name. An error also if bytes are
 * missing or too many.
 * tune_safetensors_writer_free - free the writer; without finish there is no file. */
struct tune_safetensors_writer;
struct tune_safetensors_writer *tune_safetensors_writer_new(const char *path);
int tune_safetensors_writer_metadata(struct tune_safetensors_writer *w, const char *key,
                                     const char *value);
int tune_safetensors_writer_declare(struct tune_safetensors_writer *w, const char *name,
                                    enum tune_dtype dtype,
                                    int ndim, const int64_t *shape);
int tune_safetensors_writer_write(struct tune_safetensors_writer *w, const void *data,
                                  int64_t bytes);
int tune_safetensors_writer_finish(struct tune_safetensors_writer *w);
void tune_safetensors_writer_free(struct tune_safetensors_writer *w);

#ifdef __cplusplus
}
#endif
#endif
