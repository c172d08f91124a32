/* route.c - find the route of a request, check its parameters, and answer. */
#include "route.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/error.h"
#include "core/hash.h"
#include "files/cjson.h"
#include "files/json.h"
#include "guard.h"
#include "secrets.h"

static const char *status_title(int status)
{
    switch (status) {
    case 400: return "Bad request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not found";
    case 405: return "Method not allowed";
    case 409: return "Conflict";
    case 413: return "Too large";
    case 415: return "Unsupported media type";
    case 421: return "Misdirected request";
    case 503: return "Unavailable";
    default: return "Internal error";
    }
}

/* Bytes that are not UTF-8 become '?', as in names of files: JSON has none. */
static char *print_valid(const cJSON *json, bool formatted)
{
    char *text = formatted ? cJSON_Print(json) : cJSON_PrintUnformatted(json);
    size_t size = text ? strlen(text) : 0, bad;
    for (char *at = text; at && !tune_utf8_valid(at, size - (size_t)(at - text), &bad);)
        at += bad, *at++ = '?';
    return text;
}

/* Put a problem (RFC 9457) in the place of what was written so far. */
static void put_problem(struct studio_reply *r, int status)
{
    cJSON *json = cJSON_CreateObject();
    bool good = tune_cjson_put_text(json, "type", "about:blank") && tune_cjson_put_text(json, "title", status_title(status)) &&
                tune_cjson_put_whole(json, "status", status) && tune_cjson_put_text(json, "detail", tune_error_message());
    for (cJSON *member; good && r->members && (member = r->members->child);)
        good = tune_cjson_put(json, member->string, cJSON_Duplicate(member, true)) && (cJSON_DetachItemViaPointer(r->members, member), cJSON_Delete(member), true);
    char *text = good ? print_valid(json, true) : NULL;
    cJSON_Delete(json);
    cJSON_Delete(r->members);
    if (r->out)
        fclose(r->out);
    free(r->data);
    r->members = NULL, r->out = NULL;
    *r->etag = *r->name = 0;
    r->status = status, r->type = "application/problem+json", r->data = text, r->size = text ? strlen(text) : 0;
}

int studio_fail(struct studio_reply *r, int status, const char *format, ...)
{
    char text[2048];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    r->status = status;
    return tune_error_set_kind(status < 500 ? TUNE_ERROR_USAGE : TUNE_ERROR_CANNOT, "%s", text), -1;
}

int studio_member(struct studio_reply *r, const char *name, const char *text)
{
    r->members = r->members ? r->members : cJSON_CreateObject();
    tune_cjson_put_text(r->members, name, text);
    return -1;
}

int studio_put_json(struct studio_reply *r, cJSON *json)
{
    char *text = json ? print_valid(json, false) : NULL;
    cJSON_Delete(json);
    if (!text)
        return studio_fail(r, 503, "out of memory for the answer");
    fputs(text, r->out);
    cJSON_free(text);
    return 0;
}

void studio_tag(struct studio_reply *r, const void *bytes, size_t size)
{
    static const uint8_t key[16];
    snprintf(r->etag, sizeof r->etag, "\"%016" PRIx64 "\"", tune_siphash(bytes, size, key));
}

/* True if a list such as `"a", W/"b"` or * names the tag. A weak one is the same here: one tag stands for the same bytes. */
static bool names_tag(const char *list, const char *etag)
{
    size_t n = strlen(etag);
    if (n == 0)
        return false;
    for (const char *at = list; *at;) {
        at += strspn(at, " \t,");
        if (*at == '*')
            return true;
        if (!strncmp(at, "W/", 2))
            at += 2;
        const char *end = *at == '"' ? strchr(at + 1, '"') : NULL;
        if (!end)
            return false;
        if ((size_t)(end + 1 - at) == n && !memcmp(at, etag, n))
            return true;
        at = end + 1;
    }
    return false;
}

int studio_match(const struct studio_request *q, struct studio_reply *r)
{
    if (!q->if_match || names_tag(q->if_match, r->etag))
        return 0;
    return studio_fail(r, 409, "this was changed since it was read, and is now %s; read it again, then repeat the change", *r->etag ? r->etag : "gone");
}

/* ---- parameters ---- */

static int index_of(const struct studio_request *q, const char *name)
{
    for (int i = 0; i < STUDIO_PARAMETERS && q->route->parameters[i].name; i++)
        if (!strcmp(q->route->parameters[i].name, name))
            return i;
    return -1;
}

const char *studio_value(const struct studio_request *q, const char *name)
{
    int i = index_of(q, name);
    return i >= 0 ? q->values[i] : NULL;
}

double studio_number(const struct studio_request *q, const char *name, double otherwise)
{
    const char *text = studio_value(q, name);
    return text ? strtod(text, NULL) : otherwise;
}

bool studio_bool(const struct studio_request *q, const char *name, bool otherwise)
{
    const char *text = studio_value(q, name);
    return text ? !strcmp(text, "true") : otherwise;
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decode size bytes of percent-encoding. NULL with an error: a bad escape, a NUL, not UTF-8, or no memory. */
static char *decode(const char *text, size_t size, bool plus)
{
    char *out = malloc(size + 1);
    size_t n = 0;
    for (size_t i = 0; out && i < size; i++) {
        int c = plus && text[i] == '+' ? ' ' : (unsigned char)text[i];
        if (text[i] == '%') {
            int high = i + 2 < size ? digit(text[i + 1]) : -1, low = i + 2 < size ? digit(text[i + 2]) : -1;
            c = high >= 0 && low >= 0 ? high * 16 + low : -1;
            i += 2;
        }
        if (c <= 0) {
            tune_error_set_kind(TUNE_ERROR_USAGE, "a bad escape in the address; expected %% and two hexadecimal digits, not %%00");
            free(out);
            return NULL;
        }
        out[n++] = (char)c;
    }
    if (!out) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory for an address");
        return NULL;
    }
    out[n] = 0;
    if (!tune_utf8_valid(out, n, NULL)) {
        tune_error_set_kind(TUNE_ERROR_USAGE, "the address is not UTF-8");
        free(out);
        return NULL;
    }
    return out;
}

static int check_value(const struct studio_parameter *p, const char *text)
{
    char *end;
    if (p->choices) {
        size_t n = strlen(text);
        for (const char *at = p->choices; *at; at += *at == '|') {
            size_t m = strcspn(at, "|");
            if (n == m && !memcmp(at, text, n))
                return 0;
            at += m;
        }
        return tune_error_usage("%s: \"%s\" is none of %s", p->name, text, p->choices);
    }
    if (p->type == STUDIO_BOOL && strcmp(text, "true") && strcmp(text, "false"))
        return tune_error_usage("%s: expected true or false, not \"%s\"", p->name, text);
    if (p->type != STUDIO_WHOLE && p->type != STUDIO_NUMBER)
        return 0;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || (p->type == STUDIO_WHOLE && value != floor(value)))
        return tune_error_usage("%s: expected a %snumber, not \"%s\"", p->name, p->type == STUDIO_WHOLE ? "whole " : "", text);
    if ((p->least || p->most) && !(value >= p->least && value <= p->most))
        return tune_error_usage("%s: expected a number from %g to %g, not %s", p->name, p->least, p->most, text);
    return 0;
}

static int set_value(struct studio_request *q, int i, char *text)
{
    if (!text)
        return -1;
    free((char *)(uintptr_t)q->values[i]);
    q->values[i] = text;
    return check_value(&q->route->parameters[i], text);
}

/* 1 if the path has the pattern's segments. keep: take the values of {segments}. -1 with an error: a bad one. */
static int match(const char *pattern, const char *path, size_t size, struct studio_request *keep)
{
    const char *end = path + size;
    while (*pattern && path < end) {
        if (*pattern == '{') {
            size_t n = strcspn(pattern, "}"), m = 0;
            char name[48];
            while (path + m < end && path[m] != '/')
                m++;
            if (m == 0)
                return 0;
            snprintf(name, sizeof name, "%.*s", (int)n - 1, pattern + 1);
            int i = keep ? index_of(keep, name) : -1;
            if (keep && i >= 0 && set_value(keep, i, decode(path, m, false)) < 0)
                return -1;
            pattern += n + 1;
            path += m;
        } else if (*pattern++ != *path++) {
            return 0;
        }
    }
    return !*pattern && path == end;
}

static int read_query(struct studio_request *q, const char *query)
{
    for (const char *at = query; *at; at += *at == '&') {
        size_t n = strcspn(at, "&"), m = strcspn(at, "=&");
        if (n == 0)
            continue;
        char *name = decode(at, m, true);
        if (!name)
            return -1;
        int i = index_of(q, name);
        if (i < 0 || q->route->parameters[i].in != STUDIO_IN_QUERY || q->values[i]) {
            tune_error_usage("\"%s\": %s; /openapi.json lists the parameters of %s", name, i >= 0 && q->values[i] ? "given twice" :
                             "no such parameter here", q->route->path);
            free(name);
            return -1;
        }
        free(name);
        if (set_value(q, i, decode(at + m + (m < n), n - m - (m < n), true)) < 0)
            return -1;
        at += n;
    }
    return 0;
}

static int read_body(struct studio_request *q)
{
    if (!q->body || q->body_size == 0)
        return 0;
    if (memchr(q->body, 0, q->body_size))
        return tune_error_usage("the body has a NUL byte; expected a JSON object");
    char *text = strndup(q->body, q->body_size);
    q->json = text ? tune_cjson_line(text) : NULL;
    free(text);
    if (!cJSON_IsObject(q->json))
        return tune_error_usage("the body is no JSON object");
    const cJSON *item;
    cJSON_ArrayForEach(item, q->json) {
        int i = index_of(q, item->string);
        if (i < 0 || q->route->parameters[i].in != STUDIO_IN_BODY)
            return tune_error_usage("\"%s\": no such member; /openapi.json lists those of %s", item->string, q->route->path);
        enum studio_type type = q->route->parameters[i].type;
        if (item != cJSON_GetObjectItemCaseSensitive(q->json, item->string))
            return tune_error_usage("\"%s\": given twice", item->string);
        if (type == STUDIO_JSON)
            continue;
        bool good = type == STUDIO_TEXT ? cJSON_IsString(item) : type == STUDIO_BOOL ? cJSON_IsBool(item) : cJSON_IsNumber(item);
        if (!good)
            return tune_error_usage("\"%s\": expected a %s", item->string, type == STUDIO_TEXT ? "text" : type == STUDIO_BOOL ? "boolean" : "number");
        struct tune_text all = tune_cjson_text(item);
        if (type == STUDIO_TEXT && (!all.data || memchr(all.data, 0, all.size)))
            return tune_error_usage("\"%s\": the text has a NUL", item->string);
        char number[32];
        snprintf(number, sizeof number, "%.17g", item->valuedouble);
        char *value = strdup(type == STUDIO_TEXT ? item->valuestring : type == STUDIO_BOOL ? cJSON_IsTrue(item) ? "true" : "false" : number);
        if (set_value(q, i, value) < 0)
            return -1;
    }
    return 0;
}

static int check_required(const struct studio_request *q)
{
    for (int i = 0; i < STUDIO_PARAMETERS && q->route->parameters[i].name; i++) {
        const struct studio_parameter *p = &q->route->parameters[i];
        bool there = q->values[i] || (p->in == STUDIO_IN_BODY && cJSON_GetObjectItemCaseSensitive(q->json, p->name));
        if (p->required && !there)
            return tune_error_usage("%s is missing: %s", p->name, p->help);
    }
    return 0;
}

/* ---- dispatch ---- */

static int count_of(const char *text, char c)
{
    int n = 0;
    for (; *text; text++)
        n += *text == c;
    return n;
}

/* The route of the request; NULL: none. HEAD is answered as GET. allow: the methods of the path; "": there is no such path. */
static const struct studio_route *find_route(const struct studio_request *q, size_t size, char *allow, size_t most)
{
    const char *method = !strcmp(q->method, "HEAD") ? "GET" : q->method;
    const struct studio_route *best = NULL;
    for (int t = 0; studio_routes[t]; t++)
        for (const struct studio_route *route = studio_routes[t]; route->method; route++) {
            if (match(route->path, q->target, size, NULL) != 1)
                continue;
            size_t n = strlen(allow);
            if (!strstr(allow, route->method))
                snprintf(allow + n, most - n, "%s%s%s", n ? ", " : "", route->method, !strcmp(route->method, "GET") ? ", HEAD" : "");
            if (!strcmp(route->method, method) && (!best || count_of(route->path, '{') < count_of(best->path, '{')))
                best = route;
        }
    return best;
}

static int answer(struct studio *s, struct studio_request *q, struct studio_reply *r)
{
    size_t size = strcspn(q->target, "?#");
    if (strlen(q->target) > STUDIO_TARGET_MOST || q->body_size > STUDIO_BODY_MOST)
        return studio_fail(r, 413, "the request is too large: an address has at most %d bytes, a body %d", STUDIO_TARGET_MOST, STUDIO_BODY_MOST);
    int admitted = q->headers ? studio_admit(s, q, r) : 0;
    if (admitted != 0)
        return admitted < 0 ? -1 : 0;
    q->route = find_route(q, size, r->allow, sizeof r->allow);
    if (!q->route)
        return studio_fail(r, *r->allow ? 405 : 404, "%s %.*s: no such route; /openapi.json lists them", q->method, (int)(size < 200 ? size : 200), q->target);
    *r->allow = 0;
    if (match(q->route->path, q->target, size, q) < 0 || read_query(q, q->target[size] == '?' ? q->target + size + 1 : "") < 0 ||
        read_body(q) < 0 || check_required(q) < 0)
        return r->status = 400, -1;
    r->type = q->route->type;
    r->status = 200;
    return q->route->answer(s, q, r) < 0 ? (r->status == 200 ? r->status = 0 : 0, -1) : 0;
}

static bool is_read(const char *method)
{
    return !strcmp(method, "GET") || !strcmp(method, "HEAD");
}

void studio_answer(struct studio *s, struct studio_request *q, struct studio_reply *r)
{
    *r = (struct studio_reply){.status = 0, .file = -1};
    r->out = open_memstream(&r->data, &r->size);
    tune_error_clear();
    int status = r->out ? answer(s, q, r) : studio_fail(r, 503, "out of memory");
    if (status < 0) {
        put_problem(r, r->status ? r->status : tune_error_kind() == TUNE_ERROR_USAGE ? 400 : 500);
    } else {
        fclose(r->out);
        r->out = NULL;
        cJSON_Delete(r->members);
        r->members = NULL;
        if (r->status == 200 && q->if_none_match && names_tag(q->if_none_match, r->etag) && is_read(q->method))
            r->status = 304; /* http.c sends the size, and no body */
    }
    studio_scrub(s, r->data, r->size);
    for (int i = 0; i < STUDIO_PARAMETERS; i++)
        free((char *)(uintptr_t)q->values[i]), q->values[i] = NULL;
    cJSON_Delete(q->json);
    q->json = NULL;
}

void studio_reply_free(struct studio_reply *r)
{
    free(r->data);
    cJSON_Delete(r->members);
    if (r->file >= 0)
        close(r->file);
    *r = (struct studio_reply){.status = 0, .file = -1};
}
