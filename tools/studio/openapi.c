/* openapi.c - /openapi.json, made from the table of routes, and /healthz. */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <string.h>

#include "core/version.h"
#include "files/cjson.h"
#include "routes.h"

static cJSON *schema_of(const struct studio_parameter *p)
{
    static const char *const types[] = {"string", "integer", "number", "boolean", NULL};
    cJSON *schema = cJSON_CreateObject();
    if (types[p->type])
        tune_cjson_put_text(schema, "type", types[p->type]);
    if (p->least || p->most) {
        tune_cjson_put_number(schema, "minimum", p->least);
        tune_cjson_put_number(schema, "maximum", p->most);
    }
    cJSON *list = p->choices ? cJSON_AddArrayToObject(schema, "enum") : NULL;
    for (const char *at = p->choices; list && *at; at += *at == '|') {
        size_t n = strcspn(at, "|");
        tune_cjson_add_bytes(list, at, n);
        at += n;
    }
    if (p->in == STUDIO_IN_BODY)
        tune_cjson_put_text(schema, "description", p->help);
    return schema;
}

static void put_content(cJSON *object, const char *type, cJSON *schema)
{
    cJSON *content = cJSON_AddObjectToObject(object, "content"), *media = cJSON_AddObjectToObject(content, type);
    cJSON_AddItemToObject(media, "schema", schema ? schema : cJSON_CreateObject());
}

static void put_parameters(cJSON *operation, const struct studio_route *route)
{
    cJSON *list = cJSON_AddArrayToObject(operation, "parameters"), *properties = cJSON_CreateObject(), *required = cJSON_CreateArray();
    bool any = false;
    for (const struct studio_parameter *p = route->parameters; p->name; p++) {
        if (p->in == STUDIO_IN_BODY) {
            any = true;
            cJSON_AddItemToObject(properties, p->name, schema_of(p));
            if (p->required)
                cJSON_AddItemToArray(required, cJSON_CreateString(p->name));
            continue;
        }
        cJSON *one = cJSON_CreateObject();
        tune_cjson_put_text(one, "name", p->name);
        tune_cjson_put_text(one, "in", p->in == STUDIO_IN_PATH ? "path" : "query");
        cJSON_AddBoolToObject(one, "required", p->required || p->in == STUDIO_IN_PATH);
        tune_cjson_put_text(one, "description", p->help);
        cJSON_AddItemToObject(one, "schema", schema_of(p));
        cJSON_AddItemToArray(list, one);
    }
    if (!any) {
        cJSON_Delete(properties);
        cJSON_Delete(required);
        return;
    }
    cJSON *schema = cJSON_CreateObject();
    tune_cjson_put_text(schema, "type", "object");
    cJSON_AddItemToObject(schema, "properties", properties);
    cJSON_AddItemToObject(schema, "required", required);
    cJSON_AddBoolToObject(schema, "additionalProperties", false);
    put_content(cJSON_AddObjectToObject(operation, "requestBody"), "application/json", schema);
}

/* The part of the path that stands for a subject: runs, jobs, ...; for all else the studio. */
static void put_tag(cJSON *operation, const char *path)
{
    const char *subject = !strncmp(path, "/api/", 5) ? path + 5 : "studio";
    tune_cjson_add_bytes(cJSON_AddArrayToObject(operation, "tags"), subject, strcspn(subject, "/."));
}

static int get_openapi(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    cJSON *json = cJSON_CreateObject(), *info, *paths;
    (void)s, (void)q;
    tune_cjson_put_text(json, "openapi", "3.1.0");
    info = cJSON_AddObjectToObject(json, "info");
    tune_cjson_put_text(info, "title", "tune.c studio");
    tune_cjson_put_text(info, "version", TUNE_VERSION);
    paths = cJSON_AddObjectToObject(json, "paths");
    for (int t = 0; studio_routes[t]; t++)
        for (const struct studio_route *route = studio_routes[t]; route->method; route++) {
            cJSON *path = cJSON_GetObjectItemCaseSensitive(paths, route->path);
            char method[16] = "";
            for (size_t i = 0; route->method[i] && i < sizeof method - 1; i++)
                method[i] = (char)tolower(route->method[i]);
            path = path ? path : cJSON_AddObjectToObject(paths, route->path);
            cJSON *operation = cJSON_AddObjectToObject(path, method), *responses;
            tune_cjson_put_text(operation, "operationId", route->name);
            tune_cjson_put_text(operation, "summary", route->summary);
            if (route->verb)
                tune_cjson_put_text(operation, "x-command", route->verb);
            put_tag(operation, route->path);
            put_parameters(operation, route);
            responses = cJSON_AddObjectToObject(operation, "responses");
            cJSON *good = cJSON_AddObjectToObject(responses, "200"), *bad = cJSON_AddObjectToObject(responses, "default");
            tune_cjson_put_text(good, "description", "The answer.");
            put_content(good, route->type, NULL);
            tune_cjson_put_text(bad, "description", "A problem (RFC 9457).");
            put_content(bad, "application/problem+json", NULL);
        }
    return studio_put_json(r, json);
}

static int get_health(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    cJSON *json = cJSON_CreateObject();
    (void)q;
    tune_cjson_put_text(json, "status", "ok");
    tune_cjson_put_text(json, "root", s->root);
    return studio_put_json(r, json);
}

const struct studio_route studio_openapi_routes[] = {
    {"GET", "/openapi.json", "getOpenapi", NULL, "This description.", "application/json", get_openapi, {{0}}},
    {"GET", "/healthz", "getHealth", "health", "Whether the studio serves, and its root.", "application/json", get_health, {{0}}},
    {0},
};
