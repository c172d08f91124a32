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

/* Open a file that goes when the program ends. */
static int open_nameless(void)
{
    char name[TUNE_PATH_MAX];
    const char *folder = temporary_folder();
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    TRY(tune_path(name, "%s/tune-rows-XXXXXX", folder)); /* not every file system has O_TMPFILE */
    fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0)
        return tune_error_cannot("%s: rows of Parquet files are copied into this folder, and it cannot be written (%s); set TMPDIR "
                                 "to a folder that can", folder, strerror(errno));
    unlink(name);
    return fd;
}

static int copy_rows(const char *path, FILE *out)
{
    struct tune_parquet *p = tune_parquet_open(path);
    struct tune_text line;
    int more = p ? 0 : -1;
    while (p && (more = tune_parquet_next(p, &line)) == 1)
        if (fwrite(line.data, 1, line.size, out) != line.size || fputc('\n', out) == EOF) {
            more = tune_error_cannot("%s: its rows are copied into %s, which has no room for them (%s); set TMPDIR to a folder with "
                                     "more room", path, temporary_folder(), strerror(errno));
            break;
        }
    tune_parquet_free(p);
    return more;
}

int tune_rows_copy_parquet(const struct tune_shards *files, struct tune_mapping *copy)
{
    int fd = open_nameless(), status = 0;
    FILE *out = fd >= 0 ? fdopen(fd, "w+") : NULL;
    if (!out) {
        if (fd >= 0)
            close(fd);
        return fd < 0 ? -1 : tune_error_no_memory("a copy of the rows");
    }
    for (int i = 0; status == 0 && i < files->count; i++)
        status = copy_rows(files->paths[i], out);
    if (status == 0 && fflush(out) == EOF)
        status = tune_error_cannot("%s: its rows are copied into %s, which has no room for them (%s); set TMPDIR to a folder with more "
                                   "room", files->paths[0], temporary_folder(), strerror(errno));
    off_t size = status == 0 ? lseek(fileno(out), 0, SEEK_END) : 0;
    if (status == 0)
        status = tune_file_map_open(copy, fileno(out), files->paths[0], (size_t)size);
    fclose(out);
    return status;
}
