/* chat_render.c - render a conversation, and find the bytes that assistants wrote. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "templates/chat_parts.h"
#include "templates/jinja_parts.h"

/* A message in a render. The bytes of its strings carry its mark. */
struct told {
    bool assistant;
    struct tune_jinja_turn turn;
};
enum { MOST_REPEATED = 256 << 20 }; /* bytes to search for a message's data outside its span */

/* A copy of a render's result: text, marks, and the turns of its messages. */
struct rendered {
    char *text;
    uint8_t *marks;
    size_t size;
    struct told *told;
    size_t said, left_out; /* of struct tune_chat_text; not of prompts */
    bool calls_changed;
};

void tune_chat_text_free(struct tune_chat_text *text)
{
    free(text->text);
    free(text->data);
    free(text->spans);
    *text = (struct tune_chat_text){0};
}

/* ---- one render ---- */

static bool with_tools(const struct tune_chat_template *t, const struct tune_chat_messages *messages)
{
    return messages->tools.data && t->tools;
}

static int set_variables(const struct tune_chat_template *t, jrun *run, const struct tune_chat_messages *messages, int count,
                         bool prompt, struct rendered *r, jval *list)
{
    jval item, key = tune_jinja_word("messages");
    enum tune_chat_calls calls = messages->strict ? TUNE_CALLS_AS_THEY_ARE : t->calls[with_tools(t, messages)];
    for (int i = 0; i < t->special_count; i++)
        TRY(tune_jinja_set_text(run, t->special[i].name, t->special[i].text, strlen(t->special[i].text)));
    TRY(tune_jinja_list_new(run, (size_t)count, false, list));
    for (int i = 0; i < count; i++) {
        TRY(tune_chat_read_message(run, t->joins, calls, messages, i, &item, &r->calls_changed));
        TRY(tune_jinja_list_add(run, list, item));
        r->told[i].assistant = tune_jinja_is(tune_chat_member(run, &item, "role"), "assistant");
        item.dict->turn = &r->told[i].turn;
    }
    run->mark = TUNE_JINJA_DATA;
    TRY(tune_jinja_dict_put(run, &run->globals.names, key, *list));
    TRY(tune_jinja_set_bool(run, "add_generation_prompt", prompt));
    TRY(tune_jinja_set_none(run, "documents"));
    if (!messages->tools.data)
        return tune_jinja_set_none(run, "tools");
    return tune_jinja_set_json(run, "tools", messages->tools.data, messages->tools.size, messages->name ? messages->name : "tools",
                               messages->line);
}

static void drop(struct rendered *r)
{
    free(r->text);
    free(r->marks);
    free(r->told);
    *r = (struct rendered){0};
}

static int render(const struct tune_chat_template *t, const struct tune_chat_messages *messages, int count, bool prompt,
                  struct rendered *r)
{
    struct tune_jinja_output out;
    jval list;
    jrun *run = tune_jinja_begin(with_tools(t, messages) ? t->tools : t->plain, t->seconds);
    *r = (struct rendered){.told = calloc((size_t)count + 1, sizeof *r->told)};
    int failed = !run || (!r->told && tune_chat_no_memory()) || set_variables(t, run, messages, count, prompt, r, &list) < 0 ||
                 tune_jinja_render(run, &out) < 0;
    for (int i = 0; !failed && !prompt && i < count; i++)
        if (r->told[i].assistant)
            failed = tune_chat_left_out(run, &list.list->items[i], tune_chat_mark(i), &r->told[i].turn, &out, &r->said, &r->left_out) < 0;
    if (!failed) {
        r->text = malloc(out.size + 1);
        r->marks = malloc(out.size + 1);
        r->size = out.size;
        failed = (!r->text || !r->marks) && tune_chat_no_memory();
    }
    if (failed)
        drop(r);
    else if (memcpy(r->text, out.text, out.size + 1) && out.size)
        memcpy(r->marks, out.marks, out.size);
    tune_jinja_end(run);
    return failed ? -1 : 0;
}

/* True if the template writes the text of such a message, and nothing of the list around it. */
static bool writes(const struct tune_chat_template *t, const char *json)
{
    const struct tune_chat_message said = {.json = {json, strlen(json)}};
    const struct tune_chat_messages chat = {.items = &said, .count = 1};
    struct rendered r;
    bool good = render(t, &chat, 1, false, &r) == 0 && strstr(r.text, "a part of it") && !strstr(r.text, "'text'") &&
                !strstr(r.text, "\"text\"");
    drop(&r);
    return good;
}

void tune_chat_settle_content(struct tune_chat_template *t)
{
    static const char list[] = "{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a part of it\"}]}";
    static const char string[] = "{\"role\": \"user\", \"content\": \"a part of it\"}";
    t->joins = !writes(t, list) && writes(t, string);
    tune_error_clear();
}

/* True if the template writes a call with these arguments as JSON, or each of them by itself. */
static bool writes_call(const struct tune_chat_template *t, bool tools, const char *arguments)
{
    char json[512];
    struct tune_chat_message items[3] = {{.role = "user", .content = {"Hi", 2}}, {.json = {json, 0}},
        {.json = {"{\"role\": \"tool\", \"name\": \"look\", \"tool_call_id\": \"abcdefghi\", \"content\": \"1\"}", 0}}};
    struct tune_chat_messages chat = {.items = items, .count = 3, .tools = {tools ? "[]" : NULL, 2}, .strict = true};
    struct rendered r;
    snprintf(json, sizeof json, "{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{\"id\": \"abcdefghi\", \"type\": \"function\", "
             "\"function\": {\"name\": \"look\", \"arguments\": %s}}]}", arguments);
    items[1].json.size = strlen(json);
    items[2].json.size = strlen(items[2].json.data);
    bool good = render(t, &chat, 3, false, &r) == 0 && strstr(r.text, "a key") && strstr(r.text, "a value") &&
                !strstr(r.text, "\\\"a key") && !strstr(r.text, "'a key'");
    drop(&r);
    tune_error_clear();
    return good;
}

void tune_chat_settle_calls(struct tune_chat_template *t)
{
    for (int tools = 0; tools <= (t->tools != NULL); tools++) {
        bool text = writes_call(t, tools, "\"{\\\"a key\\\": \\\"a value\\\"}\""), object = writes_call(t, tools, "{\"a key\": \"a value\"}");
        t->calls[tools] = text == object ? TUNE_CALLS_AS_THEY_ARE : text ? TUNE_CALLS_AS_TEXT : TUNE_CALLS_AS_OBJECTS;
    }
}

/* ---- what assistants wrote ---- */
static bool border(const struct rendered *r, size_t at)
{
    return at == r->size || (r->marks[at] & TUNE_JINJA_PIECE);
}

static bool is_data(const struct rendered *r, size_t at)
{
    return r->marks[at] & TUNE_JINJA_DATA;
}

static bool is_blank(const struct rendered *r, size_t at)
{
    return r->text[at] == ' ' || (r->text[at] >= '\t' && r->text[at] <= '\r');
}

/* Length of the common beginning of two renders, in whole pieces of the template's output. */
static size_t common(const struct rendered *a, const struct rendered *b)
{
    size_t n = 0, least = a->size < b->size ? a->size : b->size;
    while (n < least && a->text[n] == b->text[n])
        n++;
    while (n > 0 && !(border(a, n) && border(b, n)))
        n--;
    return n;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The end of [begin, end) without trailing white space of the template. */
static size_t without_space(const struct rendered *r, size_t begin, size_t end)
{
    while (end > begin && !is_data(r, end - 1) && is_blank(r, end - 1))
        end--;
    return end;
}

static int unplaced(const struct tune_chat_template *t, int message, const char *why)
{
    return tune_error_set("message %d: what the assistant wrote cannot be told from what the "
                          "template writes around it, for %s (%s); train on all of the text, or "
                          "give a `chat_template` that writes messages one by one (chatml)",
                          message + 1, why, t->where);
}

/* Words in headers. */
static const char *const own_words[] = {"assistant", "model", "bot", "chatbot", "gpt", "ai", NULL};
static const char *const other_words[] = {"user", "human", NULL};

/* True if [begin, end) contains one of the words, in any case. No letter, digit or _ may stand next
 * to it, and no / before it, as in </word>. */
static bool holds_word(const struct rendered *r, size_t begin, size_t end, const char *const *words)
{
    for (; *words; words++) {
        size_t size = strlen(*words);
        for (size_t k = begin; k + size <= end; k++) {
            char before = k > begin ? r->text[k - 1] : ' ', after = k + size < end ? r->text[k + size] : ' ';
            if (strncasecmp(r->text + k, *words, size) == 0 && !is_letter(before) && before != '/' && !is_letter(after))
                return true;
        }
    }
    return false;
}

/* True if the rest of a prompt, from `at`, belongs to the coming answer only. It is white space, or
 * the start of reasoning (<think>), which its first line shows, and no header. */
static bool only_to_come(const struct rendered *before, size_t at)
{
    static const char *const words[] = {"think", "thought", "reason"};
    while (at < before->size && is_blank(before, at))
        at++;
    size_t end = at;
    bool reasons = at == before->size;
    while (end < before->size && before->text[end] != '\n')
        end++;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (size_t k = at; k + strlen(words[i]) <= end; k++)
            reasons |= strncasecmp(before->text + k, words[i], strlen(words[i])) == 0;
    return reasons && !holds_word(before, at, before->size, own_words);
}

/* Length of the turn's header: what the turn and `before` have in common, from `at` on. If they
 * differ before the end of `before`, the header ends earlier. It ends where the last piece of the
 * template or of data begins, or after white space. The rest of `before` must then begin the answer, and the
 * turn must not go on in the middle of a word. Otherwise the result is 0, since the prompt may spell
 * the header in another way. */
static size_t header(const struct rendered *full, const struct tune_jinja_turn *turn, const struct rendered *before, size_t at)
{
    size_t n = 0;
    while (at + n < before->size && turn->begin + n < turn->end && !is_data(full, turn->begin + n) && !is_data(before, at + n) &&
           full->text[turn->begin + n] == before->text[at + n])
        n++;
    size_t same = n;
    if (at + n < before->size)
        while (n > 0 && !border(full, turn->begin + n) && !is_data(full, turn->begin + n))
            n--;
    while (n > 0 && n < same && is_blank(full, turn->begin + n))
        n++;
    if (at + n < before->size && turn->begin + n < turn->end && !is_data(full, turn->begin + n) &&
        is_letter(full->text[turn->begin + n]))
        return 0;
    return only_to_come(before, at + n) ? n : 0;
}

/* Find a turn's header if the template writes earlier turns in another way than the last. The turn
 * begins with the header that ends the generation prompt. The prompt is the text after the previous
 * turn, or what the generation prompt adds. It may continue after the header with the start of an
 * answer (<think>). */
static int behind_header(const struct tune_chat_template *t, const struct tune_chat_messages *messages, int i,
                         const struct rendered *full, const struct rendered *before, size_t *begin)
{
    const struct tune_jinja_turn *turn = &full->told[i].turn, *last = i > 0 ? &before->told[i - 1].turn : NULL;
    struct rendered without;
    TRY(render(t, messages, i, false, &without));
    size_t at = common(&without, before), n = last && last->times == 1 ? header(full, turn, before, last->end) : 0;
    drop(&without);
    if (n == 0)
        n = header(full, turn, before, at);
    if (n == 0 && at < before->size)
        return unplaced(t, i, "it does not begin as the generation prompt says");
    *begin = turn->begin + n;
    return 0;
}

/* Find a span without a loop over the messages. It begins after the prompt. It ends where the
 * render up to the message stops agreeing with the whole text. */
static int between(const struct tune_chat_template *t, const struct tune_chat_messages *messages, int i,
                   const struct rendered *full, struct tune_chat_span *span)
{
    struct rendered before = {0}, other = {0};
    bool last = i + 1 == messages->count, data = false, told = false;
    const struct rendered *upto = last ? full : &other, *sequel = last ? &other : full;
    int failed = -1;
    if (render(t, messages, i, true, &before) == 0 && render(t, messages, i + 1, last, &other) == 0) {
        size_t end = common(upto, sequel);
        for (size_t k = before.size; k < upto->size; k++) {
            data |= k >= end && is_data(upto, k);
            told |= k < end && !is_blank(upto, k);
        }
        if (end < before.size || memcmp(before.text, full->text, before.size) != 0 || data || !told)
            unplaced(t, i, "no loop over the messages writes it, and the text around it changes with what follows");
        else
            failed = 0;
        *span = (struct tune_chat_span){before.size, end, i};
    }
    drop(&before);
    drop(&other);
    return failed;
}

/* Find the first message's header if the generation prompt without messages does not tell it. It is
 * what the generation prompt adds behind a user, and stands before what the assistant says. */
static int behind_first_header(const struct tune_chat_template *t, const struct tune_chat_messages *messages,
                               const struct rendered *full, size_t *begin)
{
    const struct tune_chat_message user = {.role = "user", .content = {"x", 1}};
    const struct tune_chat_messages one = {.items = &user, .count = 1, .name = messages->name, .line = messages->line};
    const struct tune_jinja_turn *turn = &full->told[0].turn;
    struct rendered with = {0}, without = {0};
    size_t at = turn->begin, size = 0;
    bool found = false;
    while (at < turn->end && !is_data(full, at))
        at++;
    if (render(t, &one, 1, true, &with) == 0 && render(t, &one, 1, false, &without) == 0) {
        size_t from = common(&without, &with);
        size = with.size - from;
        found = size > 0 && at < turn->end && at - turn->begin >= size && memcmp(full->text + at - size, with.text + from, size) == 0;
    }
    drop(&with);
    drop(&without);
    *begin = at;
    return found ? 0 : unplaced(t, 0, "the assistant speaks first");
}

/* Find a message's span in its turn, the text of one iteration of the loop over the messages. All
 * data in it must be the message's. It begins after the prompt, with which the whole text must
 * begin. */
static int place(const struct tune_chat_template *t, const struct tune_chat_messages *messages, int i, const struct rendered *full,
                 struct tune_chat_span *span)
{
    const struct tune_jinja_turn *turn = &full->told[i].turn;
    struct rendered before;
    size_t begin = 0, end = turn->end, data = turn->begin;
    if (turn->times == 0) {
        TRY(between(t, messages, i, full, span));
        span->end = without_space(full, span->begin, span->end);
        return 0;
    }
    if (turn->times > 1)
        return unplaced(t, i, "more than one loop over the messages writes it");
    for (size_t k = turn->begin; k < turn->end; k++) {
        if (is_data(full, k) && (full->marks[k] & ~TUNE_JINJA_PIECE) != tune_chat_mark(i))
            return unplaced(t, i, "it is written together with something that it does not say");
        data = is_data(full, k) ? k + 1 : data;
    }
    int failed = 0;
    if (render(t, messages, i, true, &before) < 0)
        failed = -1;
    else if (before.size >= turn->begin && before.size <= turn->end && memcmp(before.text, full->text, before.size) == 0)
        begin = before.size;
    else
        failed = behind_header(t, messages, i, full, &before, &begin);
    drop(&before);
    if (failed && i == 0 && tune_error_kind() != TUNE_ERROR_CANNOT)
        failed = behind_first_header(t, messages, full, &begin);
    if (failed)
        return -1;
    /* the end of turn is written after the loop */
    if (i + 1 == messages->count && without_space(full, begin, end) <= (data > begin ? data : begin))
        end = full->size;
    *span = (struct tune_chat_span){begin, without_space(full, begin, end), i};
    return 0;
}

/* True if the message's data outside its span only repeats data in the span, such as the name of a
 * called tool. Data before the span in its own turn, or with the same number in another message's
 * turn, does not count as a repeat. */
static bool only_repeated(const struct rendered *full, const struct tune_chat_messages *messages, int i,
                          const struct tune_chat_span *span)
{
    const uint8_t mark = tune_chat_mark(i), pure = (uint8_t)~TUNE_JINJA_PIECE;
    size_t work = 0;
    for (size_t k = 0, end; k < full->size; k = end) {
        for (end = k + 1; end < full->size && (full->marks[end] & pure) == (full->marks[k] & pure);)
            end++;
        bool mine = (full->marks[k] & pure) == mark && !(k >= full->told[i].turn.begin && k < span->end);
        for (int j = i % TUNE_CHAT_ORIGINS; j < messages->count && mine; j += TUNE_CHAT_ORIGINS) {
            const struct tune_jinja_turn *turn = &full->told[j].turn;
            mine = j == i || (turn->times > 0 && !(k >= turn->begin && k < turn->end));
        }
        work += mine ? span->end - span->begin : 0;
        if (mine && (work > MOST_REPEATED || !memmem(full->text + span->begin, span->end - span->begin, full->text + k, end - k)))
            return false;
    }
    return true;
}

/* Check a span: no data of another message, no header, and all data of its message. */
static int check(const struct tune_chat_template *t, const struct tune_chat_messages *messages, int i, const struct rendered *full,
                 const struct tune_chat_span *span)
{
    size_t first = span->end, last = span->end;
    for (size_t k = span->begin; k < span->end; k++) {
        if (!is_data(full, k))
            continue;
        if ((full->marks[k] & ~TUNE_JINJA_PIECE) != tune_chat_mark(i))
            return unplaced(t, i, "it is written together with something that it does not say");
        first = first == span->end ? k : first;
        last = k + 1;
    }
    if (holds_word(full, span->begin, first, own_words))
        return unplaced(t, i, "it begins with what looks like a header, which no generation prompt tells");
    const char *behind = full->text + last, *close = last < span->end ? memchr(behind, '>', span->end - last) : NULL;
    /* a token such as <|user|> may end a turn */
    bool token = close && *behind == '<' && close + 1 == full->text + span->end;
    if (holds_word(full, last, span->end, other_words) && !token)
        return unplaced(t, i, "it ends with what looks like the next message's header");
    if (!only_repeated(full, messages, i, span))
        return unplaced(t, i, "some of what it says stands elsewhere in the text");
    return 0;
}

static int find_spans(const struct tune_chat_template *t, const struct tune_chat_messages *messages, const struct rendered *full,
                      struct tune_chat_text *out)
{
    struct tune_chat_span *spans = realloc(out->spans, (size_t)(messages->count + 1) * sizeof *spans);
    if (!spans)
        return tune_chat_no_memory();
    out->spans = spans;
    for (int i = 0; i < messages->count; i++) {
        if (!full->told[i].assistant)
            continue;
        TRY(place(t, messages, i, full, &spans[out->span_count]));
        TRY(check(t, messages, i, full, &spans[out->span_count]));
        if (out->span_count > 0 && spans[out->span_count].begin < spans[out->span_count - 1].end)
            return unplaced(t, i, "it begins before the one before it ends");
        out->span_count++;
    }
    return 0;
}

int tune_chat_template_render(struct tune_chat_template *t, const struct tune_chat_messages *messages, int options,
                              struct tune_chat_text *out)
{
    struct rendered full;
    out->size = 0;
    out->span_count = 0;
    out->said = out->left_out = 0;
    int failed = render(t, messages, messages->count, options == TUNE_CHAT_GENERATION_PROMPT, &full);
    if (!failed && (options & TUNE_CHAT_SPANS))
        failed = find_spans(t, messages, &full, out);
    if (failed) {
        drop(&full);
        out->span_count = 0;
        if (messages->name && !strstr(tune_error_message(), messages->name))
            tune_error_prefix("%s:%lld: ", messages->name, (long long)messages->line);
        return -1;
    }
    free(out->text);
    free(out->data);
    for (size_t i = 0; i < full.size; i++)
        full.marks[i] &= TUNE_JINJA_DATA;
    free(full.told);
    out->text = full.text;
    out->data = full.marks;
    out->size = full.size;
    out->said = full.said;
    out->left_out = full.left_out;
    out->calls_changed = full.calls_changed;
    return 0;
}
