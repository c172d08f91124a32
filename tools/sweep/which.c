/* which.c - --set, --where and --entity: what to measure of the space. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "sweep.h"

int sweep_set(const char *set)
{
    char *text = strdup(set ? set : ""), *rest = NULL;
    int code = text ? 0 : sweep_no_memory();
    for (char *at = text ? strtok_r(text, ",", &rest) : NULL; at && code == 0; at = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(at, '=');
        if (!value || value == at)
            code = tune_error_usage("--set %s: expected input=value, such as --set batch_size=4", at);
        else {
            *value++ = 0;
            code = tune_space_set(sweep.space, &sweep.catalog, at, value);
        }
    }
    free(text);
    return code;
}

/* ---- --entity ---- */

enum { MOST_LISTED = 100000 }; /* a larger domain has numbers only, which are read */

/* True if the value is spelled like this in an identifier. */
static bool is_spelled(const struct tune_value *v, const char *text, int length)
{
    char spelled[TUNE_STORE_TEXT_MAX + 1];
    return tune_value_id(v, spelled, sizeof spelled) == length && !strncmp(spelled, text, (size_t)length);
}

/* The value of a domain that is spelled like this. */
static bool find_value(const struct tune_domain *d, const char *text, int length, struct tune_value *value)
{
    tune_index size = tune_domain_size(d);
    for (tune_index i = 0; size <= MOST_LISTED && i < size; i++) {
        tune_domain_value(d, i, value);
        if (is_spelled(value, text, length))
            return true;
    }
    if (size > 0 && size <= MOST_LISTED)
        return false;
    char *end;
    errno = 0;
    *value = tune_value_int(strtoll(text, &end, 10));
    if (errno || end != text + length)
        *value = tune_value_float(strtod(text, &end));
    return end == text + length && is_spelled(value, text, length) && tune_domain_has(d, value);
}

/* Read "name.value-name.value" from dimension k on, up to a comma or the end. Returns where it
 * ends; NULL: it is no entity of the space. */
static const char *read_entity(int k, const char *at, struct tune_value *values)
{
    const struct tune_space *s = sweep.space;
    size_t name = strlen(s->names[k]);
    bool last = k + 1 == s->count;
    if (strncmp(at, s->names[k], name) || at[name] != '.')
        return NULL;
    at += name + 1;
    for (const char *end = at;; end++) {
        bool may_end = last ? !*end || *end == ',' : *end == '-';
        if (may_end && find_value(&s->dimensions[k].domain, at, (int)(end - at), &values[k])) {
            const char *rest = last ? end : read_entity(k + 1, end + 1, values);
            if (rest)
                return rest;
        }
        if (!*end)
            return NULL;
    }
}

static int choose_entities(const char *text, struct tune_jobs_options *o)
{
    struct tune_value values[TUNE_SPACE_DIMENSIONS];
    if (o->order.mode > TUNE_ORDER_RANDOM_GROUPED && o->order.mode != TUNE_ORDER_HALVING)
        return tune_error_usage("--entity names the entities, so there is nothing to draw: --order may not be %s",
                                tune_order_name(o->order.mode));
    for (const char *at = text, *end; *at; at = end + (*end == ',')) {
        if (!(end = read_entity(0, at, values)))
            return tune_error_usage("--entity %s: this is no entity of %s; space list and samples show print identifiers",
                                    at, my.space);
        if (!tune_space_has(sweep.space, values))
            return tune_error_usage("--entity %s: the constraints of %s exclude it", at, my.space);
        uint64_t hash = tune_entity_hash(at, (size_t)(end - at));
        int i = 0;
        while (i < o->only_count && sweep.only[i] != hash)
            i++;
        if (i < o->only_count)
            continue;
        if (!tune_array_fit(&sweep.only, (size_t)o->only_count, sizeof *sweep.only))
            return sweep_no_memory();
        sweep.only[o->only_count++] = hash;
    }
    o->only = sweep.only;
    return o->only_count > 0 ? 0 : tune_error_usage("--entity: which? An identifier, as space list prints it");
}

int sweep_choose(struct tune_jobs_options *o)
{
    if (sweep.record.where && !(sweep.where = tune_where_new(sweep.record.where, sweep.space, sweep.protocols)))
        return -1;
    o->where = sweep.where;
    return sweep.record.entity ? choose_entities(sweep.record.entity, o) : 0;
}
