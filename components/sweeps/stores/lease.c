/* lease.c - leases as files: name, name~2, name~3, ... Each is made once and never removed; the
 * last one is valid.
 *
 * A stale lease is not replaced, because two processes could then replace each other's new file.
 * Instead, a process takes it over by making the next file, which only one process can. Files are
 * never removed, so a file that was read is still the same file. */
#include "sweeps/stores/lease.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "files/cjson.h"
#include "core/try.h"
#include "sweeps/stores/exclusive.h"
#include "sweeps/stores/shared.h"
#include "sweeps/stores/store_parts.h"

#define JSON_MAX 4096
#define GENERATIONS_MAX 1000000

enum state { ABSENT, HELD, DONE, STALE };

/* The identity of a process. A pid is only valid in one boot of one machine, in one pid namespace.
 * Two machines may have the same host name, such as localhost, but their machine ids differ. */
struct owner {
    char host[65], machine[48], boot[48], space[48];
    int64_t pid, started;
    struct tune_lease_job job;
};

static void read_line(const char *path, char *text, size_t size)
{
    text[0] = 0;
    FILE *f = fopen(path, "re");
    if (!f)
        return;
    if (!fgets(text, (int)size, f))
        text[0] = 0;
    text[strcspn(text, "\n")] = 0;
    fclose(f);
}

/* The start time of a process in ticks since boot. 0: there is no such process, or it is a zombie.
 * -1: it exists, and nothing else is known. Source: proc(5), /proc/<pid>/stat, fields 3 and 22. */
static int64_t start_of(int64_t pid)
{
    char path[64], line[1024], state;
    long long started = 0;
    if (kill((pid_t)pid, 0) < 0 && errno == ESRCH)
        return 0;
    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    read_line(path, line, sizeof line);
    const char *rest = strrchr(line, ')'); /* the process name may contain anything */
    if (!rest || sscanf(rest + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %lld", &state,
                        &started) != 2)
        return -1;
    return state == 'Z' || state == 'X' ? 0 : started;
}

static void find_myself(struct owner *me, const struct tune_lease_job *job)
{
    *me = (struct owner){.pid = getpid()};
    if (job)
        me->job = *job;
    tune_store_host(me->host);
    read_line("/proc/sys/kernel/random/boot_id", me->boot, sizeof me->boot);
    read_line("/etc/machine-id", me->machine, sizeof me->machine);
    if (readlink("/proc/self/ns/pid", me->space, sizeof me->space - 1) < 0)
        me->space[0] = 0;
    me->started = start_of(me->pid);
}

/* ---- the file ---- */

static int lease_path(char path[TUNE_PATH_MAX], const char *folder, const char *name, int generation)
{
    return generation == 1 ? tune_path(path, "%s/%s", folder, name) : tune_path(path, "%s/%s~%d", folder, name, generation);
}

/* The state is at a fixed offset, so it can be changed in one write. */
static const char head[] = "{\"state\":\"";
enum { STATE_BYTES = 4 };

static int write_lease(const char *path, const struct owner *me)
{
    char text[768], job[160] = "";
    if (*me->job.id)
        snprintf(job, sizeof job, ",\"job\":\"%s\",\"restarts\":%d,\"turn\":%d", me->job.id, me->job.restarts, me->job.turn);
    int n = snprintf(text, sizeof text,
                     "%sheld\",\"host\":\"%s\",\"boot\":\"%s\",\"pid_space\":\"%s\",\"pid\":%" PRId64 ",\"started\":%" PRId64
                     ",\"machine\":\"%s\"%s}\n",
                     head, me->host, me->boot, me->space, me->pid, me->started, me->machine, job);
    return tune_exclusive_write(path, text, (size_t)n, false); /* no sync, because a power cut ends all leases */
}

static int set_state(const char *path, const char state[STATE_BYTES + 1])
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && pwrite(fd, state, STATE_BYTES, sizeof head - 1) == STATE_BYTES;
    int code = errno;
    if (fd >= 0 && close(fd) < 0 && good) { /* a network file system may write only here */
        good = false;
        code = errno;
    }
    return good ? 0 : tune_error_set("cannot write %s: %s", path, strerror(code));
}

static void take_text(const cJSON *json, const char *key, char *text, size_t size)
{
    const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));
    snprintf(text, size, "%s", value ? value : "");
}

static int64_t take_whole(const cJSON *json, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
    return cJSON_IsNumber(item) && item->valuedouble > 0 && item->valuedouble < 9e15 ? (int64_t)item->valuedouble : 0;
}

/* ---- owners ---- */

/* True if the lease's process is gone. If the process is not visible from here, the age of the file
 * decides. A job's lease is stale if the job was started again. Only the scheduler knows whether a
 * job has ended. */
static bool is_stale(const char *path, const struct owner *o, const struct owner *me)
{
    if (*o->job.id)
        return !strcmp(o->job.id, me->job.id) && o->job.restarts < me->job.restarts;
    bool same_boot = *o->boot && !strcmp(o->boot, me->boot);
    if (same_boot && !strcmp(o->space, me->space) && o->pid > 0) {
        int64_t started = start_of(o->pid);
        return started == 0 || (started > 0 && o->started > 0 && started != o->started);
    }
    if (!same_boot && *o->boot && *me->boot && *o->machine && !strcmp(o->machine, me->machine) && !strcmp(o->host, me->host))
        return true;
    return tune_shared_older(path, TUNE_LEASE_S);
}

/* Read the owner in a file, and its state as text: "held", "free", "done". false: there is no
 * file. */
static bool read_lease(const char *path, struct owner *o, char state[16])
{
    struct stat st;
    *o = (struct owner){0};
    if (stat(path, &st) < 0 && errno == ENOENT)
        return false;
    cJSON *json = tune_cjson_read(path, JSON_MAX); /* a damaged file has an unknown owner */
    take_text(json, "state", state, 16);
    take_text(json, "host", o->host, sizeof o->host);
    take_text(json, "boot", o->boot, sizeof o->boot);
    take_text(json, "pid_space", o->space, sizeof o->space);
    take_text(json, "machine", o->machine, sizeof o->machine);
    take_text(json, "job", o->job.id, sizeof o->job.id);
    o->pid = take_whole(json, "pid");
    o->started = take_whole(json, "started");
    o->job.restarts = (int)take_whole(json, "restarts");
    o->job.turn = (int)take_whole(json, "turn");
    cJSON_Delete(json);
    tune_error_clear();
    return true;
}

/* Read the state of one file, and its owner. */
static enum state judge(const char *path, const struct owner *me, char *who, size_t size)
{
    struct owner o;
    char state[16];
    if (!read_lease(path, &o, state))
        return ABSENT;
    if (!strcmp(state, "done")) {
        snprintf(who, size, "done");
        return DONE;
    }
    if (*o.job.id)
        snprintf(who, size, "job %s on %s", o.job.id, o.host);
    else
        snprintf(who, size, "pid %" PRId64 " on %s", o.pid, *o.host ? o.host : "an unknown host");
    return !strcmp(state, "free") || is_stale(path, &o, me) ? STALE : HELD;
}

int tune_lease_take(struct tune_lease *lease, const char *folder, const char *name, const struct tune_lease_job *job, char *who,
                    size_t size)
{
    struct owner me;
    *lease = (struct tune_lease){0};
    snprintf(who, size, "another process"); /* NFS may show its new file only later */
    TRY(tune_store_check_name("a lease", name));
    if (strchr(name, '~'))
        return tune_error_set("a lease cannot have the name \"%s\": expected a name without '~'",
                              name);
    TRY(tune_file_make_folder(folder));
    find_myself(&me, job);
    for (int generation = 1; generation < GENERATIONS_MAX; generation++) {
        char path[TUNE_PATH_MAX];
        TRY(lease_path(path, folder, name, generation));
        enum state state = judge(path, &me, who, size);
        if (state == ABSENT) {
            int made = write_lease(path, &me);
            TRY(made);
            if (made) {
                memcpy(lease->path, path, sizeof path);
                return 1;
            }
            state = judge(path, &me, who, size); /* another process made it first */
        }
        TRY(lease_path(path, folder, name, generation + 1));
        if (state != STALE && !tune_file_exists(path)) /* only the last one counts: a job may have taken over its own */
            return 0;
    }
    return tune_error_set("the lease %s/%s was taken over %d times, the most that is possible; "
                          "remove its files", folder, name,
                          GENERATIONS_MAX);
}

int tune_lease_look(const char *folder, const char *name, struct tune_lease_holder *h)
{
    char path[TUNE_PATH_MAX], state[16] = "";
    struct owner o = {0}, next;
    *h = (struct tune_lease_holder){0};
    for (int generation = 1; generation < GENERATIONS_MAX; generation++) {
        TRY(lease_path(path, folder, name, generation));
        if (!read_lease(path, &next, state))
            break;
        memcpy(h->path, path, sizeof path);
        o = next;
        h->takes = generation;
    }
    memcpy(h->host, o.host, sizeof h->host);
    h->job = o.job;
    return h->takes > 0 && strcmp(state, "free") && strcmp(state, "done");
}

int tune_lease_revoke(const struct tune_lease_holder *h)
{
    return set_state(h->path, "free");
}

int tune_lease_alive(const char *folder, const char *begin)
{
    struct owner me;
    char path[TUNE_PATH_MAX], who[128];
    int alive = 0;
    DIR *d = opendir(folder);
    if (!d && errno == ENOENT)
        return 0;
    if (!d)
        return tune_error_set("cannot open folder %s: %s", folder, strerror(errno));
    find_myself(&me, NULL);
    for (struct dirent *e; alive == 0 && (e = readdir(d));)
        if (!strncmp(e->d_name, begin, strlen(begin)) && !strstr(e->d_name, ".tmp-"))
            alive = tune_path(path, "%s/%s", folder, e->d_name) < 0 ? -1 : judge(path, &me, who, sizeof who) == HELD;
    closedir(d);
    return alive;
}

/* Check that the lease is still the last file of its name. 0, or -1 with an error. */
static int check_mine(const struct tune_lease *lease)
{
    char next[TUNE_PATH_MAX];
    const char *slash = strrchr(lease->path, '/'), *mark = slash ? strrchr(slash, '~') : NULL;
    int generation = mark ? atoi(mark + 1) : 1;
    int n = mark ? (int)(mark - lease->path) : (int)strlen(lease->path);
    TRY(tune_path(next, "%.*s~%d", n, lease->path, generation + 1));
    if (!tune_file_exists(next))
        return 0;
    return tune_error_set("the lease %s was taken over by another process, because this process "
                          "did not renew it for %d s", lease->path, TUNE_LEASE_S);
}

int tune_lease_renew(struct tune_lease *lease)
{
    TRY(check_mine(lease));
    if (utimensat(AT_FDCWD, lease->path, NULL, 0) == 0)
        return 0;
    return tune_error_set("cannot renew %s: %s", lease->path, strerror(errno));
}

int tune_lease_done(struct tune_lease *lease)
{
    TRY(check_mine(lease));
    return set_state(lease->path, "done");
}

int tune_lease_release(struct tune_lease *lease)
{
    return set_state(lease->path, "free");
}
