/* companions.h - what travels with the weights of a Hugging Face folder: config.json, tokenizer
 * files and their like.
 *
 * They are read once and kept (some megabytes), so that a save hours later needs nothing of the
 * folder they came from. */
#ifndef TUNE_COMPANIONS_H
#define TUNE_COMPANIONS_H

#include <stdbool.h>

#include "core/tensor.h"

struct tune_companions;

/* tune_companions_read - of a folder, by folder.h's rule for links; those it lacks are left out,
 * but there must be a config.json. Each is what its name says: JSON that parses, or UTF-8 text;
 * tokenizer.model may be anything. A copy gets the permissions of the file it was read from, less
 * what the umask takes. */
struct tune_companions *tune_companions_read(const char *folder);
void tune_companions_free(struct tune_companions *c);

/* tune_companions_bytes - what they hold of a folder, in bytes; 0 if it cannot be read. */
int64_t tune_companions_bytes(const char *folder);

/* tune_companions_write - into a folder. config.json as it was; only its dtype is save_dtype where
 * that is none of TUNE_DTYPES (as read). */
int tune_companions_write(const struct tune_companions *c, const char *folder,
                          enum tune_dtype save_dtype);

/* tune_companions_write_tokenizer - those of the tokenizer alone, beside an adapter. Were a
 * config.json there, transformers would take the folder for a whole model and miss its weights;
 * without, it loads base and adapter, as from PEFT's folders.
 * tune_companions_write_config - config.json alone, as it was. */
int tune_companions_write_tokenizer(const struct tune_companions *c, const char *folder);
int tune_companions_write_config(const struct tune_companions *c, const char *folder);

/* tune_companions_compare - *differs: the first that folder has (config.json: the folder config)
 * with another meaning for training (config.json without its dtype, tokenizer.json); NULL: they
 * agree. 0, or -1: one cannot be read. */
int tune_companions_compare(const struct tune_companions *c, const char *folder,
                            const char *config, const char **differs);

#endif
