/* import.c - import rows of CSV into the store. */

#include "core/print.h"
#include "sweeps/discovery/import.h"
#include "samples.h"

enum { TOLD = 20 };

static void tell_bad(void *context, const char *path, int64_t line, const char *what)
{
    int *told = context;
    char text[1024];
    if (++*told > TOLD)
        return;
    snprintf(text, sizeof text, "%s", what);
    tune_flags_spell(&my.tune, text);
    fprintf(stderr, "samples: %s:%lld: ", path, (long long)line);
    tune_print_line_of(stderr, text);
    fputc('\n', stderr);
}

int samples_import(void)
{
    static const char *inputs[TUNE_SPACE_DIMENSIONS], *targets[1024];
    int told = 0;
    if (samples_words() != 2 || strcmp(samples_word(0), "csv") || !my.experiment || !*my.experiment)
        return tune_error_usage("expected: samples import csv FILE --experiment NAME --store STORE");
    TRY(samples_read_catalog());
    struct tune_import i = {.store = samples.store, .catalog = &samples.catalog, .path = samples_word(1),
                            .experiment = my.experiment, .actuator = my.actuator, .problem = tell_bad, .context = &told,
                            .inputs = inputs, .targets = targets,
                            .input_count = samples_split(my.inputs, inputs, TUNE_SPACE_DIMENSIONS),
                            .target_count = samples_split(my.properties, targets, 1024)};
    TRY(i.input_count);
    TRY(i.target_count);
    int code = tune_import_csv(&i);
    if (told > TOLD)
        fprintf(stderr, "samples: and %d more\n", told - TOLD);
    TRY(code);
    fprintf(samples.out, "# %lld results in %lld rows: %lld came into %s, %lld were there\n", (long long)i.results,
            (long long)i.rows, (long long)i.added, my.store, (long long)(i.results - i.again - i.added));
    if (i.again > 0)
        fprintf(samples.out, "# %lld of them stand in the file more than once\n", (long long)i.again);
    if (i.missing > 0)
        fprintf(samples.out, "# %lld cell%s without a number (empty, NA, NaN, null ...): None in the store\n",
                (long long)i.missing, i.missing == 1 ? "" : "s");
    if (i.made)
        fprintf(samples.out, "# an experiment was made of them: %s/experiments/%s.json\n", my.store, my.experiment);
    if (i.others > 0)
        fprintf(samples.out, "# %lld rows or columns are of other experiments\n", (long long)i.others);
    if (*i.left_out)
        fprintf(samples.out, "# left out, for the experiment has no such targets: %s\n", i.left_out);
    return 0;
}
