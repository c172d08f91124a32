#include "samples.h"
int samples_best(void) { return samples_fail(TUNE_ERROR_FAILED, "not there"); }
