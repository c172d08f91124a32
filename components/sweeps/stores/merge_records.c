/* merge_records.c - merge the records of a store. Records that both stores have are not changed. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/try.h"
#include "files/cjson.h"
#include "files/document.h"
#include "sweeps/stores/store_parts.h"

enum { RECORD_BYTES = 1 << 24 };

/* ---- a copy of an experiment without its program ---- */

static int put_scalar(FILE *out, const struct tune_value *v)
{
    double number = v->number;
    if (v->type == TUNE_VALUE_FLOAT && number - number != 0) /* only YAML has these */
        return fputs(isnan(number) ? ".nan" : number > 0 ? ".inf" : "-.inf", out) == EOF ? -1 : 0;
    int size = tune_value_json(v, NULL, 0);
    char *text = malloc((size_t)size + 1);
    if (!text)
        return tune_store_no_memory("merging");
    tune_value_json(v, text, (size_t)size + 1);
    fputs(text, out);
    free(text);
    return 0;
}

/* True for keys of commands: the program, and the commands that make data of inputs. */
static bool is_command(const char *key, int depth)
{
    return depth == 0 ? !strcmp(key, "program") : depth == 2 && !strcmp(key, "make");
}

/* Write the tree as JSON, which is also YAML, with null for commands. */
static int put_node(FILE *out, const struct tune_node *n, int depth)
{
    if (n->type == TUNE_NODE_SCALAR)
        return put_scalar(out, &n->value);
    fputc(n->type == TUNE_NODE_MAP ? '{' : '[', out);
    for (int i = 0; i < n->count; i++) {
        const char *key = n->type == TUNE_NODE_MAP ? n->keys[i]->value.text : NULL;
        fputs(i == 0 ? "" : n->type == TUNE_NODE_MAP ? ",\n" : ", ", out);
        if (key) {
            TRY(put_scalar(out, &n->keys[i]->value));
            fputs(": ", out);
        }
        if (key && is_command(key, depth))
            fputs("null", out);
        else
            TRY(put_node(out, n->items[i], depth + 1));
    }
    fputc(n->type == TUNE_NODE_MAP ? '}' : ']', out);
    return 0;
}

static bool ends_in(const char *name, const char *ending)
{
    size_t n = strlen(name), length = strlen(ending);
    return n >= length && !strcmp(name + n - length, ending);
}

/* Replace *text by a copy without a program. */
static int take_program(const struct tune_merge *how, const char *name, const char *path, char **text, size_t *size)
{
    struct tune_document *d = tune_document_parse(path, *text, *size, ends_in(name, ".json"));
    const struct tune_node *program = d ? tune_node_get(d->root, "program") : NULL;
    char *copy = NULL;
    size_t length = 0;
    int status = d ? 0 : -1;
    if (status == 0 && !tune_node_none(program)) {
        FILE *out = open_memstream(&copy, &length);
        status = out ? put_node(out, d->root, 0) : tune_store_no_memory("merging");
        if (out && fclose(out) != 0 && status == 0)
            status = tune_store_no_memory("merging");
        const char *was = program->type == TUNE_NODE_SCALAR && program->value.type == TUNE_VALUE_TEXT ? program->value.text : "(no text)";
        if (status == 0 && how->left_out)
            how->left_out(how->context, name, was);
    }
    if (status == 0 && copy) {
        free(*text);
        *text = copy;
        *size = length;
    } else {
        free(copy);
    }
    tune_document_free(d);
    return status;
}

/* ---- records ---- */

/* The length of the name without the ending, if it has the ending. */
static int without(const char *name, int length, const char *ending)
{
    int n = (int)strlen(ending);
    return length > n && !strncmp(name + length - n, ending, (size_t)n) ? length - n : length;
}

/* Read the text under a key of the record `name`; "": none. */
static int read_member(struct tune_store *s, const char *kind, const char *name, const char *key, char *text, size_t size)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_path(path, "%s/%s/%s", s->folder, kind, name));
    cJSON *json = tune_cjson_read(path, RECORD_BYTES);
    TRY(json ? 0 : -1);
    const char *found = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));
    snprintf(text, size, "%s", found ? found : "");
    cJSON_Delete(json);
    return 0;
}

/* 1: the record belongs to a wanted row; 0: it does not; -1 with an error. If an operation belongs
 * to a wanted row, its space does, too. */
static int belongs(struct tune_store *from, struct tune_map *belong, const char *kind, const char *name)
{
    static const char *const endings[] = {".folder", ".marks", ".json", ".yaml", ".yml"};
    char text[TUNE_STORE_NAME_MAX + 300], member[TUNE_STORE_NAME_MAX + 1];
    int length = (int)strlen(name);
    for (int i = 0; i < 5; i++)
        length = without(name, length, endings[i]);
    if (!strcmp(kind, "data")) { /* its name is the hash of a path; rows have the hash of the data */
        TRY(read_member(from, kind, name, "hash", member, sizeof member));
        snprintf(text, sizeof text, "%s/%s", kind, member);
    } else {
        snprintf(text, sizeof text, "%s/%.*s", kind, length, name);
    }
    if (!tune_map_get(belong, tune_store_mark(text, strlen(text)).key))
        return 0;
    if (strcmp(kind, "operations"))
        return 1;
    TRY(read_member(from, kind, name, "space", member, sizeof member));
    snprintf(text, sizeof text, "spaces/%s", member);
    int64_t *there = tune_map_add(belong, tune_store_mark(text, strlen(text)).key);
    if (!there)
        return tune_store_no_memory("merging");
    *there = 1;
    return 1;
}

static int merge_record(struct tune_store *into, struct tune_store *from, const struct tune_merge *how, struct tune_map *belong,
                        const char *kind, const char *name)
{
    char path[TUNE_PATH_MAX], *text;
    size_t size;
    bool experiment = !strcmp(kind, "experiments");
    if (experiment && !how->programs && (ends_in(name, ".folder") || ends_in(name, ".marks")))
        return 0; /* they belong to programs */
    int wanted = belong ? belongs(from, belong, kind, name) : 1;
    TRY(wanted);
    if (!wanted)
        return 0;
    TRY(tune_path(path, "%s/%s/%s", into->folder, kind, name));
    if (tune_file_exists(path))
        return 0;
    TRY(tune_path(path, "%s/%s/%s", from->folder, kind, name));
    TRY(tune_file_read(path, RECORD_BYTES, &text, &size));
    int status = experiment && !how->programs ? take_program(how, name, path, &text, &size) : 0;
    if (status == 0)
        status = tune_store_record(into, kind, name, text, size);
    free(text);
    return status;
}

int tune_store_merge_records(struct tune_store *into, struct tune_store *from, const struct tune_merge *how, struct tune_map *belong)
{
    static const char *const kinds[] = {"operations", "spaces", "experiments", "data"};
    int status = 0;
    for (int k = 0; k < 4 && status == 0; k++) {
        int count;
        char **names = tune_store_records(from, kinds[k], &count);
        status = names ? 0 : -1;
        for (int i = 0; names && i < count && status == 0; i++)
            status = merge_record(into, from, how, belong, kinds[k], names[i]);
        tune_store_records_free(names, count);
    }
    return status;
}
