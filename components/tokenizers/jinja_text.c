/* jinja_text.c - what templates call on strings and mappings, as Python's str and dict do it. */
#include "tokenizers/jinja_parts.h"
#include "tokenizers/unicode.h"

bool tune_jinja_is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
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

/* Is the character at [begin, end) one to strip: white space, or of the set. */
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

jval tune_jinja_strip(const jval *v, const jval *set, bool left, bool right)
{
    size_t begin = 0, end = v->size;
    while (left && begin < end && strips(v, begin, next_char(v, begin), set))
        begin = next_char(v, begin);
    while (right && end > begin) {
        size_t last = end - 1;
        while (((unsigned char)v->text[last] & 0xC0) == 0x80)
            last--;
        if (!strips(v, last, end, set))
            break;
        end = last;
    }
    return tune_jinja_part(v, begin, end);
}

/* Where `what` next is from `from` on; v->size + 1: nowhere. */
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
        if (old->size == 0 && done > 0) /* between all characters */
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
    return 0;
}

/* ---- splitting ---- */
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

static int split(jrun *run, const jval *v, const jval *by, int64_t most, bool right, jval *list)
{
    TRY(tune_jinja_list_new(run, 0, false, list));
    TRY(tune_jinja_step(run, v->size / 64));
    if (!by) {
        if (right && most >= 0)
            return tune_jinja_fail(run, "rsplit at white space with a limit is not supported");
        return split_space(run, v, most, list);
    }
    if (by->size == 0)
        return tune_jinja_fail(run, "a split at an empty string");
    size_t at = 0, found;
    int64_t parts = 0, skip = 0;
    if (right && most >= 0) { /* those on the left stay together, where no two separators overlap */
        for (size_t i = 0; i + by->size <= v->size; i++)
            if (i > 0 && by->size > 1 && find(v, by, i) == i && find(v, by, i - 1) < i && i - find(v, by, i - 1) < by->size)
                return tune_jinja_fail(run, "rsplit at strings that overlap is not supported");
            else if ((found = find(v, by, i)) > v->size)
                break;
            else
                i = found + by->size - 1, parts++;
        skip = parts > most ? parts - most : 0;
        most = -1;
    }
    for (size_t begin = 0;; parts = 0) {
        for (int64_t n = 0; (most < 0 || n < most) && (found = find(v, by, at)) <= v->size; n++) {
            at = found + by->size;
            if (skip-- > 0)
                continue;
            TRY(tune_jinja_list_add(run, list, tune_jinja_part(v, begin, found)));
            begin = at;
        }
        return tune_jinja_list_add(run, list, tune_jinja_part(v, begin, v->size));
    }
}

static int split_lines(jrun *run, const jval *v, bool keep, jval *list)
{
    TRY(tune_jinja_list_new(run, 0, false, list));
    TRY(tune_jinja_step(run, v->size / 64));
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
    if (v && v->type == JINJA_TEXT)
        return 0;
    return tune_jinja_fail(run, "%s() of %s; expected a string", method, v ? tune_jinja_type_name(v) : "nothing");
}

static int starts(jrun *run, const jval *of, const jval *what, bool end, jval *v)
{
    *v = tune_jinja_bool(false);
    if (what && what->type == JINJA_LIST && what->tuple) {
        for (size_t i = 0; i < what->list->count; i++) {
            TRY(text_argument(run, &what->list->items[i], "startswith"));
            v->truth |= affix(of, &what->list->items[i], end);
        }
        return 0;
    }
    TRY(text_argument(run, what, end ? "endswith" : "startswith"));
    v->truth = affix(of, what, end);
    return 0;
}

static int count_or_find(jrun *run, const jval *of, const jval *what, bool count, jval *v)
{
    int64_t n = 0;
    TRY(text_argument(run, what, count ? "count" : "find"));
    TRY(tune_jinja_step(run, of->size / 64));
    size_t at = find(of, what, 0);
    if (!count) {
        jval before = tune_jinja_part(of, 0, at <= of->size ? at : 0);
        *v = tune_jinja_int(at <= of->size ? (int64_t)tune_jinja_length(&before) : -1);
        return 0;
    }
    if (what->size == 0)
        n = (int64_t)tune_jinja_length(of) + 1;
    else
        for (; at <= of->size; at = find(of, what, at + what->size))
            n++;
    *v = tune_jinja_int(n);
    return 0;
}

static int whole_argument(jrun *run, const jval *v, int64_t otherwise, int64_t *whole)
{
    *whole = v ? v->type == JINJA_BOOL ? v->truth : v->whole : otherwise;
    if (!v || v->type == JINJA_INT || v->type == JINJA_BOOL)
        return 0;
    return tune_jinja_fail(run, "%s; expected an integer", tune_jinja_type_name(v));
}

static int text_method(jrun *run, const jval *of, const char *name, const struct tune_jinja_args *args, jval *v)
{
    const jval *first = args->count > 0 ? &args->values[0] : NULL, *second = args->count > 1 ? &args->values[1] : NULL;
    int64_t n;
    bool right = *name == 'r';
    if (strstr(name, "split") && strcmp(name, "splitlines") != 0) {
        first = tune_jinja_arg(args, 0, "sep");
        first = first && first->type == JINJA_NONE ? NULL : first;
        TRY(first ? text_argument(run, first, name) : 0);
        TRY(whole_argument(run, tune_jinja_arg(args, 1, "maxsplit"), -1, &n));
        return split(run, of, first, n, right, v);
    }
    if (strcmp(name, "splitlines") == 0) {
        first = tune_jinja_arg(args, 0, "keepends");
        return split_lines(run, of, first && tune_jinja_truth(first), v);
    }
    if (strstr(name, "strip")) {
        first = first && first->type == JINJA_NONE ? NULL : first;
        TRY(first ? text_argument(run, first, name) : 0);
        TRY(tune_jinja_step(run, (of->size / 64 + 1) * (first ? first->size : 1)));
        *v = tune_jinja_strip(of, first, *name != 'r', *name != 'l');
        return 0;
    }
    if (strcmp(name, "startswith") == 0 || strcmp(name, "endswith") == 0)
        return starts(run, of, first, *name == 'e', v);
    if (strcmp(name, "count") == 0 || strcmp(name, "find") == 0) {
        if (second)
            return tune_jinja_fail(run, "%s() between places is not supported", name);
        return count_or_find(run, of, first, *name == 'c', v);
    }
    if (strncmp(name, "remove", 6) == 0) {
        TRY(text_argument(run, first, name));
        bool has = affix(of, first, name[6] == 's') && first->size;
        *v = tune_jinja_part(of, has && name[6] == 'p' ? first->size : 0, has && name[6] == 's' ? of->size - first->size : of->size);
        return 0;
    }
    if (strcmp(name, "replace") == 0) {
        TRY(text_argument(run, first, name));
        TRY(text_argument(run, second, name));
        TRY(whole_argument(run, tune_jinja_arg(args, 2, "count"), -1, &n));
        return tune_jinja_replace(run, of, first, second, n, v);
    }
    if (strcmp(name, "join") == 0) {
        jval list;
        struct tune_jinja_buffer b = {0};
        TRY(tune_jinja_iterate(run, first ? first : of, &list));
        for (size_t i = 0; i < list.list->count; i++) {
            TRY(text_argument(run, &list.list->items[i], "join"));
            TRY(i ? tune_jinja_put_value(run, &b, of) : 0);
            TRY(tune_jinja_put_value(run, &b, &list.list->items[i]));
        }
        *v = tune_jinja_take_buffer(&b);
        return 0;
    }
    return tune_jinja_case(run, of, *name, v); /* upper, lower, capitalize, title */
}

static int pair(jrun *run, const jval *key, const jval *value, jval *v)
{
    TRY(tune_jinja_list_new(run, 2, true, v));
    TRY(tune_jinja_list_add(run, v, *key));
    return tune_jinja_list_add(run, v, *value);
}

static int dict_method(jrun *run, const jval *of, const char *name, const struct tune_jinja_args *args, jval *v)
{
    const struct tune_jinja_dict *d = of->dict;
    if (strcmp(name, "get") == 0) {
        const jval *there = NULL;
        if (args->values[0].type == JINJA_TEXT)
            there = tune_jinja_dict_find(d, args->values[0].text, args->values[0].size);
        *v = there ? *there : args->count > 1 ? args->values[1] : (jval){.type = JINJA_NONE};
        return 0;
    }
    if (strcmp(name, "copy") == 0) {
        *v = *of;
        return 0;
    }
    TRY(tune_jinja_list_new(run, d->count, false, v));
    v->view = true;
    for (size_t i = 0; i < d->count; i++) {
        jval item = *name == 'k' ? d->keys[i] : d->values[i];
        if (*name == 'i')
            TRY(pair(run, &d->keys[i], &d->values[i], &item));
        TRY(tune_jinja_list_add(run, v, item));
    }
    return 0;
}

static const struct {
    const char *name;
    int least, most;
    const char *names; /* that arguments may have */
    bool dict;
} methods[] = {
    {"capitalize", 0, 0, "", false}, {"copy", 0, 0, "", true}, {"count", 1, 3, "", false}, {"endswith", 1, 1, "", false},
    {"find", 1, 3, "", false}, {"get", 1, 2, "", true}, {"items", 0, 0, "", true}, {"join", 1, 1, "", false},
    {"keys", 0, 0, "", true}, {"lower", 0, 0, "", false}, {"lstrip", 0, 1, "", false}, {"removeprefix", 1, 1, "", false},
    {"removesuffix", 1, 1, "", false}, {"replace", 2, 3, " count ", false}, {"rsplit", 0, 2, " sep maxsplit ", false},
    {"rstrip", 0, 1, "", false}, {"split", 0, 2, " sep maxsplit ", false}, {"splitlines", 0, 1, " keepends ", false},
    {"startswith", 1, 1, "", false}, {"strip", 0, 1, "", false}, {"title", 0, 0, "", false}, {"upper", 0, 0, "", false},
    {"values", 0, 0, "", true},
};

bool tune_jinja_knows_method(struct tune_text name)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (tune_text_equal(name, methods[i].name))
            return true;
    return false;
}

int tune_jinja_method(jrun *run, const struct tune_jinja_method *m, const struct tune_jinja_args *args, jval *v)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (!tune_text_equal(m->name, methods[i].name))
            continue;
        if (methods[i].dict != (m->of.type == JINJA_DICT))
            break;
        TRY(tune_jinja_args_known(run, args, methods[i].name, methods[i].least, methods[i].most, methods[i].names));
        return (methods[i].dict ? dict_method : text_method)(run, &m->of, methods[i].name, args, v);
    }
    return tune_jinja_fail(run, "%s has no method %.*s", tune_jinja_type_name(&m->of), (int)(m->name.size > 99 ? 99 : m->name.size),
                           m->name.data);
}
