/* memory.c - ask a program whether it has the memory for a job, before anything is measured. */
#include "devices/known_gpus.h"
#include "sweep.h"

enum { PLAN_S = 30, PLAN_LOG = 1 << 16, MOST_ARGUMENT = 4096 };

/* Read the reason: the first sentence of the output's last line, without the program's name. */
static void read_reason(char *output, char *why, size_t size)
{
    const char *line = last_line(output), *colon = strstr(line, ": ");
    line = colon && !memchr(line, ' ', (size_t)(colon - line)) ? colon + 2 : line;
    const char *stop = strstr(line, ". ");
    snprintf(why, size, "%.*s", stop ? (int)(stop - line) : (int)strlen(line), line);
}

/* The known GPU that the entity names and this machine lacks; NULL: none. */
static const struct tune_known_gpu *absent_gpu(const struct plan *plan, const struct tune_job *job)
{
    const struct tune_binding *p = binding_of(plan, job);
    int i = tune_experiment_input(p->experiment, "gpu_model");
    if (i < 0 || job->inputs[i].type != TUNE_VALUE_TEXT || gpus_of(p, job->inputs) == 0)
        return NULL;
    const struct tune_known_gpu *gpu = tune_known_gpu(job->inputs[i].text);
    return plan->machine.gpu_count > 0 && gpu == tune_known_gpu(plan->machine.host.gpu) ? NULL : gpu;
}

/* An argument of the plan into text: {gpu_model} is the GPU's name. False: leave it out. */
static bool plan_argument(const char *argument, const struct tune_known_gpu *gpu, char text[MOST_ARGUMENT])
{
    static const char word[] = "{gpu_model}";
    const char *at = strstr(argument, word);
    if (at && !gpu)
        return false;
    int before = at ? (int)(at - argument) : (int)strlen(argument);
    snprintf(text, MOST_ARGUMENT, "%.*s%s%s", before, argument, at ? gpu->name : "", at ? at + strlen(word) : "");
    return true;
}

/* Ask the program. 1: the job does not fit; why: the reason. 0: it fits, or the program does not
 * say; -1. */
static int ask_program(const struct plan *plan, const struct tune_job *job, const char *program,
                       const struct tune_command *c, char *why, size_t size)
{
    const struct tune_experiment *e = binding_of(plan, job)->experiment;
    const struct tune_known_gpu *gpu = absent_gpu(plan, job);
    char output[PLAN_LOG];
    struct tune_child_end end;
    int n = 0;
    const char **argv = calloc((size_t)(c->argument_count + e->plan_count) + 2, sizeof *argv);
    char (*texts)[MOST_ARGUMENT] = calloc((size_t)e->plan_count, sizeof *texts);
    if (!argv || !texts) {
        free(argv);
        free(texts);
        return no_memory();
    }
    argv[n++] = program;
    for (int i = 0; i < c->argument_count; i++)
        argv[n++] = c->arguments[i];
    for (int i = 0; i < e->plan_count; i++)
        if (plan_argument(e->plan[i], gpu, texts[i]))
            argv[n++] = texts[i];
    int code = command_output(plan, argv, (const char *const *)plan->environment, PLAN_S, output, sizeof output, &end);
    free(argv);
    free(texts);
    TRY(code);
    if (end.how != TUNE_CHILD_EXITED || end.code != TUNE_ERROR_CANNOT)
        return 0;
    read_reason(output, why, size);
    return 1;
}

int memory_lacks(const struct plan *plan, const struct tune_job *job, char *why, size_t size)
{
    const struct tune_experiment *e = binding_of(plan, job)->experiment;
    const char *program = plan->provenance->programs[job->binding].path;
    struct tune_command c;
    if (e->plan_count == 0 || !*program)
        return 0;
    TRY(provenance_command(plan, e, job->inputs, &c));
    int code = ask_program(plan, job, program, &c, why, size);
    tune_command_free(&c);
    return code;
}
