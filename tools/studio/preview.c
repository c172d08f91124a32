/* preview.c - what a program would do, before it starts. */
#include "routes.h"

const struct studio_route studio_preview_routes[] = {{0}};
