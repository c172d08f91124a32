/* load_stages.c - the normalizer, pre-tokenizer, post-processor and decoder of tokenizer.json.
 * Known ones are recognised exactly; others are errors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizers/parts.h"

#define GPT2_PATTERN "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define SPLIT_PATTERN(numbers)                                                                       \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers                            \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LLAMA3_PATTERN SPLIT_PATTERN("\\p{N}{1,3}")
#define QWEN2_PATTERN SPLIT_PATTERN("\\p{N}")

/* A component, with the fields of all known types. */
struct stage {
    char type[64], pattern[512], content[64], prepend[64], behavior[64];
    bool regex, invert, individual_digits, add_prefix_space, use_regex;
    uint64_t start, stop;
    struct tune_part list, single, specials; /* of a Sequence; of a template */
};

static int copy_string(struct tune_json *j, char *to, size_t room)
{
    struct tune_text s;
    TRY(tune_json_string(j, &s));
    if (s.size >= room || memchr(s.data, 0, s.size))
        return tune_json_fail(j, "a string of %zu bytes; expected less than %zu and no NUL", s.size, room);
    memcpy(to, s.data, s.size + 1);
    return 0;
}

/* Read {"String": ..} or {"Regex": ..}. */
static int read_pattern(struct tune_json *j, struct stage *s)
{
    struct tune_text key;
    int got;
    TRY(tune_json_object(j));
    while ((got = tune_json_key(j, &key)) == 1) {
        s->regex = tune_text_equal(key, "Regex");
        if (!s->regex && !tune_text_equal(key, "String"))
            return tune_json_fail(j, "a pattern of kind \"%.60s\"; expected String or Regex", key.data);
        TRY(copy_string(j, s->pattern, sizeof s->pattern));
    }
    return got;
}

static int read_field(struct tune_json *j, struct tune_text key, struct stage *s)
{
    struct {
        const char *name;
        char *text;
    } texts[] = {{"type", s->type}, {"prepend", s->prepend}, {"content", s->content}, {"behavior", s->behavior}};
    struct {
        const char *name;
        bool *flag;
    } flags[] = {{"invert", &s->invert}, {"individual_digits", &s->individual_digits},
                 {"add_prefix_space", &s->add_prefix_space}, {"use_regex", &s->use_regex}};
    struct {
        const char *name;
        struct tune_part *part;
    } parts[] = {{"normalizers", &s->list}, {"pretokenizers", &s->list}, {"processors", &s->list}, {"decoders", &s->list},
                 {"single", &s->single}, {"special_tokens", &s->specials}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (tune_text_equal(key, texts[i].name))
            return copy_string(j, texts[i].text, sizeof s->type);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (tune_text_equal(key, flags[i].name))
            return tune_json_bool(j, flags[i].flag);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (tune_text_equal(key, parts[i].name)) {
            if (parts[i].part->begin)
                return tune_json_fail(j, "the key \"%s\" stands there twice", parts[i].name);
            *parts[i].part = (struct tune_part){j->at, NULL, tune_json_line(j)};
            TRY(tune_json_skip(j));
            parts[i].part->end = j->at;
            return 0;
        }
    if (tune_text_equal(key, "pattern"))
        return read_pattern(j, s);
    if (tune_text_equal(key, "start"))
        return tune_json_u64(j, &s->start);
    if (tune_text_equal(key, "stop"))
        return tune_json_u64(j, &s->stop);
    return tune_json_skip(j);
}

static int read_stage(struct tune_json *j, struct stage *s)
{
    struct tune_text key;
    int got;
    memset(s, 0, sizeof *s);
    s->use_regex = true; /* the default in old files */
    TRY(tune_json_object(j));
    while ((got = tune_json_key(j, &key)) == 1)
        TRY(read_field(j, key, s));
    TRY(got);
    return s->type[0] ? 0 : tune_json_fail(j, "a component without a \"type\"");
}

static int read_list(struct tune_tokenizer *t, struct tune_json *j, struct stage *stages, int *count, const char *what)
{
    int got;
    TRY(tune_json_array(j));
    while ((got = tune_json_item(j)) == 1) {
        if (*count == TUNE_MAX_STEPS)
            return tune_error_set("%s: the %s is a Sequence of more than %d", t->path, what, TUNE_MAX_STEPS);
        TRY(read_stage(j, &stages[*count]));
        if (strcmp(stages[(*count)++].type, "Sequence") == 0)
            return tune_error_set("%s: the %s is a Sequence within a Sequence; this program knows flat ones", t->path, what);
    }
    return got;
}

/* Read the part's components in order; Sequences are flattened. */
static int read_stages(struct tune_tokenizer *t, const struct tune_part *part, const char *what, struct stage *stages, int *count)
{
    struct tune_json j;
    *count = 0;
    if (!part->begin)
        return 0;
    tune_json_start(&j, t->path, part->begin, (size_t)(part->end - part->begin), part->line);
    int failed = 0;
    if (tune_json_peek(&j) == TUNE_JSON_NULL)
        return 0;
    struct stage whole;
    failed = read_stage(&j, &whole);
    tune_json_free(&j);
    if (failed || strcmp(whole.type, "Sequence") != 0) {
        stages[0] = whole;
        *count = 1;
        return failed;
    }
    if (!whole.list.begin)
        return tune_error_set("%s: the %s is a Sequence without a list", t->path, what);
    tune_json_start(&j, t->path, whole.list.begin, (size_t)(whole.list.end - whole.list.begin), whole.list.line);
    failed = read_list(t, &j, stages, count, what);
    tune_json_free(&j);
    return failed;
}

static int refuse(const struct tune_tokenizer *t, const char *what, const struct stage *stages, int count, const char *known)
{
    char types[512] = "";
    size_t n = 0;
    for (int i = 0; i < count && n < sizeof types; i++)
        n += (size_t)snprintf(types + n, sizeof types - n, "%s%s%s%.80s%s", i ? ", " : "", stages[i].type,
                              stages[i].pattern[0] ? "(" : "", stages[i].pattern, stages[i].pattern[0] ? ")" : "");
    return tune_error_set("%s: the %s %s%s%s is not one this program knows exactly, and ids must not be guessed; known: %s",
                          t->path, what, count > 1 ? "Sequence[" : "", types, count > 1 ? "]" : "", known);
}

int tune_load_normalizer(struct tune_tokenizer *t, const struct tune_part *part)
{
    struct stage s[TUNE_MAX_STEPS];
    int n;
    TRY(read_stages(t, part, "normalizer", s, &n));
    bool ok = true;
    for (int i = 0; i < n && ok; i++) {
        bool prepend = strcmp(s[i].type, "Prepend") == 0 && strcmp(s[i].prepend, TUNE_SPACE_MARK) == 0;
        bool replace = strcmp(s[i].type, "Replace") == 0 && !s[i].regex && strcmp(s[i].pattern, " ") == 0 &&
                       strcmp(s[i].content, TUNE_SPACE_MARK) == 0;
        if (strcmp(s[i].type, "NFC") == 0 && n == 1)
            t->nfc = true;
        else if (prepend && !t->prepend && !t->replace)
            t->prepend = true;
        else if (replace && !t->replace)
            t->replace = true;
        else
            ok = false;
    }
    if (!ok || (t->prepend && !t->replace))
        return refuse(t, "normalizer", s, n,
                      "null (GPT-2, SmolLM, Llama 3); NFC (Qwen); Prepend \"\xE2\x96\x81\", Replace \" \" by \"\xE2\x96\x81\" (Llama 2)");
    return 0;
}

int tune_load_pretokenizer(struct tune_tokenizer *t, const struct tune_part *part)
{
    static const char *const known =
        "null (Llama 2); ByteLevel with its pattern (GPT-2); Digits(individual), ByteLevel (SmolLM, granite-code); "
        "Split by Llama 3's or Qwen 2's pattern (Isolated), ByteLevel without pattern; no prefix space";
    struct stage s[TUNE_MAX_STEPS];
    int n;
    TRY(read_stages(t, part, "pre_tokenizer", s, &n));
    bool marks = t->prepend || t->replace;
    if (n == 0 && marks) {
        t->pre = TUNE_PRE_NONE;
        t->pipeline = "llama2";
        return 0;
    }
    if (n == 0)
        return refuse(t, "pre_tokenizer null with this normalizer", s, n, known);
    if (marks)
        return tune_error_set(
            "%s: the pre_tokenizer %s after a normalizer that writes U+2581 for spaces is not one this program "
            "knows exactly; known with it: null (Llama 2)",
            t->path, s[0].type);
    const struct stage *last = &s[n - 1];
    bool ok = n <= 2 && strcmp(last->type, "ByteLevel") == 0 && !last->add_prefix_space;
    bool split = n == 2 && strcmp(s[0].type, "Split") == 0 && s[0].regex && !s[0].invert &&
                 strcmp(s[0].behavior, "Isolated") == 0;
    if (ok && n == 1 && last->use_regex) {
        t->pre = TUNE_PRE_GPT2;
        t->pipeline = "gpt2";
    } else if (ok && n == 2 && strcmp(s[0].type, "Digits") == 0 && s[0].individual_digits && last->use_regex) {
        t->pre = TUNE_PRE_DIGITS_GPT2;
        t->pipeline = "smollm";
    } else if (ok && split && !last->use_regex && strcmp(s[0].pattern, GPT2_PATTERN) == 0) {
        t->pre = TUNE_PRE_GPT2; /* the same pattern, spelled out */
        t->pipeline = "gpt2";
    } else if (ok && split && !last->use_regex && strcmp(s[0].pattern, LLAMA3_PATTERN) == 0) {
        t->pre = TUNE_PRE_LLAMA3;
        t->pipeline = "llama3";
    } else if (ok && split && !last->use_regex && strcmp(s[0].pattern, QWEN2_PATTERN) == 0) {
        t->pre = TUNE_PRE_QWEN2;
        t->pipeline = "qwen2";
    } else {
        return refuse(t, "pre_tokenizer", s, n, known);
    }
    return 0;
}

int tune_load_decoder(struct tune_tokenizer *t, const struct tune_part *part)
{
    struct stage s[TUNE_MAX_STEPS];
    int n;
    TRY(read_stages(t, part, "decoder", s, &n));
    for (int i = 0; i < n; i++) {
        struct tune_decode *d = &t->decode[i];
        const char *end = s[i].content;
        if (strcmp(s[i].type, "ByteLevel") == 0) {
            d->kind = TUNE_DECODE_BYTE_LEVEL;
        } else if (strcmp(s[i].type, "ByteFallback") == 0) {
            d->kind = TUNE_DECODE_BYTES;
        } else if (strcmp(s[i].type, "Fuse") == 0) {
            d->kind = TUNE_DECODE_FUSE;
        } else if (strcmp(s[i].type, "Replace") == 0 && !s[i].regex && s[i].pattern[0] && strlen(s[i].pattern) < sizeof d->from) {
            d->kind = TUNE_DECODE_REPLACE;
            strcpy(d->from, s[i].pattern);
            strcpy(d->to, s[i].content);
        } else if (strcmp(s[i].type, "Strip") == 0 && *end && (tune_utf8_next(&end), *end == 0)) {
            d->kind = TUNE_DECODE_STRIP;
            strcpy(d->from, s[i].content);
            d->start = s[i].start;
            d->stop = s[i].stop;
        } else {
            return refuse(t, "decoder", &s[i], 1, "ByteLevel, ByteFallback, Fuse, Replace of a string, Strip of a character, "
                                                  "and Sequences of these");
        }
    }
    t->decode_steps = n;
    return 0;
}

/* Append the ids of the template's special token `name`. */
static int template_ids(struct tune_tokenizer *t, const struct stage *s, const char *name, int32_t *ids, int *count)
{
    struct tune_json j;
    struct tune_text key, inner;
    int got = 0, more = 0, items = 0;
    bool found = false;
    if (s->specials.begin) {
        tune_json_start(&j, t->path, s->specials.begin, (size_t)(s->specials.end - s->specials.begin), s->specials.line);
        got = tune_json_object(&j);
        while (got == 0 && (more = tune_json_key(&j, &key)) == 1) {
            found = tune_text_equal(key, name);
            if (!found) {
                got = tune_json_skip(&j);
                continue;
            }
            got = tune_json_object(&j);
            while (got == 0 && (more = tune_json_key(&j, &inner)) == 1) {
                if (!tune_text_equal(inner, "ids")) {
                    got = tune_json_skip(&j);
                    continue;
                }
                got = tune_json_array(&j);
                while (got == 0 && (items = tune_json_item(&j)) == 1) {
                    uint64_t id = 0;
                    if ((got = tune_json_u64(&j, &id)) == 0 && (id >= (uint64_t)t->size || !tune_tokenizer_token(t, (int32_t)id)))
                        got = tune_json_fail(&j, "the template's id %llu is no token of the vocabulary", (unsigned long long)id);
                    else if (got == 0 && *count == TUNE_MAX_TEMPLATE)
                        got = tune_json_fail(&j, "the template adds more than %d ids", TUNE_MAX_TEMPLATE);
                    else if (got == 0)
                        ids[(*count)++] = (int32_t)id;
                }
                got = items < 0 ? -1 : got;
            }
            break;
        }
        tune_json_free(&j);
        if (got < 0 || more < 0)
            return -1;
    }
    if (!found)
        return tune_error_set("%s: the template names \"%s\", which its special_tokens lack", t->path, name);
    return 0;
}

/* Read an item of "single": {"SpecialToken": {"id": name}} or {"Sequence": {"id": "A"}}. */
static int template_item(struct tune_tokenizer *t, struct tune_json *j, const struct stage *s, bool *text_seen)
{
    struct tune_text key;
    char kind[64] = "", id[256] = "";
    int got, inner = 0;
    TRY(tune_json_object(j));
    while ((got = tune_json_key(j, &key)) == 1) {
        snprintf(kind, sizeof kind, "%s", key.data);
        TRY(tune_json_object(j));
        while ((inner = tune_json_key(j, &key)) == 1)
            if (tune_text_equal(key, "id"))
                TRY(copy_string(j, id, sizeof id));
            else
                TRY(tune_json_skip(j));
        TRY(inner);
    }
    TRY(got);
    if (strcmp(kind, "SpecialToken") == 0)
        return template_ids(t, s, id, *text_seen ? t->after : t->before, *text_seen ? &t->afters : &t->befores);
    if (strcmp(kind, "Sequence") != 0 || strcmp(id, "A") != 0 || *text_seen)
        return tune_error_set(
            "%s: the post_processor's template has %s \"%s\"; expected special tokens and the Sequence \"A\" once", t->path,
            kind, id);
    *text_seen = true;
    return 0;
}

static int read_template(struct tune_tokenizer *t, const struct stage *s)
{
    struct tune_json j;
    bool text_seen = false;
    int more = 0;
    if (!s->single.begin)
        return tune_error_set("%s: the post_processor is a TemplateProcessing without \"single\"", t->path);
    tune_json_start(&j, t->path, s->single.begin, (size_t)(s->single.end - s->single.begin), s->single.line);
    int failed = tune_json_array(&j);
    for (int items = 0; !failed && (more = tune_json_item(&j)) == 1; items++)
        failed = items < TUNE_MAX_STEPS ? template_item(t, &j, s, &text_seen)
                                        : tune_json_fail(&j, "a template of more than %d items", TUNE_MAX_STEPS);
    tune_json_free(&j);
    if (failed || more < 0)
        return -1;
    if (!text_seen)
        return tune_error_set("%s: the post_processor's template leaves the text (Sequence \"A\") out", t->path);
    return 0;
}

int tune_load_processor(struct tune_tokenizer *t, const struct tune_part *part)
{
    struct stage s[TUNE_MAX_STEPS];
    int n, templates = 0;
    TRY(read_stages(t, part, "post_processor", s, &n));
    for (int i = 0; i < n; i++)
        if (strcmp(s[i].type, "TemplateProcessing") == 0 && templates++ == 0)
            TRY(read_template(t, &s[i]));
        else if (strcmp(s[i].type, "ByteLevel") != 0) /* ByteLevel only moves offsets */
            return refuse(t, "post_processor", &s[i], 1, "null, ByteLevel, one TemplateProcessing, and Sequences of these");
    return 0;
}
