/* http.c - requests and answers by libmicrohttpd, which gets its connections from here. */
#include "http.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <microhttpd.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/try.h"
#include "guard.h"
#include "secrets.h"

enum { CONNECTIONS = 32, IDLE_S = 15, REQUEST_S = 10, SLOW_READER_S = 20 };
#define NEW_S 0.02   /* a new connection keeps its place for so long, whoever else comes */
#define PLACE_S 0.25 /* how long a new one waits for the place of one that is ended */

/* A connection's place. */
struct slot {
    int fd; /* -1: free */
    enum { WAITING, READING, ANSWERING, SENDING } phase; /* WAITING: between two requests */
    bool closing;
    double since; /* when the phase began */
};

struct studio_http {
    struct studio *s;
    struct MHD_Daemon *daemon;
    int listener, wake[2];
    pthread_t acceptor;
    pthread_mutex_t mutex; /* of the slots */
    pthread_cond_t freed;  /* a slot became free */
    struct slot slots[CONNECTIONS];
};

/* A request so far. */
struct body {
    char *target; /* as the browser sent it, with its query */
    char *text;
    size_t size;
    bool begun, too_large;
};

static double now(void)
{
    return tune_clock_s();
}

/* ---- slots ---- */

static void set_phase(struct studio_http *h, struct MHD_Connection *c, int phase)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct slot *slot = info ? info->socket_context : NULL;
    if (!slot)
        return;
    pthread_mutex_lock(&h->mutex);
    if (phase != READING || slot->phase != READING) /* a request begins with its first byte; a new connection's, before */
        slot->since = now();
    slot->phase = (unsigned)phase;
    pthread_mutex_unlock(&h->mutex);
}

static void noted(void *context, struct MHD_Connection *c, void **socket_context, enum MHD_ConnectionNotificationCode code)
{
    struct studio_http *h = context;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    pthread_mutex_lock(&h->mutex);
    for (int i = 0; i < CONNECTIONS; i++) {
        struct slot *slot = &h->slots[i];
        if (code == MHD_CONNECTION_NOTIFY_STARTED && info && slot->fd == info->connect_fd)
            *socket_context = slot;
        else if (code == MHD_CONNECTION_NOTIFY_CLOSED && *socket_context == slot)
            slot->fd = -1, pthread_cond_signal(&h->freed);
    }
    pthread_mutex_unlock(&h->mutex);
}

/* How long the slot has been in a phase in which it may be ended: < 0, it may not. */
static double waits(const struct slot *slot, double at)
{
    double s = at - slot->since;
    if (slot->fd < 0 || slot->closing || slot->phase == ANSWERING || (slot->phase == SENDING && s < SLOW_READER_S))
        return -1;
    return slot->phase == WAITING ? s + 1e6 : s < NEW_S ? -1 : s;
}

static void end_slot(struct slot *slot)
{
    slot->closing = true;
    shutdown(slot->fd, SHUT_RDWR); /* its thread sees the end, and closes it */
}

/* A free slot for this socket; NULL: there is none yet, though one may have been ended to make place. */
static struct slot *take_slot(struct studio_http *h, int fd, bool *soon)
{
    struct slot *found = NULL, *longest = NULL;
    double at = now();
    int closing = 0;
    pthread_mutex_lock(&h->mutex);
    for (int i = 0; i < CONNECTIONS; i++) {
        struct slot *slot = &h->slots[i];
        closing += slot->fd >= 0 && slot->closing;
        if (slot->fd < 0)
            found = slot;
        else if (waits(slot, at) >= 0 && (!longest || waits(slot, at) > waits(longest, at)))
            longest = slot;
    }
    if (found)
        *found = (struct slot){.fd = fd, .phase = READING, .since = at};
    else if (longest && closing == 0)
        end_slot(longest), closing++;
    *soon = closing > 0;
    pthread_mutex_unlock(&h->mutex);
    return found;
}

/* The library's own limit of time is not used: it would end an answer that takes long to make. */
static void end_late(struct studio_http *h)
{
    double at = now();
    pthread_mutex_lock(&h->mutex);
    for (int i = 0; i < CONNECTIONS; i++) {
        struct slot *slot = &h->slots[i];
        if (slot->fd >= 0 && !slot->closing && ((slot->phase == READING && at - slot->since > REQUEST_S) || (slot->phase == WAITING && at - slot->since > IDLE_S)))
            end_slot(slot);
    }
    pthread_mutex_unlock(&h->mutex);
}

/* ---- new connections ---- */

static void refuse(int fd)
{
    static const char text[] = "{\"type\":\"about:blank\",\"title\":\"Unavailable\",\"status\":503,\"detail\":\"all connections are busy; try again\"}";
    char answer[512], rest[4096];
    int n = snprintf(answer, sizeof answer, "HTTP/1.1 503 Unavailable\r\nContent-Type: application/problem+json\r\nContent-Length: %zu\r\n"
                     "Retry-After: 1\r\nConnection: close\r\n\r\n%s", sizeof text - 1, text);
    (void)!send(fd, answer, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(fd, SHUT_WR);
    while (recv(fd, rest, sizeof rest, MSG_DONTWAIT) > 0) /* what was read already must not cut the answer off */
        ;
    close(fd);
}

/* Wait until a slot becomes free, 2 ms at most. */
static void wait_freed(struct studio_http *h)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 2000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&h->mutex);
    pthread_cond_timedwait(&h->freed, &h->mutex, &until);
    pthread_mutex_unlock(&h->mutex);
}

static void admit(struct studio_http *h, int fd, const struct sockaddr *address, socklen_t size)
{
    int on = 1;
    bool soon = true;
    struct slot *slot = NULL;
    double begin = now();
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    while (!slot && soon && now() - begin < PLACE_S) {
        slot = take_slot(h, fd, &soon);
        if (!slot && soon)
            wait_freed(h);
    }
    if (!slot) {
        refuse(fd);
    } else if (MHD_add_connection(h->daemon, fd, address, size) != MHD_YES) { /* it has closed the socket */
        pthread_mutex_lock(&h->mutex);
        slot->fd = -1;
        pthread_mutex_unlock(&h->mutex);
    }
}

static void *accept_all(void *context)
{
    struct studio_http *h = context;
    struct pollfd on[2] = {{.fd = h->listener, .events = POLLIN}, {.fd = h->wake[0], .events = POLLIN}};
    double looked = 0;
    for (;;) {
        struct sockaddr_storage address;
        socklen_t size = sizeof address;
        int ready = poll(on, 2, 1000);
        if (on[1].revents)
            return NULL;
        if (now() - looked > 1) {
            end_late(h);
            looked = now();
        }
        if (ready <= 0)
            continue;
        int fd = accept4(h->listener, (struct sockaddr *)&address, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            admit(h, fd, (struct sockaddr *)&address, size);
        else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
            poll(NULL, 0, 50); /* until others have closed some */
    }
}

/* ---- a request ---- */

/* A file on its way to the browser. */
struct download {
    const struct studio *s;
    int fd;
};

/* Read up to most bytes at that position, with secrets hidden. A secret may stand across two pieces, so its length before and
 * behind is read, too. */
static ssize_t read_piece(void *context, uint64_t position, char *piece, size_t most)
{
    enum { PIECE = 64 << 10 };
    const struct download *d = context;
    size_t around = studio_longest_secret(d->s), before = position < around ? (size_t)position : around;
    size_t want = most < PIECE ? most : PIECE;
    char *text = malloc(before + want + around);
    ssize_t n = text ? pread(d->fd, text, before + want + around, (off_t)(position - before)) : -1;
    if (n > 0)
        studio_scrub(d->s, text, (size_t)n);
    n -= n > 0 ? (ssize_t)before : 0;
    n = n > (ssize_t)want ? (ssize_t)want : n;
    if (n > 0)
        memcpy(piece, text + before, (size_t)n);
    free(text);
    return n > 0 ? n : MHD_CONTENT_READER_END_WITH_ERROR; /* cut short while it was sent */
}

static void end_download(void *context)
{
    struct download *d = context;
    close(d->fd);
    free(d);
}

/* The body of a reply, which takes the reply's file; NULL: no memory. */
static struct MHD_Response *response_of(const struct studio *s, struct studio_reply *r)
{
    struct MHD_Response *response;
    if (r->file >= 0) {
        struct download *d = malloc(sizeof *d);
        if (!d)
            return NULL;
        *d = (struct download){s, r->file};
        response = MHD_create_response_from_callback((uint64_t)r->file_size, 64 << 10, read_piece, d, end_download);
        if (response)
            r->file = -1;
        else
            free(d);
        return response;
    }
    response = MHD_create_response_from_buffer(r->size, r->data ? r->data : (char[]){0}, r->data ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_MUST_COPY);
    if (response)
        r->data = NULL;
    return response;
}

static enum MHD_Result send_reply(const struct studio *s, struct MHD_Connection *c, struct studio_reply *r, bool last)
{
    struct MHD_Response *response = response_of(s, r);
    char text[256];
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, "Content-Type", r->type);
    MHD_add_response_header(response, "Content-Security-Policy", "default-src 'self'; object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "X-Frame-Options", "DENY");
    MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
    MHD_add_response_header(response, "Cross-Origin-Opener-Policy", "same-origin");
    MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    /* With a tag the browser asks again each time, and mostly hears 304. */
    MHD_add_response_header(response, "Cache-Control", *r->etag ? "private, no-cache" : "no-store");
    if (*r->etag)
        MHD_add_response_header(response, "ETag", r->etag);
    if (*r->allow)
        MHD_add_response_header(response, "Allow", r->allow);
    if (*r->location)
        MHD_add_response_header(response, "Location", r->location);
    if (*r->cookie)
        MHD_add_response_header(response, "Set-Cookie", r->cookie);
    if (r->status == 401)
        MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (r->status == 503)
        MHD_add_response_header(response, "Retry-After", "1");
    if (last)
        MHD_add_response_header(response, "Connection", "close");
    if (*r->name) {
        size_t n = 0; /* a name from a stranger's folder: what would end the quotes or the line becomes _ */
        for (const char *at = r->name; *at && n < sizeof text - 32; at++)
            text[n++] = *at == '"' || *at == '\\' || (unsigned char)*at < 32 || (unsigned char)*at > 126 ? '_' : *at;
        text[n] = 0;
        char line[300];
        snprintf(line, sizeof line, "attachment; filename=\"%s\"", text);
        MHD_add_response_header(response, "Content-Disposition", line);
    }
    enum MHD_Result done = MHD_queue_response(c, (unsigned)r->status, response);
    MHD_destroy_response(response);
    return done;
}

/* True if the headers of a request have what they may not have: they could mean two requests to two readers. */
struct header_check {
    int lengths, encodings, hosts;
    bool bad;
    double length;
    const char *encoding;
};

static enum MHD_Result check_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct header_check *check = context;
    (void)kind;
    if (!*name)
        check->bad = true;
    for (const char *at = name; *at; at++) /* a space before the colon, a control character */
        check->bad = check->bad || !(isalnum((unsigned char)*at) || strchr("!#$%&'*+-.^_`|~", *at));
    for (const char *at = value ? value : ""; *at; at++)
        check->bad = check->bad || ((unsigned char)*at < 32 && *at != '\t') || *at == 127;
    if (!strcasecmp(name, "Content-Length")) {
        check->lengths++;
        check->bad = check->bad || !value || !*value || value[strspn(value, "0123456789")];
        check->length = value ? strtod(value, NULL) : 0;
    } else if (!strcasecmp(name, "Transfer-Encoding")) {
        check->encodings++;
        check->bad = check->bad || !value || strcasecmp(value, "chunked");
    } else if (!strcasecmp(name, "Host")) {
        check->hosts++;
    }
    return MHD_YES;
}

/* Answer without the rest of the request: the connection is closed then. */
static enum MHD_Result cut_off(struct MHD_Connection *c, int status, const char *detail)
{
    struct studio_reply r = {.status = status, .type = "application/problem+json", .file = -1};
    int n = asprintf(&r.data, "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%d,\"detail\":\"%s\"}",
                     status == 413 ? "Too large" : "Bad request", status, detail);
    if (n < 0)
        return MHD_NO;
    r.size = (size_t)n;
    return send_reply(NULL, c, &r, true);
}

/* The headers are there. MHD_YES: read the body. */
static enum MHD_Result begin_request(struct MHD_Connection *c, const char *version)
{
    struct header_check check = {0};
    MHD_get_connection_values(c, MHD_HEADER_KIND, check_header, &check);
    bool expects = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Expect");
    if (strcmp(version, "HTTP/1.1") && strcmp(version, "HTTP/1.0"))
        return cut_off(c, 400, "expected HTTP/1.1");
    if (check.bad || check.lengths > 1 || check.encodings > 1 || (check.lengths && check.encodings) || check.hosts > 1)
        return cut_off(c, 400, "bad headers: each of Host, Content-Length and Transfer-Encoding may stand there once, and not both of the last two");
    /* A body that is a little too large is read, so that the client sees the answer. */
    if (check.length > (expects ? 1 : 16) * (double)STUDIO_BODY_MOST)
        return cut_off(c, 413, "the body is too large: at most 1048576 bytes");
    return MHD_YES;
}

static void *begin(void *context, const char *target, struct MHD_Connection *c)
{
    struct body *body = calloc(1, sizeof *body);
    set_phase(context, c, READING);
    if (body)
        body->target = strdup(target);
    return body;
}

static enum MHD_Result take_piece(struct body *body, const char *data, size_t *size)
{
    if (body->size + *size <= STUDIO_BODY_MOST) {
        char *more = realloc(body->text, body->size + *size);
        if (!more)
            return MHD_NO;
        memcpy(more + body->size, data, *size);
        body->text = more;
    } else {
        body->too_large = true;
        if (body->size > 16 * (size_t)STUDIO_BODY_MOST)
            return MHD_NO; /* in chunks, without an end */
    }
    body->size += *size;
    *size = 0;
    return MHD_YES;
}

static const char *header(struct MHD_Connection *c, const char *name)
{
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

static enum MHD_Result handle(void *context, struct MHD_Connection *c, const char *path, const char *method, const char *version,
                              const char *data, size_t *size, void **state)
{
    struct studio_http *h = context;
    struct body *body = *state;
    (void)path;
    if (!body || !body->target)
        return MHD_NO;
    if (!body->begun)
        return body->begun = true, begin_request(c, version);
    if (*size > 0)
        return take_piece(body, data, size);
    struct studio_headers headers = {
        header(c, "Host"), header(c, "Origin"), header(c, "Sec-Fetch-Site"), header(c, "Sec-Fetch-Mode"), header(c, "Sec-Fetch-Dest"),
        header(c, "Content-Type"), header(c, "Cookie"), header(c, "Authorization"),
    };
    struct studio_request q = {
        .method = method, .target = body->target, .body = body->too_large ? NULL : body->text, .body_size = body->size,
        .if_match = header(c, "If-Match"), .if_none_match = header(c, "If-None-Match"), .headers = &headers,
    };
    struct studio_reply r;
    set_phase(h, c, ANSWERING);
    studio_answer(h->s, &q, &r);
    set_phase(h, c, SENDING);
    enum MHD_Result done = send_reply(h->s, c, &r, false);
    studio_reply_free(&r);
    return done;
}

static void completed(void *context, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode how)
{
    struct body *body = *state;
    (void)how;
    set_phase(context, c, WAITING);
    if (body) {
        free(body->target);
        free(body->text);
    }
    free(body);
    *state = NULL;
}

/* ---- start, stop ---- */

/* A socket that listens there; -1 with an error. */
static int listen_at(struct studio *s, const char *host)
{
    struct addrinfo want = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE}, *at = NULL;
    char port[16];
    int on = 1;
    snprintf(port, sizeof port, "%d", s->port);
    if (getaddrinfo(host, port, &want, &at) != 0 || !at)
        return tune_error_usage("--host %s: expected an address of this machine such as 127.0.0.1, ::1 or 0.0.0.0", host);
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (at->ai_family == AF_INET6 && studio_is_loopback(host))
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    }
    bool good = fd >= 0 && bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0;
    int why = errno;
    struct sockaddr_storage bound;
    socklen_t size = sizeof bound;
    freeaddrinfo(at);
    if (good && getsockname(fd, (struct sockaddr *)&bound, &size) == 0) {
        s->port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port : ((struct sockaddr_in *)&bound)->sin_port);
        return fd;
    }
    if (fd >= 0)
        close(fd);
    if (why == EADDRINUSE)
        return tune_error_cannot("port %d of %s is taken, perhaps by another studio; give another one with --port, or --port 0 for any", s->port, host);
    return tune_error_cannot("cannot serve at port %d of %s: %s; give another --port or --host", s->port, host, strerror(why));
}

static void free_http(struct studio_http *h)
{
    if (h->listener >= 0)
        close(h->listener);
    for (int i = 0; i < 2; i++)
        if (h->wake[i] >= 0)
            close(h->wake[i]);
    pthread_cond_destroy(&h->freed);
    pthread_mutex_destroy(&h->mutex);
    free(h);
}

struct studio_http *studio_http_start(struct studio *s)
{
    struct studio_http *h = calloc(1, sizeof *h);
    const char *host = !strcmp(s->host, "localhost") ? "127.0.0.1" : s->host;
    if (!h)
        return tune_error_no_memory("the server"), NULL;
    h->s = s;
    h->wake[0] = h->wake[1] = -1;
    pthread_mutex_init(&h->mutex, NULL);
    pthread_cond_init(&h->freed, NULL);
    for (int i = 0; i < CONNECTIONS; i++)
        h->slots[i].fd = -1;
    h->listener = listen_at(s, host);
    if (h->listener < 0 || (!studio_is_loopback(host) && studio_new_token(s) < 0)) {
        free_http(h);
        return NULL;
    }
    h->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL | MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET |
                                     (strchr(host, ':') ? MHD_USE_IPv6 : 0),
                                 0, NULL, NULL, handle, h, MHD_OPTION_URI_LOG_CALLBACK, begin, h, MHD_OPTION_NOTIFY_COMPLETED, completed, h,
                                 MHD_OPTION_NOTIFY_CONNECTION, noted, h,
                                 MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS + 1, MHD_OPTION_END);
    if (!h->daemon || pipe2(h->wake, O_CLOEXEC) < 0 || pthread_create(&h->acceptor, NULL, accept_all, h) != 0) {
        tune_error_cannot("cannot start the server: %s", strerror(errno));
        if (h->daemon)
            MHD_stop_daemon(h->daemon);
        free_http(h);
        return NULL;
    }
    return h;
}

void studio_http_stop(struct studio_http *h)
{
    if (!h)
        return;
    (void)!write(h->wake[1], "", 1);
    pthread_join(h->acceptor, NULL);
    MHD_stop_daemon(h->daemon);
    free_http(h);
}
