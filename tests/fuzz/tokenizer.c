/* tokenizer.c - tokenizer.json; what follows the first NUL byte, after one byte of options, is a text to encode. */
#include "coded.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fuzz_file file;
    static const char sample[] = "It's a <s> test: ab abc 12  \n x\xC3\xA9 e\xCC\x81 \xE2\x96\x81 \xE4\xB8\xAD\xE6\x96\x87 \xF0\x9F\x98\x80\0'LL </s>";
    if (!file.path[0])
        file = fuzz_file();
    const uint8_t *nul = memchr(data, 0, size);
    size_t length = nul ? (size_t)(nul - data) : size;
    fuzz_set(&file, data, length);
    struct tune_tokenizer *t = tune_tokenizer_open(file.path);
    if (!t) {
        fuzz_refused();
        return 0;
    }
    HOLDS(tune_tokenizer_pipeline(t) && !tune_tokenizer_token(t, -1) && !tune_tokenizer_token(t, tune_tokenizer_size(t)));
    int32_t ids[64], count = 0;
    for (int32_t id = 0; id < tune_tokenizer_size(t) && count < 64; id++) {
        const char *token = tune_tokenizer_token(t, id);
        HOLDS(!token || tune_tokenizer_id(t, token) >= 0 || *token == 0 || strlen(token) > 0);
        if (token)
            ids[count++] = id;
    }
    check_decoding(t, ids, count);
    check_coding(t, sample, sizeof sample - 1, TUNE_ADD_SPECIAL);
    if (nul && length + 2 < size)
        check_coding(t, (const char *)nul + 2, size - length - 2, nul[1]);
    tune_tokenizer_free(t);
    return 0;
}
