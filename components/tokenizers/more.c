/* more.c - special tokens beside those of a tokenizer.json. They are put into the file's text, so
 * what is saved is what is used. All else in the file stays as it is. */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/print.h"
#include "tokenizers/parts.h"

static int refuse(const char *token, const char *why)
{
    return tune_error_usage("the token to add \"%.100s\": %s", token, why);
}

/* The entry of an added token, or what keeps it from being one. */
static const struct tune_added *added_of(const struct tune_tokenizer *t, int32_t id)
{
    return id >= 0 && t->added_of[id] >= 0 ? &t->added[t->added_of[id]] : NULL;
}

static int check(const struct tune_tokenizer *t, const char *token)
{
    size_t n = strlen(token);
    const struct tune_added *a = added_of(t, tune_tokenizer_id(t, token));
    if (n == 0)
        return refuse(token, "it is empty; expected tokens with commas between them");
    if (n > TUNE_MAX_ADDED_SIZE)
        return refuse(token, "it is longer than 1024 bytes");
    if (!tune_utf8_valid(token, n, NULL))
        return refuse(token, "it is not UTF-8");
    if (isspace((unsigned char)token[0]) || isspace((unsigned char)token[n - 1]))
        return refuse(token, "it begins or ends with white space");
    if (a && !a->special)
        return refuse(token, "the tokenizer has it already, as a token that is not special; leave it out");
    return 0;
}

/* Write an entry of "added_tokens". */
static int entry(FILE *to, bool first, int32_t id, const char *token)
{
    cJSON *value = cJSON_CreateString(token);
    char *quoted = value ? cJSON_PrintUnformatted(value) : NULL;
    cJSON_Delete(value);
    if (!quoted)
        return tune_error_no_memory("a token");
    fprintf(to, "%s\n    {\n      \"id\": %d,\n      \"content\": %s,\n      \"single_word\": false,\n      \"lstrip\": false,\n"
                "      \"rstrip\": false,\n      \"normalized\": false,\n      \"special\": true\n    }", first ? "" : ",", id, quoted);
    cJSON_free(quoted);
    return 0;
}

/* Find the ']' of "added_tokens". */
static int find_end(const char *name, const char *text, size_t size, size_t *at)
{
    struct tune_json j;
    struct tune_text key;
    int got = -1;
    *at = 0;
    tune_json_start(&j, name, text, size, 1);
    j.lone_surrogates = true;
    if (tune_json_object(&j) == 0)
        while ((got = tune_json_key(&j, &key)) == 1) {
            bool wanted = tune_text_equal(key, "added_tokens") && tune_json_peek(&j) == TUNE_JSON_ARRAY;
            if (tune_json_skip(&j) < 0) {
                got = -1;
                break;
            }
            *at = wanted ? (size_t)(j.at - text) - 1 : *at;
        }
    tune_json_free(&j);
    if (got == 0 && *at == 0)
        return tune_error_set("%s: no list \"added_tokens\" to add a token to", name);
    return got;
}

/* Write the entries of all tokens that are new; *count of them. note: "token id, token id". */
static int entries(const struct tune_tokenizer *t, const char *more, bool first, FILE *to, FILE *note, int *count)
{
    char *copy = strdup(more), *rest = copy;
    int status = copy ? 0 : tune_error_no_memory("the tokens to add");
    int32_t next = t->size;
    for (char *token; status == 0 && (token = strsep(&rest, ","));) {
        int32_t id = tune_tokenizer_id(t, token);
        bool there = added_of(t, id) != NULL;
        const char *again = status == 0 ? strstr(rest ? rest : "", token) : NULL;
        status = check(t, token);
        for (size_t n = strlen(token); status == 0 && again; again = strstr(again + 1, token))
            if (again[-1] == ',' || again == rest)
                status = again[n] == ',' || !again[n] ? refuse(token, "it is named twice") : 0;
        if (status < 0)
            break;
        id = id >= 0 ? id : next++;
        fprintf(note, "%s%s %d%s", ftell(note) ? ", " : "", token, id, there ? " (there already)" : "");
        if (!there)
            status = entry(to, first && *count == 0, id, token);
        *count += !there;
    }
    free(copy);
    return status;
}

/* Check that the new text gives each token the id that was written. */
static int verify(const struct tune_tokenizer *before, const struct tune_tokenizer *after, const char *more)
{
    char *copy = strdup(more), *rest = copy;
    int status = copy ? 0 : tune_error_no_memory("the tokens to add");
    int32_t next = before->size;
    for (char *token; status == 0 && (token = strsep(&rest, ","));) {
        int32_t want = tune_tokenizer_id(before, token), is = tune_tokenizer_id(after, token);
        want = want >= 0 ? want : next++;
        if (is != want)
            status = tune_error_set("%s: \"%.100s\" would get the id %d, expected %d: the file's ids have gaps; repair them first",
                                    before->path, token, is, want);
    }
    free(copy);
    return status;
}

/* Put the tokens into the text. *out NULL: all of them are there already. */
static int insert(const struct tune_tokenizer *t, const char *text, size_t size, const char *more, char **out, size_t *out_size,
                  char **note)
{
    char *list = NULL;
    size_t at, n, note_size, tail;
    int count = 0;
    TRY(find_end(t->path, text, size, &at));
    for (tail = at; tail > 0 && isspace((unsigned char)text[tail - 1]);)
        tail--;
    FILE *to = open_memstream(&list, &n), *said = open_memstream(note, &note_size);
    int status = to && said ? entries(t, more, text[tail - 1] == '[', to, said, &count) : tune_error_no_memory("the tokens to add");
    if (to)
        fclose(to);
    if (said)
        fclose(said);
    *out = NULL;
    if (status == 0 && count > 0) {
        FILE *all = open_memstream(out, out_size);
        if (all) {
            fwrite(text, 1, tail, all);
            fwrite(list, 1, n, all);
            fputs("\n  ", all);
            fwrite(text + at, 1, size - at, all);
        }
        status = all && fclose(all) == 0 && *out ? 0 : tune_error_no_memory("a tokenizer.json");
    }
    free(list);
    return status;
}

struct tune_tokenizer *tune_tokenizer_with(struct tune_tokenizer *t, const char *text, size_t size, const char *more, char **out,
                                           size_t *out_size)
{
    char *note = NULL;
    struct tune_tokenizer *after = t;
    int status = insert(t, text, size, more, out, out_size, &note);
    if (status == 0 && *out) {
        after = tune_tokenizer_parse(t->path, *out, *out_size);
        status = after ? verify(t, after, more) : -1;
        if (status < 0) {
            tune_tokenizer_free(after);
            after = NULL;
        }
        tune_tokenizer_free(t);
        t = NULL;
    }
    if (status == 0) {
        free(after->more);
        after->more = note;
        return after;
    }
    tune_tokenizer_free(t);
    free(note);
    free(*out);
    *out = NULL;
    return NULL;
}

struct tune_tokenizer *tune_tokenizer_add(const char *name, char **text, size_t *size, const char *more)
{
    char *out = NULL;
    size_t n;
    struct tune_tokenizer *t = tune_tokenizer_parse(name, *text, *size);
    t = t ? tune_tokenizer_with(t, *text, *size, more, &out, &n) : NULL;
    if (out) {
        free(*text);
        *text = out;
        *size = n;
    }
    return t;
}
