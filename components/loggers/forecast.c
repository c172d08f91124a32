/* forecast.c - what a run will meet and take. */
#include "loggers/forecast.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "core/clock.h"
#include "core/print.h"
#include "core/try.h"
#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "devices/ops.h"
#include "loggers/state.h"
#include "models/lora.h"
#include "models/model.h"
#include "profilers/memory_plan.h"

#define LEAST_S .03 /* time that a product is measured */
#define MANY 5.0    /* percent of the rows that deserve a warning */
#define ENOUGH .95  /* share of the rows that a longer cut should leave whole */
/* share of a training step's time that its products take, in the shapes of tests/bench */
#define PRODUCTS_SHARE .7

/* ---- rows ---- */

static double percent(int64_t part, int64_t all)
{
    return all > 0 ? 100.0 * (double)part / (double)all : 0;
}

/* "4.5 % cut to 512 tokens": a surprise and how many rows it concerns; nothing for none. */
static void add_share(char *text, size_t size, int64_t part, int64_t all, const char *what)
{
    if (part > 0)
        tune_append(text, size, "; %.3g %% %s", percent(part, all), what);
}

static int warn(struct tune_logger *log, const char *key, int64_t part, const struct tune_survey *s, const char *text)
{
    char line[800];
    if (percent(part, s->rows) <= MANY)
        return 0;
    snprintf(line, sizeof line, "%.3g %% of the rows %s", percent(part, s->rows), text);
    return tune_logger_note(log, key, line);
}

/* Warn of prompts, headers and templates. */
static int warn_of_texts(struct tune_logger *log, const struct tune_survey *s)
{
    char text[700];
    snprintf(text, sizeof text, "have a token that is both the end of the prompt and the beginning of the answer, such as \"%s\", and it is not "
             "trained: the prompt ends in a space (or the like) that the tokenizer joins with the answer's first word. Let the prompt end "
             "before the space, and the answer begin with it", s->joined_token);
    TRY(warn(log, "warning: space", s->joined[0], s, text));
    snprintf(text, sizeof text, "have a token that is both the end of the assistant's header and the beginning of what it says, such as \"%s\": the "
             "header ends in a space (or the like). That token is trained, as in transformers; but a prompt to answer ends in the space "
             "alone. Let the template write it with the content", s->joined_token);
    TRY(warn(log, "warning: space", s->joined[1], s, text));
    snprintf(text, sizeof text, "have text of the assistant that the chat template leaves out, %.3g %% of it, mostly reasoning. transformers leaves it "
             "out, too. `show_tokens` 2 shows what is left; another `chat_template` may write it", 100 * s->left_out_share);
    return warn(log, "warning: left out", s->left_out, s, text);
}

/* Conversations that are read differently, by kind. */
static int note_adapted(struct tune_logger *log, const struct tune_survey *s)
{
    static const char *const what[TUNE_ADAPTED_KINDS] = {
        [TUNE_ADAPTED_TURNS] = "have turns of one speaker that are joined",
        [TUNE_ADAPTED_GREETING] = "lose a greeting, the assistant's message before the first of a user",
        [TUNE_ADAPTED_SYSTEM] = "have a system text that is moved into the user's message",
        [TUNE_ADAPTED_DEVELOPER] = "have a developer, who is read as system",
        [TUNE_ADAPTED_KEYS] = "have messages with keys or roles of another format",
        [TUNE_ADAPTED_CALLS] = "have calls whose arguments are put into the form that the template writes",
        [TUNE_ADAPTED_ORDER] = "have an unusual order of turns, which the template takes",
        [TUNE_ADAPTED_WRITTEN] = "have a developer, whom the template takes",
    };
    char text[700] = "";
    bool others = false;
    for (int i = 0; i < TUNE_ADAPTED_KINDS; i++)
        add_share(text, sizeof text, s->adapted[i], s->rows, what[i]);
    if (!*text)
        return 0;
    bool calls = s->adapted[TUNE_ADAPTED_CALLS] > 0;
    for (int i = 0; i < TUNE_ADAPTED_KINDS; i++)
        others = others || (i != TUNE_ADAPTED_CALLS && s->adapted[i] > 0);
    tune_append(text, sizeof text, "%s", !calls ? "; `strict` refuses such rows"
                                         : others ? "; `strict` refuses such rows and leaves arguments as they are"
                                                  : "; `strict` leaves arguments as they are");
    return tune_logger_note(log, "conversations", text + 2);
}

/* Say which length takes 95 % of the rows whole, or what the model's context takes. */
static void advise_length(char *text, size_t size, const struct tune_survey *s, int most, int context)
{
    int64_t length = tune_survey_length(s, ENOUGH);
    *text = 0;
    if (length > most && length <= context)
        tune_append(text, size, "; `max_length` %" PRId64 " would take %.3g %% of the rows whole (the longest has %" PRId64 ")", length,
                    100 * tune_survey_whole(s, length), s->longest);
    else if (context > most)
        tune_append(text, size, "; `max_length` %d, the model's context, would take %.3g %% of the rows whole (the longest has %" PRId64
                    ")", context, 100 * tune_survey_whole(s, context), s->longest);
    else
        tune_append(text, size, "; that is the model's context, and the longest row has %" PRId64, s->longest);
}

int tune_forecast_rows(struct tune_logger *log, const struct tune_dataset_options *o, const struct tune_survey *s, int context)
{
    char text[700], what[64], longer[200];
    int most = o->max_length;
    if (s->rows < s->of)
        snprintf(text, sizeof text, "%" PRId64 " of %" PRId64 " rows were read", s->rows, s->of);
    else
        snprintf(text, sizeof text, "all %" PRId64 " rows were read", s->rows);
    if (s->trained > 0)
        tune_append(text, sizeof text, ": mean %.0f tokens%s, longest %" PRId64, s->tokens, o->sequences == 2 ? " for both answers" : "",
                    s->longest);
    snprintf(what, sizeof what, "are cut to %d", most);
    add_share(text, sizeof text, s->cut, s->rows, what);
    add_share(text, sizeof text, s->cut_away, s->rows, "lose all they train on to the cut");
    add_share(text, sizeof text, s->empty, s->rows, "have nothing to train on");
    add_share(text, sizeof text, s->unanswered, s->rows, "have an empty answer");
    add_share(text, sizeof text, s->joined[0] + s->joined[1], s->rows, "join prompt and answer in one token");
    if (s->left_out > 0)
        tune_append(text, sizeof text, "; the chat template leaves out %.3g %% of the assistant's text in %.3g %% of the rows",
                    100 * s->left_out_share, percent(s->left_out, s->rows));
    add_share(text, sizeof text, s->unprompted, s->rows, "have no prompt");
    add_share(text, sizeof text, s->labelled[1], s->rows, "have the label true");
    add_share(text, sizeof text, s->doubled, s->rows, "are doubled");
    add_share(text, sizeof text, s->bad, s->rows, "cannot be read");
    TRY(tune_logger_note(log, "survey", text));
    TRY(note_adapted(log, s));
    advise_length(longer, sizeof longer, s, most, context);
    snprintf(text, sizeof text, "are cut to %d tokens%s%s", most, longer,
             s->plain && !o->response_template ? "; `chunk` parts texts instead" : "");
    TRY(warn(log, "warning: cut", s->cut, s, text));
    snprintf(text, sizeof text, "lose all they train on to the cut at %d tokens, and are left out%s", most, longer);
    TRY(warn(log, "warning: cut away", s->cut_away, s, text));
    TRY(warn(log, "warning: empty", s->empty, s,
             "have nothing to train on, and are left out; `show_tokens` 3 shows why, `train_on` says what is trained"));
    TRY(warn(log, "warning: no answer", s->unanswered, s, "have an empty answer, so the model learns to say nothing there; take "
             "them out of the file, or give `append_token` none, which leaves them out"));
    TRY(warn_of_texts(log, s));
    TRY(warn(log, "warning: no prompt", s->unprompted, s, "have no prompt, so the model learns answers to nothing; the prompt is a "
             "column prompt, or what both answers begin with; `columns` prompt=NAME names another column"));
    TRY(warn(log, "warning: doubled", s->doubled, s, "are the same as an earlier row, and are trained again; take them out of "
             "the file unless you mean it"));
    snprintf(text, sizeof text, "hold placeholders such as %s; fill them in, or the model learns to write them", s->placeholder);
    tune_blank_controls(text);
    TRY(warn(log, "warning: placeholders", s->unfilled, s, text));
    if (s->bad == 0 || o->skip_bad_rows)
        return 0;
    snprintf(text, sizeof text, "%" PRId64 " of %" PRId64 " cannot be read, and the run will stop at them; `skip_bad_rows` leaves "
             "them out. The first: %s", s->bad, s->rows, s->why);
    tune_blank_controls(text);
    return tune_logger_note(log, "warning: bad rows", text);
}

/* ---- time ---- */

/* y = x w of N tokens and the model's width, again and again: FLOP/s. */
static int time_product(struct tune_device *dev, struct tune_tensor *y, struct tune_tensor *x, struct tune_tensor *w,
                        enum tune_dtype operands, double *rate)
{
    double begin, passed = 0, flops = 2.0 * (double)x->shape[0] * (double)x->shape[1] * (double)y->shape[1];
    int64_t times = 1;
    *rate = 0;
    TRY(tune_linear_forward(dev, y, x, w, NULL, 1, NULL, operands)); /* fills caches, starts threads */
    TRY(tune_device_sync(dev));
    for (; passed < LEAST_S; times *= 2) {
        begin = tune_clock_s();
        for (int64_t i = 0; i < times; i++)
            TRY(tune_linear_forward(dev, y, x, w, NULL, 1, NULL, operands));
        TRY(tune_device_sync(dev));
        passed = tune_clock_s() - begin;
        *rate = flops * (double)times / passed;
    }
    return 0;
}

/* Room for a product to measure: the gradients, which are 0 until the first step and stay so. With
 * too few of them, memory of its own, where that is the host's. 0: there is none. */
static tune_address room(struct tune_model *model, int64_t bytes, bool *own)
{
    struct tune_device *dev = tune_model_device(model);
    struct tune_tensor gradients = tune_model_state(model, TUNE_GRADIENT);
    struct tune_device_memory memory;
    *own = false;
    if (gradients.data.at && gradients.shape[0] * 4 >= bytes)
        return gradients.data;
    *own = tune_device_memory(dev, &memory) == 0 && memory.shared;
    return *own ? tune_device_alloc(dev, bytes, "a product to measure") : (tune_address){0};
}

/* FLOP/s of products of the model's width; 0: the device has no memory for them. */
static int measure(struct tune_model *model, double tokens, double *rate)
{
    const struct tune_model_config *c = tune_model_config(model);
    struct tune_device *dev = tune_model_device(model);
    int64_t N = tokens < 1 ? 1 : tokens > 512 ? 512 : (int64_t)tokens, C = c->hidden, M = c->ffn < 1024 ? c->ffn : 1024;
    enum tune_dtype operands = tune_model_dtype(model);
    struct tune_tensor t[3] = {{.dtype = operands, .ndim = 2, .shape = {N, C}},
                               {.dtype = operands, .ndim = 2, .shape = {M, C}},
                               {.dtype = TUNE_F32, .ndim = 2, .shape = {N, M}}};
    int64_t at[4] = {0};
    bool own;
    for (int i = 0; i < 3; i++)
        at[i + 1] = (at[i] + tune_tensor_bytes(&t[i]) + 255) / 256 * 256;
    tune_address begin = room(model, at[3], &own);
    bool failed = !begin.at && own && tune_error_kind() != TUNE_ERROR_CANNOT;
    for (int i = 0; i < 3; i++)
        t[i].data = tune_address_plus(begin, at[i]);
    *rate = 0;
    int status = begin.at ? time_product(dev, &t[2], &t[0], &t[1], operands, rate) : failed ? -1 : 0;
    if (own)
        tune_device_free(dev, begin, at[3]);
    if (!begin.at && !failed)
        tune_error_clear();
    return status;
}

/* "850", "12 thousand", "3.4 million" */
static const char *amount(double n, char text[32])
{
    double unit = n < 1e4 ? 1 : n < 1e6 ? 1e3 : 1e6;
    snprintf(text, 32, n < 1e4 || n / unit >= 100 ? "%.0f%s" : "%.3g%s", n / unit, n < 1e4 ? "" : n < 1e6 ? " thousand" : " million");
    return text;
}

/* "40 s", "12 min", "3.5 h", "2.1 days" */
static void duration(char *text, size_t size, double s)
{
    if (s < 90)
        snprintf(text, size, "%.0f s", s < 1 ? 1 : s);
    else if (s < 5400)
        snprintf(text, size, "%.0f min", s / 60);
    else if (s < 36 * 3600)
        snprintf(text, size, "%.1f h", s / 3600);
    else
        snprintf(text, size, "%.1f days", s / 86400);
}

int tune_forecast_time(struct tune_logger *log, const struct tune_loader_options *o, struct tune_model *model,
                       const struct tune_loader *load, const struct tune_survey *s, const struct tune_memory_plan *plan,
                       double passes)
{
    double rate, steps = (double)tune_loader_planned_steps(load), rows = (double)tune_loader_planned_rows(load);
    char text[512], time[32], count[32];
    if (s->trained == 0)
        return 0;
    /* A packed row has no padding. */
    double sequences = o->sequences > 0 ? o->sequences : 1, row = (o->packing ? s->tokens : tune_survey_padded(s, o->batch_size));
    if (o->max_steps >= 0)
        rows = steps * (double)tune_loader_micro_batches(o) * o->batch_size * (o->packing ? o->max_length / row : 1);
    double tokens = rows * row;
    TRY(measure(model, o->packing ? o->max_length : row * o->batch_size, &rate));
    if (rate <= 0)
        return 0;
    double forward = tune_model_lora(model) ? 1. / 2 : 1. / 3; /* of a training step: 2 FLOP of 4 or 6 for each weight */
    double flops = tune_model_flops(model, row / sequences) * tokens * (1 + passes * forward);
    duration(time, sizeof time, flops / rate / PRODUCTS_SHARE);
    snprintf(text, sizeof text, "a guess: %s for %s tokens in %.0f steps", time, amount(tokens, count), o->packing && o->max_steps < 0 ? ceil(tokens / o->max_length / o->batch_size / (double)tune_loader_micro_batches(o)) : steps);
    if (passes > 0)
        tune_append(text, sizeof text, ", and %.3g forward passes more of each token for the reference%s", passes,
                    passes > 1 ? " and wrong answers" : "");
    if (plan)
        tune_append(text, sizeof text, "; at most %.1f MiB of memory", (double)plan->total / 1048576);
    return tune_logger_header(log, "estimate", text);
}
