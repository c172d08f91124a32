/* by_size.c - defaults for a model without a known name, by its number of parameters. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/try.h"
#include "files/cjson.h"
#include "files/file.h"
#include "files/json.h"
#include "flags/find.h"
#include "flags/state.h"

static double number_in(const cJSON *config, const char *key, double otherwise)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(config, key);
    return cJSON_IsNumber(item) ? item->valuedouble : otherwise;
}

/* Whether the output projection is the embedding. Without the key it is in these families, as in transformers; the files of
 * models/families have the same default. */
static bool is_tied(const cJSON *config)
{
    static const char *const families[] = {"gemma3_text", "smollm3"};
    const cJSON *tied = cJSON_GetObjectItemCaseSensitive(config, "tie_word_embeddings");
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(config, "model_type"));
    bool usual = false;
    for (size_t i = 0; type && i < sizeof families / sizeof *families; i++)
        usual = usual || strcmp(type, families[i]) == 0;
    return cJSON_IsBool(tied) ? cJSON_IsTrue(tied) : usual;
}

/* About as many parameters as config.json says, without vectors: models/ counts exactly. */
static double parameters_of(const cJSON *config)
{
    double H = number_in(config, "hidden_size", 0), layers = number_in(config, "num_hidden_layers", 0);
    double heads = number_in(config, "num_attention_heads", 1), kv = number_in(config, "num_key_value_heads", heads);
    double D = number_in(config, "head_dim", heads > 0 ? H / heads : 0), inner = number_in(config, "intermediate_size", 0);
    return number_in(config, "vocab_size", 0) * H * (is_tied(config) ? 1 : 2) + layers * (2 * H * D * (heads + kv) + 3 * H * inner);
}

/* About how many parameters the model in that place has; 0: not known. */
static double count_parameters(const char *model)
{
    char folder[TUNE_PATH_MAX];
    cJSON *config = tune_model_find(model, folder) < 0 ? NULL : tune_cjson_read_in(folder, "config.json", 1 << 24);
    double count = config ? parameters_of(config) : 0;
    cJSON_Delete(config);
    tune_error_clear(); /* tune_get_model reports it */
    return count > 0 ? count : 0;
}

/* Read one class, and take its options if the model is below its limit. 1: they were taken. */
static int read_class(struct tune_flags_state *state, struct tune_json *j, double count, double *below)
{
    struct tune_text key;
    int more, taken = 0;
    TRY(tune_json_object(j));
    while ((more = tune_json_key(j, &key)) == 1) {
        if (tune_text_equal(key, "parameters_below")) {
            TRY(tune_json_double(j, below));
        } else if (tune_text_equal(key, "options") && count < *below) {
            TRY(tune_flags_object(state, j, TUNE_FROM_MODEL_DEFAULTS));
            taken = 1;
        } else {
            TRY(tune_json_skip(j));
        }
    }
    return more < 0 ? -1 : taken;
}

/* Take the options of the first class of the program that the model is in. *below: its limit. */
static int read_classes(struct tune_flags_state *state, struct tune_json *j, const char *program, double count, double *below)
{
    struct tune_text key;
    int more, item = 0, taken = 0;
    TRY(tune_json_object(j));
    while ((more = tune_json_key(j, &key)) == 1) {
        if (!tune_text_equal(key, program)) {
            TRY(tune_json_skip(j));
            continue;
        }
        TRY(tune_json_array(j));
        while ((item = tune_json_item(j)) == 1) {
            if (taken)
                TRY(tune_json_skip(j));
            else
                TRY(taken = read_class(state, j, count, below));
        }
        TRY(item);
    }
    return more;
}

/* If values were taken, write down whose they are, for the header. */
static void name_source(struct tune_flags_state *state, double below)
{
    bool any = false;
    for (int i = 0; i < state->count; i++)
        any = any || state->at[i].source == TUNE_FROM_MODEL_DEFAULTS;
    if (any)
        snprintf(state->by_size, sizeof state->by_size, "model defaults of models below %g million parameters: defaults/sizes.json", below / 1e6);
}

int tune_flags_by_size(struct tune_flags_state *state, const char *program, const char *model)
{
    char path[TUNE_PATH_MAX], *text = NULL;
    double count = count_parameters(model), below = 0;
    struct tune_json j;
    size_t size;
    if (count == 0 || tune_defaults_path(path, "sizes.json") < 0 || !tune_file_exists(path)) {
        tune_error_clear(); /* a foreign program may not have our defaults */
        return 0;
    }
    TRY(tune_file_read(path, 1 << 20, &text, &size));
    tune_json_start(&j, path, text, size, 1);
    int status = read_classes(state, &j, program, count, &below);
    if (status == 0)
        status = tune_json_end(&j);
    tune_json_free(&j);
    free(text);
    if (status == 0)
        name_source(state, below);
    return status;
}
