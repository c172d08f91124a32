#include "samples.h"
int samples_compare(void) { return samples_fail(TUNE_ERROR_FAILED, "not there"); }
