/* chat_takes.c - which conversations a template writes, found by renders of small ones. */
#include <string.h>

#include "core/error.h"
#include "templates/chat_parts.h"

/* Render a conversation of these roles, "u", "a", "s" and "d", whose texts are numbered. 1: all texts
 * are written in their order, and what the assistant wrote is known; 0: not; -1: refused. */
static int try_roles(struct tune_chat_template *t, const char *roles)
{
    static const char *const texts[] = {"text one", "text two", "text three", "text four", "text five"};
    struct tune_chat_message items[5];
    struct tune_chat_messages chat = {.items = items, .count = (int)strlen(roles)};
    struct tune_chat_text out = {0};
    for (int i = 0; i < chat.count; i++)
        items[i] = (struct tune_chat_message){
            .role = roles[i] == 'u' ? "user" : roles[i] == 'a' ? "assistant" : roles[i] == 's' ? "system" : "developer",
            .content = {texts[i], strlen(texts[i])}};
    int written = tune_chat_template_render(t, &chat, 0, &out) == 0 ? 1 : -1;
    const char *at = out.text;
    for (int i = 0; written == 1 && i < chat.count; i++)
        if (!(at = strstr(at, texts[i])))
            written = 0;
    if (written == 1 && tune_chat_template_render(t, &chat, TUNE_CHAT_SPANS, &out) < 0)
        written = 0;
    tune_chat_text_free(&out);
    tune_error_clear();
    return written;
}

void tune_chat_settle_takes(struct tune_chat_template *t)
{
    /* Without a conversation that it writes, nothing is known: all is left to the template. */
    bool some = try_roles(t, "uaua") == 1;
    t->takes = !some || try_roles(t, "uuaua") == 1 ? TUNE_CHAT_TAKES_USERS : 0;
    t->takes |= !some || try_roles(t, "uaaua") == 1 ? TUNE_CHAT_TAKES_ASSISTANTS : 0;
    t->takes |= !some || try_roles(t, "aua") == 1 ? TUNE_CHAT_TAKES_GREETING : 0;
    t->takes |= !some || try_roles(t, "uasua") == 1 ? TUNE_CHAT_TAKES_LATE_SYSTEM : 0;
    t->takes |= !some || try_roles(t, "sua") >= 0 ? TUNE_CHAT_TAKES_SYSTEM : 0;
    t->takes |= !some || try_roles(t, "dua") == 1 ? TUNE_CHAT_TAKES_DEVELOPER : 0;
}

unsigned tune_chat_template_takes(const struct tune_chat_template *t)
{
    return t->takes;
}
