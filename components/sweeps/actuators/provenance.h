/* provenance.h - the provenance of a measurement: hashes of its model and its data. Rows have these
 * hashes, and a stored result is only reused if they are the same. */
#ifndef TUNE_ACTUATORS_PROVENANCE_H
#define TUNE_ACTUATORS_PROVENANCE_H

#include "files/file.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A cache of hashes, by size and time of change of the files. It starts as all zeros. */
struct tune_hashed {
    struct { char path[TUNE_PATH_MAX], text[33]; struct tune_file_stamp stamp; } entries[16];
    int next;
};

/* tune_weights_hash - the current hash of a model: its weights, config.json and tokenizer.json.
 * tune_data_hash - the current hash of a data file, or of several, listed with commas. -1 with an
 * error: a file is missing. */
int tune_weights_hash(const char *model, char text[33]);
int tune_data_hash(struct tune_hashed *h, const char *paths, char text[33]);

#ifdef __cplusplus
}
#endif
#endif
