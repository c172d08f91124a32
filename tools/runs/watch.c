/* watch.c - `runs watch`: show several runs live: in place in a terminal, else as new lines. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

#include "../drawing.h"
#include "runs.h"
#include "views/text.h"

enum {
    RECENT = 50, /* steps over which the speed is measured */
    TREND = 16,  /* fewest character cells of the loss curve */
    TREND_MOST = 96,
    LINES = 3,   /* lines for each run */
};

/* A run, and the figures of its last printed line. */
struct watched {
    struct tune_run *run; /* borrowed */
    bool shown;
    enum tune_run_state state;
    int64_t step, evaluations;
    double said_s; /* 0: no line yet */
};

static struct {
    struct tune_run **runs;
    struct watched *watched; /* [count] */
    int count;
    bool all;      /* watch all of runs/: the running ones, and new ones */
    bool terminal; /* draw in place */
    int drawn, columns, rows; /* lines that are on the screen now, and the screen's size when they
                               * were drawn */
} watch;

/* A line made of pieces. A piece that does not fit is left out. */
struct line {
    char text[2048];
    int used, room; /* columns */
};

/* ---- figures ---- */

static double last_of(const struct tune_run *r, const char *name, int64_t back)
{
    const struct tune_run_series *s = tune_run_series(r, name);
    return s && s->count > back ? s->value[s->count - 1 - back] : NAN;
}

/* Mean seconds and tokens of the last steps; NAN: unknown. */
static void speed(const struct tune_run *r, double *step_s, double *tokens_per_s)
{
    const struct tune_run_series *s = tune_run_series(r, "elapsed_s");
    int64_t n = s && s->count - 1 < RECENT ? s->count - 1 : RECENT;
    double before = s && s->count > n ? last_of(r, "elapsed_s", n) : 0;
    double seconds = last_of(r, "elapsed_s", 0) - before;
    double tokens = 0;
    *step_s = *tokens_per_s = NAN;
    if (!s || s->count == 0)
        return;
    if (n == 0) { /* one step, from its start */
        n = 1;
        seconds = last_of(r, "elapsed_s", 0);
    }
    for (int64_t i = 0; i < n; i++)
        tokens += last_of(r, "tokens", i);
    if (seconds > 0) {
        *step_s = seconds / (double)n;
        *tokens_per_s = tokens / seconds;
    }
}

/* The losses so far as a small curve of at most `most` cells, with one mean for each. "": too few. */
static const char *trend(const struct tune_run *r, int most, char text[4 * TREND_MOST + 1])
{
    static const char *const drawn[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const plain[] = {"_", "_", ".", ".", "-", "-", "^", "^"};
    const struct tune_run_series *s = tune_run_series(r, "loss");
    double mean[TREND_MOST], low = INFINITY, high = -INFINITY;
    int cells = s && s->count < most ? (int)s->count : most;
    *text = 0;
    if (!s || s->count < 2)
        return text;
    for (int c = 0; c < cells; c++) {
        int64_t from = s->count * c / cells, to = s->count * (c + 1) / cells;
        double sum = 0;
        for (int64_t i = from; i < to; i++)
            sum += s->value[i] / (double)(to - from);
        mean[c] = sum;
        low = mean[c] < low ? mean[c] : low;
        high = mean[c] > high ? mean[c] : high;
    }
    for (int c = 0; c < cells; c++) {
        double part = (mean[c] / 2 - low / 2) / (high / 2 - low / 2); /* the halves' difference is finite */
        int level = part > 0 && part <= 1 ? (int)(part * 7.999) : 0;
        strcat(text, drawing_unicode(my.ascii) ? drawn[level] : plain[level]);
    }
    return text;
}

/* ---- lines ---- */

/* Width of UTF-8 text in this terminal; some characters take two columns. */
static int columns_of(const char *text)
{
    mbstate_t state = {0};
    wchar_t c;
    int columns = 0;
    for (size_t n; *text; text += n) {
        n = mbrtowc(&c, text, strlen(text), &state);
        if (n == (size_t)-1 || n == (size_t)-2) { /* another locale: a byte may be a character */
            memset(&state, 0, sizeof state);
            n = 1;
            columns++;
        } else {
            columns += wcwidth(c) < 0 ? 1 : wcwidth(c);
        }
    }
    return columns;
}

/* The length in bytes of the text's start that fits into that many columns. */
static void cut(char *text, int columns)
{
    size_t n = strlen(text);
    if (columns_of(text) <= columns)
        return;
    while (n > 0 && columns_of(text) > columns - 1) {
        do
            n--;
        while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80);
        text[n] = 0;
    }
    strcat(text, columns > 0 ? "~" : "");
}

/* Append a piece. The first piece of a line may be cut; the others are whole or left out. */
static void add(struct line *l, const char *between, const char *format, ...)
{
    char piece[1600];
    size_t n = strlen(l->text);
    va_list args;
    va_start(args, format);
    vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    if (n == 0)
        cut(piece, l->room);
    int columns = columns_of(piece) + (n ? (int)strlen(between) : 0);
    if (!*piece || l->used + columns > l->room)
        return;
    snprintf(l->text + n, sizeof l->text - n, "%s%s", n ? between : "", piece);
    l->used += columns;
}

static void add_plain(struct line *l, const char *between, const char *text, int width, int most)
{
    char *plain = tune_plain(text), name[1024];
    snprintf(name, sizeof name - 8, "%s", plain ? plain : "");
    free(plain);
    cut(name, most);
    int space = width - columns_of(name);
    add(l, between, "%s%*s", name, space > 0 ? space : 0, "");
}

static void add_progress(struct line *l, const char *between, const struct tune_run *r)
{
    char text[32];
    double step_s, tokens_per_s;
    int64_t planned = r->planned_steps, left = planned - r->step;
    speed(r, &step_s, &tokens_per_s);
    int width = snprintf(text, sizeof text, "%" PRId64, planned);
    if (planned > 0) {
        add(l, between, "step %*" PRId64 "/%s", width, r->step, text);
        add(l, between, "%3.0f%%", 100 * (double)(left > 0 ? r->step : planned) / (double)planned);
    } else
        add(l, between, "step %" PRId64, r->step);
    if (!tune_run_ended(r) && planned > 0 && left >= 0 && step_s * (double)left < 3.6e9) {
        long long s = (long long)(step_s * (double)left + 0.5);
        add(l, between, "ETA %lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    }
    if (tune_run_ended(r))
        tokens_per_s = r->tokens_per_s;
    if (isfinite(tokens_per_s))
        add(l, between, "%.0f tokens/s", tokens_per_s);
}

static const char *loss_text(double value, char text[32])
{
    snprintf(text, 32, runs_loss_format(value), value);
    return text;
}

static void add_losses(struct line *l, const char *between, const struct tune_run *r, bool drawn)
{
    const struct tune_run_series *eval = tune_run_series(r, "eval_loss");
    char text[4 * TREND_MOST + 1], loss[32];
    double lr = last_of(r, "lr", 0), norm = last_of(r, "grad_norm", 0);
    int cells = l->room < 80 + TREND ? TREND : l->room - 80 < TREND_MOST ? l->room - 80 : TREND_MOST;
    if (isfinite(r->loss))
        add(l, between, "loss %s", loss_text(r->loss, loss));
    if (drawn)
        add(l, " ", "%s", trend(r, cells, text));
    if (eval)
        add(l, between, "eval %s at %.0f", loss_text(r->eval_loss, loss), eval->step[eval->count - 1]);
    if (eval && r->best_eval_step < (int64_t)eval->step[eval->count - 1])
        add(l, between, "best %s at %" PRId64, loss_text(r->best_eval_loss, loss), r->best_eval_step);
    if (isfinite(lr))
        add(l, between, "lr %.3g", lr);
    if (isfinite(norm))
        add(l, between, "norm %.3g", norm);
}

static void make_line(struct line *l, int room)
{
    l->text[0] = 0;
    l->used = 0;
    l->room = room;
}

/* Draw one run on two lines, and the reason for its state on a third. Returns the number of
 * lines. */
static int draw_run(FILE *out, int i, int name_width, int room, const char *end)
{
    const struct tune_run *r = watch.watched[i].run;
    struct line l;
    int lines = 2;
    make_line(&l, room);
    add_plain(&l, "", runs_label(watch.runs, watch.count, i), name_width, name_width);
    add(&l, "  ", "%-8s", tune_run_state_name(r->state));
    add_progress(&l, "  ", r);
    add_plain(&l, "  ", tune_run_member(r, "program"), 0, 64);
    fprintf(out, "%s%s", l.text, end);
    make_line(&l, room - 2);
    add_losses(&l, "  ", r, true);
    fprintf(out, "%s%s%s", room > 2 ? "  " : "", l.text, end);
    if (*r->reason) {
        make_line(&l, room - 2);
        add_plain(&l, "", r->reason, 0, l.room);
        fprintf(out, "%s%s%s", room > 2 ? "  " : "", l.text, end);
        lines++;
    }
    return lines;
}

/* ---- the screen ---- */

static int name_columns(int room)
{
    int width = 0, most = room / 3 < 8 ? 8 : room / 3;
    for (int i = 0; i < watch.count; i++) {
        char *plain = tune_plain(runs_label(watch.runs, watch.count, i));
        int w = plain && watch.watched[i].shown ? columns_of(plain) : 0;
        width = w > width ? w : width;
        free(plain);
    }
    return width < most ? width : most;
}

static const char waiting[] = "; waiting for one, Ctrl-C ends";

/* Draw the last runs that fit on the screen, then a line with the number of runs left out. */
static int draw_runs(FILE *out, int columns, int rows, const char *end)
{
    int room = columns > 0 ? columns - 1 : 1600; /* the last column would wrap */
    int lines = 0, left_out = 0;
    int width = name_columns(room);
    struct line l;
    for (int i = 0; i < watch.count; i++) {
        if (!watch.watched[i].shown)
            continue;
        if (rows > 0 && lines + LINES > rows - 2)
            left_out++;
        else
            lines += draw_run(out, i, width, room, end);
    }
    make_line(&l, room);
    if (lines == 0 && left_out == 0)
        add(&l, "", "# no run in runs/ is running%s", my.once ? "" : waiting);
    if (left_out > 0)
        add(&l, "", "# %d more; name those to see, or make the terminal higher", left_out);
    if (*l.text)
        fprintf(out, "%s%s", l.text, end);
    return lines + (*l.text != 0);
}

/* Everything in one write, so that the terminal never shows half of it. */
static void draw(void)
{
    char *text = NULL;
    size_t size;
    struct winsize w = {0};
    FILE *out = GET(open_memstream(&text, &size));
    int columns = drawing_columns(my.width, watch.terminal ? 80 : 0);
    if (watch.terminal) {
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &w);
        bool resized = watch.drawn > 0 && (columns != watch.columns || w.ws_row != watch.rows);
        if (resized) /* the earlier lines may have been wrapped since */
            fputs("\033[H\033[2J", out);
        else if (watch.drawn > 0)
            fprintf(out, "\033[%dA\r", watch.drawn);
        watch.columns = columns;
        watch.rows = w.ws_row;
    }
    watch.drawn = draw_runs(out, columns, w.ws_row, watch.terminal ? "\033[K\n" : "\n");
    fputs(watch.terminal ? "\033[J" : "", out);
    MUST(fclose(out) == 0 ? 0 : -1);
    fwrite(text, 1, size, stdout);
    fflush(stdout);
    free(text);
}

/* Print a line for each run with a new state or evaluation, or with new steps after some time. */
static void append(double now_s, double interval)
{
    bool any = false;
    for (int i = 0; i < watch.count; i++) {
        struct watched *w = &watch.watched[i];
        const struct tune_run_series *eval = tune_run_series(w->run, "eval_loss");
        int64_t evaluations = eval ? eval->count : 0;
        bool due = w->said_s == 0 || w->run->state != w->state || evaluations != w->evaluations ||
                   (w->run->step != w->step && now_s - w->said_s >= interval);
        struct line l;
        any = any || w->shown;
        if (!w->shown || !due)
            continue;
        make_line(&l, 1600);
        add_plain(&l, "", runs_label(watch.runs, watch.count, i), 0, 1000);
        add(&l, " | ", "%s", tune_run_state_name(w->run->state));
        add_progress(&l, " | ", w->run);
        add_losses(&l, " | ", w->run, false);
        add_plain(&l, " | ", tune_run_member(w->run, "program"), 0, 64);
        add_plain(&l, " | ", w->run->reason, 0, 400);
        printf("%s\n", l.text);
        w->state = w->run->state;
        w->step = w->run->step;
        w->evaluations = evaluations;
        w->said_s = now_s;
    }
    if (!any && !watch.drawn)
        printf("# no run in runs/ is running%s\n", waiting);
    watch.drawn = 1;
    fflush(stdout);
}

/* ---- the loop ---- */

/* Add new runs of runs/, and read changes. true: every run that is shown has ended. */
static bool look(bool first)
{
    int shown = 0, ended = 0, before = watch.count;
    if (watch.all && !first)
        watch.count = MUST(tune_runs_more(&watch.runs, watch.count, "runs"));
    if (first || watch.count > before) {
        size_t n = (size_t)watch.count + 1;
        struct watched *more = realloc(watch.watched, n * sizeof *more);
        watch.watched = GET(more);
        for (int i = first ? 0 : before; i < watch.count; i++)
            more[i] = (struct watched){.run = watch.runs[i], .shown = !watch.all || !first};
    }
    for (int i = 0; i < watch.count; i++) {
        struct watched *w = &watch.watched[i];
        if (w->shown || tune_run_held(w->run->folder))
            tune_run_update(w->run);
        w->shown = w->shown || !tune_run_ended(w->run);
        shown += w->shown;
        ended += w->shown && tune_run_ended(w->run);
    }
    return shown > 0 && shown == ended;
}

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Sleep until the time is up, the terminal's size changes or a signal arrives. Returns the signal,
 * or 0. */
static int pause_for(double seconds, const sigset_t *signals)
{
    struct timespec t = {.tv_sec = (time_t)seconds};
    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
    int signal = sigtimedwait(signals, NULL, &t);
    return signal == SIGWINCH || signal < 0 ? 0 : signal;
}

int runs_watch(const char *const *words, int count)
{
    const char *term = getenv("TERM");
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action;
    sigset_t signals;
    int caught = 0;
    watch.all = count == 0;
    bool moves = term && *term && strcmp(term, "dumb") != 0; /* hide its cursor */
    watch.terminal = isatty(STDOUT_FILENO) && moves && !my.once;
    double interval = my.interval > 0 ? my.interval : watch.terminal ? 0.5 : 10;
    interval = interval < 0.2 ? 0.2 : interval;
    watch.count = MUST(tune_runs_follow(&watch.runs, words, count));
    sigemptyset(&signals);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        if (sigaction(ending[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&signals, ending[i]);
    sigaddset(&signals, SIGWINCH);
    sigprocmask(SIG_BLOCK, &signals, NULL); /* allow signals only between two drawings */
    for (bool ended = look(true); !caught && !ferror(stdout); ended = look(false)) {
        if (watch.terminal || my.once)
            draw();
        else
            append(now_seconds(), ended ? 0 : interval);
        if (ended || my.once)
            break;
        caught = pause_for(watch.terminal || interval < 0.5 ? interval : 0.5, &signals);
    }
    if (caught && watch.terminal)
        fputs("\r\033[K", stdout); /* on a new line after the terminal's ^C */
    tune_runs_free(watch.runs, watch.count);
    free(watch.watched);
    return caught ? 128 + caught : 0;
}
