/* status.c - count the contents of a store, a space or an operation, with the names of ado's `show
 * stats`. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/nearest.h"
#include "sweeps/discovery/uids.h"
#include "sweeps/answers/subject.h"

enum { MOST_LABELS = 16 };
static const char *const headings[] = {"kind", "name", "figure", "value"};

/* Begin a row. If memory runs out, tune_answer_finish returns the error. */
static void begin_row(struct tune_subject *s, const char *kind, const char *name, const char *figure)
{
    tune_answer_text(s->a, kind);
    tune_answer_text(s->a, name);
    tune_answer_text(s->a, figure);
}

static void put_figure(struct tune_subject *s, const char *kind, const char *name, const char *figure, double value)
{
    begin_row(s, kind, name, figure);
    tune_answer_figure(s->a, value, true);
    tune_answer_end_row(s->a);
}

static void put_text(struct tune_subject *s, const char *kind, const char *name, const char *figure, const char *value)
{
    begin_row(s, kind, name, figure);
    tune_answer_text(s->a, value);
    tune_answer_end_row(s->a);
}

static void put_time(struct tune_subject *s, const char *name, const char *figure, double seconds)
{
    begin_row(s, "operation", name, figure);
    tune_answer_time(s->a, seconds > 0 ? seconds : NAN);
    tune_answer_end_row(s->a);
}

/* ---- an operation ---- */

struct counts {
    int64_t requests, failed_requests, results, failed_results;
    struct tune_uids entities; /* hashes of entities; duplicates are removed by sorting */
};

static int64_t different(struct tune_uids *u)
{
    int64_t count = 0;
    tune_uids_sort(u);
    for (size_t i = 0; i < u->count; i++)
        count += i == 0 || memcmp(u->at[i].bytes, u->at[i - 1].bytes, 16) != 0;
    return count;
}

static int add_hash(struct tune_uids *u, const char *text)
{
    uint64_t hash[2] = {tune_hash64(text, strlen(text), 1), tune_hash64(text, strlen(text), 2)};
    uint8_t bytes[16];
    memcpy(bytes, hash, 16);
    return tune_uids_add(u, bytes, 0);
}

/* Count a request: one entity under one experiment. Its results are rows of the table of
 * requests. */
static int count_requests(struct tune_subject *s, const char *operation, struct counts *c)
{
    struct tune_uids asked = {0}, answered = {0};
    const struct tune_cell *cells;
    char text[2 * TUNE_STORE_TEXT_MAX];
    int more;
    struct tune_scan *scan = TUNE_SCAN(s->q->store, TUNE_STORE_REQUESTS, TUNE_REQUEST_OPERATION, TUNE_REQUEST_INDEX,
                                       TUNE_REQUEST_EXPERIMENT, TUNE_REQUEST_ENTITY, TUNE_REQUEST_STATUS);
    while ((more = tune_scan_next(scan, &cells)) == 1) {
        bool failed = !strcmp(cells[4].text, "failed");
        if (strcmp(cells[0].text, operation))
            continue;
        c->results++;
        c->failed_results += failed;
        snprintf(text, sizeof text, "%lld %s", (long long)cells[1].whole, cells[2].text);
        if (add_hash(&asked, text) < 0 ||
            (!failed && (add_hash(&answered, text) < 0 || add_hash(&c->entities, cells[3].text) < 0))) {
            more = -1;
            break;
        }
    }
    tune_scan_free(scan);
    c->requests = different(&asked);
    c->failed_requests = c->requests - different(&answered);
    tune_uids_free(&asked);
    tune_uids_free(&answered);
    return more;
}

static int put_operation(struct tune_subject *s, const char *id)
{
    struct tune_operation_record r;
    struct counts c = {0};
    TRY(count_requests(s, id, &c));
    TRY(tune_operation_record_read(s->q->store, id, &r));
    put_text(s, "operation", id, "SPACE", r.space);
    put_text(s, "operation", id, "STATUS", r.status);
    put_time(s, id, "STARTED", r.started_s);
    put_time(s, id, "ENDED", r.ended_s);
    put_figure(s, "operation", id, "PLANNED", (double)r.planned);
    put_figure(s, "operation", id, "TOTAL_RESULTS", (double)c.results);
    put_figure(s, "operation", id, "SUCCESSFUL_RESULTS", (double)(c.results - c.failed_results));
    put_figure(s, "operation", id, "FAILED_RESULTS", (double)c.failed_results);
    put_figure(s, "operation", id, "MEASURED_ENTITIES", (double)different(&c.entities));
    put_figure(s, "operation", id, "TOTAL_REQUESTS", (double)c.requests);
    put_figure(s, "operation", id, "FAILED_REQUESTS", (double)c.failed_requests);
    put_figure(s, "operation", id, "SUCCESSFUL_REQUESTS", (double)(c.requests - c.failed_requests));
    tune_uids_free(&c.entities);
    tune_operation_record_free(&r);
    return 0;
}

/* ---- a space ---- */

static int put_space(struct tune_subject *sub)
{
    struct tune_view_counts c;
    char id[32], size[48], text[160];
    int operations;
    double allowed, error;
    TRY(tune_subject_space(sub));
    const struct tune_space *s = sub->space;
    struct tune_view_options o = {.include = TUNE_VIEW_MATCHING};
    struct tune_view *v = tune_view_open(sub->q->store, s, sub->bindings, &o);
    char **ids = v && tune_view_counted(v, &c) == 0 ? tune_view_operations(sub->q->store, s, &operations) : NULL;
    tune_view_free(v);
    if (!ids)
        return -1;
    tune_store_records_free(ids, operations);
    TRY(tune_space_count_allowed(s, &allowed, &error));
    bool counted = s->size > 0 && s->size != TUNE_INDEX_MAX;
    snprintf(id, sizeof id, "space-%s", s->id);
    put_figure(sub, "space", id, "EXPERIMENTS", s->reference_count);
    put_figure(sub, "space", id, "OPERATIONS", operations);
    put_figure(sub, "space", id, "EXPLORE_OPERATIONS", operations);
    put_figure(sub, "space", id, "MEASURED_ENTITIES", (double)c.measured);
    if (counted && s->size < 1000000000000000)
        put_figure(sub, "space", id, "SIZE_OF_ENTITY_SPACE", (double)s->size);
    else
        put_text(sub, "space", id, "SIZE_OF_ENTITY_SPACE", counted ? tune_index_text(s->size, size) : "uncountable");
    if (counted && s->constraint_count > 0 && (error > 0 || isnan(allowed)))
        put_text(sub, "space", id, "ALLOWED_ENTITIES (an estimate)", tune_space_allowed_text(allowed, error, text));
    else if (counted && s->constraint_count > 0)
        put_figure(sub, "space", id, "ALLOWED_ENTITIES", rint(allowed));
    if (counted && error == 0 && !isnan(allowed))
        put_figure(sub, "space", id, "UNMEASURED_ENTITIES", (s->constraint_count ? allowed : (double)s->size) - (double)c.measured);
    put_figure(sub, "space", id, "MATCHING_ENTITIES", (double)c.matching);
    put_figure(sub, "space", id, "MATCHING_WITH_MEASUREMENTS", (double)c.matching_results);
    put_figure(sub, "space", id, "ENTITIES_WITH_ALL_MEASUREMENTS", (double)c.measured_all);
    put_figure(sub, "space", id, "ENTITIES_WITH_PARTIAL_MEASUREMENTS", (double)c.measured_partly);
    put_figure(sub, "space", id, "MATCHING_ENTITIES_WITH_ALL_MEASUREMENTS", (double)c.matching_all);
    return 0;
}

/* ---- the store ---- */

/* Count the rows of a table, and their entities. */
static int count_table(struct tune_subject *s, const char *table, int64_t *rows, struct tune_uids *entities)
{
    const struct tune_cell *cells;
    int more;
    struct tune_scan *scan = TUNE_SCAN(s->q->store, table, TUNE_KEY_ENTITY);
    for (; (more = tune_scan_next(scan, &cells)) == 1; ++*rows)
        if ((more = add_hash(entities, cells[0].text)) < 0)
            break;
    tune_scan_free(scan);
    return more;
}

static int put_store(struct tune_subject *s)
{
    struct tune_uids entities = {0};
    int64_t all = 0;
    int tables;
    const char *const *names = tune_store_tables(s->q->store, &tables), *id = tune_store_id(s->q->store);
    TRY(names ? 0 : -1);
    int64_t *rows;
    TAKE(rows, s->a, tables);
    for (int i = 0; i < tables; i++) {
        TRY(count_table(s, names[i], &rows[i], &entities));
        all += rows[i];
    }
    put_figure(s, "store", id, "ENTITIES", (double)different(&entities));
    put_figure(s, "store", id, "RESULTS", (double)all);
    put_figure(s, "store", id, "EXPERIMENTS", tables);
    for (int i = 0; i < tables; i++)
        put_figure(s, "experiment", names[i], "RESULTS", (double)rows[i]);
    tune_uids_free(&entities);
    return 0;
}

enum { MEASURED, REPLAYED, INVALID, FAILED, FIGURES };

/* Count the requests of each operation in `records` ("first.json"). They are counted in the table,
 * because a record has only the counts of one process. */
static int count_operations(struct tune_subject *s, char *const *records, int count, int64_t (*figures)[FIGURES])
{
    const struct tune_cell *cells;
    int more, at = 0;
    struct tune_scan *scan =
        TUNE_SCAN(s->q->store, TUNE_STORE_REQUESTS, TUNE_REQUEST_OPERATION, TUNE_REQUEST_TYPE, TUNE_REQUEST_STATUS);
    while ((more = tune_scan_next(scan, &cells)) == 1) {
        size_t n = strlen(cells[0].text);
        for (int i = 0; i < count; i++, at = (at + 1) % count) /* most rows have the same operation as the previous row */
            if (!strncmp(records[at], cells[0].text, n) && !strcmp(records[at] + n, ".json"))
                break;
        if (count == 0 || strncmp(records[at], cells[0].text, n) || strcmp(records[at] + n, ".json"))
            continue; /* the operation's record was removed */
        figures[at][strcmp(cells[1].text, "replayed") ? MEASURED : REPLAYED]++;
        figures[at][INVALID] += !strcmp(cells[2].text, "invalid");
        figures[at][FAILED] += !strcmp(cells[2].text, "failed");
    }
    tune_scan_free(scan);
    return more;
}

static void put_recorded_operation(struct tune_subject *s, const char *id, const int64_t counted[FIGURES])
{
    static const char *const names[FIGURES] = {"MEASURED", "REPLAYED", "INVALID", "FAILED"};
    struct tune_operation_record r;
    if (tune_operation_record_read(s->q->store, id, &r) < 0) {
        put_text(s, "operation", id, "STATUS", tune_error_message());
        tune_error_clear();
        return;
    }
    put_text(s, "operation", id, "STATUS", r.status);
    put_text(s, "operation", id, "SPACE", r.space);
    put_time(s, id, "STARTED", r.started_s);
    if (r.planned > 0)
        put_figure(s, "operation", id, "PLANNED", (double)r.planned);
    for (int i = 0; i < FIGURES; i++)
        if (counted[i] > 0)
            put_figure(s, "operation", id, names[i], (double)counted[i]);
    tune_operation_record_free(&r);
}

static bool has_labels(const struct tune_space *s, const char *const *wanted, int count)
{
    for (int i = 0; i < count; i++)
        if (tune_name_find(s->labels, s->label_count, wanted[i]) < 0)
            return false;
    return true;
}

/* Add rows for a recorded space, if it has the labels: its file and metadata. */
static void put_recorded_space(struct tune_subject *sub, const char *id, const char *path, const char *const *labels, int count)
{
    struct tune_space *s = tune_space_read(path);
    if (!s)
        put_text(sub, "space", id, "FILE", tune_error_message());
    tune_error_clear();
    if (s && has_labels(s, labels, count)) {
        put_text(sub, "space", id, "FILE", path);
        if (s->name)
            put_text(sub, "space", id, "NAME", s->name);
        if (s->description)
            put_text(sub, "space", id, "DESCRIPTION", s->description);
        for (int i = 0; i < s->label_count; i++)
            put_text(sub, "space", id, "LABEL", s->labels[i]);
    }
    tune_space_free(s);
}

static void remove_extension(char *name)
{
    char *dot = strrchr(name, '.');
    if (dot)
        *dot = 0;
}

static int put_operations(struct tune_subject *s)
{
    int count;
    char **names = tune_store_records(s->q->store, "operations", &count);
    TRY(names ? 0 : -1);
    int64_t(*figures)[FIGURES];
    TAKE(figures, s->a, count);
    int code = count_operations(s, names, count, figures);
    for (int i = 0; i < count && code == 0; i++) {
        remove_extension(names[i]);
        put_recorded_operation(s, names[i], figures[i]);
    }
    tune_store_records_free(names, count);
    return code;
}

static int put_spaces(struct tune_subject *s)
{
    const char *labels[MOST_LABELS];
    char path[TUNE_PATH_MAX];
    int count, label_count = tune_subject_list(s, s->q->labels, labels, MOST_LABELS);
    TRY(label_count);
    char **names = tune_store_records(s->q->store, "spaces", &count);
    TRY(names ? 0 : -1);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/spaces/%s", tune_store_folder(s->q->store), names[i]);
        remove_extension(names[i]);
        put_recorded_space(s, names[i], path, labels, label_count);
    }
    tune_store_records_free(names, count);
    return 0;
}

static int status(struct tune_subject *s)
{
    const struct tune_question *q = s->q;
    tune_answer_columns(s->a, headings, 4);
    s->a->columns[s->a->count - 1].digits = 15;
    if (q->about && q->labels)
        return tune_error_usage("`label` chooses spaces of the store, so do not name %s", q->about);
    if (q->about && s->kind == TUNE_ABOUT_OPERATION)
        return put_operation(s, s->name);
    if (q->about)
        return put_space(s);
    if (!q->labels) {
        TRY(put_store(s));
        TRY(put_operations(s));
    }
    return put_spaces(s);
}

struct tune_answer_table *tune_ask_status(const struct tune_question *q)
{
    return tune_subject_answer(q, "status", status);
}
