/* state.h - data of tune_flags_parse behind struct tune_flags; for the files of this folder. */
#ifndef TUNE_FLAGS_STATE_H
#define TUNE_FLAGS_STATE_H

#include "flags/flags.h"

/* How --resume treats an option; see TUNE_FREE in flags.h. */
enum tune_option_keeping {
    TUNE_KEEP, TUNE_CHANGE_FREELY = 0x100, TUNE_COMPARE_CONTENT = 0x200, TUNE_TAKE_NOT = 0x400
};

struct tune_json;

/* One option of the program. Rows of one name are merged into the first of them. */
struct tune_flags_entry {
    struct tune_option row;             /* of a plain type */
    enum tune_option_keeping keeping;
    bool more;                          /* only --help all lists it */
    /* the heading that it stands under; "": the program's own */
    const char *group;
    const struct tune_service *service; /* of TUNE_OPTION_SERVED; NULL: none */
    char *text;                         /* its value as it was written; NULL: none */
    enum tune_source source;            /* of that value */
    /* its value in the resumed run, as it was written; NULL: none */
    char *run_text;
    bool changed;                       /* it differs from the run's, and may by --allow-changed */
};

struct tune_flags_state {
    struct tune_flags_entry *at; /* [count] */
    int count;
    enum tune_wish wish;
    const char **configs;      /* [config_count]; the --config files, argv's texts */
    int config_count;
    char *resume_checkpoint;   /* what flags->resume_checkpoint points to */
    /* [word_count]; of the positional row that takes many, argv's texts */
    const char **words;
    int word_count;
    bool stable;               /* the loader and the logger of flags point to it */
    char *model_defaults;      /* the file that was applied; NULL: none */
};

/* The option's value is a text; one of a list of words. */
static inline bool tune_option_is_text(const struct tune_option *row)
{
    return row->type >= TUNE_STRING;
}
static inline bool tune_option_is_choice(const struct tune_option *row)
{
    return row->type > TUNE_STRING;
}

/* tune_flags_row - index of the option of that name in state->rows, or -1. '-' and '_' are equal,
 * the "<>" of a positional row do not count. */
int tune_flags_row(const struct tune_flags_state *state, const char *name, size_t size);

/* tune_flags_key - the option's name as a JSON key: "batch_size", "folder" for "<folder>"; into
 * text, cut to size. */
const char *tune_flags_key(const struct tune_option *row, char *text, size_t size);

/* tune_flags_set - text, which is copied, as the i-th option's value.
 * tune_flags_object - the options of the JSON object that comes next in j. Of a run
 * (TUNE_FROM_RUN), those of a session are left out, and the others kept for comparing. */
int tune_flags_set(struct tune_flags_state *state, int i, const char *text,
                   enum tune_source source, const char *where);
int tune_flags_object(struct tune_flags_state *state, struct tune_json *j, enum tune_source source);

/* tune_flags_from_run - the options of the run that --resume, if it was given, names.
 * tune_flags_check_run - what is in force now against what was there; after everything else is
 * parsed. */
int tune_flags_from_run(struct tune_flags *flags);
int tune_flags_check_run(struct tune_flags *flags);

/* Room for a value of any type. */
union tune_value {
    int i;
    int64_t l;
    double d;
    bool b;
    const char *s;
    enum tune_dtype dtype;
};

/* tune_flags_put - text into the row's place, checked for type and range; where names it in
 * messages ("--lr").
 * tune_flags_put_elsewhere - into *value instead, which a copy of the row in *copy points to. */
int tune_flags_put(const struct tune_option *row, const char *text, const char *where);
int tune_flags_put_elsewhere(struct tune_option *copy, union tune_value *value,
                             const struct tune_option *row, const char *text);

#endif
