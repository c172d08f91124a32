/* launch_values.c - the values of --env for processes of a launcher: in a file beside their script that
 * only this user can read. The script has the names. */
#include "launch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sweeps/stores/exclusive.h"

void launch_put_quoted(FILE *f, const char *word)
{
    fputc('\'', f);
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", f);
        else
            fputc(*word, f);
    fputc('\'', f);
}

static bool is_name(const char *text, size_t n)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    return n > 0 && strspn(text, letters) >= n && (*text < '0' || *text > '9');
}

void launch_put_names(FILE *f)
{
    const char *at = my.environment;
    if (!at)
        return;
    fputs(" --env ", f);
    for (size_t n; *at; at += n + (at[n] == ',')) {
        char name[256];
        n = strcspn(at, ",");
        snprintf(name, sizeof name, "%s%.*s", at > my.environment ? "," : "", (int)strcspn(at, "=,"), at);
        launch_put_quoted(f, name);
    }
}

int launch_has_values(void)
{
    int count = 0;
    for (const char *at = my.environment ? my.environment : ""; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t n = strcspn(at, "=,");
        if (at[n] != '=')
            continue;
        if (!is_name(at, n))
            return tune_error_usage("--env %.*s: with --launcher, a shell sets it, so its name must have letters, digits and _ alone", (int)n, at);
        count++;
    }
    return count > 0;
}

int launch_write_values(void)
{
    char path[TUNE_PATH_MAX], *text = NULL;
    size_t size;
    int have = launch_has_values();
    TRY(have);
    TRY(tune_path(path, "%s/env", launch.folder));
    FILE *f = have ? open_memstream(&text, &size) : NULL;
    if (!f)
        return have ? sweep_no_memory() : 0;
    for (const char *at = my.environment; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t n = strcspn(at, "=,"), all = strcspn(at, ",");
        char *value = at[n] == '=' ? strndup(at + n + 1, all - n - 1) : NULL;
        if (!value)
            continue;
        fprintf(f, "export %.*s=", (int)n, at);
        launch_put_quoted(f, value);
        fputc('\n', f);
        free(value);
    }
    mode_t before = umask(077);
    int code = fclose(f) == 0 ? tune_replace_write(path, text, size, false) : sweep_no_memory();
    umask(before);
    free(text);
    return code;
}
