/* tombstones.c - lists of forgotten rows: files in the folder `forgotten` of a store.
 *
 *     forgotten/<id>.json      {"id", "when", "when_s", "who", "note", "rows", "hash", "uids": [...]}
 *     forgotten/<id>.undone    {"id", "when", "who"}; the tombstone does not hold any more
 *
 * These files are never changed or removed. So two stores are merged by copying the files, in any
 * order. "hash" covers all other members. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/array.h"
#include "core/clock.h"
#include "core/print.h"
#include "core/random.h"
#include "core/try.h"
#include "files/cjson.h"
#include "files/json.h"
#include "sweeps/stores/exclusive.h"
#include "sweeps/stores/shared.h"
#include "sweeps/stores/store_parts.h"

#define FOLDER "forgotten"
#define BYTES_MAX (64 << 20)
#define DAMAGED "%s/" FOLDER "/%s: this tombstone is damaged: %s. A tombstone lists forgotten rows, which are still in the " \
    "sample files. As long as this list is unknown, no row is read: copy the file from a backup, or undo %.*s with " \
    "samples forget"

struct tune_store_mark tune_store_mark(const char *text, size_t size)
{
    return (struct tune_store_mark){{tune_hash64(text, size, 1), tune_hash64(text, size, 2)}};
}

/* ---- one tombstone ---- */

static void free_tombstone(struct tune_tombstone *t)
{
    for (int64_t i = 0; t->uids && i < t->rows; i++)
        free((char *)(uintptr_t)t->uids[i]);
    free((void *)(uintptr_t)t->uids);
    free((char *)(uintptr_t)t->id);
    free((char *)(uintptr_t)t->who);
    free((char *)(uintptr_t)t->note);
}

static void date_of(double when_s, char text[32])
{
    struct tm utc;
    time_t whole = (time_t)when_s;
    strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&whole, &utc));
}

/* Format a time as in the file. */
static const char *time_to_string(double when_s, char text[40])
{
    snprintf(text, 40, "%.3f", when_s);
    return text;
}

/* The hash of all members of the tombstone. */
static uint64_t hash_of(const struct tune_tombstone *t)
{
    char when[40];
    const char *const texts[] = {t->id, time_to_string(t->when_s, when), t->who, t->note};
    uint64_t hash = 0;
    for (int i = 0; i < 4; i++)
        hash = tune_hash64(texts[i], strlen(texts[i]) + 1, hash);
    for (int64_t i = 0; i < t->rows; i++)
        hash = tune_hash64(t->uids[i], strlen(t->uids[i]) + 1, hash);
    return hash;
}

static bool put_text(FILE *out, const char *text)
{
    cJSON *json = cJSON_CreateString(text);
    char *quoted = json ? cJSON_PrintUnformatted(json) : NULL;
    bool good = quoted && fputs(quoted, out) >= 0;
    cJSON_free(quoted);
    cJSON_Delete(json);
    return good;
}

static bool put_member(FILE *out, const char *key, const char *text)
{
    return fprintf(out, "\t\"%s\": ", key) > 0 && put_text(out, text) && fputs(",\n", out) >= 0;
}

/* Write the tombstone under its id. 1: done. 0: the name is taken. -1 with an error. */
static int write_tombstone(const struct tune_store *s, const struct tune_tombstone *t)
{
    char path[TUNE_PATH_MAX], date[32], when[40], *text = NULL;
    size_t size = 0;
    date_of(t->when_s, date);
    TRY(tune_path(path, "%s/" FOLDER "/%s.json", s->folder, t->id));
    FILE *out = open_memstream(&text, &size);
    bool good = out && fputs("{\n", out) >= 0 && put_member(out, "id", t->id) && put_member(out, "when", date) &&
                fprintf(out, "\t\"when_s\": %s,\n", time_to_string(t->when_s, when)) > 0 && put_member(out, "who", t->who) && put_member(out, "note", t->note) &&
                fprintf(out, "\t\"rows\": %" PRId64 ",\n\t\"hash\": \"%016" PRIx64 "\",\n\t\"uids\": [", t->rows, hash_of(t)) > 0;
    for (int64_t i = 0; i < t->rows && good; i++)
        good = fputs(i ? ",\n\t\t" : "\n\t\t", out) >= 0 && put_text(out, t->uids[i]);
    good = good && fputs("\n\t]\n}\n", out) >= 0;
    good = out && fclose(out) == 0 && good;
    int made = !good             ? tune_store_no_memory("a tombstone")
               : size > BYTES_MAX ? tune_error_set("the file %s would be larger than %d MiB: "
                                                   "forget fewer rows at a time", path,
                                                   BYTES_MAX >> 20)
                                  : tune_exclusive_write(path, text, size, true);
    free(text);
    return made;
}

static char *copy_of(const cJSON *json, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));
    return text ? strdup(text) : NULL;
}

static bool take_uids(const cJSON *list, struct tune_tombstone *t)
{
    const cJSON *item;
    const char **uids = calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof *uids);
    bool good = uids && cJSON_IsArray(list);
    t->uids = uids;
    cJSON_ArrayForEach(item, list) {
        good = good && cJSON_IsString(item) && *item->valuestring && (uids[t->rows] = strdup(item->valuestring));
        t->rows += good;
    }
    return good && t->rows > 0;
}

/* Read <folder>/<name>. Returns NULL, or a description of the problem. The caller frees the
 * tombstone in both cases. */
static const char *read_tombstone(const struct tune_store *s, const char *name, struct tune_tombstone *t)
{
    char path[TUNE_PATH_MAX];
    *t = (struct tune_tombstone){0};
    cJSON *json = tune_path(path, "%s/" FOLDER "/%s", s->folder, name) < 0 ? NULL : tune_cjson_read(path, BYTES_MAX);
    if (!json)
        return tune_error_message();
    const cJSON *when = cJSON_GetObjectItemCaseSensitive(json, "when_s"), *rows = cJSON_GetObjectItemCaseSensitive(json, "rows"),
                *hash = cJSON_GetObjectItemCaseSensitive(json, "hash");
    char wanted[24];
    t->id = copy_of(json, "id");
    t->who = copy_of(json, "who");
    t->note = copy_of(json, "note");
    t->when_s = cJSON_IsNumber(when) ? when->valuedouble : -1;
    bool good = take_uids(cJSON_GetObjectItemCaseSensitive(json, "uids"), t) && t->id && t->who && t->note;
    const char *wrong = NULL;
    if (!good || !cJSON_IsNumber(rows) || !cJSON_IsString(hash))
        wrong = "expected an id, who, note, rows, a hash and uids";
    else if (strncmp(name, t->id, strlen(t->id)) || strcmp(name + strlen(t->id), ".json"))
        wrong = "its id differs from the name of the file";
    else if (!(t->when_s >= 0 && t->when_s < 1e11)) /* until the year 5138 */
        wrong = "its time is missing or wrong";
    else if (rows->valuedouble != (double)t->rows)
        wrong = "the number of its uids differs from its \"rows\"";
    else if (snprintf(wanted, sizeof wanted, "%016" PRIx64, hash_of(t)) > 0 && strcmp(wanted, hash->valuestring))
        wrong = "its hash is wrong";
    cJSON_Delete(json);
    return wrong;
}

/* ---- all together ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_there(const struct tune_tombstones *all, const char *name)
{
    return all->name_count > 0 && bsearch(&name, all->names, (size_t)all->name_count, sizeof *all->names, by_text);
}

/* The length of the id if the name is an id with this ending, else 0. */
static int id_length(const char *name, const char *ending)
{
    size_t n = strlen(name), m = strlen(ending), length = strspn(name, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_");
    return n > m && n - m == length && length < TUNE_TOMBSTONE_ID && !strcmp(name + length, ending) ? (int)length : 0;
}

static bool is_undone(const struct tune_tombstones *all, const char *id, int length)
{
    char name[TUNE_TOMBSTONE_ID + 16];
    snprintf(name, sizeof name, "%.*s.undone", length, id);
    return is_there(all, name);
}

/* The length of the id if name i is that of a tombstone in effect, else 0. */
static int holds(const struct tune_tombstones *all, int i)
{
    int length = id_length(all->names[i], ".json");
    return length > 0 && !is_undone(all, all->names[i], length) ? length : 0;
}

void tune_tombstones_unread(struct tune_store *s)
{
    struct tune_tombstones *all = &s->tombstones;
    for (int i = 0; i < all->count; i++)
        free_tombstone(&all->at[i]);
    free(all->at);
    tune_map_free(&all->rows);
    all->at = NULL;
    all->count = 0;
    all->read = false;
}

void tune_tombstones_free(struct tune_store *s)
{
    tune_tombstones_unread(s);
    tune_store_records_free(s->tombstones.names, s->tombstones.name_count);
    s->tombstones = (struct tune_tombstones){0};
}

int tune_tombstones_list(struct tune_store *s)
{
    struct tune_tombstones *all = &s->tombstones;
    int count;
    char **names = tune_store_records(s, FOLDER, &count);
    TRY(names ? 0 : -1);
    bool same = count == all->name_count;
    for (int i = 0; i < count && same; i++)
        same = !strcmp(names[i], all->names[i]);
    if (same) {
        tune_store_records_free(names, count);
        return 0;
    }
    tune_tombstones_free(s);
    all->names = names;
    all->name_count = count;
    s->loads++;
    return 1;
}

static int add_rows(struct tune_tombstones *all, const struct tune_tombstone *t)
{
    for (int64_t i = 0; i < t->rows; i++) {
        int64_t *there = tune_map_add(&all->rows, tune_store_mark(t->uids[i], strlen(t->uids[i])).key);
        if (!there)
            return tune_store_no_memory("the forgotten rows of a store");
        *there = 1;
    }
    return 0;
}

static int read_one(struct tune_store *s, const char *name, int length, tune_store_problem *problem, void *context)
{
    struct tune_tombstones *all = &s->tombstones;
    char path[TUNE_PATH_MAX], what[1024];
    struct tune_tombstone t;
    if (!tune_array_fit(&all->at, (size_t)all->count, sizeof *all->at))
        return tune_store_no_memory("the tombstones of a store");
    const char *wrong = read_tombstone(s, name, &t);
    if (!wrong) {
        all->at[all->count++] = t;
        return add_rows(all, &t);
    }
    snprintf(what, sizeof what, "%.900s", wrong);
    free_tombstone(&t);
    tune_error_set(DAMAGED, s->folder, name, what, length, name);
    if (!problem)
        return -1;
    TRY(tune_path(path, "%s/" FOLDER "/%s", s->folder, name));
    problem(context, path, tune_error_message());
    return 0;
}

int tune_tombstones_read(struct tune_store *s, tune_store_problem *problem, void *context)
{
    struct tune_tombstones *all = &s->tombstones;
    int status = 0;
    if (all->read)
        return 0;
    tune_tombstones_unread(s);
    for (int i = 0; i < all->name_count && status == 0; i++) {
        int length = holds(all, i);
        status = length > 0 ? read_one(s, all->names[i], length, problem, context) : 0;
    }
    all->read = status == 0;
    return status;
}

bool tune_tombstones_has(const struct tune_store *s, const char *uid, size_t size)
{
    return tune_map_get(&s->tombstones.rows, tune_store_mark(uid, size).key) != 0;
}

/* ---- forget and remember ---- */

static void find_who(char who[160])
{
    char host[65];
    const struct passwd *user = getpwuid(geteuid());
    tune_store_host(host);
    if (user)
        snprintf(who, 160, "%.80s on %s", user->pw_name, host);
    else
        snprintf(who, 160, "user %ld on %s", (long)geteuid(), host);
    tune_utf8_mend(who, strlen(who));
}

/* Draw an id. Ids sort by time. */
static int draw_id(double when_s, char id[TUNE_TOMBSTONE_ID])
{
    uint32_t number;
    struct tm utc;
    time_t whole = (time_t)when_s;
    TRY(tune_random_fresh(&number, sizeof number));
    size_t n = strftime(id, TUNE_TOMBSTONE_ID, "%Y%m%dT%H%M%SZ", gmtime_r(&whole, &utc));
    snprintf(id + n, TUNE_TOMBSTONE_ID - n, "-%06x", (unsigned)(number & 0xffffff));
    return 0;
}

static int make_folder(const struct tune_store *s)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_shared_probe(s->folder));
    TRY(tune_store_path(s, path, FOLDER));
    return tune_file_make_folder(path);
}

/* Check uids[count], and copy them without duplicates into unique. Returns their number, or -1. */
static int64_t take_unique(const char *const *uids, int64_t count, const char **unique)
{
    struct tune_map marks = {0};
    int64_t n = 0;
    for (int64_t i = 0; i < count; i++) {
        size_t size = strlen(uids[i]);
        int64_t *there = tune_map_add(&marks, tune_store_mark(uids[i], size).key);
        if (!there || size == 0 || size > TUNE_STORE_NAME_MAX || !tune_utf8_valid(uids[i], size, NULL)) {
            tune_map_free(&marks);
            return !there ? tune_store_no_memory("a tombstone")
                          : tune_error_usage("\"%.40s\" is not a uid: expected 1 to %d bytes of "
                                             "UTF-8", uids[i], TUNE_STORE_NAME_MAX);
        }
        if ((*there)++ == 0)
            unique[n++] = uids[i];
    }
    tune_map_free(&marks);
    return n;
}

int tune_store_forget(struct tune_store *s, const char *const *uids, int64_t count, const char *note, char id[TUNE_TOMBSTONE_ID])
{
    char who[160];
    note = note ? note : "";
    if (count < 1 || count > TUNE_TOMBSTONE_ROWS)
        return tune_error_usage("cannot forget %" PRId64 " rows: expected 1 to %d at a time", count,
                                TUNE_TOMBSTONE_ROWS);
    if (strlen(note) > TUNE_STORE_TEXT_MAX || !tune_utf8_valid(note, strlen(note), NULL))
        return tune_error_usage("a note on forgotten rows must be UTF-8 of at most %d bytes, not: "
                                "%.40s", TUNE_STORE_TEXT_MAX, note);
    const char **unique = calloc((size_t)count, sizeof *unique);
    TRY(unique ? 0 : tune_store_no_memory("a tombstone"));
    find_who(who);
    struct tune_tombstone t = {id, who, note, tune_clock_date_s(), unique, 0};
    t.rows = take_unique(uids, count, unique);
    int made = t.rows < 0 ? -1 : make_folder(s);
    while (made == 0) {
        made = draw_id(t.when_s, id);
        if (made == 0)
            made = write_tombstone(s, &t);
    }
    free(unique);
    return made < 0 ? -1 : tune_tombstones_list(s) < 0 ? -1 : 0;
}

static int write_undone(const struct tune_store *s, const char *id, int length)
{
    char path[TUNE_PATH_MAX], who[160], date[32];
    TRY(make_folder(s));
    TRY(tune_path(path, "%s/" FOLDER "/%.*s.undone", s->folder, length, id));
    find_who(who);
    date_of(tune_clock_date_s(), date);
    cJSON *json = cJSON_CreateObject();
    char *name = strndup(id, (size_t)length);
    bool good = name && tune_cjson_put_text(json, "id", name) && tune_cjson_put_text(json, "when", date) &&
                tune_cjson_put_text(json, "who", who);
    char *text = good ? cJSON_Print(json) : NULL;
    int made = text ? tune_exclusive_write(path, text, strlen(text), true) : tune_store_no_memory("a tombstone");
    cJSON_free(text);
    cJSON_Delete(json);
    free(name);
    return made < 0 ? -1 : 0;
}

/* Report that there is no such tombstone, and list the others. */
static int no_such(const struct tune_tombstones *all, const char *id)
{
    char others[1024] = "";
    for (int i = all->name_count; i-- > 0;) {
        int length = holds(all, i);
        if (length > 0)
            tune_append_item(others, sizeof others, "%.*s", length, all->names[i]);
    }
    return tune_error_usage("there is no tombstone %s that can be undone; there are: %s", id,
                            *others ? others : "none");
}

static void leave_out(void *context, const char *file, const char *what)
{
    (void)context, (void)file, (void)what;
}

/* The number of rows in undamaged tombstones, or -1. */
static int64_t count_named(struct tune_store *s)
{
    tune_tombstones_unread(s);
    int status = tune_tombstones_read(s, leave_out, NULL);
    int64_t rows = status < 0 ? -1 : (int64_t)s->tombstones.rows.count;
    tune_tombstones_unread(s); /* readers must report damaged ones again */
    return rows;
}

int64_t tune_store_remember(struct tune_store *s, const char *id)
{
    struct tune_tombstones *all = &s->tombstones;
    bool every = !strcmp(id, "all"), last = !strcmp(id, "last");
    int undone = 0, status = tune_tombstones_list(s) < 0 ? -1 : 0;
    int64_t before = status < 0 ? -1 : count_named(s), after;
    TRY(before < 0 ? -1 : 0);
    for (int i = all->name_count; i-- > 0 && status == 0 && (every || undone == 0);) { /* ids sort by time */
        int length = holds(all, i);
        if (length > 0 && (every || last || (strlen(id) == (size_t)length && !strncmp(id, all->names[i], (size_t)length)))) {
            status = write_undone(s, all->names[i], length);
            undone++;
        }
    }
    TRY(status);
    if (undone == 0)
        return no_such(all, id);
    if (tune_tombstones_list(s) < 0 || (after = count_named(s)) < 0)
        return -1;
    return before > after ? before - after : 0;
}

const struct tune_tombstone *tune_store_forgotten(struct tune_store *s, int *count)
{
    static const struct tune_tombstone none;
    if (tune_tombstones_read(s, NULL, NULL) < 0)
        return NULL;
    *count = s->tombstones.count;
    return s->tombstones.at ? s->tombstones.at : &none;
}

static int64_t count_left_out(struct tune_store *s, const char *experiment)
{
    const struct tune_cell *cells;
    struct tune_scan *scan = TUNE_SCAN(s, experiment, TUNE_KEY_UID);
    int more;
    while ((more = tune_scan_next(scan, &cells)) == 1)
        ;
    int64_t rows = more < 0 ? -1 : tune_scan_forgotten(scan);
    tune_scan_free(scan);
    return rows;
}

int64_t tune_store_forgotten_rows(struct tune_store *s, const char *experiment)
{
    int count;
    int64_t rows = 0;
    TRY(tune_tombstones_read(s, NULL, NULL));
    if (s->tombstones.rows.count == 0)
        return 0;
    if (experiment)
        return count_left_out(s, experiment);
    const char *const *tables = tune_store_tables(s, &count);
    TRY(tables ? 0 : -1);
    for (int i = 0; i < count; i++) {
        int64_t more = count_left_out(s, tables[i]);
        TRY(more < 0 ? -1 : 0);
        rows += more;
    }
    return rows;
}

/* ---- merging ---- */

int tune_tombstones_merge(struct tune_store *into, struct tune_store *from)
{
    struct tune_tombstones *theirs = &from->tombstones, *ours = &into->tombstones;
    int came = 0;
    TRY(tune_tombstones_read(from, NULL, NULL));
    for (int i = 0; i < theirs->name_count; i++) {
        int undone = id_length(theirs->names[i], ".undone");
        if (undone > 0 && !is_there(ours, theirs->names[i]))
            TRY(write_undone(into, theirs->names[i], undone));
    }
    for (int i = 0; i < theirs->count; i++) {
        char name[TUNE_TOMBSTONE_ID + 16];
        const struct tune_tombstone *t = &theirs->at[i];
        snprintf(name, sizeof name, "%s.json", t->id);
        if (is_there(ours, name) || is_undone(ours, t->id, (int)strlen(t->id)))
            continue;
        TRY(make_folder(into));
        TRY(write_tombstone(into, t));
        came++;
    }
    return tune_tombstones_list(into) < 0 ? -1 : came;
}
