/* dataset_about.c - a data set in words. */
#include <string.h>

#include "core/print.h"
#include "datasets/dataset_state.h"
#include "files/csv.h"
#include "tokenizers/tokenizer.h"

/* Say how the file was read, where its name or first line does not. */
static void describe_file(struct tune_dataset *d, int64_t limit)
{
    const struct tune_rows *r = &d->rows;
    if (r->count < r->in_file)
        tune_append(d->about, sizeof d->about, "; the first %lld of %lld rows (`limit`)", (long long)r->count, (long long)r->in_file);
    else if (limit > 0)
        tune_append(d->about, sizeof d->about, "; all %lld rows (`limit` %lld)", (long long)r->count, (long long)limit);
    if (r->list_end)
        tune_append(d->about, sizeof d->about, "; rows are the list \"%s\"", r->list);
    if (r->objects && !r->list_end)
        tune_append(d->about, sizeof d->about, "; objects over several lines");
    if (r->separator && r->separator != (r->format == TUNE_DATASET_TSV ? '\t' : ','))
        tune_append(d->about, sizeof d->about, "; fields parted by %s", tune_csv_separator_name(r->separator));
}

/* Name the columns that are not read. */
static void describe_unread(struct tune_dataset *d)
{
    enum { NAMED = 8 };
    char names[512] = "";
    int count = 0;
    for (int i = 0; i < d->columns.count; i++) {
        const char *name = d->columns.names[i];
        bool read = d->formatted ? tune_format_reads(&d->format, name) : d->text.field && !strcmp(name, d->text.field);
        if (read || !*name || (d->formatted && d->format.recognised && !strcmp(name, "text")))
            continue;
        if (count++ < NAMED)
            tune_append_item(names, sizeof names, "%.60s", name);
    }
    if (count > 0)
        tune_append(d->about, sizeof d->about, "; not read: %s", names);
    if (count > NAMED)
        tune_append(d->about, sizeof d->about, " and %d more", count - NAMED);
}

static void describe_columns(struct tune_dataset *d, int64_t limit)
{
    const struct tune_format *f = &d->format;
    snprintf(d->rows_are, sizeof d->rows_are, "of columns");
    char *about = d->about;
    size_t size = sizeof d->about;
    snprintf(about, size, "%s%s, columns ", tune_format_name(f), f->recognised ? " (recognised)" : "");
    for (int i = 0; i < f->count; i++)
        if (tune_columns_has(&d->columns, f->columns[i]) && !f->left_out[i]) {
            bool renamed = strcmp(f->names[i], f->columns[i]) != 0;
            tune_append(about, size, "%s%.100s%s%.100s", i ? ", " : "", f->names[i], renamed ? "=" : "",
                        renamed ? f->columns[i] : "");
        }
    if (!f->prompts)
        tune_append(about, size, "; trained on %s", tune_format_train_on(f));
    if (f->recognised && tune_columns_has(&d->columns, "text"))
        tune_append(about, size, "; the column text is not read (`format` text trains on it)");
    if (f->chat)
        tune_append(about, size, "; chat template %s", tune_chat_template_name(f->chat));
    if (d->append_id >= 0)
        tune_append(about, size, "; ended by %.100s", tune_tokenizer_token(d->tok, d->append_id));
    if (d->parted)
        tune_append(about, size, "; %lld pairs are parted into %lld rows, chosen answers with the label true and rejected ones with false "
                    "(`loss` kto)", (long long)d->rows.count, (long long)d->count);
    describe_unread(d);
    describe_file(d, limit);
    tune_blank_controls(d->about);
}

static void describe_text(struct tune_dataset *d, int64_t limit)
{
    char *about = d->about;
    const char *field = d->text.field, *pieces = d->chunks.count > 0 ? "pieces of " : "";
    if (field)
        snprintf(d->rows_are, sizeof d->rows_are, "%sfield \"%.100s\"", pieces, field);
    else
        snprintf(d->rows_are, sizeof d->rows_are, "%s%s", pieces, d->rows.mark[0] ? "documents" : "paragraphs");
    snprintf(about, sizeof d->about, "text");
    if (d->rows.mark[0])
        tune_append(about, sizeof d->about, ", parted by lines of %.100s", d->rows.mark);
    if (d->chunks.count > 0)
        tune_append(about, sizeof d->about, ", in pieces of at most %d tokens", d->max_length);
    if (d->append_id >= 0)
        tune_append(about, sizeof d->about, "; ended by %.100s", tune_tokenizer_token(d->tok, d->append_id));
    else if (!d->format.prompts)
        tune_append(about, sizeof d->about, "; ended by no token");
    if (!d->text_named)
        describe_unread(d);
    describe_file(d, limit);
    tune_blank_controls(d->about);
}

void tune_dataset_describe(struct tune_dataset *d, int64_t limit)
{
    if (d->formatted)
        describe_columns(d, limit);
    else
        describe_text(d, limit);
}
