/* test_refusals.cu - cuBLASLt refuses what it offered: at each call in turn, each algorithm,
 * operands that lie unevenly, everything. The numbers are exact in every case: timed or not,
 * captured or not, slices, unaligned operands, sums, bfloat16 and float32. The factors are -1, 0
 * and 1, so each order of adding gives the same bits. */
#include "prove.h"

#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "core/error.h"
#include "core/float16.h"
#include "devices/ops.h"

static std::string folder; /* of this test */
static tune_device *dev;

/* A matrix within a larger one: `before` columns, its own, and `after` more. */
struct layout {
    int64_t before, after;
};

struct kind {
    int64_t M, N, K;
    bool trans_a, trans_b;
    enum tune_dtype operands, result;
    float beta;
    bool other; /* the sum is with another matrix than the result */
    layout a, b, c;
};

static const layout dense = {0, 0}, slice = {8, 24}, uneven = {3, 2};
static const std::vector<kind> kinds = {
    /* LoRA's: x A^T, and h B^T added to a slice of the result */
    {64, 16, 48, false, true, TUNE_BF16, TUNE_BF16, 0, false, dense, dense, slice},
    {64, 48, 16, false, true, TUNE_BF16, TUNE_F32, 1, false, slice, dense, slice},
    {16, 48, 64, true, false, TUNE_BF16, TUNE_F32, 1, false, slice, uneven, dense},
    {64, 48, 16, false, true, TUNE_BF16, TUNE_F32, 1, true, slice, dense, dense},
    {64, 24, 40, false, false, TUNE_F32, TUNE_F32, 0, false, dense, dense, dense},
    {64, 7, 33, false, true, TUNE_F32, TUNE_F32, 1, false, uneven, slice, uneven},
    {7, 9, 21, true, true, TUNE_F32, TUNE_F32, 0.5f, false, dense, uneven, slice},
    {15, 16, 30, false, false, TUNE_BF16, TUNE_BF16, 1, false, uneven, uneven, uneven},
    /* cuBLASLt has no product of float32 into bfloat16 */
    {64, 5, 20, true, false, TUNE_F32, TUNE_BF16, 1, false, uneven, dense, slice},
};

/* A matrix on the device, with the numbers around it. */
struct matrix {
    std::vector<float> all;
    int64_t rows, columns, step;
    layout at;
    tune_tensor whole, part;

    matrix(enum tune_dtype dtype, int64_t rows, int64_t columns, layout at, int seed)
        : rows(rows), columns(columns), step(at.before + columns + at.after), at(at)
    {
        for (int64_t i = 0; i < rows * step; i++)
            all.push_back((float)((i * 7 + seed + i / 5) % 3 - 1));
        tune_address none = {0};
        whole = tune_tensor_2d(none, dtype, rows, step);
        whole.data = tune_device_alloc(dev, tune_tensor_bytes(&whole), "a test");
        part = at.before + at.after ? tune_tensor_columns(&whole, at.before, columns) : whole;
        upload();
    }
    ~matrix() { tune_device_free(dev, whole.data, tune_tensor_bytes(&whole)); }
    matrix(const matrix &) = delete;
    void upload()
    {
        std::vector<char> bytes((size_t)tune_tensor_bytes(&whole));
        if (tune_convert(bytes.data(), whole.dtype, all.data(), TUNE_F32, rows * step) < 0)
            abort();
        tune_device_upload(dev, whole.data, bytes.data(), (int64_t)bytes.size());
    }
    float number(int64_t row, int64_t column) const
    {
        return all[(size_t)(row * step + at.before + column)];
    }
    std::vector<float> now() const
    {
        std::vector<float> v(all.size());
        if (tune_to_host(dev, &whole, v.data()) < 0)
            printf("# %s\n", tune_error_message());
        return v;
    }
};

/* The product of a kind, and what it should be. */
struct work {
    const kind &k;
    matrix a, b, c, r;

    explicit work(const kind &k)
        : k(k), a(k.operands, k.trans_a ? k.K : k.M, k.trans_a ? k.M : k.K, k.a, 1),
          b(k.operands, k.trans_b ? k.N : k.K, k.trans_b ? k.K : k.N, k.b, 2),
          c(k.result, k.M, k.N, k.c, 3), r(k.result, k.M, k.N, k.c, 4)
    {
    }
    std::vector<float> expected() const
    {
        std::vector<float> to = c.all;
        for (int64_t m = 0; m < k.M; m++)
            for (int64_t n = 0; n < k.N; n++) {
                float sum = k.beta * (k.other ? r : c).number(m, n);
                for (int64_t i = 0; i < k.K; i++)
                    sum += (k.trans_a ? a.number(i, m) : a.number(m, i)) *
                           (k.trans_b ? b.number(n, i) : b.number(i, n));
                to[(size_t)(m * c.step + c.at.before + n)] = sum;
            }
        return to;
    }
    /* In a group: the first time call by call, then as a graph. */
    int run()
    {
        c.upload();
        if (tune_device_group_begin(dev) < 0)
            return -1;
        int status = k.other ? tune_gemm_add(dev, &c.part, &r.part, &a.part, &b.part, 1, k.operands)
                             : tune_gemm(dev, &c.part, &a.part, k.trans_a, &b.part, k.trans_b, 1,
                                         k.beta, k.operands);
        int ended = tune_device_group_end(dev);
        return status < 0 ? status : ended;
    }
};

/* One device: each kind five times, all of it exact. At last it is a graph, and nothing is
 * allocated. Returns how many kinds were wrong. */
static int wrong_kinds(const std::vector<kind> &some)
{
    int wrong = 0;
    dev = tune_device_open("cuda", 1);
    if (!dev)
        return -1;
    for (const kind &k : some) {
        work w(k);
        bool good = true;
        int64_t allocations = 0;
        std::vector<float> want = w.expected();
        for (int time = 0; time < 5 && good; time++) {
            w.c.upload();
            uint64_t before = emu::queued();
            good = w.run() == 0 && (time < 3 || (emu::queued() - before == 2 &&
                                                 dev->allocations == allocations));
            if (!good)
                printf("# time %d: %s\n", time, tune_error_message());
            allocations = dev->allocations;
            good = good && w.c.now() == want && !*tune_error_message();
        }
        if (!good)
            printf("# kind %d: wrong\n", (int)(&k - some.data()));
        wrong += !good;
    }
    return wrong;
}

static void close_device()
{
    tune_device_close(dev);
    dev = nullptr;
}

/* The choices of earlier cases are gone. */
static void forget()
{
    std::string remove = "rm -rf '" + folder + "/kept'";
    if (system(remove.c_str()) != 0)
        exit(1);
}

static void set_timed(bool timed)
{
    forget();
    setenv("TUNE_CUDA_ALGORITHMS", timed ? (folder + "/kept").c_str() : "off", 1);
}

/* Whatever is refused, the numbers are right, and the device says it met a refusal. */
static void modes()
{
    static const struct {
        const char *refuse;
        bool met;
    } cases[] = {{"", false},
                 {"algorithm=0", true},
                 {"algorithm=1", true},
                 {"algorithm=2", true},
                 {"algorithm=0,algorithm=1", true},
                 {"algorithm=0,algorithm=2,status=7", true},
                 {"uneven", true},
                 {"uneven,algorithm=0,status=8", true},
                 {"uneven,status=13", true},
                 {"uneven,status=14", true},
                 {"uneven-offer", true},
                 {"uneven-offer,algorithm=0,status=7", true}};
    for (bool timed : {false, true})
        for (auto &c : cases) {
            bool once = !timed && strncmp(c.refuse, "algorithm=1", 11) == 0;
            bool twice = !timed && strncmp(c.refuse, "algorithm=2", 11) == 0;
            set_timed(timed);
            setenv("CUDA_ON_CPU_REFUSE", c.refuse, 1);
            int wrong = wrong_kinds(kinds);
            bool met = dev && strstr(dev->met, "cuBLASLt refused products");
            if (dev && *dev->met)
                printf("# %s\n", dev->met);
            close_device();
            check(std::string(timed ? "timed" : "untimed") + ", refused: " +
                      (*c.refuse ? c.refuse : "nothing"),
                  wrong == 0 && met == (c.met && !once && !twice));
        }
    unsetenv("CUDA_ON_CPU_REFUSE");
}

/* Each call of cublasLtMatmul in turn. */
static void each_call()
{
    for (bool timed : {false, true}) {
        int calls = 0, wrong = 0;
        bool met = true;
        for (; met && calls < 1000; calls++) {
            set_timed(timed);
            setenv("CUDA_ON_CPU_REFUSE", ("call=" + std::to_string(calls + 1)).c_str(), 1);
            std::vector<kind> some(kinds.begin(), kinds.begin() + (timed ? 2 : 9));
            wrong += wrong_kinds(some) != 0;
            met = dev && *dev->met;
            close_device();
        }
        /* without a refusal: two calls a kind, the captured one too; nine more to time three */
        int least = timed ? 2 * 11 : 9 * 2;
        printf("# %d calls\n", calls - 1);
        check(std::string("each call in turn, ") + (timed ? "timed" : "untimed"), wrong == 0);
        check("... all of them", calls - 1 >= least && calls < 1000);
    }
    unsetenv("CUDA_ON_CPU_REFUSE");
}

/* How many products a process asks cuBLASLt for, where `refuse` is refused. */
static int asked(const char *refuse, int times)
{
    std::string calls = folder + "/calls";
    int status = 0, n = 0;
    fflush(nullptr);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("CUDA_ON_CPU_CALLS", calls.c_str(), 1);
        setenv("CUDA_ON_CPU_REFUSE", refuse, 1);
        setenv("TUNE_CUDA_GRAPHS", "0", 1);
        dev = tune_device_open("cuda", 1);
        work w(kinds[5]);
        bool good = true;
        for (int i = 0; i < times; i++)
            good = good && w.run() == 0 && w.c.now() == w.expected();
        fflush(nullptr);
        _exit(good ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    std::ifstream in(calls);
    for (std::string line; std::getline(in, line);)
        n += line.substr(line.find(' ')) == " cublasLtMatmul";
    return status == 0 ? n : -1;
}

static void remembered()
{
    set_timed(false);
    check("a refused algorithm is asked for once", asked("algorithm=0", 10) == 11);
    check("three of them", asked("uneven", 10) == 3 + 10);
    set_timed(true);
    check("while timing, each is refused once; the copies are timed",
          asked("uneven", 10) == 3 + 9 + 10);
    check("another process takes the choice of the copies", asked("uneven", 10) == 3 + 10);
}

static bool fails_clearly(const char *refuse)
{
    work w(kinds[1]), other(kinds[4]);
    setenv("CUDA_ON_CPU_REFUSE", refuse, 1);
    bool good = w.run() < 0;
    std::string said = tune_error_message();
    good = good && said.find("cuda, gemm: cuBLASLt refuses all of its algorithms for "
                             "[64,48] = [64,16] [16,48] in bfloat16: CUBLAS_STATUS_") == 0;
    good = good && said.find("refuses copies of the operands, too") != std::string::npos;
    if (!good)
        printf("# %s\n", said.c_str());
    good = good && w.c.now() == w.c.all && w.run() < 0;
    unsetenv("CUDA_ON_CPU_REFUSE");
    tune_error_clear();
    return good && other.run() == 0 && other.c.now() == other.expected();
}

/* Everything is refused: an error, and the result is as before. */
static void nothing_left()
{
    for (const char *refuse : {"all", "offer", "all,status=7"})
        for (bool timed : {false, true}) {
            set_timed(timed);
            dev = tune_device_open("cuda", 1);
            check(std::string(refuse) + (timed ? ", timed" : "") + ": an error that says which",
                  fails_clearly(refuse));
            close_device();
        }
}

/* No memory is no refusal: another algorithm has none, either. While timing, it ends the timing. */
static void no_memory()
{
    set_timed(false);
    dev = tune_device_open("cuda", 1);
    {
        work w(kinds[0]);
        setenv("CUDA_ON_CPU_REFUSE", "call=1,status=3", 1);
        check("no memory for a product is an error",
              w.run() < 0 && tune_error_kind() == TUNE_ERROR_CANNOT &&
                  strstr(tune_error_message(), "out of memory") && !*dev->met);
        tune_error_clear();
    }
    close_device();
    for (int call = 1; call <= 9; call++) {
        set_timed(true);
        setenv("CUDA_ON_CPU_REFUSE", ("status=3,call=" + std::to_string(call)).c_str(), 1);
        int wrong = wrong_kinds({kinds[0]});
        close_device();
        std::string find = "cat '" + folder + "'/kept/*.txt >'" + folder + "/text' 2>/dev/null";
        bool kept = system(find.c_str()) == 0;
        check("no memory at the " + std::to_string(call) + ". product that is timed: nothing is",
              wrong == 0 && !kept);
    }
    unsetenv("CUDA_ON_CPU_REFUSE");
}

int main()
{
    const char *parent = getenv("TMPDIR");
    folder = (parent ? std::string(parent) : "/tmp") + "/tune-refusals-XXXXXX";
    if (!mkdtemp(&folder[0]))
        return 1;
    remembered(); /* first: a process has one list of calls */
    modes();
    each_call();
    nothing_left();
    no_memory();
    std::string remove = "rm -rf '" + folder + "'";
    return system(remove.c_str()) == 0 ? done() : 1;
}
