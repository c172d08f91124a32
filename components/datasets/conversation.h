/* conversation.h - a row's messages: read from the two shapes they come in, checked, handed to a
 * chat template as they are.
 *
 *     [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [{"type": "text", "text": "Hello"}]}]     messages
 *     [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]                                         sharegpt
 *
 * The rules: two messages at least, one of them the assistant's; a system message only as the
 * first; no two user messages in a row; the assistant speaks after a user or a tool. Internal to
 * datasets. */
#ifndef TUNE_DATASETS_CONVERSATION_H
#define TUNE_DATASETS_CONVERSATION_H

#include <stdbool.h>

#include "files/json.h"
#include "templates/chat_template.h"

/* Reused from row to row; zeroed, it may be freed. */
struct tune_conversation {
    struct tune_chat_message *items; /* role always set; json for messages, content for sharegpt */
    int count, room;
    int prompt_count; /* messages that are the prompt's, where prompt and completion are lists */
    char *bytes;      /* decoded contents */
    size_t used, bytes_room;
};

/* tune_conversation_begin - empty it; row_size bounds the contents to come.
 * tune_conversation_add - one message of the caller's: role "user" or "assistant", text borrowed.
 * tune_conversation_read - the JSON array at array (as the row has it), appended; j stands on the
 * row. -1 with file, line and column: an unknown role or sender, content that is no text, a member
 * twice.
 * tune_conversation_check - the rules above. -1 with name:line. */
int tune_conversation_begin(struct tune_conversation *c, size_t row_size);
int tune_conversation_add(struct tune_conversation *c, const char *role, struct tune_text text);
int tune_conversation_read(struct tune_conversation *c, struct tune_json *j,
                           struct tune_text array, bool sharegpt);
int tune_conversation_check(const struct tune_conversation *c, const char *name, int64_t line);
void tune_conversation_free(struct tune_conversation *c);

#endif
