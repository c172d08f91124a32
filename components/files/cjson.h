/* cjson.h - whole JSON files as cJSON trees, for files that are ours or small; what is large, or
 * must be exact, is read with json.h. */
#ifndef TUNE_CORE_CJSON_H
#define TUNE_CORE_CJSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/* tune_cjson_read - the file (of at most limit bytes) parsed; the caller deletes it. NULL with an
 * error: unreadable, no JSON by json.h's rules (file, line and column).
 * tune_cjson_read_in - <folder>/<name>, of a folder that may be a stranger's (folder.h). */
struct cJSON *tune_cjson_read(const char *path, size_t limit);
struct cJSON *tune_cjson_read_in(const char *folder, const char *name, size_t limit);

/* tune_cjson_write - replace <folder>/<name> by json, indented, with a newline at its end; bytes
 * that are no UTF-8 become '?'. complete: nothing failed while json was built (cJSON's functions
 * return NULL where memory is short); without it, or without json, the error says so.
 * tune_cjson_write_as - the same with at most the permissions mode. */
int tune_cjson_write(const char *folder, const char *name, const struct cJSON *json, bool complete);
int tune_cjson_write_as(const char *folder, const char *name, const struct cJSON *json,
                        bool complete, unsigned mode);

/* tune_cjson_put - set object's member key to value, which becomes the object's, in the place of
 * one that is there.
 * _text, _whole, _number - the same from a string, a whole number (digit by digit: cJSON's are
 * doubles), a finite double (the shortest text that reads back as the same). false: no memory, or
 * value or object is NULL. */
bool tune_cjson_put(struct cJSON *object, const char *key, struct cJSON *value);
bool tune_cjson_put_text(struct cJSON *object, const char *key, const char *text);
bool tune_cjson_put_whole(struct cJSON *object, const char *key, int64_t value);
bool tune_cjson_put_number(struct cJSON *object, const char *key, double value);

#ifdef __cplusplus
}
#endif
#endif
