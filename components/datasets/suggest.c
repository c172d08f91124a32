/* suggest.c - what to type for columns whose names no format knows. */
#include "datasets/suggest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/nearest.h"
#include "core/print.h"
#include "core/try.h"

enum { VALUE = 400 };

/* Formats of which a file has one column and lacks another. */
static const struct half {
    const char *format, *has, *lacks;
} halves[] = {
    {"alpaca", "instruction", "output"},
    {"prompt-completion", "prompt", "completion"},
    {"prompt-completion", "completion", "prompt"},
};
static const char *const prompts[] = {"prompt", "question", "query", "problem", "instruction", "input", "source", "context", NULL};
static const char *const answers[] = {"completion", "answer", "response", "solution", "output", "target", "reply", "summary", NULL};

/* The first of the known names that is a column. NULL: none. */
static const char *known(const struct tune_columns *have, const char *const *names)
{
    while (*names && !tune_columns_has(have, *names))
        names++;
    return *names;
}

/* Append an option and its value, in quotes if a shell needs them. */
static void put(char *text, size_t size, const char *option, const char *value)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,=/-";
    const char *quote = value[strspn(value, plain)] ? "'" : "";
    tune_append(text, size, "`%s` %s%s%s", option, quote, value, quote);
}

/* Append the options that map two columns, or one if the other has its name already. */
static void put_columns(char *text, size_t size, const char *format, const char *const names[2], const char *const columns[2])
{
    char value[VALUE] = "";
    for (int i = 0; i < 2; i++) {
        if (columns[i][strcspn(columns[i], ",=;'")]) {
            tune_append(text, size, "other names to columns with one of , = ; ' in theirs");
            return;
        }
        if (strcmp(names[i], columns[i]))
            tune_append(value, sizeof value, "%s%s=%.150s", *value ? "," : "", names[i], columns[i]);
    }
    tune_append(text, size, "`format` %s ", format);
    put(text, size, "columns", value);
}

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name))
        names++;
    return *names != NULL;
}

/* True if the missing column is an answer. */
static bool is_answer(const struct half *h)
{
    return strcmp(h->lacks, "prompt") != 0;
}

/* The column that may be the missing one: by a name that is known or near, else another text. A
 * question never stands in for an answer, nor an answer for a question; *wrong is such a column, or
 * NULL. */
static const char *stand_in(const struct half *h, const struct tune_columns *have, const char *const *texts, int count, const char **wrong)
{
    bool wants_prompt = !is_answer(h);
    const char *found = known(have, wants_prompt ? prompts : answers);
    *wrong = NULL;
    if (!found)
        found = tune_nearest(h->lacks, (const char *const *)have->names, have->count, NULL);
    for (int i = 0; i < count && (!found || !strcmp(found, h->has)); i++)
        if (is_one_of(texts[i], wants_prompt ? answers : prompts))
            *wrong = strcmp(texts[i], h->has) ? texts[i] : *wrong;
        else
            found = texts[i];
    return found && strcmp(found, h->has) ? found : NULL;
}

void tune_columns_suggest_messages(char *text, size_t size, const char *path, bool from_value)
{
    const char *name = from_value ? "conversations" : "messages", *columns[] = {path, path};
    *text = 0;
    tune_append(text, size, "the messages of a conversation are in \"%s\"; give ", path);
    put_columns(text, size, from_value ? "sharegpt" : "messages", (const char *const[]){name, path}, columns);
}

void tune_columns_suggest(char *text, size_t size, const struct tune_columns *have, const char *const *texts, int count,
                          const char *nested)
{
    static const char *const pair[] = {"prompt", "completion"};
    const char *prompt = known(have, prompts), *answer = known(have, answers);
    *text = 0;
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
        const struct half *h = &halves[i];
        if (!tune_columns_has(have, h->has) || tune_columns_has(have, h->lacks))
            continue;
        const char *wrong = NULL, *other = *nested && is_answer(h) ? nested : stand_in(h, have, texts, count, &wrong);
        if (!other && wrong) {
            tune_append(text, size, "the column \"%s\" of the format %s is missing, and \"%.150s\" is not the name of %s; give "
                        "`format` %s `columns` %s=NAME, or `text_field` NAME to train on one column alone", h->lacks, h->format,
                        wrong, strcmp(h->lacks, "prompt") ? "an answer" : "a question", h->format, h->lacks);
            return;
        }
        if (!other)
            continue;
        tune_append(text, size, "the column \"%s\" of the format %s is missing; give ", h->lacks, h->format);
        bool context = i == 0 && tune_columns_has(have, "context") && !tune_columns_has(have, "input");
        put_columns(text, size, h->format, (const char *const[]){context ? "input" : h->has, h->lacks},
                    (const char *const[]){context ? "context" : h->has, other});
        return;
    }
    tune_append(text, size, "give ");
    if (*nested && count == 1) {
        prompt = texts[0], answer = nested; /* a question whose answers are in a list */
    } else if (!prompt || !answer) {
        prompt = count > 1 ? texts[0] : NULL;
        answer = count > 1 ? texts[1] : NULL;
    } else {
        put_columns(text, size, "prompt-completion", pair, (const char *const[]){prompt, answer});
        return;
    }
    if (count > 0 || !prompt)
        put(text, size, "text_field", count > 0 ? texts[0] : "NAME");
    if (count > 0 && prompt)
        tune_append(text, size, ", or ");
    if (prompt)
        put_columns(text, size, "prompt-completion", pair, (const char *const[]){prompt, answer});
}

/* ---- pairs ---- */

/* Names of the better and the worse answer of a pair. */
static const char *const answers_of_pairs[][2] = {
    {"chosen", "rejected"}, {"accepted", "rejected"},     {"preferred", "dispreferred"}, {"preferred", "rejected"}, {"better", "worse"},
    {"good", "bad"},        {"positive", "negative"}, {"winner", "loser"},           {"win", "lose"},           {"response_w", "response_l"},
};
enum { PAIRS = sizeof answers_of_pairs / sizeof *answers_of_pairs, DEEPEST = 8 };

/* Look for a pair in the object at j, whose path is "" or ends with a dot. 1: found. */
static int find_pair(struct tune_json *j, const char *path, int depth, char *text, size_t size)
{
    struct tune_text key;
    bool seen[PAIRS][2] = {{false}};
    char prompt[101] = "", inner[256], name[101];
    int more, found = 0;
    TRY(tune_json_object(j));
    while ((more = tune_json_key(j, &key)) == 1) {
        snprintf(name, sizeof name, "%s", key.data);
        for (int p = 0; p < PAIRS; p++)
            for (int k = 0; k < 2; k++)
                seen[p][k] = seen[p][k] || !strcmp(name, answers_of_pairs[p][k]);
        if (!*prompt && is_one_of(name, prompts))
            snprintf(prompt, sizeof prompt, "%s", name);
        bool deeper = !found && depth < DEEPEST && tune_json_peek(j) == TUNE_JSON_OBJECT &&
                      snprintf(inner, sizeof inner, "%s%s.", path, name) < (int)sizeof inner;
        int inside = deeper ? find_pair(j, inner, depth + 1, text, size) : tune_json_skip(j);
        TRY(inside);
        found |= deeper && inside == 1;
    }
    TRY(more);
    for (int p = 0; p < PAIRS && !found; p++)
        if (seen[p][0] && seen[p][1]) {
            char value[3 * VALUE] = "";
            const char *const names[] = {"prompt", "chosen", "rejected"}, *const columns[] = {prompt, answers_of_pairs[p][0], answers_of_pairs[p][1]};
            for (int k = 0; k < 3; k++)
                if (*columns[k] && (*path || strcmp(names[k], columns[k])))
                    tune_append(value, sizeof value, "%s%s=%s%s", *value ? "," : "", names[k], path, columns[k]);
            put(text, size, "columns", value);
            found = 1;
        }
    return found;
}

bool tune_columns_suggest_pairs(char *text, size_t size, struct tune_json *j)
{
    struct tune_error before;
    tune_error_save(&before);
    *text = 0;
    bool found = find_pair(j, "", 0, text, size) == 1;
    tune_error_restore(&before);
    tune_blank_controls(text);
    return found;
}
