/* curves.c - curves of runs as numbers and as SVG. */
#include "curves.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../run_unit.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/print.h"
#include "core/try.h"
#include "files/cjson.h"
#include "runs.h"
#include "views/run_plots.h"

/* RUNS: of one picture. KEPT: runs that are kept. IDLE_S: those that nobody looked at for so long are
 * forgotten. FULL_MOST: points of an answer that has all of them. */
enum { RUNS = 64, KEPT = 256, IDLE_S = 60, WIDTH = 800, FULL_MOST = 4000000 };

struct kept_run {
    struct tune_run *run;
    double used;     /* time of the last use */
    int64_t bytes;
    uint64_t version; /* of the index, when it was read */
};

static struct {
    pthread_mutex_t lock;
    struct kept_run at[KEPT];
    int count;
    int64_t most; /* bytes of values, in all */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER, .most = 256 << 20};

static int64_t bytes_of(const struct tune_run *r)
{
    int64_t bytes = 0;
    for (int i = 0; i < r->series_count; i++)
        bytes += r->series[i].capacity * 16;
    return bytes;
}

static void forget(int i)
{
    tune_run_free(kept.at[i].run);
    kept.at[i] = kept.at[--kept.count];
}

static int find(const char *folder)
{
    for (int i = 0; i < kept.count; i++)
        if (!strcmp(kept.at[i].run->folder, folder))
            return i;
    return -1;
}

static int oldest(void)
{
    int old = 0;
    for (int i = 1; i < kept.count; i++)
        if (kept.at[i].used < kept.at[old].used)
            old = i;
    return old;
}

/* A run that is to be read by one of the threads. */
struct reading {
    struct studio_curve_run asked;
    char metrics[1024]; /* names with commas; "": all */
    struct tune_run *run;
    enum { KEEP, UPDATE, READ } how;
};

struct readings {
    struct reading *at;
    int count, next;
};

static void *read_some(void *readings)
{
    struct readings *all = readings;
    int i;
    while ((i = __atomic_fetch_add(&all->next, 1, __ATOMIC_RELAXED)) < all->count) {
        struct reading *at = &all->at[i];
        if (at->how == UPDATE)
            tune_run_update(at->run);
        if (at->how == READ)
            at->run = tune_run_open_within(at->asked.folder, at->asked.root, *at->metrics ? at->metrics : NULL);
    }
    return NULL;
}

/* Read with two threads; one would be enough for a single run. */
static void read_all(struct reading *at, int count)
{
    struct readings all = {at, count, 0};
    pthread_t other;
    bool two = count > 1 && pthread_create(&other, NULL, read_some, &all) == 0;
    read_some(&all);
    if (two)
        pthread_join(other, NULL);
}

/* True if a kept run lacks one of the metrics. A run that ended will never have those it has not. */
static bool lacks(const struct tune_run *r, const char *metrics)
{
    char name[64];
    for (const char *at = metrics; *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        if (!tune_run_keeps(r, name) && (!tune_run_ended(r) || tune_run_series(r, name)))
            return true;
        at += n;
    }
    return false;
}

static struct reading plan(const struct studio_curve_run *asked, const char *metrics, double now)
{
    struct reading p = {*asked, "", NULL, READ};
    int i = find(asked->folder);
    struct tune_run *r = i >= 0 ? kept.at[i].run : NULL;
    bool less = r && lacks(r, metrics);
    if (r && !less && (!tune_run_ended(r) || kept.at[i].version == asked->version)) {
        kept.at[i].used = now; /* so that no other run takes its place */
        p.run = r;
        p.how = tune_run_ended(r) ? KEEP : UPDATE;
        return p;
    }
    const char *before = r && r->only ? r->only : ""; /* whoever looked at them will look again */
    bool both = less && *before;
    if ((size_t)snprintf(p.metrics, sizeof p.metrics, "%s%s%s", less || !r ? metrics : "", both ? "," : "", before) >= sizeof p.metrics)
        *p.metrics = 0;
    if (r)
        forget(i);
    return p;
}

static void keep(const struct reading *at, double now)
{
    int i = find(at->asked.folder);
    if (i < 0 && kept.count == KEPT)
        forget(oldest());
    struct kept_run *k = &kept.at[i < 0 ? kept.count++ : i];
    k->run = at->run;
    k->used = now;
    k->bytes = bytes_of(at->run);
    k->version = at->asked.version;
}

int studio_curves_lock(const struct studio_curve_run *asked, int count, const char *metrics, struct tune_run **runs)
{
    struct reading *at = calloc((size_t)count + 1, sizeof *at);
    double now = tune_clock_s();
    int failed = -1;
    if (!at)
        return tune_error_no_memory("a list of runs");
    pthread_mutex_lock(&kept.lock);
    for (int i = 0; i < count; i++)
        at[i] = plan(&asked[i], metrics, now);
    read_all(at, count);
    for (int i = 0; i < count; i++)
        if (at[i].how == READ) {
            studio_give_back(); /* what the other metrics took */
            break;
        }
    for (int i = 0; i < count; i++) {
        runs[i] = at[i].run;
        if (at[i].run)
            keep(&at[i], now);
        else
            failed = i;
    }
    free(at);
    if (failed < 0)
        return 0;
    pthread_mutex_unlock(&kept.lock);
    return tune_error_set("%s: the run could not be read; it may just have been removed", asked[failed].folder);
}

/* Forget the runs that nobody looked at for so long. Whether there were any. */
static bool forget_unused(double seconds)
{
    double now = tune_clock_s();
    bool any = false;
    for (int i = 0; i < kept.count; i++)
        if (now - kept.at[i].used >= seconds) {
            forget(i--);
            any = true;
        }
    return any;
}

void studio_curves_forget(double seconds)
{
    pthread_mutex_lock(&kept.lock);
    if (forget_unused(seconds))
        studio_give_back();
    pthread_mutex_unlock(&kept.lock);
}

void studio_curves_unlock(void)
{
    int64_t sum = 0;
    bool freed = forget_unused(IDLE_S);
    for (int i = 0; i < kept.count; i++)
        sum += kept.at[i].bytes;
    while (sum > kept.most && kept.count > 1) {
        int i = oldest();
        sum -= kept.at[i].bytes;
        forget(i);
        freed = true;
    }
    if (freed)
        studio_give_back();
    pthread_mutex_unlock(&kept.lock);
}

void studio_curves_limit(int64_t bytes)
{
    pthread_mutex_lock(&kept.lock);
    kept.most = bytes;
    pthread_mutex_unlock(&kept.lock);
}

/* ---- which runs ---- */

struct asked_runs {
    char folders[RUNS][TUNE_PATH_MAX];
    struct tune_run *runs[RUNS]; /* locked by studio_curves_lock */
    int colors[RUNS], count;
};

/* Lock the runs of a request with its metrics and those that its axis needs. */
static int get_asked(struct studio *s, const struct studio_request *q, struct studio_reply *r, const char *metrics, struct asked_runs *a)
{
    const char *x = studio_value(q, "x");
    x = !x || !strcmp(x, "step") ? "" : !strcmp(x, "time") ? "elapsed_s" : x;
    char *names = NULL;
    struct tune_run **all, *chosen[RUNS];
    struct studio_curve_run asked[RUNS];
    TRY(studio_index_lock(s, &all));
    a->count = studio_run_list(s, r, studio_value(q, "ids"), chosen, RUNS);
    for (int i = 0; i < a->count; i++) {
        snprintf(a->folders[i], sizeof a->folders[i], "%s", chosen[i]->folder);
        asked[i] = (struct studio_curve_run){a->folders[i], s->root, studio_index_version(s, chosen[i])};
        a->colors[i] = studio_color(chosen[i]);
    }
    studio_index_unlock(s, all);
    if (a->count < 0)
        return -1;
    if (asprintf(&names, "%s%s%s", metrics, *x ? "," : "", x) < 0)
        return tune_error_no_memory("names of metrics");
    int status = studio_curves_lock(asked, a->count, names, a->runs);
    free(names);
    for (int i = 0; i < a->count && status < 0; i++)
        if (!tune_file_is_folder(a->folders[i]))
            return studio_fail(r, 404, "%s: this run was removed just now", a->folders[i]);
    return status;
}

/* ---- numbers ---- */

static void put_number(FILE *out, bool first, double value)
{
    char text[TUNE_DECIMAL_SIZE];
    if (!first)
        fputc(',', out);
    fputs(isfinite(value) ? tune_number_text(text, value) : "null", out);
}

/* The points of a curve that are sent: indexes in ascending order. */
struct chosen_points {
    int64_t *at, count, seen; /* seen: points in the range that are finite */
};

/* The part of a curve that a request asks for: x in [from, to] at steps beyond `after`. */
struct curve_range {
    double from, to, after;
};

static bool in_range(const struct curve_range *want, double x, double step)
{
    return step > want->after && x >= want->from && x <= want->to;
}

/* Keep of each bucket the lowest and the highest of the points that stand in c. A bucket is a part
 * of x. Where x does not ascend, as another metric may not, it is as many points in their order. */
static void keep_extremes(struct chosen_points *c, const double *x, const double *y, int64_t buckets)
{
    double left = x[c->at[0]], width = x[c->at[c->count - 1]] - left;
    int64_t kept = 0, count = c->count;
    bool ascends = width > 0 && isfinite(width);
    for (int64_t i = 1; i < count; i++)
        ascends = ascends && x[c->at[i]] >= x[c->at[i - 1]];
    for (int64_t i = 0; i < count;) {
        int64_t low = c->at[i], high = low, bucket = -1;
        for (; i < count; i++) {
            int64_t k = c->at[i], now = ascends ? (int64_t)((x[k] - left) / width * (double)buckets) : i * buckets / count;
            now = now >= buckets ? buckets - 1 : now;
            if (bucket >= 0 && now != bucket)
                break;
            bucket = now;
            low = y[k] < y[low] ? k : low;
            high = y[k] > y[high] ? k : high;
        }
        c->at[kept++] = low < high ? low : high; /* at most as many as were read */
        if (low != high)
            c->at[kept++] = low < high ? high : low;
    }
    c->count = kept;
}

static int choose_points(struct chosen_points *c, const double *x, const struct tune_run_series *s, const struct curve_range *want, int64_t buckets)
{
    c->at = malloc(((size_t)s->count + 1) * sizeof *c->at);
    if (!c->at)
        return tune_error_no_memory("the points of a curve");
    for (int64_t i = 0; i < s->count; i++)
        if (isfinite(s->value[i]) && isfinite(x[i]) && in_range(want, x[i], s->step[i]))
            c->at[c->count++] = i;
    c->seen = c->count;
    if (c->count > 2 * buckets)
        keep_extremes(c, x, s->value, buckets);
    return 0;
}

static void put_curve(FILE *out, const struct tune_run *r, const struct tune_run_series *s, const double *x, const struct chosen_points *c,
                      const struct curve_range *want, int color)
{
    cJSON *id = cJSON_CreateString(r->folder), *name = cJSON_CreateString(r->name);
    char *id_text = id ? cJSON_PrintUnformatted(id) : NULL, *name_text = name ? cJSON_PrintUnformatted(name) : NULL;
    fprintf(out, "{\"id\":%s,\"name\":%s,\"color\":%d,\"count\":%" PRId64 ",\"shown\":%" PRId64 ",\"x\":[", id_text ? id_text : "null",
            name_text ? name_text : "null", color, c->seen, c->count);
    for (int64_t i = 0; i < c->count; i++)
        put_number(out, i == 0, x[c->at[i]]);
    fputs("],\"y\":[", out);
    for (int64_t i = 0; i < c->count; i++)
        put_number(out, i == 0, s->value[c->at[i]]);
    fputs("],\"nonfinite\":[", out);
    int64_t marks = 0, odd = 0;
    for (int64_t i = 0; i < s->count; i++)
        if (!isfinite(s->value[i]) && s->step[i] > want->after && !(x[i] < want->from) && !(x[i] > want->to)) {
            if (marks < 100) {
                fputs(marks++ ? "," : "", out);
                fputs("{\"x\":", out);
                put_number(out, true, x[i]);
                fprintf(out, ",\"value\":\"%s\"}", isnan(s->value[i]) ? "NaN" : s->value[i] > 0 ? "Infinity" : "-Infinity");
            }
            odd++;
        }
    double last = 0; /* over another metric the steps do not ascend */
    for (int64_t i = 0; i < s->count; i++)
        last = s->step[i] > last ? s->step[i] : last;
    fprintf(out, "],\"nonfinite_count\":%" PRId64 ",\"last_step\":%.0f,\"lines\":%" PRId64 "}", odd, last, r->step);
    cJSON_free(id_text);
    cJSON_free(name_text);
    cJSON_Delete(id);
    cJSON_Delete(name);
}

static int write_curve(const struct studio_request *q, FILE *out, const struct tune_run *r, const char *metric, int color)
{
    const struct tune_run_series *s = tune_run_series(r, metric);
    struct chosen_points c = {0};
    const char *what = studio_value(q, "x");
    struct curve_range want = {studio_number(q, "from", -INFINITY), studio_number(q, "to", INFINITY), studio_number(q, "since_step", -1)};
    int64_t buckets = studio_bool(q, "full", false) ? INT64_MAX / 4 : (int64_t)studio_number(q, "width", WIDTH);
    struct tune_run_series over;
    double *x;
    bool sorted = what && !tune_run_is_axis(what);
    if (sorted) {
        TRY(tune_run_over(r, s, what, &over, &x));
        s = &over;
    } else if (!(x = tune_run_axis(r, s, what ? what : "step"))) {
        return -1;
    }
    int status = choose_points(&c, x, s, &want, buckets);
    if (status == 0)
        put_curve(out, r, s, x, &c, &want, color);
    free(c.at);
    if (sorted)
        tune_run_over_free(&over, x);
    else
        free(x);
    return status;
}

static int64_t points_of(const struct asked_runs *a, const char *metric)
{
    int64_t points = 0;
    for (int i = 0; i < a->count; i++) {
        const struct tune_run_series *series = tune_run_series(a->runs[i], metric);
        points += series ? series->count : 0;
    }
    return points;
}

static int get_curves(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    struct asked_runs *a = calloc(1, sizeof *a);
    const char *metric = studio_value(q, "metric"), *what = studio_value(q, "x"), *unit = "";
    int status = a ? get_asked(s, q, r, metric, a) : tune_error_no_memory("a list of runs");
    bool any = false;
    if (status == 0 && studio_bool(q, "full", false) && points_of(a, metric) > FULL_MOST) {
        status = studio_fail(r, 413, "more than %d points; choose fewer runs, or leave out `full`", FULL_MOST);
        studio_curves_unlock();
    }
    if (status < 0) {
        free(a);
        return -1;
    }
    fputs("{\"curves\":[", r->out);
    for (int i = 0; i < a->count && status == 0; i++) {
        if (!tune_run_series(a->runs[i], metric))
            continue;
        fputs(any ? "," : "", r->out);
        status = write_curve(q, r->out, a->runs[i], metric, a->colors[i]);
        unit = any ? unit : run_unit(a->runs[i], metric);
        any = true;
    }
    cJSON *rest = cJSON_CreateObject();
    tune_cjson_put_text(rest, "metric", metric);
    tune_cjson_put_text(rest, "unit", unit);
    tune_cjson_put_text(rest, "x", what ? what : "step");
    char *text = cJSON_PrintUnformatted(rest);
    fprintf(r->out, "],%s", text ? text + 1 : "}");
    cJSON_free(text);
    cJSON_Delete(rest);
    studio_curves_unlock();
    free(a);
    return status;
}

/* ---- the last, lowest and highest ---- */

static void put_place(FILE *out, const char *name, const struct tune_run_series *s, int64_t i)
{
    fprintf(out, ",\"%s\":", name);
    put_number(out, true, i < 0 ? NAN : s->value[i]);
    fprintf(out, ",\"%s_step\":", name);
    put_number(out, true, i < 0 ? NAN : s->step[i]);
}

/* One metric of a run; NULL: it has none of it, and all are null. */
static void put_extremes(FILE *out, const struct tune_run_series *s)
{
    int64_t last = -1, low = -1, high = -1;
    for (int64_t i = 0; s && i < s->count; i++) {
        if (!isfinite(s->value[i]))
            continue;
        last = i;
        low = low < 0 || s->value[i] < s->value[low] ? i : low;
        high = high < 0 || s->value[i] > s->value[high] ? i : high;
    }
    fprintf(out, "{\"count\":%" PRId64, s ? s->count : 0);
    put_place(out, "last", s, last);
    put_place(out, "min", s, low);
    put_place(out, "max", s, high);
    fputc('}', out);
}

/* The unit that the first run which has the metric gives it, as a JSON text. */
static void put_head(FILE *out, const struct asked_runs *a, const char *metric)
{
    cJSON *head = cJSON_CreateObject();
    tune_cjson_put_text(head, "name", metric);
    for (int i = 0; i < a->count; i++)
        if (tune_run_series(a->runs[i], metric)) {
            tune_cjson_put_text(head, "unit", run_unit(a->runs[i], metric));
            break;
        }
    char *text = cJSON_PrintUnformatted(head);
    if (text)
        fwrite(text, 1, strlen(text) - 1, out); /* without the closing brace */
    cJSON_free(text);
    cJSON_Delete(head);
}

static int get_extremes(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    struct asked_runs *a = calloc(1, sizeof *a);
    const char *metrics = studio_value(q, "metrics");
    int status = a ? get_asked(s, q, r, metrics, a) : tune_error_no_memory("a list of runs");
    if (status < 0) {
        free(a);
        return -1;
    }
    fputs("{\"metrics\":[", r->out);
    for (const char *at = metrics; *at; at += *at == ',') {
        char name[64];
        size_t n = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        fputs(at == metrics ? "" : ",", r->out);
        put_head(r->out, a, name);
        fputs(",\"values\":[", r->out);
        for (int i = 0; i < a->count; i++) {
            fputs(i ? "," : "", r->out);
            put_extremes(r->out, tune_run_series(a->runs[i], name));
        }
        fputs("]}", r->out);
        at += n;
    }
    fputs("]}", r->out);
    studio_curves_unlock();
    free(a);
    return 0;
}

/* ---- the picture ---- */

static int draw(const struct studio_request *q, struct studio_reply *r, const struct asked_runs *a, const int *colors)
{
    const char *metrics = studio_value(q, "metrics"), *x = studio_value(q, "x");
    double range[2] = {studio_number(q, "from", -INFINITY), studio_number(q, "to", INFINITY)};
    struct tune_run_drawing d = {
        .metrics = metrics ? metrics : "loss,eval_loss", .asked = metrics, .x = x ? x : "step", .smooth = studio_number(q, "smooth", -1),
        .logarithmic = studio_bool(q, "log", false), .unit = run_unit, .colors = colors, .range = range,
        .svg_width = (int)studio_number(q, "width", 0), .no_legend = !studio_bool(q, "legend", true),
    };
    struct tune_run_plots *p = tune_run_plots_new(a->runs, a->count, &d);
    int status = p ? tune_plot_svg(p->plot, p->count, r->out) : -1;
    tune_run_plots_free(p);
    return status;
}

static int get_plot(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    struct asked_runs *a = calloc(1, sizeof *a);
    const char *list = studio_value(q, "colors");
    const char *metrics = studio_value(q, "metrics");
    int colors[RUNS], status = a ? get_asked(s, q, r, metrics ? metrics : "loss,eval_loss", a) : tune_error_no_memory("a list of runs");
    if (status == 0) {
        memcpy(colors, a->colors, sizeof colors);
        for (int i = 0; list && *list && i < a->count; i++) {
            colors[i] = (int)(strtoul(list, NULL, 10) % 8);
            list += strcspn(list, ",");
            list += *list == ',';
        }
        status = draw(q, r, a, colors);
        studio_curves_unlock();
    }
    free(a);
    return status;
}

#define IDS {"ids", STUDIO_IN_QUERY, STUDIO_TEXT, true, .help = "ids of runs, with commas; a comma in an id is %2C"}
#define RANGE {"from", STUDIO_IN_QUERY, STUDIO_NUMBER, .help = "lowest x"}, {"to", STUDIO_IN_QUERY, STUDIO_NUMBER, .help = "highest x"}

const struct studio_route studio_curve_routes[] = {
    {"GET", "/api/runs/curves", "getCurves", NULL, "A metric of several runs: at most two points for each column of the picture.", "application/json",
     get_curves,
     {IDS, {"metric", STUDIO_IN_QUERY, STUDIO_TEXT, true, .help = "the metric, such as loss"},
      {"x", STUDIO_IN_QUERY, STUDIO_TEXT, .help = "step, time, tokens, epoch or a metric"}, RANGE,
      {"width", STUDIO_IN_QUERY, STUDIO_WHOLE, .least = 1, .most = 10000, .help = "columns of the picture; default 800"},
      {"since_step", STUDIO_IN_QUERY, STUDIO_WHOLE, .least = -1, .most = 9e15, .help = "only points after this step"},
      {"full", STUDIO_IN_QUERY, STUDIO_BOOL, .help = "all points"}}},
    {"GET", "/api/runs/extremes", "getExtremes", NULL, "The last, lowest and highest value of metrics of several runs, and at which step.", "application/json",
     get_extremes, {IDS, {"metrics", STUDIO_IN_QUERY, STUDIO_TEXT, true, .help = "metrics with commas"}}},
    {"GET", "/api/runs/plot.svg", "drawRuns", NULL, "Curves of runs, as `runs plot --svg` draws them.", "image/svg+xml", get_plot,
     {IDS, {"metrics", STUDIO_IN_QUERY, STUDIO_TEXT, .help = "metrics with commas; default loss,eval_loss"},
      {"x", STUDIO_IN_QUERY, STUDIO_TEXT, .help = "step, time, tokens, epoch or a metric"}, RANGE,
      {"smooth", STUDIO_IN_QUERY, STUDIO_NUMBER, .least = -1, .most = 1e6, .help = "points on either side to smooth over; -1: by the curve; 0: none"},
      {"log", STUDIO_IN_QUERY, STUDIO_BOOL, .help = "logarithmic y axis"},
      {"width", STUDIO_IN_QUERY, STUDIO_WHOLE, .least = 200, .most = 10000, .help = "pixels; default 960"},
      {"legend", STUDIO_IN_QUERY, STUDIO_BOOL, .help = "with a legend; default true"},
      {"colors", STUDIO_IN_QUERY, STUDIO_TEXT, .help = "colours of the runs, 0 to 7, with commas"}}},
    {0},
};
