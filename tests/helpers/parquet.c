/* parquet.c - a Parquet file of text columns: `parquet FILE <rows`. The first line of rows names the columns; tabs part them. */
#include <stdio.h>

#include "../parquet_writer.h"

enum { COLUMNS = 8, LINE = 4096 };

int main(int argc, char **argv)
{
    struct parquet f = {0}, bodies[COLUMNS] = {{0}};
    struct parquet_node nodes[COLUMNS] = {{0}};
    char line[LINE], *at;
    int columns = 0, rows = -1;
    while (argc == 2 && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        at = line;
        for (int k = 0; k < COLUMNS && (rows < 0 || k < columns); k++) {
            char *field = strsep(&at, "\t");
            if (!field)
                break;
            if (rows < 0) {
                nodes[columns++] = (struct parquet_node){.name = strdup(field), .type = TEXT_TYPE, .converted = 1};
                continue;
            }
            const uint32_t size = (uint32_t)strlen(field);
            const uint8_t head[4] = {(uint8_t)size, (uint8_t)(size >> 8), 0, 0};
            parquet_put(&bodies[k], head, 4);
            parquet_put(&bodies[k], field, size);
        }
        rows++;
    }
    FILE *out = rows > 0 ? fopen(argv[1], "wb") : NULL;
    parquet_begin(&f);
    for (int k = 0; k < columns; k++) {
        parquet_chunk(&f, TEXT_TYPE, rows);
        parquet_page(&f, PAGE_1, 0, rows, bodies[k].data, bodies[k].size);
    }
    parquet_end(&f, nodes, columns, columns, rows);
    return out && fwrite(f.data, 1, f.size, out) == f.size && fclose(out) == 0 ? 0 : 1;
}
