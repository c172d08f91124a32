/* choose.c - the other way round: on which GPUs a run fits, smallest memory first. */
#include "fit.h"

#include <math.h>
#include <string.h>

#include "core/nearest.h"
#include "core/print.h"
#include "core/try.h"
#include "../drawing.h"
#include "profilers/roofline.h"

/* The run on one GPU, as the table says it. */
struct choice {
    struct fit_run run;
    double hour, million; /* price per hour; cost of a million tokens. NaN: unknown */
    struct tune_memory_plan plan;
    char old[128], advice[512];
    int most, longest;
    double speed; /* tokens/s; NaN: unknown */
    double sent;  /* bytes that a GPU sends in a step */
    struct fit_speed stored; /* what the store says of it; rows 0: nothing, it is an estimate */
    bool fits;
};

/* The best of a table. */
struct best_gpus {
    char smallest[64], fastest[64], by_hour[64], by_token[64];
    double memory, speed, hour, million;
};

/* The question. prices NULL: none were given. measured: all 0 without a store. */
struct asked {
    const struct fit_flags *my;
    const struct fit_prices *prices;
    struct fit_measured measured; /* of the method in hand */
};

static bool for_people(const struct fit_flags *my)
{
    return !strcmp(my->format, "table");
}

/* ---- one GPU ---- */

static int make_choice(struct choice *c, const struct asked *a)
{
    const struct fit_run *r = &c->run;
    struct tune_memory_plan whole;
    int batch = r->my->tune.loader.batch_size;
    *c->old = *c->advice = 0;
    tune_known_gpu_old(r->gpu->known, c->old, sizeof c->old);
    TRY(fit_plan_whole(r, batch, r->length, &whole));
    c->sent = fit_sent(r, &whole);
    TRY(fit_plan(r, batch, r->length, &c->plan));
    c->fits = !*c->old && c->plan.device <= r->room;
    c->most = *c->old ? 0 : fit_largest(r, 0, r->length, MOST_BATCH);
    c->longest = *c->old ? 0 : fit_largest(r, batch, 0, r->config->max_positions);
    if (c->most < 0 || c->longest < 0)
        return -1;
    int count, place = (int)(r->gpu->known - tune_known_gpus(&count));
    c->stored = a->measured.at[place];
    if (c->stored.model && !c->fits)
        c->stored.rows = 0;
    c->speed = c->stored.rows > 0 ? c->stored.mean : c->fits ? fit_speed(r, batch, &whole) : NAN;
    c->hour = a->prices ? r->my->gpus * fit_price_of(a->prices, r->gpu->known) : NAN;
    c->million = c->hour / 3600 / c->speed * 1e6;
    return c->fits || *c->old ? 0 : fit_advice(r, c->advice, sizeof c->advice);
}

/* ---- the table ---- */

static const char *const people_columns[] = {"gpu", "memory", "needed", "fits", "batch", "length", "tokens/s",
                                             "/hour", "/Mtok", "why not"};
static const char *const program_columns[] = {
    "gpu", "gpu_memory_bytes", "driver_bytes", "needed", "fits", "batch", "length",
    "tokens_per_second", "low", "high", "speed", "rows",
    "price_per_hour", "cost_per_million_tokens", "currency",
    "why_not", "fits_with", "model", "method", "command", "gpus", "shard", "bytes_sent"};
enum {
    PEOPLE = sizeof people_columns / sizeof *people_columns,
    PROGRAM = sizeof program_columns / sizeof *program_columns,
    PRICE = 7, PRICES = 2 /* the first column of prices, and how many there are */
};

/* Why it does not fit, and with what it would. People get both in one cell. */
static void put_reason(struct tune_table *t, const struct choice *c, bool people)
{
    char why[768] = "";
    if (*c->old)
        snprintf(why, sizeof why, "%s", c->old);
    else if (!c->fits)
        snprintf(why, sizeof why, "%.2f GiB too much", (double)(c->plan.device - c->run.room) / GIB);
    if (people && !*c->old && !c->fits)
        tune_append(why, sizeof why, "%s%s", *c->advice ? "; it fits with " : "; no batch, length, method or rank is enough", c->advice);
    if (!c->fits && c->stored.rows > 0)
        tune_append(why, sizeof why, "; yet %d row%s of the store ran on it", c->stored.rows, c->stored.rows == 1 ? "" : "s");
    tune_table_text(t, why);
    if (!people)
        tune_table_text(t, c->advice);
}

/* An estimate has two digits, and ~ before it; a prediction has *. */
static void put_speed(struct tune_table *t, const struct choice *c)
{
    double speed = c->speed;
    char text[32];
    double unit = speed >= 10 ? pow(10, floor(log10(speed)) - 1) : 1;
    if (c->stored.rows > 0)
        snprintf(text, sizeof text, "%s%.0f", c->stored.model ? "*" : "", speed);
    else
        snprintf(text, sizeof text, "~%.0f", round(speed / unit) * unit);
    if (isnan(speed))
        tune_table_text(t, "");
    else
        tune_table_shown(t, speed, text);
}

static void put_price(struct tune_table *t, const struct choice *c, const struct fit_prices *prices, bool people)
{
    if (people && !prices)
        return;
    tune_table_number(t, c->hour, "%.2f");
    tune_table_number(t, c->million, "%.3g");
    if (!people)
        tune_table_text(t, isnan(c->hour) ? "" : prices->currency);
}

static void add_row(struct tune_table *t, const struct choice *c, const struct fit_prices *prices)
{
    const struct fit_run *r = &c->run;
    char command[1024];
    bool people = for_people(r->my);
    tune_table_text(t, r->gpu->name);
    if (people)
        tune_table_number(t, (double)r->gpu->bytes / GIB, "%.1f");
    else {
        tune_table_number(t, (double)r->gpu->bytes, "%.0f");
        tune_table_number(t, (double)TUNE_CUDA_CONTEXT, "%.0f");
    }
    fit_put_bytes(t, c->plan.device);
    tune_table_text(t, *c->old ? people ? "old" : "too old" : c->fits ? "yes" : "no");
    fit_put_most(t, c->most);
    fit_put_most(t, c->longest);
    if (people)
        put_speed(t, c);
    else {
        tune_table_number(t, c->speed, "%.0f");
        bool model = c->stored.rows > 0 && c->stored.model;
        tune_table_number(t, model ? c->stored.low : NAN, "%.0f");
        tune_table_number(t, model ? c->stored.high : NAN, "%.0f");
        tune_table_text(t, model ? "model" : c->stored.rows > 0 ? "measured" : isnan(c->speed) ? "" : "estimate");
        tune_table_number(t, c->stored.rows, "%.0f");
    }
    put_price(t, c, prices, people);
    put_reason(t, c, people);
    if (people)
        return;
    tune_table_text(t, r->model);
    tune_table_text(t, fit_methods[r->method]);
    tune_table_text(t, fit_command(r, r->my->tune.loader.batch_size, r->length, command, sizeof command));
    tune_table_number(t, r->my->gpus, "%.0f");
    tune_table_text(t, fit_shard(r->my));
    tune_table_number(t, c->sent, "%.0f");
}

static void count_best(struct best_gpus *best, const struct choice *c)
{
    if (!c->fits)
        return;
    if (!*best->smallest) {
        snprintf(best->smallest, sizeof best->smallest, "%s", c->run.gpu->name);
        best->memory = (double)c->run.gpu->bytes / GIB;
    }
    if (c->speed > best->speed) {
        snprintf(best->fastest, sizeof best->fastest, "%s", c->run.gpu->name);
        best->speed = c->speed;
    }
    if (!isnan(c->hour) && (!*best->by_hour || c->hour < best->hour)) {
        snprintf(best->by_hour, sizeof best->by_hour, "%s", c->run.gpu->name);
        best->hour = c->hour;
    }
    if (!isnan(c->million) && (!*best->by_token || c->million < best->million)) {
        snprintf(best->by_token, sizeof best->by_token, "%s", c->run.gpu->name);
        best->million = c->million;
    }
}

/* All GPUs with one method. */
static int add_method(struct tune_table *t, struct asked *a, int method, struct best_gpus *best)
{
    const struct fit_flags *my = a->my;
    struct fit_gpu gpus[MOST_GPUS];
    int count = fit_gpus_all(gpus), code = 0;
    for (int i = 0; i < count && code == 0; i++) {
        struct tune_model_config config;
        struct choice c = {0};
        code = fit_open(&c.run, my, my->tune.model, &gpus[i], &config);
        c.run.method = method;
        if (code == 0 && my->store && i == 0)
            code = fit_measured_read(&a->measured, &c.run);
        if (code == 0)
            code = make_choice(&c, a);
        if (code == 0) {
            add_row(t, &c, a->prices);
            count_best(best, &c);
        }
        tune_device_close(c.run.dev);
    }
    return code;
}

/* ---- notes ---- */

/* The formats of the weights that this method keeps. */
static void print_heading(const struct fit_flags *my, int method, int length, int width)
{
    char adapters[192] = "";
    if (method != FULL)
        snprintf(adapters, sizeof adapters, "the base frozen in %s, adapters of rank %d with float32 weights and moments",
                 method == QLORA ? "4 bits (nf4)" : fit_dtype(my->base_dtype), my->tune.lora.r);
    fit_note(width, "%s, %s: %s; activations in %s, checkpointing %s; batches of %d row%s of %d tokens.", my->tune.model, fit_methods[method],
             method == FULL ? "float32 weights and moments" : adapters, fit_dtype(my->dtype),
             my->tune.activation_checkpointing ? "full" : "none", my->tune.loader.batch_size, my->tune.loader.batch_size == 1 ? "" : "s", length);
    if (my->gpus > 1)
        fit_note(width, "On each of %d GPUs of one machine, --shard %s. No such run was done: this is arithmetic.", my->gpus, my->shard);
    if (length < my->tune.data.max_length)
        fit_note(width, "Rows are no longer than the model's context, %d.", length);
}

static void print_cheapest(const struct best_gpus *best, const struct fit_prices *prices, int width)
{
    const char *space = *prices->currency ? " " : "";
    if (!*best->by_hour)
        fit_note(width, "%s has no price of a GPU that it fits on.", prices->path);
    else if (!*best->by_token)
        fit_note(width, "Cheapest by the hour: %s, %.2f%s%s.", best->by_hour, best->hour, space, prices->currency);
    else
        fit_note(width, "Cheapest by the hour: %s, %.2f%s%s. Cheapest by the token, at tokens/s: %s, %.3g%s%s for a million.",
                 best->by_hour, best->hour, space, prices->currency, best->by_token, best->million, space, prices->currency);
}

static void print_best(const struct best_gpus *best, int width)
{
    if (!*best->smallest)
        fit_note(width, "It fits on none of them.");
    else if (*best->fastest)
        fit_note(width, "Smallest that fits: %s, %.1f GiB. Fastest by tokens/s: %s.", best->smallest, best->memory, best->fastest);
    else
        fit_note(width, "Smallest that fits: %s, %.1f GiB.", best->smallest, best->memory);
}

/* Say what was left out of the file of prices, and which GPUs have no price. */
static void print_left_out(const struct fit_prices *prices, int gpus_each, int width)
{
    char gpus_text[32] = "";
    if (gpus_each > 1)
        snprintf(gpus_text, sizeof gpus_text, ", of all %d GPUs", gpus_each);
    char none[512] = "";
    int count, n = 0;
    const struct tune_known_gpu *gpus = tune_known_gpus(&count);
    for (int i = 0; i < count; i++)
        if (prices->lines[i] == 0)
            tune_append(none, sizeof none, "%s%s", n++ ? ", " : "", gpus[i].name);
    fit_note(width, "/hour: the price in %s%s%s%s. /Mtok: what a million tokens cost at tokens/s.", prices->path,
             *prices->currency ? ", in " : "", prices->currency, gpus_text);
    if (prices->unknown_count > 0)
        fit_note(width, "%s: %d row%s no known GPU, and %s left out: %s. --gpu list prints the names.", prices->path, prices->unknown_count,
                 prices->unknown_count == 1 ? " names" : "s name", prices->unknown_count == 1 ? "is" : "are", prices->unknown);
    if (*prices->left)
        fit_note(width, "%s: columns left out: %s.", prices->path, prices->left);
    if (n > 0)
        fit_note(width, "Without a price: %s.", none);
}

static void print_legend(const struct fit_flags *my, int width)
{
    fit_note(width, "memory: GiB that CUDA shows, %.1f of them for its driver (an estimate). needed: GiB of the run, beside the driver. "
             "batch: the largest with rows of that length. length: the longest rows with that batch.",
             (double)TUNE_CUDA_CONTEXT / GIB);
    if (my->dtype == TUNE_BF16)
        fit_note(width, "~tokens/s: an estimate, not measured. A step takes FLOPs / (%g x the data sheet's dense bfloat16 FLOP/s) + "
                 "bytes / (%g x its bandwidth); both shares are assumed. Padding would come off.",
                 TUNE_ROOFLINE_PRODUCTS, TUNE_ROOFLINE_TRAFFIC);
    else
        fit_note(width, "tokens/s is estimated for --dtype bfloat16 only.");
    fit_note_gpus(my, true, width);
}

/* ---- all of it ---- */

static struct tune_table *new_table(const struct asked *a)
{
    const char *names[PEOPLE];
    int n = 0;
    if (!for_people(a->my))
        return tune_table_new(program_columns, PROGRAM);
    for (int i = 0; i < PEOPLE; i++)
        if (a->prices || i < PRICE || i >= PRICE + PRICES)
            names[n++] = people_columns[i];
    struct tune_table *t = tune_table_new(names, n);
    if (t) {
        tune_table_keys(t, 1);
        tune_table_below(t, n - 1);
    }
    return t;
}

/* Say how many rows of the store count. */
static void print_measured(const struct asked *a, int method, int width)
{
    if (method == QLORA)
        fit_note(width, "%s has %lld rows; none counts, since no experiment has a base of 4 bits.", a->my->store, (long long)a->measured.all);
    else
        fit_note(width, "tokens/s without a mark is measured: the mean of a GPU's rows in %s, where %lld of %lld are of this run. They have its "
                 "model, length, batch, checkpointing and dtype; their adapters and data may differ.",
                 a->my->store, (long long)a->measured.used, (long long)a->measured.all);
    if (a->measured.modelled > 0)
        fit_note(width, "*tokens/s is predicted, from rows of that GPU with other batches and lengths around this run. --json has the 95 %% "
                 "interval, as low and high.");
}

static int print_method(struct asked *a, int method, bool first, int width, int notes)
{
    const struct fit_flags *my = a->my;
    struct tune_table *t = new_table(a);
    struct best_gpus best = {0};
    struct tune_model_config config;
    int code = t ? add_method(t, a, method, &best) : -1;
    if (code == 0)
        code = fit_shape(my, my->tune.model, &config);
    if (code == 0) {
        int length = my->tune.data.max_length < config.max_positions ? my->tune.data.max_length : config.max_positions;
        fputs(first ? "" : "\n", stdout);
        print_heading(my, method, length, notes);
        code = tune_table_print(t, "table", width, "...", stdout);
        print_best(&best, notes);
        if (my->store)
            print_measured(a, method, notes);
        if (a->prices && *best.smallest)
            print_cheapest(&best, a->prices, notes);
    }
    tune_table_free(t);
    return code;
}

static int print_people(struct asked *a)
{
    const struct fit_flags *my = a->my;
    int width = drawing_columns(my->width, 0), notes = fit_note_width(width);
    bool first = true;
    for (int i = 0; i < METHODS; i++)
        if (tune_name_listed(my->method, fit_methods[i])) {
            TRY(print_method(a, i, first, width, notes));
            first = false;
        }
    print_legend(my, notes);
    if (a->prices)
        print_left_out(a->prices, my->gpus, notes);
    return 0;
}

/* Programs get one table. What was left out of the prices goes to stderr. */
static int print_table(struct asked *a)
{
    struct best_gpus best = {0};
    struct tune_table *t = new_table(a);
    int code = t ? 0 : -1;
    for (int i = 0; i < METHODS && code == 0; i++)
        if (tune_name_listed(a->my->method, fit_methods[i]))
            code = add_method(t, a, i, &best);
    if (code == 0)
        code = tune_table_print(t, a->my->format, 0, "", stdout);
    tune_table_free(t);
    if (code == 0 && a->prices && a->prices->unknown_count > 0)
        fprintf(stderr, "fit: %s: %d of %d rows name no known GPU, and are left out: %s\n", a->prices->path, a->prices->unknown_count,
                a->prices->rows, a->prices->unknown);
    if (code == 0 && a->prices && *a->prices->left)
        fprintf(stderr, "fit: %s: columns left out: %s\n", a->prices->path, a->prices->left);
    return code;
}

int fit_choose(const struct fit_flags *my)
{
    struct fit_prices prices;
    struct asked a = {.my = my, .prices = my->price ? &prices : NULL};
    if (my->price)
        TRY(fit_prices_read(&prices, my->price));
    return for_people(my) ? print_people(&a) : print_table(&a);
}
