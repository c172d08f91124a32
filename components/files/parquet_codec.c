/* parquet_codec.c - snappy and zstd, by the libraries of the system. They are opened when a file
 * needs one, so that nothing depends on them to build. */
#include <string.h>

#include "core/error.h"
#include "core/try.h"
#include "files/parquet_parts.h"

static int open_codec(struct tune_library *library, const char *name, const char *package, const struct tune_parquet_column *c)
{
    return tune_library_open(library, name, package, "%s: column \"%s\" is compressed", c->path, c->name);
}

void tune_parquet_codecs_close(struct tune_parquet_codecs *codecs)
{
    tune_library_close(&codecs->snappy);
    tune_library_close(&codecs->zstd);
}

static int snappy(const struct tune_parquet_column *c, const void *data, size_t size, void *to, size_t want)
{
    struct tune_parquet_codecs *k = c->codecs;
    size_t got = 0;
    TRY(open_codec(&k->snappy, "libsnappy.so.1", "libsnappy1v5", c));
    TRY(tune_library_find(&k->snappy, "snappy_uncompressed_length", &k->snappy_length));
    TRY(tune_library_find(&k->snappy, "snappy_uncompress", &k->snappy_uncompress));
    if (k->snappy_length(data, size, &got) != 0 || got != want || k->snappy_uncompress(data, size, to, &got) != 0 || got != want)
        return tune_parquet_damaged(c, "a page does not hold what its header says, after snappy");
    return 0;
}

static int zstd(const struct tune_parquet_column *c, const void *data, size_t size, void *to, size_t want)
{
    struct tune_parquet_codecs *k = c->codecs;
    TRY(open_codec(&k->zstd, "libzstd.so.1", "libzstd1", c));
    TRY(tune_library_find(&k->zstd, "ZSTD_decompress", &k->zstd_decompress));
    if (k->zstd_decompress(to, want, data, size) != want) /* an error is a number above any size */
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
