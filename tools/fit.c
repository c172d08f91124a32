/* fit.c - what fits on a GPU, and on which GPU a run fits, without that GPU.
 *
 *     build/fit --gpu h100-80gb --model llama3-8b        full, LoRA, QLoRA of one model
 *     build/fit --gpu-memory 24GiB                       all known models
 *     build/fit --model llama3-8b --method qlora --length 2048 --batch 2     all known GPUs
 *     build/fit --model llama3-8b --gpus 4 --shard fsdp                      four of each
 *
 * Each figure is the memory plan of a recipe (--plan-memory), made with the device's own
 * arithmetic. So it is what a run takes. The driver's part is an estimate. */
#include "fit/fit.h"

#include <string.h>

#include "core/nearest.h"
#include "core/try.h"
#include "flags/program.h"

static struct fit_flags my = {
    .tune = {.loader = {.accumulate = 1, .train_split = 1}, .log = {.log_every = 1}, .save = true}};

static const struct tune_option my_options[] = {
    {"model", TUNE_STRING, &my.tune.model, NULL, "", "",
     "model folder, known name (see --list-models), Hub id, or a config.json alone. A known model need not be here. "
     "With --gpu, default: all known models"},
    {"gpu", TUNE_JOINED(TUNE_STRING), &my.gpu, NULL, "", "",
     "known GPUs, with commas: --gpu list prints them. Default: all of them, and which of them the run "
     "fits on"},
    {"gpu-memory", TUNE_JOINED(TUNE_STRING), &my.memory, NULL, "", "",
     "memory of any other GPU, as CUDA shows it: 24GiB, 24GB or 24564MiB; several with commas"},
    {"gpus", TUNE_INT, &my.gpus, "1", "[1,64]", "GPUs",
     "GPUs of one machine that share a run, by arithmetic. Batches are those of each GPU"},
    {"shard", TUNE_CHOICE, &my.shard, "ddp", "ddp|optimizer|fsdp", "",
     "with --gpus. ddp: each GPU has all weights. optimizer: each has its share of the moments. fsdp: of weights and "
     "gradients, too"},
    {"price", TUNE_STRING, &my.price, NULL, "", "",
     "file with prices of GPUs per hour. CSV: a column gpu, and one such as usd_per_hour. JSON or YAML: "
     "names and prices. Adds the price, and the cost of a million tokens"},
    {"store", TUNE_STRING, &my.store, NULL, "", "",
     "sample store. Where its rows measured this run on a GPU, tokens/s is their mean, not an estimate. Where they lie "
     "around it, a model of them predicts"},
    {"output-format", TUNE_CHOICE, &my.format, "table", "table|csv|json", "",
     "table is for people. csv and json also have the command of a recipe, and sizes in bytes"},
    {"json", TUNE_BOOL, &my.json, "false", "", "", "the same as --output-format json"},
    {"width", TUNE_INT, &my.width, "0", "[0,4096]", "columns",
     "width of the output; 0: the terminal's"},
    TUNE_OPTION_GROUP("the run"),
    {"method", TUNE_STRING, &my.method, "full,lora,qlora", "", "",
     "full: all weights are trained, in float32. lora: adapters on a frozen base. qlora: on a base "
     "of 4 bits. Several with commas"},
    {"max-length", TUNE_INT, &my.tune.data.max_length, "2048", "[1,inf)", "tokens",
     "length of rows for which the largest batch is sought; at most the model's context"},
    {"length", TUNE_INT, &my.tune.data.max_length, "2048", "[1,inf)", "tokens", "the same as --max-length; the last one counts"},
    {"batch-size", TUNE_INT, &my.tune.loader.batch_size, "1", "[1,4096]", "rows",
     "batch for which the longest rows are sought. The parts are those of this batch"},
    {"batch", TUNE_INT, &my.tune.loader.batch_size, "1", "[1,4096]", "rows", "the same as --batch-size; the last one counts"},
    {"dtype", TUNE_DTYPE, &my.dtype, "bfloat16", "float32|bfloat16", "", "format of activations"},
    {"base-dtype", TUNE_DTYPE, &my.base_dtype, "bfloat16", "float32|bfloat16", "",
     "format of the frozen weights of lora"},
    {"activation-checkpointing", TUNE_ENUM, &my.tune.activation_checkpointing, "full", "none|full", "",
     "full: keep only each layer's input"},
    {"optimizer", TUNE_ENUM, &my.tune.optimizer.kind, "adamw", "adamw|sgd|muon", "", "update rule"},
    {"momentum", TUNE_DOUBLE, &my.tune.optimizer.momentum, "0", "[0,1)", "", "SGD: momentum"},
    {"ema", TUNE_DOUBLE, &my.tune.optimizer.ema, "0", "[0,1)", "", "moving averages of the weights"},
    {"lora-r", TUNE_INT, &my.tune.lora.r, "16", "[1,16384]", "", "rank of the adapters"},
    {"lora-targets", TUNE_STRING, &my.tune.lora.targets, "all-linear", "", "",
     "modules with an adapter"},
    {"lora-dora", TUNE_BOOL, &my.tune.lora.dora, "false", "", "", "DoRA"},
    TUNE_OPTION_GROUP(""),
    {0},
};
static const struct tune_property my_properties[] = {{0}};

static int check_methods(void)
{
    for (const char *at = my.method; *at; at += strcspn(at, ","), at += *at == ',') {
        bool known = false;
        for (int i = 0; i < METHODS; i++)
            known = known || (strcspn(at, ",") == strlen(fit_methods[i]) && !strncmp(at, fit_methods[i], strlen(fit_methods[i])));
        if (!known)
            return tune_error_usage("--method %s: expected full, lora, qlora, or several of them with commas", my.method);
    }
    return *my.method ? 0 : tune_error_usage("--method is empty: expected full, lora or qlora");
}

static int fit(void)
{
    struct fit_gpu gpus[MOST_GPUS];
    int count;
    if (my.gpu && !strcmp(my.gpu, "list"))
        return fit_gpus_list();
    if (my.json && tune_flags_given(&my.tune, "output-format") && strcmp(my.format, "json"))
        return tune_error_usage("--json and --output-format %s exclude each other", my.format);
    my.format = my.json ? "json" : my.format;
    TRY(check_methods());
    if (my.gpus == 1 && tune_flags_given(&my.tune, "shard"))
        return tune_error_usage("--shard %s needs --gpus N: one GPU shares nothing", my.shard);
    if (fit_shard_of(&my) != TUNE_DDP && my.tune.optimizer.kind == TUNE_MUON)
        return tune_error_usage("--optimizer muon needs whole matrices, and with --shard %s a GPU has parts of them; leave one of them out", my.shard);
    if (my.gpus > 1 && my.store)
        return tune_error_usage("--store has runs of one GPU, and --gpus %d asks for more; leave one of them out", my.gpus);
    TRY(count = fit_gpus_read(&my, gpus));
    if (count == 0 && !my.tune.model)
        return tune_error_usage("which model, or which GPU? --model NAME says which GPUs it fits on (--list-models prints the names); "
                                "--gpu NAME (--gpu list) or --gpu-memory 24GiB says what fits on that GPU");
    if (count > 0 && (my.price || my.store))
        return tune_error_usage("%s goes with the list of all GPUs, not with --gpu and --gpu-memory; leave it out",
                                my.price ? "--price" : "--store");
    TRY(count ? fit_on_gpus(&my, gpus, count) : fit_choose(&my));
    return ferror(stdout) ? tune_error_set("cannot write to standard output") : 0;
}

int main(int argc, char **argv)
{
    tune_program_start(argc, argv, &my.tune, my_options, my_properties,
                       "Say what fits on a GPU, and on which GPU a run fits, without that GPU.");
    MUST(fit());
    tune_flags_free(&my.tune);
    struct tune_progress none = {0};
    return tune_program_exit(&none);
}
