/* tensorboard.h - an event file for TensorBoard: scalars of steps.
 *
 * Records have TFRecord framing: length and data, each with its masked CRC-32C. They hold Event
 * messages of tensorboard/compat/proto/event.proto and summary.proto. Only four fields are needed,
 * so they are written by hand. */
#ifndef TUNE_LOGGERS_TENSORBOARD_H
#define TUNE_LOGGERS_TENSORBOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "runs/metrics.h"

struct tune_tensorboard;

/* tune_tensorboard_open - a new event file in folder. Its name sorts after those of the other event
 * files; *others: there are some. from_step above 0: steps from there on in earlier files are void.
 * NULL with an error. */
struct tune_tensorboard *tune_tensorboard_open(const char *folder, int64_t from_step, bool *others);
int tune_tensorboard_close(struct tune_tensorboard *t);

/* tune_tensorboard_step - write the numbers at time now_s (seconds since 1970) as one event. "loss"
 * gets the tag train/loss, "eval_loss" eval/loss, and so on. Values are float32. */
int tune_tensorboard_step(struct tune_tensorboard *t, double now_s, int64_t step,
                          const struct tune_metric *metrics, int count);

#endif
