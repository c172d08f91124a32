/* finetune_full.c - full fine-tuning of a language model on rows of text: every weight is trained.
 *
 *     build/finetune_full --model models/SmolLM2-135M --dataset my.jsonl --output runs/first
 *
 * The file is the recipe: copy it (cp recipes/finetune_full.c recipes/mine.c), change any line, make build/mine. Getters
 * set things up by the flags; the loop below is all there is to training. To add a flag, add a field to `my` and a row to
 * my_options; to report a number, add a row to my_properties and set it with tune_logger_property. */
#include "flags/program.h"
#include "tune.h"

static struct { struct tune_flags tune; } my;

static const struct tune_option my_options[] = {
    TUNE_TRAINING_OPTIONS(my.tune), /* shared groups; a later row of the same name changes its default */
    {0},
};

static const struct tune_property my_properties[] = {
    TUNE_TRAINING_PROPERTIES,
    {0},
};

int main(int argc, char **argv)
{
    const struct tune_flags *flags = &my.tune; /* table < defaults/finetune_full/<model>.json < --config < flag */
    tune_program_start(argc, argv, &my.tune, my_options, my_properties, "Fine-tune all weights of a language model.");
    tune_program_catch_signals(&my.tune); /* finish the step, save, exit 129, 130 or 143 */

    struct tune_tokenizer *tok = GET(tune_get_tokenizer(flags));
    struct tune_dataset *data = GET(tune_get_dataset(flags, tok)); /* rows, tokenised as they are read */
    if (flags->show_tokens > 0) {
        MUST(tune_dataset_show(data, tok, flags->show_tokens, stdout));
        tune_dataset_free(data);
        tune_tokenizer_free(tok);
        tune_flags_free(&my.tune);
        return 0;
    }
    struct tune_device *dev = GET(tune_get_device(flags));
    struct tune_memory_plan memory;
    MUST(tune_get_memory_plan(&memory, flags, dev, data)); /* refuses what cannot fit, before anything large is taken */
    struct tune_model *model = GET(tune_get_model(flags, dev, tok));
    struct tune_loader *load = GET(tune_get_loader(flags, data));
    struct tune_loss *loss = GET(tune_get_loss(flags, model));
    struct tune_optimizer *opt = GET(tune_get_optimizer(flags, model));
    struct tune_schedule schedule = tune_get_schedule(flags);
    struct tune_evaluator *eval = GET(tune_get_eval(flags, model, loss, data, tok));
    struct tune_record *record = GET(tune_record_new(dev, flags->log_every)); /* the steps' scalars, on the device */
    struct tune_profiler *prof = GET(tune_get_profiler(flags, dev, model, load));
    struct tune_logger *log = GET(tune_get_logger(flags));              /* makes the run folder */
    tune_program_on_failure(tune_logger_failed, log);                   /* run.json says why a run ended */
    struct tune_checkpoint *ckpt = GET(tune_get_checkpoint(flags, log));
    MUST(tune_logger_run(log, flags, model, data, load)); /* what runs, on what: screen and run.json */
    MUST(tune_logger_memory(log, &memory));
    MUST(tune_evaluator_note(eval, log));

    struct tune_progress at = {0};
    int micros;
    MUST(tune_checkpoint_resume(ckpt, model, opt, load, &at)); /* --resume: goes on from there; else nothing */
    struct tune_rescue rescue = {ckpt, log, model, opt, load, record, &at};
    tune_program_rescue(tune_checkpoint_rescue, &rescue); /* from here on an error saves first */
    MUST(tune_evaluator_resume(eval, log, &at));               /* an evaluation that a signal cut off there */
    if (at.best)
        MUST(tune_checkpoint_save(ckpt, model, opt, &at));
    while ((micros = MUST(tune_loader_more(load, &at))) > 0) { /* one optimizer step */
        MUST(tune_model_zero_grad(model, record));
        while (micros-- > 0) { /* of --accumulate micro-batches */
            struct tune_batch batch;                                                 /* borrowed until the next one */
            struct tune_tensor *hidden, *dhidden;                                    /* [B*T,C] */
            MUST(tune_loader_next(load, &batch));
            MUST(tune_model_forward(model, &batch, &hidden));
            MUST(tune_loss_forward_backward(loss, hidden, &batch, record, &dhidden)); /* a sum; divided once, below */
            MUST(tune_model_backward(model, &batch, dhidden));                      /* gradients += */
        }
        MUST(tune_optimizer_clip(opt, flags->clip_norm, record));
        MUST(tune_optimizer_step(opt, tune_schedule_lr(&schedule, &at), record));
        tune_progress_step(&at, load);

        if (tune_every(at.step, flags->log_every) || tune_every(at.step, flags->eval_every) || tune_every(at.step, flags->save_every))
            MUST(tune_logger_step(log, &at, record)); /* the only wait for the device; a step's numbers before its checkpoint */
        if (tune_every(at.step, flags->eval_every))
            MUST(tune_evaluator_run(eval, log, &at)); /* sets at.best, at.early_stop */
        if (at.best || tune_every(at.step, flags->save_every))
            MUST(tune_checkpoint_save(ckpt, model, opt, &at));
        MUST(tune_logger_profile(log, prof, &at)); /* --profile: where the time of some steps went */
    }
    MUST(tune_logger_profile(log, prof, NULL));        /* if they were not that many */
    MUST(tune_logger_step(log, &at, record));            /* steps not logged yet; a diverged one ends the run here */
    MUST(tune_checkpoint_save(ckpt, model, opt, &at)); /* before rows are read that may be others by now */
    MUST(tune_evaluator_run(eval, log, &at));          /* not twice at one step, not after a signal */
    MUST(tune_checkpoint_save(ckpt, model, opt, &at)); /* the same one: its loss, and whether it is the best */
    MUST(tune_logger_counts(log, data));               /* rows cut, rows left out */
    MUST(tune_logger_report(log, &at));

    tune_checkpoint_free(ckpt);
    tune_logger_free(log);
    tune_profiler_free(prof);
    tune_record_free(record);
    tune_evaluator_free(eval);
    tune_optimizer_free(opt);
    tune_loss_free(loss);
    tune_loader_free(load);
    tune_model_free(model);
    tune_device_close(dev);
    tune_dataset_free(data);
    tune_tokenizer_free(tok);
    tune_flags_free(&my.tune);
    return tune_program_exit(&at); /* 0; 1: diverged; 129, 130 or 143 after a signal */
}
