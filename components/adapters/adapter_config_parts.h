/* adapter_config_parts.h - shared by the files that read and write adapter_config.json. Private. */
#ifndef TUNE_ADAPTER_CONFIG_PARTS_H
#define TUNE_ADAPTER_CONFIG_PARTS_H

#include "adapters/adapter_config.h"

/* tune_adapter_pieces - split text at commas, in place. The array ends in NULL and the caller frees
 * it. NULL with an error: no memory. */
char **tune_adapter_pieces(char *text, bool sorted);

#endif
