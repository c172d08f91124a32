/* selection.c - select entities by --set, --where and --entity. */
#include <errno.h>

#include "sweep.h"

int select_inputs(const struct plan *plan, const char *set)
{
    char *text = strdup(set ? set : ""), *rest = NULL;
    int code = text ? 0 : no_memory();
    for (char *at = text ? strtok_r(text, ",", &rest) : NULL; at && code == 0; at = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(at, '=');
        if (!value || value == at)
            code = tune_error_usage("--set %s: expected input=value, such as --set batch_size=4", at);
        else {
            *value++ = 0;
            code = tune_space_set(plan->space, &plan->catalog, at, value);
        }
    }
    free(text);
    return code;
}

int check_property(const struct tune_experiment *e, const char *property)
{
    int target = tune_experiment_target(e, property);
    if (target >= 0 && e->targets[target].text)
        return tune_error_usage("property %s of experiment %s is a text, but must be a number",
                                property, e->name);
    if (target >= 0)
        return 0;
    return tune_error_usage("experiment %s has no property %s (space experiments %s lists them)",
                            e->name, property, e->name);
}

/* ---- --entity ---- */

enum { MOST_LISTED = 100000 }; /* larger domains have only numbers, which are parsed instead */

/* True if the identifier of the value is text[length]. */
static bool is_spelled(const struct tune_value *v, const char *text, int length)
{
    char spelled[TUNE_STORE_TEXT_MAX + 1];
    return tune_value_id(v, spelled, sizeof spelled) == length && !strncmp(spelled, text, (size_t)length);
}

/* Find the value of a domain by its text in an identifier. */
static bool find_value(const struct tune_domain *d, const char *text, int length,
                       struct tune_value *value)
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

bool select_value(const struct tune_domain *d, const char *text, struct tune_value *value)
{
    const struct tune_column column = {.type = TUNE_CELL_TEXT};
    const struct tune_cell cell = {.text = text};
    tune_index i;
    char *end;
    if (find_value(d, text, (int)strlen(text), value))
        return true;
    *value = tune_rows_value(&column, d, NULL, &cell);
    double number = strtod(text, &end);
    if (!tune_domain_has(d, value) && *text && !*end)
        *value = tune_value_float(number);
    if (!tune_domain_has(d, value))
        return false;
    if (tune_domain_find(d, value, &i))
        tune_domain_value(d, i, value); /* the domain's own form of the value */
    return true;
}

/* Read "name.value-name.value" from dimension k on, up to a comma or the end. Returns its end.
 * NULL: the space has no such entity. */
static const char *read_entity(const struct tune_space *s, int k, const char *at,
                               struct tune_value *values)
{
    size_t name = strlen(s->names[k]);
    bool last = k + 1 == s->count;
    if (strncmp(at, s->names[k], name) || at[name] != '.')
        return NULL;
    at += name + 1;
    for (const char *end = at;; end++) {
        bool may_end = last ? !*end || *end == ',' : *end == '-';
        if (may_end && find_value(&s->dimensions[k].domain, at, (int)(end - at), &values[k])) {
            const char *rest = last ? end : read_entity(s, k + 1, end + 1, values);
            if (rest)
                return rest;
        }
        if (!*end)
            return NULL;
    }
}

const char *select_entity(const struct tune_space *s, const char *text, struct tune_value *values)
{
    return read_entity(s, 0, text, values);
}

/* Store the hashes of the identifiers in plan->only. */
static int read_entities(struct plan *plan, const char *text)
{
    struct tune_jobs_options *o = &plan->record.options;
    struct tune_value values[TUNE_SPACE_DIMENSIONS];
    if (o->order.mode > TUNE_ORDER_RANDOM_GROUPED && o->order.mode != TUNE_ORDER_HALVING)
        return tune_error_usage("--entity names the entities, so --order cannot be %s, which draws "
                                "entities",
                                tune_order_name(o->order.mode));
    for (const char *at = text, *end; *at; at = end + (*end == ',')) {
        if (!(end = select_entity(plan->space, at, values)))
            return tune_error_usage("--entity %s: this is not an entity of %s; space list and "
                                    "samples show print identifiers",
                                    at, plan->space_file);
        if (!tune_space_has(plan->space, values))
            return tune_error_usage("--entity %s: the constraints of %s exclude it", at, plan->space_file);
        uint64_t hash = tune_entity_hash(at, (size_t)(end - at));
        int i = 0;
        while (i < o->only_count && plan->only[i] != hash)
            i++;
        if (i < o->only_count)
            continue;
        if (!tune_array_fit(&plan->only, (size_t)o->only_count, sizeof *plan->only))
            return no_memory();
        plan->only[o->only_count++] = hash;
    }
    o->only = plan->only;
    return o->only_count > 0 ? 0 : tune_error_usage("--entity is empty; expected identifiers, as "
                                                    "space list prints them");
}

int select_entities(struct plan *plan)
{
    const struct tune_operation_record *r = &plan->record;
    bool grouped[TUNE_SPACE_DIMENSIONS] = {false};
    if (!points_recorded(r) && r->options.order.mode != TUNE_ORDER_MODEL) /* those make no groups */
        TRY(tune_order_groups(plan->space, &r->options.order, grouped));
    if (r->where && !plan->where && !(plan->where = tune_where_new(r->where, plan->space, plan->bindings)))
        return -1;
    plan->record.options.where = plan->where;
    if (points_recorded(r))
        return plan->point_count == 0 ? points_take(plan) : 0;
    return r->entity && !r->options.only ? read_entities(plan, r->entity) : 0;
}
