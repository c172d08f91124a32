/* bench_space.c - the program `space` over spaces of 10^12 and 10^7 entities: seconds from its start to its end, the best of
 * five, its processor time, and the most memory it held. What is asked: 10^12 described, and 1,000 random ones of them
 * listed, each in under 0.1 s and 20 MB. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "files/file.h"

extern char **environ;
static char program[TUNE_PATH_MAX], folder[] = "/tmp/tune-bench-XXXXXX";

/* A space of count dimensions of size whole numbers each. */
static const char *write_space(const char *name, int count, int size, const char *constraint)
{
    static char path[8][TUNE_PATH_MAX];
    static int used;
    char *at = path[used++];
    if (tune_path(at, "%s/%s.yaml", folder, name) < 0)
        exit(1);
    FILE *f = fopen(at, "w");
    if (!f)
        exit(1);
    fputs("entitySpace:\n", f);
    for (int i = 1; i <= count; i++)
        fprintf(f, "- {identifier: d%d, propertyDomain: {domainRange: [0, %d], interval: 1}}\n", i, size);
    if (constraint)
        fprintf(f, "constraints: ['%s']\n", constraint);
    fclose(f);
    return at;
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

/* words: the arguments of `space`, separated by blanks. */
static void measure(const char *name, const char *command, const char *file, const char *words)
{
    char text[256], *argv[16] = {program, (char *)(uintptr_t)command, (char *)(uintptr_t)file};
    int argc = 3;
    double best = 1e9, cpu = 1e9, most = 0;
    snprintf(text, sizeof text, "%s", words);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    for (int round = 0; round < 5; round++) {
        posix_spawn_file_actions_t actions;
        struct rusage usage;
        pid_t pid;
        int status;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        double begin = tune_clock_s(), used;
        if (posix_spawn(&pid, program, &actions, NULL, argv, environ) != 0 || wait4(pid, &status, 0, &usage) != pid ||
            status != 0) {
            fprintf(stderr, "%s %s failed\n", program, command);
            exit(1);
        }
        double took = tune_clock_s() - begin;
        posix_spawn_file_actions_destroy(&actions);
        used = seconds(usage.ru_utime) + seconds(usage.ru_stime);
        best = took < best ? took : best;
        cpu = used < cpu ? used : cpu;
        most = (double)usage.ru_maxrss > most ? (double)usage.ru_maxrss : most;
    }
    printf("%-46s %8.3f s   %8.3f s of a core   %6.1f MB\n", name, best, cpu, most / 1024);
}

int main(int argc, char **argv)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    if (!slash || tune_path(program, "%.*s/../../space", (int)(slash - argv[0]), argv[0]) < 0 || !mkdtemp(folder))
        return 1;
    const char *large = write_space("large", 6, 100, NULL);
    const char *counted = write_space("counted", 7, 10, "(d1 + d2 * d3) % max(1, d4) == 0 and d5 + d6 > d7");
    const char *estimated = write_space("estimated", 6, 100, "(d1 + d2 * d3) % max(1, d4) == 0 and d5 > d6");
    measure("10^12 entities described", "describe", large, "");
    measure("1,000 random ones of 10^12 listed", "list", large, "--mode random --seed 7 --limit 1000");
    measure("100,000 random ones", "list", large, "--mode random --limit 100000");
    measure("1,000,000 in sequence", "list", large, "--limit 1000000");
    measure("100,000 of sobol", "list", large, "--mode sobol --limit 100000");
    measure("a constraint over 10^7 entities, counted", "check", counted, "");
    measure("a constraint over 10^12, estimated from 10^5", "check", estimated, "");
    return tune_file_remove_folder(folder) < 0;
}
