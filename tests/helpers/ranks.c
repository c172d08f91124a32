/* ranks.c [WHAT RANK [TIMEOUT [NUMBER [PLACE]]]] - a rank that mpirun started: collectives against plain loops. WHAT happens to that RANK at the
 * NUMBER-th of some collectives (4: a barrier, 5: a broadcast, 6: an all_gather, 7: a reduce_scatter): killed, stopped, leaves (with exit
 * code 0), closes (after an error of its own), differs, works (alone, twice as long as TIMEOUT), rests (is stopped while it works
 * alone). PLACE: before it, after it, or so many microseconds after its start.
 * ranks can-start - whether mpirun can start ranks here.
 * The last line of rank 0 says how many ranks there are. Where something happens, lines "at SECONDS: WHAT" in the file $RANKS_LOG say when. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../comm/comm_checks.h"
#include "core/clock.h"

static double timeout_s = 120;
enum { SHORT = 1 << 16, MUCH = 1 << 22 };
static float values[MUCH], share[MUCH];

static int happen(struct tune_comm *c, const char *what)
{
    const char *path = getenv("RANKS_LOG");
    if (!path)
        return tune_error_set("RANKS_LOG is not set");
    char line[64];
    int n = snprintf(line, sizeof line, "at %.3f: %s\n", tune_clock_s(), what);
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600); /* mpirun may drop what is printed last */
    if (log < 0 || write(log, line, (size_t)n) != n)
        _exit(3);
    close(log);
    if (!strcmp(what, "killed"))
        raise(SIGKILL);
    if (!strcmp(what, "stopped"))
        raise(SIGSTOP);
    if (!strcmp(what, "works") || !strcmp(what, "rests"))
        tune_comm_alone(c, true);
    if (!strcmp(what, "works"))
        usleep((useconds_t)(2e6 * timeout_s));
    if (!strcmp(what, "rests"))
        raise(SIGSTOP);
    if (!strcmp(what, "works"))
        tune_comm_alone(c, false);
    if (!strcmp(what, "leaves"))
        _exit(0);
    return strcmp(what, "closes") ? 0 : tune_error_set("rank 1 has no space left");
}

static int some(struct tune_comm *c, const char *what, int rank, int number, const char *place)
{
    for (int k = 0; k < 12; k++) {
        bool now = k == number, chosen = now && tune_comm_rank(c) == rank;
        struct tune_collective o = {.kind = (enum tune_collective_kind)(k % TUNE_COLLECTIVES), .what = "some", .from = values, .to = share,
                                    .count = k % TUNE_COLLECTIVES == 0 ? 0 : now ? MUCH : SHORT, .element = 4};
        tune_comm_step(c, k);
        if (chosen && !strcmp(what, "differs"))
            o.kind = TUNE_ALL_GATHER;
        else if (chosen && !strcmp(place, "before") && happen(c, what) < 0)
            return -1;
        int64_t id = tune_comm_start(c, &o);
        if (chosen && place[0] >= '0' && place[0] <= '9') {
            usleep((useconds_t)atoi(place));
            happen(c, what);
        }
        if (id < 0 || tune_comm_wait(c, id) < 0)
            return -1;
        if (chosen && !strcmp(place, "after"))
            happen(c, what);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "can-start")) {
        int can = tune_comm_can_start();
        fprintf(stderr, "ranks: %s\n", can < 0 ? tune_error_message() : "mpirun can start them");
        return can < 0;
    }
    signal(SIGTERM, SIG_IGN); /* mpirun ends those that are left. Recipes catch this signal, too */
    struct tune_comm *c = tune_comm_open_mpi(120);
    int rank = c ? tune_comm_rank(c) : -1;
    if (c && argc > 3)
        tune_comm_timeout(c, timeout_s = strtod(argv[3], NULL));
    int status = !c ? -1 : argc > 2 ? some(c, argv[1], atoi(argv[2]), argc > 4 ? atoi(argv[4]) : 4, argc > 5 ? argv[5] : "before") : 0;
    if (c && argc <= 2)
        status = try_counts(c, rank, NULL) < 0 || (tune_comm_size(c) == 2 && try_queue(c, rank, NULL) < 0) || try_sums(c, rank, NULL) < 0 ||
                         try_count(c, rank, 2500003, true) < 0 ? -1 : 0;
    if (status < 0 && tune_comm_speaks(c, false))
        fprintf(stderr, "ranks: %s\n", tune_error_message());
    else if (status == 0 && rank == 0)
        printf("%d ranks, %llu bytes\n", tune_comm_size(c), (unsigned long long)tune_comm_bytes(c));
    if (c && status < 0)
        tune_comm_wait_saved(c, 600); /* if `leave` told nobody, rank 0 would wait for this rank */
    tune_comm_close(c);
    if (argc > 2)
        happen(NULL, "ends");
    return status < 0;
}
