/* secrets.c - hide the values of options and variables whose names look secret. */
#include "secrets.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

extern char **environ;

#define HIDDEN "(hidden)"

static bool among(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (!strcmp(word, *words))
            return true;
    return false;
}

/* The name's n bytes as words in small letters: parts between other characters than letters and digits, and of camelCase. */
static bool looks_secret(const char *name, size_t n)
{
    static const char *const anywhere[] = {"password", "passwd", "passphrase", "secret", "credential", "credentials", "apikey", NULL};
    static const char *const last[] = {"token", "key", NULL};
    /* tokens of a vocabulary, and keys that open nothing */
    static const char *const plain[] = {"pad", "eos", "bos", "unk", "mask", "sep", "cls", "stop", "per", "end", "start", "special", "image", "public",
                                        "append", "add", "new", "response", "sort", "primary", "eot", "eom", "suffix", "prefix", "middle", "boi", "eoi", "audio", "video", NULL};
    char word[32] = "", before[32] = "";
    size_t m = 0;
    for (size_t i = 0; i <= n; i++) {
        bool letter = i < n && isalnum((unsigned char)name[i]);
        bool begins = letter && i > 0 && isupper((unsigned char)name[i]) && islower((unsigned char)name[i - 1]);
        if ((!letter || begins) && m > 0) {
            word[m] = 0;
            if (among(word, anywhere))
                return true;
            if (i == n)
                return among(word, last) && !among(before, plain);
            memcpy(before, word, sizeof before);
            m = 0;
        }
        if (letter && m < sizeof word - 1)
            word[m++] = (char)tolower((unsigned char)name[i]);
    }
    return false;
}

bool studio_is_secret(const char *name)
{
    return looks_secret(name, strlen(name));
}

const char *studio_shown(const char *name, const char *value)
{
    return value && *value && studio_is_secret(name) ? HIDDEN : value;
}

/* NAME=VALUE or --name=VALUE with a secret name. */
static void hide_assigned(cJSON *item)
{
    const char *text = item->valuestring, *equal = strchr(text, '=');
    char shown[256];
    if (!equal || !equal[1] || equal - text > 200 || strcspn(text, " \t\n") < (size_t)(equal - text) || !looks_secret(text, (size_t)(equal - text)))
        return;
    snprintf(shown, sizeof shown, "%.*s=" HIDDEN, (int)(equal - text), text);
    cJSON_SetValuestring(item, shown);
}

void studio_hide(cJSON *json)
{
    cJSON *item;
    bool value = false; /* the item is the value of the secret option before it */
    cJSON_ArrayForEach(item, json) {
        bool text = cJSON_IsString(item) && item->valuestring && *item->valuestring;
        bool option = text && cJSON_IsArray(json) && !strncmp(item->valuestring, "--", 2);
        if (text && ((item->string && studio_is_secret(item->string)) || (value && !option)))
            cJSON_SetValuestring(item, HIDDEN);
        else if (text)
            hide_assigned(item);
        value = option && !strchr(item->valuestring, '=') && studio_is_secret(item->valuestring);
        studio_hide(item);
    }
}

static void add_secret(char **list, char *text)
{
    int n = 0;
    while (text && list[n] && strcmp(list[n], text))
        n++;
    if (!text || list[n])
        free(text);
    else
        list[n] = text;
}

/* The text as it stands in XML; NULL: no memory. */
static char *as_xml(const char *text)
{
    char *out = NULL;
    size_t size;
    FILE *file = open_memstream(&out, &size);
    for (; file && *text; text++)
        if (strchr("&<>\"", *text))
            fprintf(file, "&#%d;", *text); /* as views/svg.c does */
        else
            fputc(*text, file);
    return file && fclose(file) == 0 ? out : (free(out), NULL);
}

/* The text as it stands in JSON, without its quotes; NULL: no memory. */
static char *as_json(const char *text)
{
    cJSON *json = cJSON_CreateString(text);
    char *quoted = json ? cJSON_PrintUnformatted(json) : NULL, *bare = quoted ? strndup(quoted + 1, strlen(quoted) - 2) : NULL;
    cJSON_free(quoted);
    cJSON_Delete(json);
    return bare;
}

/* How an answer may spell a secret: as it is, in JSON, in XML. */
enum { SPELLINGS = 3 };

int studio_find_secrets(struct studio *s)
{
    size_t count = 0;
    for (char **at = environ; at && *at; at++)
        count++;
    s->secrets = calloc(SPELLINGS * count + 1, sizeof *s->secrets);
    if (!s->secrets)
        return tune_error_no_memory("the secrets of the environment");
    for (char **at = environ; at && *at; at++) {
        const char *equal = strchr(*at, '=');
        if (!equal || strlen(equal + 1) < 8 || !looks_secret(*at, (size_t)(equal - *at)))
            continue;
        add_secret(s->secrets, strdup(equal + 1));
        add_secret(s->secrets, as_json(equal + 1));
        add_secret(s->secrets, as_xml(equal + 1));
    }
    return 0;
}

void studio_forget_secrets(struct studio *s)
{
    for (int i = 0; s->secrets && s->secrets[i]; i++)
        free(s->secrets[i]);
    free(s->secrets);
    s->secrets = NULL;
}

size_t studio_longest_secret(const struct studio *s)
{
    size_t longest = 0;
    for (int i = 0; s && s->secrets && s->secrets[i]; i++) {
        size_t n = strlen(s->secrets[i]);
        longest = n > longest ? n : longest;
    }
    return longest;
}

void studio_scrub(const struct studio *s, char *data, size_t size)
{
    for (int i = 0; s && data && s->secrets && s->secrets[i]; i++) {
        size_t n = strlen(s->secrets[i]);
        for (char *at = data; (at = memmem(at, size - (size_t)(at - data), s->secrets[i], n)); at += n)
            memset(at, '*', n);
    }
}
