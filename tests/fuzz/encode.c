/* encode.c - any text through one tokenizer of every pipeline (tests/reference/tokenizers.jsonl). The first byte
 * chooses tokenizer and options. The tokenizers live on, so what one text leaves behind meets the next. */
#include "coded.h"
#include "files/file.h"
#include "files/json.h"

enum { SHAPES = 16 };

static void open_all(struct tune_tokenizer *t[SHAPES])
{
    static const char path[] = "tests/reference/tokenizers.jsonl";
    struct fuzz_file file = fuzz_file();
    char *text;
    size_t size;
    int n = 0;
    HOLDS(tune_file_read(path, 1 << 26, &text, &size) == 0);
    for (const char *p = text, *next; p < text + size && n < SHAPES; p = next) {
        struct tune_json j;
        struct tune_text key, value;
        next = memchr(p, '\n', (size_t)(text + size - p));
        next = next ? next + 1 : text + size;
        tune_json_start(&j, path, p, (size_t)(next - p), 1);
        HOLDS(tune_json_object(&j) == 0);
        while (tune_json_key(&j, &key) == 1)
            if (tune_text_equal(key, "tokenizer")) {
                HOLDS(tune_json_string(&j, &value) == 0);
                fuzz_set(&file, value.data, value.size);
                HOLDS((t[n++] = tune_tokenizer_open(file.path)) != NULL);
            } else {
                HOLDS(tune_json_skip(&j) == 0);
            }
        tune_json_free(&j);
    }
    HOLDS(n == SHAPES);
    free(text);
    close(file.fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tune_tokenizer *t[SHAPES];
    if (!t[0])
        open_all(t);
    if (size < 1)
        return 0;
    /* A copy of exactly its size: what reads past the text's end is seen. */
    char *text = malloc(size - (size > 1));
    HOLDS(text);
    memcpy(text, data + 1, size - 1);
    check_coding(t[data[0] % SHAPES], text, size - 1, data[0] / SHAPES & 3);
    free(text);
    return 0;
}
