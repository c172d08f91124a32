/* slurm.h - the Slurm job that this process belongs to. It calls Slurm's own program scontrol. */
#ifndef TUNE_MACHINE_SLURM_H
#define TUNE_MACHINE_SLURM_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* tune_slurm_job - the job's number, from SLURM_JOB_ID; NULL: this is no job of Slurm.
 * tune_slurm_requeue - put the job back into the queue. Slurm then ends what is left of it, waits
 * until it is gone, and starts its script again. idle: this start did no work. 0: Slurm will. 1:
 * left alone, because it was cancelled, or Slurm itself puts it back. 2: left alone, because it was
 * idle for half of its time limit. -1 with an error: no scontrol, or Slurm refused.
 * tune_slurm_signals_sent - wait, for at most 2 s, until Slurm is not in the middle of signalling
 * this job. It signals the job's processes one by one. So a program whose child was killed may end
 * well before the signal reaches us. true: a signal that was on its way has reached us. false: we
 * do not know. Then slurmstepd, the daemon that signals, was busy all the time, or is hidden from
 * us (as by /proc with hidepid). Tasks of `srun` have daemons of their own; those are not looked
 * at. */
const char *tune_slurm_job(void);
int tune_slurm_requeue(const char *job, bool idle);
bool tune_slurm_signals_sent(void);

#ifdef __cplusplus
}
#endif
#endif
