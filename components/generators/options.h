/* options.h - how the next token is chosen. */
#ifndef TUNE_GENERATORS_OPTIONS_H
#define TUNE_GENERATORS_OPTIONS_H

/* The neutral values are 1, 0, 1, 0 and 1, in this order. token_sampler.h has the formulas. */
struct tune_sampling_options {
    double temperature;        /* logits are divided by it; 0: greedy, without the three filters */
    int top_k;                 /* keep that many of the most likely tokens; 0: all */
    double top_p;              /* (0,1]: keep the most likely tokens that have this mass */
    double min_p;              /* [0,1): drop tokens below this share of the largest probability */
    double repetition_penalty; /* above 0; 1: none; above 1: tokens seen become less likely */
};

#endif
