/* task_filter.c - what filters make of an answer, as lm-eval's; what does not count in it; and re.sub. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "evaluators/tasks/parts.h"
#include "metrics/texts.h"
#include "tokenizers/unicode.h"

/* The place where the search goes on behind a match. As in Python, an empty match moves on by a character. */
static size_t behind(struct tune_text text, const struct tune_regular_span *match)
{
    size_t at = match->end;
    if (match->end > match->begin || at >= text.size)
        return match->end > match->begin ? at : text.size + 1;
    for (at++; at < text.size && ((unsigned char)text.data[at] & 0xC0) == 0x80;)
        at++;
    return at;
}

static struct tune_text strip(struct tune_text text)
{
    const char *at = text.data, *end = text.data + text.size;
    for (const char *next = at; at < end && tune_unicode_is_space(tune_utf8_next(&next)); at = next)
        ;
    while (end > at && tune_unicode_is_space(tune_utf8_before(end)))
        do
            end--;
        while (((unsigned char)*end & 0xC0) == 0x80);
    return (struct tune_text){at, (size_t)(end - at)};
}

/* A copy with a NUL behind. */
static int keep(struct tune_pool **pool, struct tune_text text, struct tune_text *out)
{
    char *copy = tune_pool_text(pool, text.data ? text.data : "", text.size);
    *out = (struct tune_text){copy, text.size};
    return copy ? 0 : tune_error_no_memory("an answer");
}

/* The text that a match gives: the group, if there is one; of several the first that is not empty. false: all of several are. */
static bool chosen(const struct task_step *s, struct tune_text text, const struct tune_regular_span *spans, struct tune_text *out)
{
    int groups = tune_regular_groups(s->regex), first = groups > 0;
    for (int g = first; g <= groups; g++) {
        struct tune_text part = {text.data + spans[g].begin, spans[g].found ? spans[g].end - spans[g].begin : 0};
        *out = strip(part);
        if (part.size > 0 || groups < 2)
            return true;
    }
    return false;
}

/* The place of match number `group` of count; -1 with an error: there are not so many. */
static int64_t select_match(const struct task_step *s, size_t count)
{
    int64_t at = s->group < 0 ? s->group + (int64_t)count : s->group;
    if (at >= 0 && at < (int64_t)count)
        return at;
    return tune_error_usage("group_select: %" PRId64 ", and the expression is found %zu times in an answer", s->group, count);
}

/* Find match number `group` of re.findall: FOUND, NOWHERE, or EMPTY if all its groups are. */
enum { NOWHERE, FOUND, EMPTY };
static int find(const struct task_step *s, struct tune_text text, struct tune_text *out)
{
    struct tune_regular_span spans[100], *found = NULL;
    size_t count = 0, room = 0, from = 0, groups = (size_t)tune_regular_groups(s->regex) + 1;
    int more = 0;
    if (groups > 100)
        return tune_error_usage("a regular expression with more than 99 groups");
    while (from <= text.size && (more = tune_regular_search(s->regex, text.data, text.size, from, spans)) == 1) {
        if (tune_array_reserve(&found, &room, (count + 1) * groups, sizeof *found, "matches") < 0) {
            more = -1;
            break;
        }
        memcpy(found + count++ * groups, spans, groups * sizeof *found);
        from = behind(text, spans);
    }
    int64_t at = more < 0 ? -1 : count ? select_match(s, count) : 0;
    int status = at < 0 ? -1 : count == 0 ? NOWHERE : chosen(s, text, found + (size_t)at * groups, out) ? FOUND : EMPTY;
    free(found);
    return status;
}

static int find_regex(const struct task_step *s, struct tune_text text, struct tune_pool **pool, struct tune_text *out)
{
    int how;
    const struct tune_text fallback = {s->fallback, strlen(s->fallback)};
    struct tune_text found;
    TRY(how = find(s, text, &found));
    return keep(pool, how == FOUND ? found : how == EMPTY ? strip(fallback) : fallback, out);
}

/* ---- multi_choice_regex ---- */
static bool is_punctuation(uint32_t c)
{
    /* the Unicode categories P, first and last of each run (Unicode 14, as Python 3.11) */
    static const uint32_t runs[] = {
    0x21,0x23, 0x25,0x2A, 0x2C,0x2F, 0x3A,0x3B, 0x3F,0x40, 0x5B,0x5D, 0x5F,0x5F, 0x7B,0x7B, 0x7D,0x7D, 0xA1,0xA1, 0xA7,0xA7, 0xAB,0xAB,
    0xB6,0xB7, 0xBB,0xBB, 0xBF,0xBF, 0x37E,0x37E, 0x387,0x387, 0x55A,0x55F, 0x589,0x58A, 0x5BE,0x5BE, 0x5C0,0x5C0, 0x5C3,0x5C3, 0x5C6,0x5C6,
    0x5F3,0x5F4, 0x609,0x60A, 0x60C,0x60D, 0x61B,0x61B, 0x61D,0x61F, 0x66A,0x66D, 0x6D4,0x6D4, 0x700,0x70D, 0x7F7,0x7F9, 0x830,0x83E,
    0x85E,0x85E, 0x964,0x965, 0x970,0x970, 0x9FD,0x9FD, 0xA76,0xA76, 0xAF0,0xAF0, 0xC77,0xC77, 0xC84,0xC84, 0xDF4,0xDF4, 0xE4F,0xE4F,
    0xE5A,0xE5B, 0xF04,0xF12, 0xF14,0xF14, 0xF3A,0xF3D, 0xF85,0xF85, 0xFD0,0xFD4, 0xFD9,0xFDA, 0x104A,0x104F, 0x10FB,0x10FB, 0x1360,0x1368,
    0x1400,0x1400, 0x166E,0x166E, 0x169B,0x169C, 0x16EB,0x16ED, 0x1735,0x1736, 0x17D4,0x17D6, 0x17D8,0x17DA, 0x1800,0x180A, 0x1944,0x1945,
    0x1A1E,0x1A1F, 0x1AA0,0x1AA6, 0x1AA8,0x1AAD, 0x1B5A,0x1B60, 0x1B7D,0x1B7E, 0x1BFC,0x1BFF, 0x1C3B,0x1C3F, 0x1C7E,0x1C7F, 0x1CC0,0x1CC7,
    0x1CD3,0x1CD3, 0x2010,0x2027, 0x2030,0x2043, 0x2045,0x2051, 0x2053,0x205E, 0x207D,0x207E, 0x208D,0x208E, 0x2308,0x230B, 0x2329,0x232A,
    0x2768,0x2775, 0x27C5,0x27C6, 0x27E6,0x27EF, 0x2983,0x2998, 0x29D8,0x29DB, 0x29FC,0x29FD, 0x2CF9,0x2CFC, 0x2CFE,0x2CFF, 0x2D70,0x2D70,
    0x2E00,0x2E2E, 0x2E30,0x2E4F, 0x2E52,0x2E5D, 0x3001,0x3003, 0x3008,0x3011, 0x3014,0x301F, 0x3030,0x3030, 0x303D,0x303D, 0x30A0,0x30A0,
    0x30FB,0x30FB, 0xA4FE,0xA4FF, 0xA60D,0xA60F, 0xA673,0xA673, 0xA67E,0xA67E, 0xA6F2,0xA6F7, 0xA874,0xA877, 0xA8CE,0xA8CF, 0xA8F8,0xA8FA,
    0xA8FC,0xA8FC, 0xA92E,0xA92F, 0xA95F,0xA95F, 0xA9C1,0xA9CD, 0xA9DE,0xA9DF, 0xAA5C,0xAA5F, 0xAADE,0xAADF, 0xAAF0,0xAAF1, 0xABEB,0xABEB,
    0xFD3E,0xFD3F, 0xFE10,0xFE19, 0xFE30,0xFE52, 0xFE54,0xFE61, 0xFE63,0xFE63, 0xFE68,0xFE68, 0xFE6A,0xFE6B, 0xFF01,0xFF03, 0xFF05,0xFF0A,
    0xFF0C,0xFF0F, 0xFF1A,0xFF1B, 0xFF1F,0xFF20, 0xFF3B,0xFF3D, 0xFF3F,0xFF3F, 0xFF5B,0xFF5B, 0xFF5D,0xFF5D, 0xFF5F,0xFF65, 0x10100,0x10102,
    0x1039F,0x1039F, 0x103D0,0x103D0, 0x1056F,0x1056F, 0x10857,0x10857, 0x1091F,0x1091F, 0x1093F,0x1093F, 0x10A50,0x10A58, 0x10A7F,0x10A7F,
    0x10AF0,0x10AF6, 0x10B39,0x10B3F, 0x10B99,0x10B9C, 0x10EAD,0x10EAD, 0x10F55,0x10F59, 0x10F86,0x10F89, 0x11047,0x1104D, 0x110BB,0x110BC,
    0x110BE,0x110C1, 0x11140,0x11143, 0x11174,0x11175, 0x111C5,0x111C8, 0x111CD,0x111CD, 0x111DB,0x111DB, 0x111DD,0x111DF, 0x11238,0x1123D,
    0x112A9,0x112A9, 0x1144B,0x1144F, 0x1145A,0x1145B, 0x1145D,0x1145D, 0x114C6,0x114C6, 0x115C1,0x115D7, 0x11641,0x11643, 0x11660,0x1166C,
    0x116B9,0x116B9, 0x1173C,0x1173E, 0x1183B,0x1183B, 0x11944,0x11946, 0x119E2,0x119E2, 0x11A3F,0x11A46, 0x11A9A,0x11A9C, 0x11A9E,0x11AA2,
    0x11C41,0x11C45, 0x11C70,0x11C71, 0x11EF7,0x11EF8, 0x11FFF,0x11FFF, 0x12470,0x12474, 0x12FF1,0x12FF2, 0x16A6E,0x16A6F, 0x16AF5,0x16AF5,
    0x16B37,0x16B3B, 0x16B44,0x16B44, 0x16E97,0x16E9A, 0x16FE2,0x16FE2, 0x1BC9F,0x1BC9F, 0x1DA87,0x1DA8B, 0x1E95E,0x1E95F,
    };
    size_t low = 0, high = sizeof runs / sizeof *runs / 2;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c > runs[2 * middle + 1])
            low = middle + 1;
        else
            high = middle;
    }
    return low < sizeof runs / sizeof *runs / 2 && c >= runs[2 * low];
}

/* The characters of re.escape(text). */
static size_t escaped_length(struct tune_text text)
{
    size_t length = 0;
    for (size_t i = 0; i < text.size; i++)
        length += (((unsigned char)text.data[i] & 0xC0) != 0x80) + (text.data[i] && strchr("()[]{}?*+-|^$\\.&~# \t\n\r\v\f", text.data[i]));
    return length;
}

/* The option that stands at this place: of several the longest, else the first. -1: none. */
static int option_at(const struct tune_text *options, int count, struct tune_text text, size_t at)
{
    int best = -1;
    for (int i = 0; i < count; i++)
        if (options[i].size <= text.size - at && !memcmp(options[i].data, text.data + at, options[i].size) &&
            (best < 0 || escaped_length(options[i]) > escaped_length(options[best])))
            best = i;
    return best;
}

/* A found text becomes the letter of the last option that it is, "(A)"; else it stays. */
static int letter_of(const struct tune_text *options, int count, struct tune_text found, struct tune_pool **pool, struct tune_text *out)
{
    found = strip(found);
    for (int i = count - 1; i >= 0; i--)
        if (options[i].size == found.size && !memcmp(options[i].data, found.data, found.size))
            return keep(pool, (struct tune_text){(char[]){'(', (char)('A' + i), ')'}, 3}, out);
    return keep(pool, found, out);
}

/* The options by their texts. FOUND, or NOWHERE. */
static int find_option(const struct task_step *s, const struct task_question *q, struct tune_text answer, struct tune_pool **pool, struct tune_text *out)
{
    struct tune_text options[26], text;
    struct tune_regular_span match;
    size_t count = 0;
    int64_t wanted = 0;
    for (int i = 0; i < q->option_count; i++)
        TRY(tune_task_ignore(&s->ignored, false, strip(q->options[i]), pool, &options[i]));
    TRY(tune_task_ignore(&s->ignored, false, answer, pool, &text));
    for (int pass = 0; pass < 2; pass++) { /* first their number */
        size_t seen = 0;
        for (size_t at = 0; at <= text.size;) {
            int option = option_at(options, q->option_count, text, at);
            match = (struct tune_regular_span){at, at + (option < 0 ? 0 : options[option].size), true};
            if (option >= 0 && pass == 1 && (int64_t)seen == wanted)
                return strip(options[option]).size == 0 ? NOWHERE : letter_of(options, q->option_count, options[option], pool, out) < 0 ? -1 : FOUND;
            seen += option >= 0;
            at = behind(text, &match);
        }
        count = seen;
        if (count == 0)
            return NOWHERE;
        TRY(wanted = select_match(s, count));
    }
    return NOWHERE;
}

/* A letter behind a colon: ": B". */
static int find_letter(const struct task_step *s, const struct task_question *q, struct tune_text answer, struct tune_pool **pool, struct tune_text *out)
{
    char expression[32];
    struct task_step letter = {.group = s->group};
    struct tune_text found;
    snprintf(expression, sizeof expression, ":[\\s]*([A-%c])", 'A' + q->option_count - 1);
    letter.regex = tune_regular_new(expression);
    int how = letter.regex ? find(&letter, answer, &found) : -1;
    if (how == FOUND && keep(pool, (struct tune_text){(char[]){'(', found.data[0], ')'}, 3}, out) < 0)
        how = -1;
    tune_regular_free(letter.regex);
    return how;
}

static int find_choice(const struct task_step *s, const struct task_question *q, struct tune_text answer, struct tune_pool **pool, struct tune_text *out)
{
    int how;
    struct tune_text found;
    TRY(how = find(s, answer, &found));
    if (how == FOUND && found.size > 0)
        return keep(pool, found, out);
    TRY(how = find_option(s, q, answer, pool, out));
    if (how != FOUND)
        TRY(how = find_letter(s, q, answer, pool, out));
    return how == FOUND ? 0 : keep(pool, (struct tune_text){s->fallback, strlen(s->fallback)}, out);
}

/* ---- others ---- */
static int change_case(struct tune_text text, bool lower, struct tune_pool **pool, struct tune_text *out)
{
    size_t size = text.size;
    char *changed = lower ? tune_text_lower(text, &size) : NULL;
    if (!lower) {
        TRY(keep(pool, text, out));
        for (size_t i = 0; i < size; i++) {
            char *c = (char *)out->data + i;
            if (*c & 0x80)
                return tune_error_usage("the filter uppercase: letters outside ASCII are not known here");
            *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 32) : *c;
        }
        return 0;
    }
    int status = changed ? keep(pool, (struct tune_text){changed, size}, out) : -1;
    free(changed);
    return status;
}

int tune_task_filter_apply(const struct task_filter *f, const struct task_question *q, struct tune_text answer, struct tune_pool **pool,
                           struct tune_text *out)
{
    TRY(keep(pool, answer, out));
    for (int i = 0; i < f->count; i++) {
        struct tune_text in = *out;
        switch (f->steps[i].kind) {
        case TASK_REGEX: TRY(find_regex(&f->steps[i], in, pool, out)); break;
        case TASK_MULTI_CHOICE: TRY(find_choice(&f->steps[i], q, in, pool, out)); break;
        case TASK_STRIP: TRY(keep(pool, strip(in), out)); break;
        case TASK_LOWER: TRY(change_case(in, true, pool, out)); break;
        case TASK_UPPER: TRY(change_case(in, false, pool, out)); break;
        default: break; /* all answers are the same one */
        }
    }
    return 0;
}

/* ---- what does not count ---- */
int tune_task_ignore(const struct task_ignored *g, bool ascii, struct tune_text text, struct tune_pool **pool, struct tune_text *out)
{
    *out = text;
    for (int i = 0; i < g->count; i++)
        TRY(tune_task_replace(g->regexes[i], *out, pool, out));
    if (g->letters) {
        size_t size;
        char *low = tune_text_lower(*out, &size);
        TRY(low ? 0 : -1);
        const char *copy = tune_pool_text(pool, low, size);
        free(low);
        *out = (struct tune_text){copy, size};
    }
    char *to = tune_pool_take(pool, out->size + 1);
    if (!to || !out->data)
        return tune_error_no_memory("an answer");
    size_t size = 0;
    for (const char *at = out->data, *end = at + out->size, *from = at; at < end; from = at) {
        uint32_t c = tune_utf8_next(&at);
        bool punctuation = g->punctuation && (ascii ? c < 128 && ispunct((int)c) : is_punctuation(c));
        if (punctuation || (g->numbers && c >= '0' && c <= '9'))
            continue;
        memcpy(to + size, from, (size_t)(at - from));
        size += (size_t)(at - from);
    }
    *out = (struct tune_text){to, size};
    return 0;
}

int tune_task_replace(struct tune_regular *r, struct tune_text text, struct tune_pool **pool, struct tune_text *out)
{
    struct tune_regular_span spans[100];
    char *to = tune_pool_take(pool, text.size + 1);
    size_t size = 0, copied = 0, from = 0;
    int more = 0;
    if (!to)
        return tune_error_no_memory("an answer");
    if (tune_regular_groups(r) >= 100)
        return tune_error_usage("a regular expression with more than 99 groups");
    while (from <= text.size && (more = tune_regular_search(r, text.data, text.size, from, spans)) == 1) {
        memcpy(to + size, text.data + copied, spans->begin - copied);
        size += spans->begin - copied;
        copied = spans->end;
        from = behind(text, spans);
    }
    TRY(more);
    memcpy(to + size, text.data + copied, text.size - copied);
    *out = (struct tune_text){to, size + text.size - copied};
    return 0;
}
