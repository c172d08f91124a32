/* file.h - files for the rest of the library: mapped to read, replaced whole to write. */
#ifndef TUNE_CORE_FILE_H
#define TUNE_CORE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TUNE_PATH_MAX 4096

/* A read-only mapping. An empty file has size 0 and a data pointer that must not be read. If
 * someone cuts the file short, reading the missing part ends the program (SIGBUS; our programs name
 * the file). So only tensor data and data-set rows are mapped; files that are parsed are read. */
struct tune_mapping {
    const char *data;
    size_t size;
};

/* tune_file_map - map a regular file; symbolic links are followed. -1 with an error: absent, a
 * folder, a pipe or device, or no permission.
 * tune_file_unmap - unmap it; a zeroed mapping is fine.
 * tune_file_release - drop the whole pages in [begin, end) from resident memory. They stay in the
 * page cache and can be read again. */
int tune_file_map(struct tune_mapping *m, const char *path);
void tune_file_unmap(struct tune_mapping *m);
void tune_file_release(const void *begin, const void *end);

/* tune_file_open - open a regular file to read; *size is its size. It never waits. -1 with an
 * error.
 * tune_file_open_within - the same for a file of strangers, whose links may lead anywhere: its real
 * path must lie in root, an absolute path without links. Nothing else is opened, not even for a
 * moment. errno is then EXDEV. root NULL: tune_file_open.
 * tune_file_read_at - read size bytes from offset into data. -1 with an error also if the file ends
 * earlier.
 * tune_file_map_open - map the first size bytes of an open file, which may then be closed. path is
 * for messages. */
int tune_file_open(const char *path, size_t *size);
int tune_file_open_within(const char *path, const char *root, size_t *size);
int tune_file_read_at(int fd, const char *path, uint64_t offset, void *data, size_t size);
int tune_file_map_open(struct tune_mapping *m, int fd, const char *path, size_t size);

/* tune_file_read - read a whole file of at most limit bytes. A NUL follows; the caller frees *text.
 * tune_file_read_open - the same for an open file of size bytes.
 * tune_file_exists - whether path exists.
 * tune_file_is_folder - whether path is a folder.
 * tune_file_is_same - whether both paths exist and are one file. */
int tune_file_read(const char *path, size_t limit, char **text, size_t *size);
int tune_file_read_open(int fd, const char *path, size_t size, size_t limit, char **text);

bool tune_file_exists(const char *path);
bool tune_file_is_folder(const char *path);
bool tune_file_is_same(const char *a, const char *b);

/* tune_file_nameless - a file in $TMPDIR, else /tmp, that goes when it is closed: a descriptor to
 * read and write. -1 with an error of kind CANNOT; what says what the folder is for. */
int tune_file_nameless(const char *what);

/* tune_file_make_folder - make a folder and its parents, and sync their names. An existing folder
 * is fine.
 * tune_file_new_folder - make one folder. Its parent must exist and it must not. Its name is not
 * synced. */
int tune_file_make_folder(const char *path);
int tune_file_new_folder(const char *path);

/* tune_file_remove_folder - remove a file, or a folder with all its contents. Symbolic links are
 * removed, not followed. A missing one is fine. */
int tune_file_remove_folder(const char *path);

/* Replacing a file: until commit, path stays as it was.
 * tune_file_begin - open the temporary file "<path>.tmp-<pid>" to write. Those that killed
 * processes left beside path are removed: the process is dead, and nobody holds a lock on the file.
 * tune_file_commit - flush and sync it, and rename it over path.
 * tune_file_cancel - remove the temporary file, also after a failed commit. */
struct tune_file_writer {
    FILE *file;
    char path[TUNE_PATH_MAX], temporary[TUNE_PATH_MAX];
};
int tune_file_begin(struct tune_file_writer *w, const char *path);
int tune_file_commit(struct tune_file_writer *w);
void tune_file_cancel(struct tune_file_writer *w);

/* tune_file_begin_output - begin for a path that a user named. If it is a symbolic link, its target
 * is replaced. A pipe, a device or a dangling link is written directly, and cancel takes nothing
 * back. */
int tune_file_begin_output(struct tune_file_writer *w, const char *path);

/* tune_file_write - begin, write size bytes, commit.
 * tune_file_write_as - the same with at most the permissions mode, less the umask. */
int tune_file_write(const char *path, const void *data, size_t size);
int tune_file_write_as(const char *path, const void *data, size_t size, unsigned mode);

/* A folder that appears under its name complete or not at all:
 * tune_file_begin_folder - make the empty folder w->temporary, "<path>.tmp-<pid>". Those that
 * killed processes left are removed, as by tune_file_begin.
 * tune_file_commit_folder - sync it, rename it to path, and sync the parent. The caller syncs the
 * files in it. path must be absent or an empty folder, and its parent must exist.
 * tune_file_cancel_folder - remove the temporary folder, also after a failed commit. The error text
 * stays. */
struct tune_folder_writer {
    char path[TUNE_PATH_MAX], temporary[TUNE_PATH_MAX];
    int fd; /* the temporary folder, locked; -1: none */
};
int tune_file_begin_folder(struct tune_folder_writer *w, const char *path);
int tune_file_commit_folder(struct tune_folder_writer *w);
void tune_file_cancel_folder(struct tune_folder_writer *w);

/* tune_file_discard_folder - remove a folder that others may look for. It is renamed first, so
 * nobody sees half of it. A missing one is fine.
 * tune_file_is_leftover - true for the name of a temporary file or folder: "<name>.tmp-<number>".
 * tune_file_remove_leftovers - remove such entries that a killed process left in folder. No other
 * process may write there. */
int tune_file_discard_folder(const char *path);
bool tune_file_is_leftover(const char *name);
int tune_file_remove_leftovers(const char *folder);

/* tune_file_stamp - size and time of last change of a file, to see whether it changed. */
struct tune_file_stamp {
    int64_t size;
    char modified[40]; /* "2025-01-31T09:30:00.123456789Z" */
};
int tune_file_stamp(const char *path, struct tune_file_stamp *stamp);

/* tune_file_parent - the folder of path; "." if it names none. */
int tune_file_parent(char folder[TUNE_PATH_MAX], const char *path);

/* tune_file_link - make the symbolic link path -> target, or replace it by rename, and sync its
 * folder. */
int tune_file_link(const char *path, const char *target);

/* tune_file_sync_folder - sync a folder, so that renames in it last.
 * tune_file_sync_name - sync the folder of path, so that the new name lasts. It does nothing for a
 * folder that cannot be read. */
int tune_file_sync_folder(const char *path);
int tune_file_sync_name(const char *path);

/* tune_file_free_space - bytes that can still be written where the folder lies. 2^63 - 1 if the
 * system does not say. Quotas are not known. */
int64_t tune_file_free_space(const char *folder);

/* tune_path - printf into path[TUNE_PATH_MAX]. -1 with an error: it does not fit. */
int tune_path(char *path, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

/* tune_path_listed - path k of a list parted by commas, into path. A list that exists as one path
 * is one path. 1; 0: the list has no such path; -1 with an error: too long. */
int tune_path_listed(const char *paths, int k, char path[TUNE_PATH_MAX]);

/* tune_defaults_path - the path of a file in the defaults folder: $TUNE_DEFAULTS, else
 * ../share/tune.c/defaults or ../defaults beside the program's folder. -1 with an error: none is
 * found. */
int tune_defaults_path(char *path, const char *name);

/* tune_file_fingerprint - hash a file's size and content at a cost that does not grow with its
 * size: 64 blocks of 16 KiB, spread evenly. A smaller file is hashed whole. The hash continues from
 * *hash; start with 0.
 * tune_file_fingerprint_open - the same for an open file of size bytes. */
int tune_file_fingerprint(const char *path, uint64_t *hash);
int tune_file_fingerprint_open(int fd, const char *path, size_t size, uint64_t *hash);

/* tune_hash64 - a 64-bit hash of bytes, continued from seed. For tables and fingerprints, not for
 * secrets: whoever wants to can make two texts of one hash. Each 16 bytes are multiplied, as two
 * numbers of 64 bits. The halves of the product are joined by xor. The size is mixed in last. */
uint64_t tune_hash64(const void *data, size_t size, uint64_t seed);

#ifdef __cplusplus
}
#endif
#endif
