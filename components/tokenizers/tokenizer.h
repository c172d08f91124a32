/* tokenizer.h - text to token ids and back, with exactly the ids of Hugging Face's tokenizers
 * library.
 *
 * It reads a tokenizer.json with a BPE model and a known pipeline. Known are those of GPT-2,
 * SmolLM2, granite-code, Llama 2 to 4, TinyLlama, Qwen 2 to 3.5, Mistral, Yi and Phi-3. They are
 * read as transformers 4 and 5 save them. Any other normalizer, pre-tokenizer, pattern,
 * post-processor or decoder is refused by name. Example:
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

/* The result of encoding. Reuse it from call to call; its memory grows as needed. */
struct tune_encoding {
    int32_t *ids;
    int64_t *starts;   /* byte offset where the token begins in the text; template tokens: -1 */
    int64_t *ends;     /* byte offset where it ends; template tokens: -1 */
    int64_t count, room;
};

enum { TUNE_ADD_SPECIAL = 1,   /* add what the post-processor's template adds, such as BOS */
       TUNE_SPECIAL_AS_TEXT = 2 /* treat the spelling of a special token as plain text */
};

/* tune_tokenizer_open - read the file path, or path/tokenizer.json if path is a folder. Limits: 128
 * MiB, 4 million ids, 4 million merges, 1 million added tokens (1 KiB each, 4 MiB together). NULL
 * with an error. Any number of threads may use a tokenizer.
 * tune_tokenizer_free - free it; NULL is fine. */
struct tune_tokenizer *tune_tokenizer_open(const char *path);
void tune_tokenizer_free(struct tune_tokenizer *t);

/* tune_tokenizer_open_with - tune_tokenizer_open, with more special tokens than the file has, as
 * transformers' add_tokens(..., special_tokens=True) adds them: "<|im_start|>,<|im_end|>". A new
 * token gets the id after the last. A special token that is there already keeps its id. more NULL:
 * none. NULL with an error also for a token that is empty, named twice, or there already and not
 * special.
 * tune_tokenizer_more - these tokens with their ids, "<|im_start|> 300, ...", for a person; NULL:
 * there are none.
 * tune_tokenizer_add - put the tokens into the text of a tokenizer.json, which is allocated anew.
 * It returns the tokenizer of the new text. name is for messages. NULL with an error. */
struct tune_tokenizer *tune_tokenizer_open_with(const char *path, const char *more);
const char *tune_tokenizer_more(const struct tune_tokenizer *t);
struct tune_tokenizer *tune_tokenizer_add(const char *name, char **text, size_t *size,
                                          const char *more);

/* tune_tokenizer_warning - something that the user should know of the file, or NULL. An example is
 * an added token whose id differs from the one it has in use. Hugging Face warns of it too. */
const char *tune_tokenizer_warning(const struct tune_tokenizer *t);

/* tune_tokenizer_limit - say how many rows the model's vocabulary has. A text with a token beyond
 * them cannot be encoded from now on. 0: any token can. The warning names the added tokens beyond.
 * -1 with an error: other tokens than added ones are beyond.
 * tune_tokenizer_limit_by - the same by vocab_size of <folder>/config.json, if there is one. */
int tune_tokenizer_limit(struct tune_tokenizer *t, int32_t rows);
int tune_tokenizer_limit_by(struct tune_tokenizer *t, const char *folder);

/* tune_tokenizer_encode - encode size bytes of UTF-8 text into *e, which is emptied first. Text may
 * hold NUL and be up to 512 MiB long. Starts and ends are offsets in text. A byte-level token may
 * begin inside a character. Where a normalizer changed the text, they are those of the original
 * characters. An added token includes the white space that it took. -1 with an error: invalid UTF-8
 * (with its offset), too long, or no memory. */
int tune_tokenizer_encode(struct tune_tokenizer *t, const char *text, size_t size, int options,
                          struct tune_encoding *e);

/* tune_tokenizer_encode_text - the same for text that is partly data. data[size]: bytes that are
 * not 0 mark data, in which the spelling of a special token is plain text. data NULL: no byte is
 * marked. Marks concern special tokens only: words and merges go across their edges.
 * tune_encoding_free - free the arrays of e. */
int tune_tokenizer_encode_text(struct tune_tokenizer *t, const char *text, size_t size,
                               const uint8_t *data, int options,
                               struct tune_encoding *e);
void tune_encoding_free(struct tune_encoding *e);

/* tune_tokenizer_decode - ids to text. *text is a NUL-terminated string of *size bytes, which the
 * caller frees. skip_special leaves special tokens out. -1 with an error: an id outside the
 * vocabulary, a text over 512 MiB or over 64 times its spelling, or no memory. */
int tune_tokenizer_decode(struct tune_tokenizer *t, const int32_t *ids, int64_t count,
                          bool skip_special, char **text,
                          size_t *size);

/* tune_tokenizer_decode_open - tune_tokenizer_decode of the first ids of a text that goes on. *open
 * is the number of bytes at the end of the text that later ids may change. These are U+FFFD in
 * place of a character's first bytes, or a run of tokens like <0xE2>. An unusual decoder leaves all
 * open. */
int tune_tokenizer_decode_open(struct tune_tokenizer *t, const int32_t *ids, int64_t count,
                               bool skip_special, char **text,
                               size_t *size, size_t *open);

/* tune_tokenizer_size - number of ids, added tokens included: the largest id + 1.
 * tune_tokenizer_id - the id of a token by its exact spelling in the file; -1 if there is none.
 * tune_tokenizer_token - the spelling of an id; NULL if there is none; borrowed until free.
 * tune_tokenizer_is_added - whether an id is an added token's, or nobody's.
 * tune_tokenizer_pipeline - "gpt2", "smollm", "llama2", "llama3", "llama4", "qwen2", "qwen35",
 * "tekken" or "metaspace". */
int32_t tune_tokenizer_size(const struct tune_tokenizer *t);
int32_t tune_tokenizer_id(const struct tune_tokenizer *t, const char *token);
const char *tune_tokenizer_token(const struct tune_tokenizer *t, int32_t id);
bool tune_tokenizer_is_added(const struct tune_tokenizer *t, int32_t id);
const char *tune_tokenizer_pipeline(const struct tune_tokenizer *t);

/* For programs that write the whole tokenizer in another format:
 * tune_tokenizer_is_special - whether an id is a special token's.
 * tune_tokenizer_template - the i-th id that TUNE_ADD_SPECIAL puts before a text, or, if after,
 * behind it; -1: there are no more.
 * tune_tokenizer_unknown - the id of the unknown token; -1: none.
 * tune_tokenizer_spaces - how the vocabulary spells bytes and spaces.
 * tune_tokenizer_merges - all merges in the order in which they apply, *count of them, allocated.
 * NULL with an error: no memory. */
enum tune_spaces {
    TUNE_SPACES_BYTES,  /* each byte is a character, as in GPT-2 */
    TUNE_SPACES_MARKS,  /* U+2581 for a space, as in SentencePiece */
    TUNE_SPACES_MARKS_FIRST, /* the same, with a mark before the text */
    TUNE_SPACES_MARKS_EACH   /* the same, with a mark before each text between added tokens */
};
struct tune_token_merge {
    int32_t left, right, id; /* id: of the joined token */
};
bool tune_tokenizer_is_special(const struct tune_tokenizer *t, int32_t id);
int32_t tune_tokenizer_template(const struct tune_tokenizer *t, bool after, int i);
int32_t tune_tokenizer_unknown(const struct tune_tokenizer *t);
enum tune_spaces tune_tokenizer_spaces(const struct tune_tokenizer *t);
struct tune_token_merge *tune_tokenizer_merges(const struct tune_tokenizer *t, int64_t *count);

/* tune_tokenizer_end - the spelling of the token that ends the texts of a model, allocated; NULL:
 * its folder names none. It is eos_token of tokenizer_config.json, else the token of eos_token_id
 * in config.json, or the first of them. -1 with an error: a file that is no JSON, no memory. */
int tune_tokenizer_end(const struct tune_tokenizer *t, const char *folder, char **token);

/* tune_tokenizer_train - make a tokenizer.json with exactly vocabulary entries, in the smollm
 * pipeline (byte-level BPE, single digits). The special tokens come first, then the 256 bytes, then
 * merges learnt from size bytes of text. When no pair occurs twice any more, systematic merges fill
 * the rest. The same input gives the same file. It replaces path. -1 with an error: vocabulary
 * below specials + 256, a special token twice, one that spells a byte, or a file that cannot be
 * written. */
int tune_tokenizer_train(const char *path, const char *text, size_t size, int32_t vocabulary,
                         const char *const *special, int specials);

/* tune_get_tokenizer - the tokenizer in the model's folder, or the tokenizer.json that the model
 * option names. The caller checks that its ids fit the model (tune_tokenizer_size). */
struct tune_tokenizer *tune_get_tokenizer(const struct tune_flags *flags);

#ifdef __cplusplus
}
#endif
#endif
