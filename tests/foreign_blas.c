/* foreign_blas.c - somebody else's program with this library in it: what does the CPU device do to the process?
 *
 * foreign_blas THREADS: opens the device, multiplies for half a second, prints key=value lines. Run by test_blas.sh under
 * each build of OpenBLAS. A thread counts as busy when it took a fifth of the processor time of the busiest one. */
#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"
#include "devices/ops.h"

enum { N = 1024, TASKS = 1024 };

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Every thread of the process and its processor time in clock ticks. */
struct task {
    int id;
    long ticks;
};

static int tasks(struct task *all)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d && n < TASKS && (e = readdir(d));) {
        char path[300], line[1024];
        long user, system;
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", e->d_name);
        FILE *f = e->d_name[0] != '.' ? fopen(path, "r") : NULL;
        if (!f)
            continue;
        const char *after = fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL; /* the name may hold anything */
        if (after && sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &system) == 2)
            all[n++] = (struct task){atoi(e->d_name), user + system};
        fclose(f);
    }
    if (d)
        closedir(d);
    return n;
}

/* ||C v - A (B v)|| / ||A (B v)|| in float64. */
static double product_error(const float *a, const float *b, const float *c)
{
    static double v[N], bv[N];
    double d = 0, s = 0;
    for (int i = 0; i < N; i++)
        v[i] = sin(i + 1.0);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            bv[i] += (double)b[i * N + k] * v[k];
    for (int i = 0; i < N; i++) {
        double abv = 0, cv = 0;
        for (int k = 0; k < N; k++) {
            abv += (double)a[i * N + k] * bv[k];
            cv += (double)c[i * N + k] * v[k];
        }
        d += (cv - abv) * (cv - abv);
        s += abv * abv;
    }
    return sqrt(d / s);
}

int main(int argc, char **argv)
{
    static struct task before[TASKS], after[TASKS];
    int threads = argc > 1 ? atoi(argv[1]) : 0, at_start = tasks(before), most = omp_get_max_threads(), team = 0, busy = 0;
    char *(*core)(void);
    *(void **)&core = dlsym(RTLD_DEFAULT, "openblas_get_corename");
    printf("core_at_start=%s\n", core ? core() : "?");
    struct tune_device *dev = tune_device_open("cpu", threads);
    static float numbers[3 * N * N]; /* two matrices, and room for their product */
    tune_address m[3];
    for (int i = 0; i < 2 * N * N; i++)
        numbers[i] = (float)((i * 7919L + i / 13) % 1009) / 1009 - .5f;
    for (int i = 0; i < 3; i++)
        if (!dev || !(m[i] = tune_device_alloc(dev, N * N * 4, "a matrix")).at ||
            (i < 2 && tune_device_upload(dev, m[i], numbers + i * N * N, N * N * 4) < 0)) {
            fprintf(stderr, "%s\n", tune_error_message());
            return 1;
        }
    struct tune_tensor a = tune_tensor_2d(m[0], TUNE_F32, N, N), b = tune_tensor_2d(m[1], TUNE_F32, N, N);
    struct tune_tensor c = tune_tensor_2d(m[2], TUNE_F32, N, N);
    tune_gemm(dev, &c, &a, false, &b, false, 1, 0, TUNE_F32);
    usleep(400000); /* the pthread build's own threads spin for a tenth of a second when they are loaded, then sleep */
    int n = tasks(before);
    double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    while (now(CLOCK_PROCESS_CPUTIME_ID) < cpu + .6 * dev->threads)
        if (tune_gemm(dev, &c, &a, false, &b, false, 1, 0, TUNE_F32) < 0)
            return 1;
    wall = now(CLOCK_MONOTONIC) - wall;
    cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    int total = tasks(after);
    long busiest = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < total; i++) {
            long took = after[i].ticks;
            for (int k = 0; k < n; k++)
                took -= before[k].id == after[i].id ? before[k].ticks : 0;
            if (pass == 0)
                busiest = took > busiest ? took : busiest;
            else
                busy += took * 5 > busiest;
        }
#pragma omp parallel
#pragma omp single
    team = omp_get_num_threads();
    int (*pool)(void), (*parallel)(void);
    *(void **)&pool = dlsym(RTLD_DEFAULT, "openblas_get_num_threads");
    *(void **)&parallel = dlsym(RTLD_DEFAULT, "openblas_get_parallel");
    Dl_info where;
    printf("description=%s\nwarning=%s\ncore=%s\n", dev->description, dev->warning, core ? core() : "?");
    printf("library=%s\n", core && dladdr(*(void **)&core, &where) ? where.dli_fname : "?");
    printf("parallel=%d\npool=%d\n", parallel ? parallel() : -1, pool ? pool() : -1);
    printf("coretype=%s\n", getenv("OPENBLAS_CORETYPE") ? getenv("OPENBLAS_CORETYPE") : "unset");
    float *product = numbers + 2 * N * N;
    if (tune_device_download(dev, product, m[2], N * N * 4) < 0 || tune_device_sync(dev) < 0)
        return 1;
    double e = product_error(numbers, numbers + N * N, product);
    printf("product=%s\nerror=%.1e\n", e <= 1e-5 ? "right" : "wrong", e); /* observed 3e-6: sums that cancel */
    printf("threads_at_start=%d\nthreads=%d\nbusy=%d\ncpu_per_wall=%.2f\n", at_start, total, busy, cpu / wall);
    printf("omp=%s\n", omp_get_max_threads() == most && team == most ? "same" : "changed");
    for (int i = 0; i < 3; i++)
        tune_device_free(dev, m[i], N * N * 4);
    tune_device_close(dev);
    return 0;
}
