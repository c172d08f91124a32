/* shared.h - what the file system of a store that several processes and hosts write must do. */
#ifndef TUNE_STORES_SHARED_H
#define TUNE_STORES_SHARED_H

#include <stdbool.h>

/* Clocks of hosts may differ by so many seconds. It matters only where each host's own clock dates
 * the files. */
#define TUNE_CLOCKS_S 900

/* tune_shared_older - whether nobody changed the file for so many seconds. Both times are those of
 * the file system. Where the hosts' clocks may date its files, TUNE_CLOCKS_S are added. false also
 * if that cannot be found out, as on a full disk. */
bool tune_shared_older(const char *path, int seconds);

/* tune_shared_probe - try what a store relies on, once for each host and boot. This is O_EXCL, a
 * rename that replaces at once, link or its like, and fsync of files and folders. A file that was
 * closed must be there for readers. folder/hosts/<host> notes the trial. -1 with an error: one of
 * them does not hold, or the disk is full. A folder that may not be written is not tried. */
int tune_shared_probe(const char *folder);

#endif
