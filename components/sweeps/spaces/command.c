/* command.c - make the command line of a run from an experiment's inputs. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/pool.h"
#include "core/try.h"
#include "sweeps/spaces/experiment.h"

struct building {
    const struct tune_experiment *e;
    const struct tune_value *inputs;
    const struct tune_placeholder *words;
    int word_count;
    struct tune_command *command;
};

/* Allocate memory of the command. NULL with an error. */
static char *allocate(struct building *b, size_t size)
{
    char *text = tune_pool_take(&b->command->memory, size);
    if (!text)
        tune_error_no_memory("a command line");
    return text;
}

static char *value_to_string(struct building *b, const struct tune_value *v)
{
    size_t size = (size_t)tune_value_str(v, NULL, 0) + 1;
    char *text = allocate(b, size);
    if (text)
        tune_value_str(v, text, size);
    return text;
}

static char *concatenate(struct building *b, const char *first, const char *second)
{
    char *text = allocate(b, strlen(first) + strlen(second) + 1);
    return text ? strcat(strcpy(text, first), second) : NULL;
}

/* Append text to the list. text NULL: making it failed, so return -1. */
static int push_text(const char ***list, int *count, const char *text)
{
    if (!text)
        return -1;
    if (!tune_array_fit(list, (size_t)*count, sizeof **list) || !tune_array_fit(list, (size_t)*count + 1, sizeof **list))
        return tune_error_no_memory("a command line");
    (*list)[(*count)++] = text;
    (*list)[*count] = NULL;
    return 0;
}

/* True if the key of a map is the value, or an equal number. */
static bool names(const char *key, const struct tune_value *v)
{
    double number, wanted;
    char *end;
    if (tune_value_means(v, key))
        return true;
    if (!tune_value_number(v, &number) || !*key)
        return false;
    wanted = strtod(key, &end);
    return !*end && wanted == number;
}

static bool is_named(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && !strncmp(name, text, length);
}

/* The value of {name}: a word of the caller, a folder of the experiment, or an input. {} is the
 * input's own value. */
static const char *word(struct building *b, const char *name, size_t length, const struct tune_value *own)
{
    if (length == 0)
        return own ? value_to_string(b, own) : NULL;
    for (int i = 0; i < b->word_count; i++)
        if (is_named(b->words[i].name, name, length))
            return b->words[i].text;
    for (int i = 0; i < b->e->folder_count; i++)
        if (is_named(b->e->folder_names[i], name, length))
            return b->e->folders[i];
    for (int i = 0; i < b->e->input_count; i++)
        if (is_named(b->e->names[i], name, length))
            return value_to_string(b, &b->inputs[i]);
    return NULL;
}

/* Replace the {words} in format. "{{" and "}}" are braces. NULL with an error. */
static char *fill_format(struct building *b, const char *format, const struct tune_value *own, const struct tune_input *in)
{
    char *text = allocate(b, 1);
    for (const char *at = format; *at && text;) {
        bool brace = (*at == '{' || *at == '}') && at[1] == *at;
        size_t plain = brace || *at == '}' ? 1 : strcspn(at, "{}"), length = strcspn(at + 1, "}");
        if (plain > 0) {
            char *piece = allocate(b, plain + 1);
            text = piece ? concatenate(b, text, memcpy(piece, at, plain)) : NULL;
            at += plain + brace;
            continue;
        }
        const char *found = at[1 + length] ? word(b, at + 1, length, own) : NULL;
        if (!found) {
            tune_document_fail(b->e->document, in->at, "input %s: \"%s\" contains {%.*s}, which is "
                                                       "neither a folder nor an input of %s",
                               in->name, format, (int)length, at + 1, b->e->name);
            return NULL;
        }
        text = concatenate(b, text, found);
        at += length + 2;
    }
    return text;
}

static const struct tune_translation *translate(const struct tune_input *in, const struct tune_value *v)
{
    for (int i = 0; i < in->map_count; i++)
        if (names(in->map[i].key, v))
            return &in->map[i];
    return NULL;
}

static int argument(struct building *b, const char *text)
{
    return push_text(&b->command->arguments, &b->command->argument_count, text);
}

static bool ends_in_equals(const char *flag)
{
    return *flag && flag[strlen(flag) - 1] == '=';
}

/* Append the arguments of one input. */
static int give(struct building *b, const struct tune_input *in, const struct tune_value *own)
{
    struct tune_value v = *own;
    char repr[256];
    if (in->expression)
        TRY(tune_expression_value(in->expression, b->inputs, &v));
    const struct tune_translation *t = translate(in, &v);
    const char *format = t && t->count > 0 ? t->arguments[0] : in->format;
    if (t && (t->whole || t->count == 0)) { /* the map's arguments replace flag and value */
        for (int i = 0; i < t->count; i++)
            TRY(argument(b, fill_format(b, t->arguments[i], &v, in)));
        return 0;
    }
    if (!t && in->map_count > 0) {
        tune_value_repr(&v, repr, sizeof repr);
        return tune_document_fail(b->e->document, in->at, "input %s: the map has no entry for %s", in->name, repr);
    }
    if (!t && v.type == TUNE_VALUE_NONE)
        return 0;
    if (v.type == TUNE_VALUE_BOOL && in->flag && !format && !strncmp(in->flag, "--", 2) && !ends_in_equals(in->flag))
        return argument(b, v.boolean ? in->flag : concatenate(b, "--no-", in->flag + 2));
    const char *text = format ? fill_format(b, format, &v, in) : value_to_string(b, &v);
    if (!text)
        return -1;
    if (in->role == TUNE_ROLE_WEIGHTS)
        b->command->weights = text;
    if (in->role == TUNE_ROLE_DATA)
        b->command->data = text;
    for (int i = 0; i < in->make_count; i++)
        TRY(push_text(&b->command->make, &b->command->make_count, fill_format(b, in->make[i], &v, in)));
    if (!in->flag)
        return t ? argument(b, text) : 0;
    if (ends_in_equals(in->flag))
        return argument(b, concatenate(b, in->flag, text));
    TRY(argument(b, in->flag));
    return argument(b, text);
}

char tune_input_variable(char c)
{
    return isalnum((unsigned char)c) ? (char)toupper((unsigned char)c) : '_';
}

static int set_environment(struct building *b, const struct tune_input *in, const struct tune_value *v)
{
    char *name = concatenate(b, "TUNE_INPUT_", in->name), *value = value_to_string(b, v);
    for (char *c = name; c && *c; c++)
        *c = tune_input_variable(*c);
    char *begin = name && value ? concatenate(b, name, "=") : NULL;
    return push_text(&b->command->environment, &b->command->environment_count, begin ? concatenate(b, begin, value) : NULL);
}

int tune_experiment_command(const struct tune_experiment *e, const struct tune_value *inputs, const struct tune_placeholder *words,
                            int count, struct tune_command *command)
{
    struct building b = {e, inputs, words, count, command};
    int code = 0;
    *command = (struct tune_command){0};
    for (int i = 0; i < e->argument_count && code == 0; i++)
        code = argument(&b, e->arguments[i]);
    for (int i = 0; i < e->input_count && code == 0; i++) {
        code = set_environment(&b, &e->inputs[i], &inputs[i]);
        if (code == 0 && !e->inputs[i].inert)
            code = give(&b, &e->inputs[i], &inputs[i]);
    }
    if (code < 0)
        tune_command_free(command);
    return code;
}

void tune_command_free(struct tune_command *command)
{
    free(command->arguments);
    free(command->environment);
    free(command->make);
    tune_pool_free(command->memory);
    *command = (struct tune_command){0};
}

/* 1: one of the rules is not met, with its reason in why; 0; -1. */
static int break_rules(const struct tune_experiment *e, bool here, const struct tune_value *inputs, char *why, size_t size)
{
    for (int i = 0; i < e->rule_count; i++) {
        int met = e->rules[i].here == here ? tune_expression_true(e->rules[i].require, inputs) : 1;
        TRY(met);
        if (!met) {
            snprintf(why, size, "%s", e->rules[i].reason);
            return 1;
        }
    }
    return 0;
}

int tune_experiment_not_here(const struct tune_experiment *e, const struct tune_value *inputs, char *why, size_t size)
{
    return break_rules(e, true, inputs, why, size);
}

int tune_experiment_refuses(const struct tune_experiment *e, const struct tune_value *inputs, char *why, size_t size)
{
    int broken = break_rules(e, false, inputs, why, size);
    if (broken)
        return broken;
    for (int i = 0; i < e->input_count; i++) {
        const struct tune_input *in = &e->inputs[i];
        for (int k = 0; k < in->unsupported_count; k++)
            if (names(in->unsupported[k], &inputs[i])) {
                snprintf(why, size, "%s %s: %s", in->name, in->unsupported[k], in->unsupported_reasons[k]);
                return 1;
            }
        if (in->map_count > 0 && !in->expression && !translate(in, &inputs[i])) {
            char text[256];
            tune_value_str(&inputs[i], text, sizeof text);
            snprintf(why, size, "%s %s is not supported by %s", in->name, text, e->name);
            return 1;
        }
    }
    return 0;
}
