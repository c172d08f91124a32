/* trust.c - commands that a store records, and which of them this user has given.
 *
 * A store may come from a stranger. Launchers, options of Slurm and programs that it records run
 * only if this user once gave them on a command line. Then the store has a mark of them: a hash of
 * the command with this user's key, which is in no store.
 *
 *     operations/<name>.json             "launcher_mark": of --launcher and --slurm
 *     experiments/<name>.json.marks      of the file, and of the folder of its program: a line for
 *                                        each user */
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/print.h"
#include "files/file.h"
#include "sweeps/discovery/keep.h"
#include "sweeps/stores/exclusive.h"
#include "sweep.h"

enum { MARKS_LIMIT = 1 << 16 };

/* The mark of two texts. 1; 0: there is no key, because no folder can keep one; -1. */
static int mark_of(const char *a, size_t a_size, const char *b, size_t b_size, char mark[20])
{
    uint8_t key[SWEEP_KEY_BYTES];
    char *both = malloc(a_size + b_size + 1);
    if (!both)
        return sweep_no_memory();
    memcpy(both, a, a_size);
    both[a_size] = 0;
    memcpy(both + a_size + 1, b, b_size);
    int there = sweep_key(key);
    if (there > 0)
        snprintf(mark, 20, "#%016llx", (unsigned long long)tune_siphash(both, a_size + b_size + 1, key));
    free(both);
    return there;
}

/* ---- launchers ---- */

static int mark_launcher(const struct tune_operation_record *r, char mark[20])
{
    const char *launcher = r->launcher ? r->launcher : "", *slurm = r->slurm ? r->slurm : "";
    return mark_of(launcher, strlen(launcher), slurm, strlen(slurm), mark);
}

int sweep_trust_launcher(const struct tune_operation_record *r)
{
    char mark[20] = "", launcher[200], slurm[200];
    if (my.trust_store || my.dry_run || (!(r->launcher && !my.launcher) && !(r->slurm && !my.slurm)))
        return 0;
    TRY(mark_launcher(r, mark));
    if (*mark && r->launcher_mark && !strcmp(mark, r->launcher_mark))
        return 0;
    snprintf(launcher, sizeof launcher, "%s", r->launcher ? r->launcher : "");
    snprintf(slurm, sizeof slurm, "%s", r->slurm ? r->slurm : "");
    tune_blank_controls(launcher);
    tune_blank_controls(slurm);
    return tune_error_usage("operation %s records --launcher '%s'%s%s%s, which would be run, and it was not begun by you on this machine; "
                            "if you want that, give these options again, or --trust-store", r->id, launcher, r->slurm ? " --slurm '" : "",
                            slurm, r->slurm ? "'" : "");
}

int sweep_mark_launcher(struct tune_operation_record *r)
{
    static char mark[20];
    int there = r->launcher ? mark_launcher(r, mark) : 0;
    r->launcher_mark = there > 0 ? mark : NULL;
    return there < 0 ? -1 : 0;
}

/* ---- programs ---- */

/* The mark of an experiment that the store keeps, and the path of its marks. 1; 0: no key; -1. */
static int mark_kept(const struct tune_store *s, const struct tune_experiment *e, char path[TUNE_PATH_MAX], char mark[20])
{
    char name[TUNE_KEPT_NAME], file[TUNE_PATH_MAX], folder_file[TUNE_PATH_MAX], *text, *folder = NULL;
    size_t size, folder_size = 0;
    tune_kept_name(s, e, name);
    TRY(tune_path(file, "%s/experiments/%s", tune_store_folder(s), name));
    TRY(tune_path(folder_file, "%s.folder", file));
    TRY(tune_path(path, "%s.marks", file));
    TRY(tune_file_read(file, TUNE_DOCUMENT_BYTES, &text, &size));
    int there = tune_file_exists(folder_file) ? tune_file_read(folder_file, TUNE_PATH_MAX, &folder, &folder_size) : 0;
    if (there == 0)
        there = mark_of(text, size, folder ? folder : "", folder_size, mark);
    free(text);
    free(folder);
    return there;
}

/* The text of a file of marks; "" if it is not there. */
static int read_marks(const char *path, char **marks)
{
    size_t size;
    if (tune_file_exists(path))
        return tune_file_read(path, MARKS_LIMIT, marks, &size);
    *marks = strdup("");
    return *marks ? 0 : sweep_no_memory();
}

static int trust_program(const struct tune_experiment *e)
{
    char path[TUNE_PATH_MAX], mark[20] = "", program[200], *marks;
    int there = mark_kept(sweep.store, e, path, mark);
    TRY(there);
    TRY(read_marks(path, &marks));
    bool ours = there > 0 && strstr(marks, mark);
    free(marks);
    if (ours)
        return 0;
    snprintf(program, sizeof program, "%s", e->program);
    tune_blank_controls(program);
    return tune_error_usage("%s: the store records the experiment %s with the program %s, which would be run, and you have not given it on this "
                            "machine; if you want that, give its file by --experiments, or --trust-store", e->document->path, e->name, program);
}

int sweep_trust_programs(void)
{
    for (int p = 0; p < sweep.protocol_count && sweep.store && !my.trust_store && !my.dry_run; p++) {
        const struct tune_experiment *e = sweep.protocols[p].experiment;
        if (e->program && tune_protocol_is_first(sweep.protocols, p) && tune_is_kept(sweep.store, e))
            TRY(trust_program(e));
    }
    return 0;
}

static int mark_program(const struct tune_experiment *e)
{
    char path[TUNE_PATH_MAX], mark[20] = "", *marks, *more = NULL;
    int there = mark_kept(sweep.store, e, path, mark);
    if (there <= 0)
        return there;
    TRY(read_marks(path, &marks));
    int length = strstr(marks, mark) ? 0 : asprintf(&more, "%s%s\n", marks, mark);
    free(marks);
    int code = length < 0 ? sweep_no_memory() : length == 0 ? 0 : tune_replace_write(path, more, (size_t)length, false);
    free(more);
    return code;
}

int sweep_mark_programs(void)
{
    for (int p = 0; p < sweep.protocol_count; p++)
        if (sweep.protocols[p].experiment->program && tune_protocol_is_first(sweep.protocols, p))
            TRY(mark_program(sweep.protocols[p].experiment));
    return 0;
}
