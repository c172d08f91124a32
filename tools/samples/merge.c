/* merge.c - merge one store into another, and check a store. */
#include <unistd.h>

#include "core/clock.h"
#include "core/print.h"
#include "samples.h"
#include "sweeps/discovery/chosen.h"

/* State of a merge, for its callbacks. */
struct merging {
    FILE *out;
    double progress_s;
    int programs; /* left out */
    struct tune_chosen *chosen; /* NULL: all rows */
};

/* Print the progress of a long merge on a terminal, twice a second. */
static void print_progress(void *context, int64_t done, int64_t all)
{
    struct merging *merging = context;
    double now = tune_clock_s();
    if (!isatty(STDERR_FILENO) || (now - merging->progress_s < 0.5 && done < all))
        return;
    merging->progress_s = now;
    fprintf(stderr, "\r# %lld of %lld rows%s", (long long)done, (long long)all, done < all ? "" : "\n");
}

static void print_program(void *context, const char *experiment, const char *program)
{
    struct merging *merging = context;
    merging->programs++;
    fputs("# without its program: ", merging->out);
    tune_print_line_of(merging->out, experiment);
    fputs(" (", merging->out);
    tune_print_line_of(merging->out, program);
    fputs(")\n", merging->out);
}

static int is_wanted(void *context, const char *experiment, const struct tune_column *columns, int count, const struct tune_cell *cells)
{
    return tune_chosen_row(((struct merging *)context)->chosen, experiment, columns, count, cells);
}

/* Print "# 3 rows of old were added to new, 2 were there already; left out: 4 that are forgotten". */
static void print_merged(const struct tune_merged *m, const char *folder, const char *store, FILE *out)
{
    fprintf(out, "# %lld rows of %s were added to %s, %lld were there already", (long long)m->came,
            folder, store, (long long)m->there);
    if (m->unwanted > 0)
        fprintf(out, "; left out: %lld that were not chosen", (long long)m->unwanted);
    if (m->forgotten > 0)
        fprintf(out, "; left out: %lld that are forgotten", (long long)m->forgotten);
    fputc('\n', out);
    if (m->tombstones > 0)
        fprintf(out, "# %lld tombstone%s copied, too: rows forgotten in %s are forgotten here\n",
                (long long)m->tombstones,
                m->tombstones == 1 ? "" : "s", folder);
}

/* Merge a store. chosen NULL: all rows. */
static int merge(const struct samples_flags *my, struct tune_store *store, struct tune_store *from, struct tune_chosen *chosen, FILE *out)
{
    struct merging merging = {out, tune_clock_s(), 0, chosen};
    struct tune_merged merged;
    const struct tune_merge how = {my->with_programs, &merging, print_progress, print_program, chosen ? is_wanted : NULL, &merged};
    TRY(tune_store_merge(store, from, &how) < 0 ? -1 : 0);
    print_merged(&merged, samples_word(my, 0), my->store, out);
    if (chosen && *tune_chosen_lacks(chosen)) {
        fputs("# these experiments have no column of a name in --where, so none of their rows was "
              "copied: ", out);
        tune_print_line_of(out, tune_chosen_lacks(chosen));
        fputc('\n', out);
    }
    if (merging.programs > 0)
        fputs("# to measure with these experiments, give sweep their files (--experiments), or "
              "merge into a new store with --with-programs\n", out);
    return 0;
}

int samples_merge(const struct samples_flags *my, struct tune_store *store, FILE *out)
{
    const char *folder = samples_word(my, 0);
    const struct tune_chosen_options o = {.where = my->where, .operation = my->operation};
    bool some = o.where || o.operation;
    struct tune_catalog catalog = {0};
    if (!folder)
        return tune_error_usage("expected: samples merge FROM --store INTO");
    struct tune_store *from = tune_store_open(folder, false);
    if (!from)
        return -1;
    if (!strcmp(tune_store_id(from), tune_store_id(store)))
        fprintf(stderr, "samples: both stores have the id %s: they are the same store, or one is a "
                        "copy of the other\n", tune_store_id(from));
    if (some && tune_catalog_gather(&catalog, folder, my->experiments) < 0) /* without experiments, texts remain texts */
        tune_error_clear();
    struct tune_chosen *chosen = some ? tune_chosen_new(from, &catalog, &o) : NULL;
    int status = some && !chosen ? -1 : merge(my, store, from, chosen, out);
    tune_chosen_free(chosen);
    tune_catalog_free(&catalog);
    tune_store_free(from);
    return status;
}

/* Problems that samples check found so far. */
struct found {
    FILE *out;
    int64_t files, plain;
};

static void print_file(void *context, const char *file, int64_t rows, bool checked)
{
    struct found *f = context;
    f->files++;
    f->plain += !checked;
    tune_print_line_of(f->out, file);
    fprintf(f->out, ": %lld row%s, %s\n", (long long)rows, rows == 1 ? "" : "s",
            checked ? "checksummed" : "no checksums (written by an old version without checksums)");
}

static void print_problem(void *context, const char *file, const char *what)
{
    struct found *f = context;
    tune_print_line_of(f->out, file);
    fputs(": ", f->out);
    tune_print_line_of(f->out, what);
    fputc('\n', f->out);
}

/* List the tombstones. */
static int print_forgotten(struct tune_store *store, FILE *out)
{
    int count;
    const struct tune_tombstone *t = tune_store_forgotten(store, &count);
    int64_t rows = t ? tune_store_forgotten_rows(store, NULL) : -1;
    TRY(rows < 0 ? -1 : 0);
    for (int i = 0; i < count; i++) {
        fprintf(out, "# forgotten: %s, %lld row%s, ", t[i].id, (long long)t[i].rows, t[i].rows == 1 ? "" : "s");
        tune_print_line_of(out, t[i].who);
        fputs(*t[i].note ? ": " : "", out);
        tune_print_line_of(out, t[i].note);
        fputc('\n', out);
    }
    if (count > 0)
        fprintf(out, "# %lld row%s of this store %s left out of all answers; samples forget --undo "
                     "ID brings them back\n", (long long)rows,
                rows == 1 ? "" : "s", rows == 1 ? "is" : "are");
    return 0;
}

int samples_check(const struct samples_flags *my, struct tune_store *store, FILE *out)
{
    struct found f = {.out = out};
    int64_t problems = tune_store_check(store, print_file, print_problem, &f);
    TRY(problems < 0 ? -1 : 0);
    TRY(problems == 0 ? print_forgotten(store, out) : 0);
    if (problems > 0)
        fprintf(out, "# %s: %lld problem%s\n", my->store, (long long)problems, problems == 1 ? "" : "s");
    else
        fprintf(out, "# %s: no problems found\n", my->store);
    if (f.plain > 0)
        fprintf(out, "# %lld of %lld files have no checksums, so damage to their rows cannot be "
                     "found; samples merge %s --store NEW writes a store with checksums\n",
                (long long)f.plain, (long long)f.files, my->store);
    return problems > 0;
}
