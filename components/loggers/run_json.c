/* run_json.c - run.json: what runs, and each process that worked on it ("sessions").
 *
 * The members at the top are those of the run as it is now; started, argv, command and working_folder stay those of the
 * process that began it: they repeat the run. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "files/cjson.h"
#include "core/try.h"
#include "core/version.h"
#include "machine/host.h"
#include "loggers/state.h"

int tune_logger_no_memory(void)
{
    tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory in the logger");
    return -1;
}

int tune_run_json_write(struct tune_logger *log)
{
    log->run_changed = false;
    TRY(tune_logger_held(log));
    return tune_cjson_write(log->folder, "run.json", log->run, true);
}

static bool put_now(cJSON *object, const char *key)
{
    char text[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    return tune_cjson_put_text(object, key, text);
}

cJSON *tune_run_json_session(struct tune_logger *log)
{
    cJSON *sessions = cJSON_GetObjectItemCaseSensitive(log->run, "sessions");
    int n = cJSON_GetArraySize(sessions);
    return n > 0 ? cJSON_GetArrayItem(sessions, n - 1) : NULL;
}

int tune_run_json_status(struct tune_logger *log, const char *status, const char *reason)
{
    cJSON *const both[] = {log->run, tune_run_json_session(log)};
    log->ended = true;
    if (log->waiting) /* refused before it went on: the run is what it was */
        return 0;
    for (int i = 0; i < 2; i++)
        if (!tune_cjson_put_text(both[i], "status", status) || !put_now(both[i], "ended") ||
            (reason && !tune_logger_put_message(log, both[i], "reason", reason)))
            return tune_logger_no_memory();
    if (!tune_cjson_put_whole(both[1], "last_step", log->last_step))
        return tune_logger_no_memory();
    return tune_run_json_write(log);
}

static bool put_host(cJSON *run, const struct tune_host *host)
{
    cJSON *h = cJSON_AddObjectToObject(run, "host"), *build = cJSON_AddObjectToObject(run, "build");
    return tune_cjson_put_text(h, "class", host->class_name) && tune_cjson_put_text(h, "name", host->name) &&
           tune_cjson_put_text(h, "system", host->system) && tune_cjson_put_text(h, "machine", host->machine) &&
           tune_cjson_put_text(h, "cpu", host->cpu) &&
           tune_cjson_put_whole(h, "cores", host->cores) && tune_cjson_put_whole(h, "cpus", host->cpus) &&
           tune_cjson_put_whole(h, "memory_bytes", host->memory_bytes) &&
           tune_cjson_put_text(build, "compiler", TUNE_COMPILER) &&
           tune_cjson_put_text(build, "id", host->build_id);
}

/* A copy of from's member in to; one that is not there is fine. */
static bool copy(cJSON *to, const char *key, const cJSON *from)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(from, key);
    return !value || tune_cjson_put(to, key, cJSON_Duplicate(value, true));
}

/* The sessions so far, of which one that says it runs was killed (this process holds the folder now), and a new one. */
static bool put_sessions(struct tune_logger *log, const struct tune_host *host)
{
    if (!copy(log->run, "sessions", log->before))
        return false;
    cJSON *last = tune_run_json_session(log), *all = cJSON_GetObjectItemCaseSensitive(log->run, "sessions");
    const cJSON *status = cJSON_GetObjectItemCaseSensitive(last, "status");
    if (cJSON_IsString(status) && !strcmp(status->valuestring, "running") && !tune_cjson_put_text(last, "status", "killed"))
        return false;
    if (!all)
        all = cJSON_AddArrayToObject(log->run, "sessions");
    cJSON *session = cJSON_CreateObject();
    bool good = tune_cjson_put_text(session, "status", "running") && put_now(session, "started") &&
                tune_cjson_put_whole(session, "pid", getpid()) && tune_cjson_put_text(session, "host", host->name) &&
                tune_cjson_put_text(session, "cpu", host->cpu) && tune_cjson_put_text(session, "build", host->build_id) &&
                copy(session, "command", log->run) && copy(session, "working_folder", log->run) &&
                tune_cjson_put_whole(session, "from_step", 0);
    if (good && cJSON_AddItemToArray(all, session))
        return true;
    cJSON_Delete(session);
    return false;
}

int tune_run_json_start(struct tune_logger *log, struct tune_host *host)
{
    static const char *const begun[] = {"started", "argv", "command", "working_folder"};
    const char *nonce = getenv("TUNE_NONCE");
    tune_host_read(host);
    log->run = cJSON_CreateObject();
    bool good = tune_cjson_put_text(log->run, "program", log->options.program) &&
                tune_cjson_put_text(log->run, "version", TUNE_VERSION) &&
                tune_cjson_put_text(log->run, "status", "running") && put_now(log->run, "started") &&
                tune_cjson_put_whole(log->run, "pid", getpid());
    if (nonce && *nonce)
        good = good && tune_cjson_put_text(log->run, "nonce", nonce);
    const cJSON *item;
    cJSON_ArrayForEach(item, log->options.settings)
        good = good && tune_cjson_put(log->run, item->string, cJSON_Duplicate(item, true));
    good = good && put_host(log->run, host) && put_sessions(log, host);
    for (size_t i = 0; i < sizeof begun / sizeof *begun && log->before; i++)
        good = good && copy(log->run, begun[i], log->before);
    return good ? 0 : tune_logger_no_memory();
}
