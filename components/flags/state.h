/* state.h - the private part of struct tune_flags. Private to this folder. */
#ifndef TUNE_FLAGS_STATE_H
#define TUNE_FLAGS_STATE_H

#include <string.h>

#include "flags/flags.h"

/* How --resume treats an option; see TUNE_FREE in flags.h. */
enum tune_option_keeping {
    TUNE_KEEP, TUNE_CHANGE_FREELY = 0x100, TUNE_COMPARE_CONTENT = 0x200, TUNE_TAKE_NOT = 0x400,
    TUNE_JOIN = 0x800, TUNE_TAKE_ANY = 0x1000
};

struct tune_json;

/* One option of the program. Rows of one name are merged into the first of them. */
struct tune_flags_entry {
    struct tune_option row;             /* its type, without the flags of --resume */
    enum tune_option_keeping keeping;
    bool more;                          /* only --help all lists it */
    /* its heading; "": the program's own */
    const char *group;
    const struct tune_service *service; /* the service of TUNE_OPTION_SERVED; NULL: none */
    char *text;                         /* its value as it was written; NULL: none */
    enum tune_source source;            /* source of that value */
    /* its value in the resumed run, as it was written; NULL: none */
    char *run_text;
    bool in_run;                        /* the resumed run has written it down */
    bool typed;                         /* it is on the command line */
    bool noted;                         /* a note has said that its old name was used */
    bool changed;                       /* it differs from the run's value, which --allow-changed
                                         * permits */
};

/* The outcome of a setting in a --config file of another tool. */
enum tune_finding_kind {
    TUNE_TAKEN,    /* it has become options of ours */
    TUNE_ASSUMED,  /* the file leaves it out; it is the tool's default */
    TUNE_LEFT_OUT, /* it has no part in what is trained */
    TUNE_STOPS     /* without it, another thing would be trained */
};
struct tune_finding {
    enum tune_finding_kind kind;
    int line;                /* 0: none */
    const char *name, *text; /* the setting, as the file has it; "": none */
    const char *to;          /* our options; "": none */
    const char *why;         /* "": nothing to say */
};

struct tune_pool;

struct tune_flags_state {
    struct tune_flags_entry *at; /* [count] */
    int count;
    enum tune_wish wish;
    const char **configs;      /* [config_count] names of the --config files, from argv */
    int config_count;
    char *resume_checkpoint;   /* flags->resume_checkpoint points to it */
    /* [word_count] from argv: words of the positional argument that takes several */
    const char **words;
    int word_count;
    bool stable;               /* loader and logger point to it */
    bool diverged;             /* loader, logger and checkpoints point to it */
    bool comparing;            /* a run's options are read to compare with, not to take */
    bool again;                /* --requeue: that run has no checkpoint and begins again */
    char *model_defaults;      /* file of model defaults that was applied; NULL: none */
    const char *ignored;       /* --ignore-keys, from argv; NULL: none */
    const char *tool;          /* the tool whose file --config is; NULL: it is ours */
    const char *fits;          /* names the program for such a file; NULL: it is this one */
    struct tune_finding *findings; /* [finding_count] */
    int finding_count;
    const char **notes;        /* [note_count] see tune_flags_note */
    int note_count;
    struct tune_pool *pool;    /* memory of the four above */
    char by_size[96];          /* whose defaults were taken by the model's size; "": none were */
};

/* True if the option's value is text; true if it is one of a list of words. */
static inline bool tune_option_is_text(const struct tune_option *row)
{
    return row->type >= TUNE_STRING;
}
static inline bool tune_option_is_switch(const struct tune_option *row)
{
    return row->type == TUNE_BOOL || (row->type == TUNE_ENUM && !strcmp(row->range, TUNE_SWITCH));
}

static inline bool tune_option_is_choice(const struct tune_option *row)
{
    return row->type > TUNE_STRING;
}

/* tune_flags_row - index of the option of that name in state->rows, or -1. '-' and '_' are equal;
 * the "<>" of a positional row is ignored. Names of earlier versions are found, too.
 * tune_flags_note_old - if that name of row i is one of an earlier version, note it once for the
 * header. */
int tune_flags_row(const struct tune_flags_state *state, const char *name, size_t size);
int tune_flags_note_old(struct tune_flags_state *state, int i, const char *name, size_t size);

/* tune_flags_key - the option's name as a JSON key: "batch_size", "folder" for "<folder>"; into
 * text, cut to size. */
const char *tune_flags_key(const struct tune_option *row, char *text, size_t size);

/* tune_flags_unknown - the error for a name that is no option, with the nearest one in the same
 * spelling: dashes "--" or "". where stands before it. Returns -1. */
int tune_flags_unknown(const struct tune_flags_state *state, const char *where, const char *dashes,
                       const char *name);

/* tune_flags_set - set the i-th option's value to a copy of text.
 * tune_flags_config_read - read options from a file, JSON or YAML.
 * tune_flags_object - read options from the next JSON object in j. From a run (TUNE_FROM_RUN),
 * options of one session are left out, and the others are kept to compare with. */
int tune_flags_set(struct tune_flags_state *state, int i, const char *text,
                   enum tune_source source, const char *where);
int tune_flags_config_read(struct tune_flags *flags, const char *path, enum tune_source source);
int tune_flags_object(struct tune_flags_state *state, struct tune_json *j, enum tune_source source);

/* tune_flags_from_run - read the options of the run that --resume names, if it is given.
 * tune_flags_requeued - after all parsing with --requeue: look for the run in --output.
 * tune_flags_check_run - compare the current values with those of the run, after all parsing. */
int tune_flags_from_run(struct tune_flags *flags);
int tune_flags_requeued(struct tune_flags *flags);
int tune_flags_check_run(struct tune_flags *flags);

/* tune_flags_find_folders - replace --model, --adapter and --compare-model by the folder that they
 * mean. That is a run's best or newest checkpoint, a name in models/ or runs/, or the folder of a
 * file. Take the base that an adapter names. A note says each. */
int tune_flags_find_folders(struct tune_flags *flags);
/* tune_flags_by_size - put defaults by the size of a model that is no known one. The classes of
 * each program are in defaults/sizes.json. A model that is not here has none. -1 with an error: a
 * bad file. */
int tune_flags_by_size(struct tune_flags_state *state, const char *program, const char *model);

/* Room for a value of any type. */
union tune_option_value {
    int i;
    int64_t l;
    double d;
    bool b;
    const char *s;
    enum tune_dtype dtype;
};

/* tune_flags_alias - what an option of another program is called here, as the end of a message;
 * NULL: the name is not one of those.
 * tune_flags_read_word - a value as others write it. true: ours is what we write, and said tells of
 * it. false: it is none; said may tell why, as the end of a message.
 * tune_flags_add_note - add a note; text is copied. */
const char *tune_flags_alias(const struct tune_flags_state *state, const char *name, char *text,
                               size_t size);
bool tune_flags_read_word(const struct tune_option *row, const char *text, char ours[64],
                          char *said, size_t size);
int tune_flags_add_note(struct tune_flags_state *state, const char *text);

/* tune_flags_put - check text for type and range, and write it to the row's place; where: its name
 * in messages ("--lr").
 * tune_flags_put_elsewhere - write it to *value instead, and set *copy to a copy of the row that
 * points to *value. */
int tune_flags_put(const struct tune_option *row, const char *text, const char *where);
int tune_flags_put_elsewhere(struct tune_option *copy, union tune_option_value *value,
                             const struct tune_option *row, const char *text);

#endif
