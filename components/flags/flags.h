/* flags.h - one table of options gives the parser, --help, --config, run folders and --describe.
 *
 * A program declares two tables in its own file: options and reported properties. Shared
 * groups come from the macros below; a later row with a shared name replaces that row's
 * default, range, unit and help, each where it is not NULL (and, if its `at` is not NULL, type
 * and place). Nothing repeats an option's name or default elsewhere. Example:
 *
 *     static struct { struct tune_flags tune; double noise; } my;
 *     static const struct tune_option my_options[] = {
 *         TUNE_TRAINING_OPTIONS(my.tune),
 *         {"grad-noise", TUNE_DOUBLE, &my.noise, "0", "[0,1]", "", "noise on the gradient"},
 *         {"lr", .value = "1e-4"},
 *         {"<folder>", TUNE_STRING, &my.folder, NULL, "", "", "taken without a flag, in order"},
 *         {0}
 *     };
 *
 * A row whose name begins with '<' is positional; it must be given unless it has a default. The last one may take all words
 * that are left: "<run...>"; its place holds the last of them, tune_flags_words all.
 * Precedence: the table's default < defaults/<program>/<model>.json < --resume's run < --config FILE < flag.
 * The boundary: getters read struct tune_flags; below them nobody knows flags exist. */
#ifndef TUNE_FLAGS_H
#define TUNE_FLAGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "flags/property.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;
struct tune_failure;
struct tune_flags;

enum tune_option_type {
    TUNE_INT,    /* int */
    TUNE_INT64,  /* int64_t */
    TUNE_DOUBLE, /* double */
    TUNE_BOOL,   /* bool; --x, --x=true, --x=false, --no-x */
    TUNE_STRING, /* const char *; NULL where the default is NULL and nothing was given */
    TUNE_CHOICE, /* const char *; range is "a|b|c" */
    TUNE_GROUP,  /* no option: a heading, see TUNE_OPTION_GROUP */
    TUNE_SERVE,  /* no option: see TUNE_OPTION_SERVED */
};

/* Around a type: what --resume RUN makes of the option. Without one, it comes from the run and must be what it was there. */
#define TUNE_FREE(type) ((enum tune_option_type)((type) | 0x100))       /* may change: no number of the run depends on it */
#define TUNE_BY_CONTENT(type) ((enum tune_option_type)((type) | 0x200)) /* a path: may change, what lies there is compared */
#define TUNE_OF_SESSION(type) ((enum tune_option_type)((type) | 0x400)) /* of one process: not taken from the run */

struct tune_option {
    const char *name;             /* "batch-size"; on the command line - and _ are equal; "<folder>": positional */
    enum tune_option_type type;
    void *at;                     /* where the value goes */
    const char *value;            /* the default, as one would type it; NULL: none */
    const char *range;            /* "[1,4096]", "(0,1]", "[0,inf)", "a|b|c"; NULL or "": any */
    const char *unit;             /* "tokens", "s"; "": none */
    const char *help;             /* one line */
};

/* Where a value came from. */
enum tune_source { TUNE_FROM_DEFAULT, TUNE_FROM_MODEL_DEFAULTS, TUNE_FROM_RUN, TUNE_FROM_CONFIG, TUNE_FROM_FLAG };

/* What the command line asks for instead of a run; tune_program_start serves it, a foreign main() may. */
enum tune_wish { TUNE_WISH_RUN, TUNE_WISH_HELP, TUNE_WISH_DESCRIBE, TUNE_WISH_LIST_MODELS, TUNE_WISH_VERSION };

struct tune_flags {
    /* model */
    const char *model, *dtype, *device, *activation_checkpointing;
    int threads;
    int64_t seed;
    /* data */
    const char *dataset, *format, *columns, *prompt_template, *chat_template, *train_on;
    const char *text_field, *response_template, *append_token, *eval_dataset;
    double train_split;
    int max_length, batch_size, accumulate, show_tokens;
    bool shuffle, packing, skip_bad_rows;
    /* optimizer and schedule */
    const char *optimizer, *decay, *schedule;
    double lr, beta1, beta2, eps, weight_decay, momentum, clip_norm, warmup_ratio, epochs, stop_after_seconds, until_stable;
    int64_t warmup_steps, max_steps, stop_at_step;
    /* adapters */
    const char *adapter, *base_dtype, *lora_targets, *lora_rank_pattern, *lora_alpha_pattern, *lora_layers;
    int lora_r; /* 0: a program without them */
    double lora_alpha, lora_dropout;
    bool lora_rslora, lora_dora;
    /* run */
    const char *output, *resume, *save_dtype, *logger; /* output of a resumed run: its folder */
    bool overwrite, allow_changed, save;
    int log_every, eval_every, save_every, keep_last, profile;
    /* evaluation */
    int64_t eval_rows;
    int patience;
    double min_delta;
    /* filled by tune_flags_parse */
    const char *program;                     /* the last part of argv[0] */
    int argc;
    char **argv;
    const struct tune_option *options;       /* the program's tables */
    const struct tune_property *properties;
    struct tune_flags_state *state;          /* sources and owned strings */
    const char *resume_checkpoint;           /* the checkpoint's folder to go on from; NULL: no --resume */
    bool resume_finished;                    /* that run came to its end there: nothing is left to do */
    int64_t resume_step;                     /* the step it is at, where that is the newest checkpoint; else 0 */
    bool *stable;                            /* where the logger notes that --until-stable is reached, and the loader sees it */
    /* filled by tune_program_start (program.h); 0 in a foreign program */
    const char *source;                      /* the recipe's own source as it was compiled; NULL: unknown */
    size_t source_size;
    double started_s;                        /* monotonic clock at program start */
    volatile int *stop_signal;               /* where the program's handler notes the signal that shall end the run */
    struct tune_failure *failure;            /* what to do when the program fails (core/failure.h) */
    volatile int *starting;                  /* 1 from tune_get_dataset until tune_get_logger makes the run folder (or until the
                                                first tune_loader_more): there is nothing to save, and the handler ends
                                                the program at once */
};

/* Behind the row of an int or bool option: where its value is not 0, tune_program_start calls service->serve in place of the run,
 * and ends. A later such row takes the place of an earlier one. */
#define TUNE_OPTION_SERVED(name, service) {name, TUNE_SERVE, (void *)(service), NULL, "", "", ""}
struct tune_service {
    int (*serve)(const struct tune_flags *flags, FILE *out); /* out: the program's output. -1 with an error */
};

/* tune_show_tokens - of --show-tokens: rows of --dataset as the model sees them (datasets/get_dataset.c). A recipe with rows of
 * its own has a service of its own. */
extern const struct tune_service tune_show_tokens;

/* Options between TUNE_OPTION_GROUP("name") and the next one stand under that heading; "": the program's own. */
#define TUNE_OPTION_GROUP(name) {name, TUNE_GROUP, NULL, NULL, "", "", ""}

/* The shared groups; f is the struct tune_flags. */
#define TUNE_MODEL_OPTIONS(f) \
    TUNE_OPTION_GROUP("model"), \
    {"model", TUNE_BY_CONTENT(TUNE_STRING), &(f).model, NULL, "", "", \
     "model folder, known name (see --list-models) or Hub id"}, \
    {"dtype", TUNE_CHOICE, &(f).dtype, "float32", "float32|bfloat16", "", \
     "activations; trained weights are float32 on the CPU"}, \
    {"activation-checkpointing", TUNE_FREE(TUNE_CHOICE), &(f).activation_checkpointing, "none", "none|full", "", \
     "full: keep each layer's input only and compute the rest again in backward"}, \
    {"device", TUNE_CHOICE, &(f).device, "cpu", "cpu", "", "where to compute"}, \
    {"threads", TUNE_FREE(TUNE_INT), &(f).threads, "0", "[0,4096]", "threads", \
     "0: OMP_NUM_THREADS, else as many as this process may use"}, \
    {"seed", TUNE_INT64, &(f).seed, "0", "[0,inf)", "", "of the data order and every random draw"}, \
    TUNE_OPTION_GROUP("")

#define TUNE_DATA_OPTIONS(f) \
    TUNE_OPTION_GROUP("data"), \
    {"dataset", TUNE_BY_CONTENT(TUNE_STRING), &(f).dataset, NULL, "", "", \
     "a .jsonl, .json (array), .csv, .tsv (first line: names) or .txt file; a row of text is a paragraph"}, \
    {"format", TUNE_CHOICE, &(f).format, "auto", "auto|text|alpaca|instruct|prompt-completion|messages|sharegpt", "", \
     "of rows; auto: by the columns of the first ones. Elsewhere messages is called openai, chat or chat_template, sharegpt " \
     "conversations, instruct input_output, prompt-completion prompt/response, text completion or pretraining"}, \
    {"columns", TUNE_STRING, &(f).columns, NULL, "", "", \
     "the file's names for the format's columns or the template's slots: \"prompt=question,completion=answer\""}, \
    {"prompt-template", TUNE_BY_CONTENT(TUNE_STRING), &(f).prompt_template, NULL, "", "", \
     "a file of sections [prompt] and [completion] with {column} slots, {{ and }} for braces; or instruction, sql, tone"}, \
    {"chat-template", TUNE_BY_CONTENT(TUNE_STRING), &(f).chat_template, NULL, "", "", \
     "how conversations are written: a Jinja file, one of the model's templates, or chatml, llama3, phi3, plain; default: the " \
     "model's own"}, \
    {"train-on", TUNE_CHOICE, &(f).train_on, "default", "default|completion|assistant|last|all", "", \
     "assistant, last: all of the assistant's messages, its last one; default: completion, of messages and sharegpt assistant, " \
     "of text all (what follows --response-template)"}, \
    {"text-field", TUNE_STRING, &(f).text_field, NULL, "", "", \
     "the field to train on; found from the first row if not given"}, \
    {"response-template", TUNE_STRING, &(f).response_template, NULL, "", "", \
     "train only on what follows this text in a row"}, \
    {"append-token", TUNE_STRING, &(f).append_token, NULL, "", "", \
     "a token to put, and train on, after each text, so that the model learns to end: \"<|endoftext|>\" for one, or none; " \
     "default: the model's own behind answers, none in text and conversations"}, \
    {"train-split", TUNE_DOUBLE, &(f).train_split, "1", "(0,1]", "", \
     "share of rows to train on; the others are held out for evaluation"}, \
    {"max-length", TUNE_INT, &(f).max_length, "512", "[1,inf)", "tokens", \
     "longer rows are cut and counted; a row that loses all its answer is left out"}, \
    {"batch-size", TUNE_INT, &(f).batch_size, "1", "[1,4096]", "rows", "rows of one micro-batch; with --packing: packs of rows"}, \
    {"accumulate", TUNE_INT, &(f).accumulate, "1", "[1,65536]", "micro-batches", "micro-batches of one step"}, \
    {"packing", TUNE_BOOL, &(f).packing, "false", "", "", \
     "several rows, none of which sees another, one behind the other in each row of a batch, up to --max-length tokens: next " \
     "to no padding; a step takes as many rows as fit, and the number of steps is an estimate"}, \
    {"shuffle", TUNE_BOOL, &(f).shuffle, "true", "", "", "a new order each epoch, by seed and epoch"}, \
    {"skip-bad-rows", TUNE_FREE(TUNE_BOOL), &(f).skip_bad_rows, "false", "", "", \
     "leave rows out that cannot be read, and count them, instead of stopping"}, \
    {"show-tokens", TUNE_OF_SESSION(TUNE_INT), &(f).show_tokens, "0", "[0,inf)", "rows", \
     "print that many rows as the model sees them, and stop"}, \
    TUNE_OPTION_SERVED("show-tokens", &tune_show_tokens), \
    TUNE_OPTION_GROUP("")

#define TUNE_LORA_OPTIONS(f) \
    TUNE_OPTION_GROUP("adapters"), \
    {"lora-r", TUNE_INT, &(f).lora_r, "16", "[1,16384]", "", "rank of the adapters"}, \
    {"lora-alpha", TUNE_DOUBLE, &(f).lora_alpha, "32", "(0,1e9]", "", "adapters are scaled by alpha/r"}, \
    {"lora-dropout", TUNE_DOUBLE, &(f).lora_dropout, "0", "[0,1)", "", "share of an adapter's input that is dropped in training"}, \
    {"lora-rslora", TUNE_BOOL, &(f).lora_rslora, "false", "", "", "scale by alpha/sqrt(r) instead"}, \
    {"lora-dora", TUNE_BOOL, &(f).lora_dora, "false", "", "", "DoRA: train the rows' lengths by themselves"}, \
    {"lora-targets", TUNE_STRING, &(f).lora_targets, "all-linear", "", "", \
     "modules that get an adapter: ends of their names with commas (q_proj,v_proj), or all-linear"}, \
    {"lora-rank-pattern", TUNE_STRING, &(f).lora_rank_pattern, NULL, "", "", \
     "ranks of some modules: k_proj=4,layers.0.self_attn.q_proj=32; the first that fits holds"}, \
    {"lora-alpha-pattern", TUNE_STRING, &(f).lora_alpha_pattern, NULL, "", "", "alphas of some modules, written alike"}, \
    {"lora-layers", TUNE_STRING, &(f).lora_layers, NULL, "", "", "layers that get adapters: 0,1,8-15; all if not given"}, \
    {"adapter", TUNE_STRING, &(f).adapter, NULL, "", "", \
     "begin from this PEFT folder's adapter, of its rank, targets and scales; --lora-dropout may be another"}, \
    {"base-dtype", TUNE_CHOICE, &(f).base_dtype, "float32", "float32|bfloat16|nf4", "", \
     "of the frozen model's matrices; nf4: four bits a number (QLoRA), embedding and output projection bfloat16"}, \
    TUNE_OPTION_GROUP("")

#define TUNE_OPTIMIZER_OPTIONS(f) \
    TUNE_OPTION_GROUP("optimizer"), \
    {"optimizer", TUNE_CHOICE, &(f).optimizer, "adamw", "adamw|sgd", "", "update rule"}, \
    {"lr", TUNE_DOUBLE, &(f).lr, "2e-5", "[0,1000]", "", "peak learning rate"}, \
    {"schedule", TUNE_CHOICE, &(f).schedule, "cosine", "constant|linear|cosine", "", \
     "of the learning rate, after warm-up"}, \
    {"warmup-ratio", TUNE_DOUBLE, &(f).warmup_ratio, "0.03", "[0,1]", "", \
     "share of the steps in which lr rises linearly"}, \
    {"warmup-steps", TUNE_INT64, &(f).warmup_steps, "-1", "[-1,inf)", "steps", \
     "-1: by --warmup-ratio"}, \
    {"beta1", TUNE_DOUBLE, &(f).beta1, "0.9", "[0,1)", "", "AdamW, first moment"}, \
    {"beta2", TUNE_DOUBLE, &(f).beta2, "0.999", "[0,1)", "", "AdamW, second moment"}, \
    {"eps", TUNE_DOUBLE, &(f).eps, "1e-8", "(0,1]", "", "AdamW, added to the root"}, \
    {"momentum", TUNE_DOUBLE, &(f).momentum, "0", "[0,1)", "", "SGD"}, \
    {"weight-decay", TUNE_DOUBLE, &(f).weight_decay, "0.01", "[0,1000]", "", "decoupled from the gradient"}, \
    {"decay", TUNE_CHOICE, &(f).decay, "matrices", "matrices|all", "", \
     "what decays; matrices: no norm, no bias"}, \
    {"clip-norm", TUNE_DOUBLE, &(f).clip_norm, "1", "[0,inf]", "", \
     "largest gradient norm over all parameters; 0: no clipping"}, \
    {"epochs", TUNE_DOUBLE, &(f).epochs, "1", "(0,inf)", "epochs", "passes over the training rows"}, \
    {"max-steps", TUNE_INT64, &(f).max_steps, "-1", "[-1,1e15]", "steps", \
     "end after that many steps instead; -1: by --epochs; 0: evaluate only"}, \
    {"stop-at-step", TUNE_OF_SESSION(TUNE_INT64), &(f).stop_at_step, "0", "[0,inf)", "steps", \
     "save and stop when that many are done, as after a signal: the schedule is untouched, no last evaluation; 0: never"}, \
    {"stop-after-seconds", TUNE_OF_SESSION(TUNE_DOUBLE), &(f).stop_after_seconds, "-1", "[-1,inf)", "s", \
     "stop so at the first step that ends this long after this process's first began; -1: never"}, \
    {"until-stable", TUNE_OF_SESSION(TUNE_DOUBLE), &(f).until_stable, "0", "[0,100]", "%", \
     "stop so at the first logged step where the 95 % confidence interval of the tokens/s of at least 10 steps after warm-up " \
     "(MSER) is within this of their mean; 0: never"}, \
    TUNE_OPTION_GROUP("")

#define TUNE_RUN_OPTIONS(f) \
    TUNE_OPTION_GROUP("run"), \
    {"output", TUNE_OF_SESSION(TUNE_STRING), &(f).output, NULL, "", "", \
     "run folder to make; default runs/<program>-<date>-<time>"}, \
    {"overwrite", TUNE_OF_SESSION(TUNE_BOOL), &(f).overwrite, "false", "", "", \
     "remove the run folder that is there first; with --resume of an older checkpoint, what came after it"}, \
    {"resume", TUNE_OF_SESSION(TUNE_STRING), &(f).resume, NULL, "", "", \
     "go on with a run: its folder (the newest checkpoint), or one checkpoint in it; all options come from there"}, \
    {"allow-changed", TUNE_OF_SESSION(TUNE_BOOL), &(f).allow_changed, "false", "", "", \
     "resume though options, data, model or thread count are not what they were, and note it in the run folder"}, \
    {"log-every", TUNE_FREE(TUNE_INT), &(f).log_every, "1", "[1,100000]", "steps", "steps between log lines"}, \
    {"logger", TUNE_FREE(TUNE_STRING), &(f).logger, "jsonl", "", "", \
     "what to write besides the run folder's own metrics, separated by commas: csv, tensorboard"}, \
    {"save-every", TUNE_FREE(TUNE_INT), &(f).save_every, "0", "[0,inf)", "steps", \
     "steps between checkpoints; 0: at the end only, and of --eval-every the best one"}, \
    {"save", TUNE_FREE(TUNE_BOOL), &(f).save, "true", "", "", \
     "a checkpoint where the run ends; --no-save: none there, for measurements, which may diverge too; --save-every and " \
     "--eval-every save as ever"}, \
    {"keep-last", TUNE_FREE(TUNE_INT), &(f).keep_last, "0", "[0,inf)", "checkpoints", \
     "keep that many newest ones, and the best and the final one; 0: all"}, \
    {"save-dtype", TUNE_CHOICE, &(f).save_dtype, "as-read", "as-read|float32|bfloat16|float16", "", \
     "of the saved weights; as-read is float32 for adapters"}, \
    {"profile", TUNE_FREE(TUNE_INT), &(f).profile, "0", "[0,1000000]", "steps", \
     "measure where the time of that many steps goes, after one or two that warm up: profile.txt, profile.json, and " \
     "profile.trace.json for chrome://tracing"}, \
    TUNE_OPTION_GROUP("")

#define TUNE_EVALUATION_OPTIONS(f) \
    TUNE_OPTION_GROUP("evaluation"), \
    {"eval-every", TUNE_FREE(TUNE_INT), &(f).eval_every, "0", "[0,inf)", "steps", \
     "steps between evaluations on the rows held out; 0: at the end only"}, \
    {"eval-dataset", TUNE_BY_CONTENT(TUNE_STRING), &(f).eval_dataset, NULL, "", "", \
     "a file of rows to evaluate on, read as --dataset is, instead of a part of it"}, \
    {"eval-rows", TUNE_INT64, &(f).eval_rows, "0", "[0,inf)", "rows", \
     "evaluate on that many of them, drawn once by the seed; 0: on all"}, \
    {"patience", TUNE_INT, &(f).patience, "0", "[0,inf)", "evaluations", \
     "end the run after that many in a row without a lower loss; 0: never"}, \
    {"min-delta", TUNE_DOUBLE, &(f).min_delta, "0", "[0,inf)", "nats/token", \
     "for --patience: lower by more than this is lower"}, \
    TUNE_OPTION_GROUP("")

#define TUNE_TRAINING_OPTIONS(f) \
    TUNE_MODEL_OPTIONS(f), TUNE_DATA_OPTIONS(f), TUNE_OPTIMIZER_OPTIONS(f), TUNE_EVALUATION_OPTIONS(f), TUNE_RUN_OPTIONS(f)

/* What a recipe with adapters reports beside that. */
#define TUNE_LORA_PROPERTIES \
    {"trained_parameters", "", "weights that were trained"}, \
    {"merge_difference", "", "final norm's outputs, base and adapter against merged, of the last checkpoint: distance / norm"}

/* What every training recipe reports; up to is_valid, ado's target properties in their order. */
#define TUNE_TRAINING_PROPERTIES \
    {"gpu_compute_utilization_min", "%", "time with a kernel running, average over train_runtime, of the least busy GPU; 0: none"}, \
    {"gpu_compute_utilization_avg", "%", "the same, average over the GPUs"}, \
    {"gpu_compute_utilization_max", "%", "of the GPU with the most"}, \
    {"gpu_memory_utilization_min", "%", "memory in use, average over train_runtime, of the GPU with the least; 0 without"}, \
    {"gpu_memory_utilization_avg", "%", "the same, average over the GPUs"}, \
    {"gpu_memory_utilization_max", "%", "of the GPU with the most"}, \
    {"gpu_memory_utilization_peak", "%", "highest of any GPU at any time; absent without a GPU"}, \
    {"gpu_power_watts_min", "W", "power drawn, average over train_runtime, of the GPU with the least; 0 without"}, \
    {"gpu_power_watts_avg", "W", "the same, average over the GPUs"}, \
    {"gpu_power_watts_max", "W", "of the GPU with the most"}, \
    {"gpu_power_percent_min", "%", "the same as a share of the power limit that is enforced"}, \
    {"gpu_power_percent_avg", "%", "the same, average over the GPUs"}, \
    {"gpu_power_percent_max", "%", "of the GPU with the most"}, \
    {"cpu_compute_utilization", "%", "process time / train_runtime; 100 is one core"}, \
    {"cpu_memory_utilization", "%", "memory of the machine in use, average over train_runtime"}, \
    {"train_runtime", "s", "step loop, from the first step's begin to the last one's end"}, \
    {"train_samples_per_second", "1/s", "rows of finished steps / train_runtime"}, \
    {"train_steps_per_second", "1/s", "finished steps / train_runtime"}, \
    {"train_tokens_per_second", "tokens/s", "positions computed, padding included, / train_runtime"}, \
    {"train_tokens_per_gpu_per_second", "tokens/s", "the same / max(1, GPUs)"}, \
    {"dataset_tokens_per_second", "tokens/s", "tokens of the rows of finished steps, cut to max-length, / train_runtime"}, \
    {"dataset_tokens_per_second_per_gpu", "tokens/s", "the same / max(1, GPUs)"}, \
    {"is_valid", "", "1: the run came to its end and its figures hold"}, \
    {"training_steps", "steps", "optimizer steps finished"}, \
    {"model_load_time", "s", "opening and reading the model folder"}, \
    {"time_to_first_step_s", "s", "from program start to the end of the first step"}, \
    {"setup_s", "s", "of it before that step began: reading tokenizer, data and model, taking memory"}, \
    {"estimated_memory_bytes", "bytes", "planned before the first step: highest anonymous memory of the process"}, \
    {"peak_anonymous_bytes", "bytes", "highest anonymous memory seen, at logged steps, evaluations and the end; no pages of files"}, \
    {"peak_memory_bytes", "bytes", "highest resident memory of the process, pages of files included"}, \
    {"model_flops_per_second", "FLOP/s", "6N per token (frozen ones 4N) + 6LTHD causal attention, no recompute, / train_runtime"}, \
    {"padding_share", "%", "padding among the positions computed"}, \
    {"packing_efficiency", "%", "tokens of rows among the positions computed, 100 - padding_share"}, \
    {"loss_first", "nats/token", "training loss of the first step"}, \
    {"loss_last", "nats/token", "training loss of the last step"}, \
    {"tokens_per_second_stable", "tokens/s", "of this process's steps after warm-up (--until-stable); absent under 10 of them"}, \
    {"tokens_per_second_stable_half_width", "tokens/s", "half of its 95 % confidence interval"}, \
    {"eval_loss", "nats/token", "token-weighted loss on the rows held out, the last one; absent without any"}, \
    {"eval_perplexity", "", "exp(eval_loss)"}, \
    {"best_eval_loss", "nats/token", "the lowest of the run"}, \
    {"best_eval_step", "steps", "the step that had it: checkpoint-best"}

/* tune_flags_parse - defaults, the model's defaults, --config and flags into the places the table names.
 * flags starts zeroed. argv is borrowed for the life of flags. Flags are --name value, --name=value, --name and --no-name
 * (bool), -- (only positional ones follow); of a flag given twice the last one holds. --config FILE holds an object
 * {option: value} (names with - or _; null: not given), so a run folder's "options" can be used again; it may be given
 * more than once. --resume RUN (a row TUNE_RUN_OPTIONS has) takes RUN's options, all but those of a session, and refuses a
 * value given besides that differs, except in rows that may change; --allow-changed lets all of them.
 * Missing required things (model, dataset) are the getters' to miss.
 * 0, or -1 with kind USAGE: unknown flag (names the nearest), value that is no number or outside its range, bad config, a
 * changed option; kind FAILED: no such run, no checkpoint in it.
 * tune_flags_free - the strings parsing made: what TUNE_STRING and TUNE_CHOICE places point to. */
int tune_flags_parse(struct tune_flags *flags, int argc, char **argv, const struct tune_option *options,
                     const struct tune_property *properties);
void tune_flags_free(struct tune_flags *flags);

/* tune_flags_serve - call what serves an option in place of the run (struct tune_service). 1: it did, and the program shall
 * end; 0: none was asked for; -1: its error. */
int tune_flags_serve(const struct tune_flags *flags, FILE *out);

/* tune_flags_wish - what --help, -h, --describe, --list-models or --version asked for. */
enum tune_wish tune_flags_wish(const struct tune_flags *flags);

/* tune_flags_source - where the named option's value came from; no such option: TUNE_FROM_DEFAULT.
 * tune_flags_given - it came from a flag or --config.
 * tune_source_name - "default", "model defaults", "run", "config", "flag". */
enum tune_source tune_flags_source(const struct tune_flags *flags, const char *name);
bool tune_flags_given(const struct tune_flags *flags, const char *name);
const char *tune_source_name(enum tune_source source);

/* tune_flags_saves - whether a checkpoint may be written, or gone on from. */
bool tune_flags_saves(const struct tune_flags *flags);

/* tune_flags_config - the i-th file given by --config; NULL after the last. */
const char *tune_flags_config(const struct tune_flags *flags, int i);

/* tune_flags_words - what a positional row "<...>" took, argv's texts; *count of them. */
const char *const *tune_flags_words(const struct tune_flags *flags, int *count);

/* tune_flags_each - the i-th option (rows of one name are merged into one) and its value as it was written (NULL: none)
 * for showing; NULL after the last. Borrowed until tune_flags_free. */
const struct tune_option *tune_flags_each(const struct tune_flags *flags, int i, const char **text);

/* tune_flags_json - the resolved options as an object {name: value}; names with '_'; an infinity is the string "inf".
 * tune_flags_sources_json - {name: "default" | "model defaults" | "run" | "config" | "flag"}, same order.
 * tune_flags_changes_json - {"--name": {"was", "now"}} of options that --allow-changed let differ from the resumed run's.
 * tune_flags_describe - what --describe prints: {program, options: [{name, flag, type, default, value, source, range,
 * choices, unit, help, group, positional}], properties: [{name, unit, help}]}; range is the table's text. The caller frees each; NULL with an error: out of memory. */
struct cJSON *tune_flags_json(const struct tune_flags *flags);
struct cJSON *tune_flags_sources_json(const struct tune_flags *flags);
struct cJSON *tune_flags_changes_json(const struct tune_flags *flags);
struct cJSON *tune_flags_describe(const struct tune_flags *flags);

/* tune_flags_help - the text of --help, live values as defaults, at most 100 columns, onto stream. */
void tune_flags_help(const struct tune_flags *flags, const char *what, FILE *stream);

/* tune_flags_command - the shell command line that repeats this run, into text (cut to size). */
const char *tune_flags_command(const struct tune_flags *flags, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
