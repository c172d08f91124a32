/* samples.h - shared by the files of this tool: flags, store, space, and output of rows. */
#ifndef TUNE_TOOLS_SAMPLES_H
#define TUNE_TOOLS_SAMPLES_H

#include <stdio.h>

#include "core/pool.h"
#include "core/statistics.h"
#include "core/try.h"
#include "files/file.h"
#include "sweeps/discovery/results.h"
#include "sweeps/discovery/select.h"
#include "sweeps/discovery/view.h"
#include "flags/program.h"

struct samples_flags {
    struct tune_flags tune;
    const char *command, *words, *store, *experiments, *include, *property_format, *output_format,
        *output_file, *properties, *aggregate, *where, *operation, *columns, *sort, *group_by,
        *derive, *maximize, *minimize, *experiment, *actuator, *inputs, *x, *series, *svg, *color,
        *labels, *regression, *per, *facet;
    bool all_properties, logarithmic, ascii, print_command, with_programs;
    int count, width, height;
    int64_t limit;
    double until_stable;
};
extern struct samples_flags my;

struct samples {
    struct tune_store *store;
    struct tune_catalog catalog;
    bool catalog_read;
    struct tune_space *space;          /* NULL: the command takes no space */
    struct tune_protocol *protocols;
    struct tune_derived *derived;      /* [derived_count] of --derive */
    int derived_count;
    FILE *out;
    struct tune_file_writer output;    /* of --output-file */
    struct tune_pool *memory;          /* of samples_take */
};
extern struct samples samples;

/* Memory. A command needs it to its end, so nobody frees it. Without any, the program ends.
 * samples_take - zeroed memory for count elements of size bytes.
 * samples_copy - a copy of a text.
 * samples_fit - room for one more element behind count ones, as tune_array_fit. */
void *samples_take(int64_t count, size_t size);
char *samples_copy(const char *text);
void samples_fit(void *array, int64_t count, size_t size);

/* samples_word - the i-th word behind the command, or NULL.
 * samples_words - how many. */
const char *samples_word(int i);
int samples_words(void);

/* samples_read_catalog - the experiments, into samples; once.
 * samples_open_space - read the space file, or the one the store recorded as "space-...", and bind
 * it, into samples. samples_open_view
 * - a view of it as --include, --where and --operation say, of rows with those columns: of
 * results, of valid ones, or with failed ones, too. */
int samples_read_catalog(void);
int samples_open_space(const char *path);
enum samples_which { SAMPLES_RESULTS, SAMPLES_VALID, SAMPLES_ALL };
struct tune_view *samples_open_view(const char *const *columns, int count,
                                    enum samples_which which);

/* The numbers of a group's results in some columns.
 * samples_read_figures - read those of the current group. finite: without infinities.
 * samples_figures_of - the numbers of a column, of which there are count[column]. */
struct samples_figures {
    int columns;       /* the view's first ones; the caller sets it */
    int room, *count;  /* [columns] */
    double *values;    /* [columns][room] */
};
int samples_read_figures(struct samples_figures *f, struct tune_view *v, int results, bool finite);
double *samples_figures_of(const struct samples_figures *f, int column);

/* samples_split - text's parts between commas: how many, or -1: more than `most`. */
int samples_split(const char *text, const char **parts, int most);

/* samples_say_mixed - on stderr, if the view's figures are of several host classes or builds, or
 * one entity's of several weights or data.
 * samples_say_matching - on stderr, where no operation on this space measured anything that others
 * did, or did so with --until-stable. */
int samples_say_mixed(const struct tune_view *v);
int samples_say_matching(struct tune_view *v);

/* unused.c - results that sweep would not use here.
 * samples_note_unused - the entity has a valid result: note whether sweep would use it.
 * samples_say_unused - on stderr, how many it would not, why, and which --accept takes them.
 * samples_say_other_inputs - on stderr, what other parameters these entities were measured with. */
int samples_note_unused(int protocol, const struct tune_value *entity);
void samples_say_unused(void);
int samples_say_other_inputs(void);

/* samples_no_such - the error that `name` is none of names[count], which it lists, the nearest
 * first; -1. what: "property". */
int samples_no_such(const char *what, const char *name, const char *const *names, int count);

/* samples_check_properties - each must be a target of an experiment of the space.
 * samples_target - the target of that name, or the new column, under a protocol (-1: the first one
 * that has it); NULL: there is none.
 * samples_check_aggregate - only mean and median are known to the command.
 * samples_middle - of several results, as --aggregate says;
 * samples_median - it says the median. */
int samples_check_properties(const char *const *properties, int count);
const struct tune_target *samples_target(int protocol, const char *name);
int samples_check_aggregate(void);
bool samples_median(void);
double samples_middle(const struct tune_spread *spread);

/* samples_derived - the new column of that name as a target; NULL: there is none.
 * samples_mentions - whether --columns, --sort or --group-by has the name, or ends another with
 * it. */
const struct tune_target *samples_derived(const char *name);
bool samples_mentions(const char *name);

/* A pass over all columns of a table (table.c): samples_table_open - by_flags: with --derive's
 * columns at the end, and only rows that meet --where.
 * samples_table_next - 1 and the next row, 0: the end, -1.
 * samples_table_free - also after a failed open. */
struct samples_table {
    const char *name;
    struct tune_column *columns;       /* [count] keys, inputs, targets; then those of --derive */
    const char **names;                /* [count] */
    int stored, count;
    struct tune_scan *scan;
    struct tune_select *select;
    const struct tune_experiment *experiment; /* NULL: unknown */
    struct tune_value *values;
    struct tune_cell *cells;           /* [count] */
};
int samples_table_open(struct samples_table *t, struct tune_store *store, const char *name,
                       bool by_flags);
int samples_table_next(struct samples_table *t, const struct tune_cell **cells);
void samples_table_free(struct samples_table *t);

/* samples_meets - 1 if a row of these cells[count], at most SAMPLES_CELLS, meets --where; 0 or -1.
 * For commands whose rows are not those of a table or a space. */
enum { SAMPLES_CELLS = 16 };
int samples_meets(struct tune_select *select, const struct tune_cell *cells, int count);

/* ---- put.c: rows onto samples.out as --output-format says, grouped, sorted and with columns as
 * the flags say ---- */

struct samples_column {
    const char *heading;
    bool measured; /* --group-by takes its mean */
    bool hidden;   /* shown only if --columns names it */
    int prefix;    /* bytes of the heading that people need not see (views/sheet.h) */
};

/* samples_column - one more column, whose fields the caller may set at once.
 * samples_columns - several, with these headings.
 * samples_begin - all columns are there. People see a sheet (views/sheet.h); numbered: CSV has an
 * empty first heading and a row index, as ado's.
 * Then cells, row by row: samples_text - NULL, "": none.
 * samples_number - with every digit, people are shown `digits` of them; whole: without decimals;
 * NaN: none.
 * samples_numbers - several of them: one as it is (with list: as a list, too), more as a list.
 * samples_value - a space's value, as ids spell it.
 * samples_identifier - that of an entity of the space. -1: no memory.
 * samples_time - seconds since 1970, as a date.
 * samples_end_row - the row is over: -1: nothing more can be written. samples_end
 * - all is put: prints what was kept.
 * samples_full - whether --limit wants no more rows.
 * samples_rows - how many rows there were.
 * samples_people - whether the format is the one for people. */
struct samples_column *samples_column(const char *heading);
void samples_columns(const char *const *headings, int count);
void samples_begin(bool numbered);
void samples_text(const char *text);
void samples_number(double value, bool whole, int digits);
void samples_numbers(const double *values, int count, bool whole, bool list, int digits);
void samples_value(const struct tune_value *v);
int samples_identifier(const struct tune_value *entity);
void samples_time(double seconds);
int samples_end_row(void);
int samples_end(void);
bool samples_full(void);
int64_t samples_rows(void);
bool samples_people(void);

/* samples_put_command - print the command that measures an entity, on a line for a shell. -1 with
 * an error: the experiment has no program, or it is not there. */
int samples_put_command(int protocol, const struct tune_value *entity);

/* samples_folders - the words of the last actuator configuration that an operation on this space
 * had for the actuator. Returns their number, or -1. The caller frees the record, which owns their
 * texts. */
int samples_folders(const char *actuator, struct tune_operation_record *record,
                    struct tune_word words[2]);

/* ---- the commands: 0, -1, or (check) 1: there are problems ---- */
int samples_show(void);
int samples_stats(void);
int samples_trace(void);
int samples_entity(void);
int samples_best(void);
int samples_compare(void);
int samples_effect(void);
int samples_missing(void);
int samples_plot(void);
int samples_list(void);
int samples_import(void);
int samples_merge(void);
int samples_check(void);

#endif
