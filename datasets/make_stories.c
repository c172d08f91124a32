/* make_stories.c - a set of short stories from a small grammar of our own, to try a recipe on: make
 * quickstart.
 *
 * Each story keeps its hero, its thing and its place from the first sentence to the last. So a
 * small model has something to learn at every range. It learns spelling, word order, who "she" is,
 * and what was lost. The same --rows and --seed give the same file on every machine. One row:
 * {"text": "..."}, 30 to 150 words. */
#include <stdio.h>
#include <string.h>

#include "files/file.h"
#include "core/random.h"
#include "flags/program.h"

enum { STORY_BYTES = 2048, LONG_ENOUGH = 105 /* words; what must follow fits below 150 */ };
#define COUNT(array) (sizeof(array) / sizeof *(array))

struct being {
    const char *name, *kind, *he, *him, *his;
};

static const struct being beings[] = {
    {"Mila", "girl", "she", "her", "her"},       {"Tobin", "boy", "he", "him", "his"},
    {"Runa", "fox", "she", "her", "her"},        {"Bram", "bear", "he", "him", "his"},
    {"Pippa", "mouse", "she", "her", "her"},     {"Otto", "crow", "he", "him", "his"},
    {"Sela", "hare", "she", "her", "her"},       {"Finn", "frog", "he", "him", "his"},
    {"Greta", "goose", "she", "her", "her"},     {"Milo", "hedgehog", "he", "him", "his"},
    {"Anya", "cat", "she", "her", "her"},        {"Hugo", "dog", "he", "him", "his"},
    {"Lotte", "squirrel", "she", "her", "her"},  {"Jasper", "badger", "he", "him", "his"},
};
static const char *const traits[] = {"small", "brave", "shy", "curious", "clever", "quiet", "cheerful", "patient"};
static const char *const places[] = {"the old mill", "the green valley", "the stone bridge", "the quiet lake", "the tall hill",
                                     "the garden wall", "the busy harbour", "the pine forest", "the windy meadow"};
static const char *const things[] = {"kite", "lantern", "drum", "bell", "boat", "hat", "key", "flute", "wagon", "scarf"};
static const char *const colours[] = {"red", "blue", "yellow", "silver", "green", "white", "golden"};
static const char *const foods[] = {"warm bread", "ripe plums", "pea soup", "honey cakes", "roasted nuts", "apple pie"};
static const char *const weathers[] = {"rain fell", "the sun shone", "snow lay on the ground", "the wind blew hard",
                                       "fog hung over the paths", "the stars were bright"};
static const char *const hiding[] = {"under a pile of leaves", "behind the oldest tree", "in the tall grass",
                                     "beside the well", "on top of the roof", "between two grey stones"};

/* Sentences with slots. Capitals stand for the hero, small letters for the friend:
 *     N n name   K k kind   E e he or she   M m him or her   H h his or her
 *     T thing   C colour   P place   F food   W weather   G hiding place   R the hero's trait
 *     ^ makes the next letter a capital */
static const char *const openings[] = {
    "Once there was a %R %K named %N who lived near %P.",
    "Near %P lived a %R %K whose name was %N.",
    "In a house by %P there lived %N, a %R %K.",
    "Long ago a %R %K called %N made %H home close to %P.",
};
static const char *const treasures[] = {
    "%^%E had a %C %T, and %E took it everywhere.",
    "Of all the things %E owned, %E loved %H %C %T the most.",
    "Every morning %E cleaned %H %C %T and smiled.",
    "%^%H best friend had once given %M a %C %T.",
};
static const char *const days[] = {
    "One day, while %W, %N went out to play.",
    "One evening, when %W, %N walked down to %P.",
    "On the first day of spring %W, and %N could not stay at home.",
    "That week %W, but %N did not mind at all.",
};
static const char *const losses[] = {
    "When %E came back, the %C %T was gone.",
    "Suddenly %E saw that %H %C %T was missing.",
    "%^%E put down the %C %T for a moment, and then %E could not find it.",
    "A strong gust came and carried the %C %T away.",
};
static const char *const feelings[] = {
    "%N was so sad that %E sat down and cried.",
    "\"Oh no,\" said %N, \"where is my %T?\"",
    "%N looked left and right, but there was no %T.",
    "%^%E asked everyone about the %T, but nobody had seen it.",
};
static const char *const meetings[] = {
    "Then a %k named %n came along the path.",
    "Just then %n the %k stopped and listened.",
    "%n, who was a %k, heard %M and hurried over.",
    "Soon %E met %n, a %k with a kind voice.",
};
static const char *const offers[] = {
    "\"Do not worry,\" said %n, \"we will look for the %T together.\"",
    "\"I know this place well,\" said %n, \"and I will help you.\"",
    "\"Let us eat some %F first,\" said %n, \"and then we will find your %T.\"",
    "%n gave %M some %F, and %N felt a little better.",
};
static const char *const searches[] = {
    "They walked around %P and looked into every corner.",
    "First they searched the house, and then they searched the road.",
    "%N looked high, and %n looked low.",
    "They counted their steps so that they would not get lost.",
    "At noon they rested and shared %F.",
    "%n sang a song, and %N sang along.",
};
static const char *const findings[] = {
    "At last %n found the %C %T %G.",
    "And there it was: the %C %T lay %G.",
    "Then %N saw something %C %G, and it was the %T.",
    "\"Look!\" cried %n, and %e pointed to the %T %G.",
};
static const char *const thanks[] = {
    "%N thanked %n and hugged %m.",
    "\"Thank you, %n,\" said %N, \"you are a true friend.\"",
    "%N was so happy that %E danced with %n.",
    "%N gave %n half of %H %F to thank %m.",
};
static const char *const endings[] = {
    "From that day on, %N and %n were friends.",
    "They went home together, and %N slept well that night.",
    "And %N never left the %T alone again.",
    "After that they met near %P every day.",
    "%N learned that it is good to ask for help.",
};

struct story {
    uint64_t seed, row, draws;
    const struct being *hero, *friend;
    const char *trait, *place, *thing, *colour, *food, *weather, *hiding;
    char text[STORY_BYTES];
    size_t size;
    int words;
};

static uint64_t draw(struct story *s, uint64_t n)
{
    return tune_random_u64(s->seed, s->row, s->draws++) % n;
}

static const char *value(const struct story *s, char letter)
{
    switch (letter) {
    case 'N': return s->hero->name;
    case 'K': return s->hero->kind;
    case 'E': return s->hero->he;
    case 'M': return s->hero->him;
    case 'H': return s->hero->his;
    case 'n': return s->friend->name;
    case 'k': return s->friend->kind;
    case 'e': return s->friend->he;
    case 'm': return s->friend->him;
    case 'h': return s->friend->his;
    case 'T': return s->thing;
    case 'C': return s->colour;
    case 'P': return s->place;
    case 'F': return s->food;
    case 'W': return s->weather;
    case 'G': return s->hiding;
    case 'R': return s->trait;
    default: return "?";
    }
}

/* The sentence with its letters filled in, behind the story so far. */
static void tell(struct story *s, const char *sentence)
{
    bool capital = false;
    size_t begin = s->size;
    if (s->size > 0)
        s->text[s->size++] = ' ';
    for (const char *p = sentence; *p; p++) {
        if (*p != '%') {
            s->text[s->size++] = *p;
            continue;
        }
        if (*++p == '^') {
            capital = true;
            p += 2; /* behind the '^' stands the next '%' */
        }
        const char *word = value(s, *p);
        size_t n = strlen(word);
        memcpy(s->text + s->size, word, n);
        if (capital && *word >= 'a')
            s->text[s->size] = (char)(*word - 'a' + 'A');
        capital = false;
        s->size += n;
    }
    s->text[s->size] = 0;
    for (size_t i = begin; i < s->size; i++)
        s->words += s->text[i] == ' ';
    s->words += begin == 0;
}

#define TELL(s, sentences) tell(s, sentences[draw(s, COUNT(sentences))])
#define MAYBE(s, sentences)                               \
    do {                                                  \
        if (draw(s, 10) < 6 && (s)->words < LONG_ENOUGH)  \
            TELL(s, sentences);                           \
    } while (0)

static void make_story(struct story *s)
{
    uint64_t hero = draw(s, COUNT(beings));
    s->hero = &beings[hero];
    s->friend = &beings[(hero + 1 + draw(s, COUNT(beings) - 1)) % COUNT(beings)]; /* anyone but the hero */
    s->trait = traits[draw(s, COUNT(traits))];
    s->place = places[draw(s, COUNT(places))];
    s->thing = things[draw(s, COUNT(things))];
    s->colour = colours[draw(s, COUNT(colours))];
    s->food = foods[draw(s, COUNT(foods))];
    s->weather = weathers[draw(s, COUNT(weathers))];
    s->hiding = hiding[draw(s, COUNT(hiding))];
    TELL(s, openings);
    TELL(s, treasures);
    MAYBE(s, days);
    TELL(s, losses);
    MAYBE(s, feelings);
    MAYBE(s, meetings);
    MAYBE(s, offers);
    MAYBE(s, searches);
    MAYBE(s, searches);
    TELL(s, findings);
    MAYBE(s, thanks);
    TELL(s, endings);
}

static void write_story(const struct story *s, FILE *f)
{
    fputs("{\"text\": \"", f);
    for (size_t i = 0; i < s->size; i++) {
        if (s->text[i] == '"')
            fputc('\\', f);
        fputc(s->text[i], f);
    }
    fputs("\"}\n", f);
}

static struct {
    struct tune_flags tune;
    int64_t rows, seed;
    const char *output;
} my;

static const struct tune_option my_options[] = {
    {"rows", TUNE_INT64, &my.rows, "400", "[1,1000000000]", "rows", "stories to make"},
    {"seed", TUNE_INT64, &my.seed, "0", "[0,inf)", "", "seed; another seed gives other stories"},
    {"output", TUNE_STRING, &my.output, "stories.jsonl", "", "",
     "file to write; it is replaced if it is there"},
    {0},
};
static const struct tune_property my_properties[] = {{0}};

int main(int argc, char **argv)
{
    struct tune_file_writer writer;
    tune_program_start(argc, argv, &my.tune, my_options, my_properties, "make a set of short stories to train on");
    MUST(tune_file_begin_output(&writer, my.output));
    for (int64_t row = 0; row < my.rows; row++) {
        struct story s = {.seed = (uint64_t)my.seed, .row = (uint64_t)row};
        make_story(&s);
        write_story(&s, writer.file);
    }
    if (tune_file_commit(&writer) < 0) {
        tune_file_cancel(&writer);
        tune_program_fail();
    }
    tune_flags_free(&my.tune);
    return 0;
}
