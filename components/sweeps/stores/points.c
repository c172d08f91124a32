/* points.c - lock a point by a lock on one byte of a file; the byte's offset is the point's
 * number.
 *
 * The kernel releases the lock when the process ends in any way, and no file is left behind. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/try.h"
#include "sweeps/stores/store_parts.h"

/* Open the lock file. Everyone who may write to the store may lock it, regardless of the first
 * user's umask. */
static int open_points(struct tune_store *s)
{
    char path[TUNE_PATH_MAX];
    struct stat folder, file;
    if (s->points >= 0)
        return 0;
    TRY(tune_store_path(s, path, "points.lock"));
    s->points = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (s->points < 0)
        return tune_error_set("cannot open %s: %s; every user who measures into this store must be "
                              "able to write this file: its owner can change the mode with chmod",
                              path, strerror(errno));
    /* if that fails, others get the error above */
    if (stat(s->folder, &folder) == 0 && fstat(s->points, &file) == 0 && file.st_uid == geteuid())
        (void)fchmod(s->points, (file.st_mode | folder.st_mode) & 0666);
    return 0;
}

static int set_lock(struct tune_store *s, uint64_t point, short type)
{
    struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)(point >> 2), .l_len = 1};
    return fcntl(s->points, F_OFD_SETLK, &range);
}

int tune_store_lock_point(struct tune_store *s, uint64_t point)
{
    TRY(open_points(s));
    return set_lock(s, point, F_WRLCK) == 0 || (errno != EAGAIN && errno != EACCES);
}

void tune_store_unlock_point(struct tune_store *s, uint64_t point)
{
    if (s->points >= 0)
        set_lock(s, point, F_UNLCK);
}
