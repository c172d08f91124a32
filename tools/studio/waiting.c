/* waiting.c - why a job waits: what is used of its slot, and by whom. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "jobs.h"
#include "machine/child.h"
#include "machine/cpus.h"
#include "profilers/gpus.h"

/* Read a file of /proc/PID. Returns the bytes, which end with a NUL; 0: there is none. */
static size_t read_of(long pid, const char *name, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/%s", pid, name);
    FILE *in = fopen(path, "re");
    size_t n = in ? fread(text, 1, size - 1, in) : 0;
    text[n] = 0;
    if (in)
        fclose(in);
    return n;
}

static long parent_of(long pid)
{
    char text[1024];
    const char *at = read_of(pid, "status", text, sizeof text) ? strstr(text, "\nPPid:") : NULL;
    return at ? atol(at + 6) : 0;
}

/* True if a process works in our folder. */
static bool is_here(long pid)
{
    char path[64], there[TUNE_PATH_MAX], here[TUNE_PATH_MAX];
    snprintf(path, sizeof path, "/proc/%ld/cwd", pid);
    ssize_t n = readlink(path, there, sizeof there), m = readlink("/proc/self/cwd", here, sizeof here);
    return n > 0 && n == m && !memcmp(there, here, (size_t)n);
}

/* The job whose supervisor that process is: its command line is a name, JOB_WORD and the number. */
static bool name_job(long pid, char *text, size_t size)
{
    char line[256];
    const char *words[3] = {line, "", ""};
    size_t n = read_of(pid, "cmdline", line, sizeof line);
    for (int i = 1; i < 3; i++) {
        const char *next = words[i - 1] + strlen(words[i - 1]) + 1;
        if (next >= line + n)
            return false;
        words[i] = next;
    }
    if (strcmp(words[1], JOB_WORD) || job_number(words[2]) < 0)
        return false;
    cJSON *job = is_here(pid) ? studio_job_read(words[2]) : NULL;
    tune_error_clear();
    snprintf(text, size, "job %s %.100s", words[2], job ? job_text(job, "name") : "of a studio elsewhere");
    cJSON_Delete(job);
    return true;
}

/* Who holds a core: "job 3 first", "sweep (process 123)". */
static void name_holder(const struct tune_child_holder *h, char *text, size_t size)
{
    char name[64] = "";
    long pid = h->guard ? parent_of(h->pid) : h->pid;
    if (pid <= 0)
        snprintf(text, size, "another program");
    else if (!name_job(pid, text, size)) {
        read_of(pid, "comm", name, sizeof name);
        name[strcspn(name, "\n")] = 0;
        snprintf(text, size, "%s (process %ld)", *name ? name : "another program", pid);
    }
}

int job_count_cores(int *total, void (*each)(void *context, const struct tune_child_holder *holder), void *context)
{
    int cpus[CPU_SETSIZE], cores[CPU_SETSIZE], n = 0, taken = 0;
    cpu_set_t set;
    *total = 0;
    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return 0;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set))
            cpus[n++] = i;
    tune_cpus_group("", cpus, n, cores);
    for (int at = 0, end; at < n; at = end) {
        struct tune_child_holder holder;
        for (end = at; end < n && cores[end] == cores[at]; end++)
            ;
        if (!tune_child_cpus_taken(cpus + at, end - at, each ? &holder : NULL))
            continue;
        taken++;
        if (each)
            each(context, &holder);
    }
    *total = n > 0 ? cores[n - 1] + 1 : 0;
    return taken;
}

int job_count_gpus(int *total)
{
    struct tune_gpu *gpus = calloc(TUNE_GPUS, sizeof *gpus);
    int all = 0, n = gpus ? tune_gpus_find(getenv("CUDA_VISIBLE_DEVICES"), gpus, &all) : 0, taken = 0;
    for (int g = 0; g < n; g++) {
        char name[TUNE_GPU_NAME + 8];
        snprintf(name, sizeof name, "gpu/%s", gpus[g].name);
        int fd = tune_child_lock(name);
        taken += fd < 0;
        if (fd >= 0)
            close(fd);
    }
    free(gpus);
    *total = n > 0 ? n : 0;
    return taken;
}

enum { USERS = 512 };

static void add_user(void *users, const struct tune_child_holder *holder)
{
    char *text = users, one[160];
    name_holder(holder, one, sizeof one);
    size_t used = strlen(text);
    if (!strstr(text, one) && used + strlen(one) + 3 < USERS)
        snprintf(text + used, USERS - used, "%s%s", used ? ", " : "", one);
}

void job_explain_cores(int need, char *text, size_t size)
{
    char users[USERS] = "";
    int all, taken = job_count_cores(&all, add_user, users);
    if (taken > 0)
        snprintf(text, size, "waits for a free slot: %d of %d core%s used by %s; it needs %d", taken, all, all == 1 ? "" : "s", users,
                 need < all ? need : all);
}

void job_explain_gpus(int need, char *text, size_t size)
{
    int all, taken = job_count_gpus(&all);
    if (taken > 0)
        snprintf(text, size, "waits for a free slot: %d of %d GPU%s used; it needs %d", taken, all, all == 1 ? "" : "s", need);
}
