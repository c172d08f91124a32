/* options.h - what is saved, when, and how long it is kept. */
#ifndef TUNE_CHECKPOINTS_OPTIONS_H
#define TUNE_CHECKPOINTS_OPTIONS_H

#include <stdbool.h>
#include "core/tensor.h"

struct tune_comm;
struct tune_failure;
struct tune_logger;

struct tune_checkpoint_options {
    struct tune_comm *comm;     /* the ranks of the run: rank 0 saves, and the others wait for it;
                                   NULL: one */
    const char *run_folder;     /* where checkpoints go */
    const char *source;         /* the model folder; its config and tokenizer files are saved too */
    enum tune_dtype save_dtype; /* of the saved weights: F32, BF16, F16; TUNE_AS_READ: as they were
                                   read */
    int keep_last;              /* keep that many newest ones, and those the links point at; 0: all
                                   */
    double save_every;          /* steps between checkpoints, as tune_due takes it; 0: none. One at
                                   another step, saved as the best so far, goes when a better one
                                   is there, unless it is final */
    double eval_every;          /* the same between evaluations; for the forecast of disk */
    const char *resume;         /* the checkpoint to go on from; NULL: none */
    const char *adapter;        /* NULL, or a PEFT folder: a new run begins from its adapter */
    const char *add_tokens;     /* tokens that the saved tokenizer has beside the source's,
                                   "<|im_start|>,<|im_end|>"; NULL: none */
    bool overwrite;             /* going on from it may remove newer ones */
    bool unsaved;               /* save nothing where the run ends (at->finished, at->stopped); a
                                   checkpoint that the step already has still gets its links */
    const bool *diverged;       /* NULL, or where the logger notes that the loss rose and ends the
                                   run: save nothing more. The newest checkpoint from before
                                   (tune_logger_good_step) is kept beyond keep_last */
    double wait_for_disk;       /* seconds to try again while the disk has no room for the weights;
                                   0 or less: not */
    const volatile int *stop_signal; /* NULL, or a signal in it ends that */
    bool late;                  /* read the source's files at the first save, which may never come
                                   */
    struct tune_logger *log;    /* checkpoints rely on its metrics; borrowed. NULL: none */
    struct tune_failure *failure; /* NULL, or a program that fails after tune_checkpoint_resume
                                     saves its finished steps by tune_checkpoint_rescue; borrowed */
};

#endif
