/* routes.c - a request to the studio: the method, the target, and the headers Host, Origin, Sec-Fetch-Site, Content-Type,
 * If-None-Match, Cookie, each a line; the rest is the body. The table below has a parameter of each kind. */
#include <cjson/cJSON.h>
#include <math.h>

#include "../../tools/studio/guard.h"
#include "files/cjson.h"
#include "fuzz.h"

/* What a handler may rely on. */
static int echo(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    cJSON *json = cJSON_CreateObject();
    (void)s;
    for (const struct studio_parameter *p = q->route->parameters; p->name; p++) {
        const char *value = studio_value(q, p->name);
        double number = studio_number(q, p->name, 0);
        HOLDS(value || !p->required || p->type == STUDIO_JSON);
        if (value && (p->type == STUDIO_WHOLE || p->type == STUDIO_NUMBER))
            HOLDS(isfinite(number) && ((!p->least && !p->most) || (number >= p->least && number <= p->most)));
        if (value && p->type == STUDIO_WHOLE)
            HOLDS(number == floor(number));
        if (value && p->type == STUDIO_BOOL)
            HOLDS(!strcmp(value, "true") || !strcmp(value, "false"));
        if (value && p->choices)
            HOLDS(*value && !strchr(value, '|') && strstr(p->choices, value));
        if (value)
            HOLDS(tune_utf8_valid(value, strlen(value), NULL));
        if (p->in == STUDIO_IN_PATH)
            HOLDS(value && *value);
        tune_cjson_put_text(json, p->name, value ? value : "");
    }
    HOLDS(!q->json || cJSON_IsObject(q->json));
    studio_tag(r, q->target, strlen(q->target));
    if (studio_bool(q, "fails", false)) {
        cJSON_Delete(json);
        studio_member(r, "option", "lr");
        return studio_fail(r, 409, "%s", q->target);
    }
    if (studio_match(q, r) < 0) {
        cJSON_Delete(json);
        return -1;
    }
    return studio_put_json(r, json);
}

static const struct studio_route routes[] = {
    {"GET", "/", "a", NULL, "", "application/json", echo, {{0}}},
    {"GET", "/api/{id}", "b", NULL, "", "application/json", echo, {{"id", STUDIO_IN_PATH, STUDIO_TEXT, true, NULL, 0, 0, ""}}},
    {"GET", "/api/list", "c", NULL, "", "application/json", echo,
     {{"n", STUDIO_IN_QUERY, STUDIO_WHOLE, false, NULL, 0, 100, ""}, {"x", STUDIO_IN_QUERY, STUDIO_NUMBER, false, NULL, 0, 0, ""},
      {"how", STUDIO_IN_QUERY, STUDIO_TEXT, false, "step|time", 0, 0, ""}, {"fails", STUDIO_IN_QUERY, STUDIO_BOOL, false, NULL, 0, 0, ""},
      {"where", STUDIO_IN_QUERY, STUDIO_TEXT, true, NULL, 0, 0, ""}}},
    {"POST", "/api/{id}/{name}", "d", NULL, "", "application/json", echo,
     {{"id", STUDIO_IN_PATH, STUDIO_WHOLE, true, NULL, 0, 0, ""}, {"name", STUDIO_IN_PATH, STUDIO_TEXT, true, NULL, 0, 0, ""},
      {"n", STUDIO_IN_BODY, STUDIO_NUMBER, false, NULL, -1, 1, ""}, {"text", STUDIO_IN_BODY, STUDIO_TEXT, true, NULL, 0, 0, ""},
      {"fails", STUDIO_IN_BODY, STUDIO_BOOL, false, NULL, 0, 0, ""}, {"values", STUDIO_IN_BODY, STUDIO_JSON, true, NULL, 0, 0, ""}}},
    {0},
};
const struct studio_route *const studio_routes[] = {routes, NULL};

/* Cut a line off; NULL: it is empty, and the header absent. A NUL ends it early, as the library does. */
static const char *line(char **at)
{
    char *begin = *at, *end = strchr(begin, '\n');
    *at = end ? end + 1 : begin + strlen(begin);
    if (end)
        *end = 0;
    return *begin ? begin : NULL;
}

static void ask(struct studio *s, char *text, size_t size)
{
    char *at = text;
    const char *method = line(&at), *target = line(&at);
    struct studio_headers headers = {.host = line(&at), .origin = line(&at), .site = line(&at), .type = line(&at)};
    const char *none_match = line(&at), *cookie = line(&at);
    size_t used = (size_t)(at - text);
    headers.cookie = cookie, headers.authorization = cookie;
    struct studio_request q = {.method = method ? method : "GET", .target = target ? target : "/", .body = at, .body_size = size - used,
                               .if_none_match = none_match, .if_match = none_match, .headers = headers.host ? &headers : NULL};
    struct studio_reply r;
    studio_answer(s, &q, &r);
    HOLDS(r.type && (r.status == 200 || r.status == 303 || r.status == 304 || (r.status >= 400 && r.status < 500)));
    HOLDS(r.status != 304 || none_match);
    HOLDS(r.status != 405 || *r.allow);
    HOLDS(!strpbrk(r.location, "\r\n") && (!*r.location || *r.location == '/') && strncmp(r.location, "//", 2));
    if (!strcmp(r.type, "application/json") || r.status >= 400) {
        char *json = strndup(r.data, r.size);
        cJSON *tree = tune_cjson_line(json); /* whatever was asked, the answer is JSON */
        HOLDS(tree && (r.status < 400 || cJSON_GetObjectItemCaseSensitive(tree, "detail")));
        cJSON_Delete(tree);
        free(json);
    }
    if (r.status >= 400)
        fuzz_refused();
    studio_reply_free(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct studio s = {.root = "/", .host = "127.0.0.1", .port = 8642};
    char *text = malloc(size + 1); /* the lines end in it; the body is exactly as long as it is said to be */
    HOLDS(text);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = 0;
    /* A body without the NUL behind it, as it comes from the network. */
    bool with_token = size > 0 && text[0] == '!';
    snprintf(s.token, sizeof s.token, "%s", with_token ? "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" : "");
    ask(&s, text + with_token, size - with_token);
    free(text);
    return 0;
}
