/* train.c - train byte-level BPE on a text, in the smollm pipeline.
 *
 * Each distinct word is a row of symbols with its count in the text. Each pair of neighbours has a
 * count and the words that contain it. The most frequent pair becomes a token; of equals, the one
 * with the lowest ids. The words that contain it are rewritten and the counts updated. Heap entries
 * may be stale and are corrected when they reach the top. The cost is O(n log n) in the size of the
 * distinct words (Sennrich et al. 2016, with the usual index).
 *
 * Small texts must also give large vocabularies. When no pair occurs twice, the remaining merges
 * are a token and a byte, in order. They are valid but useless. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "files/file.h"
#include "tokenizers/parts.h"

/* bytes; longer runs are split for counting, longer tokens are not learned */
enum { LONGEST_WORD = 256, LONGEST_TOKEN = 64 };

struct token {
    uint32_t at, size; /* bytes in arena */
    int32_t left, right;
};

struct row {
    uint32_t at, size; /* symbols */
    int64_t count;
};

struct pair {
    uint64_t key; /* left << 32 | right; UINT64_MAX: unused */
    int64_t count;
    uint32_t *rows;
    uint32_t held, room;
};

struct entry {
    int64_t count;
    uint64_t key;
};

struct trainer {
    struct tune_work work; /* must be first: the splitter passes it back */
    const char *const *special;
    int32_t specials, size, merges, want;
    char *arena;
    size_t used, arena_room;
    struct token *tokens;  /* [want] */
    int32_t *index;        /* bytes -> id */
    uint64_t index_mask;
    struct {
        int32_t left, right;
    } *merge;              /* [room] */
    size_t merge_room;
    struct row *rows;
    size_t row_count, row_room;
    uint32_t *row_index;
    uint64_t row_mask;
    int32_t *symbols;
    size_t symbol_count, symbol_room;
    struct pair *pairs;
    uint64_t pair_count, pair_mask;
    struct entry *heap;
    size_t held, heap_room;
};

static const char training[] = "training a tokenizer";

static int32_t find_token(const struct trainer *r, const char *bytes, size_t size, uint64_t *slot)
{
    for (uint64_t i = tune_hash64(bytes, size, 0);; i++) {
        int32_t id = r->index[*slot = i & r->index_mask];
        if (id < 0 || (r->tokens[id].size == size && memcmp(r->arena + r->tokens[id].at, bytes, size) == 0))
            return id;
    }
}

static int add_token(struct trainer *r, const char *bytes, size_t size)
{
    uint64_t slot;
    TRY(tune_array_reserve(&r->arena, &r->arena_room, r->used + size, 1, training));
    find_token(r, bytes, size, &slot);
    r->tokens[r->size] = (struct token){(uint32_t)r->used, (uint32_t)size, -1, -1};
    memcpy(r->arena + r->used, bytes, size);
    r->used += size;
    r->index[slot] = r->size++;
    return 0;
}

/* Add the special tokens, which get the first ids. They are stored as the bytes that their
 * characters stand for, so that no merge can spell one. */
static int add_specials(struct trainer *r)
{
    uint64_t slot;
    for (int i = 0; i < r->specials; i++) {
        const char *s = r->special[i];
        size_t n = strlen(s), raw = 0;
        if (n == 0 || n > 255 || !tune_utf8_valid(s, n, NULL))
            return tune_error_set("tokenizer training: special token %d must be 1 to 255 bytes of UTF-8", i);
        char bytes[256];
        const char *p = s;
        while (*p) {
            int byte = tune_char_byte(tune_utf8_next(&p));
            if (byte < 0)
                break;
            bytes[raw++] = (char)byte;
        }
        bool spelled = *p == 0; /* otherwise no merge can spell it, and its own bytes identify it */
        if ((spelled && raw == 1) || find_token(r, spelled ? bytes : s, spelled ? raw : n, &slot) >= 0)
            return tune_error_set("tokenizer training: special token \"%s\" stands for a byte, or is given twice", s);
        TRY(add_token(r, spelled ? bytes : s, spelled ? raw : n));
    }
    return 0;
}

static struct pair *find_pair(const struct trainer *r, uint64_t key)
{
    uint64_t i = tune_mix(key, 0) & r->pair_mask;
    while (r->pairs[i].key != UINT64_MAX && r->pairs[i].key != key)
        i = (i + 1) & r->pair_mask;
    return &r->pairs[i];
}

static int more_pairs(struct trainer *r)
{
    struct pair *old = r->pairs;
    uint64_t old_room = old ? r->pair_mask + 1 : 0, room = old ? old_room * 2 : 1 << 16;
    struct pair *pairs = tune_zeroed(room, sizeof *pairs, training);
    if (!pairs)
        return -1;
    for (uint64_t i = 0; i < room; i++)
        pairs[i].key = UINT64_MAX;
    r->pairs = pairs;
    r->pair_mask = room - 1;
    for (uint64_t i = 0; i < old_room; i++)
        if (old[i].key != UINT64_MAX)
            *find_pair(r, old[i].key) = old[i];
    free(old);
    return 0;
}

/* Change the pair's count by `by` for a word. A pair that gains also records the word. */
static int count_pair(struct trainer *r, int32_t left, int32_t right, int64_t by, uint32_t row)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    if (!r->pairs || r->pair_count * 2 > r->pair_mask)
        TRY(more_pairs(r));
    struct pair *p = find_pair(r, key);
    if (p->key != key) {
        p->key = key;
        r->pair_count++;
    }
    p->count += by;
    if (by > 0 && (p->held == 0 || p->rows[p->held - 1] != row)) {
        if (p->held == p->room) {
            uint32_t room = p->room ? p->room * 2 : 2; /* most pairs are rare, so arrays begin small */
            uint32_t *rows = realloc(p->rows, room * sizeof *rows);
            if (!rows)
                return tune_error_no_memory(training);
            p->rows = rows;
            p->room = room;
        }
        p->rows[p->held++] = row;
    }
    return 0;
}

static bool before(struct entry a, struct entry b)
{
    return a.count != b.count ? a.count > b.count : a.key < b.key;
}

static int push(struct trainer *r, uint64_t key, int64_t count)
{
    TRY(tune_array_reserve(&r->heap, &r->heap_room, r->held + 1, sizeof *r->heap, training));
    struct entry x = {count, key};
    size_t i = r->held++;
    for (; i > 0 && before(x, r->heap[(i - 1) / 2]); i = (i - 1) / 2)
        r->heap[i] = r->heap[(i - 1) / 2];
    r->heap[i] = x;
    return 0;
}

static struct entry pop(struct trainer *r)
{
    struct entry top = r->heap[0], x = r->heap[--r->held];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < r->held; i = child) {
        child += child + 1 < r->held && before(r->heap[child + 1], r->heap[child]);
        if (!before(r->heap[child], x))
            break;
        r->heap[i] = r->heap[child];
    }
    r->heap[i] = x;
    return top;
}

static int more_rows(struct trainer *r)
{
    uint64_t room = r->row_index ? (r->row_mask + 1) * 2 : 1 << 14;
    uint32_t *index = realloc(r->row_index, room * sizeof *index);
    if (!index)
        return tune_error_no_memory(training);
    memset(index, 0xFF, room * sizeof *index);
    r->row_index = index;
    r->row_mask = room - 1;
    for (uint32_t k = 0; k < r->row_count; k++) {
        uint64_t i = tune_hash64(r->symbols + r->rows[k].at, r->rows[k].size * sizeof *r->symbols, 0) & r->row_mask;
        while (index[i] != UINT32_MAX)
            i = (i + 1) & r->row_mask;
        index[i] = k;
    }
    return 0;
}

static int count_word(struct trainer *r, const char *text, size_t size)
{
    TRY(tune_array_reserve(&r->symbols, &r->symbol_room, r->symbol_count + size, sizeof *r->symbols, training));
    if (!r->row_index || r->row_count * 2 > r->row_mask)
        TRY(more_rows(r));
    int32_t *s = r->symbols + r->symbol_count;
    for (size_t i = 0; i < size; i++)
        s[i] = r->work.t->symbols[(unsigned char)text[i]];
    uint64_t i = tune_hash64(s, size * sizeof *s, 0) & r->row_mask;
    for (; r->row_index[i] != UINT32_MAX; i = (i + 1) & r->row_mask) {
        struct row *row = &r->rows[r->row_index[i]];
        if (row->size == size && memcmp(r->symbols + row->at, s, size * sizeof *s) == 0) {
            row->count++;
            return 0;
        }
    }
    TRY(tune_array_reserve(&r->rows, &r->row_room, r->row_count + 1, sizeof *r->rows, training));
    r->row_index[i] = (uint32_t)r->row_count;
    r->rows[r->row_count++] = (struct row){(uint32_t)r->symbol_count, (uint32_t)size, 1};
    r->symbol_count += size;
    return 0;
}

static int word(struct tune_work *w, const struct tune_piece *piece, size_t a, size_t b, bool whole)
{
    (void)whole;
    for (; a < b; a += LONGEST_WORD)
        TRY(count_word((struct trainer *)w, piece->text + a, b - a < LONGEST_WORD ? b - a : LONGEST_WORD));
    return 0;
}

static int count_row(struct trainer *r, uint32_t k, int64_t by)
{
    const struct row *row = &r->rows[k];
    const int32_t *s = r->symbols + row->at;
    for (uint32_t i = 0; i + 1 < row->size; i++)
        TRY(count_pair(r, s[i], s[i + 1], by, k));
    return 0;
}

/* Replace left right by id in a row. New pairs go to the heap. */
static int rewrite(struct trainer *r, uint32_t k, int32_t left, int32_t right, int32_t id)
{
    struct row *row = &r->rows[k];
    int32_t *s = r->symbols + row->at;
    uint32_t n = 0, i = 0;
    while (i + 1 < row->size && !(s[i] == left && s[i + 1] == right))
        i++;
    if (i + 1 >= row->size)
        return 0; /* it was already rewritten */
    TRY(count_row(r, k, -row->count));
    for (i = 0; i < row->size; n++)
        if (i + 1 < row->size && s[i] == left && s[i + 1] == right) {
            s[n] = id;
            i += 2;
        } else {
            s[n] = s[i++];
        }
    row->size = n;
    TRY(count_row(r, k, row->count));
    for (i = 0; i + 1 < n; i++)
        if (s[i] == id || s[i + 1] == id) {
            uint64_t key = (uint64_t)(uint32_t)s[i] << 32 | (uint32_t)s[i + 1];
            TRY(push(r, key, find_pair(r, key)->count));
        }
    return 0;
}

static int add_merge(struct trainer *r, int32_t left, int32_t right)
{
    TRY(tune_array_reserve(&r->merge, &r->merge_room, (size_t)r->merges + 1, sizeof *r->merge, training));
    r->merge[r->merges].left = left;
    r->merge[r->merges++].right = right;
    return 0;
}

/* The id of left and right joined, old or new. -1: it would spell a special token or be too long;
 * -2: error. */
static int32_t join(struct trainer *r, int32_t left, int32_t right)
{
    char bytes[2 * LONGEST_TOKEN];
    struct token a = r->tokens[left], b = r->tokens[right];
    uint64_t slot;
    if (a.size + b.size > LONGEST_TOKEN)
        return -1;
    memcpy(bytes, r->arena + a.at, a.size);
    memcpy(bytes + a.size, r->arena + b.at, b.size);
    int32_t id = find_token(r, bytes, a.size + b.size, &slot);
    if (id >= 0)
        return id < r->specials ? -1 : id;
    return add_token(r, bytes, a.size + b.size) < 0 ? -2 : r->size - 1;
}

static int learn(struct trainer *r)
{
    for (uint32_t k = 0; k < r->row_count; k++)
        TRY(count_row(r, k, r->rows[k].count));
    for (uint64_t i = 0; r->pairs && i <= r->pair_mask; i++)
        if (r->pairs[i].key != UINT64_MAX)
            TRY(push(r, r->pairs[i].key, r->pairs[i].count));
    while (r->size < r->want && r->held > 0) {
        struct entry top = pop(r);
        struct pair *p = find_pair(r, top.key);
        if (p->count < 2)
            continue;
        if (p->count != top.count) {
            if (p->count < top.count) /* a higher count has its own entry */
                TRY(push(r, p->key, p->count));
            continue;
        }
        int32_t left = (int32_t)(top.key >> 32), right = (int32_t)(uint32_t)top.key, id = join(r, left, right);
        if (id == -2)
            return -1;
        /* take it over, because counting may move the table */
        uint32_t *rows = p->rows, held = p->held;
        p->rows = NULL;
        p->held = p->room = 0;
        int failed = id < 0 ? 0 : add_merge(r, left, right);
        for (uint32_t i = 0; i < held && id >= 0 && !failed; i++)
            failed = rewrite(r, rows[i], left, right, id);
        if (id < 0)
            p->count = 0;
        free(rows);
        TRY(failed);
    }
    return 0;
}

/* Add tokens that join a token and a byte, in order, until there are enough. */
static int fill(struct trainer *r)
{
    for (int32_t left = r->specials; r->size < r->want; left++)
        for (int32_t byte = r->specials; byte < r->specials + 256 && r->size < r->want; byte++) {
            int32_t size = r->size, id = join(r, left, byte);
            if (id == -2)
                return -1;
            if (id >= size)
                TRY(add_merge(r, left, byte));
        }
    return 0;
}

static void put_text(FILE *f, const char *s)
{
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            fprintf(f, "\\%c", *s);
        else if ((unsigned char)*s < 0x20)
            fprintf(f, "\\u%04x", (unsigned)*s);
        else
            putc(*s, f);
}

static void put_token(const struct trainer *r, FILE *f, int32_t id)
{
    struct token k = r->tokens[id];
    if (id < r->specials) {
        put_text(f, r->special[id]);
        return;
    }
    for (uint32_t i = 0; i < k.size; i++) {
        char text[5];
        text[tune_utf8_put(text, tune_byte_char((unsigned char)r->arena[k.at + i]))] = 0;
        put_text(f, text);
    }
}

static int write_file(const struct trainer *r, const char *path)
{
    struct tune_file_writer w;
    TRY(tune_file_begin(&w, path));
    FILE *f = w.file;
    fputs("{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [", f);
    for (int i = 0; i < r->specials; i++) {
        fprintf(f, "%s\n    {\"id\": %d, \"content\": \"", i ? "," : "", i);
        put_text(f, r->special[i]);
        fputs("\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"special\": true}", f);
    }
    fputs("\n  ],\n  \"normalizer\": null,\n  \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [\n"
          "    {\"type\": \"Digits\", \"individual_digits\": true},\n"
          "    {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": true}\n  ]},\n"
          "  \"post_processor\": null,\n"
          "  \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": true, \"use_regex\": true},\n"
          "  \"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null, \"continuing_subword_prefix\": null,\n"
          "    \"end_of_word_suffix\": null, \"fuse_unk\": false, \"byte_fallback\": false, \"ignore_merges\": false,\n"
          "    \"vocab\": {", f);
    for (int32_t id = 0; id < r->size; id++) {
        fputs(id ? ",\n      \"" : "\n      \"", f);
        put_token(r, f, id);
        fprintf(f, "\": %d", (int)id);
    }
    fputs("\n    },\n    \"merges\": [", f);
    for (int32_t i = 0; i < r->merges; i++) {
        fputs(i ? ",\n      \"" : "\n      \"", f);
        put_token(r, f, r->merge[i].left);
        putc(' ', f);
        put_token(r, f, r->merge[i].right);
        putc('"', f);
    }
    fputs("\n    ]\n  }\n}\n", f);
    if (tune_file_commit(&w) < 0) {
        tune_file_cancel(&w);
        return -1;
    }
    return 0;
}

static int train(struct trainer *r, const char *text, size_t size)
{
    struct tune_tokenizer *t = r->work.t;
    uint64_t room = 1024;
    while (room < (uint64_t)r->want * 2)
        room *= 2;
    r->tokens = tune_zeroed((size_t)r->want, sizeof *r->tokens, training);
    r->index = tune_zeroed(room, sizeof *r->index, training);
    t->class = tune_unicode_classes();
    if (!r->tokens || !r->index || !t->class)
        return tune_error_no_memory(training);
    memset(r->index, 0xFF, room * sizeof *r->index);
    r->index_mask = room - 1;
    t->pre = TUNE_PRE_DIGITS_GPT2;
    TRY(add_specials(r));
    /* the bytes, in the order of the characters that stand for them */
    for (uint32_t c = 0; c <= 0x143; c++) {
        int byte = tune_char_byte(c);
        if (byte >= 0) {
            t->symbols[byte] = r->size;
            TRY(add_token(r, &(char){(char)byte}, 1));
        }
    }
    struct tune_piece piece = {.text = text, .size = size};
    TRY(tune_pretokenize(&r->work, &piece, 0, size));
    TRY(learn(r));
    return fill(r);
}

int tune_tokenizer_train(const char *path, const char *text, size_t size, int32_t vocabulary,
                         const char *const *special, int specials)
{
    size_t bad;
    if (specials < 0 || vocabulary < specials + 256 || vocabulary >= TUNE_MAX_ID)
        return tune_error_set(
            "tokenizer training: a vocabulary of %d; expected from %d (the special tokens and 256 bytes) to %d",
            (int)vocabulary, specials + 256, TUNE_MAX_ID - 1);
    if (size > INT32_MAX / 4 || !tune_utf8_valid(text, size, &bad))
        return tune_error_set("tokenizer training: the text must be UTF-8 of at most %d bytes", INT32_MAX / 4);
    struct tune_tokenizer *t = tune_zeroed(1, sizeof *t, training);
    if (!t)
        return -1;
    struct trainer r = {.work = {.t = t, .word = word}, .special = special, .specials = specials, .want = vocabulary};
    int failed = train(&r, text, size);
    if (!failed)
        failed = write_file(&r, path);
    for (uint64_t i = 0; r.pairs && i <= r.pair_mask; i++)
        free(r.pairs[i].rows);
    void *all[] = {r.arena, r.tokens, r.index, r.merge, r.rows, r.row_index, r.symbols, r.pairs, r.heap};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    tune_tokenizer_free(t);
    return failed;
}
