/* http.h - the server: HTTP/1.1 on one address, a thread for each connection. Only http.c knows
 * the library. */
#ifndef TUNE_STUDIO_HTTP_H
#define TUNE_STUDIO_HTTP_H

#include "studio.h"

struct studio_http;

/* studio_http_start - serve on host:port; port 0: any. *port becomes the one that it is. NULL with
 * an error: the address is taken, or may not be used.
 * studio_http_stop - end it; open connections are closed. */
struct studio_http *studio_http_start(struct studio *s, const char *host, int *port);
void studio_http_stop(struct studio_http *h);

#endif
