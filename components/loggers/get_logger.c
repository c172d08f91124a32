/* get_logger.c - the logger that the flags describe, and what it records of device, model and
 * data. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/comm.h"
#include "files/cjson.h"
#include "core/error.h"
#include "files/file.h"
#include "core/print.h"
#include "core/try.h"
#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "flags/find.h"
#include "flags/flags.h"
#include "machine/host.h"
#include "machine/ranks.h"
#include "loggers/forecast.h"
#include "loggers/logger.h"
#include "loggers/state.h"
#include "losses/preference.h"
#include "models/lora.h"
#include "loggers/progress_line.h"
#include "runs/run_folder.h"
#include "tokenizers/tokenizer.h"
#include "models/model.h"
#include "profilers/gpus.h"
#include "profilers/profiler.h"

/* Record argv, the command that repeats the run, and every option with the source of its value. */
static cJSON *settings(const struct tune_flags *flags)
{
    char folder[TUNE_PATH_MAX];
    size_t room = 64;
    for (int i = 0; i < flags->argc; i++)
        room += 4 * strlen(flags->argv[i]) + 3; /* a quote needs four characters */
    char *command = malloc(room);
    struct tune_host host;
    tune_host_read(&host);
    cJSON *json = cJSON_CreateObject();
    bool good = command && json &&
                cJSON_AddItemToObject(json, "argv", cJSON_CreateStringArray((const char *const *)flags->argv, flags->argc)) &&
                cJSON_AddStringToObject(json, "command", tune_flags_command(flags, command, room)) &&
                cJSON_AddStringToObject(json, "working_folder", getcwd(folder, sizeof folder) ? folder : "") &&
                cJSON_AddItemToObject(json, "options", tune_flags_json(flags)) &&
                cJSON_AddItemToObject(json, "sources", tune_flags_sources_json(flags)) &&
                cJSON_AddItemToObject(json, "units", tune_flags_units_json(flags)) &&
                tune_cjson_put_whole(json, "seed", flags->seed) &&
                cJSON_AddStringToObject(json, "device", flags->device ? flags->device : "cpu") &&
                cJSON_AddNumberToObject(json, "threads", flags->threads > 0 ? flags->threads : flags->rank_threads > 0 ? flags->rank_threads : host.cpus);
    if (flags->comm && tune_comm_size(flags->comm) > 1)
        good = good && tune_cjson_put_whole(json, "ranks", tune_comm_size(flags->comm));
    free(command);
    if (flags->resume_checkpoint) /* the way a process was started belongs to its session; the
                                   * options can be used as a --config */
        good = good && tune_cjson_put(cJSON_GetObjectItemCaseSensitive(json, "options"), "resume", cJSON_CreateNull());
    if (good)
        return json;
    cJSON_Delete(json);
    tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory in the logger");
    return NULL;
}

/* Refuse an --overwrite that would remove files which this run reads. */
static int keeps(const struct tune_flags *flags, const char *name, const char *input)
{
    if (!flags->log.overwrite || flags->resume_checkpoint || !flags->log.folder || !input || !tune_run_folder_holds(flags->log.folder, input))
        return 0;
    return tune_error_usage("--overwrite would remove %s with %s %s in it; give another --output",
                            flags->log.folder, name, input);
}

/* keeps for each path of a list. */
static int keeps_listed(const struct tune_flags *flags, const char *name, const char *paths)
{
    char path[TUNE_PATH_MAX];
    int more = 0;
    for (int k = 0; paths && (more = tune_path_listed(paths, k, path)) == 1; k++)
        TRY(keeps(flags, name, path));
    return more;
}

static int keeps_inputs(const struct tune_flags *flags)
{
    const char *config;
    TRY(keeps(flags, "--model", flags->model));
    TRY(keeps_listed(flags, "--dataset", flags->dataset));
    TRY(keeps_listed(flags, "--eval-dataset", flags->eval.path));
    for (int i = 0; (config = tune_flags_config(flags, i)); i++)
        TRY(keeps(flags, "--config", config));
    return 0;
}

/* Print a `#` line for each setting that is not the program's default. */
static int show_settings(const struct tune_flags *flags, struct tune_line *line)
{
    const char *text;
    const struct tune_option *o;
    for (int i = 0; (o = tune_flags_each(flags, i, &text)); i++) {
        char name[160];
        snprintf(name, sizeof name, "%s%s", *o->name == '<' ? "" : "--", o->name);
        if (tune_flags_differs(flags, o->name))
            TRY(tune_line_print(line, strlen(name) < 12 ? "# %-12s %s  (%s; default %s)" : "# %s  %s  (%s; default %s)", name, text,
                                tune_source_name(tune_flags_source(flags, o->name)), o->value ? o->value : "none"));
    }
    return 0;
}

/* Print those settings in a line for each source, as they could be typed. In a terminal the user's own
 * flags stand above anyway. */
static int show_settings_briefly(const struct tune_flags *flags, struct tune_line *line)
{
    int last = line->terminal ? TUNE_FROM_FLAG - 1 : TUNE_FROM_FLAG;
    for (int source = TUNE_FROM_DEFAULT + 1; source <= last; source++) {
        char *words = NULL;
        const char *text;
        size_t size;
        const struct tune_option *o;
        FILE *out = open_memstream(&words, &size);
        if (!out)
            return tune_logger_no_memory();
        for (int i = 0; (o = tune_flags_each(flags, i, &text)); i++) {
            if ((int)tune_flags_source(flags, o->name) != source || !tune_flags_differs(flags, o->name))
                continue;
            fprintf(out, "%s%s%s%s", ftell(out) ? " " : "", *o->name == '<' ? "" : "--", *o->name == '<' ? "" : o->name,
                    *o->name == '<' ? "" : " ");
            tune_print_word(out, text);
        }
        int status = fclose(out) == 0 ? 0 : tune_logger_no_memory();
        if (status == 0 && *words)
            status = tune_line_print(line, "# %-12s %s", source == TUNE_FROM_FLAG ? "options" : tune_source_name((enum tune_source)source), words);
        free(words);
        TRY(status);
    }
    return 0;
}

/* Read the words of --logger. */
static int read_writers(const struct tune_flags *flags, unsigned *writers)
{
    static const char *const names[] = {"jsonl", "csv", "tensorboard"};
    static const unsigned bits[] = {0, TUNE_WRITE_CSV, TUNE_WRITE_TENSORBOARD};
    for (const char *at = flags->logger; at && *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        int i = 0;
        while (i < 3 && (strlen(names[i]) != n || strncmp(at, names[i], n)))
            i++;
        if (i == 3)
            return tune_error_usage("--logger: \"%.*s\" is none of jsonl, csv, tensorboard; "
                                    "several are separated by commas, jsonl is always written",
                                    (int)n, at);
        *writers |= bits[i];
        at += n;
    }
    return 0;
}

/* Record in the run folder the differences that --allow-changed permitted. */
static int note_changes(struct tune_logger *log, const struct tune_flags *flags)
{
    cJSON *changes = tune_flags_changes_json(flags), *c;
    int status = changes ? 0 : -1;
    cJSON_ArrayForEach(c, changes)
        if (status == 0)
            status = tune_logger_changed(log, c->string, cJSON_GetObjectItemCaseSensitive(c, "was")->valuestring,
                                         cJSON_GetObjectItemCaseSensitive(c, "now")->valuestring);
    cJSON_Delete(changes);
    return status;
}

/* Rank 0 has made the run folder, and tells the others its name. */
static int share_folder(struct tune_comm *c, char folder[TUNE_PATH_MAX])
{
    return tune_comm_do(c, &(struct tune_collective){.kind = TUNE_BROADCAST, .what = "the run folder", .to = folder, .count = TUNE_PATH_MAX,
                                                     .element = 1});
}

struct tune_logger *tune_get_logger(const struct tune_flags *flags)
{
    struct tune_logger_options options = flags->log;
    options.program = flags->program;
    options.resume = flags->resume_checkpoint != NULL;
    options.properties = flags->properties;
    options.stop_after_seconds = flags->loader.stop_after_seconds;
    options.unsaved = !flags->save;
    options.stop_signal = flags->stop_signal;
    options.failure = flags->failure;
    options.spell = tune_flags_name_options;
    options.flags = flags;
    if (!flags->comm && flags->timeout_s > 0 && flags->ranks != 1 && tune_ranks_launched().size > 1) {
        tune_error_usage("this recipe does not call tune_get_comm, so its ranks would each train alone; add the line as recipes/finetune_full.c "
                         "has it, or give --ranks 1");
        return NULL;
    }
    options.comm = flags->comm;
    options.follows = tune_comm_follows(flags->comm);
    options.quiet = options.quiet || options.follows;
    if (keeps_inputs(flags) < 0 || read_writers(flags, &options.writers) < 0)
        return NULL;
    options.writers = options.follows ? 0 : options.writers;
    cJSON *json = settings(flags);
    if (!json)
        return NULL;
    options.settings = json;
    if (flags->starting)
        *flags->starting = 0;
    char folder[TUNE_PATH_MAX] = "";
    int status = options.follows ? share_folder(flags->comm, folder) : 0;
    if (options.follows)
        options.folder = folder;
    struct tune_logger *log = status == 0 ? tune_logger_new(&options) : NULL;
    cJSON_Delete(json);
    if (log && flags->comm && !options.follows) {
        snprintf(folder, sizeof folder, "%s", tune_logger_folder(log));
        status = share_folder(flags->comm, folder);
    }
    struct tune_line line;
    tune_line_start(&line, stdout);
    if (log && (status < 0 || (options.verbose ? show_settings : show_settings_briefly)(flags, &line) < 0 || note_changes(log, flags) < 0)) {
        struct tune_error why;
        tune_error_save(&why);
        tune_logger_failed(log, why.text);
        tune_error_restore(&why);
        tune_logger_free(log);
        return NULL;
    }
    return log;
}

static int note_model(struct tune_logger *log, struct tune_model *model, bool trains)
{
    char text[640];
    const struct tune_model_config *c = tune_model_config(model);
    const struct tune_parameters *p = tune_model_parameters(model);
    snprintf(text, sizeof text, "%s, %d layers of %d, %d/%d heads of %d, vocabulary %d, %.1fM parameters, %.1fM trained",
             c->family, c->layers, c->hidden, c->heads, c->kv_heads, c->head_dim, c->vocabulary,
             (double)tune_parameters_total(p) / 1e6, (double)tune_parameters_trainable(p) / 1e6);
    size_t used = strlen(text);
    if (tune_model_lora(model))
        snprintf(text + used, sizeof text - used, " (%.2f %%)",
                 100.0 * (double)tune_parameters_trainable(p) / (double)tune_parameters_total(p));
    double flat = tune_model_flops(model, 0);
    tune_logger_flops(log, flat, tune_model_flops(model, 1) - flat);
    tune_logger_know(log, "trained_parameters", (double)tune_parameters_trainable(p));
    TRY(tune_logger_note(log, "model", text));
    for (const char *line = c->remarks; *line; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL)) {
        snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\n"), line);
        TRY(tune_logger_note(log, "warning: model", text));
    }
    snprintf(text, sizeof text, "config.json has an attention_dropout of %g: training here has none; transformers drops so many "
                                "attention weights", (double)c->attention_dropout);
    if (c->attention_dropout > 0 && trains)
        TRY(tune_logger_note(log, "warning: attention_dropout", text));
    return tune_logger_property(log, "model_load_time", tune_model_load_seconds(model));
}

/* Warn if desirable answers weigh less than the others, or more than 4/3 of them (KTO's paper, equation 8). As many of both are
 * taken as they are. */
static int note_balance(struct tune_logger *log, const struct tune_preference_options *o, const struct tune_survey *s)
{
    char text[400];
    double no = (double)s->labelled[0], yes = (double)s->labelled[1], ratio = o->desirable_weight * yes / (o->undesirable_weight * no);
    bool one = yes == 0 || no == 0 || o->desirable_weight == 0 || o->undesirable_weight == 0;
    if (one || yes == no || (ratio >= 0.995 && ratio <= 1.335))
        return 0;
    snprintf(text, sizeof text, "%.3g %% of the answers are desirable; with the weights they count %.3g times what the others do, and 1 to 1.33 "
             "times is advised: `desirable_weight` %.3g to %.3g, or `undesirable_weight` %.3g to %.3g", 100 * yes / (yes + no), ratio,
             o->undesirable_weight * no / yes, o->undesirable_weight * no / yes * 4 / 3, o->desirable_weight * yes / no * 3 / 4,
             o->desirable_weight * yes / no);
    return tune_logger_note(log, "warning: balance", text);
}

/* Forward passes besides training, for preferences. */
static double passes_of(const struct tune_flags *flags, const struct tune_loader_options *o, const struct tune_model *model,
                        const struct tune_loader *load)
{
    double rows = o->max_steps >= 0 ? (double)o->max_steps * (double)tune_loader_micro_batches(o) * o->batch_size : (double)tune_loader_planned_rows(load);
    double epochs = o->mix ? 1 : rows / (double)tune_loader_rows(load); /* each epoch of a mix has other rows */
    return o->sequences > 0 ? tune_preference_passes(&flags->preference, tune_model_lora(model) && !flags->adapter, epochs) : 0;
}

/* Tell what the rows are like and what the run will take. */
static int forecast(struct tune_logger *log, const struct tune_flags *flags, struct tune_model *model, struct tune_dataset *data,
                    const struct tune_loader *load, const struct tune_memory_plan *plan)
{
    struct tune_survey survey;
    struct tune_loader_options loader = tune_get_loader_options(flags);
    struct tune_dataset_options rows = flags->data;
    rows.sequences = loader.sequences;
    TRY(tune_survey(&survey, data, flags->loader.mix ? load : NULL));
    int status = tune_forecast_rows(log, &rows, &survey, tune_model_config(model)->max_positions);
    if (status == 0)
        status = note_balance(log, &flags->preference, &survey);
    if (status == 0)
        status = tune_forecast_time(log, &loader, model, load, &survey, plan, passes_of(flags, &loader, model, load));
    tune_survey_free(&survey);
    return status;
}

/* Tell how many rows there are, and of which format. */
static int note_rows(struct tune_logger *log, struct tune_dataset *data, const struct tune_loader *load)
{
    char text[1400], key[32];
    int sets = tune_dataset_sets(data);
    int64_t part = 0, epoch;
    for (int k = 0; k < sets; k++)
        part += tune_loader_set_rows(load, k, &epoch);
    snprintf(text, sizeof text, "%s, %" PRId64 " to train on, %" PRId64 " held out", tune_dataset_rows_are(data), part,
             tune_dataset_rows(data) - part);
    if (tune_loader_ordered(load))
        tune_append(text, sizeof text, "; %" PRId64 " in an epoch, in the program's own order", tune_loader_rows(load));
    else if (tune_loader_rows(load) < part)
        tune_append(text, sizeof text, "; %" PRId64 " in an epoch", tune_loader_rows(load));
    TRY(tune_logger_note(log, "rows", text));
    for (int k = 0; k < sets; k++) {
        const struct tune_dataset *set = tune_dataset_set(data, k);
        const char *about = tune_dataset_about(set);
        if (*tune_dataset_files(set, text, (int)sizeof text)) {
            snprintf(key, sizeof key, sets > 1 ? "files %d" : "files", k + 1);
            TRY(tune_logger_note(log, key, text));
        }
        if (sets == 1)
            return about ? tune_logger_note(log, "format", about) : 0;
        int64_t rows = tune_loader_set_rows(load, k, &epoch);
        snprintf(key, sizeof key, "set %d", k + 1);
        snprintf(text, sizeof text, "%.200s: %" PRId64 " of %" PRId64 " rows in an epoch (%.3g %%); %s",
                 tune_dataset_path(set) ? tune_dataset_path(set) : "the program's own rows", epoch, rows,
                 100 * (double)epoch / (double)tune_loader_rows(load), about ? about : "");
        TRY(tune_logger_note(log, key, text));
    }
    return 0;
}

/* Tell what evaluations and saved weights are, if not the weights of the last step. */
static int note_averages(struct tune_logger *log, double ema)
{
    char text[160];
    snprintf(text, sizeof text, "of the weights, decay %g, at most (1 + t) / (10 + t) at update t: they are evaluated and saved", ema);
    return ema > 0 ? tune_logger_note(log, "averages", text) : 0;
}

/* Learning rates that published recipes use with AdamW, by what is trained. Sources: the values of
 * torchtune, TRL, axolotl and of the models' own reports (defaults/README.md). Muon's step here is
 * as large as AdamW's. */
static const struct usual {
    const char *what;
    double low, high;
} usual[] = {
    {"full fine-tuning", 1e-6, 1e-4},
    {"adapters", 1e-5, 1e-3},
    {"preferences", 1e-7, 5e-5},
    {"random weights", 1e-5, 3e-3},
};

/* Warn of a learning rate that is far from what others use: a slip of the hand, more often than
 * not. */
static int note_lr(struct tune_logger *log, const struct tune_flags *flags, struct tune_model *model, bool random)
{
    char text[256];
    double lr = flags->schedule.lr;
    const struct usual *u = &usual[random ? 3 : flags->data.sequences > 0 ? 2 : tune_model_lora(model) != NULL];
    bool low = lr < u->low / 100, high = lr > u->high * 10;
    if (lr == 0 || flags->optimizer.kind == TUNE_SGD || flags->loader.max_steps == 0 || (!low && !high))
        return 0;
    snprintf(text, sizeof text, "`lr` %g is %s than is usual for %s (%g to %g); %s", lr, high ? "far larger" : "far smaller", u->what,
             u->low, u->high, high ? "such runs mostly diverge" : "such runs learn next to nothing");
    return tune_logger_note(log, "warning: learning rate", text);
}

/* Tell whose defaults were taken by the model's size. Warn of a run whose defaults come to few
 * steps. From 100 on a model begins to answer as the rows do; defaults/README.md has what was
 * measured. */
static int note_steps(struct tune_logger *log, const struct tune_flags *flags, const struct tune_loader *load)
{
    enum { FEW = 100 };
    char text[256];
    int64_t steps = tune_loader_planned_steps(load);
    TRY(tune_flags_size_defaults(flags) ? tune_logger_note(log, "by size", tune_flags_size_defaults(flags)) : 0);
    bool asked = tune_flags_given(flags, "epochs") || tune_flags_given(flags, "max-steps") || flags->resume_checkpoint;
    if (asked || steps >= FEW || steps < 1)
        return 0;
    int64_t more = (FEW + steps - 1) / steps;
    snprintf(text, sizeof text, "%" PRId64 " step%s of learning rate %g teach%s little; `epochs` %g makes about %" PRId64 " of them, and a "
             "larger `lr` learns more in each", steps, steps == 1 ? "" : "s", flags->schedule.lr, steps == 1 ? "es" : "",
             (double)more * flags->loader.epochs, more * steps);
    return tune_logger_note(log, "warning: few steps", text);
}

/* Tell which tokens were added, and whether the vocabulary grew. */
static int note_tokens(struct tune_logger *log, const struct tune_tokenizer *tok, const char *folder, const struct tune_model_config *c)
{
    char text[1400];
    struct tune_model_config read;
    TRY(tune_model_config_read(&read, folder));
    snprintf(text, sizeof text, "special: %.1100s; ", tune_tokenizer_more(tok));
    if (c->vocabulary > read.vocabulary)
        tune_append(text, sizeof text, "%d rows of the vocabulary are new, each the mean of the %d before", c->vocabulary - read.vocabulary,
                    read.vocabulary);
    else
        tune_append(text, sizeof text, "the vocabulary has rows for them: %d", read.vocabulary);
    return tune_logger_note(log, "added tokens", text);
}

/* Append how often something is done, if the option does not say it in steps. */
static void append_interval(char *text, size_t size, const char *what, double every, const struct tune_loader *load, bool packing)
{
    char share[40];
    int64_t epoch = tune_loader_epoch_steps(load);
    snprintf(share, sizeof share, every == TUNE_EACH_EPOCH ? "epoch" : "%g of the run", every);
    if (every == 0 || every >= 1)
        return;
    if (packing)
        tune_append(text, size, "; %s after each %s, by rows, since `packing` fixes no number of steps", what, share);
    else
        tune_append(text, size, "; %s every %g steps (%s)", what,
                    every == TUNE_EACH_EPOCH ? (double)epoch : fmax(1, every * (double)tune_loader_planned_steps(load)), share);
}

static int note_ranks(struct tune_logger *log, const struct tune_flags *flags)
{
    static const char *const kept[] = {"copy of the model", "copy of the model, its part of the optimizer's moments and averages,",
                                       "part of the weights, gradients and moments,"};
    const struct tune_comm *c = flags->comm;
    char text[360] = "one process", bound[40] = "", crowd[64] = "";
    int place, size = c ? tune_comm_size(c) : 1, was = flags->resume_ranks;
    if (size == 1 && was <= 1)
        return 0;
    if (flags->bound_cores > 0)
        snprintf(bound, sizeof bound, ", this one bound to %d core%s", flags->bound_cores, flags->bound_cores == 1 ? "" : "s");
    if (flags->crowded_cores > 0)
        snprintf(crowd, sizeof crowd, ", which take turns on %d core%s", flags->crowded_cores, flags->crowded_cores == 1 ? "" : "s");
    if (size > 1)
        snprintf(text, sizeof text, "%d processes, %d of them on %s%s%s; each has a %s and its share of each step's rows", size,
                 tune_comm_local(c, &place), tune_comm_host(c, tune_comm_rank(c)), crowd, bound, kept[flags->shard]);
    if (was > 0 && was != size)
        snprintf(text + strlen(text), sizeof text - strlen(text), "; before, the run had %d; --accumulate is now %d", was, flags->loader.accumulate);
    TRY(tune_logger_note(log, "ranks", text));
    return c && *tune_comm_about_device(c) ? tune_logger_note(log, "gradients", tune_comm_about_device(c)) : 0;
}

/* Sample the GPUs of all ranks on this machine. */
static int watch(struct tune_logger *log, struct tune_comm *c, const struct tune_device *dev)
{
    char mine[64], ids[4096] = "";
    int all = 0, place;
    if (!c || tune_comm_size(c) == 1 || !dev->gpus)
        return tune_logger_watch(log, dev->gpus, NULL, tune_gpus_listed(dev->gpus));
    snprintf(mine, sizeof mine, "%s", dev->gpus);
    char *of = tune_comm_gather(c, "GPUs to watch", mine, sizeof mine);
    if (!of)
        return -1;
    for (int r = 0; r < tune_comm_size(c); r++) {
        const char *one = of + (size_t)r * sizeof mine;
        all += tune_gpus_listed(one);
        if (!strcmp(tune_comm_host(c, r), tune_comm_host(c, tune_comm_rank(c))) && strlen(ids) + sizeof mine + 1 < sizeof ids)
            sprintf(ids + strlen(ids), "%s%s", *ids ? "," : "", one);
    }
    free(of);
    if (tune_comm_local(c, &place) < tune_comm_size(c))
        TRY(tune_logger_note(log, "figures of GPUs", "sampled on this machine; gpu_energy assumes the same power on the other machines"));
    return tune_logger_watch(log, ids, dev->gpus, all);
}

int tune_logger_run(struct tune_logger *log, const struct tune_flags *flags, struct tune_model *model,
                    struct tune_dataset *data, const struct tune_loader *load, const struct tune_memory_plan *plan)
{
    char folder[TUNE_PATH_MAX], text[400];
    struct tune_model_identity identity;
    const struct tune_device *dev = tune_model_device(model);
    struct tune_loader_options loader = tune_get_loader_options(flags);
    TRY(tune_model_find(flags->model, folder));
    TRY(tune_model_identity(folder, &identity));
    TRY(tune_ranks_agree(flags, dev, folder, &identity, data));
    TRY(note_ranks(log, flags));
    TRY(tune_logger_device(log, dev->threads, dev->description));
    TRY(watch(log, flags->comm, dev));
    if (dev->warning[0])
        TRY(tune_logger_note(log, "warning", dev->warning));
    TRY(note_model(log, model, tune_loader_planned_steps(load) > 0));
    TRY(note_averages(log, flags->optimizer.ema));
    TRY(note_lr(log, flags, model, identity.random));
    TRY(tune_logger_weights(log, folder, &identity));
    TRY(tune_logger_data(log, flags->dataset, data));
    TRY(note_rows(log, data, load));
    const struct tune_tokenizer *tok = tune_dataset_tokenizer(data);
    if (tok && tune_tokenizer_more(tok))
        TRY(note_tokens(log, tok, folder, tune_model_config(model)));
    if (tok && tune_tokenizer_warning(tok))
        TRY(tune_logger_note(log, "warning: tokenizer", tune_tokenizer_warning(tok)));
    for (int k = 0; k < tune_dataset_sets(data); k++) {
        const char *warning = tune_dataset_warning(tune_dataset_set(data, k));
        TRY(warning ? tune_logger_note(log, "warning: template", warning) : 0);
    }
    TRY(tune_logger_planned(log, tune_loader_planned_steps(load)));
    snprintf(text, sizeof text, "%s%" PRId64 " steps of %" PRId64 " x %d %s, at most %d tokens each",
             flags->loader.packing && flags->loader.max_steps < 0 ? "at most " : "", tune_loader_planned_steps(load),
             tune_loader_micro_batches(&loader), flags->loader.batch_size, flags->loader.packing ? "packs of rows" : "rows", flags->data.max_length);
    append_interval(text, sizeof text, "evaluated", flags->eval.every, load, flags->loader.packing);
    append_interval(text, sizeof text, "saved", flags->checkpoint.save_every, load, flags->loader.packing);
    TRY(tune_logger_note(log, "plan", text));
    TRY(note_steps(log, flags, load));
    TRY(plan ? tune_logger_memory(log, plan) : 0);
    if (tune_dataset_stamp(data) && !flags->resume_checkpoint && !tune_comm_follows(flags->comm)) {
        if (flags->comm)
            tune_comm_alone(flags->comm, true); /* it reads many rows */
        int status = forecast(log, flags, model, data, load, plan);
        if (flags->comm)
            tune_comm_alone(flags->comm, false);
        TRY(status);
    }
    /* before the first update, the model is its own reference; with two weights, the loss depends on the labels of a batch */
    log->trend.exact = flags->data.sequences > 0 && tune_preference_needs_reference(&flags->preference) &&
                       flags->preference.desirable_weight == flags->preference.undesirable_weight;
    log->data = data;
    log->device = dev;
    log->profiler = tune_get_profiler(flags, tune_model_device(model), model, load);
    return log->profiler ? 0 : -1;
}
