/* share.c - processor time that a program lost to other processes and to the hypervisor. */
#include "machine/share.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/array.h"
#include "machine/guard.h"

/* ---- processors ---- */

static bool is_ours(const struct tune_share *s, int cpu)
{
    int i = 0;
    while (i < s->cpu_count && s->cpus[i] != cpu)
        i++;
    return s->cpu_count == 0 || i < s->cpu_count;
}

/* Add up the times of our processors: running anything, and stolen. */
static void read_cpus(const struct tune_share *s, double *busy_s, double *steal_s)
{
    char line[512];
    double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    FILE *f = fopen("/proc/stat", "re");
    *busy_s = *steal_s = 0;
    while (f && fgets(line, sizeof line, f)) {
        int cpu;
        unsigned long long user, nice, system, idle, iowait, irq, softirq, steal = 0;
        if (sscanf(line, "cpu%d %llu %llu %llu %llu %llu %llu %llu %llu", &cpu, &user, &nice, &system, &idle, &iowait, &irq,
                   &softirq, &steal) < 8 || !is_ours(s, cpu))
            continue;
        *busy_s += tick * (double)(user + nice + system + irq + softirq);
        *steal_s += tick * (double)steal;
    }
    if (f)
        fclose(f);
}

void tune_share_begin(struct tune_share *s, const int *cpus, int cpu_count)
{
    *s = (struct tune_share){.cpus = cpus, .cpu_count = cpu_count};
    read_cpus(s, &s->busy_s, &s->steal_s);
}

/* ---- threads ---- */

static void add_task(struct tune_share *s, pid_t tid, uint64_t waited_ns)
{
    size_t i = s->count; /* the last ones are the likeliest */
    while (i > 0 && s->tasks[i - 1].tid != tid)
        i--;
    if (i > 0) {
        s->tasks[i - 1].waited_ns = waited_ns;
        return;
    }
    if (tune_array_fit(&s->tasks, s->count, sizeof *s->tasks))
        s->tasks[s->count++] = (struct tune_share_task){tid, waited_ns};
}

static void look_at(struct tune_share *s, pid_t pid)
{
    char path[64];
    const struct dirent *entry;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    while (tasks && (entry = readdir(tasks))) {
        uint64_t ran, waited;
        pid_t tid = atoi(entry->d_name);
        snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
        FILE *f = tid > 0 ? fopen(path, "re") : NULL;
        if (f && fscanf(f, "%" SCNu64 " %" SCNu64, &ran, &waited) == 2)
            add_task(s, tid, waited);
        if (f)
            fclose(f);
    }
    if (tasks)
        closedir(tasks);
}

void tune_share_look(struct tune_share *s, pid_t session)
{
    struct tune_process p;
    DIR *proc = opendir("/proc");
    while (proc && tune_process_next(proc, &p))
        if (p.session == session && p.pid != session)
            look_at(s, p.pid);
    if (proc)
        closedir(proc);
}

double tune_share_lost(const struct tune_share *s, double own_s)
{
    double busy_s, steal_s, waited_s = 0;
    read_cpus(s, &busy_s, &steal_s);
    double others_s = busy_s - s->busy_s - own_s;
    for (size_t i = 0; i < s->count; i++)
        waited_s += 1e-9 * (double)s->tasks[i].waited_ns;
    if (waited_s > others_s)
        waited_s = others_s > 0 ? others_s : 0;
    return waited_s + (steal_s > s->steal_s ? steal_s - s->steal_s : 0);
}

void tune_share_free(struct tune_share *s)
{
    free(s->tasks);
    s->tasks = NULL;
    s->count = 0;
}
