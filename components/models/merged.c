/* merged.c - products with merged weights, one tile of a matrix on the device at a time. */
#include <stdlib.h>

#include "core/array.h"
#include "core/try.h"
#include "devices/ops.h"
#include "models/activations.h"
#include "models/weights.h"

enum { TILE = 1 << 20 }; /* elements of a tile; a tile has at least one row */

/* Columns of y: x times a matrix that has an adapter. host and device: buffers for `tile` rows. */
static int by_tiles(struct tune_model *m, const struct tune_parameter *w, struct tune_tensor *y, const struct tune_tensor *x,
                    float scale, float beta, float *host, tune_address device, int64_t tile)
{
    int64_t in = w->shape[1];
    for (int64_t row = 0; row < w->shape[0]; row += tile) {
        int64_t n = w->shape[0] - row < tile ? w->shape[0] - row : tile;
        struct tune_tensor to = tune_tensor_columns(y, row, n), t = tune_tensor_2d(device, TUNE_F32, n, in);
        TRY(m->merged->read(m->merged->context, w, row * in, n * in, host));
        TRY(tune_device_upload(m->dev, device, host, n * in * 4));
        TRY(tune_gemm(m->dev, &to, x, false, &t, true, scale, beta, m->dtype));
    }
    return 0;
}

/* All matrices of the product: those with an adapter in tiles, the others directly. */
static int by_matrices(struct tune_model *m, const struct product *p, const struct lora_group *g, struct tune_tensor *y,
                       const struct tune_tensor *x, float beta, float *host, tune_address device, int64_t tile)
{
    const struct tune_parameter *table = m->parameters.at;
    int first = g->target[0].base, next = 0;
    int64_t at = 0;
    while (table[first].glued)
        first--;
    for (int i = first; i == first || table[i].glued; at += table[i++].shape[0]) {
        struct tune_tensor to = tune_tensor_columns(y, at, table[i].shape[0]), w = tune_model_tensor(m, &table[i], TUNE_WEIGHT);
        if (next < g->count && g->target[next].base == i) {
            next++;
            TRY(by_tiles(m, &table[i], &to, x, p->scale, beta, host, device, tile));
        } else {
            TRY(tune_gemm(m->dev, &to, x, false, &w, true, p->scale, beta, m->dtype));
        }
    }
    return p->bias ? tune_bias_forward(m->dev, y, p->bias, p->scale) : 0;
}

int64_t tune_product_tile_rows(int64_t in)
{
    return in < TILE ? TILE / in : 1;
}

void tune_product_merged_bytes(const struct tune_lora *l, int layers, int64_t *device, int64_t *host)
{
    *device = *host = 0;
    for (int i = 0; i < layers * LORA_PRODUCTS; i++)
        for (int k = 0; k < l->group[i].count; k++) {
            int64_t in = l->group[i].in, out = l->group[i].target[k].out, tile = tune_product_tile_rows(in) * in * 4;
            int64_t module = ((in + out) * l->group[i].target[k].r + out + 2 * in) * 4;
            *device = tile > *device ? tile : *device;
            *host = tile + module > *host ? tile + module : *host;
        }
}

int tune_product_merged(struct tune_model *m, const struct product *p, const struct lora_group *g, struct tune_tensor *y,
                        const struct tune_tensor *x, const struct tune_tensor *r)
{
    int64_t in = x->shape[1], tile = tune_product_tile_rows(in), bytes = tile * in * 4;
    float *host = tune_zeroed((size_t)bytes, 1, "merging an adapter");
    tune_address device = tune_device_alloc(m->dev, bytes, "a tile of merged weights");
    int status = host && device.at ? 0 : -1;
    if (status == 0 && r)
        status = tune_copy(m->dev, y, r);
    if (status == 0)
        status = by_matrices(m, p, g, y, x, r ? 1 : 0, host, device, tile);
    tune_device_free(m->dev, device, bytes);
    free(host);
    return status;
}
