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
    if (sweep.slot_count > 1 && !my.share_cores && sweep.host.cpus < *count)
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

/* Give each slot the same number of whole cores; the rest stays idle. If cores have different
 * numbers of threads, extra threads stay idle too. So all slots are equal. */
int sweep_make_slots(int count)
{
    int cpus[CPU_SETSIZE], cores[CPU_SETSIZE], n, each;
    sweep.slot_count = count;
    TRY(find_cores(cpus, cores, &n));
    int parts = my.share_cores ? 1 : count, there = cores[n - 1] + 1;
    if (parts > there)
        return tune_error_usage("%d measurements at a time%s%s%s on %d core%s would disturb each "
                                "other; take fewer (--in-flight), or --share-cores", count,
                                my.in_flight ? "" : " (the batchSize of ",
                                my.in_flight ? "" : my.operation, my.in_flight ? "" : ")", there,
                                there == 1 ? "" : "s");
    if (!(sweep.slots = calloc((size_t)count, sizeof *sweep.slots)))
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
        size_t at = strlen(sweep.host_class);
        snprintf(sweep.host_class + at, sizeof sweep.host_class - at, ", %d at a time", count);
    }
    return 0;
}
