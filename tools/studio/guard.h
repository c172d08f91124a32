/* guard.h - who may ask. Any page that the browser shows can send requests to this address.
 * So a request must come from the studio's own page or from no page at all. */
#ifndef TUNE_STUDIO_GUARD_H
#define TUNE_STUDIO_GUARD_H

#include "studio.h"

/* studio_admit - check the headers of a request:
 *   - Host is a name of this address. A page whose name was rebound to it has another one. The
 *     port may differ, for `ssh -L 9000:localhost:8642`. With a token any name is good.
 *   - Origin, if there is one, is that host. Sec-Fetch-Site says that no other site asks, unless
 *     somebody follows a link to read a page.
 *   - With a token: a cookie, `Authorization: Bearer`, or ?token= in the address has it.
 *   - A write is application/json, which no form of another site can send.
 * 0: go on. 1: answered, with a redirect that sets the cookie. -1: a problem.
 * studio_is_loopback - whether only this machine can reach the address.
 * studio_new_token - a random token, into s->token. -1 with an error. */
int studio_admit(const struct studio *s, const struct studio_request *q, struct studio_reply *r);
bool studio_is_loopback(const char *address);
int studio_new_token(struct studio *s);

#endif
