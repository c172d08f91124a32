/* foreign_file.c - a --config file of another tool: which tool wrote it, what each setting becomes
 * here, and which program it is for. */
#include "flags/foreign.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/pool.h"
#include "core/print.h"
#include "core/try.h"
#include "files/file.h"

const char *tune_foreign_copy(struct tune_foreign_file *f, const char *text)
{
    char *copy = tune_pool_text(&f->state->pool, text, strlen(text));
    f->no_memory = f->no_memory || !copy;
    return copy ? copy : "";
}

void tune_foreign_stop(struct tune_foreign_effect *effect, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(effect->why, sizeof effect->why, format, list);
    va_end(list);
    effect->stops = true;
}

/* ---- leaves ---- */

/* Room for one more item of an array that doubles; NULL: no memory. */
static void *grow(void *at, int count, size_t size)
{
    bool full = count == 0 || (count >= 16 && (count & (count - 1)) == 0);
    return full ? realloc(at, (size_t)(count ? 2 * count : 16) * size) : at;
}

static int no_memory(void)
{
    return tune_error_cannot("out of memory while reading the options");
}

/* Spell a scalar as most tools write it; "" for none. */
static const char *spell_scalar(struct tune_foreign_file *f, const struct tune_node *node)
{
    if (tune_node_none(node))
        return "";
    if (node->value.type == TUNE_VALUE_BOOL)
        return node->value.boolean ? "true" : "false";
    if (node->written && !(node->value.type != TUNE_VALUE_TEXT && strchr(node->written, '_')))
        return node->written; /* but 500_000 is spelled as 500000 */
    char *text = tune_value_spell(&node->value);
    const char *copy = tune_foreign_copy(f, text ? text : "");
    free(text);
    return copy;
}

/* Replace ${a.b} by the value of that setting. Other texts in ${} stay. */
static const char *fill_in(struct tune_foreign_file *f, const char *text)
{
    for (int round = 0; round < 8; round++) {
        const char *begin = strstr(text, "${"), *end = begin ? strchr(begin, '}') : NULL;
        char name[256], full[2048];
        if (!end)
            break;
        snprintf(name, sizeof name, "%.*s", (int)(end - begin - 2), begin + 2);
        const struct tune_foreign_leaf *leaf = tune_foreign_leaf_of(f, name);
        if (!leaf)
            break;
        snprintf(full, sizeof full, "%.*s%s%s", (int)(begin - text), text, leaf->text, end + 1);
        text = tune_foreign_copy(f, full);
    }
    return text;
}

static int add_leaf(struct tune_foreign_file *f, const char *name, const char *text, const struct tune_node *node)
{
    struct tune_foreign_leaf *more = grow(f->leaves, f->leaf_count, sizeof *more);
    if (!more)
        return no_memory();
    f->leaves = more;
    int index = -1;
    for (const char *part = name; part && index < 0; part = strchr(part, '.') ? strchr(part, '.') + 1 : NULL)
        if (isdigit((unsigned char)*part) && part[strspn(part, "0123456789")] != '_')
            index = atoi(part);
    more[f->leaf_count++] = (struct tune_foreign_leaf){tune_foreign_copy(f, name), text, node, index};
    return 0;
}

/* Add the leaves below a node. A value that is none, and an empty list or map, is not given. */
static int flatten(struct tune_foreign_file *f, const char *name, const struct tune_node *node)
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
        tune_append(list, sizeof list, "%s%s", i ? "," : "", node->items[i]->type == TUNE_NODE_SCALAR ? spell_scalar(f, node->items[i]) : "[]");
    return add_leaf(f, name, tune_foreign_copy(f, list), node);
}

const struct tune_foreign_leaf *tune_foreign_leaf_of(const struct tune_foreign_file *f, const char *name)
{
    for (int i = 0; i < f->leaf_count; i++)
        if (!strcmp(f->leaves[i].name, name))
            return &f->leaves[i];
    return NULL;
}

/* ---- which tool ---- */

static bool has_sign(const struct tune_foreign_file *f, const char *signs)
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
static bool is_foreign(const struct tune_foreign_file *f, const char *tool)
{
    int theirs = 0, ours = 0;
    for (int i = 0; i < f->leaf_count; i++) {
        const char *name = f->leaves[i].name;
        if (tune_foreign_row(f->table, tool, name, NULL))
            theirs++;
        else
            ours += tune_flags_row(f->state, name, strlen(name)) >= 0;
    }
    return theirs > ours;
}

static void find_tool(struct tune_foreign_file *f)
{
    const cJSON *tool;
    cJSON_ArrayForEach(tool, cJSON_GetObjectItemCaseSensitive(f->table, "tools")) {
        const char *name = tune_foreign_text(tool, "name"), *signs = tune_foreign_text(tool, "signs");
        if (name && signs && has_sign(f, signs) && (tune_foreign_text(tool, "stops") || is_foreign(f, name))) {
            f->tool = name;
            f->about = tool;
            return;
        }
    }
}

/* ---- what a setting becomes ---- */

static void add_finding(struct tune_foreign_file *f, enum tune_finding_kind kind, const struct tune_foreign_leaf *leaf,
                        const char *name, const char *to, const char *why)
{
    struct tune_flags_state *state = f->state;
    struct tune_finding *more = grow(state->findings, state->finding_count, sizeof *more);
    if (!more) {
        f->no_memory = true;
        return;
    }
    state->findings = more;
    more[state->finding_count++] = (struct tune_finding){kind, leaf ? leaf->node->line : 0, name, leaf ? tune_foreign_copy(f, leaf->text) : "",
                                                         tune_foreign_copy(f, to), tune_foreign_copy(f, why)};
}

/* Whether an option is one of those that may differ for each of several files. */
static bool is_by_file(const char *option)
{
    static const char *const names[] = {"dataset", "format", "columns", "text-field", "train-on", "chat-template"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(option, names[i]))
            return true;
    return false;
}

/* Check that the option takes the value; *text may become what we write for it. */
static bool fits_option(struct tune_foreign_file *f, int i, const char **text, struct tune_foreign_effect *effect)
{
    struct tune_option copy, *row = &f->state->at[i].row;
    union tune_option_value place;
    const char *note, *stops, *word = tune_foreign_word(f->table, row->name, *text, &note, &stops);
    struct tune_error before;
    tune_error_save(&before);
    bool good = tune_flags_put_elsewhere(&copy, &place, row, *text) == 0;
    if (!good && word && (good = tune_flags_put_elsewhere(&copy, &place, row, word) == 0)) {
        *text = tune_foreign_copy(f, word);
        if (note)
            snprintf(effect->why, sizeof effect->why, "%s", note);
    }
    if (!good)
        snprintf(effect->why, sizeof effect->why, "%.600s", stops ? stops : tune_error_message());
    tune_error_restore(&before);
    return good;
}

void tune_foreign_set(struct tune_foreign_file *f, const char *option, const char *text, int index, bool is_new,
                      struct tune_foreign_effect *effect)
{
    char name[64];
    size_t size = strcspn(option, "+?!");
    char mark = option[size];
    snprintf(name, sizeof name, "%.*s", (int)size, option);
    int i = tune_flags_row(f->state, name, size);
    if (i < 0 && mark == '?')
        return;
    if (i < 0) {
        const char *program = tune_foreign_elsewhere(f->state, name);
        effect->left = !*effect->to;
        snprintf(effect->why, sizeof effect->why, program ? "%s has --%s" : "%sno program of this version has --%s", program ? program : "", name);
        return;
    }
    if (!is_by_file(name) && mark != '+' && !fits_option(f, i, &text, effect)) {
        effect->left = is_new;
        effect->stops = !is_new;
        return;
    }
    struct tune_foreign_slot *more = grow(f->slots, f->slot_count, sizeof *more);
    if (!more) {
        f->no_memory = true;
        return;
    }
    f->slots = more;
    more[f->slot_count++] = (struct tune_foreign_slot){f->state->at[i].row.name, tune_foreign_copy(f, text), index,
                                                       mark == '!' ? 2 : mark == '?' ? 0 : 1, mark == '+' || !strcmp(name, "columns")};
    tune_append(effect->to, sizeof effect->to, "%s--%s %s", *effect->to ? " " : "", f->state->at[i].row.name, text);
}

/* Note the kind of training that a setting asks for. */
static void ask_for(struct tune_foreign_file *f, const struct tune_foreign_leaf *leaf, const char *program)
{
    bool stage = !strcmp(program, "dpo") || !strcmp(program, "sft");
    if (stage)
        f->stage = program;
    else
        f->method = program;
    if (!f->asks || !strcmp(program, "dpo") || (!stage && strcmp(f->stage, "dpo")))
        f->asks = leaf;
}

/* Whether an option that makes a setting pointless is on the command line. */
static bool is_replaced(const struct tune_foreign_file *f, const char *by)
{
    int i = by ? tune_flags_row(f->state, by, strlen(by)) : -1;
    return i >= 0 && f->state->at[i].typed;
}

static void set_options(struct tune_foreign_file *f, const struct tune_foreign_leaf *leaf, const cJSON *options,
                        struct tune_foreign_effect *effect)
{
    const cJSON *option;
    cJSON_ArrayForEach(option, options)
        if (cJSON_IsString(option))
            tune_foreign_set(f, option->string, option->valuestring, leaf->index, true, effect);
}

/* Do what a row, or its object for one value, says. row: the whole row. */
static void follow_rule(struct tune_foreign_file *f, const struct tune_foreign_leaf *leaf, const cJSON *row, const cJSON *rule,
                        struct tune_foreign_effect *effect)
{
    const char *option = tune_foreign_text(row, "option"), *stops = tune_foreign_text(rule, "stops"), *left = tune_foreign_text(rule, "left");
    const char *by = tune_foreign_text(rule, "by"), *as = tune_foreign_text(rule, "as"), *note = tune_foreign_text(rule, "note");
    const char *program = tune_foreign_text(rule, "program"), *value = tune_foreign_text(rule, "value");
    bool is_new = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(row, "new"));
    by = by ? by : tune_foreign_text(row, "by");
    if (stops && is_replaced(f, by)) {
        effect->left = true;
        snprintf(effect->why, sizeof effect->why, "--%s on the command line replaces it", by);
        return;
    }
    if (stops)
        tune_foreign_stop(effect, "%s", stops);
    if (left)
        snprintf(effect->why, sizeof effect->why, "%s", left);
    effect->left = left != NULL;
    if (program)
        tune_append(effect->to, sizeof effect->to, !strcmp(program, "sft") ? "a recipe for texts" : "finetune_%s", program);
    set_options(f, leaf, cJSON_GetObjectItemCaseSensitive(rule, "options"), effect);
    if (as)
        tune_foreign_as(f, leaf, as, option, is_new, effect);
    else if (option && !stops && !left && (rule == row || value))
        tune_foreign_set(f, option, value ? value : leaf->text, leaf->index, is_new, effect);
    if (note)
        snprintf(effect->why, sizeof effect->why, "%s", note);
    if (effect->stops && as && is_replaced(f, by)) {
        effect->stops = false;
        effect->left = true;
        snprintf(effect->why, sizeof effect->why, "--%s on the command line replaces it", by);
    }
}

/* The member of a row that says what to do with a value; the row itself if none does. */
static const cJSON *rule_of(const cJSON *row, const char *text)
{
    const cJSON *rule = tune_foreign_match(cJSON_GetObjectItemCaseSensitive(row, "values"), text);
    rule = rule ? rule : cJSON_GetObjectItemCaseSensitive(row, "else");
    return rule ? rule : row;
}

/* The items of a list in our words. */
static const char *translate_items(struct tune_foreign_file *f, const cJSON *items, const char *text)
{
    char list[2048] = "", item[256];
    for (const char *at = text; items && *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        snprintf(item, sizeof item, "%.*s", (int)n, at);
        const char *ours = tune_foreign_text(items, item);
        tune_append(list, sizeof list, "%s%s", *list ? "," : "", ours ? ours : item);
        at += n;
    }
    return items ? tune_foreign_copy(f, list) : text;
}

static bool is_ignored(const struct tune_foreign_file *f, const char *name)
{
    char pattern[256];
    for (const char *at = f->state->ignored; at && *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        snprintf(pattern, sizeof pattern, "%.*s", (int)n, at);
        size_t length = strlen(pattern);
        if (fnmatch(pattern, name, 0) == 0 || (!strncmp(pattern, name, length) && name[length] == '.'))
            return true;
        at += n;
    }
    return false;
}

static void follow_leaf(struct tune_foreign_file *f, const struct tune_foreign_leaf *from)
{
    struct tune_foreign_effect effect = {0};
    struct tune_foreign_leaf leaf = *from;
    const cJSON *row = tune_foreign_row(f->table, f->tool, leaf.name, !strcmp(f->stage, "dpo") ? "dpo" : "sft");
    leaf.text = translate_items(f, cJSON_GetObjectItemCaseSensitive(row, "items"), leaf.text);
    if (is_ignored(f, leaf.name)) {
        add_finding(f, TUNE_LEFT_OUT, from, leaf.name, "", "--ignore-keys says so");
        return;
    }
    if (!row && tune_flags_row(f->state, leaf.name, strlen(leaf.name)) >= 0) {
        tune_foreign_set(f, leaf.name, leaf.text, -1, false, &effect);
    } else if (!row) {
        tune_foreign_stop(&effect, "this name is not known");
    } else {
        const cJSON *rule = rule_of(row, leaf.text);
        if (cJSON_IsNull(rule))
            snprintf(effect.why, sizeof effect.why, "it is so anyway");
        else if (cJSON_IsString(rule))
            tune_foreign_set(f, tune_foreign_text(row, "option") ? tune_foreign_text(row, "option") : "", rule->valuestring, leaf.index,
                             cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(row, "new")), &effect);
        else
            follow_rule(f, &leaf, row, rule, &effect);
    }
    add_finding(f, effect.stops ? TUNE_STOPS : effect.left ? TUNE_LEFT_OUT : TUNE_TAKEN, from, leaf.name, effect.to, effect.why);
}

/* ---- which program ---- */

static const char *wanted_program(const struct tune_foreign_file *f)
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

/* ---- putting it together ---- */

/* The slot that holds for one of several files: the highest rank, then the last. columns: all of
 * them, with commas between. */
static const struct tune_foreign_slot *best_slot(const struct tune_foreign_file *f, const char *option, int index)
{
    const struct tune_foreign_slot *best = NULL;
    for (int i = 0; i < f->slot_count; i++)
        if (!strcmp(f->slots[i].option, option) && f->slots[i].index == index && (!best || f->slots[i].rank >= best->rank))
            best = &f->slots[i];
    return best;
}

/* The value of an option for file `index`. In columns, "@=" stands for the name of conversations. */
static void value_for(const struct tune_foreign_file *f, const char *option, int index, char *text, size_t size)
{
    const struct tune_foreign_slot *best = best_slot(f, option, index);
    *text = 0;
    if (!best && index >= 0)
        best = best_slot(f, option, index = -1);
    if (!best)
        return;
    if (!best->add) {
        snprintf(text, size, "%s", best->text);
        return;
    }
    for (int i = 0; i < f->slot_count; i++) {
        const struct tune_foreign_slot *s = &f->slots[i];
        if (strcmp(s->option, option) || s->index != index || s->rank != best->rank)
            continue;
        const struct tune_foreign_slot *format = best_slot(f, "format", index);
        bool sharegpt = format && !strncmp(format->text, "sharegpt", 8), names = s->text[0] == '@';
        tune_append(text, size, "%s%s%s", *text ? "," : "", !names ? "" : sharegpt ? "conversations" : "messages", s->text + names);
    }
}

/* Put the values of all files of an option into text. */
static void join_files(const struct tune_foreign_file *f, const char *option, int files, char *text, size_t size)
{
    char one[1024], first[1024];
    bool equal = true;
    value_for(f, option, files > 0 ? 0 : -1, first, sizeof first);
    snprintf(text, size, "%s", first);
    for (int i = 1; i < files; i++) {
        value_for(f, option, i, one, sizeof one);
        equal = equal && !strcmp(one, first);
        tune_append(text, size, "%s%s", !strcmp(option, "columns") ? ";" : ",", one);
    }
    if (equal && strcmp(option, "dataset"))
        snprintf(text, size, "%s", first);
}

static bool is_first_slot(const struct tune_foreign_file *f, int at)
{
    for (int i = 0; i < at; i++)
        if (!strcmp(f->slots[i].option, f->slots[at].option))
            return false;
    return true;
}

/* The tool's own default for what the file leaves out. 2*lora-r is twice that option's value. */
static void assume_defaults(struct tune_foreign_file *f, const cJSON *values)
{
    const cJSON *value;
    cJSON_ArrayForEach(value, values) {
        struct tune_foreign_effect effect = {0};
        char text[64], rank[64];
        value_for(f, "lora-r", -1, rank, sizeof rank);
        snprintf(text, sizeof text, "%s", cJSON_IsString(value) ? value->valuestring : "");
        if (!strcmp(text, "2*lora-r"))
            snprintf(text, sizeof text, "%d", 2 * atoi(rank));
        bool given = false;
        for (int i = 0; i < f->slot_count; i++)
            given = given || !strcmp(f->slots[i].option, value->string);
        if (given || tune_flags_row(f->state, value->string, strlen(value->string)) < 0)
            continue;
        tune_foreign_set(f, value->string, text, -1, true, &effect);
        if (!effect.left)
            add_finding(f, TUNE_ASSUMED, NULL, "", effect.to, "");
    }
}

static void set_all(struct tune_foreign_file *f)
{
    int files = 0, dataset = tune_flags_row(f->state, "dataset", 7);
    char text[4096], where[TUNE_PATH_MAX + 64];
    for (int i = 0; i < f->slot_count; i++)
        if (!strcmp(f->slots[i].option, "dataset") && f->slots[i].index >= files)
            files = f->slots[i].index + 1;
    if (dataset >= 0 && f->state->at[dataset].typed)
        files = files > 1 ? 1 : files;
    for (int i = 0; i < f->slot_count; i++) {
        const char *option = f->slots[i].option;
        if (!is_first_slot(f, i))
            continue;
        if (is_by_file(option))
            join_files(f, option, files > 0 || f->slots[i].index < 0 ? files : 1, text, sizeof text);
        else {
            const struct tune_foreign_slot *best = &f->slots[i];
            for (int k = i; k < f->slot_count; k++)
                best = !strcmp(f->slots[k].option, option) && f->slots[k].rank >= best->rank ? &f->slots[k] : best;
            value_for(f, option, best->index, text, sizeof text);
        }
        snprintf(where, sizeof where, "%s: %s", f->path, option);
        if (*text && tune_flags_set(f->state, tune_flags_row(f->state, option, strlen(option)), text, TUNE_FROM_CONFIG, where) < 0) {
            add_finding(f, TUNE_STOPS, NULL, option, "", tune_error_message());
            tune_error_clear();
        }
    }
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
static int send_to(struct tune_foreign_file *f, const struct tune_flags *flags, const char *program)
{
    char *line = NULL, text[2048];
    TRY(write_line(flags, program, &line));
    snprintf(text, sizeof text, "this file is for %s%s%s%s%s: %s", program, f->asks ? ", by its " : "", f->asks ? f->asks->name : "",
             f->asks ? " " : "", f->asks ? f->asks->text : "", line);
    f->state->fits = tune_foreign_copy(f, text);
    free(line);
    return f->state->wish == TUNE_WISH_RUN ? tune_error_usage("--config %s: %s", f->path, text) : 0;
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
static int complain(const struct tune_foreign_file *f, int from)
{
    const struct tune_flags_state *state = f->state;
    char text[1600] = "";
    int count = count_of(state, from, TUNE_STOPS), named = 0;
    for (int i = from; i < state->finding_count && named < 3; i++) {
        const struct tune_finding *x = &state->findings[i];
        char place[64] = "";
        if (x->kind != TUNE_STOPS)
            continue;
        named++;
        if (x->line)
            snprintf(place, sizeof place, " (line %d)", x->line);
        tune_append(text, sizeof text, "%s%.100s%s%.60s%s: %.400s", named > 1 ? "; " : "", x->name, *x->text ? " " : "", x->text, place, x->why);
    }
    if (count > named)
        tune_append(text, sizeof text, "; and %d more", count - named);
    return tune_error_usage("--config %s, a file of %s, asks for what is not done here: %s. --show-config lists all; --ignore-keys "
                            "NAME,... goes on without some of them", f->path, f->tool, text);
}

/* Take the leaves in turn. Those that ask for a kind of training come first. */
static int take_leaves(struct tune_foreign_file *f, const struct tune_flags *flags)
{
    f->stage = tune_foreign_text(f->about, "stage");
    f->method = tune_foreign_text(f->about, "method");
    f->stage = f->stage ? f->stage : "";
    f->method = f->method ? f->method : "";
    for (int i = 0; i < f->leaf_count; i++) {
        const struct tune_foreign_leaf *leaf = &f->leaves[i];
        const cJSON *row = tune_foreign_row(f->table, f->tool, leaf->name, NULL);
        const char *program = tune_foreign_text(rule_of(row, leaf->text), "program");
        if (program && !is_ignored(f, leaf->name))
            ask_for(f, leaf, program);
    }
    const char *wanted = wanted_program(f);
    if (wanted)
        TRY(send_to(f, flags, wanted));
    for (int i = 0; i < f->leaf_count; i++)
        follow_leaf(f, &f->leaves[i]);
    bool dpo = tune_flags_row(f->state, "simpo-gamma", 11) >= 0;
    if (dpo && strcmp(f->method, "lora")) {
        struct tune_foreign_effect effect = {0};
        tune_foreign_set(f, "lora-r!", "0", -1, false, &effect);
        add_finding(f, TUNE_ASSUMED, NULL, "", effect.to, "all weights are trained");
    }
    assume_defaults(f, dpo ? cJSON_GetObjectItemCaseSensitive(f->about, "dpo") : NULL);
    assume_defaults(f, cJSON_GetObjectItemCaseSensitive(f->about, "defaults"));
    const cJSON *note;
    cJSON_ArrayForEach(note, cJSON_GetObjectItemCaseSensitive(f->about, "notes"))
        if (cJSON_IsString(note))
            add_finding(f, TUNE_LEFT_OUT, NULL, "", "", note->valuestring);
    set_all(f);
    return 0;
}

static int take_file(struct tune_foreign_file *f, struct tune_flags *flags)
{
    struct tune_flags_state *state = f->state;
    const char *stops = tune_foreign_text(f->about, "stops");
    int from = state->finding_count;
    char note[TUNE_PATH_MAX + 256];
    state->tool = f->tool = tune_foreign_copy(f, f->tool);
    if (stops)
        add_finding(f, TUNE_STOPS, NULL, "the file", "", stops);
    else
        TRY(take_leaves(f, flags));
    if (f->no_memory)
        return no_memory();
    if (state->wish == TUNE_WISH_RUN && count_of(state, from, TUNE_STOPS) > 0)
        return complain(f, from);
    snprintf(note, sizeof note, "%s is a file of %s: %d settings are taken, %d values are its defaults, %d settings are left out; "
             "--show-config lists them", f->path, f->tool, count_of(state, from, TUNE_TAKEN), count_of(state, from, TUNE_ASSUMED),
             count_of(state, from, TUNE_LEFT_OUT));
    TRY(tune_flags_add_note(state, note));
    return 1;
}

int tune_foreign_take(struct tune_flags *flags, const struct tune_document *d)
{
    struct tune_foreign_file f = {.state = flags->state, .program = flags->program, .path = d->path, .document = d};
    cJSON *table = d->root->type == TUNE_NODE_MAP ? tune_foreign_read() : NULL;
    f.table = table;
    int result = table ? flatten(&f, "", d->root) : 0;
    for (int i = 0; i < f.leaf_count; i++)
        f.leaves[i].text = fill_in(&f, f.leaves[i].text);
    if (result == 0 && table)
        find_tool(&f);
    if (result == 0 && f.tool)
        result = take_file(&f, flags);
    free(f.leaves);
    free(f.slots);
    cJSON_Delete(table);
    return result;
}
