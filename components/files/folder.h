/* folder.h - read files of an untrusted folder: a model, an adapter, a checkpoint.
 *
 * Such a folder may come from git, tar or rsync with links in it. A link to ~/.ssh or /etc would
 * copy private files into every checkpoint. So a file is opened first. Then its real path must be
 * inside the folder, or be a blob of the Hub cache:
 *
 *     <folder>/...                    but not .git/, except .git/annex/objects/, .git/lfs/objects/
 *     <repository>/blobs/<hash>       if the folder is in <repository>/snapshots/<commit>
 *     <Hub cache>/models--ORG--NAME/blobs/<hash>
 *
 * The folder's own path may contain links, because the user named it. Anything else is an error
 * that names the link, its target, and what to do. */
#ifndef TUNE_CORE_FOLDER_H
#define TUNE_CORE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "files/file.h"

struct tune_folder_file {
    int fd; /* the caller closes it */
    size_t size;
    unsigned mode; /* permissions, at most 0777 */
    char path[TUNE_PATH_MAX]; /* <folder>/<name>, for messages */
};

/* tune_folder_open - open <folder>/<name> for reading; name may contain slashes. It never blocks
 * and never opens a pipe or device.
 *
 * tune_folder_read - read a file of at most limit bytes, with a NUL after it. The caller frees
 * *text.
 *
 * tune_folder_has - true if the entry exists. A broken link also counts; reading it is then an
 * error.
 *
 * tune_folder_fingerprint - tune_file_fingerprint of a file. All but tune_folder_has: 0, or -1 with
 * an error. */
int tune_folder_open(struct tune_folder_file *f, const char *folder, const char *name);
int tune_folder_read(const char *folder, const char *name, size_t limit, char **text, size_t *size);
bool tune_folder_has(const char *folder, const char *name);
int tune_folder_fingerprint(const char *folder, const char *name, uint64_t *hash);

/* tune_hub_cache - the folder of the Hugging Face Hub's cache, from the Hub's environment
 * variables; "" if there is no home. */
void tune_hub_cache(char folder[TUNE_PATH_MAX]);

#endif
