/* sweep.c - measure each entity of a space under each of its experiments. Each result is a row in
 * the sample store.
 *
 *     build/sweep space.yaml --operation operation.yaml --store samples/
 *     build/sweep space.yaml --order sobol --entities 32 --seed 7 --time-limit 3600
 *     build/sweep space.yaml --dry-run                  what would run, what is known, how long it takes
 *     build/sweep --resume OPERATION --store samples/   goes on where it stopped
 *     build/sweep --describe-experiment build/mine      an experiment file for any program with --describe
 *
 * A measurement is a guarded child process, which cannot damage the store or the next measurement.
 * Known results from the same host class, build, weights and data are replayed, not measured. Every
 * row is on the disk before the next measurement begins. */
#include <errno.h>
#include <unistd.h>

#include "sweeps/actuators/from_program.h"
#include "core/nearest.h"
#include "sweeps/discovery/type_conflicts.h"
#include "sweeps/discovery/store_copies.h"
#include "project.h"
#include "sweep/launch.h"

static struct sweep_flags my;

static const struct tune_option my_options[] = {
    {"<space>", TUNE_STRING, &my.space, "", "", "",
     "space file: entitySpace and experiments (not with --resume)"},
    {"operation", TUNE_STRING, &my.operation, NULL, "", "",
     "operation file of ado. Flags override its values"},
    {"store", TUNE_STRING, &my.store, "samples", "", "",
     "folder of sample files; it is made if needed"},
    {"experiments", TUNE_STRING, &my.experiments, NULL, "", "",
     "further folders and files of experiments, with commas"},
    {"actuator-configuration", TUNE_STRING, &my.configuration, NULL, "", "",
     "actuator configuration of ado: data_directory and hf_home are used"},
    TUNE_OPTION_GROUP("what to measure"),
    {"order", TUNE_STRING, &my.order, NULL, "", "",
     "order: sequential, random, sequential-grouped, random-grouped, sobol, halving or model. "
     "Default: that of the operation, else sequential"},
    {"grouping", TUNE_STRING, &my.grouping, NULL, "", "",
     "dimensions to group by in the grouped orders, with commas"},
    {"entities", TUNE_STRING, &my.entities, NULL, "", "",
     "number of entities to measure, or all. Default: that of the operation, else all"},
    {"where", TUNE_STRING, &my.where, NULL, "", "",
     "measure only where this expression over the inputs is true"},
    {"entity", TUNE_JOINED(TUNE_STRING), &my.entity, NULL, "", "",
     "measure only these entities: identifiers, with commas or --entity again"},
    {"points", TUNE_STRING, &my.points, NULL, "", "",
     "measure only the points of this CSV file, in its order: a heading with the dimensions, a row for "
     "each point"},
    {"set", TUNE_JOINED(TUNE_STRING), &my.set, NULL, "", "",
     "input=value: give an input this value in place of the space's; with commas or --set again"},
    {"seed", TUNE_INT64, &my.seed, "0", "[0,9007199254740992]", "",
     "seed of all orders except sequential"},
    {"minimize", TUNE_JOINED(TUNE_STRING), &my.minimize, NULL, "", "",
     "halving, model, --stop-when, --dry-run: property whose low values are better. model takes two "
     "properties, with commas, by --minimize and --maximize"},
    {"maximize", TUNE_JOINED(TUNE_STRING), &my.maximize, NULL, "", "",
     "halving, model, --stop-when, --dry-run: property whose high values are better"},
    {"where-target", TUNE_STRING, &my.where_target, NULL, "", "",
     "model: only entities are wanted for which this expression over the measured properties is true"},
    {"budget", TUNE_STRING, &my.budget, NULL, "", "",
     "halving: INPUT=LEAST..MOST, where higher values of INPUT make measurements longer. All "
     "entities are measured with LEAST, the better half with twice as much, and so on up to MOST"},
    {"repeat", TUNE_INT, &my.repeat, "1", "[1,1000000]", "times",
     "measurements of each entity. The column repeat of a row has its number"},
    {"stop-when", TUNE_JOINED(TUNE_STRING), &my.stop_when, NULL, "", "",
     "'no gain of 1 % in 20': end when 20 entities made the best one better by less than 1 %. "
     "'chance of 1 % below 5 %', for --order model: end when the chance that an entity without a "
     "result is better by more than 1 % is below 5 %. Several: with commas or --stop-when again. "
     "OPERATION:SHARE, such as before:5%: end the repeats of an entity when it is 95 % certain "
     "whether it is worse than in that operation by more than this share. Or PROPERTY:SHARE: worse "
     "than that property of the same results. never: no rule"},
    {"remeasure", TUNE_BOOL, &my.remeasure, "false", "", "", "measure known entities again"},
    {"accept", TUNE_STRING, &my.accept, NULL, "", "",
     "reuse rows although they differ in this: any-host, any-build, any-weights, any-data"},
    {"retries", TUNE_INT, &my.retries, "-1", "[-1,1000]", "",
     "number of retries of a measurement that failed or had less than 90 % of its cores. -1: that "
     "of the operation, else 0 after a failure and 1 for too few cores"},
    {"max-failures", TUNE_INT, &my.max_failures, "5", "[0,1000000]", "",
     "stop after this number of failures in a row with the same exit code and the same first line "
     "of stderr; 0: no such limit"},
    {"until-stable", TUNE_DOUBLE, &my.until_stable, "0", "[0,100]", "%",
     "end a measurement when its tokens/s are known to this percentage; 0: never. Only for "
     "experiments with the input until_stable"},
    TUNE_OPTION_GROUP("how"),
    {"in-flight", TUNE_INT, &my.in_flight, "0", "[0,1024]", "measurements",
     "number of measurements at a time; 0: the batchSize of the operation, else 1. Each has its "
     "own cores"},
    {"gpus", TUNE_STRING, &my.gpus, NULL, "", "",
     "GPUs to measure on: indexes, UUIDs or bus ids, with commas. A measurement with number_gpus 1 "
     "has one of them for itself. Default: CUDA_VISIBLE_DEVICES, else all GPUs of this machine"},
    {"share-cores", TUNE_BOOL, &my.share_cores, "false", "", "",
     "let simultaneous measurements use all cores. They disturb each other"},
    {"timeout", TUNE_DOUBLE, &my.timeout, "0", "[0,inf)", "s",
     "time limit of one run of a measurement; 0: none"},
    {"grace", TUNE_DOUBLE, &my.grace, "10", "[0,3600]", "s",
     "time between asking a run to end and killing it"},
    {"time-limit", TUNE_DOUBLE, &my.time_limit, "0", "[0,inf)", "s",
     "time limit of the operation; 0: none. Measurements that run at its end are stopped and not "
     "recorded"},
    {"env", TUNE_STRING, &my.environment, NULL, "", "",
     "additional environment variables of the measured programs: NAME=value or NAME, with commas. "
     "The host class contains a hash of the values"},
    {"env-secrets", TUNE_BOOL, &my.env_secrets, "false", "", "",
     "let --env take names with TOKEN, KEY, SECRET or PASSWORD"},
    {"trust-store", TUNE_BOOL, &my.trust_store, "false", "", "",
     "run launchers and programs recorded in the store, even if you never gave them on this "
     "machine"},
    {"dry-run", TUNE_BOOL, &my.dry_run, "false", "", "",
     "print what would be measured and how long it would take, and measure nothing"},
    {"lines", TUNE_INT, &my.lines, "20", "[0,1000000000]", "lines",
     "with --dry-run: most lines for entities that would be treated alike; 0: all"},
    {"keep-runs", TUNE_BOOL, &my.keep_runs, "false", "", "",
     "also keep the run folders of valid measurements, in <store>/runs"},
    TUNE_OPTION_GROUP("on a cluster"),
    {"launcher", TUNE_JOINED(TUNE_STRING), &my.launcher, NULL, "", "",
     "slurm: jobs of Slurm measure, and this program waits for them. Or a command that starts "
     "another command on a host, such as 'ssh HOST' or 'docker exec NAME': one for each host, with "
     "commas or --launcher again. All hosts must have the folder of the store under the same path"},
    {"slurm", TUNE_FOREIGN(TUNE_STRING), &my.slurm, NULL, "", "",
     "options for sbatch, such as \"--partition=gpu --gres=gpu:1 --time=30\""},
    {"points-per-job", TUNE_INT, &my.points_per_job, "1", "[1,1000000]", "measurements",
     "number of measurements of one job, one after the other"},
    {"max-jobs", TUNE_INT, &my.max_jobs, "0", "[0,1000000]", "jobs",
     "number of jobs that run at a time; 0: as many as the cluster allows"},
    TUNE_OPTION_MORE,
    {"at-most", TUNE_INT, &my.at_most, "0", "[0,1000000]", "measurements",
     "with --join: end after this number of measurements, and do not wait for other sweeps; 0: no "
     "such limit. For launchers"},
    {"job", TUNE_STRING, &my.job, NULL, "", "",
     "with --at-most: the job in Slurm and its number of restarts, \"12_3/0\". For --launcher "
     "slurm"},
    TUNE_OPTION_GROUP("operations"),
    {"name", TUNE_STRING, &my.name, NULL, "", "", "name of the operation. Default: a random name"},
    {"resume", TUNE_STRING, &my.resume, NULL, "", "",
     "operation of the store to continue, with its space, order and seed"},
    {"join", TUNE_STRING, &my.join, NULL, "", "",
     "operation to share with other sweeps; it is begun if needed. The sweeps can run on all "
     "machines that share the folder of the store"},
    {"describe-experiment", TUNE_STRING, &my.describe, NULL, "", "",
     "program to print an experiment file for. It must have --describe"},
    TUNE_OPTION_GROUP(""),
    {0},
};
static const struct tune_property my_properties[] = {{0}};

int no_memory(void)
{
    return tune_error_cannot("out of memory");
}

/* ---- the operation file ---- */

static int read_entities(const char *text, int64_t *entities)
{
    char *end;
    *entities = -1;
    if (!strcmp(text, "all"))
        return 0;
    errno = 0;
    *entities = strtoll(text, &end, 10);
    return errno || *end || *entities < 1 ? tune_error_usage("--entities takes a whole number of "
                                                             "at least 1, or all") : 0;
}

/* Read flags about the order, which override the operation file. */
static int read_order(struct plan *plan)
{
    const struct sweep_flags *flags = plan->flags;
    struct tune_operation *o = &plan->operation;
    if (!flags->operation || flags->points) {
        o->mode = TUNE_ORDER_SEQUENTIAL;
        o->selector = false;
        o->entities = -1;
    }
    if (flags->order)
        TRY(tune_order_mode(flags->order, &o->mode));
    if (flags->grouping) {
        char *names = tune_pool_text(&plan->memory, flags->grouping, strlen(flags->grouping));
        TRY(names ? o->group_count = tune_name_split(names, plan->grouping, MOST_PATHS) : no_memory());
        o->grouping = plan->grouping;
    }
    return flags->entities ? read_entities(flags->entities, &o->entities) : 0;
}

/* Print ignored ids of an operation file. They belong to ado's database; here, files are given on
 * the command line. */
static void print_ignored_ids(const struct plan *plan)
{
    const struct tune_operation *o = &plan->operation;
    const struct sweep_flags *flags = plan->flags;
    char id[16];
    size_t length = (size_t)snprintf(id, sizeof id, "space-%s", plan->space->id);
    if (o->space && (strncmp(o->space, id, length) || (o->space[length] && o->space[length] != '-'))) {
        fprintf(stderr, "sweep: %s names the space ", flags->operation);
        tune_print_line_of(stderr, o->space);
        fprintf(stderr, ", but the space that is measured is %s, %s\n", id, plan->space_file);
    }
    if (o->configuration && !flags->configuration) {
        fprintf(stderr, "sweep: %s names ", flags->operation);
        tune_print_line_of(stderr, o->configuration);
        fprintf(stderr, ", which is ignored: give its file with --actuator-configuration\n");
    }
}

/* Print probabilities without effect. ado's random_walk ignores them, too. */
static void print_ignored_probabilities(const struct tune_space *s)
{
    for (int k = 0; k < s->count; k++)
        if (s->dimensions[k].domain.probability == TUNE_NORMAL && s->dimensions[k].domain.type != TUNE_CONTINUOUS)
            fprintf(stderr, "sweep: %s: probabilityFunction changes nothing here; all values are equally likely\n", s->names[k]);
}

static int read_operation(struct plan *plan)
{
    const struct sweep_flags *flags = plan->flags;
    struct tune_operation *o = &plan->operation;
    tune_operation_default(o);
    if (flags->operation)
        TRY(operation_file_read(plan, o));
    print_ignored_ids(plan);
    print_ignored_probabilities(plan->space);
    TRY(read_order(plan));
    if (flags->remeasure)
        o->memoize = false;
    if (flags->retries >= 0)
        o->retries = flags->retries;
    if (flags->in_flight > 0)
        o->in_flight = flags->in_flight;
    return 0;
}

/* ---- the actuator configuration ---- */

/* Read the configuration, and check that the space has its actuator. A configuration from tune.json
 * may be for another actuator. */
static int read_configuration_file(struct plan *plan)
{
    struct tune_actuator_configuration *c = &plan->configuration;
    const struct sweep_flags *flags = plan->flags;
    bool used = false;
    TRY(tune_actuator_configuration_read(c, flags->configuration));
    for (int p = 0; p < plan->space->reference_count; p++)
        used = used || !strcmp(plan->bindings[p].experiment->actuator, c->actuator);
    if (!used && tune_flags_given(&flags->tune, "actuator-configuration"))
        return tune_document_fail(c->document, tune_node_get(c->document->root, "actuatorIdentifier"),
                                  "no experiment of this space has the actuator %s", c->actuator);
    for (int i = 0; i < c->inert_count && used; i++)
        fprintf(stderr, "sweep: %s: %s has no effect here\n", flags->configuration, c->inert[i]);
    if (!used) {
        tune_actuator_configuration_free(c);
        *c = (struct tune_actuator_configuration){0};
    }
    return 0;
}

/* Make a path absolute. NULL remains NULL. */
static int whole_path(struct plan *plan, const char *path, const char **whole)
{
    char here[TUNE_PATH_MAX] = "", text[TUNE_PATH_MAX];
    *whole = path;
    if (!path || path[0] == '/')
        return 0;
    if (!getcwd(here, sizeof here))
        return tune_error_set("cannot find the full path of %s: the current folder cannot be read: "
                              "%s", path, strerror(errno));
    TRY(tune_path(text, "%s/%s", here, path));
    *whole = tune_pool_text(&plan->memory, text, strlen(text));
    return *whole ? 0 : no_memory();
}

/* Read the actuator configuration. A resumed operation keeps its own, unless a flag names
 * another. */
static int read_configuration(struct plan *plan, bool there)
{
    struct tune_actuator_configuration *c = &plan->configuration;
    struct tune_operation_record *r = &plan->record;
    if (there && !tune_flags_given(&plan->flags->tune, "actuator-configuration")) {
        *c = (struct tune_actuator_configuration){
            .actuator = r->actuator, .data_directory = r->data_directory, .hf_home = r->hf_home};
    } else if (plan->flags->configuration) {
        TRY(read_configuration_file(plan));
        r->actuator = c->actuator;
        TRY(whole_path(plan, c->data_directory, &r->data_directory));
        TRY(whole_path(plan, c->hf_home, &r->hf_home));
    }
    return c->hf_home && setenv("HF_HOME", c->hf_home, 1) < 0 ? no_memory() : 0;
}

/* ---- the plan ---- */

/* Set the parameter until_stable of every experiment that has this input. */
static int set_until_stable(struct plan *plan)
{
    const struct tune_value value = tune_value_float(plan->record.until_stable);
    if (plan->record.until_stable == 0)
        return 0;
    int set = tune_bindings_set(plan->bindings, plan->binding_count, "until_stable", &value);
    return set == 0 ? tune_error_usage("--until-stable: no experiment of this space has the input "
                                       "until_stable") : set < 0 ? -1 : 0;
}

static int find_programs(struct plan *plan, struct progress *progress)
{
    if (!(plan->provenance->programs = calloc((size_t)plan->binding_count, sizeof *plan->provenance->programs)))
        return no_memory();
    for (int p = 0; p < plan->binding_count; p++) {
        const struct tune_experiment *e = plan->bindings[p].experiment;
        if (!plan->bindings[p].supported)
            continue;
        TRY(tune_program_find(e, e->program, plan->provenance->programs[p].path));
        TRY(provenance_build(plan, progress, p));
    }
    return 0;
}

static int bind_space(struct plan *plan, const char *set)
{
    if (!*plan->space_file)
        return tune_error_usage("a space or an operation is missing: give sweep SPACE.yaml, or "
                                "--resume OPERATION");
    if (!(plan->space = tune_space_read(plan->space_file)))
        return -1;
    if (plan->space->reference_count == 0)
        return tune_error_usage("%s: this space names no experiment, so it cannot be measured",
                                plan->space_file);
    TRY(tune_catalog_gather(&plan->catalog, plan->flags->store, plan->flags->experiments));
    TRY(select_inputs(plan, set));
    TRY(tune_space_bind(plan->space, &plan->catalog, &plan->bindings));
    plan->binding_count = plan->space->reference_count;
    return 0;
}

static int read_inputs(struct plan *plan, struct queue *q, struct slots *slots, struct launch *launch)
{
    struct tune_operation_record *r = &plan->record;
    bool there;
    TRY(record_find(plan, &there));
    TRY(bind_space(plan, there ? r->set : plan->flags->set));
    TRY(read_operation(plan));
    TRY(points_read(plan));
    TRY(there ? 0 : record_new(plan));
    TRY(halving_bind(plan, &q->rungs));
    if (there && enough_may_change(plan))
        r->stop_when = strcmp(plan->flags->stop_when, ENOUGH_NEVER) ? plan->flags->stop_when : NULL;
    TRY(enough_open(plan, &q->enough));
    TRY(model_open(plan, &q->model));
    TRY(read_configuration(plan, there));
    TRY(gpus_find(plan));
    TRY(slots_open(slots, plan));
    TRY(environment_read(plan));
    if (!there) { /* what is wrong with the options is found before a store is made */
        TRY(select_entities(plan));
        TRY(plan->flags->launcher ? 0 : stop_rule_open(plan, &q->stop_rule)); /* a launcher has other rules */
    }
    TRY(find_programs(plan, q->progress));
    TRY(record_open_store(plan, !plan->flags->dry_run));
    if (plan->flags->join && !there)
        TRY(record_find_late(plan, &there));
    if (there) {
        TRY(enough_open(plan, &q->enough));
        TRY(model_open(plan, &q->model));
    }
    if (there && (strncmp(r->space, "space-", 6) || strcmp(r->space + 6, plan->space->id)))
        return tune_error_usage("operation %s measures %s, but the space in %s is another one "
                                "(space-%s)", r->id, r->space, plan->space_file,
                                plan->space->id);
    TRY(trust_programs(plan));
    TRY(there ? record_check(plan) : 0);
    TRY(launch_choose(launch, plan));
    return set_until_stable(plan);
}

static void print_conflict(void *context, const char *sentence)
{
    (void)context;
    fprintf(stderr, "sweep: %s\n", sentence);
}

static int read_results(struct plan *plan)
{
    const struct tune_operation_record *r = &plan->record;
    if (!(plan->cache = tune_result_cache_read(plan->store, plan->bindings, plan->binding_count, r->id)))
        return -1;
    tune_result_cache_before(plan->cache, plan->machine.before);
    if (plan->store)
        TRY(tune_type_conflicts_find(plan->store, plan->space, plan->bindings, &plan->catalog,
                               print_conflict, NULL));
    plan->results = (struct tune_results){plan->store, plan->space, plan->bindings, r->id, r->space, "explicit_grid_sample_generator",
                                          plan->machine.host.name};
    return 0;
}

static int record_space(const struct plan *plan)
{
    char name[64], *text;
    size_t size;
    const char *dot = strrchr(plan->space_file, '.');
    snprintf(name, sizeof name, "%s%s", plan->record.space, dot && !strcmp(dot, ".json") ? ".json" : ".yaml");
    TRY(tune_file_read(plan->space_file, TUNE_DOCUMENT_BYTES, &text, &size));
    int code = tune_store_record(plan->store, "spaces", name, text, size);
    free(text);
    TRY(code);
    if (!plan->space->points_path)
        return 0;
    /* the name that the space's copy in the store uses */
    snprintf(name, sizeof name, "%s%s.points.csv", plan->record.space, dot && !strcmp(dot, ".json") ? ".json" : ".yaml");
    TRY(tune_file_read(plan->space->points_path, TUNE_DOCUMENT_BYTES, &text, &size));
    code = tune_store_record(plan->store, "data", name, text, size);
    free(text);
    return code;
}

/* Write the record and everything it refers to, before the first measurement. A worker's record
 * exists already. */
static int begin_record(const struct plan *plan, struct queue *q)
{
    TRY(tune_results_announce(&plan->results));
    if (is_worker(plan))
        return 0;
    TRY(record_space(plan));
    TRY(tune_copy_experiments(plan->store, plan->bindings, plan->space->reference_count));
    TRY(mark_programs(plan));
    TRY(tune_operation_begin(plan->store, plan->record.id, &q->own));
    bool later = plan->record.launcher && plan->flags->resume; /* by launch_follow, when no other process follows the operation */
    return writes_record(plan) && !later ? record_write(plan, q->progress, "running") : 0;
}

static int prepare(struct plan *plan, struct queue *q, struct slots *slots, struct launch *launch)
{
    tune_host_read(&plan->machine.host);
    TRY(read_inputs(plan, q, slots, launch));
    TRY(read_results(plan));
    TRY(select_entities(plan));
    record_counts(plan, q->progress);
    TRY(stop_rule_open(plan, &q->stop_rule));
    TRY(queue_open(q));
    return plan->flags->dry_run ? 0 : begin_record(plan, q);
}

/* ---- main ---- */

/* Report the error, end running measurements, and mark the operation as failed. */
static void give_up(const struct plan *plan, struct slots *slots, struct progress *progress)
{
    struct tune_error why;
    tune_error_save(&why);
    progress_clear(progress);
    slots_end(plan, slots);
    if (writes_record(plan))
        record_write(plan, progress, "failed");
    tune_error_restore(&why);
    tune_program_fail();
}

/* Remove the leases of a finished operation, and its folder of runs if it is empty. Keep them while
 * other processes work on it. */
static int tidy(const struct plan *plan)
{
    const char *store = tune_store_folder(plan->store), *id = plan->record.id;
    char folder[TUNE_PATH_MAX];
    TRY(tune_path(folder, "%s/claims/%s", store, id));
    int alive = tune_lease_alive(folder, TUNE_OPERATION_LEASE);
    if (alive != 0)
        return alive < 0 ? -1 : 0;
    TRY(tune_file_remove_folder(folder));
    TRY(launch_tidy(plan));
    TRY(tune_path(folder, "%s/runs/%s", store, id));
    rmdir(folder);
    return 0;
}

static int describe(void)
{
    char *text = tune_experiment_from_program(my.describe);
    if (!text)
        tune_program_fail();
    fputs(text, stdout);
    free(text);
    struct tune_progress none = {0};
    return tune_program_exit(&none);
}

/* Measure all jobs, or let a launcher do it. */
static int measure(const struct plan *plan, struct queue *q, struct slots *slots,
                   struct launch *launch)
{
    progress_header(plan, slots, q->progress, &q->rungs);
    int stopped = launch->launcher ? launch_follow(launch) : operate(q, slots);
    if (stopped < 0)
        give_up(plan, slots, q->progress);
    if (q->enough.over && !stopped)
        q->progress->planned = q->progress->done;
    if (is_worker(plan))
        return progress_summary(plan, q->progress, stopped);
    if (writes_record(plan))
        TRY(record_write(plan, q->progress, stopped ? "stopped" : "finished"));
    TRY(tune_lease_release(&q->own));
    if (!stopped && !plan->flags->join)
        TRY(tidy(plan));
    TRY(enough_log_best(q));
    return progress_summary(plan, q->progress, stopped);
}

static void free_plan(struct plan *plan)
{
    const struct machine *m = &plan->machine;
    void *const lists[] = {m->gpus, m->cpus, m->cores, plan->provenance->programs, plan->only, plan->points, plan->point_list};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        free(lists[i]);
    for (int i = 0; i < plan->environment_count; i++)
        free(plan->environment[i]);
    tune_where_free(plan->where);
    tune_operation_free(&plan->operation);
    tune_operation_record_free(&plan->record);
    tune_actuator_configuration_free(&plan->configuration);
    tune_result_cache_free(plan->cache);
    tune_store_free(plan->store);
    tune_bindings_free(plan->bindings, plan->binding_count);
    tune_catalog_free(&plan->catalog);
    tune_space_free(plan->space);
    tune_pool_free(plan->memory);
}

int main(int argc, char **argv)
{
    int guard = tune_child_guard(argc, argv);
    if (guard >= 0)
        return guard;
    tune_program_start(argc, argv, &my.tune, my_options, my_properties,
                       "Measure the entities of a space, each under its experiments.");
    tune_program_catch_signals(&my.tune);
    if (my.describe)
        return describe();
    struct provenance_cache provenance = {0};
    struct plan plan = {.flags = &my, .space_file = my.space, .provenance = &provenance};
    struct progress progress = {.begin_s = tune_clock_s(), .terminal = isatty(STDOUT_FILENO)};
    struct queue queue = {.plan = &plan, .progress = &progress};
    struct launch launch = {.plan = &plan, .queue = &queue, .progress = &progress};
    struct slots slots = {0};
    MUST(worker_check(&plan));
    MUST(project_read(&my.tune, &my.store, &my.experiments, &my.configuration));
    MUST(prepare(&plan, &queue, &slots, &launch));
    if (my.dry_run)
        MUST(dry_run(&queue, &slots));
    if (my.dry_run && launch.launcher)
        MUST(launch_print_script(&launch));
    if (!my.dry_run)
        MUST(measure(&plan, &queue, &slots, &launch));
    bool bad = !my.dry_run && writes_record(&plan) && (progress.halted || progress_none_valid(&progress));
    struct tune_progress at = {.signal = *my.tune.stop_signal};
    slots_free(&slots);
    queue_free(&queue);
    free_plan(&plan);
    int code = tune_program_exit(&at);
    return code ? code : bad;
}
