#include "samples.h"
int samples_stats(void) { return samples_fail(TUNE_ERROR_FAILED, "not there"); }
