/* operation.h - an operation on a space: ado's operation file, and its actuator configuration. */
#ifndef TUNE_SPACES_OPERATION_H
#define TUNE_SPACES_OPERATION_H

#include "files/document.h"
#include "sweeps/spaces/order.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tune_filter {
    TUNE_FILTER_NONE, TUNE_FILTER_MEASURED, TUNE_FILTER_UNMEASURED, TUNE_FILTER_PARTIAL
};

/* tune_filter_names - the names of the filters.
 * tune_filter_find - find a filter by its name, ignoring case; -1: there is none. */
extern const char *const tune_filter_names[4];
int tune_filter_find(const char *name);

struct tune_operation {
    struct tune_document *document; /* NULL: the operation comes from flags */
    const char *name;             /* from metadata; NULL: none */
    /* first id in the file; NULL: none, or left to ado */
    const char *space, *configuration;
    enum tune_order_mode mode;
    bool selector;                /* take entities from the store instead of the grid */
    const char **grouping;        /* [group_count] */
    int group_count;
    int64_t entities;             /* number of entities; -1: all */
    int in_flight;                /* entities measured at a time (ado's batchSize) */
    bool memoize;                 /* replay known results (singleMeasurement) */
    int retries;
    enum tune_filter filter;
};

/* refuse: set an error that names an operator other than random_walk, and return -1. 0: it does not
 * know the name, and the error says that there is no such operator. operation: the node with module
 * and parameters. */
struct tune_other_operators {
    int (*refuse)(void *context, struct tune_document *d, const struct tune_node *operation,
                  const char *name);
    void *context;
};

/* tune_operation_default - set ado's defaults: one entity, random, selector, memoized.
 * tune_operation_read - read ado's file. The only supported operator is random_walk; others are an
 * error. `others` may give it another text; NULL: none does.
 * "<will be set by ado>" and ids in spaces and actuatorConfigurationIdentifiers are accepted
 * and not looked up. Two spaces are an error. -1 with file:line:column.
 * tune_operation_free - free the operation. */
void tune_operation_default(struct tune_operation *o);
int tune_operation_read(struct tune_operation *o, const char *path,
                        const struct tune_other_operators *others);
void tune_operation_free(struct tune_operation *o);

/* An actuator configuration. Only data_directory and hf_home have an effect. `inert` lists ado's
 * other keys, so that the caller can print them. */
struct tune_actuator_configuration {
    struct tune_document *document;
    const char *actuator, *data_directory, *hf_home; /* NULL: not set; a leading ~ means $HOME */
    const char **inert;           /* [inert_count] */
    int inert_count;
};
/* tune_actuator_configuration_read - read the file. -1 with file:line:column.
 * tune_actuator_configuration_free - free the configuration. */
int tune_actuator_configuration_read(struct tune_actuator_configuration *a, const char *path);
void tune_actuator_configuration_free(struct tune_actuator_configuration *a);

#ifdef __cplusplus
}
#endif
#endif
