/* tokenizer.h - text to token ids and back, exactly as Hugging Face's tokenizers library does it.
 *
 * Reads tokenizer.json with a BPE model and one of the known pipelines (GPT-2, SmolLM2 and
 * granite-code, Llama 3, Qwen 2/2.5/3, Llama 2 and TinyLlama); any other normalizer,
 * pre-tokenizer, pattern, post-processor or decoder is refused by name, never guessed.
 * Stands on core alone. Example:
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

/* The result of encoding; reused from call to call, memory grows as needed. */
struct tune_encoding {
    int32_t *ids;
    int64_t *starts;   /* byte offset in the text at which the token's text begins; template tokens: -1 */
    int64_t *ends;     /* and where it ends; template tokens: -1 */
    int64_t count, room;
};
void tune_encoding_free(struct tune_encoding *e);

enum { TUNE_ADD_SPECIAL = 1,   /* what the post-processor's template adds: BOS and the like */
       TUNE_SPECIAL_AS_TEXT = 2 /* special tokens' spellings in the text are plain text (encode_special_tokens) */
};

/* tune_tokenizer_open - read <path>, or <path>/tokenizer.json where path is a folder (at most 128 MiB, 4 million ids,
 * 4 million merges, 1 million added tokens of at most 1 KiB each and 4 MiB together). NULL with an error.
 * A tokenizer is read-only after opening, apart from a table of words whose entries are written once, without locks:
 * any number of threads may use it. */
struct tune_tokenizer *tune_tokenizer_open(const char *path);
void tune_tokenizer_free(struct tune_tokenizer *t);

/* tune_tokenizer_warning - what the user should know of the file: an added token whose id there is not the one it has (as in
 * Hugging Face's, which warn of it too). NULL: nothing. */
const char *tune_tokenizer_warning(const struct tune_tokenizer *t);

/* tune_tokenizer_encode - size bytes of text (valid UTF-8, at most 512 MiB; may hold NUL) into *e, which is emptied first.
 * Starts and ends are of the caller's text: a byte-level token may begin inside a character; where a normalizer
 * changed the text they are those of the characters it came from; an added token's hold the white space it took.
 * 0, or -1 with an error: invalid UTF-8 (its offset), too long, no memory. */
int tune_tokenizer_encode(struct tune_tokenizer *t, const char *text, size_t size, int options, struct tune_encoding *e);

/* tune_tokenizer_encode_text - the same for a text of which data[size] marks bytes (not 0) as data, where a special token's
 * spelling is plain text: a special token is found only where none of its bytes is marked. data NULL: no byte is. The ids are
 * those of the whole text: words and merges do not end where a mark begins. */
int tune_tokenizer_encode_text(struct tune_tokenizer *t, const char *text, size_t size, const uint8_t *data, int options,
                               struct tune_encoding *e);

/* tune_tokenizer_decode - ids to text: *text is set to a malloc'd NUL-terminated string of *size bytes, which the
 * caller frees. skip_special leaves special tokens out. -1: an id outside the vocabulary (the reference leaves those
 * out without a word), a text that comes to more than 512 MiB or 64
 * times its spelling, no memory. */
int tune_tokenizer_decode(struct tune_tokenizer *t, const int32_t *ids, int64_t count, bool skip_special, char **text,
                          size_t *size);

/* tune_tokenizer_size - number of ids, added tokens included (largest id + 1).
 * tune_tokenizer_id - the id of a token by its exact spelling in the file, -1 if there is none.
 * tune_tokenizer_token - the spelling of an id, NULL if there is none; borrowed until free.
 * tune_tokenizer_pipeline - "gpt2", "smollm", "llama3", "qwen2", "llama2". */
int32_t tune_tokenizer_size(const struct tune_tokenizer *t);
int32_t tune_tokenizer_id(const struct tune_tokenizer *t, const char *token);
const char *tune_tokenizer_token(const struct tune_tokenizer *t, int32_t id);
const char *tune_tokenizer_pipeline(const struct tune_tokenizer *t);

/* tune_tokenizer_train - make a tokenizer.json of exactly vocabulary entries in the smollm pipeline (byte-level BPE,
 * digits alone): the special tokens first (ids 0..), the 256 bytes, then merges learnt from the size bytes of text;
 * where the text has no more pairs that occur twice, the rest are systematic merges, each of them valid. The same input gives the
 * same file. Written to path by replacement. -1: vocabulary below specials + 256, a special token twice or one that
 * spells a byte, cannot write. */
int tune_tokenizer_train(const char *path, const char *text, size_t size, int32_t vocabulary,
                         const char *const *special, int specials);

/* tune_get_tokenizer - the tokenizer of the folder that --model names, which need hold nothing else; --model may also
 * be the tokenizer.json itself. Whether its ids fit the model is the caller's to compare (tune_tokenizer_size). */
struct tune_tokenizer *tune_get_tokenizer(const struct tune_flags *flags);

#ifdef __cplusplus
}
#endif
#endif
