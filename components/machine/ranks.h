/* ranks.h - what a launcher of ranks says to the processes that it starts, and starting some. */
#ifndef TUNE_MACHINE_RANKS_H
#define TUNE_MACHINE_RANKS_H

#ifdef __cplusplus
extern "C" {
#endif

/* rank: of this process. size: how many there are; 0: no launcher started this process. */
struct tune_launched {
    int rank, size;
};

/* tune_ranks_launched - by the variables that mpirun and srun set.
 * tune_ranks_launch - become mpirun, which starts argv as so many processes on this machine. It
 * returns only on failure: -1 with an error.
 * tune_ranks_columns - columns of the terminal that the launcher prints to; 0: it is none, or not
 * known to be one. mpirun gives ranks a terminal of its own, whatever it prints to. */
struct tune_launched tune_ranks_launched(void);
int tune_ranks_launch(int size, int argc, char **argv);
int tune_ranks_columns(void);

#ifdef __cplusplus
}
#endif
#endif
