/* load.c - read tokenizer.json: its parts, the model's vocabulary and merges, the added tokens.
 *
 * The parser first finds the parts. Then each part is read in the order in which it is needed,
 * whatever the file's order. The vocabulary may contain any string. */
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "files/file.h"
#include "tokenizers/parts.h"

enum { VERSION, MODEL, ADDED, NORMALIZER, PRETOKENIZER, PROCESSOR, DECODER, PARTS };
enum { MODEL_TYPE, VOCAB, MERGES, DROPOUT, UNK, PREFIX, SUFFIX, FUSE, FALLBACK, IGNORE, MODEL_PARTS };

int tune_part_take(struct tune_json *j, const char *key, struct tune_json_part *part)
{
    if (part->begin)
        return tune_json_fail(j, "the key \"%s\" stands there twice", key);
    part->begin = j->at;
    part->line = tune_json_line(j);
    TRY(tune_json_skip(j));
    part->end = j->at;
    return 0;
}

bool tune_part_absent(const struct tune_json_part *part)
{
    const char *p = part->begin;
    while (p && p < part->end && strchr(" \t\r\n", *p))
        p++;
    return !p || (part->end - p >= 4 && memcmp(p, "null", 4) == 0);
}

int tune_part_read(struct tune_tokenizer *t, const struct tune_json_part *part, tune_part_reader *read, void *to)
{
    struct tune_json j;
    tune_json_start(&j, t->path, part->begin, (size_t)(part->end - part->begin), part->line);
    int failed = read(t, &j, to);
    tune_json_free(&j);
    return failed;
}

int tune_short_text(struct tune_json *j, char *to, size_t room)
{
    struct tune_text s;
    TRY(tune_json_string(j, &s));
    if (s.size >= room || memchr(s.data, 0, s.size))
        return tune_json_fail(j, "a string of %zu bytes; expected less than %zu and no NUL", s.size, room);
    memcpy(to, s.data, s.size + 1);
    return 0;
}

/* The keys to look for, up to a NULL, and their parts. */
struct wanted {
    const char *const *keys;
    struct tune_json_part *parts;
};

/* Find the values of these keys in an object; other values are checked only. */
static int find_parts(struct tune_tokenizer *t, struct tune_json *j, void *to)
{
    const struct wanted *w = to;
    struct tune_text key;
    int got;
    (void)t;
    TRY(tune_json_object(j));
    while ((got = tune_json_key(j, &key)) == 1) {
        int k = 0;
        while (w->keys[k] && !tune_text_equal(key, w->keys[k]))
            k++;
        TRY(w->keys[k] ? tune_part_take(j, w->keys[k], &w->parts[k]) : tune_json_skip(j));
    }
    return got;
}

static int find_all_parts(struct tune_tokenizer *t, struct tune_json *j, void *to)
{
    TRY(find_parts(t, j, to));
    return tune_json_end(j);
}

static int read_bool(struct tune_tokenizer *t, struct tune_json *j, void *to)
{
    (void)t;
    return tune_json_bool(j, to);
}

static int read_number(struct tune_tokenizer *t, struct tune_json *j, void *to)
{
    (void)t;
    return tune_json_double(j, to);
}

enum { SHORT = 64 }; /* bytes of a short text and its NUL */

static int read_short(struct tune_tokenizer *t, struct tune_json *j, void *to)
{
    (void)t;
    return tune_short_text(j, to, SHORT);
}

/* Read a part if the file has it. */
static int read_some(struct tune_tokenizer *t, const struct tune_json_part *part, tune_part_reader *read, void *to)
{
    return tune_part_absent(part) ? 0 : tune_part_read(t, part, read, to);
}

static int read_vocab(struct tune_tokenizer *t, struct tune_json *j, void *to)
{
    struct tune_text key;
    int got;
    size_t used = 0, room = 0;
    (void)to;
    /* decoded strings with a NUL are never longer */
    t->spellings = tune_zeroed((size_t)(j->end - j->text) + 1, 1, "the vocabulary");
    if (!t->spellings)
        return -1;
    TRY(tune_json_object(j));
    while ((got = tune_json_key(j, &key)) == 1) {
        uint64_t id;
        TRY(tune_json_u64(j, &id));
        if (id >= TUNE_MAX_ID)
            return tune_json_fail(j, "the id %llu of \"%.60s\" is too large; expected less than %d",
                                  (unsigned long long)id, key.data, TUNE_MAX_ID);
        size_t had = room;
        TRY(tune_array_reserve(&t->vocab, &room, id + 1, sizeof *t->vocab, "the vocabulary"));
        memset(t->vocab + had, 0, (room - had) * sizeof *t->vocab);
        if (t->vocab[id].data)
            return tune_json_fail(j, "the id %d belongs to \"%.60s\" and to \"%.60s\"", (int)id, t->vocab[id].data, key.data);
        memcpy(t->spellings + used, key.data, key.size + 1);
        t->vocab[id] = (struct tune_text){t->spellings + used, key.size};
        used += key.size + 1;
        t->vocab_count++;
        if ((int32_t)id >= t->size)
            t->size = (int32_t)id + 1;
    }
    TRY(got);
    return tune_vocab_index(t);
}

static int32_t part_id(struct tune_tokenizer *t, struct tune_json *j, int64_t rank, const char *text, size_t size)
{
    int32_t id = tune_vocab_find(t, text, size);
    if (id < 0)
        return tune_json_fail(j, "merge %lld needs the token \"%.*s\", which is not in the vocabulary", (long long)rank,
                              (int)(size > 60 ? 60 : size), text);
    return id;
}

/* Read a merge: "a b" or ["a", "b"]. 1: read; 0: a "#version" line. */
static int read_merge(struct tune_tokenizer *t, struct tune_json *j, int64_t rank, int32_t *left, int32_t *right)
{
    struct tune_text s;
    if (tune_json_peek(j) == TUNE_JSON_STRING) {
        TRY(tune_json_string(j, &s));
        if (s.size >= 8 && memcmp(s.data, "#version", 8) == 0)
            return 0;
        const char *space = memchr(s.data, ' ', s.size);
        if (!space || memchr(space + 1, ' ', (size_t)(s.data + s.size - space - 1)))
            return tune_json_fail(j, "merge %lld is \"%.60s\"; expected two tokens and one space", (long long)rank, s.data);
        TRY(*left = part_id(t, j, rank, s.data, (size_t)(space - s.data)));
        TRY(*right = part_id(t, j, rank, space + 1, (size_t)(s.data + s.size - space - 1)));
        return 1;
    }
    TRY(tune_json_array(j));
    int32_t *parts[2] = {left, right};
    int n = 0, got;
    while ((got = tune_json_item(j)) == 1) {
        TRY(tune_json_string(j, &s));
        if (n == 2)
            return tune_json_fail(j, "merge %lld has more than two tokens", (long long)rank);
        TRY(*parts[n++] = part_id(t, j, rank, s.data, s.size));
    }
    TRY(got);
    return n == 2 ? 1 : tune_json_fail(j, "merge %lld has %d tokens; expected two", (long long)rank, n);
}

/* joined has room for two of the longest spellings. */
static int read_merge_list(struct tune_tokenizer *t, struct tune_json *j, char *joined)
{
    int got;
    uint32_t rank = 0;
    TRY(tune_json_array(j));
    while ((got = tune_json_item(j)) == 1) {
        int32_t left, right, id, read = read_merge(t, j, rank, &left, &right);
        TRY(read);
        if (read == 0)
            continue;
        if (rank == TUNE_MAX_MERGES)
            return tune_json_fail(j, "more than %d merges", TUNE_MAX_MERGES);
        struct tune_text a = t->vocab[left], b = t->vocab[right];
        memcpy(joined, a.data, a.size);
        memcpy(joined + a.size, b.data, b.size);
        TRY(id = part_id(t, j, rank, joined, a.size + b.size));
        TRY(tune_pairs_set(t, left, right, rank++, id));
    }
    return got;
}

static int read_merges(struct tune_tokenizer *t, struct tune_json *j, void *to)
{
    char *joined = tune_zeroed(2 * t->longest + 1, 1, "a merge");
    (void)to;
    int failed = joined ? read_merge_list(t, j, joined) : -1;
    free(joined);
    return failed;
}

/* Refuse model features that are not supported. Absent, null, "" and a dropout of 0 mean none. */
static int refuse_affixes(struct tune_tokenizer *t, const struct tune_json_part *parts)
{
    double dropout = 0;
    static const char *const names[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    for (int i = 0; i < 2; i++) {
        char text[SHORT] = "";
        TRY(read_some(t, &parts[PREFIX + i], read_short, text));
        if (text[0])
            return tune_error_set("%s: the model's %s is \"%s\"; expected none, as in the models this program knows",
                                  t->path, names[i], text);
    }
    TRY(read_some(t, &parts[DROPOUT], read_number, &dropout));
    return dropout == 0 ? 0
                        : tune_error_set("%s: the model's dropout is %g: ids would be drawn by chance; set it to null",
                                         t->path, dropout);
}

static int read_model(struct tune_tokenizer *t, const struct tune_json_part *model)
{
    static const char *const keys[MODEL_PARTS + 1] = {"type", "vocab", "merges", "dropout", "unk_token",
        "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges"};
    struct tune_json_part parts[MODEL_PARTS] = {0};
    char type[SHORT] = "";
    TRY(tune_part_read(t, model, find_parts, &(struct wanted){keys, parts}));
    TRY(read_some(t, &parts[MODEL_TYPE], read_short, type)); /* absent in old files */
    if (type[0] && strcmp(type, "BPE") != 0)
        return tune_error_set("%s: the model is of type \"%s\"; this program knows BPE", t->path, type);
    if (tune_part_absent(&parts[VOCAB]) || tune_part_absent(&parts[MERGES]))
        return tune_error_set("%s: the model has no \"%s\"; expected a BPE model with vocab and merges", t->path,
                              tune_part_absent(&parts[VOCAB]) ? "vocab" : "merges");
    TRY(refuse_affixes(t, parts));
    TRY(read_some(t, &parts[UNK], read_short, t->unk_text));
    TRY(read_some(t, &parts[FUSE], read_bool, &t->fuse_unk));
    TRY(read_some(t, &parts[FALLBACK], read_bool, &t->byte_fallback));
    TRY(read_some(t, &parts[IGNORE], read_bool, &t->ignore_merges));
    TRY(tune_part_read(t, &parts[VOCAB], read_vocab, NULL));
    TRY(tune_part_read(t, &parts[MERGES], read_merges, NULL));
    t->unk = t->unk_text[0] ? tune_vocab_find(t, t->unk_text, strlen(t->unk_text)) : -1;
    return 0;
}

static int read_added(struct tune_json *j, struct tune_added *a)
{
    struct tune_text key, s;
    int got;
    a->normalized = true;
    a->said = -1;
    TRY(tune_json_object(j));
    while ((got = tune_json_key(j, &key)) == 1) {
        bool *flag = tune_text_equal(key, "single_word") ? &a->single_word : tune_text_equal(key, "lstrip") ? &a->lstrip
                   : tune_text_equal(key, "rstrip") ? &a->rstrip : tune_text_equal(key, "normalized") ? &a->normalized
                   : tune_text_equal(key, "special") ? &a->special : NULL;
        if (flag) {
            TRY(tune_json_bool(j, flag));
        } else if (tune_text_equal(key, "content")) {
            TRY(tune_json_string(j, &s));
            if (a->content.data)
                return tune_json_fail(j, "an added token with two contents");
            if (s.size > TUNE_MAX_ADDED_SIZE)
                return tune_json_fail(j, "an added token of %zu bytes; expected at most %d", s.size, TUNE_MAX_ADDED_SIZE);
            char *copy = tune_zeroed(s.size + 1, 1, "an added token");
            if (!copy)
                return -1;
            memcpy(copy, s.data, s.size);
            a->content = a->match = (struct tune_text){copy, s.size};
        /* the id does not place the token; see place_added */
        } else if (tune_text_equal(key, "id")) {
            uint64_t id;
            TRY(tune_json_u64(j, &id));
            if (id > UINT32_MAX)
                return tune_json_fail(j, "the added token's id is %llu, expected at most %u", (unsigned long long)id, UINT32_MAX);
            a->said = (int64_t)id;
        } else {
            TRY(tune_json_skip(j));
        }
    }
    TRY(got);
    return a->content.data ? 0 : tune_json_fail(j, "an added token without content");
}

static int find_added(const struct tune_tokenizer *t, struct tune_text content, uint64_t mask, const int32_t *slots, uint64_t *at)
{
    for (uint64_t i = tune_hash64(content.data, content.size, t->seed);; i++) {
        int32_t k = slots[i & mask];
        *at = i & mask;
        if (k < 0 || (t->added[k].content.size == content.size && !memcmp(t->added[k].content.data, content.data, content.size)))
            return k;
    }
}

/* Record the first token whose id differs from that in the file. */
static void compare_ids(struct tune_tokenizer *t, const struct tune_added *a)
{
    if (a->said < 0 || a->said == a->id || t->lies++ > 0)
        return;
    snprintf(t->warning, sizeof t->warning, "%.300s gives the added token \"%.100s\" the id %lld, but its id is %d: tokens that the "
             "model's vocabulary lacks are numbered on from it, as Hugging Face's tokenizers do. If the model was trained with the "
             "other id, that token will train another row of the embedding: mend the file", t->path, a->content.data,
             (long long)a->said, (int)a->id);
}

/* Give a token its id, by the reference's rules. A token in the vocabulary keeps its id. Others are
 * numbered from the size of the vocabulary on, in file order. A repeated token takes the later
 * properties, but stays special. */
static void place_added(struct tune_tokenizer *t, struct tune_added *a, uint64_t mask, int32_t *slots, int32_t *next)
{
    uint64_t at;
    int k = find_added(t, a->content, mask, slots, &at);
    if (k >= 0) {
        struct tune_added *old = &t->added[k];
        a->special |= old->special;
        a->id = old->id;
        compare_ids(t, a);
        free((char *)a->content.data);
        a->content = a->match = old->content;
        *old = *a;
        return;
    }
    a->id = tune_vocab_find(t, a->content.data, a->content.size);
    if (a->id < 0)
        a->id = (*next)++;
    compare_ids(t, a);
    slots[at] = t->added_count;
    t->added[t->added_count++] = *a;
}

static int add_tokens(struct tune_tokenizer *t, struct tune_json *j, uint64_t room, int32_t *slots)
{
    int32_t next = t->vocab_count;
    int got;
    TRY(tune_json_array(j));
    while ((got = tune_json_item(j)) == 1) {
        struct tune_added a = {0};
        if (read_added(j, &a) < 0) {
            free((char *)a.content.data);
            return -1;
        }
        if (a.content.size == 0)
            free((char *)a.content.data);
        else
            place_added(t, &a, room - 1, slots, &next);
    }
    return got;
}

static int read_all_added(struct tune_tokenizer *t, struct tune_json *j, void *to)
{
    size_t items = 1;
    (void)to;
    for (const char *p = j->text; (p = memchr(p, '{', (size_t)(j->end - p))); p++)
        items++;
    if (items > TUNE_MAX_ADDED)
        return tune_error_set("%s: more than %d added tokens", t->path, TUNE_MAX_ADDED);
    uint64_t room = 16;
    while (room < items * 2)
        room *= 2;
    t->added = tune_zeroed(items, sizeof *t->added, "the added tokens");
    int32_t *slots = t->added ? tune_zeroed(room, sizeof *slots, "the added tokens") : NULL;
    if (!slots)
        return -1;
    memset(slots, 0xFF, room * sizeof *slots);
    int failed = add_tokens(t, j, room, slots);
    free(slots);
    return failed;
}

/* Build the normalized spellings, the table from id to added token, and the tries. */
static int settle_added(struct tune_tokenizer *t)
{
    int32_t vocab_size = t->size;
    for (int i = 0; i < t->added_count; i++)
        if (t->added[i].id >= t->size)
            t->size = t->added[i].id + 1;
    size_t count = (size_t)t->size + 1, had = (size_t)vocab_size;
    TRY(tune_array_reserve(&t->vocab, &had, count, sizeof *t->vocab, "the vocabulary"));
    t->added_of = tune_zeroed(count, sizeof *t->added_of, "the vocabulary");
    if (!t->added_of)
        return -1;
    memset(t->vocab + vocab_size, 0, (count - (size_t)vocab_size) * sizeof *t->vocab);
    memset(t->added_of, 0xFF, count * sizeof *t->added_of);
    struct tune_work w = {.t = t};
    int failed = 0;
    for (int i = 0; i < t->added_count && !failed; i++) {
        struct tune_added *a = &t->added[i];
        struct tune_piece piece;
        t->added_of[a->id] = i;
        if (!a->normalized)
            continue;
        failed = tune_normalize(&w, a->content.data, a->content.size, 0, &piece);
        if (!failed && (piece.size != a->content.size || memcmp(piece.text, a->content.data, piece.size) != 0)) {
            char *copy = tune_zeroed(piece.size + 1, 1, "an added token");
            failed = copy ? 0 : -1;
            if (copy)
                memcpy(copy, piece.text, piece.size);
            a->match = (struct tune_text){copy, copy ? piece.size : 0};
        }
    }
    tune_buffer_free(&w.normal);
    return failed ? failed : tune_added_ready(t);
}

int tune_load(struct tune_tokenizer *t, const char *text, size_t size)
{
    static const char *const keys[PARTS + 1] = {"version", "model", "added_tokens", "normalizer", "pre_tokenizer",
        "post_processor", "decoder"};
    struct tune_json_part parts[PARTS] = {0};
    char version[SHORT] = "";
    TRY(tune_part_read(t, &(struct tune_json_part){text, text + size, 1}, find_all_parts, &(struct wanted){keys, parts}));
    TRY(read_some(t, &parts[VERSION], read_short, version));
    if (version[0] && strcmp(version, "1.0") != 0)
        return tune_error_set("%s: version \"%s\"; this program knows \"1.0\"", t->path, version);
    if (tune_part_absent(&parts[MODEL]))
        return tune_error_set("%s: no \"model\"; expected a tokenizer.json with a BPE model", t->path);
    TRY(tune_load_normalizer(t, &parts[NORMALIZER]));
    TRY(tune_load_pretokenizer(t, &parts[PRETOKENIZER]));
    TRY(tune_load_decoder(t, &parts[DECODER]));
    TRY(read_model(t, &parts[MODEL]));
    TRY(read_some(t, &parts[ADDED], read_all_added, NULL));
    TRY(settle_added(t));
    TRY(tune_load_processor(t, &parts[PROCESSOR]));
    return tune_pairs_ready(t);
}
