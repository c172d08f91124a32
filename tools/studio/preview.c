/* preview.c - what a program would do, before it starts. The program itself tells. Its
 * --show-tokens shows the rows, its --plan-memory the memory. The first lines of a run have the
 * survey of the data and the time. That run has its folder in /tmp and is ended before its first
 * step. */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "files/cjson.h"
#include "machine/child.h"
#include "machine/memory.h"
#include "preview.h"
#include "programs.h"

extern char **environ;

enum { ROWS_MOST = 50, LIMIT_S = 60, TEXT_MOST = 8 << 20 };

/* ---- rows ---- */

static void end_row(cJSON *row, int length, int labels)
{
    if (row) {
        tune_cjson_put_whole(row, "length", length);
        tune_cjson_put_whole(row, "labels", labels);
    }
}

/* A line of --show-tokens: position, id, "masked" or "trained", and the token as JSON text. */
static cJSON *token_of(const char *line, bool *label)
{
    long long position, id;
    char how[16];
    int at = 0;
    if (sscanf(line, "%lld %lld %15s %n", &position, &id, how, &at) < 3 || line[at] != '"')
        return NULL;
    cJSON *text = tune_cjson_line(line + at), *token = cJSON_CreateObject();
    *label = !strcmp(how, "trained");
    if (!cJSON_IsString(text)) { /* the bytes of a part of a character */
        size_t n = strcspn(line + at, "\r\n");
        tune_cjson_put_bytes(token, "text", line + at, n);
        cJSON_Delete(text);
    } else {
        tune_cjson_put(token, "text", text);
    }
    tune_cjson_put_whole(token, "id", id);
    tune_cjson_put(token, "label", cJSON_CreateBool(*label));
    return token;
}

/* The rows of --show-tokens, which begin with "row N,". */
static cJSON *rows_of(const char *text)
{
    cJSON *rows = cJSON_CreateArray(), *row = NULL, *tokens = NULL;
    int length = 0, labels = 0;
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        bool label = false;
        if (!strncmp(line, "row ", 4)) {
            end_row(row, length, labels);
            row = cJSON_CreateObject();
            length = labels = 0;
            tune_cjson_put_bytes(row, "about", line, strcspn(line, "\n"));
            tune_cjson_put(row, "tokens", tokens = cJSON_CreateArray());
            cJSON_AddItemToArray(rows, row);
            continue;
        }
        char *copy = tokens ? strndup(line, strcspn(line, "\n")) : NULL;
        cJSON *token = copy ? token_of(copy, &label) : NULL;
        free(copy);
        if (!token)
            continue;
        cJSON_AddItemToArray(tokens, token);
        length++;
        labels += label;
    }
    end_row(row, length, labels);
    return rows;
}

/* ---- memory ---- */

/* A recipe says this that refuses to start for want of memory (profilers/memory_plan.c), and what the plan follows there. */
#define TOO_LITTLE "not enough memory"
#define NEEDS "The run needs "

/* The plan in a text: what follows "memory: ", or in a refusal NEEDS. NULL: there is none. */
static const char *plan_in(const char *text)
{
    const char *refused = strstr(text, TOO_LITTLE), *at = refused ? strstr(refused, NEEDS) : strstr(text, "memory: ");
    return at ? at + (refused ? strlen(NEEDS) : strlen("memory: ")) : NULL;
}

static void put_bytes(cJSON *json, const char *name, double bytes)
{
    tune_cjson_put_whole(json, name, bytes >= 0 && bytes < 0x1p62 ? (int64_t)bytes : INT64_C(1) << 62);
}

/* A plan in bytes: all of it, -1: unknown; and what a checkpoint saves of it. */
struct plan_sums {
    double total, saved;
};

/* "11.4 MiB: weights 0.2, gradients 0.2": bytes by name. All numbers have the unit of the first. */
static cJSON *memory_of(const char *text, struct plan_sums *sums)
{
    cJSON *json = cJSON_CreateObject();
    const char *at = plan_in(text);
    char unit[8] = "", name[64];
    double number, scale;
    int n = 0;
    *sums = (struct plan_sums){-1, 0};
    if (!at || sscanf(at, "%lf %7[A-Za-z]:%n", &number, unit, &n) < 2 || n == 0)
        return json;
    scale = !strcmp(unit, "GiB") ? 1 << 30 : !strcmp(unit, "KiB") ? 1 << 10 : 1 << 20;
    sums->total = number * scale;
    put_bytes(json, "total_bytes", sums->total);
    for (at += n; *at && *at != '\n' && *at != ';' && strncmp(at, ". ", 2); at += strcspn(at, ",\n"), at += *at == ',') {
        const char *end = at + strcspn(at, ",\n"), *stop = strstr(at, ". ");
        const char *digits = stop && stop < end ? stop : end;
        while (digits > at && digits[-1] != ' ')
            digits--;
        at += strspn(at, " ");
        if (digits <= at || !isdigit((unsigned char)*digits))
            continue;
        snprintf(name, sizeof name, "%.*s_bytes", (int)(digits - at - 1 < 50 ? digits - at - 1 : 50), at);
        number = strtod(digits, NULL) * scale;
        put_bytes(json, name, number);
        if (!strncmp(name, "weights", 7) || !strncmp(name, "moments", 7) || !strncmp(name, "adapter", 7))
            sums->saved += number;
        if (stop && stop < end)
            break;
    }
    return json;
}

/* Bytes that a program may still fill; -1: unknown. */
static int64_t free_memory(void)
{
    struct tune_memory_limit limits[TUNE_MEMORY_LIMITS];
    int64_t least = -1;
    for (int i = tune_memory_limits(limits) - 1; i >= 0; i--)
        if (limits[i].counts == TUNE_MEMORY_FILLED && (least < 0 || limits[i].bytes < least))
            least = limits[i].bytes;
    return least;
}

/* Compare the plan, whose figures are in memory, with what is free, and add both to memory. Returns the warning, which the caller
 * frees; NULL: it fits. */
static char *compare(const char *text, double total, cJSON *memory)
{
    const char *refused = strstr(text, TOO_LITTLE);
    int64_t available = free_memory();
    char *warning = NULL;
    if (refused)
        warning = strndup(refused, strcspn(refused, "\n"));
    else if (available >= 0 && total > (double)available &&
             asprintf(&warning, TOO_LITTLE ": the run needs %.1f MiB, and %.1f MiB are free", total / 0x1p20, (double)available / 0x1p20) < 0)
        warning = NULL;
    if (available >= 0)
        tune_cjson_put_whole(memory, "free_bytes", available);
    if (total >= 0 || refused)
        tune_cjson_put(memory, "fits", cJSON_CreateBool(!warning));
    if (warning)
        tune_cjson_put_text(memory, "warning", warning);
    return warning;
}

char *studio_memory_warning(const cJSON *program, const cJSON *argv)
{
    enum { PLAN_S = 20 };
    const cJSON *option = studio_option(program, "plan_memory"), *word;
    const char *flag = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(option, "flag"));
    char *text = NULL, *warning = NULL;
    int code = -1;
    struct plan_sums sums;
    if (!option)
        return NULL;
    cJSON *asked = cJSON_CreateArray();
    cJSON_ArrayForEach(word, argv) {
        if (strcmp(word->valuestring, "--requeue") && strcmp(word->valuestring, "--overwrite"))
            cJSON_AddItemToArray(asked, cJSON_Duplicate(word, true));
        if (word == argv->child)
            cJSON_AddItemToArray(asked, cJSON_CreateString(flag ? flag : "--plan-memory"));
    }
    if ((text = studio_output(asked, PLAN_S, &code)) && (code == 0 || strstr(text, TOO_LITTLE))) {
        cJSON *memory = memory_of(text, &sums);
        warning = compare(text, sums.total, memory);
        cJSON_Delete(memory);
    }
    cJSON_Delete(asked);
    free(text);
    tune_error_clear();
    return warning;
}

/* ---- the first lines of a run ---- */

static bool has_line(const char *text, const char *begin)
{
    size_t n = strlen(begin);
    for (const char *at = text; (at = strstr(at, begin)); at += n)
        if ((at == text || at[-1] == '\n') && strchr(at, '\n'))
            return true;
    return false;
}

/* Start the run, and kill it once it has told its estimate or has begun. What it printed; NULL: nothing. */
static char *first_lines(const cJSON *argv, const char *log)
{
    const char **words = calloc((size_t)cJSON_GetArraySize(argv) + 1, sizeof *words);
    const cJSON *item;
    int n = 0;
    char *text = NULL;
    size_t size;
    cJSON_ArrayForEach(item, argv)
        if (words)
            words[n++] = item->valuestring;
    struct tune_child_options o = {.argv = words, .environment = (const char *const *)environ, .log = log, .log_limit = 1 << 20,
                                   .limit_s = LIMIT_S, .grace_s = .1};
    struct tune_child *c = words ? tune_child_start(&o) : NULL;
    struct tune_child_end end;
    for (bool over = !c; !over;) {
        struct pollfd p = {.fd = tune_child_descriptor(c), .events = POLLIN};
        over = poll(&p, 1, 20) > 0;
        free(text);
        text = NULL;
        if (tune_file_read(log, TEXT_MOST, &text, &size) == 0)
            over = over || has_line(text, "# estimate") || has_line(text, "step ") || has_line(text, "eval");
    }
    if (c) {
        tune_child_stop(c);
        tune_child_stop(c);
        tune_child_end(c, &end);
    }
    free(words);
    return text;
}

/* The header line "# name   text", into text. */
static bool header(const char *all, const char *name, char *text, size_t size)
{
    size_t n = strlen(name);
    for (const char *line = all; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
        if (!strncmp(line, "# ", 2) && !strncmp(line + 2, name, n) && line[2 + n] == ' ') {
            const char *at = line + 2 + n + strspn(line + 2 + n, " ");
            snprintf(text, size, "%.*s", (int)strcspn(at, "\n"), at);
            return true;
        }
    return false;
}

static void put_forecast(cJSON *json, const char *text)
{
    static const char *const names[] = {"rows", "format", "plan", "survey"};
    cJSON *survey = cJSON_CreateObject(), *time = cJSON_CreateObject(), *warnings = cJSON_CreateArray();
    char line[1024];
    for (size_t i = 0; text && i < sizeof names / sizeof *names; i++)
        if (header(text, names[i], line, sizeof line))
            tune_cjson_put_text(survey, names[i], line);
    for (const char *at = text; at && (at = strstr(at, "# warning: ")); at++)
        tune_cjson_add_bytes(warnings, at + 11, strcspn(at + 11, "\n"));
    if (cJSON_GetArraySize(warnings) > 0)
        tune_cjson_put(survey, "warnings", warnings);
    else
        cJSON_Delete(warnings);
    tune_cjson_put_text(time, "estimate", text && header(text, "estimate", line, sizeof line) ? line : "not known: the program made no estimate here");
    tune_cjson_put(json, "survey", survey);
    tune_cjson_put(json, "time", time);
}

/* ---- all of it ---- */

/* The values with one more, as a command line; NULL with a problem. */
static cJSON *with(struct studio_reply *r, const cJSON *program, const cJSON *values, const char *name, cJSON *value)
{
    static const char *const dropped[] = {"requeue", "overwrite", "show_tokens", "plan_memory", "plan_gpu"};
    cJSON *copy = values ? cJSON_Duplicate(values, true) : cJSON_CreateObject();
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        cJSON_DeleteItemFromObjectCaseSensitive(copy, dropped[i]);
    tune_cjson_put(copy, name, value);
    cJSON *argv = studio_argv(r, program, copy);
    cJSON_Delete(copy);
    return argv;
}

/* The text that the program says to these words. NULL with a problem: it refuses them; the option that it names goes along.
 * Too little memory is no refusal: the plan is there. */
static char *say(struct studio_reply *r, cJSON *argv)
{
    int code = -1;
    char *text = argv ? studio_output(argv, LIMIT_S, &code) : NULL;
    cJSON_Delete(argv);
    if (!text || code == 0 || (code > 0 && strstr(text, TOO_LITTLE) && plan_in(text)))
        return text;
    const char *colon = strstr(text, ": --");
    size_t n = colon ? strspn(colon + 4, "abcdefghijklmnopqrstuvwxyz0123456789-_") : 0;
    char option[64] = "";
    for (size_t i = 0; i < n && i < sizeof option - 1; i++)
        option[i] = colon[4 + i] == '-' ? '_' : colon[4 + i], option[i + 1] = 0;
    if (*option)
        studio_member(r, "option", option);
    size_t size = strlen(text);
    studio_fail(r, 400, "%s%s", code < 0 ? "the program took too long; it said: " : "", text + (size > 1500 ? size - 1500 : 0));
    free(text);
    return NULL;
}

static int preview(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    const cJSON *values = cJSON_GetObjectItemCaseSensitive(q->json, "values");
    const char *device = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(values, "device"));
    cJSON *program = studio_program(s, r, studio_value(q, "program")), *json = cJSON_CreateObject();
    int count = (int)studio_number(q, "rows", 4), status = program ? 0 : -1;
    struct plan_sums sums;
    char *shown = NULL, *plan = NULL, *first = NULL, *warning = NULL;
    bool tells = program && studio_option(program, "show_tokens") && studio_option(program, "plan_memory");
    cJSON *argv = program ? studio_argv(r, program, values) : NULL; /* a bad value, before anything runs */
    status = argv ? status : -1;
    cJSON_Delete(argv);
    if (status == 0 && tells) {
        shown = count > 0 ? say(r, with(r, program, values, "show_tokens", cJSON_CreateNumber(count))) : strdup("");
        plan = shown ? say(r, with(r, program, values, "plan_memory", cJSON_CreateTrue())) : NULL;
        status = plan ? 0 : -1;
    }
    if (status == 0 && tells) {
        cJSON *disk = cJSON_CreateObject();
        tune_cjson_put(json, "rows", rows_of(shown));
        cJSON *memory = memory_of(plan, &sums);
        bool fits = !(warning = compare(plan, sums.total, memory));
        tune_cjson_put(json, "memory", memory);
        tune_cjson_put_whole(disk, "about_one_checkpoint_bytes", (int64_t)sums.saved);
        tune_cjson_put_whole(disk, "free_bytes", tune_file_free_space("."));
        tune_cjson_put(json, "disk", disk);
        /* never with --resume, which would go on with the run; nor on a GPU, where another job may run; nor without the memory */
        bool starts = fits && studio_option(program, "output") && !cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(values, "resume")) &&
                      !(device && !strncmp(device, "cuda", 4));
        char folder[] = "/tmp/studio-preview-XXXXXX", path[TUNE_PATH_MAX];
        if (starts && mkdtemp(folder)) {
            snprintf(path, sizeof path, "%s/run", folder);
            argv = with(r, program, values, "output", cJSON_CreateString(path));
            snprintf(path, sizeof path, "%s/log.txt", folder);
            first = argv ? first_lines(argv, path) : NULL;
            cJSON_Delete(argv);
            tune_file_remove_folder(folder);
        }
        put_forecast(json, first);
    }
    if (status == 0) {
        char *text = NULL;
        if (asprintf(&text, "%s%s", plan ? plan : "", first ? first : "") >= 0)
            tune_cjson_put_bytes(json, "text", text, strlen(text));
        free(text);
    }
    free(warning);
    free(shown);
    free(plan);
    free(first);
    cJSON_Delete(program);
    if (status == 0)
        return studio_put_json(r, json);
    cJSON_Delete(json);
    return -1;
}

const struct studio_route studio_preview_routes[] = {
    {"POST", "/api/preview", "previewRun", "program preview", "Rows as the model sees them, memory, data, time and disk, before a start", "application/json", preview,
     {{"program", STUDIO_IN_BODY, .required = true, .help = "name of the program"},
      {"values", STUDIO_IN_BODY, STUDIO_JSON, .help = "the options' values by name"},
      {"rows", STUDIO_IN_BODY, STUDIO_WHOLE, .least = 0, .most = ROWS_MOST, .help = "how many rows to show; default 4"}}},
    {0},
};
