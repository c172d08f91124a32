/* flags.c - read the command line and the model's defaults into the places in the option table.
 * config.c reads --config.
 *
 * Sources are read in this order: defaults, the run of --resume, every --config, the flags. Then
 * --model is known, and its defaults replace values that are still the table's defaults. */
#include "flags/flags.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "files/file.h"
#include "files/json.h"
#include "core/nearest.h"
#include "core/pool.h"
#include "core/try.h"
#include "flags/known.h"
#include "flags/state.h"

static const struct tune_option builtin[] = {
    {"config", TUNE_STRING, NULL, NULL, "", "", ""},
    {"help", TUNE_BOOL, NULL, NULL, "", "", ""},
    {"describe", TUNE_BOOL, NULL, NULL, "", "", ""},
    {"list-models", TUNE_BOOL, NULL, NULL, "", "", ""},
    {"version", TUNE_BOOL, NULL, NULL, "", "", ""},
    {"show-config", TUNE_BOOL, NULL, NULL, "", "", ""},
    {"ignore-keys", TUNE_STRING, NULL, NULL, "", "", ""},
};
enum { CONFIG, IGNORE_KEYS = 6, BUILTINS = sizeof builtin / sizeof *builtin, PLAIN = 0xff };

static bool positional(const struct tune_option *row)
{
    return *row->name == '<';
}

const char *tune_flags_key(const struct tune_option *row, char *text, size_t size)
{
    size_t n = 0;
    for (const char *c = row->name; *c && n + 1 < size; c++)
        if (*c != '<' && *c != '>')
            text[n++] = *c == '-' ? '_' : *c;
    text[n] = 0;
    return text;
}

static bool same_name(const struct tune_option *row, const char *name, size_t size)
{
    char key[128];
    tune_flags_key(row, key, sizeof key);
    if (strlen(key) != size)
        return false;
    for (size_t i = 0; i < size; i++)
        if (key[i] != (name[i] == '-' ? '_' : name[i]))
            return false;
    return true;
}

/* Options that had another name in earlier versions. */
static const struct {
    struct tune_option old;
    const char *name;
} renamed[] = {{{.name = "sample-every"}, "preview-every"}, {{.name = "sample-prompts"}, "preview-prompts"},
               {{.name = "sample-tokens"}, "preview-tokens"}, {{.name = "sample-rows"}, "preview-rows"}};

int tune_flags_row(const struct tune_flags_state *state, const char *name, size_t size)
{
    for (int i = 0; i < state->count; i++)
        if (same_name(&state->at[i].row, name, size))
            return i;
    for (size_t k = 0; k < sizeof renamed / sizeof *renamed; k++)
        if (same_name(&renamed[k].old, name, size))
            return tune_flags_row(state, renamed[k].name, strlen(renamed[k].name));
    return -1;
}

static int no_memory(void)
{
    tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory while reading the flags");
    return -1;
}

int tune_flags_add_note(struct tune_flags_state *state, const char *text)
{
    const char **more = tune_pool_take(&state->pool, ((size_t)state->note_count + 1) * sizeof *more);
    const char *copy = tune_pool_text(&state->pool, text, strlen(text));
    if (!more || !copy)
        return no_memory();
    if (state->note_count > 0)
        memcpy(more, state->notes, (size_t)state->note_count * sizeof *more);
    more[state->note_count++] = copy;
    state->notes = more;
    return 0;
}

/* After a value was refused: take it as others write it, with a note. */
static int put_word(struct tune_flags_state *state, int i, char **text, const char *where)
{
    char ours[64], said[512], *copy;
    struct tune_error refusal;
    tune_error_save(&refusal);
    bool known = tune_flags_read_word(&state->at[i].row, *text, ours, said, sizeof said);
    if (known && !(copy = strdup(ours)))
        return no_memory();
    if (known && tune_flags_put(&state->at[i].row, copy, where) == 0) {
        tune_error_clear();
        free(*text);
        *text = copy;
        return tune_flags_add_note(state, said);
    }
    if (known)
        free(copy);
    tune_error_restore(&refusal);
    if (!known && *said)
        tune_error_usage("%s%s", tune_error_message(), said);
    return -1;
}

/* Strings point into the copy. */
int tune_flags_set(struct tune_flags_state *state, int i, const char *text, enum tune_source source, const char *where)
{
    const struct tune_flags_entry *e = &state->at[i];
    bool joined = e->keeping == TUNE_JOIN && source == TUNE_FROM_FLAG && e->source == source && e->text;
    char *copy = NULL;
    if (asprintf(&copy, "%s%s%s", joined ? e->text : "", joined ? "," : "", text) < 0)
        return no_memory();
    int result = tune_flags_put(&state->at[i].row, copy, where);
    if (result < 0 && source >= TUNE_FROM_CONFIG)
        result = put_word(state, i, &copy, where);
    if (result < 0) {
        free(copy);
        return -1;
    }
    free(state->at[i].text);
    state->at[i].text = copy;
    state->at[i].source = source;
    return 0;
}

static int add_service(struct tune_flags_state *state, int i, const struct tune_option *o)
{
    if (i < 0 || (state->at[i].row.type != TUNE_INT && state->at[i].row.type != TUNE_BOOL))
        return tune_error_set("TUNE_OPTION_SERVED(\"%s\"): %s in the program's table", o->name,
                              i < 0 ? "there is no such option before it"
                              : "that option is neither an int nor a bool");
    state->at[i].service = o->at;
    return 0;
}

/* Merge rows of one name: a later row overrides the members that it sets. */
static int merge(struct tune_flags_state *state, const struct tune_option *options)
{
    int n = 0;
    while (options[n].name)
        n++;
    if (!(state->at = calloc((size_t)n + 1, sizeof *state->at)))
        return no_memory();
    const char *group = "";
    bool more = false;
    for (const struct tune_option *o = options; o->name; o++) {
        if (o->type == TUNE_GROUP) {
            more = o->value != NULL;
            if (!more)
                group = o->name;
            continue;
        }
        int i = tune_flags_row(state, o->name, strlen(o->name));
        if (o->type == TUNE_SERVE) {
            TRY(add_service(state, i, o));
            continue;
        }
        if (i < 0) {
            i = state->count++;
            state->at[i].group = group;
            state->at[i].more = more;
            state->at[i].row.name = o->name;
        }
        struct tune_option *row = &state->at[i].row;
        row->value = o->value ? o->value : row->value;
        row->range = o->range ? o->range : row->range;
        row->unit = o->unit ? o->unit : row->unit;
        row->help = o->help ? o->help : row->help;
        if (o->at) {
            row->at = o->at;
            row->type = o->type & PLAIN;
            state->at[i].keeping = (enum tune_option_keeping)(o->type & ~PLAIN);
        }
    }
    return 0;
}

static int put_defaults(struct tune_flags_state *state)
{
    for (int i = 0; i < state->count; i++) {
        struct tune_option *row = &state->at[i].row;
        char where[160];
        snprintf(where, sizeof where, "the default of --%s", row->name);
        if (!row->at)
            return tune_error_set("option --%s: its row in the program's table names no place (at "
                                  "is NULL)", row->name);
        if (row->value)
            TRY(tune_flags_set(state, i, row->value, TUNE_FROM_DEFAULT, where));
        else if (row->type == TUNE_STRING || row->type == TUNE_CHOICE || row->type == TUNE_CHOICES)
            *(const char **)row->at = NULL;
    }
    return 0;
}

/* Find the option whose help has the words of the name: "learning-rate" finds lr. NULL: none. */
static const char *by_help(const struct tune_flags_state *state, const char *name)
{
    char words[128];
    snprintf(words, sizeof words, "%s", name);
    for (char *c = words; *c; c++)
        *c = *c == '-' || *c == '_' ? ' ' : *c;
    for (int i = 0; i < state->count; i++)
        if (!positional(&state->at[i].row) && state->at[i].row.help && strcasestr(state->at[i].row.help, words))
            return state->at[i].row.name;
    return NULL;
}

int tune_flags_unknown(const struct tune_flags_state *state, const char *where, const char *dashes, const char *name)
{
    const char **names = calloc((size_t)state->count + BUILTINS, sizeof *names);
    int n = 0;
    if (!names)
        return no_memory();
    for (int i = 0; i < state->count; i++)
        if (!positional(&state->at[i].row))
            names[n++] = state->at[i].row.name;
    for (int i = 0; i < BUILTINS && *dashes; i++)
        names[n++] = builtin[i].name;
    char hint[256] = "";
    int distance, most = tune_nearest_limit(name);
    const char *nearest = tune_nearest(name, names, n, &distance), *explained = distance > most ? by_help(state, name) : NULL;
    if (!tune_flags_alias(state, name, hint, sizeof hint) && (explained || distance <= most))
        snprintf(hint, sizeof hint, "; the nearest is %s%s", dashes, explained ? explained : nearest);
    free(names);
    return tune_error_usage("%sunknown option \"%s%s\"%s", where, dashes, name, hint);
}

int tune_flags_note_old(struct tune_flags_state *state, int i, const char *name, size_t size)
{
    char note[256];
    for (size_t k = 0; k < sizeof renamed / sizeof *renamed; k++)
        if (same_name(&renamed[k].old, name, size) && !state->at[i].noted) {
            state->at[i].noted = true;
            snprintf(note, sizeof note, "# %-12s --%s is now called --%s", "renamed", renamed[k].old.name, renamed[k].name);
            return tune_flags_add_note(state, note);
        }
    return 0;
}

/* ---- the defaults of a known model ---- */

/* Read defaults/<program>/<known model>.json, if --model is a known model and the file exists. Other
 * models have defaults by their size. */
static int apply_model_defaults(struct tune_flags *flags)
{
    struct tune_flags_state *state = flags->state;
    struct tune_known_model known;
    char name[TUNE_PATH_MAX], path[TUNE_PATH_MAX];
    int i = tune_flags_row(state, "model", 5);
    if (i < 0 || state->at[i].row.type != TUNE_STRING || !state->at[i].text)
        return 0;
    int found = tune_known_model(state->at[i].text, &known);
    if (found <= 0)
        return found < 0 ? -1 : tune_flags_by_size(state, flags->program, state->at[i].text);
    TRY(tune_path(name, "%s/%s.json", flags->program, known.name));
    if (tune_defaults_path(path, name) < 0) {
        tune_error_clear();
        return 0;
    }
    if (!tune_file_exists(path))
        return 0;
    state->model_defaults = strdup(path);
    return state->model_defaults ? tune_flags_config_read(flags, path, TUNE_FROM_MODEL_DEFAULTS) : no_memory();
}

/* ---- the command line ---- */

struct reader {
    struct tune_flags *flags;
    int at;             /* next word of argv */
    int next_positional;
    bool only_positional; /* true after -- */
    enum pass { RESUME, CONFIGS, REST } pass; /* each pass takes its own options and skips the
                                               * others */
};

static int take_positional(struct reader *r, const char *word)
{
    struct tune_flags_state *state = r->flags->state;
    int i = r->next_positional;
    while (i < state->count && !positional(&state->at[i].row))
        i++;
    bool many = i < state->count && strstr(state->at[i].row.name, "...>");
    r->next_positional = many ? i : i + 1;
    if (many && r->pass == REST)
        state->words[state->word_count++] = word;
    if (i < state->count)
        return r->pass != REST ? 0 : tune_flags_set(state, i, word, TUNE_FROM_FLAG, state->at[i].row.name);
    bool yes = !strcmp(word, "true") || !strcmp(word, "false");
    return tune_error_usage("unexpected argument \"%s\": %s", word, yes
                            ? "a switch takes its value after =, as in --shuffle=false"
                            : "options begin with --, see --help");
}

/* The value: after '=', or the next word. NULL with an error if there is none. */
static const char *take_value(struct reader *r, const char *equal, const char *name, bool any)
{
    if (equal)
        return equal + 1;
    const char *word = r->at < r->flags->argc ? r->flags->argv[r->at] : NULL;
    if (word && (any || strncmp(word, "--", 2))) {
        r->at++;
        return word;
    }
    tune_error_usage("--%s: expected a value, found %s%s%s%s%s", name, word ? "\"" : "nothing",
                     word ? word : "", word ? "\"; a value that begins so is written --" : "",
                     word ? name : "", word ? "=VALUE" : "");
    return NULL;
}

static int take_builtin(struct reader *r, int b, const char *equal)
{
    struct tune_flags_state *state = r->flags->state;
    if (b == CONFIG) {
        const char *path = take_value(r, equal, "config", false);
        if (!path)
            return -1;
        if (r->pass != CONFIGS)
            return 0;
        state->configs[state->config_count++] = path;
        return tune_flags_config_read(r->flags, path, TUNE_FROM_CONFIG);
    }
    if (b == IGNORE_KEYS)
        return (state->ignored = take_value(r, equal, "ignore-keys", false)) ? 0 : -1;
    state->wish = (enum tune_wish)b; /* same order */
    const char *word = equal ? equal + 1 : r->at < r->flags->argc ? r->flags->argv[r->at] : "";
    if (state->wish == TUNE_WISH_HELP && !strcmp(word, "all")) {
        state->wish = TUNE_WISH_HELP_ALL;
        r->at += !equal;
    } else if (equal) {
        return tune_error_usage("--%s takes no value%s", builtin[b].name,
                                state->wish == TUNE_WISH_HELP ? " but all" : "");
    }
    return 0;
}

static int take_option(struct reader *r, const char *word)
{
    struct tune_flags_state *state = r->flags->state;
    const char *name = word + 2, *equal = strchr(name, '='), *value;
    size_t size = equal ? (size_t)(equal - name) : strlen(name);
    char where[160];
    int i = tune_flags_row(state, name, size);
    bool negated = false;
    for (int b = 0; i < 0 && b < BUILTINS; b++)
        if (same_name(builtin + b, name, size))
            return take_builtin(r, b, equal);
    if (i < 0 && !equal && size > 3 && (!strncmp(name, "no-", 3) || !strncmp(name, "no_", 3))) {
        i = tune_flags_row(state, name + 3, size - 3);
        negated = i >= 0 && tune_option_is_switch(&state->at[i].row);
        i = negated ? i : -1;
    }
    if (i < 0 || positional(&state->at[i].row)) {
        snprintf(where, sizeof where, "%.*s", (int)size, name);
        return tune_flags_unknown(state, "", "--", where);
    }
    const char *next = r->at < r->flags->argc ? r->flags->argv[r->at] : "";
    bool worded = state->at[i].row.type == TUNE_ENUM && (!strcmp(next, "auto") || !strcmp(next, "off") || !strcmp(next, "on"));
    if (tune_option_is_switch(&state->at[i].row) && !equal && (negated || !worded))
        value = state->at[i].row.type == TUNE_BOOL ? (negated ? "false" : "true") : negated ? "off" : "on";
    else if (!(value = take_value(r, equal, state->at[i].row.name, state->at[i].keeping == TUNE_TAKE_ANY)))
        return -1;
    snprintf(where, sizeof where, "--%s", state->at[i].row.name);
    state->at[i].typed = true;
    TRY(tune_flags_note_old(state, i, name, size));
    bool mine = r->pass == REST || (r->pass == RESUME && !strcmp(state->at[i].row.name, "resume"));
    return mine ? tune_flags_set(state, i, value, TUNE_FROM_FLAG, where) : 0;
}

static int take_words(struct tune_flags *flags, enum pass pass)
{
    struct reader r = {.flags = flags, .at = 1, .pass = pass};
    while (r.at < flags->argc) {
        const char *word = flags->argv[r.at++];
        if (r.only_positional || *word != '-' || !word[1]) {
            TRY(take_positional(&r, word));
        } else if (!strcmp(word, "--")) {
            r.only_positional = true;
        } else if (!strcmp(word, "-h")) {
            flags->state->wish = TUNE_WISH_HELP;
        } else if (word[1] != '-') {
            return tune_error_usage("unknown option \"%s\"; options begin with --, see --help",
                                    word);
        } else {
            TRY(take_option(&r, word));
        }
    }
    return 0;
}

/* --ignore-keys without a file of another tool would do nothing. */
static int check_ignored(const struct tune_flags_state *state)
{
    if (!state->ignored || state->tool)
        return 0;
    return tune_error_usage("--ignore-keys %s: it is for settings in a --config file of another tool, and none is given", state->ignored);
}

static int miss_positional(const struct tune_flags_state *state)
{
    for (int i = 0; i < state->count && state->wish == TUNE_WISH_RUN; i++)
        if (positional(&state->at[i].row) && !state->at[i].text) {
            const struct tune_option *row = &state->at[i].row;
            bool choice = tune_option_is_choice(row);
            return tune_error_usage("%s is missing: %s%s%s", row->name, row->help,
                                    choice ? "; expected one of " : "", choice ? row->range : "");
        }
    return 0;
}

int tune_flags_parse(struct tune_flags *flags, int argc, char **argv, const struct tune_option *options,
                     const struct tune_property *properties)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    flags->program = argc <= 0 ? "program" : slash ? slash + 1 : argv[0];
    flags->argc = argc;
    flags->argv = argv;
    flags->options = options;
    flags->properties = properties;
    flags->state = calloc(1, sizeof *flags->state);
    if (!flags->state || !(flags->state->configs = calloc((size_t)argc + 1, sizeof *flags->state->configs)) ||
        !(flags->state->words = calloc((size_t)argc + 1, sizeof *flags->state->words)))
        return no_memory();
    flags->loader.stable = flags->log.stable = &flags->state->stable;
    flags->loader.diverged = flags->log.diverged = &flags->state->diverged;
    flags->checkpoint.diverged = &flags->state->diverged;
    if (merge(flags->state, options) < 0 || put_defaults(flags->state) < 0 || take_words(flags, RESUME) < 0 ||
        tune_flags_from_run(flags) < 0 || take_words(flags, CONFIGS) < 0 || take_words(flags, REST) < 0 ||
        check_ignored(flags->state) < 0 || tune_flags_find_folders(flags) < 0 || apply_model_defaults(flags) < 0 ||
        miss_positional(flags->state) < 0 || tune_flags_requeued(flags) < 0 ||
        tune_flags_check_run(flags) < 0)
        return -1; /* keep what was read until tune_flags_free: the program may still need its
                    * name */
    return 0;
}

void tune_flags_free(struct tune_flags *flags)
{
    struct tune_flags_state *state = flags ? flags->state : NULL;
    if (flags && flags->close_comm) {
        flags->close_comm(flags->comm);
        flags->close_comm = NULL;
        flags->comm = NULL;
    }
    if (!state)
        return;
    for (int i = 0; i < state->count; i++) {
        free(state->at[i].text);
        free(state->at[i].run_text);
    }
    free(state->at);
    free(state->resume_checkpoint);
    free(state->model_defaults);
    free(state->configs);
    free(state->words);
    free(state->findings);
    tune_pool_free(state->pool);
    free(state);
    flags->state = NULL;
    flags->loader.stable = flags->log.stable = NULL;
    flags->loader.diverged = flags->checkpoint.diverged = flags->log.diverged = NULL;
}

enum tune_wish tune_flags_wish(const struct tune_flags *flags)
{
    return flags->state ? flags->state->wish : TUNE_WISH_RUN;
}

enum tune_source tune_flags_source(const struct tune_flags *flags, const char *name)
{
    int i = flags->state ? tune_flags_row(flags->state, name, strlen(name)) : -1;
    return i < 0 ? TUNE_FROM_DEFAULT : flags->state->at[i].source;
}

/* True if both are the same value: "1e-8" and "1e-08" are. */
static bool same_value(const char *a, const char *b)
{
    char *a_end, *b_end;
    if (!a || !b || !strcmp(a, b))
        return a && b;
    double x = strtod(a, &a_end), y = strtod(b, &b_end);
    return *a && *b && !*a_end && !*b_end && x == y;
}

bool tune_flags_differs(const struct tune_flags *flags, const char *name)
{
    int i = flags->state ? tune_flags_row(flags->state, name, strlen(name)) : -1;
    const struct tune_flags_entry *e = i < 0 ? NULL : &flags->state->at[i];
    return e && e->source != TUNE_FROM_DEFAULT && !same_value(e->row.value, e->text);
}

bool tune_flags_repeats(const struct tune_flags *flags, const char *name)
{
    int i = flags->state ? tune_flags_row(flags->state, name, strlen(name)) : -1;
    const struct tune_flags_entry *e = i < 0 ? NULL : &flags->state->at[i];
    return e && !(e->keeping & (TUNE_TAKE_NOT | TUNE_CHANGE_FREELY)) && tune_flags_differs(flags, name);
}

bool tune_flags_is_path(const struct tune_flags *flags, const char *name)
{
    int i = flags->state ? tune_flags_row(flags->state, name, strlen(name)) : -1;
    return *name == '<' || !strcmp(name, "adapter") || (i >= 0 && flags->state->at[i].keeping == TUNE_COMPARE_CONTENT);
}

bool tune_flags_given(const struct tune_flags *flags, const char *name)
{
    return tune_flags_source(flags, name) >= TUNE_FROM_CONFIG;
}

void tune_flags_name_options(const struct tune_flags *flags, char *text)
{
    for (char *end; (text = strchr(text, '`')) && (end = strchr(text + 1, '`')); text = end) {
        size_t size = (size_t)(end - text - 1);
        int i = flags->state ? tune_flags_row(flags->state, text + 1, size) : -1;
        if (i < 0 || positional(&flags->state->at[i].row))
            continue;
        memcpy(text, "--", 2);
        memcpy(text + 2, flags->state->at[i].row.name, size);
    }
}

bool tune_flags_saves(const struct tune_flags *flags)
{
    return flags->save || flags->checkpoint.save_every != 0 || flags->eval.every != 0 || flags->resume_checkpoint;
}

const char *tune_flags_config(const struct tune_flags *flags, int i)
{
    return flags->state && i < flags->state->config_count ? flags->state->configs[i] : NULL;
}

const char *tune_flags_note(const struct tune_flags *flags, int i)
{
    return flags->state && i < flags->state->note_count ? flags->state->notes[i] : NULL;
}

const char *tune_source_name(enum tune_source source)
{
    static const char *const names[] = {"default", "model defaults", "run", "config", "flag"};
    return names[source];
}

const char *const *tune_flags_words(const struct tune_flags *flags, int *count)
{
    *count = flags->state ? flags->state->word_count : 0;
    return flags->state ? flags->state->words : NULL;
}

int tune_flags_serve(const struct tune_flags *flags, FILE *out)
{
    const struct tune_flags_state *state = flags->state;
    for (int i = 0; i < state->count; i++) {
        const struct tune_option *row = &state->at[i].row;
        const struct tune_service *service = state->at[i].service;
        if (service && (row->type == TUNE_BOOL ? *(bool *)row->at : *(int *)row->at != 0))
            return service->serve(flags, out) < 0 ? -1 : 1;
    }
    return 0;
}

const struct tune_option *tune_flags_each(const struct tune_flags *flags, int i, const char **text)
{
    if (!flags->state || i >= flags->state->count)
        return NULL;
    *text = flags->state->at[i].text;
    return &flags->state->at[i].row;
}

const char *tune_flags_size_defaults(const struct tune_flags *flags)
{
    return flags->state && *flags->state->by_size ? flags->state->by_size : NULL;
}
