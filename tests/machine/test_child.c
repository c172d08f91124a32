/* test_child.c - programs under guard: how they end, what they are given, what is left of them. This program is their parent,
 * their guard and, started as "test_child play NAME", the programs too; "test_child drive" is for test_child.sh. */
#include "test.h"
#include "child_programs.h"

#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "machine/capped_log.h"
#include "machine/child.h"
#include "machine/guard.h"
#include "core/clock.h"
#include "core/random.h"

static char self[TUNE_PATH_MAX]; /* this program */

enum { POLLS = 300000 }; /* of a millisecond each: what comes on an idle machine at once comes on a busy one, too */

/* ---- starting them ---- */

static const char *const no_environment[] = {NULL};

static struct tune_child_options options(const char *const *argv)
{
    return (struct tune_child_options){.argv = argv, .environment = no_environment, .log = "log", .log_limit = 1 << 20,
                                       .grace_s = 300};
}

#define PLAY(...) ((const char *const[]){self, "play", __VA_ARGS__, NULL})

static struct tune_child_end end_of(struct tune_child *c)
{
    struct tune_child_end end;
    if (!c)
        fail_msg("not started: %s", tune_error_message());
    assert_ok(tune_child_end(c, &end));
    return end;
}

static struct tune_child_end run(const struct tune_child_options *o)
{
    return end_of(tune_child_start(o));
}

static struct tune_child_end run_argv(const char *const *argv)
{
    struct tune_child_options o = options(argv);
    return run(&o);
}

static void ends(const struct tune_child_end *end, enum tune_child_how how, int code)
{
    if (end->how != how || end->code != code)
        fail_msg("how %d, code %d, expected %d, %d; \"%s\"", (int)end->how, end->code, (int)how, code, end->reason);
}

/* What the log holds; the caller frees it. Not inlined: gcc 12 takes its result for a pointer to what is gone. */
__attribute__((noinline)) static char *log_text(void)
{
    char *text = NULL;
    size_t size;
    assert_ok(tune_file_read("log", 1 << 30, &text, &size));
    return text;
}

static void log_is(const char *expected)
{
    char *text = log_text();
    assert_string_equal(text, expected);
    free(text);
}

/* Waits for as many lines; their numbers. */
static int numbers(const char *file, int count, pid_t *pids)
{
    int n = 0;
    for (int i = 0; i < POLLS && n < count; i++) {
        FILE *f = fopen(file, "r");
        int c, whole = 0;
        while (f && (c = fgetc(f)) != EOF)
            whole += c == '\n';
        if (f)
            rewind(f);
        for (n = 0; f && n < whole && n < count && fscanf(f, "%d", &pids[n]) == 1;)
            n++;
        if (f)
            fclose(f);
        if (n < count)
            sleep_s(.001);
    }
    assert_int_equal(n, count);
    return n;
}

static bool lives(pid_t pid)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    bool there = f && fgets(text, sizeof text, f);
    if (f)
        fclose(f);
    const char *behind = strrchr(text, ')');
    return there && behind && behind[2] != 'Z' && behind[2] != 'X';
}

static void is_gone(pid_t pid)
{
    if (lives(pid))
        fail_msg("process %d lives", (int)pid);
}

static void goes(pid_t pid)
{
    for (int i = 0; i < POLLS && lives(pid); i++)
        sleep_s(.001);
    is_gone(pid);
}

/* The first child of ours that is no zombie. */
static pid_t child_of(pid_t parent)
{
    struct tune_process p;
    pid_t found = 0;
    DIR *proc = opendir("/proc");
    while (!found && tune_process_next(proc, &p))
        found = p.parent == parent && !p.dead ? p.pid : 0;
    closedir(proc);
    return found;
}

static int open_descriptors(void)
{
    int n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* ---- how it ends ---- */

static void exit_codes(void **state)
{
    (void)state;
    static const char *const codes[] = {"0", "1", "7", "127", "255"};
    for (int i = 0; i < 5; i++) {
        double begin = tune_clock_s();
        struct tune_child_end end = run_argv(PLAY("exit", codes[i]));
        ends(&end, TUNE_CHILD_EXITED, atoi(codes[i]));
        assert_true(end.seconds > 0 && end.seconds < tune_clock_s() - begin && !end.oom_killed && !*end.reason);
    }
}

static void signals(void **state)
{
    (void)state;
    static const int those[] = {SIGKILL, SIGTERM, SIGINT, SIGSEGV, SIGABRT, SIGPIPE, SIGHUP, SIGUSR1};
    for (size_t i = 0; i < sizeof those / sizeof *those; i++) {
        char number[8];
        snprintf(number, sizeof number, "%d", those[i]);
        struct tune_child_end end = run_argv(PLAY("raise", number));
        ends(&end, TUNE_CHILD_SIGNALLED, those[i]);
        assert_false(end.oom_killed); /* nothing else says that of a SIGKILL */
    }
}

static void time_out(void **state)
{
    (void)state;
    static const struct { const char *what; int code; } plays[] = {
        {"rest", 128 + SIGTERM}, {"leave", 3}, {"halt", 3}, {"ignore", 128 + SIGKILL}};
    for (int i = 0; i < 4; i++) {
        struct tune_child_options o = options(PLAY(plays[i].what, "pids"));
        struct tune_child_end end;
        o.limit_s = .1;
        o.grace_s = i == 3 ? .2 : 300;
        do { /* until the limit comes after the program said that it heeds its signal */
            o.limit_s *= 2;
            end = run(&o);
            assert_int_equal(end.how, TUNE_CHILD_TIMED_OUT);
            assert_true(end.seconds >= o.limit_s);
        } while (access("pids", F_OK) < 0);
        ends(&end, TUNE_CHILD_TIMED_OUT, plays[i].code);
        assert_true(end.seconds >= o.limit_s + (i == 3 ? .2 : 0));
        unlink("pids");
    }
}

static void stopped(void **state)
{
    (void)state;
    pid_t pid;
    struct tune_child_options o = options(PLAY("rest", "pids"));
    struct tune_child *c = tune_child_start(&o);
    numbers("pids", 1, &pid);
    tune_child_stop(c);
    struct tune_child_end end = end_of(c);
    ends(&end, TUNE_CHILD_STOPPED, 128 + SIGTERM);
    is_gone(pid);
    /* a second time, the grace is over at once */
    unlink("pids");
    o = options(PLAY("ignore", "pids"));
    o.grace_s = 1e9;
    c = tune_child_start(&o);
    numbers("pids", 1, &pid);
    tune_child_stop(c);
    sleep_s(.1);
    assert_true(lives(pid));
    tune_child_stop(c);
    end = end_of(c);
    ends(&end, TUNE_CHILD_STOPPED, 128 + SIGKILL);
    /* too late: it ended as it did */
    o = options(PLAY("exit", "4"));
    c = tune_child_start(&o);
    struct pollfd ended = {tune_child_descriptor(c), POLLIN, 0};
    assert_int_equal(poll(&ended, 1, POLLS), 1);
    tune_child_stop(c);
    end = end_of(c);
    ends(&end, TUNE_CHILD_EXITED, 4);
}

/* At every moment of its beginning: it is not started, or ended. */
static void stopped_while_starting(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        unlink("pids");
        struct tune_child_options o = options(PLAY("ignore", "pids"));
        o.grace_s = 0;
        struct tune_child *c = tune_child_start(&o);
        sleep_s(i * 1e-4);
        tune_child_stop(c);
        struct tune_child_end end = end_of(c);
        assert_int_equal(end.how, TUNE_CHILD_STOPPED);
        assert_true(end.code == 0 || end.code == 128 + SIGTERM || end.code == 128 + SIGKILL);
        assert_int_equal(child_of(getpid()), 0);
    }
}

/* ---- what it leaves behind ---- */

static void left_behind(void **state)
{
    (void)state;
    pid_t pids[2];
    /* it ends by itself; one daemon heeds SIGTERM and does not cost the grace, the other does not */
    for (int i = 0; i < 2; i++) {
        unlink("pids");
        struct tune_child_options o = options(PLAY(i ? "daemon" : "polite-daemon", "pids"));
        o.grace_s = i ? .1 : 1e9;
        struct tune_child *c = tune_child_start(&o);
        numbers("pids", 1, pids);
        struct tune_child_end end = end_of(c);
        ends(&end, TUNE_CHILD_EXITED, 0);
        is_gone(pids[0]);
    }
    /* it is ended, and by that its daemon becomes the guard's; of two in its group one stays until the grace is over */
    static const char *const plays[] = {"daemon-and-rest", "pair", "polite-daemon-and-rest"};
    for (int i = 0; i < 3; i++) {
        unlink("pids");
        struct tune_child_options o = options(PLAY(plays[i], "pids"));
        o.grace_s = i < 2 ? .1 : 1e9;
        struct tune_child *c = tune_child_start(&o);
        numbers("pids", 2, pids);
        tune_child_stop(c);
        struct tune_child_end end = end_of(c);
        ends(&end, TUNE_CHILD_STOPPED, 128 + SIGTERM);
        is_gone(pids[0]);
        is_gone(pids[1]);
    }
}

/* What is killed leaves children, again and again. */
static void nested(void **state)
{
    (void)state;
    pid_t pids[5];
    struct tune_child_options o = options(PLAY("nest", "pids"));
    o.grace_s = .1;
    struct tune_child *c = tune_child_start(&o);
    numbers("pids", 5, pids);
    tune_child_stop(c);
    struct tune_child_end end = end_of(c);
    ends(&end, TUNE_CHILD_STOPPED, 128 + SIGKILL);
    for (int i = 0; i < 5; i++)
        is_gone(pids[i]);
}

/* Another one at each look. */
static void moving_target(void **state)
{
    (void)state;
    struct tune_child_options o = options(PLAY("breed", "pids"));
    int pid, n = 0;
    for (o.grace_s = .3; n <= 20; o.grace_s *= 2) { /* long enough for twenty of them */
        unlink("pids");
        struct tune_child_end end = run(&o);
        ends(&end, TUNE_CHILD_EXITED, 0);
        FILE *f = fopen("pids", "r");
        for (n = 0; fscanf(f, "%d", &pid) == 1; n++)
            is_gone(pid);
        fclose(f);
    }
}

/* A parent of its own for the program: to be killed. */
static pid_t parent_of(const struct tune_child_options *o)
{
    pid_t parent = fork();
    if (parent == 0) {
        if (!tune_child_start(o))
            _exit(1);
        for (;;)
            pause();
    }
    return parent;
}

static void parent_killed(void **state)
{
    (void)state;
    pid_t pids[2], parent;
    static const char *const plays[] = {"daemon-and-rest", "pair"};
    for (int i = 0; i < 2; i++) {
        unlink("pids");
        struct tune_child_options o = options(PLAY(plays[i], "pids"));
        o.grace_s = .1;
        parent = parent_of(&o);
        numbers("pids", 2, pids);
        kill(parent, SIGKILL);
        waitpid(parent, NULL, 0);
        goes(pids[0]);
        goes(pids[1]);
    }
    /* before it began: whatever the guard has come to by then */
    for (int i = 0; i < 20; i++) {
        unlink("pids");
        struct tune_child_options o = options(PLAY("rest", "pids"));
        parent = parent_of(&o);
        sleep_s(i * 2e-4);
        kill(parent, SIGKILL);
        waitpid(parent, NULL, 0);
    }
    for (int i = 0; i < POLLS; i++) { /* neither guard nor program is left of them */
        struct tune_process p;
        char path[64], text[TUNE_PATH_MAX] = "";
        int left = 0;
        DIR *proc = opendir("/proc");
        while (tune_process_next(proc, &p)) {
            snprintf(path, sizeof path, "/proc/%d/exe", (int)p.pid);
            ssize_t n = p.pid == getpid() || p.dead ? 0 : readlink(path, text, sizeof text - 1);
            left += n > 0 && !strncmp(text, self, (size_t)n) && !self[n];
        }
        closedir(proc);
        if (left == 0)
            return;
        sleep_s(.001);
    }
    fail_msg("some process is left");
}

static void guard_killed(void **state)
{
    (void)state;
    pid_t pids[2];
    struct tune_child_options o = options(PLAY("pair", "pids")); /* both heed nothing but SIGKILL, or are not asked to */
    struct tune_child *c = tune_child_start(&o);
    numbers("pids", 2, pids);
    pid_t guard = child_of(getpid());
    assert_true(guard > 0);
    kill(guard, SIGKILL);
    struct tune_child_end end = end_of(c);
    ends(&end, TUNE_CHILD_SIGNALLED, SIGKILL);
    assert_non_null(strstr(end.reason, "guard"));
    goes(pids[0]);
    goes(pids[1]);
    /* with nobody to look after it */
    unlink("pids");
    o = options(PLAY("ignore", "pids"));
    pid_t parent = parent_of(&o);
    numbers("pids", 1, pids);
    kill(parent, SIGSTOP);
    kill(child_of(parent), SIGKILL);
    goes(pids[0]);
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
    /* asked to end, by whoever ends all processes, it ends its program first */
    unlink("pids");
    o = options(PLAY("leave", "pids"));
    c = tune_child_start(&o);
    numbers("pids", 1, pids);
    kill(child_of(getpid()), SIGTERM);
    end = end_of(c);
    ends(&end, TUNE_CHILD_STOPPED, 3);
    is_gone(pids[0]);
}

/* ---- what it is given ---- */

static void output(void **state)
{
    (void)state;
    struct tune_child_end end = run_argv(PLAY("much", "1000000"));
    ends(&end, TUNE_CHILD_EXITED, 0);
    struct stat s;
    assert_int_equal(stat("log", &s), 0);
    assert_int_equal(s.st_size, 1000000); /* under the limit: all of it */
    struct tune_child_options o = options(PLAY("much", "50000000"));
    o.log_limit = 4000;
    end = run(&o);
    ends(&end, TUNE_CHILD_EXITED, 0);
    char *text = log_text(), *line = strstr(text, "[... 49996000 bytes left out ...]\n");
    assert_non_null(line);
    assert_int_equal(line - text, 2001);
    assert_int_equal(strlen(line), 34 + 2000);
    free(text);
    end = run_argv(PLAY("close"));
    ends(&end, TUNE_CHILD_EXITED, 5);
    o.log = "/dev/full"; /* no room: the program's work goes on */
    end = run(&o);
    ends(&end, TUNE_CHILD_EXITED, 0);
    o.log = NULL;
    end = run(&o);
    ends(&end, TUNE_CHILD_EXITED, 0);
    /* a reader that leaves is the program's own business */
    end = run_argv((const char *const[]){"/bin/sh", "-c", "echo one; yes | head -n 1", NULL});
    ends(&end, TUNE_CHILD_EXITED, 0);
    log_is("one\ny\n");
}

static void first_of_stderr(const char *script, const char *expected)
{
    struct tune_child_end end = run_argv((const char *const[]){"/bin/sh", "-c", script, NULL});
    ends(&end, TUNE_CHILD_EXITED, 0);
    assert_string_equal(end.complaint, expected);
}

static void complaint(void **state)
{
    char most[256];
    (void)state;
    memset(most, 'x', 255);
    most[255] = 0;
    first_of_stderr("echo out; printf '\n  \n  bad \\303\\244 thing\nmore\n' >&2; echo out", "bad \xc3\xa4 thing");
    first_of_stderr("printf 'no end' >&2; echo out", "no end");
    first_of_stderr("printf 'in ' >&2; printf 'parts\r50 %%\n' >&2", "in parts");
    first_of_stderr("echo out", "");
    first_of_stderr("printf '%300s\nmore\n' | tr ' ' y | sed 's/y/x/g' >&2", most);
}

static void capped_log(void **state)
{
    (void)state;
    enum { MOST = 3000 };
    static char all[MOST], expected[MOST + 64], got[MOST + 64];
    uint64_t drawn = 0;
    for (int i = 0; i < MOST; i++)
        all[i] = (char)('a' + i % 26);
    for (int round = 0; round < 200; round++) {
        int64_t limit = (int64_t)(tune_random_u64(1, 0, drawn++) % 200), at = 0;
        int64_t total = (int64_t)(tune_random_u64(1, 0, drawn++) % MOST);
        int fd = open("capped", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        struct tune_capped_log log;
        tune_capped_log_begin(&log, fd, limit);
        while (at < total) {
            int64_t n = 1 + (int64_t)(tune_random_u64(1, 0, drawn++) % 300);
            n = n < total - at ? n : total - at;
            tune_capped_log_add(&log, all + at, (size_t)n);
            at += n;
        }
        tune_capped_log_end(&log);
        int64_t last = limit / 2, first = limit - last;
        int size = (int)total;
        memcpy(expected, all, (size_t)total);
        if (total > limit) {
            size = (int)first + sprintf(expected + first, "\n[... %lld bytes left out ...]\n", (long long)(total - limit));
            memcpy(expected + size, all + total - last, (size_t)last);
            size += (int)last;
        }
        assert_int_equal(pread(fd, got, sizeof got, 0), size);
        assert_memory_equal(got, expected, (size_t)size);
        close(fd);
    }
}

static void environment_and_signals(void **state)
{
    (void)state;
    static char large[200000];
    memset(large, 'v', sizeof large - 1);
    memcpy(large, "LARGE=", 6);
    char *const long_one = strdup(large); /* one variable may have 128 KiB, all of them megabytes */
    long_one[100000] = 0;
    const char *const environment[] = {"A=1", "EMPTY=", "no sign", "A=2", "LINE=a b", long_one, NULL};
    struct tune_child_options o = options(PLAY("environment"));
    o.environment = environment;
    setenv("TUNE_TEST_OURS", "x", 1);
    struct tune_child_end end = run(&o);
    ends(&end, TUNE_CHILD_EXITED, 0);
    char *text = log_text(), *expected = malloc(200000);
    sprintf(expected, "A=1\nEMPTY=\nno sign\nA=2\nLINE=a b\n%s\n", long_one);
    assert_string_equal(text, expected);
    free(expected);
    free(text);
    /* more than the socket to the guard holds at once: the program may not have it, and says so */
    const char *many[200];
    for (int i = 0; i < 199; i++)
        many[i] = long_one;
    many[199] = NULL;
    o.environment = many;
    end = run(&o);
    assert_int_equal(end.how, TUNE_CHILD_NOT_STARTED);
    assert_non_null(strstr(end.reason, strerror(E2BIG)));
    free(long_one);
    /* what we ignore and block is ours */
    sigset_t some, before;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR1);
    sigaddset(&some, SIGTERM);
    sigprocmask(SIG_BLOCK, &some, &before);
    signal(SIGPIPE, SIG_IGN);
    end = run_argv(PLAY("status"));
    sigprocmask(SIG_SETMASK, &before, NULL);
    signal(SIGPIPE, SIG_DFL);
    ends(&end, TUNE_CHILD_EXITED, 0);
    log_is("SigBlk 0\nSigIgn 0\n");
}

static void descriptors(void **state)
{
    (void)state;
    int open_ones[50];
    for (int i = 0; i < 50; i++)
        open_ones[i] = open("/dev/null", O_RDONLY); /* that anybody inherits */
    int closed = dup(0);
    fcntl(closed, F_SETFD, FD_CLOEXEC);
    close(0); /* ours may be anywhere, or not there */
    struct tune_child_end end = run_argv(PLAY("descriptors"));
    dup2(closed, 0);
    close(closed);
    for (int i = 0; i < 50; i++)
        close(open_ones[i]);
    ends(&end, TUNE_CHILD_EXITED, 0);
    log_is("0 /dev/null\n1 pipe\n2 pipe\n");
}

static void group(void **state)
{
    (void)state;
    int pid, parent, group, session;
    struct tune_child_end end = run_argv(PLAY("ids"));
    ends(&end, TUNE_CHILD_EXITED, 0);
    char *text = log_text();
    assert_int_equal(sscanf(text, "%d %d %d %d", &pid, &parent, &group, &session), 4);
    free(text);
    assert_int_equal(group, pid);
    assert_int_equal(session, parent); /* the guard's */
    assert_true(session != getsid(0));
}

static void processors(void **state)
{
    (void)state;
    cpu_set_t ours;
    char expected[32];
    int one = 0, absent = CPU_SETSIZE + 100;
    assert_int_equal(sched_getaffinity(0, sizeof ours, &ours), 0);
    while (!CPU_ISSET(one, &ours)) /* whether or not other programs measure there */
        one++;
    struct tune_child_options o = options(PLAY("processors"));
    o.cpus = &one;
    o.cpu_count = 1;
    struct tune_child_end end = run(&o);
    ends(&end, TUNE_CHILD_EXITED, 0);
    snprintf(expected, sizeof expected, "%d\n", one);
    log_is(expected);
    o.cpus = NULL; /* as we */
    end = run(&o);
    ends(&end, TUNE_CHILD_EXITED, 0);
    char *text = log_text();
    int lines = 0;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    free(text);
    assert_int_equal(lines, CPU_COUNT(&ours));
    o.cpus = &absent;
    end = run(&o);
    assert_int_equal(end.how, TUNE_CHILD_NOT_STARTED);
    assert_non_null(strstr(end.reason, "processors"));
}

/* Processors of its own: no other child that wants them has them until all that it started has ended. */
static void own_processors(void **state)
{
    (void)state;
    /* Processors that hardly any machine has. Each process of this test takes other ones, so it meets no locks of others. */
    const int first = CPU_SETSIZE - 2 - 2 * (getpid() % 200), own[] = {first, first + 1};
    int locks[3];
    assert_false(tune_child_cpus_taken(own, 2, NULL));
    assert_true(tune_guard_lock_cpus(&own[1], 1, false, locks));
    assert_true(tune_child_cpus_taken(own, 2, NULL));
    assert_false(tune_guard_lock_cpus(own, 2, false, locks + 1)); /* all or none */
    assert_int_equal(errno, EADDRINUSE);
    assert_false(tune_child_cpus_taken(own, 1, NULL));
    struct tune_child_options o = options(PLAY("exit", "0"));
    o.cpus = own;
    o.cpu_count = 2;
    o.own_cpus = true;
    o.limit_s = .2;
    double begin = tune_clock_s();
    struct tune_child *c = tune_child_start(&o);
    struct pollfd ended = {tune_child_descriptor(c), POLLIN, 0};
    assert_int_equal(poll(&ended, 1, 500), 0); /* it waits, and that is not its time */
    close(locks[0]);
    struct tune_child_end end = end_of(c);
    assert_int_equal(end.how, TUNE_CHILD_NOT_STARTED); /* for that machine lacks them */
    assert_true(end.waited_s > 0 && end.waited_s + end.seconds < tune_clock_s() - begin);
    /* stopped while it waits */
    assert_true(tune_guard_lock_cpus(own, 1, false, locks));
    c = tune_child_start(&o);
    assert_int_equal(poll(&(struct pollfd){tune_child_descriptor(c), POLLIN, 0}, 1, 200), 0);
    tune_child_stop(c);
    end = end_of(c);
    ends(&end, TUNE_CHILD_STOPPED, 0);
    close(locks[0]);
    assert_false(tune_child_cpus_taken(own, 2, NULL));
}

/* The guard of the program locks them, so they stay locked when the parent was killed. */
static void own_processors_while_it_ends(void **state)
{
    (void)state;
    cpu_set_t ours;
    int one = 0;
    pid_t pid;
    assert_int_equal(sched_getaffinity(0, sizeof ours, &ours), 0);
    while (!CPU_ISSET(one, &ours))
        one++;
    struct tune_child_options o = options(PLAY("ignore", "pids"));
    o.cpus = &one;
    o.cpu_count = 1;
    o.own_cpus = true;
    o.grace_s = .5;
    pid_t parent = parent_of(&o);
    numbers("pids", 1, &pid);
    assert_true(tune_child_cpus_taken(&one, 1, NULL));
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
    o.argv = PLAY("exit", "4");
    struct tune_child_end end = run(&o);
    ends(&end, TUNE_CHILD_EXITED, 4);
    assert_false(lives(pid));
}

/* A guard keeps the descriptors it was given until its program has ended, even if its parent was killed. The program does not
 * get them. */
static void locks_of_others(void **state)
{
    (void)state;
    pid_t pid;
    struct tune_child_options o = options(PLAY("descriptors"));
    int locks[2] = {tune_child_lock("gpu/locked-1"), tune_child_lock("gpu/locked-2")};
    assert_true(locks[0] >= 0 && locks[1] >= 0);
    assert_int_equal(tune_child_lock("gpu/locked-1"), -1);
    assert_int_equal(errno, EADDRINUSE);
    o.locks = locks;
    o.lock_count = 2;
    struct tune_child_end end = run(&o);
    ends(&end, TUNE_CHILD_EXITED, 0);
    log_is("0 /dev/null\n1 pipe\n2 pipe\n");
    o.argv = PLAY("ignore", "pids");
    pid_t parent = parent_of(&o);
    numbers("pids", 1, &pid);
    close(locks[0]);
    close(locks[1]);
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
    assert_int_equal(tune_child_lock("gpu/locked-1"), -1); /* it heeds no SIGTERM, and the guard waits */
    assert_int_equal(tune_child_lock("gpu/locked-2"), -1);
    assert_true(lives(pid));
    kill(pid, SIGKILL);
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < POLLS && (locks[i] = tune_child_lock(i ? "gpu/locked-2" : "gpu/locked-1")) < 0; k++)
            sleep_s(.001);
        assert_true(locks[i] >= 0);
    }
    assert_false(lives(pid));
    close(locks[0]);
    close(locks[1]);
    char name[200];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = 0;
    assert_int_equal(tune_child_lock(name), -1); /* it does not fit a socket's name */
    o.lock_count = TUNE_CHILD_LOCKS + 1;
    assert_null(tune_child_start(&o));
    assert_error_has(" locks; at most ");
}

static void folders(void **state)
{
    (void)state;
    assert_ok(tune_file_make_folder("bin"));
    assert_ok(tune_file_make_folder("elsewhere"));
    test_write("bin", "mine", "#!/bin/sh\npwd\n", 14);
    assert_int_equal(chmod("bin/mine", 0755), 0);
    struct tune_child_options o = options((const char *const[]){"bin/mine", NULL});
    o.folder = "elsewhere";
    struct tune_child_end end = run(&o); /* the program's path, the log's and the folder's are ours */
    ends(&end, TUNE_CHILD_EXITED, 0);
    char *text = log_text();
    assert_non_null(strstr(text, "/elsewhere\n"));
    free(text);
    char *path = strdup(getenv("PATH"));
    setenv("PATH", "/nowhere::bin", 1);
    end = run_argv((const char *const[]){"mine", NULL});
    setenv("PATH", path, 1);
    ends(&end, TUNE_CHILD_EXITED, 0);
    free(path);
}

/* ---- what cannot be started ---- */

static void refused_as(struct tune_child_options o, const char *text)
{
    tune_error_clear();
    int before = open_descriptors();
    struct tune_child *c = tune_child_start(&o);
    assert_null(c);
    assert_error_has(text);
    assert_int_equal(open_descriptors(), before);
}

static void not_started(void **state)
{
    (void)state;
    test_write(".", "plain", "#!/bin/sh\n", 10);
    refused_as(options((const char *const[]){"./absent", NULL}), "No such file");
    refused_as(options((const char *const[]){"no-such-program", NULL}), "PATH");
    refused_as(options((const char *const[]){"", NULL}), "PATH");
    refused_as(options((const char *const[]){"./plain", NULL}), "chmod +x");
    refused_as(options((const char *const[]){"/", NULL}), "directory");
    refused_as(options((const char *const[]){"/dev/null", NULL}), "executable");
    struct tune_child_options o = options(PLAY("exit", "0"));
    o.log = "absent/log";
    refused_as(o, "absent/log");
    o.log = ".";
    refused_as(o, "cannot write the log");
    o = options(PLAY("exit", "0"));
    o.folder = "absent";
    refused_as(o, "absent");
    o.folder = "plain";
    refused_as(o, "Not a directory");
    struct rlimit files, few;
    struct tune_child *c = NULL;
    int before = open_descriptors(), refusals = 0;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    for (few = files, few.rlim_cur = (rlim_t)before; !c; few.rlim_cur++) { /* not enough for all that it takes */
        setrlimit(RLIMIT_NOFILE, &few);
        o = options(PLAY("exit", "0"));
        c = tune_child_start(&o);
        setrlimit(RLIMIT_NOFILE, &files);
        refusals += !c;
        if (!c)
            assert_error_has("Too many open files");
        assert_int_equal(open_descriptors(), before + (c != NULL));
    }
    assert_true(refusals > 3);
    end_of(c);
}

/* What only the kernel finds out. */
static void not_executed(void **state)
{
    (void)state;
    static const struct { const char *text, *says; } files[] = {
        {"echo hello\n", "#!/bin/sh"},           /* no first line that says what reads it */
        {"\177ELF but no more", "#!/bin/sh"},    /* no program */
        {"", "#!/bin/sh"},
        {"#!/no/such/reader\n", "first line"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        test_write(".", "script", files[i].text, strlen(files[i].text));
        assert_int_equal(chmod("script", 0755), 0);
        struct tune_child_end end = run_argv((const char *const[]){"./script", NULL});
        assert_int_equal(end.how, TUNE_CHILD_NOT_STARTED);
        if (!strstr(end.reason, files[i].says) || !strstr(end.reason, "script"))
            fail_msg("reason \"%s\" lacks \"%s\"", end.reason, files[i].says);
    }
    assert_int_equal(child_of(getpid()), 0);
}

/* ---- many ---- */

static void one_after_the_other(void **state)
{
    (void)state;
    int before = open_descriptors();
    for (int i = 0; i < 100; i++) {
        char code[16];
        snprintf(code, sizeof code, "%d", i);
        struct tune_child_end end = run_argv(PLAY("exit", code));
        ends(&end, TUNE_CHILD_EXITED, i);
    }
    assert_int_equal(open_descriptors(), before);
    assert_true(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

static void at_once(void **state)
{
    (void)state;
    enum { MANY = 12 };
    struct tune_child *c[MANY];
    struct pollfd on[MANY];
    char file[MANY][32];
    pid_t pid;
    for (int i = 0; i < MANY; i++) {
        snprintf(file[i], sizeof file[i], "pids-%d", i);
        struct tune_child_options o = options(PLAY("rest", file[i]));
        o.log = i % 2 ? "log" : NULL;
        c[i] = tune_child_start(&o);
        assert_got(c[i]);
        on[i] = (struct pollfd){tune_child_descriptor(c[i]), POLLIN, 0};
    }
    for (int i = MANY - 1; i >= 0; i--) { /* each by itself: the others go on, and hold no end of its socket */
        numbers(file[i], 1, &pid);
        assert_int_equal(poll(on, (nfds_t)i + 1, 0), 0);
        tune_child_stop(c[i]);
        assert_int_equal(poll(on + i, 1, POLLS), 1);
        struct tune_child_end end = end_of(c[i]);
        ends(&end, TUNE_CHILD_STOPPED, 128 + SIGTERM);
        is_gone(pid);
    }
}

/* ---- out of memory ---- */

static bool put(const char *folder, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return good;
}

/* A control group of 32 MiB, where this machine lets us make one. */
static bool make_group(char folder[64])
{
    static const char *const roots[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"};
    for (int i = 0; i < 2; i++) {
        snprintf(folder, 64, "%s/tune-test-%d", roots[i], (int)getpid());
        if (mkdir(folder, 0777) < 0)
            continue;
        put(folder, "memory.swap.max", "0");
        if (put(folder, i ? "memory.max" : "memory.limit_in_bytes", "33554432"))
            return true;
        rmdir(folder);
    }
    return false;
}

static void out_of_memory(void **state)
{
    (void)state;
    char folder[64], command[256];
    if (!make_group(folder)) {
        print_message("no control group with a limit of memory can be made here\n");
        skip();
    }
    static const char *const endings[] = {"exec \"$0\" play eat 256", "\"$0\" play eat 256; exit $?", "exec \"$0\" play raise 9"};
    struct tune_child_end end[3];
    for (int i = 0; i < 3; i++) {
        snprintf(command, sizeof command, "echo $$ >%s/cgroup.procs || exit 50; %s", folder, endings[i]);
        end[i] = run_argv((const char *const[]){"/bin/sh", "-c", command, self, NULL});
    }
    for (int i = 0; i < POLLS && rmdir(folder) < 0; i++)
        sleep_s(.001);
    ends(&end[0], TUNE_CHILD_SIGNALLED, SIGKILL);
    ends(&end[1], TUNE_CHILD_EXITED, 137);
    ends(&end[2], TUNE_CHILD_SIGNALLED, SIGKILL);
    assert_true(end[0].oom_killed && end[1].oom_killed && !end[2].oom_killed);
}

/* ---- for test_child.sh ---- */

static int drive(int argc, char **argv)
{
    static const char *const words[] = {"exited", "signalled", "timed out", "stopped", "not started"};
    struct tune_child_end end;
    if (argc < 6)
        return 2;
    struct tune_child *c = tune_child_start(&(struct tune_child_options){
        .argv = (const char *const *)argv + 5, .environment = (const char *const *)environ, .log = argv[4], .log_limit = 10000,
        .limit_s = atof(argv[2]), .grace_s = atof(argv[3])});
    if (!c || tune_child_end(c, &end) < 0) {
        fprintf(stderr, "%s\n", tune_error_message());
        return 1;
    }
    printf("%s %d%s%s\n", words[end.how], end.code, *end.reason ? ": " : "", end.reason);
    return 0;
}

int main(int argc, char **argv)
{
    int guard = tune_child_guard(argc, argv);
    if (guard >= 0)
        return guard;
    if (argc > 2 && !strcmp(argv[1], "play"))
        return play(argc, argv);
    if (argc > 2 && !strcmp(argv[1], "drive"))
        return drive(argc, argv);
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return 1;
    if (emulated()) {
        puts("ok 1 - children # SKIP the emulator does not start programs of its kind");
        return 77;
    }
#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, test_home_begin, test_home_end)
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(exit_codes),
        IN_A_FOLDER(signals),
        IN_A_FOLDER(time_out),
        IN_A_FOLDER(stopped),
        IN_A_FOLDER(stopped_while_starting),
        IN_A_FOLDER(left_behind),
        IN_A_FOLDER(nested),
        IN_A_FOLDER(moving_target),
        IN_A_FOLDER(parent_killed),
        IN_A_FOLDER(guard_killed),
        IN_A_FOLDER(output),
        IN_A_FOLDER(complaint),
        IN_A_FOLDER(capped_log),
        IN_A_FOLDER(environment_and_signals),
        IN_A_FOLDER(descriptors),
        IN_A_FOLDER(group),
        IN_A_FOLDER(processors),
        IN_A_FOLDER(own_processors),
        IN_A_FOLDER(own_processors_while_it_ends),
        IN_A_FOLDER(locks_of_others),
        IN_A_FOLDER(folders),
        IN_A_FOLDER(not_started),
        IN_A_FOLDER(not_executed),
        IN_A_FOLDER(one_after_the_other),
        IN_A_FOLDER(at_once),
        IN_A_FOLDER(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
