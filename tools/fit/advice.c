/* advice.c - what would make a run fit that does not: the options to change, each tried by its plan. */
#include "fit.h"

#include <string.h>

#include "core/print.h"
#include "core/try.h"

enum { LEAST_LENGTH = 64, LEAST_RANK = 8 };

struct tips {
    char *text;
    size_t size;
};

/* One of several options that are enough together. */
static void add_both(struct tips *tips, const char *format, ...) TUNE_PRINTF(2, 3);
static void add_both(struct tips *tips, const char *format, ...)
{
    char tip[128];
    FORMAT(tip, format);
    tune_append(tips->text, tips->size, "%s%s", *tips->text ? " and " : "", tip);
}

/* An option that is enough alone. */
static void add_tip(struct tips *tips, const char *format, ...) TUNE_PRINTF(2, 3);
static void add_tip(struct tips *tips, const char *format, ...)
{
    char tip[128];
    FORMAT(tip, format);
    tune_append(tips->text, tips->size, "%s%s", *tips->text ? " or " : "", tip);
}

/* 1 if the run fits with these options and method, with rows of `length`. */
static int try_changed(const struct fit_run *r, const struct fit_flags *my, int method, int length)
{
    struct fit_run changed = *r;
    changed.my = my;
    changed.method = method;
    return fit_fits(&changed, my->tune.loader.batch_size, length);
}

/* Options that cost time or precision, and leave batch and length. */
static int try_options(const struct fit_run *r, struct tips *tips)
{
    int fits;
    struct fit_flags f = *r->my;
    if (!strcmp(fit_shard(r->my), "ddp")) {
        f.shard = "fsdp";
        TRY(fits = try_changed(r, &f, r->method, r->length));
        if (fits)
            add_tip(tips, "--shard fsdp");
    }
    f = *r->my;
    if (!f.tune.activation_checkpointing) {
        f.tune.activation_checkpointing = 1;
        TRY(fits = try_changed(r, &f, r->method, r->length));
        if (fits)
            add_tip(tips, "--activation-checkpointing full");
    }
    f = *r->my;
    if (f.dtype != TUNE_BF16) {
        f.dtype = TUNE_BF16;
        TRY(fits = try_changed(r, &f, r->method, r->length));
        if (fits)
            add_tip(tips, "--dtype bfloat16");
    }
    f = *r->my;
    if (r->method == LORA && f.base_dtype != TUNE_BF16) {
        f.base_dtype = TUNE_BF16;
        TRY(fits = try_changed(r, &f, r->method, r->length));
        if (fits)
            add_tip(tips, "--base-dtype bfloat16");
    }
    f = *r->my;
    if (r->method != FULL && f.tune.lora.r > LEAST_RANK) {
        f.tune.lora.r = LEAST_RANK;
        TRY(fits = try_changed(r, &f, r->method, r->length));
        if (fits)
            add_tip(tips, "--lora-r %d", LEAST_RANK);
    }
    f = *r->my;
    if (f.tune.optimizer.kind != TUNE_SGD) {
        f.tune.optimizer.kind = TUNE_SGD;
        TRY(fits = try_changed(r, &f, r->method, r->length));
        if (fits)
            add_tip(tips, "--optimizer sgd");
    }
    return 0;
}

/* The next method that takes less. */
static int try_methods(const struct fit_run *r, struct tips *tips)
{
    for (int method = r->method + 1; method < METHODS; method++) {
        int fits = try_changed(r, r->my, method, r->length);
        TRY(fits);
        if (fits) {
            add_tip(tips, "--method %s", fit_methods[method]);
            break;
        }
    }
    return 0;
}

/* The first method with which one row fits, checkpointed, as long as it may be; with this rank. 1:
 * there is one, and tips has all that is to change. */
static int try_rank(const struct fit_run *r, int rank, struct tips *tips)
{
    struct fit_flags f = *r->my;
    f.tune.activation_checkpointing = 1;
    f.tune.loader.batch_size = 1;
    f.tune.lora.r = rank;
    f.dtype = f.base_dtype = TUNE_BF16;
    for (int method = r->method; method < METHODS; method++) {
        struct fit_run changed = *r;
        changed.my = &f;
        changed.method = method;
        int length = fit_largest(&changed, 1, 0, r->length);
        TRY(length);
        if (length < LEAST_LENGTH && length < r->length)
            continue;
        if (method != r->method)
            add_both(tips, "--method %s", fit_methods[method]);
        if (r->my->tune.loader.batch_size > 1)
            add_both(tips, "--batch-size 1");
        if (!r->my->tune.activation_checkpointing)
            add_both(tips, "--activation-checkpointing full");
        if (r->my->dtype != TUNE_BF16)
            add_both(tips, "--dtype bfloat16");
        if (method == LORA && r->my->base_dtype != TUNE_BF16)
            add_both(tips, "--base-dtype bfloat16");
        if (method != FULL && rank != r->my->tune.lora.r)
            add_both(tips, "--lora-r %d", rank);
        if (length < r->length)
            add_both(tips, "--max-length %d", length);
        return 1;
    }
    return 0;
}

int fit_advice(const struct fit_run *r, char *text, size_t size)
{
    struct tips tips = {text, size};
    int batch = r->my->tune.loader.batch_size;
    *text = 0;
    int most = fit_largest(r, 0, r->length, batch), longest = fit_largest(r, batch, 0, r->length);
    if (most < 0 || longest < 0)
        return -1;
    if (most > 0)
        add_tip(&tips, "--batch-size %d", most);
    if (longest >= LEAST_LENGTH)
        add_tip(&tips, "--max-length %d", longest);
    TRY(try_options(r, &tips));
    TRY(try_methods(r, &tips));
    if (*text)
        return 0;
    int found = try_rank(r, r->my->tune.lora.r, &tips);
    if (found == 0 && r->my->tune.lora.r > LEAST_RANK)
        found = try_rank(r, LEAST_RANK, &tips);
    return found < 0 ? -1 : 0;
}
