/* jobs_files.c - the files of jobs: read and list them, and start new ones. */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"
#include "core/try.h"
#include "files/cjson.h"
#include "jobs.h"

extern char **environ;

int64_t job_number(const char *id)
{
    size_t n = strspn(id, "0123456789");
    return n == 0 || n > 15 || id[n] || *id == '0' ? -1 : strtoll(id, NULL, 10);
}

/* -1 with an error and ELOOP: the folder is a link, which may lead out of the root. */
static int check_no_link(const char *folder)
{
    struct stat st;
    if (lstat(folder, &st) < 0 || !S_ISLNK(st.st_mode))
        return 0;
    tune_error_usage("%s is a link, which is not followed; jobs are kept in folders of the root", folder);
    errno = ELOOP;
    return -1;
}

int job_path(char path[TUNE_PATH_MAX], const char *id, const char *name)
{
    TRY(tune_path(path, JOBS_FOLDER "/%s", id));
    TRY(check_no_link(".studio"));
    TRY(check_no_link(JOBS_FOLDER));
    TRY(check_no_link(path));
    return tune_path(path, JOBS_FOLDER "/%s%s%s", id, *name ? "/" : "", name);
}

const char *job_text(const cJSON *job, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(job, key));
    return text ? text : "";
}

const char *job_state(const cJSON *job)
{
    return job_text(job, "state");
}

bool job_is_over(const char *state)
{
    return strcmp(state, "queued") && strcmp(state, "running") && strcmp(state, "stopping");
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)(t.tv_nsec / 1000000) / 1000;
}

bool job_add_state(cJSON *job, const char *state, const char *reason)
{
    cJSON *entry = cJSON_CreateObject(), *states = cJSON_GetObjectItemCaseSensitive(job, "states");
    bool good = tune_cjson_put_text(job, "state", state) && tune_cjson_put_text(job, "reason", reason) && tune_cjson_put_text(entry, "state", state) &&
                tune_cjson_put_number(entry, "time", now_s()) && tune_cjson_put_text(entry, "reason", reason);
    good = good && cJSON_AddItemToArray(states, entry);
    if (!good)
        cJSON_Delete(entry);
    return good;
}

int job_write(const char *id, cJSON *job)
{
    char folder[TUNE_PATH_MAX];
    const cJSON *version = cJSON_GetObjectItemCaseSensitive(job, "version");
    TRY(job_path(folder, id, ""));
    bool good = tune_cjson_put(job, "version", cJSON_CreateNumber(version ? version->valuedouble + 1 : 1));
    return tune_cjson_write(folder, JOB_JSON, job, good);
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int job_ids(int64_t **ids)
{
    int n = 0, room = 0;
    *ids = NULL;
    TRY(check_no_link(".studio"));
    TRY(check_no_link(JOBS_FOLDER));
    DIR *dir = opendir(JOBS_FOLDER);
    if (!dir && errno != ENOENT)
        return tune_error_set(JOBS_FOLDER " cannot be read: %s", strerror(errno));
    for (struct dirent *e; dir && (e = readdir(dir));) {
        int64_t id = job_number(e->d_name);
        if (id < 0)
            continue;
        if (n == room) {
            int64_t *more = realloc(*ids, (size_t)(room = 2 * room + 64) * sizeof *more);
            if (!more) {
                closedir(dir);
                free(*ids);
                *ids = NULL;
                return tune_error_no_memory("the list of jobs");
            }
            *ids = more;
        }
        (*ids)[n++] = id;
    }
    if (dir)
        closedir(dir);
    if (n > 0)
        qsort(*ids, (size_t)n, sizeof **ids, by_number);
    return n;
}

/* ---- read ---- */

/* Lock a file of the job. -1 with errno: it cannot be; EWOULDBLOCK: another process has it. */
static int try_lock(const char *id, const char *name, int how)
{
    char path[TUNE_PATH_MAX];
    if (job_path(path, id, name) < 0)
        return -1;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && (errno == EACCES || errno == EROFS)) /* a root that can only be read */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && flock(fd, how | LOCK_NB) < 0) {
        int why = errno;
        close(fd);
        errno = why;
        fd = -1;
    }
    return fd;
}

/* The job says that it goes on, but nobody holds it. Write so, unless another reader does. */
static void mark_lost(const char *id, cJSON *job)
{
    bool begun = strcmp(job_state(job), "queued") != 0;
    int fd = try_lock(id, "lock", LOCK_EX);
    job_add_state(job, "lost", begun ? "nobody watches it any more: its processes were killed, or the machine went down. What the run saved is "
                                       "there: resume it" : "it was killed while it waited, or the machine went down; retry it");
    if (fd < 0)
        return;
    job_write(id, job); /* if that fails, the next one who reads it tries again */
    close(fd);
}

/* True if a job.json is one, whoever wrote it: a command line of texts, and states. */
static bool is_job(const cJSON *job)
{
    const cJSON *argv = cJSON_GetObjectItemCaseSensitive(job, "argv"), *word;
    bool good = cJSON_IsArray(argv) && argv->child && cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(job, "states"));
    cJSON_ArrayForEach(word, argv)
        good = good && cJSON_IsString(word);
    return good;
}

cJSON *studio_job_read(const char *id)
{
    char folder[TUNE_PATH_MAX], path[TUNE_PATH_MAX];
    struct stat st;
    if (job_number(id) < 0) {
        tune_error_usage("\"%.100s\" is no number of a job; /api/jobs lists them", id);
        return NULL;
    }
    /* the lock first: what is free now has written its last word */
    int fd = try_lock(id, "lock", LOCK_SH);
    bool is_free = fd >= 0 || errno == ENOENT; /* job.json is written after the lock is made: without one nobody holds it */
    if (fd >= 0)
        close(fd);
    cJSON *job = job_path(folder, id, "") < 0 ? NULL : tune_cjson_read_in(folder, JOB_JSON, JOB_JSON_MOST);
    if (job && !is_job(job)) {
        tune_error_set("%s/" JOB_JSON ": this is no job", folder);
        cJSON_Delete(job);
        job = NULL;
    }
    if (job && is_free && !job_is_over(job_state(job)))
        mark_lost(id, job);
    if (job) {
        tune_cjson_put_text(job, "id", id);
        tune_cjson_put_whole(job, "log_size", studio_job_log(id, path) == 0 && stat(path, &st) == 0 ? st.st_size : 0);
    }
    return job;
}

int studio_job_log(const char *id, char path[TUNE_PATH_MAX])
{
    return job_number(id) < 0 ? tune_error_usage("\"%.100s\" is no number of a job", id) : job_path(path, id, JOB_LOG);
}

/* The last job for which the text under that key is this one. */
static cJSON *find(const char *key, const char *text)
{
    int64_t *ids;
    cJSON *found = NULL;
    for (int i = job_ids(&ids) - 1; i >= 0 && !found; i--) {
        char id[32];
        snprintf(id, sizeof id, "%" PRId64, ids[i]);
        cJSON *job = studio_job_read(id);
        if (job && !strcmp(job_text(job, key), text))
            found = job;
        else
            cJSON_Delete(job);
    }
    free(ids);
    return found;
}

bool studio_job_of(struct studio *s, const char *folder, char id[32])
{
    (void)s;
    cJSON *job = *folder ? find("folder", folder) : NULL;
    snprintf(id, 32, "%s", job_text(job, "id"));
    cJSON_Delete(job);
    return *id != 0;
}

/* ---- start ---- */

static int cannot(const char *what)
{
    return tune_error_set("cannot %s in " JOBS_FOLDER ": %s", what, strerror(errno));
}

/* The folder of jobs, locked for the one who starts a job; the file has the last number. */
static int open_jobs(struct studio *s)
{
    char *real;
    TRY(tune_file_make_folder(JOBS_FOLDER));
    if ((real = realpath(JOBS_FOLDER, NULL))) {
        size_t n = strlen(s->root);
        bool inside = !strncmp(real, s->root, n) && (real[n] == '/' || n == 1);
        free(real);
        if (!inside)
            return tune_error_usage(JOBS_FOLDER " leads out of the root; remove that link");
    }
    int fd = open(JOBS_FOLDER "/last", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0 || flock(fd, LOCK_EX) < 0) {
        cannot("write");
        if (fd >= 0)
            close(fd);
        return -1;
    }
    return fd;
}

/* Remove what a server left that was killed between its first file and job.json. Nobody starts a job meanwhile. */
static void remove_unwritten(const int64_t *ids, int count)
{
    for (int i = 0; i < count; i++) {
        char id[32], path[TUNE_PATH_MAX];
        struct stat st;
        snprintf(id, sizeof id, "%" PRId64, ids[i]);
        if (job_path(path, id, JOB_JSON) == 0 && lstat(path, &st) < 0 && errno == ENOENT && job_path(path, id, "") == 0)
            tune_file_remove_folder(path);
    }
}

/* Make the next job's folder; its number into id. */
static int make_folder(int last, char id[32])
{
    char text[32] = "", path[TUNE_PATH_MAX];
    int64_t *ids, number = 0;
    int n = job_ids(&ids);
    if (n > 0)
        number = ids[n - 1];
    remove_unwritten(ids, n);
    free(ids);
    if (n < 0)
        return -1;
    if (pread(last, text, sizeof text - 1, 0) > 0 && job_number(text) > number)
        number = job_number(text);
    snprintf(id, 32, "%" PRId64, number + 1);
    TRY(job_path(path, id, ""));
    if (mkdir(path, 0777) < 0)
        return cannot("make a folder");
    if (pwrite(last, id, strlen(id), 0) < 0) {
        cannot("write");
        rmdir(path);
        return -1;
    }
    return 0;
}

/* Descriptors that the supervisor gets, from 3 on. */
enum { LOCK, PLACE, CONTROL, LAST, GIVEN = LAST };

static int open_files(const char *id, int files[GIVEN])
{
    static const char *const names[] = {"lock", "place", "control"};
    char path[TUNE_PATH_MAX];
    for (int i = 0; i < GIVEN; i++) {
        TRY(job_path(path, id, names[i]));
        if (i == CONTROL && mkfifo(path, 0600) < 0)
            return cannot("make a pipe");
        files[i] = open(path, O_RDWR | O_CLOEXEC | (i == CONTROL ? O_NONBLOCK : O_CREAT | O_EXCL), 0666);
        if (files[i] < 0 || (i != CONTROL && flock(files[i], LOCK_EX) < 0)) /* waits for one who just looks */
            return cannot("make files");
    }
    return 0;
}

/* Start the supervisor in a session of its own. It forks and its first process ends, so it is no child of ours. */
static int spawn_supervisor(const char *id, const int files[GIVEN])
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t how;
    sigset_t none, all;
    char self[] = "studio-job", word[] = JOB_WORD, number[32], *argv[] = {self, word, number, NULL};
    int high[GIVEN], error, status = 0;
    pid_t pid;
    snprintf(number, sizeof number, "%s", id);
    sigemptyset(&none), sigfillset(&all);
    if (posix_spawn_file_actions_init(&actions) || posix_spawnattr_init(&how))
        return tune_error_no_memory("starting a job");
    for (int i = 0; i < 3; i++)
        posix_spawn_file_actions_addopen(&actions, i, "/dev/null", O_RDWR, 0);
    for (int i = 0; i < GIVEN; i++) {
        high[i] = fcntl(files[i], F_DUPFD_CLOEXEC, 3 + GIVEN);
        posix_spawn_file_actions_adddup2(&actions, high[i], 3 + i);
    }
    posix_spawnattr_setsigdefault(&how, &all);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
    error = posix_spawn(&pid, "/proc/self/exe", &actions, &how, argv, environ);
    for (int i = 0; i < GIVEN; i++)
        if (high[i] >= 0)
            close(high[i]);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        return tune_error_set("cannot start a process for the job: %s", strerror(error));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : tune_error_set("the process for the job ended at once");
}

/* Write the new job and start its supervisor; its files are locked from before job.json is there. */
static int launch(const char *id, cJSON *job)
{
    int files[GIVEN] = {-1, -1, -1};
    char path[TUNE_PATH_MAX];
    int status = open_files(id, files);
    if (status == 0)
        status = job_write(id, job);
    if (status == 0)
        status = spawn_supervisor(id, files);
    for (int i = 0; i < GIVEN; i++)
        if (files[i] >= 0)
            close(files[i]);
    if (status < 0) {
        struct tune_error kept;
        tune_error_save(&kept);
        if (job_path(path, id, "") == 0)
            tune_file_discard_folder(path);
        tune_error_restore(&kept);
    }
    return status;
}

static cJSON *describe(const char *program, cJSON *argv, cJSON *values, const char *name, const char *folder, const char *key,
                       const struct studio_job_want *want)
{
    cJSON *job = cJSON_CreateObject(), *slot = cJSON_CreateObject();
    bool good = tune_cjson_put(job, "argv", argv);
    if (values)
        good = tune_cjson_put(job, "values", values) && good;
    good = tune_cjson_put(job, "states", cJSON_CreateArray()) && good;
    good = good && tune_cjson_put_text(job, "name", name && *name ? name : program) && tune_cjson_put_text(job, "program", program) &&
           tune_cjson_put_number(job, "created", now_s()) && tune_cjson_put_whole(slot, "cores", want ? want->cores : 0) &&
           tune_cjson_put_whole(slot, "gpus", want ? want->gpus : 0) && tune_cjson_put(slot, "none", cJSON_CreateBool(want && want->no_slot));
    if (folder)
        good = tune_cjson_put_text(job, "folder", folder) && good;
    if (key)
        good = tune_cjson_put_text(job, "key", key) && good;
    good = tune_cjson_put(job, "want", slot) && good;
    good = good && job_add_state(job, "queued", "");
    if (good)
        return job;
    cJSON_Delete(job);
    tune_error_no_memory("a job");
    return NULL;
}

cJSON *studio_job_start(struct studio *s, const char *program, cJSON *argv, cJSON *values, const char *name, const char *folder,
                        const char *key, const struct studio_job_want *want)
{
    char id[32];
    cJSON *job = describe(program, argv, values, name, folder, key, want), *old = NULL;
    int last = job ? open_jobs(s) : -1, status = last < 0 ? -1 : 0;
    if (status == 0 && key && *key && (old = find("key", key))) {
        bool same = cJSON_Compare(cJSON_GetObjectItemCaseSensitive(old, "argv"), cJSON_GetObjectItemCaseSensitive(job, "argv"), true);
        if (!same) {
            tune_error_usage("key: \"%.100s\" was given with another command, for job %s; choose another key", key, job_text(old, "id"));
            cJSON_Delete(old);
        }
        cJSON_Delete(job);
        close(last);
        return same ? old : NULL;
    }
    if (status == 0 && (status = make_folder(last, id)) == 0)
        status = launch(id, job);
    if (last >= 0)
        close(last);
    cJSON_Delete(job);
    return status == 0 ? studio_job_read(id) : NULL;
}
