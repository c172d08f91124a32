/* token_rules.c - tokens that are ruled out or forced. */
#include "generators/token_rules.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/try.h"
#include "files/file.h"

int tune_ids_add(struct tune_ids *list, int32_t id)
{
    int32_t *more = realloc(list->ids, ((size_t)list->count + 1) * sizeof *more);
    if (!more)
        return tune_error_no_memory("a list of ids");
    list->ids = more;
    list->ids[list->count++] = id;
    return 0;
}

bool tune_token_rules_any(const struct tune_token_rules *r)
{
    bool shortest = r->ends.count > 0 && (r->min_length > 0 || r->min_new_tokens > 0);
    return r->no_repeat_ngram_size > 0 || shortest || r->suppress.count > 0 || r->begin_suppress.count > 0 ||
           r->forced_bos.count > 0 || r->forced_eos.count > 0 || r->bad_words.count > 0;
}

static int check_list(const char *name, struct tune_ids list, int V, const char *file)
{
    static const char text[] = "has the id %d; expected ids from 0 to %d, which the model has";
    char what[sizeof text + 32];
    for (int i = 0; i < list.count; i++) {
        snprintf(what, sizeof what, text, (int)list.ids[i], V - 1);
        if (list.ids[i] < 0 || list.ids[i] >= V)
            return file ? tune_error_set("%s: \"%s\" %s", file, name, what) : tune_error_usage("`%s` %s", name, what);
    }
    return list.count > 0 ? 0 : tune_error_usage("`%s` has an empty list; expected at least one id", name);
}

int tune_token_rules_check(const struct tune_token_rules *r, int V, const char *file)
{
    for (int i = 0; i < r->bad_words.count; i += r->bad_words.ids[i] + 1)
        TRY(check_list("bad_words_ids", (struct tune_ids){r->bad_words.ids + i + 1, r->bad_words.ids[i]}, V, file));
    TRY(r->forced_bos.count ? check_list("forced_bos_token_id", r->forced_bos, V, file) : 0);
    return r->forced_eos.count ? check_list("forced_eos_token_id", r->forced_eos, V, file) : 0;
}

int tune_token_rules_trim(struct tune_token_rules *r, int V)
{
    struct tune_ids *lists[] = {&r->suppress, &r->begin_suppress};
    int dropped = 0;
    for (int i = 0; i < 2; i++) {
        int kept = 0;
        for (int k = 0; k < lists[i]->count; k++)
            if (lists[i]->ids[k] >= 0 && lists[i]->ids[k] < V)
                lists[i]->ids[kept++] = lists[i]->ids[k];
        dropped += lists[i]->count - kept;
        lists[i]->count = kept;
    }
    return dropped;
}

static int copy_list(struct tune_ids *list)
{
    const int32_t *from = list->ids;
    list->ids = NULL;
    if (list->count == 0)
        return 0;
    list->ids = tune_zeroed((size_t)list->count, sizeof *list->ids, "a list of ids");
    if (!list->ids)
        return -1;
    memcpy(list->ids, from, (size_t)list->count * sizeof *from);
    return 0;
}

int tune_token_rules_copy(struct tune_token_rules *to, const struct tune_token_rules *from)
{
    *to = *from;
    struct tune_ids *lists[] = {&to->suppress, &to->begin_suppress, &to->forced_bos, &to->forced_eos, &to->bad_words, &to->ends};
    int status = 0;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (status < 0)
            *lists[i] = (struct tune_ids){0};
        else
            status = copy_list(lists[i]);
    }
    if (status < 0)
        tune_token_rules_free(to);
    return status;
}

void tune_token_rules_hash(const struct tune_token_rules *r, uint64_t *hash)
{
    const struct tune_ids *lists[] = {&r->suppress, &r->begin_suppress, &r->forced_bos, &r->forced_eos, &r->bad_words, &r->ends};
    const int numbers[] = {r->no_repeat_ngram_size, r->min_length, r->min_new_tokens, r->max_length, r->max_new_tokens};
    *hash = tune_hash64(numbers, sizeof numbers, *hash);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        *hash = tune_hash64(&lists[i]->count, sizeof lists[i]->count, *hash);
        if (lists[i]->count > 0)
            *hash = tune_hash64(lists[i]->ids, (size_t)lists[i]->count * sizeof *lists[i]->ids, *hash);
    }
}

void tune_token_rules_free(struct tune_token_rules *r)
{
    free(r->suppress.ids);
    free(r->begin_suppress.ids);
    free(r->forced_bos.ids);
    free(r->forced_eos.ids);
    free(r->bad_words.ids);
    free(r->ends.ids);
    *r = (struct tune_token_rules){0};
}

/* ---- the rules ---- */

static void rule_out(const struct tune_ids *list, float *score, int V)
{
    for (int i = 0; i < list->count; i++)
        if (list->ids[i] >= 0 && list->ids[i] < V)
            score[list->ids[i]] = -FLT_MAX;
}

/* All other tokens are ruled out, and these are equally likely. */
static void force(const struct tune_ids *list, float *score, int V)
{
    for (int i = 0; i < V; i++)
        score[i] = -FLT_MAX;
    for (int i = 0; i < list->count; i++)
        score[list->ids[i]] = 0;
}

/* Tokens that followed the last n - 1 tokens before. */
static void no_repeated_ngram(int n, const int32_t *past, int count, float *score, int V)
{
    const int32_t *last = past + count - (n - 1);
    for (int i = 0; i + n <= count; i++)
        if (memcmp(past + i, last, (size_t)(n - 1) * sizeof *past) == 0 && past[i + n - 1] < V)
            score[past[i + n - 1]] = -FLT_MAX;
}

static bool ends_answer(const struct tune_token_rules *r, int32_t id)
{
    for (int i = 0; i < r->ends.count; i++)
        if (r->ends.ids[i] == id)
            return true;
    return false;
}

static void no_bad_words(const struct tune_token_rules *r, const int32_t *past, int count, float *score)
{
    for (int i = 0, n; i < r->bad_words.count; i += n + 1) {
        const int32_t *word = r->bad_words.ids + i + 1;
        n = r->bad_words.ids[i];
        bool completes = n == 1 || (n - 1 <= count && memcmp(word, past + count - (n - 1), (size_t)(n - 1) * sizeof *word) == 0);
        if (completes && !(n == 1 && ends_answer(r, word[0])))
            score[word[n - 1]] = -FLT_MAX;
    }
}

void tune_token_rules_apply(const struct tune_token_rules *r, const int32_t *past, int count, int prompt, float *score, int V)
{
    int n = r->no_repeat_ngram_size, last = r->max_new_tokens > 0 ? prompt + r->max_new_tokens : r->max_length;
    int least = r->min_new_tokens > 0 ? prompt + r->min_new_tokens : r->min_length;
    int begin = prompt + (prompt == 1 && r->forced_bos.count > 0);
    if (n > 0 && count >= n)
        no_repeated_ngram(n, past, count, score, V);
    no_bad_words(r, past, count, score);
    if (count < least)
        rule_out(&r->ends, score, V);
    if (r->forced_bos.count > 0 && count == 1)
        force(&r->forced_bos, score, V);
    if (r->forced_eos.count > 0 && count == last - 1)
        force(&r->forced_eos, score, V);
    rule_out(&r->suppress, score, V);
    if (count == begin)
        rule_out(&r->begin_suppress, score, V);
}
