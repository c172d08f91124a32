/* bench_child.c - what running a program under guard costs: /bin/true so, and as posix_spawn alone runs it. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine/child.h"
#include "core/clock.h"
#include "core/error.h"

enum { RUNS = 200 };

static const char *const argv_true[] = {"/bin/true", NULL};
static const char *const environment[] = {"PATH=/usr/bin:/bin", NULL};

static int spawned(void)
{
    pid_t pid;
    int status = -1;
    if (posix_spawn(&pid, argv_true[0], NULL, NULL, (char *const *)argv_true, (char *const *)environment) == 0)
        waitpid(pid, &status, 0);
    return status;
}

static int guarded(void)
{
    struct tune_child_end end;
    struct tune_child *c = tune_child_start(&(struct tune_child_options){
        .argv = argv_true, .environment = environment, .log = "/dev/null", .log_limit = 1 << 20, .limit_s = 60, .grace_s = 10});
    if (!c || tune_child_end(c, &end) < 0)
        return -1;
    return end.how == TUNE_CHILD_EXITED ? end.code : -1;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int measure(const char *what, int (*run)(void))
{
    static double s[RUNS];
    for (int i = -5; i < RUNS; i++) {
        double begin = tune_clock_s();
        if (run() != 0) {
            fprintf(stderr, "bench_child: %s: /bin/true did not run: %s\n", what, tune_error_message());
            return 1;
        }
        if (i >= 0)
            s[i] = tune_clock_s() - begin;
    }
    qsort(s, RUNS, sizeof *s, by_size);
    printf("%-14s median %6.2f ms, best %6.2f, 99 of 100 under %6.2f\n", what, 1e3 * s[RUNS / 2], 1e3 * s[0],
           1e3 * s[RUNS * 99 / 100]);
    return 0;
}

int main(int argc, char **argv)
{
    int guard = tune_child_guard(argc, argv);
    if (guard >= 0)
        return guard;
    return measure("posix_spawn", spawned) || measure("under guard", guarded);
}
