/* preference.c - losses of pairs and their derivatives. */
#include "losses/preference.h"

#include <math.h>

#include "core/error.h"
#include "core/try.h"

int tune_preference_check(const struct tune_preference_options *o)
{
    static const char *const names[] = {"sigmoid", "hinge", "ipo", "simpo", "orpo"};
    bool simpo = o->kind == TUNE_PREFERENCE_SIMPO, sigmoid = o->kind == TUNE_PREFERENCE_SIGMOID;
    if (o->label_smoothing > 0 && !sigmoid && !simpo)
        return tune_error_usage("`label_smoothing` is for the losses sigmoid and simpo, not for %s; leave it out", names[o->kind]);
    if (o->length_normalize && !sigmoid && o->kind != TUNE_PREFERENCE_HINGE)
        return tune_error_usage("`length_normalize` is for the losses sigmoid and hinge; %s always counts per token; leave it out",
                                names[o->kind]);
    return 0;
}

bool tune_preference_needs_reference(const struct tune_preference_options *o)
{
    return o->kind != TUNE_PREFERENCE_SIMPO && o->kind != TUNE_PREFERENCE_ORPO;
}

/* log sigmoid(x), without overflow and without loss of digits. */
static double log_sigmoid(double x)
{
    return fmin(x, 0) - log1p(exp(-fabs(x)));
}

static double sigmoid(double x)
{
    return exp(log_sigmoid(x));
}

/* -(1 - e) log sigmoid(x) - e log sigmoid(-x). *dx: its derivative. */
static double smoothed(double x, double e, double *dx)
{
    *dx = -(1 - e) * sigmoid(-x) + e * sigmoid(x);
    return -(1 - e) * log_sigmoid(x) - e * log_sigmoid(-x);
}

/* log(1 - exp(a)) for a < 0. At 0, where a token's probability is 1, the odds would be infinite. */
static double log_one_minus_exp(double a)
{
    return a > -M_LN2 ? log(-expm1(a)) : log1p(-exp(a));
}

/* The loss by the policy's log-probabilities per token: ORPO. */
static double odds(const struct tune_preference_options *o, double chosen, double rejected, double d[2])
{
    double a = fmin(chosen, -1e-12), b = fmin(rejected, -1e-12);
    double ratio = a - b - (log_one_minus_exp(a) - log_one_minus_exp(b)), pull = o->beta * sigmoid(-ratio);
    d[0] = -1 + pull / expm1(a);
    d[1] = -pull / expm1(b);
    return -chosen - o->beta * log_sigmoid(ratio);
}

double tune_preference_pair(const struct tune_preference_options *o, const struct tune_pair *p, double d[2], double rewards[2])
{
    bool compares = tune_preference_needs_reference(o), per_token = o->length_normalize || !compares || o->kind == TUNE_PREFERENCE_IPO;
    double n[2] = {per_token ? (double)p->chosen_tokens : 1, per_token ? (double)p->rejected_tokens : 1};
    double score[2] = {p->chosen, p->rejected}, beta = o->beta, loss, dx, margin;
    if (compares) {
        score[0] -= p->reference_chosen;
        score[1] -= p->reference_rejected;
    }
    for (int i = 0; rewards && i < 2; i++)
        rewards[i] = beta * score[i] / (compares ? 1 : n[i]);
    margin = score[0] / n[0] - score[1] / n[1];
    switch ((enum tune_preference_kind)o->kind) {
    case TUNE_PREFERENCE_ORPO:
        loss = odds(o, score[0] / n[0], score[1] / n[1], d);
        d[0] /= n[0];
        d[1] /= n[1];
        return loss;
    case TUNE_PREFERENCE_IPO:
        dx = 2 * (margin - 1 / (2 * beta));
        loss = dx * dx / 4;
        break;
    case TUNE_PREFERENCE_HINGE:
        loss = fmax(0, 1 - beta * margin);
        dx = loss > 0 ? -beta : 0;
        break;
    default:
        loss = smoothed(beta * margin - (compares ? 0 : o->gamma), o->label_smoothing, &dx);
        dx *= beta;
    }
    d[0] = dx / n[0];
    d[1] = -dx / n[1];
    return loss;
}

static int64_t labels_of(const struct tune_batch *batch, int row)
{
    int64_t n = 0;
    for (int t = 0; t < batch->T; t++)
        n += batch->labels[(int64_t)row * batch->T + t] != TUNE_NO_LABEL;
    return n;
}

int tune_preference_batch(const struct tune_preference_options *o, const struct tune_batch *batch, const double *policy,
                          const double *reference, double *factors, struct tune_record *record,
                          struct tune_preference_sums *sums)
{
    double loss = 0;
    if (!batch->pairs || batch->B % 2)
        return tune_error_set("a loss of pairs needs batches of pairs: chosen answers in even rows, rejected ones in odd rows");
    for (int b = 0; b < batch->B; b += 2) {
        struct tune_pair pair = {policy[b], policy[b + 1], reference ? reference[b] : 0, reference ? reference[b + 1] : 0,
                                 labels_of(batch, b), labels_of(batch, b + 1)};
        double d[2], rewards[2], one = tune_preference_pair(o, &pair, d, rewards);
        if (!isfinite(one))
            return tune_error_set("the loss of the pair in row %lld is not finite: log-probabilities %g and %g, by the reference "
                                  "%g and %g; lower `lr`, or look for NaN in the model's weights",
                                  batch->row_of ? (long long)batch->row_of[b] : (long long)b, pair.chosen, pair.rejected,
                                  pair.reference_chosen, pair.reference_rejected);
        for (int i = 0; factors && i < 2; i++)
            factors[b + i] = -d[i];
        loss += one;
        sums->pairs++;
        sums->chosen_reward += rewards[0];
        sums->rejected_reward += rewards[1];
        sums->accurate += rewards[0] > rewards[1];
        sums->chosen_log_prob += pair.chosen;
        sums->rejected_log_prob += pair.rejected;
    }
    sums->loss += loss;
    if (!record)
        return 0;
    TRY(tune_record_divisor(record, batch->B / 2));
    return tune_record_loss(record, loss);
}
