/* preference.c - losses of preferences and their derivatives. */
#include "losses/preference.h"

#include <math.h>

#include "comm/comm.h"
#include "core/error.h"
#include "core/try.h"

int tune_preference_check(const struct tune_preference_options *o, int batch_size)
{
    static const char *const names[] = {
        [TUNE_PREFERENCE_SIGMOID] = "sigmoid", [TUNE_PREFERENCE_HINGE] = "hinge", [TUNE_PREFERENCE_IPO] = "ipo",
        [TUNE_PREFERENCE_SIMPO] = "simpo", [TUNE_PREFERENCE_ORPO] = "orpo", [TUNE_PREFERENCE_KTO] = "kto",
    };
    bool simpo = o->kind == TUNE_PREFERENCE_SIMPO, sigmoid = o->kind == TUNE_PREFERENCE_SIGMOID;
    if (o->label_smoothing > 0 && !sigmoid && !simpo)
        return tune_error_usage("`label_smoothing` is for the losses sigmoid and simpo, not for %s; leave it out", names[o->kind]);
    if (tune_preference_needs_kl(o) && batch_size < 2)
        return tune_error_usage("the loss kto compares with the answers of other rows of a micro-batch, so `batch_size` is at least 2, "
                                "not %d", batch_size);
    bool weighs = o->desirable_weight != 1 || o->undesirable_weight != 1, none = o->desirable_weight == 0 && o->undesirable_weight == 0;
    if (tune_preference_needs_kl(o) && none)
        return tune_error_usage("`desirable_weight` and `undesirable_weight` are both 0, so nothing would be learnt; give one above 0");
    if (!tune_preference_needs_kl(o) && weighs && !none)
        return tune_error_usage("`desirable_weight` and `undesirable_weight` are for the loss kto, not for %s; leave them out",
                                names[o->kind]);
    if (o->length_normalize && tune_preference_needs_kl(o))
        return tune_error_usage("`length_normalize` is for the losses sigmoid and hinge; kto counts whole answers; leave it out");
    if (o->length_normalize && !sigmoid && o->kind != TUNE_PREFERENCE_HINGE)
        return tune_error_usage("`length_normalize` is for the losses sigmoid and hinge; %s always counts per token; leave it out",
                                names[o->kind]);
    return 0;
}

bool tune_preference_needs_reference(const struct tune_preference_options *o)
{
    return o->kind != TUNE_PREFERENCE_SIMPO && o->kind != TUNE_PREFERENCE_ORPO;
}

bool tune_preference_needs_kl(const struct tune_preference_options *o)
{
    return o->kind == TUNE_PREFERENCE_KTO;
}

double tune_preference_passes(const struct tune_preference_options *o, bool anew, double epochs)
{
    double reference = tune_preference_needs_reference(o) ? anew || epochs < 1 ? 1 : 1 / epochs : 0;
    return reference + (tune_preference_needs_kl(o) ? 2 : 0);
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

double tune_preference_answer(const struct tune_preference_options *o, bool desirable, double score, double kl, double *d)
{
    double sign = desirable ? 1 : -1, weight = desirable ? o->desirable_weight : o->undesirable_weight;
    double x = o->beta * sign * (score - kl);
    *d = -weight * o->beta * sign * sigmoid(x) * sigmoid(-x);
    return weight * sigmoid(-x);
}

static int64_t labels_of(const struct tune_batch *batch, int row)
{
    int64_t n = 0;
    for (int t = 0; t < batch->T; t++)
        n += batch->labels[(int64_t)row * batch->T + t] != TUNE_NO_LABEL;
    return n;
}

static void add(struct tune_preference_mean *mean, double more)
{
    mean->sum += more;
    mean->count++;
}

/* The number of row b in its data set, for messages. */
static long long number_of(const struct tune_batch *batch, int b)
{
    return batch->row_of ? (long long)batch->row_of[b] : (long long)b;
}

static int add_pairs(const struct tune_preference_options *o, const struct tune_batch *batch, const double *policy,
                     const double *reference, double *factors, struct tune_preference_sums *sums, double *loss)
{
    if (batch->sequences != 2 || batch->B % 2 || !batch->label_of)
        return tune_error_set("a loss of pairs needs two labelled sequences of each row, and the batch has %d", batch->sequences);
    for (int b = 0; b < batch->B; b += 2) {
        int c = batch->label_of[b] < batch->label_of[b + 1] ? b + 1 : b, r = b + b + 1 - c; /* chosen, rejected */
        struct tune_pair pair = {policy[c], policy[r], reference ? reference[c] : 0, reference ? reference[r] : 0,
                                 labels_of(batch, c), labels_of(batch, r)};
        if (batch->label_of[c] == batch->label_of[r])
            return tune_error_set("both answers in row %lld have the label %g; expected a higher one for the chosen answer",
                                  number_of(batch, b), batch->label_of[c]);
        double d[2], rewards[2], one = tune_preference_pair(o, &pair, d, rewards);
        if (!isfinite(one))
            return tune_error_set("the loss of the pair in row %lld is not finite: log-probabilities %g and %g, by the reference "
                                  "%g and %g; lower `lr`, or look for NaN in the model's weights",
                                  number_of(batch, b), pair.chosen, pair.rejected, pair.reference_chosen, pair.reference_rejected);
        if (factors) {
            factors[c] = -d[0];
            factors[r] = -d[1];
        }
        *loss += one;
        add(&sums->chosen_reward, rewards[0]);
        add(&sums->rejected_reward, rewards[1]);
        add(&sums->accurate, rewards[0] > rewards[1]);
        add(&sums->chosen_log_prob, pair.chosen);
        add(&sums->rejected_log_prob, pair.rejected);
    }
    sums->margin = (struct tune_preference_mean){sums->chosen_reward.sum - sums->rejected_reward.sum, sums->chosen_reward.count};
    return batch->B / 2;
}

static int add_answers(const struct tune_preference_options *o, const struct tune_batch *batch, const double *policy,
                       const double *reference, double kl, double *factors, struct tune_preference_sums *sums, double *loss)
{
    struct tune_preference_mean reward[2] = {{0}}, log_prob[2] = {{0}}; /* undesirable, desirable */
    if (batch->sequences != 1 || !batch->label_of)
        return tune_error_set("the loss kto needs one labelled sequence of each row, and the batch has %d", batch->sequences);
    for (int b = 0; b < batch->B; b++) {
        bool desirable = batch->label_of[b] > 0;
        double d, score = policy[b] - reference[b], one = tune_preference_answer(o, desirable, score, kl, &d);
        if (!isfinite(score) || !isfinite(one))
            return tune_error_set("the loss of the answer in row %lld is not finite: log-probabilities %g, and %g by the reference, kl %g; "
                                  "lower `lr`, or look for NaN in the model's weights", number_of(batch, b), policy[b], reference[b], kl);
        if (factors)
            factors[b] = -d;
        *loss += one;
        add(&reward[desirable], o->beta * score);
        add(&log_prob[desirable], policy[b]);
    }
    add(&sums->kl, kl);
    for (int k = 0; k < 2; k++)
        if (reward[k].count > 0) {
            add(k ? &sums->chosen_reward : &sums->rejected_reward, reward[k].sum / reward[k].count);
            add(k ? &sums->chosen_log_prob : &sums->rejected_log_prob, log_prob[k].sum / reward[k].count);
        }
    if (reward[0].count > 0 && reward[1].count > 0)
        add(&sums->margin, reward[1].sum / reward[1].count - reward[0].sum / reward[0].count);
    return batch->B;
}

int tune_preference_batch(const struct tune_preference_options *o, const struct tune_batch *batch, const double *policy,
                          const double *reference, double kl, double *factors, struct tune_record *record,
                          struct tune_preference_sums *sums)
{
    double loss = 0;
    if (batch->empty) {
        for (int b = 0; factors && b < batch->B; b++)
            factors[b] = 0;
        return 0;
    }
    int count = tune_preference_needs_kl(o) ? add_answers(o, batch, policy, reference, kl, factors, sums, &loss)
                                            : add_pairs(o, batch, policy, reference, factors, sums, &loss);
    TRY(count);
    sums->loss += loss;
    sums->count += count;
    if (!record)
        return 0;
    TRY(tune_record_divisor(record, count));
    return tune_record_loss(record, loss);
}

int tune_preference_reduce(struct tune_preference_sums *sums, struct tune_comm *comm)
{
    _Static_assert(sizeof *sums % sizeof(double) == 0, "they are all double");
    return comm ? tune_comm_sum(comm, "sums of preferences", &sums->loss, sizeof *sums / sizeof(double)) : 0;
}
