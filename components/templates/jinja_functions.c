/* jinja_functions.c - look up and call names; tests and functions. */
#include <stdio.h>
#include <time.h>

#include "templates/jinja_parts.h"

const struct tune_jinja_name *tune_jinja_known(int kind, struct tune_text name)
{
    const struct tune_jinja_name *const tables[] = {tune_jinja_filters, tune_jinja_tests, tune_jinja_text_methods,
                                                    tune_jinja_dict_methods, tune_jinja_functions, tune_jinja_list_methods};
    for (const struct tune_jinja_name *k = tables[kind]; k->name; k++)
        if (tune_text_equal(name, k->name))
            return k;
    return NULL;
}

/* Index of the parameter of that name; -1: none. */
static int place_of(const char *names, struct tune_text name)
{
    for (int place = 0; *names; place++) {
        size_t size = strcspn(names, " ");
        if (size == name.size && memcmp(names, name.data, size) == 0)
            return place;
        names += size + (names[size] == ' ');
    }
    return -1;
}

int tune_jinja_apply(jrun *run, const struct tune_jinja_name *what, const jval *of, const struct tune_jinja_args *given, jval *v)
{
    enum { PLACES = sizeof given->at / sizeof *given->at };
    struct tune_jinja_args args = {given->values, given->names, given->count, {0}};
    if (args.count < what->least || args.count > what->most)
        return tune_jinja_fail(run, "%s with %d arguments; expected %d to %d", what->name, args.count, what->least, what->most);
    for (int i = 0; i < args.count && what->names; i++) {
        struct tune_text name = args.names[i];
        int place = name.data ? place_of(what->names, name) : i;
        if (place < 0 || place >= PLACES || args.at[place])
            return tune_jinja_fail(run, "%s: the argument %.*s is given twice, or none that is supported", what->name,
                                   JINJA_SHOWN(name));
        args.at[place] = &args.values[i];
    }
    for (int i = 0; i < what->least && what->names; i++)
        if (!args.at[i])
            return tune_jinja_fail(run, "%s without its argument %d", what->name, i + 1);
    return what->run(run, what, of, &args, v);
}

/* ---- tests ---- */
JINJA_RUN(compare)
{
    *v = tune_jinja_bool(false);
    return tune_jinja_compare(run, (enum tune_operator)what->how, of, args->at[0], &v->truth);
}

JINJA_RUN(divides) /* how: remainder modulo 2; -1: divisible by the argument */
{
    jval two = tune_jinja_int(2), rest;
    TRY(tune_jinja_binary(run, TUNE_MODULO, of, what->how < 0 ? args->at[0] : &two, &rest));
    *v = tune_jinja_bool(rest.type == JINJA_FLOAT ? rest.number == (what->how > 0) : rest.whole == (what->how > 0));
    return 0;
}

JINJA_RUN(is_type) /* how: a bit for each type */
{
    (void)run, (void)args;
    *v = tune_jinja_bool(what->how >> of->type & 1);
    return 0;
}

JINJA_RUN(is_sequence)
{
    (void)run, (void)args;
    *v = tune_jinja_bool(what->how >> of->type & 1 && (!of->view || of->view == JINJA_RANGE));
    return 0;
}

JINJA_RUN(is_truth)
{
    (void)run, (void)args;
    *v = tune_jinja_bool(of->type == JINJA_BOOL && of->truth == what->how);
    return 0;
}

#define IS(type) (1 << (JINJA_##type))
#define SEQUENCE (IS(TEXT) | IS(LIST) | IS(DICT) | IS(UNDEFINED))
const struct tune_jinja_name tune_jinja_tests[] = {
    {"!=", 1, 1, "", compare, TUNE_UNEQUAL}, {"<", 1, 1, "", compare, TUNE_LESS},
    {"<=", 1, 1, "", compare, TUNE_LESS_EQUAL},
    {"==", 1, 1, "", compare, TUNE_EQUAL}, {">", 1, 1, "", compare, TUNE_GREATER},
    {">=", 1, 1, "", compare, TUNE_GREATER_EQUAL},
    {"eq", 1, 1, "", compare, TUNE_EQUAL}, {"equalto", 1, 1, "", compare, TUNE_EQUAL},
    {"ge", 1, 1, "", compare, TUNE_GREATER_EQUAL}, {"gt", 1, 1, "", compare, TUNE_GREATER},
    {"in", 1, 1, "", compare, TUNE_IN},
    {"le", 1, 1, "", compare, TUNE_LESS_EQUAL}, {"lt", 1, 1, "", compare, TUNE_LESS},
    {"ne", 1, 1, "", compare, TUNE_UNEQUAL},
    {"divisibleby", 1, 1, "", divides, -1}, {"even", 0, 0, "", divides, 0}, {"odd", 0, 0, "", divides, 1},
    {"boolean", 0, 0, "", is_type, IS(BOOL)}, {"callable", 0, 0, "", is_type, IS(MACRO) | IS(METHOD)},
    {"defined", 0, 0, "", is_type, ~IS(UNDEFINED)}, {"float", 0, 0, "", is_type, IS(FLOAT)},
    {"integer", 0, 0, "", is_type, IS(INT)},
    {"iterable", 0, 0, "", is_type, SEQUENCE}, {"mapping", 0, 0, "", is_type, IS(DICT)}, {"none", 0, 0, "", is_type, IS(NONE)},
    {"number", 0, 0, "", is_type, IS(INT) | IS(FLOAT) | IS(BOOL)}, {"sequence", 0, 0, "", is_sequence, SEQUENCE},
    {"string", 0, 0, "", is_type, IS(TEXT)}, {"undefined", 0, 0, "", is_type, IS(UNDEFINED)},
    {"false", 0, 0, "", is_truth, false}, {"true", 0, 0, "", is_truth, true}, {0},
};

/* ---- functions ---- */
JINJA_RUN(range)
{
    int64_t at[3] = {0, 0, 1};
    (void)of;
    for (int i = 0; i < args->count; i++) {
        if (args->values[i].type != JINJA_INT)
            return tune_jinja_fail(run, "%s of %s; expected integers", what->name, tune_jinja_type_name(&args->values[i]));
        at[args->count == 1 ? 1 : i] = args->values[i].whole;
    }
    if (at[2] == 0)
        return tune_jinja_fail(run, "range with step 0");
    TRY(tune_jinja_list_new(run, 0, false, v));
    v->view = JINJA_RANGE;
    for (int64_t i = at[0]; at[2] > 0 ? i < at[1] : i > at[1];) {
        if (v->list->count == 100000)
            return tune_jinja_fail(run, "range of more than 100000 numbers");
        TRY(tune_jinja_list_add(run, v, tune_jinja_int(i)));
        if (__builtin_add_overflow(i, at[2], &i))
            break;
    }
    return 0;
}

JINJA_RUN(now)
{
    static const char known[] = "aAbBcdHIjmMpSuUwWxXyYZ%DeFhRT";
    char format[256], text[1024];
    struct tm tm;
    time_t seconds = (time_t)run->seconds;
    const jval *f = args->at[0];
    (void)of;
    if (f->type != JINJA_TEXT || f->size >= sizeof format || memchr(f->text, 0, f->size) || !localtime_r(&seconds, &tm))
        return tune_jinja_fail(run, "%s: expected a format of at most %zu bytes", what->name, sizeof format - 1);
    memcpy(format, f->text, f->size);
    format[f->size] = 0;
    for (const char *p = format; (p = strchr(p, '%')); p += 2)
        if (!p[1] || !strchr(known, p[1]))
            return tune_jinja_fail(run, "strftime_now: %%%c in a format is not supported", p[1] ? p[1] : ' ');
    size_t size = f->size ? strftime(text, sizeof text, format, &tm) : 0;
    return tune_jinja_copy_text(run, text, size, 0, v);
}

JINJA_RUN(raise)
{
    jval text = tune_jinja_word("");
    (void)what, (void)of;
    if (args->at[0])
        TRY(tune_jinja_string(run, args->at[0], &text));
    *v = text;
    return tune_jinja_fail(run, "the template refuses the conversation: %.*s", (int)(text.size > 900 ? 900 : text.size), text.text);
}

JINJA_RUN(mapping)
{
    (void)of;
    TRY(tune_jinja_dict_new(run, v));
    for (int i = 0; i < args->count; i++) {
        const jval *from = &args->values[i];
        if (args->names[i].data) {
            jval key = {.type = JINJA_TEXT, .text = args->names[i].data, .size = args->names[i].size};
            TRY(tune_jinja_dict_put(run, v->dict, key, *from));
            continue;
        }
        if (i > 0 || from->type != JINJA_DICT)
            return tune_jinja_fail(run, "%s of %s; expected a mapping or arguments with names", what->name,
                                   tune_jinja_type_name(from));
        for (size_t k = 0; k < from->dict->count; k++)
            TRY(tune_jinja_dict_put(run, v->dict, from->dict->keys[k], from->dict->values[k]));
    }
    v->type = (uint8_t)what->how;
    return 0;
}

const struct tune_jinja_name tune_jinja_functions[] = {
    {"dict", 0, 99, NULL, mapping, JINJA_DICT}, {"namespace", 0, 99, NULL, mapping, JINJA_NAMESPACE},
    {"raise_exception", 0, 1, "message", raise, 0}, {"range", 1, 3, "", range, 0}, {"strftime_now", 1, 1, "format", now, 0}, {0},
};
