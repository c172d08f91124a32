/* get_logger.c - the logger by the run's flags. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/file.h"
#include "flags/flags.h"
#include "loggers/host.h"
#include "loggers/logger.h"
#include "loggers/progress_line.h"
#include "loggers/run_folder.h"

/* argv, the line that repeats the run, every option and where its value came from. */
static cJSON *settings(const struct tune_flags *flags)
{
    char folder[TUNE_PATH_MAX], seed[32];
    size_t room = 64;
    for (int i = 0; i < flags->argc; i++)
        room += 4 * strlen(flags->argv[i]) + 3; /* a quote becomes four characters */
    char *command = malloc(room);
    struct tune_host host;
    tune_host_read(&host);
    snprintf(seed, sizeof seed, "%lld", (long long)flags->seed);
    cJSON *json = cJSON_CreateObject();
    bool good = command && json &&
                cJSON_AddItemToObject(json, "argv", cJSON_CreateStringArray((const char *const *)flags->argv, flags->argc)) &&
                cJSON_AddStringToObject(json, "command", tune_flags_command(flags, command, room)) &&
                cJSON_AddStringToObject(json, "working_folder", getcwd(folder, sizeof folder) ? folder : "") &&
                cJSON_AddItemToObject(json, "options", tune_flags_json(flags)) &&
                cJSON_AddItemToObject(json, "sources", tune_flags_sources_json(flags)) &&
                cJSON_AddItemToObject(json, "seed", cJSON_CreateRaw(seed)) &&
                cJSON_AddStringToObject(json, "device", flags->device ? flags->device : "cpu") &&
                cJSON_AddNumberToObject(json, "threads", flags->threads > 0 ? flags->threads : host.cpus);
    free(command);
    if (good)
        return json;
    cJSON_Delete(json);
    tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory in the logger");
    return NULL;
}

/* --overwrite must not take away what this run reads. */
static int keeps_inputs(const struct tune_flags *flags)
{
    const char *const inputs[] = {flags->model, flags->dataset};
    static const char *const names[] = {"--model", "--dataset"};
    for (int i = 0; i < 2; i++)
        if (flags->overwrite && flags->output && inputs[i] && tune_run_folder_holds(flags->output, inputs[i])) {
            tune_error_set_kind(TUNE_ERROR_USAGE, "--overwrite would remove %s with %s %s in it; give another --output",
                                flags->output, names[i], inputs[i]);
            return -1;
        }
    return 0;
}

/* `#` lines of the settings that are not the program's own defaults. */
static int show_settings(const struct tune_flags *flags, FILE *out)
{
    const char *text;
    const struct tune_option *o;
    struct tune_line line;
    tune_line_start(&line, out);
    for (int i = 0; (o = tune_flags_each(flags, i, &text)); i++) {
        enum tune_source source = tune_flags_source(flags, o->name);
        bool same = o->value && text && !strcmp(o->value, text);
        char name[160];
        snprintf(name, sizeof name, "%s%s", *o->name == '<' ? "" : "--", o->name);
        if (source != TUNE_FROM_DEFAULT && !same &&
            tune_line_print(&line, "# %-26s %s  (%s; default %s)", name, text, tune_source_name(source),
                            o->value ? o->value : "none") < 0)
            return -1;
    }
    return 0;
}

struct tune_logger *tune_get_logger(const struct tune_flags *flags)
{
    struct tune_logger_options options = {
        .program = flags->program,
        .folder = flags->output,
        .overwrite = flags->overwrite,
        .log_every = flags->log_every,
        .properties = flags->properties,
        .source = flags->source,
        .source_size = flags->source_size,
        .started_s = flags->started_s,
        .stop_after_seconds = flags->stop_after_seconds,
    };
    if (keeps_inputs(flags) < 0)
        return NULL;
    cJSON *json = settings(flags);
    if (!json)
        return NULL;
    options.settings = json;
    struct tune_logger *log = tune_logger_new(&options);
    cJSON_Delete(json);
    if (log && show_settings(flags, stdout) < 0) {
        tune_logger_free(log);
        return NULL;
    }
    return log;
}
