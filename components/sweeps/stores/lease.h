/* lease.h - leases on work: one file for each piece of work, made with O_EXCL. So two processes
 * that share an operation never do the same work. Leases are private to an operation;
 * tune_store_lock_point works across operations. A store has them in its folder `claims`.
 *
 * A lease records host, machine id, boot id, pid and start time of its process. On the same host it
 * is stale when the process is gone (another boot, or another process with this pid). Leases of
 * other hosts and containers are stale if they were not renewed for TUNE_LEASE_S, by the file
 * system's clock (tune_shared_older). Only one process can take over a stale lease. It makes a new
 * file beside the stale one (name~2, name~3). No file is removed while the folder is in use.
 *
 * A lease of a cluster's job also has the job's id and its number of starts. It never becomes stale
 * by age, because only the scheduler knows whether the job is alive. A process that asked the
 * scheduler releases the lease (tune_lease_revoke). A later start of the same job may take over
 * the leases of the earlier one. */
#ifndef TUNE_STORES_LEASE_H
#define TUNE_STORES_LEASE_H

#include "files/file.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TUNE_LEASE_S 300

struct tune_lease {
    char path[TUNE_PATH_MAX];
};

/* A scheduler's job: its id, such as "12_3", and the number of its earlier starts. turn: number of
 * pieces of work that it took before this one. */
struct tune_lease_job {
    char id[48];
    int restarts, turn;
};

/* The holder of a lease. takes: how often the work was leased so far. job.id "": no job. */
struct tune_lease_holder {
    char path[TUNE_PATH_MAX], host[65];
    struct tune_lease_job job;
    int takes;
};

/* tune_lease_take - lease the work called name, which has no '~', for the job (NULL: none). The
 * folder is made if needed. 1: leased. 0: a living process has it, or it is done; who[size]
 * describes the holder ("pid 71 on host", "job 12_3 on host", "done"). -1 with an error.
 * tune_lease_look - find the holder *h. 1: there is one, perhaps a job that has ended. 0: there is
 * none; then only takes is set. -1 with an error.
 * tune_lease_revoke - release the lease of an ended job, which tune_lease_look found.
 * tune_lease_alive - 1 if a living process has a lease whose name begins with `prefix`, else 0. -1
 * with an error.
 * tune_lease_renew - renew a lease. Call it at least every TUNE_LEASE_S / 3. -1 with an error, also
 * if the lease was taken over.
 * tune_lease_done - mark the work as done, so that nobody leases it again.
 * tune_lease_release - release the lease. */
int tune_lease_take(struct tune_lease *lease, const char *folder, const char *name,
                    const struct tune_lease_job *job, char *who, size_t size);
int tune_lease_look(const char *folder, const char *name, struct tune_lease_holder *h);
int tune_lease_revoke(const struct tune_lease_holder *h);
int tune_lease_alive(const char *folder, const char *begin);
int tune_lease_renew(struct tune_lease *lease);
int tune_lease_done(struct tune_lease *lease);
int tune_lease_release(struct tune_lease *lease);

#ifdef __cplusplus
}
#endif
#endif
