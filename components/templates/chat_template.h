/* chat_template.h - a conversation as text, by the model's own chat template.
 *
 * A chat model's folder has a Jinja template. It writes messages as one text, with headers,
 * end-of-turn tokens and perhaps a default system message. A small interpreter runs it (jinja.h
 * lists what it supports) and gives the text that transformers gives. Each byte of the text is data
 * or markup. Data comes from a message, and the spelling of a special token in it is plain text.
 * Markup comes from the template.
 *
 *     struct tune_chat_template *t = tune_chat_template_open("models/SmolLM2-135M-Instruct", NULL,
 *                                                           NULL);
 *     struct tune_chat_message said[] = {{.role = "user", .content = {"Hi", 2}},
 *                                        {.role = "assistant", .content = {"Hello", 5}}};
 *     struct tune_chat_messages chat = {.items = said, .count = 2, .name = "rows.jsonl",
 *                                       .line = 1};
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

/* One message, borrowed. Either json is the object of the row; the template may use all its members
 * (role, content, tool_calls, name, ...). A role beside it takes the place of its own. Or json.data
 * is NULL, and there are a role and its content. Null members count as absent, as in
 * transformers. */
struct tune_chat_message {
    struct tune_text json;
    const char *role;
    struct tune_text content; /* UTF-8 */
};

struct tune_chat_messages {
    const struct tune_chat_message *items;
    int count;
    struct tune_text tools;   /* JSON array of tool definitions; data NULL: none */
    const char *name;         /* source of the row, for messages; NULL: none */
    int64_t line;
    bool strict;              /* calls keep their arguments as they are, see below */
};

/* The text of an assistant's message: from after its header to the end of its end-of-turn token. */
struct tune_chat_span {
    size_t begin, end;        /* byte offsets in the text */
    int message;              /* index in items */
};

/* A rendered conversation. Reuse it from call to call. */
struct tune_chat_text {
    char *text;               /* UTF-8; a NUL follows */
    size_t size;
    uint8_t *data;            /* [size]; 1: data, from a message or a tool */
    struct tune_chat_span *spans; /* one for each assistant message, in order */
    int span_count;
    /* bytes of the assistant's content, reasoning and names of called functions, and those of them
     * that the text lacks; white space does not count. 0 with a generation prompt */
    size_t said, left_out;
    bool calls_changed; /* a call's arguments were put into the other form */
};
/* tune_chat_text_free - free the arrays of text. */
void tune_chat_text_free(struct tune_chat_text *text);

struct tune_chat_template;

/* tune_chat_template_open - open a template. NULL with an error: no template, an unknown name (it
 * lists the known ones), or an unsupported construct (template, line, construct). Any number of
 * threads may render with it.
 * chosen NULL takes the folder's template, as transformers finds it: chat_template.jinja, else
 * "chat_template" in tokenizer_config.json. That is a string, or a list with names: "default", and
 * "tool_use" for conversations with tools. additional_chat_templates/NAME.jinja are found too.
 * Otherwise chosen is a file (a name with a '/' or ".jinja"), a name among the folder's templates,
 * or one in defaults/chat_templates ("chatml"). The special tokens of tokenizer_config.json
 * (bos_token, ...) are variables of the template. model_folder NULL: there are none. end_token is
 * eos_token for folders that name none there; NULL: none.
 * tune_chat_template_is_in - whether a model's folder has a template of its own. NULL: no.
 * tune_chat_template_free - free it; NULL is fine.
 * tune_chat_template_name - where it was found, for run headers; borrowed.
 * tune_chat_template_hash - hash of its text and of the special tokens that the text names. */
struct tune_chat_template *tune_chat_template_open(const char *model_folder, const char *chosen,
                                                   const char *end_token);
bool tune_chat_template_is_in(const char *model_folder);
void tune_chat_template_free(struct tune_chat_template *t);
const char *tune_chat_template_name(const struct tune_chat_template *t);
uint64_t tune_chat_template_hash(const struct tune_chat_template *t);

/* tune_chat_template_takes - which conversations the template writes as they are, as bits. It
 * refuses the others, or leaves a part out. Opening finds this by renders. */
enum {
    TUNE_CHAT_TAKES_USERS = 1,       /* two turns of a user in a row */
    TUNE_CHAT_TAKES_ASSISTANTS = 2,  /* two of the assistant */
    TUNE_CHAT_TAKES_GREETING = 4,    /* the assistant first */
    TUNE_CHAT_TAKES_LATE_SYSTEM = 8, /* a system message that is not the first */
    TUNE_CHAT_TAKES_SYSTEM = 16,     /* a first system message; it may be left out */
    TUNE_CHAT_TAKES_DEVELOPER = 32
};
unsigned tune_chat_template_takes(const struct tune_chat_template *t);

/* tune_chat_template_chosen - the Jinja text of a template that was chosen, with a NUL; NULL: it is
 * the one that transformers finds in the folder. Borrowed. */
const char *tune_chat_template_chosen(const struct tune_chat_template *t);

/* tune_chat_template_end - the end_token that tune_chat_template_open was given, if the template
 * uses eos_token and tokenizer_config.json names none; else NULL. Borrowed. */
const char *tune_chat_template_end(const struct tune_chat_template *t);

/* tune_chat_template_date - set the time that strftime_now gives, in seconds since 1970 UTC, so
 * that renders repeat. -1, at first: the time of the call. Set it before rendering. */
void tune_chat_template_date(struct tune_chat_template *t, int64_t seconds);

/* tune_chat_template_render - render the conversation into *out, which is emptied first. -1 with an
 * error: the template's own raise_exception (its text), an error in it (with the line), or a limit
 * (jinja.h). Also a message without a role. With TUNE_CHAT_SPANS also a message whose place cannot
 * be known; the error names it.
 *
 * The arguments of a call are an object, or text with one in JSON. A template that writes only one
 * of the two well gets that one, unless the messages are strict.
 *
 * A span ends with the message's turn. A turn is what one pass of a loop over the messages writes;
 * all its data must be the message's. For the last message, the span ends with the text if its turn
 * ends with the message's own text. The template's white space at the end is left out.
 *
 * A span begins after the prompt: the render of the messages before it, with the generation prompt.
 * The whole text must begin with that prompt.
 *
 * Some templates write earlier messages differently: they drop their reasoning, or move the system
 * message. Then the turn is compared with the prompt. The compared part of the prompt is what
 * follows the turn before. If that is empty, it is what the generation prompt adds to the same
 * render. The header is the part that both have in common, as far as it is the template's own text.
 * It ends with the prompt. If the turn goes on differently, it ends at the last place where the
 * template began a new piece, after white space that both have.
 *
 * In that case the rest of the prompt must be what only a coming answer has. That is white space,
 * or a text whose first line has think, thought or reason and no word of a header. The turn must
 * not go on with a letter or digit of the template. If there is nothing in common, the turn has no
 * header only if the prompt is empty too.
 *
 * Some templates go through the numbers of messages, not the messages. Then the prompt must begin
 * the text. The message is what the text up to it and the text with the next message have in
 * common.
 *
 * A span is refused in three cases. First: it holds data of another message or tool. Second: it has
 * a word of a header before its first data, or a word of the next header after its last data. Such
 * words are assistant, model, bot, chatbot, gpt, ai; then user, human. A single token in angle
 * brackets may end a turn all the same. Third: the text has something of the message outside the
 * span that the span lacks. */
enum {
    TUNE_CHAT_GENERATION_PROMPT = 1, /* end with the header of the assistant's turn */
    /* fill spans, with one or two more renders per assistant message; excludes the generation
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
