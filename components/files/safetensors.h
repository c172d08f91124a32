/* safetensors.h - read and write a .safetensors file. The whole header is checked before anything
 * is used.
 *
 *     N (8 bytes, little-endian) | header: N bytes of JSON | tensor data, no holes, no overlap
 *
 * The header is read, the data is mapped. Tensors are views of the mapping, valid until close. They
 * may be unaligned: copy, never cast. The file must not be truncated meanwhile (file.h).
 *
 *     struct tune_safetensors *f = tune_safetensors_open("model.safetensors");
 *     const struct tune_array *w = tune_safetensors_find(f, "model.norm.weight");
 *
 * Source: the format's documentation and its reference reader. If they differ, the stricter rule
 * applies. */
#ifndef TUNE_CORE_SAFETENSORS_H
#define TUNE_CORE_SAFETENSORS_H

#include "core/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_safetensors;

#define TUNE_SAFETENSORS_HEADER 100000000 /* bytes, as in the reference reader */

/* tune_safetensors_open - map the file and check its header: sizes, ranges, dtypes, names, no
 * duplicates. Every byte of data must belong to exactly one tensor. NULL with an error that names
 * file and tensor. It needs less than 200 bytes of memory for each tensor, and its name.
 *
 * tune_safetensors_open_in - the same for <folder>/<name>, with the rules of folder.h for untrusted
 * folders. */
struct tune_safetensors *tune_safetensors_open(const char *path);
struct tune_safetensors *tune_safetensors_open_in(const char *folder, const char *name);
void tune_safetensors_close(struct tune_safetensors *f);

/* tune_safetensors_header_size - bytes of the header, about the memory that the open file needs. */
int64_t tune_safetensors_header_size(const struct tune_safetensors *f);

/* tune_safetensors_count - number of tensors.
 * tune_safetensors_at, tune_safetensors_name - the i-th tensor in file order, and its name.
 * tune_safetensors_find - the tensor of that name; NULL without error text: none. Views are valid
 * until close. */
int64_t tune_safetensors_count(const struct tune_safetensors *f);
const struct tune_array *tune_safetensors_at(const struct tune_safetensors *f, int64_t i);
const char *tune_safetensors_name(const struct tune_safetensors *f, int64_t i);
const struct tune_array *tune_safetensors_find(const struct tune_safetensors *f, const char *name);

/* tune_safetensors_metadata - the value of a key in __metadata__, or NULL. */
const char *tune_safetensors_metadata(const struct tune_safetensors *f, const char *key);

/* Write a file. Declare all tensors in file order, then write their bytes in that order, in pieces
 * of any size. Nothing is buffered. The file appears at finish, synced; after a failure, or free
 * without finish, there is no file. The header has __metadata__ {"format": "pt"} and the pairs of
 * tune_safetensors_writer_metadata. */
struct tune_safetensors_writer;
struct tune_safetensors_writer *tune_safetensors_writer_new(const char *path);
int tune_safetensors_writer_metadata(struct tune_safetensors_writer *w, const char *key,
                                     const char *value);
int tune_safetensors_writer_declare(struct tune_safetensors_writer *w, const char *name,
                                    enum tune_dtype dtype, int ndim, const int64_t *shape);
int tune_safetensors_writer_write(struct tune_safetensors_writer *w, const void *data,
                                  int64_t bytes);
/* -1 also if bytes are missing or extra */
int tune_safetensors_writer_finish(struct tune_safetensors_writer *w);
void tune_safetensors_writer_free(struct tune_safetensors_writer *w);

#ifdef __cplusplus
}
#endif
#endif
