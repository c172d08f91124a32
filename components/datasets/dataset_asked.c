/* dataset_asked.c - what a row of prompts asks, as text, and the answer that it expects. */
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/try.h"
#include "datasets/dataset_state.h"

/* A text that grows. */
struct grown {
    char *text;
    size_t size, room;
};

static int append(struct grown *g, struct tune_text text)
{
    TRY(tune_array_reserve(&g->text, &g->room, g->size + text.size + 1, 1, "the text of a row"));
    if (text.size > 0)
        memcpy(g->text + g->size, text.data, text.size);
    g->text[g->size += text.size] = 0;
    return 0;
}

/* Append the texts of content: a string, or a list of parts. Both were checked before. */
static int append_content(struct tune_json *j, struct grown *g)
{
    struct tune_text key, text;
    int more, inner = 0;
    if (tune_json_peek(j) == TUNE_JSON_STRING) {
        TRY(tune_json_string(j, &text));
        return append(g, text);
    }
    if (tune_json_peek(j) != TUNE_JSON_ARRAY)
        return tune_json_skip(j);
    TRY(tune_json_array(j));
    while ((more = tune_json_item(j)) == 1) {
        TRY(tune_json_object(j));
        while ((inner = tune_json_key(j, &key)) == 1) {
            if (!tune_text_equal(key, "text")) {
                TRY(tune_json_skip(j));
                continue;
            }
            TRY(tune_json_string(j, &text));
            TRY(append(g, text));
        }
        TRY(inner);
    }
    return more;
}

/* Append what a message says. */
static int append_message(const struct tune_chat_message *m, struct grown *g)
{
    struct tune_text key;
    struct tune_json j;
    int more = 0, status = 0;
    if (!m->json.data)
        return append(g, m->content);
    tune_json_start(&j, "a message", m->json.data, m->json.size, 1);
    status = tune_json_object(&j);
    while (status == 0 && (more = tune_json_key(&j, &key)) == 1)
        status = tune_text_equal(key, "content") ? append_content(&j, g) : tune_json_skip(&j);
    tune_json_free(&j);
    return more < 0 ? -1 : status;
}

/* Append the completion that a prompt template makes of the row. 1; 0: a column of it is missing. */
static int append_template(const struct tune_format *f, const struct tune_pieces *p, struct grown *g)
{
    const struct tune_prompt_template *t = &f->templates[0];
    int i = 0;
    while (i < t->count && !t->parts[i].trained)
        i++;
    for (; i < t->count && t->parts[i].trained; i++) {
        struct tune_text text = {t->parts[i].text, t->parts[i].size};
        int v = 0;
        while (t->parts[i].slot >= 0 && strcmp(f->names[v], t->parts[i].text))
            v++;
        if (t->parts[i].slot >= 0 && tune_pieces_no_value(&p->values.at[v])) {
            g->size = 0;
            return 0;
        }
        TRY(append(g, t->parts[i].slot >= 0 ? p->values.at[v].text : text));
    }
    return 1;
}

/* Append the last message of a list of messages. 1; 0: it is not the assistant's. */
static int append_list(struct tune_pieces *p, const struct tune_field *v, struct grown *g)
{
    struct tune_conversation *c = &p->chat;
    int before = c->count;
    if (v->type != TUNE_JSON_ARRAY)
        return 0;
    TRY(tune_conversation_read(c, &p->values.json, v->text, false));
    const struct tune_chat_message *last = &c->items[c->count - 1];
    if (c->count == before || strcmp(last->role, "assistant"))
        return 0;
    TRY(append_message(last, g));
    return 1;
}

static int add_reference(struct tune_asked *asked, struct tune_text text)
{
    struct grown g = {0};
    struct tune_text *more = realloc(asked->more, (size_t)(asked->more_count + 1) * sizeof *more);
    if (!more)
        return tune_error_no_memory("the answers of a row");
    asked->more = more;
    TRY(append(&g, text));
    more[asked->more_count++] = (struct tune_text){g.text, g.size};
    return 0;
}

/* Append the first text of a list of answers, and keep the others. An empty list is an empty answer. */
static int append_answers(struct tune_json *j, const char *at, struct grown *g, struct tune_asked *asked)
{
    int more, count = 0;
    j->at = at;
    TRY(tune_json_array(j));
    while ((more = tune_json_item(j)) == 1) {
        struct tune_text text;
        if (tune_json_peek(j) != TUNE_JSON_STRING)
            return 0;
        TRY(tune_json_string(j, &text));
        TRY(count++ == 0 ? append(g, text) : add_reference(asked, text));
    }
    return more < 0 ? -1 : 1;
}

/* Append the answer that the row has, beside its prompt in p. 1; 0: it has none. */
static int append_expected(const struct tune_format *f, struct tune_pieces *p, struct grown *g, struct tune_asked *asked)
{
    int i = f->count - 1;
    const struct tune_field *v;
    switch (f->kind) {
    case TUNE_FORMAT_TEMPLATE:
        return append_template(f, p, g);
    case TUNE_FORMAT_MESSAGES:
    case TUNE_FORMAT_SHAREGPT:
        if (!p->chat.answered)
            return 0;
        TRY(append_message(&p->chat.items[p->chat.count], g));
        return 1;
    case TUNE_FORMAT_MESSAGE_LISTS:
        return append_list(p, &p->values.at[1], g);
    default:
        while (i >= 0 && strcmp(f->names[i], "output") && strcmp(f->names[i], "completion"))
            i--;
        if (i < 0 || f->sequences > 0)
            return 0;
        v = &p->values.at[i];
        if (f->references && v->type == TUNE_JSON_ARRAY)
            return append_answers(&p->values.json, v->text.data, g, asked);
        if (v->type < 0 || v->type == TUNE_JSON_NULL || v->type == TUNE_JSON_ARRAY || v->type == TUNE_JSON_OBJECT)
            return 0;
        TRY(append(g, v->text));
        return 1;
    }
}

/* The prompt and both answers of a pair. */
static int ask_pair(const struct tune_dataset *d, int64_t row, struct tune_pieces *p, struct tune_asked *asked)
{
    struct grown prompt = {0}, answer[2] = {{0}};
    int status = 0;
    for (p->side = 0; p->side < 2 && status == 0; p->side++) {
        status = tune_dataset_pieces(d, row, p);
        size_t begin = p->count > 0 && !p->at[0].trained ? p->at[0].end : 0;
        if (status == 0 && p->side == 0)
            status = append(&prompt, (struct tune_text){p->text, begin});
        if (status == 0)
            status = append(&answer[p->side], (struct tune_text){p->text + begin, p->size - begin});
    }
    asked->prompt = (struct tune_text){prompt.text, prompt.size};
    asked->expected = (struct tune_text){answer[0].text, answer[0].size};
    asked->rejected = (struct tune_text){answer[1].text, answer[1].size};
    if (status < 0)
        tune_asked_free(asked);
    return status;
}

/* The same for a row that is one text; what follows the response template is the answer. */
static int ask_plain(const struct tune_dataset *d, int64_t row, struct grown *prompt, struct grown *expected)
{
    struct tune_text_row s = {0};
    struct tune_text text;
    struct tune_file_row at = tune_rows_get(&d->rows, row);
    int status = tune_text_rows_get(&d->text, &at, &s, &text);
    const char *found = status == 0 && d->response ? memmem(text.data, text.size, d->response, d->response_size) : NULL;
    size_t size = found ? (size_t)(found - text.data) + d->response_size : text.size;
    bool whole = !d->format.prompts && !d->response; /* the text is not asked: it is all there is */
    if (status == 0)
        status = append(whole ? expected : prompt, (struct tune_text){text.data, size});
    if (status == 0 && found)
        status = append(expected, (struct tune_text){text.data + size, text.size - size});
    tune_text_row_free(&s);
    return status;
}

int tune_dataset_asked(const struct tune_dataset *d, int64_t row, struct tune_asked *asked)
{
    struct grown prompt = {0}, expected = {0};
    struct tune_pieces p = {0};
    *asked = (struct tune_asked){0};
    if (row < 0 || row >= d->count)
        return tune_error_set("row %lld of a set of %lld rows", (long long)row, (long long)d->count);
    if (d->sets) {
        const struct tune_dataset *one = d->sets[tune_dataset_set_of(d, row, &row)];
        return tune_dataset_asked(one, row, asked);
    }
    if (d->get || d->chunks.count > 0)
        return 0;
    TRY(tune_rows_uncut(&d->rows));
    int status = 0, has = 0;
    if (d->format.sequences == 2 && !d->parted) {
        status = ask_pair(d, row, &p, asked);
        tune_pieces_free(&p);
        return status;
    }
    status = d->formatted ? tune_dataset_pieces(d, row, &p) : ask_plain(d, row, &prompt, &expected);
    has = expected.text != NULL;
    if (status == 0 && d->formatted)
        status = append(&prompt, (struct tune_text){p.text, p.size});
    if (status == 0 && d->formatted)
        status = has = append_expected(&d->format, &p, &expected, asked);
    tune_pieces_free(&p);
    asked->prompt = (struct tune_text){prompt.text, prompt.size};
    asked->expected = (struct tune_text){expected.text, expected.size};
    if (status < 0) {
        tune_asked_free(asked);
        return -1;
    }
    if (has == 0 || (expected.size == 0 && !d->format.references)) {
        free(expected.text);
        asked->expected = (struct tune_text){0};
    } else if (expected.size == 0 && !expected.text && append(&expected, (struct tune_text){"", 0}) == 0) {
        asked->expected.data = expected.text; /* of an empty list */
    }
    return 0;
}

void tune_asked_free(struct tune_asked *asked)
{
    free((char *)asked->prompt.data);
    free((char *)asked->expected.data);
    free((char *)asked->rejected.data);
    for (int i = 0; i < asked->more_count; i++)
        free((char *)asked->more[i].data);
    free(asked->more);
    *asked = (struct tune_asked){0};
}
