/* experiment.h - how an entity is measured: by a program with flags and a report.
 *
 * An experiment is a file, JSON or YAML, in defaults/experiments or anywhere:
 *
 *     {"identifier": "finetune_full_benchmark-v1.0.0", "actuator": "SFTTrainer",
 *      "description": "...",
 *      "program": "finetune_full",
 *      "arguments": ["--log-every", "1"],
 *      "output": "--output",
 *      "plan": ["--plan-memory"],
 *      "report": "figures.json",
 *      "folders": {"data_directory": "data"},
 *      "inputs": [
 *        {"identifier": "batch_size", "description": "...", "required": true,
 *         "domain": {"domainRange": [1, 4097], "interval": 1},
 *         "flag": "--batch-size", "value": "batch_size // max(1, number_gpus)"},
 *        {"identifier": "torch_dtype", "default": "bfloat16", "domain": {"values": [...]},
 *         "flag": "--dtype", "map": {"bfloat16": "bfloat16", "float32": "float32"},
 *         "unsupported": {"float16": "why not"}},
 *        {"identifier": "dataset_id", "default": "...", "domain": {...}, "flag": "--dataset",
 *         "format": "{data_directory}/{}.jsonl", "role": "data",
 *         "make": ["make_news", "{}", "--output", "{data_directory}/{}.jsonl"]},
 *        {"identifier": "flash_attn", "default": true, "domain": {...},
 *         "inert": "why it changes nothing here"}],
 *      "rules": [{"require": "batch_size % max(1, number_gpus) == 0", "reason": "..."}],
 *      "runs": 1,
 *      "targets": [{"identifier": "train_runtime", "unit": "s", "description": "...",
 *                   "reduce": "mean"}, ...]}
 *
 * actuator: the default is ado's custom_experiments. program: a name with a '/' is relative to this
 * file; others are beside the tool's own program, or in PATH. null: there is no program, so rows
 * are only looked up. With the actuator replay, program is optional. Beside its copy of this file,
 * a store has FILE.folder, with the original folder. arguments: given in every run. output: the
 * flag for the run's new output folder. null: the folder is only in $TUNE_OUTPUT. plan: arguments
 * that make the program only check that memory suffices for the inputs. Exit code 3: it does not.
 * The check must not need the model's weights or the data. An argument of plan that contains
 * {gpu_model} is given for an entity whose input gpu_model is a known GPU that this machine lacks.
 * It gets that GPU's name (devices/known_gpus.h). report: file name in the output folder.
 * folders: words for {braces}, relative to the current folder; --actuator-configuration may set
 * them. rules: if one is not met, the row has is_valid 0 and nothing is run. A rule with "here":
 * true is about this build, not about the configuration. If it is not met, nothing is run, and
 * there is no row. runs: number of runs of one measurement; their reports are reduced.
 *
 * Inputs:
 * - default: the value if none is given. null: the input is optional, regardless of its domain.
 * - value: an expression over the inputs, which replaces the input's own value.
 * - map: the flag's text for each value. null leaves out the flag. A list replaces flag and value
 * by complete arguments. Values that are not in the map are not supported.
 * - flag: a boolean input without a map becomes --flag or --no-flag, unless flag ends in '='.
 * Without a flag, the map's text is an argument itself. An input without flag, map and inert is
 * only an environment variable.
 * - role: "weights" or "data" means that the flag's text is a folder or file. Its hash is part of
 * the row.
 * - make: a program that creates the file atomically. Every input is also in the child's
 * environment as TUNE_INPUT_<IDENTIFIER>, in capitals, with '_' for any character that is no letter
 * or digit.
 *
 * Targets:
 * - reduce: mean (default), median, min, max, sum, std, first, last. "count oom", "count error" and
 * "count ok" count how runs ended.
 * - shown: an expression over the inputs. If it is false, the target is hidden by default.
 * - optional: true if a report may lack the target. whole: true for a count, printed without
 * decimals.
 * - type: number (default) or text, such as the kernel that was chosen. A text is reduced by first
 * (its default) or last.
 *
 * A report is one JSON object with a number, or a text, for each target. NaN and infinities, as
 * Python writes them, are not stored as figures; the row's reason names these targets. "is_valid" 0
 * means that this configuration cannot run. "nonce", if present, must be the text of $TUNE_NONCE,
 * which is different for each run. */
#ifndef TUNE_SPACES_EXPERIMENT_H
#define TUNE_SPACES_EXPERIMENT_H

#include "files/file.h"
#include "sweeps/spaces/space.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tune_input_role { TUNE_ROLE_PLAIN, TUNE_ROLE_WEIGHTS, TUNE_ROLE_DATA };

struct tune_translation {
    const char *key;            /* the value, as in identifiers, Python or JSON */
    /* [count]; 0: null, no argument; 1 and not whole: the flag's value */
    const char **arguments;
    int count;
    bool whole;                 /* the arguments replace flag and value */
};

struct tune_input {
    const char *name, *description;
    bool required;
    struct tune_value standard; /* default, unless required */
    struct tune_domain domain;
    const char *flag, *format, *inert; /* NULL: none */
    struct tune_expression *expression;
    struct tune_translation *map; /* [map_count] */
    int map_count;
    /* [unsupported_count] values as in a map, and the reason */
    const char **unsupported, **unsupported_reasons;
    int unsupported_count;
    enum tune_input_role role;
    /* [make_count] program and arguments that make a missing file */
    const char **make;
    int make_count;
    const struct tune_node *at;
};

enum tune_reduce {
    TUNE_REDUCE_MEAN, TUNE_REDUCE_MEDIAN, TUNE_REDUCE_MIN, TUNE_REDUCE_MAX, TUNE_REDUCE_SUM,
    TUNE_REDUCE_STD, TUNE_REDUCE_FIRST, TUNE_REDUCE_LAST, TUNE_REDUCE_COUNT_OOM,
    TUNE_REDUCE_COUNT_ERROR, TUNE_REDUCE_COUNT_OK,
};

struct tune_target {
    const char *name, *unit, *description;
    enum tune_reduce reduce;
    bool optional;              /* a report may lack it */
    bool whole;                 /* a count: shown without decimals */
    bool text;                  /* a text; else a number */
    struct tune_expression *shown; /* NULL: always shown */
};

struct tune_rule {
    struct tune_expression *require;
    const char *reason;
    bool here;                  /* not met: no row is written */
};

struct tune_experiment {
    struct tune_document *document;
    const char *name, *actuator, *description; /* "finetune_full_benchmark-v1.0.0" */
    const char *program, *output, *report;
    const char *folder;         /* folder of relative programs with a '/' */
    const char **arguments;     /* [argument_count] */
    int argument_count;
    const char **plan;          /* [plan_count]; 0: the program cannot plan */
    int plan_count;
    const char **folder_names, **folders; /* [folder_count] */
    int folder_count;
    struct tune_input *inputs;  /* [input_count] */
    const char **names;         /* names of the inputs */
    int input_count;
    struct tune_target *targets; /* [target_count] */
    int target_count;
    struct tune_rule *rules;
    int rule_count;
    int runs;
};

/* tune_experiment_read - read one file. NULL with an error (file:line:column): an unknown key, a
 * default outside its domain, an unknown reduce, ...
 * tune_experiment_free - free it; NULL is fine.
 * tune_experiment_input - index of the input with that name; -1: none.
 * tune_experiment_target - index of the target with that name; -1: none. */
struct tune_experiment *tune_experiment_read(const char *path);
int tune_experiment_input(const struct tune_experiment *e, const char *name);
int tune_experiment_target(const struct tune_experiment *e, const char *name);
void tune_experiment_free(struct tune_experiment *e);

/* All known experiments. Files and folders are read in the given order, the files of a folder in
 * order of name. */
struct tune_catalog {
    struct tune_experiment **experiments; /* [count] */
    int count;
};

/* tune_catalog_read - read paths[count]: files, and folders with *.json, *.yaml, *.yml. -1 with an
 * error: one cannot be read, or two have one name.
 * tune_catalog_gather - read the experiments of this distribution, of `more` (files and folders
 * separated by commas), and of the store. An experiment of the store is left out if its name is
 * known already. more and store may be NULL.
 * tune_catalog_known - find an experiment by "name" or "actuator.name". actuator: NULL for any.
 * Returns NULL without an error if there is none.
 * tune_catalog_find - the same, with an error of kind USAGE if there is none. It suggests the
 * nearest and lists the others.
 * tune_catalog_free - free it. */
int tune_catalog_read(struct tune_catalog *c, const char *const *paths, int count);
int tune_catalog_gather(struct tune_catalog *c, const char *store, const char *more);
void tune_catalog_free(struct tune_catalog *c);
const struct tune_experiment *tune_catalog_known(const struct tune_catalog *c, const char *actuator,
                                                 const char *name);
const struct tune_experiment *tune_catalog_find(const struct tune_catalog *c, const char *actuator,
                                                const char *name);

/* A binding: an experiment bound to a space, with the source of each of its inputs. */
struct tune_binding {
    const struct tune_experiment *experiment;
    /* NULL: the experiment alone, with defaults */
    const struct tune_experiment_reference *reference;
    int *dimension;             /* [input_count] dimension of the space, or -1 */
    /* [input_count] parameter or default, if there is no dimension */
    struct tune_value *fixed;
    bool *parameterized;        /* [input_count] */
    int budget;                 /* input that determines the time of a measurement; -1: none */
    /* "finetune_full_benchmark-v1.0.0-fms_hf_tuning_version.2.8.2-...", in the user's order */
    char identifier[1024];
    char full_identifier[1100]; /* the same with the prefix "SFTTrainer." */
    bool supported;             /* false: it cannot be run, because it has no program */
};

/* tune_space_bind - check that space and experiments fit together, and bind them into
 * bindings[reference_count]. -1 with an error (file:line):
 * - an unknown experiment
 * - a required input that is not a dimension
 * - a dimension with values outside the input's domain
 * - an optional input that is both dimension and parameter
 * - a dimension that no experiment uses
 * - a parameter that is not an optional input, is outside its domain, or equals its default
 * tune_space_set - set an input to one value, before tune_space_bind. It replaces the dimension,
 * parameter or default. The value's text is YAML. The id of the space does not change. -1 with kind
 * USAGE: no experiment of the space has the input, or the value is outside its domain.
 * tune_space_settable - true if the text gives the input this value, in a list with commas.
 * tune_bindings_free - free the bindings.
 * tune_bindings_set - add a parameter to each binding with such an optional input, unless it is
 * inert, a dimension or a parameter. Returns their number. -1 with an error: the value is outside
 * its domain, or an identifier becomes too long.
 * tune_binding_is_first - true if no binding before bindings[p] has its experiment. Used to
 * visit each experiment once.
 * tune_binding_inputs - write all inputs for an entity of the space into inputs[input_count].
 * tune_binding_names - list names for expressions over entities: the experiment's inputs, then the
 * space's other dimensions. Returns their number.
 * tune_binding_values - list the values of an entity in the order of these names. Returns their
 * number. */
int tune_space_bind(const struct tune_space *s, const struct tune_catalog *c,
                    struct tune_binding **bindings);
bool tune_space_settable(const struct tune_input *in, const char *text,
                         const struct tune_value *value);
int tune_space_set(struct tune_space *s, const struct tune_catalog *c, const char *input,
                   const char *text);
int tune_bindings_set(struct tune_binding *bindings, int count, const char *input,
                       const struct tune_value *value);
void tune_bindings_free(struct tune_binding *bindings, int count);
bool tune_binding_is_first(const struct tune_binding *bindings, int p);
void tune_binding_inputs(const struct tune_binding *p, const struct tune_value *entity,
                          struct tune_value *inputs);
int tune_binding_names(const struct tune_binding *p, const struct tune_space *s,
                        const char **names);
int tune_binding_values(const struct tune_binding *p, const struct tune_space *s,
                         const struct tune_value *entity, struct tune_value *values);

/* tune_binding_shows - true if the experiment shows the target under the binding's parameters.
 * Dimensions are None in `shown`. If it cannot be evaluated, the target is shown. */
bool tune_binding_shows(const struct tune_binding *p, const struct tune_target *t);

/* tune_experiment_refuses - 1 if these inputs cannot be measured, with the reason in why[size]: a
 * rule is not met, or a value is not supported. 0: they can. -1 with an error: an expression
 * failed. Rules with "here" do not count.
 * tune_experiment_not_here - the same for rules with "here" alone. */
int tune_experiment_refuses(const struct tune_experiment *e, const struct tune_value *inputs,
                            char *why, size_t size);
int tune_experiment_not_here(const struct tune_experiment *e, const struct tune_value *inputs,
                             char *why, size_t size);

/* The command line of one run. Its texts are its own, or the experiment's. */
struct tune_command {
    const char **arguments;     /* [argument_count], then NULL; without the program itself */
    int argument_count;
    const char **environment;   /* [environment_count] "TUNE_INPUT_BATCH_SIZE=2", then NULL */
    int environment_count;
    /* texts of the inputs with these roles; NULL: none */
    const char *weights, *data;
    /* [make_count] program and arguments that make the data file, then NULL */
    const char **make;
    int make_count;
    struct tune_pool *memory;
};

struct tune_placeholder { const char *name, *text; };

/* tune_input_variable - convert a character of an identifier to that in its environment
 * variable. */
char tune_input_variable(char c);

/* tune_experiment_command - make the command for inputs[input_count]. words[count]: texts for
 * {name} in formats and make, before the experiment's own folders. {name} may also be an input; {}
 * is the input's own value. -1 with an error: an expression failed, an unknown {word}, or a value
 * that a map lacks.
 * tune_command_free - free the command. */
int tune_experiment_command(const struct tune_experiment *e, const struct tune_value *inputs,
                            const struct tune_placeholder *words,
                            int count, struct tune_command *command);
void tune_command_free(struct tune_command *command);

/* tune_space_describe - print a space: identifier, entity space, measurement space,
 * sample store.
 * tune_experiment_describe - print one experiment's page.
 * tune_experiment_template - print a space file for an experiment: required inputs with their
 * domains, the others as comments. -1 with kind USAGE: it has no inputs.
 * tune_catalog_list - print the list of experiments. */
int tune_space_describe(const struct tune_space *s, const struct tune_binding *bindings,
                        const char *store_id, FILE *out);
int tune_experiment_describe(const struct tune_experiment *e, FILE *out);
int tune_experiment_template(const struct tune_experiment *e, FILE *out);
int tune_catalog_list(const struct tune_catalog *c, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
