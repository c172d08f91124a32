/* chosen.c - select rows from all tables of a store. */
#include "sweeps/discovery/chosen.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/pool.h"
#include "core/print.h"
#include "core/try.h"
#include "sweeps/discovery/results.h"
#include "sweeps/discovery/rows.h"
#include "sweeps/discovery/select.h"
#include "sweeps/discovery/uids.h"

/* One table of the store. */
struct chosen_table {
    const char *name;
    const char **names;                   /* [count] names of the columns */
    int count;
    const struct tune_experiment *experiment; /* NULL: unknown */
    struct tune_select *select;           /* NULL: no `where`; it may fail to compile for this table */
    struct tune_value *values;            /* [count] */
};

struct tune_chosen {
    struct tune_store *store;
    struct tune_chosen_options o;
    struct chosen_table *tables;          /* [table_count] in the store's order */
    int table_count, last;                /* last: the table of the last row */
    struct tune_uids asked, answered;     /* asked: o.uids; answered: uids in the operation's requests */
    bool *found;                          /* [o.uid_count] */
    char lacks[512];
    const char **uids;                    /* [uid_count] uids of chosen rows */
    int64_t uid_count;
    struct tune_chosen_group *groups;
    int group_count;
    struct tune_pool *memory;
};

static int no_memory(void)
{
    return tune_error_cannot("out of memory while rows are chosen");
}

/* ---- preparation ---- */

static int open_table(struct tune_chosen *c, struct chosen_table *t, const char *name, const struct tune_catalog *catalog)
{
    const struct tune_column *columns = tune_store_columns(c->store, name, &t->count);
    int measured = 0;
    TRY(columns ? 0 : -1);
    t->name = name;
    t->experiment = catalog ? tune_catalog_known(catalog, NULL, name) : NULL;
    t->names = tune_pool_take(&c->memory, (size_t)t->count * sizeof *t->names);
    t->values = tune_pool_take(&c->memory, (size_t)t->count * sizeof *t->values);
    if (!t->names || !t->values)
        return no_memory();
    for (int i = 0; i < t->count; i++) {
        t->names[i] = columns[i].name;
        measured += columns[i].role != TUNE_COLUMN_TARGET;
    }
    if (c->o.where && !(t->select = tune_select_new(t->names, t->count, measured, c->o.where, NULL, 0)))
        return -1;
    return 0;
}

/* Compile `where` for each table. It must compile for at least one; else the error is that of the
 * last table. */
static int open_tables(struct tune_chosen *c, const struct tune_catalog *catalog)
{
    int count, fits = 0;
    const char *const *names = tune_store_tables(c->store, &count);
    TRY(names ? 0 : -1);
    if (!(c->tables = calloc((size_t)count + 1, sizeof *c->tables)))
        return no_memory();
    for (; c->table_count < count; c->table_count++) {
        struct chosen_table *t = &c->tables[c->table_count];
        int status = open_table(c, t, names[c->table_count], catalog);
        if (status < 0) {
            tune_select_free(t->select);
            return -1;
        }
        if (!t->select || tune_select_compiled(t->select, -1))
            fits++;
        else
            tune_append_item(c->lacks, sizeof c->lacks, "%s", t->name);
    }
    if (fits == 0 && count > 0)
        return -1;
    tune_error_clear();
    return 0;
}

static int read_requests(struct tune_chosen *c)
{
    return c->o.operation ? tune_operation_uids(c->store, c->o.operation, &c->answered) : 0;
}

static int read_uids(struct tune_chosen *c)
{
    uint8_t uid[16];
    if (!(c->found = calloc((size_t)c->o.uid_count + 1, sizeof *c->found)))
        return no_memory();
    for (int i = 0; i < c->o.uid_count; i++) {
        const char *text = c->o.uids[i];
        if (strlen(text) != 32 || strspn(text, "0123456789abcdef") != 32)
            return tune_error_usage("\"%.60s\" is not the uid of a row: expected 32 hexadecimal "
                                    "digits", text);
        tune_uid_read(uid, text);
        TRY(tune_uids_add(&c->asked, uid, (uint64_t)i));
    }
    tune_uids_sort(&c->asked);
    return 0;
}

struct tune_chosen *tune_chosen_new(struct tune_store *s, const struct tune_catalog *catalog, const struct tune_chosen_options *o)
{
    struct tune_chosen *c = calloc(1, sizeof *c);
    if (!c) {
        no_memory();
        return NULL;
    }
    c->store = s;
    c->o = *o;
    if (open_tables(c, catalog) == 0 && read_requests(c) == 0 && read_uids(c) == 0)
        return c;
    tune_chosen_free(c);
    return NULL;
}

void tune_chosen_free(struct tune_chosen *c)
{
    if (!c)
        return;
    for (int i = 0; i < c->table_count; i++)
        tune_select_free(c->tables[i].select);
    free(c->tables);
    tune_uids_free(&c->asked);
    tune_uids_free(&c->answered);
    free(c->found);
    free(c->uids);
    free(c->groups);
    tune_pool_free(c->memory);
    free(c);
}

const char *tune_chosen_lacks(const struct tune_chosen *c)
{
    return c->lacks;
}

/* ---- rows ---- */

static struct chosen_table *find_table(struct tune_chosen *c, const char *name)
{
    for (int i = 0; i < c->table_count; i++) {
        int k = (c->last + i) % c->table_count;
        if (!strcmp(c->tables[k].name, name)) {
            c->last = k;
            return &c->tables[k];
        }
    }
    return NULL;
}

static int meets(const struct chosen_table *t, const struct tune_column *columns, const struct tune_cell *cells)
{
    for (int i = 0; t->select && i < t->count; i++)
        if (tune_select_uses(t->select, i))
            t->values[i] = tune_rows_read(t->experiment, &columns[i], &cells[i]);
    return t->select ? tune_select_row(t->select, t->values) : 1;
}

int tune_chosen_row(void *chosen, const char *experiment, const struct tune_column *columns, int count, const struct tune_cell *cells)
{
    struct tune_chosen *c = chosen;
    const struct chosen_table *t = find_table(c, experiment);
    uint64_t asked;
    uint8_t uid[16];
    if (!t || t->count != count)
        return tune_error_set("%s: the table %s was changed while it was read; try again",
                              tune_store_folder(c->store), experiment);
    tune_uid_read(uid, cells[TUNE_KEY_UID].text);
    if (c->o.operation && strcmp(cells[TUNE_KEY_OPERATION].text, c->o.operation) && !tune_uids_has(&c->answered, uid))
        return 0;
    if (c->o.uid_count > 0 && !tune_uids_first(&c->asked, uid, &asked))
        return 0;
    if (c->o.uid_count > 0)
        c->found[asked] = true;
    return meets(t, columns, cells);
}

static int add_group(struct tune_chosen *c, const char *experiment, const char *operation)
{
    int i = c->group_count - 1;
    while (i >= 0 && (strcmp(c->groups[i].operation, operation) || strcmp(c->groups[i].experiment, experiment)))
        i--;
    if (i < 0) {
        i = c->group_count;
        if (!tune_array_fit(&c->groups, (size_t)i, sizeof *c->groups))
            return no_memory();
        c->groups[i] = (struct tune_chosen_group){tune_pool_text(&c->memory, experiment, strlen(experiment)),
                                                  tune_pool_text(&c->memory, operation, strlen(operation)), 0};
        if (!c->groups[i].experiment || !c->groups[i].operation)
            return no_memory();
        c->group_count++;
    }
    c->groups[i].rows++;
    return 0;
}

static int take_row(struct tune_chosen *c, const char *experiment, const struct tune_cell *cells)
{
    const char *uid = cells[TUNE_KEY_UID].text;
    if (!tune_array_fit(&c->uids, (size_t)c->uid_count, sizeof *c->uids) ||
        !(c->uids[c->uid_count] = tune_pool_text(&c->memory, uid, strlen(uid))))
        return no_memory();
    c->uid_count++;
    return add_group(c, experiment, cells[TUNE_KEY_OPERATION].text);
}

static int collect_table(struct tune_chosen *c, const struct chosen_table *t)
{
    int count, more = -1, wanted;
    const struct tune_cell *cells;
    const struct tune_column *columns = tune_store_columns(c->store, t->name, &count);
    struct tune_scan *scan = columns ? tune_scan_open(c->store, t->name, t->names, t->count) : NULL;
    while (scan && (more = tune_scan_next(scan, &cells)) == 1) {
        wanted = *cells[TUNE_KEY_UID].text ? tune_chosen_row(c, t->name, columns, count, cells) : 0;
        if (wanted < 0 || (wanted && take_row(c, t->name, cells) < 0)) {
            more = -1;
            break;
        }
    }
    tune_scan_free(scan);
    return more;
}

int64_t tune_chosen_collect(struct tune_chosen *c)
{
    c->uid_count = 0;
    c->group_count = 0;
    for (int i = 0; i < c->table_count; i++)
        TRY(collect_table(c, &c->tables[i]));
    for (int i = 0; i < c->o.uid_count; i++) {
        uint8_t uid[16];
        uint64_t first = 0;
        tune_uid_read(uid, c->o.uids[i]);
        tune_uids_first(&c->asked, uid, &first); /* a uid may be given twice */
        if (!c->found[first])
            return tune_error_usage("%s has no row with the uid %s, or this row is forgotten "
                                    "already", tune_store_folder(c->store), c->o.uids[i]);
    }
    return c->uid_count;
}

const char *const *tune_chosen_uids(const struct tune_chosen *c)
{
    return c->uids;
}

const struct tune_chosen_group *tune_chosen_groups(const struct tune_chosen *c, int *count)
{
    *count = c->group_count;
    return c->groups;
}
