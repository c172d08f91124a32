/* model.c - --order model: each next entity is chosen by a model of the results so far. The rows are
 * also those that --stop-when of another order looks at.
 *
 * Only rows of this operation are used. They are read again before each choice, so that rows of other
 * processes count, too, and a resumed operation goes on with the same entities. */
#include "core/expression.h"
#include "core/nearest.h"
#include "sweep.h"
#include "sweeps/discovery/view.h"

/* ---- options ---- */

static bool is_model(const struct plan *plan)
{
    return plan->record.options.order.mode == TUNE_ORDER_MODEL;
}

bool model_chooses(const struct plan *plan)
{
    return is_model(plan) && !(plan->flags->join && plan->record.launcher);
}

static int check_options(const struct plan *plan)
{
    const struct tune_operation_record *r = &plan->record;
    const struct tune_jobs_options *o = &r->options;
    if (plan->space->reference_count != 1)
        return tune_error_usage("--order model works with one experiment, but %s has %d", plan->space_file,
                                plan->space->reference_count);
    if (o->selector || o->filter != TUNE_FILTER_NONE)
        return tune_error_usage("--order model takes points of the space: leave samplerType and filter out of %s; --where "
                                "chooses among them", plan->flags->operation);
    if (r->stop_when && !enough_is_rule(r->stop_when) && !strchr(r->stop_when, ':'))
        return tune_error_usage("--stop-when \"%s\": expected \"no gain of 1 %% in 20\" or \"chance of 1 %% below 5 %%\"", r->stop_when);
    if (r->stop_when && !enough_is_rule(r->stop_when))
        return tune_error_usage("--stop-when %s ends the repeats of an entity, which is not for --order model; \"no gain of 1 %% in 20\" "
                                "and \"chance of 1 %% below 5 %%\" end the search", r->stop_when);
    if (o->order.limit < 0 && !r->stop_when && (plan->space->size == 0 || plan->space->size > TUNE_JOBS_ALL))
        return tune_error_usage("--order model needs --entities, the number of entities to measure, because %s has too many; "
                                "or --stop-when, a rule that ends it", plan->space_file);
    return 0;
}

/* Add the properties in a list with commas to the columns. */
static int add_properties(struct plan *plan, struct model_order *m, const char *list, bool maximize)
{
    const char *names[TUNE_SEARCH_TARGETS + 1];
    char *text = list ? tune_pool_text(&plan->memory, list, strlen(list)) : NULL;
    if (!list)
        return 0;
    if (!text)
        return no_memory();
    int count = tune_name_split(text, names, TUNE_SEARCH_TARGETS + 1);
    for (int i = 0; i < count && m->targets < TUNE_SEARCH_TARGETS; i++) {
        TRY(check_property(plan->bindings->experiment, names[i]));
        m->maximize[m->targets++] = maximize;
        m->columns[m->column_count++] = names[i];
    }
    return count;
}

static int read_properties(struct plan *plan, struct model_order *m)
{
    const struct tune_operation_record *r = &plan->record;
    int high, low;
    m->columns[m->column_count++] = tune_key_column(TUNE_KEY_STATUS)->name;
    TRY(high = add_properties(plan, m, r->maximize, true));
    TRY(low = add_properties(plan, m, r->minimize, false));
    if (high + low < 1 || high + low > TUNE_SEARCH_TARGETS)
        return tune_error_usage("--order model needs one property or two: --maximize PROPERTY, --minimize PROPERTY");
    if (m->targets == 2 && !strcmp(m->columns[1], m->columns[2]))
        return tune_error_usage("--order model: %s is named twice", m->columns[1]);
    return 0;
}

static struct tune_expression *compile(const struct plan *plan, const struct model_order *m)
{
    return tune_expression_query(plan->record.where_target, m->columns + 1, m->column_count - 1, "--where-target");
}

/* Why --where-target cannot be read: it may name what is no number that is measured. */
static int explain(const struct plan *plan, const struct tune_experiment *e)
{
    const char *text = strstr(tune_error_message(), "unknown name") ? plan->record.where_target : "";
    for (int i = 0; i < e->target_count; i++)
        if (e->targets[i].text && tune_name_used(text, e->targets[i].name))
            return tune_error_usage("--where-target: property %s is a text, and only numbers can be compared here", e->targets[i].name);
    for (int d = 0; d < plan->space->count; d++)
        if (tune_name_used(text, plan->space->names[d]))
            return tune_error_usage("--where-target: %s is an input of an entity; --where chooses entities by inputs", plan->space->names[d]);
    return -1;
}

/* Compile --where-target with all properties of the experiment, then with those that it uses. */
static int read_within(const struct plan *plan, struct model_order *m)
{
    const struct tune_experiment *e = plan->bindings->experiment;
    int own = 1 + m->targets, used = own;
    if (!plan->record.where_target)
        return 0;
    for (int i = 0; i < e->target_count && m->column_count < MODEL_COLUMNS; i++)
        if (!e->targets[i].text && tune_name_find(m->columns, m->column_count, e->targets[i].name) < 0)
            m->columns[m->column_count++] = e->targets[i].name;
    struct tune_expression *all = compile(plan, m);
    if (!all)
        return explain(plan, e);
    for (int i = own; i < m->column_count; i++)
        if (tune_expression_uses(all, i - 1))
            m->columns[used++] = m->columns[i];
    tune_expression_free(all);
    m->column_count = used;
    if (used - 1 > TUNE_SEARCH_VALUES)
        return tune_error_usage("--where-target may use %d properties, but it uses %d", TUNE_SEARCH_VALUES - m->targets, used - own);
    return (m->within = compile(plan, m)) ? 0 : -1;
}

/* True if values meet --where-target. An expression that fails, as by a division by 0, is not met. */
static int is_within(void *model, const double *values)
{
    const struct model_order *m = model;
    struct tune_value all[TUNE_SEARCH_VALUES];
    for (int i = 0; i < m->column_count - 1; i++)
        all[i] = tune_value_float(values[i]);
    int holds = tune_expression_true(m->within, all);
    if (holds < 0)
        tune_error_clear();
    return holds == 1;
}

static int may_measure(void *model, const struct tune_value *entity)
{
    const struct model_order *m = model;
    return tune_where_meets(m->plan->where, 0, entity);
}

int model_open(struct plan *plan, struct model_order *m)
{
    model_free(m);
    if (is_model(plan) && !model_chooses(plan))
        return 0;
    if (!is_model(plan) && plan->record.where_target)
        return tune_error_usage("--where-target is only for --order model; samples --where chooses among results");
    if (!is_model(plan) && !enough_is_rule(plan->record.stop_when))
        return 0;
    TRY(is_model(plan) ? check_options(plan) : 0);
    TRY(read_properties(plan, m));
    TRY(read_within(plan, m));
    m->plan = plan;
    if (!is_model(plan))
        return 0;
    struct tune_search_options o = {.space = plan->space, .seed = plan->record.options.order.seed, .targets = m->targets,
                                    .allowed = plan->record.where ? may_measure : NULL, .within = m->within ? is_within : NULL,
                                    .others = m->column_count - 1 - m->targets, .context = m};
    memcpy(o.maximize, m->maximize, sizeof o.maximize);
    return (m->search = tune_search_new(&o)) ? 0 : -1;
}

void model_free(struct model_order *m)
{
    tune_search_free(m->search);
    tune_expression_free(m->within);
    tune_map_free(&m->indexes);
    model_dry_free(m->dry);
    for (int i = 0; i < m->entity_count; i++)
        free(m->entities[i].entity);
    free(m->entities);
    *m = (struct model_order){0};
}

void model_print(const struct plan *plan)
{
    const struct tune_operation_record *r = &plan->record;
    if (!is_model(plan))
        return;
    fputs("# model               ", stdout);
    print_text(r->maximize ? "maximize " : "", r->maximize ? r->maximize : "");
    print_text(r->minimize ? r->maximize ? ", minimize " : "minimize " : "", r->minimize ? r->minimize : "");
    print_text(r->where_target ? ", where " : "", r->where_target ? r->where_target : "");
    putchar('\n');
}

/* ---- rows ---- */

bool model_row_values(const struct model_order *m, const struct tune_cell *cells, double *values)
{
    bool valid = !strcmp(cells[0].text, "valid");
    for (int i = 1; i < m->column_count; i++) {
        valid = valid && !cells[i].absent;
        values[i - 1] = cells[i].absent ? 0 : cells[i].number;
    }
    return valid;
}

/* Add a row of an entity. */
static int add_row(struct model_order *m, struct model_entity *e, bool valid, const double *values)
{
    bool within = !valid || !m->within || is_within(m, values);
    e->rows++;
    m->row_count++;
    if (valid && within) {
        e->sum += values[0];
        e->valid++;
    }
    return !m->search ? 0 : tune_search_add(m->search, e->entity, !valid ? TUNE_SEARCH_INVALID : within ? TUNE_SEARCH_VALID
                                                                                                          : TUNE_SEARCH_OUTSIDE, values);
}

static int add_entity(const struct plan *plan, struct model_order *m, const struct tune_value *entity, bool ours)
{
    int n = plan->space->count;
    if (!tune_array_fit(&m->entities, (size_t)m->entity_count, sizeof *m->entities))
        return no_memory();
    struct tune_value *copy = tune_values_copy(malloc(tune_values_size(entity, n) + 1), entity, n);
    if (copy)
        m->entities[m->entity_count++] = (struct model_entity){.entity = copy, .ours = ours};
    return copy ? 0 : no_memory();
}

/* The entity's index + 2; 1: this process chose it, and it has no rows yet; 0: it is new. NULL with an
 * error. */
static int64_t *index_of(const struct plan *plan, struct model_order *m, const struct tune_value *entity)
{
    char *text = NULL;
    int length = tune_entity_to_string(plan->space->names, entity, plan->space->count, &text, &(size_t){0});
    uint64_t key[2] = {length < 0 ? 0 : tune_entity_hash(text, (size_t)length), 0};
    int64_t *index = length < 0 ? NULL : tune_map_add(&m->indexes, key);
    free(text);
    if (!index && length >= 0)
        no_memory();
    return index;
}

/* Add the new rows of an entity. */
static int add_group(const struct plan *plan, struct model_order *m, struct tune_view *v, const struct tune_view_group *group)
{
    int64_t *index = index_of(plan, m, group->entity);
    TRY(index ? 0 : -1);
    if (*index < 2) {
        TRY(add_entity(plan, m, group->entity, *index == 1));
        *index = m->entity_count + 1;
    }
    struct model_entity *e = &m->entities[*index - 2];
    while (e->rows < group->results) {
        double values[TUNE_SEARCH_VALUES] = {0};
        const struct tune_cell *cells = tune_view_cells(v, e->rows);
        TRY(cells ? 0 : -1);
        bool valid = model_row_values(m, cells, values);
        TRY(add_row(m, e, valid, values));
    }
    return 0;
}

int model_add_row(const struct plan *plan, struct model_order *m, const struct tune_value *entity, bool valid, const double *values)
{
    int64_t *index = index_of(plan, m, entity);
    TRY(index ? 0 : -1);
    if (*index < 2) {
        TRY(add_entity(plan, m, entity, true));
        *index = m->entity_count + 1;
    }
    return add_row(m, &m->entities[*index - 2], valid, values);
}

int model_read_rows(const struct plan *plan, struct model_order *m)
{
    const struct tune_view_options o = {.include = TUNE_VIEW_MEASURED, .operation = plan->record.id, .failed = true,
                                        .columns = m->columns, .column_count = m->column_count};
    struct tune_view_group group;
    int more;
    if (!plan->store)
        return 0;
    if (!plan->flags->dry_run) { /* rows of jobs that needed no run may not be written yet */
        TRY(tune_store_commit(plan->store));
        tune_store_begin(plan->store);
    }
    TRY(tune_result_cache_refresh(plan->cache));
    struct tune_view *v = tune_view_open(plan->store, plan->space, plan->bindings, &o);
    if (!v)
        return -1;
    while ((more = tune_view_next(v, &group)) == 1)
        if (add_group(plan, m, v, &group) < 0) {
            more = -1;
            break;
        }
    tune_view_free(v);
    return more;
}

/* ---- the choice ---- */

/* Say once that the model cannot begin, because the results lack what it needs. */
static void log_lack(const struct queue *q, struct model_order *m)
{
    if (m->lack_logged || !tune_search_lacks_values(m->search))
        return;
    m->lack_logged = true;
    progress_log(q->progress, "model               waits: fewer than 2 results are valid and have %s%s%s%s; until then, the points are those of "
                 "sobol", m->columns[1], m->targets == 2 ? " and " : "", m->targets == 2 ? m->columns[2] : "",
                 m->within ? " within --where-target" : "");
}

/* Wait for the results of an entity. 1; 0: it was chosen or has rows already; -1. */
static int take(const struct plan *plan, struct model_order *m, const struct tune_value *entity)
{
    int64_t *index = index_of(plan, m, entity);
    TRY(index ? 0 : -1);
    if (*index)
        return 0;
    *index = 1;
    TRY(tune_search_add(m->search, entity, TUNE_SEARCH_PENDING, NULL));
    return 1;
}

int model_choose(void *queue, const struct tune_value **entity)
{
    struct queue *q = queue;
    struct model_order *m = &q->model;
    TRY(model_read_rows(q->plan, m));
    while (m->given < m->entity_count) {
        const struct model_entity *e = &m->entities[m->given++];
        *entity = e->entity;
        if (!e->ours)
            return 1;
    }
    while (m->recorded < q->plan->point_count) { /* chosen for a launcher, before this process began */
        *entity = q->plan->points[m->recorded++];
        int new = take(q->plan, m, *entity);
        if (new)
            return new;
    }
    int over = enough_holds(q);
    if (over)
        return over < 0 ? -1 : 0;
    log_lack(q, m);
    int more = tune_search_next(m->search, entity);
    return more <= 0 ? more : take(q->plan, m, *entity);
}
