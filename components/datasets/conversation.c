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

/* Copy a text into the conversation, which has room for all texts of its row. */
static struct tune_text keep(struct tune_conversation *c, struct tune_text text)
{
    struct tune_text kept = {memcpy(c->bytes + c->used, text.data, text.size), text.size};
    c->bytes[c->used + text.size] = 0;
    c->used += text.size + 1;
    return kept;
}

int tune_conversation_add_copy(struct tune_conversation *c, const char *role, struct tune_text text)
{
    return tune_conversation_add(c, role, keep(c, text));
}

int tune_conversation_lead(struct tune_conversation *c, struct tune_text text)
{
    if (c->count > 0 && !strcmp(c->items[0].role, "system"))
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

/* Translate the name of a role or sender to a role. *call, unless NULL: the sender is function_call. */
static int read_role(struct tune_json *j, bool sharegpt, const char **role, bool *call)
{
    static const struct {
        const char *name, *role;
        bool sharegpt;
    } known[] = {
        {"system", "system", false}, {"user", "user", false}, {"assistant", "assistant", false}, {"tool", "tool", false},
        {"ipython", "ipython", false}, {"system", "system", true}, {"human", "user", true}, {"gpt", "assistant", true},
        {"user", "user", true}, {"assistant", "assistant", true}, {"tool", "tool", true}, {"observation", "tool", true},
        {"function_call", "assistant", true},
    };
    struct tune_text text;
    const char *begin = j->at;
    TRY(tune_json_string(j, &text));
    if (call)
        *call = tune_text_equal(text, "function_call");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].sharegpt == sharegpt && tune_text_equal(text, known[i].name)) {
            *role = known[i].role;
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
            TRY(read_role(j, false, &message.role, NULL));
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

static int read_turn(struct tune_conversation *c, struct tune_json *j)
{
    struct tune_chat_message message = {.role = NULL};
    struct tune_text key, value;
    bool call = false;
    int more;
    TRY(tune_json_object(j));
    while ((more = tune_json_key(j, &key)) == 1) {
        bool from = tune_text_equal(key, "from"), said = tune_text_equal(key, "value");
        if ((from && message.role) || (said && message.content.data))
            return tune_json_fail(j, "\"%s\" stands here a second time", from ? "from" : "value");
        if (from) {
            TRY(tune_json_peek(j));
            TRY(read_role(j, true, &message.role, &call));
        } else if (said) {
            TRY(tune_json_string(j, &value));
            message.content = keep(c, value);
        } else {
            TRY(tune_json_skip(j));
        }
    }
    TRY(more);
    if (!message.role || !message.content.data)
        return tune_json_fail(j, "a message without \"%s\"", message.role ? "value" : "from");
    return call ? add_call(c, j, message.content) : add(c, message, false);
}

int tune_conversation_read(struct tune_conversation *c, struct tune_json *j, struct tune_text array, bool sharegpt)
{
    int more;
    j->at = array.data;
    if (tune_json_peek(j) == TUNE_JSON_OBJECT)
        return sharegpt ? read_turn(c, j) : read_message(c, j);
    TRY(tune_json_array(j));
    while ((more = tune_json_item(j)) == 1)
        TRY(sharegpt ? read_turn(c, j) : read_message(c, j));
    return more;
}

/* ---- the rules ---- */

static bool has_role(const struct tune_conversation *c, int i, const char *role)
{
    return i >= 0 && i < c->count && !strcmp(c->items[i].role, role);
}

/* Check the order of the roles. *assistants: how many of the messages are the assistant's. */
static int check_order(const struct tune_conversation *c, const char *name, int64_t line, int *assistants)
{
    const char *broken = NULL;
    int at = 0;
    *assistants = 0;
    for (int i = 0; i < c->count && !broken; i++) {
        bool assistant = has_role(c, i, "assistant");
        *assistants += assistant;
        at = i + 1;
        if (i > 0 && has_role(c, i, "system"))
            broken = "a system message stands only at the begin";
        else if (has_role(c, i, "user") && has_role(c, i - 1, "user"))
            broken = "two user messages in a row";
        else if (assistant && !has_role(c, i - 1, "user") && !has_role(c, i - 1, "tool") && !has_role(c, i - 1, "ipython"))
            broken = "an assistant's message follows one of a user or a tool";
    }
    if (!broken)
        return 0;
    return tune_error_set("%s:%lld: message %d (%s): %s", name, (long long)line, at, c->items[at - 1].role, broken);
}

int tune_conversation_check(const struct tune_conversation *c, const char *name, int64_t line)
{
    int assistants;
    TRY(check_order(c, name, line, &assistants));
    if (c->count < 2)
        return tune_error_set("%s:%lld: a conversation of %d message%s, expected at least 2", name, (long long)line, c->count,
                              c->count == 1 ? "" : "s");
    if (assistants == 0)
        return tune_error_set("%s:%lld: no message of the assistant: there is nothing to train on", name, (long long)line);
    return 0;
}

int tune_conversation_open(struct tune_conversation *c, const char *name, int64_t line)
{
    int assistants;
    TRY(check_order(c, name, line, &assistants));
    if (has_role(c, c->count - 1, "assistant"))
        c->count--;
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
