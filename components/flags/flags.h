/* flags.h - one table of options gives the parser, --help, --config, run folders and --describe.
 *
 * A program declares two tables in its own file: options and reported properties. Shared groups
 * come from the macros below. A later row with the name of an earlier one changes it. Default,
 * range, unit and help replace the earlier ones unless NULL. If `at` is not NULL, type and place
 * change too. So an option's name and default stand in one place. Example:
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
 * A row whose name begins with '<' is positional. It must be given unless it has a default. The
 * last one may take all remaining words: "<run...>". Its place then holds the last word;
 * tune_flags_words has all.
 *
 * A later source wins: the table's default, defaults/<program>/<model>.json or defaults/sizes.json,
 * the run of --resume, --config, flags. Getters read struct tune_flags; nothing below them knows
 * about flags. */
#ifndef TUNE_FLAGS_H
#define TUNE_FLAGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "checkpoints/options.h"
#include "datasets/options.h"
#include "evaluators/options.h"
#include "flags/property.h"
#include "generators/options.h"
#include "loggers/options.h"
#include "losses/options.h"
#include "models/options.h"
#include "optimizers/options.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;
struct tune_device;
struct tune_failure;
struct tune_flags;

enum tune_option_type {
    TUNE_INT,    /* int */
    TUNE_INT64,  /* int64_t */
    TUNE_DOUBLE, /* double */
    TUNE_BOOL,   /* bool; --x, --x=true, --x=false, --no-x */
    TUNE_INTERVAL, /* double: whole steps, a share of the run below 1, or "epoch", which is
                      TUNE_EACH_EPOCH (core/progress.h) */
    TUNE_STRING, /* const char *; NULL if the default is NULL and nothing was given */
    TUNE_CHOICE, /* const char *; range is "a|b|c" */
    TUNE_CHOICES, /* const char *; one of the words, or several with commas between them */
    TUNE_ENUM,   /* the same into an int or enum: 0 for a, 1 for b, ... With the range TUNE_SWITCH,
                    --x is --x=on and --no-x is --x=off; "--x auto" works too */
    TUNE_DTYPE,  /* the same into an enum tune_dtype; "as-read" is TUNE_AS_READ, any other word
                    TUNE_UNKNOWN_DTYPE */
    TUNE_GROUP,  /* no option: a heading, see TUNE_OPTION_GROUP */
    TUNE_SERVE,  /* no option: see TUNE_OPTION_SERVED */
};

#define TUNE_SWITCH "auto|off|on"

/* Added to a type: how --resume treats the option. Without one, its value comes from the run and
 * must not change. */
/* may change: no number of the run depends on it */
#define TUNE_FREE(type) ((enum tune_option_type)((type) | 0x100))
/* a path that may change; its contents are compared */
#define TUNE_BY_CONTENT(type) ((enum tune_option_type)((type) | 0x200))
/* belongs to one process: not taken from the run */
#define TUNE_OF_SESSION(type) ((enum tune_option_type)((type) | 0x400))
/* a string that may be given several times: the values are joined by commas */
#define TUNE_JOINED(type) ((enum tune_option_type)((type) | 0x800))
/* options of another program: the next word is the value, even if it begins with -- */
#define TUNE_FOREIGN(type) ((enum tune_option_type)((type) | 0x1000))

struct tune_option {
    /* "batch-size"; - and _ are equal on the command line; "<folder>": positional */
    const char *name;
    enum tune_option_type type;
    void *at;                     /* place of the value */
    const char *value;            /* default, as one would type it; NULL: none */
    const char *range;            /* "[1,4096]", "(0,1]", "[0,inf)", "a|b|c"; NULL or "": any */
    const char *unit;             /* "tokens", "s"; "": none */
    const char *help;             /* --help shows the first sentence, --help all the whole text */
};

/* The source of a value. */
enum tune_source {
    TUNE_FROM_DEFAULT, TUNE_FROM_MODEL_DEFAULTS, TUNE_FROM_RUN, TUNE_FROM_CONFIG, TUNE_FROM_FLAG
};

/* A request on the command line in place of a run. tune_program_start serves it; a foreign main()
 * may. */
enum tune_wish {
    TUNE_WISH_RUN,
    TUNE_WISH_HELP,
    TUNE_WISH_DESCRIBE,
    TUNE_WISH_LIST_MODELS,
    TUNE_WISH_VERSION,
    TUNE_WISH_SHOW_CONFIG,
    TUNE_WISH_HELP_ALL,
};

/* The options. A row of a table writes into a component's own struct. It writes into a member here
 * if several components, or the recipe, use it. */
struct tune_flags {
    const char *model, *device, *dataset, *adapter, *resume, *logger, *reference, *add_tokens;
    const char *plan_gpu;
    enum tune_dtype dtype, base_dtype;
    int threads, activation_checkpointing, show_tokens, profile;
    int64_t seed, eval_rows;
    double clip_norm, label_smoothing, neftune_alpha;
    int logits_chunk; /* MiB; 0: the device's own size */
    bool save, card, plan_memory, requeue, exact_ranks;
    int ranks;        /* processes that train together; 0: those of a launcher, else one */
    enum tune_shard shard;
    double timeout_s; /* how long a rank waits for another */
    struct tune_dataset_options data;
    struct tune_loader_options loader;
    struct tune_lora_options lora; /* r is 0 in a program without adapters */
    struct tune_preference_options preference;
    struct tune_generation_options generate;
    struct tune_optimizer_options optimizer;
    struct tune_schedule schedule;
    struct tune_logger_options log; /* a resumed run: its own folder */
    struct tune_evaluator_options eval;
    struct tune_preview_options preview;
    struct tune_scorecard_options scorecard;
    struct tune_checkpoint_options checkpoint;
    /* filled by tune_flags_parse */
    const char *program;                     /* last part of argv[0] */
    int argc;
    char **argv;
    const struct tune_option *options;       /* the program's tables */
    const struct tune_property *properties;
    struct tune_flags_state *state;          /* sources, and strings it owns */
    const char *resume_checkpoint;           /* checkpoint to resume from; NULL: a new run */
    bool resume_finished;                    /* that run is finished: nothing is left to do */
    /* step of resume_checkpoint if it is the newest one; else 0 */
    int64_t resume_step;
    int resume_ranks;                        /* ranks of that run; 0: a new run */
    /* Filled by tune_program_start (program.h), as are source, source_size and started_s of log.
     * 0 in a foreign program. */
    /* the program's handler stores the signal that ends the run here */
    volatile int *stop_signal;
    /* set by tune_get_comm (comm/comm.h); NULL: one rank. tune_flags_free closes it */
    struct tune_comm *comm;
    void (*close_comm)(struct tune_comm *comm);
    bool (*comm_speaks)(struct tune_comm *comm, bool told);
    int (*comm_wait_told)(struct tune_comm *comm, double seconds);
    void (*comm_wait_saved)(struct tune_comm *comm, double seconds);
    /* print why, and end the program, from any thread; NULL: nobody may */
    void (*give_up)(const char *why);
    int bound_cores; /* that tune_get_comm bound this rank to; 0: it did not */
    int rank_threads; /* where `threads` is 0: this rank's share of the cores; 0: all */
    int crowded_cores; /* the cores of this machine, if it has fewer than ranks; 0: enough */
    /* likewise, for tune_get_device: which of this machine's ranks we are; what joins the device to
     * the comm; NULL: nothing */
    int place;
    int (*share_device)(struct tune_comm *comm, struct tune_device *dev);
    struct tune_failure *failure; /* what to do if the program fails (core/failure.h) */
    /* 1 from tune_get_dataset until tune_get_logger makes the run folder, or until the first
     * tune_loader_more. Then there is nothing to save, and the handler ends the program at once. */
    volatile int *starting;
};

/* Put this after the row of an int or bool option. If its value is not 0, tune_program_start calls
 * service->serve in place of the run, and ends. A later such row replaces an earlier one. */
#define TUNE_OPTION_SERVED(name, service) {name, TUNE_SERVE, (void *)(service), NULL, "", "", ""}
struct tune_service {
    /* out: the program's output. -1 with an error */
    int (*serve)(const struct tune_flags *flags, FILE *out);
};

/* tune_show_tokens - the service of --show-tokens: rows of --dataset as the model sees them. A
 * recipe with rows of its own has its own service. */
extern const struct tune_service tune_show_tokens;

/* tune_plan_memory - the service of --plan-memory: the memory plan of the run, without its data. */
extern const struct tune_service tune_plan_memory;

/* Options after TUNE_OPTION_GROUP("name") stand under that heading; "": the program's own. */
#define TUNE_OPTION_GROUP(name) {name, TUNE_GROUP, NULL, NULL, "", "", ""}

/* Only --help all lists the options after TUNE_OPTION_MORE, up to the end of the group. */
#define TUNE_OPTION_MORE {"", TUNE_GROUP, NULL, "more", "", "", ""}

/* The shared groups; f is the struct tune_flags. --help shows a text's first sentence. */
#define TUNE_MODEL_OPTIONS(f) \
    TUNE_OPTION_GROUP("model"), \
    {"model", TUNE_BY_CONTENT(TUNE_STRING), &(f).model, NULL, "", "", \
     "model folder, known name (see --list-models) or Hub id"}, \
    {"dtype", TUNE_DTYPE, &(f).dtype, "float32", "float32|bfloat16", "", \
     "format of activations. On the CPU, weights that are trained are float32"}, \
    {"activation-checkpointing", TUNE_FREE(TUNE_ENUM), &(f).activation_checkpointing, "none", \
     "none|full", "", \
     "full: saves memory, takes time. Only each layer's input is kept, and backward computes the " \
     "rest again"}, \
    {"device", TUNE_STRING, &(f).device, "cpu", "", "", "cpu, cuda, or cuda:N for GPU N"}, \
    {"threads", TUNE_FREE(TUNE_INT), &(f).threads, "0", "[0,4096]", "threads", \
     "0: OMP_NUM_THREADS, else one for each core"}, \
    {"seed", TUNE_INT64, &(f).seed, "0", "[0,inf)", "", \
     "seed of the data order and of all draws"}, \
    TUNE_OPTION_GROUP("")

#define TUNE_DATA_OPTIONS(f) \
    TUNE_OPTION_GROUP("data"), \
    {"dataset", TUNE_BY_CONTENT(TUNE_STRING), &(f).dataset, NULL, "", "", \
     "file of rows: .jsonl, .json, .csv, .tsv, .txt or .parquet; or OWNER/NAME of the Hub, once " \
     "tools/download.sh --dataset brought it. A .json file holds an array. The first line of " \
     ".csv and .tsv names the columns. In a .txt file, a row is a paragraph. Several: " \
     "a.jsonl,b.csv. Then --format, --train-on, --text-field and the templates take one " \
     "value for all files, or one for each with commas between; --columns, with semicolons"}, \
    {"mix", TUNE_STRING, &(f).loader.mix, NULL, "", "", \
     "shares of several files: 0.7,0.3. An epoch then has the most rows that keep the shares " \
     "while no row comes twice. Default: every row once"}, \
    {"format", TUNE_CHOICES, &(f).data.row_format, "auto", \
     "auto|text|alpaca|alpaca-chat|instruct|prompt-completion|messages|sharegpt", "", \
     "format of the rows. auto: decided by the columns of the first rows. Other programs call " \
     "messages openai, chat or chat_template; sharegpt conversations; instruct input_output; " \
     "prompt-completion prompt/response; text completion or pretraining. alpaca-chat: alpaca's " \
     "columns as a conversation, as in LLaMA-Factory"}, \
    {"columns", TUNE_STRING, &(f).data.columns, NULL, "", "", \
     "names of columns in the file: \"prompt=question,completion=answer\". Before the '=' stands " \
     "what the format or the template calls it"}, \
    {"prompt-template", TUNE_BY_CONTENT(TUNE_STRING), &(f).data.prompt_template, NULL, "", "", \
     "file with a prompt template; or instruction, sql, tone. It has the sections [prompt] and " \
     "[completion], with {column} slots; {{ and }} are braces"}, \
    {"chat-template", TUNE_BY_CONTENT(TUNE_STRING), &(f).data.chat_template, NULL, "", "", \
     "layout of conversations: Jinja file, chatml, llama3, phi3, plain. A name may " \
     "also be one of the model's templates. Default: the model's own"}, \
    {"train-on", TUNE_CHOICES, &(f).data.train_on, "default", \
     "default|completion|assistant|last|all", \
     "", \
     "which part of a row is trained on. assistant: all messages of the assistant. last: the " \
     "last one. The default is completion; for messages and sharegpt it is assistant. For text " \
     "it is all, or what follows --response-template"}, \
    {"train-split", TUNE_DOUBLE, &(f).loader.train_split, "1", "(0,1]", "", \
     "share of rows to train on. The others are held out for evaluation"}, \
    {"max-length", TUNE_INT, &(f).data.max_length, "512", "[1,inf)", "tokens", \
     "longest row. Longer rows are cut and counted; a row that loses its whole answer is left " \
     "out"}, \
    {"batch-size", TUNE_INT, &(f).loader.batch_size, "1", "[1,4096]", "rows", \
     "rows of a micro-batch. With --packing: packs of rows"}, \
    {"accumulate", TUNE_INT, &(f).loader.accumulate, "1", "[1,65536]", "micro-batches", \
     "micro-batches of a step"}, \
    {"pad-to-multiple-of", TUNE_INT, &(f).loader.pad_to_multiple_of, "0", "[0,4096]", "positions", \
     "round batch lengths up. At most to max-length. 0: to a multiple of 64 on a GPU, else not"}, \
    {"packing", TUNE_BOOL, &(f).loader.packing, "false", "", "", \
     "put several rows into one row of a batch. No row sees another. There is little padding. A " \
     "step takes as many rows as fit, so the number of steps is an estimate"}, \
    {"plan-memory", TUNE_OF_SESSION(TUNE_BOOL), &(f).plan_memory, "false", "", "", \
     "say what memory the run takes, and end. Exit code 3: it does not fit. A known model and " \
     "the data need not be here"}, \
    TUNE_OPTION_SERVED("plan-memory", &tune_plan_memory), \
    {"show-tokens", TUNE_OF_SESSION(TUNE_INT), &(f).show_tokens, "0", "[0,inf)", "rows", \
     "rows to print as the model sees them. Nothing is trained"}, \
    TUNE_OPTION_SERVED("show-tokens", &tune_show_tokens), \
    TUNE_OPTION_MORE, \
    {"plan-gpu", TUNE_OF_SESSION(TUNE_STRING), &(f).plan_gpu, NULL, "", "", \
     "with --plan-memory and --device cuda: plan for this GPU, which need not be here. " \
     "build/fit --gpu list prints the names"}, \
    {"limit", TUNE_INT64, &(f).data.limit, "0", "[0,inf)", "rows", \
     "take only the first rows of --dataset; 0: all. Of several files, each is limited. Held-out " \
     "rows are among them; --eval-dataset is read whole"}, \
    {"text-field", TUNE_STRING, &(f).data.text_field, NULL, "", "", \
     "field to train on. Default: found from the first row"}, \
    {"neftune-alpha", TUNE_DOUBLE, &(f).neftune_alpha, "0", "[0,inf)", "", \
     "NEFTune: noise on embedded tokens in training, mostly 5 to 15; 0: none"}, \
    {"response-template", TUNE_STRING, &(f).data.response_template, NULL, "", "", \
     "train only on what follows this text in a row"}, \
    {"append-token", TUNE_STRING, &(f).data.append_token, NULL, "", "", \
     "token that ends each text: \"<|endoftext|>\", or none. It is trained on, so the model " \
     "learns to end. Default: the model's own after texts and answers, none in conversations"}, \
    {"add-tokens", TUNE_STRING, &(f).add_tokens, NULL, "", "", \
     "special tokens to add to the tokenizer: '<|im_start|>,<|im_end|>'. A row of the embedding " \
     "that is not there yet begins as the mean of the others. Adapters need --modules-to-save"}, \
    {"chunk", TUNE_ENUM, &(f).data.chunk, "auto", TUNE_SWITCH, "", \
     "part long texts into pieces of --max-length instead of cutting them. auto: only a .txt " \
     "file without empty lines"}, \
    {"shuffle", TUNE_BOOL, &(f).loader.shuffle, "true", "", "", \
     "a new order in each epoch, by seed and epoch"}, \
    {"split-by", TUNE_ENUM, &(f).loader.split_by, "content", "content|number", "", \
     "what decides which rows --train-split holds out. content: copies of a row fall on one " \
     "side. number: the row's number, as in runs of earlier versions"}, \
    {"strict", TUNE_BOOL, &(f).data.strict, "false", "", "", \
     "refuse conversations with two turns of one speaker in a row, the assistant first, a late " \
     "system message, a developer, or keys of another format. Otherwise they are taken, changed " \
     "where the chat template does not take them, and counted"}, \
    {"skip-bad-rows", TUNE_FREE(TUNE_BOOL), &(f).data.skip_bad_rows, "false", "", "", \
     "leave out and count rows that cannot be read. Otherwise they are errors"}, \
    {"expansion-limit", TUNE_FREE(TUNE_DOUBLE), &(f).data.expansion, "100", "[1,inf)", "", \
     "refuse Parquet files whose rows take more than so many times their bytes, and more than " \
     "256 MiB"}, \
    TUNE_OPTION_GROUP("")

#define TUNE_LORA_OPTIONS(f) \
    TUNE_OPTION_GROUP("adapters"), \
    {"lora-r", TUNE_INT, &(f).lora.r, "16", "[1,16384]", "", "rank of the adapters"}, \
    {"lora-alpha", TUNE_DOUBLE, &(f).lora.alpha, "32", "(0,1e9]", "", \
     "adapters are scaled by alpha/r"}, \
    {"lora-dropout", TUNE_DOUBLE, &(f).lora.dropout, "0", "[0,1)", "", \
     "share of an adapter's input that training drops"}, \
    {"lora-targets", TUNE_STRING, &(f).lora.targets, "all-linear", "", "", \
     "modules with an adapter: all-linear, or ends of names: q_proj,v_proj. A regular expression " \
     "fits whole names, as in PEFT: '.*\\.(q|v)_proj'"}, \
    {"adapter", TUNE_STRING, &(f).adapter, NULL, "", "", \
     "PEFT folder with an adapter to begin from. Its rank, targets and scales hold; " \
     "--lora-dropout may be another"}, \
    {"base-dtype", TUNE_DTYPE, &(f).base_dtype, "float32", "float32|bfloat16|nf4", "", \
     "format of the frozen matrices; nf4: 4 bits (QLoRA). With nf4, embedding and output " \
     "projection are bfloat16"}, \
    TUNE_OPTION_MORE, \
    {"lora-rslora", TUNE_BOOL, &(f).lora.rslora, "false", "", "", \
     "scale by alpha/sqrt(r) instead"}, \
    {"lora-dora", TUNE_BOOL, &(f).lora.dora, "false", "", "", \
     "DoRA: train the length of each row of a matrix apart from its direction"}, \
    {"lora-rank-pattern", TUNE_STRING, &(f).lora.rank_pattern, NULL, "", "", \
     "ranks of some modules: k_proj=4,layers.0.self_attn.q_proj=32. The first match holds"}, \
    {"lora-alpha-pattern", TUNE_STRING, &(f).lora.alpha_pattern, NULL, "", "", \
     "alphas of some modules, written like --lora-rank-pattern"}, \
    {"lora-layers", TUNE_STRING, &(f).lora.layers, NULL, "", "", \
     "layers with adapters: 0,1,8-15. Default: all"}, \
    {"modules-to-save", TUNE_STRING, &(f).lora.modules_to_save, NULL, "", "", \
     "modules trained whole beside the adapters: embed_tokens, lm_head, or both with a comma"}, \
    TUNE_OPTION_GROUP("")

/* The model of a program that trains nothing. */
#define TUNE_FROZEN_MODEL_OPTIONS(f) \
    TUNE_OPTION_GROUP("model"), \
    {"model", TUNE_STRING, &(f).model, NULL, "", "", \
     "model folder, known name (see --list-models) or Hub id"}, \
    {"adapter", TUNE_STRING, &(f).adapter, NULL, "", "", \
     "PEFT folder with an adapter of that model"}, \
    {"base-dtype", TUNE_DTYPE, &(f).base_dtype, "auto", "auto|float32|bfloat16|nf4", "", \
     "format of the matrices in memory. auto: as the adapter was trained, else bfloat16 if the " \
     "files are, else float32"}, \
    {"dtype", TUNE_DTYPE, &(f).dtype, "float32", "float32|bfloat16", "", \
     "format of activations, keys and values"}, \
    {"device", TUNE_STRING, &(f).device, "cpu", "", "", "cpu, cuda, or cuda:N for GPU N"}, \
    {"threads", TUNE_INT, &(f).threads, "0", "[0,4096]", "threads", \
     "0: OMP_NUM_THREADS, else one for each core"}

/* How a token is chosen from the logits. */
#define TUNE_SAMPLING_OPTIONS(f) \
    {"temperature", TUNE_DOUBLE, &(f).generate.sampling.temperature, "0", "", "", \
     "0: greedy, always the most likely token. Default: what generation_config.json of the model " \
     "says, as for the four options below; else greedy"}, \
    {"top-k", TUNE_INT, &(f).generate.sampling.top_k, "0", "", "tokens", \
     "draw from that many of the most likely tokens; 0: from all"}, \
    {"top-p", TUNE_DOUBLE, &(f).generate.sampling.top_p, "1", "", "", \
     "draw from the fewest tokens that have this probability together"}, \
    {"min-p", TUNE_DOUBLE, &(f).generate.sampling.min_p, "0", "", "", \
     "leave out tokens with less than this share of the largest probability"}, \
    {"repetition-penalty", TUNE_DOUBLE, &(f).generate.sampling.repetition_penalty, "1", "", "", \
     "above 1: tokens that were there become less likely"}

/* The options of a program that generates. */
#define TUNE_GENERATION_OPTIONS(f) \
    TUNE_FROZEN_MODEL_OPTIONS(f), \
    TUNE_OPTION_GROUP("prompts"), \
    {"prompt", TUNE_STRING, &(f).generate.prompt, NULL, "", "", \
     "one prompt; '-': the standard input as a whole"}, \
    {"chat", TUNE_BOOL, &(f).generate.chat, "false", "", "", \
     "talk: lines from the standard input. /help lists its commands"}, \
    {"input", TUNE_STRING, &(f).generate.input, NULL, "", "", \
     "file of rows to answer, as --dataset of a training recipe. Columns of answers need not be " \
     "there; where they are, answers are compared with them"}, \
    {"output", TUNE_STRING, &(f).generate.output, NULL, "", "", \
     "file for the answers to --input, a line of JSON each. One that is there is continued. " \
     "Default: the standard output"}, \
    {"overwrite", TUNE_BOOL, &(f).generate.overwrite, "false", "", "", "begin --output anew"}, \
    {"compare-base", TUNE_BOOL, &(f).generate.compare_base, "false", "", "", \
     "answer without the adapter, too, and show both answers side by side"}, \
    {"compare-model", TUNE_STRING, &(f).generate.compare_model, NULL, "", "", \
     "another model with the same tokenizer, such as the one before training, to answer, too"}, \
    {"system", TUNE_STRING, &(f).generate.system, NULL, "", "", \
     "system message of --prompt and --chat"}, \
    {"batch-size", TUNE_INT, &(f).generate.batch_size, "8", "[1,4096]", "rows", \
     "rows of --input to answer at a time"}, \
    {"answers", TUNE_INT, &(f).generate.answers, "1", "[1,1000000]", "answers", \
     "answers to each prompt, drawn apart from each other. More than one needs --temperature"}, \
    {"limit", TUNE_INT64, &(f).data.limit, "0", "[0,inf)", "rows", \
     "answer only the first rows of --input; 0: all"}, \
    {"format", TUNE_CHOICE, &(f).data.row_format, "auto", \
     "auto|text|alpaca|alpaca-chat|instruct|prompt-completion|messages|sharegpt", "", \
     "how a prompt is written. auto: as the rows of the run that made the model or the adapter; " \
     "else by the model's chat template, if it has one; else as it is. Rows of --input are " \
     "recognised by their columns"}, \
    {"columns", TUNE_STRING, &(f).data.columns, NULL, "", "", \
     "names of columns in --input: \"prompt=question\""}, \
    {"prompt-template", TUNE_STRING, &(f).data.prompt_template, NULL, "", "", \
     "file with a prompt template; or instruction, sql, tone"}, \
    {"chat-template", TUNE_STRING, &(f).data.chat_template, NULL, "", "", \
     "layout of conversations: Jinja file, chatml, llama3, phi3, plain. Default: the model's"}, \
    TUNE_OPTION_GROUP("answers"), \
    {"max-new-tokens", TUNE_INT, &(f).generate.max_new_tokens, "256", "[1,inf)", "tokens", \
     "most tokens of an answer. Default: what generation_config.json of the model says; else " \
     "256"}, \
    {"stop", TUNE_JOINED(TUNE_STRING), &(f).generate.stop, NULL, "", "", \
     "text that ends an answer; several with commas, or by several --stop. \\n is a line end, " \
     "\\, a comma"}, \
    {"context", TUNE_INT, &(f).generate.context, "0", "[0,inf)", "tokens", \
     "most tokens of prompt and answer. 0: the model's context; in a chat at most 4096"}, \
    TUNE_SAMPLING_OPTIONS(f), \
    {"seed", TUNE_INT64, &(f).seed, "0", "[0,inf)", "", "seed of the draws"}, \
    {"no-repeat-ngram-size", TUNE_INT, &(f).generate.no_repeat_ngram_size, "0", "[0,inf)", \
     "tokens", \
     "so many tokens come together only once, in prompt and answer; 0: any number of times. " \
     "Default: what generation_config.json says, as for the options below"}, \
    {"min-new-tokens", TUNE_INT, &(f).generate.min_new_tokens, "0", "[0,inf)", "tokens", \
     "fewest tokens of an answer: before, no token ends it"}, \
    TUNE_OPTION_MORE, \
    {"max-length", TUNE_INT, &(f).generate.max_length, "0", "[0,inf)", "tokens", \
     "most tokens of prompt and answer, in place of --max-new-tokens; 0: that one holds"}, \
    {"min-length", TUNE_INT, &(f).generate.min_length, "0", "[0,inf)", "tokens", \
     "fewest tokens of prompt and answer, in place of --min-new-tokens"}, \
    {"suppress-tokens", TUNE_JOINED(TUNE_STRING), &(f).generate.suppress_tokens, NULL, "", "", \
     "ids that are never chosen, with commas between; none: all may be"}, \
    {"begin-suppress-tokens", TUNE_JOINED(TUNE_STRING), &(f).generate.begin_suppress_tokens, NULL, \
     "", "", "the same for the first token of an answer"}, \
    {"bad-words-ids", TUNE_JOINED(TUNE_STRING), &(f).generate.bad_words_ids, NULL, "", "", \
     "tokens that do not come together: \"5,17 8\" rules out 5, and 8 after 17"}, \
    {"forced-bos-token-id", TUNE_STRING, &(f).generate.forced_bos_token_id, NULL, "", "", \
     "id that follows a prompt of one token"}, \
    {"forced-eos-token-id", TUNE_STRING, &(f).generate.forced_eos_token_id, NULL, "", "", \
     "ids, one of which is the last token that --max-new-tokens or --max-length allows"}, \
    TUNE_OPTION_GROUP("")

/* The options of a program that judges a model by its answers. */
#define TUNE_SCORECARD_OPTIONS(f) \
    TUNE_FROZEN_MODEL_OPTIONS(f), \
    {"compare-base", TUNE_BOOL, &(f).generate.compare_base, "false", "", "", \
     "judge the model without --adapter, too, and tell both apart"}, \
    {"compare-model", TUNE_STRING, &(f).generate.compare_model, NULL, "", "", \
     "another model with the same tokenizer to judge on the same rows"}, \
    TUNE_OPTION_GROUP("rows"), \
    {"dataset", TUNE_BY_CONTENT(TUNE_STRING), &(f).generate.input, NULL, "", "", \
     "file of rows with prompts and answers, as training recipes read it"}, \
    {"limit", TUNE_INT64, &(f).data.limit, "0", "[0,inf)", "rows", \
     "take only the first rows of --dataset, or of each task; 0: all"}, \
    {"keep-trained-rows", TUNE_BOOL, &(f).scorecard.keep_trained, "false", "", "", \
     "judge copies of rows, too, that the model was trained on. Otherwise they are left out"}, \
    {"batch-size", TUNE_INT, &(f).generate.batch_size, "8", "[1,4096]", "rows", \
     "rows to answer at a time"}, \
    {"format", TUNE_CHOICE, &(f).data.row_format, "auto", \
     "auto|text|alpaca|alpaca-chat|instruct|prompt-completion|messages|sharegpt|preference", \
     "", \
     "format of the rows. auto: recognised by their columns"}, \
    {"columns", TUNE_STRING, &(f).data.columns, NULL, "", "", \
     "names of columns in --dataset: \"prompt=question\""}, \
    {"prompt-template", TUNE_STRING, &(f).data.prompt_template, NULL, "", "", \
     "file with a prompt template; or instruction, sql, tone. Default: that of the model's run"}, \
    {"chat-template", TUNE_STRING, &(f).data.chat_template, NULL, "", "", \
     "layout of conversations: Jinja file, chatml, llama3, phi3, plain. Default: that of the " \
     "model's run, else the model's"}, \
    TUNE_OPTION_GROUP("task files"), \
    {"tasks", TUNE_JOINED(TUNE_STRING), &(f).scorecard.tasks, NULL, "", "", \
     "in place of --dataset: task files of lm-evaluation-harness, or files of its groups, with " \
     "commas between"}, \
    {"tasks-data", TUNE_STRING, &(f).scorecard.tasks_data, ".", "", "", \
     "folder of their data sets: PATH/NAME/SPLIT.jsonl, .json or .parquet, PATH and NAME as in " \
     "the task file"}, \
    {"num-fewshot", TUNE_INT64, &(f).scorecard.shots, "-1", "[-1,1000]", "examples", \
     "examples in a prompt. -1: as each task file says"}, \
    {"apply-chat-template", TUNE_BOOL, &(f).scorecard.chat, "false", "", "", \
     "have the model's chat template write the prompts of tasks"}, \
    TUNE_OPTION_GROUP("answers"), \
    {"metrics", TUNE_JOINED(TUNE_STRING), &(f).scorecard.metrics, "usual", "", "", \
     "what to measure, with commas between. A name that is none lists them all. usual: losses, " \
     "exact_match, token_f1, ended, answer_tokens; of pairs: pairs, losses; of texts: losses"}, \
    {"labels", TUNE_STRING, &(f).scorecard.labels, NULL, "", "", \
     "labels of accuracy and macro_f1, with commas between. Default: the answers in the rows"}, \
    {"metric-program", TUNE_STRING, &(f).scorecard.program, NULL, "", "", \
     "command that reads answers as lines of JSON, and writes numbers for each: metrics of your " \
     "own"}, \
    {"metric-limit", TUNE_DOUBLE, &(f).scorecard.program_s, "600", "(0,inf)", "s", \
     "most time that --metric-program takes for the answers of a model"}, \
    {"max-new-tokens", TUNE_INT, &(f).generate.max_new_tokens, "256", "[1,inf)", "tokens", \
     "most tokens of an answer. Default: what generation_config.json of the model says; else " \
     "256"}, \
    {"stop", TUNE_JOINED(TUNE_STRING), &(f).generate.stop, NULL, "", "", \
     "text that ends an answer; several with commas, or by several --stop. \\n is a line end, " \
     "\\, a comma"}, \
    {"greedy", TUNE_BOOL, &(f).generate.greedy, "true", "", "", \
     "always the most likely token. --no-greedy: the options below hold"}, \
    {"context", TUNE_INT, &(f).generate.context, "0", "[0,inf)", "tokens", \
     "most tokens of prompt and answer. 0: the model's context"}, \
    {"seed", TUNE_INT64, &(f).seed, "0", "[0,inf)", "", \
     "seed of the draws of rows for intervals, and of --no-greedy"}, \
    TUNE_OPTION_MORE, \
    TUNE_SAMPLING_OPTIONS(f), \
    TUNE_OPTION_GROUP("results"), \
    {"output", TUNE_STRING, &(f).generate.folder, NULL, "", "", \
     "folder for rows.jsonl, with a line for each row, and the report. A rows.jsonl there is " \
     "continued. Default: only the table"}, \
    {"overwrite", TUNE_BOOL, &(f).generate.overwrite, "false", "", "", "begin --output anew"}, \
    TUNE_OPTION_GROUP("")

/* Its properties: those of the metrics that were asked for. The report also has intervals. */
#define TUNE_SCORECARD_PROPERTIES \
    {"rows", "rows", "rows that were judged"}, \
    {"answer_tokens_per_second", "tokens/s", "tokens of answers, over all rows at a time"}, \
    {"loss", "nats", "-log p of a token of the references"}, \
    {"perplexity", "", "exp of that"}, \
    {"bits_per_byte", "bits", "-log2 p of a byte of the references"}, \
    {"exact_match_raw", "", "share of answers whose bytes are the reference's"}, \
    {"exact_match_squad", "", "the same, as SQuAD normalises texts"}, \
    {"token_f1", "", "F1 of words, as SQuAD normalises texts"}, \
    {"rouge_1", "", "F1 of words"}, \
    {"rouge_2", "", "F1 of pairs of words"}, \
    {"rouge_l", "", "F1 of the longest common subsequence"}, \
    {"rouge_lsum", "", "the same by lines"}, \
    {"bleu", "", "0 to 100, n-grams of words"}, \
    {"chrf", "", "0 to 100, n-grams of characters"}, \
    {"accuracy", "", "share of answers that are the reference's label"}, \
    {"macro_f1", "", "F1 of a label, as a mean over labels"}, \
    {"last_number", "", "share of answers with the reference's last number"}, \
    {"json_valid", "", "share of answers that are JSON"}, \
    {"ended", "", "share of answers that ended by themselves"}, \
    {"answer_tokens", "tokens", "mean length of answers"}, \
    {"answer_characters", "characters", "mean length of answers"}, \
    {"pair_accuracy", "", "share of pairs whose chosen answer is likelier than the rejected"}, \
    {"pair_accuracy_norm", "", "the same by token"}

#define TUNE_PREFERENCE_OPTIONS(f) \
    {"format", \
     .range = "auto|preference|sharegpt-preference|alpaca-preference|instruct-preference|" \
              "unpaired", \
     .help = "format of the rows. auto: decided by the columns of the first rows"}, \
    {"train-on", .range = "default|completion", .help = "the answers are trained on"}, \
    {"batch-size", \
     .help = "pairs of a micro-batch. Each has two answers. With --loss kto: single answers"}, \
    TUNE_OPTION_GROUP("preferences"), \
    {"loss", TUNE_ENUM, &(f).preference.kind, "sigmoid", \
     "sigmoid|hinge|ipo|simpo|orpo|kto", "", \
     "loss of a pair. sigmoid is DPO's, hinge SLiC's. simpo and orpo need no reference. kto is " \
     "of single answers, each with a label: true or false. Pairs are parted into two such rows"}, \
    {"beta", TUNE_DOUBLE, &(f).preference.beta, "0.1", "(0,inf)", "", \
     "how much a reward counts: larger keeps the model nearer to the reference. orpo: weight of " \
     "the odds' ratio. simpo is mostly used with 2"}, \
    {"label-smoothing", TUNE_DOUBLE, &(f).preference.label_smoothing, "0", "[0,0.5)", "", \
     "share of pairs that may be the wrong way round (sigmoid, simpo)"}, \
    {"length-normalize", TUNE_BOOL, &(f).preference.length_normalize, "false", "", "", \
     "compare log-probabilities per token. ipo, simpo and orpo always do"}, \
    {"simpo-gamma", TUNE_DOUBLE, &(f).preference.gamma, "0.5", "[0,inf)", "", \
     "simpo: the margin between the rewards that it aims at"}, \
    {"desirable-weight", TUNE_DOUBLE, &(f).preference.desirable_weight, "1", "[0,inf)", "", \
     "kto: weight of answers whose label is true"}, \
    {"undesirable-weight", TUNE_DOUBLE, &(f).preference.undesirable_weight, "1", "[0,inf)", "", \
     "kto: weight of answers whose label is false"}, \
    {"reference", TUNE_FREE(TUNE_STRING), &(f).reference, NULL, "", "", \
     "file of the reference's log-probabilities; made if it is not there. Default: in the run " \
     "folder. New adapters need none"}, \
    TUNE_OPTION_GROUP("")

#define TUNE_OPTIMIZER_OPTIONS(f) \
    TUNE_OPTION_GROUP("optimizer"), \
    {"optimizer", TUNE_ENUM, &(f).optimizer.kind, "adamw", "adamw|sgd|muon", "", \
     "update rule. muon: Muon for the matrices of the layers, AdamW for the rest"}, \
    {"lr", TUNE_DOUBLE, &(f).schedule.lr, "2e-5", "[0,1000]", "", "peak learning rate"}, \
    {"schedule", TUNE_ENUM, &(f).schedule.kind, "cosine", "constant|linear|cosine|wsd", "", \
     "course of the learning rate after warm-up. wsd: warm up, stay, decay in the last " \
     "--decay-ratio"}, \
    {"warmup-ratio", TUNE_DOUBLE, &(f).schedule.warmup_ratio, "0.03", "[0,1]", "", \
     "share of the steps in which lr rises linearly"}, \
    {"weight-decay", TUNE_DOUBLE, &(f).optimizer.weight_decay, "0.01", "[0,1000]", "", \
     "weight decay, decoupled from the gradient"}, \
    {"clip-norm", TUNE_DOUBLE, &(f).clip_norm, "1", "[0,inf]", "", \
     "largest gradient norm; 0: no clipping. It is the norm over all parameters"}, \
    {"epochs", TUNE_DOUBLE, &(f).loader.epochs, "1", "(0,inf)", "epochs", \
     "passes over the training rows"}, \
    {"max-steps", TUNE_INT64, &(f).loader.max_steps, "-1", "[-1,1e15]", "steps", \
     "steps to train; -1: by --epochs. 0: evaluate only"}, \
    TUNE_OPTION_MORE, \
    {"warmup-steps", TUNE_INT64, &(f).schedule.warmup_steps, "-1", "[-1,inf)", "steps", \
     "steps of warm-up; -1: by --warmup-ratio"}, \
    {"min-lr-ratio", TUNE_DOUBLE, &(f).schedule.min_lr_ratio, "0", "[0,1]", "", \
     "learning rate at the end, as a share of --lr"}, \
    {"decay-ratio", TUNE_DOUBLE, &(f).schedule.decay_ratio, "0.1", "(0,1]", "", \
     "share of the steps in which --schedule wsd decays, as half a cosine"}, \
    {"beta1", TUNE_DOUBLE, &(f).optimizer.beta1, "0.9", "[0,1)", "", \
     "AdamW: decay of the first moment"}, \
    {"beta2", TUNE_DOUBLE, &(f).optimizer.beta2, "0.999", "[0,1)", "", \
     "AdamW: decay of the second moment"}, \
    {"eps", TUNE_DOUBLE, &(f).optimizer.eps, "1e-8", "(0,1]", "", "AdamW: added to the root"}, \
    {"momentum", TUNE_DOUBLE, &(f).optimizer.momentum, "0", "[0,1)", "", "SGD: momentum"}, \
    {"muon-momentum", TUNE_DOUBLE, &(f).optimizer.muon_momentum, "0.95", "[0,1)", "", \
     "Muon: momentum, in Nesterov's form"}, \
    {"ema", TUNE_DOUBLE, &(f).optimizer.ema, "0", "[0,1)", "", \
     "decay of moving averages of the weights, which are evaluated and saved; 0: none. Mostly " \
     "0.999. Update t decays by at most (1+t)/(10+t). state/ keeps the weights themselves"}, \
    {"label-smoothing", TUNE_DOUBLE, &(f).label_smoothing, "0", "[0,1)", "", \
     "share of each target that is spread over the vocabulary. Evaluations are not smoothed"}, \
    {"logits-chunk", TUNE_INT, &(f).logits_chunk, "0", "[0,65536]", "MiB", \
     "logits that the loss holds at a time, of at least 64 positions. 0: 48 on the CPU; on a GPU " \
     "1/32 of its memory, from 64 to 1024. Larger values should be faster on a GPU. They take " \
     "more memory, and sums are rounded in another order"}, \
    {"decay", TUNE_ENUM, &(f).optimizer.decay, "matrices", "matrices|all", "", \
     "parameters that decay; matrices: no norms, no biases"}, \
    {"stop-at-step", TUNE_OF_SESSION(TUNE_INT64), &(f).loader.stop_at_step, "0", "[0,inf)", \
     "steps", \
     "save and stop after that many steps, as after a signal; 0: never. The schedule stays the " \
     "same, and there is no last evaluation"}, \
    {"stop-after-seconds", TUNE_OF_SESSION(TUNE_DOUBLE), &(f).loader.stop_after_seconds, "-1", \
     "[-1,inf)", "s", \
     "save and stop that long after this process began its first step, or finetune_dpo's " \
     "reference before it; -1: never. The step at hand is finished first"}, \
    {"until-stable", TUNE_OF_SESSION(TUNE_DOUBLE), &(f).log.until_stable, "0", "[0,100]", "%", \
     "save and stop when the speed is known within this share; 0: never. Looked at in logged " \
     "steps: the 95 % confidence interval of tokens/s, over at least 10 steps after warm-up " \
     "(MSER), around their mean"}, \
    TUNE_OPTION_GROUP("")

#define TUNE_RUN_OPTIONS(f) \
    TUNE_OPTION_GROUP("run"), \
    {"output", TUNE_OF_SESSION(TUNE_STRING), &(f).log.folder, NULL, "", "", \
     "run folder to make. Default: runs/<program>-<date>-<time>"}, \
    {"overwrite", TUNE_OF_SESSION(TUNE_BOOL), &(f).log.overwrite, "false", "", "", \
     "first remove the run folder that is there. With --resume of an older checkpoint: remove " \
     "what came after it"}, \
    {"resume", TUNE_OF_SESSION(TUNE_STRING), &(f).resume, NULL, "", "", \
     "run folder, or a checkpoint in it, to go on from. A folder stands for its newest " \
     "checkpoint. All options come from there"}, \
    {"log-every", TUNE_FREE(TUNE_INT), &(f).log.log_every, "1", "[1,100000]", "steps", \
     "steps between log lines"}, \
    {"logger", TUNE_FREE(TUNE_STRING), &(f).logger, "jsonl", "", "", \
     "more files of metrics, with commas: csv, tensorboard. JSON lines are always written"}, \
    {"save-every", TUNE_FREE(TUNE_INTERVAL), &(f).checkpoint.save_every, "0", "[0,inf)", "steps", \
     "steps between checkpoints; 0: one at the end. Below 1: a share of the run, as 0.25. epoch: " \
     "at the end of each. With --eval-every, the best one is saved too"}, \
    {"keep-last", TUNE_FREE(TUNE_INT), &(f).checkpoint.keep_last, "0", "[0,inf)", "checkpoints", \
     "newest checkpoints to keep; 0: all. The best and the final one are kept too"}, \
    TUNE_OPTION_MORE, \
    {"verbose", TUNE_FREE(TUNE_BOOL), &(f).log.verbose, "false", "", "", \
     "print the whole header, with weights, memory, disk and the source of each option. The run " \
     "folder has all of it anyway"}, \
    {"ranks", TUNE_FREE(TUNE_INT), &(f).ranks, "0", "[0,4096]", "processes", \
     "processes that train together on this machine, started by mpirun. Each takes --accumulate " \
     "micro-batches of a step. 0: those that mpirun or srun started, else one. 1: alone, " \
     "whatever started it"}, \
    {"shard", TUNE_FREE(TUNE_ENUM), &(f).shard, "ddp", "ddp|optimizer|fsdp", "", \
     "what ranks share out. ddp: nothing, each has the whole model. optimizer: moments and " \
     "averages. fsdp: weights and gradients, too; a layer is whole while it is used"}, \
    {"timeout", TUNE_FREE(TUNE_DOUBLE), &(f).timeout_s, "300", "(0,1e6]", "s", \
     "how long a rank may be behind the others. Then they end with an error that names it"}, \
    {"exact-ranks", TUNE_FREE(TUNE_BOOL), &(f).exact_ranks, "false", "", "", \
     "on GPUs, add the ranks' gradients in the order of the ranks, as CPUs always do. Else NCCL " \
     "adds them, which is faster, with the same bits for the same ranks on the same machine"}, \
    {"requeue", TUNE_OF_SESSION(TUNE_BOOL), &(f).requeue, "false", "", "", \
     "go on with the run in --output if this command began it, else begin it. In a Slurm job, a " \
     "signal such as that of the time limit also puts the job back into the queue"}, \
    {"stop-on-divergence", TUNE_FREE(TUNE_BOOL), &(f).log.stop_on_divergence, "false", "", "", \
     "end the run where its loss has risen, with exit code 1. The last checkpoint from before is " \
     "kept (--save-every), and none is saved after. Looked at in logged steps"}, \
    {"allow-changed", TUNE_OF_SESSION(TUNE_BOOL), &(f).log.allow_changed, "false", "", "", \
     "resume though options, data, model or thread count have changed. The run folder notes it"}, \
    {"save", TUNE_FREE(TUNE_BOOL), &(f).save, "true", "", "", \
     "save a checkpoint at the end of the run. --no-save is for measurements, which may diverge. " \
     "--save-every and --eval-every still save"}, \
    {"save-dtype", TUNE_DTYPE, &(f).checkpoint.save_dtype, "as-read", \
     "as-read|float32|bfloat16|float16", "", \
     "format of the saved weights. For adapters, as-read is float32"}, \
    {"card", TUNE_FREE(TUNE_BOOL), &(f).card, "true", "", "", \
     "write a model card, README.md, into each checkpoint. One that was edited is not replaced"}, \
    {"wait-for-disk", TUNE_FREE(TUNE_DOUBLE), &(f).checkpoint.wait_for_disk, "-1", "[-1,inf)", \
     "s", \
     "while the disk has no room for the weights of a checkpoint, try again that long. -1: 600 " \
     "if the standard output is a terminal, else 0"}, \
    {"profile", TUNE_FREE(TUNE_INT), &(f).profile, "0", "[0,1000000]", "steps", \
     "steps to profile, after one or two that warm up. Writes profile.txt, profile.json, and " \
     "profile.trace.json for chrome://tracing"}, \
    TUNE_OPTION_GROUP("")

#define TUNE_EVALUATION_OPTIONS(f) \
    TUNE_OPTION_GROUP("evaluation"), \
    {"eval-every", TUNE_FREE(TUNE_INTERVAL), &(f).eval.every, "0", "[0,inf)", "steps", \
     "steps between evaluations; 0: one at the end. Below 1: a share of the run, as 0.25. epoch: " \
     "at the end of each. Rows held out are evaluated on"}, \
    {"eval-dataset", TUNE_BY_CONTENT(TUNE_STRING), &(f).eval.path, NULL, "", "", \
     "file of rows to evaluate on, in place of --train-split. It is read like --dataset"}, \
    {"preview-every", TUNE_FREE(TUNE_INT), &(f).preview.every, "0", "[0,inf)", "steps", \
     "steps between previews; 0: none. They are the model's answers to --preview-prompts"}, \
    {"eval-metrics", TUNE_JOINED(TUNE_STRING), &(f).eval.metrics, NULL, "", "", \
     "metrics of answers to these rows: exact_match,rouge_l. At each evaluation, the model " \
     "answers some of them greedily. evaluate has the same metrics"}, \
    {"patience", TUNE_INT, &(f).eval.patience, "0", "[0,inf)", "evaluations", \
     "end after so many without a lower loss; 0: never. They are counted in a row, and go by " \
     "--best-by"}, \
    TUNE_OPTION_MORE, \
    {"best-by", TUNE_STRING, &(f).eval.best_by, NULL, "", "", \
     "number by which checkpoint-best and --patience go: loss, or another of the evaluation, as " \
     "one of --eval-metrics. Default: loss"}, \
    {"general-dataset", TUNE_BY_CONTENT(TUNE_STRING), &(f).eval.general, NULL, "", "", \
     "file of other rows, whose loss shows what is forgotten. It is logged apart, as " \
     "eval_general_loss. The format of the rows is recognised"}, \
    {"eval-first", TUNE_BOOL, &(f).eval.first, "false", "", "", \
     "evaluate before the first step, too. Its numbers are in the report as before_eval_loss and " \
     "so on. They are never the best"}, \
    {"eval-answers", TUNE_INT64, &(f).eval.answers, "64", "[0,inf)", "rows", \
     "rows of each file that are answered for --eval-metrics, drawn once by the seed; 0: all"}, \
    {"eval-tokens", TUNE_INT, &(f).eval.answer_tokens, "128", "[1,inf)", "tokens", \
     "most tokens of such an answer"}, \
    {"preview-prompts", TUNE_FREE(TUNE_STRING), &(f).preview.prompts, NULL, "", "", \
     "file of prompts for --preview-every, read like --dataset. It needs no columns of answers"}, \
    {"preview-tokens", TUNE_FREE(TUNE_INT), &(f).preview.tokens, "64", "[1,inf)", "tokens", \
     "most tokens of such an answer"}, \
    {"preview-rows", TUNE_FREE(TUNE_INT64), &(f).preview.rows, "16", "[0,inf)", "prompts", \
     "prompts to answer: the first ones of the file; 0: all"}, \
    {"eval-rows", TUNE_INT64, &(f).eval_rows, "0", "[0,inf)", "rows", \
     "rows to evaluate on, drawn once by the seed; 0: all"}, \
    {"min-delta", TUNE_DOUBLE, &(f).eval.min_delta, "0", "[0,inf)", "nats/token", \
     "for --patience: how much lower a loss must be, or how much better --best-by"}, \
    TUNE_OPTION_GROUP("")

#define TUNE_TRAINING_OPTIONS(f) \
    TUNE_MODEL_OPTIONS(f), TUNE_DATA_OPTIONS(f), TUNE_OPTIMIZER_OPTIONS(f), \
    TUNE_EVALUATION_OPTIONS(f), TUNE_RUN_OPTIONS(f)

/* Further figures that a recipe with adapters reports. */
#define TUNE_LORA_PROPERTIES \
    {"trained_parameters", "", "weights that were trained"}

/* The figures that every training recipe reports. Up to is_valid, they are ado's target properties
 * in their order. */
#define TUNE_RUN_PROPERTIES(loss_unit) \
    {"gpu_compute_utilization_min", "%", "time with a kernel running, " \
     "average over train_runtime, of the least busy GPU; 0: none"}, \
    {"gpu_compute_utilization_avg", "%", "the same, average over the GPUs"}, \
    {"gpu_compute_utilization_max", "%", "the same, for the GPU with the most"}, \
    {"gpu_memory_utilization_min", "%", "memory in use, average over train_runtime, " \
     "of the GPU with the least; 0 without"}, \
    {"gpu_memory_utilization_avg", "%", "the same, average over the GPUs"}, \
    {"gpu_memory_utilization_max", "%", "the same, for the GPU with the most"}, \
    {"gpu_memory_utilization_peak", "%", "highest of any GPU at any time; absent without a GPU"}, \
    {"gpu_power_watts_min", "W", "power drawn, average over train_runtime, " \
     "of the GPU with the least; 0 without"}, \
    {"gpu_power_watts_avg", "W", "the same, average over the GPUs"}, \
    {"gpu_power_watts_max", "W", "the same, for the GPU with the most"}, \
    {"gpu_power_percent_min", "%", "the same as a share of the power limit that is enforced"}, \
    {"gpu_power_percent_avg", "%", "the same, average over the GPUs"}, \
    {"gpu_power_percent_max", "%", "the same, for the GPU with the most"}, \
    {"cpu_compute_utilization", "%", "process time / train_runtime; 100 is one core"}, \
    {"cpu_memory_utilization", "%", "memory of the machine in use, average over " \
                                    "train_runtime"}, \
    {"train_runtime", "s", "the step loop: start of the first step to end of the last"}, \
    {"train_samples_per_second", "1/s", "rows of finished steps / train_runtime"}, \
    {"train_steps_per_second", "1/s", "finished steps / train_runtime"}, \
    {"train_tokens_per_second", "tokens/s", "positions computed, padding included, " \
     "/ train_runtime"}, \
    {"train_tokens_per_gpu_per_second", "tokens/s", "the same / max(1, GPUs)"}, \
    {"dataset_tokens_per_second", "tokens/s", "tokens of the rows of finished steps, " \
     "cut to max-length, / train_runtime"}, \
    {"dataset_tokens_per_second_per_gpu", "tokens/s", "the same / max(1, GPUs)"}, \
    {"is_valid", "", "1: the run reached its end, and its figures are valid"}, \
    {"training_steps", "steps", "optimizer steps finished"}, \
    {"model_load_time", "s", "time to open and read the model folder"}, \
    {"time_to_first_step_s", "s", "from program start to the end of the first step"}, \
    {"setup_s", "s", "the part before that step: reading files, taking memory"}, \
    {"estimated_memory_bytes", "bytes", "planned before the first step: highest anonymous memory " \
     "of the process"}, \
    {"peak_anonymous_bytes", "bytes", "highest anonymous memory seen, at logged steps, " \
     "evaluations and the end; no pages of files"}, \
    {"peak_memory_bytes", "bytes", "highest resident memory of the process, " \
     "pages of files included"}, \
    {"estimated_device_bytes", "bytes", \
     "planned: tensors and working memory on the device"}, \
    {"peak_device_bytes", "bytes", "the most that the device held of them at a time"}, \
    {"gpu_sm_clock_min", "MHz", "clock of the multiprocessors, average over " \
     "train_runtime, of the slowest GPU; absent without one"}, \
    {"gpu_sm_clock_avg", "MHz", "the same, average over the GPUs"}, \
    {"gpu_sm_clock_max", "MHz", "the same, for the GPU with the most"}, \
    {"gpu_energy", "J", "of all GPUs: power, average over train_runtime, " \
     "x train_runtime; absent without one"}, \
    {"gpu_energy_per_token", "J/token", "the same / tokens of the rows of finished steps"}, \
    {"model_flops_per_second", "FLOP/s", "6N per token (frozen ones 4N) + 6LTHD causal " \
     "attention, no recompute, / train_runtime"}, \
    {"padding_share", "%", "padding among the positions computed"}, \
    {"packing_efficiency", "%", "tokens of rows among the positions computed, " \
     "100 - padding_share"}, \
    {"loss_first", loss_unit, "training loss of the first step"}, \
    {"loss_last", loss_unit, "training loss of the last step"}, \
    {"tokens_per_second_stable", "tokens/s", \
    "of this process's steps after warm-up (--until-stable); absent under 10 of them"}, \
    {"tokens_per_second_stable_half_width", "tokens/s", "half of its 95 % confidence interval"}, \
    {"eval_loss", loss_unit, "mean loss on the rows held out, the last one; absent without any"}, \
    {"best_eval_loss", loss_unit, "the lowest of the run"}, \
    {"best_eval_step", "steps", "the step of checkpoint-best: by best_eval_loss, or by --best-by"}

#define TUNE_TRAINING_PROPERTIES \
    TUNE_RUN_PROPERTIES("nats/token"), {"eval_perplexity", "", "exp(eval_loss)"}

/* The figures of a recipe that trains on preferences. */
#define TUNE_PREFERENCE_PROPERTIES TUNE_RUN_PROPERTIES("nats/pair")

/* tune_flags_parse - put defaults, the model's defaults, --config and flags into the places that
 * the table names. flags starts zeroed; argv must outlive it. Flags are --name value, --name=value,
 * --name and --no-name (bool). After -- only positional ones follow. The last value of a flag wins.
 * --config FILE holds option names and values: YAML, or a JSON object. null means not given. A file
 * named .yaml or .yml is YAML and one named .json is JSON. Any other is JSON if it begins with {.
 * In YAML 1e-5 is a number, as in JSON, and most texts need no quotes. --config may be given more
 * than once. A run folder's "options" can be used so. --resume RUN takes the run's options, except
 * those of one process. A different value is refused, unless the row may change or --allow-changed
 * is given. --requeue takes no options from the run in --output. It refuses other values in the
 * same way. Without a checkpoint it sets log.overwrite. Getters report missing required options,
 * such as model. -1 with kind USAGE: an unknown flag (the error names the nearest), a bad value, a
 * bad config, or a changed option. -1 with kind FAILED: no such run, or no checkpoint in it.
 * tune_flags_free - free the strings that parsing made: those of TUNE_STRING and TUNE_CHOICE
 * places. */
int tune_flags_parse(struct tune_flags *flags, int argc, char **argv,
                     const struct tune_option *options,
                     const struct tune_property *properties);
void tune_flags_free(struct tune_flags *flags);

/* tune_flags_serve - serve an option in place of the run (struct tune_service). 1: it did, and the
 * program should end. 0: none was asked for. -1 with an error. */
int tune_flags_serve(const struct tune_flags *flags, FILE *out);

/* tune_flags_wish - the request: --help, -h, --help all, --describe, --list-models, --version or
 * --show-config. */
enum tune_wish tune_flags_wish(const struct tune_flags *flags);

/* tune_flags_source - the source of an option's value; an unknown option: TUNE_FROM_DEFAULT.
 * tune_flags_given - whether it came from a flag or --config.
 * tune_flags_differs - whether it was set, and not to the program's default.
 * tune_flags_repeats - whether it differs, and numbers of the run depend on it.
 * tune_flags_is_path - whether its value is a path: positional, --adapter or TUNE_BY_CONTENT.
 * tune_source_name - "default", "model defaults", "run", "config" or "flag". */
enum tune_source tune_flags_source(const struct tune_flags *flags, const char *name);
bool tune_flags_given(const struct tune_flags *flags, const char *name);
bool tune_flags_differs(const struct tune_flags *flags, const char *name);
bool tune_flags_repeats(const struct tune_flags *flags, const char *name);
bool tune_flags_is_path(const struct tune_flags *flags, const char *name);
const char *tune_source_name(enum tune_source source);

/* tune_flags_size_defaults - in words, whose defaults were taken by the model's size; NULL: none
 * were. */
const char *tune_flags_size_defaults(const struct tune_flags *flags);

/* tune_flags_name_options - write the options that a message of the library names as this
 * program's flags. The library writes `max_length`; where the program has that option it becomes
 * --max-length, in place. Other texts stay. */
void tune_flags_name_options(const struct tune_flags *flags, char *text);

/* tune_flags_saves - whether a checkpoint may be written or resumed. */
bool tune_flags_saves(const struct tune_flags *flags);

/* tune_flags_note - the i-th remark about how options were read, such as a value that is written in
 * another tool's way; NULL after the last. Programs print them before a run.
 * tune_flags_show_config - print what became of each setting of a --config file of another tool,
 * and the options as they are set. Returns the number of settings that stop a run. */
const char *tune_flags_note(const struct tune_flags *flags, int i);
int tune_flags_show_config(const struct tune_flags *flags, FILE *stream);

/* tune_flags_config - the i-th file of --config; NULL after the last. */
const char *tune_flags_config(const struct tune_flags *flags, int i);

/* tune_flags_words - the words of a positional row "<...>", *count of them; they are argv's. */
const char *const *tune_flags_words(const struct tune_flags *flags, int *count);

/* tune_flags_each - the i-th option and its value as written (NULL: none), for showing; NULL after
 * the last. Rows with one name are one option. Valid until tune_flags_free. */
const struct tune_option *tune_flags_each(const struct tune_flags *flags, int i, const char **text);

/* The caller frees these; NULL with an error: no memory.
 * tune_flags_json - the options as an object {name: value}. Names have '_', and an infinity is the
 * string "inf".
 * tune_flags_sources_json - their sources {name: "default" | "model defaults" | "run" | "config" |
 * "flag"}.
 * tune_flags_units_json - the units of the measured properties {name: unit}, where there are any.
 * tune_flags_changes_json - {"--name": {"was", "now"}} of options that --allow-changed let differ
 * from the resumed run.
 * tune_flags_describe - the output of --describe: {program, options: [{name, flag, type, default,
 * value, source, range, choices, unit, help, group, positional}], properties: [{name, unit,
 * help}]}. range is the table's text. */
struct cJSON *tune_flags_json(const struct tune_flags *flags);
struct cJSON *tune_flags_sources_json(const struct tune_flags *flags);
struct cJSON *tune_flags_units_json(const struct tune_flags *flags);
struct cJSON *tune_flags_changes_json(const struct tune_flags *flags);
struct cJSON *tune_flags_describe(const struct tune_flags *flags);

/* tune_flags_help - print --help, at most 100 columns wide, with current values as defaults. After
 * --help all it prints all options, whole help texts, and the measured properties. */
void tune_flags_help(const struct tune_flags *flags, const char *what, FILE *stream);

/* tune_flags_command - the shell command that repeats this run, into text, cut to size; returns
 * text. */
const char *tune_flags_command(const struct tune_flags *flags, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
