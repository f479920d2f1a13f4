// What Halide's simplifier would fold although PyTorch's values differ, compiled and run.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "dsl/algorithm/combiner.h"
#include "dsl/algorithm/math.h"
#include "dsl/error.h"
#include "lowering/cpu_schedules/default_schedule.h"
#include "tests/support/cpu_kernel.h"

using namespace tilewright;
using namespace tilewright::tests;
using Halide::Expr;
using Halide::Func;
using Halide::Var;

namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float inf = std::numeric_limits<float>::infinity();

using Formula = std::function<Expr(Expr)>;

Kernel elementwise(DType dtype, std::int64_t count, const Formula &formula) {
    KernelBuilder b("elementwise");
    auto x = b.input("x", dtype, {count});
    Var d("d0");
    Func y = named_func("y");
    y(d) = formula(read(x, {d}));
    b.stage(y, {count});
    b.output("y");
    return b.finish();
}

template<typename In, typename Out> std::vector<Out> run(DType dtype, const std::vector<In> &values, const Formula &formula) {
    const auto count = static_cast<std::int64_t>(values.size());
    const Kernel kernel = elementwise(dtype, count, formula);
    return values_of<Out>(run_on_cpu(kernel, default_cpu_schedule(kernel), {tensor_of<In>(dtype, {count}, values)})[0]);
}

bool same(float a, float b) { return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b)); }

void check_floats(const Formula &formula, const std::vector<float> &x, const std::vector<float> &expected) {
    const std::vector<float> y = run<float, float>(DType::float32, x, formula);
    for (std::size_t i = 0; i < x.size(); i++) {
        CAPTURE(x[i]);
        CAPTURE(y[i]);
        CAPTURE(expected[i]);
        CHECK(same(y[i], expected[i]));
    }
}

}  // namespace

TEST_CASE("floats are not folded") {
    const std::vector<float> x = {1.5F, -0.0F, nan_value, inf, -inf, 3e38F, 1e-40F, -2};
    const std::vector<float> undefined = {0, 0, nan_value, nan_value, nan_value, 0, 0, 0};
    check_floats([](Expr v) { return v - v; }, x, undefined);
    check_floats([](Expr v) { return v * 0.0f; }, x, {0, -0.0F, nan_value, nan_value, nan_value, 0, 0, -0.0F});
    check_floats([](Expr v) { return v + 0.0f; }, x, {1.5F, 0, nan_value, inf, -inf, 3e38F, 1e-40F, -2});
    check_floats([](Expr v) { return Halide::select(math::eq(v, v), 1.0f, 2.0f); }, x, {1, 1, 2, 1, 1, 1, 1, 1});
    check_floats([](Expr v) { return v / v; }, x, {1, nan_value, nan_value, nan_value, nan_value, 1, 1, 1});
    check_floats([](Expr v) { return v / 0.0f; }, x, {inf, nan_value, nan_value, inf, -inf, inf, inf, -inf});
    check_floats([](Expr v) { return (v + 1e30f) - 1e30f; }, x, {0, 0, nan_value, inf, -inf, 3e38F, 0, 0});
    check_floats([](Expr v) { return math::maximum(v, Expr(0.0f)); }, x, {1.5F, -0.0F, nan_value, inf, 0, 3e38F, 1e-40F, 0});
}

TEST_CASE("integers wrap and never trap; a zero divisor is an error") {
    const std::int32_t most = INT32_MAX, least = INT32_MIN;
    const std::vector<std::int32_t> x = {most, least, 0, -1, 7, most, least, 3};
    CHECK(run<std::int32_t, bool>(DType::int32, x, [](Expr v) { return math::add(v, Expr(1)) > v; }) ==
          std::vector<bool>{false, true, true, true, true, false, true, true});
    CHECK(run<std::int32_t, std::int32_t>(DType::int32, x, [](Expr v) { return math::div_floor(v, Expr(-1)); }) ==
          std::vector<std::int32_t>{-most, least, 0, 1, -7, -most, least, -3});
    CHECK_THROWS(run<std::int32_t, std::int32_t>(DType::int32, x, [](Expr v) { return math::remainder(Expr(5), math::mul(v, Expr(0))); }));
}

TEST_CASE("a NaN in a product reaches what follows it") {
    KernelBuilder b("linear");
    auto a = b.input("a", DType::float32, {32, 16});
    auto w = b.input("w", DType::float32, {16, 64});
    std::vector<Var> d = argument_vars(2);
    Func dot = named_func("dot"), y = named_func("y");
    Halide::RDom r = reduction_domain({16});
    define_reduction(dot, d, Combiner::sum, {read(a, {d[0], r[0]}) * read(w, {r[0], d[1]})}, r);
    Expr value = Halide::Internal::Call::make(dot.function(), {d[0], d[1]}, 0);
    y(d) = Halide::select(math::isnan(value), 7.0f, Halide::select(math::isinf(value), 9.0f, math::maximum(value, Expr(0.0f))));
    b.stage(dot, {32, 64}, {16});
    b.stage(y, {32, 64});
    b.output("y");
    const Kernel kernel = b.finish();
    std::vector<float> as(32 * 16, 1.0F), ws(16 * 64, 0.5F);
    as[3 * 16 + 5] = nan_value;
    as[9 * 16] = inf;
    const std::vector<HostTensor> inputs = {tensor_of<float>(DType::float32, {32, 16}, as), tensor_of<float>(DType::float32, {16, 64}, ws)};
    for (const Directives &directives : {Directives{}, default_cpu_schedule(kernel)}) {
        const std::vector<float> out = values_of<float>(run_on_cpu(kernel, directives, inputs)[0]);
        for (int i = 0; i < 32; i++) {
            CHECK(out[i * 64 + 33] == (i == 3 ? 7.0F : i == 9 ? 9.0F : 8.0F));
        }
    }
}

TEST_CASE("a value that forty stages read twice is computed once each") {
    KernelBuilder b("doubling");
    auto x = b.input("x", DType::float32, {100});
    Var d("d0");
    Expr previous = read(x, {d});
    for (int i = 0; i < 40; i++) {
        Func f = named_func("f" + std::to_string(i));
        f(d) = previous * 0.5f + previous * 0.5f;
        b.stage(f, {100});
        previous = Halide::Internal::Call::make(f.function(), {d}, 0);
    }
    b.output("f39");
    const Kernel kernel = b.finish();
    std::vector<float> values(100);
    for (int i = 0; i < 100; i++) {
        values[i] = static_cast<float>(i);
    }
    CHECK(values_of<float>(run_on_cpu(kernel, default_cpu_schedule(kernel), {tensor_of<float>(DType::float32, {100}, values)})[0]) ==
          values);
}

TEST_CASE("an index out of range is reported with its site") {
    KernelBuilder b("gather");
    auto x = b.input("x", DType::float32, {5});
    auto index = b.input("index", DType::int64, {3});
    Var d("d0");
    Func y = named_func("y");
    y(d) = read(x, {math::checked_index(read(index, {d}), 5, false, 4)});
    b.stage(y, {3});
    b.output("y");
    const Kernel kernel = b.finish();
    const HostTensor values = tensor_of<float>(DType::float32, {5}, std::vector<float>{0, 1, 2, 3, 4});
    const auto at = [&](std::vector<std::int64_t> places) {
        return run_on_cpu(kernel, default_cpu_schedule(kernel), {values, tensor_of<std::int64_t>(DType::int64, {3}, places)});
    };
    CHECK(values_of<float>(at({4, 0, 2})[0]) == std::vector<float>{4, 0, 2});
    CHECK_THROWS_WITH_AS(at({4, 0, -2}), "site 4: index -2 is out of range for size 5", UserError);
}

TEST_CASE("strides, permuted outputs and symbolic sizes") {
    KernelBuilder b("permuted");
    const Extent n = Extent::symbol("n");
    b.symbol("n", 0, 4096);
    auto x = b.input("x", DType::float32, {n, 6}, {6, 1});
    std::vector<Var> d = argument_vars(2);
    Func y = named_func("y");
    y(d) = read(x, {d[1], d[0]}) + 1.0f;
    b.stage(y, {6, n});
    b.output("y", 0, {1, 6});
    const Kernel kernel = b.finish();
    for (const std::int64_t size : {0, 1, 5, 100}) {
        const std::vector<float> values = random_floats(size * 6, 3);
        const HostTensor out =
            run_on_cpu(kernel, default_cpu_schedule(kernel), {tensor_of<float>(DType::float32, {size, 6}, values)}, {{"n", size}})[0];
        for (std::int64_t i = 0; i < size * 6; i++) {
            CHECK(reinterpret_cast<const float *>(out.data())[i] == values[i] + 1.0F);
        }
    }
}
