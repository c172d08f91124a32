/* fault.c - runs a program and makes its N-th call that changes a file fail, or ends the program there.
 *
 *     fault WHAT N PROGRAM [ARGUMENT...]
 *
 * WHAT: ENOSPC, EIO, EROFS, EFBIG, EDQUOT: that call, and it alone, fails so. ENOSPC+: from there on no call that needs space
 * succeeds (EROFS+: nor one that changes anything). KILL: SIGKILL before the call. INT, TERM, HUP: that signal before the
 * call, which then is made. FLIP: where the call is a write, the lowest bit of its last byte is written otherwise. COUNT:
 * nothing. LOG: nothing, but file descriptor 9 gets a line for each call that writes, truncates, syncs,
 * renames or makes a folder, before it is made: "write PATH", "truncate PATH", "sync PATH", "rename FROM TO", "mkdir PATH". Paths
 * are absolute; the reader expects none with a space. Calls are counted in all threads: open for writing or creating, write (not to standard streams), fsync, rename,
 * mkdir, link, symlink, unlink, rmdir, ftruncate. Ends as the program does (128 + its signal); with COUNT prints their number on
 * file descriptor 9. Exit 77: this system does not let a program be traced. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIP = 77 };

struct call { /* of linux/ptrace.h, which does not go with sys/ptrace.h */
    uint8_t op, pad[3];
    uint32_t arch;
    uint64_t instruction_pointer, stack_pointer, number, args[6], rest[2];
};
enum { GET_SYSCALL_INFO = 0x420e, AT_SECCOMP = 3 };

static int error_code, signal_number;
static bool from_there_on, flip, logging;
static long at, calls;
static pid_t program;

/* Only these stop the program; all others run at full speed. */
static const int traced[] = {
#ifdef SYS_open
    SYS_open, SYS_mkdir, SYS_link, SYS_symlink, SYS_rename, SYS_unlink, SYS_rmdir,
#endif
    SYS_openat, SYS_write, SYS_writev, SYS_pwrite64, SYS_mkdirat, SYS_linkat, SYS_symlinkat, SYS_fsync, SYS_fdatasync, SYS_ftruncate,
    SYS_renameat2, SYS_unlinkat,
#ifdef SYS_renameat
    SYS_renameat,
#endif
};
enum { TRACED = sizeof traced / sizeof *traced };

static bool stop_at_traced(void)
{
    struct sock_filter filter[2 * TRACED + 2];
    int n = 0;
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < TRACED; i++) {
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)traced[i], 0, 1);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    }
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog all = {(unsigned short)n, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all, 0, 0) == 0;
}

/* needs_space: what a full disk refuses. */
static bool changes(const struct call *s, bool *needs_space)
{
    *needs_space = true;
    switch (s->number) {
#ifdef SYS_open
    case SYS_open: return (s->args[1] & (O_CREAT | O_WRONLY | O_RDWR)) != 0;
    case SYS_mkdir:
    case SYS_symlink: return true;
    case SYS_rename:
    case SYS_unlink:
    case SYS_rmdir: *needs_space = false; return true;
#endif
    case SYS_openat: return (s->args[2] & (O_CREAT | O_WRONLY | O_RDWR)) != 0;
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64: return s->args[0] > 2;
    case SYS_mkdirat:
    case SYS_symlinkat: return true;
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_ftruncate:
#ifdef SYS_renameat
    case SYS_renameat:
#endif
    case SYS_renameat2:
    case SYS_unlinkat: *needs_space = false; return true;
    default: return false;
    }
}

/* The call is not made; its result is that error. */
static void fail(pid_t id)
{
#if defined(__x86_64__)
    enum { RAX = 10, ORIG_RAX = 15 };
    ptrace(PTRACE_POKEUSER, id, (void *)(8 * (uintptr_t)ORIG_RAX), (void *)-1L);
    ptrace(PTRACE_POKEUSER, id, (void *)(8 * (uintptr_t)RAX), (void *)(long)-error_code);
#elif defined(__aarch64__)
    uint64_t registers[34];
    int none = -1;
    struct iovec all = {registers, sizeof registers}, one = {&none, sizeof none};
    ptrace(PTRACE_SETREGSET, id, (void *)0x404, &one); /* NT_ARM_SYSTEM_CALL */
    if (ptrace(PTRACE_GETREGSET, id, (void *)NT_PRSTATUS, &all) == 0) {
        registers[0] = (uint64_t)-error_code;
        ptrace(PTRACE_SETREGSET, id, (void *)NT_PRSTATUS, &all);
    }
#else
    (void)id;
    exit(SKIP);
#endif
}

/* The last byte of what a write writes, in the program's own memory. */
static void flip_last(const struct call *s)
{
    char c;
    struct iovec here = {&c, 1}, there = {(void *)(uintptr_t)(s->args[1] + s->args[2] - 1), 1};
    if (s->number == SYS_write && s->args[2] > 0 && process_vm_readv(program, &here, 1, &there, 1, 0) == 1) {
        c ^= 1;
        process_vm_writev(program, &here, 1, &there, 1, 0);
    }
}

/* ---- LOG ---- */

enum { PATH = 4096 };

/* The target of a link in the program's /proc folder. */
static const char *leads_to(pid_t id, const char *link, char *path)
{
    char name[64];
    snprintf(name, sizeof name, "/proc/%ld/%s", (long)id, link);
    ssize_t n = readlink(name, path, PATH - 1);
    path[n > 0 ? n : 0] = 0;
    return path;
}

static const char *of_descriptor(pid_t id, uint64_t descriptor, char *path)
{
    char link[32];
    snprintf(link, sizeof link, "fd/%d", (int)descriptor);
    return leads_to(id, link, path);
}

/* The path at that address of the program, absolute. Only one page of it is sure to be there. */
static const char *of_argument(pid_t id, uint64_t folder, uint64_t address, char *path)
{
    char text[PATH] = "";
    size_t size = PATH - address % PATH;
    struct iovec here = {text, size}, there = {(void *)(uintptr_t)address, size};
    ssize_t n = process_vm_readv(id, &here, 1, &there, 1, 0);
    if (n == (ssize_t)size && size < PATH && !memchr(text, 0, size)) {
        here = (struct iovec){text + size, PATH - size};
        there = (struct iovec){(void *)(uintptr_t)(address + size), PATH - size};
        process_vm_readv(id, &here, 1, &there, 1, 0);
    }
    text[PATH - 1] = 0;
    *path = 0;
    if (*text != '/') {
        (int)folder == AT_FDCWD ? leads_to(id, "cwd", path) : of_descriptor(id, folder, path);
        strcat(path, "/");
    }
    strcat(path, text);
    return path;
}

static void note(pid_t id, const struct call *s)
{
    char a[2 * PATH + 2], b[2 * PATH + 2];
    switch (s->number) {
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64: dprintf(9, "write %s\n", of_descriptor(id, s->args[0], a)); break;
    case SYS_fsync:
    case SYS_fdatasync: dprintf(9, "sync %s\n", of_descriptor(id, s->args[0], a)); break;
    case SYS_ftruncate: dprintf(9, "truncate %s\n", of_descriptor(id, s->args[0], a)); break;
#ifdef SYS_rename
    case SYS_rename:
        dprintf(9, "rename %s %s\n", of_argument(id, (uint64_t)AT_FDCWD, s->args[0], a),
                of_argument(id, (uint64_t)AT_FDCWD, s->args[1], b));
        break;
#endif
#ifdef SYS_renameat
    case SYS_renameat:
#endif
    case SYS_renameat2:
        dprintf(9, "rename %s %s\n", of_argument(id, s->args[0], s->args[1], a), of_argument(id, s->args[2], s->args[3], b));
        break;
#ifdef SYS_mkdir
    case SYS_mkdir: dprintf(9, "mkdir %s\n", of_argument(id, (uint64_t)AT_FDCWD, s->args[0], a)); break;
#endif
    case SYS_mkdirat: dprintf(9, "mkdir %s\n", of_argument(id, s->args[0], s->args[1], a)); break;
    default: break;
    }
}

static void at_call(pid_t id)
{
    struct call s;
    bool needs_space;
    if (ptrace((enum __ptrace_request)GET_SYSCALL_INFO, id, (void *)sizeof s, &s) <= 0 || s.op != AT_SECCOMP)
        exit(SKIP);
    if (!changes(&s, &needs_space))
        return;
    calls++;
    if (logging)
        note(id, &s);
    if (calls == at && signal_number)
        kill(program, signal_number);
    if (calls == at && flip)
        flip_last(&s);
    if (error_code && (calls == at || (from_there_on && calls > at && (needs_space || error_code == EROFS))))
        fail(id);
}

/* A sanitizer's search for leaks wants to trace the program itself, which is traced already. */
static void without_leak_search(void)
{
    char options[4096];
    const char *given = getenv("ASAN_OPTIONS");
    snprintf(options, sizeof options, "%s%sdetect_leaks=0", given ? given : "", given ? ":" : "");
    setenv("ASAN_OPTIONS", options, 1);
}

static void understand(const char *what)
{
    static const struct {
        const char *name;
        int error, number;
    } known[] = {{"ENOSPC", ENOSPC, 0}, {"EIO", EIO, 0},        {"EROFS", EROFS, 0},    {"EFBIG", EFBIG, 0}, {"EDQUOT", EDQUOT, 0},
                 {"KILL", 0, SIGKILL},  {"TERM", 0, SIGTERM},   {"INT", 0, SIGINT},     {"HUP", 0, SIGHUP},  {"COUNT", 0, 0},
                 {"FLIP", 0, 0},        {"LOG", 0, 0}};
    size_t n = strcspn(what, "+");
    from_there_on = what[n] == '+';
    flip = !strcmp(what, "FLIP");
    logging = !strcmp(what, "LOG");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].name) == n && !strncmp(known[i].name, what, n)) {
            error_code = known[i].error;
            signal_number = known[i].number;
            return;
        }
    fprintf(stderr, "fault: what is %s?\n", what);
    exit(2);
}

int main(int argc, char **argv)
{
    int status;
    if (argc < 4) {
        fprintf(stderr, "fault WHAT N PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    understand(argv[1]);
    at = atol(argv[2]);
    program = fork();
    if (program == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            _exit(SKIP);
        raise(SIGSTOP);
        if (!stop_at_traced())
            _exit(SKIP);
        without_leak_search();
        execv(argv[3], argv + 3);
        _exit(127);
    }
    if (program < 0 || waitpid(program, &status, 0) < 0 || !WIFSTOPPED(status) ||
        ptrace(PTRACE_SETOPTIONS, program, NULL, (void *)(PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE)) < 0)
        return SKIP;
    ptrace(PTRACE_CONT, program, NULL, NULL);
    for (pid_t id; (id = waitpid(-1, &status, __WALL)) > 0;) {
        int pass = 0;
        if (!WIFSTOPPED(status)) {
            if (id != program)
                continue;
            if (!error_code && !signal_number && !flip && !logging)
                dprintf(9, "%ld\n", calls);
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
        if (status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8))
            at_call(id);
        else if (WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGSTOP) /* a new thread begins with SIGSTOP */
            pass = WSTOPSIG(status);
        ptrace(PTRACE_CONT, id, NULL, (void *)(long)pass);
    }
    return 2;
}
