/* tokenize.c - text to token ids and back, a JSON object per line.
 *
 *     echo '{"text": "Hello"}' | build/tokenize --model models/SmolLM2-135M       {"ids":[19556]}
 *     echo '{"ids": [19556]}'  | build/tokenize --model models/SmolLM2-135M --decode
 *
 * The folder needs a tokenizer.json and nothing else. Other keys of a line are left out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "files/json.h"
#include "core/print.h"
#include "flags/program.h"
#include "tokenizers/tokenizer.h"

static struct {
    struct tune_flags tune;
    bool special, skip_special, decode;
} my;

static const struct tune_option my_options[] = {
    {"model", TUNE_STRING, &my.tune.model, NULL, "", "",
     "tokenizer.json, its folder, known name or Hub id"},
    {"special", TUNE_BOOL, &my.special, "true", "", "",
     "add the template's special tokens, such as BOS"},
    {"decode", TUNE_BOOL, &my.decode, "false", "", "",
     "read {\"ids\": [..]}, write {\"text\": ..}"},
    {"skip-special", TUNE_BOOL, &my.skip_special, "false", "", "",
     "leave special tokens out of decoded text"},
    {0}
};
static const struct tune_property my_properties[] = {{0}};

/* Steps to the value of the line's one key of this name; the others are checked and passed over. 0 or -1. */
static int find(struct tune_json *j, const char *name, struct tune_json *value)
{
    struct tune_text key;
    int got;
    bool found = false;
    if (tune_json_object(j) < 0)
        return -1;
    while ((got = tune_json_key(j, &key)) == 1) {
        if (tune_text_equal(key, name)) {
            if (found)
                return tune_json_fail(j, "\"%s\" stands there twice", name);
            found = true;
            tune_json_start(value, j->name, j->text, (size_t)(j->end - j->text), j->first_line);
            value->at = j->at;
        }
        if (tune_json_skip(j) < 0)
            return -1;
    }
    if (got < 0 || tune_json_end(j) < 0)
        return -1;
    return found ? 0 : tune_json_fail(j, "no \"%s\" in this line; expected {\"%s\": ..}", name, name);
}

static int encode(struct tune_tokenizer *t, struct tune_json *value, struct tune_encoding *e)
{
    struct tune_text text;
    if (tune_json_string(value, &text) < 0 ||
        tune_tokenizer_encode(t, text.data, text.size, my.special ? TUNE_ADD_SPECIAL : 0, e) < 0)
        return -1;
    fputs("{\"ids\":[", stdout);
    for (int64_t i = 0; i < e->count; i++) {
        char digits[12], *p = digits + sizeof digits;
        int32_t id = e->ids[i];
        do
            *--p = (char)('0' + id % 10);
        while ((id /= 10) > 0);
        if (i > 0)
            *--p = ',';
        fwrite(p, 1, (size_t)(digits + sizeof digits - p), stdout);
    }
    fputs("]}\n", stdout);
    return 0;
}

static void put_string(const char *text, size_t size)
{
    putchar('"');
    for (size_t n; size > 0; text += n, size -= n) {
        unsigned c;
        bool steers = tune_steers(text, size, &n, &c);
        if (c == '"' || c == '\\')
            printf("\\%c", (int)c);
        else if (steers)
            printf("\\u%04x", c);
        else
            fwrite(text, 1, n, stdout);
    }
    putchar('"');
}

static int decode(struct tune_tokenizer *t, struct tune_json *value, struct tune_encoding *e)
{
    int64_t count = 0;
    int got;
    char *text;
    size_t size;
    if (tune_json_array(value) < 0)
        return -1;
    while ((got = tune_json_item(value)) == 1) {
        uint64_t id;
        if (tune_json_u64(value, &id) < 0)
            return -1;
        if (count == e->room) {
            int64_t room = count * 2 + 64;
            int32_t *ids = realloc(e->ids, (size_t)room * sizeof *ids);
            if (!ids)
                return tune_json_fail(value, "no memory for %lld ids", (long long)room);
            e->ids = ids;
            e->room = room;
        }
        e->ids[count++] = id > INT32_MAX ? INT32_MAX : (int32_t)id;
    }
    if (got < 0 || tune_tokenizer_decode(t, e->ids, count, my.skip_special, &text, &size) < 0)
        return -1;
    fputs("{\"text\":", stdout);
    put_string(text, size);
    fputs("}\n", stdout);
    free(text);
    return 0;
}

static int line(struct tune_tokenizer *t, const char *text, size_t size, int64_t number, struct tune_encoding *e)
{
    struct tune_json j, value = {0};
    tune_json_start(&j, "stdin", text, size, number);
    int failed = find(&j, my.decode ? "ids" : "text", &value);
    if (!failed)
        failed = my.decode ? decode(t, &value, e) : encode(t, &value, e);
    tune_json_free(&j);
    tune_json_free(&value);
    if (failed && strncmp(tune_error_message(), "stdin:", 6) != 0)
        tune_error_prefix("stdin:%lld: ", (long long)number);
    return failed;
}

int main(int argc, char **argv)
{
    tune_program_start(argc, argv, &my.tune, my_options, my_properties, "text to token ids and back, JSON lines on stdin");
    struct tune_tokenizer *t = GET(tune_get_tokenizer(&my.tune));
    tune_tokenizer_limit(t, 0); /* ids of added tokens are shown, whatever rows a model has */
    if (tune_tokenizer_warning(t)) {
        fputs("tokenize: warning: ", stderr);
        tune_print_line_of(stderr, tune_tokenizer_warning(t)); /* it has what the file spells */
        fputc('\n', stderr);
    }
    struct tune_encoding e = {0};
    char *text = NULL;
    size_t room = 0;
    ssize_t size;
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    for (int64_t number = 1; (size = getline(&text, &room, stdin)) >= 0; number++) {
        size -= text[size - 1] == '\n'; /* else an error at the line's end would name the next */
        if (strspn(text, " \t\r") < (size_t)size && line(t, text, (size_t)size, number, &e) < 0) {
            fflush(stdout); /* what came before the bad line is good */
            tune_program_fail();
        }
    }
    if (ferror(stdin) || fflush(stdout) != 0 || ferror(stdout)) {
        tune_error_set("tokenize: %s", strerror(errno));
        tune_program_fail();
    }
    free(text);
    tune_encoding_free(&e);
    tune_tokenizer_free(t);
    return 0;
}
