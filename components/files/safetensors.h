/* safetensors.h - read and write one .safetensors file; a header that lies is refused before anything is used.
 *
 *     N (8 bytes, little-endian) | header: N bytes of JSON | tensor data, no holes, no overlap
 *
 * The header is read, the data mapped; tensors are views into the mapping, valid until close, and
 * may be unaligned (copy, never cast). A file must not be cut short meanwhile (file.h). Example:
 *
 *     struct tune_safetensors *f = tune_safetensors_open("model.safetensors");
 *     const struct tune_array *w = tune_safetensors_find(f, "model.norm.weight");
 *
 * Source: the format's text and its reference reader; where they differ the stricter holds. */
#ifndef TUNE_CORE_SAFETENSORS_H
#define TUNE_CORE_SAFETENSORS_H

#include "core/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_safetensors;

#define TUNE_SAFETENSORS_HEADER 100000000 /* bytes of a header; the reference reader's limit */

/* tune_safetensors_open - map the file and check its whole header: sizes, ranges, dtypes, names, no duplicates, every
 * byte of data belongs to exactly one tensor. NULL with an error naming file and tensor. Memory: under 200 bytes and
 * its name per tensor.
 * tune_safetensors_open_in - <folder>/<name>, of a folder that may be a stranger's (folder.h). */
struct tune_safetensors *tune_safetensors_open(const char *path);
struct tune_safetensors *tune_safetensors_open_in(const char *folder, const char *name);
void tune_safetensors_close(struct tune_safetensors *f);

/* tune_safetensors_header_size - bytes of the header: what the file costs in memory, about. */
int64_t tune_safetensors_header_size(const struct tune_safetensors *f);

/* tune_safetensors_count - number of tensors. _at - the i-th by file position, name by _name.
 * _find - by name; NULL (no error text) if there is none. Views borrowed until close. */
int64_t tune_safetensors_count(const struct tune_safetensors *f);
const struct tune_array *tune_safetensors_at(const struct tune_safetensors *f, int64_t i);
const char *tune_safetensors_name(const struct tune_safetensors *f, int64_t i);
const struct tune_array *tune_safetensors_find(const struct tune_safetensors *f, const char *name);

/* tune_safetensors_metadata - a value of __metadata__, or NULL. */
const char *tune_safetensors_metadata(const struct tune_safetensors *f, const char *key);

/* Writing: declare every tensor in the order it shall lie in the file, then hand over the bytes in that order, in
 * pieces of any size (nothing is held). The file appears under its name at finish, fsynced; before, or after a failure
 * and free, there is none. The header carries __metadata__ {"format": "pt"} and what metadata adds. */
struct tune_safetensors_writer;
struct tune_safetensors_writer *tune_safetensors_writer_new(const char *path);
int tune_safetensors_writer_metadata(struct tune_safetensors_writer *w, const char *key, const char *value);
int tune_safetensors_writer_declare(struct tune_safetensors_writer *w, const char *name, enum tune_dtype dtype,
                                    int ndim, const int64_t *shape);
int tune_safetensors_writer_write(struct tune_safetensors_writer *w, const void *data, int64_t bytes);
int tune_safetensors_writer_finish(struct tune_safetensors_writer *w); /* -1 too if bytes are missing or too many */
void tune_safetensors_writer_free(struct tune_safetensors_writer *w);

#ifdef __cplusplus
}
#endif
#endif
