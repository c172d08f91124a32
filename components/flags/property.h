/* property.h - a row of the table of measured properties: a number that a program reports. */
#ifndef TUNE_FLAGS_PROPERTY_H
#define TUNE_FLAGS_PROPERTY_H

struct tune_property {
    const char *name, *unit, *help;
};

#endif
