/* http.c - requests and answers by libmicrohttpd. */
#include "http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

enum { CONNECTIONS = 32, IDLE_S = 10 };

struct studio_http {
    struct studio *s;
    struct MHD_Daemon *daemon;
};

/* A request so far. */
struct body {
    char *target; /* as the browser sent it, with its query */
    char *text;
    size_t size;
    bool begun, too_large;
};

static enum MHD_Result send_reply(struct MHD_Connection *c, struct studio_reply *r)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(r->size, r->data ? r->data : (char[]){0}, MHD_RESPMEM_MUST_COPY);
    char text[256];
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, "Content-Type", r->type);
    MHD_add_response_header(response, "Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(response, "Cache-Control", "no-cache");
    if (*r->etag)
        MHD_add_response_header(response, "ETag", r->etag);
    if (*r->name) {
        snprintf(text, sizeof text, "attachment; filename=\"%s\"", r->name);
        MHD_add_response_header(response, "Content-Disposition", text);
    }
    enum MHD_Result done = MHD_queue_response(c, (unsigned)r->status, response);
    MHD_destroy_response(response);
    return done;
}

static void *begin(void *context, const char *target, struct MHD_Connection *c)
{
    struct body *body = calloc(1, sizeof *body);
    (void)context, (void)c;
    if (body)
        body->target = strdup(target);
    return body;
}

static enum MHD_Result handle(void *context, struct MHD_Connection *c, const char *path, const char *method, const char *version,
                              const char *data, size_t *size, void **state)
{
    struct studio_http *h = context;
    struct body *body = *state;
    (void)path, (void)version;
    if (!body || !body->target)
        return MHD_NO;
    if (!body->begun)
        return body->begun = true, MHD_YES;
    if (*size > 0) { /* a piece of the body */
        if (body->size + *size <= STUDIO_BODY_MOST) {
            char *more = realloc(body->text, body->size + *size);
            if (!more)
                return MHD_NO;
            memcpy(more + body->size, data, *size);
            body->text = more;
        } else {
            body->too_large = true;
        }
        body->size += *size;
        *size = 0;
        return MHD_YES;
    }
    struct studio_request q = {
        .method = method, .target = body->target, .body = body->too_large ? NULL : body->text, .body_size = body->size,
        .if_match = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "If-Match"),
        .if_none_match = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "If-None-Match"),
    };
    struct studio_reply r;
    studio_answer(h->s, &q, &r);
    enum MHD_Result done = send_reply(c, &r);
    studio_reply_free(&r);
    return done;
}

static void completed(void *context, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode how)
{
    struct body *body = *state;
    (void)context, (void)c, (void)how;
    if (body) {
        free(body->target);
        free(body->text);
    }
    free(body);
}

struct studio_http *studio_http_start(struct studio *s, const char *host, int *port)
{
    struct studio_http *h = calloc(1, sizeof *h);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
    if (!h || inet_pton(AF_INET, host, &address.sin_addr) != 1) {
        free(h);
        tune_error_usage("--host %s: expected an IPv4 address such as 127.0.0.1", host);
        return NULL;
    }
    h->s = s;
    errno = 0;
    h->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_ERROR_LOG, 0, NULL, NULL, handle, h,
                                 MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&address, MHD_OPTION_URI_LOG_CALLBACK, begin, NULL,
                                 MHD_OPTION_NOTIFY_COMPLETED, completed, NULL,
                                 MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_END);
    if (!h->daemon) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "%s:%d: cannot serve there: %s; give another --port", host, *port, strerror(errno));
        free(h);
        return NULL;
    }
    *port = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
    return h;
}

void studio_http_stop(struct studio_http *h)
{
    if (h)
        MHD_stop_daemon(h->daemon);
    free(h);
}
