/* print_answer.c - an answer in JSON as a table. */
#include <cjson/cJSON.h>
#include <langinfo.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/error.h"
#include "core/print.h"
#include "core/try.h"
#include "verbs.h"
#include "views/table.h"

enum { COLUMNS = 64, LONG = 100 };

/* True for a time in seconds since 1970; text becomes the date. */
static bool is_date(const char *name, const cJSON *item, char text[64])
{
    static const char *const names[] = {"started", "ended", "created", "modified", "time"};
    bool named = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        named = named || !strcmp(name, names[i]);
    if (!named || !cJSON_IsNumber(item) || !(item->valuedouble > 1e9 && item->valuedouble < 1e11))
        return false;
    time_t at = (time_t)item->valuedouble;
    struct tm local;
    localtime_r(&at, &local);
    strftime(text, 64, "%Y-%m-%d %H:%M", &local);
    return true;
}

static const char *number_format(double value)
{
    return value == floor(value) && fabs(value) < 1e15 ? "%.0f" : "%.6g";
}

static void add_cell(struct tune_table *t, const char *name, const cJSON *item)
{
    char text[64];
    if (is_date(name, item, text)) {
        tune_table_shown(t, item->valuedouble, text);
    } else if (cJSON_IsNumber(item)) {
        tune_table_number(t, item->valuedouble, number_format(item->valuedouble));
    } else if (cJSON_IsString(item) || !item || cJSON_IsNull(item)) {
        tune_table_text(t, cJSON_GetStringValue(item));
    } else if (cJSON_IsBool(item)) {
        tune_table_text(t, cJSON_IsTrue(item) ? "yes" : "no");
    } else {
        char *json = cJSON_PrintUnformatted(item);
        tune_table_text(t, json);
        cJSON_free(json);
    }
}

/* ---- rows of objects ---- */

/* The columns: members of the rows that are no list and no object. The members of `values`, the options that differ, are
 * columns, too, but where a command shows them. */
struct columns {
    const char *names[COLUMNS];
    int count;
};

static void add_columns(struct columns *c, const cJSON *row, bool inner)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, row) {
        int i = 0;
        if (!strcmp(item->string, "values") && !inner && !cJSON_GetObjectItemCaseSensitive(row, "command"))
            add_columns(c, item, true);
        if (cJSON_IsNull(item) || cJSON_IsObject(item) || cJSON_IsArray(item))
            continue;
        while (i < c->count && strcmp(c->names[i], item->string))
            i++;
        if (i == c->count && c->count < COLUMNS)
            c->names[c->count++] = item->string;
    }
}

static const cJSON *cell_of(const cJSON *row, const char *name)
{
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(row, name);
    if (!found)
        found = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(row, "values"), name);
    return found && !cJSON_IsObject(found) && !cJSON_IsArray(found) ? found : NULL;
}

static int print_table(struct tune_table *t, int width, FILE *out)
{
    int status = t ? tune_table_print(t, "table", width, !strcmp(nl_langinfo(CODESET), "UTF-8") ? "\u2026" : "...", out) : tune_error_no_memory("a table");
    tune_table_free(t);
    return status;
}

static int print_objects(const cJSON *rows, int width, FILE *out)
{
    struct columns c = {.count = 0};
    const cJSON *row;
    cJSON_ArrayForEach(row, rows)
        add_columns(&c, row, false);
    if (c.count == 0)
        return 0;
    struct tune_table *t = tune_table_new(c.names, c.count);
    cJSON_ArrayForEach(row, rows)
        for (int i = 0; t && i < c.count; i++)
            add_cell(t, c.names[i], cell_of(row, c.names[i]));
    return print_table(t, width, out);
}

/* {columns: [{name}], rows: [[...]]}, as answers of spaces are. */
static int print_lists(const cJSON *columns, const cJSON *rows, int width, FILE *out)
{
    const char *names[COLUMNS];
    int count = 0;
    const cJSON *item, *row;
    cJSON_ArrayForEach(item, columns) {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "name"));
        if (count < COLUMNS)
            names[count++] = name ? name : "";
    }
    if (count == 0)
        return 0;
    struct tune_table *t = tune_table_new(names, count);
    cJSON_ArrayForEach(row, rows)
        for (int i = 0; t && i < count; i++)
            add_cell(t, names[i], cJSON_GetArrayItem(row, i));
    return print_table(t, width, out);
}

/* ---- the whole ---- */

static void print_line(const char *name, const cJSON *item, FILE *out)
{
    char date[64], *json = NULL;
    tune_print_line_of(out, name);
    fputs(": ", out);
    if (cJSON_IsString(item)) {
        tune_print_plain(out, item->valuestring, "\n");
    } else if (is_date(name, item, date)) {
        fputs(date, out);
    } else if (cJSON_IsNumber(item)) {
        fprintf(out, number_format(item->valuedouble), item->valuedouble);
    } else if ((json = cJSON_PrintUnformatted(item)) && strlen(json) > LONG) {
        fprintf(out, "%d members, which --json shows", cJSON_GetArraySize(item));
    } else {
        tune_print_plain(out, json ? json : "", "");
    }
    cJSON_free(json);
    fputc('\n', out);
}

static bool is_rows(const cJSON *item)
{
    return cJSON_IsArray(item) && cJSON_IsObject(item->child);
}

int studio_print_answer(const cJSON *json, int width, FILE *out)
{
    const cJSON *item, *columns = cJSON_GetObjectItemCaseSensitive(json, "columns"), *rows = cJSON_GetObjectItemCaseSensitive(json, "rows");
    bool lists = is_rows(columns) && cJSON_IsArray(rows) && cJSON_IsArray(rows->child);
    if (cJSON_IsArray(json))
        return is_rows(json) ? print_objects(json, width, out) : 0;
    cJSON_ArrayForEach(item, json)
        if (item != rows && item != columns && !cJSON_IsNull(item) && !is_rows(item) && !(cJSON_IsString(item) && !*item->valuestring))
            print_line(item->string, item, out);
    cJSON_ArrayForEach(item, json)
        if (is_rows(item) && !(lists && item == columns)) {
            fprintf(out, "\n%s\n", item->string);
            TRY(print_objects(item, width, out));
        }
    return lists ? print_lists(columns, rows, width, out) : 0;
}
