/* nearest.c - edit distance between names. */
#include "core/nearest.h"
#include "core/error.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Number of edits from a to b: insert, delete, replace, swap neighbours. '-' and '_' are equal. */
static int edits(const char *a, const char *b)
{
    enum { MOST = 64 };
    int d[3][MOST + 1], n = (int)strnlen(a, MOST), m = (int)strnlen(b, MOST);
    for (int j = 0; j <= m; j++)
        d[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = d[i % 3], *last = d[(i + 2) % 3], *before = d[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            char x = a[i - 1] == '_' ? '-' : a[i - 1], y = b[j - 1] == '_' ? '-' : b[j - 1];
            int best = last[j - 1] + (x != y);
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return d[n % 3][m];
}

/* Copy the name with '-' for '_', cut to the buffer. */
static void dashed(char text[128], const char *name)
{
    snprintf(text, 128, "%s", name);
    for (char *c = text; *c; c++)
        *c = *c == '_' ? '-' : *c;
}

int tune_nearest_limit(const char *name)
{
    int third = (int)strlen(name) / 3;
    return third > 2 ? third : 2;
}

const char *tune_nearest(const char *name, const char *const *names, int count, int *distance)
{
    const char *best = NULL;
    char typed[128], known[128];
    int least = 0, likest = 0;
    dashed(typed, name);
    for (int i = 0; i < count; i++) {
        dashed(known, names[i]);
        int away = edits(name, names[i]), size = (int)strlen(known), like = 0;
        /* "per-device-train-batch-size" matches "batch-size", whatever the number of extra
         * letters */
        if (away > 1 && size > 3 && strlen(typed) > 3 && (strcasestr(typed, known) || strcasestr(known, typed)))
            away = 1, like = size;
        else if (away > 1 && strlen(typed) > 1 && !strncasecmp(known, typed, strlen(typed)))
            away = 1, like = size; /* a prefix: "log" matches log-every */
        /* A whole first word counts more: "log" is nearer to log-every than to logits-chunk. */
        if (like && !strncasecmp(known, typed, strlen(typed)) && known[strlen(typed)] == '-')
            like += (int)sizeof known;
        if (!best || away < least || (away == least && like > likest))
            best = names[i], least = away, likest = like;
    }
    if (distance)
        *distance = least;
    return distance || least <= tune_nearest_limit(name) ? best : NULL;
}

const char *tune_nearest_hint(const char *name, const char *const *names, int count, char hint[TUNE_HINT])
{
    const char *nearest = tune_nearest(name, names, count, NULL);
    snprintf(hint, TUNE_HINT, " (the nearest is %s)", nearest ? nearest : "");
    return nearest ? hint : "";
}

int tune_name_split(char *text, const char **names, int most)
{
    int count = 0;
    for (char *at = text, *next; at && *at; at = next) {
        next = at + strcspn(at, ",");
        if (*next)
            *next++ = 0;
        if (*at && count == most)
            return tune_error_usage("at most %d can be listed with commas between them; there are more", most);
        if (*at)
            names[count++] = at;
    }
    return count;
}

bool tune_name_listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; *at; at += *at == ',') {
        size_t length = strcspn(at, ",");
        if (length == n && !memcmp(at, name, n))
            return true;
        at += length;
    }
    return false;
}

static bool is_of_name(char c)
{
    return c == '_' || isalnum((unsigned char)c);
}

bool tune_name_used(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = text; n > 0 && (at = strstr(at, name)); at++)
        if ((at == text || !is_of_name(at[-1])) && !is_of_name(at[n]))
            return true;
    return false;
}

int tune_name_find(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}
