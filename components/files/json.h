/* json.h - a strict pull reader for JSON that we do not trust.
 *
 * cJSON keeps numbers as doubles, lets bad UTF-8 and duplicate keys pass and knows
 * no lines. Where exact integers, file and line, or bounded memory matter (safetensors
 * headers, data rows, space files) this reader is used. It walks text in place, holds
 * one decoded string at a time, and never recurses. RFC 8259, UTF-8 checked, depth at
 * most TUNE_JSON_DEPTH, no BOM, no comments, no NaN. Example:
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

/* Bytes with a length; may hold NUL, always followed by one NUL. */
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
    const char *name;       /* for messages; borrowed */
    const char *text, *end; /* borrowed until tune_json_free */
    const char *at;
    int64_t first_line;     /* line number of text's first byte */
    char *buffer[2];        /* decoded: [0] strings, [1] keys */
    size_t room[2];
    int depth;
    bool first;             /* the innermost open array or object has given nothing yet */
    bool lone_surrogates;   /* \ud800 alone becomes U+FFFD, as lenient JSON readers do, instead of an error */
    uint64_t kind[TUNE_JSON_DEPTH / 64]; /* bit set: object */
};

/* tune_json_start - begin reading size bytes of text; name and first_line (1 for a whole file) go into messages.
 * Nothing is allocated yet; tune_json_free frees what reading allocates. */
void tune_json_start(struct tune_json *j, const char *name, const char *text, size_t size, int64_t first_line);
void tune_json_free(struct tune_json *j);

/* tune_json_peek - the type of the value that comes next; TUNE_JSON_ERROR with an error if none can. */
enum tune_json_type tune_json_peek(struct tune_json *j);

/* tune_json_object, tune_json_array - step into what must be one. 0 or -1.
 * tune_json_key - the next key of the object: 1 with *key (valid until the next key), 0 at its end, -1.
 * tune_json_item - 1 if the array has one more item, 0 at its end, -1.
 * After key or item 1, read or skip exactly one value. Duplicate keys are the caller's to refuse. */
int tune_json_object(struct tune_json *j);
int tune_json_key(struct tune_json *j, struct tune_text *key);
int tune_json_array(struct tune_json *j);
int tune_json_item(struct tune_json *j);

/* Scalars, 0 or -1. A string is valid until the next string (keys do not disturb it).
 * u64 takes digits only: 1.0, -1, 1e3 and what is above 2^64-1 are errors. */
int tune_json_string(struct tune_json *j, struct tune_text *text);
int tune_json_u64(struct tune_json *j, uint64_t *value);
int tune_json_double(struct tune_json *j, double *value);
int tune_json_bool(struct tune_json *j, bool *value);
int tune_json_null(struct tune_json *j);

/* tune_json_skip - over one value of any kind, checking it as strictly. */
int tune_json_skip(struct tune_json *j);

/* tune_json_end - only white space may follow. */
int tune_json_end(struct tune_json *j);

/* tune_json_line - the line the reader stands on.
 * tune_json_fail - set the error "name:line:column: <text>"; returns -1. */
int64_t tune_json_line(const struct tune_json *j);
int tune_json_fail(struct tune_json *j, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

/* tune_text_equal - the text is exactly these characters. */
bool tune_text_equal(struct tune_text text, const char *string);

/* tune_utf8_valid - size bytes are well-formed UTF-8 (no surrogates, no overlong forms, at most U+10FFFF);
 * otherwise false and, where bad is not NULL, the offset of the first bad byte. */
bool tune_utf8_valid(const char *text, size_t size, size_t *bad);

/* tune_utf8_mend - each byte that makes the text no UTF-8 becomes a '?'. */
void tune_utf8_mend(char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
