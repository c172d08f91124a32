/* lines.c - a file of lines that is continued. */
#include "files/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/print.h"
#include "core/try.h"

/* Read the lines that are there. The file is then at the end of the last whole one. */
static int read_lines(const struct tune_lines *l, FILE *file, int64_t *there)
{
    char *line = NULL;
    size_t room = 0;
    long end = 0;
    ssize_t n;
    int status = 0;
    while (status == 0 && (n = getline(&line, &room, file)) > 0 && line[n - 1] == '\n') {
        status = l->read(l->context, line, (*there)++);
        end = ftell(file);
    }
    if (status == 0 && n > 0 && !l->begins(l->context, line, (size_t)n, *there))
        status = l->read(l->context, "", *there); /* nobody's half line: refuse it as a whole one */
    free(line);
    TRY(status);
    if (ferror(file) || ftruncate(fileno(file), end) < 0 || fseek(file, end, SEEK_SET) < 0)
        return tune_error_set("cannot go on with %s: %s", l->path, strerror(errno));
    return 0;
}

static int hold(const struct tune_lines *l, FILE *file, int64_t *there)
{
    if (flock(fileno(file), LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return tune_error_set("%s: another process writes answers there", l->path);
    if (l->overwrite)
        return ftruncate(fileno(file), 0) == 0 ? 0 : tune_error_set("cannot empty %s: %s", l->path, strerror(errno));
    rewind(file);
    return read_lines(l, file, there);
}

FILE *tune_lines_open(const struct tune_lines *l, int64_t *there)
{
    struct stat st;
    *there = 0;
    if (stat(l->path, &st) == 0 && !S_ISREG(st.st_mode)) {
        tune_error_usage("%s is no regular file; without `output` the answers go to the standard output", l->path);
        return NULL;
    }
    FILE *file = fopen(l->path, "a+");
    if (!file) {
        tune_error_usage("cannot open %s: %s", l->path, strerror(errno));
        return NULL;
    }
    if (hold(l, file, there) == 0)
        return file;
    fclose(file);
    return NULL;
}

bool tune_lines_put(FILE *to, const char *line)
{
    size_t left = strlen(line), n;
    unsigned c;
    bool good = true;
    for (; left > 0; line += n, left -= n)
        good = (tune_steers(line, left, &n, &c) ? fprintf(to, "\\u%04x", c) > 0 : fwrite(line, 1, n, to) == n) && good;
    return fputc('\n', to) != EOF && good;
}
