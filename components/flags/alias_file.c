/* alias_file.c - a --config file of another tool: its leaves, which tool wrote it, and which program
 * it is for. */
#include "flags/aliases.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/print.h"
#include "core/try.h"
#include "files/file.h"

enum { MOST_SETS = 1000, MOST_LEAVES = 10000 }; /* a file of settings has fewer */

/* ---- leaves ---- */

static int no_memory(void)
{
    return tune_error_cannot("out of memory while reading the options");
}

/* Spell a scalar as most tools write it; "" for none. */
static const char *spell_scalar(struct tune_alias_file *f, const struct tune_node *node)
{
    if (tune_node_none(node))
        return "";
    if (node->value.type == TUNE_VALUE_BOOL)
        return node->value.boolean ? "true" : "false";
    if (node->written && !(node->value.type != TUNE_VALUE_TEXT && strchr(node->written, '_')))
        return node->written; /* but 500_000 is spelled as 500000 */
    char *text = tune_value_to_string(&node->value);
    const char *copy = tune_alias_copy(f, text ? text : "");
    free(text);
    return copy;
}

/* Replace ${a.b} by the value of that setting. Other texts in ${} stay. */
static const char *fill_in(struct tune_alias_file *f, const char *text)
{
    for (int round = 0; round < 8; round++) {
        const char *begin = strstr(text, "${"), *end = begin ? strchr(begin, '}') : NULL;
        char name[256], full[2048];
        if (!end)
            break;
        snprintf(name, sizeof name, "%.*s", (int)(end - begin - 2), begin + 2);
        const struct tune_alias_leaf *leaf = tune_alias_leaf_of(f, name);
        if (!leaf)
            break;
        snprintf(full, sizeof full, "%.*s%s%s", (int)(begin - text), text, leaf->text, end + 1);
        text = tune_alias_copy(f, full);
    }
    return text;
}

static int add_leaf(struct tune_alias_file *f, const char *name, const char *text, const struct tune_node *node)
{
    struct tune_alias_leaf *more = tune_alias_grow(f->leaves, f->leaf_count, sizeof *more);
    if (!more)
        return no_memory();
    f->leaves = more;
    int index = -1;
    for (const char *part = name; part && index < 0; part = strchr(part, '.') ? strchr(part, '.') + 1 : NULL)
        if (isdigit((unsigned char)*part) && part[strspn(part, "0123456789")] != '_')
            index = strtol(part, NULL, 10) < MOST_SETS ? atoi(part) : -1;
    more[f->leaf_count++] = (struct tune_alias_leaf){tune_alias_copy(f, name), text, node, index};
    return 0;
}

/* Add the leaves below a node. A value that is none, and an empty list or map, is not given. */
static int flatten(struct tune_alias_file *f, const char *name, const struct tune_node *node)
{
    char below[512], list[2048] = "";
    bool maps = node->type == TUNE_NODE_MAP;
    for (int i = 0; i < node->count; i++)
        maps = maps || node->items[i]->type == TUNE_NODE_MAP;
    if (node->type == TUNE_NODE_SCALAR)
        return tune_node_none(node) ? 0 : add_leaf(f, name, spell_scalar(f, node), node);
    for (int i = 0; maps && i < node->count; i++) {
        const char *dot = *name ? "." : "";
        if (node->type == TUNE_NODE_MAP)
            snprintf(below, sizeof below, "%s%s%s", name, dot, node->keys[i]->value.text);
        else
            snprintf(below, sizeof below, "%s%s%d", name, dot, i);
        TRY(flatten(f, below, node->items[i]));
    }
    if (maps || node->count == 0)
        return 0;
    for (int i = 0; i < node->count; i++)
        tune_append(list, sizeof list, "%s%s", i ? "," : "",
                    node->items[i]->type == TUNE_NODE_SCALAR ? spell_scalar(f, node->items[i]) : "[]");
    return add_leaf(f, name, tune_alias_copy(f, list), node);
}

const struct tune_alias_leaf *tune_alias_leaf_of(const struct tune_alias_file *f, const char *name)
{
    for (int i = 0; i < f->leaf_count; i++)
        if (!strcmp(f->leaves[i].name, name))
            return &f->leaves[i];
    return NULL;
}

/* ---- which tool ---- */

static bool has_sign(const struct tune_alias_file *f, const char *signs)
{
    char sign[128];
    for (const char *at = signs; *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        snprintf(sign, sizeof sign, "%.*s", (int)n, at);
        for (int i = 0; i < f->leaf_count; i++) {
            size_t top = strcspn(f->leaves[i].name, ".");
            if (strchr(sign, '*') ? fnmatch(sign, f->leaves[i].name, 0) == 0
                                  : strlen(sign) == top && !strncmp(sign, f->leaves[i].name, top))
                return true;
        }
        at += n;
    }
    return false;
}

/* True if most names are the tool's, and not our own options. */
static bool is_file_of(const struct tune_alias_file *f, const char *tool)
{
    int theirs = 0, ours = 0;
    for (int i = 0; i < f->leaf_count; i++) {
        const char *name = f->leaves[i].name;
        if (tune_alias_row(f->table, tool, name, NULL))
            theirs++;
        else
            ours += tune_flags_row(f->state, name, strlen(name)) >= 0;
    }
    return theirs > ours;
}

static void find_tool(struct tune_alias_file *f)
{
    const cJSON *tool;
    cJSON_ArrayForEach(tool, cJSON_GetObjectItemCaseSensitive(f->table, "tools")) {
        const char *name = tune_alias_text(tool, "name"), *signs = tune_alias_text(tool, "signs");
        if (name && signs && has_sign(f, signs) && (tune_alias_text(tool, "stops") || is_file_of(f, name))) {
            f->tool = name;
            f->about = tool;
            return;
        }
    }
}

/* ---- which program ---- */

static const char *wanted_program(const struct tune_alias_file *f)
{
    const char *name[] = {"simpo-gamma", "lora-r", "epochs"};
    bool has[3];
    for (int i = 0; i < 3; i++)
        has[i] = tune_flags_row(f->state, name[i], strlen(name[i])) >= 0;
    const char *running = has[0] ? "dpo" : has[1] ? "lora" : has[2] ? "full" : "";
    bool dpo = !strcmp(f->stage, "dpo") || (!*f->stage && has[0]);
    const char *wanted = dpo ? "dpo" : *f->method ? f->method : has[1] ? "lora" : "full";
    if (!strcmp(wanted, running))
        return NULL;
    return !strcmp(wanted, "dpo") ? "finetune_dpo" : !strcmp(wanted, "lora") ? "finetune_lora" : "finetune_full";
}

/* Note the kind of training that a setting asks for. */
static void ask_for(struct tune_alias_file *f, const struct tune_alias_leaf *leaf, const char *program)
{
    bool stage = !strcmp(program, "dpo") || !strcmp(program, "sft");
    if (stage)
        f->stage = program;
    else
        f->method = program;
    if (!f->asks || !strcmp(program, "dpo") || (!stage && strcmp(f->stage, "dpo")))
        f->asks = leaf;
}

/* The line to type for another program: the same words. */
static int write_line(const struct tune_flags *flags, const char *program, char **line)
{
    size_t size;
    FILE *out = open_memstream(line, &size);
    if (!out)
        return no_memory();
    const char *slash = strrchr(flags->argv[0], '/');
    fprintf(out, "%.*s%s", slash ? (int)(slash + 1 - flags->argv[0]) : 0, flags->argv[0], program);
    for (int i = 1; i < flags->argc; i++) {
        fputc(' ', out);
        tune_print_word(out, flags->argv[i]);
    }
    return fclose(out) == 0 ? 0 : no_memory();
}

/* Say that another program is the one for this file. */
static int send_to(struct tune_alias_file *f, const struct tune_flags *flags, const char *program)
{
    char *line = NULL, text[2048];
    TRY(write_line(flags, program, &line));
    snprintf(text, sizeof text, "this file is for %s%s%s%s%s: %s", program, f->asks ? ", by its " : "",
             f->asks ? f->asks->name : "", f->asks ? " " : "", f->asks ? f->asks->text : "", line);
    f->state->fits = tune_alias_copy(f, text);
    free(line);
    return 0;
}

/* Count the findings of a kind, from one on. */
static int count_of(const struct tune_flags_state *state, int from, enum tune_finding_kind kind)
{
    int count = 0;
    for (int i = from; i < state->finding_count; i++)
        count += state->findings[i].kind == kind;
    return count;
}

/* The error that names what stops the run: three of them. */
static int refuse_file(const struct tune_alias_file *f, int from)
{
    const struct tune_flags_state *state = f->state;
    char text[1600] = "";
    int count = count_of(state, from, TUNE_STOPS), named = 0;
    for (int i = from; i < state->finding_count && named < 3; i++) {
        const struct tune_finding *x = &state->findings[i];
        char line[64] = "";
        if (x->kind != TUNE_STOPS)
            continue;
        named++;
        if (x->line)
            snprintf(line, sizeof line, " (line %d)", x->line);
        tune_append(text, sizeof text, "%s%.100s%s%.60s%s: %.400s", named > 1 ? "; " : "", x->name, *x->text ? " " : "",
                    x->text, line, x->why);
    }
    if (count > named)
        tune_append(text, sizeof text, "; and %d more", count - named);
    return tune_error_usage("--config %s, a file of %s, asks for what is not done here: %s. --show-config lists all; --ignore-keys "
                            "NAME,... goes on without some of them", f->path, f->tool, text);
}

/* Take the leaves in turn. Those that ask for a kind of training come first. */
static int take_leaves(struct tune_alias_file *f, const struct tune_flags *flags)
{
    f->stage = tune_alias_text(f->about, "stage");
    f->method = tune_alias_text(f->about, "method");
    f->stage = f->stage ? f->stage : "";
    f->method = f->method ? f->method : "";
    for (int i = 0; i < f->leaf_count; i++) {
        const struct tune_alias_leaf *leaf = &f->leaves[i];
        const cJSON *row = tune_alias_row(f->table, f->tool, leaf->name, NULL);
        const char *program = tune_alias_text(tune_alias_rule(row, leaf->text), "program");
        if (program && !tune_alias_ignored(f, leaf->name))
            ask_for(f, leaf, program);
    }
    const char *wanted = wanted_program(f);
    if (wanted)
        TRY(send_to(f, flags, wanted));
    for (int i = 0; i < f->leaf_count; i++)
        tune_alias_follow(f, &f->leaves[i]);
    bool dpo = tune_flags_row(f->state, "simpo-gamma", 11) >= 0;
    if (dpo && strcmp(f->method, "lora")) {
        struct tune_alias_effect effect = {0};
        tune_alias_set(f, "lora-r!", "0", -1, false, &effect);
        tune_alias_find(f, TUNE_ASSUMED, NULL, "", effect.to, "all weights are trained");
    }
    tune_alias_assume(f, dpo ? cJSON_GetObjectItemCaseSensitive(f->about, "dpo") : NULL);
    tune_alias_assume(f, cJSON_GetObjectItemCaseSensitive(f->about, "defaults"));
    const cJSON *note;
    cJSON_ArrayForEach(note, cJSON_GetObjectItemCaseSensitive(f->about, "notes"))
        if (cJSON_IsString(note))
            tune_alias_find(f, TUNE_LEFT_OUT, NULL, "", "", note->valuestring);
    tune_alias_finish(f);
    return 0;
}

static int take_file(struct tune_alias_file *f, struct tune_flags *flags)
{
    struct tune_flags_state *state = f->state;
    const char *stops = tune_alias_text(f->about, "stops");
    int from = state->finding_count;
    char note[TUNE_PATH_MAX + 256];
    state->tool = f->tool = tune_alias_copy(f, f->tool);
    if (stops)
        tune_alias_find(f, TUNE_STOPS, NULL, "the file", "", stops);
    else
        TRY(take_leaves(f, flags));
    if (f->no_memory)
        return no_memory();
    if (state->wish == TUNE_WISH_RUN && count_of(state, from, TUNE_STOPS) > 0)
        return refuse_file(f, from);
    if (state->wish == TUNE_WISH_RUN && state->fits)
        return tune_error_usage("--config %s: %s", f->path, state->fits);
    snprintf(note, sizeof note, "%s is a file of %s: %d settings are taken, %d values are its defaults, %d settings are left out; "
             "--show-config lists them", f->path, f->tool, count_of(state, from, TUNE_TAKEN), count_of(state, from, TUNE_ASSUMED),
             count_of(state, from, TUNE_LEFT_OUT));
    TRY(tune_flags_add_note(state, note));
    return 1;
}

int tune_alias_take(struct tune_flags *flags, const struct tune_document *d)
{
    struct tune_alias_file f = {.state = flags->state, .program = flags->program, .path = d->path, .document = d};
    cJSON *table = d->root->type == TUNE_NODE_MAP ? tune_aliases_read() : NULL;
    char names[TUNE_PATH_MAX];
    if (!table && d->root->type == TUNE_NODE_MAP && tune_defaults_path(names, "aliases.json") == 0 && tune_file_exists(names))
        return tune_error_set("%s: this file of other tools' names cannot be read; expected the JSON that came with the program", names);
    f.table = table;
    int result = table ? flatten(&f, "", d->root) : 0;
    for (int i = 0; i < f.leaf_count && f.leaf_count <= MOST_LEAVES; i++)
        f.leaves[i].text = fill_in(&f, f.leaves[i].text);
    if (result == 0 && table && f.leaf_count <= MOST_LEAVES)
        find_tool(&f);
    if (result == 0 && f.tool)
        result = take_file(&f, flags);
    free(f.leaves);
    free(f.slots);
    cJSON_Delete(table);
    return result;
}
