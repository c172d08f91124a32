/* jinja.h - a small interpreter for Jinja as chat templates use it.
 *
 * Renders what Jinja2 renders as transformers sets it up: trim_blocks and lstrip_blocks on, one
 * newline at the template's end dropped, loop controls, no automatic escaping, a sandbox in which
 * lists and mappings are never changed. The subset: tags         for (with if, else), if, elif,
 * else, set (name, a.name, several names, block), macro, break, continue,
 *                generation, raw
 * expressions  literals, lists, tuples, mappings with strings and integers as keys, + - * / // % ~,
 * comparisons, in, and,
 *                or, not, a if b else c, attributes, items, slices, calls with names
 * filters      abs capitalize count d default dictsort first indent int items join last length list
 * lower map max min
 *                reject rejectattr replace reverse safe select selectattr sort string title tojson trim unique upper
 * tests        boolean callable defined divisibleby eq equalto even false float ge gt in integer
 * iterable le lt mapping ne none
 *                number odd sequence string true undefined == != < <= > >= by name
 * methods      capitalize endswith find get items join keys lower lstrip removeprefix removesuffix
 * replace rsplit rstrip split
 *                splitlines startswith strip title upper values; append, pop and others that change a list or a mapping are
 *                known, and an error where one is called, as in the sandbox
 * functions    dict namespace raise_exception range strftime_now; loop.* but recursion, cycle,
 * changed and depth Anything else is refused with its line when the template is opened; what only
 * values show (text outside ASCII in upper, an integer beyond 64 bits) is an error of the render,
 * never another text. Templates and conversations are not trusted: steps, depth, output and memory
 * have limits.
 *
 * Every byte of a string knows whether it came from the caller's data or from the template.
 * Example:
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

/* Of one template, and of one render. No real template comes near: they take some thousand steps
 * and 100 kB. */
#define TUNE_JINJA_TEMPLATE_BYTES (1 << 20)
#define TUNE_JINJA_PARSE_BYTES (256 << 20)
#ifndef TUNE_JINJA_STEPS                     /* the fuzz targets have fewer */
/* nodes evaluated, items and characters looked at, 64 bytes moved: some 2 s */
#define TUNE_JINJA_STEPS (20 * 1000 * 1000)
#endif
/* nested expressions, blocks and macro calls; nested values of JSON: half */
#define TUNE_JINJA_DEPTH 200
#define TUNE_JINJA_OUTPUT (64 << 20)         /* bytes */
#define TUNE_JINJA_MEMORY (512 << 20)        /* bytes of values */

struct tune_jinja;
struct tune_jinja_run;

/* tune_jinja_open - parse size bytes of template; name is for messages. Read-only afterwards. NULL
 * with an error "name:line: ...": not UTF-8, syntax, a construct outside the subset. */
struct tune_jinja *tune_jinja_open(const char *name, const char *text, size_t size);
void tune_jinja_free(struct tune_jinja *t);

/* tune_jinja_begin - a render's variables and memory; seconds since 1970 UTC is what strftime_now
 * tells, -1: the time now.
 * tune_jinja_set_* - a variable: text and booleans are the template's own, JSON is data (its
 * strings' bytes are marked); name and line are where the JSON comes from, for messages. 0 or
 * -1. */
struct tune_jinja_run *tune_jinja_begin(const struct tune_jinja *t, int64_t seconds);
void tune_jinja_end(struct tune_jinja_run *run);
int tune_jinja_set_text(struct tune_jinja_run *run, const char *variable, const char *text,
                        size_t size);
int tune_jinja_set_bool(struct tune_jinja_run *run, const char *variable, bool value);
int tune_jinja_set_none(struct tune_jinja_run *run, const char *variable);
int tune_jinja_set_json(struct tune_jinja_run *run, const char *variable, const char *json,
                        size_t size, const char *name,
                        int64_t line);

/* What was rendered: borrowed until tune_jinja_end. */
struct tune_jinja_output {
    const char *text;      /* [size], NUL after it */
    /* [size]; TUNE_JINJA_DATA: from data. TUNE_JINJA_PIECE: the template began to write anew here,
     * or a string of its begins */
    const uint8_t *marks;
    size_t size;
};
enum { TUNE_JINJA_DATA = 1, TUNE_JINJA_PIECE = 2 };

/* tune_jinja_render - once per run. 0 or -1: raise_exception's text, an error of the template
 * (line), a limit. */
int tune_jinja_render(struct tune_jinja_run *run, struct tune_jinja_output *out);

#ifdef __cplusplus
}
#endif
#endif
