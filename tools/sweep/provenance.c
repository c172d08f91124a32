/* provenance.c - find the provenance of a job's figures: build, and hashes of weights and data. Data files
 * are made on first use. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include "flags/find.h"
#include "flags/known.h"
#include "sweeps/actuators/provenance.h"
#include "sweeps/discovery/store_copies.h"
#include "sweep.h"

enum { LOCK_POLL_MS = 100 };

/* ---- making data ---- */

/* Run the program that makes a data file, with its output in log. After a signal the file is
 * incomplete. */
static int run_maker(const struct plan *plan, const struct tune_command *c, const char *const *argv,
                     const char *log)
{
    const struct tune_child_options o = {.argv = argv, .environment = (const char *const *)plan->environment, .log = log,
        .log_limit = LOG_LIMIT, .grace_s = plan->flags->grace};
    struct tune_child_end end;
    TRY(command_run(plan, &o, &end));
    bool made = end.how == TUNE_CHILD_EXITED && end.code == 0;
    if (!made)
        unlink(c->data);
    if (made || end.how == TUNE_CHILD_STOPPED) {
        unlink(log);
        return 0;
    }
    return tune_error_set("%s failed (%s %d) when it should make %s; its output is in %s",
                          c->make[0],
                          end.how == TUNE_CHILD_EXITED ? "exit code" : "signal", end.code, c->data, log);
}

/* Lock the folder by a file in it, so that only one sweep makes a missing file. The lock file is
 * open for writing, because NFS requires this. A signal ends the wait for the lock. Without locks
 * in the file system, each sweep makes the file. */
static int lock_folder(const struct plan *plan, const char *folder)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_path(path, "%s/.making", folder));
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    while (fd >= 0 && !is_stopped(plan) && flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            break;
        poll(NULL, 0, LOCK_POLL_MS);
    }
    return fd;
}

/* Make a missing data file by the experiment's command. 0 also if a signal ended it. */
static int make_data(const struct plan *plan, struct progress *progress,
                     const struct tune_experiment *e, const struct tune_command *c)
{
    char program[TUNE_PATH_MAX], log[TUNE_PATH_MAX], folder[TUNE_PATH_MAX];
    TRY(tune_program_find(e, c->make[0], program));
    TRY(tune_path(log, "%s/make-%d.log", tune_store_folder(plan->store), getpid()));
    TRY(tune_file_parent(folder, c->data));
    TRY(tune_file_make_folder(folder));
    const char **argv = calloc((size_t)c->make_count + 1, sizeof *argv);
    if (!argv)
        return no_memory();
    memcpy(argv, c->make, (size_t)c->make_count * sizeof *argv);
    argv[0] = program;
    int code = 0, lock = lock_folder(plan, folder);
    if (!is_stopped(plan) && !tune_file_exists(c->data)) {
        progress_log(progress, "%s does not exist: %s makes it once", c->data, c->make[0]);
        code = run_maker(plan, c, argv, log);
    }
    if (lock >= 0)
        close(lock);
    free(argv);
    return code;
}

/* ---- provenances ---- */

int provenance_command(const struct plan *plan, const struct tune_experiment *e,
                       const struct tune_value *inputs, struct tune_command *command)
{
    const struct tune_actuator_configuration *c = &plan->configuration;
    struct tune_placeholder words[2];
    bool ours = c->actuator && !strcmp(c->actuator, e->actuator); /* the configuration is for this experiment's actuator */
    int n = 0;
    if (ours && c->data_directory)
        words[n++] = (struct tune_placeholder){"data_directory", c->data_directory};
    if (ours && c->hf_home)
        words[n++] = (struct tune_placeholder){"hf_home", c->hf_home};
    return tune_experiment_command(e, inputs, words, n, command);
}

/* The name under which the store keeps the hash of a made file. It includes the maker's build. */
static int name_made(const struct tune_experiment *e, const struct tune_command *c,
                     char name[2 * TUNE_PATH_MAX])
{
    char program[TUNE_PATH_MAX], build[TUNE_BUILD_ID_SIZE];
    TRY(tune_program_find(e, c->make[0], program));
    TRY(tune_build_id(program, build));
    snprintf(name, 2 * TUNE_PATH_MAX, "%s, made by %s", c->data, build);
    return 0;
}

/* Find the hash of the data. If the file is missing, the store may know its hash; then it is only
 * made before a measurement. An interrupted maker leaves no file, and no hash. */
static int find_data(struct queue *q, const struct tune_experiment *e, const struct tune_command *c,
                     bool make, char hash[33])
{
    const struct plan *plan = q->plan;
    char name[2 * TUNE_PATH_MAX];
    bool to_make = c->make_count > 0 && !tune_file_exists(c->data);
    if (to_make && plan->store && !q->starting) {
        TRY(name_made(e, c, name));
        int known = tune_data_hash_read(plan->store, name, hash);
        if (known != 0)
            return known < 0 ? -1 : 0;
    }
    if (to_make && make)
        TRY(make_data(plan, q->progress, e, c));
    if (to_make && (!make || is_stopped(plan)))
        return 0;
    TRY(tune_data_hash(&plan->provenance->hashed, c->data, hash));
    if (plan->flags->dry_run)
        return 0;
    TRY(tune_data_hash_save(plan->store, c->data, hash));
    if (!to_make)
        return 0;
    TRY(name_made(e, c, name));
    return tune_data_hash_save(plan->store, name, hash);
}

int provenance_build(const struct plan *plan, struct progress *progress, int binding)
{
    struct program *program = &plan->provenance->programs[binding];
    struct tune_file_stamp stamp = {0};
    if (!*program->path)
        return 0; /* there is no program; rows are only looked up */
    TRY(tune_file_stamp(program->path, &stamp));
    if (!memcmp(&stamp, &program->stamp, sizeof stamp))
        return 0;
    char before[TUNE_BUILD_ID_SIZE];
    memcpy(before, program->build, sizeof before);
    TRY(tune_build_id(program->path, program->build));
    program->stamp = stamp;
    if (*before && strcmp(before, program->build))
        progress_log(progress, "%s was built again; further results are of build %.12s",
                     program->path, program->build);
    return 0;
}

/* True if the model is a known one that is not on this machine. */
static bool is_absent(const char *model)
{
    struct tune_known_model known;
    char folder[TUNE_PATH_MAX];
    struct tune_error why;
    tune_error_save(&why);
    bool absent = model && !tune_file_is_folder(model) && tune_known_model(model, &known) == 1 &&
                  tune_model_locate(known.hub_id, folder) == 0;
    tune_error_restore(&why);
    return absent;
}

/* Find the provenance that a measurement of these inputs would have now. make: make a missing data
 * file. A point that cannot run here needs neither model nor data. */
static int find_provenance(struct queue *q, const struct tune_binding *p,
                           const struct tune_value *inputs, bool make, struct tune_provenance *o)
{
    const struct plan *plan = q->plan;
    const struct machine *m = &plan->machine;
    struct tune_command c;
    char why[64], *absent = plan->provenance->absent;
    int binding = (int)(p - plan->bindings), code = 0, lacks;
    memset(o, 0, sizeof *o);
    TRY(provenance_build(plan, q->progress, binding));
    bool on_gpus = m->gpu_count > 0 && gpus_of(p, inputs) > 0;
    memcpy(o->host_class, on_gpus ? m->gpu_class : m->host_class, sizeof o->host_class);
    memcpy(o->build, plan->provenance->programs[binding].build, sizeof o->build);
    if (!p->supported || tune_experiment_refuses(p->experiment, inputs, why, sizeof why) != 0)
        return 0; /* the point is refused, so no file is read */
    TRY(lacks = gpus_lack(q, p, inputs, why, sizeof why));
    TRY(lacks = lacks ? lacks : tune_experiment_not_here(p->experiment, inputs, why, sizeof why));
    TRY(provenance_command(plan, p->experiment, inputs, &c));
    if (c.weights) /* check the model first, because making data may take minutes */
        code = tune_weights_hash(c.weights, o->weights);
    if (code < 0 && (lacks || plan->flags->dry_run) && is_absent(c.weights)) {
        snprintf(o->weights, sizeof o->weights, WEIGHTS_ABSENT);
        if (!*absent && !lacks)
            snprintf(absent, sizeof plan->provenance->absent, "%s", tune_error_message());
        tune_error_clear();
        code = 0;
    }
    if (code == 0 && c.data)
        code = find_data(q, p->experiment, &c, make && !lacks, o->data);
    tune_command_free(&c);
    return code;
}

int provenance_asked(void *queue, const struct tune_binding *p, const struct tune_value *inputs,
                     struct tune_provenance *o)
{
    struct queue *q = queue;
    return find_provenance(q, p, inputs, !q->plan->flags->dry_run && !is_stopped(q->plan), o);
}

bool provenance_changed(struct queue *q, const struct tune_job *job, char *why, size_t size)
{
    const struct tune_provenance *then = &job->provenance;
    struct tune_provenance now;
    if (find_provenance(q, binding_of(q->plan, job), job->inputs, false, &now) < 0) {
        snprintf(why, size, "a file that the measurement used does not exist any more: %s",
                 tune_error_message());
        tune_error_clear();
        return true;
    }
    const char *what = strcmp(now.build, then->build) ? "the program" : strcmp(now.weights, then->weights) ? "the model"
                       : strcmp(now.data, then->data) ? "the data" : NULL;
    if (what)
        snprintf(why, size, "%s changed during the measurement, so it is unknown which version the "
                            "figures are of", what);
    return what;
}
