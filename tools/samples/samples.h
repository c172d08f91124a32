/* samples.h - what the files of this tool share: its flags, and the space and the store it looks at. */
#ifndef TUNE_TOOLS_SAMPLES_H
#define TUNE_TOOLS_SAMPLES_H

#include <stdio.h>

#include "core/try.h"
#include "discovery/view.h"
#include "flags/program.h"

struct samples_flags {
    struct tune_flags tune;
    const char *command, *words, *store, *experiments, *include, *property_format, *output_format, *output_file, *properties, *aggregate,
        *where, *operation;
    bool all_properties;
    int limit;
};
extern struct samples_flags my;

struct samples {
    struct tune_store *store;
    struct tune_catalog catalog;
    struct tune_space *space;          /* NULL: the command takes none */
    struct tune_protocol *protocols;
    FILE *out;
};
extern struct samples samples;

/* samples_fail - set the error; -1. samples_word - the i-th word behind the command, or NULL. samples_words - how many. */
int samples_fail(enum tune_error_kind kind, const char *text);
const char *samples_word(int i);
int samples_words(void);

/* samples_open_space - read the space file, the experiments, and bind them, into samples. */
int samples_open_space(const char *path);

/* samples_split - text's parts between commas, copies that live as long as the program; at most `most`. */
int samples_split(const char *text, const char **parts, int most);

/* samples_say_mixed - on stderr, if the view's figures are of several host classes or builds. */
int samples_say_mixed(struct tune_view *v);

/* The commands: 0 or -1. */
int samples_show(void);

#endif
