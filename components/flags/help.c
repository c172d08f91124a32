/* help.c - the text of --help. */
#include <stdlib.h>
#include <string.h>

#include "core/print.h"
#include "flags/state.h"

enum { WIDTH = 100, INDENT = 36 };

/* Bytes that are a character's first: what the text is wide, near enough (help is ASCII, paths need not be). */
static int width(const char *text, size_t size)
{
    int n = 0;
    for (size_t i = 0; i < size; i++)
        n += ((unsigned char)text[i] & 0xC0) != 0x80;
    return n;
}

/* Words of text from column `column` on, wrapped and indented; ends with a newline. */
static void wrap(FILE *out, const char *text, int column, int indent)
{
    bool first = true;
    while (*text) {
        size_t n = strcspn(text, " ");
        int w = width(text, n);
        if (!first && column + 1 + w > WIDTH) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        } else if (!first) {
            fputc(' ', out);
            column++;
        }
        fwrite(text, 1, n, out);
        column += w;
        first = false;
        text += n;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

/* "--lr NUMBER", "--[no-]shuffle", "--dtype float32|bfloat16" */
static int left_column(FILE *out, const struct tune_option *row)
{
    if (*row->name == '<')
        return fprintf(out, "  %s", row->name);
    switch (row->type) {
    case TUNE_BOOL:
        return fprintf(out, "  --[no-]%s", row->name);
    case TUNE_CHOICE:
        return fprintf(out, "  --%s %s", row->name, row->range);
    case TUNE_STRING:
        return fprintf(out, "  --%s TEXT", row->name);
    case TUNE_DOUBLE:
        return fprintf(out, "  --%s NUMBER", row->name);
    default:
        return fprintf(out, "  --%s N", row->name);
    }
}

static void one_option(FILE *out, const struct tune_option *row, const char *text, enum tune_source source)
{
    bool word = *row->name == '<', number = row->type == TUNE_INT || row->type == TUNE_INT64 || row->type == TUNE_DOUBLE;
    char *line = NULL;
    size_t size = 0;
    FILE *words = open_memstream(&line, &size);
    if (!words)
        return;
    fprintf(words, "%s", row->help ? row->help : "");
    if (number && row->unit && *row->unit)
        fprintf(words, "; unit %s", row->unit);
    if (number && row->range && *row->range)
        fprintf(words, "; in %s", row->range);
    for (const char *p = word && row->type == TUNE_CHOICE ? row->range : ""; *p; p += strcspn(p, "|"), p += *p == '|')
        fprintf(words, "%s%.*s", p == row->range ? ": " : ", ", (int)strcspn(p, "|"), p);
    const char *table = row->value && *row->value ? row->value : "none";
    if (!word && text && *text) {
        fputs(source >= TUNE_FROM_RUN ? "; now " : "; default ", words);
        tune_print_line_of(words, text);
    }
    static const char *const by[] = {[TUNE_FROM_RUN] = "--resume", [TUNE_FROM_CONFIG] = "--config", [TUNE_FROM_FLAG] = "flag"};
    if (!word && source >= TUNE_FROM_RUN)
        fprintf(words, " by %s, default %s", by[source], table);
    else if (!word && source == TUNE_FROM_MODEL_DEFAULTS)
        fprintf(words, " for this model, otherwise %s", table);
    fclose(words);
    int column = left_column(out, row);
    if (column + 2 > INDENT) {
        fputc('\n', out);
        column = 0;
    }
    fprintf(out, "%*s", INDENT - column, "");
    wrap(out, line, INDENT, INDENT);
    free(line);
}

static bool same_group(const struct tune_flags_state *state, int a, int b)
{
    const char *x = state->groups[a], *y = state->groups[b];
    return !strcmp(x ? x : "", y ? y : "");
}

static void group(FILE *out, const struct tune_flags *flags, int first)
{
    const struct tune_flags_state *state = flags->state;
    const char *name = state->groups[first];
    fprintf(out, "\n%s:\n", name ? name : flags->program);
    for (int i = first; i < state->count; i++)
        if (*state->rows[i].name != '<' && same_group(state, i, first))
            one_option(out, state->rows + i, state->texts[i], state->sources[i]);
}

/* Groups in the order their first options stand in the table, the program's own first. */
static void groups(FILE *out, const struct tune_flags *flags)
{
    const struct tune_flags_state *state = flags->state;
    for (int own = 1; own >= 0; own--)
        for (int i = 0; i < state->count; i++) {
            bool first = *state->rows[i].name != '<' && (state->groups[i] == NULL) == (own == 1);
            for (int k = 0; k < i && first; k++)
                first = *state->rows[k].name == '<' || !same_group(state, k, i);
            if (first)
                group(out, flags, i);
        }
}

static void reported(FILE *out, const struct tune_flags *flags)
{
    fprintf(out, "\nmeasured, in the report of the run folder:\n");
    for (const struct tune_property *p = flags->properties; p && p->name; p++) {
        char text[1024];
        int column = fprintf(out, "  %s", p->name);
        bool unit = p->unit && *p->unit;
        if (column + 2 > INDENT) {
            fputc('\n', out);
            column = 0;
        }
        fprintf(out, "%*s", INDENT - column, "");
        snprintf(text, sizeof text, "%s%s%s", p->help ? p->help : "", unit ? "; unit " : "", unit ? p->unit : "");
        wrap(out, text, INDENT, INDENT);
    }
}

static bool has_model(const struct tune_flags_state *state)
{
    bool has = false;
    for (int i = 0; i < state->count && !has; i++)
        has = !strcmp(state->rows[i].name, "model");
    return has;
}

void tune_flags_help(const struct tune_flags *flags, const char *what, FILE *stream)
{
    const struct tune_flags_state *state = flags->state;
    char text[1024];
    snprintf(text, sizeof text, "%s - %s", flags->program, what);
    wrap(stream, text, 0, 0);
    fprintf(stream, "\nusage: %s [--option value]...", flags->program);
    for (int i = 0; i < state->count; i++)
        if (*state->rows[i].name == '<')
            fprintf(stream, state->rows[i].value ? " [%s]" : " %s", state->rows[i].name);
    fputs("\n\n", stream);
    wrap(stream,
         has_model(state)
             ? "A value follows its option after a space or a '='; in names - and _ are equal. A switch is --name or --no-name. "
               "Defaults come from the program, then from what is known to suit --model, then from --config, then from the "
               "command line; the ones shown below are those in force with the options given beside --help."
             : "A value follows its option after a space or a '='; in names - and _ are equal. A switch is --name or --no-name. "
               "Defaults come from the program, then from --config, then from the command line; the ones shown below are those "
               "in force with the options given beside --help.", 0, 0);
    for (int i = 0, n = 0; i < state->count; i++)
        if (*state->rows[i].name == '<') {
            if (n++ == 0)
                fputc('\n', stream);
            one_option(stream, state->rows + i, state->texts[i], state->sources[i]);
        }
    groups(stream, flags);
    fputs("\ninstead of a run:\n", stream);
    static const struct tune_option general[] = {
        {"help", TUNE_BOOL, NULL, NULL, "", "", "this text"},
        {"describe", TUNE_BOOL, NULL, NULL, "", "", "options and measured properties as JSON"},
        {"list-models", TUNE_BOOL, NULL, NULL, "", "", "the models known by name, and where they lie"},
        {"version", TUNE_BOOL, NULL, NULL, "", "", "version and how it was built"},
    };
    for (size_t i = 0; i < sizeof general / sizeof *general; i++)
        fprintf(stream, "  --%-*s%s\n", INDENT - 4, general[i].name, general[i].help);
    fprintf(stream, "\nfor any run:\n  --%-*s", INDENT - 4, "config FILE");
    wrap(stream, "a JSON object of option names and values; what is given as a flag wins", INDENT, INDENT);
    if (state->model_defaults)
        fprintf(stream, "\nmodel defaults: %s\n", state->model_defaults);
    if (flags->properties && flags->properties->name)
        reported(stream, flags);
}
