/* trace.c - the requests of an operation in their order, and their results. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/map.h"
#include "core/nearest.h"
#include "sweeps/discovery/uids.h"
#include "samples.h"

/* A request, with the places of its row and of its result. */
struct request {
    int64_t index;
    double time;
    struct tune_place place, result;
    int table;        /* table of the result; -1: it is not in this store */
    uint64_t uid[2];
};

static struct {
    struct request *all;
    int64_t count;
    struct tune_map firsts; /* by uid: the first request with it + 1 */
    int64_t *next;        /* [count] another request with the same uid + 1 */
    const char *const *tables;
    int table_count;
    struct tune_scan **scans; /* [table_count] scans of the shown columns of results */
} trace;

enum { INDEX, EXPERIMENT, ENTITY, TYPE, UID, STATUS, TIME, SECONDS, REASON, VALID, COLUMNS };
static const char *const headings[COLUMNS] = {"index", "experiment", "entity", "type", "uid", "status", "time", "seconds", "reason",
                                              "valid"};

/* ---- reading ---- */

static void add_request(const struct tune_cell *cells, struct tune_place place)
{
    samples_fit(&trace.all, trace.count, sizeof *trace.all);
    struct request *r = &trace.all[trace.count++];
    *r = (struct request){.index = cells[1].whole, .time = cells[2].number, .place = place, .table = -1};
    tune_uid_read((uint8_t *)r->uid, cells[3].text);
}

static int in_order(const void *a, const void *b)
{
    const struct request *x = a, *y = b;
    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->place.file != y->place.file)
        return x->place.file < y->place.file ? -1 : 1;
    return (x->place.row > y->place.row) - (x->place.row < y->place.row);
}

static int read_requests(const char *operation)
{
    const struct tune_cell *cells;
    int more;
    struct tune_scan *scan = TUNE_SCAN(samples.store, TUNE_STORE_REQUESTS, TUNE_REQUEST_OPERATION, TUNE_REQUEST_INDEX,
                                       TUNE_REQUEST_TIME, TUNE_REQUEST_UID);
    while ((more = tune_scan_next(scan, &cells)) == 1)
        if (!strcmp(cells[0].text, operation))
            add_request(cells, tune_scan_place(scan));
    tune_scan_free(scan);
    if (trace.count > 0)
        qsort(trace.all, (size_t)trace.count, sizeof *trace.all, in_order);
    return more;
}

static int index_uids(void)
{
    trace.next = samples_take(trace.count, sizeof *trace.next);
    for (int64_t i = 0; i < trace.count; i++) {
        int64_t *first = tune_map_add(&trace.firsts, trace.all[i].uid);
        if (!first)
            return tune_error_no_memory("an index of %lld requests", (long long)trace.count);
        trace.next[i] = *first;
        *first = i + 1;
    }
    return 0;
}

/* Find the columns with results. */
static int find_results(int table)
{
    const struct tune_cell *cells;
    int more;
    struct tune_scan *scan = TUNE_SCAN(samples.store, trace.tables[table], TUNE_KEY_UID);
    while ((more = tune_scan_next(scan, &cells)) == 1) {
        uint64_t uid[2];
        tune_uid_read((uint8_t *)uid, cells[0].text);
        for (int64_t i = tune_map_get(&trace.firsts, uid); i; i = trace.next[i - 1]) {
            trace.all[i - 1].result = tune_scan_place(scan);
            trace.all[i - 1].table = table;
        }
    }
    tune_scan_free(scan);
    return more;
}

/* ---- output ---- */

/* Put the request's cells, then those of its result, which are empty without a result. */
static int read_cells(const struct request *r, struct tune_scan *requests, struct tune_cell all[COLUMNS])
{
    static const int from[] = {INDEX, EXPERIMENT, ENTITY, TYPE, UID, STATUS, TIME};
    const struct tune_cell *cells;
    TRY(tune_scan_at(requests, r->place, &cells));
    for (int i = 0; i < 7; i++)
        all[from[i]] = cells[i];
    all[SECONDS] = (struct tune_cell){.absent = true, .number = NAN};
    all[REASON] = (struct tune_cell){.absent = true, .text = ""};
    all[VALID] = (struct tune_cell){.text = strcmp(all[STATUS].text, "valid") ? "False" : "True"};
    if (r->table < 0)
        return 0;
    struct tune_scan **scan = &trace.scans[r->table];
    if (!*scan && !(*scan = TUNE_SCAN(samples.store, trace.tables[r->table], TUNE_KEY_SECONDS, TUNE_KEY_REASON)))
        return -1;
    TRY(tune_scan_at(*scan, r->result, &cells));
    all[SECONDS] = cells[0];
    all[REASON] = cells[1];
    return 0;
}

static int put_request(const struct tune_cell *all)
{
    for (int c = 0; c < COLUMNS; c++)
        if (c == TIME)
            samples_time(all[c].number);
        else if (all[c].text)
            samples_text(all[c].text);
        else
            samples_number(all[c].number, c == INDEX, 4);
    return samples_end_row();
}

static void begin(void)
{
    for (int c = 0; c < COLUMNS; c++) {
        struct samples_column *column = samples_column(headings[c]);
        column->measured = c == SECONDS;
        column->hidden = c == UID && samples_people();
    }
    samples_begin(false);
}

static int put_requests(struct tune_select *select)
{
    struct tune_scan *requests =
        TUNE_SCAN(samples.store, TUNE_STORE_REQUESTS, TUNE_REQUEST_INDEX, TUNE_REQUEST_EXPERIMENT, TUNE_REQUEST_ENTITY,
                  TUNE_REQUEST_TYPE, TUNE_REQUEST_UID, TUNE_REQUEST_STATUS, TUNE_REQUEST_TIME);
    int code = requests ? 0 : -1;
    begin();
    for (int64_t i = 0; i < trace.count && code == 0 && !samples_full(); i++) {
        struct tune_cell all[COLUMNS];
        int wanted = read_cells(&trace.all[i], requests, all) < 0 ? -1 : samples_meets(select, all, COLUMNS);
        code = wanted < 0 ? -1 : wanted ? put_request(all) : 0;
    }
    tune_scan_free(requests);
    TRY(code);
    return samples_end();
}

int samples_trace(void)
{
    struct tune_operation_record record;
    if (!samples_word(0))
        return tune_error_usage("which operation? samples stats --store %s lists them", my.store);
    TRY(tune_operation_record_read(samples.store, samples_word(0), &record));
    tune_operation_record_free(&record);
    struct tune_select *select = tune_select_new(headings, COLUMNS, SECONDS, my.where, NULL, 0);
    int code = select && tune_select_compiled(select, -1) && (trace.tables = tune_store_tables(samples.store, &trace.table_count)) ? 0 : -1;
    trace.scans = samples_take(trace.table_count, sizeof *trace.scans);
    if (code == 0)
        code = read_requests(samples_word(0));
    if (code == 0)
        code = index_uids();
    for (int t = 0; t < trace.table_count && code == 0; t++)
        code = find_results(t);
    if (code == 0)
        code = put_requests(select);
    for (int t = 0; t < trace.table_count; t++)
        tune_scan_free(trace.scans[t]);
    tune_select_free(select);
    tune_map_free(&trace.firsts);
    return code;
}
