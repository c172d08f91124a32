/* pieces.c - make the text of a row, in pieces. */
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/try.h"
#include "datasets/format.h"

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
        p->at[p->count++] = (struct tune_text_piece){p->size, trained};
    return 0;
}

int tune_pieces_bad_row(const struct tune_rows *rows, const struct tune_file_row *row, const char *column, const char *what)
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
int tune_pieces_need_text(const struct tune_format *f, const struct tune_rows *rows, const struct tune_file_row *row,
                     const struct tune_pieces *p, int i)
{
    int type = p->values.at[i].type;
    if (type == TUNE_JSON_STRING || type == TUNE_JSON_NUMBER || type == TUNE_JSON_BOOL)
        return 0;
    return tune_pieces_bad_row(rows, row, f->columns[i], type < 0                  ? "is not in this row"
                                             : type == TUNE_JSON_NULL ? "is null in this row, expected text"
                                                                      : "is a list or an object in this row, expected text");
}

/* Fill a prompt template without the first `skip` bytes of its own text. */
static int fill_template(const struct tune_format *f, const struct tune_prompt_template *t, size_t skip, const struct tune_rows *rows,
                         const struct tune_file_row *row, struct tune_pieces *p, const struct tune_text *answer)
{
    for (int i = 0; i < t->count; i++) {
        const struct tune_prompt_part *part = &t->parts[i];
        bool trained = part->trained || f->train_on == TUNE_TRAIN_ON_ALL;
        int v = 0;
        if (f->prompts && part->trained)
            return 0;
        if (part->slot < 0) {
            TRY(tune_pieces_put(p, part->text + (i ? 0 : skip), part->size - (i ? 0 : skip), trained, false));
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

/* ---- system and history ---- */

static int column_named(const struct tune_format *f, const char *name)
{
    int i = f->count - 1;
    while (i >= 0 && strcmp(f->names[i], name))
        i--;
    return i;
}

const struct tune_field *tune_pieces_system(const struct tune_format *f, const struct tune_pieces *p)
{
    int i = column_named(f, "system");
    return i >= 0 && !f->left_out[i] && !tune_pieces_no_value(&p->values.at[i]) ? &p->values.at[i] : NULL;
}

/* Call put for each text of the list of [question, answer] in the column history: 0 for a question,
 * 1 for an answer. */
static int each_turn(const struct tune_format *f, const struct tune_rows *rows, const struct tune_file_row *row, struct tune_pieces *p,
                     int (*put)(const struct tune_format *f, struct tune_pieces *p, int answer, struct tune_text text))
{
    static const char expected[] = "is no list of [question, answer] in this row";
    struct tune_json *j = &p->values.json;
    struct tune_text text;
    int i = column_named(f, "history"), more, inner = 0, count;
    if (i < 0 || f->left_out[i] || p->values.at[i].type < 0 || p->values.at[i].type == TUNE_JSON_NULL)
        return 0;
    if (p->values.at[i].type != TUNE_JSON_ARRAY)
        return tune_pieces_bad_row(rows, row, f->columns[i], expected);
    j->at = p->values.at[i].text.data;
    TRY(tune_json_array(j));
    while ((more = tune_json_item(j)) == 1) {
        if (tune_json_peek(j) != TUNE_JSON_ARRAY)
            return tune_pieces_bad_row(rows, row, f->columns[i], expected);
        TRY(tune_json_array(j));
        for (count = 0; (inner = tune_json_item(j)) == 1; count++) {
            if (count == 2 || tune_json_peek(j) != TUNE_JSON_STRING)
                return tune_pieces_bad_row(rows, row, f->columns[i], expected);
            TRY(tune_json_string(j, &text));
            TRY(put(f, p, count, text));
        }
        TRY(inner);
        if (count != 2)
            return tune_pieces_bad_row(rows, row, f->columns[i], expected);
    }
    return more;
}

/* The words of Alpaca's prompts before and after the question. */
static const char heading[] = "### Instruction:\n", reply[] = "\n\n### Response:\n", gap[] = "\n\n";

static int put_turn(const struct tune_format *f, struct tune_pieces *p, int answer, struct tune_text text)
{
    bool all = f->train_on == TUNE_TRAIN_ON_ALL, trained = all || (answer && f->sequences == 0 && !f->prompts);
    if (!answer)
        TRY(tune_pieces_put(p, heading, strlen(heading), all, false));
    TRY(tune_pieces_put(p, text.data, text.size, trained, true));
    if (!answer)
        return tune_pieces_put(p, reply, strlen(reply), all, false);
    TRY(f->end ? tune_pieces_put(p, f->end, strlen(f->end), trained, false) : 0);
    return tune_pieces_put(p, gap, strlen(gap), all, false);
}

static int put_message(const struct tune_format *f, struct tune_pieces *p, int answer, struct tune_text text)
{
    (void)f;
    return tune_conversation_add_copy(&p->chat, answer ? "assistant" : "user", text);
}

/* Write Alpaca's prompt. As in LLaMA-Factory, a text of the column system takes the place of its first
 * sentences. The turns of the column history come before the question. */
int tune_pieces_alpaca(const struct tune_format *f, const struct tune_rows *rows, const struct tune_file_row *row, struct tune_pieces *p,
                       const struct tune_text *answer)
{
    int input = column_named(f, "input");
    const struct tune_prompt_template *t = &f->templates[f->left_out[input] || tune_pieces_no_value(&p->values.at[input])];
    const char *first = t->parts[0].text, *begin = memmem(first, t->parts[0].size, heading, strlen(heading));
    const struct tune_field *system = tune_pieces_system(f, p);
    size_t before = (size_t)(begin - first);
    bool all = f->train_on == TUNE_TRAIN_ON_ALL;
    if (system) {
        TRY(tune_pieces_need_text(f, rows, row, p, column_named(f, "system")));
        TRY(tune_pieces_put(p, system->text.data, system->text.size, all, true));
        TRY(tune_pieces_put(p, gap, strlen(gap), all, false));
    } else {
        TRY(tune_pieces_put(p, first, before, all, false));
    }
    TRY(each_turn(f, rows, row, p, put_turn));
    return fill_template(f, t, before, rows, row, p, answer);
}

int tune_pieces_history(const struct tune_format *f, const struct tune_rows *rows, const struct tune_file_row *row, struct tune_pieces *p)
{
    return each_turn(f, rows, row, p, put_message);
}

static int fill_pair(const struct tune_format *f, const struct tune_rows *rows, const struct tune_file_row *row, struct tune_pieces *p)
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
int tune_pieces_chat(const struct tune_format *f, const struct tune_rows *rows, const struct tune_file_row *row, struct tune_pieces *p)
{
    const struct tune_field *system = tune_pieces_system(f, p);
    int tools = column_named(f, "tools");
    bool all = f->train_on == TUNE_TRAIN_ON_ALL || f->prompts;
    int how = f->prompts ? TUNE_CHAT_GENERATION_PROMPT : all ? 0 : TUNE_CHAT_SPANS;
    size_t at = 0;
    if (system) {
        TRY(tune_pieces_need_text(f, rows, row, p, column_named(f, "system")));
        TRY(tune_conversation_lead(&p->chat, system->text));
    }
    TRY(tune_conversation_adapt(&p->chat, tune_chat_template_takes(f->chat)));
    TRY(f->prompts ? tune_conversation_open(&p->chat, rows->path, row->line)
                   : tune_conversation_check(&p->chat, rows->path, row->line));
    struct tune_chat_messages chat = {.items = p->chat.items, .count = p->chat.count, .name = rows->path, .line = row->line,
                                      .strict = f->strict};
    if (tools >= 0 && !tune_pieces_no_value(&p->values.at[tools])) {
        if (!is_list(&p->values.at[tools]))
            return tune_pieces_bad_row(rows, row, f->columns[tools], "is no list of tools in this row");
        chat.tools = p->values.at[tools].text;
    }
    TRY(tune_chat_template_render(f->chat, &chat, how, &p->rendered));
    const struct tune_chat_text *r = &p->rendered;
    if (r->calls_changed)
        p->chat.adapted |= 1u << TUNE_ADAPTED_CALLS;
    for (int i = 0; !all && i < r->span_count; i++) {
        if (f->sequences > 0 && !span_trained(f, p, i))
            continue;
        TRY(tune_pieces_put(p, r->text + at, r->spans[i].begin - at, false, false));
        TRY(tune_pieces_put(p, r->text + r->spans[i].begin, r->spans[i].end - r->spans[i].begin, span_trained(f, p, i), false));
        at = r->spans[i].end;
        if (f->sequences > 0)
            break; /* all that follows the prompt is the answer, as in TRL */
    }
    TRY(tune_pieces_put(p, r->text + at, r->size - at, (all || f->sequences > 0) && !f->prompts, false));
    if (r->size > 0)
        memcpy(p->data, r->data, r->size);
    p->whole = true;
    return 0;
}

static int fill_lists(const struct tune_format *f, const struct tune_rows *rows, const struct tune_file_row *row, struct tune_pieces *p)
{
    TRY(tune_conversation_begin(&p->chat, row->size));
    for (int i = 0; i < (f->prompts ? 1 : 2); i++) {
        if (p->values.at[i].type != TUNE_JSON_ARRAY)
            return tune_pieces_bad_row(rows, row, f->columns[i], "is no list of messages in this row, as prompts are in the first one");
        TRY(tune_conversation_read(&p->chat, &p->values.json, p->values.at[i].text, false));
        if (i == 0)
            p->chat.prompt_count = p->chat.count;
    }
    return tune_pieces_chat(f, rows, row, p);
}

/* As in LLaMA-Factory: the user says the instruction, and the input on the next line. */
static int fill_alpaca_chat(const struct tune_format *f, const struct tune_rows *rows, const struct tune_file_row *row,
                            struct tune_pieces *p)
{
    int input = column_named(f, "input");
    const struct tune_field *values = p->values.at;
    bool more = !f->left_out[input] && !tune_pieces_no_value(&values[input]);
    TRY(tune_pieces_history(f, rows, row, p));
    for (int i = 0; i < (f->prompts ? 1 : 2); i++)
        TRY(tune_pieces_need_text(f, rows, row, p, i));
    if (more)
        TRY(tune_pieces_need_text(f, rows, row, p, input));
    TRY(tune_conversation_add_lines(&p->chat, "user", values[0].text, more ? &values[input].text : NULL));
    if (!f->prompts)
        TRY(tune_conversation_add(&p->chat, "assistant", values[1].text));
    return tune_pieces_chat(f, rows, row, p);
}

static int fill_conversation(const struct tune_format *f, const struct tune_rows *rows, const struct tune_file_row *row,
                             struct tune_pieces *p)
{
    TRY(tune_conversation_begin(&p->chat, row->size));
    if (f->kind == TUNE_FORMAT_INSTRUCT) {
        TRY(tune_pieces_history(f, rows, row, p));
        for (int i = 0; i < (f->prompts ? 1 : 2); i++) {
            TRY(tune_pieces_need_text(f, rows, row, p, i));
            TRY(tune_conversation_add(&p->chat, i ? "assistant" : "user", p->values.at[i].text));
        }
        return tune_pieces_chat(f, rows, row, p);
    }
    if (f->kind == TUNE_FORMAT_ALPACA_CHAT)
        return fill_alpaca_chat(f, rows, row, p);
    int type = p->values.at[0].type;
    if (type != TUNE_JSON_ARRAY)
        return tune_pieces_bad_row(rows, row, f->columns[0], type < 0 ? "is not in this row" : "is no list of messages in this row");
    TRY(tune_conversation_read(&p->chat, &p->values.json, p->values.at[0].text, f->kind == TUNE_FORMAT_SHAREGPT));
    return tune_pieces_chat(f, rows, row, p);
}

/* Make a list of answers the first one of it; of an empty list, an empty text. */
static int take_first(const struct tune_format *f, const struct tune_rows *rows, const struct tune_file_row *row, struct tune_pieces *p)
{
    struct tune_json *j = &p->values.json;
    struct tune_text text = {"", 0};
    int i = f->count - 1, more;
    while (i >= 0 && strcmp(f->names[i], "output") && strcmp(f->names[i], "completion"))
        i--;
    if (i < 0 || p->values.at[i].type != TUNE_JSON_ARRAY)
        return 0;
    j->at = p->values.at[i].text.data;
    TRY(tune_json_array(j));
    TRY(more = tune_json_item(j));
    if (more && tune_json_peek(j) != TUNE_JSON_STRING)
        return tune_pieces_bad_row(rows, row, f->columns[i], "is a list of something else than texts in this row");
    if (more)
        TRY(tune_json_string(j, &text));
    TRY(tune_array_reserve(&p->first, &p->first_room, text.size + 1, 1, "a row's answer"));
    memcpy(p->first, text.data, text.size);
    p->values.at[i] = (struct tune_field){.type = TUNE_JSON_STRING, .text = {p->first, text.size}};
    return 0;
}

int tune_format_pieces(const struct tune_format *f, const struct tune_rows *rows, const struct tune_columns *columns,
                       const struct tune_file_row *row, struct tune_pieces *p)
{
    p->size = 0;
    p->count = 0;
    p->answer = p->whole = false;
    p->chat.strict = f->strict;
    p->chat.adapted = 0;
    TRY(tune_row_values_read(&p->values, rows, columns, row, f->columns, f->count));
    if (f->references && !f->prompts && f->sequences == 0 && f->kind != TUNE_FORMAT_MESSAGE_LISTS)
        TRY(take_first(f, rows, row, p));
    switch (f->kind) {
    case TUNE_FORMAT_ALPACA:
        return tune_pieces_alpaca(f, rows, row, p, NULL);
    case TUNE_FORMAT_TEMPLATE:
        return fill_template(f, &f->templates[0], 0, rows, row, p, NULL);
    case TUNE_FORMAT_PROMPT_COMPLETION:
        return fill_pair(f, rows, row, p);
    case TUNE_FORMAT_MESSAGE_LISTS:
        return fill_lists(f, rows, row, p);
    case TUNE_FORMAT_PREFERENCE:
    case TUNE_FORMAT_SHAREGPT_PREFERENCE:
    case TUNE_FORMAT_ALPACA_PREFERENCE:
    case TUNE_FORMAT_INSTRUCT_PREFERENCE:
    case TUNE_FORMAT_PREFERENCE_LISTS:
    case TUNE_FORMAT_UNPAIRED:
    case TUNE_FORMAT_UNPAIRED_TURNS:
    case TUNE_FORMAT_UNPAIRED_LISTS:
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
    free(p->first);
    tune_row_values_free(&p->values);
    tune_conversation_free(&p->chat);
    tune_chat_text_free(&p->rendered);
    memset(p, 0, sizeof *p);
}
