/* task_filter.c - what filters make of an answer, as lm-eval's; and re.sub. */
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

/* The text that a match gives: the group, if there is one; of several the first that is not empty. */
static struct tune_text chosen(const struct task_step *s, struct tune_text text, const struct tune_regular_span *spans)
{
    int groups = tune_regular_groups(s->regex), first = groups > 0;
    for (int g = first; g <= groups; g++) {
        struct tune_text part = {text.data + spans[g].begin, spans[g].found ? spans[g].end - spans[g].begin : 0};
        if (part.size > 0 || groups < 2)
            return strip(part);
    }
    return strip((struct tune_text){s->fallback, strlen(s->fallback)});
}

/* re.findall, and of its matches number `group`. */
static int find(const struct task_step *s, struct tune_text text, struct tune_pool **pool, struct tune_text *out)
{
    struct tune_regular_span spans[100];
    struct tune_text *found = NULL;
    size_t count = 0, room = 0, from = 0;
    int more = 1;
    if (tune_regular_groups(s->regex) >= 100)
        return tune_error_usage("a regular expression with more than 99 groups");
    while (from <= text.size && (more = tune_regular_search(s->regex, text.data, text.size, from, spans)) == 1) {
        if (tune_array_reserve(&found, &room, count + 1, sizeof *found, "matches") < 0) {
            more = -1;
            break;
        }
        found[count++] = chosen(s, text, spans);
        from = behind(text, spans);
    }
    int64_t at = s->group < 0 ? s->group + (int64_t)count : s->group;
    int status = more < 0 ? -1 : 0;
    if (status == 0 && count > 0 && (at < 0 || at >= (int64_t)count))
        status = tune_error_usage("group_select: %" PRId64 ", and the expression is found %zu times in an answer", s->group, count);
    if (status == 0)
        status = keep(pool, count ? found[at] : (struct tune_text){s->fallback, strlen(s->fallback)}, out);
    free(found);
    return status;
}

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

int tune_task_filter_apply(const struct task_filter *f, struct tune_text answer, struct tune_pool **pool, struct tune_text *out)
{
    TRY(keep(pool, answer, out));
    for (int i = 0; i < f->count; i++) {
        struct tune_text in = *out;
        switch (f->steps[i].kind) {
        case TASK_REGEX: TRY(find(&f->steps[i], in, pool, out)); break;
        case TASK_STRIP: TRY(keep(pool, strip(in), out)); break;
        case TASK_LOWER: TRY(change_case(in, true, pool, out)); break;
        case TASK_UPPER: TRY(change_case(in, false, pool, out)); break;
        default: break; /* there is one answer to take */
        }
    }
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
