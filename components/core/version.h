/* version.h - of the library and of every program built with it. */
#ifndef TUNE_CORE_VERSION_H
#define TUNE_CORE_VERSION_H

#define TUNE_VERSION "0.1.0"

#endif
