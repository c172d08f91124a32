/* model_dry.c - a dry run of --order model. It writes no rows, so the model gets the results of known
 * points here. */
#include "sweep.h"

/* Results of the experiment in the store. */
struct model_dry {
    struct tune_uids uids; /* with an index */
    struct dry_row {
        double values[TUNE_SEARCH_VALUES];
        bool valid;
    } *rows;
    size_t count;
};

void model_dry_free(struct model_dry *dry)
{
    if (!dry)
        return;
    tune_uids_free(&dry->uids);
    free(dry->rows);
    free(dry);
}

static int add_stored(struct model_dry *dry, const struct model_order *m, const struct tune_cell *cells)
{
    uint8_t uid[16];
    struct dry_row row = {0};
    tune_uid_read(uid, cells[m->column_count].text);
    row.valid = model_row_values(m, cells, row.values);
    if (!tune_array_fit(&dry->rows, dry->count, sizeof *dry->rows) || tune_uids_add(&dry->uids, uid, dry->count) < 0)
        return no_memory();
    dry->rows[dry->count++] = row;
    return 0;
}

static int read_store(const struct plan *plan, const struct model_order *m, struct model_dry *dry)
{
    const char *table = plan->bindings->experiment->name, *names[MODEL_COLUMNS + 1];
    const struct tune_cell *cells;
    int more;
    if (!tune_store_has(plan->store, table))
        return 0;
    memcpy(names, m->columns, sizeof m->columns);
    names[m->column_count] = tune_key_column(TUNE_KEY_UID)->name;
    struct tune_scan *scan = tune_scan_open(plan->store, table, names, m->column_count + 1);
    while ((more = tune_scan_next(scan, &cells)) == 1)
        if (add_stored(dry, m, cells) < 0) {
            more = -1;
            break;
        }
    tune_scan_free(scan);
    tune_uids_sort(&dry->uids);
    return more;
}

int model_dry_job(const struct plan *plan, struct model_order *m, const struct tune_job *job)
{
    static const double none[TUNE_SEARCH_VALUES] = {0};
    if (!m->search)
        return 0;
    if (job->kind == TUNE_JOB_REFUSED)
        return model_add_row(plan, m, job->entity, false, none);
    if (job->kind != TUNE_JOB_REPLAY)
        return 0;
    if (!m->dry) {
        if (!(m->dry = calloc(1, sizeof *m->dry)))
            return no_memory();
        TRY(read_store(plan, m, m->dry));
    }
    for (int i = 0; i < job->row_count; i++) {
        uint64_t at;
        if (tune_uids_first(&m->dry->uids, job->rows[i].uid, &at))
            TRY(model_add_row(plan, m, job->entity, m->dry->rows[at].valid, m->dry->rows[at].values));
    }
    return 0;
}
