/* command.c - the command line of an entity, for a shell. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/print.h"
#include "samples.h"
#include "sweeps/actuators/measure.h"

/* Inputs that no argument takes are variables before the program. */
static void put_variables(const struct tune_experiment *e, const struct tune_command *command)
{
    for (int i = 0; i < e->input_count; i++) {
        const struct tune_input *in = &e->inputs[i];
        char *equals = strchr(command->environment[i], '=');
        if (in->flag || in->inert || in->map_count > 0)
            continue;
        fprintf(samples.out, "%.*s", (int)(equals + 1 - command->environment[i]), command->environment[i]);
        tune_print_word(samples.out, equals + 1);
        fputc(' ', samples.out);
    }
}

/* The program's file, from the current folder if it is below that. */
static int find_program(const struct tune_experiment *e, char path[TUNE_PATH_MAX])
{
    char here[TUNE_PATH_MAX];
    TRY(tune_program_find(e, e->program, path));
    size_t n = getcwd(here, sizeof here) ? strlen(here) : 0;
    if (n > 1 && !strncmp(path, here, n) && path[n] == '/' && strchr(path + n + 1, '/'))
        memmove(path, path + n + 1, strlen(path + n));
    return 0;
}

int samples_folders(const char *actuator, struct tune_operation_record *r, struct tune_word words[2])
{
    int count, found = 0;
    char **names = tune_view_operations(samples.store, samples.space, &count);
    TRY(names ? 0 : -1);
    while (count > 0 && found == 0) {
        TRY(tune_operation_record_read(samples.store, names[--count], r));
        bool same = r->actuator && !strcmp(r->actuator, actuator);
        if (same && r->data_directory)
            words[found++] = (struct tune_word){"data_directory", r->data_directory};
        if (same && r->hf_home)
            words[found++] = (struct tune_word){"hf_home", r->hf_home};
        if (found == 0)
            tune_operation_record_free(r);
        free(names[count]);
        names[count] = NULL;
    }
    tune_store_records_free(names, count);
    return found;
}

int samples_put_command(int protocol, const struct tune_value *entity)
{
    const struct tune_experiment *e = samples.protocols[protocol].experiment;
    struct tune_operation_record record = {0};
    struct tune_word words[2];
    struct tune_command command;
    char program[TUNE_PATH_MAX];
    TRY(find_program(e, program));
    struct tune_value *inputs = samples_take(e->input_count, sizeof *inputs);
    tune_protocol_inputs(&samples.protocols[protocol], entity, inputs);
    int count = samples_folders(e->actuator, &record, words);
    int code = count < 0 ? -1 : tune_experiment_command(e, inputs, words, count, &command);
    tune_operation_record_free(&record);
    TRY(code);
    put_variables(e, &command);
    tune_print_word(samples.out, program);
    for (int i = 0; i < command.argument_count; i++) {
        fputc(' ', samples.out);
        tune_print_word(samples.out, command.arguments[i]);
    }
    fputc('\n', samples.out);
    tune_command_free(&command);
    return 0;
}
