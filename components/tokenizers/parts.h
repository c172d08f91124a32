/* parts.h - the opened tokenizer and the stages of encoding, one file each. Private to this folder.
 *
 *     text -> added.c (raw added tokens) -> normalize.c -> added.c (normalized added tokens)
 *          -> pretokenize.c (words) -> bpe.c (ids) -> tokenizer.c (the template) */
#ifndef TUNE_TOKENIZERS_PARTS_H
#define TUNE_TOKENIZERS_PARTS_H

#include "files/json.h"
#include "core/try.h"
#include "tokenizers/tokenizer.h"
#include "tokenizers/unicode.h"

/* Limits far above those of real files. They bound memory and time for a hostile file. Known
 * vocabularies have dense ids, so a larger id is refused before it sizes a table. */
#define TUNE_MAX_ID (1 << 22)
#define TUNE_MAX_MERGES (1 << 22)
#define TUNE_MAX_ADDED (1 << 20)
#define TUNE_MAX_ADDED_SIZE 1024 /* bytes of one token: limits the search at each position */
#define TUNE_MAX_ADDED_BYTES (4 << 20)    /* bytes of all tokens */
#define TUNE_MAX_TEXT (INT32_MAX / 4)     /* bytes encoded or decoded at once */
#define TUNE_MAX_TEMPLATE 64
#define TUNE_MAX_STEPS 8
#define TUNE_SPACE_MARK "\xE2\x96\x81" /* U+2581, a space in SentencePiece vocabularies */

enum tune_pretokenizer { TUNE_PRE_NONE, TUNE_PRE_GPT2, TUNE_PRE_DIGITS_GPT2, TUNE_PRE_LLAMA3,
    TUNE_PRE_QWEN2, TUNE_PRE_QWEN35, TUNE_PRE_TEKKEN, TUNE_PRE_LLAMA4 };

enum tune_decode_step { TUNE_DECODE_BYTE_LEVEL, TUNE_DECODE_REPLACE, TUNE_DECODE_BYTES,
    TUNE_DECODE_FUSE, TUNE_DECODE_STRIP, TUNE_DECODE_METASPACE };

struct tune_decode {
    enum tune_decode_step kind;
    char from[64], to[64];   /* replace, strip (from), metaspace (from) */
    uint64_t start, stop;    /* strip */
    bool drop;               /* metaspace: the first token loses its marks */
};

/* Which texts between added tokens get a mark in front, unless they begin with one. FIRST: the one
 * at the beginning of the caller's text. */
enum tune_prepend { TUNE_PREPEND_NEVER, TUNE_PREPEND_FIRST, TUNE_PREPEND_ALWAYS };

/* The pre-tokenizer Metaspace: spaces become marks. Without it, mark is "". */
struct tune_metaspace {
    char mark[8];            /* one character */
    enum tune_prepend prepend;
    bool split;              /* a word begins at each mark */
};

struct tune_added {
    struct tune_text content;
    /* spelling after the normalizer, if normalized: found in text and printed by decode */
    struct tune_text match;
    int32_t id;
    int64_t said;            /* the file's id; -1: none */
    bool single_word, lstrip, rstrip, normalized, special;
};

/* A trie from spellings to added tokens, in one hash table. A search costs the length of the
 * longest match. */
struct tune_trie {
    struct {
        uint64_t key;        /* node << 8 | byte, plus 1; 0: unused */
        uint32_t node;
    } *slots;
    uint64_t mask, seed;
    int32_t *accepts;        /* [nodes] index of the added token that ends here, or -1 */
    uint32_t nodes;          /* 0: no tokens */
    bool first[256];         /* bytes with which a token begins */
};

struct tune_merge_pair {
    uint64_t key;            /* left id << 32 | right id; UINT64_MAX: unused */
    uint32_t rank;
    int32_t id;              /* id of the merged token */
};

/* A cached word and its ids. It is written once and never changed, so readers need no lock. tag is
 * 0 (unused), 1 (being written) or the word's hash with bit 1 set, which is stored last. */
#define TUNE_WORD_BYTES 28
#define TUNE_WORD_IDS 6
struct tune_word {
    _Atomic uint32_t tag;
    uint8_t size, count;
    uint8_t sizes[TUNE_WORD_IDS];
    char text[TUNE_WORD_BYTES];
    int32_t ids[TUNE_WORD_IDS];
};
#define TUNE_WORDS (1 << 16)

struct tune_tokenizer {
    char *path;              /* file name, for messages */
    char *more;              /* tokens that were added to the file's, with their ids; NULL: none */
    char warning[768];       /* about added tokens whose id in the file is wrong; "": none */
    int lies;                /* number of these tokens */
    int32_t limit;           /* rows of the model's vocabulary; 0: not known */
    size_t own_warning;      /* length of the warning before the limit added to it */
    uint64_t seed; /* random seed of the hash tables, so that a file cannot cause collisions */
    /* model */
    char *spellings;         /* storage of the vocabulary's spellings */
    struct tune_text *vocab; /* [size]; data NULL: the model has no such id */
    int32_t size;            /* largest id + 1, with added tokens */
    int32_t vocab_count;
    size_t longest;          /* bytes of the longest spelling */
    int32_t *slots;          /* spelling -> id; -1: unused */
    uint64_t slot_mask;
    struct tune_merge_pair *pairs;
    uint64_t pair_mask;
    int64_t pair_count;
    int32_t unk;             /* -1: characters without token are left out */
    char unk_text[64];       /* unk_token, for a message if the vocabulary lacks it; "": none */
    bool fuse_unk, byte_fallback, ignore_merges;
    int32_t symbols[256];    /* id of each byte (byte level) or ASCII character; -1: none */
    int32_t fallback[256];   /* id of <0x00>..<0xFF>; -1: none */
    bool complete;           /* every text can be encoded */
    /* stages */
    bool nfc, prepend, replace;
    enum tune_pretokenizer pre; /* other than NONE: symbols are bytes */
    struct tune_metaspace metaspace;
    const char *pipeline;
    struct tune_decode decode[TUNE_MAX_STEPS];
    int decode_steps;        /* 0: no decoder; tokens are joined by spaces */
    int32_t before[TUNE_MAX_TEMPLATE], after[TUNE_MAX_TEMPLATE];
    int befores, afters;
    /* added tokens */
    struct tune_added *added;
    int added_count;
    int32_t *added_of;       /* [size] index in added, or -1 */
    struct tune_trie raw, normal;
    /* for speed */
    uint8_t *class;          /* [TUNE_POINTS] */
    bool cuts; /* without pre-tokenizer: text may be cut at points that no merge crosses */
    uint64_t *joins; /* set of (last character << 32 | first character) that some merge joins */
    uint64_t join_mask;
    uint64_t joins_small[129][3]; /* the same as bits for ASCII, with U+2581 as 128 */
    struct tune_word *words; /* [TUNE_WORDS] */
};

/* A piece of text after normalizing, with the source position of each byte. */
struct tune_piece {
    const char *text;
    size_t size;
    int64_t base;            /* offset of the piece in the caller's text */
    const uint32_t *low, *high; /* [size] source range relative to base; NULL: unchanged */
};

/* A changed text, and the source range of each of its bytes. */
struct tune_buffer {
    char *text;
    uint32_t *low, *high;
    size_t room;
};

/* Working memory of one call. */
struct tune_work {
    struct tune_tokenizer *t;
    /* called for each word: tune_bpe, or the counter of training */
    int (*word)(struct tune_work *w, const struct tune_piece *piece, size_t a, size_t b,
                bool whole);
    struct tune_encoding *e;
    int options;
    const uint8_t *data;     /* of the caller's text: not 0 marks a byte of data; NULL: none */
    struct tune_buffer normal, marked; /* of the normalizer and of Metaspace */
    int32_t *ids, *sizes, *next, *previous; /* for long words */
    uint64_t *heap;
    size_t symbol_room;
};

/* load.c: fill *t from JSON text. 0, or -1 with an error. */
int tune_load(struct tune_tokenizer *t, const char *text, size_t size);

/* A part of the file. begin NULL: absent. tune_part_take sets it to the value of this key, which is
 * skipped; a part that is set already is an error. tune_part_read calls read with a reader of the
 * part. tune_short_text reads a string of less than `room` bytes, without a NUL. */
struct tune_json_part {
    const char *begin, *end;
    int64_t line;
};
typedef int tune_part_reader(struct tune_tokenizer *t, struct tune_json *j, void *to);
int tune_part_take(struct tune_json *j, const char *key, struct tune_json_part *part);
bool tune_part_absent(const struct tune_json_part *part); /* or null */
int tune_part_read(struct tune_tokenizer *t, const struct tune_json_part *part,
                   tune_part_reader *read, void *to);
int tune_short_text(struct tune_json *j, char *to, size_t room);

/* load_stages.c */
int tune_load_normalizer(struct tune_tokenizer *t, const struct tune_json_part *part);
int tune_load_pretokenizer(struct tune_tokenizer *t, const struct tune_json_part *part);
int tune_load_processor(struct tune_tokenizer *t, const struct tune_json_part *part);
int tune_load_decoder(struct tune_tokenizer *t, const struct tune_json_part *part);

/* vocabulary.c */
int32_t tune_vocab_find(const struct tune_tokenizer *t, const char *text, size_t size);
/* fill slots from vocab; a duplicate spelling is an error */
int tune_vocab_index(struct tune_tokenizer *t);
int tune_pairs_set(struct tune_tokenizer *t, int32_t left, int32_t right, uint32_t rank,
                   int32_t id);
int tune_pairs_ready(struct tune_tokenizer *t); /* fill symbols, fallback and the cut tables */
uint32_t tune_byte_char(int byte);              /* the printable character that stands for a byte */
int tune_char_byte(uint32_t c);                 /* the reverse; -1: none */

static inline uint64_t tune_mix(uint64_t x, uint64_t seed)
{
    x ^= seed;
    x *= 0x9E3779B97F4A7C15u;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    return x ^ x >> 32;
}

static inline const struct tune_merge_pair *tune_pairs_find(const struct tune_tokenizer *t,
                                                            int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    for (uint64_t i = tune_mix(key, t->seed);; i++) {
        const struct tune_merge_pair *p = &t->pairs[i & t->pair_mask];
        if (p->key == key)
            return p;
        if (p->key == UINT64_MAX)
            return NULL;
    }
}

/* added.c. tune_added_ready builds both tries. tune_added_next finds the next added token: the text
 * before it, and the token. token -1: the rest of the text, without a token. */
struct tune_added_scan {
    const struct tune_trie *trie;
    const char *text;
    const struct tune_piece *piece; /* the piece that text belongs to */
    size_t size, at;         /* at: position to continue the search */
    size_t done;             /* end of the text already returned */
    size_t run, run_end;     /* the last run of white space found */
    size_t gap, gap_end;     /* result: plain text before the token */
    int token;               /* result: index in added, or -1 */
    size_t begin, end;       /* result: the range of the token */
};
int tune_added_ready(struct tune_tokenizer *t);
void tune_added_free(struct tune_tokenizer *t);
void tune_added_next(const struct tune_work *w, struct tune_added_scan *s);

/* normalize.c: normalize size bytes of text into *piece. base: offset in the caller's text. piece
 * borrows w's memory or text. */
int tune_normalize(struct tune_work *w, const char *text, size_t size, int64_t base,
                   struct tune_piece *piece);

/* tune_marks - write a mark for each space of bytes a..b, and one in front, into `marked`, which
 * borrows `to`. The mark in front has the source range of the first character.
 * tune_buffer_free - free the arrays. */
struct tune_marking {
    const char *mark;
    bool prepend, replace;
};
int tune_marks(struct tune_buffer *to, const struct tune_piece *piece, size_t a, size_t b,
               struct tune_marking how, struct tune_piece *marked);
void tune_buffer_free(struct tune_buffer *b);

/* pretokenize.c: split bytes a..b of the piece into words and call w->word for each. */
int tune_pretokenize(struct tune_work *w, const struct tune_piece *piece, size_t a, size_t b);

/* bpe.c: encode one word. whole: it is a complete pre-tokenizer word, the only kind that
 * ignore_merges looks up. */
int tune_bpe(struct tune_work *w, const struct tune_piece *piece, size_t a, size_t b, bool whole);

/* tokenizer.c */
int tune_encoding_reserve(struct tune_encoding *e, int64_t more);

static inline void tune_encoding_put(struct tune_encoding *e, int32_t id,
                                     const struct tune_piece *p, size_t a, size_t b)
{
    e->ids[e->count] = id;
    e->starts[e->count] =
        p->base + (int64_t)(!p->low ? a : a < p->size ? p->low[a] : p->high[a - 1]);
    e->ends[e->count] = p->base + (int64_t)(!p->low     ? b
                                            : b > a       ? p->high[b - 1]
                                            : a < p->size ? p->low[a]
                                                          : p->high[a - 1]);
    e->count++;
}

/* tune_tokenizer_parse - the tokenizer of a tokenizer.json's text. name is for messages.
 * tune_tokenizer_with - the same with more tokens. It takes over t, the tokenizer of that text.
 * *out, which the caller frees, is the new text; NULL: the tokens are all there already. */
struct tune_tokenizer *tune_tokenizer_parse(const char *name, const char *text, size_t size);
struct tune_tokenizer *tune_tokenizer_with(struct tune_tokenizer *t, const char *text, size_t size,
                                           const char *more, char **out, size_t *out_size);

#endif
