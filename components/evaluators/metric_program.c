/* metric_program.c - give answers to a program, and read the numbers that it writes. */
#include "evaluators/metric_program.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/array.h"
#include "core/print.h"
#include "core/try.h"
#include "files/cjson.h"
#include "files/file.h"
#include "machine/child.h"

enum { OUTPUT_LEAST = 1 << 20, OUTPUT_ROW = 4096, ERRORS_MOST = 64 << 20, ERRORS_READ = 4096, POLL_MS = 20, SHOWN = 80 };

struct tune_metric_program {
    char *command;
    double limit_s;
    int sides;
    FILE *rows[TUNE_PROGRAM_SIDES]; /* files without a name */
    int64_t *numbers, count[TUNE_PROGRAM_SIDES]; /* [room] of rows */
    size_t room;
};

extern char **environ;

/* A file without a name, to write and read. */
static FILE *open_file(void)
{
    int fd = tune_file_nameless("answers for `metric_program` are written into this folder");
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w+");
    if (fd >= 0 && !file) {
        tune_error_no_memory("a file");
        close(fd);
    }
    return file;
}

struct tune_metric_program *tune_metric_program_new(const char *command, double limit_s, int sides)
{
    struct tune_metric_program *p = tune_zeroed(1, sizeof *p, "a metric program");
    bool good = p && (p->command = strdup(command));
    if (p && !good)
        tune_error_no_memory("a metric program");
    for (int s = 0; s < sides && good; s++)
        good = (p->rows[s] = open_file()) != NULL;
    if (!good) {
        tune_metric_program_free(p);
        return NULL;
    }
    p->limit_s = limit_s;
    p->sides = sides;
    return p;
}

void tune_metric_program_free(struct tune_metric_program *p)
{
    if (!p)
        return;
    for (int s = 0; s < TUNE_PROGRAM_SIDES; s++)
        if (p->rows[s])
            fclose(p->rows[s]);
    free(p->command);
    free(p->numbers);
    free(p);
}

static bool put_line(cJSON *line, int64_t row, const struct tune_asked *asked, struct tune_text answer)
{
    const struct tune_text *e = &asked->expected;
    bool good = tune_cjson_put_whole(line, "row", row) &&
                (!asked->prompt.data || tune_cjson_put_bytes(line, "prompt", asked->prompt.data, asked->prompt.size)) &&
                tune_cjson_put_bytes(line, "answer", answer.data, answer.size) && tune_cjson_put_bytes(line, "expected", e->data, e->size);
    cJSON *list = cJSON_AddArrayToObject(line, "references");
    for (int i = 0; i <= asked->more_count && good; i++)
        good = i ? tune_cjson_add_bytes(list, asked->more[i - 1].data, asked->more[i - 1].size) : tune_cjson_add_bytes(list, e->data, e->size);
    return good;
}

int tune_metric_program_row(struct tune_metric_program *p, int side, int64_t row, const struct tune_asked *asked, struct tune_text answer)
{
    cJSON *line = cJSON_CreateObject();
    char *text = put_line(line, row, asked, answer) ? cJSON_PrintUnformatted(line) : NULL;
    cJSON_Delete(line);
    if (!text)
        return tune_error_no_memory("an answer");
    bool good = fprintf(p->rows[side], "%s\n", text) > 0;
    cJSON_free(text);
    if (!good)
        return tune_error_cannot("cannot write an answer for `metric_program`: %s", strerror(errno));
    TRY(tune_array_reserve(&p->numbers, &p->room, (size_t)p->count[side] + 1, sizeof *p->numbers, "numbers of rows"));
    p->numbers[p->count[side]++] = row;
    return 0;
}

/* ---- the run ---- */

/* The last line of a file that is not blank, cut. Only the file's end is read. */
static void last_line(FILE *file, char *text, size_t size)
{
    char *line = NULL;
    size_t room = 0;
    *text = 0;
    if (fseek(file, -ERRORS_READ, SEEK_END) != 0)
        rewind(file); /* it is shorter */
    while (getline(&line, &room, file) > 0) {
        line[strcspn(line, "\r\n")] = 0;
        if (line[strspn(line, " \t")])
            snprintf(text, size, "%s", line);
    }
    free(line);
    tune_blank_controls(text);
}

static long long output_most(int64_t rows)
{
    return OUTPUT_LEAST + OUTPUT_ROW * (long long)rows;
}

static bool is_larger(FILE *file, long long most)
{
    struct stat st;
    return fstat(fileno(file), &st) == 0 && st.st_size > most;
}

static bool wrote_too_much(FILE *out, long long most, FILE *errors)
{
    return is_larger(out, most) || is_larger(errors, ERRORS_MOST);
}

static int complain(const struct tune_metric_program *p, int side, const struct tune_child_end *end, FILE *out, FILE *errors)
{
    char said[300], how[400];
    last_line(errors, said, sizeof said);
    int signal = end->how == TUNE_CHILD_SIGNALLED ? end->code : end->code > 128 ? end->code - 128 : 0; /* the shell's way to say it */
    if (is_larger(out, output_most(p->count[side])))
        snprintf(how, sizeof how, "wrote more than %lld bytes, and was ended; expected a short line for each row", output_most(p->count[side]));
    else if (is_larger(errors, ERRORS_MOST))
        snprintf(how, sizeof how, "wrote more than %d bytes of errors, and was ended; expected fewer, such as with 2>/dev/null", ERRORS_MOST);
    else if (end->how == TUNE_CHILD_NOT_STARTED)
        snprintf(how, sizeof how, "did not start: %.300s", end->reason);
    else if (end->how == TUNE_CHILD_TIMED_OUT)
        snprintf(how, sizeof how, "took longer than %g s and was ended; `metric_limit` gives it more", p->limit_s);
    else if (signal)
        snprintf(how, sizeof how, "was ended by signal %d (%s)%s", signal, strsignal(signal), end->oom_killed ? ", for want of memory" : "");
    else
        snprintf(how, sizeof how, "ended with exit code %d", end->code);
    return tune_error_set("it %s%s%s", how, *said ? ". The last line of its errors: " : "", said);
}

/* Run the program on a side's answers. 1: it ran well; 0: a signal came; -1 with an error. */
static int run(const struct tune_metric_program *p, int side, const volatile int *stop_signal, FILE *out, FILE *errors)
{
    char script[8192], in[64], to[64], log[64];
    long long most = output_most(p->count[side]);
    if (snprintf(script, sizeof script, "exec <\"$1\" >\"$2\" 2>\"$3\"; set --; %s\n", p->command) >= (int)sizeof script)
        return tune_error_usage("the command is too long; put it into a file");
    if (fflush(p->rows[side]) != 0)
        return tune_error_cannot("cannot write its input: %s", strerror(errno));
    snprintf(in, sizeof in, "/proc/%d/fd/%d", (int)getpid(), fileno(p->rows[side]));
    snprintf(to, sizeof to, "/proc/%d/fd/%d", (int)getpid(), fileno(out));
    snprintf(log, sizeof log, "/proc/%d/fd/%d", (int)getpid(), fileno(errors));
    const char *const argv[] = {"/bin/sh", "-c", script, "sh", in, to, log, NULL};
    const struct tune_child_options o = {.argv = argv, .environment = (const char *const *)environ, .log_limit = 4096, .limit_s = p->limit_s,
                                         .grace_s = 2};
    struct tune_child_end end;
    struct tune_child *child = tune_child_start(&o);
    if (!child)
        return -1;
    struct pollfd ended = {.fd = tune_child_descriptor(child), .events = POLLIN};
    bool stopped = false;
    while (poll(&ended, 1, POLL_MS) == 0 || !ended.revents) {
        if (!stopped && stop_signal && *stop_signal) {
            tune_child_stop(child);
            stopped = true;
        }
        if (wrote_too_much(out, most, errors))
            tune_child_stop(child); /* the second time at once: it may go on to write */
    }
    tune_child_end(child, &end);
    if (stopped)
        return 0;
    /* It may have written too much and ended between two looks. */
    return !wrote_too_much(out, most, errors) && end.how == TUNE_CHILD_EXITED && end.code == 0 ? 1 : complain(p, side, &end, out, errors);
}

/* ---- what it wrote ---- */

/* Names that a row or the report has already, and "tasks", which marks a report of task files. */
static bool is_taken(const char *name)
{
    static const char *const taken[] = {"row", "prompt", "answer", "expected", "exact_match", "end", "tokens", "prompt_tokens", "references",
                                        "of", "answer_index", "text", "version", "status", "nonce", "dataset", "model", "rows", "rows_cut",
                                        "labels", "confusion", "options", "data_hash", "adapter", "generation", "compared_with",
                                        "better_rows", "worse_rows", "metric_program", "loss_sum", "loss_tokens", "loss_bytes",
                                        "text_loss_sum", "answer_tokens_per_second", "tasks"};
    int count;
    const struct tune_score *all = tune_scores(&count);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (!strcmp(taken[i], name))
            return true;
    for (int i = 0; i < count; i++)
        if (!strcmp(all[i].name, name))
            return true;
    return false;
}

/* The report writes more numbers of a metric under longer names, such as s_low. Find the part of this
 * name that only such names have; NULL: it has none. */
static const char *added_part(const char *name)
{
    static const char *const begins[] = {"base_", "difference_", "wins_", "losses_", "ties_", "p_", "rows_"};
    static const char *const ends[] = {"_low", "_high", "_error", "_signature"};
    size_t size = strlen(name);
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (!strncmp(begins[i], name, strlen(begins[i])))
            return begins[i];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (size >= strlen(ends[i]) && !strcmp(ends[i], name + size - strlen(ends[i])))
            return ends[i];
    return NULL;
}

static int add_name(struct tune_program_metrics *m, const char *name)
{
    size_t size = strlen(name);
    if (size == 0 || size >= sizeof *m->name || name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")])
        return tune_error_set("\"%.60s\" cannot name a metric; expected 1 to %d letters, digits, _, - and .", name, (int)sizeof *m->name - 1);
    if (is_taken(name))
        return tune_error_set("the name \"%s\" is that of another number of a row or of the report; expected another one", name);
    const char *part = added_part(name);
    if (part)
        return tune_error_set("\"%s\" cannot name a metric: names that %s %s are the report's own; expected another one", name,
                              *part == '_' ? "end in" : "begin with", part);
    if (m->count == TUNE_PROGRAM_METRICS)
        return tune_error_set("expected at most %d numbers", TUNE_PROGRAM_METRICS);
    snprintf(m->name[m->count++], sizeof *m->name, "%s", name);
    return 0;
}

static int place_of(const struct tune_program_metrics *m, const char *name)
{
    for (int i = 0; i < m->count; i++)
        if (!strcmp(m->name[i], name))
            return i;
    return -1;
}

/* Take a number of a line. had [count]: names that the line had so far. */
static int take(struct tune_program_metrics *m, bool first, const char *name, const cJSON *value, bool *had, double *numbers)
{
    if (!cJSON_IsNumber(value) && !cJSON_IsBool(value))
        return tune_error_set("\"%.60s\" is no number; expected a number, or true or false", name);
    int at = place_of(m, name);
    if (at < 0 && !first)
        return tune_error_set("\"%.60s\" is not in line 1; expected the same names in every line", name);
    if (at < 0) {
        TRY(add_name(m, name));
        at = m->count - 1;
    }
    if (had[at])
        return tune_error_set("\"%.60s\" is there twice", name);
    had[at] = true;
    numbers[at] = cJSON_IsBool(value) ? cJSON_IsTrue(value) : value->valuedouble + 0.; /* no -0 */
    return isfinite(numbers[at]) ? 0 : tune_error_set("\"%.60s\" is beyond all numbers; expected a finite one", name);
}

static int read_line(struct tune_program_metrics *m, bool first, const char *line, double *numbers)
{
    bool had[TUNE_PROGRAM_METRICS + 1] = {false};
    cJSON *json = cJSON_ParseWithOpts(line, NULL, true);
    int status = 0;
    if (cJSON_IsNumber(json) || cJSON_IsBool(json)) {
        status = take(m, first, "score", json, had, numbers);
    } else if (cJSON_IsObject(json)) {
        for (const cJSON *v = json->child; v && status == 0; v = v->next)
            status = take(m, first, v->string, v, had, numbers);
        if (status == 0 && m->count == 0)
            status = tune_error_set("the object is empty; expected a number at least");
    } else {
        char shown[SHOWN];
        snprintf(shown, sizeof shown, "%.*s", (int)strcspn(line, "\r\n"), line);
        tune_utf8_mend(shown, strlen(shown));
        tune_blank_controls(shown);
        status = tune_error_set("expected an object of numbers or one number, in JSON (which has no NaN), not: %s", *shown ? shown : "a blank line");
    }
    cJSON_Delete(json);
    for (int i = 0; i < m->count && status == 0; i++)
        if (!had[i])
            status = tune_error_set("\"%s\" is missing, which line 1 has; expected the same names in every line", m->name[i]);
    return status;
}

/* Read a line for each row. first: the names are not known yet. */
static int read_output(const struct tune_metric_program *p, int side, FILE *out, struct tune_program_metrics *m)
{
    char *line = NULL;
    size_t room = 0;
    int64_t rows = p->count[side], i = 0;
    int status = 0;
    rewind(out);
    for (; status == 0 && getline(&line, &room, out) > 0; i++) {
        double numbers[TUNE_PROGRAM_METRICS + 1];
        if (i >= rows)
            continue; /* counted */
        status = read_line(m, side == 0 && i == 0, line, numbers);
        if (status < 0)
            tune_error_prefix("line %" PRId64 " of its output, for row %" PRId64 ": ", i + 1, p->numbers[i]);
        for (int k = 0; k < m->count && status == 0; k++) {
            if (!m->sums[side][k])
                m->sums[side][k] = tune_zeroed(2 * (size_t)rows, sizeof(double), "metrics of %" PRId64 " rows", rows);
            status = m->sums[side][k] ? 0 : -1;
            if (status == 0)
                m->sums[side][k][2 * i] = numbers[k], m->sums[side][k][2 * i + 1] = 1;
        }
    }
    free(line);
    if (status == 0 && i != rows)
        status = tune_error_set("it wrote %" PRId64 " lines for %" PRId64 " rows; expected one line for each, in their order", i, rows);
    return status;
}

/* True if all rows of all sides have 1 or 0. */
static bool is_right_or_wrong(const struct tune_metric_program *p, const struct tune_program_metrics *m, int k)
{
    for (int s = 0; s < p->sides; s++)
        for (int64_t i = 0; i < p->count[s]; i++)
            if (m->sums[s][k][2 * i] != 0 && m->sums[s][k][2 * i] != 1)
                return false;
    return true;
}

int tune_metric_program_run(struct tune_metric_program *p, const volatile int *stop_signal, struct tune_program_metrics *m)
{
    int status = 1;
    memset(m, 0, sizeof *m);
    for (int s = 0; s < p->sides && status > 0; s++) {
        FILE *out = open_file(), *errors = out ? open_file() : NULL;
        status = errors ? run(p, s, stop_signal, out, errors) : -1;
        if (status > 0 && read_output(p, s, out, m) < 0)
            status = -1;
        if (out)
            fclose(out);
        if (errors)
            fclose(errors);
    }
    for (int k = 0; k < m->count && status > 0; k++)
        tune_score_own(&m->score[k], m->name[k], is_right_or_wrong(p, m, k));
    if (status <= 0)
        tune_program_metrics_free(m);
    return status < 0 ? tune_error_prefix("`metric_program` %s: ", p->command) : status;
}

void tune_program_metrics_free(struct tune_program_metrics *m)
{
    for (int s = 0; s < TUNE_PROGRAM_SIDES; s++)
        for (int k = 0; k < TUNE_PROGRAM_METRICS; k++)
            free(m->sums[s][k]);
    memset(m, 0, sizeof *m);
}
