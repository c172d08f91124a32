/* hold_cpu.c - holds the socket that stands for processor N, as sweeps do while they measure, without being one; says so,
 * and waits to be killed.
 *
 *     hold_cpu N[/next] */
#include <stdio.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int n = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "tune.c/cpu/%s", argc > 1 ? argv[1] : "0");
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) < 0) {
        perror(argv[0]);
        return 1;
    }
    puts("held");
    fflush(stdout);
    pause();
    return 0;
}
