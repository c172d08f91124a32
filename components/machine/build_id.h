/* build_id.h - which build of a program a figure belongs to, read from its file: nothing is started. */
#ifndef TUNE_CORE_BUILD_ID_H
#define TUNE_CORE_BUILD_ID_H

#ifdef __cplusplus
extern "C" {
#endif

#define TUNE_BUILD_ID_SIZE 65

/* tune_build_id - into id: of an ELF file its GNU build id (hexadecimal, 2 to 64 digits; the linker's, of what was
 * compiled: two clones of one commit agree), of any other file, a script for one, or an ELF file without such a note,
 * "text-" or "file-" and 16 digits of a hash of all its bytes. -1: it cannot be read, or its headers point outside the
 * file. */
int tune_build_id(const char *path, char id[TUNE_BUILD_ID_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
