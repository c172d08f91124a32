/* test_sockets.c - ranks that find each other at an address: the checks of every transport, a rank that ends or is late, strangers, and what is
 * refused. The ranks are threads. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"

#include "comm/sockets.h"
#include "comm_checks.h"
#include "crew.h"

/* What the ranks of a test do, and where. */
struct gathering {
    struct tune_meeting_place place; /* of rank 0 */
    double timeout_s;
    int (*work)(struct tune_comm *c, int rank, void *context);
    void *context;
    int lies;                        /* this rank says that it is rank 1 of 3; 0: none */
    int stays;                       /* this rank does not come; 0: all come */
    int status[MOST];
    char error[MOST][2048];
    atomic_int first;                /* ranks that should print a common error */
};
struct guest {
    struct gathering *of;
    int rank;
};

static void *come(void *guest)
{
    const struct guest *g = guest;
    struct gathering *of = g->of;
    struct tune_meeting_place place = of->place;
    struct tune_transport t;
    place.rank = g->rank;
    if (of->lies == g->rank && of->lies > 0) {
        place.rank = 1;
        place.size = 3;
    }
    int status = tune_sockets_open(&t, &place);
    struct tune_comm *c = status == 0 ? tune_comm_open(&t, of->timeout_s) : NULL;
    status = c ? of->work(c, g->rank, of->context) : -1;
    of->status[g->rank] = status;
    snprintf(of->error[g->rank], sizeof *of->error, "%s", status < 0 ? tune_error_message() : "");
    if (c && status < 0)
        of->first += tune_comm_speaks(c, false);
    tune_comm_close(c);
    return NULL;
}

/* A port above which eight are free just now. */
static int free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && getsockname(fd, (struct sockaddr *)&at, &size) == 0);
    close(fd);
    int port = ntohs(at.sin_port);
    return port > 60000 ? port - 16 : port;
}

static void gather(struct gathering *g, int size)
{
    struct guest guests[MOST];
    pthread_t threads[MOST];
    uint64_t job;
    assert_ok(tune_random_fresh(&job, sizeof job));
    g->place.size = size;
    g->place.job = job;
    g->place.port = g->place.port ? g->place.port : free_port();
    g->place.address = g->place.address ? g->place.address : "127.0.0.1";
    g->place.timeout_s = g->place.timeout_s > 0 ? g->place.timeout_s : 100;
    g->timeout_s = g->timeout_s > 0 ? g->timeout_s : 100;
    for (int r = size - 1; r >= 0; r--) {
        guests[r] = (struct guest){g, r};
        if (r == 0 || r != g->stays)
            assert_int_equal(pthread_create(&threads[r], NULL, come, &guests[r]), 0);
    }
    for (int r = 0; r < size; r++)
        if (r == 0 || r != g->stays)
            pthread_join(threads[r], NULL);
}

static void all_well(struct gathering g, int size)
{
    gather(&g, size);
    for (int r = 0; r < size; r++)
        if (g.status[r] < 0)
            fail_msg("rank %d of %d: %s", r, size, g.error[r]);
}

static int try_large(struct tune_comm *c, int rank, void *context)
{
    (void)context;
    return try_count(c, rank, 2500003, true);
}

static void against_loops(void **state)
{
    (void)state;
    for (int size = 2; size <= 5; size++)
        all_well((struct gathering){.work = try_counts}, size);
    all_well((struct gathering){.work = try_sums, .place.address = "localhost"}, 3);
    all_well((struct gathering){.work = try_queue, .place.address = "0.0.0.0"}, 3); /* every address of the machine */
    all_well((struct gathering){.work = try_large}, 2);
}

/* ---- a rank that ends ---- */

/* Rank 1 gives up by an error of its own, before or within a collective. */
static int try_end(struct tune_comm *c, int rank, void *context)
{
    enum { MUCH = 3000000 };
    const int *kind = context;
    float *values = calloc(MUCH, sizeof *values);
    int status = 0;
    for (int k = 0; k < 3 && status == 0; k++) {
        struct tune_collective o = {.kind = (enum tune_collective_kind)*kind, .what = "each", .from = *kind == TUNE_REDUCE_SCATTER ? values : NULL,
                                    .to = values, .count = *kind == TUNE_BARRIER ? 0 : MUCH, .element = 4, .root = 1};
        if (*kind == TUNE_REDUCE_SCATTER)
            o.to = values + tune_comm_share(MUCH, rank, tune_comm_size(c));
        status = k == 2 && rank == 1 ? tune_error_set("rank 1 has no space left") : tune_comm_do(c, &o);
    }
    free(values);
    return status;
}

static void a_rank_ends(void **state)
{
    (void)state;
    for (int kind = 0; kind < TUNE_COLLECTIVES; kind++) {
        struct gathering g = {.work = try_end, .context = &kind};
        gather(&g, 4);
        for (int r = 0; r < 4; r++)
            if (g.status[r] == 0 || !strstr(g.error[r], r == 1 ? "rank 1 has no space left" : "rank 1 of 4 (process ") ||
                (r != 1 && !strstr(g.error[r], "has ended")))
                fail_msg("%s, rank %d: %s", tune_collective_name((enum tune_collective_kind)kind), r, g.error[r]);
        assert_int_equal(g.first, 2); /* rank 1 says its own, and one of the others what they saw */
    }
}

/* Rank 1 does not come to the barrier before the others have given up. Only rank 0 loses patience, and tells rank 2. */
static int try_late(struct tune_comm *c, int rank, void *context)
{
    sem_t *given_up = context;
    for (int k = 0; rank == 1 && k < 2; k++)
        while (sem_wait(given_up) < 0)
            continue;
    tune_comm_timeout(c, rank == 0 ? 0.2 : 100);
    int status = tune_comm_do(c, &(struct tune_collective){.kind = TUNE_BARRIER, .what = "the end of the step"});
    sem_post(given_up);
    return status;
}

static void a_rank_is_late(void **state)
{
    (void)state;
    sem_t given_up;
    assert_int_equal(sem_init(&given_up, 0, 0), 0);
    struct gathering g = {.work = try_late, .context = &given_up};
    gather(&g, 3);
    for (int r = 0; r < 3; r += 2)
        if (!strstr(g.error[r], "rank 1 of 3 (process ") || !strstr(g.error[r], r == 0 ? "did not come within 0.2 s" : "did not come within"))
            fail_msg("rank %d: %s", r, g.error[r]);
    /* It is late itself. It finds the others gone, or one of them tells it why they gave up. */
    if (!strstr(g.error[1], "has ended") && !strstr(g.error[1], "did not come within"))
        fail_msg("rank 1: %s", g.error[1]);
    sem_destroy(&given_up);
}

/* ---- before the start ---- */

static void refused(void **state)
{
    (void)state;
    struct gathering g = {.work = try_sums, .place.timeout_s = 5, .stays = 2};
    gather(&g, 3);
    assert_non_null(strstr(g.error[0], "rank 2 of 3 did not come within 5 s to rank 0 (MASTER_ADDR 127.0.0.1, MASTER_PORT "));
    assert_non_null(strstr(g.error[1], "rank 0 of 3 has ended before all ranks had come"));
    g = (struct gathering){.work = try_sums, .place.timeout_s = 3, .lies = 2};
    gather(&g, 3);
    assert_non_null(strstr(g.error[0], "two processes say that they are rank 1 (RANK)"));
    assert_true(strstr(g.error[1], "refuses rank 1 of 3: another process is that rank") || strstr(g.error[2], "refuses rank 1 of 3: another process"));
    g = (struct gathering){.work = try_sums, .place.timeout_s = 3, .lies = 3};
    gather(&g, 4);
    assert_non_null(strstr(g.error[0], "a process came that says it is rank 1 of 3; this is rank 0 of 4 (RANK, WORLD_SIZE)"));
    struct tune_transport t;
    struct tune_meeting_place place = {.rank = 1, .size = 2, .address = "127.0.0.1", .port = free_port(), .timeout_s = 0.1};
    assert_int_equal(tune_sockets_open(&t, &place), -1);
    assert_non_null(strstr(tune_error_message(), "rank 0 did not answer within 0.1 s at 127.0.0.1, ports "));
    place.address = "host..name";
    assert_int_equal(tune_sockets_open(&t, &place), -1);
    assert_non_null(strstr(tune_error_message(), "rank 0's host host..name (MASTER_ADDR) is not known here"));
}

/* ---- strangers ---- */

struct stranger {
    int port;
    atomic_bool over;
};

/* It comes to the ports behind the first, again and again, and says what it likes, or nothing. */
static void *disturb(void *of)
{
    struct stranger *s = of;
    static const char text[] = "GET / HTTP/1.1\r\nHost: here, and so much more that it is longer than the greeting of a rank would be, which has room "
                               "for an address of its own, and so it goes on and on to the end of this text, and after that there is no more to say\r\n";
    for (int k = 0; !s->over; k++) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)(s->port + 1 + k % 3))};
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) == 0 && k % 4 < 3)
            (void)!send(fd, text, k % 2 ? sizeof text : 5, MSG_NOSIGNAL);
        if (fd >= 0)
            close(fd);
        usleep(2000);
    }
    return NULL;
}

static void strangers(void **state)
{
    (void)state;
    struct stranger s = {.port = free_port()};
    pthread_t thread;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)s.port)};
    int taken = socket(AF_INET, SOCK_STREAM, 0); /* the first port, as torchrun's own */
    assert_true(bind(taken, (struct sockaddr *)&at, sizeof at) == 0 && listen(taken, 100) == 0);
    assert_int_equal(pthread_create(&thread, NULL, disturb, &s), 0);
    all_well((struct gathering){.work = try_sums, .place.port = s.port}, 4);
    s.over = true;
    pthread_join(thread, NULL);
    close(taken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_loops), cmocka_unit_test(a_rank_ends), cmocka_unit_test(a_rank_is_late),
        cmocka_unit_test(refused),       cmocka_unit_test(strangers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
