/* type_conflicts.c - compare the values of two spaces, input by input. */
#include "sweeps/discovery/type_conflicts.h"

#include <stdlib.h>
#include <string.h>

#include "core/try.h"

/* The values of an input in a space: those of its dimension, its parameter, or its default. */
static int values_of(const struct tune_space *s, const struct tune_binding *p, int input, const struct tune_value **values)
{
    int d = p->dimension[input];
    *values = d < 0 ? &p->fixed[input] : s->dimensions[d].domain.values;
    return d < 0 ? 1 : s->dimensions[d].domain.count;
}

/* True if the value could conflict with a text, or is a text that reads as another value. */
static bool is_suspect(const struct tune_value *v)
{
    struct tune_value as;
    return v->type == TUNE_VALUE_TEXT ? tune_value_read_as(v->text, &as) : v->type != TUNE_VALUE_NONE && v->type != TUNE_VALUE_LIST;
}

/* Set suspects[input_count]: true if the input takes any text and has a suspect value. Returns 1 if
 * there is one, else 0, or -1. */
static int find_suspects(const struct tune_space *s, const struct tune_binding *p, bool *suspects)
{
    struct tune_column *columns;
    int any = 0;
    TRY(tune_rows_columns(p->experiment, &columns));
    for (int i = 0; i < p->experiment->input_count; i++) {
        const struct tune_value *values;
        int count = values_of(s, p, i, &values);
        suspects[i] = false;
        for (int k = 0; k < count && !suspects[i] && columns[i].type == TUNE_CELL_TEXT; k++)
            suspects[i] = is_suspect(&values[k]);
        any = any || suspects[i];
    }
    free(columns);
    return any;
}

struct search {
    const struct tune_space *space;
    const struct tune_binding *own;
    const bool *suspects;
    tune_type_conflict_report *report;
    void *context;
};

static void compare(const struct search *a, const char *name, const struct tune_space *other, const struct tune_binding *theirs)
{
    for (int i = 0; i < a->own->experiment->input_count; i++) {
        const struct tune_value *x, *y;
        bool found = !a->suspects[i];
        int n = values_of(a->space, a->own, i, &x), m = values_of(other, theirs, i, &y);
        for (int k = 0; k < n && !found; k++)
            for (int l = 0; l < m && !found && is_suspect(&x[k]); l++)
                if ((found = tune_value_conflicts(&x[k], &y[l]))) {
                    char here[64], there[64], sentence[512];
                    tune_value_repr(&x[k], here, sizeof here);
                    tune_value_repr(&y[l], there, sizeof there);
                    snprintf(sentence, sizeof sentence,
                             "the values of %.160s are %s here and %s in %s: programs get the same "
                             "text for both, so rows of one count as rows of the other",
                             a->own->experiment->names[i], here, there, name);
                    a->report(a->context, sentence);
                }
    }
}

static void compare_space(const struct search *a, const char *folder, const char *file, const struct tune_catalog *catalog)
{
    char path[TUNE_PATH_MAX], name[64];
    struct tune_binding *theirs = NULL;
    struct tune_space *other = tune_path(path, "%s/spaces/%s", folder, file) < 0 ? NULL : tune_space_read(path);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(file, "."), file);
    if (other && strcmp(other->id, a->space->id) && tune_space_bind(other, catalog, &theirs) == 0) {
        for (int q = 0; q < other->reference_count; q++)
            if (theirs[q].experiment == a->own->experiment)
                compare(a, name, other, &theirs[q]);
        tune_bindings_free(theirs, other->reference_count);
    }
    tune_space_free(other);
    tune_error_clear();
}

int tune_type_conflicts_find(struct tune_store *s, const struct tune_space *space, const struct tune_binding *bindings,
                       const struct tune_catalog *catalog, tune_type_conflict_report *report, void *context)
{
    for (int p = 0; p < space->reference_count; p++) {
        bool *suspects = calloc((size_t)bindings[p].experiment->input_count + 1, sizeof *suspects);
        const struct search search = {space, &bindings[p], suspects, report, context};
        int count = 0, any = suspects ? find_suspects(space, &bindings[p], suspects) : -1;
        char **names = any > 0 ? tune_store_records(s, "spaces", &count) : NULL;
        for (int i = 0; names && i < count; i++)
            compare_space(&search, tune_store_folder(s), names[i], catalog);
        tune_store_records_free(names, count);
        free(suspects);
        if (!suspects)
            tune_error_cannot("out of memory while spaces are compared");
        if (any < 0 || (any > 0 && !names))
            return -1;
    }
    return 0;
}
