/* guard.c - who may ask: Host, Origin, the token, the type of a body. */
#include "guard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "core/error.h"

enum { TOKEN = 64 };

bool studio_is_loopback(const char *address)
{
    struct in_addr four;
    struct in6_addr six;
    if (inet_pton(AF_INET, address, &four) == 1)
        return ntohl(four.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, address, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

int studio_new_token(struct studio *s)
{
    unsigned char bytes[TOKEN / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return tune_error_set_kind(TUNE_ERROR_CANNOT, "no random bytes for a token: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(s->token + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* True if these n bytes are the token. The time does not tell how many of them are right. */
static bool is_token(const struct studio *s, const char *text, size_t n)
{
    unsigned char differ = 0;
    if (n != TOKEN)
        return false;
    for (size_t i = 0; i < TOKEN; i++)
        differ |= (unsigned char)(text[i] ^ s->token[i]);
    return differ == 0;
}

/* ---- where the request comes from ---- */

static bool has_name(const char *host, size_t n, const char *name)
{
    return strlen(name) == n && !strncasecmp(host, name, n);
}

static bool is_our_host(const struct studio *s, const char *host)
{
    char bound[80];
    const char *colon = *host == '[' ? strchr(host, ']') : host;
    size_t n = colon ? (size_t)(colon - host) + strcspn(colon, ":") : 0;
    if (n == 0 || (host[n] && (!host[n + 1] || host[n + 1 + strspn(host + n + 1, "0123456789")])))
        return false;
    snprintf(bound, sizeof bound, strchr(s->host, ':') ? "[%s]" : "%s", s->host);
    return has_name(host, n, "localhost") || has_name(host, n, "127.0.0.1") || has_name(host, n, "[::1]") || has_name(host, n, bound);
}

static bool is_our_origin(const struct studio_headers *h)
{
    const char *name = !strncmp(h->origin, "http://", 7) ? h->origin + 7 : !strncmp(h->origin, "https://", 8) ? h->origin + 8 : "";
    return !strcasecmp(name, h->host);
}

static int check_place(const struct studio *s, const struct studio_request *q, struct studio_reply *r, bool reads)
{
    const struct studio_headers *h = q->headers;
    if (!h->host)
        return studio_fail(r, 400, "the request has no Host, or several");
    if (!*s->token && !is_our_host(s, h->host))
        return studio_fail(r, 421, "Host %.100s is no name of this studio; open http://127.0.0.1:%d/", h->host, s->port);
    if (h->origin && !is_our_origin(h))
        return studio_fail(r, 403, "a page of %.100s may not ask this studio", h->origin);
    bool ours = !h->site || !strcmp(h->site, "same-origin") || !strcmp(h->site, "none");
    bool follows = reads && h->mode && !strcmp(h->mode, "navigate") && h->dest && !strcmp(h->dest, "document");
    if (!ours && !follows)
        return studio_fail(r, 403, "a page of another site may not ask this studio");
    return 0;
}

/* ---- the token ---- */

static void cookie_name(const struct studio *s, char name[32])
{
    snprintf(name, 32, "studio-%d", s->port); /* browsers do not keep the cookies of ports apart */
}

static bool cookie_has_token(const struct studio *s, const char *cookies)
{
    char name[32];
    cookie_name(s, name);
    for (const char *at = cookies; *at; at += strcspn(at, ";"), at += *at == ';') {
        at += strspn(at, " ");
        size_t n = strcspn(at, "=;");
        if (has_name(at, n, name) && at[n] == '=' && is_token(s, at + n + 1, strcspn(at + n + 1, ";")))
            return true;
    }
    return false;
}

/* A token in the query: set a cookie, and send the browser to the address without it. 0: there is none, or a wrong one. */
static int take_token(const struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    char rest[sizeof r->location] = "", name[32];
    size_t size = strcspn(q->target, "?"), used = 0;
    bool found = false;
    for (const char *at = q->target + size; *at; at += strcspn(at + 1, "&") + 1) {
        size_t n = strcspn(at + 1, "&");
        if (!strncmp(at + 1, "token=", 6)) {
            found = is_token(s, at + 7, n - 6) || found;
            continue;
        }
        int m = snprintf(rest + used, sizeof rest - used, "%c%.*s", used ? '&' : '?', (int)n, at + 1);
        used = used + (size_t)m < sizeof rest ? used + (size_t)m : 0;
        rest[used] = 0;
    }
    if (!found)
        return 0;
    bool path = *q->target == '/' && q->target[1] != '/' && q->target[1] != '\\' && size + used < sizeof r->location;
    snprintf(r->location, sizeof r->location, "%.*s%s", path ? (int)size : 1, path ? q->target : "/", path ? rest : "");
    cookie_name(s, name);
    snprintf(r->cookie, sizeof r->cookie, "%s=%s; HttpOnly; SameSite=Strict; Path=/", name, s->token);
    r->status = 303;
    r->type = "text/plain; charset=utf-8";
    fputs("The token is kept. Go on to the page.\n", r->out);
    return 1;
}

static int check_token(const struct studio *s, const struct studio_request *q, struct studio_reply *r, bool reads)
{
    const struct studio_headers *h = q->headers;
    if (h->authorization && !strncasecmp(h->authorization, "Bearer ", 7)) {
        const char *given = h->authorization + 7 + strspn(h->authorization + 7, " ");
        if (is_token(s, given, strlen(given)))
            return 0;
    }
    int taken = reads ? take_token(s, q, r) : 0;
    if (taken || (h->cookie && cookie_has_token(s, h->cookie)))
        return taken;
    return studio_fail(r, 401, "this studio asks for its token: open the address that it printed at its start, or send Authorization: Bearer TOKEN");
}

/* ---- all of it ---- */

int studio_admit(const struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    bool reads = !strcmp(q->method, "GET") || !strcmp(q->method, "HEAD");
    if (check_place(s, q, r, reads) < 0)
        return -1;
    int status = *s->token ? check_token(s, q, r, reads) : 0;
    if (status != 0 || (strcmp(q->method, "POST") && strcmp(q->method, "PUT") && strcmp(q->method, "PATCH") && strcmp(q->method, "DELETE")))
        return status;
    const char *type = q->headers->type ? q->headers->type : "";
    size_t n = strcspn(type, "; \t");
    if (!has_name(type, n, "application/json"))
        return studio_fail(r, 415, "expected Content-Type: application/json, with {} if there is nothing to say");
    return 0;
}
