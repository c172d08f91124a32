/* http.h - the server: HTTP/1.1 on one address, a thread for each connection, at most 32 of them.
 * Only http.c knows the library.
 *
 * When all 32 are taken, a new connection takes the place of one that waits. That is the one that
 * has been idle longest between two requests. Next come those whose request is not whole after 20
 * ms, or whose reader is too slow after 20 s. If none of them waits, the new one gets a 503 at
 * once. So slow clients, and thousands of connections, do not keep others out. A request must be
 * whole 10 s after it began, and the next one begin after 15 s; else the connection is closed. An
 * answer may take as long as it takes. */
#ifndef TUNE_STUDIO_HTTP_H
#define TUNE_STUDIO_HTTP_H

#include "studio.h"

struct studio_http;

/* studio_http_start - serve on s->host and s->port; port 0: any. s->port becomes the one that it
 * is. For an address that others can reach, s->token is made. NULL with an error: the address is
 * taken, or may not be used.
 * studio_http_stop - end it; open connections are closed. */
struct studio_http *studio_http_start(struct studio *s);
void studio_http_stop(struct studio_http *h);

#endif
