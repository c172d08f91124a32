/* test_algorithms.cu - the choice of cuBLASLt's algorithms: the fastest one, timed once and kept in
 * a file; files that are damaged, foreign or cannot be written; captured streams. The stand-in's
 * algorithms differ in bits, so the result tells which one ran. */
#include "prove.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>

#include "core/error.h"
#include "core/random.h"
#include "devices/cuda/cuda.h"
#include "devices/ops.h"

static std::string folder; /* of this test */

/* A process of its own sees the folder. It returns what `run` returns, and what it printed. */
static int child(const std::function<int()> &run)
{
    int status = 0;
    fflush(nullptr);
    pid_t pid = fork();
    if (pid == 0)
        _exit(run());
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

enum { M = 64, N = 7, K = 100 };

static std::vector<float> matrix(int64_t n, uint64_t seed)
{
    std::vector<float> v((size_t)n);
    for (int64_t i = 0; i < n; i++)
        v[(size_t)i] = (float)tune_random_normal(seed, 1, (uint64_t)i);
    return v;
}

/* The device that a program has, and a product on it: c = a b + beta c. */
struct work {
    struct tune_device *dev;
    tune_address a, b, c;
    std::vector<float> x = matrix(M * K, 1), y = matrix(K * N, 2), z = matrix(M * N, 3);

    work()
    {
        dev = tune_device_open("cuda", 1);
        if (!dev) {
            printf("# %s\n", tune_error_message());
            _exit(99);
        }
        a = tune_device_alloc(dev, M * K * 4, "a");
        b = tune_device_alloc(dev, K * N * 4, "b");
        c = tune_device_alloc(dev, M * N * 4, "c");
        tune_device_upload(dev, a, x.data(), M * K * 4);
        tune_device_upload(dev, b, y.data(), K * N * 4);
        tune_device_upload(dev, c, z.data(), M * N * 4);
    }
    int multiply(float beta)
    {
        tune_tensor ta = tune_tensor_2d(a, TUNE_F32, M, K), tb = tune_tensor_2d(b, TUNE_F32, K, N);
        tune_tensor tc = tune_tensor_2d(c, TUNE_F32, M, N);
        return tune_gemm(dev, &tc, &ta, false, &tb, false, 1, beta, TUNE_F32);
    }
    std::vector<float> result()
    {
        std::vector<float> to(M * N);
        if (tune_device_download(dev, to.data(), c, M * N * 4) < 0 || tune_device_sync(dev) < 0)
            printf("# %s\n", tune_error_message());
        return to;
    }
    /* What an algorithm of cublasLt.h makes of it. */
    std::vector<float> expected(int algorithm, float beta)
    {
        std::vector<float> to(M * N);
        for (int m = 0; m < M; m++)
            for (int n = 0; n < N; n++) {
                float part[2] = {0, 0};
                for (int i = 0; i < K; i++) {
                    int k = algorithm == 1 ? K - 1 - i : i;
                    part[algorithm == 2 && i >= K / 2] +=
                        x[(size_t)(m * K + k)] * y[(size_t)(k * N + n)];
                }
                float *t = &to[(size_t)(m * N + n)];
                *t = part[0] + part[1] + (beta == 0 ? 0 : beta * z[(size_t)(m * N + n)]);
            }
        return to;
    }
    /* Which algorithm computed it; 9: none. */
    int ran(float beta)
    {
        std::vector<float> is = result();
        for (int i = 0; i < 3; i++)
            if (is == expected(i, beta))
                return i;
        return 9;
    }
};

/* The algorithm of one product in a new process. times: what the algorithms take. Products that
 * were timed leave lines in `calls`. */
static int runs(const char *times, float beta = 0)
{
    std::string calls = folder + "/calls";
    setenv("CUDA_ON_CPU_PRODUCT_MS", times, 1);
    setenv("CUDA_ON_CPU_CALLS", calls.c_str(), 1);
    return child([&] {
        work w;
        int status = w.multiply(beta) == 0 ? w.ran(beta) : 98;
        fflush(nullptr);
        return status;
    });
}

static std::string read_file(const std::string &path)
{
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

static int products_queued()
{
    std::string text = read_file(folder + "/calls");
    int n = 0;
    for (size_t at = 0; (at = text.find(" cublasLtMatmul\n", at)) != std::string::npos; at++)
        n++;
    return n;
}

static void write_file(const std::string &path, const std::string &text)
{
    std::ofstream(path, std::ios::trunc) << text;
}

/* The file of choices, its name found in the folder. */
static std::string kept_path()
{
    std::string found;
    DIR *d = opendir((folder + "/kept").c_str());
    for (struct dirent *e; d && (e = readdir(d));)
        if (strstr(e->d_name, ".txt") && !strstr(e->d_name, ".lock"))
            found = folder + "/kept/" + e->d_name;
    if (d)
        closedir(d);
    return found;
}

/* The last line of the file, as its numbers; the time, which differs, is 100 ms. */
static std::vector<long long> last_line(const std::string &text)
{
    size_t end = text.size() > 1 ? text.rfind('\n', text.size() - 2) : std::string::npos;
    std::istringstream in(end == std::string::npos ? text : text.substr(end + 1));
    std::vector<long long> numbers;
    for (long long x; in >> x;)
        numbers.push_back(x);
    if (numbers.size() == 24 && numbers[23] >= 100000 && numbers[23] < 200000)
        numbers[23] = 100000;
    return numbers;
}

static std::string line_of(const std::vector<long long> &numbers)
{
    std::string line;
    for (size_t i = 0; i < numbers.size(); i++)
        line += (i ? " " : "") + std::to_string(numbers[i]);
    return line + "\n";
}

static void chosen()
{
    check("the fastest is taken", runs("400,200,100,50") == 2);
    check("... after each of three ran three times", products_queued() == 3 * 3 + 1);
    std::string path = kept_path(), text = read_file(path);
    check("it is kept, in a file named by GPU, driver and cuBLASLt",
          path.find("CUDA-on-the-CPU--as-sm-90-driver-13000-cublaslt-130000.txt") !=
                  std::string::npos &&
              last_line(text).size() == 24 && last_line(text)[14] == 2 &&
              last_line(text)[23] == 100000);
    check("a second process takes it, whatever is faster now", runs("10,200,300,50") == 2);
    check("... and times nothing", products_queued() == 1);
    setenv("CUDA_ON_CPU_DRIVER", "13010", 1);
    check("another driver: another choice", runs("10,200,300,50") == 0 && products_queued() == 10);
    unsetenv("CUDA_ON_CPU_DRIVER");
    check("the first one's is still there", runs("10,200,300,50") == 2);
    unlink(path.c_str());
    check("a product that adds to c keeps c while it is timed",
          runs("400,100,200,50", 1) == 1 && products_queued() == 10);
    unlink(path.c_str());
}

/* Files that do not count: each is ignored, and mended. */
static void damaged()
{
    runs("400,200,100,50");
    std::string path = kept_path(), good = read_file(path);
    std::vector<long long> line = last_line(good);
    std::string other =
        line_of({9, 9, 9, 9, 9, 9, 0, 0, 0, 0, 256, 256, 256, 256, 1, 0, 1, 0, 0, 0, 0, 0, 0, 5});
    auto with = [&](size_t at, long long value) {
        std::vector<long long> l = line;
        l[at] = value;
        return line_of(l);
    };
    std::string whole = line_of(line), zeros(300, '\0');
    const struct {
        const char *what;
        std::string text;
    } files[] = {
        {"empty", ""},
        {"zeros", zeros},
        {"another program's", "{\"a\": 1}\n"},
        {"cut in its last line", good.substr(0, good.size() - 9)},
        {"without its last line's end", good.substr(0, good.size() - 1)},
        {"a line with a number more", whole.substr(0, whole.size() - 1) + " 7\n"},
        {"a letter in a number", "1x" + whole},
        {"a number that does not fit", "99999999999999999999" + whole},
        {"of another product", with(0, M + 1)},
        {"an algorithm that there is not", with(14, 77)},
        {"an algorithm in no fixed order", with(14, 3)},
        {"another split of the same algorithm", with(16, 5)},
    };
    for (auto &f : files) {
        write_file(path, other + f.text);
        bool again = runs("400,200,100,50") == 2 && products_queued() == 10;
        std::string now = read_file(path);
        check(std::string("a file that is ") + f.what + ": timed again, and mended",
              again && last_line(now) == line && runs("10,200,300,50") == 2);
        check("... other lines stay", now.find(other) != std::string::npos);
    }
    write_file(path, good + good);
    check("a line twice counts once", runs("10,200,300,50") == 2);
    unlink(path.c_str());
}

/* Places where nothing can be kept: cuBLASLt's first guess, untimed, and a warning. */
static void unwritable()
{
    setenv("TUNE_CUDA_ALGORITHMS", "off", 1);
    check("off: cuBLASLt's first, untimed", runs("400,200,100,50") == 0 && products_queued() == 1);
    write_file(folder + "/file", "");
    setenv("TUNE_CUDA_ALGORITHMS", (folder + "/file/below").c_str(), 1);
    check("no folder: cuBLASLt's first, untimed",
          runs("400,200,100,50") == 0 && products_queued() == 1);
    check("... and a warning that says so", child([] {
                                                work w;
                                                return !strstr(w.dev->warning, "/file") ||
                                                       !strstr(w.dev->warning, "first guess");
                                            }) == 0);
    std::string full = folder + "/full";
    setenv("TUNE_CUDA_ALGORITHMS", full.c_str(), 1);
    check("a file that cannot be written: cuBLASLt's first",
          child([&] {
              work w;
              struct rlimit none = {0, 0};
              signal(SIGXFSZ, SIG_IGN);
              setrlimit(RLIMIT_FSIZE, &none);
              setenv("CUDA_ON_CPU_PRODUCT_MS", "400,200,100,50", 1);
              bool good = w.multiply(0) == 0 && w.ran(0) == 0;
              return good && !*tune_error_message() ? 0 : 1;
          }) == 0);
    unsetenv("TUNE_CUDA_ALGORITHMS");
    setenv("XDG_CACHE_HOME", (folder + "/cache").c_str(), 1);
    struct stat st;
    check("$XDG_CACHE_HOME/tune.c is the folder otherwise",
          runs("400,200,100,50") == 2 && stat((folder + "/cache/tune.c").c_str(), &st) == 0);
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", (folder + "/home").c_str(), 1);
    check("... else ~/.cache/tune.c",
          runs("400,200,100,50") == 2 && stat((folder + "/home/.cache/tune.c").c_str(), &st) == 0);
    setenv("TUNE_CUDA_ALGORITHMS", (folder + "/kept").c_str(), 1);
}

/* Products whose number of tokens is no multiple of 64 come once. They are not timed. */
static void various()
{
    auto run = [](int64_t rows, int64_t depth, bool at) {
        setenv("CUDA_ON_CPU_CALLS", (folder + "/calls").c_str(), 1);
        return child([&] {
            work w;
            int64_t r = at ? depth : rows, c = at ? rows : depth;
            tune_tensor ta = tune_tensor_2d(w.a, TUNE_F32, r, c);
            tune_tensor tb = tune_tensor_2d(w.b, TUNE_F32, depth, 2);
            tune_tensor tc = tune_tensor_2d(w.c, TUNE_F32, rows, 2);
            int status = tune_gemm(w.dev, &tc, &ta, at, &tb, false, 1, 0, TUNE_F32);
            fflush(nullptr);
            return status < 0;
        });
    };
    check("15 rows: not timed", run(15, 64, false) == 0 && products_queued() == 1);
    check("a gradient of 15 tokens: not timed", run(64, 15, true) == 0 && products_queued() == 1);
    check("a gradient of 64 tokens: timed", run(15, 64, true) == 0 && products_queued() == 10);
}

/* Take all memory that is left. */
static void fill_up(struct tune_device *dev)
{
    size_t free, total;
    tune_address rest = {0};
    must(cudaMemGetInfo(&free, &total));
    for (int64_t n = (int64_t)free; n > 0 && !rest.at; n -= 65536)
        rest = tune_device_alloc(dev, n, "the rest");
}

/* Without memory for a second c, a product that adds to it is not timed. A sum with another matrix
 * needs none. */
static void no_memory()
{
    check("no memory for timing: cuBLASLt's first",
          child([] {
              work w;
              w.multiply(0);
              fill_up(w.dev);
              tune_tensor ta = tune_tensor_2d(w.a, TUNE_F32, M, K);
              tune_tensor tb = tune_tensor_2d(w.b, TUNE_F32, K, N - 1);
              tune_tensor tc = tune_tensor_2d(w.c, TUNE_F32, M, N - 1);
              int status = tune_gemm(w.dev, &tc, &ta, false, &tb, false, 1, 1, TUNE_F32);
              return status == 0 && tune_device_sync(w.dev) == 0 ? 0 : 1;
          }) == 0);
    check("... and is not kept", last_line(read_file(kept_path()))[1] == N);
    check("... a residual sum is timed",
          child([] {
              work w;
              tune_address y = tune_device_alloc(w.dev, M * N * 4, "y");
              tune_tensor tx = tune_tensor_2d(w.a, TUNE_F32, M, K);
              tune_tensor tw = tune_tensor_2d(w.b, TUNE_F32, N, K);
              tune_tensor ty = tune_tensor_2d(y, TUNE_F32, M, N), tr = ty;
              tr.data = w.c;
              w.multiply(0);
              std::vector<float> before = w.result();
              fill_up(w.dev);
              int status = tune_gemm_add(w.dev, &ty, &tr, &tx, &tw, 1, TUNE_F32);
              return status == 0 && w.result() == before ? 0 : 1;
          }) == 0 &&
              last_line(read_file(kept_path()))[9] == 1);
}

/* cuBLASLt itself has no memory for a product that is timed. */
static void no_memory_of_cublaslt()
{
    unlink(kept_path().c_str());
    for (int call = 1; call <= 9; call++) {
        setenv("CUDA_ON_CPU_REFUSE", ("status=3,call=" + std::to_string(call)).c_str(), 1);
        check("cuBLASLt has no memory at the " + std::to_string(call) +
                  ". product that is timed: its first guess",
              runs("400,200,100,50") == 0 && products_queued() == call + 1);
    }
    unsetenv("CUDA_ON_CPU_REFUSE");
    check("... and with memory, another process chooses", runs("400,200,100,50") == 2);
}

/* The choice of the file is refused: the file names the one that computes instead. */
static void refused()
{
    unlink(kept_path().c_str());
    runs("400,200,100,50");
    setenv("CUDA_ON_CPU_REFUSE", "algorithm=2", 1);
    check("a kept choice that is refused: the next one computes",
          runs("400,200,100,50") == 0 && products_queued() == 2);
    check("... a later process does not ask for the refused one",
          runs("400,200,100,50") == 0 && products_queued() == 1);
    unsetenv("CUDA_ON_CPU_REFUSE");
    check("... nor when it would not be refused any more",
          runs("400,200,100,50") == 0 && products_queued() == 1);
    unlink(kept_path().c_str());
    runs("400,200,100,50");
    setenv("CUDA_ON_CPU_REFUSE", "algorithm=2,algorithm=0", 1);
    check("two of three are refused", runs("1,1,1,1") == 1 && products_queued() == 3);
    check("... the file names the third", runs("1,1,1,1") == 1 && products_queued() == 1);
    unsetenv("CUDA_ON_CPU_REFUSE");
}

/* While a stream is captured, nothing is timed. A choice that is kept counts there too. */
static void captured()
{
    auto run = [] {
        work w;
        cudaStream_t stream = tune_cuda_of(w.dev)->stream;
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        tune_tensor tb = tune_tensor_2d(w.b, TUNE_F32, 3, 3);
        tune_tensor tc = tune_tensor_2d(w.c, TUNE_F32, 3, 3);
        tune_gemm(w.dev, &tc, &tb, false, &tb, false, 1, 0, TUNE_F32); /* cuBLASLt starts */
        must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        if (w.multiply(0) < 0)
            return 97;
        must(cudaStreamEndCapture(stream, &graph));
        must(cudaGraphInstantiate(&exec, graph));
        must(cudaGraphLaunch(exec, stream));
        return w.ran(0);
    };
    unlink(kept_path().c_str());
    check("a captured product is not timed: cuBLASLt's first", child(run) == 0);
    check("... and is not kept", runs("400,100,200,50") == 1);
    check("a choice that is kept counts in a capture", child(run) == 1);
}

/* Processes at once: all of them go by one file. */
static void at_once()
{
    enum { PROCESSES = 6 };
    pid_t pids[PROCESSES];
    int first = -1;
    bool same = true;
    unlink(kept_path().c_str());
    fflush(nullptr);
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            unsetenv("CUDA_ON_CPU_CALLS");
            setenv("CUDA_ON_CPU_PRODUCT_MS", i % 2 ? "400,200,100,50" : "400,100,200,50", 1);
            work w;
            _exit(w.multiply(0) == 0 ? w.ran(0) : 98);
        }
    }
    for (pid_t pid : pids) {
        int status = 0;
        waitpid(pid, &status, 0);
        int ran = WIFEXITED(status) ? WEXITSTATUS(status) : 97;
        same = same && (first < 0 || ran == first) && ran < 3;
        first = ran;
    }
    check("six processes at once: one choice", same);
    check("... and it is the file's", runs("1,500,500,500") == first);
}

int main()
{
    char name[] = "/tmp/tune-algorithms-XXXXXX";
    const char *parent = getenv("TMPDIR");
    folder = parent ? std::string(parent) + "/tune-algorithms-XXXXXX" : name;
    if (!mkdtemp(&folder[0]))
        return 1;
    setenv("TUNE_CUDA_ALGORITHMS", (folder + "/kept").c_str(), 1);
    chosen();
    damaged();
    unwritable();
    various();
    no_memory();
    no_memory_of_cublaslt();
    refused();
    captured();
    at_once();
    std::string remove = "rm -rf '" + folder + "'";
    return system(remove.c_str()) == 0 ? done() : 1;
}
