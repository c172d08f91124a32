/* merge.c - merge one store into another, and check a store. */
#include <unistd.h>

#include "core/clock.h"
#include "core/print.h"
#include "samples.h"

/* What a merge told. */
struct told {
    double progress_s;
    int programs; /* left out */
};

/* Progress of a long merge, twice a second, on a terminal. */
static void tell_progress(void *context, int64_t done, int64_t all)
{
    struct told *told = context;
    double now = tune_clock_s();
    if (!isatty(STDERR_FILENO) || (now - told->progress_s < 0.5 && done < all))
        return;
    told->progress_s = now;
    fprintf(stderr, "\r# %lld of %lld rows%s", (long long)done, (long long)all, done < all ? "" : "\n");
}

static void tell_program(void *context, const char *experiment, const char *program)
{
    struct told *told = context;
    told->programs++;
    fputs("# without its program: ", samples.out);
    tune_print_line_of(samples.out, experiment);
    fputs(" (", samples.out);
    tune_print_line_of(samples.out, program);
    fputs(")\n", samples.out);
}

int samples_merge(void)
{
    const char *folder = samples_word(0);
    struct told told = {tune_clock_s(), 0};
    const struct tune_merge how = {my.with_programs, &told, tell_progress, tell_program};
    if (!folder || samples_words() != 1)
        return tune_error_usage("expected: samples merge FROM --store INTO");
    struct tune_store *from = tune_store_open(folder, false);
    if (!from)
        return -1;
    if (!strcmp(tune_store_id(from), tune_store_id(samples.store)))
        fprintf(stderr, "samples: both stores have the id %s: one is a copy of the other, or the same\n", tune_store_id(from));
    int64_t came = tune_store_merge(samples.store, from, &how);
    if (came >= 0)
        fprintf(samples.out, "# %lld rows of %s came into %s\n", (long long)came, folder, my.store);
    if (told.programs > 0)
        fputs("# to measure by them here, give sweep their files (--experiments), or merge into a new store with --with-programs\n", samples.out);
    tune_store_free(from);
    return came < 0 ? -1 : 0;
}

/* Problems that samples check found so far. */
struct found {
    int64_t files, plain;
};

static void tell_file(void *context, const char *file, int64_t rows, bool checked)
{
    struct found *f = context;
    f->files++;
    f->plain += !checked;
    tune_print_line_of(samples.out, file);
    fprintf(samples.out, ": %lld row%s, %s\n", (long long)rows, rows == 1 ? "" : "s",
            checked ? "checksummed" : "no checksums (written before there were any)");
}

static void tell_problem(void *context, const char *file, const char *what)
{
    (void)context;
    tune_print_line_of(samples.out, file);
    fputs(": ", samples.out);
    tune_print_line_of(samples.out, what);
    fputc('\n', samples.out);
}

int samples_check(void)
{
    struct found f = {0};
    int64_t problems = tune_store_check(samples.store, tell_file, tell_problem, &f);
    TRY(problems < 0 ? -1 : 0);
    if (problems > 0)
        fprintf(samples.out, "# %s: %lld problem%s\n", my.store, (long long)problems, problems == 1 ? "" : "s");
    else
        fprintf(samples.out, "# %s: nothing is wrong\n", my.store);
    if (f.plain > 0)
        fprintf(samples.out, "# %lld of %lld files have no checksums: damage to their rows may go unseen; samples merge %s --store "
                "NEW writes a store that has them\n", (long long)f.plain, (long long)f.files, my.store);
    return problems > 0;
}
