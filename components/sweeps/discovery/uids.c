/* uids.c - sets of uids as sorted arrays. */
#include "core/array.h"
#include "sweeps/discovery/uids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : 0;
}

void tune_uid_read(uint8_t bytes[16], const char *text)
{
    memset(bytes, 0, 16);
    for (int i = 0; i < 32 && text[i]; i++)
        bytes[i / 2] = (uint8_t)(bytes[i / 2] << 4 | digit(text[i]));
}

void tune_uid_text(char text[33], const uint8_t uid[16])
{
    for (int i = 0; i < 16; i++)
        sprintf(text + 2 * i, "%02x", uid[i]);
}

int tune_uids_add(struct tune_uids *u, const uint8_t bytes[16], uint64_t with)
{
    if (!tune_array_fit(&u->at, u->count, sizeof *u->at))
        return tune_error_cannot("out of memory for the uids of a store");
    memcpy(u->at[u->count].bytes, bytes, 16);
    u->at[u->count++].with = with;
    u->sorted = false;
    return 0;
}

int tune_uids_add_text(struct tune_uids *u, const char *text)
{
    uint8_t uid[16];
    tune_uid_read(uid, text);
    return tune_uids_add(u, uid, 0);
}

/* Compare as machine words. Any consistent order is sufficient. */
static int compare(const void *a, const void *b)
{
    const struct tune_uid *x = a, *y = b;
    uint64_t v[2], w[2];
    memcpy(v, x->bytes, 16);
    memcpy(w, y->bytes, 16);
    if (v[0] != w[0])
        return v[0] < w[0] ? -1 : 1;
    if (v[1] != w[1])
        return v[1] < w[1] ? -1 : 1;
    return (x->with > y->with) - (x->with < y->with);
}

void tune_uids_sort(struct tune_uids *u)
{
    if (!u->sorted && u->count > 0)
        qsort(u->at, u->count, sizeof *u->at, compare);
    u->sorted = true;
}

/* Find the first entry that is not less than the given one. */
static const struct tune_uid *find_uid(const struct tune_uids *u, const uint8_t bytes[16], uint64_t with)
{
    struct tune_uid wanted = {.with = with};
    size_t low = 0, high = u->count;
    memcpy(wanted.bytes, bytes, 16);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(&u->at[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < u->count && !memcmp(u->at[low].bytes, bytes, 16) ? &u->at[low] : NULL;
}

bool tune_uids_has(const struct tune_uids *u, const uint8_t bytes[16])
{
    return find_uid(u, bytes, 0) != NULL;
}

bool tune_uids_first(const struct tune_uids *u, const uint8_t bytes[16], uint64_t *with)
{
    const struct tune_uid *found = find_uid(u, bytes, 0);
    if (found)
        *with = found->with;
    return found != NULL;
}

bool tune_uids_has_with(const struct tune_uids *u, const uint8_t bytes[16], uint64_t with)
{
    const struct tune_uid *found = find_uid(u, bytes, with);
    return found && found->with == with;
}

void tune_uids_free(struct tune_uids *u)
{
    free(u->at);
    *u = (struct tune_uids){0};
}
