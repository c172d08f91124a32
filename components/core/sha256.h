/* sha256.h - SHA-256 of bytes in memory. Source: FIPS 180-4. */
#ifndef TUNE_CORE_SHA256_H
#define TUNE_CORE_SHA256_H

#include <stddef.h>

enum { TUNE_SHA256_TEXT = 65 };

/* tune_sha256 - the hash as 64 hexadecimal digits and a NUL. Returns text. */
const char *tune_sha256(const void *data, size_t size, char text[TUNE_SHA256_TEXT]);

#endif
