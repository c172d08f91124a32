/* host.c - read facts about the machine and the program (Linux: /proc, uname, the program's
 * file). */
#include "machine/host.h"
#include "core/print.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "machine/build_id.h"
#include "machine/cpus.h"
#include "machine/memory.h"

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

/* Read /proc/cpuinfo: the model name, and the number of different (physical id, core id). */
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

/* Read the NVIDIA driver's files in /proc: a folder for each GPU, and the version. */
static void read_gpus(struct tune_host *host)
{
    static const char root[] = "/proc/driver/nvidia/gpus";
    char line[1024], path[512];
    struct dirent *entry;
    DIR *folder = opendir(root);
    while (folder && (entry = readdir(folder))) {
        if (entry->d_name[0] == '.')
            continue;
        host->gpus++;
        snprintf(path, sizeof path, "%s/%s/information", root, entry->d_name);
        FILE *f = fopen(path, "re");
        while (f && fgets(line, sizeof line, f))
            if (!strncmp(line, "Model:", 6))
                read_model_name(host->gpu, sizeof host->gpu, line);
        if (f)
            fclose(f);
    }
    if (folder)
        closedir(folder);
    FILE *f = fopen("/proc/driver/nvidia/version", "re");
    char *kernel_module = f && fgets(line, sizeof line, f) ? strstr(line, "Kernel Module") : NULL;
    if (kernel_module)
        sscanf(kernel_module + strlen("Kernel Module"), "%*[^0-9]%31[0-9.]", host->driver);
    if (f)
        fclose(f);
}

const char *tune_host_class(const struct tune_host *host, int cpus, char *text, size_t size)
{
    snprintf(text, size, "%s %s x%d, %.0f GiB", host->machine, host->cpu, cpus > 0 ? cpus : host->cpus,
             (double)host->memory_bytes / (1 << 30));
    if (host->gpus > 0)
        tune_append(text, size, ", %s x%d, driver %s", *host->gpu ? host->gpu : "NVIDIA GPU", host->gpus,
                    *host->driver ? host->driver : "unknown");
    return text;
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
    read_gpus(host);
    if (tune_build_id("/proc/self/exe", host->build_id) < 0)
        host->build_id[0] = 0;
}
