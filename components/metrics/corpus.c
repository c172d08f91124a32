/* corpus.c - BLEU and chrF, by the rules of sacreBLEU 2.6.0.
 *
 * Sources: Papineni et al. 2002 (BLEU). Chen and Cherry 2014, method 3 (its smoothing). Popović
 * 2015 (chrF). Post 2018 (sacreBLEU, and the tokenizer 13a of NIST's mteval). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/try.h"
#include "core/version.h"
#include "metrics/texts.h"
#include "tokenizers/unicode.h"

enum { ORDER = 4, CHARACTER_ORDER = 6, CHARACTER_BITS = 21 };

/* ---- tokenizer 13a ---- */
/* The rules pass over the text one after the other. A rule takes a character, or two at once, and
 * goes on behind them. Bytes of characters outside ASCII are neither digits nor marks. */
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_stop(char c)
{
    return c == '.' || c == ',';
}

/* The marks that are always a word: ASCII's, without . , - and the quote '. A space is one too. */
static bool is_mark(char c)
{
    return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') ||
           (c >= ':' && c <= '@') || c == '/';
}

/* Apply rule 1, 2, 3 or 4 to size bytes of text. Returns the new size; `to` has room for 3 size. */
static size_t apply_rule(int rule, const char *text, size_t size, char *to)
{
    char *at = to;
    for (size_t i = 0; i < size; i++) {
        char c = text[i], next = i + 1 < size ? text[i + 1] : 0;
        bool two = i + 1 < size && (rule == 2   ? !is_digit(c) && is_stop(next)
                                    : rule == 3 ? is_stop(c) && !is_digit(next)
                                    : rule == 4 ? is_digit(c) && next == '-'
                                                : false);
        bool around = rule == 1 && is_mark(c);
        if (around || (two && rule == 3))
            *at++ = ' ';
        *at++ = c;
        if (around || two)
            *at++ = ' ';
        if (two) {
            *at++ = next;
            if (rule != 3)
                *at++ = ' ';
            i++;
        }
    }
    return (size_t)(at - to);
}

/* Replace `what` by `by`, which is not longer, in place. Returns the new size. */
static size_t replace(char *text, size_t size, const char *what, const char *by)
{
    size_t length = strlen(what), to = 0;
    for (size_t i = 0; i < size;)
        if (size - i >= length && !memcmp(text + i, what, length)) {
            memcpy(text + to, by, strlen(by));
            to += strlen(by);
            i += length;
        } else
            text[to++] = text[i++];
    return to;
}

/* The tokens of a text, apart by white space: *size bytes, which the caller frees. */
static char *tokenize_13a(struct tune_text given, size_t *size)
{
    size_t n;
    char *text = tune_text_mended(given, &n);
    if (!text)
        return NULL;
    for (const char *p = text + n; n > 0 && tune_unicode_is_space(tune_utf8_before(p)); p = text + n)
        do
            n--;
        while (((unsigned char)text[n] & 0xC0) == 0x80);
    n = replace(text, n, "<skipped>", "");
    n = replace(text, n, "-\n", "");
    n = replace(text, n, "\n", " ");
    n = replace(text, n, "&quot;", "\"");
    n = replace(text, n, "&amp;", "&");
    n = replace(text, n, "&lt;", "<");
    n = replace(text, n, "&gt;", ">");
    char *from = malloc(n + 2);
    if (from) {
        from[0] = from[n + 1] = ' ';
        memcpy(from + 1, text, n);
        n += 2;
    }
    free(text);
    for (int rule = 1; rule <= 4 && from; rule++) {
        char *to = malloc(3 * n);
        if (to)
            n = apply_rule(rule, from, n, to);
        free(from);
        from = to;
    }
    if (!from)
        tune_error_no_memory("a text");
    *size = n;
    return from;
}

/* ---- BLEU: sums are answer tokens, reference tokens, matches [4], n-grams [4], rows ---- */
/* The texts of a row, and how often the references have each n-gram. */
struct bleu_work {
    struct tune_word_list list;
    struct tune_grams wanted[ORDER]; /* of all references, each as often as one of them has it */
    char **texts;
    int64_t *lengths;
    int count;
};

static int read_tokens(struct bleu_work *w, struct tune_text text, struct tune_symbols *s)
{
    size_t size;
    char *tokens = w->texts[w->count] = tokenize_13a(text, &size);
    if (!tokens)
        return -1;
    w->count++;
    return tune_symbols_split(s, &w->list, tokens, size);
}

static int add_reference(struct bleu_work *w, struct tune_text text)
{
    struct tune_symbols s = {0};
    int at = w->count, status = read_tokens(w, text, &s);
    for (int n = 1; n <= ORDER && status == 0; n++) {
        struct tune_grams g;
        status = tune_grams_of(&s, n, 32, &g);
        if (status == 0)
            status = tune_grams_widen(&w->wanted[n - 1], &g);
        tune_grams_free(&g);
    }
    if (status == 0)
        w->lengths[at] = (int64_t)s.count;
    tune_symbols_free(&s);
    return status;
}

/* Sums of an answer. The reference length is the one closest to it; of two, the shorter. */
static int add_answer(struct bleu_work *w, struct tune_text text, double *sums)
{
    struct tune_symbols s = {0};
    int references = w->count, status = read_tokens(w, text, &s);
    for (int n = 1; n <= ORDER && status == 0; n++) {
        struct tune_grams g;
        status = tune_grams_of(&s, n, 32, &g);
        if (status == 0) {
            sums[1 + n] = (double)tune_grams_common(&g, &w->wanted[n - 1]);
            sums[1 + ORDER + n] = (double)g.total;
        }
        tune_grams_free(&g);
    }
    int64_t length = (int64_t)s.count, closest = w->lengths[0];
    for (int i = 1; i < references; i++) {
        int64_t now = llabs(length - closest), other = llabs(length - w->lengths[i]);
        if (other < now || (other == now && w->lengths[i] < closest))
            closest = w->lengths[i];
    }
    sums[0] = (double)length;
    sums[1] = (double)closest;
    tune_symbols_free(&s);
    return status;
}

int tune_bleu(const struct tune_score_row *row, double *sums)
{
    size_t texts = (size_t)row->reference_count + 1;
    struct bleu_work w = {.texts = tune_zeroed(texts, sizeof *w.texts, "texts"), .lengths = tune_zeroed(texts, sizeof *w.lengths, "texts")};
    int status = w.texts && w.lengths ? 0 : -1;
    for (int i = 0; i < row->reference_count && status == 0; i++)
        status = add_reference(&w, row->references[i]);
    if (status == 0)
        status = add_answer(&w, row->answer, sums);
    sums[2 + 2 * ORDER] = 1;
    for (int n = 0; n < ORDER; n++)
        tune_grams_free(&w.wanted[n]);
    for (int i = 0; i < w.count; i++)
        free(w.texts[i]);
    free(w.texts);
    free(w.lengths);
    tune_word_list_free(&w.list);
    return status;
}

/* effective: the order is that of the longest n-gram of the answer. */
static double bleu_of(const double *sums, bool effective)
{
    const double *right = sums + 2, *total = sums + 2 + ORDER;
    double smooth = 1, logs = 0, brevity = 1, none = -9999999999; /* sacreBLEU's log of 0 */
    if (sums[2 + 2 * ORDER] == 0)
        return NAN;
    if (right[0] + right[1] + right[2] + right[3] == 0)
        return 0;
    if (sums[0] < sums[1])
        brevity = exp(1 - sums[1] / sums[0]);
    bool ended = false;
    int order = 0;
    for (int n = 0; n < ORDER; n++) {
        ended = ended || total[n] == 0;
        if (ended && effective)
            break;
        order++;
        if (!ended && right[n] == 0)
            smooth *= 2;
        logs += ended ? none : log(right[n] == 0 ? 100 / (smooth * total[n]) : 100 * right[n] / total[n]);
    }
    return brevity * exp(logs / order);
}

double tune_bleu_value(const double *sums, int labels)
{
    (void)labels;
    return bleu_of(sums, false);
}

double tune_bleu_row_value(const double *sums)
{
    return bleu_of(sums, true);
}

/* ---- chrF: sums are n-grams of the answer, of the reference, matches, for each n; rows ---- */
static double f_beta(const double *sums)
{
    double precision = 0, recall = 0;
    int orders = 0;
    for (int n = 0; n < CHARACTER_ORDER; n++) {
        const double *s = sums + 3 * n;
        if (s[0] > 0 && s[1] > 0) {
            precision += s[2] / s[0];
            recall += s[2] / s[1];
            orders++;
        }
    }
    if (precision + recall == 0)
        return 0;
    precision /= orders;
    recall /= orders;
    return 100 * (5 * precision * recall / (4 * precision + recall)); /* beta 2 */
}

static int read_characters(struct tune_text text, struct tune_grams g[CHARACTER_ORDER])
{
    size_t size;
    struct tune_symbols s = {0};
    char *mended = tune_text_mended(text, &size);
    int status = mended ? tune_symbols_characters(&s, mended, size) : -1;
    for (int n = 1; n <= CHARACTER_ORDER && status == 0; n++)
        status = tune_grams_of(&s, n, CHARACTER_BITS, &g[n - 1]);
    tune_symbols_free(&s);
    free(mended);
    return status;
}

static void free_characters(struct tune_grams g[CHARACTER_ORDER])
{
    for (int n = 0; n < CHARACTER_ORDER; n++)
        tune_grams_free(&g[n]);
}

int tune_chrf(const struct tune_score_row *row, double *sums)
{
    struct tune_grams have[CHARACTER_ORDER] = {{0}};
    int status = read_characters(row->answer, have);
    double best = -1;
    for (int i = 0; i < row->reference_count && status == 0; i++) {
        struct tune_grams want[CHARACTER_ORDER] = {{0}};
        double these[3 * CHARACTER_ORDER];
        status = read_characters(row->references[i], want);
        for (int n = 0; n < CHARACTER_ORDER && status == 0; n++) {
            these[3 * n] = want[n].total > 0 ? (double)have[n].total : 0;
            these[3 * n + 1] = (double)want[n].total;
            these[3 * n + 2] = (double)tune_grams_common(&have[n], &want[n]);
        }
        if (status == 0 && f_beta(these) > best) { /* the best reference counts */
            best = f_beta(these);
            memcpy(sums, these, sizeof these);
        }
        free_characters(want);
    }
    sums[3 * CHARACTER_ORDER] = 1;
    free_characters(have);
    return status;
}

double tune_chrf_value(const double *sums, int labels)
{
    (void)labels;
    return sums[3 * CHARACTER_ORDER] == 0 ? NAN : f_beta(sums);
}

const char *tune_score_signature(const struct tune_score *m, int references, char *text, size_t size)
{
    const char *what = m->row == tune_bleu   ? "case:mixed|eff:no|tok:13a|smooth:exp"
                       : m->row == tune_chrf ? "case:mixed|eff:yes|nc:6|nw:0|space:no"
                                             : NULL;
    if (size > 0)
        *text = 0;
    if (what && references > 0)
        snprintf(text, size, "nrefs:%d|%s|version:tune.c-" TUNE_VERSION, references, what);
    else if (what)
        snprintf(text, size, "nrefs:var|%s|version:tune.c-" TUNE_VERSION, what);
    return text;
}
