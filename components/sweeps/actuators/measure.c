/* measure.c - run the runs of a measurement in sequence, and evaluate their ends and reports. */
#include "sweeps/actuators/measure.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loggers/stable.h"
#include "machine/child.h"
#include "files/cjson.h"
#include "core/clock.h"
#include "core/print.h"
#include "core/random.h"
#include "core/statistics.h"
#include "files/json.h"
#include "core/try.h"

enum { REPORT_LIMIT = 16 << 20 };
#define STABLE_PERCENT 5
#define LEAST_CPU_S .2 /* /proc/stat counts in steps of 10 ms */

/* How one run ended, for targets that count it. */
enum ending { ENDED_OK, ENDED_OOM, ENDED_ERROR };

struct tune_measurement {
    struct tune_measure_options o;
    struct tune_child *child;
    bool stopped;
    int run;                     /* the current run, from 0 */
    char folder[TUNE_PATH_MAX];  /* folder of the current run */
    char log[TUNE_PATH_MAX];
    char nonce[33];
    double begin_s, waited_s;    /* begin_s: start, monotonic clock; waited_s: time waiting for
                                  * processors */
    double cpu_s, lost_s;        /* cpu_s: processor time used; lost_s: lost to others */
    double stable;               /* stable for all runs; NAN: unknown */
    double steps;                /* steps of a report with too few; NAN: there is none */
    double started_s;
    double *values;              /* [runs][target_count] values from the reports */
    char **texts;                /* [runs][target_count] texts from the reports; NULL: none */
    enum ending *endings;        /* [runs] */
    double *targets;             /* [target_count] reduced values */
    char **target_texts;         /* [target_count] first or last texts; they belong to texts */
    char nothing[512];           /* names of targets that were NaN or infinite: "a, b" */
    char why[1024];              /* reason of the first counted run that failed; "": none */
};

const char *tune_status_name(enum tune_status status)
{
    static const char *const names[] = {"valid", "invalid", "failed", "stopped"};
    return names[status];
}

/* ---- one run ---- */

static int draw_nonce(char text[33])
{
    unsigned char bytes[16];
    TRY(tune_random_fresh(bytes, sizeof bytes));
    for (int i = 0; i < 16; i++)
        sprintf(text + 2 * i, "%02x", bytes[i]);
    return 0;
}

/* Make argv: the program, its arguments, and the flag for the output folder. */
static const char **argument_vector(const struct tune_measurement *m)
{
    const struct tune_command *c = m->o.command;
    const char **argv = calloc((size_t)c->argument_count + 4, sizeof *argv);
    int n = 0;
    if (!argv)
        return NULL;
    argv[n++] = m->o.program;
    for (int i = 0; i < c->argument_count; i++)
        argv[n++] = c->arguments[i];
    if (m->o.experiment->output) {
        argv[n++] = m->o.experiment->output;
        argv[n++] = m->folder;
    }
    return argv;
}

static const char **environment_of(const struct tune_measurement *m, const char *nonce, const char *output)
{
    const struct tune_command *c = m->o.command;
    int count = 0, n = 0;
    while (m->o.environment && m->o.environment[count])
        count++;
    const char **all = calloc((size_t)(count + c->environment_count + 3), sizeof *all);
    if (!all)
        return NULL;
    for (int i = 0; i < count; i++)
        all[n++] = m->o.environment[i];
    for (int i = 0; i < c->environment_count; i++)
        all[n++] = c->environment[i];
    all[n++] = nonce;
    all[n++] = output;
    return all;
}

static int begin_run(struct tune_measurement *m)
{
    char nonce[64], here[TUNE_PATH_MAX] = "", output[2 * TUNE_PATH_MAX + 16];
    TRY(tune_path(m->folder, "%s/run-%d", m->o.folder, m->run));
    TRY(tune_path(m->log, "%s/log-%d.txt", m->o.folder, m->run));
    TRY(m->o.experiment->output ? 0 : tune_file_new_folder(m->folder)); /* a recipe makes its own output folder */
    TRY(draw_nonce(m->nonce));
    snprintf(nonce, sizeof nonce, "TUNE_NONCE=%s", m->nonce);
    if (m->folder[0] != '/' && !getcwd(here, sizeof here))
        return tune_error_set("cannot find the full path of %s: the current folder cannot be read: "
                              "%s", m->folder,
                              strerror(errno));
    /* programs may change their folder */
    snprintf(output, sizeof output, "TUNE_OUTPUT=%s%s%s", here, *here ? "/" : "", m->folder);
    const char **argv = argument_vector(m), **environment = environment_of(m, nonce, output);
    const struct tune_child_options child = {.argv = argv, .environment = environment, .log = m->log, .log_limit = m->o.log_limit,
        .limit_s = m->o.limit_s, .grace_s = m->o.grace_s, .cpus = m->o.cpus, .cpu_count = m->o.cpu_count,
        .own_cpus = m->o.own_cpus, .locks = m->o.locks, .lock_count = m->o.lock_count};
    if (argv && environment)
        m->child = tune_child_start(&child);
    else
        tune_error_cannot("out of memory while a measurement begins");
    free(argv);
    free(environment);
    return m->child ? 0 : -1;
}

/* Read the last one or two lines of the log, where programs write their errors. */
static void last_words(const struct tune_measurement *m, char *text, size_t size)
{
    char tail[2048], *end, *from;
    FILE *f = fopen(m->log, "re");
    text[0] = 0;
    if (!f)
        return;
    if (fseek(f, -(long)(sizeof tail - 1), SEEK_END) != 0)
        rewind(f);
    size_t length = fread(tail, 1, sizeof tail - 1, f);
    fclose(f);
    while (length > 0 && (tail[length - 1] == '\n' || tail[length - 1] == ' '))
        length--;
    tail[length] = 0;
    end = tail + length;
    from = end;
    for (int lines = 0; from > tail && lines < 2; from--)
        if (from[-1] == '\n' && ++lines == 2)
            break;
    if (end - from > 600)
        from = end - 600;
    tune_utf8_mend(from, (size_t)(end - from));
    for (char *c = from; *c; c++)
        if ((unsigned char)*c < 32 || *c == 127)
            *c = *c == '\n' ? '|' : ' ';
    snprintf(text, size, "%.600s", from);
}

static int refuse(struct tune_result *result, enum tune_status status, const char *format, ...) TUNE_PRINTF(3, 4);
static int refuse(struct tune_result *result, enum tune_status status, const char *format, ...)
{
    result->status = status;
    FORMAT(result->reason, format);
    return 0;
}

/* ---- the report ---- */

/* Add a target that is NaN or infinite. Such values are not stored. */
static void add_not_finite(struct tune_measurement *m, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = m->nothing; (at = strstr(at, name)); at++)
        if ((at == m->nothing || at[-1] == ' ') && (!at[n] || at[n] == ','))
            return;
    tune_append_item(m->nothing, sizeof m->nothing, "%s", name);
}

static int copy_text(char **to, const char *text)
{
    *to = strdup(text);
    return *to ? 0 : tune_error_cannot("out of memory while a report is read");
}

/* Describe a value of a report: "a list of 3 numbers", "a text (fast)". */
static void name_kind(const cJSON *item, char *text, size_t size)
{
    const cJSON *part;
    bool numbers = true;
    cJSON_ArrayForEach(part, item) numbers = numbers && cJSON_IsNumber(part);
    int count = cJSON_GetArraySize(item);
    if (cJSON_IsArray(item))
        snprintf(text, size, "a list of %d %s%s", count, numbers ? "number" : "value", count == 1 ? "" : "s");
    else if (cJSON_IsObject(item))
        snprintf(text, size, "an object of %d member%s", count, count == 1 ? "" : "s");
    else if (cJSON_IsString(item))
        snprintf(text, size, "a text (%.40s)", item->valuestring);
    else if (cJSON_IsNumber(item))
        snprintf(text, size, "a number (%g)", item->valuedouble);
    else
        snprintf(text, size, "%s", cJSON_IsNull(item) ? "null" : cJSON_IsTrue(item) ? "true" : "false");
}

/* Refuse a value of the wrong kind. Lists and objects cannot be targets. Texts and numbers can, if
 * the target has that type. */
static int refuse_kind(const struct tune_target *t, const cJSON *item, const char *path, struct tune_result *result)
{
    char kind[100];
    name_kind(item, kind, sizeof kind);
    if (cJSON_IsArray(item) || cJSON_IsObject(item))
        return refuse(result, TUNE_FAILED, "target %s is %s, expected a number or a text, in the "
                                           "report %s", t->name, kind, path);
    return refuse(result, TUNE_FAILED, "target %s is %s, but the \"type\" of this target in its "
                                       "experiment is %s: report %s", t->name,
                  kind, t->text ? "text" : "number", path);
}

static int read_targets(struct tune_measurement *m, const cJSON *report, const char *path, struct tune_result *result)
{
    const struct tune_experiment *e = m->o.experiment;
    for (int i = 0; i < e->target_count; i++) {
        const struct tune_target *t = &e->targets[i];
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(report, t->name);
        double *value = &m->values[m->run * e->target_count + i];
        if (t->reduce >= TUNE_REDUCE_COUNT_OOM)
            continue;
        if ((!item || cJSON_IsNull(item)) && t->optional)
            continue;
        if (!item)
            return refuse(result, TUNE_FAILED, "the report has no target %s: %s", t->name, path);
        if (cJSON_IsNumber(item) && !isfinite(item->valuedouble)) {
            add_not_finite(m, t->name);
            continue;
        }
        if (t->text ? !cJSON_IsString(item) : !cJSON_IsNumber(item) && !cJSON_IsBool(item))
            return refuse_kind(t, item, path, result);
        if (t->text && strlen(item->valuestring) > TUNE_TARGET_TEXT)
            return refuse(result, TUNE_FAILED, "the text of target %s has %zu bytes, but a target "
                                               "can have at most %d, in the report %s",
                          t->name, strlen(item->valuestring), TUNE_TARGET_TEXT, path);
        if (t->text)
            TRY(copy_text(&m->texts[m->run * e->target_count + i], item->valuestring));
        else
            *value = cJSON_IsBool(item) ? cJSON_IsTrue(item) : item->valuedouble;
    }
    return 0;
}

/* Refuse a report. The reason has the cause before the path: "the report is not valid JSON: found
 * 'N', expected a value, 1:6 of <path>". */
static int refuse_report(const char *path, struct tune_result *result)
{
    const char *what = tune_error_message();
    size_t length = strlen(path);
    if (!strncmp(what, path, length) && what[length] == ':')
        what += length + 1;
    int prefix = (int)strspn(what, "0123456789:"); /* "1:6:", or nothing */
    if (prefix > 1 && what[prefix] == ' ')
        return refuse(result, TUNE_FAILED, "the report is not valid JSON: %.500s, %.*s of %s",
                      what + prefix + 1, prefix - 1, what, path);
    return refuse(result, TUNE_FAILED, "the report cannot be read: %.500s: %s", what, path);
}

static bool is_truth(const cJSON *item, int truth)
{
    return (cJSON_IsBool(item) && cJSON_IsTrue(item) == truth) || (cJSON_IsNumber(item) && item->valuedouble == truth);
}

static double number_of(const cJSON *report, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(report, name);
    return cJSON_IsNumber(item) && isfinite(item->valuedouble) ? item->valuedouble : NAN;
}

/* The percent of --until-stable, or the default. */
static double wanted_percent(const struct tune_measurement *m)
{
    int i = tune_experiment_input(m->o.experiment, "until_stable");
    double percent = 0;
    if (i >= 0)
        tune_value_number(&m->o.inputs[i], &percent);
    return percent > 0 ? percent : STABLE_PERCENT;
}

/* Note whether the run's speed became stable. */
static void read_stable(struct tune_measurement *m, const cJSON *report)
{
    double steps = number_of(report, "training_steps"), mean = number_of(report, "tokens_per_second_stable"),
           half = number_of(report, "tokens_per_second_stable_half_width");
    bool stable = half <= mean * wanted_percent(m) / 100;
    if (isnan(steps) && isnan(mean))
        return;
    if (isnan(mean) && steps < TUNE_STABLE_LEAST)
        m->steps = steps;
    m->stable = (isnan(m->stable) || m->stable == 1) && stable;
}

static int read_report(struct tune_measurement *m, struct tune_result *result)
{
    char path[TUNE_PATH_MAX];
    int code = 0;
    TRY(tune_path(path, "%s/%s", m->folder, m->o.experiment->report));
    if (!tune_file_exists(path))
        return refuse(result, TUNE_FAILED, "the program ended with exit code 0 but wrote no report "
                                           "%s", path);
    cJSON *report = tune_cjson_read_report(path, REPORT_LIMIT);
    if (!report)
        return refuse_report(path, result);
    const cJSON *nonce = cJSON_GetObjectItemCaseSensitive(report, "nonce"),
                *valid = cJSON_GetObjectItemCaseSensitive(report, "is_valid");
    if (!cJSON_IsObject(report))
        refuse(result, TUNE_FAILED, "the report is not a JSON object: %s", path);
    else if (nonce && (!cJSON_IsString(nonce) || strcmp(nonce->valuestring, m->nonce)))
        refuse(result, TUNE_FAILED, "the report is of another run: its nonce is not the TUNE_NONCE "
                                    "of this run: %s", path);
    else if (!is_truth(valid, 1) && !is_truth(valid, 0) && valid && !cJSON_IsNull(valid))
        refuse(result, TUNE_FAILED, "is_valid must be 0 or 1 in the report %s", path);
    else if (is_truth(valid, 0))
        refuse(result, TUNE_INVALID, "the program reports is_valid 0");
    else if ((code = read_targets(m, report, path, result)) == 0 && result->status == TUNE_VALID)
        read_stable(m, report);
    cJSON_Delete(report);
    return code;
}

/* Mark a valid result that is unreliable or lacks figures. */
static void mark(const struct tune_measurement *m, struct tune_result *result)
{
    char nothing[600] = "", share[64] = "", stable[96] = "";
    if (result->status != TUNE_VALID)
        return;
    if (result->core_share < TUNE_CORE_SHARE)
        snprintf(share, sizeof share, "disturbed: the program got only %.0f %% of the time of its "
                                      "cores", 100 * result->core_share);
    if (!isnan(m->steps))
        snprintf(stable, sizeof stable, "too few steps for a stable speed: %.0f", m->steps);
    else if (m->stable == 0)
        snprintf(stable, sizeof stable, "the speed was not stable");
    if (*m->nothing)
        snprintf(nothing, sizeof nothing, "not stored, because the report has NaN or an infinity "
                                          "there: %s", m->nothing);
    size_t n = strlen(result->reason);
    const char *const all[] = {share, stable, nothing};
    for (int i = 0; i < 3; i++) {
        if (*all[i])
            n += (size_t)snprintf(result->reason + n, sizeof result->reason - n, "%s%s", n ? "; " : "", all[i]);
        n = n < sizeof result->reason ? n : sizeof result->reason - 1;
    }
}

/* ---- the end ---- */

static int judge(struct tune_measurement *m, const struct tune_child_end *end, struct tune_result *result)
{
    char words[640];
    last_words(m, words, sizeof words);
    result->status = TUNE_VALID;
    result->reason[0] = 0;
    if (end->oom_killed) /* of the program itself, or of a child that a script waited for */
        return refuse(result, TUNE_INVALID, "out of memory: the kernel killed it");
    switch (end->how) {
    case TUNE_CHILD_NOT_STARTED:
        return refuse(result, TUNE_FAILED, "%s did not start: %s", m->o.program, end->reason);
    case TUNE_CHILD_TIMED_OUT:
        return refuse(result, TUNE_FAILED, "ended after the time limit of %g s", m->o.limit_s);
    case TUNE_CHILD_STOPPED:
        return refuse(result, TUNE_STOPPED, "stopped");
    case TUNE_CHILD_SIGNALLED:
        if (*end->reason)
            return refuse(result, TUNE_FAILED, "%s", end->reason);
        return refuse(result, TUNE_FAILED, "ended by signal %d (%s)%s%s", end->code, strsignal(end->code), *words ? ": " : "",
                      words);
    case TUNE_CHILD_EXITED:
        break;
    }
    if (end->code == 0)
        return read_report(m, result);
    return refuse(result, end->code == TUNE_ERROR_CANNOT ? TUNE_INVALID : TUNE_FAILED, "exit code %d%s%s", end->code,
                  *words ? ": " : "", words);
}

/* Set result->how: the reason without the log's last line, which follows a colon. */
static void write_how(const struct tune_measurement *m, const struct tune_child_end *end, struct tune_result *result)
{
    bool ended = (end->how == TUNE_CHILD_EXITED && end->code != 0) || (end->how == TUNE_CHILD_SIGNALLED && !*end->reason);
    int length = (int)(ended ? strcspn(result->reason, ":") : strlen(result->reason));
    size_t folder = strlen(m->o.folder);
    snprintf(result->how, sizeof result->how, "%.*s%s%s", length, result->reason, *end->complaint ? ": " : "", end->complaint);
    for (char *at; folder > 0 && (at = strstr(result->how, m->o.folder));)
        memmove(at, at + folder, strlen(at + folder) + 1);
    tune_utf8_mend(result->how, strlen(result->how));
}

static bool counts_endings(const struct tune_experiment *e)
{
    for (int i = 0; i < e->target_count; i++)
        if (e->targets[i].reduce >= TUNE_REDUCE_COUNT_OOM)
            return true;
    return false;
}

/* Reduce the values v[count] of the runs that have one. */
static double reduce(enum tune_reduce how, double *v, int count)
{
    static const char *const names[] = {[TUNE_REDUCE_MEAN] = "mean", [TUNE_REDUCE_MEDIAN] = "median", [TUNE_REDUCE_MIN] = "min",
                                        [TUNE_REDUCE_MAX] = "max", [TUNE_REDUCE_STD] = "std"};
    double sum = 0;
    if (count == 0)
        return NAN;
    if (how == TUNE_REDUCE_FIRST || how == TUNE_REDUCE_LAST)
        return how == TUNE_REDUCE_FIRST ? v[0] : v[count - 1];
    for (int i = 0; i < count; i++)
        sum += v[i];
    return how == TUNE_REDUCE_SUM ? sum : tune_statistic(v, count, names[how]);
}

/* The first or last text of the target in the runs; NULL: no run has one. */
static char *reduce_text(const struct tune_measurement *m, int target)
{
    const struct tune_experiment *e = m->o.experiment;
    char *text = NULL;
    for (int k = 0; k < m->run; k++) {
        char *of_run = m->texts[k * e->target_count + target];
        if (of_run && (!text || e->targets[target].reduce == TUNE_REDUCE_LAST))
            text = of_run;
    }
    return text;
}

static int reduce_all(struct tune_measurement *m)
{
    const struct tune_experiment *e = m->o.experiment;
    double *v = calloc((size_t)e->runs, sizeof *v);
    if (!v)
        return tune_error_cannot("out of memory while runs are reduced");
    for (int i = 0; i < e->target_count; i++) {
        enum tune_reduce how = e->targets[i].reduce;
        int count = 0, endings = 0;
        for (int k = 0; k < m->run; k++) {
            double x = m->values[k * e->target_count + i];
            if (!isnan(x))
                v[count++] = x;
            endings += (how == TUNE_REDUCE_COUNT_OOM && m->endings[k] == ENDED_OOM) ||
                       (how == TUNE_REDUCE_COUNT_ERROR && m->endings[k] == ENDED_ERROR) ||
                       (how == TUNE_REDUCE_COUNT_OK && m->endings[k] == ENDED_OK);
        }
        m->targets[i] = how >= TUNE_REDUCE_COUNT_OOM ? endings : reduce(how, v, count);
        m->target_texts[i] = reduce_text(m, i);
    }
    free(v);
    return 0;
}

static int finish(struct tune_measurement *m, struct tune_result *result)
{
    const struct tune_experiment *e = m->o.experiment;
    TRY(reduce_all(m));
    for (int i = 0; i < e->target_count; i++)
        if (!strcmp(e->targets[i].name, "is_valid")) /* an invalid configuration has only this property */
            m->targets[i] = result->status == TUNE_VALID ? 1 : result->status == TUNE_INVALID ? 0 : NAN;
        else if (result->status != TUNE_VALID)
            m->targets[i] = NAN;
    if (result->status != TUNE_VALID)
        memset(m->target_texts, 0, (size_t)e->target_count * sizeof *m->target_texts);
    tune_utf8_mend(result->reason, strlen(result->reason)); /* the text may have been cut inside a character */
    result->targets = m->targets;
    result->texts = m->target_texts;
    result->started_s = m->started_s;
    result->seconds = tune_clock_s() - m->begin_s - m->waited_s;
    result->waited_s = m->waited_s;
    result->run = m->run;
    result->core_share = m->cpu_s >= LEAST_CPU_S ? m->cpu_s / (m->cpu_s + m->lost_s) : NAN;
    result->stable = result->status == TUNE_VALID ? m->stable : NAN;
    mark(m, result);
    return 1;
}

int tune_measurement_next(struct tune_measurement *m, struct tune_result *result)
{
    struct tune_child_end end;
    int code = tune_child_end(m->child, &end);
    m->child = NULL;
    TRY(code);
    TRY(judge(m, &end, result));
    write_how(m, &end, result);
    m->started_s += m->run == 0 ? end.waited_s : 0;
    m->waited_s += end.waited_s;
    m->cpu_s += end.cpu_s;
    m->lost_s += end.lost_s;
    m->endings[m->run++] = result->status == TUNE_VALID ? ENDED_OK : result->status == TUNE_INVALID ? ENDED_OOM : ENDED_ERROR;
    if (result->status != TUNE_VALID && !*m->why)
        snprintf(m->why, sizeof m->why, "run %d of %d: %.980s", m->run, m->o.experiment->runs, result->reason);
    if (result->status == TUNE_STOPPED || m->stopped || (result->status != TUNE_VALID && !counts_endings(m->o.experiment))) {
        if (m->stopped)
            result->status = TUNE_STOPPED;
        return finish(m, result);
    }
    if (m->run < m->o.experiment->runs)
        return begin_run(m);
    if (*m->why) { /* failed runs were counted by targets, so the measurement did not fail */
        result->status = TUNE_VALID;
        memcpy(result->reason, m->why, sizeof m->why);
    }
    return finish(m, result);
}

struct tune_measurement *tune_measurement_start(const struct tune_measure_options *options)
{
    const struct tune_experiment *e = options->experiment;
    size_t cells = (size_t)e->runs * (size_t)e->target_count;
    struct tune_measurement *m = calloc(1, sizeof *m);
    if (m)
        m->o = *options;
    if (!m || !(m->values = calloc(cells + 1, sizeof *m->values)) || !(m->endings = calloc((size_t)e->runs, sizeof *m->endings)) ||
        !(m->targets = calloc((size_t)e->target_count + 1, sizeof *m->targets)) ||
        !(m->texts = calloc(cells + 1, sizeof *m->texts)) ||
        !(m->target_texts = calloc((size_t)e->target_count + 1, sizeof *m->target_texts))) {
        tune_error_cannot("out of memory while a measurement begins");
        tune_measurement_free(m);
        return NULL;
    }
    for (size_t i = 0; i < cells; i++)
        m->values[i] = NAN;
    m->stable = m->steps = NAN;
    m->begin_s = tune_clock_s();
    m->started_s = tune_clock_date_s();
    if (tune_file_new_folder(options->folder) == 0 && begin_run(m) == 0)
        return m;
    tune_measurement_free(m);
    return NULL;
}

int tune_measurement_descriptor(const struct tune_measurement *m)
{
    return tune_child_descriptor(m->child);
}

void tune_measurement_stop(struct tune_measurement *m)
{
    m->stopped = true;
    if (m->child)
        tune_child_stop(m->child);
}

void tune_measurement_free(struct tune_measurement *m)
{
    struct tune_child_end end;
    if (!m)
        return;
    if (m->child) {
        tune_child_stop(m->child);
        tune_child_end(m->child, &end);
    }
    for (int i = 0; m->texts && i < m->o.experiment->runs * m->o.experiment->target_count; i++)
        free(m->texts[i]);
    free(m->texts);
    free(m->target_texts);
    free(m->values);
    free(m->endings);
    free(m->targets);
    free(m);
}

/* ---- programs ---- */

int tune_program_find(const struct tune_experiment *e, const char *program, char path[TUNE_PATH_MAX])
{
    char own[TUNE_PATH_MAX], folder[TUNE_PATH_MAX], named[TUNE_PATH_MAX];
    if (!program)
        return tune_error_usage("experiment %s.%s has no program, so it cannot be measured; only "
                                "results in a store can be used",
                                e->actuator, e->name);
    if (strchr(program, '/')) {
        TRY(program[0] == '/' ? tune_path(named, "%s", program)
                              : tune_path(named, "%s/%s", e->folder, program + (strncmp(program, "./", 2) ? 0 : 2)));
        int why = tune_child_find(named, path);
        if (why == 0)
            return 0;
        return tune_error_set("%s: program %s does not exist or is not executable: %s",
                              e->document->path, named, strerror(why));
    }
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    own[length > 0 ? length : 0] = 0;
    TRY(tune_file_parent(folder, own));
    TRY(tune_path(named, "%s/%s", folder, program));
    if (tune_child_find(named, path) == 0 || tune_child_find(program, path) == 0)
        return 0;
    return tune_error_set("%s: program %s is neither in the folder of this program (%s) nor in "
                          "PATH; to build a recipe of tune.c: make build/%s", e->document->path,
                          program,
                          folder, program);
}
