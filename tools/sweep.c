/* sweep.c - measure each entity of a space under each of its experiments. Each result is a row in
 * the sample store.
 *
 *     build/sweep space.yaml --operation operation.yaml --store samples/
 *     build/sweep space.yaml --order sobol --entities 32 --seed 7 --time-limit 3600
 *     build/sweep space.yaml --dry-run                  what would run, what is known, how long it takes
 *     build/sweep --resume OPERATION --store samples/   goes on where it stopped
 *     build/sweep --describe-experiment build/mine      an experiment file for any program with --describe
 *
 * A measurement is a child process under guard; nothing it does can hurt the store or the next one.
 * What is known from the same machine, build, weights and data is replayed, not measured. Every row
 * is on the disk before the next measurement begins. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "sweeps/actuators/from_program.h"
#include "core/clock.h"
#include "core/nearest.h"
#include "core/print.h"
#include "sweeps/discovery/confused.h"
#include "sweeps/discovery/keep.h"
#include "project.h"
#include "sweep/sweep.h"

struct sweep_flags my;
struct sweep sweep;

static const struct tune_option my_options[] = {
    {"<space>", TUNE_STRING, &my.space, "", "", "",
     "space file: entitySpace and experiments (not with --resume)"},
    {"operation", TUNE_STRING, &my.operation, NULL, "", "",
     "ado's operation file. Flags override what it says"},
    {"store", TUNE_STRING, &my.store, "samples", "", "",
     "folder of sample files; it is made if needed"},
    {"experiments", TUNE_STRING, &my.experiments, NULL, "", "",
     "more folders and files of experiments, with commas"},
    {"actuator-configuration", TUNE_STRING, &my.configuration, NULL, "", "",
     "ado's file. data_directory and hf_home are used"},
    TUNE_OPTION_GROUP("what to measure"),
    {"order", TUNE_STRING, &my.order, NULL, "", "",
     "order: sequential, random, sequential-grouped, random-grouped, weighted, sobol, lhs or "
     "halving. "
     "Default: the operation's, else sequential"},
    {"sampler", TUNE_CHOICE, &my.sampler, NULL, "generator|selector", "",
     "generator: all entities of the grid; selector: those in the store. Default: the "
     "operation's, else generator"},
    {"grouping", TUNE_STRING, &my.grouping, NULL, "", "",
     "dimensions of the grouped orders, with commas"},
    {"entities", TUNE_STRING, &my.entities, NULL, "", "",
     "number of entities to measure, or all. Default: the operation's, else all"},
    {"filter", TUNE_CHOICE, &my.filter, NULL, "noFilter|measured|unmeasured|partial", "",
     "take only entities in this state"},
    {"where", TUNE_STRING, &my.where, NULL, "", "",
     "measure only where this expression over the inputs is true, as in samples"},
    {"entity", TUNE_JOINED(TUNE_STRING), &my.entity, NULL, "", "",
     "measure only these entities: identifiers, with commas or --entity again"},
    {"set", TUNE_JOINED(TUNE_STRING), &my.set, NULL, "", "",
     "input=value: give an input this value in place of the space's; with commas or --set again"},
    {"seed", TUNE_INT64, &my.seed, "0", "[0,9007199254740992]", "",
     "seed of the orders that are not sequential"},
    {"minimize", TUNE_STRING, &my.minimize, NULL, "", "",
     "halving, --stop-when: property whose low values are better"},
    {"maximize", TUNE_STRING, &my.maximize, NULL, "", "",
     "halving, --stop-when: property whose high values are better"},
    {"budget", TUNE_STRING, &my.budget, NULL, "", "",
     "halving: INPUT=LEAST..MOST, an input that makes measurements longer. All entities are measured "
     "with LEAST, the better half with twice as much, and so on up to MOST"},
    {"factor", TUNE_DOUBLE, &my.factor, "2", "(1,1000]", "",
     "halving: one of so many goes on, with so many times the budget"},
    {"repeat", TUNE_INT, &my.repeat, "1", "[1,1000000]", "times",
     "measurements of each entity. A row says which one it is"},
    {"stop-when", TUNE_STRING, &my.stop_when, NULL, "", "",
     "OPERATION:SHARE, such as before:5%: no more repeats of an entity when it is known, with 95 %, "
     "whether it is worse than in that operation by more than this share. Or PROPERTY:SHARE: than "
     "that property of the same results"},
    {"remeasure", TUNE_BOOL, &my.remeasure, "false", "", "", "measure known entities again"},
    {"accept", TUNE_STRING, &my.accept, NULL, "", "",
     "rows to reuse though they differ: any-host, any-build, any-weights, any-data"},
    {"retries", TUNE_INT, &my.retries, "-1", "[-1,1000]", "",
     "times to retry a failed measurement, or one that had less than 90 % of its cores. -1: the "
     "operation's, else 0, but 1 for the latter"},
    {"max-failures", TUNE_INT, &my.max_failures, "5", "[0,1000000]", "",
     "start no more after so many failures in a row with the same exit code and the same first line "
     "of stderr; 0: no such limit"},
    {"until-stable", TUNE_DOUBLE, &my.until_stable, "0", "[0,100]", "%",
     "end a measurement when its tokens/s are known within this share; 0: never. For experiments "
     "with this input"},
    TUNE_OPTION_GROUP("how"),
    {"in-flight", TUNE_INT, &my.in_flight, "0", "[0,1024]", "measurements",
     "measurements at a time; 0: the operation's batchSize, else 1. Each has cores of its own"},
    {"gpus", TUNE_STRING, &my.gpus, NULL, "", "",
     "GPUs to measure on: indexes, UUIDs or bus ids, with commas. A measurement whose number_gpus is "
     "1 has one of them for itself. Default: CUDA_VISIBLE_DEVICES, else all of this machine"},
    {"share-cores", TUNE_BOOL, &my.share_cores, "false", "", "",
     "let measurements at a time use all cores. They disturb each other"},
    {"timeout", TUNE_DOUBLE, &my.timeout, "0", "[0,inf)", "s",
     "time limit of one run of a measurement; 0: none"},
    {"grace", TUNE_DOUBLE, &my.grace, "10", "[0,3600]", "s",
     "time between asking a run to end and killing it"},
    {"time-limit", TUNE_DOUBLE, &my.time_limit, "0", "[0,inf)", "s",
     "time limit of the operation; 0: none. Measurements that run then are ended and not recorded"},
    {"env", TUNE_STRING, &my.environment, NULL, "", "",
     "more environment of the measured programs: NAME=value or NAME, with commas. The host class "
     "has a hash of the values"},
    {"env-secrets", TUNE_BOOL, &my.env_secrets, "false", "", "",
     "let --env take names with TOKEN, KEY, SECRET or PASSWORD"},
    {"trust-store", TUNE_BOOL, &my.trust_store, "false", "", "",
     "run launchers and programs that the store records, also if you never gave them on this machine"},
    {"dry-run", TUNE_BOOL, &my.dry_run, "false", "", "",
     "say what would be done and how long it would take"},
    {"keep-runs", TUNE_BOOL, &my.keep_runs, "false", "", "",
     "also keep run folders of valid measurements, in <store>/runs"},
    TUNE_OPTION_GROUP("on a cluster"),
    {"launcher", TUNE_JOINED(TUNE_STRING), &my.launcher, NULL, "", "",
     "slurm: jobs measure, and this program follows them. Else a command to put before the command "
     "that measures, such as 'ssh HOST' or 'docker exec NAME': one for each host, with commas or "
     "--launcher again. All see the store's folder under the same name"},
    {"slurm", TUNE_FOREIGN(TUNE_STRING), &my.slurm, NULL, "", "",
     "options for sbatch, such as \"--partition=gpu --gres=gpu:1 --time=30\""},
    {"points-per-job", TUNE_INT, &my.points_per_job, "1", "[1,1000000]", "measurements",
     "measurements of one job, one after the other"},
    {"max-jobs", TUNE_INT, &my.max_jobs, "0", "[0,1000000]", "jobs",
     "jobs that run at a time; 0: as many as the cluster lets run"},
    {"points", TUNE_INT, &my.points, "0", "[0,1000000]", "measurements",
     "with --join: end after so many, and wait for no other sweep; 0: no such limit. Launchers "
     "give it"},
    {"job", TUNE_STRING, &my.job, NULL, "", "",
     "with --points: our job in Slurm and its restarts, \"12_3/0\". --launcher slurm gives it"},
    TUNE_OPTION_GROUP("operations"),
    {"name", TUNE_STRING, &my.name, NULL, "", "", "name of the operation. Default: made up"},
    {"resume", TUNE_STRING, &my.resume, NULL, "", "",
     "operation of the store to go on with, with its space, order and seed"},
    {"join", TUNE_STRING, &my.join, NULL, "", "",
     "operation to share with other sweeps; it is begun if needed. They may run on any machines "
     "that share the store's folder"},
    {"describe-experiment", TUNE_STRING, &my.describe, NULL, "", "",
     "program to print an experiment file for. It must have --describe"},
    TUNE_OPTION_GROUP(""),
    {0},
};
static const struct tune_property my_properties[] = {{0}};

int sweep_no_memory(void)
{
    return tune_error_cannot("out of memory");
}

/* ---- set-up ---- */

static int set_order(void)
{
    static char *names;
    static const char *grouping[MOST_PATHS];
    struct tune_operation *o = &sweep.operation;
    if (my.order)
        TRY(tune_order_mode(my.order, &o->mode));
    else if (!my.operation)
        o->mode = TUNE_ORDER_SEQUENTIAL;
    if (my.sampler || !my.operation)
        o->selector = my.sampler && !strcmp(my.sampler, "selector");
    if (my.grouping) {
        names = strdup(my.grouping);
        TRY(o->group_count = tune_name_split(names, grouping, MOST_PATHS));
        o->grouping = grouping;
    }
    if (!my.operation)
        o->entities = -1;
    if (my.entities && strcmp(my.entities, "all")) {
        char *end;
        errno = 0;
        long long n = strtoll(my.entities, &end, 10);
        if (errno || *end || n < 1)
            return tune_error_usage("--entities takes a whole number from 1, or all");
        o->entities = n;
    } else if (my.entities) {
        o->entities = -1;
    }
    return 0;
}

/* Ids in an operation file belong to ado's database; here the command line names files. */
static void tell_ids(void)
{
    const struct tune_operation *o = &sweep.operation;
    char id[16];
    int length = snprintf(id, sizeof id, "space-%s", sweep.space->id);
    if (o->space && (strncmp(o->space, id, (size_t)length) || (o->space[length] && o->space[length] != '-'))) {
        fprintf(stderr, "sweep: %s names the space ", my.operation);
        tune_print_line_of(stderr, o->space);
        fprintf(stderr, "; what is measured is %s, %s\n", id, my.space);
    }
    if (o->configuration && !my.configuration) {
        fprintf(stderr, "sweep: %s names ", my.operation);
        tune_print_line_of(stderr, o->configuration);
        fprintf(stderr, ", which is not looked up: --actuator-configuration takes its file\n");
    }
}

static int read_operation(void)
{
    struct tune_operation *o = &sweep.operation;
    tune_operation_default(o);
    if (my.operation)
        TRY(tune_operation_read(o, my.operation));
    tell_ids();
    TRY(set_order());
    if (my.filter)
        o->filter = (enum tune_filter)tune_filter_find(my.filter);
    if (my.remeasure)
        o->memoize = false;
    if (my.retries >= 0)
        o->retries = my.retries;
    if (my.in_flight > 0)
        o->in_flight = my.in_flight;
    return 0;
}

/* Check that its actuator is one of the space's. tune.json may name one that this space does not
 * need. */
static int read_configuration_file(void)
{
    struct tune_actuator_configuration *c = &sweep.configuration;
    bool used = false;
    TRY(tune_actuator_configuration_read(c, my.configuration));
    for (int p = 0; p < sweep.space->reference_count; p++)
        used = used || !strcmp(sweep.protocols[p].experiment->actuator, c->actuator);
    if (!used && tune_flags_given(&my.tune, "actuator-configuration"))
        return tune_document_fail(c->document, tune_node_get(c->document->root, "actuatorIdentifier"),
                                  "no experiment of this space is one of %s", c->actuator);
    for (int i = 0; i < c->inert_count && used; i++)
        fprintf(stderr, "sweep: %s: %s changes nothing here\n", my.configuration, c->inert[i]);
    if (!used) {
        tune_actuator_configuration_free(c);
        *c = (struct tune_actuator_configuration){0};
    }
    return 0;
}

/* The path from the root on; NULL of NULL. */
static int whole_path(const char *path, const char **whole)
{
    char here[TUNE_PATH_MAX] = "", *text = NULL;
    *whole = path;
    if (!path || path[0] == '/')
        return 0;
    if (!getcwd(here, sizeof here))
        return tune_error_set("cannot say where %s is: the current folder: %s", path, strerror(errno));
    if (asprintf(&text, "%s/%s", here, path) < 0)
        return sweep_no_memory();
    *whole = text; /* lives as long as the program */
    return 0;
}

/* A resumed operation goes on with its own, unless a flag names another. */
static int read_configuration(bool there)
{
    struct tune_actuator_configuration *c = &sweep.configuration;
    struct tune_operation_record *r = &sweep.record;
    if (there && !tune_flags_given(&my.tune, "actuator-configuration")) {
        *c = (struct tune_actuator_configuration){
            .actuator = r->actuator, .data_directory = r->data_directory, .hf_home = r->hf_home};
    } else if (my.configuration) {
        TRY(read_configuration_file());
        r->actuator = c->actuator;
        TRY(whole_path(c->data_directory, &r->data_directory));
        TRY(whole_path(c->hf_home, &r->hf_home));
    }
    if (c->hf_home && setenv("HF_HOME", c->hf_home, 1) < 0)
        return sweep_no_memory();
    return 0;
}

/* Set the parameter until_stable of every experiment that has it. */
static int set_until_stable(double percent)
{
    const struct tune_value value = tune_value_float(percent);
    int set = percent > 0 ? tune_protocols_set(sweep.protocols, sweep.protocol_count, "until_stable", &value) : 1;
    TRY(set);
    return set > 0 ? 0 : tune_error_usage("--until-stable: no experiment of this space has an input until_stable");
}

static int find_programs(void)
{
    if (!(sweep.programs = calloc((size_t)sweep.protocol_count, sizeof *sweep.programs)))
        return sweep_no_memory();
    for (int p = 0; p < sweep.protocol_count; p++) {
        const struct tune_experiment *e = sweep.protocols[p].experiment;
        if (!sweep.protocols[p].supported)
            continue;
        TRY(tune_program_find(e, e->program, sweep.programs[p].path));
        TRY(sweep_build(p));
    }
    return 0;
}

/* ---- main ---- */

static void end_record(const char *status)
{
    snprintf(sweep.record.status, sizeof sweep.record.status, "%s", status);
    sweep.record.ended_s = tune_clock_date_s();
}

/* Report the error, end what runs, and mark the operation as failed. */
static void give_up(void)
{
    struct tune_error why;
    tune_error_save(&why);
    sweep_clear_status();
    sweep_end_slots();
    end_record("failed");
    if (my.points == 0)
        tune_operation_record_write(sweep.store, &sweep.record);
    tune_error_restore(&why);
    tune_program_fail();
}

static int record_space(void)
{
    char name[64], *text;
    size_t size;
    const char *dot = strrchr(my.space, '.');
    snprintf(name, sizeof name, "%s%s", sweep.record.space, dot && !strcmp(dot, ".json") ? ".json" : ".yaml");
    TRY(tune_file_read(my.space, TUNE_DOCUMENT_BYTES, &text, &size));
    int code = tune_store_record(sweep.store, "spaces", name, text, size);
    free(text);
    return code;
}

static int read_inputs(void)
{
    bool there;
    TRY(project_read(&my.tune, &my.store, &my.experiments, &my.configuration));
    TRY(sweep_find_record(&there));
    if (!*my.space)
        return tune_error_usage("which space? sweep SPACE.yaml, or --resume OPERATION");
    if (!(sweep.space = tune_space_read(my.space)))
        return -1;
    if (sweep.space->reference_count == 0)
        return tune_error_usage("%s: an entity space without experiments; nothing says how to "
                                "measure it", my.space);
    TRY(tune_catalog_gather(&sweep.catalog, my.store, my.experiments));
    TRY(sweep_set(there ? sweep.record.set : my.set));
    TRY(tune_space_bind(sweep.space, &sweep.catalog, &sweep.protocols));
    sweep.protocol_count = sweep.space->reference_count;
    TRY(read_operation());
    TRY(there ? 0 : sweep_new_operation());
    TRY(sweep_halving_bind(&sweep.record));
    TRY(read_configuration(there));
    TRY(find_programs());
    TRY(sweep_open_store(!my.dry_run));
    if (my.join && !there)
        TRY(sweep_find_record_late(&there));
    if (there && (strncmp(sweep.record.space, "space-", 6) ||
                  strcmp(sweep.record.space + 6, sweep.space->id)))
        return tune_error_usage("operation %s is of %s, which is not the space in %s (space-%s)",
                                sweep.record.id, sweep.record.space, my.space, sweep.space->id);
    TRY(sweep_trust_programs());
    TRY(there ? sweep_check_options(&sweep.record) : 0);
    TRY(sweep_launch_check(&sweep.record));
    return set_until_stable(sweep.record.until_stable);
}

static void tell_confused(const char *sentence)
{
    fprintf(stderr, "sweep: %s\n", sentence);
}

static int prepare(void)
{
    tune_host_read(&sweep.host);
    TRY(read_inputs());
    TRY(sweep_find_gpus());
    TRY(sweep_make_slots(sweep.operation.in_flight));
    TRY(sweep_set_environment());
    if (!(sweep.known = tune_known_read(sweep.store, sweep.protocols, sweep.protocol_count, sweep.record.id)))
        return -1;
    tune_known_before(sweep.known, sweep.host_class_before);
    if (sweep.store)
        TRY(tune_confused_find(sweep.store, sweep.space, sweep.protocols, &sweep.catalog, tell_confused));
    sweep.results = (struct tune_results){sweep.store, sweep.space, sweep.protocols, sweep.record.id, sweep.record.space,
                                          "explicit_grid_sample_generator", sweep.host.name};
    TRY(sweep_choose(&sweep.record.options));
    TRY(sweep_enough_begin());
    TRY(sweep_make_jobs());
    if (my.dry_run)
        return 0;
    TRY(tune_results_announce(&sweep.results));
    if (my.points > 0)
        return 0;
    snprintf(sweep.record.status, sizeof sweep.record.status, "running");
    sweep.record.ended_s = 0;
    TRY(record_space());
    TRY(tune_keep_experiments(sweep.store, sweep.protocols, sweep.space->reference_count));
    TRY(sweep_mark_programs());
    TRY(tune_operation_begin(sweep.store, sweep.record.id, &sweep.own));
    return tune_operation_record_write(sweep.store, &sweep.record);
}

/* Remove the claims of a finished operation, and its folder of runs if it is empty, unless other
 * processes still work at it. */
static int tidy(void)
{
    char folder[TUNE_PATH_MAX];
    TRY(tune_path(folder, "%s/claims/%s", tune_store_folder(sweep.store), sweep.record.id));
    int alive = tune_claim_alive(folder, TUNE_OPERATION_CLAIM);
    if (alive != 0)
        return alive < 0 ? -1 : 0;
    TRY(tune_file_remove_folder(folder));
    TRY(sweep_launch_tidy());
    TRY(tune_path(folder, "%s/runs/%s", tune_store_folder(sweep.store), sweep.record.id));
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

/* Measure all, or let a launcher do it. */
static int operate(void)
{
    sweep_header();
    int stopped = sweep_launches() ? sweep_launch() : sweep_operate();
    if (stopped < 0)
        give_up();
    if (my.points > 0) /* who launched us keeps the record */
        return sweep_summary(stopped);
    end_record(stopped ? "stopped" : "finished");
    TRY(tune_operation_record_write(sweep.store, &sweep.record));
    TRY(tune_claim_drop(&sweep.own));
    if (!stopped && !my.join)
        TRY(tidy());
    return sweep_summary(stopped);
}

int main(int argc, char **argv)
{
    int guard = tune_child_guard(argc, argv);
    if (guard >= 0)
        return guard;
    tune_program_start(argc, argv, &my.tune, my_options, my_properties,
                       "Measure the entities of a space, each under its experiments.");
    tune_program_catch_signals(&my.tune);
    sweep.begin_s = tune_clock_s();
    sweep.terminal = isatty(STDOUT_FILENO);
    if (my.describe)
        return describe();
    MUST(sweep_points_check());
    MUST(prepare());
    if (my.dry_run)
        MUST(sweep_dry_run());
    if (my.dry_run && sweep_launches())
        MUST(sweep_launch_dry_run());
    if (!my.dry_run)
        MUST(operate());
    bool bad = !my.dry_run && my.points == 0 && (sweep.braked || sweep_none_valid());
    struct tune_progress at = {.signal = *my.tune.stop_signal};
    tune_operation_record_free(&sweep.record);
    tune_job_free(&sweep.pending);
    tune_jobs_free(sweep.jobs);
    sweep_halving_free();
    sweep_enough_free();
    tune_where_free(sweep.where);
    free(sweep.only);
    tune_known_free(sweep.known);
    tune_store_free(sweep.store);
    tune_protocols_free(sweep.protocols, sweep.protocol_count);
    tune_catalog_free(&sweep.catalog);
    tune_space_free(sweep.space);
    int code = tune_program_exit(&at);
    return code ? code : bad;
}
