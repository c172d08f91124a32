/* algorithms.cu - the file that keeps the choice of algorithms. A line for each kind of product:
 *     rows columns depth a_step b_step c_step a_dtype c_dtype trans_a trans_b, four alignments,
 *     the algorithm's nine numbers, microseconds (0: not timed; it replaced one that was refused)
 * Nothing of the file is given to cuBLASLt. It only chooses among the algorithms that cuBLASLt
 * offers for the product, so no file can make a product wrong. */
#include "devices/cuda/algorithms.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

enum { KIND = 14, ALGORITHM = 9, LINE = KIND + ALGORITHM + 1 };
constexpr size_t LARGEST = 16 << 20; /* bytes of a file */
static const char head[] =
    "# cuBLASLt's fastest algorithms here, found by timing. The choice decides "
    "how sums are rounded.\n# Delete this file to choose again.\n";

/* The numbers of a line. */
struct line {
    int64_t number[LINE];
};

static void set_kind(struct line *l, const struct tune_cuda_kind *k)
{
    const int64_t number[KIND] = {k->rows,       k->columns,   k->depth,      k->a_step,
                                  k->b_step,     k->c_step,    k->a_dtype,    k->c_dtype,
                                  k->trans_a,    k->trans_b,    k->aligned[0], k->aligned[1],
                                  k->aligned[2], k->aligned[3]};
    memcpy(l->number, number, sizeof number);
}

/* The numbers by which cuBLASLt's interface tells algorithms apart; -1: it has no such number. */
static void set_algorithm(struct line *l, const cublasLtMatmulAlgo_t *algorithm)
{
    static const cublasLtMatmulAlgoConfigAttributes_t attributes[ALGORITHM] = {
        CUBLASLT_ALGO_CONFIG_ID,
        CUBLASLT_ALGO_CONFIG_TILE_ID,
        CUBLASLT_ALGO_CONFIG_SPLITK_NUM,
        CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
        CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING,
        CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION,
        CUBLASLT_ALGO_CONFIG_STAGES_ID,
        CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID,
        CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID};
    for (int i = 0; i < ALGORITHM; i++) {
        bool narrow = i >= 7; /* the last two have 16 bits */
        uint32_t wide = 0;
        uint16_t half = 0;
        size_t written = 0;
        cublasStatus_t s = cublasLtMatmulAlgoConfigGetAttribute(
            algorithm, attributes[i], narrow ? static_cast<void *>(&half) : &wide, narrow ? 2 : 4,
            &written);
        int64_t found = narrow ? half : wide;
        l->number[KIND + i] = s == CUBLAS_STATUS_SUCCESS ? found : -1;
    }
}

static bool same_kind(const struct line *a, const struct line *b)
{
    return memcmp(a->number, b->number, KIND * sizeof *a->number) == 0;
}

static bool same_algorithm(const struct line *a, const struct line *b)
{
    return memcmp(a->number + KIND, b->number + KIND, ALGORITHM * sizeof *a->number) == 0;
}

int tune_cuda_algorithms_unlike(cublasLtMatmulHeuristicResult_t *candidates, int count)
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        struct line mine = {}, other = {};
        bool seen = false;
        set_algorithm(&mine, &candidates[i].algo);
        for (int j = 0; j < kept && !seen; j++) {
            set_algorithm(&other, &candidates[j].algo);
            seen = same_algorithm(&mine, &other);
        }
        if (!seen)
            candidates[kept++] = candidates[i];
    }
    return kept;
}

/* The line at *at, which moves behind it. False if it has not exactly LINE whole numbers. */
static bool read_line(const char **at, const char *end, struct line *l)
{
    const char *stop = static_cast<const char *>(memchr(*at, '\n', static_cast<size_t>(end - *at)));
    const char *p = *at;
    *at = stop ? stop + 1 : end;
    for (int i = 0; i < LINE; i++) {
        char *after;
        if (!stop || p >= stop || !(*p == '-' || (*p >= '0' && *p <= '9')))
            return false;
        errno = 0;
        l->number[i] = strtoll(p, &after, 10);
        if (errno || *after != (i + 1 < LINE ? ' ' : '\n'))
            return false;
        p = after + 1;
    }
    return true;
}

/* The candidate that a file's text names for l's kind; -1: none. */
static int named(const char *text, size_t size, const struct line *l,
                 const cublasLtMatmulHeuristicResult_t *candidates, int count)
{
    const char *end = text + size;
    for (const char *at = text; at < end;) {
        struct line read, offered = {};
        if (!read_line(&at, end, &read) || !same_kind(&read, l))
            continue;
        for (int i = 0; i < count; i++) {
            set_algorithm(&offered, &candidates[i].algo);
            if (same_algorithm(&read, &offered))
                return i;
        }
    }
    return -1;
}

int tune_cuda_algorithms_kept(const char *path, const struct tune_cuda_kind *kind,
                              const cublasLtMatmulHeuristicResult_t *candidates, int count)
{
    struct line l = {};
    char *text = nullptr;
    size_t size = 0;
    struct tune_error before;
    tune_error_save(&before);
    set_kind(&l, kind);
    int found = tune_file_read(path, LARGEST, &text, &size) < 0
                    ? -1
                    : named(text, size, &l, candidates, count);
    free(text);
    tune_error_restore(&before); /* no file is no error */
    return found;
}

static bool put(FILE *file, const struct line *l)
{
    for (int i = 0; i < LINE; i++)
        fprintf(file, "%lld%c", static_cast<long long>(l->number[i]), i + 1 < LINE ? ' ' : '\n');
    return !ferror(file);
}

/* Write the old text's whole lines of other kinds, then l. */
static int rewrite(const char *path, const char *text, size_t size, const struct line *l)
{
    struct tune_file_writer w;
    const char *end = text + size;
    if (tune_file_begin(&w, path) < 0)
        return -1;
    fputs(head, w.file);
    for (const char *at = text; at < end;) {
        struct line read;
        if (read_line(&at, end, &read) && !same_kind(&read, l))
            put(w.file, &read);
    }
    if (put(w.file, l) && tune_file_commit(&w) == 0)
        return 0;
    tune_file_cancel(&w);
    return -1;
}

/* Processes take turns by a lock on a file of its own. -1: somebody holds it for a second. */
static int lock(const char *path)
{
    char name[TUNE_PATH_MAX + 8];
    snprintf(name, sizeof name, "%s.lock", path);
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    for (int tries = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0; tries++) {
        if (tries == 100 || errno != EWOULDBLOCK) {
            close(fd);
            return -1;
        }
        usleep(10000);
    }
    return fd;
}

int tune_cuda_algorithms_keep(const char *path, const struct tune_cuda_kind *kind,
                              const cublasLtMatmulHeuristicResult_t *candidates, int count,
                              int best, double microseconds)
{
    struct line l = {};
    char *text = nullptr;
    size_t size = 0;
    struct tune_error before;
    int fd = lock(path);
    if (fd < 0)
        return -1;
    tune_error_save(&before);
    set_kind(&l, kind);
    set_algorithm(&l, &candidates[best].algo);
    l.number[LINE - 1] = static_cast<int64_t>(microseconds);
    int counts = -1;
    if (tune_file_read(path, LARGEST, &text, &size) == 0)
        counts = named(text, size, &l, candidates, count);
    else
        size = 0;
    if (counts < 0)
        counts = rewrite(path, text, size, &l) == 0 ? best : -1;
    free(text);
    close(fd);
    tune_error_restore(&before);
    return counts;
}

/* The folder that the user, or the system, names. False: none. */
static bool find_folder(char folder[TUNE_PATH_MAX])
{
    static const char *const names[] = {"TUNE_CUDA_ALGORITHMS", "XDG_CACHE_HOME", "HOME"};
    static const char *const below[] = {"", "/tune.c", "/.cache/tune.c"};
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return snprintf(folder, TUNE_PATH_MAX, "%s%s", value, below[i]) < TUNE_PATH_MAX;
    }
    return false;
}

/* Find the folder, and the file's name in it. False with an error: it cannot be used. */
static bool make_path(char path[TUNE_PATH_MAX], const char *gpu, int driver)
{
    char folder[TUNE_PATH_MAX];
    if (!find_folder(folder)) {
        tune_error_set("there is no folder for cuBLASLt's algorithms: set HOME or "
                       "TUNE_CUDA_ALGORITHMS");
        return false;
    }
    int n = snprintf(path, TUNE_PATH_MAX, "%s/%.64s-driver-%d-cublaslt-%zu.txt", folder, gpu,
                     driver, cublasLtGetVersion());
    if (n >= TUNE_PATH_MAX - 32) {
        tune_error_set("TUNE_CUDA_ALGORITHMS: the folder's name is too long");
        return false;
    }
    if (tune_file_make_folder(folder) < 0)
        return false;
    int fd = lock(path);
    if (fd < 0)
        tune_error_set("cannot write in %s: %s", folder, strerror(errno));
    else
        close(fd);
    return fd >= 0;
}

int tune_cuda_algorithms_path(struct tune_device *dev, char path[TUNE_PATH_MAX])
{
    const char *wanted = getenv("TUNE_CUDA_ALGORITHMS");
    int device = 0, driver = 0;
    cudaDeviceProp p;
    path[0] = 0;
    if (wanted && strcmp(wanted, "off") == 0)
        return 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaGetDeviceProperties(&p, device);
    if (error == cudaSuccess)
        error = cudaDriverGetVersion(&driver);
    if (error != cudaSuccess)
        return tune_cuda_failed(error, "cuda, the GPU's properties");
    for (char *c = p.name; *c; c++)
        if (!((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z')))
            *c = '-';
    if (make_path(path, p.name, driver))
        return 0;
    snprintf(dev->warning, sizeof dev->warning,
             "%.160s; so cuBLASLt's algorithms are its first guess", tune_error_message());
    path[0] = 0;
    return 0;
}
