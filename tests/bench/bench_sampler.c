/* bench_sampler.c - what it costs to watch the machine while a run trains: processor time of a process that does nothing else. */
#include <stdio.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "profilers/sampler.h"

int main(void)
{
    enum { LOOKS = 10000, SECONDS = 10 };
    struct tune_sampler_seen seen;
    struct tune_sampler *s = tune_sampler_new(NULL);
    if (!s) {
        fprintf(stderr, "bench_sampler: %s\n", tune_error_message());
        return 1;
    }
    struct tune_moment begin = tune_moment_now();
    sleep(SECONDS);
    struct tune_moment end = tune_moment_now();
    printf("by itself   %.4f %% of a processor\n", 100 * (end.cpu_s - begin.cpu_s) / (end.wall_s - begin.wall_s));
    begin = tune_moment_now();
    for (int i = 0; i < LOOKS; i++)
        tune_sampler_read(s, begin.wall_s, begin.wall_s, &seen);
    end = tune_moment_now();
    printf("a look      %.1f microseconds\n", 1e6 * (end.cpu_s - begin.cpu_s) / LOOKS);
    tune_sampler_free(s);
    return 0;
}
