/* look.h - what the survey needs of a data set. Private to datasets. */
#ifndef TUNE_DATASETS_LOOK_H
#define TUNE_DATASETS_LOOK_H

#include "datasets/dataset.h"
#include "files/json.h"

/* tune_dataset_raw - the bytes of the file that a row is made of; none for callbacks.
 * tune_dataset_restore - set what tune_dataset_counts returns. */
struct tune_text tune_dataset_raw(const struct tune_dataset *d, int64_t row);
void tune_dataset_restore(struct tune_dataset *d, struct tune_dataset_counts counts);

#endif
