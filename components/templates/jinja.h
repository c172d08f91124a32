/* jinja.h - a small interpreter for Jinja, as chat templates use it.
 *
 * It renders like Jinja2 in the setup of transformers. trim_blocks and lstrip_blocks are on, and
 * one newline at the template's end is dropped. Loop controls are enabled, automatic escaping is
 * off, and a sandbox forbids changes to lists and mappings. Supported:
 *  tags        for (with if, else), if, elif, else, set (name, a.name, several names, block),
 *              macro, break, continue, generation, raw
 *  expressions literals, lists, tuples, mappings with strings and integers as keys, + - * / // % ~,
 *              comparisons, in, and, or, not, a if b else c, attributes, items, slices,
 *              calls with names
 *  filters     abs capitalize count d default dictsort first indent int items join last length list
 *              lower map max min reject rejectattr replace reverse safe select selectattr sort
 *              string title tojson trim unique upper
 *  tests       boolean callable defined divisibleby eq equalto even false float ge gt in integer
 *              iterable le lt mapping ne none number odd sequence string true undefined
 *              == != < <= > >= by name
 *  methods     capitalize endswith find get items join keys lower lstrip removeprefix removesuffix
 *              replace rsplit rstrip split splitlines startswith strip title upper values;
 *              of lists count and index;
 *              append, pop and other methods that change a value give an error when called
 *  functions   dict namespace raise_exception range strftime_now;
 *              loop.* except recursion, cycle, changed and depth
 *
 * Any other construct is an error with its line when the template is opened. A value that is not
 * supported is an error during the render, such as non-ASCII text in upper or an integer beyond 64
 * bits. The text is never different from Jinja2's. Templates and conversations are not trusted, so
 * steps, depth, output and memory are limited.
 *
 * Every byte of a string is marked as data of the caller or as text of the template.
 *
 *     struct tune_jinja *t = tune_jinja_open("chat_template.jinja", text, size);
 *     struct tune_jinja_run *run = tune_jinja_begin(t, -1);
 *     tune_jinja_set_text(run, "bos_token", "<s>", 3);
 *     tune_jinja_set_json(run, "messages", "[{\"role\": \"user\"}]", 19, "rows.jsonl", 1);
 *     struct tune_jinja_output out;
 *     int failed = tune_jinja_render(run, &out);
 *     tune_jinja_end(run);
 *     tune_jinja_free(t); */
#ifndef TUNE_JINJA_H
#define TUNE_JINJA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Limits of a template and of a render. Real templates take some thousand steps and 100 kB. */
#define TUNE_JINJA_TEMPLATE_BYTES (1 << 20)
#define TUNE_JINJA_PARSE_BYTES (256 << 20)
#ifndef TUNE_JINJA_STEPS                     /* fuzz targets set fewer */
#define TUNE_JINJA_STEPS (20 * 1000 * 1000)  /* nodes, items, characters; about 2 s */
#endif
#define TUNE_JINJA_DEPTH 200 /* nested expressions, blocks, macro calls; half for JSON */
#define TUNE_JINJA_OUTPUT (64 << 20)         /* bytes */
#define TUNE_JINJA_MEMORY (512 << 20)        /* bytes of values */

struct tune_jinja;
struct tune_jinja_run;

/* tune_jinja_open - parse size bytes of template. name is for messages. The parsed template is
 * read-only. NULL with an error "name:line: ...": invalid UTF-8, a syntax error, an unsupported
 * construct. */
struct tune_jinja *tune_jinja_open(const char *name, const char *text, size_t size);
void tune_jinja_free(struct tune_jinja *t);

/* tune_jinja_open_plain - the same in Jinja2's own setup, which lm-evaluation-harness uses. Blocks
 * take no newline and no blanks away, and the template's last newline stays. To write or to test
 * what is undefined is an error (StrictUndefined). */
struct tune_jinja *tune_jinja_open_plain(const char *name, const char *text, size_t size);

/* tune_jinja_begin - start a render with its own variables and memory. seconds: the time for
 * strftime_now, since 1970 UTC; -1: now. NULL with an error.
 *
 * tune_jinja_set_text, _bool, _none, _json - set a variable. Text counts as the template's own.
 * Strings in JSON are marked as data; name and line say where the JSON comes from, for messages. 0,
 * or -1 with an error.
 *
 * tune_jinja_end - free the render. */
struct tune_jinja_run *tune_jinja_begin(const struct tune_jinja *t, int64_t seconds);
void tune_jinja_end(struct tune_jinja_run *run);
int tune_jinja_set_text(struct tune_jinja_run *run, const char *variable, const char *text,
                        size_t size);
int tune_jinja_set_bool(struct tune_jinja_run *run, const char *variable, bool value);
int tune_jinja_set_none(struct tune_jinja_run *run, const char *variable);
int tune_jinja_set_json(struct tune_jinja_run *run, const char *variable, const char *json,
                        size_t size, const char *name, int64_t line);

/* The result of a render, valid until tune_jinja_end. */
struct tune_jinja_output {
    const char *text;      /* [size], followed by a NUL */
    /* [size] bits. TUNE_JINJA_DATA: from data. TUNE_JINJA_PIECE: the template begins to write a new
     * piece here, or one of its strings begins. */
    const uint8_t *marks;
    size_t size;
};
enum { TUNE_JINJA_DATA = 1, TUNE_JINJA_PIECE = 2 };

/* tune_jinja_render - render; call it once for each run. 0, or -1 with an error: raise_exception's
 * text, an error in the template (with line), a limit. */
int tune_jinja_render(struct tune_jinja_run *run, struct tune_jinja_output *out);

#ifdef __cplusplus
}
#endif
#endif
