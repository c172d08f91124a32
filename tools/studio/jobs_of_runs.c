/* jobs_of_runs.c - the newest job of each run folder. A job that has ended changes no more, so it
 * is read once and kept in memory. The time, size and number of its job.json tell that it is the
 * same. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/print.h"
#include "core/try.h"
#include "files/cjson.h"
#include "jobs.h"

struct kept_job {
    int64_t id;
    struct timespec changed; /* of its job.json */
    off_t size;
    ino_t node;
    struct studio_job_run run;
};

static struct {
    pthread_mutex_t lock;
    struct kept_job *at; /* in the order of their numbers */
    int count;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void free_run(struct studio_job_run *r)
{
    free(r->folder);
    free(r->reason);
    *r = (struct studio_job_run){0};
}

static int by_id(const void *a, const void *b)
{
    int64_t x = ((const struct kept_job *)a)->id, y = ((const struct kept_job *)b)->id;
    return (x > y) - (x < y);
}

/* Read the job of this number. false: it is none, or memory is short; it is left out. */
static bool read_job(struct kept_job *k)
{
    char id[32];
    snprintf(id, sizeof id, "%" PRId64, k->id);
    cJSON *job = studio_job_read(id);
    if (!job) {
        tune_error_clear(); /* it was just deleted; /api/jobs counts those that cannot be read */
        return false;
    }
    bool over = job_is_over(job_state(job));
    memcpy(k->run.id, id, sizeof id);
    snprintf(k->run.state, sizeof k->run.state, "%s", job_state(job));
    k->run.folder = strdup(job_text(job, "folder"));
    k->run.reason = strdup(over ? "" : job_text(job, "reason"));
    cJSON_Delete(job);
    if (k->run.folder && k->run.reason)
        return true;
    free_run(&k->run);
    return false;
}

/* The job as it was read before, if it has ended and its file is that one. */
static bool take_kept(struct kept_job *k)
{
    struct kept_job *old = kept.count > 0 ? bsearch(k, kept.at, (size_t)kept.count, sizeof *old, by_id) : NULL;
    if (!old || !old->run.folder || !job_is_over(old->run.state) || old->node != k->node || old->size != k->size ||
        old->changed.tv_sec != k->changed.tv_sec || old->changed.tv_nsec != k->changed.tv_nsec)
        return false;
    k->run = old->run;
    old->run = (struct studio_job_run){0};
    return true;
}

/* Read what is new of these jobs; *count becomes how many there are. */
static void look(const int64_t *ids, struct kept_job *fresh, int *count)
{
    int n = 0;
    for (int i = 0; i < *count; i++) {
        char path[TUNE_PATH_MAX], id[32];
        struct stat st;
        snprintf(id, sizeof id, "%" PRId64, ids[i]);
        if (job_path(path, id, JOB_JSON) < 0 || stat(path, &st) < 0)
            continue;
        fresh[n] = (struct kept_job){.id = ids[i], .changed = st.st_mtim, .size = st.st_size, .node = st.st_ino};
        n += take_kept(&fresh[n]) || read_job(&fresh[n]);
    }
    *count = n;
}

static int by_folder(const void *a, const void *b)
{
    const struct studio_job_run *x = a, *y = b;
    int order = strcmp(x->folder, y->folder);
    int64_t m = job_number(x->id), n = job_number(y->id);
    return order ? order : (m > n) - (m < n);
}

/* Copies of the jobs that have a run folder, the newest of each. */
static int copy_runs(struct studio_job_runs *runs)
{
    if (kept.count == 0)
        return 0;
    if (!(runs->at = calloc((size_t)kept.count, sizeof *runs->at)))
        return tune_error_no_memory("the jobs of runs");
    int n = 0;
    for (int i = 0; i < kept.count; i++)
        if (*kept.at[i].run.folder)
            runs->at[n++] = kept.at[i].run;
    if (n > 0)
        qsort(runs->at, (size_t)n, sizeof *runs->at, by_folder);
    for (int i = 0; i < n; i++) {
        if (i + 1 < n && !strcmp(runs->at[i].folder, runs->at[i + 1].folder))
            continue;
        struct studio_job_run *r = &runs->at[runs->count];
        *r = runs->at[i];
        r->folder = strdup(r->folder);
        r->reason = strdup(r->reason);
        runs->count++;
        if (!r->folder || !r->reason)
            return tune_error_no_memory("the jobs of runs");
    }
    return 0;
}

int studio_job_runs(struct studio_job_runs *runs)
{
    int64_t *ids;
    *runs = (struct studio_job_runs){0};
    int n = job_ids(&ids);
    TRY(n);
    struct kept_job *fresh = calloc((size_t)n + 1, sizeof *fresh);
    if (!fresh) {
        free(ids);
        return tune_error_no_memory("the jobs of runs");
    }
    pthread_mutex_lock(&kept.lock);
    look(ids, fresh, &n);
    for (int i = 0; i < kept.count; i++)
        free_run(&kept.at[i].run); /* of a job that was deleted or read anew */
    free(kept.at);
    kept.at = fresh;
    kept.count = n;
    int status = copy_runs(runs);
    pthread_mutex_unlock(&kept.lock);
    free(ids);
    if (status < 0)
        studio_job_runs_free(runs);
    return status;
}

void studio_job_runs_free(struct studio_job_runs *runs)
{
    for (int i = 0; i < runs->count; i++)
        free_run(&runs->at[i]);
    free(runs->at);
    *runs = (struct studio_job_runs){0};
}

const struct studio_job_run *studio_job_of_run(const struct studio_job_runs *runs, const char *folder)
{
    int low = 0, high = runs->count;
    while (low < high) {
        int mid = (low + high) / 2, order = strcmp(runs->at[mid].folder, folder);
        if (order == 0)
            return &runs->at[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

uint32_t studio_job_runs_version(const struct studio_job_runs *runs)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (int i = 0; i < runs->count; i++) {
        const char *const texts[] = {runs->at[i].folder, runs->at[i].id, runs->at[i].state, runs->at[i].reason};
        for (int k = 0; k < 4; k++)
            for (const char *c = texts[k]; c == texts[k] || c[-1]; c++) /* with its end */
                hash = (hash ^ (unsigned char)*c) * 16777619u;
    }
    return hash;
}
