/* forget.c - leave rows out of all answers, and restore them. */
#include "core/print.h"
#include "samples.h"
#include "sweeps/discovery/chosen.h"

/* Print a line with a name, whose control characters are escaped. */
static void put_name(FILE *out, const char *before, const char *name, const char *after)
{
    fputs(before, out);
    tune_print_line_of(out, name);
    fputs(after, out);
}

static int undo(struct tune_store *store, const char *id, FILE *out)
{
    int64_t rows = tune_store_remember(store, id);
    TRY(rows < 0 ? -1 : 0);
    fprintf(out, "# %lld row%s used again\n", (long long)rows, rows == 1 ? " is" : "s are");
    return 0;
}

/* Print the rows that would be forgotten. */
static void print_chosen(const struct tune_chosen *c, int64_t rows, FILE *out)
{
    int count;
    const struct tune_chosen_group *g = tune_chosen_groups(c, &count);
    for (int i = 0; i < count; i++) {
        fprintf(out, "# %lld row%s", (long long)g[i].rows, g[i].rows == 1 ? "" : "s");
        put_name(out, " of ", g[i].experiment, " by ");
        put_name(out, "", *g[i].operation ? g[i].operation : "no operation", "\n");
    }
    if (*tune_chosen_lacks(c))
        put_name(out, "# these experiments have no column of a name in --where, so none of their "
                      "rows is chosen: ", tune_chosen_lacks(c), "\n");
    if (rows == 0)
        fputs("# no row is chosen\n", out);
}

static int forget_rows(const struct samples_flags *my, struct tune_store *store, const struct tune_chosen *c, int64_t rows, FILE *out)
{
    char id[TUNE_TOMBSTONE_ID];
    const char *s = rows == 1 ? "" : "s";
    if (rows > 0 && !my->yes)
        fprintf(out, "# with --yes, %s row%s would be left out of all answers; add a reason with "
                     "--note. The sample files would not change, and --undo would bring the row%s "
                     "back\n", rows == 1 ? "this" : "these", s, s);
    if (rows == 0 || !my->yes)
        return 0;
    TRY(tune_store_forget(store, tune_chosen_uids(c), rows, my->note, id));
    fprintf(out, "# %lld row%s forgotten: %s\n", (long long)rows, rows == 1 ? " is" : "s are", id);
    put_name(out, "# to bring them back: samples forget --store ", my->store, " --undo ");
    fprintf(out, "%s\n", id);
    return 0;
}

int samples_forget(const struct samples_flags *my, struct tune_store *store, FILE *out)
{
    struct tune_chosen_options o = {.where = my->where, .operation = my->operation};
    struct tune_catalog catalog = {0};
    o.uids = tune_flags_words(&my->tune, &o.uid_count);
    if (my->undo && (my->where || my->operation || my->yes || my->note || o.uid_count > 0))
        return tune_error_usage("forget --undo takes only the id that forget printed, last or all; "
                                "leave other options out");
    if (my->undo)
        return undo(store, my->undo, out);
    if (!my->where && !my->operation && o.uid_count == 0)
        return tune_error_usage("forget needs a choice of rows: give --where EXPRESSION, "
                                "--operation ID or uids. samples check lists the forgotten rows, "
                                "and --undo ID brings them back");
    if (tune_catalog_gather(&catalog, my->store, my->experiments) < 0) /* without experiments, texts remain texts */
        tune_error_clear();
    struct tune_chosen *c = tune_chosen_new(store, &catalog, &o);
    int64_t rows = c ? tune_chosen_collect(c) : -1;
    if (rows >= 0)
        print_chosen(c, rows, out);
    int status = rows < 0 ? -1 : forget_rows(my, store, c, rows, out);
    tune_chosen_free(c);
    tune_catalog_free(&catalog);
    return status;
}
