/* chat_template.h - write a conversation as the text on which its model was trained.
 *
 * The folder of a chat model has a Jinja template that writes messages as one text: headers,
 * end-of-turn tokens, a default system message. A small interpreter (jinja.h) runs it and gives the
 * same text as transformers.
 *
 * Each byte of the text has an origin. Text from a message is data, in which the spelling of a
 * special token stays plain text. Text that the template writes is markup.
 *
 *     struct tune_chat_template *t = tune_chat_template_open("models/SmolLM2-135M-Instruct", NULL);
 *     struct tune_chat_message said[] = {{.role = "user", .content = {"Hi", 2}},
 *                                        {.role = "assistant", .content = {"Hello", 5}}};
 *     struct tune_chat_messages chat = {.items = said, .count = 2, .name = "a.jsonl", .line = 1};
 *     struct tune_chat_text text = {0};
 *     tune_chat_template_render(t, &chat, TUNE_CHAT_SPANS, &text);
 *     ... tune_tokenizer_encode_text(tokenizer, text.text, text.size, text.data, 0, &encoding);
 *     ... train on the tokens that begin in text.spans[0].begin .. end
 *     tune_chat_text_free(&text);
 *     tune_chat_template_free(t); */
#ifndef TUNE_CHAT_TEMPLATE_H
#define TUNE_CHAT_TEMPLATE_H

#include <stdint.h>

#include "files/json.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A message, in one of two forms. json: the row's object; the template may use all its members
 * (role, content as a string or as parts, tool_calls, name, ...). With json.data NULL: role and
 * content. Members that are null count as absent, as in transformers. All is borrowed. */
struct tune_chat_message {
    struct tune_text json;
    const char *role;
    struct tune_text content; /* UTF-8 */
};

struct tune_chat_messages {
    const struct tune_chat_message *items;
    int count;
    struct tune_text tools;   /* JSON array of tool definitions; data NULL: none */
    const char *name;         /* file name and line of the row, for messages; NULL: none */
    int64_t line;
};

/* The part of the text that belongs to an assistant's message: from the end of its header through
 * its end-of-turn token. */
struct tune_chat_span {
    size_t begin, end;        /* bytes of the text */
    int message;              /* index in items */
};

/* A rendered conversation. Start with a zeroed one; each call reuses its buffers. */
struct tune_chat_text {
    char *text;               /* UTF-8, followed by a NUL */
    size_t size;
    uint8_t *data; /* [size]; 1: from a message or tool, where special tokens are plain text */
    struct tune_chat_span *spans; /* one for each message with role assistant, in order */
    int span_count;
};
void tune_chat_text_free(struct tune_chat_text *text);

struct tune_chat_template;

/* tune_chat_template_open - open a template. chosen NULL: the template of the model's folder, found
 * as in transformers:
 *
 *  chat_template.jinja, else "chat_template" of tokenizer_config.json: a string, or a list of named
 *      templates ("default", and "tool_use" for conversations with tools)
 *  additional_chat_templates/NAME.jinja
 *
 * Otherwise chosen is a file (with '/' or ".jinja" in its name), the name of one of the folder's
 * templates, or a name in defaults/chat_templates ("chatml"). The special tokens of
 * tokenizer_config.json (bos_token, ...) are variables of the template. model_folder NULL: there
 * are none.
 *
 * NULL with an error: no template; an unknown name (lists the known ones); an unsupported construct
 * (with template and line). A template is read-only after opening. Any number of threads may render
 * with it.
 *
 * tune_chat_template_name - the place where it was found, for run headers; valid until free.
 *
 * tune_chat_template_hash - hash of its text and of the special tokens that the text names. */
struct tune_chat_template *tune_chat_template_open(const char *model_folder, const char *chosen);
void tune_chat_template_free(struct tune_chat_template *t);
const char *tune_chat_template_name(const struct tune_chat_template *t);
uint64_t tune_chat_template_hash(const struct tune_chat_template *t);

/* tune_chat_template_date - set the time that strftime_now gives, in seconds since 1970 UTC, so
 * that renders repeat. -1 (the default): the time of the call. Call it before rendering. */
void tune_chat_template_date(struct tune_chat_template *t, int64_t seconds);

/* tune_chat_template_render - write the conversation to *out, which is emptied first. 0, or -1 with
 * an error that names the message. Errors: raise_exception in the template, an error in the
 * template (with line), a limit of jinja.h, a message that is no object with a role. With
 * TUNE_CHAT_SPANS also a message whose span cannot be found.
 *
 * How a span is found. A message's turn is the text that one iteration of the template's loop over
 * the messages writes. All data in it must be the message's. The prompt is the render of the
 * messages before it, with generation prompt.
 *
 * End of the span: the end of the turn. For the last message it is the end of the text, if its turn
 * writes nothing after the message. Trailing white space of the template is left out.
 *
 * Begin of the span: the end of the prompt, if the whole text begins with the prompt. Some
 * templates write earlier messages in another way than the last one: they drop reasoning or move
 * the system message. The text then does not begin with the prompt, and the turn's header is found
 * by comparing the turn with the end of the prompt. That end is the prompt's text after the
 * previous turn. If nothing matches, it is what the generation prompt adds.
 *
 * The header is the template's text that both have in common. It ends with the prompt. If the turn
 * differs before that, the header ends earlier. It ends at the last point where the template began
 * a new piece, and after common white space. The rest of the prompt must then belong to the coming
 * answer only. It is white space, or text whose first line contains think, thought or reason, and
 * no header word. The turn must not continue with a letter or digit of the template. Without common
 * text, the header is empty only if the prompt adds nothing either.
 *
 * A template without a loop over the messages (one over indices) is rendered up to the message. The
 * text must begin with the prompt. The span is what that render and the whole text have in common
 * after the prompt.
 *
 * A span is refused in these cases. It contains data of another message or tool. Before its first
 * data it has a header word (assistant, model, bot, chatbot, gpt, ai). After its last data it has a
 * header word of the next message (user, human). A single token in angle brackets at its end is
 * allowed. The text outside the span has data of the message that the span does not have. */
enum {
    /* add_generation_prompt: the text ends with the assistant's header */
    TUNE_CHAT_GENERATION_PROMPT = 1,
    /* find spans; needs one or two more renders for each assistant message; not with generation
     * prompt */
    TUNE_CHAT_SPANS = 2
};
int tune_chat_template_render(struct tune_chat_template *t,
                              const struct tune_chat_messages *messages, int options,
                              struct tune_chat_text *out);

#ifdef __cplusplus
}
#endif
#endif
