/* check.c - compute each merged weight again, from base and adapter, and compare it with the file. */
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/try.h"
#include "models/lora.h"

enum { NAME = 200 };

/* The low-rank adapter of one matrix [rows, columns]. */
struct low_rank {
    int r; /* 0: it has none */
    double scale;
    float *by_row;    /* [rows, r] */
    float *by_column; /* [r, columns] */
    float *magnitude; /* DoRA: one for each row, in the embedding for each column; NULL: not DoRA */
    double *norm2;    /* DoRA in the embedding: the sum of squares of each column */
};

/* A row of the matrix at hand. */
struct row {
    float *base, *merged;
    double *want; /* what it must be */
    double *size; /* the sum of the sizes of what is added */
};

/* The largest difference so far. */
struct largest {
    double difference, limit; /* limit: of the folder's dtype and the rank there */
    char name[NAME];
    int modules;
    int64_t weights;
};

static void free_low_rank(struct low_rank *l)
{
    free(l->by_row);
    free(l->by_column);
    free(l->magnitude);
    free(l->norm2);
    *l = (struct low_rank){0};
}

/* The numbers of a tensor of the adapter [a, b]; turned: as [b, a]. */
static float *take(const struct tune_adapter_file *f, const char *module, const char *end, int64_t a, int64_t b, bool turned)
{
    const struct tune_array *t = tune_adapter_file_find(f, module, end);
    float *x = t ? tune_zeroed((size_t)(a * b), sizeof *x, "the adapter of %s", module) : NULL;
    float *y = x && turned ? tune_zeroed((size_t)(a * b), sizeof *y, "the adapter of %s", module) : x;
    if (y && tune_convert(x, TUNE_F32, t->data, t->dtype, a * b) < 0) {
        free(turned ? y : NULL);
        y = NULL;
    }
    for (int64_t i = 0; y && turned && i < a * b; i++)
        y[i % b * a + i / b] = x[i];
    if (y != x)
        free(x);
    return y;
}

/* The adapter of row p of the table. */
static int take_low_rank(const struct merge_check *c, const struct tune_parameter *p, const char *module, struct low_rank *l)
{
    const struct tune_lora_options *o = &tune_adapter_file_config(c->adapter)->lora;
    bool embedding = p->role == TUNE_EMBEDDING;
    int64_t rows = p->shape[0], columns = p->shape[1];
    *l = (struct low_rank){0};
    l->r = p->ndim == 2 ? tune_lora_rank(o, module) : 0;
    if (l->r == 0)
        return 0;
    l->scale = tune_lora_scale(o, module);
    l->by_row = embedding ? take(c->adapter, module, ".lora_embedding_A", l->r, rows, true)
                          : take(c->adapter, module, ".lora_B.weight", rows, l->r, false);
    l->by_column = embedding ? take(c->adapter, module, ".lora_embedding_B", columns, l->r, true)
                             : take(c->adapter, module, ".lora_A.weight", l->r, columns, false);
    l->magnitude = o->dora ? take(c->adapter, module, ".lora_magnitude_vector", embedding ? columns : rows, 1, false) : NULL;
    l->norm2 = o->dora && embedding ? tune_zeroed((size_t)columns, sizeof *l->norm2, "the adapter of %s", module) : NULL;
    return l->by_row && l->by_column && (l->magnitude || !o->dora) && (l->norm2 || !(o->dora && embedding)) ? 0 : -1;
}

/* The adapter's tensor that replaces the base's; NULL: none. A module that is trained whole has one. PEFT also saves the base's
 * matrix beside an adapter of the embedding or the output projection. */
static const struct tune_array *instead_of_base(const struct merge_check *c, const struct tune_parameter *p, const char *module)
{
    static const char *const names[] = {"model.embed_tokens", "lm_head"};
    const struct tune_lora_options *o = &tune_adapter_file_config(c->adapter)->lora;
    const char *saved;
    for (int i = 0; (saved = tune_lora_saved(o, i)); i++)
        if (!strcmp(saved, module))
            return tune_adapter_file_find(c->adapter, module, ".weight");
    if (p->role != TUNE_EMBEDDING && p->role != TUNE_OUTPUT)
        return NULL;
    const struct tune_array *t = tune_adapter_file_find(c->adapter, module, ".base_layer.weight");
    return t || !c->tied ? t : tune_adapter_file_find(c->adapter, names[p->role == TUNE_EMBEDDING], ".base_layer.weight");
}

/* Row i with its adapter, before DoRA scales it. */
static int add_adapter(const struct merge_check *c, const struct tune_parameter *p, const struct tune_array *instead,
                       const struct low_rank *l, int64_t i, int64_t n, struct row *row)
{
    if (instead)
        TRY(tune_convert(row->base, TUNE_F32, (const char *)instead->data + i * n * tune_dtype_bits(instead->dtype) / 8,
                         instead->dtype, n));
    else
        TRY(c->base.read(c->base.context, p, i * n, n, row->base));
    for (int64_t j = 0; j < n; j++) {
        row->want[j] = (double)row->base[j];
        row->size[j] = fabs((double)row->base[j]);
    }
    for (int k = 0; k < l->r; k++) {
        double b = l->scale * (double)l->by_row[i * l->r + k];
        const float *a = l->by_column + k * n;
        for (int64_t j = 0; j < n; j++) {
            double x = b * (double)a[j];
            row->want[j] += x;
            row->size[j] += fabs(x);
        }
    }
    return 0;
}

/* DoRA: scale row i to its magnitude, in the embedding each column to its own. */
static void scale_row(const struct low_rank *l, int64_t i, int64_t n, struct row *row)
{
    double sum = 0;
    for (int64_t j = 0; j < n && !l->norm2; j++)
        sum += row->want[j] * row->want[j];
    for (int64_t j = 0; j < n; j++) {
        double by = (double)l->magnitude[l->norm2 ? j : i] / sqrt(l->norm2 ? l->norm2[j] : sum);
        row->want[j] *= by;
        row->size[j] *= fabs(by);
    }
}

/* Half of the distance between two numbers of that type, relative to the number; *smallest: of the smallest ones, absolute. */
static double rounding(enum tune_dtype dtype, double *smallest)
{
    *smallest = dtype == TUNE_F16 ? ldexp(1, -25) : ldexp(1, -134);
    return ldexp(1, dtype == TUNE_F16 ? -11 : dtype == TUNE_BF16 ? -8 : -24);
}

static int compare_row(const struct merge_check *c, const struct tune_parameter *p, const struct low_rank *l, enum tune_dtype dtype,
                       int64_t i, int64_t n, const struct row *row, struct largest *most)
{
    double smallest, limit = rounding(dtype, &smallest), sums = l->magnitude ? 4 : 1;
    double added = l->r ? sums * (l->r + 8) * ldexp(1, -24) : 0; /* float32 sums, before the rounding */
    limit += added;
    for (int64_t j = 0; j < n; j++) {
        double d = fabs((double)row->merged[j] - row->want[j]);
        double relative = d <= smallest + added * row->size[j] ? 0 : d / row->size[j];
        if (!(relative <= limit))
            return tune_error_set("%s: weight %lld of row %lld of %s is %.9g, and base and adapter give %.9g: a difference of %.3g, "
                                  "where rounding gives at most %.3g. The folder is damaged, or was merged from another base or "
                                  "adapter, or with another --base-dtype", c->name, (long long)j, (long long)i, p->name,
                                  (double)row->merged[j], row->want[j], relative, limit);
        if (!*most->name || relative / limit > most->difference / most->limit) {
            most->difference = relative;
            most->limit = limit;
            snprintf(most->name, sizeof most->name, "%s", p->name);
        }
    }
    return 0;
}

/* Compare a matrix row by row, and a vector as one row. */
static int compare_rows(const struct merge_check *c, const struct tune_weights *w, const struct tune_parameter *p,
                        const struct tune_array *instead, struct low_rank *l, struct row *row, struct largest *most)
{
    struct tune_weights_source files = tune_weights_files(w);
    int64_t n = p->ndim == 2 ? p->shape[1] : p->count;
    for (int64_t i = 0; l->norm2 && i < p->count / n; i++) {
        TRY(add_adapter(c, p, instead, l, i, n, row));
        for (int64_t j = 0; j < n; j++)
            l->norm2[j] += row->want[j] * row->want[j];
    }
    for (int64_t i = 0; i < p->count / n; i++) {
        TRY(add_adapter(c, p, instead, l, i, n, row));
        if (l->magnitude)
            scale_row(l, i, n, row);
        TRY(files.read(files.context, p, i * n, n, row->merged));
        TRY(compare_row(c, p, l, p->read_dtype, i, n, row, most));
    }
    most->weights += p->count;
    most->modules += l->r > 0;
    return 0;
}

static int compare_parameter(const struct merge_check *c, const struct tune_weights *w, const struct tune_parameter *p,
                             struct largest *most)
{
    char module[NAME];
    int64_t n = p->ndim == 2 ? p->shape[1] : p->count;
    struct low_rank l;
    snprintf(module, sizeof module, "%.*s", (int)(strlen(p->name) - strlen(".weight")), p->name);
    float *x = tune_zeroed((size_t)n, 2 * sizeof *x, "checking %s", p->name);
    double *y = tune_zeroed((size_t)n, 2 * sizeof *y, "checking %s", p->name);
    struct row row = {x, x + n, y, y + n};
    int status = take_low_rank(c, p, module, &l);
    if (status == 0)
        status = x && y ? compare_rows(c, w, p, instead_of_base(c, p, module), &l, &row, most) : -1;
    free_low_rank(&l);
    free(x);
    free(y);
    return status;
}

/* Check that the folder's config gives the parameters that the merged model must have. */
static int same_table(const struct merge_check *c, const struct tune_parameters *have)
{
    bool same = have->count == c->table->count;
    for (int i = 0; i < have->count && same; i++)
        same = !strcmp(have->at[i].name, c->table->at[i].name) && have->at[i].count == c->table->at[i].count;
    return same ? 0 : tune_error_set("%s: its config.json gives another model than base and adapter do", c->name);
}

int merge_check(const struct merge_check *c, const char *folder)
{
    struct tune_model_config config;
    struct tune_parameters table = {0};
    struct largest most = {.limit = 1};
    struct tune_weights *w = NULL;
    int status = tune_model_config_read(&config, folder);
    if (status == 0)
        status = tune_parameters_new(&table, &config);
    if (status == 0)
        status = same_table(c, &table);
    if (status == 0 && !(w = tune_weights_open(folder)))
        status = -1;
    if (status == 0)
        status = tune_weights_check(w, &table, config.tied);
    for (int i = 0; i < table.count && status == 0; i++)
        status = compare_parameter(c, w, &table.at[i], &most);
    if (status == 0)
        printf("checked: %lld weights, %d modules with an adapter; largest difference %.3g in %s, limit %.3g: ok\n",
               (long long)most.weights, most.modules, most.difference, most.name, most.limit);
    tune_weights_close(w);
    tune_parameters_free(&table);
    return status;
}
