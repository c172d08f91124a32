/* lora_parts.h - where the adapters of each layer stand, and the layers' products with them. Inside
 * this folder only. */
#ifndef TUNE_LORA_PARTS_H
#define TUNE_LORA_PARTS_H

#include "models/lora.h"

/* The products of a layer, each over one matrix or some that lie side by side. */
enum lora_product { LORA_QKV, LORA_O, LORA_GATE_UP, LORA_DOWN, LORA_PRODUCTS };

/* One adapter: its rows in the table, its columns in the product's output and in h. */
struct lora_target {
    int base, a, b, magnitude; /* magnitude -1: not DoRA */
    int64_t at, out;           /* columns [at, at + out) */
    int64_t first;             /* columns [first, first + r) of h */
    int64_t squares;           /* of W's rows, in tune_lora's */
    int r;
    float scale;
};

struct lora_group {
    int count; /* adapters; 0: a product like any other */
    struct lora_target target[3];
    int64_t in, out, rank; /* of the product; all adapters' r */
};

struct tune_lora {
    struct tune_lora_options options;
    char *text[4];             /* of the options */
    uint64_t seed;
    struct lora_group *group;  /* [layers * LORA_PRODUCTS] */
    int64_t widest_r;          /* of one adapter */
    tune_address squares;      /* DoRA: F32 */
    int64_t squares_count;
};

/* What forward keeps of a product with adapters. */
struct lora_state {
    tune_address h; /* [N,rank] A d */
    tune_address u; /* DoRA: [N,out] W d + s B A d */
    tune_address g; /* DoRA: [2,out] F32: g, 1/|W + s B A| */
};

/* Buffers all products share. */
struct lora_work {
    tune_address d, dh; /* with dropout [N,widest in]; [N,widest rank] */
    tune_address du;    /* DoRA: [N,widest out] */
    tune_address p, aa; /* DoRA: F32 [widest out, widest r], [widest r, widest r] */
};

struct tune_arena;

/* tune_lora_check_model - tune_lora_check, and every name and layer is the model's. */
int tune_lora_check_model(const struct tune_parameters *t, const struct tune_lora_options *o,
                          int model_layers);

/* tune_lora_plan - which products have which adapters, and their rows in the table, which is frozen
 * otherwise. *lora is the caller's, also after -1. tune_lora_place - buffers of one layer (shared:
 * that serves all in turn);
 * tune_lora_place_work - those all layers share. bytes: of an activation. */
int tune_lora_plan(struct tune_lora **lora, struct tune_parameters *t,
                   const struct tune_lora_options *o, uint64_t seed,
                   int layers);
void tune_lora_place(const struct tune_lora *l, int layers, int layer, bool shared,
                     struct lora_state *states, struct tune_arena *a,
                     int64_t N, int64_t bytes);
void tune_lora_place_work(const struct tune_lora *l, int layers, struct lora_work *work,
                          struct tune_arena *a, int64_t N,
                          int64_t bytes, bool training);

void tune_lora_free(struct tune_lora *l, struct tune_device *dev);

#endif
