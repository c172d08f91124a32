/* measure.h - one measurement: an experiment's program run on one entity, its report checked and reduced to targets.
 *
 *     struct tune_measurement *m = tune_measurement_start(&options);
 *     do poll(tune_measurement_descriptor(m)); while (tune_measurement_next(m, &result) == 0);
 *     result.status, result.reason, result.targets[i]
 *     tune_measurement_free(m);
 *
 * Each run has a fresh folder of its own below options.folder, with log.txt and whatever the program writes there. What
 * its end means:
 *   exit 0, a report with all targets    valid; is_valid 0 in it: invalid
 *   exit 3, SIGKILL (of a script: 137) by the kernel for want of memory    invalid: this configuration cannot run here
 *   anything else (another exit code or signal, time-out, no report, or one that is not to be believed)    failed
 * With experiment.runs above 1 the runs follow each other; one that is not valid ends the measurement, unless targets
 * count how runs end. */
#ifndef TUNE_ACTUATORS_MEASURE_H
#define TUNE_ACTUATORS_MEASURE_H

#include "files/file.h"
#include "sweeps/spaces/experiment.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tune_status { TUNE_VALID, TUNE_INVALID, TUNE_FAILED, TUNE_STOPPED };

struct tune_measure_options {
    const struct tune_experiment *experiment;
    const struct tune_value *inputs;      /* [input_count] */
    const struct tune_command *command;   /* of these inputs */
    const char *program;                  /* a path with a '/' */
    const char *folder;                   /* of the measurement; made; must not be there */
    const char *const *environment;       /* NULL at its end; TUNE_NONCE, TUNE_OUTPUT (absolute), the command's are added */
    double limit_s, grace_s;              /* of one run; limit 0: none */
    int64_t log_limit;
    const int *cpus;                      /* [cpu_count] it may use; NULL: as we */
    int cpu_count;
    bool own_cpus;                        /* nobody else's meanwhile (machine/child.h); the wait for them is no part of seconds */
};

struct tune_result {
    enum tune_status status;
    char reason[1024];                    /* why it is not valid; of runs that are counted, why the first one was not; "" */
    double *targets;                      /* [target_count], NAN: absent; the measurement's */
    double started_s, seconds;            /* since 1970; of the whole measurement */
    double waited_s;                      /* for processors of its own; not in them */
    int run;                              /* runs that ended */
};

struct tune_measurement;

/* tune_measurement_start - begin the first run. NULL with an error: the folder cannot be made, no process.
 * tune_measurement_descriptor - readable when tune_measurement_next has something to do: 1 with *result (until free): it
 * is over; 0: the next run began; -1: our own side failed (disk full, no process). It waits for the end of the run where
 * that did not come yet.
 * tune_measurement_stop - end the run; the status is then STOPPED unless it was over already. */
struct tune_measurement *tune_measurement_start(const struct tune_measure_options *options);
int tune_measurement_descriptor(const struct tune_measurement *m);
int tune_measurement_next(struct tune_measurement *m, struct tune_result *result);
void tune_measurement_stop(struct tune_measurement *m);
void tune_measurement_free(struct tune_measurement *m);

/* tune_measurement_folder - of the run that is going on: where its metrics appear. */
const char *tune_measurement_folder(const struct tune_measurement *m);

/* tune_program_find - the file that a program named by an experiment is: with a '/' from the experiment's own folder (or
 * absolute), else beside the program that asks, else in PATH. -1 with an error: not there (what to make), not
 * executable. */
int tune_program_find(const struct tune_experiment *e, const char *program, char path[TUNE_PATH_MAX]);

const char *tune_status_name(enum tune_status status); /* "valid", "invalid", "failed", "stopped" */

#ifdef __cplusplus
}
#endif
#endif
