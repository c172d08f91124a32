/* host.c - the machine and the build a run's figures belong to (Linux: /proc, uname, the program's notes). */
#include "loggers/host.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "core/cpus.h"
#include "core/memory.h"

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
    host->memory_bytes = tune_memory_machine();
    snprintf(host->class_name, sizeof host->class_name, "%s %s x%d", host->machine, host->cpu, host->cpus);
    dl_iterate_phdr(read_build_id, host->build_id);
}
