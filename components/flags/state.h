/* state.h - what tune_flags_parse keeps behind struct tune_flags; for the files of this folder only. */
#ifndef TUNE_FLAGS_STATE_H
#define TUNE_FLAGS_STATE_H

#include "flags/flags.h"

struct tune_flags_state {
    int count;
    struct tune_option *rows;  /* [count]; the program's table, rows of one name merged into the first of them */
    const char **groups;       /* [count]; the heading the row stands under; NULL: the program's own */
    char **texts;              /* [count]; the value in force as it was written; NULL: none */
    enum tune_source *sources; /* [count] */
    enum tune_wish wish;
    const char **configs;      /* [config_count]; the --config files, argv's texts */
    int config_count;
    const char **words;        /* [word_count]; of the positional row that takes many, argv's texts */
    int word_count;
    char *model_defaults;      /* the file that was applied; NULL: none */
};

/* tune_flags_row - index of the option of that name in state->rows, or -1. '-' and '_' are equal, the "<>" of a
 * positional row do not count. */
int tune_flags_row(const struct tune_flags_state *state, const char *name, size_t size);

/* tune_flags_key - the option's name as a JSON key: "batch_size", "folder" for "<folder>"; into text, cut to size. */
const char *tune_flags_key(const struct tune_option *row, char *text, size_t size);

/* tune_flags_put - text into the row's place, checked for type and range; where names it in messages ("--lr"). */
int tune_flags_put(const struct tune_option *row, const char *text, const char *where);

#endif
