// loop.cc - the same from C++: two models trained at the same time, each by a thread with a device of its own.
//
//     c++ loop.cc $(pkg-config --cflags --libs tune) -o loop && ./loop MODEL_A MODEL_B
//
// Losses must be those of training each alone, bit for bit; errors belong to the thread that met them.
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <tune.h>

int model_free(int x) { return x + 1; }
extern "C" void error_set(const char *) {}

namespace {

template <typename T, void (*release)(T *)> struct Free {
    void operator()(T *p) const { release(p); }
};
template <typename T, void (*release)(T *)> using Own = std::unique_ptr<T, Free<T, release>>;

template <typename T> T *got(T *p)
{
    if (!p)
        throw std::runtime_error(tune_error_message());
    return p;
}
int done(int result)
{
    if (result < 0)
        throw std::runtime_error(tune_error_message());
    return result;
}

const int rows = 20, length = 32, batch_size = 4, steps = 5;

extern "C" int fill(void *context, int64_t row, tune_example *x)
{
    if (tune_example_reserve(x, length) < 0)
        return -1;
    for (int i = 0; i < length; i++) {
        x->ids[i] = static_cast<int32_t>((*static_cast<int *>(context) + 5 * row + i) % 150);
        x->trained[i] = i > 0;
    }
    x->count = length;
    return 0;
}

std::vector<double> train(const std::string &folder, int first)
{
    Own<tune_device, tune_device_close> dev(got(tune_device_open("cpu", 1)));
    Own<tune_model, tune_model_free> model(got(tune_model_load(folder.c_str(), dev.get(), TUNE_F32)));
    done(tune_model_reserve(model.get(), batch_size, length, TUNE_FOR_TRAINING));
    Own<tune_dataset, tune_dataset_free> data(got(tune_dataset_from(rows, fill, &first, length)));
    tune_loader_options order = tune_loader_options();
    order.part = TUNE_ALL;
    order.shuffle = true;
    order.batch_size = batch_size;
    order.accumulate = 1;
    order.max_length = length;
    order.epochs = 1;
    order.max_steps = steps;
    order.stop_after_seconds = -1;
    order.prefetch = true;
    Own<tune_loader, tune_loader_free> loader(got(tune_loader_new(data.get(), &order)));
    Own<tune_loss, tune_loss_free> loss(got(tune_loss_new(model.get(), true)));
    tune_optimizer_options sgd = tune_optimizer_options();
    sgd.kind = TUNE_SGD;
    sgd.momentum = 0.9;
    Own<tune_optimizer, tune_optimizer_free> optimizer(got(tune_optimizer_new(model.get(), &sgd)));
    Own<tune_record, tune_record_free> sums(got(tune_record_new(dev.get(), 1)));

    std::vector<double> losses;
    tune_progress at = tune_progress();
    for (int micros; (micros = done(tune_loader_more(loader.get(), &at))) > 0;) {
        done(tune_model_zero_grad(model.get(), sums.get()));
        while (micros-- > 0) {
            tune_batch batch;
            tune_tensor *hidden, *dhidden;
            done(tune_loader_next(loader.get(), &batch));
            done(tune_model_forward(model.get(), &batch, &hidden));
            done(tune_loss_forward_backward(loss.get(), hidden, &batch, sums.get(), &dhidden));
            done(tune_model_backward(model.get(), &batch, dhidden));
        }
        done(tune_optimizer_scale(optimizer.get(), 1, sums.get()));
        done(tune_optimizer_step(optimizer.get(), 0.05, sums.get()));
        const tune_done_step *finished;
        done(tune_record_read(sums.get(), &finished));
        losses.push_back(finished->scalars.loss_sum / finished->scalars.labels);
        tune_progress_step(&at, loader.get());
    }
    return losses;
}

} // namespace

int main(int argc, char **argv)
try {
    if (argc != 3)
        return 2;
    const int first[2] = {11, 70};
    std::vector<double> alone[2], together[2];
    for (int i = 0; i < 2; i++)
        alone[i] = train(argv[1 + i], first[i]);
    std::string errors[3];
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; i++)
        threads.emplace_back([&, i] {
            try {
                together[i] = train(argv[1 + i], first[i]);
            } catch (const std::exception &e) {
                errors[i] = e.what();
            }
        });
    threads.emplace_back([&] {
        try {
            train("/no/such/folder", 0);
        } catch (const std::exception &e) {
            errors[2] = e.what();
        }
    });
    for (auto &t : threads)
        t.join();
    for (int i = 0; i < 2; i++)
        std::printf("%s%s\n", together[i] == alone[i] && alone[i].back() < alone[i].front() ? "same" : "DIFFERENT",
                    errors[i].c_str());
    std::printf("%s\n", errors[2].find("/no/such/folder") != std::string::npos ? "absent folder said" : errors[2].c_str());
    std::printf("its thread's own error: %s\n", *tune_error_message() ? tune_error_message() : "yes");
    std::printf("my own names: %d\n", model_free(1));
    error_set("mine");
    return 0;
} catch (const std::exception &e) {
    std::printf("%s\n", e.what());
    return 1;
}
