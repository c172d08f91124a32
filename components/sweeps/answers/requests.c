/* requests.c - list the requests of an operation in their order, with their results. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/map.h"
#include "core/nearest.h"
#include "sweeps/discovery/uids.h"
#include "sweeps/answers/pass.h"

/* A request, with the positions of its row and of its result. */
struct request {
    int64_t index;
    double time;
    struct tune_row_position position, result;
    int table;        /* table of the result; -1: the store does not have it */
    uint64_t uid[2];
};

struct trace {
    struct tune_subject *s;
    struct request *all;
    int64_t count;
    struct tune_map firsts; /* from a uid to the index of its first request + 1 */
    int64_t *next;        /* [count] index of the next request with the same uid + 1 */
    const char *const *tables;
    int table_count;
    struct tune_scan **scans; /* [table_count] scans of the results' shown columns */
};

enum { INDEX, EXPERIMENT, ENTITY, TYPE, UID, STATUS, TIME, SECONDS, REASON, VALID, COLUMNS };
static const char *const headings[COLUMNS] = {"index", "experiment", "entity", "type", "uid", "status", "time", "seconds", "reason",
                                              "valid"};

/* ---- reading ---- */

static int add_request(struct trace *t, const struct tune_cell *cells, struct tune_row_position position)
{
    FIT(t->all, t->count);
    struct request *r = &t->all[t->count++];
    *r = (struct request){.index = cells[1].whole, .time = cells[2].number, .position = position, .table = -1};
    tune_uid_read((uint8_t *)r->uid, cells[3].text);
    return 0;
}

static int in_order(const void *a, const void *b)
{
    const struct request *x = a, *y = b;
    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->position.file != y->position.file)
        return x->position.file < y->position.file ? -1 : 1;
    return (x->position.row > y->position.row) - (x->position.row < y->position.row);
}

static int read_requests(struct trace *t, const char *operation)
{
    const struct tune_cell *cells;
    int more;
    struct tune_scan *scan = TUNE_SCAN(t->s->q->store, TUNE_STORE_REQUESTS, TUNE_REQUEST_OPERATION, TUNE_REQUEST_INDEX,
                                       TUNE_REQUEST_TIME, TUNE_REQUEST_UID);
    while ((more = tune_scan_next(scan, &cells)) == 1)
        if (!strcmp(cells[0].text, operation) && (more = add_request(t, cells, tune_scan_position(scan))) < 0)
            break;
    tune_scan_free(scan);
    if (t->count > 0)
        qsort(t->all, (size_t)t->count, sizeof *t->all, in_order);
    return more;
}

static int index_uids(struct trace *t)
{
    TAKE(t->next, t->s->a, t->count);
    for (int64_t i = 0; i < t->count; i++) {
        int64_t *first = tune_map_add(&t->firsts, t->all[i].uid);
        if (!first)
            return tune_error_no_memory("an index of %lld requests", (long long)t->count);
        t->next[i] = *first;
        *first = i + 1;
    }
    return 0;
}

/* Find the results of the requests in a table. */
static int find_results(struct trace *t, int table)
{
    const struct tune_cell *cells;
    int more;
    struct tune_scan *scan = TUNE_SCAN(t->s->q->store, t->tables[table], TUNE_KEY_UID);
    while ((more = tune_scan_next(scan, &cells)) == 1) {
        uint64_t uid[2];
        tune_uid_read((uint8_t *)uid, cells[0].text);
        for (int64_t i = tune_map_get(&t->firsts, uid); i; i = t->next[i - 1]) {
            t->all[i - 1].result = tune_scan_position(scan);
            t->all[i - 1].table = table;
        }
    }
    tune_scan_free(scan);
    return more;
}

/* ---- output ---- */

/* Read the cells of the request, then those of its result. Without a result these are empty. */
static int read_cells(struct trace *t, const struct request *r, struct tune_scan *requests, struct tune_cell all[COLUMNS])
{
    static const int from[] = {INDEX, EXPERIMENT, ENTITY, TYPE, UID, STATUS, TIME};
    const struct tune_cell *cells;
    TRY(tune_scan_at(requests, r->position, &cells));
    for (int i = 0; i < 7; i++)
        all[from[i]] = cells[i];
    all[SECONDS] = (struct tune_cell){.absent = true, .number = NAN};
    all[REASON] = (struct tune_cell){.absent = true, .text = ""};
    all[VALID] = (struct tune_cell){.text = strcmp(all[STATUS].text, "valid") ? "False" : "True"};
    if (r->table < 0)
        return 0;
    struct tune_scan **scan = &t->scans[r->table];
    if (!*scan && !(*scan = TUNE_SCAN(t->s->q->store, t->tables[r->table], TUNE_KEY_SECONDS, TUNE_KEY_REASON)))
        return -1;
    TRY(tune_scan_at(*scan, r->result, &cells));
    all[SECONDS] = cells[0];
    all[REASON] = cells[1];
    return 0;
}

static int add_row(struct tune_answer_table *a, const struct tune_cell *all)
{
    for (int c = 0; c < COLUMNS; c++)
        if (c == TIME)
            tune_answer_time(a, all[c].number);
        else if (all[c].text)
            tune_answer_text(a, all[c].absent ? NULL : all[c].text);
        else
            tune_answer_figure(a, all[c].number, c == INDEX);
    return tune_answer_end_row(a);
}

static int add_requests(struct trace *t, struct tune_select *select)
{
    struct tune_answer_table *a = t->s->a;
    const struct tune_arrangement *arrange = &t->s->q->arrange;
    struct tune_scan *requests =
        TUNE_SCAN(t->s->q->store, TUNE_STORE_REQUESTS, TUNE_REQUEST_INDEX, TUNE_REQUEST_EXPERIMENT, TUNE_REQUEST_ENTITY,
                  TUNE_REQUEST_TYPE, TUNE_REQUEST_UID, TUNE_REQUEST_STATUS, TUNE_REQUEST_TIME);
    int code = requests ? 0 : -1;
    for (int c = 0; c < COLUMNS; c++) {
        struct tune_answer_column *column = tune_answer_column(a, headings[c]);
        column->measured = c == SECONDS;
        column->unit = c == SECONDS ? "s" : "";
        column->hidden = c == UID;
    }
    for (int64_t i = 0; i < t->count && code == 0; i++) {
        struct tune_cell all[COLUMNS], asked[COLUMNS]; /* asked: for expressions, in which a time is a text */
        char time[TUNE_FACT_TIME];
        if (tune_answer_full(a, arrange->sort || arrange->group_by ? 0 : arrange->limit))
            break;
        int wanted = read_cells(t, &t->all[i], requests, all);
        if (wanted == 0) {
            memcpy(asked, all, sizeof asked);
            asked[TIME] = tune_cell_text(tune_time_text(all[TIME].number, time));
            wanted = tune_pass_meets(select, asked, COLUMNS);
        }
        code = wanted < 0 ? -1 : wanted ? add_row(a, all) : 0;
    }
    tune_scan_free(requests);
    return code;
}

int tune_show_requests(struct tune_subject *s)
{
    struct trace t = {.s = s};
    struct tune_operation_record record;
    t.tables = tune_store_tables(s->q->store, &t.table_count);
    TRY(t.tables ? 0 : -1);
    TRY(tune_operation_record_read(s->q->store, s->name, &record));
    tune_operation_record_free(&record);
    TAKE(t.scans, s->a, t.table_count);
    struct tune_select *select = tune_select_new(headings, COLUMNS, SECONDS, s->q->where, NULL, 0);
    int code = select && tune_select_compiled(select, -1) ? read_requests(&t, s->name) : -1;
    if (code == 0)
        code = index_uids(&t);
    for (int i = 0; i < t.table_count && code == 0; i++)
        code = find_results(&t, i);
    if (code == 0)
        code = add_requests(&t, select);
    for (int i = 0; i < t.table_count; i++)
        tune_scan_free(t.scans[i]);
    tune_select_free(select);
    tune_map_free(&t.firsts);
    free(t.all);
    return code;
}
