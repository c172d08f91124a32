/* child_programs.h - the programs that test_child.c starts: small, and as ill-behaved as programs are. */
#ifndef TUNE_TEST_CHILD_PROGRAMS_H
#define TUNE_TEST_CHILD_PROGRAMS_H

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static void sleep_s(double s)
{
    nanosleep(&(struct timespec){.tv_sec = (time_t)s, .tv_nsec = (long)((s - (double)(time_t)s) * 1e9)}, NULL);
}

/* A line into a file that others wait for. */
static void say(const char *path, const char *format, long value)
{
    char text[64];
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666), n = snprintf(text, sizeof text, format, value);
    if (fd < 0 || write(fd, text, (size_t)n) != n)
        _exit(99);
    close(fd);
}

static int rest(const char *file)
{
    say(file, "%ld\n", getpid());
    while (pause() < 0)
        ;
    return 0;
}

/* A process that ignores SIGTERM, in a session of its own, an orphan: nothing but its parentage ties it to us. */
static int daemon_of(const char *file, bool stubborn)
{
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            if (stubborn)
                signal(SIGTERM, SIG_IGN);
            return rest(file);
        }
        return 0;
    }
    wait(NULL);
    struct stat st;
    while (stat(file, &st) < 0 || st.st_size == 0) /* its line is there: it is what it shall be */
        sleep_s(.001);
    return 0;
}

/* Each lives for a moment, leaves a child that does the same in a session of its own, and heeds no SIGTERM. */
static int breed(const char *file, int lives)
{
    say(file, "%ld\n", getpid());
    signal(SIGTERM, SIG_IGN);
    for (; lives > 0; lives--) {
        sleep_s(.002);
        if (fork() > 0)
            return 0;
        setsid();
        say(file, "%ld\n", getpid());
    }
    return rest(file);
}

/* Each in a session of its own, the child of the one before, and heedless of SIGTERM. */
static int nest(const char *file, int depth)
{
    signal(SIGTERM, SIG_IGN);
    for (; depth > 0 && fork() == 0; depth--)
        setsid();
    return rest(file);
}

static int write_much(int64_t bytes)
{
    static char line[1000];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    for (int64_t left = bytes; left > 0; left -= (int64_t)sizeof line)
        if (write(1, line, left < (int64_t)sizeof line ? (size_t)left : sizeof line) < 0)
            return 1;
    return 0;
}

static int print_status(void)
{
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, "SigBlk", 6) || !strncmp(line, "SigIgn", 6)) /* 32 and 33 are the C library's own */
            printf("%.6s %llx\n", line, strtoull(line + 8, NULL, 16) & ~0x180000000ull);
    return f ? fclose(f) : 1;
}

static int print_descriptors(void)
{
    for (int fd = 0; fd < 4096; fd++) {
        char path[64], target[256] = "";
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (fcntl(fd, F_GETFD) >= 0 && readlink(path, target, sizeof target - 1) >= 0)
            printf("%d %.*s\n", fd, (int)strcspn(target, ":"), target);
    }
    return 0;
}

static int print_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return 1;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set))
            printf("%d\n", i);
    return 0;
}

static void leave(int number)
{
    _exit(number == SIGTERM ? 3 : 4);
}

static int eat(int64_t mib)
{
    for (int64_t i = 0; i < mib; i++) {
        char *block = malloc(1 << 20);
        if (!block)
            return 1;
        memset(block, (int)i + 1, 1 << 20);
    }
    return 0;
}

/* test_child play NAME [WORD] - one of them; its exit code. */
static inline int play(int argc, char **argv)
{
    const char *what = argv[2], *word = argc > 3 ? argv[3] : "";
    if (!strcmp(what, "exit"))
        return atoi(word);
    if (!strcmp(what, "raise"))
        return signal(atoi(word), SIG_DFL), kill(getpid(), atoi(word)), pause();
    if (!strcmp(what, "rest"))
        return rest(word);
    if (!strcmp(what, "ignore"))
        return signal(SIGTERM, SIG_IGN), rest(word);
    if (!strcmp(what, "leave"))
        return signal(SIGTERM, leave), rest(word);
    if (!strcmp(what, "halt"))
        return signal(SIGTERM, leave), say(word, "%ld\n", getpid()), raise(SIGSTOP), pause();
    if (!strcmp(what, "daemon"))
        return daemon_of(word, true);
    if (!strcmp(what, "polite-daemon"))
        return daemon_of(word, false);
    if (!strcmp(what, "daemon-and-rest"))
        return daemon_of(word, true), rest(word);
    if (!strcmp(what, "polite-daemon-and-rest"))
        return daemon_of(word, false), rest(word);
    if (!strcmp(what, "nest"))
        return nest(word, 4);
    if (!strcmp(what, "pair"))
        return fork() == 0 ? (signal(SIGTERM, SIG_IGN), rest(word)) : rest(word);
    if (!strcmp(what, "breed"))
        return breed(word, 100000);
    if (!strcmp(what, "much"))
        return write_much(atoll(word));
    if (!strcmp(what, "close"))
        return close(1), close(2), sleep_s(.1), 5;
    if (!strcmp(what, "status"))
        return print_status();
    if (!strcmp(what, "descriptors"))
        return print_descriptors();
    if (!strcmp(what, "processors"))
        return print_processors();
    if (!strcmp(what, "ids"))
        return printf("%d %d %d %d\n", getpid(), getppid(), getpgid(0), getsid(0)), open("/dev/tty", O_RDWR) < 0 ? 0 : 1;
    if (!strcmp(what, "eat"))
        return eat(atoll(word));
    if (!strcmp(what, "environment"))
        for (char **e = environ; *e; e++)
            puts(*e);
    return 0;
}

#endif
