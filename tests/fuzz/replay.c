/* replay.c - main of a fuzz target without libFuzzer: FILE... each given to the target once; their number is printed. */
#include <stdio.h>

#include "fuzz.h"

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        long size = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
        uint8_t *data = size >= 0 ? malloc((size_t)size + !size) : NULL; /* exactly as large: a sanitizer sees one byte too far */
        if (!data || fseek(f, 0, SEEK_SET) || fread(data, 1, (size_t)size, f) != (size_t)size) {
            fprintf(stderr, "cannot read %s\n", argv[i]);
            return 1;
        }
        fclose(f);
        LLVMFuzzerTestOneInput(data, (size_t)size);
        free(data);
    }
    printf("%d inputs\n", argc - 1);
    return 0;
}
