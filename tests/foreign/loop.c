/* loop.c - a program of somebody else's that takes tune.c's components into a loop of its own: no flags, no logger.
 *
 *     cc loop.c $(pkg-config --cflags --libs tune) -o loop && ./loop MODEL_A MODEL_B
 *
 * Trains each model alone, then both in turns, and compares the losses bit for bit. It prints its own lines and nothing
 * else shall appear. It owns names a careless library would have taken. */
#include <stdio.h>
#include <string.h>

#include <tune.h>

int model_free(int x);
void error_set(const char *text);
int model_free(int x) { return x + 1; }
void error_set(const char *text) { (void)text; }

enum { STEPS = 6, ROWS = 24, LENGTH = 40, BATCH = 4 };

/* Row i of the set: runs of counting tokens; context holds where this set begins. */
static int count_up(void *context, int64_t row, struct tune_example *x)
{
    int64_t n = LENGTH / 2 + row % (LENGTH / 2);
    if (tune_example_reserve(x, n) < 0)
        return -1;
    for (int64_t i = 0; i < n; i++) {
        x->ids[i] = (int32_t)((*(const int *)context + 3 * row + i) % 200);
        x->trained[i] = i > 0;
    }
    x->count = n;
    return 0;
}

/* All that training one model takes. */
struct training {
    struct tune_model *model;
    struct tune_dataset *data;
    struct tune_loader *loader;
    struct tune_loss *loss;
    struct tune_optimizer *optimizer;
    struct tune_record *sums;
    struct tune_progress at;
    double losses[STEPS];
};

static int start(struct training *t, const char *folder, struct tune_device *dev, int *first)
{
    struct tune_optimizer_options adamw = {.kind = TUNE_ADAMW, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.01};
    struct tune_loader_options order = {.part = TUNE_ALL, .seed = 7, .shuffle = true, .batch_size = BATCH, .accumulate = 2,
                                        .max_length = LENGTH, .epochs = 1, .max_steps = STEPS, .stop_after_seconds = -1,
                                        .prefetch = true};
    memset(t, 0, sizeof *t);
    return (t->model = tune_model_load(folder, dev, TUNE_F32)) &&
           tune_model_reserve(t->model, BATCH, LENGTH, TUNE_FOR_TRAINING) == 0 &&
           (t->data = tune_dataset_from(ROWS, count_up, first, LENGTH)) &&
           (t->loader = tune_loader_new(t->data, &order)) && (t->loss = tune_loss_new(t->model, true)) &&
           (t->optimizer = tune_optimizer_new(t->model, &adamw)) && (t->sums = tune_record_new(dev, 1));
}

/* One optimizer step; 1, 0 when there is none left, -1. */
static int step(struct training *t)
{
    const struct tune_done_step *done;
    struct tune_batch batch;
    struct tune_tensor *hidden, *dhidden;
    int micros = tune_loader_more(t->loader, &t->at);
    if (micros <= 0)
        return micros;
    if (tune_model_zero_grad(t->model, t->sums) < 0)
        return -1;
    while (micros-- > 0)
        if (tune_loader_next(t->loader, &batch) < 0 || tune_model_forward(t->model, &batch, &hidden) < 0 ||
            tune_loss_forward_backward(t->loss, hidden, &batch, t->sums, &dhidden) < 0 ||
            tune_model_backward(t->model, &batch, dhidden) < 0)
            return -1;
    if (tune_optimizer_scale(t->optimizer, 1.0, t->sums) < 0 || tune_optimizer_step(t->optimizer, 1e-3, t->sums) < 0 ||
        tune_record_read(t->sums, &done) != 1)
        return -1;
    t->losses[t->at.step] = done->scalars.loss_sum / done->scalars.labels;
    tune_progress_step(&t->at, t->loader);
    return 1;
}

static void finish(struct training *t)
{
    tune_record_free(t->sums);
    tune_optimizer_free(t->optimizer);
    tune_loss_free(t->loss);
    tune_loader_free(t->loader);
    tune_dataset_free(t->data);
    tune_model_free(t->model);
}

static int give_up(const char *what)
{
    printf("%s: %s\n", what, tune_error_message());
    return 1;
}

static int same(const double *a, const double *b)
{
    return memcmp(a, b, sizeof(double[STEPS])) == 0 && a[STEPS - 1] < a[0];
}

int main(int argc, char **argv)
{
    struct training t[2];
    double alone[2][STEPS];
    int first[2] = {5, 90};
    if (argc != 3)
        return 2;
    for (int i = 0; i < 2; i++) {
        struct tune_device *dev = tune_device_open("cpu", 2);
        int more = 1;
        if (!dev || !start(&t[i], argv[1 + i], dev, &first[i]))
            return give_up("start");
        while (more > 0)
            more = step(&t[i]);
        if (more < 0)
            return give_up("step");
        memcpy(alone[i], t[i].losses, sizeof alone[i]);
        finish(&t[i]);
        tune_device_close(dev);
    }
    for (int devices = 1; devices <= 2; devices++) { /* both models on one device, then each on its own */
        struct tune_device *dev[2] = {NULL, NULL};
        for (int i = 0; i < devices; i++)
            if (!(dev[i] = tune_device_open("cpu", 2)))
                return give_up("device");
        for (int i = 0; i < 2; i++)
            if (!start(&t[i], argv[1 + i], dev[i % devices], &first[i]))
                return give_up("start");
        for (int s = 0; s < STEPS; s++)
            for (int i = 0; i < 2; i++)
                if (step(&t[i]) != 1)
                    return give_up("step");
        printf("%d device%s: %s %s\n", devices, devices > 1 ? "s" : "", same(t[0].losses, alone[0]) ? "same" : "DIFFERENT",
               same(t[1].losses, alone[1]) ? "same" : "DIFFERENT");
        for (int i = 0; i < 2; i++)
            finish(&t[i]);
        for (int i = 0; i < devices; i++)
            tune_device_close(dev[i]);
    }
    struct tune_device *dev = tune_device_open("cpu", 1);
    if (tune_model_load("/no/such/folder", dev, TUNE_F32) || !strstr(tune_error_message(), "/no/such/folder") ||
        tune_dataset_open("/no/such/file.jsonl", &(struct tune_dataset_options){.max_length = 8}, NULL) ||
        !strstr(tune_error_message(), "/no/such/file.jsonl") || tune_device_open("abacus", 1) ||
        !strstr(tune_error_message(), "abacus"))
        printf("an error went unsaid: %s\n", tune_error_message());
    tune_device_close(dev);
    printf("my own names: %d\n", model_free(1));
    error_set("mine");
    return 0;
}
