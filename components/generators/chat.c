/* chat.c - a conversation with the model: lines from the standard input, and commands.
 *
 * Each turn is written anew by the chat template, from the first message on. What its tokens share
 * with the turn before stays in the cache (tune_cache_share). So /undo and /system cost nothing
 * more. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/array.h"
#include "core/error.h"
#include "core/try.h"
#include "files/cjson.h"
#include "generators/prompts_parts.h"
#include "templates/chat_template.h"
#include "tokenizers/tokenizer.h"

enum { LINE_LIMIT = 1 << 20 };

/* A message; role is a string constant. */
struct said {
    const char *role;
    char *text;
    size_t size;
};

struct tune_chat_session {
    struct tune_chat_template *template;
    struct tune_tokenizer *tok;
    volatile int *stop_signal;
    int nuls; /* in the line */
    int in;               /* lines come from here */
    FILE *notes;          /* what is no answer goes here */
    struct said *said;
    int count;
    bool waiting;         /* the last message waits for its answer */
    char *line;           /* the line being read */
    size_t used, room;
    char buffer[4096];    /* bytes read ahead */
    size_t begin, end;
    bool terminal, ended;
    int64_t turns;
    struct tune_chat_text text;
    struct tune_encoding tokens;
};

void tune_chat_session_free(struct tune_chat_session *t)
{
    if (!t)
        return;
    for (int i = 0; i < t->count; i++)
        free(t->said[i].text);
    free(t->said);
    free(t->line);
    tune_chat_text_free(&t->text);
    tune_encoding_free(&t->tokens);
    tune_chat_template_free(t->template);
    free(t);
}

static int add(struct tune_chat_session *t, const char *role, const char *text, size_t size)
{
    char *copy = tune_zeroed(size + 1, 1, "a message");
    if (!copy)
        return -1;
    memcpy(copy, text, size);
    if (!tune_array_fit(&t->said, (size_t)t->count, sizeof *t->said)) {
        free(copy);
        return tune_error_no_memory("a conversation");
    }
    t->said[t->count++] = (struct said){role, copy, size};
    return 0;
}

static void drop_last(struct tune_chat_session *t)
{
    free(t->said[--t->count].text);
}

/* ---- lines ---- */

/* Wait until there is something to read. 1; 0: a signal came first. Signals can come only inside
 * ppoll, so none is missed between the check and the wait. */
static int wait_for_input(struct tune_chat_session *t)
{
    struct pollfd in = {.fd = t->in, .events = POLLIN};
    sigset_t all, before;
    int ready = 0, why = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (ready == 0 && !(t->stop_signal && *t->stop_signal)) {
        ready = ppoll(&in, 1, NULL, &before);
        why = errno;
        if (ready < 0 && why == EINTR)
            ready = 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (ready < 0)
        return tune_error_set("cannot wait for the standard input: %s", strerror(why));
    return ready;
}

/* Read more bytes. 1; 0: the input ended, or a signal came. */
static int fill(struct tune_chat_session *t)
{
    int ready;
    for (;;) {
        TRY(ready = wait_for_input(t));
        if (!ready)
            return 0;
        ssize_t n = read(t->in, t->buffer, sizeof t->buffer);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return tune_error_set("cannot read the standard input: %s", strerror(errno));
        t->begin = 0;
        t->end = n > 0 ? (size_t)n : 0;
        if (n >= 0)
            return n > 0;
    }
}

/* Read a line into t->line, without its end. A backslash at its end joins the next one. 1; 0: the
 * input ended. */
static int read_line(struct tune_chat_session *t)
{
    static const char what[] = "a line of the chat";
    int more;
    t->used = 0;
    if (t->terminal)
        fputs("> ", t->notes);
    for (;;) {
        if (t->begin == t->end) {
            TRY(more = fill(t));
            t->ended = !more;
            if (!more)
                break;
        }
        char c = t->buffer[t->begin++];
        if (c == '\n' && !(t->used > 0 && t->line[t->used - 1] == '\\'))
            break;
        if (c == '\n')
            t->used--;
        if (c == 0) { /* texts end there */
            t->nuls++;
            continue;
        }
        if (t->used >= LINE_LIMIT)
            return tune_error_set("a line of the chat is longer than %d bytes", LINE_LIMIT);
        TRY(tune_array_reserve(&t->line, &t->room, t->used + 2, 1, what));
        t->line[t->used++] = c;
        if (c == '\n' && t->terminal)
            fputs(". ", t->notes);
    }
    TRY(tune_array_reserve(&t->line, &t->room, t->used + 1, 1, what));
    while (t->used > 0 && (t->line[t->used - 1] == '\r' || t->line[t->used - 1] == ' '))
        t->used--;
    t->line[t->used] = 0;
    if (t->nuls > 0)
        fprintf(t->notes, "# left out of the line: %d NUL byte%s\n", t->nuls, t->nuls == 1 ? "" : "s");
    t->nuls = 0;
    if (t->stop_signal && *t->stop_signal)
        return 0;
    return t->used > 0 || !t->ended;
}

/* ---- commands ---- */

static void tell(const struct tune_chat_session *t, const char *text)
{
    fprintf(t->notes, "# %s\n", text);
}

/* Take back the last question and its answer. */
static void undo(struct tune_chat_session *t)
{
    if (t->count == 0 || !strcmp(t->said[t->count - 1].role, "system")) {
        tell(t, "there is nothing to take back");
        return;
    }
    while (t->count > 0 && strcmp(t->said[t->count - 1].role, "user") != 0)
        drop_last(t);
    if (t->count > 0)
        drop_last(t);
    tell(t, "the last question and its answer are taken back");
}

/* Set the system message; an empty text removes it. */
static int set_system(struct tune_chat_session *t, const char *text)
{
    bool has = t->count > 0 && !strcmp(t->said[0].role, "system");
    size_t size = strlen(text);
    if (has && size == 0) {
        free(t->said[0].text);
        memmove(t->said, t->said + 1, (size_t)--t->count * sizeof *t->said);
    } else if (has) {
        char *copy = strdup(text);
        if (!copy)
            return tune_error_no_memory("a message");
        free(t->said[0].text);
        t->said[0] = (struct said){"system", copy, size};
    } else if (size > 0) {
        TRY(add(t, "system", text, size));
        struct said first = t->said[t->count - 1];
        memmove(t->said + 1, t->said, (size_t)(t->count - 1) * sizeof *t->said);
        t->said[0] = first;
    }
    tell(t, size ? "the system message is set; it holds from the next answer on"
              : has ? "the system message is gone" : "there is no system message");
    return 0;
}

/* Append the conversation to a file, as a row for training. */
static int save(struct tune_chat_session *t, const char *path)
{
    if (t->count == 0) {
        tell(t, "there is nothing to save");
        return 0;
    }
    cJSON *row = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(row, "messages");
    bool good = list != NULL;
    for (int i = 0; i < t->count && good; i++) {
        cJSON *one = cJSON_CreateObject();
        good = tune_cjson_put_text(one, "role", t->said[i].role) &&
               tune_cjson_put_text(one, "content", t->said[i].text);
        good = cJSON_AddItemToArray(list, one) && good;
    }
    char *text = good ? cJSON_PrintUnformatted(row) : NULL;
    cJSON_Delete(row);
    if (!text)
        return tune_error_no_memory("the conversation");
    FILE *file = fopen(path, "a");
    bool written = file && fprintf(file, "%s\n", text) > 0;
    written = file && fclose(file) == 0 && written;
    free(text);
    fprintf(t->notes, written ? "# appended to %s: a row of messages\n" : "# cannot write %s: %s\n", path,
            written ? "" : strerror(errno));
    return 0;
}

static void help(const struct tune_chat_session *t)
{
    static const char *const lines[] = {
        "/undo          take back the last question and its answer",
        "/clear         begin a new conversation; the system message stays",
        "/system TEXT   set the system message; without a text, remove it",
        "/save FILE     append the conversation to a file, as a row for training",
        "/quit          end; so does the end of the input",
        "//TEXT         a message that begins with a slash",
        "A backslash at the end of a line joins the next one. Ctrl-C ends an answer.",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        tell(t, lines[i]);
}

/* Serve a line that begins with a slash. 1: go on; 0: the chat ends. */
static int serve(struct tune_chat_session *t)
{
    char *word = t->line + 1, *rest = word + strcspn(word, " ");
    if (*rest)
        *rest++ = 0;
    while (*rest == ' ')
        rest++;
    if (!strcmp(word, "quit") || !strcmp(word, "exit"))
        return 0;
    if (!strcmp(word, "undo")) {
        undo(t);
    } else if (!strcmp(word, "clear")) {
        while (t->count > 0 && strcmp(t->said[t->count - 1].role, "system") != 0)
            drop_last(t);
        tell(t, "a new conversation");
    } else if (!strcmp(word, "system")) {
        TRY(set_system(t, rest));
    } else if (!strcmp(word, "save") && *rest) {
        TRY(save(t, rest));
    } else if (!strcmp(word, "save")) {
        tell(t, "/save FILE: the name of a file is missing");
    } else {
        if (strcmp(word, "help"))
            fprintf(t->notes, "# there is no command /%s\n", word);
        help(t);
    }
    return 1;
}

/* ---- turns ---- */

/* Write the conversation as tokens, ready for the answer. */
static int render(struct tune_chat_session *t)
{
    struct tune_chat_message *items = tune_zeroed((size_t)t->count, sizeof *items, "a conversation");
    if (!items)
        return -1;
    for (int i = 0; i < t->count; i++)
        items[i] = (struct tune_chat_message){.role = t->said[i].role,
                                              .content = {t->said[i].text, t->said[i].size}};
    struct tune_chat_messages chat = {.items = items, .count = t->count, .name = "the chat",
                                      .line = t->turns + 1};
    int status = tune_chat_template_render(t->template, &chat, TUNE_CHAT_GENERATION_PROMPT, &t->text);
    free(items);
    TRY(status);
    return tune_tokenizer_encode_text(t->tok, t->text.text, t->text.size, t->text.data, 0, &t->tokens);
}

/* Ask with the line. 1: the batch is ready. 0: the question was refused and taken back. */
static int ask(struct tune_prompts *p, struct tune_prompt_batch *batch)
{
    struct tune_chat_session *t = p->session;
    const char *text = t->line + (t->line[0] == '/');
    TRY(add(t, "user", text, strlen(text)));
    if (render(t) < 0 || t->tokens.count >= p->context || t->tokens.count == 0) {
        drop_last(t);
        if (t->tokens.count < p->context || tune_error_kind() != TUNE_ERROR_NONE)
            fprintf(t->notes, "# %s\n", tune_error_message());
        else
            fprintf(t->notes, "# the conversation has %lld tokens, and the context is %d; take "
                    "something back with /undo, or begin anew with /clear\n",
                    (long long)t->tokens.count, p->context);
        tune_error_clear();
        return 0;
    }
    TRY(tune_prompts_room(p, t->tokens.count));
    memcpy(p->ids, t->tokens.ids, (size_t)t->tokens.count * sizeof *p->ids);
    p->numbers[0] = t->turns++;
    *batch = (struct tune_prompt_batch){1, (int)t->tokens.count, p->ids, p->pads, p->numbers, true, p->answers};
    t->waiting = true;
    return 1;
}

int tune_chat_session_next(struct tune_prompts *p, struct tune_prompt_batch *batch)
{
    struct tune_chat_session *t = p->session;
    int more;
    while (!t->ended) {
        TRY(more = read_line(t));
        if (!more)
            break;
        if (t->used == 0)
            continue;
        if (t->line[0] == '/' && t->line[1] != '/') {
            TRY(more = serve(t));
            if (!more)
                return 0;
            continue;
        }
        TRY(more = ask(p, batch));
        if (more)
            return 1;
    }
    if (t->terminal)
        fputc('\n', t->notes);
    return 0;
}

int tune_chat_session_answered(struct tune_chat_session *t, const char *text, size_t size)
{
    if (!t->waiting)
        return 0;
    t->waiting = false;
    if (t->stop_signal && *t->stop_signal == SIGINT && !t->ended)
        *t->stop_signal = 0; /* it ended the answer, not the chat */
    return add(t, "assistant", text, size);
}

/* Write a conversation of one question, so that a template that cannot is known at the start. */
static int prove(struct tune_chat_session *t)
{
    TRY(add(t, "user", "Hello", 5));
    int status = render(t);
    drop_last(t);
    return status;
}

struct tune_prompts *tune_prompts_open_chat(struct tune_chat_template *template,
                                            struct tune_tokenizer *tok, const char *system,
                                            int context, int in, FILE *notes,
                                            volatile int *stop_signal)
{
    struct tune_prompts *p = tune_prompts_new(1, context);
    struct tune_chat_session *t = p ? tune_zeroed(1, sizeof *t, "a chat") : NULL;
    if (!t) {
        tune_chat_template_free(template);
        tune_prompts_free(p);
        return NULL;
    }
    *t = (struct tune_chat_session){.template = template, .tok = tok, .stop_signal = stop_signal,
                            .in = in, .notes = notes, .terminal = isatty(in) && isatty(fileno(notes))};
    p->session = t;
    if (prove(t) < 0) {
        tune_prompts_free(p);
        return NULL;
    }
    snprintf(p->about, sizeof p->about, "chat template %.1000s", tune_chat_template_name(template));
    if (!system || add(t, "system", system, strlen(system)) == 0)
        return p;
    tune_prompts_free(p);
    return NULL;
}
