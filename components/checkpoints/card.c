/* card.c - the text of a model card, and whether somebody edited it. */
#include "checkpoints/card.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/try.h"
#include "files/file.h"
#include "loggers/logger.h"
#include "models/lora.h"
#include "models/model.h"

static const char card_name[] = "README.md";
static const char mark[] = "<!-- tune.c: written by the program, and not edited while the hash of what is above is ";
enum { CARD_MOST = 4 << 20 };

void tune_card_free(struct tune_card *c)
{
    if (!c)
        return;
    char *const texts[] = {c->program, c->base, c->hub_id, c->model, c->data, c->options, c->command, c->license, c->license_name, c->license_link, c->unread};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    free(c);
}

/* ---- parts of the text ---- */

void tune_card_cell(FILE *out, const char *text)
{
    fputc('`', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        fprintf(out, c == '|' ? "\\%c" : "%c", c == '`' ? '\'' : c < ' ' || c == 127 ? ' ' : c);
    }
    fputc('`', out);
}

/* Print an entry up to its newline as a text of YAML. */
static void put_quoted(FILE *out, const char *lead, const char *entry)
{
    fprintf(out, "\"%s", lead);
    for (; *entry && *entry != '\n'; entry++)
        fprintf(out, strchr("\"\\", *entry) ? "\\%c" : "%c", *entry);
    fputs("\"\n", out);
}

/* A single entry, or a list. */
static void put_entries(FILE *out, const char *key, const char *entries)
{
    bool list = strchr(entries, '\n')[1];
    fprintf(out, "%s:%s", key, list ? "\n" : " ");
    for (const char *at = entries; *at; at = strchr(at, '\n') + 1) {
        fputs(list ? "- " : "", out);
        put_quoted(out, "", at);
    }
}

/* Write what the Hub reads. A link to a file of the base's repository becomes a whole address. */
static void put_front(FILE *out, const struct tune_card *c, struct tune_model *m)
{
    const char *id = c->hub_id;
    bool adapter = tune_model_lora(m) != NULL, whole = c->license_link && strstr(c->license_link, "://");
    fputs("---\n", out);
    if (id)
        fprintf(out, "base_model: %s\nbase_model_relation: %s\n", id, adapter ? "adapter" : "finetune");
    if (c->license)
        put_entries(out, "license", c->license);
    if (c->license && c->license_name)
        put_entries(out, "license_name", c->license_name);
    if (c->license && c->license_link && (whole || id)) {
        char lead[192] = "";
        if (!whole)
            snprintf(lead, sizeof lead, "https://huggingface.co/%s/blob/main/", id);
        fputs("license_link: ", out);
        put_quoted(out, lead, c->license_link);
    }
    fprintf(out, "library_name: %s\npipeline_tag: text-generation\n", adapter ? "peft" : "transformers");
    if (*c->data) {
        fputs("datasets:\n", out);
        for (const char *line = c->data; *line; line = strchr(line, '\n') + 1)
            fprintf(out, "- %.*s\n", (int)strcspn(line, "\n"), line);
    }
    fprintf(out, "tags:\n- tune.c\n%s---\n", adapter ? "- lora\n" : "");
}

/* A text of the description, or a whole number, which it has as a text. */
static const char *text_in(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return (cJSON_IsString(item) || cJSON_IsRaw(item)) && item->valuestring ? item->valuestring : "";
}

static void put_base(FILE *out, const struct tune_card *c, const cJSON *run)
{
    const char *id = c->hub_id, *weights = text_in(run, "weights"), *hash = text_in(run, "weights_hash");
    bool random = !strcmp(weights, "random");
    fputs("| base | ", out);
    if (random)
        fprintf(out, "random weights, seed %s", text_in(run, "weights_seed"));
    else if (id)
        fprintf(out, "[%s](https://huggingface.co/%s)", id, id);
    else
        tune_card_cell(out, c->base);
    if (*weights && strcmp(weights, "unknown revision") != 0 && !random)
        fprintf(out, ", revision `%s`", weights);
    if (*hash)
        fprintf(out, ", hash of the weights `%s`", hash);
    fputs(" |\n", out);
}

/* One set of rows. A path's last name is enough. */
static void put_rows(FILE *out, const char *what, const cJSON *set, const char *hash)
{
    char name[TUNE_PATH_MAX];
    snprintf(name, sizeof name, "%s", text_in(set, "path"));
    for (size_t n = strlen(name); n > 1 && name[n - 1] == '/';)
        name[--n] = 0;
    const char *slash = strrchr(name, '/');
    fprintf(out, "| %s | ", what);
    tune_card_cell(out, slash && slash[1] ? slash + 1 : name);
    fprintf(out, ", %s rows", text_in(set, "rows"));
    if (*hash)
        fprintf(out, ", hash `%s`", hash);
    fputs(" |\n", out);
}

static void put_data(FILE *out, const char *what, const cJSON *data)
{
    const cJSON *sets = cJSON_GetObjectItemCaseSensitive(data, "sets"), *set;
    cJSON_ArrayForEach(set, sets)
        put_rows(out, what, set, text_in(set, "fingerprint"));
    if (data && !sets)
        put_rows(out, what, data, text_in(data, "hash"));
}

static void put_trained(FILE *out, struct tune_model *m, const struct tune_progress *at)
{
    const struct tune_parameters *p = tune_model_parameters(m);
    const struct tune_lora_options *lora = tune_model_lora(m);
    int64_t trained = tune_parameters_trainable(p), all = tune_parameters_total(p);
    fputs("| trained | ", out);
    if (lora)
        fprintf(out, "%s of rank %d, alpha %g: %.2fM weights", lora->dora ? "DoRA" : "LoRA", lora->r, lora->alpha, (double)trained / 1e6);
    else
        fprintf(out, "%.1fM of %.1fM weights", (double)trained / 1e6, (double)all / 1e6);
    fprintf(out, " |\n| steps | %" PRId64, at->step);
    if (at->planned_steps > 0)
        fprintf(out, " of %" PRId64, at->planned_steps);
    fprintf(out, ", %.2f epochs, %" PRId64 " tokens, %" PRId64 " of them trained |\n", at->epoch, at->tokens, at->labels);
}

static void put_losses(FILE *out, const struct tune_logger *log, const cJSON *run, const struct tune_progress *at)
{
    const char *unit = text_in(cJSON_GetObjectItemCaseSensitive(run, "units"), "loss_last");
    fprintf(out, "\n## Losses%s%s\n\n| | |\n|---|---|\n| training, step %" PRId64 " | %.4f |\n", *unit ? ", " : "", unit, at->step,
            tune_logger_loss(log));
    bool by_loss = !*at->best_by || !strcmp(at->best_by, "loss");
    if (at->evaluated)
        fprintf(out, "| evaluation, step %" PRId64 " | %.4f |\n", at->eval_step, at->eval_loss);
    if (at->evaluated && by_loss)
        fprintf(out, "| lowest evaluation, step %" PRId64 " | %.4f |\n", at->best_step, at->best_loss);
    else if (at->evaluated)
        fprintf(out, "\nThe best `%s` was %.4g, at step %" PRId64 ".\n", at->best_by, at->best_value, at->best_step);
}

/* Entries as code, with commas between them. */
static void put_codes(FILE *out, const char *entries)
{
    for (const char *at = entries; *at; at = strchr(at, '\n') + 1) {
        char entry[256];
        snprintf(entry, sizeof entry, "%.*s", (int)strcspn(at, "\n"), at);
        fputs(at == entries ? "" : ", ", out);
        tune_card_cell(out, entry);
    }
}

static void put_license(FILE *out, const struct tune_card *c)
{
    fputs("\n## Licence\n\n", out);
    if (c->license) {
        fputs("That of the base: ", out);
        put_codes(out, c->license_name ? c->license_name : c->license);
        fputs(c->license_name ? " (" : "", out);
        put_codes(out, c->license_name ? c->license : "");
        fputs(c->license_name ? ").\n" : ".\n", out);
        return;
    }
    if (c->unread) {
        fputs("The front matter of the base's README.md was not read: ", out);
        tune_card_cell(out, c->unread);
        fputs(c->license_file ? ". There is a file LICENSE" : "", out);
    } else {
        fprintf(out, "The base's folder names none in a README.md%s", c->license_file ? ", but it has a file LICENSE" : "");
    }
    fputs(". Find it where the base came from, and add `license:` above.\n", out);
}

static void put_heading(FILE *out, const struct tune_card *c, bool adapter)
{
    fputs("\n# ", out);
    if (c->hub_id)
        fputs(strrchr(c->hub_id, '/') + 1, out);
    else
        tune_card_cell(out, c->base);
    fprintf(out, ", %s\n", adapter ? "an adapter" : "fine-tuned");
}

/* The fence is longer than any in the command. */
static void put_command(FILE *out, const struct tune_card *c)
{
    int fence = 3, run = 0;
    for (const char *at = c->command; *at; at++) {
        run = *at == '`' ? run + 1 : 0;
        fence = run >= fence ? run + 1 : fence;
    }
    fputs("\n## To repeat it\n\n", out);
    for (int k = 0; k < fence; k++)
        fputc('`', out);
    fprintf(out, "sh\n%s\n", c->command);
    for (int k = 0; k < fence; k++)
        fputc('`', out);
    fputs("\n\nOf paths outside the working folder, only the last name is given.\n", out);
}

static void put_all(FILE *out, const struct tune_card *c, struct tune_model *m, const struct tune_logger *log,
                    const struct tune_progress *at)
{
    const cJSON *run = tune_logger_description(log);
    put_front(out, c, m);
    put_heading(out, c, tune_model_lora(m));
    fprintf(out, "\nTrained by `%s` of tune.c %s.\n\n| | |\n|---|---|\n", c->program, text_in(run, "version"));
    put_base(out, c, run);
    put_data(out, "data", cJSON_GetObjectItemCaseSensitive(run, "data"));
    put_data(out, "evaluated on", cJSON_GetObjectItemCaseSensitive(run, "eval_data"));
    put_trained(out, m, at);
    put_losses(out, log, run, at);
    if (*c->options)
        fprintf(out, "\n## Options that differ from the defaults\n\n| option | value | default |\n|---|---|---|\n%s", c->options);
    put_command(out, c);
    put_license(out, c);
}

/* ---- the file ---- */

/* The text, with its mark. NULL with an error: no memory. */
static char *make_text(const struct tune_card *c, struct tune_model *m, const struct tune_logger *log, const struct tune_progress *at,
                       size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    if (out) {
        put_all(out, c, m, log, at);
        fputc('\n', out);
        fflush(out);
        fprintf(out, "%s%016" PRIx64 " -->\n", mark, tune_hash64(text, *size, 0));
    }
    if (out && fclose(out) == 0)
        return text;
    tune_error_no_memory("the model card");
    free(text);
    return NULL;
}

int tune_card_write(const struct tune_card *c, const char *folder, struct tune_model *m, const struct tune_logger *log,
                    const struct tune_progress *at)
{
    char path[TUNE_PATH_MAX];
    size_t size;
    char *text = make_text(c, m, log, at, &size);
    int status = text ? tune_path(path, "%s/%s", folder, card_name) : -1;
    if (status == 0)
        status = tune_file_write(path, text, size);
    free(text);
    return status;
}

/* True if the text has its own mark at its end. */
static bool is_unedited(const char *text, size_t size)
{
    char end[sizeof mark + 32];
    size_t lead = sizeof mark - 1, n = lead + 16 + strlen(" -->\n");
    if (size < n || memcmp(text + size - n, mark, lead) != 0)
        return false;
    snprintf(end, sizeof end, "%016" PRIx64 " -->\n", tune_hash64(text, size - n, 0));
    return !memcmp(text + size - n + lead, end, n - lead);
}

int tune_card_renew(const struct tune_card *c, const char *folder, struct tune_model *m, const struct tune_logger *log,
                    const struct tune_progress *at)
{
    char path[TUNE_PATH_MAX], *text = NULL;
    size_t size;
    struct tune_error before;
    TRY(tune_path(path, "%s/%s", folder, card_name));
    tune_error_save(&before);
    bool ours = tune_file_exists(path) && tune_file_read(path, CARD_MOST, &text, &size) == 0 && is_unedited(text, size);
    tune_error_restore(&before);
    free(text);
    return ours ? tune_card_write(c, folder, m, log, at) : 0;
}
