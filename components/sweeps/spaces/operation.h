/* operation.h - an operation on a space: ado's operation file, and its actuator configuration. */
#ifndef TUNE_SPACES_OPERATION_H
#define TUNE_SPACES_OPERATION_H

#include "sweeps/spaces/order.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tune_filter {
    TUNE_FILTER_NONE, TUNE_FILTER_MEASURED, TUNE_FILTER_UNMEASURED, TUNE_FILTER_PARTIAL
};

/* tune_filter_names - their names.
 * tune_filter_find - the filter of a name, in small letters or capitals; -1: there is none. */
extern const char *const tune_filter_names[4];
int tune_filter_find(const char *name);

struct tune_operation {
    struct tune_document *document; /* NULL: the operation comes from flags */
    const char *name;             /* from metadata; NULL: none */
    /* first id that is named; NULL: none, or ado would set it */
    const char *space, *configuration;
    enum tune_order_mode mode;
    bool selector;                /* sample entities of the store instead of the grid's */
    const char **grouping;        /* [group_count] */
    int group_count;
    int64_t entities;             /* number of entities; -1: all */
    int in_flight;                /* entities measured at a time (ado's batchSize) */
    bool memoize;                 /* replay known results (singleMeasurement) */
    int retries;
    enum tune_filter filter;
};

/* tune_operation_default - ado's defaults: one entity, random, selector, memoized.
 * tune_operation_read - read ado's file. Its operator must be random_walk; another is an error that
 * says so. "<will be set by ado>" and ids in spaces and actuatorConfigurationIdentifiers are
 * accepted and not looked up. Two spaces are an error. -1 with file:line:column.
 * tune_operation_free - free what read took. */
void tune_operation_default(struct tune_operation *o);
int tune_operation_read(struct tune_operation *o, const char *path);
void tune_operation_free(struct tune_operation *o);

/* An actuator configuration. data_directory and hf_home have an effect. `inert` lists the other
 * keys that ado knows, for the caller to show. */
struct tune_actuator_configuration {
    struct tune_document *document;
    const char *actuator, *data_directory, *hf_home; /* NULL: not set; a leading ~ means $HOME */
    const char **inert;           /* [inert_count] */
    int inert_count;
};
/* tune_actuator_configuration_read - read the file. -1 with file:line:column.
 * tune_actuator_configuration_free - free what read took. */
int tune_actuator_configuration_read(struct tune_actuator_configuration *a, const char *path);
void tune_actuator_configuration_free(struct tune_actuator_configuration *a);

#ifdef __cplusplus
}
#endif
#endif
