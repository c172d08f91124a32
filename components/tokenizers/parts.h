/* parts.h - what the files of this folder share: the opened tokenizer, and one stage of encoding
 * per file.
 *
 *     text -> added.c (spellings taken as they are) -> normalize.c -> added.c (normalized spellings)
 *          -> pretokenize.c (words) -> bpe.c (ids) -> tokenizer.c (the template)
 *
 * Not installed; outside this folder only tokenizer.h is known. */
#ifndef TUNE_TOKENIZERS_PARTS_H
#define TUNE_TOKENIZERS_PARTS_H

#include "files/json.h"
#include "core/try.h"
#include "tokenizers/tokenizer.h"
#include "tokenizers/unicode.h"

/* What no real file comes near, and what keeps the memory and time of a hostile one small. Ids are
 * dense in every vocabulary known; a file with larger ones is refused before tables are sized by
 * them. */
#define TUNE_MAX_ID (1 << 22)
#define TUNE_MAX_MERGES (1 << 22)
#define TUNE_MAX_ADDED (1 << 20)
/* bytes of one: the cost of looking for it at every place of a text */
#define TUNE_MAX_ADDED_SIZE 1024
#define TUNE_MAX_ADDED_BYTES (4 << 20)    /* of all */
#define TUNE_MAX_TEXT (INT32_MAX / 4)     /* bytes encoded or decoded at once */
#define TUNE_MAX_TEMPLATE 64
#define TUNE_MAX_STEPS 8
#define TUNE_SPACE_MARK "\xE2\x96\x81" /* U+2581, the space of SentencePiece vocabularies */

enum tune_pretokenizer { TUNE_PRE_NONE, TUNE_PRE_GPT2, TUNE_PRE_DIGITS_GPT2, TUNE_PRE_LLAMA3, TUNE_PRE_QWEN2 };

enum tune_decode_step { TUNE_DECODE_BYTE_LEVEL, TUNE_DECODE_REPLACE, TUNE_DECODE_BYTES, TUNE_DECODE_FUSE, TUNE_DECODE_STRIP };

struct tune_decode {
    enum tune_decode_step kind;
    char from[64], to[64];   /* replace, strip (from) */
    uint64_t start, stop;    /* strip */
};

struct tune_added {
    struct tune_text content;
    /* as the normalizer leaves it, where normalized: looked for in text, given by decode */
    struct tune_text match;
    int32_t id;
    int64_t said;            /* the id that the file gives it; -1: none */
    bool single_word, lstrip, rstrip, normalized, special;
};

/* Spellings -> added token: a trie in one hash table, so that a search costs the length of the
 * longest match. */
struct tune_trie {
    struct {
        uint64_t key;        /* node << 8 | byte, plus 1; 0: free */
        uint32_t node;
    } *slots;
    uint64_t mask, seed;
    int32_t *accepts;        /* [nodes]; index of the added token that ends here, or -1 */
    uint32_t nodes;          /* 0: no tokens at all */
    bool first[256];         /* bytes some token begins with */
};

struct tune_pair {
    uint64_t key;            /* left id << 32 | right id; UINT64_MAX: free */
    uint32_t rank;
    int32_t id;              /* of the joined token */
};

/* A word and its ids, written once and never changed: readers need no lock. tag is 0 (free), 1
 * (being written) or the word's hash with bit 1 set, stored last. */
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
    char *path;              /* the file, for messages */
    /* of ids that the file gives to added tokens, which they do not have; "": none */
    char warning[768];
    int lies;                /* how many */
    uint64_t seed;           /* of the hash tables: not known to who writes a file */
    /* model */
    char *spellings;         /* arena of the vocabulary's */
    struct tune_text *vocab; /* [size]; data NULL: no such id in the model */
    int32_t size;            /* largest id + 1, added tokens included */
    int32_t vocab_count;
    size_t longest;          /* bytes of the longest spelling */
    int32_t *slots;          /* spelling -> id, -1 free */
    uint64_t slot_mask;
    struct tune_pair *pairs;
    uint64_t pair_mask;
    int64_t pair_count;
    int32_t unk;             /* -1: missing characters are left out */
    /* unk_token, for the message where the vocabulary lacks it; "": none */
    char unk_text[64];
    bool fuse_unk, byte_fallback, ignore_merges;
    /* byte level: id of each byte; else of each ASCII character; -1: missing */
    int32_t symbols[256];
    int32_t fallback[256];   /* id of <0x00>..<0xFF>, -1: missing */
    bool complete;           /* every text has ids: no character can be missing */
    /* stages */
    bool nfc, prepend, replace;
    enum tune_pretokenizer pre;
    const char *pipeline;
    struct tune_decode decode[TUNE_MAX_STEPS];
    int decode_steps;        /* 0: no decoder, tokens are joined by spaces */
    int32_t before[TUNE_MAX_TEMPLATE], after[TUNE_MAX_TEMPLATE];
    int befores, afters;
    /* added tokens */
    struct tune_added *added;
    int added_count;
    int32_t *added_of;       /* [size]; index in added, or -1 */
    struct tune_trie raw, normal;
    /* speed */
    uint8_t *class;          /* [TUNE_POINTS] */
    bool cuts;               /* without pre-tokenizer: text may be cut where no merge can join */
    /* set of (last character << 32 | first character) that some merge joins */
    uint64_t *joins;
    uint64_t join_mask;
    uint64_t joins_small[129][3]; /* the same as bits for ASCII, U+2581 counting as 128 */
    struct tune_word *words; /* [TUNE_WORDS] */
};

/* Text on its way: bytes after normalizing, and where each came from. */
struct tune_piece {
    const char *text;
    size_t size;
    int64_t base;            /* of the piece in the caller's text */
    const uint32_t *low, *high; /* [size]: source bytes from base; NULL: unchanged */
};

/* One call's own memory. */
struct tune_work {
    struct tune_tokenizer *t;
    /* what each word is handed to: tune_bpe, or training's count */
    int (*word)(struct tune_work *w, const struct tune_piece *piece, size_t a, size_t b,
                bool whole);
    struct tune_encoding *e;
    int options;
    const uint8_t *data;     /* of the caller's text: bytes that are not markup; NULL: none */
    char *text;              /* normalized piece */
    uint32_t *low, *high;
    size_t room;
    int32_t *ids, *sizes, *next, *previous; /* long words */
    uint64_t *heap;
    size_t symbol_room;
};

/* load.c: fill *t from JSON text. 0 or -1. */
int tune_load(struct tune_tokenizer *t, const char *text, size_t size);

/* load_stages.c: where a part of the file stands; begin NULL: absent. */
struct tune_part {
    const char *begin, *end;
    int64_t line;
};
int tune_load_normalizer(struct tune_tokenizer *t, const struct tune_part *part);
int tune_load_pretokenizer(struct tune_tokenizer *t, const struct tune_part *part);
int tune_load_processor(struct tune_tokenizer *t, const struct tune_part *part);
int tune_load_decoder(struct tune_tokenizer *t, const struct tune_part *part);
int tune_no_memory(const char *what, size_t bytes); /* sets the error; -1 */

/* vocabulary.c */
int32_t tune_vocab_find(const struct tune_tokenizer *t, const char *text, size_t size);
int tune_vocab_index(struct tune_tokenizer *t); /* slots from vocab; a spelling twice is an error */
int tune_pairs_set(struct tune_tokenizer *t, int32_t left, int32_t right, uint32_t rank,
                   int32_t id);
int tune_pairs_ready(struct tune_tokenizer *t); /* symbols, fallback, cuts */
uint32_t tune_byte_char(int byte);              /* the printable character that stands for a byte */
int tune_char_byte(uint32_t c);                 /* and back; -1 */

static inline uint64_t tune_mix(uint64_t x, uint64_t seed)
{
    x ^= seed;
    x *= 0x9E3779B97F4A7C15u;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    return x ^ x >> 32;
}

static inline const struct tune_pair *tune_pairs_find(const struct tune_tokenizer *t, int32_t left,
                                                      int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    for (uint64_t i = tune_mix(key, t->seed);; i++) {
        const struct tune_pair *p = &t->pairs[i & t->pair_mask];
        if (p->key == key)
            return p;
        if (p->key == UINT64_MAX)
            return NULL;
    }
}

/* added.c: tune_added_ready builds both tries. tune_added_next gives the text before the next added
 * token and that token; token -1: the text that is left, and the end. */
struct tune_added_scan {
    const struct tune_trie *trie;
    const char *text;
    const struct tune_piece *piece; /* what text is of the caller's */
    size_t size, at;         /* at: where searching goes on */
    size_t done;             /* text given out so far */
    size_t run, run_end;     /* a stretch of white space seen */
    size_t gap, gap_end;     /* out: plain text */
    int token;               /* out: index in added, or -1 */
    size_t begin, end;       /* out: what the token took */
};
int tune_added_ready(struct tune_tokenizer *t);
void tune_added_free(struct tune_tokenizer *t);
void tune_added_next(const struct tune_work *w, struct tune_added_scan *s);

/* normalize.c: size bytes at text, from base in the caller's text, into *piece, which borrows w's
 * memory or text. */
int tune_normalize(struct tune_work *w, const char *text, size_t size, int64_t base,
                   struct tune_piece *piece);

/* pretokenize.c: the piece's bytes from a to b into words, each to w->word. */
int tune_pretokenize(struct tune_work *w, const struct tune_piece *piece, size_t a, size_t b);

/* bpe.c: one word. whole: it is all that a pre-tokenizer would hand over (ignore_merges looks at no
 * less). */
int tune_bpe(struct tune_work *w, const struct tune_piece *piece, size_t a, size_t b, bool whole);

/* tokenizer.c */
int tune_encoding_reserve(struct tune_encoding *e, int64_t more);

static inline void tune_encoding_put(struct tune_encoding *e, int32_t id,
                                     const struct tune_piece *p, size_t a, size_t b)
{
    e->ids[e->count] = id;
    e->starts[e->count] = p->base + (int64_t)(!p->low ? a : a < p->size ? p->low[a] : p->high[a - 1]);
    e->ends[e->count] = p->base + (int64_t)(!p->low ? b : b > a ? p->high[b - 1] : a < p->size ? p->low[a] : p->high[a - 1]);
    e->count++;
}

#endif
