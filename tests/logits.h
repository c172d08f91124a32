/* logits.h - a model's logits on the host, for tests: training never makes them all.
 *
 * model_logits - logits [count,V] F32 of rows first, first+1, ... of hidden [N,C], which
 * tune_model_infer gave. -1 with an error. */
#ifndef TUNE_TEST_LOGITS_H
#define TUNE_TEST_LOGITS_H

#include "core/try.h"
#include "devices/ops.h"
#include "models/model.h"

static inline int model_logits(struct tune_model *m, const struct tune_tensor *hidden, int64_t first, int64_t count, float *logits)
{
    struct tune_device *dev = tune_model_device(m);
    const struct tune_model_config *c = tune_model_config(m);
    enum tune_dtype dtype = tune_model_dtype(m);
    int64_t row_bytes = (int64_t)c->hidden * tune_dtype_bits(dtype) / 8, V = c->vocabulary;
    int unit = tune_model_output_unit(m), status;
    struct tune_tensor w, dw;
    tune_address out = tune_device_alloc(dev, V * 4, "logits");
    TRY(out.at ? tune_unit_take(m, unit) : -1);
    tune_model_output_weight(m, &w, &dw);
    status = 0;
    for (int64_t i = 0; i < count && status == 0; i++) {
        struct tune_tensor row = tune_tensor_2d(tune_address_plus(hidden->data, (first + i) * row_bytes), dtype, 1, c->hidden);
        struct tune_tensor y = tune_tensor_2d(out, TUNE_F32, 1, V);
        status = tune_gemm(dev, &y, &row, false, &w, true, 1 / c->logits_scaling, 0, dtype);
        if (status == 0)
            status = tune_device_download(dev, logits + i * V, out, V * 4);
    }
    if (status == 0)
        status = tune_device_sync(dev);
    tune_device_free(dev, out, V * 4);
    return tune_unit_done(m, unit, status);
}

#endif
