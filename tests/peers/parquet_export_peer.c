/* parquet_export_peer.c - an answer of every type, as files: `parquet_export_peer ROWS` writes rows.csv, rows.jsonl and rows.parquet. */
#include <math.h>
#include <stdlib.h>

#include "sweeps/answers/answer_parts.h"
#include "sweeps/answers/print.h"

static const char *const names[] = {"whole", "number", "few", "text", "long", "time", "bool", "list", "counts", "value", "mixed", "none", "big"};
enum { COLUMNS = sizeof names / sizeof *names };

/* A number that looks drawn, the same each time. */
static uint64_t draw(uint64_t i)
{
    i = (i ^ i >> 31) * 0x9e3779b97f4a7c15u;
    return (i ^ i >> 29) * 0xbf58476d1ce4e5b9u >> 17;
}

static void put_row(struct tune_answer_table *a, int64_t i)
{
    static const char *const texts[] = {"", "a, \"b\"\nc", "\xe6\x97\xa5\xe6\x9c\xac", "experiment-v1.0.0", " x "};
    const uint64_t r = draw((uint64_t)i);
    const double list[] = {(double)(r % 1000) / 7, i % 50 ? -1e-300 : -INFINITY, 3, 4}, counts[] = {(double)(r % 5), 2, 3};
    const struct tune_value items[] = {tune_value_int((int64_t)(r % 3)), tune_value_text("it's")};
    const struct tune_value value = {.type = TUNE_VALUE_LIST, .list = {items, 2}}, truth = tune_value_bool(r % 2 || i % 100 < 40);
    char text[64];
    snprintf(text, sizeof text, "row %lld of %llu", (long long)i, (unsigned long long)r);
    r % 7 ? tune_answer_whole(a, (int64_t)(r * 40503) - i) : tune_answer_text(a, NULL);
    tune_answer_figure(a, r % 9 == 0 ? NAN : r % 9 == 1 ? INFINITY : (double)r / 3, false);
    tune_answer_figure(a, (double)(r % 300) / 8, false);
    tune_answer_text(a, r % 6 == 5 ? NULL : texts[r % 5]);
    tune_answer_text(a, text);
    tune_answer_time(a, r % 8 ? 1.7e9 + (double)i / 1000 : NAN);
    r % 10 ? tune_answer_space_value(a, &truth) : tune_answer_text(a, NULL);
    tune_answer_figures(a, list, (int)(r % 5), false);
    tune_answer_figures(a, counts, (int)(r % 4), true);
    tune_answer_space_value(a, &value);
    i % 3 ? tune_answer_whole(a, i) : tune_answer_text(a, texts[r % 5]);
    tune_answer_text(a, NULL);
    i % 2 ? tune_answer_whole(a, ((int64_t)1 << 60) + i) : tune_answer_figure(a, 0.5, false);
}

static int write_as(const struct tune_answer_table *a, const char *path)
{
    FILE *out = fopen(path, "wb");
    int code = !out ? -1 : path[5] == 'c' ? tune_answer_csv(a, out) : path[5] == 'j' ? tune_answer_json(a, true, out) : tune_answer_parquet(a, out);
    return out && fclose(out) == 0 ? code : -1;
}

int main(int argc, char **argv)
{
    struct tune_answer_table *a = argc == 2 ? tune_answer_new() : NULL;
    if (!a)
        return 2;
    tune_answer_columns(a, names, COLUMNS);
    a->columns[1].unit = "m/s";
    for (int64_t i = 0; i < atoll(argv[1]); i++) {
        put_row(a, i);
        if (tune_answer_end_row(a) < 0)
            return 1;
    }
    a = tune_answer_finish(a);
    int code = a && write_as(a, "rows.csv") == 0 && write_as(a, "rows.jsonl") == 0 && write_as(a, "rows.parquet") == 0 ? 0 : 1;
    if (code)
        fprintf(stderr, "%s\n", tune_error_message());
    tune_answer_free(a);
    return code;
}
