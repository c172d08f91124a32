/* timed.c - one line of how long a command took and how much memory it had at most.
 *
 *     timed NAME FILE COMMAND ARGUMENT...     its standard output goes into FILE */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"

extern char **environ;

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

int main(int argc, char **argv)
{
    posix_spawn_file_actions_t actions;
    struct rusage used;
    pid_t pid;
    int status;
    if (argc < 4)
        return 64;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    double begin = tune_clock_s();
    if (posix_spawnp(&pid, argv[3], &actions, NULL, argv + 3, environ) != 0 || wait4(pid, &status, 0, &used) != pid ||
        status != 0) {
        fprintf(stderr, "timed: %s %s failed\n", argv[3], argc > 4 ? argv[4] : "");
        return 1;
    }
    printf("%-58s %8.3f s   %8.3f s of a core   %6.1f MB\n", argv[1], tune_clock_s() - begin,
           seconds(used.ru_utime) + seconds(used.ru_stime), (double)used.ru_maxrss / 1024);
    posix_spawn_file_actions_destroy(&actions);
    return 0;
}
