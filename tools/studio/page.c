/* page.c - the page's files: those built into the program, or those of --ui. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/try.h"
#include "files/folder.h"
#include "routes.h"

/* Made by the Makefile from tools/studio/page/: name, first byte, end. */
extern const char studio_page_index_html[], studio_page_index_html_end[];
extern const char studio_page_studio_css[], studio_page_studio_css_end[];
extern const char studio_page_studio_js[], studio_page_studio_js_end[];

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

static int get_index(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    (void)q;
    return put_file(s, r, "index.html", studio_page_index_html, studio_page_index_html_end);
}

static int get_css(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    (void)q;
    return put_file(s, r, "studio.css", studio_page_studio_css, studio_page_studio_css_end);
}

static int get_js(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    (void)q;
    return put_file(s, r, "studio.js", studio_page_studio_js, studio_page_studio_js_end);
}

const struct studio_route studio_page_routes[] = {
    {"GET", "/", "getPage", NULL, "The page.", "text/html; charset=utf-8", get_index, {{0}}},
    {"GET", "/studio.css", "getStyle", NULL, "The page's style.", "text/css; charset=utf-8", get_css, {{0}}},
    {"GET", "/studio.js", "getScript", NULL, "The page's script.", "text/javascript; charset=utf-8", get_js, {{0}}},
    {0},
};
