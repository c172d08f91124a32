/* samples.h - shared by the files of this tool: its options, and the commands that are not
 * questions. */
#ifndef TUNE_TOOLS_SAMPLES_H
#define TUNE_TOOLS_SAMPLES_H

#include <stdio.h>

#include "core/try.h"
#include "flags/program.h"
#include "sweeps/answers/question.h"
#include "sweeps/stores/store.h"

struct samples_flags {
    struct tune_flags tune;
    const char *command, *word, *store, *experiments, *include, *output_format,
        *output_file, *properties, *aggregate, *where, *operation, *build, *point, *columns,
        *sort, *group_by, *derive, *maximize, *minimize, *experiment, *actuator, *inputs, *x,
        *series, *svg, *color, *labels, *regression, *per, *facet, *note, *undo, *table, *units,
        *entity, *points;
    bool all_properties, predicted, logarithmic, print_command, with_programs, yes;
    int count, width, entities;
    int64_t limit;
};

/* samples_write_flags - write the options in an answer's texts as flags. Returns the answer, which
 * may be NULL.
 * samples_word - word i after the command, or NULL. */
struct tune_answer_table *samples_write_flags(const struct samples_flags *my,
                                       struct tune_answer_table *a);
const char *samples_word(const struct samples_flags *my, int i);

/* All return 0, or -1 with an error; samples_check returns 1 if there are problems. They print to
 * out.
 * samples_draw - draw the answer of tune_ask_plot in the terminal, and as SVG to --svg.
 * samples_import, samples_merge, samples_forget, samples_check - run the command of that name. */
int samples_draw(const struct samples_flags *my, const struct tune_question *q, FILE *out);
int samples_import(const struct samples_flags *my, struct tune_store *store, FILE *out);
int samples_merge(const struct samples_flags *my, struct tune_store *store, FILE *out);
int samples_forget(const struct samples_flags *my, struct tune_store *store, FILE *out);
int samples_check(const struct samples_flags *my, struct tune_store *store, FILE *out);

#endif
