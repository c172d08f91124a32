/* sweep.h - types and functions shared by the files of this tool. An operation has four parts. Each
 * function gets those that it needs:
 *
 *     plan       what is measured, and how. It is complete before the first measurement
 *     queue      the jobs: what comes next, what waits, rungs, and when repeats end
 *     slots      the measurements that run
 *     progress   counts and times, and what was printed
 */
#ifndef TUNE_TOOLS_SWEEP_H
#define TUNE_TOOLS_SWEEP_H

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/clock.h"
#include "core/map.h"
#include "core/pool.h"
#include "core/print.h"
#include "core/try.h"
#include "flags/program.h"
#include "machine/child.h"
#include "machine/host.h"
#include "profilers/gpus.h"
#include "sweeps/actuators/provenance.h"
#include "sweeps/discovery/halving.h"
#include "sweeps/discovery/results.h"
#include "sweeps/discovery/uids.h"
#include "sweeps/stores/lease.h"
#include "sweeps/surrogate/search.h"

/* The options. at_most > 0: a launcher started this process, which ends after this number of
 * measurements. */
struct sweep_flags {
    struct tune_flags tune;
    const char *space, *operation, *store, *experiments, *configuration, *order,
        *grouping, *entities, *name, *join, *resume, *accept, *environment, *describe,
        *where, *where_target, *entity, *set, *gpus, *minimize, *maximize, *budget, *stop_when,
        *launcher, *slurm, *job, *points;
    int in_flight, retries, repeat, max_failures, at_most, points_per_job, max_jobs, lines;
    int64_t seed;
    double time_limit, timeout, grace, until_stable;
    bool remeasure, dry_run, keep_runs, share_cores, env_secrets, trust_store;
};

enum {
    MOST_PATHS = 64, MOST_ENVIRONMENT = 256, LOG_LIMIT = 1 << 20, KEY_BYTES = 16, MARK_SIZE = 20,
    ENTITY_TEXT = 512, MODEL_COLUMNS = 256
};

/* This machine: its host classes, and its resources for measurements. */
struct machine {
    struct tune_host host;
    /* before: the form in older rows, which has the values of --env. gpu_class: for measurements on
     * GPUs, which have fewer cores */
    char host_class[512], before[512], gpu_class[512];
    struct tune_gpu *gpus; /* [gpu_count] GPUs for measurements */
    int gpu_count, all_gpus; /* all_gpus: number in the machine */
    char no_ranks[512];      /* why mpirun cannot start ranks on several GPUs; "": it can */
    int *cpus, *cores, cpu_count, core_count; /* the processors, and the core of each */
};

/* A program to start, and the build id of its file at the last check. */
struct program {
    char path[TUNE_PATH_MAX], build[TUNE_BUILD_ID_SIZE];
    struct tune_file_stamp stamp;
};

/* Cached build ids and hashes of programs, models and data files of this machine. */
struct provenance_cache {
    struct program *programs; /* of the bindings */
    struct tune_hashed hashed;
    /* dry run: how to get the first missing model; "": none is missing */
    char absent[1024];
};

/* The plan is constant while it is measured, but objects behind its pointers change. */
struct plan {
    const struct sweep_flags *flags;
    const char *space_file;
    char recorded_space[TUNE_PATH_MAX]; /* a recorded operation's space file in the store */
    struct tune_space *space;
    struct tune_catalog catalog;
    struct tune_binding *bindings; /* [binding_count] one per experiment of the space, or per
                                      * rung */
    int binding_count;
    struct tune_operation operation; /* the operation file, overridden by flags */
    const char *grouping[MOST_PATHS];
    struct tune_actuator_configuration configuration;
    struct tune_operation_record record; /* options only; the counts are in struct progress */
    char launcher_mark[MARK_SIZE];
    struct tune_where *where;
    uint64_t *only; /* the entities of --entity */
    char *point_list; /* the list of --points, as in the record */
    struct tune_value **points; /* [point_count] points of the record, in order; 0: all */
    int point_count;
    struct tune_lease_job job; /* our job of the scheduler; id "": none */
    struct machine machine;
    char *environment[MOST_ENVIRONMENT]; /* [environment_count] of measured programs */
    int environment_count;
    struct tune_store *store; /* NULL: a dry run without a store */
    struct tune_result_cache *cache;
    struct provenance_cache *provenance;
    struct tune_results results;
    struct tune_pool *memory; /* memory for texts and points */
};

/* Counts and times of this operation, and the state of the output. */
struct progress {
    double begin_s;
    int64_t planned, done;
    int64_t measured, failed, invalid, refused, replayed, replayed_invalid; /* as in the record */
    int64_t not_measurable; /* neither known nor measurable here */
    int64_t unused[TUNE_ACCEPT_DATA * 2]; /* unused results, by what differs (unused.c) */
    /* measured_s: seconds of finished measurements. Weights: of them, of done jobs, and of all */
    double measured_s, measured_weight, done_weight, planned_weight;
    int same_failures; /* consecutive measurements that failed in the same way */
    char how_failed[TUNE_HOW_SIZE];
    bool halted; /* --max-failures was reached: no more are started */
    bool terminal, status_drawn;
    /* true if the note was printed: who holds our cores, who holds our GPUs, who measures the
     * rest */
    bool cpus_logged, stranger_logged, gpus_logged, waiting_logged;
    double cpus_looked_s; /* time of the last check for other users of our cores */
};

/* A slot: its cores, and the measurement in it. */
struct slot {
    /* locked: the point is locked for the whole store; over: the row is written */
    bool busy, leased, locked, over;
    uint64_t point; /* the locked point */
    struct tune_job job;
    struct tune_command command;
    struct tune_measurement *measurement;
    struct tune_lease lease;
    /* name of the lease: the measurement's, because sweeps that share an operation have different
     * indexes */
    char name[48];
    char folder[TUNE_PATH_MAX];
    int attempt;
    double begin_s;
    int *cpus, cpu_count;
    bool has_cpus; /* true once the measurement is known to have its cores */
    /* For measurements on GPUs: indexes of the GPUs, and the sockets that reserve them */
    bool for_gpus;
    int gpu[TUNE_CHILD_LOCKS], locks[TUNE_CHILD_LOCKS], gpu_count;
    const char *environment[MOST_ENVIRONMENT + 2]; /* of the program; NULL at the end */
    char visible[TUNE_CHILD_LOCKS * TUNE_GPU_NAME + 32];
};

struct slots {
    struct slot *all; /* [count] first those on the CPU, then those on GPUs */
    int count, on_cpu;
};

/* The rungs of --order halving. */
struct rungs {
    struct tune_halving halving;
    const char *property;
    double budgets[TUNE_HALVING_RUNGS];
    int count, now; /* count 0: the order is not halving */
    struct tune_value **points; /* [point_count] of this rung, in the order of the first rung */
    uint64_t *hashes;
    double *previous; /* [point_count] their values in the rung before; NULL in the first */
    int point_count;
    int64_t before;  /* number of points in earlier rungs */
};

/* State of --stop-when: the other side, and the values of both sides. */
struct stop_rule {
    char other[128]; /* an operation or a property; "": no --stop-when */
    bool operation;
    const char *property;
    double share, limit;
    struct tune_uids uids;      /* uids of valid results in the store */
    struct stored_pair *stored; /* [uids.count] */
    struct side_value *values;  /* [count] in the order of measurement */
    size_t count;
};

/* An entity with rows of this operation. */
struct model_entity {
    struct tune_value *entity;
    int rows;     /* number of rows read */
    bool ours;    /* this process chose it */
    double sum;   /* of the first property, over valid rows within --where-target */
    int valid;    /* number of them */
};

/* The search of --order model. For --stop-when of another order: only its rows. */
struct model_order {
    const struct plan *plan;
    struct tune_search *search; /* NULL: the order is another one */
    const char *columns[MODEL_COLUMNS]; /* [column_count] of rows: status, properties, others */
    int column_count, targets;  /* targets: number of properties */
    bool maximize[TUNE_SEARCH_TARGETS];
    /* --where-target, over the columns after the first, which are the properties and those that it
     * uses; NULL: not given */
    struct tune_expression *within;
    /* from an entity's hash to its index + 2; 1: this process chose it, and it has no rows yet */
    struct tune_map indexes;
    struct model_entity *entities; /* [entity_count] in the order of their first rows */
    int entity_count, given;    /* given: number of them that became jobs, or are jobs */
    int recorded;               /* number of the record's points that became jobs, too */
    int64_t row_count;
    bool lack_logged;           /* it was said that too few results have the properties */
    struct model_dry *dry;      /* the stored results, for a dry run; NULL: not read */
};

/* A rule of --stop-when that ends a search. */
enum { ENOUGH_RULES = 8 };
#define ENOUGH_NEVER "never" /* no rule */
struct enough_rule {
    char text[96];
    bool chance;          /* chance of SHARE % below LIMIT %; else no gain of SHARE % in ENTITIES */
    double share, limit;
    int entities;
};

struct enough {
    struct enough_rule rules[ENOUGH_RULES]; /* [count] */
    int count;
    bool over;            /* one of them holds */
    int64_t looked;       /* number of rows at the last check; -1: none yet */
};

struct queue {
    const struct plan *plan;   /* the plan of these jobs */
    struct progress *progress; /* counts these jobs */
    struct tune_jobs *jobs;
    bool more;                 /* there may be more jobs */
    struct tune_job pending;   /* a job that waits for a slot */
    bool has_pending;
    struct tune_job *waiting;  /* [waiting_count] jobs taken by others, checked again at the
                                * end */
    int waiting_count;
    bool left_to_others;       /* another process has a job of this rung */
    bool starting;             /* true while a job starts: its data file must exist */
    int taken;                 /* number of measurements begun */
    struct tune_lease own;     /* shows that the operation is alive */
    struct rungs rungs;
    struct model_order model;
    struct stop_rule stop_rule;
    struct enough enough;
};

static inline bool is_stopped(const struct plan *plan)
{
    return *plan->flags->tune.stop_signal;
}

static inline bool is_worker(const struct plan *plan)
{
    return plan->flags->at_most > 0;
}

/* The process that launched us writes the record. */
static inline bool writes_record(const struct plan *plan)
{
    return !is_worker(plan) && !(plan->flags->join && plan->record.launcher);
}

static inline const struct tune_binding *binding_of(const struct plan *plan,
                                                      const struct tune_job *job)
{
    return &plan->bindings[job->binding];
}

/* The job's budget, or 1 without one. Its time is proportional to it. */
static inline double weight_of(const struct plan *plan, const struct tune_job *job)
{
    return tune_binding_weight(binding_of(plan, job), job->inputs);
}

/* record.c - the record of the operation.
 * record_open_store - open the store. Call it after all options are checked. make: create it if
 * needed.
 * record_find - find the record of --resume or --join.
 * record_find_late - the same for --join after the space is bound, because another process may have
 * just begun the operation.
 * record_new - make a new record from flags and operation file.
 * record_check - check that the command line does not change options of a resumed operation. 0 or
 * -1.
 * record_counts - start the counts of a resumed operation from its record.
 * record_write - write the record with a status, such as "running", and the counts. */
int record_open_store(struct plan *plan, bool make);
int record_find(struct plan *plan, bool *there);
int record_find_late(struct plan *plan, bool *there);
int record_new(struct plan *plan);
int record_check(const struct plan *plan);
void record_counts(const struct plan *plan, struct progress *progress);
int record_write(const struct plan *plan, const struct progress *progress, const char *status);

/* operation_file.c
 * operation_file_read - read the file of --operation. -1 with an error. */
int operation_file_read(const struct plan *plan, struct tune_operation *operation);

/* operators.c - operators of ado that do not run here, and the commands that come closest. Nothing
 * runs under the name of another program. So an operation file with one of them is an error.
 * sweep, subject: how a command that measures begins, such as "sweep s.yaml --store st"; what
 * follows a command of samples, such as "s.yaml --store st".
 * operator_refuse - for tune_other_operators; words is a struct operator_words. The error names the
 * operator and each parameter that the command leaves out. It ends with "type: COMMAND". If a
 * parameter has a wrong type, or there is no such searcher, the error says that. */
struct operator_words {
    const char *sweep, *subject;
};
int operator_refuse(void *words, struct tune_document *d, const struct tune_node *operation,
                    const char *name);

/* selection.c - select the entities to measure.
 * select_inputs - set inputs from --set, "a=1,b=2", before the space is bound.
 * select_value - find a value of a domain by its text, as written by Python or in an identifier. A
 * number matches any equal number.
 * select_entity - read an identifier, up to a comma or the end. Returns its end. NULL: the space
 * has no such entity.
 * check_property - check that the experiment has the property. -1 with kind USAGE.
 * select_entities - set the options of the record from its --where and --entity, if they are not
 * set yet. */
int select_inputs(const struct plan *plan, const char *set);
int check_property(const struct tune_experiment *e, const char *property);
bool select_value(const struct tune_domain *d, const char *text, struct tune_value *value);
const char *select_entity(const struct tune_space *s, const char *text, struct tune_value *values);
int select_entities(struct plan *plan);

/* points.c - the list of --points.
 * points_read - read the file into point_list, once the space is bound.
 * points_recorded - true if the record has a list.
 * points_check - check that the command line asks for the list in the record. 0 or -1.
 * points_take - make points from the list in the record.
 * points_add - add a point to the list in the record, which is not written.
 * points_reread - take the list of the record as it is in the store now. */
int points_read(struct plan *plan);
bool points_recorded(const struct tune_operation_record *r);
int points_check(const struct plan *plan);
int points_take(struct plan *plan);
int points_add(struct plan *plan, const struct tune_value *values);
int points_reread(struct plan *plan);

/* halving.c - --order halving, and the queue of jobs for any order.
 * halving_bind - with --order halving, replace the bindings by one for each rung.
 * queue_open - make the jobs of the operation, or of its current rung.
 * queue_add_point - add the point of a job to the first rung.
 * queue_next_rung - begin the next rung when all jobs are done. 1: it began; 0: there is none; -1.
 * queue_give_up - count and print a job that cannot be measured here (operate.c).
 * halving_print - print property, budget and rungs; nothing without halving. cost: the budget of
 * all rungs; 0: not known.
 * halving_print_rest - print the remaining rungs and their cost. Returns the budget of those after
 * the current one. */
int halving_bind(struct plan *plan, struct rungs *rungs);
int queue_open(struct queue *q);
int queue_add_point(struct queue *q, const struct tune_job *job);
int queue_next_rung(struct queue *q);
void queue_give_up(struct queue *q, const struct tune_job *job);
void halving_print(const struct rungs *rungs, double cost);
double halving_print_rest(const struct rungs *rungs, int repeat);
void queue_free(struct queue *q);

/* model.c - --order model, and the rows of any search with --stop-when.
 * model_open - check the options, and begin the search. With another order: only choose the columns
 * of --stop-when, if it has a rule of enough.c. Call it again if the record changes.
 * model_read_rows - read the rows of this operation that were not read yet.
 * model_chooses - true if this process chooses entities. Those that a launcher started do not.
 * model_row_values - the values of a row, into values[TUNE_SEARCH_VALUES]. False: the row is
 * invalid or lacks one of them.
 * model_add_row - add a row of an entity that this process chose.
 * model_dry_job - a dry run has listed a job: the model gets the results that a real one would
 * find.
 * model_choose - choose the next entity; a callback of tune_jobs. First it gives those that this
 * operation has measured already, or that the record has.
 * model_print - print what is searched for; nothing with another order. */
int model_open(struct plan *plan, struct model_order *model);
int model_read_rows(const struct plan *plan, struct model_order *model);
bool model_row_values(const struct model_order *model, const struct tune_cell *cells,
                      double *values);
int model_add_row(const struct plan *plan, struct model_order *model,
                  const struct tune_value *entity, bool valid, const double *values);
int model_dry_job(const struct plan *plan, struct model_order *model, const struct tune_job *job);
void model_dry_free(struct model_dry *dry);
bool model_chooses(const struct plan *plan);
int model_choose(void *queue, const struct tune_value **entity);
void model_print(const struct plan *plan);
void model_free(struct model_order *model);

/* enough.c - --stop-when of a search, such as "no gain of 1 % in 20".
 * enough_is_rule - true if the text has such rules, or is "never".
 * enough_open - read and check the rules of the record. Nothing if it has others.
 * enough_may_change - true if --resume may take the rules of the command line.
 * enough_log_best - name the best entity of --order model, unless a rule that ended the search did.
 * enough_holds - decide whether the search ends; a callback of tune_jobs. 1: it ends, and lines
 * were printed; 0: it does not; -1. */
bool enough_is_rule(const char *stop_when);
int enough_open(const struct plan *plan, struct enough *enough);
bool enough_may_change(const struct plan *plan);
int enough_log_best(struct queue *q);
int enough_holds(void *queue);

/* stop_rule.c - --stop-when that ends the repeats of an entity.
 * stop_rule_open - read the option, and the stored results of both sides.
 * stop_rule_measured, stop_rule_replayed - add the results of a job.
 * stop_rule_holds - decide whether the repeats of this point end; a callback of tune_jobs. 1: they
 * end, and a line is printed; 0: they do not; -1. */
int stop_rule_open(const struct plan *plan, struct stop_rule *rule);
int stop_rule_measured(const struct plan *plan, struct stop_rule *rule, const struct tune_job *job,
                       const double *targets);
int stop_rule_replayed(struct stop_rule *rule, const struct tune_job *job);
int stop_rule_holds(void *queue, int binding, const struct tune_value *entity, uint64_t hash);
void stop_rule_free(struct stop_rule *rule);

/* environment.c - the environment of measured programs. Variables of --env are part of the host
 * class.
 * environment_read - make the environment.
 * environment_key - read this user's key for hashes. 1; 0: there is no folder to keep one. */
int environment_read(struct plan *plan);
int environment_key(const struct plan *plan, uint8_t key[KEY_BYTES]);

/* slots.c - slots for concurrent measurements: --in-flight on the CPU, and one for each GPU.
 * slots_at_a_time - number of slots of the kind that most entities need. */
int slots_open(struct slots *slots, struct plan *plan);
void slots_free(struct slots *slots);
int slots_at_a_time(const struct slots *slots);

/* gpus.c
 * gpus_find - find the GPUs, if an entity of the space may need one: those of --gpus, else of
 * CUDA_VISIBLE_DEVICES, else all.
 * gpus_of - the number of GPUs for a measurement, its number_gpus.
 * gpus_lack - 1 if this machine lacks the GPUs of a measurement, or has another model than its
 * gpu_model; with the reason in why. A callback of tune_jobs.
 * gpus_reserve - reserve count GPUs for a slot. 1; 0: not enough are free now; -1.
 * gpus_release - release the slot's GPUs.
 * gpus_show - set the environment and the cores of the slot's program. */
int gpus_find(struct plan *plan);
int gpus_of(const struct tune_binding *p, const struct tune_value *inputs);
int gpus_lack(void *queue, const struct tune_binding *p, const struct tune_value *inputs, char *why,
              size_t size);
int gpus_reserve(const struct machine *machine, const struct slots *slots, struct slot *slot,
                 int count);
void gpus_release(struct slot *slot);
void gpus_show(const struct plan *plan, struct slot *slot);

/* provenance.c - the provenance of figures: builds, and hashes of weights and data. Data files are
 * made on first use.
 * provenance_command - the command of an experiment, with the placeholders of the actuator
 * configuration.
 * provenance_build - read the current build id of the binding's program, which may be rebuilt
 * during a sweep.
 * provenance_asked - find the provenance of a job; a callback of tune_jobs. It makes a missing data
 * file, except in a dry run.
 * provenance_changed - true if the provenance of a job changed during its measurement. why: an
 * explanation. */
#define WEIGHTS_ABSENT "absent" /* weights of a known model that is missing, in a dry run */
int provenance_command(const struct plan *plan, const struct tune_experiment *e,
                       const struct tune_value *inputs, struct tune_command *command);
int provenance_build(const struct plan *plan, struct progress *progress, int binding);
int provenance_asked(void *queue, const struct tune_binding *p, const struct tune_value *inputs,
                     struct tune_provenance *provenance);
bool provenance_changed(struct queue *q, const struct tune_job *job, char *why, size_t size);

/* progress.c - the output.
 * progress_log - print a line that begins with "# ", above the status line. Control characters are
 * escaped.
 * progress_draw - draw a status line, on a terminal.
 * progress_draw_status - draw a status line about the running measurements.
 * progress_clear - erase the status line.
 * progress_job - print the line of a job.
 * progress_count_failure - count a failure. After --max-failures in a row with the same exit code
 * and the same first line of stderr, set halted and print a note.
 * progress_none_valid - true if there were measurements, and none is valid.
 * progress_counts - format counts as "3 valid, 0 invalid, 1 failed". Returns text.
 * progress_planned - format the number of jobs, or "?". Returns text.
 * clock_text - format a duration as "1:02:03" or "2:03". Returns text.
 * entity_text - format an entity's values of the varying dimensions. Returns text.
 * print_text - print before and text, with control characters in text escaped. */
void progress_log(struct progress *p, const char *format, ...) TUNE_PRINTF(2, 3);
void progress_draw(struct progress *p, const char *line);
void progress_draw_status(const struct plan *plan, const struct slots *slots, struct progress *p);
void progress_clear(struct progress *p);
void progress_job(const struct plan *plan, struct progress *p, const struct tune_job *job,
                  const char *what, double seconds, const double *targets, const char *why);
void progress_count_failure(struct progress *p, const struct tune_result *result, int most);
void progress_header(const struct plan *plan, const struct slots *slots, struct progress *p,
                     const struct rungs *rungs);
int progress_summary(const struct plan *plan, struct progress *p, bool stopped);
bool progress_none_valid(const struct progress *p);
const char *progress_counts(const struct progress *p, char text[96]);
const char *progress_planned(const struct progress *p, char text[24]);
const char *clock_text(double seconds, char text[32]);
const char *entity_text(const struct tune_space *space, const struct tune_value *entity,
                        char text[ENTITY_TEXT]);
void print_text(const char *before, const char *text);

/* unused.c - stored results that are not used.
 * unused_count - before a job is measured, count results that match except for their provenance.
 * unused_print - print the counts. measured: number of measured jobs. If it is above 0, print also
 * which other inputs the store has for these entities. */
int unused_count(const struct plan *plan, struct progress *progress, const struct tune_job *job);
int unused_print(const struct plan *plan, const struct progress *progress, int64_t measured);

/* memory.c
 * memory_lacks - ask the program whether the memory suffices for the job. 1: it does not; why: the
 * reason. 0: it does, or the program does not say. -1 with an error. */
int memory_lacks(const struct plan *plan, const struct tune_job *job, char *why, size_t size);

/* expected.c
 * expected_new - fit models to the stored results of the plan's entities, whoever measured them.
 * One is of the time of a measurement, the others of the properties of --maximize and --minimize.
 * If none is named: of the first two numbers that each experiment measures. NULL with an error.
 * expected_free - free them; NULL is fine.
 * expected_seconds - the expected time of a job's measurement; NAN: unknown. -1 with an error. Only
 * the first 2000 jobs have one, because each takes a millisecond.
 * expected_print - print what is expected of each property: "  speed 150 (120 to 190)".
 * expected_print_models - print how many results the models are from, or why there is none. */
struct expected;
struct expected *expected_new(const struct plan *plan);
void expected_free(struct expected *x);
int expected_seconds(struct expected *x, const struct tune_job *job, double *seconds);
int expected_print(const struct expected *x, const struct tune_job *job);
void expected_print_models(const struct expected *x);

/* dry_run.c
 * dry_run - print the plan and the estimated time. */
int dry_run(struct queue *q, const struct slots *slots);

/* operate.c
 * operate - run all jobs in slots, and write a row for each result. 0: all are done; 1: stopped by
 * a signal, the time limit or --max-failures; -1. */
int operate(struct queue *q, struct slots *slots);

/* measure.c - the measurement in a slot.
 * measure_begin - begin the job in the slot. The slot takes ownership of it.
 * measure_next - handle the end of the slot's run: write a row, retry, or begin the next run.
 * measure_look_at_cpus - note measurements that wait for cores. Another sweep may have taken the
 * cores after our check.
 * measure_cache_row - add a written row to the result cache. last: it is the result of the job.
 * slot_release - release the slot's GPUs, lock and lease.
 * slots_end - end all running measurements, without recording them. */
int measure_begin(const struct plan *plan, struct progress *progress, struct slot *slot,
                  struct tune_job *job);
int measure_next(struct queue *q, struct slot *slot);
void measure_look_at_cpus(const struct plan *plan, struct progress *progress,
                          struct slots *slots);
int measure_cache_row(const struct plan *plan, const struct tune_job *job, const uint8_t uid[16],
                      enum tune_status status, double seconds, bool last);
int slot_release(const struct plan *plan, struct slot *slot);
void slots_end(const struct plan *plan, struct slots *slots);

/* worker.c - a process that a launcher started: --at-most and --job.
 * worker_check - check that the flags fit together, and read --job.
 * worker_may_take - true if this process may begin another measurement.
 * worker_cut_short - true if a program ended because the scheduler ended the whole job. If the
 * scheduler may still be doing that, wait for our own signal. */
int worker_check(struct plan *plan);
bool worker_may_take(const struct plan *plan, const struct queue *q);
bool worker_cut_short(const struct plan *plan, const struct tune_result *result);

/* command.c - run programs to their end, or until a signal arrives.
 * command_run - run a program.
 * command_output - run a program with a time limit, and read up to size bytes of its output into
 * text.
 * last_line - the last line of a text, which is modified. */
int command_run(const struct plan *plan, const struct tune_child_options *o,
                struct tune_child_end *end);
int command_output(const struct plan *plan, const char *const *argv,
                   const char *const *environment, double limit_s, char *text, size_t size,
                   struct tune_child_end *end);
const char *last_line(char *text);

/* trust.c - trust in commands that the store records. These functions do nothing in a dry run or
 * with --trust-store.
 * trust_launcher - check that this user gave the record's launcher and options of Slurm, now or
 * earlier. -1 with kind USAGE if not.
 * trust_programs - the same for the programs of experiments that only the store has.
 * mark_launcher - put this user's mark in the record.
 * mark_programs - put this user's mark of each program in the store. */
int trust_launcher(const struct plan *plan);
int trust_programs(const struct plan *plan);
int mark_launcher(struct plan *plan);
int mark_programs(const struct plan *plan);

/* no_memory - set the error, and return -1. */
int no_memory(void);

#endif
