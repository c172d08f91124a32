/* get_answering.h - which rows a model answers while it trains. Private to this folder. */
#ifndef TUNE_GET_ANSWERING_H
#define TUNE_GET_ANSWERING_H

#include "datasets/dataset.h"
#include "evaluators/answering.h"

/* Rows that the loss is of. */
struct tune_evaluated {
    enum tune_rows_of which;
    struct tune_dataset *data; /* their set; several files are joined */
    char (*names)[TUNE_ANSWERING_NAME]; /* [files] by which each file's numbers are logged */
    const char *name;          /* the same of all together; "": no name */
    int64_t *rows;             /* [count], by file; their numbers in the set */
    int64_t count, room;
};

/* tune_get_answering - what the options say of answers. train: the rows that are trained on. NULL
 * with kind USAGE: an unknown metric, or one that is not of answers; own rows without answers. */
struct tune_answering *tune_get_answering(const struct tune_flags *flags, struct tune_model *m,
                                          struct tune_dataset *train, struct tune_tokenizer *tok,
                                          const struct tune_evaluated *of);

#endif
