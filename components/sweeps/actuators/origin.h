/* origin.h - what a measurement is made with: hashes of a model and of data. Rows have them, and a
 * stored result counts only if they are the same. */
#ifndef TUNE_ACTUATORS_ORIGIN_H
#define TUNE_ACTUATORS_ORIGIN_H

#include "files/file.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The last files that were hashed, by size and time of change. Begin with zeros. */
struct tune_hashed {
    struct { char path[TUNE_PATH_MAX], text[33]; struct tune_file_stamp stamp; } kept[16];
    int next;
};

/* tune_weights_hash - the current hash of a model: its weights, config.json and tokenizer.json.
 * tune_data_hash - the current hash of a data file, or of several, listed with commas. -1 with an
 * error: one is not there. */
int tune_weights_hash(const char *model, char text[33]);
int tune_data_hash(struct tune_hashed *h, const char *paths, char text[33]);

#ifdef __cplusplus
}
#endif
#endif
