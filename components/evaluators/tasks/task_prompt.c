/* task_prompt.c - rows as questions: examples, the prompt, choices, and all of it as tokens, as HFLM has them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "evaluators/tasks/parts.h"
#include "templates/chat_template.h"
#include "tokenizers/tokenizer.h"
#include "tokenizers/unicode.h"

enum { EXAMPLE_SEED = 1234, MESSAGES = 2 }; /* lm-eval's default */

/* A text that grows. */
struct text {
    char *data;
    size_t size, room;
};

static int put(struct text *to, const char *data, size_t size)
{
    TRY(tune_array_reserve(&to->data, &to->room, to->size + size + 1, 1, "a prompt"));
    if (size)
        memcpy(to->data + to->size, data, size);
    to->size += size;
    to->data[to->size] = 0;
    return 0;
}

/* Memory for writing prompts. */
struct maker {
    struct task *t;
    const struct task_writer *w;
    struct text prompt;            /* without a chat template: all of it */
    struct tune_chat_message *messages;
    size_t message_count, message_room;
    struct tune_pool *pool;        /* of the messages of the row at hand */
    struct tune_encoding whole, context;
    struct tune_chat_text chat;
    int64_t *chosen;
};

static int say(struct maker *m, const char *role, struct tune_text content, const char *delimiter)
{
    if (!m->w->chat) {
        TRY(put(&m->prompt, content.data, content.size));
        return put(&m->prompt, delimiter, strlen(delimiter));
    }
    TRY(tune_array_reserve(&m->messages, &m->message_room, m->message_count + 1, sizeof *m->messages, "a prompt"));
    const char *copy = tune_pool_text(&m->pool, content.data, content.size);
    m->messages[m->message_count++] = (struct tune_chat_message){.role = role, .content = {copy, content.size}};
    return copy ? 0 : tune_error_no_memory("a prompt");
}

/* ---- examples ---- */
static const struct task_field *either(const struct task_field *own, const struct task_field *otherwise)
{
    return own->kind == TASK_ABSENT ? otherwise : own;
}

/* The answer of an example. None: *answer.data is NULL. */
static int example_answer(struct task *t, struct task_row *row, struct tune_text *answer)
{
    struct task_value target, choices = {0};
    TRY(tune_task_value_of(t, either(&t->shot_target, &t->target), row, TASK_AS_TARGET, &target));
    const struct task_field *choice = either(&t->shot_choice, &t->choice);
    if (choice->kind != TASK_ABSENT)
        TRY(tune_task_value_of(t, choice, row, TASK_AS_CHOICES, &choices));
    if (target.type == TASK_WHOLE && choices.count > 0) {
        int64_t at = target.whole < 0 ? target.whole + choices.count : target.whole; /* as Python indexes */
        target = at >= 0 && at < choices.count ? choices.items[at] : (struct task_value){.type = TASK_NOTHING};
    } else if (target.type == TASK_LIST)
        target = target.count ? target.items[0] : (struct task_value){.type = TASK_NOTHING};
    if (target.type != TASK_TEXT)
        return tune_error_usage("%s: row %" PRId64 ": doc_to_target gives no text for an example", t->examples_path, row->number);
    *answer = target.text;
    return 0;
}

static int put_example(struct maker *m, int64_t number)
{
    struct task *t = m->t;
    struct task_row row;
    struct task_value question;
    struct tune_text answer;
    int status = tune_task_row_get(t, true, number, &row);
    if (status == 0)
        status = tune_task_value_of(t, either(&t->shot_text, &t->text), &row, TASK_AS_TEXT, &question);
    if (status == 0)
        status = example_answer(t, &row, &answer);
    if (status == 0)
        status = say(m, "user", question.text, answer.size ? t->shot_target_delimiter : "");
    if (status == 0 && answer.size)
        status = say(m, "assistant", answer, t->shot_delimiter);
    tune_task_row_free(&row);
    return status;
}

/* True if a row of the examples is the one that is asked. */
static bool is_asked(const struct task *t, int64_t number, const struct task_row *row)
{
    struct tune_file_row r = tune_rows_get(&t->rows, row->number), e = tune_rows_get(&t->examples, number);
    return r.size == e.size && !memcmp(r.text, e.text, r.size);
}

static bool same_name(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

/* Choose the examples of a row: m->chosen. Where examples may come from the rows that are judged, the row itself is none. */
static int choose_examples(struct maker *m, const struct task_row *row)
{
    struct task *t = m->t;
    bool apart = same_name(t->fewshot_split, t->splits[2]);
    int64_t n = t->shots, found = 0, wanted = n + (apart && !t->first_n);
    if (t->first_n) {
        for (int64_t i = 0; i < t->example_count && found < n; i++)
            if (!apart || !is_asked(t, i, row))
                m->chosen[found++] = i;
    } else {
        if (wanted > t->example_count)
            return tune_error_usage("%s: %" PRId64 " rows, and %" PRId64 " are drawn as examples", t->examples_path, t->example_count, wanted);
        TRY(tune_python_random_sample(&t->random, t->example_count, wanted, m->chosen));
        for (int64_t i = 0; i < wanted; i++)
            if (!apart || !is_asked(t, m->chosen[i], row))
                m->chosen[found++] = m->chosen[i];
        found = found < n ? found : n;
    }
    if (found < n) /* equal rows; lm-eval draws again */
        return tune_error_usage("%s: row %" PRId64 " is there several times, so too few examples are left", t->examples_path, row->number);
    return 0;
}

/* ---- the prompt ---- */
/* Examples as turns; the system message is the description. */
static int render_chat(struct maker *m, struct tune_text *prompt)
{
    const struct tune_chat_messages messages = {.items = m->messages, .count = (int)m->message_count, .name = m->t->rows_path};
    TRY(tune_chat_template_render(m->w->chat, &messages, TUNE_CHAT_GENERATION_PROMPT, &m->chat));
    *prompt = (struct tune_text){m->chat.text, m->chat.size};
    return 0;
}

static int write_prompt(struct maker *m, struct task_row *row, struct tune_text *prompt)
{
    struct task *t = m->t;
    struct task_value v;
    m->prompt.size = m->message_count = 0;
    TRY(put(&m->prompt, "", 0));
    if (t->description.kind != TASK_ABSENT) {
        TRY(tune_task_value_of(t, &t->description, row, TASK_AS_PLAIN, &v));
        if (v.text.size)
            TRY(say(m, "system", v.text, ""));
    }
    if (t->shots > 0)
        TRY(choose_examples(m, row));
    for (int64_t i = 0; i < t->shots; i++)
        TRY(put_example(m, m->chosen[i]));
    TRY(tune_task_value_of(t, &t->text, row, TASK_AS_TEXT, &v));
    TRY(say(m, "user", v.text, ""));
    *prompt = (struct tune_text){m->prompt.data, m->prompt.size};
    return m->w->chat ? render_chat(m, prompt) : 0;
}

/* ---- tokens ---- */
static int encode(struct maker *m, struct tune_text text, bool special, struct tune_encoding *e)
{
    size_t bos = m->w->bos_text ? strlen(m->w->bos_text) : 0;
    bool has = bos > 0 && text.size >= bos && !memcmp(text.data, m->w->bos_text, bos);
    return tune_tokenizer_encode(m->w->tok, text.data, text.size, special && !has ? TUNE_ADD_SPECIAL : 0, e);
}

static int32_t *copy_ids(struct task *t, const int32_t *ids, int64_t count)
{
    int32_t *copy = tune_task_take(t, (size_t)(count + 1) * sizeof *copy);
    if (copy && count)
        memcpy(copy, ids, (size_t)count * sizeof *copy);
    return copy;
}

/* The bytes of the text without white space at its end. */
static size_t trimmed(struct tune_text text)
{
    size_t size = text.size;
    while (size > 0) {
        size_t begin = size - 1;
        while (begin > 0 && ((unsigned char)text.data[begin] & 0xC0) == 0x80)
            begin--;
        if (!tune_unicode_is_space(tune_utf8_before(text.data + size)))
            break;
        size = begin;
    }
    return size;
}

/* The tokens of a choice behind the prompt. White space at the prompt's end belongs to the choice. */
static int encode_choice(struct maker *m, struct task_question *q, struct tune_text prompt, const char *delimiter, struct task_choice *c)
{
    struct text all = {0};
    struct task *t = m->t;
    int64_t skip = q->context_count;
    int status = 0;
    if (prompt.size == 0) {
        if (put(&all, delimiter, strlen(delimiter)) < 0 || put(&all, c->text.data, c->text.size) < 0)
            status = -1;
        status = status == 0 ? encode(m, (struct tune_text){all.data, all.size}, false, &m->whole) : status;
        skip = status == 0 && m->whole.count > 0 && m->whole.ids[0] == m->w->bos; /* it is the context then */
    } else {
        if (put(&all, prompt.data, prompt.size) < 0 || put(&all, delimiter, strlen(delimiter)) < 0 || put(&all, c->text.data, c->text.size) < 0)
            status = -1;
        status = status == 0 ? encode(m, (struct tune_text){all.data, all.size}, true, &m->whole) : status;
    }
    free(all.data);
    TRY(status);
    c->count = (int)(m->whole.count - skip);
    if (c->count < 1)
        return tune_error_usage("%s: row %" PRId64 ": the continuation \"%.60s\" adds no token to the prompt", t->path, q->row, c->text.data);
    c->ids = copy_ids(t, m->whole.ids + skip, c->count);
    return c->ids ? 0 : -1;
}

/* Cut the left of a context that is too long, as HFLM does. behind: tokens that follow. */
static void cut_context(struct maker *m, struct task_question *q, int behind)
{
    int most = m->w->context - behind;
    most = most < 1 ? 1 : most;
    if (q->context_count <= most)
        return;
    q->context += q->context_count - most;
    q->context_count = most;
    m->t->cut++;
}

static int encode_question(struct maker *m, struct task_question *q, struct tune_text prompt, const char *delimiter)
{
    struct task *t = m->t;
    int longest = 0;
    bool choices = t->kind != TASK_GENERATE;
    struct tune_text context = prompt;
    context.size = choices ? trimmed(prompt) : prompt.size;
    if (prompt.size == 0 && choices) {
        q->context = copy_ids(t, &m->w->bos, 1);
        q->context_count = 1;
    } else {
        TRY(encode(m, context, true, &m->context));
        q->context = copy_ids(t, m->context.ids, m->context.count);
        q->context_count = (int)m->context.count;
    }
    TRY(q->context ? 0 : -1);
    for (int i = 0; i < q->choice_count; i++) {
        TRY(encode_choice(m, q, prompt, delimiter, &q->choices[i]));
        longest = q->choices[i].count > longest ? q->choices[i].count : longest;
    }
    if (q->context_count < 1)
        return tune_error_usage("%s: row %" PRId64 ": the prompt has no tokens", t->path, q->row);
    if (longest > m->w->context)
        return tune_error_usage("%s: row %" PRId64 ": a choice has %d tokens, and the model reads %d", t->path, q->row, longest, m->w->context);
    cut_context(m, q, choices ? longest - 1 : t->max_tokens);
    return 0;
}

/* ---- what is right ---- */
static int copy_text(struct task *t, struct tune_text from, struct tune_text *to)
{
    char *copy = tune_task_take(t, from.size + 1);
    TRY(copy ? 0 : -1);
    if (from.size)
        memcpy(copy, from.data, from.size);
    *to = (struct tune_text){copy, from.size};
    return 0;
}

static int64_t place_of(const struct task_question *q, const struct task_value *v)
{
    if (v->type == TASK_WHOLE)
        return v->whole < q->choice_count ? v->whole : TASK_NO_GOLD;
    for (int i = 0; v->type == TASK_TEXT && i < q->choice_count; i++)
        if (v->text.size == q->choices[i].text.size && !memcmp(v->text.data, q->choices[i].text.data, v->text.size))
            return i;
    return TASK_NO_GOLD;
}

static int set_gold(struct task *t, struct task_question *q, const struct task_value *target)
{
    q->several = target->type == TASK_LIST;
    q->gold_count = q->several ? target->count : 1;
    q->gold = tune_task_take(t, (size_t)(q->gold_count + 1) * sizeof *q->gold);
    TRY(q->gold ? 0 : -1);
    for (int i = 0; i < q->gold_count; i++)
        q->gold[i] = place_of(q, q->several ? &target->items[i] : target);
    return 0;
}

/* A value as Python's str() writes it. */
static int spell(struct task *t, const struct task_value *v, struct tune_text *to)
{
    char digits[32];
    if (v->type == TASK_TEXT)
        return copy_text(t, v->text, to);
    snprintf(digits, sizeof digits, "%" PRId64, v->whole);
    return copy_text(t, (struct tune_text){digits, strlen(digits)}, to);
}

static int set_references(struct task *t, struct task_row *row, struct task_question *q, const struct task_value *target)
{
    struct task_value choices, one = *target;
    q->several = target->type == TASK_LIST;
    if (t->choice.kind != TASK_ABSENT) {
        TRY(tune_task_value_of(t, &t->choice, row, TASK_AS_CHOICES, &choices));
        if (target->type != TASK_WHOLE || target->whole < 0 || target->whole >= choices.count)
            return tune_error_usage("%s: row %" PRId64 ": doc_to_target gives no place among the choices", t->path, q->row);
        one = choices.items[target->whole];
    }
    q->reference_count = q->several ? target->count : 1;
    q->references = tune_task_take(t, (size_t)(q->reference_count + 1) * sizeof *q->references);
    TRY(q->references ? 0 : -1);
    for (int i = 0; i < q->reference_count; i++) {
        const struct task_value *v = q->several ? &target->items[i] : &one;
        if (v->type != TASK_TEXT && v->type != TASK_WHOLE)
            return tune_error_usage("%s: row %" PRId64 ": doc_to_target gives a list of something else than texts", t->path, q->row);
        TRY(spell(t, v, &q->references[i]));
    }
    return 0;
}

/* ---- texts ---- */
/* Words as re.split of white space counts them. */
static int64_t count_words(struct tune_text text)
{
    int64_t words = 1;
    bool space = false;
    for (const char *at = text.data, *end = at + text.size; at < end;) {
        bool now = tune_unicode_is_space(tune_utf8_next(&at));
        words += now && !space;
        space = now;
    }
    return words;
}

/* Cut a text's tokens into windows of what the model reads. Each token is judged once. The first window begins with the token of an
 * empty context. Each later one begins with as many tokens before as it has room for. */
static int make_windows(struct maker *m, struct task_question *q)
{
    struct task *t = m->t;
    int64_t all, most = m->w->context;
    TRY(encode(m, q->prompt, true, &m->whole));
    all = m->whole.count;
    if (all < 1)
        return tune_error_usage("%s: row %" PRId64 ": the text has no tokens", t->path, q->row);
    int32_t *ids = tune_task_take(t, (size_t)(all + 1) * sizeof *ids);
    q->choice_count = (int)((all + most - 1) / most);
    q->choices = tune_task_take(t, (size_t)q->choice_count * sizeof *q->choices);
    TRY(ids && q->choices ? 0 : -1);
    ids[0] = m->w->bos;
    memcpy(ids + 1, m->whole.ids, (size_t)all * sizeof *ids);
    for (int i = 0; i < q->choice_count; i++) {
        int64_t begin = i * most, end = begin + most < all ? begin + most : all; /* of the tokens that are judged */
        int64_t from = i > 0 ? end - most : 0;
        q->choices[i] = (struct task_choice){.ids = ids + from, .count = (int)(end + 1 - from), .skip = (int)(begin + 1 - from)};
    }
    q->words = count_words(q->prompt);
    q->bytes = (int64_t)q->prompt.size;
    return 0;
}

/* The column choices, for filters of kind TASK_MULTI_CHOICE. */
static int set_options(struct task *t, struct task_row *row, struct task_question *q)
{
    bool wanted = false, has = false;
    struct task_value v;
    for (int f = 0; f < t->filter_count; f++)
        for (int s = 0; s < t->filters[f].count; s++)
            wanted = wanted || t->filters[f].steps[s].kind == TASK_MULTI_CHOICE;
    for (int i = 0; i < row->count; i++)
        has = has || !strcmp(row->columns[i].name, "choices");
    if (!wanted || !has)
        return wanted ? tune_error_usage("%s: row %" PRId64 ": multi_choice_regex needs a column choices, and the row has none", t->path, q->row) : 0;
    TRY(tune_task_value_of(t, &(struct task_field){.kind = TASK_NAMED, .name = "multi_choice_regex", .text = "choices"}, row, TASK_AS_CHOICES, &v));
    if (v.count > 26)
        return tune_error_usage("%s: row %" PRId64 ": %d choices; multi_choice_regex has letters for 26", t->path, q->row, v.count);
    q->option_count = v.count;
    q->options = tune_task_take(t, (size_t)v.count * sizeof *q->options);
    TRY(q->options ? 0 : -1);
    for (int i = 0; i < v.count; i++)
        TRY(copy_text(t, v.items[i].text, &q->options[i]));
    return 0;
}

/* ---- questions ---- */
static int make_choices(struct task *t, struct task_question *q, const struct task_value *choices)
{
    q->choice_count = choices->count;
    q->choices = tune_task_take(t, (size_t)choices->count * sizeof *q->choices);
    TRY(q->choices ? 0 : -1);
    for (int i = 0; i < choices->count; i++)
        TRY(copy_text(t, choices->items[i].text, &q->choices[i].text));
    return 0;
}

static int make_question(struct maker *m, struct task_row *row, struct task_question *q)
{
    struct task *t = m->t;
    struct task_value target, choices;
    struct tune_text prompt;
    const char *delimiter = t->kind == TASK_MULTIPLE_CHOICE && !m->w->chat ? t->target_delimiter : "";
    q->row = row->number;
    if (t->kind == TASK_ROLLING) {
        TRY(tune_task_value_of(t, &t->target, row, TASK_AS_TEXT, &target));
        TRY(copy_text(t, target.text, &q->prompt));
        return make_windows(m, q);
    }
    TRY(write_prompt(m, row, &prompt));
    TRY(copy_text(t, prompt, &q->prompt));
    TRY(tune_task_value_of(t, &t->target, row, TASK_AS_TARGET, &target));
    if (t->kind == TASK_MULTIPLE_CHOICE) {
        TRY(tune_task_value_of(t, &t->choice, row, TASK_AS_CHOICES, &choices));
        TRY(make_choices(t, q, &choices));
        TRY(set_gold(t, q, &target));
    } else if (t->kind == TASK_LOGLIKELIHOOD) {
        if (target.type != TASK_TEXT)
            return tune_error_usage("%s: row %" PRId64 ": doc_to_target gives no text", t->path, q->row);
        TRY(make_choices(t, q, &(struct task_value){.type = TASK_LIST, .items = &target, .count = 1}));
    } else {
        TRY(set_references(t, row, q, &target));
        TRY(set_options(t, row, q));
    }
    if (t->kind != TASK_LOGLIKELIHOOD && q != t->questions && q->several != t->questions[0].several)
        return tune_error_usage("%s: row %" PRId64 ": doc_to_target gives %s, and in the first row %s", t->path, q->row,
                                q->several ? "a list" : "no list", q->several ? "none" : "one");
    return encode_question(m, q, q->prompt, delimiter);
}

/* Tokens that a question takes of the model. */
static int64_t length_of(const struct task_question *q)
{
    int64_t count = q->context_count, longest = 0;
    for (int i = 0; i < q->choice_count; i++)
        longest = q->choices[i].count > longest ? q->choices[i].count : longest;
    return count + longest;
}

struct place {
    int64_t length, at;
};

static int by_length(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return x->length != y->length ? (x->length < y->length) - (x->length > y->length) : (x->at > y->at) - (x->at < y->at);
}

static int order_questions(struct task *t)
{
    struct place *places = tune_zeroed((size_t)t->count + 1, sizeof *places, "questions");
    t->order = tune_task_take(t, (size_t)(t->count + 1) * sizeof *t->order);
    for (int64_t i = 0; i < t->count && places && t->order; i++)
        places[i] = (struct place){length_of(&t->questions[i]), i};
    if (places && t->order)
        qsort(places, (size_t)t->count, sizeof *places, by_length);
    for (int64_t i = 0; i < t->count && places && t->order; i++)
        t->order[i] = places[i].at;
    int status = places && t->order ? 0 : -1;
    free(places);
    return status;
}

int tune_task_questions(struct task *t, const struct task_writer *w, int64_t limit)
{
    struct maker m = {.t = t, .w = w};
    t->count = limit > 0 && limit < t->in_file ? limit : t->in_file;
    t->questions = tune_task_take(t, (size_t)t->count * sizeof *t->questions);
    m.chosen = tune_zeroed((size_t)t->shots + 2, sizeof *m.chosen, "examples");
    int status = t->questions && m.chosen ? 0 : -1;
    tune_python_random_seed(&t->random, EXAMPLE_SEED);
    if (t->kind == TASK_GENERATE && t->max_tokens >= w->context)
        status = tune_error_usage("%s: answers of %d tokens (max_gen_toks), and the model reads %d with their prompts", t->path, t->max_tokens, w->context);
    for (int64_t i = 0; i < t->count && status == 0; i++) {
        struct task_row row;
        status = tune_task_row_get(t, false, i, &row);
        if (status == 0)
            status = make_question(&m, &row, &t->questions[i]);
        tune_task_row_free(&row);
        tune_pool_free(m.pool);
        m.pool = NULL;
    }
    status = status == 0 ? order_questions(t) : -1;
    free(m.prompt.data);
    free(m.messages);
    free(m.chosen);
    tune_encoding_free(&m.whole);
    tune_encoding_free(&m.context);
    tune_chat_text_free(&m.chat);
    return status;
}
