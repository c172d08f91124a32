/* sockets.c - bytes by TCP, from each rank to each. */
#include "comm/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/array.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/random.h"
#include "core/try.h"

/* PORTS: that rank 0 may take. DATA, WORD: the two connections of a pair. */
enum { PORTS = 8, DATA = 0, WORD = 1, LINKS = 2 };
static const uint64_t HELLO = 0x74756e6572616e6bULL, REFUSED = 0x74756e656e6f6e6fULL;
static const double ANSWER_S = 2; /* for a greeting that a peer sends at once */

/* The end of a rank. */
enum fate { ENDED, LATE };

/* Said on a new connection. Strangers do not know it. */
struct hello {
    uint64_t magic, job;
    int32_t rank, size, link, unused;
    struct sockaddr_storage at; /* where the other ranks find this one */
};

/* Rank 0's answer, when all have come. */
struct welcome {
    uint64_t magic, name; /* name: of the board */
};

/* The last word of a rank that gives up: on which other one. */
struct word {
    uint64_t magic;
    int32_t rank, fate;
};

/* Bytes to and from one rank. */
struct flow {
    const char *out;
    char *in;
    size_t out_left, in_left;
};

struct mesh {
    int rank, size;
    int (*links)[LINKS];  /* [size] connections; -1: none */
    struct flow *flows;   /* [size] of the call at work */
    struct pollfd *polls; /* [2 * size] the data connections, then those for words */
    double timeout_s;     /* of the last meeting */
    struct word blamed;   /* magic 0: nobody yet */
    atomic_int *bits;     /* memory that the ranks of a machine share */
};

/* ---- small messages, while the ranks find each other ---- */

static int socket_error(const char *what)
{
    return tune_error_set("ranks: %s: %s", what, strerror(errno));
}

static bool wait_for(int fd, short events, double until)
{
    for (;;) {
        double left = until - tune_clock_s();
        int n = poll(&(struct pollfd){.fd = fd, .events = events}, 1, left <= 0 ? 0 : left > 1 ? 1000 : (int)(left * 1000) + 1);
        if (n > 0)
            return true;
        if ((n < 0 && errno != EINTR) || left <= 0)
            return false;
    }
}

/* Send or receive all bytes. False: the peer has ended, or the time is over. */
static bool pass(int fd, bool out, void *bytes, size_t size, double until)
{
    for (char *at = bytes; size > 0;) {
        ssize_t n = out ? send(fd, at, size, MSG_NOSIGNAL) : recv(fd, at, size, 0);
        if (n > 0) {
            at += n;
            size -= (size_t)n;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR) || !wait_for(fd, out ? POLLOUT : POLLIN, until)) {
            return false;
        }
    }
    return true;
}

/* Small messages go at once, no call blocks, and a machine that is gone is noticed after some minutes. */
static void prepare(int fd)
{
    const int on = 1, idle_s = 60, every_s = 20, times = 3;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof every_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
}

static void set_port(struct sockaddr_storage *at, int port)
{
    if (at->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)at)->sin6_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in *)at)->sin_port = htons((uint16_t)port);
}

static int port_of(const struct sockaddr_storage *at)
{
    return ntohs(at->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)at)->sin6_port : ((const struct sockaddr_in *)at)->sin_port);
}

/* A socket that listens at this address; -1: errno says why. *at becomes its address and port. */
static int listen_at(struct sockaddr_storage *at, int backlog)
{
    const int on = 1, off = 0;
    socklen_t size = sizeof *at;
    int fd = socket(at->ss_family, SOCK_STREAM, 0);
    if (fd < 0)
        return -1;
    prepare(fd);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (at->ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, (struct sockaddr *)at, at->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in)) == 0 &&
        listen(fd, backlog) == 0 && getsockname(fd, (struct sockaddr *)at, &size) == 0)
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* A connection; -1: errno says why. */
static int connect_to(const struct sockaddr_storage *at, double until)
{
    int fd = socket(at->ss_family, SOCK_STREAM, 0), why = 0;
    socklen_t size = sizeof why;
    if (fd < 0)
        return -1;
    prepare(fd);
    if (connect(fd, (const struct sockaddr *)at, at->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in)) < 0 &&
        errno != EINPROGRESS)
        why = errno;
    else if (!wait_for(fd, POLLOUT, until))
        why = ETIMEDOUT;
    else
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &size);
    if (!why)
        return fd;
    close(fd);
    errno = why;
    return -1;
}

/* The same machine alone can reach such an address. */
static bool is_loopback(const struct sockaddr_storage *at)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}; /* IPv4 within IPv6 */
    const struct in6_addr *six = &((const struct sockaddr_in6 *)at)->sin6_addr;
    if (at->ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)at)->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(six) || (!memcmp(six, mapped, sizeof mapped) && six->s6_addr[12] == 127);
}

/* Every address of this machine, of the same family. */
static struct sockaddr_storage every_address(sa_family_t family)
{
    return (struct sockaddr_storage){.ss_family = family};
}

/* All ranks are told to meet on one machine. */
static bool on_one_machine(const struct tune_meeting_place *place)
{
    return !strncmp(place->address, "127.", 4) || !strcmp(place->address, "localhost") || !strcmp(place->address, "::1");
}

static int resolve(const struct tune_meeting_place *place, struct sockaddr_storage *at)
{
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int status = getaddrinfo(place->address, NULL, &wanted, &found);
    if (status)
        return tune_error_usage("ranks: rank 0's host %s (MASTER_ADDR) is not known here: %s", place->address, gai_strerror(status));
    memcpy(at, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return 0;
}

/* ---- finding each other ---- */

/* True if the peer has closed its end. */
static bool is_closed(int fd)
{
    char byte;
    ssize_t n = recv(fd, &byte, 1, MSG_PEEK);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* Take one connection of a rank above us. Strangers are sent away. 1: one came; 0: none yet. */
static int take(struct mesh *m, const struct tune_meeting_place *place, int listener, struct sockaddr_storage *addresses, double until)
{
    struct hello h;
    int fd = wait_for(listener, POLLIN, until) ? accept(listener, NULL, NULL) : -1;
    if (fd < 0)
        return 0;
    prepare(fd);
    if (!pass(fd, false, &h, sizeof h, tune_clock_s() + ANSWER_S) || h.magic != HELLO || h.job != place->job || h.link < 0 || h.link >= LINKS) {
        close(fd);
        return 0;
    }
    int other = h.size != m->size || h.rank <= m->rank || h.rank >= m->size, *link = other ? NULL : &m->links[h.rank][h.link];
    if (!other && *link >= 0 && is_closed(*link)) { /* it gave this connection up, and came again */
        close(*link);
        *link = -1;
    }
    uint64_t answer = other || *link >= 0 ? REFUSED : HELLO;
    bool answered = pass(fd, true, &answer, sizeof answer, tune_clock_s() + ANSWER_S);
    if (answer == REFUSED) {
        close(fd);
        return other ? tune_error_usage("ranks: a process came that says it is rank %d of %d; this is rank %d of %d (RANK, WORLD_SIZE)", h.rank,
                                        h.size, m->rank, m->size)
                     : tune_error_usage("ranks: two processes say that they are rank %d (RANK)", h.rank);
    }
    if (!answered) {
        close(fd);
        return 0;
    }
    *link = fd;
    if (addresses)
        addresses[h.rank] = h.at;
    return 1;
}

/* Until each rank above us has a connection of this kind. */
static int take_all(struct mesh *m, const struct tune_meeting_place *place, int listener, int link, struct sockaddr_storage *addresses, double until)
{
    for (int r = m->rank + 1; r < m->size; r++)
        while (m->links[r][link] < 0) {
            TRY(take(m, place, listener, addresses, until));
            if (m->links[r][link] < 0 && tune_clock_s() > until)
                return tune_error_set("ranks: rank %d of %d did not come within %g s to rank %d (MASTER_ADDR %s, MASTER_PORT %d); `ranks` 1 trains alone",
                                      r, m->size, place->timeout_s, m->rank, place->address, place->port);
        }
    return 0;
}

/* A connection to a rank that listens there; -1: errno says why. listener: NULL, or the socket where the others reach us. The first call opens it,
 * at the address by which we reach rank 0. */
static int call(const struct mesh *m, const struct tune_meeting_place *place, const struct sockaddr_storage *at, int link, int *listener, double until)
{
    struct hello h = {.magic = HELLO, .job = place->job, .rank = m->rank, .size = m->size, .link = link};
    struct sockaddr_storage free_port;
    socklen_t size = sizeof h.at, more = sizeof free_port;
    uint64_t answer = 0;
    double patience = tune_clock_s() + 2 * ANSWER_S;
    int fd = connect_to(at, listener && patience < until ? patience : until); /* rank 0 may be behind another port */
    if (fd < 0)
        return -1;
    if (listener && getsockname(fd, (struct sockaddr *)&h.at, &size) == 0) {
        free_port = on_one_machine(place) ? h.at : every_address(h.at.ss_family);
        set_port(&free_port, 0);
        if (*listener < 0)
            *listener = listen_at(&free_port, 2 * m->size + 16);
        else
            getsockname(*listener, (struct sockaddr *)&free_port, &more);
        set_port(&h.at, port_of(&free_port));
    }
    if ((!listener || *listener >= 0) && pass(fd, true, &h, sizeof h, patience) && pass(fd, false, &answer, sizeof answer, patience) && answer == HELLO)
        return fd;
    close(fd);
    errno = answer == REFUSED ? EPROTO : ECONNREFUSED; /* the latter: somebody else's port */
    return -1;
}

/* Rank 0: take the first free port. */
static int take_port(const struct mesh *m, const struct tune_meeting_place *place, int *listener)
{
    struct sockaddr_storage at;
    TRY(resolve(place, &at));
    at = on_one_machine(place) ? at : every_address(AF_INET6); /* of IPv4 too */
    for (int k = 0; k < PORTS && *listener < 0; k++) {
        set_port(&at, place->port + k);
        *listener = listen_at(&at, 2 * m->size + 16);
        if (*listener < 0 && at.ss_family == AF_INET6 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL) && !on_one_machine(place)) {
            at = every_address(AF_INET);
            k--;
        }
    }
    return *listener >= 0 ? 0 : tune_error_cannot("ranks: rank 0 cannot listen on a port from %d to %d (MASTER_PORT): %s", place->port,
                                                  place->port + PORTS - 1, strerror(errno));
}

/* Rank 0: tell a rank where the others are. Ranks on our machine that reached us by a loopback address are where that rank reached us. */
static bool tell(const struct mesh *m, int rank, struct welcome *w, const struct sockaddr_storage *addresses, double until)
{
    int fd = m->links[rank][DATA];
    bool good = pass(fd, true, w, sizeof *w, until);
    for (int r = 0; good && r < m->size; r++) {
        struct sockaddr_storage at = addresses[r], ours;
        socklen_t size = sizeof ours;
        if (r > 0 && is_loopback(&at) && getsockname(fd, (struct sockaddr *)&ours, &size) == 0 && !is_loopback(&ours)) {
            set_port(&ours, port_of(&at));
            at = ours;
        }
        good = pass(fd, true, &at, sizeof at, until);
    }
    return good;
}

/* Rank 0: wait for all, and tell each where the others are. */
static int host(struct mesh *m, const struct tune_meeting_place *place, struct sockaddr_storage *addresses, struct welcome *w, int *listener,
                double until)
{
    TRY(take_port(m, place, listener));
    TRY(take_all(m, place, *listener, DATA, addresses, until));
    for (int r = 1; r < m->size; r++)
        if (!tell(m, r, w, addresses, until))
            return tune_error_set("ranks: rank %d of %d has ended before all had come", r, m->size);
    return 0;
}

/* The others: find rank 0, and learn where the rest is. */
static int visit(struct mesh *m, const struct tune_meeting_place *place, struct sockaddr_storage *addresses, struct welcome *w, int *listener,
                 double until)
{
    struct sockaddr_storage at;
    TRY(resolve(place, &at));
    for (int k = 0; m->links[0][DATA] < 0; k = (k + 1) % PORTS) {
        set_port(&at, place->port + k);
        m->links[0][DATA] = call(m, place, &at, DATA, listener, until);
        if (m->links[0][DATA] < 0 && errno == EPROTO)
            return tune_error_usage("ranks: rank 0 at %s refuses rank %d of %d: another process is that rank, or is of another number of ranks "
                                    "(RANK, WORLD_SIZE)", place->address, m->rank, m->size);
        if (m->links[0][DATA] < 0 && tune_clock_s() > until)
            return tune_error_set("ranks: rank 0 did not answer within %g s at %s, ports %d to %d (MASTER_ADDR, MASTER_PORT): %s; `ranks` 1 trains alone",
                                  place->timeout_s, place->address, place->port, place->port + PORTS - 1, strerror(errno));
        if (m->links[0][DATA] < 0 && k == PORTS - 1)
            nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    int fd = m->links[0][DATA];
    if (!pass(fd, false, w, sizeof *w, until) || w->magic != HELLO || !pass(fd, false, addresses, (size_t)m->size * sizeof *addresses, until))
        return tune_error_set("ranks: rank 0 of %d has ended before all ranks had come, or did not hear of all within %g s", m->size, place->timeout_s);
    addresses[0] = at;
    return 0;
}

/* A connection of each kind to every other rank. */
static int meet_all(struct mesh *m, const struct tune_meeting_place *place, struct welcome *w, int *listener)
{
    double until = tune_clock_s() + place->timeout_s;
    struct sockaddr_storage *addresses = tune_zeroed((size_t)m->size, sizeof *addresses, "addresses of ranks");
    int status = addresses ? (m->rank == 0 ? host : visit)(m, place, addresses, w, listener, until) : -1;
    for (int r = 0; status == 0 && r < m->rank; r++)
        for (int link = r == 0 ? WORD : DATA; status == 0 && link < LINKS; link++) {
            m->links[r][link] = call(m, place, &addresses[r], link, NULL, until);
            if (m->links[r][link] < 0)
                status = tune_error_set("ranks: rank %d cannot reach rank %d of %d: %s; a firewall between their machines must let them through",
                                        m->rank, r, m->size, strerror(errno));
        }
    for (int link = DATA; status == 0 && link < LINKS; link++)
        status = take_all(m, place, *listener, link, NULL, until);
    free(addresses);
    return status;
}

/* ---- moving bytes ---- */

/* Why the data connection with a rank ended: that rank has, or it gave another one up. Its word, or the end of the words, comes soon. */
static void learn(struct mesh *m, int rank)
{
    struct word said = {0};
    if (!pass(m->links[rank][WORD], false, &said, sizeof said, tune_clock_s() + ANSWER_S) || said.magic != HELLO || said.rank < 0 ||
        said.rank >= m->size || said.rank == m->rank)
        said = (struct word){HELLO, rank, ENDED};
    m->blamed = said;
}

static int blame(struct mesh *m, int *late)
{
    *late = m->blamed.rank;
    return m->blamed.fate == ENDED ? tune_error_set("has ended") : tune_error_set("did not come within %g s", m->timeout_s);
}

/* Move what can be moved now between us and a rank. -1: the connection has ended. */
static int move(struct flow *f, int fd, short ready)
{
    if (ready & POLLOUT && f->out_left > 0) {
        ssize_t n = send(fd, f->out, f->out_left, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return -1;
        f->out += n > 0 ? n : 0;
        f->out_left -= n > 0 ? (size_t)n : 0;
    }
    if (ready & (POLLIN | POLLHUP | POLLERR) && f->in_left > 0) {
        ssize_t n = recv(fd, f->in, f->in_left, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return -1;
        f->in += n > 0 ? n : 0;
        f->in_left -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Say what to wait for. Returns how many ranks have bytes to move. */
static int prepare_polls(struct mesh *m, int *first)
{
    int open = 0;
    for (int r = 0; r < m->size; r++) {
        const struct flow *f = &m->flows[r];
        short events = (short)((f->in_left > 0 ? POLLIN : 0) | (f->out_left > 0 ? POLLOUT : 0));
        m->polls[r] = (struct pollfd){.fd = events ? m->links[r][DATA] : -1, .events = events};
        m->polls[m->size + r] = (struct pollfd){.fd = m->links[r][WORD], .events = POLLIN};
        *first = events && open == 0 ? r : *first;
        open += events != 0;
    }
    return open;
}

/* Move the bytes of all flows. The time counts from the last byte that moved. */
static int run(struct mesh *m, double timeout_s, int *late)
{
    double moved = tune_clock_s();
    m->timeout_s = timeout_s;
    for (int first = -1; !m->blamed.magic && prepare_polls(m, &first) > 0;) {
        double left = moved + timeout_s - tune_clock_s();
        if (left <= 0) {
            m->blamed = (struct word){HELLO, first, LATE};
            break;
        }
        if (poll(m->polls, 2 * (nfds_t)m->size, left > 1 ? 1000 : (int)(left * 1000) + 1) < 0 && errno != EINTR)
            return socket_error("poll");
        for (int r = 0; r < m->size && !m->blamed.magic; r++) {
            size_t before = m->flows[r].in_left + m->flows[r].out_left;
            if (m->polls[r].revents && move(&m->flows[r], m->links[r][DATA], m->polls[r].revents) < 0)
                learn(m, r);
            if (m->flows[r].in_left + m->flows[r].out_left < before)
                moved = tune_clock_s();
        }
        for (int r = 0; r < m->size && !m->blamed.magic; r++) /* a word, or the end of a rank, that we may not need any more */
            if (m->polls[m->size + r].revents && is_closed(m->links[r][WORD])) {
                close(m->links[r][WORD]);
                m->links[r][WORD] = -1;
            } else if (m->polls[m->size + r].revents) {
                learn(m, r);
            }
    }
    return m->blamed.magic ? blame(m, late) : 0;
}

static void set_flow(struct mesh *m, int rank, const void *out, size_t out_bytes, void *in, size_t in_bytes)
{
    m->flows[rank] = rank == m->rank ? (struct flow){0} : (struct flow){.out = out, .in = in, .out_left = out_bytes, .in_left = in_bytes};
}

static int sockets_meet(void *own, const void *mine, void *all, size_t bytes, double timeout_s, int *late)
{
    struct mesh *m = own;
    memcpy((char *)all + (size_t)m->rank * bytes, mine, bytes);
    for (int r = 0; r < m->size; r++)
        set_flow(m, r, mine, bytes, (char *)all + (size_t)r * bytes, bytes);
    return run(m, timeout_s, late);
}

static int sockets_exchange(void *own, const void *const *send, const size_t *send_bytes, void *const *receive, const size_t *receive_bytes,
                            int *late)
{
    struct mesh *m = own;
    for (int r = 0; r < m->size; r++)
        set_flow(m, r, send[r], send_bytes[r], receive[r], receive_bytes[r]);
    return run(m, m->timeout_s, late);
}

static int sockets_gather(void *own, void *all, const size_t *at, int *late)
{
    struct mesh *m = own;
    char *bytes = all;
    for (int r = 0; r < m->size; r++)
        set_flow(m, r, bytes + at[m->rank], at[m->rank + 1] - at[m->rank], bytes + at[r], at[r + 1] - at[r]);
    return run(m, m->timeout_s, late);
}

static int sockets_broadcast(void *own, void *data, size_t bytes, int root, int *late)
{
    struct mesh *m = own;
    for (int r = 0; r < m->size; r++)
        set_flow(m, r, data, m->rank == root ? bytes : 0, data, r == root ? bytes : 0);
    return run(m, m->timeout_s, late);
}

static int sockets_bits(void *own, int set)
{
    struct mesh *m = own;
    return atomic_fetch_or(m->bits, set);
}

/* Memory that the ranks of this machine share. All open its file before one removes it. Without it, each rank says what happened. */
static int share_board(struct mesh *m, const struct welcome *w, double timeout_s)
{
    char path[64], none[1] = {0}, all[m->size];
    int late = -1;
    snprintf(path, sizeof path, "/dev/shm/tune-ranks-%016llx", (unsigned long long)w->name);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool shared = fd >= 0 && ftruncate(fd, sizeof *m->bits) == 0;
    void *board = mmap(NULL, sizeof *m->bits, PROT_READ | PROT_WRITE, MAP_SHARED | (shared ? 0 : MAP_ANONYMOUS), shared ? fd : -1, 0);
    int status = board == MAP_FAILED ? socket_error("memory") : 0;
    m->bits = board == MAP_FAILED ? NULL : board;
    if (fd >= 0)
        close(fd);
    if (status == 0 && sockets_meet(m, none, all, 1, timeout_s, &late) < 0)
        status = tune_error_prefix("ranks: rank %d of %d: ", late, m->size);
    unlink(path);
    return status;
}

/* failed: tell the others whom we waited for, before they see that we are gone. */
static void sockets_close(void *own, int failed)
{
    struct mesh *m = own;
    for (int link = WORD; link >= DATA; link--)
        for (int r = 0; m->links && r < m->size; r++)
            if (m->links[r][link] >= 0) {
                if (failed && link == WORD && m->blamed.magic)
                    pass(m->links[r][WORD], true, &m->blamed, sizeof m->blamed, 0);
                close(m->links[r][link]);
            }
    if (m->bits)
        munmap(m->bits, sizeof *m->bits);
    free(m->links);
    free(m->flows);
    free(m->polls);
    free(m);
}

int tune_sockets_open(struct tune_transport *t, const struct tune_meeting_place *place)
{
    struct welcome w = {.magic = HELLO};
    int listener = -1;
    struct mesh *m = tune_zeroed(1, sizeof *m, "ranks");
    if (!m)
        return -1;
    m->rank = place->rank;
    m->size = place->size;
    m->links = tune_zeroed((size_t)m->size, sizeof *m->links, "ranks");
    m->flows = tune_zeroed((size_t)m->size, sizeof *m->flows, "ranks");
    m->polls = tune_zeroed((size_t)m->size, 2 * sizeof *m->polls, "ranks");
    for (int r = 0; m->links && r < m->size; r++)
        m->links[r][DATA] = m->links[r][WORD] = -1;
    int status = m->links && m->flows && m->polls ? tune_random_fresh(&w.name, sizeof w.name) : -1;
    status = status == 0 ? meet_all(m, place, &w, &listener) : status;
    if (listener >= 0)
        close(listener);
    if (status < 0 || share_board(m, &w, place->timeout_s) < 0) {
        sockets_close(m, 1);
        return -1;
    }
    *t = (struct tune_transport){
        .name = "sockets", .own = m, .rank = m->rank, .size = m->size, .meet = sockets_meet, .exchange = sockets_exchange,
        .gather = sockets_gather, .broadcast = sockets_broadcast, .bits = sockets_bits, .close = sockets_close,
    };
    return 0;
}
