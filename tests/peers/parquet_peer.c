/* parquet_peer.c - the rows of Parquet files, for parquet_peer.py. Each line of stdin names a file. Its answer: a row a line,
 * then "# rows N" of the footer, or "! " and the error. */
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "files/parquet.h"

int main(void)
{
    char path[4096];
    while (fgets(path, sizeof path, stdin)) {
        path[strcspn(path, "\n")] = 0;
        struct tune_parquet *p = tune_parquet_open(path, 0);
        struct tune_text line;
        int more = p ? 0 : -1;
        while (p && (more = tune_parquet_next(p, &line)) == 1)
            printf("%s\n", line.data);
        if (more < 0)
            printf("! %s\n", tune_error_message());
        else
            printf("# rows %lld\n", (long long)tune_parquet_rows(p));
        fflush(stdout);
        tune_parquet_free(p);
    }
    return 0;
}
