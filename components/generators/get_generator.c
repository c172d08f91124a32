/* get_generator.c - the decoding loop's parts as the flags say. */
#include "generators/generator.h"

#include "core/array.h"
#include "flags/flags.h"
#include "generators/answers.h"
#include "generators/generation.h"
#include "models/cache.h"

struct tune_generator *tune_get_generator(const struct tune_flags *flags, struct tune_device *dev, struct tune_tokenizer *tok,
                                          struct tune_prompts *prompts, struct tune_model *m, FILE *text, FILE *notes)
{
    struct tune_generator *g = tune_zeroed(1, sizeof *g, "a generator");
    if (!g)
        return NULL;
    bool compares = flags->generate.compare_model;
    g->model = m;
    g->stop_signal = flags->stop_signal;
    g->sides = compares || flags->generate.compare_base ? 2 : 1;
    g->cache = tune_get_cache(flags, m, prompts);
    g->sampler = g->cache ? tune_get_token_sampler(flags, tok, m, prompts) : NULL;
    bool good = g->sampler;
    if (good && compares) {
        g->compared = tune_get_compared_model(flags, dev, tok, prompts);
        g->other = g->compared ? tune_get_cache(flags, g->compared, prompts) : NULL;
        good = g->other;
    }
    g->answers = good ? tune_get_answers(flags, tok, prompts, text, notes) : NULL;
    if (!g->answers) {
        tune_generator_free(g);
        return NULL;
    }
    tune_cache_stop(g->cache, flags->stop_signal); /* a signal ends a long prompt, too */
    if (g->other)
        tune_cache_stop(g->other, flags->stop_signal);
    return g;
}
