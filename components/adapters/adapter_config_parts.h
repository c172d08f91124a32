/* adapter_config_parts.h - what reading and writing of adapter_config.json share. Inside this
 * folder only. */
#ifndef TUNE_ADAPTER_CONFIG_PARTS_H
#define TUNE_ADAPTER_CONFIG_PARTS_H

#include "adapters/adapter_config.h"

/* tune_adapter_pieces - of a text between commas, in place, NULL behind the last; the caller frees
 * the array. NULL: no memory. */
char **tune_adapter_pieces(char *text, bool sorted);

#endif
