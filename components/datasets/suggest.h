/* suggest.h - what to type for columns whose names no format knows. Private to datasets. */
#ifndef TUNE_DATASETS_SUGGEST_H
#define TUNE_DATASETS_SUGGEST_H

#include <stdbool.h>

#include "datasets/columns.h"
#include "files/json.h"

/* tune_columns_suggest - "give `text_field` body, or `format` ...", as a user would type it. If the
 * columns are those of a format but for one, that one is named first. texts: the count columns that
 * hold text. nested: the path to a text in a list of objects, or "". text is cut to size. */
void tune_columns_suggest(char *text, size_t size, const struct tune_columns *have,
                          const char *const *texts, int count, const char *nested);

/* tune_columns_suggest_messages - the same for a list of messages at this path. from_value: their
 * keys are from and value, else role and content. */
void tune_columns_suggest_messages(char *text, size_t size, const char *path, bool from_value);

/* tune_columns_suggest_pairs - "`columns` prompt=a.ask,chosen=a.good,rejected=a.bad" for the row
 * at j, if one of its objects has the two answers of a pair. */
bool tune_columns_suggest_pairs(char *text, size_t size, struct tune_json *j);

#endif
