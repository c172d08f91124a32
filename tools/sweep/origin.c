/* origin.c - where the figures of a job come from: fingerprints of weights and data; data that is made on first use. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flags/find.h"
#include "sweep.h"

/* Runs the experiment's maker of a missing data file and waits. */
static int run_maker(const struct tune_experiment *e, const struct tune_command *c)
{
    char program[TUNE_PATH_MAX], log[TUNE_PATH_MAX], folder[TUNE_PATH_MAX];
    struct tune_child_end end;
    const char **argv = calloc((size_t)c->make_count + 1, sizeof *argv);
    if (!argv)
        return sweep_fail(TUNE_ERROR_CANNOT, "out of memory");
    memcpy(argv, c->make, (size_t)c->make_count * sizeof *argv);
    sweep_clear_status();
    printf("# %s is not there: made once by %s\n", c->data, c->make[0]);
    fflush(stdout);
    int code = -1;
    if (tune_program_find(e, c->make[0], program) == 0 && tune_file_parent(folder, c->data) == 0 && tune_file_make_folder(folder) == 0 &&
        tune_path(log, "%s/make-%d.log", tune_store_folder(sweep.store), getpid()) == 0) {
        argv[0] = program;
        const struct tune_child_options o = {.argv = argv, .environment = (const char *const *)sweep.environment, .log = log,
            .log_limit = LOG_LIMIT, .grace_s = my.grace};
        struct tune_child *child = tune_child_start(&o);
        code = child ? tune_child_end(child, &end) : -1;
        if (code == 0 && (end.how != TUNE_CHILD_EXITED || end.code != 0)) {
            tune_error_set("%s failed (%s %d) while it made %s; its output is in %s", c->make[0],
                           end.how == TUNE_CHILD_EXITED ? "exit code" : "signal", end.code, c->data, log);
            code = -1;
        } else if (code == 0) {
            unlink(log);
        }
    }
    free(argv);
    return code;
}

/* The configuration is one actuator's. */
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

/* The fingerprint of what path names now; the last ones are remembered by size and time of change. */
static int fingerprint(const char *path, bool weights, char text[33])
{
    static struct { char path[TUNE_PATH_MAX], text[33]; struct tune_file_stamp stamp; bool weights; } kept[16];
    static int next;
    struct tune_file_stamp stamp = {0};
    uint64_t hash = 0;
    if (tune_file_stamp(path, &stamp) < 0)
        tune_error_clear();
    for (int i = 0; i < 16; i++)
        if (!weights && stamp.size > 0 && !strcmp(kept[i].path, path) && !memcmp(&kept[i].stamp, &stamp, sizeof stamp)) {
            memcpy(text, kept[i].text, 33);
            return 0;
        }
    if (weights) {
        char folder[TUNE_PATH_MAX];
        struct tune_model_identity identity;
        TRY(tune_model_find(path, folder));
        TRY(tune_model_identity(folder, &identity));
        hash = identity.fingerprint;
    } else {
        TRY(tune_file_fingerprint(path, &hash));
    }
    snprintf(text, 33, "%016llx", (unsigned long long)hash);
    if (!weights) {
        snprintf(kept[next].path, sizeof kept[next].path, "%s", path);
        memcpy(kept[next].text, text, 33);
        kept[next].stamp = stamp;
        next = (next + 1) % 16;
    }
    return 0;
}

/* tune_jobs' question. A data file that is not there yet is made, unless nothing shall be done. */
int sweep_origin(void *context, const struct tune_protocol *p, const struct tune_value *inputs, struct tune_origin *o)
{
    struct tune_word words[2];
    struct tune_command c;
    int code = 0;
    (void)context;
    memset(o, 0, sizeof *o);
    snprintf(o->host_class, sizeof o->host_class, "%s", sweep.host_class);
    snprintf(o->build, sizeof o->build, "%s", sweep.programs[p - sweep.protocols].build);
    char why[64];
    if (tune_experiment_refuses(p->experiment, inputs, why, sizeof why) != 0)
        return 0; /* it is not run, so nothing is read */
    TRY(tune_experiment_command(p->experiment, inputs, words, sweep_words(p->experiment, words), &c));
    if (c.data && c.make_count > 0 && !tune_file_exists(c.data) && !my.dry_run)
        code = run_maker(p->experiment, &c);
    if (code == 0 && c.weights)
        code = fingerprint(c.weights, true, o->weights);
    if (code == 0 && c.data && (tune_file_exists(c.data) || !my.dry_run || c.make_count == 0))
        code = fingerprint(c.data, false, o->data);
    tune_command_free(&c);
    return code;
}

