/* operation_file.c - read the operation file. For an operator that does not run here, the error has a
 * command to type. It is made from the command line. */
#include "sweep.h"

static char *close_text(FILE *f, char **text)
{
    return f && fclose(f) == 0 ? *text : NULL;
}

/* The command line without --operation, for messages. NULL: no memory. */
static char *own_command(const struct sweep_flags *flags)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    for (int i = 0; f && i < flags->tune.argc; i++) {
        const char *word = i == 0 ? flags->tune.program : flags->tune.argv[i];
        bool operation = !strncmp(word, "--operation", 11) && (!word[11] || word[11] == '=');
        i += operation && !word[11];
        if (operation)
            continue;
        fputs(i > 0 ? " " : "", f);
        tune_print_word(f, word);
    }
    return close_text(f, &text);
}

/* Words for a command of samples. NULL: no memory. */
static char *own_subject(const struct sweep_flags *flags)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (f) {
        tune_print_word(f, flags->space);
        fputs(" --store ", f);
        tune_print_word(f, flags->store);
    }
    return close_text(f, &text);
}

int operation_file_read(const struct plan *plan, struct tune_operation *o)
{
    const struct sweep_flags *flags = plan->flags;
    char *command = own_command(flags), *subject = own_subject(flags);
    struct operator_words words = {.sweep = command, .subject = subject};
    int code = command && subject ? tune_operation_read(o, flags->operation, &(struct tune_other_operators){operator_refuse, &words}) : no_memory();
    free(command);
    free(subject);
    return code;
}
