/* help.c - the text of --help. */
#include <stdlib.h>
#include <string.h>

#include "core/print.h"
#include "flags/state.h"

enum { WIDTH = 100, INDENT = 32 };

/* Number of characters: about the width of the text. Help is ASCII, but paths may not be. */
static int width(const char *text, size_t size)
{
    int n = 0;
    for (size_t i = 0; i < size; i++)
        n += ((unsigned char)text[i] & 0xC0) != 0x80;
    return n;
}

/* Print the words of text from column `column` on, wrapped and indented, with a newline at the
 * end. */
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
    static const char *const values[] = {[TUNE_INT] = "N", [TUNE_INT64] = "N", [TUNE_DOUBLE] = "NUMBER",
                                         [TUNE_INTERVAL] = "N|SHARE|epoch",
                                         [TUNE_STRING] = "TEXT"};
    if (tune_option_is_switch(row))
        return fprintf(out, "  --[no-]%s", row->name);
    return fprintf(out, "  --%s %s", row->name, tune_option_is_choice(row) ? row->range : values[row->type]);
}

/* A help text, or its first sentence. */
static int shown(const char *help, bool all)
{
    const char *end = help && !all ? strstr(help, ". ") : NULL;
    return end ? (int)(end - help) : (int)strlen(help ? help : "");
}

static void one_option(FILE *out, const struct tune_flags_entry *e, bool all)
{
    const struct tune_option *row = &e->row;
    const char *text = e->text;
    enum tune_source source = e->source;
    bool word = *row->name == '<', number = row->type == TUNE_INT || row->type == TUNE_INT64 || row->type == TUNE_DOUBLE;
    char *line = NULL;
    size_t size = 0;
    FILE *words = open_memstream(&line, &size);
    if (!words)
        return;
    fprintf(words, "%.*s", shown(row->help, all), row->help ? row->help : "");
    bool unit = row->unit && *row->unit, range = row->range && *row->range;
    if (number && range)
        fprintf(words, "; in %s%s%s", row->range, unit ? " " : "", unit ? row->unit : "");
    else if (number && unit)
        fprintf(words, "; unit %s", row->unit);
    for (const char *p = word && tune_option_is_choice(row) ? row->range : ""; *p; p += strcspn(p, "|"), p += *p == '|')
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
    return !strcmp(state->at[a].group, state->at[b].group);
}

static bool listed(const struct tune_flags_state *state, int i)
{
    const struct tune_flags_entry *e = &state->at[i];
    return *e->row.name != '<' && (!e->more || state->wish == TUNE_WISH_HELP_ALL);
}

static void group(FILE *out, const struct tune_flags *flags, int first)
{
    const struct tune_flags_state *state = flags->state;
    const char *name = state->at[first].group;
    fprintf(out, "\n%s:\n", *name ? name : flags->program);
    for (int i = first; i < state->count; i++)
        if (listed(state, i) && same_group(state, i, first))
            one_option(out, &state->at[i], state->wish == TUNE_WISH_HELP_ALL);
}

/* Print the groups in the order of the table, the program's own first. */
static void groups(FILE *out, const struct tune_flags *flags)
{
    const struct tune_flags_state *state = flags->state;
    for (int own = 1; own >= 0; own--)
        for (int i = 0; i < state->count; i++) {
            bool first = listed(state, i) && !*state->at[i].group == (own == 1);
            for (int k = 0; k < i && first; k++)
                first = !listed(state, k) || !same_group(state, k, i);
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

void tune_flags_help(const struct tune_flags *flags, const char *what, FILE *stream)
{
    const struct tune_flags_state *state = flags->state;
    bool all = state->wish == TUNE_WISH_HELP_ALL;
    char text[1024];
    snprintf(text, sizeof text, "%s - %s", flags->program, what);
    wrap(stream, text, 0, 0);
    fprintf(stream, "\nusage: %s [--option value]...", flags->program);
    for (int i = 0; i < state->count; i++)
        if (*state->at[i].row.name == '<')
            fprintf(stream, state->at[i].row.value ? " [%s]" : " %s", state->at[i].row.name);
    fputs("\n\n", stream);
    snprintf(text, sizeof text, "A value follows its option after a space or a '='. A switch is --name or --no-name. In names, - "
             "and _ are equal. Defaults come from the program, %sfrom --config and from the command line; a later one holds.",
             tune_flags_row(state, "model", 5) >= 0 ? "from what suits --model, " : "");
    wrap(stream, text, 0, 0);
    for (int i = 0, n = 0; i < state->count; i++)
        if (*state->at[i].row.name == '<') {
            if (n++ == 0)
                fputc('\n', stream);
            one_option(stream, &state->at[i], true);
        }
    groups(stream, flags);
    fputs("\ninstead of a run:\n", stream);
    fputs("  --help                        this text; --help all: all options, long texts, what is measured\n"
          "  --describe                    options and measured properties as JSON\n"
          "  --list-models                 the models known by name, and where they lie\n"
          "  --version                     version and how it was built\n"
          "\nfor any run:\n"
          "  --config FILE                 YAML or JSON of options, or another tool's file; --show-config tells\n",
          stream);
    if (all)
        fputs("  --show-config                 instead of a run: what becomes of --config, what stops a run\n"
              "  --ignore-keys NAME,...        settings in the file of another tool to go on without\n", stream);
    if (state->model_defaults)
        fprintf(stream, "\nmodel defaults: %s\n", state->model_defaults);
    if (*state->by_size)
        fprintf(stream, "\nmodel defaults: %s\n", state->by_size);
    if (all && flags->properties && flags->properties->name)
        reported(stream, flags);
    if (!all)
        fprintf(stream, "\nThis is the short help. All options, with longer texts: %s --help all\n", flags->program);
}
