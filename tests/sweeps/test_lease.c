/* test_lease.c - who does what: a lease is one process's, until that is gone; then it is exactly one other's. */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "test.h"

#include "sweeps/stores/lease.h"
#include "sweeps/stores/shared.h"
#include "sweeps/stores/store.h"

static char who[128];

static int take(struct tune_lease *lease, const char *name)
{
    who[0] = 0;
    return tune_lease_take(lease, "claims", name, NULL, who, sizeof who);
}

/* The lease's file with one text in it replaced. */
static void change(const char *path, const char *from, const char *to)
{
    char *text = NULL, changed[4096];
    size_t size;
    assert_ok(tune_file_read(path, 4096, &text, &size));
    const char *at = strstr(text, from);
    assert_non_null(at);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    free(text);
    assert_ok(tune_file_write(path, changed, strlen(changed)));
}

static void set_age(const char *path, int seconds)
{
    struct timespec times[2] = {{time(NULL) - seconds, 0}, {time(NULL) - seconds, 0}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void one_process(void **state)
{
    (void)state;
    struct tune_lease c, d;
    char mine[128];
    snprintf(mine, sizeof mine, "pid %ld on ", (long)getpid());
    assert_int_equal(take(&c, "a"), 1);
    assert_string_equal(c.path, "claims/a");
    assert_int_equal(take(&d, "a"), 0);
    assert_memory_equal(who, mine, strlen(mine));
    assert_int_equal(take(&d, "b"), 1);
    assert_ok(tune_lease_renew(&c));
    assert_ok(tune_lease_release(&c));
    assert_int_equal(take(&c, "a"), 1); /* given back: to be had again */
    assert_int_equal(take(&d, "a"), 0);
    assert_ok(tune_lease_done(&c));
    assert_int_equal(take(&d, "a"), 0); /* done: never again */
    assert_string_equal(who, "done");
    static const char *const bad[] = {"", "x/y", "x~2", "..", ".x"};
    for (int i = 0; i < 5; i++)
        assert_int_equal(take(&d, bad[i]), -1);
    test_write(".", "plain", "x", 1);
    assert_int_equal(tune_lease_take(&d, "plain", "a", NULL, who, sizeof who), -1);
    assert_error_has("plain");
}

/* Take it in a process that ends at once, or stays as a zombie until it is waited for. */
static pid_t die_with(const char *name)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct tune_lease c;
        _exit(take(&c, name) != 1);
    }
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(info.si_status, 0);
    return pid;
}

static void dead_owners(void **state)
{
    (void)state;
    struct tune_lease c, d;
    pid_t pid = die_with("zombie");
    assert_int_equal(take(&c, "zombie"), 1);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(waitpid(die_with("gone"), NULL, 0) > 0, 1);
    assert_int_equal(take(&c, "gone"), 1);
    assert_string_equal(c.path, "claims/gone~2");
    assert_int_equal(take(&c, "gone"), 0);

    assert_int_equal(take(&c, "pid"), 1); /* our number, but another process had it */
    change(c.path, "\"started\":", "\"started\":1");
    assert_int_equal(take(&c, "pid"), 1);
    assert_int_equal(take(&c, "boot"), 1); /* before the machine was started anew */
    change(c.path, "\"boot\":\"", "\"boot\":\"0");
    change(c.path, "\"machine\":\"", "\"machine\":\"0");
    assert_int_equal(take(&d, "boot"), 0); /* another machine of the same name may be alive */
    change(c.path, "\"machine\":\"0", "\"machine\":\"");
    if (access("/etc/machine-id", R_OK) < 0) /* then its age decides */
        set_age(c.path, TUNE_LEASE_S + TUNE_CLOCKS_S + 20);
    assert_int_equal(take(&d, "boot"), 1);
}

/* Processes that cannot be seen from here: another machine, another name space of pids, files that make no sense. */
static void out_of_sight(void **state)
{
    (void)state;
    struct tune_lease c, d;
    static const char *const kinds[] = {"machine", "space", "nonsense", "empty"};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(take(&c, kinds[i]), 1);
        if (i == 0) {
            change(c.path, "\"boot\":\"", "\"boot\":\"0");
            change(c.path, "\"host\":\"", "\"host\":\"other-");
        } else if (i == 1) {
            change(c.path, "\"pid_space\":\"", "\"pid_space\":\"0");
        } else {
            assert_ok(tune_file_write(c.path, "{\"pid\":", i == 2 ? 7 : 0));
        }
        assert_int_equal(take(&d, kinds[i]), 0);
        set_age(c.path, TUNE_LEASE_S - 20);
        assert_int_equal(take(&d, kinds[i]), 0);
        assert_true(i != 0 || strstr(who, " on other-"));
        set_age(c.path, TUNE_LEASE_S + TUNE_CLOCKS_S + 20);
        assert_ok(tune_lease_renew(&c)); /* it lives */
        assert_int_equal(take(&d, kinds[i]), 0);
        set_age(c.path, TUNE_LEASE_S + TUNE_CLOCKS_S + 20);
        assert_int_equal(take(&d, kinds[i]), 1);
        assert_int_equal(tune_lease_renew(&c), -1); /* and comes too late */
        assert_error_has("was taken over by another process");
        assert_int_equal(tune_lease_done(&c), -1);
        assert_ok(tune_lease_release(&c)); /* which changes nothing */
        assert_int_equal(take(&c, kinds[i]), 0);
        assert_ok(tune_lease_renew(&d));
        assert_ok(tune_lease_done(&d));
    }
}

/* Many processes, one way through the leases each: everything is somebody's, nothing two processes'. */
static void many_processes(void **state)
{
    (void)state;
    if (emulated()) { /* its /proc/self/stat has another start time than others see */
        print_message("# the emulator does not show when a process began\n");
        skip();
    }
    enum { PROCESSES = 8, LEASES = 60 };
    for (int stale = 0; stale < 2; stale++) {
        int ends[2];
        int owners[LEASES] = {0}, n;
        char name[32];
        assert_int_equal(pipe(ends), 0);
        pid_t pids[PROCESSES];
        for (int p = 0; p < PROCESSES; p++)
            if ((pids[p] = fork()) == 0) {
                struct tune_lease c;
                prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing is left where the test itself ends early */
                for (int i = 0; i < LEASES; i++) {
                    n = (i + p * 3) % LEASES;
                    snprintf(name, sizeof name, "many-%d", n);
                    int mine = take(&c, name);
                    if (mine < 0 || (mine && write(ends[1], &n, sizeof n) != sizeof n))
                        _exit(1);
                }
                close(ends[1]);
                pause(); /* alive, so that its leases are */
            }
        close(ends[1]);
        while (read(ends[0], &n, sizeof n) == sizeof n)
            owners[n]++;
        int killed = 0;
        for (int p = 0, status; p < PROCESSES; p++) {
            kill(pids[p], SIGKILL);
            killed += waitpid(pids[p], &status, 0) == pids[p] && WIFSIGNALED(status);
        }
        close(ends[0]);
        assert_int_equal(killed, PROCESSES);
        for (int i = 0; i < LEASES; i++)
            assert_int_equal(owners[i], 1); /* in the second round all of the first are stale */
    }
}

/* Points: of two holders of one store one has a point, and no other point is held with it. */
static void points(void **state)
{
    (void)state;
    int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(before);
    struct tune_store *a = tune_store_open("points", true), *b = tune_store_open("points", false);
    assert_true(a && b);
    assert_int_equal(tune_store_lock_point(a, 1 << 20), 1);
    assert_int_equal(tune_store_lock_point(a, 1 << 20), 1); /* ours already */
    assert_int_equal(tune_store_lock_point(b, 1 << 20), 0);
    assert_int_equal(tune_store_lock_point(b, 2 << 20), 1);
    assert_int_equal(tune_store_lock_point(a, UINT64_MAX), 1);
    assert_int_equal(tune_store_lock_point(b, UINT64_MAX), 0);
    tune_store_unlock_point(a, 1 << 20);
    assert_int_equal(tune_store_lock_point(b, 1 << 20), 1);
    assert_int_equal(tune_store_lock_point(a, 1 << 20), 0);
    tune_store_free(b); /* and with it what it held */
    assert_int_equal(tune_store_lock_point(a, 1 << 20), 1);
    assert_int_equal(tune_store_lock_point(a, 2 << 20), 1);
    tune_store_free(a);
    int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(after, before); /* no file is left open */
    close(after);
}

/* A process is at work while a lease whose name begins so is held. */
static void alive(void **state)
{
    (void)state;
    struct tune_lease c;
    assert_int_equal(tune_lease_alive("nowhere", "sweep-"), 0);
    assert_ok(tune_file_make_folder("work"));
    assert_int_equal(tune_lease_alive("work", "sweep-"), 0);
    assert_int_equal(tune_lease_take(&c, "work", "sweep-1", NULL, who, sizeof who), 1);
    assert_int_equal(tune_lease_alive("work", "sweep-"), 1);
    assert_int_equal(tune_lease_alive("work", "other-"), 0);
    assert_ok(tune_lease_release(&c));
    assert_int_equal(tune_lease_alive("work", "sweep-"), 0);
    assert_int_equal(tune_lease_take(&c, "work", "sweep-1", NULL, who, sizeof who), 1);
    assert_int_equal(tune_lease_alive("work", "sweep-"), 1);
    assert_ok(tune_lease_done(&c));
    assert_int_equal(tune_lease_alive("work", "sweep-"), 0);
    test_write(".", "file", "x", 1);
    assert_int_equal(tune_lease_alive("file", "sweep-"), -1);
    assert_error_has("cannot open folder file");
}

/* A job's lease outlives its process and any time. Who asked the scheduler gives it back, or the job's next start takes it. */
static void jobs(void **state)
{
    (void)state;
    struct tune_lease c, d;
    struct tune_lease_holder h;
    struct tune_lease_job one = {"12_3", 0, 4}, again = {"12_3", 1, 0}, other = {"12_4", 7, 0};
    assert_int_equal(tune_lease_look("jobs", "a", &h), 0);
    assert_int_equal(tune_lease_take(&c, "jobs", "a", &one, who, sizeof who), 1);
    change(c.path, "\"pid\":", "\"pid\":9"); /* of no process */
    set_age(c.path, 10 * TUNE_LEASE_S);
    assert_int_equal(tune_lease_take(&d, "jobs", "a", NULL, who, sizeof who), 0);
    assert_non_null(strstr(who, "job 12_3 on "));
    assert_int_equal(tune_lease_take(&d, "jobs", "a", &other, who, sizeof who), 0);
    assert_int_equal(tune_lease_take(&d, "jobs", "a", &one, who, sizeof who), 0);
    assert_int_equal(tune_lease_look("jobs", "a", &h), 1);
    assert_string_equal(h.job.id, "12_3");
    assert_int_equal(h.job.restarts, 0);
    assert_int_equal(h.job.turn, 4);
    assert_int_equal(h.takes, 1);
    assert_int_equal(tune_lease_take(&d, "jobs", "a", &again, who, sizeof who), 1);
    assert_int_equal(tune_lease_renew(&c), -1);
    assert_error_has("taken over");
    assert_int_equal(tune_lease_look("jobs", "a", &h), 1);
    assert_int_equal(h.job.restarts, 1);
    assert_int_equal(h.takes, 2);
    assert_ok(tune_lease_revoke(&h));
    assert_int_equal(tune_lease_look("jobs", "a", &h), 0);
    assert_int_equal(h.takes, 2);
    assert_int_equal(tune_lease_take(&d, "jobs", "a", NULL, who, sizeof who), 1);
    assert_int_equal(tune_lease_look("jobs", "a", &h), 1);
    assert_string_equal(h.job.id, ""); /* no job's */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_process), cmocka_unit_test(dead_owners), cmocka_unit_test(out_of_sight),
                                       cmocka_unit_test(many_processes), cmocka_unit_test(points), cmocka_unit_test(alive),
                                       cmocka_unit_test(jobs)};
    return cmocka_run_group_tests(tests, test_home_begin, test_home_end);
}
