/* answers.c - exact match, F1 of words, and the last number. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/try.h"
#include "metrics/texts.h"

int tune_exact_match_raw(const struct tune_score_row *row, double *sums)
{
    sums[0] = 0;
    sums[1] = 1;
    for (int i = 0; i < row->reference_count; i++) {
        struct tune_text r = row->references[i];
        if (r.size == row->answer.size && (r.size == 0 || !memcmp(r.data, row->answer.data, r.size)))
            sums[0] = 1;
    }
    return 0;
}

/* The number of words that both texts have, and F1 of that; both are normalised. */
static int words_in_common(const char *answer, size_t answer_size, const char *reference, size_t size, double *f)
{
    struct tune_word_list list = {0};
    struct tune_symbols have = {0}, want = {0};
    struct tune_grams a = {0}, b = {0};
    int status = tune_symbols_split(&have, &list, answer, answer_size);
    status = status == 0 ? tune_symbols_split(&want, &list, reference, size) : -1;
    status = status == 0 ? tune_grams_of(&have, 1, 32, &a) : -1;
    status = status == 0 ? tune_grams_of(&want, 1, 32, &b) : -1;
    double same = status == 0 ? (double)tune_grams_common(&a, &b) : 0;
    double precision = same / (double)(a.total ? a.total : 1), recall = same / (double)(b.total ? b.total : 1);
    *f = same == 0 ? a.total == 0 && b.total == 0 : 2 * precision * recall / (precision + recall);
    tune_grams_free(&a);
    tune_grams_free(&b);
    tune_symbols_free(&have);
    tune_symbols_free(&want);
    tune_word_list_free(&list);
    return status;
}

/* The best over references: F1 of words, or equality. */
static int squad(const struct tune_score_row *row, bool equality, double *sums)
{
    size_t size, other;
    char *answer = tune_text_squad(row->answer, &size);
    int status = answer ? 0 : -1;
    sums[0] = 0;
    sums[1] = 1;
    for (int i = 0; i < row->reference_count && status == 0; i++) {
        char *reference = tune_text_squad(row->references[i], &other);
        double f = 0;
        status = reference ? 0 : -1;
        if (reference && equality)
            f = size == other && !memcmp(answer, reference, size);
        else if (reference)
            status = words_in_common(answer, size, reference, other, &f);
        sums[0] = f > sums[0] ? f : sums[0];
        free(reference);
    }
    free(answer);
    return status;
}

int tune_exact_match_squad(const struct tune_score_row *row, double *sums) { return squad(row, true, sums); }
int tune_token_f1(const struct tune_score_row *row, double *sums) { return squad(row, false, sums); }

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The last number of a text, NAN if there is none. It is digits with "$", "," and "." among them.
 * A "-" before it is its sign, unless a digit or letter is before that. */
static double last_number(struct tune_text text)
{
    const char *s = text.data;
    char number[64], *end_of_it;
    size_t end = text.size, digits = 0;
    while (end > 0 && !is_digit(s[end - 1]))
        end--;
    size_t begin = end;
    while (begin > 0 && (is_digit(s[begin - 1]) || s[begin - 1] == ',' || s[begin - 1] == '.' || s[begin - 1] == '$'))
        begin--;
    while (begin < end && (s[begin] == ',' || (s[begin] == '.' && !is_digit(s[begin + 1]))))
        begin++;
    char before = begin > 1 ? s[begin - 2] : ' ';
    if (begin > 0 && s[begin - 1] == '-' && !is_digit(before) && !((before | 32) >= 'a' && (before | 32) <= 'z'))
        number[digits++] = '-';
    for (size_t i = begin; i < end; i++)
        if (s[i] != '$' && s[i] != ',') {
            if (digits == sizeof number - 1)
                return NAN; /* nobody writes a number so long */
            number[digits++] = s[i];
        }
    number[digits] = 0;
    double value = strtod(number, &end_of_it);
    return end_of_it > number && *end_of_it == 0 ? value : NAN; /* 1.2.3 is none */
}

int tune_last_number(const struct tune_score_row *row, double *sums)
{
    double answer = last_number(row->answer);
    sums[0] = 0;
    sums[1] = 1;
    for (int i = 0; i < row->reference_count; i++)
        if (answer == last_number(row->references[i]))
            sums[0] = 1;
    return 0;
}
