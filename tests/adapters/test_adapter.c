/* test_adapter.c - PEFT's adapter folders: what adapter_config.json asks for, read and written; adapters against their base,
 * merged: what the model then computes is what PEFT and PyTorch computed in float64 (tests/reference/adapters). */
#include <cjson/cJSON.h>

#include "adapter_folders.h"
#include "logits.h"
#include "adapters/adapter_file.h"
#include "core/print.h"
#include "files/cjson.h"
#include "files/safetensors.h"
#include "devices/ops.h"
#include "models/model.h"
#include "models/weights.h"

static const char *const made_by_peft[] = {"lora",         "lora-biases", "lora-untied", "lora-granite", "lora-embedding", "lora-head", "dora-whole",
                                           "lora-layer", "dora",        "dora-biases", "rslora-patterns"};
enum { MADE = sizeof made_by_peft / sizeof *made_by_peft };

static const char *reference(const char *name)
{
    static char path[TUNE_PATH_MAX];
    snprintf(path, sizeof path, "tests/reference/adapters/%s", name);
    return path;
}

static const char *at_home(const char *name)
{
    static char path[TUNE_PATH_MAX];
    snprintf(path, sizeof path, "%.3000s/%s", home, name);
    return path;
}

static cJSON *json_of(const char *folder)
{
    char path[TUNE_PATH_MAX];
    assert_ok(tune_path(path, "%s/adapter_config.json", folder));
    cJSON *json = tune_cjson_read(path, 1 << 20);
    assert_got(json);
    return json;
}

static void read_config(struct tune_adapter_config *c, const char *text)
{
    test_write(home, "adapter_config.json", text, strlen(text));
    assert_ok(tune_adapter_config_read(c, home));
}

static void refused(const char *text, const char *message)
{
    struct tune_adapter_config c;
    test_write(home, "adapter_config.json", text, strlen(text));
    if (tune_adapter_config_read(&c, home) == 0)
        fail_msg("%s was read", text);
    assert_error_has(message);
}

/* What PEFT wrote, read and written again: each key we write has PEFT's value, each that we leave out its default there. */
static void what_peft_wrote_is_written_again(void **state)
{
    static const char *const left_out[] = {"ensure_weight_tying", "lora_bias", "use_qalora"};
    (void)state;
    for (int i = 0; i < MADE; i++) {
        struct tune_adapter_config c;
        assert_ok(tune_adapter_config_read(&c, reference(made_by_peft[i])));
        assert_null(c.unknown);
        assert_ok(tune_adapter_config_write(home, &c.lora, c.base));
        cJSON *theirs = json_of(reference(made_by_peft[i])), *ours = json_of(home);
        for (const cJSON *v = ours->child; v; v = v->next) {
            if (v->next && strcmp(v->string, v->next->string) >= 0)
                fail_msg("%s stands before %s", v->string, v->next->string);
            if (!cJSON_Compare(v, cJSON_GetObjectItemCaseSensitive(theirs, v->string), true))
                fail_msg("%s: %s differs", made_by_peft[i], v->string);
            cJSON_DeleteItemFromObjectCaseSensitive(theirs, v->string);
        }
        for (const cJSON *v = theirs->child; v; v = v->next) {
            bool known = cJSON_IsNull(v) || strcmp(v->string, "peft_version") == 0 || strcmp(v->string, "megatron_core") == 0 ||
                         strcmp(v->string, "loftq_config") == 0 || strcmp(v->string, "qalora_group_size") == 0;
            for (size_t k = 0; k < sizeof left_out / sizeof *left_out; k++)
                known = known || (strcmp(v->string, left_out[k]) == 0 && cJSON_IsFalse(v));
            if (!known)
                fail_msg("%s: %s is not written", made_by_peft[i], v->string);
        }
        cJSON_Delete(theirs);
        cJSON_Delete(ours);
        tune_adapter_config_free(&c);
    }
}

static void values_are_those_of_the_file(void **state)
{
    (void)state;
    struct tune_adapter_config c;
    assert_ok(tune_adapter_config_read(&c, reference("rslora-patterns")));
    assert_int_equal(c.lora.r, 4);
    assert_true(c.lora.alpha == 6 && c.lora.dropout == 0 && c.lora.rslora && !c.lora.dora && !c.lora.layers);
    assert_string_equal(c.lora.targets, "down_proj,gate_proj,k_proj,q_proj,v_proj");
    assert_string_equal(c.lora.rank_pattern, "layers.1.self_attn.q_proj=5,v_proj=2");
    assert_string_equal(c.lora.alpha_pattern, "down_proj=3");
    assert_string_equal(c.base, "qwen3");
    tune_adapter_config_free(&c);
    assert_ok(tune_adapter_config_read(&c, reference("dora")));
    assert_true(c.lora.dora && !c.lora.rslora);
    tune_adapter_config_free(&c);
    assert_ok(tune_adapter_config_read(&c, reference("lora-layer")));
    assert_string_equal(c.lora.layers, "1");
    tune_adapter_config_free(&c);
}

static void missing_keys_have_pefts_defaults(void **state)
{
    (void)state;
    struct tune_adapter_config c;
    read_config(&c, "{\"peft_type\":\"LORA\",\"target_modules\":[\"q_proj\"],\"shiny\":1,\"newer\":null}");
    assert_true(c.lora.r == 8 && c.lora.alpha == 8 && c.lora.dropout == 0 && !c.lora.dora && !c.lora.rslora);
    assert_null(c.base);
    assert_null(c.lora.layers);
    assert_null(c.lora.rank_pattern);
    assert_string_equal(c.unknown, "shiny, newer");
    tune_adapter_config_free(&c);
}

/* The modules of two layers, and the others, that have adapters by these options: "0.q 1.up lm_head". */
static void adapted(const struct tune_lora_options *o, char *text, size_t size)
{
    static const char *const modules[] = {"self_attn.q", "self_attn.k", "self_attn.v", "self_attn.o", "mlp.gate", "mlp.up", "mlp.down"};
    static const char *const others[] = {"model.embed_tokens", "lm_head"};
    *text = 0;
    for (int layer = 0; layer < 2; layer++)
        for (int i = 0; i < 7; i++) {
            char name[80];
            snprintf(name, sizeof name, "model.layers.%d.%s_proj", layer, modules[i]);
            if (tune_lora_rank(o, name) > 0)
                tune_append(text, size, "%s%d%s", *text ? " " : "", layer, strchr(modules[i], '.'));
        }
    for (int i = 0; i < 2; i++)
        if (tune_lora_rank(o, others[i]) > 0)
            tune_append(text, size, "%s%s", *text ? " " : "", others[i]);
}

static void targets(const char *value, const char *rest, const char *expected)
{
    char text[1000], again[1000];
    struct tune_adapter_config c;
    snprintf(text, sizeof text, "{\"peft_type\":\"LORA\",\"target_modules\":%s%s}", value, rest);
    read_config(&c, text);
    adapted(&c.lora, text, sizeof text);
    assert_string_equal(text, expected);
    assert_ok(tune_adapter_config_write(home, &c.lora, NULL)); /* what is written means the same */
    tune_adapter_config_free(&c);
    assert_ok(tune_adapter_config_read(&c, home));
    adapted(&c.lora, again, sizeof again);
    assert_string_equal(again, text);
    tune_adapter_config_free(&c);
}

static void target_modules_are_read_in_every_form(void **state)
{
    (void)state;
    static const char all[] = "0.q 0.k 0.v 0.o 0.gate 0.up 0.down 1.q 1.k 1.v 1.o 1.gate 1.up 1.down";
    targets("[\"v_proj\",\"layers.0.mlp.up_proj\"]", "", "0.v 0.up 1.v");
    targets("\"all-linear\"", "", all);
    targets("\"All-Linear\"", "", all);
    targets("\".*\\\\.(q_proj|v_proj)\"", "", "0.q 0.v 1.q 1.v");
    targets("\"model\\\\.layers\\\\.0\\\\.mlp\\\\.up_proj\"", "", "0.up");
    targets("\"model.layers.0.mlp.up_proj\"", "", "0.up");
    targets("\"q_proj\"", "", ""); /* an expression for whole names */
    targets("[\"q_proj\",\"v_proj\"]", ",\"exclude_modules\":[\"v_proj\"]", "0.q 1.q");
    targets("[\"q_proj\",\"mlp.up_proj\"]", ",\"exclude_modules\":\".*\\\\.(up_proj|lm_head)\"", "0.q 1.q");
    targets("[\"q_proj\",\"up_proj\"]", ",\"exclude_modules\":[\"layers.0.mlp.up_proj\"]", "0.q 1.q 1.up");
    targets("[\"q_proj\"]", ",\"exclude_modules\":\"q_proj\"", "0.q 1.q");
    targets("[\"q_proj\"]", ",\"exclude_modules\":[\"q_proj\"]", "");
    targets("[\"q_proj\",\"v_proj\"]", ",\"exclude_modules\":[\"v_proj\"],\"layers_to_transform\":[1]", "1.q");
    targets("\".*[qv]_proj\"", ",\"exclude_modules\":[\"v_proj\"]", "0.q 1.q");
    targets("\"all-linear\"", ",\"exclude_modules\":[\"lm_head\",\"down_proj\",\"up_proj\",\"gate_proj\"]",
            "0.q 0.k 0.v 0.o 1.q 1.k 1.v 1.o");
    targets("[\"q_proj\",\"lm_head\"]", "", "0.q 1.q lm_head");
    targets("\".*(?:up_proj|embed_tokens|lm_head)\"", "", "0.up 1.up model.embed_tokens lm_head");
    targets("[\"q_proj\",\"lm_head\"]", ",\"modules_to_save\":[\"lm_head\"]", "0.q 1.q");
    targets("[\"q_proj\",\"a,b\",\"x|y\",\".v_proj\"]", "", "0.q 1.q"); /* names that no module has */
    targets("\"(?i).*Q_PROJ\"", "", "0.q 1.q");
    /* what Unsloth writes */
    targets("\"(?:\\\\bmodel\\\\.layers\\\\.[\\\\d]{1,}\\\\.(?:self_attn|mlp)\\\\.(?:(?:q_proj|v_proj)))\"", "", "0.q 0.v 1.q 1.v");
    targets("\"(?:\\\\bmodel\\\\.layers\\\\.(?!.*\\\\.experts\\\\.\\\\d)[\\\\d]{1,}\\\\.(?:self_attn)\\\\.(?:q_proj))\"", "", "0.q 1.q");
}

/* Regular expressions: read, applied to whole names, written. */
static void target_modules_are_expressions(void **state)
{
    (void)state;
    static const struct {
        const char *expression;
        int ranks[4]; /* of the modules below: 1 or 0 */
    } cases[] = {{".*[qv]_proj", {1, 0, 1, 0}},        {".*\\.layers\\.1\\..*_proj", {0, 0, 1, 1}},
                 {"q_proj|up_proj", {0, 0, 0, 0}},     {".*(?:q|up)_proj", {1, 1, 0, 1}},
                 {".*\\.\\d\\.mlp\\.\\w+", {0, 1, 0, 1}}, {".*?self_attn.*?", {1, 0, 1, 0}},
                 {"model\\.layers\\.[^\\d].*", {0, 0, 0, 0}}, {".*layers.(0|[2-9]|1[0-9]).*", {1, 1, 0, 0}},
                 {".*l{1}ayers.0.*", {1, 1, 0, 0}},
                 {".*q", {0, 0, 0, 0}},                {".*layers\\.[\\d]\\.mlp.*", {0, 1, 0, 1}}};
    static const char *const modules[] = {"model.layers.0.self_attn.q_proj", "model.layers.0.mlp.up_proj",
                                          "model.layers.1.self_attn.v_proj", "model.layers.1.mlp.up_proj"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tune_lora_options o = {.r = 1, .alpha = 1, .targets = cases[i].expression};
        struct tune_adapter_config c;
        assert_ok(tune_lora_check(&o));
        for (int m = 0; m < 4; m++)
            if (tune_lora_rank(&o, modules[m]) != cases[i].ranks[m])
                fail_msg("%s and %s", cases[i].expression, modules[m]);
        assert_ok(tune_adapter_config_write(home, &o, NULL));
        assert_ok(tune_adapter_config_read(&c, home));
        assert_string_equal(c.lora.targets, cases[i].expression);
        tune_adapter_config_free(&c);
    }
    struct tune_lora_options o = {.r = 1, .alpha = 1, .targets = ".*[qv]_proj", .layers = "0"};
    assert_int_equal(tune_lora_check(&o), -1);
    assert_error_has("the targets are a regular expression, which says itself in which layers");
}

static void layers_are_read_and_written(void **state)
{
    (void)state;
    struct tune_adapter_config c;
    read_config(&c, "{\"peft_type\":\"LORA\",\"target_modules\":[\"q_proj\"],"
                    "\"layers_to_transform\":3,\"layers_pattern\":[\"layers\"]}");
    assert_string_equal(c.lora.layers, "3");
    tune_adapter_config_free(&c);
    struct tune_lora_options o = {.r = 2, .alpha = 0.5, .dropout = 0.1, .targets = "all-linear", .layers = "0,2-4",
                                  .rank_pattern = "q_proj=3", .alpha_pattern = "q_proj=.5,k_proj=08"};
    assert_ok(tune_adapter_config_write(home, &o, "a \"base\""));
    assert_ok(tune_adapter_config_read(&c, home));
    assert_string_equal(c.lora.layers, "0,2,3,4");
    assert_string_equal(c.lora.targets, "down_proj,gate_proj,k_proj,o_proj,q_proj,up_proj,v_proj");
    assert_string_equal(c.lora.rank_pattern, "q_proj=3");
    assert_string_equal(c.lora.alpha_pattern, "q_proj=0.5,k_proj=8");
    assert_string_equal(c.base, "a \"base\"");
    assert_true(c.lora.alpha == 0.5 && c.lora.dropout == 0.1);
    tune_adapter_config_free(&c);
}

#define WITH(key_and_value) "{\"peft_type\":\"LORA\",\"target_modules\":[\"q_proj\"]," key_and_value "}"

/* A whole name is a target whatever its layer. */
static void whole_names_are_taken_whatever_the_layers(void **state)
{
    (void)state;
    targets("[\"model.layers.1.mlp.up_proj\"]", ",\"layers_to_transform\":[0]", "1.up");
    targets("[\"q_proj\",\"model.layers.1.mlp.up_proj\"]", ",\"layers_to_transform\":[0]", "0.q 1.up");
    targets("[\"q_proj\",\"model.layers.1.mlp.up_proj\"]", ",\"layers_to_transform\":[0],\"exclude_modules\":[\"k_proj\"]", "0.q 1.up");
    targets("[\"q_proj\"]", ",\"layers_to_transform\":[0],\"layers_pattern\":[\"h\",\"model\\\\.layers\"]", "0.q");
    targets("[\"q_proj\"]", ",\"layers_to_transform\":[]", "0.q 1.q");
    targets("[\"q_proj\"]", ",\"layers_to_transform\":1", "1.q");
}

/* PEFT's patterns are expressions for the whole name, or what follows a dot; the first that fits holds. */
static void patterns_are_expressions(void **state)
{
    (void)state;
    struct tune_adapter_config c;
    read_config(&c, "{\"peft_type\":\"LORA\",\"target_modules\":\"all-linear\","
                    "\"rank_pattern\":{\"^model.layers.0.self_attn.q_proj\":2,"
                    "\"(q_proj|k_proj)\":4,\"layers\\\\.\\\\d{1,2}\\\\.mlp\\\\.up_proj\":16,\"[a,g]ate_proj\":3,\"x,y\":5,\"o\":6,\"^o_proj\":7},"
                    "\"alpha_pattern\":{\"q_proj\":0.5,\"(?!up).*_proj\":2}}");
    for (int again = 0; again < 2; again++) {
        assert_int_equal(tune_lora_rank(&c.lora, "model.layers.0.self_attn.q_proj"), 2);
        assert_int_equal(tune_lora_rank(&c.lora, "model.layers.1.self_attn.q_proj"), 4);
        assert_int_equal(tune_lora_rank(&c.lora, "model.layers.11.mlp.up_proj"), 16);
        assert_int_equal(tune_lora_rank(&c.lora, "model.layers.1.mlp.gate_proj"), 3);
        assert_int_equal(tune_lora_rank(&c.lora, "model.layers.1.self_attn.o_proj"), 8);
        assert_true(tune_lora_alpha(&c.lora, "model.layers.0.self_attn.q_proj") == 0.5);
        assert_true(tune_lora_alpha(&c.lora, "model.layers.0.mlp.up_proj") == 2); /* what is before a dot is matched by .* */
        assert_ok(tune_adapter_config_write(home, &c.lora, NULL));
        tune_adapter_config_free(&c);
        assert_ok(tune_adapter_config_read(&c, home));
    }
    tune_adapter_config_free(&c);
}

/* An expression that is not understood means the modules, or the ranks, that the adapter's file has. */
static void the_file_answers_for_an_expression(void **state)
{
    (void)state;
    static const char *const configs[] = {"\"target_modules\":\"(model)\\\\.layers.*((?:q|v)_proj)(?(1)|x)\"",
                                          "\"target_modules\":\"all-linear\",\"rank_pattern\":{\"(?>q_proj)\":3}"};
    struct tune_adapter_config c;
    char text[400];
    refused(WITH("\"rank_pattern\":{\"(?>q_proj)\":3}"), "is not known here"); /* there is no file */
    struct tune_safetensors_writer *w = tune_safetensors_writer_new(at_home("adapter_model.safetensors"));
    assert_got(w);
    static const float zeros[64];
    assert_ok(tune_safetensors_writer_declare(w, "base_model.model.model.layers.1.self_attn.v_proj.lora_A.weight", TUNE_F32, 2, (int64_t[]){3, 4}));
    assert_ok(tune_safetensors_writer_write(w, zeros, 48));
    assert_ok(tune_safetensors_writer_finish(w));
    tune_safetensors_writer_free(w);
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "{\"peft_type\":\"LORA\",%s}", configs[i]);
        read_config(&c, text);
        assert_int_equal(tune_lora_rank(&c.lora, "model.layers.1.self_attn.v_proj"), i ? 3 : 8);
        assert_int_equal(tune_lora_rank(&c.lora, "model.layers.0.self_attn.v_proj"), i ? 8 : 0);
        assert_non_null(strstr(c.remark, i ? "the ranks are those of the tensors" : "the modules are those of the tensors"));
        tune_adapter_config_free(&c);
    }
    refused(WITH("\"alpha_pattern\":{\"(?>q_proj)\":3}"), "is not known here"); /* no tensor tells of it */
    assert_ok(remove(at_home("adapter_model.safetensors")));
}


static void what_is_not_supported_is_refused_by_key_and_value(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"[]", "expected a JSON object"},
        {"{\"r\":4}", "no \"peft_type\""},
        {"{\"peft_type\":\"LORA\"}", "no \"target_modules\""},
        {"{\"peft_type\":\"LOHA\",\"target_modules\":[\"q_proj\"]}", "\"peft_type\" is \"LOHA\""},
        {"{\"peft_type\":\"LOR\",\"target_modules\":[\"q_proj\"]}", "\"peft_type\" is \"LOR\""},
        {WITH("\"task_type\":\"SEQ_CLS\""), "\"task_type\" is \"SEQ_CLS\""},
        {WITH("\"bias\":\"lora_only\""), "\"bias\" is \"lora_only\""},
        {WITH("\"bias\":7"), "\"bias\" is 7"},
        {WITH("\"modules_to_save\":[\"lm_head\",\"norm\"]"), "\"modules_to_save\" is [\"lm_head\",\"norm\"]: of modules"},
        {WITH("\"modules_to_save\":[\"head\"]"), "embed_tokens and lm_head are supported"},
        {WITH("\"modules_to_save\":\"lm_head\""), "\"modules_to_save\" is \"lm_head\": expected a list"},
        {WITH("\"modules_to_save\":[\"lm_head\"],\"ensure_weight_tying\":true"), "\"ensure_weight_tying\" is true"},
        {WITH("\"layer_replication\":[[0,2],[1,3]]"), "\"layer_replication\""},
        {WITH("\"target_parameters\":[\"x\"]"), "\"target_parameters\""},
        {WITH("\"lora_bias\":true"), "\"lora_bias\" is true"},
        {WITH("\"alora_invocation_tokens\":[1]"), "\"alora_invocation_tokens\" is [1]"},
        {WITH("\"use_qalora\":true"), "\"use_qalora\""},
        {WITH("\"kasa_config\":{\"beta\":1}"), "\"kasa_config\""},
        {WITH("\"trainable_token_indices\":[5]"), "\"trainable_token_indices\""},
        {WITH("\"init_lora_weights\":\"pissa\""), "\"init_lora_weights\" is \"pissa\""},
        {WITH("\"r\":0"), "\"r\" is 0: expected a number from 1"},
        {WITH("\"r\":1.5"), "\"r\" is 1.5"},
        {WITH("\"r\":\"4\""), "\"r\" is \"4\""},
        {WITH("\"r\":1e400"), "\"r\""},
        {WITH("\"lora_dropout\":1.5"), "\"lora_dropout\" is 1.5"},
        {WITH("\"lora_alpha\":0"), "\"lora_alpha\" is 0"},
        {WITH("\"lora_alpha\":-4"), "\"lora_alpha\" is -4"},
        {WITH("\"alpha_pattern\":{\"q_proj\":0}"), "\"alpha_pattern\""},
        {WITH("\"use_dora\":1"), "\"use_dora\" is 1"},
        {WITH("\"rank_pattern\":{\"q_proj\":0}"), "\"rank_pattern\""},
        {WITH("\"rank_pattern\":{\"q_proj\":2,\"q_proj\":3}"), "\"rank_pattern\""},
        {WITH("\"rank_pattern\":{\"a{1\":2,\"q_proj\":3}"), "\"rank_pattern\""},
        {WITH("\"rank_pattern\":[2]"), "\"rank_pattern\""},
        {WITH("\"layers_to_transform\":[-1]"), "\"layers_to_transform\""},
        {WITH("\"exclude_modules\":\"(q_proj\""), "a '(' is not closed"},
        {WITH("\"exclude_modules\":\"(.|.)*(.|.)*x\""), "it takes too long"},
        {WITH("\"exclude_modules\":[1]"), "\"exclude_modules\" is [1]"},
        {WITH("\"layers_to_transform\":false"), "\"layers_to_transform\" is false"},
        {WITH("\"layers_to_transform\":[1],\"layers_pattern\":\"layers|h\""), "\"layers_pattern\" is \"layers|h\""},
        {WITH("\"layers_to_transform\":[1],\"layers_pattern\":\"blocks\""), "\"layers_pattern\" is \"blocks\""},
        {WITH("\"base_model_name_or_path\":3"), "\"base_model_name_or_path\" is 3"},
        {WITH("\"r\":4,\"r\":8"), "\"r\" is there twice"},
        {"{\"peft_type\":\"LORA\",\"target_modules\":\".*\\\\.(q_proj|v_proj\"}", "the regular expression \".*\\.(q_proj|v_proj\": a '(' is not closed"},
        {"{\"peft_type\":\"LORA\",\"target_modules\":\"(q)\\\\1_proj\"}", "references to groups are not known here"},
        {"{\"peft_type\":\"LORA\",\"target_modules\":\".*[qv_proj\"}", "a '[' is not closed"},
        {"{\"peft_type\":\"LORA\",\"target_modules\":\".*[qv]_proj\",\"layers_to_transform\":[0]}", "where target_modules is a list"},
        {"{\"peft_type\":\"LORA\",\"target_modules\":[\"a,b\",\"\"]}", "no module can have such a name"},
        {"{\"peft_type\":\"LORA\",\"target_modules\":[3]}", "expected a list of module names"},
        {"{\"peft_type\":\"LORA\",\"target_modules\":\"all-linear\",\"layers_to_transform\":[0]}",
         "\"layers_to_transform\" is [0]"},
        {"{\"peft_type\":\"LORA\"", "adapter_config.json:1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused(bad[i].text, bad[i].message);
    static char many[8192]; /* layers */
    char *to = stpcpy(many, "{\"peft_type\":\"LORA\",\"target_modules\":[\"q_proj\"],\"layers_to_transform\":[0");
    for (int i = 0; i < TUNE_MAX_LAYERS; i++)
        to = stpcpy(to, ",0");
    strcpy(to, "]}");
    struct tune_adapter_config c;
    test_write(home, "adapter_config.json", many, strlen(many));
    assert_int_equal(tune_adapter_config_read(&c, home), -1);
    assert_error_has("more numbers than a model has layers");
}

/* ---- merging ---- */

static int read_weights(void *context, const struct tune_parameter *p, int64_t at, int64_t count, float *out)
{
    const struct tune_array *t = tune_weights_find(context, p->name);
    t = t ? t : tune_weights_find(context, "model.embed_tokens.weight"); /* a head that was tied */
    return tune_convert(out, TUNE_F32, (char *)t->data + at * tune_dtype_bits(t->dtype) / 8, t->dtype, count);
}

/* The adapter into the weights of a model that is loaded already, in pieces of that many elements. */
static void merge(struct tune_model *m, const char *base, const char *adapter, int64_t piece)
{
    struct tune_weights *w = tune_weights_open(base);
    assert_got(w);
    struct tune_adapter_file *f = tune_adapter_file_open(adapter);
    assert_got(f);
    struct tune_weights_source source = {read_weights, w};
    struct tune_parameters *table = tune_model_parameters(m);
    int modules;
    assert_ok(tune_adapter_file_check(f, table, &modules));
    assert_true(modules > 0);
    float *x = malloc(sizeof *x * (size_t)piece);
    for (int i = 0; i < table->count; i++)
        for (int64_t at = 0; at < table->at[i].count; at += piece) {
            int64_t n = table->at[i].count - at < piece ? table->at[i].count - at : piece;
            assert_ok(tune_adapter_file_merge(f, &source, &table->at[i], at, n, x));
            assert_ok(tune_model_write(m, &table->at[i], TUNE_WEIGHT, at, n, x));
        }
    free(x);
    tune_adapter_file_close(f);
    tune_weights_close(w);
}

/* Distance of the model's logits on the base's tokens from those expected with the adapter. */
static double logits_error(struct tune_model *m, const char *base, const char *adapter)
{
    char path[TUNE_PATH_MAX];
    assert_ok(tune_path(path, "%s/expected.safetensors", base));
    struct tune_safetensors *inputs = tune_safetensors_open(path);
    assert_got(inputs);
    assert_ok(tune_path(path, "%s/expected.safetensors", adapter));
    struct tune_safetensors *expected = tune_safetensors_open(path);
    assert_got(expected);
    const struct tune_array *ids = tune_safetensors_find(inputs, "input_ids"), *logits = tune_safetensors_find(expected, "logits");
    int B = (int)ids->shape[0], T = (int)ids->shape[1], N = B * T, V = (int)tune_model_vocabulary(m);
    int32_t *id = malloc(4 * (size_t)N), *length = malloc(4 * (size_t)B);
    for (int i = 0; i < N; i++) {
        int64_t v;
        memcpy(&v, (char *)ids->data + 8 * i, 8);
        id[i] = (int32_t)v;
    }
    for (int b = 0; b < B; b++)
        length[b] = T;
    struct tune_batch batch = {.B = B, .T = T, .ids = id, .labels = id, .lengths = length, .tokens = N, .label_count = N};
    struct tune_tensor *hidden;
    float *got = malloc(sizeof *got * (size_t)N * (size_t)V);
    assert_ok(tune_model_reserve(m, B, T, 0));
    assert_ok(tune_model_forward(m, &batch, &hidden));
    assert_ok(model_logits(m, hidden, 0, N, got));
    double d = 0, size = 0;
    for (int64_t i = 0; i < (int64_t)N * V; i++) {
        double x;
        memcpy(&x, (char *)logits->data + 8 * i, 8);
        d += (got[i] - x) * (got[i] - x);
        size += x * x;
    }
    free(id);
    free(length);
    free(got);
    tune_safetensors_close(inputs);
    tune_safetensors_close(expected);
    return sqrt(d / size);
}

/* An adapter of lm_head and of the embedding, rank 2, alpha 3: tensor number k has the values k + 1, k + 2, ... modulo 7, minus 3. */
static void make_vocabulary_adapter(int64_t rows, int64_t width, bool original)
{
    static const char config[] = "{\"peft_type\":\"LORA\",\"r\":2,\"lora_alpha\":3,\"target_modules\":[\"lm_head\",\"embed_tokens\"]}";
    const struct {
        const char *name;
        int64_t shape[2];
    } tensors[] = {{"lm_head.lora_A.weight", {2, width}}, {"lm_head.lora_B.weight", {rows, 2}},
                   {"model.embed_tokens.lora_embedding_A", {2, rows}}, {"model.embed_tokens.lora_embedding_B", {width, 2}},
                   {"lm_head.base_layer.weight", {rows, width}}};
    test_write(home, "adapter_config.json", config, strlen(config));
    struct tune_safetensors_writer *w = tune_safetensors_writer_new(at_home("adapter_model.safetensors"));
    assert_got(w);
    for (int k = 0; k < 4 + original; k++) {
        char name[100];
        snprintf(name, sizeof name, TUNE_ADAPTER_PREFIX "%s", tensors[k].name);
        assert_ok(tune_safetensors_writer_declare(w, name, TUNE_F32, 2, tensors[k].shape));
    }
    for (int k = 0; k < 4 + original; k++)
        for (int64_t i = 0; i < tensors[k].shape[0] * tensors[k].shape[1]; i++) {
            float x = (float)((k + 1 + i) % 7 - 3);
            assert_ok(tune_safetensors_writer_write(w, &x, 4));
        }
    assert_ok(tune_safetensors_writer_finish(w));
    tune_safetensors_writer_free(w);
}

static double made(int k, int64_t i)
{
    return (double)((k + 1 + i) % 7 - 3);
}

/* Element i of the merged matrix, where the base has w. */
static double merged_element(bool head, int64_t rows, int64_t width, int64_t i, double w)
{
    int64_t row = i / width, column = i % width;
    double sum = 0;
    for (int r = 0; r < 2; r++)
        sum += head ? made(1, row * 2 + r) * made(0, r * width + column) : made(2, r * rows + row) * made(3, column * 2 + r);
    return w + 1.5 * sum;
}

/* An adapter of lm_head alone, with the base's matrix: in a tied base, PEFT reads that into the embedding, too. */
static void head_alone(void)
{
    static const char config[] = "{\"peft_type\":\"LORA\",\"r\":2,\"lora_alpha\":3,\"target_modules\":[\"lm_head\"]}";
    test_write(home, "adapter_config.json", config, strlen(config));
    struct tune_adapter_file *f = tune_adapter_file_open(home);
    assert_got(f);
    assert_string_equal(tune_adapter_file_whole(f), "lm_head");
    tune_adapter_file_tie(f, true);
    assert_string_equal(tune_adapter_file_whole(f), "model.embed_tokens,lm_head");
    tune_adapter_file_close(f);
}

/* Low-rank adapters of lm_head and of the embedding: merged; in a model that generates, as whole copies; not trained. */
static void adapters_of_the_vocabulary(void **state)
{
    (void)state;
    static const char *const bases[] = {"tests/reference/llama-untied", "tests/reference/llama-tied"};
    for (int i = 0; i < 4; i++) {
        bool original = i >= 2, tied = i % 2;
        struct tune_adapter_config c;
        struct tune_model *m = tune_model_load_frozen(bases[tied], device, TUNE_F32, TUNE_F32), *other;
        assert_got(m);
        int64_t rows = tune_model_vocabulary(m), width = tune_model_config(m)->hidden;
        make_vocabulary_adapter(rows, width, original);
        assert_ok(tune_adapter_config_read(&c, home));
        assert_string_equal(tune_lora_low_rank(&c.lora, 0), "model.embed_tokens");
        assert_string_equal(tune_lora_low_rank(&c.lora, 1), "lm_head");
        assert_int_equal(tune_lora_add(m, &c.lora, 1), -1);
        assert_error_has("read and merged, but not trained");
        tune_model_free(m);
        m = tune_model_load_frozen(bases[tied], device, TUNE_F32, TUNE_F32);
        other = tune_model_load_frozen(bases[tied], device, TUNE_F32, TUNE_F32);
        struct tune_adapter_file *f = tune_adapter_file_open(home);
        assert_got(f);
        tune_adapter_file_tie(f, tied);
        c.lora.modules_to_save = tune_adapter_file_whole(f);
        assert_string_equal(c.lora.modules_to_save, "model.embed_tokens,lm_head");
        assert_ok(tune_lora_add(m, &c.lora, 1));
        tune_adapter_config_free(&c);
        int modules;
        assert_ok(tune_adapter_file_check(f, tune_model_parameters(other), &modules));
        assert_int_equal(modules, 2);
        const struct tune_parameters *t = tune_model_parameters(m);
        struct tune_weights_source source = tune_model_source(m);
        for (int k = t->base; k < t->count; k++) {
            const struct tune_parameter *p = &t->at[k];
            bool head = p->role == TUNE_OUTPUT;
            if (!head && p->role != TUNE_EMBEDDING)
                continue;
            float *was = malloc(4 * (size_t)p->count), *now = malloc(4 * (size_t)p->count);
            assert_ok(tune_model_read(m, p, TUNE_WEIGHT, 0, p->count, was));
            assert_ok(tune_adapter_file_merge(f, &source, p, 0, p->count, now));
            for (int64_t e = 0; e < p->count; e++) {
                double w = original && (head || tied) ? made(4, e) : (double)was[e];
                assert_true(fabs(now[e] - merged_element(head, rows, width, e, w)) < 1e-4);
            }
            free(was);
            free(now);
        }
        tune_adapter_file_close(f);
        tune_model_free(m);
        tune_model_free(other);
    }
    head_alone();
    assert_ok(remove(at_home("adapter_model.safetensors")));
}

/* Observed: at most 4e-7. Without the adapter: above 1e-2. */
static void merged_weights_compute_what_the_adapter_does(void **state)
{
    (void)state;
    for (int i = 0; i < MADE; i++) {
        struct tune_adapter_config c;
        char base[TUNE_PATH_MAX];
        const char *adapter = reference(made_by_peft[i]);
        assert_ok(tune_adapter_config_read(&c, adapter));
        assert_ok(tune_path(base, "tests/reference/%s", c.base));
        bool saves = c.lora.modules_to_save != NULL;
        tune_adapter_config_free(&c);
        for (int64_t piece = 7; piece < 10000; piece *= 1000) { /* pieces of rows, and whole tensors */
            struct tune_model_config config;
            assert_ok(tune_model_config_read(&config, base));
            config.tied = config.tied && !saves; /* what is trained whole is no longer tied */
            struct tune_model *m = tune_model_new(&config, device, TUNE_F32);
            assert_got(m);
            merge(m, base, adapter, piece);
            double error = logits_error(m, base, adapter);
            print_message("# %s: %.1e\n", made_by_peft[i], error);
            assert_true(error < 2e-6);
            tune_model_free(m);
        }
    }
}

static void mismatch(const char *base, const char *adapter, const char *message)
{
    struct tune_model_config config;
    struct tune_parameters table;
    assert_ok(tune_model_config_read(&config, base));
    assert_ok(tune_parameters_new(&table, &config));
    struct tune_adapter_file *f = tune_adapter_file_open(adapter);
    assert_got(f);
    if (tune_adapter_file_check(f, &table, NULL) == 0)
        fail_msg("%s fits %s", adapter, base);
    assert_error_has(message);
    tune_adapter_file_close(f);
    tune_parameters_free(&table);
}

/* One tensor of zeros after the other: "name shape0 shape1", shape1 0 for a vector. */
static void write_tensors(const char *folder, const char *const *name, const int64_t (*shape)[2], int count, enum tune_dtype dtype)
{
    static const char zeros[1 << 14];
    char path[TUNE_PATH_MAX];
    assert_ok(tune_path(path, "%s/adapter_model.safetensors", folder));
    struct tune_safetensors_writer *w = tune_safetensors_writer_new(path);
    assert_got(w);
    for (int i = 0; i < count; i++)
        assert_ok(tune_safetensors_writer_declare(w, name[i], dtype, shape[i][1] ? 2 : 1, shape[i]));
    for (int i = 0; i < count; i++) {
        int64_t elements = shape[i][0] * (shape[i][1] ? shape[i][1] : 1);
        assert_ok(tune_safetensors_writer_write(w, zeros, elements * tune_dtype_bits(dtype) / 8));
    }
    assert_ok(tune_safetensors_writer_finish(w));
    tune_safetensors_writer_free(w);
}

static void an_adapter_that_does_not_fit_is_told_by_names_and_shapes(void **state)
{
    (void)state;
    static const char config[] = "{\"peft_type\":\"LORA\",\"r\":2,\"target_modules\":[\"layers.0.mlp.down_proj\"],"
                                 "\"base_model_name_or_path\":\"some/base\"}";
#define DOWN "base_model.model.model.layers.0.mlp.down_proj"
    static const char *const names[] = {DOWN ".lora_A.weight", DOWN ".lora_B.weight", DOWN ".lora_C.weight",
                                        DOWN ".lora_magnitude_vector"};
    const char *base = "tests/reference/llama-tied";
    mismatch("tests/reference/llama-tied", reference("dora"), "made on llama-head-dim); other shapes: model.layers.0.");
    test_write(home, "adapter_config.json", config, strlen(config));

    struct tune_model_config c;
    assert_ok(tune_model_config_read(&c, base));
    const int64_t shapes[4][2] = {{2, c.ffn}, {c.hidden, 2}, {1, 1}, {c.hidden, 0}}, narrow[2][2] = {{2, c.ffn + 1}, {c.hidden, 2}};
    write_tensors(home, names, shapes, 1, TUNE_F32);
    mismatch(base, home, "missing: model.layers.0.mlp.down_proj.lora_B.weight");
    write_tensors(home, names, shapes, 3, TUNE_F32);
    mismatch(base, home, "nothing asks for: " DOWN ".lora_C.weight");
    write_tensors(home, names, shapes, 4, TUNE_F32); /* a magnitude, where the config does not say DoRA */
    mismatch(base, home, DOWN ".lora_magnitude_vector");
    write_tensors(home, names, narrow, 2, TUNE_F32);
    mismatch(base, home, "made on some/base); other shapes: model.layers.0.mlp.down_proj.lora_A.weight is [2, ");
    write_tensors(home, names, shapes, 2, TUNE_I32);
    mismatch(base, home, "not F32, F16, BF16 or F64: model.layers.0.mlp.down_proj.lora_A.weight is I32");
    static const char saving[] = "{\"peft_type\":\"LORA\",\"r\":2,\"target_modules\":[\"layers.0.mlp.down_proj\"],"
                                 "\"modules_to_save\":[\"lm_head\"]}";
    static const char *const saved[] = {"base_model.model.lm_head.weight", DOWN ".lora_A.weight", DOWN ".lora_B.weight",
                                        DOWN ".lora_C.weight"};
    int64_t shapes_saved[4][2] = {{c.vocabulary, c.hidden}, {2, c.ffn}, {c.hidden, 2}, {1, 1}};
    test_write(home, "adapter_config.json", saving, strlen(saving));
    write_tensors(home, saved + 1, shapes_saved + 1, 2, TUNE_F32);
    mismatch(base, home, "missing: lm_head.weight");
    write_tensors(home, saved, shapes_saved, 4, TUNE_F32);
    mismatch(base, home, "nothing asks for: " DOWN ".lora_C.weight");
    shapes_saved[0][0]++;
    write_tensors(home, saved, shapes_saved, 3, TUNE_F32);
    mismatch(base, home, "other shapes: lm_head.weight is [68, 16], not [67, 16]");
    test_write(home, "adapter_config.json", "{\"peft_type\":\"LORA\",\"target_modules\":[\"query\"]}", 47);
    write_tensors(home, names, shapes, 0, TUNE_F32);
    mismatch(base, home, "fits no module");
}

static void a_folder_without_tensors_is_told(void **state)
{
    (void)state;
    char path[TUNE_PATH_MAX];
    test_write(home, "adapter_config.json", "{\"peft_type\":\"LORA\",\"target_modules\":[\"q_proj\"]}", 48);
    assert_ok(tune_path(path, "%s/adapter_model.safetensors", home));
    unlink(path);
    assert_null(tune_adapter_file_open(home));
    assert_error_has("adapter_model.safetensors");
    test_write(home, "adapter_model.bin", "x", 1);
    assert_null(tune_adapter_file_open(home));
    assert_error_has("adapter_model.bin is not read");
    assert_null(tune_adapter_file_open("tests/reference/llama-tied"));
    assert_error_has("adapter_config.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_peft_wrote_is_written_again),
        cmocka_unit_test(values_are_those_of_the_file),
        cmocka_unit_test(missing_keys_have_pefts_defaults),
        cmocka_unit_test(target_modules_are_read_in_every_form),
        cmocka_unit_test(target_modules_are_expressions),
        cmocka_unit_test(layers_are_read_and_written),
        cmocka_unit_test(whole_names_are_taken_whatever_the_layers),
        cmocka_unit_test(patterns_are_expressions),
        cmocka_unit_test(the_file_answers_for_an_expression),
        cmocka_unit_test(what_is_not_supported_is_refused_by_key_and_value),
        cmocka_unit_test(adapters_of_the_vocabulary),
        cmocka_unit_test(merged_weights_compute_what_the_adapter_does),
        cmocka_unit_test(an_adapter_that_does_not_fit_is_told_by_names_and_shapes),
        cmocka_unit_test(a_folder_without_tensors_is_told),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
