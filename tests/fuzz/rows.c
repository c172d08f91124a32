/* rows.c - data files. The first byte says what they are (also CSV, TSV) and how they are read, the second the length rows are
 * cut to, and what is trained. Rows whose format is recognised may be conversations, by one of three chat templates. */
#include "datasets/dataset.h"
#include "datasets/format.h"
#include "datasets/rows.h"
#include "fuzz.h"
#include "tokenizers/tokenizer.h"

static const char tokenizer[] =
    "{\"version\":\"1.0\",\"added_tokens\":[{\"id\":6,\"content\":\"<s>\",\"special\":true,\"normalized\":false}],"
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true},"
    "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}},"
    "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[6],\"tokens\":[\"<s>\"]}}},"
    "\"decoder\":{\"type\":\"ByteLevel\"},"
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"\\u0120\":3,\"ab\":4,\"abc\":5},"
    "\"merges\":[\"a b\",[\"ab\",\"c\"]]}}";

/* The tokenizer's one special token is what this template writes, and what rows may spell. */
static const char chat[] = "{% for m in messages %}{{ m.role + m.content + '<s>' }}{% endfor %}"
                           "{% if add_generation_prompt %}assistant{% endif %}";

/* A row in pieces: they follow each other to the end of the text, and special tokens are only those that a template spells. */
static void check_pieces(struct tune_dataset *d, int64_t row, const struct tune_dataset_options *o, struct tune_example *x)
{
    struct tune_pieces p = {0};
    int64_t spelt = 0, special = 0;
    HOLDS(tune_dataset_pieces(d, row, &p) == 0);
    for (int i = 0; i < p.count; i++)
        HOLDS(p.at[i].end >= (i ? p.at[i - 1].end : 0));
    HOLDS(p.count == 0 || p.at[p.count - 1].end == p.size);
    for (size_t i = 0; i + 3 <= p.size; i++)
        spelt += memcmp(p.text + i, "<s>", 3) == 0 && !p.data[i] && !p.data[i + 1] && !p.data[i + 2];
    for (int64_t i = 0; i < x->count; i++)
        special += x->ids[i] == 6;
    HOLDS(p.count == 0 || special <= spelt + !p.whole + (o->append_token || p.answer)); /* one before the text, one behind it */
    HOLDS(!p.whole || x->count < x->full_count || special >= spelt);
    HOLDS(!p.whole || spelt >= (o->chat_template && !strncmp(o->chat_template, "/proc", 5) ? 2 : 0)); /* chat ends each message */
    tune_pieces_free(&p);
}

static void read_rows(struct tune_dataset *d, struct tune_tokenizer *tok, const struct tune_dataset_options *o)
{
    struct tune_example x = {0};
    int64_t rows = tune_dataset_rows(d), read = rows < 64 ? rows : 64, bad = 0;
    HOLDS(rows > 0);
    for (int64_t i = 0; i < read; i++) {
        int64_t row = i < 32 ? i : rows - 1 - (i - 32); /* from both ends */
        char source[TUNE_DATASET_SOURCE_SIZE];
        HOLDS(tune_dataset_source(d, row, source, sizeof source)[0]);
        if (tune_dataset_get(d, row, &x) < 0) {
            HOLDS(!o->skip_bad_rows && x.count == 0);
            bad++;
            fuzz_refused();
            continue;
        }
        bad += x.bad;
        HOLDS(x.count >= 0 && x.count <= o->max_length && x.full_count >= x.count && !(x.bad && x.count));
        if (!x.bad)
            check_pieces(d, row, o, &x);
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
    if (tune_rows_open(&rows, path, &(struct tune_dataset_options){.format = format, .end_token = "<|end|>"}) < 0) {
        fuzz_refused();
        return;
    }
    const char *at = rows.file.data;
    int64_t line = 1;
    for (int64_t i = 0; i < rows.count && i < 100; i++) {
        struct tune_file_row row = tune_rows_get(&rows, i);
        HOLDS(row.size > 0 && row.text >= at && row.text + row.size <= rows.file.data + rows.file.size && row.line >= line);
        at = row.text + row.size;
        line = row.line;
    }
    tune_rows_close(&rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const train_on[] = {NULL, "last", "all", "completion"};
    static struct fuzz_file file, template;
    static struct tune_tokenizer *tok;
    if (!tok) {
        file = fuzz_file();
        template = fuzz_file();
        fuzz_set(&template, chat, sizeof chat - 1);
        fuzz_set(&file, tokenizer, sizeof tokenizer - 1);
        HOLDS((tok = tune_tokenizer_open(file.path)) != NULL);
    }
    if (size < 2)
        return 0;
    int file_format = data[0] & 64 ? TUNE_DATASET_CSV + (data[0] & 1) : data[0] & 3;
    const char *const templates[] = {NULL, "defaults/chat_templates/chatml.jinja", template.path,
                                     "defaults/chat_templates/plain.jinja"};
    bool recognised = data[0] & 128;
    struct tune_dataset_options options = {.format = (enum tune_dataset_format)file_format,
                                           .row_format = recognised ? "auto" : NULL,
                                           .end_token = "<s>",
                                           .text_field = !recognised && data[0] & 4 ? "text" : NULL,
                                           .response_template = !recognised && data[0] & 8 ? "b" : NULL,
                                           .chat_template = recognised ? templates[data[0] >> 2 & 3] : NULL,
                                           .train_on = recognised ? train_on[data[1] >> 6] : NULL,
                                           .append_token = data[0] & 16 ? "<s>" : NULL,
                                           .skip_bad_rows = data[0] & 32,
                                           .max_length = 1 + (recognised ? 4 * (data[1] & 63) : data[1])};
    fuzz_set(&file, data + 2, size - 2);
    check_rows(file.path, options.format);
    struct tune_dataset *d = tune_dataset_open(file.path, &options, tok);
    if (d)
        read_rows(d, tok, &options);
    else
        fuzz_refused();
    tune_dataset_free(d);
    return 0;
}
