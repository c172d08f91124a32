/* shared.h - requirements on the file system of a store that several hosts may write. */
#ifndef TUNE_STORES_SHARED_H
#define TUNE_STORES_SHARED_H

#include <stdbool.h>

/* Maximum difference of host clocks in seconds. It is only used if each host's own clock dates its
 * files. */
#define TUNE_CLOCKS_S 900

/* tune_shared_older - true if the file was not changed for this number of seconds, by the file
 * system's clock. If hosts' clocks may date the files, TUNE_CLOCKS_S is added. false also if the
 * age is unknown, for example on a full disk. */
bool tune_shared_older(const char *path, int seconds);

/* tune_shared_probe - test what a store needs, once for each host and boot: O_EXCL, atomic rename,
 * hard links or RENAME_NOREPLACE, and fsync of files and folders. A closed file must be visible to
 * readers. folder/hosts/<host> records the test. -1 with an error: a test failed, or the disk is
 * full. Folders without write permission are not tested. */
int tune_shared_probe(const char *folder);

#endif
