/* json.h - a strict pull reader for JSON from untrusted sources.
 *
 * cJSON keeps numbers as doubles, accepts bad UTF-8 and duplicate keys, and knows no lines. This
 * reader serves where exact integers, line numbers or bounded memory matter: safetensors headers,
 * data rows, space files. It walks the text in place, holds one decoded string at a time, and never
 * recurses. It follows RFC 8259: UTF-8 is checked, the depth is at most TUNE_JSON_DEPTH, and there
 * are no BOM, comments or NaN. Example:
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

/* Bytes with a length. They may contain NUL; one NUL always follows. */
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
    int64_t first_line;     /* line number of text's first byte */
    char *buffer[2];        /* decoded texts: [0] strings, [1] keys */
    size_t capacity[2];
    int depth;
    bool first;             /* nothing was read from the innermost array or object yet */
    /* turn a lone surrogate into U+FFFD, as lenient readers do; else it is an error */
    bool lone_surrogates;
    /* NaN, Infinity and -Infinity, as Python writes them, are null; else they are errors */
    bool python;
    uint64_t kind[TUNE_JSON_DEPTH / 64]; /* a bit per level: 1 is an object */
};

/* tune_json_start - begin to read size bytes of text. name and first_line (1 for a whole file) go
 * into messages. Nothing is allocated yet.
 * tune_json_free - free what reading allocated. */
void tune_json_start(struct tune_json *j, const char *name, const char *text, size_t size,
                     int64_t first_line);
void tune_json_free(struct tune_json *j);

/* tune_json_peek - the type of the next value; TUNE_JSON_ERROR with an error if there can be
 * none. */
enum tune_json_type tune_json_peek(struct tune_json *j);

/* tune_json_object - step into an object. 0, or -1 with an error.
 * tune_json_array - step into an array. 0, or -1 with an error.
 * tune_json_key - the object's next key: 1 with *key, valid until the next key; 0 at its end; -1
 * with an error. Duplicate keys are the caller's to refuse.
 * tune_json_item - 1 if the array has another item, 0 at its end, -1 with an error.
 * After a key or an item, read or skip exactly one value. */
int tune_json_object(struct tune_json *j);
int tune_json_key(struct tune_json *j, struct tune_text *key);
int tune_json_array(struct tune_json *j);
int tune_json_item(struct tune_json *j);

/* Scalars; 0, or -1 with an error.
 * tune_json_string - a string, valid until the next string.
 * tune_json_u64 - an integer in digits: 1.0, -1, 1e3 and numbers above 2^64 - 1 are errors.
 * tune_json_double - a number.
 * tune_json_bool - true or false.
 * tune_json_null - null. */
int tune_json_string(struct tune_json *j, struct tune_text *text);
int tune_json_u64(struct tune_json *j, uint64_t *value);
int tune_json_double(struct tune_json *j, double *value);
int tune_json_bool(struct tune_json *j, bool *value);
int tune_json_null(struct tune_json *j);

/* tune_json_number - the length of the number at `from`, and its value, the same double as
 * tune_json_double gives. 0: there is no number, or only tune_json_double can tell its value. It is
 * for lines that are read often and have one form. */
size_t tune_json_number(const char *from, const char *end, double *value);

/* tune_json_skip - skip one value of any type, with the same checks. */
int tune_json_skip(struct tune_json *j);

/* tune_json_end - check that only white space follows. */
int tune_json_end(struct tune_json *j);

/* tune_json_line - the current line.
 * tune_json_fail - set the error "name:line:column: <text>"; returns -1. */
int64_t tune_json_line(const struct tune_json *j);
int tune_json_fail(struct tune_json *j, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

/* tune_text_equal - whether the text is exactly these characters.
 * tune_text_trim - the text without white space of ASCII at its ends. */
bool tune_text_equal(struct tune_text text, const char *string);
struct tune_text tune_text_trim(struct tune_text text);

/* tune_utf8_valid - whether size bytes are well-formed UTF-8: no surrogates, no overlong forms, at
 * most U+10FFFF. If not, *bad, unless NULL, is the offset of the first bad byte. */
bool tune_utf8_valid(const char *text, size_t size, size_t *bad);

/* tune_utf8_advice - what to do about a text that is no UTF-8, to append to a message:
 * "; it looks like Latin-1 ...". "": not known. */
const char *tune_utf8_advice(const char *text, size_t size);

/* tune_utf8_mend - replace each byte that breaks UTF-8 by '?'. */
void tune_utf8_mend(char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
