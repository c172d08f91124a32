/* hold_cpu.c - holds the socket that stands for processor N, as sweeps do while they measure, without being one; says so,
 * and waits to be killed. It first waits until sweeps let go of the processor and of that socket.
 *
 *     hold_cpu N[/next] */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Its descriptor; ends the program on errors. */
static int hold(const char *program, const char *socket_name)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int n = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "tune.c/cpu/%s", socket_name);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    while (fd < 0 || bind(fd, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) < 0) {
        if (fd < 0 || errno != EADDRINUSE) {
            perror(program);
            exit(1);
        }
        usleep(1000);
    }
    return fd;
}

int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "0", *slash = strchr(which, '/');
    char number[16] = "";
    hold(argv[0], which);
    if (slash) {
        snprintf(number, sizeof number, "%.*s", (int)(slash - which), which);
        close(hold(argv[0], number));
    }
    puts("held");
    fflush(stdout);
    pause();
    return 0;
}
