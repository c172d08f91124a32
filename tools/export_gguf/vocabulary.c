/* vocabulary.c - the tokenizer as keys: tokens, their types, merges or scores, and special ids. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/error.h"
#include "core/try.h"
#include "export.h"
#include "files/cjson.h"
#include "files/folder.h"
#include "generators/generation_config.h"
#include "tokenizers/tokenizer.h"

/* Types of tokens. */
enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, BYTE = 6 };

#define MARK "\xE2\x96\x81" /* U+2581, a space in SentencePiece vocabularies */

struct vocabulary {
    struct tune_tokenizer *t;
    const char *folder; /* of the tokenizer's files */
    int32_t rows;
    struct tune_text *tokens;
    int32_t *types;
    char *made; /* spellings that are not the tokenizer's */
    size_t made_size;
};

/* ---- tokens ---- */

static bool begins_and_ends(const char *text, const char *begin, const char *end)
{
    size_t n = strlen(text), a = strlen(begin), b = strlen(end);
    return n > a + b && strncmp(text, begin, a) == 0 && strcmp(text + n - b, end) == 0;
}

/* Some models do not mark their control tokens as special. These spellings are taken for such, as
 * llama.cpp's converter does. */
static bool looks_special(const char *text)
{
    return strcmp(text, "<pad>") == 0 || strcmp(text, "<mask>") == 0 ||
           strcmp(text, "<2mass>") == 0 || strcmp(text, "[@BOS@]") == 0 ||
           begins_and_ends(text, "<|", "|>") ||
           begins_and_ends(text, "<\xEF\xBD\x9C", "\xEF\xBD\x9C>") ||
           begins_and_ends(text, "<unused", ">");
}

static bool is_byte(const char *text)
{
    return strlen(text) == 6 && strncmp(text, "<0x", 3) == 0 && text[5] == '>' &&
           strspn(text + 3, "0123456789ABCDEF") == 2;
}

static int type_of(const struct vocabulary *v, int32_t id, const char *text)
{
    bool marks = tune_tokenizer_spaces(v->t) != TUNE_SPACES_BYTES;
    if (marks && id == tune_tokenizer_unknown(v->t))
        return UNKNOWN;
    if (tune_tokenizer_is_added(v->t, id))
        return tune_tokenizer_is_special(v->t, id) || looks_special(text) ? CONTROL : USER_DEFINED;
    return marks && is_byte(text) ? BYTE : NORMAL;
}

/* Append a text to the spellings made here. Room was made before. */
static struct tune_text keep(struct vocabulary *v, const char *text, size_t size)
{
    char *to = v->made + v->made_size;
    memcpy(to, text, size);
    v->made_size += size;
    return (struct tune_text){to, size};
}

/* A user-defined token is matched in plain text: with a space where the file has a mark. */
static struct tune_text without_marks(struct vocabulary *v, const char *text)
{
    size_t begin = v->made_size;
    while (*text) {
        size_t n = strncmp(text, MARK, 3) == 0 ? 3 : 1;
        keep(v, n == 3 ? " " : text, 1);
        text += n;
    }
    return (struct tune_text){v->made + begin, v->made_size - begin};
}

static int list_tokens(struct vocabulary *v)
{
    size_t room = (size_t)v->rows * 20;
    for (int32_t id = 0; id < v->rows; id++)
        room += tune_tokenizer_token(v->t, id) && tune_tokenizer_is_added(v->t, id)
                    ? strlen(tune_tokenizer_token(v->t, id))
                    : 0;
    v->tokens = tune_zeroed((size_t)v->rows, sizeof *v->tokens, "the vocabulary");
    v->types = tune_zeroed((size_t)v->rows, sizeof *v->types, "the vocabulary");
    v->made = tune_zeroed(room, 1, "the vocabulary");
    if (!v->tokens || !v->types || !v->made)
        return -1;
    for (int32_t id = 0; id < v->rows; id++) {
        const char *text = tune_tokenizer_token(v->t, id);
        char pad[20];
        if (!text)
            v->tokens[id] = keep(v, pad, (size_t)snprintf(pad, sizeof pad, "[PAD%d]", (int)id));
        else
            v->tokens[id] = (struct tune_text){text, strlen(text)};
        v->types[id] = text ? type_of(v, id, text) : UNUSED;
        if (v->types[id] == USER_DEFINED)
            v->tokens[id] = without_marks(v, text);
    }
    return 0;
}

static int put_merges(struct export *e, const struct vocabulary *v)
{
    int64_t count;
    struct tune_token_merge *merges = tune_tokenizer_merges(v->t, &count);
    struct tune_text *texts =
        merges ? tune_zeroed((size_t)count + 1, sizeof *texts, "the merges") : NULL;
    size_t room = 1, used = 0;
    for (int64_t i = 0; texts && i < count; i++)
        room += strlen(tune_tokenizer_token(v->t, merges[i].left)) +
                strlen(tune_tokenizer_token(v->t, merges[i].right)) + 2;
    char *all = texts ? tune_zeroed(room, 1, "the merges") : NULL;
    for (int64_t i = 0; all && i < count; i++) {
        int n =
            snprintf(all + used, room - used, "%s %s", tune_tokenizer_token(v->t, merges[i].left),
                     tune_tokenizer_token(v->t, merges[i].right));
        texts[i] = (struct tune_text){all + used, (size_t)n};
        used += (size_t)n + 1;
    }
    int status = all ? tune_gguf_put_array(e->out, "tokenizer.ggml.merges", TUNE_GGUF_STRING,
                                           (uint64_t)count, texts)
                     : -1;
    free(all);
    free(texts);
    free(merges);
    return status;
}

/* SentencePiece joins the pair whose token has the highest score. The earlier the first merge into
 * a token, the higher its score. Tokens that no merge makes have the lowest. */
static int put_scores(struct export *e, const struct vocabulary *v)
{
    int64_t count;
    struct tune_token_merge *merges = tune_tokenizer_merges(v->t, &count);
    float *scores = merges ? tune_zeroed((size_t)v->rows, sizeof *scores, "the scores") : NULL;
    for (int32_t id = 0; scores && id < v->rows; id++)
        scores[id] = v->types[id] == NORMAL   ? -(float)(count + 1)
                     : v->types[id] == UNUSED ? -1e9f
                                              : -1000;
    for (int64_t i = count - 1; scores && i >= 0; i--)
        if (merges[i].id < v->rows && v->types[merges[i].id] == NORMAL)
            scores[merges[i].id] = -(float)i;
    int status = scores ? tune_gguf_put_array(e->out, "tokenizer.ggml.scores", TUNE_GGUF_FLOAT,
                                              (uint64_t)v->rows, scores)
                        : -1;
    free(scores);
    free(merges);
    return status;
}

/* ---- special tokens ---- */

/* The id of a special token: the spelling in tokenizer_config.json, else the number in config.json.
 * -1: none. */
static int special_id(const struct export *e, const struct vocabulary *v, const char *name,
                      int32_t *id)
{
    char key[32];
    *id = -1;
    if (tune_folder_has(v->folder, "tokenizer_config.json")) {
        cJSON *json = tune_cjson_read_in(v->folder, "tokenizer_config.json", (size_t)16 << 20);
        if (!json)
            return -1;
        snprintf(key, sizeof key, "%s_token", name);
        const cJSON *said = cJSON_GetObjectItemCaseSensitive(json, key);
        said = cJSON_IsObject(said) ? cJSON_GetObjectItemCaseSensitive(said, "content") : said;
        if (cJSON_IsString(said))
            *id = tune_tokenizer_id(v->t, said->valuestring);
        cJSON_Delete(json);
    }
    if (*id >= 0)
        return 0;
    cJSON *json = tune_cjson_read_in(e->m.folder, "config.json", (size_t)4 << 20);
    if (!json)
        return -1;
    snprintf(key, sizeof key, "%s_token_id", name);
    const cJSON *said = cJSON_GetObjectItemCaseSensitive(json, key);
    said = cJSON_IsArray(said) ? cJSON_GetArrayItem(said, 0) : said;
    if (cJSON_IsNumber(said) && said->valuedouble >= 0 && said->valuedouble < v->rows &&
        said->valuedouble == (int32_t)said->valuedouble)
        *id = (int32_t)said->valuedouble;
    cJSON_Delete(json);
    return 0;
}

/* Put whether llama.cpp adds the begin or the end token to a text, as the tokenizer's template
 * does. */
static int put_adds(struct export *e, const struct vocabulary *v, bool after, int32_t *id)
{
    int32_t first = tune_tokenizer_template(v->t, after, 0),
            second = tune_tokenizer_template(v->t, after, 1);
    if (first >= 0 && *id < 0)
        *id = first;
    if (second >= 0 || (first >= 0 && first != *id))
        fprintf(e->notes,
                "the tokenizer adds more than one token, or another than %s, %s a text: llama.cpp "
                "does not\n",
                after ? "the end token" : "the begin token", after ? "behind" : "before");
    return tune_gguf_put_bool(
        e->out, after ? "tokenizer.ggml.add_eos_token" : "tokenizer.ggml.add_bos_token",
        first >= 0 && first == *id);
}

/* The tokens that end an answer, beside the end token: two of them have keys. */
static int put_ends(struct export *e, const struct vocabulary *v, int32_t eos)
{
    static const char *const keys[] = {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_"
                                                                      "id"};
    struct tune_generation_config c;
    bool own = e->adapter && tune_folder_has(e->adapter, "generation_config.json");
    int more = 0, status = tune_generation_config_read(&c, own ? e->adapter : e->m.folder, v->t);
    e->stops = tune_zeroed(TUNE_CONFIG_ENDS + 1, sizeof *e->stops, "the end tokens");
    for (int i = 0; i < c.end_count && status == 0 && e->stops; i++) {
        const char *text = tune_tokenizer_token(v->t, c.ends[i]);
        if (text && c.ends[i] < v->rows)
            e->stops[e->stop_count++] = strdup(text);
        if (c.ends[i] != eos && c.ends[i] < v->rows && more++ < 2)
            status = tune_gguf_put_u32(e->out, keys[more - 1], (uint32_t)c.ends[i]);
    }
    if (more > 2)
        fprintf(e->notes,
                "%d tokens end an answer: the file has keys for three of them; --modelfile names "
                "all\n",
                more + 1);
    tune_generation_config_free(&c);
    return e->stops ? status : -1;
}

static int put_special(struct export *e, const struct vocabulary *v)
{
    int32_t bos, eos, pad, unk;
    TRY(special_id(e, v, "bos", &bos));
    TRY(special_id(e, v, "eos", &eos));
    TRY(special_id(e, v, "pad", &pad));
    TRY(special_id(e, v, "unk", &unk));
    TRY(put_adds(e, v, false, &bos));
    TRY(put_adds(e, v, true, &eos));
    unk = unk < 0 ? tune_tokenizer_unknown(v->t) : unk;
    if (bos >= 0)
        TRY(tune_gguf_put_u32(e->out, "tokenizer.ggml.bos_token_id", (uint32_t)bos));
    if (eos >= 0)
        TRY(tune_gguf_put_u32(e->out, "tokenizer.ggml.eos_token_id", (uint32_t)eos));
    if (pad >= 0)
        TRY(tune_gguf_put_u32(e->out, "tokenizer.ggml.padding_token_id", (uint32_t)pad));
    if (unk >= 0)
        TRY(tune_gguf_put_u32(e->out, "tokenizer.ggml.unknown_token_id", (uint32_t)unk));
    return put_ends(e, v, eos);
}

/* ---- all ---- */

static bool names_phi3(const char *name)
{
    return strcasestr(name, "phi-3") || strcasestr(name, "phi3");
}

/* llama.cpp knows by the name of a model, and by nothing else, that Phi-3's special tokens take the
 * white space behind them. It then wants four tokens. Without one of them the file does not load.
 */
static void settle_name(struct export *e, const struct vocabulary *v)
{
    static const char *const wanted[] = {"</s>", "<unk>", "<s>", "<|endoftext|>"};
    bool has = true;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        has = has && v->t && tune_tokenizer_id(v->t, wanted[i]) >= 0;
    has = has && tune_tokenizer_spaces(v->t) != TUNE_SPACES_BYTES;
    if (names_phi3(e->name) && !has)
        snprintf(e->name, sizeof e->name, "%s", e->family->arch[0] == 'p' ? "phi" : "model");
    else if (!names_phi3(e->name) && has && strcmp(e->family->arch, "phi3") == 0)
        snprintf(e->name, sizeof e->name, "phi-3");
    else
        return;
    fprintf(e->notes,
            "the model's name in the file is %s: by the name phi-3 llama.cpp chooses how special "
            "tokens take white space\n",
            e->name);
}

static int put_model(struct export *e, struct vocabulary *v)
{
    enum tune_spaces spaces = tune_tokenizer_spaces(v->t);
    const char *pre = "default";
    if (tune_tokenizer_size(v->t) > v->rows)
        return tune_error_set("%s: the tokenizer has %d ids and the model %d rows; llama.cpp needs "
                              "a row for each: save the model with more rows, "
                              "or take the added tokens out of tokenizer.json",
                              v->folder, (int)tune_tokenizer_size(v->t), (int)v->rows);
    if (spaces == TUNE_SPACES_BYTES)
        TRY(export_pre_tokenizer(e, v->t, &pre));
    else if (e->pre)
        pre = e->pre;
    TRY(list_tokens(v));
    settle_name(e, v);
    TRY(export_general(e, "model", export_file_type(e)));
    TRY(export_keys(e));
    TRY(tune_gguf_put_text(e->out, "tokenizer.ggml.model",
                           spaces == TUNE_SPACES_BYTES ? "gpt2" : "llama"));
    TRY(tune_gguf_put_text(e->out, "tokenizer.ggml.pre", pre));
    TRY(tune_gguf_put_array(e->out, "tokenizer.ggml.tokens", TUNE_GGUF_STRING, (uint64_t)v->rows,
                            v->tokens));
    TRY(tune_gguf_put_array(e->out, "tokenizer.ggml.token_type", TUNE_GGUF_I32, (uint64_t)v->rows,
                            v->types));
    TRY(spaces == TUNE_SPACES_BYTES ? put_merges(e, v) : put_scores(e, v));
    if (spaces != TUNE_SPACES_BYTES)
        TRY(tune_gguf_put_bool(e->out, "tokenizer.ggml.add_space_prefix",
                               spaces != TUNE_SPACES_MARKS));
    if (spaces == TUNE_SPACES_MARKS_FIRST)
        fprintf(e->notes, "llama.cpp puts a space before the text behind each special token, this "
                          "tokenizer only before the first: texts with special "
                          "tokens inside get other ids\n");
    if (tune_tokenizer_size(v->t) < v->rows)
        fprintf(e->notes,
                "the vocabulary has %d rows and the tokenizer %d ids: the others are called "
                "[PAD...], and unused\n",
                (int)v->rows, (int)tune_tokenizer_size(v->t));
    return put_special(e, v);
}

int export_vocabulary(struct export *e)
{
    bool own = e->adapter && e->m.adapter && tune_adapter_file_vocabulary(e->m.adapter) > 0 &&
               tune_folder_has(e->adapter, "tokenizer.json");
    struct vocabulary v = {.folder = own ? e->adapter : e->m.folder,
                           .rows = e->m.config.vocabulary};
    if (!tune_folder_has(v.folder, "tokenizer.json")) {
        settle_name(e, &v);
        TRY(export_general(e, "model", export_file_type(e)));
        fprintf(e->notes,
                "%s has no tokenizer.json: the file has no vocabulary, and takes and gives ids "
                "only\n",
                v.folder);
        TRY(export_keys(e));
        return tune_gguf_put_text(e->out, "tokenizer.ggml.model", "none");
    }
    v.t = tune_tokenizer_open(v.folder);
    int status = v.t ? put_model(e, &v) : -1;
    tune_tokenizer_free(v.t);
    free(v.tokens);
    free(v.types);
    free(v.made);
    return status == 0 ? export_template(e) : -1;
}
