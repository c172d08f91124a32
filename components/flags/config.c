/* config.c - read options from a config file, which is JSON or YAML, and from the file of a run.
 * alias_file.c reads a file of another tool.
 *
 * JSON is pulled value by value. YAML is a tree. Both give a key, and a value of a type of JSON, to
 * the same checks. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/error.h"
#include "core/operators.h"
#include "core/try.h"
#include "files/document.h"
#include "files/file.h"
#include "files/json.h"
#include "flags/aliases.h"

/* The file, and the key or the value that is next in it. */
struct input {
    struct tune_json *json;               /* NULL: the file is YAML */
    const struct tune_document *document; /* of YAML */
    const struct tune_node *node;
};

static int no_memory(void)
{
    return tune_error_cannot("out of memory while reading the options");
}

static int fail(const struct input *in, const char *format, ...) TUNE_PRINTF(2, 3);
static int fail(const struct input *in, const char *format, ...)
{
    char text[512];
    FORMAT(text, format);
    return in->json ? tune_json_fail(in->json, "%s", text) : tune_document_fail(in->document, in->node, "%s", text);
}

/* Write the place of the input, and then text, as the beginning of a message. */
static void spell_position(const struct input *in, const char *text, char *where, size_t size)
{
    if (in->json)
        snprintf(where, size, "%s:%lld: %s", in->json->name, (long long)tune_json_line(in->json), text);
    else
        snprintf(where, size, "%s:%d:%d: %s", in->document->path, in->node->line, in->node->column, text);
}

/* ---- the next value ---- */

/* True for a number in the form of JSON: 1e-5, which YAML 1.1 takes for a text. */
static bool is_json_number(const char *text)
{
    bool whole;
    const char *s = text + (*text == '-');
    size_t size = strlen(s);
    return size > 0 && tune_number_length(s, size, false, &whole) == size && (*s != '0' || !isdigit((unsigned char)s[1]));
}

/* The type that the value of a YAML node has in JSON. The value of an option that is a text is
 * taken as it is written: `on` and `1.10` need no quotes. */
static enum tune_json_type yaml_type(const struct tune_node *node, const struct tune_option *row)
{
    static const enum tune_json_type types[] = {
        [TUNE_VALUE_NONE] = TUNE_JSON_NULL,    [TUNE_VALUE_BOOL] = TUNE_JSON_BOOL,   [TUNE_VALUE_INT] = TUNE_JSON_NUMBER,
        [TUNE_VALUE_FLOAT] = TUNE_JSON_NUMBER, [TUNE_VALUE_TEXT] = TUNE_JSON_STRING,
    };
    if (node->type != TUNE_NODE_SCALAR)
        return node->type == TUNE_NODE_LIST ? TUNE_JSON_ARRAY : TUNE_JSON_OBJECT;
    if (node->written && tune_option_is_text(row))
        return TUNE_JSON_STRING;
    return node->written && is_json_number(node->written) ? TUNE_JSON_NUMBER : types[node->value.type];
}

/* Keep the spelling of a number, so that a seed above 2^53 stays exact. The caller frees *text. */
static int read_number(const struct input *in, char **text)
{
    if (!in->json) {
        const struct tune_node *node = in->node;
        *text = node->written && is_json_number(node->written) ? strdup(node->written) : tune_value_to_string(&node->value);
        return *text ? 0 : no_memory();
    }
    const char *from = in->json->at;
    TRY(tune_json_skip(in->json));
    while (from < in->json->at && isspace((unsigned char)*from))
        from++;
    *text = strndup(from, (size_t)(in->json->at - from));
    return *text ? 0 : no_memory();
}

static int read_bool(const struct input *in, bool *yes)
{
    if (in->json)
        return tune_json_bool(in->json, yes);
    *yes = in->node->value.boolean;
    return 0;
}

static int read_string(const struct input *in, struct tune_text *string)
{
    if (in->json)
        return tune_json_string(in->json, string);
    string->data = in->node->written ? in->node->written : in->node->value.text;
    string->size = strlen(string->data);
    return 0;
}

/* Read the next value as the text that a user would type for this row. The caller frees *text;
 * NULL: null, which means not given. */
static int config_value(const struct input *in, const struct tune_option *row, char **text)
{
    enum tune_json_type type = in->json ? tune_json_peek(in->json) : yaml_type(in->node, row);
    struct tune_text string;
    bool yes;
    *text = NULL;
    bool number = row->type == TUNE_INT || row->type == TUNE_INT64 || row->type == TUNE_DOUBLE;
    const bool interval = row->type == TUNE_INTERVAL;
    const char *expected = interval                   ? "a number or \"epoch\""
                           : number                   ? "a number"
                           : row->type == TUNE_BOOL ? "true or false"
                                                      : "a string";
    if (type == TUNE_JSON_ERROR)
        return -1;
    if (type == TUNE_JSON_NULL)
        return in->json ? tune_json_null(in->json) : 0;
    if (type == TUNE_JSON_NUMBER && (number || interval))
        return read_number(in, text);
    if (type == TUNE_JSON_BOOL && row->type == TUNE_BOOL) {
        TRY(read_bool(in, &yes));
        *text = strdup(yes ? "true" : "false");
    } else if (type == TUNE_JSON_STRING && (tune_option_is_text(row) || row->type == TUNE_DOUBLE || interval)) {
        TRY(read_string(in, &string));
        /* JSON has no infinity; run folders write "inf" */
        if (row->type == TUNE_DOUBLE && !tune_text_equal(string, "inf") && !tune_text_equal(string, "-inf"))
            return fail(in, "%s: expected a number, found the string \"%s\"", row->name, string.data);
        if (strlen(string.data) != string.size)
            return fail(in, "%s: a NUL in the string", row->name);
        *text = strdup(string.data);
    } else {
        static const char *const names[] = {"null", "true or false", "a number", "a string", "an array", "an object"};
        const char *found = in->json || type < TUNE_JSON_ARRAY ? names[type] : type == TUNE_JSON_ARRAY ? "a list" : "a map";
        return fail(in, "%s: expected %s, found %s", row->name, expected, found);
    }
    return *text ? 0 : no_memory();
}

/* ---- pairs ---- */

/* Take the value of this key. item: its node, of YAML. The model's defaults come last and do not
 * change values that were set. */
static int take_pair(struct tune_flags_state *state, struct input *in, struct tune_text key, const struct tune_node *item,
                     bool *seen, enum tune_source source)
{
    char where[TUNE_PATH_MAX + 256], *text;
    int i = tune_flags_row(state, key.data, key.size);
    if (i < 0) {
        spell_position(in, "", where, sizeof where);
        return tune_flags_unknown(state, where, "", key.data);
    }
    if (seen[i])
        return fail(in, "%s: the key stands there twice", key.data);
    seen[i] = true;
    if (source == TUNE_FROM_CONFIG)
        TRY(tune_flags_note_old(state, i, key.data, key.size));
    in->node = item;
    TRY(config_value(in, &state->at[i].row, &text));
    spell_position(in, state->at[i].row.name, where, sizeof where);
    int result = 0;
    bool run = source == TUNE_FROM_RUN, left = run && (state->comparing || state->at[i].keeping == TUNE_TAKE_NOT);
    if (text && !left && (source != TUNE_FROM_MODEL_DEFAULTS || state->at[i].source == TUNE_FROM_DEFAULT))
        result = tune_flags_set(state, i, text, source, where);
    if (run) {
        free(state->at[i].run_text);
        state->at[i].run_text = text;
        state->at[i].in_run = true;
    } else {
        free(text);
    }
    return result;
}

int tune_flags_object(struct tune_flags_state *state, struct tune_json *j, enum tune_source source)
{
    struct input in = {.json = j};
    struct tune_text key;
    bool *seen = calloc((size_t)state->count + 1, sizeof *seen);
    int result = !seen ? no_memory() : tune_json_object(j), more = 1;
    while (result == 0 && (more = tune_json_key(j, &key)) == 1)
        result = take_pair(state, &in, key, NULL, seen, source);
    free(seen);
    return more < 0 ? -1 : result;
}

static int take_map(struct tune_flags_state *state, const struct tune_document *d, enum tune_source source)
{
    const struct tune_node *map = d->root;
    if (map->type != TUNE_NODE_MAP)
        return tune_document_fail(d, map, "expected a map of options to values, as in \"batch_size: 4\"; found %s",
                                  map->type == TUNE_NODE_LIST ? "a list" : tune_node_none(map) ? "nothing" : "a text");
    bool *seen = calloc((size_t)state->count + 1, sizeof *seen);
    int result = seen ? 0 : no_memory();
    for (int i = 0; result == 0 && i < map->count; i++) {
        struct input in = {.document = d, .node = map->keys[i]};
        const char *key = map->keys[i]->value.text;
        result = take_pair(state, &in, (struct tune_text){key, strlen(key)}, map->items[i], seen, source);
    }
    free(seen);
    return result;
}

/* ---- files ---- */

static int apply_yaml(struct tune_flags *flags, const char *path, const char *text, size_t size, enum tune_source source)
{
    struct tune_document *d = tune_document_parse(path, text, size, false);
    int result = d ? 0 : -1;
    if (d && source == TUNE_FROM_CONFIG)
        result = tune_alias_take(flags, d);
    if (result == 0)
        result = take_map(flags->state, d, source);
    tune_document_free(d);
    return result < 0 ? -1 : 0;
}

/* Take a JSON file of another tool. 0: it is none, or none that can be read. */
static int apply_alias_json(struct tune_flags *flags, const char *path, const char *text, size_t size)
{
    struct tune_document *d = tune_document_parse(path, text, size, true);
    int result = d ? tune_alias_take(flags, d) : 0;
    if (!d)
        tune_error_clear();
    tune_document_free(d);
    return result;
}

static int apply_json(struct tune_flags *flags, const char *path, const char *text, size_t size, enum tune_source source)
{
    struct tune_json j;
    int result = source == TUNE_FROM_CONFIG ? apply_alias_json(flags, path, text, size) : 0;
    if (result != 0)
        return result < 0 ? -1 : 0;
    tune_json_start(&j, path, text, size, 1);
    result = tune_flags_object(flags->state, &j, source);
    if (result == 0)
        result = tune_json_end(&j);
    if (result < 0 && tune_error_kind() != TUNE_ERROR_CANNOT)
        tune_error_usage("%s%s", tune_error_message(), /* the user wrote it, though in a file */
                         text[strspn(text, " \t\r\n")] == '{' ? ""
                         : "; a config is an object of JSON, {\"option\": value, ...}, or YAML in a file named .yaml");
    tune_json_free(&j);
    return result;
}

/* A file's name says whether it is YAML or JSON; with another name, a file that begins with { is
 * JSON. */
static bool is_yaml(const char *path, const char *text)
{
    const char *ending = strrchr(path, '.');
    text += strspn(text, " \t\r\n");
    if (ending && (!strcasecmp(ending, ".yaml") || !strcasecmp(ending, ".yml")))
        return true;
    return *text && *text != '{' && (!ending || strcasecmp(ending, ".json"));
}

int tune_flags_config_read(struct tune_flags *flags, const char *path, enum tune_source source)
{
    char *text = NULL;
    size_t size;
    if (tune_file_read(path, 1 << 24, &text, &size) < 0) {
        if (source == TUNE_FROM_CONFIG)
            tune_error_usage("--config: %s", tune_error_message());
        return -1;
    }
    int result = (is_yaml(path, text) ? apply_yaml : apply_json)(flags, path, text, size, source);
    free(text);
    return result;
}
