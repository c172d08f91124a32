/* dataset_show.c - print rows as the model sees them. */
#include <stdlib.h>
#include <string.h>

#include "core/print.h"
#include "core/try.h"
#include "datasets/dataset.h"
#include "datasets/format.h"
#include "tokenizers/tokenizer.h"

/* Print text in quotes. What steers a terminal is escaped. */
static void put_quoted(const char *text, size_t size, FILE *stream)
{
    static const char plain[] = "\n\r\t\"\\", letters[] = "nrt\"\\";
    fputc('"', stream);
    for (size_t n; size > 0; text += n, size -= n) {
        unsigned c;
        bool steers = tune_steers(text, size, &n, &c);
        const char *known = c > 0 && c < 0x80 ? strchr(plain, (int)c) : NULL;
        if (known)
            fprintf(stream, "\\%c", letters[known - plain]);
        else if (steers)
            fprintf(stream, c < 0x80 ? "\\x%02x" : "\\u%04x", c);
        else
            fwrite(text, 1, n, stream);
    }
    fputc('"', stream);
}

/* Print the text that a token adds after the one before, which decides about leading spaces. Part
 * of a character would decode to U+FFFD, so it is printed as the vocabulary spells it, without
 * quotes. */
static int put_token(struct tune_tokenizer *tok, const int32_t *ids, int64_t i, FILE *stream)
{
    char *before = NULL, *both = NULL;
    size_t skip = 0, size = 0;
    const char *spelling = tune_tokenizer_token(tok, ids[i]);
    int status = 0;
    if (i > 0)
        status = tune_tokenizer_decode(tok, ids + i - 1, 1, false, &before, &skip);
    if (status == 0)
        status = tune_tokenizer_decode(tok, ids + i - (i > 0), i > 0 ? 2 : 1, false, &both, &size);
    if (status == 0) {
        bool clean = size > skip && (skip == 0 || memcmp(before, both, skip) == 0) &&
                     !memmem(both + skip, size - skip, "\xef\xbf\xbd", 3);
        if (clean)
            put_quoted(both + skip, size - skip, stream);
        else
            tune_print_line_of(stream, spelling ? spelling : "(not in the vocabulary)");
    }
    free(before);
    free(both);
    return status;
}

/* Print the pieces of a row's text: from the template or the row, trained or masked. */
static int show_pieces(const struct tune_dataset *d, int64_t row, int side, FILE *stream)
{
    struct tune_pieces p = {.side = side};
    int status = tune_dataset_pieces(d, row, &p), piece = 0;
    if (status == 0 && p.count > 0)
        fprintf(stream, "%8s  %-8s  piece\n", "loss", "by");
    for (size_t begin = 0, end; status == 0 && begin < p.size; begin = end) {
        while (begin >= p.at[piece].end)
            piece++;
        for (end = begin + 1; end < p.at[piece].end && p.data[end] == p.data[begin];)
            end++;
        fprintf(stream, "%8s  %-8s  ", p.at[piece].trained ? "trained" : "masked", p.data[begin] ? "row" : "template");
        put_quoted(p.text + begin, end - begin, stream);
        fputc('\n', stream);
    }
    tune_pieces_free(&p);
    return status;
}

/* The pieces and tokens of one of a row's sequences. */
static int show_sequence(const struct tune_dataset *d, struct tune_tokenizer *tok, int64_t row, const struct tune_example *x,
                         int side, FILE *stream)
{
    int64_t size, begin = tune_example_part(x, side, &size), end = begin + size;
    TRY(show_pieces(d, row, side, stream));
    fprintf(stream, "%8s %8s  %-7s  %s\n", "position", "id", "loss", "token");
    for (int64_t i = begin; i < end; i++) {
        fprintf(stream, "%8lld %8d  %-7s  ", (long long)(i - begin), x->ids[i], x->trained[i] ? "trained" : "masked");
        TRY(put_token(tok, x->ids + begin, i - begin, stream));
        fputc('\n', stream);
    }
    return 0;
}

/* Say what of the row's conversation is read differently. */
static void show_adapted(unsigned adapted, FILE *stream)
{
    static const char *const what[TUNE_ADAPTED_KINDS] = {"turns joined", "greeting left out", "system text moved", "developer as system",
        "keys or roles of another format", "arguments put into the template's form", "unusual order of turns",
        "a developer"};
    const char *before = "; ";
    for (int i = 0; i < TUNE_ADAPTED_KINDS; i++)
        if (adapted >> i & 1) {
            fprintf(stream, "%s%s", before, what[i]);
            before = ", ";
        }
}

static int show_row(struct tune_dataset *d, struct tune_tokenizer *tok, int64_t row, struct tune_example *x, FILE *stream)
{
    char where[TUNE_DATASET_SOURCE_SIZE];
    int64_t trained = 0;
    TRY(tune_dataset_get(d, row, x));
    for (int64_t i = 0; i < x->count; i++)
        trained += x->trained[i];
    fprintf(stream, "%srow %lld, %s: ", row > 0 ? "\n" : "", (long long)row,
            tune_dataset_source(d, row, where, sizeof where));
    if (x->bad) {
        fputs("a bad row, left out\n", stream);
        return 0;
    }
    fprintf(stream, "%lld tokens, %lld trained", (long long)x->count, (long long)trained);
    if (x->count < x->full_count)
        fprintf(stream, ", cut from %lld", (long long)x->full_count);
    show_adapted(x->adapted, stream);
    fputc('\n', stream);
    for (int i = 0; i < tune_example_parts(x); i++) {
        if (x->sequences == 2 && x->labels[0] != x->labels[1])
            fprintf(stream, "the %s answer:\n", x->labels[i] < x->labels[1 - i] ? "rejected" : "chosen");
        else if (x->sequences > 0)
            fprintf(stream, "sequence %d of %d, with the label %g:\n", i + 1, x->sequences, x->labels[i]);
        TRY(show_sequence(d, tok, row, x, i, stream));
    }
    if (x->count < x->full_count)
        fprintf(stream, "-------- cut here: the model does not see the row's other %lld tokens\n",
                (long long)(x->full_count - x->count));
    return 0;
}

int tune_dataset_show(struct tune_dataset *d, struct tune_tokenizer *tok, int n, FILE *stream)
{
    struct tune_example x = {0};
    for (int k = 0; tune_dataset_sets(d) > 1 && k < tune_dataset_sets(d); k++) {
        fprintf(stream, "%sset %d of %d: %s\n", k ? "\n" : "", k + 1, tune_dataset_sets(d), tune_dataset_path(tune_dataset_set(d, k)));
        TRY(tune_dataset_show(tune_dataset_set(d, k), tok, n, stream));
    }
    if (tune_dataset_sets(d) > 1)
        return 0;
    int64_t rows = n < tune_dataset_rows(d) ? n : tune_dataset_rows(d);
    int status = 0;
    if (tune_dataset_about(d))
        fprintf(stream, "format: %s\n", tune_dataset_about(d));
    if (tune_tokenizer_warning(tok)) {
        fputs("warning: ", stream);
        tune_print_line_of(stream, tune_tokenizer_warning(tok));
        fputc('\n', stream);
    }
    if (tune_dataset_warning(d)) {
        fputs("warning: ", stream);
        tune_print_line_of(stream, tune_dataset_warning(d)); /* it quotes the template */
        fputc('\n', stream);
    }
    for (int64_t i = 0; status == 0 && i < rows; i++)
        status = show_row(d, tok, i, &x, stream);
    tune_example_free(&x);
    TRY(status);
    if (fflush(stream) == 0 && !ferror(stream))
        return 0;
    return tune_error_set("cannot write the shown rows");
}
