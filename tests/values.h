/* values.h - copies of a model's weights, gradients and moments, for the tests; by tune_model_read
 * and tune_model_write alone.
 *
 *     float *w = values(m, p, TUNE_WEIGHT);
 *     w[0] += 1;
 *     set_values(m, p, TUNE_WEIGHT, w);
 *     free(w); */
#ifndef TUNE_TEST_VALUES_H
#define TUNE_TEST_VALUES_H

#include "bytes.h"

#include "models/model.h"

/* values - all numbers of that kind (enum tune_tensor_kind) that m has of p; malloc'd.
 * set_values - the other way. */
static inline float *values(struct tune_model *m, const struct tune_parameter *p, int kind)
{
    float *x = malloc((size_t)p->count * sizeof *x);
    assert_non_null(x);
    assert_ok(tune_model_read(m, p, kind, 0, p->count, x));
    return x;
}

static inline void set_values(struct tune_model *m, const struct tune_parameter *p, int kind,
                              const float *x)
{
    assert_ok(tune_model_write(m, p, kind, 0, p->count, x));
}

/* all_weights - one parameter's behind the other's: tune_parameters_total of them; malloc'd.
 * all_state - the gradients, or a moment, as they lie on the device: p's begin at p->gradient;
 * malloc'd. */
static inline float *all_weights(struct tune_model *m)
{
    const struct tune_parameters *table = tune_model_parameters(m);
    float *all = malloc((size_t)tune_parameters_total(table) * sizeof *all), *to = all;
    assert_non_null(all);
    for (int i = 0; i < table->count; to += table->at[i++].count)
        assert_ok(tune_model_read(m, &table->at[i], TUNE_WEIGHT, 0, table->at[i].count, to));
    return all;
}

static inline float *all_state(struct tune_model *m, int kind)
{
    struct tune_tensor t = tune_model_state(m, kind);
    assert_true(t.shape[0] > 0);
    return get_tensor(tune_model_device(m), &t);
}

/* same_values - whether a row of the table has the same bits in two models of one shape. */
static inline bool same_values(struct tune_model *a, struct tune_model *b, int row, int kind)
{
    const struct tune_parameter *p = &tune_model_parameters(a)->at[row];
    const struct tune_parameter *q = &tune_model_parameters(b)->at[row];
    assert_int_equal(p->count, q->count);
    float *x = values(a, p, kind), *y = values(b, q, kind);
    bool same = memcmp(x, y, (size_t)p->count * sizeof *x) == 0;
    free(x);
    free(y);
    return same;
}

#endif
