/* texts.c - texts in lower case, normalised, split into words. */
#include "metrics/texts.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/try.h"
#include "tokenizers/unicode.h"

enum { SIGMA = 0x3A3, FINAL_SIGMA = 0x3C2, DOTTED_I = 0x130 };

char *tune_text_mended(struct tune_text text, size_t *size)
{
    char *copy = malloc(text.size + 1);
    if (!copy) {
        tune_error_no_memory("a text");
        return NULL;
    }
    if (text.size)
        memcpy(copy, text.data, text.size);
    copy[text.size] = 0;
    tune_utf8_mend(copy, text.size);
    *size = text.size;
    return copy;
}

static bool is_punctuation(uint32_t c)
{
    return c < 0x80 && c > ' ' && c != 0x7F && (c == '_' || !tune_unicode_is_word(c));
}

/* A sigma at the end of a word: a letter is before it, and none behind. */
static bool is_final(const char *text, const char *sigma, const char *end)
{
    const char *next = sigma;
    tune_utf8_next(&next);
    return sigma > text && tune_unicode_is_word(tune_utf8_before(sigma)) &&
           !(next < end && tune_unicode_is_word(tune_utf8_next(&next)));
}

char *tune_text_lower(struct tune_text text, size_t *size)
{
    size_t given;
    char *from = tune_text_mended(text, &given);
    char *to = from ? malloc(2 * given + 1) : NULL, *at = to; /* a character grows to 3/2 */
    if (from && !to)
        tune_error_no_memory("a text");
    if (!to) {
        free(from);
        return NULL;
    }
    for (const char *p = from, *end = from + given; p < end;) {
        const char *here = p;
        uint32_t c = tune_utf8_next(&p), low = tune_unicode_lower(c);
        if (c == SIGMA && is_final(from, here, end))
            low = FINAL_SIGMA;
        at += tune_utf8_put(at, low);
        if (c == DOTTED_I)
            at += tune_utf8_put(at, 0x307);
    }
    *at = 0;
    *size = (size_t)(at - to);
    free(from);
    return to;
}

static bool is_article(const char *text, const char *at, const char *end, size_t *size)
{
    static const char *const articles[] = {"a", "an", "the"};
    if (at > text && tune_unicode_is_word(tune_utf8_before(at)))
        return false;
    for (int i = 0; i < 3; i++) {
        *size = strlen(articles[i]);
        const char *behind = at + *size;
        if (behind <= end && !memcmp(at, articles[i], *size) && (behind == end || !tune_unicode_is_word(tune_utf8_next(&behind))))
            return true;
    }
    return false;
}

/* Write size bytes of text to `to`, with one space for each run of white space, none at the ends.
 * It may be the same memory. */
static size_t one_space(char *to, const char *text, size_t size)
{
    char *at = to;
    bool space = false;
    for (const char *p = text, *end = text + size; p < end;) {
        const char *here = p;
        if (tune_unicode_is_space(tune_utf8_next(&p))) {
            space = true;
            continue;
        }
        if (space && at > to)
            *at++ = ' ';
        space = false;
        size_t bytes = (size_t)(p - here);
        memmove(at, here, bytes);
        at += bytes;
    }
    *at = 0;
    return (size_t)(at - to);
}

char *tune_text_squad(struct tune_text text, size_t *size)
{
    char *low = tune_text_lower(text, size), *to = low; /* without punctuation, in place */
    if (!low)
        return NULL;
    for (size_t i = 0; i < *size; i++)
        if (!is_punctuation((unsigned char)low[i]))
            *to++ = low[i];
    const char *end = to;
    char *copy = malloc((size_t)(end - low) + 1);
    if (!copy) {
        free(low);
        tune_error_no_memory("a text");
        return NULL;
    }
    size_t article;
    to = copy;
    for (const char *at = low; at < end; to++)
        if (is_article(low, at, end, &article)) {
            *to = ' ';
            at += article;
        } else
            *to = *at++;
    *size = one_space(copy, copy, (size_t)(to - copy));
    free(low);
    return copy;
}

char *tune_text_label(struct tune_text text, size_t *size)
{
    char *low = tune_text_lower(text, size);
    if (!low)
        return NULL;
    size_t begin = 0, end = one_space(low, low, *size);
    while (begin < end && (low[begin] == ' ' || is_punctuation((unsigned char)low[begin])))
        begin++;
    while (end > begin && (low[end - 1] == ' ' || is_punctuation((unsigned char)low[end - 1])))
        end--;
    *size = end - begin;
    memmove(low, low + begin, *size);
    low[*size] = 0;
    return low;
}

/* ---- symbols ---- */
static size_t hash_of(const char *word, size_t size)
{
    uint64_t h = 0xCBF29CE484222325; /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        h = (h ^ (unsigned char)word[i]) * 0x100000001B3;
    return (size_t)(h ^ h >> 32);
}

/* The slot of a word, or the free one where it belongs. */
static int32_t *slot_of(const struct tune_word_list *list, const char *word, size_t size)
{
    for (size_t i = hash_of(word, size);; i++) {
        int32_t *slot = &list->slots[i & (list->slot_count - 1)];
        const struct tune_text *w = *slot ? &list->words[*slot - 1] : NULL;
        if (!w || (w->size == size && !memcmp(w->data, word, size)))
            return slot;
    }
}

static int make_room(struct tune_word_list *list)
{
    if (2 * list->count < list->slot_count)
        return 0;
    struct tune_word_list more = *list;
    more.slot_count = list->slot_count ? 2 * list->slot_count : 64;
    more.slots = tune_zeroed(more.slot_count, sizeof *more.slots, "words of a text");
    if (!more.slots)
        return -1;
    for (size_t i = 0; i < list->count; i++)
        *slot_of(&more, list->words[i].data, list->words[i].size) = (int32_t)i + 1;
    free(list->slots);
    *list = more;
    return 0;
}

static int add_symbol(struct tune_symbols *s, uint32_t symbol)
{
    TRY(tune_array_reserve(&s->at, &s->capacity, s->count + 1, sizeof *s->at, "words of a text"));
    s->at[s->count++] = symbol;
    return 0;
}

int tune_symbols_word(struct tune_symbols *s, struct tune_word_list *list, const char *word, size_t size)
{
    TRY(make_room(list));
    int32_t *slot = slot_of(list, word, size);
    if (*slot == 0) {
        TRY(tune_array_reserve(&list->words, &list->word_capacity, list->count + 1, sizeof *list->words, "words of a text"));
        list->words[list->count] = (struct tune_text){word, size};
        *slot = (int32_t)++list->count;
    }
    return add_symbol(s, (uint32_t)*slot - 1);
}

int tune_symbols_split(struct tune_symbols *s, struct tune_word_list *list, const char *text, size_t size)
{
    const char *word = NULL, *end = text + size;
    for (const char *p = text; p < end;) {
        const char *here = p;
        bool space = tune_unicode_is_space(tune_utf8_next(&p));
        if (!space && !word)
            word = here;
        if (space && word) {
            TRY(tune_symbols_word(s, list, word, (size_t)(here - word)));
            word = NULL;
        }
    }
    return word ? tune_symbols_word(s, list, word, (size_t)(end - word)) : 0;
}

int tune_symbols_characters(struct tune_symbols *s, const char *text, size_t size)
{
    for (const char *p = text, *end = text + size; p < end;) {
        uint32_t c = tune_utf8_next(&p);
        if (!tune_unicode_is_space(c))
            TRY(add_symbol(s, c));
    }
    return 0;
}

void tune_word_list_free(struct tune_word_list *list)
{
    free(list->words);
    free(list->slots);
    *list = (struct tune_word_list){0};
}

void tune_symbols_free(struct tune_symbols *s)
{
    free(s->at);
    *s = (struct tune_symbols){0};
}
