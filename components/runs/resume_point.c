/* resume_point.c - from a path to a run folder and a checkpoint in it. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runs/checkpoint_names.h"
#include "files/cjson.h"
#include "core/error.h"
#include "core/try.h"
#include "runs/resume_point.h"
#include "runs/run.h"
#include "runs/run_folder.h"

/* Report a run without a checkpoint, with the reason and the command that starts it again. */
static int no_checkpoint(const char *folder)
{
    char path[TUNE_PATH_MAX];
    if (tune_run_held(folder) > 0)
        return tune_error_set("%s: that run is still going on, in another process, and has no "
                              "checkpoint yet; wait until it saves one, or stop it", folder);
    cJSON *run = tune_path(path, "%s/" TUNE_RUN_JSON, folder) == 0 ? tune_cjson_read(path, TUNE_RUN_JSON_MOST) : NULL;
    const cJSON *options = cJSON_GetObjectItemCaseSensitive(run, "options");
    const cJSON *command = cJSON_GetObjectItemCaseSensitive(run, "command");
    bool unsaved = cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(options, "save"));
    tune_error_set("%s: that run has no checkpoint, %s; start it again with %s`overwrite`: %.1200s", folder,
                   unsaved ? "it was made without saving" : "it was ended before its first one was saved",
                   unsaved ? "`save` and " : "",
                   cJSON_IsString(command) ? command->valuestring : TUNE_RUN_JSON " has its command");
    cJSON_Delete(run);
    return -1;
}

/* Find the run folder of a checkpoint: the parent in its path, or, for a link, the parent of its
 * target. */
static int around(char folder[TUNE_PATH_MAX], const char *checkpoint, const char *whole)
{
    char above[TUNE_PATH_MAX];
    TRY(tune_file_parent(folder, checkpoint));
    TRY(tune_file_parent(above, whole));
    if (!tune_run_folder_has(folder, TUNE_RUN_JSON))
        TRY(tune_path(folder, "%s", above));
    if (tune_run_folder_has(folder, TUNE_RUN_JSON))
        return 0;
    return tune_error_set("%s: a checkpoint, but not in a run folder (no " TUNE_RUN_JSON
                          " in %s); to train from its weights, give it as the model",
                          checkpoint, folder);
}

/* Find the checkpoint that a path leads to, and its step. */
static int one_checkpoint(struct tune_resume_point *at, const char *name)
{
    char *whole = realpath(name, NULL);
    const char *slash = whole ? strrchr(whole, '/') : NULL;
    int status = slash ? around(at->folder, name, whole) : -1;
    if (status == 0 && (at->step = tune_checkpoint_named(slash + 1)) == 0) {
        tune_error_set("%s: a checkpoint's folder is named checkpoint-<step>, found \"%s\"", name,
                       slash + 1);
        status = -1;
    }
    if (status == 0)
        status = tune_path(at->checkpoint, "%s/%s", at->folder, slash + 1);
    if (!slash)
        tune_error_set("%s: %s", name, strerror(errno));
    free(whole);
    return status;
}

static int trimmed(char path[TUNE_PATH_MAX], const char *name)
{
    TRY(tune_path(path, "%s", name));
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = 0;
    return 0;
}

static int find_newest(struct tune_resume_point *at)
{
    int64_t *steps;
    int count = tune_checkpoint_steps(at->folder, &steps);
    TRY(count);
    at->newest = count > 0 ? steps[count - 1] : 0;
    free(steps);
    return 0;
}

static int take_newest(struct tune_resume_point *at)
{
    at->step = at->newest;
    return tune_path(at->checkpoint, "%s/checkpoint-%" PRId64, at->folder, at->step);
}

int tune_resume_find(const char *name, struct tune_resume_point *at)
{
    char path[TUNE_PATH_MAX];
    *at = (struct tune_resume_point){0};
    TRY(trimmed(path, name));
    if (!*path || !tune_file_is_folder(path))
        return tune_error_usage("\"%s\": no such folder; give a run folder, or one checkpoint in it",
                              path);
    if (!tune_run_folder_has(path, TUNE_RUN_JSON) && tune_run_folder_has(path, "state/progress.json"))
        TRY(one_checkpoint(at, path));
    else if (tune_run_folder_has(path, TUNE_RUN_JSON))
        TRY(tune_path(at->folder, "%s", path));
    else
        return tune_error_set("%s: no " TUNE_RUN_JSON " and no checkpoint there, so this is no run "
                              "to go on with%s", path, tune_run_folder_has(path, TUNE_RUN_METRICS)
                              ? ": it was ended before it began; start it again with `overwrite`"
                              : "");
    TRY(find_newest(at));
    if (at->step > 0)
        return 0;
    return at->newest > 0 ? take_newest(at) : no_checkpoint(at->folder);
}

int tune_resume_look(const char *folder, struct tune_resume_point *at)
{
    *at = (struct tune_resume_point){0};
    TRY(trimmed(at->folder, folder));
    if (tune_run_held(at->folder))
        return tune_error_set("%s: another process is working on that run; wait for its end, stop it, or give another `output`",
                              at->folder);
    if (!tune_run_folder_has(at->folder, TUNE_RUN_JSON))
        return 0;
    TRY(find_newest(at));
    TRY(at->newest > 0 ? take_newest(at) : 0);
    return 1;
}

int tune_resume_text(const struct tune_resume_point *at, char path[TUNE_PATH_MAX], char **text,
                     size_t *size)
{
    TRY(tune_path(path, "%s/" TUNE_RUN_JSON, at->folder));
    return tune_file_read(path, TUNE_RUN_JSON_MOST, text, size);
}
