/* record.c - operations/<id>.json: the options and the progress of an operation. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "files/cjson.h"
#include "core/nearest.h"
#include "core/print.h"
#include "core/random.h"
#include "core/try.h"
#include "sweeps/discovery/results.h"
#include "sweeps/discovery/uids.h"

enum { LIMIT = 1 << 20 };

enum kind { TEXT, BOOL, INT, WHOLE, NUMBER, TIME, ORDER, FILTER, LINE };

/* A member of the file and of the record. It is a text of at most `high` bytes, or a number from
 * `low` to `high`. TIME: seconds since 1970, left out if 0; the time is also written as text. LINE:
 * a text of any length, left out if NULL. */
struct member {
    const char *key;
    enum kind kind;
    size_t at;
    double low, high;
};

#define AT(member)  offsetof(struct tune_operation_record, member)
#define TEXT_AT(member) TEXT, AT(member), 0, sizeof((struct tune_operation_record *)0)->member - 1
#define MOST_EXACT 9007199254740992.0

static const struct member figures[] = {
    {"operation", TEXT_AT(id)},
    {"space", TEXT_AT(space)},
    {"status", TEXT_AT(status)},
    {"started_s", TIME, AT(started_s), 0, 1e12},
    {"ended_s", TIME, AT(ended_s), 0, 1e12},
    {"planned", WHOLE, AT(planned), 0, MOST_EXACT},
    {"measured", WHOLE, AT(measured), 0, MOST_EXACT},
    {"replayed", WHOLE, AT(replayed), 0, MOST_EXACT},
    {"refused", WHOLE, AT(refused), 0, MOST_EXACT},
    {"failed", WHOLE, AT(failed), 0, MOST_EXACT},
    {"invalid", WHOLE, AT(invalid), 0, MOST_EXACT},
    {"replayed_invalid", WHOLE, AT(replayed_invalid), 0, MOST_EXACT},
}, options[] = {
    {"order", ORDER, AT(options.order.mode), 0, 0},
    {"seed", WHOLE, AT(options.order.seed), 0, MOST_EXACT},
    {"entities", WHOLE, AT(options.order.limit), -1, MOST_EXACT},
    {"selector", BOOL, AT(options.selector), 0, 1},
    {"memoize", BOOL, AT(options.memoize), 0, 1},
    {"filter", FILTER, AT(options.filter), 0, 0},
    {"repeat", INT, AT(options.repeat), 1, 1000000},
    {"accept", INT, AT(options.accept), 0, 15},
    {"retries", INT, AT(retries), 0, 1000000},
    {"until_stable", NUMBER, AT(until_stable), 0, 1e9},
    {"where", LINE, AT(where), 0, 0},
    {"entity", LINE, AT(entity), 0, 0},
    {"set", LINE, AT(set), 0, 0},
    {"minimize", LINE, AT(minimize), 0, 0},
    {"maximize", LINE, AT(maximize), 0, 0},
    {"budget", LINE, AT(budget), 0, 0},
    {"where_target", LINE, AT(where_target), 0, 0},
    {"stop_when", LINE, AT(stop_when), 0, 0},
    {"actuator", LINE, AT(actuator), 0, 0},
    {"data_directory", LINE, AT(data_directory), 0, 0},
    {"hf_home", LINE, AT(hf_home), 0, 0},
    {"factor", NUMBER, AT(factor), 0, 1000},
    {"launcher", LINE, AT(launcher), 0, 0},
    {"slurm", LINE, AT(slurm), 0, 0},
    {"launcher_mark", LINE, AT(launcher_mark), 0, 0},
    {"points_per_job", INT, AT(points_per_job), 0, 1000000},
    {"max_jobs", INT, AT(max_jobs), 0, 1000000},
};
enum { FIGURES = sizeof figures / sizeof *figures, OPTIONS = sizeof options / sizeof *options };

/* ---- writing ---- */

/* Write a time twice: "started" as text, and "started_s" in seconds. */
static bool put_time(cJSON *object, const char *key, double seconds)
{
    char text[40], name[16];
    struct tm utc;
    time_t whole = (time_t)seconds;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&whole, &utc));
    snprintf(name, sizeof name, "%.*s", (int)strlen(key) - 2, key);
    return seconds == 0 || (tune_cjson_put_text(object, name, text) && tune_cjson_put_number(object, key, seconds));
}

static bool put_members(cJSON *object, const struct member *m, int count, const struct tune_operation_record *r)
{
    bool good = object;
    for (; good && count > 0; m++, count--) {
        const void *at = (const char *)r + m->at;
        switch (m->kind) {
        case TEXT: good = tune_cjson_put_text(object, m->key, at); break;
        case BOOL: good = cJSON_AddBoolToObject(object, m->key, *(const bool *)at); break;
        case INT: good = tune_cjson_put_whole(object, m->key, *(const int *)at); break;
        case WHOLE: good = tune_cjson_put_whole(object, m->key, *(const int64_t *)at); break;
        case NUMBER: good = tune_cjson_put_number(object, m->key, *(const double *)at); break;
        case TIME: good = put_time(object, m->key, *(const double *)at); break;
        case LINE: good = !*(const char *const *)at || tune_cjson_put_text(object, m->key, *(const char *const *)at); break;
        case ORDER: good = tune_cjson_put_text(object, m->key, tune_order_name(*(const enum tune_order_mode *)at)); break;
        case FILTER: good = tune_cjson_put_text(object, m->key, tune_filter_names[*(const enum tune_filter *)at]); break;
        }
    }
    return good;
}

static bool put_options(cJSON *object, const struct tune_operation_record *r)
{
    cJSON *grouping = cJSON_AddArrayToObject(object, "grouping");
    bool good = grouping && put_members(object, options, OPTIONS, r);
    for (int i = 0; good && i < r->options.order.group_count; i++)
        good = cJSON_AddItemToArray(grouping, cJSON_CreateString(r->options.order.grouping[i]));
    return good;
}

int tune_operation_begin(struct tune_store *s, const char *id, struct tune_lease *lease)
{
    char folder[TUNE_PATH_MAX], name[64], who[128];
    uint64_t number;
    TRY(tune_random_fresh(&number, sizeof number));
    TRY(tune_path(folder, "%s/claims/%s", tune_store_folder(s), id));
    snprintf(name, sizeof name, TUNE_OPERATION_LEASE "%016" PRIx64, number);
    int mine = tune_lease_take(lease, folder, name, NULL, who, sizeof who);
    return mine < 0 ? -1 : 0;
}

int tune_operation_record_write(struct tune_store *s, const struct tune_operation_record *r)
{
    char name[160];
    cJSON *json = cJSON_CreateObject();
    bool good = put_members(json, figures, FIGURES, r) && put_options(cJSON_AddObjectToObject(json, "options"), r);
    char *text = good ? cJSON_Print(json) : NULL;
    cJSON_Delete(json);
    if (!text)
        return tune_error_cannot("out of memory while operation %s is recorded", r->id);
    snprintf(name, sizeof name, "%s.json", r->id);
    int code = tune_store_record(s, "operations", name, text, strlen(text));
    cJSON_free(text);
    return code;
}

/* ---- reading ---- */

/* Read the members. Returns the key of the first bad one, or NULL. */
static const char *read_members(const cJSON *object, const struct member *m, int count, struct tune_operation_record *r)
{
    for (; count > 0; m++, count--) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, m->key);
        void *at = (char *)r + m->at;
        double number = cJSON_IsNumber(item) ? item->valuedouble : NAN;
        const char *text = cJSON_IsString(item) ? item->valuestring : NULL;
        bool good = number >= m->low && number <= m->high;
        int filter;
        /* records of older builds lack these members */
        if (!item && (m->kind == LINE || !strcmp(m->key, "invalid") || !strcmp(m->key, "replayed_invalid") || !strcmp(m->key, "ended_s") ||
                      !strcmp(m->key, "factor") || !strcmp(m->key, "points_per_job") || !strcmp(m->key, "max_jobs")))
            continue;
        switch (m->kind) {
        case TEXT:
            if ((good = text))
                snprintf(at, (size_t)m->high + 1, "%s", text);
            break;
        case BOOL:
            good = cJSON_IsBool(item);
            *(bool *)at = cJSON_IsTrue(item);
            break;
        case INT: *(int *)at = good ? (int)number : 0; break;
        case WHOLE: *(int64_t *)at = good ? (int64_t)number : 0; break;
        case LINE:
            good = text;
            *(const char **)at = text;
            break;
        case ORDER:
            if ((good = text) && tune_order_mode(text, at) < 0)
                *(enum tune_order_mode *)at = TUNE_ORDER_UNKNOWN; /* its results can be read all the same */
            tune_error_clear();
            break;
        case FILTER:
            good = text && (filter = tune_filter_find(text)) >= 0;
            *(enum tune_filter *)at = good ? (enum tune_filter)filter : TUNE_FILTER_NONE;
            break;
        default: *(double *)at = number;
        }
        if (!good)
            return m->key;
    }
    return NULL;
}

static int read_grouping(const cJSON *grouping, struct tune_operation_record *r, const char **wrong)
{
    const cJSON *item;
    if (!(r->grouping = calloc((size_t)cJSON_GetArraySize(grouping) + 1, sizeof *r->grouping)))
        return tune_error_cannot("out of memory while an operation's record is read");
    cJSON_ArrayForEach(item, grouping) {
        if (!cJSON_IsString(item))
            *wrong = "grouping";
        else
            r->grouping[r->options.order.group_count++] = item->valuestring;
    }
    r->options.order.grouping = r->grouping;
    return 0;
}

/* Report that there is no such operation, and list the others. */
static int no_such(struct tune_store *s, const char *id)
{
    char others[1024] = "";
    int count;
    char **names = tune_store_records(s, "operations", &count);
    for (int i = 0; names && i < count; i++) {
        size_t length = strlen(names[i]);
        if (length > 5 && !strcmp(names[i] + length - 5, ".json"))
            names[i][length - 5] = 0;
        tune_append_item(others, sizeof others, "%s", names[i]);
    }
    char hint[TUNE_HINT];
    tune_error_usage("%s: there is no operation %s in this store%s; there are: %s", tune_store_folder(s), id,
                     tune_nearest_hint(id, (const char *const *)names, names ? count : 0, hint), *others ? others : "none");
    tune_store_records_free(names, names ? count : 0);
    return -1;
}

/* Set the status to "dead" if it is "running", but no process has a lease. A killed process cannot
 * change its record. */
static int find_dead(struct tune_store *s, struct tune_operation_record *r)
{
    char folder[TUNE_PATH_MAX];
    if (strcmp(r->status, "running"))
        return 0;
    TRY(tune_path(folder, "%s/claims/%s", tune_store_folder(s), r->id));
    int alive = tune_lease_alive(folder, TUNE_OPERATION_LEASE);
    if (alive == 0)
        strcpy(r->status, "dead");
    return alive < 0 ? -1 : 0;
}

int tune_operation_record_read(struct tune_store *s, const char *id, struct tune_operation_record *r)
{
    char path[TUNE_PATH_MAX];
    *r = (struct tune_operation_record){0};
    if (!*id || strchr(id, '/') || strlen(id) >= sizeof r->id)
        return tune_error_usage("the name of an operation must have 1 to %zu characters, without "
                                "'/'",
                                sizeof r->id - 1);
    TRY(tune_path(path, "%s/operations/%s.json", tune_store_folder(s), id));
    if (!tune_file_exists(path))
        return no_such(s, id);
    if (!(r->json = tune_cjson_read(path, LIMIT)))
        return -1;
    const cJSON *asked = cJSON_GetObjectItemCaseSensitive(r->json, "options");
    const char *wrong = read_members(r->json, figures, FIGURES, r);
    wrong = wrong ? wrong : strcmp(r->id, id) ? "operation" : read_members(asked, options, OPTIONS, r);
    int code = read_grouping(cJSON_GetObjectItemCaseSensitive(asked, "grouping"), r, &wrong);
    if (wrong && code == 0)
        code = tune_error_set("%s: the record of this operation has a wrong value or none for "
                              "\"%s\"", path, wrong);
    if (code == 0)
        code = find_dead(s, r);
    if (code < 0)
        tune_operation_record_free(r);
    return code;
}

void tune_operation_record_free(struct tune_operation_record *r)
{
    cJSON_Delete(r->json);
    free(r->grouping);
    r->json = NULL;
    r->grouping = NULL;
}

int tune_operation_uids(struct tune_store *s, const char *id, struct tune_uids *uids)
{
    const struct tune_cell *cells;
    struct tune_operation_record record;
    int more;
    struct tune_scan *scan = TUNE_SCAN(s, TUNE_STORE_REQUESTS, TUNE_REQUEST_OPERATION, TUNE_REQUEST_UID);
    tune_scan_everything(scan);
    while ((more = tune_scan_next(scan, &cells)) == 1)
        if (!strcmp(cells[0].text, id) && !cells[1].absent && (more = tune_uids_add_text(uids, cells[1].text)) < 0)
            break;
    tune_scan_free(scan);
    TRY(more);
    tune_uids_sort(uids);
    if (uids->count > 0)
        return 0;
    TRY(tune_operation_record_read(s, id, &record)); /* the error lists the operations */
    tune_operation_record_free(&record);
    return 0;
}
