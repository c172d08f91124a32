/* slots.c - slots for measurements. Each has its own cores, so that measurements do not disturb
 * each other. */
#include <sched.h>

#include "machine/cpus.h"
#include "sweep.h"

static int *copy_of(const int *list, int count)
{
    int *copy = malloc((size_t)count * sizeof *list);
    return copy ? memcpy(copy, list, (size_t)count * sizeof *list) : NULL;
}

/* List the processors that this process may use, grouped by core. */
static int find_cores(struct machine *m)
{
    int cpus[CPU_SETSIZE], cores[CPU_SETSIZE], n = 0;
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return tune_error_set("the kernel does not say which cores this process may use");
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set))
            cpus[n++] = i;
    tune_cpus_group("", cpus, n, cores);
    m->cpus = copy_of(cpus, n);
    m->cores = copy_of(cores, n);
    m->cpu_count = n;
    return m->cpus && m->cores ? 0 : no_memory();
}

static int fill_slot(struct slot *slot, const int *cpus, int count)
{
    slot->cpus = copy_of(cpus, count);
    slot->cpu_count = count;
    return slot->cpus ? 0 : no_memory();
}

static void set_class(const struct machine *m, int cpus, char text[512])
{
    tune_host_class(&m->host, cpus < m->host.cpus ? cpus : m->host.cpus, text, 512);
}

/* Make a slot for each GPU, at most --in-flight. Their cores are chosen later, with their GPUs
 * (gpus.c). */
static int make_gpu_slots(struct slots *slots, struct machine *m)
{
    int each = m->cpu_count;
    for (int i = slots->on_cpu; i < slots->count; i++) {
        TRY(fill_slot(&slots->all[i], m->cpus, each));
        slots->all[i].for_gpus = true;
    }
    if (m->core_count >= m->all_gpus)
        each = each / m->core_count * (m->core_count / m->all_gpus);
    set_class(m, each, m->gpu_class);
    return 0;
}

/* Give each CPU slot the same number of whole cores. Remaining cores are idle. If cores have
 * different numbers of threads, extra threads are idle, too. So all slots are equal. */
static int make_cpu_slots(struct slots *slots, struct machine *m, bool share)
{
    int parts = share ? 1 : slots->on_cpu, each = m->cpu_count;
    for (int i = 0, at = 0; i < slots->on_cpu; i++) {
        int first = share ? 0 : at;
        while (at < m->cpu_count && (parts == 1 || m->cores[at] < (i + 1) * (m->core_count / parts)))
            at++;
        TRY(fill_slot(&slots->all[i], m->cpus + first, at - first));
        each = at - first < each ? at - first : each;
    }
    for (int i = 0; i < slots->on_cpu; i++)
        slots->all[i].cpu_count = each;
    set_class(m, each, m->host_class);
    if (share && slots->on_cpu > 1)
        tune_append(m->host_class, sizeof m->host_class, ", %d at a time", slots->on_cpu);
    return 0;
}

void slots_free(struct slots *slots)
{
    for (int i = 0; i < slots->count && slots->all; i++)
        free(slots->all[i].cpus);
    free(slots->all);
}

int slots_at_a_time(const struct slots *slots)
{
    return slots->count > slots->on_cpu ? slots->count - slots->on_cpu : slots->on_cpu;
}

int slots_open(struct slots *slots, struct plan *plan)
{
    const struct sweep_flags *flags = plan->flags;
    struct machine *m = &plan->machine;
    int count = plan->operation.in_flight;
    TRY(find_cores(m));
    if (count > 1 && !flags->share_cores && m->host.cpus < m->cpu_count)
        m->cpu_count = m->host.cpus; /* the control group's CPU quota */
    int cores = m->core_count = m->cores[m->cpu_count - 1] + 1;
    if (!flags->share_cores && count > cores)
        return tune_error_usage("%d measurements at a time%s%s%s on %d core%s would disturb each "
                                "other; take fewer (--in-flight), or give --share-cores", count,
                                flags->in_flight ? "" : " (the batchSize of ",
                                flags->in_flight ? "" : flags->operation, flags->in_flight ? "" : ")", cores, cores == 1 ? "" : "s");
    slots->on_cpu = count;
    slots->count = count + (flags->in_flight > 0 && flags->in_flight < m->gpu_count ? flags->in_flight : m->gpu_count);
    if (!(slots->all = calloc((size_t)slots->count, sizeof *slots->all)))
        return no_memory();
    TRY(make_cpu_slots(slots, m, flags->share_cores));
    return slots->count > count ? make_gpu_slots(slots, m) : 0;
}
