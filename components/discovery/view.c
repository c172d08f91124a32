/* view.c - the rows of a store that are in a space, grouped; or the entities that are not. */
#include "discovery/view.h"

#include <stdlib.h>
#include <string.h>

#include "core/cjson.h"
#include "core/error.h"
#include "core/file.h"
#include "core/try.h"
#include "discovery/results.h"

struct group {
    int first, count; /* in order[] */
};

struct tune_view {
    struct tune_store *store;
    const struct tune_space *space;
    const struct tune_protocol *protocols;
    struct tune_view_options o;
    struct tune_matching m;
    struct tune_expression **where;  /* [reference_count]; NULL: all */
    struct tune_scan **scans;        /* [reference_count], of o.columns; opened when needed */
    int *order, order_count;         /* rows of m, sorted */
    struct group *groups;
    int group_count, at;             /* the next group */
    tune_index *excluded;            /* sorted, of the views of entities without results */
    int excluded_count, excluded_at;
    tune_index next;
    struct tune_value *values, *items, *inputs;
    signed char *present;            /* [reference_count][column_count]: -1 not known yet */
    bool presence_known;
};

static int no_memory(void)
{
    tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory while the store is viewed");
    return -1;
}

/* ---- what this space's operations asked for ---- */

struct uids {
    uint8_t (*at)[16];
    int count, room;
};

static int compare_uids(const void *a, const void *b)
{
    return memcmp(a, b, 16);
}

/* The recorded operations on this space; a record that makes no sense is of none. */
static int own_operations(const struct tune_view *v, char ***own)
{
    int count, kept = 0;
    char **names = tune_store_records(v->store, "operations", &count), space[32];
    if (!names)
        return -1;
    snprintf(space, sizeof space, "space-%s", v->space->id);
    for (int i = 0; i < count; i++) {
        struct tune_operation_record r;
        char *dot = strrchr(names[i], '.');
        if (dot)
            *dot = 0;
        if (tune_operation_record_read(v->store, names[i], &r) < 0) {
            tune_error_clear();
            continue;
        }
        if (!strcmp(r.space, space) && (!v->o.operation || !strcmp(v->o.operation, r.id))) {
            char *name = names[kept];
            names[kept++] = names[i];
            names[i] = name;
        }
        tune_operation_record_free(&r);
    }
    for (int i = kept; i < count; i++) {
        free(names[i]);
        names[i] = NULL;
    }
    *own = names;
    return kept;
}

static int requested(const struct tune_view *v, struct uids *u)
{
    const char *names[] = {tune_request_column(TUNE_REQUEST_OPERATION)->name, tune_request_column(TUNE_REQUEST_UID)->name};
    const struct tune_cell *cells;
    char **own = NULL;
    int count = own_operations(v, &own), more = count < 0 ? -1 : 0;
    struct tune_scan *scan = more < 0 ? NULL : tune_scan_open(v->store, "requests", names, 2);
    while (scan && (more = tune_scan_next(scan, &cells)) == 1) {
        bool mine = false;
        for (int i = 0; i < count && !mine; i++)
            mine = !strcmp(own[i], cells[0].text);
        if (!mine || cells[1].absent)
            continue;
        if (u->count == u->room) {
            void *grown = realloc(u->at, (size_t)(2 * u->room + 64) * sizeof *u->at);
            if (!grown) {
                more = no_memory();
                break;
            }
            u->at = grown;
            u->room = 2 * u->room + 64;
        }
        tune_uid_read(u->at[u->count++], cells[1].text);
    }
    if (count >= 0 && !scan)
        more = -1;
    tune_scan_free(scan);
    if (own)
        tune_store_records_free(own, count < 0 ? 0 : count);
    if (u->count > 0)
        qsort(u->at, (size_t)u->count, sizeof *u->at, compare_uids);
    return more;
}

/* ---- groups ---- */

static int compile_where(struct tune_view *v)
{
    if (!v->o.where)
        return 0;
    if (!(v->where = calloc((size_t)v->space->reference_count + 1, sizeof *v->where)))
        return no_memory();
    for (int p = 0; p < v->space->reference_count; p++) {
        const struct tune_experiment *e = v->protocols[p].experiment;
        if (!(v->where[p] = tune_expression_new(v->o.where, e->names, e->input_count, "--where")))
            return -1;
    }
    return 0;
}

static int meets(struct tune_view *v, const struct tune_matching_row *row)
{
    if (!v->where)
        return 1;
    tune_matching_values(&v->m, row->entity, v->values, v->items);
    tune_protocol_inputs(&v->protocols[row->protocol], v->values, v->inputs);
    return tune_expression_true(v->where[row->protocol], v->inputs);
}

static int compare_rows(const void *a, const void *b, void *context)
{
    const struct tune_matching_row *rows = context, *x = &rows[*(const int *)a], *y = &rows[*(const int *)b];
    if (x->entity != y->entity)
        return x->entity < y->entity ? -1 : 1;
    if (x->protocol != y->protocol)
        return x->protocol < y->protocol ? -1 : 1;
    return x < y ? -1 : x > y;
}

static int make_groups(struct tune_view *v, const struct uids *u)
{
    v->order = malloc((size_t)(v->m.row_count + 1) * sizeof *v->order);
    v->groups = malloc((size_t)(v->m.row_count + 1) * sizeof *v->groups);
    if (!v->order || !v->groups)
        return no_memory();
    for (int i = 0; i < v->m.row_count; i++) {
        const struct tune_matching_row *row = &v->m.rows[i];
        int good = row->protocol >= 0 && (v->o.failed || row->status != TUNE_FAILED) &&
                   (!u || (u->count > 0 && bsearch(row->uid, u->at, (size_t)u->count, sizeof *u->at, compare_uids)));
        if (good)
            TRY(good = meets(v, row));
        if (good)
            v->order[v->order_count++] = i;
    }
    qsort_r(v->order, (size_t)v->order_count, sizeof *v->order, compare_rows, v->m.rows);
    for (int i = 0; i < v->order_count; i++) {
        const struct tune_matching_row *row = &v->m.rows[v->order[i]], *before = i ? &v->m.rows[v->order[i - 1]] : NULL;
        if (!before || before->entity != row->entity || before->protocol != row->protocol)
            v->groups[v->group_count++] = (struct group){i, 0};
        v->groups[v->group_count - 1].count++;
    }
    return 0;
}

static int compare_indices(const void *a, const void *b)
{
    tune_index x = *(const tune_index *)a, y = *(const tune_index *)b;
    return (x > y) - (x < y);
}

/* The entities of groups are what missing and unmeasured leave out. */
static int make_excluded(struct tune_view *v)
{
    if (!(v->excluded = malloc((size_t)(v->group_count + 1) * sizeof *v->excluded)))
        return no_memory();
    for (int i = 0; i < v->group_count; i++)
        v->excluded[v->excluded_count++] = v->m.entities[v->m.rows[v->order[v->groups[i].first]].entity].index;
    qsort(v->excluded, (size_t)v->excluded_count, sizeof *v->excluded, compare_indices);
    return 0;
}

static bool of_entities(const struct tune_view *v)
{
    return v->o.include == TUNE_VIEW_MISSING || v->o.include == TUNE_VIEW_UNMEASURED;
}

static int open_view(struct tune_view *v)
{
    const struct tune_space *s = v->space;
    struct uids u = {0};
    int most = 1;
    bool own = v->o.include == TUNE_VIEW_MEASURED || v->o.include == TUNE_VIEW_UNMEASURED;
    for (int p = 0; p < s->reference_count; p++)
        if (v->protocols[p].experiment->input_count > most)
            most = v->protocols[p].experiment->input_count;
    if (!(v->values = calloc((size_t)s->count + 1, sizeof *v->values)) || !(v->items = calloc((size_t)s->items + 1, sizeof *v->items)) ||
        !(v->inputs = calloc((size_t)most, sizeof *v->inputs)) || !(v->scans = calloc((size_t)s->reference_count + 1, sizeof *v->scans)) ||
        !(v->present = malloc((size_t)(s->reference_count * v->o.column_count) + 1)))
        return no_memory();
    if (of_entities(v) && (s->size == 0 || s->size == TUNE_INDEX_MAX)) {
        tune_error_set_kind(TUNE_ERROR_USAGE, "%s: what is missing of a space that cannot be counted cannot be listed",
                            s->document->path);
        return -1;
    }
    TRY(compile_where(v));
    TRY(tune_matching_read(&v->m, v->store, s, v->protocols, s->reference_count));
    int code = own ? requested(v, &u) : 0;
    if (code == 0)
        code = make_groups(v, own ? &u : NULL);
    free(u.at);
    TRY(code);
    return of_entities(v) ? make_excluded(v) : 0;
}

struct tune_view *tune_view_open(struct tune_store *s, const struct tune_space *space, const struct tune_protocol *protocols,
                                 const struct tune_view_options *options)
{
    struct tune_view *v = calloc(1, sizeof *v);
    if (!v) {
        no_memory();
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
        if (v->where)
            tune_expression_free(v->where[p]);
    }
    tune_matching_free(&v->m);
    free(v->scans);
    free(v->where);
    free(v->order);
    free(v->groups);
    free(v->excluded);
    free(v->values);
    free(v->items);
    free(v->inputs);
    free(v->present);
    free(v);
}

int tune_view_count(const struct tune_view *v)
{
    return v->group_count;
}

void tune_view_rewind(struct tune_view *v)
{
    v->at = v->excluded_at = 0;
    v->next = 0;
}

/* ---- going through ---- */

static int next_without(struct tune_view *v, struct tune_view_group *group)
{
    for (; v->next < v->space->size; v->next++) {
        while (v->excluded_at < v->excluded_count && v->excluded[v->excluded_at] < v->next)
            v->excluded_at++;
        if (v->excluded_at < v->excluded_count && v->excluded[v->excluded_at] == v->next)
            continue;
        tune_space_entity(v->space, v->next, v->values, v->items);
        int allowed = tune_space_allowed(v->space, v->values);
        TRY(allowed);
        if (!allowed)
            continue;
        v->next++;
        *group = (struct tune_view_group){.entity = v->values, .protocol = -1};
        return 1;
    }
    return 0;
}

int tune_view_next(struct tune_view *v, struct tune_view_group *group)
{
    if (of_entities(v))
        return next_without(v, group);
    if (v->at == v->group_count)
        return 0;
    const struct group *g = &v->groups[v->at++];
    const struct tune_matching_row *row = &v->m.rows[v->order[g->first]];
    tune_matching_values(&v->m, row->entity, v->values, v->items);
    *group = (struct tune_view_group){v->values, row->protocol, g->count};
    return 1;
}

/* The scan of the protocol's table; protocols of one experiment have one each. */
static struct tune_scan *scan_of(struct tune_view *v, int protocol)
{
    if (!v->scans[protocol])
        v->scans[protocol] = tune_scan_open(v->store, v->protocols[protocol].experiment->name, v->o.columns, v->o.column_count);
    return v->scans[protocol];
}

static const struct tune_cell *cells_of(struct tune_view *v, const struct tune_matching_row *row)
{
    const struct tune_cell *cells;
    struct tune_scan *scan = scan_of(v, row->protocol);
    return scan && tune_scan_at(scan, row->place, &cells) == 0 ? cells : NULL;
}

const struct tune_cell *tune_view_cell(struct tune_view *v, int k, int i)
{
    const struct tune_cell *cells = cells_of(v, &v->m.rows[v->order[v->groups[v->at - 1].first + k]]);
    return cells ? &cells[i] : NULL;
}

/* All rows are looked through once, until every column was seen with a value. */
static int look_for_values(struct tune_view *v)
{
    int columns = v->o.column_count, left = v->space->reference_count * columns;
    memset(v->present, 0, (size_t)left);
    for (int i = 0; i < v->order_count && left > 0; i++) {
        const struct tune_matching_row *row = &v->m.rows[v->order[i]];
        signed char *present = v->present + row->protocol * columns;
        if (!memchr(present, 0, (size_t)columns))
            continue;
        const struct tune_cell *cells = cells_of(v, row);
        if (!cells)
            return -1;
        for (int c = 0; c < columns; c++)
            if (!present[c] && !cells[c].absent) {
                present[c] = 1;
                left--;
            }
    }
    v->presence_known = true;
    return 0;
}

int tune_view_present(struct tune_view *v, int protocol, int i)
{
    if (!v->presence_known)
        TRY(look_for_values(v));
    for (int p = 0; p < v->space->reference_count; p++)
        if ((protocol < 0 || p == protocol) && v->present[p * v->o.column_count + i])
            return 1;
    return 0;
}

/* ---- origins ---- */

static int different(char ***texts, int *count, const char *text)
{
    for (int i = 0; i < *count; i++)
        if (!strcmp((*texts)[i], text))
            return 0;
    void *grown = realloc(*texts, (size_t)(*count + 1) * sizeof **texts);
    if (!grown)
        return no_memory();
    *texts = grown;
    if (!((*texts)[*count] = strdup(text)))
        return no_memory();
    ++*count;
    return 0;
}

int tune_view_mixed(struct tune_view *v, struct tune_view_origins *origins)
{
    static const enum tune_key keys[] = {TUNE_KEY_HOST_CLASS, TUNE_KEY_BUILD, TUNE_KEY_WEIGHTS, TUNE_KEY_DATA};
    int *const counts[] = {&origins->host_classes, &origins->builds, &origins->weights, &origins->data};
    const char *names[4];
    char **texts[4] = {NULL};
    const struct tune_cell *cells;
    int code = 0;
    *origins = (struct tune_view_origins){0};
    for (int i = 0; i < 4; i++)
        names[i] = tune_key_column(keys[i])->name;
    for (int p = 0; p < v->space->reference_count && code == 0; p++) {
        struct tune_scan *scan = v->order_count ? tune_scan_open(v->store, v->protocols[p].experiment->name, names, 4) : NULL;
        if (v->order_count && !scan)
            code = -1;
        for (int i = 0; i < v->order_count && code == 0; i++) {
            const struct tune_matching_row *row = &v->m.rows[v->order[i]];
            if (row->protocol != p)
                continue;
            code = tune_scan_at(scan, row->place, &cells);
            for (int k = 0; k < 4 && code == 0; k++)
                if (!cells[k].absent)
                    code = different(&texts[k], counts[k], cells[k].text);
        }
        tune_scan_free(scan);
    }
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < *counts[k]; i++)
            free(texts[k][i]);
        free(texts[k]);
    }
    return code;
}
