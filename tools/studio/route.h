/* route.h - the routes of the studio: one table drives dispatch, the checks of parameters,
 * /openapi.json and the verbs of the command line. Nothing here knows HTTP's bytes: http.c reads
 * them, the command line and the tests call studio_answer directly.
 *
 *     struct studio_request q = {.method = "GET", .target = "/api/runs?sort=loss"};
 *     struct studio_reply r;
 *     studio_answer(s, &q, &r);
 *     ... r.status, r.type, r.data[r.size] ...
 *     studio_reply_free(&r); */
#ifndef TUNE_STUDIO_ROUTE_H
#define TUNE_STUDIO_ROUTE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct cJSON;
struct studio;

/* Most bytes of a request's body and of its target, and most parameters of a route. */
enum { STUDIO_BODY_MOST = 1 << 20, STUDIO_TARGET_MOST = 16 << 10, STUDIO_PARAMETERS = 32 };

enum studio_place { STUDIO_IN_PATH, STUDIO_IN_QUERY, STUDIO_IN_BODY };
enum studio_type { STUDIO_TEXT, STUDIO_WHOLE, STUDIO_NUMBER, STUDIO_BOOL, STUDIO_JSON };

struct studio_parameter {
    const char *name;
    enum studio_place in;
    enum studio_type type;   /* STUDIO_JSON: any value, in a body only */
    bool required;
    const char *choices;     /* "a|b"; NULL: any */
    double least, most;      /* of a number; both 0: any */
    const char *help;
};

/* The headers by which a browser says what it is. Each is NULL if absent. */
struct studio_headers {
    const char *host, *origin, *site, *mode, *dest; /* the last three: Sec-Fetch-... */
    const char *type, *cookie, *authorization;      /* type: Content-Type */
};

struct studio_request {
    const char *method, *target;   /* "GET", "/api/runs?sort=loss" */
    const char *body;              /* [body_size]; NULL: none */
    size_t body_size;
    const char *if_match, *if_none_match; /* the headers; NULL: absent */
    /* NULL: the request did not come over HTTP. Else studio_admit checks them (guard.h). */
    const struct studio_headers *headers;
    /* Set by studio_answer, in the order of the route's parameters. */
    const struct studio_route *route;
    struct cJSON *json;            /* the body, an object; NULL: none */
    const char *values[STUDIO_PARAMETERS]; /* decoded; NULL: absent. Of a body, see json */
};

struct studio_reply {
    int status;
    const char *type;              /* content type, a constant */
    char etag[72];                 /* "": none */
    char name[128];                /* file name of a download; "": none */
    char allow[64];                /* after 405: the methods of that path */
    char location[256], cookie[160]; /* headers of a redirect; "": none */
    struct cJSON *members;         /* of a problem, besides RFC 9457's own; NULL: none */
    FILE *out;                     /* write the body here; it becomes data */
    char *data;
    size_t size;
    int file;                      /* >= 0: the body is this file's file_size bytes, not data. It is
                                    * read while it is sent, so it takes no memory */
    int64_t file_size;
};

struct studio_route {
    const char *method, *path;     /* "/api/runs/{id}/log"; {id} is one segment, percent-decoded */
    const char *name;              /* operationId, "listRuns" */
    const char *verb;              /* words of the command line, "run list"; NULL: none */
    const char *summary;
    const char *type;              /* content type of a good answer */
    /* 0: answered. -1: the thread's error becomes a problem (see studio_fail). */
    int (*answer)(struct studio *s, const struct studio_request *q, struct studio_reply *r);
    struct studio_parameter parameters[STUDIO_PARAMETERS]; /* ends with a NULL name */
};

/* studio_routes - the tables of all routes. Each ends with a NULL method, the list with NULL.
 * A path without {} goes before one with {}.
 * studio_answer - find the route, check the parameters and answer. Never fails: an error becomes a
 * problem (RFC 9457) in the reply. Values of the studio's secrets (secrets.h) become asterisks.
 * studio_reply_free - free the reply's data. */
extern const struct studio_route *const studio_routes[];
void studio_answer(struct studio *s, struct studio_request *q, struct studio_reply *r);
void studio_reply_free(struct studio_reply *r);

/* For handlers.
 * studio_value - the value of a parameter as text, from the path, the query or the body; NULL:
 * absent.
 * studio_number, studio_bool - the same as a number or truth; otherwise if absent.
 * studio_fail - set the thread's error and the status of the problem. Returns -1. A handler that
 * returns -1 without it gets 400 for errors of kind USAGE, else 500.
 * studio_member - a member for the problem that follows, such as "option": "lr". Returns -1.
 * studio_put_json - write json as the answer and delete it; NULL: out of memory. Bytes of its texts
 * that are not UTF-8 become '?'.
 * studio_tag - set the etag from these bytes.
 * studio_match - before a write: compare the request's If-Match, if it has one, with r->etag, the
 * tag of what is there now. They differ: -1 and a problem 409. The browser then reads it again. */
const char *studio_value(const struct studio_request *q, const char *name);
double studio_number(const struct studio_request *q, const char *name, double otherwise);
bool studio_bool(const struct studio_request *q, const char *name, bool otherwise);
__attribute__((format(printf, 3, 4)))
int studio_fail(struct studio_reply *r, int status, const char *format, ...);
int studio_member(struct studio_reply *r, const char *name, const char *text);
int studio_put_json(struct studio_reply *r, struct cJSON *json);
void studio_tag(struct studio_reply *r, const void *bytes, size_t size);
int studio_match(const struct studio_request *q, struct studio_reply *r);

#endif
