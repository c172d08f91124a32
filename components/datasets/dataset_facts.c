/* dataset_facts.c - what is known of a data set: its rows, format, hashes, file. */
#include <stdlib.h>
#include <string.h>

#include "core/print.h"
#include "core/random.h"
#include "core/try.h"
#include "datasets/dataset_state.h"
#include "datasets/look.h"
#include "tokenizers/tokenizer.h"

enum { BLOCK = 1000 };               /* rows of the file whose answers stand together */
enum { END_ROWS = 100 };            /* rows searched for the token that ends answers */
#define LONG_ROW ((size_t)64 << 10) /* shorter rows do not count in the memory plan */
/* memory in bytes for a byte of a row, measured by tests/bench/bench_rows, with reserve */
enum { ROW_COST = 16, CHAT_COST = 28 };
#define HELD_OUT_STREAM 0x68656c64u /* other draws than those of epoch orders */

int64_t tune_dataset_rows(const struct tune_dataset *d)
{
    return d->count;
}

struct tune_dataset_counts tune_dataset_counts(const struct tune_dataset *d)
{
    /* locking does not change the visible state */
    pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&d->lock;
    pthread_mutex_lock(lock);
    struct tune_dataset_counts counts = d->counts;
    pthread_mutex_unlock(lock);
    return counts;
}

void tune_dataset_restore(struct tune_dataset *d, struct tune_dataset_counts counts)
{
    pthread_mutex_lock(&d->lock);
    d->counts = counts;
    pthread_mutex_unlock(&d->lock);
}

/* Where each sequence of a row is a row of the set, their order is that of TRL. Of each thousand rows of the file come first all
 * first sequences, then all second ones. So the answers to one prompt are not KTO's mismatched ones of each other. */
int64_t tune_dataset_file_row(const struct tune_dataset *d, int64_t row, int *side)
{
    *side = 0;
    if (d->chunks.count > 0)
        return tune_chunks_unit(&d->chunks, row)->row;
    if (!d->parted)
        return row;
    int64_t first = row / (BLOCK * d->format.sequences) * BLOCK, at = row - first * d->format.sequences;
    int64_t rows = d->rows.count - first < BLOCK ? d->rows.count - first : BLOCK;
    *side = (int)(at / rows);
    return first + at % rows;
}

int64_t tune_dataset_first_part(const struct tune_dataset *d, int64_t row)
{
    int64_t own;
    int side, k = tune_dataset_set_of(d, row, &own);
    const struct tune_dataset *set = d->sets ? d->sets[k] : d;
    if (!set->parted)
        return row;
    int64_t at = tune_dataset_file_row(set, own, &side);
    return row - own + at + at / BLOCK * BLOCK * (set->format.sequences - 1);
}

struct tune_text tune_dataset_raw(const struct tune_dataset *d, int64_t row)
{
    if (d->sets) {
        int k = tune_dataset_set_of(d, row, &row);
        return tune_dataset_raw(d->sets[k], row);
    }
    if (d->get || tune_rows_uncut(&d->rows) < 0)
        return (struct tune_text){"", 0};
    const struct tune_chunk_unit *u = d->chunks.count > 0 ? tune_chunks_unit(&d->chunks, row) : NULL;
    int side;
    struct tune_file_row at = tune_rows_get(&d->rows, tune_dataset_file_row(d, row, &side));
    if (u && d->rows.format == TUNE_DATASET_TEXT)
        return (struct tune_text){at.text + u->begin, u->size};
    return (struct tune_text){at.text, at.size <= TUNE_ROW_LIMIT ? at.size : 0};
}

const char *tune_dataset_reasons(const struct tune_dataset *d)
{
    for (int k = 0; k < d->set_count; k++)
        if (d->sets[k]->reasons.count > 0)
            return d->sets[k]->reasons.text;
    return d->reasons.text;
}

const char *tune_dataset_text_field(const struct tune_dataset *d)
{
    return d->text.field;
}

const char *tune_dataset_path(const struct tune_dataset *d)
{
    return *d->rows.name ? d->rows.name : NULL;
}

const char *tune_dataset_files(const struct tune_dataset *d, char *text, int size)
{
    const struct tune_shards *files = &d->rows.files;
    if (files->count == 0 || (files->count == 1 && !strcmp(files->paths[0], d->rows.name)))
        snprintf(text, (size_t)size, "%s", "");
    else if (files->count == 1)
        snprintf(text, (size_t)size, "%s", files->paths[0]);
    else
        snprintf(text, (size_t)size, "%s and %d more", files->paths[0], files->count - 1);
    return text;
}

const char *tune_dataset_format(const struct tune_dataset *d)
{
    const char *format = d->sets ? tune_dataset_format(d->sets[0]) : d->get ? NULL : tune_format_name(&d->format);
    for (int k = 1; k < d->set_count && format; k++) {
        const char *other = tune_dataset_format(d->sets[k]);
        format = other && !strcmp(format, other) ? format : NULL;
    }
    return format;
}

const char *tune_dataset_rows_are(const struct tune_dataset *d)
{
    return d->rows_are;
}

const char *tune_dataset_about(const struct tune_dataset *d)
{
    return *d->about ? d->about : NULL;
}

const struct tune_tokenizer *tune_dataset_tokenizer(const struct tune_dataset *d)
{
    return d->tok;
}

const char *tune_dataset_warning(const struct tune_dataset *d)
{
    for (int k = 0; k < d->set_count; k++)
        if (*d->sets[k]->warning)
            return d->sets[k]->warning;
    return *d->warning ? d->warning : NULL;
}

int64_t tune_dataset_row_bytes(const struct tune_dataset *d)
{
    int64_t most = 0;
    for (int k = 0; k < d->set_count; k++) {
        int64_t bytes = tune_dataset_row_bytes(d->sets[k]);
        most = bytes > most ? bytes : most;
    }
    if (d->sets)
        return most;
    if (d->chunks.count > 0)
        return (int64_t)d->chunks.room * (int64_t)sizeof *d->chunks.ids;
    return d->rows.longest < LONG_ROW ? 0 : (int64_t)d->rows.longest * (d->format.chat ? CHAT_COST : ROW_COST);
}

/* One hash of what `of` says of each set; 0 if that is 0 everywhere. */
static uint64_t hash_of_sets(const struct tune_dataset *d, uint64_t (*of)(const struct tune_dataset *d))
{
    uint64_t hash = 0;
    bool any = false;
    for (int k = 0; k < d->set_count; k++) {
        uint64_t one = of(d->sets[k]);
        any = any || one;
        hash = tune_hash64(&one, sizeof one, hash);
    }
    return any ? hash : 0;
}

uint64_t tune_dataset_prompt_hash(const struct tune_dataset *d)
{
    if (d->sets)
        return hash_of_sets(d, tune_dataset_prompt_hash);
    return d->format.kind == TUNE_FORMAT_TEMPLATE ? d->format.templates[0].hash : 0;
}

const char *tune_dataset_chat_template(const struct tune_dataset *d)
{
    const char *text = NULL;
    for (int k = 0; !text && k < d->set_count; k++)
        text = tune_dataset_chat_template(d->sets[k]);
    if (text)
        return text;
    return d->format.chat ? tune_chat_template_chosen(d->format.chat) : NULL;
}

const char *tune_dataset_eos_token(const struct tune_dataset *d)
{
    const char *token = d->format.chat ? tune_chat_template_end(d->format.chat) : NULL;
    for (int k = 0; !token && k < d->set_count; k++)
        token = tune_dataset_eos_token(d->sets[k]);
    return token;
}

/* True if the tokenizer's decoder leaves the token out as a special one. */
static bool is_special(struct tune_tokenizer *tok, int32_t id)
{
    char *with = NULL, *without = NULL;
    size_t size = 0, rest = 1;
    bool read = tune_tokenizer_decode(tok, &id, 1, false, &with, &size) == 0 &&
                tune_tokenizer_decode(tok, &id, 1, true, &without, &rest) == 0;
    free(with);
    free(without);
    tune_error_clear();
    return read && size > 0 && rest == 0;
}

int32_t tune_dataset_end_id(struct tune_dataset *d)
{
    struct tune_dataset_counts before = tune_dataset_counts(d);
    struct tune_example x = {0};
    int32_t id = -1;
    for (int k = 0; id < 0 && k < d->set_count; k++)
        id = tune_dataset_end_id(d->sets[k]);
    if (d->sets)
        return id;
    for (int64_t i = 0; d->tok && id < 0 && i < d->count && i < END_ROWS; i++) {
        if (tune_dataset_get(d, i, &x) < 0) {
            tune_error_clear();
            continue;
        }
        for (int64_t k = x.count; id < 0 && k-- > 0 && x.count == x.full_count;)
            if (x.trained[k] && is_special(d->tok, x.ids[k]))
                id = x.ids[k];
            else if (x.trained[k] && d->format.train_on != TUNE_TRAIN_ON_ALL)
                break;
    }
    tune_example_free(&x);
    tune_dataset_restore(d, before);
    return id;
}

uint64_t tune_dataset_chat_hash(const struct tune_dataset *d)
{
    if (d->sets)
        return hash_of_sets(d, tune_dataset_chat_hash);
    return d->format.chat ? tune_chat_template_hash(d->format.chat) : 0;
}

const char *tune_dataset_source(const struct tune_dataset *d, int64_t row, char *text, int size)
{
    if (d->sets && row >= 0 && row < d->count) {
        int k = tune_dataset_set_of(d, row, &row);
        return tune_dataset_source(d->sets[k], row, text, size);
    }
    if (d->get || row < 0 || row >= d->count || tune_rows_uncut(&d->rows) < 0)
        snprintf(text, (size_t)size, "row %lld", (long long)row);
    else if (d->chunks.count > 0)
        snprintf(text, (size_t)size, "%s:%lld", d->rows.path, (long long)tune_chunks_unit(&d->chunks, row)->line);
    else
        snprintf(text, (size_t)size, "%s:%lld", d->rows.path,
                 (long long)tune_rows_get(&d->rows, tune_dataset_file_row(d, row, &(int){0})).line);
    return text;
}

int tune_dataset_file(const char *path, struct tune_file_stamp *stamp, uint64_t *hash)
{
    struct tune_shards files;
    TRY(tune_shards_find(&files, path));
    int status = tune_shards_stamp(&files, stamp);
    if (status == 0 && hash)
        status = tune_shards_fingerprint(&files, hash);
    tune_shards_free(&files);
    return status;
}

uint64_t tune_dataset_fingerprint(const struct tune_dataset *d)
{
    return d->sets ? hash_of_sets(d, tune_dataset_fingerprint) : d->fingerprint;
}

uint64_t tune_dataset_hash(const struct tune_dataset *d)
{
    uint64_t all[3] = {tune_dataset_fingerprint(d), tune_dataset_prompt_hash(d), tune_dataset_chat_hash(d)};
    uint64_t hash = all[1] || all[2] ? tune_hash64(all, sizeof all, 0) : all[0];
    for (int k = 0; k < tune_dataset_sets(d); k++) {
        const struct tune_rows *r = d->sets ? &d->sets[k]->rows : &d->rows;
        if (r->count < r->in_file)
            hash = tune_hash64(&r->count, sizeof r->count, hash + (uint64_t)k);
    }
    return hash;
}

const struct tune_file_stamp *tune_dataset_stamp(const struct tune_dataset *d)
{
    return *d->stamp.modified ? &d->stamp : NULL; /* callbacks have none */
}

int tune_dataset_unchanged(const struct tune_dataset *d)
{
    struct tune_file_stamp now;
    for (int k = 0; k < d->set_count; k++)
        TRY(tune_dataset_unchanged(d->sets[k]));
    if (d->get || d->sets)
        return 0;
    TRY(tune_shards_stamp(&d->rows.files, &now));
    if (now.size == d->stamp.size && strcmp(now.modified, d->stamp.modified) == 0)
        return 0;
    return tune_error_set("%s was changed while it was read: %lld bytes of %s then, %lld bytes of "
                          "%s now; rows read before and after may not belong together: begin "
                          "again with a file that stays as it is", d->rows.path,
                          (long long)d->stamp.size, d->stamp.modified, (long long)now.size,
                          now.modified);
}

int tune_dataset_whole(const struct tune_dataset *d)
{
    for (int k = 0; k < d->set_count; k++)
        TRY(tune_dataset_whole(d->sets[k]));
    return d->get || d->sets ? 0 : tune_rows_uncut(&d->rows);
}

bool tune_dataset_held_out(uint64_t seed, uint64_t key, double share)
{
    return tune_random_uniform(seed, HELD_OUT_STREAM, key) >= share;
}
