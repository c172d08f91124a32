/* gpus.c - reserve GPUs for measurements. The input number_gpus is the number of GPUs of a
 * measurement, which does not share them. A socket named after the UUID reserves a GPU, so that
 * other sweeps on this machine use other GPUs. This includes sweeps of other users. The kernel
 * removes the socket when its last process ends, even after kill -9. */
#include <errno.h>
#include <unistd.h>

#include "comm/comm.h"
#include "devices/known_gpus.h"
#include "profilers/gpus.h"
#include "sweep.h"

static const char input_name[] = "number_gpus", visible[] = "CUDA_VISIBLE_DEVICES";

int gpus_of(const struct tune_binding *p, const struct tune_value *inputs)
{
    double n = 0;
    int i = tune_experiment_input(p->experiment, input_name);
    if (i >= 0)
        tune_value_number(&inputs[i], &n);
    return n > 0 && n <= TUNE_CHILD_LOCKS ? (int)n : n > 0 ? TUNE_CHILD_LOCKS + 1 : 0;
}

/* True if an entity of the space may need a GPU. */
static bool may_have(const struct tune_space *space, const struct tune_binding *p)
{
    static const struct tune_value none = {.type = TUNE_VALUE_INT};
    int i = tune_experiment_input(p->experiment, input_name);
    if (i < 0)
        return false;
    if (p->dimension[i] < 0)
        return gpus_of(p, p->fixed) > 0;
    const struct tune_domain *domain = &space->dimensions[p->dimension[i]].domain;
    return tune_domain_size(domain) != 1 || !tune_domain_has(domain, &none);
}

int gpus_find(struct plan *plan)
{
    struct machine *m = &plan->machine;
    const char *asked = plan->flags->gpus;
    bool wanted = false;
    for (int p = 0; p < plan->binding_count; p++)
        wanted = wanted || may_have(plan->space, &plan->bindings[p]);
    if (!wanted)
        return asked ? tune_error_usage("--gpus: no entity of this space has a number_gpus above 0") : 0;
    if (!(m->gpus = calloc(TUNE_GPUS, sizeof *m->gpus)))
        return no_memory();
    TRY(m->gpu_count = tune_gpus_find(asked ? asked : getenv(visible), m->gpus, &m->all_gpus));
    if (m->gpu_count > 1 && tune_comm_can_start() < 0) {
        if (!strstr(tune_error_message(), "as root")) /* recipes allow that themselves */
            snprintf(m->no_ranks, sizeof m->no_ranks, "%s", tune_error_message());
        tune_error_clear();
    }
    return 0;
}

/* True if the driver's GPU is the one that the entity names. */
static bool is_model(const struct plan *plan, const char *named)
{
    const char *here = plan->machine.host.gpu;
    const struct tune_known_gpu *known = tune_known_gpu(named);
    return !strcmp(named, here) || (known && known == tune_known_gpu(here));
}

static bool starts_ranks(const struct tune_experiment *e)
{
    for (int i = 0; i < e->input_count; i++)
        if (e->inputs[i].flag && !strcmp(e->inputs[i].flag, "--ranks"))
            return true;
    return false;
}

int gpus_lack(void *queue, const struct tune_binding *p, const struct tune_value *inputs, char *why, size_t size)
{
    const struct plan *plan = ((struct queue *)queue)->plan;
    const char *here = plan->machine.host.gpu;
    int n = gpus_of(p, inputs), count = plan->machine.gpu_count;
    int i = tune_experiment_input(p->experiment, "gpu_model");
    const char *named = i >= 0 && inputs[i].type == TUNE_VALUE_TEXT ? inputs[i].text : "";
    if (plan->record.launcher && !plan->flags->join) /* the machines that measure decide */
        return 0;
    if (n > count)
        snprintf(why, size, "it needs %d GPU%s%s%s%s, but %d %s available; --gpus chooses GPUs", n, n == 1 ? "" : "s",
                 *named ? " (" : "", named, *named ? ")" : "", count, count == 1 ? "is" : "are");
    else if (*named && tune_experiment_input(p->experiment, input_name) >= 0 && n == 0)
        snprintf(why, size, "it names the GPU %s, but number_gpus 0 measures on the CPU", named);
    else if (n > 1 && starts_ranks(p->experiment) && *plan->machine.no_ranks)
        snprintf(why, size, "%s", plan->machine.no_ranks);
    else if (*named && n > 0 && !is_model(plan, named))
        snprintf(why, size, "it names the GPU %s, but the GPU here is %s", named, *here ? here : "of no known model");
    else
        return 0;
    return 1;
}

static bool is_ours(const struct slots *slots, int gpu)
{
    for (int s = 0; s < slots->count; s++)
        for (int i = 0; i < slots->all[s].gpu_count; i++)
            if (slots->all[s].gpu[i] == gpu)
                return true;
    return false;
}

void gpus_release(struct slot *slot)
{
    for (int i = 0; i < slot->gpu_count; i++)
        close(slot->locks[i]);
    slot->gpu_count = 0;
}

/* Reserve one more GPU for the slot. 1; 0: all are in use; -1 with an error. */
static int reserve_one(const struct machine *m, const struct slots *slots, struct slot *slot)
{
    for (int g = 0; g < m->gpu_count; g++) {
        char name[TUNE_GPU_NAME + 8];
        if (is_ours(slots, g))
            continue;
        snprintf(name, sizeof name, "gpu/%s", m->gpus[g].name);
        int lock = tune_child_lock(name);
        if (lock < 0 && errno != EADDRINUSE)
            return tune_error_set("cannot reserve GPU %s: %s", m->gpus[g].name, strerror(errno));
        if (lock < 0)
            continue;
        slot->gpu[slot->gpu_count] = g;
        slot->locks[slot->gpu_count++] = lock;
        return 1;
    }
    return 0;
}

int gpus_reserve(const struct machine *m, const struct slots *slots, struct slot *slot, int count)
{
    int reserved = 1;
    while (reserved == 1 && slot->gpu_count < count)
        reserved = reserve_one(m, slots, slot);
    if (reserved <= 0)
        gpus_release(slot);
    return reserved;
}

/* Give the slot the cores of its GPUs. Each GPU of the machine has an equal share of whole cores.
 * With more GPUs than cores, the slot may use all cores. */
static void choose_cores(const struct machine *m, struct slot *slot)
{
    int each = m->all_gpus > 0 ? m->core_count / m->all_gpus : 0;
    slot->cpu_count = 0;
    for (int i = 0; i < m->cpu_count; i++)
        for (int k = 0; k < slot->gpu_count; k++)
            if (each == 0 || m->cores[i] / each == m->gpus[slot->gpu[k]].index) {
                slot->cpus[slot->cpu_count++] = m->cpus[i];
                break;
            }
}

/* Show the program our environment and only its own GPUs. With number_gpus 0 it sees none. */
void gpus_show(const struct plan *plan, struct slot *slot)
{
    const struct machine *m = &plan->machine;
    int n = plan->environment_count;
    size_t used = (size_t)snprintf(slot->visible, sizeof slot->visible, "%s=", visible);
    memcpy(slot->environment, plan->environment, (size_t)n * sizeof *slot->environment);
    slot->environment[n] = slot->environment[n + 1] = NULL;
    if (tune_experiment_input(binding_of(plan, &slot->job)->experiment, input_name) < 0)
        return;
    for (int i = 0; i < slot->gpu_count; i++)
        used += (size_t)snprintf(slot->visible + used, sizeof slot->visible - used, "%s%s", i ? "," : "", m->gpus[slot->gpu[i]].name);
    if (slot->gpu_count > 0)
        choose_cores(m, slot);
    slot->environment[n] = slot->visible;
}
