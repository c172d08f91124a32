/* batches.c - micro-batches of a step's rows or packs: padding and labels. */
#include <string.h>

#include "datasets/loading.h"

/* One sequence of an example. */
struct sequence {
    const int32_t *ids;
    const uint8_t *trained;
    int n;
};

static struct sequence sequence_of(const struct tune_example *x, int i)
{
    int64_t size, begin = tune_example_part(x, i, &size);
    return (struct sequence){x->ids + begin, x->trained + begin, (int)size};
}

/* Write row b of the batch. labels[t] is ids[t+1]; the rest is padding. */
static void put_row(struct tune_loader *load, struct sequence s, int b, int T)
{
    int32_t *ids = load->ids + (int64_t)b * T, *labels = load->labels + (int64_t)b * T;
    memcpy(ids, s.ids, (size_t)s.n * sizeof *ids);
    memset(ids + s.n, 0, (size_t)(T - s.n) * sizeof *ids);
    for (int t = 0; t < T; t++) {
        bool trained = t + 1 < s.n && s.trained[t + 1];
        labels[t] = trained ? s.ids[t + 1] : TUNE_NO_LABEL;
        load->label_count += trained;
    }
    load->lengths[b] = s.n;
}

/* Number of ids before the answer. */
static int32_t prompt_of(const struct tune_example *x, struct sequence s)
{
    int n = x->answer_first ? 0 : 1;
    while (n > 0 && n < s.n && !s.trained[n])
        n++;
    return n;
}

/* The length of a batch whose longest sequence has T tokens. */
static int length_of(const struct tune_loader *load, int T)
{
    int64_t of = load->o.pad_to_multiple_of, rounded = of > 0 ? (T + of - 1) / of * of : T;
    return (int)(rounded < load->o.max_length ? rounded : load->o.max_length);
}

/* Write the next packs of the step. */
static void next_packs(struct tune_loader *load, struct tune_batch *batch, int B)
{
    const struct tune_packs *p = tune_packs_at(load, &load->at);
    int64_t first = load->put;
    int T = 1;
    for (int b = 0; b < B; b++) {
        load->lengths[b] = p->pack[first + b].used;
        T = load->lengths[b] > T ? load->lengths[b] : T;
        batch->row_count += p->pack[first + b].rows;
    }
    T = length_of(load, T);
    for (int64_t b = 0; b < B; b++)
        load->label_count += tune_packs_put(p, first + b, T, load->ids + b * T, load->labels + b * T, load->positions + b * T,
                                            load->starts + b * T, load->batch_rows + b * T);
    batch->T = T;
    batch->positions = load->positions;
    batch->starts = load->starts;
    batch->row_at = load->batch_rows;
    load->given += batch->row_count;
}

/* Write the next B rows, each sequence padded to the longest. */
static void next_rows(struct tune_loader *load, struct tune_batch *batch, int B)
{
    int64_t step = load->at.step;
    int T = 1, n = tune_sequences_of(&load->o);
    for (int b = 0; b < B * n; b++) {
        struct sequence s = sequence_of(tune_loader_example(load, step, load->put + b / n), b % n);
        T = s.n > T ? s.n : T;
    }
    T = length_of(load, T);
    for (int b = 0; b < B * n; b++) {
        const struct tune_example *x = tune_loader_example(load, step, load->put + b / n);
        load->given = *tune_loader_place(load, step, load->put + b / n) + 1;
        put_row(load, sequence_of(x, b % n), b, T);
        load->batch_rows[b] = tune_loader_row(load, load->at.epoch, load->at.offset + load->given - 1);
        if (load->o.sequences > 0) {
            load->label_of[b] = x->labels[b % n];
            load->prompts[b] = prompt_of(x, sequence_of(x, b % n));
        }
    }
    batch->B = B * n;
    batch->T = T;
    batch->row_of = load->batch_rows;
    batch->row_count = B;
    batch->sequences = load->o.sequences;
    batch->label_of = load->o.sequences > 0 ? load->label_of : NULL;
    batch->prompts = load->o.sequences > 0 ? load->prompts : NULL;
}

/* Make the micro-batch of B rows or packs of the step, from number `first` on, and count it. */
static void make(struct tune_loader *load, struct tune_batch *batch, int64_t first, int B)
{
    int64_t labels = load->label_count;
    load->put = first;
    *batch = (struct tune_batch){.B = B, .ids = load->ids, .labels = load->labels, .lengths = load->lengths};
    if (load->o.packing)
        next_packs(load, batch, B);
    else
        next_rows(load, batch, B);
    for (int b = 0; b < batch->B; b++)
        batch->tokens += load->lengths[b];
    load->tokens += batch->tokens;
    batch->label_count = load->label_count - labels;
    load->padded += (int64_t)batch->B * batch->T;
}

/* A micro-batch for a rank that has none left: the step's first row, which does not count. */
static void make_empty(struct tune_loader *load, struct tune_batch *batch)
{
    int64_t tokens = load->tokens, labels = load->label_count, padded = load->padded, given = load->given;
    make(load, batch, 0, 1);
    load->tokens = tokens;
    load->label_count = labels;
    load->padded = padded;
    load->given = given;
    for (int64_t i = 0; i < (int64_t)batch->B * batch->T; i++)
        load->labels[i] = TUNE_NO_LABEL;
    batch->label_count = 0;
    batch->empty = true;
}

int tune_loader_next(struct tune_loader *load, struct tune_batch *batch)
{
    if (!load->in_step || load->put == load->count)
        return tune_error_set("this step has no more micro-batches; call tune_loader_more for the "
                              "next step");
    /* The next micro-batches are one for each rank. All are made, since their counts are those of the step; ours is the last. */
    int ranks = tune_ranks_of(&load->o), rank = load->o.comm ? tune_comm_rank(load->o.comm) : 0, size = load->o.batch_size;
    int64_t begin = load->put, end = tune_smaller(load->count, begin + (int64_t)ranks * size);
    for (int i = 1; i <= ranks; i++) {
        int64_t first = begin + (int64_t)((rank + i) % ranks) * size;
        if (first < end)
            make(load, batch, first, (int)tune_smaller(size, end - first));
        else if (i == ranks)
            make_empty(load, batch);
    }
    load->put = end;
    batch->last = end == load->count;
    if (!load->o.packing)
        load->given = *tune_loader_place(load, load->at.step, end - 1) + 1;
    if (end == load->count)
        load->given = load->now; /* includes rows left out after the last one */
    batch->epoch = (double)(load->at.epoch * load->rows + load->at.offset + load->given) / (double)load->rows;
    return 0;
}
