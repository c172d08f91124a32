/* get_card.c - what the flags say for a model card. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoints/card.h"
#include "core/array.h"
#include "core/print.h"
#include "core/try.h"
#include "files/document.h"
#include "files/folder.h"
#include "flags/find.h"
#include "flags/flags.h"
#include "flags/known.h"
#include "models/config.h"
#include "models/parameters.h"

enum { BASE_CARD_MOST = 4 << 20 };

/* ---- names for other people ---- */

/* The last name of a path; of a run's checkpoint with that of the run. */
static const char *last_name(const char *path, size_t size, size_t *name_size)
{
    while (size > 1 && path[size - 1] == '/')
        size--;
    size_t from = size;
    for (int parts = 0; from > 0 && parts < 2; parts++) {
        while (from > 0 && path[from - 1] != '/')
            from--;
        if (parts == 0 && !strncmp(path + from, "checkpoint-", 11) && from > 1)
            from--;
        else
            break;
    }
    *name_size = size - from;
    return path + from;
}

/* True for a path that leads out of the working folder, as it is written. */
static bool leads_out(const char *path, size_t size)
{
    int depth = 0;
    if (size > 0 && (*path == '/' || *path == '~'))
        return true;
    for (const char *end = path + size; path < end && depth >= 0; path++) {
        size_t n = 0;
        while (path + n < end && path[n] != '/')
            n++;
        bool up = n == 2 && !memcmp(path, "..", 2), stays = n == 0 || (n == 1 && *path == '.');
        depth += up ? -1 : !stays;
        path += n;
    }
    return depth < 0;
}

/* A path, or several with commas between them, for other people: of those that lead out of the
 * working folder, only the last name. */
static char *public_paths(const char *text)
{
    char *result = NULL;
    size_t size, kept;
    FILE *out = open_memstream(&result, &size);
    bool one = tune_file_exists(text);
    for (bool more = out; more; text += size + 1) {
        size = one ? strlen(text) : strcspn(text, ",");
        bool leads = leads_out(text, size);
        const char *name = leads ? last_name(text, size, &kept) : text;
        more = text[size];
        fprintf(out, "%.*s%s", (int)(leads ? kept : size), name, more ? "," : "");
    }
    if (out && fclose(out) == 0)
        return result;
    free(result);
    return NULL;
}

/* ---- options ---- */

/* The value of an option. A number has one spelling: a resumed run knows only its value. */
static char *value_of(const struct tune_card *c, const struct tune_flags *flags, const struct tune_option *o, const char *text)
{
    char number[TUNE_DECIMAL_SIZE], *end;
    double value = o->type == TUNE_DOUBLE || o->type == TUNE_INTERVAL ? strtod(text, &end) : NAN;
    if (!strcmp(o->name, "model"))
        return strdup(c->model);
    if (isfinite(value) && !*end)
        return strdup(tune_number_text(number, value));
    return tune_flags_is_path(flags, o->name) ? public_paths(text) : strdup(text);
}

/* True if a repeat needs the option. It needs some that a resumed run may change. eval-every decides
 * which checkpoint is the best. Without the others the data may not be read. */
static bool is_needed(const struct tune_flags *flags, const char *name)
{
    static const char *const more[] = {"eval-every", "skip-bad-rows", "expansion-limit"};
    bool needed = tune_flags_repeats(flags, name);
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        needed = needed || (!strcmp(name, more[i]) && tune_flags_differs(flags, name));
    return needed;
}

static int put_options(const struct tune_card *c, const struct tune_flags *flags, FILE *table, FILE *command)
{
    const struct tune_option *o;
    const char *text;
    fprintf(command, "build/%s", c->program);
    for (int i = 0; (o = tune_flags_each(flags, i, &text)); i++) {
        bool positional = *o->name == '<', model = !strcmp(o->name, "model");
        if (!text || !is_needed(flags, o->name))
            continue;
        char *value = value_of(c, flags, o, text);
        TRY(value ? 0 : -1);
        if (o->type == TUNE_BOOL && !positional) {
            fprintf(command, " --%s%s", !strcmp(value, "true") ? "" : "no-", o->name);
        } else {
            fprintf(command, "%s%s ", positional ? "" : " --", positional ? "" : o->name);
            tune_print_word(command, value);
        }
        if (!model && strcmp(o->name, "dataset") != 0) {
            fprintf(table, "| `%s` | ", o->name);
            tune_card_cell(table, value);
            fputs(" | ", table);
            tune_card_cell(table, o->value ? o->value : "none");
            fputs(" |\n", table);
        }
        free(value);
    }
    return 0;
}

static int make_options(struct tune_card *c, const struct tune_flags *flags)
{
    size_t size, more;
    FILE *table = open_memstream(&c->options, &size), *command = open_memstream(&c->command, &more);
    int status = table && command ? put_options(c, flags, table, command) : -1;
    if (table && fclose(table) != 0)
        status = -1;
    if (command && fclose(command) != 0)
        status = -1;
    return status == 0 ? 0 : tune_error_no_memory("the model card");
}

static int make_data(struct tune_card *c, const struct tune_flags *flags)
{
    char path[TUNE_PATH_MAX], id[128];
    size_t size;
    int more = 0;
    FILE *out = open_memstream(&c->data, &size);
    for (int k = 0; out && flags->dataset && (more = tune_path_listed(flags->dataset, k, path)) == 1; k++)
        if (tune_dataset_hub_id(path, id))
            fprintf(out, "%s\n", id);
    return !out || fclose(out) != 0 ? tune_error_no_memory("the model card") : more;
}

/* ---- the base's licence ---- */

/* The bytes of the front matter, which is between two lines --- at the beginning of a text. 0: there
 * is none. */
static size_t front_matter(const char *text)
{
    bool begun = false;
    for (const char *line = text + (strncmp(text, "\xEF\xBB\xBF", 3) ? 0 : 3), *end; *line; line = end + 1) {
        bool fence = !strncmp(line, "---", 3) && strchr("\n", line[3 + strspn(line + 3, " \t\r")]);
        if (begun && fence)
            return (size_t)(line - text);
        end = strchr(line, '\n');
        if (!end || (!begun && !fence))
            return 0;
        begun = true;
    }
    return 0;
}

/* Add an entry of a card in one line, without spaces around it. */
static void put_entry(FILE *out, const char *text)
{
    size_t size = strlen(text += strspn(text, " \t\n"));
    while (size > 0 && strchr(" \t\n", text[size - 1]))
        size--;
    for (size_t i = 0; i < size; i++)
        fputc((unsigned char)text[i] < ' ' || text[i] == 127 ? ' ' : text[i], out);
    fputs(size > 0 ? "\n" : "", out);
}

/* Read the text under a key, or a list of texts, into *to: each with a newline behind it. It stays
 * NULL if there is none. */
static int read_entries(struct tune_document *d, const char *key, char **to)
{
    const struct tune_node *node = tune_node_get(d->root, key);
    bool list = node && node->type == TUNE_NODE_LIST;
    size_t size = 0;
    int status = 0;
    FILE *out = tune_node_none(node) ? NULL : open_memstream(to, &size);
    for (int i = 0; out && status == 0 && i < (list ? node->count : 1); i++) {
        const struct tune_node *at = list ? node->items[i] : node;
        const char *text = at->value.type == TUNE_VALUE_TEXT ? at->value.text : at->written ? at->written : "";
        status = at->type == TUNE_NODE_SCALAR ? 0 : tune_document_fail(d, at, "%s must be a text, or a list of texts", key);
        put_entry(out, status == 0 ? text : "");
    }
    if (out && fclose(out) != 0)
        status = -1;
    if (size == 0 || status < 0) {
        free(*to);
        *to = NULL;
    }
    return status;
}

/* Read the front matter of the base's card. -1 with an error. */
static int read_license(struct tune_card *c, const char *text)
{
    size_t size = front_matter(text);
    if (size == 0)
        return 0;
    struct tune_document *d = tune_document_parse("README.md", text, size, false);
    int status = d && read_entries(d, "license", &c->license) == 0 && read_entries(d, "license_name", &c->license_name) == 0 &&
                         read_entries(d, "license_link", &c->license_link) == 0
                     ? 0
                     : -1;
    tune_document_free(d);
    return status;
}

/* A card that cannot be read stops no run. Ours says why; not the path in an error of the system. */
static void find_license(struct tune_card *c, const char *folder)
{
    char *text = NULL;
    size_t size;
    struct tune_error before;
    tune_error_save(&before);
    if (tune_folder_has(folder, "README.md") &&
        (tune_folder_read(folder, "README.md", BASE_CARD_MOST, &text, &size) < 0 || read_license(c, text) < 0))
        c->unread = strdup(!text                                   ? "the file could not be opened"
                           : tune_error_kind() == TUNE_ERROR_CANNOT ? "there was no libyaml to read it with"
                                                                    : tune_error_message());
    c->license_file = tune_folder_has(folder, "LICENSE") || tune_folder_has(folder, "LICENSE.txt") || tune_folder_has(folder, "LICENSE.md");
    free(text);
    tune_error_restore(&before);
}

/* ---- all of it ---- */

/* True if the model of that folder has so many weights. */
static bool has_parameters(const char *folder, int64_t count)
{
    struct tune_model_config config;
    struct tune_parameters p = {0};
    struct tune_error before;
    tune_error_save(&before);
    bool same = tune_model_config_read(&config, folder) == 0 && tune_parameters_new(&p, &config) == 0 && tune_parameters_total(&p) == count;
    tune_parameters_free(&p);
    tune_error_restore(&before);
    return same;
}

/* A snapshot in the Hub client's cache is what it says. A folder with a known model's name must
 * have its size. Weights of init_model are no model of the Hub. */
static int find_base(struct tune_card *c, const struct tune_flags *flags, const char *folder)
{
    char id[128];
    struct tune_known_model known;
    size_t size;
    const char *name = last_name(folder, strlen(folder), &size);
    bool cached = tune_model_hub_id(NULL, folder, id), named = cached || tune_model_hub_id(flags->model, folder, id), found = named;
    if (!cached && tune_known_model(flags->model, &known) > 0) {
        found = has_parameters(folder, known.parameters);
        snprintf(id, sizeof id, "%s", known.hub_id);
    }
    found = found && !tune_folder_has(folder, "tune_weights.json");
    c->base = strndup(name, size);
    c->hub_id = found ? strdup(id) : NULL;
    c->model = found && named ? strdup(id) : public_paths(folder);
    return c->base && c->model && (c->hub_id || !found) ? 0 : tune_error_no_memory("the model card");
}

struct tune_card *tune_get_card(const struct tune_flags *flags, const char *folder)
{
    struct tune_card *c = tune_zeroed(1, sizeof *c, "the model card");
    if (!c)
        return NULL;
    c->program = strdup(flags->program ? flags->program : "");
    find_license(c, folder);
    if (c->program && find_base(c, flags, folder) == 0 && make_data(c, flags) == 0 && make_options(c, flags) == 0)
        return c;
    tune_card_free(c);
    return NULL;
}
