/* fit.h - the parts of tools/fit.c: options, a run on a GPU, what is printed. */
#ifndef TUNE_TOOLS_FIT_H
#define TUNE_TOOLS_FIT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "devices/device.h"
#include "devices/known_gpus.h"
#include "files/file.h"
#include "flags/flags.h"
#include "models/config.h"
#include "profilers/memory_plan.h"
#include "views/table.h"

enum { MOST_BATCH = 4096 }; /* as --batch-size of the recipes */
#define GIB ((double)(1 << 30))

struct fit_flags {
    struct tune_flags tune;
    const char *gpu, *memory, *method, *format, *price, *store, *shard;
    enum tune_dtype dtype, base_dtype;
    bool json;
    int width, gpus; /* gpus: that share a run */
};

enum { FULL, LORA, QLORA, METHODS };
extern const char *const fit_methods[METHODS];

/* A GPU to plan for. */
struct fit_gpu {
    char name[64];
    int64_t bytes;                      /* that CUDA shows */
    const struct tune_known_gpu *known; /* NULL: only its memory is known */
};
enum { MOST_GPUS = 64 };

/* A run on a GPU. */
struct fit_run {
    const struct fit_flags *my;
    const char *model;
    const struct fit_gpu *gpu;
    const struct tune_model_config *config;
    struct tune_device *dev;
    int method, length; /* length: at most the model's context */
    int64_t room;       /* bytes for the run: without the driver's */
};

/* gpus.c - fit_gpus_read: those of --gpu and --gpu-memory into gpus[MOST_GPUS]; returns their
 * number, or -1. fit_gpus_all: all known GPUs, smallest memory first. fit_gpus_list: print them. */
int fit_gpus_read(const struct fit_flags *my, struct fit_gpu *gpus);
int fit_gpus_all(struct fit_gpu *gpus);
int fit_gpus_list(void);

/* plan.c - a run's plan.
 * fit_dtype: the format's name, as options have it.
 * fit_shape: the shape of a model, which may be the path of a config.json.
 * fit_open: a device of that GPU's memory, the model's shape into *config, and a run with
 * --max-length and FULL; -1. Close r->dev.
 * fit_flags_of: the recipe's options for r's method.
 * fit_plan: the memory plan of a recipe, on one of --gpus.
 * fit_plan_whole: the same with one GPU.
 * fit_fits: 1 it fits, 0, -1.
 * fit_largest: the largest batch for rows of `length` (batch 0), or the longest rows for `batch`.
 * At most `most`; 0: none fits.
 * fit_command: the recipe's command into text; "": none takes a file of that name. Returns text. */
const char *fit_dtype(enum tune_dtype dtype);
int fit_shape(const struct fit_flags *my, const char *model, struct tune_model_config *config);
int fit_open(struct fit_run *r, const struct fit_flags *my, const char *model,
             const struct fit_gpu *gpu, struct tune_model_config *config);
struct tune_flags fit_flags_of(const struct fit_run *r);
int fit_plan(const struct fit_run *r, int batch, int length, struct tune_memory_plan *p);
int fit_plan_whole(const struct fit_run *r, int batch, int length, struct tune_memory_plan *p);
int fit_fits(const struct fit_run *r, int batch, int length);
int fit_largest(const struct fit_run *r, int batch, int length, int most);
const char *fit_command(const struct fit_run *r, int batch, int length, char *text, size_t size);

/* many.c - several GPUs of one machine, by arithmetic. whole: the plan of one GPU.
 * fit_shard_of: what they share out.
 * fit_sent: bytes that each GPU sends in a step.
 * fit_speed: tokens/s on paper of all of them; NaN: unknown.
 * fit_shard: --shard; "": there is one GPU.
 * fit_note_gpus: print what the figures stand on. speed: those of tokens/s, too. */
#define FIT_LINK 0.8 /* assumed share of a link's bytes/s */
enum tune_shard fit_shard_of(const struct fit_flags *my);
double fit_sent(const struct fit_run *r, const struct tune_memory_plan *whole);
double fit_speed(const struct fit_run *r, int batch, const struct tune_memory_plan *whole);
const char *fit_shard(const struct fit_flags *my);
void fit_note_gpus(const struct fit_flags *my, bool speed, int width);

/* print.c - fit_put_bytes, fit_put_most: a cell of GiB, and one that people see as "no" for 0.
 * fit_note: print a note, in lines of at most `width` columns that begin with #.
 * fit_note_width: the width of notes beside a table of this width (0: any). */
void fit_put_bytes(struct tune_table *t, int64_t bytes);
void fit_put_most(struct tune_table *t, int most);
int fit_note_width(int width);
void fit_note(int width, const char *format, ...) TUNE_PRINTF(2, 3);

/* prices.c - fit_prices_read: read --price FILE, whose format is in prices.c. -1 with file:line.
 * fit_price_of: the price per hour of a GPU; NaN: the file has none. */
struct fit_prices {
    const char *path;
    char currency[16];      /* "USD"; "": the file does not say */
    double hour[MOST_GPUS]; /* of each row of tune_known_gpus */
    int64_t lines[MOST_GPUS]; /* line of that price; 0: there is none */
    int rows, unknown_count;
    char unknown[256], left[256]; /* names of no known GPU; columns that were left out */
};
int fit_prices_read(struct fit_prices *prices, const char *path);
double fit_price_of(const struct fit_prices *prices, const struct tune_known_gpu *gpu);

/* A run's tokens/s on a GPU, by a store. model: predicted from rows of other batches and
 * lengths; low and high are its 95 % interval. */
struct fit_speed {
    double mean, low, high;
    int rows;               /* 0: the store says nothing */
    bool model;
};

/* measured.c - fit_measured_read: what the rows of --store say of the run r on each GPU. r's own
 * GPU does not count. -1: no store there, or this build reads none. */
struct fit_measured {
    struct fit_speed at[MOST_GPUS]; /* of each row of tune_known_gpus */
    int64_t all, used;      /* rows of the store; those of this run */
    int modelled;           /* GPUs with a prediction */
};
int fit_measured_read(struct fit_measured *m, const struct fit_run *r);

/* on_gpus.c - print what fits on each of these GPUs.
 * choose.c - print on which GPUs a run fits.
 * advice.c - fit_advice: what would make the run fit, into text; "": nothing known. -1. */
int fit_on_gpus(const struct fit_flags *my, const struct fit_gpu *gpus, int count);
int fit_choose(const struct fit_flags *my);
int fit_advice(const struct fit_run *r, char *text, size_t size);

#endif
