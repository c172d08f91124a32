/* conversation.h - the messages of a row: read from one of two forms and checked, for a chat
 * template.
 *
 *     messages  [{"role": "user", "content": "Hi"},
 *                {"role": "assistant", "content": [{"type": "text", "text": "Hello"}]}]
 *     sharegpt  [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]
 *
 * A ShareGPT message from function_call becomes an assistant's message with tool_calls. Its value
 * is JSON: {"name": ..., "arguments": ...}, or an array of these. An observation is a tool's
 * message.
 *
 * Rules: at least two messages, one of them from the assistant. Only the first may be a system
 * message. No two user messages follow each other. The assistant follows a user or a tool.
 *
 * A strict conversation that breaks a rule is an error. Otherwise only the first rule holds. Both
 * forms may then stand side by side, and roles may have other names. What the chat template does
 * not take is changed (tune_conversation_adapt). Private to datasets. */
#ifndef TUNE_DATASETS_CONVERSATION_H
#define TUNE_DATASETS_CONVERSATION_H

#include <stdbool.h>

#include "datasets/dataset.h"
#include "files/json.h"
#include "templates/chat_template.h"

/* Reused from row to row. A zeroed one may be freed. */
struct tune_conversation {
    bool strict;      /* set by the caller */
    unsigned adapted; /* a bit for each enum tune_adapted: what was changed in this row */
    /* role is always set; json for messages, content for sharegpt */
    struct tune_chat_message *items;
    int count;
    /* [count]; true: the message has "weight": 0, so it is not trained */
    bool *untrained;
    int prompt_count; /* messages of the prompt, if prompt and completion are lists */
    /* tune_conversation_open dropped the assistant's message at the end; it is items[count] */
    bool answered;
    char **made;      /* messages that were made from function calls, or joined */
    int made_count;
    char *bytes;      /* decoded contents */
    size_t used, bytes_room;
};

/* tune_conversation_begin - empty it. row_size limits the size of the contents.
 * tune_conversation_add - append a message: role "user" or "assistant"; text is borrowed.
 * tune_conversation_add_copy - the same with a copy of a text of the row.
 * tune_conversation_add_lines - the same for one or two texts, the second (or NULL) on a new line.
 * tune_conversation_lead - put a system message first, unless there is one. text is borrowed.
 * tune_conversation_read - append the messages of a JSON array in the row that j reads, or the one
 * message of an object. -1 with
 * file, line and column. Errors: an unknown role or sender, content that is no text, a member
 * twice.
 * tune_conversation_adapt - change what a chat template does not take. takes:
 * tune_chat_template_takes. A developer becomes a system. A system's text goes to the beginning of
 * the user's next message, or to the end of the last. Turns of one speaker that follow each other
 * become one, with an empty line between. An assistant's message before the first of a user goes.
 * Nothing is done to a strict conversation.
 * tune_conversation_check - check the rules above. -1 with an error that begins with name:line.
 * tune_conversation_open - make it a prompt. An assistant's message at the end is dropped. What is
 * left must end with a message to answer. */
int tune_conversation_begin(struct tune_conversation *c, size_t row_size);
int tune_conversation_add(struct tune_conversation *c, const char *role, struct tune_text text);
int tune_conversation_add_copy(struct tune_conversation *c, const char *role,
                               struct tune_text text);
int tune_conversation_add_lines(struct tune_conversation *c, const char *role,
                                struct tune_text first, const struct tune_text *second);
int tune_conversation_lead(struct tune_conversation *c, struct tune_text text);
int tune_conversation_read(struct tune_conversation *c, struct tune_json *j, struct tune_text array,
                           bool sharegpt);
int tune_conversation_adapt(struct tune_conversation *c, unsigned takes);
int tune_conversation_check(struct tune_conversation *c, const char *name, int64_t line);
int tune_conversation_open(struct tune_conversation *c, const char *name, int64_t line);
void tune_conversation_free(struct tune_conversation *c);

#endif
