/* smollm3.c - SmolLM3: Llama with layers that do not rotate queries and keys, by default each
 * fourth. */
#include <cjson/cJSON.h>

#include "core/error.h"
#include "core/try.h"
#include "models/families/family.h"

/* Read which layers rotate: a 1 for each that does. */
static int read_unrotated(struct tune_model_config *c, const struct tune_config_reader *r)
{
    const cJSON *layers = tune_config_get(r->json, "no_rope_layers");
    int interval, count = cJSON_GetArraySize(layers);
    TRY(tune_config_whole(r, "no_rope_layer_interval", 1, TUNE_MAX_LAYERS, 4, &interval));
    if (layers && (!cJSON_IsArray(layers) || count < c->layers))
        return tune_error_set("%s: \"no_rope_layers\" has %d entries; expected one for each of %d layers", r->name, count, c->layers);
    for (int i = 0; i < c->layers; i++) {
        const cJSON *rotates = cJSON_GetArrayItem(layers, i);
        if (rotates && !cJSON_IsNumber(rotates) && !cJSON_IsBool(rotates))
            return tune_error_set("%s: \"no_rope_layers\": entry %d is no number; expected 1, or 0 for a layer without rotary "
                                  "embedding", r->name, i);
        c->unrotated[i] = rotates ? !(cJSON_IsTrue(rotates) || (cJSON_IsNumber(rotates) && rotates->valuedouble != 0))
                                  : (i + 1) % interval == 0;
    }
    return 0;
}

static int read(struct tune_model_config *c, const struct tune_config_reader *r)
{
    bool uses;
    TRY(tune_family_llama.read(c, r));
    TRY(read_unrotated(c, r));
    TRY(tune_config_flag(r, "use_sliding_window", false, &uses));
    const cJSON *types = tune_config_get(r->json, "layer_types"); /* they hold, whatever the flag says */
    if ((!uses && !types) || !tune_config_get(r->json, "sliding_window"))
        return 0;
    TRY(tune_config_window_read(c, r, 0, true));
    for (int i = 0; i < c->layers && !types; i++)
        c->sliding[i] = c->unrotated[i];
    return 0;
}

const struct tune_family tune_family_smollm3 = {
    .type = "smollm3", .class = "SmolLM3ForCausalLM", .kv_heads = 4, .max_positions = 32768, .theta = 2000000, .tied = true,
    .read = read, .layer = tune_llama_layer};
