/* routes.h - the tables of routes, one for each file that answers. */
#ifndef TUNE_STUDIO_ROUTES_H
#define TUNE_STUDIO_ROUTES_H

#include "studio.h"

extern const struct studio_route studio_page_routes[], studio_openapi_routes[];
extern const struct studio_route studio_answers_routes[], studio_spaces_routes[];
extern const struct studio_route studio_point_routes[];
extern const struct studio_route studio_run_routes[], studio_curve_routes[];
extern const struct studio_route studio_run_file_routes[];
extern const struct studio_route studio_run_routes[], studio_curve_routes[];
extern const struct studio_route studio_program_routes[], studio_job_routes[];
extern const struct studio_route studio_preview_routes[];

#endif
