/* file.h - files as the rest of the library needs them: mapped for reading, replaced whole for writing. */
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

/* A read-only mapping. An empty file maps to size 0 and a data pointer that may not be read. Whoever cuts a file short
 * while it is mapped makes reading what is gone end the program (SIGBUS; our programs say which file it was). So what is
 * parsed is read, not mapped, and mapped are only the data of tensors and the rows of data sets. */
struct tune_mapping {
    const char *data;
    size_t size;
};

/* tune_file_map - map a regular file (symbolic links are followed). 0, or -1: absent, a folder, a pipe or device, no
 * permission.
 * tune_file_unmap - give it back; a zeroed mapping is fine.
 * tune_file_release - the pages of a mapping that lie wholly in [begin, end) leave resident memory; the page cache keeps them, and
 * whoever reads there again finds what was there. */
int tune_file_map(struct tune_mapping *m, const char *path);
void tune_file_unmap(struct tune_mapping *m);
void tune_file_release(const void *begin, const void *end);

/* tune_file_open - a descriptor of a regular file, to read from, and its size; never waits. -1 with an error.
 * tune_file_read_at - size bytes from offset on into data; -1 too where the file ends before: it was cut meanwhile.
 * tune_file_map_open - map the first size bytes of an open file, which may be closed after; path is for messages. */
int tune_file_open(const char *path, size_t *size);
int tune_file_read_at(int fd, const char *path, uint64_t offset, void *data, size_t size);
int tune_file_map_open(struct tune_mapping *m, int fd, const char *path, size_t size);

/* tune_file_read - a whole file of at most limit bytes, NUL after it; the caller frees *text.
 * tune_file_read_open - the same of an open file of size bytes. */
int tune_file_read(const char *path, size_t limit, char **text, size_t *size);
int tune_file_read_open(int fd, const char *path, size_t size, size_t limit, char **text);

bool tune_file_exists(const char *path);
bool tune_file_is_folder(const char *path);

/* tune_file_make_folder - make the folder and those above it, and sync their names (tune_file_sync_name). A folder that is there
 * already is fine.
 * tune_file_new_folder - make the folder alone: its parent must exist, and it must not. Its name is not synced. */
int tune_file_make_folder(const char *path);
int tune_file_new_folder(const char *path);

/* tune_file_remove_folder - a folder with all that is in it, or a file; symbolic links are removed, not followed.
 * One that is not there is fine. */
int tune_file_remove_folder(const char *path);

/* Replacing a file: what is written goes to "<path>.tmp-<pid>"; commit flushes, fsyncs, renames it over path and
 * fsyncs the folder; until then path is as it was. cancel (also after a failed commit) removes the temporary one. */
struct tune_file_writer {
    FILE *file;
    char path[TUNE_PATH_MAX], temporary[TUNE_PATH_MAX];
};
int tune_file_begin(struct tune_file_writer *w, const char *path);
int tune_file_commit(struct tune_file_writer *w);
void tune_file_cancel(struct tune_file_writer *w);

/* tune_file_begin_output - begin for a path that somebody named: of a symbolic link the target is replaced, not the link; what
 * is no regular file (a pipe, a device) or a link to nothing yet is written to as it is, and cancel takes nothing back. */
int tune_file_begin_output(struct tune_file_writer *w, const char *path);

/* tune_file_write - begin, write size bytes, commit.
 * tune_file_write_as - the same; the file gets at most the permissions mode, less what the umask takes. */
int tune_file_write(const char *path, const void *data, size_t size);
int tune_file_write_as(const char *path, const void *data, size_t size, unsigned mode);

/* A folder that appears under its name whole or not at all: begin makes the empty folder w->temporary ("<path>.tmp-<pid>",
 * without what a dead process of that number left in it), commit fsyncs it, renames it to path and fsyncs the folder above;
 * the files in it are synced by whoever writes them. path must not be there, or be an empty folder; the folder it lies
 * in must be there. cancel (also after a failed commit) removes the temporary one; the error text stays. */
struct tune_folder_writer {
    char path[TUNE_PATH_MAX], temporary[TUNE_PATH_MAX];
};
int tune_file_begin_folder(struct tune_folder_writer *w, const char *path);
int tune_file_commit_folder(struct tune_folder_writer *w);
void tune_file_cancel_folder(struct tune_folder_writer *w);

/* tune_file_discard_folder - remove a folder that may have a name others look for: renamed aside first, so that nobody meets
 * half of it. One that is not there is fine.
 * tune_file_remove_leftovers - the entries of folder that a killed process left: "<name>.tmp-<number>". For a folder that no
 * other process writes to. */
int tune_file_discard_folder(const char *path);
int tune_file_remove_leftovers(const char *folder);

/* Size and time of last change of a file: whether it was touched. */
struct tune_file_stamp {
    int64_t size;
    char modified[40]; /* "2025-01-31T09:30:00.123456789Z" */
};
int tune_file_stamp(const char *path, struct tune_file_stamp *stamp);

/* tune_file_parent - the folder that path lies in, "." where it names none. */
int tune_file_parent(char folder[TUNE_PATH_MAX], const char *path);

/* tune_file_link - make (or replace, by rename) the symbolic link path -> target, and fsync its folder. */
int tune_file_link(const char *path, const char *target);

/* tune_file_sync_folder - fsync a folder, so that renames in it last.
 * tune_file_sync_name - fsync the folder that path lies in, so that the new name lasts. A folder that may not be read cannot be
 * synced; then nothing is done. */
int tune_file_sync_folder(const char *path);
int tune_file_sync_name(const char *path);

/* tune_file_free_space - bytes that may still be written where the folder lies, 2^63 - 1 where the
 * system does not say. Quotas are not known. */
int64_t tune_file_free_space(const char *folder);

/* tune_path - printf into path[TUNE_PATH_MAX]; -1 with an error if it does not fit. */
int tune_path(char *path, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

/* tune_defaults_path - "<defaults>/<name>" into path, where defaults is the folder of values this distribution ships:
 * $TUNE_DEFAULTS, else ../defaults or ../share/tune.c/defaults beside the program's own folder. -1: none found. */
int tune_defaults_path(char *path, const char *name);

/* tune_file_fingerprint - a hash of a file's content that costs the same at any size: 64 blocks of 16 KiB spread
 * evenly over it (all of it where it is smaller), and its size. The hash continues from *hash, so several files
 * make one; start with 0. _open: of an open file of size bytes. */
int tune_file_fingerprint(const char *path, uint64_t *hash);
int tune_file_fingerprint_open(int fd, const char *path, size_t size, uint64_t *hash);

/* tune_hash64 - 64-bit hash of bytes, continuing from seed; for tables and fingerprints, not for secrets. */
uint64_t tune_hash64(const void *data, size_t size, uint64_t seed);

#ifdef __cplusplus
}
#endif
#endif
