/* coded.h - what must hold of every text and every tokenizer: ids of the vocabulary, places in the text, the same ids
 * from the table of words as without it, and ids that can be decoded. */
#ifndef TUNE_FUZZ_CODED_H
#define TUNE_FUZZ_CODED_H

#include "fuzz.h"
#include "tokenizers/tokenizer.h"

static inline void check_decoding(struct tune_tokenizer *t, const int32_t *ids, int64_t count)
{
    for (int skip = 0; skip < 2; skip++) {
        char *text;
        size_t size;
        if (tune_tokenizer_decode(t, ids, count, skip, &text, &size) < 0) {
            fuzz_refused();
            continue;
        }
        HOLDS(text[size] == 0);
        free(text);
    }
}

static inline void check_coding(struct tune_tokenizer *t, const char *text, size_t size, int options)
{
    struct tune_encoding first = {0}, again = {0};
    int failed = tune_tokenizer_encode(t, text, size, options, &first);
    HOLDS(failed == tune_tokenizer_encode(t, text, size, options, &again));
    if (failed) {
        fuzz_refused();
    } else {
        HOLDS(first.count == again.count);
        for (int64_t i = 0; i < first.count; i++) {
            HOLDS(first.ids[i] == again.ids[i] && first.starts[i] == again.starts[i] && first.ends[i] == again.ends[i]);
            HOLDS(first.ids[i] >= 0 && first.ids[i] < tune_tokenizer_size(t) && tune_tokenizer_token(t, first.ids[i]));
            if (first.starts[i] < 0)
                HOLDS(first.starts[i] == -1 && first.ends[i] == -1);
            else
                HOLDS(first.starts[i] <= first.ends[i] && first.ends[i] <= (int64_t)size);
        }
        check_decoding(t, first.ids, first.count);
    }
    tune_encoding_free(&first);
    tune_encoding_free(&again);
}

#endif
