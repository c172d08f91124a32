/* jobs.c - the routes of jobs: start, list, stop, resume, retry, delete. */
#include "jobs.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/try.h"
#include "files/cjson.h"
#include "machine/child.h"
#include "machine/cpus.h"
#include "machine/host.h"
#include "machine/memory.h"
#include "preview.h"
#include "profilers/gpus.h"
#include "programs.h"
#include "runs/run.h"
#include "runs/run_folder.h"
#include "secrets.h"

enum { FILES_LISTED = 1000, LOG_CHUNK = 256 << 10, MATCHES_MOST = 1000 };

static cJSON *member(const cJSON *json, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(json, key);
}

/* ---- show ---- */

/* The job as an answer: with its command as a line, and secrets hidden. */
static cJSON *shown(cJSON *job)
{
    if (!job)
        return NULL;
    studio_hide(job);
    char *line = studio_line(member(job, "argv"));
    tune_cjson_put_text(job, "command", line ? line : "");
    free(line);
    if (!member(job, "folder"))
        tune_cjson_put(job, "folder", cJSON_CreateNull());
    cJSON_DeleteItemFromObject(job, "key");
    return job;
}

static int put(struct studio_reply *r, cJSON *job)
{
    cJSON *warning = cJSON_DetachItemFromObjectCaseSensitive(job, "warning"); /* of this answer alone, so not in the tag */
    char *text = job ? cJSON_PrintUnformatted(shown(job)) : NULL;
    if (text)
        studio_tag(r, text, strlen(text));
    cJSON_free(text);
    if (warning)
        tune_cjson_put(job, "warning", warning);
    return job ? studio_put_json(r, job) : -1;
}

/* The job of the request; NULL with a problem. Checks If-Match. */
static cJSON *job_of(const struct studio_request *q, struct studio_reply *r)
{
    const char *id = studio_value(q, "id");
    cJSON *job = studio_job_read(id);
    if (!job) {
        studio_fail(r, 404, "job %.100s: %s", id, tune_error_message());
        return NULL;
    }
    cJSON *copy = cJSON_Duplicate(job, true);
    char *text = copy ? cJSON_PrintUnformatted(shown(copy)) : NULL;
    if (text)
        studio_tag(r, text, strlen(text));
    cJSON_free(text);
    cJSON_Delete(copy);
    if (strcmp(q->method, "GET") && studio_match(q, r) < 0) {
        cJSON_Delete(job);
        return NULL;
    }
    return job;
}

static void put_slots(cJSON *slots, const char *name, int total, int busy)
{
    cJSON *json = cJSON_CreateObject();
    tune_cjson_put_whole(json, "total", total);
    tune_cjson_put_whole(json, "busy", busy);
    tune_cjson_put(slots, name, json);
}

static int list_jobs(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    (void)s;
    int64_t *ids;
    int n = job_ids(&ids);
    if (n < 0)
        return -1;
    const char *state = studio_value(q, "state");
    cJSON *json = cJSON_CreateObject(), *list = cJSON_CreateArray(), *slots = cJSON_CreateObject();
    int bad = 0;
    for (int i = n - 1; i >= 0; i--) {
        char id[32];
        snprintf(id, sizeof id, "%" PRId64, ids[i]);
        cJSON *job = studio_job_read(id);
        bad += !job;
        if (job && (!state || !strcmp(state, job_state(job))))
            cJSON_AddItemToArray(list, shown(job));
        else
            cJSON_Delete(job);
    }
    free(ids);
    int total, busy = job_count_cores(&total, NULL, NULL);
    put_slots(slots, "cpu", total, busy);
    busy = job_count_gpus(&total);
    put_slots(slots, "gpu", total, busy);
    bool good = tune_cjson_put(json, "jobs", list);
    good = tune_cjson_put(json, "slots", slots) && tune_cjson_put_whole(json, "unreadable", bad) && good;
    char *text = good ? cJSON_PrintUnformatted(json) : NULL;
    if (text)
        studio_tag(r, text, strlen(text));
    cJSON_free(text);
    return studio_put_json(r, good ? json : (cJSON_Delete(json), NULL));
}

static int show_job(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    (void)s;
    cJSON *job = job_of(q, r);
    return job ? put(r, job) : -1;
}

/* ---- the log ---- */

/* Find the lines of the log from offset on that hold the text, and the first one that looks like an error. A line of more than
 * LINE bytes is several. Returns where it ended: the file may be longer than SEARCHED. */
static int64_t search_log(FILE *in, int64_t offset, const char *what, cJSON *matches, cJSON *errors)
{
    enum { LINE = 64 << 10, SEARCHED = 128 << 20 };
    char *line = malloc(LINE);
    bool whole;
    int64_t end = offset + SEARCHED;
    int found = 0;
    for (size_t n; line && offset < end && (n = studio_read_line(in, line, LINE, &whole)) > 0; offset += (int64_t)n) {
        line[n - whole] = 0;
        if (what && found < MATCHES_MOST && strstr(line, what)) {
            cJSON *match = cJSON_CreateObject();
            tune_cjson_put_whole(match, "offset", offset);
            tune_cjson_put_bytes(match, "line", line, strnlen(line, 500));
            cJSON_AddItemToArray(matches, match);
            found++;
        }
        if (!errors->child && (strcasestr(line, "error") || strstr(line, "Traceback") || strcasestr(line, "fatal")))
            cJSON_AddItemToArray(errors, cJSON_CreateNumber((double)offset));
    }
    free(line);
    return offset;
}

/* A log that is a link out of the root is refused, not empty. */
static int check_log(struct studio *s, struct studio_reply *r, const char *path)
{
    int fd = *path ? studio_open(s, path, O_RDONLY) : -1;
    bool out = *path && fd < 0 && tune_error_kind() == TUNE_ERROR_USAGE;
    if (fd >= 0)
        close(fd);
    return out ? studio_fail(r, 403, "%s", tune_error_message()) : (tune_error_clear(), 0);
}

/* Answer with a part of a log; path "": there is none. */
static int put_log(struct studio *s, const struct studio_request *q, struct studio_reply *r, const char *path)
{
    TRY(check_log(s, r, path));
    double offset = studio_number(q, "offset", 0), limit = studio_number(q, "limit", LOG_CHUNK);
    int fd = *path ? studio_open(s, path, O_RDONLY) : -1;
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    cJSON *json = cJSON_CreateObject(), *matches = cJSON_CreateArray(), *errors = cJSON_CreateArray();
    char *text = malloc((size_t)limit + 1);
    ssize_t n = fd < 0 || !text ? 0 : pread(fd, text, (size_t)limit, (off_t)offset);
    int64_t searched = 0;
    n = n > 0 ? n : 0;
    while (n > 3 && (double)n == limit && (text[n - 1] & 0xc0) == 0x80) /* end between two characters */
        n--;
    if (n > 3 && (double)n < limit && (text[n - 1] & 0xc0) == 0xc0)
        n--;
    tune_cjson_put_whole(json, "offset", (int64_t)offset);
    tune_cjson_put_whole(json, "next", (int64_t)offset + n);
    tune_cjson_put_whole(json, "size", size);
    tune_cjson_put_bytes(json, "text", text ? text : "", (size_t)n);
    FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
    if (in) {
        /* who follows the log has seen what comes before */
        int64_t from = studio_value(q, "search") ? 0 : (int64_t)offset;
        if (fseeko(in, from, SEEK_SET) == 0)
            searched = search_log(in, from, studio_value(q, "search"), matches, errors);
        fclose(in);
    }
    tune_cjson_put(json, "matches", matches);
    tune_cjson_put(json, "errors", errors);
    tune_cjson_put_whole(json, "searched", searched); /* to this byte */
    if (!*path)
        cJSON_AddTrueToObject(json, "none");
    free(text);
    return studio_put_json(r, json);
}

static int show_log(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    char path[TUNE_PATH_MAX];
    if (studio_job_log(studio_value(q, "id"), path) < 0)
        return studio_fail(r, 404, "%s", tune_error_message());
    cJSON *job = studio_job_read(studio_value(q, "id"));
    if (!job)
        return studio_fail(r, 404, "%s", tune_error_message());
    cJSON_Delete(job);
    return put_log(s, q, r, path);
}

/* True if there is something of that name, a link out of the root included. */
static bool is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode));
}

/* The log of a run: that of its newest job; that which sweep kept beside the run, log-N.txt beside
 * run-N; or its own log.txt. */
static int show_run_log(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    const char *folder = studio_value(q, "id"), *end = strrchr(folder, '/');
    char id[32], path[TUNE_PATH_MAX];
    int fd = studio_open(s, folder, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return studio_fail(r, 404, "%s: no such run", folder);
    close(fd);
    if (studio_job_of(s, folder, id) && studio_job_log(id, path) == 0)
        return put_log(s, q, r, path);
    if (end && !strncmp(end, "/run-", 5)) {
        TRY(tune_path(path, "%.*s/log-%s.txt", (int)(end - folder), folder, end + 5));
        if (is_there(path))
            return put_log(s, q, r, path);
    }
    TRY(tune_path(path, "%s/" JOB_LOG, folder));
    bool own = is_there(path);
    return put_log(s, q, r, own ? path : "");
}

/* ---- start ---- */

/* True if a path has a step up, is absolute, or goes through a link that leads out of the root. */
static bool leaves_root(struct studio *s, const char *path)
{
    char part[TUNE_PATH_MAX];
    if (*path == '/' || strlen(path) >= sizeof part)
        return true;
    for (const char *at = path; *at; at += strcspn(at, "/"), at += strspn(at, "/"))
        if (!strncmp(at, "..", 2) && (at[2] == '/' || !at[2]))
            return true;
    bool out = false;
    for (const char *at = path + strcspn(path, "/"); !out; at += strcspn(at, "/")) { /* each folder on the way that there is */
        snprintf(part, sizeof part, "%.*s", (int)(at - path), path);
        int fd = *part ? studio_open(s, part, O_RDONLY) : -1;
        out = *part && fd < 0 && tune_error_kind() == TUNE_ERROR_USAGE;
        if (fd >= 0)
            close(fd);
        if (!*at)
            break;
        at += strspn(at, "/");
    }
    tune_error_clear();
    return out;
}

/* The run folder of the values relative to the root, into folder; "": none is named. -1 with a problem. */
static int folder_of(struct studio *s, struct studio_reply *r, const cJSON *program, const cJSON *values, char folder[TUNE_PATH_MAX])
{
    const char *output = cJSON_GetStringValue(member(values, "output"));
    size_t n = strlen(s->root);
    *folder = 0;
    if (!output || !*output || !studio_option(program, "output"))
        return 0;
    if (*output == '/' && !strncmp(output, s->root, n) && output[n] == '/')
        output += n + 1 + strspn(output + n + 1, "/");
    if (leaves_root(s, output)) {
        studio_member(r, "option", "output");
        return studio_fail(r, 400, "output: %s leads out of the root; expected a path below it", output);
    }
    while (!strncmp(output, "./", 2))
        output += 2;
    TRY(tune_path(folder, "%s", output));
    for (size_t end = strlen(folder); end > 1 && folder[end - 1] == '/';)
        folder[--end] = 0;
    return 0;
}

/* Compare the program's plan with the memory that is free. -1 with a problem: it is too little. It is no problem if the request says
 * "force". Nor if the job waits for others to end, for then memory becomes free, and the program asks again. *warning: what is
 * missing, which the caller frees; NULL: nothing. */
static int check_memory(const struct studio_request *q, struct studio_reply *r, const cJSON *program, const cJSON *argv, bool no_slot,
                        char **warning)
{
    *warning = studio_memory_warning(program, argv);
    int total;
    bool waits = *warning && !no_slot && job_count_cores(&total, NULL, NULL) > 0;
    if (!*warning || waits || studio_bool(q, "force", false))
        return 0;
    studio_member(r, "memory", *warning);
    studio_fail(r, 409, "%s. Nothing was started: wait until memory is free, choose smaller values, or start it all the same with \"force\": true "
                "(on the command line --force)", *warning);
    free(*warning);
    *warning = NULL;
    return -1;
}

/* The job with the warning, which is freed. */
static cJSON *warned(cJSON *job, char *warning)
{
    if (job && warning)
        tune_cjson_put_text(job, "warning", warning);
    free(warning);
    return job;
}

static cJSON *start(struct studio *s, const struct studio_request *q, struct studio_reply *r, const char *name, const cJSON *given)
{
    char folder[TUNE_PATH_MAX];
    cJSON *program = studio_program(s, r, name), *job = NULL;
    cJSON *argv = program ? studio_argv(r, program, given) : NULL;
    char *warning = NULL;
    const char *slot = studio_value(q, "slot");
    struct studio_job_want want = {.cores = (int)studio_number(q, "cpus", 0), .gpus = (int)studio_number(q, "gpus", 0)};
    want.no_slot = slot ? !strcmp(slot, "none") : !strcmp(name, "sweep");
    if (argv && folder_of(s, r, program, given, folder) == 0 && check_memory(q, r, program, argv, want.no_slot, &warning) == 0) {
        if (want.cores == 0 && !studio_option(program, "threads"))
            want.cores = 1; /* it has no threads of its own to share out */
        cJSON *values = given ? cJSON_Duplicate(given, true) : cJSON_CreateObject();
        job = studio_job_start(s, name, argv, values, studio_value(q, "name"), *folder ? folder : NULL, studio_value(q, "key"), &want);
    } else {
        cJSON_Delete(argv);
    }
    cJSON_Delete(program);
    return warned(job, warning);
}

static int start_job(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    return put(r, start(s, q, r, studio_value(q, "program"), member(q->json, "values")));
}

/* ---- orders ---- */

static int order(const char *id, char what)
{
    char path[TUNE_PATH_MAX];
    TRY(job_path(path, id, "control"));
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    bool good = fd >= 0 && write(fd, &what, 1) == 1;
    if (fd >= 0)
        close(fd);
    return good ? 0 : tune_error_set("job %s: nobody watches it any more", id);
}

static int stop_job(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    (void)s;
    cJSON *job = job_of(q, r);
    if (!job)
        return -1;
    const char *state = job_state(job);
    bool cancel = strstr(q->route->path, "/cancel") != NULL;
    int status = 0;
    if (job_is_over(state) || (cancel && strcmp(state, "queued")))
        status = studio_fail(r, 409, "job %s is %s; %s", studio_value(q, "id"), state, cancel ? "only one that is queued is cancelled; stop it" : "there is nothing to stop");
    else
        status = order(studio_value(q, "id"), studio_bool(q, "now", false) ? 'n' : 's');
    cJSON_Delete(job);
    return status < 0 ? -1 : put(r, studio_job_read(studio_value(q, "id")));
}

/* ---- again ---- */

static struct studio_job_want want_of(const cJSON *job)
{
    const cJSON *want = member(job, "want"), *cores = member(want, "cores"), *gpus = member(want, "gpus");
    return (struct studio_job_want){.cores = cores ? cores->valueint : 0, .gpus = gpus ? gpus->valueint : 0, .no_slot = cJSON_IsTrue(member(want, "none"))};
}

/* Refuse a command line from a file that writes out of the root. */
static int check_argv(struct studio *s, struct studio_reply *r, const cJSON *argv)
{
    const cJSON *word;
    cJSON_ArrayForEach(word, argv) {
        const char *text = word->valuestring, *output = !strncmp(text, "--output=", 9) ? text + 9 : !strcmp(text, "--output") && word->next ? word->next->valuestring : NULL;
        size_t n = strlen(s->root);
        if (output && !strncmp(output, s->root, n) && output[n] == '/')
            output += n + 1 + strspn(output + n + 1, "/");
        if (output && leaves_root(s, output))
            return studio_fail(r, 409, "its command line writes to %.500s, which leads out of the root; start it anew from the form", output);
    }
    return 0;
}

/* A command line from a file, for a program of ours: what a job.json names itself is not started. */
static cJSON *fresh_argv(const cJSON *program, const cJSON *old)
{
    cJSON *argv = cJSON_Duplicate(old, true);
    if (argv) {
        char path[TUNE_PATH_MAX];
        const char *at = job_text(program, "path");
        snprintf(path, sizeof path, "%s%s", strchr(at, '/') ? "" : "./", at);
        cJSON_ReplaceItemInArray(argv, 0, cJSON_CreateString(path));
    }
    return argv;
}

static int retry_job(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    cJSON *job = job_of(q, r), *again = NULL;
    char *warning = NULL;
    if (!job)
        return -1;
    const char *program = job_text(job, "program"), *folder = job_text(job, "folder");
    if (!job_is_over(job_state(job)))
        studio_fail(r, 409, "job %s is %s; it can be started again when it has ended", studio_value(q, "id"), job_state(job));
    else {
        cJSON *about = studio_program(s, r, program), *argv = about ? fresh_argv(about, member(job, "argv")) : NULL;
        struct studio_job_want want = want_of(job);
        if (argv && (check_argv(s, r, argv) < 0 || check_memory(q, r, about, argv, want.no_slot, &warning) < 0)) {
            cJSON_Delete(argv);
            argv = NULL;
        }
        cJSON_Delete(about);
        if (argv)
            again = studio_job_start(s, program, argv, cJSON_Duplicate(member(job, "values"), true), job_text(job, "name"),
                                     member(member(job, "values"), "output") ? folder : NULL, studio_value(q, "key"), &want);
    }
    cJSON_Delete(job);
    return put(r, warned(again, warning));
}

/* Check that the folder is one of the root that holds a run. 0, or -1 with a problem. */
static int check_run(struct studio *s, struct studio_reply *r, const char *folder)
{
    struct stat st;
    int fd = studio_open(s, folder, O_RDONLY | O_DIRECTORY);
    for (const char *at = folder; *at && fd >= 0; at += strcspn(at, "/"), at += *at == '/') /* one name for a run, so that its jobs are found */
        if (*at == '/' || (*at == '.' && (at[1] == '/' || !at[1])) || (at[strcspn(at, "/")] && !at[strcspn(at, "/") + 1])) {
            close(fd);
            return studio_fail(r, 404, "%s: expected the id of a run, as /api/runs lists it", folder);
        }
    if (fd < 0)
        return studio_fail(r, tune_error_kind() == TUNE_ERROR_USAGE ? 403 : 404, "%s", tune_error_message());
    close(fd);
    if (!*folder || !strcmp(folder, ".") || lstat(folder, &st) < 0 || !S_ISDIR(st.st_mode) || !tune_run_is(folder))
        return studio_fail(r, 404, "%s: this is no run folder", folder);
    return 0;
}

/* Resume the run of a folder, as a job. */
static cJSON *resume(struct studio *s, const struct studio_request *q, struct studio_reply *r, const char *folder, const struct studio_job_want *want)
{
    if (check_run(s, r, folder) < 0)
        return NULL;
    struct tune_run *run = tune_run_open_within(folder, s->root, NULL);
    cJSON *job = NULL;
    if (!run)
        return NULL;
    const char *name = job_text(run->run, "program");
    cJSON *program = NULL;
    char *warning = NULL;
    if (!tune_run_ended(run) || tune_run_held(folder))
        studio_fail(r, 409, "%s: a process works on this run", folder);
    else if (run->state == TUNE_RUN_FINISHED)
        studio_fail(r, 409, "%s: this run is finished; nothing is left to do", folder);
    else if (!*name)
        studio_fail(r, 409, "%s: its %s does not say which program made it", folder, TUNE_RUN_JSON);
    else if ((program = studio_program(s, r, name)) && !studio_option(program, "resume"))
        studio_fail(r, 409, "%s has no --resume", name);
    else if (program) {
        cJSON *values = cJSON_CreateObject();
        tune_cjson_put_text(values, "resume", folder);
        cJSON *argv = studio_argv(r, program, values);
        if (argv && check_memory(q, r, program, argv, want->no_slot, &warning) < 0) {
            cJSON_Delete(argv);
            argv = NULL;
        }
        if (argv) /* threads and device tell the slot */
            for (int i = 0; i < 2; i++) {
                char text[64];
                const char *option = i ? "device" : "threads";
                if (tune_run_option(run, option, text, sizeof text))
                    tune_cjson_put_text(values, option, text);
            }
        if (argv)
            job = studio_job_start(s, name, argv, values, run->name, folder, studio_value(q, "key"), want);
        else
            cJSON_Delete(values);
    }
    cJSON_Delete(program);
    tune_run_free(run);
    return warned(job, warning);
}

static int resume_job(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    cJSON *job = job_of(q, r), *again = NULL;
    if (!job)
        return -1;
    struct studio_job_want want = want_of(job);
    if (!job_is_over(job_state(job)))
        studio_fail(r, 409, "job %s is %s", studio_value(q, "id"), job_state(job));
    else if (!*job_text(job, "folder"))
        studio_fail(r, 409, "job %s has no run folder to go on with; retry it", studio_value(q, "id"));
    else
        again = resume(s, q, r, job_text(job, "folder"), &want);
    cJSON_Delete(job);
    return put(r, again);
}

static int resume_run(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    struct studio_job_want want = {.cores = 0};
    return put(r, resume(s, q, r, studio_value(q, "id"), &want));
}

/* ---- delete ---- */

/* Add the files below an open folder, which is closed. name: its path for the list. */
static void list_files(int fd, const char *name, cJSON *files, int64_t *bytes, int64_t *count, int depth)
{
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        struct stat st;
        char path[TUNE_PATH_MAX];
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            snprintf(path, sizeof path, "%s%s%s", name, *name ? "/" : "", e->d_name) >= (int)sizeof path)
            continue;
        if (S_ISDIR(st.st_mode)) {
            if (depth < 32)
                list_files(openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), path, files, bytes, count, depth + 1);
            continue;
        }
        *bytes += st.st_size;
        if (++*count > FILES_LISTED)
            continue;
        cJSON *file = cJSON_CreateObject();
        tune_cjson_put_bytes(file, "name", path, strlen(path));
        tune_cjson_put_whole(file, "size", st.st_size);
        cJSON_AddItemToArray(files, file);
    }
    if (dir)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
}

/* Say what the folder holds and, if confirmed, remove it. */
static int delete_folder(struct studio *s, const struct studio_request *q, struct studio_reply *r, const char *folder)
{
    cJSON *json = cJSON_CreateObject(), *files = cJSON_CreateArray();
    int64_t bytes = 0, count = 0;
    bool confirm = studio_bool(q, "confirm", false);
    list_files(studio_open(s, folder, O_RDONLY | O_DIRECTORY), "", files, &bytes, &count, 0);
    int status = confirm ? tune_file_discard_folder(folder) : 0;
    tune_cjson_put(json, "files", files);
    tune_cjson_put_whole(json, "count", count);
    tune_cjson_put_whole(json, "bytes", bytes);
    tune_cjson_put(json, "deleted", cJSON_CreateBool(confirm));
    if (status == 0)
        return studio_put_json(r, json);
    cJSON_Delete(json);
    return -1;
}

static int delete_job(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    char path[TUNE_PATH_MAX];
    cJSON *job = job_of(q, r);
    if (!job)
        return -1;
    int status = job_is_over(job_state(job)) ? job_path(path, studio_value(q, "id"), "")
                                             : studio_fail(r, 409, "job %s is %s; stop it first", studio_value(q, "id"), job_state(job));
    cJSON_Delete(job);
    return status < 0 ? -1 : delete_folder(s, q, r, path);
}

static int delete_run(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    const char *folder = studio_value(q, "id");
    char id[32];
    TRY(check_run(s, r, folder));
    bool held = tune_run_held(folder);
    if (!held && studio_job_of(s, folder, id)) {
        cJSON *job = studio_job_read(id);
        held = job && !job_is_over(job_state(job));
        cJSON_Delete(job);
    }
    if (held)
        return studio_fail(r, 409, "%s: a process works on this run, or a job waits to; stop it first", folder);
    return delete_folder(s, q, r, folder);
}

/* ---- clone with changes, and the machine ---- */

/* The options that were given to the run: not those of default files, and none about where it wrote. */
static int show_form(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    const char *folder = studio_value(q, "id");
    TRY(check_run(s, r, folder));
    struct tune_run *run = tune_run_open_within(folder, s->root, NULL);
    if (!run)
        return -1;
    cJSON *json = cJSON_CreateObject(), *values = cJSON_CreateObject();
    const cJSON *option, *sources = member(run->run, "sources");
    cJSON_ArrayForEach(option, member(run->run, "options")) {
        const char *source = cJSON_GetStringValue(member(sources, option->string)), *name = option->string;
        bool given = source && (!strcmp(source, "flag") || !strncmp(source, "config", 6));
        if (given && !cJSON_IsNull(option) && strcmp(name, "output") && strcmp(name, "resume") && strcmp(name, "overwrite") && !studio_is_secret(name))
            tune_cjson_put(values, name, cJSON_Duplicate(option, true));
    }
    tune_cjson_put_text(json, "program", job_text(run->run, "program"));
    tune_cjson_put(json, "values", values);
    tune_run_free(run);
    return studio_put_json(r, json);
}

static int show_system(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    (void)q;
    struct tune_host *host = calloc(1, sizeof *host);
    cJSON *json = cJSON_CreateObject();
    double load = 0;
    if (!host)
        return tune_error_no_memory("the machine");
    tune_host_read(host);
    double used = tune_memory_used();
    tune_cjson_put_text(json, "cpu", host->cpu);
    tune_cjson_put_whole(json, "cpus", host->cpus);
    tune_cjson_put_whole(json, "cores", host->cores);
    tune_cjson_put_whole(json, "gpus", host->gpus);
    tune_cjson_put_text(json, "gpu", host->gpu);
    tune_cjson_put_whole(json, "memory_bytes", host->memory_bytes);
    if (used >= 0)
        tune_cjson_put_whole(json, "free_bytes", (int64_t)((double)host->memory_bytes * (100 - used) / 100));
    tune_cjson_put_whole(json, "disk_free_bytes", tune_file_free_space("."));
    tune_cjson_put_text(json, "root", s->root);
    if (getloadavg(&load, 1) == 1)
        tune_cjson_put_number(json, "load", load);
    free(host);
    return studio_put_json(r, json);
}

#define JOB_ID {"id", STUDIO_IN_PATH, .required = true, .help = "number of the job"}
#define RUN_ID {"id", STUDIO_IN_PATH, .required = true, .help = "folder of the run, relative to the root"}
#define LOG_PART {"offset", STUDIO_IN_QUERY, STUDIO_WHOLE, .least = 0, .most = 1e15, .help = "byte to begin at"}, \
    {"limit", STUDIO_IN_QUERY, STUDIO_WHOLE, .least = 1, .most = 4 << 20, .help = "most bytes; default 262144"}, \
    {"search", STUDIO_IN_QUERY, .help = "text whose lines are listed"}
#define KEY {"key", STUDIO_IN_BODY, .help = "a text of your own: a second request with it gives the first one's job"}
#define FORCE {"force", STUDIO_IN_BODY, STUDIO_BOOL, .help = "start it even if its memory plan exceeds the memory that is free now"}
#define CONFIRM {"confirm", STUDIO_IN_BODY, STUDIO_BOOL, .help = "delete; without it the answer says what would go"}

const struct studio_route studio_job_routes[] = {
    {"GET", "/api/jobs", "listJobs", "job list", "Jobs, the newest first, and the slots", "application/json", list_jobs,
     {{"state", STUDIO_IN_QUERY, .choices = "queued|running|stopping|succeeded|failed|diverged|cancelled|lost", .help = "only jobs in this state"}}},
    {"GET", "/api/jobs/{id}", "showJob", "job show", "A job with its states", "application/json", show_job, {JOB_ID}},
    {"GET", "/api/jobs/{id}/log", "showJobLog", "job log", "What the program printed", "application/json", show_log,
     {JOB_ID, LOG_PART}},
    {"GET", "/api/runs/{id}/log", "showRunLog", "run log", "What a run printed, as far as it was kept: by a job, a sweep, or in its folder",
     "application/json", show_run_log, {RUN_ID, LOG_PART}},
    {"POST", "/api/jobs", "startJob", "run start", "Start a program as a job, which waits for its slot", "application/json", start_job,
     {{"program", STUDIO_IN_BODY, .required = true, .help = "name of the program, such as finetune_lora"},
      {"values", STUDIO_IN_BODY, STUDIO_JSON, .help = "the options' values by name"},
      {"name", STUDIO_IN_BODY, .help = "name of the job; default: that of the program"},
      {"cpus", STUDIO_IN_BODY, STUDIO_WHOLE, .least = 1, .most = 4096, .help = "cores of the slot; default: its --threads, else all; 1 for a program without --threads"},
      {"gpus", STUDIO_IN_BODY, STUDIO_WHOLE, .least = 0, .most = 62, .help = "GPUs of the slot; default: one if its --device is cuda"},
      {"slot", STUDIO_IN_BODY, .choices = "auto|none", .help = "none: it starts without waiting, as a sweep does, which reserves cores itself"}, KEY, FORCE}},
    {"POST", "/api/jobs/{id}/stop", "stopJob", "run stop", "Stop a job: it saves and ends", "application/json", stop_job,
     {JOB_ID, {"now", STUDIO_IN_BODY, STUDIO_BOOL, .help = "kill it without a save"}}},
    {"POST", "/api/jobs/{id}/cancel", "cancelJob", "job cancel", "Take a job out of the queue", "application/json", stop_job, {JOB_ID}},
    {"POST", "/api/jobs/{id}/retry", "retryJob", "job retry", "Start the same command again, as a new job", "application/json", retry_job, {JOB_ID, KEY, FORCE}},
    {"POST", "/api/jobs/{id}/resume", "resumeJob", "job resume", "Go on with the job's run, as a new job", "application/json", resume_job, {JOB_ID, KEY, FORCE}},
    {"POST", "/api/runs/{id}/resume", "resumeRun", "run resume", "Go on with a run that ended before its end, as a job", "application/json", resume_run,
     {RUN_ID, KEY, FORCE}},
    {"POST", "/api/jobs/{id}/delete", "deleteJob", "job delete", "Delete a job with its log; its run stays", "application/json", delete_job, {JOB_ID, CONFIRM}},
    {"POST", "/api/runs/{id}/delete", "deleteRun", "run delete", "Delete a run folder with its checkpoints", "application/json", delete_run, {RUN_ID, CONFIRM}},
    {"GET", "/api/runs/{id}/form", "showRunForm", NULL, "The values that were given to a run, to start it again with changes", "application/json", show_form, {RUN_ID}},
    {"GET", "/api/system", "showSystem", NULL, "The machine, and what is free of it", "application/json", show_system, {{0}}},
    {0},
};
