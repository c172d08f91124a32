/* version.h - the version of the library and of every program built with it. */
#ifndef TUNE_CORE_VERSION_H
#define TUNE_CORE_VERSION_H

#define TUNE_VERSION "0.2.0"

#if defined(__clang__)
#define TUNE_COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define TUNE_COMPILER "gcc " __VERSION__
#else
#define TUNE_COMPILER "unknown compiler"
#endif

#endif
