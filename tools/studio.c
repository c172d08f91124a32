/* studio.c - see, start, watch and compare runs and measurements in a browser.
 *
 *     build/studio                                prints http://127.0.0.1:8642/
 *     build/studio --root ~/work --ui my_ui/
 *     build/studio run list --where 'lr<1e-3'     the same without a browser and a server
 *
 * It is one small program over run folders and sample stores. They are the truth; its index lies in
 * memory and is made anew at each start. The files are in tools/studio/, the page in
 * tools/studio/page/. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/print.h"
#include "machine/child.h"
#include "studio/http.h"
#include "studio/jobs.h"
#include "studio/index.h"
#include "studio/secrets.h"
#include "studio/verbs.h"

static struct { struct tune_flags tune; const char *command, *root, *ui, *programs, *host; int port; } my;

static struct tune_option my_options[] = {
    {"<command...>", TUNE_STRING, &my.command, "", "", "", NULL},
    {"root", TUNE_STRING, &my.root, ".", "", "", "folder with the runs, stores and data; nothing outside it is shown"},
    {"host", TUNE_STRING, &my.host, "127.0.0.1", "", "",
     "address to serve on. One that other machines reach, such as 0.0.0.0, asks for a token, which is "
     "in the address that is printed"},
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

/* Make the root the current folder, as for the tools that are started there. Other folders of the options become absolute. */
static int enter_root(struct studio *s)
{
    static char programs[4 * TUNE_PATH_MAX];
    const char *given = s->programs, *ui = s->ui;
    char path[TUNE_PATH_MAX];
    int more = 1;
    if (ui && !(s->ui = realpath(ui, NULL)))
        return tune_error_usage("--ui %s: no such folder", ui);
    for (int k = 0; given && (more = tune_path_listed(given, k, path)) == 1; k++) {
        char *real = realpath(path, NULL);
        if (!real)
            return tune_error_usage("--programs %s: no such folder", path);
        tune_append(programs, sizeof programs, "%s%s", k > 0 ? "," : "", real);
        free(real);
    }
    s->programs = given ? programs : NULL;
    return more < 0 || chdir(s->root) < 0 ? tune_error_usage("--root %s: the folder cannot be entered", s->root) : 0;
}

/* Set what handlers need, with a server or without. */
static void prepare(struct studio *s, const char *root)
{
    find_build(s);
    MUST(studio_find_secrets(s));
    s->root = realpath(root, NULL);
    if (!s->root || !tune_file_is_folder(s->root)) {
        tune_error_usage("--root %s: no such folder", root);
        tune_program_fail();
    }
    MUST(enter_root(s));
}

static void describe_commands(void)
{
    char *names = studio_verb_names(), *help;
    if (asprintf(&help, "what to do without a server: %s (`studio COMMAND --help` has its options). Default: serve", names) < 0)
        help = NULL;
    free(names);
    my_options[0].help = GET(help);
}

static void print_address(const struct studio *s)
{
    bool six = strchr(s->host, ':');
    printf("http://%s%s%s:%d/%s%s\n", six ? "[" : "", s->host, six ? "]" : "", s->port, *s->token ? "?token=" : "", s->token);
    fflush(stdout);
}

static int serve(struct studio *s)
{
    sigset_t ends;
    int got;
    studio_keep_little();
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT), sigaddset(&ends, SIGTERM), sigaddset(&ends, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    signal(SIGPIPE, SIG_IGN);
    MUST(studio_index_start(s)); /* before the first request, which looks for it */
    struct studio_http *h = GET(studio_http_start(s));
    print_address(s);
    sigwait(&ends, &got);
    studio_http_stop(h);
    studio_index_stop(s);
    return 0;
}

int main(int argc, char **argv)
{
    static struct studio s;
    int code = tune_child_guard(argc, argv);
    if (code < 0)
        code = studio_supervise(argc, argv);
    if (code >= 0)
        return code;
    if (studio_verb_count(argc, argv) > 0) {
        s.once = true;
        code = studio_run_verb(&s, argc, argv, prepare);
    } else {
        describe_commands();
        tune_program_start(argc, argv, &my.tune, my_options, my_properties, "See, start, watch and compare runs in a browser.");
        if (*my.command) {
            tune_error_usage("%s: a command stands before the options: studio %s ... --root %s", my.command, my.command, my.root);
            tune_program_fail();
        }
        s.ui = my.ui, s.programs = my.programs, s.port = my.port;
        snprintf(s.host, sizeof s.host, "%s", my.host);
        prepare(&s, my.root);
        code = serve(&s);
    }
    studio_forget_secrets(&s);
    free((char *)(uintptr_t)s.root);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        tune_error_set("cannot write to standard output: %s", strerror(errno));
        tune_program_fail();
    }
    return code;
}
