/* cjson.h - whole JSON files as cJSON trees, for files that are ours or small; what is large, or must be exact, is read
 * with json.h. */
#ifndef TUNE_CORE_CJSON_H
#define TUNE_CORE_CJSON_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/* tune_cjson_read - the file (of at most limit bytes) parsed; the caller deletes it. NULL with an error: unreadable, no JSON. */
struct cJSON *tune_cjson_read(const char *path, size_t limit);

/* tune_cjson_write - replace <folder>/<name> by json, indented, with a newline at its end; bytes that are no UTF-8
 * become '?'. complete: nothing failed while json
 * was built (cJSON's functions return NULL where memory is short); without it, or without json, the error says so. */
int tune_cjson_write(const char *folder, const char *name, const struct cJSON *json, bool complete);

#ifdef __cplusplus
}
#endif
#endif
