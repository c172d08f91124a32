/* slow_kill.c - a library to preload into slurmd: its daemons take 0.2 s of work after each SIGTERM that they send, as on a busy
 * machine. So the processes of a job hear of its end one by one. */
#include <signal.h>
#include <string.h>
#include <time.h>

#include "next.h"

int kill(pid_t pid, int number)
{
    NEXT(kill);
    int said = next(pid, number);
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    now = begin;
    while (number == SIGTERM && (now.tv_sec - begin.tv_sec) + 1e-9 * (now.tv_nsec - begin.tv_nsec) < 0.2)
        clock_gettime(CLOCK_MONOTONIC, &now);
    return said;
}
