/* options.h - the update rule and the learning rate. */
#ifndef TUNE_OPTIMIZERS_OPTIONS_H
#define TUNE_OPTIMIZERS_OPTIONS_H

#include <stdint.h>

/* Muon updates the matrices of the layers, and AdamW the rest: embeddings, output projection,
 * vectors. Both use one learning rate. */
enum tune_optimizer_kind { TUNE_ADAMW, TUNE_SGD, TUNE_MUON };
enum tune_decay { TUNE_DECAY_MATRICES, TUNE_DECAY_ALL };

struct tune_optimizer_options {
    enum tune_optimizer_kind kind;
    double beta1, beta2, eps; /* AdamW */
    double weight_decay;      /* all kinds */
    double momentum;          /* SGD */
    double muon_momentum;     /* Muon; Nesterov's form */
    enum tune_decay decay;    /* the parameters that weight_decay applies to */
    double ema;               /* decay of the weights' moving averages; 0: no averages */
};

enum tune_schedule_kind { TUNE_CONSTANT, TUNE_LINEAR, TUNE_COSINE, TUNE_WSD };

struct tune_schedule {
    enum tune_schedule_kind kind;
    double lr;            /* the peak */
    double warmup_ratio;  /* of the planned steps, rounded up; used where warmup_steps is -1 */
    int64_t warmup_steps;
    double min_lr_ratio;  /* rate at the end / lr; not for a constant one */
    double decay_ratio;   /* of the planned steps, rounded up: those in which TUNE_WSD decays */
};

#endif
