/* companions.h - the files beside the weights in a Hugging Face folder: config.json, tokenizer
 * files etc.
 *
 * They are read once and kept in memory (a few megabytes). A save hours later then does not need
 * the original folder. */
#ifndef TUNE_COMPANIONS_H
#define TUNE_COMPANIONS_H

#include <stdbool.h>

#include "core/tensor.h"

struct tune_companions;

/* tune_companions_read - read a folder's companion files. Links follow the rule of files/folder.h.
 * Only config.json is required. Files must have the right content: JSON that parses, or UTF-8 text;
 * tokenizer.model may hold anything. NULL with an error.
 *
 * A written copy gets the permissions of the file it was read from, limited by the umask. */
struct tune_companions *tune_companions_read(const char *folder);
void tune_companions_free(struct tune_companions *c);

/* tune_companions_bytes - size of a folder's companion files, in bytes; 0 if it cannot be read. */
int64_t tune_companions_bytes(const char *folder);

/* tune_companions_write - write all files to a folder. config.json gets save_dtype as its dtype;
 * TUNE_DTYPES keeps the dtype it was read with. 0, or -1 with an error. */
int tune_companions_write(const struct tune_companions *c, const char *folder,
                          enum tune_dtype save_dtype);

/* tune_companions_write_tokenizer - write only the tokenizer's files, for a folder with an adapter.
 * A config.json there would make transformers expect a whole model. Without it transformers loads
 * base and adapter, as from a folder of PEFT.
 *
 * It gets generation_config.json only if tune_companions_chat changed it.
 *
 * tune_companions_write_config - write only config.json, unchanged. Both: 0, or -1 with an
 * error. */
int tune_companions_write_tokenizer(const struct tune_companions *c, const char *folder);
int tune_companions_write_config(const struct tune_companions *c, const char *folder);

/* tune_companions_add_tokens - from now on write tokenizer files with these special tokens
 * (tune_tokenizer_open_with), and a config.json whose vocabulary has rows for them. -1 with an
 * error, also if there is no tokenizer.json. */
int tune_companions_add_tokens(struct tune_companions *c, const char *tokens);

/* tune_companions_untie - from now on write a config.json that says that embedding and output
 * projection are not tied.
 * tune_companions_vocabulary - ... that says that the vocabulary has so many rows. Both: 0, or -1
 * with an error. */
int tune_companions_untie(struct tune_companions *c);
int tune_companions_vocabulary(struct tune_companions *c, int rows);

/* tune_companions_chat - from now on write this chat template, and end_id as a token that ends
 * generation. NULL and -1: leave what was read. generation_config.json keeps its other tokens; a
 * folder without that file gets one. -1 with an error: no memory, or that file holds no object.
 *
 * tune_companions_eos_token - from now on write a tokenizer_config.json with this eos_token, if it
 * names none. Templates that use the token need it there. NULL: leave what was read.
 *
 * tune_companions_take_chat - take chat_template.jinja and generation_config.json from another
 * folder, as far as it has them, and its eos_token. 0, or -1 with an error. */
int tune_companions_chat(struct tune_companions *c, const char *chat_template, int32_t end_id);
int tune_companions_eos_token(struct tune_companions *c, const char *token);
int tune_companions_take_chat(struct tune_companions *c, const char *folder);

/* tune_companions_take_tokenizer - take the tokenizer's files from another folder, if it has a
 * tokenizer.json. 0, or -1 with an error. */
int tune_companions_take_tokenizer(struct tune_companions *c, const char *folder);

/* tune_companions_compare - compare with a folder: config.json without its dtype, and
 * tokenizer.json. config.json is read from the folder config. *differs: the name of the first file
 * that means something else for training; NULL: none. 0, or -1: a file cannot be read. */
int tune_companions_compare(const struct tune_companions *c, const char *folder, const char *config,
                            const char **differs);

#endif
