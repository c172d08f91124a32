/* format.c - choose the format of a file's rows, and make the text of a row. */
#include "datasets/format.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/print.h"
#include "core/nearest.h"
#include "core/try.h"

/* The two prompts of Alpaca, with torchtune's line end after "### Response:". */
static const char *const alpaca[2] = {
    "[prompt]\n"
    "Below is an instruction that describes a task, paired with an input that provides further context. "
    "Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{instruction}\n\n### Input:\n{input}\n\n### Response:\n\n[completion]\n{output}",
    "[prompt]\n"
    "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{instruction}\n\n### Response:\n\n[completion]\n{output}",
};

static const struct known {
    const char *name;
    const char *names[5]; /* of columns; the last `optional` ones may be absent */
    int optional;
    bool train_on[4];     /* values --train-on accepts; the first is the default */
} formats[] = {
    [TUNE_FORMAT_TEXT] = {"text", {"text"}, 0, {[TUNE_TRAIN_ON_COMPLETION] = true, [TUNE_TRAIN_ON_ALL] = true}},
    [TUNE_FORMAT_ALPACA] = {"alpaca", {"instruction", "output", "input"}, 1, {true, false, false, true}},
    [TUNE_FORMAT_INSTRUCT] = {"instruct", {"input", "output"}, 0, {true, false, false, true}},
    [TUNE_FORMAT_PROMPT_COMPLETION] = {"prompt-completion", {"prompt", "completion"}, 0, {true, false, false, true}},
    [TUNE_FORMAT_MESSAGES] = {"messages", {"messages", "tools"}, 1, {false, true, true, true}},
    [TUNE_FORMAT_SHAREGPT] = {"sharegpt", {"conversations", "tools"}, 1, {false, true, true, true}},
    [TUNE_FORMAT_TEMPLATE] = {"prompt-template", {NULL}, 0, {true, false, false, true}},
    [TUNE_FORMAT_MESSAGE_LISTS] = {"prompt-completion", {"prompt", "completion", "tools"}, 1, {true, true, true, true}},
    [TUNE_FORMAT_PREFERENCE] = {"preference", {"chosen", "rejected", "prompt"}, 1, {true}},
    [TUNE_FORMAT_SHAREGPT_PREFERENCE] = {"sharegpt-preference", {"chosen", "rejected", "conversations", "tools"}, 1, {true}},
    [TUNE_FORMAT_ALPACA_PREFERENCE] = {"alpaca-preference", {"instruction", "input", "chosen", "rejected", "output"}, 4, {true}},
    [TUNE_FORMAT_PREFERENCE_LISTS] = {"preference", {"chosen", "rejected", "prompt", "tools"}, 2, {true}},
};
static const char *const train_on[] = {"completion", "assistant", "last", "all"};

/* index of "input" in names; rows examined to recognise a format */
enum { ALPACA_INPUT = 2, FIRST_ROWS = 100 };

/* The date that strftime_now gives to chat templates. It is fixed, so that rows have the same
 * tokens in every epoch, on every day and after --resume. */
#define CHAT_DATE INT64_C(1721952000) /* 26 July 2024 */

const char *tune_format_name(const struct tune_format *f)
{
    return formats[f->kind].name;
}

const char *tune_format_train_on(const struct tune_format *f)
{
    return train_on[f->train_on];
}

/* ---- which format ---- */

/* Split "instruction=question,output=answer" into f->map: name, NUL, column, NUL, ... */
static int read_map(struct tune_format *f, const char *text)
{
    if (!(f->map = tune_zeroed(1, strlen(text) + 2, "the names of columns"))) /* ends in an empty name */
        return -1;
    strcpy(f->map, text);
    for (char *p = f->map; *p;) {
        char *equal = p + strcspn(p, "=,"), *end = equal + strcspn(equal, ",");
        bool last = !*end;
        if (*equal != '=' || equal == p || equal + 1 == end)
            return tune_error_usage("`columns` \"%s\": expected NAME=COLUMN,...: what the format "
                                    "calls it, and what the file does", text);
        *equal = *end = 0;
        p = end + !last;
    }
    return 0;
}

/* The file's column for a name of the format. */
static const char *column_of(const struct tune_format *f, const char *name)
{
    for (const char *p = f->map; p && *p;) {
        const char *column = p + strlen(p) + 1;
        if (!strcmp(p, name))
            return column;
        p = column + strlen(column) + 1;
    }
    return name;
}

static bool has(const struct tune_format *f, const struct tune_columns *have, const char *name)
{
    return tune_columns_has(have, column_of(f, name));
}

/* Recognise the format of pairs. TUNE_FORMAT_TEXT: there are none. */
static enum tune_format_kind recognise_pairs(const struct tune_format *f, const struct tune_columns *have, bool wanted)
{
    bool both = has(f, have, "chosen") && has(f, have, "rejected");
    if (has(f, have, "instruction") && (both || (wanted && has(f, have, "output"))))
        return TUNE_FORMAT_ALPACA_PREFERENCE;
    if (both)
        return has(f, have, "conversations") ? TUNE_FORMAT_SHAREGPT_PREFERENCE : TUNE_FORMAT_PREFERENCE;
    return TUNE_FORMAT_TEXT;
}

/* Recognise the format. A more specific format wins over a column "text" beside it. */
static enum tune_format_kind recognise(const struct tune_format *f, const struct tune_columns *have, bool pairs)
{
    enum tune_format_kind kind = f->prompts ? TUNE_FORMAT_TEXT : recognise_pairs(f, have, pairs);
    bool answer = !f->prompts; /* whether a format needs its column of answers */
    if (kind != TUNE_FORMAT_TEXT)
        return kind;
    if (has(f, have, "messages"))
        return TUNE_FORMAT_MESSAGES;
    if (has(f, have, "conversations"))
        return TUNE_FORMAT_SHAREGPT;
    if (has(f, have, "prompt") && (has(f, have, "completion") || !answer))
        return TUNE_FORMAT_PROMPT_COMPLETION;
    if (has(f, have, "instruction") && (has(f, have, "output") || !answer))
        return TUNE_FORMAT_ALPACA;
    return has(f, have, "input") && has(f, have, "output") ? TUNE_FORMAT_INSTRUCT : TUNE_FORMAT_TEXT;
}

/* The type of a column. The first readable row that has a value decides; -1: none has. */
static int type_of(const struct tune_format *f, const struct tune_columns *have, const struct tune_rows *rows, const char *name)
{
    struct tune_values v = {0};
    const char *column = column_of(f, name);
    int type = -1;
    for (int64_t i = 0; i < rows->count && i < FIRST_ROWS; i++) {
        struct tune_row row = tune_rows_get(rows, i);
        if (row.size > TUNE_ROW_LIMIT || tune_values_read(&v, rows, have, &row, &column, 1) < 0 || v.at[0].type < 0)
            continue;
        type = v.at[0].type;
        break;
    }
    tune_error_clear();
    tune_values_free(&v);
    return type;
}

static int choose(struct tune_format *f, const struct tune_columns *have, const struct tune_dataset_options *o)
{
    f->recognised = !o->row_format || !strcmp(o->row_format, "auto");
    if (o->prompt_template) {
        if (!f->recognised)
            return tune_error_usage("`format` %s and `prompt_template` %s both say what rows look "
                                    "like; leave one of them out", o->row_format,
                                    o->prompt_template);
        f->recognised = false;
        f->kind = TUNE_FORMAT_TEMPLATE;
        return tune_prompt_template_open(&f->templates[0], o->prompt_template);
    }
    if (f->recognised) {
        f->kind = recognise(f, have, o->pairs);
        return 0;
    }
    for (int i = 0; i < TUNE_FORMAT_PREFERENCE_LISTS; i++)
        if (i != TUNE_FORMAT_TEMPLATE && i != TUNE_FORMAT_MESSAGE_LISTS && !strcmp(o->row_format, formats[i].name)) {
            f->kind = (enum tune_format_kind)i;
            return 0;
        }
    return tune_error_usage("\"%s\" is no format of rows; expected auto, text, alpaca, instruct, "
                            "prompt-completion, messages or sharegpt; of pairs: preference, sharegpt-preference, "
                            "alpaca-preference", o->row_format);
}

/* Pairs are for recipes that compare two answers, and those recipes read nothing else. */
static int check_pairs(const struct tune_format *f, const struct tune_columns *have, const struct tune_dataset_options *o,
                       const struct tune_rows *rows)
{
    char list[512];
    if (f->prompts)
        return 0;
    if (f->recognised && has(f, have, "prompt") && has(f, have, "completion") && has(f, have, "label") &&
        type_of(f, have, rows, "label") == TUNE_JSON_BOOL)
        return tune_error_usage("%s: these rows are unpaired preferences (prompt, completion, label), and no recipe trains on "
                                "them; `format` prompt-completion trains on every completion, also on those labelled false",
                                rows->path);
    if (f->pairs && !o->pairs)
        return tune_error_usage("%s: these rows are preferences, pairs of a chosen and a rejected answer: finetune_dpo trains on "
                                "them%s", rows->path, has(f, have, "prompt") ? ". To train on the chosen answers alone: `format` "
                                "prompt-completion `columns` completion=chosen"
                                : has(f, have, "chosen") && type_of(f, have, rows, "chosen") == TUNE_JSON_ARRAY
                                ? ". To train on the chosen conversations alone: `format` messages `columns` messages=chosen" : "");
    if (f->recognised && f->kind == TUNE_FORMAT_ALPACA && !o->pairs && type_of(f, have, rows, "output") == TUNE_JSON_ARRAY)
        return tune_error_usage("%s: these rows are preferences, an instruction and a list of two outputs: finetune_dpo trains on "
                                "them", rows->path);
    if (o->pairs && !f->pairs)
        return tune_error_usage("%s: expected preferences, pairs of answers: the columns chosen and rejected, beside prompt, "
                                "conversations or instruction; or instruction and a list of two outputs. It has: %s (`columns` "
                                "chosen=COLUMN,rejected=COLUMN says which are meant)", rows->path,
                                tune_columns_list(have, list, sizeof list));
    return 0;
}

/* Set the names of the format's columns, in the order in which values are read. */
static int name_columns(struct tune_format *f)
{
    const struct known *k = &formats[f->kind];
    if (f->kind == TUNE_FORMAT_ALPACA || f->kind == TUNE_FORMAT_ALPACA_PREFERENCE)
        for (int i = 0; i < 2; i++)
            TRY(tune_prompt_template_parse(&f->templates[i], "alpaca", alpaca[i], strlen(alpaca[i])));
    f->optional = k->optional;
    if (f->kind == TUNE_FORMAT_TEMPLATE) {
        f->count = f->templates[0].slot_count;
        memcpy(f->names, f->templates[0].slots, (size_t)f->count * sizeof *f->names);
    } else {
        while (f->count < 5 && k->names[f->count]) {
            f->names[f->count] = k->names[f->count];
            f->count++;
        }
    }
    for (int i = 0; i < f->count; i++)
        f->columns[i] = column_of(f, f->names[i]);
    return 0;
}

/* Check that every name in --columns belongs to the format. */
static int check_map(const struct tune_format *f, const struct tune_columns *have)
{
    char names[1024] = "";
    for (int i = 0; i < f->count; i++)
        tune_append_item(names, sizeof names, "%s", f->names[i]);
    for (const char *p = f->map; p && *p;) {
        const char *column = p + strlen(p) + 1;
        int i = 0;
        if (column_of(f, p) != column)
            return tune_error_usage("`columns`: \"%s\" stands before a '=' twice; leave one of "
                                    "them out", p);
        while (i < f->count && strcmp(f->names[i], p))
            i++;
        if (i == f->count && tune_columns_has(have, p))
            return tune_error_usage("`columns`: \"%s\" is a column of the file, and stands behind "
                                    "the '='; before it one of: %s (the format is %s; `format` "
                                    "says another)", p, names, tune_format_name(f));
        if (i == f->count)
            return tune_error_usage("`columns`: \"%s\" is nothing that the format %s reads; "
                                    "expected one of: %s (before the '=', the file's column "
                                    "behind it)", p, tune_format_name(f), names);
        p = column + strlen(column) + 1;
    }
    return 0;
}

/* Whether column i is read only for the answer. */
static bool is_answer(const struct tune_format *f, int i)
{
    const struct tune_prompt_template *t = &f->templates[0];
    if (f->kind != TUNE_FORMAT_TEMPLATE)
        return !strcmp(f->names[i], "output") || !strcmp(f->names[i], "completion");
    for (int k = 0; k < t->count && !t->parts[k].trained; k++)
        if (t->parts[k].slot >= 0 && !strcmp(t->parts[k].text, f->names[i]))
            return false;
    return true;
}

static int check_columns(const struct tune_format *f, const struct tune_columns *have, const char *path)
{
    char list[512];
    for (int i = 0; i < f->count; i++) {
        /* a column named in --columns must exist */
        bool mapped = strcmp(f->columns[i], f->names[i]) != 0;
        if (tune_columns_has(have, f->columns[i]) || (i >= f->count - f->optional && !mapped) ||
            (f->prompts && is_answer(f, i)))
            continue;
        const char *nearest = tune_nearest(f->columns[i], (const char *const *)have->names, have->count, NULL);
        return tune_error_usage("%s: no column \"%.200s\" for %s's %s%.200s%s; it has: %s%s%.100s%s "
                                "(`columns` %.100s=COLUMN says which one is meant)", path, f->columns[i], tune_format_name(f),
                                f->kind == TUNE_FORMAT_TEMPLATE ? "slot {" : "\"", f->names[i],
                                f->kind == TUNE_FORMAT_TEMPLATE ? "}" : "\"",
                                tune_columns_list(have, list, sizeof list),
                                nearest ? "; the nearest is \"" : "", nearest ? nearest : "", nearest ? "\"" : "",
                                mapped ? f->names[i] : f->columns[i]);
    }
    return 0;
}

static int settle_train_on(struct tune_format *f, const struct tune_dataset_options *o)
{
    const struct known *k = &formats[f->kind];
    bool text = f->kind == TUNE_FORMAT_TEXT;
    char names[64] = "";
    int i = 0;
    if (!o->train_on || !strcmp(o->train_on, "default")) {
        while (!k->train_on[i] || (text && i == TUNE_TRAIN_ON_COMPLETION && !o->response_template))
            i++;
        f->train_on = (enum tune_train_on)i;
        return 0;
    }
    while (i < 4 && strcmp(o->train_on, train_on[i]))
        i++;
    if (i < 4 && k->train_on[i] && !(text && (i == TUNE_TRAIN_ON_COMPLETION) != (o->response_template != NULL))) {
        f->train_on = (enum tune_train_on)i;
        return 0;
    }
    if (text && i < 4 && k->train_on[i])
        return tune_error_usage(i == TUNE_TRAIN_ON_ALL
                                ? "`train_on` all and `response_template` contradict each other; "
                                  "leave one of them out"
                                : "`train_on` completion: rows of plain text do not say where "
                                  "theirs begins; give `response_template` TEXT, or `format`");
    for (int n = 0; n < 4; n++)
        if (k->train_on[n])
            tune_append_item(names, sizeof names, "%s", train_on[n]);
    return tune_error_usage("`train_on` %s has no meaning for rows of the format %s; expected one "
                            "of: %s", o->train_on, tune_format_name(f), names);
}

static int open_chat(struct tune_format *f, const struct tune_dataset_options *o, const char *path)
{
    bool conversations = f->kind == TUNE_FORMAT_INSTRUCT || f->kind == TUNE_FORMAT_MESSAGES || f->kind == TUNE_FORMAT_SHAREGPT ||
                         f->kind == TUNE_FORMAT_MESSAGE_LISTS || f->kind == TUNE_FORMAT_SHAREGPT_PREFERENCE ||
                         f->kind == TUNE_FORMAT_PREFERENCE_LISTS;
    if (!conversations && !o->chat_template)
        return 0;
    if (!conversations)
        return tune_error_usage("%s: `chat_template` writes conversations, and these rows of the "
                                "format %s are none; leave it out, or give another `format`",
                                path, tune_format_name(f));
    f->chat = tune_chat_template_open(o->model_folder, o->chat_template, o->end_token);
    if (f->chat) {
        tune_chat_template_date(f->chat, CHAT_DATE);
        return 0;
    }
    return tune_error_prefix("%s: its rows are conversations (the format %s), and need a chat template: ", path,
                             tune_format_name(f));
}

int tune_format_settle(struct tune_format *f, const struct tune_columns *have, const struct tune_dataset_options *o,
                       const struct tune_rows *rows)
{
    memset(f, 0, sizeof *f);
    f->prompts = o->prompts;
    if (o->columns)
        TRY(read_map(f, o->columns));
    TRY(choose(f, have, o));
    f->pairs = f->kind >= TUNE_FORMAT_PREFERENCE;
    TRY(check_pairs(f, have, o, rows));
    if (f->kind == TUNE_FORMAT_PROMPT_COMPLETION && type_of(f, have, rows, "prompt") == TUNE_JSON_ARRAY)
        f->kind = TUNE_FORMAT_MESSAGE_LISTS;
    int answers = f->kind == TUNE_FORMAT_PREFERENCE ? type_of(f, have, rows, "chosen") : -1;
    if (answers == TUNE_JSON_ARRAY || answers == TUNE_JSON_OBJECT)
        f->kind = TUNE_FORMAT_PREFERENCE_LISTS;
    TRY(name_columns(f));
    TRY(check_map(f, have));
    if (f->kind != TUNE_FORMAT_TEXT)
        TRY(check_columns(f, have, rows->path));
    TRY(settle_train_on(f, o));
    if (f->kind != TUNE_FORMAT_TEXT && o->response_template)
        return tune_error_usage("`response_template` looks for text in rows of plain text; rows "
                                "of the format %s say what is trained", tune_format_name(f));
    return open_chat(f, o, rows->path);
}

void tune_format_free(struct tune_format *f)
{
    tune_prompt_template_free(&f->templates[0]);
    tune_prompt_template_free(&f->templates[1]);
    tune_chat_template_free(f->chat);
    free(f->map);
    memset(f, 0, sizeof *f);
}

/* ---- one row ---- */

int tune_pieces_put(struct tune_pieces *p, const char *text, size_t size, bool trained, bool data)
{
    static const char what[] = "a row's text";
    size_t room = p->room, need = p->size + size + 1;
    TRY(tune_array_reserve(&p->text, &room, need, 1, what));
    TRY(tune_array_reserve(&p->data, &p->room, need, 1, what));
    if (!tune_array_fit(&p->at, (size_t)p->count, sizeof *p->at))
        return tune_error_no_memory(what);
    if (size > 0)
        memcpy(p->text + p->size, text, size);
    memset(p->data + p->size, data, size);
    p->size += size;
    p->text[p->size] = 0;
    if (p->count > 0 && p->at[p->count - 1].trained == trained)
        p->at[p->count - 1].end = p->size;
    else
        p->at[p->count++] = (struct tune_piece){p->size, trained};
    return 0;
}

int tune_pieces_bad_row(const struct tune_rows *rows, const struct tune_row *row, const char *column, const char *what)
{
    return tune_error_set("%s:%lld: the column \"%.200s\" %s", rows->path, (long long)row->line,
                          column, what);
}

/* The value is absent, null or empty. */
bool tune_pieces_no_value(const struct tune_field *v)
{
    return v->type < 0 || v->type == TUNE_JSON_NULL || (v->type == TUNE_JSON_STRING && v->text.size == 0);
}

/* Append column i as text: a string, or a number or boolean as spelled. */
int tune_pieces_need_text(const struct tune_format *f, const struct tune_rows *rows, const struct tune_row *row,
                     const struct tune_pieces *p, int i)
{
    int type = p->values.at[i].type;
    if (type == TUNE_JSON_STRING || type == TUNE_JSON_NUMBER || type == TUNE_JSON_BOOL)
        return 0;
    return tune_pieces_bad_row(rows, row, f->columns[i], type < 0                  ? "is not in this row"
                                             : type == TUNE_JSON_NULL ? "is null in this row, expected text"
                                                                      : "is a list or an object in this row, expected text");
}

int tune_pieces_template(const struct tune_format *f, const struct tune_prompt_template *t, const struct tune_rows *rows,
                         const struct tune_row *row, struct tune_pieces *p, const struct tune_text *answer)
{
    for (int i = 0; i < t->count; i++) {
        const struct tune_prompt_part *part = &t->parts[i];
        bool trained = part->trained || f->train_on == TUNE_TRAIN_ON_ALL;
        int v = 0;
        if (f->prompts && part->trained)
            return 0;
        if (part->slot < 0) {
            TRY(tune_pieces_put(p, part->text, part->size, trained, false));
            continue;
        }
        if (answer && !strcmp(part->text, "output")) {
            TRY(tune_pieces_put(p, answer->data, answer->size, trained, true));
            continue;
        }
        while (strcmp(f->names[v], part->text))
            v++;
        TRY(tune_pieces_need_text(f, rows, row, p, v));
        TRY(tune_pieces_put(p, p->values.at[v].text.data, p->values.at[v].text.size, trained, true));
    }
    p->answer = t->parts[t->count - 1].trained;
    return 0;
}

static int fill_pair(const struct tune_format *f, const struct tune_rows *rows, const struct tune_row *row, struct tune_pieces *p)
{
    for (int i = 0; i < (f->prompts ? 1 : 2); i++) {
        TRY(tune_pieces_need_text(f, rows, row, p, i));
        TRY(tune_pieces_put(p, p->values.at[i].text.data, p->values.at[i].text.size, i == 1 || f->train_on == TUNE_TRAIN_ON_ALL, true));
    }
    p->answer = true;
    return 0;
}

/* True if the text of the i-th assistant message is trained. */
static bool span_trained(const struct tune_format *f, const struct tune_pieces *p, int i)
{
    if (p->chat.untrained[p->rendered.spans[i].message])
        return false;
    switch (f->train_on) {
    case TUNE_TRAIN_ON_LAST: return i == p->rendered.span_count - 1;
    case TUNE_TRAIN_ON_COMPLETION: return p->rendered.spans[i].message >= p->chat.prompt_count;
    default: return true;
    }
}

/* True for an array, and for a string that holds one, as ShareGPT sets have it. */
static bool is_list(const struct tune_field *v)
{
    struct tune_json j;
    if (v->type != TUNE_JSON_STRING)
        return v->type == TUNE_JSON_ARRAY;
    tune_json_start(&j, "tools", v->text.data, v->text.size, 1);
    bool list = tune_json_peek(&j) == TUNE_JSON_ARRAY && tune_json_skip(&j) == 0 && tune_json_end(&j) == 0;
    tune_json_free(&j);
    if (!list)
        tune_error_clear();
    return list;
}

/* Apply the chat template to the conversation read so far. */
int tune_pieces_chat(const struct tune_format *f, const struct tune_rows *rows, const struct tune_row *row, struct tune_pieces *p,
                     const struct tune_field *tools)
{
    bool all = f->train_on == TUNE_TRAIN_ON_ALL || f->prompts;
    int how = f->prompts ? TUNE_CHAT_GENERATION_PROMPT : all ? 0 : TUNE_CHAT_SPANS;
    size_t at = 0;
    TRY(f->prompts ? tune_conversation_open(&p->chat, rows->path, row->line)
                   : tune_conversation_check(&p->chat, rows->path, row->line));
    struct tune_chat_messages chat = {.items = p->chat.items, .count = p->chat.count, .name = rows->path, .line = row->line};
    if (tools && !tune_pieces_no_value(tools)) {
        if (!is_list(tools))
            return tune_pieces_bad_row(rows, row, f->columns[f->count - 1], "is no list of tools in this row");
        chat.tools = tools->text;
    }
    TRY(tune_chat_template_render(f->chat, &chat, how, &p->rendered));
    const struct tune_chat_text *r = &p->rendered;
    for (int i = 0; !all && i < r->span_count; i++) {
        if (f->pairs && !span_trained(f, p, i))
            continue;
        TRY(tune_pieces_put(p, r->text + at, r->spans[i].begin - at, false, false));
        TRY(tune_pieces_put(p, r->text + r->spans[i].begin, r->spans[i].end - r->spans[i].begin, span_trained(f, p, i), false));
        at = r->spans[i].end;
        if (f->pairs)
            break; /* all that follows the prompt is the answer, as in TRL */
    }
    TRY(tune_pieces_put(p, r->text + at, r->size - at, (all || f->pairs) && !f->prompts, false));
    if (r->size > 0)
        memcpy(p->data, r->data, r->size);
    p->whole = true;
    return 0;
}

static int fill_lists(const struct tune_format *f, const struct tune_rows *rows, const struct tune_row *row, struct tune_pieces *p)
{
    TRY(tune_conversation_begin(&p->chat, row->size));
    for (int i = 0; i < (f->prompts ? 1 : 2); i++) {
        if (p->values.at[i].type != TUNE_JSON_ARRAY)
            return tune_pieces_bad_row(rows, row, f->columns[i], "is no list of messages in this row, as prompts are in the first one");
        TRY(tune_conversation_read(&p->chat, &p->values.json, p->values.at[i].text, false));
        if (i == 0)
            p->chat.prompt_count = p->chat.count;
    }
    return tune_pieces_chat(f, rows, row, p, &p->values.at[2]);
}

static int fill_conversation(const struct tune_format *f, const struct tune_rows *rows, const struct tune_row *row,
                             struct tune_pieces *p)
{
    TRY(tune_conversation_begin(&p->chat, row->size));
    if (f->kind == TUNE_FORMAT_INSTRUCT) {
        for (int i = 0; i < (f->prompts ? 1 : 2); i++) {
            TRY(tune_pieces_need_text(f, rows, row, p, i));
            TRY(tune_conversation_add(&p->chat, i ? "assistant" : "user", p->values.at[i].text));
        }
        return tune_pieces_chat(f, rows, row, p, NULL);
    }
    int type = p->values.at[0].type;
    if (type != TUNE_JSON_ARRAY)
        return tune_pieces_bad_row(rows, row, f->columns[0], type < 0 ? "is not in this row" : "is no list of messages in this row");
    TRY(tune_conversation_read(&p->chat, &p->values.json, p->values.at[0].text, f->kind == TUNE_FORMAT_SHAREGPT));
    return tune_pieces_chat(f, rows, row, p, &p->values.at[1]);
}

int tune_format_pieces(const struct tune_format *f, const struct tune_rows *rows, const struct tune_columns *columns,
                       const struct tune_row *row, struct tune_pieces *p)
{
    p->size = 0;
    p->count = 0;
    p->answer = p->whole = false;
    TRY(tune_values_read(&p->values, rows, columns, row, f->columns, f->count));
    switch (f->kind) {
    case TUNE_FORMAT_ALPACA:
        return tune_pieces_template(f, &f->templates[tune_pieces_no_value(&p->values.at[ALPACA_INPUT])], rows, row, p, NULL);
    case TUNE_FORMAT_TEMPLATE:
        return tune_pieces_template(f, &f->templates[0], rows, row, p, NULL);
    case TUNE_FORMAT_PROMPT_COMPLETION:
        return fill_pair(f, rows, row, p);
    case TUNE_FORMAT_MESSAGE_LISTS:
        return fill_lists(f, rows, row, p);
    case TUNE_FORMAT_PREFERENCE:
    case TUNE_FORMAT_SHAREGPT_PREFERENCE:
    case TUNE_FORMAT_ALPACA_PREFERENCE:
    case TUNE_FORMAT_PREFERENCE_LISTS:
        return tune_pieces_pair(f, rows, row, p);
    default:
        return fill_conversation(f, rows, row, p);
    }
}

void tune_pieces_free(struct tune_pieces *p)
{
    free(p->text);
    free(p->data);
    free(p->at);
    tune_values_free(&p->values);
    tune_conversation_free(&p->chat);
    tune_chat_text_free(&p->rendered);
    memset(p, 0, sizeof *p);
}
