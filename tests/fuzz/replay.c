/* replay.c - main of a fuzz target without libFuzzer: FILE... each given to the target once; their number is printed.
 * If all are refused, that is a failure: nothing behind the first check is tested then. */
#include <stdio.h>

#include "fuzz.h"

int main(int argc, char **argv)
{
    int accepted = 0;
    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        long size = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
        uint8_t *data = size >= 0 ? malloc((size_t)size + !size) : NULL; /* exactly as large: a sanitizer sees one byte too far */
        if (!data || fseek(f, 0, SEEK_SET) || fread(data, 1, (size_t)size, f) != (size_t)size) {
            fprintf(stderr, "cannot read %s\n", argv[i]);
            return 1;
        }
        fclose(f);
        unsigned before = fuzz_refusals;
        LLVMFuzzerTestOneInput(data, (size_t)size);
        accepted += fuzz_refusals == before;
        free(data);
    }
    printf("%d inputs\n", argc - 1);
    if (!accepted)
        fprintf(stderr, "each input was refused\n");
    return !accepted;
}
