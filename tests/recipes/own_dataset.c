/* own_dataset.c - a recipe whose rows the program makes itself: sums such as "17+25=42", only the answer is trained.
 *
 *     make RECIPE=tests/recipes/own_dataset.c
 *     build/own_dataset --model models/SmolLM2-135M --sums 5000 --lr 1e-4
 *
 * A set of one's own is a number of rows and a callback that fills row i: its tokens, and which of them are trained.
 * Everything else is recipes/finetune_full.c, without evaluation and checkpoints. */
#include <stdio.h>
#include <string.h>

#include "flags/program.h"
#include "tune.h"

static struct {
    struct tune_flags tune;
    int64_t sums;
} my;

/* Append the tokens of text to the row. */
static int append(struct tune_tokenizer *tok, const char *text, bool trained, struct tune_example *x)
{
    struct tune_encoding e = {0};
    int result = tune_tokenizer_encode(tok, text, strlen(text), 0, &e);
    for (int64_t i = 0; result == 0 && i < e.count; i++) {
        x->ids[x->count] = e.ids[i];
        x->trained[x->count++] = trained;
    }
    tune_encoding_free(&e);
    return result;
}

/* Row i of the set; the loader's helper thread calls it too, so it keeps nothing between calls. */
static int sum(void *context, int64_t row, struct tune_example *x)
{
    char question[48], answer[24];
    long long a = row * 7919 % 100, b = row * 104729 % 89;
    snprintf(question, sizeof question, "%lld+%lld=", a, b);
    snprintf(answer, sizeof answer, "%lld", a + b);
    if (tune_example_reserve(x, 64) < 0) /* a token has at least one byte */
        return -1;
    x->count = 0;
    return append(context, question, false, x) < 0 ? -1 : append(context, answer, true, x);
}

/* --show-tokens. */
static int show(const struct tune_flags *flags, FILE *out)
{
    struct tune_tokenizer *tok = tune_get_tokenizer(flags);
    int length = flags->data.max_length;
    struct tune_dataset *data = tok ? tune_dataset_from(my.sums, sum, tok, length) : NULL;
    int status = data ? tune_dataset_show(data, tok, flags->show_tokens, out) : -1;
    tune_dataset_free(data);
    tune_tokenizer_free(tok);
    return status;
}

static const struct tune_service show_sums = {show};

static const struct tune_option my_options[] = {
    TUNE_TRAINING_OPTIONS(my.tune),
    {"sums", TUNE_INT64, &my.sums, "1000", "[1,1000000]", "rows", "how many sums to make"},
    {"max-length", .value = "64"}, /* another default for a shared option */
    TUNE_OPTION_SERVED("show-tokens", &show_sums),
    {0},
};

static const struct tune_property my_properties[] = {
    TUNE_TRAINING_PROPERTIES,
    {"answer_tokens", "tokens", "trained tokens of all finished steps"},
    {0},
};

int main(int argc, char **argv)
{
    const struct tune_flags *flags = &my.tune;
    tune_program_start(argc, argv, &my.tune, my_options, my_properties, "Teach a language model to add.");
    tune_program_catch_signals(&my.tune);

    GET(tune_get_comm(&my.tune)); /* --ranks: the processes that train together */
    struct tune_tokenizer *tok = GET(tune_get_tokenizer(flags));
    struct tune_dataset *data = GET(tune_dataset_from(my.sums, sum, tok, flags->data.max_length));
    struct tune_device *dev = GET(tune_get_device(flags));
    struct tune_model *model = GET(tune_get_model(flags, dev, tok));
    struct tune_loader *load = GET(tune_get_loader(flags, data));
    struct tune_loss *loss = GET(tune_get_loss(flags, model));
    struct tune_optimizer *opt = GET(tune_get_optimizer(flags, model));
    struct tune_schedule schedule = tune_get_schedule(flags);
    struct tune_record *record = GET(tune_record_new(dev, flags->log.log_every));
    struct tune_logger *log = GET(tune_get_logger(flags));
    MUST(tune_logger_run(log, flags, model, data, load, NULL));

    struct tune_progress at = {0};
    int micros;
    while ((micros = MUST(tune_loader_more(load, &at))) > 0) {
        MUST(tune_model_zero_grad(model, record));
        while (micros-- > 0) {
            struct tune_batch batch;
            struct tune_tensor *hidden, *dhidden;
            MUST(tune_loader_next(load, &batch));
            MUST(tune_model_forward(model, &batch, &hidden));
            MUST(tune_loss_forward_backward(loss, hidden, &batch, record, &dhidden));
            MUST(tune_model_backward(model, &batch, dhidden));
        }
        MUST(tune_model_reduce(model, record)); /* sums of all ranks; one rank has them already */
        MUST(tune_optimizer_scale(opt, flags->clip_norm, record));
        MUST(tune_optimizer_step(opt, tune_schedule_lr(&schedule, &at), record));
        tune_progress_step(&at, load);
        MUST(tune_logger_step(log, &at, record));
    }
    MUST(tune_logger_property(log, "answer_tokens", (double)at.labels));
    MUST(tune_logger_report(log, &at));

    tune_logger_free(log);
    tune_record_free(record);
    tune_optimizer_free(opt);
    tune_loss_free(loss);
    tune_loader_free(load);
    tune_model_free(model);
    tune_device_close(dev);
    tune_dataset_free(data);
    tune_tokenizer_free(tok);
    tune_flags_free(&my.tune);
    return tune_program_exit(&at);
}
