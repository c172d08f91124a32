/* launch_script.c - write the script that a launcher's processes run. It has the names of --env.
 * Their values are in a file beside it that only this user can read. */
#include "launch.h"

#include <errno.h>
#include <sys/stat.h>

#include "core/print.h"
#include "sweeps/stores/exclusive.h"

/* ---- words ---- */

/* Print text and then a word, in quotes if the word needs them, for a POSIX shell. */
static void print_word(FILE *f, const char *text, const char *word)
{
    fputs(text, f);
    tune_print_word(f, word);
}

static void print_flag(FILE *f, const char *name, const char *value)
{
    if (!value)
        return;
    fprintf(f, " --%s", name);
    print_word(f, " ", value);
}

static void print_number(FILE *f, const struct sweep_flags *flags, const char *name, double value)
{
    if (tune_flags_given(&flags->tune, name))
        fprintf(f, " --%s %.17g", name, value);
}

/* ---- --env ---- */

static bool is_name(const char *text, size_t n)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    return n > 0 && strspn(text, letters) >= n && (*text < '0' || *text > '9');
}

/* Find the next "NAME" or "NAME=value" in the list at *at, and advance *at. name, all: its lengths.
 * Returns false at the end. */
static bool next_variable(const char **at, const char **variable, size_t *name, size_t *all)
{
    *variable = *at;
    *name = strcspn(*at, "=,");
    *all = strcspn(*at, ",");
    if (!**at)
        return false;
    *at += *all + ((*at)[*all] == ',');
    return true;
}

/* Print --env with names only, if it was given. */
static void print_names(FILE *f, const char *list)
{
    size_t name, all;
    const char *variable, *before = " --env ";
    for (; list && next_variable(&list, &variable, &name, &all); before = ",")
        fprintf(f, "%s%.*s", before, (int)name, variable);
}

/* Print a script that sets the variables with values. Returns their number. -1: a name is not valid
 * in a shell. */
static int print_values(FILE *f, const char *list)
{
    size_t name, all;
    int count = 0;
    const char *variable;
    while (list && next_variable(&list, &variable, &name, &all)) {
        if (!is_name(variable, name))
            return tune_error_usage("--env %.*s: with --launcher, a shell sets this variable, so "
                                    "its name must consist of letters, digits and _",
                                    (int)name, variable);
        if (variable[name] != '=')
            continue;
        char *value = strndup(variable + name + 1, all - name - 1);
        if (!value)
            return no_memory();
        fprintf(f, "export %.*s=", (int)name, variable);
        print_word(f, "", value);
        fputc('\n', f);
        free(value);
        count++;
    }
    return count;
}

/* Write the values, if there are any, to path. NULL: only count them. Returns their number, or
 * -1. */
static int write_values(const char *list, const char *path)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return no_memory();
    int count = print_values(f, list), code = fclose(f) == 0 ? 0 : no_memory();
    if (count > 0 && code == 0 && path) {
        mode_t before = umask(077);
        code = tune_replace_write(path, text, size, false);
        umask(before);
    }
    free(text);
    return code < 0 ? -1 : count;
}

/* ---- the script ---- */

/* Print flags of this command line that control how to measure, not which points. */
static void print_flags(const struct sweep_flags *flags, FILE *f)
{
    print_flag(f, "experiments", flags->experiments);
    print_flag(f, "actuator-configuration", flags->configuration);
    print_names(f, flags->environment);
    print_flag(f, "gpus", flags->gpus);
    print_number(f, flags, "timeout", flags->timeout);
    print_number(f, flags, "grace", flags->grace);
    print_number(f, flags, "in-flight", flags->in_flight);
    fputs(flags->share_cores ? " --share-cores" : "", f);
    fputs(flags->keep_runs ? " --keep-runs" : "", f);
    fputs(flags->env_secrets ? " --env-secrets" : "", f);
    fputs(" --trust-store --max-failures 0", f); /* checked here, and failures are counted here */
}

/* values: number of values of --env; -1: they are invalid. */
static int print_script(const struct launch *l, FILE *f, const char *store, int jobs, int values)
{
    char program[TUNE_PATH_MAX], here[TUNE_PATH_MAX];
    TRY(values);
    if (!realpath("/proc/self/exe", program) || !realpath(".", here))
        return tune_error_set("cannot find the path of this program or of the current folder: %s",
                              strerror(errno));
    fputs("#!/bin/sh\n", f);
    l->launcher->header(l, f, jobs);
    fputs("# Measure some points of an operation. 97: this host does not see the store; 98: nor the program or the folder;\n"
          "# 96: this user cannot read the values of --env.\n", f);
    print_word(f, "store=", store);
    print_word(f, " sweep=", program);
    print_word(f, " name=", l->plan->record.id);
    fputs("\n[ -e \"$store/operations/$name.json\" ] || exit 97\n[ -x \"$sweep\" ] && cd ", f);
    print_word(f, "", here);
    fputs(" || exit 98\n", f);
    if (values > 0)
        fputs("[ -r \"$store/launch/$name/env\" ] && . \"$store/launch/$name/env\" || exit 96\n", f);
    fputs("exec \"$sweep\" --join \"$name\" --store \"$store\"", f);
    if (l->launcher->arguments)
        l->launcher->arguments(l, f);
    print_flags(l->plan->flags, f);
    fputs(" >>\"$store/launch/$name/$job.log\" 2>&1 </dev/null\n", f);
    return ferror(f) ? tune_error_set("cannot write the script of the jobs") : 0;
}

int launch_write_script(const struct launch *l, int jobs)
{
    char path[TUNE_PATH_MAX];
    struct tune_file_writer w;
    TRY(tune_file_make_folder(l->folder));
    TRY(tune_path(path, "%s/env", l->folder));
    TRY(tune_file_begin(&w, l->script));
    if (print_script(l, w.file, l->store, jobs, write_values(l->plan->flags->environment, path)) == 0 && tune_file_commit(&w) == 0)
        return 0;
    tune_file_cancel(&w);
    return -1;
}

int launch_print_script(const struct launch *l)
{
    const char *store = l->plan->flags->store;
    char whole[TUNE_PATH_MAX], here[TUNE_PATH_MAX];
    int64_t points = l->progress->planned, each = l->plan->record.points_per_job;
    if (!realpath(store, whole)) { /* it does not exist yet */
        if (!realpath(".", here))
            return tune_error_set("cannot find the path of the current folder: %s",
                                  strerror(errno));
        TRY(store[0] == '/' ? tune_path(whole, "%s", store) : tune_path(whole, "%s/%s", here, store));
    }
    printf("# the script of a job:\n");
    return print_script(l, stdout, whole, (int)((points + each - 1) / each),
                        write_values(l->plan->flags->environment, NULL));
}
