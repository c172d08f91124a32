/* tune.h - all headers that a recipe needs, in the order in which it uses them. */
#ifndef TUNE_H
#define TUNE_H

#include "core/batch.h"
#include "core/error.h"
#include "core/progress.h"
#include "flags/flags.h"
#include "tokenizers/tokenizer.h"
#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "datasets/survey.h"
#include "devices/device.h"
#include "devices/record.h"
#include "models/model.h"
#include "adapters/adapter.h"
#include "losses/loss.h"
#include "losses/preference.h"
#include "optimizers/optimizer.h"
#include "optimizers/schedule.h"
#include "generators/text_stream.h"
#include "generators/token_sampler.h"
#include "profilers/memory_plan.h"
#include "profilers/profiler.h"
#include "loggers/logger.h"
#include "checkpoints/checkpoint.h"
#include "evaluators/evaluator.h"
#include "evaluators/reference.h"
#include "evaluators/rewards.h"

#endif
