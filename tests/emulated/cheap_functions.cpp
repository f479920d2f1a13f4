// Approximate functions: their errors and edge cases, and that only values which are rounded to 16 bits take them.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "dsl/graph/dtype.h"
#include "lowering/cuda/lower.h"
#include "lowering/cuda_schedules/default_schedule.h"
#include "lowering/decompose/decompose.h"
#include "lowering/fusion/fusion.h"
#include "lowering/translate/translate.h"
#include "tests/support/gpu.h"
#include "tests/support/program_text.h"

using namespace tilewright;
using namespace tilewright::tests;

namespace {

HostTensor floats(const std::vector<float> &values) {
    HostTensor tensor = HostTensor::zeros(DType::float32, {static_cast<std::int64_t>(values.size())});
    std::copy(values.begin(), values.end(), reinterpret_cast<float *>(tensor.mutable_data()));
    return tensor;
}

std::vector<float> apply(const std::string &expression, const std::vector<float> &a, const std::vector<float> &b) {
    const std::string source =
        "#include \"tilewright_device.h\"\nextern \"C\" __global__ void f(tw::in<float> a, tw::in<float> b, tw::out<float> y, int n, "
        "tw::status *) {\n    const int i = threadIdx.x;\n    if (i < n) {\n        y[i] = " +
        expression + ";\n    }\n}\n";
    std::vector<HostTensor> outputs = {floats(std::vector<float>(a.size()))};
    launch_on_test_gpu(source, "f", 1, 64, {floats(a), floats(b)}, outputs, static_cast<int>(a.size()));
    const auto *data = reinterpret_cast<const float *>(outputs[0].data());
    return {data, data + a.size()};
}

std::string source_of_program(const std::string &text) {
    Program program = program_from(text);
    functionalize(program);
    decompose(program);
    const Partition parts = partition(translate(program).algorithm);
    const GpuFacts facts = gpu_facts("sm_90a");
    return lower_cuda(parts.kernels[0], default_cuda_schedule(parts.kernels[0], facts), facts).source;
}

std::string source_of(const std::string &type) {
    return source_of_program("%x : " + type + "[8, 1024] = placeholder\n%y : " + type +
                             "[8, 1024] = call_function aten.softmax.int(self=%x, dim=-1)\n"
                             "%output = output(values=[%y])");
}

constexpr float inf = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("approximate functions err by less than a quarter of a 16-bit step, and are exact at the edges") {
    std::vector<float> x, y;
    for (float v : {0.0F, -0.0F, 1e-30F, -1e-4F, 0.03F, -0.0313F, 0.5F, -1.0F, 4.0F, -20.0F, 87.0F, -100.0F, inf, -inf}) {
        x.push_back(v);
        y.push_back(3.0F);
    }
    const std::vector<float> e = apply("tw::fast_exp(a[i])", x, y), t = apply("tw::fast_tanh(a[i])", x, y);
    for (std::size_t i = 0; i < x.size(); ++i) {
        CAPTURE(x[i]);
        CHECK((e[i] == std::exp(x[i]) || e[i] == doctest::Approx(std::exp(x[i])).epsilon(1.0 / (1 << 16))));
        CHECK(t[i] == doctest::Approx(std::tanh(x[i])).epsilon(1.0 / (1 << 16)));
        CHECK(std::signbit(t[i]) == std::signbit(x[i]));
    }
    // Quotients of and by the smallest and the largest numbers.
    const std::vector<float> a = {1e-40F, 3e38F, 1e-10F, 0.0F, 1.0F, -1.0F, inf, 3e38F, 2.0F},
                             b = {2e-40F, 1e38F, 1e-40F, 1e-41F, 0.0F, 0.0F, 3e38F, inf, -3.0F};
    const std::vector<float> q = apply("tw::fast_div(a[i], b[i])", a, b);
    for (std::size_t i = 0; i < a.size(); ++i) {
        CAPTURE(a[i]);
        CHECK((q[i] == a[i] / b[i] || q[i] == doctest::Approx(a[i] / b[i]).epsilon(1e-5)));
    }
}

TEST_CASE("exponentials below a maximum, and quotients by sums of them, keep their error down to the smallest numbers") {
    std::vector<float> x, sums;
    for (float v : {0.0F, -0.0F, -1e-6F, -0.3F, -1.0F, -7.7F, -20.0F, -60.0F, -87.0F, -95.0F, -100.0F, -1000.0F, -inf}) {
        x.push_back(v);
        sums.push_back(3.0F);
    }
    const std::vector<float> below = apply("tw::fast_exp_below(a[i])", x, sums), share = apply("tw::fast_exp_share(a[i], b[i])", x, sums);
    const std::vector<float> term = apply("tw::exp_term(a[i])", x, sums);
    for (std::size_t i = 0; i < x.size(); ++i) {
        CAPTURE(x[i]);
        const double exact = std::exp(static_cast<double>(x[i]));
        CHECK(std::abs(below[i] - exact) <= exact / (1 << 16) + 1e-44);
        CHECK(std::abs(share[i] - exact / 3) <= exact / (1 << 16) + 1e-44);
        CHECK(std::abs(term[i] - exact) <= exact / (1 << 22) + 1.2e-38);
    }
    CHECK(std::isnan(apply("tw::exp_term(a[i])", {std::nanf("")}, {0.0F})[0]));
}

TEST_CASE("shares of a logistic function keep their error where its exponential is larger than any reciprocal") {
    const std::vector<float> a = {1.0F, -88.0F, 0.5F, -3.0F, 0.0F, inf, -1.0F}, x = {0.0F, 88.5F, -60.0F, 3.0F, 1.0F, -inf, inf};
    const std::vector<float> share = apply("tw::fast_logistic_share(a[i], b[i])", a, x);
    for (std::size_t i = 0; i < a.size(); ++i) {
        CAPTURE(x[i]);
        const double exact = a[i] / (1 + std::exp(static_cast<double>(x[i])));
        CHECK((share[i] == exact || std::abs(share[i] - exact) <= std::abs(exact) / (1 << 16)));
    }
    CHECK(std::isnan(apply("tw::fast_logistic_share(a[i], b[i])", {-inf}, {inf})[0]));
}

TEST_CASE("maxima and minima of pairs: NaN wins, signs of zero count") {
    const auto of = [](const std::string &f, const std::string &type) {
        const std::string call = "tw::convert<float>(tw::" + f + "(tw::convert<" + type + ">(a[i]), tw::convert<" + type +
                                 ">(b[i]), tw::convert<" + type + ">(a[i] - 1.0f), tw::convert<" + type + ">(b[i])))";
        return apply(call, {1.0F, -3.0F, std::nanf(""), inf, -0.0F}, {2.5F, -8.0F, 4.0F, 0.0F, 0.0F});
    };
    for (const std::string type : {"tw::bfloat16", "tw::half"}) {
        const std::vector<float> large = of("largest", type), small = of("smallest", type);
        CHECK((large[0] == 2.5F && large[1] == -3.0F && std::isnan(large[2]) && large[3] == inf && !std::signbit(large[4])));
        CHECK((small[0] == 0.0F && small[1] == -8.0F && std::isnan(small[2]) && small[3] == 0.0F && small[4] == -1.0F));
    }
}

TEST_CASE("a softmax of 16-bit floats takes approximate functions, one of floats does not") {
    CHECK(source_of("bfloat16").find("tw::fast_exp_below(") != std::string::npos);
    CHECK(source_of("bfloat16").find("tw::fast_div_by_large(") != std::string::npos);
    CHECK(source_of("float32").find("tw::fast_") == std::string::npos);
    CHECK(source_of("float32").find("tw::exp_term(") == std::string::npos);  // its exponentials are kept for the quotients
    CHECK(source_of("bfloat16").find("tw::largest(") != std::string::npos);
}

TEST_CASE("a row is loaded once and kept") {
    const std::string source = source_of("bfloat16");
    CHECK(source.find("tw::load<8>") == source.rfind("tw::load<8>"));
}

TEST_CASE("products and sums of what is rounded to 16 bits are rounded once, and vectors two by two") {
    const auto scaled = [](const std::string &type) {
        return source_of_program("%x : " + type + "[8, 1024] = placeholder\n%w : " + type + "[1024] = placeholder\n%b : " + type +
                                 "[1024] = placeholder\n%y : " + type +
                                 "[8, 1024] = call_function aten.layer_norm.default(input=%x, normalized_shape=[1024], weight=%w, "
                                 "bias=%b)\n%output = output(values=[%y])");
    };
    CHECK(scaled("bfloat16").find("tw::fma((") != std::string::npos);
    CHECK(scaled("bfloat16").find("tw::convert_vector<tw::bfloat16>(") != std::string::npos);
    CHECK(scaled("float32").find("tw::fma((") == std::string::npos);
}
