/* parts.h - task files as they are read, the questions made of them, and their scores. Private to
 * this folder and get_tasks.c.
 *
 *     task_file.c (YAML, includes) -> tune_task_read.c (struct task) -> task_data.c (rows)
 *         -> task_value.c (what a template makes of a row) -> task_prompt.c (questions, as tokens)
 *         -> tasks.c (batches) -> task_weigh.c -> task_filter.c -> task_score.c (of a question)
 *         -> task_lines.c (its line) -> task_result.c (of all, groups) -> task_report.c */
#ifndef TUNE_TASKS_PARTS_H
#define TUNE_TASKS_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/pool.h"
#include "core/regular.h"
#include "core/try.h"
#include "datasets/rows.h"
#include "evaluators/tasks.h"
#include "evaluators/tasks/python_random.h"
#include "files/document.h"
#include "files/json.h"
#include "generators/generation_config.h"
#include "metrics/estimates.h"
#include "templates/jinja.h"

enum { TASK_FILTERS = 8, TASK_STEPS = 8, TASK_METRICS = 12, TASK_UNTIL = 8, TASK_REGEXES = 8,
    TASK_DEEP = 16, TASK_SIDES = 2, TASK_WINDOWS = 64 };
#define TASK_NO_GOLD (-100) /* the target is none of the choices */

/* ---- a file ---- */
/* The keys of a file and of what it includes. A later one replaces an earlier one. */
struct task_config {
    struct task_entry {
        const char *key;
        const struct tune_node *node;
        const struct tune_document *document; /* where it stands, for messages */
    } *entries;
    int count;
    struct tune_document **documents; /* [document_count] it owns them */
    int document_count;
};

/* tune_task_config_read - read path with its includes. -1 with an error.
 * tune_task_config_free - free it; a zeroed one is fine.
 * tune_task_config_get - the entry of a key; NULL: there is none, or it is None.
 * tune_task_config_fail - the error "file:line:column: <text>"; returns -1. */
int tune_task_config_read(struct task_config *c, const char *path);
void tune_task_config_free(struct task_config *c);
const struct task_entry *tune_task_config_get(const struct task_config *c, const char *key);
int tune_task_entry_fail(const struct task_entry *e, const char *format, ...) TUNE_PRINTF(2, 3);

/* ---- a task ---- */
/* The value that a template makes of a row, or that a column has in it. */
struct task_value {
    enum { TASK_NOTHING, TASK_TEXT, TASK_WHOLE, TASK_LIST } type;
    struct tune_text text;
    int64_t whole;
    struct task_value *items;
    int count;
};

/* doc_to_text and its like. */
struct task_field {
    enum { TASK_ABSENT, TASK_NAMED, TASK_FIXED } kind; /* NAMED: a column, or a template */
    const char *name;          /* of the key */
    const char *text;          /* a column's name, or the template */
    struct tune_jinja *jinja;
    struct task_value value;   /* FIXED: a number, or a list of texts */
};

enum task_kind {
    TASK_MULTIPLE_CHOICE, TASK_LOGLIKELIHOOD, TASK_GENERATE, TASK_ROLLING,
    TASK_KINDS
};
extern const char *const tune_task_kinds[TASK_KINDS]; /* their names */

/* Parts of texts that do not count when they are compared. */
struct task_ignored {
    bool letters, punctuation, numbers; /* letters: upper and lower case are the same */
    struct tune_regular *regexes[TASK_REGEXES];
    int count;
};

enum task_step_kind {
    TASK_REGEX, TASK_MULTI_CHOICE, TASK_TAKE_FIRST, TASK_TAKE_SOME, TASK_MAJORITY, TASK_STRIP,
    TASK_LOWER, TASK_UPPER,
    TASK_STEP_KINDS
};
struct task_filter {
    const char *name;
    struct task_step {
        enum task_step_kind kind;
        struct tune_regular *regex;
        int64_t group;         /* which match counts; negative: from the end */
        const char *fallback;
        struct task_ignored ignored; /* of TASK_MULTI_CHOICE */
    } steps[TASK_STEPS];
    int count;
};

enum task_metric_kind {
    TASK_ACC, TASK_ACC_NORM, TASK_ACC_BYTES, TASK_EXACT_MATCH, TASK_PERPLEXITY, TASK_F1, TASK_BLEU,
    TASK_CHRF, TASK_WORD_PERPLEXITY, TASK_BYTE_PERPLEXITY, TASK_BITS_PER_BYTE,
    TASK_METRIC_KINDS
};
struct task_metric {
    enum task_metric_kind kind;
    struct task_ignored ignored; /* of exact_match */
};
extern const struct task_metric_info {
    const char *name;
    int kinds;                 /* bits of enum task_kind */
    const char *aggregation;
    int draws;                 /* of its error: lm-eval's 100,000; of bleu and chrf 100. 0: none */
    bool plain;                /* its error is that of a mean */
} tune_task_metrics[TASK_METRIC_KINDS];

/* A question of a task, made of a row. [TASK_SIDES]: by the model, and by that to compare with. */
struct task_choice {
    struct tune_text text;
    int32_t *ids;
    int count, skip;           /* tokens; of a window of a text: the first ones without log p */
    double log_prob[TASK_SIDES];
    bool greedy[TASK_SIDES];   /* each of its tokens is the most likely one */
};
struct task_question {
    int64_t row;
    bool done;                 /* judged */
    struct tune_text prompt;
    int32_t *context;          /* [context_count] */
    int context_count;
    struct task_choice *choices; /* of TASK_ROLLING: windows of the text, one behind the other */
    int choice_count;
    int64_t words, bytes;      /* of a text */
    int64_t *gold;             /* [gold_count] places of right choices, or TASK_NO_GOLD */
    int gold_count;
    struct tune_text *references; /* [reference_count] of generated answers */
    int reference_count;
    bool several;              /* gold or references are a list */
    struct tune_text *options; /* [option_count] of TASK_MULTI_CHOICE: the row's column choices */
    int option_count;
    struct tune_text answer[TASK_SIDES]; /* generated */
    struct tune_text *filtered[TASK_SIDES]; /* [filters] */
    double *scores[TASK_SIDES]; /* [filters][metrics][TASK_SUMS] */
};
enum { TASK_SUMS = 24 };       /* numbers of a metric and a question */

/* A metric over all questions, by a filter. */
struct task_result {
    struct tune_estimate side[TASK_SIDES]; /* error: as lm-eval has it; NaN: none */
    struct tune_comparison compared;
};

struct task {
    const char *name, *alias, *path, *version;
    const char *dataset_path, *dataset_name;
    const char *splits[3];     /* training, validation, test; NULL: none */
    const char *fewshot_split;
    const struct tune_node *data_files; /* NULL: none */
    const struct tune_document *document;
    enum task_kind kind;
    struct task_field text, target, choice, description;
    struct task_field shot_text, shot_target, shot_choice; /* of examples; ABSENT: as above */
    const char *target_delimiter, *fewshot_delimiter, *shot_target_delimiter, *shot_delimiter;
    int64_t shots;
    bool fixed_shots;          /* the file says 0, which holds */
    bool first_n;              /* the sampler of examples; else Python's random */
    const char *until[TASK_UNTIL];
    int until_count, max_tokens;
    int64_t repeats;           /* greedy answers are the same, so a question is asked once */
    struct task_filter filters[TASK_FILTERS];
    int filter_count;
    struct task_metric metrics[TASK_METRICS];
    int metric_count;
    bool hellaswag;            /* its process_docs */
    /* rows */
    struct tune_rows rows, examples;
    const char *rows_path, *examples_path;
    int64_t example_count;
    struct python_random random;
    struct task_question *questions;
    int64_t count, in_file, cut; /* questions; rows in the file; questions cut on the left */
    int64_t *order;            /* [count] the longest first, so that batches have little padding */
    int64_t done;              /* questions that are judged */
    struct tune_pool *pool;    /* of its own texts and questions */
    struct task_config config;
    int group;                 /* of the tasks' groups; -1: none */
    struct task_result *results; /* [filters][metrics] */
};

/* tune_task_read - a task of its file's config, which it takes over. -1 with an error that names
 * file and line. shots -1: as the file says.
 * tune_task_free - free it; a zeroed one is fine.
 * tune_task_take - memory that lives as long as the task; NULL with an error. */
int tune_task_read(struct task *t, struct task_config *config, int64_t shots);
void tune_task_free(struct task *t);
void *tune_task_take(struct task *t, size_t size);

/* ---- rows ---- */
/* A row: its columns as JSON. */
struct task_row {
    const char *json;
    size_t size;
    int64_t number, line;
    struct task_column { const char *name, *json; size_t size; } *columns;
    int count;
    struct tune_pool *pool;
};

/* tune_task_data_open - find and open the files of the splits that are judged and that examples
 * come from.
 * tune_task_row_get - read a row; tune_task_row_free frees it. examples: of those. */
int tune_task_data_open(struct task *t, const char *folder);
int tune_task_row_get(struct task *t, bool examples, int64_t i, struct task_row *row);
void tune_task_row_free(struct task_row *row);

/* tune_task_value_of - the value that the field makes of the row. Texts live as long as the row. */
enum task_use { TASK_AS_TEXT, TASK_AS_TARGET, TASK_AS_CHOICES, TASK_AS_PLAIN };
int tune_task_value_of(struct task *t, const struct task_field *f, struct task_row *row,
                       enum task_use use, struct task_value *v);
/* tune_task_literal - a Python literal of texts, numbers, None and lists. 1; 0: it is none; -1: no
 * memory. */
int tune_task_literal(struct tune_pool **pool, const char *text, size_t size, struct task_value *v);

/* ---- questions ---- */
struct task_writer {
    struct tune_tokenizer *tok;
    struct tune_chat_template *chat; /* NULL: no chat template */
    int32_t bos;               /* what an empty context is */
    const char *bos_text;
    int context;               /* most tokens that the model reads */
};
/* tune_task_questions - make the questions of the first rows, at most limit of them; 0: all. */
int tune_task_questions(struct task *t, const struct task_writer *w, int64_t limit);

/* ---- scores ---- */
/* tune_task_filter_apply - what a filter makes of an answer to q. Memory of the pool.
 * tune_task_replace - re.sub(r, "", text).
 * tune_task_ignore - text without what does not count. ascii: of punctuation only ASCII's.
 * tune_task_judge - filter and score a question whose choices or answer are known.
 * tune_task_sum_up - values and errors of a task, from its questions. */
int tune_task_filter_apply(const struct task_filter *f, const struct task_question *q,
                           struct tune_text answer, struct tune_pool **pool,
                           struct tune_text *out);
int tune_task_ignore(const struct task_ignored *ignored, bool ascii, struct tune_text text,
                     struct tune_pool **pool, struct tune_text *out);
int tune_task_replace(struct tune_regular *r, struct tune_text text, struct tune_pool **pool,
                      struct tune_text *out);
int tune_task_judge(struct task *t, struct task_question *q, int sides);
int tune_task_sum_up(struct task *t, int sides, uint64_t seed);
/* tune_task_score_of - the metric as metrics/scores.h has it. */
const struct tune_score *tune_task_score_of(enum task_metric_kind kind);

/* ---- all tasks ---- */
struct task_group {
    const char *name, *alias, *version;
    int parent;                /* group; -1: none */
    struct {
        enum task_metric_kind kind;
        bool by_size;
        const char *filters[TASK_FILTERS];
        int filter_count;
    } means[TASK_METRICS];
    int mean_count;
    struct task_config config;
};

struct tune_tasks {
    struct task *tasks;
    int count;
    size_t room;
    struct task_group *groups;
    int group_count;
    size_t group_room;
    struct { bool task; int place; } *order; /* as they are printed: groups before their tasks */
    int order_count;
    size_t order_room;
    struct task_writer writer;
    char *bos_text;
    int batch_size;
    int longest;               /* tokens of a prompt with what follows it */
    int most_choices, most_tokens; /* of a question; of a choice */
    int window;                /* tokens of the longest window of a text; 0: there are none */
    struct tune_generation_config config;
    /* models */
    int sides;
    const char *names[TASK_SIDES]; /* in tables */
    struct task_model {
        struct tune_model *model; /* NULL: the first one, without its adapter */
        struct tune_cache *cache;
        struct tune_loss *loss;   /* NULL: there are no texts */
    } models[TASK_SIDES];
    /* where it is */
    int task;
    int64_t at;                /* place in its order */
    int batch;                 /* questions of the batch at hand */
    struct task_question **questions; /* [batch_size] */
    double told_s, began_s;
    int64_t done;              /* questions of this process */
    int32_t *ids, *pads;
    size_t id_room;
    int64_t *numbers;
    int *zeros;
    struct tune_prompts *prompts; /* empty, for answers.h */
    struct tune_generator *generator; /* of the task at hand */
    struct tune_token_sampler *sampler;
    FILE *rows_file, *notes;
    const char *folder, *model, *other; /* borrowed; other: the model to compare with; NULL */
    uint64_t settings, seed;   /* hash of weights and options; of draws */
    bool chat;
    const volatile int *stop_signal;
};

/* tune_tasks_load - read the files that a list names: tasks and groups.
 * tune_tasks_cache_rows - rows of a cache for the questions.
 * tune_tasks_windows - windows of texts that the model takes at a time; at most TASK_WINDOWS. */
int tune_tasks_load(struct tune_tasks *all, const char *paths, int64_t shots);
int tune_tasks_cache_rows(const struct tune_tasks *all);
int tune_tasks_windows(const struct tune_tasks *all);

/* Lines of rows, one for each question:
 * tune_tasks_open_lines - go on with the folder's file. Questions that it answers are judged.
 * tune_tasks_write_line - append the line of a question.
 * tune_tasks_sort_lines - at the end: write them again, by task and row. */
int tune_tasks_open_lines(struct tune_tasks *all, bool overwrite);
int tune_tasks_write_line(struct tune_tasks *all, const struct task *t,
                          const struct task_question *q);
int tune_tasks_sort_lines(struct tune_tasks *all);

/* tune_tasks_report - the table, and the report if there is a folder.
 * tune_task_group_mean - a group's metric and filter; false: no task has it.
 * tune_task_group_has - whether a task is in a group or its groups. */
int tune_tasks_report(struct tune_tasks *all, FILE *out);
bool tune_task_group_mean(const struct tune_tasks *all, int group, int mean, const char *filter,
                          struct task_result *result, int64_t *rows);
bool tune_task_group_has(const struct tune_tasks *all, int group, int task);

#endif
