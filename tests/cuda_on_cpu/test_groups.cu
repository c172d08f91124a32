/* test_groups.cu - groups of operations on the CUDA device: results, and which become graphs. */
#include "prove.h"

#include <cmath>
#include <cstring>

#include "core/error.h"
#include "devices/ops.h"

static struct tune_device *dev;
static tune_tensor a, b, c, x;

enum { N = 48 };

static tune_tensor matrix()
{
    return tune_tensor_2d(tune_device_alloc(dev, N * N * 4, "a test"), TUNE_F32, N, N);
}

static void give_back(tune_tensor *t) { tune_device_free(dev, t->data, N * N * 4); }

static std::vector<float> read(const tune_tensor &t)
{
    std::vector<float> v(N * N);
    if (tune_to_host(dev, &t, v.data()) < 0)
        printf("# %s\n", tune_error_message());
    return v;
}

static void fill(const tune_tensor &t, float seed)
{
    std::vector<float> v(N * N);
    for (size_t i = 0; i < v.size(); i++)
        v[i] = std::sin(seed + (float)i);
    tune_device_upload(dev, t.data, v.data(), N * N * 4);
}

/* Five operations, all of the same list for the same factor. */
static int five(float factor)
{
    tune_tensor flat = tune_tensor_1d(x.data, TUNE_F32, N * N),
                row = tune_tensor_1d(b.data, TUNE_F32, N);
    tune_tensor right = tune_tensor_columns(&c, N / 2, N / 2),
                up = tune_tensor_columns(&b, 0, N / 2);
    return tune_gemm(dev, &c, &a, false, &b, true, factor, 0, TUNE_F32) < 0 ||
                   tune_gemm(dev, &right, &a, false, &up, false, 1, 1, TUNE_F32) < 0 ||
                   tune_rmsnorm_forward(dev, &x, NULL, &c, &row, 1e-5f, 0) < 0 ||
                   tune_axpby(dev, &x, &c, factor, 0.5f) < 0 || tune_unit(dev, &flat, 1e-7) < 0
               ? -1
               : 0;
}

static int group(float factor)
{
    if (tune_device_group_begin(dev) < 0)
        return -1;
    int status = five(factor), ended = tune_device_group_end(dev);
    return status < 0 ? status : ended;
}

/* What five() computes when it is queued call by call. */
static std::vector<float> plainly(float factor)
{
    check("five operations", five(factor) == 0);
    return read(x);
}

/* How many things group() queues. */
static uint64_t queued(float factor)
{
    uint64_t before = emu::queued();
    if (group(factor) < 0)
        printf("# %s\n", tune_error_message());
    return emu::queued() - before;
}

static void graphs()
{
    std::vector<float> want = plainly(2), other = plainly(3);
    uint64_t first = queued(2), second = queued(2);
    check("a group that is new is queued call by call", first >= 5);
    check("... the second time as one graph", second == 1);
    fill(x, 1);
    check("... and from then on", queued(2) == 1 && read(x) == want);
    check("another argument is another list", queued(3) == first && read(x) == other);
    check("both are kept", queued(2) == 1 && read(x) == want && queued(3) == 1 && read(x) == other);
    fill(a, 5);
    std::vector<float> now = plainly(2);
    check("a graph reads what is there now", queued(2) == 1 && read(x) == now && now != want);
}

static void transfers()
{
    std::vector<float> seen(N * N, -1), sent(N * N, 0.25f);
    for (int time = 1; time <= 3; time++) {
        fill(x, 1);
        tune_device_group_begin(dev);
        tune_axpby(dev, &x, &a, 1, 0); /* x = a */
        tune_device_download(dev, seen.data(), x.data, N * N * 4);
        tune_device_upload(dev, x.data, sent.data(), N * N * 4);
        tune_axpby(dev, &x, &a, 2, 1); /* x = 0.25 + 2 a */
        check("a group with transfers, time " + std::to_string(time),
              tune_device_group_end(dev) == 0);
        std::vector<float> from = read(a), to = read(x);
        bool good = seen == from;
        for (size_t i = 0; i < to.size(); i++)
            good = good && std::fabs(to[i] - (0.25f + 2 * from[i])) < 1e-6f;
        check("... keeps the order of the calls", good);
    }
}

static void errors()
{
    tune_tensor narrow = tune_tensor_2d(a.data, TUNE_F32, N, N / 2);
    check("a group begins", tune_device_group_begin(dev) == 0);
    check("groups do not nest", tune_device_group_begin(dev) < 0 &&
                                    strstr(tune_error_message(), "do not nest") != nullptr);
    check("shapes are checked at the call",
          tune_gemm(dev, &c, &narrow, false, &b, true, 1, 0, TUNE_F32) < 0);
    check("the group ends", tune_device_group_end(dev) == 0);
    std::vector<float> want = plainly(2);
    check("the next group is as usual", queued(2) == 1 && read(x) == want);
    check("an empty group", tune_device_group_begin(dev) == 0 && tune_device_group_end(dev) == 0);
}

static void memory()
{
    std::vector<float> want = plainly(2);
    uint64_t calls = queued(7);
    check("a graph", queued(7) == 1 && queued(2) == 1);
    tune_tensor t = matrix();
    check("memory that is taken leaves graphs alone", queued(2) == 1);
    give_back(&t);
    check("memory that is freed ends them", queued(2) == calls && read(x) == want);
    queued(2);
    /* a product with operands that are rounded first, larger than any before: scratch grows */
    enum { M = 700 };
    tune_address wide = tune_device_alloc(dev, 3 * M * M * 4, "a test");
    tune_tensor p = tune_tensor_2d(wide, TUNE_F32, M, M);
    tune_tensor q = tune_tensor_2d(tune_address_plus(wide, M * M * 4), TUNE_F32, M, M);
    tune_tensor r = tune_tensor_2d(tune_address_plus(wide, 2 * M * M * 4), TUNE_F32, M, M);
    check("scratch that grows ends them, too",
          tune_gemm(dev, &r, &p, false, &q, true, 1, 0, TUNE_BF16) == 0 && queued(2) == calls &&
              read(x) == want);
    tune_device_free(dev, wide, 3 * M * M * 4);
}

/* More lists than are kept. */
static void many()
{
    bool good = true;
    for (int i = 0; i < 4200; i++) {
        tune_device_group_begin(dev);
        tune_axpby(dev, &x, &a, (float)i, 0);
        good = good && tune_device_group_end(dev) == 0;
    }
    std::vector<float> from = read(a), to = read(x);
    for (size_t i = 0; i < to.size(); i++)
        good = good && to[i] == 4199 * from[i];
    check("4,200 lists", good);
    uint64_t before = emu::queued();
    for (int i : {4199, 0}) {
        tune_device_group_begin(dev);
        tune_zero(dev, &x);
        tune_axpby(dev, &x, &a, (float)i, 1);
        good = good && tune_device_group_end(dev) == 0;
    }
    check("... and the next ones", good && emu::queued() - before == 4);
}

/* Two operations, of a list for each i: how many things they queued. */
static uint64_t two(int i)
{
    uint64_t begun = emu::queued();
    tune_device_group_begin(dev);
    tune_zero(dev, &x);
    tune_axpby(dev, &x, &a, (float)i, 1);
    return tune_device_group_end(dev) == 0 ? emu::queued() - begun : 0;
}

/* At the limit, as memory_is_full() left it: 1000 to 1003 are graphs. */
static void limit()
{
    struct tune_device_memory before, after;
    int graphs = 0;
    uint64_t first = two(1000), second = two(1003);
    tune_device_memory(dev, &before);
    for (int round = 0; round < 20; round++)
        for (int i = 1000; i < 1010; i++)
            graphs += two(i) == 1;
    check("lists that are used alike do not take turns", first == 1 && second == 1 && graphs == 80);
    int until = 0;
    for (int i = 0; i < 3; i++)
        two(1000), two(1001), two(1003);
    while (two(1007) == 2 && until < 100)
        until++;
    check("one that is used far more becomes a graph", until > 10 && until < 100);
    graphs = 0;
    bool good = true;
    for (int i = 1000; i < 1010; i++) {
        graphs += two(i) == 1;
        std::vector<float> from = read(a), to = read(x);
        for (size_t k = 0; k < to.size(); k++)
            good = good && to[k] == (float)i * from[k];
    }
    check("... in the place of the least used one", graphs == 4 && two(1002) == 2);
    check("... all compute what they did", good);
    tune_device_memory(dev, &after);
    check("... and the memory is the same", after.free == before.free);
    /* what was used long ago is forgotten */
    for (int i = 0; i < 32000; i++)
        two(1007);
    until = 0;
    while (two(1008) == 2 && until < 100)
        until++;
    check("what nobody uses any more makes room soon", until < 12);
}

/* The driver takes 40 MiB for each graph here, and 128 MiB is room for three and a bit. */
static void memory_is_full()
{
    int made = 0;
    struct tune_device_memory before, full, after;
    setenv("CUDA_ON_CPU_GRAPH_NODE", std::to_string(20 << 20).c_str(), 1);
    tune_tensor t = matrix();
    give_back(&t); /* ends all graphs */
    tune_device_memory(dev, &before);
    for (int i = 1000; i < 1010; i++)
        made += two(i) == 2 && two(i) == 1;
    std::vector<float> from = read(a), to = read(x);
    check("graphs are made until their room is full", made == 4);
    check("... and go on", two(1003) == 1 && two(1004) == 2);
    bool good = true;
    for (size_t i = 0; i < to.size(); i++)
        good = good && to[i] == 1009 * from[i];
    check("... the others are queued call by call", good);
    tune_device_memory(dev, &full);
    check("what was left free for them is what they take",
          before.free - full.free == (4 * 40 - 128) << 20);
    limit();
    t = matrix();
    give_back(&t);
    tune_device_memory(dev, &after);
    check("their memory comes back", after.free == before.free && two(1009) == 2 && two(1009) == 1);
    unsetenv("CUDA_ON_CPU_GRAPH_NODE");
}

static void switched_off()
{
    setenv("TUNE_CUDA_GRAPHS", "0", 1);
    tune_device *other = tune_device_open("cuda", 1);
    tune_device *usual = dev;
    dev = other;
    a = matrix(), b = matrix(), c = matrix(), x = matrix();
    fill(a, 1);
    fill(b, 2);
    std::vector<float> want = plainly(2);
    uint64_t first = queued(2), second = queued(2);
    check("TUNE_CUDA_GRAPHS=0: no graphs", first == second && first >= 5 && read(x) == want);
    for (tune_tensor *t : {&a, &b, &c, &x})
        give_back(t);
    tune_device_close(other);
    dev = usual;
}

int main()
{
    dev = tune_device_open("cuda", 1);
    if (!check("the device opens", dev != nullptr))
        return 1;
    a = matrix(), b = matrix(), c = matrix(), x = matrix();
    fill(a, 1);
    fill(b, 2);
    graphs();
    transfers();
    errors();
    memory();
    many();
    memory_is_full();
    for (tune_tensor *t : {&a, &b, &c, &x})
        give_back(t);
    switched_off();
    tune_device_close(dev);
    return done();
}
