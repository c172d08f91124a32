/* companions.c - the small files beside a model's weights, held in memory. */
#include "models/companions.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/cjson.h"
#include "core/error.h"
#include "core/file.h"
#include "core/try.h"

enum { CONFIG, TOKENIZER, GENERATION };
static const char *const names[] = {"config.json",           "tokenizer.json",          "generation_config.json",
                                    "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
                                    "vocab.json",            "merges.txt",              "tokenizer.model",
                                    "chat_template.jinja"};
enum { COMPANIONS = sizeof names / sizeof *names, LARGEST = 512 << 20 };

static const char *const dtype_keys[] = {"dtype", "torch_dtype"};

struct tune_companions {
    char folder[TUNE_PATH_MAX];
    char *text[COMPANIONS]; /* NULL: the folder has none */
    size_t size[COMPANIONS];
};

static int read_one(struct tune_companions *c, int i)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_path(path, "%s/%s", c->folder, names[i]));
    return i == CONFIG || tune_file_exists(path) ? tune_file_read(path, LARGEST, &c->text[i], &c->size[i]) : 0;
}

static int read_all(struct tune_companions *c)
{
    for (int i = 0; i < COMPANIONS; i++)
        TRY(read_one(c, i));
    return 0;
}

struct tune_companions *tune_companions_read(const char *folder)
{
    struct tune_companions *c = calloc(1, sizeof *c);
    if (!c) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory for the files of %s", folder);
        return NULL;
    }
    if (tune_path(c->folder, "%s", folder) == 0 && read_all(c) == 0)
        return c;
    tune_companions_free(c);
    return NULL;
}

int64_t tune_companions_bytes(const char *folder)
{
    int64_t bytes = 0;
    for (int i = 0; i < COMPANIONS; i++) {
        char path[TUNE_PATH_MAX];
        struct stat s;
        if (tune_path(path, "%s/%s", folder, names[i]) == 0 && stat(path, &s) == 0)
            bytes += s.st_size;
    }
    return bytes;
}

void tune_companions_free(struct tune_companions *c)
{
    if (!c)
        return;
    for (int i = 0; i < COMPANIONS; i++)
        free(c->text[i]);
    free(c);
}

static cJSON *config_of(const struct tune_companions *c)
{
    cJSON *json = cJSON_ParseWithLength(c->text[CONFIG], c->size[CONFIG]);
    if (!json)
        tune_error_set("%s/config.json: not JSON", c->folder);
    return json;
}

/* config.json with another dtype. */
static int write_dtype(const struct tune_companions *c, const char *folder, enum tune_dtype save_dtype)
{
    cJSON *json = config_of(c);
    if (!json)
        return -1;
    const char *name = save_dtype == TUNE_F32 ? "float32" : save_dtype == TUNE_BF16 ? "bfloat16" : "float16";
    bool found = false, good = true;
    for (int i = 0; i < 2; i++)
        if (cJSON_GetObjectItemCaseSensitive(json, dtype_keys[i])) {
            found = true;
            good = good && cJSON_ReplaceItemInObjectCaseSensitive(json, dtype_keys[i], cJSON_CreateString(name));
        }
    if (!found)
        good = cJSON_AddStringToObject(json, "dtype", name);
    int status = tune_cjson_write(folder, names[CONFIG], json, good);
    cJSON_Delete(json);
    return status;
}

static int write_one(const struct tune_companions *c, const char *folder, int i)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_path(path, "%s/%s", folder, names[i]));
    return c->text[i] ? tune_file_write(path, c->text[i], c->size[i]) : 0;
}

int tune_companions_write(const struct tune_companions *c, const char *folder, enum tune_dtype save_dtype)
{
    for (int i = 0; i < COMPANIONS; i++)
        TRY(i == CONFIG && save_dtype != TUNE_DTYPES ? write_dtype(c, folder, save_dtype) : write_one(c, folder, i));
    return 0;
}

int tune_companions_write_tokenizer(const struct tune_companions *c, const char *folder)
{
    for (int i = 0; i < COMPANIONS; i++)
        TRY(i == CONFIG || i == GENERATION ? 0 : write_one(c, folder, i));
    return 0;
}

int tune_companions_write_config(const struct tune_companions *c, const char *folder)
{
    return write_one(c, folder, CONFIG);
}

static bool same_config(const struct tune_companions *a, const struct tune_companions *b)
{
    cJSON *x = config_of(a), *y = config_of(b);
    for (int i = 0; i < 2; i++) {
        cJSON_DeleteItemFromObjectCaseSensitive(x, dtype_keys[i]);
        cJSON_DeleteItemFromObjectCaseSensitive(y, dtype_keys[i]);
    }
    bool same = x && y && cJSON_Compare(x, y, true);
    cJSON_Delete(x);
    cJSON_Delete(y);
    return same;
}

static bool same_tokenizer(const struct tune_companions *a, const struct tune_companions *b)
{
    const char *x = a->text[TOKENIZER], *y = b->text[TOKENIZER];
    size_t n = a->size[TOKENIZER];
    return x && y ? n == b->size[TOKENIZER] && !memcmp(x, y, n) : !x && !y;
}

int tune_companions_compare(const struct tune_companions *c, const char *folder, const char *config, const char **differs)
{
    static bool (*const same[])(const struct tune_companions *, const struct tune_companions *) = {same_config, same_tokenizer};
    *differs = NULL;
    for (int i = CONFIG; i <= TOKENIZER && !*differs; i++) {
        struct tune_companions other = {0};
        TRY(tune_path(other.folder, "%s", i == CONFIG ? config : folder));
        TRY(read_one(&other, i));
        if (!same[i](c, &other))
            *differs = names[i];
        free(other.text[i]);
    }
    return 0;
}
