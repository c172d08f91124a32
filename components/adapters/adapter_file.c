/* adapter_file.c - find an adapter's tensors by name, check them against a base, and merge them. */
#include "adapters/adapter_file.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/folder.h"
#include "files/safetensors.h"
#include "core/array.h"
#include "core/print.h"
#include "core/try.h"
#include "models/weights.h"

static const char tensors[] = "adapter_model.safetensors";
static const char *const ends[] = {".lora_A.weight", ".lora_B.weight", ".lora_magnitude_vector"};
enum { A, B, MAGNITUDE, ENDS };
/* of the embedding, whose matrix is [rows of the vocabulary, width]: A [r, rows], B [width, r] */
static const char *const embedding_ends[] = {".lora_embedding_A", ".lora_embedding_B"};
static const char embedding[] = "model.embed_tokens", output[] = "lm_head";
static const char whole[] = ".weight"; /* of a module that is trained whole */
static const char original[] = ".base_layer.weight"; /* PEFT saves the base's matrix of an adapted embedding or output */
enum { NAME = 200, LISTED = 4 };

struct tune_adapter_file {
    char folder[TUNE_PATH_MAX];
    struct tune_adapter_config config;
    struct tune_safetensors *file;
    bool tied; /* the base's embedding and output projection are one matrix */
    /* Cache of the module merged last. */
    char module[NAME];
    int64_t r, in, out; /* r 0: none yet, or the module has no adapter */
    float scale;
    float *a, *b;       /* [r,in], [out,r] */
    float *factor;      /* [out], in the embedding [in]: magnitude / norm; NULL: not DoRA */
    float *line;        /* [in] a row of B A */
};

struct tune_adapter_file *tune_adapter_file_open(const char *folder)
{
    struct tune_adapter_file *f = tune_zeroed(1, sizeof *f, "the adapter %s", folder);
    if (!f)
        return NULL;
    if (tune_path(f->folder, "%s", folder) < 0 || tune_adapter_config_read(&f->config, folder) < 0)
        goto fail;
    if (!tune_folder_has(folder, tensors) && tune_folder_has(folder, "adapter_model.bin")) {
        tune_error_set("%s: there is no %s; adapter_model.bin is not read, have PEFT save it again", folder, tensors);
        goto fail;
    }
    if ((f->file = tune_safetensors_open_in(folder, tensors)))
        return f;
fail:
    tune_adapter_file_close(f);
    return NULL;
}

const char *tune_adapter_file_base_dtype(const struct tune_adapter_file *f)
{
    return tune_safetensors_metadata(f->file, TUNE_ADAPTER_BASE_DTYPE);
}

static void forget_module(struct tune_adapter_file *f)
{
    free(f->a);
    free(f->b);
    free(f->factor);
    free(f->line);
    f->a = f->b = f->factor = f->line = NULL;
    f->module[0] = 0;
    f->r = 0;
}

void tune_adapter_file_close(struct tune_adapter_file *f)
{
    if (!f)
        return;
    forget_module(f);
    tune_safetensors_close(f->file);
    tune_adapter_config_free(&f->config);
    free(f);
}

const struct tune_adapter_config *tune_adapter_file_config(const struct tune_adapter_file *f)
{
    return &f->config;
}

const struct tune_array *tune_adapter_file_find(const struct tune_adapter_file *f, const char *module, const char *end)
{
    char name[NAME];
    int n = snprintf(name, sizeof name, TUNE_ADAPTER_PREFIX "%s%s", module, end);
    return n < NAME ? tune_safetensors_find(f->file, name) : NULL;
}

void tune_adapter_file_tie(struct tune_adapter_file *f, bool tied)
{
    f->tied = tied;
}

int64_t tune_adapter_file_vocabulary(const struct tune_adapter_file *f)
{
    const char *module = tune_lora_saved(&f->config.lora, 0);
    const struct tune_array *t = module ? tune_adapter_file_find(f, module, whole) : NULL;
    return t && t->ndim == 2 ? t->shape[0] : 0;
}

const char *tune_adapter_file_whole(const struct tune_adapter_file *f)
{
    static const char *const texts[] = {NULL, "model.embed_tokens", "lm_head", "model.embed_tokens,lm_head"};
    const struct tune_lora_options *o = &f->config.lora;
    const char *name;
    int which = 0;
    for (int i = 0; (name = tune_lora_saved(o, i)); i++)
        which |= strcmp(name, embedding) == 0 ? 1 : 2;
    for (int i = 0; (name = tune_lora_low_rank(o, i)); i++) {
        which |= strcmp(name, embedding) == 0 ? 1 : 2;
        if (f->tied && tune_adapter_file_find(f, name, original))
            which = 3; /* PEFT reads it into the one matrix of both */
    }
    return texts[which];
}

/* ---- checking against a base ---- */

/* A list for a message: the first few entries, and the number of all. */
struct list {
    char text[600];
    int count;
};

#define LIST_ADD(l, ...)                                            \
    do {                                                            \
        if ((l)->count++ < LISTED)                                  \
            tune_append_item((l)->text, sizeof (l)->text, __VA_ARGS__); \
    } while (0)

static const char *list_more(const struct list *l, char more[40])
{
    more[0] = 0;
    if (l->count > LISTED)
        snprintf(more, 40, " and %d more", l->count - LISTED);
    return more;
}

struct differences {
    struct list missing, shapes, dtypes, strangers;
    int64_t found; /* tensors in the file that are expected */
};

/* The end of the name of a module's tensor. */
static const char *end_of(const char *module, int end)
{
    return strcmp(module, embedding) == 0 && end < MAGNITUDE ? embedding_ends[end] : ends[end];
}

/* The shape that a module's tensor must have. shape: of its matrix. */
static struct tune_array expected(const char *module, const int64_t *shape, int end, int rank)
{
    bool turned = strcmp(module, embedding) == 0;
    struct tune_array t = {.ndim = end == MAGNITUDE ? 1 : 2, .shape = {shape[turned], shape[!turned]}};
    if (end != MAGNITUDE)
        t.shape[end == A ? 0 : 1] = rank;
    return t;
}

/* Compare one tensor of the file with what it must be. */
static void compare_tensor(const struct tune_adapter_file *f, const char *module, const char *end, const int64_t *shape, int ndim,
                           struct differences *d)
{
    char have[64], want[64];
    const struct tune_array *t = tune_adapter_file_find(f, module, end);
    if (!t) {
        LIST_ADD(&d->missing, "%s%s", module, end);
        return;
    }
    d->found++;
    if (t->ndim != ndim || t->shape[0] != shape[0] || (ndim == 2 && t->shape[1] != shape[1]))
        LIST_ADD(&d->shapes, "%s%s is %s, not %s", module, end, tune_shape_text(t->ndim, t->shape, have, sizeof have),
                 tune_shape_text(ndim, shape, want, sizeof want));
    else if (t->dtype > TUNE_F64)
        LIST_ADD(&d->dtypes, "%s%s is %s", module, end, tune_dtype_name(t->dtype));
}

static void compare_module(const struct tune_adapter_file *f, const int64_t *shape, const char *module, int rank,
                           struct differences *d)
{
    for (int e = 0; e < (f->config.lora.dora ? ENDS : MAGNITUDE); e++) {
        struct tune_array x = expected(module, shape, e, rank);
        compare_tensor(f, module, end_of(module, e), x.shape, x.ndim, d);
    }
    if (tune_adapter_file_find(f, module, original))
        compare_tensor(f, module, original, shape, 2, d);
}

/* True if a tensor of the file belongs to a module that is trained whole. */
static bool is_saved(const struct tune_adapter_file *f, const char *name)
{
    const char *module;
    size_t n = strlen(name);
    for (int i = 0; (module = tune_lora_saved(&f->config.lora, i)); i++)
        if (n == strlen(module) + strlen(whole) && strncmp(name, module, strlen(module)) == 0 &&
            strcmp(name + strlen(module), whole) == 0)
            return true;
    return false;
}

/* True if a tensor of the file belongs to a module of this table with this config. */
static bool asked_for(const struct tune_adapter_file *f, const struct tune_parameters *base, const char *name)
{
    size_t prefix = strlen(TUNE_ADAPTER_PREFIX);
    char weight[NAME], module[NAME];
    const char *low;
    if (strncmp(name, TUNE_ADAPTER_PREFIX, prefix) != 0)
        return false;
    if (is_saved(f, name + prefix))
        return true;
    for (int i = 0; (low = tune_lora_low_rank(&f->config.lora, i)); i++)
        if (strncmp(name + prefix, low, strlen(low)) == 0)
            for (int e = 0; e <= ENDS; e++)
                if (strcmp(name + prefix + strlen(low), e < ENDS ? end_of(low, e) : original) == 0)
                    return e != MAGNITUDE || f->config.lora.dora;
    for (int e = 0; e < (f->config.lora.dora ? ENDS : MAGNITUDE); e++) {
        size_t n = strlen(name), k = strlen(ends[e]);
        if (n <= prefix + k || n >= NAME || strcmp(name + n - k, ends[e]) != 0)
            continue;
        snprintf(module, sizeof module, "%.*s", (int)(n - prefix - k), name + prefix);
        snprintf(weight, sizeof weight, "%.190s.weight", module);
        const struct tune_parameter *p = tune_parameters_find(base, weight);
        return p && !p->adapter && p->ndim == 2 && tune_lora_rank(&f->config.lora, module) > 0;
    }
    return false;
}

/* The module of a weight row; false: it takes no adapter. A model's copy of its embedding or output projection takes one. */
static bool module_of(const struct tune_parameter *p, char module[NAME])
{
    size_t n = strlen(p->name);
    bool copy = p->adapter && (p->role == TUNE_EMBEDDING || p->role == TUNE_OUTPUT);
    if ((p->adapter && !copy) || p->ndim != 2 || n < 8 || strcmp(p->name + n - 7, ".weight") != 0)
        return false;
    snprintf(module, NAME, "%.*s", (int)(n - 7), p->name);
    return true;
}

static int report(const struct tune_adapter_file *f, const struct differences *d)
{
    char more[40];
    const struct list *l[] = {&d->shapes, &d->missing, &d->strangers, &d->dtypes};
    static const char *const what[] = {"other shapes: ", "missing: ", "nothing asks for: ", "not F32, F16, BF16 or F64: "};
    if (!d->shapes.count && !d->missing.count && !d->strangers.count && !d->dtypes.count)
        return 0;
    tune_error_set("%s/%s does not fit this base model", f->folder, tensors);
    if (f->config.base)
        tune_error_set("%s (its config says that it was made on %.200s)", tune_error_message(), f->config.base);
    for (int i = 0; i < 4; i++)
        if (l[i]->count)
            tune_error_set("%s; %s%s%s", tune_error_message(), what[i], l[i]->text, list_more(l[i], more));
    return -1;
}

/* Report that no target matches, with the names that exist. */
static int no_modules(const struct tune_adapter_file *f, const struct tune_parameters *base)
{
    char names[300] = "";
    static const char first[] = "model.layers.0.";
    for (int i = 0; i < base->count; i++) {
        char module[NAME];
        if (module_of(&base->at[i], module) && strncmp(module, first, sizeof first - 1) == 0)
            tune_append_item(names, sizeof names, "%s", module + sizeof first - 1);
    }
    return tune_error_set("%s/adapter_config.json: \"target_modules\" (%.200s) fits no module of the base model; in each layer "
                          "there are %s%s", f->folder, f->config.lora.targets, names,
                          tune_lora_is_expression(f->config.lora.targets) ? "; as in PEFT, a text is a regular expression for whole "
                          "names: model.layers.0.self_attn.q_proj" : "");
}

int tune_adapter_file_check(const struct tune_adapter_file *f, const struct tune_parameters *base, int *modules)
{
    struct differences d = {0};
    const char *saved, *low;
    if (f->config.implied && f->tied)
        return tune_error_set("%s/%s has an embedding or output projection of its own, which \"modules_to_save\" does not name, and "
                              "the base has one matrix for both; merge the adapter with PEFT", f->folder, tensors);
    int count = 0;
    for (int i = 0; i < base->base; i++) {
        char module[NAME];
        int rank = tune_lora_module(&base->at[i], module) ? tune_lora_rank(&f->config.lora, module) : 0;
        if (rank > 0)
            compare_module(f, base->at[i].shape, module, rank, &d);
        count += rank > 0;
    }
    for (int i = 0; (low = tune_lora_low_rank(&f->config.lora, i)); i++, count++)
        compare_module(f, base->at[0].shape, low, tune_lora_rank(&f->config.lora, low), &d);
    for (int i = 0; (saved = tune_lora_saved(&f->config.lora, i)); i++)
        compare_tensor(f, saved, whole, base->at[0].shape, 2, &d);
    int64_t all = tune_safetensors_count(f->file);
    for (int64_t i = 0; i < all && all > d.found; i++)
        if (!asked_for(f, base, tune_safetensors_name(f->file, i)))
            LIST_ADD(&d.strangers, "%.120s", tune_safetensors_name(f->file, i));
    if (modules)
        *modules = count;
    return count > 0 ? report(f, &d) : no_modules(f, base);
}

/* ---- merging ---- */

static int not_finite(const struct tune_adapter_file *f, const char *module, const char *end, double x)
{
    return tune_error_set("%s/%s: %s%s holds %g; an adapter that diverged cannot be merged", f->folder, tensors, module, end, x);
}

/* A tensor's values in F32. All must be finite. */
static float *numbers(const struct tune_adapter_file *f, const char *module, int end)
{
    const struct tune_array *t = tune_adapter_file_find(f, module, end_of(module, end));
    int64_t n = tune_array_elements(t);
    float *x = tune_zeroed((size_t)n, sizeof *x, "the adapter %s", f->folder);
    if (!x)
        return NULL;
    int status = tune_convert(x, TUNE_F32, t->data, t->dtype, n);
    for (int64_t i = 0; i < n && status == 0; i++)
        if (!isfinite(x[i]))
            status = not_finite(f, module, end_of(module, end), (double)x[i]);
    if (status == 0)
        return x;
    free(x);
    return NULL;
}

/* Add columns [from, from + n) of row i of s B A to w. */
static void add_row(const struct tune_adapter_file *f, int64_t i, int64_t from, int64_t n, float *w)
{
    memset(f->line, 0, sizeof *f->line * (size_t)n);
    for (int64_t k = 0; k < f->r; k++) {
        const float b = f->b[i * f->r + k], *a = f->a + k * f->in + from;
        for (int64_t j = 0; j < n; j++)
            f->line[j] += b * a[j];
    }
    for (int64_t j = 0; j < n; j++)
        w[j] += f->scale * f->line[j];
}

/* Compute factor[i] = magnitude / |row i of W + s B A|, in the embedding of column i. It reads the whole matrix once. */
static int norms(struct tune_adapter_file *f, const struct tune_weights_source *base, const struct tune_parameter *p)
{
    bool columns = p->role == TUNE_EMBEDDING;
    int64_t n = columns ? f->in : f->out;
    float *row = tune_zeroed((size_t)f->in, sizeof *row, "the adapter %s", f->folder);
    double *sum = tune_zeroed((size_t)n, sizeof *sum, "the adapter %s", f->folder);
    int status = row && sum ? 0 : -1;
    for (int64_t i = 0; i < f->out && status == 0; i++) {
        status = base->read(base->context, p, i * f->in, f->in, row);
        if (status < 0)
            break;
        add_row(f, i, 0, f->in, row);
        for (int64_t j = 0; j < f->in; j++)
            sum[columns ? j : i] += (double)row[j] * row[j];
    }
    for (int64_t i = 0; i < n && status == 0; i++) {
        if (!(sum[i] > 0))
            status = tune_error_set("%s: %s %lld of %s is zero with the adapter; DoRA divides by its norm", f->folder,
                                    columns ? "column" : "row", (long long)i, p->name);
        f->factor[i] = (float)(f->factor[i] / sqrt(sum[i]));
    }
    free(row);
    free(sum);
    return status;
}

/* The same, [columns, rows] as [rows, columns]. */
static float *turned(const struct tune_adapter_file *f, const char *module, int end, int64_t rows, int64_t columns)
{
    float *x = numbers(f, module, end);
    float *y = x ? tune_zeroed((size_t)(rows * columns), sizeof *y, "the adapter %s", f->folder) : NULL;
    for (int64_t i = 0; y && i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            y[i * columns + k] = x[k * rows + i];
    free(x);
    return y;
}

/* Load the tensors of the row's module into the cache; r 0: it has no adapter. */
static int take_module(struct tune_adapter_file *f, const struct tune_weights_source *base, const struct tune_parameter *p)
{
    char module[NAME];
    if (!module_of(p, module))
        module[0] = 0;
    if (strcmp(module, f->module) == 0)
        return 0;
    forget_module(f);
    int rank = module[0] ? tune_lora_rank(&f->config.lora, module) : 0;
    if (rank > 0) {
        bool of_embedding = p->role == TUNE_EMBEDDING;
        f->in = p->shape[1];
        f->out = p->shape[0];
        f->r = rank;
        f->scale = (float)tune_lora_scale(&f->config.lora, module);
        f->line = tune_zeroed((size_t)f->in, sizeof *f->line, "the adapter %s", f->folder);
        f->a = of_embedding ? turned(f, module, B, f->r, f->in) : numbers(f, module, A);
        f->b = of_embedding ? turned(f, module, A, f->out, f->r) : numbers(f, module, B);
        f->factor = f->config.lora.dora ? numbers(f, module, MAGNITUDE) : NULL;
        if (!f->line || !f->a || !f->b || (f->config.lora.dora && !f->factor))
            return -1;
        if (f->factor)
            TRY(norms(f, base, p));
    }
    snprintf(f->module, sizeof f->module, "%s", module);
    return 0;
}

/* Read numbers of a module that was trained whole. All must be finite. */
static int read_saved(const struct tune_adapter_file *f, const char *name, int64_t at, int64_t count, float *out)
{
    const struct tune_array *t = tune_adapter_file_find(f, name, "");
    TRY(tune_convert(out, TUNE_F32, (const char *)t->data + at * tune_dtype_bits(t->dtype) / 8, t->dtype, count));
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(out[i]))
            return not_finite(f, name, "", (double)out[i]);
    return 0;
}

static int read_original(void *context, const struct tune_parameter *p, int64_t at, int64_t count, float *out)
{
    const struct tune_array *t = context;
    (void)p;
    return tune_convert(out, TUNE_F32, (const char *)t->data + at * tune_dtype_bits(t->dtype) / 8, t->dtype, count);
}

/* The base's numbers of a row: those in the adapter's file, if it has the base's matrix, as PEFT takes them. In a tied base,
 * the matrix of one is the other's. */
static struct tune_weights_source base_of(const struct tune_adapter_file *f, const struct tune_weights_source *base,
                                          const struct tune_parameter *p)
{
    bool of_output = p->role == TUNE_OUTPUT;
    const struct tune_array *t = NULL;
    if (of_output || p->role == TUNE_EMBEDDING)
        t = tune_adapter_file_find(f, of_output ? output : embedding, original);
    if (!t && f->tied && (of_output || p->role == TUNE_EMBEDDING))
        t = tune_adapter_file_find(f, of_output ? embedding : output, original);
    return t ? (struct tune_weights_source){read_original, (void *)(uintptr_t)t} : *base;
}

int tune_adapter_file_merge(struct tune_adapter_file *f, const struct tune_weights_source *source, const struct tune_parameter *p,
                            int64_t at, int64_t count, float *out)
{
    struct tune_weights_source original_or_base = base_of(f, source, p), *base = &original_or_base;
    if (is_saved(f, p->name))
        return read_saved(f, p->name, at, count, out);
    if (take_module(f, base, p) < 0) {
        forget_module(f);
        return -1;
    }
    TRY(base->read(base->context, p, at, count, out));
    if (f->r == 0)
        return 0;
    for (int64_t done = 0; done < count;) {
        int64_t row = (at + done) / f->in, column = (at + done) % f->in;
        int64_t n = f->in - column < count - done ? f->in - column : count - done;
        add_row(f, row, column, n, out + done);
        for (int64_t j = 0; j < n && f->factor; j++)
            out[done + j] *= f->factor[p->role == TUNE_EMBEDDING ? column + j : row];
        done += n;
    }
    return 0;
}
