/* run.c - a run folder: run.json, metrics.jsonl or report.json, read, drawn and put into a table. The first byte says which of
 * them the rest is; the other two are as a run leaves them. */
#include <math.h>

#include "../both_readers.h"
#include "files/file.h"
#include "fuzz.h"
#include "runs/run.h"
#include "views/plot.h"
#include "views/table.h"

static const char *const names[] = {"run.json", "metrics.jsonl", "report.json"};
static const char *const usual[] = {"{\"status\":\"finished\",\"started\":\"2026-01-02T03:04:05Z\",\"options\":{\"lr\":0.1}}",
                                    "{\"step\":1,\"loss\":2,\"step_s\":1,\"tokens\":3,\"epoch\":1}\n", "{\"loss_last\":2}"};
static struct fuzz_file files[3];
static FILE *nowhere;

static void make_folder(void)
{
    for (int i = 0; i < 3; i++)
        files[i] = fuzz_file_in_folder(names[i]);
    HOLDS((nowhere = fopen("/dev/null", "w")));
}

static void draw(const struct tune_run *r, const struct tune_run_series *s)
{
    double *x = tune_run_axis(r, s, "tokens");
    if (!x) {
        fuzz_refused();
        return;
    }
    struct tune_curve c = {.label = s->name, .x = x, .y = s->value, .count = s->count};
    struct tune_plot p = {.title = s->name, .x_title = "tokens", .y_title = "", .curves = &c, .count = 1, .smooth = -1};
    for (int log = 0; log < 2; log++) {
        p.logarithmic = log;
        if (tune_plot_svg(&p, 1, nowhere) < 0)
            fuzz_refused();
        if (tune_plot_terminal(&p, &(struct tune_terminal){.width = 40, .height = 8, .unicode = log, .color = log}, nowhere) < 0)
            fuzz_refused();
    }
    free(x);
}

/* Every line is the same alone and after the others. */
static void read_lines(const char *text, const char *end)
{
    static struct tune_metrics_row row;
    row = (struct tune_metrics_row){.path = "metrics.jsonl", .line = 1};
    bool good;
    for (const char *next; (next = memchr(text, '\n', (size_t)(end - text))); text = next + 1)
        HOLDS(!both_readers(&row, text, (size_t)(next - text), &good));
    tune_error_clear();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const columns[] = {"state", "lr", "loss"};
    char text[64];
    const char **differing;
    if (!nowhere)
        make_folder();
    if (size < 1)
        return 0;
    for (int i = 0; i < 3; i++)
        if (data[0] % 3 == i)
            fuzz_set(&files[i], data + 1, size - 1);
        else
            fuzz_set(&files[i], usual[i], strlen(usual[i]));
    if (data[0] % 3 == 1)
        read_lines((const char *)data + 1, (const char *)data + size);
    struct tune_run *r = tune_run_open(fuzz_folder());
    HOLDS(r && r->state < TUNE_RUN_STATES && memchr(r->reason, 0, sizeof r->reason));
    HOLDS(r->state != TUNE_RUN_BROKEN || r->reason[0]);
    for (int i = 0; i < r->series_count; i++) {
        const struct tune_run_series *s = &r->series[i];
        HOLDS(s->count > 0 && tune_run_series(r, s->name) == s && s->step[s->count - 1] <= (double)r->step);
        for (int64_t k = 0; k < s->count; k++)
            HOLDS(isfinite(s->value[k]) && (k == 0 || s->step[k] > s->step[k - 1]));
        if (i < 3)
            draw(r, s);
    }
    HOLDS(tune_runs_differing(&r, 1, &differing) == 0);
    free(differing);
    struct tune_table *t = tune_table_new(columns, 3);
    HOLDS(t);
    tune_table_text(t, r->reason);
    tune_table_text(t, tune_run_option(r, "lr", text, sizeof text));
    tune_table_number(t, r->loss, "%.4f");
    static const char *const formats[] = {"table", "csv", "json"};
    for (int i = 0; i < 3; i++)
        HOLDS(tune_table_print(t, formats[i], 20, "...", nowhere) == 0);
    tune_table_free(t);
    tune_run_free(r);
    return 0;
}
