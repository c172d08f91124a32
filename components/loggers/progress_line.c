/* progress_line.c - one line per logged step, or a bar drawn in place. */
#include "loggers/progress_line.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/print.h"
#include "machine/ranks.h"
#include "views/text.h"

void tune_line_start(struct tune_line *line, FILE *out)
{
    const char *term = getenv("TERM");
    *line = (struct tune_line){.out = out};
    line->terminal = isatty(fileno(out)) && (tune_ranks_launched().size == 0 || tune_ranks_columns() > 0) && term && *term && strcmp(term, "dumb") != 0;
}

/* The width: $COLUMNS if it is set, else the terminal's, else 80. */
static int columns(FILE *out)
{
    const char *set = getenv("COLUMNS");
    int n = set ? atoi(set) : 0;
    struct winsize w;
    n = n > 0 ? n : tune_ranks_columns();
    if (n <= 0 && ioctl(fileno(out), TIOCGWINSZ, &w) == 0)
        n = w.ws_col;
    return n > 0 ? n : 80;
}

enum { LEAD = 40 }; /* most bytes of "# ", a key and its spaces */

/* The text after the key of a `#` line, or after the "# " of one without a key; such a line is folded
 * in a terminal. NULL: no such line. */
static const char *after_key(const char *text)
{
    if (strncmp(text, "# ", 2) != 0)
        return NULL;
    const char *gap = strstr(text + 2, "  "), *rest = gap ? gap + strspn(gap, " ") : NULL;
    return rest && *rest && rest - text <= LEAD ? rest : text + 2;
}

/* Print a line. In a terminal, or where COLUMNS is set, a `#` line is folded between words. */
static void put_text(const struct tune_line *line, char *text)
{
    const char *rest = line->terminal || getenv("COLUMNS") ? after_key(text) : NULL;
    int width = columns(line->out);
    if (!rest || tune_plain_width(text) < width) {
        tune_print_line_of(line->out, text);
        fputc('\n', line->out);
        return;
    }
    char lead[LEAD + 1];
    snprintf(lead, sizeof lead, "%.*s", (int)(rest - text), text);
    tune_put_folded(line->out, lead, rest, width - 1);
}

static const char *eta_text(char text[32], double s)
{
    if (!(s >= 0 && s < 3.6e9))
        return "-:--:--";
    long long t = (long long)(s + 0.5);
    snprintf(text, 32, "%lld:%02lld:%02lld", t / 3600, t / 60 % 60, t % 60);
    return text;
}

static const char *step_text(char text[64], const struct tune_line_step *s)
{
    char planned[24];
    int width = snprintf(planned, sizeof planned, "%lld", (long long)s->planned);
    if (s->planned > 0)
        snprintf(text, 64, "%*lld/%s", width, (long long)s->step, planned);
    else
        snprintf(text, 64, "%lld", (long long)s->step);
    return text;
}

/* Take the widest of three texts that fits. The bar gets the remaining room. */
void tune_line_bar(char *text, size_t size, const struct tune_line_step *s, int width)
{
    char eta[32], step[64], figures[320];
    int room = width > 1 ? width - 1 : 0; /* a character in the last column makes some terminals
                                           * wrap */
    const char *left = eta_text(eta, s->eta_s);
    double share = s->planned > 0 ? (double)s->step / (double)s->planned : 0;
    share = share > 1 ? 1 : share;
    step_text(step, s);
    int n = snprintf(figures, sizeof figures, "step %s  loss %.4f  %.0f tok/s  ETA %s", step, s->loss, s->tokens_per_s, left);
    if (n > room)
        n = snprintf(figures, sizeof figures, "%s %.4f %.0f/s %s", step, s->loss, s->tokens_per_s, left);
    if (n > room)
        n = snprintf(figures, sizeof figures, "%s %.4f %s", step, s->loss, left);
    if (n > room)
        n = snprintf(figures, sizeof figures, "%s %.4f", step, s->loss);
    int own = s->own ? (int)strlen(s->own) : 0;
    if (own > 0 && n + 2 + own + (int)strlen("100% [] ") + 10 <= room && n + 2 + own < (int)sizeof figures)
        n += snprintf(figures + n, sizeof figures - (size_t)n, "  %s", s->own);
    int bar = room - n - (int)strlen("100% [] ");
    bar = bar > 40 ? 40 : bar;
    if (s->planned <= 0 || bar < 6) {
        snprintf(text, size, "%.*s", room, figures);
        return;
    }
    char drawn[41];
    int full = (int)(share * bar);
    memset(drawn, '.', sizeof drawn);
    memset(drawn, '#', (size_t)full);
    drawn[bar] = 0;
    snprintf(text, size, "%3d%% [%s] %s", (int)(share * 100), drawn, figures);
}

static int flushed(struct tune_line *line)
{
    if (fflush(line->out) == 0 && !ferror(line->out))
        return 0;
    if (line->stop) {
        if (!*line->stop)
            __atomic_store_n(line->stop, SIGPIPE, __ATOMIC_RELAXED);
        return 0;
    }
    tune_error_set("cannot write the progress lines to standard output: %s", strerror(errno));
    return -1;
}

/* Up, erase, draw, down: in one write, so that the terminal never shows half of it. */
static int draw(struct tune_line *line, const struct tune_line_step *s)
{
    char bar[512];
    tune_line_bar(bar, sizeof bar, s, columns(line->out));
    fprintf(line->out, "%s\r%s\033[K\n", line->drawn ? "\033[1A" : "", bar);
    line->drawn = true;
    return flushed(line);
}

int tune_line_step(struct tune_line *line, const struct tune_line_step *s, double now_s)
{
    if (line->terminal) {
        if (line->drawn && s->step != s->planned && now_s - line->drawn_s < 0.1)
            return 0;
        line->drawn_s = now_s;
        return draw(line, s);
    }
    char eta[32], step[64];
    fprintf(line->out, "step %s | loss %7.4f | norm %6.2f | lr %.1e | %6.0f ms | %7.0f tok/s | ETA %s%s%s%s\n", step_text(step, s),
            s->loss, s->norm, s->lr, s->step_s * 1e3, s->tokens_per_s, eta_text(eta, s->eta_s), s->own && *s->own ? " | " : "",
            s->own ? s->own : "", s->diverged ? " | diverged" : "");
    return flushed(line);
}

int tune_line_print(struct tune_line *line, const char *format, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory for a progress line");
        return -1;
    }
    if (line->spell)
        line->spell(line->flags, text);
    if (line->drawn)
        fputs("\033[1A\r\033[K", line->out); /* the next step draws the bar again below this line */
    line->drawn = false;
    put_text(line, text);
    free(text);
    return flushed(line);
}
