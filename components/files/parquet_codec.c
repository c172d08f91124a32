/* parquet_codec.c - snappy and zstd, by the libraries of the system. They are opened when a file
 * needs one, so that nothing depends on them to build. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "core/error.h"
#include "files/parquet_parts.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Open a library once, and find its functions. */
static int find(void **library, const char *name, const char *package, const struct tune_parquet_column *c,
                const char *const *names, void **functions, int count)
{
    int status = 0;
    pthread_mutex_lock(&lock);
    if (!*library && !(*library = dlopen(name, RTLD_NOW | RTLD_LOCAL)))
        status = tune_error_cannot("%s: column \"%s\" is compressed, and %s, which reads it, is not on this machine (Debian: "
                                   "apt-get install %s)", c->path, c->name, name, package);
    for (int i = 0; status == 0 && i < count; i++)
        if (!functions[i] && !(functions[i] = dlsym(*library, names[i])))
            status = tune_error_cannot("%s has no function %s; it is another version than is known here", name, names[i]);
    pthread_mutex_unlock(&lock);
    return status;
}

/* C has no cast from an object pointer to a function pointer. */
#define FUNCTION(to, from) memcpy(&(to), &(from), sizeof(to))

static int snappy(const struct tune_parquet_column *c, const void *data, size_t size, void *to, size_t want)
{
    static const char *const names[] = {"snappy_uncompressed_length", "snappy_uncompress"};
    static void *library, *functions[2];
    int (*length)(const char *, size_t, size_t *), (*uncompress)(const char *, size_t, char *, size_t *);
    size_t got = 0;
    if (find(&library, "libsnappy.so.1", "libsnappy1v5", c, names, functions, 2) < 0)
        return -1;
    FUNCTION(length, functions[0]);
    FUNCTION(uncompress, functions[1]);
    if (length(data, size, &got) != 0 || got != want || uncompress(data, size, to, &got) != 0 || got != want)
        return tune_parquet_damaged(c, "a page does not hold what its header says, after snappy");
    return 0;
}

static int zstd(const struct tune_parquet_column *c, const void *data, size_t size, void *to, size_t want)
{
    static const char *const names[] = {"ZSTD_decompress"};
    static void *library, *functions[1];
    size_t (*decompress)(void *, size_t, const void *, size_t);
    if (find(&library, "libzstd.so.1", "libzstd1", c, names, functions, 1) < 0)
        return -1;
    FUNCTION(decompress, functions[0]);
    if (decompress(to, want, data, size) != want) /* an error is a number above any size */
        return tune_parquet_damaged(c, "a page does not hold what its header says, after zstd");
    return 0;
}

int tune_parquet_uncompress(const struct tune_parquet_column *c, const void *data, size_t size, void *to, size_t want)
{
    if (c->codec == SNAPPY)
        return snappy(c, data, size, to, want);
    if (c->codec == ZSTD)
        return zstd(c, data, size, to, want);
    if (size != want)
        return tune_parquet_damaged(c, "a page without compression has two sizes");
    if (want > 0)
        memcpy(to, data, want);
    return 0;
}
