/* tasks.h - task files of lm-evaluation-harness: a model weighs choices and answers questions.
 *
 *     struct tune_tasks *tasks = tune_get_tasks(flags, tok, stderr);
 *     struct tune_model *model = tune_get_tasks_model(flags, dev, tasks);
 *     struct tune_cache *cache = tune_tasks_cache(tasks, model);
 *     while (tune_tasks_next(tasks, cache, &batch) > 0) {
 *         if (batch.generator)
 *             tune_generate(batch.generator, &batch.prompts, tune_choose_token, NULL);
 *         else
 *             tune_tasks_weigh(tasks, cache);
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
 *     answers       greedy, up to the texts of `until` and the model's end token
 *     errors        of means by n - 1; bootstrapped ones by the draws of Python's random
 *
 * The choices of a question share the keys and values of its prompt. A group is a file with a list
 * of tasks. They are looked for, by name and by tag, in the files of its folder.
 *
 * Members of the report are TASK_METRIC, or TASK_METRIC_FILTER where the task has filters, and with
 * _error behind the name the standard error. */
#ifndef TUNE_TASKS_H
#define TUNE_TASKS_H

#include <stdio.h>

#include "generators/prompts.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_cache;
struct tune_device;
struct tune_flags;
struct tune_generator;
struct tune_model;
struct tune_tasks;
struct tune_tokenizer;

/* Questions of one task. */
struct tune_task_batch {
    struct tune_generator *generator; /* answers prompts; NULL: choices are weighed */
    struct tune_prompt_batch prompts;
};

/* tune_get_tasks - the questions of the task files that the options name. notes: what is read from
 * where. NULL with an error.
 * tune_get_tasks_model - the model, frozen, with its adapter and room for the questions.
 * tune_tasks_cache - a cache for them on it. All: NULL with an error.
 * tune_tasks_free - free the questions; NULL is fine. */
struct tune_tasks *tune_get_tasks(const struct tune_flags *flags, struct tune_tokenizer *tok,
                                  FILE *notes);
struct tune_model *tune_get_tasks_model(const struct tune_flags *flags, struct tune_device *dev,
                                        const struct tune_tasks *tasks);
struct tune_cache *tune_tasks_cache(const struct tune_tasks *tasks, struct tune_model *m);
void tune_tasks_free(struct tune_tasks *tasks);

/* tune_tasks_next - the next questions: 1; 0: there are no more. The batch is valid until the next
 * call.
 * tune_tasks_weigh - log p of the choices of each question at hand.
 * tune_tasks_judge - score the questions at hand, and write their lines. All: -1 with an error. */
int tune_tasks_next(struct tune_tasks *tasks, struct tune_cache *cache,
                    struct tune_task_batch *batch);
int tune_tasks_weigh(struct tune_tasks *tasks, struct tune_cache *cache);
int tune_tasks_judge(struct tune_tasks *tasks);

/* tune_tasks_finish - after the last batch: print the table, and write the report if there is a
 * folder. If a signal left questions out, it only says so. */
int tune_tasks_finish(struct tune_tasks *tasks, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
