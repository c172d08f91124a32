/* tasks.h - task files of lm-evaluation-harness: a model weighs choices and answers questions.
 *
 *     struct tune_tasks *tasks = tune_get_tasks(flags, tok, stderr);
 *     tune_get_tasks_models(flags, dev, tok, tasks);
 *     while (tune_tasks_next(tasks, &batch) > 0) {
 *         if (batch.generator)
 *             tune_generate(batch.generator, &batch.prompts, tune_choose_token, NULL);
 *         for (int side = 0; side < batch.sides && !batch.generator; side++)
 *             tune_tasks_weigh(tasks, side);
 *         tune_tasks_judge(tasks);
 *     }
 *     tune_tasks_finish(tasks, stdout);
 *
 * Files are read as they stand where they hold no Python. A key, filter or metric that is not
 * understood is an error with file and line. Data sets are local files (docs/tasks.md). Prompts,
 * tokens, scores and standard errors are those of lm-eval 0.4.13 with a Hugging Face model:
 *
 *     a choice      log p of the tokens by which prompt + delimiter + choice is longer than the
 *                   prompt; white space at the prompt's end belongs to the choice
 *     examples      the first rows, or those that Python's random draws with the seed 1234
 *     a text        log p of its tokens, in windows of what the model reads
 *     answers       greedy, up to the texts of `until` and the model's end token
 *     errors        of means by n - 1; bootstrapped ones by the draws of Python's random
 *
 * The choices of a question share the keys and values of its prompt. A group is a file with a list
 * of tasks. They are looked for, by name and by tag, in the files of its folder.
 *
 * A folder gets a line for each question as soon as it is judged. A run that was stopped is gone on
 * with: questions that have a line are not asked again.
 *
 * Members of the report are TASK_METRIC, or TASK_METRIC_FILTER where the task has filters. Behind
 * the name, _error is the standard error, _low and _high are an interval (metrics/estimates.h). Two
 * models are compared on the same questions: base_, difference_, wins_, losses_, ties_, p_. */
#ifndef TUNE_TASKS_H
#define TUNE_TASKS_H

#include <stdio.h>

#include "generators/prompts.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_device;
struct tune_flags;
struct tune_generator;
struct tune_tasks;
struct tune_tokenizer;

/* Questions of one task. */
struct tune_task_batch {
    struct tune_generator *generator; /* answers prompts on each side; NULL: use tune_tasks_weigh */
    struct tune_prompt_batch prompts;
    int sides;                        /* 2: there is a model to compare with */
};

/* tune_get_tasks - the questions of the task files that the options name. notes: what is read from
 * where, and progress. NULL with an error.
 * tune_get_tasks_models - read the model, frozen, with its adapter, and the one to compare with, if
 * there is one. They belong to tasks. -1 with an error.
 * tune_tasks_free - free it before dev is closed; NULL is fine. */
struct tune_tasks *tune_get_tasks(const struct tune_flags *flags, struct tune_tokenizer *tok,
                                  FILE *notes);
int tune_get_tasks_models(const struct tune_flags *flags, struct tune_device *dev,
                          struct tune_tokenizer *tok, struct tune_tasks *tasks);
void tune_tasks_free(struct tune_tasks *tasks);

/* tune_tasks_next - the next questions: 1; 0: there are no more. The batch is valid until the next
 * call.
 * tune_tasks_weigh - log p of the choices, or of the texts, of the questions at hand. side 1: by
 * the model to compare with.
 * tune_tasks_judge - score the questions at hand, and write their lines. All: -1 with an error. */
int tune_tasks_next(struct tune_tasks *tasks, struct tune_task_batch *batch);
int tune_tasks_weigh(struct tune_tasks *tasks, int side);
int tune_tasks_judge(struct tune_tasks *tasks);

/* tune_tasks_finish - after the last batch: print the table, and write the report if there is a
 * folder. If a signal left questions out, it only says so. */
int tune_tasks_finish(struct tune_tasks *tasks, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
