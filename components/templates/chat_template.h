/* chat_template.h - a conversation as the text its model was taught, by the model's own template.
 *
 * A chat model's folder holds a Jinja template that writes messages as one text: headers, end-of-turn tokens, a default
 * system message. It is run here by a small interpreter (jinja.h says which part of the language), never guessed from its
 * looks, and gives the text that transformers gives. The text's bytes say who wrote them: what stands in a message is data,
 * where a special token's spelling must not become that token; what the template writes is markup. Stands on core alone.
 *
 *     struct tune_chat_template *t = tune_chat_template_open("models/SmolLM2-135M-Instruct", NULL);
 *     struct tune_chat_message said[] = {{.role = "user", .content = {"Hi", 2}}, {.role = "assistant", .content = {"Hello", 5}}};
 *     struct tune_chat_messages chat = {.items = said, .count = 2, .name = "rows.jsonl", .line = 1};
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

/* One message. Either json: the object as a row has it, all of whose members the template may use (role, content as a string
 * or as parts, tool_calls, name, ...); or, with json.data NULL, a role and its content. Members that are null count as absent,
 * as in transformers. Borrowed. */
struct tune_chat_message {
    struct tune_text json;
    const char *role;
    struct tune_text content; /* UTF-8 */
};

struct tune_chat_messages {
    const struct tune_chat_message *items;
    int count;
    struct tune_text tools;   /* JSON array of the tools' definitions; data NULL: none */
    const char *name;         /* the file and line they come from, for messages; NULL: none */
    int64_t line;
};

/* What an assistant's message wrote: from behind its header to the end of its end-of-turn token. */
struct tune_chat_span {
    size_t begin, end;        /* bytes of the text */
    int message;              /* index in items */
};

/* A rendered conversation; reused from call to call. */
struct tune_chat_text {
    char *text;               /* UTF-8, NUL after it */
    size_t size;
    uint8_t *data;            /* [size]; 1: from a message or a tool, where a special token's spelling is plain text */
    struct tune_chat_span *spans; /* one for each message of the role assistant, in order */
    int span_count;
};
void tune_chat_text_free(struct tune_chat_text *text);

struct tune_chat_template;

/* tune_chat_template_open - chosen NULL: the template of the folder, as transformers finds it: chat_template.jinja, else the
 * "chat_template" of tokenizer_config.json (a string, or a list of name and template: "default", and "tool_use" for
 * conversations with tools), and additional_chat_templates/NAME.jinja besides. Else chosen is a file (a name with a '/' or
 * ".jinja"), a name among the folder's own templates, or one in defaults/chat_templates ("chatml"). The special tokens of
 * tokenizer_config.json (bos_token, ...) are the template's variables either way; model_folder NULL: there are none.
 * NULL with an error: no template, a name that nobody knows (those there are), a construct outside the subset (template, line,
 * construct). A template is read-only after opening: any number of threads may render by it.
 * tune_chat_template_name - where it was found, for run headers; borrowed.
 * tune_chat_template_hash - of what it says: its text, and the special tokens that the text names. */
struct tune_chat_template *tune_chat_template_open(const char *model_folder, const char *chosen);
void tune_chat_template_free(struct tune_chat_template *t);
const char *tune_chat_template_name(const struct tune_chat_template *t);
uint64_t tune_chat_template_hash(const struct tune_chat_template *t);

/* tune_chat_template_date - what strftime_now says, in seconds since 1970 UTC, so that renders repeat; -1 (at first): the
 * time of the call. Set before rendering begins. */
void tune_chat_template_date(struct tune_chat_template *t, int64_t seconds);

/* tune_chat_template_render - the conversation into *out, which is emptied first. 0 or -1: the template's own raise_exception
 * (its text), an error in it (line), limits (jinja.h), a message that is no object with a role, and with TUNE_CHAT_SPANS a template
 * under which a message's place cannot be known; the error names the message.
 *
 * Where a span ends: with the message's turn, what one turn of a loop over the messages writes, all of whose data must be the
 * message's; for the last message with the text, if its turn has nothing behind what it says. White space of the template's at
 * the end is left out.
 * Where it begins: behind the prompt, the render of the messages before it with the generation prompt, if that begins the whole
 * text. If not, because the template writes earlier messages otherwise than last ones (drops their reasoning, moves the system
 * message), the turn and the prompt are compared: of the prompt, what stands behind the turn before; if that gives nothing, what
 * it is longer by than the same render without generation prompt. As far as both are the same text of the template's, it is the
 * header. It ends with the prompt; or, where the turn goes on otherwise, at the last place before that where the template began to
 * write anew, and behind white space that both have there. In this case the rest of the prompt must be what only an answer to
 * come has: white space, or a text whose first line holds think, thought or reason, without a word like a header's; and the turn
 * must not go on with a letter or digit that the template writes. No common text: none of the turn is a header only where the
 * prompt has nothing either.
 * Under a template that does not go through the messages (but through their numbers) the prompt must begin the text, and the
 * message is what the text up to it has in common with the text as it goes on.
 * However it was found, a span is refused that holds data of another message or tool; before its first data a word like a
 * header's (assistant, model, bot, chatbot, gpt, ai), or behind its last data the next one's (user, human; but a single token in
 * angle brackets ends a turn); or outside of which the text has something of the message that the span does not have too. */
enum {
    TUNE_CHAT_GENERATION_PROMPT = 1, /* add_generation_prompt: ends with the header of the assistant's turn */
    TUNE_CHAT_SPANS = 2              /* fill spans; one more render, or two, for each assistant message; no generation prompt */
};
int tune_chat_template_render(struct tune_chat_template *t, const struct tune_chat_messages *messages, int options,
                              struct tune_chat_text *out);

#ifdef __cplusplus
}
#endif
#endif
