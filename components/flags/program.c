/* program.c - what only programs may do: print help, end with an exit code, catch signals.
 *
 * Not part of libtune.a. Its variables are global, because signals belong to the process. */
#include "flags/program.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/failure.h"
#include "core/print.h"
#include "core/version.h"
#include "flags/known.h"
#include "flags/find.h"
#include "machine/child.h"
#include "machine/host.h"
#include "machine/ranks.h"
#include "machine/slurm.h"

/* The Makefile links these into recipes; tools do not have them. */
extern const char tune_recipe_source[] __attribute__((weak));
extern const char tune_recipe_source_end[] __attribute__((weak));
extern const char tune_recipe_defaults[] __attribute__((weak)); /* set for a recipe that recipe.mk
                                                                 * built */
/* Functions of OpenMP's run-time library and of OpenBLAS, in programs that compute. */
extern int omp_get_num_places(void) __attribute__((weak));
extern int omp_get_place_num_procs(int place) __attribute__((weak));
extern void omp_get_place_proc_ids(int place, int *ids) __attribute__((weak));
extern char *openblas_get_config(void) __attribute__((weak));

static const char *program = "program";
static const struct tune_flags *options_of;
static volatile int stop_signal, starting;
static bool in_job; /* --requeue, in a job of Slurm */
static struct tune_failure failure;
static struct tune_launched launched; /* by mpirun, srun or torchrun */
static double began_s;

/* Flush stdout, or fail: with a full disk, `> help.txt` must not succeed. */
static void end_well(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        exit(0);
    fprintf(stderr, "%s: cannot write to standard output: %s\n", program, strerror(errno));
    exit(1);
}

static void describe(const struct tune_flags *flags, const char *what)
{
    cJSON *json = GET(tune_flags_describe(flags));
    char *text = cJSON_AddStringToObject(json, "what", what) ? cJSON_Print(json) : NULL;
    if (!text) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory while printing --describe");
        tune_program_fail();
    }
    puts(text);
    cJSON_free(text);
    cJSON_Delete(json);
}

static void list_models(void)
{
    struct tune_known_model *models;
    int count = MUST(tune_known_models(&models));
    int name = 4, id = 6;
    for (int i = 0; i < count; i++) {
        int n = (int)strlen(models[i].name), m = (int)strlen(models[i].hub_id);
        name = n > name ? n : name;
        id = m > id ? m : id;
    }
    printf("%-*s  %-*s  parameters   context  here\n", name, "name", id, "Hub id");
    for (int i = 0; i < count; i++) {
        char folder[TUNE_PATH_MAX];
        bool here = tune_model_locate(models[i].hub_id, folder);
        printf("%-*s  %-*s  %8.1f M  %8d  %s\n", name, models[i].name, id, models[i].hub_id,
               (double)models[i].parameters / 1e6, models[i].context, here ? folder : "no");
    }
    if (count == 0)
        puts("(none: no defaults/models beside this program; set TUNE_DEFAULTS)");
    free(models);
}

static void print_version(void)
{
    printf("%s, tune.c %s, %s\n", program, TUNE_VERSION, TUNE_COMPILER);
}

/* OMP_PROC_BIND and OMP_PLACES have bound this thread and its children to one place. Allow all
 * places again. */
static void unbind(void)
{
    cpu_set_t all;
    CPU_ZERO(&all);
    for (int place = 0; omp_get_num_places && place < omp_get_num_places(); place++) {
        int count = omp_get_place_num_procs(place), ids[CPU_SETSIZE];
        if (count > CPU_SETSIZE)
            return;
        omp_get_place_proc_ids(place, ids);
        for (int i = 0; i < count; i++)
            CPU_SET(ids[i], &all);
    }
    if (CPU_COUNT(&all) > 0)
        sched_setaffinity(0, sizeof all, &all);
}

/* Start the program at path with the words that this process was started with. The caller's argv
 * may have others: `studio` takes the words of a command out. It returns only on failure. */
static void start_again(const char *path)
{
    FILE *f = fopen("/proc/self/cmdline", "rbe");
    char **words = NULL, *word = NULL;
    size_t count = 0, room = 0;
    while (f && getdelim(&word, &room, 0, f) > 0) {
        char **more = realloc(words, (count + 2) * sizeof *more);
        if (!more)
            break;
        words = more;
        words[count++] = word;
        words[count] = word = NULL;
        room = 0;
    }
    if (f && feof(f) && count > 0)
        execv(path, words);
    while (count > 0)
        free(words[--count]);
    free(words);
    free(word);
    if (f)
        fclose(f);
}

/* Two libraries read their settings before main. So the program sets them and starts itself once
 * more, but not under valgrind, which could not follow it. The user's own settings are kept.
 * OpenMP: its threads spin for milliseconds before they sleep. On a busy machine they take cores
 * from the threads that they wait for. Measured beside one busy process: 11 times slower; with a
 * short spin, 2 to 4 times slower. On an idle machine a short spin costs nothing. OpenBLAS: it
 * starts threads of its own, which we do not use (devices/cpu/blas.c). With little address space
 * (ulimit -v) they ask for memory forever. */
static void settle_threads(void)
{
    static const char *const settings[] = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"};
    const char *preload = getenv("LD_PRELOAD");
    char path[TUNE_PATH_MAX]; /* under its own name, which the process keeps */
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    bool spins = omp_get_num_places, pool = openblas_get_config && !getenv("OPENBLAS_NUM_THREADS");
    if (n <= 0 || (preload && strstr(preload, "vgpreload")))
        return;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        spins = spins && !getenv(settings[i]);
    path[n] = 0;
    if (spins || pool)
        unbind();
    if (spins && (setenv("GOMP_SPINCOUNT", "2000", 1) < 0 || setenv("KMP_BLOCKTIME", "0", 1) < 0)) /* the names in GNU's and
                                                                                                    * LLVM's library */
        return;
    if (pool && setenv("OPENBLAS_NUM_THREADS", "1", 1) < 0)
        return;
    if (spins || pool)
        start_again(path); /* returns only on failure; then the threads keep their settings */
}

/* The name of the file that is mapped at address `at`, from the kernel's list. It uses only calls
 * that a signal handler may make. path receives the name; false: nothing is mapped there. */
static bool mapped_file(uintptr_t at, char path[TUNE_PATH_MAX])
{
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), field = 0; /* begin-end perms offset device inode path */
    uintptr_t ends[2] = {0, 0};
    size_t n = 0;
    char few[512];
    ssize_t got;
    bool found = false;
    while (!found && fd >= 0 && (got = read(fd, few, sizeof few)) > 0)
        for (ssize_t i = 0; i < got && !found; i++) {
            char c = few[i];
            if (c == '\n') {
                found = at >= ends[0] && at < ends[1] && n > 0;
                path[n] = 0;
                field = 0;
                ends[0] = ends[1] = n = 0;
            } else if (field < 2) {
                field += c == '-' || c == ' ';
                if (c != '-' && c != ' ')
                    ends[field] = ends[field] * 16 + (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
            } else if (c == '/' || n > 0) {
                if (n < TUNE_PATH_MAX - 1)
                    path[n++] = c;
            }
        }
    if (fd >= 0)
        close(fd);
    return found;
}

static void say_part(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
}

/* A mapped file was cut short, or its disk failed. The message says so in place of "Bus error".
 * Nothing can be saved from here: the thread may hold a lock, or be in the middle of a step.
 * Usually tune_rows_uncut finds a cut before it reads a row, and reports an ordinary error. Only a
 * cut in the middle of a row comes here. */
static void note_bus_error(int number, siginfo_t *info, void *context)
{
    static char path[TUNE_PATH_MAX];
    (void)number;
    (void)context;
    say_part(program);
    if (mapped_file((uintptr_t)info->si_addr, path)) {
        say_part(": ");
        say_part(path);
        say_part(" was cut short while it was being read, or its disk failed; put the whole file there and start again\n");
    } else {
        say_part(": bus error\n");
    }
    _exit(1);
}

/* Print a message without control characters, except its line breaks. It is one write, because
 * other ranks may print too. */
static void put_message(const char *lead, const char *text)
{
    char *plain = NULL;
    size_t size;
    FILE *out = open_memstream(&plain, &size);
    if (out) {
        tune_print_plain(out, text, "\n");
        fclose(out);
    }
    if (plain && options_of)
        tune_flags_name_options(options_of, plain);
    if (launched.rank > 0) {
        struct tune_host host;
        tune_host_read(&host);
        fprintf(stderr, "%s: rank %d of %d on %s: %s%s\n", program, launched.rank, launched.size, host.name, lead,
                plain ? plain : "failed, and has no memory to say why");
    } else
        fprintf(stderr, "%s: %s%s\n", program, lead, plain ? plain : "failed, and has no memory to say why");
    free(plain);
}

static volatile pid_t launcher; /* mpirun, in a process group of its own */

/* mpirun passes these two on to the ranks. At any other signal it ends them within a second, and they could not save. */
static void pass_on(int number)
{
    kill(launcher, number == SIGINT ? SIGUSR2 : SIGUSR1);
}

/* --ranks: mpirun starts this program again so many times. This process waits, and passes signals on. */
static void launch(const struct tune_flags *flags, int argc, char **argv)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    enum { SIGNALS = sizeof signals / sizeof *signals };
    struct sigaction action = {.sa_handler = pass_on};
    sigset_t blocked, before;
    int status;
    if (flags->ranks <= 1 || launched.size > 0)
        return;
    sigemptyset(&action.sa_mask);
    sigemptyset(&blocked);
    for (int i = 0; i < SIGNALS; i++)
        sigaddset(&blocked, signals[i]);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    launcher = fork();
    if (launcher == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        setpgid(0, 0);
        sigprocmask(SIG_SETMASK, &before, NULL);
        if (!freopen("/dev/null", "r", stdin) || setenv("TUNE_NOTES_SAID", "1", 1) < 0 || tune_ranks_launch(flags->ranks, argc, argv) < 0)
            tune_program_fail();
    }
    if (launcher < 0) {
        tune_error_cannot("cannot start a process: %s", strerror(errno));
        tune_program_fail();
    }
    for (int i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &action, NULL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    while (waitpid(launcher, &status, 0) < 0 && errno == EINTR)
        ;
    exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* A program with --ranks is one of those that a launcher started, unless it shall be alone. Then rank 0 prints. */
static void join_ranks(const struct tune_flags *flags)
{
    const struct tune_option *o = flags->options;
    while (o->name && strcmp(o->name, "ranks"))
        o++;
    if (!o->name || flags->ranks == 1)
        return;
    launched = tune_ranks_launched();
    if (launched.rank > 0 && !freopen("/dev/null", "w", stdout))
        exit(1);
}

static void give_up(const char *why)
{
    put_message("", why);
    _exit(1);
}

void tune_program_start(int argc, char **argv, struct tune_flags *flags, const struct tune_option *options,
                        const struct tune_property *properties, const char *what)
{
    int guarded = tune_child_guard(argc, argv); /* this process was started to guard a program */
    if (guarded >= 0)
        exit(guarded);
    settle_threads();
    options_of = flags;
    flags->log.started_s = tune_moment_now().wall_s;
    flags->failure = &failure;
    flags->give_up = give_up;
    const char *ours = tune_recipe_defaults; /* if missing, it would be 0 */
    if (ours)
        setenv("TUNE_DEFAULTS", ours, 0);
    const char *source = tune_recipe_source, *source_end = tune_recipe_source_end; /* if missing, both would be
                                                                                    * 0 */
    if (source < source_end) {
        flags->log.source = source;
        flags->log.source_size = (size_t)(source_end - source);
    }
    /* if a standard stream is closed, the next file opened gets its number, and printed text would
     * go into it */
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd)
            exit(1);
    began_s = tune_clock_s();
    signal(SIGXFSZ, SIG_IGN); /* for `ulimit -f`: the write then fails with an error, which is
                               * reported */
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    program = argc <= 0 ? program : slash ? slash + 1 : argv[0];
    struct sigaction bus = {.sa_sigaction = note_bus_error, .sa_flags = SA_SIGINFO | (int)SA_RESETHAND};
    sigemptyset(&bus.sa_mask);
    sigaction(SIGBUS, &bus, NULL);
    MUST(tune_flags_parse(flags, argc, argv, options, properties));
    join_ranks(flags);
    const char *note;
    bool said = launched.rank > 0 || getenv("TUNE_NOTES_SAID");
    for (int i = 0; !said && tune_flags_wish(flags) == TUNE_WISH_RUN && (note = tune_flags_note(flags, i)); i++)
        if (*note == '#') /* a line of the header */
            fprintf(stderr, "%s\n", note);
        else
            put_message("", note);
    switch (tune_flags_wish(flags)) {
    case TUNE_WISH_RUN:
        if (MUST(tune_flags_serve(flags, stdout)) == 1)
            break;
        if (flags->resume_finished)
            printf("%s: the run in %s came to its end; there is nothing left to do\n", program, flags->log.folder);
        else if (flags->loader.stop_at_step > 0 && flags->resume_step >= flags->loader.stop_at_step)
            printf("%s: the run in %s is at step %lld, which is not before --stop-at-step %lld; there is nothing to do\n", program,
                   flags->log.folder, (long long)flags->resume_step, (long long)flags->loader.stop_at_step);
        else {
            launch(flags, argc, argv);
            return;
        }
        break;
    case TUNE_WISH_HELP:
    case TUNE_WISH_HELP_ALL:
        tune_flags_help(flags, what, stdout);
        break;
    case TUNE_WISH_DESCRIBE:
        describe(flags, what);
        break;
    case TUNE_WISH_LIST_MODELS:
        list_models();
        break;
    case TUNE_WISH_VERSION:
        print_version();
        break;
    case TUNE_WISH_SHOW_CONFIG:
        if (tune_flags_show_config(flags, stdout) > 0 && fflush(stdout) == 0)
            exit(TUNE_ERROR_USAGE);
        break;
    }
    end_well();
}

static volatile sig_atomic_t end_noted;

static void note_end(int number)
{
    (void)number;
    end_noted = 1;
}

/* True if rank 0 prints the error that this rank has. It may be slower. So wait until it begins to
 * print, or ends: of that mpirun tells by SIGCONT and SIGTERM. The longer this rank has run, the
 * longer it waits. */
static bool told_by_rank_0(void)
{
    struct sigaction wake = {.sa_handler = note_end};
    struct tune_comm *comm = options_of ? options_of->comm : NULL;
    double wait_s = comm || launched.by == TUNE_BY_MPI ? fmin(2 + 3 * (tune_clock_s() - began_s), 20) : 1;
    if (comm && options_of->timeout_s > 0)
        wait_s = fmin(wait_s, options_of->timeout_s / 2); /* before rank 0 gives up waiting for this rank */
    if (stop_signal)
        wait_s = fmin(wait_s, 0.5); /* it may be the launcher's, which kills a second later */
    struct timespec left = {.tv_sec = (time_t)wait_s, .tv_nsec = (long)(fmod(wait_s, 1) * 1e9)}, more = {.tv_nsec = 500000000};
    int told = 0;
    sigaction(SIGCONT, &wake, NULL);
    sigaction(SIGTERM, &wake, NULL);
    if (comm)
        options_of->comm_wait_told(comm, wait_s);
    else
        nanosleep(&left, NULL);
    while (end_noted && nanosleep(&more, &more) < 0 && errno == EINTR)
        ; /* the signals also come when another rank has died, and rank 0 is about to say so */
    if (comm)
        told = options_of->comm_wait_told(comm, 0);
    return told > 0 || (told == 0 && end_noted);
}

void tune_program_fail(void)
{
    struct tune_error why;
    char saved[2 * TUNE_PATH_MAX + 256] = "";
    tune_error_save(&why);
    enum tune_error_kind kind = why.kind;
    bool follows = launched.rank > 0;
    if (follows && failure.tell && failure.tell(failure.log, why.text) < 0)
        put_message("and ", tune_error_message());
    bool told = follows && told_by_rank_0();
    bool speaks = options_of && options_of->comm_speaks ? options_of->comm_speaks(options_of->comm, told) : !told;
    fflush(stdout); /* keeps the order if both go to one place */
    if (speaks)
        put_message("", *why.text ? why.text : "failed without saying why, which is our own bug");
    if (speaks && kind == TUNE_ERROR_USAGE)
        fprintf(stderr, "%s: see %s --help\n", program, program);
    if ((speaks || !follows) && failure.save && failure.save(failure.work, saved, sizeof saved) < 0)
        put_message("and ", tune_error_message());
    fflush(stdout);
    if (*saved)
        put_message("", saved);
    if (!follows && failure.tell && failure.tell(failure.log, why.text) < 0) /* printed after the error message,
                                                                  * which it explains */
        put_message("and ", tune_error_message());
    if (options_of && options_of->comm && options_of->comm_wait_saved)
        options_of->comm_wait_saved(options_of->comm, options_of->timeout_s);
    exit(kind == TUNE_ERROR_NONE ? 1 : (int)kind);
}

static void note_signal(int number)
{
    number = number == SIGUSR1 ? SIGTERM : number == SIGUSR2 ? SIGINT : number; /* see pass_on */
    if (in_job && number == SIGTERM && stop_signal == SIGTERM)
        return; /* Slurm sends it before the limit, and at the limit: the save goes on */
    if (stop_signal && stop_signal != SIGPIPE) /* the logger sets SIGPIPE: see
                                                * tune_program_catch_signals */
        _exit(128 + number);
    if (starting && !in_job) { /* a job comes to its end in order, to put itself back */
        if (launched.rank > 0)
            _exit(128 + number);
        say_part(program);
        say_part(": ended by a signal before the run began; nothing was made\n");
        _exit(128 + number);
    }
    __atomic_store_n(&stop_signal, number, __ATOMIC_RELAXED); /* the loader's thread may be reading it */
}

void tune_program_catch_signals(struct tune_flags *flags)
{
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (launched.size > 0) {
        sigaction(SIGUSR1, &action, NULL);
        sigaction(SIGUSR2, &action, NULL);
    }
    struct sigaction hangup;
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) /* under nohup it is ignored
                                                                                * already */
        sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* for `| head`: the write fails, and the logger stores it as this
                               * signal */
    in_job = flags->requeue && tune_slurm_job();
    flags->stop_signal = &stop_signal;
    flags->starting = &starting;
}

/* With --requeue, in a job of Slurm: after a signal, put the job back into the queue. Slurm sends
 * its own SIGTERM then, which must not cut off the last lines. The return value is the exit code. */
static int requeue(const struct tune_progress *at, int code)
{
    const char *job = tune_slurm_job();
    if (!options_of || !options_of->requeue || !job || !at->signal || at->signal == SIGPIPE)
        return code;
    signal(SIGTERM, SIG_IGN);
    int status = tune_slurm_requeue(job, at->step <= options_of->resume_step);
    if (status == 0)
        printf("%s: job %s is back in the queue; it goes on from step %lld\n", program, job, (long long)at->step);
    else if (status == 1)
        printf("%s: job %s was left alone: it was cancelled, or Slurm itself puts it back\n", program, job);
    else if (status == 2)
        fprintf(stderr, "%s: job %s was not put back: it finished no step in most of its time limit, so the next start would end "
                "the same way; give it more time\n", program, job);
    else
        fprintf(stderr, "%s: job %s was not put back: %s; the same command goes on from step %lld\n", program, job, tune_error_message(),
                (long long)at->step);
    fflush(stdout);
    return status == 0 || status == 1 ? code : 1;
}

int tune_program_exit(const struct tune_progress *at)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "%s: cannot write to standard output: %s\n", program,
                at->signal == SIGPIPE ? "a closed pipe or a full disk; the run stopped there as after a signal" : strerror(errno));
        return 1;
    }
    if (at->diverged)
        fprintf(stderr, "%s: the run diverged: %s; lower --lr\n", program,
                at->stopped ? "its loss rose, and it was ended there" : "it came to its end, but its loss rose");
    return requeue(at, at->signal ? 128 + at->signal : at->diverged);
}
