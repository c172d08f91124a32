/* ranks.h - what a launcher of ranks says to the processes that it starts, and starting some. */
#ifndef TUNE_MACHINE_RANKS_H
#define TUNE_MACHINE_RANKS_H

#ifdef __cplusplus
extern "C" {
#endif

/* How ranks find each other: by MPI, by Slurm without MPI, or where MASTER_ADDR and MASTER_PORT
 * say, as with torchrun. */
enum tune_launcher { TUNE_BY_MPI, TUNE_BY_SLURM, TUNE_BY_ADDRESS };

/* rank: of this process. size: how many there are; 0: no launcher started this process. */
struct tune_launched {
    int rank, size;
    enum tune_launcher by;
};

/* tune_ranks_launched - by the variables that mpirun, srun and torchrun set. If torchrun started
 * this process, its own count: it may itself run below mpirun or srun.
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
