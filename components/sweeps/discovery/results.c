/* results.c - rows and requests put together from jobs and results. */
#include "sweeps/discovery/results.h"
#include "sweeps/discovery/uids.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "core/error.h"
#include "core/try.h"

static int no_memory(void)
{
    tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory while a row is put together");
    return -1;
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int draw_uid(uint8_t uid[16])
{
    if (getrandom(uid, 16, 0) == 16)
        return 0;
    return tune_error_set("no random bytes from the kernel: %s", strerror(errno));
}

static struct tune_cell text_cell(const char *text)
{
    return (struct tune_cell){.absent = !text || !*text, .text = text ? text : ""};
}

static struct tune_cell whole_cell(int64_t whole)
{
    return (struct tune_cell){.whole = whole, .number = (double)whole};
}

static struct tune_cell number_cell(double number)
{
    return (struct tune_cell){.absent = isnan(number), .number = number};
}

int tune_results_announce(const struct tune_results *r)
{
    for (int p = 0; p < r->space->reference_count; p++) {
        const struct tune_experiment *e = r->protocols[p].experiment;
        struct tune_column *columns;
        bool again = false;
        for (int i = 0; i < p; i++)
            again = again || r->protocols[i].experiment == e;
        if (again)
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
    request[TUNE_REQUEST_OPERATION] = text_cell(r->operation);
    request[TUNE_REQUEST_INDEX] = whole_cell(job->index);
    request[TUNE_REQUEST_EXPERIMENT] = text_cell(r->protocols[job->protocol].full_identifier);
    request[TUNE_REQUEST_ENTITY] = text_cell(entity);
    request[TUNE_REQUEST_TYPE] = text_cell(type);
    request[TUNE_REQUEST_UID] = text_cell(uid);
    request[TUNE_REQUEST_STATUS] = text_cell(status);
    request[TUNE_REQUEST_TIME] = number_cell(now_s());
}

static char *entity_identifier(const struct tune_results *r, const struct tune_job *job)
{
    int length = tune_entity_identifier(r->space->names, job->entity, r->space->count, NULL, 0);
    char *text = malloc((size_t)length + 1);
    if (text)
        tune_entity_identifier(r->space->names, job->entity, r->space->count, text, (size_t)length + 1);
    return text;
}

static void fill_keys(const struct tune_results *r, const struct tune_job *job, const struct tune_result *result,
                      const char *entity, const char *uid, struct tune_cell keys[TUNE_KEYS])
{
    keys[TUNE_KEY_UID] = text_cell(uid);
    keys[TUNE_KEY_OPERATION] = text_cell(r->operation);
    keys[TUNE_KEY_SPACE] = text_cell(r->space_id);
    keys[TUNE_KEY_REQUEST] = whole_cell(job->index);
    keys[TUNE_KEY_REPEAT] = whole_cell(job->repeat);
    keys[TUNE_KEY_EXPERIMENT] = text_cell(r->protocols[job->protocol].full_identifier);
    keys[TUNE_KEY_ENTITY] = text_cell(entity);
    keys[TUNE_KEY_GENERATOR] = text_cell(r->generator);
    keys[TUNE_KEY_STARTED] = number_cell(result->started_s);
    keys[TUNE_KEY_SECONDS] = number_cell(result->seconds);
    keys[TUNE_KEY_STATUS] = text_cell(tune_status_name(result->status));
    keys[TUNE_KEY_REASON] = text_cell(result->reason);
    keys[TUNE_KEY_HOST] = text_cell(r->host);
    keys[TUNE_KEY_HOST_CLASS] = text_cell(job->origin.host_class);
    keys[TUNE_KEY_BUILD] = text_cell(job->origin.build);
    keys[TUNE_KEY_WEIGHTS] = text_cell(job->origin.weights);
    keys[TUNE_KEY_DATA] = text_cell(job->origin.data);
}

/* A row of a job, and what its cells point to. */
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
    const struct tune_experiment *e = r->protocols[job->protocol].experiment;
    int count = tune_rows_columns(e, &row->columns);
    TRY(count);
    row->cells = calloc((size_t)count + TUNE_KEYS, sizeof *row->cells);
    row->texts = malloc((size_t)(e->input_count + 1) * (TUNE_STORE_TEXT_MAX + 1));
    row->entity = entity_identifier(r, job);
    if (!row->cells || !row->texts || !row->entity)
        return no_memory();
    TRY(draw_uid(row->raw));
    tune_uid_text(row->uid, row->raw);
    fill_keys(r, job, result, row->entity, row->uid, row->cells);
    struct tune_cell *at = row->cells + TUNE_KEYS;
    for (int i = 0; i < e->input_count; i++, at++)
        TRY(tune_rows_cell(&row->columns[i], &job->inputs[i], at, row->texts + (size_t)i * (TUNE_STORE_TEXT_MAX + 1),
                           TUNE_STORE_TEXT_MAX + 1));
    for (int i = 0; i < e->target_count; i++, at++)
        *at = number_cell(result->targets ? result->targets[i] : NAN);
    return 0;
}

int tune_results_fit(const struct tune_results *r, const struct tune_job *job)
{
    struct row row = {0};
    int code = fill_row(r, job, &(struct tune_result){.status = TUNE_VALID}, &row);
    if (code == 0)
        code = tune_store_fits(r->store, r->protocols[job->protocol].experiment->name, row.cells);
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
        code = tune_store_append(r->store, r->protocols[job->protocol].experiment->name, row.cells, last ? request : NULL);
    }
    free_row(&row);
    return code;
}

int tune_results_refused(const struct tune_results *r, const struct tune_job *job, uint8_t uid[16])
{
    const struct tune_experiment *e = r->protocols[job->protocol].experiment;
    struct tune_result result = {.status = TUNE_INVALID, .started_s = now_s()};
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
