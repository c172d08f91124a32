/* trust.c - trust in commands that a store records: only those that this user has given.
 *
 * A store may come from a stranger. Recorded launchers, options of Slurm and programs are only used
 * if this user once gave them on a command line. Then the store has a mark: a keyed hash of the
 * command. The key belongs to this user and is in no store.
 *
 *     operations/<name>.json             "launcher_mark": of --launcher and --slurm
 *     experiments/<name>.json.marks      of the file, and of the folder of its program: a line for
 *                                        each user */

#include "core/hash.h"
#include "files/file.h"
#include "sweeps/discovery/store_copies.h"
#include "sweeps/stores/exclusive.h"
#include "sweep.h"

enum { MARKS_LIMIT = 1 << 16 };

/* Compute the mark of two texts. 1; 0: there is no key, because no folder can keep one; -1. */
static int mark_texts(const struct plan *plan, const char *a, size_t a_size, const char *b,
                      size_t b_size, char mark[MARK_SIZE])
{
    uint8_t key[KEY_BYTES];
    char *both = malloc(a_size + b_size + 1);
    if (!both)
        return no_memory();
    memcpy(both, a, a_size);
    both[a_size] = 0;
    memcpy(both + a_size + 1, b, b_size);
    int there = environment_key(plan, key);
    if (there > 0)
        snprintf(mark, MARK_SIZE, "#%016llx",
                 (unsigned long long)tune_siphash(both, a_size + b_size + 1, key));
    free(both);
    return there;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

/* Escape a text of the store for a message. */
static const char *shown_text(char shown[200], const char *text)
{
    snprintf(shown, 200, "%s", or_empty(text));
    tune_blank_controls(shown);
    return shown;
}

static bool is_trusted(const struct sweep_flags *flags)
{
    return flags->trust_store || flags->dry_run;
}

/* ---- launchers ---- */

static int hash_launcher(const struct plan *plan, char mark[MARK_SIZE])
{
    const char *launcher = or_empty(plan->record.launcher), *slurm = or_empty(plan->record.slurm);
    return mark_texts(plan, launcher, strlen(launcher), slurm, strlen(slurm), mark);
}

int trust_launcher(const struct plan *plan)
{
    const struct tune_operation_record *r = &plan->record;
    char mark[MARK_SIZE] = "", launcher[200], slurm[200];
    bool recorded = (r->launcher && !plan->flags->launcher) || (r->slurm && !plan->flags->slurm);
    if (is_trusted(plan->flags) || !recorded)
        return 0;
    TRY(hash_launcher(plan, mark));
    if (*mark && r->launcher_mark && !strcmp(mark, r->launcher_mark))
        return 0;
    return tune_error_usage("operation %s was not begun by you on this machine, but its record has "
                            "--launcher '%s'%s%s%s, which would be run; to allow this, give these "
                            "options again, or --trust-store", r->id,
                            shown_text(launcher, r->launcher),
                            r->slurm ? " --slurm '" : "", shown_text(slurm, r->slurm), r->slurm ? "'" : "");
}

int mark_launcher(struct plan *plan)
{
    int there = hash_launcher(plan, plan->launcher_mark);
    plan->record.launcher_mark = there > 0 ? plan->launcher_mark : NULL;
    return there < 0 ? -1 : 0;
}

/* ---- programs ---- */

/* Compute this user's mark of an experiment in the store, or "" without a key. Read the file with
 * its marks; the caller frees *marks. */
static int read_marks(const struct plan *plan, const struct tune_experiment *e,
                      char mark[MARK_SIZE], char path[TUNE_PATH_MAX], char **marks)
{
    char name[TUNE_COPY_NAME], file[TUNE_PATH_MAX], folder_file[TUNE_PATH_MAX], *text, *folder = NULL;
    size_t size, folder_size = 0;
    mark[0] = 0;
    tune_experiment_copy_name(plan->store, e, name);
    TRY(tune_path(file, "%s/experiments/%s", tune_store_folder(plan->store), name));
    TRY(tune_path(folder_file, "%s.folder", file));
    TRY(tune_path(path, "%s.marks", file));
    TRY(tune_file_read(file, TUNE_DOCUMENT_BYTES, &text, &size));
    int code = tune_file_exists(folder_file) ? tune_file_read(folder_file, TUNE_PATH_MAX, &folder, &folder_size) : 0;
    if (code == 0)
        code = mark_texts(plan, text, size, or_empty(folder), folder_size, mark);
    free(text);
    free(folder);
    TRY(code);
    if (tune_file_exists(path))
        return tune_file_read(path, MARKS_LIMIT, marks, &size);
    *marks = strdup("");
    return *marks ? 0 : no_memory();
}

static int trust_program(const struct plan *plan, const struct tune_experiment *e)
{
    char path[TUNE_PATH_MAX], mark[MARK_SIZE], program[200], *marks;
    TRY(read_marks(plan, e, mark, path, &marks));
    bool ours = *mark && strstr(marks, mark);
    free(marks);
    if (ours)
        return 0;
    return tune_error_usage("%s: experiment %s in this store has the program %s, which would be "
                            "run, but you never gave this experiment on this machine; to allow "
                            "this, give its file by --experiments, or --trust-store",
                            e->document->path, e->name,
                            shown_text(program, e->program));
}

int trust_programs(const struct plan *plan)
{
    for (int p = 0; p < plan->binding_count && plan->store && !is_trusted(plan->flags); p++) {
        const struct tune_experiment *e = plan->bindings[p].experiment;
        if (e->program && tune_binding_is_first(plan->bindings, p) && tune_experiment_is_copy(plan->store, e))
            TRY(trust_program(plan, e));
    }
    return 0;
}

static int mark_program(const struct plan *plan, const struct tune_experiment *e)
{
    char path[TUNE_PATH_MAX], mark[MARK_SIZE], *marks, *more = NULL;
    TRY(read_marks(plan, e, mark, path, &marks));
    int length = !*mark || strstr(marks, mark) ? 0 : asprintf(&more, "%s%s\n", marks, mark);
    free(marks);
    int code = length < 0 ? no_memory() : length == 0 ? 0 : tune_replace_write(path, more, (size_t)length, false);
    free(more);
    return code;
}

int mark_programs(const struct plan *plan)
{
    for (int p = 0; p < plan->binding_count; p++)
        if (plan->bindings[p].experiment->program && tune_binding_is_first(plan->bindings, p))
            TRY(mark_program(plan, plan->bindings[p].experiment));
    return 0;
}
