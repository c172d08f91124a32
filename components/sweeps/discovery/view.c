/* view.c - the rows of a store that are in a space, in groups; or entities without rows. */
#include "sweeps/discovery/view_parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/try.h"
#include "sweeps/discovery/results.h"

int tune_view_no_memory(void)
{
    return tune_error_cannot("out of memory while the store is viewed");
}

/* ---- requests of this space's operations ---- */

char **tune_view_operations(struct tune_store *s, const struct tune_space *space, int *count)
{
    int all, kept = 0;
    char **names = tune_store_records(s, "operations", &all), id[32];
    snprintf(id, sizeof id, "space-%s", space->id);
    for (int i = 0; names && i < all; i++) {
        struct tune_operation_record r;
        char *dot = strrchr(names[i], '.');
        if (dot)
            *dot = 0;
        bool readable = tune_operation_record_read(s, names[i], &r) == 0, own = readable && !strcmp(r.space, id);
        if (readable)
            tune_operation_record_free(&r);
        else
            tune_error_clear();
        if (own)
            names[kept++] = names[i];
        else
            free(names[i]);
    }
    for (int i = kept; names && i < all; i++)
        names[i] = NULL;
    *count = kept;
    return names;
}

static int add_request(struct tune_view *v, const struct tune_cell *uid, const struct tune_cell *entity)
{
    uint8_t bytes[16];
    if (uid->absent)
        return 0;
    tune_uid_read(bytes, uid->text);
    return tune_uids_add(&v->asked, bytes, tune_entity_hash(entity->text, strlen(entity->text)));
}

static int read_asked(struct tune_view *v)
{
    const struct tune_cell *cells;
    int count, more;
    if (v->asked_known)
        return 0;
    char **own = tune_view_operations(v->store, v->space, &count);
    struct tune_scan *scan =
        own ? TUNE_SCAN(v->store, TUNE_STORE_REQUESTS, TUNE_REQUEST_OPERATION, TUNE_REQUEST_UID, TUNE_REQUEST_ENTITY) : NULL;
    while ((more = tune_scan_next(scan, &cells)) == 1) {
        bool mine = false;
        for (int i = 0; i < count && !mine; i++)
            mine = !strcmp(own[i], cells[0].text) && (!v->o.operation || !strcmp(own[i], v->o.operation));
        if (mine && (more = add_request(v, &cells[1], &cells[2])) < 0)
            break;
    }
    tune_scan_free(scan);
    if (own)
        tune_store_records_free(own, count);
    tune_uids_sort(&v->asked);
    v->asked_known = more == 0;
    return more;
}

/* The hash of the row's entity, as in requests. */
static int hash_entity(struct tune_view *v, int entity, uint64_t *hash)
{
    const struct tune_space *s = v->space;
    tune_matching_values(&v->m, entity, v->values);
    int length = tune_entity_spell(s->names, v->values, s->count, &v->text, &v->text_size);
    TRY(length);
    *hash = tune_entity_hash(v->text, (size_t)length);
    return 0;
}

/* Check if an operation of this space requested the row: 1, 0, or -1 with an error. */
static int was_asked(struct tune_view *v, const struct tune_matching_row *row)
{
    uint64_t hash = 0;
    if (!tune_uids_has(&v->asked, row->uid))
        return 0;
    if (!row->shared)
        return 1;
    TRY(hash_entity(v, row->entity, &hash));
    return tune_uids_has_with(&v->asked, row->uid, hash);
}

/* ---- groups ---- */

static int compare_rows(const void *a, const void *b, void *context)
{
    const struct tune_matching_row *rows = context, *x = &rows[*(const int *)a], *y = &rows[*(const int *)b];
    if (x->entity != y->entity)
        return x->entity < y->entity ? -1 : 1;
    if (x->protocol != y->protocol)
        return x->protocol < y->protocol ? -1 : 1;
    return x < y ? -1 : x > y;
}

static bool is_result(const struct tune_view *v, const struct tune_matching_row *row)
{
    return row->protocol >= 0 && (v->o.failed || row->status != TUNE_FAILED) && (!v->o.valid || row->status == TUNE_VALID);
}

static int choose_rows(struct tune_view *v, bool own)
{
    bool sorted = true;
    if (!(v->order = malloc((size_t)(v->m.row_count + 1) * sizeof *v->order)))
        return tune_view_no_memory();
    for (int i = 0; i < v->m.row_count; i++) {
        int good = is_result(v, &v->m.rows[i]);
        if (good && own)
            TRY(good = was_asked(v, &v->m.rows[i]));
        if (!good)
            continue;
        sorted = sorted && (v->order_count == 0 || compare_rows(&v->order[v->order_count - 1], &i, v->m.rows) < 0);
        v->order[v->order_count++] = i;
    }
    if (!sorted)
        qsort_r(v->order, (size_t)v->order_count, sizeof *v->order, compare_rows, v->m.rows);
    return 0;
}

static int make_groups(struct tune_view *v)
{
    if (!(v->groups = malloc((size_t)(v->order_count + 1) * sizeof *v->groups)))
        return tune_view_no_memory();
    for (int i = 0; i < v->order_count; i++) {
        const struct tune_matching_row *row = &v->m.rows[v->order[i]], *before = i ? &v->m.rows[v->order[i - 1]] : NULL;
        if (!before || before->entity != row->entity || before->protocol != row->protocol)
            v->groups[v->group_count++] = (struct group){i, 0};
        v->groups[v->group_count - 1].count++;
    }
    return 0;
}

static const struct tune_matching_row *row_of(const struct tune_view *v, const struct group *g, int k)
{
    return &v->m.rows[v->order[g->first + k]];
}

/* Keep the wanted results of a group. The expression is evaluated once if it is over inputs. */
static int choose_results(struct tune_view *v, struct group *g)
{
    int p = row_of(v, g, 0)->protocol, kept = 0;
    bool by_inputs = tune_select_by_inputs(v->select[p]);
    tune_matching_values(&v->m, row_of(v, g, 0)->entity, v->values);
    for (int k = 0; k < g->count; k++) {
        const struct tune_cell *cells = by_inputs ? NULL : tune_view_read(v, row_of(v, g, k));
        int good = by_inputs || cells ? tune_view_meets(v, p, cells) : -1;
        TRY(good);
        if (by_inputs) {
            kept = good ? g->count : 0;
            break;
        }
        if (good)
            v->order[g->first + kept++] = v->order[g->first + k];
    }
    g->count = kept;
    return 0;
}

/* Keep the groups with a wanted result. */
static int drop_groups(struct tune_view *v)
{
    int kept = 0;
    for (int i = 0; v->o.where && i < v->group_count; i++) {
        TRY(choose_results(v, &v->groups[i]));
        if (v->groups[i].count > 0)
            v->groups[kept++] = v->groups[i];
    }
    v->group_count = v->o.where ? kept : v->group_count;
    return 0;
}

static int compare_indices(const void *a, const void *b)
{
    tune_index x = *(const tune_index *)a, y = *(const tune_index *)b;
    return (x > y) - (x < y);
}

/* Collect the entities of the groups, which missing and unmeasured leave out. */
static int make_excluded(struct tune_view *v)
{
    if (!(v->excluded = malloc((size_t)(v->group_count + 1) * sizeof *v->excluded)))
        return tune_view_no_memory();
    for (int i = 0; i < v->group_count; i++)
        v->excluded[v->excluded_count++] = v->m.entities[row_of(v, &v->groups[i], 0)->entity].index;
    qsort(v->excluded, (size_t)v->excluded_count, sizeof *v->excluded, compare_indices);
    return 0;
}

static int open_view(struct tune_view *v)
{
    const struct tune_space *s = v->space;
    int most = 0, targets = 0;
    bool own = v->o.include == TUNE_VIEW_MEASURED || v->o.include == TUNE_VIEW_UNMEASURED;
    for (int p = 0; p < s->reference_count; p++) {
        const struct tune_experiment *e = v->protocols[p].experiment;
        most = e->input_count + e->target_count > most ? e->input_count + e->target_count : most;
        targets += e->target_count + 2; /* core_share, stable */
    }
    most += s->count + v->o.derived_count + 3;
    v->text_size = 512;
    const char **names = calloc((size_t)most, sizeof *names);
    if (!names || !(v->values = calloc((size_t)s->count + 1, sizeof *v->values)) ||
        !(v->inputs = calloc((size_t)most, sizeof *v->inputs)) ||
        !(v->scans = calloc((size_t)s->reference_count + 1, sizeof *v->scans)) ||
        !(v->text = malloc(v->text_size))) {
        free(names);
        return tune_view_no_memory();
    }
    if (tune_view_of_entities(v) && (s->size == 0 || s->size == TUNE_INDEX_MAX)) {
        free(names);
        return tune_error_usage("%s: what is missing of a space that cannot be counted cannot be "
                                "listed", s->document->path);
    }
    int code = tune_view_choose(v, names, targets);
    free(names);
    TRY(code);
    TRY(tune_matching_read(&v->m, v->store, s, v->protocols, s->reference_count));
    if (own)
        TRY(read_asked(v));
    TRY(choose_rows(v, own));
    TRY(make_groups(v));
    if (tune_view_of_entities(v))
        return make_excluded(v);
    return drop_groups(v);
}

struct tune_view *tune_view_open(struct tune_store *s, const struct tune_space *space, const struct tune_protocol *protocols,
                                 const struct tune_view_options *options)
{
    struct tune_view *v = calloc(1, sizeof *v);
    if (!v) {
        tune_view_no_memory();
        return NULL;
    }
    v->store = s;
    v->space = space;
    v->protocols = protocols;
    v->o = *options;
    if (open_view(v) == 0)
        return v;
    tune_view_free(v);
    return NULL;
}

void tune_view_free(struct tune_view *v)
{
    if (!v)
        return;
    for (int p = 0; p < v->space->reference_count; p++) {
        if (v->scans)
            tune_scan_free(v->scans[p]);
        if (v->select)
            tune_select_free(v->select[p]);
    }
    tune_matching_free(&v->m);
    tune_uids_free(&v->asked);
    free(v->scans);
    free(v->select);
    free(v->columns);
    free(v->from);
    free(v->cells);
    free(v->order);
    free(v->groups);
    free(v->excluded);
    free(v->values);
    free(v->inputs);
    free(v->text);
    free(v);
}

void tune_view_rewind(struct tune_view *v)
{
    v->at = v->excluded_at = 0;
    v->next = 0;
}

/* ---- reading ---- */

/* True if the entity in v->values is to be listed: allowed, and requested under some experiment. */
static int is_wanted(struct tune_view *v)
{
    int wanted = tune_space_allowed(v->space, v->values);
    TRY(wanted);
    if (!wanted || !v->o.where)
        return wanted;
    wanted = 0;
    for (int p = 0; p < v->space->reference_count && !wanted; p++)
        TRY(wanted = tune_view_meets(v, p, NULL));
    return wanted;
}

static int next_without(struct tune_view *v, struct tune_view_group *group)
{
    while (v->next < v->space->size) {
        tune_index at = v->next++;
        while (v->excluded_at < v->excluded_count && v->excluded[v->excluded_at] < at)
            v->excluded_at++;
        if (v->excluded_at < v->excluded_count && v->excluded[v->excluded_at] == at)
            continue;
        tune_space_entity(v->space, at, v->values);
        int wanted = is_wanted(v);
        TRY(wanted);
        if (!wanted)
            continue;
        *group = (struct tune_view_group){.entity = v->values, .protocol = -1};
        return 1;
    }
    return 0;
}

int tune_view_next(struct tune_view *v, struct tune_view_group *group)
{
    if (tune_view_of_entities(v))
        return next_without(v, group);
    if (v->at == v->group_count)
        return 0;
    const struct group *g = &v->groups[v->at++];
    const struct tune_matching_row *row = row_of(v, g, 0);
    bool goes_on = v->at > 1 && row_of(v, g - 1, 0)->entity == row->entity;
    tune_matching_values(&v->m, row->entity, v->values);
    *group = (struct tune_view_group){v->values, goes_on, row->protocol, g->count};
    return 1;
}

const struct tune_cell *tune_view_cells(struct tune_view *v, int k)
{
    return tune_view_row(v, row_of(v, &v->groups[v->at - 1], k));
}

/* ---- origins and counts ---- */

/* Number of different texts at that offset in the used origins. */
static int different(const struct tune_view *v, const bool *used, size_t offset)
{
    int count = 0;
    for (int i = 0; i < v->m.origin_count; i++) {
        bool again = !used[i];
        for (int k = 0; k < i && !again; k++)
            again = used[k] && !strcmp((const char *)&v->m.origins[i] + offset, (const char *)&v->m.origins[k] + offset);
        count += !again;
    }
    return count;
}

static const struct tune_origin *origin_of(const struct tune_view *v, const struct group *g, int k)
{
    return &v->m.origins[row_of(v, g, k)->origin];
}

static void at_least(int *most, int count)
{
    *most = count > *most ? count : *most;
}

int tune_view_mixed(const struct tune_view *v, struct tune_view_origins *o)
{
    bool *used = malloc((size_t)v->m.origin_count + 1);
    if (!used)
        return tune_view_no_memory();
    *o = (struct tune_view_origins){0};
    for (int p = 0; p < v->space->reference_count; p++) { /* count for each experiment, because its
                                                           * program has its own build */
        memset(used, 0, (size_t)v->m.origin_count + 1);
        for (int i = 0; i < v->group_count; i++)
            for (int k = 0; k < v->groups[i].count && row_of(v, &v->groups[i], 0)->protocol == p; k++)
                used[row_of(v, &v->groups[i], k)->origin] = true;
        at_least(&o->host_classes, different(v, used, offsetof(struct tune_origin, host_class)));
        at_least(&o->builds, different(v, used, offsetof(struct tune_origin, build)));
    }
    for (int i = 0; i < v->group_count; i++)
        for (int k = 1; k < v->groups[i].count; k++) {
            const struct tune_origin *a = origin_of(v, &v->groups[i], 0), *b = origin_of(v, &v->groups[i], k);
            o->weights |= strcmp(a->weights, b->weights) != 0;
            o->data |= strcmp(a->data, b->data) != 0;
        }
    free(used);
    return 0;
}

int tune_view_counted(struct tune_view *v, struct tune_view_counts *c)
{
    int all = v->space->reference_count;
    uint64_t *own = calloc((size_t)v->m.count + 1, sizeof *own);
    int code = own ? read_asked(v) : tune_view_no_memory();
    *c = (struct tune_view_counts){.matching = v->m.count};
    for (int i = 0; i < v->m.row_count && code == 0; i++) {
        const struct tune_matching_row *row = &v->m.rows[i];
        int asked = row->protocol >= 0 && row->status != TUNE_FAILED ? was_asked(v, row) : 0;
        code = asked < 0 ? -1 : 0;
        if (asked > 0)
            own[row->entity] |= UINT64_C(1) << row->protocol;
    }
    for (int i = 0; i < v->m.count && code == 0; i++) {
        int mine = __builtin_popcountll(own[i]), there = __builtin_popcountll(v->m.entities[i].measured);
        c->measured += mine > 0;
        c->measured_all += mine > 0 && mine == all;
        c->measured_partly += mine > 0 && mine < all;
        c->matching_results += there > 0;
        c->matching_all += there > 0 && there == all;
    }
    free(own);
    return code;
}

int64_t tune_view_strays(const struct tune_view *v)
{
    return v->m.strays;
}
