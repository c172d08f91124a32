/* evaluate.c - how good a model's answers are: metrics with intervals, alone or beside another model.
 *
 *     build/evaluate --model runs/a/checkpoint-final --dataset test.jsonl
 *     build/evaluate --model models/SmolLM2-135M --adapter runs/lora/checkpoint-final \
 *         --compare-base --dataset test.jsonl --metrics exact_match,rouge_l --output runs/judged
 *
 *     build/evaluate --model models/SmolLM2-135M --tasks arc_easy.yaml,gsm8k.yaml --tasks-data data
 *
 * The model reads each row's prompt and answers it. Metrics compare the answer with the row's own;
 * losses are of the row's own. Pairs of answers and plain texts only have losses. To measure
 * something else, give --metric-program, or copy this file and change the loop. finetune_full.c
 * says how to copy and change a recipe. */
#include "flags/program.h"
#include "tune.h"

static struct { struct tune_flags tune; } my;

static const struct tune_option my_options[] = {
    TUNE_SCORECARD_OPTIONS(my.tune),
    {0},
};

static const struct tune_property my_properties[] = {
    TUNE_SCORECARD_PROPERTIES,
    {0},
};

/* Task files of lm-evaluation-harness: choices are weighed, questions answered. */
static void judge_tasks(const struct tune_flags *flags, struct tune_tokenizer *tok)
{
    struct tune_tasks *tasks = GET(tune_get_tasks(flags, tok, stderr)); /* questions as tokens */
    struct tune_device *dev = GET(tune_get_device(flags));
    struct tune_task_batch batch;
    MUST(tune_get_tasks_models(flags, dev, tok, tasks)); /* one, or two to compare */
    while (!*flags->stop_signal && MUST(tune_tasks_next(tasks, &batch)) > 0) {
        if (batch.generator) /* decodes, on each side */
            MUST(tune_generate(batch.generator, &batch.prompts, tune_choose_token, NULL));
        for (int side = 0; side < batch.sides && !batch.generator; side++)
            MUST(tune_tasks_weigh(tasks, side)); /* log p of each choice */
        MUST(tune_tasks_judge(tasks));           /* a line of rows.jsonl for each question */
    }
    MUST(tune_tasks_finish(tasks, stdout)); /* table, report.json */
    tune_tasks_free(tasks), tune_device_close(dev);
}

int main(int argc, char **argv)
{
    const struct tune_flags *flags = &my.tune;
    tune_program_start(argc, argv, &my.tune, my_options, my_properties,
                       "Judge a model by its answers to the rows of a file.");
    tune_program_catch_signals(&my.tune); /* SIGINT, SIGTERM, SIGHUP: rows so far are kept */

    struct tune_tokenizer *tok = GET(tune_get_prompts_tokenizer(flags));
    struct tune_progress at = {0};
    if (flags->scorecard.tasks) {
        judge_tasks(flags, tok);
        at.signal = *flags->stop_signal;
        tune_tokenizer_free(tok), tune_flags_free(&my.tune);
        return tune_program_exit(&at);
    }
    struct tune_prompts *prompts = GET(tune_get_prompts(flags, tok, stderr)); /* as tokens */
    struct tune_scorecard *card = GET(tune_get_scorecard(flags, tok, prompts, stderr));
    struct tune_device *dev = GET(tune_get_device(flags));
    struct tune_model *model = GET(tune_get_generation_model(flags, dev, prompts));
    struct tune_generator *generator = /* decodes, writes rows.jsonl, skips rows that are there */
        GET(tune_get_generator(flags, dev, tok, prompts, model, NULL, stderr));
    struct tune_model *other = generator->compared; /* NULL: none, or the base without adapter */
    struct tune_loss *loss = GET(tune_loss_new(model, false));
    struct tune_loss *other_loss = other ? GET(tune_loss_new(other, false)) : NULL;

    struct tune_prompt_batch batch;
    while (!*flags->stop_signal && MUST(tune_prompts_next(prompts, &batch)) > 0) { /* 0: the end */
        struct tune_batch texts; /* the same rows, each with its own answer, which is labelled */
        MUST(tune_scorecard_texts(card, &batch, &texts));
        for (int side = 0; side < generator->sides; side++) { /* 1: the model to compare with */
            struct tune_tensor *hidden;
            if (side == 1 && !other)
                MUST(tune_model_infer_base(model, &texts, &hidden));
            else
                MUST(tune_model_infer(side ? other : model, &texts, &hidden));
            const float *log_probs = /* [B,T] of each label */
                GET(tune_loss_log_probs_host(side && other ? other_loss : loss, hidden, &texts));
            tune_scorecard_log_probs(card, side, log_probs);
        }
        /* Both models answer, if rows ask. Then each row's metrics are computed, its line written. */
        MUST(tune_generate(generator, &batch, tune_choose_token, NULL));
    }
    MUST(tune_answers_finish(generator->answers));                     /* speed */
    MUST(tune_scorecard_finish(card, generator->answers, stdout));     /* table, report.json */
    at.signal = *flags->stop_signal;
    if (*dev->met)
        fprintf(stderr, "# warning: device: %s\n", dev->met);

    tune_loss_free(loss), tune_loss_free(other_loss), tune_generator_free(generator);
    tune_model_free(model), tune_device_close(dev), tune_scorecard_free(card);
    tune_prompts_free(prompts), tune_tokenizer_free(tok), tune_flags_free(&my.tune);
    return tune_program_exit(&at); /* 0; after a signal 128 + its number */
}
