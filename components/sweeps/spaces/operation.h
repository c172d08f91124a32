/* operation.h - what is to be done with a space: ado's operation file, and the actuator
 * configuration beside it. */
#ifndef TUNE_SPACES_OPERATION_H
#define TUNE_SPACES_OPERATION_H

#include "sweeps/spaces/order.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tune_filter { TUNE_FILTER_NONE, TUNE_FILTER_MEASURED, TUNE_FILTER_UNMEASURED, TUNE_FILTER_PARTIAL };

struct tune_operation {
    struct tune_document *document; /* NULL: made of flags */
    const char *name;             /* of metadata; NULL: none */
    /* ids that are named, the first of each; NULL: none, or ado would set it */
    const char *space, *configuration;
    enum tune_order_mode mode;
    bool selector;                /* of the store's matching entities, not of the grid */
    const char **grouping;        /* [group_count] */
    int group_count;
    int64_t entities;             /* -1: all */
    int in_flight;                /* ado's batchSize: entities measured at a time */
    bool memoize;                 /* singleMeasurement */
    int retries;
    enum tune_filter filter;
};

/* tune_operation_default - ado's defaults: one entity, random, selector, memoized.
 * tune_operation_read - ado's file: operator random_walk only (others by name: an error that says
 * which). "<will be set by ado>" and ids in spaces and actuatorConfigurationIdentifiers are
 * accepted and not looked up; two spaces are an error. -1: file:line:column. */
void tune_operation_default(struct tune_operation *o);
int tune_operation_read(struct tune_operation *o, const char *path);
void tune_operation_free(struct tune_operation *o);

/* An actuator configuration: data_directory and hf_home are honoured, the other keys ado knows are
 * inert, which `inert` lists for whoever tells it. */
struct tune_actuator_configuration {
    struct tune_document *document;
    const char *actuator, *data_directory, *hf_home; /* NULL: not set; a leading ~ is $HOME */
    const char **inert;           /* [inert_count] */
    int inert_count;
};
int tune_actuator_configuration_read(struct tune_actuator_configuration *a, const char *path);
void tune_actuator_configuration_free(struct tune_actuator_configuration *a);

#ifdef __cplusplus
}
#endif
#endif
