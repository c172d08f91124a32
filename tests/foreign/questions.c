/* questions.c - a program of somebody else's that asks a sample store: what is best, and what is not yet measured.
 *
 *     cc questions.c $(pkg-config --cflags --libs tune_sweeps) -o questions && ./questions STORE SPACE.yaml speed
 *
 * It prints its own lines and nothing else shall appear. */
#include <inttypes.h>
#include <stdio.h>

#include <sweeps/answers/print.h>
#include <sweeps/answers/question.h>

static int give_up(const char *what)
{
    printf("%s: %s\n", what, tune_error_message());
    return 1;
}

int main(int argc, char **argv)
{
    struct tune_store *store = argc == 4 ? tune_store_open(argv[1], false) : NULL;
    if (!store)
        return argc == 4 ? give_up("store") : 2;
    struct tune_question q = {.store = store, .about = argv[2], .matching = true, .maximize = argv[3], .most = 2};
    struct tune_answer_table *best = tune_ask_best(&q), *missing = best ? tune_ask_missing(&q) : NULL;
    if (!missing)
        return give_up(best ? "missing" : "best");
    int figure = tune_answer_find(best, argv[3]), why = tune_answer_find(missing, "status");
    for (int64_t row = 0; row < best->rows; row++)
        printf("%" PRId64 ". a %" PRId64 ": %g\n", row + 1, tune_answer_at(best, row, tune_answer_find(best, "a"))->whole,
               tune_answer_number(tune_answer_at(best, row, figure)));
    for (int64_t row = 0; row < missing->rows; row++)
        printf("%s is %s\n", tune_answer_at(missing, row, 0)->text, tune_answer_at(missing, row, why)->text);
    int code = tune_answer_csv(missing, stdout) == 0 ? 0 : give_up("print");
    tune_answer_free(missing);
    tune_answer_free(best);
    tune_store_free(store);
    return code;
}
