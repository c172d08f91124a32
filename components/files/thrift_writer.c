/* thrift_writer.c - write values of Thrift's compact protocol. */
#include "files/thrift_writer.h"

#include <string.h>

#include "core/array.h"

void tune_thrift_write(struct tune_thrift_writer *w, const void *data, size_t size)
{
    if (!w->failed && tune_array_reserve(&w->at, &w->room, w->count + size, 1, "a file") < 0)
        w->failed = true;
    if (w->failed || size == 0)
        return;
    memcpy(w->at + w->count, data, size);
    w->count += size;
}

void tune_thrift_write_little(struct tune_thrift_writer *w, uint64_t number, int bytes)
{
    uint8_t little[8];
    for (int i = 0; i < bytes; i++)
        little[i] = (uint8_t)(number >> 8 * i);
    tune_thrift_write(w, little, (size_t)bytes);
}

void tune_thrift_write_varint(struct tune_thrift_writer *w, uint64_t number)
{
    for (; number > 127; number >>= 7)
        tune_thrift_write_little(w, (number & 127) | 128, 1);
    tune_thrift_write_little(w, number, 1);
}

void tune_thrift_write_int(struct tune_thrift_writer *w, int64_t number)
{
    tune_thrift_write_varint(w, (uint64_t)number << 1 ^ (uint64_t)(number >> 63));
}

void tune_thrift_write_text(struct tune_thrift_writer *w, const char *text)
{
    size_t size = strlen(text);
    tune_thrift_write_varint(w, size);
    tune_thrift_write(w, text, size);
}

/* A field's header in its long form, which does not depend on the field before. */
void tune_thrift_write_field(struct tune_thrift_writer *w, int id, int type)
{
    tune_thrift_write_little(w, (uint64_t)type, 1);
    tune_thrift_write_int(w, id);
}

void tune_thrift_write_int_field(struct tune_thrift_writer *w, int id, int type, int64_t number)
{
    tune_thrift_write_field(w, id, type);
    tune_thrift_write_int(w, number);
}

void tune_thrift_write_text_field(struct tune_thrift_writer *w, int id, const char *text)
{
    tune_thrift_write_field(w, id, TUNE_THRIFT_BINARY);
    tune_thrift_write_text(w, text);
}

void tune_thrift_write_list(struct tune_thrift_writer *w, int id, int type, size_t count)
{
    tune_thrift_write_field(w, id, TUNE_THRIFT_LIST);
    tune_thrift_write_little(w, (uint64_t)(15 << 4 | type), 1);
    tune_thrift_write_varint(w, count);
}

void tune_thrift_write_end(struct tune_thrift_writer *w)
{
    tune_thrift_write_little(w, 0, 1);
}
