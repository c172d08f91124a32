/* chat_parts.h - struct tune_chat_template, shared by chat_template.c, chat_messages.c and
 * chat_render.c. Private. */
#ifndef TUNE_CHAT_PARTS_H
#define TUNE_CHAT_PARTS_H

#include "templates/chat_template.h"
#include "templates/jinja_parts.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TUNE_CHAT_NAMES = 64 };

struct tune_chat_named {
    char *name, *text, *where;
    size_t size;
};

struct tune_chat_special {
    char *name, *text;
};

/* How a template takes the arguments of a call. */
enum tune_chat_calls { TUNE_CALLS_AS_THEY_ARE, TUNE_CALLS_AS_OBJECTS, TUNE_CALLS_AS_TEXT };

struct tune_chat_template {
    struct tune_jinja *plain, *tools; /* tools: template for conversations with tools; NULL: none */
    struct tune_chat_named found[TUNE_CHAT_NAMES]; /* templates in the model's folder */
    int found_count;
    struct tune_chat_special special[TUNE_CHAT_NAMES];
    int special_count;
    char *where;
    const char *chosen; /* text of one in found; NULL: the folder's own */
    uint64_t hash;
    int64_t seconds;
    bool given_end; /* the last of special is the end token that the caller gave */
    bool uses_end;  /* and a template has eos_token */
    enum tune_chat_calls calls[2]; /* of plain and tools */
    unsigned takes; /* tune_chat_template_takes */
    bool joins; /* content that is a list of texts is given to the template as one string */
};

int tune_chat_no_memory(void); /* sets the error; returns -1 */

/* tune_chat_settle_content - set joins, by renders of a message whose content is a list. */
void tune_chat_settle_content(struct tune_chat_template *t);

/* tune_chat_settle_calls - set calls, by renders of a call with its arguments in both forms. */
void tune_chat_settle_calls(struct tune_chat_template *t);

/* tune_chat_settle_takes - set takes. */
void tune_chat_settle_takes(struct tune_chat_template *t);

/* The mark of a message's strings is in the bits above TUNE_JINJA_PIECE. Messages this far apart
 * have the same. */
enum { TUNE_CHAT_ORIGINS = 63, TUNE_CHAT_ORIGIN = TUNE_JINJA_PIECE << 1 };

/* tune_chat_mark - the mark of a message's strings.
 * tune_chat_member - a member of a dict; NULL: there is none.
 * tune_chat_read_message - the message as the dict that a template gets. joins: join content that
 * is a list of texts. *changed: set if a call's arguments were put into the other form.
 * tune_chat_left_out - add to *said the bytes of an assistant's content, reasoning and names of
 * called functions. Add to *left_out those that its turn lacks. White space does not count. */
uint8_t tune_chat_mark(int index);
const jval *tune_chat_member(jrun *run, const jval *message, const char *name);
int tune_chat_read_message(jrun *run, bool joins, enum tune_chat_calls calls,
                           const struct tune_chat_messages *messages, int index, jval *v,
                           bool *changed);
int tune_chat_left_out(jrun *run, const jval *message, uint8_t mark,
                       const struct tune_jinja_turn *turn, const struct tune_jinja_output *out,
                       size_t *said, size_t *left_out);

#ifdef __cplusplus
}
#endif
#endif
