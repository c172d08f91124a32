/* experiment.h - how an entity is measured: a program, its flags, and what it reports.
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
 * actuator: absent, it is ado's custom_experiments.
 * program: with a '/', relative to this file; else beside the tool's own program, or in PATH. null:
 * there is none here, so rows are only looked up. The actuator replay may leave it out. A store's
 * copy of this file has another beside it, FILE.folder, with the folder that it came from.
 * arguments: always given.
 * output: the flag for the new folder that a run reports into; null: only $TUNE_OUTPUT names it.
 * plan: arguments that make the program say whether it has the memory for these inputs, and end.
 * Exit code 3: it has not. It must need neither the model's weights nor the data.
 * report: file name in that folder.
 * folders: words for {braces}, relative to the current folder; --actuator-configuration may set
 * them.
 * rules: if one is not met, the row has is_valid 0 and nothing is run.
 * runs: number of runs of one measurement; their reports are reduced.
 *
 * Inputs:
 * - default: the value if nobody gives one. null: the input may be left out, whatever its domain.
 * - value: an expression over the inputs, in place of the input's own value.
 * - map: the flag's text for each value. null leaves the flag out. A list stands for whole
 * arguments in place of flag and value. A value that the map lacks is not supported.
 * - flag: a boolean input without a map becomes --flag or --no-flag, unless flag ends in '='.
 * Without a flag, a map's text stands alone. An input without flag, map and inert is an environment
 * variable only.
 * - role: "weights" or "data" means that the flag's text is a folder or file, whose hash belongs to
 * the row.
 * - make: a program that makes the file complete or not at all.
 * Every input is also in the child's environment as TUNE_INPUT_<IDENTIFIER>, in capitals, with '_'
 * for any character that is no letter or digit.
 *
 * Targets:
 * - reduce: mean (default), median, min, max, sum, std, first, last. "count oom", "count error" and
 * "count ok" count how runs ended.
 * - shown: an expression over the inputs; where it is false, the target is hidden by default.
 * - optional: true if a report may lack it. whole: true for a count, printed without decimals.
 *
 * A report is one JSON object with a number for each target. NaN and infinities, as Python writes
 * them, are no figures: the row has none of them, and names them. "is_valid" 0 means that this
 * configuration cannot run. "nonce", if present, must be the text of $TUNE_NONCE, which no earlier
 * run has. */
#ifndef TUNE_SPACES_EXPERIMENT_H
#define TUNE_SPACES_EXPERIMENT_H

#include "files/file.h"
#include "sweeps/spaces/space.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tune_role { TUNE_ROLE_PLAIN, TUNE_ROLE_WEIGHTS, TUNE_ROLE_DATA };

struct tune_translation {
    const char *key;            /* the value, spelled as in ids, Python or JSON */
    /* [count]; 0: null, no argument; 1 and not whole: the flag's value */
    const char **arguments;
    int count;
    bool whole;                 /* they replace flag and value */
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
    enum tune_role role;
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
    struct tune_expression *shown; /* NULL: always shown */
};

struct tune_rule {
    struct tune_expression *require;
    const char *reason;
};

struct tune_experiment {
    struct tune_document *document;
    const char *name, *actuator, *description; /* "finetune_full_benchmark-v1.0.0" */
    const char *program, *output, *report;
    const char *folder;         /* that a program with a '/' is relative to */
    const char **arguments;     /* [argument_count] */
    int argument_count;
    const char **plan;          /* [plan_count]; 0: the program has no such */
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
 * tune_catalog_gather - read what tools look in: the experiments of this distribution; more, files
 * and folders separated by commas; and those that the store keeps. Of these, one whose name is
 * known already is left out. Both may be NULL.
 * tune_catalog_find - find by "name" or "actuator.name". NULL with kind USAGE; the error names the
 * nearest and lists the others.
 * tune_catalog_free - free it. */
int tune_catalog_read(struct tune_catalog *c, const char *const *paths, int count);
int tune_catalog_gather(struct tune_catalog *c, const char *store, const char *more);
void tune_catalog_free(struct tune_catalog *c);
const struct tune_experiment *tune_catalog_find(const struct tune_catalog *c, const char *actuator,
                                                const char *name);

/* An experiment of a space, bound: the source of each of its inputs. */
struct tune_protocol {
    const struct tune_experiment *experiment;
    const struct tune_reference *reference; /* NULL: the experiment alone, with defaults */
    int *dimension;             /* [input_count] dimension of the space, or -1 */
    /* [input_count] parameter or default, where there is no dimension */
    struct tune_value *fixed;
    bool *parameterized;        /* [input_count] */
    int budget;                 /* input that the time of a measurement grows with; -1: none */
    /* "finetune_full_benchmark-v1.0.0-fms_hf_tuning_version.2.8.2-...", in the user's order */
    char identifier[1024];
    char full_identifier[1100]; /* the same after "SFTTrainer." */
    bool supported;             /* false: it cannot be run, because it has no program */
};

/* tune_space_bind - check that space and experiments fit together, and bind them into
 * protocols[reference_count]. -1 with an error (file:line):
 * - an unknown experiment
 * - a required input that is no dimension
 * - a dimension with values outside the input's domain
 * - an optional input that is both dimension and parameter
 * - a dimension that no experiment uses
 * - a parameter that is no optional input, is outside its domain, or equals its default
 * tune_space_set - before bind: give an input one value, in place of its dimension, parameter or
 * default. The value's text is YAML. The id of the space stays. -1 with kind USAGE: no experiment
 * of the space has it, or the value is outside its domain.
 * tune_space_settable - whether the text gives the input this value, in a list with commas.
 * tune_protocols_free - free what bind took.
 * tune_protocols_set - add a parameter to each protocol that has such an optional input, not inert,
 * and neither dimension nor parameter. Returns their number. -1 with an error: the value is outside
 * its domain, or an identifier becomes too long.
 * tune_protocol_is_first - whether no protocol before protocols[p] has its experiment, so that a
 * pass over experiments takes each once.
 * tune_protocol_inputs - the whole input vector of an entity of the space, into
 * inputs[input_count].
 * tune_protocol_names - what expressions over entities may use: the experiment's inputs, then the
 * space's other dimensions, into names[]. Returns their number.
 * tune_protocol_values - the values of an entity in the order of these names. Returns their
 * number. */
int tune_space_bind(const struct tune_space *s, const struct tune_catalog *c,
                    struct tune_protocol **protocols);
bool tune_space_settable(const struct tune_input *in, const char *text,
                         const struct tune_value *value);
int tune_space_set(struct tune_space *s, const struct tune_catalog *c, const char *input,
                   const char *text);
int tune_protocols_set(struct tune_protocol *protocols, int count, const char *input,
                       const struct tune_value *value);
void tune_protocols_free(struct tune_protocol *protocols, int count);
bool tune_protocol_is_first(const struct tune_protocol *protocols, int p);
void tune_protocol_inputs(const struct tune_protocol *p, const struct tune_value *entity,
                          struct tune_value *inputs);
int tune_protocol_names(const struct tune_protocol *p, const struct tune_space *s,
                        const char **names);
int tune_protocol_values(const struct tune_protocol *p, const struct tune_space *s,
                         const struct tune_value *entity, struct tune_value *values);

/* tune_protocol_shows - whether the experiment shows the target under these parameters. Dimensions
 * are None there. A target is shown if that cannot be decided. */
bool tune_protocol_shows(const struct tune_protocol *p, const struct tune_target *t);

/* tune_experiment_refuses - 1 if these inputs cannot be measured, with the reason in why[size]: a
 * rule is not met, or a value is not supported. 0: they can. -1 with an error: an expression
 * failed. */
int tune_experiment_refuses(const struct tune_experiment *e, const struct tune_value *inputs,
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

struct tune_word { const char *name, *text; };

/* tune_input_variable - a character of an identifier as it stands in the name of its environment
 * variable. */
char tune_input_variable(char c);

/* tune_experiment_command - make the command for inputs[input_count]. words[count]: texts for
 * {name} in formats and make, before the experiment's own folders. {name} may also be an input; {}
 * is the input's own value. -1 with an error: an expression failed, an unknown {word}, or a value
 * that a map lacks.
 * tune_command_free - free what it took. */
int tune_experiment_command(const struct tune_experiment *e, const struct tune_value *inputs,
                            const struct tune_word *words,
                            int count, struct tune_command *command);
void tune_command_free(struct tune_command *command);

/* tune_space_describe - print a space as ado does: identifier, entity space, measurement space,
 * sample store.
 * tune_experiment_describe - print one experiment's page.
 * tune_experiment_template - print a space file for it: required inputs with their domains, the
 * others as comments. -1 with kind USAGE: it has no inputs.
 * tune_catalog_list - print the list of experiments. */
int tune_space_describe(const struct tune_space *s, const struct tune_protocol *protocols,
                        const char *store_id, FILE *out);
int tune_experiment_describe(const struct tune_experiment *e, FILE *out);
int tune_experiment_template(const struct tune_experiment *e, FILE *out);
int tune_catalog_list(const struct tune_catalog *c, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
