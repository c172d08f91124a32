/* comm_checks.h - what ranks try, on whatever transport they are: collectives against plain loops, to the bit. */
#ifndef TUNE_TESTS_COMM_CHECKS_H
#define TUNE_TESTS_COMM_CHECKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "comm/comm.h"
#include "core/error.h"
#include "core/random.h"

/* Element i of a rank; sums of these depend on the order. */
static inline float element(int rank, size_t i)
{
    return (float)(tune_random_normal(3, (uint64_t)rank, i) * (i % 3 == 0 ? 1e6 : 1));
}

static inline int differs(const char *what, size_t i, double got, double expected)
{
    return tune_error_set("%s: element %zu is %.9g, expected %.9g", what, i, got, expected);
}

static inline int try_count(struct tune_comm *c, int rank, size_t count, bool in_place)
{
    int size = tune_comm_size(c), status = 0;
    size_t first = tune_comm_share(count, rank, size), own = tune_comm_share_count(c, count);
    float *values = malloc((count + 1) * sizeof *values), *sum = malloc((count + 1) * sizeof *sum);
    for (size_t i = 0; i < count; i++)
        values[i] = element(rank, i);
    float *share = in_place ? values + first : sum + first;
    uint64_t before = tune_comm_bytes(c);
    status = tune_comm_do(c, &(struct tune_collective){.kind = TUNE_REDUCE_SCATTER, .what = "sums", .from = values, .to = share, .count = count,
                                                       .element = sizeof *values});
    if (status == 0 && tune_comm_bytes(c) - before != (count - own) * sizeof *values)
        status = tune_error_set("bytes: %llu", (unsigned long long)(tune_comm_bytes(c) - before));
    for (size_t i = 0; status == 0 && i < own; i++) {
        float expected = element(0, first + i);
        for (int r = 1; r < size; r++)
            expected += element(r, first + i);
        if (share[i] != expected)
            status = differs("reduce_scatter", first + i, share[i], expected);
    }
    for (size_t i = 0; status == 0 && !in_place && i < count; i++) /* what was given is as it was */
        if (values[i] != element(rank, i))
            status = differs("from", i, values[i], element(rank, i));
    float *all = in_place ? values : sum;
    if (status == 0)
        status = tune_comm_do(c, &(struct tune_collective){.kind = TUNE_ALL_GATHER, .what = "all", .from = in_place ? NULL : share, .to = all,
                                                           .count = count, .element = sizeof *all});
    for (size_t i = 0; status == 0 && i < count; i++) {
        float expected = element(0, i);
        for (int r = 1; r < size; r++)
            expected += element(r, i);
        if (all[i] != expected)
            status = differs("all_gather", i, all[i], expected);
    }
    int root = (int)(count % (size_t)size);
    for (size_t i = 0; i < count; i++)
        values[i] = element(rank, i);
    if (status == 0)
        status = tune_comm_do(c, &(struct tune_collective){.kind = TUNE_BROADCAST, .what = "one", .to = values, .count = count,
                                                           .element = sizeof *values, .root = root});
    for (size_t i = 0; status == 0 && i < count; i++)
        if (values[i] != element(root, i))
            status = differs("broadcast", i, values[i], element(root, i));
    free(values);
    free(sum);
    return status;
}

static inline int try_counts(struct tune_comm *c, int rank, void *context)
{
    (void)context;
    for (size_t count = 0; count <= 2 * 8 + 1; count++)
        for (int in_place = 0; in_place < 2; in_place++)
            if (try_count(c, rank, count, in_place) < 0)
                return -1;
    return try_count(c, rank, 1000, false) < 0 || try_count(c, rank, 4099, true) < 0 ? -1 : 0;
}

enum { STARTS = 300, LONG = 37 }; /* more than the queue holds */

static inline int try_queue(struct tune_comm *c, int rank, void *context)
{
    (void)context;
    int size = tune_comm_size(c);
    float(*values)[LONG] = malloc(STARTS * sizeof *values), (*share)[LONG] = malloc(STARTS * sizeof *share);
    int64_t number = 0, first_number = 0;
    for (int k = 0; k < STARTS && number >= 0; k++) {
        for (size_t i = 0; i < LONG; i++)
            values[k][i] = element(rank, (size_t)k * LONG + i);
        tune_comm_step(c, k / 3);
        number = tune_comm_start(c, &(struct tune_collective){.kind = TUNE_REDUCE_SCATTER, .what = "many", .from = values[k], .to = share[k],
                                                              .count = LONG, .element = sizeof(float)});
        first_number = k == 0 ? number : first_number;
    }
    int status = number < 0 || tune_comm_wait(c, number) < 0 || tune_comm_wait(c, first_number) < 0 ? -1 : 0;
    size_t first = tune_comm_share(LONG, rank, size), own = tune_comm_share_count(c, LONG);
    for (int k = 0; k < STARTS && status == 0; k++)
        for (size_t i = 0; i < own && status == 0; i++) {
            float expected = element(0, (size_t)k * LONG + first + i);
            for (int r = 1; r < size; r++)
                expected += element(r, (size_t)k * LONG + first + i);
            if (share[k][i] != expected)
                status = differs("a sum of many", i, share[k][i], expected);
        }
    free(values);
    free(share);
    return status;
}

static inline int try_sums(struct tune_comm *c, int rank, void *context)
{
    (void)context;
    int size = tune_comm_size(c);
    double values[2] = {0.1 * (rank + 1), rank == 0 ? 1e300 : -1e284}, expected[2] = {0};
    for (int r = 0; r < size; r++) {
        expected[0] += 0.1 * (r + 1);
        expected[1] += r == 0 ? 1e300 : -1e284;
    }
    int64_t whole[1] = {INT64_C(1) << (rank + 53)};
    if (tune_comm_sum(c, "labels", values, 2) < 0 || tune_comm_sum_whole(c, "rows", whole, 1) < 0)
        return -1;
    if (values[0] != expected[0] || values[1] != expected[1] || whole[0] != ((INT64_C(1) << size) - 1) << 53)
        return tune_error_set("sums: %.17g %.17g %lld", values[0], values[1], (long long)whole[0]);
    return tune_comm_agree(c, "the options", "--lr 1e-3");
}

#endif
