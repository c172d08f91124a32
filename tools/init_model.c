/* init_model.c - make a model folder with random weights: the exact shape of a known model, or a
 * smaller one like it.
 *
 *     build/init_model --like smollm2-135m --seed 1 models/SmolLM2-135M
 *
 * It serves to try memory, speed and the whole data path before a download; only quality cannot be
 * tried. The folder says that its weights are random, and so does every run on it. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/cjson.h"
#include "files/file.h"
#include "files/folder.h"
#include "files/json.h"
#include "core/try.h"
#include "flags/known.h"
#include "flags/program.h"
#include "models/init.h"
#include "tokenizers/tokenizer.h"

static struct {
    struct tune_flags tune;
    const char *folder, *like, *text, *tokenizer;
    enum tune_dtype dtype;
    int64_t seed;
    int hidden, layers, heads, kv_heads, head_dim, ffn, vocabulary, positions;
} my;

static const struct tune_option my_options[] = {
    {"<folder>", TUNE_STRING, &my.folder, NULL, "", "", "the model folder to make"},
    {"like", TUNE_STRING, &my.like, "smollm2-135m", "", "",
     "known model whose config is taken (see --list-models)"},
    {"seed", TUNE_INT64, &my.seed, "0", "[0,inf)", "", "seed of the weights"},
    {"dtype", TUNE_DTYPE, &my.dtype, "as-config", "as-config|float32|bfloat16|float16", "",
     "format of the weights"},
    {"tokenizer-text", TUNE_STRING, &my.text, NULL, "", "",
     "text to learn the vocabulary from: .txt, or .jsonl with \"text\". Default: our sample set"},
    {"tokenizer", TUNE_STRING, &my.tokenizer, NULL, "", "",
     "folder whose tokenizer, special tokens and chat template are taken, instead of learning a "
     "vocabulary. It gives the vocabulary its size"},
    {"layers", TUNE_INT, &my.layers, "0", "[0,1024]", "", "layers; 0: as the known model"},
    {"hidden-size", TUNE_INT, &my.hidden, "0", "[0,131072]", "",
     "width of the hidden states; 0: as the known model"},
    {"intermediate-size", TUNE_INT, &my.ffn, "0", "[0,1048576]", "",
     "width between the matrices of the MLP; 0: as the known model"},
    {"heads", TUNE_INT, &my.heads, "0", "[0,16384]", "", "attention heads; 0: as the known model"},
    {"kv-heads", TUNE_INT, &my.kv_heads, "0", "[0,16384]", "",
     "key and value heads; 0: as the known model"},
    {"head-dim", TUNE_INT, &my.head_dim, "0", "[0,16384]", "",
     "width of a head; 0: as the known model"},
    {"vocab-size", TUNE_INT, &my.vocabulary, "0", "[0,16777216]", "tokens",
     "vocabulary, at least 259; 0: as the known model"},
    {"max-positions", TUNE_INT, &my.positions, "0", "[0,268435456]", "tokens",
     "longest context; 0: as the known model"},
    {0},
};

static const struct tune_property my_properties[] = {{0}};

/* The known model's config, changed by the flags. */
static cJSON *make_config(const struct tune_known_model *known)
{
    const struct {
        const char *key;
        int value;
    } change[] = {{"num_hidden_layers", my.layers},    {"hidden_size", my.hidden},     {"intermediate_size", my.ffn},
                  {"num_attention_heads", my.heads},   {"num_key_value_heads", my.kv_heads},
                  {"head_dim", my.head_dim},           {"vocab_size", my.vocabulary},  {"max_position_embeddings", my.positions}};
    char path[TUNE_PATH_MAX], name[96];
    snprintf(name, sizeof name, "models/%s.json", known->name);
    cJSON *json = tune_defaults_path(path, name) < 0 ? NULL : tune_cjson_read(path, (size_t)1 << 20);
    if (!json)
        return NULL;
    cJSON *config = cJSON_DetachItemFromObjectCaseSensitive(json, "config");
    cJSON_Delete(json);
    if (!config) {
        tune_error_set("%s: no \"config\"", path);
        return NULL;
    }
    for (size_t i = 0; i < sizeof change / sizeof *change; i++)
        if (change[i].value > 0) {
            cJSON_DeleteItemFromObjectCaseSensitive(config, change[i].key);
            cJSON_AddNumberToObject(config, change[i].key, change[i].value);
        }
    if ((my.hidden > 0 || my.heads > 0) && my.head_dim == 0) /* then it follows from the others */
        cJSON_DeleteItemFromObjectCaseSensitive(config, "head_dim");
    static const char *const ends[] = {"bos_token_id", "eos_token_id"}; /* ids of the tokenizer that
                                                                         * is made here */
    for (int i = 0; i < 2; i++) {
        cJSON_DeleteItemFromObjectCaseSensitive(config, ends[i]);
        cJSON_AddNumberToObject(config, ends[i], 0);
    }
    /* null, not absent: of some families transformers would take a default, which this vocabulary may lack */
    cJSON_DeleteItemFromObjectCaseSensitive(config, "pad_token_id");
    cJSON_AddNullToObject(config, "pad_token_id");
    return config;
}

/* Replace the lines of JSON by their "text" members, one after the other. */
static int plain_text(const char *path, char *text, size_t *size)
{
    size_t out = 0;
    int64_t line = 1;
    for (char *p = text, *end = text + *size; p < end; line++) {
        char *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop ? stop : end;
        struct tune_json j;
        struct tune_text key, value;
        int status = 0, more = 0;
        tune_json_start(&j, path, p, (size_t)(stop - p), line);
        if (stop > p)
            status = tune_json_object(&j);
        while (status == 0 && stop > p && (more = tune_json_key(&j, &key)) == 1) {
            if (!tune_text_equal(key, "text")) {
                status = tune_json_skip(&j);
            } else if ((status = tune_json_string(&j, &value)) == 0) {
                memmove(text + out, value.data, value.size); /* always shorter than its JSON */
                out += value.size;
                text[out++] = '\n';
            }
        }
        tune_json_free(&j);
        TRY(status);
        TRY(more);
        p = stop + 1;
    }
    *size = out;
    return 0;
}

static int make_tokenizer(const char *folder, int vocabulary)
{
    static const char *const special[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
    static const char settings[] = "{\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\",\n  \"bos_token\": \"<|endoftext|>\",\n"
                                   "  \"eos_token\": \"<|endoftext|>\",\n  \"clean_up_tokenization_spaces\": false\n}\n";
    static const char generation[] = "{\n  \"bos_token_id\": 0,\n  \"eos_token_id\": 0\n}\n";
    char path[TUNE_PATH_MAX], sample[TUNE_PATH_MAX], *text;
    size_t size;
    const char *from = my.text;
    if (!from) {
        TRY(tune_defaults_path(sample, "../datasets/stories.jsonl"));
        from = sample;
    }
    TRY(tune_file_read(from, (size_t)256 << 20, &text, &size));
    const char *dot = strrchr(from, '.');
    int status = dot && strcmp(dot, ".jsonl") == 0 ? plain_text(from, text, &size) : 0;
    if (status == 0 && (status = tune_path(path, "%s/tokenizer.json", folder)) == 0)
        status = tune_tokenizer_train(path, text, size, vocabulary, special, 3);
    free(text);
    TRY(status);
    TRY(tune_path(path, "%s/tokenizer_config.json", folder));
    TRY(tune_file_write(path, settings, sizeof settings - 1));
    TRY(tune_path(path, "%s/generation_config.json", folder));
    return tune_file_write(path, generation, sizeof generation - 1);
}

/* ---- the tokenizer of a folder ---- */

static int copy_file(const char *name, const char *folder)
{
    char path[TUNE_PATH_MAX], *text;
    size_t size;
    if (!tune_folder_has(my.tokenizer, name))
        return 0;
    TRY(tune_folder_read(my.tokenizer, name, (size_t)256 << 20, &text, &size));
    int status = tune_path(path, "%s/%s", folder, name);
    if (status == 0)
        status = tune_file_write(path, text, size);
    free(text);
    return status;
}

/* The id of the token that tokenizer_config.json calls key; -1: it names none, or one that is not
 * there. */
static int64_t named_id(const struct tune_tokenizer *tok, const char *key)
{
    bool there = tune_folder_has(my.tokenizer, "tokenizer_config.json");
    cJSON *json = there ? tune_cjson_read_in(my.tokenizer, "tokenizer_config.json", (size_t)16 << 20) : NULL;
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
    if (cJSON_IsObject(item))
        item = cJSON_GetObjectItemCaseSensitive(item, "content");
    int64_t id = cJSON_IsString(item) ? tune_tokenizer_id(tok, item->valuestring) : -1;
    cJSON_Delete(json);
    return id;
}

/* Name the tokens that begin and end texts in the config, and in generation_config.json. The other
 * folder's generation_config.json may know more tokens that end an answer. */
static int name_ends(const struct tune_tokenizer *tok, const char *folder, cJSON *config)
{
    static const char *const keys[] = {"bos_token_id", "eos_token_id"};
    char *end = NULL;
    cJSON *others = NULL, *generation = cJSON_CreateObject();
    TRY(tune_tokenizer_end(tok, my.tokenizer, &end));
    const int64_t ids[] = {named_id(tok, "bos_token"), end ? tune_tokenizer_id(tok, end) : -1};
    free(end);
    if (tune_folder_has(my.tokenizer, "generation_config.json") &&
        !(others = tune_cjson_read_in(my.tokenizer, "generation_config.json", (size_t)16 << 20)))
        return -1;
    bool good = generation != NULL;
    for (int i = 0; i < 2; i++) {
        const cJSON *theirs = cJSON_GetObjectItemCaseSensitive(others, keys[i]);
        good = good && tune_cjson_put(config, keys[i], ids[i] < 0 ? cJSON_CreateNull() : cJSON_CreateNumber((double)ids[i]));
        if (theirs && !cJSON_IsNull(theirs))
            good = good && tune_cjson_put(generation, keys[i], cJSON_Duplicate(theirs, true));
        else if (ids[i] >= 0)
            good = good && tune_cjson_put_whole(generation, keys[i], ids[i]);
    }
    int status = tune_cjson_write(folder, "generation_config.json", generation, good);
    cJSON_Delete(generation);
    cJSON_Delete(others);
    return status;
}

/* Take the tokenizer of --tokenizer, and give the config its size. */
static int take_tokenizer(const char *folder, cJSON *config)
{
    static const char *const files[] = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
                                        "chat_template.jinja"};
    struct tune_tokenizer *tok = tune_tokenizer_open(my.tokenizer);
    if (!tok)
        return tune_error_prefix("--tokenizer: ");
    int size = tune_tokenizer_size(tok), rows = my.vocabulary > 0 ? my.vocabulary : size, status = 0;
    if (rows < size)
        status = tune_error_usage("--vocab-size %d: the tokenizer of %s has %d tokens; leave it out, or give at least that many", rows,
                                  my.tokenizer, size);
    for (size_t i = 0; i < sizeof files / sizeof *files && status == 0; i++)
        status = copy_file(files[i], folder);
    if (status == 0)
        status = name_ends(tok, folder, config);
    if (status == 0 && !tune_cjson_put(config, "vocab_size", cJSON_CreateNumber(rows)))
        status = tune_error_no_memory("the config");
    tune_tokenizer_free(tok);
    return status;
}

static void show_progress(void *context, int64_t done, int64_t total)
{
    int *percent = context, now = (int)(100.0 * (double)done / (double)total);
    if (!isatty(2) || now == *percent)
        return;
    *percent = now;
    fprintf(stderr, "\r%3d %% of %.1fM weights%s", now, (double)total / 1e6, done == total ? "\n" : "");
}

static int make(const char *folder, cJSON *config, const char *name)
{
    struct tune_model_config c;
    int percent = -1;
    TRY(my.tokenizer ? take_tokenizer(folder, config) : 0);
    TRY(tune_model_config_parse(&c, config, "the config asked for"));
    if (!my.tokenizer && c.vocabulary < 259)
        return tune_error_usage("--vocab-size %d: a vocabulary has at least 256 bytes and 3 "
                                "special tokens", c.vocabulary);
    enum tune_dtype dtype = my.dtype == TUNE_UNKNOWN_DTYPE ? c.dtype : my.dtype;
    TRY(my.tokenizer ? 0 : make_tokenizer(folder, c.vocabulary));
    return tune_model_init(folder, config, name, (uint64_t)my.seed, dtype, show_progress, &percent);
}

int main(int argc, char **argv)
{
    struct tune_known_model known;
    tune_program_start(argc, argv, &my.tune, my_options, my_properties, "Make a model folder with random weights.");
    if (MUST(tune_known_model(my.like, &known)) == 0) {
        tune_error_usage("--like %s: no known model; --list-models names them", my.like);
        tune_program_fail();
    }
    if (my.tokenizer && my.text) {
        tune_error_usage("--tokenizer takes a vocabulary, and --tokenizer-text learns one; leave one of them out");
        tune_program_fail();
    }
    size_t n = strlen(my.folder);
    while (n > 1 && my.folder[n - 1] == '/')
        n--;
    char *folder = strndup(my.folder, n);
    if (tune_file_exists(folder)) {
        tune_error_set("%s is there already; nothing is replaced, remove it or give another folder", folder);
        tune_program_fail();
    }
    cJSON *config = GET(make_config(&known));
    char parent[TUNE_PATH_MAX];
    struct tune_folder_writer w = {0};
    if (tune_file_parent(parent, folder) < 0 || tune_file_make_folder(parent) < 0 ||
        tune_file_begin_folder(&w, folder) < 0 || make(w.temporary, config, known.name) < 0 || tune_file_commit_folder(&w) < 0) {
        tune_file_cancel_folder(&w);
        tune_program_fail();
    }
    printf("%s: like %s, random weights by seed %lld\n", folder, known.name, (long long)my.seed);
    cJSON_Delete(config);
    free(folder);
    tune_flags_free(&my.tune);
    return 0;
}
