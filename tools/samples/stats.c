/* stats.c - count what a store, a space or an operation has, under the names of ado's `show
 * stats`. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/nearest.h"
#include "sweeps/discovery/uids.h"
#include "samples.h"

static const char *const headings[] = {"kind", "name", "figure", "value"};

/* What the figure is of, then the figure itself. */
static void begin(const char *kind, const char *name, const char *figure)
{
    samples_text(kind);
    samples_text(name);
    samples_text(figure);
}

static int put(const char *kind, const char *name, const char *figure, double value)
{
    begin(kind, name, figure);
    samples_number(value, true, 15);
    return samples_end_row();
}

static int put_text(const char *kind, const char *name, const char *figure, const char *value)
{
    begin(kind, name, figure);
    samples_text(value);
    return samples_end_row();
}

static int put_time(const char *name, const char *figure, double seconds)
{
    begin("operation", name, figure);
    samples_time(seconds > 0 ? seconds : NAN);
    return samples_end_row();
}

/* ---- an operation ---- */

struct counts {
    int64_t requests, failed_requests, results, failed_results;
    struct tune_uids entities; /* hashes of entities; each once, after sorting */
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
static int count_requests(const char *operation, struct counts *c)
{
    struct tune_uids asked = {0}, answered = {0};
    const struct tune_cell *cells;
    char text[2 * TUNE_STORE_TEXT_MAX];
    int more;
    struct tune_scan *scan = TUNE_SCAN(samples.store, TUNE_STORE_REQUESTS, TUNE_REQUEST_OPERATION, TUNE_REQUEST_INDEX,
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

static int put_operation(const char *id)
{
    struct tune_operation_record r;
    struct counts c = {0};
    TRY(tune_operation_record_read(samples.store, id, &r));
    int code = count_requests(id, &c);
    if (code == 0)
        code = put_text("operation", id, "SPACE", r.space);
    if (code == 0)
        code = put_text("operation", id, "STATUS", r.status);
    if (code == 0)
        code = put_time(id, "STARTED", r.started_s);
    if (code == 0)
        code = put_time(id, "ENDED", r.ended_s);
    const struct { const char *name; double value; } figures[] = {
        {"PLANNED", (double)r.planned},
        {"TOTAL_RESULTS", (double)c.results},
        {"SUCCESSFUL_RESULTS", (double)(c.results - c.failed_results)},
        {"FAILED_RESULTS", (double)c.failed_results},
        {"MEASURED_ENTITIES", (double)different(&c.entities)},
        {"TOTAL_REQUESTS", (double)c.requests},
        {"FAILED_REQUESTS", (double)c.failed_requests},
        {"SUCCESSFUL_REQUESTS", (double)(c.requests - c.failed_requests)},
    };
    for (size_t i = 0; i < sizeof figures / sizeof *figures && code == 0; i++)
        code = put("operation", id, figures[i].name, figures[i].value);
    tune_uids_free(&c.entities);
    tune_operation_record_free(&r);
    return code;
}

/* ---- a space ---- */

static int put_space(const char *path)
{
    struct tune_view_counts c;
    char id[32], size[48];
    int operations;
    double allowed, error;
    TRY(samples_open_space(path));
    const struct tune_space *s = samples.space;
    struct tune_view_options o = {.include = TUNE_VIEW_MATCHING};
    struct tune_view *v = tune_view_open(samples.store, s, samples.protocols, &o);
    char **ids = v && tune_view_counted(v, &c) == 0 ? tune_view_operations(samples.store, s, &operations) : NULL;
    tune_view_free(v);
    if (!ids)
        return -1;
    tune_store_records_free(ids, operations);
    TRY(tune_space_count_allowed(s, &allowed, &error));
    bool counted = s->size > 0 && s->size != TUNE_INDEX_MAX;
    snprintf(id, sizeof id, "space-%s", s->id);
    TRY(put("space", id, "EXPERIMENTS", s->reference_count));
    TRY(put("space", id, "OPERATIONS", operations));
    TRY(put("space", id, "EXPLORE_OPERATIONS", operations));
    TRY(put("space", id, "MEASURED_ENTITIES", (double)c.measured));
    if (counted && s->size < 1000000000000000)
        TRY(put("space", id, "SIZE_OF_ENTITY_SPACE", (double)s->size));
    else
        TRY(put_text("space", id, "SIZE_OF_ENTITY_SPACE", counted ? tune_index_text(s->size, size) : "uncountable"));
    if (counted && s->constraint_count > 0)
        TRY(put("space", id, error > 0 ? "ALLOWED_ENTITIES (an estimate)" : "ALLOWED_ENTITIES", rint(allowed)));
    if (counted && error == 0)
        TRY(put("space", id, "UNMEASURED_ENTITIES", (s->constraint_count ? allowed : (double)s->size) - (double)c.measured));
    TRY(put("space", id, "MATCHING_ENTITIES", (double)c.matching));
    TRY(put("space", id, "MATCHING_WITH_MEASUREMENTS", (double)c.matching_results));
    TRY(put("space", id, "ENTITIES_WITH_ALL_MEASUREMENTS", (double)c.measured_all));
    TRY(put("space", id, "ENTITIES_WITH_PARTIAL_MEASUREMENTS", (double)c.measured_partly));
    return put("space", id, "MATCHING_ENTITIES_WITH_ALL_MEASUREMENTS", (double)c.matching_all);
}

/* ---- the store ---- */

/* Count the rows of a table, and their entities. */
static int count_table(const char *table, int64_t *rows, struct tune_uids *entities)
{
    const struct tune_cell *cells;
    int more;
    struct tune_scan *scan = TUNE_SCAN(samples.store, table, TUNE_KEY_ENTITY);
    for (; (more = tune_scan_next(scan, &cells)) == 1; ++*rows)
        if ((more = add_hash(entities, cells[0].text)) < 0)
            break;
    tune_scan_free(scan);
    return more;
}

static int put_store(void)
{
    struct tune_uids entities = {0};
    int64_t all = 0, *rows;
    int tables, code = 0;
    const char *const *names = tune_store_tables(samples.store, &tables);
    if (!names || !(rows = calloc((size_t)tables + 1, sizeof *rows)))
        return names ? samples_no_memory() : -1;
    for (int i = 0; i < tables && code == 0; i++) {
        code = count_table(names[i], &rows[i], &entities);
        all += rows[i];
    }
    const char *id = tune_store_id(samples.store);
    if (code == 0 && (code = put("store", id, "ENTITIES", (double)different(&entities))) == 0 &&
        (code = put("store", id, "RESULTS", (double)all)) == 0)
        code = put("store", id, "EXPERIMENTS", tables);
    for (int i = 0; i < tables && code == 0; i++)
        code = put("experiment", names[i], "RESULTS", (double)rows[i]);
    tune_uids_free(&entities);
    free(rows);
    return code;
}

enum { MEASURED, REPLAYED, INVALID, FAILED, FIGURES };

/* Count the requests of operations, by their ids' places in `records` ("first.json"). It counts in
 * the table, because a record only knows its own process. */
static int count_operations(char *const *records, int count, int64_t (*figures)[FIGURES])
{
    const struct tune_cell *cells;
    int more, at = 0;
    struct tune_scan *scan =
        TUNE_SCAN(samples.store, TUNE_STORE_REQUESTS, TUNE_REQUEST_OPERATION, TUNE_REQUEST_TYPE, TUNE_REQUEST_STATUS);
    while ((more = tune_scan_next(scan, &cells)) == 1) {
        size_t n = strlen(cells[0].text);
        for (int i = 0; i < count; i++, at = (at + 1) % count) /* most rows have the operation of
                                                                * the row before */
            if (!strncmp(records[at], cells[0].text, n) && !strcmp(records[at] + n, ".json"))
                break;
        if (count == 0 || strncmp(records[at], cells[0].text, n) || strcmp(records[at] + n, ".json"))
            continue; /* an operation whose record was removed */
        figures[at][strcmp(cells[1].text, "replayed") ? MEASURED : REPLAYED]++;
        figures[at][INVALID] += !strcmp(cells[2].text, "invalid");
        figures[at][FAILED] += !strcmp(cells[2].text, "failed");
    }
    tune_scan_free(scan);
    return more;
}

static int put_recorded_operation(const char *id, const int64_t counted[FIGURES])
{
    struct tune_operation_record r;
    if (tune_operation_record_read(samples.store, id, &r) < 0) {
        int code = put_text("operation", id, "STATUS", tune_error_message());
        tune_error_clear();
        return code;
    }
    int code = put_text("operation", id, "STATUS", r.status);
    if (code == 0)
        code = put_text("operation", id, "SPACE", r.space);
    if (code == 0)
        code = put_time(id, "STARTED", r.started_s);
    const struct { const char *name; int64_t value; } figures[] = {
        {"PLANNED", r.planned}, {"MEASURED", counted[MEASURED]}, {"REPLAYED", counted[REPLAYED]},
        {"INVALID", counted[INVALID]}, {"FAILED", counted[FAILED]}};
    for (size_t i = 0; i < sizeof figures / sizeof *figures && code == 0; i++)
        if (figures[i].value > 0)
            code = put("operation", id, figures[i].name, (double)figures[i].value);
    tune_operation_record_free(&r);
    return code;
}

/* A recorded space, if it has the labels of --label: its file and its metadata. */
static int put_recorded_space(const char *id, const char *path)
{
    struct tune_space *s = tune_space_read(path);
    if (!s) {
        int code = put_text("space", id, "FILE", tune_error_message());
        tune_error_clear();
        return code;
    }
    const char *wanted[SAMPLES_KEPT];
    int code = 0, count = my.labels ? samples_split(my.labels, wanted, SAMPLES_KEPT) : 0;
    bool all = true;
    for (int i = 0; i < count; i++)
        all = all && tune_name_find(s->labels, s->label_count, wanted[i]) >= 0;
    if (count < 0 || !all) {
        tune_space_free(s);
        return count < 0 ? -1 : 0;
    }
    code = put_text("space", id, "FILE", path);
    if (code == 0 && s->name)
        code = put_text("space", id, "NAME", s->name);
    if (code == 0 && s->description)
        code = put_text("space", id, "DESCRIPTION", s->description);
    for (int i = 0; i < s->label_count && code == 0; i++)
        code = put_text("space", id, "LABEL", s->labels[i]);
    tune_space_free(s);
    return code;
}

static int put_records(const char *kind)
{
    int count, code = 0;
    bool operations = !strcmp(kind, "operations");
    char **names = tune_store_records(samples.store, kind, &count);
    TRY(names ? 0 : -1);
    int64_t(*figures)[FIGURES] = calloc((size_t)count + 1, sizeof *figures);
    if (!figures)
        code = samples_no_memory();
    else if (operations)
        code = count_operations(names, count, figures);
    for (int i = 0; i < count && code == 0; i++) {
        char path[TUNE_PATH_MAX];
        code = tune_path(path, "%s/%s/%s", my.store, kind, names[i]);
        char *dot = strrchr(names[i], '.');
        if (dot)
            *dot = 0;
        if (code == 0)
            code = operations ? put_recorded_operation(names[i], figures[i]) : put_recorded_space(names[i], path);
    }
    free(figures);
    tune_store_records_free(names, count);
    return code;
}

int samples_stats(void)
{
    const char *word = samples_word(0);
    TRY(samples_begin_table(headings, 4));
    if (word && my.labels)
        return tune_error_usage("--label chooses among all spaces of the store; leave %s out", word);
    if (!word) {
        if (!my.labels) {
            TRY(put_store());
            TRY(put_records("operations"));
        }
        TRY(put_records("spaces"));
    } else {
        TRY(!strncmp(word, "space-", 6) || tune_file_exists(word) ? put_space(word) : put_operation(word));
    }
    return samples_end();
}
