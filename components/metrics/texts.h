/* texts.h - texts as words and n-grams, for this folder and task files.
 *
 * Words are numbers: equal words of one `struct tune_word_list` have the same one. */
#ifndef TUNE_SCORES_TEXTS_H
#define TUNE_SCORES_TEXTS_H

#include "metrics/scores.h"

/* tune_text_mended - a copy of the text, *size bytes, with "?" for bytes that are no UTF-8.
 * tune_text_lower - the same in lower case.
 * tune_text_squad - the same after SQuAD's normalisation.
 * tune_text_label - the same as labels are compared. All: ends in NUL; the caller frees it. NULL
 * with an error: no memory. */
char *tune_text_mended(struct tune_text text, size_t *size);
char *tune_text_lower(struct tune_text text, size_t *size);
char *tune_text_squad(struct tune_text text, size_t *size);
char *tune_text_label(struct tune_text text, size_t *size);

/* Different words; the number of a word is its place. Texts of words are borrowed. */
struct tune_word_list {
    struct tune_text *words;
    size_t count, word_capacity;
    int32_t *slots; /* [slot_count] places + 1; 0: free */
    size_t slot_count;
};

/* A text as symbols: words or characters. */
struct tune_symbols {
    uint32_t *at;
    size_t count, capacity;
};

/* tune_symbols_word - append the number of a word.
 * tune_symbols_split - append those of the words between white space (Python's).
 * tune_symbols_characters - append the characters that are no white space.
 * tune_word_list_free, tune_symbols_free - free them. -1 with an error: no memory. */
int tune_symbols_word(struct tune_symbols *s, struct tune_word_list *list, const char *word,
                      size_t size);
int tune_symbols_split(struct tune_symbols *s, struct tune_word_list *list, const char *text,
                       size_t size);
int tune_symbols_characters(struct tune_symbols *s, const char *text, size_t size);
void tune_word_list_free(struct tune_word_list *list);
void tune_symbols_free(struct tune_symbols *s);

/* The n-grams of a text, each once, in order, with how often it is there. */
struct tune_grams {
    struct tune_gram { uint64_t key[2]; int64_t count; } *at;
    size_t count;
    int64_t total; /* of all counts */
};

/* tune_grams_of - those of n symbols of `bits` bits each; n * bits is at most 128.
 * tune_grams_common - the sum, over n-grams in both, of the smaller count.
 * tune_grams_widen - make counts of a at least those of b.
 * tune_grams_free - free them. -1 with an error: no memory. */
int tune_grams_of(const struct tune_symbols *s, int n, int bits, struct tune_grams *g);
int64_t tune_grams_common(const struct tune_grams *a, const struct tune_grams *b);
int tune_grams_widen(struct tune_grams *a, const struct tune_grams *b);
void tune_grams_free(struct tune_grams *g);

/* Rows and values of the metrics' table, by file. */
typedef int tune_score_of_row(const struct tune_score_row *row, double *sums);
typedef double tune_score_of_sums(const double *sums, int labels);
tune_score_of_row tune_rouge_1, tune_rouge_2, tune_rouge_l, tune_rouge_lsum, tune_bleu, tune_chrf;
tune_score_of_row tune_exact_match_raw, tune_exact_match_squad, tune_token_f1, tune_last_number;
tune_score_of_sums tune_bleu_value, tune_chrf_value;
/* tune_bleu_row_value - the value of one row, with effective order. */
double tune_bleu_row_value(const double *sums);

#endif
