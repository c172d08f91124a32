/* gpus.c - GPUs of measurements. Each measurement has GPUs of its own: as many as its input
 * number_gpus says. A GPU is reserved by a socket named after its UUID, so that other sweeps of
 * this machine, and of other users, take others. The kernel drops the socket when the last process
 * that holds it ends, so nothing is left after kill -9. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profilers/gpus.h"
#include "sweep.h"

static const char input_name[] = "number_gpus", visible[] = "CUDA_VISIBLE_DEVICES";

static const struct tune_input *input_of(const struct tune_protocol *p)
{
    int i = tune_experiment_input(p->experiment, input_name);
    return i < 0 ? NULL : &p->experiment->inputs[i];
}

int sweep_gpus_of(const struct tune_protocol *p, const struct tune_value *inputs)
{
    double n = 0;
    int i = tune_experiment_input(p->experiment, input_name);
    if (i >= 0)
        tune_value_number(&inputs[i], &n);
    return n > 0 && n <= TUNE_CHILD_HELD ? (int)n : n > 0 ? TUNE_CHILD_HELD + 1 : 0;
}

/* True if an entity of the space may have a GPU. */
static bool may_have(const struct tune_protocol *p)
{
    static const struct tune_value none = {.type = TUNE_VALUE_INT};
    double n = 0;
    if (!input_of(p))
        return false;
    int i = tune_experiment_input(p->experiment, input_name), d = p->dimension[i];
    if (d < 0)
        return tune_value_number(&p->fixed[i], &n) && n > 0;
    const struct tune_domain *domain = &sweep.space->dimensions[d].domain;
    return tune_domain_size(domain) != 1 || !tune_domain_has(domain, &none);
}

int sweep_find_gpus(void)
{
    const char *list = my.gpus ? my.gpus : getenv(visible);
    bool wanted = false;
    for (int p = 0; p < sweep.protocol_count; p++)
        wanted = wanted || may_have(&sweep.protocols[p]);
    if (!wanted)
        return my.gpus ? tune_error_usage("--gpus: no entity of this space has a number_gpus above 0") : 0;
    sweep.gpus = calloc(TUNE_GPUS, sizeof *sweep.gpus);
    if (!sweep.gpus)
        return sweep_no_memory();
    TRY(sweep.gpu_count = tune_gpus_find(list, sweep.gpus, &sweep.machine_gpus));
    return 0;
}

static bool is_ours(int gpu)
{
    for (int s = 0; s < sweep.slot_count; s++)
        for (int i = 0; i < sweep.slots[s].gpu_count; i++)
            if (sweep.slots[s].gpu[i] == gpu)
                return true;
    return false;
}

void sweep_release_gpus(struct slot *slot)
{
    for (int i = 0; i < slot->gpu_count; i++)
        close(slot->claims[i]);
    slot->gpu_count = 0;
}

/* Reserve one more GPU for the slot: 1; 0: other sweeps have all that we do not; -1. */
static int take_one(struct slot *slot)
{
    for (int g = 0; g < sweep.gpu_count; g++) {
        char name[TUNE_GPU_NAME + 8];
        if (is_ours(g))
            continue;
        snprintf(name, sizeof name, "gpu/%s", sweep.gpus[g].name);
        int claim = tune_child_claim(name);
        if (claim < 0 && errno != EADDRINUSE)
            return tune_error_set("cannot reserve GPU %s: %s", sweep.gpus[g].name, strerror(errno));
        if (claim < 0)
            continue;
        slot->gpu[slot->gpu_count] = g;
        slot->claims[slot->gpu_count++] = claim;
        return 1;
    }
    return 0;
}

int sweep_take_gpus(struct slot *slot, int count)
{
    for (int i = 0; i < count; i++) {
        int taken = take_one(slot);
        if (taken <= 0) {
            sweep_release_gpus(slot);
            return taken;
        }
    }
    return 1;
}

/* Each GPU of the machine has an equal share of whole cores. Those of the slot's GPUs, into its
 * list. With more GPUs than cores there are no shares, and it may use all. */
static void choose_cores(struct slot *slot)
{
    int there = sweep.core_count, each = sweep.machine_gpus > 0 ? there / sweep.machine_gpus : 0;
    slot->cpu_count = 0;
    for (int i = 0; i < sweep.cpu_count; i++)
        for (int k = 0; k < slot->gpu_count; k++)
            if (each == 0 || sweep.cores[i] / each == sweep.gpus[slot->gpu[k]].place) {
                slot->cpus[slot->cpu_count++] = sweep.cpus[i];
                break;
            }
}

/* The program sees our environment and its own GPUs. With the input at 0 it sees none. */
int sweep_set_visible(struct slot *slot)
{
    const struct tune_protocol *p = &sweep.protocols[slot->job.protocol];
    int n = sweep.environment_count;
    size_t used = (size_t)snprintf(slot->visible, sizeof slot->visible, "%s=", visible);
    memcpy(slot->environment, sweep.environment, (size_t)n * sizeof *slot->environment);
    slot->environment[n] = NULL;
    if (!input_of(p))
        return 0;
    for (int i = 0; i < slot->gpu_count; i++)
        used += (size_t)snprintf(slot->visible + used, sizeof slot->visible - used, "%s%s", i ? "," : "", sweep.gpus[slot->gpu[i]].name);
    if (slot->gpu_count > 0)
        choose_cores(slot);
    slot->environment[n] = slot->visible;
    slot->environment[n + 1] = NULL;
    return 0;
}
