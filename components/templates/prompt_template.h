/* prompt_template.h - a text file that turns the columns of a row into a prompt and a completion,
 * with {column} slots.
 *
 *     # lines before the first heading are comments
 *     [prompt]
 *     Schema: {schema}
 *     Question: {question}
 *     Query:
 *
 *     [completion]
 *     {query}
 *
 * A line that is just [prompt] or [completion] begins a section. Its text reaches to the next
 * heading or the end of the file, without the last line end. Above, the prompt ends in "Query:" and
 * one line end.
 *
 * Sections appear in the row's text in the order of the file, and there may be several of each
 * kind. Completions are trained, prompts are not. {name} is the value of that column; {{ and }} are
 * braces.
 *
 * Text from a row is plain text, even if it spells a special token or a slot. A special token that
 * the file spells is that token. */
#ifndef TUNE_DATASETS_PROMPT_TEMPLATE_H
#define TUNE_DATASETS_PROMPT_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TUNE_PROMPT_SLOTS = 64 }; /* most different columns */

struct tune_prompt_part {
    const char *text; /* points into the template; for a slot its name */
    size_t size;
    int slot;         /* index in slots; -1: the template's own text */
    bool trained;
};

/* A parsed template. A zeroed one may be freed. */
struct tune_prompt_template {
    struct tune_prompt_part *parts;
    int count;
    /* names of the columns, each once, in order of appearance */
    const char *slots[TUNE_PROMPT_SLOTS];
    int slot_count;
    char *bytes; /* storage of parts and slots */
    size_t used;
    uint64_t hash; /* hash of the file's content */
};

/* tune_prompt_template_open - open a file of at most 1 MiB, or by name one in defaults/prompts
 * ("sql").
 *
 * tune_prompt_template_parse - the same for size bytes of text. name is for messages. The text is
 * copied.
 *
 * Both: 0, or -1 with kind USAGE and "name:line:column". Errors: unpaired braces, no [prompt], no
 * [completion], no slot in any completion, text before the first heading that is no comment,
 * invalid UTF-8. After -1 there is nothing to free.
 *
 * tune_prompt_template_path - the file that path_or_name means, into path[TUNE_PATH_MAX]. -1 with
 * an error: not found (lists the names). */
int tune_prompt_template_open(struct tune_prompt_template *t, const char *path_or_name);
int tune_prompt_template_parse(struct tune_prompt_template *t, const char *name, const char *text,
                               size_t size);
int tune_prompt_template_path(char *path, const char *path_or_name);
void tune_prompt_template_free(struct tune_prompt_template *t);

#ifdef __cplusplus
}
#endif
#endif
