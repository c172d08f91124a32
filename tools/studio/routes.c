/* routes.c - all routes. */
#include "routes.h"

const struct studio_route *const studio_routes[] = {
    studio_page_routes,
    studio_openapi_routes,
    studio_run_file_routes,
    studio_run_routes,
    studio_curve_routes,
    studio_answers_routes,
    studio_spaces_routes,
    studio_point_routes,
    studio_program_routes,
    studio_job_routes,
    studio_preview_routes,
    NULL,
};
