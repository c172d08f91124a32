/* prompt_template.h - how the columns of a row become a prompt and what is trained: a text file
 * with {column} slots.
 *
 *     # lines before the first heading are remarks
 *     [prompt]
 *     Schema: {schema}
 *     Question: {question}
 *     Query:
 *
 *     [completion]
 *     {query}
 *
 * A line that is [prompt] or [completion] and nothing else begins a section; its text goes up to
 * the next heading or the file's end, without the last line end (above, the prompt ends in "Query:"
 * and one line end). Sections follow each other in the row's text as they stand in the file, and
 * there may be several of each: completions are trained, prompts are not. {name} stands for the
 * column of that name, {{ and }} for braces. What a row puts into a slot is plain text, also where
 * it spells a special token or a slot; a special token that the file itself spells is that
 * token. */
#ifndef TUNE_DATASETS_PROMPT_TEMPLATE_H
#define TUNE_DATASETS_PROMPT_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TUNE_PROMPT_SLOTS = 64 }; /* different columns at most */

struct tune_prompt_part {
    const char *text; /* into the template; of a slot its name */
    size_t size;
    int slot;         /* which of slots; -1: the template's own text */
    bool trained;
};

/* Zeroed, it may be freed. */
struct tune_prompt_template {
    struct tune_prompt_part *parts;
    int count;
    const char *slots[TUNE_PROMPT_SLOTS]; /* names of columns, each once, as they come */
    int slot_count;
    char *bytes; /* what parts and slots point into */
    size_t used;
    uint64_t hash; /* of the file's content */
};

/* tune_prompt_template_open - path_or_name: a file of at most 1 MiB, or the name of one in
 * defaults/prompts ("sql").
 * tune_prompt_template_parse - the same of size bytes of text; name is for messages. What both read
 * is copied. 0, or -1 of kind USAGE with name:line:column: braces that do not pair, no [prompt] or
 * no [completion], no slot in any completion, text before the first heading, no UTF-8. *t need not
 * be freed then.
 * tune_prompt_template_path - the file that path_or_name means, into path[TUNE_PATH_MAX]. -1:
 * neither (names those there are). */
int tune_prompt_template_open(struct tune_prompt_template *t, const char *path_or_name);
int tune_prompt_template_parse(struct tune_prompt_template *t, const char *name, const char *text,
                               size_t size);
int tune_prompt_template_path(char *path, const char *path_or_name);
void tune_prompt_template_free(struct tune_prompt_template *t);

#ifdef __cplusplus
}
#endif
#endif
