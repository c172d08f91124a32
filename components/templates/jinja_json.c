/* jinja_json.c - read JSON as values, and write values like Python's json.dumps. ensure_ascii is
 * false by default, as in transformers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "templates/jinja_parts.h"
#include "tokenizers/unicode.h"

static int read_number(struct tune_json *j, jval *v)
{
    char digits[64];
    size_t n = 0;
    bool whole = true;
    for (const char *p = j->at; p < j->end && *p && strchr("+-.0123456789eE", *p); p++, n++) {
        whole &= *p != '.' && *p != 'e' && *p != 'E';
        if (n < sizeof digits - 1)
            digits[n] = *p;
    }
    digits[n < sizeof digits ? n : sizeof digits - 1] = 0;
    double number;
    TRY(tune_json_double(j, &number));
    if (!whole) {
        *v = (jval){.type = JINJA_FLOAT, .number = number};
        return 0;
    }
    char *end;
    long long value = strtoll(digits, &end, 10);
    if (n >= 19 && (n >= sizeof digits || fabs(number) > 9.2e18))
        return tune_json_fail(j, "the whole number %.40s is outside 64 bits, which chat templates are not run with", digits);
    *v = tune_jinja_int(value);
    return 0;
}

int tune_jinja_read_json(jrun *run, struct tune_json *j, int depth, jval *v)
{
    struct tune_text text;
    bool truth;
    int more;
    TRY(tune_jinja_step(run, 0));
    if (depth > TUNE_JINJA_DEPTH / 2)
        return tune_json_fail(j, "values nested more than %d deep", TUNE_JINJA_DEPTH / 2);
    switch (tune_json_peek(j)) {
    case TUNE_JSON_ERROR: return -1;
    case TUNE_JSON_NULL: *v = (jval){.type = JINJA_NONE}; return tune_json_null(j);
    case TUNE_JSON_BOOL: TRY(tune_json_bool(j, &truth)); *v = tune_jinja_bool(truth); return 0;
    case TUNE_JSON_NUMBER: return read_number(j, v);
    case TUNE_JSON_STRING:
        TRY(tune_json_string(j, &text));
        return tune_jinja_copy_text(run, text.data, text.size, run->mark, v);
    case TUNE_JSON_ARRAY:
        TRY(tune_jinja_list_new(run, 0, false, v));
        TRY(tune_json_array(j));
        while ((more = tune_json_item(j)) == 1) {
            jval item;
            TRY(tune_jinja_read_json(run, j, depth + 1, &item));
            TRY(tune_jinja_list_add(run, v, item));
        }
        return more;
    default:
        TRY(tune_jinja_dict_new(run, v));
        TRY(tune_json_object(j));
        while ((more = tune_json_key(j, &text)) == 1) {
            jval key, value;
            TRY(tune_jinja_copy_text(run, text.data, text.size, run->mark, &key));
            TRY(tune_jinja_read_json(run, j, depth + 1, &value));
            TRY(tune_jinja_dict_put(run, v->dict, key, value));
        }
        return more;
    }
}

/* ---- JSON as Python's json.dumps writes it ---- */
struct json {
    jval item, pair;
    const jval *indent; /* NULL: on one line */
    bool ascii;         /* escape all other characters */
};

static int put_word(jrun *run, struct tune_jinja_buffer *b, const char *word)
{
    return tune_jinja_put(run, b, word, NULL, 0, strlen(word));
}

static bool is_plain(unsigned char c, bool ascii)
{
    return c >= 32 && c != '"' && c != '\\' && !(ascii && c >= 0x7F);
}

static int put_string(jrun *run, struct tune_jinja_buffer *b, const jval *v, bool ascii)
{
    static const char shorts[] = "\"\"\\\\\nn\rr\tt\bb\ff";
    char code[16];
    TRY(put_word(run, b, "\""));
    for (size_t i = 0, next; i < v->size; i = next) {
        for (next = i; next < v->size && is_plain((unsigned char)v->text[next], ascii);)
            next++;
        if (next > i) {
            TRY(tune_jinja_put(run, b, v->text + i, v->marks ? v->marks + i : NULL, v->mark, next - i));
            continue;
        }
        const char *p = v->text + i;
        const uint32_t c = tune_utf8_next(&p);
        const char *known = c && c < 0x80 ? strchr(shorts, (int)c) : NULL;
        if (c > 0xFFFF)
            snprintf(code, sizeof code, "\\u%04x\\u%04x", 0xD7C0 + (c >> 10), 0xDC00 + (c & 0x3FF));
        else
            snprintf(code, sizeof code, known ? "\\%c" : "\\u%04x", known ? (uint32_t)known[1] : c);
        TRY(tune_jinja_put(run, b, code, NULL, v->marks ? v->marks[i] : v->mark, strlen(code)));
        next = (size_t)(p - v->text);
    }
    return put_word(run, b, "\"");
}

static int new_line(jrun *run, struct tune_jinja_buffer *b, const struct json *j, int depth)
{
    if (!j->indent)
        return 0;
    TRY(put_word(run, b, "\n"));
    for (int64_t i = 0; i < (j->indent->type == JINJA_TEXT ? depth : depth * (j->indent->whole < 0 ? 0 : j->indent->whole)); i++)
        TRY(j->indent->type == JINJA_TEXT ? tune_jinja_put_value(run, b, j->indent) : put_word(run, b, " "));
    return 0;
}

static int put_json(jrun *run, struct tune_jinja_buffer *b, const jval *v, const struct json *j, int depth)
{
    bool dict = v->type == JINJA_DICT;
    jval key;
    TRY(tune_jinja_step(run, 0));
    if (depth > TUNE_JINJA_DEPTH)
        return tune_jinja_fail(run, "values nested more than %d deep", TUNE_JINJA_DEPTH);
    switch (v->type) {
    case JINJA_TEXT: return put_string(run, b, v, j->ascii);
    case JINJA_NONE: return put_word(run, b, "null");
    case JINJA_BOOL: return put_word(run, b, v->truth ? "true" : "false");
    case JINJA_INT: return tune_jinja_put_value(run, b, v);
    case JINJA_FLOAT:
        if (isfinite(v->number))
            return tune_jinja_put_value(run, b, v);
        return put_word(run, b, isnan(v->number) ? "NaN" : v->number > 0 ? "Infinity" : "-Infinity");
    case JINJA_LIST: case JINJA_DICT: break;
    default: return tune_jinja_fail(run, "tojson of %s", tune_jinja_type_name(v));
    }
    if (!dict && v->view)
        return tune_jinja_fail(run, "tojson of %s; make it a list first", tune_jinja_type_name(v));
    size_t count = dict ? v->dict->count : v->list->count;
    TRY(put_word(run, b, dict ? "{" : "["));
    for (size_t i = 0; i < count; i++) {
        TRY(i ? tune_jinja_put_value(run, b, &j->item) : 0);
        TRY(new_line(run, b, j, depth + 1));
        if (dict) {
            TRY(tune_jinja_string(run, &v->dict->keys[i], &key));
            TRY(put_string(run, b, &key, j->ascii));
            TRY(tune_jinja_put_value(run, b, &j->pair));
        }
        TRY(put_json(run, b, dict ? &v->dict->values[i] : &v->list->items[i], j, depth + 1));
    }
    TRY(count ? new_line(run, b, j, depth) : 0);
    return put_word(run, b, dict ? "}" : "]");
}

int tune_jinja_to_json(jrun *run, const struct tune_jinja_name *what, const jval *of, const struct tune_jinja_args *args, jval *v)
{
    const jval *ascii = args->at[0], *indent = args->at[1], *separators = args->at[2];
    struct tune_jinja_buffer b = {0};
    (void)what;
    indent = indent && indent->type == JINJA_NONE ? NULL : indent;
    if (indent && indent->type != JINJA_INT && indent->type != JINJA_TEXT)
        return tune_jinja_fail(run, "tojson with %s as indent; expected an integer or a string", tune_jinja_type_name(indent));
    struct json j = {tune_jinja_word(indent ? "," : ", "), tune_jinja_word(": "), indent, ascii && tune_jinja_truth(ascii)};
    if (separators && separators->type != JINJA_NONE) {
        if (separators->type != JINJA_LIST || separators->list->count != 2 || separators->list->items[0].type != JINJA_TEXT ||
            separators->list->items[1].type != JINJA_TEXT)
            return tune_jinja_fail(run, "tojson with separators that are not two strings");
        j.item = separators->list->items[0];
        j.pair = separators->list->items[1];
    }
    TRY(put_json(run, &b, of, &j, 0));
    *v = tune_jinja_take_buffer(&b);
    return 0;
}
