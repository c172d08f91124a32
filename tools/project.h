/* project.h - options that tune.json of the current folder gives, for the tools that measure. */
#ifndef TUNE_TOOLS_PROJECT_H
#define TUNE_TOOLS_PROJECT_H

#include "core/try.h"
#include "flags/program.h"
#include "sweeps/spaces/project.h"

static inline void project_option(const struct tune_flags *flags, const char *name,
                                  const char *said, const char **option)
{
    if (option && said && !tune_flags_given(flags, name))
        *option = said;
}

/* Read tune.json, and set the options that no flag sets. NULL: the tool has no such option. */
static inline int project_read(const struct tune_flags *flags, const char **store,
                               const char **experiments, const char **configuration)
{
    static struct tune_project project; /* its texts live as long as the program */
    TRY(tune_project_read(&project));
    project_option(flags, "store", project.store, store);
    project_option(flags, "experiments", project.experiments, experiments);
    project_option(flags, "actuator-configuration", project.configuration, configuration);
    return 0;
}

#endif
