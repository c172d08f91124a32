/* tokenizer.c - open a tokenizer, encode a text through the stages, and look up tokens. */
#include "tokenizers/tokenizer.h"
#include "core/array.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "files/folder.h"
#include "core/print.h"
#include "tokenizers/parts.h"

enum { FILE_LIMIT = 128 << 20 }; /* bytes; the largest known have 40 MB */

void tune_encoding_free(struct tune_encoding *e)
{
    free(e->ids);
    free(e->starts);
    free(e->ends);
    *e = (struct tune_encoding){0};
}

int tune_encoding_reserve(struct tune_encoding *e, int64_t more)
{
    size_t need = (size_t)(e->count + more), room[3];
    for (int i = 0; i < 3; i++)
        room[i] = (size_t)e->room;
    TRY(tune_array_reserve(&e->ids, &room[0], need, sizeof *e->ids, "token ids"));
    TRY(tune_array_reserve(&e->starts, &room[1], need, sizeof *e->starts, "token ids"));
    TRY(tune_array_reserve(&e->ends, &room[2], need, sizeof *e->ends, "token ids"));
    e->room = (int64_t)room[2];
    return 0;
}

struct tune_tokenizer *tune_tokenizer_parse(const char *name, const char *text, size_t size)
{
    struct tune_tokenizer *t = calloc(1, sizeof *t);
    if (!t || !(t->path = strdup(name)) || !(t->class = tune_unicode_classes()) ||
        !(t->words = calloc(TUNE_WORDS, sizeof *t->words))) {
        tune_error_no_memory("a tokenizer");
        goto fail;
    }
    t->unk = -1;
    if (getrandom(&t->seed, sizeof t->seed, GRND_NONBLOCK) != sizeof t->seed)
        t->seed = (uint64_t)(uintptr_t)t; /* weaker, but not wrong */
    if (tune_load(t, text, size) < 0)
        goto fail;
    return t;
fail:
    tune_tokenizer_free(t);
    return NULL;
}

struct tune_tokenizer *tune_tokenizer_open_with(const char *path, const char *more)
{
    char file[TUNE_PATH_MAX], *text = NULL, *changed = NULL;
    size_t size, changed_size;
    bool folder = tune_file_is_folder(path);
    if (tune_path(file, folder ? "%s/tokenizer.json" : "%s", path) < 0 ||
        (folder ? tune_folder_read(path, "tokenizer.json", FILE_LIMIT, &text, &size)
                : tune_file_read(file, FILE_LIMIT, &text, &size)) < 0)
        return NULL;
    struct tune_tokenizer *t = tune_tokenizer_parse(file, text, size);
    if (t && more)
        t = tune_tokenizer_with(t, text, size, more, &changed, &changed_size);
    free(changed);
    free(text);
    return t;
}

struct tune_tokenizer *tune_tokenizer_open(const char *path)
{
    return tune_tokenizer_open_with(path, NULL);
}

const char *tune_tokenizer_more(const struct tune_tokenizer *t)
{
    return t->more;
}

const char *tune_tokenizer_warning(const struct tune_tokenizer *t)
{
    return *t->warning ? t->warning : NULL;
}

void tune_tokenizer_free(struct tune_tokenizer *t)
{
    if (!t)
        return;
    tune_added_free(t);
    free(t->added_of);
    free(t->spellings);
    free(t->vocab);
    free(t->slots);
    free(t->pairs);
    free(t->joins);
    free(t->class);
    free(t->words);
    free(t->path);
    free(t->more);
    free(t);
}

/* Encode text between raw added tokens: normalize, take out normalized added tokens, split and
 * merge the rest. */
static int between(struct tune_work *w, const char *text, size_t size, int64_t base)
{
    struct tune_piece piece;
    TRY(tune_normalize(w, text, size, base, &piece));
    struct tune_added_scan s = {.trie = &w->t->normal, .text = piece.text, .piece = &piece, .size = piece.size};
    do {
        tune_added_next(w, &s);
        TRY(tune_pretokenize(w, &piece, s.gap, s.gap_end));
        if (s.token >= 0) {
            TRY(tune_encoding_reserve(w->e, 1));
            tune_encoding_put(w->e, w->t->added[s.token].id, &piece, s.begin, s.end);
        }
    } while (s.token >= 0);
    return 0;
}

static int put_template(struct tune_encoding *e, const int32_t *ids, int count)
{
    TRY(tune_encoding_reserve(e, count));
    for (int i = 0; i < count; i++) {
        e->ids[e->count] = ids[i];
        e->starts[e->count] = e->ends[e->count] = -1;
        e->count++;
    }
    return 0;
}

static int encode(struct tune_work *w, const char *text, size_t size)
{
    struct tune_piece whole = {.text = text, .size = size};
    struct tune_added_scan s = {.trie = &w->t->raw, .text = text, .piece = &whole, .size = size};
    if (w->options & TUNE_ADD_SPECIAL)
        TRY(put_template(w->e, w->t->before, w->t->befores));
    do {
        tune_added_next(w, &s);
        if (s.gap < s.gap_end)
            TRY(between(w, text + s.gap, s.gap_end - s.gap, (int64_t)s.gap));
        if (s.token >= 0) {
            TRY(tune_encoding_reserve(w->e, 1));
            tune_encoding_put(w->e, w->t->added[s.token].id, &whole, s.begin, s.end);
        }
    } while (s.token >= 0);
    if (w->options & TUNE_ADD_SPECIAL)
        TRY(put_template(w->e, w->t->after, w->t->afters));
    return 0;
}

int tune_tokenizer_limit(struct tune_tokenizer *t, int32_t rows)
{
    char names[200] = "";
    int32_t beyond = 0;
    if (t->limit)
        t->warning[t->own_warning] = 0;
    t->limit = 0;
    for (int32_t id = rows; rows > 0 && id < t->size; id++) {
        if (!tune_tokenizer_token(t, id))
            continue;
        if (t->added_of[id] < 0)
            return tune_error_set("%s: the tokenizer has ids up to %d, config.json a \"vocab_size\" of %d; they do not belong together",
                                  t->path, (int)t->size - 1, (int)rows);
        if (beyond++ < 3)
            tune_append_item(names, sizeof names, "%.60s", tune_tokenizer_token(t, id));
    }
    t->limit = beyond ? rows : 0;
    t->own_warning = strlen(t->warning);
    if (beyond)
        tune_append(t->warning, sizeof t->warning, "%sthe model's vocabulary has %d rows, and none for %s%s: a row of data with one of them is "
                 "an error", *t->warning ? "; " : "", (int)rows, names, beyond > 3 ? " and others" : "");
    return 0;
}

/* Check that the model has a row for each token. */
static int within_limit(const struct tune_tokenizer *t, const struct tune_encoding *e)
{
    for (int64_t i = 0; i < e->count && t->limit > 0; i++)
        if (e->ids[i] >= t->limit)
            return tune_error_set("the text has the token \"%.60s\" (id %d), and the model's vocabulary has %d rows; take it out of the "
                                  "text, or give the model rows for it", tune_tokenizer_token(t, e->ids[i]), (int)e->ids[i], (int)t->limit);
    return 0;
}

int tune_tokenizer_encode(struct tune_tokenizer *t, const char *text, size_t size, int options, struct tune_encoding *e)
{
    return tune_tokenizer_encode_text(t, text, size, NULL, options, e);
}

int tune_tokenizer_encode_text(struct tune_tokenizer *t, const char *text, size_t size, const uint8_t *data, int options,
                               struct tune_encoding *e)
{
    size_t bad;
    e->count = 0;
    if (size > TUNE_MAX_TEXT)
        return tune_error_set("tokenizer: a text of %zu bytes; expected at most %d at once", size, TUNE_MAX_TEXT);
    if (!tune_utf8_valid(text, size, &bad))
        return tune_error_set("tokenizer: the text is not UTF-8: byte 0x%02x at offset %zu", (unsigned char)text[bad], bad);
    struct tune_work w = {.t = t, .word = tune_bpe, .e = e, .options = options, .data = data};
    int failed = encode(&w, text, size);
    tune_buffer_free(&w.normal);
    tune_buffer_free(&w.marked);
    free(w.ids);
    free(w.sizes);
    free(w.next);
    free(w.previous);
    free(w.heap);
    return failed < 0 ? -1 : within_limit(t, e);
}

int32_t tune_tokenizer_size(const struct tune_tokenizer *t)
{
    return t->size;
}

int32_t tune_tokenizer_id(const struct tune_tokenizer *t, const char *token)
{
    size_t size = strlen(token);
    int32_t id = tune_vocab_find(t, token, size);
    for (int i = 0; id < 0 && i < t->added_count; i++)
        if (t->added[i].content.size == size && memcmp(t->added[i].content.data, token, size) == 0)
            id = t->added[i].id;
    return id;
}

const char *tune_tokenizer_token(const struct tune_tokenizer *t, int32_t id)
{
    if (id < 0 || id >= t->size)
        return NULL;
    return t->added_of[id] >= 0 ? t->added[t->added_of[id]].content.data : t->vocab[id].data;
}

bool tune_tokenizer_is_added(const struct tune_tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->size && (t->added_of[id] >= 0 || !t->vocab[id].data);
}

const char *tune_tokenizer_pipeline(const struct tune_tokenizer *t)
{
    return t->pipeline;
}
