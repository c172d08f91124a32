/* claim.h - who does what right now: one file per piece of work, made with O_EXCL, so that two
 * processes that share an operation never do the same. Operations do not see each other's claims;
 * see tune_store_hold for those.
 *
 * A claim holds host, boot id, pid and the process's start time. It is stale where its host is this
 * one and that process is not there (another boot, another process of that number); then it may be
 * taken over, by one process only. Claims of other hosts (and of other name spaces of pids, as
 * containers have) are stale when nobody renewed them for TUNE_CLAIM_S. Who takes one over makes a
 * file of his own beside it (name~2, name~3): none is removed while its folder is in use. */
#ifndef TUNE_STORES_CLAIM_H
#define TUNE_STORES_CLAIM_H

#include "files/file.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TUNE_CLAIM_S 300

struct tune_claim {
    char path[TUNE_PATH_MAX];
};

/* tune_claim_take - 1: it is ours; 0: somebody else's, who lives (who[size] says it: "pid 71 on
 * host"), or done (who: "done"); -1: an error. name: a file's, without '~'; the folder is made.
 * tune_claim_alive - whether anybody who lives holds a claim in the folder whose name begins so: 1,
 * 0, -1. Takes none.
 * tune_claim_renew - for claims held long, at least each TUNE_CLAIM_S / 3; -1 too where it was
 * taken over, by somebody who thought us gone. tune_claim_done - leave it as done: nobody takes it
 * again. tune_claim_drop - give it back. */
int tune_claim_take(struct tune_claim *c, const char *folder, const char *name, char *who,
                    size_t size);
int tune_claim_alive(const char *folder, const char *begin);
int tune_claim_renew(struct tune_claim *c);
int tune_claim_done(struct tune_claim *c);
int tune_claim_drop(struct tune_claim *c);

#ifdef __cplusplus
}
#endif
#endif
