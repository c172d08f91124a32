/* environment.c - the environment of measured programs, and its hash in their rows.
 *
 * Rows are shared and merged, so they have a keyed hash of each --env value, not the value. The key
 * belongs to this user and is in no store, so values cannot be guessed. With the same key, equal
 * values give equal host classes. With another key host classes differ, and points are measured
 * again. */
#include <sys/stat.h>

#include "core/hash.h"
#include "core/nearest.h"
#include "core/random.h"
#include "sweeps/stores/exclusive.h"
#include "sweep.h"

/* ---- the key ---- */

static int key_path(char path[TUNE_PATH_MAX])
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (config && *config)
        return tune_path(path, "%s/tune.c/env.key", config);
    if (home && *home)
        return tune_path(path, "%s/.config/tune.c/env.key", home);
    return tune_error_usage("--env: no folder for the key that its values are hashed with; set "
                            "HOME or XDG_CONFIG_HOME");
}

static int read_key(const char *path, uint8_t key[KEY_BYTES])
{
    char *text;
    size_t size;
    TRY(tune_file_read(path, 64, &text, &size));
    size_t digits = strspn(text, "0123456789abcdef");
    bool good = digits == 2 * KEY_BYTES && (!text[digits] || !strcmp(text + digits, "\n"));
    tune_uid_read(key, text);
    free(text);
    if (good)
        return 0;
    return tune_error_set("%s: expected one line of %d hexadecimal digits, the key that --env "
                          "hashes values with; if you remove the file, a new key is made, and rows "
                          "of the old key are measured again", path, 2 * KEY_BYTES);
}

/* Write the key to a file that only this user can read. */
static int write_key(const char *path, const uint8_t key[KEY_BYTES])
{
    char text[2 * KEY_BYTES + 1], folder[TUNE_PATH_MAX];
    tune_uid_text(text, key);
    text[2 * KEY_BYTES] = '\n';
    TRY(tune_file_parent(folder, path));
    mode_t before = umask(077);
    int made = tune_file_make_folder(folder) < 0 ? -1 : tune_exclusive_write(path, text, sizeof text, true);
    umask(before);
    return made;
}

/* Find this user's key, or make one on first use. A dry run does not store it. */
static int find_key(const struct plan *plan, uint8_t key[KEY_BYTES])
{
    char path[TUNE_PATH_MAX];
    TRY(key_path(path));
    if (tune_file_exists(path))
        return read_key(path, key);
    TRY(tune_random_fresh(key, KEY_BYTES));
    int made = plan->flags->dry_run ? 1 : write_key(path, key);
    return made == 0 ? read_key(path, key) : made < 0 ? -1 : 0; /* another sweep may have made it first */
}

int environment_key(const struct plan *plan, uint8_t key[KEY_BYTES])
{
    struct tune_error before;
    tune_error_save(&before);
    if (find_key(plan, key) == 0)
        return 1;
    tune_error_restore(&before);
    return 0;
}

/* ---- the variables ---- */

/* True if --env "NAME" or "NAME=value" names this variable. */
static bool is_asked(const char *const *asked, int count, const char *name)
{
    size_t length = strlen(name);
    for (int i = 0; i < count; i++)
        if (!strncmp(asked[i], name, length) && (!asked[i][length] || asked[i][length] == '='))
            return true;
    return false;
}

/* Refuse names of secrets, because their values would end up in logs and run folders. */
static int check_name(const char *asked, bool env_secrets)
{
    static const char *const secrets[] = {"TOKEN", "KEY", "SECRET", "PASSWORD"};
    char name[256];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(asked, "="), asked);
    if (!*name)
        return tune_error_usage("--env: a value without a name; expected NAME=value or NAME, "
                                            "separated by commas");
    if (!strcmp(name, "CUDA_VISIBLE_DEVICES"))
        return tune_error_usage("--env %s: leave it out; --gpus says which GPUs measurements may "
                                "use, and each gets its own", name);
    for (int i = 0; i < 4 && !env_secrets; i++)
        if (strcasestr(name, secrets[i]))
            return tune_error_usage("--env: %.100s may be a secret, because its name contains %s: "
                                    "the measured program could read and write it, and every row "
                                    "would have a hash of it; leave it out, or give --env-secrets, "
                                    "too",
                                    name, secrets[i]);
    return 0;
}

/* Append ", NAME=value" to text. Returns false if it does not fit. */
static bool add_to_class(char *text, size_t size, const char *name, int length, const char *value)
{
    size_t at = strlen(text);
    return at + (size_t)snprintf(text + at, size - at, ", %.*s=%s", length, name, value) < size;
}

/* Add a variable "NAME=value" to the environment of measured programs and to the host classes,
 * including the form of older rows. */
static int add_variable(struct plan *plan, char *variable, const uint8_t key[KEY_BYTES])
{
    struct machine *m = &plan->machine;
    char hash[24];
    const char *value = strchr(variable, '=') + 1;
    int length = (int)(value - 1 - variable);
    plan->environment[plan->environment_count++] = variable;
    snprintf(hash, sizeof hash, "#%016llx",
             (unsigned long long)tune_siphash(variable, strlen(variable), key));
    if (m->before[0] && !add_to_class(m->before, sizeof m->before, variable, length, value))
        m->before[0] = 0; /* no older row has such a long host class */
    if (add_to_class(m->host_class, sizeof m->host_class, variable, length, hash) &&
        add_to_class(m->gpu_class, sizeof m->gpu_class, variable, length, hash))
        return 0;
    /* truncated, different environments could look the same */
    return tune_error_usage("--env: with %.*s, the host class of the rows would be longer than %zu "
                            "bytes", length < 60 ? length : 60, variable,
                            sizeof m->host_class - 1);
}

static int add_asked(struct plan *plan, const char *const *asked, int count)
{
    uint8_t key[KEY_BYTES] = {0};
    if (count > 0)
        TRY(find_key(plan, key));
    memcpy(plan->machine.before, plan->machine.host_class, sizeof plan->machine.before);
    for (int i = 0; i < count; i++) {
        const char *value = getenv(asked[i]);
        char *variable = NULL;
        if (strchr(asked[i], '='))
            variable = strdup(asked[i]);
        else if (!value)
            continue; /* not set here, so not passed on */
        else if (asprintf(&variable, "%s=%s", asked[i], value) < 0)
            variable = NULL;
        if (!variable)
            return no_memory();
        TRY(add_variable(plan, variable, key));
    }
    return 0;
}

/* A measured program gets these variables and those of --env, but no others. */
int environment_read(struct plan *plan)
{
    static const char *const passed[] = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
        "TERM", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "LD_LIBRARY_PATH", "TUNE_DEFAULTS", "VIRTUAL_ENV", "PYTHONPATH"};
    const struct sweep_flags *flags = plan->flags;
    char *list = flags->environment ? strdup(flags->environment) : NULL;
    const char *asked[MOST_PATHS], *value;
    int count = tune_name_split(list, asked, MOST_PATHS), code = count < 0 ? -1 : 0;
    for (int i = 0; i < count && code == 0; i++)
        code = check_name(asked[i], flags->env_secrets);
    for (size_t i = 0; i < sizeof passed / sizeof *passed && code == 0; i++)
        if (!is_asked(asked, count, passed[i]) && (value = getenv(passed[i])) &&
            asprintf(&plan->environment[plan->environment_count], "%s=%s", passed[i], value) >= 0)
            plan->environment_count++;
    if (code == 0)
        code = add_asked(plan, asked, count);
    free(list);
    return code;
}
