/* test_flags.c - the option table: what is taken, what is refused and in which words; and program.c, in child processes. */
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>

#include "files/cjson.h"
#include "hidden_library.h"
#include "models/config.h"
#include "test.h"

#include "../components/flags/program.c" /* not in the library; its exits are met in children */

/* The library's would bring devices and OpenMP, and with those a program starts itself once more. */
const struct tune_service tune_plan_memory = {NULL};

struct mine {
    struct tune_flags tune;
    double noise;
    const char *folder, *other;
};
static struct mine my;
static const struct tune_option options[] = {
    TUNE_TRAINING_OPTIONS(my.tune),
    {"grad-noise", TUNE_DOUBLE, &my.noise, "0", "[0,1]", "", "noise on the gradient"},
    {"max-length", .value = "1024", .range = "[1,8192]"},
    {"<folder>", TUNE_STRING, &my.folder, "none", "", "", "where to"},
    {0},
};
static const struct tune_option needy[] = {
    TUNE_MODEL_OPTIONS(my.tune),
    {"<folder>", TUNE_STRING, &my.folder, NULL, "", "", "where to"},
    {"<other>", TUNE_STRING, &my.other, NULL, "", "", "where from"},
    {0},
};
static const struct tune_option choosy[] = {
    {"<what>", TUNE_CHOICE, &my.other, NULL, "list|show", "", "what to do"},
    {0},
};
static const struct tune_property properties[] = {TUNE_TRAINING_PROPERTIES, {"sharpness", "1", "of the minimum"}, {0}};

/* Parse words given as one text, split at spaces. */
static char words[1024], *argv_[64];
static int parse_with(const struct tune_option *table, const char *line)
{
    int argc = 0;
    tune_flags_free(&my.tune);
    memset(&my, 0, sizeof my);
    tune_error_clear();
    snprintf(words, sizeof words, "%s", line);
    argv_[argc++] = "build/prog";
    for (char *w = strtok(words, " "); w; w = strtok(NULL, " "))
        argv_[argc++] = w;
    argv_[argc] = NULL;
    return tune_flags_parse(&my.tune, argc, argv_, table, properties);
}
static int parse(const char *line)
{
    return parse_with(options, line);
}
static void refused(const char *line, const char *text)
{
    if (parse(line) == 0)
        fail_msg("\"%s\" was taken", line);
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    assert_error_has(text);
}
static void failed(const char *line, const char *text)
{
    assert_int_equal(parse(line), -1);
    assert_int_equal(tune_error_kind(), TUNE_ERROR_FAILED);
    assert_error_has(text);
}

static void takes(void **state)
{
    (void)state;
    assert_ok(parse(""));
    assert_string_equal(my.tune.program, "prog");
    assert_true(my.tune.schedule.lr == 2e-5 && my.tune.loader.shuffle && my.tune.loader.batch_size == 1);
    assert_int_equal(my.tune.data.max_length, 1024); /* the later row's default, in the first row's place */
    assert_null(my.tune.model);
    assert_ok(parse("--lr=1e-3 --batch_size 7 --no-shuffle --overwrite --seed 9223372036854775807 --model x --dtype bfloat16"));
    assert_true(my.tune.schedule.lr == 1e-3 && my.tune.loader.batch_size == 7 && !my.tune.loader.shuffle && my.tune.log.overwrite);
    assert_true(my.tune.seed == INT64_MAX);
    assert_string_equal(my.tune.model, "x");
    assert_int_equal(my.tune.dtype, TUNE_BF16);
    assert_ok(parse("--shuffle=false --lr 1 --lr 2 --clip-norm inf --max-steps -1"));
    assert_true(!my.tune.loader.shuffle && my.tune.schedule.lr == 2 && isinf(my.tune.clip_norm) && my.tune.loader.max_steps == -1);
    assert_ok(parse("--grad-noise .5 here"));
    assert_true(my.noise == 0.5);
    assert_string_equal(my.folder, "here");
    assert_ok(parse("-- --strange"));
    assert_string_equal(my.folder, "--strange");
    assert_int_equal(tune_flags_source(&my.tune, "folder"), TUNE_FROM_FLAG);
}

static void words_to_numbers(void **state)
{
    (void)state;
    static const struct tune_option adapters[] = {
        TUNE_TRAINING_OPTIONS(my.tune),
        TUNE_LORA_OPTIONS(my.tune),
        {0},
    };
    const struct tune_flags *f = &my.tune;
    assert_ok(parse_with(adapters, ""));
    assert_int_equal(f->dtype, TUNE_F32);
    assert_int_equal(f->base_dtype, TUNE_F32);
    assert_int_equal(f->checkpoint.save_dtype, TUNE_AS_READ);
    assert_int_equal(f->optimizer.kind, TUNE_ADAMW);
    assert_int_equal(f->optimizer.decay, TUNE_DECAY_MATRICES);
    assert_int_equal(f->schedule.kind, TUNE_COSINE);
    assert_int_equal(f->activation_checkpointing, 0);
    assert_ok(parse_with(adapters, "--base-dtype nf4 --save-dtype float16 --optimizer sgd --decay all "
                                   "--schedule linear --activation-checkpointing full"));
    assert_int_equal(f->base_dtype, TUNE_NF4);
    assert_int_equal(f->checkpoint.save_dtype, TUNE_F16);
    assert_int_equal(f->optimizer.kind, TUNE_SGD);
    assert_int_equal(f->optimizer.decay, TUNE_DECAY_ALL);
    assert_int_equal(f->schedule.kind, TUNE_LINEAR);
    assert_int_equal(f->activation_checkpointing, 1);
    cJSON *json = tune_flags_json(f);
    const cJSON *word = cJSON_GetObjectItemCaseSensitive(json, "base_dtype");
    assert_string_equal(cJSON_GetStringValue(word), "nf4");
    cJSON_Delete(json);
}

/* In place: `name` becomes --name, where that is an option. */
static void spells(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"lower `lr`", "lower --lr"},
        {"`max_length` 5, or `batch_size`", "--max-length 5, or --batch-size"},
        {"`max-length`", "--max-length"},
        {"a ` and `lr` and ` b", "a ` and --lr and ` b"},
        {"`lr", "`lr"},
        {"`` `no_such`", "`` `no_such`"},
        {"`folder`", "`folder`"}, /* has no flag */
        {"", ""},
    };
    char text[64];
    assert_ok(parse(""));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        snprintf(text, sizeof text, "%s", texts[i][0]);
        tune_flags_name_options(&my.tune, text);
        assert_string_equal(text, texts[i][1]);
    }
    tune_flags_free(&my.tune);
    snprintf(text, sizeof text, "`lr`");
    tune_flags_name_options(&my.tune, text);
    assert_string_equal(text, "`lr`");
}

static void refuses(void **state)
{
    (void)state;
    refused("--lr nan", "--lr: \"nan\" is not a number");
    refused("--lr NaN", "is not a number");
    refused("--lr 1x", "in [0,1000]");
    refused("--lr 0x10", "is not a number");
    refused("--lr= 1", "is not a number");
    refused("--lr 1e999", "too large");
    refused("--lr 1e-999", "too small");
    refused("--lr -1", "outside its range");
    refused("--lr inf", "outside its range");
    refused("--epochs 0", "unit epochs, in (0,inf)");
    refused("--epochs inf", "outside its range");
    refused("--lr", "expected a value, found nothing");
    refused("--model --lr 1", "found \"--lr\"");
    refused("--batch-size 4097", "unit rows, in [1,4096]");
    refused("--batch-size 0", "outside its range");
    refused("--batch-size 1e2", "whole number");
    refused("--batch-size 4294967297", "32 bits");
    refused("--seed 9223372036854775808", "64 bits");
    refused("--max-length 9000", "in [1,8192]");
    refused("--beta1 1", "[0,1)");
    refused("--dtype fp16", "expected one of float32|bfloat16");
    refused("--shuffle=maybe", "neither true nor false");
    refused("--no-shuffle=false", "unknown option");
    refused("--no-lr", "unknown option \"--no-lr\"");
    refused("--batchsize 1", "the nearest is --batch-size");
    refused("--overwirte", "the nearest is --overwrite");
    refused("--grad_nois 1", "the nearest is --grad-noise");
    refused("--per_device_train_batch_size 1", "unknown option \"--per_device_train_batch_size\"; here it is --batch-size");
    refused("--bf16", "here it is --dtype bfloat16");
    refused("--use_liger_kernel 1", "there is none here: the loss never stores all logits");
    refused("--eos_token x", "--append-token");
    refused("--load-in-4bit", "other recipes have it as --base-dtype nf4");
    refused("--num_train_epochs=3", "here it is --epochs");
    refused("--load-in-8bit", "other recipes have it as --base-dtype nf4 or bfloat16");
    refused("--cutoff-len 3", "here it is --max-length");
    refused("--val-set-size .1", "here it is --train-split");
    refused("--save-steps 3", "here it is --save-every");
    refused("--report-to wandb", "here it is --logger");
    refused("--neftune-noise-alpha 5", "here it is --neftune-alpha");
    refused("--xyzzyplugh 3", "unknown option \"--xyzzyplugh\"");
    assert_null(strstr(tune_error_message(), "nearest")); /* nothing is near */
    refused("--lora-r 8", "unknown option \"--lora-r\"; finetune_lora has it");
    refused("--simpo-gamma 1", "finetune_dpo has it");
    refused("--optimizer adafactor", "expected one of adamw|sgd|muon; there is no such optimizer");
    refused("--gpu 0", "here it is --device cuda");
    refused("--bs 2", "here it is --batch-size");
    refused("--wandb_project x", "there is none here: metrics are in the run folder");
    refused("--torch-compile", "there is none here: the programs are compiled already");
    refused("--learning-rat 1", "unknown option \"--learning-rat\"");
    refused("--learning-rate 1", "here it is --lr");
    refused("--max 1", "the nearest is --max-length");
    refused("--log 1", "the nearest is --log-every");
    refused("--hepl", "the nearest is --help");
    refused("-x", "begin with --");
    refused("here there", "unexpected argument \"there\"");
    refused("here --shuffle false", "a switch takes its value after =");
    assert_int_equal(parse_with(needy, "a"), -1);
    assert_error_has("<other> is missing");
    assert_ok(parse_with(needy, "a --seed 3 b"));
    assert_string_equal(my.other, "b");
}

static void config(const char *folder, const char *text)
{
    test_write(folder, "c.json", text, strlen(text));
}

static void bad_config(const char *folder, const char *text, const char *message)
{
    char line[256];
    config(folder, text);
    snprintf(line, sizeof line, "--config %s/c.json", folder);
    refused(line, message);
    if (strcmp(message, "cannot"))
        assert_error_has("c.json:");
}

static void configs(void **state)
{
    (void)state;
    char folder[64], line[256];
    snprintf(folder, sizeof folder, "%s", test_folder());
    snprintf(line, sizeof line, "--lr 3 --config %s/c.json", folder);
    config(folder, "{\"lr\": 1e-3, \"batch-size\": 5, \"grad_noise\": 1, \"seed\": 9007199254740993, \"shuffle\": false,"
                   " \"dataset\": null, \"clip_norm\": \"inf\", \"folder\": \"\\u00e9\"}");
    assert_ok(parse(line));
    assert_true(my.tune.schedule.lr == 3 && my.tune.loader.batch_size == 5 && my.noise == 1 && !my.tune.loader.shuffle && isinf(my.tune.clip_norm));
    assert_true(my.tune.seed == 9007199254740993); /* no double holds it */
    assert_null(my.tune.dataset);
    assert_string_equal(my.folder, "\xc3\xa9");
    assert_int_equal(tune_flags_source(&my.tune, "lr"), TUNE_FROM_FLAG);
    assert_int_equal(tune_flags_source(&my.tune, "batch_size"), TUNE_FROM_CONFIG);
    assert_int_equal(tune_flags_source(&my.tune, "eps"), TUNE_FROM_DEFAULT);
    assert_true(tune_flags_given(&my.tune, "batch-size") && !tune_flags_given(&my.tune, "eps"));
    bad_config(folder, "{\"lrr\": 1}", "unknown option \"lrr\"; the nearest is lr");
    bad_config(folder, "{\"lr\": \"1\"}", "lr: expected a number, found the string");
    bad_config(folder, "{\"lr\": true}", "lr: expected a number, found true or false");
    bad_config(folder, "{\"lr\": 1, \"lr\": 2}", "twice");
    bad_config(folder, "{\"batch-size\": 1, \"batch_size\": 2}", "twice");
    bad_config(folder, "{\"batch_size\": 1.5}", "batch-size: \"1.5\"");
    bad_config(folder, "{\"shuffle\": 1}", "expected true or false");
    bad_config(folder, "{\n\"lr\": -1}", "c.json:2: lr: \"-1\" is outside");
    bad_config(folder, "{\"lr\": NaN}", "c.json:1");
    bad_config(folder, "{\"lr\": 1", "c.json:1");
    bad_config(folder, "{} x", "c.json:1");
    bad_config(folder, "[1]", "expected an object");
    bad_config(folder, "lr: 1e-3\nepochs: 2\n", "c.json:1:1: found 'l', expected an object; a config is an object of JSON, {\"option\": value, ...}, or YAML in a file named .yaml");
    bad_config(folder, "{\"model\": \"a\\u0000b\"}", "NUL");
    refused("--config /nowhere/c.json", "/nowhere/c.json");
    tune_file_remove_folder(folder);
}

static void yaml_config(const char *folder, const char *text)
{
    test_write(folder, "c.yaml", text, strlen(text));
}

static void bad_yaml(const char *folder, const char *text, const char *message)
{
    char line[256];
    yaml_config(folder, text);
    snprintf(line, sizeof line, "--config %s/c.yaml", folder);
    refused(line, message);
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
}

/* The same keys, values and checks as in JSON. */
static void yaml_configs(void **state)
{
    (void)state;
    char folder[64], line[256];
    snprintf(folder, sizeof folder, "%s", test_folder());
    snprintf(line, sizeof line, "--lr 3 --config %s/c.yaml", folder);
    yaml_config(folder, "# a run\nlr: 1e-3\nbatch-size: 5\ngrad_noise: 1\nseed: 9007199254740993\nshuffle: no\ndataset: ~\n"
                        "clip_norm: .inf\nfolder: \"\\u00e9\"\n");
    assert_ok(parse(line));
    assert_true(my.tune.schedule.lr == 3 && my.tune.loader.batch_size == 5 && my.noise == 1 && !my.tune.loader.shuffle && isinf(my.tune.clip_norm));
    assert_true(my.tune.seed == 9007199254740993);
    assert_null(my.tune.dataset);
    assert_string_equal(my.folder, "\xc3\xa9");
    assert_int_equal(tune_flags_source(&my.tune, "batch_size"), TUNE_FROM_CONFIG);
    snprintf(line, sizeof line, "--config %s/c.yaml", folder);
    /* numbers as YAML has them, and as JSON has them */
    yaml_config(folder, "lr: 2e-5\nbatch_size: 0x10\neps: .5\nseed: 1_000\nclip_norm: inf");
    assert_ok(parse(line));
    assert_true(my.tune.schedule.lr == 2e-5 && my.tune.loader.batch_size == 16 && my.tune.optimizer.eps == 0.5);
    assert_true(my.tune.seed == 1000 && isinf(my.tune.clip_norm));
    /* texts as they are written, quoted or not */
    yaml_config(folder, "dataset: 1.10\ntext_field: on\nfolder: '010'");
    assert_ok(parse(line));
    assert_string_equal(my.tune.dataset, "1.10");
    assert_string_equal(my.tune.data.text_field, "on");
    assert_string_equal(my.folder, "010");
    /* anchors and merge keys, and JSON, which is YAML too */
    yaml_config(folder, "{\"lr\": &x 0.25, \"eps\": *x}");
    assert_ok(parse(line));
    assert_true(my.tune.schedule.lr == 0.25 && my.tune.optimizer.eps == 0.25);

    bad_yaml(folder, "lr: 1\nlrr: 1", "c.yaml:2:1: unknown option \"lrr\"; the nearest is lr");
    bad_yaml(folder, "learning_rate: 1e-3", "c.yaml:1:1: unknown option \"learning_rate\"; here it is --lr");
    bad_yaml(folder, "bf16: true", "c.yaml:1:1: unknown option \"bf16\"; here it is --dtype bfloat16");
    bad_yaml(folder, "lr: \"1\"", "c.yaml:1:5: lr: expected a number, found the string \"1\"");
    bad_yaml(folder, "batch_size: many", "c.yaml:1:13: batch-size: expected a number, found a string");
    bad_yaml(folder, "lr: 0x", "c.yaml:1:5: lr: expected a number, found the string \"0x\"");
    bad_yaml(folder, "lr: on", "c.yaml:1:5: lr: expected a number, found true or false");
    bad_yaml(folder, "lr: [1]", "c.yaml:1:5: lr: expected a number, found a list");
    bad_yaml(folder, "model:\n  name: x", "c.yaml:2:3: model: expected a string, found a map");
    bad_yaml(folder, "lr: 1\nlr: 2", "c.yaml:2:1: the key \"lr\" stands twice in this map; first on line 1");
    bad_yaml(folder, "batch-size: 1\nbatch_size: 2", "c.yaml:2:1: batch_size: the key stands there twice");
    bad_yaml(folder, "batch_size: 1.5", "c.yaml:1:13: batch-size: \"1.5\"");
    bad_yaml(folder, "shuffle: 1", "c.yaml:1:10: shuffle: expected true or false, found a number");
    bad_yaml(folder, "\nlr: -1", "c.yaml:2:5: lr: \"-1\" is outside");
    bad_yaml(folder, "lr: .nan", "c.yaml:1:5: lr: \"nan\" is not a number");
    bad_yaml(folder, "lr: 1\n\tx", "c.yaml:2:");
    bad_yaml(folder, "- lr", "c.yaml:1:1: expected a map of options to values, as in \"batch_size: 4\"; found a list");
    bad_yaml(folder, "lr=1", "found a text");
    bad_yaml(folder, "# lr: 1\n", "c.yaml:1:1: expected a map of options to values, as in \"batch_size: 4\"; found nothing");
    bad_yaml(folder, "lr: 1\n---\nlr: 2", "c.yaml:2:1: a second document begins here");
    bad_yaml(folder, "1: 2", "the key 1 is no text to YAML");

    /* hostile: aliases of aliases, depth */
    char text[4096] = "a: &a0 [x, x, x, x, x, x, x, x, x, x]\n", part[256];
    for (int i = 1; i < 8; i++) {
        int n = snprintf(part, sizeof part, "b%d: &a%d [", i, i);
        for (int k = 0; k < 10; k++)
            n += snprintf(part + n, sizeof part - (size_t)n, "*a%d,", i - 1);
        strcat(strcat(text, part), "]\n");
    }
    bad_yaml(folder, text, "more than 2000000 values, aliases written out");
    memset(text, '[', 4000);
    strcpy(text + 4000, "\n");
    bad_yaml(folder, text, "c.yaml:1:101: nested deeper than 100");

    /* a machine without libyaml reads JSON as ever */
    hidden_library = "libyaml-0.so.2";
    yaml_config(folder, "lr: 1");
    assert_int_equal(parse(line), -1);
    assert_error_has("c.yaml: this is YAML, and libyaml-0.so.2, which reads it, is not on this machine (Debian: apt-get install libyaml-0-2)");
    assert_int_equal(tune_error_kind(), TUNE_ERROR_CANNOT);
    config(folder, "{\"lr\": 2}");
    snprintf(line, sizeof line, "--config %s/c.json", folder);
    assert_ok(parse(line));
    assert_true(my.tune.schedule.lr == 2);
    hidden_library = NULL;
    tune_file_remove_folder(folder);
}

/* The name decides; under another name, the first character does. */
static void config_names(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *refused;
    } rows[] = {
        {"c.yml", "lr: 2", NULL},
        {"C.YAML", "lr: 2", NULL},
        {"c", "lr: 2", NULL},
        {"c.conf", "# lr\nlr: 2", NULL},
        {"c", " \n{\"lr\": 2}", NULL},
        {"c", "{lr: 2}", "found 'l', expected a key in quotes"},
        {"c.yaml", "{lr: 2}", NULL},
        {"c.JSON", "lr: 2", "or YAML in a file named .yaml"},
        {"c", "", "c:1:1: the JSON ends here, expected an object"},
    };
    char folder[64], line[256];
    snprintf(folder, sizeof folder, "%s", test_folder());
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        test_write(folder, rows[i].name, rows[i].text, strlen(rows[i].text));
        snprintf(line, sizeof line, "--config %s/%s", folder, rows[i].name);
        if (rows[i].refused) {
            refused(line, rows[i].refused);
            continue;
        }
        assert_ok(parse(line));
        assert_true(my.tune.schedule.lr == 2);
    }
    tune_file_remove_folder(folder);
}

/* ---- a run's options ---- */

static void run_json(const char *folder, const char *options, const char *more)
{
    char text[2048];
    snprintf(text, sizeof text, "{\"program\": \"prog\", \"status\": \"stopped\", \"working_folder\": \"/first\",\n\"options\": {%s},"
             "\"sessions\": [{\"working_folder\": \"/first\", \"pid\": 7}, {\"pid\": 8, \"working_folder\": \"%s\"}]%s}",
             options, folder, more);
    test_write(folder, "run.json", text, strlen(text));
}

static const char *resume(const char *folder, const char *more)
{
    static char line[512];
    snprintf(line, sizeof line, "--resume %s %s", folder, more);
    return line;
}

static void make(const char *folder, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(tune_file_make_folder(path));
}

static void resumes(void **state)
{
    (void)state;
    char folder[64], path[256];
    snprintf(folder, sizeof folder, "%s", test_folder());
    make(folder, "checkpoint-20");
    make(folder, "checkpoint-100/state");
    make(folder, "checkpoint-120.tmp-7");
    test_write(folder, "checkpoint-100/state/progress.json", "{}", 2);
    static const char all[] = "\"lr\": 1e-3, \"seed\": 9007199254740993, \"clip_norm\": \"inf\", \"shuffle\": false, \"text_field\": null,"
                              " \"grad_noise\": 0.5, \"log_every\": 7, \"stop_at_step\": 20, \"overwrite\": true, \"resume\": null,"
                              " \"output\": \"elsewhere\", \"dataset\": \"rows.jsonl\", \"response_template\": \"A:\"";
    run_json(folder, all, "");
    assert_ok(parse(resume(folder, "")));
    assert_true(my.tune.schedule.lr == 1e-3 && my.tune.seed == 9007199254740993 && isinf(my.tune.clip_norm) && !my.tune.loader.shuffle);
    assert_true(my.noise == 0.5 && my.tune.log.log_every == 7 && !my.tune.data.text_field);
    assert_true(my.tune.loader.stop_at_step == 0 && !my.tune.log.overwrite); /* of the process that had them */
    assert_string_equal(my.tune.log.folder, folder);
    assert_int_equal(tune_flags_source(&my.tune, "lr"), TUNE_FROM_RUN);
    assert_string_equal(tune_source_name(TUNE_FROM_RUN), "run");
    assert_false(tune_flags_given(&my.tune, "lr"));
    snprintf(path, sizeof path, "%s/checkpoint-100", folder);
    assert_string_equal(my.tune.resume_checkpoint, path);
    assert_false(my.tune.resume_finished);
    assert_string_equal(my.tune.dataset, "rows.jsonl"); /* not there either */
    test_write(folder, "rows.jsonl", "x", 1);
    assert_ok(parse(resume(folder, "")));
    snprintf(path, sizeof path, "%s/rows.jsonl", folder);
    assert_string_equal(my.tune.dataset, path); /* meant from where the run was started */
    assert_ok(parse(resume(folder, "--dataset other.jsonl --log-every 1 --save-every 3 --threads 9 --keep-last 2 --stop-at-step 5")));
    assert_true(my.tune.log.log_every == 1 && my.tune.threads == 9);
    assert_string_equal(my.tune.dataset, "other.jsonl"); /* its content is compared, by others */
    assert_ok(parse(resume(folder, "--lr 0.001 --seed 9007199254740993 --clip-norm inf --no-shuffle"))); /* the same values */
    refused(resume(folder, "--lr 0.002"), "--lr (was 1e-3, now 0.002)");
    assert_error_has("--allow-changed");
    refused(resume(folder, "--seed 9007199254740992 --epochs 3 --grad-noise 0 --text-field t"),
            "--seed (was 9007199254740993, now 9007199254740992), --text-field (was none, now t), --epochs (was 1, now 3), "
            "--grad-noise (was 0.5, now 0)");
    assert_ok(parse(resume(folder, "--allow-changed --lr 0.002 --batch-size 1")));
    cJSON *changes = tune_flags_changes_json(&my.tune);
    char *text = cJSON_PrintUnformatted(changes);
    assert_string_equal(text, "{\"--lr\":{\"was\":\"1e-3\",\"now\":\"0.002\"}}");
    free(text);
    cJSON_Delete(changes);
    tune_flags_free(&my.tune);
    tune_file_remove_folder(folder);
}

static void resume_points(void **state)
{
    (void)state;
    char folder[64], path[256], line[512];
    snprintf(folder, sizeof folder, "%s", test_folder());
    failed(resume(folder, ""), "no run.json and no checkpoint there");
    test_write(folder, "metrics.jsonl", "", 0);
    failed(resume(folder, ""), "ended before it began; start it again with `overwrite`");
    run_json(folder, "", "");
    failed(resume(folder, ""), "no checkpoint, it was ended before its first one was saved");
    assert_error_has("`overwrite`");
    run_json(folder, "\"save\": false", "");
    failed(resume(folder, ""), "no checkpoint, it was made without saving");
    refused("--resume /nowhere/at/all", "/nowhere/at/all\": no such folder");
    make(folder, "checkpoint-20/state");
    make(folder, "checkpoint-100/state");
    test_write(folder, "checkpoint-20/state/progress.json", "{}", 2);
    test_write(folder, "checkpoint-100/state/progress.json", "{}", 2);
    snprintf(path, sizeof path, "%s/checkpoint-best", folder);
    assert_ok(tune_file_link(path, "checkpoint-20"));
    static const char *const names[] = {"/", "/checkpoint-20", "/checkpoint-20/", "/checkpoint-best", "/checkpoint-20/../checkpoint-best"};
    static const char *const found[] = {"/checkpoint-100", "/checkpoint-20", "/checkpoint-20", "/checkpoint-20", "/checkpoint-20"};
    for (int i = 0; i < 5; i++) {
        snprintf(line, sizeof line, "--resume=%s%s", folder, names[i]);
        assert_ok(parse(line));
        char *mine = realpath(my.tune.resume_checkpoint, NULL), *output = realpath(my.tune.log.folder, NULL);
        snprintf(path, sizeof path, "%s%s", folder, found[i]);
        assert_string_equal(mine, path);
        assert_string_equal(output, folder);
        free(mine), free(output);
    }
    assert_int_equal(chdir(folder), 0);
    assert_ok(parse("--resume checkpoint-best"));
    assert_ok(parse("--resume ."));
    assert_string_equal(my.tune.resume_checkpoint, "./checkpoint-100");
    assert_int_equal(chdir("/"), 0);
    snprintf(path, sizeof path, "--output %s", folder);
    assert_ok(parse(resume(folder, path)));
    refused(resume(folder, "--output /tmp"), "--output /tmp: a resumed run goes on in its own folder");
    test_write(folder, "run.json", "{\"program\": \"other\", \"options\": {}}", 35);
    refused(resume(folder, ""), "a run of other, not of prog");
    run_json(folder, "\"lrr\": 1", "");
    refused(resume(folder, ""), "run.json:2: unknown option \"lrr\"");
    test_write(folder, "run.json", "{\"options\": {}}", 15);
    failed(resume(folder, ""), "no \"program\"");
    test_write(folder, "run.json", "{\"program\": \"pr", 15);
    failed(resume(folder, ""), "run.json:1");
    run_json(folder, "", ", \"more\": [1, {}]");
    config(folder, "{\"resume\": \"x\"}");
    snprintf(line, sizeof line, "--config %s/c.json", folder);
    refused(line, "--resume x");
    static const char ended[] = "{\"program\": \"prog\", \"options\": {}, \"status\": \"finished\"}";
    test_write(folder, "run.json", ended, sizeof ended - 1);
    assert_ok(parse(resume(folder, "")));
    assert_false(my.tune.resume_finished); /* its end was not saved */
    snprintf(path, sizeof path, "%s/checkpoint-final", folder);
    assert_ok(tune_file_link(path, "checkpoint-100"));
    assert_ok(parse(resume(folder, "")));
    assert_true(my.tune.resume_finished);
    assert_ok(parse(resume(folder, "--epochs 2 --allow-changed")));
    assert_false(my.tune.resume_finished);
    snprintf(line, sizeof line, "--resume %s/checkpoint-20", folder);
    assert_ok(parse(line));
    assert_false(my.tune.resume_finished); /* it went on from there, and can again */
    tune_flags_free(&my.tune);
    tune_file_remove_folder(folder);
}

static void model_defaults(void **state)
{
    (void)state;
    char folder[64], path[128], line[256];
    snprintf(folder, sizeof folder, "%s", test_folder());
    setenv("TUNE_DEFAULTS", folder, 1);
    assert_ok(parse("--model tiny")); /* no defaults at all: fine */
    snprintf(path, sizeof path, "%s/models", folder);
    assert_ok(tune_file_make_folder(path));
    snprintf(path, sizeof path, "%s/prog", folder);
    assert_ok(tune_file_make_folder(path));
    const char *known = "{\"name\": \"tiny\", \"hub_id\": \"Org/Tiny-1M\", \"config\": {}}";
    test_write(folder, "models/tiny.json", known, strlen(known));
    const char *values = "{\"lr\": 0.5, \"max_length\": 77, \"batch_size\": 9}";
    test_write(folder, "prog/tiny.json", values, strlen(values));
    config(folder, "{\"max_length\": 88, \"model\": \"org/tiny-1m\"}");
    const char *const names[] = {"tiny", "Tiny", "org/tiny-1m", "/elsewhere/Tiny-1M/", "/c/models--Org--Tiny-1M/snapshots/1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(line, sizeof line, "--batch-size 3 --model %s", names[i]);
        assert_ok(parse(line));
        assert_true(my.tune.schedule.lr == 0.5 && my.tune.data.max_length == 77 && my.tune.loader.batch_size == 3);
    }
    assert_int_equal(tune_flags_source(&my.tune, "lr"), TUNE_FROM_MODEL_DEFAULTS);
    assert_ok(parse("--model tiny-other"));
    assert_true(my.tune.schedule.lr == 2e-5);
    snprintf(line, sizeof line, "--config %s/c.json --batch-size 1", folder); /* a flag equal to the table's default */
    assert_ok(parse(line));
    assert_true(my.tune.schedule.lr == 0.5 && my.tune.data.max_length == 88 && my.tune.loader.batch_size == 1);
    test_write(folder, "prog/tiny.json", "{\"lrr\": 1}", 10);
    refused("--model tiny", "tiny.json:1: unknown option \"lrr\"");
    unsetenv("TUNE_DEFAULTS");
    tune_file_remove_folder(folder);
}

/* A model without a known name has the values of its size, from the first class that it is below. */
static void by_size(void **state)
{
    (void)state;
    char folder[64], path[128], line[256];
    snprintf(folder, sizeof folder, "%s", test_folder());
    setenv("TUNE_DEFAULTS", folder, 1);
    snprintf(path, sizeof path, "%s/mine", folder);
    assert_ok(tune_file_make_folder(path));
    /* 300 x 64 embeddings, tied, and 2 layers of 64 x 32 x (2 + 1) x 2 + 3 x 64 x 128: 92,928 */
    static const char config[] = "{\"vocab_size\": 300, \"hidden_size\": 64, \"num_hidden_layers\": 2, \"num_attention_heads\": 2, "
                                 "\"num_key_value_heads\": 1, \"intermediate_size\": 128, \"tie_word_embeddings\": true}";
    test_write(folder, "mine/config.json", config, sizeof config - 1);
    snprintf(line, sizeof line, "--model %s", path);
    assert_ok(parse(line)); /* no classes: fine */
    assert_null(tune_flags_size_defaults(&my.tune));
    static const struct { const char *limit; bool below; } limits[] = {{"92929", true}, {"92928", false}};
    for (int i = 0; i < 2; i++) {
        char classes[512];
        snprintf(classes, sizeof classes, "{\"other\": [{\"parameters_below\": 1e9, \"options\": {\"lr\": 7}}], \"prog\": ["
                 "{\"parameters_below\": 10, \"options\": {\"lr\": 6}}, {\"parameters_below\": %s, \"options\": {\"lr\": 0.5, "
                 "\"max-length\": 77}}, {\"parameters_below\": 1e9, \"options\": {\"lr\": 0.25}}]}", limits[i].limit);
        test_write(folder, "sizes.json", classes, strlen(classes));
        assert_ok(parse(line));
        assert_true(my.tune.schedule.lr == (limits[i].below ? 0.5 : 0.25));
        assert_true((my.tune.data.max_length == 77) == limits[i].below);
        assert_int_equal(tune_flags_source(&my.tune, "lr"), TUNE_FROM_MODEL_DEFAULTS);
        assert_non_null(strstr(tune_flags_size_defaults(&my.tune), limits[i].below ? "below 0.092929 million" : "below 1000 million"));
    }
    snprintf(line, sizeof line, "--lr 2e-5 --model %s", path); /* the user's own value wins, and nothing is left to say */
    assert_ok(parse(line));
    assert_true(my.tune.schedule.lr == 2e-5);
    assert_null(tune_flags_size_defaults(&my.tune));
    assert_ok(parse("--model not/here")); /* the getter says so */
    assert_true(my.tune.schedule.lr == 2e-5);
    static const char odd[] = "{\"prog\": [{\"parameters_below\": 1e9, \"options\": {\"lrr\": 1}}]}";
    test_write(folder, "sizes.json", odd, sizeof odd - 1);
    snprintf(line, sizeof line, "--model %s", path);
    refused(line, "sizes.json:1:");
    unsetenv("TUNE_DEFAULTS");
    tune_file_remove_folder(folder);
}

static char top[PATH_MAX]; /* this source tree */

/* A config.json without "tie_word_embeddings" is counted as its family reads it. */
static void size_of_families(void **state)
{
    (void)state;
    char folder[64], path[128], line[256];
    snprintf(folder, sizeof folder, "%s", test_folder());
    setenv("TUNE_DEFAULTS", folder, 1);
    snprintf(path, sizeof path, "%s/mine", folder);
    assert_ok(tune_file_make_folder(path));
    snprintf(line, sizeof line, "--model %s", path);
    /* the vocabulary has 16 million rows: nearly all weights are the embedding's, once or twice */
    static const char *const models[] = {"llama-tied", "qwen2", "qwen3", "mistral", "granite", "smollm3", "phi3", "olmo2", "gemma3"};
    int tied = 0;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char from[PATH_MAX + 64], classes[256];
        struct tune_model_config c;
        snprintf(from, sizeof from, "%s/tests/reference/%s", top, models[i]);
        cJSON *config = tune_cjson_read_in(from, "config.json", 1 << 16);
        assert_got(config);
        cJSON_DeleteItemFromObject(config, "tie_word_embeddings");
        cJSON_ReplaceItemInObject(config, "vocab_size", cJSON_CreateNumber(1 << 24));
        assert_ok(tune_model_config_parse(&c, config, models[i]));
        assert_ok(tune_cjson_write(path, "config.json", config, true));
        snprintf(classes, sizeof classes, "{\"prog\": [{\"parameters_below\": %.0f, \"options\": {\"lr\": 0.5}}, "
                 "{\"parameters_below\": 1e13, \"options\": {\"lr\": 0.25}}]}", 1.5 * (1 << 24) * c.hidden);
        test_write(folder, "sizes.json", classes, strlen(classes));
        assert_ok(parse(line));
        if (my.tune.schedule.lr != (c.tied ? 0.5 : 0.25))
            fail_msg("%s: tied is %d, and the learning rate %g", models[i], c.tied, my.tune.schedule.lr);
        tied += c.tied;
        cJSON_Delete(config);
    }
    assert_int_equal(tied, 2);
    unsetenv("TUNE_DEFAULTS");
    tune_file_remove_folder(folder);
}

/* What this distribution ships: each file's keys are options, its values in range. */
static void shipped_defaults(void **state)
{
    (void)state;
    struct tune_known_model *models;
    int count = tune_known_models(&models), applied = 0;
    assert_true(count > 0);
    for (int i = 0; i < count; i++) {
        char *argv[] = {"finetune_full", "--model", models[i].hub_id};
        tune_flags_free(&my.tune);
        assert_ok(tune_flags_parse(&my.tune, 3, argv, options, properties));
        applied += tune_flags_source(&my.tune, "lr") == TUNE_FROM_MODEL_DEFAULTS;
        assert_true(models[i].parameters > 0 && models[i].context > 0);
    }
    free(models);
    if (count == 0)
        skip();
    assert_true(applied > 0);
}

static void as_json(void **state)
{
    (void)state;
    char text[256];
    assert_ok(parse("--clip-norm inf --seed 9007199254740993 --lr 3e-4"));
    cJSON *json = tune_flags_json(&my.tune);
    char *printed = cJSON_PrintUnformatted(json);
    assert_non_null(strstr(printed, "\"seed\":9007199254740993"));
    assert_non_null(strstr(printed, "\"clip_norm\":\"inf\""));
    assert_non_null(strstr(printed, "\"lr\":0.0003,"));
    assert_non_null(strstr(printed, "\"model\":null"));
    /* what it writes, --config reads */
    char folder[64], line[128];
    snprintf(folder, sizeof folder, "%s", test_folder());
    config(folder, printed);
    free(printed);
    cJSON_Delete(json);
    snprintf(line, sizeof line, "--config %s/c.json", folder);
    assert_ok(parse(line));
    assert_true(isinf(my.tune.clip_norm) && my.tune.seed == 9007199254740993 && my.tune.schedule.lr == 3e-4);
    tune_file_remove_folder(folder);

    assert_ok(parse("--max-length 5"));
    json = tune_flags_describe(&my.tune);
    const cJSON *o, *all = cJSON_GetObjectItemCaseSensitive(json, "options");
    int seen = 0;
    cJSON_ArrayForEach(o, all)
        if (!strcmp(cJSON_GetObjectItemCaseSensitive(o, "name")->valuestring, "max_length")) {
            seen++;
            assert_true(cJSON_GetObjectItemCaseSensitive(o, "default")->valuedouble == 1024);
            assert_true(cJSON_GetObjectItemCaseSensitive(o, "value")->valueint == 5);
            assert_string_equal(cJSON_GetObjectItemCaseSensitive(o, "source")->valuestring, "flag");
            assert_string_equal(cJSON_GetObjectItemCaseSensitive(o, "range")->valuestring, "[1,8192]");
            assert_string_equal(cJSON_GetObjectItemCaseSensitive(o, "unit")->valuestring, "tokens");
        }
    assert_int_equal(seen, 1);
    const cJSON *p = cJSON_GetObjectItemCaseSensitive(json, "properties");
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(p, cJSON_GetArraySize(p) - 1), "name")->valuestring,
                        "sharpness");
    cJSON_Delete(json);

    char *odd[] = {"./p", "it's", "", "a b", "$x", "--lr=1"};
    my.tune.argv = odd;
    my.tune.argc = 6;
    assert_string_equal(tune_flags_command(&my.tune, text, sizeof text), "./p 'it'\\''s' '' 'a b' '$x' --lr=1");
    assert_string_equal(tune_flags_command(&my.tune, text, 5), "./p ");
}

static void help(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size;
    assert_ok(parse("--lr 0.25 --help"));
    assert_int_equal(tune_flags_wish(&my.tune), TUNE_WISH_HELP);
    FILE *out = open_memstream(&text, &size);
    tune_flags_help(&my.tune, "trains a model", out);
    fclose(out);
    assert_non_null(strstr(text, "prog - trains a model"));
    assert_non_null(strstr(text, "now 0.25 by flag"));
    assert_non_null(strstr(text, "rows of a micro-batch; in [1,4096] rows; default 1\n"));
    assert_non_null(strstr(text, "prog --help all"));
    assert_non_null(strstr(text, "--grad-noise")); /* a program's own options are listed */
    assert_null(strstr(text, "--[no-]shuffle"));
    assert_null(strstr(text, "packs of rows")); /* the second sentence */
    assert_null(strstr(text, "sharpness"));
    free(text);
    refused("--help=some", "--help takes no value but all");
    refused("--version=all", "--version takes no value");
    assert_ok(parse("--help=all"));
    assert_int_equal(tune_flags_wish(&my.tune), TUNE_WISH_HELP_ALL);
    assert_ok(parse("--help here"));
    assert_int_equal(tune_flags_wish(&my.tune), TUNE_WISH_HELP);
    assert_string_equal(my.folder, "here");
    assert_ok(parse("--lr 0.25 --help all"));
    assert_int_equal(tune_flags_wish(&my.tune), TUNE_WISH_HELP_ALL);
    assert_string_equal(my.folder, "none");
    out = open_memstream(&text, &size);
    tune_flags_help(&my.tune, "trains a model", out);
    fclose(out);
    assert_non_null(strstr(text, "--[no-]shuffle"));
    assert_non_null(strstr(text, "packs of rows"));
    assert_non_null(strstr(text, "sharpness"));
    assert_null(strstr(text, "--help all\n"));
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (strlen(line) > 100)
            fail_msg("wider than 100 columns: %s", line);
    free(text);
}

static void help_of_words(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size;
    assert_int_equal(parse_with(choosy, ""), -1);
    assert_string_equal(tune_error_message(), "<what> is missing: what to do; expected one of list|show");
    assert_int_equal(parse_with(choosy, "show --help"), 0);
    FILE *out = open_memstream(&text, &size);
    tune_flags_help(&my.tune, "looks at things", out);
    fclose(out);
    assert_non_null(strstr(text, "what to do: list, show\n"));
    assert_null(strstr(text, "by flag"));
    assert_null(strstr(text, "--model,")); /* it has none */
    free(text);
}

/* ---- program.c, in a child: its exit code, and what it wrote ---- */

static char said[65536];
static int child(void (*run)(int argc, char **argv), const char *line)
{
    int ends[2], argc = 1, status;
    char copy[512];
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        snprintf(copy, sizeof copy, "%s", line);
        argv_[0] = "build/prog";
        for (char *w = strtok(copy, " "); w; w = strtok(NULL, " "))
            argv_[argc++] = w;
        argv_[argc] = NULL;
        run(argc, argv_);
        _exit(99);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t got; n < sizeof said - 1 && (got = read(ends[0], said + n, sizeof said - 1 - n)) > 0;)
        n += (size_t)got;
    said[n] = 0;
    close(ends[0]);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void run_start(int argc, char **argv)
{
    tune_flags_free(&my.tune);
    memset(&my, 0, sizeof my);
    tune_program_start(argc, argv, &my.tune, options, properties, "a test");
    printf("started %d\n", my.tune.log.started_s > 0);
    struct tune_progress at = {0};
    exit(tune_program_exit(&at));
}
static void run_full_disk(int argc, char **argv)
{
    dup2(open("/dev/full", O_WRONLY), 1);
    run_start(argc, argv);
}
static void run_cannot(int argc, char **argv)
{
    (void)argc, (void)argv;
    tune_error_set_kind(TUNE_ERROR_CANNOT, "needs 3 bytes more");
    int result = -1;
    MUST(result);
}
static void run_signalled(int argc, char **argv)
{
    tune_flags_free(&my.tune);
    tune_program_start(argc, argv, &my.tune, options, properties, "a test");
    tune_program_catch_signals(&my.tune);
    raise(SIGTERM);
    struct tune_progress at = {.signal = *my.tune.stop_signal};
    printf("finished the step\n");
    exit(tune_program_exit(&at));
}
static void run_twice_signalled(int argc, char **argv)
{
    tune_flags_free(&my.tune);
    tune_program_start(argc, argv, &my.tune, options, properties, "a test");
    tune_program_catch_signals(&my.tune);
    raise(SIGINT);
    raise(SIGINT);
}

static void run_cut(int argc, char **argv)
{
    char name[] = "/tmp/tune-cut-XXXXXX";
    int fd = mkstemp(name);
    struct tune_mapping m;
    tune_flags_free(&my.tune);
    tune_program_start(argc, argv, &my.tune, options, properties, "a test");
    if (ftruncate(fd, 100000) < 0 || tune_file_map(&m, name) < 0 || truncate(name, 10) < 0)
        exit(98);
    unlink(name);
    exit(m.data[90000]);
}

/* Options that are served in place of the run. */
static int served(const struct tune_flags *flags, FILE *out)
{
    fprintf(out, "served at %g\n", flags->schedule.lr);
    if (flags->log.log_every != 3)
        return 0;
    tune_error_set("cannot be served");
    return -1;
}
static const struct tune_service service = {served};

static void run_served(int argc, char **argv)
{
    static const struct tune_option own[] = {
        TUNE_TRAINING_OPTIONS(my.tune), TUNE_OPTION_SERVED("show-tokens", &service), TUNE_OPTION_SERVED("overwrite", &service), {0}};
    tune_flags_free(&my.tune);
    memset(&my, 0, sizeof my);
    tune_program_start(argc, argv, &my.tune, own, properties, "a test");
    printf("runs\n");
    exit(0);
}

static void serves(void **state)
{
    (void)state;
    assert_int_equal(child(run_served, "--lr 1"), 0);
    assert_string_equal(said, "runs\n");
    assert_int_equal(child(run_served, "--show-tokens 2 --lr 1"), 0);
    assert_string_equal(said, "served at 1\n");
    assert_int_equal(child(run_served, "--overwrite --lr 2"), 0);
    assert_string_equal(said, "served at 2\n");
    assert_int_equal(child(run_served, "--show-tokens 0 --no-overwrite"), 0);
    assert_string_equal(said, "runs\n");
    assert_int_equal(child(run_served, "--show-tokens 1 --log-every 3"), 1);
    assert_non_null(strstr(said, "prog: cannot be served\n"));
    assert_int_equal(child(run_served, "--show-tokens 1 --help"), 0);
    assert_null(strstr(said, "served at"));
    const struct tune_option none[] = {{"lr", TUNE_DOUBLE, &my.tune.schedule.lr, "1", "", "", ""}, TUNE_OPTION_SERVED("lr", &service), {0}};
    const struct tune_option unknown[] = {TUNE_OPTION_SERVED("rows", &service), {0}};
    assert_int_equal(parse_with(none, ""), -1);
    assert_error_has("neither an int nor a bool");
    assert_int_equal(parse_with(unknown, ""), -1);
    assert_error_has("there is no such option before it");
}

static void program_ends(void **state)
{
    (void)state;
    if (child(run_start, "--lr 1") != 0)
        fail_msg("%s", said);
    assert_string_equal(said, "started 1\n");
    assert_int_equal(child(run_start, "--lrr 1"), 2);
    assert_string_equal(said, "prog: unknown option \"--lrr\"; the nearest is --lr\nprog: see prog --help\n");
    assert_int_equal(child(run_start, "--help"), 0);
    assert_non_null(strstr(said, "prog - a test"));
    assert_int_equal(child(run_start, "-h --lrr"), 2);
    assert_int_equal(child(run_start, "--describe"), 0);
    cJSON *json = cJSON_Parse(said);
    assert_non_null(json);
    cJSON_Delete(json);
    assert_int_equal(child(run_start, "--version"), 0);
    assert_non_null(strstr(said, TUNE_VERSION));
    assert_int_equal(child(run_start, "--list-models"), 0);
    assert_int_equal(child(run_full_disk, "--help"), 1);
    assert_non_null(strstr(said, "No space left"));
    assert_int_equal(child(run_cannot, ""), 3);
    assert_string_equal(said, "program: needs 3 bytes more\n");
    assert_int_equal(child(run_signalled, ""), 128 + SIGTERM);
    assert_string_equal(said, "finished the step\n");
    assert_int_equal(child(run_twice_signalled, ""), 128 + SIGINT);
    assert_int_equal(child(run_cut, ""), 1); /* SIGBUS */
    assert_non_null(strstr(said, "prog: /tmp/tune-cut-"));
    assert_non_null(strstr(said, "was cut short while it was being read"));
}

static int end(void **state)
{
    (void)state;
    tune_flags_free(&my.tune);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_to_numbers), cmocka_unit_test(spells),
        cmocka_unit_test(takes),          cmocka_unit_test(refuses), cmocka_unit_test(configs),
        cmocka_unit_test(yaml_configs),   cmocka_unit_test(config_names),
        cmocka_unit_test(resumes),      cmocka_unit_test(resume_points),
        cmocka_unit_test(model_defaults), cmocka_unit_test(by_size), cmocka_unit_test(size_of_families),
        cmocka_unit_test(shipped_defaults), cmocka_unit_test(as_json), cmocka_unit_test(help),
        cmocka_unit_test(help_of_words),
        cmocka_unit_test(serves), cmocka_unit_test(program_ends),
    };
    /* tune_program_start would start this program again, to set these */
    if (!realpath(".", top) || setenv("OMP_WAIT_POLICY", "passive", 1) < 0 || setenv("OPENBLAS_NUM_THREADS", "1", 1) < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, end);
}
