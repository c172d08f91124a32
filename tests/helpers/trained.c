/* trained.c - compares a run of a recipe with the numbers of tests/reference/steps.
 *
 *     trained EXPECTED BEFORE RUN LIMIT
 *
 * EXPECTED: a .safetensors file with loss, lr and grad_norm of each step, and "after." tensors: the saved
 * weights. eval_loss, if it is there, is of the last evaluation. BEFORE: the .safetensors file that the run began from. RUN: the run folder. Prints how far each
 * differs: the numbers by the largest relative difference, the weights by the largest
 * ||got - expected|| / ||expected - before|| of a tensor. Exit 1 if one is above LIMIT, or a step or a tensor
 * is missing. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "files/file.h"
#include "files/safetensors.h"

enum { STEPS = 64 };

struct step {
    double loss, lr, grad_norm;
};

static void stop(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("trained: ", stdout);
    vprintf(format, arguments);
    va_end(arguments);
    puts("");
    exit(1);
}

static struct tune_safetensors *open_file(const char *path)
{
    struct tune_safetensors *f = tune_safetensors_open(path);
    if (!f)
        stop("%s", tune_error_message());
    return f;
}

static double number(const cJSON *line, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(line, name);
    return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

/* Returns the number of steps; eval: its loss is that of the last evaluation. */
static int read_steps(const char *run, struct step *steps, struct step *eval)
{
    char path[TUNE_PATH_MAX], line[4096];
    int n = 0;
    snprintf(path, sizeof path, "%s/metrics.jsonl", run);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        cJSON *json = cJSON_Parse(line);
        if (!json || n == STEPS)
            stop("%s: line %d is no JSON, or is one too many", path, n + 1);
        if (cJSON_HasObjectItem(json, "eval_loss")) {
            eval->loss = number(json, "eval_loss");
            cJSON_Delete(json);
            continue;
        }
        steps[n].loss = number(json, "loss");
        steps[n].lr = number(json, "lr");
        steps[n++].grad_norm = number(json, "grad_norm");
        cJSON_Delete(json);
    }
    if (!f)
        stop("%s cannot be read", path);
    fclose(f);
    return n;
}

static double real(const struct tune_array *t, int64_t i)
{
    double v;
    float f;
    if (t->dtype == TUNE_F64) {
        memcpy(&v, (char *)t->data + 8 * i, 8);
        return v;
    }
    memcpy(&f, (char *)t->data + 4 * i, 4);
    return f;
}

/* The larger of two; not a number is the largest. */
static double worse(double a, double b)
{
    return b <= a ? a : b;
}

/* got: this number of the first step; those of the others are as far apart as the steps. */
static double numbers_apart(const struct tune_safetensors *want, const char *name, const double *got, int n)
{
    const struct tune_array *t = tune_safetensors_find(want, name);
    double worst = 0;
    if (!t || tune_array_elements(t) != n)
        stop("%d steps in metrics.jsonl; %s has %lld", n, name, t ? (long long)tune_array_elements(t) : -1);
    for (int i = 0; i < n; i++)
        worst = worse(worst, fabs(got[i * sizeof(struct step) / sizeof *got] / real(t, i) - 1));
    return worst;
}

/* The newest checkpoint's weights: a model's or an adapter's. */
static struct tune_safetensors *open_weights(const char *run, int step)
{
    static const char *const names[] = {"model", "adapter_model"};
    char path[TUNE_PATH_MAX];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/checkpoint-%d/%s.safetensors", run, step, names[i]);
        if (tune_file_exists(path))
            return open_file(path);
    }
    stop("%s: there are no weights of step %d", run, step);
    return NULL;
}

static double tensor_apart(const struct tune_array *want, const struct tune_array *before,
                           const struct tune_array *got, const char *name)
{
    double d = 0, s = 0;
    int64_t n = tune_array_elements(want);
    if (!before || !got || got->dtype != TUNE_F32 || before->dtype != TUNE_F32 ||
        tune_array_elements(got) != n || tune_array_elements(before) != n)
        stop("%s is missing, or not of this shape in float32", name);
    for (int64_t i = 0; i < n; i++) {
        double w = real(want, i), e = real(got, i) - w, u = w - real(before, i);
        d += e * e;
        s += u * u;
    }
    return sqrt(d / s); /* not a number where nothing was to change: that is an error, too */
}

static double weights_apart(const struct tune_safetensors *want, const struct tune_safetensors *before,
                            const struct tune_safetensors *got)
{
    double worst = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < tune_safetensors_count(want); i++) {
        const char *name = tune_safetensors_name(want, i);
        if (strncmp(name, "after.", 6))
            continue;
        count++;
        double d = tensor_apart(tune_safetensors_at(want, i), tune_safetensors_find(before, name + 6),
                                tune_safetensors_find(got, name + 6), name + 6);
        worst = worse(worst, d);
    }
    if (count == 0 || tune_safetensors_count(got) != count)
        stop("%lld tensors were saved, %lld expected", (long long)tune_safetensors_count(got),
             (long long)count);
    return worst;
}

int main(int argc, char **argv)
{
    struct step steps[STEPS], eval = {NAN, NAN, NAN};
    if (argc != 5)
        return 64;
    struct tune_safetensors *want = open_file(argv[1]), *before = open_file(argv[2]);
    int n = read_steps(argv[3], steps, &eval);
    struct tune_safetensors *got = open_weights(argv[3], n);
    double limit = atof(argv[4]), weights = weights_apart(want, before, got);
    double loss = numbers_apart(want, "loss", &steps->loss, n), lr = numbers_apart(want, "lr", &steps->lr, n);
    double norm = numbers_apart(want, "grad_norm", &steps->grad_norm, n);
    bool evaluated = tune_safetensors_find(want, "eval_loss") != NULL;
    double of_eval = evaluated ? numbers_apart(want, "eval_loss", &eval.loss, 1) : 0;
    printf("%d steps: apart in loss %.1e, lr %.1e, grad_norm %.1e, weights %.1e, eval_loss %.1e; limit %.1e\n", n, loss,
           lr, norm, weights, of_eval, limit);
    tune_safetensors_close(want);
    tune_safetensors_close(before);
    tune_safetensors_close(got);
    return !(loss <= limit && lr <= limit && norm <= limit && weights <= limit && of_eval <= limit);
}
