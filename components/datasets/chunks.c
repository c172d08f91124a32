/* chunks.c - count the pieces of long texts, and read one. */
#include "datasets/chunks.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/try.h"
#include "tokenizers/tokenizer.h"

#define TOKENS_KEPT ((int64_t)16 << 20)

static size_t unit_bytes(const struct tune_chunks *c)
{
    size_t least = (size_t)64 << 10, bytes = (size_t)c->max_length * 64;
    return bytes > least ? bytes : least;
}

/* Where the unit ends that begins at text + begin: behind a line, else before a space, else between
 * characters. */
static size_t unit_end(const struct tune_chunks *c, const char *text, size_t size, size_t begin)
{
    size_t most = unit_bytes(c), least = begin + most / 2, end = begin + most;
    if (size - begin <= most)
        return size;
    for (size_t i = end; i > least; i--)
        if (text[i - 1] == '\n')
            return i;
    for (size_t i = end; i > least; i--)
        if (text[i] == ' ')
            return i;
    while (end > begin + 4 && ((unsigned char)text[end] & 0xc0) == 0x80)
        end--;
    return end;
}

static bool in_file(const struct tune_chunks *c)
{
    return c->text->rows->format == TUNE_DATASET_TEXT;
}

/* The text of a unit; *size, if the unit's is 0, becomes its size. */
static int unit_text(const struct tune_chunks *c, struct tune_chunk_unit *u, struct tune_text_row *s, struct tune_text *text)
{
    struct tune_file_row row = tune_rows_get(c->text->rows, u->row);
    if (in_file(c)) {
        size_t end = u->size ? u->begin + u->size : unit_end(c, row.text, row.size, u->begin);
        struct tune_file_row part = {row.text + u->begin, end - u->begin, u->line};
        u->last = end == row.size;
        u->size = part.size;
        return tune_text_rows_get(c->text, &part, s, text);
    }
    TRY(tune_text_rows_get(c->text, &row, s, text));
    size_t end = u->size ? u->begin + u->size : unit_end(c, text->data, text->size, u->begin);
    u->last = end == text->size;
    u->size = end - u->begin;
    *text = (struct tune_text){text->data + u->begin, u->size};
    return 0;
}

/* Tokenize a whole unit into x. The tokenizer's template adds tokens before the first unit of a text
 * and behind the last one. */
static int encode(const struct tune_chunks *c, struct tune_chunk_unit *u, struct tune_example *x)
{
    struct tune_encoding e = {0};
    struct tune_text_row s = {0};
    struct tune_text text;
    int status = unit_text(c, u, &s, &text);
    if (status == 0 && tune_tokenizer_encode(c->tok, text.data, text.size, TUNE_ADD_SPECIAL, &e) < 0)
        status = tune_error_prefix("%s:%lld: ", c->text->rows->path, (long long)u->line);
    tune_text_row_free(&s);
    int64_t first = 0, end = status == 0 ? e.count : 0;
    if (end >= 2 && e.starts[0] < 0 && e.starts[1] == 0 && e.ids[0] == e.ids[1])
        first = 1; /* the text already begins with the beginning-of-sequence token */
    while (u->begin > 0 && first < end && e.starts[first] < 0)
        first++;
    while (!u->last && first < end && e.starts[end - 1] < 0)
        end--;
    x->count = end - first;
    if (status == 0 && (status = tune_example_reserve(x, x->count + 1)) == 0) {
        for (int64_t i = first; i < end; i++)
            x->ids[i - first] = e.ids[i];
        if (u->last && c->append_id >= 0 && x->count > 0 && x->ids[x->count - 1] != c->append_id)
            x->ids[x->count++] = c->append_id;
    }
    tune_encoding_free(&e);
    return status;
}

/* Keep the tokens of all units, until there are too many. */
static int keep(struct tune_chunks *c, const struct tune_example *x)
{
    bool kept = c->ids || c->token_count == 0;
    c->token_count += x->count;
    if (!kept)
        return 0;
    if (c->token_count > TOKENS_KEPT) {
        free(c->ids);
        c->ids = NULL;
        c->room = 0;
        return 0;
    }
    TRY(tune_array_reserve(&c->ids, &c->room, (size_t)c->token_count, sizeof *c->ids, "the tokens of long texts"));
    if (x->count > 0)
        memcpy(c->ids + c->token_count - x->count, x->ids, (size_t)x->count * sizeof *c->ids);
    return 0;
}

/* Pieces of a unit of count tokens. */
static int64_t pieces(const struct tune_chunks *c, int64_t count)
{
    int64_t each = c->max_length - 1;
    return count <= c->max_length ? 1 : (count - 1 + each - 1) / each;
}

/* Hash the pieces of a unit. x: its tokens; none of a unit that cannot be read. */
static int hash_pieces(struct tune_chunks *c, const struct tune_example *x, int64_t count)
{
    TRY(tune_array_reserve(&c->hashes, &c->hash_room, (size_t)(c->count + count), sizeof *c->hashes, "the pieces of long texts"));
    for (int64_t i = 0; i < count; i++) {
        int64_t from = i * (c->max_length - 1), size = x->count - from < c->max_length ? x->count - from : c->max_length;
        const void *ids = size > 0 ? (const void *)(x->ids + from) : "";
        c->hashes[c->count + i] = tune_hash64(ids, (size_t)size * sizeof *x->ids, 0);
    }
    return 0;
}

static int add_unit(struct tune_chunks *c, struct tune_chunk_unit *u, struct tune_example *x)
{
    u->first = c->count;
    u->token = c->token_count;
    TRY(keep(c, x));
    if (!tune_array_fit(&c->units, (size_t)c->unit_count, sizeof *c->units))
        return tune_error_no_memory("the pieces of %s", c->text->rows->path);
    c->units[c->unit_count++] = *u;
    TRY(hash_pieces(c, x, pieces(c, x->count)));
    c->count += pieces(c, x->count);
    return 0;
}

static int64_t lines_of(const struct tune_chunks *c, const struct tune_chunk_unit *u)
{
    int64_t lines = 0;
    const char *text = tune_rows_get(c->text->rows, u->row).text + u->begin;
    for (size_t i = 0; in_file(c) && i < u->size; i++)
        lines += text[i] == '\n';
    return lines;
}

/* Find the units of a row. */
static int add_row(struct tune_chunks *c, int64_t row, bool skip_bad, struct tune_example *x)
{
    struct tune_chunk_unit u = {.row = row, .line = tune_rows_get(c->text->rows, row).line};
    do {
        u.size = 0;
        int status = encode(c, &u, x);
        if (status < 0 && !(skip_bad && tune_error_kind() != TUNE_ERROR_CANNOT && tune_rows_uncut(c->text->rows) == 0))
            return -1;
        if (status < 0) {
            tune_error_clear(); /* whoever reads the piece gets the error again */
            x->count = 0;
            u.last = u.last || u.size == 0;
        }
        u.bad = status < 0;
        TRY(add_unit(c, &u, x));
        if (c->unit_count % 64 == 0)
            tune_rows_release(c->text->rows);
        u.line += lines_of(c, &u);
        u.begin += u.size;
    } while (!u.last);
    return 0;
}

int tune_chunks_open(struct tune_chunks *c, bool skip_bad)
{
    struct tune_example x = {0};
    int status = 0;
    for (int64_t row = 0; row < c->text->rows->count && status == 0; row++)
        status = add_row(c, row, skip_bad, &x);
    tune_example_free(&x);
    return status;
}

const struct tune_chunk_unit *tune_chunks_unit(const struct tune_chunks *c, int64_t piece)
{
    int64_t low = 0, high = c->unit_count;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        *(c->units[middle].first <= piece ? &low : &high) = middle;
    }
    return &c->units[low];
}

int tune_chunks_read(const struct tune_chunks *c, int64_t piece, struct tune_example *x)
{
    const struct tune_chunk_unit *u = tune_chunks_unit(c, piece);
    int64_t from = (piece - u->first) * (c->max_length - 1), all;
    struct tune_chunk_unit copy = *u;
    bool kept = c->ids && !u->bad;
    if (kept) {
        all = (u + 1 < c->units + c->unit_count ? u[1].token : c->token_count) - u->token;
    } else {
        TRY(encode(c, &copy, x));
        all = x->count;
    }
    x->count = all - from < c->max_length ? all - from : c->max_length;
    TRY(tune_example_reserve(x, x->count));
    if (x->count > 0)
        memmove(x->ids, kept ? c->ids + u->token + from : x->ids + from, (size_t)x->count * sizeof *x->ids);
    for (int64_t i = 0; i < x->count; i++)
        x->trained[i] = i > 0;
    x->full_count = x->longest = x->count;
    return 0;
}

void tune_chunks_close(struct tune_chunks *c)
{
    free(c->units);
    free(c->ids);
    free(c->hashes);
    memset(c, 0, sizeof *c);
}
