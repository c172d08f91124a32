/* studio.c - see, start, watch and compare runs and measurements in a browser.
 *
 *     build/studio                                prints http://127.0.0.1:8642/
 *     build/studio --root ~/work --ui my_ui/
 *
 * It is one small program over run folders and sample stores. They are the truth; its index lies in
 * memory and is made anew at each start. The files are in tools/studio/, the page in
 * tools/studio/page/. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/print.h"
#include "studio/http.h"

static struct { struct tune_flags tune; const char *root, *ui, *programs, *host; int port; } my;

static const struct tune_option my_options[] = {
    {"root", TUNE_STRING, &my.root, ".", "", "", "folder with the runs, stores and data; nothing outside it is shown"},
    {"host", TUNE_STRING, &my.host, "127.0.0.1", "", "", "address to serve on"},
    {"port", TUNE_INT, &my.port, "8642", "[0,65535]", "", "port to serve on; 0: any free one"},
    {"ui", TUNE_STRING, &my.ui, NULL, "", "", "folder with an edited copy of the page (tools/studio/page)"},
    {"programs", TUNE_STRING, &my.programs, NULL, "", "",
     "folders of programs to start, with commas. Default: the folder of this program"},
    {0},
};
static const struct tune_property my_properties[] = {{0}};

static void find_build(struct studio *s)
{
    ssize_t n = readlink("/proc/self/exe", s->build, sizeof s->build - 1);
    char *slash = n > 0 ? strrchr(s->build, '/') : NULL;
    if (slash)
        *slash = 0;
    else
        snprintf(s->build, sizeof s->build, "build");
}

/* Make the root the folder of this program, so that a path of the root is a path, as for the tools
 * that are started there. Other folders of the options become absolute. */
static int enter_root(struct studio *s)
{
    static char programs[4 * TUNE_PATH_MAX];
    char path[TUNE_PATH_MAX];
    int more = 1;
    if (s->ui && !(s->ui = realpath(s->ui, NULL)))
        return tune_error_usage("--ui %s: no such folder", my.ui);
    for (int k = 0; s->programs && (more = tune_path_listed(my.programs, k, path)) == 1; k++) {
        char *real = realpath(path, NULL);
        if (!real)
            return tune_error_usage("--programs %s: no such folder", path);
        tune_append(programs, sizeof programs, "%s%s", k > 0 ? "," : "", real);
        free(real);
    }
    s->programs = s->programs ? programs : NULL;
    return more < 0 || chdir(s->root) < 0 ? tune_error_usage("--root %s: the folder cannot be entered", s->root) : 0;
}

int main(int argc, char **argv)
{
    tune_program_start(argc, argv, &my.tune, my_options, my_properties, "See, start, watch and compare runs in a browser.");
    struct studio s = {.ui = my.ui, .programs = my.programs};
    int port = my.port, got;
    sigset_t ends;
    find_build(&s);
    s.root = realpath(my.root, NULL);
    if (!s.root || !tune_file_is_folder(s.root)) {
        tune_error_usage("--root %s: no such folder", my.root);
        tune_program_fail();
    }
    MUST(enter_root(&s));
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT), sigaddset(&ends, SIGTERM), sigaddset(&ends, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    signal(SIGPIPE, SIG_IGN);
    struct studio_http *h = GET(studio_http_start(&s, my.host, &port));
    printf("http://%s:%d/\n", my.host, port);
    fflush(stdout);
    sigwait(&ends, &got);
    studio_http_stop(h);
    return 0;
}
