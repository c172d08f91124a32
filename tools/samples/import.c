/* import.c - import rows of CSV into the store. */
#include <stdlib.h>
#include <string.h>

#include "core/nearest.h"
#include "core/print.h"
#include "samples.h"
#include "sweeps/discovery/import.h"
#include "sweeps/spaces/space.h"

enum { MOST_PRINTED = 20 };

struct bad_lines {
    const struct tune_flags *flags;
    int count;
};

static void print_bad_line(void *context, const char *path, int64_t line, const char *what)
{
    struct bad_lines *bad = context;
    char text[1024];
    if (++bad->count > MOST_PRINTED)
        return;
    snprintf(text, sizeof text, "%s", what);
    tune_flags_name_options(bad->flags, text);
    fprintf(stderr, "samples: %s:%lld: ", path, (long long)line);
    tune_print_line_of(stderr, text);
    fputc('\n', stderr);
}

/* Split names at commas. The copy is never freed, because the import needs it until the end. */
static int split(const char *text, const char **names, int most)
{
    return tune_name_split(text ? strdup(text) : NULL, names, most);
}

int samples_import(const struct samples_flags *my, struct tune_store *store, FILE *out)
{
    static const char *inputs[TUNE_SPACE_DIMENSIONS], *targets[1024], *units[1024];
    struct bad_lines bad = {&my->tune, 0};
    struct tune_catalog catalog;
    if (!samples_word(my, 1) || strcmp(samples_word(my, 0), "csv") || !my->experiment || !*my->experiment)
        return tune_error_usage("expected: samples import csv FILE --experiment NAME --store STORE");
    TRY(tune_catalog_gather(&catalog, my->store, my->experiments));
    struct tune_import i = {.store = store, .catalog = &catalog, .path = samples_word(my, 1),
                            .experiment = my->experiment, .actuator = my->actuator, .problem = print_bad_line, .context = &bad,
                            .inputs = inputs, .targets = targets, .units = units,
                            .input_count = split(my->inputs, inputs, TUNE_SPACE_DIMENSIONS),
                            .target_count = split(my->properties, targets, 1024), .unit_count = split(my->units, units, 1024)};
    int code = i.input_count < 0 || i.target_count < 0 || i.unit_count < 0 ? -1 : tune_import_csv(&i);
    tune_catalog_free(&catalog);
    if (bad.count > MOST_PRINTED)
        fprintf(stderr, "samples: and %d more\n", bad.count - MOST_PRINTED);
    TRY(code);
    fprintf(out, "# %lld results in %lld rows: %lld were added to %s, %lld were there already\n",
            (long long)i.results,
            (long long)i.rows, (long long)i.added, my->store, (long long)(i.results - i.again - i.added));
    if (i.again > 0)
        fprintf(out, "# %lld of them are in the file more than once\n", (long long)i.again);
    if (i.missing > 0)
        fprintf(out, "# %lld cell%s without a number (empty, NA, NaN, null ...) became None in the "
                     "store\n",
                (long long)i.missing, i.missing == 1 ? "" : "s");
    if (i.made)
        fprintf(out, "# an experiment was made from the file: %s/experiments/%s.json\n", my->store,
                my->experiment);
    if (i.others > 0)
        fprintf(out, "# left out: %lld rows or columns of other experiments\n",
                (long long)i.others);
    if (*i.left_out)
        fprintf(out, "# left out, because the experiment has no such targets: %s\n", i.left_out);
    return 0;
}
