/* results.c - make rows and requests from jobs and results. */
#include "sweeps/discovery/results.h"
#include "sweeps/discovery/uids.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/random.h"
#include "core/try.h"

_Static_assert(TUNE_TARGET_TEXT <= TUNE_STORE_TEXT_MAX, "a store takes the text of every target");

static int no_memory(void)
{
    return tune_error_cannot("out of memory while a row is made");
}

int tune_results_announce(const struct tune_results *r)
{
    for (int p = 0; p < r->space->reference_count; p++) {
        const struct tune_experiment *e = r->bindings[p].experiment;
        struct tune_column *columns;
        if (!tune_binding_is_first(r->bindings, p))
            continue;
        int count = tune_rows_columns(e, &columns), code = count < 0 ? -1 : tune_store_table(r->store, e->name, columns, count);
        free(count < 0 ? NULL : columns);
        TRY(code);
    }
    return 0;
}

static void fill_request(const struct tune_results *r, const struct tune_job *job, const char *entity, const char *type,
                         const char *uid, const char *status, struct tune_cell request[TUNE_REQUEST_KEYS])
{
    request[TUNE_REQUEST_OPERATION] = tune_cell_text(r->operation);
    request[TUNE_REQUEST_INDEX] = tune_cell_whole(job->index);
    request[TUNE_REQUEST_EXPERIMENT] = tune_cell_text(r->bindings[job->binding].full_identifier);
    request[TUNE_REQUEST_ENTITY] = tune_cell_text(entity);
    request[TUNE_REQUEST_TYPE] = tune_cell_text(type);
    request[TUNE_REQUEST_UID] = tune_cell_text(uid);
    request[TUNE_REQUEST_STATUS] = tune_cell_text(status);
    request[TUNE_REQUEST_TIME] = tune_cell_number(tune_clock_date_s());
}

static char *entity_identifier(const struct tune_results *r, const struct tune_job *job)
{
    char *text = NULL;
    tune_entity_to_string(r->space->names, job->entity, r->space->count, &text, &(size_t){0});
    return text;
}

static void fill_keys(const struct tune_results *r, const struct tune_job *job, const struct tune_result *result,
                      const char *entity, const char *uid, struct tune_cell keys[TUNE_KEYS])
{
    keys[TUNE_KEY_UID] = tune_cell_text(uid);
    keys[TUNE_KEY_OPERATION] = tune_cell_text(r->operation);
    keys[TUNE_KEY_SPACE] = tune_cell_text(r->space_id);
    keys[TUNE_KEY_REQUEST] = tune_cell_whole(job->index);
    keys[TUNE_KEY_REPEAT] = tune_cell_whole(job->repeat);
    keys[TUNE_KEY_EXPERIMENT] = tune_cell_text(r->bindings[job->binding].full_identifier);
    keys[TUNE_KEY_ENTITY] = tune_cell_text(entity);
    keys[TUNE_KEY_GENERATOR] = tune_cell_text(r->generator);
    keys[TUNE_KEY_STARTED] = tune_cell_number(result->started_s);
    keys[TUNE_KEY_SECONDS] = tune_cell_number(result->seconds);
    keys[TUNE_KEY_STATUS] = tune_cell_text(tune_status_name(result->status));
    keys[TUNE_KEY_REASON] = tune_cell_text(result->reason);
    keys[TUNE_KEY_HOST] = tune_cell_text(r->host);
    keys[TUNE_KEY_HOST_CLASS] = tune_cell_text(job->provenance.host_class);
    keys[TUNE_KEY_BUILD] = tune_cell_text(job->provenance.build);
    keys[TUNE_KEY_WEIGHTS] = tune_cell_text(job->provenance.weights);
    keys[TUNE_KEY_DATA] = tune_cell_text(job->provenance.data);
    keys[TUNE_KEY_CORE_SHARE] = tune_cell_number(result->core_share);
    keys[TUNE_KEY_STABLE] = tune_cell_number(result->stable);
}

/* A row of a job, with memory for its cells. */
struct row {
    struct tune_column *columns;
    struct tune_cell *cells;
    char *texts, *entity, uid[33];
    uint8_t raw[16];
};

static void free_row(struct row *row)
{
    free(row->entity);
    free(row->texts);
    free(row->cells);
    free(row->columns);
}

static int fill_row(const struct tune_results *r, const struct tune_job *job, const struct tune_result *result, struct row *row)
{
    const struct tune_experiment *e = r->bindings[job->binding].experiment;
    int count = tune_rows_columns(e, &row->columns);
    TRY(count);
    row->cells = calloc((size_t)count + TUNE_KEYS, sizeof *row->cells);
    row->texts = malloc((size_t)(e->input_count + 1) * (TUNE_STORE_TEXT_MAX + 1));
    row->entity = entity_identifier(r, job);
    if (!row->cells || !row->texts || !row->entity)
        return no_memory();
    TRY(tune_random_fresh(row->raw, sizeof row->raw));
    tune_uid_text(row->uid, row->raw);
    fill_keys(r, job, result, row->entity, row->uid, row->cells);
    struct tune_cell *at = row->cells + TUNE_KEYS;
    for (int i = 0; i < e->input_count; i++, at++)
        TRY(tune_rows_cell(&row->columns[i], &job->inputs[i], at, row->texts + (size_t)i * (TUNE_STORE_TEXT_MAX + 1),
                           TUNE_STORE_TEXT_MAX + 1));
    for (int i = 0; i < e->target_count; i++, at++)
        *at = e->targets[i].text ? tune_cell_text(result->targets && result->texts ? result->texts[i] : NULL)
                                 : tune_cell_number(result->targets ? result->targets[i] : NAN);
    return 0;
}

int tune_results_fit(const struct tune_results *r, const struct tune_job *job)
{
    struct row row = {0};
    int code = fill_row(r, job, &(struct tune_result){.status = TUNE_VALID, .core_share = NAN, .stable = NAN}, &row);
    if (code == 0)
        code = tune_store_fits(r->store, r->bindings[job->binding].experiment->name, row.cells);
    free_row(&row);
    return code;
}

int tune_results_measured(const struct tune_results *r, const struct tune_job *job, const struct tune_result *result, bool last,
                          uint8_t uid[16])
{
    struct tune_cell request[TUNE_REQUEST_KEYS];
    struct row row = {0};
    int code = fill_row(r, job, result, &row);
    if (code == 0) {
        memcpy(uid, row.raw, sizeof row.raw);
        fill_request(r, job, row.entity, "measured", row.uid, tune_status_name(result->status), request);
        code = tune_store_append(r->store, r->bindings[job->binding].experiment->name, row.cells, last ? request : NULL);
    }
    free_row(&row);
    return code;
}

int tune_results_refused(const struct tune_results *r, const struct tune_job *job, uint8_t uid[16])
{
    const struct tune_experiment *e = r->bindings[job->binding].experiment;
    struct tune_result result = {.status = TUNE_INVALID, .started_s = tune_clock_date_s(), .core_share = NAN, .stable = NAN};
    double *targets = malloc((size_t)(e->target_count + 1) * sizeof *targets);
    if (!targets)
        return no_memory();
    for (int i = 0; i < e->target_count; i++)
        targets[i] = strcmp(e->targets[i].name, "is_valid") ? NAN : 0;
    result.targets = targets;
    snprintf(result.reason, sizeof result.reason, "%s", job->why);
    int code = tune_results_measured(r, job, &result, true, uid);
    free(targets);
    return code;
}

int tune_results_replayed(const struct tune_results *r, const struct tune_job *job)
{
    struct tune_cell request[TUNE_REQUEST_KEYS];
    char *entity = entity_identifier(r, job), uid[33];
    int code = entity ? 0 : no_memory();
    for (int i = 0; i < job->row_count && code == 0; i++) {
        tune_uid_text(uid, job->rows[i].uid);
        fill_request(r, job, entity, "replayed", uid, tune_status_name(job->rows[i].status), request);
        code = tune_store_request(r->store, request);
    }
    free(entity);
    return code;
}
