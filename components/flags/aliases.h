/* aliases.h - settings of other tools, and what they are called here. Private to this folder.
 *
 * The names stand in defaults/aliases.json:
 *
 *     tools      name, signs: settings that tell a file of this tool, the program that it means by
 *                default, and the values of settings that its files leave out
 *     words      values of our options as others write them
 *     settings   name: one or several; * stands for anything, as in datasets.*.path
 *                in: the tools that have it; absent: all
 *                when: sft or dpo; the row holds for this kind of training
 *                option: ours. A last + appends to a list, ? yields to all others, ! to none
 *                options: several of ours, with values
 *                values: what to do for some values, the first that fits. null: it is so anyway. A
 *                text: the value of the option. An object: keys of a setting, and note
 *                else: the same for all other values
 *                as: a rule of alias_value.c
 *                program: full, lora, sft or dpo: the kind of training that it asks for
 *                left: the setting is left out, and why
 *                stops: without it another thing would be trained, and why
 *                by: an option; if it is on the command line, the setting stops nothing
 *                say: the value in messages about flags */
#ifndef TUNE_FLAGS_ALIASES_H
#define TUNE_FLAGS_ALIASES_H

#include "files/document.h"
#include "flags/state.h"

struct cJSON;

/* tune_aliases_read - the file of names; the caller deletes it. NULL without an error: there is
 * none. */
struct cJSON *tune_aliases_read(void);

/* tune_alias_row - the row of a setting of that tool, or of any (NULL). when: NULL, sft or dpo.
 * NULL: there is none.
 * tune_alias_match - the member of an object of patterns that fits text, the first one, or NULL.
 * tune_alias_text - a text member of a row; NULL: it has none. */
const struct cJSON *tune_alias_row(const struct cJSON *table, const char *tool, const char *name,
                                     const char *when);
const struct cJSON *tune_alias_match(const struct cJSON *patterns, const char *text);
const char *tune_alias_text(const struct cJSON *row, const char *key);

/* tune_alias_word - the value of an option as we write it. NULL: the text is none that others
 * write. *note: what to say about it, or NULL. *stops: why there is no such value, or NULL. */
const char *tune_alias_word(const struct cJSON *table, const char *option, const char *text,
                              const char **note, const char **stops);

/* tune_alias_elsewhere - the program that has an option of ours which this one lacks; NULL: none
 * is known. */
const char *tune_alias_elsewhere(const struct tune_flags_state *state, const char *option);

/* ---- a file of another tool ---- */

/* A leaf of the file: a scalar, or a list of scalars with commas between. */
struct tune_alias_leaf {
    const char *name; /* "datasets.0.path" */
    const char *text;
    const struct tune_node *node;
    int index;        /* the number in the name; -1: none */
};

/* A value for an option of ours, until all are known. */
struct tune_alias_slot {
    const char *option, *text;
    int index, rank; /* rank: -1 the tool's default, 0 with ?, 1, 2 with ! */
    bool add;
};

struct tune_alias_file {
    struct tune_flags_state *state;
    const char *program, *path, *tool;
    const struct tune_document *document;
    const struct cJSON *table, *about;   /* about: the tool's own entry */
    struct tune_alias_leaf *leaves;      /* [leaf_count] */
    struct tune_alias_slot *slots;       /* [slot_count] */
    int leaf_count, slot_count;
    const char *method, *stage;          /* full or lora; sft or dpo; "": the file does not say */
    const struct tune_alias_leaf *asks;   /* the leaf that says so; NULL: none */
    bool no_memory;
};

/* The outcome of a setting so far. */
struct tune_alias_effect {
    char to[512], why[640];
    bool stops, left;
};

/* tune_alias_leaf_of - the leaf of that name; NULL: the file has none.
 * tune_alias_copy - a copy of a text that lives as long as the options; "" without memory.
 * tune_alias_grow - room for one more item of an array of count items; NULL: no memory.
 * tune_alias_find - add a finding. leaf: NULL, or the setting that it is about. The texts are
 * copied, but for name.
 * tune_alias_stop - the setting stops the run. */
const struct tune_alias_leaf *tune_alias_leaf_of(const struct tune_alias_file *f,
                                                     const char *name);
const char *tune_alias_copy(struct tune_alias_file *f, const char *text);
void *tune_alias_grow(void *at, int count, size_t size);
void tune_alias_find(struct tune_alias_file *f, enum tune_finding_kind kind,
                       const struct tune_alias_leaf *leaf, const char *name, const char *to,
                       const char *why);
void tune_alias_stop(struct tune_alias_effect *effect, const char *format, ...)
    TUNE_PRINTF(2, 3);

/* tune_alias_follow - do what the row of a leaf says, and add what became of it to the findings.
 * tune_alias_rule - the member of a row that says what to do with a value: of its values, or
 * else, or the row itself.
 * tune_alias_ignored - whether --ignore-keys names the setting.
 * tune_alias_as - the rule `as` for a value of an option.
 * tune_alias_info - the rule "info": names of LLaMA-Factory's dataset_info.json. */
void tune_alias_follow(struct tune_alias_file *f, const struct tune_alias_leaf *leaf);
const struct cJSON *tune_alias_rule(const struct cJSON *row, const char *text);
bool tune_alias_ignored(const struct tune_alias_file *f, const char *name);
void tune_alias_as(struct tune_alias_file *f, const struct tune_alias_leaf *leaf,
                     const char *rule, const char *option, struct tune_alias_effect *effect);
void tune_alias_info(struct tune_alias_file *f, const struct tune_alias_leaf *leaf,
                       struct tune_alias_effect *effect);

/* tune_alias_set - keep a value for an option, which may end in +, ? or !. What it gives on the
 * command line is added to effect->to. optional: a value that this program does not take is left
 * out; else it stops the run.
 * tune_alias_assume - keep the tool's own values {option: value} for what the file leaves out.
 * tune_alias_finish - set the options. */
void tune_alias_set(struct tune_alias_file *f, const char *option, const char *text, int index,
                      bool optional, struct tune_alias_effect *effect);
void tune_alias_assume(struct tune_alias_file *f, const struct cJSON *values);
void tune_alias_finish(struct tune_alias_file *f);

/* tune_alias_take - take the options of a file, if it is one of another tool. 1: it was. 0: it is
 * ours. -1 with an error: something in it stops the run. */
int tune_alias_take(struct tune_flags *flags, const struct tune_document *d);

#endif
