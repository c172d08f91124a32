/* answers_file.c - answers as lines of JSON, and a file of them that is continued.
 *
 * A batch is written when all its rows are done, so a killed process leaves whole batches. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/try.h"
#include "datasets/dataset.h"
#include "files/cjson.h"
#include "files/lines.h"
#include "generators/answers_parts.h"
#include "generators/prompts_parts.h"

/* The value of `of` for a row. */
static int hash_of(struct tune_answers *a, int64_t row, char of[17])
{
    uint64_t hash;
    TRY(tune_prompts_hash(a->prompts, row, &hash));
    snprintf(of, 17, "%016" PRIx64, tune_hash64(&hash, sizeof hash, a->o.settings));
    return 0;
}

static bool same(struct tune_text a, struct tune_text b)
{
    return a.data && a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

static bool matches(struct tune_text answer, const struct tune_asked *asked)
{
    answer = tune_text_trim(answer);
    for (int i = 0; i <= asked->more_count; i++) {
        if (same(answer, tune_text_trim(i ? asked->more[i - 1] : asked->expected)))
            return true;
    }
    return false;
}

/* Whether the line's expected answers are other ones than the row's. Evaluations write all of them as references, if
 * some row has several. Lines without an expected answer have none to compare. */
static bool is_changed(const struct tune_answers *a, const cJSON *json, const struct tune_asked *asked)
{
    struct tune_text said = tune_cjson_text(cJSON_GetObjectItemCaseSensitive(json, "expected")), now = asked->expected;
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(json, "references");
    bool all = list || a->prompts->lines.read; /* the line tells whether there are more */
    if (!said.data)
        return false;
    bool changed = !now.data || !same(said, now) || (all && (list ? cJSON_GetArraySize(list) : 1) != 1 + asked->more_count);
    for (int i = 1; i <= asked->more_count && list && !changed; i++)
        changed = !same(tune_cjson_text(cJSON_GetArrayItem(list, i)), asked->more[i - 1]);
    return changed;
}

/* Count a line that is there already. Lines of earlier versions have no exact_match. */
static int count_line(struct tune_answers *a, const cJSON *json, int64_t line)
{
    int64_t row = tune_prompts_row(a->prompts, line / tune_prompts_each(a->prompts));
    static const char *const names[TUNE_SIDES] = {"answer", "base_answer"};
    static const char *const found[TUNE_SIDES] = {"exact_match", "base_exact_match"};
    struct tune_asked asked;
    TRY(tune_prompts_asked(a->prompts, row, &asked));
    const char *text = asked.expected.data;
    int status = 0;
    if (is_changed(a, json, &asked))
        status = tune_error_usage("%s:%lld: the row's expected answer is another one now; give another `output`, or "
                                  "`overwrite`", a->o.file, (long long)line + 1);
    for (int s = 0; s < a->o.sides && text && status == 0; s++) {
        const cJSON *answer = cJSON_GetObjectItemCaseSensitive(json, names[s]);
        const cJSON *match = cJSON_GetObjectItemCaseSensitive(json, found[s]);
        a->matches[s] += cJSON_IsBool(match) ? cJSON_IsTrue(match)
                                              : cJSON_IsString(answer) && matches(tune_cjson_text(answer), &asked);
    }
    a->expected += text != NULL && !a->prompts->unanswered;
    tune_asked_free(&asked);
    return status;
}

/* Check that line at, from 0, is the answer that this run would give there. */
static int check_line(struct tune_answers *a, const char *line, int64_t at)
{
    char of[17];
    int each = tune_prompts_each(a->prompts);
    bool beyond = at / each >= tune_prompts_rows(a->prompts);
    int64_t row = beyond ? at / each : tune_prompts_row(a->prompts, at / each);
    cJSON *json = tune_cjson_line(line);
    const cJSON *index = cJSON_GetObjectItemCaseSensitive(json, "answer_index");
    const cJSON *number = cJSON_GetObjectItemCaseSensitive(json, "row");
    const cJSON *said = cJSON_GetObjectItemCaseSensitive(json, "of");
    bool good = cJSON_IsNumber(number) && cJSON_IsString(said);
    int status = 0;
    bool indexed = each > 1 ? cJSON_IsNumber(index) && index->valuedouble == (double)(at % each) : !index;
    if (!good || number->valuedouble != (double)row || !indexed)
        status = tune_error_usage("%s:%lld: expected the answer to row %lld%s; the file was not made by this program, was changed, or "
                                  "has another number of answers to a row. Give another `output`, or `overwrite`", a->o.file,
                                  (long long)at + 1, (long long)row, each > 1 ? ", with its answer_index" : "");
    else if (beyond)
        status = tune_error_usage("%s: it answers more rows than there are; give another `output`, or "
                                  "`overwrite`", a->o.file);
    else if ((status = hash_of(a, row, of)) == 0 && strcmp(said->valuestring, of) != 0)
        status = tune_error_usage("%s:%lld: the answer belongs to another prompt, to other weights or "
                                  "to other options; give another `output`, or `overwrite`",
                                  a->o.file, (long long)at + 1);
    if (status == 0)
        status = count_line(a, json, at);
    if (status == 0 && a->prompts->lines.read)
        status = a->prompts->lines.read(a->prompts->lines.context, row, json);
    cJSON_Delete(json);
    return status;
}

static int read_line(void *answers, const char *line, int64_t at)
{
    return check_line(answers, line, at);
}

/* True if a line that was cut short is the begin of the answer that stands there. */
static bool begins_line(void *answers, const char *cut, size_t size, int64_t at)
{
    struct tune_answers *a = answers;
    char begin[40];
    int64_t row = at / tune_prompts_each(a->prompts);
    row = row < tune_prompts_rows(a->prompts) ? tune_prompts_row(a->prompts, row) : row;
    size_t length = (size_t)snprintf(begin, sizeof begin, "{\"row\":%lld,", (long long)row);
    return strncmp(cut, begin, size < length ? size : length) == 0;
}

int tune_answers_open_file(struct tune_answers *a)
{
    int64_t there;
    const struct tune_lines lines = {a->o.file, a->o.overwrite, read_line, begins_line, a};
    a->file = tune_lines_open(&lines, &there);
    TRY(a->file ? 0 : -1);
    if (there > 0 && a->o.notes)
        fprintf(a->o.notes, "# resumed      behind %s %lld of %lld in %s\n", tune_prompts_each(a->prompts) > 1 ? "answer" : "row",
                (long long)there, (long long)tune_prompts_rows(a->prompts) * tune_prompts_each(a->prompts), a->o.file);
    return tune_prompts_skip(a->prompts, there);
}

static bool put_answer(struct tune_answers *a, cJSON *line, int b, int side, const struct tune_asked *asked)
{
    const struct tune_answer *r = &a->row[side][b];
    const struct tune_text *expected = &asked->expected;
    struct tune_text text;
    text.data = tune_answers_text(a, b, side, &text.size);
    bool match = expected->data && matches(text, asked);
    a->matches[side] += match;
    a->expected += expected->data && side == 0;
    return tune_cjson_put_bytes(line, side ? "base_answer" : "answer", text.data, text.size) &&
           (side || !expected->data || tune_cjson_put_bytes(line, "expected", expected->data, expected->size)) &&
           (!expected->data || tune_cjson_put(line, side ? "base_exact_match" : "exact_match", cJSON_CreateBool(match))) &&
           tune_cjson_put_text(line, side ? "base_end" : "end", r->end) &&
           (side || tune_cjson_put_whole(line, "prompt_tokens", r->prompt_tokens)) &&
           tune_cjson_put_whole(line, side ? "base_tokens" : "tokens", r->tokens);
}

/* One line; the caller frees it. NULL with an error. */
static char *line_of(struct tune_answers *a, int b)
{
    char of[17];
    struct tune_asked asked;
    if (hash_of(a, a->batch.numbers[b], of) < 0 || tune_prompts_asked(a->prompts, a->batch.numbers[b], &asked) < 0)
        return NULL;
    cJSON *line = cJSON_CreateObject();
    bool good = tune_cjson_put_whole(line, "row", a->batch.numbers[b]) &&
                (tune_prompts_each(a->prompts) == 1 || tune_cjson_put_whole(line, "answer_index", a->batch.answers[b])) &&
                (!asked.prompt.data || tune_cjson_put_bytes(line, "prompt", asked.prompt.data, asked.prompt.size));
    for (int s = 0; s < a->o.sides && good && !a->prompts->unanswered; s++)
        good = put_answer(a, line, b, s, &asked);
    tune_asked_free(&asked);
    const struct tune_answer_lines *more = &a->prompts->lines;
    bool refused = good && more->write && more->write(more->context, a, b, a->batch.numbers[b], line) < 0;
    good = good && !refused && tune_cjson_put_text(line, "of", of);
    char *text = good ? cJSON_PrintUnformatted(line) : NULL;
    cJSON_Delete(line);
    if (!text && !refused)
        tune_error_no_memory("an answer");
    return text;
}

int tune_answers_write(struct tune_answers *a)
{
    FILE *to = a->file ? a->file : a->o.text; /* NULL: only the lines' other members are wanted */
    for (int b = 0; b < a->batch.rows; b++) {
        char *line = line_of(a, b);
        bool good = line && (!to || tune_lines_put(to, line));
        free(line);
        if (!good)
            return line ? tune_error_set("cannot write an answer: %s", strerror(errno)) : -1;
    }
    if (to && fflush(to) != 0)
        return tune_error_set("cannot write an answer: %s", strerror(errno));
    return 0;
}
