/* profile_write.c - write the result as a table, as JSON and as a trace. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "files/cjson.h"
#include "files/file.h"
#include "core/try.h"
#include "profilers/timing.h"

/* ---- the table ---- */

static int64_t steps_of(const struct tune_profile *r)
{
    return r->last - r->first + 1;
}

/* Append a rate and its share of the peak rate, such as "  123.4  52%"; blanks if there is none. */
static void put_rate(FILE *t, double amount, double seconds, double peak)
{
    if (amount <= 0 || seconds <= 0)
        fprintf(t, "%8s %5s", "", "");
    else if (peak > 0)
        fprintf(t, " %7.1f %4.0f%%", amount / seconds / 1e9, 100 * amount / seconds / peak);
    else
        fprintf(t, " %7.1f %5s", amount / seconds / 1e9, "");
}

static void put_row(FILE *t, const struct tune_profile *r, const char *name, const struct tune_profile_row *row)
{
    fprintf(t, "  %-26s", name);
    if (row->outside)
        fprintf(t, " %9s", "");
    else
        fprintf(t, " %9.1f", (double)row->calls / (double)steps_of(r));
    fprintf(t, " %10.2f %5.1f%%", 1000 * row->seconds / (double)steps_of(r), 100 * row->seconds / r->seconds);
    put_rate(t, row->flops, row->seconds, r->peak_rates.flops_all);
    put_rate(t, row->bytes, row->seconds, r->peak_rates.bytes_all);
    fprintf(t, "\n");
}

static int by_time(const void *a, const void *b)
{
    double x = (*(const struct tune_profile_row *const *)a)->seconds, y = (*(const struct tune_profile_row *const *)b)->seconds;
    return (x < y) - (x > y);
}

/* Append the rows of a phase, the slowest first, under their sum. */
static void put_phase(FILE *t, const struct tune_profile *r, const char *phase)
{
    const struct tune_profile_row *chosen[TUNE_PROFILE_ROWS];
    struct tune_profile_row sum = {.outside = true};
    size_t n = 0;
    for (int i = 0; i < r->count; i++) {
        const struct tune_profile_row *row = &r->rows[i];
        if (strcmp(row->phase, phase))
            continue;
        chosen[n++] = row;
        sum.seconds += row->seconds;
        sum.flops += row->flops;
        sum.bytes += row->bytes;
    }
    if (n == 0)
        return;
    qsort(chosen, n, sizeof *chosen, by_time);
    put_row(t, r, phase, &sum);
    for (size_t i = 0; i < n; i++) {
        char name[64];
        snprintf(name, sizeof name, "  %s", chosen[i]->name);
        put_row(t, r, name, chosen[i]);
    }
}

static void put_peak_rate(FILE *t, const char *what, double one, double all, int threads, const char *unit)
{
    if (all > 0)
        fprintf(t, "%-26s %8.1f %s by 1 thread, %.1f by %d\n", what, one / 1e9, unit, all / 1e9, threads);
}

char *tune_profiler_table(const struct tune_profiler *p)
{
    const struct tune_profile *r = &p->result;
    char *text = NULL;
    size_t size;
    FILE *t = open_memstream(&text, &size);
    double outside = 0;
    if (!t) {
        tune_error_no_memory("the profile's table");
        return NULL;
    }
    if (r->first == 0 || r->last == 0) {
        fprintf(t, "%-26s no step: the first one or two are not measured, and then the run was over\n", "profile");
    } else {
        fprintf(t, "%-26s steps %" PRId64 " to %" PRId64 ", %.1f ms each\n", "profile", r->first, r->last,
            1000 * r->seconds / (double)steps_of(r));
        put_peak_rate(t, "ceiling, multiply-adds", r->peak_rates.flops_one, r->peak_rates.flops_all, r->threads, "GFLOP/s");
        put_peak_rate(t, "ceiling, memory", r->peak_rates.bytes_one, r->peak_rates.bytes_all, r->threads, "GB/s");
        if (r->model_flops > 0) {
            fprintf(t, "%-26s %8.1f GFLOP/s", "model FLOP/s", r->model_flops / r->seconds / 1e9);
            fprintf(t, r->peak_rates.flops_all > 0 ? ", %.0f%% of the ceiling\n" : "\n",
                100 * r->model_flops / r->seconds / r->peak_rates.flops_all);
        }
        fprintf(t, "  %-26s %9s %10s %6s %8s %5s %8s %5s\n", "phase, operation", "calls", "ms a step", "share", "GFLOP/s",
                "max", "GB/s", "max");
        for (int phase = 0; phase < TUNE_PHASES; phase++)
            put_phase(t, r, tune_phase_names[phase]);
        for (int i = 0; i < r->count; i++)
            outside += r->rows[i].outside ? r->rows[i].seconds : 0;
        struct tune_profile_row all = {.outside = true, .seconds = r->seconds}, rest = {.outside = true, .seconds = outside};
        put_row(t, r, "all", &all);
        put_row(t, r, "of it outside operations", &rest);
    }
    if (fclose(t) == 0)
        return text;
    free(text);
    tune_error_no_memory("the profile's table");
    return NULL;
}

/* ---- JSON ---- */

static bool put_row_json(cJSON *rows, const struct tune_profile_row *row)
{
    cJSON *o = cJSON_CreateObject();
    bool good = tune_cjson_put_text(o, "phase", row->phase) && tune_cjson_put_text(o, "name", row->name) &&
                tune_cjson_put(o, "outside", cJSON_CreateBool(row->outside)) && tune_cjson_put_whole(o, "calls", row->calls) &&
                tune_cjson_put_number(o, "seconds", row->seconds) && tune_cjson_put_number(o, "flops", row->flops) &&
                tune_cjson_put_number(o, "bytes", row->bytes);
    return cJSON_AddItemToArray(rows, o) && good;
}

static int write_json(const struct tune_profile *r, const char *folder)
{
    cJSON *json = cJSON_CreateObject(), *rows = cJSON_CreateArray();
    bool good = tune_cjson_put_whole(json, "first_step", r->first) && tune_cjson_put_whole(json, "last_step", r->last) &&
                tune_cjson_put_number(json, "seconds", r->seconds) && tune_cjson_put_whole(json, "threads", r->threads) &&
                tune_cjson_put_number(json, "model_flops", r->model_flops) &&
                tune_cjson_put_number(json, "ceiling_flops_per_s_one_thread", r->peak_rates.flops_one) &&
                tune_cjson_put_number(json, "ceiling_flops_per_s", r->peak_rates.flops_all) &&
                tune_cjson_put_number(json, "ceiling_bytes_per_s_one_thread", r->peak_rates.bytes_one) &&
                tune_cjson_put_number(json, "ceiling_bytes_per_s", r->peak_rates.bytes_all) &&
                tune_cjson_put_whole(json, "trace_events", r->events) &&
                tune_cjson_put_whole(json, "trace_events_dropped", r->dropped);
    for (int i = 0; i < r->count && rows; i++)
        good = good && put_row_json(rows, &r->rows[i]);
    good = tune_cjson_put(json, "rows", rows) && good;
    int status = tune_cjson_write(folder, "profile.json", json, good);
    cJSON_Delete(json);
    return status;
}

/* ---- the trace ---- */

/* The tracks of the trace, as thread ids of one process. */
enum { STEPS = 1, PHASES, OPERATIONS, OUTSIDE };

/* Write seconds since the profile's start as microseconds with three decimals, in any locale. */
static void put_time(FILE *f, const char *key, double seconds)
{
    int64_t ns = (int64_t)(seconds * 1e9 + .5);
    fprintf(f, "\"%s\":%" PRId64 ".%03d", key, ns / 1000, (int)(ns % 1000));
}

static void put_event(FILE *f, int track, const char *name, const char *category, double begin, double seconds)
{
    fprintf(f, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"name\":\"%s\",\"cat\":\"%s\",", track, name, category);
    put_time(f, "ts", begin);
    fputc(',', f);
    put_time(f, "dur", seconds);
}

static void put_operation(FILE *f, const struct tune_profiler *p, const struct tune_event *e)
{
    put_event(f, OPERATIONS, p->rows[e->row].name, tune_phase_names[e->phase], e->begin_s - p->step_begin_s, e->seconds);
    fprintf(f, ",\"args\":{");
    if (e->unit >= 0)
        fprintf(f, "\"unit\":%d,", e->unit);
    if (e->shape[0] > 0)
        fprintf(f, "\"shape\":[%" PRId64 ",%" PRId64 ",%" PRId64 "],", e->shape[0], e->shape[1], e->shape[2]);
    fprintf(f, "\"flops\":%.0f,\"bytes\":%.0f}}", e->flops, e->bytes);
}

/* Write operations as recorded. A run of operations makes a phase; time between operations has its
 * own track. */
static void put_trace(FILE *f, const struct tune_profiler *p)
{
    static const char *const tracks[] = {"", "steps", "phases", "operations", "between operations"};
    const struct tune_profile *r = &p->result;
    double zero = p->step_begin_s, step_begin = 0, phase_begin = 0, end = 0;
    int64_t step = r->first;
    fprintf(f, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{"
               "\"name\":\"tune.c\"}}");
    for (int i = STEPS; i <= OUTSIDE; i++)
        fprintf(f, ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}}", i, tracks[i]);
    for (int64_t i = 0; i < r->events; i++) {
        const struct tune_event *e = &p->events[i], *next = i + 1 < r->events ? e + 1 : NULL;
        double begin = e->begin_s - zero;
        if (begin - end > 1e-6) {
            put_event(f, OUTSIDE, "between operations", "outside", end, begin - end);
            fputc('}', f);
        }
        end = begin + e->seconds;
        if (e->row < 0) {
            char name[32];
            snprintf(name, sizeof name, "step %" PRId64, step++);
            put_event(f, STEPS, name, "step", step_begin, begin - step_begin);
            fputc('}', f);
            step_begin = phase_begin = begin;
            continue;
        }
        put_operation(f, p, e);
        if (!next || next->row < 0 || next->phase != e->phase) {
            put_event(f, PHASES, tune_phase_names[e->phase], "phase", phase_begin, end - phase_begin);
            fputc('}', f);
            phase_begin = end;
        }
    }
    fputs("\n]}\n", f);
}

static int write_trace(const struct tune_profiler *p, const char *path)
{
    struct tune_file_writer w;
    TRY(tune_file_begin(&w, path));
    put_trace(w.file, p);
    if (tune_file_commit(&w) == 0)
        return 0;
    struct tune_error why;
    tune_error_save(&why);
    tune_file_cancel(&w);
    tune_error_restore(&why);
    return -1;
}

int tune_profiler_write(const struct tune_profiler *p, const char *folder)
{
    char path[TUNE_PATH_MAX];
    char *table = tune_profiler_table(p);
    if (!table)
        return -1;
    int status = tune_path(path, "%s/profile.txt", folder);
    if (status == 0)
        status = tune_file_write(path, table, strlen(table));
    free(table);
    TRY(status);
    TRY(write_json(&p->result, folder));
    TRY(tune_path(path, "%s/profile.trace.json", folder));
    return write_trace(p, path);
}
