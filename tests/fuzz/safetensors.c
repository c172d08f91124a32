/* safetensors.c - weight files. Bytes that begin with '{' are a header, up to their last '}', and its data: the length
 * field is put before them. All else is a file as it stands, length field and all. */
#include "files/safetensors.h"
#include "fuzz.h"

static void ask(const struct tune_safetensors *f, size_t file_size)
{
    int64_t count = tune_safetensors_count(f), total = 0;
    unsigned sum = 0;
    char shape[128];
    for (int64_t i = 0; i < count; i++) {
        const struct tune_array *t = tune_safetensors_at(f, i);
        const char *name = tune_safetensors_name(f, i);
        HOLDS(t && name && tune_safetensors_find(f, name) == t);
        HOLDS(t->ndim >= 0 && t->ndim <= TUNE_MAX_DIMS);
        int64_t bytes = tune_array_bytes(t);
        HOLDS(bytes >= 0 && (uint64_t)bytes <= file_size);
        total += bytes;
        for (int64_t k = 0; k < bytes; k++) /* every byte can be read */
            sum += ((const unsigned char *)t->data)[k];
        HOLDS(tune_shape_text(t->ndim, t->shape, shape, sizeof shape)[0] == '[');
    }
    HOLDS((uint64_t)total <= file_size && sum <= 255u * file_size);
    HOLDS(!tune_safetensors_at(f, count) && !tune_safetensors_at(f, -1) && !tune_safetensors_name(f, count));
    const char *format = tune_safetensors_metadata(f, "format");
    HOLDS(!format || strlen(format) <= file_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fuzz_file file;
    if (!file.path[0])
        file = fuzz_file();
    const uint8_t *end = size > 0 && data[0] == '{' ? memrchr(data, '}', size) : NULL;
    if (end) {
        uint64_t length = (uint64_t)(end + 1 - data);
        uint8_t field[8];
        for (int i = 0; i < 8; i++)
            field[i] = (uint8_t)(length >> 8 * i);
        fuzz_set(&file, field, 8);
        fuzz_write(&file, data, size, 8);
        size += 8;
    } else {
        fuzz_set(&file, data, size);
    }
    struct tune_safetensors *f = tune_safetensors_open(file.path);
    if (f)
        ask(f, size);
    else
        fuzz_refused();
    tune_safetensors_close(f);
    return 0;
}
