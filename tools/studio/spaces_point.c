/* spaces_point.c - one point of a space: its state, figures, results, runs and commands; and the
 * measurement of what is missing. */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/print.h"
#include "core/try.h"
#include "files/cjson.h"
#include "jobs.h"
#include "routes.h"
#include "runs/run_folder.h"
#include "spaces.h"
#include "sweeps/answers/print.h"
#include "sweeps/spaces/space.h"

/* Seconds by which the time of a log may lie outside its measurement: file systems round times. */
#define SLACK_S 0.02

/* ---- folders of runs ---- */

static double modified_s(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISREG(st.st_mode) ? (double)st.st_mtim.tv_sec + 1e-9 * (double)st.st_mtim.tv_nsec : NAN;
}

/* The number of the last run in the folder of a measurement whose last log ends in [from, to]; -1: none. *away: seconds from
 * that to the end of the measurement. */
static int last_run(const char *folder, double from, double to, double *away)
{
    char log[TUNE_PATH_MAX];
    int run = 0;
    double at = NAN, last;
    while (tune_path(log, "%s/log-%d.txt", folder, run) == 0 && !isnan(last = modified_s(log)))
        at = last, run++;
    *away = fabs(to - at);
    return at >= from - SLACK_S && at <= to + SLACK_S ? run - 1 : -1;
}

/* Find what sweep kept of a measurement: <store>/runs/<operation>/<request>-<key>-<repeat>[-retry-N].
 * Several experiments of one request differ in their times. 1: *run is its last run. */
static int find_kept(const struct studio *s, const char *store, const char *operation, int64_t request, double from, double seconds,
                     char folder[TUNE_PATH_MAX], int *run, double *away)
{
    char parent[TUNE_PATH_MAX], start[32];
    int n = snprintf(start, sizeof start, "%lld-", (long long)request);
    *run = -1;
    if (strchr(operation, '/') || *operation == '.' || tune_path(parent, "%s/runs/%s", store, operation) < 0 || !spaces_inside(s, parent, false))
        return 0;
    DIR *d = opendir(parent);
    for (struct dirent *e; d && *run < 0 && (e = readdir(d));)
        if (!strncmp(e->d_name, start, (size_t)n) && tune_path(folder, "%s/%s", parent, e->d_name) == 0 && spaces_inside(s, folder, false))
            *run = last_run(folder, from, from + seconds, away);
    if (d)
        closedir(d);
    return *run >= 0;
}

static bool has_run(const char *folder, int run)
{
    char path[TUNE_PATH_MAX];
    struct stat st;
    return tune_path(path, "%s/run-%d/%s", folder, run, TUNE_RUN_JSON) == 0 && lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* The run of a row of results: {"folder", "log", "run"}; NULL: none was kept. */
static cJSON *run_of(const struct studio *s, const struct spaces_question *a, const struct tune_answer_table *results, int64_t row, double *away)
{
    const struct tune_answer_cell *operation = tune_answer_at(results, row, tune_answer_find(results, "operation"));
    double request = tune_answer_number(tune_answer_at(results, row, tune_answer_find(results, "request_index")));
    double from = tune_answer_number(tune_answer_at(results, row, tune_answer_find(results, "started")));
    double seconds = tune_answer_number(tune_answer_at(results, row, tune_answer_find(results, "measurement_s")));
    char folder[TUNE_PATH_MAX], path[TUNE_PATH_MAX];
    int run;
    if (operation->type != TUNE_ANSWER_TEXT || isnan(request) || isnan(from) || isnan(seconds) ||
        !find_kept(s, a->store, operation->text, (int64_t)request, from, seconds, folder, &run, away))
        return NULL;
    cJSON *json = cJSON_CreateObject();
    tune_cjson_put_text(json, "folder", folder);
    if (tune_path(path, "%s/log-%d.txt", folder, run) == 0)
        tune_cjson_put_text(json, "log", path);
    if (has_run(folder, run) && tune_path(path, "%s/run-%d", folder, run) == 0)
        tune_cjson_put_text(json, "run", path);
    else
        cJSON_AddNullToObject(json, "run");
    return json;
}

/* The end of a log, as text. */
enum { LOG_END = 8 << 10 };
static void put_log_end(const struct studio *s, cJSON *run)
{
    const cJSON *log = cJSON_GetObjectItemCaseSensitive(run, "log");
    char text[LOG_END];
    if (!cJSON_IsString(log))
        return;
    struct stat st;
    int fd = studio_open(s, log->valuestring, O_RDONLY);
    size_t n = fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ? 0 : st.st_size < LOG_END ? (size_t)st.st_size : LOG_END;
    if (n > 0 && tune_file_read_at(fd, log->valuestring, (uint64_t)st.st_size - n, text, n) == 0) {
        for (size_t i = 0; i < n; i++) /* what is no plain text becomes '?' */
            text[i] = (unsigned char)text[i] < 0x80 && text[i] ? text[i] : '?';
        tune_cjson_put_bytes(run, "log_end", text, n);
    }
    if (fd >= 0)
        close(fd);
}

/* ---- commands ---- */

/* The space's file: the one of the request, else the record in the store. 0, or -1 with an error. */
static int find_file(const struct spaces_question *a, char path[TUNE_PATH_MAX])
{
    char space[16], name[TUNE_PATH_MAX];
    const char *about = a->q.about;
    struct tune_store *store;
    int count = 0;
    if (about && tune_file_exists(about) && !tune_file_is_folder(about))
        return tune_path(path, "%s", about);
    cJSON *record = about && strncmp(about, "space-", 6) && !strchr(about, '/') && tune_path(name, "operations/%s.json", about) == 0 ?
                    tune_cjson_read_in(a->store, name, 1 << 20) : NULL;
    const cJSON *of = cJSON_GetObjectItemCaseSensitive(record, "space");
    snprintf(space, sizeof space, "%.12s", cJSON_IsString(of) ? of->valuestring : about ? about : "");
    cJSON_Delete(record);
    if (!about) {
        spaces_lock();
        store = tune_store_open(a->store, false);
        char **names = store ? tune_store_records(store, "spaces", &count) : NULL;
        if (count == 1)
            snprintf(space, sizeof space, "%.12s", names[0]);
        tune_store_records_free(names, names ? count : 0);
        tune_store_free(store);
        spaces_unlock();
    }
    for (int i = 0; i < 2 && !strncmp(space, "space-", 6) && !strchr(space, '/'); i++)
        if (tune_path(path, "%s/spaces/%s.%s", a->store, space, i ? "json" : "yaml") == 0 && tune_file_exists(path))
            return 0;
    return tune_error_usage("%s: expected a space: a file, the id of a recorded space, or an operation", about ? about : "about");
}

static bool add_word(cJSON *list, const char *word)
{
    return cJSON_AddItemToArray(list, cJSON_CreateString(word));
}

/* The argv of the sweep that measures these entities, or all that is missing if there is none. It never has --trust-store: sweep
 * asks for that itself before it runs a program that a store names. NULL with an error. */
static cJSON *sweep_argv(const struct spaces_question *a, const char *const *entities, int count)
{
    char path[TUNE_PATH_MAX];
    cJSON *list = find_file(a, path) == 0 ? cJSON_CreateArray() : NULL;
    if (!list)
        return NULL;
    bool good = add_word(list, "sweep") && add_word(list, path) && add_word(list, "--store") && add_word(list, a->store);
    if (a->q.experiments)
        good = good && add_word(list, "--experiments") && add_word(list, a->q.experiments);
    for (int i = 0; i < count; i++)
        good = good && add_word(list, "--entity") && add_word(list, entities[i]);
    if (good)
        return list;
    cJSON_Delete(list);
    tune_error_no_memory("a command");
    return NULL;
}

/* {"argv": [...], "text": "line for a shell"}; NULL with an error. */
static cJSON *command_of(cJSON *argv)
{
    char *line = NULL;
    size_t size;
    FILE *out = argv ? open_memstream(&line, &size) : NULL;
    const cJSON *word;
    cJSON *json = NULL;
    for (word = out ? argv->child : NULL; word; word = word->next) {
        fputs(word == argv->child ? "" : " ", out);
        tune_print_word(out, word->valuestring);
    }
    if (out && fclose(out) == 0 && (json = cJSON_CreateObject()) && tune_cjson_put(json, "argv", argv)) {
        tune_cjson_put_text(json, "text", line);
        free(line);
        return json;
    }
    free(line);
    cJSON_Delete(json);
    cJSON_Delete(argv);
    return NULL;
}

/* ---- a point ---- */

/* Ask another question about the same entity. */
static struct tune_answer_table *ask(struct spaces_question *a, const char *question)
{
    a->kind = tune_question_find(question);
    return spaces_ask(a);
}

static int put_json(cJSON *json, FILE *out)
{
    char *text = json ? cJSON_PrintUnformatted(json) : NULL;
    fputs(text ? text : "null", out);
    free(text);
    cJSON_Delete(json);
    return text ? 0 : tune_error_no_memory("a point");
}

/* The programs' own commands; a reason if there is none. */
static int put_commands(struct spaces_question *a, FILE *out)
{
    struct tune_answer_table *commands = ask(a, "command");
    cJSON *list = cJSON_CreateArray(), *reason = commands ? cJSON_CreateNull() : cJSON_CreateString(tune_error_message());
    for (int64_t row = 0; commands && row < commands->rows; row++)
        add_word(list, tune_answer_at(commands, row, 0)->text);
    tune_answer_free(commands);
    tune_error_clear();
    fputs(", \"commands\": ", out);
    int code = put_json(list, out);
    fputs(", \"no_commands\": ", out);
    return code | put_json(reason, out);
}

/* True if another row with the same folder ended nearer to its log: then the folder is that row's. */
static bool is_others(cJSON *const *runs, const double *away, int64_t rows, int64_t row)
{
    const char *folder = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(runs[row], "folder"));
    for (int64_t i = 0; i < rows && folder; i++) {
        const char *other = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(runs[i], "folder"));
        if (i != row && other && !strcmp(other, folder) && away[i] < away[row])
            return true;
    }
    return false;
}

static int put_runs(const struct studio *s, const struct spaces_question *a, const struct tune_answer_table *results, FILE *out)
{
    int64_t rows = results->rows;
    cJSON **runs = calloc((size_t)rows + 1, sizeof *runs);
    double *away = calloc((size_t)rows + 1, sizeof *away);
    int code = runs && away ? 0 : tune_error_no_memory("a point");
    for (int64_t row = 0; row < rows && code == 0; row++)
        if ((runs[row] = run_of(s, a, results, row, &away[row])))
            put_log_end(s, runs[row]);
    fputs(", \"runs\": [", out);
    for (int64_t row = 0; row < rows && code == 0; row++) {
        fputs(row > 0 ? ", " : "", out);
        char *text = runs[row] && !is_others(runs, away, rows, row) ? cJSON_PrintUnformatted(runs[row]) : NULL;
        fputs(text ? text : "null", out);
        free(text);
    }
    for (int64_t row = 0; row < rows && runs; row++)
        cJSON_Delete(runs[row]);
    free(runs);
    free(away);
    fputs("]", out);
    return code;
}

static int put_point(const struct studio *s, struct spaces_question *a, FILE *out)
{
    struct tune_answer_table *points = ask(a, "points"), *results = points ? ask(a, "results") : NULL;
    const char *entity = a->q.entity;
    int code = results ? 0 : -1;
    if (code == 0) {
        fputs("{\"entity\": ", out);
        code = put_json(cJSON_CreateString(entity), out);
        fputs(", \"points\": ", out);
        code |= tune_answer_object(points, NULL, out);
        fputs(", \"results\": ", out);
        code |= tune_answer_object(results, NULL, out);
        code |= put_runs(s, a, results, out);
    }
    tune_answer_free(points);
    tune_answer_free(results);
    TRY(code);
    TRY(put_commands(a, out));
    cJSON *measure = command_of(sweep_argv(a, &entity, 1));
    TRY(measure ? 0 : -1);
    fputs(", \"measure\": ", out);
    TRY(put_json(measure, out));
    fputs("}\n", out);
    return 0;
}

static int get_point(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    struct spaces_question a = {0};
    int code = spaces_read_question(s, q, r, "points", &a);
    *r->etag = 0; /* it also depends on the folders of runs */
    code = code < 0 ? -1 : put_point(s, &a, r->out);
    spaces_free_question(&a);
    return code;
}

/* ---- what is missing ---- */

/* The command for a store that does not exist yet. *count: the entities of the space; -1: unknown. */
static cJSON *first_argv(struct spaces_question *a, int64_t limit, int64_t *count)
{
    char path[TUNE_PATH_MAX], number[32];
    spaces_lock();
    struct tune_space *space = a->q.about && tune_file_exists(a->q.about) && find_file(a, path) == 0 ? tune_space_read(path) : NULL;
    *count = space && space->size > 0 && space->size < INT64_MAX ? (int64_t)space->size : -1;
    spaces_unlock();
    cJSON *argv = space ? sweep_argv(a, NULL, 0) : NULL;
    snprintf(number, sizeof number, "%lld", (long long)limit);
    if (argv && limit > 0 && !(add_word(argv, "--entities") && add_word(argv, number))) {
        cJSON_Delete(argv);
        argv = NULL;
    }
    if (!space && !*tune_error_message())
        tune_error_usage("there is no store %s yet; expected the file of a space to measure in `about`", a->store);
    tune_space_free(space);
    return argv;
}

/* The command, for the first `limit` entities that nobody measured or that failed; limit 0: for all. *count: how many there are. */
static cJSON *missing_argv(struct spaces_question *a, int64_t limit, int64_t *count)
{
    if (a->new_store)
        return first_argv(a, limit, count);
    a->kind = tune_question_find("missing");
    struct tune_answer_table *missing = spaces_ask(a);
    const char **entities = missing ? calloc((size_t)missing->rows + 1, sizeof *entities) : NULL;
    int column = missing ? tune_answer_find(missing, "identifier") : -1, n = 0;
    const char *last = "";
    *count = 0;
    for (int64_t row = 0; entities && row < missing->rows; row++) {
        const struct tune_answer_cell *cell = tune_answer_at(missing, row, column), *status = tune_answer_at(missing, row, tune_answer_find(missing, "status"));
        if (cell->type != TUNE_ANSWER_TEXT || status->type != TUNE_ANSWER_TEXT || !strcmp(status->text, "invalid") || !strcmp(last, cell->text))
            continue; /* sweep does not try again what its experiment refuses */
        last = cell->text;
        ++*count;
        if (n < limit)
            entities[n++] = cell->text;
    }
    cJSON *argv = entities ? sweep_argv(a, entities, n) : NULL;
    free(entities);
    tune_answer_free(missing);
    return argv;
}

static int get_measure(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    struct spaces_question a = {.new_store = true};
    int64_t limit = (int64_t)studio_number(q, "entities", 0), count = 0;
    int code = spaces_read_question(s, q, r, "missing", &a);
    *r->etag = 0;
    cJSON *argv = code < 0 ? NULL : missing_argv(&a, limit, &count), *json = argv ? command_of(argv) : NULL;
    bool nothing = !a.q.about && a.new_store;
    spaces_free_question(&a);
    if (!json)
        return nothing ? r->status = 404, -1 : -1;
    if (count >= 0)
        tune_cjson_put_whole(json, "missing", count);
    else
        cJSON_AddNullToObject(json, "missing");
    return studio_put_json(r, json);
}

/* Start the sweep that get_measure shows. It has no slot: sweep reserves the cores that it measures on. */
static int start_measure(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    static const struct studio_job_want want = {.no_slot = true};
    struct spaces_question a = {.new_store = true};
    char program[TUNE_PATH_MAX];
    int64_t count = 0;
    int code = spaces_read_question(s, q, r, "missing", &a);
    *r->etag = 0;
    cJSON *argv = code < 0 || tune_path(program, "%s/sweep", s->build) < 0 ? NULL : missing_argv(&a, (int64_t)studio_number(q, "entities", 0), &count);
    spaces_free_question(&a);
    if (!argv)
        return -1;
    if (count == 0) {
        cJSON_Delete(argv);
        return studio_fail(r, 400, "nothing is missing: each entity has a valid result, or its experiment refuses it");
    }
    cJSON_ReplaceItemInArray(argv, 0, cJSON_CreateString(program));
    cJSON *job = studio_job_start(s, "sweep", argv, NULL, studio_value(q, "name"), NULL, studio_value(q, "key"), &want);
    return job ? studio_put_json(r, job) : -1;
}

#define MEASURE_ENTITIES(place) {"entities", place, STUDIO_WHOLE, .least = 1, .most = 1000, .help = "only so many of the missing entities; default: all"}

const struct studio_route studio_point_routes[] = {
    {"GET", "/api/spaces/point", "getPoint", "space point", "One point of a space: state, figures, results, runs, commands.", "application/json", get_point,
     {SPACES_STORE, SPACES_ABOUT, SPACES_EXPERIMENTS,
      {"entity", STUDIO_IN_QUERY, .required = true, .help = "identifier of an entity: batch_size.4-lr.0.1"}, {0}}},
    {"GET", "/api/spaces/measure", "previewMeasure", NULL, "The command that measures what is missing.", "application/json", get_measure,
     {SPACES_STORE, SPACES_ABOUT, SPACES_EXPERIMENTS, MEASURE_ENTITIES(STUDIO_IN_QUERY), {0}}},
    {"POST", "/api/spaces/measure", "startMeasure", "space measure", "Start a sweep that measures what is missing.", "application/json", start_measure,
     {{"store", STUDIO_IN_BODY, .help = "folder of the sample store"}, {"about", STUDIO_IN_BODY, .help = "a space file, a recorded space or an operation"},
      {"experiments", STUDIO_IN_BODY, .help = "further files and folders of experiments in the root, with commas"}, MEASURE_ENTITIES(STUDIO_IN_BODY),
      {"name", STUDIO_IN_BODY, .help = "name of the job"}, {"key", STUDIO_IN_BODY, .help = "a second start with the same key gives the first one's job"}, {0}}},
    {0},
};
