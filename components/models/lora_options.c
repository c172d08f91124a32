/* lora_options.c - evaluate the options of adapters for a module. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/try.h"
#include "core/print.h"
#include "core/regular.h"
#include "models/lora_parts.h"

struct piece {
    const char *text;
    size_t size;
};

size_t tune_lora_piece(const char *list)
{
    char closing = 0; /* of the brackets that are open */
    size_t n = 0;
    for (; list[n] && (list[n] != ',' || closing); n++) {
        if (list[n] == '\\' && list[n + 1])
            n++;
        else if (closing)
            closing = list[n] == closing ? 0 : closing;
        else if (list[n] == '{' || list[n] == '[')
            closing = list[n] == '{' ? '}' : ']';
    }
    return n;
}

/* Get the next item of a comma-separated list; false: none is left. */
static bool next_piece(const char **list, struct piece *p)
{
    if (!*list)
        return false;
    p->text = *list;
    p->size = tune_lora_piece(*list);
    *list = p->text[p->size] ? p->text + p->size + 1 : NULL;
    return true;
}

/* The module's name is `end`, or ends with "." and `end`. */
static bool ends_with(const char *module, struct piece end)
{
    size_t n = strlen(module);
    return end.size > 0 && n >= end.size && memcmp(module + n - end.size, end.text, end.size) == 0 &&
           (n == end.size || module[n - end.size - 1] == '.');
}

/* The layer number in "model.layers.12.mlp.up_proj"; -1: none. */
static int layer_of(const char *module)
{
    static const char word[] = "layers.";
    for (const char *at = module; at; at = strchr(at, '.') ? strchr(at, '.') + 1 : NULL)
        if (strncmp(at, word, sizeof word - 1) == 0 && at[sizeof word - 1] >= '0' && at[sizeof word - 1] <= '9')
            return atoi(at + sizeof word - 1);
    return -1;
}

/* Read "8" or "8-15". */
static bool read_range(struct piece p, long *low, long *high)
{
    char text[32], *end;
    if (p.size == 0 || p.size >= sizeof text || p.text[0] < '0' || p.text[0] > '9')
        return false;
    snprintf(text, sizeof text, "%.*s", (int)p.size, p.text);
    *low = *high = strtol(text, &end, 10);
    if (*end == '-' && end[1] >= '0' && end[1] <= '9')
        *high = strtol(end + 1, &end, 10);
    return !*end && *high >= *low && *high < INT_MAX;
}

/* Read "k_proj=4": a module's name and a number. */
static bool read_assignment(struct piece p, struct piece *name, double *value)
{
    char text[48], *end;
    const char *equal = memrchr(p.text, '=', p.size); /* an expression may have others */
    size_t left = equal ? (size_t)(p.text + p.size - equal - 1) : 0;
    if (!equal || equal == p.text || left == 0 || left >= sizeof text || !strchr("0123456789.", equal[1]))
        return false;
    snprintf(text, sizeof text, "%.*s", (int)left, equal + 1);
    *name = (struct piece){p.text, (size_t)(equal - p.text)};
    *value = strtod(text, &end);
    return !*end && isfinite(*value);
}

static bool in_layers(const char *layers, const char *module)
{
    struct piece p;
    long low, high, layer = layer_of(module);
    if (!layers)
        return true;
    while (next_piece(&layers, &p))
        if (read_range(p, &low, &high) && layer >= low && layer <= high)
            return true;
    return false;
}

/* The modules that can be trained whole, in the order of the model. */
static const char *const wholes[] = {"model.embed_tokens", "lm_head"};
enum { WHOLES = sizeof wholes / sizeof *wholes };

/* The index in wholes of a name of a list; -1: it is none of them. */
static int whole(struct piece p)
{
    for (int i = 0; i < WHOLES; i++)
        if (ends_with(wholes[i], p))
            return i;
    return -1;
}

const char *tune_lora_saved(const struct tune_lora_options *o, int i)
{
    for (int k = 0; k < WHOLES; k++) {
        struct piece p;
        bool named = false;
        for (const char *at = o->modules_to_save; next_piece(&at, &p);)
            named = named || whole(p) == k;
        if (named && i-- == 0)
            return wholes[k];
    }
    return NULL;
}

static bool is_saved(const struct tune_lora_options *o, const char *module)
{
    const char *saved;
    for (int i = 0; (saved = tune_lora_saved(o, i)); i++)
        if (strcmp(saved, module) == 0)
            return true;
    return false;
}

/* True if the targets name the module: whole, in whatever layer; or its end, in the layers. */
static bool listed(const struct tune_lora_options *o, const char *module)
{
    struct piece p;
    bool ends = false;
    for (const char *at = o->targets; next_piece(&at, &p);) {
        if (ends_with(module, p) && p.size == strlen(module))
            return true;
        ends = ends || ends_with(module, p);
    }
    return ends && in_layers(o->layers, module);
}

static bool targeted(const struct tune_lora_options *o, const char *module)
{
    size_t n = strlen(module);
    bool linear = n > 5 && !strcmp(module + n - 5, "_proj");
    if (!linear && whole((struct piece){module, n}) < 0)
        return false;
    if (!strcmp(o->targets, "all-linear"))
        return linear && in_layers(o->layers, module);
    if (tune_lora_is_expression(o->targets))
        return tune_regular_matches(o->targets, module, true) == 1 && in_layers(o->layers, module);
    return listed(o, module);
}

/* True if a pattern's key fits a module: its end, or an expression for it, as in PEFT. */
static bool key_fits(struct piece key, const char *module)
{
    char *expression = NULL;
    char *text = strndup(key.text, key.size);
    bool fits = ends_with(module, key);
    if (text && tune_lora_is_expression(text) && asprintf(&expression, "(.*\\.)?(%s)$", text) >= 0)
        fits = tune_regular_matches(expression, module, false) == 1;
    free(expression);
    free(text);
    return fits;
}

/* The value of the first entry of a pattern that matches the module, or `otherwise`. */
static double by_pattern(const char *pattern, const char *module, double otherwise)
{
    struct piece p, name;
    double value;
    while (next_piece(&pattern, &p))
        if (read_assignment(p, &name, &value) && key_fits(name, module))
            return value;
    return otherwise;
}

int tune_lora_rank(const struct tune_lora_options *o, const char *module)
{
    return targeted(o, module) && !is_saved(o, module) ? (int)by_pattern(o->rank_pattern, module, o->r) : 0;
}

double tune_lora_alpha(const struct tune_lora_options *o, const char *module)
{
    return by_pattern(o->alpha_pattern, module, o->alpha);
}

double tune_lora_scale(const struct tune_lora_options *o, const char *module)
{
    double r = tune_lora_rank(o, module);
    return tune_lora_alpha(o, module) / (o->rslora ? sqrt(r) : r);
}

const char *tune_lora_low_rank(const struct tune_lora_options *o, int i)
{
    for (int k = 0; k < WHOLES; k++)
        if (tune_lora_rank(o, wholes[k]) > 0 && i-- == 0)
            return wholes[k];
    return NULL;
}

/* ---- checks ---- */

static int refuse(const char *what, struct piece p, const char *expected)
{
    return tune_error_usage("%s: \"%.*s\"; expected %s", what, p.size < 200 ? (int)p.size : 200, p.text, expected);
}

/* True if an earlier entry of the pattern has this name. adapter_config.json could not hold
 * both. */
static bool named_before(const char *pattern, struct piece name)
{
    struct piece p;
    while (next_piece(&pattern, &p) && p.text < name.text)
        if (p.size > name.size && p.text[name.size] == '=' && memcmp(p.text, name.text, name.size) == 0)
            return true;
    return false;
}

static int check_pattern(const char *what, const char *pattern, bool ranks)
{
    struct piece p, name;
    double value;
    for (const char *at = pattern; next_piece(&at, &p);) {
        if (!read_assignment(p, &name, &value))
            return refuse(what, p, "entries like k_proj=4 with commas between them");
        char *key = strndup(name.text, name.size);
        int status = key && tune_lora_is_expression(key) ? tune_lora_expression_check(key) : 0;
        free(key);
        if (status < 0)
            return tune_error_prefix("%s: ", what);
        if (named_before(pattern, name))
            return refuse(what, p, "each name once");
        if (ranks && (value < 1 || value > TUNE_LORA_MAX_RANK || value != floor(value)))
            return refuse(what, p, "a rank from 1 to 16384");
        if (!(value > 0 && value <= TUNE_LORA_MAX_ALPHA))
            return refuse(what, p, "an alpha above 0, at most 1e9");
    }
    return 0;
}

int tune_lora_check(const struct tune_lora_options *o)
{
    struct piece p;
    long low, high;
    const char *layers = o->layers;
    if (o->r < 1 || o->r > TUNE_LORA_MAX_RANK)
        return tune_error_usage("LoRA: the rank r is %d; expected 1 to %d", o->r, TUNE_LORA_MAX_RANK);
    if (!(o->alpha > 0 && o->alpha <= TUNE_LORA_MAX_ALPHA) || !(o->dropout >= 0 && o->dropout < 1))
        return tune_error_usage("LoRA: alpha is %g, dropout %g; expected an alpha above 0, at most 1e9, and a "
                                   "dropout from 0 to below 1", o->alpha, o->dropout);
    TRY(check_pattern("LoRA's rank pattern", o->rank_pattern, true));
    TRY(check_pattern("LoRA's alpha pattern", o->alpha_pattern, false));
    if (!o->targets)
        return tune_error_usage("LoRA: no targets; name modules, or write all-linear");
    if (tune_lora_is_expression(o->targets)) {
        if (tune_lora_expression_check(o->targets) < 0)
            return tune_error_prefix("LoRA's targets: ");
        if (o->layers)
            return tune_error_usage("LoRA's layers: the targets are a regular expression, which says itself in which layers; "
                                    "such as .*\\.[0-3]\\.mlp\\.up_proj");
    }
    for (const char *at = o->modules_to_save; next_piece(&at, &p);)
        if (whole(p) < 0)
            return refuse("LoRA's modules to save", p, "embed_tokens, lm_head, or both with a comma between them");
    while (next_piece(&layers, &p))
        if (!read_range(p, &low, &high))
            return refuse("LoRA's layers", p, "numbers and ranges like 0,1,8-15");
    return 0;
}

/* ---- checks against a model ---- */

/* True if key matches a module of the model; NULL: all match. adapted: a module with an adapter; otherwise any. */
static bool fits_some(const struct tune_parameters *t, const struct tune_lora_options *o, const struct piece *key, bool adapted)
{
    for (int i = 0; i < t->base; i++) {
        char module[sizeof t->at->name];
        if (tune_lora_module(&t->at[i], module) && (!key || key_fits(*key, module)) && (!adapted || tune_lora_rank(o, module) > 0))
            return true;
    }
    return false;
}

/* Report that nothing matches, with the names that exist. */
static int no_module(const struct tune_parameters *t, const char *what, struct piece p, bool adapted)
{
    char names[256] = "", module[sizeof t->at->name];
    for (int i = 0; i < t->base && t->at[i].unit < 2; i++)
        if (tune_lora_module(&t->at[i], module))
            tune_append_item(names, sizeof names, "%s", module + strlen("model.layers.0."));
    return tune_error_usage("%s: \"%.*s\" fits no %s; in each layer there are %s, or write all-linear", what,
                            p.size < 200 ? (int)p.size : 200, p.text, adapted ? "module with an adapter" : "module", names);
}

static int check_names(const struct tune_parameters *t, const struct tune_lora_options *o, const char *what, const char *list,
                       bool pattern)
{
    struct piece p, name;
    double value;
    while (next_piece(&list, &p)) {
        name = p;
        if (pattern)
            read_assignment(p, &name, &value);
        if (!fits_some(t, o, &name, pattern))
            return no_module(t, what, name, pattern);
    }
    return 0;
}

bool tune_lora_module(const struct tune_parameter *p, char *module)
{
    if (!tune_parameter_is_linear(p))
        return false;
    snprintf(module, sizeof p->name, "%.*s", (int)(strlen(p->name) - strlen(".weight")), p->name);
    return true;
}

int tune_lora_check_model(const struct tune_parameters *t, const struct tune_lora_options *o, int model_layers)
{
    struct piece p;
    long low, high;
    const char *layers = o->layers;
    TRY(tune_lora_check(o));
    if (tune_lora_low_rank(o, 0))
        return tune_error_usage("LoRA's targets: low-rank adapters of %s are read and merged, but not trained; name it in "
                                "modules_to_save to train it whole, or merge the adapter first and train the merged model",
                                tune_lora_low_rank(o, 0));
    while (!o->loose && next_piece(&layers, &p))
        if (read_range(p, &low, &high) && high >= model_layers)
            return tune_error_usage("LoRA's layers: \"%.*s\"; the model has layers 0 to %d", (int)p.size, p.text,
                                       model_layers - 1);
    if (!o->loose && tune_lora_is_expression(o->targets)) {
        if (!fits_some(t, o, NULL, true))
            return no_module(t, "LoRA's targets", (struct piece){o->targets, strlen(o->targets)}, false);
    } else if (!o->loose && strcmp(o->targets, "all-linear")) {
        TRY(check_names(t, o, "LoRA's targets", o->targets, false));
    }
    TRY(o->loose ? 0 : check_names(t, o, "LoRA's rank pattern", o->rank_pattern, true));
    TRY(o->loose ? 0 : check_names(t, o, "LoRA's alpha pattern", o->alpha_pattern, true));
    if (fits_some(t, o, NULL, true) || (o->loose && tune_lora_saved(o, 0)))
        return 0;
    if (!o->layers)
        return no_module(t, "LoRA's targets", (struct piece){o->targets, strlen(o->targets)}, false);
    return tune_error_usage("LoRA: no target lies in the layers %s; the model has layers 0 to %d", o->layers,
                               model_layers - 1);
}
