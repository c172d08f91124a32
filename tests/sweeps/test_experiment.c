/* test_experiment.c - experiment files: those that come with the tree, what they make of inputs, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "files/file.h"
#include "metrics/scores.h"
#include "sweeps/spaces/experiment.h"
#include "sweeps/spaces/operation.h"

static char folder[] = "/tmp/test-experiment-XXXXXX";

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return tune_file_remove_folder(folder);
}

static const char *put(const char *name, const char *text)
{
    static char path[TUNE_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(tune_file_write(path, text, strlen(text)), 0);
    return path;
}

static struct tune_catalog shipped(void)
{
    struct tune_catalog c;
    const char *paths[] = {"defaults/experiments"};
    if (tune_catalog_read(&c, paths, 1) < 0)
        fail_msg("%s", tune_error_message());
    return c;
}

/* ---- the shipped ones and their programs ---- */

static cJSON *describe(const char *program)
{
    const char *build = getenv("BUILD"), *wrapper = getenv("TUNE_TEST_WRAPPER"); /* tests/run.sh */
    char command[TUNE_PATH_MAX + 32], *text = calloc(1, 1 << 20);
    snprintf(command, sizeof command, "%s %s/%s --describe", wrapper ? wrapper : "", build ? build : "build",
             program);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    size_t size = fread(text, 1, (1 << 20) - 1, f);
    assert_true(size > 100);
    assert_int_equal(pclose(f), 0);
    cJSON *json = cJSON_Parse(text);
    free(text);
    assert_non_null(json);
    return json;
}

static const cJSON *named(const cJSON *json, const char *list, const char *key, const char *name)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(json, list)) {
        if (!strcmp(cJSON_GetObjectItemCaseSensitive(item, key)->valuestring, name))
            return item;
    }
    return NULL;
}

static bool has_choice(const cJSON *option, const char *text)
{
    const cJSON *choice, *choices = cJSON_GetObjectItemCaseSensitive(option, "choices");
    cJSON_ArrayForEach(choice, choices) {
        if (!strcmp(choice->valuestring, text))
            return true;
    }
    return cJSON_GetArraySize(choices) == 0;
}

/* True if the name is of a number that an evaluation gives: which there are depends on options. */
static bool is_evaluated(const char *name)
{
    name += strncmp(name, "before_", 7) ? 0 : 7;
    if (strncmp(name, "eval_", 5))
        return false;
    return !strcmp(name + 5, "loss") || !strcmp(name + 5, "general_loss") || tune_score_find(name + 5);
}

/* Every flag an experiment gives is one of its recipe's, every target a property of the same unit. */
static void fit(const char *recipe, int experiments)
{
    struct tune_catalog c = shipped();
    cJSON *json = describe(recipe);
    int checked = 0;
    for (int i = 0; i < c.count; i++) {
        const struct tune_experiment *e = c.experiments[i];
        if (strcmp(e->program, recipe))
            continue;
        checked++;
        for (int k = 0; k < e->argument_count; k++)
            if (!strncmp(e->arguments[k], "--", 2) && !named(json, "options", "flag", e->arguments[k]) &&
                !(!strncmp(e->arguments[k], "--no-", 5) && named(json, "options", "name", e->arguments[k] + 5)))
                fail_msg("%s: no flag %s", e->name, e->arguments[k]);
        for (int k = 0; k < e->input_count; k++) {
            const struct tune_input *in = &e->inputs[k];
            const cJSON *option = in->flag ? named(json, "options", "flag", in->flag) : NULL;
            if (in->flag && !option)
                fail_msg("%s: input %s: no flag %s", e->name, in->name, in->flag);
            for (int m = 0; m < in->map_count && option; m++)
                for (int a = 0; a < in->map[m].count; a++)
                    if (!has_choice(option, in->map[m].arguments[a]))
                        fail_msg("%s: %s cannot be %s", e->name, in->flag, in->map[m].arguments[a]);
        }
        for (int k = 0; k < e->target_count; k++) {
            const struct tune_target *t = &e->targets[k];
            if (t->reduce >= TUNE_REDUCE_COUNT_OOM)
                continue;
            const cJSON *property = named(json, "properties", "name", t->name);
            if (!property && (is_evaluated(t->name) || (t->optional && !strcmp(t->name, "model_load_time")))) /* ado's old rows have it */
                continue;
            if (!property)
                fail_msg("%s: no property %s", e->name, t->name);
            assert_string_equal(cJSON_GetObjectItemCaseSensitive(property, "unit")->valuestring, t->unit);
        }
    }
    assert_int_equal(checked, experiments);
    cJSON_Delete(json);
    tune_catalog_free(&c);
}

static void test_shipped_fit_their_recipe(void **state)
{
    (void)state;
    fit("finetune_full", 3);
    fit("finetune_lora", 4);
}

static int input_of(const struct tune_experiment *e, const char *name)
{
    for (int i = 0; i < e->input_count; i++)
        if (!strcmp(e->inputs[i].name, name))
            return i;
    fail_msg("%s has no input %s", e->name, name);
    return -1;
}

/* The text behind the flag, which is there once. */
static const char *given(const struct tune_command *c, const char *flag)
{
    const char *value = NULL;
    for (int i = 0; i + 1 < c->argument_count; i++)
        if (!strcmp(c->arguments[i], flag)) {
            assert_null(value);
            value = c->arguments[i + 1];
        }
    assert_non_null(value);
    return value;
}

/* What ado's experiment takes: rank, scale, dropout; targets by model; weights and activations by two inputs. */
static void test_lora(void **state)
{
    static const struct {
        const char *model, *targets, *dtype;
        bool bf16;
        const char *given, *base, *activations;
    } cases[] = {
        {"smollm2-135m", "by model", "bfloat16", false, "q_proj,v_proj", "bfloat16", "bfloat16"},
        {"llama3-8b", "by model", "float32", false, "q_proj,k_proj", "float32", "float32"},
        {"granite-8b-code-base", "by model", "float32", true, "q_proj,v_proj", "float32", "bfloat16"},
        {"llama3-8b", "all-linear", "bfloat16", true, "all-linear", "bfloat16", "bfloat16"},
    };
    struct tune_catalog c = shipped();
    const struct tune_experiment *e = tune_catalog_find(&c, "SFTTrainer", "finetune_lora_benchmark-v1.0.0");
    const struct tune_experiment *full = tune_catalog_find(&c, "SFTTrainer", "finetune_full_benchmark-v1.0.0");
    struct tune_value inputs[64];
    (void)state;
    assert_true(e && full && e->input_count == full->input_count + 3 && e->input_count <= 64);
    for (int i = 0; i < 23; i++)
        assert_string_equal(e->targets[i].name, full->targets[i].name);
    for (int i = 0; i < full->input_count; i++)
        assert_true(input_of(e, full->inputs[i].name) >= i);
    assert_int_equal(e->inputs[input_of(e, "r")].standard.integer, 4);
    assert_int_equal(e->inputs[input_of(e, "lora_alpha")].standard.integer, 16);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct tune_command command;
        for (int i = 0; i < e->input_count; i++)
            inputs[i] = e->inputs[i].required ? tune_value_int(1) : e->inputs[i].standard;
        inputs[input_of(e, "number_gpus")] = tune_value_int(0);
        inputs[input_of(e, "model_name")] = tune_value_text(cases[k].model);
        inputs[input_of(e, "target_modules")] = tune_value_text(cases[k].targets);
        inputs[input_of(e, "torch_dtype")] = tune_value_text(cases[k].dtype);
        inputs[input_of(e, "bf16")] = tune_value_bool(cases[k].bf16);
        if (tune_experiment_command(e, inputs, NULL, 0, &command) < 0)
            fail_msg("%s", tune_error_message());
        assert_string_equal(given(&command, "--lora-r"), "4");
        assert_string_equal(given(&command, "--lora-alpha"), "16");
        assert_string_equal(given(&command, "--lora-dropout"), "0.05");
        assert_string_equal(given(&command, "--lora-targets"), cases[k].given);
        assert_string_equal(given(&command, "--base-dtype"), cases[k].base);
        assert_string_equal(given(&command, "--dtype"), cases[k].activations);
        assert_string_equal(command.weights, cases[k].model);
        tune_command_free(&command);
    }
    tune_catalog_free(&c);
}

/* ado's 23, in its order. */
static void test_targets(void **state)
{
    static const char *const names[] = {"gpu_compute_utilization_min", "gpu_compute_utilization_avg", "gpu_compute_utilization_max",
        "gpu_memory_utilization_min", "gpu_memory_utilization_avg", "gpu_memory_utilization_max", "gpu_memory_utilization_peak",
        "gpu_power_watts_min", "gpu_power_watts_avg", "gpu_power_watts_max", "gpu_power_percent_min", "gpu_power_percent_avg",
        "gpu_power_percent_max", "cpu_compute_utilization", "cpu_memory_utilization", "train_runtime", "train_samples_per_second",
        "train_steps_per_second", "train_tokens_per_second", "train_tokens_per_gpu_per_second", "dataset_tokens_per_second",
        "dataset_tokens_per_second_per_gpu", "is_valid"};
    struct tune_catalog c = shipped();
    const struct tune_experiment *e = tune_catalog_find(&c, "SFTTrainer", "finetune_full_benchmark-v1.0.0");
    (void)state;
    assert_non_null(e);
    for (int i = 0; i < 23; i++)
        assert_string_equal(e->targets[i].name, names[i]);
    assert_ptr_equal(tune_catalog_find(&c, NULL, "SFTTrainer.finetune_full_benchmark-v1.0.0"), e);
    assert_null(tune_catalog_find(&c, "mock", "finetune_full_benchmark-v1.0.0"));
    assert_non_null(strstr(tune_error_message(), "SFTTrainer.finetune_full_stability-v1.0.0"));
    tune_catalog_free(&c);
}

/* ---- from inputs to a command line ---- */

static const char *const small =
    "{\"identifier\": \"small\", \"actuator\": \"custom_experiments\", \"program\": \"p\", \"arguments\": [\"--always\", 1],\n"
    " \"folders\": {\"data\": \"somewhere\"},\n"
    " \"inputs\": [\n"
    "  {\"identifier\": \"n\", \"required\": true, \"domain\": {\"domainRange\": [0, 10], \"interval\": 1}, \"flag\": \"--n\", \"value\": \"n // 2 + k\"},\n"
    "  {\"identifier\": \"k\", \"default\": 3, \"domain\": {\"values\": [3, 4.5]}, \"flag\": \"-k=\"},\n"
    "  {\"identifier\": \"active\", \"default\": false, \"domain\": {\"variableType\": \"BINARY_VARIABLE_TYPE\"}, \"flag\": \"--on\"},\n"
    "  {\"identifier\": \"kind\", \"default\": \"a\", \"domain\": {\"values\": [\"a\", \"b\", \"c\", \"d\"]}, \"flag\": \"--kind\", \"map\": {\"a\": \"x\", \"b\": null, \"c\": [\"--two\", \"{}\"]}, \"unsupported\": {\"d\": \"it is new\"}},\n"
    "  {\"identifier\": \"set\", \"default\": \"s\", \"domain\": {\"variableType\": \"OPEN_CATEGORICAL_VARIABLE_TYPE\"}, \"flag\": \"--set\", \"format\": \"{data}/{}-{n}{{}}.txt\", \"role\": \"data\", \"make\": [\"maker\", \"{}\", \"{data}\"]},\n"
    "  {\"identifier\": \"still\", \"default\": 1, \"domain\": {\"values\": [1, 2]}, \"inert\": \"nothing\"}],\n"
    " \"rules\": [{\"require\": \"n != 8\", \"reason\": \"eight\", \"here\": true}, {\"require\": \"n != 7\", \"reason\": \"seven\"}],\n"
    " \"targets\": [{\"identifier\": \"t\", \"unit\": \"s\"}, {\"identifier\": \"u\", \"shown\": \"k > 4\"}]}\n";

static struct tune_value inputs_of(int i, int64_t n, struct tune_value k, bool on, const char *kind, const char *set)
{
    const struct tune_value all[] = {tune_value_int(n), k, tune_value_bool(on), tune_value_text(kind), tune_value_text(set), tune_value_int(1)};
    return all[i];
}

static void check_command(const struct tune_experiment *e, int64_t n, struct tune_value k, bool on, const char *kind, const char *expected)
{
    struct tune_value inputs[6];
    struct tune_command c;
    char line[512] = "";
    for (int i = 0; i < 6; i++)
        inputs[i] = inputs_of(i, n, k, on, kind, "s");
    if (tune_experiment_command(e, inputs, &(struct tune_placeholder){"data", "/d"}, 1, &c) < 0)
        fail_msg("%s", tune_error_message());
    for (int i = 0; i < c.argument_count; i++)
        snprintf(line + strlen(line), sizeof line - strlen(line), "%s%s", i ? " " : "", c.arguments[i]);
    assert_string_equal(line, expected);
    assert_null(c.arguments[c.argument_count]);
    tune_command_free(&c);
}

static void test_command(void **state)
{
    struct tune_experiment *e = tune_experiment_read(put("small.json", small));
    (void)state;
    if (!e)
        fail_msg("%s", tune_error_message());
    check_command(e, 5, tune_value_int(3), false, "a", "--always 1 --n 5 -k=3 --no-on --kind x --set /d/s-5{}.txt");
    check_command(e, 5, tune_value_float(4.5), true, "b", "--always 1 --n 6.5 -k=4.5 --on --set /d/s-5{}.txt");
    check_command(e, 0, tune_value_int(3), true, "c", "--always 1 --n 3 -k=3 --on --two c --set /d/s-0{}.txt");
    struct tune_value inputs[6];
    struct tune_command c;
    char why[128];
    for (int i = 0; i < 6; i++)
        inputs[i] = inputs_of(i, 7, tune_value_int(3), true, "a", "s");
    assert_int_equal(tune_experiment_refuses(e, inputs, why, sizeof why), 1);
    assert_string_equal(why, "seven");
    assert_int_equal(tune_experiment_not_here(e, inputs, why, sizeof why), 0);
    inputs[0] = tune_value_int(8); /* a rule of this build: no row */
    assert_int_equal(tune_experiment_refuses(e, inputs, why, sizeof why), 0);
    assert_int_equal(tune_experiment_not_here(e, inputs, why, sizeof why), 1);
    assert_string_equal(why, "eight");
    inputs[0] = tune_value_int(6);
    assert_int_equal(tune_experiment_refuses(e, inputs, why, sizeof why), 0);
    assert_int_equal(tune_experiment_not_here(e, inputs, why, sizeof why), 0);
    assert_int_equal(tune_experiment_command(e, inputs, NULL, 0, &c), 0);
    assert_string_equal(c.data, "somewhere/s-6{}.txt"); /* the experiment's own folder */
    assert_string_equal(c.make[0], "maker");
    assert_string_equal(c.make[1], "s");
    assert_string_equal(c.make[2], "somewhere");
    assert_string_equal(c.environment[0], "TUNE_INPUT_N=6");
    assert_string_equal(c.environment[2], "TUNE_INPUT_ACTIVE=True");
    assert_int_equal(c.environment_count, 6);
    tune_command_free(&c);
    inputs[3] = tune_value_text("d");
    assert_int_equal(tune_experiment_refuses(e, inputs, why, sizeof why), 1);
    assert_string_equal(why, "kind d: it is new");
    tune_experiment_free(e);
}

/* What a map makes of an input is its weights or data, too; and an argument by itself where there is no flag. */
static void test_role_of_a_map(void **state)
{
    struct tune_experiment *e = tune_experiment_read(put("role.json",
        "{\"identifier\": \"r\", \"actuator\": \"a\", \"program\": \"p\", \"inputs\": [\n"
        "{\"identifier\": \"model\", \"required\": true, \"role\": \"weights\", \"flag\": \"--model\", \"map\": {\"m\": \"models/{}\", \"n\": null}},\n"
        "{\"identifier\": \"set\", \"required\": true, \"role\": \"data\", \"map\": {\"s\": \"s.txt\"}, \"make\": [\"maker\", \"{}\"]}],\n"
        "\"targets\": [{\"identifier\": \"t\"}]}"));
    struct tune_value inputs[] = {tune_value_text("m"), tune_value_text("s")};
    struct tune_command c;
    (void)state;
    if (!e || tune_experiment_command(e, inputs, NULL, 0, &c) < 0)
        fail_msg("%s", tune_error_message());
    assert_string_equal(c.weights, "models/m");
    assert_string_equal(c.data, "s.txt");
    assert_string_equal(c.make[1], "s");
    assert_int_equal(c.argument_count, 3);
    assert_string_equal(c.arguments[1], "models/m");
    assert_string_equal(c.arguments[2], "s.txt");
    tune_command_free(&c);
    inputs[0] = tune_value_text("n");
    assert_int_equal(tune_experiment_command(e, inputs, NULL, 0, &c), 0);
    assert_null(c.weights);
    assert_int_equal(c.argument_count, 1);
    tune_command_free(&c);
    tune_experiment_free(e);
    char path[TUNE_PATH_MAX];
    snprintf(path, sizeof path, "%s/role.json", folder);
    unlink(path);
}

/* ---- a space's experiments ---- */

static void binds(const char *yaml, const char *expected)
{
    const char *paths[] = {folder};
    struct tune_catalog c;
    struct tune_binding *p = NULL;
    put("small.json", small);
    assert_int_equal(tune_catalog_read(&c, paths, 1), 0);
    struct tune_document *d = tune_document_parse("s.yaml", yaml, strlen(yaml), false);
    assert_non_null(d);
    struct tune_space *s = tune_space_parse(d);
    if (!s)
        fail_msg("%s", tune_error_message());
    if (tune_space_bind(s, &c, &p) == 0) {
        assert_string_equal(p[0].full_identifier, expected);
    } else {
        assert_string_equal(tune_error_message(), expected);
        assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    }
    tune_bindings_free(p, s->reference_count);
    tune_space_free(s);
    tune_catalog_free(&c);
}
#define DIMENSION "entitySpace:\n- {identifier: n, propertyDomain: {values: [1, 2]}}\n"
#define SMALL "experiments:\n- actuatorIdentifier: custom_experiments\n  experimentIdentifier: small\n"

static void test_bind(void **state)
{
    (void)state;
    binds(DIMENSION SMALL, "custom_experiments.small");
    binds(DIMENSION SMALL "  parameterization:\n  - {property: {identifier: active}, value: true}\n  - {property: {identifier: k}, value: 4.5}\n",
          "custom_experiments.small-active.1-k.4.5");
    binds(DIMENSION "- {identifier: k, propertyDomain: {values: [3, 4.5]}}\n" SMALL, "custom_experiments.small");
    binds(DIMENSION SMALL "  parameterization:\n  - {property: {identifier: k}, value: 3}\n",
          "s.yaml:7:5: parameter k has its default value 3; leave it out, so that a measurement has only one id");
    binds(DIMENSION SMALL "  parameterization:\n  - {property: {identifier: k}, value: 3.0}\n",
          "s.yaml:7:5: parameter k has its default value 3.0; leave it out, so that a measurement has only one id");
    binds(DIMENSION SMALL "  parameterization:\n  - {property: {identifier: k}, value: 5}\n",
          "s.yaml:7:5: k of small cannot be 5 (space experiments small shows its domain)");
    binds(DIMENSION SMALL "  parameterization:\n  - {property: {identifier: n}, value: 5}\n",
          "s.yaml:7:5: n is a required input of small: make it a dimension of entitySpace (values: [5])");
    binds(DIMENSION "- {identifier: k, propertyDomain: {values: [3]}}\n" SMALL "  parameterization:\n  - {property: {identifier: k}, value: 4.5}\n",
          "s.yaml:8:5: k is both a dimension of entitySpace and a parameter; leave one of them out");
    binds(DIMENSION SMALL "- actuatorIdentifier: custom_experiments\n  experimentIdentifier: small\n",
          "s.yaml:6:3: experiment small is listed twice with the same parameters");
    binds(DIMENSION SMALL "  experimentVersion: 1.0.0\n", "s.yaml:6:22: there is no version 1.0.0 of experiment small, because the only "
          "version of an experiment is the one in its identifier; leave experimentVersion out");
    binds("entitySpace:\n- {identifier: k, propertyDomain: {values: [3]}}\n" SMALL,
          "s.yaml:4:3: experiment small needs the input n, which is not a dimension of entitySpace");
}

/* ---- what experiment files must not be ---- */

static void refuses(const char *text, const char *expected)
{
    char message[TUNE_PATH_MAX + 256];
    const char *path = put("bad.json", text);
    snprintf(message, sizeof message, "%s:%s", path, expected);
    struct tune_experiment *e = tune_experiment_read(path);
    assert_null(e);
    assert_string_equal(tune_error_message(), message);
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    unlink(path);
}
#define HEAD "{\"identifier\": \"e\", \"actuator\": \"a\", \"program\": \"p\",\n"
#define TARGETS "\"targets\": [{\"identifier\": \"t\"}]}"

static void test_bad_files(void **state)
{
    (void)state;
    refuses(HEAD "\"inputs\": []}", "1:1: an experiment needs \"targets\": what it measures");
    refuses(HEAD "\"runs\": 0, " TARGETS, "2:9: runs must be from 1 to 1000");
    refuses(HEAD "\"inputs\": [{\"identifier\": \"x\", \"domain\": {}}], " TARGETS,
            "2:12: input x needs either \"required\": true or a default");
    refuses(HEAD "\"inputs\": [{\"identifier\": \"x\", \"default\": 3, \"domain\": {\"values\": [1, 2]}}], " TARGETS,
            "2:43: input x: the default 3 is not in the domain of this input");
    refuses(HEAD "\"inputs\": [{\"identifier\": \"x\", \"required\": true, \"domain\": {}, \"inert\": \"i\", \"flag\": \"-x\"}], " TARGETS,
            "2:12: input x is inert, so it must not have a flag, format, map or value");
    refuses(HEAD "\"inputs\": [{\"identifier\": \"x\", \"required\": true, \"role\": \"data\", \"map\": {\"a\": [\"-x\", \"a\"]}}], " TARGETS,
            "2:12: input x has a role, so the values in its map must be texts, not lists of arguments");
    refuses(HEAD "\"inputs\": [{\"identifier\": \"x\", \"required\": true}, {\"identifier\": \"x\", \"required\": true}], " TARGETS,
            "2:51: there are two inputs x");
    refuses(HEAD "\"inputs\": [{\"identifier\": \"x-Y\", \"required\": true}, {\"identifier\": \"X_y\", \"required\": true}], "
            TARGETS, "2:53: inputs x-Y and X_y have the same environment variable; give one of them another name");
    refuses(HEAD "\"inputs\": [3], " TARGETS, "2:12: an input must be a map of keys to values, found a whole number");
    refuses(HEAD "\"inputs\": [{\"identifier\": \"\", \"required\": true}], " TARGETS, "2:27: the identifier is empty");
    refuses(HEAD "\"inputs\": [{\"identifier\": \"x\", \"required\": true, \"flag\": \"\"}], " TARGETS,
            "2:58: input x: the flag is empty; for no flag, leave the key out");
    refuses(HEAD "\"targets\": [{\"identifier\": \"\"}]}", "2:28: the identifier is empty");
    refuses("{\"identifier\": \"e\", \"actuator\": \"a\", \"program\": \"\", " TARGETS,
            "1:49: program must be the name of a program, or a path with a '/'");
    refuses(HEAD "\"targets\": [{\"identifier\": \"t\", \"reduce\": \"mode\"}]}",
            "2:43: reduce must be mean, median, min, max, sum, std, first, last, count oom, count error or count ok, not mode");
    refuses(HEAD "\"targets\": [{\"identifier\": \"t\"}, {\"identifier\": \"t\"}]}", "2:34: there are two targets t");
    refuses(HEAD "\"targets\": [{\"identifier\": \"t\", \"type\": \"vector\"}]}", "2:41: the type of target t must be number or text, not vector");
    refuses(HEAD "\"targets\": [{\"identifier\": \"t\", \"type\": \"text\", \"reduce\": \"mean\"}]}", "2:13: target t is a text, so it must have no unit, must not be whole, and its reduce must be first or last");
    refuses(HEAD "\"targets\": [{\"identifier\": \"t\", \"type\": \"text\", \"unit\": \"s\"}]}", "2:13: target t is a text, so it must have no unit, must not be whole, and its reduce must be first or last");
    refuses(HEAD "\"targets\": [{\"identifier\": \"t\", \"type\": \"text\", \"whole\": true}]}", "2:13: target t is a text, so it must have no unit, must not be whole, and its reduce must be first or last");
    refuses("{\"identifier\": \"e/f\", \"actuator\": \"a\", \"program\": \"p\", " TARGETS,
            "1:1: identifier and actuator must not contain '/' (nor the actuator '.'), because tables and ids are named after them");
}

/* ---- operations ---- */

static void operation(const char *yaml, const char *expected)
{
    struct tune_operation o;
    const char *path = put("o.yaml", yaml);
    if (tune_operation_read(&o, path, NULL) == 0) {
        assert_null(expected);
        tune_operation_free(&o);
        return;
    }
    if (!expected || !strstr(tune_error_message(), expected))
        fail_msg("%s", tune_error_message());
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
}
#define MODULE "operation:\n  module: {operatorName: random_walk, operationType: search}\n"

static void test_operation(void **state)
{
    struct tune_operation o;
    (void)state;
    assert_int_equal(tune_operation_read(&o, put("o.yaml", "spaces:\n- <will be set by ado>\n" MODULE
        "  parameters:\n    numberEntities: all\n    batchSize: 2\n    singleMeasurement: False\n    maxRetries: 3\n"
        "    samplerConfig: {mode: sequentialgrouped, samplerType: generator, grouping: [a, b]}\n    filter: {filterMode: unmeasured}\n"), NULL), 0);
    assert_true(o.entities == -1 && o.in_flight == 2 && !o.memoize && o.retries == 3 && o.mode == TUNE_ORDER_SEQUENTIAL_GROUPED);
    assert_true(!o.selector && o.group_count == 2 && !strcmp(o.grouping[1], "b") && o.filter == TUNE_FILTER_UNMEASURED);
    tune_operation_free(&o);
    tune_operation_default(&o);
    assert_true(o.entities == 1 && o.in_flight == 1 && o.memoize && o.selector && o.mode == TUNE_ORDER_RANDOM);
    operation(MODULE, NULL);
    operation(MODULE "  parameters: {mode: sequential, samplerType: selector}\n", NULL); /* as older files have it */
    operation("spaces: [a, b]\n" MODULE, "o.yaml:1:9: an operation works on one space, but 2 are named");
    operation("operation: {module: {operatorName: rai_tune}}\n", "there is no operator rai_tune; use random_walk");
    operation(MODULE "  parameters: {numberEntities: 0}\n", "numberEntities must be all or a whole number of at least 1");
    operation(MODULE "  parameters: {numberEntities: 2, batchSize: 3}\n", "batchSize 3 must not be more than numberEntities 2");
    operation(MODULE "  parameters: {numberEntities: all, batchSize: 1025}\n", "batchSize must be from 1 to 1024");
    operation(MODULE "  parameters: {samplerConfig: {mode: backwards}}\n", "backwards");
    operation(MODULE "  parameters: {mode: sequential, samplerConfig: {mode: random}}\n", "mode is also in samplerConfig");
    operation(MODULE "  parameters: {numberEntites: 2}\n", "numberEntities");
    operation(MODULE "metadata: [a]\n", "o.yaml:3:11: metadata must be a map");
    operation(MODULE "metadata:\n", NULL);
}

static int refuse(void *context, struct tune_document *d, const struct tune_node *operation, const char *name)
{
    assert_non_null(tune_node_get(operation, "module"));
    return strcmp(name, "ray_tune") ? 0 : tune_document_fail(d, operation, "%s for %s", (const char *)context, name);
}

static void test_other_operators(void **state)
{
    char advice[] = "another program";
    const struct tune_other_operators others = {refuse, advice};
    struct tune_operation o;
    (void)state;
    assert_int_equal(tune_operation_read(&o, put("o.yaml", "operation: {module: {operatorName: ray_tune}}\n"), &others), -1);
    assert_non_null(strstr(tune_error_message(), "another program for ray_tune"));
    assert_int_equal(tune_operation_read(&o, put("o.yaml", "operation: {module: {operatorName: rai_tune}}\n"), &others), -1);
    assert_non_null(strstr(tune_error_message(), "there is no operator rai_tune"));
    assert_int_equal(tune_operation_read(&o, put("o.yaml", MODULE), &others), 0);
    tune_operation_free(&o);
}

static void test_configuration(void **state)
{
    struct tune_actuator_configuration a;
    (void)state;
    setenv("HOME", "/home/somebody", 1);
    assert_int_equal(tune_actuator_configuration_read(&a, put("a.yaml", "actuatorIdentifier: SFTTrainer\nparameters:\n"
        "  match_exact_dependencies: False\n  data_directory: /data\n  cache: /cache\n  hf_home: ~/hub\n")), 0);
    assert_string_equal(a.data_directory, "/data");
    assert_string_equal(a.hf_home, "/home/somebody/hub");
    assert_int_equal(a.inert_count, 2);
    assert_string_equal(a.inert[1], "cache");
    tune_actuator_configuration_free(&a);
    assert_int_equal(tune_actuator_configuration_read(&a, put("a.yaml", "actuatorIdentifier: S\nparameters: {data_directry: /x}\n")), -1);
    if (!strstr(tune_error_message(), "data_directory"))
        fail_msg("%s", tune_error_message());
    assert_int_equal(tune_actuator_configuration_read(&a, put("a.yaml", "actuatorIdentifier: S\nmetadata: 3\n")), -1);
    if (!strstr(tune_error_message(), "a.yaml:2:11: metadata must be a map"))
        fail_msg("%s", tune_error_message());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shipped_fit_their_recipe), cmocka_unit_test(test_lora), cmocka_unit_test(test_targets),
        cmocka_unit_test(test_command), cmocka_unit_test(test_bind), cmocka_unit_test(test_role_of_a_map),
        cmocka_unit_test(test_bad_files), cmocka_unit_test(test_operation), cmocka_unit_test(test_other_operators),
        cmocka_unit_test(test_configuration),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
