/* json.h - a strict pull parser for untrusted JSON.
 *
 * cJSON stores numbers as doubles, accepts invalid UTF-8 and duplicate keys, and does not count
 * lines. This parser is for exact integers, error positions and bounded memory: safetensors
 * headers, data rows, space files.
 *
 * It parses text in place, holds one decoded string at a time, and does not recurse. It follows RFC
 * 8259: checked UTF-8, depth at most TUNE_JSON_DEPTH, no BOM, no comments, no NaN.
 *
 *     struct tune_json j;
 *     struct tune_text key;
 *     tune_json_start(&j, "rows.jsonl", text, size, 1);
 *     if (tune_json_object(&j) == 0)
 *         while ((more = tune_json_key(&j, &key)) == 1)
 *             tune_json_skip(&j);
 *     tune_json_free(&j); */
#ifndef TUNE_CORE_JSON_H
#define TUNE_CORE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TUNE_JSON_DEPTH 128

/* A string with its length. It may contain NUL, and a NUL follows it. */
struct tune_text {
    const char *data;
    size_t size;
};

enum tune_json_type {
    TUNE_JSON_ERROR = -1,
    TUNE_JSON_NULL,
    TUNE_JSON_BOOL,
    TUNE_JSON_NUMBER,
    TUNE_JSON_STRING,
    TUNE_JSON_ARRAY,
    TUNE_JSON_OBJECT,
};

struct tune_json {
    const char *name;       /* file name for messages; borrowed */
    const char *text, *end; /* borrowed until tune_json_free */
    const char *at;
    int64_t first_line;     /* line number of the first byte of text */
    char *buffer[2];        /* decoded text: [0] strings, [1] keys */
    size_t room[2];
    int depth;
    bool first;             /* no item of the innermost array or object was read yet */
    bool lone_surrogates;   /* \ud800 alone becomes U+FFFD, as in lenient parsers; else an error */
    uint64_t kind[TUNE_JSON_DEPTH / 64]; /* bit set: object; clear: array */
};

/* tune_json_start - begin to parse size bytes of text. name and first_line (1 for a whole file) are
 * for messages. It allocates nothing.
 *
 * tune_json_free - free the buffers that parsing allocated. */
void tune_json_start(struct tune_json *j, const char *name, const char *text, size_t size,
                     int64_t first_line);
void tune_json_free(struct tune_json *j);

/* tune_json_peek - the type of the next value; TUNE_JSON_ERROR with an error: no valid value. */
enum tune_json_type tune_json_peek(struct tune_json *j);

/* tune_json_object, tune_json_array - enter an object or array. 0, or -1 with an error.
 *
 * tune_json_key - the next key of the object: 1 with *key (valid until the next key), 0 at its end,
 * -1 with an error.
 *
 * tune_json_item - 1 if the array has another item, 0 at its end, -1 with an error.
 *
 * After a key or item, read or skip exactly one value. Duplicate keys are not detected. */
int tune_json_object(struct tune_json *j);
int tune_json_key(struct tune_json *j, struct tune_text *key);
int tune_json_array(struct tune_json *j);
int tune_json_item(struct tune_json *j);

/* Read a scalar: 0, or -1 with an error. A string is valid until the next string; keys do not
 * overwrite it. u64 accepts digits only: 1.0, -1, 1e3 and values above 2^64-1 are errors. */
int tune_json_string(struct tune_json *j, struct tune_text *text);
int tune_json_u64(struct tune_json *j, uint64_t *value);
int tune_json_double(struct tune_json *j, double *value);
int tune_json_bool(struct tune_json *j, bool *value);
int tune_json_null(struct tune_json *j);

/* tune_json_skip - skip one value of any type, with the same checks. */
int tune_json_skip(struct tune_json *j);

/* tune_json_end - check that only white space follows. 0, or -1 with an error. */
int tune_json_end(struct tune_json *j);

/* tune_json_line - the current line number.
 *
 * tune_json_fail - set the error "name:line:column: <text>". Returns -1. */
int64_t tune_json_line(const struct tune_json *j);
int tune_json_fail(struct tune_json *j, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

/* tune_text_equal - true if the text equals string. */
bool tune_text_equal(struct tune_text text, const char *string);

/* tune_utf8_valid - true if size bytes are valid UTF-8: no surrogates, no overlong forms, at most
 * U+10FFFF. If false, *bad (may be NULL) is the offset of the first invalid byte. */
bool tune_utf8_valid(const char *text, size_t size, size_t *bad);

/* tune_utf8_mend - replace each byte that is invalid in UTF-8 by '?'. */
void tune_utf8_mend(char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
