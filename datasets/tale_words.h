/* tale_words.h - the words that make_tales.c and make_tasks.c draw from. Tasks speak of what the
 * tales have told, so a model that read the tales knows the words of the tasks. */
#ifndef DATASETS_TALE_WORDS_H
#define DATASETS_TALE_WORDS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/random.h"

#define TALE_COUNT(array) (sizeof(array) / sizeof *(array))

/* Draws numbers: the same ones for the same seed and row, on every machine. */
struct tale_dice {
    uint64_t seed, row, draws;
};

static inline uint64_t tale_draw(struct tale_dice *d, uint64_t n)
{
    return tune_random_u64(d->seed, d->row, d->draws++) % n;
}

/* Draws count different numbers below n. */
static inline void tale_draw_some(struct tale_dice *d, uint64_t n, int count, int *out)
{
    for (int i = 0; i < count; i++) {
        int same = 1;
        while (same) {
            out[i] = (int)tale_draw(d, n);
            same = 0;
            for (int j = 0; j < i; j++)
                same |= out[j] == out[i];
        }
    }
}

/* The first 48 are she, the others he. */
enum { TALE_SHE = 48 };
static const char *const tale_names[] = {
    "Mila", "Runa", "Pippa", "Sela", "Greta", "Anya", "Lotte", "Nora", "Ida", "Clara", "Wilma",
    "Tessa", "Olga", "Petra", "Lena", "Marta", "Ines", "Julia", "Alma", "Berta", "Dora", "Edda",
    "Frida", "Gerda", "Hanna", "Irma", "Jana", "Karla", "Luisa", "Mona", "Nina", "Paula",
    "Rosa", "Sofia", "Tilda", "Ursa", "Vera", "Wanda", "Yara", "Zora", "Ada", "Bella", "Cora",
    "Delia", "Emma", "Flora", "Hilda", "Kira", "Tobin", "Bram", "Otto", "Finn", "Milo", "Hugo",
    "Jasper", "Anton", "Boris", "Carl", "David", "Emil", "Felix", "Georg", "Hans", "Ivan",
    "Jakob", "Konrad", "Leo", "Max", "Nils", "Oskar", "Paul", "Quint", "Ralf", "Simon", "Theo",
    "Udo", "Viktor", "Walter", "Xaver", "Yorick", "Zeno", "Arno", "Bruno", "Kaspar", "Dirk",
    "Erik", "Frank", "Gustav", "Henrik", "Ingo", "Jonas", "Kurt", "Lars", "Martin", "Noah",
    "Peter"};
static const char *const tale_kinds[] = {
    "fox", "bear", "mouse", "crow", "hare", "frog", "goose", "hedgehog", "cat", "dog",
    "squirrel", "badger", "owl", "duck", "goat", "sheep", "horse", "donkey", "otter", "beaver",
    "mole", "wolf", "swan", "hen", "child", "baker", "miller", "sailor", "smith", "gardener",
    "painter", "farmer"};
static const char *const tale_traits[] = {
    "brave", "shy", "curious", "clever", "quiet", "cheerful", "patient", "kind", "proud",
    "lazy", "careful", "daring", "merry", "gentle", "stubborn", "polite", "busy", "thoughtful",
    "funny", "loyal", "hasty", "modest", "lonely", "bold"};
static const char *const tale_places[] = {
    "mill", "valley", "bridge", "lake", "hill", "garden", "harbour", "forest", "meadow",
    "market", "school", "river", "tower", "barn", "well", "field", "castle", "beach", "cave",
    "orchard", "station", "square", "church", "island", "pond", "stable", "bakery", "library",
    "kitchen", "cellar", "attic", "gate", "path", "mountain", "swamp", "village", "inn", "bay",
    "fountain", "park"};
static const char *const tale_things[] = {
    "kite", "lantern", "drum", "bell", "boat", "hat", "key", "flute", "wagon", "scarf", "ball",
    "book", "candle", "coat", "cup", "basket", "mirror", "ribbon", "shell", "spoon", "stone",
    "sword", "table", "tent", "trumpet", "umbrella", "vase", "whistle", "box", "brush",
    "button", "chair", "clock", "comb", "doll", "feather", "fiddle", "glove", "hammer", "jar",
    "ladder", "lamp", "map", "mask", "needle", "paddle", "pillow", "plate", "pot", "ring",
    "rope", "sack", "shoe", "sled", "stick", "wheel"};
static const char *const tale_colours[] = {
    "red", "blue", "yellow", "silver", "green", "white", "golden", "black", "brown", "purple",
    "orange", "grey", "pink", "violet"};
static const char *const tale_foods[] = {
    "warm bread", "ripe plums", "pea soup", "honey cakes", "roasted nuts", "apple pie",
    "fresh milk", "cold tea", "sweet berries", "hot porridge", "salted fish", "soft cheese",
    "yellow pears", "carrot stew", "cherry jam", "pancakes", "boiled eggs", "potato salad"};
static const char *const tale_weathers[] = {
    "rain fell", "the sun shone", "snow lay on the ground", "the wind blew hard",
    "fog hung over the paths", "the stars were bright", "it was very hot",
    "thunder rolled far away", "the leaves turned brown", "ice covered the water",
    "the moon was full", "a warm breeze blew"};
static const char *const tale_hidings[] = {
    "under a pile of leaves", "behind the oldest tree", "in the tall grass", "beside the well",
    "on top of the roof", "between two grey stones", "under the bed", "behind the door",
    "inside an empty barrel", "at the bottom of a ditch", "below the stairs", "among the reeds"};
static const char *const tale_moods[] = {
    "happy", "sad", "angry", "afraid", "tired", "proud", "surprised", "calm", "nervous", "glad"};
static const char *const tale_opposites[][2] = {
    {"hot", "cold"}, {"big", "small"}, {"old", "new"}, {"fast", "slow"}, {"high", "low"},
    {"wet", "dry"}, {"light", "heavy"}, {"near", "far"}, {"long", "short"}, {"open", "closed"},
    {"full", "empty"}, {"loud", "silent"}, {"hard", "soft"}, {"rich", "poor"},
    {"early", "late"}, {"clean", "dirty"}, {"thick", "thin"}, {"wide", "narrow"},
    {"deep", "shallow"}, {"strong", "weak"}, {"sweet", "sour"}, {"bright", "dark"},
    {"smooth", "rough"}, {"right", "wrong"}};

/* The number in words, 1 to 99: "forty seven". */
static inline const char *tale_number(int n, char text[32])
{
    static const char *const ones[] = {
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
        "nineteen"};
    static const char *const tens[] = {
        "", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"};
    if (n < 20)
        snprintf(text, 32, "%s", ones[n]);
    else
        snprintf(text, 32, "%s%s%s", tens[n / 10 % 10], n % 10 ? " " : "",
                 n % 10 ? ones[n % 10] : "");
    return text;
}

/* Writes the text as a JSON string. */
static inline void tale_write_string(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', f);
        fputc(*text, f);
    }
    fputc('"', f);
}

#endif
