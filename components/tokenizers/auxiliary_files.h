/* auxiliary_files.h - the files beside the weights in a Hugging Face folder: the tokenizer's files,
 * the chat template, config.json, generation_config.json.
 *
 * They are read once and kept in memory (a few megabytes). A save hours later then does not need
 * the original folder. */
#ifndef TUNE_AUXILIARY_FILES_H
#define TUNE_AUXILIARY_FILES_H

#include <stdbool.h>

#include "core/tensor.h"

struct tune_auxiliary;

/* tune_auxiliary_read - read a folder's auxiliary files. Links follow the rule of files/folder.h.
 * Only config.json is required. Files must have the right content: JSON that parses, or UTF-8 text;
 * tokenizer.model may hold anything. NULL with an error.
 *
 * A written copy gets the permissions of the file it was read from, limited by the umask. */
struct tune_auxiliary *tune_auxiliary_read(const char *folder);
void tune_auxiliary_free(struct tune_auxiliary *c);

/* tune_auxiliary_bytes - size of a folder's auxiliary files, in bytes; 0 if it cannot be read. */
int64_t tune_auxiliary_bytes(const char *folder);

/* tune_auxiliary_write - write all files to a folder. config.json gets save_dtype as its dtype;
 * TUNE_AS_READ keeps the dtype it was read with. 0, or -1 with an error. */
int tune_auxiliary_write(const struct tune_auxiliary *c, const char *folder,
                          enum tune_dtype save_dtype);

/* tune_auxiliary_write_tokenizer - write only the tokenizer's files, for a folder with an adapter.
 * A config.json there would make transformers expect a whole model. Without it transformers loads
 * base and adapter, as from a folder of PEFT.
 *
 * It gets generation_config.json only if tune_auxiliary_chat changed it.
 *
 * tune_auxiliary_write_config - write only config.json, unchanged. Both: 0, or -1 with an
 * error. */
int tune_auxiliary_write_tokenizer(const struct tune_auxiliary *c, const char *folder);
int tune_auxiliary_write_config(const struct tune_auxiliary *c, const char *folder);

/* tune_auxiliary_add_tokens - from now on write tokenizer files with these special tokens
 * (tune_tokenizer_open_with), and a config.json whose vocabulary has rows for them. -1 with an
 * error, also if there is no tokenizer.json. */
int tune_auxiliary_add_tokens(struct tune_auxiliary *c, const char *tokens);

/* tune_auxiliary_untie - from now on write a config.json that says that embedding and output
 * projection are not tied. For a folder whose config.json ties two matrices that differ
 * (tune_weights_own_head), and for a model whose output projection was trained alone. A file that
 * says so already stays as it is.
 * tune_auxiliary_vocabulary - ... that says that the vocabulary has so many rows. Both: 0, or -1
 * with an error. */
int tune_auxiliary_untie(struct tune_auxiliary *c);
int tune_auxiliary_vocabulary(struct tune_auxiliary *c, int rows);

/* tune_auxiliary_chat - from now on write this chat template, and end_id as a token that ends
 * generation. NULL and -1: leave what was read. generation_config.json keeps its other tokens; a
 * folder without that file gets one. -1 with an error: no memory, or that file holds no object.
 *
 * tune_auxiliary_eos_token - from now on write a tokenizer_config.json with this eos_token, if it
 * names none. Templates that use the token need it there. NULL: leave what was read.
 *
 * tune_auxiliary_take_chat - take chat_template.jinja and generation_config.json from another
 * folder, as far as it has them, and its eos_token. 0, or -1 with an error. */
int tune_auxiliary_chat(struct tune_auxiliary *c, const char *chat_template, int32_t end_id);
int tune_auxiliary_eos_token(struct tune_auxiliary *c, const char *token);
int tune_auxiliary_take_chat(struct tune_auxiliary *c, const char *folder);

/* tune_auxiliary_take_tokenizer - take the tokenizer's files from another folder, if it has a
 * tokenizer.json. 0, or -1 with an error. */
int tune_auxiliary_take_tokenizer(struct tune_auxiliary *c, const char *folder);

/* tune_auxiliary_compare - compare with a folder: config.json without its dtype, and
 * tokenizer.json. config.json is read from the folder config. *differs: the name of the first file
 * that means something else for training; NULL: none. 0, or -1: a file cannot be read. */
int tune_auxiliary_compare(const struct tune_auxiliary *c, const char *folder, const char *config,
                            const char **differs);

#endif
