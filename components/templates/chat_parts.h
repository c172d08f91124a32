/* chat_parts.h - struct tune_chat_template, shared by chat_template.c and chat_render.c.
 * Private. */
#ifndef TUNE_CHAT_PARTS_H
#define TUNE_CHAT_PARTS_H

#include "templates/chat_template.h"
#include "templates/jinja.h"

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
    bool joins; /* content that is a list of texts is given to the template as one string */
};

int tune_chat_no_memory(void); /* sets the error; returns -1 */

/* tune_chat_settle_content - set joins, by renders of a message whose content is a list. */
void tune_chat_settle_content(struct tune_chat_template *t);

#ifdef __cplusplus
}
#endif
#endif
