/* tune_task_read.c - a task from the keys of its file. What is not understood is refused with file and line. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/nearest.h"
#include "core/print.h"
#include "evaluators/tasks/parts.h"

const char *const tune_task_kinds[TASK_KINDS] = {"multiple_choice", "loglikelihood", "generate_until", "loglikelihood_rolling"};

enum { CHOICES = 1 << TASK_MULTIPLE_CHOICE, LIKELY = 1 << TASK_LOGLIKELIHOOD, ANSWERS = 1 << TASK_GENERATE, TEXTS = 1 << TASK_ROLLING };
const struct task_metric_info tune_task_metrics[TASK_METRIC_KINDS] = {
    [TASK_ACC] = {"acc", CHOICES | LIKELY, "mean", 0, true},
    [TASK_ACC_NORM] = {"acc_norm", CHOICES, "mean", 0, true},
    [TASK_ACC_BYTES] = {"acc_bytes", CHOICES, "mean", 0, true},
    [TASK_EXACT_MATCH] = {"exact_match", CHOICES | ANSWERS, "mean", 0, true},
    [TASK_PERPLEXITY] = {"perplexity", LIKELY, "perplexity", 100000, false},
    [TASK_F1] = {"f1", CHOICES, "f1", 100000, false},
    [TASK_BLEU] = {"bleu", ANSWERS, "bleu", 100, false},
    [TASK_CHRF] = {"chrf", ANSWERS, "chrf", 100, false},
    [TASK_WORD_PERPLEXITY] = {"word_perplexity", TEXTS, "weighted_perplexity", 0, false},
    [TASK_BYTE_PERPLEXITY] = {"byte_perplexity", TEXTS, "weighted_perplexity", 0, false},
    [TASK_BITS_PER_BYTE] = {"bits_per_byte", TEXTS, "bits_per_byte", 0, false},
};

/* Keys that change no number, or that are read here; the others are refused. */
static const char *const known[] = {
    "task", "task_alias", "tag", "group", "group_alias", "dataset_path", "dataset_name", "dataset_kwargs", "training_split",
    "validation_split", "test_split", "fewshot_split", "process_docs", "doc_to_text", "doc_to_target", "doc_to_choice", "description",
    "target_delimiter", "fewshot_delimiter", "fewshot_config", "num_fewshot", "metric_list", "output_type", "generation_kwargs", "repeats",
    "filter_list", "should_decontaminate", "doc_to_decontamination_query", "metadata", "unsafe_code"};

void *tune_task_take(struct task *t, size_t size)
{
    void *memory = tune_pool_take(&t->pool, size);
    if (!memory)
        tune_error_no_memory("the questions of %s", t->name ? t->name : "a task");
    return memory;
}

/* ---- values of keys ---- */
static int python(const struct task_entry *e, const struct tune_node *node, const char *key)
{
    struct task_entry at = {key, node, e->document};
    return tune_task_entry_fail(&at, "%s: !function %s is Python code, which is not run here; write it as a template, or change the rows", key,
                           node->value.text);
}

/* A text; absent: *to stays. A number is spelled. */
static int text_of(const struct task *t, const char *key, const char **to)
{
    const struct task_entry *e = tune_task_config_get(&t->config, key);
    if (!e)
        return 0;
    if (e->node->type != TUNE_NODE_SCALAR)
        return tune_task_entry_fail(e, "%s: expected a text", key);
    if (e->node->function)
        return python(e, e->node, key);
    *to = e->node->value.type == TUNE_VALUE_TEXT ? e->node->value.text : e->node->written;
    return 0;
}

static int member_text(const struct task_entry *e, const struct tune_node *map, const char *key, const char **to)
{
    const struct tune_node *node = tune_node_get(map, key);
    if (tune_node_none(node))
        return 0;
    if (node->type != TUNE_NODE_SCALAR)
        return tune_document_fail(e->document, node, "%s: expected a text", key);
    if (node->function)
        return python(e, node, key);
    *to = node->value.type == TUNE_VALUE_TEXT ? node->value.text : node->written;
    return 0;
}

/* Check a member that can only have one value. */
static int member_flag(const struct task_entry *e, const struct tune_node *map, const char *key, bool *to)
{
    const struct tune_node *node = tune_node_get(map, key);
    if (tune_node_none(node))
        return 0;
    if (node->type != TUNE_NODE_SCALAR || node->value.type != TUNE_VALUE_BOOL)
        return tune_document_fail(e->document, node, "%s: expected true or false", key);
    *to = node->value.boolean;
    return 0;
}

static int member_whole(const struct task_entry *e, const struct tune_node *map, const char *key, int64_t *to)
{
    const struct tune_node *node = tune_node_get(map, key);
    if (tune_node_none(node))
        return 0;
    if (node->type != TUNE_NODE_SCALAR || node->value.type != TUNE_VALUE_INT)
        return tune_document_fail(e->document, node, "%s: expected a whole number", key);
    *to = node->value.integer;
    return 0;
}

/* Only these members; a value of a map is a text, a number, ... */
static int members(const struct task_entry *e, const struct tune_node *map, const char *what, const char *names)
{
    return tune_document_map(e->document, map, what, names);
}

/* ---- fields ---- */
static int fixed_list(struct task *t, const struct task_entry *e, const struct tune_node *node, struct task_field *f)
{
    f->kind = TASK_FIXED;
    f->value = (struct task_value){.type = TASK_LIST, .count = node->count};
    f->value.items = tune_task_take(t, (size_t)node->count * sizeof *f->value.items);
    TRY(f->value.items ? 0 : -1);
    for (int i = 0; i < node->count; i++) {
        const struct tune_node *n = node->items[i];
        if (n->type != TUNE_NODE_SCALAR || n->value.type != TUNE_VALUE_TEXT || n->function)
            return tune_document_fail(e->document, n, "%s: expected texts; put numbers and yes and no in quotes", f->name);
        f->value.items[i] = (struct task_value){.type = TASK_TEXT, .text = {n->value.text, strlen(n->value.text)}};
    }
    return 0;
}

static int field_of(struct task *t, const struct task_entry *e, const struct tune_node *node, const char *name, struct task_field *f)
{
    char where[TUNE_PATH_MAX + 64];
    f->name = name;
    if (tune_node_none(node))
        return 0;
    if (node->type != TUNE_NODE_SCALAR) /* a map's values are its choices */
        return fixed_list(t, e, node, f);
    if (node->function)
        return python(e, node, name);
    if (node->value.type == TUNE_VALUE_INT) {
        f->kind = TASK_FIXED;
        f->value = (struct task_value){.type = TASK_WHOLE, .whole = node->value.integer};
        return 0;
    }
    if (node->value.type != TUNE_VALUE_TEXT)
        return tune_document_fail(e->document, node, "%s: expected a template, a column's name or a list", name);
    f->kind = TASK_NAMED;
    f->text = node->value.text;
    snprintf(where, sizeof where, "%s:%d: %s", e->document->path, node->line, name);
    f->jinja = tune_jinja_open_plain(where, f->text, strlen(f->text));
    return f->jinja ? 0 : -1;
}

static int config_field(struct task *t, const char *key, struct task_field *f)
{
    const struct task_entry *e = tune_task_config_get(&t->config, key);
    f->name = key;
    return e ? field_of(t, e, e->node, key, f) : 0;
}

/* ---- what does not count ---- */
static int read_ignored(const struct task_entry *e, const struct tune_node *node, struct task_ignored *g)
{
    const struct tune_node *list = tune_node_get(node, "regexes_to_ignore");
    TRY(member_flag(e, node, "ignore_case", &g->letters));
    TRY(member_flag(e, node, "ignore_punctuation", &g->punctuation));
    TRY(member_flag(e, node, "ignore_numbers", &g->numbers));
    if (tune_node_none(list))
        return 0;
    if (list->type != TUNE_NODE_LIST || list->count > TASK_REGEXES)
        return tune_document_fail(e->document, list, "regexes_to_ignore: expected a list of at most %d expressions", TASK_REGEXES);
    for (; g->count < list->count; g->count++) {
        const struct tune_node *n = list->items[g->count];
        if (n->type != TUNE_NODE_SCALAR || n->value.type != TUNE_VALUE_TEXT)
            return tune_document_fail(e->document, n, "regexes_to_ignore: expected texts");
        g->regexes[g->count] = tune_regular_new(n->value.text);
        if (!g->regexes[g->count])
            return tune_error_prefix("%s:%d: regexes_to_ignore: ", e->document->path, n->line);
    }
    return 0;
}

/* ---- filters ---- */
/* The members of a filter that are read for its kind. */
static int check_step(const struct task *t, const struct task_entry *e, const struct tune_node *node, enum task_step_kind kind)
{
    static const char *const known_of[TASK_STEP_KINDS] = {
        [TASK_REGEX] = "function|regex_pattern|group_select|fallback",
        [TASK_MULTI_CHOICE] = "function|regex_pattern|group_select|fallback|ignore_case|ignore_punctuation|regexes_to_ignore",
        [TASK_TAKE_SOME] = "function|k"};
    int64_t some = 0;
    TRY(members(e, node, "a filter", known_of[kind] ? known_of[kind] : "function"));
    if (kind != TASK_TAKE_SOME)
        return 0;
    TRY(member_whole(e, node, "k", &some));
    return some >= 1 && some <= t->repeats ? 0 : tune_document_fail(e->document, node, "take_first_k: k is %" PRId64 "; expected 1 to %" PRId64
                                                                    ", which is repeats", some, t->repeats);
}

static int read_step(struct task *t, const struct task_entry *e, const struct tune_node *node, struct task_step *s)
{
    static const char *const names[TASK_STEP_KINDS] = {"regex", "multi_choice_regex", "take_first", "take_first_k", "majority_vote",
                                                       "remove_whitespace", "lowercase", "uppercase"};
    const char *name = NULL, *regex = "#### (\\-?[0-9\\.\\,]+)";
    char hint[TUNE_HINT];
    TRY(member_text(e, node, "function", &name));
    if (!name)
        return tune_document_fail(e->document, node, "filter_list: expected a function, such as \"function: take_first\"");
    int kind = tune_name_find(names, TASK_STEP_KINDS, name);
    if (kind < 0)
        return tune_document_fail(e->document, node, "filter_list: the filter \"%s\" is not known here%s; known are regex, multi_choice_regex, "
                                  "take_first, take_first_k, majority_vote, remove_whitespace, lowercase and uppercase", name,
                                  tune_nearest_hint(name, names, TASK_STEP_KINDS, hint));
    TRY(check_step(t, e, node, kind));
    s->kind = kind;
    s->fallback = "[invalid]";
    if (kind != TASK_REGEX && kind != TASK_MULTI_CHOICE)
        return 0;
    TRY(member_text(e, node, "regex_pattern", &regex));
    TRY(member_text(e, node, "fallback", &s->fallback));
    TRY(member_whole(e, node, "group_select", &s->group));
    TRY(read_ignored(e, node, &s->ignored));
    s->regex = tune_regular_new(regex);
    return s->regex ? 0 : tune_error_prefix("%s:%d: regex_pattern: ", e->document->path, node->line);
}

static int read_filters(struct task *t)
{
    const struct task_entry *e = tune_task_config_get(&t->config, "filter_list");
    t->filters[0] = (struct task_filter){.name = "none", .count = 0};
    t->filter_count = 1;
    if (!e)
        return 0;
    if (t->kind != TASK_GENERATE)
        return tune_task_entry_fail(e, "filter_list: filters are read for output_type generate_until only");
    if (e->node->type != TUNE_NODE_LIST || e->node->count < 1 || e->node->count > TASK_FILTERS)
        return tune_task_entry_fail(e, "filter_list: expected a list of 1 to %d filters", TASK_FILTERS);
    t->filter_count = e->node->count;
    for (int i = 0; i < e->node->count; i++) {
        const struct tune_node *node = e->node->items[i];
        struct task_filter *f = &t->filters[i];
        const struct tune_node *steps = tune_node_get(node, "filter");
        f->name = NULL;
        TRY(members(e, node, "an entry of filter_list", "name|filter"));
        TRY(member_text(e, node, "name", &f->name));
        if (!f->name || tune_node_none(steps) || steps->type != TUNE_NODE_LIST || steps->count > TASK_STEPS)
            return tune_document_fail(e->document, node, "filter_list: expected a name, and a filter of at most %d functions", TASK_STEPS);
        bool first = false;
        for (; f->count < steps->count; f->count++) {
            TRY(read_step(t, e, steps->items[f->count], &f->steps[f->count]));
            first = first || f->steps[f->count].kind == TASK_TAKE_FIRST;
        }
        if (!first)
            return tune_document_fail(e->document, node, "filter_list: %s has no take_first, so it gives a list and no answer; add "
                                      "\"- function: take_first\"", f->name);
    }
    return 0;
}

/* ---- metrics ---- */
static int read_metric(struct task *t, const struct task_entry *e, const struct tune_node *node, struct task_metric *m)
{
    const char *name = NULL, *names[TASK_METRIC_KINDS], *aggregation = NULL;
    char list[200] = "", hint[TUNE_HINT];
    int count = 0, kind = -1;
    TRY(node->type == TUNE_NODE_MAP ? 0 : tune_document_fail(e->document, node, "metric_list: expected \"- metric: NAME\""));
    TRY(member_text(e, node, "metric", &name));
    TRY(member_text(e, node, "aggregation", &aggregation));
    for (int k = 0; k < TASK_METRIC_KINDS; k++)
        if (tune_task_metrics[k].kinds >> t->kind & 1) {
            names[count++] = tune_task_metrics[k].name;
            tune_append(list, sizeof list, "%s%s", *list ? ", " : "", tune_task_metrics[k].name);
            kind = name && !strcmp(name, tune_task_metrics[k].name) ? k : kind;
        }
    if (!name || kind < 0)
        return tune_document_fail(e->document, node, "metric_list: %s is no metric that is read here for %s%s; there are %s", name ? name : "(none)",
                                  tune_task_kinds[t->kind], name ? tune_nearest_hint(name, names, count, hint) : "", list);
    if (aggregation && strcmp(aggregation, tune_task_metrics[kind].aggregation) != 0)
        return tune_document_fail(e->document, node, "metric_list: %s is aggregated as %s here, not as %s", name, tune_task_metrics[kind].aggregation,
                                  aggregation);
    m->kind = kind;
    if (kind != TASK_EXACT_MATCH || t->kind != TASK_GENERATE)
        return members(e, node, "a metric", "metric|aggregation|higher_is_better");
    TRY(members(e, node, "a metric", "metric|aggregation|higher_is_better|ignore_case|ignore_punctuation|ignore_numbers|regexes_to_ignore"));
    return read_ignored(e, node, &m->ignored);
}

static int read_metrics(struct task *t)
{
    static const struct { int count; enum task_metric_kind kinds[3]; } usual[] = {
        [TASK_MULTIPLE_CHOICE] = {2, {TASK_ACC, TASK_ACC_NORM}}, [TASK_LOGLIKELIHOOD] = {2, {TASK_PERPLEXITY, TASK_ACC}},
        [TASK_GENERATE] = {1, {TASK_EXACT_MATCH}}, [TASK_ROLLING] = {3, {TASK_WORD_PERPLEXITY, TASK_BYTE_PERPLEXITY, TASK_BITS_PER_BYTE}}};
    const struct task_entry *e = tune_task_config_get(&t->config, "metric_list");
    if (!e) {
        t->metric_count = usual[t->kind].count;
        for (int i = 0; i < t->metric_count; i++)
            t->metrics[i].kind = usual[t->kind].kinds[i];
        return 0;
    }
    if (e->node->type != TUNE_NODE_LIST || e->node->count < 1 || e->node->count > TASK_METRICS)
        return tune_task_entry_fail(e, "metric_list: expected a list of 1 to %d metrics", TASK_METRICS);
    for (; t->metric_count < e->node->count; t->metric_count++)
        TRY(read_metric(t, e, e->node->items[t->metric_count], &t->metrics[t->metric_count]));
    return 0;
}

/* ---- generation and examples ---- */
static int read_until(struct task *t, const struct task_entry *e, const struct tune_node *node)
{
    const struct tune_node *const *items = node->type == TUNE_NODE_LIST ? node->items : &node;
    int count = node->type == TUNE_NODE_LIST ? node->count : 1;
    if (count >= TASK_UNTIL)
        return tune_document_fail(e->document, node, "until: %d texts; at most %d are read here", count, TASK_UNTIL - 1);
    for (int i = 0; i < count; i++) {
        if (items[i]->type != TUNE_NODE_SCALAR || items[i]->value.type != TUNE_VALUE_TEXT)
            return tune_document_fail(e->document, items[i], "until: expected texts");
        if (*items[i]->value.text) /* an empty one ends nothing */
            t->until[t->until_count++] = items[i]->value.text;
    }
    return 0;
}

static int read_generation(struct task *t)
{
    static const char *const lengths[] = {"max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens"};
    const struct task_entry *e = tune_task_config_get(&t->config, "generation_kwargs");
    const struct tune_node *node = e ? e->node : NULL, *until = tune_node_get(node, "until"), *heat = tune_node_get(node, "temperature");
    bool sample = false;
    t->max_tokens = 256;
    if (t->kind != TASK_GENERATE)
        return 0;
    if (!e || tune_node_none(until)) {
        t->until[t->until_count++] = t->fewshot_delimiter;
        if (!e)
            return 0;
    }
    TRY(members(e, node, "generation_kwargs", "until|do_sample|temperature|max_gen_toks|max_new_tokens|max_tokens|max_completion_tokens"));
    TRY(member_flag(e, node, "do_sample", &sample));
    bool hot = heat && !tune_node_none(heat) && !(heat->value.type == TUNE_VALUE_INT && heat->value.integer == 0) &&
               !(heat->value.type == TUNE_VALUE_FLOAT && heat->value.number == 0) && !(heat->value.type == TUNE_VALUE_TEXT && !strcmp(heat->value.text, "0"));
    if (sample || hot)
        return tune_document_fail(e->document, sample ? tune_node_get(node, "do_sample") : heat,
                                  "generation_kwargs: answers are greedy here; write do_sample: false and temperature: 0");
    if (!tune_node_none(until))
        TRY(read_until(t, e, until));
    for (int i = 3; i >= 0; i--) { /* the first of these names counts */
        int64_t most = t->max_tokens;
        TRY(member_whole(e, node, lengths[i], &most));
        if (most < 1 || most > 1 << 20)
            return tune_document_fail(e->document, tune_node_get(node, lengths[i]), "%s: expected at least 1", lengths[i]);
        t->max_tokens = (int)most;
    }
    return 0;
}

static int read_examples(struct task *t, int64_t shots)
{
    const struct task_entry *e = tune_task_config_get(&t->config, "fewshot_config"), *n = tune_task_config_get(&t->config, "num_fewshot");
    const char *sampler = NULL;
    t->shot_target_delimiter = t->target_delimiter;
    t->shot_delimiter = t->fewshot_delimiter;
    if (n && (n->node->type != TUNE_NODE_SCALAR || n->node->value.type != TUNE_VALUE_INT || n->node->value.integer < 0))
        return tune_task_entry_fail(n, "num_fewshot: expected a whole number from 0");
    t->shots = n ? n->node->value.integer : 0;
    t->fixed_shots = n && t->shots == 0 && shots > 0;
    t->shots = shots >= 0 && !t->fixed_shots ? shots : t->shots;
    if (!e)
        return 0;
    TRY(members(e, e->node, "fewshot_config", "sampler|split|doc_to_text|doc_to_target|doc_to_choice|fewshot_delimiter|target_delimiter"));
    TRY(member_text(e, e->node, "sampler", &sampler));
    if (sampler && strcmp(sampler, "first_n") != 0 && strcmp(sampler, "default") != 0)
        return tune_task_entry_fail(e, "fewshot_config: the sampler %s is not known here; known are first_n and default", sampler);
    t->first_n = sampler && !strcmp(sampler, "first_n");
    TRY(member_text(e, e->node, "split", &t->fewshot_split));
    TRY(member_text(e, e->node, "fewshot_delimiter", &t->shot_delimiter));
    TRY(member_text(e, e->node, "target_delimiter", &t->shot_target_delimiter));
    TRY(field_of(t, e, tune_node_get(e->node, "doc_to_text"), "doc_to_text", &t->shot_text));
    TRY(field_of(t, e, tune_node_get(e->node, "doc_to_target"), "doc_to_target", &t->shot_target));
    return field_of(t, e, tune_node_get(e->node, "doc_to_choice"), "doc_to_choice", &t->shot_choice);
}

/* ---- the rest ---- */
static int check_keys(const struct task *t)
{
    enum { KNOWN = sizeof known / sizeof *known };
    char hint[TUNE_HINT];
    for (int i = 0; i < t->config.count; i++) {
        const struct task_entry *e = &t->config.entries[i];
        bool off = tune_node_none(e->node) || (e->node->type == TUNE_NODE_SCALAR && e->node->value.type == TUNE_VALUE_BOOL && !e->node->value.boolean);
        if (e->node->function && strcmp(e->key, "process_docs") != 0 && strcmp(e->key, "doc_to_decontamination_query") != 0)
            return python(e, e->node, e->key);
        if (tune_name_find(known, KNOWN, e->key) < 0 && !off)
            return tune_task_entry_fail(e, "the key %s is not read here%s", e->key, tune_nearest_hint(e->key, known, KNOWN, hint));
    }
    return 0;
}

static int read_process(struct task *t)
{
    const struct task_entry *e = tune_task_config_get(&t->config, "process_docs");
    if (!e)
        return 0;
    if (!e->node->function)
        return tune_task_entry_fail(e, "process_docs: expected a function");
    t->hellaswag = !strcmp(t->name, "hellaswag") && !strcmp(e->node->value.text, "utils.process_docs");
    return t->hellaswag ? 0 : tune_task_entry_fail(e, "process_docs: !function %s is Python code, which is not run here; change the rows as it "
                                              "does and leave the key out (that of the task hellaswag is built in)", e->node->value.text);
}

static int read_data(struct task *t)
{
    const struct task_entry *e = tune_task_config_get(&t->config, "dataset_kwargs");
    TRY(text_of(t, "dataset_path", &t->dataset_path));
    TRY(text_of(t, "dataset_name", &t->dataset_name));
    TRY(text_of(t, "training_split", &t->splits[0]));
    TRY(text_of(t, "validation_split", &t->splits[1]));
    TRY(text_of(t, "test_split", &t->splits[2]));
    TRY(text_of(t, "fewshot_split", &t->fewshot_split));
    t->data_files = e ? tune_node_get(e->node, "data_files") : NULL;
    t->data_files = tune_node_none(t->data_files) ? NULL : t->data_files;
    t->document = e ? e->document : NULL;
    if (!t->splits[1] && !t->splits[2])
        return tune_error_usage("%s: there is neither a test_split nor a validation_split to judge the model by", t->path);
    return 0;
}

static int read_kind(struct task *t)
{
    const struct task_entry *e = tune_task_config_get(&t->config, "output_type"), *r = tune_task_config_get(&t->config, "repeats");
    const char *name = "generate_until";
    TRY(text_of(t, "output_type", &name));
    int kind = tune_name_find(tune_task_kinds, TASK_KINDS, name);
    if (kind < 0)
        return tune_task_entry_fail(e, "output_type: %s is not read here; known are multiple_choice, loglikelihood, generate_until and loglikelihood_rolling", name);
    t->kind = kind;
    t->repeats = r && r->node->value.type == TUNE_VALUE_INT ? r->node->value.integer : 1;
    if (r && (r->node->value.type != TUNE_VALUE_INT || t->repeats < 1))
        return tune_task_entry_fail(r, "repeats: expected a whole number from 1");
    return 0;
}

int tune_task_read(struct task *t, struct task_config *config, int64_t shots)
{
    const struct task_entry *e;
    t->config = *config;
    *config = (struct task_config){0};
    t->path = t->config.documents[0]->path;
    t->group = -1;
    t->target_delimiter = " ";
    t->fewshot_delimiter = "\n\n";
    t->version = "Yaml";
    TRY(text_of(t, "task", &t->name));
    if (!t->name)
        return tune_error_usage("%s: the key task, which names the task, is missing", t->path);
    t->alias = t->name;
    TRY(check_keys(t));
    TRY(text_of(t, "task_alias", &t->alias));
    TRY(text_of(t, "target_delimiter", &t->target_delimiter));
    TRY(text_of(t, "fewshot_delimiter", &t->fewshot_delimiter));
    if ((e = tune_task_config_get(&t->config, "metadata")) && e->node->type == TUNE_NODE_MAP)
        TRY(member_text(e, e->node, "version", &t->version));
    TRY(read_kind(t));
    TRY(read_process(t));
    TRY(read_data(t));
    TRY(config_field(t, "doc_to_text", &t->text));
    TRY(config_field(t, "doc_to_target", &t->target));
    TRY(config_field(t, "doc_to_choice", &t->choice));
    TRY(config_field(t, "description", &t->description));
    bool text = t->text.kind != TASK_ABSENT || t->kind == TASK_ROLLING;
    if (!text || t->target.kind == TASK_ABSENT || (t->kind == TASK_MULTIPLE_CHOICE && t->choice.kind == TASK_ABSENT))
        return tune_error_usage("%s: the task needs doc_to_text, doc_to_target%s", t->path, t->kind == TASK_MULTIPLE_CHOICE ? " and doc_to_choice" : "");
    TRY(read_filters(t));
    TRY(read_metrics(t));
    TRY(read_generation(t));
    TRY(read_examples(t, shots));
    t->shots = t->kind == TASK_ROLLING ? 0 : t->shots; /* a text has no prompt */
    return 0;
}

static void free_ignored(struct task_ignored *g)
{
    for (int i = 0; i < g->count; i++)
        tune_regular_free(g->regexes[i]);
}

void tune_task_free(struct task *t)
{
    struct task_field *const fields[] = {&t->text, &t->target, &t->choice, &t->description, &t->shot_text, &t->shot_target, &t->shot_choice};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        tune_jinja_free(fields[i]->jinja);
    for (int f = 0; f < TASK_FILTERS; f++)
        for (int s = 0; s < TASK_STEPS; s++) {
            tune_regular_free(t->filters[f].steps[s].regex);
            free_ignored(&t->filters[f].steps[s].ignored);
        }
    for (int m = 0; m < TASK_METRICS; m++)
        free_ignored(&t->metrics[m].ignored);
    tune_rows_close(&t->rows);
    tune_rows_close(&t->examples);
    tune_pool_free(t->pool);
    tune_task_config_free(&t->config);
}
