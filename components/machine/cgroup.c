/* cgroup.c - find this process's control groups and read their limits. */
#include "machine/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/file.h"

#define UNLIMITED (1.0 * ((int64_t)1 << 60)) /* version 1 writes a number near 2^63 for "none" */

struct walk {
    struct tune_cgroup *group;
    const char *root;
    bool unified, cpu, memory; /* version 2; which controllers these groups have */
    /* sum of oom_kill of the lowest group, and then nothing else is read; or NULL */
    int64_t *oom_kills;
};

/* Open folder/name; NULL: there is none. */
static FILE *open_in(const char *folder, const char *name)
{
    char path[TUNE_PATH_MAX];
    return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path ? fopen(path, "re") : NULL;
}

/* The first number in folder/name, and the one after it (may be NULL); -1: none ("max", or no such
 * file). */
static double number(const char *folder, const char *name, double *second)
{
    double value = -1, other = -1;
    FILE *f = open_in(folder, name);
    int read = f ? fscanf(f, "%lf %lf", &value, &other) : 0;
    if (f)
        fclose(f);
    if (second)
        *second = read == 2 ? other : -1;
    return read >= 1 ? value : -1;
}

/* The sum of the numbers after these two words in a file of words and numbers. */
static double words(const char *folder, const char *file, const char *one, const char *two)
{
    char name[64];
    double sum = 0, value;
    FILE *f = open_in(folder, file);
    while (f && fscanf(f, "%63s %lf", name, &value) == 2)
        if (!strcmp(name, one) || !strcmp(name, two))
            sum += value;
    if (f)
        fclose(f);
    return sum;
}

/* Reclaimable memory of a group: file pages that are neither locked nor shared memory. */
static double reclaimable(const char *folder, bool unified)
{
    /* total_ includes the groups below */
    return unified ? words(folder, "memory.stat", "inactive_file", "active_file")
                   : words(folder, "memory.stat", "total_inactive_file", "total_active_file");
}

static void look_at_memory(const struct walk *w, const char *folder)
{
    struct tune_cgroup *g = w->group;
    double limit = number(folder, w->unified ? "memory.max" : "memory.limit_in_bytes", NULL), high = -1;
    if (w->unified)
        /* above memory.high the kernel slows a process down, almost to a stop */
        high = number(folder, "memory.high", NULL);
    if (high >= 0 && (limit < 0 || high < limit))
        limit = high;
    if (limit < 0 || limit >= UNLIMITED)
        return;
    double used = number(folder, w->unified ? "memory.current" : "memory.usage_in_bytes", NULL);
    double left = limit - (used < 0 ? 0 : used) + reclaimable(folder, w->unified);
    left = left < 0 ? 0 : left > limit ? limit : left;
    if (g->memory_limit == 0 || left < (double)g->memory_free) {
        g->memory_free = (int64_t)left;
        snprintf(g->memory_group, sizeof g->memory_group, "%.255s", folder);
    }
    if (g->memory_limit == 0 || limit < (double)g->memory_limit)
        g->memory_limit = (int64_t)limit > 0 ? (int64_t)limit : 1;
}

/* Version 2 includes the groups below; version 1 counts the group only. */
static void look_at_oom_kills(const struct walk *w, const char *folder)
{
    *w->oom_kills += (int64_t)words(folder, w->unified ? "memory.events" : "memory.oom_control", "oom_kill", "");
}

static void look_at_cpu(const struct walk *w, const char *folder)
{
    double period = -1, quota = number(folder, w->unified ? "cpu.max" : "cpu.cfs_quota_us", &period);
    if (!w->unified)
        period = number(folder, "cpu.cfs_period_us", NULL);
    if (quota > 0 && period > 0 && (w->group->cpus == 0 || quota / period < w->group->cpus))
        w->group->cpus = quota / period;
}

/* Read every group from path up to the mount point. */
static void climb(const struct walk *w, const char *mount, const char *path)
{
    char folder[TUNE_PATH_MAX];
    size_t base = (size_t)snprintf(folder, sizeof folder, "%s%s", w->root, mount);
    if (base + strlen(path) >= sizeof folder)
        return;
    strcpy(folder + base, path);
    if (w->oom_kills) {
        if (w->memory)
            look_at_oom_kills(w, folder);
        return;
    }
    for (;;) {
        if (w->cpu)
            look_at_cpu(w, folder);
        if (w->memory)
            look_at_memory(w, folder);
        char *cut = strrchr(folder + base, '/');
        if (!cut)
            return;
        *cut = 0;
    }
}

/* True if a list like "cpu,cpuacct" contains the word. */
static bool lists(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (!strncmp(at, word, n) && (at[n] == 0 || at[n] == ','))
            return true;
    }
    return false;
}

/* Decode \040 (a space) and the like in a path of mountinfo. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from; to++) {
        if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] && from[3]) {
            *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = 0;
}

/* Find the mount point of the hierarchy of w (version 2, or this controller) and read the groups
 * from path up. In a container, the mount's root may be a folder on the way to path, or path may
 * lead out of it ("/.."). */
static void find_mount(const struct walk *w, const char *controller, const char *path)
{
    char file[TUNE_PATH_MAX], *line = NULL, top[TUNE_PATH_MAX], mount[TUNE_PATH_MAX];
    size_t capacity = 0;
    if (snprintf(file, sizeof file, "%s/proc/self/mountinfo", w->root) >= (int)sizeof file)
        return;
    FILE *f = fopen(file, "re");
    while (f && getline(&line, &capacity, f) > 0) {
        char type[32] = "", *options = strstr(line, " - ");
        line[strcspn(line, "\n")] = 0;
        if (strlen(line) >= TUNE_PATH_MAX || !options || sscanf(options, " - %31s", type) != 1 ||
            strcmp(type, w->unified ? "cgroup2" : "cgroup") || sscanf(line, "%*s %*s %*s %s %s", top, mount) != 2 ||
            (!w->unified && !lists(strrchr(line, ' ') + 1, controller)))
            continue;
        unescape(top);
        unescape(mount);
        size_t n = strcmp(top, "/") ? strlen(top) : 0;
        bool below = !strncmp(path, top, n) && (path[n] == '/' || path[n] == 0) && strncmp(path, "/..", 3);
        climb(w, mount, below && strcmp(path + n, "/") ? path + n : "");
        break;
    }
    if (f)
        fclose(f);
    free(line);
}

static void read_groups(const struct walk *w, const char *controllers, const char *path)
{
    struct walk all = *w, cpu = *w, memory = *w;
    all.unified = all.cpu = all.memory = cpu.cpu = memory.memory = true;
    if (!*controllers)
        find_mount(&all, "", path);
    if (lists(controllers, "cpu"))
        find_mount(&cpu, "cpu", path);
    if (lists(controllers, "memory"))
        find_mount(&memory, "memory", path);
}

/* Read every hierarchy that /proc/self/cgroup names. */
static void each_hierarchy(const struct walk *w)
{
    char file[TUNE_PATH_MAX], *line = NULL;
    size_t capacity = 0;
    if (snprintf(file, sizeof file, "%s/proc/self/cgroup", w->root) >= (int)sizeof file)
        return;
    FILE *f = fopen(file, "re");
    while (f && getline(&line, &capacity, f) > 0) { /* "4:memory:/path"; version 2: "0::/path" */
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path = 0;
        read_groups(w, controllers + 1, path + 1);
    }
    if (f)
        fclose(f);
    free(line);
}

void tune_cgroup_read(struct tune_cgroup *group, const char *root)
{
    memset(group, 0, sizeof *group);
    each_hierarchy(&(struct walk){.group = group, .root = root});
}

int64_t tune_cgroup_oom_kills(const char *root)
{
    int64_t kills = (int64_t)words(root, "proc/vmstat", "oom_kill", "");
    each_hierarchy(&(struct walk){.root = root, .oom_kills = &kills});
    return kills;
}
