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

/* The first number in folder/name; -1: none ("max", or no such file). */
static double number(const char *folder, const char *name)
{
    char path[TUNE_PATH_MAX];
    double value = -1;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return -1;
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%lf", &value) != 1)
        value = -1;
    if (f)
        fclose(f);
    return value;
}

/* The number after the word "oom_kill" in a file of words and numbers; 0: none. */
static int64_t oom_kills(const char *path)
{
    char name[64];
    long long value, found = 0;
    FILE *f = fopen(path, "re");
    while (f && fscanf(f, "%63s %lld", name, &value) == 2)
        if (!strcmp(name, "oom_kill"))
            found = value;
    if (f)
        fclose(f);
    return found;
}

/* Reclaimable memory of a group: file pages that are neither locked nor shared memory. */
static double reclaimable(const char *folder, bool unified)
{
    char path[TUNE_PATH_MAX], name[64];
    double sum = 0, value;
    if (snprintf(path, sizeof path, "%s/memory.stat", folder) >= (int)sizeof path)
        return 0;
    FILE *f = fopen(path, "re");
    while (f && fscanf(f, "%63s %lf", name, &value) == 2) {
        /* total_ includes the groups below */
        const char *plain = unified ? name : !strncmp(name, "total_", 6) ? name + 6 : "";
        if (!strcmp(plain, "inactive_file") || !strcmp(plain, "active_file"))
            sum += value;
    }
    if (f)
        fclose(f);
    return sum;
}

static void look_at_memory(const struct walk *w, const char *folder)
{
    struct tune_cgroup *g = w->group;
    double limit = number(folder, w->unified ? "memory.max" : "memory.limit_in_bytes"), high = -1;
    if (w->unified)
        /* above memory.high the kernel slows a process down, almost to a stop */
        high = number(folder, "memory.high");
    if (high >= 0 && (limit < 0 || high < limit))
        limit = high;
    if (limit < 0 || limit >= UNLIMITED)
        return;
    double used = number(folder, w->unified ? "memory.current" : "memory.usage_in_bytes");
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
    char path[TUNE_PATH_MAX];
    const char *name = w->unified ? "memory.events" : "memory.oom_control";
    if (snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path)
        *w->oom_kills += oom_kills(path);
}

static void look_at_cpu(const struct walk *w, const char *folder)
{
    char path[TUNE_PATH_MAX];
    double quota = -1, period = -1;
    if (!w->unified) {
        quota = number(folder, "cpu.cfs_quota_us");
        period = number(folder, "cpu.cfs_period_us");
    } else if (snprintf(path, sizeof path, "%s/cpu.max", folder) < (int)sizeof path) {
        FILE *f = fopen(path, "re");
        if (f && fscanf(f, "%lf %lf", &quota, &period) != 2)
            quota = -1; /* for "max 100000" */
        if (f)
            fclose(f);
    }
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
    size_t room = 0;
    if (snprintf(file, sizeof file, "%s/proc/self/mountinfo", w->root) >= (int)sizeof file)
        return;
    FILE *f = fopen(file, "re");
    while (f && getline(&line, &room, f) > 0) {
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
    size_t room = 0;
    if (snprintf(file, sizeof file, "%s/proc/self/cgroup", w->root) >= (int)sizeof file)
        return;
    FILE *f = fopen(file, "re");
    while (f && getline(&line, &room, f) > 0) { /* "4:memory:/path"; version 2: "0::/path" */
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
    char path[TUNE_PATH_MAX];
    int64_t kills = snprintf(path, sizeof path, "%s/proc/vmstat", root) < (int)sizeof path ? oom_kills(path) : 0;
    each_hierarchy(&(struct walk){.root = root, .oom_kills = &kills});
    return kills;
}
