/* rows_parquet.c - a copy of Parquet files as lines of JSON, in a file without a name. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/error.h"
#include "core/try.h"
#include "datasets/rows.h"
#include "files/parquet.h"

bool tune_rows_are_parquet(const char *path)
{
    const char *ending = strrchr(path, '.');
    char begin[4] = "";
    size_t size = 0;
    struct tune_error before; /* what is wrong with the file is said when it is opened */
    if (ending && !strcasecmp(ending, ".parquet"))
        return true;
    tune_error_save(&before);
    int fd = tune_file_open(path, &size);
    bool read = fd >= 0 && size >= 12 && tune_file_read_at(fd, path, 0, begin, 4) == 0;
    if (fd >= 0)
        close(fd);
    tune_error_restore(&before);
    return read && memcmp(begin, "PAR1", 4) == 0;
}

static const char *temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

/* The copy: the most bytes that it may take, and those that the disk can give. */
struct copy {
    FILE *out;
    int64_t most, room, written;
    double expansion;
};

static int no_room(const char *path, const char *why)
{
    return tune_error_cannot("%s: its rows are copied into %s, which has no room for them (%s); set TMPDIR to a folder with "
                             "more room", path, temporary_folder(), why);
}

static int copy_row(struct copy *c, const char *path, const struct tune_text *line)
{
    c->written += (int64_t)line->size + 1;
    if (c->written > c->most)
        return tune_error_cannot("%s: its rows would take more than %lld MiB as JSON, many times the file; if you trust it, raise "
                                 "`expansion_limit`", path, (long long)(c->most >> 20));
    if (c->written > c->room)
        return no_room(path, "it would be nearly full");
    return fwrite(line->data, 1, line->size, c->out) == line->size && fputc('\n', c->out) != EOF ? 1 : no_room(path, strerror(errno));
}

static int copy_rows(struct copy *c, const char *path)
{
    struct tune_parquet *p = tune_parquet_open(path, c->expansion);
    struct tune_text line;
    int more = p ? 1 : -1;
    while (more == 1 && (more = tune_parquet_next(p, &line)) == 1)
        more = copy_row(c, path, &line);
    tune_parquet_free(p);
    return more;
}

int tune_rows_copy_parquet(const struct tune_shards *files, int64_t bytes, double expansion, struct tune_mapping *copy)
{
    int fd = tune_file_nameless("rows of Parquet files are copied into this folder"), status = 0;
    FILE *out = fd >= 0 ? fdopen(fd, "w+") : NULL;
    if (!out) {
        if (fd >= 0)
            close(fd);
        return fd < 0 ? -1 : tune_error_no_memory("a copy of the rows");
    }
    /* a twentieth of the disk's room stays for others */
    struct copy c = {out, tune_parquet_most(bytes, expansion), tune_file_free_space(temporary_folder()) / 20 * 19, 0, expansion};
    for (int i = 0; status == 0 && i < files->count; i++)
        status = copy_rows(&c, files->paths[i]);
    if (status == 0 && fflush(out) == EOF)
        status = no_room(files->paths[0], strerror(errno));
    off_t size = status == 0 ? lseek(fileno(out), 0, SEEK_END) : 0;
    if (status == 0)
        status = tune_file_map_open(copy, fileno(out), files->paths[0], (size_t)size);
    fclose(out);
    return status;
}
