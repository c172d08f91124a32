/* ranks.c [WHAT RANK [TIMEOUT]] - a rank that mpirun started: collectives against plain loops. WHAT happens to that RANK in the middle of many:
 * killed, stopped, leaves (with exit code 0), differs. The last line of rank 0 says how many ranks there are. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../comm/comm_checks.h"

static int many(struct tune_comm *c, const char *what, int rank)
{
    static float values[1 << 16], share[1 << 16];
    bool chosen = tune_comm_rank(c) == rank;
    for (int k = 0; k < 200; k++) {
        tune_comm_step(c, k);
        if (chosen && k == 100) {
            if (!strcmp(what, "killed"))
                raise(SIGKILL);
            if (!strcmp(what, "stopped"))
                raise(SIGSTOP);
            if (!strcmp(what, "leaves"))
                _exit(0);
        }
        bool other = chosen && k == 100 && !strcmp(what, "differs");
        if (tune_comm_do(c, &(struct tune_collective){.kind = other ? TUNE_ALL_GATHER : (enum tune_collective_kind)(k % TUNE_COLLECTIVES), .what = "many",
                                                      .from = values, .to = share, .count = k % TUNE_COLLECTIVES ? 1 << 16 : 0, .element = 4}) < 0)
            return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct tune_comm *c = tune_comm_open_mpi(120);
    int rank = c ? tune_comm_rank(c) : -1;
    if (c && argc > 3)
        tune_comm_timeout(c, strtod(argv[3], NULL));
    int status = !c ? -1 : argc > 2 ? many(c, argv[1], atoi(argv[2])) : 0;
    if (c && argc <= 2)
        status = try_counts(c, rank, NULL) < 0 || try_queue(c, rank, NULL) < 0 || try_sums(c, rank, NULL) < 0 ||
                         try_count(c, rank, 2500003, true) < 0 ? -1 : 0;
    if (status < 0)
        fprintf(stderr, "ranks: %s\n", tune_error_message());
    else if (rank == 0)
        printf("%d ranks, %llu bytes\n", tune_comm_size(c), (unsigned long long)tune_comm_bytes(c));
    tune_comm_close(c);
    return status < 0;
}
