/* rouge.c - ROUGE-1, -2, -L and -Lsum, by the rules of rouge-score 0.1.2 without stemming.
 * Source: Lin 2004, "ROUGE: a package for automatic evaluation of summaries". */
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/try.h"
#include "metrics/texts.h"

enum { OF_SEQUENCE = 0, OF_LINES = -1 }; /* else the n of n-grams */

/* A text as words, and where its lines end. */
struct words_of {
    char *text;
    struct tune_symbols words, ends;
};

static int end_line(struct words_of *w)
{
    TRY(tune_array_reserve(&w->ends.at, &w->ends.capacity, w->ends.count + 1, sizeof *w->ends.at, "lines of a text"));
    w->ends.at[w->ends.count++] = (uint32_t)w->words.count;
    return 0;
}

static bool in_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static int read_words(struct words_of *w, struct tune_word_list *list, struct tune_text text)
{
    size_t size, begin = 0;
    w->text = tune_text_lower(text, &size);
    if (!w->text)
        return -1;
    for (size_t i = 0; i <= size; i++) {
        if (i < size && in_word(w->text[i]))
            continue;
        if (i > begin)
            TRY(tune_symbols_word(&w->words, list, w->text + begin, i - begin));
        begin = i + 1;
        if (i == size || w->text[i] == '\n')
            TRY(end_line(w));
    }
    return 0;
}

static void free_words(struct words_of *w)
{
    tune_symbols_free(&w->words);
    tune_symbols_free(&w->ends);
    free(w->text);
}

static double f_measure(int64_t common, int64_t answered, int64_t wanted)
{
    double precision = (double)common / (double)(answered > 0 ? answered : 1);
    double recall = (double)common / (double)(wanted > 0 ? wanted : 1);
    return precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
}

static int score_grams(const struct words_of *want, const struct words_of *have, int n, double *f)
{
    struct tune_grams a, b = {0};
    int status = tune_grams_of(&want->words, n, 32, &a);
    status = status == 0 ? tune_grams_of(&have->words, n, 32, &b) : -1;
    if (status == 0)
        *f = f_measure(tune_grams_common(&a, &b), b.total, a.total);
    tune_grams_free(&a);
    tune_grams_free(&b);
    return status;
}

/* The length of a longest common subsequence of a [rows] and b [columns]. left [rows][columns],
 * unless NULL: bits of the cells where the path back from the end goes left. */
static int longest_common(const uint32_t *a, size_t rows, const uint32_t *b, size_t columns, uint8_t *left, int64_t *length)
{
    uint32_t *above = tune_zeroed(columns + 1, sizeof *above, "a common subsequence");
    if (!above)
        return -1;
    for (size_t i = 0; i < rows; i++) {
        uint32_t corner = 0, before = 0; /* the cells above to the left, and to the left */
        for (size_t j = 0; j < columns; j++) {
            uint32_t up = above[j + 1], cell = a[i] == b[j] ? corner + 1 : before > up ? before : up;
            size_t at = i * columns + j;
            if (left && before > up)
                left[at / 8] |= (uint8_t)(1 << at % 8);
            corner = up;
            above[j + 1] = before = cell;
        }
    }
    *length = above[columns];
    free(above);
    return 0;
}

static int score_sequence(const struct words_of *want, const struct words_of *have, double *f)
{
    int64_t length;
    TRY(longest_common(want->words.at, want->words.count, have->words.at, have->words.count, NULL, &length));
    *f = f_measure(length, (int64_t)have->words.count, (int64_t)want->words.count);
    return 0;
}

/* Mark the words of a that are in the common subsequence which rouge-score finds. */
static int mark_common(const uint32_t *a, size_t rows, const uint32_t *b, size_t columns, uint8_t *marked)
{
    int64_t length;
    uint8_t *left = tune_zeroed(rows * columns / 8 + 1, 1, "a common subsequence");
    if (!left)
        return -1;
    int status = longest_common(a, rows, b, columns, left, &length);
    for (size_t i = rows, j = columns; status == 0 && i > 0 && j > 0;) {
        size_t at = (i - 1) * columns + j - 1;
        if (a[i - 1] == b[j - 1]) {
            marked[i - 1] = 1;
            i--, j--;
        } else if (left[at / 8] >> at % 8 & 1)
            j--;
        else
            i--;
    }
    free(left);
    return status;
}

/* Words of a line of `want` that are common with any line of `have`. A word counts as often as
 * `have` has it: remaining [words] is what is left of that. */
static int count_line(const uint32_t *line, size_t size, const struct words_of *have, int64_t *remaining, int64_t *hits)
{
    uint8_t *marked = tune_zeroed(size + 1, 1, "a common subsequence");
    int status = marked ? 0 : -1;
    for (size_t k = 0, begin = 0; k < have->ends.count && status == 0; begin = have->ends.at[k++])
        status = mark_common(line, size, have->words.at + begin, have->ends.at[k] - begin, marked);
    for (size_t i = 0; i < size && status == 0; i++)
        if (marked[i] && remaining[line[i]] > 0) {
            remaining[line[i]]--;
            ++*hits;
        }
    free(marked);
    return status;
}

static int score_lines(const struct words_of *want, const struct words_of *have, size_t words, double *f)
{
    int64_t hits = 0, *remaining = tune_zeroed(words + 1, sizeof *remaining, "words of a text");
    int status = remaining ? 0 : -1;
    if (want->words.count == 0 || have->words.count == 0) {
        free(remaining);
        *f = 0;
        return status;
    }
    for (size_t i = 0; i < have->words.count && status == 0; i++)
        remaining[have->words.at[i]]++;
    for (size_t k = 0, begin = 0; k < want->ends.count && status == 0; begin = want->ends.at[k++])
        status = count_line(want->words.at + begin, want->ends.at[k] - begin, have, remaining, &hits);
    *f = f_measure(hits, (int64_t)have->words.count, (int64_t)want->words.count);
    free(remaining);
    return status;
}

static int score(struct tune_text reference, struct tune_text answer, int kind, double *f)
{
    struct tune_word_list list = {0};
    struct words_of want = {0}, have = {0};
    int status = read_words(&want, &list, reference);
    status = status == 0 ? read_words(&have, &list, answer) : -1;
    if (status == 0)
        status = kind == OF_SEQUENCE ? score_sequence(&want, &have, f)
                 : kind == OF_LINES  ? score_lines(&want, &have, list.count, f)
                                     : score_grams(&want, &have, kind, f);
    free_words(&want);
    free_words(&have);
    tune_word_list_free(&list);
    return status;
}

static int rouge(const struct tune_score_row *row, int kind, double *sums)
{
    double f = 0;
    sums[0] = 0;
    sums[1] = 1;
    for (int i = 0; i < row->reference_count; i++) {
        TRY(score(row->references[i], row->answer, kind, &f));
        sums[0] = f > sums[0] ? f : sums[0];
    }
    return 0;
}

int tune_rouge_1(const struct tune_score_row *row, double *sums) { return rouge(row, 1, sums); }
int tune_rouge_2(const struct tune_score_row *row, double *sums) { return rouge(row, 2, sums); }
int tune_rouge_l(const struct tune_score_row *row, double *sums) { return rouge(row, OF_SEQUENCE, sums); }
int tune_rouge_lsum(const struct tune_score_row *row, double *sums) { return rouge(row, OF_LINES, sums); }
