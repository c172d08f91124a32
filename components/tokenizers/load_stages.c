/* load_stages.c - the normalizer, pre-tokenizer, post-processor and decoder of tokenizer.json.
 * Known ones are recognised exactly; others are errors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizers/parts.h"
#include "core/print.h"

#define GPT2_PATTERN "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define SPLIT_PATTERN(numbers)                                                                       \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers                            \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LLAMA3_PATTERN SPLIT_PATTERN("\\p{N}{1,3}")
#define QWEN2_PATTERN SPLIT_PATTERN("\\p{N}")
#define QWEN35_PATTERN                                                                               \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}"                        \
    "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CASED_PATTERN(suffix, numbers)                                                               \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+" suffix \
    "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*" suffix \
    "|" numbers "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define TEKKEN_PATTERN CASED_PATTERN("", "\\p{N}")
#define LLAMA4_PATTERN CASED_PATTERN("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "\\p{N}{1,3}")

/* A component, with the fields of all known types. */
struct stage {
    char type[64], pattern[512], content[64], prepend[64], behavior[64];
    char replacement[8], scheme[16]; /* of Metaspace */
    bool regex, invert, individual_digits, add_prefix_space, use_regex, split;
    bool prefix_said; /* the file has add_prefix_space */
    uint64_t start, stop;
    struct tune_json_part list, single, specials; /* of a Sequence; of a template */
};

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
        TRY(tune_short_text(j, s->pattern, sizeof s->pattern));
    }
    return got;
}

static int read_field(struct tune_json *j, struct tune_text key, struct stage *s)
{
    struct {
        const char *name;
        char *text;
        size_t room;
    } texts[] = {{"type", s->type, sizeof s->type}, {"prepend", s->prepend, sizeof s->prepend},
                 {"content", s->content, sizeof s->content}, {"behavior", s->behavior, sizeof s->behavior},
                 {"replacement", s->replacement, sizeof s->replacement}, {"prepend_scheme", s->scheme, sizeof s->scheme}};
    struct {
        const char *name;
        bool *flag;
    } flags[] = {{"invert", &s->invert}, {"individual_digits", &s->individual_digits},
                 {"add_prefix_space", &s->add_prefix_space}, {"use_regex", &s->use_regex}, {"split", &s->split}};
    struct {
        const char *name;
        struct tune_json_part *part;
    } parts[] = {{"normalizers", &s->list}, {"pretokenizers", &s->list}, {"processors", &s->list}, {"decoders", &s->list},
                 {"single", &s->single}, {"special_tokens", &s->specials}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (tune_text_equal(key, texts[i].name))
            return tune_short_text(j, texts[i].text, texts[i].room);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (tune_text_equal(key, flags[i].name)) {
            if (tune_json_peek(j) == TUNE_JSON_NULL)
                return tune_json_null(j); /* as if it was absent */
            s->prefix_said |= flags[i].flag == &s->add_prefix_space;
            return tune_json_bool(j, flags[i].flag);
        }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (tune_text_equal(key, parts[i].name))
            return tune_part_take(j, parts[i].name, parts[i].part);
    if (tune_text_equal(key, "pattern"))
        return read_pattern(j, s);
    if (tune_text_equal(key, "start"))
        return tune_json_u64(j, &s->start);
    if (tune_text_equal(key, "stop"))
        return tune_json_u64(j, &s->stop);
    return tune_json_skip(j);
}

static int read_stage(struct tune_tokenizer *t, struct tune_json *j, void *to)
{
    struct stage *s = to;
    struct tune_text key;
    int got;
    (void)t;
    *s = (struct stage){.use_regex = true, .split = true}; /* the defaults in old files */
    TRY(tune_json_object(j));
    while ((got = tune_json_key(j, &key)) == 1)
        TRY(read_field(j, key, s));
    TRY(got);
    return s->type[0] ? 0 : tune_json_fail(j, "a component without a \"type\"");
}

/* The components of a part of the file. */
struct stages {
    const char *what; /* the part */
    int count;
    struct stage at[TUNE_MAX_STEPS];
};

static int read_list(struct tune_tokenizer *t, struct tune_json *j, void *to)
{
    struct stages *s = to;
    int got;
    TRY(tune_json_array(j));
    for (s->count = 0; (got = tune_json_item(j)) == 1; s->count++) {
        if (s->count == TUNE_MAX_STEPS)
            return tune_error_set("%s: the %s is a Sequence of more than %d", t->path, s->what, TUNE_MAX_STEPS);
        TRY(read_stage(t, j, &s->at[s->count]));
        if (strcmp(s->at[s->count].type, "Sequence") == 0)
            return tune_error_set("%s: the %s is a Sequence within a Sequence; this program knows flat ones", t->path,
                                  s->what);
    }
    return got;
}

/* Read the part's components in order; Sequences are flattened. */
static int read_stages(struct tune_tokenizer *t, const struct tune_json_part *part, struct stages *s)
{
    if (tune_part_absent(part))
        return 0;
    TRY(tune_part_read(t, part, read_stage, &s->at[s->count++]));
    if (strcmp(s->at[0].type, "Sequence") != 0)
        return 0;
    struct tune_json_part list = s->at[0].list;
    return list.begin ? tune_part_read(t, &list, read_list, s)
                      : tune_error_set("%s: the %s is a Sequence without a list", t->path, s->what);
}

static int refuse(const struct tune_tokenizer *t, const char *what, const struct stage *stages, int count, const char *known)
{
    char types[512] = "";
    for (int i = 0; i < count; i++)
        tune_append_item(types, sizeof types, "%s%s%.80s%s", stages[i].type, stages[i].pattern[0] ? "(" : "",
                         stages[i].pattern, stages[i].pattern[0] ? ")" : "");
    return tune_error_set("%s: the %s %s%s%s is not one this program knows exactly, and ids must not be guessed; known: %s",
                          t->path, what, count > 1 ? "Sequence[" : "", types, count > 1 ? "]" : "", known);
}

int tune_load_normalizer(struct tune_tokenizer *t, const struct tune_json_part *part)
{
    struct stages all = {.what = "normalizer"};
    TRY(read_stages(t, part, &all));
    const struct stage *s = all.at;
    int n = all.count;
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

/* Read the fields of a Metaspace. Old files have add_prefix_space in place of prepend_scheme. */
static int read_metaspace(const struct tune_tokenizer *t, const char *what, const struct stage *s, char *mark,
                          enum tune_prepend *prepend)
{
    const char *end = s->replacement;
    bool off = s->prefix_said && !s->add_prefix_space;
    const char *scheme = s->scheme[0] ? s->scheme : off ? "never" : "always";
    *prepend = strcmp(scheme, "never") == 0 ? TUNE_PREPEND_NEVER : strcmp(scheme, "first") == 0 ? TUNE_PREPEND_FIRST
             : TUNE_PREPEND_ALWAYS;
    if (!*end || (tune_utf8_next(&end), *end))
        return tune_error_set("%s: the %s Metaspace has the replacement \"%s\"; expected one character", t->path,
                              what, s->replacement);
    if (*prepend == TUNE_PREPEND_ALWAYS && strcmp(scheme, "always") != 0)
        return tune_error_set("%s: the %s Metaspace has the prepend_scheme \"%s\"; expected first, always or never",
                              t->path, what, scheme);
    if (off && *prepend != TUNE_PREPEND_NEVER)
        return tune_error_set("%s: the %s Metaspace has the prepend_scheme \"%s\" and add_prefix_space false; "
                              "expected them to agree: take one of them out", t->path, what, scheme);
    strcpy(mark, s->replacement);
    return 0;
}

int tune_load_pretokenizer(struct tune_tokenizer *t, const struct tune_json_part *part)
{
    static const char *const known =
        "null (Llama 2); Metaspace (Llama 2, Mistral, Yi, Phi-3 as transformers 5 saves them); ByteLevel with its "
        "pattern (GPT-2); Digits(individual), ByteLevel (SmolLM, granite-code); "
        "Split by the pattern of Llama 3, Llama 4, Qwen 2, Qwen 3.5 or Mistral's Tekken (Isolated), ByteLevel without "
        "pattern; no prefix space";
    static const struct {
        const char *pattern, *name;
        enum tune_pretokenizer pre;
    } patterns[] = {{GPT2_PATTERN, "gpt2", TUNE_PRE_GPT2}, /* the same pattern, spelled out */
                    {LLAMA3_PATTERN, "llama3", TUNE_PRE_LLAMA3}, {QWEN2_PATTERN, "qwen2", TUNE_PRE_QWEN2},
                    {QWEN35_PATTERN, "qwen35", TUNE_PRE_QWEN35}, {TEKKEN_PATTERN, "tekken", TUNE_PRE_TEKKEN},
                    {LLAMA4_PATTERN, "llama4", TUNE_PRE_LLAMA4}};
    struct stages all = {.what = "pre_tokenizer"};
    TRY(read_stages(t, part, &all));
    const struct stage *s = all.at;
    int n = all.count;
    bool marks = t->prepend || t->replace;
    if (n == 1 && strcmp(s[0].type, "Metaspace") == 0) {
        t->pre = TUNE_PRE_NONE;
        t->pipeline = "metaspace";
        t->metaspace.split = s[0].split;
        return read_metaspace(t, "pre_tokenizer", s, t->metaspace.mark, &t->metaspace.prepend);
    }
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
            "knows exactly; known with it: null (Llama 2), Metaspace",
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
    }
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns && ok && split && !last->use_regex; i++)
        if (strcmp(s[0].pattern, patterns[i].pattern) == 0) {
            t->pre = patterns[i].pre;
            t->pipeline = patterns[i].name;
        }
    return t->pre == TUNE_PRE_NONE ? refuse(t, "pre_tokenizer", s, n, known) : 0;
}

int tune_load_decoder(struct tune_tokenizer *t, const struct tune_json_part *part)
{
    struct stages all = {.what = "decoder"};
    TRY(read_stages(t, part, &all));
    const struct stage *s = all.at;
    int n = all.count;
    for (int i = 0; i < n; i++) {
        struct tune_decode *d = &t->decode[i];
        const char *end = s[i].content;
        if (strcmp(s[i].type, "ByteLevel") == 0) {
            d->kind = TUNE_DECODE_BYTE_LEVEL;
        } else if (strcmp(s[i].type, "ByteFallback") == 0) {
            d->kind = TUNE_DECODE_BYTES;
        } else if (strcmp(s[i].type, "Fuse") == 0) {
            d->kind = TUNE_DECODE_FUSE;
        } else if (strcmp(s[i].type, "Metaspace") == 0) {
            enum tune_prepend prepend;
            d->kind = TUNE_DECODE_METASPACE;
            TRY(read_metaspace(t, "decoder", &s[i], d->from, &prepend));
            d->drop = prepend != TUNE_PREPEND_NEVER;
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
            return refuse(t, "decoder", &s[i], 1, "ByteLevel, ByteFallback, Fuse, Metaspace, Replace of a string, Strip of a character, "
                                                  "and Sequences of these");
        }
    }
    t->decode_steps = n;
    return 0;
}

/* A template's special token, and the list that its ids are appended to. */
struct special {
    const char *name;
    int32_t *ids;
    int *count;
    bool found;
};

static int read_ids(struct tune_tokenizer *t, struct tune_json *j, const struct special *s)
{
    int got;
    TRY(tune_json_array(j));
    while ((got = tune_json_item(j)) == 1) {
        uint64_t id;
        TRY(tune_json_u64(j, &id));
        if (id >= (uint64_t)t->size || !tune_tokenizer_token(t, (int32_t)id))
            return tune_json_fail(j, "the template's id %llu is no token of the vocabulary", (unsigned long long)id);
        if (*s->count == TUNE_MAX_TEMPLATE)
            return tune_json_fail(j, "the template adds more than %d ids", TUNE_MAX_TEMPLATE);
        s->ids[(*s->count)++] = (int32_t)id;
    }
    return got;
}

/* Append the ids of the first special token of that name. */
static int find_special(struct tune_tokenizer *t, struct tune_json *j, void *to)
{
    struct special *s = to;
    struct tune_text key;
    int got;
    TRY(tune_json_object(j));
    while ((got = tune_json_key(j, &key)) == 1 && !tune_text_equal(key, s->name))
        TRY(tune_json_skip(j));
    if (got < 1)
        return got;
    s->found = true;
    TRY(tune_json_object(j));
    while ((got = tune_json_key(j, &key)) == 1)
        TRY(tune_text_equal(key, "ids") ? read_ids(t, j, s) : tune_json_skip(j));
    return got;
}

static int template_ids(struct tune_tokenizer *t, const struct stage *s, const char *name, int32_t *ids, int *count)
{
    struct special special = {name, ids, count, false};
    if (s->specials.begin)
        TRY(tune_part_read(t, &s->specials, find_special, &special));
    if (!special.found)
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
                TRY(tune_short_text(j, id, sizeof id));
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

struct template {
    const struct stage *stage;
    bool text_seen;
};

static int read_single(struct tune_tokenizer *t, struct tune_json *j, void *to)
{
    struct template *m = to;
    int more;
    TRY(tune_json_array(j));
    for (int items = 0; (more = tune_json_item(j)) == 1; items++)
        TRY(items < TUNE_MAX_STEPS ? template_item(t, j, m->stage, &m->text_seen)
                                   : tune_json_fail(j, "a template of more than %d items", TUNE_MAX_STEPS));
    return more;
}

static int read_template(struct tune_tokenizer *t, const struct stage *s)
{
    struct template m = {s, false};
    if (!s->single.begin)
        return tune_error_set("%s: the post_processor is a TemplateProcessing without \"single\"", t->path);
    TRY(tune_part_read(t, &s->single, read_single, &m));
    if (!m.text_seen)
        return tune_error_set("%s: the post_processor's template leaves the text (Sequence \"A\") out", t->path);
    return 0;
}

int tune_load_processor(struct tune_tokenizer *t, const struct tune_json_part *part)
{
    struct stages all = {.what = "post_processor"};
    TRY(read_stages(t, part, &all));
    const struct stage *s = all.at;
    int n = all.count, templates = 0;
    for (int i = 0; i < n; i++)
        if (strcmp(s[i].type, "TemplateProcessing") == 0 && templates++ == 0)
            TRY(read_template(t, &s[i]));
        else if (strcmp(s[i].type, "ByteLevel") != 0) /* ByteLevel only moves offsets */
            return refuse(t, "post_processor", &s[i], 1, "null, ByteLevel, one TemplateProcessing, and Sequences of these");
    return 0;
}
