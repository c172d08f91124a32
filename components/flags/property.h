/* property.h - a number a program reports: the row of its table of measured properties. */
#ifndef TUNE_FLAGS_PROPERTY_H
#define TUNE_FLAGS_PROPERTY_H

struct tune_property {
    const char *name, *unit, *help;
};

#endif
