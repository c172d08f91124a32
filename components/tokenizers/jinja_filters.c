/* jinja_filters.c - filters, tests and functions, by name. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/decimal.h"
#include "tokenizers/jinja_parts.h"
#include "tokenizers/unicode.h"

typedef const struct tune_jinja_args arguments;

/* ---- arguments ---- */
const jval *tune_jinja_arg(arguments *args, int place, const char *name)
{
    if (place < args->count && !args->names[place].data)
        return &args->values[place];
    for (int i = 0; i < args->count; i++)
        if (args->names[i].data && tune_text_equal(args->names[i], name))
            return &args->values[i];
    return NULL;
}

int tune_jinja_args_known(jrun *run, arguments *args, const char *what, int least, int most, const char *names)
{
    char word[80];
    if (args->count < least || args->count > most)
        return tune_jinja_fail(run, "%s with %d arguments; expected %d to %d", what, args->count, least, most);
    for (int i = 0; i < args->count; i++) {
        snprintf(word, sizeof word, " %.*s ", (int)(args->names[i].size > 70 ? 70 : args->names[i].size),
                 args->names[i].data ? args->names[i].data : "");
        if (args->names[i].data && (args->names[i].size > 70 || !strstr(names, word)))
            return tune_jinja_fail(run, "%s has no argument%s(or none that is supported)", what, word);
    }
    return 0;
}

/* ---- JSON as Python's json.dumps writes it ---- */
struct json {
    const jval *item, *pair, *indent;
    bool ascii, sorted;
};

static int put_string(jrun *run, struct tune_jinja_buffer *b, const jval *v, bool ascii)
{
    char code[16];
    TRY(tune_jinja_put(run, b, "\"", NULL, 0, 1));
    for (size_t i = 0, next; i < v->size; i = next) {
        const char *p = v->text + i;
        uint32_t c = tune_utf8_next(&p);
        next = (size_t)(p - v->text);
        const char *short_ = c < 127 && c && strchr("\"\"\\\\\nn\rr\tt\bb\ff", (int)c) ? strchr("\"\"\\\\\nn\rr\tt\bb\ff", (int)c) : NULL;
        bool escaped = c < 32 || c == '"' || c == '\\' || (ascii && c > 126);
        if (!escaped) {
            TRY(tune_jinja_put(run, b, v->text + i, v->marks ? v->marks + i : NULL, v->mark, next - i));
            continue;
        }
        if (c < 127 && short_)
            snprintf(code, sizeof code, "\\%c", short_[1]);
        else if (c > 0xFFFF)
            snprintf(code, sizeof code, "\\u%04x\\u%04x", 0xD800 + ((c - 0x10000) >> 10), 0xDC00 + ((c - 0x10000) & 0x3FF));
        else
            snprintf(code, sizeof code, "\\u%04x", c);
        TRY(tune_jinja_put(run, b, code, NULL, v->marks ? v->marks[i] : v->mark, strlen(code)));
    }
    return tune_jinja_put(run, b, "\"", NULL, 0, 1);
}

static int new_line(jrun *run, struct tune_jinja_buffer *b, const struct json *j, int depth)
{
    if (!j->indent)
        return 0;
    TRY(tune_jinja_put(run, b, "\n", NULL, 0, 1));
    for (int64_t i = 0; i < (j->indent->type == JINJA_TEXT ? depth : depth * (j->indent->whole < 0 ? 0 : j->indent->whole)); i++)
        TRY(j->indent->type == JINJA_TEXT ? tune_jinja_put_value(run, b, j->indent) : tune_jinja_put(run, b, " ", NULL, 0, 1));
    return 0;
}

static int by_key(const void *a, const void *b)
{
    const jval *x = *(const jval *const *)a, *y = *(const jval *const *)b;
    size_t n = x->size < y->size ? x->size : y->size;
    int order = n ? memcmp(x->text, y->text, n) : 0;
    return order ? order : x->size < y->size ? -1 : x->size > y->size;
}

static int put_json(jrun *run, struct tune_jinja_buffer *b, const jval *v, const struct json *j, int depth)
{
    char text[TUNE_DECIMAL_SIZE];
    bool dict = v->type == JINJA_DICT;
    TRY(tune_jinja_step(run, 0));
    if (depth > TUNE_JINJA_DEPTH)
        return tune_jinja_fail(run, "values nested more than %d deep", TUNE_JINJA_DEPTH);
    switch (v->type) {
    case JINJA_TEXT: return put_string(run, b, v, j->ascii);
    case JINJA_NONE: return tune_jinja_put(run, b, "null", NULL, 0, 4);
    case JINJA_BOOL: return tune_jinja_put(run, b, v->truth ? "true" : "false", NULL, 0, v->truth ? 4 : 5);
    case JINJA_FLOAT:
        if (!isfinite(v->number))
            return tune_jinja_put_value(run, b, &(jval){.type = JINJA_TEXT, .text = isnan(v->number) ? "NaN" : v->number > 0 ? "Infinity" : "-Infinity",
                                                        .size = isnan(v->number) ? 3 : v->number > 0 ? 8 : 9});
        /* fall through */
    case JINJA_INT:
        if (v->type == JINJA_INT)
            snprintf(text, sizeof text, "%lld", (long long)v->whole);
        else
            tune_decimal_python(text, v->number);
        return tune_jinja_put(run, b, text, NULL, 0, strlen(text));
    case JINJA_LIST:
        if (v->view)
            return tune_jinja_fail(run, "tojson of what keys(), values() or items() gives; make it a list first");
        break;
    case JINJA_DICT: break;
    default: return tune_jinja_fail(run, "tojson of %s", tune_jinja_type_name(v));
    }
    size_t count = dict ? v->dict->count : v->list->count;
    const jval **keys = dict && count ? tune_jinja_take(&run->memory, count * sizeof *keys) : NULL;
    if (dict && count && !keys)
        return -1;
    for (size_t i = 0; dict && i < count; i++)
        keys[i] = &v->dict->keys[i];
    if (keys && j->sorted)
        qsort(keys, count, sizeof *keys, by_key);
    TRY(tune_jinja_put(run, b, dict ? "{" : "[", NULL, 0, 1));
    for (size_t i = 0; i < count; i++) {
        TRY(i ? tune_jinja_put_value(run, b, j->item) : 0);
        TRY(new_line(run, b, j, depth + 1));
        if (dict) {
            TRY(put_string(run, b, keys[i], j->ascii));
            TRY(tune_jinja_put_value(run, b, j->pair));
        }
        TRY(put_json(run, b, dict ? &v->dict->values[keys[i] - v->dict->keys] : &v->list->items[i], j, depth + 1));
    }
    TRY(count ? new_line(run, b, j, depth) : 0);
    return tune_jinja_put(run, b, dict ? "}" : "]", NULL, 0, 1);
}

static int to_json(jrun *run, const jval *of, arguments *args, jval *v)
{
    const jval *ascii = tune_jinja_arg(args, 0, "ensure_ascii"), *indent = tune_jinja_arg(args, 1, "indent"),
               *separators = tune_jinja_arg(args, 2, "separators"), *sorted = tune_jinja_arg(args, 3, "sort_keys");
    jval item, pair = tune_jinja_word(": ");
    struct tune_jinja_buffer b = {0};
    indent = indent && indent->type == JINJA_NONE ? NULL : indent;
    if (indent && indent->type != JINJA_INT && indent->type != JINJA_TEXT)
        return tune_jinja_fail(run, "tojson with %s as indent; expected an integer or a string", tune_jinja_type_name(indent));
    item = tune_jinja_word(indent ? "," : ", ");
    if (separators && separators->type != JINJA_NONE) {
        if (separators->type != JINJA_LIST || separators->list->count != 2 || separators->list->items[0].type != JINJA_TEXT ||
            separators->list->items[1].type != JINJA_TEXT)
            return tune_jinja_fail(run, "tojson with separators that are not two strings");
        item = separators->list->items[0];
        pair = separators->list->items[1];
    }
    struct json j = {&item, &pair, indent, ascii && tune_jinja_truth(ascii), sorted && tune_jinja_truth(sorted)};
    TRY(put_json(run, &b, of, &j, 0));
    *v = tune_jinja_take_buffer(&b);
    return 0;
}

/* ---- filters over sequences ---- */
/* a.b.0 of an item, as attribute= means it. */
static int attribute_of(jrun *run, const jval *of, const jval *path, jval *v)
{
    *v = *of;
    if (path->type != JINJA_TEXT)
        return tune_jinja_item(run, of, path, v);
    for (size_t at = 0, end; at <= path->size; at = end + 1) {
        jval part, from = *v;
        for (end = at; end < path->size && path->text[end] != '.'; end++)
            ;
        part = tune_jinja_part(path, at, end);
        char *rest;
        if (part.size > 0 && part.size < 10 && part.text[0] >= '0' && part.text[0] <= '9') {
            long index = strtol(part.text, &rest, 10);
            if (rest == part.text + part.size)
                part = tune_jinja_int(index);
        }
        TRY(tune_jinja_item(run, &from, &part, v));
    }
    return 0;
}

/* select, reject, selectattr, rejectattr: by a test's name, or by what counts as true. */
static int choose(jrun *run, const jval *of, arguments *args, bool attribute, bool keep, jval *v)
{
    jval list;
    if (attribute && args->count < 1)
        return tune_jinja_fail(run, "selectattr or rejectattr without an attribute");
    const jval *test = args->count > attribute ? &args->values[attribute] : NULL;
    struct tune_jinja_args rest = {0};
    if (args->count > 1 + attribute)
        rest = (struct tune_jinja_args){args->values + attribute + 1, args->names + attribute + 1, args->count - attribute - 1};
    if (test && (test->type != JINJA_TEXT || !tune_jinja_knows_test((struct tune_text){test->text, test->size})))
        return tune_jinja_fail(run, "the test that is named in select or reject is not supported");
    TRY(tune_jinja_iterate(run, of, &list));
    TRY(tune_jinja_list_new(run, 0, false, v));
    for (size_t i = 0; i < list.list->count; i++) {
        jval item = list.list->items[i];
        if (attribute)
            TRY(attribute_of(run, &list.list->items[i], &args->values[0], &item));
        bool holds = tune_jinja_truth(&item);
        if (test)
            TRY(tune_jinja_test(run, (struct tune_text){test->text, test->size}, &item, &rest, &holds));
        if (holds == keep)
            TRY(tune_jinja_list_add(run, v, list.list->items[i]));
    }
    return 0;
}

static int map(jrun *run, const jval *of, arguments *args, jval *v)
{
    jval list, item;
    const jval *attribute = tune_jinja_arg(args, 99, "attribute"), *otherwise = tune_jinja_arg(args, 99, "default");
    struct tune_jinja_args rest = {0};
    if (args->count > 1)
        rest = (struct tune_jinja_args){args->values + 1, args->names + 1, args->count - 1};
    if (!attribute && (args->count < 1 || args->names[0].data || args->values[0].type != JINJA_TEXT ||
                       !tune_jinja_knows_filter((struct tune_text){args->values[0].text, args->values[0].size})))
        return tune_jinja_fail(run, "map without attribute= or the name of a filter that is supported");
    TRY(tune_jinja_iterate(run, of, &list));
    TRY(tune_jinja_list_new(run, 0, false, v));
    for (size_t i = 0; i < list.list->count; i++) {
        if (attribute)
            TRY(attribute_of(run, &list.list->items[i], attribute, &item));
        else
            TRY(tune_jinja_filter(run, (struct tune_text){args->values[0].text, args->values[0].size}, &list.list->items[i], &rest, &item));
        if (attribute && otherwise && item.type == JINJA_UNDEFINED)
            item = *otherwise;
        TRY(tune_jinja_list_add(run, v, item));
    }
    return 0;
}

static int join(jrun *run, const jval *of, arguments *args, jval *v)
{
    const jval *by = tune_jinja_arg(args, 0, "d"), *attribute = tune_jinja_arg(args, 1, "attribute");
    jval list, item;
    struct tune_jinja_buffer b = {0};
    TRY(tune_jinja_iterate(run, of, &list));
    for (size_t i = 0; i < list.list->count; i++) {
        item = list.list->items[i];
        if (attribute)
            TRY(attribute_of(run, &list.list->items[i], attribute, &item));
        if (i && by)
            TRY(tune_jinja_put_value(run, &b, by));
        TRY(tune_jinja_put_value(run, &b, &item));
    }
    *v = tune_jinja_take_buffer(&b);
    return 0;
}

/* Sorted by insertion into halves (stable), of pairs by their key or value; letters' case does not count unless asked. */
static int dict_sort(jrun *run, const jval *of, arguments *args, jval *v)
{
    const jval *cased = tune_jinja_arg(args, 0, "case_sensitive"), *by = tune_jinja_arg(args, 1, "by"), *back = tune_jinja_arg(args, 2, "reverse");
    struct tune_jinja_method items = {.of = *of, .name = {"items", 5}};
    bool value = by && tune_jinja_is(by, "value"), reverse = back && tune_jinja_truth(back);
    jval list, *keys;
    if (of->type != JINJA_DICT || (by && !value && !tune_jinja_is(by, "key")))
        return tune_jinja_fail(run, "dictsort of %s; expected a mapping, by 'key' or 'value'", tune_jinja_type_name(of));
    TRY(tune_jinja_method(run, &items, &(struct tune_jinja_args){0}, &list));
    size_t count = list.list->count;
    if (!(keys = tune_jinja_take(&run->memory, (count + 1) * sizeof *keys)))
        return -1;
    for (size_t i = 0; i < count; i++) {
        jval pair = list.list->items[i], key = pair.list->items[value];
        if (key.type == JINJA_TEXT && !(cased && tune_jinja_truth(cased)))
            TRY(tune_jinja_case(run, &key, 'l', &key));
        size_t at = i;
        for (int order = 1; at > 0; at--) {
            TRY(tune_jinja_order(run, &keys[at - 1], &key, 0, &order));
            if (reverse ? order != -1 : order != 1)
                break;
            keys[at] = keys[at - 1];
            list.list->items[at] = list.list->items[at - 1];
        }
        keys[at] = key;
        list.list->items[at] = pair;
    }
    list.view = false;
    *v = list;
    return 0;
}

static int indent(jrun *run, const jval *of, arguments *args, jval *v)
{
    const jval *width = tune_jinja_arg(args, 0, "width"), *first = tune_jinja_arg(args, 1, "first"), *blank = tune_jinja_arg(args, 2, "blank");
    jval text, lines, by = tune_jinja_word("    "), newline = tune_jinja_word("\n"), keep = tune_jinja_bool(false);
    struct tune_jinja_buffer b = {0};
    struct tune_jinja_args one = {&keep, &(struct tune_text){0}, 1};
    if (width && width->type == JINJA_TEXT)
        by = *width;
    else if (width)
        TRY(tune_jinja_binary(run, '*', &(jval){.type = JINJA_TEXT, .text = " ", .size = 1}, width, &by));
    TRY(tune_jinja_binary(run, '+', of, &newline, &text));
    TRY(tune_jinja_method(run, &(struct tune_jinja_method){.of = text, .name = {"splitlines", 10}}, &one, &lines));
    for (size_t i = 0; i < lines.list->count; i++) {
        const jval *line = &lines.list->items[i];
        bool in = i ? line->size > 0 || (blank && tune_jinja_truth(blank)) : first && tune_jinja_truth(first);
        TRY(i ? tune_jinja_put_value(run, &b, &newline) : 0);
        TRY(in ? tune_jinja_put_value(run, &b, &by) : 0);
        TRY(tune_jinja_put_value(run, &b, line));
    }
    *v = tune_jinja_take_buffer(&b);
    return 0;
}

static int unique(jrun *run, const jval *of, arguments *args, jval *v)
{
    const jval *cased = tune_jinja_arg(args, 0, "case_sensitive");
    jval list, seen, key;
    TRY(tune_jinja_iterate(run, of, &list));
    TRY(tune_jinja_list_new(run, 0, false, v));
    TRY(tune_jinja_list_new(run, 0, false, &seen));
    for (size_t i = 0; i < list.list->count; i++) {
        bool found;
        key = list.list->items[i];
        if (key.type == JINJA_TEXT && !(cased && tune_jinja_truth(cased)))
            TRY(tune_jinja_case(run, &key, 'l', &key));
        TRY(tune_jinja_contains(run, &seen, &key, &found));
        if (found)
            continue;
        TRY(tune_jinja_list_add(run, &seen, key));
        TRY(tune_jinja_list_add(run, v, list.list->items[i]));
    }
    return 0;
}

static int turned(jrun *run, const jval *of, jval *v)
{
    jval list;
    struct tune_jinja_buffer b = {0};
    TRY(tune_jinja_iterate(run, of, &list));
    TRY(tune_jinja_list_new(run, 0, false, v));
    for (size_t i = list.list->count; i-- > 0;)
        TRY(of->type == JINJA_TEXT ? tune_jinja_put_value(run, &b, &list.list->items[i])
                                   : tune_jinja_list_add(run, v, list.list->items[i]));
    if (of->type == JINJA_TEXT)
        *v = tune_jinja_take_buffer(&b);
    return 0;
}

static int length(jrun *run, const jval *of, jval *v)
{
    TRY(tune_jinja_step(run, of->type == JINJA_TEXT ? of->size / 64 : 0));
    switch (of->type) {
    case JINJA_UNDEFINED: *v = tune_jinja_int(0); return 0;
    case JINJA_TEXT: *v = tune_jinja_int((int64_t)tune_jinja_length(of)); return 0;
    case JINJA_LIST: *v = tune_jinja_int((int64_t)of->list->count); return 0;
    case JINJA_DICT: *v = tune_jinja_int((int64_t)of->dict->count); return 0;
    default: return tune_jinja_fail(run, "length of %s", tune_jinja_type_name(of));
    }
}

/* int, float: numbers as they are; of texts only plain decimal spellings, so that nothing is read otherwise than Python does. */
static int number(jrun *run, const jval *of, arguments *args, bool whole, jval *v)
{
    const jval *otherwise = tune_jinja_arg(args, 0, "default");
    char digits[32];
    *v = of->type == JINJA_BOOL ? tune_jinja_int(of->truth) : *of;
    if (v->type == JINJA_TEXT) {
        jval t = tune_jinja_strip(of, NULL, true, true);
        size_t at = t.size && (t.text[0] == '-' || t.text[0] == '+'), points = 0, seen = 0;
        for (; at < t.size && ((t.text[at] >= '0' && t.text[at] <= '9') || (t.text[at] == '.' && !points)); at++) {
            points += t.text[at] == '.';
            seen += t.text[at] != '.';
        }
        if (at != t.size || !seen || t.size > 18) {
            for (size_t i = 0; i < t.size; i++)
                if (t.size > 18 || (t.text[i] >= '0' && t.text[i] <= '9') || (unsigned char)t.text[i] >= 0x80 || strchr("nNfF", t.text[i]))
                    return tune_jinja_fail(run, "int or float of a text that is no plain decimal number is not supported");
            *v = (jval){.type = JINJA_UNDEFINED};
        } else {
            memcpy(digits, t.text, t.size);
            digits[t.size] = 0;
            *v = points ? (jval){.type = JINJA_FLOAT, .number = strtod(digits, NULL)} : tune_jinja_int(strtoll(digits, NULL, 10));
        }
    }
    if (v->type != JINJA_INT && v->type != JINJA_FLOAT) {
        *v = otherwise ? *otherwise : whole ? tune_jinja_int(0) : (jval){.type = JINJA_FLOAT};
        return 0;
    }
    if (whole && v->type == JINJA_FLOAT) {
        if (!(fabs(v->number) < 9.2e18))
            return tune_jinja_fail(run, "a whole number outside 64 bits");
        *v = tune_jinja_int((int64_t)v->number);
    } else if (!whole && v->type == JINJA_INT) {
        *v = (jval){.type = JINJA_FLOAT, .number = (double)v->whole};
    }
    return 0;
}

static int text_filter(jrun *run, const char *name, const jval *of, arguments *args, jval *v)
{
    jval text, a, b;
    TRY(tune_jinja_string(run, of, &text));
    if (strcmp(name, "trim") == 0) {
        const jval *set = tune_jinja_arg(args, 0, "chars");
        set = set && set->type != JINJA_TEXT ? NULL : set;
        TRY(tune_jinja_step(run, (text.size / 64 + 1) * (set ? set->size : 1)));
        *v = tune_jinja_strip(&text, set, true, true);
        return 0;
    }
    if (strcmp(name, "replace") != 0)
        return tune_jinja_case(run, &text, strcmp(name, "title") == 0 ? 'w' : *name, v);
    const jval *count = tune_jinja_arg(args, 2, "count"), *old = tune_jinja_arg(args, 0, "old"), *new_ = tune_jinja_arg(args, 1, "new");
    if (!old || !new_)
        return tune_jinja_fail(run, "replace without what and by what");
    TRY(tune_jinja_string(run, old, &a));
    TRY(tune_jinja_string(run, new_, &b));
    return tune_jinja_replace(run, &text, &a, &b, count && count->type == JINJA_INT ? count->whole : -1, v);
}

static int end_item(jrun *run, const jval *of, bool last, jval *v)
{
    jval list;
    TRY(tune_jinja_iterate(run, of, &list));
    size_t count = list.list->count;
    *v = count ? list.list->items[last ? count - 1 : 0] : tune_jinja_undefined("the first or last of nothing", 28);
    return 0;
}

static const struct {
    const char *name;
    int least, most;
    const char *names;
} filters[] = {
    {"abs", 0, 0, ""}, {"capitalize", 0, 0, ""}, {"count", 0, 0, ""}, {"d", 0, 2, " default_value boolean "},
    {"default", 0, 2, " default_value boolean "}, {"dictsort", 0, 3, " case_sensitive by reverse "}, {"first", 0, 0, ""},
    {"float", 0, 1, " default "}, {"indent", 0, 3, " width first blank "}, {"int", 0, 1, " default "}, {"items", 0, 0, ""},
    {"join", 0, 2, " d attribute "}, {"last", 0, 0, ""}, {"length", 0, 0, ""}, {"list", 0, 0, ""}, {"lower", 0, 0, ""},
    {"map", 0, 9, " attribute default "}, {"reject", 0, 9, ""}, {"rejectattr", 1, 9, ""}, {"replace", 2, 3, " old new count "},
    {"reverse", 0, 0, ""}, {"safe", 0, 0, ""}, {"select", 0, 9, ""}, {"selectattr", 1, 9, ""}, {"string", 0, 0, ""},
    {"title", 0, 0, ""}, {"tojson", 0, 4, " ensure_ascii indent separators sort_keys "}, {"trim", 0, 1, " chars "},
    {"unique", 0, 1, " case_sensitive "}, {"upper", 0, 0, ""},
};

bool tune_jinja_knows_filter(struct tune_text name)
{
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (tune_text_equal(name, filters[i].name))
            return true;
    return false;
}

static int run_filter(jrun *run, const char *name, const jval *of, arguments *args, jval *v)
{
    const jval *a = tune_jinja_arg(args, 0, "default_value"), *boolean = tune_jinja_arg(args, 1, "boolean");
    const jval zero = tune_jinja_int(0);
    if (strcmp(name, "d") == 0 || strcmp(name, "default") == 0) {
        bool use = of->type == JINJA_UNDEFINED || (boolean && tune_jinja_truth(boolean) && !tune_jinja_truth(of));
        *v = !use ? *of : a ? *a : tune_jinja_word("");
        return 0;
    }
    if (strcmp(name, "tojson") == 0) return to_json(run, of, args, v);
    if (strcmp(name, "join") == 0) return join(run, of, args, v);
    if (strcmp(name, "map") == 0) return map(run, of, args, v);
    if (strncmp(name, "select", 6) == 0) return choose(run, of, args, name[6] == 'a', true, v);
    if (strncmp(name, "reject", 6) == 0) return choose(run, of, args, name[6] == 'a', false, v);
    if (strcmp(name, "dictsort") == 0) return dict_sort(run, of, args, v);
    if (strcmp(name, "indent") == 0) return indent(run, of, args, v);
    if (strcmp(name, "unique") == 0) return unique(run, of, args, v);
    if (strcmp(name, "reverse") == 0) return turned(run, of, v);
    if (strcmp(name, "count") == 0 || strcmp(name, "length") == 0) return length(run, of, v);
    if (strcmp(name, "int") == 0 || strcmp(name, "float") == 0) return number(run, of, args, *name == 'i', v);
    if (strcmp(name, "first") == 0 || strcmp(name, "last") == 0) return end_item(run, of, *name == 'l', v);
    if (strcmp(name, "string") == 0 || strcmp(name, "safe") == 0) return tune_jinja_string(run, of, v);
    if (strcmp(name, "list") == 0) {
        TRY(tune_jinja_iterate(run, of, v));
        v->tuple = v->view = false;
        return 0;
    }
    if (strcmp(name, "abs") == 0) {
        bool less;
        TRY(tune_jinja_compare(run, '<', of, &zero, &less));
        return less ? tune_jinja_binary(run, '-', &zero, of, v) : tune_jinja_binary(run, '+', of, &zero, v);
    }
    if (strcmp(name, "items") == 0) {
        if (of->type == JINJA_UNDEFINED)
            return tune_jinja_list_new(run, 0, false, v);
        if (of->type != JINJA_DICT)
            return tune_jinja_fail(run, "items of %s; expected a mapping", tune_jinja_type_name(of));
        return tune_jinja_method(run, &(struct tune_jinja_method){.of = *of, .name = {"items", 5}}, &(struct tune_jinja_args){0}, v);
    }
    return text_filter(run, name, of, args, v);
}

int tune_jinja_filter(jrun *run, struct tune_text name, const jval *of, arguments *args, jval *v)
{
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (tune_text_equal(name, filters[i].name)) {
            TRY(tune_jinja_args_known(run, args, filters[i].name, filters[i].least, filters[i].most, filters[i].names));
            return run_filter(run, filters[i].name, of, args, v);
        }
    return tune_jinja_fail(run, "a filter that is not supported");
}

/* ---- tests ---- */
static const struct {
    const char *name;
    int args, op; /* op: a comparison */
} tests[] = {
    {"!=", 1, JINJA_OP('!', '=')}, {"<", 1, '<'}, {"<=", 1, JINJA_OP('<', '=')}, {"==", 1, JINJA_OP('=', '=')}, {">", 1, '>'},
    {">=", 1, JINJA_OP('>', '=')}, {"boolean", 0, 0}, {"callable", 0, 0}, {"defined", 0, 0}, {"divisibleby", 1, 0},
    {"eq", 1, JINJA_OP('=', '=')}, {"equalto", 1, JINJA_OP('=', '=')}, {"even", 0, 0}, {"false", 0, 0}, {"float", 0, 0},
    {"ge", 1, JINJA_OP('>', '=')}, {"gt", 1, '>'}, {"in", 1, JINJA_OP_IN}, {"integer", 0, 0}, {"iterable", 0, 0},
    {"le", 1, JINJA_OP('<', '=')}, {"lt", 1, '<'}, {"mapping", 0, 0}, {"ne", 1, JINJA_OP('!', '=')}, {"none", 0, 0},
    {"number", 0, 0}, {"odd", 0, 0}, {"sequence", 0, 0}, {"string", 0, 0}, {"true", 0, 0}, {"undefined", 0, 0},
};

bool tune_jinja_knows_test(struct tune_text name)
{
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (tune_text_equal(name, tests[i].name))
            return true;
    return false;
}

static int divides(jrun *run, const jval *of, int64_t by, int64_t rest, bool *holds)
{
    jval v, divisor = tune_jinja_int(by);
    TRY(tune_jinja_binary(run, '%', of, &divisor, &v));
    *holds = v.type == JINJA_FLOAT ? v.number == (double)rest : v.whole == rest;
    return 0;
}

int tune_jinja_test(jrun *run, struct tune_text name, const jval *of, arguments *args, bool *holds)
{
    size_t i = 0;
    int type = of->type;
    while (i < sizeof tests / sizeof *tests && !tune_text_equal(name, tests[i].name))
        i++;
    if (i == sizeof tests / sizeof *tests)
        return tune_jinja_fail(run, "a test that is not supported");
    const char *word = tests[i].name;
    TRY(tune_jinja_args_known(run, args, word, tests[i].args, tests[i].args, ""));
    if (tests[i].op)
        return tune_jinja_compare(run, tests[i].op, of, &args->values[0], holds);
    if (strcmp(word, "divisibleby") == 0 && args->values[0].type == JINJA_INT)
        return divides(run, of, args->values[0].whole, 0, holds);
    if (strcmp(word, "even") == 0 || strcmp(word, "odd") == 0)
        return divides(run, of, 2, *word == 'o', holds);
    if (strcmp(word, "boolean") == 0) *holds = type == JINJA_BOOL;
    else if (strcmp(word, "callable") == 0) *holds = type == JINJA_MACRO || type == JINJA_METHOD;
    else if (strcmp(word, "defined") == 0) *holds = type != JINJA_UNDEFINED;
    else if (strcmp(word, "false") == 0) *holds = type == JINJA_BOOL && !of->truth;
    else if (strcmp(word, "float") == 0) *holds = type == JINJA_FLOAT;
    else if (strcmp(word, "integer") == 0) *holds = type == JINJA_INT;
    else if (strcmp(word, "iterable") == 0) *holds = type == JINJA_TEXT || type == JINJA_LIST || type == JINJA_DICT || type == JINJA_UNDEFINED;
    else if (strcmp(word, "mapping") == 0) *holds = type == JINJA_DICT;
    else if (strcmp(word, "none") == 0) *holds = type == JINJA_NONE;
    else if (strcmp(word, "number") == 0) *holds = type == JINJA_INT || type == JINJA_FLOAT || type == JINJA_BOOL;
    else if (strcmp(word, "sequence") == 0) *holds = type == JINJA_TEXT || type == JINJA_LIST || type == JINJA_DICT || type == JINJA_UNDEFINED;
    else if (strcmp(word, "string") == 0) *holds = type == JINJA_TEXT;
    else if (strcmp(word, "true") == 0) *holds = type == JINJA_BOOL && of->truth;
    else if (strcmp(word, "undefined") == 0) *holds = type == JINJA_UNDEFINED;
    else return tune_jinja_fail(run, "the test %s of %s", word, tune_jinja_type_name(&args->values[0]));
    return 0;
}

/* ---- functions ---- */
bool tune_jinja_knows_function(struct tune_text name)
{
    for (const char *const *f = (const char *const[]){"dict", "namespace", "raise_exception", "range", "strftime_now", NULL}; *f; f++)
        if (tune_text_equal(name, *f))
            return true;
    return false;
}

static int range(jrun *run, arguments *args, jval *v)
{
    int64_t at[3] = {0, 0, 1};
    TRY(tune_jinja_args_known(run, args, "range", 1, 3, ""));
    for (int i = 0; i < args->count; i++) {
        if (args->values[i].type != JINJA_INT)
            return tune_jinja_fail(run, "range of %s; expected integers", tune_jinja_type_name(&args->values[i]));
        at[args->count == 1 ? 1 : i] = args->values[i].whole;
    }
    if (at[2] == 0)
        return tune_jinja_fail(run, "range with step 0");
    TRY(tune_jinja_list_new(run, 0, false, v));
    for (int64_t i = at[0]; at[2] > 0 ? i < at[1] : i > at[1];) {
        if (v->list->count == 100000)
            return tune_jinja_fail(run, "range of more than 100000 numbers");
        TRY(tune_jinja_list_add(run, v, tune_jinja_int(i)));
        if (__builtin_add_overflow(i, at[2], &i))
            break;
    }
    return 0;
}

static int now(jrun *run, arguments *args, jval *v)
{
    static const char known[] = "aAbBcdHIjmMpSuUwWxXyYZ%DeFhRT";
    char format[256], text[1024];
    struct tm tm;
    time_t seconds = (time_t)run->seconds;
    TRY(tune_jinja_args_known(run, args, "strftime_now", 1, 1, " format "));
    const jval *f = &args->values[0];
    if (f->type != JINJA_TEXT || f->size >= sizeof format || memchr(f->text, 0, f->size) || !localtime_r(&seconds, &tm))
        return tune_jinja_fail(run, "strftime_now: expected a format of at most %zu bytes", sizeof format - 1);
    memcpy(format, f->text, f->size);
    format[f->size] = 0;
    for (const char *p = format; (p = strchr(p, '%')); p += 2)
        if (!p[1] || !strchr(known, p[1]))
            return tune_jinja_fail(run, "strftime_now: %%%c in a format is not supported", p[1] ? p[1] : ' ');
    size_t size = f->size ? strftime(text, sizeof text, format, &tm) : 0;
    return tune_jinja_copy_text(run, text, size, 0, v);
}

int tune_jinja_function(jrun *run, struct tune_text name, arguments *args, jval *v)
{
    if (tune_text_equal(name, "range"))
        return range(run, args, v);
    if (tune_text_equal(name, "strftime_now"))
        return now(run, args, v);
    if (tune_text_equal(name, "raise_exception")) {
        jval text = tune_jinja_word("");
        if (args->count)
            TRY(tune_jinja_string(run, &args->values[0], &text));
        return tune_jinja_fail(run, "the template refuses the conversation: %.*s", (int)(text.size > 900 ? 900 : text.size), text.text);
    }
    TRY(tune_jinja_dict_new(run, v));
    for (int i = 0; i < args->count; i++) {
        const jval *from = &args->values[i];
        if (!args->names[i].data && (i > 0 || from->type != JINJA_DICT))
            return tune_jinja_fail(run, "dict or namespace of %s; expected a mapping or arguments with names", tune_jinja_type_name(from));
        for (size_t k = 0; !args->names[i].data && k < from->dict->count; k++)
            TRY(tune_jinja_dict_put(run, v->dict, from->dict->keys[k], from->dict->values[k]));
        jval key = {.type = JINJA_TEXT, .text = args->names[i].data, .size = args->names[i].size};
        if (key.text)
            TRY(tune_jinja_dict_put(run, v->dict, key, *from));
    }
    if (tune_text_equal(name, "namespace"))
        v->type = JINJA_NAMESPACE;
    return 0;
}
