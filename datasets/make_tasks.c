/* make_tasks.c - short tasks with one right answer each, to see whether a recipe teaches:
 * make proof.
 *
 *     build/make_tasks --rows 8000 --output train.jsonl
 *     build/make_tasks --rows 600 --part test --output test.jsonl
 *     build/make_tasks --rows 4000 --pairs --output pairs.jsonl
 *
 * A task is a question and its answer. Words are said again or backwards, or counted; the first or
 * the last is taken. Others ask for a colour, an owner, opposites, the next number. A hash of
 * the question says whether it belongs to the part train or to the part test. So the two parts share
 * no question, whatever the seeds are. No question comes twice in a file.
 *
 * A row is a conversation: {"messages": [...]}. With --pairs it has a right and a wrong answer:
 * {"prompt": [...], "chosen": [...], "rejected": [...]}. The wrong one is plausible: the words in
 * another order or with another one among them, the other colour, the number after. */
#include <stdlib.h>

#include "files/file.h"
#include "flags/program.h"
#include "tale_words.h"

enum { TASK_BYTES = 512, MOST_WORDS = 5, TEST_OF = 10 };

struct task {
    struct tale_dice dice;
    char question[TASK_BYTES], answer[TASK_BYTES], wrong[TASK_BYTES];
};

/* Things, places, moods or colours. */
static const char *any_word(struct task *t)
{
    switch (tale_draw(&t->dice, 4)) {
    case 0: return tale_places[tale_draw(&t->dice, TALE_COUNT(tale_places))];
    case 1: return tale_colours[tale_draw(&t->dice, TALE_COUNT(tale_colours))];
    default: return tale_things[tale_draw(&t->dice, TALE_COUNT(tale_things))];
    }
}

static void draw_words(struct task *t, const char **words, int count)
{
    for (int i = 0; i < count; i++) {
        bool again = true;
        while (again) {
            words[i] = any_word(t);
            again = false;
            for (int j = 0; j < i; j++)
                again |= words[i] == words[j];
        }
    }
}

/* Join words with spaces; step -1: backwards. */
static void join(char out[TASK_BYTES], const char *const *words, int count, int step)
{
    size_t size = 0;
    for (int i = 0; i < count; i++)
        size += (size_t)snprintf(out + size, TASK_BYTES - size, "%s%s", i ? " " : "",
                                 words[step > 0 ? i : count - 1 - i]);
}

/* The words again, or backwards. Wrong: two of them change places, or one is another word. */
static void make_order(struct task *t, int step)
{
    const char *words[MOST_WORDS + 1];
    char list[TASK_BYTES];
    int count = 2 + (int)tale_draw(&t->dice, 3);
    draw_words(t, words, count + 1);
    join(list, words, count, 1);
    snprintf(t->question, TASK_BYTES, step > 0 ? "Say after me: %.400s" : "Backwards: %.400s",
             list);
    join(t->answer, words, count, step);
    int i = (int)tale_draw(&t->dice, (uint64_t)count), j = (i + 1) % count;
    const char *kept = words[i];
    words[i] = tale_draw(&t->dice, 2) ? words[j] : words[count];
    if (words[i] == words[j])
        words[j] = kept;
    join(t->wrong, words, count, step);
}

static void make_count(struct task *t)
{
    const char *words[MOST_WORDS];
    char list[TASK_BYTES];
    int count = 1 + (int)tale_draw(&t->dice, MOST_WORDS);
    draw_words(t, words, count);
    join(list, words, count, 1);
    snprintf(t->question, TASK_BYTES, "How many are there: %.400s?", list);
    tale_number(count, t->answer);
    tale_number(count > 1 && tale_draw(&t->dice, 2) ? count - 1 : count + 1, t->wrong);
}

static void make_end(struct task *t, bool last)
{
    const char *words[MOST_WORDS];
    char list[TASK_BYTES];
    int count = 2 + (int)tale_draw(&t->dice, MOST_WORDS - 1);
    draw_words(t, words, count);
    join(list, words, count, 1);
    snprintf(t->question, TASK_BYTES, "Which is the %s: %.400s?", last ? "last" : "first", list);
    strcpy(t->answer, words[last ? count - 1 : 0]);
    strcpy(t->wrong, words[last ? 0 : count - 1]);
}

static void make_colour(struct task *t)
{
    int thing[3], colour[3], count = 2 + (int)tale_draw(&t->dice, 2);
    size_t size = 0;
    tale_draw_some(&t->dice, TALE_COUNT(tale_things), count, thing);
    tale_draw_some(&t->dice, TALE_COUNT(tale_colours), count, colour);
    for (int i = 0; i < count; i++)
        size += (size_t)snprintf(t->question + size, TASK_BYTES - size, "The %s is %s. ",
                                 tale_things[thing[i]], tale_colours[colour[i]]);
    int asked = (int)tale_draw(&t->dice, (uint64_t)count);
    snprintf(t->question + size, TASK_BYTES - size, "What colour is the %s?",
             tale_things[thing[asked]]);
    strcpy(t->answer, tale_colours[colour[asked]]);
    strcpy(t->wrong, tale_colours[colour[(asked + 1) % count]]);
}

static void make_owner(struct task *t)
{
    int thing[3], name[3], count = 2 + (int)tale_draw(&t->dice, 2);
    size_t size = 0;
    tale_draw_some(&t->dice, TALE_COUNT(tale_things), count, thing);
    tale_draw_some(&t->dice, TALE_COUNT(tale_names), count, name);
    for (int i = 0; i < count; i++)
        size += (size_t)snprintf(t->question + size, TASK_BYTES - size, "%s has the %s. ",
                                 tale_names[name[i]], tale_things[thing[i]]);
    int asked = (int)tale_draw(&t->dice, (uint64_t)count);
    snprintf(t->question + size, TASK_BYTES - size, "Who has the %s?", tale_things[thing[asked]]);
    strcpy(t->answer, tale_names[name[asked]]);
    strcpy(t->wrong, tale_names[name[(asked + 1) % count]]);
}

static void make_opposites(struct task *t)
{
    int pair[2], side[2] = {(int)tale_draw(&t->dice, 2), (int)tale_draw(&t->dice, 2)};
    tale_draw_some(&t->dice, TALE_COUNT(tale_opposites), 2, pair);
    const char *asked[2], *other[2];
    for (int i = 0; i < 2; i++) {
        asked[i] = tale_opposites[pair[i]][side[i]];
        other[i] = tale_opposites[pair[i]][1 - side[i]];
    }
    snprintf(t->question, TASK_BYTES, "What is the opposite of %s and of %s?", asked[0], asked[1]);
    snprintf(t->answer, TASK_BYTES, "%s and %s", other[0], other[1]);
    bool second = tale_draw(&t->dice, 2); /* wrong: one word stays as it was */
    snprintf(t->wrong, TASK_BYTES, "%s and %s", second ? other[0] : asked[0],
             second ? asked[1] : other[1]);
}

static void make_next(struct task *t)
{
    char number[3][32];
    int n = 1 + (int)tale_draw(&t->dice, 95), count = 1 + (int)tale_draw(&t->dice, 3);
    for (int i = 0; i < count; i++)
        tale_number(n + i, number[i]);
    snprintf(t->question, TASK_BYTES, "Which number comes after %s%s%s%s%s?", number[0],
             count > 1 ? ", " : "", count > 1 ? number[1] : "", count > 2 ? ", " : "",
             count > 2 ? number[2] : "");
    tale_number(n + count, t->answer);
    tale_number(n + count + (tale_draw(&t->dice, 2) ? 1 : -1), t->wrong);
}

/* Questions of the last kind are few, so they come seldom. */
static void make_task(struct task *t)
{
    switch (tale_draw(&t->dice, 33)) {
    case 0: case 1: case 2: case 3: make_order(t, 1); break;
    case 4: case 5: case 6: case 7: make_order(t, -1); break;
    case 8: case 9: case 10: case 11: make_count(t); break;
    case 12: case 13: case 14: case 15: make_end(t, false); break;
    case 16: case 17: case 18: case 19: make_end(t, true); break;
    case 20: case 21: case 22: case 23: make_colour(t); break;
    case 24: case 25: case 26: case 27: make_owner(t); break;
    case 28: case 29: case 30: case 31: make_opposites(t); break;
    default: make_next(t);
    }
}

/* ---- parts, and questions that were there ---- */

/* One question of TEST_OF is for the test. */

static uint64_t hash_of(const char *text)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a, and a last mix for the low bits */
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    h ^= h >> 32;
    return (h * 0x9e3779b97f4a7c15u) >> 8;
}

/* True if the question is new; it is remembered. seen has room for twice as many. */
static bool is_new(uint64_t *seen, uint64_t room, uint64_t hash)
{
    uint64_t at = hash % room;
    while (seen[at] && seen[at] != hash + 1)
        at = (at + 1) % room;
    bool new = seen[at] == 0;
    seen[at] = hash + 1;
    return new;
}

/* ---- the file ---- */

static void write_message(FILE *f, const char *role, const char *text)
{
    fprintf(f, "{\"role\": \"%s\", \"content\": ", role);
    tale_write_string(f, text);
    fputs("}", f);
}

static void write_task(FILE *f, const struct task *t, bool pairs)
{
    fputs(pairs ? "{\"prompt\": [" : "{\"messages\": [", f);
    write_message(f, "user", t->question);
    fputs(pairs ? "], \"chosen\": [" : ", ", f);
    write_message(f, "assistant", t->answer);
    if (pairs) {
        fputs("], \"rejected\": [", f);
        write_message(f, "assistant", t->wrong);
    }
    fputs("]}\n", f);
}

static struct {
    struct tune_flags tune;
    int64_t rows, seed;
    const char *part, *output;
    bool pairs;
} my;

static const struct tune_option my_options[] = {
    {"rows", TUNE_INT64, &my.rows, "1000", "[1,1000000]", "rows", "tasks to make"},
    {"seed", TUNE_INT64, &my.seed, "0", "[0,inf)", "", "seed; another seed gives other tasks"},
    {"part", TUNE_STRING, &my.part, "train", "", "", "train or test; they share no question"},
    {"pairs", TUNE_BOOL, &my.pairs, "false", "", "", "a right and a wrong answer to each question"},
    {"output", TUNE_STRING, &my.output, "tasks.jsonl", "", "",
     "file to write; it is replaced if it is there"},
    {0},
};
static const struct tune_property my_properties[] = {{0}};

static void write_rows(FILE *f, bool test, uint64_t *seen)
{
    uint64_t row = 0;
    for (int64_t made = 0; made < my.rows; row++) {
        struct task t = {.dice = {(uint64_t)my.seed, row, 0}};
        make_task(&t);
        uint64_t hash = hash_of(t.question);
        if ((hash % TEST_OF == 0) != test || !is_new(seen, 2 * (uint64_t)my.rows, hash))
            continue;
        write_task(f, &t, my.pairs);
        made++;
    }
}

int main(int argc, char **argv)
{
    struct tune_file_writer writer;
    tune_program_start(argc, argv, &my.tune, my_options, my_properties,
                       "make tasks with one right answer, to see what a model has learnt");
    bool test = strcmp(my.part, "test") == 0;
    if (!test && strcmp(my.part, "train") != 0) {
        tune_error_usage("--part %s: expected train or test", my.part);
        tune_program_fail();
    }
    uint64_t *seen = calloc(2 * (size_t)my.rows, sizeof *seen);
    if (!seen) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory for %lld rows", (long long)my.rows);
        tune_program_fail();
    }
    MUST(tune_file_begin_output(&writer, my.output));
    write_rows(writer.file, test, seen);
    free(seen);
    if (tune_file_commit(&writer) < 0) {
        tune_file_cancel(&writer);
        tune_program_fail();
    }
    tune_flags_free(&my.tune);
    return 0;
}
