/* dataset.c - from a row of a file, or a callback, to tokens and a mask. */
#include "datasets/dataset.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/print.h"
#include "core/random.h"
#include "core/try.h"
#include "datasets/dataset_state.h"
#include "files/csv.h"
#include "tokenizers/tokenizer.h"
#include "core/nearest.h"

enum { PROBED_ROWS = 1000 }; /* rows searched for a readable one if bad rows are skipped */
#define TOUCHED_LIMIT ((size_t)64 << 20) /* most resident bytes of the mapping */
#define TOUCHED_ROW ((size_t)64 << 10)   /* bytes around a page fault that become resident */

/* Buffers to read one row. Each call has its own, so any number of threads may read. */
struct scratch {
    struct tune_text_row text;
    struct tune_pieces pieces;
    struct tune_encoding tokens;
};

static void scratch_free(struct scratch *s)
{
    tune_text_row_free(&s->text);
    tune_pieces_free(&s->pieces);
    tune_encoding_free(&s->tokens);
}

void tune_example_free(struct tune_example *x)
{
    free(x->ids);
    free(x->trained);
    free(x->ends);
    free(x->labels);
    memset(x, 0, sizeof *x);
}

int tune_example_reserve(struct tune_example *x, int64_t count)
{
    if (count <= x->room)
        return 0;
    int32_t *ids = realloc(x->ids, (size_t)count * sizeof *ids);
    if (ids)
        x->ids = ids;
    uint8_t *trained = ids ? realloc(x->trained, (size_t)count) : NULL;
    if (!trained)
        return tune_error_no_memory("the tokens of a row");
    x->trained = trained;
    x->room = count;
    return 0;
}

int tune_example_end(struct tune_example *x, double label)
{
    if (x->sequences == x->sequence_room) {
        int room = 2 * x->sequence_room + 2;
        int64_t *ends = realloc(x->ends, (size_t)room * sizeof *ends);
        x->ends = ends ? ends : x->ends;
        double *labels = ends ? realloc(x->labels, (size_t)room * sizeof *labels) : NULL;
        if (!labels)
            return tune_error_no_memory("the sequences of a row");
        x->labels = labels;
        x->sequence_room = room;
    }
    x->ends[x->sequences] = x->count;
    x->labels[x->sequences++] = label;
    return 0;
}

/* ---- from a row to tokens ---- */

bool tune_example_has_label(const struct tune_example *x)
{
    for (int i = 0; i < tune_example_parts(x); i++) {
        int64_t size, begin = tune_example_part(x, i, &size);
        if (size == 0 || !memchr(x->trained + begin, 1, (size_t)size))
            return false;
    }
    return true;
}

/* True if a token that begins in the masked piece `at` and ends at `end` reaches into a trained one. */
static bool reaches(const struct tune_text_piece *pieces, int count, int at, int64_t end)
{
    for (int k = at + 1; !pieces[at].trained && k < count && (size_t)end > pieces[k - 1].end; k++)
        if (pieces[k].trained && pieces[k].end > pieces[k - 1].end)
            return true;
    return false;
}

/* Append tokens and mask of a text in pieces, cut to max_length. *lost: all labels were beyond the
 * cut. A token belongs to the piece in which it begins. In a conversation, a token that reaches into
 * what the assistant says is trained, as in transformers. Tokens that the tokenizer's template added
 * before the text belong to the first piece, those after it to the last. An appended token is
 * trained. It is not appended where the text already ends with it. */
static int fill(const struct tune_dataset *d, const struct tune_encoding *e, bool append, const char *text,
                const struct tune_text_piece *pieces, int count, bool chat, struct tune_example *x, bool *lost)
{
    int64_t first = 0, have = 0;
    int at = 0;
    bool in_text = false, beyond = false, labelled = false, answered = false;
    if (e->count >= 2 && e->starts[0] < 0 && e->starts[1] == 0 && e->ids[0] == e->ids[1])
        first = 1; /* the text already begins with the beginning-of-sequence token */
    append = append && (e->count == 0 || e->ids[e->count - 1] != d->append_id);
    int64_t full = e->count - first + append, before = x->count, kept = full < d->max_length ? full : d->max_length;
    TRY(tune_example_reserve(x, before + kept));
    x->full_count += full;
    x->longest = full > x->longest ? full : x->longest;
    x->count += kept;
    for (int64_t i = first; i < e->count + append; i++, have++) {
        bool appended = i == e->count;
        bool own = !appended && e->starts[i] >= 0;
        while (own && at > 0 && (size_t)e->starts[i] < pieces[at - 1].end)
            at--;
        while (own && at < count - 1 && (size_t)e->starts[i] >= pieces[at].end)
            at++;
        bool joined = own && reaches(pieces, count, at, e->ends[i]);
        bool trained = appended || (joined && chat) || pieces[own ? at : in_text ? count - 1 : 0].trained;
        if (joined && !x->joined)
            snprintf(x->joined_token, sizeof x->joined_token, "%.*s", (int)(e->ends[i] - e->starts[i]), text + e->starts[i]);
        x->joined = joined && !x->joined ? chat ? TUNE_JOINED_HEADER : TUNE_JOINED_PROMPT : x->joined;
        in_text = in_text || own;
        answered = answered || (trained && !appended);
        if (have >= kept) {
            beyond = beyond || trained;
            continue;
        }
        x->ids[before + have] = appended ? d->append_id : e->ids[i];
        x->trained[before + have] = trained && have > 0;
        x->answer_first = x->answer_first || (trained && have == 0);
        labelled = labelled || (trained && have > 0);
    }
    *lost = *lost || (beyond && !labelled);
    x->empty_answer = x->empty_answer || (labelled && !answered && !x->joined);
    return 0;
}

/* Make the error one of this row. */
static int row_failed(const struct tune_dataset *d, const struct tune_file_row *row)
{
    return tune_error_prefix("%s:%lld: ", d->rows.path, (long long)row->line);
}

/* Facts about a row besides its tokens. */
struct found {
    bool lost;      /* the cut removed all labels */
    size_t touched; /* bytes of the mapping that were read */
};

/* Read a row whose text is a field or the row itself. */
static int read_plain(const struct tune_dataset *d, const struct tune_file_row *row, struct scratch *s, struct tune_example *x,
                      bool *lost)
{
    struct tune_text text;
    struct tune_text_piece pieces[2] = {{0, true}};
    int count = 1;
    TRY(tune_text_rows_get(&d->text, row, &s->text, &text));
    if (d->response) {
        const char *at = memmem(text.data, text.size, d->response, d->response_size);
        if (!at)
            return tune_error_set("%s:%lld: the response template \"%.200s\" does not occur in "
                                  "this row's text", d->rows.path, (long long)row->line,
                                  d->response);
        pieces[0] = (struct tune_text_piece){(size_t)(at - text.data) + d->response_size, false};
        count = 2;
        if (d->format.prompts)
            text.size = pieces[0].end;
    }
    pieces[count - 1] = (struct tune_text_piece){text.size, !d->format.prompts};
    if (tune_tokenizer_encode(d->tok, text.data, text.size, TUNE_ADD_SPECIAL, &s->tokens) < 0)
        return row_failed(d, row);
    return fill(d, &s->tokens, d->append_id >= 0 && text.size > 0, text.data, pieces, count, false, x, lost);
}

int tune_dataset_pieces(const struct tune_dataset *d, int64_t row, struct tune_pieces *p)
{
    p->size = 0;
    p->count = 0;
    if (!d->formatted)
        return 0;
    TRY(tune_rows_uncut(&d->rows));
    struct tune_file_row at = tune_rows_get(&d->rows, d->parted ? tune_dataset_file_row(d, row, &p->side) : row);
    TRY(tune_text_rows_check(&d->text, &at));
    return tune_format_pieces(&d->format, &d->rows, &d->columns, &at, p);
}

/* side: which of the row's sequences, where each is a row of the set. */
static int read_formatted(const struct tune_dataset *d, const struct tune_file_row *row, int side, struct scratch *s,
                          struct tune_example *x, bool *lost)
{
    struct tune_pieces *p = &s->pieces;
    int end = d->parted || d->format.sequences == 0 ? side + 1 : d->format.sequences;
    TRY(tune_text_rows_check(&d->text, row));
    for (p->side = side; p->side < end; p->side++) {
        int64_t begin = x->count;
        TRY(tune_format_pieces(&d->format, &d->rows, &d->columns, row, p));
        if (tune_tokenizer_encode_text(d->tok, p->text, p->size, p->data, p->whole ? 0 : TUNE_ADD_SPECIAL, &s->tokens) < 0)
            return row_failed(d, row);
        x->no_prompt = d->format.sequences > 0 && p->count > 0 && (p->at[0].trained || p->at[0].end == 0);
        TRY(fill(d, &s->tokens, d->append_id >= 0 && p->size > 0 && (p->answer || d->append_always), p->text, p->at, p->count,
                 p->whole, x, lost));
        x->adapted |= p->whole ? p->chat.adapted : 0;
        x->said += p->whole ? p->rendered.said : 0;
        x->left_out += p->whole ? p->rendered.left_out : 0;
        if (x->count == begin && d->format.sequences > 0)
            return tune_error_set("%s:%lld: prompt and answer are both empty", d->rows.path, (long long)row->line);
        TRY(d->format.sequences > 0 ? tune_example_end(x, p->label) : 0);
    }
    return 0;
}

/* Read a piece of a long text. */
static int read_chunk(const struct tune_dataset *d, int64_t i, struct tune_example *x, struct found *found)
{
    found->touched = TOUCHED_ROW;
    x->hash = d->chunks.hashes[i];
    return tune_chunks_read(&d->chunks, i, x);
}

static int read_row(const struct tune_dataset *d, int64_t i, struct tune_example *x, struct found *found)
{
    TRY(tune_rows_uncut(&d->rows));
    if (d->chunks.count > 0)
        return read_chunk(d, i, x, found);
    struct scratch s = {0};
    int side;
    struct tune_file_row row = tune_rows_get(&d->rows, tune_dataset_file_row(d, i, &side));
    found->touched = TOUCHED_ROW + row.size;
    x->hash = tune_side_hash(tune_rows_hash(&d->rows, &row), side);
    int status = d->formatted ? read_formatted(d, &row, side, &s, x, &found->lost) : read_plain(d, &row, &s, x, &found->lost);
    scratch_free(&s);
    return status;
}

/* Cut each sequence of x to max_length. */
static void cut(struct tune_example *x, int64_t max_length)
{
    int64_t kept = 0, next = 0;
    if (x->count == 0)
        return; /* there may be no arrays */
    for (int i = 0; i < tune_example_parts(x); i++) {
        int64_t begin = next, end = x->sequences > 0 ? x->ends[i] : x->count;
        int64_t size = end - begin < max_length ? end - begin : max_length;
        memmove(x->ids + kept, x->ids + begin, (size_t)size * sizeof *x->ids);
        memmove(x->trained + kept, x->trained + begin, (size_t)size);
        kept += size;
        next = end;
        if (x->sequences > 0)
            x->ends[i] = kept;
    }
    x->count = kept;
}

/* Check the sequences of a callback's row, and count the longest. */
static int check_sequences(int64_t row, struct tune_example *x)
{
    for (int i = 0; x->count > 0 && i < tune_example_parts(x); i++) {
        int64_t size, begin = tune_example_part(x, i, &size);
        if (size < 1 || begin + size > x->count || (i + 1 == tune_example_parts(x) && begin + size != x->count))
            return tune_error_set("row %lld: the callback's sequence %d has the tokens from %lld up to %lld of %lld; expected at "
                                  "least one, and the last to end at the last token", (long long)row, i + 1, (long long)begin,
                                  (long long)(begin + size), (long long)x->count);
        if (x->sequences > 0 && !isfinite(x->labels[i]))
            return tune_error_set("row %lld: the callback's sequence %d has the label %g; expected a finite number", (long long)row, i + 1,
                                  x->labels[i]);
        x->answer_first = x->answer_first || x->trained[begin];
        x->trained[begin] = 0;
        x->longest = size > x->longest ? size : x->longest;
    }
    return 0;
}

/* Check the result of a callback, so that mistakes in the caller's code get a clear error. */
static int check_callback(struct tune_dataset *d, int64_t row, struct tune_example *x, struct found *found)
{
    if (x->bad)
        return 0;
    if (x->count < 0 || x->count > x->room)
        return tune_error_set("row %lld: the callback set %lld tokens but tune_example_reserve "
                              "made room for %lld", (long long)row, (long long)x->count,
                              (long long)x->room);
    for (int64_t i = 0; i < x->count; i++) {
        if (x->ids[i] < 0)
            return tune_error_set("row %lld: the callback's token %lld has the id %d, expected 0 "
                                  "or more", (long long)row, (long long)i, x->ids[i]);
        x->trained[i] = x->trained[i] != 0;
    }
    x->full_count = x->count;
    TRY(check_sequences(row, x));
    bool had = tune_example_has_label(x);
    cut(x, d->max_length);
    found->lost = had && !tune_example_has_label(x);
    return 0;
}

/* True if the error is about a row. Lack of memory and a file cut short are not. */
static bool is_bad_row(const struct tune_dataset *d)
{
    return tune_error_kind() != TUNE_ERROR_CANNOT && (d->get || tune_rows_uncut(&d->rows) == 0);
}

int tune_dataset_get(struct tune_dataset *d, int64_t row, struct tune_example *x)
{
    struct found found = {0};
    int status;
    x->count = x->full_count = x->longest = 0;
    x->sequences = 0;
    x->bad = x->cut_away = x->empty_answer = x->no_prompt = x->answer_first = false;
    x->joined = TUNE_JOINED_NOT;
    x->said = x->left_out = 0;
    x->adapted = 0;
    x->hash = 0;
    if (row < 0 || row >= d->count)
        return tune_error_set("row %lld of a set of %lld rows", (long long)row,
                              (long long)d->count);
    if (d->sets) {
        status = tune_joined_get(d, row, x, &found.lost);
    } else if (d->get) {
        status = d->get(d->context, row, x);
        if (status == 0)
            status = check_callback(d, row, x, &found);
    } else {
        status = read_row(d, row, x, &found);
    }
    if (status < 0 && d->skip_bad_rows && is_bad_row(d)) {
        pthread_mutex_lock(&d->lock);
        tune_reasons_add(&d->reasons);
        pthread_mutex_unlock(&d->lock);
        x->bad = true;
        status = 0;
    }
    bool unread = status < 0 || x->bad;
    if (unread)
        x->count = x->full_count = x->longest = x->sequences = 0;
    x->cut_away = !unread && found.lost;
    pthread_mutex_lock(&d->lock);
    d->counts.rows++;
    d->counts.bad += unread;
    d->counts.truncated += x->count < x->full_count;
    d->counts.truncated_away += x->cut_away;
    d->counts.unlabelled += !unread && !x->cut_away && !tune_example_has_label(x);
    d->touched += found.touched;
    bool release = d->touched > TOUCHED_LIMIT;
    if (release)
        d->touched = 0;
    pthread_mutex_unlock(&d->lock);
    if (release)
        tune_rows_release(&d->rows);
    return status < 0 ? -1 : 0;
}

/* ---- open and close ---- */

/* A field that none of the first rows has was misspelled. */
static int check_field(const struct tune_dataset *d)
{
    struct tune_columns have;
    char list[512], hint[TUNE_HINT];
    int status = 0;
    if (tune_columns_find(&have, &d->rows, true) < 0)
        tune_error_clear(); /* reading the rows reports it */
    else if (!tune_columns_has(&have, d->text.field))
        status = tune_error_usage("%s: no field \"%.200s\"%s; its rows have: %s (choose with `text_field`)", d->rows.path,
                                  d->text.field, tune_nearest_hint(d->text.field, (const char *const *)have.names, have.count, hint),
                                  tune_columns_list(&have, list, sizeof list));
    tune_columns_free(&have);
    return status;
}

/* Choose the field from the first row, or the first readable one if bad rows are skipped. A
 * misspelled name is then reported before the model is loaded. */
static int probe(struct tune_dataset *d)
{
    int64_t rows = !d->skip_bad_rows ? 1 : d->count < PROBED_ROWS ? d->count : PROBED_ROWS;
    struct tune_reasons why = {0};
    struct tune_error first;
    if (d->text.field)
        TRY(check_field(d));
    for (int64_t i = 0; i < rows; i++) {
        struct tune_file_row row = tune_rows_get(&d->rows, i);
        struct tune_text text;
        struct scratch s = {0};
        int status = d->text.field ? tune_text_rows_get(&d->text, &row, &s.text, &text) : tune_text_rows_choose(&d->text, &row);
        scratch_free(&s);
        if (status == 0)
            return 0;
        if (i == 0)
            tune_error_save(&first);
        tune_reasons_add(&why);
    }
    if (d->skip_bad_rows && first.kind != TUNE_ERROR_USAGE) /* usage: which field is not a matter of the row */
        return tune_reasons_refuse(&why, d->rows.path, d->count);
    tune_error_restore(&first);
    return -1;
}

/* Choose the token that ends answers and texts. A model's folder that names none is an error for
 * answers; texts then end with none. */
static int settle_append(struct tune_dataset *d, const struct tune_dataset_options *o)
{
    enum tune_format_kind kind = d->format.kind;
    const struct tune_prompt_template *t = &d->format.templates[0];
    bool answer = kind == TUNE_FORMAT_ALPACA || kind == TUNE_FORMAT_PROMPT_COMPLETION || kind == TUNE_FORMAT_PREFERENCE ||
                  kind == TUNE_FORMAT_ALPACA_PREFERENCE || kind == TUNE_FORMAT_UNPAIRED ||
                  (kind == TUNE_FORMAT_TEMPLATE && t->parts[t->count - 1].trained);
    const char *token = o->append_token;
    if (o->prompts)
        return 0;
    d->append_always = token != NULL;
    if (!token && answer) {
        token = o->end_token;
        if (!token)
            return tune_error_usage("%s: which token ends an answer is not known: the model's "
                                    "folder names none; give `append_token` TOKEN, or "
                                    "`append_token` none to end it with none", d->rows.path);
    }
    if (!token && kind == TUNE_FORMAT_TEXT && o->end_token && tune_tokenizer_id(d->tok, o->end_token) >= 0)
        token = o->end_token;
    if (!token || !strcmp(token, "none"))
        return 0;
    if ((d->append_id = tune_tokenizer_id(d->tok, token)) >= 0)
        return 0;
    return tune_error_usage("the tokenizer has no token \"%s\" to append", token);
}

/* Look for a row to train on among the first ones. If the whole set has none, it is refused now,
 * before the model is loaded. If later rows may have some, it is a warning, since rows without any
 * are left out. */
static int probe_formatted(struct tune_dataset *d)
{
    int64_t rows = d->count < PROBED_ROWS ? d->count : PROBED_ROWS;
    struct tune_example x = {0};
    struct tune_reasons why = {0};
    int status = 0;
    bool label = false;
    for (int64_t i = 0; status == 0 && i < rows && !label; i++) {
        struct found found = {0};
        status = read_row(d, i, &x, &found);
        label = status == 0 && (d->format.prompts || tune_example_has_label(&x));
        if (status < 0 && (i > 0 || d->skip_bad_rows) && is_bad_row(d)) {
            tune_reasons_add(&why);
            status = 0; /* reported or counted when the row is read */
        }
    }
    tune_example_free(&x);
    TRY(status);
    if (why.count == rows)
        return tune_reasons_refuse(&why, d->rows.path, d->count);
    if (label || why.count > 0)
        return 0;
    char text[sizeof d->warning];
    snprintf(text, sizeof text, "not one of the first %lld rows has a token to train on: their answers are empty, or lie beyond "
             "`max_length` %d; give a larger `max_length`, or `train_on` all", (long long)rows, d->max_length);
    if (rows < d->count) {
        snprintf(d->warning, sizeof d->warning, "%s", text);
        return 0;
    }
    return tune_error_set("%s: %s", d->rows.path, text);
}

/* A heading of one column with a separator in its name is a file parted in another way. */
static int check_heading(const struct tune_dataset *d, const char *field)
{
    const char *name = d->columns.count == 1 ? d->columns.names[0] : "", *found = strpbrk(name, TUNE_SEPARATORS);
    if (!found || (field && !strcmp(field, name)))
        return 0;
    return tune_error_usage("%s: its first line names one column, \"%.200s\", with %s in it, and the lines below do not part by "
                            "that; part all lines by commas, or give `text_field` '%.200s' if it is one column", d->rows.path, name,
                            tune_csv_separator_name(*found), name);
}

/* Choose the format, and for text the field. */
static int settle_format(struct tune_dataset *d, const struct tune_dataset_options *o)
{
    bool automatic = !o->row_format || !strcmp(o->row_format, "auto");
    bool paragraphs = d->rows.format == TUNE_DATASET_TEXT, csv = d->rows.header.text != NULL;
    bool other = !automatic && strcmp(o->row_format, "text");
    if (paragraphs && (o->prompt_template || o->columns || other))
        return tune_error_usage("%s is read as plain text, which has no columns; leave `format`, "
                                "`columns` and `prompt_template` out", d->rows.path);
    bool as_ever = !o->prompt_template && !o->columns && (!o->row_format || !strcmp(o->row_format, "text") ||
                                                         (automatic && (o->text_field || o->response_template)));
    struct tune_dataset_options given = *o;
    if (as_ever || paragraphs)
        given.row_format = "text";
    if (!paragraphs && (!as_ever || csv))
        TRY(tune_columns_find(&d->columns, &d->rows, o->skip_bad_rows));
    if (csv && !o->columns)
        TRY(check_heading(d, o->text_field));
    TRY(tune_format_settle(&d->format, &d->columns, &given, &d->rows));
    d->formatted = d->format.kind != TUNE_FORMAT_TEXT;
    if (d->formatted && o->text_field)
        return tune_error_usage("`text_field` %s is for rows of plain text, and these are %s; "
                                "leave it out, or give `format` text", o->text_field,
                                tune_format_name(&d->format));
    if (o->text_field && o->columns)
        return tune_error_usage("`text_field` %s and `columns` %s both say which column is the "
                                "text; leave one of them out", o->text_field, o->columns);
    d->text_named = o->text_field || o->columns;
    const char *field = o->columns && !d->formatted ? d->format.columns[0] : o->text_field;
    if (field && !(d->text.field = strdup(field)))
        return tune_error_no_memory("a field name");
    return 0;
}

static int check_chunk(const struct tune_dataset *d, const struct tune_dataset_options *o)
{
    if (o->chunk != TUNE_CHUNK_ON)
        return 0;
    if (d->formatted || d->response)
        return tune_error_usage("`chunk` parts rows of plain text, and these are %s; leave it out",
                                d->formatted ? tune_format_name(&d->format) : "a prompt and an answer each");
    return d->max_length >= 2 ? 0 : tune_error_usage("`chunk` makes pieces of `max_length` tokens, at least 2; it is %d", d->max_length);
}

/* Part long texts, if it is asked for or the file is one paragraph. */
static int settle_chunks(struct tune_dataset *d, const struct tune_dataset_options *o)
{
    bool one = d->rows.format == TUNE_DATASET_TEXT && d->rows.count == 1 && !d->response && d->max_length >= 2;
    TRY(check_chunk(d, o));
    if (o->chunk == TUNE_CHUNK_OFF || (o->chunk == TUNE_CHUNK_AUTO && !one))
        return 0;
    d->chunks = (struct tune_chunks){.text = &d->text, .tok = d->tok, .append_id = d->append_id, .max_length = d->max_length};
    TRY(tune_chunks_open(&d->chunks, d->skip_bad_rows));
    d->count = d->chunks.count;
    return 0;
}

static int settle(struct tune_dataset *d, const struct tune_dataset_options *o)
{
    d->skip_bad_rows = o->skip_bad_rows;
    if (o->response_template) {
        if (!*o->response_template)
            return tune_error_usage("the response template is empty; leave it out to train on "
                                    "everything");
        d->response_size = strlen(o->response_template);
        if (!(d->response = strdup(o->response_template)))
            return tune_error_no_memory("the response template");
    }
    if (d->rows.format == TUNE_DATASET_TEXT && o->text_field)
        return tune_error_usage("%s is read as plain text, which has no field \"%s\"; leave "
                                "`text_field` out", d->rows.path, o->text_field);
    TRY(settle_format(d, o));
    TRY(settle_append(d, o));
    d->parted = o->sequences == 1 && d->format.sequences > 1;
    d->count *= d->parted ? d->format.sequences : 1;
    if (d->formatted) {
        TRY(check_chunk(d, o));
        tune_dataset_describe(d, o->limit);
        TRY(probe_formatted(d));
        return *d->warning || o->prompts ? 0 : tune_dataset_watch(d, d->tok, d->append_always, d->warning, sizeof d->warning);
    }
    if (d->rows.format != TUNE_DATASET_TEXT)
        TRY(d->rows.header.text ? tune_text_rows_choose_column(&d->text) : probe(d));
    TRY(settle_chunks(d, o));
    tune_dataset_describe(d, o->limit);
    return 0;
}

int tune_dataset_kind(const char *path, const struct tune_dataset_options *options, enum tune_dataset_kind *kind)
{
    struct tune_rows rows = {0};
    struct tune_columns have = {0};
    struct tune_dataset_options o = *options;
    int status = tune_rows_open(&rows, path, options);
    bool text = status == 0 && rows.format == TUNE_DATASET_TEXT;
    o.prompts = false; /* a format of pairs is one, whether answers are read or not */
    *kind = TUNE_ROWS_TEXTS;
    if (status == 0 && !text)
        status = tune_columns_find(&have, &rows, options->skip_bad_rows);
    if (status == 0 && !text)
        status = tune_format_kind_of(&have, &o, &rows, kind);
    tune_columns_free(&have);
    tune_rows_close(&rows);
    return status;
}

struct tune_dataset *tune_dataset_make(int max_length)
{
    if (max_length < 1) {
        tune_error_usage("max_length is %d tokens, expected at least 1", max_length);
        return NULL;
    }
    struct tune_dataset *d = tune_zeroed(1, sizeof *d, "a dataset");
    if (!d)
        return NULL;
    pthread_mutex_init(&d->lock, NULL);
    d->max_length = max_length;
    d->append_id = -1;
    d->text.rows = &d->rows;
    d->text.columns = &d->columns;
    return d;
}

/* Settle a set whose rows were opened with this status. Where that fails, it is freed. */
static struct tune_dataset *opened(struct tune_dataset *d, int status, const struct tune_dataset_options *options)
{
    d->rows.in_file = d->rows.count;
    if (options->limit > 0 && options->limit < d->rows.count)
        d->rows.count = options->limit;
    d->count = d->rows.count;
    d->stamp = d->rows.stamp;
    if (status == 0 && tune_shards_fingerprint(&d->rows.files, &d->fingerprint) == 0 && settle(d, options) == 0)
        return d;
    tune_dataset_free(d);
    return NULL;
}

struct tune_dataset *tune_dataset_open(const char *path, const struct tune_dataset_options *options,
                                       struct tune_tokenizer *tok)
{
    struct tune_dataset *d = tune_dataset_make(options->max_length);
    if (!d)
        return NULL;
    d->tok = tok;
    return opened(d, tune_rows_open(&d->rows, path, options), options);
}

struct tune_dataset *tune_dataset_open_text(const char *name, const char *rows, size_t size,
                                            const struct tune_dataset_options *options, struct tune_tokenizer *tok)
{
    struct tune_dataset *d = tune_dataset_make(options->max_length);
    if (!d)
        return NULL;
    d->tok = tok;
    return opened(d, tune_rows_open_text(&d->rows, name, rows, size), options);
}

struct tune_dataset *tune_dataset_from(int64_t count, int (*get)(void *context, int64_t row, struct tune_example *x),
                                       void *context, int max_length)
{
    if (count < 1 || count > (int64_t)1 << 52) { /* rows times epochs is computed in doubles */
        tune_error_set("a set of %lld rows, expected from 1 to 2^52", (long long)count);
        return NULL;
    }
    struct tune_dataset *d = tune_dataset_make(max_length);
    if (d) {
        d->count = count;
        d->get = get;
        d->context = context;
        snprintf(d->rows_are, sizeof d->rows_are, "by callbacks");
    }
    return d;
}

void tune_dataset_free(struct tune_dataset *d)
{
    if (!d)
        return;
    for (int k = 0; k < d->set_count; k++)
        tune_dataset_free(d->sets[k]);
    free(d->sets);
    free(d->begins);
    tune_chunks_close(&d->chunks);
    tune_rows_close(&d->rows);
    tune_columns_free(&d->columns);
    tune_format_free(&d->format);
    pthread_mutex_destroy(&d->lock);
    free(d->text.field);
    free(d->response);
    free(d);
}
