/* bench_open.c - how long a model folder takes to open, part by part: an 8-billion-parameter one of Llama 3.1's shape, whose
 * four weight files are holes behind true headers, with a tokenizer of 128,256 entries and a merge for every split of
 * each. Usage: bench_open [FOLDER]; without one it is made in $TMPDIR (or /tmp), about 25 MB on the disk, and removed. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "files/file.h"
#include "core/try.h"
#include "flags/find.h"
#include "models/config.h"
#include "models/parameters.h"
#include "models/weights.h"
#include "tokenizers/tokenizer.h"

static const char config[] =
    "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"vocab_size\":128256,\"hidden_size\":4096,"
    "\"intermediate_size\":14336,\"num_hidden_layers\":32,\"num_attention_heads\":32,\"num_key_value_heads\":8,"
    "\"hidden_act\":\"silu\",\"rms_norm_eps\":1e-05,\"max_position_embeddings\":131072,\"rope_theta\":500000.0,"
    "\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0,\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,"
    "\"original_max_position_embeddings\":8192},\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\"}\n";

static int system_failed(const char *what, const char *path)
{
    tune_error_set("cannot %s %s", what, path);
    return -1;
}

/* The file of rows first..last-1: the length field, the header, and a hole where the data would be. */
static int write_shard(const char *path, const struct tune_parameters *p, int first, int last)
{
    FILE *f = fopen(path, "wb");
    uint64_t at = 0;
    if (!f || fseek(f, 8, SEEK_SET) != 0)
        return system_failed("write", path);
    fputs("{\"__metadata__\":{\"format\":\"pt\"}", f);
    for (int i = first; i < last; i++) {
        const struct tune_parameter *r = &p->at[i];
        fprintf(f, ",\"%s\":{\"dtype\":\"BF16\",\"shape\":[%" PRId64, r->name, r->shape[0]);
        if (r->ndim == 2)
            fprintf(f, ",%" PRId64, r->shape[1]);
        fprintf(f, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", at, at + 2 * (uint64_t)r->count);
        at += 2 * (uint64_t)r->count;
    }
    fputc('}', f);
    uint64_t header = (uint64_t)ftell(f) - 8;
    rewind(f);
    for (int i = 0; i < 8; i++)
        fputc((int)(header >> 8 * i & 255), f);
    int bad = fflush(f) != 0 || ftruncate(fileno(f), (off_t)(8 + header + at)) < 0;
    return fclose(f) != 0 || bad ? system_failed("write", path) : 0;
}

/* Shards of at most 5 GB, as the Hub has them, and their index. */
static int write_weights(const char *folder, const struct tune_parameters *p)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_path(path, "%s/model.safetensors.index.json", folder));
    FILE *index = fopen(path, "w");
    if (!index)
        return system_failed("write", path);
    fputs("{\"metadata\":{},\"weight_map\":{", index);
    for (int shard = 1, first = 0, last; first < p->count; shard++, first = last) {
        int64_t bytes = 0;
        for (last = first; last < p->count && (last == first || bytes + 2 * p->at[last].count <= 5000000000); last++) {
            bytes += 2 * p->at[last].count;
            fprintf(index, "%s\"%s\":\"model-%05d-of-00004.safetensors\"", last ? "," : "", p->at[last].name, shard);
        }
        if (tune_path(path, "%s/model-%05d-of-00004.safetensors", folder, shard) < 0 || write_shard(path, p, first, last) < 0) {
            fclose(index);
            return -1;
        }
    }
    fputs("}}\n", index);
    return fclose(index) != 0 ? system_failed("write", folder) : 0;
}

static void put_string(FILE *f, const char *text, size_t size)
{
    fputc('"', f);
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '"' || text[i] == '\\')
            fputc('\\', f);
        fputc(text[i], f);
    }
    fputc('"', f);
}

/* Every way to part a token into two of the vocabulary, in the order of the joined ids; indented as on the Hub. */
static void put_merges(FILE *f, const struct tune_tokenizer *t)
{
    const char *between = "";
    for (int32_t id = 512; id < tune_tokenizer_size(t); id++) {
        const char *token = tune_tokenizer_token(t, id);
        size_t size = strlen(token);
        for (size_t i = 1; i < size; i++) {
            char left[512];
            if (size >= sizeof left || ((unsigned char)token[i] & 0xC0) == 0x80)
                continue;
            memcpy(left, token, i);
            left[i] = 0;
            if (tune_tokenizer_id(t, left) < 0 || tune_tokenizer_id(t, token + i) < 0)
                continue;
            fputs(between, f);
            fputs("[\n        ", f);
            put_string(f, left, i);
            fputs(",\n        ", f);
            put_string(f, token + i, size - i);
            fputs("\n      ]", f);
            between = ",\n      ";
        }
    }
}

/* 256 special tokens, the bytes, merges learnt from the tree's stories and made up where those end; Llama 3's stages. */
static int write_tokenizer(const char *folder)
{
    char path[TUNE_PATH_MAX], names[256][40], *text;
    const char *special[256];
    size_t size;
    for (int i = 0; i < 256; i++) {
        snprintf(names[i], sizeof names[i], "<|reserved_special_token_%d|>", i);
        special[i] = names[i];
    }
    TRY(tune_path(path, "%s/tokenizer.json", folder));
    TRY(tune_file_read("datasets/stories.jsonl", 1 << 28, &text, &size));
    int status = tune_tokenizer_train(path, text, size, 128256, special, 256);
    free(text);
    TRY(status);
    struct tune_tokenizer *t = tune_tokenizer_open(path);
    FILE *f = t ? fopen(path, "w") : NULL;
    if (!f) {
        tune_tokenizer_free(t);
        return t ? system_failed("write", path) : -1;
    }
    fputs("{\"version\":\"1.0\",\"added_tokens\":[", f);
    for (int i = 0; i < 256; i++)
        fprintf(f, "%s{\"id\":%d,\"content\":\"%s\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"
                   "\"special\":true}", i ? "," : "", i, names[i]);
    fputs("],\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":"
          "\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|"
          "\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"},\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\","
          "\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":false}]},\"post_processor\":null,\"decoder\":{\"type\":"
          "\"ByteLevel\"},\"model\":{\"type\":\"BPE\",\"ignore_merges\":true,\"vocab\":{", f);
    for (int32_t id = 0; id < tune_tokenizer_size(t); id++) {
        const char *token = tune_tokenizer_token(t, id);
        fputs(id ? ",\n      " : "", f);
        put_string(f, token, strlen(token));
        fprintf(f, ": %d", (int)id);
    }
    fputs("},\"merges\":[", f);
    put_merges(f, t);
    fputs("]}}\n", f);
    tune_tokenizer_free(t);
    return fclose(f) != 0 ? system_failed("write", path) : 0;
}

static int make(const char *folder)
{
    char path[TUNE_PATH_MAX];
    struct tune_model_config c;
    struct tune_parameters p;
    TRY(tune_file_make_folder(folder));
    TRY(tune_path(path, "%s/config.json", folder));
    TRY(tune_file_write(path, config, strlen(config)));
    TRY(tune_model_config_read(&c, folder));
    TRY(tune_parameters_new(&p, &c));
    int status = write_weights(folder, &p);
    tune_parameters_free(&p);
    TRY(status);
    return write_tokenizer(folder);
}

enum { CONFIG, WEIGHTS, TOKENIZER, IDENTITY, PARTS };

static int open_once(const char *name, double seconds[PARTS], int64_t *elements)
{
    char folder[TUNE_PATH_MAX];
    struct tune_model_config c;
    struct tune_parameters p;
    struct tune_model_identity identity;
    double from[PARTS + 1];
    from[CONFIG] = tune_moment_now().wall_s;
    TRY(tune_model_find(name, folder));
    TRY(tune_model_config_read(&c, folder));
    TRY(tune_parameters_new(&p, &c));
    from[WEIGHTS] = tune_moment_now().wall_s;
    struct tune_weights *w = tune_weights_open(folder);
    if (!w || tune_weights_check(w, &p, c.tied) < 0)
        return -1;
    from[TOKENIZER] = tune_moment_now().wall_s;
    struct tune_tokenizer *t = tune_tokenizer_open(folder);
    if (!t)
        return -1;
    from[IDENTITY] = tune_moment_now().wall_s;
    TRY(tune_model_identity(folder, &identity));
    from[PARTS] = tune_moment_now().wall_s;
    *elements = tune_parameters_total(&p);
    tune_tokenizer_free(t);
    tune_weights_close(w);
    tune_parameters_free(&p);
    for (int i = 0; i < PARTS; i++)
        seconds[i] = from[i + 1] - from[i] < seconds[i] ? from[i + 1] - from[i] : seconds[i];
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const names[PARTS] = {"config.json", "headers and index", "tokenizer.json", "fingerprint"};
    double seconds[PARTS] = {1e9, 1e9, 1e9, 1e9}, sum = 0;
    char folder[TUNE_PATH_MAX];
    const char *place = getenv("TMPDIR");
    int64_t elements = 0;
    struct rusage used;
    int status = argc > 1 ? tune_path(folder, "%s", argv[1]) : tune_path(folder, "%s/tune-bench-%ld", place ? place : "/tmp", (long)getpid());
    if (status == 0 && argc < 2)
        status = make(folder);
    for (int i = 0; i < 3 && status == 0; i++)
        status = open_once(folder, seconds, &elements);
    if (argc < 2) {
        struct tune_error kept;
        tune_error_save(&kept);
        (void)tune_file_remove_folder(folder);
        tune_error_restore(&kept);
    }
    if (status < 0) {
        fprintf(stderr, "bench_open: %s\n", tune_error_message());
        return 1;
    }
    for (int i = 0; i < PARTS; i++) {
        printf("open %-18s %.4f s\n", names[i], seconds[i]);
        sum += seconds[i];
    }
    getrusage(RUSAGE_SELF, &used);
    printf("open %.2f billion weights %.4f s (best of 3, warm); peak of the process %ld MB\n", (double)elements / 1e9, sum, used.ru_maxrss / 1024);
    return 0;
}
