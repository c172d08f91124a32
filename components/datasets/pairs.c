/* pairs.c - rows of preferences: the text of one answer with its prompt, and its label. A row has a chosen and a rejected answer, or
 * a single one and a column that says which of the two it is. */
#include <string.h>

#include "core/try.h"
#include "datasets/format.h"

/* The names of the formats, in format.c's order. */
enum { CHOSEN, REJECTED, PROMPT };       /* all but those below */
enum { ANSWER, LABEL };                  /* of single answers; then PROMPT */
enum { BETTER = 2, WORSE, OUTPUT };      /* alpaca-preference */

/* ---- texts ---- */

size_t tune_pieces_beginning(struct tune_text a, struct tune_text b)
{
    size_t most = a.size < b.size ? a.size : b.size, n = 0;
    while (n < most && a.data[n] == b.data[n])
        n++;
    while (n > 0 && n < a.size && ((unsigned char)a.data[n] & 0xC0) == 0x80)
        n--;
    return n > 0 && a.data[n - 1] == ' ' ? n - 1 : n;
}

static int texts(const struct tune_format *f, const struct tune_rows *rows, const struct tune_file_row *row, struct tune_pieces *p)
{
    const struct tune_field *prompt = &p->values.at[PROMPT];
    struct tune_text answer;
    for (int i = 0; i < f->sequences; i++)
        TRY(tune_pieces_need_text(f, rows, row, p, i));
    answer = p->values.at[p->side].text;
    const struct tune_field *system = tune_pieces_system(f, p);
    if (system) {
        TRY(tune_pieces_need_text(f, rows, row, p, (int)(system - p->values.at)));
        TRY(tune_pieces_put(p, system->text.data, system->text.size, false, true));
        TRY(tune_pieces_put(p, "\n\n", 2, false, false));
    }
    if (prompt->type >= 0 || f->sequences == 1) {
        TRY(tune_pieces_need_text(f, rows, row, p, PROMPT));
        TRY(tune_pieces_put(p, prompt->text.data, prompt->text.size, false, true));
    } else {
        size_t n = tune_pieces_beginning(answer, p->values.at[1 - p->side].text);
        TRY(tune_pieces_put(p, answer.data, n, false, true));
        answer = (struct tune_text){answer.data + n, answer.size - n};
    }
    TRY(tune_pieces_put(p, answer.data, answer.size, true, true));
    p->answer = true;
    return 0;
}

/* ---- alpaca ---- */

/* The i-th of the two texts in the list `output`. */
static int output_of(const struct tune_format *f, const struct tune_rows *rows, const struct tune_file_row *row, struct tune_pieces *p,
                     struct tune_text *answer)
{
    struct tune_json *j = &p->values.json;
    const struct tune_field *v = &p->values.at[OUTPUT];
    static const char expected[] = "is no list of two texts in this row, the better one first";
    int more, count = 0;
    if (v->type != TUNE_JSON_ARRAY)
        return tune_pieces_bad_row(rows, row, f->columns[OUTPUT], expected);
    TRY(tune_conversation_begin(&p->chat, row->size)); /* its bytes hold the text */
    j->at = v->text.data;
    TRY(tune_json_array(j));
    while ((more = tune_json_item(j)) == 1 && count < 2) {
        struct tune_text text;
        if (tune_json_peek(j) != TUNE_JSON_STRING)
            return tune_pieces_bad_row(rows, row, f->columns[OUTPUT], expected);
        TRY(tune_json_string(j, &text));
        if (count++ == p->side)
            *answer = (struct tune_text){memcpy(p->chat.bytes, text.data, text.size), text.size};
    }
    TRY(more);
    return count == 2 && more == 0 ? 0 : tune_pieces_bad_row(rows, row, f->columns[OUTPUT], expected);
}

static int alpaca(const struct tune_format *f, const struct tune_rows *rows, const struct tune_file_row *row, struct tune_pieces *p)
{
    const struct tune_field *v = p->values.at;
    struct tune_text answer = v[BETTER + p->side].text;
    if (v[BETTER].type < 0 && v[WORSE].type < 0) {
        TRY(output_of(f, rows, row, p, &answer));
    } else {
        TRY(tune_pieces_need_text(f, rows, row, p, BETTER));
        TRY(tune_pieces_need_text(f, rows, row, p, WORSE));
    }
    return tune_pieces_alpaca(f, rows, row, p, &answer);
}

/* ---- conversations ---- */

static int read_messages(const struct tune_format *f, const struct tune_rows *rows, const struct tune_file_row *row,
                         struct tune_pieces *p, int column)
{
    const struct tune_field *v = &p->values.at[column];
    if (v->type != TUNE_JSON_ARRAY && v->type != TUNE_JSON_OBJECT)
        return tune_pieces_bad_row(rows, row, f->columns[column], v->type < 0 ? "is not in this row"
                                   : "is no message and no list of messages in this row");
    return tune_conversation_read(&p->chat, &p->values.json, v->text, f->kind == TUNE_FORMAT_SHAREGPT_PREFERENCE);
}

static bool same_message(const struct tune_chat_message *a, const struct tune_chat_message *b)
{
    const struct tune_text *x = a->json.data ? &a->json : &a->content, *y = b->json.data ? &b->json : &b->content;
    return !strcmp(a->role, b->role) && !a->json.data == !b->json.data && x->size == y->size && memcmp(x->data, y->data, x->size) == 0;
}

/* Two whole conversations: the messages that both begin with are the prompt. */
static int whole(const struct tune_format *f, const struct tune_rows *rows, const struct tune_file_row *row, struct tune_pieces *p)
{
    struct tune_conversation *c = &p->chat;
    TRY(read_messages(f, rows, row, p, 1 - p->side));
    int other = c->count, same = 0;
    TRY(read_messages(f, rows, row, p, p->side));
    while (same < other && other + same < c->count) {
        if (!same_message(&c->items[same], &c->items[other + same]))
            break;
        same++;
    }
    c->count -= other;
    memmove(c->items, c->items + other, (size_t)c->count * sizeof *c->items);
    memmove(c->untrained, c->untrained + other, (size_t)c->count * sizeof *c->untrained);
    c->prompt_count = same;
    if (same > 0)
        return 0;
    if (p->values.at[PROMPT].type == TUNE_JSON_STRING) { /* the user's message, then */
        TRY(tune_conversation_begin(c, row->size));
        TRY(tune_conversation_add(c, "user", p->values.at[PROMPT].text));
        c->prompt_count = 1;
        return read_messages(f, rows, row, p, p->side);
    }
    return tune_pieces_bad_row(rows, row, f->columns[CHOSEN], "and the rejected one begin with different messages in this row; "
                               "expected the same prompt in both, or a column prompt");
}

static int conversation(const struct tune_format *f, const struct tune_rows *rows, const struct tune_file_row *row,
                        struct tune_pieces *p)
{
    int prompt = p->values.at[PROMPT].type;
    TRY(tune_conversation_begin(&p->chat, row->size));
    if (f->kind == TUNE_FORMAT_SHAREGPT_PREFERENCE || prompt == TUNE_JSON_ARRAY || prompt == TUNE_JSON_OBJECT) {
        TRY(read_messages(f, rows, row, p, PROMPT));
        p->chat.prompt_count = p->chat.count;
        TRY(read_messages(f, rows, row, p, p->side));
    } else if (f->sequences == 1) {
        TRY(tune_pieces_need_text(f, rows, row, p, PROMPT));
        TRY(tune_conversation_add(&p->chat, "user", p->values.at[PROMPT].text));
        p->chat.prompt_count = p->chat.count;
        TRY(read_messages(f, rows, row, p, ANSWER));
    } else { /* a prompt that is a text repeats what both answers begin with, as in UltraFeedback */
        TRY(whole(f, rows, row, p));
    }
    bool answer = false;
    for (int i = p->chat.prompt_count; i < p->chat.count; i++)
        answer = answer || !strcmp(p->chat.items[i].role, "assistant");
    if (!answer)
        return tune_pieces_bad_row(rows, row, f->columns[p->side], "has no message of the assistant behind the prompt in this row");
    return tune_pieces_chat(f, rows, row, p);
}

/* Texts as a conversation: the prompt is the user's, the answers are the assistant's. */
static int turns(const struct tune_format *f, const struct tune_rows *rows, const struct tune_file_row *row, struct tune_pieces *p)
{
    TRY(tune_conversation_begin(&p->chat, row->size));
    TRY(tune_pieces_history(f, rows, row, p));
    TRY(tune_pieces_need_text(f, rows, row, p, PROMPT));
    TRY(tune_pieces_need_text(f, rows, row, p, p->side));
    TRY(tune_conversation_add(&p->chat, "user", p->values.at[PROMPT].text));
    p->chat.prompt_count = p->chat.count;
    TRY(tune_conversation_add(&p->chat, "assistant", p->values.at[p->side].text));
    return tune_pieces_chat(f, rows, row, p);
}

/* Read the column label: true or false, 1 or 0, 1.0 or 0.0, or a text that says so. */
static int read_label(const struct tune_format *f, const struct tune_rows *rows, const struct tune_file_row *row, struct tune_pieces *p)
{
    static const char *const words[] = {"true", "True", "TRUE", "false", "False", "FALSE"};
    const struct tune_field *v = &p->values.at[LABEL];
    for (int i = 0; v->type == TUNE_JSON_STRING && i < 6; i++)
        if (tune_text_equal(v->text, words[i])) {
            p->label = i < 3;
            return 0;
        }
    if (tune_field_number(v, &p->label) && (p->label == 0 || p->label == 1))
        return 0;
    return tune_pieces_bad_row(rows, row, f->columns[LABEL], v->type < 0 ? "is not in this row; expected true for an answer that people "
                               "want, else false" : "is neither true nor false in this row");
}

int tune_pieces_pair(const struct tune_format *f, const struct tune_rows *rows, const struct tune_file_row *row, struct tune_pieces *p)
{
    p->label = p->side == 0;
    if (f->sequences == 1)
        TRY(read_label(f, rows, row, p));
    if (f->kind == TUNE_FORMAT_PREFERENCE || f->kind == TUNE_FORMAT_UNPAIRED)
        return texts(f, rows, row, p);
    if (f->kind == TUNE_FORMAT_INSTRUCT_PREFERENCE || f->kind == TUNE_FORMAT_UNPAIRED_TURNS)
        return turns(f, rows, row, p);
    return f->kind == TUNE_FORMAT_ALPACA_PREFERENCE ? alpaca(f, rows, row, p) : conversation(f, rows, row, p);
}
