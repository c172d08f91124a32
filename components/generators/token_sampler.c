/* token_sampler.c - the next token: penalty, temperature, filters and the draw.
 *
 * Nothing is sorted. A border, such as the k-th largest value, is found by bisection over the bits
 * of a float. Each step of it counts or sums in a loop that compilers vectorize. */
#include "generators/token_sampler.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/float16.h"
#include "core/random.h"
#include "core/try.h"
#include "generators/token_rules.h"

enum { BLOCK = 64, CHUNK = 256 };

struct tune_token_sampler {
    struct tune_sampling_options o;
    uint64_t seed;
    int V, slots, blocks;
    int64_t *row;    /* [slots] row of the input that the slot holds */
    int *answer;     /* [slots] which answer to that row */
    float *score;    /* [V] logits after the penalty; then those that top_k keeps */
    float *weight;   /* [V] their weights; 0: dropped */
    int32_t *id;     /* [V] their ids, if top_k dropped any */
    float *top;      /* [blocks] largest of each BLOCK logits */
    /* with a penalty only */
    uint8_t *marked; /* [slots,V] whether the id is seen */
    int32_t *seen;   /* [slots,V] the ids that are seen */
    int *count;      /* [slots] number of them */
    /* with rules only */
    struct tune_token_rules rules;
    struct past *past; /* [slots] */
};

/* The tokens of a row. */
struct past {
    int32_t *ids;    /* [count] */
    size_t count, room;
    int drawn;       /* number of those that were chosen; the others are the prompt */
};

int tune_sampling_check(const struct tune_sampling_options *o)
{
    if (!(o->temperature >= 0 && isfinite(o->temperature)))
        return tune_error_usage("`temperature` is %g; expected 0, which is greedy, or a number "
                                "above it", o->temperature);
    if (o->top_k < 0)
        return tune_error_usage("`top_k` is %d; expected a number of tokens to keep, or 0 for all",
                                o->top_k);
    if (!(o->top_p > 0 && o->top_p <= 1))
        return tune_error_usage("`top_p` is %g; expected a share above 0 and at most 1, which "
                                "keeps all tokens", o->top_p);
    if (!(o->min_p >= 0 && o->min_p < 1))
        return tune_error_usage("`min_p` is %g; expected a share of at least 0, which keeps all "
                                "tokens, and below 1", o->min_p);
    if (!(o->repetition_penalty > 0 && isfinite(o->repetition_penalty)))
        return tune_error_usage("`repetition_penalty` is %g; expected a number above 0; 1 is no "
                                "penalty", o->repetition_penalty);
    return 0;
}

struct tune_token_sampler *tune_token_sampler_new(const struct tune_sampling_options *o,
                                                  int64_t seed, int V, int slots)
{
    if (tune_sampling_check(o) < 0)
        return NULL;
    if (V < 1 || slots < 1) {
        tune_error_usage("a sampler of %d logits for %d rows: expected at least 1", V, slots);
        return NULL;
    }
    size_t n = (size_t)V, rows = (size_t)slots;
    struct tune_token_sampler *s = tune_zeroed(1, sizeof *s, "sampling");
    if (!s)
        return NULL;
    s->o = *o;
    s->seed = (uint64_t)seed;
    s->V = V;
    s->slots = slots;
    s->blocks = (V + BLOCK - 1) / BLOCK;
    s->row = tune_zeroed(rows, sizeof *s->row, "sampling");
    s->answer = tune_zeroed(rows, sizeof *s->answer, "sampling");
    s->score = tune_zeroed(n, sizeof *s->score, "sampling");
    s->weight = tune_zeroed(n, sizeof *s->weight, "sampling");
    s->id = tune_zeroed(n, sizeof *s->id, "sampling");
    s->top = tune_zeroed((size_t)s->blocks, sizeof *s->top, "sampling");
    bool failed = !s->row || !s->answer || !s->score || !s->weight || !s->id || !s->top;
    if (!failed && o->repetition_penalty != 1) {
        s->marked = tune_zeroed(rows * n, sizeof *s->marked, "the ids seen");
        s->seen = tune_zeroed(rows * n, sizeof *s->seen, "the ids seen");
        s->count = tune_zeroed(rows, sizeof *s->count, "the ids seen");
        failed = !s->marked || !s->seen || !s->count;
    }
    if (failed) {
        tune_token_sampler_free(s);
        return NULL;
    }
    for (int i = 0; i < slots; i++)
        s->row[i] = i;
    return s;
}

void tune_token_sampler_free(struct tune_token_sampler *s)
{
    if (!s)
        return;
    free(s->row);
    free(s->answer);
    free(s->score);
    free(s->weight);
    free(s->id);
    free(s->top);
    free(s->marked);
    free(s->seen);
    free(s->count);
    for (int i = 0; i < s->slots && s->past; i++)
        free(s->past[i].ids);
    free(s->past);
    tune_token_rules_free(&s->rules);
    free(s);
}

int tune_token_sampler_obey(struct tune_token_sampler *s, const struct tune_token_rules *rules)
{
    struct tune_token_rules copy;
    TRY(tune_token_rules_check(rules, s->V, NULL));
    if (!s->past && tune_token_rules_any(rules) &&
        !(s->past = tune_zeroed((size_t)s->slots, sizeof *s->past, "the tokens of rows")))
        return -1;
    TRY(tune_token_rules_copy(&copy, rules));
    tune_token_rules_free(&s->rules);
    s->rules = copy;
    return 0;
}

/* ---- ids seen ---- */

static int check_slot(const struct tune_token_sampler *s, int slot)
{
    if (slot < 0 || slot >= s->slots)
        return tune_error_usage("sampling: no slot %d; there are %d", slot, s->slots);
    return 0;
}

int tune_token_sampler_start(struct tune_token_sampler *s, int slot, int64_t row)
{
    TRY(check_slot(s, slot));
    s->row[slot] = row;
    s->answer[slot] = 0;
    if (s->past)
        s->past[slot].count = 0, s->past[slot].drawn = 0;
    if (!s->seen)
        return 0;
    size_t first = (size_t)slot * (size_t)s->V;
    for (int i = 0; i < s->count[slot]; i++)
        s->marked[first + (size_t)s->seen[first + (size_t)i]] = 0;
    s->count[slot] = 0;
    return 0;
}

int tune_token_sampler_answer(struct tune_token_sampler *s, int slot, int answer)
{
    TRY(check_slot(s, slot));
    s->answer[slot] = answer;
    return 0;
}

int tune_token_sampler_accept(struct tune_token_sampler *s, int slot, const int32_t *ids,
                           int64_t count)
{
    TRY(check_slot(s, slot));
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= s->V)
            return tune_error_set("row %lld: id %d is not below %d, the number of logits",
                                  (long long)s->row[slot], (int)ids[i], s->V);
    if (s->past && count > 0) {
        struct past *p = &s->past[slot];
        TRY(tune_array_reserve(&p->ids, &p->room, p->count + (size_t)count, sizeof *p->ids, "the tokens of a row"));
        memcpy(p->ids + p->count, ids, (size_t)count * sizeof *ids);
        p->count += (size_t)count;
    }
    if (!s->seen)
        return 0;
    size_t first = (size_t)slot * (size_t)s->V;
    for (int64_t i = 0; i < count; i++) {
        uint8_t *mark = &s->marked[first + (size_t)ids[i]];
        if (!*mark)
            s->seen[first + (size_t)s->count[slot]++] = ids[i];
        *mark = 1;
    }
    return 0;
}

/* The scores of the slot after penalty and rules: the logits, or a changed copy of them. */
static const float *adjust(struct tune_token_sampler *s, int slot, const float *logits)
{
    bool seen_some = s->seen && s->count[slot] > 0;
    if (!seen_some && !s->past)
        return logits;
    const int32_t *seen = seen_some ? s->seen + (size_t)slot * (size_t)s->V : NULL;
    float penalty = (float)s->o.repetition_penalty;
    memcpy(s->score, logits, (size_t)s->V * sizeof *logits);
    for (int i = 0; seen && i < s->count[slot]; i++) {
        float *x = &s->score[seen[i]];
        float y = *x < 0 ? *x * penalty : *x / penalty;
        *x = fminf(fmaxf(y, -FLT_MAX), FLT_MAX);
    }
    if (s->past) {
        const struct past *p = &s->past[slot];
        tune_token_rules_apply(&s->rules, p->ids, (int)p->count, (int)p->count - p->drawn, s->score, s->V);
    }
    return s->score;
}

/* ---- loops over logits and weights ---- */

/* Floats in their order as whole numbers, and back. */
static int64_t key_of(float x)
{
    int32_t bits = (int32_t)tune_float_bits(x);
    return bits ^ ((bits >> 31) & 0x7FFFFFFF);
}

static float float_of(int64_t key)
{
    return tune_float_from_bits((uint32_t)((int32_t)key ^ (((int32_t)key >> 31) & 0x7FFFFFFF)));
}

/* The largest of each block into top, and of all into *max. false: one is not finite. */
static bool scan(const float *x, int n, float *top, float *max)
{
    uint32_t all = 0;
    *max = -FLT_MAX;
    for (int at = 0, b = 0; at < n; at += BLOCK, b++) {
        int end = n - at < BLOCK ? n : at + BLOCK;
        float most = -FLT_MAX;
        uint32_t bad = 0;
#pragma omp simd reduction(max : most) reduction(| : bad)
        for (int i = at; i < end; i++) {
            most = x[i] > most ? x[i] : most;
            /* a full exponent carries into the sign */
            bad |= (tune_float_bits(x[i]) & 0x7FFFFFFF) + 0x00800000;
        }
        top[b] = most;
        *max = most > *max ? most : *max;
        all |= bad;
    }
    return !(all & 0x80000000);
}

/* exp(y) for y <= 0, to about 1e-7 of it; 0 below -87.7, where n is -127. y is cut at -88 by its
 * bits, because gcc does not vectorize the comparison of floats. The polynomial is Cephes' expf. */
static inline float exp_of(float y)
{
    const float shift = 12582912.0f; /* 1.5 * 2^23: added, it rounds to a whole number */
    uint32_t bits = tune_float_bits(y), most = 0xC2B00000; /* -88 */
    float z = tune_float_from_bits(bits < most ? bits : most);
    float shifted = z * 1.44269504f + shift, n = shifted - shift;
    float r = z - n * 0.693359375f + n * 2.12194440e-4f, p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1;
    uint32_t exponent = tune_float_bits(shifted) - tune_float_bits(shift) + 127;
    return p * tune_float_from_bits(exponent << 23);
}

/* weight = exp((x - max) factor). Returns their sum. */
static double weigh(const float *x, int n, float max, float factor, float *weight)
{
    double total = 0;
    for (int at = 0; at < n; at += CHUNK) {
        int end = n - at < CHUNK ? n : at + CHUNK;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int i = at; i < end; i++) {
            weight[i] = exp_of((x[i] - max) * factor);
            sum += weight[i];
        }
        total += sum;
    }
    return total;
}

/* The sum of the numbers that are at least `least`, and how many these are. */
static double sum_from(const float *x, int n, float least, int *count)
{
    double total = 0;
    *count = 0;
    for (int at = 0; at < n; at += CHUNK) {
        int end = n - at < CHUNK ? n : at + CHUNK, more = 0;
        float sum = 0;
#pragma omp simd reduction(+ : sum, more)
        for (int i = at; i < end; i++) {
            sum += x[i] >= least ? x[i] : 0;
            more += x[i] >= least;
        }
        total += sum;
        *count += more;
    }
    return total;
}

/* The k-th largest of n finite numbers, k >= 1; -FLT_MAX if there are fewer. */
static float kth_largest(const float *x, int n, int k)
{
    int64_t low = key_of(-FLT_MAX), high = key_of(FLT_MAX) + 1;
    while (high - low > 1) { /* at least k numbers are from low on, fewer are from high on */
        int64_t middle = low + (high - low) / 2;
        float least = float_of(middle);
        int count = 0;
#pragma omp simd reduction(+ : count)
        for (int i = 0; i < n; i++)
            count += x[i] >= least;
        if (count >= k)
            low = middle;
        else
            high = middle;
    }
    return float_of(low);
}

/* ---- filters ---- */

/* Scores from the k-th largest on into s->score, and their ids into s->id. Returns their number.
 * The k-th largest of the blocks' maxima is a lower bound that few scores reach. */
static int keep_top_k(struct tune_token_sampler *s, const float *x)
{
    int k = s->o.top_k, n = 0, kept = 0;
    float least = kth_largest(s->top, s->blocks, k);
    for (int b = 0; b < s->blocks; b++) {
        int at = b * BLOCK, end = s->V - at < BLOCK ? s->V : at + BLOCK;
        for (int i = s->top[b] >= least ? at : end; i < end; i++) {
            float score = x[i];
            s->score[n] = score;
            s->id[n] = i;
            n += score >= least;
        }
    }
    least = kth_largest(s->score, n, k);
    for (int i = 0; i < n; i++) {
        float score = s->score[i];
        s->score[kept] = score;
        s->id[kept] = s->id[i];
        kept += score >= least;
    }
    return kept;
}

/* Set weights below `least` to 0, and those equal to it, but for the first `ties`. */
static void drop_below(float *weight, int n, float least, int ties)
{
#pragma omp simd
    for (int i = 0; i < n; i++)
        weight[i] = weight[i] >= least ? weight[i] : 0;
    for (int i = 0; ties < n && i < n; i++)
        if (weight[i] == least && ties-- <= 0)
            weight[i] = 0;
}

/* Keep the fewest weights, largest first, whose sum is at least top_p times the total. */
static void keep_top_p(float *weight, int n, double total, double top_p)
{
    int count, from_low, from_high = 0;
    double mass, above = 0, target = top_p * total;
    /* Weights below this one have a mass of at most half of what is dropped. */
    float least = (float)((1 - top_p) * total / n / 2);
    if (sum_from(weight, n, least, &from_low) < target) {
        least = 0;
        from_low = n;
    }
    int64_t low = key_of(least), high = key_of(1) + 1;
    while (high - low > 1 && from_low - from_high > 1) {
        int64_t middle = low + (high - low) / 2;
        mass = sum_from(weight, n, float_of(middle), &count);
        if (mass >= target) {
            low = middle;
            from_low = count;
        } else {
            high = middle;
            from_high = count;
            above = mass;
        }
    }
    least = float_of(low);
    int ties = n; /* from low to high there is one weight, or some that are the same */
    if (from_low - from_high > 1)
        ties = (int)fmin(fmax(ceil((target - above) / least), 1), n);
    drop_below(weight, n, least, ties);
}

/* Weights of what the filters keep, in s->weight. Returns their number. Unless it is V, s->id has
 * their ids. */
static int filter(struct tune_token_sampler *s, const float *x, float max)
{
    int n = s->V;
    if (s->o.top_k > 0 && s->o.top_k < n) {
        n = keep_top_k(s, x);
        x = s->score;
    }
    /* between bounds, so that no product with 0 or infinity arises */
    float factor = (float)fmin(fmax(1 / s->o.temperature, 1e-30), 1e30);
    double total = weigh(x, n, max, factor, s->weight);
    if (s->o.top_p < 1)
        keep_top_p(s->weight, n, total, s->o.top_p);
    if (s->o.min_p > 0)
        drop_below(s->weight, n, (float)s->o.min_p, n);
    return n;
}

/* ---- the choice ---- */

/* The place of the weight in whose share of the sum u in [0,1) falls. */
static int draw(const float *weight, int n, double u)
{
    int count, chunk = 0, last = 0;
    double total = 0, sum, before = 0, passed = 0;
    for (int at = 0; at < n; at += CHUNK)
        total += sum_from(weight + at, n - at < CHUNK ? n - at : CHUNK, FLT_TRUE_MIN, &count);
    for (int at = 0; at < n && passed <= u * total; at += CHUNK, passed += sum) {
        sum = sum_from(weight + at, n - at < CHUNK ? n - at : CHUNK, FLT_TRUE_MIN, &count);
        if (count > 0) {
            chunk = at;
            before = passed;
        }
    }
    for (int i = chunk; i < n && i < chunk + CHUNK; i++) {
        if (weight[i] == 0)
            continue;
        last = i; /* by rounding, the sum of all may stay below the mark */
        before += weight[i];
        if (before > u * total)
            break;
    }
    return last;
}

static int first_largest(const struct tune_token_sampler *s, const float *x, float max)
{
    int b = 0;
    while (s->top[b] != max)
        b++;
    int i = b * BLOCK;
    while (x[i] != max)
        i++;
    return i;
}

static int not_finite(const struct tune_token_sampler *s, int slot, const float *logits)
{
    int i = 0;
    while (isfinite(logits[i]))
        i++;
    return tune_error_set("row %lld: the logit of id %d is %g; expected a finite number. The "
                          "weights may have diverged", (long long)s->row[slot], i, logits[i]);
}

/* The scores of the slot from its logits, and the largest of them. NULL with an error: none is left. */
static const float *scores_of(struct tune_token_sampler *s, int slot, const float *logits, float *max)
{
    const float *x = adjust(s, slot, logits);
    if (x != logits)
        scan(x, s->V, s->top, max);
    if (!s->past || *max > -FLT_MAX)
        return x;
    tune_error_set("row %lld: no token is left to choose after %lld of them. Options such as no_repeat_ngram_size and "
                   "suppress_tokens rule out all %d; give smaller ones", (long long)s->row[slot],
                   (long long)s->past[slot].count, s->V);
    return NULL;
}

int tune_token_sampler_next(struct tune_token_sampler *s, int slot, int64_t position,
                            const float *logits, int32_t *id, double *log_prob)
{
    float max;
    double log_sum = 0;
    TRY(check_slot(s, slot));
    if (!scan(logits, s->V, s->top, &max))
        return not_finite(s, slot, logits);
    if (log_prob)
        log_sum = max + log(weigh(logits, s->V, max, 1, s->weight));
    const float *x = scores_of(s, slot, logits, &max);
    if (!x)
        return -1;
    if (s->o.temperature == 0) {
        *id = first_largest(s, x, max);
    } else {
        int n = filter(s, x, max);
        uint64_t stream = (uint64_t)s->row[slot] ^ (uint64_t)0x746F6B656E << 24; /* "token" */
        stream ^= (uint64_t)s->answer[slot] * 0x9E3779B97F4A7C15u;
        int at = draw(s->weight, n, tune_random_uniform(s->seed, stream, (uint64_t)position));
        *id = n < s->V ? s->id[at] : at;
    }
    if (log_prob)
        *log_prob = logits[*id] - log_sum;
    if (s->past)
        s->past[slot].drawn++;
    return tune_token_sampler_accept(s, slot, id, 1);
}

int tune_token_sampler_distribution(struct tune_token_sampler *s, int slot, const float *logits,
                                    float *probability)
{
    float max;
    TRY(check_slot(s, slot));
    if (!scan(logits, s->V, s->top, &max))
        return not_finite(s, slot, logits);
    const float *x = scores_of(s, slot, logits, &max);
    if (!x)
        return -1;
    memset(probability, 0, (size_t)s->V * sizeof *probability);
    if (s->o.temperature == 0) {
        probability[first_largest(s, x, max)] = 1;
        return 0;
    }
    int n = filter(s, x, max), count;
    double total = sum_from(s->weight, n, FLT_TRUE_MIN, &count);
    for (int i = 0; i < n; i++)
        probability[n < s->V ? s->id[i] : i] = (float)(s->weight[i] / total);
    return 0;
}
