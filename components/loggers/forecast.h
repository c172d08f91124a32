/* forecast.h - what a run will meet and take, told before its first step. Private to loggers. */
#ifndef TUNE_LOGGERS_FORECAST_H
#define TUNE_LOGGERS_FORECAST_H

#include "datasets/survey.h"

struct tune_dataset_options;
struct tune_loader;
struct tune_loader_options;
struct tune_logger;
struct tune_memory_plan;
struct tune_model;

/* tune_forecast_rows - log the survey as a line, and a warning for each surprise in over 5 % of the
 * rows. context: the most tokens that the model takes. -1 with an error.
 * tune_forecast_time - log how long the run will take, from the speed of one matrix product.
 * passes: forward passes over each token besides training. -1 with an error. */
int tune_forecast_rows(struct tune_logger *log, const struct tune_dataset_options *o,
                       const struct tune_survey *s, int context);
int tune_forecast_time(struct tune_logger *log, const struct tune_loader_options *o,
                       struct tune_model *model, const struct tune_loader *load,
                       const struct tune_survey *s, const struct tune_memory_plan *plan,
                       double passes);

#endif
