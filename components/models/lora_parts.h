/* lora_parts.h - the adapters of each layer and their buffers. Private to this folder. */
#ifndef TUNE_LORA_PARTS_H
#define TUNE_LORA_PARTS_H

#include "models/lora.h"

/* One adapter: its rows in the parameter table, its columns in the linear layer's output and in
 * h. */
struct lora_target {
    int base, a, b, magnitude; /* magnitude -1: not DoRA */
    int64_t at, out;           /* output columns [at, at + out) */
    int64_t first;             /* columns [first, first + r) of h */
    int64_t squares; /* index in tune_lora.squares of the first of W's squared row norms */
    int r;
    float scale;
};

struct lora_group {
    int count; /* adapters; 0: a linear layer without adapters */
    struct lora_target target[3];
    int64_t in, out, rank; /* columns of input and output; sum of the adapters' ranks */
};

struct tune_lora {
    struct tune_lora_options options;
    char *text[5];             /* copies of the strings in options */
    uint64_t seed;
    struct lora_group *group;  /* [layers * TUNE_LINEARS] */
    int embedding, output;     /* rows of their trained copies; 0: they are not trained */
    int64_t widest_r;          /* largest rank of an adapter */
    tune_address squares;      /* DoRA: F32, squared norms of the rows of W */
    int64_t squares_count;
};

/* Activations that forward keeps for a linear layer with adapters. */
struct lora_state {
    tune_address h; /* [N,rank] A d */
    tune_address u; /* DoRA: [N,out] W d + s B A d */
    tune_address g; /* DoRA: [2,out] F32: g, 1/|W + s B A| */
};

/* Buffers that all products share. */
struct lora_work {
    tune_address d, dh; /* input after dropout [N,widest in]; gradient of h [N,widest rank] */
    tune_address du;    /* DoRA: [N,widest out] */
    tune_address p, aa; /* DoRA: F32 [widest out, widest r], [widest r, widest r] */
};

struct tune_arena;

/* tune_lora_check_model - tune_lora_check; also every name and layer must exist in the model. */
int tune_lora_check_model(const struct tune_parameters *t, const struct tune_lora_options *o,
                          int model_layers);

/* tune_lora_plan - decide which linear layers have adapters and append their rows to the table;
 * the other rows are frozen. The caller frees *lora, also after -1.
 * tune_lora_set_addresses - allocate the buffers of one layer in the arena. shared: one set serves
 * all layers.
 * tune_lora_set_work_addresses - allocate the buffers that all layers share. bytes: size of an
 * activation element. */
int tune_lora_plan(struct tune_lora **lora, struct tune_parameters *t,
                   const struct tune_lora_options *o, uint64_t seed, int layers);
void tune_lora_set_addresses(const struct tune_lora *l, int layers, int layer, bool shared,
                             struct lora_state *states, struct tune_arena *a, int64_t N,
                             int64_t bytes);
void tune_lora_set_work_addresses(const struct tune_lora *l, int layers, struct lora_work *work,
                                  struct tune_arena *a, int64_t N, int64_t bytes, bool training);

void tune_lora_free(struct tune_lora *l, struct tune_device *dev);

#endif
