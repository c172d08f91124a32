/* command.c - the shell command that measures an entity. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/print.h"
#include "sweeps/actuators/measure.h"
#include "sweeps/answers/subject.h"

/* Print inputs without an argument as variables before the program. */
static void put_variables(const struct tune_experiment *e, const struct tune_command *command, FILE *out)
{
    for (int i = 0; i < e->input_count; i++) {
        const struct tune_input *in = &e->inputs[i];
        char *equals = strchr(command->environment[i], '=');
        if (in->flag || in->inert || in->map_count > 0)
            continue;
        fprintf(out, "%.*s", (int)(equals + 1 - command->environment[i]), command->environment[i]);
        tune_print_word(out, equals + 1);
        fputc(' ', out);
    }
}

/* Find the program's path, relative to the current folder if it is below it. */
static int find_program(const struct tune_experiment *e, char path[TUNE_PATH_MAX])
{
    char here[TUNE_PATH_MAX];
    TRY(tune_program_find(e, e->program, path));
    size_t n = getcwd(here, sizeof here) ? strlen(here) : 0;
    if (n > 1 && !strncmp(path, here, n) && path[n] == '/' && strchr(path + n + 1, '/'))
        memmove(path, path + n + 1, strlen(path + n));
    return 0;
}

int tune_subject_folders(struct tune_subject *s, const char *actuator, struct tune_operation_record *r, struct tune_placeholder words[2])
{
    int count, found = 0;
    char **names = tune_view_operations(s->q->store, s->space, &count);
    TRY(names ? 0 : -1);
    while (count > 0 && found == 0) {
        if (tune_operation_record_read(s->q->store, names[count - 1], r) < 0) {
            found = -1;
            break;
        }
        count--;
        bool same = r->actuator && !strcmp(r->actuator, actuator);
        if (same && r->data_directory)
            words[found++] = (struct tune_placeholder){"data_directory", r->data_directory};
        if (same && r->hf_home)
            words[found++] = (struct tune_placeholder){"hf_home", r->hf_home};
        if (found == 0)
            tune_operation_record_free(r);
        free(names[count]);
        names[count] = NULL;
    }
    tune_store_records_free(names, count);
    return found;
}

/* Make the line for a shell, which the caller frees. NULL with an error. */
static char *make_line(const struct tune_experiment *e, const char *program, const struct tune_command *command)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out) {
        put_variables(e, command, out);
        tune_print_word(out, program);
        for (int i = 0; i < command->argument_count; i++) {
            fputc(' ', out);
            tune_print_word(out, command->arguments[i]);
        }
    }
    if (out && fclose(out) == 0)
        return text;
    tune_answer_no_memory();
    return NULL;
}

int tune_subject_command(struct tune_subject *s, int binding, const struct tune_value *entity)
{
    const struct tune_experiment *e = s->bindings[binding].experiment;
    struct tune_operation_record record = {0};
    struct tune_placeholder words[2];
    struct tune_command command;
    struct tune_value *inputs;
    char program[TUNE_PATH_MAX];
    TRY(find_program(e, program));
    TAKE(inputs, s->a, e->input_count);
    tune_binding_inputs(&s->bindings[binding], entity, inputs);
    int count = tune_subject_folders(s, e->actuator, &record, words);
    int code = count < 0 ? -1 : tune_experiment_command(e, inputs, words, count, &command);
    tune_operation_record_free(&record);
    TRY(code);
    char *line = make_line(e, program, &command);
    tune_command_free(&command);
    if (line)
        tune_answer_text(s->a, line);
    free(line);
    return line ? tune_answer_end_row(s->a) : -1;
}
