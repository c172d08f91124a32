/* claim.h - claims on work: one file for each piece of work, made with O_EXCL. So two processes
 * that share an operation never do the same work. Operations do not see each other's claims; for
 * two operations there is tune_store_hold.
 *
 * A claim holds host, machine id, boot id, pid and start time of its process. On the same host it
 * is stale when that process is gone (another boot, or another process with that pid). Claims of
 * other hosts and containers are stale when nobody renewed them for TUNE_CLAIM_S. The file system's
 * clock counts, not that of the hosts (tune_shared_older). One process only may take over a
 * stale claim. The process makes a file of its own beside the stale one (name~2, name~3). No file
 * is removed while the folder is in use.
 *
 * A claim of a cluster's job also holds the job's id and how often the job was started. It never
 * goes stale by itself, and no clock is compared: only the scheduler knows whether the job lives.
 * Who asked the scheduler gives the claim back (tune_claim_release). A later start of the same job
 * may take over the claims of the earlier one. */
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

/* The job of a scheduler that a process belongs to: its id there, such as "12_3", and how often the
 * job was started before. turn: pieces of work that it took before this one. */
struct tune_claim_job {
    char id[48];
    int restarts, turn;
};

/* Who has a claim. takes: how often the work was taken so far. job.id "": no job's. */
struct tune_claim_holder {
    char path[TUNE_PATH_MAX], host[65];
    struct tune_claim_job job;
    int takes;
};

/* tune_claim_take - claim the work called name, which has no '~', for the job (NULL: none). The
 * folder is made if needed. 1: it is ours. 0: a living process has it, or it is done; who[size]
 * says which ("pid 71 on host", "job 12_3 on host", "done"). -1 with an error.
 * tune_claim_look - who has the work, *h. 1: somebody has it, maybe a job that has ended. 0: nobody
 * has; then only takes is set. -1 with an error.
 * tune_claim_release - give back a claim of a job that has ended, as tune_claim_look found it.
 * tune_claim_alive - whether a living process holds a claim whose name begins with `prefix`: 1, 0,
 * or -1 with an error.
 * tune_claim_renew - renew a claim, at least every TUNE_CLAIM_S / 3. -1 with an error also if it
 * was taken over.
 * tune_claim_done - leave the claim as done; nobody takes it again.
 * tune_claim_drop - give the claim back. */
int tune_claim_take(struct tune_claim *c, const char *folder, const char *name,
                    const struct tune_claim_job *job, char *who, size_t size);
int tune_claim_look(const char *folder, const char *name, struct tune_claim_holder *h);
int tune_claim_release(const struct tune_claim_holder *h);
int tune_claim_alive(const char *folder, const char *begin);
int tune_claim_renew(struct tune_claim *c);
int tune_claim_done(struct tune_claim *c);
int tune_claim_drop(struct tune_claim *c);

#ifdef __cplusplus
}
#endif
#endif
