/* chat_template.c - where a model's template is, what it is given, and which bytes assistants wrote. */
#include "tokenizers/chat_template.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/cjson.h"
#include "core/file.h"
#include "core/nearest.h"
#include "tokenizers/jinja_parts.h"

enum { CONFIG_LIMIT = 64 << 20, NAMES = 64 };

struct named {
    char *name, *text, *where;
    size_t size;
};

struct chat_special {
    char *name, *text;
};

struct tune_chat_template {
    struct tune_jinja *plain, *tools; /* tools NULL: none of its own */
    struct named found[NAMES];        /* in the model's folder */
    int found_count;
    struct chat_special special[NAMES];
    int special_count;
    char *where;
    uint64_t hash;
    int64_t seconds;
};

/* One message in a render. The bytes of its strings have a number of their own in the marks above TUNE_JINJA_PIECE. */
struct told {
    bool assistant;
    struct tune_jinja_turn turn;
};
enum { ORIGINS = 63, ORIGIN = TUNE_JINJA_PIECE << 1 };

/* What one render gave, of our own: text, marks, and where its messages are. */
struct rendered {
    char *text;
    uint8_t *marks;
    size_t size;
    struct told *told;
};

void tune_chat_text_free(struct tune_chat_text *text)
{
    free(text->text);
    free(text->data);
    free(text->spans);
    *text = (struct tune_chat_text){0};
}

void tune_chat_template_free(struct tune_chat_template *t)
{
    if (!t)
        return;
    for (int i = 0; i < t->found_count; i++) {
        free(t->found[i].name);
        free(t->found[i].text);
        free(t->found[i].where);
    }
    for (int i = 0; i < t->special_count; i++) {
        free(t->special[i].name);
        free(t->special[i].text);
    }
    tune_jinja_free(t->plain);
    tune_jinja_free(t->tools);
    free(t->where);
    free(t);
}

const char *tune_chat_template_name(const struct tune_chat_template *t)
{
    return t->where;
}

uint64_t tune_chat_template_hash(const struct tune_chat_template *t)
{
    return t->hash;
}

void tune_chat_template_date(struct tune_chat_template *t, int64_t seconds)
{
    t->seconds = seconds;
}

static int no_memory(void)
{
    tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory for a chat template");
    return -1;
}

/* Takes text over, also where it fails. */
static int add(struct tune_chat_template *t, const char *name, char *text, size_t size, const char *where)
{
    struct named *n = &t->found[t->found_count];
    if (t->found_count == NAMES) {
        free(text);
        tune_error_set("%s: more than %d chat templates", where, NAMES);
        return -1;
    }
    t->found_count++;
    *n = (struct named){.name = strdup(name), .text = text, .where = strdup(where), .size = size};
    return n->name && n->text && n->where ? 0 : no_memory();
}

static int add_file(struct tune_chat_template *t, const char *name, const char *path)
{
    char *text;
    size_t size;
    return tune_file_read(path, TUNE_JINJA_TEMPLATE_BYTES, &text, &size) < 0 ? -1 : add(t, name, text, size, path);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* additional_chat_templates/NAME.jinja, in the order of their names. */
static int add_folder(struct tune_chat_template *t, const char *folder)
{
    char path[TUNE_PATH_MAX], *names[NAMES];
    int count = 0, failed = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) && count < NAMES;) {
        size_t size = strlen(e->d_name);
        if (size > 6 && strcmp(e->d_name + size - 6, ".jinja") == 0 && (names[count] = strndup(e->d_name, size - 6)))
            count++;
    }
    if (d)
        closedir(d);
    qsort(names, (size_t)count, sizeof *names, by_name);
    for (int i = 0; i < count; i++) {
        failed |= failed || tune_path(path, "%s/%s.jinja", folder, names[i]) < 0 || add_file(t, names[i], path) < 0;
        free(names[i]);
    }
    return failed ? -1 : 0;
}

static int add_special(struct tune_chat_template *t, const cJSON *item)
{
    const cJSON *content = cJSON_IsObject(item) ? cJSON_GetObjectItemCaseSensitive(item, "content") : item;
    size_t size = strlen(item->string);
    if (size < 7 || strcmp(item->string + size - 6, "_token") != 0 || !cJSON_IsString(content) || t->special_count == NAMES)
        return 0;
    struct chat_special *s = &t->special[t->special_count++];
    *s = (struct chat_special){strdup(item->string), strdup(content->valuestring)};
    return s->name && s->text ? 0 : no_memory();
}

static int read_config(struct tune_chat_template *t, const char *path)
{
    cJSON *config = tune_cjson_read(path, CONFIG_LIMIT);
    const cJSON *item, *template = cJSON_GetObjectItemCaseSensitive(config, "chat_template");
    int failed = !config;
    cJSON_ArrayForEach(item, config)
        failed = failed || (item->string && add_special(t, item) < 0);
    if (failed || t->found_count > 0 || !template || cJSON_IsNull(template)) {
        cJSON_Delete(config);
        return failed ? -1 : 0;
    }
    if (cJSON_IsString(template))
        failed = add(t, "default", strdup(template->valuestring), strlen(template->valuestring), path);
    else if (cJSON_IsArray(template))
        cJSON_ArrayForEach(item, template) {
            const cJSON *name = cJSON_GetObjectItemCaseSensitive(item, "name");
            const cJSON *text = cJSON_GetObjectItemCaseSensitive(item, "template");
            if (!failed && cJSON_IsString(name) && cJSON_IsString(text))
                failed = add(t, name->valuestring, strdup(text->valuestring), strlen(text->valuestring), path);
        }
    else
        tune_error_set("%s: chat_template is neither a string nor a list of name and template", path), failed = -1;
    cJSON_Delete(config);
    return failed;
}

static const struct named *named(const struct tune_chat_template *t, const char *name)
{
    for (int i = 0; i < t->found_count; i++)
        if (strcmp(t->found[i].name, name) == 0)
            return &t->found[i];
    return NULL;
}

static int use(struct tune_chat_template *t, struct tune_jinja **to, const struct named *n)
{
    char name[TUNE_PATH_MAX + 128];
    snprintf(name, sizeof name, strcmp(n->name, "default") && t->found_count ? "%s (%.100s)" : "%s", n->where, n->name);
    if (!t->where && !(t->where = strdup(name)))
        return no_memory();
    t->hash = tune_hash64(n->text, n->size, t->hash);
    for (int i = 0; i < t->special_count; i++)
        if (memmem(n->text, n->size, t->special[i].name, strlen(t->special[i].name)))
            t->hash = tune_hash64(t->special[i].text, strlen(t->special[i].text), t->hash);
    return (*to = tune_jinja_open(name, n->text, n->size)) ? 0 : -1;
}

/* chosen is NULL, and the model has none, or nothing has this name: which there are. */
static int unknown(const struct tune_chat_template *t, const char *folder, const char *chosen, const char *defaults)
{
    const char *names[NAMES * 2];
    char text[512] = "", *ours[NAMES];
    int count = 0, own = 0;
    size_t at = 0;
    DIR *d = opendir(defaults);
    for (struct dirent *e; d && (e = readdir(d)) && own < NAMES;) {
        size_t size = strlen(e->d_name);
        if (size > 6 && strcmp(e->d_name + size - 6, ".jinja") == 0 && (ours[own] = strndup(e->d_name, size - 6)))
            own++;
    }
    if (d)
        closedir(d);
    qsort(ours, (size_t)own, sizeof *ours, by_name);
    for (int i = 0; i < t->found_count; i++)
        names[count++] = t->found[i].name;
    for (int i = 0; i < own; i++)
        names[count++] = ours[i];
    for (int i = 0; i < count && at < sizeof text; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i ? ", " : "", names[i]);
    const char *near = chosen ? tune_nearest(chosen, names, count, NULL) : NULL;
    if (chosen)
        tune_error_set_kind(TUNE_ERROR_USAGE, "--chat-template: there is no template %.200s; did you mean %s? There are: %s; or "
                            "the path of a file, with a '/' or .jinja at its end", chosen, near ? near : "a file", text);
    else
        tune_error_set_kind(TUNE_ERROR_USAGE, "%.300s has no chat template of its own%s; give --chat-template NAME (there are: %s) "
                            "or the path of a file", folder ? folder : "the model",
                            folder ? " (no chat_template.jinja, none in tokenizer_config.json)" : "", text);
    for (int i = 0; i < own; i++)
        free(ours[i]);
    return -1;
}

static int choose(struct tune_chat_template *t, const char *folder, const char *chosen)
{
    char path[TUNE_PATH_MAX], ours[TUNE_PATH_MAX] = "";
    const struct named *n = named(t, chosen ? chosen : "default");
    size_t size = chosen ? strlen(chosen) : 0;
    if (!chosen && !n) {
        if (tune_defaults_path(ours, "chat_templates") < 0)
            *ours = 0; /* the path of a file is left */
        return unknown(t, folder, NULL, ours);
    }
    if (!n && (strchr(chosen, '/') || (size > 6 && strcmp(chosen + size - 6, ".jinja") == 0))) {
        TRY(add_file(t, chosen, chosen));
        n = &t->found[t->found_count - 1];
        struct named plain = *n;
        plain.name = "default";
        return use(t, &t->plain, &plain);
    }
    if (!n) {
        if (tune_defaults_path(ours, "chat_templates") < 0 || tune_path(path, "%s/%s.jinja", ours, chosen) < 0 ||
            !tune_file_exists(path))
            return unknown(t, folder, chosen, ours);
        TRY(add_file(t, "default", path));
        return use(t, &t->plain, &t->found[t->found_count - 1]);
    }
    TRY(use(t, &t->plain, n));
    return !chosen && named(t, "tool_use") ? use(t, &t->tools, named(t, "tool_use")) : 0;
}

struct tune_chat_template *tune_chat_template_open(const char *model_folder, const char *chosen)
{
    char path[TUNE_PATH_MAX];
    struct tune_chat_template *t = calloc(1, sizeof *t);
    if (!t) {
        no_memory();
        return NULL;
    }
    t->seconds = -1;
    if (model_folder) {
        if (tune_path(path, "%s/chat_template.jinja", model_folder) < 0 ||
            (tune_file_exists(path) && add_file(t, "default", path) < 0) ||
            tune_path(path, "%s/additional_chat_templates", model_folder) < 0 || add_folder(t, path) < 0 ||
            tune_path(path, "%s/tokenizer_config.json", model_folder) < 0 || (tune_file_exists(path) && read_config(t, path) < 0))
            goto fail;
    }
    if (choose(t, model_folder, chosen) == 0)
        return t;
fail:
    tune_chat_template_free(t);
    return NULL;
}

/* ---- one render ---- */
static const jval *member(jrun *run, const jval *message, const char *name)
{
    return tune_jinja_dict_find(run, message->dict, (struct tune_text){name, strlen(name)});
}

/* Reasoning has several names: each template finds it under the one it reads, as in transformers. */
static int alias_reasoning(jrun *run, jval *message)
{
    static const char *const names[] = {"reasoning_content", "thinking", "reasoning"};
    const jval *reasoning = NULL;
    jval all;
    for (int i = 0; i < 3 && !reasoning; i++)
        reasoning = member(run, message, names[i]);
    if (!reasoning)
        return 0;
    TRY(tune_jinja_dict_new(run, &all));
    TRY(tune_jinja_dict_put(run, all.dict, tune_jinja_word("thinking"), *reasoning));
    for (size_t i = 0; i < message->dict->count; i++)
        TRY(tune_jinja_dict_put(run, all.dict, message->dict->keys[i], message->dict->values[i]));
    TRY(tune_jinja_dict_put(run, all.dict, tune_jinja_word("reasoning_content"), *reasoning));
    *message = all;
    return 0;
}

/* A role that is a plain word is the template's as much as the brackets that it puts around it: '<|' + message.role + '|>' is
 * the token <|user|> for models that have it, as in transformers. Anything else in its place stays data. */
static jval as_role(jval role)
{
    for (size_t i = 0; i < role.size; i++)
        if (!(role.text[i] >= 'a' && role.text[i] <= 'z') && !(role.text[i] >= 'A' && role.text[i] <= 'Z') && role.text[i] != '_')
            return role;
    role.mark = 0;
    return role;
}

static uint8_t mark_of(int index)
{
    return (uint8_t)(TUNE_JINJA_DATA | (index % ORIGINS + 1) * ORIGIN);
}

static int read_message(jrun *run, const struct tune_chat_messages *messages, int index, jval *v)
{
    const struct tune_chat_message *m = &messages->items[index];
    jval all, role, content;
    TRY(tune_jinja_dict_new(run, v));
    run->mark = mark_of(index);
    if (!m->json.data) {
        size_t bad;
        if (!tune_utf8_valid(m->content.data, m->content.size, &bad)) {
            tune_error_set("message %d is not UTF-8 at byte %zu", index + 1, bad);
            return -1;
        }
        TRY(tune_jinja_copy_text(run, m->role, strlen(m->role), run->mark, &role));
        TRY(tune_jinja_copy_text(run, m->content.data, m->content.size, run->mark, &content));
        TRY(tune_jinja_dict_put(run, v->dict, tune_jinja_word("role"), as_role(role)));
        return tune_jinja_dict_put(run, v->dict, tune_jinja_word("content"), content);
    }
    struct tune_json j;
    tune_json_start(&j, messages->name ? messages->name : "message", m->json.data, m->json.size, messages->line);
    int failed = tune_jinja_read_json(run, &j, 2, &all) < 0 || tune_json_end(&j) < 0;
    tune_json_free(&j);
    if (failed)
        return -1;
    const jval *found = all.type == JINJA_DICT ? member(run, &all, "role") : NULL;
    if (!found || found->type != JINJA_TEXT) {
        tune_error_set("message %d is no object with a role", index + 1);
        return -1;
    }
    TRY(tune_jinja_dict_put(run, all.dict, tune_jinja_word("role"), as_role(*found)));
    for (size_t i = 0; i < all.dict->count; i++)
        if (all.dict->values[i].type != JINJA_NONE)
            TRY(tune_jinja_dict_put(run, v->dict, all.dict->keys[i], all.dict->values[i]));
    return alias_reasoning(run, v);
}

static int set_variables(const struct tune_chat_template *t, jrun *run, const struct tune_chat_messages *messages, int count,
                         bool prompt, struct told *told)
{
    jval list, item, key = tune_jinja_word("messages");
    for (int i = 0; i < t->special_count; i++)
        TRY(tune_jinja_set_text(run, t->special[i].name, t->special[i].text, strlen(t->special[i].text)));
    TRY(tune_jinja_list_new(run, (size_t)count, false, &list));
    for (int i = 0; i < count; i++) {
        TRY(read_message(run, messages, i, &item));
        TRY(tune_jinja_list_add(run, &list, item));
        told[i].assistant = tune_jinja_is(member(run, &item, "role"), "assistant");
        item.dict->turn = &told[i].turn;
    }
    run->mark = TUNE_JINJA_DATA;
    TRY(tune_jinja_dict_put(run, &run->globals.names, key, list));
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
    jrun *run = tune_jinja_begin(messages->tools.data && t->tools ? t->tools : t->plain, t->seconds);
    *r = (struct rendered){.told = calloc((size_t)count + 1, sizeof *r->told)};
    int failed = !run || (!r->told && no_memory()) || set_variables(t, run, messages, count, prompt, r->told) < 0 ||
                 tune_jinja_render(run, &out) < 0;
    if (!failed) {
        r->text = malloc(out.size + 1);
        r->marks = malloc(out.size + 1);
        r->size = out.size;
        failed = (!r->text || !r->marks) && no_memory();
    }
    if (failed)
        drop(r);
    else if (memcpy(r->text, out.text, out.size + 1) && out.size)
        memcpy(r->marks, out.marks, out.size);
    tune_jinja_end(run);
    return failed ? -1 : 0;
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

/* What two renders have in common from the beginning, in whole pieces of what the template wrote. */
static size_t common(const struct rendered *a, const struct rendered *b)
{
    size_t n = 0, least = a->size < b->size ? a->size : b->size;
    while (n < least && a->text[n] == b->text[n])
        n++;
    while (n > 0 && !(border(a, n) && border(b, n)))
        n--;
    return n;
}

/* The end of [begin, end) less white space of the template's. */
static size_t without_space(const struct rendered *r, size_t begin, size_t end)
{
    while (end > begin && !is_data(r, end - 1) && is_blank(r, end - 1))
        end--;
    return end;
}

static int unplaced(const struct tune_chat_template *t, int message, const char *why)
{
    tune_error_set("message %d: what the assistant wrote cannot be told from what the template writes around it, for %s (%s); "
                   "train on all of the text, or give a --chat-template that writes messages one by one (chatml)", message + 1, why,
                   t->where);
    return -1;
}

/* How much of a turn is the text of `before` from `at` on: all of that, or up to what the template wrote or the message said where
 * the turn goes on in its own way; white space there is still the header's. */
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
    return n;
}

/* Under a template that writes earlier turns otherwise than last ones: a turn begins with the header that the generation prompt
 * ends with. The prompt is what stands behind the turn before it, or what it is longer by than the text without it; it may go on
 * behind the header with what only an answer to come has (<think>). */
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

/* Where no loop over the messages writes the message: behind the prompt for it, it wrote what the text up to it has in common
 * with what follows. */
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

/* A message is what its turn of the loop over the messages wrote, all of whose data is the message's own, behind the prompt for
 * it: the text up to the message with the generation prompt, which begins the whole text. */
static int place(const struct tune_chat_template *t, const struct tune_chat_messages *messages, int i, const struct rendered *full,
                 struct tune_chat_span *span)
{
    const struct tune_jinja_turn *turn = &full->told[i].turn;
    struct rendered before;
    size_t begin, end = turn->end, data = turn->begin;
    if (turn->times == 0) {
        TRY(between(t, messages, i, full, span));
        span->end = without_space(full, span->begin, span->end);
        return 0;
    }
    if (turn->times > 1)
        return unplaced(t, i, "more than one loop over the messages writes it");
    for (size_t k = turn->begin; k < turn->end; k++) {
        if (is_data(full, k) && (full->marks[k] & ~TUNE_JINJA_PIECE) != mark_of(i))
            return unplaced(t, i, "it is written together with something that it does not say");
        data = is_data(full, k) ? k + 1 : data;
    }
    TRY(render(t, messages, i, true, &before));
    int failed = 0;
    if (before.size >= turn->begin && before.size <= turn->end && memcmp(before.text, full->text, before.size) == 0)
        begin = before.size;
    else
        failed = behind_header(t, messages, i, full, &before, &begin);
    drop(&before);
    if (failed)
        return -1;
    /* an end of turn that only the text's end has */
    if (i + 1 == messages->count && without_space(full, begin, end) <= (data > begin ? data : begin))
        end = full->size;
    *span = (struct tune_chat_span){begin, without_space(full, begin, end), i};
    return 0;
}

static int find_spans(const struct tune_chat_template *t, const struct tune_chat_messages *messages, const struct rendered *full,
                      struct tune_chat_text *out)
{
    struct tune_chat_span *spans = realloc(out->spans, (size_t)(messages->count + 1) * sizeof *spans);
    if (!spans)
        return no_memory();
    out->spans = spans;
    for (int i = 0; i < messages->count; i++) {
        if (!full->told[i].assistant)
            continue;
        TRY(place(t, messages, i, full, &spans[out->span_count]));
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
    int failed = render(t, messages, messages->count, options == TUNE_CHAT_GENERATION_PROMPT, &full);
    if (!failed && (options & TUNE_CHAT_SPANS))
        failed = find_spans(t, messages, &full, out);
    if (failed) {
        drop(&full);
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
    return 0;
}
