/* test_find.c - from what --model says to a folder, and which weights lie there. */
#include "test.h"

#include <sys/stat.h>

#include "flags/known.h"
#include "flags/find.h"

static char home[64];
static const char commit[] = "0123456789abcdef0123456789abcdef01234567";

static void folder(const char *name)
{
    char path[TUNE_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", home, name);
    assert_ok(tune_file_make_folder(path));
}

static void put(const char *name, const char *text)
{
    test_write(home, name, text, strlen(text));
}

/* A home of its own: current folder, defaults, and an empty Hub cache. */
static int begin(void **state)
{
    (void)state;
    char path[128];
    snprintf(home, sizeof home, "%s", test_folder());
    if (chdir(home) < 0)
        return -1;
    folder("defaults/models");
    put("defaults/models/tiny.json", "{\"name\": \"tiny-1m\", \"hub_id\": \"Org/Tiny-1M\", \"parameters\": 1000000, "
                                     "\"config\": {\"max_position_embeddings\": 2048}}");
    put("defaults/models/large.json", "{\"name\": \"large-1b\", \"hub_id\": \"Org/Large-1B\", \"parameters\": 1000000000, "
                                      "\"config\": {\"n_positions\": 64}}");
    snprintf(path, sizeof path, "%s/defaults", home);
    setenv("TUNE_DEFAULTS", path, 1);
    snprintf(path, sizeof path, "%s/hub", home);
    setenv("HF_HUB_CACHE", path, 1);
    return 0;
}

static int end(void **state)
{
    (void)state;
    if (chdir("/") < 0)
        return -1;
    return tune_file_remove_folder(home);
}

static void table(void **state)
{
    (void)state;
    struct tune_known_model *models, one;
    assert_int_equal(tune_known_models(&models), 2);
    assert_string_equal(models[0].name, "tiny-1m"); /* smallest first */
    assert_int_equal(models[0].context, 2048);
    assert_int_equal(models[1].context, 64);
    assert_true(models[1].parameters == 1000000000);
    free(models);
    assert_int_equal(tune_known_model("ORG/large-1b", &one), 1);
    assert_string_equal(one.name, "large-1b");
    assert_int_equal(tune_known_model("large", &one), 0);
    put("defaults/models/bad.json", "{\"name\": 1}");
    assert_int_equal(tune_known_models(&models), -1);
    assert_error_has("bad.json");
    unlink("defaults/models/bad.json");
}

static void absent(void **state)
{
    (void)state;
    char found[TUNE_PATH_MAX];
    assert_int_equal(tune_model_find("tiny-1m", found), -1);
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    assert_error_has("tools/download.sh Org/Tiny-1M models/Tiny-1M");
    assert_error_has("build/init_model --like tiny-1m --seed 1 models/Tiny-1M");
    assert_int_equal(tune_model_find("org/TINY-1m", found), -1);
    assert_error_has("tools/download.sh Org/Tiny-1M models/Tiny-1M"); /* spelled as the Hub spells it */
    assert_int_equal(tune_model_find("models/Tiny-1M", found), -1);
    assert_error_has("tools/download.sh Org/Tiny-1M models/Tiny-1M");
    assert_int_equal(tune_model_find("Some/Other", found), -1);
    assert_error_has("tools/download.sh Some/Other models/Other");
    assert_null(strstr(tune_error_message(), "init_model"));
    assert_int_equal(tune_model_find("tiny-2m", found), -1);
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    assert_error_has("the nearest is tiny-1m");
    assert_int_equal(tune_model_find("nofile", found), -1); /* near to none */
    assert_null(strstr(tune_error_message(), "nearest"));
    assert_error_has("--list-models");
    assert_int_equal(tune_model_find("./nowhere/x", found), -1);
    assert_error_has("no such folder");
    assert_int_equal(tune_model_find(NULL, found), -1);
    assert_error_has("--model is missing");
    folder("empty");
    assert_int_equal(tune_model_find("empty", found), -1);
    assert_error_has("no config.json");
    put("empty/adapter_config.json", "{}");
    assert_int_equal(tune_model_find("empty", found), -1);
    assert_error_has("LoRA adapter");
    put("empty/model.safetensors", "x");
    assert_int_equal(tune_model_find("empty/model.safetensors", found), -1);
    assert_error_has("is a file");
}

static void cached(void **state)
{
    (void)state;
    char found[TUNE_PATH_MAX], path[256], expected[512];
    struct tune_model_identity a, b;
    folder("hub/models--Org--Tiny-1M/refs");
    folder("hub/models--Org--Tiny-1M/blobs");
    snprintf(path, sizeof path, "hub/models--Org--Tiny-1M/snapshots/%s", commit);
    folder(path);
    folder("hub/models--Org--Tiny-1M/trap"); /* a commit that is a path leads nowhere */
    put("hub/models--Org--Tiny-1M/trap/config.json", "{}");
    put("hub/models--Org--Tiny-1M/trap/model.safetensors", "x");
    put("hub/models--Org--Tiny-1M/refs/main", "../trap");
    assert_int_equal(tune_model_find("tiny-1m", found), -1);
    put("hub/models--Org--Tiny-1M/refs/main", commit);
    assert_int_equal(tune_model_find("tiny-1m", found), -1); /* nothing in the snapshot yet */
    put("hub/models--Org--Tiny-1M/blobs/c", "{}");
    put("hub/models--Org--Tiny-1M/blobs/w", "weights");
    snprintf(expected, sizeof expected, "%s/config.json", path);
    assert_int_equal(symlink("../../blobs/c", expected), 0);
    assert_int_equal(tune_model_find("tiny-1m", found), -1); /* a tokenizer's snapshot */
    snprintf(expected, sizeof expected, "%s/model.safetensors", path);
    assert_int_equal(symlink("../../blobs/w", expected), 0);
    assert_ok(tune_model_find("Org/Tiny-1M", found));
    snprintf(expected, sizeof expected, "%s/%s", home, path);
    assert_string_equal(found, expected);
    assert_ok(tune_model_identity(found, &a));
    assert_string_equal(a.revision, commit);
    assert_false(a.random);

    assert_int_equal(unlink("hub/models--Org--Tiny-1M/refs/main"), 0); /* downloaded by its revision */
    assert_ok(tune_model_find("tiny-1m", found));
    assert_string_equal(found, expected);
    folder("hub/models--Org--Tiny-1M/snapshots/0123456789abcdef"); /* of two, which is meant? */
    assert_int_equal(tune_model_find("tiny-1m", found), -1);
    put("hub/models--Org--Tiny-1M/refs/main", commit);
    assert_ok(tune_model_find("tiny-1m", found));

    folder("models/Tiny-1M/.cache/huggingface/download"); /* a folder of our own goes before the cache */
    put("models/Tiny-1M/config.json", "{}");
    assert_ok(tune_model_find("tiny-1m", found));
    assert_string_equal(found, "models/Tiny-1M");
    assert_int_equal(tune_model_identity(found, &b), -1);
    assert_error_has("no weights");
    put("models/Tiny-1M/model.safetensors", "weights");
    assert_ok(tune_model_identity(found, &b));
    assert_string_equal(b.revision, "");
    assert_true(a.fingerprint == b.fingerprint); /* content and names, not the place */
    put("models/Tiny-1M/.cache/huggingface/download/config.json.metadata",
        "89abcdef0123456789abcdef0123456789abcdef\netag\n1.0\n");
    put("models/Tiny-1M/tune_weights.json", "{\"weights\": \"random\", \"seed\": 9007199254740993, \"like\": \"tiny-1m\"}");
    put("models/Tiny-1M/model.safetensors", "weighty");
    assert_ok(tune_model_identity("models/Tiny-1M/", &b));
    assert_string_equal(b.revision, "89abcdef0123456789abcdef0123456789abcdef");
    assert_true(b.random && b.seed == 9007199254740993 && a.fingerprint != b.fingerprint);
    assert_int_equal(tune_model_find("/elsewhere/Tiny-1M", found), -1); /* must not become another folder */
    put("models/Tiny-1M/tune_weights.json", "[]");
    assert_int_equal(tune_model_identity("models/Tiny-1M", &b), -1);
    assert_error_has("tune_weights.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(table), cmocka_unit_test(absent), cmocka_unit_test(cached)};
    return cmocka_run_group_tests(tests, begin, end);
}
