#include "samples.h"
int samples_entity(void) { return samples_fail(TUNE_ERROR_FAILED, "not there"); }
