/* reference.c - a table of log-probabilities by a hash of the row, and its file. */
#include "evaluators/reference.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "core/array.h"
#include "core/error.h"
#include "core/try.h"
#include "files/file.h"
#include "files/safetensors.h"
#include "losses/loss.h"
#include "models/model.h"

struct entry {
    uint64_t row; /* hash of tokens and labels; 0: free */
    double log_prob;
};

struct tune_reference {
    struct tune_model *m;
    struct tune_loss *loss;
    enum tune_reference_kind kind;
    struct entry *table; /* [room], a power of two, at most half full */
    int64_t count, room;
    int64_t added;       /* since the file was read */
    bool mismatch;       /* estimate kl */
    struct tune_comm *comm; /* of several ranks; NULL: one */
    int multiple;        /* of the length of its batches */
    char *path, *made;
};

struct tune_reference *tune_reference_new(struct tune_model *m, struct tune_loss *loss, enum tune_reference_kind kind)
{
    struct tune_reference *r = tune_zeroed(1, sizeof *r, "the reference");
    if (r)
        *r = (struct tune_reference){.m = m, .loss = loss, .kind = kind};
    return r;
}

void tune_reference_free(struct tune_reference *r)
{
    if (!r)
        return;
    free(r->table);
    free(r->path);
    free(r->made);
    free(r);
}

/* ---- the table ---- */

/* Hash row b's tokens and labels. Never 0. */
static uint64_t hash_row(const struct tune_batch *batch, int b)
{
    size_t bytes = (size_t)batch->lengths[b] * sizeof *batch->ids;
    uint64_t h = tune_hash64(batch->ids + (int64_t)b * batch->T, bytes, 0);
    h = tune_hash64(batch->labels + (int64_t)b * batch->T, bytes, h);
    return h ? h : 1;
}

/* The row's entry, or the free one where it belongs. */
static struct entry *find(struct entry *table, int64_t room, uint64_t row)
{
    int64_t i = (int64_t)(row & (uint64_t)(room - 1));
    while (table[i].row && table[i].row != row)
        i = (i + 1) & (room - 1);
    return &table[i];
}

static int grow(struct tune_reference *r)
{
    int64_t room = r->room ? 2 * r->room : 1024;
    struct entry *table = tune_zeroed((size_t)room, sizeof *table, "the log-probabilities of %" PRId64 " rows", room / 2);
    if (!table)
        return -1;
    for (int64_t i = 0; i < r->room; i++)
        if (r->table[i].row)
            *find(table, room, r->table[i].row) = r->table[i];
    free(r->table);
    r->table = table;
    r->room = room;
    return 0;
}

static int put(struct tune_reference *r, uint64_t row, double log_prob)
{
    if (2 * r->count >= r->room)
        TRY(grow(r));
    struct entry *e = find(r->table, r->room, row);
    r->count += e->row == 0;
    *e = (struct entry){row, log_prob};
    return 0;
}

static const struct entry *get(const struct tune_reference *r, uint64_t row)
{
    const struct entry *e = r->room ? find(r->table, r->room, row) : NULL;
    return e && e->row ? e : NULL;
}

/* ---- the file ---- */

static int damaged(const char *path, const char *what)
{
    return tune_error_set("%s: %s; expected what an earlier run wrote: the U64 tensor \"rows\" and the F64 tensor \"log_probs\"; "
                          "remove the file, and its numbers are computed again", path, what);
}

enum { CHECKSUM_SIZE = 20 };

static void write_checksum(char text[CHECKSUM_SIZE], uint64_t sum)
{
    snprintf(text, CHECKSUM_SIZE, "%016" PRIx64, sum);
}

static int read_table(struct tune_reference *r, const struct tune_safetensors *f)
{
    const struct tune_array *rows = tune_safetensors_find(f, "rows"), *probs = tune_safetensors_find(f, "log_probs");
    const char *made = tune_safetensors_metadata(f, "made_by");
    if (!rows || !probs || rows->ndim != 1 || probs->ndim != 1 || rows->shape[0] != probs->shape[0] ||
        rows->dtype != TUNE_U64 || probs->dtype != TUNE_F64)
        return damaged(r->path, "it has other tensors");
    const char *checksum = tune_safetensors_metadata(f, "checksum");
    if (!checksum && r->made)
        return 1;
    size_t bytes = (size_t)rows->shape[0] * 8;
    char sum[CHECKSUM_SIZE];
    write_checksum(sum, tune_hash64(probs->data, bytes, tune_hash64(rows->data, bytes, 0)));
    if (checksum && strcmp(sum, checksum))
        return damaged(r->path, "its checksum is not that of its numbers");
    if (made && !r->made && !(r->made = strdup(made)))
        return tune_error_no_memory("a name");
    if (!made || strcmp(made, r->made))
        return tune_error_usage("%s: its log-probabilities are by %.200s, and this run's reference is %s; give another file, or "
                                "remove this one", r->path, made ? made : "an unknown model", r->made ? r->made : "unknown, too");
    for (int64_t i = 0; i < rows->shape[0]; i++) {
        uint64_t row;
        double p;
        memcpy(&row, (const char *)rows->data + 8 * i, 8);
        memcpy(&p, (const char *)probs->data + 8 * i, 8);
        if (row == 0 || !isfinite(p))
            return damaged(r->path, "a number in it is no log-probability");
        TRY(put(r, row, p));
    }
    return 0;
}

int tune_reference_open(struct tune_reference *r, const char *path, const char *made)
{
    r->path = strdup(path);
    r->made = made ? strdup(made) : NULL;
    if (!r->path || (made && !r->made))
        return tune_error_no_memory("a path");
    if (!tune_file_exists(path))
        return 0;
    struct tune_safetensors *f = tune_safetensors_open(path);
    int status = f ? read_table(r, f) : -1;
    tune_safetensors_close(f);
    return status;
}

static int write_table(const struct tune_reference *r, struct tune_safetensors_writer *w, const uint64_t *rows, const double *probs)
{
    size_t bytes = (size_t)r->count * 8;
    char sum[CHECKSUM_SIZE];
    write_checksum(sum, tune_hash64(probs, bytes, tune_hash64(rows, bytes, 0)));
    TRY(tune_safetensors_writer_metadata(w, "made_by", r->made));
    TRY(tune_safetensors_writer_metadata(w, "checksum", sum));
    TRY(tune_safetensors_writer_declare(w, "rows", TUNE_U64, 1, &r->count));
    TRY(tune_safetensors_writer_declare(w, "log_probs", TUNE_F64, 1, &r->count));
    TRY(tune_safetensors_writer_write(w, rows, (int64_t)bytes));
    TRY(tune_safetensors_writer_write(w, probs, (int64_t)bytes));
    return tune_safetensors_writer_finish(w);
}

/* The rows that any rank has. */
static int take_all(struct tune_reference *r, struct tune_comm *c)
{
    int64_t most = r->count, n = 0;
    int64_t *counts = tune_comm_gather(c, "numbers of the reference", &most, sizeof most);
    for (int k = 0; counts && k < tune_comm_size(c); k++)
        most = counts[k] > most ? counts[k] : most;
    struct entry *mine = counts ? tune_zeroed((size_t)most + 1, sizeof *mine, "the reference's rows") : NULL;
    for (int64_t i = 0; mine && i < r->room; i++)
        if (r->table[i].row)
            mine[n++] = r->table[i];
    struct entry *all = mine ? tune_comm_gather(c, "rows of the reference", mine, (size_t)most * sizeof *mine) : NULL;
    int status = all ? 0 : -1;
    for (int64_t i = 0; status == 0 && i < most * tune_comm_size(c); i++)
        status = all[i].row ? put(r, all[i].row, all[i].log_prob) : 0;
    free(counts);
    free(mine);
    free(all);
    return status;
}

void tune_reference_ranks(struct tune_reference *r, struct tune_comm *comm)
{
    r->comm = comm && tune_comm_size(comm) > 1 ? comm : NULL;
}

int tune_reference_share(struct tune_reference *r)
{
    int64_t before = r->count;
    TRY(r->comm ? take_all(r, r->comm) : 0);
    r->added += r->count - before;
    return 0;
}

int tune_reference_save(struct tune_reference *r)
{
    if (r->added == 0 || tune_comm_follows(r->comm))
        return 0;
    uint64_t *rows = tune_zeroed((size_t)r->count, sizeof *rows, "the reference's rows");
    double *probs = tune_zeroed((size_t)r->count, sizeof *probs, "the reference's numbers");
    int64_t n = 0;
    for (int64_t i = 0; i < r->room && rows && probs; i++)
        if (r->table[i].row) {
            rows[n] = r->table[i].row;
            probs[n++] = r->table[i].log_prob;
        }
    struct tune_safetensors_writer *w = rows && probs ? tune_safetensors_writer_new(r->path) : NULL;
    int status = w ? write_table(r, w, rows, probs) : -1;
    tune_safetensors_writer_free(w);
    free(rows);
    free(probs);
    if (status == 0)
        r->added = 0;
    return status;
}

/* ---- rows ---- */

/* The log-probabilities by the model, with or without its adapters. */
static int infer(struct tune_reference *r, const struct tune_batch *batch, double *sums)
{
    struct tune_tensor *hidden;
    TRY(r->kind == TUNE_REFERENCE_BASE ? tune_model_infer_base(r->m, batch, &hidden) : tune_model_infer(r->m, batch, &hidden));
    return tune_loss_row_log_probs(r->loss, hidden, batch, sums);
}

static int lacks(const struct tune_reference *r, const struct tune_batch *batch)
{
    int missing = 0;
    for (int b = 0; b < batch->B && !batch->empty; b++)
        missing += !get(r, hash_row(batch, b));
    return missing;
}

static struct tune_batch *mismatched(const struct tune_reference *r, const struct tune_batch *batch)
{
    return tune_batch_mismatched(batch, tune_model_max_length(r->m), r->multiple);
}

int tune_reference_lacks(const struct tune_reference *r, const struct tune_batch *batch)
{
    int missing = lacks(r, batch);
    if (!r->mismatch || batch->empty)
        return missing;
    struct tune_batch *wrong = mismatched(r, batch);
    TRY(wrong ? 0 : -1);
    missing += lacks(r, wrong);
    tune_batch_free(wrong);
    return missing;
}

/* batch NULL: this rank has none. */
static int compute(struct tune_reference *r, const struct tune_batch *batch)
{
    int missing = batch ? lacks(r, batch) : 0, status = 0;
    int64_t all = missing;
    bool together = r->comm && tune_model_gathers(r->m);
    TRY(together ? tune_comm_sum_whole(r->comm, "answers that the reference lacks", &all, 1) : 0);
    if (missing == 0)
        return all > 0 ? tune_model_no_batch(r->m) : 0;
    double *sums = tune_zeroed((size_t)batch->B, sizeof *sums, "the log-probabilities of a batch");
    if (!sums)
        return -1;
    status = infer(r, batch, sums);
    for (int b = 0; status == 0 && b < batch->B; b++) {
        if (isfinite(sums[b]))
            status = put(r, hash_row(batch, b), sums[b]);
        else
            status = tune_error_set("the reference gives a log-probability of %g; look for NaN in the model's weights", sums[b]);
    }
    free(sums);
    r->added += missing;
    return status < 0 ? -1 : missing;
}

int tune_reference_compute(struct tune_reference *r, const struct tune_batch *batch)
{
    int done = compute(r, batch);
    TRY(done);
    if (!r->mismatch)
        return done;
    if (batch->empty)
        return compute(r, NULL) < 0 ? -1 : done;
    struct tune_batch *wrong = mismatched(r, batch);
    int more = wrong ? compute(r, wrong) : -1;
    tune_batch_free(wrong);
    return more < 0 ? -1 : done + more;
}

int tune_reference_log_probs(struct tune_reference *r, const struct tune_batch *batch, double *sums)
{
    if (r->kind == TUNE_REFERENCE_BASE)
        return infer(r, batch, sums);
    for (int b = 0; b < batch->B; b++) {
        const struct entry *e = r->kind == TUNE_REFERENCE_FILE && !batch->empty ? get(r, hash_row(batch, b)) : NULL;
        if (!e && r->kind == TUNE_REFERENCE_FILE && !batch->empty)
            return tune_error_set("%s has no log-probability for row %" PRId64 ": the data were changed while the run went on, or the recipe takes "
                                  "rows in an order of its own (tune_loader_order) and ends before the first epoch does",
                                  r->path, batch->row_of ? batch->row_of[b] : b);
        sums[b] = e ? e->log_prob : 0;
    }
    return 0;
}

void tune_reference_mismatch(struct tune_reference *r, int multiple)
{
    r->mismatch = true;
    r->multiple = multiple;
}

/* The mean difference of the log-probabilities of a batch. */
static int departure(struct tune_reference *r, const struct tune_batch *batch, double *mean)
{
    double theirs[batch->B], ours[batch->B], sum = 0;
    struct tune_tensor *hidden;
    if (r->kind == TUNE_REFERENCE_FILE && lacks(r, batch) > 0)
        return tune_error_usage("%s lacks mismatched answers: which answers those are depends on the rows of a micro-batch, so a run "
                                "goes on with the `batch_size` and data that it began with", r->path);
    TRY(tune_reference_log_probs(r, batch, theirs));
    TRY(tune_model_infer(r->m, batch, &hidden));
    TRY(tune_loss_row_log_probs(r->loss, hidden, batch, ours));
    for (int b = 0; b < batch->B; b++)
        sum += ours[b] - theirs[b];
    *mean = sum / batch->B;
    return 0;
}

int tune_reference_kl(struct tune_reference *r, const struct tune_batch *batch, double *kl)
{
    *kl = 0;
    if (!r->mismatch)
        return 0;
    if (batch->empty) /* other ranks have rows, and passes as in departure() */
        return r->kind == TUNE_REFERENCE_BASE && tune_model_no_batch(r->m) < 0 ? -1 : tune_model_no_batch(r->m);
    struct tune_batch *wrong = mismatched(r, batch);
    int status = wrong ? departure(r, wrong, kl) : -1;
    tune_batch_free(wrong);
    *kl = *kl < 0 ? 0 : *kl; /* NaN stays, and is an error of the loss */
    return status;
}
