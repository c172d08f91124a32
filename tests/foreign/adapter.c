/* adapter.c - a program of somebody else's that trains an adapter in a loop of its own, on rows it makes itself, saves it as PEFT
 * does, and reads it into a second model.
 *
 *     cc adapter.c $(pkg-config --cflags --libs tune) -o adapter && ./adapter MODEL FOLDER
 *
 * The base is kept in four bits. It prints its own lines and nothing else shall appear. */
#include <stdio.h>

#include <adapters/adapter.h>
#include <tune.h>

enum { STEPS = 8, LENGTH = 40 };

static int give_up(const char *what)
{
    printf("%s: %s\n", what, tune_error_message());
    return 1;
}

static struct tune_model *open_model(const char *folder, struct tune_device *dev, const struct tune_lora_options *lora)
{
    struct tune_model *m = tune_model_load_frozen(folder, dev, TUNE_F32, TUNE_NF4);
    if (m && tune_lora_add(m, lora, 42) == 0 && tune_model_reserve(m, 1, LENGTH, TUNE_FOR_TRAINING) == 0)
        return m;
    tune_model_free(m);
    return NULL;
}

/* The mean loss of the batch; below 0: an error. */
static double loss_of(struct tune_model *m, struct tune_loss *loss, const struct tune_batch *batch)
{
    struct tune_tensor *hidden;
    double sum = 0;
    if (tune_model_infer(m, batch, &hidden) < 0 || tune_loss_forward(loss, hidden, batch, &sum) < 0)
        return -1;
    return sum / (double)batch->label_count;
}

static int train(struct tune_model *m, struct tune_loss *loss, struct tune_device *dev, const struct tune_batch *batch)
{
    struct tune_optimizer_options adamw = {.kind = TUNE_ADAMW, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
    struct tune_optimizer *opt = tune_optimizer_new(m, &adamw);
    struct tune_record *sums = tune_record_new(dev, 1);
    const struct tune_done_step *step;
    struct tune_tensor *hidden, *dhidden;
    int good = opt && sums;
    for (int i = 0; i < STEPS && good; i++)
        good = tune_model_zero_grad(m, sums) == 0 && tune_model_forward(m, batch, &hidden) == 0 &&
               tune_loss_forward_backward(loss, hidden, batch, sums, &dhidden) == 0 &&
               tune_model_backward(m, batch, dhidden) == 0 && tune_optimizer_scale(opt, 1.0, sums) == 0 &&
               tune_optimizer_step(opt, 1e-2, sums) == 0 && tune_record_read(sums, &step) == 1;
    tune_record_free(sums);
    tune_optimizer_free(opt);
    return good ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct tune_lora_options lora = {.r = 4, .alpha = 8, .targets = "q_proj,v_proj,down_proj", .dora = true};
    int32_t ids[LENGTH], labels[LENGTH], length = LENGTH;
    struct tune_batch batch = {.B = 1, .T = LENGTH, .ids = ids, .labels = labels, .lengths = &length, .tokens = LENGTH,
                               .label_count = LENGTH - 1};
    struct tune_adapter_config config;
    if (argc != 3)
        return 2;
    for (int t = 0; t < LENGTH; t++) {
        ids[t] = 7 + 3 * t % 200;
        labels[t] = t + 1 < LENGTH ? 7 + 3 * (t + 1) % 200 : TUNE_NO_LABEL;
    }
    struct tune_device *dev = tune_device_open("cpu", 2);
    struct tune_model *a = dev ? open_model(argv[1], dev, &lora) : NULL;
    struct tune_loss *loss = a ? tune_loss_new(a, true) : NULL;
    if (!loss)
        return give_up("open");
    double before = loss_of(a, loss, &batch);
    if (before < 0 || train(a, loss, dev, &batch) < 0)
        return give_up("train");
    double after = loss_of(a, loss, &batch);
    printf("%s\n", after > 0 && after < before ? "it learns" : "it DOES NOT learn");
    if (tune_file_make_folder(argv[2]) < 0 || tune_adapter_write(a, argv[2], argv[1], TUNE_F32) < 0 ||
        tune_adapter_compare(a, argv[2]) < 0)
        return give_up("save");
    printf("saved, the same\n");

    if (tune_adapter_config_read(&config, argv[2]) < 0)
        return give_up("read");
    struct tune_model *b = open_model(argv[1], dev, &config.lora);
    struct tune_loss *other = b ? tune_loss_new(b, true) : NULL;
    if (!other || tune_adapter_read(b, argv[2]) < 0)
        return give_up("read");
    printf("%s\n", loss_of(b, other, &batch) == after ? "read, the same" : "read, ANOTHER");
    tune_adapter_config_free(&config);
    tune_loss_free(other);
    tune_loss_free(loss);
    tune_model_free(b);
    tune_model_free(a);
    tune_device_close(dev);
    return 0;
}
