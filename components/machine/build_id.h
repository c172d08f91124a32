/* build_id.h - the identity of a program's build, read from its file. */
#ifndef TUNE_CORE_BUILD_ID_H
#define TUNE_CORE_BUILD_ID_H

#ifdef __cplusplus
extern "C" {
#endif

#define TUNE_BUILD_ID_SIZE 65

/* tune_build_id - write a program file's id. An ELF file has its GNU build id, 2 to 64 hexadecimal
 * digits. The linker derives it from the content, so two clones of one commit agree. Any other
 * file, such as a script, gets "text-" or "file-" and 16 digits of a hash of all bytes. So does an
 * ELF file without a build id.
 *
 * 0, or -1 with an error: unreadable, or its headers point outside the file. */
int tune_build_id(const char *path, char id[TUNE_BUILD_ID_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
