/* subject.h - the subject of a question, opened: a space with its experiments, or rows of a store.
 * Private to answers/. */
#ifndef TUNE_ANSWERS_SUBJECT_H
#define TUNE_ANSWERS_SUBJECT_H

#include "sweeps/answers/answer_parts.h"
#include "sweeps/answers/question.h"
#include "sweeps/discovery/facts.h"
#include "sweeps/discovery/results.h"
#include "sweeps/discovery/select.h"
#include "sweeps/discovery/view.h"
#include "sweeps/spaces/experiment.h"


enum tune_subject_kind {
    TUNE_ABOUT_NOTHING, TUNE_ABOUT_SPACE, TUNE_ABOUT_EXPERIMENT, TUNE_ABOUT_OPERATION,
    TUNE_ABOUT_ENTITY
};

struct tune_subject {
    const struct tune_question *q;
    struct tune_answer_table *a;         /* the answer being built; it owns all memory */
    const char *question;          /* "best", for messages */
    enum tune_subject_kind kind;
    const char *name;              /* name of the experiment, operation or entity */
    const char *operation;         /* only this operation's results; NULL: all */
    struct tune_catalog catalog;
    bool catalog_read;
    struct tune_space *space;      /* NULL: the subject has none */
    struct tune_binding *bindings;
    struct tune_derived *derived;  /* [derived_count] */
    int derived_count;
    struct tune_unused *unused;    /* state of unused.c */
};

/* tune_subject_answer - resolve the name of q's subject, and answer q. make adds columns, rows and
 * notes to s->a. The answer is then arranged as q says. NULL with an error. */
struct tune_answer_table *tune_subject_answer(const struct tune_question *q, const char *question,
                                        int (*make)(struct tune_subject *s));

/* tune_subject_space - open the subject's space. It comes from a file or a record, from the
 * operation, or from the experiment's rows. An entity is an error.
 * tune_subject_catalog - read the known experiments, unless they have been read.
 * tune_subject_view - open a view of the space with these columns, as q says. which: all results
 * include failed and invalid ones. Notes go to the answer.
 * tune_subject_add_notes - add notes about the provenances of the view's results. */
enum tune_subject_which { TUNE_RESULTS, TUNE_VALID_RESULTS, TUNE_ALL_RESULTS };
int tune_subject_space(struct tune_subject *s);
int tune_subject_catalog(struct tune_subject *s);
struct tune_view *tune_subject_view(struct tune_subject *s, const char *const *columns, int count,
                                    enum tune_subject_which which);
int tune_subject_add_notes(struct tune_subject *s, struct tune_view *v);

/* The numbers of a group's results, by column.
 * tune_figures_read - read the numbers of the view's current group. finite: skip infinities, and
 * count them in f->infinite.
 * tune_figures_of - the numbers of a column: count[column] of them. */
struct tune_figures {
    int columns;       /* number of columns, the view's first; set by the caller */
    int capacity, *count;  /* [columns] */
    double *values;    /* [columns][capacity] */
    int64_t infinite;  /* infinities skipped so far */
};
int tune_figures_read(struct tune_subject *s, struct tune_figures *f, struct tune_view *v,
                      int results, bool finite);
double *tune_figures_of(const struct tune_figures *f, int column);

/* tune_subject_word - quote a word for a shell, for a line to type. "" if memory runs out.
 * tune_subject_list - split a list, which may be NULL, into names[most]. Returns their number, or
 * -1 with an error.
 * tune_subject_properties - the same. Each name must be a target of the space's experiments or a
 * new column.
 * tune_subject_numbers - the same. Each name must also be one of a number.
 * tune_subject_target - find a target or new column by its name, under a binding (-1: the first
 * that has it). NULL: there is none.
 * tune_subject_dimension - the index of the dimension with that name, or -1 with an error.
 * tune_subject_median - 1 if q aggregates several results by their median, 0 if by their mean. -1
 * with an error: q asks for something else. */
const char *tune_subject_word(struct tune_subject *s, const char *word);
int tune_subject_list(struct tune_subject *s, const char *text, const char **names, int most);
int tune_subject_properties(struct tune_subject *s, const char *text, const char **names, int most);
int tune_subject_numbers(struct tune_subject *s, const char *text, const char **names, int most);
const struct tune_target *tune_subject_target(struct tune_subject *s, int binding,
                                              const char *name);
int tune_subject_dimension(const struct tune_subject *s, const char *name);
int tune_subject_median(const struct tune_subject *s);

/* unused.c - stored results that sweep would not use here.
 * tune_unused_count - count the entity if sweep would not use its valid result.
 * tune_unused_report - add notes with the counts, the reasons, and the --accept that would use
 * them.
 * tune_unused_free - free the counts.
 * tune_unused_other_inputs - add notes about other parameters with which these entities were
 * measured. */
int tune_unused_count(struct tune_subject *s, int binding, const struct tune_value *entity);
void tune_unused_report(struct tune_subject *s);
void tune_unused_free(struct tune_subject *s);
int tune_unused_other_inputs(struct tune_subject *s);

/* command.c
 * tune_subject_folders - the placeholders of the actuator's last configuration in an operation on
 * this space. Returns their number, or -1. The caller frees the record, which owns their texts.
 * tune_subject_entity - find the values of the question's entity in the space,
 * values[space->count]. 1; 0: it is not among the first million; -1 with an error.
 * tune_ask_entity_command - tune_ask_command of a question with `entity`.
 * tune_subject_command - add a row with the command that measures an entity. */
int tune_subject_folders(struct tune_subject *s, const char *actuator,
                         struct tune_operation_record *record, struct tune_placeholder words[2]);
int tune_subject_entity(struct tune_subject *s, struct tune_value *values);
struct tune_answer_table *tune_ask_entity_command(const struct tune_question *q);
int tune_subject_command(struct tune_subject *s, int binding, const struct tune_value *entity);

#endif
