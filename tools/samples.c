/* samples.c - what a sample store holds: the rows of a space, the best of them, where they come from.
 *
 *     build/samples show space.yaml --store samples/ --property-format target --output-format csv
 *
 * Nothing is measured here, and only merge and import write. */
#include "samples/samples.h"

#include <stdlib.h>
#include <string.h>

struct samples_flags my;
struct samples samples;

static const struct tune_option my_options[] = {
    {"<command>", TUNE_CHOICE, &my.command, NULL, "show|measurements", "", "what to do"},
    {"<word...>", TUNE_STRING, &my.words, "", "", "", "show, measurements: a space file"},
    {"store", TUNE_STRING, &my.store, "samples", "", "", "folder of sample files"},
    {"experiments", TUNE_STRING, &my.experiments, NULL, "", "",
     "folders and files of experiments besides those that come with this program, separated by commas"},
    {"output-format", TUNE_CHOICE, &my.output_format, "console", "console|table|csv|json", "", "for people, spreadsheets, programs"},
    {"output-file", TUNE_STRING, &my.output_file, NULL, "", "", "write there instead of standard output"},
    TUNE_OPTION_GROUP("which rows"),
    {"include", TUNE_CHOICE, &my.include, "measured", "measured|matching|missing|unmeasured|sampled|unsampled", "",
     "measured: by operations on this space; matching: whoever measured them; missing: entities without rows; unmeasured: those that no "
     "operation on this space measured"},
    {"operation", TUNE_STRING, &my.operation, NULL, "", "", "measured: by this operation only"},
    {"where", TUNE_STRING, &my.where, NULL, "", "", "an expression over the experiment's inputs: 'batch_size <= 2 and number_gpus == 0'"},
    {"limit", TUNE_INT, &my.limit, "0", "[0,inf)", "rows", "at most that many; 0: all"},
    TUNE_OPTION_GROUP("which columns"),
    {"property-format", TUNE_CHOICE, &my.property_format, "observed", "observed|target", "",
     "observed: a row for each entity, columns <experiment>-<target>; target: a row for each entity and experiment"},
    {"property", TUNE_STRING, &my.properties, NULL, "", "", "only these targets, separated by commas"},
    {"all-properties", TUNE_BOOL, &my.all_properties, "false", "", "", "also those that are measured beside the experiment's own"},
    {"aggregate", TUNE_CHOICE, &my.aggregate, NULL, "mean|median|variance|std|min|max", "", "of several results of one entity; else a list"},
    TUNE_OPTION_GROUP(""),
    {0},
};
static const struct tune_property my_properties[] = {{0}};

enum { MOST_PATHS = 64 };

int samples_fail(enum tune_error_kind kind, const char *text)
{
    tune_error_set_kind(kind, "%s", text);
    return -1;
}

int samples_words(void)
{
    int count;
    tune_flags_words(&my.tune, &count);
    return count;
}

const char *samples_word(int i)
{
    int count;
    const char *const *words = tune_flags_words(&my.tune, &count);
    return i < count ? words[i] : NULL;
}

int samples_split(const char *text, const char **parts, int most)
{
    char *copy = text ? strdup(text) : NULL; /* the parts are asked for until the program ends */
    int count = 0;
    for (char *at = copy, *next; at && *at; at = next) {
        next = at + strcspn(at, ",");
        if (*next)
            *next++ = 0;
        if (*at && count < most)
            parts[count++] = at;
    }
    return count;
}

static int read_catalog(void)
{
    static char own[TUNE_PATH_MAX], recorded[TUNE_PATH_MAX];
    const char *paths[MOST_PATHS];
    int count = 0;
    if (tune_defaults_path(own, "experiments") == 0)
        paths[count++] = own;
    TRY(tune_path(recorded, "%s/experiments", my.store)); /* of imported rows */
    if (tune_file_is_folder(recorded))
        paths[count++] = recorded;
    count += samples_split(my.experiments, paths + count, MOST_PATHS - count);
    return tune_catalog_read(&samples.catalog, paths, count);
}

int samples_open_space(const char *path)
{
    if (!path)
        return samples_fail(TUNE_ERROR_USAGE, "which space? This command takes a space file");
    TRY(read_catalog());
    if (!(samples.space = tune_space_read(path)))
        return -1;
    return tune_space_bind(samples.space, &samples.catalog, &samples.protocols);
}

int samples_say_mixed(struct tune_view *v)
{
    struct tune_view_origins o;
    TRY(tune_view_mixed(v, &o));
    if (o.host_classes > 1 || o.builds > 1)
        fprintf(stderr, "samples: these figures come from %d host class%s and %d build%s; compare them with that in mind\n",
                o.host_classes, o.host_classes == 1 ? "" : "es", o.builds, o.builds == 1 ? "" : "s");
    return 0;
}

int main(int argc, char **argv)
{
    static const struct { const char *name; int (*run)(void); } commands[] = {
        {"show", samples_show}, {"measurements", samples_show},
    };
    tune_program_start(argc, argv, &my.tune, my_options, my_properties, "What a sample store holds.");
    struct tune_file_writer writer;
    samples.out = stdout;
    samples.store = GET(tune_store_open(my.store, false));
    if (my.output_file) {
        MUST(tune_file_begin_output(&writer, my.output_file));
        samples.out = writer.file;
    }
    int code = -1;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(commands[i].name, my.command))
            code = commands[i].run();
    if (my.output_file && (code < 0 || (code = tune_file_commit(&writer)) < 0)) {
        struct tune_error why;
        tune_error_save(&why);
        tune_file_cancel(&writer);
        tune_error_restore(&why);
    }
    MUST(code);
    if (samples.space)
        tune_protocols_free(samples.protocols, samples.space->reference_count);
    tune_space_free(samples.space);
    tune_catalog_free(&samples.catalog);
    tune_store_free(samples.store);
    struct tune_progress none = {0};
    return tune_program_exit(&none);
}
