/* build_id.h - identify the build of a program from its file, without starting it. */
#ifndef TUNE_CORE_BUILD_ID_H
#define TUNE_CORE_BUILD_ID_H

#ifdef __cplusplus
extern "C" {
#endif

#define TUNE_BUILD_ID_SIZE 65

/* tune_build_id - write the identity of a program file into id. An ELF file has its GNU build id, 2
 * to 64 hexadecimal digits from the linker; two clones of one commit agree. Any other file has
 * "text-" or "file-" and 16 digits of a hash of its bytes. -1 with an error: it cannot be read, or
 * its headers point outside the file. */
int tune_build_id(const char *path, char id[TUNE_BUILD_ID_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
