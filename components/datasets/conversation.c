/* conversation.c - read the messages of a row and check their rules. */
#include "datasets/conversation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/print.h"
#include "core/try.h"

static void forget_made(struct tune_conversation *c)
{
    for (int i = 0; i < c->made_count; i++)
        free(c->made[i]);
    c->made_count = 0;
}

int tune_conversation_begin(struct tune_conversation *c, size_t row_size)
{
    forget_made(c);
    c->count = c->prompt_count = 0;
    c->answered = false;
    c->adapted = 0;
    c->used = 0;
    if (row_size + 1 <= c->bytes_room)
        return 0;
    /* large enough: a decoded string with its NUL is no longer than the quoted string */
    free(c->bytes);
    c->bytes = tune_zeroed(row_size + 1, 1, "a conversation");
    c->bytes_room = c->bytes ? row_size + 1 : 0;
    return c->bytes ? 0 : -1;
}

static int add(struct tune_conversation *c, struct tune_chat_message message, bool untrained)
{
    if (!tune_array_fit(&c->items, (size_t)c->count, sizeof *c->items) ||
        !tune_array_fit(&c->untrained, (size_t)c->count, sizeof *c->untrained))
        return tune_error_no_memory("a conversation");
    c->untrained[c->count] = untrained;
    c->items[c->count++] = message;
    return 0;
}

int tune_conversation_add(struct tune_conversation *c, const char *role, struct tune_text text)
{
    return add(c, (struct tune_chat_message){.role = role, .content = text}, false);
}

/* Copy a text into the conversation. It has room for all texts of its row once. A column that is
 * mapped twice is copied twice, so there may be more. -1 with an error: no memory. */
static int keep(struct tune_conversation *c, struct tune_text text, struct tune_text *kept)
{
    char *to = c->bytes + c->used;
    if (text.size + 1 > c->bytes_room - c->used) {
        if (!tune_array_fit(&c->made, (size_t)c->made_count, sizeof *c->made) || !(to = malloc(text.size + 1)))
            return tune_error_no_memory("a conversation");
        c->made[c->made_count++] = to;
    } else {
        c->used += text.size + 1;
    }
    memcpy(to, text.data, text.size);
    to[text.size] = 0;
    *kept = (struct tune_text){to, text.size};
    return 0;
}

int tune_conversation_add_copy(struct tune_conversation *c, const char *role, struct tune_text text)
{
    struct tune_text kept;
    TRY(keep(c, text, &kept));
    return tune_conversation_add(c, role, kept);
}

int tune_conversation_add_lines(struct tune_conversation *c, const char *role, struct tune_text first, const struct tune_text *second)
{
    if (!second)
        return tune_conversation_add(c, role, first);
    char *joined = tune_zeroed(first.size + 1 + second->size + 1, 1, "a conversation");
    if (!joined)
        return -1;
    memcpy(joined, first.data, first.size);
    joined[first.size] = '\n';
    memcpy(joined + first.size + 1, second->data, second->size);
    int result = tune_conversation_add_copy(c, role, (struct tune_text){joined, first.size + 1 + second->size});
    free(joined);
    return result;
}

int tune_conversation_lead(struct tune_conversation *c, struct tune_text text)
{
    if (c->count > 0 && (!strcmp(c->items[0].role, "system") || !strcmp(c->items[0].role, "developer")))
        return 0;
    TRY(tune_conversation_add(c, "system", text));
    struct tune_chat_message system = c->items[c->count - 1];
    memmove(c->items + 1, c->items, (size_t)(c->count - 1) * sizeof *c->items);
    memmove(c->untrained + 1, c->untrained, (size_t)(c->count - 1) * sizeof *c->untrained);
    c->items[0] = system;
    c->untrained[0] = false;
    c->prompt_count++;
    return 0;
}

/* ---- one message ---- */

enum { IN_MESSAGES = 1, IN_SHAREGPT = 2, BY_ANY_NAME = 4 };

/* Translate the name of a role or sender to a role. *call, unless NULL: the sender is function_call. */
static int read_role(struct tune_conversation *c, struct tune_json *j, bool sharegpt, const char **role, bool *call)
{
    static const struct {
        const char *name, *role;
        int where;
    } known[] = {
        {"system", "system", IN_MESSAGES | IN_SHAREGPT}, {"user", "user", IN_MESSAGES | IN_SHAREGPT},
        {"assistant", "assistant", IN_MESSAGES | IN_SHAREGPT}, {"tool", "tool", IN_MESSAGES | IN_SHAREGPT},
        {"ipython", "ipython", IN_MESSAGES}, {"human", "user", IN_SHAREGPT}, {"gpt", "assistant", IN_SHAREGPT},
        {"observation", "tool", IN_SHAREGPT}, {"function_call", "assistant", IN_SHAREGPT}, {"developer", "developer", BY_ANY_NAME},
        {"model", "assistant", BY_ANY_NAME}, {"bot", "assistant", BY_ANY_NAME}, {"chatbot", "assistant", BY_ANY_NAME},
        {"chatgpt", "assistant", BY_ANY_NAME}, {"ai", "assistant", BY_ANY_NAME},
    };
    struct tune_text text;
    const char *begin = j->at;
    TRY(tune_json_string(j, &text));
    if (call)
        *call = tune_text_equal(text, "function_call");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        bool here = known[i].where & (sharegpt ? IN_SHAREGPT : IN_MESSAGES), calls = !strcmp(known[i].name, "function_call");
        if (!tune_text_equal(text, known[i].name) || (!here && (c->strict || (calls && !call))))
            continue;
        *role = known[i].role;
        if (!here && strcmp(known[i].name, "developer"))
            c->adapted |= 1u << TUNE_ADAPTED_KEYS;
        return 0;
    }
    char name[64];
    snprintf(name, sizeof name, "%.60s", text.data);
    tune_blank_controls(name);
    j->at = begin;
    return tune_json_fail(j, sharegpt ? "the sender \"%s\", expected system, human (user), gpt (assistant), function_call or observation (tool)"
                                      : "the role \"%s\", expected system, user, assistant, tool or ipython", name);
}

static int read_part(struct tune_json *j)
{
    struct tune_text key, value;
    bool text = false;
    int more;
    TRY(tune_json_object(j));
    while ((more = tune_json_key(j, &key)) == 1) {
        if (tune_text_equal(key, "type")) {
            TRY(tune_json_string(j, &value));
            if (!tune_text_equal(value, "text"))
                return tune_json_fail(j, "a part of content that is no text, expected {\"type\": \"text\", \"text\": ...}");
        } else if (tune_text_equal(key, "text")) {
            TRY(tune_json_string(j, &value));
            text = true;
        } else {
            TRY(tune_json_skip(j));
        }
    }
    TRY(more);
    return text ? 0 : tune_json_fail(j, "a part of content without \"text\"");
}

/* Check content: a string, text parts, or null. 1: there is text. */
static int check_content(struct tune_json *j)
{
    struct tune_text ignored;
    int more;
    switch (tune_json_peek(j)) {
    case TUNE_JSON_STRING:
        TRY(tune_json_string(j, &ignored));
        return 1;
    case TUNE_JSON_NULL:
        return tune_json_null(j);
    case TUNE_JSON_ARRAY:
        TRY(tune_json_array(j));
        while ((more = tune_json_item(j)) == 1)
            TRY(read_part(j));
        return more < 0 ? -1 : 1;
    case TUNE_JSON_ERROR:
        return -1;
    default:
        return tune_json_fail(j, "content that is neither a string nor a list of parts");
    }
}

/* Step over a function call: an object with "name". */
static int check_call(struct tune_json *j)
{
    struct tune_text key;
    bool named = false;
    int more;
    TRY(tune_json_object(j));
    while ((more = tune_json_key(j, &key)) == 1) {
        if (tune_text_equal(key, "function") && tune_json_peek(j) == TUNE_JSON_OBJECT) { /* OpenAI's wrapping */
            TRY(check_call(j));
            named = true;
            continue;
        }
        named = named || (tune_text_equal(key, "name") && tune_json_peek(j) == TUNE_JSON_STRING);
        TRY(tune_json_skip(j));
    }
    TRY(more);
    return named ? 0 : tune_json_fail(j, "a function call without \"name\"");
}

/* Check tool_calls: a list of calls, or null. 1: there are some. A template would go through the
 * letters of a string. */
static int check_calls(struct tune_json *j)
{
    int more, count = 0, type = tune_json_peek(j);
    TRY(type);
    if (type == TUNE_JSON_NULL)
        return tune_json_null(j);
    if (type != TUNE_JSON_ARRAY)
        return tune_json_fail(j, "\"tool_calls\" that is no list");
    TRY(tune_json_array(j));
    for (; (more = tune_json_item(j)) == 1; count++)
        TRY(check_call(j));
    return more < 0 ? -1 : count > 0;
}

static int read_message(struct tune_conversation *c, struct tune_json *j)
{
    struct tune_chat_message message = {.role = NULL};
    struct tune_text key;
    bool content = false;
    int calls = 0;
    double weight = 1;
    int more, has = 0;
    TRY(tune_json_peek(j));
    const char *begin = j->at;
    TRY(tune_json_object(j));
    while ((more = tune_json_key(j, &key)) == 1) {
        bool role = tune_text_equal(key, "role"), said = tune_text_equal(key, "content");
        if ((role && message.role) || (said && content))
            return tune_json_fail(j, "\"%s\" stands here a second time", role ? "role" : "content");
        if (role) {
            TRY(read_role(c, j, false, &message.role, NULL));
        } else if (tune_text_equal(key, "tool_calls")) {
            TRY(calls = check_calls(j));
        } else if (tune_text_equal(key, "function_call") && tune_json_peek(j) != TUNE_JSON_NULL) {
            return tune_json_fail(j, "\"function_call\", which templates do not know; expected a list \"tool_calls\"");
        } else if (tune_text_equal(key, "weight") && tune_json_peek(j) == TUNE_JSON_NUMBER) {
            TRY(tune_json_double(j, &weight));
        } else if (said) {
            content = true;
            TRY(has = check_content(j));
        } else {
            TRY(tune_json_skip(j));
        }
    }
    TRY(more);
    if (!message.role)
        return tune_json_fail(j, "a message without \"role\"");
    if (!has && !(calls && !strcmp(message.role, "assistant")))
        return tune_json_fail(j, "a message without \"content\"");
    message.json = (struct tune_text){begin, (size_t)(j->at - begin)};
    return add(c, message, weight == 0);
}

/* Write one call, or the calls of an array, as tool_calls. */
static int write_calls(struct tune_json *j, FILE *to)
{
    bool list = tune_json_peek(j) == TUNE_JSON_ARRAY;
    int more = 1;
    for (int n = 0; more == 1; n++) {
        if (list && n == 0)
            TRY(tune_json_array(j));
        if (list)
            TRY(more = tune_json_item(j));
        if (more != 1)
            break;
        TRY(tune_json_peek(j));
        const char *begin = j->at;
        TRY(check_call(j));
        fprintf(to, "%s{\"type\": \"function\", \"function\": %.*s}", n ? ", " : "", (int)(j->at - begin), begin);
        more = list;
    }
    return tune_json_end(j);
}

/* Turn a function call's value, which is JSON, into an assistant's message with tool_calls. j: the
 * row, for the place in messages. */
static int add_call(struct tune_conversation *c, struct tune_json *j, struct tune_text value)
{
    struct tune_json calls;
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return tune_error_no_memory("a function call");
    tune_json_start(&calls, j->name, value.data, value.size, tune_json_line(j));
    fputs("{\"role\": \"assistant\", \"tool_calls\": [", to);
    int status = write_calls(&calls, to);
    tune_json_free(&calls);
    fputs("]}", to);
    if (fclose(to) != 0 || !tune_array_fit(&c->made, (size_t)c->made_count, sizeof *c->made)) {
        free(text);
        return tune_error_no_memory("a function call");
    }
    c->made[c->made_count++] = text;
    if (status < 0)
        return tune_error_prefix("the value of a function_call is JSON: ");
    return add(c, (struct tune_chat_message){.role = "assistant", .json = {text, size}}, false);
}

/* The keys of a message of ShareGPT. */
struct keys {
    const char *from, *value;
};

static int read_turn(struct tune_conversation *c, struct tune_json *j, const struct keys *keys)
{
    struct tune_chat_message message = {.role = NULL};
    struct tune_text key, value;
    bool call = false;
    int more;
    TRY(tune_json_object(j));
    while ((more = tune_json_key(j, &key)) == 1) {
        bool from = tune_text_equal(key, keys->from), said = tune_text_equal(key, keys->value);
        if ((from && message.role) || (said && message.content.data))
            return tune_json_fail(j, "\"%s\" stands here a second time", from ? keys->from : keys->value);
        if (from) {
            TRY(tune_json_peek(j));
            TRY(read_role(c, j, true, &message.role, &call));
        } else if (said) {
            TRY(tune_json_string(j, &value));
            TRY(keep(c, value, &message.content));
        } else {
            TRY(tune_json_skip(j));
        }
    }
    TRY(more);
    if (!message.role || !message.content.data)
        return tune_json_fail(j, "a message without \"%s\"", message.role ? keys->value : keys->from);
    return call ? add_call(c, j, message.content) : add(c, message, false);
}

/* Read a message of either form. sharegpt: the form that is expected. */
static int read_any(struct tune_conversation *c, struct tune_json *j, bool sharegpt)
{
    static const char *const names[] = {"from", "value", "role", "content"};
    bool has[4] = {false};
    struct keys keys = {"from", "value"};
    struct tune_text key;
    int more;
    if (c->strict)
        return sharegpt ? read_turn(c, j, &keys) : read_message(c, j);
    TRY(tune_json_peek(j));
    const char *begin = j->at;
    TRY(tune_json_object(j));
    while ((more = tune_json_key(j, &key)) == 1) {
        for (int i = 0; i < 4; i++)
            has[i] = has[i] || tune_text_equal(key, names[i]);
        TRY(tune_json_skip(j));
    }
    TRY(more);
    j->at = begin;
    bool turn = sharegpt ? has[0] || has[1] || !has[2] : (has[0] || has[1]) && !(has[2] && has[3]);
    if (turn && !has[0] && has[2])
        keys.from = "role";
    if (turn && !has[1] && has[3])
        keys.value = "content";
    if (turn != sharegpt || (turn && (*keys.from == 'r' || *keys.value == 'c')))
        c->adapted |= 1u << TUNE_ADAPTED_KEYS;
    return turn ? read_turn(c, j, &keys) : read_message(c, j);
}

int tune_conversation_read(struct tune_conversation *c, struct tune_json *j, struct tune_text array, bool sharegpt)
{
    int more;
    j->at = array.data;
    if (tune_json_peek(j) == TUNE_JSON_OBJECT)
        return read_any(c, j, sharegpt);
    TRY(tune_json_array(j));
    while ((more = tune_json_item(j)) == 1)
        TRY(read_any(c, j, sharegpt));
    return more;
}

/* ---- the rules ---- */

static bool has_role(const struct tune_conversation *c, int i, const char *role)
{
    return i >= 0 && i < c->count && !strcmp(c->items[i].role, role);
}

/* The first message that breaks a rule of the order, from 1, and the rule. 0: none does. */
static int find_broken(const struct tune_conversation *c, const char **rule)
{
    for (int i = 0; i < c->count; i++) {
        *rule = NULL;
        if (i > 0 && has_role(c, i, "system"))
            *rule = "a system message stands only at the begin";
        else if (has_role(c, i, "user") && has_role(c, i - 1, "user"))
            *rule = "two user messages in a row";
        else if (has_role(c, i, "assistant") && !has_role(c, i - 1, "user") && !has_role(c, i - 1, "tool") && !has_role(c, i - 1, "ipython"))
            *rule = "an assistant's message follows one of a user or a tool";
        if (*rule)
            return i + 1;
    }
    return 0;
}

/* Check the order of a strict conversation; note that of another. */
static int check_order(struct tune_conversation *c, const char *name, int64_t line)
{
    const char *rule;
    int at = find_broken(c, &rule);
    for (int i = 0; i < c->count; i++)
        if (has_role(c, i, "developer"))
            c->adapted |= 1u << TUNE_ADAPTED_WRITTEN;
    if (at == 0)
        return 0;
    c->adapted |= 1u << TUNE_ADAPTED_ORDER;
    if (!c->strict)
        return 0;
    return tune_error_set("%s:%lld: message %d (%s): %s", name, (long long)line, at, c->items[at - 1].role, rule);
}

int tune_conversation_check(struct tune_conversation *c, const char *name, int64_t line)
{
    int assistants = 0;
    TRY(check_order(c, name, line));
    for (int i = 0; i < c->count; i++)
        assistants += has_role(c, i, "assistant");
    if (c->count < 2)
        return tune_error_set("%s:%lld: a conversation of %d message%s, expected at least 2%s", name, (long long)line, c->count,
                              c->count == 1 ? "" : "s",
                              c->adapted >> TUNE_ADAPTED_GREETING & 1 ? " (the greeting before the user's first is left out)" : "");
    if (assistants == 0)
        return tune_error_set("%s:%lld: no message of the assistant: there is nothing to train on", name, (long long)line);
    return 0;
}

int tune_conversation_open(struct tune_conversation *c, const char *name, int64_t line)
{
    TRY(check_order(c, name, line));
    c->answered = has_role(c, c->count - 1, "assistant");
    c->count -= c->answered;
    if (c->count > 0 && !has_role(c, c->count - 1, "system"))
        return 0;
    return tune_error_set("%s:%lld: a conversation without a message to answer", name, (long long)line);
}

void tune_conversation_free(struct tune_conversation *c)
{
    forget_made(c);
    free(c->made);
    free(c->untrained);
    free(c->items);
    free(c->bytes);
    memset(c, 0, sizeof *c);
}
