/* uids.h - sets of uids of rows; 10^6 of them take 24 MB. */
#ifndef TUNE_DISCOVERY_UIDS_H
#define TUNE_DISCOVERY_UIDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A uid, with a number of the caller: the hash of an entity, or 0. */
struct tune_uid {
    uint8_t bytes[16];
    uint64_t with;
};

struct tune_uids {
    struct tune_uid *at;
    size_t count;
    bool sorted;
};

/* tune_uid_read - parse 32 hexadecimal digits; other characters count as 0.
 * tune_uid_text - the reverse.
 * tune_uids_add - add a uid; -1: no memory.
 * tune_uids_sort - call it after the last add and before the first query.
 * tune_uids_has - true if the uid is in the set, with any number.
 * tune_uids_has_with - true if the uid is in the set with this number.
 * tune_uids_first - true if the uid is in the set; *with is then its lowest number. */
void tune_uid_read(uint8_t bytes[16], const char *text);
void tune_uid_text(char text[33], const uint8_t bytes[16]);
int tune_uids_add(struct tune_uids *u, const uint8_t bytes[16], uint64_t with);
int tune_uids_add_text(struct tune_uids *u, const char *text);
void tune_uids_sort(struct tune_uids *u);
bool tune_uids_has(const struct tune_uids *u, const uint8_t bytes[16]);
bool tune_uids_first(const struct tune_uids *u, const uint8_t bytes[16], uint64_t *with);
bool tune_uids_has_with(const struct tune_uids *u, const uint8_t bytes[16], uint64_t with);
void tune_uids_free(struct tune_uids *u);

#endif
