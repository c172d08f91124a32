/* foreign.h - settings of other tools, and what they are called here. Private to this folder.
 *
 * The names stand in defaults/foreign_options.json:
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
 *                as: a rule of foreign_value.c
 *                program: full, lora, sft or dpo: the kind of training that it asks for
 *                left: the setting is left out, and why
 *                stops: without it another thing would be trained, and why
 *                by: an option; if it is on the command line, the setting stops nothing
 *                say: the value in messages about flags */
#ifndef TUNE_FLAGS_FOREIGN_H
#define TUNE_FLAGS_FOREIGN_H

#include "files/document.h"
#include "flags/state.h"

struct cJSON;

/* tune_foreign_read - the file of names; the caller deletes it. NULL without an error: there is
 * none. */
struct cJSON *tune_foreign_read(void);

/* tune_foreign_row - the row of a setting of that tool, or of any (NULL). when: NULL, sft or dpo.
 * NULL: there is none.
 * tune_foreign_match - the member of an object of patterns that fits text, the first one, or NULL.
 * tune_foreign_text - a text member of a row; NULL: it has none. */
const struct cJSON *tune_foreign_row(const struct cJSON *table, const char *tool, const char *name,
                                     const char *when);
const struct cJSON *tune_foreign_match(const struct cJSON *patterns, const char *text);
const char *tune_foreign_text(const struct cJSON *row, const char *key);

/* tune_foreign_word - the value of an option as we write it. NULL: the text is none that others
 * write. *note: what to say about it, or NULL. *stops: why there is no such value, or NULL. */
const char *tune_foreign_word(const struct cJSON *table, const char *option, const char *text,
                              const char **note, const char **stops);

/* tune_foreign_elsewhere - the program that has an option of ours which this one lacks; NULL: none
 * is known. */
const char *tune_foreign_elsewhere(const struct tune_flags_state *state, const char *option);

/* ---- a file of another tool ---- */

/* A leaf of the file: a scalar, or a list of scalars with commas between. */
struct tune_foreign_leaf {
    const char *name; /* "datasets.0.path" */
    const char *text;
    const struct tune_node *node;
    int index;        /* the number in the name; -1: none */
};

/* A value for an option of ours, until all are known. */
struct tune_foreign_slot {
    const char *option, *text;
    int index, rank; /* rank: -1 the tool's default, 0 with ?, 1, 2 with ! */
    bool add;
};

struct tune_foreign_file {
    struct tune_flags_state *state;
    const char *program, *path, *tool;
    const struct tune_document *document;
    const struct cJSON *table, *about;   /* about: the tool's own entry */
    struct tune_foreign_leaf *leaves;    /* [leaf_count] */
    struct tune_foreign_slot *slots;     /* [slot_count] */
    int leaf_count, slot_count, slot_room;
    const char *method, *stage;          /* full or lora; sft or dpo; "": the file does not say */
    const struct tune_foreign_leaf *asks; /* the leaf that says so; NULL: none */
    bool no_memory;
};

/* The outcome of a setting so far. */
struct tune_foreign_effect {
    char to[512], why[640];
    bool stops, left;
};

/* tune_foreign_leaf_of - the leaf of that name; NULL: the file has none.
 * tune_foreign_copy - a copy of a text that lives as long as the options; "" without memory.
 * tune_foreign_grow - room for one more item of an array of count items; NULL: no memory.
 * tune_foreign_find - add a finding. leaf: NULL, or the setting that it is about. The texts are
 * copied, but for name.
 * tune_foreign_stop - the setting stops the run. */
const struct tune_foreign_leaf *tune_foreign_leaf_of(const struct tune_foreign_file *f,
                                                     const char *name);
const char *tune_foreign_copy(struct tune_foreign_file *f, const char *text);
void *tune_foreign_grow(void *at, int count, size_t size);
void tune_foreign_find(struct tune_foreign_file *f, enum tune_finding_kind kind,
                       const struct tune_foreign_leaf *leaf, const char *name, const char *to,
                       const char *why);
void tune_foreign_stop(struct tune_foreign_effect *effect, const char *format, ...)
    TUNE_PRINTF(2, 3);

/* tune_foreign_follow - do what the row of a leaf says, and add what became of it to the findings.
 * tune_foreign_rule - the member of a row that says what to do with a value: of its values, or
 * else, or the row itself.
 * tune_foreign_ignored - whether --ignore-keys names the setting.
 * tune_foreign_as - the rule `as` for a value of an option.
 * tune_foreign_info - the rule "info": names of LLaMA-Factory's dataset_info.json. */
void tune_foreign_follow(struct tune_foreign_file *f, const struct tune_foreign_leaf *leaf);
const struct cJSON *tune_foreign_rule(const struct cJSON *row, const char *text);
bool tune_foreign_ignored(const struct tune_foreign_file *f, const char *name);
void tune_foreign_as(struct tune_foreign_file *f, const struct tune_foreign_leaf *leaf,
                     const char *rule, const char *option, struct tune_foreign_effect *effect);
void tune_foreign_info(struct tune_foreign_file *f, const struct tune_foreign_leaf *leaf,
                       struct tune_foreign_effect *effect);

/* tune_foreign_set - keep a value for an option, which may end in +, ? or !. What it gives on the
 * command line is added to effect->to. optional: a value that this program does not take is left
 * out; else it stops the run.
 * tune_foreign_assume - keep the tool's own values {option: value} for what the file leaves out.
 * tune_foreign_finish - set the options. */
void tune_foreign_set(struct tune_foreign_file *f, const char *option, const char *text, int index,
                      bool optional, struct tune_foreign_effect *effect);
void tune_foreign_assume(struct tune_foreign_file *f, const struct cJSON *values);
void tune_foreign_finish(struct tune_foreign_file *f);

/* tune_foreign_take - take the options of a file, if it is one of another tool. 1: it was. 0: it is
 * ours. -1 with an error: something in it stops the run. */
int tune_foreign_take(struct tune_flags *flags, const struct tune_document *d);

#endif
