/* page.c - the page's files: those built into the program, or those of --ui. */
#include <stdlib.h>
#include <string.h>

#include "core/try.h"
#include "files/folder.h"
#include "routes.h"
#include "views/svg.h"

/* Each file of tools/studio/page/: its symbol, name, operation, what it is, type. */
#define FILES(FILE) \
    FILE(index_html, "index.html", "/", "getPage", "The page.", "text/html; charset=utf-8") \
    FILE(studio_css, "studio.css", "/studio.css", "getStyle", "The page's style.", "text/css; charset=utf-8") \
    FILE(icon_svg, "icon.svg", "/icon.svg", "getIcon", "The icon of the page.", "image/svg+xml; charset=utf-8") \
    FILE(new_css, "new.css", "/new.css", "getNewStyle", "The style of forms, jobs and spaces.", "text/css; charset=utf-8") \
    FILE(core_js, "core.js", "/core.js", "getCore", "The page's ground.", "text/javascript; charset=utf-8") \
    FILE(charts_js, "charts.js", "/charts.js", "getCharts", "Charts of the page.", "text/javascript; charset=utf-8") \
    FILE(runs_js, "runs.js", "/runs.js", "getRuns", "The page's runs.", "text/javascript; charset=utf-8") \
    FILE(compare_js, "compare.js", "/compare.js", "getCompare", "The page's comparison.", "text/javascript; charset=utf-8") \
    FILE(new_js, "new.js", "/new.js", "getNew", "The page's forms and jobs.", "text/javascript; charset=utf-8") \
    FILE(spaces_js, "spaces.js", "/spaces.js", "getSpacesScript", "The page's spaces.", "text/javascript; charset=utf-8")

/* Made by the Makefile: first byte, end. */
#define DECLARE(symbol, name, path, operation, summary, type) extern const char studio_page_##symbol[], studio_page_##symbol##_end[];
FILES(DECLARE)

static int put_file(const struct studio *s, struct studio_reply *r, const char *name, const char *text, const char *end)
{
    char *own = NULL;
    size_t size = (size_t)(end - text);
    if (s->ui)
        TRY(tune_folder_read(s->ui, name, 4 << 20, &own, &size));
    const char *bytes = own ? own : text;
    studio_tag(r, bytes, size);
    fwrite(bytes, 1, size, r->out);
    free(own);
    return 0;
}

#define HANDLER(symbol, name, path, operation, summary, type) \
    static int get_##symbol(struct studio *s, const struct studio_request *q, struct studio_reply *r) \
    { \
        (void)q; \
        return put_file(s, r, name, studio_page_##symbol, studio_page_##symbol##_end); \
    }
FILES(HANDLER)

/* The page shows our SVG documents inline and without their <style>, which its policy forbids. The
 * second part is that of heat maps and parallel coordinates (sweeps/charts). */
static int get_plot_css(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    (void)s, (void)q;
    tune_svg_style(r->out, true);
    fputs(".cells text{pointer-events:none}.bold{font-weight:700}text.small{font-size:11px}\n"
          ".row{fill:none;stroke-width:1.5;stroke-linejoin:round;stroke-linecap:round}.best{stroke-width:3.5}\n"
          ".row:hover{stroke-width:5;stroke-opacity:1}.strong{font-weight:600}\n", r->out);
    return 0;
}

#define ROUTE(symbol, name, path, operation, summary, type) \
    {"GET", path, operation, NULL, summary, type, get_##symbol, {{0}}},

const struct studio_route studio_page_routes[] = {
    FILES(ROUTE)
    {"GET", "/plot.css", "getPlotStyle", NULL, "The style of the SVG documents that the studio draws.", "text/css; charset=utf-8",
     get_plot_css, {{0}}},
    {0},
};
