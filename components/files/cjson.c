/* cjson.c - convert between files and cJSON trees. */
#include "files/cjson.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/array.h"
#include "core/error.h"
#include "files/file.h"
#include "files/folder.h"
#include "core/print.h"
#include "core/try.h"

/* Parse and free text. */
static cJSON *parse(const char *path, char *text, size_t size)
{
    struct tune_json j; /* checks more than cJSON does, and reports positions */
    tune_json_start(&j, path, text, size, 1);
    cJSON *json = NULL;
    if (tune_json_skip(&j) == 0 && tune_json_end(&j) == 0 && !(json = cJSON_ParseWithLength(text, size)))
        tune_error_set("%s: a number of more than 63 characters, or no memory to read it", path);
    tune_json_free(&j);
    free(text);
    return json;
}

/* Length of NaN, Infinity or -Infinity at this place, if it is a value of its own; else 0. */
static size_t not_finite(const char *text, const char *at, const char *end)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    if (at > text && !strchr(" \t\r\n:,[", at[-1]))
        return 0;
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(words[i]), left = (size_t)(end - at);
        if (left >= n && !memcmp(at, words[i], n) && (left == n || strchr(" \t\r\n,]}", at[n])))
            return n;
    }
    return 0;
}

/* Write the text into to[2 * size], with a number beyond all doubles for NaN and Infinity outside
 * strings. Returns its size. */
static size_t put_beyond(char *to, const char *text, size_t size)
{
    char *begin = to;
    bool string = false;
    for (const char *at = text, *end = text + size; at < end; at++) {
        size_t n = string ? 0 : not_finite(text, at, end);
        if (n > 0) {
            to += sprintf(to, *at == '-' ? "-1e999" : "1e999");
            at += n - 1;
            continue;
        }
        if (string && *at == '\\' && at + 1 < end)
            *to++ = *at++;
        else if (*at == '"')
            string = !string;
        *to++ = *at;
    }
    return (size_t)(to - begin);
}

cJSON *tune_cjson_read_report(const char *path, size_t limit)
{
    char *text, *other;
    size_t size;
    if (tune_file_read(path, limit, &text, &size) < 0)
        return NULL;
    if (!memmem(text, size, "NaN", 3) && !memmem(text, size, "Infinity", 8))
        return parse(path, text, size);
    if ((other = malloc(2 * size)))
        size = put_beyond(other, text, size);
    else
        tune_error_no_memory("%s", path);
    free(text);
    return other ? parse(path, other, size) : NULL;
}

cJSON *tune_cjson_read(const char *path, size_t limit)
{
    char *text;
    size_t size;
    return tune_file_read(path, limit, &text, &size) < 0 ? NULL : parse(path, text, size);
}

cJSON *tune_cjson_read_within(const char *path, const char *root, size_t limit)
{
    char *text;
    size_t size;
    int fd = tune_file_open_within(path, root, &size);
    if (fd < 0)
        return NULL;
    int status = tune_file_read_open(fd, path, size, limit, &text);
    close(fd);
    errno = 0;
    return status < 0 ? NULL : parse(path, text, size);
}

cJSON *tune_cjson_read_in(const char *folder, const char *name, size_t limit)
{
    char path[TUNE_PATH_MAX], *text;
    size_t size;
    if (tune_path(path, "%s/%s", folder, name) < 0 || tune_folder_read(folder, name, limit, &text, &size) < 0)
        return NULL;
    return parse(path, text, size);
}

/* Give each string its size: a string of cJSON has no length, but a place for an integer. j is before the same value. */
static int measure(struct tune_json *j, cJSON *item)
{
    struct tune_text text;
    cJSON *child = item ? item->child : NULL;
    int more = 0;
    if (cJSON_IsString(item)) {
        TRY(tune_json_string(j, &text));
        item->valueint = (int)text.size;
        return 0;
    }
    if (!cJSON_IsObject(item) && !cJSON_IsArray(item))
        return tune_json_skip(j);
    TRY(cJSON_IsObject(item) ? tune_json_object(j) : tune_json_array(j));
    for (; (more = cJSON_IsObject(item) ? tune_json_key(j, &text) : tune_json_item(j)) == 1; child = child->next)
        TRY(child ? measure(j, child) : -1);
    return more;
}

cJSON *tune_cjson_line(const char *line)
{
    struct tune_json j;
    cJSON *json = cJSON_Parse(line);
    tune_json_start(&j, "a line", line, strlen(line), 1);
    j.lone_surrogates = true;
    if (json && (measure(&j, json) < 0 || tune_json_end(&j) < 0)) {
        cJSON_Delete(json);
        json = NULL;
    }
    tune_json_free(&j);
    return json;
}

struct tune_text tune_cjson_text(const cJSON *string)
{
    return cJSON_IsString(string) ? (struct tune_text){string->valuestring, (size_t)string->valueint} : (struct tune_text){NULL, 0};
}

int tune_cjson_write(const char *folder, const char *name, const cJSON *json, bool complete)
{
    return tune_cjson_write_as(folder, name, json, complete, 0666);
}

int tune_cjson_write_as(const char *folder, const char *name, const cJSON *json, bool complete, unsigned mode)
{
    char path[TUNE_PATH_MAX], *text = complete ? cJSON_Print(json) : NULL;
    if (!text)
        return tune_error_no_memory("%s/%s", folder, name);
    size_t n = strlen(text);
    tune_utf8_mend(text, n); /* a path may hold any bytes */
    text[n] = '\n'; /* replaces the NUL */
    int status = tune_path(path, "%s/%s", folder, name) < 0 ? -1 : tune_file_write_as(path, text, n + 1, mode);
    cJSON_free(text);
    return status;
}

bool tune_cjson_put(cJSON *object, const char *key, cJSON *value)
{
    if (!value || !object) {
        cJSON_Delete(value);
        return false;
    }
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    if (cJSON_AddItemToObject(object, key, value))
        return true;
    cJSON_Delete(value);
    return false;
}

bool tune_cjson_put_text(cJSON *object, const char *key, const char *text)
{
    return tune_cjson_put(object, key, cJSON_CreateString(text));
}

/* The pieces between NULs, each escaped by cJSON, with \u0000 between them. */
bool tune_cjson_put_bytes(cJSON *object, const char *key, const char *text, size_t size)
{
    char *copy = malloc(size + 1), *all = NULL;
    size_t capacity = 0, used = 0;
    bool good = copy != NULL;
    if (good) {
        memcpy(copy, text, size);
        copy[size] = 0;
    }
    for (size_t at = 0; good && at <= size; at += strlen(copy + at) + 1) {
        cJSON *piece = cJSON_CreateString(copy + at);
        char *printed = piece ? cJSON_PrintUnformatted(piece) : NULL;
        size_t length = printed ? strlen(printed) - 2 : 0; /* without quotes */
        good = printed && tune_array_reserve(&all, &capacity, used + length + 10, 1, "a text") == 0;
        if (good) {
            used += (size_t)sprintf(all + used, at > 0 ? "\\u0000" : "\"");
            memcpy(all + used, printed + 1, length);
            used += length;
        }
        cJSON_free(printed);
        cJSON_Delete(piece);
    }
    free(copy);
    if (good)
        memcpy(all + used, "\"", 2);
    good = good && tune_cjson_put(object, key, cJSON_CreateRaw(all));
    free(all);
    return good;
}

bool tune_cjson_add_bytes(cJSON *list, const char *text, size_t size)
{
    cJSON *one = cJSON_CreateObject();
    bool good = tune_cjson_put_bytes(one, "text", text, size) &&
                cJSON_AddItemToArray(list, cJSON_DetachItemFromObjectCaseSensitive(one, "text"));
    cJSON_Delete(one);
    return good;
}

bool tune_cjson_put_whole(cJSON *object, const char *key, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    return tune_cjson_put(object, key, cJSON_CreateRaw(text));
}

bool tune_cjson_put_number(cJSON *object, const char *key, double value)
{
    char text[32];
    return tune_cjson_put(object, key, cJSON_CreateRaw(tune_number_text(text, value)));
}
