/* chat_parts.h - what chat_template.c finds and chat_render.c renders by. */
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
    struct tune_jinja *plain, *tools;              /* tools NULL: none of its own */
    struct tune_chat_named found[TUNE_CHAT_NAMES]; /* in the model's folder */
    int found_count;
    struct tune_chat_special special[TUNE_CHAT_NAMES];
    int special_count;
    char *where;
    uint64_t hash;
    int64_t seconds;
};

int tune_chat_no_memory(void); /* -1, with the error */

#ifdef __cplusplus
}
#endif
#endif
