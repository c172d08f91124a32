/* finetune_dpo.c - train on preferences: pairs of a chosen and a rejected answer (DPO and others).
 * With --loss kto they are single answers with a label, true or false.
 *
 *     build/finetune_dpo --model models/SmolLM2-135M --dataset pairs.jsonl --output runs/first
 *
 * It trains adapters, and the frozen model below them is the reference. With --lora-r 0 it trains
 * all weights. It then computes the reference's log-probabilities first and keeps them in a file.
 * finetune_full.c says how to copy and change a recipe. */
#include "flags/program.h"
#include "tune.h"

static struct { struct tune_flags tune; } my = {.tune = {.data = {.sequences = 2}}};

static const struct tune_option my_options[] = {
    TUNE_TRAINING_OPTIONS(my.tune), /* another default: {"lr", .value = "1e-4"} in a row below */
    TUNE_LORA_OPTIONS(my.tune),
    TUNE_PREFERENCE_OPTIONS(my.tune),
    {"lr", .value = "1e-5"},
    {"lora-r", .range = "[0,16384]", .help = "rank of the adapters; 0: train all weights"},
    {0},
};

static const struct tune_property my_properties[] = {
    TUNE_PREFERENCE_PROPERTIES,
    TUNE_LORA_PROPERTIES,
    {0},
};

int main(int argc, char **argv)
{
    const struct tune_flags *flags = &my.tune; /* default < model's defaults < --config < flag */
    tune_program_start(argc, argv, &my.tune, my_options, my_properties,
                       "Train on preferences: pairs of answers, or answers with a label (KTO).");
    tune_program_catch_signals(&my.tune); /* SIGINT, SIGTERM, SIGHUP: finish the step, save, end */

    GET(tune_get_comm(&my.tune)); /* --ranks: the processes that train together */
    MUST(tune_preference_check(&flags->preference, flags->loader.batch_size));
    struct tune_tokenizer *tok = GET(tune_get_tokenizer(flags));
    struct tune_dataset *data = GET(tune_get_dataset(flags, tok)); /* tokenises rows as it reads */
    struct tune_device *dev = GET(tune_get_device(flags));
    struct tune_memory_plan memory;
    MUST(tune_get_memory_plan(&memory, flags, dev, data)); /* an error if the run cannot fit */
    struct tune_model *model = GET(flags->lora.r > 0 ? tune_get_lora(flags, dev, tok)
                                                     : tune_get_model(flags, dev, tok));
    struct tune_loader *load = GET(tune_get_loader(flags, data));
    struct tune_loss *loss = GET(tune_get_loss(flags, model));
    struct tune_optimizer *opt = GET(tune_get_optimizer(flags, model));
    struct tune_schedule schedule = tune_get_schedule(flags);
    struct tune_evaluator *eval = GET(tune_get_eval(flags, model, loss, data, tok));
    struct tune_previews *previews = GET(tune_get_previews(flags, model, data, tok));
    struct tune_record *record = GET(tune_record_new(dev, flags->log.log_every)); /* step's sums */
    struct tune_logger *log = GET(tune_get_logger(flags)); /* makes the run folder */
    struct tune_checkpoint *ckpt = GET(tune_get_checkpoint(flags, log));
    MUST(tune_logger_run(log, flags, model, data, load, &memory)); /* header lines, run.json */
    MUST(tune_evaluator_note(eval, log)); /* the same for the rows it evaluates on */
    MUST(tune_previews_note(previews, log)); /* and for the prompts it answers */
    struct tune_reference *reference = GET(tune_get_reference(flags, model, loss, load, eval, log));
    tune_evaluator_by(eval, tune_rewards_evaluate,
                      &(struct tune_rewards){&flags->preference, model, loss, reference});

    struct tune_progress at = {0}; /* where the run stands: steps, rows, tokens, evaluations */
    int batches;
    /* --resume: all of these go on from a checkpoint. With and without it, a call that fails from
     * here on saves the last finished step before the program ends. */
    MUST(tune_checkpoint_resume(ckpt, model, opt, load, eval, &at));

    while ((batches = MUST(tune_loader_more(load, &at))) > 0) { /* one step; 0: the end */
        MUST(tune_model_zero_grad(model, record)); /* gradients and the step's sums become 0 */
        struct tune_preference_sums sums = {0};
        while (batches-- > 0) {                  /* micro-batches, at most --accumulate */
            struct tune_batch batch;             /* of a pair, rows 2i and 2i + 1 */
            struct tune_tensor *hidden, weights; /* device memory, [B*T,width] and [B*T] */
            struct tune_chunk chunk;             /* some labels and their logits */
            MUST(tune_loader_next(load, &batch));
            double theirs[batch.B], ours[batch.B], factors[batch.B], kl; /* log p of each answer */
            MUST(tune_reference_log_probs(reference, &batch, theirs));
            MUST(tune_reference_kl(reference, &batch, &kl)); /* --loss kto; of the others it is 0 */
            MUST(tune_model_forward(model, &batch, &hidden));
            MUST(tune_loss_row_log_probs(loss, hidden, &batch, ours)); /* waits for the device */
            /* The loss of each pair, and its derivatives by log p: one factor for each answer. */
            MUST(tune_preference_batch(&flags->preference, &batch, ours, theirs, kl, factors,
                                       record, &sums));
            MUST(tune_loss_row_weights(loss, &batch, factors, &weights));
            /* The gradient of log p is that of a cross entropy. Logits exist only in here. */
            while (MUST(tune_loss_chunk(loss, hidden, &batch, record, &chunk)) > 0) {
                MUST(tune_cross_entropy_gradient(&chunk, &weights));
                MUST(tune_chunk_done(&chunk)); /* back through the projection */
            }
            MUST(tune_model_backward(model, &batch, tune_loss_dhidden(loss))); /* adds */
        }
        MUST(tune_model_reduce(model, record)); /* sums of all ranks; one rank has them already */
        MUST(tune_preference_reduce(&sums, flags->comm));
        /* The division is here, once a step. The loss is a sum over pairs; gradients are divided
         * by the number of pairs in all micro-batches, then clipped to the norm. */
        MUST(tune_optimizer_scale(opt, flags->clip_norm, record));
        MUST(tune_optimizer_step(opt, tune_schedule_lr(&schedule, &at), record));
        tune_progress_step(&at, load);
        MUST(tune_rewards_log(&sums, log)); /* rewards, margins, accuracy of this step */
        MUST(tune_logger_step(log, &at, record));          /* --log-every: reads the sums */
        MUST(tune_evaluator_step(eval, log, &at));         /* --eval-every */
        MUST(tune_previews_step(previews, log, &at));      /* --preview-every: prompts, answered */
        MUST(tune_checkpoint_step(ckpt, model, opt, &at)); /* --save-every; a new best */
    }
    MUST(tune_checkpoint_finish(ckpt, model, opt, eval, &at)); /* saves, then evaluates */
    MUST(tune_logger_report(log, &at));                        /* report.json, closing lines */

    tune_checkpoint_free(ckpt), tune_logger_free(log), tune_record_free(record);
    tune_previews_free(previews), tune_reference_free(reference), tune_evaluator_free(eval);
    tune_optimizer_free(opt), tune_loss_free(loss), tune_loader_free(load), tune_model_free(model);
    tune_device_close(dev), tune_dataset_free(data), tune_tokenizer_free(tok);
    tune_flags_free(&my.tune);
    return tune_program_exit(&at); /* 0; 1: the loss rose; after a signal 128 + its number */
}
