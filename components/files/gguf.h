/* gguf.h - write one .gguf file, the format of llama.cpp, and read a file's header back.
 *
 *     "GGUF" | version 3 | tensors | keys | each key | each tensor's entry | data, each aligned
 *
 * Numbers are little-endian. Dimensions stand with the fastest first. The functions here take them
 * as everywhere else: [out,in]. Example:
 *
 *     struct tune_gguf_writer *w = tune_gguf_writer_new("model.gguf");
 *     tune_gguf_put_text(w, "general.architecture", "llama");
 *     tune_gguf_declare(w, "output_norm.weight", TUNE_GGUF_F32, 1, &width);
 *     tune_gguf_write(w, norm, 4 * width);
 *     tune_gguf_finish(w);
 *     tune_gguf_writer_free(w);
 *
 * Source: docs/gguf.md of ggml; checked against PyPI's gguf 0.19.0. */
#ifndef TUNE_FILES_GGUF_H
#define TUNE_FILES_GGUF_H

#include <stdbool.h>
#include <stdint.h>

#include "files/gguf_blocks.h"
#include "files/json.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Types of values, with the numbers that the format gives them. */
enum tune_gguf_type {
    TUNE_GGUF_U8, TUNE_GGUF_I8, TUNE_GGUF_U16, TUNE_GGUF_I16, TUNE_GGUF_U32, TUNE_GGUF_I32,
    TUNE_GGUF_FLOAT, TUNE_GGUF_BOOL, TUNE_GGUF_STRING, TUNE_GGUF_ARRAY, TUNE_GGUF_U64,
    TUNE_GGUF_I64, TUNE_GGUF_DOUBLE,
    TUNE_GGUF_TYPES /* the number of types */
};

enum {
    TUNE_GGUF_DIMS = 4, /* most dimensions of a tensor */
    TUNE_GGUF_NAME = 64 /* a tensor's name is shorter */
};

/* Writing. Put all keys and declare all tensors, in file order. Then write the tensors' bytes in
 * that order, in pieces of any size. The file appears under its name at finish. All return 0, or
 * NULL or -1 with an error.
 *
 * tune_gguf_writer_new - begin a file.
 * tune_gguf_put - put a key with one value. value: the address of a number of that type; of a bool;
 * of a struct tune_text for a STRING.
 * tune_gguf_put_array - put a key with count values, which lie side by side.
 * tune_gguf_put_u32, _float, _bool, _text - tune_gguf_put of the common types.
 * tune_gguf_declare - declare the next tensor. -1 also if the name has 64 bytes or more, or the
 * blocks do not divide its rows.
 * tune_gguf_size - bytes that the file will have.
 * tune_gguf_write - write the next bytes. Gaps between tensors are filled.
 * tune_gguf_finish - sync the file and give it its name. An error also if bytes are missing.
 * tune_gguf_writer_free - free the writer; without finish there is no file. NULL is fine. */
struct tune_gguf_writer;
struct tune_gguf_writer *tune_gguf_writer_new(const char *path);
int tune_gguf_put(struct tune_gguf_writer *w, const char *key, enum tune_gguf_type type,
                  const void *value);
int tune_gguf_put_array(struct tune_gguf_writer *w, const char *key, enum tune_gguf_type type,
                        uint64_t count, const void *values);
int tune_gguf_put_u32(struct tune_gguf_writer *w, const char *key, uint32_t value);
int tune_gguf_put_float(struct tune_gguf_writer *w, const char *key, double value);
int tune_gguf_put_bool(struct tune_gguf_writer *w, const char *key, bool value);
int tune_gguf_put_text(struct tune_gguf_writer *w, const char *key, const char *value);
int tune_gguf_declare(struct tune_gguf_writer *w, const char *name, enum tune_gguf_block block,
                      int ndim, const int64_t *shape);
int64_t tune_gguf_size(struct tune_gguf_writer *w);
int tune_gguf_write(struct tune_gguf_writer *w, const void *data, int64_t bytes);
int tune_gguf_finish(struct tune_gguf_writer *w);
void tune_gguf_writer_free(struct tune_gguf_writer *w);

/* Reading. Keys and entries are copied to memory, the data is mapped. */
struct tune_gguf_key {
    struct tune_text name;
    enum tune_gguf_type type; /* of the value, or of an array's elements */
    bool array;
    uint64_t count;           /* elements; 1 if it is no array */
    const void *values;       /* little-endian, unaligned. A string: u64 size, then its bytes */
};
struct tune_gguf_tensor {
    struct tune_text name;
    uint32_t id;              /* ggml's number of the type */
    int block;                /* enum tune_gguf_block; -1: one that is not known here */
    int ndim;
    int64_t shape[TUNE_GGUF_DIMS]; /* [out,in] */
    const void *data;
    int64_t offset;           /* of the data in the file */
    int64_t bytes;            /* 0 if the type is not known here */
};

/* tune_gguf_open - read a file's header and check it: sizes, types, ranges, no duplicates. NULL
 * with an error that names file and entry.
 * tune_gguf_close - close it; NULL is fine.
 * tune_gguf_keys, tune_gguf_tensors - the number of each.
 * tune_gguf_key, tune_gguf_tensor - the i-th, in file order; valid until close.
 * tune_gguf_find_key, tune_gguf_find_tensor - that of a name; NULL, without an error: none.
 * tune_gguf_number - a number or bool of a key's element i as double; NAN: it is no number.
 * tune_gguf_string - the string of a key's element i. Its data has no NUL behind it. data NULL: it
 * is no string. Walking an array of strings takes O(i). */
struct tune_gguf;
struct tune_gguf *tune_gguf_open(const char *path);
void tune_gguf_close(struct tune_gguf *g);
int64_t tune_gguf_keys(const struct tune_gguf *g);
int64_t tune_gguf_tensors(const struct tune_gguf *g);
const struct tune_gguf_key *tune_gguf_key(const struct tune_gguf *g, int64_t i);
const struct tune_gguf_tensor *tune_gguf_tensor(const struct tune_gguf *g, int64_t i);
const struct tune_gguf_key *tune_gguf_find_key(const struct tune_gguf *g, const char *name);
const struct tune_gguf_tensor *tune_gguf_find_tensor(const struct tune_gguf *g, const char *name);
double tune_gguf_number(const struct tune_gguf_key *k, uint64_t i);
struct tune_text tune_gguf_string(const struct tune_gguf_key *k, uint64_t i);

/* tune_gguf_type_bytes - bytes of one value; 0 for STRING and ARRAY. */
int tune_gguf_type_bytes(enum tune_gguf_type type);

#ifdef __cplusplus
}
#endif
#endif
