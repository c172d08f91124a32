/* answers.c - rows that grow by a token at a time, until they end. */
#include "generators/answers_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/print.h"
#include "core/try.h"
#include "generators/prompts_parts.h"
#include "views/side_by_side.h"

enum { TELL_S = 10 };

/* Copy the strings of the options. */
static int copy_options(struct tune_answers *a, const struct tune_answers_options *o)
{
    size_t size = (o->file ? strlen(o->file) : 0) + 1;
    if (o->stop_count > TUNE_STOPS || o->end_count > TUNE_ENDS)
        return tune_error_usage("%d texts and %d tokens that end an answer; at most %d and %d",
                                o->stop_count, o->end_count, TUNE_STOPS, TUNE_ENDS);
    if (o->max_new_tokens < 1 && o->max_length < 1)
        return tune_error_usage("`max_new_tokens` is %d; expected at least 1", o->max_new_tokens);
    for (int i = 0; i < o->stop_count; i++)
        size += strlen(o->stops[i]) + 1;
    a->o = *o;
    char *to = a->words = tune_zeroed(size, 1, "answers");
    if (!to)
        return -1;
    for (int i = 0; i < o->stop_count; i++) {
        a->stops[i] = strcpy(to, o->stops[i]);
        to += strlen(to) + 1;
    }
    if (o->file)
        a->o.file = strcpy(to, o->file);
    if (o->end_count > 0)
        memcpy(a->ends, o->ends, (size_t)o->end_count * sizeof *a->ends);
    a->o.stops = a->stops;
    a->o.ends = a->ends;
    return 0;
}

static int make_rows(struct tune_answers *a, struct tune_tokenizer *tok)
{
    a->active_row = tune_zeroed((size_t)a->most, sizeof *a->active_row, "answers");
    a->previous = tune_zeroed((size_t)a->most, sizeof *a->previous, "answers");
    TRY(a->active_row && a->previous ? 0 : -1);
    for (int s = 0; s < a->o.sides; s++) {
        a->row[s] = tune_zeroed((size_t)a->most, sizeof *a->row[s], "answers");
        TRY(a->row[s] ? 0 : -1);
        for (int b = 0; b < a->most; b++) {
            a->row[s][b].stream = tune_detokenizer_new(tok, a->stops, a->o.stop_count);
            TRY(a->row[s][b].stream ? 0 : -1);
        }
    }
    return 0;
}

struct tune_answers *tune_answers_new(struct tune_tokenizer *tok, struct tune_prompts *prompts,
                                      const struct tune_answers_options *options)
{
    struct tune_answers *a = tune_zeroed(1, sizeof *a, "answers");
    if (!a)
        return NULL;
    a->prompts = prompts;
    a->opened_s = tune_clock_s();
    a->most = tune_prompts_batch(prompts);
    if (copy_options(a, options) == 0 && make_rows(a, tok) == 0 &&
        (!a->o.file || tune_answers_open_file(a) == 0))
        return a;
    tune_answers_free(a);
    return NULL;
}

void tune_answers_free(struct tune_answers *a)
{
    if (!a)
        return;
    for (int s = 0; s < TUNE_SIDES; s++) {
        for (int b = 0; b < a->most && a->row[s]; b++)
            tune_detokenizer_free(a->row[s][b].stream);
        free(a->row[s]);
    }
    if (a->file)
        fclose(a->file);
    free(a->active_row);
    free(a->previous);
    free(a->words);
    free(a);
}

/* True if text is shown as it comes. */
static bool shows(const struct tune_answers *a)
{
    return a->o.text && !a->o.file && !a->o.lines && a->o.sides == 1;
}

/* Part the answers to one prompt, if there are several. */
static int show_heading(struct tune_answers *a)
{
    if (!shows(a) || fprintf(a->o.text, "--- %d of %d ---\n", a->batch.answers[0] + 1, tune_prompts_each(a->prompts)) > 0)
        return 0;
    return tune_error_set("cannot write the answer: %s", strerror(errno));
}

int tune_answers_begin(struct tune_answers *a, const struct tune_prompt_batch *batch, int side,
                       struct tune_active_rows *active)
{
    if (batch->rows > a->most || side >= a->o.sides)
        return tune_error_set("%d rows on side %d; expected at most %d rows, and %d sides",
                              batch->rows, side, a->most, a->o.sides);
    a->batch = *batch;
    a->side = side;
    a->prompt_tokens = 0;
    for (int b = 0; b < batch->rows && side == 0 && a->o.sides > 1; b++)
        tune_detokenizer_reset(a->row[1][b].stream);
    for (int b = 0; b < batch->rows; b++) {
        struct tune_answer *r = &a->row[side][b];
        tune_detokenizer_reset(r->stream);
        r->prompt_tokens = batch->T - (batch->pads ? batch->pads[b] : 0);
        r->tokens = 0;
        r->end = NULL;
        a->prompt_tokens += r->prompt_tokens;
        a->active_row[b] = a->previous[b] = b;
    }
    a->active = a->prompts->unanswered ? 0 : batch->rows;
    a->tokens = 0;
    a->began_s = a->first_s = tune_clock_s();
    *active = (struct tune_active_rows){a->active, 0, a->active_row, a->previous};
    return batch->chat || tune_prompts_each(a->prompts) == 1 ? 0 : show_heading(a);
}

static int show(struct tune_answers *a, const char *piece, size_t size)
{
    if (!shows(a) || size == 0)
        return 0;
    bool good = true;
    if (a->o.width == 0)
        good = fwrite(piece, 1, size, a->o.text) == size;
    for (size_t n; a->o.width > 0 && size > 0; piece += n, size -= n) { /* no model moves a person's cursor */
        unsigned c;
        if (!tune_steers(piece, size, &n, &c) || c == '\n' || c == '\t')
            good = good && fwrite(piece, 1, n, a->o.text) == n;
        else
            good = good && fprintf(a->o.text, c < 0x80 ? "^%c" : "\\u%04x", c < 0x80 ? c ^ 0x40 : c) > 0;
    }
    if (good && fflush(a->o.text) == 0)
        return 0;
    return tune_error_set("cannot write the answer: %s", strerror(errno));
}

/* The reason why a row ends with this token; NULL: it goes on. */
static const char *end_of(const struct tune_answers *a, const struct tune_answer *r, int32_t id)
{
    for (int i = 0; i < a->o.end_count; i++)
        if (a->ends[i] == id)
            return "token";
    if (a->o.max_new_tokens > 0 ? r->tokens >= a->o.max_new_tokens : r->prompt_tokens + r->tokens >= a->o.max_length)
        return "length";
    /* the token itself must still go through the model */
    if (a->batch.T + r->tokens >= a->o.context)
        return "context";
    return a->o.stop_signal && *a->o.stop_signal ? "signal" : NULL;
}

/* Add a token to a row, and show what it completes. */
static int grow(struct tune_answers *a, struct tune_answer *r, int32_t id)
{
    const char *piece;
    size_t size;
    int stopped = 0;
    r->tokens++;
    r->end = end_of(a, r, id);
    if (r->end && !strcmp(r->end, "token"))
        return 0; /* it has no text of its own */
    TRY(stopped = tune_detokenizer_add(r->stream, id, &piece, &size));
    TRY(show(a, piece, size));
    if (stopped)
        r->end = "stop";
    return 0;
}

/* A line of progress behind the first batch, and now and then, while lines are written. */
static void tell_progress(struct tune_answers *a)
{
    double now = tune_clock_s();
    if (shows(a) || !a->o.notes || a->rows == 0 || now - a->told_s < TELL_S)
        return;
    int each = tune_prompts_each(a->prompts);
    bool unanswered = a->prompts->unanswered; /* then the batch is done, and time went into its losses */
    double all = (double)tune_prompts_rows(a->prompts) * each, done = (double)(a->prompts->at - (unanswered ? 0 : a->batch.rows));
    double spent = unanswered ? now - a->opened_s : a->prompt_s + a->answer_s, left = (all - done) * spent / (double)a->rows;
    a->told_s = now;
    if (unanswered)
        fprintf(a->o.notes, "rows %.0f/%.0f | ETA %d:%02d:%02d\n", done, all, (int)(left / 3600), (int)(left / 60) % 60, (int)left % 60);
    else
        fprintf(a->o.notes, "%s %.0f/%.0f | %.0f tok/s | ETA %d:%02d:%02d\n", each > 1 ? "answers" : "rows", done, all,
                (double)a->all_tokens / (a->answer_s > 0 ? a->answer_s : 1), (int)(left / 3600), (int)(left / 60) % 60, (int)left % 60);
    fflush(a->o.notes);
}

int tune_answers_add(struct tune_answers *a, int32_t *next, struct tune_active_rows *active)
{
    int rows = 0;
    if (a->tokens++ == 0)
        a->first_s = tune_clock_s();
    for (int i = 0; i < a->active; i++) {
        struct tune_answer *r = &a->row[a->side][a->active_row[i]];
        TRY(grow(a, r, next[i]));
        if (r->end)
            continue;
        next[rows] = next[i];
        a->active_row[rows] = a->active_row[i];
        a->previous[rows++] = i;
    }
    a->active = rows;
    *active = (struct tune_active_rows){rows, a->tokens, a->active_row, a->previous};
    tell_progress(a);
    return 0;
}

const char *tune_answers_text(const struct tune_answers *a, int row, int side, size_t *size)
{
    return tune_detokenizer_text(a->row[side][row].stream, size);
}

const char *tune_answers_end_of(const struct tune_answers *a, int row, int side)
{
    return a->row[side][row].end;
}

int tune_answers_tokens(const struct tune_answers *a, int row, int side)
{
    return a->row[side][row].tokens;
}

double tune_answers_speed(const struct tune_answers *a)
{
    return a->answer_s > 0 && a->all_tokens > 0 ? (double)a->all_tokens / a->answer_s : NAN;
}

/* Tell the speed of this batch, whose text was shown. */
static void tell_speed(struct tune_answers *a, double now)
{
    const struct tune_answer *r = &a->row[a->side][0];
    double prompt = a->first_s - a->began_s, answer = now - a->first_s;
    if (!a->o.notes)
        return;
    if (a->tokens == 0) {
        fprintf(a->o.notes, "# a signal came while the prompt of %d tokens was read\n", r->prompt_tokens);
        return;
    }
    fprintf(a->o.notes, "# prompt %d tokens in %.2f s", r->prompt_tokens, prompt);
    if (!a->batch.chat) /* a chat computes only what is new */
        fprintf(a->o.notes, ", %.0f tokens/s", (double)a->prompt_tokens / prompt);
    fprintf(a->o.notes, "; answer %d tokens in %.2f s", r->tokens, answer);
    if (r->tokens > 1)
        fprintf(a->o.notes, ", %.1f tokens/s", (r->tokens - 1) / answer);
    fprintf(a->o.notes, "; ended by %s\n", !strcmp(r->end, "token")    ? "the model"
                                           : !strcmp(r->end, "stop")   ? "a stop text"
                                           : !strcmp(r->end, "length") ? "the number of tokens"
                                           : !strcmp(r->end, "signal") ? "a signal"
                                                                       : "the end of the context");
}

/* Print both sides of each row. */
static int show_sides(struct tune_answers *a)
{
    for (int b = 0; b < a->batch.rows; b++) {
        struct tune_side_text side[TUNE_SIDES] = {{a->o.names[0], NULL, 0}, {a->o.names[1], NULL, 0}};
        for (int s = 0; s < TUNE_SIDES; s++)
            side[1 - s].text = tune_answers_text(a, b, s, &side[1 - s].size);
        bool good = true;
        if (tune_prompts_each(a->prompts) > 1)
            good = fprintf(a->o.text, "row %lld, answer %d\n", (long long)a->batch.numbers[b], a->batch.answers[b]) > 0;
        else if (a->batch.rows > 1)
            good = fprintf(a->o.text, "row %lld\n", (long long)a->batch.numbers[b]) > 0;
        if (!good)
            return tune_error_set("cannot write the answer: %s", strerror(errno));
        TRY(tune_side_by_side(a->o.text, &side[0], &side[1], a->o.width));
    }
    return 0;
}

/* Give out what the rows hold back. */
static int flush(struct tune_answers *a)
{
    const char *piece;
    size_t size;
    for (int b = 0; b < a->batch.rows; b++) {
        TRY(tune_detokenizer_end(a->row[a->side][b].stream, &piece, &size));
        TRY(show(a, piece, size));
    }
    return 0;
}

int tune_answers_end(struct tune_answers *a)
{
    double now = tune_clock_s();
    size_t size;
    for (int b = 0; b < a->batch.rows; b++) /* a signal came before the next token */
        if (!a->row[a->side][b].end)
            a->row[a->side][b].end = a->prompts->unanswered ? "none" : "signal";
    if (a->tokens == 0)
        a->first_s = now;
    TRY(flush(a));
    a->prompt_s += a->first_s - a->began_s;
    a->answer_s += now - a->first_s;
    a->all_prompt_tokens += a->prompt_tokens;
    for (int b = 0; b < a->batch.rows; b++) {
        a->all_tokens += a->row[a->side][b].tokens;
        a->interrupted = a->interrupted || !strcmp(a->row[a->side][b].end, "signal");
    }
    if (shows(a)) {
        TRY(show(a, "\n", 1));
        tell_speed(a, now);
    }
    const char *text = tune_answers_text(a, 0, a->side, &size);
    TRY(tune_prompts_answered(a->prompts, text, size));
    if (a->side + 1 < a->o.sides && !a->interrupted)
        return 0;
    bool lines = a->o.file || a->o.lines;
    if (a->interrupted && lines)
        return 0; /* a batch that is cut off is answered anew */
    a->rows += a->batch.rows;
    if (a->prompts->unanswered)
        tell_progress(a);
    return lines ? tune_answers_write(a) : a->o.text && a->o.sides > 1 ? show_sides(a) : 0;
}

int tune_answers_finish(struct tune_answers *a)
{
    if (!a->o.notes || shows(a))
        return 0;
    const char *what = tune_prompts_each(a->prompts) > 1 ? "answers" : "rows";
    if (a->rows > 0 && !a->prompts->unanswered)
        fprintf(a->o.notes, "# answered %lld %s: prompts %lld tokens, %.0f tokens/s; answers %lld tokens, "
                "%.0f tokens/s\n", (long long)a->rows, what, (long long)a->all_prompt_tokens,
                (double)a->all_prompt_tokens / (a->prompt_s > 0 ? a->prompt_s : 1),
                (long long)a->all_tokens, (double)a->all_tokens / (a->answer_s > 0 ? a->answer_s : 1));
    if (a->expected > 0) {
        fprintf(a->o.notes, "# exact match  %lld of %lld %s (%.1f %%)", (long long)a->matches[0], (long long)a->expected, what,
                100.0 * (double)a->matches[0] / (double)a->expected);
        if (a->o.sides > 1)
            fprintf(a->o.notes, "; %s %lld (%.1f %%)", a->o.names[0], (long long)a->matches[1],
                    100.0 * (double)a->matches[1] / (double)a->expected);
        fprintf(a->o.notes, ", without white space at the ends of both answers\n");
    }
    if (a->o.file && a->o.stop_signal && *a->o.stop_signal)
        fprintf(a->o.notes, "# the same command goes on where this one stopped\n");
    return 0;
}
