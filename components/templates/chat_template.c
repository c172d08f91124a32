/* chat_template.c - find a model's template. chat_render.c renders it. */
#include "templates/chat_template.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/cjson.h"
#include "files/file.h"
#include "files/folder.h"
#include "core/nearest.h"
#include "core/try.h"
#include "templates/chat_parts.h"

enum { CONFIG_LIMIT = 64 << 20, NAMES = TUNE_CHAT_NAMES };

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

const char *tune_chat_template_chosen(const struct tune_chat_template *t)
{
    return t->chosen;
}

const char *tune_chat_template_end(const struct tune_chat_template *t)
{
    return t->uses_end ? t->special[t->special_count - 1].text : NULL;
}

uint64_t tune_chat_template_hash(const struct tune_chat_template *t)
{
    return t->hash;
}

void tune_chat_template_date(struct tune_chat_template *t, int64_t seconds)
{
    t->seconds = seconds;
}

int tune_chat_no_memory(void)
{
    tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory for a chat template");
    return -1;
}

/* Add a template. It takes over text, also on failure. */
static int add(struct tune_chat_template *t, const char *name, char *text, size_t size, const char *where)
{
    struct tune_chat_named *n = &t->found[t->found_count];
    if (t->found_count == NAMES) {
        free(text);
        return tune_error_set("%s: more than %d chat templates", where, NAMES);
    }
    t->found_count++;
    *n = (struct tune_chat_named){.name = strdup(name), .text = text, .where = strdup(where), .size = size};
    return n->name && n->text && n->where ? 0 : tune_chat_no_memory();
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

/* Add a template from a file of the model's folder. */
static int add_own(struct tune_chat_template *t, const char *name, const char *folder, const char *file)
{
    char path[TUNE_PATH_MAX], *text;
    size_t size;
    TRY(tune_path(path, "%s/%s", folder, file));
    return tune_folder_read(folder, file, TUNE_JINJA_TEMPLATE_BYTES, &text, &size) < 0 ? -1 : add(t, name, text, size, path);
}

/* Add additional_chat_templates/NAME.jinja, sorted by name. */
static int add_folder(struct tune_chat_template *t, const char *model)
{
    static const char additional[] = "additional_chat_templates";
    char path[TUNE_PATH_MAX], *names[NAMES];
    int count = 0, failed = 0;
    TRY(tune_path(path, "%s/%s", model, additional));
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d)) && count < NAMES;) {
        size_t size = strlen(e->d_name);
        if (size > 6 && strcmp(e->d_name + size - 6, ".jinja") == 0 && (names[count] = strndup(e->d_name, size - 6)))
            count++;
    }
    if (d)
        closedir(d);
    qsort(names, (size_t)count, sizeof *names, by_name);
    for (int i = 0; i < count; i++) {
        failed |= failed || tune_path(path, "%s/%s.jinja", additional, names[i]) < 0 || add_own(t, names[i], model, path) < 0;
        free(names[i]);
    }
    return failed ? -1 : 0;
}

static int add_special(struct tune_chat_template *t, const char *name, const char *text)
{
    if (t->special_count == NAMES)
        return 0;
    struct tune_chat_special *s = &t->special[t->special_count++];
    *s = (struct tune_chat_special){strdup(name), strdup(text)};
    return s->name && s->text ? 0 : tune_chat_no_memory();
}

static int read_special(struct tune_chat_template *t, const cJSON *item)
{
    const cJSON *content = cJSON_IsObject(item) ? cJSON_GetObjectItemCaseSensitive(item, "content") : item;
    size_t size = item->string ? strlen(item->string) : 0;
    if (size < 7 || strcmp(item->string + size - 6, "_token") != 0 || !cJSON_IsString(content))
        return 0;
    return add_special(t, item->string, content->valuestring);
}

/* The end token that other files of the model name, unless tokenizer_config.json named one. */
static int add_end(struct tune_chat_template *t, const char *end_token)
{
    for (int i = 0; i < t->special_count; i++)
        if (!strcmp(t->special[i].name, "eos_token"))
            return 0;
    t->given_end = end_token && t->special_count < NAMES;
    return t->given_end ? add_special(t, "eos_token", end_token) : 0;
}

static int read_config(struct tune_chat_template *t, const char *folder)
{
    static const char file[] = "tokenizer_config.json";
    char path[TUNE_PATH_MAX];
    TRY(tune_path(path, "%s/%s", folder, file));
    cJSON *config = tune_cjson_read_in(folder, file, CONFIG_LIMIT);
    const cJSON *item, *template = cJSON_GetObjectItemCaseSensitive(config, "chat_template");
    int failed = !config;
    cJSON_ArrayForEach(item, config)
        failed = failed || read_special(t, item) < 0;
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

static const struct tune_chat_named *named(const struct tune_chat_template *t, const char *name)
{
    for (int i = 0; i < t->found_count; i++)
        if (strcmp(t->found[i].name, name) == 0)
            return &t->found[i];
    return NULL;
}

static int use(struct tune_chat_template *t, struct tune_jinja **to, const struct tune_chat_named *n)
{
    char name[TUNE_PATH_MAX + 128];
    snprintf(name, sizeof name, strcmp(n->name, "default") && t->found_count ? "%s (%.100s)" : "%s", n->where, n->name);
    if (!t->where && !(t->where = strdup(name)))
        return tune_chat_no_memory();
    t->hash = tune_hash64(n->text, n->size, t->hash);
    for (int i = 0; i < t->special_count; i++)
        if (memmem(n->text, n->size, t->special[i].name, strlen(t->special[i].name))) {
            t->hash = tune_hash64(t->special[i].text, strlen(t->special[i].text), t->hash);
            t->uses_end |= t->given_end && i == t->special_count - 1;
        }
    return (*to = tune_jinja_open(name, n->text, n->size)) ? 0 : -1;
}

/* Report that there is no template, or none of this name, with the names that exist. */
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
        tune_error_usage("`chat_template`: there is no template %.200s%s%s%s There "
                         "are: %s; or the path of a file, with a '/' or .jinja at its end",
                         chosen, near ? "; did you mean " : "", near ? near : "", near ? "?" : ".", text);
    else
        tune_error_usage("%.300s has no chat template of its own%s; give `chat_template` NAME "
                         "(there are: %s) or the path of a file", folder ? folder : "the model",
                         folder ? " (no chat_template.jinja, none in tokenizer_config.json)" : "",
                         text);
    for (int i = 0; i < own; i++)
        free(ours[i]);
    return -1;
}

static int choose(struct tune_chat_template *t, const char *folder, const char *chosen)
{
    char path[TUNE_PATH_MAX], ours[TUNE_PATH_MAX] = "";
    const struct tune_chat_named *n = named(t, chosen ? chosen : "default");
    size_t size = chosen ? strlen(chosen) : 0;
    if (!chosen && !n) {
        if (tune_defaults_path(ours, "chat_templates") < 0)
            *ours = 0; /* only the path of a file is possible */
        return unknown(t, folder, NULL, ours);
    }
    if (!n && (strchr(chosen, '/') || (size > 6 && strcmp(chosen + size - 6, ".jinja") == 0))) {
        TRY(add_file(t, chosen, chosen));
        n = &t->found[t->found_count - 1];
        struct tune_chat_named plain = *n;
        plain.name = "default";
        t->chosen = n->text;
        return use(t, &t->plain, &plain);
    }
    if (!n) {
        if (tune_defaults_path(ours, "chat_templates") < 0 || tune_path(path, "%s/%s.jinja", ours, chosen) < 0 ||
            !tune_file_exists(path))
            return unknown(t, folder, chosen, ours);
        TRY(add_file(t, "default", path));
        t->chosen = t->found[t->found_count - 1].text;
        return use(t, &t->plain, &t->found[t->found_count - 1]);
    }
    t->chosen = chosen ? n->text : NULL;
    TRY(use(t, &t->plain, n));
    return !chosen && named(t, "tool_use") ? use(t, &t->tools, named(t, "tool_use")) : 0;
}

/* Read the templates and special tokens of a model's folder. */
static int read_folder(struct tune_chat_template *t, const char *model)
{
    static const char own[] = "chat_template.jinja";
    if (tune_folder_has(model, own))
        TRY(add_own(t, "default", model, own));
    TRY(add_folder(t, model));
    return tune_folder_has(model, "tokenizer_config.json") ? read_config(t, model) : 0;
}

bool tune_chat_template_is_in(const char *model_folder)
{
    struct tune_error before;
    struct tune_chat_template *t = model_folder ? calloc(1, sizeof *t) : NULL;
    tune_error_save(&before);
    bool found = t && read_folder(t, model_folder) == 0 && named(t, "default");
    tune_chat_template_free(t);
    tune_error_restore(&before);
    return found;
}

struct tune_chat_template *tune_chat_template_open(const char *model_folder, const char *chosen,
                                                   const char *end_token)
{
    struct tune_chat_template *t = calloc(1, sizeof *t);
    if (!t) {
        tune_chat_no_memory();
        return NULL;
    }
    t->seconds = -1;
    if (model_folder && read_folder(t, model_folder) < 0)
        goto fail;
    if (add_end(t, end_token) == 0 && choose(t, model_folder, chosen) == 0) {
        tune_chat_settle_content(t);
        tune_chat_settle_calls(t);
        tune_chat_settle_takes(t);
        return t;
    }
fail:
    tune_chat_template_free(t);
    return NULL;
}
