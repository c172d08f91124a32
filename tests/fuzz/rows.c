/* rows.c - data files. The first byte says what they are (also CSV, TSV) and how they are read, the second the length rows are
 * cut to. */
#include "datasets/dataset.h"
#include "datasets/rows.h"
#include "fuzz.h"
#include "tokenizers/tokenizer.h"

static const char tokenizer[] =
    "{\"version\":\"1.0\",\"added_tokens\":[{\"id\":6,\"content\":\"<s>\",\"special\":true,\"normalized\":false}],"
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true},"
    "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}},"
    "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[6],\"tokens\":[\"<s>\"]}}},"
    "\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"\\u0120\":3,\"ab\":4,\"abc\":5},"
    "\"merges\":[\"a b\",[\"ab\",\"c\"]]}}";

static void read_rows(struct tune_dataset *d, struct tune_tokenizer *tok, int max_length, bool skip)
{
    struct tune_example x = {0};
    int64_t rows = tune_dataset_rows(d), read = rows < 64 ? rows : 64, bad = 0;
    HOLDS(rows > 0);
    for (int64_t i = 0; i < read; i++) {
        int64_t row = i < 32 ? i : rows - 1 - (i - 32); /* from both ends */
        char source[TUNE_DATASET_SOURCE_SIZE];
        HOLDS(tune_dataset_source(d, row, source, sizeof source)[0]);
        if (tune_dataset_get(d, row, &x) < 0) {
            HOLDS(!skip && x.count == 0);
            bad++;
            fuzz_refused();
            continue;
        }
        bad += x.bad;
        HOLDS(x.count >= 0 && x.count <= max_length && x.full_count >= x.count && !(x.bad && x.count));
        for (int64_t k = 0; k < x.count; k++)
            HOLDS(x.ids[k] >= 0 && x.ids[k] < tune_tokenizer_size(tok) && x.trained[k] <= (k > 0));
    }
    struct tune_dataset_counts counts = tune_dataset_counts(d);
    HOLDS(counts.rows == read && counts.bad == bad && counts.truncated <= read && counts.truncated_away <= counts.truncated);
    FILE *nowhere = fopen("/dev/null", "w");
    HOLDS(nowhere);
    if (tune_dataset_show(d, tok, 2, nowhere) < 0)
        fuzz_refused();
    fclose(nowhere);
    tune_example_free(&x);
}

/* Rows lie in the file in order and apart from each other. */
static void check_rows(const char *path, enum tune_dataset_format format)
{
    struct tune_rows rows;
    if (tune_rows_open(&rows, path, format) < 0) {
        fuzz_refused();
        return;
    }
    const char *at = rows.file.data;
    int64_t line = 1;
    for (int64_t i = 0; i < rows.count && i < 100; i++) {
        struct tune_row row = tune_rows_get(&rows, i);
        HOLDS(row.size > 0 && row.text >= at && row.text + row.size <= rows.file.data + rows.file.size && row.line >= line);
        at = row.text + row.size;
        line = row.line;
    }
    tune_rows_close(&rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fuzz_file file;
    static struct tune_tokenizer *tok;
    if (!tok) {
        file = fuzz_file();
        fuzz_set(&file, tokenizer, sizeof tokenizer - 1);
        HOLDS((tok = tune_tokenizer_open(file.path)) != NULL);
    }
    if (size < 2)
        return 0;
    int file_format = data[0] & 64 ? TUNE_DATASET_CSV + (data[0] & 1) : data[0] & 3;
    struct tune_dataset_options options = {.format = (enum tune_dataset_format)file_format,
                                           .row_format = data[0] & 128 ? "auto" : NULL,
                                           .end_token = "<s>",
                                           .text_field = data[0] & 4 ? "text" : NULL,
                                           .response_template = data[0] & 8 ? "b" : NULL,
                                           .append_token = data[0] & 16 ? "<s>" : NULL,
                                           .skip_bad_rows = data[0] & 32,
                                           .max_length = 1 + data[1]};
    fuzz_set(&file, data + 2, size - 2);
    check_rows(file.path, options.format);
    struct tune_dataset *d = tune_dataset_open(file.path, &options, tok);
    if (d)
        read_rows(d, tok, options.max_length, options.skip_bad_rows);
    else
        fuzz_refused();
    tune_dataset_free(d);
    return 0;
}
