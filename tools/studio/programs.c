/* programs.c - find the programs by their --describe, and make command lines from values. */
#include "programs.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/try.h"
#include "files/cjson.h"
#include "machine/child.h"
#include "secrets.h"

extern char **environ;

enum { DESCRIPTION_MOST = 4 << 20, PROGRAMS_MOST = 1000 };

/* A file that was asked once. json is NULL if it is no program for us. */
struct known {
    char path[TUNE_PATH_MAX];
    struct timespec modified;
    off_t size;
    cJSON *json;
    struct known *next;
};
static struct known *all_known; /* a cache of what files say; under the lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- run one ---- */

static const char **words_of(const cJSON *argv)
{
    const char **words = calloc((size_t)cJSON_GetArraySize(argv) + 1, sizeof *words);
    const cJSON *item;
    int n = 0;
    cJSON_ArrayForEach(item, argv)
        if (words)
            words[n++] = item->valuestring;
    return words;
}

char *studio_output(const cJSON *argv, double limit_s, int *code)
{
    char log[] = "/tmp/studio-XXXXXX", *text = NULL;
    struct tune_child_end end;
    size_t size;
    int fd = mkstemp(log);
    if (fd < 0)
        return tune_error_set("cannot make a file in /tmp: %s", strerror(errno)), NULL;
    close(fd);
    const char **words = words_of(argv);
    struct tune_child_options o = {.argv = words, .environment = (const char *const *)environ, .log = log,
                                   .log_limit = DESCRIPTION_MOST, .limit_s = limit_s, .grace_s = .5};
    struct tune_child *c = words ? tune_child_start(&o) : NULL;
    if (c) {
        tune_child_end(c, &end);
        *code = end.how == TUNE_CHILD_EXITED ? end.code : end.how == TUNE_CHILD_SIGNALLED ? 128 + end.code : -1;
        if (end.how == TUNE_CHILD_NOT_STARTED)
            tune_error_set("cannot start \"%s\": %s", words[0], end.reason);
        else if (tune_file_read(log, DESCRIPTION_MOST + 256, &text, &size) < 0)
            text = NULL;
    }
    free(words);
    unlink(log);
    return text;
}

/* ---- find them ---- */

static bool is_studio(const char *path)
{
    return tune_file_is_same(path, "/proc/self/exe");
}

/* The answer of the file to --describe; NULL: nothing of use. */
static cJSON *ask(const char *path)
{
    cJSON *argv = cJSON_CreateArray(), *json = NULL;
    int code = 1;
    cJSON_AddItemToArray(argv, cJSON_CreateString(path));
    cJSON_AddItemToArray(argv, cJSON_CreateString("--describe"));
    char *text = studio_output(argv, 10, &code);
    if (text && code == 0)
        json = tune_cjson_line(text);
    if (json && !cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(json, "options"))) {
        cJSON_Delete(json);
        json = NULL;
    }
    free(text);
    cJSON_Delete(argv);
    return json;
}

/* A recipe trains: it takes rows, writes a run folder and can go on with it. */
static const char *kind_of(const cJSON *json)
{
    return studio_option(json, "dataset") && studio_option(json, "output") && studio_option(json, "resume") ? "recipe" : "tool";
}

/* The program's description, from the cache if the file is as it was. Owned by the cache; under the lock. */
static cJSON *description(const char *path, const char *name)
{
    struct stat st;
    struct known *k = all_known;
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || access(path, X_OK) < 0 || is_studio(path))
        return NULL;
    while (k && strcmp(k->path, path))
        k = k->next;
    if (k && k->size == st.st_size && k->modified.tv_sec == st.st_mtim.tv_sec && k->modified.tv_nsec == st.st_mtim.tv_nsec)
        return k->json;
    if (!k) {
        if (!(k = calloc(1, sizeof *k)))
            return NULL;
        snprintf(k->path, sizeof k->path, "%s", path);
        k->next = all_known;
        all_known = k;
    }
    cJSON_Delete(k->json);
    k->json = ask(path);
    k->size = st.st_size, k->modified = st.st_mtim;
    if (k->json) {
        tune_cjson_put_text(k->json, "name", name);
        tune_cjson_put_text(k->json, "path", path);
        tune_cjson_put_text(k->json, "kind", kind_of(k->json));
    }
    return k->json;
}

/* Folder k of the programs. 1, or 0: no more. */
static int folder_of(const struct studio *s, int k, char path[TUNE_PATH_MAX])
{
    if (s->programs)
        return tune_path_listed(s->programs, k, path) == 1;
    snprintf(path, TUNE_PATH_MAX, "%s", s->build);
    return k == 0;
}

/* The path as it is typed in the root. */
static const char *shown_path(const struct studio *s, const char *path)
{
    size_t n = strlen(s->root);
    return !strncmp(path, s->root, n) && path[n] == '/' ? path + n + 1 : path;
}

cJSON *studio_program(struct studio *s, struct studio_reply *r, const char *name)
{
    char folder[TUNE_PATH_MAX], path[TUNE_PATH_MAX];
    cJSON *found = NULL;
    if (!*name || strchr(name, '/') || *name == '.') {
        studio_fail(r, 404, "\"%s\": a program is named without its folder; /api/programs lists them", name);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    for (int k = 0; !found && folder_of(s, k, folder); k++)
        if (snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path)
            found = cJSON_Duplicate(description(path, name), true);
    pthread_mutex_unlock(&lock);
    if (found)
        tune_cjson_put_text(found, "path", shown_path(s, path));
    else
        studio_fail(r, 404, "\"%s\": no such program. One is an executable in %s that answers --describe; /api/programs lists them", name,
                    s->programs ? s->programs : s->build);
    return found;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_listed(const cJSON *list, const char *name)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
        if (!strcmp(cJSON_GetObjectItemCaseSensitive(item, "name")->valuestring, name))
            return true;
    return false;
}

/* Add the programs of a folder in order of name. One of an earlier folder hides its namesakes. */
static void list_folder(struct studio *s, const char *folder, bool full, cJSON *list)
{
    char *names[PROGRAMS_MOST], path[TUNE_PATH_MAX];
    int n = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && n < PROGRAMS_MOST && (e = readdir(dir));)
        if (*e->d_name != '.' && (names[n] = strdup(e->d_name)))
            n++;
    if (dir)
        closedir(dir);
    qsort(names, (size_t)n, sizeof *names, by_name);
    for (int i = 0; i < n; i++) {
        if (!is_listed(list, names[i]) && snprintf(path, sizeof path, "%s/%s", folder, names[i]) < (int)sizeof path) {
            pthread_mutex_lock(&lock);
            cJSON *json = cJSON_Duplicate(description(path, names[i]), true);
            pthread_mutex_unlock(&lock);
            if (json && !full) {
                cJSON_DeleteItemFromObject(json, "options");
                cJSON_DeleteItemFromObject(json, "properties");
            }
            tune_cjson_put_text(json, "path", shown_path(s, path));
            if (json)
                cJSON_AddItemToArray(list, json);
        }
        free(names[i]);
    }
}

/* ---- values ---- */

static const char *text_in(const cJSON *json, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));
    return text ? text : "";
}

static bool same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (*a != *b && !((*a == '-' || *a == '_') && (*b == '-' || *b == '_')))
            return false;
    return !strcmp(!strcmp(a, "...") ? "" : a, !strcmp(b, "...") ? "" : b);
}

const cJSON *studio_option(const cJSON *program, const char *name)
{
    const cJSON *option;
    cJSON_ArrayForEach(option, cJSON_GetObjectItemCaseSensitive(program, "options"))
        if (same_name(text_in(option, "name"), name))
            return option;
    return NULL;
}

/* A problem with the value of an option. Returns -1. */
__attribute__((format(printf, 3, 4)))
static int bad(struct studio_reply *r, const char *name, const char *format, ...)
{
    char text[1024];
    FORMAT(text, format);
    studio_member(r, "option", name);
    return studio_fail(r, 400, "%s: %s", name, text);
}

static int check_range(struct studio_reply *r, const cJSON *option, const char *name, const char *text, double value)
{
    const char *range = text_in(option, "range"), *unit = text_in(option, "unit");
    char *end;
    if (*range != '[' && *range != '(')
        return 0;
    double low = strtod(range + 1, &end), high = *end == ',' ? strtod(end + 1, &end) : INFINITY;
    if ((*range == '(' ? value > low : value >= low) && (*end == ')' ? value < high || isinf(high) : value <= high))
        return 0;
    return bad(r, name, "\"%s\" is outside its range; expected a number in %s%s%s", text, range, *unit ? " " : "", unit);
}

static bool is_choice(const cJSON *choices, const char *word, size_t n)
{
    const cJSON *choice;
    cJSON_ArrayForEach(choice, choices)
        if (cJSON_IsString(choice) && strlen(choice->valuestring) == n && !memcmp(choice->valuestring, word, n))
            return true;
    return false;
}

static int check_choice(struct studio_reply *r, const cJSON *choices, const char *type, const char *name, const char *text)
{
    bool several = !strcmp(type, "choices");
    char *list = NULL;
    for (const char *at = text;; at++) {
        size_t n = several ? strcspn(at, ",") : strlen(at);
        if (!is_choice(choices, at, n)) {
            list = cJSON_PrintUnformatted(choices);
            bad(r, name, "\"%.*s\" is none of %s", (int)n, at, list ? list : "its choices");
            cJSON_free(list);
            return -1;
        }
        if (!*(at += n))
            return 0;
    }
}

static int check(struct studio_reply *r, const cJSON *option, const char *name, const char *text)
{
    const char *type = text_in(option, "type");
    const cJSON *choices = cJSON_GetObjectItemCaseSensitive(option, "choices");
    bool whole = !strcmp(type, "int") || !strcmp(type, "int64"), number = whole || !strcmp(type, "double");
    char *end;
    if (cJSON_GetArraySize(choices) > 0)
        return check_choice(r, choices, type, name, text);
    if (!strcmp(type, "interval")) {
        double value = strtod(text, &end);
        if (!strcmp(text, "epoch") || (*text && !*end && value >= 0 && (value < 1 || value == floor(value))))
            return 0;
        return bad(r, name, "\"%s\" is no interval; expected a whole number of steps, a share of the run below 1 such as 0.25, or epoch", text);
    }
    if (!number)
        return 0;
    double value = strtod(text, &end);
    if (!*text || *end || text[strspn(text, whole ? "+-0123456789" : "+-.0123456789eEinfty")])
        return bad(r, name, "\"%s\" is no %snumber", text, whole ? "whole " : "");
    return check_range(r, option, name, text, value);
}

/* The value as it is typed, into *made, which the caller frees. NULL with a problem. */
static char *text_of(struct studio_reply *r, const char *name, const cJSON *value)
{
    char number[40];
    if (cJSON_IsString(value)) {
        struct tune_text all = tune_cjson_text(value);
        if (!all.data || memchr(all.data, 0, all.size))
            return bad(r, name, "the text has a NUL, which no command line can hold"), NULL;
        return strdup(value->valuestring);
    }
    if (cJSON_IsBool(value))
        return strdup(cJSON_IsTrue(value) ? "true" : "false");
    if (!cJSON_IsNumber(value))
        return bad(r, name, "expected a text, a number, or true or false"), NULL;
    double x = value->valuedouble;
    if (x == floor(x) && fabs(x) < 9007199254740992.)
        snprintf(number, sizeof number, "%.0f", x);
    else
        for (int digits = 15; digits <= 17; digits++) {
            snprintf(number, sizeof number, "%.*g", digits, x);
            if (strtod(number, NULL) == x)
                break;
        }
    return strdup(number);
}

static void add_word(cJSON *argv, const char *text)
{
    cJSON_AddItemToArray(argv, cJSON_CreateString(text));
}

static int add_switch(struct studio_reply *r, cJSON *argv, const char *flag, const char *name, const char *text)
{
    char no[160];
    if (!strcmp(text, "true"))
        return add_word(argv, flag), 0;
    if (strcmp(text, "false"))
        return bad(r, name, "\"%s\": expected true or false", text);
    snprintf(no, sizeof no, "--no-%s", flag + 2);
    return add_word(argv, no), 0;
}

static int add_option(struct studio_reply *r, cJSON *argv, const cJSON *option, const cJSON *value)
{
    const char *name = text_in(option, "name");
    char flag[128], *joined;
    char *text = text_of(r, name, value);
    if (!text)
        return -1;
    snprintf(flag, sizeof flag, "%s", text_in(option, "flag"));
    if (strncmp(flag, "--", 2))
        snprintf(flag, sizeof flag, "--%s", name);
    int status = 0;
    if (studio_is_secret(name) && *text) {
        status = bad(r, name, "a secret does not belong on a command line, which others of this machine can read; "
                     "put it into the environment of the studio");
    } else if (!strcmp(text_in(option, "type"), "bool")) {
        status = add_switch(r, argv, flag, name, text);
    } else if ((status = check(r, option, name, text)) == 0) {
        bool apart = *text && *text != '-';
        if (apart)
            add_word(argv, flag), add_word(argv, text);
        else if (asprintf(&joined, "%s=%s", flag, text) >= 0)
            add_word(argv, joined), free(joined);
    }
    free(text);
    return status;
}

static int add_positional(struct studio_reply *r, cJSON *words, const cJSON *option, const cJSON *value)
{
    const char *name = text_in(option, "name");
    const cJSON *item;
    bool many = cJSON_IsArray(value);
    int status = 0;
    if (!many) {
        char *text = text_of(r, name, value);
        status = text ? check(r, option, name, text) : -1;
        if (status == 0)
            add_word(words, text);
        free(text);
        return status;
    }
    cJSON_ArrayForEach(item, value)
        if (status == 0 && (status = cJSON_IsArray(item) ? bad(r, name, "a list in a list") : 0) == 0)
            status = add_positional(r, words, option, item);
    return status;
}

static int check_names(struct studio_reply *r, const cJSON *program, const cJSON *values)
{
    const cJSON *value, *other;
    cJSON_ArrayForEach(value, values) {
        if (!studio_option(program, value->string))
            return bad(r, value->string, "%s has no such option", text_in(program, "name"));
        for (other = value->next; other; other = other->next)
            if (same_name(value->string, other->string))
                return bad(r, value->string, "given twice");
    }
    return 0;
}

static const cJSON *value_of(const cJSON *values, const cJSON *option)
{
    const cJSON *value;
    cJSON_ArrayForEach(value, values)
        if (same_name(value->string, text_in(option, "name")))
            return cJSON_IsNull(value) ? NULL : value;
    return NULL;
}

/* Add the values in the order of the options. Those without a flag come last. */
static int add_values(struct studio_reply *r, const cJSON *program, const cJSON *values, cJSON *argv, cJSON *words)
{
    const cJSON *option;
    const char *missing = NULL;
    TRY(check_names(r, program, values));
    cJSON_ArrayForEach(option, cJSON_GetObjectItemCaseSensitive(program, "options")) {
        const cJSON *value = value_of(values, option);
        if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(option, "positional"))) {
            if (value)
                TRY(add_option(r, argv, option, value));
        } else if (value && missing) {
            return bad(r, missing, "is missing, and %s comes after it", text_in(option, "name"));
        } else if (value) {
            TRY(add_positional(r, words, option, value));
        } else {
            missing = text_in(option, "name");
            if (cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(option, "default")))
                return bad(r, missing, "is missing: %s", text_in(option, "help"));
        }
    }
    return 0;
}

cJSON *studio_argv(struct studio_reply *r, const cJSON *program, const cJSON *values)
{
    cJSON *argv = cJSON_CreateArray(), *words = cJSON_CreateArray(), *word;
    const char *path = text_in(program, "path");
    char here[TUNE_PATH_MAX];
    snprintf(here, sizeof here, "%s%s", strchr(path, '/') ? "" : "./", path);
    add_word(argv, here);
    int status = values && !cJSON_IsObject(values) ? studio_fail(r, 400, "values: expected an object of names and values")
                                                   : add_values(r, program, values, argv, words);
    bool dash = false;
    cJSON_ArrayForEach(word, words)
        dash = dash || *word->valuestring == '-';
    if (dash)
        add_word(argv, "--");
    while (cJSON_GetArraySize(words) > 0)
        cJSON_AddItemToArray(argv, cJSON_DetachItemFromArray(words, 0));
    cJSON_Delete(words);
    if (status == 0)
        return argv;
    cJSON_Delete(argv);
    return NULL;
}

/* ---- the line for a shell ---- */

static bool is_plain(const char *word, bool first)
{
    static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:,@%+-=";
    return *word && *word != '=' && !word[strspn(word, safe)] && !(first && strchr(word, '='));
}

char *studio_line(const cJSON *argv)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    const cJSON *word;
    if (!out)
        return NULL;
    cJSON_ArrayForEach(word, argv) {
        const char *at = word->valuestring;
        if (word != argv->child)
            putc(' ', out);
        if (is_plain(at, word == argv->child)) {
            fputs(at, out);
            continue;
        }
        putc('\'', out);
        for (; *at; at++)
            if (*at == '\'')
                fputs("'\\''", out);
            else
                putc(*at, out);
        putc('\'', out);
    }
    return fclose(out) == 0 ? text : (free(text), NULL);
}

/* ---- routes ---- */

static int tagged(struct studio_reply *r, cJSON *json)
{
    char *text = json ? cJSON_PrintUnformatted(json) : NULL;
    if (text)
        studio_tag(r, text, strlen(text));
    cJSON_free(text);
    return studio_put_json(r, json);
}

static int list_programs(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    cJSON *list = cJSON_CreateArray();
    char folder[TUNE_PATH_MAX];
    for (int k = 0; list && folder_of(s, k, folder); k++)
        list_folder(s, folder, studio_bool(q, "full", false), list);
    return tagged(r, list);
}

static int show_program(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    cJSON *program = studio_program(s, r, studio_value(q, "name"));
    return program ? tagged(r, program) : -1;
}

static int show_command(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    cJSON *program = studio_program(s, r, studio_value(q, "program"));
    cJSON *argv = program ? studio_argv(r, program, cJSON_GetObjectItemCaseSensitive(q->json, "values")) : NULL;
    cJSON_Delete(program);
    if (!argv)
        return -1;
    cJSON *json = cJSON_CreateObject();
    char *line = studio_line(argv);
    bool good = tune_cjson_put_text(json, "text", line);
    good = tune_cjson_put(json, "argv", argv) && good;
    free(line);
    return studio_put_json(r, good ? json : (cJSON_Delete(json), NULL));
}

const struct studio_route studio_program_routes[] = {
    {"GET", "/api/programs", "listPrograms", "program list", "The programs that can be started", "application/json", list_programs,
     {{"full", STUDIO_IN_QUERY, STUDIO_BOOL, .help = "with all options and measured properties"}}},
    {"GET", "/api/programs/{name}", "showProgram", "program show", "A program's options, as its --describe gives them", "application/json", show_program,
     {{"name", STUDIO_IN_PATH, .required = true, .help = "name of the program, such as finetune_lora"}}},
    {"POST", "/api/command", "makeCommand", "program command", "The command line for these values", "application/json", show_command,
     {{"program", STUDIO_IN_BODY, .required = true, .help = "name of the program"},
      {"values", STUDIO_IN_BODY, STUDIO_JSON, .help = "the options' values by name; those that are absent or null are not given"}}},
    {0},
};
