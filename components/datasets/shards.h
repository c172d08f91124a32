/* shards.h - the files that a data set's path means.
 *
 * A path is a file, or a folder as a Hub's data sets have them. A folder's files form splits:
 *
 *     data/train-00000-of-00002.parquet  data/train-00001-of-00002.parquet    train: two files
 *     data/test-00000-of-00001.parquet                                        test: one
 *
 * A folder with one split means that one, a folder with several the one that is called train.
 * FOLDER/test means the split test of FOLDER. A split's files are all Parquet, or one file of any
 * other kind. For datasets and task files. */
#ifndef TUNE_DATASETS_SHARDS_H
#define TUNE_DATASETS_SHARDS_H

#include <stdint.h>

#include "files/file.h"

struct tune_shards {
    char **paths; /* [count], in the order of their names */
    int count;
};

/* tune_shards_find - the files of a path. -1 with an error: the folder has no files of rows, or
 * several splits, which it lists. A single file is not looked at.
 * tune_shards_free - free the list.
 * tune_shards_stamp - the sum of their sizes, and the latest change.
 * tune_shards_fingerprint - a hash of all contents; that of the file, if it is one. */
int tune_shards_find(struct tune_shards *s, const char *path);
void tune_shards_free(struct tune_shards *s);
int tune_shards_stamp(const struct tune_shards *s, struct tune_file_stamp *stamp);
int tune_shards_fingerprint(const struct tune_shards *s, uint64_t *hash);

#endif
