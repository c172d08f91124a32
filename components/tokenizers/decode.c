/* decode.c - ids to text. Each decoder step maps a list of strings to a list of strings. */
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "tokenizers/parts.h"

/* Strings that follow each other; the i-th ends at ends[i]. */
struct strings {
    char *bytes;
    size_t size, room, most; /* most: limit on size */
    size_t *ends;
    size_t count;
    size_t open; /* bytes at the end that later tokens may change */
};

static int put(struct strings *s, const char *bytes, size_t size)
{
    if (size > s->most - s->size)
        return tune_error_set("tokenizer: the decoded text would have more than %zu bytes", s->most);
    TRY(tune_array_reserve(&s->bytes, &s->room, s->size + size, 1, "decoded text"));
    if (size > 0)
        memcpy(s->bytes + s->size, bytes, size);
    s->size += size;
    return 0;
}

/* Append bytes as UTF-8, with U+FFFD for each maximal invalid part (Unicode 3.9; Rust's
 * from_utf8_lossy). */
static int put_lossy(struct strings *to, const char *bytes, size_t size)
{
    while (size > 0) {
        size_t bad;
        if (tune_utf8_valid(bytes, size, &bad))
            return put(to, bytes, size);
        TRY(put(to, bytes, bad));
        const unsigned char *p = (const unsigned char *)bytes + bad, *end = (const unsigned char *)bytes + size;
        int more = p[0] >= 0xC2 && p[0] <= 0xDF ? 1 : p[0] >= 0xE0 && p[0] <= 0xEF ? 2 : p[0] >= 0xF0 && p[0] <= 0xF4 ? 3 : 0;
        unsigned char low = p[0] == 0xE0 ? 0xA0 : p[0] == 0xF0 ? 0x90 : 0x80;
        unsigned char high = p[0] == 0xED ? 0x9F : p[0] == 0xF4 ? 0x8F : 0xBF;
        for (p++; more > 0 && p < end && *p >= low && *p <= high; more--, p++)
            low = 0x80, high = 0xBF;
        TRY(put(to, "\xEF\xBF\xBD", 3));
        to->open = more > 0 && p == end ? 3 : 0;
        size = (size_t)(end - p);
        bytes = (const char *)p;
    }
    return 0;
}

/* Map tokens whose characters all stand for bytes to those bytes, others to themselves. The result
 * is one string. */
static int byte_level(const struct strings *from, struct strings *to)
{
    char *all = tune_zeroed(from->size + 1, 1, "decoded text");
    size_t n = 0, at = 0;
    if (!all)
        return -1;
    for (size_t i = 0; i < from->count; at = from->ends[i++]) {
        size_t begin = n;
        for (const char *p = from->bytes + at, *end = from->bytes + from->ends[i]; p < end;) {
            int byte = tune_char_byte(tune_utf8_next(&p));
            if (byte < 0) {
                n = begin + (from->ends[i] - at);
                memcpy(all + begin, from->bytes + at, from->ends[i] - at);
                break;
            }
            all[n++] = (char)byte;
        }
    }
    int failed = put_lossy(to, all, n);
    free(all);
    to->ends[0] = to->size;
    to->count = 1;
    return failed;
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte of "<0xHH>", else -1. Like the reference's parser, it accepts "+H". */
static int byte_token(const char *s, size_t size)
{
    if (size != 6 || memcmp(s, "<0x", 3) != 0 || s[5] != '>' || hex(s[4]) < 0)
        return -1;
    return s[3] == '+' ? hex(s[4]) : hex(s[3]) < 0 ? -1 : hex(s[3]) * 16 + hex(s[4]);
}

/* Decode runs of byte tokens: as text if the run is valid UTF-8, else U+FFFD for each byte. */
static int byte_fallback(const struct strings *from, struct strings *to)
{
    size_t at = 0;
    for (size_t i = 0; i < from->count;) {
        size_t last = i, mark = to->size, size = from->ends[i] - at;
        int byte = byte_token(from->bytes + at, size);
        if (byte < 0) {
            TRY(put(to, from->bytes + at, size));
            to->ends[to->count++] = to->size;
            at = from->ends[i++];
            continue;
        }
        for (; byte >= 0; byte = last < from->count ? byte_token(from->bytes + at, from->ends[last] - at) : -1) {
            TRY(put(to, &(char){(char)byte}, 1));
            at = from->ends[last++];
        }
        if (tune_utf8_valid(to->bytes + mark, to->size - mark, NULL)) {
            to->ends[to->count++] = to->size;
        } else {
            to->size = mark;
            for (size_t k = i; k < last; k++) {
                TRY(put(to, "\xEF\xBF\xBD", 3));
                to->ends[to->count++] = to->size;
            }
        }
        to->open = last == from->count ? to->size - mark : 0;
        i = last;
    }
    return 0;
}

static int replace(const struct tune_decode *d, const char *s, size_t size, struct strings *to)
{
    size_t n = strlen(d->from);
    for (const char *end = s + size; s < end;) {
        const char *hit = memmem(s, (size_t)(end - s), d->from, n);
        TRY(put(to, s, (size_t)((hit ? hit : end) - s)));
        if (!hit)
            return 0;
        TRY(put(to, d->to, strlen(d->to)));
        s = hit + n;
    }
    return 0;
}

static int strip(const struct tune_decode *d, const char *s, size_t size, struct strings *to)
{
    size_t n = strlen(d->from), from = 0, end = size;
    for (uint64_t i = 0; i < d->start && size - from >= n && memcmp(s + from, d->from, n) == 0; i++)
        from += n;
    for (uint64_t i = 0; i < d->stop && end - from >= n && memcmp(s + end - n, d->from, n) == 0; i++)
        end -= n;
    return put(to, s + from, end - from);
}

/* Marks become spaces; those of the first token are dropped. */
static int metaspace(const struct tune_decode *d, const char *s, size_t size, bool first, struct strings *to)
{
    struct tune_decode step = *d;
    strcpy(step.to, first && d->drop ? "" : " ");
    return replace(&step, s, size, to);
}

static int apply(const struct tune_decode *d, const struct strings *from, struct strings *to)
{
    size_t at = 0;
    if (d->kind == TUNE_DECODE_BYTE_LEVEL)
        return byte_level(from, to);
    if (d->kind == TUNE_DECODE_BYTES)
        return byte_fallback(from, to);
    if (d->kind == TUNE_DECODE_FUSE) {
        TRY(put(to, from->bytes, from->size));
        to->ends[to->count++] = to->size;
        to->open = from->open;
        return 0;
    }
    for (size_t i = 0; i < from->count; at = from->ends[i++]) {
        if (d->kind == TUNE_DECODE_REPLACE)
            TRY(replace(d, from->bytes + at, from->ends[i] - at, to));
        else if (d->kind == TUNE_DECODE_METASPACE)
            TRY(metaspace(d, from->bytes + at, from->ends[i] - at, i == 0, to));
        else
            TRY(strip(d, from->bytes + at, from->ends[i] - at, to));
        to->ends[to->count++] = to->size;
    }
    to->open = from->open < to->size ? from->open : to->size;
    return 0;
}

/* True if more ids only add to the text, behind what is open. This holds for ByteLevel and without a
 * decoder. It also holds for some of these, in this order: Replace or Metaspace, ByteFallback,
 * Fuse, Strip. */
static bool appends(const struct tune_tokenizer *t)
{
    const struct tune_decode *d = t->decode, *end = d + t->decode_steps;
    if (t->decode_steps == 1 && d->kind == TUNE_DECODE_BYTE_LEVEL)
        return true;
    while (d < end && (d->kind == TUNE_DECODE_REPLACE || d->kind == TUNE_DECODE_METASPACE))
        d++;
    d += d < end && d->kind == TUNE_DECODE_BYTES;
    if (d < end && d->kind == TUNE_DECODE_FUSE) {
        d++;
        d += d < end && d->kind == TUNE_DECODE_STRIP;
    }
    return d == end;
}

static bool is_special(const struct tune_tokenizer *t, int32_t id)
{
    const struct tune_added *a = t->added_of[id] >= 0 ? &t->added[t->added_of[id]] : NULL;
    /* The reference compares with the spelling of special tokens. One that its normalizer changed
     * is not found. */
    return a && a->special && a->match.data == a->content.data;
}

static int spell(const struct tune_tokenizer *t, const int32_t *ids, int64_t count, bool skip_special, struct strings *s)
{
    for (int64_t i = 0; i < count; i++) {
        int32_t id = ids[i];
        if (id < 0 || id >= t->size || (t->added_of[id] < 0 && !t->vocab[id].data))
            return tune_error_set("%s: id %d (number %lld of those to decode) is not in the vocabulary of %d", t->path,
                                  (int)id, (long long)i + 1, (int)t->size);
        if (skip_special && is_special(t, id))
            continue;
        struct tune_text word = t->added_of[id] >= 0 ? t->added[t->added_of[id]].match : t->vocab[id];
        if (t->decode_steps == 0 && s->count > 0)
            TRY(put(s, " ", 1));
        TRY(put(s, word.data, word.size));
        s->ends[s->count++] = s->size;
    }
    return 0;
}

int tune_tokenizer_decode(struct tune_tokenizer *t, const int32_t *ids, int64_t count, bool skip_special, char **text,
                          size_t *size)
{
    size_t open;
    return tune_tokenizer_decode_open(t, ids, count, skip_special, text, size, &open);
}

int tune_tokenizer_decode_open(struct tune_tokenizer *t, const int32_t *ids, int64_t count, bool skip_special,
                               char **text, size_t *size, size_t *open)
{
    struct strings s[2] = {{.most = TUNE_MAX_TEXT}, {.most = TUNE_MAX_TEXT}};
    int now = 0, failed = -1;
    *text = NULL;
    for (int i = 0; i < 2; i++) {
        s[i].ends = tune_zeroed((size_t)count + 1, sizeof *s[i].ends, "decoded text");
        /* bytes is never NULL, because steps point into it */
        if (!s[i].ends || put(&s[i], "", 1) < 0)
            goto end;
        s[i].size = 0;
    }
    if (spell(t, ids, count, skip_special, &s[0]) < 0)
        goto end;
    /* a hostile decoder could grow text without limit; known ones at most triple it */
    if (s[0].size < TUNE_MAX_TEXT / 64)
        s[0].most = s[1].most = s[0].size * 64 + 4096;
    for (int i = 0; i < t->decode_steps; i++, now = !now) {
        s[!now].size = s[!now].count = s[!now].open = 0;
        if (apply(&t->decode[i], &s[now], &s[!now]) < 0)
            goto end;
    }
    if (put(&s[now], "", 1) < 0) /* the NUL, not counted */
        goto end;
    *text = s[now].bytes;
    *size = s[now].size - 1;
    *open = appends(t) ? s[now].open : *size;
    s[now].bytes = NULL;
    failed = 0;
end:
    for (int i = 0; i < 2; i++) {
        free(s[i].bytes);
        free(s[i].ends);
    }
    return failed;
}
