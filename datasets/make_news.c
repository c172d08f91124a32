/* make_news.c - the artificial sets that training speed is measured on: build/make_news
 * news-tokens-16384plus-entries-4096
 *
 * One entry is a line {"output": "<text>"}. Its text is words joined by single spaces:
 *
 *     "### Input:\n"   8 words   "\n\n### Response:"   words
 *
 *     news-tokens-16384plus-entries-N    13,680 words: 16,384 tokens or more by every tokenizer
 *     news-tokens-128kplus-entries-N     109,440 words, eight times as many: 131,072 tokens or more
 *     news-chars-C-entries-N             words without end, cut where the text has C characters, be it within a word
 *
 * Words are what white space separates in datasets/words.txt, prose of this project's own (or in
 * --words FILE). They are taken in order; after the last one comes the first again. An entry starts
 * after the last word of the entry before it. What is not printable ASCII is written as \uXXXX.
 * ado's own generator has the same rules, so the same words give the same bytes.
 *
 * 1,881 words share no divisor with 13,688, so that many entries follow before one comes again. No
 * clock, locale or random number has a say: the same file on every machine. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "files/file.h"
#include "files/json.h"
#include "core/try.h"
#include "core/nearest.h"
#include "flags/program.h"

enum { PROMPT_WORDS = 8, LEAST_CHARACTERS = 256, MOST_CHARACTERS = 1 << 20, MOST_ENTRIES = 1 << 24, MOST_BYTES = 1 << 30 };

struct set {
    int64_t entries;
    int64_t words;      /* of the response */
    int64_t characters; /* of the text; 0: as many as the words have */
};

static const struct {
    const char *begin;
    int64_t words;
} kinds[] = {{"news-tokens-16384plus", 13680}, {"news-tokens-128kplus", 8 * 13680}};

static const char *const names[] = {
    "news-tokens-16384plus-entries-4096", "news-tokens-128kplus-entries-320", "news-tokens-128kplus-entries-4096",
    "news-chars-512-entries-256",         "news-chars-512-entries-1024",      "news-chars-512-entries-4096",
    "news-chars-1024-entries-256",        "news-chars-1024-entries-1024",     "news-chars-1024-entries-4096",
    "news-chars-2048-entries-256",        "news-chars-2048-entries-1024",     "news-chars-2048-entries-4096",
};
enum { NAMES = sizeof names / sizeof *names };

/* Words as they are written in JSON, each behind a space. */
struct words {
    char *text;
    int64_t count;
    size_t *begin;       /* [count + 1] offsets in text */
    int64_t *characters; /* [count], the space among them */
};

struct entry {
    char *text;
    size_t size, room;
    int64_t left; /* characters that it may still take */
    bool lost;    /* something found no room */
};

static struct {
    struct tune_flags tune;
    const char *name, *output, *words;
    bool list, overwrite;
} my;

static const struct tune_option my_options[] = {
    {"<name>", TUNE_STRING, &my.name, "", "", "",
     "set to make, named as in --list. Other numbers of entries and characters work too"},
    {"output", TUNE_STRING, &my.output, ".", "", "",
     "folder for NAME.jsonl, or the file; folders are made"},
    {"words", TUNE_STRING, &my.words, NULL, "", "",
     "file with the words. Default: datasets/words.txt"},
    {"overwrite", TUNE_BOOL, &my.overwrite, "false", "", "", "replace a file that is there"},
    {"list", TUNE_BOOL, &my.list, "false", "", "", "list the sets and their sizes"},
    {0},
};
static const struct tune_property my_properties[] = {{0}};

/* ---- which set ---- */

/* The name must be what its numbers spell: no sign, space or zero before them. */
static int read_name(const char *name, struct set *s)
{
    long long entries = 0, characters = 0;
    char spelled[96] = "";
    *s = (struct set){0};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t n = strlen(kinds[i].begin);
        if (strncmp(name, kinds[i].begin, n) == 0 && sscanf(name + n, "-entries-%9lld", &entries) == 1) {
            snprintf(spelled, sizeof spelled, "%s-entries-%lld", kinds[i].begin, entries);
            *s = (struct set){.entries = entries, .words = kinds[i].words};
        }
    }
    if (sscanf(name, "news-chars-%9lld-entries-%9lld", &characters, &entries) == 2) {
        snprintf(spelled, sizeof spelled, "news-chars-%lld-entries-%lld", characters, entries);
        *s = (struct set){.entries = entries, .words = INT64_MAX, .characters = characters};
    }
    if (!*name || strcmp(name, spelled) != 0)
        return tune_error_usage("%s%s%s; expected news-tokens-16384plus-entries-N, "
                                "news-tokens-128kplus-entries-N or news-chars-C-entries-N%s%s; "
                                "--list shows the usual ones", *name ? "no set \"" : "which set?",
                                name, *name ? "\"" : " Give its name",
                                *name ? "; the nearest is " : "",
                                *name ? tune_nearest(name, names, NAMES, NULL) : "");
    if (s->entries < 1 || s->entries > MOST_ENTRIES ||
        (s->characters && (s->characters < LEAST_CHARACTERS || s->characters > MOST_CHARACTERS))) {
        return tune_error_usage("%s: expected 1 to %d entries, and of %d to %d characters", name,
                                MOST_ENTRIES, LEAST_CHARACTERS, MOST_CHARACTERS);
    }
    return 0;
}

/* ---- words ---- */

/* One character of well-formed UTF-8: its code point, and *size bytes. */
static unsigned decode(const char *text, size_t *size)
{
    const unsigned char *p = (const unsigned char *)text;
    *size = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    unsigned code = *size == 1 ? p[0] : p[0] & (0x7fu >> *size);
    for (size_t i = 1; i < *size; i++)
        code = code << 6 | (p[i] & 0x3f);
    return code;
}

/* Unicode's, and the four separators of ASCII. */
static bool is_space(unsigned c)
{
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
           c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

/* Spells a character into at most 12 bytes. */
static size_t spell(char *to, unsigned c)
{
    if (c == '"' || c == '\\' || c == '\b') /* the others that JSON has a letter for are white space */
        return (size_t)sprintf(to, "\\%c", c == '\b' ? 'b' : (int)c);
    if (c >= 32 && c < 127)
        return (size_t)sprintf(to, "%c", (int)c);
    if (c < 0x10000)
        return (size_t)sprintf(to, "\\u%04x", c);
    return (size_t)sprintf(to, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + (c & 0x3ff));
}

/* Bytes of the first character of spelled text. */
static size_t spelled_size(const char *text)
{
    if (text[0] != '\\')
        return 1;
    if (text[1] != 'u')
        return 2;
    return text[2] == 'd' && text[3] >= '8' && text[3] <= 'b' ? 12 : 6; /* a pair of surrogates is one character */
}

static void free_words(struct words *w)
{
    free(w->text);
    free(w->begin);
    free(w->characters);
}

static int read_words(struct words *w, const char *path)
{
    char *text;
    size_t size, bad, used = 0, n;
    bool within = false;
    TRY(tune_file_read(path, (size_t)64 << 20, &text, &size));
    *w = (struct words){.text = malloc(size * 7 + 1), .begin = malloc((size / 2 + 2) * sizeof *w->begin),
                        .characters = malloc((size / 2 + 2) * sizeof *w->characters)};
    if (!w->text || !w->begin || !w->characters) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory for the words of %s", path);
    } else if (!tune_utf8_valid(text, size, &bad)) {
        tune_error_set("%s: byte %zu is no UTF-8; expected a text to take words from", path, bad);
    } else {
        for (size_t i = 0; i < size; i += n) {
            unsigned c = decode(text + i, &n);
            bool begins = !within && !is_space(c);
            within = !is_space(c);
            if (begins) {
                w->begin[w->count] = used;
                w->characters[w->count++] = 1;
                w->text[used++] = ' ';
            }
            if (within) {
                used += spell(w->text + used, c);
                w->characters[w->count - 1]++;
            }
        }
        w->begin[w->count] = used;
        if (w->count == 0)
            tune_error_set("%s: not one word in it", path);
    }
    free(text);
    if (w->count > 0)
        return 0;
    free_words(w);
    return -1;
}

/* ---- entries ---- */

/* Adds spelled text as far as characters are left; how many it took. */
static int64_t add(struct entry *e, const char *spelled, size_t size, int64_t characters)
{
    if (characters > e->left) {
        characters = e->left;
        size = 0;
        for (int64_t i = 0; i < characters; i++)
            size += spelled_size(spelled + size);
    }
    if (e->size + size > e->room) {
        size_t room = 2 * (e->size + size);
        char *more = room > MOST_BYTES ? NULL : realloc(e->text, room);
        if (!more) {
            e->lost = true;
            e->left = 0;
            return 0;
        }
        e->text = more;
        e->room = room;
    }
    memcpy(e->text + e->size, spelled, size);
    e->size += size;
    e->left -= characters;
    return characters;
}

/* count words; *next moves behind the last one that shows more than its space. */
static void add_words(struct entry *e, const struct words *w, int64_t count, int64_t *next)
{
    for (int64_t i = 0; i < count && e->left > 0; i++) {
        size_t begin = w->begin[*next];
        if (add(e, w->text + begin, w->begin[*next + 1] - begin, w->characters[*next]) > 1)
            *next = *next + 1 < w->count ? *next + 1 : 0;
    }
}

static int make_entry(struct entry *e, const struct set *s, const struct words *w, int64_t *next)
{
    static const char begin[] = "{\"output\": \"", end[] = "\"}\n", input[] = "### Input:\\n", response[] = " \\n\\n### Response:";
    e->size = 0;
    add(e, begin, sizeof begin - 1, 0);
    e->left = s->characters ? s->characters : INT64_MAX;
    add(e, input, sizeof input - 1, sizeof input - 2); /* an escape is one character */
    add_words(e, w, PROMPT_WORDS, next);
    add(e, response, sizeof response - 1, sizeof response - 3);
    add_words(e, w, s->words, next);
    add(e, end, sizeof end - 1, 0);
    if (e->lost)
        tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory for an entry of more than %zu bytes; take shorter --words", e->room);
    return e->lost ? -1 : 0;
}

static void list(const struct words *w)
{
    for (int i = 0; i < NAMES; i++) {
        struct set s;
        struct entry e = {0};
        int64_t next = 0;
        MUST(read_name(names[i], &s));
        MUST(make_entry(&e, &s, w, &next));
        double bytes = (double)e.size * (double)s.entries;
        printf("%-36s %4lld entries of %6lld %-10s %7.1f MB\n", names[i], (long long)s.entries,
               (long long)(s.characters ? s.characters : s.words + PROMPT_WORDS), s.characters ? "characters" : "words",
               bytes / 1e6);
        free(e.text);
    }
}

/* ---- the file ---- */

/* 1: path holds this very set; 0: nothing is there, or no file, or a signal came; -1: something else is. */
static int check_present(const char *path, const struct set *s, const struct words *w)
{
    struct tune_mapping there;
    struct entry e = {0};
    struct stat st;
    size_t at = 0;
    int64_t next = 0, row = 0;
    bool same = true;
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    TRY(tune_file_map(&there, path));
    for (; same && row < s->entries && !*my.tune.stop_signal; row += same) {
        MUST(make_entry(&e, s, w, &next));
        same = there.size - at >= e.size && memcmp(there.data + at, e.text, e.size) == 0;
        at += same ? e.size : 0;
    }
    same = same && at == there.size;
    tune_file_unmap(&there);
    free(e.text);
    if (same || *my.tune.stop_signal)
        return same;
    return tune_error_set("%s is there already, and is not the file that would be written: line "
                          "%lld differs; --overwrite replaces it, --output takes another name",
                          path, (long long)row + 1);
}

static void show_progress(int64_t row, const struct set *s, double *shown_s)
{
    double now = tune_clock_s();
    if (now - *shown_s < 0.2 || !isatty(STDERR_FILENO))
        return;
    *shown_s = now;
    fprintf(stderr, "\r%3d %% of %lld entries", (int)(100 * row / s->entries), (long long)s->entries);
}

/* Bytes written; -1: an error, nothing is left of it. 0: a signal, likewise. */
static int64_t write_set(const char *path, const struct set *s, const struct words *w)
{
    struct tune_file_writer writer;
    struct entry e = {0};
    int64_t next = 0, bytes = 0;
    double begin_s = tune_clock_s(), shown_s = begin_s;
    int status = tune_file_begin_output(&writer, path);
    if (status < 0)
        return -1;
    for (int64_t row = 0; row < s->entries && status == 0 && !*my.tune.stop_signal; row++) {
        status = make_entry(&e, s, w, &next);
        if (status == 0 && fwrite(e.text, 1, e.size, writer.file) != e.size) {
            tune_error_set("cannot write %s: %s%s", path, strerror(errno),
                           errno == ENOSPC ? "; free space or choose another folder" : "");
            status = -1;
        }
        bytes += (int64_t)e.size;
        show_progress(row, s, &shown_s);
    }
    if (shown_s > begin_s)
        fputs("\r\033[K", stderr);
    free(e.text);
    if (status == 0 && !*my.tune.stop_signal && (status = tune_file_commit(&writer)) == 0) {
        fprintf(stderr, "# %s: %lld entries, %.1f MB, %.1f s\n", path, (long long)s->entries, (double)bytes / 1e6,
                tune_clock_s() - begin_s);
        return bytes;
    }
    tune_file_cancel(&writer);
    return status;
}

/* --output as a file; the folder it lies in is made. */
static void choose_path(char path[TUNE_PATH_MAX])
{
    char folder[TUNE_PATH_MAX];
    size_t n = strlen(my.output);
    bool is_folder = tune_file_is_folder(my.output) || (n > 0 && my.output[n - 1] == '/');
    MUST(is_folder ? tune_path(path, "%s%s%s.jsonl", my.output, my.output[n - 1] == '/' ? "" : "/", my.name)
                   : tune_path(path, "%s", my.output));
    MUST(tune_file_parent(folder, path));
    MUST(tune_file_make_folder(folder));
}

int main(int argc, char **argv)
{
    struct set s;
    struct words w;
    char path[TUNE_PATH_MAX];
    tune_program_start(argc, argv, &my.tune, my_options, my_properties, "make an artificial set to measure training on");
    tune_program_catch_signals(&my.tune); /* the unfinished file is removed */
    if (!my.list)
        MUST(read_name(my.name, &s));
    if (!my.words)
        MUST(tune_defaults_path(path, "../datasets/words.txt"));
    MUST(read_words(&w, my.words ? my.words : path));
    if (my.list) {
        list(&w);
    } else {
        choose_path(path);
        int present = my.overwrite ? 0 : MUST(check_present(path, &s, &w));
        if (present)
            fprintf(stderr, "# %s: is there already, whole\n", path);
        else
            MUST(write_set(path, &s, &w));
    }
    free_words(&w);
    tune_flags_free(&my.tune);
    return tune_program_exit(&(struct tune_progress){.signal = *my.tune.stop_signal});
}
