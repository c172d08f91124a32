/* model_search.c - searches of three synthetic costs and of a measured one: after how many measurements one is within 1 % of the best.
 *
 *     model_search COST ORDER FIRST COUNT MOST      a line for each seed: the number of measurements, or - if it is above MOST
 *     model_search COST ORDER FIRST COUNT -N        the best of the first N points, as a share of the best there is
 *     model_search COST coverage FIRST COUNT ROWS   the share of 200 fresh valid points in their 95 % interval, by a model of ROWS rows
 *     model_search COST stop FIRST COUNT MOST       measurements until the chance of 1 % is below 5 %, and the share of the best point then
 *     model_search COST table                       each point of the space with its cost, for other searchers
 *
 * COST: fine_tuning (a training: 7 dimensions, 31 % of the points invalid), blocking (a blocked matrix product, 6 dimensions, with cliffs),
 * knobs (a database: 5 dimensions, a ridge of two of them) or measured (300 trainings of a tiny model, three results of each). Higher is
 * better, 0 is invalid. ORDER: random, sobol or model. A measurement has 2 % noise; of a measured one it is one of the three. Whether it
 * is within 1 % is decided without the noise, or by the mean of the three. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/random.h"
#include "sweeps/spaces/order.h"
#include "sweeps/surrogate/axes.h"
#include "sweeps/surrogate/search.h"
#include "sweeps/surrogate/surrogate.h"

static double fine_tuning(const double *p, const char *optimizer)
{
    double length = p[0], batch = p[1], checkpoint = p[2], bf16 = p[3], gpus = p[4], accumulate = p[5];
    bool sgd = !strcmp(optimizer, "sgd"), muon = !strcmp(optimizer, "muon");
    double memory = 16e9 * (sgd ? .75 : muon ? .85 : 1) / gpus + batch / gpus * length * (checkpoint ? .9e5 : 6e5) * (bf16 ? 1 : 1.8) + 2e9;
    if (batch < gpus || memory > 40e9)
        return 0;
    double tokens = batch * length * accumulate, rows = batch / gpus * length;
    double speed = pow(gpus, .88) * 5200 * (bf16 ? 1.9 : 1) * (checkpoint ? .78 : 1) * rows / (rows + 3000) / (1 + length / 9000);
    return speed * tokens / (tokens + (sgd ? 5000 : muon ? 30000 : 9000));
}

static double cache(double bytes, double size)
{
    return 1 / pow(1 + pow(bytes / size, 4), .25);
}

static double blocking(const double *p)
{
    static const double fetch[] = {.94, 1, .99, .9};
    double mr = p[0], nr = p[1], kc = p[2], mc = p[3], nc = p[4];
    double v = 1 - .5 * exp(-mr * nr / 120);
    if (mr * nr / 16 + mr / 16 + nr > 30)
        v *= .45;
    v *= cache(kc * nr * 4, 24e3) * kc / (kc + 40);
    v *= cache(mc * kc * 4, 700e3) * mc / (mc + 24);
    v *= cache(nc * kc * 4, 12e6) * nc / (nc + 200);
    return 400 * v * fetch[(int)p[5]] * (fmod(mc, mr) == 0 ? 1 : .9);
}

static double knobs(const double *p, const char *mode)
{
    static const double centers[3][4] = {{14, 7, 9, 3}, {15, 6, 10, 4}, {12, 9, 7, 2}}, tops[] = {1, .97, .93};
    int m = !strcmp(mode, "lz4") ? 0 : !strcmp(mode, "zstd") ? 1 : 2;
    const double *c = centers[m];
    double x = log2(p[0]) - c[0], y = log2(p[1]) - c[1], z = log2(p[2]) - c[2], w = log2(p[3]) - c[3];
    return 9000 * tops[m] * exp(-pow((x + y) / 7, 2) - pow((x - y) / 2.2, 2) - pow(z / 5, 2) - pow(w / 2.5, 2));
}

/* The value of an entity as in the table: its text. */
static void entity_line(const struct tune_value *v, int count, char *line, size_t size)
{
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        char text[64];
        tune_value_str(&v[i], text, sizeof text);
        at += (size_t)snprintf(line + at, at < size ? size - at : 0, "%s%s", i ? "," : "", text);
    }
}

/* The results of each entity, from the file that tests/bench/measured_space.sh wrote. */
enum { ENTITIES = 300, RESULTS = 3 };
static struct measured {
    char entity[200];
    double result[RESULTS];
} measured[ENTITIES];

static int read_measured(void)
{
    FILE *f = fopen("tests/bench/results/measured-space.csv", "r");
    int n = 0;
    char line[512];
    bool named = f && fgets(line, sizeof line, f); /* the columns' names */
    for (; named && n < ENTITIES && fgets(line, sizeof line, f); n++) {
        struct measured *m = &measured[n];
        for (int i = RESULTS - 1; i >= 0; i--) {
            char *comma = strrchr(line, ',');
            m->result[i] = comma ? atof(comma + 1) : 0;
            if (comma)
                *comma = 0;
        }
        snprintf(m->entity, sizeof m->entity, "%.199s", line);
    }
    if (f)
        fclose(f);
    return n == ENTITIES ? 0 : tune_error_set("tests/bench/results/measured-space.csv: results of %d entities, expected %d", n, ENTITIES);
}

static const struct measured *find_measured(const struct tune_value *v, int count)
{
    char line[200] = "";
    entity_line(v, count, line, sizeof line);
    for (int i = 0; i < ENTITIES; i++)
        if (!strcmp(measured[i].entity, line))
            return &measured[i];
    fprintf(stderr, "model_search: no result of %s\n", line);
    exit(1);
}

/* A result of an entity whose true cost is value: drawn by the seed, for the n-th measurement. */
static double result_of(const char *cost, const struct tune_value *v, int count, double value, uint64_t seed, uint64_t n)
{
    if (*cost == 'm')
        return find_measured(v, count)->result[(int)(RESULTS * tune_random_uniform(seed, 98, n))];
    return value * (1 + .02 * tune_random_normal(seed, 99, n));
}

static double cost_of(const char *cost, const struct tune_value *v, int count)
{
    double p[8] = {0};
    if (*cost == 'm') {
        const struct measured *m = find_measured(v, count);
        return (m->result[0] + m->result[1] + m->result[2]) / 3;
    }
    const char *text = "";
    for (int i = 0; i < count; i++)
        if (!tune_value_number(&v[i], &p[i]))
            text = v[i].text;
    return *cost == 'f' ? fine_tuning(p, text) : *cost == 'b' ? blocking(p) : knobs(p, text);
}

static int fail(void)
{
    fprintf(stderr, "model_search: %s\n", tune_error_message());
    return 1;
}

/* Search until a point is good enough. Returns the number of measurements; 0: it was not found within most; -1: an error. most < 0:
 * returns the best share of that many measurements. */
static double search(const struct tune_space *space, const char *cost, const char *order, uint64_t seed, int most, double best)
{
    struct tune_search_options o = {.space = space, .seed = seed, .targets = 1, .maximize = {true}};
    struct tune_order_options even = {.seed = seed, .limit = -1};
    bool model = !strcmp(order, "model");
    if (!model && tune_order_mode(order, &even.mode) < 0)
        return -1;
    struct tune_search *s = model ? tune_search_new(&o) : NULL;
    struct tune_order *others = model ? NULL : tune_order_new(space, &even);
    const struct tune_value *entity;
    double found = s || others ? 0 : -1, share = 0;
    for (int n = 1; n <= abs(most) && found == 0; n++) {
        int more = model ? tune_search_next(s, &entity) : tune_order_next(others, &entity);
        if (more != 1) {
            found = more;
            break;
        }
        double value = cost_of(cost, entity, space->count);
        double result = result_of(cost, entity, space->count, value, seed, (uint64_t)n);
        share = fmax(share, value / best);
        if (most > 0 && value >= .99 * best)
            found = n;
        else if (model && tune_search_add(s, entity, value > 0 ? TUNE_SEARCH_VALID : TUNE_SEARCH_INVALID, &result) < 0)
            found = -1;
    }
    tune_search_free(s);
    tune_order_free(others);
    return found == 0 && most < 0 ? share : found;
}

/* Search until the chance that a point is better by more than 1 % is below 5 %, or most are measured. Prints the number of measurements
 * and the best of them as a share of the best there is. -1: an error. */
static int search_until_sure(const struct tune_space *space, const char *cost, uint64_t seed, int most, double best)
{
    struct tune_search_options o = {.space = space, .seed = seed, .targets = 1, .maximize = {true}};
    struct tune_search *s = tune_search_new(&o);
    const struct tune_value *entity;
    double share = 0, chance = 1;
    int n = 0, more = s ? 1 : -1;
    while (more == 1 && n < most && chance >= 0.05 && (more = tune_search_next(s, &entity)) == 1) {
        double value = cost_of(cost, entity, space->count);
        double result = result_of(cost, entity, space->count, value, seed, (uint64_t)++n);
        share = fmax(share, value / best);
        if (tune_search_add(s, entity, value > 0 ? TUNE_SEARCH_VALID : TUNE_SEARCH_INVALID, &result) < 0 ||
            tune_search_chance(s, .01, &chance) < 0)
            more = -1;
    }
    tune_search_free(s);
    if (more >= 0)
        printf("%d %.6g %g\n", n, share, chance);
    fflush(stdout);
    return more < 0 ? -1 : 0;
}

/* Draw count valid points by the seed, with their noisy values. */
static void draw_rows(const struct tune_axes *a, const char *cost, uint64_t seed, int count, double *x, double *y)
{
    struct tune_value values[8];
    double at[8];
    for (uint64_t n = 0, i = 0; i < (uint64_t)count; n++) {
        tune_space_entity(a->space, (tune_index)(tune_random_uniform(seed, 5, n) * (double)a->space->size), values);
        double value = cost_of(cost, values, a->space->count);
        if (value <= 0 || tune_axes_find(a, values, at) < 0)
            continue;
        tune_axes_point(a, at, x + i * (uint64_t)a->count);
        y[i++] = value * (1 + .02 * tune_random_normal(seed, 6, n));
    }
}

/* The share of fresh points within their interval; -1: an error. */
static double coverage(const struct tune_space *space, const char *cost, uint64_t seed, int rows)
{
    enum { MOST = 1000, FRESH = 200 };
    static double x[(MOST + FRESH) * 8], y[MOST + FRESH];
    static struct tune_prediction p[FRESH];
    struct tune_axes a;
    double inside = 0;
    if (rows < 1 || rows > MOST || tune_axes_read(&a, space) < 0)
        return -1;
    draw_rows(&a, cost, seed, rows + FRESH, x, y);
    struct tune_surrogate_options o = {.dimensions = a.count, .categories = a.categories, .logarithm = true, .priors = true};
    struct tune_surrogate *s = tune_surrogate_fit(&o, x, y, rows);
    if (!s || tune_surrogate_predict(s, x + rows * a.count, FRESH, p) < 0)
        return -1;
    for (int i = 0; i < FRESH; i++)
        inside += p[i].low <= y[rows + i] && y[rows + i] <= p[i].high;
    tune_surrogate_free(s);
    tune_axes_free(&a);
    return inside / FRESH;
}

int main(int argc, char **argv)
{
    char path[256];
    if (argc != 3 && argc != 6)
        return 2;
    snprintf(path, sizeof path, "tests/bench/model_spaces/%s.yaml", argv[1]);
    struct tune_space *space = tune_space_read(path);
    struct tune_value values[8];
    double best = 0;
    if (!space || (*argv[1] == 'm' && read_measured() < 0))
        return fail();
    for (tune_index i = 0; i < space->size; i++) {
        tune_space_entity(space, i, values);
        double value = cost_of(argv[1], values, space->count);
        best = fmax(best, value);
        char line[200] = "";
        entity_line(values, space->count, line, sizeof line);
        if (argc == 3)
            printf("%s,%.17g\n", line, value);
    }
    bool sure = argc == 6 && !strcmp(argv[2], "stop");
    for (int i = 0; sure && i < atoi(argv[4]); i++)
        if (search_until_sure(space, argv[1], (uint64_t)(atoi(argv[3]) + i), atoi(argv[5]), best) < 0)
            return fail();
    for (int i = 0; argc == 6 && !sure && i < atoi(argv[4]); i++) {
        double n = !strcmp(argv[2], "coverage") ? coverage(space, argv[1], (uint64_t)(atoi(argv[3]) + i), atoi(argv[5]))
                                                : search(space, argv[1], argv[2], (uint64_t)(atoi(argv[3]) + i), atoi(argv[5]), best);
        if (n < 0)
            return fail();
        printf(n > 0 ? "%.6g\n" : "-\n", n);
        fflush(stdout);
    }
    tune_space_free(space);
    return 0;
}
