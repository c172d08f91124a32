/* measure.h - one measurement: run an experiment's program on one entity, check its report, and
 * reduce it to targets.
 *
 *     struct tune_measurement *m = tune_measurement_start(&options);
 *     do poll(tune_measurement_descriptor(m)); while (tune_measurement_next(m, &result) == 0);
 *     result.status, result.reason, result.targets[i]
 *     tune_measurement_free(m);
 *
 * Each run has a new folder below options.folder, with log.txt and the program's own files. The end
 * of a run decides the status:
 *     valid      exit code 0 and a report with all targets
 *     invalid    is_valid 0 in the report; exit code 3; or a kill for want of memory
 *     failed     anything else: exit code, signal, time-out, no report, or a bad one
 * The reason of a valid result may be a mark: it was disturbed, or its speed did not become stable.
 * Stability follows from tokens_per_second_stable and its half_width in the report. If a report has
 * steps but not these, it had too few steps.
 *
 * If experiment.runs is above 1, the runs are in sequence. A run that is not valid ends the
 * measurement, unless targets count how runs end. */
#ifndef TUNE_ACTUATORS_MEASURE_H
#define TUNE_ACTUATORS_MEASURE_H

#include "files/file.h"
#include "sweeps/spaces/experiment.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TUNE_REASON_SIZE 1024
#define TUNE_TARGET_TEXT 4096 /* bytes of a target that is a text; a longer one is a bad report */
#define TUNE_HOW_SIZE 1536
/* A measurement with a lower share of its processors was disturbed. */
#define TUNE_CORE_SHARE 0.9

enum tune_status { TUNE_VALID, TUNE_INVALID, TUNE_FAILED, TUNE_STOPPED };

struct tune_measure_options {
    const struct tune_experiment *experiment;
    const struct tune_value *inputs;      /* [input_count] */
    const struct tune_command *command;   /* the command for these inputs */
    const char *program;                  /* a path with a '/' */
    /* folder of the measurement; it is made and must not exist */
    const char *folder;
    /* ends with NULL; TUNE_NONCE, TUNE_OUTPUT and the command's are added */
    const char *const *environment;
    double limit_s, grace_s;              /* time limit of one run, 0: none; grace time */
    int64_t log_limit;
    const int *cpus;                      /* [cpu_count] processors it may use; NULL: ours */
    int cpu_count;
    /* reserve the processors (machine/child.h); seconds does not include the wait */
    bool own_cpus;
    const int *locks;                     /* [lock_count] other locks (tune_child_lock), kept
                                           * during the run */
    int lock_count;
};

struct tune_result {
    enum tune_status status;
    /* why it is not valid; "": nothing to say */
    char reason[TUNE_REASON_SIZE];
    /* A text that is equal for failures of the same kind: exit code, signal or reason, and the
     * first line of its error output. It does not contain the measurement's folder. */
    char how[TUNE_HOW_SIZE];
    /* [target_count]; NAN: absent, or a text; belongs to the measurement */
    double *targets;
    /* [target_count]; NULL: absent, or a number; belongs to the measurement */
    char *const *texts;
    double started_s, seconds;            /* start since 1970; duration of the whole measurement */
    double waited_s;                      /* time spent waiting for processors; not included in
                                           * seconds */
    int run;                              /* number of runs that ended */
    double core_share;                    /* share of its processors, 0 to 1; NAN: too short to
                                           * tell */
    double stable;                        /* 1: its speed became stable; 0: not; NAN: unknown */
};

struct tune_measurement;

/* tune_measurement_start - begin the first run. NULL with an error: the folder or the process
 * cannot be made.
 * tune_measurement_descriptor - a descriptor that is readable when tune_measurement_next has
 * something to do.
 * tune_measurement_next - wait for the end of the run. 1: the measurement is over; *result is valid
 * until free. 0: the next run began. -1 with an error: this program failed, for example because of
 * a full disk.
 * tune_measurement_stop - end the run. The status is then STOPPED, unless it was over.
 * tune_measurement_free - free it; NULL is fine. */
struct tune_measurement *tune_measurement_start(const struct tune_measure_options *options);
int tune_measurement_descriptor(const struct tune_measurement *m);
int tune_measurement_next(struct tune_measurement *m, struct tune_result *result);
void tune_measurement_stop(struct tune_measurement *m);
void tune_measurement_free(struct tune_measurement *m);

/* tune_program_find - find the file of an experiment's program. A name with a '/' is absolute, or
 * relative to the experiment's folder. Other names are looked up beside the calling program, and in
 * PATH. -1 with an error: not found, with the make target to build, or not executable. */
int tune_program_find(const struct tune_experiment *e, const char *program,
                      char path[TUNE_PATH_MAX]);

/* tune_status_name - "valid", "invalid", "failed", "stopped". */
const char *tune_status_name(enum tune_status status);

#ifdef __cplusplus
}
#endif
#endif
