/* test_updates.cu - the step's scalars and the updates of the CUDA device against the CPU's. */
#include "operations.h"

#include <cstddef>

static const int64_t lengths[] = {1, 255, 4096, 10000};
static const struct tune_update params = {0.5, 0.9, 0.99, 1e-8, 0.1, 0.8};

/* One number of the scalars on the GPU. */
static double on_cuda(const both &s, size_t offset)
{
    double x;
    bytes all = s.on_cuda();
    memcpy(&x, all.data() + offset, sizeof x);
    return x;
}

static void scalars()
{
    verdict v;
    both s(a_step()), slot(tune_scalars{});
    tune_begin_pass(cpu, s.c.data, 3);
    tune_add_labels(cpu, s.c.data, 3, 2);
    tune_add_loss(cpu, s.c.data, 1.5);
    tune_add_divisor(cpu, s.c.data, 4);
    tune_set_lr(cpu, s.c.data, 0.125);
    compare(&v, {&s}, [&] {
        int all = tune_cuda_begin_pass(&cuda, s.g.data, 3);
        all |= tune_cuda_add_labels(&cuda, s.g.data, 3, 2);
        all |= tune_cuda_add_loss(&cuda, s.g.data, 1.5);
        all |= tune_cuda_add_divisor(&cuda, s.g.data, 4);
        return all | tune_cuda_set_lr(&cuda, s.g.data, 0.125);
    });
    judge("begin_pass, add_labels, add_loss, add_divisor, set_lr", v);
    /* a GPU's clock may stand still from one kernel to the next; seconds since 1970 are rounded */
    both before(a_step()), after(a_step());
    cuda_state.clock_ahead_s = 0;
    int status = tune_cuda_begin_step(&cuda, before.g.data);
    cuda_state.clock_ahead_s = -1000;
    status |= tune_cuda_begin_step(&cuda, s.g.data);
    status |= tune_cuda_end_step(&cuda, &slot.g, s.g.data);
    cuda_state.clock_ahead_s = 0;
    status |= tune_cuda_begin_step(&cuda, after.g.data);
    double begin = on_cuda(slot, offsetof(tune_scalars, begin_s)) - 1000;
    double end = on_cuda(slot, offsetof(tune_scalars, end_s)) - 1000;
    double first = on_cuda(before, offsetof(tune_scalars, begin_s));
    check("begin_step, end_step: times in order, less what the GPU's clock is ahead",
          status == 0 && first <= begin + 1e-6 && begin <= end &&
              end <= on_cuda(after, offsetof(tune_scalars, begin_s)) + 1e-6 && end < first + 600);
    check("begin_step counts and clears",
          on_cuda(slot, offsetof(tune_scalars, step)) == 9 &&
              on_cuda(slot, offsetof(tune_scalars, loss_sum)) == 0 &&
              on_cuda(slot, offsetof(tune_scalars, updates)) == 0);
}

static void finish()
{
    verdict v;
    for (double clip : {0.0, 0.01, 100.0})
        for (double divisor : {0.0, 5.0}) {
            tune_scalars first = a_step();
            first.divisor = divisor;
            both s(first);
            tune_finish_step(cpu, s.c.data, clip);
            compare(&v, {&s}, [&] { return tune_cuda_finish_step(&cuda, s.g.data, clip); });
            /* infinity less infinity is no distance: look at the others */
            for (double bad : {(double)INFINITY, (double)NAN})
                for (bool loss : {false, true}) {
                    tune_scalars broken = first;
                    (loss ? broken.loss_sum : broken.square_sum) = bad;
                    both b(broken);
                    int status = tune_cuda_finish_step(&cuda, b.g.data, clip);
                    check(loss ? "finish_step: the loss is not finite"
                               : "finish_step: the gradients are not finite",
                          status == 0 && on_cuda(b, offsetof(tune_scalars, gradient_scale)) == 0 &&
                              on_cuda(b, offsetof(tune_scalars, not_finite)) == 1 &&
                              on_cuda(b, offsetof(tune_scalars, updates)) == 7);
                }
        }
    judge("finish_step", v);
    /* clip_grad_norm_ of PyTorch divides by the norm and 1e-6 */
    tune_scalars small = a_step();
    small.square_sum = 3e-6 * small.labels * 3e-6 * small.labels;
    both s(small);
    bool done = tune_cuda_finish_step(&cuda, s.g.data, 3e-6) == 0;
    double scale = on_cuda(s, offsetof(tune_scalars, gradient_scale)) * small.labels;
    check("finish_step: 1e-6 is added to the norm", done && fabs(scale - 0.75) < 1e-9);
}

static void squares()
{
    verdict sum, unit;
    for (int64_t n : lengths) {
        both x(TUNE_F32, 0, n, 2, 1), s(a_step());
        tune_sum_squares(cpu, s.c.data, &x.c);
        compare(&sum, {&s}, [&] { return tune_cuda_sum_squares(&cuda, s.g.data, &x.g); });
        for (double least : {1e-7, 1e7}) {
            both y(TUNE_F32, 0, n, 2, 1);
            tune_unit(cpu, &y.c, least);
            compare(&unit, {&y}, [&] { return tune_cuda_unit(&cuda, &y.g, least); });
        }
    }
    judge("sum_squares", sum);
    judge("unit", unit);
}

static void updates()
{
    verdict adamw, sgd, moment, muon, average;
    for (int64_t n : lengths)
        for (double scale : {0.025, 0.0}) {
            tune_scalars first = a_step();
            first.gradient_scale = scale;
            both s(first), w(TUNE_F32, 0, n, 1, 1), g(TUNE_F32, 0, n, 1, 2),
                m(TUNE_F32, 0, n, 1, 3);
            both v(TUNE_F32, 0, n, 0, 4), y(TUNE_F32, 0, n, NAN, 5);
            tune_adamw(cpu, &w.c, &g.c, &m.c, &v.c, s.c.data, params);
            compare(&adamw, {&w, &m, &v},
                    [&] { return tune_cuda_adamw(&cuda, &w.g, &g.g, &m.g, &v.g, s.g.data,
                                                 params); });
            w.reset(), m.reset();
            tune_sgd(cpu, &w.c, &g.c, &m.c, s.c.data, params);
            compare(&sgd, {&w, &m},
                    [&] { return tune_cuda_sgd(&cuda, &w.g, &g.g, &m.g, s.g.data, params); });
            w.reset();
            tune_sgd(cpu, &w.c, &g.c, nullptr, s.c.data, params);
            compare(&sgd, {&w},
                    [&] { return tune_cuda_sgd(&cuda, &w.g, &g.g, nullptr, s.g.data, params); });
            m.reset();
            tune_muon_moment(cpu, &y.c, &g.c, &m.c, s.c.data, params);
            compare(&moment, {&y, &m},
                    [&] { return tune_cuda_muon_moment(&cuda, &y.g, &g.g, &m.g, s.g.data,
                                                       params); });
            w.reset();
            tune_muon(cpu, &w.c, &g.c, s.c.data, 0.2, params);
            compare(&muon, {&w},
                    [&] { return tune_cuda_muon(&cuda, &w.g, &g.g, s.g.data, 0.2, params); });
            w.reset();
            tune_average(cpu, &w.c, &g.c, s.c.data, 0.9);
            compare(&average, {&w},
                    [&] { return tune_cuda_average(&cuda, &w.g, &g.g, s.g.data, 0.9); });
        }
    judge("adamw", adamw);
    judge("sgd", sgd);
    judge("muon_moment", moment);
    judge("muon", muon);
    judge("average", average);
}

int main()
{
    begin_operations();
    scalars();
    finish();
    squares();
    updates();
    return end_operations();
}
