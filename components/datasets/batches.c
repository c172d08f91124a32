/* batches.c - from a step's rows or packs to micro-batches: padding, labels, and a step that has none. */
#include <stdio.h>
#include <string.h>

#include "core/try.h"
#include "datasets/loading.h"

static int no_label(const struct tune_loader *load)
{
    char text[1024], where[TUNE_DATASET_SOURCE_SIZE];
    size_t used = 0;
    int64_t named = tune_smaller(load->now, TUNE_PACKS_NAMED);
    text[0] = 0;
    for (int64_t i = 0; i < named && used < sizeof text; i++) {
        struct tune_example packed = {0};
        if (load->o.packing) {
            const struct tune_packs *p = &load->packs[load->at.step % TUNE_SEGMENTS];
            packed.count = p->met[i].count;
            packed.full_count = p->met[i].full_count;
            packed.bad = p->met[i].bad;
        }
        const struct tune_example *x = load->o.packing ? &packed : tune_loader_example(load, load->at.step, i);
        tune_dataset_source(load->data, tune_loader_order(load, load->at.epoch, load->at.offset + i), where, sizeof where);
        const char *note = x->bad ? ", bad" : x->count < x->full_count ? ", cut" : "";
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.200s (%lld tokens%s)", i ? ", " : "", where,
                                 (long long)x->full_count, note);
    }
    if (named < load->now && used < sizeof text)
        snprintf(text + used, sizeof text - used, " and %lld more", (long long)(load->now - named));
    tune_error_set("a whole step without a token to train on: %s; within max_length %d their texts or answers are empty "
                   "or cut off: raise --max-length, use more rows a step, or remove these rows", text, load->o.max_length);
    return -1;
}

/* Row b of the batch: ids, labels one to the left of the tokens they name, the rest padding. */
static void put_row(struct tune_loader *load, const struct tune_example *x, int b, int T)
{
    int32_t *ids = load->ids + (int64_t)b * T, *labels = load->labels + (int64_t)b * T;
    int n = (int)x->count;
    if (n > 0)
        memcpy(ids, x->ids, (size_t)n * sizeof *ids);
    memset(ids + n, 0, (size_t)(T - n) * sizeof *ids);
    for (int t = 0; t < T; t++) {
        bool trained = t + 1 < n && x->trained[t + 1];
        labels[t] = trained ? x->ids[t + 1] : TUNE_NO_LABEL;
        load->label_count += trained;
    }
    load->tokens += n;
}

/* T, the longest of n rows from the step's row first on; at least 1. -1: longer than the buffers. */
static int longest(const struct tune_loader *load, int64_t first, int n)
{
    int64_t T = 1;
    for (int b = 0; b < n; b++) {
        const struct tune_example *x = tune_loader_example(load, load->at.step, first + b);
        if (x->count > load->o.max_length)
            return tune_loader_too_long(load, tune_loader_order(load, load->at.epoch, load->at.offset + first + b), x->count);
        T = x->count > T ? x->count : T;
    }
    return (int)T;
}

/* The next packs of the step; rows without a token are with the first ones. */
static void next_packs(struct tune_loader *load, struct tune_batch *batch)
{
    const struct tune_packs *p = tune_packs_at(load, &load->at);
    int64_t first = load->put;
    int B = (int)tune_smaller(load->o.batch_size, p->open > first ? p->open - first : 1), T = 1;
    *batch = (struct tune_batch){.row_count = first == 0 ? p->empty : 0};
    for (int b = 0; b < B; b++) {
        load->lengths[b] = first + b < p->open ? p->pack[first + b].used : 0;
        T = load->lengths[b] > T ? load->lengths[b] : T;
        batch->tokens += load->lengths[b];
        batch->row_count += first + b < p->open ? p->pack[first + b].rows : 0;
    }
    for (int64_t b = 0; b < B; b++)
        batch->label_count += tune_packs_put(p, first + b, T, load->ids + b * T, load->labels + b * T, load->positions + b * T,
                                             load->starts + b * T);
    batch->B = B;
    batch->T = T;
    batch->positions = load->positions;
    batch->starts = load->starts;
    load->put += B;
    load->given += batch->row_count;
    load->tokens += batch->tokens;
    load->label_count += batch->label_count;
}

/* The next rows, each padded to the longest. */
static int next_rows(struct tune_loader *load, struct tune_batch *batch)
{
    int64_t first = load->given, tokens = load->tokens, label_count = load->label_count;
    int B = (int)tune_smaller(load->o.batch_size, load->now - first);
    TRY(tune_ahead_ensure(load, first + B));
    int T = longest(load, first, B);
    TRY(T);
    for (int b = 0; b < B; b++) {
        const struct tune_example *x = tune_loader_example(load, load->at.step, first + b);
        put_row(load, x, b, T);
        load->lengths[b] = (int32_t)x->count;
        load->batch_rows[b] = tune_loader_order(load, load->at.epoch, load->at.offset + first + b);
    }
    load->given += B;
    *batch = (struct tune_batch){.B = B, .T = T, .rows = load->batch_rows, .tokens = load->tokens - tokens,
                                 .label_count = load->label_count - label_count, .row_count = B};
    return 0;
}

int tune_loader_next(struct tune_loader *load, struct tune_batch *batch)
{
    if (!load->in_step || load->given == load->now) {
        tune_error_set("this step has no more micro-batches; call tune_loader_more for the next step");
        return -1;
    }
    struct tune_batch next;
    if (load->o.packing)
        next_packs(load, &next);
    else
        TRY(next_rows(load, &next));
    load->padded += (int64_t)next.B * next.T;
    if (load->given == load->now && load->label_count == 0 && !load->o.unlabelled)
        return no_label(load);
    next.ids = load->ids;
    next.labels = load->labels;
    next.lengths = load->lengths;
    next.epoch = (double)(load->at.epoch * load->rows + load->at.offset + load->given) / (double)load->rows;
    *batch = next;
    return 0;
}
