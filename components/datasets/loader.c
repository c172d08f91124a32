/* loader.c - the plan (the rows of each step), and the position of a run in it.
 *
 *     steps     0        1        2        3      ..     each: up to batch_size * accumulate rows
 *               [======] [======] [===...] [      ]      examples, in three segments (step % 3)
 *               ^ the caller's    ^ the helper's: at most 2 steps further
 *
 * A step takes rows in the epoch's order until it is full of labelled rows, or of packs. The number
 * of rows it takes is known when it is made. Steps are therefore made and handed over as a
 * whole. */
#include "datasets/loader.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/clock.h"
#include "core/random.h"
#include "core/try.h"
#include "datasets/copies.h"
#include "datasets/loading.h"

#define SENSIBLE ((size_t)1 << 40) /* limit on tokens of a batch, rows of a step */
enum { COUNTED = 256 }; /* rows between two stored counts of the part's rows */
#define SET_ROWS ((int64_t)1 << 52) /* more rows than a set can have */

/* ---- the plan ---- */

/* True if a row is in the part. hash: of its content; 0: go by its number. The answers of a parted pair go by the first. */
static bool in_part(const struct tune_loader *load, int64_t row, uint64_t hash)
{
    const struct tune_loader_options *o = &load->o;
    int64_t own, first = tune_dataset_first_part(load->data, row);
    int k = tune_dataset_set_of(load->data, first, &own);
    if (hash && first != row)
        hash = tune_dataset_row_hash(load->data, first);
    if (o->only_set > 0 && k != o->only_set - 1)
        return false;
    uint64_t key = hash ? hash : (uint64_t)(own + (int64_t)k * SET_ROWS);
    return o->part == TUNE_ALL || tune_dataset_held_out(o->seed, key, o->train_split) == (o->part == TUNE_HELD_OUT);
}

static int plan_mix(struct tune_loader *load)
{
    int sets = tune_dataset_sets(load->data);
    char where[TUNE_DATASET_SOURCE_SIZE];
    if (!load->o.mix)
        return 0;
    for (int k = 0; k < sets; k++) {
        struct tune_dataset *set = tune_dataset_set(load->data, k);
        if (load->of_set[k] == 0)
            return tune_error_usage("train_split %g leaves no row of %s to train on", load->o.train_split,
                                    tune_dataset_path(set) ? tune_dataset_path(set) : tune_dataset_source(set, 0, where, sizeof where));
    }
    TRY(tune_mix_plan(&load->mix, load->o.mix, load->of_set, sets));
    load->rows = load->mix.rows;
    return 0;
}

/* Look at count rows from first on: mark and count those of the part. */
static int count_rows(struct tune_loader *load, int64_t first, int64_t count)
{
    uint64_t hash[COUNTED] = {0};
    int64_t own;
    load->before[first / COUNTED] = load->rows;
    if (load->o.part != TUNE_ALL && load->o.split_by == TUNE_SPLIT_BY_CONTENT)
        TRY(tune_dataset_row_hashes(load->data, first, count, hash));
    for (int64_t i = 0; i < count; i++) {
        int64_t row = first + i;
        if (!in_part(load, row, hash[i]))
            continue;
        load->in_part[row / 64] |= (uint64_t)1 << row % 64;
        load->of_set[tune_dataset_set_of(load->data, row, &own)]++;
        load->rows++;
    }
    return 0;
}

/* Count the rows of the part, and store the count every 256 rows to find row i. */
static int count_part(struct tune_loader *load)
{
    int64_t all = tune_dataset_rows(load->data);
    load->rows = all;
    bool whole = load->o.part == TUNE_ALL || (load->o.part == TUNE_TRAIN && load->o.train_split >= 1);
    for (int k = 0; k < tune_dataset_sets(load->data); k++)
        load->of_set[k] = tune_dataset_rows(tune_dataset_set(load->data, k));
    if (whole && load->o.only_set == 0)
        return plan_mix(load);
    load->counted = (all + COUNTED - 1) / COUNTED;
    load->before = tune_zeroed((size_t)load->counted, sizeof *load->before, "the counts of %lld rows", (long long)all);
    load->in_part = tune_zeroed((size_t)(all + 63) / 64, sizeof *load->in_part, "the parts of %lld rows", (long long)all);
    if (!load->before || !load->in_part)
        return -1;
    load->rows = 0;
    memset(load->of_set, 0, sizeof load->of_set);
    for (int64_t row = 0; row < all; row += COUNTED)
        TRY(count_rows(load, row, tune_smaller(COUNTED, all - row)));
    return plan_mix(load);
}

/* The dataset's index of row i of the part. */
static int64_t row_of(const struct tune_loader *load, int64_t i)
{
    if (!load->in_part)
        return i;
    int64_t low = 0, high = load->counted; /* find the last k with before[k] <= i */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (load->before[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    int64_t word = low * COUNTED / 64, left = i - load->before[low];
    int here;
    for (; left >= (here = __builtin_popcountll(load->in_part[word])); word++)
        left -= here;
    uint64_t bits = load->in_part[word];
    while (left-- > 0)
        bits &= bits - 1; /* drops the lowest of them */
    return word * 64 + __builtin_ctzll(bits);
}

bool tune_loader_has(const struct tune_loader *load, int64_t row)
{
    return !load->in_part || (load->in_part[row / 64] >> row % 64 & 1);
}

int64_t tune_loader_row(const struct tune_loader *load, int64_t epoch, int64_t place)
{
    if (load->order)
        return load->order[place];
    if (load->mix.count > 0)
        return row_of(load, tune_mix_row(&load->mix, load->o.seed, load->o.shuffle, epoch, place));
    if (load->o.shuffle)
        place = (int64_t)tune_random_permute(load->o.seed, (uint64_t)epoch, (uint64_t)load->rows, (uint64_t)place);
    return row_of(load, place);
}

void tune_loader_step_on(struct tune_loader *load, struct tune_plan_at *w)
{
    int64_t n = tune_made_at(load, w)->rows;
    w->step++;
    w->used += n;
    w->offset += n;
    if (w->offset == load->rows) {
        w->epoch++;
        w->offset = 0;
    }
}

int64_t tune_loader_micro_batches(const struct tune_loader_options *o)
{
    return (int64_t)o->accumulate * tune_ranks_of(o);
}

/* Rows of a full step. */
static int64_t full_step(const struct tune_loader_options *o, int64_t rows)
{
    return tune_smaller(o->batch_size * tune_loader_micro_batches(o), rows);
}

static int64_t steps_of(const struct tune_loader *load, int64_t rows)
{
    return (rows + load->step_rows - 1) / load->step_rows;
}

/* Number of steps from w to the end of the rows. */
static int64_t steps_left(const struct tune_loader *load, const struct tune_plan_at *w)
{
    int64_t here = tune_left_at(load, w), rest = load->total - w->used - here;
    return steps_of(load, here) + rest / load->rows * steps_of(load, load->rows) + steps_of(load, rest % load->rows);
}

/* Estimated number of steps with packing, limited by epochs. It assumes that later steps have as
 * many rows as those so far. Before the first, it assumes one row for each pack. It is exact at the
 * end. */
static int64_t estimate(const struct tune_loader *load, int64_t steps, int64_t rows)
{
    if (rows >= load->total)
        return steps;
    double all = rows > 0 ? ceil((double)steps * ((double)load->total / (double)rows)) : 0;
    const struct tune_plan_at here = {.epoch = rows / load->rows, .offset = rows % load->rows, .used = rows};
    int64_t most = steps + steps_left(load, &here);
    return steps == 0 || all > (double)most ? most : all > (double)steps ? (int64_t)all : steps + 1;
}

static int plan(struct tune_loader *load)
{
    const struct tune_loader_options *o = &load->o;
    load->planned = o->max_steps;
    load->total = INT64_MAX;
    if (o->max_steps >= 0)
        return 0;
    double rows = (double)load->rows * o->epochs;
    if (!(rows < 0x1p53))
        return tune_error_usage("epochs %g of %lld rows: too many rows to count", o->epochs,
                                (long long)load->rows);
    /* 1000 rows * 0.1 epochs is 100 rows, though the product is 100.00000000000001 */
    load->total = (int64_t)ceil(rows * (1 - 1e-12));
    if (load->total < 1)
        load->total = 1;
    load->planned = steps_left(load, &(struct tune_plan_at){0}); /* with packing an upper limit */
    return 0;
}

int tune_loader_fits(const struct tune_loader *load, int64_t row, const struct tune_example *x)
{
    int64_t longest = 0, size;
    if (x->count > 0 && load->o.sequences != x->sequences)
        return tune_error_set("row %lld has %d labelled sequences, and the loader was made for %d; give both the same `sequences`",
                              (long long)row, x->sequences, load->o.sequences);
    for (int i = 0; x->count > 0 && i < tune_example_parts(x); i++) {
        tune_example_part(x, i, &size);
        longest = size > longest ? size : longest;
    }
    if (longest <= load->o.max_length)
        return 0;
    return tune_error_set("row %lld has %lld tokens, the loader was made for max_length %d; give "
                          "both the same", (long long)row, (long long)longest, load->o.max_length);
}

/* ---- new and free ---- */

static int usage(const char *name, double value, const char *expected)
{
    return tune_error_usage("%s is %g, expected %s", name, value, expected);
}

static int check(const struct tune_loader_options *o, int sets)
{
    if (o->batch_size < 1)
        return usage("batch_size", o->batch_size, "at least 1 row");
    if (o->accumulate < 1)
        return usage("accumulate", o->accumulate, "at least 1 micro-batch");
    if (o->sequences < 0)
        return usage("sequences", o->sequences, "0 or more labelled sequences of a row");
    if (o->sequences > 0 && o->packing)
        return tune_error_usage("answers that are compared or have a label cannot be packed in one row; leave `packing` out");
    if (o->max_length < 1)
        return usage("max_length", o->max_length, "at least 1 token");
    if (o->part != TUNE_ALL && !(o->train_split > 0 && o->train_split <= 1))
        return usage("train_split", o->train_split, "a share above 0 and at most 1");
    if (o->max_steps < -1)
        return usage("max_steps", (double)o->max_steps, "0 or more, or -1 for as many as epochs say");
    if (o->max_steps == -1 && !(o->epochs > 0 && isfinite(o->epochs)))
        return usage("epochs", o->epochs, "a number above 0");
    if (o->only_set < 0 || o->only_set > sets)
        return usage("only_set", o->only_set, "the number of a joined set, or 0 for all");
    if (o->stop_at_step < 0)
        return usage("stop_at_step", (double)o->stop_at_step, "a step, or 0 for never");
    if (isnan(o->stop_after_seconds))
        return usage("stop_after_seconds", o->stop_after_seconds, "0 or more, or -1 for never");
    return 0;
}

static int empty_part(const struct tune_loader *load)
{
    int64_t all = tune_dataset_rows(load->data), distinct = all;
    bool by_content = load->o.split_by == TUNE_SPLIT_BY_CONTENT && all <= TUNE_COPIES_ROWS;
    uint64_t *hashes = by_content ? malloc((size_t)all * sizeof *hashes) : NULL;
    char why[160] = "";
    if (hashes && tune_dataset_row_hashes(load->data, 0, all, hashes) == 0 && hashes[0])
        distinct = tune_copies_distinct(hashes, all);
    free(hashes);
    if (distinct < all)
        snprintf(why, sizeof why, "; only %lld of them differ, and copies of a row stay on one side (`split_by` number parts them)",
                 (long long)distinct);
    return tune_error_usage("train_split %g leaves no row %s of %lld%s; choose %s one, or use more "
                            "rows", load->o.train_split,
                            load->o.part == TUNE_TRAIN ? "to train on" : "held out", (long long)all, why,
                            load->o.part == TUNE_TRAIN ? "a larger" : "a smaller");
}

int tune_loader_sequences(const struct tune_loader_options *o)
{
    return tune_sequences_of(o) * o->batch_size;
}

int64_t tune_loader_bytes(const struct tune_loader_options *o, int64_t rows)
{
    int64_t n = tune_sequences_of(o), B = n * tune_smaller(o->batch_size, rows);
    int64_t step_rows = full_step(o, rows);
    struct tune_loader *load = NULL;
    struct tune_example *x = NULL;
    int64_t token = (int64_t)(sizeof *x->ids + sizeof *x->trained);
    int64_t labels = o->sequences * (int64_t)(sizeof *x->ends + sizeof *x->labels);
    int64_t room = n * token * o->max_length + labels + (int64_t)sizeof *x;
    int64_t places = o->packing ? (int64_t)(sizeof *load->positions + sizeof *load->starts + sizeof *load->batch_rows) : 0;
    int64_t row = room + (int64_t)sizeof *load->places;
    int64_t ahead = TUNE_SEGMENTS * (o->packing ? tune_packs_bytes(step_rows, o->max_length) : step_rows * row);
    ahead += o->packing ? room : 0;
    return B * o->max_length * ((int64_t)(sizeof *load->ids + sizeof *load->labels) + places) +
           B * (int64_t)(sizeof *load->lengths + (o->packing ? 0 : sizeof *load->batch_rows) +
                         (o->sequences > 0 ? sizeof *load->label_of + sizeof *load->prompts : 0)) + ahead;
}

/* Allocate the memory for packing, with this many tokens in a batch. */
static bool make_packs(struct tune_loader *load, size_t tokens)
{
    bool good = (size_t)load->step_rows <= SENSIBLE / (size_t)load->o.max_length;
    load->positions = calloc(tokens, sizeof *load->positions);
    load->starts = calloc(tokens, sizeof *load->starts);
    for (int i = 0; i < TUNE_SEGMENTS && good; i++)
        good = tune_packs_new(&load->packs[i], load->step_rows, load->o.max_length) == 0;
    return good && load->positions && load->starts;
}

static int make_buffers(struct tune_loader *load)
{
    size_t B = (size_t)(tune_smaller(load->o.batch_size, load->rows) * tune_sequences_of(&load->o)), tokens = B * (size_t)load->o.max_length;
    bool good = true;
    /* so no product below overflows */
    if (tokens <= SENSIBLE && (size_t)load->step_rows <= SENSIBLE) {
        load->ids = calloc(tokens, sizeof *load->ids);
        load->labels = calloc(tokens, sizeof *load->labels);
        load->lengths = calloc(B, sizeof *load->lengths);
        load->batch_rows = calloc(load->o.packing ? tokens : B, sizeof *load->batch_rows);
        load->examples = calloc(load->o.packing ? 1 : (size_t)load->step_rows, TUNE_SEGMENTS * sizeof *load->examples);
        if (!load->o.packing)
            load->places = calloc((size_t)load->step_rows, TUNE_SEGMENTS * sizeof *load->places);
        if (load->o.sequences > 0) {
            load->label_of = calloc(B, sizeof *load->label_of);
            load->prompts = calloc(B, sizeof *load->prompts);
        }
        good = (load->o.packing ? make_packs(load, tokens) : load->places != NULL) &&
               (load->o.sequences == 0 || (load->label_of && load->prompts));
    }
    if (good && load->ids && load->labels && load->lengths && load->batch_rows && load->examples)
        return 0;
    return tune_error_no_memory("batches of %d rows of %d tokens; %d to "
                               "a step; choose a smaller `batch_size`, `max_length` or `accumulate`", load->o.batch_size,
                               load->o.max_length, load->o.accumulate);
}

struct tune_loader *tune_loader_new(struct tune_dataset *d, const struct tune_loader_options *options)
{
    if (check(options, tune_dataset_sets(d)) < 0)
        return NULL;
    struct tune_loader *load = tune_zeroed(1, sizeof *load, "a loader");
    if (!load)
        return NULL;
    load->data = d;
    load->o = *options;
    pthread_mutex_init(&load->lock, NULL);
    pthread_cond_init(&load->wake_caller, NULL);
    pthread_cond_init(&load->wake_helper, NULL);
    load->began_s = load->early_s = -1;
    int status = count_part(load);
    if (status == 0 && load->rows == 0)
        status = empty_part(load);
    if (status == 0) {
        load->step_rows = full_step(options, load->rows);
        if (plan(load) == 0 && make_buffers(load) == 0)
            return load;
    }
    tune_loader_free(load);
    return NULL;
}

/* Free what make_buffers made. */
static void free_buffers(struct tune_loader *load)
{
    for (int64_t i = 0; load->examples && i < (load->o.packing ? 1 : TUNE_SEGMENTS * load->step_rows); i++)
        tune_example_free(&load->examples[i]);
    for (int i = 0; i < TUNE_SEGMENTS; i++)
        tune_packs_free(&load->packs[i]);
    free(load->positions);
    free(load->starts);
    free(load->examples);
    free(load->places);
    free(load->ids);
    free(load->labels);
    free(load->lengths);
    free(load->batch_rows);
    free(load->label_of);
    free(load->prompts);
    load->positions = load->starts = load->ids = load->labels = load->lengths = NULL;
    load->examples = NULL;
    load->places = load->batch_rows = NULL;
}

void tune_loader_free(struct tune_loader *load)
{
    if (!load)
        return;
    tune_prefetch_stop(load);
    free_buffers(load);
    free(load->in_part);
    free(load->before);
    free(load->order);
    pthread_cond_destroy(&load->wake_helper);
    pthread_cond_destroy(&load->wake_caller);
    pthread_mutex_destroy(&load->lock);
    free(load);
}

static int check_order(const struct tune_loader *load, const int64_t *rows, int64_t count)
{
    int64_t all = tune_dataset_rows(load->data);
    if (load->began_s >= 0)
        return tune_error_set("an order of rows is for the whole run; give it before the first step");
    if (load->mix.count > 0)
        return tune_error_usage("`mix` is an order of rows already; leave it out, or the recipe's own order");
    if (count < 1)
        return tune_error_set("an order of %lld rows, expected at least 1", (long long)count);
    for (int64_t i = 0; i < count; i++)
        if (rows[i] < 0 || rows[i] >= all || !tune_loader_has(load, rows[i]))
            return tune_error_set("place %lld of the order is row %lld, which is %s; see tune_loader_has", (long long)i,
                                  (long long)rows[i], rows[i] < 0 || rows[i] >= all ? "not in the set" : "held out, not in this part");
    return 0;
}

int tune_loader_order(struct tune_loader *load, const int64_t *rows, int64_t count)
{
    TRY(check_order(load, rows, count));
    int64_t *order = malloc((size_t)count * sizeof *order), own;
    if (!order)
        return tune_error_no_memory("an order of %lld rows", (long long)count);
    memcpy(order, rows, (size_t)count * sizeof *order);
    free_buffers(load);
    free(load->order);
    load->order = order;
    load->rows = count;
    memset(load->ordered, 0, sizeof load->ordered);
    for (int64_t i = 0; i < count; i++)
        load->ordered[tune_dataset_set_of(load->data, rows[i], &own)]++;
    load->step_rows = full_step(&load->o, count);
    TRY(plan(load));
    return make_buffers(load);
}

bool tune_loader_ordered(const struct tune_loader *load)
{
    return load->order != NULL;
}

struct tune_dataset *tune_loader_dataset(const struct tune_loader *load)
{
    return load->data;
}

int64_t tune_loader_rows(const struct tune_loader *load)
{
    return load->rows;
}

int64_t tune_loader_set_rows(const struct tune_loader *load, int k, int64_t *epoch_rows)
{
    *epoch_rows = load->order ? load->ordered[k] : load->mix.count > 0 ? load->mix.set[k].each : load->of_set[k];
    return load->of_set[k];
}

int64_t tune_loader_epoch_steps(const struct tune_loader *load)
{
    return steps_of(load, load->rows);
}

int64_t tune_loader_planned_rows(const struct tune_loader *load)
{
    return load->total;
}

int64_t tune_loader_planned_steps(const struct tune_loader *load)
{
    return load->planned;
}

/* ---- steps ---- */

/* True if that long has passed since then. */
static bool passed(const struct tune_loader *load, double since_s)
{
    return load->o.stop_after_seconds >= 0 && tune_moment_now().wall_s - since_s >= load->o.stop_after_seconds;
}

static bool time_is_up(struct tune_loader *load)
{
    if (load->began_s < 0)
        load->began_s = tune_moment_now().wall_s;
    return load->over || (load->done > load->first && passed(load, load->early_s < 0 ? load->began_s : load->early_s));
}

void tune_loader_begin(struct tune_loader *load)
{
    if (load->early_s < 0)
        load->early_s = tune_moment_now().wall_s;
}

bool tune_loader_time_is_up(struct tune_loader *load)
{
    load->over = load->over || (load->early_s >= 0 && passed(load, load->early_s));
    return load->over;
}

/* What a rank knows that ends the run. */
struct ending {
    int signal;
    bool interrupted, diverged, stable, up;
};

static struct ending ending_of(const struct tune_loader *load, bool up)
{
    const struct tune_loader_options *o = &load->o;
    return (struct ending){.signal = o->stop_signal ? *o->stop_signal : 0, .diverged = o->diverged && *o->diverged,
                           .stable = o->stable && *o->stable, .up = up};
}

/* All ranks stop at the same step: a signal may come to any of them, and rank 0 judges the rest. */
static int agree(struct tune_loader *load, struct ending *end)
{
    int ranks = tune_ranks_of(&load->o);
    if (ranks == 1)
        return 0;
    struct ending *all = tune_comm_gather(load->o.comm, "whether to stop", end, sizeof *end);
    if (!all)
        return -1;
    *end = all[0];
    for (int r = 1; r < ranks; r++) {
        end->signal = end->signal ? end->signal : all[r].signal;
        end->interrupted |= all[r].interrupted;
    }
    free(all);
    return 0;
}

/* The reason to stop before the planned end; NULL: continue. */
static const char *stop(const struct tune_loader *load, struct tune_progress *at, const struct ending *end)
{
    if (end->signal)
        at->signal = end->signal;
    if (at->signal)
        return at->signal == SIGINT ? "SIGINT" : at->signal == SIGTERM ? "SIGTERM" : at->signal == SIGHUP ? "SIGHUP"
               : at->signal == SIGPIPE ? "lost standard output" : "a signal";
    if (end->diverged)
        return "`stop_on_divergence`";
    if (load->o.stop_at_step > 0 && load->done >= load->o.stop_at_step)
        return "`stop_at_step`";
    if (end->stable)
        return "`until_stable`";
    return end->up ? "`stop_after_seconds`" : NULL;
}

/* Report that no row of the part can be trained on. */
static int nothing(const struct tune_loader *load)
{
    const struct tune_made *out = &load->out;
    char where[TUNE_DATASET_SOURCE_SIZE];
    tune_dataset_source(load->data, tune_loader_row(load, load->at.epoch, 0), where, sizeof where);
    return tune_error_set("not one of %lld rows has a token to train on: %lld cannot be read%s, "
                          "%lld have no text or answer to train on, %lld lost theirs to "
                          "max_length %d; the first is %.200s: look at rows with `show_tokens` 5, "
                          "or raise `max_length`%s%.700s",
                          (long long)(out->bad + out->unlabelled + out->cut), (long long)out->bad,
                          out->bad > 0 ? " (reasons below)" : "",
                          (long long)out->unlabelled, (long long)out->cut, load->o.max_length,
                          where, out->bad > 0 ? ". Rows that cannot be read: " : "",
                          out->bad > 0 ? tune_dataset_reasons(load->data) : "");
}

/* Wait for the next step. 1: a signal came meanwhile. */
static int begin_step(struct tune_loader *load)
{
    load->given = load->put = load->tokens = load->label_count = load->padded = 0;
    tune_prefetch_again(load);
    tune_prefetch_allow(load);
    if (load->o.prefetch && !load->running)
        TRY(tune_prefetch_start(load));
    int stopped = tune_prefetch_ensure(load);
    if (stopped)
        return stopped;
    const struct tune_made *s = tune_made_at(load, &load->at);
    load->now = s->rows;
    load->count = load->o.packing ? tune_packs_at(load, &load->at)->open : s->kept;
    load->out.bad += s->bad;
    load->out.unlabelled += s->unlabelled;
    load->out.cut += s->cut;
    return 0;
}

/* Stop, or wait for the next step. 1: at->stopped says why it stops. */
static int stop_or_begin(struct tune_loader *load, struct tune_progress *at, bool up)
{
    struct ending end = ending_of(load, up);
    bool alone = tune_ranks_of(&load->o) == 1;
    if (alone && (at->stopped = stop(load, at, &end)))
        return 1;
    int interrupted = begin_step(load);
    TRY(interrupted);
    if (alone && !interrupted)
        return 0;
    end = ending_of(load, up);
    end.interrupted = interrupted;
    TRY(agree(load, &end));
    at->stopped = stop(load, at, &end);
    return at->stopped || end.interrupted;
}

/* Update the plan after this many rows, if epochs limit the run. Rows not yet read count as
 * labelled. With packing it also sets the position before the current step. */
static void plan_by_rows(struct tune_loader *load, struct tune_progress *at, int64_t rows)
{
    const struct tune_plan_at here = {.epoch = rows / load->rows, .offset = rows % load->rows, .used = rows};
    if (load->o.max_steps >= 0)
        return;
    load->planned = load->o.packing ? estimate(load, load->done, rows) : load->done + steps_left(load, &here);
    at->planned_steps = load->planned;
    if (load->o.packing) {
        at->planned_rows = load->total;
        at->step_rows = load->now;
        at->fraction = (double)load->at.used / (double)load->total;
    } else {
        at->fraction = at->step < load->planned ? (double)at->step / (double)load->planned : 1;
    }
}

/* Count the rows of the current step as consumed. */
static void consume(const struct tune_loader *load, struct tune_progress *at)
{
    if (at->rows == 0 || at->rows_hash != 0) /* otherwise the hash before a resume was unknown */
        at->rows_hash += load->steps[load->at.step % TUNE_SEGMENTS].hash;
    at->rows += load->now;
    at->epoch = (double)at->rows / (double)load->rows;
}

int tune_loader_more(struct tune_loader *load, struct tune_progress *at)
{
    bool up = time_is_up(load);
    const double epoch = at->epoch, fraction = at->fraction;
    if (load->o.starting)
        *load->o.starting = 0;
    at->planned_steps = load->planned;
    if (load->in_step)
        tune_loader_step_on(load, &load->at);
    load->in_step = false;
    for (;;) {
        bool end = load->o.max_steps >= 0 ? load->done >= load->planned : tune_left_at(load, &load->at) == 0;
        if (end && load->done == 0 && load->skipped > 0)
            return nothing(load);
        if (end || at->early_stop) {
            at->finished = true;
            if (end)
                plan_by_rows(load, at, load->at.used);
            return 0;
        }
        int stopped = stop_or_begin(load, at, up);
        TRY(stopped);
        if (stopped)
            return 0;
        if (load->count > 0)
            break;
        if (load->at.offset == 0 && load->now == load->rows)
            return nothing(load);
        consume(load, at);
        load->skipped++;
        plan_by_rows(load, at, at->rows);
        tune_loader_step_on(load, &load->at);
    }
    load->in_step = true;
    load->done++;
    at->epoch_before = epoch;
    at->fraction_before = fraction;
    plan_by_rows(load, at, load->at.used + load->now);
    int64_t all = (int64_t)load->o.batch_size * tune_ranks_of(&load->o);
    return (int)((load->count + all - 1) / all);
}

void tune_progress_step(struct tune_progress *at, const struct tune_loader *load)
{
    at->step++;
    at->best = false; /* it belonged to the step before */
    consume(load, at);
    at->tokens += load->tokens;
    at->labels += load->label_count;
    at->padded_tokens += load->padded;
    at->planned_steps = load->planned;
    if (at->planned_rows > 0)
        at->fraction = (double)at->rows / (double)at->planned_rows;
    else
        at->fraction = at->step < load->planned ? (double)at->step / (double)load->planned : 1;
}

double tune_loader_waited_s(const struct tune_loader *load)
{
    return load->waited_s;
}

/* Move to the beginning of a step, before the helper makes its first row. */
static void restart(struct tune_loader *load, int64_t step, const struct tune_plan_at *w)
{
    tune_prefetch_stop(load);
    load->at = load->prefetch = *w;
    load->first = load->done = step;
    if (load->o.max_steps < 0)
        load->planned = load->o.packing ? estimate(load, step, w->used) : step + steps_left(load, w);
    load->in_step = load->quit = load->failed = load->interrupted = load->held = false;
    load->now = load->given = load->count = load->put = load->skipped = 0;
    load->out = (struct tune_made){0};
    load->tokens = load->label_count = load->padded = 0;
    load->made = w->step;
    load->wanted = 0;
    load->began_s = -1;
}

int tune_loader_seek(struct tune_loader *load, const struct tune_progress *at)
{
    if (at->step < 0 || at->rows < 0 || at->rows > load->total)
        return tune_error_set("cannot go on behind step %lld and row %lld: the plan has %lld "
                              "rows; rows, `epochs` or `train_split` are not those of the run",
                              (long long)at->step, (long long)at->rows, (long long)load->total);
    restart(load, at->step, &(struct tune_plan_at){.step = at->step, .epoch = at->rows / load->rows, .offset = at->rows % load->rows,
                                           .used = at->rows});
    return 0;
}

static uint64_t hash_at(const struct tune_loader *load, int64_t epoch, int64_t place)
{
    int64_t row = tune_loader_row(load, epoch, place);
    return tune_hash_in_place(tune_dataset_row_hash(load->data, row), row);
}

int tune_loader_rows_hash(struct tune_loader *load, int64_t rows, uint64_t *hash)
{
    /* sums of row hashes: rows after the place, read in one epoch less; rows before it */
    uint64_t sums[2] = {0, 0};
    int64_t epochs = rows / load->rows, place = rows % load->rows;
    if (load->mix.count > 0) { /* each epoch has other rows */
        *hash = 0;
        for (int64_t i = 0; i < rows; i++) {
            TRY(tune_dataset_whole(load->data));
            *hash += hash_at(load, i / load->rows, i % load->rows);
        }
        return 0;
    }
    for (int64_t i = 0; i < (epochs > 0 ? load->rows : place); i++) {
        TRY(tune_dataset_whole(load->data));
        sums[i < place] += hash_at(load, epochs, i);
    }
    *hash = sums[0] * (uint64_t)epochs + sums[1] * (uint64_t)(epochs + 1);
    return 0;
}

bool tune_loader_bad_row(struct tune_loader *load)
{
    pthread_mutex_lock(&load->lock);
    bool bad = load->failed && load->error.kind != TUNE_ERROR_CANNOT;
    pthread_mutex_unlock(&load->lock);
    return bad && tune_dataset_whole(load->data) == 0;
}

int tune_loader_rewind(struct tune_loader *load)
{
    restart(load, 0, &(struct tune_plan_at){0});
    return 0;
}
