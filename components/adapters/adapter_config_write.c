/* adapter_config_write.c - write the keys that every PEFT knows, sorted. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/adapter_config.h"
#include "core/error.h"
#include "files/file.h"
#include "files/json.h"
#include "core/print.h"

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Split text at the commas between its entries, in place. The array ends in NULL and the caller frees it. NULL: no memory. */
static char **split_list(char *text, bool sorted)
{
    size_t n = 2;
    for (const char *c = text; *c; c++)
        n += *c == ',';
    char **piece = calloc(n, sizeof *piece);
    n = 0;
    for (char *p = text; piece && *p;) {
        size_t size = tune_lora_piece(p);
        bool more = p[size] == ',';
        p[size] = 0;
        if (size)
            piece[n++] = p;
        p += size + more;
    }
    if (piece && sorted)
        qsort(piece, n, sizeof *piece, by_text);
    return piece;
}

static bool write_quoted(FILE *to, const char *text)
{
    cJSON *value = cJSON_CreateString(text);
    char *quoted = value ? cJSON_PrintUnformatted(value) : NULL;
    cJSON_Delete(value);
    fputs(quoted ? quoted : "null", to);
    cJSON_free(quoted);
    return quoted != NULL;
}

/* Write "key": value as a sorted list, or as an object ("k_proj=4": in order, since the first match
 * applies). */
static bool write_pieces(FILE *to, const char *key, const char *text, bool pattern)
{
    char number[TUNE_DECIMAL_SIZE], *copy = strdup(text ? text : ""), **piece = copy ? split_list(copy, !pattern) : NULL;
    bool good = piece != NULL;
    int n = 0;
    fprintf(to, "  \"%s\": %s", key, pattern ? "{" : "[");
    for (; piece && piece[n]; n++) {
        char *value = pattern ? strrchr(piece[n], '=') : NULL;
        if (value)
            *value++ = 0;
        fprintf(to, "%s\n    ", n ? "," : "");
        good = write_quoted(to, piece[n]) && good;
        if (pattern) /* JSON does not allow a number like .5 */
            fprintf(to, ": %s", value ? tune_number_text(number, strtod(value, NULL)) : "null");
    }
    fprintf(to, "%s%s,\n", n ? "\n  " : "", pattern ? "}" : "]");
    free(piece);
    free(copy);
    return good;
}

/* Write "0,1,8-10" as a list of numbers. */
static void write_layers(FILE *to, const char *layers)
{
    bool first = true;
    fprintf(to, "  \"layers_to_transform\": %s", layers ? "[" : "null");
    for (const char *at = layers; at && *at;) {
        char *end;
        long from = strtol(at, &end, 10), last = *end == '-' ? strtol(end + 1, &end, 10) : from;
        for (long i = from; i <= last && i < TUNE_MAX_LAYERS; i++, first = false)
            fprintf(to, "%s\n    %ld", first ? "" : ",", i);
        if (end == at)
            break;
        at = end + (*end == ',');
    }
    fprintf(to, "%s,\n", layers ? "\n  ]" : "");
}

int tune_adapter_config_write(const char *folder, const struct tune_lora_options *o, const char *base)
{
    char path[TUNE_PATH_MAX], alpha[32], dropout[32], *text = NULL;
    size_t size;
    cJSON *name = base ? cJSON_CreateString(base) : cJSON_CreateNull();
    char *quoted = name ? cJSON_PrintUnformatted(name) : NULL;
    FILE *to = open_memstream(&text, &size);
    cJSON_Delete(name);
    bool good = to && quoted;
    if (good) {
        fprintf(to, "{\n");
        good = write_pieces(to, "alpha_pattern", o->alpha_pattern, true);
        fprintf(to, "  \"auto_mapping\": null,\n  \"base_model_name_or_path\": %s,\n  \"bias\": \"none\",\n"
                    "  \"fan_in_fan_out\": false,\n  \"inference_mode\": true,\n  \"init_lora_weights\": true,\n"
                    "  \"layers_pattern\": null,\n", quoted);
        write_layers(to, o->layers);
        fprintf(to, "  \"lora_alpha\": %s,\n  \"lora_dropout\": %s%s,\n", tune_number_text(alpha, o->alpha),
                tune_number_text(dropout, o->dropout), floor(o->dropout) == o->dropout ? ".0" : "");
        if (o->modules_to_save)
            good = write_pieces(to, "modules_to_save", o->modules_to_save, false) && good;
        else
            fprintf(to, "  \"modules_to_save\": null,\n");
        fprintf(to, "  \"peft_type\": \"LORA\",\n  \"r\": %d,\n", o->r);
        good = write_pieces(to, "rank_pattern", o->rank_pattern, true) && good;
        fprintf(to, "  \"revision\": null,\n");
        if (tune_lora_is_expression(o->targets))
            good = fputs("  \"target_modules\": ", to) >= 0 && write_quoted(to, o->targets) && fputs(",\n", to) >= 0 && good;
        else
            good = write_pieces(to, "target_modules", strcmp(o->targets, "all-linear") == 0 ? TUNE_ADAPTER_LINEAR : o->targets,
                                false) && good;
        fprintf(to, "  \"task_type\": \"CAUSAL_LM\",\n  \"use_dora\": %s,\n  \"use_rslora\": %s\n}\n",
                o->dora ? "true" : "false", o->rslora ? "true" : "false");
        good = fflush(to) == 0 && good;
    }
    if (to)
        fclose(to);
    if (!good)
        tune_error_no_memory("%s/adapter_config.json", folder);
    if (good)
        tune_utf8_mend(text, size); /* a path may hold any bytes */
    int status = good && tune_path(path, "%s/adapter_config.json", folder) == 0 ? tune_file_write(path, text, size) : -1;
    free(text);
    cJSON_free(quoted);
    return status;
}
