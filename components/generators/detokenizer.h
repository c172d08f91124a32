/* detokenizer.h - an incremental detokenizer: ids in, text out piece by piece, as people read it.
 *
 * The pieces together are exactly the text that tune_tokenizer_decode makes of all ids, without
 * special tokens. A piece is given when no later id can change it. So it has whole characters
 * only: a character that is cut across tokens comes with the last of them. Bytes that can never
 * become a character come as U+FFFD. Llama 2's tokenizer has tokens <0x00> to <0xFF>. It decides on
 * a run of them at its end, so the run is held back until then. Example:
 *
 *     const char *stops[] = {"\nUser:"}, *piece;
 *     struct tune_detokenizer *s = tune_detokenizer_new(tok, stops, 1);
 *     int stopped = 0;
 *     size_t size;
 *     while (stopped == 0 && ... next id ...) {
 *         stopped = tune_detokenizer_add(s, id, &piece, &size);
 *         fwrite(piece, 1, size, stdout);
 *     }
 *     tune_detokenizer_end(s, &piece, &size);
 *     fwrite(piece, 1, size, stdout);
 *     tune_detokenizer_free(s);
 *
 * Stop texts end the text. It is cut before the one that is complete first; if two are complete at
 * once, before the longer one. A stop text may span tokens: an end of the text that may become one
 * is held back. Time is linear in the number of ids. */
#ifndef TUNE_DETOKENIZER_H
#define TUNE_DETOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tune_tokenizer;
struct tune_detokenizer;

enum { TUNE_STOPS = 8, TUNE_STOP_SIZE = 1024 }; /* most stop texts, and most bytes of one */

/* tune_detokenizer_new - one with count stop texts, which it copies. The tokenizer must
 * outlive it. NULL with an error: too many, an empty or too long one, one that is not UTF-8, or no
 * memory.
 * tune_detokenizer_free - free it; NULL is fine. */
struct tune_detokenizer *tune_detokenizer_new(struct tune_tokenizer *t, const char *const *stops,
                                              int count);
void tune_detokenizer_free(struct tune_detokenizer *s);

/* tune_detokenizer_add - add an id. The piece is the text that it completes, often of 0 bytes. It
 * is not NUL-terminated, and valid until the next call. Without a piece, *piece is "". Returns 0.
 * 1: a stop text is met, here or before, and no piece will follow. -1 with an error: a negative
 * id, or no memory. After an error it stays as it was. An id beyond the tokenizer's spells
 * nothing; a model may have such rows.
 * tune_detokenizer_end - the same for what is held back. The text then is complete; reset before
 * another id is added. */
int tune_detokenizer_add(struct tune_detokenizer *s, int32_t id, const char **piece, size_t *size);
int tune_detokenizer_end(struct tune_detokenizer *s, const char **piece, size_t *size);

/* tune_detokenizer_text - all pieces given since the start or the last reset, *size bytes. It is
 * not NUL-terminated, and valid until the next call.
 * tune_detokenizer_reset - begin a new text with the same stop texts. */
const char *tune_detokenizer_text(const struct tune_detokenizer *s, size_t *size);
void tune_detokenizer_reset(struct tune_detokenizer *s);

#ifdef __cplusplus
}
#endif
#endif
