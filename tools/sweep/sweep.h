/* sweep.h - shared by the files of this tool: its flags, and the state of one operation. */
#ifndef TUNE_TOOLS_SWEEP_H
#define TUNE_TOOLS_SWEEP_H

#include "machine/child.h"
#include "machine/host.h"
#include "profilers/gpus.h"
#include "core/try.h"
#include "sweeps/discovery/results.h"
#include "flags/program.h"
#include "sweeps/stores/claim.h"

struct sweep_flags {
    struct tune_flags tune;
    const char *space, *operation, *store, *experiments, *configuration, *order, *sampler,
        *grouping, *entities, *filter, *name, *join, *resume, *accept, *environment, *describe,
        *where, *entity, *set, *gpus, *minimize, *maximize, *budget, *stop_when, *launcher, *slurm,
        *job;
    int in_flight, retries, repeat, max_failures, points, points_per_job, max_jobs;
    int64_t seed;
    double time_limit, timeout, grace, until_stable, factor;
    bool remeasure, dry_run, keep_runs, share_cores, env_secrets, trust_store;
};

enum { MOST_PATHS = 64, MOST_ENVIRONMENT = 256, LOG_LIMIT = 1 << 20, SWEEP_KEY_BYTES = 16 };

/* A slot: its cores, and the measurement in it. */
struct slot {
    /* held: the point is locked for all operations of the store; over: its row is written */
    bool busy, claimed, held, over;
    uint64_t point;
    struct tune_job job;
    struct tune_command command;
    struct tune_measurement *measurement;
    struct tune_claim claim;
    /* name of the measurement's claim, because sweeps that share an operation have different
     * indexes */
    char name[48];
    char folder[TUNE_PATH_MAX];
    int attempt;
    double begin_s;
    int *cpus, cpu_count;
    bool has_cpus; /* we saw that its measurement has them, and does not wait */
    /* Slots of measurements on GPUs: which of sweep.gpus, and what reserves them. The others have
     * none. */
    bool for_gpus;
    int gpu[TUNE_CHILD_HELD], claims[TUNE_CHILD_HELD], gpu_count;
    const char *environment[MOST_ENVIRONMENT + 2]; /* of the program; ends with NULL */
    char visible[TUNE_CHILD_HELD * TUNE_GPU_NAME + 32];
};

/* A program to start, and the build id of its file when it was last examined. */
struct program {
    char path[TUNE_PATH_MAX], build[TUNE_BUILD_ID_SIZE];
    struct tune_file_stamp stamp;
};

struct sweep {
    struct tune_space *space;
    struct tune_catalog catalog;
    struct tune_protocol *protocols; /* [protocol_count] of the space's experiments, or of rungs */
    int protocol_count;
    struct tune_operation operation;
    struct tune_actuator_configuration configuration;
    struct tune_store *store;
    struct tune_known *known;
    struct tune_jobs *jobs;
    const struct tune_value **given; /* the points of a rung */
    struct tune_operation_record record;
    struct tune_claim own; /* the claim that shows that the operation is alive */
    struct tune_where *where;
    uint64_t *only; /* the entities of --entity */
    struct tune_results results;
    struct tune_host host;
    /* before: the form in older rows, with the values of --env */
    char host_class[512], host_class_before[512];
    char gpu_class[512]; /* host class of measurements on GPUs, which have fewer cores */
    struct tune_gpu *gpus; /* [gpu_count] that measurements may use */
    int gpu_count, machine_gpus; /* machine_gpus: all of the machine */
    int *cpus, *cores, cpu_count, core_count; /* the processors, and the core of each */
    struct program *programs; /* programs of the protocols */
    char *environment[MOST_ENVIRONMENT];
    int environment_count;
    struct slot *slots; /* [slot_count]: the CPU's, then those on GPUs */
    int slot_count, cpu_slots;
    struct tune_job pending; /* a job that no slot could take yet */
    bool has_pending, told_of_gpus;
    struct tune_claim_job job; /* the scheduler's job that we are; id "": none */
    int taken;                 /* measurements begun, for --points */
    bool left_to_others;       /* another process has a job of this rung */
    struct tune_job *waiting; /* jobs claimed by others, checked again at the end */
    int waiting_count;
    int64_t done, hopeless; /* hopeless: neither known nor measurable here */
    double begin_s;
    /* seconds of finished measurements; weights: of them, of what is done, and of all */
    double measured_s, measured_weight, done_weight, planned_weight;
    char absent[1024]; /* of a dry run: how to get the first model that is not here; "" : all are */
    bool disturbed;    /* the result at hand had too little of its cores */
    int same_failures; /* measurements in a row that failed in the same way */
    bool braked;       /* they were --max-failures: no more are started */
    bool terminal, status_drawn, more, told_of_cpus, told_of_stranger, told_of_waiting;
    bool takes;      /* a job is about to be measured: its data file must be there */
    double looked_s; /* time of the last check of who holds our cores */
};

extern struct sweep_flags my;
extern struct sweep sweep;

/* record.c - the record of the operation.
 * sweep_open_store - open it, once all options have been checked; make: make it if needed.
 * sweep_find_record - the record of --resume or --join, if it is there.
 * sweep_find_record_late - the same for --join when the space is bound: another process may just
 * have begun it.
 * sweep_new_operation - a new record, from flags and operation file.
 * sweep_check_options - a resumed operation keeps its options: -1 if the command line differs. */
int sweep_open_store(bool make);
int sweep_find_record(bool *there);
int sweep_find_record_late(bool *there);
int sweep_new_operation(void);
int sweep_check_options(const struct tune_operation_record *known);

/* halving.c - the order halving, and the jobs of any order.
 * sweep_halving_bind - replace the protocols by those of the record's rungs, if it has that order.
 * sweep_make_jobs - the jobs of the operation, or of its rung.
 * sweep_note_point - a job of the first rung names a point.
 * sweep_next_rung - all jobs are done: 1: another rung begins; 0: the end; -1.
 * sweep_weight - the job's budget, to which its time is in proportion; 1 without one.
 * sweep_say_rung, sweep_say_halving - print the job's budget, the rungs; nothing without halving.
 * sweep_say_rungs - print the rungs that are left and their cost. Returns the budget of those after
 * the current one. */
int sweep_halving_bind(const struct tune_operation_record *r);
int sweep_make_jobs(void);
int sweep_note_point(const struct tune_job *job);
int sweep_next_rung(void);
double sweep_weight(const struct tune_job *job);
void sweep_say_rung(const struct tune_job *job);
void sweep_say_halving(void);
double sweep_say_rungs(void);
void sweep_halving_free(void);

/* slots.c - as many slots as measurements go on at a time: count on the CPU, and one for each GPU.
 * sweep_at_a_time - how many there are of the kind that most entities take. */
int sweep_make_slots(int count);
int sweep_at_a_time(void);

/* gpus.c
 * sweep_find_gpus - those of --gpus, else of CUDA_VISIBLE_DEVICES, else all, if an entity of the
 * space may have one.
 * sweep_gpus_of - how many GPUs such a measurement has: its number_gpus.
 * sweep_take_gpus - reserve so many for a slot. 1; 0: they are not free now; -1.
 * sweep_release_gpus - give them back.
 * sweep_set_visible - the environment and the cores of the slot's program. */
int sweep_find_gpus(void);
int sweep_gpus_of(const struct tune_protocol *p, const struct tune_value *inputs);
int sweep_take_gpus(struct slot *slot, int count);
void sweep_release_gpus(struct slot *slot);
int sweep_set_visible(struct slot *slot);

/* environment.c - what is measured sees of our environment; what --env adds is part of the host
 * class.
 * sweep_key - this user's key of hashes. 1; 0: no folder can keep one. */
int sweep_set_environment(void);
int sweep_key(uint8_t key[SWEEP_KEY_BYTES]);

/* origin.c - where figures come from: builds, fingerprints, and data files that are made on first
 * use.
 *
 * sweep_build - the build of the protocol's program as its file is now: it may be built anew while
 * we measure.
 * sweep_origin - tune_jobs' question. A data file that is not there yet is made, unless nothing
 * shall be done.
 * sweep_origin_changed - whether a job that was measured comes from elsewhere than it did when it
 * was begun; why says it. */
#define SWEEP_ABSENT "absent" /* weights of a known model that is not here, in a dry run */
int sweep_words(const struct tune_experiment *e, struct tune_word words[2]);
int sweep_build(int protocol);
int sweep_origin(void *context, const struct tune_protocol *p, const struct tune_value *inputs,
                 struct tune_origin *origin);
bool sweep_origin_changed(const struct tune_job *job, char *why, size_t size);

/* say.c - what is printed.
 * sweep_none_valid - there were measurements, and none of them is valid.
 * sweep_clock_text - "1:02:03" or "2:03"; returns text.
 * sweep_draw_line - the status line, on a terminal.
 * sweep_counts_text - "3 valid, 0 invalid, 1 failed"; returns text.
 * sweep_planned_text - the number of jobs, or "?"; returns text.
 * sweep_print_entity - print the dimensions that vary.
 * sweep_print - before, and the text of a file with its control characters spelled out. */
void sweep_print(const char *before, const char *text);
void sweep_print_entity(const struct tune_value *entity);
void sweep_clear_status(void);
const char *sweep_clock_text(double seconds, char text[32]);
void sweep_draw_status(void);
void sweep_tell(const struct tune_job *job, const char *what, double seconds,
                const double *targets, const char *why);
void sweep_header(void);
void sweep_draw_line(const char *line);
const char *sweep_counts_text(char text[96]);
const char *sweep_planned_text(char text[24]);
int sweep_summary(int stopped);
bool sweep_none_valid(void);

/* enough.c - --stop-when.
 * sweep_enough_begin - read the option, and what the store has of both sides.
 * sweep_enough_measured, sweep_enough_known - a job has these results.
 * sweep_enough - jobs' question: no more repeats of this point? 1, and it is said; 0; -1. */
int sweep_enough_begin(void);
int sweep_enough_measured(const struct tune_job *job, const double *targets);
int sweep_enough_known(const struct tune_job *job);
int sweep_enough(void *context, int protocol, const struct tune_value *entity, uint64_t hash);
void sweep_enough_free(void);

/* unused.c - stored results that do not count.
 * sweep_note_unused - a job is about to be measured: count results that match but for their origin.
 * sweep_say_unused - print the counts. measured: number of jobs that are measured. With any, print
 * also what other inputs the store has for these entities. */
int sweep_note_unused(const struct tune_job *job);
int sweep_say_unused(int64_t measured);

/* plan.c - sweep_plan: ask the program whether it has the memory for the job. 1, and why: it has
 * not; 0: it has, or does not say; -1. */
int sweep_plan(const struct tune_job *job, char *why, size_t size);

/* dry_run.c - say what would be done, and how long it would take. */
int sweep_dry_run(void);

/* operate.c - sweep_operate: every job into a slot, every end into a row. 0: all is done; 1:
 * stopped by a signal, the time limit or --max-failures; -1.
 * sweep_end_slots - end what runs; nothing of it is recorded. */
int sweep_operate(void);
void sweep_end_slots(void);

/* brake.c - sweep_brake: a measurement ended so. Sets braked, and says it, after --max-failures in
 * a row with the same exit code and the same first line of stderr. */
void sweep_brake(const struct tune_result *result);

/* points.c - --points and --job: this process is one of a launcher's.
 * sweep_points_check - whether the flags fit together; read --job.
 * sweep_points_left - whether it may begin one more measurement.
 * sweep_cut_short - whether a program ended because Slurm was ending its whole job. Where Slurm may
 * be in the middle of that, it waits for our own signal. */
int sweep_points_check(void);
bool sweep_points_left(void);
bool sweep_cut_short(const struct tune_result *result);

/* launch.c - sweep_launch: let a launcher's processes measure, and follow them. 0: all is done; 1:
 * stopped by a signal, the time limit or --max-failures; -1.
 * sweep_launch_check - whether the flags fit together; they are kept in the record.
 * sweep_launches - whether a launcher measures.
 * sweep_launch_dry_run - print the script that would be given to the launcher.
 * sweep_launch_tidy - remove what the launcher left in the store. */
int sweep_launch_check(struct tune_operation_record *r);
bool sweep_launches(void);
int sweep_launch(void);
int sweep_launch_dry_run(void);
int sweep_launch_tidy(void);

/* trust.c - commands that the store records. Each function does nothing in a dry run or with
 * --trust-store.
 * sweep_trust_launcher - -1 with kind USAGE if this user never gave what the record would run: a
 * launcher, or options of Slurm. What is on the command line is given.
 * sweep_trust_programs - the same for programs of experiments that are known from the store alone.
 * sweep_mark_launcher - put this user's mark in the record.
 * sweep_mark_programs - the same for programs, in the store. */
int sweep_trust_launcher(const struct tune_operation_record *r);
int sweep_trust_programs(void);
int sweep_mark_launcher(struct tune_operation_record *r);
int sweep_mark_programs(void);

/* which.c - what to measure of the space.
 * sweep_set - give inputs the values of --set, "a=1,b=2", before the space is bound.
 * sweep_choose - read the record's --where and --entity into the options. */
int sweep_set(const char *set);
int sweep_choose(struct tune_jobs_options *o);

/* sweep_no_memory - set the error; -1. */
int sweep_no_memory(void);

#endif
