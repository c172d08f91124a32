/* host.c - the machine and the build a run's figures belong to (Linux: /proc, uname, the program's notes). */
#include "loggers/host.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "core/cpus.h"

/* The number behind "name:" in a file of such lines; -1: none. */
static int64_t line_number(const char *path, const char *name)
{
    char line[512];
    long long value = -1;
    size_t n = strlen(name);
    FILE *f = fopen(path, "re");
    while (f && value < 0 && fgets(line, sizeof line, f))
        if (!strncmp(line, name, n) && line[n] == ':')
            value = strtoll(line + n + 1, NULL, 10);
    if (f)
        fclose(f);
    return value;
}

static void read_model_name(char *to, size_t size, const char *line)
{
    const char *c = strchr(line, ':');
    size_t n = 0;
    for (c = c ? c + 1 : ""; *c && *c != '\n' && n + 1 < size; c++)
        if (*c != ' ' || (n && to[n - 1] != ' '))
            to[n++] = *c;
    while (n && to[n - 1] == ' ')
        n--;
    to[n] = 0;
}

/* /proc/cpuinfo: the model's name, and one core per different (physical id, core id). */
static void read_cpuinfo(struct tune_host *host)
{
    enum { MOST = 4096 };
    char line[1024];
    int physical = 0, count = 0;
    int *seen = calloc(MOST, sizeof *seen);
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f && seen && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        int value = colon ? atoi(colon + 1) : 0;
        if (!*host->cpu && !strncmp(line, "model name", 10))
            read_model_name(host->cpu, sizeof host->cpu, line);
        if (!strncmp(line, "physical id", 11))
            physical = value;
        if (!strncmp(line, "core id", 7)) {
            int id = physical * 65536 + value, i = 0;
            while (i < count && seen[i] != id)
                i++;
            if (i == count && count < MOST)
                seen[count++] = id;
        }
    }
    if (f)
        fclose(f);
    free(seen);
    host->cores = count;
}

/* The container's limit where it is less than the machine's memory. */
static int64_t memory_bytes(void)
{
    int64_t kb = line_number("/proc/meminfo", "MemTotal"), bytes = kb > 0 ? kb * 1024 : 0;
    static const char *const limits[] = {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        long long limit = 0;
        FILE *f = fopen(limits[i], "re");
        if (f && fscanf(f, "%lld", &limit) == 1 && limit > 0 && (bytes == 0 || limit < bytes))
            bytes = limit;
        if (f)
            fclose(f);
    }
    return bytes;
}

/* The first object of the walk is the program itself; its build id is a note named "GNU" of type 3. */
static int read_build_id(struct dl_phdr_info *info, size_t size, void *context)
{
    char *id = context;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = info->dlpi_phdr + i;
        if (part->p_type != PT_NOTE)
            continue;
        const char *at = (const char *)(info->dlpi_addr + part->p_vaddr), *end = at + part->p_memsz;
        while (at + sizeof(ElfW(Nhdr)) <= end) {
            const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
            const char *name = at + sizeof *note;
            const unsigned char *data = (const unsigned char *)name + ((note->n_namesz + 3) & ~3u);
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && !memcmp(name, "GNU", 4) && note->n_descsz <= 32)
                for (unsigned k = 0; k < note->n_descsz; k++)
                    sprintf(id + 2 * (size_t)k, "%02x", data[k]);
            at = (const char *)data + ((note->n_descsz + 3) & ~3u);
        }
    }
    return 1; /* libraries follow: not ours */
}

void tune_host_read(struct tune_host *host)
{
    struct utsname u;
    memset(host, 0, sizeof *host);
    if (uname(&u) == 0) {
        snprintf(host->name, sizeof host->name, "%s", u.nodename);
        snprintf(host->system, sizeof host->system, "%s %s", u.sysname, u.release);
        snprintf(host->machine, sizeof host->machine, "%s", u.machine);
    }
    read_cpuinfo(host);
    if (!*host->cpu)
        snprintf(host->cpu, sizeof host->cpu, "%s", host->machine);
    host->cpus = tune_cpus_usable();
    host->memory_bytes = memory_bytes();
    snprintf(host->class_name, sizeof host->class_name, "%s %s x%d", host->machine, host->cpu, host->cpus);
    dl_iterate_phdr(read_build_id, host->build_id);
}

double tune_host_memory_used(void)
{
    int64_t total = line_number("/proc/meminfo", "MemTotal"), available = line_number("/proc/meminfo", "MemAvailable");
    return total > 0 && available >= 0 ? 100.0 * (double)(total - available) / (double)total : -1;
}

int64_t tune_host_peak_memory(void)
{
    int64_t kb = line_number("/proc/self/status", "VmHWM");
    return kb > 0 ? kb * 1024 : 0; /* not ru_maxrss: that one remembers the parent before exec */
}
