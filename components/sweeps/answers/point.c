/* point.c - find the experiments and operations that measured a point. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/map.h"
#include "core/nearest.h"
#include "core/print.h"
#include "sweeps/answers/pass.h"

enum { VALID, INVALID, FAILED, STATUSES, MOST_INPUTS = 64 };

/* The rows of one entity, experiment and operation. */
struct measured {
    const char *experiment, *operation, *space, *entity;
    int64_t counts[STATUSES];
    double last;
};

struct point {
    struct tune_subject *s;
    const char *names[MOST_INPUTS]; /* [name_count] the inputs that the point names */
    int name_count;
    struct tune_map by_hash;        /* from a hash to an index in all + 1 */
    struct measured *all;           /* [count] */
    int64_t count;
};

/* ---- the point as an expression ---- */

/* Append a text as a Python literal. */
static void append_literal(char *where, size_t size, const char *text)
{
    char quoted[2 * TUNE_STORE_TEXT_MAX];
    const struct tune_value v = tune_value_text(text);
    tune_value_repr(&v, quoted, sizeof quoted);
    tune_append(where, size, "%s", quoted);
}

/* Turn "a=1,b=text" into a condition. A value that is a number also matches the same text. */
static int read_point(struct point *p, char *where, size_t size)
{
    const char *parts[MOST_INPUTS];
    int count = tune_subject_list(p->s, p->s->q->point, parts, MOST_INPUTS);
    TRY(count);
    if (count == 0)
        return tune_error_usage("`point` is empty; expected NAME=VALUE, or several with commas");
    for (int i = 0; i < count; i++) {
        char *equals = strchr(parts[i], '='), spelled[64];
        struct tune_value value;
        if (!equals || equals == parts[i])
            return tune_error_usage("`point`: \"%s\" is not NAME=VALUE", parts[i]);
        *equals++ = 0;
        p->names[p->name_count++] = parts[i];
        tune_append(where, size, "%s(`%s` == ", i > 0 ? " and " : "", parts[i]);
        append_literal(where, size, equals);
        if (tune_value_read_as(equals, &value) && tune_value_repr(&value, spelled, sizeof spelled) < (int)sizeof spelled)
            tune_append(where, size, " or `%s` == %s", parts[i], spelled);
        tune_append(where, size, ")");
    }
    if (p->s->q->where)
        tune_append(where, size, " and (%s)", p->s->q->where);
    return strlen(where) + 1 < size ? 0 : tune_error_usage("`point` is too long");
}

/* ---- rows ---- */

static struct measured *find_measured(struct point *p, const struct tune_cell *cells)
{
    static const enum tune_key keys[] = {TUNE_KEY_EXPERIMENT, TUNE_KEY_OPERATION, TUNE_KEY_SPACE, TUNE_KEY_ENTITY};
    uint64_t key[2] = {1, 2};
    const char *texts[4];
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 2; k++)
            key[k] = tune_hash64(cells[keys[i]].text, strlen(cells[keys[i]].text) + 1, key[k]);
    int64_t *index = tune_map_add(&p->by_hash, key);
    if (!index || !tune_array_fit(&p->all, (size_t)p->count, sizeof *p->all)) {
        tune_answer_no_memory();
        return NULL;
    }
    if (*index)
        return &p->all[*index - 1];
    for (int i = 0; i < 4; i++)
        if (!(texts[i] = tune_answer_copy(p->s->a, cells[keys[i]].text)))
            return NULL;
    p->all[p->count] = (struct measured){texts[0], texts[1], texts[2], texts[3], {0}, 0};
    *index = ++p->count;
    return &p->all[p->count - 1];
}

static int read_table(struct point *p, struct tune_subject *asked, const char *table)
{
    static const char *const statuses[STATUSES] = {"valid", "invalid", "failed"};
    const struct tune_cell *cells;
    struct tune_pass t;
    int more = tune_pass_open(&t, asked, p->s->q->store, table, true);
    while (more >= 0 && (more = tune_pass_next(&t, &cells)) == 1) {
        struct measured *m = find_measured(p, cells);
        if (!m) {
            more = -1;
            break;
        }
        for (int i = 0; i < STATUSES; i++)
            m->counts[i] += !strcmp(cells[TUNE_KEY_STATUS].text, statuses[i]);
        m->last = cells[TUNE_KEY_STARTED].number > m->last ? cells[TUNE_KEY_STARTED].number : m->last;
    }
    tune_pass_free(&t);
    return more;
}

/* The index of a name in the point that is not an input of the table; -1: there is none. */
static int lacks(struct point *p, const char *table)
{
    int count, i = 0;
    const struct tune_column *columns = tune_store_columns(p->s->q->store, table, &count);
    for (; columns && i < p->name_count; i++) {
        int c = 0;
        while (c < count && (columns[c].role != TUNE_COLUMN_INPUT || strcmp(columns[c].name, p->names[i])))
            c++;
        if (c == count)
            return i;
    }
    return columns ? -1 : 0;
}

/* Set an error: no experiment has the input, or none has all of them. */
static int no_table(struct point *p, const char *const *tables, int count)
{
    const char **names;
    int all = 0, n = 0;
    for (int k = 0; k < count; k++)
        all += tune_store_columns(p->s->q->store, tables[k], &n) ? n : 0;
    TAKE(names, p->s->a, all);
    all = 0;
    for (int k = 0; k < count; k++) {
        const struct tune_column *columns = tune_store_columns(p->s->q->store, tables[k], &n);
        for (int c = 0; columns && c < n; c++)
            if (columns[c].role == TUNE_COLUMN_INPUT)
                names[all++] = columns[c].name;
    }
    for (int i = 0; i < p->name_count; i++)
        if (tune_name_find(names, all, p->names[i]) < 0)
            return tune_answer_no_such("input", p->names[i], names, all);
    return tune_error_usage("no single experiment has all the inputs given in `point`");
}

static int read_tables(struct point *p, const char *where)
{
    struct tune_question question = *p->s->q;
    struct tune_subject asked = *p->s;
    int count, read = 0;
    const char *const *tables = tune_store_tables(question.store, &count);
    question.where = where;
    asked.q = &question;
    TRY(tables ? 0 : -1);
    int code = tune_subject_catalog(p->s);
    asked.catalog = p->s->catalog;
    asked.catalog_read = true;
    for (int k = 0; k < count && code >= 0; k++)
        if (lacks(p, tables[k]) < 0) {
            code = read_table(p, &asked, tables[k]);
            read++;
        }
    return code < 0 ? -1 : read > 0 ? 0 : no_table(p, tables, count);
}

int tune_show_point(struct tune_subject *s)
{
    static const char *const headings[] = {"experiment", "operation", "space", "entity", "valid", "invalid", "failed", "last"};
    struct point p = {.s = s};
    char where[8192] = "";
    int code = read_point(&p, where, sizeof where);
    if (code == 0)
        code = read_tables(&p, where);
    tune_answer_columns(s->a, headings, 8);
    for (int64_t i = 0; i < p.count && code == 0; i++) {
        const struct measured *m = &p.all[i];
        tune_answer_text(s->a, m->experiment);
        tune_answer_text(s->a, *m->operation ? m->operation : NULL);
        tune_answer_text(s->a, *m->space ? m->space : NULL);
        tune_answer_text(s->a, m->entity);
        for (int k = 0; k < STATUSES; k++)
            tune_answer_whole(s->a, m->counts[k]);
        tune_answer_time(s->a, m->last > 0 ? m->last : NAN);
        code = tune_answer_end_row(s->a);
    }
    s->a->none = tune_answer_copy(s->a, "no operation measured this point");
    tune_map_free(&p.by_hash);
    free(p.all);
    return code;
}
