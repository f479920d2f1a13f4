// Layouts of tensors around convolutions: channels innermost between layers, weights and thin images repacked; values stay as they were.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "lowering/decompose/decompose.h"
#include "lowering/fusion/fusion.h"
#include "lowering/translate/translate.h"
#include "tests/support/program_text.h"
#include "tests/support/reference.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

Algorithm algorithm_of(const char *lines) {
    Program program = program_from(lines);
    functionalize(program);
    decompose(program);
    return translate(program).algorithm;
}

Partition partition_for_gpu(const Algorithm &algorithm) {
    FusionOptions options;
    options.channels_innermost = true;
    return partition(algorithm, options);
}

/// The largest difference between the partition's outputs and the algorithm's, relative to 1 + |value|.
double difference(const Algorithm &algorithm, const Partition &parts) {
    std::map<std::string, HostTensor> inputs;
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    for (const TensorInput &input : algorithm.inputs) {
        std::vector<std::int64_t> sizes;
        std::int64_t count = 1;
        for (const Extent &size : input.meta.sizes) {
            sizes.push_back(size.value());
            count *= size.value();
        }
        std::vector<double> values(count);
        std::generate(values.begin(), values.end(), [&] { return normal(random); });
        inputs[input.name()] = tensor(input.meta.dtype, sizes, values);
    }
    const ReferenceResult expected = evaluate(algorithm, inputs), actual = evaluate(parts, algorithm, inputs);
    double largest = 0;
    for (const auto &[name, value] : expected.outputs) {
        const std::vector<double> a = values_of(value), b = values_of(actual.outputs.at(name));
        for (std::size_t i = 0; i < a.size(); ++i) {
            largest = std::max(largest, std::abs(a[i] - b[i]) / (1 + std::abs(a[i])));
        }
    }
    return largest;
}

std::string strides_of(const Partition &parts, const std::string &name) {
    for (const Intermediate &tensor : parts.intermediates) {
        if (tensor.name == name) {
            return tensor.meta.to_string();
        }
    }
    return "no tensor " + name;
}

}  // namespace

TEST_CASE("channels lie innermost between convolutions, weights are repacked once") {
    const Algorithm algorithm = algorithm_of(R"(%x : bfloat16[2, 16, 6, 6] = placeholder
%w : bfloat16[24, 16, 3, 3] = placeholder
%v : bfloat16[24, 24, 1, 1] = placeholder
%a : bfloat16[2, 24, 6, 6] = call_function aten.conv2d.default(input=%x, weight=%w, padding=[1, 1])
%b : bfloat16[2, 24, 6, 6] = call_function aten.relu.default(self=%a)
%c : bfloat16[2, 24, 6, 6] = call_function aten.conv2d.default(input=%b, weight=%v)
%d : bfloat16[2, 24, 6, 6] = call_function aten.add.Tensor(self=%c, other=%b)
%output = output(values=[%d]))");
    const Partition parts = partition_for_gpu(algorithm);
    CHECK(strides_of(parts, "w.repacked") == "bfloat16[24, 16, 3, 3] strides=[144, 1, 48, 16]");
    CHECK(strides_of(parts, "x.repacked") == "bfloat16[2, 16, 6, 6] strides=[576, 1, 96, 16]");
    CHECK(strides_of(parts, "b") == "bfloat16[2, 24, 6, 6] strides=[864, 1, 144, 24]");
    CHECK(difference(algorithm, parts) < 2e-2);
}

TEST_CASE("channels of any number lie innermost, padded to where the copy unit can begin") {
    const Algorithm algorithm = algorithm_of(R"(%x : bfloat16[1, 18, 6, 6] strides=[648, 1, 108, 18] = placeholder
%w : bfloat16[26, 18, 3, 3] = placeholder
%v : bfloat16[16, 26, 3, 3] = placeholder
%a : bfloat16[1, 26, 6, 6] = call_function aten.conv2d.default(input=%x, weight=%w, padding=[1, 1])
%b : bfloat16[1, 26, 6, 6] = call_function aten.relu.default(self=%a)
%c : bfloat16[1, 16, 6, 6] = call_function aten.conv2d.default(input=%b, weight=%v, padding=[1, 1])
%output = output(values=[%c]))");
    const Partition parts = partition_for_gpu(algorithm);
    CHECK(strides_of(parts, "x.repacked") == "bfloat16[1, 18, 6, 6] strides=[864, 1, 144, 24]");
    CHECK(strides_of(parts, "w.repacked") == "bfloat16[26, 18, 3, 3] strides=[216, 1, 72, 24]");
    CHECK(strides_of(parts, "b") == "bfloat16[1, 26, 6, 6] strides=[1152, 1, 192, 32]");
    CHECK(difference(algorithm, parts) < 2e-2);
}

TEST_CASE("taps and channels of a thin image's row are one axis") {
    const Algorithm algorithm = algorithm_of(R"(%x : bfloat16[1, 3, 12, 11] = placeholder
%w : bfloat16[16, 3, 7, 7] = placeholder
%a : bfloat16[1, 16, 6, 6] = call_function aten.conv2d.default(input=%x, weight=%w, stride=[2, 2], padding=[3, 3])
%output = output(values=[%a]))");
    const Partition parts = partition_for_gpu(algorithm);
    REQUIRE(parts.calls.size() == 3);
    CHECK(parts.kernels[parts.calls[2].kernel].algorithm.inputs[0].meta.to_string() == "bfloat16[1, 12, 72]");
    CHECK(difference(algorithm, parts) < 2e-2);
}

TEST_CASE("windows that stand apart are copied once and multiplied") {
    const Algorithm algorithm = algorithm_of(R"(%x : bfloat16[2, 3, 8, 12] = placeholder
%w : bfloat16[16, 3, 4, 4] = placeholder
%a : bfloat16[2, 16, 2, 3] = call_function aten.conv2d.default(input=%x, weight=%w, stride=[4, 4])
%output = output(values=[%a]))");
    const Partition parts = partition_for_gpu(algorithm);
    REQUIRE(parts.calls.size() == 2);
    CHECK(strides_of(parts, "x_patches_4_4") == "bfloat16[2, 2, 3, 48]");
    CHECK(parts.kernels[parts.calls[1].kernel].algorithm.inputs[1].meta.to_string() == "bfloat16[16, 48]");
    CHECK(difference(algorithm, parts) < 2e-2);
}

TEST_CASE("an output that a convolution multiplies is stored a second time, channels innermost") {
    const Algorithm algorithm = algorithm_of(R"(%x : bfloat16[2, 16, 6, 6] = placeholder
%w : bfloat16[24, 16, 3, 3] = placeholder
%v : bfloat16[16, 24, 3, 3] = placeholder
%a : bfloat16[2, 24, 6, 6] = call_function aten.conv2d.default(input=%x, weight=%w, padding=[1, 1])
%b : bfloat16[2, 24, 6, 6] = call_function aten.relu.default(self=%a)
%c : bfloat16[2, 16, 3, 3] = call_function aten.conv2d.default(input=%b, weight=%v, stride=[2, 2], padding=[1, 1])
%output = output(values=[%b, %c]))");
    const Partition parts = partition_for_gpu(algorithm);
    CHECK(strides_of(parts, "b") == "bfloat16[2, 24, 6, 6] strides=[864, 1, 144, 24]");
    CHECK(parts.calls.back().inputs.front() == "b");
    CHECK(difference(algorithm, parts) < 2e-2);
}

TEST_CASE("float32 convolutions stay as they are") {
    const Algorithm algorithm = algorithm_of(R"(%x : float32[1, 16, 4, 4] = placeholder
%w : float32[16, 16, 3, 3] = placeholder
%a : float32[1, 16, 4, 4] = call_function aten.conv2d.default(input=%x, weight=%w, padding=[1, 1])
%output = output(values=[%a]))");
    CHECK(partition_for_gpu(algorithm).calls.size() == 1);
}

TEST_CASE("a group norm before a convolution stores its groups of channels innermost") {
    const Algorithm algorithm = algorithm_of(R"(%x : bfloat16[2, 32, 6, 5] = placeholder
%g : bfloat16[32] = placeholder
%b : bfloat16[32] = placeholder
%w : bfloat16[16, 32, 3, 3] = placeholder
%n : bfloat16[2, 32, 6, 5] = call_function aten.group_norm.default(input=%x, num_groups=4, weight=%g, bias=%b)
%s : bfloat16[2, 32, 6, 5] = call_function aten.silu.default(self=%n)
%y : bfloat16[2, 16, 6, 5] = call_function aten.conv2d.default(input=%s, weight=%w, padding=[1, 1])
%output = output(values=[%y]))");
    const Partition parts = partition_for_gpu(algorithm);
    const KernelCall &convolution = parts.calls.back();
    const Algorithm &kernel = parts.kernels[convolution.kernel].algorithm;
    const auto pixels =
        std::find_if(kernel.inputs.begin(), kernel.inputs.end(), [](const TensorInput &input) { return input.meta.sizes[0] == Extent(2); });
    REQUIRE(pixels != kernel.inputs.end());
    CHECK(pixels->meta.strides[1] == Extent(1));
    CHECK(difference(algorithm, parts) < 0.02);
}
