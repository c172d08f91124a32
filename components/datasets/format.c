/* format.c - choose the format of a file's rows, and make the text of a row. */
#include "datasets/format.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/print.h"
#include "core/nearest.h"
#include "core/try.h"
#include "datasets/suggest.h"

/* The two prompts of Alpaca, with torchtune's line end after "### Response:". */
static const char *const alpaca[2] = {
    "[prompt]\n"
    "Below is an instruction that describes a task, paired with an input that provides further context. "
    "Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{instruction}\n\n### Input:\n{input}\n\n### Response:\n\n[completion]\n{output}",
    "[prompt]\n"
    "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{instruction}\n\n### Response:\n\n[completion]\n{output}",
};

static const struct known {
    const char *name;
    const char *names[8]; /* of columns; the last `optional` ones may be absent */
    int optional;
    bool train_on[4];     /* values --train-on accepts; the first is the default */
} formats[] = {
    [TUNE_FORMAT_TEXT] = {"text", {"text"}, 0, {[TUNE_TRAIN_ON_COMPLETION] = true, [TUNE_TRAIN_ON_ALL] = true}},
    [TUNE_FORMAT_ALPACA] = {"alpaca", {"instruction", "output", "input", "system", "history"}, 3, {true, false, false, true}},
    [TUNE_FORMAT_INSTRUCT] = {"instruct", {"input", "output", "system", "history"}, 2, {true, false, false, true}},
    [TUNE_FORMAT_ALPACA_CHAT] = {"alpaca-chat", {"instruction", "output", "input", "system", "history"}, 3, {true, false, false, true}},
    [TUNE_FORMAT_PROMPT_COMPLETION] = {"prompt-completion", {"prompt", "completion"}, 0, {true, false, false, true}},
    [TUNE_FORMAT_MESSAGES] = {"messages", {"messages", "tools", "system"}, 2, {false, true, true, true}},
    [TUNE_FORMAT_SHAREGPT] = {"sharegpt", {"conversations", "tools", "system"}, 2, {false, true, true, true}},
    [TUNE_FORMAT_TEMPLATE] = {"prompt-template", {NULL}, 0, {true, false, false, true}},
    [TUNE_FORMAT_MESSAGE_LISTS] = {"prompt-completion", {"prompt", "completion", "tools", "system"}, 2, {true, true, true, true}},
    [TUNE_FORMAT_PREFERENCE] = {"preference", {"chosen", "rejected", "prompt", "system"}, 2, {true}},
    [TUNE_FORMAT_SHAREGPT_PREFERENCE] = {"sharegpt-preference", {"chosen", "rejected", "conversations", "tools", "system"}, 2, {true}},
    [TUNE_FORMAT_ALPACA_PREFERENCE] = {"alpaca-preference",
                                       {"instruction", "input", "chosen", "rejected", "output", "system", "history"}, 6, {true}},
    [TUNE_FORMAT_INSTRUCT_PREFERENCE] = {"instruct-preference", {"chosen", "rejected", "prompt", "system", "history"}, 2, {true}},
    [TUNE_FORMAT_PREFERENCE_LISTS] = {"preference", {"chosen", "rejected", "prompt", "tools", "system"}, 3, {true}},
    [TUNE_FORMAT_UNPAIRED] = {"unpaired", {"completion", "label", "prompt", "system"}, 1, {true}},
    [TUNE_FORMAT_UNPAIRED_TURNS] = {"unpaired", {"completion", "label", "prompt", "system"}, 1, {true}},
    [TUNE_FORMAT_UNPAIRED_LISTS] = {"unpaired", {"completion", "label", "prompt", "tools", "system"}, 2, {true}},
};
static const char *const train_on[] = {"completion", "assistant", "last", "all"};

enum { FIRST_ROWS = 100 }; /* rows examined to recognise a format */

/* The date that strftime_now gives to chat templates. It is fixed, so that rows have the same
 * tokens in every epoch, on every day and after --resume. */
#define CHAT_DATE INT64_C(1721952000) /* 26 July 2024 */

const char *tune_format_name(const struct tune_format *f)
{
    return formats[f->kind].name;
}

const char *tune_format_train_on(const struct tune_format *f)
{
    return train_on[f->train_on];
}

/* ---- which format ---- */

/* Split "instruction=question,output=answer" into f->map: name, NUL, column, NUL, ... */
static int read_map(struct tune_format *f, const char *text)
{
    if (!(f->map = tune_zeroed(1, strlen(text) + 2, "the names of columns"))) /* ends in an empty name */
        return -1;
    strcpy(f->map, text);
    for (char *p = f->map; *p;) {
        char *equal = p + strcspn(p, "=,"), *end = equal + strcspn(equal, ",");
        bool last = !*end;
        if (*equal != '=' || equal == p || equal + 1 == end)
            return tune_error_usage("`columns` \"%s\": expected NAME=COLUMN,...: what the format "
                                    "calls it, and what the file does", text);
        *equal = *end = 0;
        p = end + !last;
    }
    return 0;
}

/* The file's column for a name of the format. */
static const char *column_of(const struct tune_format *f, const char *name)
{
    for (const char *p = f->map; p && *p;) {
        const char *column = p + strlen(p) + 1;
        if (!strcmp(p, name))
            return column;
        p = column + strlen(column) + 1;
    }
    return name;
}

static bool has(const struct tune_format *f, const struct tune_columns *have, const char *name)
{
    return tune_columns_has(have, column_of(f, name));
}

/* The type of a column. The first readable row that has a value decides; -1: none has. */
static int type_of(const struct tune_format *f, const struct tune_columns *have, const struct tune_rows *rows, const char *name)
{
    struct tune_row_values v = {0};
    const char *column = column_of(f, name);
    int type = -1;
    for (int64_t i = 0; i < rows->count && i < FIRST_ROWS; i++) {
        struct tune_file_row row = tune_rows_get(rows, i);
        if (row.size > TUNE_ROW_LIMIT || tune_row_values_read(&v, rows, have, &row, &column, 1) < 0 || v.at[0].type <= TUNE_JSON_NULL)
            continue;
        type = v.at[0].type;
        break;
    }
    tune_error_clear();
    tune_row_values_free(&v);
    return type;
}

/* Recognise the format of preferences. wanted: labelled sequences of a row. TUNE_FORMAT_TEXT: there are none. */
static enum tune_format_kind recognise_preferences(const struct tune_format *f, const struct tune_columns *have, const struct tune_rows *rows,
                                                   int wanted)
{
    bool both = has(f, have, "chosen") && has(f, have, "rejected"), outputs = wanted && has(f, have, "output");
    if (wanted == 1 && outputs) /* it may be a single answer, whose label is elsewhere */
        outputs = type_of(f, have, rows, "output") == TUNE_JSON_ARRAY;
    if (wanted == 1 && has(f, have, "completion") && has(f, have, "label"))
        return TUNE_FORMAT_UNPAIRED;
    if (has(f, have, "instruction") && (both || outputs))
        return TUNE_FORMAT_ALPACA_PREFERENCE;
    if (both)
        return has(f, have, "conversations") ? TUNE_FORMAT_SHAREGPT_PREFERENCE : TUNE_FORMAT_PREFERENCE;
    return TUNE_FORMAT_TEXT;
}

/* Recognise the format. A more specific format wins over a column "text" beside it. */
static enum tune_format_kind recognise(const struct tune_format *f, const struct tune_columns *have, const struct tune_rows *rows, int wanted)
{
    enum tune_format_kind kind = f->prompts ? TUNE_FORMAT_TEXT : recognise_preferences(f, have, rows, wanted);
    bool answer = !f->prompts; /* whether a format needs its column of answers */
    if (kind != TUNE_FORMAT_TEXT)
        return kind;
    if (has(f, have, "messages"))
        return TUNE_FORMAT_MESSAGES;
    if (has(f, have, "conversations"))
        return TUNE_FORMAT_SHAREGPT;
    if (has(f, have, "prompt") && (has(f, have, "completion") || !answer))
        return TUNE_FORMAT_PROMPT_COMPLETION;
    if (has(f, have, "instruction") && (has(f, have, "output") || !answer))
        return TUNE_FORMAT_ALPACA;
    return has(f, have, "input") && has(f, have, "output") ? TUNE_FORMAT_INSTRUCT : TUNE_FORMAT_TEXT;
}

static int choose(struct tune_format *f, const struct tune_columns *have, const struct tune_rows *rows, const struct tune_dataset_options *o)
{
    f->recognised = !o->row_format || !strcmp(o->row_format, "auto");
    if (o->prompt_template) {
        if (!f->recognised)
            return tune_error_usage("`format` %s and `prompt_template` %s both say what rows look "
                                    "like; leave one of them out", o->row_format,
                                    o->prompt_template);
        f->recognised = false;
        f->kind = TUNE_FORMAT_TEMPLATE;
        return tune_prompt_template_open(&f->templates[0], o->prompt_template);
    }
    if (f->recognised) {
        f->kind = recognise(f, have, rows, o->sequences);
        return 0;
    }
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) /* the first of several with a name */
        if (i != TUNE_FORMAT_TEMPLATE && !strcmp(o->row_format, formats[i].name)) {
            f->kind = (enum tune_format_kind)i;
            if (o->prompts && f->kind >= TUNE_FORMAT_PREFERENCE) /* a prompt is read without its answers */
                f->kind = recognise(f, have, rows, 0);
            return 0;
        }
    return tune_error_usage("\"%s\" is no format of rows; expected auto, text, alpaca, alpaca-chat, instruct, "
                            "prompt-completion, messages or sharegpt; of pairs: preference, sharegpt-preference, "
                            "alpaca-preference, instruct-preference; of labelled answers: unpaired", o->row_format);
}

/* Suggest what to type for the pair in the first row. */
static bool suggest_pairs(const struct tune_rows *rows, char *text, size_t size)
{
    struct tune_json j;
    if (rows->count == 0)
        return false;
    struct tune_file_row row = tune_rows_get(rows, 0);
    if (row.size > TUNE_ROW_LIMIT || row.size == 0 || *row.text != '{')
        return false;
    tune_json_start(&j, rows->path, row.text, row.size, row.line);
    j.python = true;
    bool found = tune_columns_suggest_pairs(text, size, &j);
    tune_json_free(&j);
    return found;
}

/* Single answers with a label are for a loss of its own. */
static int check_unpaired(const struct tune_format *f, const struct tune_columns *have, const struct tune_dataset_options *o,
                          const struct tune_rows *rows)
{
    bool columns = f->recognised && has(f, have, "prompt") && has(f, have, "completion") && has(f, have, "label") &&
                   type_of(f, have, rows, "label") == TUNE_JSON_BOOL;
    char list[512];
    if (o->sequences == 1 && f->sequences == 0)
        return tune_error_usage("%s: expected answers with a label, the columns prompt, completion and label (true or false); or pairs "
                                "of answers, the columns chosen and rejected. It has: %s (`columns` prompt=COLUMN,completion=COLUMN,"
                                "label=COLUMN says which are meant)", rows->path, tune_columns_list(have, list, sizeof list));
    if (o->sequences == 1 || (f->sequences != 1 && !columns))
        return 0;
    return tune_error_usage("%s: these rows are unpaired preferences (prompt, completion, label): %s", rows->path, o->sequences > 0
                            ? "`loss` kto trains on them; other losses compare the columns chosen and rejected"
                            : "finetune_dpo trains on them, with its loss kto. `format` prompt-completion trains on every completion, also "
                              "on those labelled false");
}

/* Pairs are for recipes that compare two answers, and those recipes read nothing else. */
static int check_pairs(const struct tune_format *f, const struct tune_columns *have, const struct tune_dataset_options *o,
                       const struct tune_rows *rows)
{
    char list[512];
    if (f->prompts)
        return 0;
    TRY(check_unpaired(f, have, o, rows));
    if (f->sequences > 0 && o->sequences == 0)
        return tune_error_usage("%s: these rows are preferences, pairs of a chosen and a rejected answer: finetune_dpo trains on "
                                "them%s", rows->path, has(f, have, "prompt") ? ". To train on the chosen answers alone: `format` "
                                "prompt-completion `columns` completion=chosen"
                                : has(f, have, "chosen") && type_of(f, have, rows, "chosen") == TUNE_JSON_ARRAY
                                ? ". To train on the chosen conversations alone: `format` messages `columns` messages=chosen" : "");
    if (f->recognised && f->kind == TUNE_FORMAT_ALPACA && o->sequences == 0 && !o->references && type_of(f, have, rows, "output") == TUNE_JSON_ARRAY)
        return tune_error_usage("%s: these rows are preferences, an instruction and a list of two outputs: finetune_dpo trains on "
                                "them", rows->path);
    char type[1300];
    if (o->sequences > 0 && f->sequences == 0 && suggest_pairs(rows, type, sizeof type))
        return tune_error_usage("%s: expected preferences, the columns chosen and rejected. It has: %s; give %s", rows->path,
                                tune_columns_list(have, list, sizeof list), type);
    if (o->sequences > 0 && f->sequences == 0)
        return tune_error_usage("%s: expected preferences, pairs of answers: the columns chosen and rejected, beside prompt, "
                                "conversations or instruction; or instruction and a list of two outputs. It has: %s (`columns` "
                                "chosen=COLUMN,rejected=COLUMN says which are meant)", rows->path,
                                tune_columns_list(have, list, sizeof list));
    return 0;
}

/* The column that holds the prompt of preferences under a name of other sets. NULL: none. */
static const char *stand_in(const struct tune_format *f, const struct tune_columns *have, const struct tune_rows *rows)
{
    static const char *const names[] = {"question", "instruction", "input", "query"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tune_columns_has(have, names[i]) && type_of(f, have, rows, names[i]) == TUNE_JSON_STRING)
            return names[i];
    return NULL;
}

/* Settle what the prompt of preferences is, and whether they are texts or conversations. */
static void settle_prompt(struct tune_format *f, const struct tune_columns *have, const struct tune_dataset_options *o,
                          const struct tune_rows *rows)
{
    int answers = type_of(f, have, rows, "chosen");
    bool alpaca_kind = f->kind == TUNE_FORMAT_ALPACA_PREFERENCE;
    if (f->kind == TUNE_FORMAT_UNPAIRED) {
        answers = type_of(f, have, rows, "completion");
        f->kind = answers == TUNE_JSON_ARRAY || answers == TUNE_JSON_OBJECT ? TUNE_FORMAT_UNPAIRED_LISTS
                  : o->chat_template ? TUNE_FORMAT_UNPAIRED_TURNS : f->kind;
        return;
    }
    if (!has(f, have, alpaca_kind ? "instruction" : "prompt"))
        f->stand_in = stand_in(f, have, rows);
    if (f->kind != TUNE_FORMAT_PREFERENCE)
        return;
    if (answers == TUNE_JSON_ARRAY || answers == TUNE_JSON_OBJECT)
        f->kind = TUNE_FORMAT_PREFERENCE_LISTS;
    else if (o->chat_template && (f->stand_in || has(f, have, "prompt")))
        f->kind = TUNE_FORMAT_INSTRUCT_PREFERENCE;
    else if (f->stand_in && f->recognised)
        f->kind = tune_chat_template_is_in(o->model_folder) ? TUNE_FORMAT_INSTRUCT_PREFERENCE : TUNE_FORMAT_ALPACA_PREFERENCE;
}

/* Set the names of the format's columns, in the order in which values are read. */
static int name_columns(struct tune_format *f)
{
    const struct known *k = &formats[f->kind];
    if (f->kind == TUNE_FORMAT_ALPACA || f->kind == TUNE_FORMAT_ALPACA_PREFERENCE)
        for (int i = 0; i < 2; i++)
            TRY(tune_prompt_template_parse(&f->templates[i], "alpaca", alpaca[i], strlen(alpaca[i])));
    f->optional = k->optional;
    if (f->kind == TUNE_FORMAT_TEMPLATE) {
        f->count = f->templates[0].slot_count;
        memcpy(f->names, f->templates[0].slots, (size_t)f->count * sizeof *f->names);
    } else {
        while (f->count < 8 && k->names[f->count]) {
            f->names[f->count] = k->names[f->count];
            f->count++;
        }
    }
    for (int i = 0; i < f->count; i++) {
        bool prompt = !strcmp(f->names[i], f->kind == TUNE_FORMAT_ALPACA_PREFERENCE ? "instruction" : "prompt");
        f->columns[i] = f->stand_in && prompt && f->sequences > 0 ? f->stand_in : column_of(f, f->names[i]);
    }
    return 0;
}

/* Note the optional columns that are something else than their names say. `system` may be no text,
 * `history` no list, and `input` may be the prompt already. */
static void leave_out(struct tune_format *f, const struct tune_columns *have, const struct tune_rows *rows)
{
    for (int i = f->count - f->optional; i < f->count; i++) {
        bool system = !strcmp(f->names[i], "system"), history = !strcmp(f->names[i], "history");
        if (f->kind == TUNE_FORMAT_TEMPLATE || strcmp(f->names[i], f->columns[i]))
            continue; /* the caller named it */
        int type = (system || history) && tune_columns_has(have, f->names[i]) ? type_of(f, have, rows, f->names[i]) : -1;
        f->left_out[i] = (system && type >= 0 && type != TUNE_JSON_STRING) || (history && type >= 0 && type != TUNE_JSON_ARRAY) ||
                         (!strcmp(f->names[i], "input") && f->stand_in && !strcmp(f->stand_in, "input"));
    }
}

bool tune_format_reads(const struct tune_format *f, const char *column)
{
    size_t size = strlen(column);
    for (int i = 0; i < f->count; i++)
        if (!f->left_out[i] && strncmp(f->columns[i], column, size) == 0 && (!f->columns[i][size] || f->columns[i][size] == '.'))
            return true;
    return false;
}

/* Texts without a column for the prompt: what both answers begin with is the prompt. If they begin
 * differently and another column of text is there, that one may be the prompt. */
static int check_prompt(const struct tune_format *f, const struct tune_columns *have, const struct tune_rows *rows)
{
    struct tune_row_values v = {0};
    char list[512] = "";
    int64_t pairs = 0, alike = 0;
    bool given = has(f, have, "prompt") || f->stand_in || has(f, have, "system");
    if (f->kind != TUNE_FORMAT_PREFERENCE || !f->recognised || given)
        return 0;
    for (int64_t i = 0; i < rows->count && i < FIRST_ROWS; i++) {
        struct tune_file_row row = tune_rows_get(rows, i);
        if (row.size > TUNE_ROW_LIMIT || tune_row_values_read(&v, rows, have, &row, f->columns, 2) < 0 ||
            v.at[0].type != TUNE_JSON_STRING || v.at[1].type != TUNE_JSON_STRING)
            continue;
        pairs++;
        alike += tune_pieces_beginning(v.at[0].text, v.at[1].text) > 0;
    }
    tune_row_values_free(&v);
    tune_error_clear();
    for (int i = 0; i < have->count; i++)
        if (!tune_format_reads(f, have->names[i]) && type_of(f, have, rows, have->names[i]) == TUNE_JSON_STRING)
            tune_append_item(list, sizeof list, "%.100s", have->names[i]);
    if (alike * 10 >= pairs * 9 || !*list)
        return 0;
    tune_blank_controls(list);
    return tune_error_usage("%s: the prompt is not known: the two answers begin differently in %lld of the first %lld rows, and these "
                            "columns of text are not read: %s; give `columns` prompt=NAME, or `format` preference to train without "
                            "a prompt", rows->path, (long long)(pairs - alike), (long long)pairs, list);
}

/* Check that the file has the column, or the one that a path begins in. */
static int check_column(const struct tune_columns *have, const char *column)
{
    char first[256], list[512], hint[TUNE_HINT];
    snprintf(first, sizeof first, "%.*s", (int)strcspn(column, "."), column);
    if (have->count == 0 || tune_columns_has(have, column) || tune_columns_has(have, first))
        return 0;
    return tune_error_usage("`columns`: the file has no column \"%s\"%s; it has: %s", column,
                            tune_nearest_hint(first, (const char *const *)have->names, have->count, hint),
                            tune_columns_list(have, list, sizeof list));
}

/* True if preferences have a column of that name. */
static bool is_of_preferences(const char *name)
{
    for (size_t k = TUNE_FORMAT_PREFERENCE; k < sizeof formats / sizeof *formats; k++)
        for (int i = 0; i < 8 && formats[k].names[i]; i++)
            if (!strcmp(formats[k].names[i], name))
                return true;
    return false;
}

/* Check that every name in --columns belongs to the format. Where only prompts are read, it may be of their answers. */
static int check_map(const struct tune_format *f, const struct tune_columns *have)
{
    char names[1024] = "";
    for (int i = 0; i < f->count; i++)
        tune_append_item(names, sizeof names, "%s", f->names[i]);
    for (const char *p = f->map; p && *p;) {
        const char *column = p + strlen(p) + 1;
        int i = 0;
        if (column_of(f, p) != column)
            return tune_error_usage("`columns`: \"%s\" stands before a '=' twice; leave one of "
                                    "them out", p);
        while (i < f->count && strcmp(f->names[i], p))
            i++;
        if (i == f->count && f->prompts && is_of_preferences(p)) {
            p = column + strlen(column) + 1;
            continue;
        }
        if (i == f->count && tune_columns_has(have, p))
            return tune_error_usage("`columns`: \"%s\" is a column of the file, and stands behind "
                                    "the '='; before it one of: %s (the format is %s; `format` "
                                    "says another)", p, names, tune_format_name(f));
        if (i == f->count)
            TRY(check_column(have, column));
        if (i == f->count)
            return tune_error_usage("`columns`: \"%s\" is nothing that the format %s reads; "
                                    "expected one of: %s (before the '=', the file's column "
                                    "behind it)", p, tune_format_name(f), names);
        p = column + strlen(column) + 1;
    }
    return 0;
}

/* True if column i is read only for the answer. */
static bool is_answer(const struct tune_format *f, int i)
{
    const struct tune_prompt_template *t = &f->templates[0];
    if (f->kind != TUNE_FORMAT_TEMPLATE)
        return !strcmp(f->names[i], "output") || !strcmp(f->names[i], "completion");
    for (int k = 0; k < t->count && !t->parts[k].trained; k++)
        if (t->parts[k].slot >= 0 && !strcmp(t->parts[k].text, f->names[i]))
            return false;
    return true;
}

/* True if an optional column was named by a path into others, such as meta.system, and none of the
 * first rows has it. Required columns are bad rows then. */
static bool leads_nowhere(const struct tune_format *f, const struct tune_columns *have, const struct tune_rows *rows, int i)
{
    return i >= f->count - f->optional && strcmp(f->columns[i], f->names[i]) && strchr(f->columns[i], '.') &&
           type_of(f, have, rows, f->names[i]) < 0;
}

static int check_columns(const struct tune_format *f, const struct tune_columns *have, const struct tune_rows *rows)
{
    char list[512];
    for (int i = 0; i < f->count; i++) {
        /* a column named in --columns must exist */
        bool mapped = strcmp(f->columns[i], f->names[i]) != 0;
        if (leads_nowhere(f, have, rows, i))
            return tune_error_usage("%s: none of the first rows has a value at \"%.200s\" (`columns` %s=%.200s); its columns are: %s", rows->path,
                                    f->columns[i], f->names[i], f->columns[i], tune_columns_list(have, list, sizeof list));
        if (tune_columns_has(have, f->columns[i]) || (i >= f->count - f->optional && !mapped) ||
            (f->prompts && is_answer(f, i)))
            continue;
        const char *nearest = tune_nearest(f->columns[i], (const char *const *)have->names, have->count, NULL);
        return tune_error_usage("%s: no column \"%.200s\" for %s's %s%.200s%s; it has: %s%s%.100s%s "
                                "(`columns` %.100s=COLUMN says which one is meant)", rows->path, f->columns[i], tune_format_name(f),
                                f->kind == TUNE_FORMAT_TEMPLATE ? "slot {" : "\"", f->names[i],
                                f->kind == TUNE_FORMAT_TEMPLATE ? "}" : "\"",
                                tune_columns_list(have, list, sizeof list),
                                nearest ? "; the nearest is \"" : "", nearest ? nearest : "", nearest ? "\"" : "",
                                mapped ? f->names[i] : f->columns[i]);
    }
    return 0;
}

static int settle_train_on(struct tune_format *f, const struct tune_dataset_options *o)
{
    const struct known *k = &formats[f->kind];
    bool text = f->kind == TUNE_FORMAT_TEXT;
    char names[64] = "";
    int i = 0;
    if (!o->train_on || !strcmp(o->train_on, "default")) {
        while (!k->train_on[i] || (text && i == TUNE_TRAIN_ON_COMPLETION && !o->response_template))
            i++;
        f->train_on = (enum tune_train_on)i;
        return 0;
    }
    while (i < 4 && strcmp(o->train_on, train_on[i]))
        i++;
    if (i < 4 && k->train_on[i] && !(text && (i == TUNE_TRAIN_ON_COMPLETION) != (o->response_template != NULL))) {
        f->train_on = (enum tune_train_on)i;
        return 0;
    }
    if (text && i < 4 && k->train_on[i])
        return tune_error_usage(i == TUNE_TRAIN_ON_ALL
                                ? "`train_on` all and `response_template` contradict each other; "
                                  "leave one of them out"
                                : "`train_on` completion: rows of plain text do not say where "
                                  "theirs begins; give `response_template` TEXT, or `format`");
    for (int n = 0; n < 4; n++)
        if (k->train_on[n])
            tune_append_item(names, sizeof names, "%s", train_on[n]);
    return tune_error_usage("`train_on` %s has no meaning for rows of the format %s; expected one "
                            "of: %s", o->train_on, tune_format_name(f), names);
}

static int open_chat(struct tune_format *f, const struct tune_dataset_options *o, const char *path)
{
    bool conversations = f->kind == TUNE_FORMAT_INSTRUCT || f->kind == TUNE_FORMAT_ALPACA_CHAT ||
                         f->kind == TUNE_FORMAT_MESSAGES || f->kind == TUNE_FORMAT_SHAREGPT || f->kind == TUNE_FORMAT_MESSAGE_LISTS || f->kind == TUNE_FORMAT_SHAREGPT_PREFERENCE ||
                         f->kind == TUNE_FORMAT_INSTRUCT_PREFERENCE || f->kind == TUNE_FORMAT_PREFERENCE_LISTS ||
                         f->kind == TUNE_FORMAT_UNPAIRED_TURNS || f->kind == TUNE_FORMAT_UNPAIRED_LISTS;
    if (!conversations && !o->chat_template)
        return 0;
    if (!conversations)
        return tune_error_usage("%s: `chat_template` writes conversations, and these rows of the "
                                "format %s are none; leave it out, or give another `format`%s",
                                path, tune_format_name(f),
                                f->kind == TUNE_FORMAT_ALPACA ? ", such as alpaca-chat" : "");
    f->chat = tune_chat_template_open(o->model_folder, o->chat_template, o->end_token);
    if (f->chat) {
        tune_chat_template_date(f->chat, CHAT_DATE);
        return 0;
    }
    return tune_error_prefix("%s: its rows are conversations (the format %s), and need a chat template: ", path,
                             tune_format_name(f));
}

int tune_format_settle(struct tune_format *f, const struct tune_columns *have, const struct tune_dataset_options *o,
                       const struct tune_rows *rows)
{
    memset(f, 0, sizeof *f);
    f->prompts = o->prompts;
    f->references = o->references;
    f->strict = o->strict;
    if (o->columns)
        TRY(read_map(f, o->columns));
    TRY(choose(f, have, rows, o));
    f->sequences = f->kind >= TUNE_FORMAT_UNPAIRED ? 1 : f->kind >= TUNE_FORMAT_PREFERENCE ? 2 : 0;
    TRY(check_pairs(f, have, o, rows));
    if (f->kind == TUNE_FORMAT_PROMPT_COMPLETION && type_of(f, have, rows, "prompt") == TUNE_JSON_ARRAY)
        f->kind = TUNE_FORMAT_MESSAGE_LISTS;
    if (f->sequences > 0)
        settle_prompt(f, have, o, rows);
    TRY(name_columns(f));
    TRY(check_map(f, have));
    if (f->kind != TUNE_FORMAT_TEXT)
        TRY(check_columns(f, have, rows));
    leave_out(f, have, rows);
    TRY(check_prompt(f, have, rows));
    if ((o->append_token || o->end_token) && (!o->append_token || strcmp(o->append_token, "none")) &&
        !(f->end = strdup(o->append_token ? o->append_token : o->end_token)))
        return tune_error_no_memory("the end token");
    TRY(settle_train_on(f, o));
    if (f->kind != TUNE_FORMAT_TEXT && o->response_template)
        return tune_error_usage("`response_template` looks for text in rows of plain text; rows "
                                "of the format %s say what is trained", tune_format_name(f));
    return open_chat(f, o, rows->path);
}

/* True if rows have a list of choices, and no text that is the answer. */
static bool has_choices(const struct tune_format *f, const struct tune_columns *have, const struct tune_rows *rows)
{
    static const char *const lists[] = {"choices", "options", "endings"}, *const answers[] = {"completion", "output", "text"};
    bool found = false;
    for (size_t i = 0; i < sizeof lists / sizeof *lists && !found; i++) {
        int type = tune_columns_has(have, lists[i]) ? type_of(f, have, rows, lists[i]) : -1;
        found = type == TUNE_JSON_ARRAY || type == TUNE_JSON_OBJECT;
    }
    for (size_t i = 0; i < sizeof answers / sizeof *answers && found; i++)
        found = !has(f, have, answers[i]);
    return found;
}

int tune_format_kind_of(const struct tune_columns *have, const struct tune_dataset_options *o, const struct tune_rows *rows,
                        enum tune_dataset_kind *kind)
{
    struct tune_format f = {.prompts = true};
    int status = o->columns ? read_map(&f, o->columns) : 0;
    if (status == 0)
        status = choose(&f, have, rows, o);
    bool pairs = f.kind >= TUNE_FORMAT_PREFERENCE && f.kind < TUNE_FORMAT_UNPAIRED;
    if (status == 0 && f.recognised) { /* an instruction with one output is no pair */
        bool both = has(&f, have, "chosen") && has(&f, have, "rejected");
        pairs = both || (has(&f, have, "instruction") && has(&f, have, "output") && type_of(&f, have, rows, "output") == TUNE_JSON_ARRAY);
    }
    bool choices = status == 0 && f.recognised && !pairs && f.kind != TUNE_FORMAT_MESSAGES && f.kind != TUNE_FORMAT_SHAREGPT &&
                   has_choices(&f, have, rows);
    *kind = choices ? TUNE_ROWS_CHOICES : pairs ? TUNE_ROWS_PAIRS : f.kind == TUNE_FORMAT_TEXT ? TUNE_ROWS_TEXTS : TUNE_ROWS_ANSWERS;
    tune_format_free(&f);
    return status;
}

void tune_format_free(struct tune_format *f)
{
    tune_prompt_template_free(&f->templates[0]);
    tune_prompt_template_free(&f->templates[1]);
    tune_chat_template_free(f->chat);
    free(f->map);
    free(f->end);
    memset(f, 0, sizeof *f);
}
