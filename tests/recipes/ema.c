/* ema.c - full fine-tuning with tensors of its own beside the weights: here a moving average.
 * Checkpoints save them (state/extra.safetensors), so a resumed run goes on with them. The option
 * --ema also evaluates averages, and saves them as the model.
 *
 *     make RECIPE=tests/recipes/ema.c
 *     build/ema --model models/SmolLM2-135M --dataset my.jsonl --ema-decay 0.999 */
#include "devices/ops.h"
#include "flags/program.h"
#include "tune.h"

static struct { struct tune_flags tune; double decay; } my;

static const struct tune_option my_options[] = {
    TUNE_TRAINING_OPTIONS(my.tune), /* another default: {"lr", .value = "1e-4"} in a row below */
    {"ema-decay", TUNE_DOUBLE, &my.decay, "0.999", "[0,1)", "", "of the average, in a step"},
    {0},
};

static const struct tune_property my_properties[] = {
    TUNE_TRAINING_PROPERTIES,
    {0},
};

/* average = decay average + (1 - decay) weights, on the device. */
static int average(struct tune_model *model, int ema, double decay)
{
    const struct tune_parameters *table = tune_model_parameters(model);
    for (int i = 0; i < table->count; i++) {
        int unit = table->at[i].unit;
        if (tune_unit_take(model, unit) < 0)
            return -1;
        struct tune_tensor w = tune_model_tensor(model, &table->at[i], TUNE_WEIGHT);
        struct tune_tensor e = tune_model_tensor(model, &table->at[i], ema);
        int status = tune_axpby(tune_model_device(model), &e, &w, (float)(1 - decay), (float)decay);
        if (tune_unit_done(model, unit, status) < 0)
            return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct tune_flags *flags = &my.tune; /* default < model's defaults < --config < flag */
    tune_program_start(argc, argv, &my.tune, my_options, my_properties,
                       "Fine-tune all weights of a language model.");
    tune_program_catch_signals(&my.tune); /* SIGINT, SIGTERM, SIGHUP: finish the step, save, end */

    GET(tune_get_comm(&my.tune)); /* --ranks: the processes that train together */
    struct tune_tokenizer *tok = GET(tune_get_tokenizer(flags));
    struct tune_dataset *data = GET(tune_get_dataset(flags, tok)); /* tokenises rows as it reads */
    struct tune_device *dev = GET(tune_get_device(flags));
    struct tune_memory_plan memory;
    MUST(tune_get_memory_plan(&memory, flags, dev, data)); /* an error if the run cannot fit */
    struct tune_model *model = GET(tune_get_model(flags, dev, tok));
    struct tune_loader *load = GET(tune_get_loader(flags, data));
    struct tune_loss *loss = GET(tune_get_loss(flags, model));
    struct tune_optimizer *opt = GET(tune_get_optimizer(flags, model));
    struct tune_schedule schedule = tune_get_schedule(flags);
    struct tune_evaluator *eval = GET(tune_get_eval(flags, model, loss, data, tok));
    struct tune_record *record = GET(tune_record_new(dev, flags->log.log_every)); /* step's sums */
    struct tune_logger *log = GET(tune_get_logger(flags)); /* makes the run folder */
    struct tune_checkpoint *ckpt = GET(tune_get_checkpoint(flags, log));
    MUST(tune_logger_run(log, flags, model, data, load, &memory)); /* header lines, run.json */
    MUST(tune_evaluator_note(eval, log)); /* the same for the rows it evaluates on */

    int ema = MUST(tune_model_extra(model, "slow")); /* before resuming, which fills it */
    struct tune_progress at = {0}; /* where the run stands: steps, rows, tokens, evaluations */
    int batches;
    /* --resume: all of these go on from a checkpoint. With and without it, a call that fails from
     * here on saves the last finished step before the program ends. */
    MUST(tune_checkpoint_resume(ckpt, model, opt, load, eval, &at));
    if (at.step == 0)
        MUST(average(model, ema, 0)); /* it begins as the weights */

    while ((batches = MUST(tune_loader_more(load, &at))) > 0) { /* one step; 0: the end */
        MUST(tune_model_zero_grad(model, record)); /* gradients and the step's sums become 0 */
        while (batches-- > 0) {                    /* micro-batches, at most --accumulate */
            struct tune_batch batch;               /* host memory, until tune_loader_next */
            struct tune_tensor *hidden, *dhidden;  /* device memory, [B*T,width] */
            MUST(tune_loader_next(load, &batch));
            MUST(tune_model_forward(model, &batch, &hidden));
            /* Logits exist only in here: the loss projects some labelled positions of hidden on the
             * vocabulary at a time, so [B*T,vocabulary] never exists. */
            MUST(tune_loss_forward_backward(loss, hidden, &batch, record, &dhidden));
            MUST(tune_model_backward(model, &batch, dhidden)); /* adds to the gradients */
        }
        MUST(tune_model_reduce(model, record)); /* sums of all ranks; one rank has them already */
        /* The division is here, once a step. The loss is a sum over labels; gradients are divided
         * by the number of labels in all micro-batches, then clipped to the norm. */
        MUST(tune_optimizer_scale(opt, flags->clip_norm, record));
        MUST(tune_optimizer_step(opt, tune_schedule_lr(&schedule, &at), record));
        tune_progress_step(&at, load);
        double most = (1 + (double)at.step) / (10 + (double)at.step); /* short memory at first */
        double decay = my.decay < most ? my.decay : most;
        MUST(average(model, ema, decay));
        MUST(tune_logger_metric(log, "ema_decay", decay));
        /* Only these three calls wait for the device, and only at the steps where they are due. */
        MUST(tune_logger_step(log, &at, record));          /* --log-every: reads the sums */
        MUST(tune_evaluator_step(eval, log, &at));         /* --eval-every */
        MUST(tune_checkpoint_step(ckpt, model, opt, &at)); /* --save-every; a new best */
    }
    MUST(tune_checkpoint_finish(ckpt, model, opt, eval, &at)); /* saves, then evaluates */
    MUST(tune_logger_report(log, &at));                        /* report.json, closing lines */

    tune_checkpoint_free(ckpt), tune_logger_free(log), tune_record_free(record);
    tune_evaluator_free(eval), tune_optimizer_free(opt), tune_loss_free(loss);
    tune_loader_free(load), tune_model_free(model), tune_device_close(dev);
    tune_dataset_free(data), tune_tokenizer_free(tok), tune_flags_free(&my.tune);
    return tune_program_exit(&at); /* 0; 1: the loss rose; after a signal 128 + its number */
}
