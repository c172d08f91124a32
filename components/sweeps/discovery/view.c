/* view.c - read the rows of a store that belong to a space, in groups. */
#include "sweeps/discovery/view_parts.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/print.h"
#include "core/try.h"
#include "sweeps/discovery/results.h"

int tune_view_no_memory(void)
{
    return tune_error_cannot("out of memory while the store is viewed");
}

/* ---- requests of this space's operations ---- */

char **tune_view_operations(struct tune_store *s, const struct tune_space *space, int *count)
{
    int all, left = 0;
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
            names[left++] = names[i];
        else
            free(names[i]);
    }
    for (int i = left; names && i < all; i++)
        names[i] = NULL;
    *count = left;
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

/* Hash the identifier of an entity, as in requests. */
static int hash_entity(struct tune_view *v, int entity, uint64_t *hash)
{
    const struct tune_space *s = v->space;
    tune_matching_values(&v->m, entity, v->values);
    int length = tune_entity_to_string(s->names, v->values, s->count, &v->text, &v->text_size);
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
    if (x->binding != y->binding)
        return x->binding < y->binding ? -1 : 1;
    return x < y ? -1 : x > y;
}

static bool is_result(const struct tune_view *v, const struct tune_matching_row *row)
{
    return row->binding >= 0 && (v->o.failed || row->status != TUNE_FAILED) && (!v->o.valid || row->status == TUNE_VALID);
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
        if (!before || before->entity != row->entity || before->binding != row->binding)
            v->groups[v->group_count++] = (struct group){i, 0};
        v->groups[v->group_count - 1].count++;
    }
    return 0;
}

static const struct tune_matching_row *row_of(const struct tune_view *v, const struct group *g, int k)
{
    return &v->m.rows[v->order[g->first + k]];
}

/* Keep the wanted results of a group. If `where` uses only inputs, it is evaluated once. */
static int choose_results(struct tune_view *v, struct group *g)
{
    int p = row_of(v, g, 0)->binding, left = 0;
    bool by_inputs = tune_select_by_inputs(v->select[p]);
    tune_matching_values(&v->m, row_of(v, g, 0)->entity, v->values);
    for (int k = 0; k < g->count; k++) {
        const struct tune_cell *cells = by_inputs ? NULL : tune_view_read(v, row_of(v, g, k));
        int good = by_inputs || cells ? tune_view_meets(v, p, cells) : -1;
        TRY(good);
        if (by_inputs) {
            left = good ? g->count : 0;
            break;
        }
        if (good)
            v->order[g->first + left++] = v->order[g->first + k];
    }
    g->count = left;
    return 0;
}

/* Remove groups without a wanted result. */
static int filter_groups(struct tune_view *v)
{
    int left = 0;
    for (int i = 0; v->o.where && i < v->group_count; i++) {
        TRY(choose_results(v, &v->groups[i]));
        if (v->groups[i].count > 0)
            v->groups[left++] = v->groups[i];
    }
    v->group_count = v->o.where ? left : v->group_count;
    return 0;
}

/* ---- the chosen build ---- */

/* A build of an experiment: its last start, and its number of results. */
struct build {
    const char *id;
    double started;
    int64_t results;
};

/* True if the expression contains this name, quoted or not. */
static bool names(const char *where, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = where; at && (at = strstr(at, name)); at++)
        if ((at == where || !(isalnum((unsigned char)at[-1]) || at[-1] == '_')) && !(isalnum((unsigned char)at[n]) || at[n] == '_'))
            return true;
    return false;
}

static const struct tune_experiment *experiment_of(const struct tune_view *v, const struct group *g)
{
    return v->bindings[row_of(v, g, 0)->binding].experiment;
}

/* List the builds of an experiment's results in builds[provenance_count]. Returns their number. */
static int list_builds(const struct tune_view *v, const struct tune_experiment *e, struct build *builds)
{
    int count = 0;
    for (int g = 0; g < v->group_count; g++)
        for (int k = 0; k < v->groups[g].count && experiment_of(v, &v->groups[g]) == e; k++) {
            int provenance = row_of(v, &v->groups[g], k)->provenance, i = 0;
            while (i < count && strcmp(builds[i].id, v->m.provenances[provenance].build))
                i++;
            if (i == count)
                builds[count++] = (struct build){.id = v->m.provenances[provenance].build};
            builds[i].results++;
            builds[i].started = fmax(builds[i].started, v->m.provenance_started[provenance]);
        }
    return count;
}

static int latest_first(const void *a, const void *b)
{
    const struct build *x = a, *y = b;
    return (x->started < y->started) - (x->started > y->started);
}

/* True if this is the wanted build. at: its index, latest first. */
static bool is_wanted(const char *wanted, const struct build *b, int at)
{
    if (!strcmp(wanted, "last") || !strcmp(wanted, "previous"))
        return at == (*wanted == 'p');
    return !strncmp(b->id, wanted, strlen(wanted));
}

/* Keep only the results of one build in the groups of an experiment. id: the build; NULL: keep
 * none. whole: id is complete, else the beginning of an id. */
static void filter_builds(struct tune_view *v, const struct tune_experiment *e, const char *id, bool whole)
{
    for (int g = 0; g < v->group_count; g++) {
        struct group *group = &v->groups[g];
        int left = 0;
        if (experiment_of(v, group) != e)
            continue;
        for (int k = 0; k < group->count; k++) {
            const char *build = v->m.provenances[row_of(v, group, k)->provenance].build;
            if (id && (whole ? !strcmp(build, id) : !strncmp(build, id, strlen(id))))
                v->order[group->first + left++] = v->order[group->first + k];
        }
        group->count = left;
    }
}

/* Choose the build for the experiment of binding p, and for all bindings with this experiment. */
static void choose_build(struct tune_view *v, int p, struct build *builds)
{
    const struct tune_experiment *e = v->bindings[p].experiment;
    struct tune_view_build chosen = {.builds = list_builds(v, e, builds)};
    const char *wanted = v->o.build, *id = NULL;
    qsort(builds, (size_t)chosen.builds, sizeof *builds, latest_first);
    for (int i = 0; i < chosen.builds; i++) {
        bool mine = is_wanted(wanted, &builds[i], i);
        *(mine ? &chosen.results : &chosen.left_out) += builds[i].results;
        double *started = mine ? &chosen.started_s : &chosen.others_s;
        *started = fmax(*started, builds[i].started);
        chosen.chosen += mine;
        if (mine)
            id = id && strcmp(id, builds[i].id) ? "" : builds[i].id;
    }
    snprintf(chosen.id, sizeof chosen.id, "%s", id ? id : "");
    for (int q = p; q < v->space->reference_count; q++)
        if (v->bindings[q].experiment == e)
            v->builds[q] = chosen;
    bool by_order = !strcmp(wanted, "last") || !strcmp(wanted, "previous");
    if (chosen.left_out > 0)
        filter_builds(v, e, by_order ? id : wanted, by_order);
}

/* Remove the results of builds that are not wanted. */
static int choose_builds(struct tune_view *v)
{
    const char *wanted = v->o.build;
    bool by_order = wanted && (!strcmp(wanted, "last") || !strcmp(wanted, "previous"));
    int64_t results = 0, left_out = 0;
    if (!wanted || !strcmp(wanted, "all") || (by_order && (names(v->o.where, "build") || names(v->o.where, "build_id"))))
        return 0;
    struct build *builds = calloc((size_t)v->m.provenance_count + 1, sizeof *builds);
    if (!builds)
        return tune_view_no_memory();
    for (int p = 0; p < v->space->reference_count; p++)
        if (tune_binding_is_first(v->bindings, p)) {
            choose_build(v, p, builds);
            results += v->builds[p].results;
            left_out += v->builds[p].left_out;
        }
    free(builds);
    if (results == 0 && left_out > 0 && strcmp(wanted, "last"))
        return tune_error_usage(by_order ? "there is no %s build: all %lld results are from the "
                                           "last build"
                                         : "no result is from a build whose id begins with %s; "
                                           "`build` must be last, previous, all, or the beginning "
                                           "of the build id of one of %lld other results", wanted,
                                         (long long)left_out);
    int left = 0;
    for (int g = 0; g < v->group_count; g++)
        if (v->groups[g].count > 0)
            v->groups[left++] = v->groups[g];
    v->group_count = left;
    return 0;
}

/* Read the lookup table for each binding. It is an error if it fits none of them. */
static int read_lookups(struct tune_view *v)
{
    int found = 0;
    if (!(v->lookups = calloc((size_t)v->space->reference_count + 1, sizeof *v->lookups)))
        return tune_view_no_memory();
    for (int p = 0; p < v->space->reference_count && v->o.table; p++) {
        const struct tune_binding *binding = &v->bindings[p];
        const char **inputs = calloc((size_t)(binding->experiment->input_count + v->space->count) + 1, sizeof *inputs);
        if (!inputs)
            return tune_view_no_memory();
        bool fits;
        v->lookups[p] = tune_lookup_read(v->o.table, inputs, tune_binding_names(binding, v->space, inputs), &fits);
        free(inputs);
        if (!v->lookups[p] && fits)
            return -1;
        found += v->lookups[p] != NULL;
    }
    if (v->o.table && found == 0)
        return -1;
    tune_error_clear();
    return 0;
}

static int open_view(struct tune_view *v)
{
    const struct tune_space *s = v->space;
    int most = 0, targets = 0, looked_up = 0;
    TRY(read_lookups(v));
    bool own = v->o.include == TUNE_VIEW_MEASURED;
    for (int p = 0; p < s->reference_count; p++) {
        const struct tune_experiment *e = v->bindings[p].experiment;
        most = e->input_count + e->target_count > most ? e->input_count + e->target_count : most;
        targets += e->target_count + TUNE_FACTS;
        if (v->lookups[p] && v->lookups[p]->count > looked_up)
            looked_up = v->lookups[p]->count;
    }
    most += s->count + v->o.derived_count + TUNE_FACTS + looked_up + 1;
    v->text_size = 512;
    const char **all_names = calloc((size_t)most, sizeof *all_names);
    if (!all_names || !(v->values = calloc((size_t)s->count + 1, sizeof *v->values)) ||
        !(v->inputs = calloc((size_t)most, sizeof *v->inputs)) ||
        !(v->scans = calloc((size_t)s->reference_count + 1, sizeof *v->scans)) ||
        !(v->facts = calloc((size_t)s->reference_count + 1, sizeof *v->facts)) ||
        !(v->builds = calloc((size_t)s->reference_count + 1, sizeof *v->builds)) ||
        !(v->text = malloc(v->text_size))) {
        free(all_names);
        return tune_view_no_memory();
    }
    int code = tune_view_choose(v, all_names, targets);
    free(all_names);
    TRY(code);
    TRY(tune_matching_read(&v->m, v->store, s, v->bindings, s->reference_count));
    if (own)
        TRY(read_asked(v));
    TRY(choose_rows(v, own));
    TRY(make_groups(v));
    TRY(choose_builds(v));
    return filter_groups(v);
}

struct tune_view *tune_view_open(struct tune_store *s, const struct tune_space *space, const struct tune_binding *bindings,
                                 const struct tune_view_options *options)
{
    struct tune_view *v = calloc(1, sizeof *v);
    if (!v) {
        tune_view_no_memory();
        return NULL;
    }
    v->store = s;
    v->space = space;
    v->bindings = bindings;
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
        if (v->lookups)
            tune_lookup_free(v->lookups[p]);
    }
    tune_matching_free(&v->m);
    tune_uids_free(&v->asked);
    free(v->scans);
    free(v->select);
    free(v->lookups);
    free(v->columns);
    free(v->from);
    free(v->cells);
    free(v->order);
    free(v->groups);
    free(v->builds);
    free(v->facts);
    free(v->values);
    free(v->inputs);
    free(v->text);
    free(v);
}

void tune_view_rewind(struct tune_view *v)
{
    v->at = 0;
}

/* ---- reading ---- */

int tune_view_next(struct tune_view *v, struct tune_view_group *group)
{
    if (v->at == v->group_count)
        return 0;
    const struct group *g = &v->groups[v->at++];
    const struct tune_matching_row *row = row_of(v, g, 0);
    tune_matching_values(&v->m, row->entity, v->values);
    *group = (struct tune_view_group){v->values, row->binding, g->count};
    return 1;
}

const struct tune_cell *tune_view_cells(struct tune_view *v, int k)
{
    return tune_view_row(v, row_of(v, &v->groups[v->at - 1], k));
}

const char *tune_view_missed(const struct tune_view *v, char *text, size_t size)
{
    *text = 0;
    for (int p = 0; p < v->space->reference_count && v->o.table; p++) {
        char missed[512];
        if (v->lookups[p])
            tune_lookup_missed(v->lookups[p], missed, sizeof missed);
        else
            snprintf(missed, sizeof missed, "%s has no column named like an input of %s, so its columns are empty for that experiment",
                     v->o.table, v->bindings[p].experiment->name);
        if (*missed && !strstr(text, missed))
            tune_append(text, size, "%s%s", *text ? "; " : "", missed);
    }
    return text;
}

/* ---- provenances and counts ---- */

const struct tune_view_build *tune_view_build_of(const struct tune_view *v, int p)
{
    return &v->builds[p];
}

/* Count the distinct texts at this offset in the used provenances. */
static int different(const struct tune_view *v, const bool *used, size_t offset)
{
    int count = 0;
    for (int i = 0; i < v->m.provenance_count; i++) {
        bool again = !used[i];
        for (int k = 0; k < i && !again; k++)
            again = used[k] && !strcmp((const char *)&v->m.provenances[i] + offset, (const char *)&v->m.provenances[k] + offset);
        count += !again;
    }
    return count;
}

static const struct tune_provenance *provenance_of(const struct tune_view *v, const struct group *g, int k)
{
    return &v->m.provenances[row_of(v, g, k)->provenance];
}

static void at_least(int *most, int count)
{
    *most = count > *most ? count : *most;
}

int tune_view_mixed(const struct tune_view *v, struct tune_view_provenances *o)
{
    bool *used = malloc((size_t)v->m.provenance_count + 1);
    if (!used)
        return tune_view_no_memory();
    *o = (struct tune_view_provenances){0};
    /* count for each experiment, because each program has its own build */
    for (int p = 0; p < v->space->reference_count; p++) {
        memset(used, 0, (size_t)v->m.provenance_count + 1);
        for (int i = 0; i < v->group_count; i++)
            for (int k = 0; k < v->groups[i].count && row_of(v, &v->groups[i], 0)->binding == p; k++)
                used[row_of(v, &v->groups[i], k)->provenance] = true;
        at_least(&o->host_classes, different(v, used, offsetof(struct tune_provenance, host_class)));
        at_least(&o->builds, different(v, used, offsetof(struct tune_provenance, build)));
    }
    for (int i = 0; i < v->group_count; i++)
        for (int k = 1; k < v->groups[i].count; k++) {
            const struct tune_provenance *a = provenance_of(v, &v->groups[i], 0), *b = provenance_of(v, &v->groups[i], k);
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
        int asked = row->binding >= 0 && row->status != TUNE_FAILED ? was_asked(v, row) : 0;
        code = asked < 0 ? -1 : 0;
        if (asked > 0)
            own[row->entity] |= UINT64_C(1) << row->binding;
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
