/* model.h - models of the measured figures of a space, and the entities to ask them about. Private
 * to answers/. */
#ifndef TUNE_ANSWERS_MODEL_H
#define TUNE_ANSWERS_MODEL_H

#include "sweeps/answers/subject.h"
#include "sweeps/surrogate/predictor.h"

/* tune_models_read - fit a model of a property to the results that q selects, under each experiment
 * that has it: models[space->reference_count], NULL where there is none. selected: only results
 * that meet q's `where`. Notes say what is left out, and why an experiment has no model. -1 with an
 * error: no experiment has one. Call tune_models_free in any case.
 * tune_models_free - free them.
 * tune_models_note - add a note about the rows of the models. */
int tune_models_read(struct tune_subject *s, const char *property, bool selected,
                     struct tune_predictor **models);
void tune_models_free(struct tune_subject *s, struct tune_predictor **models);
void tune_models_note(struct tune_subject *s, struct tune_predictor *const *models,
                      const char *property);

/* Entities of a space. */
struct tune_entities {
    struct tune_value **at; /* [count] */
    int count;
};

/* tune_entities_list - all entities that meet q's `where`, if they are at most `most`. Else `most`
 * of them, spread evenly by a Sobol sequence; a note says so. -1 with an error.
 * tune_entities_add - add one; a copy in the answer's memory.
 * tune_entities_free - free the list. */
int tune_entities_list(struct tune_subject *s, int most, struct tune_entities *e);
int tune_entities_add(struct tune_subject *s, struct tune_entities *e,
                      const struct tune_value *values);
void tune_entities_free(struct tune_entities *e);

/* tune_difference_text - write into text[size] the values of an entity that differ from another's:
 * "batch_size 4, lr 0.1". */
void tune_difference_text(const struct tune_space *space, const struct tune_value *entity,
                          const struct tune_value *other, char *text, size_t size);

/* expected.c
 * tune_best_expected - add the answer of `best` with `predicted`. command: the command that
 * measures the first one. */
int tune_best_expected(struct tune_subject *s, bool command);

#endif
