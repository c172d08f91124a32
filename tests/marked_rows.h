/* marked_rows.h - rows of text as training examples, as tests write them down. The test gives
 *
 *     static struct tune_dataset *open_with(const char *name, const char *text, struct tune_dataset_options o) */
#ifndef TUNE_MARKED_ROWS_H
#define TUNE_MARKED_ROWS_H

#include "datasets/dataset.h"
#include "test.h"
#include "tokenizers/tokenizer.h"

#define OPEN(name, text, ...) open_with(name, text, (struct tune_dataset_options){.row_format = "auto", __VA_ARGS__})
#define REFUSED(name, text, error, ...)             \
    do {                                            \
        assert_null(OPEN(name, text, __VA_ARGS__)); \
        assert_error_has(error);                    \
    } while (0)

static struct tune_tokenizer *bytes; /* the test's, of single bytes and special tokens: masks can be counted by hand */

/* A row as text, its trained parts in square brackets; a special token is shown as `special`, NULL: as itself behind a '~'. */
static const char *marked_row(struct tune_dataset *d, int64_t row, const char *special)
{
    static char out[16384];
    struct tune_example x = {0};
    size_t used = 0;
    assert_got(d);
    assert_ok(tune_dataset_get(d, row, &x));
    for (int64_t i = 0; i < x.count; i++) {
        char *text;
        size_t size;
        bool was = i > 0 && x.trained[i - 1], is = x.trained[i];
        assert_ok(tune_tokenizer_decode(bytes, x.ids + i, 1, false, &text, &size));
        used += (size_t)snprintf(out + used, sizeof out - used, "%s%s%s", is && !was ? "[" : !is && was ? "]" : "",
                                 size > 1 && !special ? "~" : "", size > 1 && special ? special : text);
        free(text);
        assert_true(used < sizeof out - 2);
    }
    snprintf(out + used, sizeof out - used, "%s", x.count && x.trained[x.count - 1] ? "]" : "");
    tune_example_free(&x);
    return out;
}

#endif
