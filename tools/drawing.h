/* drawing.h - shared by the tools that draw: the terminal, and the picture file. */
#ifndef TUNE_TOOLS_DRAWING_H
#define TUNE_TOOLS_DRAWING_H

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "files/file.h"
#include "views/plot.h"

/* drawing_unicode - whether the locale is UTF-8 and --ascii was not given. Call it after
 * setlocale. */
static inline bool drawing_unicode(bool ascii)
{
    return !ascii && !strcmp(nl_langinfo(CODESET), "UTF-8");
}

/* drawing_columns - the width to print in: --width, else COLUMNS, else the terminal's, else
 * `otherwise`. */
static inline int drawing_columns(int width, int otherwise)
{
    const char *set = getenv("COLUMNS");
    struct winsize w;
    if (width > 0 || (set && atoi(set) > 0))
        return width > 0 ? width : atoi(set);
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : otherwise;
}

/* drawing_terminal - how to draw in this terminal; color: auto, always or never. */
static inline struct tune_terminal drawing_terminal(int width, int height, bool ascii,
                                                    const char *color)
{
    const char *no_color = getenv("NO_COLOR"), *true_color = getenv("COLORTERM");
    bool auto_colored = isatty(STDOUT_FILENO) && !(no_color && *no_color);
    bool colored = !strcmp(color, "always") || (!strcmp(color, "auto") && auto_colored);
    bool deep = true_color && (!strcmp(true_color, "truecolor") || !strcmp(true_color, "24bit"));
    return (struct tune_terminal){.width = drawing_columns(width, 80), .height = height,
                                  .unicode = drawing_unicode(ascii), .color = colored,
                                  .truecolor = deep};
}

/* drawing_is_stdout - whether --svg means standard output. That may be an open file, so it is
 * written to, not replaced. */
static inline bool drawing_is_stdout(const char *path)
{
    struct stat st, out;
    return path && stat(path, &st) == 0 && fstat(STDOUT_FILENO, &out) == 0 &&
           st.st_dev == out.st_dev && st.st_ino == out.st_ino;
}

/* drawing_check - 0 if the file at path may be replaced: an SVG picture, an empty file, or nothing.
 * Else -1 with an error, so that a mistyped name destroys nothing. */
static inline int drawing_check(const char *path)
{
    char text[4097];
    size_t size, skip;
    struct stat st;
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return 0;
    int fd = tune_file_open(path, &size);
    if (fd < 0)
        return -1;
    size = size < sizeof text ? size : sizeof text - 1;
    int status = tune_file_read_at(fd, path, 0, text, size);
    close(fd);
    if (status < 0)
        return -1;
    text[size] = 0;
    skip = strspn(text, "\xef\xbb\xbf \t\r\n"); /* a byte order mark */
    if (text[skip] == '<' && strstr(text, "<svg") && !strstr(text, "<html"))
        return 0;
    tune_error_set_kind(TUNE_ERROR_USAGE,
                        "--svg %s: the file that is there is no SVG picture; expected one to "
                        "replace, or a new name; remove the file if it is not needed", path);
    return -1;
}

/* drawing_write - write the picture that draw(what, file) makes, to that file or to standard
 * output. */
static inline int drawing_write(const char *path, int (*draw)(const void *what, FILE *out),
                                const void *what)
{
    struct tune_file_writer w;
    if (drawing_is_stdout(path))
        return draw(what, stdout);
    if (drawing_check(path) < 0 || tune_file_begin_output(&w, path) < 0)
        return -1;
    if (draw(what, w.file) == 0 && tune_file_commit(&w) == 0) {
        printf("# %s\n", path);
        return 0;
    }
    tune_file_cancel(&w);
    return -1;
}

#endif
