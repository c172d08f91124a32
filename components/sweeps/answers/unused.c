/* unused.c - count results of a space that sweep would not use here. They are from another host or
 * build, or used another model or data. */
#include <stdlib.h>
#include <string.h>

#include "core/print.h"
#include "machine/host.h"
#include "sweeps/actuators/provenance.h"
#include "sweeps/answers/subject.h"
#include "sweeps/discovery/store_copies.h"
#include "sweeps/discovery/other_inputs.h"

struct tune_unused {
    struct tune_result_cache *cache;
    char host_class[512];
    int64_t points[TUNE_ACCEPT_DATA * 2]; /* by the difference, bits of TUNE_ACCEPT_HOST and so on */
    int64_t undecided;                    /* points whose provenance here is unknown */
    char why[512];                        /* reason for the first unknown one */
    struct tune_hashed hashed;
};

/* Hash the data file. If it does not exist, use the hash in the store. */
static int find_data(struct tune_subject *s, const char *path, char hash[33])
{
    if (tune_data_hash(&s->unused->hashed, path, hash) == 0)
        return 0;
    struct tune_error why;
    tune_error_save(&why);
    if (tune_data_hash_read(s->q->store, path, hash) == 1)
        return 0;
    tune_error_restore(&why);
    return -1;
}

/* Find the provenance that a measurement of the point would have here and now. */
static int find_provenance(struct tune_subject *s, const struct tune_binding *p, const struct tune_value *inputs,
                           struct tune_provenance *o)
{
    char program[TUNE_PATH_MAX];
    struct tune_operation_record record = {0};
    struct tune_placeholder words[2];
    struct tune_command c;
    memset(o, 0, sizeof *o);
    snprintf(o->host_class, sizeof o->host_class, "%s", s->unused->host_class);
    TRY(tune_program_find(p->experiment, p->experiment->program, program));
    TRY(tune_build_id(program, o->build));
    int count = tune_subject_folders(s, p->experiment->actuator, &record, words);
    int code = count < 0 ? -1 : tune_experiment_command(p->experiment, inputs, words, count, &c);
    tune_operation_record_free(&record);
    TRY(code);
    code = c.weights ? tune_weights_hash(c.weights, o->weights) : 0;
    if (code == 0 && c.data)
        code = find_data(s, c.data, o->data);
    tune_command_free(&c);
    return code;
}

/* True if a rule of the experiment refuses the point. Such points were not run. */
static bool is_refused(const struct tune_binding *p, const struct tune_value *inputs)
{
    char why[64];
    return tune_experiment_refuses(p->experiment, inputs, why, sizeof why) != 0;
}

static int count_point(struct tune_subject *s, const struct tune_binding *p, const struct tune_value *inputs)
{
    const int binding = (int)(p - s->bindings);
    const struct tune_cached_row *rows;
    struct tune_provenance provenance;
    if (find_provenance(s, p, inputs, &provenance) < 0) {
        if (s->unused->undecided++ == 0)
            snprintf(s->unused->why, sizeof s->unused->why, "%s", tune_error_message());
        tune_error_clear();
        return 0;
    }
    int count = tune_result_cache_find(s->unused->cache, binding, inputs, &provenance, 0, &rows), good = 0;
    TRY(count);
    for (int i = 0; i < count; i++)
        good += rows[i].status != TUNE_FAILED;
    if (good > 0)
        return 0;
    const struct tune_cache_query point = {binding, 0, inputs, &provenance, 0};
    int bits = tune_result_cache_differs(s->unused->cache, &point, 0);
    TRY(bits);
    s->unused->points[bits]++;
    return 0;
}

static int read_cache(struct tune_subject *s)
{
    struct tune_host host;
    if (s->unused)
        return 0;
    TAKE(s->unused, s->a, 1);
    tune_host_read(&host);
    tune_host_class(&host, 0, s->unused->host_class, sizeof s->unused->host_class);
    s->unused->cache = tune_result_cache_read(s->q->store, s->bindings, s->space->reference_count, NULL);
    return s->unused->cache ? 0 : -1;
}

int tune_unused_count(struct tune_subject *s, int binding, const struct tune_value *entity)
{
    const struct tune_binding *p = &s->bindings[binding];
    struct tune_value *inputs;
    if (!p->supported)
        return 0;
    TRY(read_cache(s));
    TAKE(inputs, s->a, p->experiment->input_count);
    tune_binding_inputs(p, entity, inputs);
    return is_refused(p, inputs) ? 0 : count_point(s, p, inputs);
}

void tune_unused_report(struct tune_subject *s)
{
    char things[64], words[64];
    for (int bits = 1; s->unused && bits < TUNE_ACCEPT_DATA * 2; bits++)
        if (s->unused->points[bits] > 0)
            tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "stored results of %lld of these entities "
                                                          "differ only in %s, so sweep would measure "
                                                          "the entities again; sweep --accept %s uses "
                                                          "the results",
                                 (long long)s->unused->points[bits], tune_accept_things(bits, things), tune_accept_words(bits, words));
    if (s->unused && s->unused->undecided > 0)
        tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "for %lld of these entities, it is unknown "
                                                      "whether sweep would use the stored results: %s",
                             (long long)s->unused->undecided, s->unused->why);
}

void tune_unused_free(struct tune_subject *s)
{
    if (s->unused)
        tune_result_cache_free(s->unused->cache);
}

/* Add a note: "9 results of these entities under work have other parameters, steps=10; samples show
 * work ...". */
static void report_other(void *context, const struct tune_other *o)
{
    struct tune_subject *s = context;
    bool one = o->rows == 1;
    char several[300] = "", set[1200] = "";
    const char *store = tune_subject_word(s, tune_store_folder(s->q->store)), *inputs = tune_subject_word(s, o->inputs);
    if (o->values > 1)
        snprintf(several, sizeof several, "%d values of %.200s such as ", o->values, o->names);
    if (o->settable)
        snprintf(set, sizeof set, "; sweep --set %s %s", inputs,
                 o->most == o->rows ? one ? "uses it" : "uses them" : "uses some of them");
    tune_answer_add_note(s->a, TUNE_NOTE_WARNING, "%lld result%s of these entities under experiment %s "
                                                  "ha%s other values of inputs: %s%s; samples show %s "
                                                  "`store` %s shows %s%s",
                         (long long)o->rows, one ? "" : "s", o->e->name, one ? "s" : "ve", several, o->inputs, o->e->name, store,
                         one ? "it" : "them", set);
}

int tune_unused_other_inputs(struct tune_subject *s)
{
    return tune_other_inputs(s->q->store, s->space, s->bindings, report_other, s);
}
