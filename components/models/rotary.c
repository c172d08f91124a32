/* rotary.c - rotary embeddings: reading them from config.json, and their tables. */
#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/try.h"
#include "models/families/family.h"

/* ---- config.json ---- */

/* Get the object with the rotary keys; NULL: there is none. As in transformers 5, "rope_scaling" holds before
 * "rope_parameters", unless it is empty. */
static int rope_object(struct tune_model_config *c, const struct tune_config_reader *r, const cJSON **rope)
{
    const cJSON *new = tune_config_get(r->json, "rope_parameters"), *old = tune_config_get(r->json, "rope_scaling");
    if ((new && !cJSON_IsObject(new)) || (old && !cJSON_IsObject(old)))
        return tune_error_set("%s: \"rope_parameters\" or \"rope_scaling\" is not an object", r->name);
    *rope = old && old->child ? old : new;
    if (*rope == old && new && new->child && !cJSON_Compare(old, new, true))
        tune_model_config_remark(c, "config.json has rope_scaling and rope_parameters, and they differ: rope_scaling holds, as in transformers");
    return 0;
}

/* Read the context before scaling. As in transformers, the key at the top level holds before the one beside the factor, and
 * so does the family's default for it. */
static int read_original(const struct tune_model_config *c, const struct tune_config_reader *r, const cJSON *rope, struct tune_rotary *to)
{
    int usual = tune_family_of(c)->original_positions;
    double original;
    TRY(tune_config_number(r, rope, "original_max_position_embeddings", 2, 1 << 28, c->max_positions, &original));
    TRY(tune_config_number(r, r->json, "original_max_position_embeddings", 2, 1 << 28, usual ? usual : original, &original));
    to->original = (int)original;
    return 0;
}

static double yarn_scale(double factor, double times)
{
    return factor <= 1 ? 1 : 0.1 * times * log(factor) + 1;
}

/* The pair of a head that turns so often within the original context. */
static double yarn_pair(const struct tune_rotary *to, double turns)
{
    return to->dims * log(to->original / (turns * 2 * acos(-1))) / (2 * log(to->theta));
}

/* YaRN (Peng et al. 2023): low and high are the pairs between which it goes from the given to the scaled angles. */
static int read_yarn(const struct tune_config_reader *r, const cJSON *rope, struct tune_rotary *to)
{
    double fast, slow, times, all;
    if (to->theta <= 1)
        return tune_error_set("%s: \"rope_theta\" %g; yarn needs one above 1", r->name, to->theta);
    const cJSON *truncate = tune_config_get(rope, "truncate");
    TRY(tune_config_number(r, rope, "beta_fast", 0, 1e6, 32, &fast));
    TRY(tune_config_number(r, rope, "beta_slow", 0, 1e6, 1, &slow));
    TRY(tune_config_number(r, rope, "mscale", 0, 1e6, 0, &times));
    TRY(tune_config_number(r, rope, "mscale_all_dim", 0, 1e6, 0, &all));
    double scale = times > 0 && all > 0 ? yarn_scale(to->factor, times) / yarn_scale(to->factor, all) : yarn_scale(to->factor, 1);
    TRY(tune_config_number(r, rope, "attention_factor", 0, 1e6, scale, &to->scale));
    if (truncate && !cJSON_IsBool(truncate))
        return tune_error_set("%s: \"truncate\" is not true or false", r->name);
    double low = yarn_pair(to, fast > 0 ? fast : 32), high = yarn_pair(to, slow > 0 ? slow : 1);
    bool whole = !truncate || cJSON_IsTrue(truncate);
    to->low = fmax(whole ? floor(low) : low, 0);
    to->high = fmin(whole ? ceil(high) : high, to->dims - 1);
    to->high += to->low == to->high ? 0.001 : 0;
    return 0;
}

static int read_llama3(const struct tune_config_reader *r, const cJSON *rope, struct tune_rotary *to)
{
    TRY(tune_config_number(r, rope, "low_freq_factor", 1e-6, 1e6, NAN, &to->low));
    TRY(tune_config_number(r, rope, "high_freq_factor", 1e-6, 1e6, NAN, &to->high));
    if (to->high <= to->low)
        return tune_error_set("%s: \"high_freq_factor\" %g is not above \"low_freq_factor\" %g", r->name, to->high, to->low);
    return 0;
}

static int read_divisors(const struct tune_config_reader *r, const cJSON *rope, const char *key, struct tune_rotary *to)
{
    const cJSON *list = tune_config_get(rope, key);
    int count = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;
    if (count != to->dims / 2 || count > TUNE_ROPE_PAIRS)
        return tune_error_set("%s: \"%s\" has %d numbers; expected %d, one for each rotated pair of a head, and at most %d", r->name, key,
                              count, to->dims / 2, TUNE_ROPE_PAIRS);
    for (int i = 0; i < count; i++) {
        const cJSON *number = cJSON_GetArrayItem(list, i);
        if (!cJSON_IsNumber(number) || !(number->valuedouble >= 1e-6 && number->valuedouble <= 1e6))
            return tune_error_set("%s: \"%s\": entry %d is not a number from 1e-6 to 1e6", r->name, key, i);
        to->divisor[i] = (float)number->valuedouble;
    }
    return 0;
}

/* LongRoPE (Ding et al. 2024): one table for batches within the original context, and one for longer batches. */
static int read_longrope(struct tune_model_config *c, const struct tune_config_reader *r, const cJSON *rope, struct tune_rotary *to)
{
    double factor;
    TRY(tune_config_number(r, rope, "factor", 1e-6, 1e6, (double)c->max_positions / to->original, &factor));
    double scale = factor <= 1 ? 1 : sqrt(1 + log(factor) / log(to->original));
    TRY(tune_config_number(r, rope, "attention_factor", 0, 1e6, scale, &to->scale));
    c->long_from = to->original;
    c->rotary[1] = *to;
    TRY(read_divisors(r, rope, "short_factor", to));
    return read_divisors(r, rope, "long_factor", &c->rotary[1]);
}

/* Read the numbers of a head that are rotated. */
static int read_dims(struct tune_model_config *c, const struct tune_config_reader *r, const cJSON *rope, struct tune_rotary *to)
{
    double partial;
    TRY(tune_config_number(r, r->json, "partial_rotary_factor", 0, 1, 1, &partial));
    TRY(tune_config_number(r, rope, "partial_rotary_factor", 0, 1, partial, &partial));
    to->dims = (int)(c->head_dim * partial);
    if (partial != 1 && !tune_family_of(c)->partial_rotary)
        return tune_error_set("%s: \"partial_rotary_factor\" %g is not supported for model_type %s; supported: 1", r->name, partial, c->family);
    if (to->dims < 2 || to->dims % 2 != 0)
        return tune_error_set("%s: \"partial_rotary_factor\" %g rotates %d of %d numbers of a head; expected an even number of them", r->name,
                              partial, to->dims, c->head_dim);
    return 0;
}

int tune_rotary_read(struct tune_model_config *c, const struct tune_config_reader *r, const cJSON *rope, double theta,
                     struct tune_rotary *to)
{
    const char *type;
    TRY(read_dims(c, r, rope, to));
    TRY(tune_config_number(r, rope, "rope_theta", 1, 1e12, theta, &to->theta));
    TRY(tune_config_text(r, rope, "rope_type", &type));
    if (!type)
        TRY(tune_config_text(r, rope, "type", &type));
    static const char *const types[] = {"default", "dynamic", "linear", "llama3", "yarn", "longrope", "su"};
    /* dynamic scaling begins behind max_position_embeddings, where no row reaches */
    static const enum tune_rope kinds[] = {TUNE_ROPE_DEFAULT, TUNE_ROPE_DEFAULT, TUNE_ROPE_LINEAR, TUNE_ROPE_LLAMA3, TUNE_ROPE_YARN,
                                           TUNE_ROPE_LONG, TUNE_ROPE_LONG};
    int kind = 0, kinds_known = tune_family_of(c)->partial_rotary ? 7 : 6;
    while (type && kind < kinds_known && strcmp(type, types[kind]) != 0)
        kind++;
    if (type && tune_family_of(c)->partial_rotary && (kind == 1 || kind == 2 || kind == 3))
        return tune_error_set("%s: rope type \"%s\" is not supported for model_type %s; supported: default, longrope", r->name, type, c->family);
    if (kind == kinds_known)
        return tune_error_set("%s: rope type \"%.40s\" is not supported; supported: default, dynamic, linear, llama3, yarn, longrope",
                              r->name, type);
    to->kind = kinds[kind] == TUNE_ROPE_YARN && tune_family_of(c)->partial_rotary ? TUNE_ROPE_LONG : kinds[kind];
    if (to->kind == TUNE_ROPE_DEFAULT)
        return 0;
    if (to->kind != TUNE_ROPE_LONG)
        TRY(tune_config_number(r, rope, "factor", 1e-6, 1e6, NAN, &to->factor));
    if (to->kind == TUNE_ROPE_LINEAR)
        return 0;
    TRY(read_original(c, r, rope, to));
    return to->kind == TUNE_ROPE_LLAMA3 ? read_llama3(r, rope, to) : to->kind == TUNE_ROPE_YARN ? read_yarn(r, rope, to)
                                                                                               : read_longrope(c, r, rope, to);
}

int tune_rotary_read_one(struct tune_model_config *c, const struct tune_config_reader *r, const struct tune_family *family)
{
    double theta;
    const cJSON *rope = NULL;
    TRY(rope_object(c, r, &rope));
    TRY(tune_config_number(r, r->json, "rope_theta", 1, 1e12, family->theta > 0 ? family->theta : 10000, &theta));
    return tune_rotary_read(c, r, rope, theta, &c->rotary[0]);
}

/* ---- tables ---- */

/* The inverse frequency of pair i, in float32 as in transformers. */
static float inverse_frequency(const struct tune_rotary *r, int i)
{
    float frequency = powf((float)r->theta, (float)(2 * i) / (float)r->dims), inverse = 1.0f / frequency;
    float factor = (float)r->factor;
    if (r->kind == TUNE_ROPE_LINEAR)
        return inverse / factor;
    if (r->kind == TUNE_ROPE_LLAMA3) {
        const float two_pi = 6.28318530717958648f;
        float wave = two_pi / inverse, original = (float)r->original;
        if (wave > original / (float)r->low)
            return inverse / factor;
        if (wave < original / (float)r->high)
            return inverse;
        float s = (original / wave - (float)r->low) / (float)(r->high - r->low);
        return (1 - s) * inverse / factor + s * inverse;
    }
    if (r->kind == TUNE_ROPE_YARN) {
        float ramp = ((float)i - (float)r->low) / (float)(r->high - r->low);
        float given = 1 - fminf(fmaxf(ramp, 0), 1);
        return 1.0f / (factor * frequency) * (1 - given) + inverse * given;
    }
    return r->kind == TUNE_ROPE_LONG ? 1.0f / (r->divisor[i] * frequency) : inverse;
}

static void fill_table(const struct tune_rotary *r, int T, float *table)
{
    int half = r->dims / 2;
    double scale = r->kind == TUNE_ROPE_YARN || r->kind == TUNE_ROPE_LONG ? r->scale : 1;
    for (int i = 0; i < half; i++) {
        float inverse = inverse_frequency(r, i);
        /* float32 angle as in transformers, then its sine in double */
        for (int t = 0; t < T; t++) {
            float angle = (float)t * inverse;
            table[(int64_t)t * r->dims + i] = (float)(cos((double)angle) * scale);
            table[(int64_t)t * r->dims + half + i] = (float)(sin((double)angle) * scale);
        }
    }
}

void tune_rope_table(const struct tune_model_config *c, int T, float *table)
{
    for (int i = 0; i < 2; table += (int64_t)T * c->rotary[i++].dims)
        fill_table(&c->rotary[i], T, table);
}

int64_t tune_rope_count(const struct tune_model_config *c, int T)
{
    return (int64_t)T * (c->rotary[0].dims + c->rotary[1].dims);
}
