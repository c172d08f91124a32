/* chat_messages.c - messages as values for a template, and what of them it leaves out. */
#include <stdlib.h>
#include <string.h>

#include "templates/chat_parts.h"

const jval *tune_chat_member(jrun *run, const jval *message, const char *name)
{
    return tune_jinja_dict_find(run, message->dict, (struct tune_text){name, strlen(name)});
}

/* Reasoning has several names. Store it under all of them, so that each template finds it, as in
 * transformers. */
static int alias_reasoning(jrun *run, jval *message)
{
    static const char *const names[] = {"reasoning_content", "thinking", "reasoning"};
    const jval *reasoning = NULL;
    jval all;
    for (int i = 0; i < 3 && !reasoning; i++)
        reasoning = tune_chat_member(run, message, names[i]);
    if (!reasoning)
        return 0;
    TRY(tune_jinja_dict_new(run, &all));
    TRY(tune_jinja_dict_put(run, all.dict, tune_jinja_word("thinking"), *reasoning));
    for (size_t i = 0; i < message->dict->count; i++)
        TRY(tune_jinja_dict_put(run, all.dict, message->dict->keys[i], message->dict->values[i]));
    TRY(tune_jinja_dict_put(run, all.dict, tune_jinja_word("reasoning_content"), *reasoning));
    *message = all;
    return 0;
}

/* Make a role that is a plain word part of the template's text. '<|' + message.role + '|>' is then
 * the token <|user|>, as in transformers. Any other role stays data. */
static jval as_role(jval role)
{
    for (size_t i = 0; i < role.size; i++)
        if (!(role.text[i] >= 'a' && role.text[i] <= 'z') && !(role.text[i] >= 'A' && role.text[i] <= 'Z') && role.text[i] != '_')
            return role;
    role.mark = 0;
    return role;
}

uint8_t tune_chat_mark(int index)
{
    return (uint8_t)(TUNE_JINJA_DATA | (index % TUNE_CHAT_ORIGINS + 1) * TUNE_CHAT_ORIGIN);
}

/* Join the texts of content that is a list of parts. */
static int join_parts(jrun *run, jval *content)
{
    const struct tune_jinja_list *list = content->list;
    char *text = NULL;
    size_t size = 0;
    for (int pass = 0; pass < 2; pass++) {
        if (pass && !(text = tune_jinja_take(&run->memory, size + 1)))
            return -1;
        size = 0;
        for (size_t i = 0; i < list->count; i++) {
            const jval *part = list->items[i].type == JINJA_DICT ? tune_chat_member(run, &list->items[i], "text") : NULL;
            if (!part || part->type != JINJA_TEXT)
                return 0; /* not of texts alone: left to the template */
            if (pass && part->size > 0)
                memcpy(text + size, part->text, part->size);
            size += part->size;
        }
    }
    *content = (jval){.type = JINJA_TEXT, .mark = run->mark, .text = text, .size = size};
    return tune_jinja_step(run, size / 64);
}

/* The arguments of a call as an object or as JSON text, whichever the template writes well. Text that
 * is no object of JSON stays as it is. */
static int settle_call(jrun *run, const jval *call, enum tune_chat_calls calls, bool *changed)
{
    const jval *function = tune_chat_member(run, call, "function");
    if (function && function->type == JINJA_DICT)
        call = function;
    const jval *arguments = tune_chat_member(run, call, "arguments");
    jval other = {.type = JINJA_NONE};
    if (arguments && arguments->type == JINJA_TEXT && calls == TUNE_CALLS_AS_OBJECTS) {
        struct tune_json j;
        tune_json_start(&j, "arguments", arguments->text, arguments->size, 1);
        int read = tune_json_peek(&j) == TUNE_JSON_OBJECT ? tune_jinja_read_json(run, &j, 4, &other) : -1;
        read = read < 0 ? -1 : tune_json_end(&j);
        tune_json_free(&j);
        if (read < 0 && tune_error_kind() == TUNE_ERROR_CANNOT)
            return -1;
        if (read < 0) {
            tune_error_clear();
            return 0;
        }
    } else if (arguments && arguments->type == JINJA_DICT && calls == TUNE_CALLS_AS_TEXT) {
        TRY(tune_jinja_to_json(run, NULL, arguments, &(struct tune_jinja_args){0}, &other));
    }
    if (other.type == JINJA_NONE)
        return 0;
    *changed = true;
    return tune_jinja_dict_put(run, call->dict, tune_jinja_word("arguments"), other);
}

static int settle_arguments(jrun *run, const jval *message, enum tune_chat_calls calls, bool *changed)
{
    const jval *list = tune_chat_member(run, message, "tool_calls");
    for (size_t i = 0; list && list->type == JINJA_LIST && i < list->list->count; i++)
        if (list->list->items[i].type == JINJA_DICT)
            TRY(settle_call(run, &list->list->items[i], calls, changed));
    return 0;
}

int tune_chat_read_message(jrun *run, bool joins, enum tune_chat_calls calls,
                           const struct tune_chat_messages *messages, int index, jval *v, bool *changed)
{
    const struct tune_chat_message *m = &messages->items[index];
    jval all, role, content;
    TRY(tune_jinja_dict_new(run, v));
    run->mark = tune_chat_mark(index);
    if (!m->json.data) {
        size_t bad;
        if (!tune_utf8_valid(m->content.data, m->content.size, &bad))
            return tune_error_set("message %d is not UTF-8 at byte %zu", index + 1, bad);
        TRY(tune_jinja_copy_text(run, m->role, strlen(m->role), run->mark, &role));
        TRY(tune_jinja_copy_text(run, m->content.data, m->content.size, run->mark, &content));
        TRY(tune_jinja_dict_put(run, v->dict, tune_jinja_word("role"), as_role(role)));
        return tune_jinja_dict_put(run, v->dict, tune_jinja_word("content"), content);
    }
    struct tune_json j;
    tune_json_start(&j, messages->name ? messages->name : "message", m->json.data, m->json.size, messages->line);
    int failed = tune_jinja_read_json(run, &j, 2, &all) < 0 || tune_json_end(&j) < 0;
    tune_json_free(&j);
    if (failed)
        return -1;
    const jval *found = all.type == JINJA_DICT ? tune_chat_member(run, &all, "role") : NULL;
    if (!found || found->type != JINJA_TEXT)
        return tune_error_set("message %d is no object with a role", index + 1);
    role = *found;
    if (m->role)
        TRY(tune_jinja_copy_text(run, m->role, strlen(m->role), run->mark, &role));
    TRY(tune_jinja_dict_put(run, all.dict, tune_jinja_word("role"), as_role(role)));
    found = joins ? tune_chat_member(run, &all, "content") : NULL;
    if (found && found->type == JINJA_LIST) {
        content = *found;
        TRY(join_parts(run, &content));
        TRY(tune_jinja_dict_put(run, all.dict, tune_jinja_word("content"), content));
    }
    TRY(calls == TUNE_CALLS_AS_THEY_ARE ? 0 : settle_arguments(run, &all, calls, changed));
    for (size_t i = 0; i < all.dict->count; i++)
        if (all.dict->values[i].type != JINJA_NONE)
            TRY(tune_jinja_dict_put(run, v->dict, all.dict->keys[i], all.dict->values[i]));
    return alias_reasoning(run, v);
}

/* ---- what the template leaves out ---- */

/* Copy text without white space; all of it, or only what has the mark. Returns the bytes. */
static size_t squeeze(const char *text, const uint8_t *marks, uint8_t mark, size_t size, char *to)
{
    size_t n = 0;
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] > ' ' && (!marks || (marks[i] & ~TUNE_JINJA_PIECE) == mark))
            to[n++] = text[i];
    return n;
}

/* Bytes of the longest beginning or end of a that b has in it. */
static size_t found_part(const char *a, size_t size, const char *b, size_t room)
{
    size_t best = 0;
    for (int end = 0; end < 2; end++)
        for (size_t low = 0, high = size; low < high;) {
            size_t n = (low + high + 1) / 2;
            if (memmem(b, room, end ? a + size - n : a, n))
                best = (low = n) > best ? n : best;
            else
                high = n - 1;
        }
    return best;
}

/* A text in the turn: whole, in part or not at all. */
static int count_text(const jval *text, uint8_t mark, const char *turn, const uint8_t *marks, size_t size, size_t *said, size_t *left_out)
{
    if (!text || text->type != JINJA_TEXT || text->size == 0)
        return 0;
    char *own = malloc(text->size + size + 1), *other = own + text->size;
    if (!own)
        return tune_chat_no_memory();
    size_t n = squeeze(text->text, NULL, 0, text->size, own), have = squeeze(turn, NULL, 0, size, other), part = n;
    if (n > 0 && !memmem(other, have, own, n)) {
        have = squeeze(turn, marks, mark, size, other);
        part = found_part(own, n, other, have);
    }
    *said += n;
    *left_out += n - part;
    free(own);
    return 0;
}

/* Each text is looked for in the whole turn, so only the first parts and calls of a message count. */
enum { MOST_PARTS = 64 };

int tune_chat_left_out(jrun *run, const jval *message, uint8_t mark, const struct tune_jinja_turn *turn,
                       const struct tune_jinja_output *out, size_t *said, size_t *left_out)
{
    size_t begin = turn->times == 1 ? turn->begin : 0, size = turn->times == 1 ? turn->end - turn->begin : out->size;
    const char *text = size > 0 ? out->text + begin : NULL; /* no bytes are allocated for an empty output */
    const uint8_t *marks = size > 0 ? out->marks + begin : NULL;
    const jval *content = tune_chat_member(run, message, "content"), *calls = tune_chat_member(run, message, "tool_calls");
    TRY(count_text(tune_chat_member(run, message, "reasoning_content"), mark, text, marks, size, said, left_out));
    TRY(count_text(content, mark, text, marks, size, said, left_out));
    for (size_t i = 0; content && content->type == JINJA_LIST && i < content->list->count && i < MOST_PARTS; i++)
        if (content->list->items[i].type == JINJA_DICT)
            TRY(count_text(tune_chat_member(run, &content->list->items[i], "text"), mark, text, marks, size, said, left_out));
    for (size_t i = 0; calls && calls->type == JINJA_LIST && i < calls->list->count && i < MOST_PARTS; i++) {
        const jval *call = &calls->list->items[i];
        const jval *function = call->type == JINJA_DICT ? tune_chat_member(run, call, "function") : NULL;
        call = function && function->type == JINJA_DICT ? function : call;
        if (call->type == JINJA_DICT)
            TRY(count_text(tune_chat_member(run, call, "name"), mark, text, marks, size, said, left_out));
    }
    return 0;
}
