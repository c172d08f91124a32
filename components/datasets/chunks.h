/* chunks.h - long texts in pieces of max_length tokens.
 *
 *     tokens   0 1 2 3 4 5 6 7 8 9          max_length 4
 *     pieces   0 1 2 3
 *                    3 4 5 6
 *                          6 7 8 9
 *
 * Neighbouring pieces share one token: one piece predicts it, and the next begins with it. So each
 * token but the first is trained once. Every text begins a new piece.
 *
 * A long text is tokenized in units of at most 64 KiB, or of 64 bytes for each token of max_length.
 * A unit ends at a line's end or between words, and the next one begins a new piece. Private to
 * datasets. */
#ifndef TUNE_DATASETS_CHUNKS_H
#define TUNE_DATASETS_CHUNKS_H

#include "datasets/text_rows.h"

struct tune_tokenizer;

/* A unit: a part of the text of one row. */
struct tune_chunk_unit {
    int64_t row, line;   /* row of the file, line of the unit's first byte */
    size_t begin, size;  /* place in the row's text; paragraphs: in the file's bytes */
    int64_t first;       /* number of its first piece */
    int64_t token;       /* place of its first token in ids */
    bool last;           /* it ends the row */
    bool bad;            /* it cannot be read */
};

struct tune_chunks {
    const struct tune_text_rows *text;
    struct tune_tokenizer *tok;
    int32_t append_id; /* token that ends a text; -1: none */
    int max_length;    /* at least 2 */
    struct tune_chunk_unit *units;
    int64_t unit_count, count; /* count: pieces */
    int32_t *ids;              /* [token_count] of all units. NULL: there are too many to keep */
    int64_t token_count;
    uint64_t *hashes;          /* [count] of the tokens of each piece */
    size_t room, hash_room;
};

/* tune_chunks_open - tokenize all rows of c->text and count their pieces. The first four members of
 * *c are set by the caller. skip_bad: a row that cannot be read becomes one piece, whose reading is
 * the error. 0, or -1 with an error.
 *
 * tune_chunks_unit - the unit of a piece.
 *
 * tune_chunks_read - the tokens of a piece, all trained but the first. Any number of threads may
 * read. -1 with an error of its row.
 *
 * tune_chunks_close - free it. A zeroed one is allowed. */
int tune_chunks_open(struct tune_chunks *c, bool skip_bad);
const struct tune_chunk_unit *tune_chunks_unit(const struct tune_chunks *c, int64_t piece);
int tune_chunks_read(const struct tune_chunks *c, int64_t piece, struct tune_example *x);
void tune_chunks_close(struct tune_chunks *c);

#endif
