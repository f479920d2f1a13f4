// Lesson 5: a kernel of one's own in a C++ program that calls it from several threads.
//
//     lesson_5_call [cpu|cuda]        without an argument: the GPU where one answers, else the CPU
//
// A program hides the kernel behind a function of its own types. Compiling takes a while and is done once; a CompiledFunction may then be
// called by any number of threads at once, with any sizes that its symbols allow, and copies of it share the code.
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>

#include "apps/api/tilewright.h"

using namespace tilewright;

namespace {

/// Scales vectors to length one.
class Normalizer {
public:
    Normalizer(int dimensions, const Options &options) : dimensions_(dimensions), function_(program(dimensions).compile(options)) {}

    /// `vectors`: one after another, as many as there are. UserError where their length is no multiple of the dimensions.
    std::vector<float> operator()(const std::vector<float> &vectors) const {
        const auto count = static_cast<std::int64_t>(vectors.size()) / dimensions_;
        if (count * dimensions_ != static_cast<std::int64_t>(vectors.size())) {
            user_error("normalize: {} numbers are no whole vectors of {}; give a multiple", vectors.size(), dimensions_);
        }
        const HostTensor input = HostTensor::zeros(DType::float32, {count, dimensions_});
        std::memcpy(input.mutable_data(), vectors.data(), vectors.size() * sizeof(float));
        const HostTensor output = function_(std::vector{input})[0];
        std::vector<float> result(vectors.size());
        std::memcpy(result.data(), output.data(), result.size() * sizeof(float));
        return result;
    }

private:
    static KernelProgram program(int dimensions) {
        const Extent count = Extent::symbol("count");
        KernelProgram program("normalize");
        Halide::ImageParam v = program.input("v", DType::float32, {count, dimensions});
        Halide::Var i("i"), j("j");
        Halide::Func squares("squares"), unit("unit");
        const Halide::RDom r = reduction_domain({dimensions});
        define_reduction(squares, {i}, Combiner::sum, {v(i, r[0]) * v(i, r[0])}, r);
        unit(i, j) = v(i, j) / math::sqrt(squares(i));
        program.stage(squares, {count}, {dimensions});
        program.stage(unit, {count, dimensions});
        program.output(unit);
        return program;
    }

    int dimensions_;
    CompiledFunction function_;
};

}  // namespace

int main(int argc, char **argv) try {
    Options options;
    options.target = argc > 1 ? argv[1] : "";
    const Normalizer normalize(64, options);

    std::atomic<int> calls = 0, wrong = 0;
    std::vector<std::thread> threads;
    for (int t = 1; t <= 4; ++t) {
        threads.emplace_back([&, t] {
            for (int count = 1; count <= 50; ++count) {  // another size each time
                std::vector<float> vectors(static_cast<std::size_t>(count) * 64, static_cast<float>(t));
                vectors[5] = -static_cast<float>(t);
                const std::vector<float> units = normalize(vectors);
                for (std::size_t k = 0; k < units.size(); ++k) {  // 64 equal components of length one: 1/8 each
                    wrong += std::fabs(units[k] - (k == 5 ? -0.125F : 0.125F)) <= 1e-6F ? 0 : 1;
                }
                ++calls;
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    try {
        normalize(std::vector<float>(65));
        ++wrong;
    } catch (const UserError &error) {  // exceptions pass through the caller's function as through any other
        std::printf("refused: %s\n", error.what());
    }
    std::printf("%d calls from %zu threads, %d wrong\n", calls.load(), threads.size(), wrong.load());
    return wrong == 0 ? 0 : 1;
} catch (const UserError &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
}
