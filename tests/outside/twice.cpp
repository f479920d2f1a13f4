// A kernel of one's own, compiled for the CPU and called: the smallest program that needs all of the library.
#include "apps/api/tilewright.h"

using namespace tilewright;

int main() {
    constexpr int size = 100;
    KernelProgram program("twice");
    Halide::ImageParam x = program.input("x", DType::float32, {size});
    Halide::Var i("i");
    Halide::Func y("y");
    y(i) = 2.0F * x(i);
    program.stage(y, {size});
    program.output(y);
    Options options;
    options.target = "cpu";
    const CompiledFunction twice = program.compile(options);

    HostTensor input = HostTensor::zeros(DType::float32, {size});
    auto *values = reinterpret_cast<float *>(input.mutable_data());
    for (int k = 0; k < size; ++k) {
        values[k] = static_cast<float>(k);
    }
    const std::vector<HostTensor> outputs = twice(std::vector{input});
    const auto *doubled = reinterpret_cast<const float *>(outputs[0].data());
    for (int k = 0; k < size; ++k) {
        if (doubled[k] != 2.0F * static_cast<float>(k)) {
            return 1;
        }
    }
    return 0;
}
