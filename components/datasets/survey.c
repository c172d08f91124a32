/* survey.c - read rows and count what a user may not expect of them. */
#include "datasets/survey.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/print.h"
#include "core/random.h"
#include "core/try.h"
#include "datasets/copies.h"
#include "datasets/dataset.h"
#include "datasets/loading.h"
#include "datasets/look.h"

enum { ALL_ROWS = 20000, SOME_ROWS = 1000 };

/* The first placeholder in text, such as {{name}} or {{ user name }}: its bytes; 0: there is none. */
static size_t find_placeholder(struct tune_text text, const char **at)
{
    const char *end = text.data + text.size;
    for (const char *p = text.data; (p = memmem(p, (size_t)(end - p), "{{", 2)); p += 2) {
        const char *q = p + 2;
        while (q < end && q - p < 40 && (strchr(" _", *q) ? *q != 0 : (*q | 32) >= 'a' && (*q | 32) <= 'z'))
            q++;
        if (end - q >= 2 && q > p + 2 && q[0] == '}' && q[1] == '}') {
            *at = p;
            return (size_t)(q + 2 - p);
        }
    }
    return 0;
}

static void look_for_placeholder(struct tune_survey *s, const struct tune_dataset *d, int64_t row)
{
    const char *at;
    size_t size = find_placeholder(tune_dataset_raw(d, row), &at);
    s->unfilled += size > 0;
    if (size > 0 && !*s->placeholder && size < sizeof s->placeholder)
        memcpy(s->placeholder, at, size);
}

static int compare_lengths(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Count what is between a prompt and its answer, and what a template leaves out. */
static void look_at_text(struct tune_survey *s, const struct tune_example *x, double *said, double *left_out)
{
    if (x->joined && !*s->joined_token) {
        snprintf(s->joined_token, sizeof s->joined_token, "%s", x->joined_token);
        tune_utf8_mend(s->joined_token, strlen(s->joined_token)); /* it may be cut */
        tune_blank_controls(s->joined_token);
    }
    s->joined[0] += x->joined == TUNE_JOINED_PROMPT;
    s->joined[1] += x->joined == TUNE_JOINED_HEADER;
    for (int i = 0; i < TUNE_ADAPTED_KINDS; i++)
        s->adapted[i] += x->adapted >> i & 1;
    s->left_out += x->left_out > 0;
    *said += x->left_out > 0 ? (double)x->said : 0;
    *left_out += (double)x->left_out;
    s->left_out_share = *said > 0 ? *left_out / *said : 0;
}

static int look_at(struct tune_survey *s, struct tune_dataset *d, int64_t row, struct tune_example *x)
{
    int status = tune_dataset_get(d, row, x);
    if (status < 0 && (tune_error_kind() == TUNE_ERROR_CANNOT || tune_dataset_whole(d) < 0))
        return -1;
    if (status < 0 || x->bad) {
        if (!*s->why)
            snprintf(s->why, sizeof s->why, "%s", status < 0 ? tune_error_message() : tune_dataset_reasons(d));
        tune_error_clear();
        s->bad++;
        return 0;
    }
    bool label = tune_example_has_label(x);
    s->cut += x->count < x->full_count;
    s->cut_away += x->cut_away;
    s->empty += !label && !x->cut_away;
    s->unanswered += x->empty_answer;
    s->unprompted += x->no_prompt;
    if (x->sequences == 1)
        s->labelled[x->labels[0] > 0]++;
    s->longest = x->longest > s->longest ? x->longest : s->longest;
    s->uncut[s->rows - s->bad] = (int32_t)x->longest;
    if (label)
        s->lengths[s->trained++] = (int32_t)x->count;
    look_for_placeholder(s, d, row);
    return 0;
}

/* The i-th of so many rows to look at: one of each stretch, drawn, since rows of a kind may lie evenly apart. */
static int64_t drawn(int64_t i, int64_t rows, int64_t of)
{
    int64_t begin = (int64_t)((double)i * (double)of / (double)rows), end = (int64_t)((double)(i + 1) * (double)of / (double)rows);
    return begin + (int64_t)(tune_random_u64(0, 0, (uint64_t)i) % (uint64_t)(end - begin));
}

int tune_survey(struct tune_survey *s, struct tune_dataset *d, const struct tune_loader *mix)
{
    struct tune_dataset_counts before = tune_dataset_counts(d);
    struct tune_example x = {0};
    double said = 0, left_out = 0; /* bytes, in rows where the template leaves some out */
    int64_t known = 0; /* readable rows whose hash is kept */
    int status = 0;
    *s = (struct tune_survey){.of = mix ? tune_loader_rows(mix) : tune_dataset_rows(d)};
    int64_t rows = s->of <= ALL_ROWS ? s->of : SOME_ROWS;
    uint64_t *hashes = tune_zeroed((size_t)rows, sizeof *hashes, "a look at %lld rows", (long long)rows);
    s->lengths = hashes ? tune_zeroed((size_t)rows, sizeof *s->lengths, "a look at %lld rows", (long long)rows) : NULL;
    s->uncut = s->lengths ? tune_zeroed((size_t)rows, sizeof *s->uncut, "a look at %lld rows", (long long)rows) : NULL;
    const char *format = tune_dataset_format(d); /* NULL: joined sets of several */
    s->plain = format && !strcmp(format, "text");
    if (!s->uncut)
        status = -1;
    for (; status == 0 && s->rows < rows; s->rows++) {
        int64_t row = drawn(s->rows, rows, s->of);
        int64_t bad = s->bad;
        status = look_at(s, d, mix ? tune_loader_row(mix, 0, row) : row, &x);
        if (status < 0 || s->bad > bad)
            continue;
        look_at_text(s, &x, &said, &left_out);
        if (x.hash)
            hashes[known++] = x.hash;
    }
    tune_example_free(&x);
    tune_dataset_restore(d, before);
    if (status == 0) {
        s->doubled = known - tune_copies_distinct(hashes, known);
        qsort(s->lengths, (size_t)s->trained, sizeof *s->lengths, compare_lengths);
        qsort(s->uncut, (size_t)(s->rows - s->bad), sizeof *s->uncut, compare_lengths);
        s->tokens = tune_survey_padded(s, 1);
    }
    free(hashes);
    if (status < 0)
        tune_survey_free(s);
    return status;
}

void tune_survey_free(struct tune_survey *s)
{
    free(s->lengths);
    free(s->uncut);
    s->lengths = s->uncut = NULL;
    s->trained = 0;
}

int64_t tune_survey_length(const struct tune_survey *s, double share)
{
    int64_t rows = s->rows - s->bad, at = (int64_t)ceil(share * (double)rows) - 1;
    return rows > 0 ? s->uncut[at < 0 ? 0 : at] : 0;
}

double tune_survey_whole(const struct tune_survey *s, int64_t length)
{
    int64_t rows = s->rows - s->bad, whole = 0;
    while (whole < rows && s->uncut[whole] <= length)
        whole++;
    return rows > 0 ? (double)whole / (double)rows : 0;
}

double tune_survey_padded(const struct tune_survey *s, int rows)
{
    double sum = 0, n = (double)s->trained;
    for (int64_t i = 0; i < s->trained; i++) /* the chance that the longest of the rows is this one */
        sum += s->lengths[i] * (pow((double)(i + 1) / n, rows) - pow((double)i / n, rows));
    return sum;
}
