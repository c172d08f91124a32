/* test_limits.c - what control groups and resource limits leave: made-up trees of both versions, and this machine's own. */
#include "test.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "machine/cgroup.h"
#include "machine/cpus.h"
#include "machine/memory.h"

#define MIB ((int64_t)1 << 20)

/* A file below root, with the folders on its way. */
static void put(const char *root, const char *path, const char *text)
{
    char full[TUNE_PATH_MAX];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = strchr(full + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(full, 0777);
        *slash = '/';
    }
    test_write(root, path, text, strlen(text));
}

static struct tune_cgroup read_tree(const char *root)
{
    struct tune_cgroup g;
    tune_cgroup_read(&g, root);
    return g;
}

/* Version 2, three groups deep, a space in a name: the tightest of each kind holds, wherever it stands. */
static void version_2(void **state)
{
    (void)state;
    const char *root = test_folder();
    put(root, "/proc/self/cgroup", "0::/user.slice/my job/step\n");
    put(root, "/proc/self/mountinfo", "20 1 8:1 / / rw - ext4 /dev/sda rw\n"
                                      "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
    put(root, "/sys/fs/cgroup/user.slice/my job/step/cpu.max", "max 100000\n");
    put(root, "/sys/fs/cgroup/user.slice/my job/cpu.max", "350000 100000\n");
    put(root, "/sys/fs/cgroup/user.slice/cpu.max", "800000 100000\n");
    struct tune_cgroup g = read_tree(root);
    assert_float_equal(g.cpus, 3.5, 1e-9);
    assert_int_equal(g.memory_limit, 0);
    put(root, "/sys/fs/cgroup/user.slice/my job/step/memory.max", "max\n");
    put(root, "/sys/fs/cgroup/user.slice/my job/memory.max", "1073741824\n");                /* 1024 MiB */
    put(root, "/sys/fs/cgroup/user.slice/my job/memory.current", "629145600\n");             /* 600 */
    put(root, "/sys/fs/cgroup/user.slice/my job/memory.stat", "anon 1\nfile 314572800\ninactive_file 104857600\n"
                                                              "active_file 52428800\nunevictable 4096\n"); /* 150 */
    put(root, "/sys/fs/cgroup/user.slice/memory.max", "2147483648\n");                       /* 2048 */
    put(root, "/sys/fs/cgroup/user.slice/memory.current", "1073741824\n");                   /* 1024 */
    g = read_tree(root);
    assert_int_equal(g.memory_limit, 1024 * MIB);
    assert_int_equal(g.memory_free, (1024 - 600 + 150) * MIB);
    assert_non_null(strstr(g.memory_group, "/user.slice/my job"));
    put(root, "/sys/fs/cgroup/user.slice/memory.current", "1992294400\n"); /* 1900: now the outer one leaves least */
    g = read_tree(root);
    assert_int_equal(g.memory_limit, 1024 * MIB);
    assert_int_equal(g.memory_free, 148 * MIB);
    put(root, "/sys/fs/cgroup/user.slice/memory.high", "4294967296\n"); /* above memory.max: no tighter */
    put(root, "/sys/fs/cgroup/user.slice/my job/memory.high", "536870912\n"); /* 512, below memory.max */
    g = read_tree(root);
    assert_int_equal(g.memory_limit, 512 * MIB);
    assert_int_equal(g.memory_free, (512 - 600 + 150) * MIB);
    put(root, "/sys/fs/cgroup/user.slice/my job/step/memory.high", "104857600\n");
    put(root, "/sys/fs/cgroup/user.slice/my job/step/memory.current", "209715200\n"); /* beyond it already */
    g = read_tree(root);
    assert_int_equal(g.memory_limit, 100 * MIB);
    assert_int_equal(g.memory_free, 0);
    assert_ok(tune_file_remove_folder(root));
}

/* Version 1 in a container: the mount shows the tree from the container's group on. */
static void version_1(void **state)
{
    (void)state;
    const char *root = test_folder();
    put(root, "/proc/self/cgroup", "9:name=systemd:/docker/abc\n5:cpu,cpuacct:/docker/abc/run\n4:memory:/docker/abc/run\n0::/\n");
    put(root, "/proc/self/mountinfo", "31 30 0:9 /docker/abc /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
                                      "32 30 0:8 /docker/abc /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                                      "33 30 0:7 /docker/abc /sys/fs/cgroup/a\\040b ro - cgroup cgroup rw,memory\n"
                                      "34 30 0:6 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    put(root, "/sys/fs/cgroup/cpu,cpuacct/run/cpu.cfs_quota_us", "-1\n");
    put(root, "/sys/fs/cgroup/cpu,cpuacct/run/cpu.cfs_period_us", "100000\n");
    put(root, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n");
    put(root, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    put(root, "/sys/fs/cgroup/a b/run/memory.limit_in_bytes", "9223372036854771712\n");
    put(root, "/sys/fs/cgroup/a b/memory.limit_in_bytes", "536870912\n");                                   /* 512 MiB */
    put(root, "/sys/fs/cgroup/a b/memory.usage_in_bytes", "209715200\n");                                   /* 200 */
    put(root, "/sys/fs/cgroup/a b/memory.stat",
        "inactive_file 1\ntotal_inactive_file 62914560\ntotal_active_file 41943040\n"); /* 100 */
    struct tune_cgroup g = read_tree(root);
    assert_float_equal(g.cpus, .5, 1e-9);
    assert_int_equal(g.memory_limit, 512 * MIB);
    assert_int_equal(g.memory_free, 412 * MIB);
    /* a path outside of what is mounted: the mount's own group is all there is to see */
    put(root, "/proc/self/cgroup", "4:memory:/../other\n5:cpu,cpuacct:/elsewhere\n");
    g = read_tree(root);
    assert_float_equal(g.cpus, .5, 1e-9);
    assert_int_equal(g.memory_limit, 512 * MIB);
    assert_ok(tune_file_remove_folder(root));
}

static void nothing_there(void **state)
{
    (void)state;
    const char *root = test_folder();
    struct tune_cgroup g = read_tree(root);
    assert_true(g.cpus == 0 && g.memory_limit == 0);
    put(root, "/proc/self/cgroup", "nonsense\n0::\n::::\n3:memory\n");
    put(root, "/proc/self/mountinfo", "a b c\n - cgroup2\n1 2 3 / /x rw - cgroup2 cgroup2 rw");
    put(root, "/x/memory.max", "\n");
    put(root, "/x/cpu.max", "0 0\n");
    g = read_tree(root);
    assert_true(g.cpus == 0 && g.memory_limit == 0);
    put(root, "/x/memory.max", "0\n");
    g = read_tree(root);
    assert_true(g.memory_limit == 1 && g.memory_free == 0); /* a limit of nothing is a limit */
    assert_ok(tune_file_remove_folder(root));
}

/* Of the process's own group, in either version, and of the machine. */
static void oom_kills(void **state)
{
    (void)state;
    const char *root = test_folder();
    assert_int_equal(tune_cgroup_oom_kills(root), 0);
    put(root, "/proc/vmstat", "nr_free_pages 77\noom_kill 3\nnuma_hit 9\n");
    assert_int_equal(tune_cgroup_oom_kills(root), 3);
    put(root, "/proc/self/cgroup", "0::/job/step\n");
    put(root, "/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    put(root, "/sys/fs/cgroup/job/memory.events", "low 0\noom 8\noom_kill 500\n"); /* of others in it as well */
    put(root, "/sys/fs/cgroup/job/step/memory.events", "low 0\nhigh 5\nmax 6\noom 7\noom_kill 20\noom_group_kill 1\n");
    assert_int_equal(tune_cgroup_oom_kills(root), 23);
    put(root, "/proc/self/cgroup", "5:cpu:/run\n4:memory:/run\n0::/\n");
    put(root, "/proc/self/mountinfo", "32 30 0:8 / /v1/cpu rw - cgroup cgroup rw,cpu\n"
                                      "33 30 0:7 / /v1/memory rw - cgroup cgroup rw,memory\n");
    put(root, "/v1/memory/run/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 40\n");
    assert_int_equal(tune_cgroup_oom_kills(root), 43);
    assert_ok(tune_file_remove_folder(root));
    assert_true(tune_cgroup_oom_kills("") >= 0);
}

static const struct tune_memory_limit *find(const struct tune_memory_limit *l, int count, const char *what)
{
    for (int i = 0; i < count; i++)
        if (strstr(l[i].what, what))
            return &l[i];
    return NULL;
}

/* 4 GiB are left, but for the stack, which statm counts as data, and what the process has grown by since. */
static bool left(const struct tune_memory_limit *l)
{
    return l && l->bytes < 4112 * MIB && l->bytes > 4080 * MIB;
}

/* In a child, for limits cannot be raised again: so much above what is used, by another file of /proc than the library reads. */
static bool with_limits(void)
{
    struct tune_memory_limit l[TUNE_MEMORY_LIMITS];
    long long pages[7] = {0};
    struct rlimit r = {.rlim_max = RLIM_INFINITY};
    FILE *f = fopen("/proc/self/statm", "r");
    for (int i = 0; f && i < 7; i++)
        if (fscanf(f, "%lld", &pages[i]) != 1)
            return false;
    r.rlim_cur = (rlim_t)(pages[0] * sysconf(_SC_PAGESIZE) + 4096 * MIB);
    setrlimit(RLIMIT_AS, &r);
    r.rlim_cur = (rlim_t)(pages[5] * sysconf(_SC_PAGESIZE) + 4096 * MIB);
    setrlimit(RLIMIT_DATA, &r);
    int n = tune_memory_limits(l);
    const struct tune_memory_limit *as = find(l, n, "ulimit -v"), *data = find(l, n, "ulimit -d");
    return left(as) && left(data) && as->counts == TUNE_MEMORY_ADDRESSES && data->counts == TUNE_MEMORY_WRITABLE;
}

static void this_machine(void **state)
{
    (void)state;
    struct tune_memory_limit l[TUNE_MEMORY_LIMITS];
    int n = tune_memory_limits(l);
    const struct tune_memory_limit *available = find(l, n, "MemAvailable");
    assert_non_null(available);
    assert_true(available->bytes > 0 && available->bytes < tune_memory_machine() * 1024);
    assert_in_range((int)tune_memory_used(), 0, 100);
    assert_in_range(tune_cpus_usable(), 1, 1 << 20);
    int64_t before = tune_memory_anonymous();
    char *block = mmap(NULL, (size_t)64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(block != MAP_FAILED);
    memset(block, 1, (size_t)64 * MIB);
    assert_in_range(tune_memory_anonymous() - before, 63 * MIB, 66 * MIB);
    assert_true(block[MIB] == 1);
    munmap(block, (size_t)64 * MIB);
    assert_true(tune_memory_peak() >= before + 64 * MIB);
}

static void limits_of_this_process(void **state)
{
    (void)state;
    int status = 0;
    if (emulated()) {
        print_message("# the emulator does not pass limits of memory on\n");
        skip();
    }
    pid_t child = fork();
    if (child == 0)
        _exit(with_limits() ? 0 : 1);
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
}

/* Eight processors as three machines have them: two threads a core, numbered next to each other or half a machine apart; two
 * sockets in turn; a kernel that says nothing. */
static void cores(void **state)
{
    static const struct { const char *list[8]; int socket[8]; int cpus[8], cores[8], count; } machines[] = {
        {{"0-1", "0-1", "2-3", "2-3", "4-5", "4-5", "6-7", "6-7"}, {0}, {0, 1, 2, 3, 4, 5, 6, 7}, {0, 0, 1, 1, 2, 2, 3, 3}, 4},
        {{"0,4", "1,5", "2,6", "3,7", "0,4", "1,5", "2,6", "3,7"}, {0}, {0, 4, 1, 5, 2, 6, 3, 7}, {0, 0, 1, 1, 2, 2, 3, 3}, 4},
        {{"0,4", "1,5", "2,6", "3,7", "0,4", "1,5", "2,6", "3,7"}, {0, 1, 0, 1, 0, 1, 0, 1}, {0, 4, 2, 6, 1, 5, 3, 7},
         {0, 0, 1, 1, 2, 2, 3, 3}, 4},
        {{NULL}, {0}, {0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}, 8},
    };
    int cpus[8], of[8];
    (void)state;
    for (size_t m = 0; m < sizeof machines / sizeof *machines; m++) {
        const char *root = test_folder();
        for (int i = 0; i < 8; i++) {
            char path[96], socket[16];
            cpus[i] = 7 - i;
            if (!machines[m].list[i])
                continue;
            snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", i, m == 1 ? "thread_siblings_list" : "core_cpus_list");
            put(root, path, machines[m].list[i]);
            snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", i);
            snprintf(socket, sizeof socket, "%d\n", machines[m].socket[i]);
            put(root, path, socket);
        }
        assert_int_equal(tune_cpus_group(root, cpus, 8, of), machines[m].count);
        assert_memory_equal(cpus, machines[m].cpus, sizeof cpus);
        assert_memory_equal(of, machines[m].cores, sizeof of);
        assert_ok(tune_file_remove_folder(root));
    }
    assert_int_equal(tune_cpus_group("", cpus, 0, of), 0);
}

/* Every processor that this process may use is a thread of one core; then each is a core of its own. */
static void threads_of_a_core(void **state)
{
    const char *root = test_folder();
    (void)state;
    for (int i = 0; i < CPU_SETSIZE; i++) {
        char path[96];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/core_cpus_list", i);
        put(root, path, "0-1023");
    }
    assert_int_equal(tune_cpus_cores(root), 1);
    assert_ok(tune_file_remove_folder(root));
    assert_int_equal(tune_cpus_cores(root), tune_cpus_usable()); /* nothing is known there */
    assert_in_range(tune_cpus_cores(""), 1, tune_cpus_usable());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_2),
        cmocka_unit_test(version_1),
        cmocka_unit_test(nothing_there),
        cmocka_unit_test(oom_kills),
        cmocka_unit_test(cores),
        cmocka_unit_test(threads_of_a_core),
        cmocka_unit_test(this_machine),
        cmocka_unit_test(limits_of_this_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
