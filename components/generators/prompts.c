/* prompts.c - rows of a data set as batches of prompts, padded on the left. */
#include "generators/prompts_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/error.h"
#include "core/print.h"
#include "files/file.h"
#include "core/try.h"
#include "models/cache.h"

struct tune_prompts *tune_prompts_new(int batch_size, int context)
{
    struct tune_prompts *p = tune_zeroed(1, sizeof *p, "prompts");
    if (!p)
        return NULL;
    p->batch_size = batch_size;
    p->context = context;
    p->each = 1;
    p->pads = tune_zeroed((size_t)batch_size, sizeof *p->pads, "prompts");
    p->numbers = tune_zeroed((size_t)batch_size, sizeof *p->numbers, "prompts");
    p->answers = tune_zeroed((size_t)batch_size, sizeof *p->answers, "prompts");
    if (p->pads && p->numbers && p->answers)
        return p;
    tune_prompts_free(p);
    return NULL;
}

void tune_prompts_free(struct tune_prompts *p)
{
    if (!p)
        return;
    tune_chat_session_free(p->session);
    tune_dataset_free(p->data);
    tune_example_free(&p->row);
    free(p->ids);
    free(p->kept);
    free(p->pads);
    free(p->numbers);
    free(p->answers);
    free(p);
}

int tune_prompts_room(struct tune_prompts *p, int64_t count)
{
    size_t room = (size_t)p->room;
    TRY(tune_array_reserve(&p->ids, &room, (size_t)count, sizeof *p->ids, "a batch of prompts"));
    p->room = (int64_t)room;
    return 0;
}

/* Read row i, and check that it leaves room for an answer. */
static int read_row(struct tune_prompts *p, int64_t i)
{
    char source[TUNE_DATASET_SOURCE_SIZE];
    TRY(tune_dataset_get(p->data, i, &p->row));
    if (p->unanswered)
        return 0;
    const char *name = tune_dataset_source(p->data, i, source, sizeof source);
    if (p->row.count == 0)
        return tune_error_usage("%s: the prompt is empty, and the tokenizer adds no token that "
                                "begins a text; give at least one word", name);
    if (p->row.full_count >= p->context)
        return tune_error_usage("%s: the prompt has %lld tokens; with an answer it must fit the "
                                "context of %d. Shorten it%s", name, (long long)p->row.full_count,
                                p->context, p->rows > 1 ? ", or take the row out" : "");
    return 0;
}

/* rows NULL: the first `count` of them; 0: all. */
static struct tune_prompts *open_rows(struct tune_dataset *data, const int64_t *rows, int64_t count, int batch_size, int context, int answer,
                                      bool unanswered)
{
    struct tune_prompts *p = tune_prompts_new(batch_size, context);
    int status = p ? 0 : -1;
    if (!p) {
        tune_dataset_free(data);
        return NULL;
    }
    p->data = data;
    p->answer = answer;
    p->unanswered = unanswered;
    p->rows = tune_dataset_rows(data);
    p->rows = count > 0 && count < p->rows ? count : p->rows;
    int64_t adapted = 0;
    if (rows)
        status = tune_prompts_keep(p, rows, count);
    for (int64_t i = 0; i < p->rows && status == 0; i++) {
        status = read_row(p, tune_prompts_row(p, i));
        adapted += p->row.adapted != 0;
        p->longest = p->row.count > p->longest ? (int)p->row.count : p->longest;
    }
    p->batch_size = p->rows < batch_size ? (int)p->rows : batch_size;
    const char *about = tune_dataset_about(data);
    snprintf(p->about, sizeof p->about, "%s", about ? about : "tokens");
    if (adapted > 0)
        tune_append(p->about, sizeof p->about, "; %lld of %lld conversations are of another order or form (docs/data-formats.md)",
                    (long long)adapted, (long long)p->rows);
    if (status == 0)
        return p;
    tune_prompts_free(p);
    return NULL;
}

struct tune_prompts *tune_prompts_open_rows(struct tune_dataset *data, int64_t most, int batch_size, int context, int answer)
{
    return open_rows(data, NULL, most, batch_size, context, answer, false);
}

struct tune_prompts *tune_prompts_open_some(struct tune_dataset *data, const int64_t *rows, int64_t count, int batch_size, int context,
                                            int answer)
{
    return open_rows(data, rows, count, batch_size, context, answer, false);
}

struct tune_prompts *tune_prompts_open_texts(struct tune_dataset *data, int batch_size)
{
    struct tune_prompts *p = open_rows(data, NULL, 0, batch_size, INT32_MAX, 0, true);
    if (p)
        p->longest = 1; /* nothing is generated */
    return p;
}

bool tune_prompts_unanswered(const struct tune_prompts *p)
{
    return p->unanswered;
}

struct tune_dataset *tune_prompts_data(const struct tune_prompts *p)
{
    return p->data;
}

void tune_prompts_repeat(struct tune_prompts *p, int answers, int batch_size)
{
    int64_t all = p->rows * answers;
    p->each = answers;
    p->batch_size = all < batch_size ? (int)all : batch_size;
}

void tune_prompts_lines(struct tune_prompts *p, const struct tune_answer_lines *lines)
{
    p->lines = *lines;
}

void tune_prompts_texts(struct tune_prompts *p, int tokens, int each)
{
    p->texts = tokens;
    p->each_text = each;
}

/* Move the tokens of each row to the end of its T places. */
static void pad_left(struct tune_prompts *p, int rows, int T)
{
    int64_t from = 0;
    for (int b = 0; b < rows; b++)
        from += p->pads[b]; /* holds the lengths until now */
    for (int b = rows - 1; b >= 0; b--) {
        int length = p->pads[b];
        from -= length;
        memmove(p->ids + (int64_t)b * T + T - length, p->ids + from, (size_t)length * sizeof *p->ids);
        memset(p->ids + (int64_t)b * T, 0, (size_t)(T - length) * sizeof *p->ids);
        p->pads[b] = T - length;
    }
}

/* True if rows of these lengths would leave less room for an answer together than alone. */
static bool crowds(const struct tune_prompts *p, int shortest, int longest)
{
    return shortest != longest && (int64_t)longest + p->answer > p->context;
}

static int next_rows(struct tune_prompts *p, struct tune_prompt_batch *batch)
{
    int64_t used = 0;
    int rows = 0, T = 0, least = p->context;
    for (; rows < p->batch_size && p->at < p->rows * p->each; rows++, p->at++) {
        TRY(read_row(p, tune_prompts_row(p, p->at / p->each)));
        int count = (int)p->row.count;
        if (rows > 0 && crowds(p, count < least ? count : least, count > T ? count : T))
            break;
        least = count < least ? count : least;
        T = count > T ? count : T;
        TRY(tune_prompts_room(p, used + count));
        memcpy(p->ids + used, p->row.ids, (size_t)count * sizeof *p->ids);
        used += count;
        p->pads[rows] = count;
        p->numbers[rows] = tune_prompts_row(p, p->at / p->each);
        p->answers[rows] = (int)(p->at % p->each);
    }
    if (rows == 0)
        return 0;
    TRY(tune_prompts_room(p, (int64_t)rows * T));
    pad_left(p, rows, T);
    *batch = (struct tune_prompt_batch){rows, T, p->ids, p->pads, p->numbers, false, p->answers};
    return 1;
}

int tune_prompts_next(struct tune_prompts *p, struct tune_prompt_batch *batch)
{
    return p->session ? tune_chat_session_next(p, batch) : next_rows(p, batch);
}

int tune_prompts_answered(struct tune_prompts *p, const char *text, size_t size)
{
    return p->session ? tune_chat_session_answered(p->session, text, size) : 0;
}

int tune_prompts_skip(struct tune_prompts *p, int64_t answers)
{
    int64_t all = p->rows * p->each;
    if (answers > all)
        return tune_error_set("%lld answers to leave out of %lld", (long long)answers, (long long)all);
    p->at = answers;
    return 0;
}

int tune_prompts_keep(struct tune_prompts *p, const int64_t *rows, int64_t count)
{
    p->kept = tune_zeroed((size_t)count, sizeof *p->kept, "prompts");
    if (!p->kept)
        return -1;
    memcpy(p->kept, rows, (size_t)count * sizeof *rows);
    p->rows = count;
    p->batch_size = count < p->batch_size ? (int)count : p->batch_size;
    return 0;
}

int64_t tune_prompts_row(const struct tune_prompts *p, int64_t i)
{
    return p->kept ? p->kept[i] : i;
}

int tune_prompt_begin(const struct tune_prompt_batch *batch, struct tune_cache *cache)
{
    if (batch->chat)
        return tune_cache_share(cache, batch->ids, batch->T);
    return tune_cache_begin(cache, batch->rows, batch->pads);
}

int64_t tune_prompts_rows(const struct tune_prompts *p)
{
    return p->rows;
}

int tune_prompts_each(const struct tune_prompts *p)
{
    return p->each;
}

int64_t tune_prompts_left_out(const struct tune_prompts *p)
{
    return p->data ? tune_dataset_rows(p->data) - p->rows : 0;
}

int tune_prompts_longest(const struct tune_prompts *p)
{
    return p->longest;
}

int tune_prompts_answer(const struct tune_prompts *p)
{
    return p->answer;
}

int tune_prompts_batch(const struct tune_prompts *p)
{
    return p->batch_size;
}

const char *tune_prompts_about(const struct tune_prompts *p)
{
    return p->about;
}

int tune_prompts_hash(struct tune_prompts *p, int64_t row, uint64_t *hash)
{
    TRY(read_row(p, row));
    *hash = tune_hash64(p->row.ids, (size_t)p->row.count * sizeof *p->row.ids, 0);
    return 0;
}

int tune_prompts_asked(const struct tune_prompts *p, int64_t row, struct tune_asked *asked)
{
    return tune_dataset_asked(p->data, row, asked);
}
