/* options.h - which loss of preferences, and its numbers. */
#ifndef TUNE_LOSSES_OPTIONS_H
#define TUNE_LOSSES_OPTIONS_H

#include <stdbool.h>

/* In the order of the names that --loss accepts (preference.h has the formulas). */
enum tune_preference_kind {
    TUNE_PREFERENCE_SIGMOID,
    TUNE_PREFERENCE_HINGE,
    TUNE_PREFERENCE_IPO,
    TUNE_PREFERENCE_SIMPO,
    TUNE_PREFERENCE_ORPO,
    TUNE_PREFERENCE_KTO /* of single answers; the others are of pairs */
};

struct tune_preference_options {
    int kind;               /* enum tune_preference_kind */
    double beta;            /* above 0; ORPO: weight of the odds' ratio */
    double label_smoothing; /* [0,0.5): share of pairs whose labels may be swapped; 0: none */
    double gamma;           /* SimPO's target margin of the rewards */
    bool length_normalize;  /* sigmoid and hinge: scores per token */
    double desirable_weight, undesirable_weight; /* KTO: of the losses of answers by their label */
};

#endif
