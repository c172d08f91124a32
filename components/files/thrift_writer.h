/* thrift_writer.h - a writer for Thrift's compact protocol, into memory that grows.
 *
 *     tune_thrift_write_int_field(&w, 1, TUNE_THRIFT_I32, version);
 *     tune_thrift_write_text_field(&w, 4, name);
 *     tune_thrift_write_end(&w);                  the struct ends
 *     if (w.failed)
 *         return -1;
 *
 * Without memory the writer fails and sets the error. From then on it takes no more, so callers
 * look at `failed` once, at the end. Source: Apache Thrift, thrift-compact-protocol.md. */
#ifndef TUNE_FILES_THRIFT_WRITER_H
#define TUNE_FILES_THRIFT_WRITER_H

#include "files/thrift.h"

struct tune_thrift_writer {
    uint8_t *at; /* the caller frees it */
    size_t count, room;
    bool failed;
};

/* tune_thrift_write - bytes as they are.
 * tune_thrift_write_little - the lowest bytes of a number, the last one first.
 * tune_thrift_write_varint - 7 bits in a byte.
 *
 * tune_thrift_write_int, tune_thrift_write_text - an element of a list.
 *
 * tune_thrift_write_field - begin a field; its value follows. Of a boolean the type is the value.
 * tune_thrift_write_int_field, tune_thrift_write_text_field - a field.
 * tune_thrift_write_list - begin a field that is a list; its elements follow.
 * tune_thrift_write_end - a struct ends. */
void tune_thrift_write(struct tune_thrift_writer *w, const void *data, size_t size);
void tune_thrift_write_little(struct tune_thrift_writer *w, uint64_t number, int bytes);
void tune_thrift_write_varint(struct tune_thrift_writer *w, uint64_t number);
void tune_thrift_write_int(struct tune_thrift_writer *w, int64_t number);
void tune_thrift_write_text(struct tune_thrift_writer *w, const char *text);
void tune_thrift_write_field(struct tune_thrift_writer *w, int id, int type);
void tune_thrift_write_int_field(struct tune_thrift_writer *w, int id, int type, int64_t number);
void tune_thrift_write_text_field(struct tune_thrift_writer *w, int id, const char *text);
void tune_thrift_write_list(struct tune_thrift_writer *w, int id, int type, size_t count);
void tune_thrift_write_end(struct tune_thrift_writer *w);

#endif
