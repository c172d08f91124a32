/* slots.c - slots for measurements, each with its own cores, so that they do not disturb each
 * other. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "machine/cpus.h"
#include "sweep.h"

/* List the processors that we may use, grouped by core, up to the quota of the control group. */
static int find_cores(int *cpus, int *cores, int *count)
{
    cpu_set_t set;
    *count = 0;
    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return tune_error_set("the kernel does not say which cores this process may use");
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set))
            cpus[(*count)++] = i;
    tune_cpus_group("", cpus, *count, cores);
    if (sweep.cpu_slots > 1 && !my.share_cores && sweep.host.cpus < *count)
        *count = sweep.host.cpus;
    return 0;
}

static int fill_slot(struct slot *slot, const int *cpus, int count)
{
    if (!(slot->cpus = malloc((size_t)count * sizeof *cpus)))
        return sweep_no_memory();
    memcpy(slot->cpus, cpus, (size_t)count * sizeof *cpus);
    slot->cpu_count = count;
    return 0;
}

static void add_to_class(char *text, size_t size, const char *more)
{
    size_t at = strlen(text);
    snprintf(text + at, size - at, "%s", more);
}

/* A slot for each GPU; with --in-flight at most that many. Their cores are chosen with their
 * GPUs (gpus.c), which are shares of all cores. */
static int make_gpu_slots(const int *cpus, const int *cores, int n)
{
    int each = n, there = cores[n - 1] + 1;
    if (!(sweep.cpus = malloc((size_t)n * sizeof *cpus)) || !(sweep.cores = malloc((size_t)n * sizeof *cores)))
        return sweep_no_memory();
    memcpy(sweep.cpus, cpus, (size_t)n * sizeof *cpus);
    memcpy(sweep.cores, cores, (size_t)n * sizeof *cores);
    sweep.cpu_count = n;
    sweep.core_count = there;
    for (int i = sweep.cpu_slots; i < sweep.slot_count; i++) {
        TRY(fill_slot(&sweep.slots[i], cpus, n));
        sweep.slots[i].for_gpus = true;
    }
    if (there >= sweep.machine_gpus)
        each = n / there * (there / sweep.machine_gpus);
    tune_host_class(&sweep.host, each < sweep.host.cpus ? each : sweep.host.cpus, sweep.gpu_class, sizeof sweep.gpu_class);
    return 0;
}

int sweep_at_a_time(void)
{
    return sweep.slot_count > sweep.cpu_slots ? sweep.slot_count - sweep.cpu_slots : sweep.cpu_slots;
}

/* Give each slot on the CPU the same number of whole cores; the rest stays idle. If cores have
 * different numbers of threads, extra threads stay idle too. So all slots are equal. */
int sweep_make_slots(int count)
{
    int cpus[CPU_SETSIZE], cores[CPU_SETSIZE], n, each;
    bool fewer = my.in_flight > 0 && my.in_flight < sweep.gpu_count;
    sweep.cpu_slots = count;
    sweep.slot_count = count + (fewer ? my.in_flight : sweep.gpu_count);
    TRY(find_cores(cpus, cores, &n));
    int all = n;
    int parts = my.share_cores ? 1 : count, there = cores[n - 1] + 1;
    if (parts > there)
        return tune_error_usage("%d measurements at a time%s%s%s on %d core%s would disturb each "
                                "other; take fewer (--in-flight), or --share-cores", count,
                                my.in_flight ? "" : " (the batchSize of ",
                                my.in_flight ? "" : my.operation, my.in_flight ? "" : ")", there,
                                there == 1 ? "" : "s");
    if (!(sweep.slots = calloc((size_t)sweep.slot_count, sizeof *sweep.slots)))
        return sweep_no_memory();
    each = n;
    for (int i = 0, at = 0; i < count; i++) {
        int first = my.share_cores ? 0 : at;
        while (at < n && (parts == 1 || cores[at] < (i + 1) * (there / parts)))
            at++;
        TRY(fill_slot(&sweep.slots[i], cpus + first, at - first));
        each = at - first < each ? at - first : each;
    }
    for (int i = 0; i < count; i++)
        sweep.slots[i].cpu_count = each;
    tune_host_class(&sweep.host, each < sweep.host.cpus ? each : sweep.host.cpus, sweep.host_class, sizeof sweep.host_class);
    if (my.share_cores && count > 1) {
        char more[48];
        snprintf(more, sizeof more, ", %d at a time", count);
        add_to_class(sweep.host_class, sizeof sweep.host_class, more);
    }
    return sweep.slot_count > count ? make_gpu_slots(cpus, cores, all) : 0;
}
