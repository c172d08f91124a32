/* test_space.c - spaces: files and what is wrong with them, entities by index, ids, constraints counted, descriptions. */
#include "test.h"

#include "sweeps/spaces/lookup.h"
#include "sweeps/spaces/points.h"

static struct tune_space *parse(const char *yaml)
{
    struct tune_document *d = tune_document_parse("s.yaml", yaml, strlen(yaml), yaml[0] == '{' && yaml[1] == '"');
    return d ? tune_space_parse(d) : NULL;
}

static struct tune_space *space(const char *yaml)
{
    struct tune_space *s = parse(yaml);
    if (!s)
        fail_msg("%s: %s", yaml, tune_error_message());
    return s;
}

#define LAPTOP                                                                    \
    "experiments:\n"                                                              \
    "  - experimentIdentifier: finetune_full_benchmark-v1.0.0\n"                  \
    "    actuatorIdentifier: SFTTrainer\n"                                        \
    "    parameterization:\n"                                                     \
    "      - property: {identifier: fms_hf_tuning_version}\n"                     \
    "        value: \"2.8.2\"\n"                                                  \
    "      - property: {identifier: stop_after_seconds}\n"                        \
    "        value: 30\n"                                                         \
    "      - property: {identifier: flash_attn}\n"                                \
    "        value: False\n"                                                      \
    "entitySpace:\n"                                                              \
    "  - {identifier: model_name, propertyDomain: {values: [smollm2-135m]}}\n"    \
    "  - {identifier: number_gpus, propertyDomain: {values: [0]}}\n"              \
    "  - {identifier: model_max_length, propertyDomain: {values: [512, 1024]}}\n" \
    "  - {identifier: batch_size, propertyDomain: {values: [1, 2]}}\n"

static void the_example(void **state)
{
    (void)state;
    struct tune_space *s =
        space("sampleStoreIdentifier: 42\n" LAPTOP "metadata: {name: laptop, labels: {a: b}, description: four}\n");
    char text[256];
    struct tune_value v[4];
    static const char *const ids[] = {"model_name.smollm2-135m-number_gpus.0-model_max_length.512-batch_size.1",
                                      "model_name.smollm2-135m-number_gpus.0-model_max_length.512-batch_size.2",
                                      "model_name.smollm2-135m-number_gpus.0-model_max_length.1024-batch_size.1",
                                      "model_name.smollm2-135m-number_gpus.0-model_max_length.1024-batch_size.2"};
    assert_int_equal(s->count, 4);
    assert_true(s->size == 4);
    assert_string_equal(s->store, "42");
    assert_string_equal(s->name, "laptop");
    assert_string_equal(s->description, "four");
    for (int i = 0; i < 4; i++) {
        tune_index at;
        tune_space_entity(s, (tune_index)i, v);
        assert_int_equal(tune_entity_identifier(s->names, v, s->count, text, sizeof text), (int)strlen(ids[i]));
        assert_string_equal(text, ids[i]);
        assert_true(tune_space_find(s, v, &at) && at == (tune_index)i && tune_space_has(s, v));
    }
    assert_int_equal(tune_entity_identifier(s->names, v, s->count, text, 10), (int)strlen(ids[3])); /* cut, its whole length told */
    assert_string_equal(text, "model_nam");
    assert_int_equal(tune_entity_identifier(s->names, v, s->count, NULL, 0), (int)strlen(ids[3]));
    v[3] = tune_value_int(3);
    tune_index at;
    assert_false(tune_space_find(s, v, &at) || tune_space_has(s, v));
    assert_int_equal(s->reference_count, 1);
    const struct tune_experiment_reference *r = s->references;
    assert_string_equal(r->actuator, "SFTTrainer");
    assert_string_equal(r->experiment, "finetune_full_benchmark-v1.0.0");
    assert_null(r->version);
    assert_int_equal(r->count, 3);
    assert_string_equal(r->parameters[0].name, "fms_hf_tuning_version");
    assert_string_equal(r->parameters[0].value.text, "2.8.2");
    assert_true(r->parameters[1].value.type == TUNE_VALUE_INT && r->parameters[1].value.integer == 30);
    assert_true(r->parameters[2].value.type == TUNE_VALUE_BOOL && !r->parameters[2].value.boolean);
    tune_space_free(s);
}

static void entities_alone(void **state)
{
    (void)state;
    static const char *const none[] = {"entitySpace: [{identifier: a}]", "{entitySpace: [{identifier: a}], experiments: }",
                                       "{entitySpace: [{identifier: a}], experiments: []}",
                                       "{entitySpace: [{identifier: a}], sampleStoreIdentifier: <will be set by ado>}",
                                       "{\"entitySpace\": [{\"identifier\": \"a\"}], \"experiments\": null}"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        struct tune_space *s = space(none[i]);
        assert_int_equal(s->reference_count, 0);
        assert_null(s->store);
        assert_true(s->size == 0);
        assert_int_equal(s->dimensions[0].domain.type, TUNE_UNKNOWN);
        tune_space_free(s);
    }
    struct tune_space *s =
        space("entitySpace: [{identifier: a, propertyDomain: {variableType: OPEN_CATEGORICAL_VARIABLE_TYPE, values: [x]}}]");
    assert_int_equal(s->dimensions[0].domain.type, TUNE_CATEGORICAL); /* placed in a space it is open no more */
    assert_true(s->size == 1);
    tune_space_free(s);
}

/* Every entity is found at its own index, whatever the sizes. */
static void indexes(void **state)
{
    (void)state;
    struct tune_space *s =
        space("entitySpace:\n"
              "- {identifier: a, propertyDomain: {values: [x, y, z]}}\n"
              "- {identifier: v, propertyDomain: {values: [[1, 1], [1, 2], [2, 1], [2, 2]]}}\n"
              "- {identifier: b, propertyDomain: {variableType: BINARY_VARIABLE_TYPE}}\n"
              "- {identifier: w, propertyDomain: {domainRange: [0, 1.5], interval: 0.5}}\n");
    struct tune_value v[4];
    char text[128];
    assert_true(s->size == 72);
    for (tune_index i = 0, at; i < s->size; i++) {
        tune_space_entity(s, i, v);
        assert_true(tune_space_find(s, v, &at) && at == i);
    }
    tune_entity_identifier(s->names, v, s->count, text, sizeof text);
    assert_string_equal(text, "a.z-v.[2, 2]-b.1-w.1.0");
    tune_space_free(s);

    char yaml[4096] = "entitySpace:\n";
    for (int i = 0; i < 12; i++)
        snprintf(yaml + strlen(yaml), sizeof yaml - strlen(yaml),
                 "- {identifier: d%d, propertyDomain: {domainRange: [0, %d], interval: 1}}\n", i, 1000 + i);
    s = space(yaml);
    struct tune_value w[12];
    assert_true(s->size >> 64 > 0 && s->size != TUNE_INDEX_MAX);
    for (int n = 0; n < 2000; n++) {
        tune_index i = s->size / 2000 * (tune_index)n + (tune_index)n, at;
        tune_space_entity(s, i, w);
        assert_true(tune_space_find(s, w, &at) && at == i);
    }
    tune_space_entity(s, s->size - 1, w);
    for (int i = 0; i < 12; i++)
        assert_true(w[i].integer == 999 + i);
    tune_space_free(s);
}

static void too_large(void **state)
{
    (void)state;
    char yaml[4096] = "entitySpace:\n";
    for (int i = 0; i < 30; i++)
        snprintf(yaml + strlen(yaml), sizeof yaml - strlen(yaml),
                 "- {identifier: d%d, propertyDomain: {domainRange: [0, 100], interval: 1}}\n", i);
    struct tune_space *s = space(yaml);
    assert_true(s->size == TUNE_INDEX_MAX);
    tune_space_free(s);
    snprintf(yaml + strlen(yaml), sizeof yaml - strlen(yaml), "- identifier: u\n");
    s = space(yaml);
    assert_true(s->size == 0); /* not to be counted, rather than many */
    tune_space_free(s);
}

static void ids(void **state)
{
    (void)state;
    static const char *const same[] = {
        LAPTOP,
        "# a comment\nsampleStoreIdentifier: abc\nmetadata: {name: other}\n" LAPTOP,
        "{\"experiments\": [{\"actuatorIdentifier\": \"SFTTrainer\", \"experimentIdentifier\": \"finetune_full_benchmark-v1.0.0\", "
        "\"parameterization\": ["
        "{\"value\": false, \"property\": {\"identifier\": \"flash_attn\"}}, {\"value\": 30, \"property\": {\"identifier\": "
        "\"stop_after_seconds\"}},"
        "{\"value\": \"2.8.2\", \"property\": {\"identifier\": \"fms_hf_tuning_version\"}}]}], \"entitySpace\": ["
        "{\"identifier\": \"model_name\", \"propertyDomain\": {\"values\": [\"smollm2-135m\"], \"variableType\": "
        "\"CATEGORICAL_VARIABLE_TYPE\"}},"
        "{\"identifier\": \"number_gpus\", \"propertyDomain\": {\"values\": [0], \"domainRange\": [0, 1]}},"
        "{\"identifier\": \"model_max_length\", \"propertyDomain\": {\"values\": [512, 1024]}, \"metadata\": {\"description\": "
        "\"tokens\"}},"
        "{\"identifier\": \"batch_size\", \"propertyDomain\": {\"values\": [1, 2]}}]}",
    };
    struct tune_space *s = space(LAPTOP);
    char id[7];
    snprintf(id, sizeof id, "%s", s->id);
    assert_string_equal(id, "b1ce6a"); /* stores are found by it: it may not change */
    tune_space_free(s);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        s = space(same[i]);
        assert_string_equal(s->id, id);
        tune_space_free(s);
    }
    static const char *const changes[][2] = {{"[1, 2]", "[2, 1]"},         {"[1, 2]", "[1, 2.0]"}, {"value: 30", "value: 31"},
                                             {"value: 30", "value: '30'"}, {"SFTTrainer", "mock"}, {"batch_size", "batch_sizes"}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char text[2048];
        const char *at = strstr(LAPTOP, changes[i][0]);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - LAPTOP), LAPTOP, changes[i][1], at + strlen(changes[i][0]));
        s = space(text);
        assert_string_not_equal(s->id, id);
        tune_space_free(s);
    }
}

/* Never 123456, 12e345 or 0b1010, which one reader of YAML or another takes for numbers. */
static void ids_are_no_numbers(void **state)
{
    (void)state;
    char yaml[100], *end;
    int letters_first = 0, all = emulated() ? 2000 : 20000;
    for (int i = 0; i < all; i++) {
        snprintf(yaml, sizeof yaml, "entitySpace: [{identifier: x, propertyDomain: {values: [%d]}}]", i);
        struct tune_space *s = space(yaml);
        assert_int_equal(strlen(s->id), 6);
        assert_int_equal(strspn(s->id, "0123456789abcdef"), 6);
        strtod(s->id, &end);
        if (!*end || (s->id[0] == '0' && s->id[1] == 'b'))
            fail_msg("%s: %s", yaml, s->id);
        letters_first += s->id[0] >= 'a';
        tune_space_free(s);
    }
    assert_in_range(letters_first, all * 3 / 10, all / 2); /* and else all of them; 6 of 16, more by those drawn again */
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *message;
    } cases[] = {
        {"", "s.yaml:1:1: "},
        {"[1]", "s.yaml:1:1: "},
        {"entityspace: []", "entitySpace"},
        {"experiments: []", "s.yaml:1:1: a space needs entitySpace"},
        {"entitySpace: []", "at least one dimension"},
        {"entitySpace: {a: 1}", "entitySpace must be a list"},
        {"entitySpace: [3]", "s.yaml:1:15: "},
        {"entitySpace: [{propertyDomain: {values: [1]}}]", "identifier"},
        {"entitySpace: [{identifier: 3}]", "quotes"},
        {"entitySpace: [{identifier: ''}]", "the identifier is empty"},
        {"entitySpace: [{identifier: a, propertydomain: {}}]", "propertyDomain"},
        {"entitySpace: [{identifier: a, propertyType: MEASURED_PROPERTY_TYPE}]", "must be CONSTITUTIVE_PROPERTY_TYPE"},
        {"entitySpace: [{identifier: a, metadata: x}]", "metadata must be a map"},
        {"entitySpace:\n- identifier: a\n- identifier: b\n- identifier: a",
         "s.yaml:4:3: entitySpace[2] (a): a dimension of this name is already in line 2"},
        {"entitySpace:\n- identifier: a\n  propertyDomain:\n    values: [1]\n    interval: 2",
         "s.yaml:5:15: entitySpace[0] (a): interval and values exclude each other"},
        {"entitySpace:\n- identifier: a\n  propertyDomain: {domainRange: [4, 4]}",
         "s.yaml:3:33: entitySpace[0] (a): the end of domainRange"},
        {"{entitySpace: [{identifier: a}], experiments: 3}", "experiments must be a list"},
        {"{entitySpace: [{identifier: a}], experiments: [{actuatorIdentifier: e}]}", "experimentIdentifier"},
        {"{entitySpace: [{identifier: a}], experiments: [{actuatorIdentifier: e, experiment: f}]}", "experimentIdentifier"},
        {"{entitySpace: [{identifier: a}], experiments: [{actuatorIdentifier: e, experimentIdentifier: f, parameterization: []}]}",
         "parameterization is empty"},
        {"{entitySpace: [{identifier: a}], experiments: [{actuatorIdentifier: e, experimentIdentifier: f, parameterization: "
         "[{value: 3}]}]}",
         "property"},
        {"{entitySpace: [{identifier: a}], experiments: [{actuatorIdentifier: e, experimentIdentifier: f, parameterization: "
         "[{property: {identifier: p}}]}]}",
         "the parameter p needs a value"},
        {"{entitySpace: [{identifier: a}], experiments: [{actuatorIdentifier: e, experimentIdentifier: f, parameterization: "
         "[{property: {identifier: p}, value: {}}]}]}",
         "value of the parameter p must be"},
        {"entitySpace: [{identifier: a}]\nexperiments:\n- actuatorIdentifier: e\n  experimentIdentifier: f\n  parameterization:\n"
         "  - {property: {identifier: p}, value: 1}\n  - {property: {identifier: p}, value: 2}",
         "s.yaml:7:5: the parameter p is already in line 6"},
        {"{entitySpace: [{identifier: a}], metadata: 3}", "metadata must be a map"},
        {"{entitySpace: [{identifier: a}], constraints: a > 1}", "constraints must be a list"},
        {"{entitySpace: [{identifier: a}], constraints: [3]}", "a constraint must be a text"},
        {"{entitySpace: [{identifier: abc}], constraints: ['abd > 1']}", "s.yaml:1:50"},
        {"{entitySpace: [{identifier: abc}], constraints: ['abc >']}", "s.yaml:1:50"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (parse(cases[i].yaml))
            fail_msg("%s is accepted", cases[i].yaml);
        if (!strstr(tune_error_message(), cases[i].message))
            fail_msg("%s: \"%s\" lacks \"%s\"", cases[i].yaml, tune_error_message(), cases[i].message);
        assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    }
    char yaml[16384] = "entitySpace:\n";
    for (int i = 0; i <= TUNE_SPACE_DIMENSIONS; i++)
        snprintf(yaml + strlen(yaml), sizeof yaml - strlen(yaml), "- {identifier: d%d}\n", i);
    assert_null(parse(yaml));
    assert_error_has("has 257 dimensions; at most 256");
    snprintf(yaml, sizeof yaml, "entitySpace: [{identifier: a}]\nconstraints: [");
    for (int i = 0; i <= TUNE_SPACE_CONSTRAINTS; i++)
        snprintf(yaml + strlen(yaml), sizeof yaml - strlen(yaml), "a > %d, ", i);
    snprintf(yaml + strlen(yaml), sizeof yaml - strlen(yaml), "]\n");
    assert_null(parse(yaml));
    assert_error_has("s.yaml:2:14: there are 257 constraints, but at most 256");
    assert_null(tune_space_read("/nowhere/space.yaml"));
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
}

/* ---- constraints ---- */

#define GRID                                                                      \
    "entitySpace:\n"                                                              \
    "- {identifier: model, propertyDomain: {values: [a, b]}}\n"                   \
    "- {identifier: gpus, propertyDomain: {domainRange: [0, 9], interval: 1}}\n"  \
    "- {identifier: rest, propertyDomain: {domainRange: [0, 10], interval: 1}}\n" \
    "- {identifier: batch, propertyDomain: {domainRange: [1, 33], interval: 1}}\n"

static double counted(const char *constraints)
{
    char yaml[2048];
    double allowed, error, looked = 0;
    snprintf(yaml, sizeof yaml, GRID "constraints: %s\n", constraints);
    struct tune_space *s = space(yaml);
    struct tune_value v[4];
    assert_true(s->size == 5760);
    assert_ok(tune_space_count_allowed(s, &allowed, &error));
    assert_true(error == 0);
    for (tune_index i = 0; i < s->size; i++) {
        tune_space_entity(s, i, v);
        int holds = tune_space_allowed(s, v);
        assert_ok(holds);
        assert_int_equal(holds, tune_space_has(s, v));
        looked += holds;
    }
    if (looked != allowed)
        fail_msg("%s: %g counted, %g seen", constraints, allowed, looked);
    tune_space_free(s);
    return allowed;
}

static void constraints(void **state)
{
    (void)state;
    assert_true(counted("[]") == 5760);
    assert_true(counted("['1 == 1']") == 5760);
    assert_true(counted("['1 == 2']") == 0);
    assert_true(counted("['gpus > 0']") == 5760 / 9 * 8);
    assert_true(counted("['gpus > 7', 'batch > 31']") == 20);
    assert_true(counted("['model == \"a\" or batch % 2 == 0']") == 2880 + 1440);
    int met = 0;
    for (int gpus = 0; gpus < 9; gpus++)
        for (int batch = 1; batch < 33; batch++)
            met += batch % (gpus > 1 ? gpus : 1) == 0;
    assert_true(counted("['batch % max(1, gpus) == 0']") == 20 * met);
    assert_true(counted("['gpus > 0', 'batch % gpus == 0', 'rest + gpus < 9']") > 0);
    assert_true(counted("['batch > 0 and gpus > 0', '8 % gpus == 0']") == 5760 / 9 * 4); /* the first guards the second */
    static const char *const linear[] = {
        "['rest + gpus == 9']", "['2 * rest - gpus == 3']", "['batch == gpus * rest']", "['gpus * rest == batch', 'rest % 2 == 1']",
        "['rest == 2 or batch == 4']", "['not (rest == 2)']", "['not (rest == 2 and gpus == 1)', 'gpus + rest == 3']",
        "['3 - rest > gpus']", "['-rest <= -gpus']", "['gpus + batch < 7 and rest > 4']", "['rest > 4 and gpus + batch == 7']",
        "['(gpus + batch == 7 and rest > 4) or model == \"a\"']", "['2 <= gpus + rest <= 4']", "['gpus + rest >= 12', 'batch >= 30']",
        "['batch - 3 * rest == 2', 'gpus == rest']", "['model == \"b\" and 7 // 2 * rest == batch - gpus % 3']",
        "['gpus * gpus + batch == 40']", "['rest == 2.0']", "['gpus * 0 == 1']", "['0 * rest + gpus == 5']", "['rest != gpus', 'rest == gpus']",
        "['5 * rest > 22', '4 * gpus >= 13', '3 * batch < 64 - rest', '-2 * batch <= -9']"};
    for (size_t i = 0; i < sizeof linear / sizeof *linear; i++)
        counted(linear[i]);
    double allowed, error;
    struct tune_space *s = space(GRID "constraints: ['batch % gpus == 0']\n");
    struct tune_value v[4];
    assert_int_equal(tune_space_count_allowed(s, &allowed, &error), -1);
    tune_space_entity(s, 0, v);
    assert_int_equal(tune_space_allowed(s, v), -1);
    assert_false(tune_space_has(s, v));
    tune_space_free(s);
}

static void estimated(void **state)
{
    (void)state;
    static const char head[] = "entitySpace:\n"
                               "- {identifier: a, propertyDomain: {domainRange: [0, 100000], interval: 1}}\n"
                               "- {identifier: b, propertyDomain: {domainRange: [0, 1000], interval: 1}}\n"
                               "- {identifier: c, propertyDomain: {domainRange: [0, 50], interval: 1}}\n";
    static const struct {
        const char *constraint;
        double share;
        bool exact;
    } cases[] = {{"a % 4 == 0 and b < 700", 0.175, false},
                 {"a % 4 == 0", 0.25, true},
                 {"b < c", 0.0245, true},
                 {"a + b == 10 ** 5", 0.00000999, true},
                 {"a - 3 * b == 7", 0.00001, true},
                 {"a * b == 6", 0.00000004, true},
                 {"a + b < 0", 0, true},
                 {"a + b >= 0", 1, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char yaml[1024];
        double allowed, error;
        snprintf(yaml, sizeof yaml, "%sconstraints: ['%s']\n", head, cases[i].constraint);
        struct tune_space *s = space(yaml);
        assert_true(s->size == 5000000000);
        assert_ok(tune_space_count_allowed(s, &allowed, &error));
        if (cases[i].exact ? error != 0 || allowed != rint(cases[i].share * 5e9)
                           : fabs(allowed - cases[i].share * 5e9) > error * 1.0001 || error <= 0 || error > 0.003 * 5e9)
            fail_msg("%s: %g +- %g", cases[i].constraint, allowed, error);
        tune_space_free(s);
    }
}

/* Entities that no index counts, and that no double holds. */
static void estimated_beyond(void **state)
{
    (void)state;
    static const struct {
        int dimensions;
        const char *constraint;
        double low, high;
    } cases[] = {{20, "d0 > d1", 4.9e179, 5.1e179},
                 {20, "d0 + d1 == 999", NAN, NAN}, /* 1,000 of 10^18 pairs */
                 {20, "d0 + d1 == 10 ** 9", 9.99e170, 1e171}, /* an estimate over d0 */
                 {20, "d0 + d1 < 0", NAN, NAN},
                 {40, "d0 < 0 and d1 < 0", NAN, NAN},
                 {40, "1 > 2", 0, 0},
                 {40, "1 < 2", INFINITY, INFINITY}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char yaml[4096] = "entitySpace:\n";
        double allowed, error;
        for (int k = 0; k < cases[i].dimensions; k++)
            snprintf(yaml + strlen(yaml), sizeof yaml - strlen(yaml),
                     "- {identifier: d%d, propertyDomain: {domainRange: [0, 1000000000], interval: 1}}\n", k);
        snprintf(yaml + strlen(yaml), sizeof yaml - strlen(yaml), "constraints: ['%s']\n", cases[i].constraint);
        struct tune_space *s = space(yaml);
        assert_true(s->size == TUNE_INDEX_MAX);
        assert_ok(tune_space_count_allowed(s, &allowed, &error));
        if (isnan(cases[i].low) ? !isnan(allowed)
                                : !(allowed + error >= cases[i].low && (isinf(allowed) ? 0 : allowed - error) <= cases[i].high && error >= 0))
            fail_msg("%s: %g +- %g", cases[i].constraint, allowed, error);
        tune_space_free(s);
    }
}

/* ---- descriptions ---- */

static char *described(const struct tune_space *s, int indent)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_ok(tune_space_describe_entities(s, indent, out));
    assert_int_equal(fclose(out), 0);
    return text;
}

static void descriptions(void **state)
{
    (void)state;
    struct tune_space *s = space(
        "entitySpace:\n"
        "- {identifier: dataset_id, propertyDomain: {values: [news-tokens-16384plus-entries-4096]}}\n"
        "- {identifier: model_name, propertyDomain: {values: [granite-8b-code-base]}}\n"
        "- {identifier: number_gpus, propertyDomain: {values: [2, 4], domainRange: [2, 5]}}\n"
        "- {identifier: model_max_length, propertyDomain: {values: [512, 1024, 2048, 4096, 8192], domainRange: [512, 8193]}}\n"
        "- {identifier: torch_dtype, propertyDomain: {values: [bfloat16]}}\n"
        "- {identifier: batch_size, propertyDomain: {values: [1, 2, 4, 8, 16, 32, 64, 128], domainRange: [1, 129]}}\n"
        "- {identifier: gpu_model, propertyDomain: {values: [NVIDIA-A100-80GB-PCIe]}}\n"
        "constraints: ['batch_size % number_gpus == 0']\n");
    char *text = described(s, 1);
    assert_string_equal(text, " Number entities: 80 (allowed by the constraints: 65)\n"
                              " name              type         range        values\n"
                              " dataset_id        categorical               [news-tokens-16384plus-entries-4096]\n"
                              " model_name        categorical               [granite-8b-code-base]\n"
                              " number_gpus       discrete     [2, 5]       [2, 4]\n"
                              " model_max_length  discrete     [512, 8193]  [512, 1024, 2048, 4096, 8192]\n"
                              " torch_dtype       categorical               [bfloat16]\n"
                              " batch_size        discrete     [1, 129]     [1, 2, 4, 8, 16, 32, 64, 128]\n"
                              " gpu_model         categorical               [NVIDIA-A100-80GB-PCIe]\n"
                              "\n"
                              " Constraints:\n"
                              "   batch_size % number_gpus == 0\n");
    free(text);
    tune_space_free(s);
    s = space("entitySpace: [{identifier: smiles, propertyDomain: {variableType: IDENTIFIER_VARIABLE_TYPE}}]");
    text = described(s, 2);
    assert_string_equal(text, "  Space with non-discrete dimensions. Cannot count entities\n"
                              "  name    type\n"
                              "  smiles  identifier\n");
    free(text);
    tune_space_free(s);
    s = space("entitySpace:\n"
              "- {identifier: \"a\\tb\", propertyDomain: {values: [x, null, '', [1, 'a', \"b'c\"], \"\\e[2J\"]}}\n"
              "- {identifier: steps, propertyDomain: {domainRange: [0, 1.0], interval: 0.1}}\n"
              "- {identifier: caf\xc3\xa9, propertyDomain: {values: [true, 1.0e+16]}}\n"
              "- {identifier: bin, propertyDomain: {variableType: BINARY_VARIABLE_TYPE}}\n"
              "- {identifier: c, metadata: {description: a share}, propertyDomain: {domainRange: [0, 1], "
              "probabilityFunction: {identifier: normal, parameters: {mean: 0.5, std: 2}}}}\n"
              "- identifier: u\n");
    text = described(s, 0);
    assert_string_equal(text, "Space with non-discrete dimensions. Cannot count entities\n"
                              "name   type         range     interval  values                               probability     description\n"
                              "a\\tb   categorical                      [x, None, '', [1, a, b'c], \\x1b[2J]\n"
                              "steps  discrete     [0, 1.0]  0.1\n"
                              "caf\xc3\xa9   discrete                         [True, 1e+16]\n"
                              "bin    binary\n"
                              "c      continuous   [0, 1]                                                   normal(0.5, 2)  a share\n"
                              "u      unknown\n");
    free(text);
    tune_space_free(s);
}

/* ---- lists of points ---- */

static const char *points_file(const char *text)
{
    test_write(".", "points.csv", text, strlen(text));
    return "points.csv";
}

static void points(void **state)
{
    (void)state;
    struct tune_points p;
    struct tune_space *s = space("entitySpace:\n"
                                 "- {identifier: n, propertyDomain: {domainRange: [0, 10], interval: 1}}\n"
                                 "- {identifier: kind, propertyDomain: {values: [\"\", null, 1.0, true-ish]}}\n"
                                 "- {identifier: one, propertyDomain: {values: [7]}}\n"
                                 "constraints: ['n != 5']\n");
    assert_ok(tune_points_read(s, points_file("kind,identifier,n\n,x,1.0\nNone,,2\n1,,3\n,,1\n,,1\ntrue-ish,,9\n"), &p));
    assert_int_equal(p.count, 4);
    assert_int_equal(p.repeated, 2);
    assert_int_equal(p.line, 5);
    static const char *const ids[] = {"n.1-kind.-one.7", "n.2-kind.None-one.7", "n.3-kind.1.0-one.7", "n.9-kind.true-ish-one.7"};
    for (int i = 0; i < 4; i++) {
        char text[256];
        tune_entity_identifier(s->names, p.values + i * 3, 3, text, sizeof text);
        assert_string_equal(text, ids[i]);
    }
    static const struct { const char *text, *error; } wrong[] = {
        {"", "points.csv: the file is empty"},
        {"n,kind\n", "points.csv: the file has a heading but no points"},
        {"n\n1\n", "points.csv:1: the dimension kind of the space has no column"},
        {"n,kid\n", "points.csv:1: \"kid\" is not a dimension of the space (the nearest is kind)"},
        {"n,kind,n\n", "points.csv:1: two columns have the name n"},
        {"n,kind\n1,None\n1\n", "points.csv:3: the row has 1 fields, but the heading has 2"},
        {"n,kind\n1,None\n\n10,None\n", "points.csv:4: n cannot be \"10\" in this space"},
        {"n,kind\n5,None\n", "points.csv:2: the constraints of the space exclude this point"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(tune_points_read(s, points_file(wrong[i].text), &p), -1);
        assert_error_has(wrong[i].error);
    }
    tune_space_free(s);
    s = space("entitySpace: [{identifier: k, propertyDomain: {values: [null, \"null\", true, 1.5, [1, 2]]}}]");
    assert_ok(tune_points_read(s, points_file("k\nnull\nNone\nTrue\ntrue\n1\n1.50\n\"[1, 2]\"\n"), &p));
    assert_int_equal(p.count, 5);
    assert_int_equal(p.repeated, 2);
    assert_string_equal(p.values[0].text, "null");
    assert_int_equal(p.values[1].type, TUNE_VALUE_NONE);
    assert_int_equal(p.values[4].type, TUNE_VALUE_LIST);
    tune_space_free(s);
}

/* ---- tables of more names ---- */

static void lookups(void **state)
{
    (void)state;
    static const char *const inputs[] = {"gpu", "n", "batch"};
    const char *names[5] = {"gpu", "n", "batch"};
    struct tune_value values[5] = {tune_value_text("a100"), tune_value_int(2), tune_value_int(8)};
    char text[512];
    double number;
    test_write(".", "p.csv", "usd,n,where,gpu\n1.5,2,lab,a100\n3,1.0,,a100\n9,2,hall,h100\n", 57);
    bool fits;
    struct tune_lookup *t = tune_lookup_read("p.csv", inputs, 3, &fits);
    assert_got(t);
    assert_true(fits);
    assert_int_equal(t->count, 2);
    memcpy(names + 3, t->names, 2 * sizeof *names);
    struct tune_expression *e = tune_expression_query("batch / usd if where == 'lab' else usd", names, 5, "");
    static const struct { const char *gpu; double n, result; } cases[] = {
        {"a100", 2, 8 / 1.5}, {"a100", 1, 3}, {"h100", 2, 9}, {"h100", 1, -1}, {"t4", 2, -1}, {"h100", 1, -1}};
    assert_string_equal(tune_lookup_missed(t, text, sizeof text), "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tune_value v;
        values[0] = tune_value_text(cases[i].gpu);
        values[1] = i % 2 ? tune_value_float(cases[i].n) : tune_value_int((int64_t)cases[i].n);
        assert_int_equal(tune_lookup_values(t, values, values + 3), cases[i].result > 0);
        assert_ok(tune_expression_value(e, values, &v));
        if (cases[i].result < 0)
            assert_int_equal(v.type, TUNE_VALUE_NONE);
        else
            assert_true(tune_value_number(&v, &number) && number == cases[i].result);
    }
    assert_string_equal(tune_lookup_missed(t, text, sizeof text),
                        "p.csv has no row for 2 keys (1.0, 'h100', ...), so usd and the other columns are None for them");
    tune_expression_free(e);
    tune_lookup_free(t);
    static const struct { const char *file, *error; } wrong[] = {
        {"", "q.csv: the file is empty"}, {"gpus,usd\n", "q.csv:1: no column has the name of an input, so its rows cannot be assigned to entities (the nearest is gpu)"},
        {"gpu,n\n", "q.csv:1: every column is an input"}, {"gpu,usd,usd\n", "q.csv:1: two columns have the name \"usd\""},
        {"gpu,usd\na,1\nb\n", "q.csv:3: the row has 1 fields, but the heading has 2"}, {"n,usd\n1,1\n2,2\n1.0,2\n", "q.csv:4: this is the second row for the key \"1.0\""}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        test_write(".", "q.csv", wrong[i].file, strlen(wrong[i].file));
        assert_null(tune_lookup_read("q.csv", inputs, 3, &fits));
        assert_error_has(wrong[i].error);
        assert_int_equal(fits, i != 1 && i != 2);
    }
    assert_null(tune_lookup_read("none.csv", inputs, 3, &fits));
    assert_true(fits);
    tune_lookup_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example), cmocka_unit_test(entities_alone),
        cmocka_unit_test(indexes),     cmocka_unit_test(too_large),
        cmocka_unit_test(ids),         cmocka_unit_test(ids_are_no_numbers),
        cmocka_unit_test(refused),     cmocka_unit_test(constraints),
        cmocka_unit_test(estimated),   cmocka_unit_test(estimated_beyond),
        cmocka_unit_test(descriptions),  cmocka_unit_test(points),
        cmocka_unit_test(lookups),
    };
    return cmocka_run_group_tests(tests, test_home_begin, test_home_end);
}
