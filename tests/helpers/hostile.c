/* hostile.c - connections that no browser makes, for the tests of the studio.
 *
 *     hostile raw PORT               send stdin, print all that comes back until the other side closes
 *     hostile flood PORT COUNT       open COUNT connections, one after the other, and send nothing. Each stays open as long
 *                                    as the limit of open files allows; then it ends
 *     hostile slow PORT COUNT        that many at a time, each with a request that never ends: a letter at a time. One that
 *                                    is closed is opened again. Prints a line when all were open once, and goes on
 *     hostile deaf PORT COUNT PATH   the same; each asks for PATH again and again, and reads nothing */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in address = {.sin_family = AF_INET};

static int open_one(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        perror("connect");
        exit(1);
    }
    return fd;
}

static int raw(void)
{
    char text[65536];
    int fd = open_one();
    size_t n;
    ssize_t got;
    while ((n = fread(text, 1, sizeof text, stdin)) > 0)
        for (size_t sent = 0; sent < n;) {
            ssize_t m = send(fd, text + sent, n - sent, MSG_NOSIGNAL);
            if (m < 0)
                break; /* it was closed early; what was answered is read below */
            sent += (size_t)m;
        }
    while ((got = read(fd, text, sizeof text)) > 0)
        fwrite(text, 1, (size_t)got, stdout);
    return 0;
}

static int flood(int count)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    int most = limit.rlim_cur > 20000 ? 20000 : (int)limit.rlim_cur - 20, *open = calloc((size_t)most, sizeof *open);
    if (!open)
        return 1;
    for (int i = 0; i < count; i++) {
        if (open[i % most])
            close(open[i % most]);
        open[i % most] = open_one();
    }
    printf("%d\n", count);
    free(open);
    return 0;
}

static int keep(int count, const char *path)
{
    int *open = malloc((size_t)count * sizeof *open);
    char request[1024], rest[4096];
    int n = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\nX-A: ", path ? path : "/");
    n += path ? snprintf(request + n, sizeof request - (size_t)n, "b\r\n\r\n") : 0;
    for (int i = 0; open && i < count; i++)
        open[i] = open_one(), send(open[i], request, (size_t)n, MSG_NOSIGNAL);
    puts("open");
    fflush(stdout);
    for (;;) {
        for (int i = 0; open && i < count; i++) {
            ssize_t sent = send(open[i], path ? request : "a", path ? (size_t)n : 1, MSG_NOSIGNAL | MSG_DONTWAIT);
            if ((sent < 0 && errno != EAGAIN) || (!path && recv(open[i], rest, sizeof rest, MSG_DONTWAIT) == 0)) {
                close(open[i]);
                open[i] = open_one();
                send(open[i], request, (size_t)n, MSG_NOSIGNAL);
            }
        }
        poll(NULL, 0, 20);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("hostile raw|flood|slow|deaf PORT [COUNT [PATH]]\n", stderr);
        return 2;
    }
    address.sin_port = htons((unsigned short)atoi(argv[2]));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int count = argc > 3 ? atoi(argv[3]) : 1;
    return !strcmp(argv[1], "raw") ? raw() : !strcmp(argv[1], "flood") ? flood(count) : keep(count, !strcmp(argv[1], "deaf") ? argv[4] : NULL);
}
