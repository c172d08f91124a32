/* resume.c - the options of the run that --resume names, or that --requeue finds, and which of them
 * may differ. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "files/cjson.h"
#include "core/error.h"
#include "files/file.h"
#include "files/json.h"
#include "core/try.h"
#include "flags/state.h"
#include "machine/ranks.h"
#include "runs/resume_point.h"

/* The row of --resume in the table, as TUNE_RUN_OPTIONS has it; -1: the program has none. */
static int resume_row(const struct tune_flags *flags)
{
    int i = tune_flags_row(flags->state, "resume", 6);
    return i >= 0 && flags->state->at[i].row.at == &flags->resume ? i : -1;
}

static int no_memory(void)
{
    tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory while reading the resumed run's options");
    return -1;
}

/* Members of a run's description besides its options. */
struct about {
    char program[256], status[64], working_folder[TUNE_PATH_MAX]; /* of the last process, whose
                                                                   * options these are */
    int ranks; /* that it had; 0: not written down, since it was alone */
    bool options;
};

static int read_text(struct tune_json *j, char *text, size_t size)
{
    struct tune_text value;
    TRY(tune_json_string(j, &value));
    snprintf(text, size, "%s", value.data);
    return 0;
}

static int read_sessions(struct tune_json *j, struct about *about)
{
    struct tune_text key;
    int item, more = 0;
    TRY(tune_json_array(j));
    while ((item = tune_json_item(j)) == 1) {
        TRY(tune_json_object(j));
        while ((more = tune_json_key(j, &key)) == 1)
            TRY(tune_text_equal(key, "working_folder") ? read_text(j, about->working_folder, sizeof about->working_folder)
                                                       : tune_json_skip(j));
        TRY(more);
    }
    return item;
}

static int read_ranks(struct tune_json *j, int *ranks)
{
    uint64_t value;
    TRY(tune_json_u64(j, &value));
    if (value < 1 || value > 4096)
        return tune_json_fail(j, "ranks: expected 1 to 4096");
    *ranks = (int)value;
    return 0;
}

/* Read the members of the run's description, and its options if flags is not NULL. */
static int read_members(struct tune_flags *flags, struct tune_json *j, struct about *about)
{
    struct tune_text key;
    int more;
    TRY(tune_json_object(j));
    while ((more = tune_json_key(j, &key)) == 1) {
        if (tune_text_equal(key, "program")) {
            TRY(read_text(j, about->program, sizeof about->program));
        } else if (tune_text_equal(key, "status")) {
            TRY(read_text(j, about->status, sizeof about->status));
        } else if (tune_text_equal(key, "sessions")) {
            TRY(read_sessions(j, about));
        } else if (tune_text_equal(key, "ranks")) {
            TRY(read_ranks(j, &about->ranks));
        } else if (tune_text_equal(key, "options")) {
            about->options = true;
            TRY(flags ? tune_flags_object(flags->state, j, TUNE_FROM_RUN) : tune_json_skip(j));
        } else {
            TRY(tune_json_skip(j));
        }
    }
    TRY(more);
    return tune_json_end(j);
}

static int read_run(struct tune_flags *flags, const struct tune_resume_point *run, struct about *about)
{
    char path[TUNE_PATH_MAX], *text;
    size_t size;
    struct tune_json j;
    TRY(tune_resume_text(run, path, &text, &size));
    tune_json_start(&j, path, text, size, 1);
    int status = read_members(flags, &j, about);
    if (status == 0 && (!about->options || !*about->program))
        status = tune_json_fail(&j, "no \"%s\": not the file of a run", about->options ? "program" : "options");
    tune_json_free(&j);
    free(text);
    return status;
}

/* Put the list into found. A relative path that does not exist here is looked for in the folder
 * where the run was started. */
static int find_listed(const char *list, const char *working_folder, char found[TUNE_PATH_MAX])
{
    char item[TUNE_PATH_MAX], path[TUNE_PATH_MAX];
    int more;
    size_t used = 0;
    for (int k = 0; (more = tune_path_listed(list, k, item)) == 1; k++) {
        TRY(tune_path(path, "%s/%s", working_folder, item));
        bool there = *item && *item != '/' && !tune_file_exists(item) && tune_file_exists(path);
        used += (size_t)snprintf(found + used, TUNE_PATH_MAX - used, "%s%s", k ? "," : "", there ? path : item);
        if (used >= TUNE_PATH_MAX)
            return tune_error_set("the paths %.60s... are longer than %d bytes", list, TUNE_PATH_MAX - 1);
    }
    return more;
}

static int find_paths(struct tune_flags_state *state, const char *working_folder)
{
    for (int i = 0; i < state->count; i++) {
        char found[TUNE_PATH_MAX] = "";
        const char *text = state->at[i].text;
        if (state->at[i].keeping != TUNE_COMPARE_CONTENT || state->at[i].source != TUNE_FROM_RUN || !text)
            continue;
        TRY(find_listed(text, working_folder, found));
        if (strcmp(found, text))
            TRY(tune_flags_set(state, i, found, TUNE_FROM_RUN, state->at[i].row.name));
    }
    return 0;
}

static bool ended(const struct about *about)
{
    return !strcmp(about->status, "finished") || !strcmp(about->status, "diverged");
}

/* Options that are younger than some runs, and what those runs did. */
static const struct { const char *name, *then; } younger[] = {{"split-by", "number"}};

/* Let an older run go on as it began. What is given on the command line is compared later. */
static int do_as_then(struct tune_flags_state *state)
{
    for (size_t k = 0; k < sizeof younger / sizeof *younger; k++) {
        int i = tune_flags_row(state, younger[k].name, strlen(younger[k].name));
        if (i < 0 || state->at[i].in_run)
            continue;
        free(state->at[i].run_text);
        if (!(state->at[i].run_text = strdup(younger[k].then)))
            return no_memory();
        if (state->at[i].source == TUNE_FROM_DEFAULT)
            TRY(tune_flags_set(state, i, younger[k].then, TUNE_FROM_RUN, younger[k].name));
    }
    return 0;
}

static int read_options(struct tune_flags *flags, const struct tune_resume_point *run, struct about *about)
{
    struct tune_flags_state *state = flags->state;
    for (int i = 0; i < state->count; i++) /* an option that the program did not have then counts as
                                            * its default */
        if (state->at[i].row.value && !(state->at[i].run_text = strdup(state->at[i].row.value)))
            return no_memory();
    TRY(read_run(flags, run, about));
    return do_as_then(state);
}

/* Note where to go on. */
static int go_on(struct tune_flags *flags, const struct tune_resume_point *run, const struct about *about)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_path(path, "%s/checkpoint-final", run->folder)); /* missing: the end was not saved */
    flags->resume_finished = run->step == run->newest && ended(about) && tune_file_exists(path);
    flags->resume_step = run->step == run->newest ? run->step : 0;
    flags->resume_ranks = about->ranks > 0 ? about->ranks : 1;
    flags->resume_checkpoint = flags->state->resume_checkpoint = strdup(run->checkpoint);
    return flags->resume_checkpoint ? 0 : no_memory();
}

int tune_flags_from_run(struct tune_flags *flags)
{
    struct tune_flags_state *state = flags->state;
    struct about about = {0};
    struct tune_resume_point run;
    int resume = resume_row(flags), output = tune_flags_row(state, "output", 6);
    if (resume < 0 || !flags->resume)
        return 0;
    if (tune_resume_find(flags->resume, &run) < 0) {
        tune_error_prefix("--resume ");
        return -1;
    }
    TRY(read_run(NULL, &run, &about)); /* another program has other options */
    if (strcmp(about.program, flags->program))
        return tune_error_usage("--resume %s: that is a run of %s, not of %s; resume it with the "
                                "program that began it", flags->resume, about.program,
                                flags->program);
    TRY(read_options(flags, &run, &about));
    TRY(find_paths(state, about.working_folder));
    if (output >= 0)
        TRY(tune_flags_set(state, output, run.folder, TUNE_FROM_RUN, "--output"));
    return go_on(flags, &run, &about);
}

/* ---- --requeue ---- */

static int check_requeue(const struct tune_flags *flags)
{
    if (flags->log.overwrite)
        return tune_error_usage("--requeue goes on with the run in --output, and --overwrite removes it; leave one of them out");
    if (!flags->save)
        return tune_error_usage("--requeue goes on from what was saved, and --no-save saves nothing; leave one of them out");
    if (!flags->log.folder)
        return tune_error_usage("--requeue needs --output: the next start looks for the run there");
    return 0;
}

int tune_flags_requeued(struct tune_flags *flags)
{
    struct tune_flags_state *state = flags->state;
    struct about about = {0};
    struct tune_resume_point run;
    if (!flags->requeue || state->wish != TUNE_WISH_RUN)
        return 0;
    TRY(check_requeue(flags));
    if (flags->resume)
        return 0; /* every start goes on from the newest checkpoint anyway */
    int found = tune_resume_look(flags->log.folder, &run);
    TRY(found);
    if (found == 0) {
        flags->log.overwrite = true; /* if the folder is there, it holds no more than a run that hardly began */
        return 0;
    }
    TRY(read_run(NULL, &run, &about));
    if (strcmp(about.program, flags->program))
        return tune_error_usage("--requeue: --output %s holds a run of %s, not of %s; give another --output", flags->log.folder,
                                about.program, flags->program);
    state->comparing = true;
    int status = read_options(flags, &run, &about);
    state->comparing = false;
    TRY(status);
    state->again = run.newest == 0;
    if (!state->again)
        return go_on(flags, &run, &about);
    if (!strcmp(about.status, "running") || !strcmp(about.status, "stopped"))
        return 0; /* killed, or told to stop, before its first step was saved */
    return tune_error_usage("--requeue: --output %s holds a run without a checkpoint whose status is %s; give another --output, "
                            "or remove that folder", flags->log.folder, about.status);
}

/* ---- comparing ---- */

/* True if the current value is the one that text means (NULL: none). */
static bool same(const struct tune_option *row, const char *now, const char *text)
{
    union tune_option_value scratch;
    struct tune_option copy;
    if (tune_option_is_text(row) || !text)
        return now && text ? !strcmp(now, text) : now == text;
    if (tune_flags_put_elsewhere(&copy, &scratch, row, text) < 0) {
        tune_error_clear(); /* outside its present range, so it differs */
        return false;
    }
    static const size_t sizes[] = {sizeof scratch.i, sizeof scratch.l, sizeof scratch.d, sizeof scratch.b};
    return row->type == TUNE_DOUBLE || row->type == TUNE_INTERVAL ? *(const double *)row->at == scratch.d
                                    : !memcmp(row->at, &scratch, sizes[row->type]);
}

static const char *shown(const char *text)
{
    return text ? text : "none";
}

/* The number of ranks. A launcher's holds against that of the resumed run. */
static int find_ranks(struct tune_flags *flags, int *ranks)
{
    int launched = tune_ranks_launched().size, i = tune_flags_row(flags->state, "ranks", 5);
    if (i >= 0 && launched > 0 && flags->state->at[i].source == TUNE_FROM_RUN)
        TRY(tune_flags_set(flags->state, i, "0", TUNE_FROM_RUN, "ranks"));
    *ranks = i < 0 || flags->ranks == 1 ? 1 : flags->ranks > 0 ? flags->ranks : launched > 0 ? launched : 1;
    return 0;
}

/* With another number of ranks, each takes another number of micro-batches, so that a step has the
 * rows that it would have had. */
static int share_steps(struct tune_flags *flags)
{
    struct tune_flags_state *state = flags->state;
    int now, was = flags->resume_ranks, i = tune_flags_row(state, "accumulate", 10);
    char text[32];
    if (i < 0 || was == 0)
        return 0;
    TRY(find_ranks(flags, &now));
    if (now == was)
        return 0;
    struct tune_flags_entry *e = &state->at[i];
    int64_t all = (e->run_text ? atoi(e->run_text) : 1) * (int64_t)was;
    bool typed = e->source != TUNE_FROM_RUN && e->source != TUNE_FROM_DEFAULT;
    if (!typed && all % now == 0) {
        snprintf(text, sizeof text, "%" PRId64, all / now);
        TRY(tune_flags_set(state, i, text, e->source, "accumulate"));
    }
    int64_t micro_batches = (int64_t)now * *(const int *)e->row.at;
    if (micro_batches != all && !flags->log.allow_changed)
        return tune_error_usage("--resume: a step of that run has %" PRId64 " micro-batches, on %d rank%s; %d with --accumulate %d would have %"
                                PRId64 "; %s, or give --allow-changed for steps of another size", all, was, was == 1 ? "" : "s", now,
                                *(const int *)e->row.at, micro_batches,
                                typed ? "leave --accumulate out" : "start a number of ranks that divides it");
    if (micro_batches != all)
        return 0;
    free(e->run_text); /* it is no change */
    return (e->run_text = strdup(e->text)) ? 0 : no_memory();
}

/* If --output was given, it must be the run's own folder. */
static int check_output(const struct tune_flags *flags)
{
    char *mine = realpath(flags->resume_checkpoint, NULL), *given = flags->log.folder ? realpath(flags->log.folder, NULL) : NULL;
    char folder[TUNE_PATH_MAX] = "";
    int status = mine ? tune_file_parent(folder, mine) : -1;
    bool equal = status == 0 && given && !strcmp(folder, given);
    free(mine);
    free(given);
    if (equal)
        return 0;
    return tune_error_usage("--output %s: a resumed run goes on in its own folder; leave --output "
                            "out, or copy the folder first and resume the copy",
                            shown(flags->log.folder));
}

int tune_flags_check_run(struct tune_flags *flags)
{
    struct tune_flags_state *state = flags->state;
    char text[1500];
    size_t used = 0;
    int resume = resume_row(flags);
    if (resume >= 0 && state->at[resume].source == TUNE_FROM_CONFIG)
        return tune_error_usage("resume stands in a --config file; it is given on the command "
                                "line: --resume %s", shown(flags->resume));
    if (!flags->resume_checkpoint && !state->again)
        return 0;
    TRY(flags->resume ? check_output(flags) : 0);
    TRY(share_steps(flags));
    for (int i = 0; i < state->count; i++) {
        const struct tune_option *row = &state->at[i].row;
        state->at[i].changed = state->at[i].keeping == TUNE_KEEP && !same(row, state->at[i].text, state->at[i].run_text);
        if (state->at[i].changed && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s (was %.200s, now %.200s)", used ? ", " : "",
                                     *row->name == '<' ? "" : "--", row->name, shown(state->at[i].run_text),
                                     shown(state->at[i].text));
    }
    for (int i = 0; i < state->count && state->again; i++)
        state->at[i].changed = false; /* a run that begins again has no changes */
    flags->log.overwrite = flags->log.overwrite || state->again;
    if (used > 0 && flags->log.allow_changed)
        flags->resume_finished = false; /* "--epochs 2 --allow-changed" may add more steps */
    if (used == 0 || flags->log.allow_changed)
        return 0;
    if (!flags->resume)
        return tune_error_usage("--requeue: --output %s holds a run that was begun with other options: %s; give another "
                                "--output, or --allow-changed to go on with it", flags->log.folder, text);
    return tune_error_usage("--resume %s: changed since that run: %s; leave out what is changed, "
                            "or give --allow-changed to go on with it", flags->resume, text);
}

struct cJSON *tune_flags_changes_json(const struct tune_flags *flags)
{
    const struct tune_flags_state *state = flags->state;
    cJSON *json = cJSON_CreateObject();
    bool good = json != NULL;
    for (int i = 0; state && i < state->count && good; i++) {
        char name[160];
        if (!state->at[i].changed)
            continue;
        snprintf(name, sizeof name, "%s%s", *state->at[i].row.name == '<' ? "" : "--", state->at[i].row.name);
        cJSON *pair = cJSON_CreateObject();
        good = tune_cjson_put_text(pair, "was", shown(state->at[i].run_text)) &&
               tune_cjson_put_text(pair, "now", shown(state->at[i].text));
        good = tune_cjson_put(json, name, pair) && good;
    }
    if (good)
        return json;
    cJSON_Delete(json);
    no_memory();
    return NULL;
}
