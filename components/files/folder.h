/* folder.h - files of a folder that may be a stranger's: a model, an adapter, a checkpoint.
 *
 * Such a folder comes by git, tar or rsync, with links in it. A link to ~/.ssh or /etc would copy
 * private files into every checkpoint. So a file is opened first. Then its real path must lie
 * inside the folder, or be a blob of the Hub cache:
 *
 *     <folder>/...                              the folder's own path may be or hold links: the user named it.
 *                                               Not .git/, but for .git/annex/objects/ and .git/lfs/objects/
 *     <repository>/blobs/<hash>                 where the folder is <repository>/snapshots/<commit>, or lies in it
 *     <Hub cache>/models--ORG--NAME/blobs/<hash>
 *
 * Everything else is an error that names the link, where it leads, and what to do. */
#ifndef TUNE_CORE_FOLDER_H
#define TUNE_CORE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "files/file.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_folder_file {
    int fd; /* the caller closes it */
    size_t size;
    unsigned mode; /* permissions, at most 0777 */
    char path[TUNE_PATH_MAX]; /* <folder>/<name>, for messages */
};

/* tune_folder_open - <folder>/<name> to read from; name may hold slashes. Never waits, never opens
 * a pipe or a device.
 * tune_folder_read - all of it, of at most limit bytes, NUL after it; the caller frees *text.
 * tune_folder_has - whether there is such an entry. A link counts even if it leads nowhere: reading
 * it is then an error.
 * tune_folder_fingerprint - as tune_file_fingerprint. */
int tune_folder_open(struct tune_folder_file *f, const char *folder, const char *name);
int tune_folder_read(const char *folder, const char *name, size_t limit, char **text, size_t *size);
bool tune_folder_has(const char *folder, const char *name);
int tune_folder_fingerprint(const char *folder, const char *name, uint64_t *hash);

/* tune_hub_cache - the folder in which the Hub's client keeps its repositories, by its own
 * variables; "" if there is no home. */
void tune_hub_cache(char folder[TUNE_PATH_MAX]);

#ifdef __cplusplus
}
#endif
#endif
