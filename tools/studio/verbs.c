/* verbs.c - commands made from the table of routes. */
#include "verbs.h"

#include <cjson/cJSON.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "../drawing.h"
#include "core/nearest.h"
#include "core/print.h"
#include "files/cjson.h"

enum { VERBS = 256, OWN = 6 };

/* One command: its route, and the options made from the route's parameters. */
struct verb {
    struct tune_flags tune;
    const struct studio_route *route;
    const char *root, *programs, *texts[STUDIO_PARAMETERS];
    bool switches[STUDIO_PARAMETERS], json;
    int width;
    char names[STUDIO_PARAMETERS][64];
    struct tune_option options[STUDIO_PARAMETERS + OWN + 1];
    const struct studio_parameter *parameters[STUDIO_PARAMETERS + OWN]; /* of each option */
};

static const struct studio_route *route_of(int i)
{
    for (int t = 0; studio_routes[t]; t++)
        for (const struct studio_route *route = studio_routes[t]; route->method; route++)
            if (route->verb && i-- == 0)
                return route;
    return NULL;
}

static bool begins(const char *verb, const char *words)
{
    size_t n = strlen(words);
    return n == 0 || (!strncmp(verb, words, n) && (verb[n] == ' ' || !verb[n]));
}

int studio_verb_count(int argc, char **argv)
{
    int n = 0;
    while (n + 1 < argc && argv[n + 1][0] != '-')
        n++;
    return n;
}

int studio_list_verbs(const char *word, FILE *out)
{
    const struct studio_route *route;
    int count = 0;
    for (int i = 0; (route = route_of(i)); i++)
        if (begins(route->verb, word))
            count++, fprintf(out, "  studio %-16s  %s\n", route->verb, route->summary);
    return count;
}

char *studio_verb_names(void)
{
    const struct studio_route *route;
    char *text = NULL;
    size_t size;
    FILE *out = GET(open_memstream(&text, &size));
    for (int i = 0; (route = route_of(i)); i++)
        fprintf(out, "%s%s", i ? ", " : "", route->verb);
    fclose(out);
    return GET(text);
}

/* The first `count` words with a space between them. */
static void join(char *text, size_t most, char **words, int count)
{
    *text = 0;
    for (int i = 0; i < count; i++) {
        size_t n = strlen(text);
        snprintf(text + n, most - n, "%s%s", i ? " " : "", words[i]);
    }
}

/* The route whose verb the words begin with; *used of them. Ends the program if there is none. */
static const struct studio_route *find_verb(int words, char **argv, int *used)
{
    const struct studio_route *route;
    const char *names[VERBS];
    char said[256], hint[TUNE_HINT];
    int count = 0;
    for (*used = words < 4 ? words : 4; *used > 0; --*used) {
        join(said, sizeof said, argv + 1, *used);
        for (int i = 0; (route = route_of(i)); i++)
            if (!strcmp(route->verb, said))
                return route;
    }
    for (int i = 0; (route = route_of(i)) && count < VERBS; i++)
        names[count++] = route->verb;
    join(said, sizeof said, argv + 1, words < 2 ? words : 2);
    static struct tune_flags flags;
    static const struct tune_option no_options[] = {{0}};
    static const struct tune_property none[] = {{0}};
    tune_program_start(1, argv, &flags, no_options, none, ""); /* for the program's name in the message */
    tune_error_usage("there is no command %s%s; studio --help lists them", said, tune_nearest_hint(said, names, count, hint));
    tune_program_fail();
}

/* ---- options from parameters ---- */

static bool takes_words(const struct studio_parameter *p)
{
    return p->type == STUDIO_JSON && !strcmp(p->name, "values");
}

static void add_option(struct verb *v, int i, const struct studio_parameter *p)
{
    int k = (int)(p - v->route->parameters);
    bool word = p->in == STUDIO_IN_PATH || p->required || takes_words(p);
    snprintf(v->names[k], sizeof v->names[k], takes_words(p) ? "<name=value...>" : word ? "<%s>" : "%s", p->name);
    for (char *at = v->names[k]; !word && *at; at++)
        *at = *at == '_' ? '-' : *at;
    bool truth = p->type == STUDIO_BOOL && !word;
    v->parameters[i] = p;
    v->options[i] = (struct tune_option){
        .name = v->names[k], .type = truth ? TUNE_BOOL : p->choices ? TUNE_CHOICE : TUNE_STRING,
        .at = truth ? (void *)&v->switches[k] : (void *)&v->texts[k],
        .value = truth ? "false" : takes_words(p) ? "" : NULL, .range = p->choices ? p->choices : "", .unit = "", .help = p->help,
    };
}

static void make_options(struct verb *v)
{
    const struct tune_option own[OWN] = {
        TUNE_OPTION_GROUP("the studio"),
        {"root", TUNE_STRING, &v->root, ".", "", "", "folder with the runs, stores and data"},
        {"programs", TUNE_STRING, &v->programs, NULL, "", "", "folders of programs to start, with commas. Default: the folder of this program"},
        {"json", TUNE_BOOL, &v->json, "false", "", "", "print the answer as JSON"},
        {"width", TUNE_INT, &v->width, "0", "[0,4096]", "columns", "width of the table; 0: the terminal's"},
    };
    int n = 0;
    for (int pass = 0; pass < 3; pass++) /* words first: of the path, required ones, the rest of the words; then options */
        for (const struct studio_parameter *p = v->route->parameters; p->name; p++)
            if ((takes_words(p) ? 1 : p->in == STUDIO_IN_PATH || p->required ? 0 : 2) == pass)
                add_option(v, n++, p);
    memcpy(v->options + n, own, sizeof own);
}

/* ---- the request ---- */

static void put_encoded(FILE *out, const char *text)
{
    for (; *text; text++)
        if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~", *text))
            fputc(*text, out);
        else
            fprintf(out, "%%%02X", (unsigned char)*text);
}

/* The value that was given for a parameter; NULL: nothing. */
static const char *given(const struct verb *v, const struct studio_parameter *p)
{
    int k = (int)(p - v->route->parameters);
    if (p->type == STUDIO_BOOL && v->names[k][0] != '<')
        return !tune_flags_given(&v->tune, v->names[k]) ? NULL : v->switches[k] ? "true" : "false";
    return v->texts[k];
}

static char *make_target(const struct verb *v)
{
    char *text = NULL, mark = '?';
    size_t size;
    FILE *out = GET(open_memstream(&text, &size));
    for (const char *at = v->route->path; *at; at++) {
        if (*at != '{') {
            fputc(*at, out);
            continue;
        }
        size_t n = strcspn(++at, "}");
        for (const struct studio_parameter *p = v->route->parameters; p->name; p++)
            if (p->in == STUDIO_IN_PATH && strlen(p->name) == n && !memcmp(p->name, at, n))
                put_encoded(out, given(v, p) ? given(v, p) : "");
        at += n;
    }
    for (const struct studio_parameter *p = v->route->parameters; p->name; p++)
        if (p->in == STUDIO_IN_QUERY && given(v, p)) {
            fprintf(out, "%c%s=", mark, p->name);
            put_encoded(out, given(v, p));
            mark = '&';
        }
    fclose(out);
    return GET(text);
}

/* The words NAME=VALUE as an object of texts. */
static cJSON *read_values(const struct verb *v)
{
    cJSON *object = GET(cJSON_CreateObject());
    int count;
    const char *const *words = tune_flags_words(&v->tune, &count);
    for (int i = 0; i < count; i++) {
        const char *equal = strchr(words[i], '=');
        if (!equal || equal == words[i]) {
            tune_error_usage("%s: expected NAME=VALUE, such as lr=1e-4", words[i]);
            tune_program_fail();
        }
        char *name = GET(strndup(words[i], (size_t)(equal - words[i])));
        tune_cjson_put_text(object, name, equal + 1);
        free(name);
    }
    return object;
}

static cJSON *value_of(const struct studio_parameter *p, const char *text)
{
    char *end;
    double number = strtod(text, &end);
    cJSON *json = p->type == STUDIO_JSON ? tune_cjson_line(text) : NULL;
    if (p->type == STUDIO_BOOL && (!strcmp(text, "true") || !strcmp(text, "false")))
        return cJSON_CreateBool(!strcmp(text, "true"));
    if ((p->type == STUDIO_NUMBER || p->type == STUDIO_WHOLE) && end != text && !*end)
        return cJSON_CreateNumber(number);
    return json ? json : cJSON_CreateString(text);
}

/* NULL: the route has no body. */
static char *make_body(const struct verb *v)
{
    cJSON *object = GET(cJSON_CreateObject());
    for (const struct studio_parameter *p = v->route->parameters; p->name; p++)
        if (p->in == STUDIO_IN_BODY && takes_words(p))
            tune_cjson_put(object, p->name, read_values(v));
        else if (p->in == STUDIO_IN_BODY && given(v, p))
            tune_cjson_put(object, p->name, value_of(p, given(v, p)));
    char *text = strcmp(v->route->method, "GET") ? GET(cJSON_PrintUnformatted(object)) : NULL;
    cJSON_Delete(object);
    return text;
}

/* ---- the answer ---- */

/* Say what a problem says, and end. */
static void fail_as(const struct studio_reply *r)
{
    cJSON *json = r->data ? tune_cjson_line(r->data) : NULL;
    const char *detail = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "detail"));
    tune_error_set_kind(r->status < 500 ? r->status == 404 || r->status == 409 ? TUNE_ERROR_FAILED : TUNE_ERROR_USAGE : TUNE_ERROR_CANNOT, "%s",
                        detail ? detail : "the studio failed, and has no memory to say why");
    cJSON_Delete(json);
    tune_program_fail();
}

static void show(const struct verb *v, const struct studio_reply *r)
{
    bool json = !strncmp(r->type, "application/json", 16);
    cJSON *tree = json && !v->json ? tune_cjson_line(r->data) : NULL;
    if (tree) {
        MUST(studio_print_answer(tree, drawing_columns(v->width, 0), stdout));
        cJSON_Delete(tree);
        return;
    }
    fwrite(r->data, 1, r->size, stdout);
    if (r->size > 0 && r->data[r->size - 1] != '\n')
        fputc('\n', stdout);
}

static int list_group(const char *word)
{
    printf("commands of the studio, which need no server:\n\n");
    studio_list_verbs(word, stdout);
    printf("\nstudio COMMAND --help has the options of one.\n");
    return 0;
}

int studio_run_verb(struct studio *s, int argc, char **argv, void (*prepare)(struct studio *s, const char *root))
{
    static const struct tune_property none[] = {{0}};
    static struct verb v; /* 12 KiB; its texts live as long as the program */
    int words = studio_verb_count(argc, argv), used;
    bool help = argc == words + 2 && (!strcmp(argv[argc - 1], "--help") || !strcmp(argv[argc - 1], "-h"));
    char name[256], said[300];
    setlocale(LC_CTYPE, "");
    join(name, sizeof name, argv + 1, words);
    const struct studio_route *route;
    bool whole = false;
    int below = 0;
    for (int i = 0; (route = route_of(i)); i++)
        whole = whole || !strcmp(route->verb, name), below += begins(route->verb, name);
    if (below > 0 && !whole && (help || argc == words + 1))
        return list_group(name);
    v.route = find_verb(words, argv, &used);
    make_options(&v);
    /* The program is named "studio run list" in help and errors. */
    snprintf(said, sizeof said, "studio %s", v.route->verb);
    argv[used] = said;
    tune_program_start(argc - used, argv + used, &v.tune, v.options, none, v.route->summary);
    s->programs = v.programs;
    prepare(s, v.root);
    char *target = make_target(&v), *body = make_body(&v);
    struct studio_request q = {.method = v.route->method, .target = target, .body = body, .body_size = body ? strlen(body) : 0};
    struct studio_reply r;
    studio_answer(s, &q, &r);
    if (r.status >= 400)
        fail_as(&r);
    show(&v, &r);
    studio_reply_free(&r);
    free(target);
    free(body);
    tune_flags_free(&v.tune);
    return 0;
}
