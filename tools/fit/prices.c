/* prices.c - --price FILE: prices of GPUs per hour.
 *
 * CSV: a heading with a column gpu (or gpu_model) and one whose name ends in per_hour, such as
 * usd_per_hour; other columns are left out. A file that ends in .json, .yaml or .yml is a map from
 * names to prices. Names are those of tune_known_gpu. */
#include "fit.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/print.h"
#include "core/try.h"
#include "files/csv.h"
#include "files/document.h"

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcasecmp(text + n - m, end);
}

/* One price. A name that nobody knows is kept for a note. */
static int add_price(struct fit_prices *prices, const char *path, int64_t line, const char *name, double price)
{
    int count;
    const struct tune_known_gpu *all = tune_known_gpus(&count), *gpu = tune_known_gpu(name);
    prices->rows++;
    if (!isfinite(price) || price < 0)
        return tune_error_usage("%s:%lld: the price of %.60s: expected a number per hour, such as 1.89", path, (long long)line, name);
    if (!gpu) {
        tune_append(prices->unknown, sizeof prices->unknown, "%s%.60s", prices->unknown_count++ ? ", " : "", name);
        return 0;
    }
    int i = (int)(gpu - all);
    if (prices->lines[i] > 0)
        return tune_error_usage("%s:%lld: %.60s is %s, whose price line %lld has, too: remove one of them", path, (long long)line, name,
                                gpu->name, (long long)prices->lines[i]);
    prices->lines[i] = line;
    prices->hour[i] = price;
    return 0;
}

/* ---- CSV ---- */

struct price_columns {
    int gpu, price, count;
};

static int read_heading(struct fit_prices *prices, const char *path, const char *const *fields, int count, struct price_columns *c)
{
    *c = (struct price_columns){-1, -1, count};
    for (int i = 0; i < count; i++) {
        bool names = !strcasecmp(fields[i], "gpu") || !strcasecmp(fields[i], "gpu_model"), price = ends_with(fields[i], "per_hour");
        if ((names && c->gpu >= 0) || (price && c->price >= 0))
            return tune_error_usage("%s: two columns of the heading are %s", path, names ? "names of GPUs" : "prices per hour: keep one of them");
        c->gpu = names ? i : c->gpu;
        c->price = price ? i : c->price;
        if (!names && !price)
            tune_append(prices->left, sizeof prices->left, "%s%.40s", *prices->left ? ", " : "", fields[i]);
    }
    if (c->gpu < 0 || c->price < 0)
        return tune_error_usage("%s: the heading has no column %s; expected gpu,usd_per_hour, or another currency", path,
                                c->gpu < 0 ? "gpu" : "that ends in per_hour");
    const char *name = fields[c->price];
    size_t n = strlen(name) - strlen("per_hour");
    if (n > 1 && n < sizeof prices->currency && strncasecmp(name, "price", 5))
        for (size_t k = 0; k < n - 1; k++)
            prices->currency[k] = (char)toupper((unsigned char)name[k]);
    return 0;
}

static int read_csv(struct fit_prices *prices, const char *path, struct tune_csv *csv)
{
    const char *const *fields;
    struct price_columns c;
    int count, more = tune_csv_row(csv, &fields, &count);
    TRY(more);
    if (more == 0)
        return tune_error_usage("%s is empty; expected a heading such as gpu,usd_per_hour, and rows", path);
    TRY(read_heading(prices, path, fields, count, &c));
    while ((more = tune_csv_row(csv, &fields, &count)) == 1) {
        if (count != c.count)
            return tune_error_usage("%s:%lld: this row has %d value%s, but the heading has %d", path, (long long)tune_csv_line(csv), count,
                                    count == 1 ? "" : "s", c.count);
        char *end;
        double price = strtod(fields[c.price], &end);
        TRY(add_price(prices, path, tune_csv_line(csv), fields[c.gpu], end == fields[c.price] || *end ? NAN : price));
    }
    return more;
}

/* ---- JSON and YAML ---- */

static int read_map(struct fit_prices *prices, struct tune_document *d)
{
    if (d->root->type != TUNE_NODE_MAP)
        return tune_document_fail(d, d->root, "expected a map from names of GPUs to prices per hour, such as l4: 0.71");
    for (int i = 0; i < d->root->count; i++) {
        const struct tune_node *item = d->root->items[i];
        double price = NAN;
        if (item->type != TUNE_NODE_SCALAR || !tune_value_number(&item->value, &price))
            price = NAN;
        TRY(add_price(prices, d->path, item->line, d->root->keys[i]->value.text, price));
    }
    return 0;
}

int fit_prices_read(struct fit_prices *prices, const char *path)
{
    int code;
    *prices = (struct fit_prices){.path = path};
    if (ends_with(path, ".json") || ends_with(path, ".yaml") || ends_with(path, ".yml")) {
        struct tune_document *d = tune_document_read(path);
        code = d ? read_map(prices, d) : -1;
        tune_document_free(d);
    } else {
        struct tune_csv *csv = tune_csv_open(path);
        code = csv ? read_csv(prices, path, csv) : -1;
        tune_csv_free(csv);
    }
    tune_blank_controls(prices->unknown);
    tune_blank_controls(prices->left);
    tune_blank_controls(prices->currency);
    TRY(code);
    return prices->rows > 0 ? 0 : tune_error_usage("%s has no prices", path);
}

double fit_price_of(const struct fit_prices *prices, const struct tune_known_gpu *gpu)
{
    int count, i = (int)(gpu - tune_known_gpus(&count));
    return prices->lines[i] > 0 ? prices->hour[i] : NAN;
}
