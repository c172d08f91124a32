/* test_patterns.c - the patterns of Qwen 3.5, Mistral's Tekken and Llama 4: vocabularies in which a word that is cut at another place
 * has other ids. These are of tokenizers 0.23; tests/peers/tokenizers_peer.py compares at length. */
#include "test.h"

#include "tokenizers/tokenizer.h"

#define WORDS(suffix) "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+" suffix \
    "|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*" suffix "|"
#define OTHER "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n/]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define SHORT "(?i:'s|'t|'re|'ve|'m|'ll|'d)"

static const struct { const char *name, *pattern; } patterns[] = {
    {"qwen35", SHORT "|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{L}\\\\p{M}]+|\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{M}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"},
    {"tekken", WORDS("") "\\\\p{N}" OTHER},
    {"llama4", WORDS(SHORT "?") "\\\\p{N}{1,3}" OTHER},
};

static void check(struct tune_tokenizer *t, const char *name, const char *text, const char *ids)
{
    struct tune_encoding e = {0};
    char line[256] = "";
    size_t n = 0;
    assert_ok(tune_tokenizer_encode(t, text, strlen(text), 0, &e));
    for (int64_t i = 0; i < e.count; i++)
        n += (size_t)snprintf(line + n, sizeof line - n, i ? " %d" : "%d", (int)e.ids[i]);
    if (strcmp(line, ids) != 0)
        fail_msg("%s: \"%s\" gives %s, expected %s", name, text, line, ids);
    tune_encoding_free(&e);
}

static void words(void **state)
{
    (void)state;
    static const char *const vocabulary[] = {"!", "/", "\\u010a", "A", "a", "'", "s", "\\u00cc", "\\u0123", "\\u00cc\\u0123", "/\\u010a", "!/", "Aa", "aA",
       "AA", "a'", "'s", "a\\u00cc\\u0123", "!\\u00cc\\u0123", "\\u00cc\\u0123a", "\\u0120", "\\u0120A", "1",
       "11", "A'", "\\u0120!", "\\u010a/", "\\u00cc\\u0123A"};
    static const char *const merges[] = {"\\u00cc \\u0123", "/ \\u010a", "! /", "A a", "a A", "A A", "a '", "' s", "a \\u00cc\\u0123",
       "! \\u00cc\\u0123", "\\u00cc\\u0123 a", "\\u0120 A", "1 1", "A '", "\\u0120 !", "\\u010a /",
       "\\u00cc\\u0123 A"};
    static const struct { const char *text, *ids[3]; } of[] = {
        {"a!/\n\na", {"4 0 10 2 4", "4 0 10 2 4", "4 0 10 2 4"}},
        {"!\n/a", {"0 2 1 4", "0 26 4", "0 26 4"}},
        {"A\xCC\x81""A!", {"3 27 0", "3 9 3 0", "3 9 3 0"}},
        {"!A\xCC\x81""A", {"0 3 27", "0 3 9 3", "0 3 9 3"}},
        {"aA", {"13", "4 3", "4 3"}},
        {"AaA", {"12 3", "12 3", "12 3"}},
        {"AAa", {"3 12", "3 12", "3 12"}},
        {"AA", {"14", "14", "14"}},
        {"A!a", {"3 0 4", "3 0 4", "3 0 4"}},
        {"!a", {"0 4", "0 4", "0 4"}},
        {"! a", {"0 20 4", "0 20 4", "0 20 4"}},
        {" A", {"21", "21", "21"}},
        {"!\xCC\x81""a", {"18 4", "18 4", "18 4"}},
        {"!!\xCC\x81""a", {"0 0 19", "0 18 4", "0 18 4"}},
        {"a\xCC\x81""A", {"17 3", "17 3", "17 3"}},
        {"AA\xCC\x81""A", {"14 27", "14 9 3", "14 9 3"}},
        {"a's", {"4 16", "4 16", "15 6"}},
        {"A'sa", {"3 16 4", "3 16 4", "3 16 4"}},
        {"'s", {"16", "16", "16"}},
        {"a'", {"4 5", "4 5", "4 5"}},
        {"1111", {"22 22 22 22", "22 22 22 22", "23 22 22"}},
        {"\xCC\x81""\xCC\x81""!", {"9 9 0", "9 9 0", "9 9 0"}},
        {" !\n\n A", {"25 2 2 21", "25 2 2 21", "25 2 2 21"}},
    };
    char file[8192];
    for (int p = 0; p < 3; p++) {
        const char *folder = test_folder();
        int n = snprintf(file, sizeof file, "{\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
                         "\"pattern\":{\"Regex\":\"%s\"},\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
                         "\"use_regex\":false}]},\"model\":{\"vocab\":{", patterns[p].pattern);
        for (size_t i = 0; i < sizeof vocabulary / sizeof *vocabulary; i++)
            n += snprintf(file + n, sizeof file - (size_t)n, "%s\"%s\":%zu", i ? "," : "", vocabulary[i], i);
        n += snprintf(file + n, sizeof file - (size_t)n, "},\"merges\":[");
        for (size_t i = 0; i < sizeof merges / sizeof *merges; i++)
            n += snprintf(file + n, sizeof file - (size_t)n, "%s\"%s\"", i ? "," : "", merges[i]);
        n += snprintf(file + n, sizeof file - (size_t)n, "]}}");
        test_write(folder, "tokenizer.json", file, (size_t)n);
        struct tune_tokenizer *t = tune_tokenizer_open(folder);
        assert_got(t);
        assert_string_equal(tune_tokenizer_pipeline(t), patterns[p].name);
        for (size_t i = 0; i < sizeof of / sizeof *of; i++)
            check(t, patterns[p].name, of[i].text, of[i].ids[p]);
        tune_tokenizer_free(t);
        tune_file_remove_folder(folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
