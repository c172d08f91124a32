/* record.c - operations/<id>.json: what an operation was asked and how far it came. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "files/cjson.h"
#include "core/error.h"
#include "core/nearest.h"
#include "core/try.h"
#include "sweeps/discovery/results.h"

enum { LIMIT = 1 << 20 };

static const char *const filters[] = {"noFilter", "measured", "unmeasured", "partial"};

static bool put_time(cJSON *object, const char *key, double seconds)
{
    char text[40];
    struct tm utc;
    time_t whole = (time_t)seconds;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&whole, &utc));
    return tune_cjson_put_text(object, key, text);
}

static bool put_options(cJSON *object, const struct tune_operation_record *r)
{
    const struct tune_jobs_options *o = &r->options;
    cJSON *grouping = cJSON_AddArrayToObject(object, "grouping");
    bool good = grouping && tune_cjson_put_text(object, "order", tune_order_name(o->order.mode)) &&
                tune_cjson_put_whole(object, "seed", (int64_t)o->order.seed) &&
                tune_cjson_put_whole(object, "entities", o->order.limit) &&
                cJSON_AddBoolToObject(object, "selector", o->selector) && cJSON_AddBoolToObject(object, "memoize", o->memoize) &&
                tune_cjson_put_text(object, "filter", filters[o->filter]) && tune_cjson_put_whole(object, "repeat", o->repeat) &&
                tune_cjson_put_whole(object, "accept", o->accept) && tune_cjson_put_whole(object, "retries", r->retries) &&
                tune_cjson_put_number(object, "until_stable", r->until_stable);
    for (int i = 0; good && i < o->order.group_count; i++)
        good = cJSON_AddItemToArray(grouping, cJSON_CreateString(o->order.grouping[i]));
    return good;
}

int tune_operation_begin(struct tune_store *s, const char *id, struct tune_claim *claim)
{
    char folder[TUNE_PATH_MAX], name[64], who[128];
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return tune_error_set("no random bytes from the kernel: %s", strerror(errno));
    TRY(tune_path(folder, "%s/claims/%s", tune_store_folder(s), id));
    snprintf(name, sizeof name, TUNE_OPERATION_CLAIM "%016" PRIx64, number);
    int mine = tune_claim_take(claim, folder, name, who, sizeof who);
    return mine < 0 ? -1 : 0;
}

int tune_operation_record_write(struct tune_store *s, const struct tune_operation_record *r)
{
    char name[160];
    cJSON *json = cJSON_CreateObject();
    bool good = tune_cjson_put_text(json, "operation", r->id) && tune_cjson_put_text(json, "space", r->space) &&
                tune_cjson_put_text(json, "status", r->status) && put_time(json, "started", r->started_s) &&
                tune_cjson_put_number(json, "started_s", r->started_s);
    if (good && r->ended_s > 0)
        good = put_time(json, "ended", r->ended_s) && tune_cjson_put_number(json, "ended_s", r->ended_s);
    good = good && tune_cjson_put_whole(json, "planned", r->planned) && tune_cjson_put_whole(json, "measured", r->measured) &&
           tune_cjson_put_whole(json, "replayed", r->replayed) && tune_cjson_put_whole(json, "refused", r->refused) &&
           tune_cjson_put_whole(json, "failed", r->failed) && tune_cjson_put_whole(json, "invalid", r->invalid) &&
           put_options(cJSON_AddObjectToObject(json, "options"), r);
    char *text = good ? cJSON_Print(json) : NULL;
    cJSON_Delete(json);
    if (!text) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory while operation %s is recorded", r->id);
        return -1;
    }
    snprintf(name, sizeof name, "%s.json", r->id);
    int code = tune_store_record(s, "operations", name, text, strlen(text));
    cJSON_free(text);
    return code;
}

/* ---- reading ---- */

struct members {
    const cJSON *object;
    const char *wrong; /* the first one that makes no sense */
};

static double number(struct members *m, const char *key, double low, double high)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(m->object, key);
    if (cJSON_IsNumber(item) && item->valuedouble >= low && item->valuedouble <= high)
        return item->valuedouble;
    m->wrong = m->wrong ? m->wrong : key;
    return low;
}

static bool boolean(struct members *m, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(m->object, key);
    if (!cJSON_IsBool(item))
        m->wrong = m->wrong ? m->wrong : key;
    return cJSON_IsTrue(item);
}

static const char *text(struct members *m, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(m->object, key);
    if (cJSON_IsString(item))
        return item->valuestring;
    m->wrong = m->wrong ? m->wrong : key;
    return "";
}

static int read_grouping(struct members *m, struct tune_operation_record *r)
{
    const cJSON *grouping = cJSON_GetObjectItemCaseSensitive(m->object, "grouping"), *item;
    int count = cJSON_GetArraySize(grouping);
    if (!(r->grouping = calloc((size_t)count + 1, sizeof *r->grouping))) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory while an operation's record is read");
        return -1;
    }
    cJSON_ArrayForEach(item, grouping) {
        if (!cJSON_IsString(item))
            m->wrong = "grouping";
        else
            r->grouping[r->options.order.group_count++] = item->valuestring;
    }
    r->options.order.grouping = r->grouping;
    return 0;
}

static int read_options(struct members *m, struct tune_operation_record *r)
{
    struct tune_jobs_options *o = &r->options;
    m->object = cJSON_GetObjectItemCaseSensitive(r->json, "options");
    if (tune_order_mode(text(m, "order"), &o->order.mode) < 0)
        m->wrong = "order";
    o->order.seed = (uint64_t)number(m, "seed", 0, 9007199254740992.0);
    o->order.limit = (int64_t)number(m, "entities", -1, 9007199254740992.0);
    o->selector = boolean(m, "selector");
    o->memoize = boolean(m, "memoize");
    o->repeat = (int)number(m, "repeat", 1, 1000000);
    o->accept = (int)number(m, "accept", 0, 15);
    r->retries = (int)number(m, "retries", 0, 1000000);
    r->until_stable = number(m, "until_stable", 0, 1e9);
    const char *filter = text(m, "filter");
    int f = 0;
    while (f < 4 && strcmp(filter, filters[f]))
        f++;
    if (f == 4)
        m->wrong = "filter";
    o->filter = (enum tune_filter)(f % 4);
    return read_grouping(m, r);
}

/* The error that there is no such operation, naming those that are. */
static int no_such(struct tune_store *s, const char *id)
{
    char others[1024] = "";
    int count;
    char **names = tune_store_records(s, "operations", &count);
    for (int i = 0; names && i < count; i++) {
        size_t n = strlen(others), length = strlen(names[i]);
        if (length > 5 && !strcmp(names[i] + length - 5, ".json"))
            names[i][length - 5] = 0;
        if (n + length + 8 < sizeof others)
            snprintf(others + n, sizeof others - n, "%s%s", n ? ", " : "", names[i]);
        else if (n + 5 < sizeof others && strcmp(others + n - 3, "..."))
            strcpy(others + n, ", ...");
    }
    const char *nearest = names ? tune_nearest(id, (const char *const *)names, count, NULL) : NULL;
    tune_error_usage("%s: there is no operation %s in this store%s%s%s; there are: %s",
                     tune_store_folder(s), id, nearest ? " (the nearest is " : "",
                     nearest ? nearest : "", nearest ? ")" : "", *others ? others : "none");
    tune_store_records_free(names, names ? count : 0);
    return -1;
}

/* Nobody writes that a process was killed: what still runs holds a claim. */
static int find_dead(struct tune_store *s, struct tune_operation_record *r)
{
    char folder[TUNE_PATH_MAX];
    if (strcmp(r->status, "running"))
        return 0;
    TRY(tune_path(folder, "%s/claims/%s", tune_store_folder(s), r->id));
    int alive = tune_claim_alive(folder, TUNE_OPERATION_CLAIM);
    if (alive == 0)
        strcpy(r->status, "dead");
    return alive < 0 ? -1 : 0;
}

int tune_operation_record_read(struct tune_store *s, const char *id, struct tune_operation_record *r)
{
    char path[TUNE_PATH_MAX];
    *r = (struct tune_operation_record){0};
    if (!*id || strchr(id, '/') || strlen(id) >= sizeof r->id)
        return tune_error_usage("an operation is named by 1 to %zu characters without '/'",
                                sizeof r->id - 1);
    TRY(tune_path(path, "%s/operations/%s.json", tune_store_folder(s), id));
    if (!tune_file_exists(path))
        return no_such(s, id);
    if (!(r->json = tune_cjson_read(path, LIMIT)))
        return -1;
    struct members m = {r->json, NULL};
    snprintf(r->id, sizeof r->id, "%s", text(&m, "operation"));
    snprintf(r->space, sizeof r->space, "%s", text(&m, "space"));
    snprintf(r->status, sizeof r->status, "%s", text(&m, "status"));
    r->started_s = number(&m, "started_s", 0, 1e12);
    r->planned = (int64_t)number(&m, "planned", 0, 9007199254740992.0);
    r->measured = (int64_t)number(&m, "measured", 0, 9007199254740992.0);
    r->replayed = (int64_t)number(&m, "replayed", 0, 9007199254740992.0);
    r->refused = (int64_t)number(&m, "refused", 0, 9007199254740992.0);
    r->failed = (int64_t)number(&m, "failed", 0, 9007199254740992.0);
    if (cJSON_GetObjectItemCaseSensitive(r->json, "invalid")) /* records of earlier builds lack it */
        r->invalid = (int64_t)number(&m, "invalid", 0, 9007199254740992.0);
    if (cJSON_GetObjectItemCaseSensitive(r->json, "ended_s"))
        r->ended_s = number(&m, "ended_s", 0, 1e12);
    if (read_options(&m, r) == 0 && !m.wrong && !strcmp(r->id, id)) {
        if (find_dead(s, r) == 0)
            return 0;
        tune_operation_record_free(r);
        return -1;
    }
    if (m.wrong || strcmp(r->id, id))
        tune_error_set("%s: the record of this operation makes no sense at \"%s\"", path, m.wrong ? m.wrong : "operation");
    tune_operation_record_free(r);
    return -1;
}

void tune_operation_record_free(struct tune_operation_record *r)
{
    cJSON_Delete(r->json);
    free(r->grouping);
    r->json = NULL;
    r->grouping = NULL;
}
