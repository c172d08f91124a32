/* run_previews.c - samples.jsonl: what the model said while it trained. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/try.h"
#include "runs/run_writer.h"

static int fail(const char *path)
{
    return tune_error_set("cannot write %s: %s", path, errno ? strerror(errno) : "write error");
}

int tune_run_writer_preview(struct tune_run_writer *w, const cJSON *row)
{
    if (w->follows)
        return 0;
    char path[TUNE_PATH_MAX], *text = cJSON_PrintUnformatted(row);
    int status = text ? tune_run_writer_held(w) : tune_error_no_memory("a preview");
    if (status == 0)
        status = tune_path(path, "%s/" TUNE_RUN_PREVIEWS, w->folder);
    FILE *file = status == 0 ? fopen(path, "ae") : NULL;
    errno = 0;
    bool written = file && fprintf(file, "%s\n", text) > 0;
    if (file)
        written = fclose(file) == 0 && written;
    cJSON_free(text);
    return status < 0 ? -1 : written ? 0 : fail(path);
}

/* True for a whole line of this step or an earlier one. */
static bool stays(const char *line, int64_t step)
{
    cJSON *json = line[0] && line[strlen(line) - 1] == '\n' ? cJSON_Parse(line) : NULL;
    const cJSON *at = cJSON_GetObjectItemCaseSensitive(json, "step");
    bool good = cJSON_IsNumber(at) && at->valuedouble <= (double)step;
    cJSON_Delete(json);
    return good;
}

int tune_run_writer_cut_previews(const struct tune_run_writer *w, int64_t step)
{
    char path[TUNE_PATH_MAX], *line = NULL;
    size_t capacity = 0;
    struct tune_file_writer to;
    TRY(tune_path(path, "%s/" TUNE_RUN_PREVIEWS, w->folder));
    if (!tune_file_exists(path))
        return 0;
    FILE *from = fopen(path, "re");
    if (!from)
        return tune_error_set("cannot read %s: %s", path, strerror(errno));
    if (tune_file_begin(&to, path) < 0) {
        fclose(from);
        return -1;
    }
    bool good = true;
    while (good && getline(&line, &capacity, from) > 0)
        good = !stays(line, step) || fputs(line, to.file) >= 0;
    good = good && !ferror(from);
    free(line);
    fclose(from);
    if (good)
        return tune_file_commit(&to);
    tune_file_cancel(&to);
    return fail(path);
}
