/* jinja_filters.c - the filters. */
#include <math.h>
#include <stdlib.h>

#include "templates/jinja_parts.h"

/* The attribute a.b.0 of an item, as in attribute=. */
static int attribute_of(jrun *run, const jval *of, const jval *path, jval *v)
{
    *v = *of;
    if (path->type != JINJA_TEXT)
        return tune_jinja_item(run, of, path, v);
    for (size_t at = 0, end; at <= path->size; at = end + 1) {
        int64_t whole = 0;
        bool digits = true;
        jval part, from = *v;
        for (end = at; end < path->size && path->text[end] != '.'; end++) {
            digits = digits && path->text[end] >= '0' && path->text[end] <= '9' && end - at < 9;
            whole = digits ? whole * 10 + (path->text[end] - '0') : 0;
        }
        TRY(tune_jinja_step(run, end - at));
        part = digits && end > at ? tune_jinja_int(whole) : tune_jinja_part(path, at, end);
        TRY(tune_jinja_item(run, &from, &part, v));
    }
    return 0;
}

static struct tune_text named(const jval *v)
{
    return v && v->type == JINJA_TEXT ? (struct tune_text){v->text, v->size} : (struct tune_text){"", 0};
}

static struct tune_jinja_args behind(const struct tune_jinja_args *args, int first)
{
    int n = args->count < first ? args->count : first;
    struct tune_jinja_args rest = {args->values, args->names, args->count - n, {0}};
    if (n > 0) {
        rest.values += n;
        rest.names += n;
    }
    return rest;
}

/* The items of a value. These filters treat any false value as an empty list. */
static int items_of(jrun *run, const jval *of, jval *list)
{
    return tune_jinja_truth(of) ? tune_jinja_iterate(run, of, list) : tune_jinja_list_new(run, 0, false, list);
}

/* select, reject, selectattr, rejectattr: by a test, or by truth. */
JINJA_RUN(choose)
{
    bool attribute = what->least == 1, keep = what->how;
    struct tune_jinja_args rest = behind(args, attribute + 1);
    const struct tune_jinja_name *test = tune_jinja_known(JINJA_TEST, named(args->at[attribute]));
    jval list, holds;
    if (args->count > attribute && !test)
        return tune_jinja_fail(run, "the test that is named in %s is not supported", what->name);
    TRY(items_of(run, of, &list));
    TRY(tune_jinja_list_new(run, 0, false, v));
    for (size_t i = 0; i < list.list->count; i++) {
        jval item = list.list->items[i];
        if (attribute)
            TRY(attribute_of(run, &list.list->items[i], args->at[0], &item));
        holds = tune_jinja_bool(tune_jinja_truth(&item));
        if (test)
            TRY(tune_jinja_apply(run, test, &item, &rest, &holds));
        if (holds.truth == keep)
            TRY(tune_jinja_list_add(run, v, list.list->items[i]));
    }
    v->view = JINJA_ONCE;
    return 0;
}

/* map: by attribute= and default=, or by a filter and its arguments. */
JINJA_RUN(map)
{
    const jval *attribute = NULL, *otherwise = NULL;
    struct tune_jinja_args rest = behind(args, 1);
    jval list, item;
    for (int i = 0; i < args->count; i++) {
        attribute = args->names[i].data && tune_text_equal(args->names[i], "attribute") ? &args->values[i] : attribute;
        otherwise = args->names[i].data && tune_text_equal(args->names[i], "default") ? &args->values[i] : otherwise;
    }
    const bool by_place = args->count && !args->names[0].data;
    const struct tune_jinja_name *filter = by_place ? tune_jinja_known(JINJA_FILTER, named(args->values)) : NULL;
    if (!attribute == !filter || (attribute && args->count != 1 + !!otherwise))
        return tune_jinja_fail(run, "%s without attribute= or the name of a filter is not supported", what->name);
    TRY(items_of(run, of, &list));
    TRY(tune_jinja_list_new(run, 0, false, v));
    for (size_t i = 0; i < list.list->count; i++) {
        TRY(attribute ? attribute_of(run, &list.list->items[i], attribute, &item)
                      : tune_jinja_apply(run, filter, &list.list->items[i], &rest, &item));
        if (attribute && otherwise && item.type == JINJA_UNDEFINED)
            item = *otherwise;
        TRY(tune_jinja_list_add(run, v, item));
    }
    v->view = JINJA_ONCE;
    return 0;
}

JINJA_RUN(join)
{
    const jval *by = args->at[0], *attribute = args->at[1];
    jval list, item;
    struct tune_jinja_buffer b = {0};
    (void)what;
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

/* Insertion sort (stable) by keys. Case is ignored unless cased. */
static int put_in_order(jrun *run, jval *items, const jval *keys, size_t count, const jval *cased, const jval *reverse)
{
    bool backwards = reverse && tune_jinja_truth(reverse), fold = !(cased && tune_jinja_truth(cased));
    jval *sorted = tune_jinja_take(&run->memory, (count + 1) * sizeof *sorted);
    if (!sorted)
        return -1;
    for (size_t i = 0; i < count; i++) {
        jval item = items[i], key = keys[i];
        if (key.type == JINJA_TEXT && fold)
            TRY(tune_jinja_case(run, &key, 'l', &key));
        size_t at = i;
        for (int order = 1; at > 0; at--) {
            TRY(tune_jinja_order(run, &sorted[at - 1], &key, 0, &order));
            if (order != (backwards ? -1 : 1))
                break;
            sorted[at] = sorted[at - 1];
            items[at] = items[at - 1];
        }
        sorted[at] = key;
        items[at] = item;
    }
    return 0;
}

JINJA_RUN(dict_sort)
{
    const jval *by = args->at[1];
    bool value = by && tune_jinja_is(by, "value");
    if (of->type != JINJA_DICT || (by && !value && !tune_jinja_is(by, "key")))
        return tune_jinja_fail(run, "%s of %s; expected a mapping, by 'key' or 'value'", what->name, tune_jinja_type_name(of));
    TRY(tune_jinja_entries(run, of, 'i', v));
    v->view = 0;
    return put_in_order(run, v->list->items, value ? of->dict->values : of->dict->keys, v->list->count, args->at[0], args->at[2]);
}

/* The key by which an item is compared: itself or an attribute. Case is ignored unless cased. */
static int key_of(jrun *run, const jval *item, const jval *cased, const jval *attribute, jval *key)
{
    *key = *item;
    TRY(attribute && attribute->type != JINJA_NONE ? attribute_of(run, item, attribute, key) : 0);
    return key->type == JINJA_TEXT && !(cased && tune_jinja_truth(cased)) ? tune_jinja_case(run, key, 'l', key) : 0;
}

JINJA_RUN(extreme) /* how: -1 min, 1 max; the first of equals */
{
    jval list, best = {0}, key;
    TRY(tune_jinja_iterate(run, of, &list));
    *v = tune_jinja_undefined("the least or greatest of nothing", 32);
    for (size_t i = 0; i < list.list->count; i++) {
        int order = what->how;
        TRY(key_of(run, &list.list->items[i], args->at[0], args->at[1], &key));
        TRY(i ? tune_jinja_order(run, &key, &best, 0, &order) : 0);
        if (order != what->how)
            continue;
        best = key;
        *v = list.list->items[i];
    }
    return 0;
}

JINJA_RUN(unique)
{
    jval list, keys, key;
    bool there;
    TRY(tune_jinja_iterate(run, of, &list));
    TRY(tune_jinja_list_new(run, 0, false, &keys));
    TRY(tune_jinja_list_new(run, 0, false, v));
    for (size_t i = 0; i < list.list->count; i++) {
        TRY(key_of(run, &list.list->items[i], args->at[0], args->at[1], &key));
        if (key.type > JINJA_TEXT)
            return tune_jinja_fail(run, "%s among %s is not supported", what->name, tune_jinja_type_name(&key));
        TRY(tune_jinja_contains(run, &keys, &key, &there));
        TRY(there ? 0 : tune_jinja_list_add(run, &keys, key));
        TRY(there ? 0 : tune_jinja_list_add(run, v, list.list->items[i]));
    }
    v->view = JINJA_ONCE;
    return 0;
}

JINJA_RUN(sort)
{
    const jval *attribute = args->at[2];
    jval list, keys, key;
    if (attribute && (attribute->type != JINJA_TEXT || memchr(attribute->text, ',', attribute->size)))
        return tune_jinja_fail(run, "%s by anything but one attribute is not supported", what->name);
    TRY(tune_jinja_iterate(run, of, &list));
    TRY(tune_jinja_list_new(run, list.list->count, false, v));
    TRY(tune_jinja_list_new(run, list.list->count, false, &keys));
    for (size_t i = 0; i < list.list->count; i++) {
        key = list.list->items[i];
        TRY(attribute ? attribute_of(run, &list.list->items[i], attribute, &key) : 0);
        TRY(tune_jinja_list_add(run, v, list.list->items[i]));
        TRY(tune_jinja_list_add(run, &keys, key));
    }
    return put_in_order(run, v->list->items, keys.list->items, v->list->count, args->at[1], args->at[0]);
}

JINJA_RUN(indent)
{
    const jval *width = args->at[0], *first = args->at[1], *blank = args->at[2];
    const jval one = tune_jinja_word(" "), newline = tune_jinja_word("\n");
    jval text, lines, by = tune_jinja_word("    ");
    struct tune_jinja_buffer b = {0};
    (void)what;
    if (width && width->safe && !of->safe)
        return tune_jinja_fail(run, "indent by what the filter safe gives is not supported");
    if (width && width->type == JINJA_TEXT)
        by = *width;
    else if (width)
        TRY(tune_jinja_binary(run, TUNE_MULTIPLY, &one, width, &by));
    TRY(tune_jinja_binary(run, TUNE_ADD, of, &newline, &text));
    TRY(tune_jinja_lines(run, &text, false, &lines));
    for (size_t i = 0; i < lines.list->count; i++) {
        const jval *line = &lines.list->items[i];
        bool in = i ? line->size > 0 || (blank && tune_jinja_truth(blank)) : first && tune_jinja_truth(first);
        TRY(i ? tune_jinja_put_value(run, &b, &newline) : 0);
        TRY(in ? tune_jinja_put_value(run, &b, &by) : 0);
        TRY(tune_jinja_put_value(run, &b, line));
    }
    *v = tune_jinja_take_buffer(&b);
    v->safe = of->safe;
    return 0;
}

JINJA_RUN(reverse)
{
    (void)what, (void)args;
    jval list;
    struct tune_jinja_buffer b = {0};
    TRY(tune_jinja_iterate(run, of, &list));
    TRY(tune_jinja_list_new(run, 0, false, v));
    for (size_t i = list.list->count; i-- > 0;)
        TRY(of->type == JINJA_TEXT ? tune_jinja_put_value(run, &b, &list.list->items[i])
                                   : tune_jinja_list_add(run, v, list.list->items[i]));
    v->view = of->view == JINJA_ONCE ? 0 : JINJA_ONCE;
    if (of->type == JINJA_TEXT)
        *v = tune_jinja_take_buffer(&b);
    v->safe = of->safe;
    return 0;
}

JINJA_RUN(length)
{
    (void)args;
    TRY(tune_jinja_step(run, of->type == JINJA_TEXT ? of->size / 16 : 0));
    switch (of->view == JINJA_ONCE ? -1 : of->type) {
    case JINJA_UNDEFINED: *v = tune_jinja_int(0); return 0;
    case JINJA_TEXT: *v = tune_jinja_int((int64_t)tune_jinja_length(of)); return 0;
    case JINJA_LIST: *v = tune_jinja_int((int64_t)of->list->count); return 0;
    case JINJA_DICT: *v = tune_jinja_int((int64_t)of->dict->count); return 0;
    default: return tune_jinja_fail(run, "%s of %s", what->name, tune_jinja_type_name(of));
    }
}

/* Only plain digits are accepted in text, so that no text is read in another way than by Python. */
JINJA_RUN(integer)
{
    char digits[20] = "";
    (void)what;
    *v = *of;
    if (of->type == JINJA_TEXT) {
        jval t;
        TRY(tune_jinja_strip(run, of, NULL, true, true, &t));
        if (t.size < sizeof digits - 1)
            memcpy(digits, t.text, t.size);
        size_t sign = *digits == '-' || *digits == '+', count = strspn(digits + sign, "0123456789");
        bool whole = count > 0 && sign + count == t.size;
        TRY(tune_jinja_step(run, t.size));
        for (size_t i = 0; i < t.size && !whole; i++)
            if ((unsigned char)t.text[i] >= 0x80 || strchr("0123456789nNfF", t.text[i]))
                return tune_jinja_fail(run, "int of a text that is no plain whole number is not supported");
        *v = whole ? tune_jinja_int(strtoll(digits, NULL, 10)) : (jval){.type = JINJA_NONE};
    }
    if (v->type == JINJA_FLOAT && !(fabs(v->number) < 9.2e18))
        return tune_jinja_fail(run, "a whole number outside 64 bits");
    if (v->type == JINJA_FLOAT || v->type == JINJA_BOOL)
        *v = tune_jinja_int(v->type == JINJA_BOOL ? v->truth : (int64_t)v->number);
    else if (v->type != JINJA_INT)
        *v = args->at[0] ? *args->at[0] : tune_jinja_int(0);
    return 0;
}

JINJA_RUN(trim)
{
    const jval *set = args->at[0] && args->at[0]->type == JINJA_TEXT ? args->at[0] : NULL;
    jval text;
    (void)what;
    TRY(tune_jinja_string(run, of, &text));
    TRY(tune_jinja_strip(run, &text, set, true, true, v));
    v->safe = of->safe;
    return 0;
}

JINJA_RUN(replace)
{
    jval text, a, b;
    int64_t most;
    (void)what;
    TRY(tune_jinja_string(run, of, &text));
    TRY(tune_jinja_string(run, args->at[0], &a));
    TRY(tune_jinja_string(run, args->at[1], &b));
    TRY(tune_jinja_whole(run, args->at[2], -1, &most));
    return tune_jinja_replace(run, &text, &a, &b, most, v);
}

JINJA_RUN(change_case)
{
    (void)args;
    return tune_jinja_case(run, of, (char)what->how, v);
}

JINJA_RUN(string)
{
    (void)what, (void)args;
    return tune_jinja_string(run, of, v);
}

JINJA_RUN(safe)
{
    (void)what, (void)args;
    TRY(tune_jinja_string(run, of, v));
    v->safe = true;
    return 0;
}

JINJA_RUN(otherwise)
{
    bool empty = args->at[1] && tune_jinja_truth(args->at[1]) && !tune_jinja_truth(of);
    (void)run, (void)what;
    *v = of->type != JINJA_UNDEFINED && !empty ? *of : args->at[0] ? *args->at[0] : tune_jinja_word("");
    return 0;
}

JINJA_RUN(end_item)
{
    jval list;
    (void)args;
    if (what->how && of->view == JINJA_ONCE)
        return tune_jinja_fail(run, "%s of what is gone through once; make it a list first", what->name);
    TRY(tune_jinja_iterate(run, of, &list));
    size_t count = list.list->count;
    *v = count ? list.list->items[what->how ? count - 1 : 0] : tune_jinja_undefined("the first or last of nothing", 28);
    v->safe |= what->how && of->safe;
    return 0;
}

JINJA_RUN(list)
{
    (void)what, (void)args;
    TRY(tune_jinja_iterate(run, of, v));
    v->tuple = false;
    v->view = 0;
    return 0;
}

JINJA_RUN(absolute)
{
    const jval zero = tune_jinja_int(0);
    bool less;
    (void)what, (void)args;
    TRY(tune_jinja_compare(run, TUNE_LESS, of, &zero, &less));
    return tune_jinja_binary(run, less ? TUNE_SUBTRACT : TUNE_ADD, &zero, of, v);
}

JINJA_RUN(items)
{
    (void)args;
    if (of->type != JINJA_UNDEFINED && of->type != JINJA_DICT)
        return tune_jinja_fail(run, "%s of %s; expected a mapping", what->name, tune_jinja_type_name(of));
    TRY(of->type == JINJA_DICT ? tune_jinja_entries(run, of, 'i', v) : tune_jinja_list_new(run, 0, false, v));
    v->view = JINJA_ONCE;
    return 0;
}

const struct tune_jinja_name tune_jinja_filters[] = {
    {"abs", 0, 0, "", absolute, 0}, {"capitalize", 0, 0, "", change_case, 'c'}, {"count", 0, 0, "", length, 0},
    {"d", 0, 2, "default_value boolean", otherwise, 0}, {"default", 0, 2, "default_value boolean", otherwise, 0},
    {"dictsort", 0, 3, "case_sensitive by reverse", dict_sort, 0}, {"first", 0, 0, "", end_item, false},
    {"indent", 0, 3, "width first blank", indent, 0}, {"int", 0, 1, "default", integer, 0}, {"items", 0, 0, "", items, 0},
    {"join", 0, 2, "d attribute", join, 0}, {"last", 0, 0, "", end_item, true}, {"length", 0, 0, "", length, 0},
    {"list", 0, 0, "", list, 0}, {"lower", 0, 0, "", change_case, 'l'}, {"map", 0, 4, NULL, map, 0},
    {"max", 0, 2, "case_sensitive attribute", extreme, 1}, {"min", 0, 2, "case_sensitive attribute", extreme, -1},
    {"reject", 0, 3, "", choose, false},
    {"rejectattr", 1, 4, "", choose, false}, {"replace", 2, 3, "old new count", replace, 0}, {"reverse", 0, 0, "", reverse, 0},
    {"safe", 0, 0, "", safe, 0}, {"select", 0, 3, "", choose, true}, {"selectattr", 1, 4, "", choose, true},
    {"sort", 0, 3, "reverse case_sensitive attribute", sort, 0}, {"string", 0, 0, "", string, 0},
    {"title", 0, 0, "", change_case, 'w'},
    {"tojson", 0, 3, "ensure_ascii indent separators", tune_jinja_to_json, 0}, {"trim", 0, 1, "chars", trim, 0},
    {"unique", 0, 2, "case_sensitive attribute", unique, 0}, {"upper", 0, 0, "", change_case, 'u'}, {0},
};
