/* file.h - read and map files, and replace files and folders as a whole. */
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

/* A read-only mapping. An empty file has size 0, and data may not be read. If a mapped file is
 * truncated, reading the missing part ends the program with SIGBUS; our programs then name the
 * file. So text to parse is read into memory. Only tensor data and rows of datasets are mapped. */
struct tune_mapping {
    const char *data;
    size_t size;
};

/* tune_file_map - map a regular file, following symbolic links. 0, or -1 with an error: no such
 * file, a folder, a pipe or device, no permission.
 *
 * tune_file_unmap - unmap it. A zeroed mapping is allowed.
 *
 * tune_file_release - drop the whole pages in [begin, end) of a mapping from resident memory. The
 * page cache keeps them, and the data can still be read. */
int tune_file_map(struct tune_mapping *m, const char *path);
void tune_file_unmap(struct tune_mapping *m);
void tune_file_release(const void *begin, const void *end);

/* tune_file_open - open a regular file for reading, without blocking, and get its size. Returns a
 * descriptor, or -1 with an error.
 *
 * tune_file_read_at - read size bytes from offset to data. -1 with an error, also if the file is
 * too short.
 *
 * tune_file_map_open - map the first size bytes of an open file. fd may then be closed. path is for
 * messages. */
int tune_file_open(const char *path, size_t *size);
int tune_file_read_at(int fd, const char *path, uint64_t offset, void *data, size_t size);
int tune_file_map_open(struct tune_mapping *m, int fd, const char *path, size_t size);

/* tune_file_read - read a whole file of at most limit bytes, with a NUL after it. The caller frees
 * *text.
 *
 * tune_file_read_open - the same for an open file of size bytes. Both: 0, or -1 with an error. */
int tune_file_read(const char *path, size_t limit, char **text, size_t *size);
int tune_file_read_open(int fd, const char *path, size_t size, size_t limit, char **text);

bool tune_file_exists(const char *path);
bool tune_file_is_folder(const char *path);

/* tune_file_make_folder - make a folder and its parents, and sync their names
 * (tune_file_sync_name). It may exist already.
 *
 * tune_file_new_folder - make one folder, which must not exist, in an existing parent. Its name is
 * not synced. */
int tune_file_make_folder(const char *path);
int tune_file_new_folder(const char *path);

/* tune_file_remove_folder - remove a file, or a folder with its contents. Symbolic links are
 * removed, not followed. Nothing happens if it does not exist. */
int tune_file_remove_folder(const char *path);

/* Replace a file. The data goes to "<path>.tmp-<pid>". tune_file_commit flushes and syncs it,
 * renames it to path and syncs the folder. Until then path is unchanged. tune_file_cancel removes
 * the temporary file, also after a failed commit. */
struct tune_file_writer {
    FILE *file;
    char path[TUNE_PATH_MAX], temporary[TUNE_PATH_MAX];
};
int tune_file_begin(struct tune_file_writer *w, const char *path);
int tune_file_commit(struct tune_file_writer *w);
void tune_file_cancel(struct tune_file_writer *w);

/* tune_file_begin_output - begin for a path that a user gave. The target of a symbolic link is
 * replaced, not the link. A pipe, a device, or a link to a missing file is written directly; cancel
 * then cannot undo it. */
int tune_file_begin_output(struct tune_file_writer *w, const char *path);

/* tune_file_write - replace a file by size bytes of data.
 *
 * tune_file_write_as - the same, with at most the permissions of mode, limited by the umask. Both:
 * 0, or -1 with an error. */
int tune_file_write(const char *path, const void *data, size_t size);
int tune_file_write_as(const char *path, const void *data, size_t size, unsigned mode);

/* Make a folder that appears whole or not at all. begin makes the empty folder w->temporary
 * ("<path>.tmp-<pid>") and removes what a dead process with this pid left there. commit syncs it,
 * renames it to path and syncs the parent.
 *
 * The writer of each file must sync it. path must not exist or be an empty folder; its parent must
 * exist. cancel removes the temporary folder, also after a failed commit, and keeps the error
 * text. */
struct tune_folder_writer {
    char path[TUNE_PATH_MAX], temporary[TUNE_PATH_MAX];
};
int tune_file_begin_folder(struct tune_folder_writer *w, const char *path);
int tune_file_commit_folder(struct tune_folder_writer *w);
void tune_file_cancel_folder(struct tune_folder_writer *w);

/* tune_file_discard_folder - remove a folder that other processes may read. It is renamed first, so
 * that nobody sees half of it. Nothing happens if it does not exist.
 *
 * tune_file_remove_leftovers - remove the "<name>.tmp-<number>" entries of folder that killed
 * processes left. No other process may be writing to folder. */
int tune_file_discard_folder(const char *path);
int tune_file_remove_leftovers(const char *folder);

/* Size and modification time of a file, to detect changes. */
struct tune_file_stamp {
    int64_t size;
    char modified[40]; /* "2025-01-31T09:30:00.123456789Z" */
};
int tune_file_stamp(const char *path, struct tune_file_stamp *stamp);

/* tune_file_parent - the folder of path; "." if path has none. -1 with an error: too long. */
int tune_file_parent(char folder[TUNE_PATH_MAX], const char *path);

/* tune_file_link - make the symbolic link path -> target, replacing an old one by rename, and sync
 * its folder. */
int tune_file_link(const char *path, const char *target);

/* tune_file_sync_folder - sync a folder, so that renames in it are on disk.
 *
 * tune_file_sync_name - sync the folder of path, so that its name is on disk. It does nothing if
 * that folder may not be read. */
int tune_file_sync_folder(const char *path);
int tune_file_sync_name(const char *path);

/* tune_file_free_space - free bytes on the folder's file system; 2^63 - 1 if unknown. Quotas are
 * not considered. */
int64_t tune_file_free_space(const char *folder);

/* tune_path - printf to path[TUNE_PATH_MAX]. -1 with an error: it does not fit. */
int tune_path(char *path, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

/* tune_defaults_path - write "<defaults>/<name>" to path. defaults is the folder of values that
 * come with the programs: $TUNE_DEFAULTS, else ../defaults or ../share/tune.c/defaults beside the
 * program's folder. -1 with an error: not found. */
int tune_defaults_path(char *path, const char *name);

/* tune_file_fingerprint - hash a file's size and 64 blocks of 16 KiB spread evenly over it. A
 * smaller file is hashed whole. The cost is thus the same for any size. *hash is the seed and the
 * result: start with 0, and pass it on to hash several files together.
 *
 * tune_file_fingerprint_open - the same for an open file of size bytes. */
int tune_file_fingerprint(const char *path, uint64_t *hash);
int tune_file_fingerprint_open(int fd, const char *path, size_t size, uint64_t *hash);

/* tune_hash64 - 64-bit hash of bytes with a seed, for tables and fingerprints. Not for secrets. */
uint64_t tune_hash64(const void *data, size_t size, uint64_t seed);

#ifdef __cplusplus
}
#endif
#endif
