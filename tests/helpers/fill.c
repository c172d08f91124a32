/* fill.c - rows for a store without measuring anything: what a sweep over a space would have written, with made-up figures.
 *
 *     fill STORE SPACE ROWS [REPEAT [OPERATION [HOST_CLASS [BUILD [SEED]]]]]
 *
 * The first ROWS entities of the space in its order, each under every experiment, REPEAT times, as one finished operation. A
 * target is drawn by SEED, entity, target and repeat: from 1 to 1000, two percent of it by the repeat. is_valid is 1. Says how long
 * the appending took, the store being open. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/random.h"
#include "core/try.h"
#include "sweeps/discovery/results.h"

struct filling {
    struct tune_store *store;
    struct tune_space *space;
    struct tune_catalog catalog;
    struct tune_binding *bindings;
    struct tune_results results;
    uint64_t seed;
};

static void draw_targets(const struct filling *f, const struct tune_job *job, double *targets)
{
    const struct tune_experiment *e = f->bindings[job->binding].experiment;
    for (int t = 0; t < e->target_count; t++) {
        uint64_t at = (uint64_t)job->index * 1000 + (uint64_t)t;
        double v = pow(10, 3 * tune_random_uniform(f->seed, 1 + (uint64_t)job->binding, at)) *
                   (1 + 0.02 * tune_random_uniform(f->seed + 1, 1 + (uint64_t)job->repeat, at));
        targets[t] = !strcmp(e->targets[t].name, "is_valid")   ? 1
                     : strstr(e->targets[t].name, "_peak")     ? NAN
                     : strstr(e->targets[t].name, "gpu_power") ? 0
                     : e->targets[t].whole                     ? floor(v)
                                                               : v;
    }
}

static int fill_job(struct filling *f, struct tune_job *job, double started_s)
{
    const struct tune_binding *p = &f->bindings[job->binding];
    double *targets = calloc((size_t)p->experiment->target_count + 1, sizeof *targets);
    job->inputs = calloc((size_t)p->experiment->input_count + 1, sizeof *job->inputs);
    if (!targets || !job->inputs)
        return -1;
    tune_binding_inputs(p, job->entity, job->inputs);
    draw_targets(f, job, targets);
    struct tune_result result = {.status = TUNE_VALID, .targets = targets, .started_s = started_s, .seconds = 31.5, .run = 1};
    uint8_t uid[16];
    int code = tune_results_measured(&f->results, job, &result, true, uid);
    free(targets);
    free(job->inputs);
    return code;
}

static int fill(struct filling *f, int64_t rows, int repeat, const struct tune_provenance *provenance)
{
    struct tune_value *entity = calloc((size_t)f->space->count + 1, sizeof *entity);
    double started_s = 1.75e9;
    if (!entity)
        return -1;
    TRY(tune_results_announce(&f->results));
    double begin_s = tune_clock_s();
    tune_store_begin(f->store);
    for (int64_t i = 0; i < rows; i++) {
        struct tune_job job = {.index = i, .entity = entity, .provenance = *provenance};
        tune_space_entity(f->space, (tune_index)i, entity);
        for (job.binding = 0; job.binding < f->space->reference_count; job.binding++)
            for (job.repeat = 0; job.repeat < repeat; job.repeat++)
                TRY(fill_job(f, &job, started_s += 32));
    }
    free(entity);
    TRY(tune_store_commit(f->store));
    printf("# %lld entities appended in %.4f s\n", (long long)rows, tune_clock_s() - begin_s);
    return 0;
}

static int record(struct filling *f, const char *space_path, int64_t rows)
{
    struct tune_operation_record r = {.options = {.order = {.limit = -1}, .repeat = 1}, .started_s = 1.75e9,
                                      .ended_s = 1.75e9 + 32.0 * (double)rows, .planned = rows, .measured = rows};
    char name[64], *text;
    size_t size;
    snprintf(r.id, sizeof r.id, "%s", f->results.operation);
    snprintf(r.space, sizeof r.space, "%s", f->results.space_id);
    snprintf(r.status, sizeof r.status, "finished");
    TRY(tune_operation_record_write(f->store, &r));
    TRY(tune_file_read(space_path, TUNE_DOCUMENT_BYTES, &text, &size));
    snprintf(name, sizeof name, "%s.yaml", r.space);
    int code = tune_store_record(f->store, "spaces", name, text, size);
    free(text);
    return code;
}

static int run(int argc, char **argv)
{
    struct filling f = {.seed = argc > 8 ? strtoull(argv[8], NULL, 10) : 1};
    struct tune_provenance provenance = {.weights = "0123456789abcdef0123456789abcdef", .data = "fedcba9876543210fedcba9876543210"};
    char folder[TUNE_PATH_MAX], space_id[32];
    const char *paths[] = {folder};
    int64_t rows = atoll(argv[3]);
    snprintf(provenance.host_class, sizeof provenance.host_class, "%s",
             argc > 6 ? argv[6] : "x86_64 Intel(R) Xeon(R) Platinum 8568Y+ x16, 128 GiB, NVIDIA H100 80GB HBM3 x1, driver 550.90");
    snprintf(provenance.build, sizeof provenance.build, "%s", argc > 7 ? argv[7] : "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00");
    TRY(tune_defaults_path(folder, "experiments"));
    TRY(tune_catalog_read(&f.catalog, paths, 1));
    if (!(f.space = tune_space_read(argv[2])) || !(f.store = tune_store_open(argv[1], true)))
        return -1;
    TRY(tune_space_bind(f.space, &f.catalog, &f.bindings));
    if (f.space->size > 0 && (tune_index)rows > f.space->size)
        rows = (int64_t)f.space->size;
    snprintf(space_id, sizeof space_id, "space-%s", f.space->id);
    f.results = (struct tune_results){f.store, f.space, f.bindings, argc > 5 ? argv[5] : "filled", space_id,
                                      "explicit_grid_sample_generator", "measuring-host"};
    TRY(fill(&f, rows, argc > 4 ? atoi(argv[4]) : 1, &provenance));
    TRY(record(&f, argv[2], rows));
    tune_store_free(f.store);
    tune_bindings_free(f.bindings, f.space->reference_count);
    tune_space_free(f.space);
    tune_catalog_free(&f.catalog);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "fill STORE SPACE ROWS [REPEAT [OPERATION [HOST_CLASS [BUILD [SEED]]]]]\n");
        return 2;
    }
    if (run(argc, argv) == 0)
        return 0;
    fprintf(stderr, "fill: %s\n", tune_error_message());
    return 1;
}
