/* adapt.c - conversations as people have them, as a chat template takes them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/try.h"
#include "datasets/conversation.h"

static bool is_role(const struct tune_conversation *c, int i, const char *role)
{
    return i >= 0 && i < c->count && !strcmp(c->items[i].role, role);
}

static void note(struct tune_conversation *c, enum tune_adapted what)
{
    c->adapted |= 1u << what;
}

static void take_out(struct tune_conversation *c, int i)
{
    size_t rest = (size_t)(c->count - i - 1);
    memmove(c->items + i, c->items + i + 1, rest * sizeof *c->items);
    memmove(c->untrained + i, c->untrained + i + 1, rest * sizeof *c->untrained);
    c->count--;
    c->prompt_count -= i < c->prompt_count;
}

/* ---- texts of messages ---- */

/* Write the text of content: a string, or a list of texts. */
static int write_content(struct tune_json *j, FILE *to)
{
    struct tune_text key, text;
    int more, part;
    if (tune_json_peek(j) == TUNE_JSON_STRING) {
        TRY(tune_json_string(j, &text));
        fwrite(text.data, 1, text.size, to);
        return 0;
    }
    if (tune_json_peek(j) != TUNE_JSON_ARRAY)
        return tune_json_skip(j);
    TRY(tune_json_array(j));
    while ((more = tune_json_item(j)) == 1) {
        TRY(tune_json_object(j));
        while ((part = tune_json_key(j, &key)) == 1)
            TRY(tune_text_equal(key, "text") ? write_content(j, to) : tune_json_skip(j));
        TRY(part);
    }
    return more;
}

/* Write the text of a message. 0: it has more than a text, such as calls; -1: error; else 1. */
static int write_message(const struct tune_chat_message *m, FILE *to)
{
    static const char *const more_than_text[] = {"tool_calls", "reasoning_content", "thinking", "reasoning", "name"};
    struct tune_json j;
    struct tune_text key;
    int more, plain = 1;
    if (!m->json.data) {
        fwrite(m->content.data, 1, m->content.size, to);
        return 1;
    }
    tune_json_start(&j, "message", m->json.data, m->json.size, 1);
    j.python = true; /* as the rows are read */
    more = tune_json_object(&j);
    while (more >= 0 && (more = tune_json_key(&j, &key)) == 1) {
        bool content = tune_text_equal(key, "content");
        for (size_t i = 0; i < sizeof more_than_text / sizeof *more_than_text; i++)
            if (tune_text_equal(key, more_than_text[i]) && tune_json_peek(&j) != TUNE_JSON_NULL)
                plain = 0;
        if ((content ? write_content(&j, to) : tune_json_skip(&j)) < 0)
            more = -1;
    }
    tune_json_free(&j);
    return more < 0 ? -1 : plain;
}

/* Put the texts of messages from begin to end, and then that of another one (-1: none), into one text.
 * 1; 0: a message has more than a text; -1: error. */
static int join_texts(struct tune_conversation *c, int begin, int end, int another, struct tune_text *joined)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    int plain = to ? 1 : -1;
    for (int i = begin; plain == 1 && i < end + (another >= 0); i++) {
        fflush(to);
        size_t before = size;
        if (before > 0)
            fputs("\n\n", to);
        plain = write_message(&c->items[i < end ? i : another], to);
    }
    if (to && fclose(to) != 0)
        plain = -1;
    if (plain == 1 && tune_array_fit(&c->made, (size_t)c->made_count, sizeof *c->made)) {
        c->made[c->made_count++] = text;
        *joined = (struct tune_text){text, size};
        return 1;
    }
    free(text);
    return plain == 0 ? 0 : tune_error_no_memory("a joined message");
}

static void set_text(struct tune_conversation *c, int i, struct tune_text text)
{
    c->items[i].json = (struct tune_text){NULL, 0};
    c->items[i].content = text;
}

/* ---- changes ---- */

/* Move the text of the system message i to the user: before the next message, or behind the last. */
static int move_system(struct tune_conversation *c, int i)
{
    struct tune_text text;
    int user = i + 1;
    while (user < c->count && !is_role(c, user, "user"))
        user++;
    bool next = user < c->count;
    while (!next && user >= 0 && !is_role(c, user, "user"))
        user--;
    if (user < 0)
        return 0;
    int moved = next ? join_texts(c, i, i + 1, user, &text) : join_texts(c, user, user + 1, i, &text);
    if (moved != 1)
        return moved;
    set_text(c, user, text);
    take_out(c, i);
    note(c, TUNE_ADAPTED_SYSTEM);
    return 1;
}

static int move_systems(struct tune_conversation *c, unsigned takes)
{
    for (int i = 0; i < c->count; i++) {
        unsigned needed = i > 0 ? TUNE_CHAT_TAKES_LATE_SYSTEM : TUNE_CHAT_TAKES_SYSTEM;
        if (!is_role(c, i, "system") || (takes & needed))
            continue;
        int moved = move_system(c, i);
        TRY(moved);
        i -= moved;
    }
    return 0;
}

/* Join turns of this speaker that follow each other. The prompt and its answer stay apart. */
static int join_turns(struct tune_conversation *c, const char *role)
{
    struct tune_text text;
    for (int i = 0, end; i < c->count; i++) {
        for (end = i + 1; is_role(c, i, role) && is_role(c, end, role) && c->untrained[end] == c->untrained[i] && end != c->prompt_count;)
            end++;
        if (end == i + 1)
            continue;
        int joined = join_texts(c, i, end, -1, &text);
        TRY(joined);
        if (joined == 0)
            continue;
        set_text(c, i, text);
        while (--end > i)
            take_out(c, end);
        note(c, TUNE_ADAPTED_TURNS);
    }
    return 0;
}

static void drop_greeting(struct tune_conversation *c)
{
    int first = is_role(c, 0, "system");
    while (is_role(c, first, "assistant") && c->count > first + 1 && first + 1 != c->prompt_count) {
        take_out(c, first);
        note(c, TUNE_ADAPTED_GREETING);
    }
}

int tune_conversation_adapt(struct tune_conversation *c, unsigned takes)
{
    if (c->strict)
        return 0;
    for (int i = 0; i < c->count && !(takes & TUNE_CHAT_TAKES_DEVELOPER); i++)
        if (is_role(c, i, "developer")) {
            c->items[i].role = "system";
            note(c, TUNE_ADAPTED_DEVELOPER);
        }
    TRY(move_systems(c, takes));
    if (!(takes & TUNE_CHAT_TAKES_GREETING))
        drop_greeting(c);
    if (!(takes & TUNE_CHAT_TAKES_USERS))
        TRY(join_turns(c, "user"));
    return takes & TUNE_CHAT_TAKES_ASSISTANTS ? 0 : join_turns(c, "assistant");
}
