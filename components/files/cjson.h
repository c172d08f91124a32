/* cjson.h - read and write whole JSON files with cJSON. It is for our own files and small ones.
 * json.h reads large files and those whose numbers must be exact. */
#ifndef TUNE_CORE_CJSON_H
#define TUNE_CORE_CJSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "files/json.h"

struct cJSON;

/* tune_cjson_read - parse a file of at most limit bytes. The caller deletes the tree. NULL with an
 * error: unreadable, or not valid JSON by json.h's rules (with line and column).
 *
 * tune_cjson_read_within - the same for a file in root (tune_file_open_within). errno EXDEV: it
 * leads out.
 *
 * tune_cjson_read_report - the same for a report of any program. It also takes NaN, Infinity and
 * -Infinity, which Python's json.dump writes: they become infinite numbers.
 *
 * tune_cjson_read_in - the same for <folder>/<name>, with the rules of folder.h for untrusted
 * folders. */
struct cJSON *tune_cjson_read(const char *path, size_t limit);
struct cJSON *tune_cjson_read_within(const char *path, const char *root, size_t limit);
struct cJSON *tune_cjson_read_report(const char *path, size_t limit);
struct cJSON *tune_cjson_read_in(const char *folder, const char *name, size_t limit);

/* tune_cjson_line - parse a line of our own files, whose texts may hold NULs. The caller deletes
 * the tree. NULL, without an error for people: no JSON by json.h's rules, or no memory.
 * tune_cjson_text - the bytes of a string of such a tree, borrowed from it. For all else NULL and
 * 0. */
struct cJSON *tune_cjson_line(const char *line);
struct tune_text tune_cjson_text(const struct cJSON *string);

/* tune_cjson_write - replace <folder>/<name> by json, indented, with a newline at the end. Bytes
 * that are not UTF-8 become '?'. complete: true if the caller did not run out of memory while
 * building json. 0, or -1 with an error: complete is false, json is NULL, or the file cannot be
 * written.
 *
 * tune_cjson_write_as - the same, with at most the permissions of mode. */
int tune_cjson_write(const char *folder, const char *name, const struct cJSON *json, bool complete);
int tune_cjson_write_as(const char *folder, const char *name, const struct cJSON *json,
                        bool complete, unsigned mode);

/* tune_cjson_put - set a member of object to value, replacing an old one. The object then owns
 * value.
 *
 * tune_cjson_put_text, _whole, _number - the same for a string, an integer (exact) or a finite
 * double (the shortest text that reads back).
 * tune_cjson_put_bytes - the same for a string of size bytes, NULs among them.
 * tune_cjson_add_bytes - append such a string to a list.
 * false: no memory, or value or object is NULL. */
bool tune_cjson_put(struct cJSON *object, const char *key, struct cJSON *value);
bool tune_cjson_put_text(struct cJSON *object, const char *key, const char *text);
bool tune_cjson_put_bytes(struct cJSON *object, const char *key, const char *text, size_t size);
bool tune_cjson_add_bytes(struct cJSON *list, const char *text, size_t size);
bool tune_cjson_put_whole(struct cJSON *object, const char *key, int64_t value);
bool tune_cjson_put_number(struct cJSON *object, const char *key, double value);

#endif
