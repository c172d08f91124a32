/* show_config.c - print what became of a --config file, and the options that are set. */
#include "flags/state.h"

#include <stdio.h>

#include "core/print.h"

enum { MOST = 44, WIDTH = 100 }; /* columns of the first part of a line, and of a line */

/* "name: value    --option value    why" */
static void print_finding(FILE *stream, const struct tune_finding *x)
{
    char left[128];
    snprintf(left, sizeof left, "%.60s%s%.50s", x->name, *x->text ? ": " : "", x->text);
    tune_blank_controls(left);
    fprintf(stream, "  %-*s", *left ? MOST : 0, left);
    if (*x->to) {
        fputs("  ", stream);
        tune_print_line_of(stream, x->to);
    }
    if (*x->why) {
        fputs(*x->to ? "  (" : *left ? "  " : "", stream);
        tune_print_line_of(stream, x->why);
        fputs(*x->to ? ")" : "", stream);
    }
    fputc('\n', stream);
}

static int print_findings(FILE *stream, const struct tune_flags_state *state, enum tune_finding_kind kind, const char *heading)
{
    int count = 0;
    for (int i = 0; i < state->finding_count; i++)
        if (state->findings[i].kind == kind) {
            if (count++ == 0)
                fprintf(stream, "\n%s:\n", heading);
            print_finding(stream, &state->findings[i]);
        }
    return count;
}

static bool is_alike(const struct tune_finding *a, const struct tune_finding *b)
{
    return a->kind == TUNE_LEFT_OUT && b->kind == TUNE_LEFT_OUT && !strcmp(a->why, b->why);
}

/* Print what is left out, once for each reason: the reason, and the settings below it. */
static void print_left_out(FILE *stream, const struct tune_flags_state *state)
{
    for (int i = 0, count = 0; i < state->finding_count; i++) {
        const struct tune_finding *x = &state->findings[i];
        bool first = x->kind == TUNE_LEFT_OUT;
        for (int k = 0; k < i && first; k++)
            first = !is_alike(&state->findings[k], x);
        if (!first)
            continue;
        fputs(count++ == 0 ? "\nleft out:\n  " : "  ", stream);
        tune_print_line_of(stream, x->why);
        for (int k = i, column = WIDTH; k < state->finding_count; k++) {
            char text[128];
            if (!is_alike(x, &state->findings[k]) || !*state->findings[k].name)
                continue;
            snprintf(text, sizeof text, "%.60s: %.40s", state->findings[k].name, state->findings[k].text);
            tune_blank_controls(text);
            column += 2 + (int)strlen(text);
            column = column > WIDTH ? fprintf(stream, "%s\n      ", k > i ? "," : "") : (fputs(", ", stream), column);
            fputs(text, stream);
            column = column < 16 ? 6 + (int)strlen(text) : column;
        }
        fputc('\n', stream);
    }
}

static void print_options(FILE *stream, const struct tune_flags_state *state)
{
    fputs("options that are set, and where:\n", stream);
    for (int i = 0; i < state->count; i++) {
        const struct tune_flags_entry *e = &state->at[i];
        char left[128];
        if (e->source == TUNE_FROM_DEFAULT || !e->text)
            continue;
        snprintf(left, sizeof left, "%s%s", *e->row.name == '<' ? "" : "--", e->row.name);
        fprintf(stream, "  %-*s  ", 24, left);
        tune_print_line_of(stream, e->text);
        fprintf(stream, "  (%s)\n", tune_source_name(e->source));
    }
}

int tune_flags_show_config(const struct tune_flags *flags, FILE *stream)
{
    const struct tune_flags_state *state = flags->state;
    int stops = 0;
    if (state->tool) {
        fprintf(stream, "a file of %s, read by %s\n", state->tool, flags->program);
        print_findings(stream, state, TUNE_TAKEN, "taken");
        print_findings(stream, state, TUNE_ASSUMED, "taken because the tool does so where its file says nothing");
        print_left_out(stream, state);
        stops = print_findings(stream, state, TUNE_STOPS, "stops the run (--ignore-keys NAME,... goes on without)");
        fputc('\n', stream);
    }
    print_options(stream, state);
    for (int i = 0; tune_flags_note(flags, i) && !state->tool; i++)
        fprintf(stream, "%s\n", tune_flags_note(flags, i));
    if (stops > 0)
        fprintf(stream, "\n%d setting%s would stop the run\n", stops, stops == 1 ? "" : "s");
    if (state->fits)
        fprintf(stream, "\n%s\n", state->fits);
    return stops + (state->fits != NULL);
}
