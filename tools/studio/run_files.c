/* run_files.c - the files of a run: previews, judged rows, downloads; runs as CSV. */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/print.h"
#include "core/nearest.h"
#include "core/try.h"
#include "files/cjson.h"
#include "runs.h"
#include "runs/run_folder.h"

/* LINES: of one answer. LINE: bytes of one line. ANSWER: bytes after which no line is added. */
enum { LINES = 1000, LINE = 4 << 20, ANSWER = 16 << 20 };

/* The path of the run's file, relative to the root. 0, or -1 with an error: no such run. */
static int path_of(struct studio *s, const struct studio_request *q, struct studio_reply *r, const char *name, char path[TUNE_PATH_MAX])
{
    struct tune_run **runs, *run = studio_run_id(s, q, r, &runs);
    if (!run)
        return -1;
    int status = tune_path(path, "%s/%s", run->folder, name);
    studio_index_unlock(s, runs);
    return status;
}

/* ---- files of lines ---- */

/* Lines of JSON from a file, from line `first` on; the answer says which is next. Lines that are no JSON or too long are counted. */
static int put_lines(FILE *in, const char *path, int64_t first, int64_t limit, struct studio_reply *r)
{
    char *line = malloc(LINE);
    bool whole = true;
    int64_t put = 0, bad = 0, total = 0;
    if (!line)
        return tune_error_no_memory("a line of %s", path);
    fputs("{\"rows\":[", r->out);
    for (size_t n; (n = studio_read_line(in, line, LINE, &whole)) > 0;) {
        bool fits = whole;
        while (!whole && (n = studio_read_line(in, line, LINE, &whole)) > 0)
            ;
        if (!whole)
            break; /* half a line: a run is writing it */
        if (++total <= first || put + bad >= limit || ftello(r->out) > ANSWER)
            continue;
        cJSON *json = fits ? tune_cjson_line(line) : NULL;
        char *text = json ? cJSON_PrintUnformatted(json) : NULL;
        if (text)
            fprintf(r->out, "%s%s", put++ ? "," : "", text);
        else
            bad++;
        cJSON_free(text);
        cJSON_Delete(json);
    }
    free(line);
    fprintf(r->out, "],\"total\":%" PRId64 ",\"unreadable\":%" PRId64 ",\"next\":%" PRId64 "}", total, bad, first + put + bad);
    if (ferror(in))
        return tune_error_set("%s: cannot be read", path);
    return 0;
}

static int list_lines(struct studio *s, const struct studio_request *q, struct studio_reply *r, const char *name)
{
    char path[TUNE_PATH_MAX];
    TRY(path_of(s, q, r, name, path));
    int fd = studio_open(s, path, O_RDONLY);
    FILE *in = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!in && errno != ENOENT)
        return -1; /* such as a link out of the root */
    if (!in) {
        tune_error_clear();
        fputs("{\"rows\":[],\"total\":0,\"unreadable\":0,\"next\":0}", r->out);
        return 0; /* most runs have none */
    }
    int status = put_lines(in, path, (int64_t)studio_number(q, "offset", 0), (int64_t)studio_number(q, "limit", LINES), r);
    fclose(in);
    return status;
}

static int list_previews(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    return list_lines(s, q, r, TUNE_RUN_PREVIEWS);
}

static int list_rows(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    return list_lines(s, q, r, TUNE_RUN_ROWS);
}

/* ---- all files ---- */

static int list_files(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    char path[TUNE_PATH_MAX];
    TRY(path_of(s, q, r, ".", path));
    int fd = studio_open(s, path, O_RDONLY | O_DIRECTORY);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *e;
    if (!dir)
        return studio_fail(r, 404, "%s: the folder cannot be read", path);
    cJSON *json = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(json, "files");
    while ((e = readdir(dir))) {
        struct stat st;
        if (*e->d_name == '.' || fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
            continue;
        cJSON *one = cJSON_CreateObject();
        tune_cjson_put_text(one, "name", e->d_name);
        tune_cjson_put_whole(one, "size", st.st_size);
        cJSON_AddItemToArray(list, one);
    }
    closedir(dir);
    return studio_put_json(r, json);
}

static int get_file(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    char path[TUNE_PATH_MAX];
    const char *name = studio_value(q, "name");
    struct stat st;
    if (strchr(name, '/') || *name == '.')
        return studio_fail(r, 400, "name: expected a file in the run's folder itself, not \"%s\"", name);
    TRY(path_of(s, q, r, name, path));
    int fd = studio_open(s, path, O_RDONLY);
    if (fd < 0)
        return r->status = 404, -1;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return studio_fail(r, 404, "%s: no file", path);
    }
    r->file = fd;
    r->file_size = st.st_size;
    snprintf(r->name, sizeof r->name, "%s", name);
    for (char *c = r->name; *c; c++) /* of a header's text */
        if (*c == '"' || *c == '\\' || (unsigned char)*c < 32 || (unsigned char)*c > 126)
            *c = '_';
    return 0;
}

/* ---- metrics in long form ---- */

static void put_csv(FILE *out, const char *text)
{
    bool plain = !strpbrk(text, ",\"\r\n");
    if (plain) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

/* One value: a line of CSV, or a member of a list of JSON. */
struct metric_lines {
    FILE *out;
    bool json, any;
};

static void put_value(struct metric_lines *l, const char *run, const struct tune_run_series *s, int64_t i)
{
    char number[TUNE_DECIMAL_SIZE];
    if (!l->json) {
        put_csv(l->out, run);
        fprintf(l->out, ",%.0f,", s->step[i]);
        put_csv(l->out, s->name);
        fprintf(l->out, ",%s\n", tune_number_text(number, s->value[i]));
        return;
    }
    cJSON *name = cJSON_CreateString(run), *key = cJSON_CreateString(s->name);
    char *name_text = name ? cJSON_PrintUnformatted(name) : NULL, *key_text = key ? cJSON_PrintUnformatted(key) : NULL;
    fprintf(l->out, "%s{\"run\":%s,\"step\":%.0f,\"key\":%s,\"value\":%s}", l->any ? ",\n" : "", name_text ? name_text : "null", s->step[i],
            key_text ? key_text : "null", isfinite(s->value[i]) ? tune_number_text(number, s->value[i]) : "null");
    cJSON_free(name_text);
    cJSON_free(key_text);
    cJSON_Delete(name);
    cJSON_Delete(key);
    l->any = true;
}

/* All values of a run. values: how many there were before. */
static int put_run(struct metric_lines *l, const struct tune_run *run, const char *wanted, int64_t *values, struct studio_reply *r)
{
    enum { VALUES_MOST = 4000000 };
    for (int k = 0; k < run->series_count; k++)
        *values += !wanted || tune_name_listed(wanted, run->series[k].name) ? run->series[k].count : 0;
    if (*values > VALUES_MOST)
        return studio_fail(r, 413, "more than %d values; choose fewer runs or metrics, or use `runs export`", VALUES_MOST);
    for (int k = 0; k < run->series_count; k++)
        for (int64_t j = 0; j < run->series[k].count && (!wanted || tune_name_listed(wanted, run->series[k].name)); j++)
            put_value(l, run->folder, &run->series[k], j);
    return 0;
}

static int put_metrics(struct studio *s, const struct studio_request *q, struct studio_reply *r, bool json)
{
    enum { RUNS = 64 };
    int64_t values = 0;
    struct tune_run **runs, *chosen[RUNS];
    struct metric_lines lines = {.out = r->out, .json = json};
    int status = 0;
    TRY(studio_index_lock(s, &runs));
    int count = studio_run_list(s, r, studio_value(q, "ids"), chosen, RUNS);
    char (*folders)[TUNE_PATH_MAX] = count > 0 ? malloc((size_t)count * sizeof *folders) : NULL;
    for (int i = 0; i < count && folders; i++)
        snprintf(folders[i], sizeof folders[i], "%s", chosen[i]->folder);
    studio_index_unlock(s, runs);
    if (!folders)
        return count < 0 ? -1 : tune_error_no_memory("a list of runs");
    fputs(json ? "[" : "run,step,key,value\n", r->out);
    for (int i = 0; i < count && status == 0; i++) {
        struct tune_run *run = tune_run_open_within(folders[i], s->root, NULL);
        status = run ? put_run(&lines, run, studio_value(q, "metrics"), &values, r) : -1;
        tune_run_free(run);
    }
    fputs(json ? "]\n" : "", r->out);
    free(folders);
    snprintf(r->name, sizeof r->name, json ? "metrics.json" : "metrics.csv");
    return status;
}

static int get_metrics_csv(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    return put_metrics(s, q, r, false);
}

static int get_metrics_json(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    return put_metrics(s, q, r, true);
}

#define ID {"id", STUDIO_IN_PATH, STUDIO_TEXT, true, .help = "the run's folder, relative to the root"}
#define PAGE \
    {"offset", STUDIO_IN_QUERY, STUDIO_WHOLE, .least = 0, .most = 9e15, .help = "lines to leave out at the beginning"}, \
    {"limit", STUDIO_IN_QUERY, STUDIO_WHOLE, .least = 0, .most = LINES, .help = "most lines; default 1000"}

#define METRICS \
    {"ids", STUDIO_IN_QUERY, STUDIO_TEXT, true, .help = "ids of runs, with commas"}, \
    {"metrics", STUDIO_IN_QUERY, STUDIO_TEXT, .help = "only these metrics, with commas"}

const struct studio_route studio_run_file_routes[] = {
    {"GET", "/api/runs/metrics.csv", "getMetricsCsv", NULL, "All metrics of runs as lines of run, step, key, value.", "text/csv; charset=utf-8",
     get_metrics_csv, {METRICS}},
    {"GET", "/api/runs/metrics.json", "getMetricsJson", NULL, "The same as a list of {run, step, key, value}.", "application/json", get_metrics_json, {METRICS}},
    {"GET", "/api/runs/{id}/previews", "listPreviews", NULL, "What the model said while it trained.", "application/json", list_previews, {ID, PAGE}},
    {"GET", "/api/runs/{id}/rows", "listRows", NULL, "The rows that an evaluation judged.", "application/json", list_rows, {ID, PAGE}},
    {"GET", "/api/runs/{id}/files", "listFiles", "run files", "The files in a run's folder.", "application/json", list_files, {ID}},
    {"GET", "/api/runs/{id}/files/{name}", "getFile", NULL, "A file of a run's folder, to save.", "application/octet-stream", get_file,
     {ID, {"name", STUDIO_IN_PATH, STUDIO_TEXT, true, .help = "name of the file"}}},
    {0},
};
