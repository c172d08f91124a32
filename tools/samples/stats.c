/* stats.c - count what a store, a space or an operation has, under the names of ado's `show
 * stats`. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/nearest.h"
#include "sweeps/discovery/uids.h"
#include "samples.h"

enum { MOST_LABELS = 16 };
static const char *const headings[] = {"kind", "name", "figure", "value"};

/* A row: what the figure is of, and the figure. A row that cannot be written is told at the end. */
static void begin(const char *kind, const char *name, const char *figure)
{
    samples_text(kind);
    samples_text(name);
    samples_text(figure);
}

static void put(const char *kind, const char *name, const char *figure, double value)
{
    begin(kind, name, figure);
    samples_number(value, true, 15);
    samples_end_row();
}

static void put_text(const char *kind, const char *name, const char *figure, const char *value)
{
    begin(kind, name, figure);
    samples_text(value);
    samples_end_row();
}

static void put_time(const char *name, const char *figure, double seconds)
{
    begin("operation", name, figure);
    samples_time(seconds > 0 ? seconds : NAN);
    samples_end_row();
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
    TRY(count_requests(id, &c));
    TRY(tune_operation_record_read(samples.store, id, &r));
    put_text("operation", id, "SPACE", r.space);
    put_text("operation", id, "STATUS", r.status);
    put_time(id, "STARTED", r.started_s);
    put_time(id, "ENDED", r.ended_s);
    put("operation", id, "PLANNED", (double)r.planned);
    put("operation", id, "TOTAL_RESULTS", (double)c.results);
    put("operation", id, "SUCCESSFUL_RESULTS", (double)(c.results - c.failed_results));
    put("operation", id, "FAILED_RESULTS", (double)c.failed_results);
    put("operation", id, "MEASURED_ENTITIES", (double)different(&c.entities));
    put("operation", id, "TOTAL_REQUESTS", (double)c.requests);
    put("operation", id, "FAILED_REQUESTS", (double)c.failed_requests);
    put("operation", id, "SUCCESSFUL_REQUESTS", (double)(c.requests - c.failed_requests));
    tune_uids_free(&c.entities);
    tune_operation_record_free(&r);
    return 0;
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
    put("space", id, "EXPERIMENTS", s->reference_count);
    put("space", id, "OPERATIONS", operations);
    put("space", id, "EXPLORE_OPERATIONS", operations);
    put("space", id, "MEASURED_ENTITIES", (double)c.measured);
    if (counted && s->size < 1000000000000000)
        put("space", id, "SIZE_OF_ENTITY_SPACE", (double)s->size);
    else
        put_text("space", id, "SIZE_OF_ENTITY_SPACE", counted ? tune_index_text(s->size, size) : "uncountable");
    if (counted && s->constraint_count > 0)
        put("space", id, error > 0 ? "ALLOWED_ENTITIES (an estimate)" : "ALLOWED_ENTITIES", rint(allowed));
    if (counted && error == 0)
        put("space", id, "UNMEASURED_ENTITIES", (s->constraint_count ? allowed : (double)s->size) - (double)c.measured);
    put("space", id, "MATCHING_ENTITIES", (double)c.matching);
    put("space", id, "MATCHING_WITH_MEASUREMENTS", (double)c.matching_results);
    put("space", id, "ENTITIES_WITH_ALL_MEASUREMENTS", (double)c.measured_all);
    put("space", id, "ENTITIES_WITH_PARTIAL_MEASUREMENTS", (double)c.measured_partly);
    put("space", id, "MATCHING_ENTITIES_WITH_ALL_MEASUREMENTS", (double)c.matching_all);
    return 0;
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
    int64_t all = 0;
    int tables;
    const char *const *names = tune_store_tables(samples.store, &tables), *id = tune_store_id(samples.store);
    TRY(names ? 0 : -1);
    int64_t *rows = samples_take(tables, sizeof *rows);
    for (int i = 0; i < tables; i++) {
        TRY(count_table(names[i], &rows[i], &entities));
        all += rows[i];
    }
    put("store", id, "ENTITIES", (double)different(&entities));
    put("store", id, "RESULTS", (double)all);
    put("store", id, "EXPERIMENTS", tables);
    for (int i = 0; i < tables; i++)
        put("experiment", names[i], "RESULTS", (double)rows[i]);
    tune_uids_free(&entities);
    return 0;
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

static void put_recorded_operation(const char *id, const int64_t counted[FIGURES])
{
    static const char *const names[FIGURES] = {"MEASURED", "REPLAYED", "INVALID", "FAILED"};
    struct tune_operation_record r;
    if (tune_operation_record_read(samples.store, id, &r) < 0) {
        put_text("operation", id, "STATUS", tune_error_message());
        tune_error_clear();
        return;
    }
    put_text("operation", id, "STATUS", r.status);
    put_text("operation", id, "SPACE", r.space);
    put_time(id, "STARTED", r.started_s);
    if (r.planned > 0)
        put("operation", id, "PLANNED", (double)r.planned);
    for (int i = 0; i < FIGURES; i++)
        if (counted[i] > 0)
            put("operation", id, names[i], (double)counted[i]);
    tune_operation_record_free(&r);
}

static bool has_labels(const struct tune_space *s, const char *const *wanted, int count)
{
    for (int i = 0; i < count; i++)
        if (tune_name_find(s->labels, s->label_count, wanted[i]) < 0)
            return false;
    return true;
}

/* A recorded space, if it has the labels of --label: its file and its metadata. */
static void put_recorded_space(const char *id, const char *path, const char *const *labels, int count)
{
    struct tune_space *s = tune_space_read(path);
    if (!s)
        put_text("space", id, "FILE", tune_error_message());
    tune_error_clear();
    if (s && has_labels(s, labels, count)) {
        put_text("space", id, "FILE", path);
        if (s->name)
            put_text("space", id, "NAME", s->name);
        if (s->description)
            put_text("space", id, "DESCRIPTION", s->description);
        for (int i = 0; i < s->label_count; i++)
            put_text("space", id, "LABEL", s->labels[i]);
    }
    tune_space_free(s);
}

static void drop_extension(char *name)
{
    char *dot = strrchr(name, '.');
    if (dot)
        *dot = 0;
}

static int put_operations(void)
{
    int count;
    char **names = tune_store_records(samples.store, "operations", &count);
    TRY(names ? 0 : -1);
    int64_t(*figures)[FIGURES] = samples_take(count, sizeof *figures);
    int code = count_operations(names, count, figures);
    for (int i = 0; i < count && code == 0; i++) {
        drop_extension(names[i]);
        put_recorded_operation(names[i], figures[i]);
    }
    tune_store_records_free(names, count);
    return code;
}

static int put_spaces(void)
{
    const char *labels[MOST_LABELS];
    char path[TUNE_PATH_MAX];
    int count, label_count = samples_split(my.labels, labels, MOST_LABELS);
    TRY(label_count);
    char **names = tune_store_records(samples.store, "spaces", &count);
    TRY(names ? 0 : -1);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/spaces/%s", my.store, names[i]);
        drop_extension(names[i]);
        put_recorded_space(names[i], path, labels, label_count);
    }
    tune_store_records_free(names, count);
    return 0;
}

int samples_stats(void)
{
    const char *word = samples_word(0);
    samples_columns(headings, 4);
    samples_begin(false);
    if (word && my.labels)
        return tune_error_usage("--label chooses among all spaces of the store; leave %s out", word);
    if (word)
        TRY(!strncmp(word, "space-", 6) || tune_file_exists(word) ? put_space(word) : put_operation(word));
    if (!word && !my.labels) {
        TRY(put_store());
        TRY(put_operations());
    }
    TRY(word ? 0 : put_spaces());
    return samples_end();
}
