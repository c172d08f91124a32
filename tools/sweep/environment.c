/* environment.c - the environment of measured programs, and its hash in their rows.
 *
 * Rows are shared and merged, so they hold a hash of each --env value, not the value. The key of
 * the hash belongs to this user and is in no store, so likely values cannot be tried. With the same
 * key, equal values give equal host classes. With another key they differ, and points are measured
 * again rather than mixed. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/hash.h"
#include "core/nearest.h"
#include "core/random.h"
#include "sweeps/stores/exclusive.h"
#include "sweep.h"

enum { KEY_BYTES = SWEEP_KEY_BYTES };

/* ---- the key ---- */

static int key_path(char path[TUNE_PATH_MAX])
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (config && *config)
        return tune_path(path, "%s/tune.c/env.key", config);
    if (home && *home)
        return tune_path(path, "%s/.config/tune.c/env.key", home);
    return tune_error_usage("--env: no place for the key of the hashes of values; set HOME or XDG_CONFIG_HOME");
}

static int read_key(const char *path, uint8_t key[KEY_BYTES])
{
    char *text;
    size_t size;
    TRY(tune_file_read(path, 64, &text, &size));
    size_t digits = strspn(text, "0123456789abcdef");
    for (int i = 0; i < KEY_BYTES && digits == 2 * KEY_BYTES; i++) {
        unsigned byte = 0;
        sscanf(text + 2 * i, "%2x", &byte);
        key[i] = (uint8_t)byte;
    }
    bool good = digits == 2 * KEY_BYTES && (!text[digits] || !strcmp(text + digits, "\n"));
    free(text);
    if (good)
        return 0;
    return tune_error_set("%s: expected one line of %d hexadecimal digits, the key that --env "
                          "hashes values with; remove it, and a new one is drawn (rows of the old "
                          "one are measured again)", path, 2 * KEY_BYTES);
}

/* Only this user may read it. */
static int write_key(const char *path, const uint8_t key[KEY_BYTES])
{
    char text[2 * KEY_BYTES + 2] = "", folder[TUNE_PATH_MAX];
    for (int i = 0; i < KEY_BYTES; i++)
        snprintf(text + 2 * i, 4, "%02x\n", key[i]);
    TRY(tune_file_parent(folder, path));
    mode_t before = umask(077);
    int made = tune_file_make_folder(folder) < 0 ? -1 : tune_exclusive_write(path, text, strlen(text), true);
    umask(before);
    return made;
}

/* This user's key, drawn on first use; a dry run keeps none. */
static int find_key(uint8_t key[KEY_BYTES])
{
    char path[TUNE_PATH_MAX];
    TRY(key_path(path));
    if (tune_file_exists(path))
        return read_key(path, key);
    TRY(tune_random_fresh(key, KEY_BYTES));
    int made = my.dry_run ? 1 : write_key(path, key);
    return made == 0 ? read_key(path, key) : made < 0 ? -1 : 0; /* another sweep made it first */
}

int sweep_key(uint8_t key[SWEEP_KEY_BYTES])
{
    struct tune_error before;
    tune_error_save(&before);
    if (find_key(key) == 0)
        return 1;
    tune_error_restore(&before);
    return 0;
}

/* ---- the variables ---- */

/* True if --env "NAME" or "NAME=value" names this variable. */
static bool asked_for(const char *const *asked, int count, const char *name)
{
    size_t length = strlen(name);
    for (int i = 0; i < count; i++)
        if (!strncmp(asked[i], name, length) && (!asked[i][length] || asked[i][length] == '='))
            return true;
    return false;
}

/* Refuse names of secrets, which would end up in logs and run folders. */
static int check_name(const char *asked)
{
    static const char *const secrets[] = {"TOKEN", "KEY", "SECRET", "PASSWORD"};
    char name[256];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(asked, "="), asked);
    if (!*name)
        return tune_error_usage("--env: a value without a name; expected NAME=value or NAME, "
                                            "separated by commas");
    if (!strcmp(name, "CUDA_VISIBLE_DEVICES"))
        return tune_error_usage("--env %s: --gpus says which GPUs measurements may use; each gets its own", name);
    for (int i = 0; i < 4 && !my.env_secrets; i++)
        if (strcasestr(name, secrets[i]))
            return tune_error_usage("--env: %.100s sounds like a secret (%s): what is measured "
                                    "would see it and might write it down, and every row would "
                                    "have a hash of it; leave it out, or give --env-secrets, too",
                                    name, secrets[i]);
    return 0;
}

/* Append ", NAME=value" to text. false: it does not fit. */
static bool add(char *text, size_t size, const char *name, int length, const char *value)
{
    size_t at = strlen(text);
    return at + (size_t)snprintf(text + at, size - at, ", %.*s=%s", length, name, value) < size;
}

/* Make one variable "NAME=value" for measured programs, and its part of the host class, now and in
 * the form of older rows. */
static int add_variable(char *variable, const uint8_t key[KEY_BYTES])
{
    char hash[24];
    const char *value = strchr(variable, '=') + 1;
    int length = (int)(value - 1 - variable);
    sweep.environment[sweep.environment_count++] = variable;
    snprintf(hash, sizeof hash, "#%016llx", (unsigned long long)tune_siphash(variable, strlen(variable), key));
    if (sweep.host_class_before[0] &&
        !add(sweep.host_class_before, sizeof sweep.host_class_before, variable, length, value))
        sweep.host_class_before[0] = 0; /* no row has such a long text */
    if (add(sweep.host_class, sizeof sweep.host_class, variable, length, hash) &&
        add(sweep.gpu_class, sizeof sweep.gpu_class, variable, length, hash))
        return 0;
    /* if it were cut, different environments would look the same */
    return tune_error_usage("--env: with %.*s the host class of what is measured is longer than "
                            "%zu bytes", length < 60 ? length : 60, variable,
                            sizeof sweep.host_class - 1);
}

static int add_asked(const char *const *asked, int count)
{
    uint8_t key[KEY_BYTES] = {0};
    if (count > 0)
        TRY(find_key(key));
    snprintf(sweep.host_class_before, sizeof sweep.host_class_before, "%s", sweep.host_class);
    for (int i = 0; i < count; i++) {
        const char *value = getenv(asked[i]);
        char *variable = NULL;
        if (strchr(asked[i], '='))
            variable = strdup(asked[i]);
        else if (!value)
            continue; /* not set here, so not set there */
        else if (asprintf(&variable, "%s=%s", asked[i], value) < 0)
            variable = NULL;
        if (!variable)
            return sweep_no_memory();
        TRY(add_variable(variable, key));
    }
    return 0;
}

/* A measured program sees these variables and those that --env names, and no others. */
int sweep_set_environment(void)
{
    static const char *const passed[] = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
        "TERM", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "LD_LIBRARY_PATH", "TUNE_DEFAULTS", "VIRTUAL_ENV", "PYTHONPATH"};
    char *list = my.environment ? strdup(my.environment) : NULL;
    const char *asked[MOST_PATHS], *value;
    int count = tune_name_split(list, asked, MOST_PATHS), code = count < 0 ? -1 : 0;
    for (int i = 0; i < count && code == 0; i++)
        code = check_name(asked[i]);
    for (size_t i = 0; i < sizeof passed / sizeof *passed && code == 0; i++)
        if (!asked_for(asked, count, passed[i]) && (value = getenv(passed[i])) &&
            asprintf(&sweep.environment[sweep.environment_count], "%s=%s", passed[i], value) >= 0)
            sweep.environment_count++;
    if (code == 0)
        code = add_asked(asked, count);
    free(list);
    return code;
}
