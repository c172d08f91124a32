/* thrift.h - a reader for Thrift's compact protocol, in which Parquet writes its headers.
 *
 *     for (int id = 0; tune_thrift_field(&t, &id);)
 *         if (id == 1)
 *             version = tune_thrift_int(&t);
 *         else
 *             tune_thrift_skip(&t);
 *
 * A value of another type than the call expects, or one beyond the end, makes the reader bad. From
 * then on it reads zeros and no fields, so callers look at `bad` once, at the end. Source: Apache
 * Thrift, thrift-compact-protocol.md. */
#ifndef TUNE_FILES_THRIFT_H
#define TUNE_FILES_THRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tune_thrift {
    const uint8_t *at, *end;
    int type; /* of the next value */
    bool bad;
};

/* A compact type's number. */
enum {
    TUNE_THRIFT_TRUE = 1, TUNE_THRIFT_I32 = 5, TUNE_THRIFT_I64, TUNE_THRIFT_BINARY = 8,
    TUNE_THRIFT_LIST, TUNE_THRIFT_STRUCT = 12
};

/* tune_thrift_start - begin to read size bytes that are one struct.
 * tune_thrift_field - go to the next field of a struct: true, and its number in *id, which is 0
 * before the first one. false: the struct ends here.
 * tune_thrift_struct - the next value must be a struct; read its fields next.
 * tune_thrift_int - a whole number of any width.
 * tune_thrift_bool - a truth value.
 * tune_thrift_bytes - a text or bytes, which stay where they are.
 * tune_thrift_list - number of elements of a list whose elements have this type. Read that many
 * values next. A struct among them is read by tune_thrift_field, as one in a field is.
 * tune_thrift_skip - pass over the next value. */
void tune_thrift_start(struct tune_thrift *t, const void *data, size_t size);
bool tune_thrift_field(struct tune_thrift *t, int *id);
void tune_thrift_struct(struct tune_thrift *t);
int64_t tune_thrift_int(struct tune_thrift *t);
bool tune_thrift_bool(struct tune_thrift *t);
const char *tune_thrift_bytes(struct tune_thrift *t, size_t *size);
int64_t tune_thrift_list(struct tune_thrift *t, int type);
void tune_thrift_skip(struct tune_thrift *t);

#endif
