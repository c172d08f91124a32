/* test_memory.c - the memory plan against what is then really taken: tensors to the byte, the process within its bound;
 * nothing on the device after the first step has begun; what does not fit is refused with advice that
 * holds. A device with memory of its own has a sum of its own. */
#include "test.h"
#include "far/far.h"

#include <sys/wait.h>

#include "datasets/dataset.h"
#include "losses/loss.h"
#include "profilers/memory_plan.h"

#define MIB ((int64_t)1 << 20)

enum { ROWS = 24 };

/* Rows as long as the data set allows, each from the begin trained. */
static int get(void *context, int64_t row, struct tune_example *x)
{
    int n = *(const int *)context;
    if (tune_example_reserve(x, n) < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        x->ids[i] = (int32_t)((row * 31 + i * 7) % 100);
        x->trained[i] = 1;
    }
    x->count = n;
    return 0;
}

static struct tune_model_config small(const char *family)
{
    struct tune_model_config c = {.hidden = 64,
                                  .ffn = 160,
                                  .layers = 3,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .head_dim = 16,
                                  .vocabulary = 501,
                                  .max_positions = 4096,
                                  .norm_eps = 1e-5f,
                                  .rotary = {{.dims = 16, .theta = 10000}},
                                  .attention_scale = .25f,
                                  .embedding_multiplier = 1,
                                  .residual_multiplier = 1,
                                  .logits_scaling = 1,
                                  .initializer_range = .02f,
                                  .dtype = TUNE_F32};
    snprintf(c.family, sizeof c.family, "%s", family);
    return c;
}

/* What runs; 0 where a field is the plain case. */
struct use {
    const char *name;
    int family, B, T, accumulate, threads, log_every;
    bool tied, bf16, checkpointing, sgd, muon, momentum, ema, evaluation_sets;
};

static const struct use uses[] = {
    {"plain", .B = 1, .T = 64, .threads = 1},
    {"tied", .B = 3, .T = 33, .threads = 2, .tied = true},
    {"biases", .family = 1, .B = 2, .T = 64, .threads = 2, .log_every = 7},
    {"heads' norms", .family = 2, .B = 2, .T = 64, .threads = 3, .tied = true, .checkpointing = true},
    {"bfloat16", .B = 2, .T = 128, .threads = 2, .bf16 = true},
    {"bfloat16, checkpointing", .family = 2, .B = 4, .T = 96, .threads = 2, .bf16 = true, .checkpointing = true},
    {"window", .family = 3, .B = 1, .T = 256, .threads = 2},
    {"sgd", .B = 1, .T = 64, .threads = 2, .sgd = true},
    {"sgd with momentum", .B = 1, .T = 64, .threads = 2, .sgd = true, .momentum = true},
    {"muon", .family = 4, .B = 1, .T = 64, .threads = 2, .muon = true},
    {"averages", .B = 1, .T = 64, .threads = 2, .ema = true, .evaluation_sets = 1},
    {"evaluation", .B = 2, .T = 64, .threads = 2, .evaluation_sets = 1},
    {"accumulation", .B = 2, .T = 64, .accumulate = 5, .threads = 2, .checkpointing = true, .evaluation_sets = 1},
    {"long", .B = 1, .T = 2048, .threads = 2, .tied = true},
    {"large", .family = 4, .B = 4, .T = 128, .threads = 2, .tied = true},
    {"many threads", .family = 4, .B = 1, .T = 256, .threads = 8},
};
enum { USES = sizeof uses / sizeof *uses };

static struct tune_model_config shape(const struct use *u)
{
    static const char *const families[] = {"llama", "llama", "qwen3", "mistral", "llama"};
    struct tune_model_config c = small(families[u->family]);
    c.tied = u->tied;
    c.qkv_bias = c.out_bias = c.mlp_bias = u->family == 1;
    c.qk_norm = u->family == 2;
    if (u->family == 3) {
        c.window = 50;
        c.sliding[0] = c.sliding[2] = 1;
    }
    if (u->family == 4) {
        c.hidden = 512;
        c.ffn = 1536;
        c.head_dim = c.rotary[0].dims = 64;
        c.vocabulary = 8000;
    }
    return c;
}

static struct tune_memory_request request(const struct use *u, const struct tune_model_config *config)
{
    return (struct tune_memory_request){
        .config = config,
        .activations = u->bf16 ? TUNE_BF16 : TUNE_F32,
        .use = TUNE_FOR_TRAINING | (u->checkpointing ? TUNE_CHECKPOINTING : 0),
        .optimizer =
            {.kind = u->sgd ? TUNE_SGD : u->muon ? TUNE_MUON : TUNE_ADAMW, .beta1 = .9, .beta2 = .99, .eps = 1e-8, .momentum = u->momentum ? .9 : 0,
             .ema = u->ema ? .99 : 0},
        .loader = {.part = TUNE_ALL,
                   .batch_size = u->B,
                   .accumulate = u->accumulate ? u->accumulate : 1,
                   .max_length = u->T,
                   .epochs = 1,
                   .max_steps = 3,
                   .stop_after_seconds = -1,
                   .prefetch = true},
        .rows = ROWS,
        .evaluation_sets = u->evaluation_sets,
        .log_every = u->log_every ? u->log_every : 1,
    };
}

/* A run of its own in this process; what is wrong into text, "" if nothing. */
static void run(const struct use *u, char *text, size_t size)
{
    struct tune_model_config c = shape(u);
    struct tune_memory_request r = request(u, &c);
    struct tune_memory_plan plan;
    struct tune_device *dev = test_device(u->threads);
    struct tune_dataset *data = tune_dataset_from(ROWS, get, (void *)&u->T, u->T);
    snprintf(text, size, "%s", "");
    if (!dev || !data || tune_memory_plan_make(&plan, &r, dev) < 0 || dev->bytes_peak != 0) {
        snprintf(text, size, "cannot plan, or the plan took something: %s", tune_error_message());
        return;
    }
    bool far = !plan.memory.shared;
    if (far)
        tune_far_limit(dev, plan.device); /* not a byte more */
    struct tune_model *m = tune_model_new(&c, dev, r.activations);
    if (!m || tune_model_reserve(m, u->B, u->T, r.use) < 0) {
        snprintf(text, size, "no model: %s", tune_error_message());
        return;
    }
    struct tune_loader *load = tune_loader_new(data, &r.loader), *held_out = NULL;
    struct tune_loss *loss = tune_loss_new(m, true);
    struct tune_optimizer *opt = tune_optimizer_new(m, &r.optimizer);
    struct tune_record *sums = tune_record_new(dev, r.log_every);
    if (u->evaluation_sets) {
        struct tune_loader_options o = r.loader;
        o.accumulate = 1;
        o.prefetch = false;
        held_out = tune_loader_new(data, &o);
    }
    if (!load || !loss || !opt || !sums || (u->evaluation_sets && !held_out)) {
        snprintf(text, size, "set-up: %s", tune_error_message());
        return;
    }
    struct tune_progress at = {0};
    int64_t allocations = dev->allocations, bytes = dev->bytes, most = 0;
    int micros, status = 0;
    while (status == 0 && (micros = tune_loader_more(load, &at)) > 0) {
        const struct tune_done_step *steps;
        status = tune_model_zero_grad(m, sums);
        while (status == 0 && micros-- > 0) {
            struct tune_batch batch;
            struct tune_tensor *hidden, *dhidden;
            status = tune_loader_next(load, &batch) < 0 || tune_model_forward(m, &batch, &hidden) < 0 ||
                     tune_loss_forward_backward(loss, hidden, &batch, sums, &dhidden) < 0 ||
                     tune_model_backward(m, &batch, dhidden) < 0;
        }
        double sum = 0;
        struct tune_batch batch;
        struct tune_tensor *hidden;
        status = status || tune_optimizer_scale(opt, 1, sums) < 0 || tune_optimizer_step(opt, 1e-3, sums) < 0 ||
                 tune_record_read(sums, &steps) < 0;
        tune_progress_step(&at, load);
        struct tune_progress other = {0};
        if (status == 0 && held_out && tune_loader_rewind(held_out) == 0 && tune_loader_more(held_out, &other) > 0)
            status = tune_loader_next(held_out, &batch) < 0 || tune_model_exchange(m) < 0 ||
                     tune_model_forward(m, &batch, &hidden) < 0 || tune_loss_forward(loss, hidden, &batch, &sum) < 0 ||
                     tune_model_exchange(m) < 0;
        int64_t now = tune_memory_anonymous();
        most = now > most ? now : most;
    }
    int64_t off = plan.total - most, bound = most / 20 > 32 * MIB ? most / 20 : 32 * MIB;
    if (status != 0 || at.step != 3)
        snprintf(text, size, "step %d: %s", (int)at.step, tune_error_message());
    else if (dev->bytes_peak != plan.device)
        snprintf(text, size, "planned %lld bytes of tensors, taken %lld", (long long)plan.device,
                 (long long)dev->bytes_peak);
    else if (plan.device + plan.host != plan.total)
        snprintf(text, size, "two sums that are not the total");
    else if (dev->allocations != allocations || dev->bytes != bytes)
        snprintf(text, size, "%lld allocations after the start", (long long)(dev->allocations - allocations));
#ifndef __SANITIZE_ADDRESS__ /* its shadow is anonymous memory too */
    else if (!far && (off < -bound || off > bound)) /* far's memory is this process's, too */
        snprintf(text, size, "planned %lld bytes in all, seen %lld", (long long)plan.total, (long long)most);
#endif
    (void)off, (void)bound;
    tune_record_free(sums);
    tune_optimizer_free(opt);
    tune_loss_free(loss);
    tune_loader_free(held_out);
    tune_loader_free(load);
    tune_model_free(m);
    tune_dataset_free(data);
    tune_device_close(dev);
}

/* Each in a process of its own, whose memory is its own. */
static void plans_hold(void **state)
{
    (void)state;
    char text[512], failures[4096] = "";
    if (emulated()) {
        print_message("# the process has the emulator's memory too\n");
        skip();
    }
    for (int i = 0; i < USES; i++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            run(&uses[i], text, sizeof text);
            _exit(write(ends[1], text, sizeof text) == sizeof text ? 0 : 1);
        }
        close(ends[1]);
        ssize_t n = read(ends[0], text, sizeof text);
        close(ends[0]);
        waitpid(child, NULL, 0);
        if (n != sizeof text)
            snprintf(text, sizeof text, "the process died");
        if (*text)
            snprintf(failures + strlen(failures), sizeof failures - strlen(failures), "%s: %s\n", uses[i].name, text);
    }
    if (*failures)
        fail_msg("%s", failures);
}

static const struct use roomy = {"roomy", .B = 8, .T = 512, .threads = 2};

/* The number of MiB behind text in the last error. */
static double number_after(const char *text)
{
    const char *at = strstr(tune_error_message(), text);
    if (!at)
        fail_msg("message \"%s\" lacks \"%s\"", tune_error_message(), text);
    return strtod(at + strlen(text), NULL);
}

/* Refused one byte below the need, let through at it; each piece of advice saves what it says. */
static void too_little(void **state)
{
    (void)state;
    struct tune_model_config c = shape(&roomy);
    struct tune_memory_request r = request(&roomy, &c);
    struct tune_memory_plan plan, less;
    struct tune_device *dev = tune_device_open("cpu", 2);
    assert_got(dev);
    assert_ok(tune_memory_plan_make(&plan, &r, dev));
    r.row_bytes = 1000;
    assert_ok(tune_memory_plan_make(&less, &r, dev));
    assert_true(less.total - less.held == plan.total - plan.held + (r.evaluation_sets ? 2000 : 1000));
    plan = less;
    struct tune_memory_limit limits[2] = {{"wide", INT64_MAX, false}, {"left of the test", plan.total - plan.held, false}};
    assert_ok(tune_memory_plan_check(&plan, &r, dev, limits, 2));
    limits[1].bytes--;
    assert_int_equal(tune_memory_plan_check(&plan, &r, dev, limits, 2), -1);
    assert_int_equal(tune_error_kind(), TUNE_ERROR_CANNOT);
    assert_error_has("left of the test");
    for (int i = 0; i < plan.count; i++)
        assert_error_has(plan.parts[i].name);
    assert_true(number_after("`activation_checkpointing` full saves ") > 1);
    double said = number_after("`batch_size` 1 saves ");
    assert_true(number_after("`max_length` 256 saves ") > 1);
    assert_error_has("(enough)");
    r.loader.batch_size = 1;
    assert_ok(tune_memory_plan_make(&less, &r, dev));
    assert_true(fabs((double)(plan.total - plan.held - less.total + less.held) / MIB - said) < .06);
    /* what saves nothing is not advised */
    assert_int_equal(tune_memory_plan_check(&less, &r, dev, &(struct tune_memory_limit){"none", 0, false}, 1), -1);
    assert_null(strstr(tune_error_message(), "`batch_size`"));
    assert_null(strstr(tune_error_message(), "(enough)"));
    tune_device_close(dev);
}

/* Averages take as much as the gradients. SGD keeps them. */
static void averages(void **state)
{
    (void)state;
    static const struct use large = {"large", .family = 4, .B = 1, .T = 8, .threads = 1, .tied = true};
    const struct tune_memory_limit none = {"none", 0, false};
    struct tune_model_config c = shape(&large);
    struct tune_memory_request r = request(&large, &c);
    struct tune_memory_plan plan, less;
    struct tune_device *dev = tune_device_open("cpu", 1);
    assert_got(dev);
    assert_ok(tune_memory_plan_make(&less, &r, dev));
    r.optimizer.ema = .9;
    assert_ok(tune_memory_plan_make(&plan, &r, dev));
    assert_string_equal(plan.parts[1].name, "gradients");
    assert_true(plan.device == less.device + plan.parts[1].bytes);
    assert_int_equal(tune_memory_plan_check(&plan, &r, dev, &none, 1), -1);
    double gradients = (double)plan.parts[1].bytes / MIB;
    assert_true(fabs(number_after("averages ") - gradients) < .06);
    assert_true(fabs(number_after("`ema` 0 saves ") - gradients) < .06);
    assert_true(fabs(number_after("`optimizer` sgd saves ") - 2 * gradients) < .06);
    tune_device_close(dev);
}

static const struct tune_memory_limit wide = {"wide", INT64_MAX, TUNE_MEMORY_FILLED};

/* A device has memory of its own. A plan one byte larger is refused, a plan of that size is accepted;
 * the host's limits bound the host's part. */
static void memory_of_its_own(void **state)
{
    (void)state;
    struct tune_model_config c = shape(&roomy);
    struct tune_memory_request r = request(&roomy, &c);
    struct tune_memory_plan plan;
    struct tune_device *dev = tune_far_open(2);
    assert_got(dev);
    tune_address others = tune_device_alloc(dev, MIB, "what is held already");
    assert_ok(tune_memory_plan_make(&plan, &r, dev));
    assert_true(!plan.memory.shared && plan.device > 8 * MIB && plan.host > plan.held);
    assert_true(plan.device + plan.host == plan.total);
    struct tune_memory_limit host = {"left of the test", plan.host - plan.held, TUNE_MEMORY_FILLED};
    tune_far_limit(dev, plan.device + MIB);
    assert_ok(tune_memory_plan_make(&plan, &r, dev));
    host.bytes = plan.host - plan.held;
    assert_ok(tune_memory_plan_check(&plan, &r, dev, &host, 1));

    host.bytes--; /* the host is short, and the device is not */
    assert_int_equal(tune_memory_plan_check(&plan, &r, dev, &host, 1), -1);
    assert_int_equal(tune_error_kind(), TUNE_ERROR_CANNOT);
    assert_error_has("not enough memory on the host:");
    assert_error_has("are left of the test");
    assert_null(strstr(tune_error_message(), "`batch_size` 1 saves")); /* nothing of the host */

    tune_far_limit(dev, plan.device + MIB - 1); /* the device is short by one byte */
    assert_ok(tune_memory_plan_make(&plan, &r, dev));
    assert_int_equal(tune_memory_plan_check(&plan, &r, dev, &wide, 1), -1);
    assert_error_has("not enough memory on the device far:");

    tune_far_limit(dev, 8 * MIB); /* the device is short, and the host is not */
    assert_ok(tune_memory_plan_make(&plan, &r, dev));
    assert_int_equal(tune_memory_plan_check(&plan, &r, dev, &wide, 1), -1);
    assert_int_equal(tune_error_kind(), TUNE_ERROR_CANNOT);
    assert_error_has("not enough memory on the device far:");
    assert_error_has("7.0 of its 8.0 MiB are free");
    assert_true(fabs(number_after("The run needs ") - (double)plan.device / MIB) < .06);
    double weights = number_after(" MiB on the device: weights ");
    assert_true(fabs(weights - (double)plan.parts[0].bytes / MIB) < .06);
    assert_true(fabs(number_after("; ") - (double)plan.host / MIB) < .06);
    assert_true(number_after(" MiB on the host: loader ") >= 0);
    assert_true(number_after("`batch_size` 1 saves ") > 1);
    tune_device_free(dev, others, MIB);
    tune_device_close(dev);
}

/* One byte less than the plan says is too little for what is really taken. */
static void not_a_byte_less(void **state)
{
    (void)state;
    struct tune_model_config c = shape(&uses[0]);
    struct tune_memory_request r = request(&uses[0], &c);
    struct tune_memory_plan plan;
    struct tune_device *dev = tune_far_open(1);
    assert_got(dev);
    assert_ok(tune_memory_plan_make(&plan, &r, dev));
    tune_far_limit(dev, plan.device - 1);
    struct tune_model *m = tune_model_new(&c, dev, r.activations);
    assert_got(m);
    assert_ok(tune_model_reserve(m, uses[0].B, uses[0].T, r.use));
    struct tune_loss *loss = tune_loss_new(m, true);
    struct tune_optimizer *opt = tune_optimizer_new(m, &r.optimizer);
    assert_true(loss && opt);
    assert_null(tune_record_new(dev, r.log_every)); /* the last of them */
    assert_int_equal(tune_error_kind(), TUNE_ERROR_CANNOT);
    tune_optimizer_free(opt);
    tune_loss_free(loss);
    tune_model_free(m);
    tune_device_close(dev);
}

/* A device states its memory. The CPU has the host's memory; impossible numbers are refused. */
static void what_a_device_has(void **state)
{
    (void)state;
    struct tune_device_memory before, now;
    struct tune_memory_limit limits[TUNE_MEMORY_LIMITS];
    struct tune_device *cpu = tune_device_open("cpu", 1), *far = tune_far_open(1);
    assert_true(cpu && far);
    bool tight = false;
    for (int attempt = 0; attempt < 20 && !tight; attempt++) { /* others take and give meanwhile */
        assert_ok(tune_device_memory(cpu, &now));
        assert_true(now.shared && now.free > 0 && now.free <= now.total);
        assert_true(now.total == tune_memory_machine());
        tight = true;
        for (int i = tune_memory_limits(limits) - 1; i >= 0; i--)
            tight = tight && now.free <= limits[i].bytes + 64 * MIB;
    }
    assert_true(tight);
    tune_far_limit(far, MIB);
    assert_ok(tune_device_memory(far, &before));
    assert_true(!before.shared && before.free == MIB && before.total == MIB);
    tune_address some = tune_device_alloc(far, MIB / 4, "a test");
    assert_ok(tune_device_memory(far, &now));
    assert_true(now.free == MIB - MIB / 4 && now.total == MIB);
    assert_true(tune_device_alloc(far, MIB, "a test").at == 0);
    tune_far_limit(far, 1);
    assert_int_equal(tune_device_memory(far, &now), -1);
    assert_error_has("far reports -262143 of 1 bytes of memory as free");
    tune_device_free(far, some, MIB / 4);
    tune_device_close(far);
    tune_device_close(cpu);
}

/* Sizes whose sum does not fit 64 bits: too much, not a small number. */
static void beyond_counting(void **state)
{
    (void)state;
    struct tune_model_config c = small("llama");
    struct tune_memory_request r = request(&uses[0], &c);
    struct tune_memory_plan plan;
    struct tune_memory_limit limit = {"wide", (int64_t)1 << 60, false};
    struct tune_device *dev = tune_device_open("cpu", 1);
    assert_got(dev);
    r.loader.batch_size = r.loader.max_length = INT32_MAX;
    assert_ok(tune_memory_plan_make(&plan, &r, dev));
    assert_true(plan.total == INT64_MAX && plan.device == INT64_MAX);
    assert_int_equal(tune_memory_plan_check(&plan, &r, dev, &limit, 1), -1);
    assert_int_equal(tune_error_kind(), TUNE_ERROR_CANNOT);
    tune_device_close(dev);
}

/* The parts that each thread has grow with their number beyond 32 bits, whoever multiplies the matrices. */
static void many_threads(void **state)
{
    (void)state;
    static const char *const matmul[] = {"own", "openblas"};
    struct tune_model_config c = small("llama");
    struct tune_memory_request r = request(&uses[0], &c);
    struct tune_memory_plan one, many;
    enum { THREADS = 20000 };
    for (int i = 0; i < 2; i++) {
        setenv("TUNE_MATMUL", matmul[i], 1);
        struct tune_device *dev = tune_device_open("cpu", 1);
        assert_got(dev);
        assert_ok(tune_memory_plan_make(&one, &r, dev));
        dev->threads = THREADS; /* of the plan alone: nothing is computed */
        assert_ok(tune_memory_plan_make(&many, &r, dev));
        dev->threads = 1;
        assert_int_equal(one.count, many.count);
        int grown = 0;
        for (int p = 0; p < one.count; p++) {
            assert_true(many.parts[p].bytes >= one.parts[p].bytes);
            grown += many.parts[p].bytes - one.parts[p].bytes > (int64_t)2 << 30;
        }
        assert_int_equal(grown, 2); /* threads' work, libraries' buffers */
        tune_device_close(dev);
    }
    unsetenv("TUNE_MATMUL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_hold),
        cmocka_unit_test(too_little), cmocka_unit_test(averages),
        cmocka_unit_test(memory_of_its_own),
        cmocka_unit_test(not_a_byte_less),
        cmocka_unit_test(what_a_device_has),
        cmocka_unit_test(beyond_counting),
        cmocka_unit_test(many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
