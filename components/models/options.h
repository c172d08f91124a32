/* options.h - which modules get a low-rank adapter, and of which rank. */
#ifndef TUNE_MODELS_OPTIONS_H
#define TUNE_MODELS_OPTIONS_H

#include <stdbool.h>

/* The things that several ranks share out. Each rank owns a part of the trained numbers of every
 * unit. */
enum tune_shard {
    TUNE_DDP,             /* nothing: each rank has the whole model */
    TUNE_SHARD_OPTIMIZER, /* moments and averages; each rank updates its part of the weights */
    TUNE_FSDP,            /* weights, gradients, moments and averages */
};

struct tune_lora_options {
    int r;
    double alpha, dropout;
    bool rslora, dora;
    const char *targets;       /* "all-linear", or ends of modules' names:
                                  "q_proj,layers.3.mlp.down_proj"; or a regular expression for
                                  whole names: ".*\.(q|v)_proj" */
    const char *rank_pattern;  /* "k_proj=4,layers.0.self_attn.q_proj=32"; the first match holds;
                                  NULL: none */
    const char *alpha_pattern; /* written alike */
    const char *layers;        /* "0,1,8-15"; NULL: all */
    const char *modules_to_save; /* modules that are trained whole beside the adapters:
                                    "embed_tokens,lm_head"; NULL: none */
    bool loose;                /* ignore names and layers that the model does not have, as PEFT does
                                  */
};

#endif
