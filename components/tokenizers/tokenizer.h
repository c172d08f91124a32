/* tokenizer.h - text to token ids and back, exactly like Hugging Face's tokenizers library.
 *
 * It reads tokenizer.json with a BPE model and one of these pipelines: GPT-2, SmolLM2 and
 * granite-code, Llama 3, Qwen 2/2.5/3, Llama 2 and TinyLlama. Any other normalizer, pre-tokenizer,
 * pattern, post-processor or decoder is an error that names it.
 *
 *     struct tune_tokenizer *t = tune_tokenizer_open("models/SmolLM2-135M");
 *     struct tune_encoding e = {0};
 *     tune_tokenizer_encode(t, text, size, TUNE_ADD_SPECIAL, &e);
 *     ... e.ids[0 .. e.count-1] ...
 *     tune_encoding_free(&e);
 *     tune_tokenizer_free(t); */
#ifndef TUNE_TOKENIZER_H
#define TUNE_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tune_tokenizer;
struct tune_flags;

/* The result of encoding. Start with a zeroed one; each call reuses its buffers. */
struct tune_encoding {
    int32_t *ids;
    /* [count] byte offset in the text where the token begins; template tokens: -1 */
    int64_t *starts;
    int64_t *ends;     /* [count] byte offset of its end; template tokens: -1 */
    int64_t count, room;
};
void tune_encoding_free(struct tune_encoding *e);

enum { TUNE_ADD_SPECIAL = 1,   /* add the tokens of the post-processor's template, such as BOS */
       TUNE_SPECIAL_AS_TEXT = 2 /* treat spellings of special tokens as plain text */
};

/* tune_tokenizer_open - read <path>, or <path>/tokenizer.json if path is a folder. NULL with an
 * error. Limits: 128 MiB, 4 million ids, 4 million merges, 1 million added tokens of at most 1 KiB
 * each and 4 MiB together.
 *
 * Any number of threads may use a tokenizer. It is read-only, except for a lock-free cache of
 * words. */
struct tune_tokenizer *tune_tokenizer_open(const char *path);
void tune_tokenizer_free(struct tune_tokenizer *t);

/* tune_tokenizer_warning - a warning about the file, or NULL. The file gives an added token another
 * id than it has; Hugging Face's library warns of this too. */
const char *tune_tokenizer_warning(const struct tune_tokenizer *t);

/* tune_tokenizer_encode - encode size bytes of text into *e, which is emptied first. The text is
 * valid UTF-8, at most 512 MiB, and may hold NUL. options: TUNE_ADD_SPECIAL, TUNE_SPECIAL_AS_TEXT.
 *
 * Starts and ends are offsets in the caller's text. A byte-level token may begin inside a
 * character. Text that a normalizer changed has the offsets of its original characters. An added
 * token includes the white space it took.
 *
 * 0, or -1 with an error: invalid UTF-8 (with its offset), too long, no memory. */
int tune_tokenizer_encode(struct tune_tokenizer *t, const char *text, size_t size, int options,
                          struct tune_encoding *e);

/* tune_tokenizer_encode_text - tune_tokenizer_encode with a mask of data bytes. data [size]: not 0
 * marks a byte of data, in which special tokens are plain text. A special token is found only if
 * none of its bytes is marked. data NULL: no byte is marked. Words and merges may cross the border
 * of a marked range. */
int tune_tokenizer_encode_text(struct tune_tokenizer *t, const char *text, size_t size,
                               const uint8_t *data, int options, struct tune_encoding *e);

/* tune_tokenizer_decode - decode ids to text. *text becomes an allocated string of *size bytes and
 * a NUL, which the caller frees. skip_special leaves out special tokens.
 *
 * Returns 0, or -1 with an error. An id outside the vocabulary is an error here; Hugging Face
 * leaves it out silently. Other errors: no memory, or a text of more than 512 MiB or 64 times its
 * spelling. */
int tune_tokenizer_decode(struct tune_tokenizer *t, const int32_t *ids, int64_t count,
                          bool skip_special, char **text, size_t *size);

/* tune_tokenizer_size - number of ids with added tokens (largest id + 1).
 * tune_tokenizer_id - id of a token by its exact spelling in the file; -1: none.
 * tune_tokenizer_token - spelling of an id, valid until free; NULL: none.
 * tune_tokenizer_pipeline - "gpt2", "smollm", "llama3", "qwen2" or "llama2". */
int32_t tune_tokenizer_size(const struct tune_tokenizer *t);
int32_t tune_tokenizer_id(const struct tune_tokenizer *t, const char *token);
const char *tune_tokenizer_token(const struct tune_tokenizer *t, int32_t id);
const char *tune_tokenizer_pipeline(const struct tune_tokenizer *t);

/* tune_tokenizer_train - train a tokenizer.json of exactly `vocabulary` entries in the smollm
 * pipeline (byte-level BPE, single digits), and write it to path. The special tokens come first
 * (ids 0..), then the 256 bytes, then merges learned from size bytes of text. If the text has too
 * few pairs that occur twice, systematic valid merges fill the rest. The same input gives the same
 * file.
 *
 * 0, or -1 with an error: vocabulary below specials + 256, a special token twice or one that spells
 * a byte, cannot write. */
int tune_tokenizer_train(const char *path, const char *text, size_t size, int32_t vocabulary,
                         const char *const *special, int specials);

/* tune_get_tokenizer - open the tokenizer of --model: a folder with a tokenizer.json, or that file
 * itself. The caller compares its ids with the model (tune_tokenizer_size). */
struct tune_tokenizer *tune_get_tokenizer(const struct tune_flags *flags);

#ifdef __cplusplus
}
#endif
#endif
