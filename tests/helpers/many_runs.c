/* many_runs.c - run folders for measurements of the studio: many_runs FOLDER RUNS STEPS. Each has 10 metrics of a training run,
 * with a loss of its own, and ended well. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static FILE *create(const char *folder, int run, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/r%05d%s%s", folder, run, *name ? "/" : "", name);
    FILE *f = *name ? fopen(path, "w") : NULL;
    if (*name ? !f : mkdir(path, 0777) < 0) {
        fprintf(stderr, "many_runs: %s: %s\n", path, strerror(errno));
        exit(1);
    }
    return f;
}

/* A number in [0, 1) that is the same each time. */
static double noise(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fputs("many_runs FOLDER RUNS STEPS\n", stderr);
        return 2;
    }
    int runs = atoi(argv[2]);
    int64_t steps = atoll(argv[3]);
    mkdir(argv[1], 0777);
    for (int r = 0; r < runs; r++) {
        uint64_t state = (uint64_t)r + 1;
        double lr = exp2(-8 - r % 13);
        create(argv[1], r, "");
        FILE *f = create(argv[1], r, "run.json");
        fprintf(f,
                "{\"program\":\"finetune_full\",\"device\":\"cpu\",\"status\":\"finished\",\"planned_steps\":%" PRId64
                ",\"started\":\"2026-11-%02dT%02d:%02d:00Z\",\"ended\":\"2026-11-27T10:00:00Z\",\"argv\":[\"finetune_full\"],"
                "\"command\":\"finetune_full\",\"options\":{\"model\":\"models/tiny\",\"dataset\":\"datasets/stories.jsonl\",\"lr\":%.9g,"
                "\"batch_size\":%d,\"seed\":%d,\"optimizer\":\"adamw\",\"schedule\":\"cosine\"",
                steps, 1 + r % 26, r % 24, r % 60, lr, 4 << r % 3, r);
        for (int k = 0; k < 70; k++) /* a recipe has about 80 options */
            fprintf(f, ",\"option_%d\":%d", k, k);
        fputs("},\"units\":{\"loss\":\"nats/token\"}}\n", f);
        fclose(f);
        f = create(argv[1], r, "metrics.jsonl");
        for (int64_t i = 1; i <= steps; i++)
            fprintf(f,
                    "{\"step\":%" PRId64 ",\"loss\":%.17g,\"grad_norm\":%.17g,\"lr\":%.9g,\"step_s\":%.17g,\"elapsed_s\":%.6f,\"rows\":4,"
                    "\"tokens\":256,\"padded_tokens\":256,\"tokens_per_s\":%.17g,\"epoch\":%.17g}\n",
                    i, 2 + 5 / sqrt((double)i) + noise(&state) - lr, 1 + noise(&state), lr, .01 + noise(&state) / 1000, .011 * (double)i,
                    20000 + 1000 * noise(&state), (double)i / 90);
        fclose(f);
        f = create(argv[1], r, "report.json");
        fprintf(f, "{\"loss_last\":%.9g,\"steps\":%" PRId64 ",\"seconds\":%.6f}\n", 2.5 - lr, steps, .011 * (double)steps);
        fclose(f);
    }
    return 0;
}
