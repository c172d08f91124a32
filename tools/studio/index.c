/* index.c - the runs below the root, read by a thread. */
#include "index.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/array.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/try.h"
#include "curves.h"
#include "files/json.h"
#include "runs/run_folder.h"

/* DEPTH: folders below the root that are looked into. EVERY_MS: between scans while somebody asks.
 * REST_S: after so long without a question the thread rests. KEEP_CURVES_S: so long curves are kept
 * that nobody asks for. REMOVED: removals that are remembered. FRESH_S: what is known is new. */
enum { DEPTH = 6, EVERY_MS = 1000, REST_S = 30, KEEP_CURVES_S = 60, REMOVED = 4096, UNITS = 64 };
static const double FRESH_S = 0.25;

/* These tell that a file has changed. */
struct stamp {
    struct timespec changed;
    off_t size;
    ino_t file;
};

struct indexed_run {
    struct tune_run *run;
    struct stamp stamps[3];
    uint64_t version;
    int seen; /* number of the last scan that saw it */
};

struct removed_run {
    uint64_t version;
    char *folder;
};

struct studio_index {
    pthread_mutex_t lock;
    pthread_cond_t wake, scanned;
    pthread_t thread;
    const char *root;
    atomic_bool stop; /* a scan looks at it without the lock */
    bool started;
    double asked;                       /* time of the last question */
    double last_scan; /* when the last one began that is over */
    bool hurry;       /* somebody waits for one that begins now */
    struct indexed_run *runs;           /* [count] in order of folder */
    size_t count, room;
    struct removed_run removed[REMOVED];
    uint64_t removals;
    struct studio_index_state state;
    struct cJSON *units[UNITS];         /* different "units" of runs, which the runs share */
    int unit_count;
    struct cJSON *option_names, *report_names; /* trees whose names others share */
    /* of the scan that goes on; the thread's own */
    char **found;
    size_t found_count, found_room;
    int folders, too_deep, links, odd_names; /* of links: those to folders */
    int read;                           /* runs that it read from the beginning */
};

static struct stamp stamp_of(const char *folder, const char *name)
{
    char path[TUNE_PATH_MAX];
    struct stat st;
    if (tune_path(path, "%s/%s", folder, name) < 0 || lstat(path, &st) < 0) {
        tune_error_clear();
        return (struct stamp){.size = -1};
    }
    return (struct stamp){st.st_mtim, st.st_size, st.st_ino};
}

static void stamps_of(const char *folder, struct stamp stamps[3])
{
    memset(stamps, 0, 3 * sizeof *stamps);
    stamps[0] = stamp_of(folder, TUNE_RUN_JSON);
    stamps[1] = stamp_of(folder, TUNE_RUN_METRICS);
    stamps[2] = stamp_of(folder, TUNE_RUN_REPORT);
}

/* The units of a run, one tree for all runs that have the same. Called by one thread at a time. */
static void share_units(struct studio_index *x, cJSON *run, cJSON *units)
{
    int i = 0;
    while (i < x->unit_count && !cJSON_Compare(x->units[i], units, true))
        i++;
    if (i == UNITS) {
        cJSON_AddItemToObject(run, "units", units);
        return;
    }
    if (i == x->unit_count)
        x->units[x->unit_count++] = units;
    else
        cJSON_Delete(units);
    cJSON_AddItemReferenceToObject(run, "units", x->units[i]);
}

/* Let the members of a tree have the names of another with the same members, as far as they agree. */
static void share_names(cJSON **names, cJSON *tree)
{
    if (!*names)
        *names = cJSON_Duplicate(tree, true);
    cJSON *name = *names ? (*names)->child : NULL, *item = tree ? tree->child : NULL;
    for (; name && item && !strcmp(name->string, item->string); name = name->next, item = item->next)
        if (!(item->type & cJSON_StringIsConst)) {
            cJSON_free(item->string);
            item->string = name->string;
            item->type |= cJSON_StringIsConst;
        }
}

/* Keep of a run that has ended what lists and queries ask for. Its other members are read again for
 * the page of the run. */
static void compact(struct studio_index *x, struct tune_run *r)
{
    static const char *const wanted[] = {"program", "device", "options"};
    cJSON *small = r->run ? cJSON_CreateObject() : NULL, *units;
    if (!small)
        return;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        cJSON *member = cJSON_DetachItemFromObjectCaseSensitive(r->run, wanted[i]);
        if (member)
            cJSON_AddItemToObject(small, wanted[i], member);
    }
    units = cJSON_DetachItemFromObjectCaseSensitive(r->run, "units");
    if (units)
        share_units(x, small, units);
    share_names(&x->option_names, cJSON_GetObjectItemCaseSensitive(small, "options"));
    share_names(&x->report_names, r->report);
    cJSON_Delete(r->run);
    r->run = small;
}

/* ---- folders ---- */

static bool is_left_out(const char *name)
{
    return *name == '.' || !strncmp(name, "checkpoint-", 11) || !strncmp(name, "weights-", 8) || !strcmp(name, "node_modules");
}

static int add_found(struct studio_index *x, const char *folder)
{
    TRY(tune_array_reserve(&x->found, &x->found_room, x->found_count + 1, sizeof *x->found, "the folders of runs"));
    x->found[x->found_count] = strdup(folder);
    return x->found[x->found_count] ? (int)(x->found_count++, 0) : tune_error_no_memory("the folders of runs");
}

/* Look for runs in a folder, relative to the root. Links are not followed. */
static int scan_folder(struct studio_index *x, const char *folder, int depth)
{
    int fd = open(*folder ? folder : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *e;
    int status = 0;
    x->folders++;
    if (!dir && fd >= 0)
        close(fd);
    while (dir && status == 0 && !x->stop && (e = readdir(dir))) {
        char path[TUNE_PATH_MAX];
        struct stat st;
        if (e->d_type == DT_LNK && !is_left_out(e->d_name) && fstatat(fd, e->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode))
            x->links++;
        if (is_left_out(e->d_name) || (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN))
            continue;
        if (!tune_utf8_valid(e->d_name, strlen(e->d_name), NULL)) {
            x->odd_names++; /* no address could name what is there */
            continue;
        }
        if (snprintf(path, sizeof path, "%s%s%s", folder, *folder ? "/" : "", e->d_name) >= (int)sizeof path)
            continue;
        if (e->d_type == DT_UNKNOWN && (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode)))
            continue;
        if (tune_run_is(path))
            status = add_found(x, path);
        else if (depth < DEPTH)
            status = scan_folder(x, path, depth + 1);
        else
            x->too_deep++;
    }
    if (dir)
        closedir(dir);
    return status;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int by_folder(const void *key, const void *entry)
{
    return strcmp(key, ((const struct indexed_run *)entry)->run->folder);
}

static int in_order(const void *a, const void *b)
{
    return strcmp(((const struct indexed_run *)a)->run->folder, ((const struct indexed_run *)b)->run->folder);
}

static struct indexed_run *find(const struct studio_index *x, const char *folder)
{
    return x->count ? bsearch(folder, x->runs, x->count, sizeof *x->runs, by_folder) : NULL;
}

static void note_removed(struct studio_index *x, const char *folder)
{
    struct removed_run *at = &x->removed[x->removals++ % REMOVED];
    free(at->folder);
    *at = (struct removed_run){++x->state.version, strdup(folder)};
}

/* ---- runs ---- */

/* True if a run's files or the process that holds it changed. A run that goes on is always read. */
static bool has_changed(const struct indexed_run *i)
{
    struct stamp now[3];
    if (!tune_run_ended(i->run))
        return true;
    stamps_of(i->run->folder, now);
    return memcmp(now, i->stamps, sizeof now) != 0;
}

/* Read a known run again. The lock is held, but not while a run that had ended is read from its
 * beginning. */
static void refresh(struct studio_index *x, const char *folder)
{
    struct indexed_run *i = find(x, folder);
    struct stamp stamps[3];
    if (!i || !has_changed(i))
        return;
    stamps_of(folder, stamps);
    if (!tune_run_ended(i->run)) {
        enum tune_run_state state = i->run->state;
        bool more = tune_run_update(i->run) || memcmp(stamps, i->stamps, sizeof stamps);
        if (tune_run_ended(i->run))
            compact(x, i->run);
        if (more || state != i->run->state)
            i->version = ++x->state.version;
        memcpy(i->stamps, stamps, sizeof stamps);
        return;
    }
    pthread_mutex_unlock(&x->lock);
    struct tune_run *r = tune_run_follow_last(folder, x->root);
    pthread_mutex_lock(&x->lock);
    i = find(x, folder);
    if (!r || !i) {
        tune_run_free(r);
        return;
    }
    tune_run_free(i->run);
    if (tune_run_ended(r))
        compact(x, r);
    i->run = r;
    i->version = ++x->state.version;
    memcpy(i->stamps, stamps, sizeof stamps);
}

/* Put runs that were read into the index, in order. */
static void add_new(struct studio_index *x, struct indexed_run *fresh, size_t count)
{
    if (tune_array_reserve(&x->runs, &x->room, x->count + count, sizeof *x->runs, "the index of runs") < 0) {
        for (size_t i = 0; i < count; i++)
            tune_run_free(fresh[i].run);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        fresh[i].version = ++x->state.version;
        x->runs[x->count++] = fresh[i];
    }
    qsort(x->runs, x->count, sizeof *x->runs, in_order);
}

enum { AT_A_TIME = 64 };

/* Read what the scan found. The lock is held at the beginning and at the end. */
static void read_found(struct studio_index *x)
{
    struct indexed_run fresh[AT_A_TIME];
    size_t n = 0;
    for (size_t k = 0; k < x->found_count && !x->stop; k++) {
        if (find(x, x->found[k])) {
            refresh(x, x->found[k]);
        } else {
            struct indexed_run i = {0};
            pthread_mutex_unlock(&x->lock);
            stamps_of(x->found[k], i.stamps);
            i.run = tune_run_follow_last(x->found[k], x->root);
            x->read++;
            if (i.run && tune_run_ended(i.run))
                compact(x, i.run);
            pthread_mutex_lock(&x->lock);
            if (i.run)
                fresh[n++] = i;
        }
        if (n == AT_A_TIME || (n > 0 && k + 1 == x->found_count)) {
            add_new(x, fresh, n);
            n = 0;
        }
    }
    if (n > 0)
        add_new(x, fresh, n);
}

/* Forget the runs that are gone. x->found is in order. */
static void drop_gone(struct studio_index *x)
{
    size_t kept = 0;
    for (size_t i = 0; i < x->count; i++) {
        const char *folder = x->runs[i].run->folder;
        if (bsearch(&folder, x->found, x->found_count, sizeof *x->found, by_text)) {
            x->runs[kept++] = x->runs[i];
            continue;
        }
        note_removed(x, folder);
        tune_run_free(x->runs[i].run);
    }
    x->count = kept;
}

static void scan(struct studio_index *x)
{
    for (size_t i = 0; i < x->found_count; i++)
        free(x->found[i]);
    x->found_count = 0;
    x->folders = x->too_deep = x->links = x->odd_names = 0;
    x->hurry = false;
    double began = tune_clock_s();
    pthread_mutex_unlock(&x->lock);
    int status = scan_folder(x, "", 0);
    if (x->found_count > 0)
        qsort(x->found, x->found_count, sizeof *x->found, by_text);
    pthread_mutex_lock(&x->lock);
    if (status == 0 && !x->stop) {
        read_found(x);
        drop_gone(x);
    }
    if (x->read > 0)
        studio_give_back(); /* what the metrics took */
    x->read = 0;
    x->state.complete = true;
    x->state.folders = x->folders;
    x->state.too_deep = x->too_deep;
    x->state.links = x->links;
    x->state.odd_names = x->odd_names;
    x->last_scan = began;
    pthread_cond_broadcast(&x->scanned);
}

static void wait_until(pthread_cond_t *c, pthread_mutex_t *lock, int ms)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += ms / 1000;
    at.tv_nsec += ms % 1000 * 1000000L;
    if (at.tv_nsec >= 1000000000L)
        at.tv_sec++, at.tv_nsec -= 1000000000L;
    pthread_cond_timedwait(c, lock, &at);
}

static void *work(void *index)
{
    struct studio_index *x = index;
    pthread_mutex_lock(&x->lock);
    while (!x->stop) {
        scan(x);
        bool rest = tune_clock_s() - x->asked > REST_S;
        pthread_mutex_unlock(&x->lock);
        studio_curves_forget(rest ? 0 : KEEP_CURVES_S);
        pthread_mutex_lock(&x->lock);
        if (rest)
            while (!x->stop && tune_clock_s() - x->asked > REST_S)
                pthread_cond_wait(&x->wake, &x->lock);
        else if (!x->stop && !x->hurry)
            wait_until(&x->wake, &x->lock, EVERY_MS);
    }
    pthread_mutex_unlock(&x->lock);
    return NULL;
}

/* ---- for the routes ---- */

int studio_index_start(struct studio *s)
{
    struct studio_index *x = s->index = calloc(1, sizeof *x);
    pthread_condattr_t monotonic;
    if (!x)
        return tune_error_no_memory("the index of runs");
    x->root = s->root;
    pthread_mutex_init(&x->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&x->wake, &monotonic);
    pthread_cond_init(&x->scanned, &monotonic);
    x->asked = tune_clock_s();
    if (s->once) {
        pthread_mutex_lock(&x->lock);
        scan(x);
        pthread_mutex_unlock(&x->lock);
        return 0;
    }
    if (pthread_create(&x->thread, NULL, work, x))
        return tune_error_set("cannot start the thread of the index");
    x->started = true;
    return 0;
}

void studio_index_stop(struct studio *s)
{
    struct studio_index *x = s->index;
    if (!x)
        return;
    pthread_mutex_lock(&x->lock);
    x->stop = true;
    pthread_cond_broadcast(&x->wake);
    pthread_mutex_unlock(&x->lock);
    if (x->started)
        pthread_join(x->thread, NULL);
    for (size_t i = 0; i < x->count; i++)
        tune_run_free(x->runs[i].run);
    for (size_t i = 0; i < x->found_count; i++)
        free(x->found[i]);
    for (int i = 0; i < REMOVED; i++)
        free(x->removed[i].folder);
    for (int i = 0; i < x->unit_count; i++)
        cJSON_Delete(x->units[i]);
    cJSON_Delete(x->option_names);
    cJSON_Delete(x->report_names);
    free(x->runs);
    free(x->found);
    free(x);
    s->index = NULL;
}

/* Lock it. If the thread rested, or its last scan is older than oldest_s, wait for one that begins now, at most 2 s. */
static int lock_index(struct studio *s, struct tune_run ***runs, double oldest_s)
{
    if (!s->index)
        TRY(studio_index_start(s));
    struct studio_index *x = s->index;
    pthread_mutex_lock(&x->lock);
    double now = tune_clock_s();
    bool rested = now - x->asked > REST_S;
    x->asked = now;
    if (x->started && x->state.complete && (rested || now - x->last_scan > oldest_s)) {
        x->hurry = true;
        pthread_cond_signal(&x->wake);
        while (x->last_scan < now && tune_clock_s() - now < 2)
            wait_until(&x->scanned, &x->lock, 200);
    }
    *runs = malloc((x->count + 1) * sizeof **runs);
    if (!*runs) {
        pthread_mutex_unlock(&x->lock);
        return tune_error_no_memory("a list of runs");
    }
    for (size_t i = 0; i < x->count; i++)
        (*runs)[i] = x->runs[i].run;
    return (int)x->count;
}

int studio_index_lock(struct studio *s, struct tune_run ***runs)
{
    return lock_index(s, runs, INFINITY);
}

int studio_index_lock_fresh(struct studio *s, struct tune_run ***runs)
{
    return lock_index(s, runs, FRESH_S);
}

void studio_index_unlock(struct studio *s, struct tune_run **runs)
{
    free(runs);
    pthread_mutex_unlock(&s->index->lock);
}

struct studio_index_state studio_index_state(const struct studio *s)
{
    return s->index->state;
}

struct tune_run *studio_index_find(const struct studio *s, const char *folder)
{
    const struct indexed_run *i = find(s->index, folder);
    return i ? i->run : NULL;
}

uint64_t studio_index_version(const struct studio *s, const struct tune_run *r)
{
    const struct indexed_run *i = find(s->index, r->folder);
    return i ? i->version : 0;
}

bool studio_index_removed(const struct studio *s, uint64_t since, void (*take)(void *context, const char *folder), void *context)
{
    const struct studio_index *x = s->index;
    uint64_t first = x->removals > REMOVED ? x->removals - REMOVED : 0;
    for (uint64_t i = first; i < x->removals; i++) {
        const struct removed_run *at = &x->removed[i % REMOVED];
        if (at->version > since && at->folder)
            take(context, at->folder);
    }
    return first == 0 || x->removed[first % REMOVED].version <= since;
}
