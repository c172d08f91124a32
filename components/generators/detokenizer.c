/* detokenizer.c - ids to text, piece by piece, cut before a stop text.
 *
 * Ids wait in a window, which is decoded as a whole. Its first id is context: decoders treat the
 * first token of a text in their own way. `taken` bytes of the window's text are given already. A
 * new window begins with the newest id, as soon as nothing is open in older ones. */
#include "generators/detokenizer.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/try.h"
#include "files/json.h"
#include "tokenizers/tokenizer.h"

struct tune_detokenizer {
    struct tune_tokenizer *t;
    char *stop[TUNE_STOPS];
    size_t stop_size[TUNE_STOPS];
    int stops;
    int32_t *ids;      /* the window */
    size_t count, room;
    size_t taken;      /* bytes of the window's text that are in text */
    char *text;        /* settled text */
    size_t size, text_room;
    size_t given;      /* bytes of it that were given as pieces */
    bool stopped;      /* a stop text was met; text ends before it */
};

struct tune_detokenizer *tune_detokenizer_new(struct tune_tokenizer *t, const char *const *stops,
                                              int count)
{
    if (count < 0 || count > TUNE_STOPS) {
        tune_error_usage("%d stop texts; expected at most %d", count, TUNE_STOPS);
        return NULL;
    }
    for (int i = 0; i < count; i++) {
        size_t size = strlen(stops[i]), bad;
        if (size == 0 || size > TUNE_STOP_SIZE || !tune_utf8_valid(stops[i], size, &bad)) {
            tune_error_usage("stop text %d has %zu bytes%s; expected UTF-8 of 1 to %d bytes", i + 1,
                             size, size == 0 || size > TUNE_STOP_SIZE ? "" : " and is not UTF-8",
                             TUNE_STOP_SIZE);
            return NULL;
        }
    }
    struct tune_detokenizer *s = tune_zeroed(1, sizeof *s, "a text stream");
    if (!s)
        return NULL;
    s->t = t;
    for (; s->stops < count; s->stops++) {
        size_t size = strlen(stops[s->stops]);
        char *copy = tune_zeroed(size + 1, 1, "a stop text");
        if (!copy) {
            tune_detokenizer_free(s);
            return NULL;
        }
        s->stop[s->stops] = memcpy(copy, stops[s->stops], size);
        s->stop_size[s->stops] = size;
    }
    return s;
}

void tune_detokenizer_free(struct tune_detokenizer *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->stops; i++)
        free(s->stop[i]);
    free(s->ids);
    free(s->text);
    free(s);
}

void tune_detokenizer_reset(struct tune_detokenizer *s)
{
    s->count = s->taken = s->size = s->given = 0;
    s->stopped = false;
}

const char *tune_detokenizer_text(const struct tune_detokenizer *s, size_t *size)
{
    *size = s->given;
    return s->text ? s->text : "";
}

/* Cut before the stop text that is complete first. None is complete in the first `from` bytes. */
static void cut(struct tune_detokenizer *s, size_t from)
{
    size_t best_end = SIZE_MAX, best = 0;
    for (int i = 0; i < s->stops; i++) {
        size_t n = s->stop_size[i], begin = from >= n ? from - n + 1 : 0;
        const char *hit = memmem(s->text + begin, s->size - begin, s->stop[i], n);
        size_t at = hit ? (size_t)(hit - s->text) : 0;
        if (hit && (at + n < best_end || (at + n == best_end && at < best))) {
            best = at;
            best_end = at + n;
        }
    }
    if (best_end == SIZE_MAX)
        return;
    s->stopped = true;
    s->size = best;
}

/* How many bytes at the end of the text may become a stop text. */
static size_t held(const struct tune_detokenizer *s)
{
    size_t most = 0;
    for (int i = 0; i < s->stops; i++)
        for (size_t n = s->stop_size[i] - 1; n > most; n--)
            if (n <= s->size - s->given && memcmp(s->text + s->size - n, s->stop[i], n) == 0)
                most = n;
    return most;
}

/* Append text and give what cannot become a stop text; at the end, all. */
static int give(struct tune_detokenizer *s, const char *text, size_t size, bool end,
                const char **piece, size_t *piece_size)
{
    size_t from = s->size;
    TRY(tune_array_reserve(&s->text, &s->text_room, s->size + size + 1, 1, "the text"));
    memcpy(s->text + s->size, text, size);
    s->size += size;
    cut(s, from);
    *piece_size = s->size - s->given - (end || s->stopped ? 0 : held(s));
    *piece = *piece_size > 0 ? s->text + s->given : "";
    s->given += *piece_size;
    return s->stopped;
}

int tune_detokenizer_add(struct tune_detokenizer *s, int32_t id, const char **piece, size_t *size)
{
    char *text;
    size_t alone, alone_open, all, open;
    *piece = "";
    *size = 0;
    if (s->stopped)
        return 1;
    if (id >= tune_tokenizer_size(s->t))
        return 0; /* a model may have more rows than there are tokens; they spell nothing */
    TRY(tune_array_reserve(&s->ids, &s->room, s->count + 1, sizeof *s->ids, "ids of a text"));
    TRY(tune_tokenizer_decode_open(s->t, &id, 1, true, &text, &alone, &alone_open));
    free(text);
    s->ids[s->count] = id;
    if (alone_open == alone) { /* it settles nothing, and the window may be long */
        s->count++;
        return 0;
    }
    TRY(tune_tokenizer_decode_open(s->t, s->ids, (int64_t)s->count + 1, true, &text, &all, &open));
    int result = give(s, text + s->taken, all - open - s->taken, false, piece, size);
    free(text);
    if (result < 0)
        return -1;
    s->taken = all - open;
    s->count++;
    if (open == alone_open) { /* nothing is open in older ids */
        s->ids[0] = id;
        s->count = 1;
        s->taken = alone - alone_open;
    }
    return result;
}

int tune_detokenizer_end(struct tune_detokenizer *s, const char **piece, size_t *size)
{
    char *text;
    size_t all, open;
    *piece = "";
    *size = 0;
    if (s->stopped)
        return 1;
    TRY(tune_tokenizer_decode_open(s->t, s->ids, (int64_t)s->count, true, &text, &all, &open));
    int result = give(s, text + s->taken, all - s->taken, true, piece, size);
    free(text);
    if (result >= 0)
        s->taken = all;
    return result;
}
