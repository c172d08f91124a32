/* run_writer.c - run.json with its sessions, the lines of metrics.jsonl, report.json, recipe.c. */
#include "runs/run_writer.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"
#include "core/try.h"
#include "core/version.h"
#include "files/cjson.h"
#include "machine/host.h"

static int no_memory(void)
{
    tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory while writing a run folder");
    return -1;
}

static int fail(const struct tune_run_writer *w)
{
    tune_error_set("cannot write %s/" TUNE_RUN_METRICS ": %s", w->folder,
                   errno ? strerror(errno) : "write error");
    return -1;
}

int tune_run_writer_create(struct tune_run_writer *w, const char *folder, const char *program,
                           bool overwrite)
{
    return tune_run_folder_make(w->folder, &w->metrics, folder, program, overwrite);
}

int tune_run_writer_reopen(struct tune_run_writer *w, const char *folder)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_path(w->folder, "%s", folder));
    TRY(tune_path(path, "%s/" TUNE_RUN_METRICS, folder));
    w->metrics = fopen(path, "r+e");
    if (!w->metrics) {
        tune_error_set("`resume`: cannot go on with %s: %s: %s", folder, path, strerror(errno));
        return -1;
    }
    TRY(tune_run_folder_hold(w->metrics, folder));
    TRY(tune_path(path, "%s/" TUNE_RUN_JSON, folder));
    w->before = tune_cjson_read(path, TUNE_RUN_JSON_MOST);
    return w->before ? 0 : -1;
}

int tune_run_writer_follow(struct tune_run_writer *w, const char *folder, bool resume)
{
    char path[TUNE_PATH_MAX];
    w->follows = true;
    w->metrics = fopen("/dev/null", "we");
    if (!w->metrics)
        return tune_error_set("cannot open /dev/null: %s", strerror(errno));
    TRY(tune_path(w->folder, "%s", folder));
    if (!resume)
        return 0;
    TRY(tune_path(path, "%s/" TUNE_RUN_JSON, folder));
    w->before = tune_cjson_read(path, TUNE_RUN_JSON_MOST);
    return w->before ? 0 : -1;
}

int tune_run_writer_held(const struct tune_run_writer *w)
{
    return w->follows ? 0 : tune_run_folder_held(w->metrics, w->folder);
}

void tune_run_writer_close(struct tune_run_writer *w)
{
    if (w->metrics)
        fclose(w->metrics);
    cJSON_Delete(w->now);
    cJSON_Delete(w->before);
    *w = (struct tune_run_writer){0};
}

/* ---- run.json ---- */

static bool put_now(cJSON *object, const char *key)
{
    char text[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    return tune_cjson_put_text(object, key, text);
}

static bool put_host(cJSON *run, const struct tune_host *host)
{
    cJSON *h = cJSON_AddObjectToObject(run, "host");
    cJSON *build = cJSON_AddObjectToObject(run, "build");
    return tune_cjson_put_text(h, "class", host->class_name) &&
           tune_cjson_put_text(h, "name", host->name) &&
           tune_cjson_put_text(h, "system", host->system) &&
           tune_cjson_put_text(h, "machine", host->machine) &&
           tune_cjson_put_text(h, "cpu", host->cpu) &&
           tune_cjson_put_whole(h, "cores", host->cores) &&
           tune_cjson_put_whole(h, "cpus", host->cpus) &&
           tune_cjson_put_whole(h, "memory_bytes", host->memory_bytes) &&
           tune_cjson_put_text(build, "compiler", TUNE_COMPILER) &&
           tune_cjson_put_text(build, "id", host->build_id);
}

/* Copy a member from `from` to `to`. A missing member is no error. */
static bool copy(cJSON *to, const char *key, const cJSON *from)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(from, key);
    return !value || tune_cjson_put(to, key, cJSON_Duplicate(value, true));
}

cJSON *tune_run_writer_session(const struct tune_run_writer *w)
{
    cJSON *sessions = cJSON_GetObjectItemCaseSensitive(w->now, "sessions");
    int n = cJSON_GetArraySize(sessions);
    return n > 0 ? cJSON_GetArrayItem(sessions, n - 1) : NULL;
}

/* Keep the earlier sessions and add a new one. An earlier session that says "running" was killed,
 * because this process has the lock. */
static bool put_sessions(struct tune_run_writer *w, const struct tune_host *host)
{
    if (!copy(w->now, "sessions", w->before))
        return false;
    cJSON *last = tune_run_writer_session(w);
    cJSON *all = cJSON_GetObjectItemCaseSensitive(w->now, "sessions");
    const char *status = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(last, "status"));
    if (status && !strcmp(status, "running") && !tune_cjson_put_text(last, "status", "killed"))
        return false;
    if (!all)
        all = cJSON_AddArrayToObject(w->now, "sessions");
    cJSON *session = cJSON_CreateObject();
    bool good = tune_cjson_put_text(session, "status", "running") && put_now(session, "started") &&
                tune_cjson_put_whole(session, "pid", getpid()) &&
                tune_cjson_put_text(session, "host", host->name) &&
                tune_cjson_put_text(session, "cpu", host->cpu) &&
                tune_cjson_put_text(session, "build", host->build_id) &&
                copy(session, "command", w->now) && copy(session, "working_folder", w->now) &&
                tune_cjson_put_whole(session, "from_step", 0);
    if (good && cJSON_AddItemToArray(all, session))
        return true;
    cJSON_Delete(session);
    return false;
}

int tune_run_writer_begin(struct tune_run_writer *w, const char *program, const cJSON *settings,
                          const struct tune_host *host)
{
    static const char *const begun[] = {"started", "argv", "command", "working_folder"};
    const char *nonce = getenv("TUNE_NONCE");
    const cJSON *item;
    w->now = cJSON_CreateObject();
    bool good = tune_cjson_put_text(w->now, "program", program) &&
                tune_cjson_put_text(w->now, "version", TUNE_VERSION) &&
                tune_cjson_put_text(w->now, "status", "running") && put_now(w->now, "started") &&
                tune_cjson_put_whole(w->now, "pid", getpid());
    if (nonce && *nonce)
        good = good && tune_cjson_put_text(w->now, "nonce", nonce);
    cJSON_ArrayForEach(item, settings)
        good = good && tune_cjson_put(w->now, item->string, cJSON_Duplicate(item, true));
    good = good && put_host(w->now, host) && put_sessions(w, host);
    for (size_t i = 0; i < sizeof begun / sizeof *begun && w->before; i++)
        good = good && copy(w->now, begun[i], w->before);
    return good ? 0 : no_memory();
}

int tune_run_writer_save(const struct tune_run_writer *w)
{
    TRY(tune_run_writer_held(w));
    return w->follows ? 0 : tune_cjson_write(w->folder, TUNE_RUN_JSON, w->now, true);
}

int tune_run_writer_end(struct tune_run_writer *w, const char *status, const char *reason,
                        int64_t last_step)
{
    cJSON *const both[] = {w->now, tune_run_writer_session(w)};
    for (int i = 0; i < 2; i++)
        if (!tune_cjson_put_text(both[i], "status", status) || !put_now(both[i], "ended") ||
            (reason && !tune_cjson_put_text(both[i], "reason", reason)))
            return no_memory();
    TRY(tune_cjson_put_whole(both[1], "last_step", last_step) ? 0 : no_memory());
    return tune_run_writer_save(w);
}

/* ---- metrics.jsonl ---- */

char *tune_run_writer_row(struct tune_run_writer *w, const cJSON *row)
{
    char *text = cJSON_PrintUnformatted(row);
    int status = text ? tune_run_writer_held(w) : no_memory();
    errno = 0;
    if (status == 0 && (fprintf(w->metrics, "%s\n", text) < 0 || fflush(w->metrics) != 0))
        status = fail(w);
    if (status == 0)
        return text;
    cJSON_free(text);
    return NULL;
}

int tune_run_writer_sync(const struct tune_run_writer *w)
{
    TRY(tune_run_writer_held(w));
    /* EINVAL: the file system cannot sync */
    return fdatasync(fileno(w->metrics)) == 0 || errno == EINVAL ? 0 : fail(w);
}

int tune_run_writer_cut(struct tune_run_writer *w, int64_t bytes)
{
    if (ftruncate(fileno(w->metrics), bytes) == 0 && fseeko(w->metrics, 0, SEEK_END) == 0)
        return 0;
    tune_error_set("cannot cut %s/" TUNE_RUN_METRICS " to %" PRId64 " bytes: %s", w->folder, bytes,
                   strerror(errno));
    return -1;
}

/* ---- the other files ---- */

int tune_run_writer_again(const struct tune_run_writer *w)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_path(path, "%s/" TUNE_RUN_REPORT, w->folder));
    TRY(tune_file_remove_leftovers(w->folder));
    TRY(tune_file_remove_folder(path));
    TRY(tune_path(path, "%s/" TUNE_RUN_COLLECTIVES, w->folder));
    return tune_file_remove_folder(path);
}

int tune_run_writer_source(const struct tune_run_writer *w, const char *source, size_t size,
                           int64_t step)
{
    char path[TUNE_PATH_MAX], *text = NULL;
    size_t was = 0;
    if (w->follows)
        return 0;
    TRY(tune_path(path, "%s/recipe.c", w->folder));
    if (step == 0)
        return tune_file_write(path, source, size);
    if (tune_file_exists(path))
        TRY(tune_file_read(path, (size_t)64 << 20, &text, &was));
    bool same = text && was == size && !memcmp(text, source, size);
    free(text);
    if (same)
        return 0;
    TRY(tune_path(path, "%s/recipe-from-%" PRId64 ".c", w->folder, step));
    return tune_file_write(path, source, size) < 0 ? -1 : 1;
}

int tune_run_writer_report(const struct tune_run_writer *w, const cJSON *report, bool complete)
{
    TRY(tune_run_writer_held(w));
    return w->follows ? 0 : tune_cjson_write(w->folder, TUNE_RUN_REPORT, report, complete);
}
