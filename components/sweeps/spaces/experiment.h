/* experiment.h - how an entity is measured: a program, what its flags are made of, what it reports.
 *
 * Experiments are files (defaults/experiments, or anybody's): JSON or YAML with
 *
 *     {"identifier": "finetune_full_benchmark-v1.0.0", "actuator": "SFTTrainer", "description": "...",
 *      "program": "finetune_full",               beside the tool's own program, else from PATH; with a '/': relative to this file
 *      "arguments": ["--log-every", "1"],        always given
 *      "output": "--output",                     the flag that names the fresh folder a run reports into; null: $TUNE_OUTPUT alone
 *      "report": "...",                          a file in that folder; left out: the report of a run folder
 *      "folders": {"data_directory": "data"},    words for {braces} below, relative to the current folder;
 *                                                --actuator-configuration may set them
 *      "inputs": [
 *        {"identifier": "batch_size", "description": "...", "required": true, "domain": {"domainRange": [1, 4097], "interval": 1},
 *         "flag": "--batch-size", "value": "batch_size // max(1, number_gpus)"},     value: an expression over the inputs
 *        {"identifier": "torch_dtype", "default": "bfloat16", "domain": {"values": [...]}, "flag": "--dtype",
 *         "map": {"bfloat16": "bfloat16", "float32": "float32"}, "unsupported": {"float16": "why not"}},
 *        {"identifier": "dataset_id", "default": "...", "domain": {...}, "flag": "--dataset",
 *         "format": "{data_directory}/{}.jsonl", "role": "data",
 *         "make": ["make_news", "{}", "--output", "{data_directory}/{}.jsonl"]},
 *        {"identifier": "flash_attn", "default": true, "domain": {...}, "inert": "why it changes nothing here"}],
 *      "rules": [{"require": "batch_size % max(1, number_gpus) == 0", "reason": "..."}],        not met: is_valid 0, nothing is run
 *      "runs": 1,                                 runs of one measurement; their reports are reduced
 *      "targets": [{"identifier": "train_runtime", "unit": "s", "description": "...", "reduce": "mean"}, ...]}
 *
 * A map's value is the flag's text; null leaves the flag out; a value that the map lacks is not supported; a list stands
 * for whole arguments in the place of flag and value. A boolean input without a map is given as --flag / --no-flag when
 * "flag" ends in no '=', a value equal to the default is given like any other. An input without flag, map and "inert" is
 * an environment variable only; without a flag a map's text stands alone. Every input is also in the child's environment:
 * TUNE_INPUT_<IDENTIFIER>, in capitals, '_' for what is no letter or digit; "role": "weights" or "data": a folder or file (the
 * flag's text) whose hash belongs to the row; "make": a program that makes the file whole or not at all. reduce: mean (default),
 * median, min, max, sum, std, first, last; "count oom", "count error", "count ok" count how runs ended. A target with "shown":
 * "<expression over inputs>" is not shown by default where that is false; with "optional": true a report may lack it; with
 * "whole": true it is a count and printed without decimals.
 *
 * A report is one JSON object: a number for each target; "is_valid" 0: this configuration cannot run (absent: it could);
 * "nonce", where there is one, the text of $TUNE_NONCE, which no report of an earlier run has. */
#ifndef TUNE_SPACES_EXPERIMENT_H
#define TUNE_SPACES_EXPERIMENT_H

#include "files/file.h"
#include "sweeps/spaces/space.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tune_role { TUNE_ROLE_PLAIN, TUNE_ROLE_WEIGHTS, TUNE_ROLE_DATA };

struct tune_translation {
    const char *key;            /* the value, as ids, Python or JSON spell it */
    const char **arguments;     /* [count]; 0: null, no argument at all; one and not whole: the flag's value */
    int count;
    bool whole;                 /* they stand in the place of flag and value */
};

struct tune_input {
    const char *name, *description;
    bool required;
    struct tune_value standard; /* the default, where it is not required */
    struct tune_domain domain;
    const char *flag, *format, *inert; /* NULL: none */
    struct tune_expression *expression;
    struct tune_translation *map; /* [map_count] */
    int map_count;
    const char **unsupported, **unsupported_reasons; /* [unsupported_count] values spelled as in a map; why */
    int unsupported_count;
    enum tune_role role;
    const char **make;          /* [make_count] program and arguments that make the file where it is missing */
    int make_count;
    const struct tune_node *at;
};

enum tune_reduce {
    TUNE_REDUCE_MEAN, TUNE_REDUCE_MEDIAN, TUNE_REDUCE_MIN, TUNE_REDUCE_MAX, TUNE_REDUCE_SUM, TUNE_REDUCE_STD, TUNE_REDUCE_FIRST,
    TUNE_REDUCE_LAST, TUNE_REDUCE_COUNT_OOM, TUNE_REDUCE_COUNT_ERROR, TUNE_REDUCE_COUNT_OK,
};

struct tune_target {
    const char *name, *unit, *description;
    enum tune_reduce reduce;
    bool optional;              /* a report without it is fine */
    bool whole;                 /* a count: shown without decimals */
    struct tune_expression *shown; /* NULL: always */
};

struct tune_rule {
    struct tune_expression *require;
    const char *reason;
};

struct tune_experiment {
    struct tune_document *document;
    const char *name, *actuator, *description; /* name: "finetune_full_benchmark-v1.0.0" */
    const char *program, *output, *report;
    const char **arguments;     /* [argument_count] */
    int argument_count;
    const char **folder_names, **folders; /* [folder_count] */
    int folder_count;
    struct tune_input *inputs;  /* [input_count] */
    const char **names;         /* of them */
    int input_count;
    struct tune_target *targets; /* [target_count] */
    int target_count;
    struct tune_rule *rules;
    int rule_count;
    int runs;
};

/* tune_experiment_read - one file. NULL with an error (file:line:column): unknown keys, a default outside its domain, an
 * unknown reduce, ...
 * tune_experiment_input - which of the inputs is of that name; -1: none. */
struct tune_experiment *tune_experiment_read(const char *path);
int tune_experiment_input(const struct tune_experiment *e, const char *name);
void tune_experiment_free(struct tune_experiment *e);

/* The experiments there are: those of each file, and of each folder's files by their names, in the order they are named in. */
struct tune_catalog {
    struct tune_experiment **experiments; /* [count] */
    int count;
};

/* tune_catalog_read - paths[count]: folders (their *.json, *.yaml, *.yml) and files. -1: one cannot be read, two are of
 * one name.
 * tune_catalog_gather - what tools look in: own, a folder; those that were imported into the store, where there are such; more,
 * folders and files with commas between them. Each may be NULL.
 * tune_catalog_find - by "name" or "actuator.name"; NULL with an error of kind USAGE that names the nearest and lists
 * the others. */
int tune_catalog_read(struct tune_catalog *c, const char *const *paths, int count);
int tune_catalog_gather(struct tune_catalog *c, const char *own, const char *store, const char *more);
void tune_catalog_free(struct tune_catalog *c);
const struct tune_experiment *tune_catalog_find(const struct tune_catalog *c, const char *actuator, const char *name);

/* One experiment of a space, bound: where each of its inputs comes from. */
struct tune_protocol {
    const struct tune_experiment *experiment;
    const struct tune_reference *reference; /* NULL: as an experiment by itself, defaults only */
    int *dimension;             /* [input_count]: the space's dimension, or -1 */
    struct tune_value *fixed;   /* [input_count]: parameter or default where there is no dimension */
    bool *parameterized;        /* [input_count] */
    char identifier[1024];      /* "finetune_full_benchmark-v1.0.0-fms_hf_tuning_version.2.8.2-..." in the user's order */
    char full_identifier[1100]; /* "SFTTrainer." before it */
    bool supported;             /* false: nothing here can run it (actuator replay) */
};

/* tune_space_bind - check that space and experiments go together, before anything runs, and bind them:
 * protocols[reference_count]. -1 (file:line): an experiment that is not there; a required input that is no dimension; a
 * dimension whose values are not all in the input's domain (which one, why); an optional input that is both dimension
 * and parameter; a dimension that no experiment uses; a parameter that is no optional input (required, or none), outside
 * its domain, equal to its default.
 * tune_protocols_set - the same as if each of them had this parameter too, as its last: those that have such an input, which is
 * not inert there and neither dimension nor parameter. How many, or -1: the value is outside its domain, an identifier too long.
 * tune_protocol_inputs - the whole input vector of an entity of the space, into inputs[input_count]. */
int tune_space_bind(const struct tune_space *s, const struct tune_catalog *c, struct tune_protocol **protocols);
int tune_protocols_set(struct tune_protocol *protocols, int count, const char *input, const struct tune_value *value);
void tune_protocols_free(struct tune_protocol *protocols, int count);
void tune_protocol_inputs(const struct tune_protocol *p, const struct tune_value *entity, struct tune_value *inputs);

/* tune_protocol_shows - the target is one of those the experiment shows under these parameters (dimensions are None
 * there; what cannot be told without them is shown). */
bool tune_protocol_shows(const struct tune_protocol *p, const struct tune_target *t);

/* tune_experiment_refuses - 1 where these inputs cannot be measured (a rule not met, a value not supported), and why into
 * why[size]; 0: they can; -1: an expression failed. */
int tune_experiment_refuses(const struct tune_experiment *e, const struct tune_value *inputs, char *why, size_t size);

/* The command line of one run. Texts are the command's. */
struct tune_command {
    char **arguments;           /* [argument_count], NULL after them; without the program itself */
    int argument_count;
    char **environment;         /* [environment_count] "TUNE_INPUT_BATCH_SIZE=2", NULL after them */
    int environment_count;
    char *weights, *data;       /* what the inputs of these roles say: a model, a file; NULL: none */
    char **make;                /* [make_count] program and arguments that make the data file, NULL after them */
    int make_count;
};

struct tune_word { const char *name, *text; };

/* tune_input_variable - a character of an identifier as it stands in the name of its environment variable. */
char tune_input_variable(char c);

/* tune_experiment_command - what inputs[input_count] make of flags, formats, maps and values. words[count]: texts for
 * {name} in formats and make, before the experiment's own folders; {name} may also be an input, {} is the input's own
 * value. -1: an expression failed, an unknown {word}, a value that a map does not have. */
int tune_experiment_command(const struct tune_experiment *e, const struct tune_value *inputs, const struct tune_word *words,
                            int count, struct tune_command *command);
void tune_command_free(struct tune_command *command);

/* tune_space_describe - all of it as ado prints it: identifier, entity space, measurement space, sample store.
 * tune_experiment_describe - one experiment's page. tune_catalog_list. */
int tune_space_describe(const struct tune_space *s, const struct tune_protocol *protocols, const char *store_id, FILE *out);
int tune_experiment_describe(const struct tune_experiment *e, FILE *out);
int tune_catalog_list(const struct tune_catalog *c, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
