/* command.c - make the command line of a run from an experiment's inputs. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/try.h"
#include "sweeps/spaces/experiment.h"

struct building {
    const struct tune_experiment *e;
    const struct tune_value *inputs;
    const struct tune_word *words;
    int word_count;
    struct tune_command *command;
};

static int no_memory(void)
{
    return tune_error_cannot("out of memory while a command line is made");
}

/* Append text to the list, which takes it over; text is malloc'd or NULL. */
static int push(char ***list, int *count, char *text)
{
    char **grown = text ? realloc(*list, (size_t)(*count + 2) * sizeof *grown) : NULL;
    if (!grown) {
        free(text);
        return no_memory();
    }
    grown[(*count)++] = text;
    grown[*count] = NULL;
    *list = grown;
    return 0;
}

/* True if a key of a map means the value: in the spelling of ids, Python or JSON, or as a number of
 * equal value. */
static bool names(const char *key, const struct tune_value *v)
{
    char text[512];
    if (tune_value_id(v, text, sizeof text) < (int)sizeof text && !strcmp(text, key))
        return true;
    if (tune_value_str(v, text, sizeof text) < (int)sizeof text && !strcmp(text, key))
        return true;
    if (v->type != TUNE_VALUE_TEXT && tune_value_json(v, text, sizeof text) < (int)sizeof text && !strcmp(text, key))
        return true;
    double number, wanted;
    char *end;
    if (!tune_value_number(v, &number) || !*key)
        return false;
    wanted = strtod(key, &end);
    return !*end && wanted == number;
}

/* The value of {name}, which the caller frees: a word of the caller, a folder of the experiment, or
 * an input. "" means the input's own value. */
static char *word(struct building *b, const char *name, size_t length, const struct tune_value *own)
{
    if (length == 0)
        return own ? tune_value_spell(own) : NULL;
    for (int i = 0; i < b->word_count; i++)
        if (strlen(b->words[i].name) == length && !strncmp(b->words[i].name, name, length))
            return strdup(b->words[i].text);
    for (int i = 0; i < b->e->folder_count; i++)
        if (strlen(b->e->folder_names[i]) == length && !strncmp(b->e->folder_names[i], name, length))
            return strdup(b->e->folders[i]);
    for (int i = 0; i < b->e->input_count; i++)
        if (strlen(b->e->names[i]) == length && !strncmp(b->e->names[i], name, length))
            return tune_value_spell(&b->inputs[i]);
    return NULL;
}

/* Fill in the {words} of format. "{{" and "}}" are braces. The caller frees the result. */
static char *fill(struct building *b, const char *format, const struct tune_value *own, const struct tune_input *in)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        no_memory();
        return NULL;
    }
    for (const char *at = format; *at; at++) {
        if ((*at == '{' || *at == '}') && at[1] == *at) {
            fputc(*at++, out);
            continue;
        }
        if (*at != '{') {
            fputc(*at, out);
            continue;
        }
        size_t length = strcspn(at + 1, "}");
        char *found = at[1 + length] ? word(b, at + 1, length, own) : NULL;
        if (!found) {
            tune_document_fail(b->e->document, in->at, "input %s: \"%s\" has {%.*s}, which is neither a folder nor an input of %s",
                               in->name, format, (int)length, at + 1, b->e->name);
            fclose(out);
            free(text);
            return NULL;
        }
        fputs(found, out);
        free(found);
        at += length + 1;
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    no_memory();
    return NULL;
}

static const struct tune_translation *translate(const struct tune_input *in, const struct tune_value *v)
{
    for (int i = 0; i < in->map_count; i++)
        if (names(in->map[i].key, v))
            return &in->map[i];
    return NULL;
}

static int argument(struct building *b, char *text)
{
    return push(&b->command->arguments, &b->command->argument_count, text);
}

/* Append --flag=text if the flag ends in '=', else --flag text. */
static int flag_with(struct building *b, const struct tune_input *in, char *text)
{
    size_t length = strlen(in->flag);
    if (length > 0 && in->flag[length - 1] == '=') {
        char *joined = NULL;
        if (asprintf(&joined, "%s%s", in->flag, text) < 0)
            joined = NULL;
        free(text);
        return argument(b, joined);
    }
    if (argument(b, strdup(in->flag)) < 0) {
        free(text);
        return -1;
    }
    return argument(b, text);
}

/* Append the map's own arguments in place of flag and value; null has none. */
static int translated(struct building *b, const struct tune_input *in, const struct tune_translation *t, const struct tune_value *v)
{
    for (int i = 0; i < t->count; i++) {
        char *text = fill(b, t->arguments[i], v, in);
        if (!text)
            return -1;
        TRY(argument(b, text));
    }
    return 0;
}

static int make_file(struct building *b, const struct tune_input *in, const struct tune_value *v)
{
    for (int i = 0; i < in->make_count; i++) {
        char *text = fill(b, in->make[i], v, in);
        if (!text)
            return -1;
        TRY(push(&b->command->make, &b->command->make_count, text));
    }
    return 0;
}

static int keep(char **place, const char *text)
{
    free(*place);
    *place = strdup(text);
    return *place ? 0 : no_memory();
}

/* Append the arguments of one input. */
static int give(struct building *b, const struct tune_input *in, const struct tune_value *own)
{
    struct tune_value v = *own;
    if (in->expression)
        TRY(tune_expression_value(in->expression, b->inputs, &v));
    const struct tune_translation *t = translate(in, &v);
    const char *format = t && t->count > 0 ? t->arguments[0] : in->format;
    if (t && (t->whole || t->count == 0))
        return translated(b, in, t, &v);
    if (!t && in->map_count > 0) {
        char text[256];
        tune_value_repr(&v, text, sizeof text);
        return tune_document_fail(b->e->document, in->at, "input %s: the map has no entry for %s", in->name,
                                  text);
    }
    if (!t && v.type == TUNE_VALUE_NONE)
        return 0;
    if (v.type == TUNE_VALUE_BOOL && in->flag && !format && !strncmp(in->flag, "--", 2) &&
        in->flag[strlen(in->flag) - 1] != '=') {
        char *text = NULL;
        if (asprintf(&text, v.boolean ? "%s" : "--no-%s", v.boolean ? in->flag : in->flag + 2) < 0)
            text = NULL;
        return argument(b, text);
    }
    char *text = format ? fill(b, format, &v, in) : tune_value_spell(&v);
    if (!text)
        return format ? -1 : no_memory();
    if ((in->role == TUNE_ROLE_WEIGHTS && keep(&b->command->weights, text) < 0) ||
        (in->role == TUNE_ROLE_DATA && keep(&b->command->data, text) < 0)) {
        free(text);
        return -1;
    }
    if (in->make_count > 0 && make_file(b, in, &v) < 0) {
        free(text);
        return -1;
    }
    if (in->flag)
        return flag_with(b, in, text);
    if (t)
        return argument(b, text);
    free(text);
    return 0;
}

char tune_input_variable(char c)
{
    return isalnum((unsigned char)c) ? (char)toupper((unsigned char)c) : '_';
}

static int set_environment(struct building *b, const struct tune_input *in, const struct tune_value *v)
{
    char *value = tune_value_spell(v), *text = NULL;
    if (!value)
        return no_memory();
    if (asprintf(&text, "TUNE_INPUT_%s=%s", in->name, value) < 0)
        text = NULL;
    free(value);
    for (char *c = text; c && *c != '='; c++)
        *c = tune_input_variable(*c);
    return push(&b->command->environment, &b->command->environment_count, text);
}

int tune_experiment_command(const struct tune_experiment *e, const struct tune_value *inputs, const struct tune_word *words,
                            int count, struct tune_command *command)
{
    struct building b = {e, inputs, words, count, command};
    int code = 0;
    *command = (struct tune_command){0};
    for (int i = 0; i < e->argument_count && code == 0; i++)
        code = argument(&b, strdup(e->arguments[i]));
    for (int i = 0; i < e->input_count && code == 0; i++) {
        code = set_environment(&b, &e->inputs[i], &inputs[i]);
        if (code == 0 && !e->inputs[i].inert)
            code = give(&b, &e->inputs[i], &inputs[i]);
    }
    if (code < 0)
        tune_command_free(command);
    return code;
}

static void free_list(char **list, int count)
{
    for (int i = 0; i < count; i++)
        free(list[i]);
    free(list);
}

void tune_command_free(struct tune_command *command)
{
    free_list(command->arguments, command->argument_count);
    free_list(command->environment, command->environment_count);
    free_list(command->make, command->make_count);
    free(command->weights);
    free(command->data);
    *command = (struct tune_command){0};
}

int tune_experiment_refuses(const struct tune_experiment *e, const struct tune_value *inputs, char *why, size_t size)
{
    for (int i = 0; i < e->rule_count; i++) {
        int met = tune_expression_true(e->rules[i].require, inputs);
        TRY(met);
        if (!met) {
            snprintf(why, size, "%s", e->rules[i].reason);
            return 1;
        }
    }
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
