/* values.c - copy parameter values between device and host, as float32. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/float16.h"
#include "core/nf4.h"
#include "core/try.h"
#include "devices/ops.h"
#include "models/activations.h"
#include "models/weights.h"

static const char *const names[] = {"weight", "gradient", "first moment", "second moment", "extra tensor"};

bool tune_model_has(const struct tune_model *m, const struct tune_parameter *p, int kind)
{
    return kind == TUNE_WEIGHT || (kind > TUNE_WEIGHT && kind < TUNE_TENSOR_KINDS && m->state[kind].at && p->gradient >= 0);
}

static int check(const struct tune_model *m, const struct tune_parameter *p, int kind, int64_t at, int64_t n)
{
    const char *name = names[kind < 0 || kind > TUNE_EXTRA ? TUNE_EXTRA : kind];
    if (!tune_model_has(m, p, kind))
        return tune_error_set("%s has no %s", p->name, name);
    if (at >= 0 && n >= 0 && at <= p->count && n <= p->count - at)
        return 0;
    return tune_error_set("%s has %lld values; the call wants %lld from value %lld on", p->name, (long long)p->count,
                          (long long)n, (long long)at);
}

static enum tune_dtype dtype_of(const struct tune_parameter *p, int kind)
{
    return kind == TUNE_WEIGHT ? p->storage : TUNE_F32;
}

/* ---- bytes of a weight, as they are stored ---- */

/* Copy bytes from `at` on to the host. With `shard` fsdp all ranks get them. */
static int fetch(struct tune_model *m, const struct tune_parameter *p, int64_t at, int64_t bytes, void *out)
{
    if (tune_model_gathers(m))
        return tune_shard_read_weight(m, p, at, bytes, out);
    TRY(tune_unit_take(m, p->unit));
    int status = tune_device_download(m->dev, out, tune_address_plus(tune_model_weight_at(m, p), at), bytes);
    return tune_unit_done(m, p->unit, status < 0 ? -1 : tune_device_sync(m->dev));
}

/* Set bytes from `at` on. With `shard` fsdp each rank sets its own. */
static int store(struct tune_model *m, const struct tune_parameter *p, int64_t at, int64_t bytes, const void *in)
{
    if (tune_model_gathers(m)) {
        int64_t first = at, own = tune_rank_weight(m, p, tune_comm_rank(m->comm), tune_comm_size(m->comm), &first, bytes);
        TRY(tune_slot_drop(m, p->unit));
        return own > 0 ? tune_device_upload(m->dev, tune_own_weight(m, p, first), (const char *)in + first - at, own) : 0;
    }
    TRY(tune_unit_take(m, p->unit));
    return tune_unit_done(m, p->unit, tune_device_upload(m->dev, tune_address_plus(tune_model_weight_at(m, p), at), in, bytes));
}

/* ---- reading ---- */

/* Read a range of NF4 values with the scales of their blocks. The smallest unit is one second-level
 * block. */
static int read_nf4(struct tune_model *m, const struct tune_parameter *p, int64_t at, int64_t n, float *out)
{
    const int64_t block = TUNE_NF4_BLOCK, large = block * TUNE_NF4_BLOCKS;
    const struct tune_nf4_part *q = &m->nf4[p - m->parameters.at];
    int64_t begin = at / large * large, count = at + n - begin;
    struct tune_nf4_layout from = tune_nf4_layout(p->count), to = tune_nf4_layout(count);
    char *host = aligned_alloc(64, (size_t)tune_nf4_bytes(count));
    if (!host)
        return tune_error_no_memory("reading %s", p->name);
    struct tune_nf4 copy = tune_nf4_at(host, count, q->offset);
    const struct {
        int64_t to, from, bytes;
    } piece[] = {
        {to.codes, from.codes + begin / 2, (count + 1) / 2},
        {to.absmax, from.absmax + begin / block, (count + block - 1) / block},
        {to.absmax2, from.absmax2 + begin / large * 4, (count + large - 1) / large * 4},
    };
    int status = 0;
    for (int i = 0; i < 3 && status == 0; i++)
        status = fetch(m, p, piece[i].from, piece[i].bytes, host + piece[i].to);
    if (status == 0)
        status = tune_nf4_read(&copy, at - begin, n, out);
    free(host);
    return status;
}

static int read_numbers(struct tune_model *m, const struct tune_parameter *p, int kind, int64_t at, int64_t n, float *out)
{
    enum tune_dtype dtype = dtype_of(p, kind);
    if (dtype == TUNE_NF4)
        return read_nf4(m, p, at, n, out);
    if (kind == TUNE_WEIGHT)
        return fetch(m, p, at * tune_dtype_bits(dtype) / 8, n * tune_dtype_bits(dtype) / 8, out);
    TRY(tune_device_download(m->dev, out, tune_address_plus(m->state[kind], (p->gradient + at) * 4), n * 4));
    return tune_device_sync(m->dev);
}

int tune_model_read(struct tune_model *m, const struct tune_parameter *p, int kind, int64_t at, int64_t n, float *out)
{
    TRY(check(m, p, kind, at, n));
    enum tune_dtype dtype = dtype_of(p, kind);
    tune_device_does(m->dev, TUNE_AFTER, -1, "");
    if (m->sharded[kind])
        return tune_shard_read(m, p, kind, at, n, out);
    TRY(read_numbers(m, p, kind, at, n, out));
    for (int64_t i = n - 1; i >= 0 && dtype == TUNE_BF16; i--) { /* widen in place, from the end */
        uint16_t h;
        memcpy(&h, (char *)out + 2 * i, sizeof h);
        out[i] = tune_bf16_to_float(h);
    }
    return 0;
}

int tune_model_compare(struct tune_model *m, const struct tune_parameter *p, const struct tune_array *t)
{
    float x[1 << 14];
    double rounded[sizeof x / sizeof *x]; /* of any dtype */
    int64_t most = sizeof x / sizeof *x, bits = tune_dtype_bits(t->dtype), n;
    for (int64_t at = 0; at < p->count; at += n) {
        n = p->count - at < most ? p->count - at : most;
        TRY(tune_model_read(m, p, TUNE_WEIGHT, at, n, x));
        TRY(tune_convert(rounded, t->dtype, x, TUNE_F32, n));
        if (memcmp(rounded, (const char *)t->data + at * bits / 8, (size_t)(n * bits / 8)))
            return tune_error_set("%s, read again, is not what was saved", p->name);
    }
    return 0;
}

static int read_weight(void *model, const struct tune_parameter *p, int64_t at, int64_t n, float *out)
{
    return tune_model_read(model, p, TUNE_WEIGHT, at, n, out);
}

struct tune_weights_source tune_model_source(struct tune_model *m)
{
    return (struct tune_weights_source){read_weight, m};
}

/* ---- writing ---- */

/* Quantize on the host, then upload. */
static int write_nf4(struct tune_model *m, const struct tune_parameter *p, const struct tune_weights_source *source, float *buffer)
{
    struct tune_nf4_part *q = &m->nf4[p - m->parameters.at];
    struct tune_nf4 made;
    char *host = aligned_alloc(64, (size_t)tune_nf4_bytes(p->count));
    if (!host)
        return tune_error_no_memory("quantising %s", p->name);
    int status = tune_weights_nf4(source, p, buffer, host, &made);
    if (status == 0)
        status = store(m, p, 0, tune_nf4_bytes(p->count), host);
    if (status == 0) {
        q->offset = made.offset;
        m->nf4[m->parameters.base + (q - m->nf4)].offset = made.offset;
    }
    free(host);
    return status;
}

static int write_narrow(struct tune_model *m, const struct tune_parameter *p, int64_t at, int64_t n, const float *in)
{
    uint16_t narrow[1 << 15];
    int64_t most = sizeof narrow / sizeof *narrow;
    for (int64_t i = 0; i < n; i += most) {
        int64_t some = n - i < most ? n - i : most;
        TRY(tune_convert(narrow, p->storage, in + i, TUNE_F32, some));
        TRY(store(m, p, (at + i) * (int64_t)sizeof *narrow, some * (int64_t)sizeof *narrow, narrow));
    }
    return 0;
}

/* A source that reads an array in memory. */
static int read_array(void *from, const struct tune_parameter *p, int64_t at, int64_t n, float *out)
{
    (void)p;
    memcpy(out, (const float *)from + at, (size_t)n * sizeof *out);
    return 0;
}

int tune_model_write(struct tune_model *m, const struct tune_parameter *p, int kind, int64_t at, int64_t n, const float *in)
{
    TRY(check(m, p, kind, at, n));
    enum tune_dtype dtype = dtype_of(p, kind);
    m->averaged = m->averaged || (m->averages && kind == m->averages);
    if (m->sharded[kind])
        return tune_shard_write(m, p, kind, at, n, in);
    if (kind != TUNE_WEIGHT)
        return tune_device_upload(m->dev, tune_address_plus(m->state[kind], (p->gradient + at) * 4), in, n * 4);
    if (dtype != TUNE_NF4)
        return dtype == TUNE_BF16 ? write_narrow(m, p, at, n, in) : store(m, p, at * 4, n * 4, in);
    if (at != 0 || n != p->count)
        return tune_error_set("%s is stored in NF4, whose scales depend on all values: write all %lld at once",
                              p->name, (long long)p->count);
    struct tune_weights_source array = {read_array, (void *)(uintptr_t)in};
    return tune_model_fill(m, p, &array);
}

static int put(void *model, const struct tune_parameter *p, int64_t at, int64_t n, const float *x)
{
    return tune_model_write(model, p, TUNE_WEIGHT, at, n, x);
}

/* Read those numbers alone that this rank keeps. Ranks read other numbers than each other. */
static int fill_own(struct tune_model *m, const struct tune_parameter *p, const struct tune_weights_source *source, float *buffer)
{
    int64_t size = tune_dtype_bits(p->storage) / 8, at = 0, n;
    int64_t bytes = tune_rank_weight(m, p, tune_comm_rank(m->comm), tune_comm_size(m->comm), &at, p->count * size), end = (at + bytes) / size;
    for (int64_t i = at / size; bytes > 0 && i < end; i += n) {
        n = end - i < TUNE_PIECE ? end - i : TUNE_PIECE;
        TRY(source->read(source->context, p, i, n, buffer));
        TRY(put(m, p, i, n, buffer));
    }
    return 0;
}

int tune_model_fill(struct tune_model *m, const struct tune_parameter *p, const struct tune_weights_source *source)
{
    bool files = m->buffer; /* other sources may need all ranks for each piece */
    int64_t piece = p->count < TUNE_PIECE ? p->count : TUNE_PIECE;
    float *buffer = m->buffer ? m->buffer : malloc(sizeof *buffer * (size_t)piece);
    if (!buffer)
        return tune_error_no_memory("filling %s", p->name);
    int status = p->storage == TUNE_NF4 ? write_nf4(m, p, source, buffer)
                 : files && tune_model_gathers(m) ? fill_own(m, p, source, buffer) : tune_weights_each(source, p, buffer, put, m);
    if (buffer != m->buffer)
        free(buffer);
    return status;
}

/* ---- buffers ---- */

/* Elements of the buffer of a kind. */
static int64_t elements_of(const struct tune_model *m, int kind)
{
    return m->sharded[kind] ? m->owned : m->parameters.gradients;
}

int tune_model_allocate_state(struct tune_model *m, int kind, const char *what)
{
    if (kind != TUNE_GRADIENT)
        TRY(tune_model_gradients(m)); /* after this, gradient offsets no longer change */
    bool moment = kind == TUNE_MOMENT_1 || kind == TUNE_MOMENT_2;
    if (!m->state[kind].at) {
        m->sharded[kind] = m->shard != TUNE_DDP && (moment || kind == m->averages || (kind == TUNE_GRADIENT && tune_model_gathers(m)));
        m->state[kind] = tune_device_alloc(m->dev, elements_of(m, kind) * 4, what);
    }
    return m->state[kind].at ? 0 : -1;
}

static bool is_name(const char *name)
{
    size_t n = strlen(name), i = 0;
    while (i < n && (isalnum((unsigned char)name[i]) || name[i] == '_'))
        i++;
    return n > 0 && i == n && n < sizeof ((struct tune_model *)0)->extra[0];
}

/* The kind that this name has, or would get. */
static int next_extra(const struct tune_model *m, const char *name)
{
    int i = 0;
    if (!is_name(name))
        return tune_error_set("extra tensors \"%.60s\": expected a name of 1 to 31 letters, digits and _", name);
    while (i < TUNE_EXTRAS && *m->extra[i] && strcmp(m->extra[i], name))
        i++;
    if (i == TUNE_EXTRAS)
        return tune_error_set("extra tensors \"%s\": the model has room for %d kinds, and has %d already", name, TUNE_EXTRAS,
                              TUNE_EXTRAS);
    return TUNE_EXTRA + i;
}

int tune_model_extra(struct tune_model *m, const char *name)
{
    int kind = next_extra(m, name);
    TRY(kind);
    TRY(tune_model_allocate_state(m, kind, name));
    snprintf(m->extra[kind - TUNE_EXTRA], sizeof m->extra[0], "%s", name);
    return kind;
}

const char *tune_model_extra_name(const struct tune_model *m, int kind)
{
    int i = kind - TUNE_EXTRA;
    return i >= 0 && i < TUNE_EXTRAS && *m->extra[i] ? m->extra[i] : NULL;
}

void tune_model_release_state(struct tune_model *m, int kind)
{
    tune_device_free(m->dev, m->state[kind], elements_of(m, kind) * 4);
    m->state[kind].at = 0;
}

struct tune_tensor tune_model_state(struct tune_model *m, int kind)
{
    return tune_tensor_1d(m->state[kind], TUNE_F32, m->state[kind].at ? elements_of(m, kind) : 0);
}

/* ---- averages of the weights ---- */

int tune_model_averages(struct tune_model *m)
{
    int before = m->averages, kind = next_extra(m, "ema");
    TRY(kind);
    if (m->shard != TUNE_DDP && m->state[kind].at && !m->sharded[kind])
        return tune_error_set("extra tensors \"ema\" are there already, whole on each rank; make yours under another name");
    m->averages = kind; /* before it is allocated: averages are shared out */
    if (tune_model_extra(m, "ema") == kind)
        return kind;
    m->averages = before;
    return -1;
}

int tune_model_averages_kind(const struct tune_model *m)
{
    return m->averages;
}

/* Call each with the weights and the averages of all trained parameters that this rank owns. */
static int each_average(struct tune_model *m,
                        int (*each)(struct tune_device *dev, struct tune_tensor *average, struct tune_tensor *weight))
{
    for (const struct span *s = m->spans; s < m->spans + m->span_count; s++) {
        int64_t first = s->gradient, count = s->count;
        tune_model_own(m, &first, &count);
        if (count == 0)
            continue;
        TRY(tune_unit_take_own(m, s->unit));
        struct tune_tensor average = tune_model_owned(m, m->averages, first, count);
        struct tune_tensor weight = tune_model_owned(m, TUNE_WEIGHT, first, count);
        TRY(tune_unit_done_own(m, s->unit, each(m->dev, &average, &weight)));
    }
    return 0;
}

static int copy(struct tune_device *dev, struct tune_tensor *average, struct tune_tensor *weight)
{
    return tune_copy(dev, average, weight);
}

int tune_model_begin_averages(struct tune_model *m)
{
    if (!m->averages || m->averaged)
        return 0;
    TRY(each_average(m, copy));
    m->averaged = true;
    return 0;
}

int tune_model_exchange(struct tune_model *m)
{
    if (!m->averaged)
        return 0;
    if (m->inconsistent)
        return tune_error_set("an exchange of the weights and their averages failed earlier");
    m->inconsistent = true;
    tune_device_does(m->dev, TUNE_AFTER, -1, "");
    TRY(tune_shard_exchange(m));
    TRY(each_average(m, tune_exchange));
    for (int unit = 0; unit < m->config.layers + 2; unit++)
        TRY(tune_model_share_unit(m, unit));
    TRY(tune_model_shared(m));
    m->inconsistent = false;
    return 0;
}
