/* distillation.c - finetune_full.c that learns from a second model: T^2 KL(teacher || student).
 *
 *     build/distillation --model small --teacher large --dataset my.jsonl --temperature 2
 *
 * --top-k 64: the teacher's 64 likeliest tokens by themselves, the rest as one (TRL's default). */
#include "flags/program.h"
#include "tune.h"

static struct { struct tune_flags tune; const char *teacher; double temperature; int top_k; } my;

static const struct tune_option my_options[] = {
    TUNE_TRAINING_OPTIONS(my.tune), /* another default: {"lr", .value = "1e-4"} in a row below */
    {"teacher", TUNE_STRING, &my.teacher, NULL, "", "", "model of the same vocabulary"},
    {"temperature", TUNE_DOUBLE, &my.temperature, "1", "(0,inf)", "", "of both models"},
    {"top-k", TUNE_INT, &my.top_k, "0", "[0,inf)", "tokens", "0: the whole vocabulary"},
    {0},
};

static const struct tune_property my_properties[] = {
    TUNE_TRAINING_PROPERTIES,
    {0},
};

/* The loss of one label; its logits x become their gradient. */
static double distil(const struct tune_row *r)
{
    return tune_row_kl(r->x, r->other, r->V, my.temperature, my.top_k);
}

int main(int argc, char **argv)
{
    const struct tune_flags *flags = &my.tune; /* default < model's defaults < --config < flag */
    tune_program_start(argc, argv, &my.tune, my_options, my_properties,
                       "Distil a second model into this one.");
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
    struct tune_model *teacher = GET(tune_get_second_model(flags, my.teacher, dev, tok));
    struct tune_loss *loss2 = GET(tune_loss_new(teacher, false));
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

    struct tune_progress at = {0}; /* where the run stands: steps, rows, tokens, evaluations */
    int batches;
    /* --resume: all of these go on from a checkpoint. With and without it, a call that fails from
     * here on saves the last finished step before the program ends. */
    MUST(tune_checkpoint_resume(ckpt, model, opt, load, eval, &at));

    while ((batches = MUST(tune_loader_more(load, &at))) > 0) { /* one step; 0: the end */
        MUST(tune_model_zero_grad(model, record)); /* gradients and the step's sums become 0 */
        while (batches-- > 0) {                   /* micro-batches, at most --accumulate */
            struct tune_batch batch;              /* host memory, until tune_loader_next */
            struct tune_tensor *hidden, *hidden2; /* device memory, [B*T,C]; the teacher's */
            struct tune_chunk chunk, chunk2;      /* some labels and their logits; the teacher's */
            MUST(tune_loader_next(load, &batch));
            MUST(tune_model_infer(teacher, &batch, &hidden2));
            MUST(tune_model_forward(model, &batch, &hidden));
            /* Logits exist only in here: the loss projects some labelled positions of hidden on the
             * vocabulary at a time, so [B*T,vocabulary] never exists. */
            while (MUST(tune_loss_chunk(loss, hidden, &batch, record, &chunk)) > 0) {
                MUST(tune_loss_project(loss2, hidden2, &chunk, &chunk2));
                MUST(tune_chunk_each(&chunk, &chunk2, distil, NULL));
                MUST(tune_chunk_done(&chunk)); /* back through the projection */
            }
            MUST(tune_model_backward(model, &batch, tune_loss_dhidden(loss))); /* adds */
        }
        MUST(tune_model_reduce(model, record)); /* sums of all ranks; one rank has them already */
        /* The division is here, once a step. The loss is a sum over labels; gradients are divided
         * by the number of labels in all micro-batches, then clipped to the norm. */
        MUST(tune_optimizer_scale(opt, flags->clip_norm, record));
        MUST(tune_optimizer_step(opt, tune_schedule_lr(&schedule, &at), record));
        tune_progress_step(&at, load);
        /* Only these calls wait for the device, and only at the steps where they are due. */
        MUST(tune_logger_step(log, &at, record));          /* --log-every: reads the sums */
        MUST(tune_evaluator_step(eval, log, &at));         /* --eval-every */
        MUST(tune_previews_step(previews, log, &at));      /* --preview-every: prompts, answered */
        MUST(tune_checkpoint_step(ckpt, model, opt, &at)); /* --save-every; a new best */
    }
    MUST(tune_checkpoint_finish(ckpt, model, opt, eval, &at)); /* saves, then evaluates */
    MUST(tune_logger_report(log, &at));                        /* report.json, closing lines */

    tune_checkpoint_free(ckpt), tune_logger_free(log), tune_record_free(record);
    tune_previews_free(previews), tune_evaluator_free(eval), tune_optimizer_free(opt);
    tune_loss_free(loss), tune_loss_free(loss2), tune_model_free(teacher);
    tune_loader_free(load), tune_model_free(model), tune_device_close(dev);
    tune_dataset_free(data), tune_tokenizer_free(tok), tune_flags_free(&my.tune);
    return tune_program_exit(&at); /* 0; 1: the loss rose; after a signal 128 + its number */
}
