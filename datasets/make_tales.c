/* make_tales.c - stories from a grammar of our own, varied enough to train a small model from
 * random weights: make proof.
 *
 * A tale has an opening, a few scenes in any order and an ending. Scenes name things, places and
 * friends, and come back to them. A list is told again or backwards, a colour is asked for. The
 * same --rows and --seed give the same file on every machine. One row:
 * {"text": "..."}, 60 to 200 words. */
#include "files/file.h"
#include "flags/program.h"
#include "tale_words.h"

enum { TALE_BYTES = 4096, SOME = 4 };

/* In a sentence, [a|b|c] is one of them, and % with a kind and a digit is a word of this tale:
 *
 *     n name   k kind   e he, she   m him, her   h his, her   r trait   p place   t thing
 *     c colour   f food   w weather   g hiding place   d mood   o opposites: o1 and o2, o3 and o4
 *     x numbers that follow each other
 *
 * The first letter of a sentence becomes a capital. */
static const char *const openings[] = {
    ("[Once there was|Long ago there lived|There was once] a %r1 %k1 named %n1 who [lived|had a "
     "home] [near|behind|close to] the %o1 %p1."),
    "[Near|Behind|Beside] the %o1 %p1 lived a %r1 %k1 [whose name was %n1|called %n1].",
    "%n1 was a %r1 %k1 [who|and %e1] lived [near|by] the %p1 with %h1 friend %n2, a %r2 %k2.",
    "[In|During] the time when %w1, a %r1 %k1 named %n1 came to the %o1 %p1.",
    "This is the tale of %n1, a %r1 %k1, and of %h1 %c1 %t1.",
};
static const char *const scenes[] = {
    /* a list, told again */
    "%n1 [packed|took along|put into a bag] a %t1, a %t2 and a %t3. [At the %p2|On the way|In "
    "the evening] %e1 opened the bag again. In it were a %t1, a %t2 and a %t3[.|, as before.]",
    "\"I need %t1, %t2, %t3,\" said %n1. \"%^%t1, %t2, %t3,\" [repeated|said] %n2[.| and nodded.]",
    "\"Say after me: %t1 %t2 %t3 %t4,\" said %n2. \"%^%t1 %t2 %t3 %t4,\" said %n1. \"Well done!\"",
    "\"Say after me: %o1 %t2,\" said %n2. \"%^%o1 %t2,\" said %n1[.| with a smile.]",
    /* a list, told backwards */
    "They [went|walked] past the %p1, the %p2 and the %p3. On the way back they [came|went] past "
    "the %p3, the %p2 and the %p1.",
    "\"Now say it backwards: %t1 %t2 %t3,\" said %n2. \"%^%t3 %t2 %t1,\" said %n1[.| at once.]",
    "They played a game. %n1 said: \"%^%t2 %t4.\" Backwards %n2 said: \"%^%t4 %t2.\" Then %n1 "
    "said: \"%^%t1 %t3 %t2.\" Backwards %n2 said: \"%^%t2 %t3 %t1.\"",
    "\"Backwards: %t1 %t2 %t3 %t4,\" said %n1. \"%^%t4 %t3 %t2 %t1,\" said %n2[.| proudly.]",
    /* the first and the last */
    "%n2, %n3 and %n4 came [running|walking] along. The first was %n2, and the last was %n4.",
    "On the table lay a %t1, a %t2, a %t3 and a %t4. \"Take the first one,\" said %n2, and %n1 "
    "took the %t1. \"Give me the last one,\" said %n3, and got the %t4.",
    /* how many */
    "\"How many are there: %t1 %t2?\" \"Two,\" said %n1. \"And %t3 %t1 %t4?\" \"Three,\" said "
    "%n1.",
    "\"How many are there: %t1 %t2 %t3 %t4?\" asked %n2. \"Four,\" said %n1. \"And %t2?\" "
    "\"One.\"",
    "\"How many are there: %t4 %t2 %t3 %t1 %p1?\" asked %n2. \"Five,\" said %n1[.| after a "
    "while.]",
    "%n1 counted the [trees|steps|birds|boats] by the %p1: %x1, %x2, %x3, %x4. [Then|Soon] %e1 "
    "was tired of it.",
    "\"Which number comes after %x1?\" asked %n2. \"%^%x2,\" said %n1. \"And after %x3?\" "
    "\"%^%x4.\"",
    /* colours */
    "The %t1 was %c1, and the %t2 was %c2. \"What colour is the %t1?\" asked %n2. \"%^%c1,\" "
    "said %n1. [\"And the %t2?\" \"%^%c2.\"|\"I like it.\"]",
    "%n1 had a %c1 %t1, a %c2 %t2 and a %c3 %t3. \"What colour is the [%t3?\" asked %n2. "
    "\"%^%c3|%t2?\" asked %n2. \"%^%c2|%t1?\" asked %n2. \"%^%c1],\" [said|answered] %n1.",
    "%n1 painted the %t1 %c1 and the %t2 %c2. [Now the %c1 %t1 stood beside the %c2 %t2.|The %t2 "
    "looked better %c2.]",
    /* who has it */
    "%n1 had the %t1, %n2 had the %t2, and %n3 had the %t3. \"Who has the [%t1?\" \"%n1|%t2?\" "
    "\"%n2|%t3?\" \"%n3].\"",
    "%n2 gave the %t1 to %n3, and %n3 gave the %t2 to %n1. [So %n1 had the %t2|So %n3 had the "
    "%t1].",
    /* opposites */
    "\"[What is the opposite of|What is not] %o1?\" asked %n2. \"%^%o2,\" said %n1. \"And %o4?\" "
    "\"%^%o3.\"",
    "The %p1 was %o1, but the %p2 was %o2. %n1 liked the %o1 %p1 [more|less].",
    "\"This %t1 is %o3,\" said %n1. \"No, it is not %o3 but %o4,\" said %n2[.| and laughed.]",
    /* what happened */
    "[One day|One evening|Suddenly] the %c1 %t1 was [gone|missing]. %n1 looked [in the "
    "%p1|behind the %p2] and %g1, but it was not there. [Then|At last] %n2 found the %t1 %g2. "
    "%n1 was very %d1.",
    "%n1 met %n2, a %r2 %k2, [on the way to|near] the %p2. \"Where are you going?\" asked %n2. "
    "\"To the %p2, to [find|buy|fetch] a %t2,\" said %n1. [They went there together.|\"May I "
    "come too?\"]",
    "[While|Because] %w1, they stayed in the %p3 and ate %f1. %n2 told a story about a %c2 %t4. "
    "[%n1 listened and was %d1.|After that they ate %f2, too.]",
    "\"I am %d1,\" said %n1. \"Why are you %d1?\" asked %n2. \"Because [my %t1 is %o1|%w1|%n3 is "
    "not here].\" %n2 gave %m1 some %f1.",
    "They wanted to [build|mend] a %t2. %n1 held the %t3, %n2 brought the %t4. When it was done, "
    "the %t2 was %o3 and %o1.",
    "At the %p2 there was a race. %n1 was [fast|slow], %n2 was [careful|hasty], and %n3 fell "
    "over a %t3. [%n1|%n2] won a %c3 %t4 and [shared some %f2 with %n3|was %d2].",
    "In the night %w1. %n1 heard a noise %g1. It was only %n3, who had lost %h3 %t3. [They "
    "laughed|\"Come in,\" said %n1], and %n3 got %f1 and a place to sleep.",
    "%n2 [had a birthday|was ill]. %n1 brought %m2 %f2 and a %c2 %t2. \"[Thank you|How kind of "
    "you], %n1,\" said %n2, and %e2 was %d1 the whole day.",
    "On the market %n1 wanted to trade a %t1 for a %t2. %n3 wanted %f1 for it. So %n1 [went home "
    "and came back with %f1|gave the %t1 to %n2 and went on].",
};
static const char *const endings[] = {
    "[From that day on|After that], %n1 and %n2 [were friends|met near the %p1 every day].",
    "They went home together, and %n1 slept well[.| that night.]",
    "[And so|In the end] %n1 was %d2, and the %t1 stayed in the %p1.",
    "%n1 learned that it is good to [ask for help|share|wait|listen|tell the truth].",
};

struct tale {
    struct tale_dice dice;
    int name[SOME], kind[SOME], trait[SOME], place[SOME], thing[SOME], colour[SOME], food[SOME];
    int weather[SOME], hiding[SOME], mood[SOME], opposite[2], turned, number;
    char text[TALE_BYTES], spelled[32];
    size_t size;
};

/* New people, things and numbers; a scene may keep those of the tale. */
static void draw_words(struct tale *t)
{
    tale_draw_some(&t->dice, TALE_COUNT(tale_traits), SOME, t->trait);
    tale_draw_some(&t->dice, TALE_COUNT(tale_places), SOME, t->place);
    tale_draw_some(&t->dice, TALE_COUNT(tale_things), SOME, t->thing);
    tale_draw_some(&t->dice, TALE_COUNT(tale_colours), SOME, t->colour);
    tale_draw_some(&t->dice, TALE_COUNT(tale_foods), SOME, t->food);
    tale_draw_some(&t->dice, TALE_COUNT(tale_weathers), SOME, t->weather);
    tale_draw_some(&t->dice, TALE_COUNT(tale_hidings), SOME, t->hiding);
    tale_draw_some(&t->dice, TALE_COUNT(tale_moods), SOME, t->mood);
    tale_draw_some(&t->dice, TALE_COUNT(tale_opposites), 2, t->opposite);
    t->turned = (int)tale_draw(&t->dice, 2);
    t->number = 1 + (int)tale_draw(&t->dice, 95);
}

static const char *word(struct tale *t, char kind, int i)
{
    bool she = t->name[i] < TALE_SHE;
    switch (kind) {
    case 'n': return tale_names[t->name[i]];
    case 'k': return tale_kinds[t->kind[i]];
    case 'e': return she ? "she" : "he";
    case 'm': return she ? "her" : "him";
    case 'h': return she ? "her" : "his";
    case 'r': return tale_traits[t->trait[i]];
    case 'p': return tale_places[t->place[i]];
    case 't': return tale_things[t->thing[i]];
    case 'c': return tale_colours[t->colour[i]];
    case 'f': return tale_foods[t->food[i]];
    case 'w': return tale_weathers[t->weather[i]];
    case 'g': return tale_hidings[t->hiding[i]];
    case 'd': return tale_moods[t->mood[i]];
    case 'o': return tale_opposites[t->opposite[i / 2]][(i ^ t->turned) & 1];
    case 'x': return tale_number(t->number + i, t->spelled);
    default: return "?";
    }
}

/* True if the next letter begins a sentence. */
static bool at_sentence(const struct tale *t)
{
    size_t n = t->size;
    while (n > 0 && t->text[n - 1] == ' ')
        n--;
    if (n == 0 || (n < t->size && strchr(".!?", t->text[n - 1])))
        return true;
    return n > 1 && n < t->size && t->text[n - 1] == '"' && t->text[n - 2] == '.';
}

static void put(struct tale *t, const char *text, size_t size, bool capital)
{
    if (t->size + size + 1 >= sizeof t->text)
        return;
    const char *article = t->text + t->size - 3; /* "a owl" becomes "an owl" */
    if (t->size >= 3 && strchr("aeiou", *text) && memcmp(article, " a ", 3) == 0)
        memcpy(t->text + t->size++ - 1, "n ", 2);
    memcpy(t->text + t->size, text, size);
    if (capital && *text >= 'a' && *text <= 'z')
        t->text[t->size] = (char)(*text - 'a' + 'A');
    t->size += size;
    t->text[t->size] = 0;
}

/* The end of the alternative that begins at p: its '|' or its ']'. */
static const char *alternative_end(const char *p)
{
    for (int depth = 0; *p && (depth > 0 || (*p != '|' && *p != ']')); p++)
        depth += (*p == '[') - (*p == ']');
    return p;
}

/* Write [p,end) with its choices made and its words filled in. */
static void expand(struct tale *t, const char *p, const char *end)
{
    bool capital = false;
    while (p < end) {
        if (*p == '[') {
            const char *begin[16], *stop[16];
            uint64_t n = 0;
            do {
                begin[n] = ++p;
                stop[n++] = p = alternative_end(p);
            } while (*p == '|');
            p++;
            uint64_t taken = tale_draw(&t->dice, n);
            expand(t, begin[taken], stop[taken]);
        } else if (*p != '%') {
            put(t, p++, 1, at_sentence(t));
        } else if (p[1] == '^') {
            capital = true;
            p += 2;
        } else {
            const char *text = word(t, p[1], p[2] - '1');
            put(t, text, strlen(text), capital || at_sentence(t));
            capital = false;
            p += 3;
        }
    }
}

static void tell(struct tale *t, const char *text)
{
    if (t->size > 0)
        put(t, " ", 1, false);
    expand(t, text, text + strlen(text));
}

static void make_tale(struct tale *t)
{
    int taken[8], count = 4 + (int)tale_draw(&t->dice, 3);
    tale_draw_some(&t->dice, TALE_COUNT(tale_names), SOME, t->name);
    tale_draw_some(&t->dice, TALE_COUNT(tale_kinds), SOME, t->kind);
    draw_words(t);
    tell(t, openings[tale_draw(&t->dice, TALE_COUNT(openings))]);
    tale_draw_some(&t->dice, TALE_COUNT(scenes), count, taken);
    for (int i = 0; i < count; i++) {
        if (tale_draw(&t->dice, 2))
            draw_words(t);
        tell(t, scenes[taken[i]]);
    }
    tell(t, endings[tale_draw(&t->dice, TALE_COUNT(endings))]);
}

static struct {
    struct tune_flags tune;
    int64_t rows, seed;
    const char *output;
} my;

static const struct tune_option my_options[] = {
    {"rows", TUNE_INT64, &my.rows, "1000", "[1,1000000000]", "rows", "tales to make"},
    {"seed", TUNE_INT64, &my.seed, "0", "[0,inf)", "", "seed; another seed gives other tales"},
    {"output", TUNE_STRING, &my.output, "tales.jsonl", "", "",
     "file to write; it is replaced if it is there"},
    {0},
};
static const struct tune_property my_properties[] = {{0}};

int main(int argc, char **argv)
{
    struct tune_file_writer writer;
    tune_program_start(argc, argv, &my.tune, my_options, my_properties,
                       "make varied stories to train a small model on");
    MUST(tune_file_begin_output(&writer, my.output));
    for (int64_t row = 0; row < my.rows; row++) {
        struct tale t = {.dice = {(uint64_t)my.seed, (uint64_t)row, 0}};
        make_tale(&t);
        fputs("{\"text\": ", writer.file);
        tale_write_string(writer.file, t.text);
        fputs("}\n", writer.file);
    }
    if (tune_file_commit(&writer) < 0) {
        tune_file_cancel(&writer);
        tune_program_fail();
    }
    tune_flags_free(&my.tune);
    return 0;
}
