/* unused.c - results of a space that sweep would not use here. They were measured on another host,
 * by another build, or with another model or data. */
#include <stdlib.h>
#include <string.h>

#include "core/print.h"
#include "machine/host.h"
#include "samples.h"
#include "sweeps/actuators/origin.h"
#include "sweeps/discovery/keep.h"
#include "sweeps/discovery/other_inputs.h"

static struct {
    struct tune_known *known;
    char host_class[512];
    int64_t points[TUNE_ACCEPT_DATA * 2]; /* by what differs */
    int64_t untold;                       /* points whose origin here cannot be told */
    char why[512];                        /* for the first of them */
    struct tune_hashed hashed;
} unused;

/* The hash of the data as it is here; of a file that is not there, as the store notes it. */
static int find_data(const char *path, char hash[33])
{
    if (tune_data_hash(&unused.hashed, path, hash) == 0)
        return 0;
    struct tune_error why;
    tune_error_save(&why);
    if (tune_kept_data(samples.store, path, hash) == 1)
        return 0;
    tune_error_restore(&why);
    return -1;
}

/* The origin that a measurement of the point has here and now. */
static int find_origin(const struct tune_protocol *p, const struct tune_value *inputs, struct tune_origin *o)
{
    char program[TUNE_PATH_MAX];
    struct tune_operation_record record = {0};
    struct tune_word words[2];
    struct tune_command c;
    memset(o, 0, sizeof *o);
    snprintf(o->host_class, sizeof o->host_class, "%s", unused.host_class);
    TRY(tune_program_find(p->experiment, p->experiment->program, program));
    TRY(tune_build_id(program, o->build));
    int count = samples_folders(p->experiment->actuator, &record, words);
    int code = count < 0 ? -1 : tune_experiment_command(p->experiment, inputs, words, count, &c);
    tune_operation_record_free(&record);
    TRY(code);
    code = c.weights ? tune_weights_hash(c.weights, o->weights) : 0;
    if (code == 0 && c.data)
        code = find_data(c.data, o->data);
    tune_command_free(&c);
    return code;
}

/* A rule forbids it, so it was not run, and no file was read. */
static bool is_refused(const struct tune_protocol *p, const struct tune_value *inputs)
{
    char why[64];
    return tune_experiment_refuses(p->experiment, inputs, why, sizeof why) != 0;
}

static int note(const struct tune_protocol *p, const struct tune_value *inputs)
{
    const int protocol = (int)(p - samples.protocols);
    const struct tune_known_row *rows;
    struct tune_origin origin;
    if (find_origin(p, inputs, &origin) < 0) {
        if (unused.untold++ == 0)
            snprintf(unused.why, sizeof unused.why, "%s", tune_error_message());
        tune_error_clear();
        return 0;
    }
    int count = tune_known_find(unused.known, protocol, inputs, &origin, 0, &rows), good = 0;
    TRY(count);
    for (int i = 0; i < count; i++)
        good += rows[i].status != TUNE_FAILED;
    if (good > 0)
        return 0;
    const struct tune_known_point point = {protocol, 0, inputs, &origin, 0};
    int bits = tune_known_differs(unused.known, &point, 0);
    TRY(bits);
    unused.points[bits]++;
    return 0;
}

static int begin(void)
{
    struct tune_host host;
    if (unused.known)
        return 0;
    tune_host_read(&host);
    tune_host_class(&host, 0, unused.host_class, sizeof unused.host_class);
    unused.known = tune_known_read(samples.store, samples.protocols, samples.space->reference_count, NULL);
    return unused.known ? 0 : -1;
}

int samples_note_unused(int protocol, const struct tune_value *entity)
{
    const struct tune_protocol *p = &samples.protocols[protocol];
    if (!p->supported)
        return 0;
    TRY(begin());
    struct tune_value *inputs = samples_take(p->experiment->input_count, sizeof *inputs);
    tune_protocol_inputs(p, entity, inputs);
    return is_refused(p, inputs) ? 0 : note(p, inputs);
}

void samples_say_unused(void)
{
    char things[64], words[64];
    for (int bits = 1; bits < TUNE_ACCEPT_DATA * 2; bits++)
        if (unused.points[bits] > 0)
            fprintf(stderr, "samples: %lld have results that match but for %s, so sweep would measure them again; sweep --accept %s "
                    "takes the results\n", (long long)unused.points[bits], tune_accept_things(bits, things), tune_accept_words(bits, words));
    if (unused.untold > 0)
        fprintf(stderr, "samples: whether sweep would use the results that %lld have cannot be told: %s\n",
                (long long)unused.untold, unused.why);
    tune_known_free(unused.known);
    unused.known = NULL;
}

/* "9 results of these entities under work have other parameters, steps=10; samples rows work ..." */
static void tell_other(const struct tune_other *o)
{
    bool one = o->rows == 1;
    fprintf(stderr, "samples: %lld result%s of these entities under %s ha%s other parameters, ", (long long)o->rows, one ? "" : "s",
            o->e->name, one ? "s" : "ve");
    if (o->values > 1)
        fprintf(stderr, "%d values of %s such as ", o->values, o->names);
    tune_print_line_of(stderr, o->inputs);
    fprintf(stderr, "; samples rows %s --store ", o->e->name);
    tune_print_word(stderr, my.store);
    fputs(one ? " shows it" : " shows them", stderr);
    if (o->settable) {
        fputs(", sweep --set ", stderr);
        tune_print_word(stderr, o->inputs);
        fputs(o->most == o->rows ? one ? " takes it" : " takes them" : " takes some", stderr);
    }
    fputc('\n', stderr);
}

int samples_say_other_inputs(void)
{
    return tune_other_inputs(samples.store, samples.space, samples.protocols, tell_other);
}
