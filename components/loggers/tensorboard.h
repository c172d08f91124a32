/* tensorboard.h - an event file that TensorBoard reads: scalars of steps.
 *
 * Records in TFRecord framing (length and data, each with its masked CRC-32C) that hold Event
 * messages of tensorboard/compat/proto/event.proto and summary.proto, of which four fields are
 * needed; so they are put together here by hand. */
#ifndef TUNE_LOGGERS_TENSORBOARD_H
#define TUNE_LOGGERS_TENSORBOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "runs/metrics.h"

struct tune_tensorboard;

/* tune_tensorboard_open - a new event file in folder, whose name sorts behind those that are there (*others: there were
 * some). from_step above 0: steps from that one on in the earlier files do not hold. NULL with an error. */
struct tune_tensorboard *tune_tensorboard_open(const char *folder, int64_t from_step, bool *others);
int tune_tensorboard_close(struct tune_tensorboard *t);

/* tune_tensorboard_step - the numbers at wall time now_s (seconds since 1970), as one event: "loss" under the tag train/loss,
 * "eval_loss" under eval/loss, and so on; values are float32 there. */
int tune_tensorboard_step(struct tune_tensorboard *t, double now_s, int64_t step, const struct tune_metric *metrics, int count);

#endif
