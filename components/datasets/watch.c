/* watch.c - warn at the start about templates that do not fit the model's tokenizer. */
#include <string.h>

#include "core/try.h"
#include "core/print.h"
#include "datasets/format.h"
#include "tokenizers/tokenizer.h"

enum { WATCHED_ROWS = 100, WATCHED_BYTES = 1 << 20, SPELLING = 64 };

static const char unknown[] = ": special tokens to the template, but none to this tokenizer, which cuts them into pieces; take a "
                              "template that the model was trained with";

/* The size of the special token's spelling at the start of [at, end), or 0. */
static size_t special_size(const char *at, const char *end)
{
    static const char *const others[] = {"<s>", "</s>", "<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"};
    const char *p = at + 2;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        size_t size = strlen(others[i]);
        if ((size_t)(end - at) >= size && memcmp(at, others[i], size) == 0)
            return size;
    }
    if (end - at < 5 || at[0] != '<' || at[1] != '|')
        return 0;
    while (p < end && p - at < SPELLING - 2 && *p && !strchr("<>| \t\r\n", *p))
        p++;
    return p > at + 2 && end - p >= 2 && p[0] == '|' && p[1] == '>' ? (size_t)(p + 2 - at) : 0;
}

/* Add the spelling to the warning, once, unless the tokenizer encodes it as one token. */
static int watch_token(struct tune_tokenizer *tok, const char *text, int size, struct tune_encoding *e, char *warning, size_t room)
{
    char spelling[SPELLING + 1];
    TRY(tune_tokenizer_encode(tok, text, (size_t)size, 0, e));
    snprintf(spelling, sizeof spelling, "%.*s", size, text);
    if (e->count != 1 && !strstr(warning, spelling) && strlen(warning) + (size_t)size + sizeof unknown + 2 < room)
        tune_append_item(warning, room, "%s", spelling);
    return 0;
}

/* Check all text of a row that the template wrote. */
static int watch_row(struct tune_tokenizer *tok, const struct tune_pieces *p, struct tune_encoding *e, char *warning, size_t room)
{
    for (size_t begin = 0, end, size; begin < p->size; begin = end) {
        for (end = begin + 1; end < p->size && p->data[end] == p->data[begin];)
            end++;
        for (size_t at = begin; !p->data[begin] && at < end; at += size ? size : 1)
            if ((size = special_size(p->text + at, p->text + end)) > 0)
                TRY(watch_token(tok, p->text + at, (int)size, e, warning, room));
    }
    return 0;
}

/* True if an assistant's turn ends without an end token. */
static bool endless(const struct tune_pieces *p)
{
    size_t begin = 0;
    for (int i = 0; p->whole && i < p->count; begin = p->at[i++].end)
        if (p->at[i].trained && p->at[i].end > begin && p->data[p->at[i].end - 1])
            return true;
    return false;
}

int tune_dataset_watch(const struct tune_dataset *d, struct tune_tokenizer *tok, bool ended, char *warning, size_t size)
{
    struct tune_pieces p = {0};
    struct tune_encoding e = {0};
    int status = 0;
    bool never = false;
    size_t watched = 0;
    *warning = 0;
    for (int64_t i = 0; status == 0 && i < tune_dataset_rows(d) && i < WATCHED_ROWS && watched < WATCHED_BYTES; i++) {
        if (tune_dataset_pieces(d, i, &p) < 0) {
            tune_error_clear(); /* a bad row is reported or counted when it is read */
            continue;
        }
        watched += p.size;
        status = watch_row(tok, &p, &e, warning, size);
        never = never || (!ended && endless(&p));
    }
    tune_pieces_free(&p);
    tune_encoding_free(&e);
    if (*warning || never)
        tune_append(warning, size, "%s", *warning ? unknown : "the chat template writes nothing behind what the assistant "
                 "says: the model cannot learn to stop; `append_token` TOKEN ends the last turn");
    return status;
}
