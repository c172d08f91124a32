/* origin.c - the origin of a job's figures: hashes of weights and data. Data files are made on
 * first use. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "flags/find.h"
#include "flags/known.h"
#include "sweeps/actuators/origin.h"
#include "sweeps/discovery/keep.h"
#include "sweep.h"

enum { MAKER_POLL_MS = 100 }; /* seconds until a signal is noticed while data is made */

/* ---- making data ---- */

/* Run the maker as a child process, with its output in log, until it ends or a signal arrives.
 * After a signal its file is incomplete. */
static int run_maker(const struct tune_command *c, const char *const *argv, const char *log)
{
    const struct tune_child_options o = {.argv = argv, .environment = (const char *const *)sweep.environment, .log = log,
        .log_limit = LOG_LIMIT, .grace_s = my.grace};
    struct tune_child_end end;
    struct tune_child *child = tune_child_start(&o);
    TRY(child ? 0 : -1);
    struct pollfd ended = {.fd = tune_child_descriptor(child), .events = POLLIN};
    while (!*my.tune.stop_signal && poll(&ended, 1, MAKER_POLL_MS) <= 0)
        ;
    if (*my.tune.stop_signal)
        tune_child_stop(child);
    TRY(tune_child_end(child, &end));
    bool made = end.how == TUNE_CHILD_EXITED && end.code == 0;
    if (!made)
        unlink(c->data);
    if (made || end.how == TUNE_CHILD_STOPPED) {
        unlink(log);
        return 0;
    }
    return tune_error_set("%s failed (%s %d) while it made %s; its output is in %s", c->make[0],
                          end.how == TUNE_CHILD_EXITED ? "exit code" : "signal", end.code,
                          c->data, log);
}

/* Lock the folder by a file in it, so that only one sweep makes a missing file. NFS locks only files
 * that are open for writing. It is not locked if a signal arrives first, or if the file system has
 * no locks; then each sweep makes it. */
static int lock_folder(const char *folder)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_path(path, "%s/.making", folder));
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    while (fd >= 0 && !*my.tune.stop_signal && flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            break;
        poll(NULL, 0, MAKER_POLL_MS);
    }
    return fd;
}

/* Let the experiment's maker make a missing data file. 0 also if a signal ended it. */
static int make_data(const struct tune_experiment *e, const struct tune_command *c)
{
    char program[TUNE_PATH_MAX], log[TUNE_PATH_MAX], folder[TUNE_PATH_MAX];
    TRY(tune_program_find(e, c->make[0], program));
    TRY(tune_path(log, "%s/make-%d.log", tune_store_folder(sweep.store), getpid()));
    TRY(tune_file_parent(folder, c->data));
    TRY(tune_file_make_folder(folder));
    const char **argv = calloc((size_t)c->make_count + 1, sizeof *argv);
    if (!argv)
        return sweep_no_memory();
    memcpy(argv, c->make, (size_t)c->make_count * sizeof *argv);
    argv[0] = program;
    int code = 0, lock = lock_folder(folder);
    if (!*my.tune.stop_signal && !tune_file_exists(c->data)) {
        sweep_clear_status();
        sweep_print("# ", c->data);
        sweep_print(" is not there: made once by ", c->make[0]);
        putchar('\n');
        fflush(stdout);
        code = run_maker(c, argv, log);
    }
    if (lock >= 0)
        close(lock);
    free(argv);
    return code;
}

/* ---- origins ---- */

/* True if the actuator configuration is for this experiment. */
int sweep_words(const struct tune_experiment *e, struct tune_word words[2])
{
    int n = 0;
    if (!sweep.configuration.actuator || strcmp(sweep.configuration.actuator, e->actuator))
        return 0;
    if (sweep.configuration.data_directory)
        words[n++] = (struct tune_word){"data_directory", sweep.configuration.data_directory};
    if (sweep.configuration.hf_home)
        words[n++] = (struct tune_word){"hf_home", sweep.configuration.hf_home};
    return n;
}

/* The name under which the store notes what this build of the maker makes. */
static int name_made(const struct tune_experiment *e, const struct tune_command *c, char name[2 * TUNE_PATH_MAX])
{
    char program[TUNE_PATH_MAX], build[TUNE_BUILD_ID_SIZE];
    TRY(tune_program_find(e, c->make[0], program));
    TRY(tune_build_id(program, build));
    snprintf(name, 2 * TUNE_PATH_MAX, "%s, made by %s", c->data, build);
    return 0;
}

static struct tune_hashed hashed;

/* The hash of the data. Where the file must be made first and the store knows what it will be, the
 * note will do, until something is measured. An interrupted maker leaves no file, and no hash. */
static int find_data(const struct tune_experiment *e, const struct tune_command *c, bool make, char hash[33])
{
    char name[2 * TUNE_PATH_MAX];
    bool to_make = c->make_count > 0 && !tune_file_exists(c->data);
    if (to_make && sweep.store && !sweep.takes) {
        TRY(name_made(e, c, name));
        int known = tune_kept_data(sweep.store, name, hash);
        if (known != 0)
            return known < 0 ? -1 : 0;
    }
    if (to_make && make)
        TRY(make_data(e, c));
    if (to_make && (!make || *my.tune.stop_signal))
        return 0;
    TRY(tune_data_hash(&hashed, c->data, hash));
    if (my.dry_run)
        return 0;
    TRY(tune_keep_data(sweep.store, c->data, hash));
    if (!to_make)
        return 0;
    TRY(name_made(e, c, name));
    return tune_keep_data(sweep.store, name, hash);
}

int sweep_build(int protocol)
{
    struct program *program = &sweep.programs[protocol];
    struct tune_file_stamp stamp = {0};
    if (!*program->path)
        return 0; /* only for looking up rows; a run would be refused */
    TRY(tune_file_stamp(program->path, &stamp));
    if (!memcmp(&stamp, &program->stamp, sizeof stamp))
        return 0;
    char before[TUNE_BUILD_ID_SIZE];
    memcpy(before, program->build, sizeof before);
    TRY(tune_build_id(program->path, program->build));
    program->stamp = stamp;
    if (*before && strcmp(before, program->build)) {
        sweep_clear_status();
        sweep_print("# ", program->path);
        printf(" is another build from here on: %.12s\n", program->build);
    }
    return 0;
}

/* True for a known model that is not on this machine. */
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

/* The origin that figures of these inputs have now. make: make a missing data file. */
static int find_origin(const struct tune_protocol *p, const struct tune_value *inputs, bool make, struct tune_origin *o)
{
    struct tune_word words[2];
    struct tune_command c;
    int protocol = (int)(p - sweep.protocols), code = 0;
    memset(o, 0, sizeof *o);
    TRY(sweep_build(protocol));
    bool on_gpus = sweep.gpu_count > 0 && sweep_gpus_of(p, inputs) > 0;
    snprintf(o->host_class, sizeof o->host_class, "%s", on_gpus ? sweep.gpu_class : sweep.host_class);
    snprintf(o->build, sizeof o->build, "%s", sweep.programs[protocol].build);
    char why[64];
    if (!p->supported || tune_experiment_refuses(p->experiment, inputs, why, sizeof why) != 0)
        return 0; /* it is not run, so no file is read */
    TRY(tune_experiment_command(p->experiment, inputs, words, sweep_words(p->experiment, words), &c));
    if (c.weights) /* check the model before data is made, which may take minutes */
        code = tune_weights_hash(c.weights, o->weights);
    if (code < 0 && my.dry_run && is_absent(c.weights)) {
        snprintf(o->weights, sizeof o->weights, "%s", SWEEP_ABSENT);
        if (!*sweep.absent)
            snprintf(sweep.absent, sizeof sweep.absent, "%s", tune_error_message());
        tune_error_clear();
        code = 0;
    }
    if (code == 0 && c.data)
        code = find_data(p->experiment, &c, make, o->data);
    tune_command_free(&c);
    return code;
}

int sweep_origin(void *context, const struct tune_protocol *p, const struct tune_value *inputs, struct tune_origin *o)
{
    (void)context;
    return find_origin(p, inputs, !my.dry_run && !*my.tune.stop_signal, o);
}

bool sweep_origin_changed(const struct tune_job *job, char *why, size_t size)
{
    const struct tune_origin *then = &job->origin;
    struct tune_origin now;
    if (find_origin(&sweep.protocols[job->protocol], job->inputs, false, &now) < 0) {
        snprintf(why, size, "what it was measured with is not there any more: %s", tune_error_message());
        tune_error_clear();
        return true;
    }
    const char *what = strcmp(now.build, then->build) ? "the program" : strcmp(now.weights, then->weights) ? "the model"
                       : strcmp(now.data, then->data) ? "the data" : NULL;
    if (what)
        snprintf(why, size, "%s changed while it was measured: nobody can say whose figures these are", what);
    return what;
}
