/* jinja_text.c - methods of strings and mappings, like Python's str and dict. */
#include "templates/jinja_parts.h"
#include "tokenizers/unicode.h"

bool tune_jinja_is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) ||
           c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

size_t tune_jinja_length(const jval *v)
{
    size_t n = 0;
    for (size_t i = 0; i < v->size; i++)
        n += ((unsigned char)v->text[i] & 0xC0) != 0x80;
    return n;
}

static size_t next_char(const jval *v, size_t at)
{
    while (++at < v->size && ((unsigned char)v->text[at] & 0xC0) == 0x80)
        ;
    return at;
}

size_t tune_jinja_offset(const jval *v, size_t characters)
{
    size_t at = 0;
    for (; characters > 0 && at < v->size; characters--)
        at = next_char(v, at);
    return at;
}

/* True if the character at [begin, end) is to be stripped: white space, or in the set. */
static bool strips(const jval *v, size_t begin, size_t end, const jval *set)
{
    const char *p = v->text + begin;
    if (!set)
        return tune_jinja_is_space(tune_utf8_next(&p));
    for (size_t i = 0, next; i < set->size; i = next) {
        next = next_char(set, i);
        if (next - i == end - begin && memcmp(set->text + i, p, end - begin) == 0)
            return true;
    }
    return false;
}

int tune_jinja_strip(jrun *run, const jval *v, const jval *set, bool left, bool right, jval *to)
{
    size_t begin = 0, end = v->size, each = set ? set->size : 0;
    while (left && begin < end && strips(v, begin, next_char(v, begin), set)) {
        TRY(tune_jinja_step(run, each));
        begin = next_char(v, begin);
    }
    TRY(tune_jinja_step(run, 2 * each)); /* cost of the characters that remain */
    while (right && end > begin) {
        TRY(tune_jinja_step(run, each));
        size_t last = end - 1;
        while (((unsigned char)v->text[last] & 0xC0) == 0x80)
            last--;
        if (!strips(v, last, end, set))
            break;
        end = last;
    }
    *to = tune_jinja_part(v, begin, end);
    return 0;
}

/* The next position of `what` from `from` on; v->size + 1: none. */
static size_t find(const jval *v, const jval *what, size_t from)
{
    const char *p = what->size ? memmem(v->text + from, v->size - from, what->text, what->size) : v->text + from;
    return p ? (size_t)(p - v->text) : v->size + 1;
}

int tune_jinja_replace(jrun *run, const jval *v, const jval *old, const jval *new_, int64_t most, jval *to)
{
    struct tune_jinja_buffer b = {0};
    size_t at = 0;
    TRY(tune_jinja_step(run, v->size / 64));
    for (int64_t done = 0; most < 0 || done < most; done++) {
        size_t found = find(v, old, at);
        if (old->size == 0 && done > 0) /* an empty text matches between all characters */
            found = at < v->size ? next_char(v, at) : v->size + 1;
        if (found > v->size)
            break;
        TRY(tune_jinja_put(run, &b, v->text + at, v->marks ? v->marks + at : NULL, v->mark, found - at));
        TRY(tune_jinja_put(run, &b, new_->text, new_->marks, new_->mark, new_->size));
        TRY(tune_jinja_step(run, 0));
        at = found + old->size;
    }
    TRY(tune_jinja_put(run, &b, v->text + at, v->marks ? v->marks + at : NULL, v->mark, v->size - at));
    *to = tune_jinja_take_buffer(&b);
    return 0;
}

int tune_jinja_case(jrun *run, const jval *v, char how, jval *to)
{
    struct tune_jinja_buffer b = {0};
    bool begins = true;
    TRY(tune_jinja_put_value(run, &b, v));
    for (size_t i = 0; i < b.size; i++) {
        char c = b.text[i], low = (char)(c | 32);
        bool is_letter = low >= 'a' && low <= 'z';
        if ((unsigned char)c >= 0x80)
            return tune_jinja_fail(run, "upper or lower case of text outside ASCII is not supported");
        bool up = how == 'u' || (begins && how != 'l');
        if (is_letter)
            b.text[i] = up ? (char)(c & ~32) : low;
        if (how == 't')
            begins = !is_letter;
        else if (how == 'w')
            begins = tune_jinja_is_space((unsigned char)c) || strchr("-({[<", c);
        else
            begins = false;
    }
    *to = tune_jinja_take_buffer(&b);
    to->safe = v->safe && how != 'w';
    return 0;
}

/* ---- splitting: looking at a character costs a step ---- */
static int split_space(jrun *run, const jval *v, int64_t most, jval *list)
{
    size_t at = 0;
    for (int64_t n = 0;; n++) {
        while (at < v->size && strips(v, at, next_char(v, at), NULL))
            at = next_char(v, at);
        if (at == v->size)
            return 0;
        size_t end = at;
        while (end < v->size && (n == most || !strips(v, end, next_char(v, end), NULL)))
            end = next_char(v, end);
        jval part = tune_jinja_part(v, at, end);
        TRY(tune_jinja_list_add(run, list, part));
        at = end;
    }
}

/* The last position of `what` that ends at or before `end`; v->size + 1: none. */
static size_t find_last(const jval *v, const jval *what, size_t end)
{
    for (size_t at = end >= what->size ? end - what->size + 1 : 0; at-- > 0;)
        if (memcmp(v->text + at, what->text, what->size) == 0)
            return at;
    return v->size + 1;
}

JINJA_RUN(split)
{
    const jval *by = args->at[0] && args->at[0]->type == JINJA_NONE ? NULL : args->at[0];
    size_t begin = 0, end = of->size, found;
    int64_t most;
    TRY(tune_jinja_whole(run, args->at[1], -1, &most));
    TRY(tune_jinja_list_new(run, 0, false, v));
    TRY(tune_jinja_step(run, !by ? of->size : what->how ? of->size * (1 + by->size / 64) : of->size / 64));
    if (!by && what->how && most >= 0)
        return tune_jinja_fail(run, "rsplit at white space with a limit is not supported");
    if (!by)
        return split_space(run, of, most, v);
    if (by->type != JINJA_TEXT || by->size == 0)
        return tune_jinja_fail(run, "%s() at %s", what->name, by->size ? tune_jinja_type_name(by) : "an empty string");
    for (int64_t n = 0; most < 0 || n < most; n++) {
        found = what->how ? find_last(of, by, end) : find(of, by, begin);
        if (found > of->size)
            break;
        jval part = what->how ? tune_jinja_part(of, found + by->size, end) : tune_jinja_part(of, begin, found);
        TRY(tune_jinja_list_add(run, v, part));
        end = what->how ? found : end;
        begin = what->how ? begin : found + by->size;
    }
    TRY(tune_jinja_list_add(run, v, tune_jinja_part(of, begin, end)));
    /* rsplit finds them in reverse order */
    for (size_t i = 0, k = v->list->count; what->how && i + 1 < k--; i++) {
        jval item = v->list->items[i];
        v->list->items[i] = v->list->items[k];
        v->list->items[k] = item;
    }
    return 0;
}

int tune_jinja_lines(jrun *run, const jval *v, bool keep, jval *list)
{
    TRY(tune_jinja_list_new(run, 0, false, list));
    TRY(tune_jinja_step(run, v->size));
    for (size_t begin = 0, at = 0; at < v->size;) {
        const char *p = v->text + at;
        uint32_t c = tune_utf8_next(&p);
        size_t next = (size_t)(p - v->text);
        bool ends = (c >= 10 && c <= 13) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
        if (c == '\r' && next < v->size && v->text[next] == '\n')
            next++;
        if (ends)
            TRY(tune_jinja_list_add(run, list, tune_jinja_part(v, begin, keep ? next : at)));
        else if (next == v->size)
            TRY(tune_jinja_list_add(run, list, tune_jinja_part(v, begin, next)));
        begin = ends ? next : begin;
        at = next;
    }
    return 0;
}

/* ---- methods ---- */
static bool affix(const jval *v, const jval *what, bool end)
{
    return what->size <= v->size &&
           (what->size == 0 || memcmp(v->text + (end ? v->size - what->size : 0), what->text, what->size) == 0);
}

static int text_argument(jrun *run, const jval *v, const char *method)
{
    if (v->type == JINJA_TEXT)
        return 0;
    return tune_jinja_fail(run, "%s() of %s; expected a string", method, tune_jinja_type_name(v));
}

int tune_jinja_whole(jrun *run, const jval *v, int64_t otherwise, int64_t *whole)
{
    *whole = v ? v->type == JINJA_BOOL ? v->truth : v->whole : otherwise;
    if (!v || v->type == JINJA_INT || v->type == JINJA_BOOL)
        return 0;
    return tune_jinja_fail(run, "%s; expected an integer", tune_jinja_type_name(v));
}

JINJA_RUN(starts)
{
    jval one = *args->at[0];
    struct tune_jinja_list single = {.count = 1, .items = &one};
    const struct tune_jinja_list *any = one.type == JINJA_LIST && one.tuple ? one.list : &single;
    *v = tune_jinja_bool(false);
    for (size_t i = 0; i < any->count; i++) {
        TRY(text_argument(run, &any->items[i], what->name));
        TRY(tune_jinja_step(run, any->items[i].size / 64));
        v->truth |= affix(of, &any->items[i], what->how);
    }
    return 0;
}

JINJA_RUN(find_text)
{
    TRY(text_argument(run, args->at[0], what->name));
    TRY(tune_jinja_step(run, of->size / 16));
    size_t at = find(of, args->at[0], 0);
    jval before = tune_jinja_part(of, 0, at <= of->size ? at : 0);
    *v = tune_jinja_int(at <= of->size ? (int64_t)tune_jinja_length(&before) : -1);
    return 0;
}

JINJA_RUN(lines)
{
    (void)what;
    return tune_jinja_lines(run, of, args->at[0] && tune_jinja_truth(args->at[0]), v);
}

JINJA_RUN(strip)
{
    const jval *set = args->at[0] && args->at[0]->type == JINJA_NONE ? NULL : args->at[0];
    TRY(set ? text_argument(run, set, what->name) : 0);
    return tune_jinja_strip(run, of, set, what->how != 'r', what->how != 'l', v);
}

JINJA_RUN(without)
{
    const jval *part = args->at[0];
    TRY(text_argument(run, part, what->name));
    TRY(tune_jinja_step(run, part->size / 64));
    size_t cut = affix(of, part, what->how) ? part->size : 0;
    *v = tune_jinja_part(of, what->how ? 0 : cut, what->how ? of->size - cut : of->size);
    return 0;
}

JINJA_RUN(replace)
{
    int64_t most;
    TRY(text_argument(run, args->at[0], what->name));
    TRY(text_argument(run, args->at[1], what->name));
    TRY(tune_jinja_whole(run, args->at[2], -1, &most));
    return tune_jinja_replace(run, of, args->at[0], args->at[1], most, v);
}

JINJA_RUN(join)
{
    jval list;
    struct tune_jinja_buffer b = {0};
    TRY(tune_jinja_iterate(run, args->at[0], &list));
    for (size_t i = 0; i < list.list->count; i++) {
        TRY(text_argument(run, &list.list->items[i], what->name));
        TRY(i ? tune_jinja_put_value(run, &b, of) : 0);
        TRY(tune_jinja_put_value(run, &b, &list.list->items[i]));
    }
    *v = tune_jinja_take_buffer(&b);
    return 0;
}

JINJA_RUN(change_case)
{
    (void)args;
    return tune_jinja_case(run, of, (char)what->how, v);
}

int tune_jinja_entries(jrun *run, const jval *of, char how, jval *v)
{
    const struct tune_jinja_dict *d = of->dict;
    TRY(tune_jinja_list_new(run, d->count, false, v));
    v->view = JINJA_VIEW;
    for (size_t i = 0; i < d->count; i++) {
        jval item = how == 'k' ? d->keys[i] : d->values[i];
        if (how == 'i') {
            TRY(tune_jinja_list_new(run, 2, true, &item));
            TRY(tune_jinja_list_add(run, &item, d->keys[i]));
            TRY(tune_jinja_list_add(run, &item, d->values[i]));
        }
        TRY(tune_jinja_list_add(run, v, item));
    }
    return 0;
}

JINJA_RUN(entries)
{
    (void)args;
    return tune_jinja_entries(run, of, (char)what->how, v);
}

JINJA_RUN(get)
{
    (void)what;
    const jval *there = tune_jinja_dict_at(run, of->dict, args->at[0]);
    *v = there ? *there : args->at[1] ? *args->at[1] : (jval){.type = JINJA_NONE};
    return 0;
}

JINJA_RUN(list_places) /* how: 'i', the place of the first equal item; 'c', how many there are */
{
    int64_t count = 0;
    for (size_t i = 0; i < of->list->count; i++) {
        bool equal;
        TRY(tune_jinja_equal(run, &of->list->items[i], args->at[0], 0, &equal));
        if (equal && what->how == 'i') {
            *v = tune_jinja_int((int64_t)i);
            return 0;
        }
        count += equal;
    }
    if (what->how == 'i')
        return tune_jinja_fail(run, "index: the list of %zu items has no such item", of->list->count);
    *v = tune_jinja_int(count);
    return 0;
}

const struct tune_jinja_name tune_jinja_list_methods[] = {
    {"count", 1, 1, "", list_places, 'c'}, {"index", 1, 1, "", list_places, 'i'}, {0},
};
const struct tune_jinja_name tune_jinja_text_methods[] = {
    {"capitalize", 0, 0, "", change_case, 'c'}, {"endswith", 1, 1, "", starts, true}, {"find", 1, 1, "", find_text, 0},
    {"join", 1, 1, "", join, 0}, {"lower", 0, 0, "", change_case, 'l'}, {"lstrip", 0, 1, "", strip, 'l'},
    {"removeprefix", 1, 1, "", without, false}, {"removesuffix", 1, 1, "", without, true},
    {"replace", 2, 3, "- - count", replace, 0},
    {"rsplit", 0, 2, "sep maxsplit", split, true}, {"rstrip", 0, 1, "", strip, 'r'}, {"split", 0, 2, "sep maxsplit", split, false},
    {"splitlines", 0, 1, "keepends", lines, 0}, {"startswith", 1, 1, "", starts, false}, {"strip", 0, 1, "", strip, 0},
    {"title", 0, 0, "", change_case, 't'}, {"upper", 0, 0, "", change_case, 'u'}, {0},
};
const struct tune_jinja_name tune_jinja_dict_methods[] = {
    {"get", 1, 2, "", get, 0}, {"items", 0, 0, "", entries, 'i'}, {"keys", 0, 0, "", entries, 'k'},
    {"values", 0, 0, "", entries, 'v'}, {0},
};
